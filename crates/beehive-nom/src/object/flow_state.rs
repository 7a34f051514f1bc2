//! Defines the messages that compare the flows of a switch with the flows that it should have.

#[cfg(doc)]
use crate::object::AddFlow;
use crate::object::{Action, Actions, Cause, Flow, FlowKey, FlowMatch, NodeId, Owner, PortNo, Station};
use beehive::{Address, Message, Time};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A flow as the switch reports it, whether this system installed it or not.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FoundFlow {
    /// The table of the switch that it is in.
    pub table: u8,
    /// The owner; `None` if the flow is not from this system.
    pub owner: Option<Owner>,
    /// The kind of message that it was made for.
    pub cause: Cause,
    /// The cookie that the switch stores with the flow.
    pub cookie: u64,
    /// The priority; the highest matching flow wins.
    pub priority: u16,
    /// The match, as far as [`FlowMatch`] can express it.
    pub matching: FlowMatch,
    /// The actions, as far as [`Actions`] can express them.
    pub actions: Actions,
    /// A description of the parts that cannot be expressed; `None` for flows of this system.
    pub more: Option<Box<str>>,
    /// Idle timeout in seconds; 0 means none.
    pub idle_s: u16,
    /// Hard timeout in seconds; 0 means none.
    pub hard_s: u16,
    /// The flags; `None` if the switch does not report them, as before OpenFlow 1.3.
    pub flags: Option<FlowFlags>,
    /// Age in seconds.
    pub age_s: u32,
    /// Number of packets that it matched.
    pub packets: u64,
    /// Number of bytes that it matched.
    pub bytes: u64,
}

/// What a switch does for a flow besides its actions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FlowFlags {
    /// Whether the switch reports the removal of the flow.
    pub reports_removal: bool,
    /// Whether the switch has refused the flow if it overlaps another one with the same priority.
    pub checks_overlap: bool,
    /// Whether the counters began at zero when the flow replaced another one.
    pub resets_counts: bool,
    /// Whether packets are not counted.
    pub counts_no_packets: bool,
    /// Whether bytes are not counted.
    pub counts_no_bytes: bool,
}

impl FoundFlow {
    /// Returns the key that identifies the flow at its switch.
    pub fn key(&self) -> FlowKey {
        (self.priority, self.matching.clone())
    }

    /// Returns whether the flow has a timeout.
    pub fn is_soft(&self) -> bool {
        self.idle_s != 0 || self.hard_s != 0
    }

    /// Returns the owner if this system can have made the flow: it is in table 0, and network objects express
    /// it completely.
    pub fn ours(&self) -> Option<Owner> {
        if self.table == 0 && self.more.is_none() { self.owner } else { None }
    }

    /// Returns the stations and ports that the flow connects, if it has the form that [`AddFlow::between`]
    /// creates: first the station that it matches packets from, then the one that it forwards to.
    pub fn endpoints(&self) -> Option<[(Station, PortNo); 2]> {
        let (m, Actions::One(Action::Output(out))) = (&self.matching, &self.actions) else { return None };
        let vlan = m.tag?.vlan();
        let endpoints =
            [(Station::new(vlan, m.source?), m.port?), (Station::new(vlan, m.destination?), *out)];
        (m.ethertype.is_none() && m.conversation.is_none()).then_some(endpoints)
    }

    /// Returns the time until the hard timeout; zero if there is none.
    pub fn remaining(&self) -> Duration {
        Duration::from_secs(u64::from(self.hard_s).saturating_sub(self.age_s.into()))
    }

    /// Returns whether it equals `flow`, counters and flags aside: not every switch reports its flags.
    pub fn is(&self, flow: &Flow) -> bool {
        self.ours() == Some(flow.owner)
            && self.cause == flow.cause
            && self.key() == flow.key()
            && self.actions == flow.actions
            && (self.idle_s, self.hard_s) == (flow.idle_s, flow.hard_s)
    }
}

/// Tells a driver to read the flows of its switch. They arrive in one or more [`FlowsRead`].
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadFlows {
    /// A number that the requester chooses; returned in every reply.
    pub reading: u64,
    /// The IO bee that receives the replies; `None` to emit them to the apps.
    pub asker: Option<Address>,
}

/// Flows that were read from a switch.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct FlowsRead {
    /// The switch.
    pub node: NodeId,
    /// The number of the request.
    pub reading: u64,
    /// Whether this is the last part of the reply.
    pub last: bool,
    /// The flows.
    pub flows: Vec<FoundFlow>,
}

/// Intended flows are in place: the switch has processed all commands up to them and refused none of these
/// flows.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct FlowsConfirmed {
    /// The switch.
    pub node: NodeId,
    /// The flows.
    pub flows: Vec<FlowKey>,
}

/// Sent by an app to the node app: the app checks its own soft flows in a switch, including those from before
/// a restart. Whenever the flows of the switch are read, the node app withdraws those of its soft flows that
/// lead over a port that is down, and passes the others to the app in [`FlowsFound`].
///
/// Soft flows that no app adopts stay until they expire. So an app whose soft flows may become wrong while the
/// controller is away adopts them, and withdraws those that it does not want any more.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdoptFlows {
    /// The switch.
    pub node: NodeId,
    /// The owner whose flows are adopted.
    pub owner: Owner,
}

/// Soft flows of an app that were found in a switch. The app withdraws those that are wrong.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct FlowsFound {
    /// The switch.
    pub node: NodeId,
    /// The owner of the flows.
    pub owner: Owner,
    /// The flows.
    pub flows: Vec<FoundFlow>,
}

/// Requests that the flows of a switch are read and corrected at once, instead of within a minute.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct VerifyFlows {
    /// The switch.
    pub node: NodeId,
}

/// Requests the description of a node and its flows. There is no reply for a node that never joined.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
#[message(reply = NodeDescription)]
pub struct DescribeNode {
    /// The switch.
    pub node: NodeId,
}

/// The state of a node and its flows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NodeDescription {
    /// The address of its driver; `None` if the switch is not connected.
    pub driver: Option<Address>,
    /// The latest comparison of its flows with the intended ones.
    pub reading: Reading,
    /// The flows that it should have.
    pub flows: Vec<IntendedFlow>,
    /// The flows that it refused, latest last.
    pub failures: Vec<FlowFailure>,
}

/// The result of comparing the flows of a switch with the intended ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Reading {
    /// The number of the comparison; 0 before the first one.
    pub number: u64,
    /// Whether the switch has reported all its flows.
    pub complete: bool,
    /// Number of flows that were as intended.
    pub kept: u64,
    /// Number of soft flows that were left alone, or passed to the apps that adopt them.
    pub soft: u64,
    /// Number of flows that were missing or different, and were installed.
    pub installed: u64,
    /// Number of flows of this system that should not have been there, and were withdrawn.
    pub withdrawn: u64,
    /// Number of flows of other systems, which are not touched.
    pub foreign: u64,
}

/// A flow that a switch should have.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IntendedFlow {
    /// The flow.
    pub flow: Flow,
    /// Its state at the switch.
    pub state: FlowState,
}

/// The state of an intended flow.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FlowState {
    /// Not sent yet: the switch is not connected, its flows are being read, or too many flows are
    /// unconfirmed.
    Waiting,
    /// Sent, and not confirmed yet.
    Sent,
    /// Confirmed by the switch.
    Confirmed,
    /// Refused by the switch. The flow is sent again after every read of the flows.
    Refused {
        /// The error in the terms of the switch's protocol.
        why: String,
        /// Number of consecutive refusals.
        times: u32,
    },
}

/// A flow that a switch refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FlowFailure {
    /// Time of the refusal.
    pub at: Time,
    /// The owner of the flow.
    pub owner: Owner,
    /// The kind of message that the flow was made for.
    pub cause: Cause,
    /// The flow, if it is known.
    pub flow: Option<FlowKey>,
    /// The error in the terms of the switch's protocol.
    pub why: String,
}
