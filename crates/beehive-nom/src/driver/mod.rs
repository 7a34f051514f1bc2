//! What speaks for one switch: a [`Driver`], and the IO bee that drives it.
//!
//! A driver turns what a switch says into network objects, and network objects into what the switch understands. The
//! bee ([`drive`]) connects it to the hive: it brings packets in under credits, lets them wait for a moment when the hive
//! is behind and then sheds them, fairly by port, never anything else, and hands answers and commands to the driver in batches.
//!
//! Architecture invariant: nothing outside of [`openflow`] knows OpenFlow.

mod counters;
mod directory;
mod fair_share;
mod ingress;
mod io_bee;
pub mod openflow;
mod packet_queue;

pub use counters::{Counters, CountersNow};
pub use directory::{ConnectionRecord, Directory, NodeStatus};
pub use ingress::Admission;
pub use io_bee::drive;

use crate::object::{
    Flow, FlowFailed, FlowRemoved, FlowsConfirmed, FlowsRead, NodeId, PacketIn, PacketOut, Port, PortChanged,
    PortDown, PortUp, ReadFlows, WithdrawFlows,
};
use beehive::{Address, Time};
use std::future::Future;
use std::sync::Arc;

/// What speaks for one switch.
pub trait Driver: Send {
    /// What is counted about it.
    fn counters(&self) -> &Arc<Counters>;

    /// Waits until [`Driver::take`] or [`Driver::flush`] has something to do. Cancel-safe: nothing is lost.
    fn wait(&mut self) -> impl Future<Output = ()> + Send;

    /// Takes what the switch has said, without waiting. An error ends the connection, after a last
    /// [`Driver::flush`].
    ///
    /// # Errors
    ///
    /// Why the connection ends.
    fn take<E: Events>(&mut self, now: Time, events: &mut E) -> Result<(), Close>;

    /// Puts a flow in place; sent with the next [`Driver::flush`].
    fn install(&mut self, flow: &Flow);

    /// Takes flows away; sent with the next [`Driver::flush`].
    fn withdraw(&mut self, flows: &WithdrawFlows);

    /// Asks the switch for its flows, with the next [`Driver::flush`]; it tells them by [`Event::FlowsRead`].
    fn read_flows(&mut self, wanted: &ReadFlows);

    /// Sends a packet out; with the next [`Driver::flush`].
    fn send(&mut self, packet: &PacketOut);

    /// Whether so much waits for the switch that it is given no commands for now. When that is over, [`Driver::wait`]
    /// completes.
    fn is_full(&self) -> bool {
        false
    }

    /// Sends what has been put together, as far as the switch takes it without waiting.
    ///
    /// # Errors
    ///
    /// Why the connection ends: the switch is gone, or has not read for too long.
    fn flush(&mut self, now: Time) -> Result<(), Close>;

    /// Says good-bye; after this the driver is dropped.
    fn end(&mut self, close: &Close) -> impl Future<Output = ()> + Send;
}

/// Takes what a driver has to tell. Packets apart from the rest: there are many of them, and they may be shed.
pub trait Events {
    /// A packet came up.
    fn packet_in(&mut self, packet: PacketIn);
    /// Something happened that is never shed.
    fn event(&mut self, event: Event);
}

/// What happened to a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// It is there and set up.
    Joined {
        /// Who it says to be.
        node: NodeId,
        /// Its ports.
        ports: Vec<Port>,
        /// See [`NodeJoined::knows_owners`](crate::object::NodeJoined::knows_owners).
        knows_owners: bool,
        /// See [`NodeJoined::drops_misses`](crate::object::NodeJoined::drops_misses).
        drops_misses: bool,
    },
    /// A port came up.
    PortUp(PortUp),
    /// A port went down.
    PortDown(PortDown),
    /// A port changed.
    PortChanged(PortChanged),
    /// A flow is gone.
    FlowRemoved(FlowRemoved),
    /// A flow was refused.
    FlowFailed(FlowFailed),
    /// Intended flows are in place.
    FlowsConfirmed(FlowsConfirmed),
    /// Flows were read.
    FlowsRead(FlowReading),
    /// It was refused as a duplicate; where the one is that stays.
    Duplicate {
        /// Who it said to be.
        node: NodeId,
        /// Where it called from.
        refused: String,
        /// Where the one is that stays.
        kept: String,
    },
}

/// Flows that were read, and for whom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowReading {
    /// The IO bee that asked; none: the apps did.
    pub asker: Option<Address>,
    /// The flows.
    pub read: FlowsRead,
}

/// Why a connection ends.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Close {
    /// The switch closed it.
    ByPeer,
    /// The switch closed it, or went silent, before it said a word: a port scan, a health check.
    NoHello,
    /// The network failed.
    Network(String),
    /// The switch was not set up within the limit of time.
    Handshake,
    /// The switch is silent.
    Silent,
    /// The switch was silent when another one with its identity came.
    Replaced,
    /// Another switch with its identity is there and well.
    Duplicate,
    /// No protocol version in common.
    Version(String),
    /// The switch broke the protocol.
    Malformed(String),
    /// The switch does not read what is sent to it.
    NotReading,
    /// The switch brings in more events than can be done.
    Flood,
    /// The hive stops.
    Stopping,
    /// The switch has not shown that it is who it says to be.
    Untrusted(String),
    /// The switch says to be a node that is not one of those that may connect.
    Unlisted(NodeId),
    /// Too many connections are waiting to be set up, and this one waits for longest.
    Evicted,
}

impl std::fmt::Display for Close {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Close::ByPeer => write!(f, "the switch closed the connection"),
            Close::NoHello => write!(f, "it closed without a word"),
            Close::Network(why) => write!(f, "{why}"),
            Close::Handshake => write!(f, "it was not set up in time"),
            Close::Silent => write!(f, "the switch does not answer any more"),
            Close::Replaced => write!(f, "the switch was silent when it came again on another connection"),
            Close::Duplicate => write!(f, "another switch with this identity is connected and alive"),
            Close::Version(why) => write!(f, "{why}"),
            Close::Malformed(why) => write!(f, "it broke the protocol: {why}"),
            Close::NotReading => write!(f, "the switch does not read what is sent to it"),
            Close::Flood => write!(f, "the switch reports more events than can be handled"),
            Close::Stopping => write!(f, "the controller stops"),
            Close::Untrusted(why) => write!(f, "the switch is not trusted: {why}"),
            Close::Unlisted(node) => {
                write!(f, "it says to be {node}, which is not one of those that may connect")
            }
            Close::Evicted => write!(f, "too many connections wait to be set up"),
        }
    }
}
impl std::error::Error for Close {}
