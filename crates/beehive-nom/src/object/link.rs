//! Defines links between switches, and the roles of ports.

use crate::object::{NodeId, PortNo};
use beehive::Message;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A port of a given switch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct PortId {
    /// The switch.
    pub node: NodeId,
    /// The port.
    pub port: PortNo,
}

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.node, self.port)
    }
}

/// One direction of a cable: packets sent out of one port arrive at the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Link {
    /// The sending port.
    pub from: PortId,
    /// The receiving port.
    pub to: PortId,
}

impl Link {
    /// Returns the other direction.
    pub const fn reversed(self) -> Link {
        Link { from: self.to, to: self.from }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.from, self.to)
    }
}

/// A link was found.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkUp(pub Link);

/// A link was lost.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkDown(pub Link);

/// A cable between two switch ports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct KnownLink {
    /// The smaller of the cable's two directions.
    pub link: Link,
    /// Whether both directions were found.
    pub both_ways: bool,
    /// Whether the cable takes part in flooding.
    pub in_tree: bool,
}

/// Requests all cables, in order.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
#[message(reply = Vec<KnownLink>)]
pub struct ListLinks;

/// The role of a port in the topology.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum PortRole {
    /// No other switch of this controller is behind the port.
    Edge,
    /// The port's link takes part in flooding.
    Tree,
    /// The port's link would close a loop, so flooded packets that arrive at the port are dropped.
    Blocked,
}

/// A port's role has changed.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortRoleChanged {
    /// The port.
    pub port: PortId,
    /// The new role.
    pub role: PortRole,
}

/// Packets may now take other paths through the network, so locations learned at a switch are no longer valid.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathsChanged {
    /// The switch.
    pub node: NodeId,
}

/// Packets are circulating in a loop that no known link explains, or an address is appearing at two ports at once. The
/// port, or the address at this port, is blocked for some time.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct LoopDetected {
    /// The port.
    pub port: PortId,
    /// A description of the observation.
    pub why: String,
}
