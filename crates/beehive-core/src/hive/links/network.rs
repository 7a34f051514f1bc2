//! The seam between the hives of a cluster: a network that carries packets from one hive to another.

use crate::cell::HiveId;
use crate::hive::consensus::registry::ColonyId;
use beehive_protocol::{Incarnation, LaneId};
use std::sync::Arc;

/// One hive's access to the network of its cluster.
///
/// The network promises little: a packet may be lost, doubled or delayed, and may overtake others. If it arrives, it is as
/// it was sent, and it comes from the hive that it is said to come from.
///
/// A network belongs to one hive. The hive calls [`attach`](Network::attach) once, when it starts, before the first
/// [`send`](Network::send).
pub trait Network: Send + Sync + 'static {
    /// Sends a packet. Must not block, and must not call the receiver.
    fn send(&self, to: HiveId, packet: Vec<u8>);
    /// Sets the object to which the network delivers packets. It does not keep the hive in memory.
    fn attach(&self, receiver: Arc<dyn Packets>);
}

/// The receiver of the packets for a hive.
pub trait Packets: Send + Sync {
    /// Takes a packet from another hive. Packets that cannot be decoded are dropped. May be called by any thread.
    fn arrived(&self, from: HiveId, packet: &[u8]);
}

/// The place of a hive in its cluster, which it got by joining.
#[derive(Clone)]
pub struct Membership {
    /// The hive's access to the network.
    pub network: Arc<dyn Network>,
    /// The number of times that this hive has joined ([`Decision::Joined`](beehive_protocol::Decision)).
    pub incarnation: Incarnation,
    /// The lane that the registry assigned to this incarnation.
    pub lane: LaneId,
    /// The colonies that the hive leads when it starts, in the order of their logs. No other hive may lead them. The hive may
    /// lead more of them later ([`Hive::lead`](crate::Hive::lead)).
    pub colonies: Vec<ColonyId>,
    /// Whether the caller tells the hive what all colonies have committed ([`Hive::followed`](crate::Hive::followed)). The views
    /// of journaled apps then contain the cells of all hives, and otherwise those of this hive's bees.
    pub follows: bool,
}

impl std::fmt::Debug for Membership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Membership")
            .field("incarnation", &self.incarnation)
            .field("lane", &self.lane)
            .field("colonies", &self.colonies)
            .finish_non_exhaustive()
    }
}
