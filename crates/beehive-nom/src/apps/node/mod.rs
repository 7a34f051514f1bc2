//! Node controller: keeps the driver and the intended flows of each switch. A cell is one switch.
//!
//! Apps send their requests for a node to this app, because only this app knows the driver. It stores intended flows
//! (flows without a timeout), installs them, waits for confirmation, and reinstalls them when needed. Soft flows (flows
//! with a timeout) are only passed on; the switch and their app keep track of them.
//!
//! A switch keeps its flows while the controller is away. Therefore this app reads a switch's flows when the switch
//! joins, and every minute afterwards. It changes only flows that are not as intended ([`Verdict`]). It withdraws
//!
//! - flows without a timeout that no app has requested since the switch joined or the controller started, because
//!   they would stay forever, and
//! - soft flows over a port that is down, if their app has announced with [`AdoptFlows`] that it checks its flows.
//!
//! All other soft flows stay until they expire or their app withdraws them, even if the switch reconnects or the
//! controller restarts: an app that has not sent [`AdoptFlows`] relies on the timeouts of its flows.

mod verdict;
mod withdrawals;

use crate::limits;
use crate::object::{
    Action, Actions, AddFlow, AdoptFlows, Cause, DelFlows, DescribeNode, Flow, FlowFailed, FlowFailure,
    FlowKey, FlowMatch, FlowRemoved, FlowRemovedReason, FlowScope, FlowState, FlowsConfirmed, FlowsFound,
    FlowsRead, FoundFlow, InstallFlow, IntendedFlow, MasterChanged, NodeDescription, NodeId, NodeJoined,
    NodeLeft, Owner, PortDown, PortNo, PortUp, ReadFlows, Reading, SendPacket, VerifyFlows, WithdrawFlows,
};
use crate::parts::OwnsFlows;
use beehive::{Address, App, Ctx, Dict, Error, Message, Rows, Table, handlers};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use verdict::Verdict;
use withdrawals::{Reason, Withdrawals};

/// Keeps the driver and the intended flows of every switch.
#[derive(App, Debug)]
#[app(name = "node-controller", replication = 3)]
pub struct NodeController {
    nodes: Dict<NodeId, Node>,
    /// The intended flows.
    flows: Table<NodeId, FlowKey, Intended>,
    /// The ports that are up.
    ports: Table<NodeId, PortNo, ()>,
    /// The owners that adopt their soft flows.
    adopters: Table<NodeId, Owner, ()>,
    /// Flows found by the read in progress to be as intended.
    #[volatile]
    seen: Table<NodeId, FlowKey, ()>,
    /// Soft flows sent after the read in progress began; its results for them are outdated. If there are
    /// [`limits::RENEWED_FLOWS_PER_NODE_MAX`] of them, the results are treated as outdated for every unintended flow.
    #[volatile]
    renewed: Table<NodeId, FlowKey, ()>,
    /// Number of intended flows sent since the latest confirmation, at most [`limits::FLOWS_PER_BATCH_MAX`]. A
    /// fail-over resets it to 0.
    #[volatile]
    unconfirmed: Dict<NodeId, u32>,
    /// The most recently refused flows.
    #[volatile]
    failures: Table<NodeId, u64, FlowFailure>,
}

/// A connected switch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Node {
    driver: Address,
    knows_owners: bool,
    drops_misses: bool,
    reading: Reading,
    /// Number of parts of that read that have arrived so far.
    parts: u64,
    /// Number of parts at the latest periodic sweep.
    parts_at_sweep: u64,
    /// Whether flows can be installed: the first read is complete, and the apps have had time to make their claims.
    /// Apps learn of a switch at the same time as this app, and may take longer to request and adopt flows than the
    /// switch takes to report its flows.
    claims_are_in: bool,
    /// Whether the switch has flows not yet requested or adopted by any app. If so, the flows are read again as soon as
    /// the apps have had time to claim them.
    has_unclaimed: bool,
    /// Whether flows are waiting until other flows are confirmed.
    has_backlog: bool,
}

/// An intended flow.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Intended {
    flow: Flow,
    state: FlowState,
    /// Number of the read that was current when the flow was last sent. That read's results may not include this flow.
    sent: u64,
    /// Number of consecutive refusals.
    refusals: u32,
}

/// A message that the node app sends to itself to check whether a switch that has joined is reporting its flows.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadingOverdue {
    /// The switch.
    pub node: NodeId,
    /// The number of the read.
    pub reading: u64,
    /// Number of parts that had arrived by the time this message was sent.
    pub parts: u64,
}

/// Identical refusals within this time are logged only once.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

#[handlers]
impl NodeController {
    /// Records the switch and reads its flows. Nothing is installed or withdrawn before these flows are known.
    #[rcv(sharded)]
    fn node_joined(&mut self, msg: &NodeJoined, ctx: &mut Ctx) {
        let number = self.nodes.get(&msg.node).map_or(0, |node| node.reading.number);
        let mut node = Node {
            driver: msg.driver,
            knows_owners: msg.knows_owners,
            drops_misses: msg.drops_misses,
            reading: Reading { number, ..Reading::default() },
            parts: 0,
            parts_at_sweep: 0,
            claims_are_in: false,
            has_unclaimed: false,
            has_backlog: false,
        };

        let ports = self.ports.at(msg.node);
        ports.clear();
        for port in msg.ports.iter().filter(|port| port.up) {
            ports.insert(port.number, ());
        }

        self.seen.at(msg.node).clear();
        self.renewed.at(msg.node).clear();
        self.unconfirmed.remove(&msg.node);
        // adds the miss flow before the switch reports its flows, which may include it
        node.ensure_miss_flow(self.flows.at(msg.node));
        let reading = node.read(ctx);

        self.nodes.put(msg.node, node);
        ctx.after(limits::READING_TIMEOUT, ReadingOverdue { node: msg.node, reading, parts: 0 });
    }

    #[rcv(sharded)]
    fn node_left(&mut self, msg: &NodeLeft) {
        // a newer driver may already be connected to the switch
        if self.nodes.get(&msg.node).is_none_or(|node| node.driver != msg.driver) {
            return;
        }

        self.nodes.remove(&msg.node);
        self.ports.at(msg.node).clear();
        self.adopters.at(msg.node).clear();
        self.seen.at(msg.node).clear();
        self.renewed.at(msg.node).clear();
        self.unconfirmed.remove(&msg.node);

        let flows = self.flows.at(msg.node);
        // Apps request the flows caused by `NodeJoined` again when the switch rejoins. Forgets these flows, so that
        // nothing remains stored for switches that connect once under random ids.
        flows.retain(|_, intended| intended.flow.cause != Cause::of::<NodeJoined>());
        if flows.is_empty() {
            self.failures.at(msg.node).clear()
        }

        let sent: Vec<_> =
            flows.iter().filter(|(_, f)| f.state != FlowState::Waiting).map(|(k, _)| k.clone()).collect();
        for key in sent {
            set_state(flows, &key, FlowState::Waiting)
        }
    }

    #[rcv(sharded)]
    fn port_up(&mut self, msg: &PortUp) {
        self.ports.at(msg.node).insert(msg.port.number, ());
    }

    #[rcv(sharded)]
    fn port_down(&mut self, msg: &PortDown) {
        self.ports.at(msg.node).remove(&msg.port);
    }

    #[rcv(sharded)]
    fn adopt_flows(&mut self, msg: &AdoptFlows, ctx: &mut Ctx) -> Result<(), Error> {
        let adopters = self.adopters.at(msg.node);
        if adopters.len() >= limits::ADOPTERS_PER_NODE_MAX && !adopters.contains(&msg.owner) {
            return Err(Error::new(format!(
                "too many apps adopt soft flows at node {} (at most {})",
                msg.node,
                limits::ADOPTERS_PER_NODE_MAX
            )));
        }

        adopters.insert(msg.owner, ());
        if !self.nodes.contains(&msg.node) {
            // the switch may be about to join; if it has left instead, this message removes the entry
            ctx.after(limits::READING_TIMEOUT, ReadingOverdue { node: msg.node, reading: 0, parts: 0 })
        }

        Ok(())
    }

    /// Sends a soft flow to the switch, or stores an intended one and installs it.
    #[rcv(sharded)]
    fn add_flow(&mut self, msg: &AddFlow, ctx: &mut Ctx) -> Result<(), Error> {
        if msg.flow.is_soft() {
            let (flows, key) = (self.flows.at(msg.node), msg.flow.key());
            // the app is replacing its own intended flow, which must not be reinstalled over the soft flow
            if flows.get(&key).is_some_and(|intended| intended.flow.owner == msg.flow.owner) {
                flows.remove(&key);
            }
            if let Some(node) = self.nodes.get(&msg.node) {
                let renewed = self.renewed.at(msg.node);
                if !node.reading.complete && renewed.len() < limits::RENEWED_FLOWS_PER_NODE_MAX {
                    renewed.insert(key, ());
                }
                ctx.send(node.driver, InstallFlow(msg.flow.clone()));
            }
            return Ok(());
        }

        let flows = self.flows.at(msg.node);
        let key = msg.flow.key();
        if flows.len() >= limits::INTENDED_FLOWS_PER_NODE_MAX && !flows.contains(&key) {
            return Err(Error::new(format!(
                "node {} has reached the limit of {} intended flows",
                msg.node,
                limits::INTENDED_FLOWS_PER_NODE_MAX
            )));
        }

        let (flow, state) = (msg.flow.clone(), FlowState::Waiting);
        flows.insert(key.clone(), Intended { flow, state, sent: 0, refusals: 0 });
        self.install_one(msg.node, &key, ctx);
        Ok(())
    }

    #[rcv(sharded)]
    fn del_flows(&mut self, msg: &DelFlows, ctx: &mut Ctx) {
        let flows = self.flows.at(msg.node);
        flows.retain(|_, intended| intended.flow.owner != msg.owner || !msg.scope.contains(&intended.flow));
        let Some(node) = self.nodes.get(&msg.node) else { return };

        ctx.send(node.driver, WithdrawFlows { owner: Some(msg.owner), scope: msg.scope.clone() });
        if !node.knows_owners {
            // such a switch has also removed other owners' flows in this scope
            let lost = flows.iter().filter(|(_, intended)| msg.scope.contains(&intended.flow));
            for key in lost.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
                mark_missing(flows, &key, node.reading.number)
            }
            self.install(msg.node, ctx)
        }
    }

    #[rcv(sharded)]
    fn send_packet(&mut self, msg: &SendPacket, ctx: &mut Ctx) {
        let SendPacket(packet) = msg;
        if let Some(node) = self.nodes.get(&packet.node) {
            ctx.send(node.driver, msg.clone());
        }
    }

    /// Reinstalls an intended flow if it was removed without a request from its owner.
    #[rcv(sharded)]
    fn flow_removed(&mut self, msg: &FlowRemoved, ctx: &mut Ctx) {
        if msg.reason != FlowRemovedReason::Withdrawn {
            return; // the flow timed out, so it was a soft flow
        }
        let Some(node) = self.nodes.get(&msg.node) else { return };

        let key = (msg.priority, msg.matching.clone());
        let flows = self.flows.at(msg.node);
        if flows.get(&key).is_some_and(|intended| intended.flow.owner == msg.owner) {
            mark_missing(flows, &key, node.reading.number);
            self.install_one(msg.node, &key, ctx)
        }
    }

    #[rcv(sharded)]
    fn flows_confirmed(&mut self, msg: &FlowsConfirmed, ctx: &mut Ctx) {
        let Some(node) = self.nodes.get(&msg.node) else { return };

        let flows = self.flows.at(msg.node);
        for key in &msg.flows {
            // a flow in state `Waiting` was replaced after the confirmed flow was sent
            if flows.get(key).is_some_and(|intended| intended.state == FlowState::Sent) {
                set_state(flows, key, FlowState::Confirmed)
            }
        }

        self.unconfirmed.remove(&msg.node);
        if node.has_backlog {
            self.install(msg.node, ctx)
        }
    }

    #[rcv(sharded)]
    fn flow_failed(&mut self, msg: &FlowFailed, ctx: &mut Ctx) {
        let failures = self.failures.at(msg.node);
        let before = failures.last().map(|(number, failure)| (*number, failure.at, failure.why == msg.why));
        let logged = before.is_some_and(|(_, at, same)| same && ctx.now().since(at) < LOG_INTERVAL);

        if !logged {
            tracing::warn!(node = %msg.node, owner = msg.owner.number(), why = msg.why, "switch refused a flow");
        }

        if failures.len() >= limits::FAILURES_PER_NODE_MAX
            && let Some((oldest, _)) = failures.first()
        {
            let oldest = *oldest;
            failures.remove(&oldest);
        }

        let FlowFailed { owner, cause, flow, why, .. } = msg;
        let failure =
            FlowFailure { at: ctx.now(), owner: *owner, cause: *cause, flow: flow.clone(), why: why.clone() };
        failures.insert(before.map_or(1, |(number, ..)| number + 1), failure);

        let Some(key) = flow else { return };

        let flows = self.flows.at(msg.node);
        // a flow in state `Waiting` was replaced after the refused flow was sent
        let refused = |i: &Intended| i.flow.owner == *owner && i.state != FlowState::Waiting;
        if flows.get(key).is_some_and(refused)
            && let Some(intended) = flows.get_mut(key)
        {
            intended.refusals = intended.refusals.saturating_add(1);
            intended.state = FlowState::Refused { why: why.clone(), times: intended.refusals };
        }
    }

    /// Compares a switch's flows with the intended ones.
    #[rcv(sharded)]
    fn flows_read(&mut self, msg: &FlowsRead, ctx: &mut Ctx) {
        let Some(node) = self.nodes.get_mut(&msg.node) else { return };
        if node.reading.number != msg.reading || node.reading.complete {
            return; // this part belongs to an earlier read
        }

        node.parts += 1;
        let (flows, seen) = (self.flows.at(msg.node), self.seen.at(msg.node));
        let (ports, adopters) = (self.ports.at(msg.node), self.adopters.at(msg.node));
        let renewed = self.renewed.at(msg.node);
        let all_renewed = renewed.len() >= limits::RENEWED_FLOWS_PER_NODE_MAX;
        let mut adopted: BTreeMap<Owner, Vec<FoundFlow>> = BTreeMap::new();
        let mut withdrawals = Withdrawals::default();

        for found in &msg.flows {
            let key = found.key();
            let intended = flows.get(&key).filter(|_| found.table == 0 && found.more.is_none());
            let intended = intended.map(|i| (&i.flow, i.sent >= msg.reading));

            // If an app replaces a flow with a soft flow after the switch has reported the old one, but before the
            // report arrives, a withdrawal would remove the soft flow, because it cannot tell the two flows apart.
            if intended.is_none() && found.ours().is_some() && (all_renewed || renewed.contains(&key)) {
                continue;
            }

            match Verdict::on(found, intended, |owner| adopters.contains(owner), |port| ports.contains(port))
            {
                Verdict::Kept => {
                    node.reading.kept += 1;
                    set_state(flows, &key, FlowState::Confirmed);
                    seen.insert(key, ());
                }
                Verdict::Different => {
                    if let Some(owner) = found.ours().filter(|_| found.is_soft()) {
                        withdrawals.add(Reason::Replaced, owner, found)
                    }
                }
                Verdict::Superseded => {}
                Verdict::Adopted(owner) => {
                    node.reading.soft += 1;
                    adopted.entry(owner).or_default().push(found.clone())
                }
                Verdict::NotAdopted => {
                    node.reading.soft += 1;
                    node.has_unclaimed |= !node.claims_are_in
                }
                Verdict::Unclaimed(_) if !node.claims_are_in => node.has_unclaimed = true,
                verdict @ (Verdict::Stray(owner) | Verdict::Unclaimed(owner)) => {
                    let is_stray = matches!(verdict, Verdict::Stray(_));
                    withdrawals.add(if is_stray { Reason::Stray } else { Reason::Unclaimed }, owner, found);
                    node.reading.withdrawn += 1;
                    let scope = FlowScope::Exactly(found.priority, found.matching.clone());
                    ctx.send(node.driver, WithdrawFlows { owner: Some(owner), scope });
                }

                Verdict::Foreign => node.reading.foreign += 1,
            }
        }

        withdrawals.log(msg.node);
        for (owner, flows) in adopted {
            ctx.emit(FlowsFound { node: msg.node, owner, flows })
        }

        if !msg.last {
            return;
        }

        node.ensure_miss_flow(flows);
        let missing =
            |(key, intended): &(&FlowKey, &Intended)| intended.sent < msg.reading && !seen.contains(*key);
        let missing: Vec<FlowKey> = flows.iter().filter(missing).map(|(key, _)| key.clone()).collect();
        node.reading.installed = missing.len() as u64;
        node.reading.complete = true;
        node.claims_are_in = true;

        if std::mem::take(&mut node.has_unclaimed) {
            ctx.after(limits::ADOPTION_TIMEOUT, VerifyFlows { node: msg.node })
        }

        seen.clear();
        renewed.clear();
        for key in missing {
            set_state(flows, &key, FlowState::Waiting)
        }

        let Reading { kept, soft, installed, withdrawn, foreign, .. } = node.reading;
        self.unconfirmed.remove(&msg.node);
        self.install(msg.node, ctx);

        if installed + withdrawn > 0 {
            tracing::info!(node = %msg.node, kept, soft, installed, withdrawn, foreign, "corrected flows");
        }
    }

    /// Withdraws all of Beehive's flows from a switch that does not report its flows, and installs the intended ones.
    #[rcv(sharded)]
    fn reading_overdue(&mut self, msg: &ReadingOverdue, ctx: &mut Ctx) {
        let Some(node) = self.nodes.get_mut(&msg.node) else { return self.adopters.at(msg.node).clear() };
        if node.reading.number != msg.reading || node.reading.complete {
            return;
        }
        if node.parts > msg.parts {
            // the switch is still reporting its flows
            let parts = node.parts;
            return ctx.after(limits::READING_TIMEOUT, ReadingOverdue { parts, ..*msg });
        }

        tracing::warn!(node = %msg.node, "switch does not report its flows; withdrawing all flows and reinstalling the intended ones");
        (node.reading.complete, node.claims_are_in) = (true, true);
        self.renewed.at(msg.node).clear();
        ctx.send(node.driver, WithdrawFlows { owner: None, scope: FlowScope::All });
        let flows = self.flows.at(msg.node);
        node.ensure_miss_flow(flows);

        let all: Vec<FlowKey> = flows.keys().cloned().collect();
        for key in all {
            set_state(flows, &key, FlowState::Waiting)
        }

        self.install(msg.node, ctx)
    }

    /// Rereads each switch's flows. A sweep is spread over half of its period, so the time between two reads of a
    /// switch is at most 60 s.
    #[every("40s", each = nodes)]
    fn read_again(&mut self, node: &NodeId, ctx: &mut Ctx) {
        let Some(controlled) = self.nodes.get_mut(node) else { return };
        if !controlled.must_finish_reading() {
            self.seen.at(*node).clear();
            self.renewed.at(*node).clear();
            controlled.read(ctx);
        }
    }

    #[rcv(sharded)]
    fn verify_flows(&mut self, msg: &VerifyFlows, ctx: &mut Ctx) -> Result<(), Error> {
        let Some(node) = self.nodes.get_mut(&msg.node) else {
            return Err(Error::new(format!("node {} is not connected", msg.node)));
        };
        if !node.claims_are_in {
            // the first read must complete first, because setting up the switch depends on it
            ctx.after(limits::ADOPTION_TIMEOUT, *msg);
            return Ok(());
        }

        self.seen.at(msg.node).clear();
        self.renewed.at(msg.node).clear();
        node.read(ctx);
        Ok(())
    }

    /// The flows stay as they are. Commands to the former driver may be lost, so the flows are read and compared.
    #[rcv(sharded)]
    fn master_changed(&mut self, msg: &MasterChanged, ctx: &mut Ctx) {
        let Some(node) = self.nodes.get_mut(&msg.node) else { return };
        (node.driver, node.knows_owners, node.drops_misses) =
            (msg.driver, msg.knows_owners, msg.drops_misses);
        self.seen.at(msg.node).clear();
        self.renewed.at(msg.node).clear();
        self.unconfirmed.remove(&msg.node);
        let reading = node.read(ctx);
        ctx.after(limits::READING_TIMEOUT, ReadingOverdue { node: msg.node, reading, parts: 0 });
    }

    #[rcv(sharded)]
    fn describe_node(&mut self, msg: &DescribeNode) -> Option<NodeDescription> {
        let node = self.nodes.get(&msg.node);
        let flows = self.flows.at(msg.node);
        if node.is_none() && flows.is_empty() {
            return None;
        }

        let intended = |i: &Intended| IntendedFlow { flow: i.flow.clone(), state: i.state.clone() };
        Some(NodeDescription {
            driver: node.map(|node| node.driver),
            reading: node.map(|node| node.reading).unwrap_or_default(),
            flows: flows.values().map(intended).collect(),
            failures: self.failures.at(msg.node).values().cloned().collect(),
        })
    }

    /// Sends a flow to a connected switch. If too many flows are unconfirmed, the flow waits.
    fn install_one(&mut self, node: NodeId, key: &FlowKey, ctx: &mut Ctx) {
        let Some(Node { driver, reading, .. }) = self.nodes.get(&node) else { return };
        let unconfirmed = self.unconfirmed.entry(node).or_insert(0);
        if *unconfirmed < limits::FLOWS_PER_BATCH_MAX {
            *unconfirmed += 1;
            send_flow(*driver, reading.number, self.flows.at(node), key, ctx)
        } else if let Some(node) = self.nodes.get_mut(&node).filter(|node| !node.has_backlog) {
            node.has_backlog = true
        }
    }

    /// Sends as many waiting flows to a switch as the limit on unconfirmed flows allows, but none before the first
    /// read is complete.
    fn install(&mut self, node: NodeId, ctx: &mut Ctx) {
        if self.nodes.get(&node).is_none_or(|node| !node.claims_are_in) {
            return;
        }

        let flows = self.flows.at(node);
        let unconfirmed = self.unconfirmed.entry(node).or_insert(0);
        let room = limits::FLOWS_PER_BATCH_MAX.saturating_sub(*unconfirmed);
        let waiting = flows.iter().filter(|(_, intended)| intended.state == FlowState::Waiting);
        let mut some: Vec<FlowKey> = waiting.map(|(key, _)| key.clone()).take(room as usize + 1).collect();
        let has_backlog = some.len() > room as usize;

        some.truncate(room as usize);
        *unconfirmed += some.len() as u32;
        let Some(node) = self.nodes.get_mut(&node) else { return };

        node.has_backlog = has_backlog;
        for key in &some {
            send_flow(node.driver, node.reading.number, flows, key, ctx)
        }
    }
}

/// Sends an intended flow to a switch and records the number of the current read.
fn send_flow(
    driver: Address,
    reading: u64,
    flows: &mut Rows<FlowKey, Intended>,
    key: &FlowKey,
    ctx: &mut Ctx,
) {
    if let Some(intended) = flows.get_mut(key) {
        (intended.state, intended.sent) = (FlowState::Sent, reading);
        ctx.send(driver, InstallFlow(intended.flow.clone()));
    }
}

impl Node {
    /// Requests the flows of the switch. Returns the number of the read.
    fn read(&mut self, ctx: &mut Ctx) -> u64 {
        // chooses a number not used on an earlier connection or before a restart
        let number = ctx.now().as_nanoseconds().max(self.reading.number + 1);
        self.reading = Reading { number, ..Reading::default() };
        (self.parts, self.parts_at_sweep) = (0, 0);
        ctx.send(self.driver, ReadFlows { reading: number, asker: None });
        number
    }

    /// Returns whether the read in progress must not be restarted, which is so for the first read, which ends in any
    /// case, and for a read that is making progress.
    fn must_finish_reading(&mut self) -> bool {
        let goes_on = self.parts > std::mem::replace(&mut self.parts_at_sweep, self.parts);
        !self.claims_are_in || goes_on && !self.reading.complete
    }

    /// Adds the miss flow to the intended flows, unless an app has a flow with the same key.
    fn ensure_miss_flow(&self, flows: &mut Rows<FlowKey, Intended>) {
        if !self.drops_misses {
            // the switch may have reconnected with another protocol version
            return Node::remove_miss_flow(flows);
        }

        let key = MISS_FLOW.key();
        if !flows.contains(&key) {
            let intended = Intended { flow: MISS_FLOW, state: FlowState::Waiting, sent: 0, refusals: 0 };
            flows.insert(key, intended);
        }
    }

    /// Removes the miss flow, unless an app has a flow with the same key.
    fn remove_miss_flow(flows: &mut Rows<FlowKey, Intended>) {
        let key = MISS_FLOW.key();
        if flows.get(&key).is_some_and(|intended| intended.flow.owner == NodeController::OWNER) {
            flows.remove(&key);
        }
    }
}

/// The table-miss flow, which sends packets to the controller if no other flow matches them.
const MISS_FLOW: Flow = Flow {
    owner: NodeController::OWNER,
    cause: Cause::of::<NodeJoined>(),
    priority: 0,
    matching: FlowMatch::ANY,
    actions: Actions::One(Action::Output(PortNo::CONTROLLER)),
    idle_s: 0,
    hard_s: 0,
};

/// Marks a flow as missing at the switch, and the result of the read in progress as outdated for that flow, because the
/// read may have found it before it was removed.
fn mark_missing(flows: &mut Rows<FlowKey, Intended>, key: &FlowKey, reading: u64) {
    if let Some(intended) = flows.get_mut(key) {
        (intended.state, intended.sent) = (FlowState::Waiting, reading)
    }
}

/// Sets the state of a flow. Writes nothing if the state is unchanged.
fn set_state(flows: &mut Rows<FlowKey, Intended>, key: &FlowKey, state: FlowState) {
    if flows.get(key).is_none_or(|intended| intended.state == state) {
        return;
    }

    if let Some(intended) = flows.get_mut(key) {
        if state == FlowState::Confirmed {
            intended.refusals = 0
        }
        intended.state = state
    }
}
