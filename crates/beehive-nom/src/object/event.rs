//! Defines the events of nodes, ports and flows that drivers report.

use crate::object::{Cause, FlowKey, FlowMatch, NodeId, Owner, Port, PortNo};
use beehive::{Address, Message};
use serde::{Deserialize, Serialize};

/// A switch has connected and is set up. Its driver accepts [`InstallFlow`](crate::object::InstallFlow),
/// [`WithdrawFlows`](crate::object::WithdrawFlows) and [`SendPacket`](crate::object::SendPacket).
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct NodeJoined {
    /// The switch.
    pub node: NodeId,
    /// The address of its driver.
    pub driver: Address,
    /// The ports, ordered by number.
    pub ports: Vec<Port>,
    /// Whether the switch can remove the flows of one owner and keep those of others.
    pub knows_owners: bool,
    /// Whether the switch drops packets that no flow matches, unless a flow sends them to the controller.
    pub drops_misses: bool,
}

/// A driver has lost the connection to its switch.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeLeft {
    /// The switch.
    pub node: NodeId,
    /// The driver that lost it; the switch may already be connected to another one.
    pub driver: Address,
}

/// A second switch claimed the id of a connected node and was refused.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct DuplicateNode {
    /// The node.
    pub node: NodeId,
    /// The network address of the refused switch.
    pub refused: String,
    /// The network address of the switch that stays.
    pub kept: String,
}

/// A port can be used from now on.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct PortUp {
    /// The switch.
    pub node: NodeId,
    /// The port.
    pub port: Port,
}

/// A port can no longer be used: its link is down, or it was removed.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortDown {
    /// The switch.
    pub node: NodeId,
    /// The port.
    pub port: PortNo,
    /// Whether the port was removed.
    pub removed: bool,
}

/// A property of a port has changed other than being up.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct PortChanged {
    /// The switch.
    pub node: NodeId,
    /// The port after the change.
    pub port: Port,
}

/// The reason why a flow was removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FlowRemovedReason {
    /// The idle timeout expired.
    Idle,
    /// The hard timeout expired.
    Hard,
    /// The flow was withdrawn by a command.
    Withdrawn,
    /// Another reason.
    Other,
}

/// A flow was removed. Switches report this for intended flows only.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct FlowRemoved {
    /// The switch.
    pub node: NodeId,
    /// The owner of the flow.
    pub owner: Owner,
    /// Its priority.
    pub priority: u16,
    /// Its match, as far as [`FlowMatch`] can express it.
    pub matching: FlowMatch,
    /// The reason.
    pub reason: FlowRemovedReason,
    /// Number of packets that it matched.
    pub packets: u64,
    /// Number of bytes that it matched.
    pub bytes: u64,
}

/// The switch refused a flow.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct FlowFailed {
    /// The switch.
    pub node: NodeId,
    /// The owner of the flow.
    pub owner: Owner,
    /// The kind of message that it was made for.
    pub cause: Cause,
    /// The flow; `None` if it is no longer known.
    pub flow: Option<FlowKey>,
    /// The error in the terms of the switch's protocol, such as `flow_mod_failed: TABLE_FULL`.
    pub why: String,
}
