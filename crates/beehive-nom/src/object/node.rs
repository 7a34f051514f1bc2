//! Defines nodes (switches) and their ports.

use crate::object::Mac;
use beehive::Key;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A switch, identified by its datapath id.
#[derive(Key, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(pub u64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A port number at a node. Reserved numbers stand for sets of ports, or for ports that are not physical.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct PortNo(pub u32);

impl PortNo {
    /// The highest number of an ordinary port.
    pub const MAX: PortNo = PortNo(0xffff_ff00);
    /// The packet's input port.
    pub const IN_PORT: PortNo = PortNo(0xffff_fff8);
    /// The flow table of the switch. Valid only in packet-outs.
    pub const TABLE: PortNo = PortNo(0xffff_fff9);
    /// The switch's own forwarding without OpenFlow. Occurs only in other controllers' flows.
    pub const NORMAL: PortNo = PortNo(0xffff_fffa);
    /// All ports that take part in flooding, except the input port.
    pub const FLOOD: PortNo = PortNo(0xffff_fffb);
    /// All ports except the input port.
    pub const ALL: PortNo = PortNo(0xffff_fffc);
    /// The controller.
    pub const CONTROLLER: PortNo = PortNo(0xffff_fffd);
    /// The switch's own network stack.
    pub const LOCAL: PortNo = PortNo(0xffff_fffe);
    /// No port.
    pub const NONE: PortNo = PortNo(0xffff_ffff);

    /// Returns whether packets can arrive at this port, which is so for ordinary ports (numbered from 1) and for the
    /// switch's own network stack.
    #[inline]
    pub const fn is_single(self) -> bool {
        (self.0 != 0 && self.0 <= PortNo::MAX.0) || self.0 == PortNo::LOCAL.0
    }
}

impl fmt::Display for PortNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            PortNo::IN_PORT => f.pad("in_port"),
            PortNo::TABLE => f.pad("table"),
            PortNo::NORMAL => f.pad("normal"),
            PortNo::FLOOD => f.pad("flood"),
            PortNo::ALL => f.pad("all"),
            PortNo::CONTROLLER => f.pad("controller"),
            PortNo::LOCAL => f.pad("local"),
            PortNo::NONE => f.pad("none"),
            PortNo(number) => fmt::Display::fmt(&number, f),
        }
    }
}

impl fmt::Debug for PortNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A port's description.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Port {
    /// The port's number.
    pub number: PortNo,
    /// The Ethernet address of the port.
    pub address: Mac,
    /// The port's name.
    pub name: String,
    /// Whether the port is enabled and has a link.
    pub up: bool,
    /// Whether the port's configuration lets it take part in flooding. OpenFlow 1.3 has no such setting.
    pub floods: bool,
    /// Whether the port's configuration lets it send packets.
    pub forwards: bool,
}

impl Port {
    /// Returns whether flooded packets are sent out of the port.
    pub fn is_flooded(&self) -> bool {
        self.up && self.floods && self.forwards
    }
}
