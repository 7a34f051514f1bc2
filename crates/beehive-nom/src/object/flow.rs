//! Flows: what a switch does with packets by itself, who wants it, and how it is taken back.

use crate::object::{Conversation, Ethernet, Mac, NodeId, PacketIn, PortNo, Station, Tag};
use beehive::Message;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The app that a flow belongs to. Switches keep it with the flow, so it is made from the app's name alone and is the
/// same on all hives and after a restart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Owner(u32);

impl Owner {
    /// The owner called `name`.
    pub const fn named(name: &str) -> Owner {
        Owner(hash(name.as_bytes(), 0))
    }

    /// Its number.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The owner with this number.
    pub const fn from_number(number: u32) -> Owner {
        Owner(number)
    }
}

/// FNV-1a of the bytes from `at` on: part of what is stored in switches, so it never changes.
const fn hash(bytes: &[u8], mut at: usize) -> u32 {
    let mut hash: u32 = 0x811c_9dc5;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    hash
}

/// The kind of message that a flow was made for. Switches keep it with the flow, as they do its [`Owner`], so it is made
/// from the message's name alone, without its crate: as handlers call it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Cause(u16);

impl Cause {
    /// Nobody has said.
    pub const UNKNOWN: Cause = Cause(0);

    /// Messages called `name`; what is before its last `::` does not count.
    pub const fn named(name: &str) -> Cause {
        let bytes = name.as_bytes();
        let mut start = bytes.len();
        while start > 0 && bytes[start - 1] != b':' {
            start -= 1;
        }
        // the two halves together
        let hash = hash(bytes, start);
        match (hash >> 16) as u16 ^ hash as u16 {
            0 => Cause(1), // which is not unknown
            cause => Cause(cause),
        }
    }

    /// Messages of type `M`.
    pub const fn of<M: Message>() -> Cause {
        Cause::named(M::NAME)
    }

    /// Its number.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The cause with this number.
    pub const fn from_number(number: u16) -> Cause {
        Cause(number)
    }
}

/// What a packet must have for a flow to take it; what is `None` may be anything.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct FlowMatch {
    /// The port that it came in on.
    pub port: Option<PortNo>,
    /// Its Ethernet source.
    pub source: Option<Mac>,
    /// Its Ethernet destination.
    pub destination: Option<Mac>,
    /// Its outermost VLAN tag.
    pub tag: Option<Tag>,
    /// Its Ethernet type after that tag.
    pub ethertype: Option<u16>,
    /// The conversation that it belongs to, of TCP or UDP: says the Ethernet type too. In a box, for most flows have none.
    pub conversation: Option<Box<Conversation>>,
}

impl FlowMatch {
    /// Every packet.
    pub const ANY: FlowMatch = FlowMatch {
        port: None,
        source: None,
        destination: None,
        tag: None,
        ethertype: None,
        conversation: None,
    };

    /// Packets like this one: same port, source, destination and tag.
    #[inline]
    pub fn like(packet: &PacketIn) -> FlowMatch {
        let header = packet.ethernet();
        FlowMatch {
            port: Some(packet.port),
            source: header.map(|h| h.source),
            destination: header.map(|h| h.destination),
            tag: header.map(|h| h.tag),
            ethertype: None,
            conversation: None,
        }
    }

    /// Whether it takes a packet with this header that came in on `port`, as far as Ethernet tells: whoever matches
    /// conversations compares them too.
    pub fn matches(&self, port: PortNo, header: &Ethernet) -> bool {
        fn fits<T: PartialEq>(wanted: Option<T>, has: T) -> bool {
            wanted.is_none_or(|wanted| wanted == has)
        }
        fits(self.port, port)
            && fits(self.source, header.source)
            && fits(self.destination, header.destination)
            && fits(self.tag, header.tag)
            && fits(self.ethertype, header.ethertype)
    }

    /// Whether every packet that `other` takes is taken by this one too.
    pub fn covers(&self, other: &FlowMatch) -> bool {
        fn wider<T: PartialEq>(wide: &Option<T>, narrow: &Option<T>) -> bool {
            wide.is_none() || wide == narrow
        }
        wider(&self.port, &other.port)
            && wider(&self.source, &other.source)
            && wider(&self.destination, &other.destination)
            && wider(&self.tag, &other.tag)
            && wider(&self.ethertype, &other.ethertype)
            && wider(&self.conversation, &other.conversation)
    }
}

/// What a switch does with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Action {
    /// Sends it out of a port.
    Output(PortNo),
    /// Sets its Ethernet source.
    SetSource(Mac),
    /// Sets its Ethernet destination.
    SetDestination(Mac),
    /// Removes its outermost VLAN tag.
    PopTag,
}

/// What a switch does with a packet, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Actions {
    /// Nothing: the packet is dropped.
    #[default]
    None,
    /// One thing; needs no memory of its own.
    One(Action),
    /// Several things. Two pointers away, so that flows are small: most do one thing.
    Several(Box<Box<[Action]>>),
}

impl Actions {
    /// The actions in order.
    #[inline]
    pub fn as_slice(&self) -> &[Action] {
        match self {
            Actions::None => &[],
            Actions::One(action) => std::slice::from_ref(action),
            Actions::Several(actions) => actions,
        }
    }

    /// Whether one of them sends the packet out of `port`.
    pub fn output_to(&self, port: PortNo) -> bool {
        self.as_slice().contains(&Action::Output(port))
    }
}

impl From<Vec<Action>> for Actions {
    fn from(mut actions: Vec<Action>) -> Actions {
        match (actions.pop(), actions.is_empty()) {
            (None, _) => Actions::None,
            (Some(one), true) => Actions::One(one),
            (Some(last), false) => {
                actions.push(last);
                Actions::Several(Box::new(actions.into()))
            }
        }
    }
}

impl From<Action> for Actions {
    fn from(action: Action) -> Actions {
        Actions::One(action)
    }
}

/// A flow.
///
/// One with a timeout is soft: the switch alone keeps it, and forgets it. One without is intended: the node app keeps it
/// too, and gives it to the switch again when it comes back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Flow {
    /// Who wants it.
    pub owner: Owner,
    /// What it was made for.
    pub cause: Cause,
    /// Which flow wins where several match: the highest. 0 is for the flow that brings packets up.
    pub priority: u16,
    /// Which packets.
    pub matching: FlowMatch,
    /// What is done with them.
    pub actions: Actions,
    /// Seconds without a packet after which it goes; 0 is never.
    pub idle_s: u16,
    /// Seconds after which it goes; 0 is never.
    pub hard_s: u16,
}

impl Flow {
    /// Whether the switch forgets it by itself.
    pub fn is_soft(&self) -> bool {
        self.idle_s != 0 || self.hard_s != 0
    }
}

/// Which flow of a switch: there is one with the same priority and match.
pub type FlowKey = (u16, FlowMatch);

impl Flow {
    /// Which of a switch's flows it is.
    #[inline]
    pub fn key(&self) -> FlowKey {
        (self.priority, self.matching.clone())
    }
}

/// Priority of flows that do not say another.
const PRIORITY_DEFAULT: u16 = 100;

/// Wants a flow at a node. One with the same priority and match is replaced.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct AddFlow {
    /// Where.
    pub node: NodeId,
    /// What.
    pub flow: Flow,
}

impl AddFlow {
    /// A flow of `owner` that does `actions` to what `matching` takes.
    pub fn new(node: NodeId, owner: Owner, matching: FlowMatch, actions: Actions) -> AddFlow {
        AddFlow {
            node,
            flow: Flow {
                owner,
                cause: Cause::UNKNOWN,
                priority: PRIORITY_DEFAULT,
                matching,
                actions,
                idle_s: 0,
                hard_s: 0,
            },
        }
    }

    /// A flow that sends packets like `packet` (same port, source, destination and tag) out of `port`. A host that moved
    /// does not match it, and is seen again.
    #[inline]
    pub fn between(owner: Owner, packet: &PacketIn, port: PortNo) -> AddFlow {
        AddFlow::new(packet.node, owner, FlowMatch::like(packet), Actions::One(Action::Output(port)))
            .because::<PacketIn>()
    }

    /// Made for a message of type `M`: what people are told when they ask why the flow is there.
    #[inline]
    pub fn because<M: Message>(self) -> AddFlow {
        self.caused_by(const { Cause::of::<M>() })
    }

    /// As [`AddFlow::because`], where the message is not the same each time.
    #[inline]
    pub fn caused_by(mut self, cause: Cause) -> AddFlow {
        self.flow.cause = cause;
        self
    }

    /// With a priority.
    pub fn priority(mut self, priority: u16) -> AddFlow {
        self.flow.priority = priority;
        self
    }

    /// Goes when it has seen no packet for so long; in whole seconds, one at least.
    #[inline]
    pub fn idle(mut self, timeout: Duration) -> AddFlow {
        self.flow.idle_s = seconds(timeout);
        self
    }

    /// Goes when it is so old; in whole seconds, one at least.
    #[inline]
    pub fn hard(mut self, timeout: Duration) -> AddFlow {
        self.flow.hard_s = seconds(timeout);
        self
    }
}

#[inline]
fn seconds(timeout: Duration) -> u16 {
    timeout.as_secs().clamp(1, u64::from(u16::MAX)) as u16
}

/// Which flows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FlowScope {
    /// All of them.
    All,
    /// Those to a station.
    Towards(Station),
    /// Those from a station that came in on a port.
    From(Station, PortNo),
    /// Those that a port brings in or takes out.
    Through(PortNo),
    /// The one with this priority and match.
    Exactly(u16, FlowMatch),
}

impl FlowScope {
    /// Whether `flow` is one of them. What a switch does by itself may be more, never less: it does not know stations.
    pub fn contains(&self, flow: &Flow) -> bool {
        let m = &flow.matching;
        let in_vlan = |s: &Station| m.tag.is_none_or(|tag| tag.vlan() == s.vlan());
        match self {
            FlowScope::All => true,
            FlowScope::Towards(station) => m.destination == Some(station.mac()) && in_vlan(station),
            FlowScope::From(station, port) => {
                m.source == Some(station.mac()) && in_vlan(station) && m.port == Some(*port)
            }
            FlowScope::Through(port) => m.port == Some(*port) || flow.actions.output_to(*port),
            FlowScope::Exactly(priority, matching) => flow.priority == *priority && m == matching,
        }
    }
}

/// Wants an owner's flows at a node gone.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct DelFlows {
    /// Where.
    pub node: NodeId,
    /// Whose.
    pub owner: Owner,
    /// Which.
    pub scope: FlowScope,
}

impl DelFlows {
    /// Those to `station`.
    pub fn towards(owner: Owner, node: NodeId, station: Station) -> DelFlows {
        DelFlows { node, owner, scope: FlowScope::Towards(station) }
    }

    /// Those from `station` that came in on `port`.
    pub fn from(owner: Owner, node: NodeId, station: Station, port: PortNo) -> DelFlows {
        DelFlows { node, owner, scope: FlowScope::From(station, port) }
    }

    /// Those that `port` brings in or takes out.
    pub fn through(owner: Owner, node: NodeId, port: PortNo) -> DelFlows {
        DelFlows { node, owner, scope: FlowScope::Through(port) }
    }

    /// The one with this priority and match.
    pub fn exactly(owner: Owner, node: NodeId, (priority, matching): FlowKey) -> DelFlows {
        DelFlows { node, owner, scope: FlowScope::Exactly(priority, matching) }
    }
}

/// From the node app to a driver: puts a flow in place.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct InstallFlow(pub Flow);

/// From the node app to a driver: takes flows away.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct WithdrawFlows {
    /// Whose; none: those of every app of this system. A switch that cannot tell whose a flow is withdraws everybody's
    /// (see [`NodeJoined::knows_owners`](crate::object::NodeJoined::knows_owners)).
    pub owner: Option<Owner>,
    /// Which.
    pub scope: FlowScope,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Vlan;

    #[test]
    fn an_owner_is_its_name() {
        assert_eq!(Owner::named(""), Owner(0x811c_9dc5));
        assert_eq!(Owner::named("learning-switch").number(), 0x7075_609a);
        assert_ne!(Owner::named("hub"), Owner::named("learning-switch"));
    }

    #[test]
    fn a_cause_is_a_name_and_never_unknown() {
        assert_eq!(Cause::named(""), Cause(0x811c ^ 0x9dc5));
        assert_eq!(Cause::of::<PacketIn>(), Cause::named("PacketIn"));
        assert_eq!(Cause::of::<PacketIn>(), Cause::named("object::PacketIn"));
        assert_ne!(Cause::of::<PacketIn>(), Cause::UNKNOWN);
    }

    #[test]
    fn scopes() {
        let (a, b) = (Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]));
        let matching = FlowMatch {
            port: Some(PortNo(1)),
            source: Some(a),
            destination: Some(b),
            tag: Some(Tag::Id(Vlan(7))),
            ..FlowMatch::ANY
        };
        let actions = Actions::One(Action::Output(PortNo(2)));
        let flow = AddFlow::new(NodeId(1), Owner::named("x"), matching.clone(), actions).flow;
        let station = |vlan, mac| Station::new(Vlan(vlan), mac);
        assert!(FlowScope::Towards(station(7, b)).contains(&flow));
        assert!(!FlowScope::Towards(station(0, b)).contains(&flow));
        assert!(!FlowScope::Towards(station(7, a)).contains(&flow));
        assert!(FlowScope::From(station(7, a), PortNo(1)).contains(&flow));
        assert!(!FlowScope::From(station(7, a), PortNo(2)).contains(&flow));
        assert!([1, 2].iter().all(|p| FlowScope::Through(PortNo(*p)).contains(&flow)));
        assert!(!FlowScope::Through(PortNo(3)).contains(&flow));
        assert!(FlowScope::Exactly(100, matching.clone()).contains(&flow));
        assert!(FlowMatch::ANY.covers(&matching) && !matching.covers(&FlowMatch::ANY));
    }

    /// One goes through three mailboxes for each packet-in of a learning switch.
    #[test]
    fn flows_are_small() {
        assert_eq!((size_of::<FlowMatch>(), size_of::<Flow>()), (40, 72));
        assert_eq!((size_of::<AddFlow>(), size_of::<InstallFlow>()), (80, 72));
    }

    #[test]
    fn timeouts_are_whole_seconds_and_never_none() {
        let flow = AddFlow::new(NodeId(1), Owner::named("x"), FlowMatch::ANY, Actions::None);
        assert!(!flow.flow.is_soft());
        let flow = flow.idle(Duration::from_millis(10)).hard(Duration::from_secs(1 << 30)).flow;
        assert_eq!((flow.idle_s, flow.hard_s), (1, u16::MAX));
        assert!(flow.is_soft());
    }
}
