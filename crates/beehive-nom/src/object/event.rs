//! Defines the events about nodes, ports and flows reported by drivers.

use crate::object::{Cause, FlowKey, FlowMatch, NodeId, Owner, Port, PortNo};
use beehive::{Address, Message};
use serde::{Deserialize, Serialize};

/// A switch has connected and completed the handshake. Its driver accepts
/// [`InstallFlow`](crate::object::InstallFlow), [`WithdrawFlows`](crate::object::WithdrawFlows)
/// and [`SendPacket`](crate::object::SendPacket).
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct NodeJoined {
    /// The switch.
    pub node: NodeId,
    /// The address of the switch's driver.
    pub driver: Address,
    /// The ports, ordered by number.
    pub ports: Vec<Port>,
    /// Whether the switch can remove the flows of one owner without removing the flows of others.
    pub knows_owners: bool,
    /// Whether the switch drops packets that no flow matches, unless a flow sends them to the controller.
    pub drops_misses: bool,
}

/// A driver has lost the connection to its switch.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeLeft {
    /// The switch.
    pub node: NodeId,
    /// The driver that has lost the connection. The switch may already be connected to another driver.
    pub driver: Address,
}

/// A second switch claimed the id of a connected node and was refused.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct DuplicateNode {
    /// The node.
    pub node: NodeId,
    /// The network address of the refused switch.
    pub refused: String,
    /// The network address of the switch that stays connected.
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

/// A property of a port has changed, other than whether the port is up.
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

/// A flow was removed. Switches report this only for intended flows.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct FlowRemoved {
    /// The switch.
    pub node: NodeId,
    /// The flow's owner.
    pub owner: Owner,
    /// The flow's priority.
    pub priority: u16,
    /// The match of the flow, as far as [`FlowMatch`] can express it.
    pub matching: FlowMatch,
    /// The reason.
    pub reason: FlowRemovedReason,
    /// Number of packets that the flow matched.
    pub packets: u64,
    /// Number of bytes that the flow matched.
    pub bytes: u64,
}

/// The switch refused a flow.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct FlowFailed {
    /// The switch.
    pub node: NodeId,
    /// The flow's owner.
    pub owner: Owner,
    /// The type of the message that caused the flow.
    pub cause: Cause,
    /// The flow, or `None` if it is no longer known.
    pub flow: Option<FlowKey>,
    /// The error in the terms of the switch's protocol, such as `flow_mod_failed: TABLE_FULL`.
    pub why: String,
}
