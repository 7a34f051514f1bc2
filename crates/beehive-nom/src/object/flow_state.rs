//! What became of flows: what a switch has, what it should have, and who is told of the difference.

#[cfg(doc)]
use crate::object::AddFlow;
use crate::object::{Action, Actions, Cause, Flow, FlowKey, FlowMatch, NodeId, Owner, PortNo, Station};
use beehive::{Address, Message, Time};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A flow as a switch has it, whoever put it there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FoundFlow {
    /// The table of the switch that it is in.
    pub table: u8,
    /// Whose it is; none: not of this system.
    pub owner: Option<Owner>,
    /// What it was made for.
    pub cause: Cause,
    /// The mark that the switch keeps with it.
    pub cookie: u64,
    /// Which flow wins where several match.
    pub priority: u16,
    /// Which packets, as far as that can be said here.
    pub matching: FlowMatch,
    /// What is done with them, as far as that can be said here.
    pub actions: Actions,
    /// What cannot be said here, in words; none for a flow that was made here.
    pub more: Option<Box<str>>,
    /// Seconds without a packet after which it goes; 0 is never.
    pub idle_s: u16,
    /// Seconds after which it goes; 0 is never.
    pub hard_s: u16,
    /// Seconds that it has been there.
    pub age_s: u32,
    /// Packets that it took.
    pub packets: u64,
    /// Bytes that it took.
    pub bytes: u64,
}

impl FoundFlow {
    /// Which of the switch's flows it is.
    pub fn key(&self) -> FlowKey {
        (self.priority, self.matching.clone())
    }

    /// Whether the switch forgets it by itself.
    pub fn is_soft(&self) -> bool {
        self.idle_s != 0 || self.hard_s != 0
    }

    /// Whose it is, if it could have been made here: nothing about it cannot be said.
    pub fn ours(&self) -> Option<Owner> {
        if self.table == 0 && self.more.is_none() { self.owner } else { None }
    }

    /// Where it says that its stations are, if it is as [`AddFlow::between`] makes them: the one that it takes packets
    /// from, and the one that it leads to.
    pub fn endpoints(&self) -> Option<[(Station, PortNo); 2]> {
        let (m, Actions::One(Action::Output(out))) = (&self.matching, &self.actions) else { return None };
        let vlan = m.tag?.vlan();
        let endpoints =
            [(Station::new(vlan, m.source?), m.port?), (Station::new(vlan, m.destination?), *out)];
        (m.ethertype.is_none() && m.conversation.is_none()).then_some(endpoints)
    }

    /// How long it lives yet at most, if it goes at some age.
    pub fn remaining(&self) -> Duration {
        Duration::from_secs(u64::from(self.hard_s).saturating_sub(self.age_s.into()))
    }

    /// Whether it is exactly `flow`.
    pub fn is(&self, flow: &Flow) -> bool {
        self.ours() == Some(flow.owner)
            && self.cause == flow.cause
            && self.key() == flow.key()
            && self.actions == flow.actions
            && (self.idle_s, self.hard_s) == (flow.idle_s, flow.hard_s)
    }
}

/// To a driver: tells the flows of its switch in as many [`FlowsRead`] as that takes.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadFlows {
    /// The asker's own number; comes back with each answer.
    pub reading: u64,
    /// The IO bee that is told; none: the apps are.
    pub asker: Option<Address>,
}

/// Flows of a switch, as it tells them.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct FlowsRead {
    /// The switch.
    pub node: NodeId,
    /// The number that was asked with.
    pub reading: u64,
    /// Whether these are the last ones of this reading.
    pub last: bool,
    /// The flows.
    pub flows: Vec<FoundFlow>,
}

/// Intended flows are in place: the switch has done all that it was told until after them, and refused none of them.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct FlowsConfirmed {
    /// The switch.
    pub node: NodeId,
    /// The flows.
    pub flows: Vec<FlowKey>,
}

/// From an app to the node app: it answers for the soft flows of its own that are found in a switch, those of an earlier
/// life included. It is told of them by [`FlowsFound`]; soft flows that nobody answers for are withdrawn.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdoptFlows {
    /// Where.
    pub node: NodeId,
    /// Whose.
    pub owner: Owner,
}

/// Soft flows of an app that were found in a switch when it joined, or since. The app withdraws those that are not good.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct FlowsFound {
    /// The switch.
    pub node: NodeId,
    /// Whose they are.
    pub owner: Owner,
    /// The flows.
    pub flows: Vec<FoundFlow>,
}

/// Wants the flows of a switch read and put right now rather than within the minute.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct VerifyFlows {
    /// Where.
    pub node: NodeId,
}

/// Asks what is known of a node and its flows; nobody answers for one that was never there.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
#[message(reply = NodeDescription)]
pub struct DescribeNode {
    /// Which.
    pub node: NodeId,
}

/// What is known of a node and its flows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NodeDescription {
    /// Where its driver is reached; none: it is not connected.
    pub driver: Option<Address>,
    /// The latest comparison of what it has with what it should have.
    pub reading: Reading,
    /// The flows that it should have.
    pub flows: Vec<IntendedFlow>,
    /// Flows that it refused, the latest last.
    pub failures: Vec<FlowFailure>,
}

/// A comparison of what a switch has with what it should have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Reading {
    /// Its number; 0: there was none yet.
    pub number: u64,
    /// Whether the switch has told all.
    pub complete: bool,
    /// Flows that were as they should be.
    pub kept: u64,
    /// Soft flows that were left to the app that they belong to.
    pub adopted: u64,
    /// Flows that were missing or different, and were put in place.
    pub installed: u64,
    /// Flows of this system that should not have been there, and were withdrawn.
    pub withdrawn: u64,
    /// Flows of others, which are left alone.
    pub foreign: u64,
}

/// A flow that a switch should have.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IntendedFlow {
    /// The flow.
    pub flow: Flow,
    /// What became of it.
    pub state: FlowState,
}

/// What became of a flow that a switch should have.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FlowState {
    /// The switch has not been told yet: it is not there, or its flows are being read.
    Waiting,
    /// The switch has been told, and has not said more.
    Sent,
    /// The switch has it.
    Confirmed,
    /// The switch refused it. It is offered again with every reading.
    Refused {
        /// Why, in the words of the switch's protocol.
        why: String,
        /// How often in a row.
        times: u32,
    },
}

/// A flow that a switch refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FlowFailure {
    /// When.
    pub at: Time,
    /// Whose.
    pub owner: Owner,
    /// What it was made for.
    pub cause: Cause,
    /// Which, if that is known.
    pub flow: Option<FlowKey>,
    /// Why, in the words of the switch's protocol.
    pub why: String,
}
