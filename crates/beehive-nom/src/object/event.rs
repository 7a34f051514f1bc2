//! What happens to nodes, ports and flows, as drivers tell it.

use crate::object::{Cause, FlowKey, FlowMatch, NodeId, Owner, Port, PortNo};
use beehive::{Address, Message};
use serde::{Deserialize, Serialize};

/// A switch is there and set up. Its driver takes [`InstallFlow`](crate::object::InstallFlow),
/// [`WithdrawFlows`](crate::object::WithdrawFlows) and [`SendPacket`](crate::object::SendPacket).
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct NodeJoined {
    /// The switch.
    pub node: NodeId,
    /// Where its driver is reached.
    pub driver: Address,
    /// Its ports, by number.
    pub ports: Vec<Port>,
    /// Whether it can withdraw the flows of one owner and leave the others'.
    pub knows_owners: bool,
    /// Whether it drops what no flow takes, unless a flow brings that up.
    pub drops_misses: bool,
}

/// A driver has lost its switch.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeLeft {
    /// The switch.
    pub node: NodeId,
    /// The driver that it is lost to; another may have it already.
    pub driver: Address,
}

/// A second switch said to be a node that is there and well, and was refused.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct DuplicateNode {
    /// The node.
    pub node: NodeId,
    /// Where the refused one called from.
    pub refused: String,
    /// Where the one that stays is.
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

/// A port cannot be used any more: its link is down, or it is gone.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortDown {
    /// The switch.
    pub node: NodeId,
    /// The port.
    pub port: PortNo,
    /// Whether it is gone altogether.
    pub removed: bool,
}

/// Something about a port changed, and it is up or down as before.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct PortChanged {
    /// The switch.
    pub node: NodeId,
    /// The port after the change.
    pub port: Port,
}

/// Why a flow went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FlowRemovedReason {
    /// No packet for its idle timeout.
    Idle,
    /// It reached its age.
    Hard,
    /// It was withdrawn.
    Withdrawn,
    /// Another reason.
    Other,
}

/// A flow is gone. Switches tell it of intended flows only.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct FlowRemoved {
    /// The switch.
    pub node: NodeId,
    /// Whose it was.
    pub owner: Owner,
    /// Its priority.
    pub priority: u16,
    /// Its match, as far as it can be said here.
    pub matching: FlowMatch,
    /// Why it went.
    pub reason: FlowRemovedReason,
    /// Packets that it took.
    pub packets: u64,
    /// Bytes that it took.
    pub bytes: u64,
}

/// The switch did not take a flow.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct FlowFailed {
    /// The switch.
    pub node: NodeId,
    /// Whose it was.
    pub owner: Owner,
    /// What it was made for.
    pub cause: Cause,
    /// Which it was; none if that is not known any more.
    pub flow: Option<FlowKey>,
    /// Why, in the words of the switch's protocol: `flow_mod_failed: TABLE_FULL`.
    pub why: String,
}
