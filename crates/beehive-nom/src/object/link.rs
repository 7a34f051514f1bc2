//! Links between switches, and what their ports are for.

use crate::object::{NodeId, PortNo};
use beehive::Message;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A port of a certain switch.
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

/// One direction of a cable: what goes out of one port comes in on the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Link {
    /// Where it goes out.
    pub from: PortId,
    /// Where it comes in.
    pub to: PortId,
}

impl Link {
    /// The other direction.
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

/// A link is no more.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkDown(pub Link);

/// A cable between two ports of switches, as it is known now.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct KnownLink {
    /// One of its directions, always the same.
    pub link: Link,
    /// Whether both directions were found.
    pub both_ways: bool,
    /// Whether it takes part in flooding.
    pub in_tree: bool,
}

/// Asks for all links, in order.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
#[message(reply = Vec<KnownLink>)]
pub struct ListLinks;

/// What a port is for, as the whole network tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum PortRole {
    /// No switch of ours is behind it.
    Edge,
    /// Its link takes part in flooding.
    Tree,
    /// Its link would close a loop: nothing that is flooded may come in on it.
    Blocked,
}

/// What a port is for from now on.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortRoleChanged {
    /// The port.
    pub port: PortId,
    /// Its role.
    pub role: PortRole,
}

/// Packets may take other ways through the network than before: what a switch learned of them is worth nothing.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathsChanged {
    /// The switch.
    pub node: NodeId,
}

/// Packets run in a circle that no link explains, or an address is in two places; the port, or the address at this port,
/// is blocked for a while.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct LoopDetected {
    /// The port.
    pub port: PortId,
    /// What was seen.
    pub why: String,
}
