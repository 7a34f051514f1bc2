//! Firewall: decides which conversations are allowed. It precedes the forwarding app in the chain.
//!
//! The forwarding app's flows match only Ethernet fields, so with them one allowed packet would open the way for all
//! traffic between two hosts. Therefore every switch gets a higher-priority flow that sends all packets to the
//! controller ([`GUARD`]). Above that flow, the switch gets one flow for each direction of an open conversation
//! ([`OPEN`]), with the actions that the forwarding app wants for packets between these stations. When the forwarding
//! app withdraws a flow, the firewall also withdraws its own.
//!
//! The firewall denies malformed packets and all packets other than ARP, neighbor discovery and IP. A switch without
//! rules forwards nothing.

mod policy;

pub use policy::{Policy, Rule, Verdict};

use crate::limits;
use crate::object::{
    Action, Actions, AddFlow, AdoptFlows, Conversation, DelFlows, Ethernet, FlowMatch, FlowScope, FlowsFound,
    MasterChanged, NodeId, NodeJoined, NodeLeft, PacketIn, PacketOut, PortNo, Traffic,
};
use crate::parts::{AtPort, OwnsFlows, PortQuota, QuotaTable, seconds};
use beehive::{
    Address, App, Config, Ctx, Dict, Error, Key, Message, Reconfigured, Rows, Table, Time, handlers,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The priority of the flow that sends every packet to the controller. Above the priorities of forwarding apps.
pub const GUARD: u16 = 1_000;
/// The priority of the flows of open conversations.
pub const OPEN: u16 = 1_100;
/// Maximum time between a packet and the installation of the flow it causes.
const FLOW_SETUP_SLACK: Duration = Duration::from_secs(2);

/// Decides which conversations are allowed.
#[derive(App, Debug)]
#[app(name = "firewall", replication = 3)]
pub struct Firewall {
    /// The rules that replace those in the settings, if any.
    policy: Dict<Rulebook, Policy>,
    nodes: Table<Rulebook, NodeId, ()>,
    /// The rules in force at each switch.
    node_policies: Dict<NodeId, NodePolicy>,
    /// The open conversations, each in the direction of its first packet.
    open: Table<NodeId, Conversation, Open>,
    port_counts: Table<NodeId, PortNo, u32>,
    /// Directions of open conversations for which the forwarding app has not yet installed a flow.
    #[volatile]
    pending: Table<NodeId, (FlowMatch, Conversation), ()>,
    config: Config<FirewallSettings>,
}

/// The only key: there is one set of rules for all switches.
#[derive(Key, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rulebook;

crate::settings! {
    /// Settings of the firewall: the table `[apps.firewall]`.
    pub struct FirewallSettings {
        /// Rules, in evaluation order. Each rule is a table `[[apps.firewall.rules]]` with the key `action` ("allow" or
        /// "deny") and the optional keys `from` and `to` ("10.0.0.0/8"), `protocol` ("tcp", "udp", "icmp" or a number),
        /// `from_port` and `to_port` (80 or "80-90").
        pub rules: Vec<Rule> = Vec::new(),
        /// The decision about conversations that no rule matches.
        pub default: Verdict = Verdict::Deny,
        /// Seconds without a packet after which a conversation is closed.
        pub idle_s: u16 [1..=65_535] = 60,
        /// Maximum number of open conversations begun by hosts behind one port of a switch.
        pub open_per_port_max: u32 [1..=1_000_000] = 4096,
        /// Maximum number of open conversations at one switch.
        pub open_per_node_max: u32 [1..=1_000_000] = 65_536,
    }
}

impl FirewallSettings {
    fn policy(&self) -> Policy {
        Policy { rules: self.rules.clone(), default: self.default }
    }
}

/// Replaces the rules at all switches until the settings change. Closes the conversations that the new rules deny.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct SetPolicy(pub Policy);

/// The cell of a switch requests the rules.
#[derive(Message, Clone, Copy, Debug)]
struct AskPolicy(NodeId);

/// A switch has left.
#[derive(Message, Clone, Copy, Debug)]
struct NodeGone(NodeId);

/// The rules for a switch.
#[derive(Message, Clone, Debug)]
struct PolicyFor {
    node: NodeId,
    policy: Policy,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct NodePolicy {
    policy: Policy,
    /// See [`NodeJoined::knows_owners`]. A switch that does not know owners does not support IPv6 flows either.
    knows_owners: bool,
    driver: Address,
}

/// An open conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Open {
    until: Time,
    port: PortNo,
    /// The flows of the conversation, oldest first: one for each direction, and more if the conversation passes
    /// through the switch more than once.
    flows: Vec<FlowMatch>,
}

impl AtPort for Open {
    fn port(&self) -> PortNo {
        self.port
    }
}

#[handlers]
impl Firewall {
    #[rcv(centralized)]
    fn set_policy(&mut self, SetPolicy(policy): &SetPolicy, ctx: &mut Ctx) -> Result<(), Error> {
        if policy.rules.len() > limits::FIREWALL_RULES_MAX {
            return Err(Error::new(format!(
                "too many firewall rules (at most {})",
                limits::FIREWALL_RULES_MAX
            )));
        }
        self.enforce(policy.clone(), ctx);
        Ok(())
    }

    /// Applies the rules of the new settings, which replace the rules set by [`SetPolicy`].
    #[rcv(centralized)]
    fn reconfigured(&mut self, _: &Reconfigured, ctx: &mut Ctx) {
        self.enforce(self.config.policy(), ctx)
    }

    fn enforce(&mut self, policy: Policy, ctx: &mut Ctx) {
        for node in self.nodes.at(Rulebook).keys() {
            ctx.emit(PolicyFor { node: *node, policy: policy.clone() });
        }
        self.policy.put(Rulebook, policy);
    }

    #[rcv(centralized)]
    fn ask_policy(&mut self, AskPolicy(node): &AskPolicy, ctx: &mut Ctx) {
        self.nodes.at(Rulebook).insert(*node, ());
        let policy = self.policy.get(&Rulebook).cloned().unwrap_or_else(|| self.config.policy());
        ctx.emit(PolicyFor { node: *node, policy });
    }

    #[rcv(centralized)]
    fn node_gone(&mut self, NodeGone(node): &NodeGone) {
        self.nodes.at(Rulebook).remove(node);
    }

    #[rcv(sharded)]
    fn node_joined(&mut self, msg: &NodeJoined, ctx: &mut Ctx) {
        let policy = Policy::default(); // denies everything
        self.node_policies
            .put(msg.node, NodePolicy { policy, knows_owners: msg.knows_owners, driver: msg.driver });
        let up = Actions::One(Action::Output(PortNo::CONTROLLER));
        let guard = AddFlow::new(msg.node, Self::OWNER, FlowMatch::ANY, up).priority(GUARD);
        ctx.emit(guard.because::<NodeJoined>());
        ctx.emit(AdoptFlows { node: msg.node, owner: Self::OWNER });
        ctx.emit(AskPolicy(msg.node));
    }

    /// Forgets the switch's flows. Their actions are those that the forwarding app has wanted so far, which may be
    /// wrong when the switch comes back.
    #[rcv(sharded)]
    fn node_left(&mut self, msg: &NodeLeft, ctx: &mut Ctx) {
        if self.node_policies.get(&msg.node).is_none_or(|node| node.driver != msg.driver) {
            return; // a newer driver is already connected to the switch
        }

        self.node_policies.remove(&msg.node);
        self.pending.at(msg.node).clear();
        ctx.emit(NodeGone(msg.node));
        let all = self.open.at(msg.node);
        let led: Vec<_> = all.iter().filter(|(_, open)| !open.flows.is_empty()).map(|(c, _)| *c).collect();

        for spoken in led {
            all.entry(spoken).and_modify(|open| open.flows.clear());
        }
    }

    /// Withdraws flows that belong to no open conversation.
    #[rcv(sharded)]
    fn flows_found(&mut self, msg: &FlowsFound, ctx: &mut Ctx) {
        let all = self.open.at(msg.node);
        let known = |flow: &FlowMatch| {
            let key = flow.conversation.as_deref().and_then(|spoken| find_open(all, *spoken));
            key.and_then(|key| all.get(&key)).is_some_and(|open| open.flows.contains(flow))
        };
        for found in msg.flows.iter().filter(|found| msg.owner == Self::OWNER && !known(&found.matching)) {
            ctx.emit(DelFlows::exactly(Self::OWNER, msg.node, found.key()));
        }
    }

    /// Applies new rules to a switch and closes the conversations they deny.
    #[rcv(sharded)]
    fn policy_for(&mut self, msg: &PolicyFor, ctx: &mut Ctx) {
        let Some(node) = self.node_policies.get_mut(&msg.node) else { return };
        node.policy = msg.policy.clone();
        let mut table = QuotaTable::new(self.open.at(msg.node), self.port_counts.at(msg.node));
        for (conversation, open) in table.take_if(|c, _| !msg.policy.allows(c)) {
            tracing::info!(node = %msg.node, %conversation, "closed a conversation: the new rules deny it");
            open.withdraw(msg.node, ctx);
        }
    }

    #[rcv(sharded)]
    fn packet_in(&mut self, msg: &PacketIn, ctx: &mut Ctx) -> Option<PacketOut> {
        if !msg.is_learnable() {
            return None;
        }
        (!self.passes(msg, ctx)).then(|| msg.discard())
    }

    fn passes(&mut self, msg: &PacketIn, ctx: &mut Ctx) -> bool {
        let Some(node) = self.node_policies.get(&msg.node) else { return false };

        let open = self.open.at(msg.node);
        let spoken = match msg.traffic() {
            Traffic::AddressResolution => return true,
            Traffic::Conversation(spoken) => spoken,
            Traffic::IcmpError(about) => return find_open(open, about).is_some(),
            // accepts a later fragment, which is harmless, because no host reassembles it without the first fragment,
            // which contains the ports
            Traffic::Fragment(part) => {
                return may_be_fragment(open, part) || may_be_fragment(open, part.reversed());
            }
            Traffic::Other => return false,
        };

        let until = ctx.now() + 2 * seconds(self.config.idle_s) + FLOW_SETUP_SLACK;
        if let Some(open) = open.get_mut(&spoken) {
            open.until = until;
        } else if let Some(open) = open.get_mut(&spoken.reversed()) {
            open.until = until;
        } else {
            let FirewallSettings { open_per_port_max, open_per_node_max, .. } = *self.config;
            let quota = PortQuota { per_port_max: open_per_port_max, per_node_max: open_per_node_max };
            let new = Open { until, port: msg.port, flows: Vec::new() };
            let mut table = QuotaTable::new(open, self.port_counts.at(msg.node));
            if !node.policy.allows(&spoken) || !table.put(spoken, new, quota) {
                return false;
            }
        }

        let same_type = |header: Ethernet| header.ethertype == spoken.ethertype();
        if spoken.has_ports()
            && (spoken.source.is_ipv4() || node.knows_owners)
            && msg.ethernet().is_some_and(same_type)
        {
            let pending = self.pending.at(msg.node);
            if pending.len() >= limits::FIREWALL_PENDING_MAX {
                pending.clear(); // the next packets of these conversations add them again
            }
            pending.insert((FlowMatch::like(msg), spoken), ());
        }

        true
    }

    /// Copies the actions of one of the forwarding app's flows to flows for the open conversations between the same
    /// stations.
    #[rcv(sharded)]
    fn add_flow(&mut self, msg: &AddFlow, ctx: &mut Ctx) {
        if msg.flow.owner == Self::OWNER {
            return;
        }

        let ethernet_match = &msg.flow.matching;
        let (pending, all) = (self.pending.at(msg.node), self.open.at(msg.node));
        let (flow_age, actions) = (seconds(self.config.idle_s), &msg.flow.actions);
        let first = (ethernet_match.clone(), Conversation::MIN);
        let behind =
            pending.range(first..).map(|(key, ())| key).take_while(|(other, _)| other == ethernet_match);

        for key in behind.cloned().collect::<Vec<_>>() {
            pending.remove(&key);
            let spoken = key.1;
            let Some(begun) = find_open(all, spoken) else { continue }; // it was closed meanwhile
            let Some(open) = all.get_mut(&begun) else { continue };

            let matching = FlowMatch { conversation: Some(spoken.into()), ..ethernet_match.clone() };
            if !open.flows.contains(&matching) {
                open.flows.push(matching.clone());
            }

            if open.flows.len() > limits::FIREWALL_FLOWS_EACH_MAX {
                ctx.emit(withdrawal(msg.node, open.flows.remove(0)));
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

        let follows = |flow: &&FlowMatch| match &msg.scope {
            FlowScope::Exactly(_, ethernet_match) => {
                FlowMatch { conversation: None, ..(*flow).clone() } == *ethernet_match
            }
            _ => true,
        };

        let flows = self.open.at(msg.node).values().flat_map(|open| &open.flows);
        for flow in flows.filter(follows) {
            ctx.emit(withdrawal(msg.node, flow.clone()));
        }
    }

    #[every("5s", each = open)]
    fn age(&mut self, node: &NodeId, ctx: &mut Ctx) {
        let now = ctx.now();
        let mut table = QuotaTable::new(self.open.at(*node), self.port_counts.at(*node));
        for (_, open) in table.take_if(|_, open| open.until < now) {
            open.withdraw(*node, ctx);
        }
    }

    #[rcv(sharded)]
    fn master_changed(&mut self, msg: &MasterChanged) {
        if let Some(node) = self.node_policies.get_mut(&msg.node) {
            (node.driver, node.knows_owners) = (msg.driver, msg.knows_owners)
        }
    }
}

impl Open {
    /// Withdraws the conversation's flows.
    fn withdraw(self, node: NodeId, ctx: &mut Ctx) {
        self.flows.into_iter().for_each(|flow| ctx.emit(withdrawal(node, flow)));
    }
}

fn withdrawal(node: NodeId, flow: FlowMatch) -> DelFlows {
    DelFlows { node, owner: Firewall::OWNER, scope: FlowScope::Exactly(OPEN, flow) }
}

/// Returns the key of the open conversation of which `spoken` is one direction.
fn find_open(open: &Rows<Conversation, Open>, spoken: Conversation) -> Option<Conversation> {
    [spoken, spoken.reversed()].into_iter().find(|direction| open.contains(direction))
}

/// Returns whether the fragment `part`, which has no ports, may belong to an open conversation.
fn may_be_fragment(open: &Rows<Conversation, Open>, part: Conversation) -> bool {
    let same = |c: &Conversation| {
        (c.source, c.destination, c.protocol) == (part.source, part.destination, part.protocol)
    };
    open.range(part..).next().is_some_and(|(first, _)| same(first))
}
