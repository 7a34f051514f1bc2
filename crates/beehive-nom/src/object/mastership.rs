//! Defines the messages by which the hives of a cluster agree on the driver that controls a switch.
//!
//! A switch may be connected to several hives. One of its drivers is the *master*: it reports what happens at the switch, and
//! carries out commands. The others stand by. Each decision has a *generation*, with which the driver asks the switch for its role
//! (OpenFlow 1.3.5, 6.3.4). The switch refuses whoever comes with an older one, so a hive that was cut off, or has slept,
//! changes nothing after another one has taken over.

use crate::object::{NodeId, NodeJoined, PortChanged, PortDown, PortUp};
use beehive::{Address, Message};
use serde::{Deserialize, Serialize};

/// A driver is connected to a switch, and does not know its role. Sent again whenever that is so.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriverConnected {
    /// The switch.
    pub node: NodeId,
    /// The driver.
    pub driver: Address,
    /// The newest generation of which it was told, or 0.
    pub newest: u64,
}

/// A driver has lost the connection to its switch, or its hive is lost.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriverLeft {
    /// The switch.
    pub node: NodeId,
    /// The driver.
    pub driver: Address,
}

/// The hive of a switch's master seems to be dead, so another driver wants to be the master.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct MasterSuspected {
    /// The switch.
    pub node: NodeId,
    /// The driver that wants to be the master.
    pub driver: Address,
    /// The master, as far as that driver knows.
    pub master: Address,
}

/// The switch has accepted a master.
///
/// Drivers report connections and ports to the cell that decides about masters, and not to the apps: the messages of two drivers
/// are in no order, and those of a former master may arrive late.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct MasterAccepted {
    /// The generation.
    pub generation: u64,
    /// The message for the apps, if the switch is new to them.
    pub joined: NodeJoined,
}

/// A driver has learned that another one is the master, and does nothing from now on.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoodBy {
    /// The switch.
    pub node: NodeId,
    /// The driver.
    pub driver: Address,
    /// The generation of the decision.
    pub generation: u64,
}

/// Another driver controls a switch from now on. The switch is the same, with its flows and ports.
///
/// Apps that keep the driver of a switch handle this message. Ports that have changed meanwhile are reported behind it.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct MasterChanged {
    /// The switch.
    pub node: NodeId,
    /// The address of the driver.
    pub driver: Address,
    /// See [`NodeJoined::knows_owners`].
    pub knows_owners: bool,
    /// See [`NodeJoined::drops_misses`].
    pub drops_misses: bool,
}

/// The master of a switch reports a change of a port.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct MasterReports {
    /// The switch.
    pub node: NodeId,
    /// The generation of the master.
    pub generation: u64,
    /// The change.
    pub change: PortEvent,
}

/// A change of a port.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum PortEvent {
    /// The port can be used from now on.
    Up(PortUp),
    /// The port can no longer be used.
    Down(PortDown),
    /// Another property of the port has changed.
    Changed(PortChanged),
}

/// The switch has refused a master, because its generation is older than another one that the switch has seen.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct MasterRefused {
    /// The switch.
    pub node: NodeId,
    /// The generation that was refused.
    pub generation: u64,
    /// The newest generation that the switch has seen.
    pub newest: u64,
}

/// Tells a driver that it is the master.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct BecomeMaster {
    /// The generation of this decision.
    pub generation: u64,
}

/// Tells a driver that another one is the master.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct StandBy {
    /// The master.
    pub master: Address,
    /// The generation of that decision.
    pub generation: u64,
}

/// Asks a driver to say again that it is connected. Its hive was declared dead; an earlier life of the hive may have been meant.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct SayConnected;
