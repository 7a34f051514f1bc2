//! Firewall: which conversations may take place. It stands in front of the app that forwards.
//!
//! A flow of the app behind it matches Ethernet only, and would let everything between two hosts pass once one packet
//! has. So every switch gets a flow above those that brings all packets up ([`GUARD`]), and one above that for each
//! direction of a conversation that is open ([`OPEN`]): it does with the packets of this conversation what the app behind
//! wants done with packets between these stations. What the app behind takes back, is taken back here too.
//!
//! Whatever is neither ARP, nor neighbour discovery, nor IP is denied, and so is a packet that is not understood. A
//! switch whose rules are not known yet forwards nothing.

mod policy;
mod rule_text;

pub use policy::{Policy, Ports, Protocol, Rule, Verdict};

use crate::apps::range::within;
use crate::limits;
use crate::object::{
    Action, Actions, AddFlow, AdoptFlows, Conversation, DelFlows, Ethernet, FlowMatch, FlowScope, FlowsFound,
    NodeId, NodeJoined, NodeLeft, Owner, PacketIn, PacketOut, PortNo, Traffic,
};
use beehive::{App, Config, Ctx, Dict, Error, Key, Message, Rows, Table, Time, handlers};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The priority of the flow that brings every packet up: above those of apps that forward.
pub const GUARD: u16 = 1_000;
/// The priority of the flows of an open conversation.
pub const OPEN: u16 = 1_100;
/// Between a packet and the flow that it leads to.
const PATIENCE: Duration = Duration::from_secs(2);

/// Decides which conversations take place.
#[derive(App)]
#[app(name = "firewall", replication = 3)]
pub struct Firewall {
    /// The rules, once they were changed.
    policy: Dict<Rulebook, Policy>,
    nodes: Table<Rulebook, NodeId, ()>,
    /// The rules as a switch goes by them.
    gates: Dict<NodeId, Gate>,
    /// What is open, in the direction of its first packet.
    open: Table<NodeId, Conversation, Open>,
    crowds: Table<NodeId, PortNo, u32>,
    /// Directions that are open and wait for the app behind to say where they lead.
    #[volatile]
    waiting: Table<NodeId, (FlowMatch, Conversation), ()>,
    config: Config<FirewallSettings>,
}

/// There is one set of rules for all switches.
#[derive(Key, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rulebook;

/// Settings of the firewall: the table `[apps.firewall]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FirewallSettings {
    /// Rules, in the order in which they are asked: tables `[[apps.firewall.rules]]` with `action`, "allow" or "deny", and
    /// perhaps `from` and `to` ("10.0.0.0/8"), `protocol` ("tcp", "udp", "icmp", a number), `from_port` and `to_port` (80,
    /// "80-90"). Default none.
    #[serde(deserialize_with = "rule_text::read")]
    pub rules: Vec<Rule>,
    /// What becomes of what no rule fits. Default "deny".
    pub default: Verdict,
    /// Seconds without a packet after which a conversation is over. Default 60; 1 to 65 535.
    #[serde(deserialize_with = "within::<_, _, 1, 65_535>")]
    pub idle_s: u16,
    /// Conversations that hosts behind one port of a switch may have open. Default 4 096; 1 to 1 000 000.
    #[serde(deserialize_with = "within::<_, _, 1, 1_000_000>")]
    pub open_per_port_max: u32,
    /// Conversations that are open at one switch. Default 65 536; 1 to 1 000 000.
    #[serde(deserialize_with = "within::<_, _, 1, 1_000_000>")]
    pub open_per_node_max: u32,
}

impl Default for FirewallSettings {
    fn default() -> Self {
        let (rules, default) = (Vec::new(), Verdict::Deny);
        FirewallSettings { rules, default, idle_s: 60, open_per_port_max: 4096, open_per_node_max: 65_536 }
    }
}

impl FirewallSettings {
    fn idle(&self) -> Duration {
        Duration::from_secs(u64::from(self.idle_s))
    }
}

/// Puts other rules in force everywhere; conversations that they do not allow end.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct SetPolicy(pub Policy);

/// A switch wants to know the rules.
#[derive(Message, Clone, Copy, Debug)]
struct AskPolicy(NodeId);

/// The rules for a switch.
#[derive(Message, Clone, Debug)]
struct PolicyFor {
    node: NodeId,
    policy: Policy,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Gate {
    policy: Policy,
    /// See [`NodeJoined::knows_owners`]; who does not knows no flows for IPv6 either.
    knows_owners: bool,
}

/// A conversation that is open.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Open {
    until: Time,
    port: PortNo,
    /// The flow in the direction of its first packet.
    there: Option<FlowMatch>,
    /// The flow of its answers.
    back: Option<FlowMatch>,
}

impl Firewall {
    /// Whose flows the firewall's are.
    pub const OWNER: Owner = Owner::named("firewall");
}

#[handlers]
impl Firewall {
    #[rcv(centralized)]
    fn set_policy(&mut self, SetPolicy(policy): &SetPolicy, ctx: &mut Ctx) -> Result<(), Error> {
        if policy.rules.len() > limits::FIREWALL_RULES_MAX {
            return Err(Error::new("more rules than a firewall takes"));
        }
        self.policy.put(Rulebook, policy.clone());
        for node in self.nodes.at(Rulebook).keys() {
            ctx.emit(PolicyFor { node: *node, policy: policy.clone() });
        }
        Ok(())
    }

    #[rcv(centralized)]
    fn ask_policy(&mut self, AskPolicy(node): &AskPolicy, ctx: &mut Ctx) {
        self.nodes.at(Rulebook).insert(*node, ());
        let FirewallSettings { rules, default, .. } = &*self.config;
        let initial = || Policy { rules: rules.clone(), default: *default };
        let policy = self.policy.get(&Rulebook).cloned().unwrap_or_else(initial);
        ctx.emit(PolicyFor { node: *node, policy });
    }

    #[rcv(sharded)]
    fn node_joined(&mut self, msg: &NodeJoined, ctx: &mut Ctx) {
        let policy = Policy::default(); // denies everything
        let gate = self.gates.entry(msg.node).or_insert(Gate { policy, knows_owners: false });
        gate.knows_owners = msg.knows_owners;
        let up = Actions::One(Action::Output(PortNo::CONTROLLER));
        let guard = AddFlow::new(msg.node, Self::OWNER, FlowMatch::ANY, up).priority(GUARD);
        ctx.emit(guard.because::<NodeJoined>());
        ctx.emit(AdoptFlows { node: msg.node, owner: Self::OWNER });
        ctx.emit(AskPolicy(msg.node));
    }

    /// Its flows lead where the app behind wanted packets then, which may be wrong when it comes back.
    #[rcv(sharded)]
    fn node_left(&mut self, msg: &NodeLeft) {
        let all = self.open.at(msg.node);
        let led: Vec<_> =
            all.iter().filter(|(_, o)| o.there.is_some() || o.back.is_some()).map(|(c, _)| *c).collect();
        for spoken in led {
            all.entry(spoken).and_modify(|open| (open.there, open.back) = (None, None));
        }
    }

    /// Only what is known to be open has flows.
    #[rcv(sharded)]
    fn flows_found(&mut self, msg: &FlowsFound, ctx: &mut Ctx) {
        let all = self.open.at(msg.node);
        let known = |flow: &FlowMatch| {
            let spoken = flow.conversation.as_deref();
            let open = spoken.and_then(|c| all.get(c).or(all.get(&c.reversed())));
            open.is_some_and(|open| [&open.there, &open.back].contains(&&Some(flow.clone())))
        };
        for found in msg.flows.iter().filter(|found| msg.owner == Self::OWNER && !known(&found.matching)) {
            ctx.emit(DelFlows::exactly(Self::OWNER, msg.node, found.key()));
        }
    }

    /// Whoever would not be let in by the new rules is thrown out.
    #[rcv(sharded)]
    fn policy_for(&mut self, msg: &PolicyFor, ctx: &mut Ctx) {
        let Some(gate) = self.gates.get_mut(&msg.node) else { return };
        gate.policy = msg.policy.clone();
        for (conversation, open) in self.open.at(msg.node).take_if(|c, _| !msg.policy.allows(c)) {
            tracing::info!(node = %msg.node, %conversation, "a conversation ends: the rules have changed");
            self.close(msg.node, open, ctx);
        }
    }

    #[rcv(sharded)]
    fn packet_in(&mut self, msg: &PacketIn, ctx: &mut Ctx) -> Option<PacketOut> {
        (msg.is_learnable() && !self.passes(msg, ctx)).then(|| msg.discard())
    }

    fn passes(&mut self, msg: &PacketIn, ctx: &mut Ctx) -> bool {
        let Some(gate) = self.gates.get(&msg.node) else { return false };
        let open = self.open.at(msg.node);
        let spoken = match Traffic::read(&msg.data) {
            Traffic::Neighbours => return true,
            Traffic::Conversation(spoken) => spoken,
            Traffic::Failure(about) => return open.contains(&about) || open.contains(&about.reversed()),
            // no host makes anything of it without the first one, which says its ports
            Traffic::Fragment(part) => return may_be_part(open, part) || may_be_part(open, part.reversed()),
            Traffic::Other => return false,
        };
        let until = ctx.now() + 2 * self.config.idle() + PATIENCE;
        if let Some(open) = open.get_mut(&spoken) {
            open.until = until;
        } else if let Some(open) = open.get_mut(&spoken.reversed()) {
            open.until = until;
        } else {
            let crowd = self.crowds.at(msg.node).entry(msg.port).or_default();
            let room = *crowd < self.config.open_per_port_max
                && (open.len() as u64) < u64::from(self.config.open_per_node_max);
            if !room || !gate.policy.allows(&spoken) {
                return false;
            }
            *crowd += 1;
            open.insert(spoken, Open { until, port: msg.port, there: None, back: None });
        }
        let tells = |header: Ethernet| header.ethertype == spoken.ethertype();
        if spoken.has_ports()
            && (spoken.source.is_ipv4() || gate.knows_owners)
            && msg.ethernet().is_some_and(tells)
        {
            let waiting = self.waiting.at(msg.node);
            if waiting.len() >= limits::FIREWALL_WAITING_MAX {
                waiting.clear(); // their next packets wait again
            }
            waiting.insert((FlowMatch::like(msg), spoken), ());
        }
        true
    }

    /// The app behind says where packets between two stations go: so do those of what is open between them.
    #[rcv(sharded)]
    fn add_flow(&mut self, msg: &AddFlow, ctx: &mut Ctx) {
        if msg.flow.owner == Self::OWNER {
            return;
        }
        let lane = &msg.flow.matching;
        let (waiting, all) = (self.waiting.at(msg.node), self.open.at(msg.node));
        let (flow_age, actions) = (self.config.idle(), &msg.flow.actions);
        let first = (lane.clone(), Conversation::MIN);
        let behind = waiting.range(first..).map(|(key, ())| key).take_while(|(other, _)| other == lane);
        for key in behind.cloned().collect::<Vec<_>>() {
            waiting.remove(&key);
            let spoken = key.1;
            let (open, is_back) = match all.contains(&spoken) {
                true => (all.get_mut(&spoken), false),
                false => (all.get_mut(&spoken.reversed()), true),
            };
            let Some(open) = open else { continue }; // over since
            let matching = FlowMatch { conversation: Some(spoken.into()), ..lane.clone() };
            let old = if is_back { &mut open.back } else { &mut open.there }.replace(matching.clone());
            if let Some(old) = old.filter(|old| *old != matching) {
                ctx.emit(withdrawal(msg.node, old));
            }
            let flow = AddFlow::new(msg.node, Self::OWNER, matching, actions.clone()).because::<AddFlow>();
            ctx.emit(flow.priority(OPEN).idle(flow_age).hard(flow_age));
        }
    }

    #[rcv(sharded)]
    fn del_flows(&mut self, msg: &DelFlows, ctx: &mut Ctx) {
        if msg.owner == Self::OWNER {
            return;
        }
        if let FlowScope::Towards(_) | FlowScope::From(..) | FlowScope::Through(_) = msg.scope {
            return ctx.emit(DelFlows { owner: Self::OWNER, ..msg.clone() });
        }
        // which conversations that concerns is not worth finding out: their next packets come up
        for flow in self.open.at(msg.node).values().flat_map(|open| [&open.there, &open.back]).flatten() {
            ctx.emit(withdrawal(msg.node, flow.clone()));
        }
    }

    #[every("5s", each = open)]
    fn age(&mut self, node: &NodeId, ctx: &mut Ctx) {
        let now = ctx.now();
        for (_, open) in self.open.at(*node).take_if(|_, open| open.until < now) {
            self.close(*node, open, ctx);
        }
    }

    fn close(&mut self, node: NodeId, open: Open, ctx: &mut Ctx) {
        let crowds = self.crowds.at(node);
        match crowds.get_mut(&open.port) {
            Some(crowd) if *crowd > 1 => *crowd -= 1,
            _ => drop(crowds.remove(&open.port)),
        }
        [open.there, open.back].into_iter().flatten().for_each(|flow| ctx.emit(withdrawal(node, flow)));
    }
}

fn withdrawal(node: NodeId, flow: FlowMatch) -> DelFlows {
    DelFlows { node, owner: Firewall::OWNER, scope: FlowScope::Exactly(OPEN, flow) }
}

/// Whether a conversation is open that `part`, which says no ports, may belong to.
fn may_be_part(open: &Rows<Conversation, Open>, part: Conversation) -> bool {
    let same = |c: &Conversation| {
        (c.source, c.destination, c.protocol) == (part.source, part.destination, part.protocol)
    };
    open.range(part..).next().is_some_and(|(first, _)| same(first))
}
