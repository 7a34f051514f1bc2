//! Defines the messages for comparing a switch's flows with the intended ones.

#[cfg(doc)]
use crate::object::AddFlow;
use crate::object::{Action, Actions, Cause, Flow, FlowKey, FlowMatch, NodeId, Owner, PortNo, Station};
use beehive::{Address, Message, Time};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A flow as the switch reports it, whether or not Beehive has installed it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FoundFlow {
    /// The number of the switch's flow table that contains the flow.
    pub table: u8,
    /// The owner, or `None` if Beehive did not install the flow.
    pub owner: Option<Owner>,
    /// The type of the message that caused the flow.
    pub cause: Cause,
    /// The cookie stored with the flow by the switch.
    pub cookie: u64,
    /// The priority. Of all flows that match a packet, the one with the highest priority applies.
    pub priority: u16,
    /// The match, as far as [`FlowMatch`] can express it.
    pub matching: FlowMatch,
    /// The actions, as far as [`Actions`] can express them.
    pub actions: Actions,
    /// A description of the parts that network objects cannot express. `None` for flows of Beehive.
    pub more: Option<Box<str>>,
    /// Idle timeout in seconds; 0 means none.
    pub idle_s: u16,
    /// Hard timeout in seconds; 0 means none.
    pub hard_s: u16,
    /// The flags, or `None` if the switch does not report them, as before OpenFlow 1.3.
    pub flags: Option<FlowFlags>,
    /// Age in seconds.
    pub age_s: u32,
    /// Number of packets that the flow matched.
    pub packets: u64,
    /// Number of bytes that the flow matched.
    pub bytes: u64,
}

/// Flow options that tell the switch what to do in addition to the actions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FlowFlags {
    /// Whether the switch reports the flow's removal.
    pub reports_removal: bool,
    /// Whether the switch refused to install the flow if it overlapped another flow of the same priority.
    pub checks_overlap: bool,
    /// Whether the counters began at zero when the flow replaced another flow.
    pub resets_counts: bool,
    /// Whether the switch does not count packets.
    pub counts_no_packets: bool,
    /// Whether the switch does not count bytes.
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

    /// Returns the owner if Beehive can have installed the flow, that is, if the flow is in table 0 and can be fully
    /// expressed by network objects.
    pub fn ours(&self) -> Option<Owner> {
        if self.table == 0 && self.more.is_none() { self.owner } else { None }
    }

    /// Returns the two stations that the flow connects, with their ports, if the flow has the form that
    /// [`AddFlow::between`] creates. The source of the matching packets comes first, the destination second.
    pub fn endpoints(&self) -> Option<[(Station, PortNo); 2]> {
        let (m, Actions::One(Action::Output(out))) = (&self.matching, &self.actions) else { return None };
        let vlan = m.tag?.vlan();
        let endpoints =
            [(Station::new(vlan, m.source?), m.port?), (Station::new(vlan, m.destination?), *out)];
        (m.ethertype.is_none() && m.conversation.is_none()).then_some(endpoints)
    }

    /// Returns the time until the hard timeout, or zero if there is none.
    pub fn remaining(&self) -> Duration {
        Duration::from_secs(u64::from(self.hard_s).saturating_sub(self.age_s.into()))
    }

    /// Returns whether this flow equals `flow`. Ignores the counters, and the flags, which not every switch reports.
    pub fn is(&self, flow: &Flow) -> bool {
        self.ours() == Some(flow.owner)
            && self.cause == flow.cause
            && self.key() == flow.key()
            && self.actions == flow.actions
            && (self.idle_s, self.hard_s) == (flow.idle_s, flow.hard_s)
    }
}

/// Makes a driver read its switch's flows. The flows arrive in one or more [`FlowsRead`].
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadFlows {
    /// A number chosen by the requester and repeated in every reply.
    pub reading: u64,
    /// The IO bee that receives the replies. If it is `None`, the replies are emitted to the apps.
    pub asker: Option<Address>,
}

/// Flows read from a switch.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct FlowsRead {
    /// The switch.
    pub node: NodeId,
    /// The request's number.
    pub reading: u64,
    /// Whether this is the last part of the reply.
    pub last: bool,
    /// The flows.
    pub flows: Vec<FoundFlow>,
}

/// Intended flows are installed: the switch has processed all
/// commands up to these flows, and has refused none of them.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct FlowsConfirmed {
    /// The switch.
    pub node: NodeId,
    /// The flows.
    pub flows: Vec<FlowKey>,
}

/// An app sends this message to the node app to announce that it checks its own soft flows in a switch, including soft
/// flows from before a restart. Whenever the switch's flows are read, the node app withdraws the app's soft flows that
/// use a port that is down, and passes the others to the app in [`FlowsFound`].
///
/// Soft flows not adopted by any app stay until they expire. Therefore an app whose soft flows can become wrong while
/// the controller is away must adopt them and withdraw those that it no longer wants.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdoptFlows {
    /// The switch.
    pub node: NodeId,
    /// The owner whose flows are adopted.
    pub owner: Owner,
}

/// An app's soft flows that were found in a switch. The app withdraws the wrong ones.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct FlowsFound {
    /// The switch.
    pub node: NodeId,
    /// The owner of the flows.
    pub owner: Owner,
    /// The flows.
    pub flows: Vec<FoundFlow>,
}

/// Requests that a switch's flows be read and corrected immediately, instead of within a minute.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct VerifyFlows {
    /// The switch.
    pub node: NodeId,
}

/// Requests the description of a node and its flows. There is no reply for a node that has never joined.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
#[message(reply = NodeDescription)]
pub struct DescribeNode {
    /// The switch.
    pub node: NodeId,
}

/// The state of a node and its flows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NodeDescription {
    /// The address of the node's driver, or `None` if the switch is not connected.
    pub driver: Option<Address>,
    /// The latest comparison of the node's flows with the intended ones.
    pub reading: Reading,
    /// The intended flows.
    pub flows: Vec<IntendedFlow>,
    /// The flows refused by the switch, most recent last.
    pub failures: Vec<FlowFailure>,
}

/// The result of comparing a switch's flows with the intended ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Reading {
    /// The number of the comparison, or 0 before the first one.
    pub number: u64,
    /// Whether the switch has reported all its flows.
    pub complete: bool,
    /// Number of flows that were as intended.
    pub kept: u64,
    /// Number of soft flows that were left unchanged or passed to the apps that adopt them.
    pub soft: u64,
    /// Number of missing or different flows that were installed.
    pub installed: u64,
    /// Number of Beehive's flows that were not intended and were withdrawn.
    pub withdrawn: u64,
    /// Number of other systems' flows, which were left unchanged.
    pub foreign: u64,
}

/// A flow that a switch should have.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IntendedFlow {
    /// The flow.
    pub flow: Flow,
    /// The state of the flow at the switch.
    pub state: FlowState,
}

/// The state of an intended flow.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FlowState {
    /// The flow has not yet been sent, because the switch is not connected, its flows are being read, or too many flows
    /// are unconfirmed.
    Waiting,
    /// The flow has been sent but not yet confirmed.
    Sent,
    /// The switch has confirmed the flow.
    Confirmed,
    /// The switch has refused the flow. The flow is sent again after every read of the flows.
    Refused {
        /// The error in terms of the switch's protocol.
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
    /// The flow's owner.
    pub owner: Owner,
    /// The type of the message that caused the flow.
    pub cause: Cause,
    /// The flow, if it is known.
    pub flow: Option<FlowKey>,
    /// The error in terms of the switch's protocol.
    pub why: String,
}
