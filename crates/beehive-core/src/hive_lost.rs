//! The message by which apps learn that a hive of the cluster is lost.

use crate::{HiveId, Message};
use beehive_protocol::Incarnation;

/// A hive of the cluster is lost: the others have heard nothing of it for long, and the registry has declared it dead. It has crashed,
/// it is cut off, or it was stopped and has not returned. Apps that keep something about hives handle this message:
///
/// ```
/// # extern crate beehive_core as beehive;
/// use beehive::cluster::HiveLost;
/// use beehive::{App, Dict, HiveId, handlers};
///
/// /// Knows how many sensors are connected to each hive.
/// #[derive(App)]
/// struct Sensors {
///     connected: Dict<HiveId, u64>,
/// }
///
/// #[handlers]
/// impl Sensors {
///     #[rcv]
///     fn hive_lost(&mut self, msg: &HiveLost) {
///         self.connected.remove(&msg.hive);
///     }
/// }
/// ```
///
/// It is handled once for an incarnation of a hive, whichever hives crash meanwhile. If a hive is lost again before its previous loss
/// was told, only the later one is told: nothing of the earlier ones is alive either. There is no order between this message and what
/// the lost hive has sent. A hive that returns gets a new incarnation, which may be at work before the loss of the previous one is
/// handled.
///
/// The hives of `beehive_raft::cluster` send it. A simulated cluster (`testing::Cluster`) does not.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
pub struct HiveLost {
    /// The hive.
    pub hive: HiveId,
    /// The incarnation that is dead.
    pub incarnation: Incarnation,
}
