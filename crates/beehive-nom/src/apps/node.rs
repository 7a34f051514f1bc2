//! Node controller: which driver speaks for a switch, and which flows it should have. A cell is one switch.
//!
//! Apps say what they want of a node; only here is known who passes it on. Intended flows (those without a timeout) are
//! kept and given to the switch again when it comes back; soft ones are the switch's alone.

use crate::limits;
use crate::object::{
    AddFlow, DelFlows, Flow, FlowFailed, FlowMatch, FlowRemoved, FlowRemovedReason, FlowScope, InstallFlow,
    NodeId, NodeJoined, NodeLeft, SendPacket, WithdrawFlows,
};
use beehive::{Address, App, Ctx, Dict, Error, Table, handlers};
use serde::{Deserialize, Serialize};

/// Knows the driver of every switch, and the flows that it should have.
#[derive(App)]
#[app(name = "node-controller", replication = 3)]
pub struct NodeController {
    nodes: Dict<NodeId, Node>,
    flows: Table<NodeId, (u16, FlowMatch), Flow>,
}

/// A switch that is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Node {
    driver: Address,
    knows_owners: bool,
}

#[handlers]
impl NodeController {
    /// The switch starts with what it should have, whatever is left in it of an earlier life of ours.
    #[rcv(sharded)]
    fn node_joined(&mut self, msg: &NodeJoined, ctx: &mut Ctx) {
        self.nodes.put(msg.node, Node { driver: msg.driver, knows_owners: msg.knows_owners });
        ctx.send(msg.driver, WithdrawFlows { owner: None, scope: FlowScope::All });
        for flow in self.flows.at(msg.node).values() {
            ctx.send(msg.driver, InstallFlow(flow.clone()));
        }
    }

    #[rcv(sharded)]
    fn node_left(&mut self, msg: &NodeLeft) {
        // a newer driver may have it already
        if self.nodes.get(&msg.node).is_some_and(|node| node.driver == msg.driver) {
            self.nodes.remove(&msg.node);
        }
    }

    #[rcv(sharded)]
    fn add_flow(&mut self, msg: &AddFlow, ctx: &mut Ctx) -> Result<(), Error> {
        if !msg.flow.is_soft() {
            let flows = self.flows.at(msg.node);
            if flows.len() >= limits::INTENDED_FLOWS_PER_NODE_MAX {
                return Err(Error::new(format!(
                    "node {} has as many intended flows as are kept for one",
                    msg.node
                )));
            }
            flows.insert((msg.flow.priority, msg.flow.matching), msg.flow.clone());
        }
        if let Some(node) = self.nodes.get(&msg.node) {
            ctx.send(node.driver, InstallFlow(msg.flow.clone()));
        }
        Ok(())
    }

    #[rcv(sharded)]
    fn del_flows(&mut self, msg: &DelFlows, ctx: &mut Ctx) {
        let flows = self.flows.at(msg.node);
        flows.retain(|_, flow| flow.owner != msg.owner || !msg.scope.contains(flow));
        let Some(node) = self.nodes.get(&msg.node) else { return };
        ctx.send(node.driver, WithdrawFlows { owner: Some(msg.owner), scope: msg.scope });
        if !node.knows_owners {
            // the switch has taken away what others want, too
            for flow in flows.values().filter(|flow| msg.scope.contains(flow)) {
                ctx.send(node.driver, InstallFlow(flow.clone()));
            }
        }
    }

    #[rcv(sharded)]
    fn send_packet(&mut self, msg: &SendPacket, ctx: &mut Ctx) {
        let SendPacket(packet) = msg;
        if let Some(node) = self.nodes.get(&packet.node) {
            ctx.send(node.driver, msg.clone());
        }
    }

    /// An intended flow that went without our doing is put back.
    #[rcv(sharded)]
    fn flow_removed(&mut self, msg: &FlowRemoved, ctx: &mut Ctx) {
        if msg.reason != FlowRemovedReason::Withdrawn {
            return; // only soft flows go by themselves
        }
        let Some(flow) = self.flows.at(msg.node).get(&(msg.priority, msg.matching)) else { return };
        if let Some(node) = self.nodes.get(&msg.node)
            && flow.owner == msg.owner
        {
            ctx.send(node.driver, InstallFlow(flow.clone()));
        }
    }

    #[rcv(stateless)]
    fn flow_failed(&mut self, msg: &FlowFailed) {
        tracing::warn!(node = %msg.node, owner = msg.owner.number(), why = msg.why, "a switch refuses a flow");
    }
}
