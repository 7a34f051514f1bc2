//! Defines flows, their owners, and their withdrawal. A flow is a rule by which a switch processes packets itself.

use crate::object::{Conversation, Ethernet, Mac, NodeId, PacketIn, PortNo, Station, Tag};
use beehive::Message;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The app that owns a flow. The owner is stored in the flow's cookie. Because it is derived only from the app's name,
/// it is the same on all hives and after a restart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Owner(u32);

impl Owner {
    /// Returns the owner with this name.
    pub const fn named(name: &str) -> Owner {
        Owner(hash(name.as_bytes(), 0))
    }

    /// Returns the owner's number.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns the owner with this number.
    pub const fn from_number(number: u32) -> Owner {
        Owner(number)
    }
}

/// Computes the FNV-1a hash of the bytes starting at index `at`. Switches store the result, so the function must never
/// change.
const fn hash(bytes: &[u8], mut at: usize) -> u32 {
    let mut hash: u32 = 0x811c_9dc5;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    hash
}

/// The type of the message that caused a flow. Like the [`Owner`], the cause is stored in the flow's cookie, so it is
/// derived only from the message type's name, without the path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Cause(u16);

impl Cause {
    /// No cause was given.
    pub const UNKNOWN: Cause = Cause(0);

    /// Returns the cause for the message type `name`. Ignores a path before the last `::`.
    pub const fn named(name: &str) -> Cause {
        let bytes = name.as_bytes();
        let mut start = bytes.len();
        while start > 0 && bytes[start - 1] != b':' {
            start -= 1;
        }

        // fold 32 bits into 16
        let hash = hash(bytes, start);
        match (hash >> 16) as u16 ^ hash as u16 {
            0 => Cause(1), // 0 means unknown
            cause => Cause(cause),
        }
    }

    /// Returns the cause for messages of type `M`.
    pub const fn of<M: Message>() -> Cause {
        Cause::named(M::NAME)
    }

    /// Returns the cause's number.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Returns the cause with this number.
    pub const fn from_number(number: u16) -> Cause {
        Cause(number)
    }
}

/// The values that a packet's fields must have to match a flow. `None` matches any value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct FlowMatch {
    /// The input port.
    pub port: Option<PortNo>,
    /// The Ethernet source.
    pub source: Option<Mac>,
    /// The Ethernet destination.
    pub destination: Option<Mac>,
    /// The outermost VLAN tag.
    pub tag: Option<Tag>,
    /// The Ethernet type after that tag.
    pub ethertype: Option<u16>,
    /// The TCP or UDP conversation, which implies the Ethernet type. Boxed, because most flows have none.
    pub conversation: Option<Box<Conversation>>,
}

impl FlowMatch {
    /// Matches every packet.
    pub const ANY: FlowMatch = FlowMatch {
        port: None,
        source: None,
        destination: None,
        tag: None,
        ethertype: None,
        conversation: None,
    };

    /// Returns a match for packets with the same port, source, destination and tag as `packet`.
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

    /// Returns whether a packet with this header that arrived at `port` matches. Ignores the conversation, which the
    /// caller must compare.
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

    /// Returns whether this match matches every packet matched by `other`.
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

/// An action that a switch applies to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Action {
    /// Sends the packet out of a port.
    Output(PortNo),
    /// Sets the Ethernet source.
    SetSource(Mac),
    /// Sets the Ethernet destination.
    SetDestination(Mac),
    /// Removes the outermost VLAN tag.
    PopTag,
}

/// The actions that a switch applies to a packet, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Actions {
    /// No action: the packet is dropped.
    #[default]
    None,
    /// One action, stored without an allocation.
    One(Action),
    /// Several actions. Boxed twice to keep flows small, because most of them have a single action.
    Several(Box<Box<[Action]>>),
}

impl Actions {
    /// Returns the actions in order.
    #[inline]
    pub fn as_slice(&self) -> &[Action] {
        match self {
            Actions::None => &[],
            Actions::One(action) => std::slice::from_ref(action),
            Actions::Several(actions) => actions,
        }
    }

    /// Returns whether one of the actions sends the packet out of `port`.
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
/// A flow with a timeout is soft: only the switch stores it, until it expires. A flow without a timeout is intended:
/// the node app also stores it, and reinstalls it when the switch reconnects.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Flow {
    /// The owner.
    pub owner: Owner,
    /// The type of the message that caused the flow.
    pub cause: Cause,
    /// The priority. Of all flows that match a packet, the one with the highest priority applies. 0 is reserved for
    /// the miss flow, which sends packets to the controller.
    pub priority: u16,
    /// The match.
    pub matching: FlowMatch,
    /// The actions.
    pub actions: Actions,
    /// Idle timeout in seconds; 0 means none.
    pub idle_s: u16,
    /// Hard timeout in seconds; 0 means none.
    pub hard_s: u16,
}

impl Flow {
    /// Returns whether the flow has a timeout.
    pub fn is_soft(&self) -> bool {
        self.idle_s != 0 || self.hard_s != 0
    }
}

/// The key of a flow: its priority and match, which together are unique at a switch.
pub type FlowKey = (u16, FlowMatch);

impl Flow {
    /// Returns the flow's key.
    #[inline]
    pub fn key(&self) -> FlowKey {
        (self.priority, self.matching.clone())
    }
}

/// Default priority of flows.
const PRIORITY_DEFAULT: u16 = 100;

/// Requests the installation of a flow at a node. The flow replaces the flow with the same priority and match.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct AddFlow {
    /// The switch.
    pub node: NodeId,
    /// The flow.
    pub flow: Flow,
}

impl AddFlow {
    /// Creates a request for a flow of `owner` that applies `actions` to matching packets.
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

    /// Creates a request for a flow that sends packets like `packet` (with the same port, source, destination and tag)
    /// out of `port`. Packets from a host that has moved do not match the flow and are sent to the controller.
    #[inline]
    pub fn between(owner: Owner, packet: &PacketIn, port: PortNo) -> AddFlow {
        AddFlow::new(packet.node, owner, FlowMatch::like(packet), Actions::One(Action::Output(port)))
            .because::<PacketIn>()
    }

    /// Sets the cause to the message type `M`. Operators see the cause when they ask why the flow exists.
    #[inline]
    pub fn because<M: Message>(self) -> AddFlow {
        self.caused_by(const { Cause::of::<M>() })
    }

    /// Sets a cause known only at run time. See also [`AddFlow::because`].
    #[inline]
    pub fn caused_by(mut self, cause: Cause) -> AddFlow {
        self.flow.cause = cause;
        self
    }

    /// Sets the priority.
    pub fn priority(mut self, priority: u16) -> AddFlow {
        self.flow.priority = priority;
        self
    }

    /// Sets the idle timeout, rounded down to whole seconds: at least one, and at most 65 535 (18 hours).
    #[inline]
    pub fn idle(mut self, timeout: Duration) -> AddFlow {
        self.flow.idle_s = seconds(timeout);
        self
    }

    /// Sets the hard timeout, rounded down to whole seconds: at least one, and at most 65 535 (18 hours).
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

/// Selects flows of a switch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FlowScope {
    /// All flows.
    All,
    /// Flows to a station.
    Towards(Station),
    /// Flows from a station that match this input port.
    From(Station, PortNo),
    /// Flows that match this input port, or that send packets out of this port.
    Through(PortNo),
    /// The flow with this priority and match.
    Exactly(u16, FlowMatch),
}

impl FlowScope {
    /// Returns whether this scope contains `flow`. A switch does not know stations, so it may remove more flows than
    /// the scope contains, but never fewer.
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

/// Requests the removal of an owner's flows at a node.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct DelFlows {
    /// The switch.
    pub node: NodeId,
    /// The owner.
    pub owner: Owner,
    /// The flows to remove.
    pub scope: FlowScope,
}

impl DelFlows {
    /// Selects the flows to `station`.
    pub fn towards(owner: Owner, node: NodeId, station: Station) -> DelFlows {
        DelFlows { node, owner, scope: FlowScope::Towards(station) }
    }

    /// Selects the flows from `station` that match the input port `port`.
    pub fn from(owner: Owner, node: NodeId, station: Station, port: PortNo) -> DelFlows {
        DelFlows { node, owner, scope: FlowScope::From(station, port) }
    }

    /// Selects the flows that match the input port `port`, or that send packets out of `port`.
    pub fn through(owner: Owner, node: NodeId, port: PortNo) -> DelFlows {
        DelFlows { node, owner, scope: FlowScope::Through(port) }
    }

    /// Selects the flow with this priority and match.
    pub fn exactly(owner: Owner, node: NodeId, (priority, matching): FlowKey) -> DelFlows {
        DelFlows { node, owner, scope: FlowScope::Exactly(priority, matching) }
    }
}

/// Installs a flow. The node app sends this message to a driver.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct InstallFlow(pub Flow);

/// Withdraws flows. The node app sends this message to a driver.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct WithdrawFlows {
    /// The owner, or `None` for the flows of all of Beehive's apps. A switch that does not know owners removes the
    /// flows of all owners and of other systems (see
    /// [`NodeJoined::knows_owners`](crate::object::NodeJoined::knows_owners)).
    pub owner: Option<Owner>,
    /// The flows to withdraw.
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

    /// For each packet-in of a learning switch, an `AddFlow` passes through three mailboxes.
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
