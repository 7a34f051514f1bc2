//! Bees whose cells are all empty retire, even if pending messages have delayed it.

use crate::load::{On, eventually, on_workers, start};
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use std::time::Duration;

#[derive(Message)]
struct Listed {
    keys: Vec<u64>,
    milliseconds: u64,
}
#[derive(Message)]
struct Relayed {
    key: u64,
    keys: Vec<u64>,
}

#[derive(App)]
struct Ledger {
    lists: Dict<u64, u64>,
}
#[handlers]
impl Ledger {
    #[rcv(joins)]
    fn listed(&mut self, msg: &Listed) {
        std::thread::sleep(Duration::from_millis(msg.milliseconds));
        for key in &msg.keys {
            *self.lists.entry(*key).or_default() += 1
        }
    }
}

/// An app that owns a cell only while it passes a message on.
#[derive(App)]
struct Relays {
    nothing: Dict<u64, u64>,
}
#[handlers]
impl Relays {
    #[rcv(sharded)]
    fn relayed(&mut self, msg: &Relayed, ctx: &mut Ctx) {
        let _ = self.nothing.contains(&msg.key);
        ctx.emit(Listed { keys: msg.keys.clone(), milliseconds: 0 })
    }
}

#[test]
fn a_bee_whose_messages_waited_for_a_merge_retires_after_it() {
    on_workers(3, async {
        let (hive, _) = start(Hive::builder().app::<Relays>().app::<Ledger>(), On::Memory);
        for key in [1, 2] {
            hive.emit(Listed { keys: vec![key], milliseconds: 0 }).await
        }

        hive.idle().await;
        // The merge waits for this handler, and the messages that need the merge are blocked at their
        // senders.
        hive.emit(Listed { keys: vec![1], milliseconds: 600 }).await;
        for key in 0..100 {
            hive.emit(Relayed { key: 100 + key, keys: vec![1, 2] }).await
        }

        hive.idle().await;
        eventually("all have retired", Duration::from_secs(10), || hive.status().apps[0].bees == 0).await;
        hive.stop(Duration::from_secs(5)).await;
    })
}
