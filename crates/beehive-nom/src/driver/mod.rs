//! Connects one switch to the hive. Contains the [`Driver`] trait and the IO bee that runs a driver.
//!
//! A driver translates between the protocol of its switch and network objects. The IO bee ([`drive`]) connects the
//! driver to the hive. Each packet from the switch takes a credit. While the hive is behind, the driver leaves its input
//! in the socket, so that the switch is slowed down. It reads on only so far that messages behind packets are handled
//! within about a second, or if one port floods the others. What it reads then waits in queues for a short time and is
//! shed, with a fair share for each port. Other messages are never shed. The hive's capacity is shared by the switches
//! that have more to say ([`Capacity`]). The IO bee passes answers and commands to the driver in batches.
//!
//! Architecture invariant: code outside [`openflow`] knows nothing about OpenFlow.

mod capacity;
mod counters;
mod directory;
mod fair_share;
mod ingress;
mod io_bee;
pub mod openflow;
mod packet_queue;
mod port_shares;
mod standing;
mod turns;

pub use capacity::Capacity;
pub use counters::{Counters, CountersNow};
pub use directory::{ConnectionRecord, Directory, NodeStatus};
pub use ingress::Admission;
pub use io_bee::{drive, drive_among, drive_sharing};
pub use standing::Suspects;

use crate::object::{
    Flow, FlowFailed, FlowRemoved, FlowsConfirmed, FlowsRead, NodeId, PacketIn, PacketOut, Port, PortChanged,
    PortDown, PortUp, ReadFlows, WithdrawFlows,
};
use beehive::{Address, Time};
use std::future::Future;
use std::sync::Arc;

/// The connection to one switch.
pub trait Driver: Send {
    /// Returns the connection's counters.
    fn counters(&self) -> &Arc<Counters>;

    /// Whether the driver obeys [`Driver::set_room`]. If so, few packets need to wait outside of its socket.
    const HOLDS_INPUT: bool = false;

    /// Sets how many packets the hive takes now. A driver that can leave input where it is reads no more than that, except
    /// for the sake of messages that wait behind packets. Called before each [`Driver::wait`].
    fn set_room(&mut self, packets: u32) {
        let _ = packets;
    }

    /// Waits until [`Driver::take`] or [`Driver::flush`] has work to do. Cancel-safe: no input is lost.
    fn wait(&mut self) -> impl Future<Output = ()> + Send;

    /// Processes the input that has arrived, without waiting. An error ends the connection after a final
    /// [`Driver::flush`].
    ///
    /// # Errors
    ///
    /// Returns the reason why the connection ends.
    fn take<E: Events>(&mut self, now: Time, events: &mut E) -> Result<(), Close>;

    /// Installs a flow. The command is sent with the next [`Driver::flush`].
    fn install(&mut self, flow: &Flow);

    /// Withdraws flows. The command is sent with the next [`Driver::flush`].
    fn withdraw(&mut self, flows: &WithdrawFlows);

    /// Requests the switch's flows with the next [`Driver::flush`]. They arrive as [`Event::FlowsRead`].
    fn read_flows(&mut self, wanted: &ReadFlows);

    /// Sends a packet out with the next [`Driver::flush`].
    fn send(&mut self, packet: &PacketOut);

    /// Asks the switch for a role among its drivers on several hives, with the next [`Driver::flush`]. The switch answers with
    /// [`Event::RoleGranted`] or [`Event::RoleRefused`]. Returns `false` if it knows no roles: then the driver has the role from
    /// now on, and nothing but the driver itself prevents what it must not do.
    fn request_role(&mut self, role: Role) -> bool {
        let _ = role;
        false
    }

    /// Returns the switch's ports, as it last reported them.
    fn ports(&self) -> Vec<Port>;

    /// Returns whether so much output is pending that the driver currently takes no commands. [`Driver::wait`]
    /// completes when the driver takes commands again.
    fn is_full(&self) -> bool {
        false
    }

    /// Writes as much of the pending output as the switch accepts without waiting.
    ///
    /// # Errors
    ///
    /// Returns the reason why the connection ends: the switch is gone, or it has accepted no output for too long.
    fn flush(&mut self, now: Time) -> Result<(), Close>;

    /// Closes the connection. The driver is dropped afterwards.
    fn end(&mut self, close: &Close) -> impl Future<Output = ()> + Send;
}

/// The role of a driver among those that a switch has on several hives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Role {
    /// Whether the driver is the master, which controls the switch. Otherwise, it only observes.
    pub is_master: bool,
    /// The generation of the decision. A switch refuses older ones than the newest that it has seen.
    pub generation: u64,
}

/// Receives a driver's events. Packets have their own method, because they are frequent and can be shed.
pub trait Events {
    /// Handles a packet that the switch sent to the controller.
    fn packet_in(&mut self, packet: PacketIn);
    /// Handles an event that is never shed.
    fn event(&mut self, event: Event);
}

/// An event at a switch, other than a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The switch is connected and has completed the handshake.
    Joined {
        /// The datapath id reported by the switch.
        node: NodeId,
        /// The switch's ports.
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
    /// A flow was removed from the switch.
    FlowRemoved(FlowRemoved),
    /// The switch refused a flow.
    FlowFailed(FlowFailed),
    /// The switch has confirmed that intended flows are installed.
    FlowsConfirmed(FlowsConfirmed),
    /// The switch has reported flows.
    FlowsRead(FlowReading),
    /// The switch has granted a role.
    RoleGranted(Role),
    /// The switch has refused a role.
    RoleRefused {
        /// The role.
        role: Role,
        /// The newest generation that the switch has seen.
        newest: u64,
    },
    /// The connection was refused: another connection already represents this node.
    Duplicate {
        /// The datapath id that both connections claim.
        node: NodeId,
        /// Network address of the refused connection.
        refused: String,
        /// Network address of the connection that remains.
        kept: String,
    },
}

/// Flows read from a switch, with the IO bee that requested them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowReading {
    /// The IO bee that requested the flows; `None` if they are for the apps.
    pub asker: Option<Address>,
    /// The flows.
    pub read: FlowsRead,
}

/// The reason why a connection ends.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Close {
    /// The switch closed the connection.
    ByPeer,
    /// The peer closed the connection or remained silent without having sent a hello, like a port scan or a health
    /// check.
    NoHello,
    /// The network failed, with the operating system's error text.
    Network(String),
    /// The handshake was not complete within [`SessionSettings::handshake`](openflow::SessionSettings::handshake).
    Handshake,
    /// The switch no longer answers echo requests.
    Silent,
    /// The switch did not answer a probe, and a newer connection with the same datapath id replaces this one.
    Replaced,
    /// Another connection with the same datapath id is alive.
    Duplicate,
    /// The two sides have no protocol version in common.
    Version(String),
    /// The switch violated the protocol.
    Malformed(String),
    /// The switch is not reading the messages sent to it.
    NotReading,
    /// The switch is sending more control events than the hive can handle.
    Flood,
    /// The hive is stopping.
    Stopping,
    /// The peer did not prove its identity: it did not speak TLS, or
    /// had no trusted certificate or the certificate of another node.
    Untrusted(String),
    /// The switch reports a datapath id that is not on the list of allowed nodes.
    Unlisted(NodeId),
    /// Too many connections have not completed the handshake, and the peer of this one has been silent for longest.
    Evicted,
}

impl std::fmt::Display for Close {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Close::ByPeer => write!(f, "the switch closed the connection"),
            Close::NoHello => write!(f, "no hello received"),
            Close::Network(why) => write!(f, "{why}"),
            Close::Handshake => write!(f, "the handshake timed out"),
            Close::Silent => write!(f, "the switch did not answer echo requests"),
            Close::Replaced => {
                write!(f, "the switch did not answer a probe, and a newer connection replaces this one")
            }
            Close::Duplicate => write!(f, "another switch with this datapath id is connected"),
            Close::Version(why) => write!(f, "{why}"),
            Close::Malformed(why) => write!(f, "protocol violation: {why}"),
            Close::NotReading => write!(f, "the switch does not read the messages that are sent to it"),
            Close::Flood => write!(f, "the switch sends more events than the hive can handle"),
            Close::Stopping => write!(f, "the controller is stopping"),
            Close::Untrusted(why) => write!(f, "the switch is not trusted: {why}"),
            Close::Unlisted(node) => {
                write!(f, "datapath id {node} is not on the list of allowed switches")
            }
            Close::Evicted => write!(f, "evicted: too many connections have not completed the handshake"),
        }
    }
}
impl std::error::Error for Close {}
