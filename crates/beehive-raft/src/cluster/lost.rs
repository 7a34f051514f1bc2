//! Tells apps that a hive is lost, once in the cluster.
//!
//! When the registry has declared an incarnation dead, every hive learns of it from its own replica, and says so to an app of the
//! cluster, [`LostHives`]. The first message changes a cell of this app and emits [`HiveLost`], in one transaction; the others find
//! the cell changed. So it does not matter which hives die at that moment, as long as one of them lives: nobody is responsible. And
//! because a hive says again, after each start, what its replica has learned from the log of the registry, it does not matter either
//! if all of them end together.

use super::folds::Decisions;
use super::node::Node;
use beehive::cluster::{HiveLost, Incarnation};
use beehive::{App, Builder, Ctx, Dict, Hive, HiveId, Message, handlers};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The registry has declared an incarnation of a hive dead. Every hive says so.
#[derive(Message)]
struct DeclaredDead {
    hive: HiveId,
    incarnation: u32,
}

/// Remembers, of each hive, the last incarnation of which the apps know that it is lost.
#[derive(App)]
#[app(name = "beehive-lost-hives")]
struct LostHives {
    told: Dict<HiveId, u32>,
}

#[handlers]
impl LostHives {
    #[rcv]
    fn declared_dead(&mut self, msg: &DeclaredDead, ctx: &mut Ctx) {
        if self.told.get(&msg.hive).is_none_or(|told| *told < msg.incarnation) {
            self.told.put(msg.hive, msg.incarnation);
            ctx.emit(HiveLost { hive: msg.hive, incarnation: Incarnation(msg.incarnation) })
        }
    }
}

/// Adds the app of the cluster.
pub(super) fn with_app(builder: Builder) -> Builder {
    builder.app::<LostHives>()
}

/// What the app of the cluster adds to the fingerprint of the apps.
pub(super) fn fingerprint() -> Vec<u8> {
    with_app(Hive::builder()).fingerprint()
}

/// Says which hives were declared dead. Runs until the node stops.
pub(super) async fn tell(node: Arc<Node>, hive: Hive, replica: Arc<Decisions>) {
    if !hive.message_shapes().contains_key(HiveLost::NAME) {
        // no app wants to know
        return;
    }
    let mut said = BTreeMap::new();
    let mut indexes = replica.indexes();
    loop {
        indexes.borrow_and_update();
        for (lost, incarnation) in replica.lost() {
            if said.insert(lost, incarnation) != Some(incarnation) {
                tracing::debug!(hive = node.me.hive.0, lost = lost.0, "says that a hive was declared dead");
                hive.emit(DeclaredDead { hive: lost, incarnation: incarnation.0 }).await
            }
        }
        if indexes.changed().await.is_err() {
            return;
        }
    }
}
