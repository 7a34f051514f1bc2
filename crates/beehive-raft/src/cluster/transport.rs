//! The seam between the hives of a cluster: one-way packets and calls, each on a channel.
//!
//! Consensus, the registry and the failure detector use it, and so does the hive itself, for its packets. A real
//! implementation sends over sockets; a simulated one loses, delays and cuts.

use beehive_core::HiveId;
use beehive_core::seams::BoxFuture;
use std::sync::Arc;

/// What a packet or a call is for. The receiver dispatches by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Channel {
    /// Packets between the links of two hives: see [`beehive_core::cluster::Network`].
    Links = 0,
    /// Calls of the consensus groups.
    Raft = 1,
    /// Calls to the registry: proposals that are forwarded to its leader.
    Registry = 2,
    /// Packets of the failure detector.
    Detector = 3,
}

/// The error of a call that got no answer. The other hive may have handled it, or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// The reason, for people.
    pub why: String,
}

/// One hive's access to the other hives.
pub trait Transport: Send + Sync + 'static {
    /// Sends a packet that needs no answer. It may be lost, doubled, delayed, and overtake others. Does not block. If too many
    /// bytes already wait for the other hive, the packet is dropped.
    fn send(&self, to: HiveId, channel: Channel, packet: Vec<u8>);
    /// Calls the other hive and waits for its answer.
    ///
    /// Dropping the future gives up the answer; the other hive may have handled the call.
    ///
    /// # Errors
    ///
    /// Returns an error if the hive is not known or not reachable, if the connection breaks, or if it refuses the call. There
    /// is no deadline: a caller that needs one sets it.
    fn call(&self, to: HiveId, channel: Channel, request: Vec<u8>) -> BoxFuture<Result<Vec<u8>, Unanswered>>;
    /// Sets the object that gets the packets and the calls of other hives. Called once, before anything is sent.
    fn attach(&self, receiver: Arc<dyn Receiver>);
}

/// The receiver of packets and calls. The bytes come from another process and may be anything.
pub trait Receiver: Send + Sync + 'static {
    /// Takes a packet. Does not block.
    fn packet(&self, from: HiveId, channel: Channel, packet: Vec<u8>);
    /// Answers a call. `None` refuses it: the bytes mean nothing to this hive.
    fn call(&self, from: HiveId, channel: Channel, request: Vec<u8>) -> BoxFuture<Option<Vec<u8>>>;
}
