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
    /// Its port.
    pub port: PortNo,
}

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.node, self.port)
    }
}

/// One direction of a cable: packets sent out of one port come in on the other.
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
    /// One of its directions, always the smaller one.
    pub link: Link,
    /// Whether both directions were found.
    pub both_ways: bool,
    /// Whether it takes part in flooding.
    pub in_tree: bool,
}

/// Requests all cables, in order.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
#[message(reply = Vec<KnownLink>)]
pub struct ListLinks;

/// The role of a port in the topology.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum PortRole {
    /// No other switch of this controller is behind it.
    Edge,
    /// Its link takes part in flooding.
    Tree,
    /// Its link would close a loop: flooded packets that come in on it are dropped.
    Blocked,
}

/// The role of a port has changed.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortRoleChanged {
    /// The port.
    pub port: PortId,
    /// Its role.
    pub role: PortRole,
}

/// Packets may now take other paths through the network, so addresses that were learned at a switch are no
/// longer valid.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathsChanged {
    /// The switch.
    pub node: NodeId,
}

/// Packets circulate in a loop that no known link explains, or an address appears at two ports. The port, or
/// the address at this port, is blocked for some time.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct LoopDetected {
    /// The port.
    pub port: PortId,
    /// A description of the observation.
    pub why: String,
}
