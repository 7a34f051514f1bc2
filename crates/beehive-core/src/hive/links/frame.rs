//! The packets between hives, and their encoding.

use beehive_protocol::codec::{DecodeError, decode_many, encode_many};
use beehive_protocol::{
    Acked, AppId, BeeId, Emit, Emits, Epoch, Incarnation, LaneId, Payload, Seq, StageFrame,
};
use serde::{Deserialize, Serialize};

/// One packet of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Packet {
    /// The incarnation of the hive that sends the packet.
    pub(super) from: Incarnation,
    /// The incarnation of the hive to which it is addressed. Other incarnations ignore it.
    pub(super) to: Incarnation,
    /// Number of bodies that the sender has received without a gap.
    pub(super) received: u64,
    /// The number of the body, counted from zero, and the body. `None` if the packet only acknowledges.
    pub(super) body: Option<(u64, Body)>,
}

impl Packet {
    pub(super) fn encode(&self) -> Vec<u8> {
        encode_many(self)
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Packet, DecodeError> {
        decode_many("a packet of another hive", bytes)
    }
}

/// The content of a packet: a message or a report from one hive to another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Body {
    /// Messages for a bee that the receiving hive has.
    Messages(Box<ToBee>),
    /// The record that consumed messages is committed.
    Acked(Acked),
    /// The bee named by a [`ToBee`] does not take the messages. The sender routes them again when its replica of the
    /// registry has reached `index`.
    Refused {
        /// The ticket of the messages.
        ticket: u64,
        /// The index of the refusing hive's replica.
        index: u64,
    },
    /// The outcome of a handler, for the requester of messages.
    Report {
        /// The ticket of the messages.
        ticket: u64,
        /// Position of the message among them.
        at: u32,
        /// The outcome.
        report: Report,
    },
    /// No further report will come for messages.
    Closed {
        /// The ticket of the messages.
        ticket: u64,
    },
    /// The floors of the sending hive's lanes, as told to one app each.
    Floors(Vec<(LaneId, AppId, Seq)>),
    /// Nothing will be sent on these lanes any more.
    Retired(Vec<LaneId>),
    /// Part of the copy of a bee that is about to move to the receiving hive.
    Stage(Box<StageFrame>),
    /// Parts of the copy of a bee are staged.
    Staged(Staged),
    /// Receivers in the sending hive, in one app each, remember these lanes and need their floors.
    Remembers(Vec<(LaneId, AppId)>),
    /// Messages for an IO bee of the receiving hive.
    Mail(Box<ToIoBee>),
}

/// Messages of one type on their way to an IO bee in another hive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ToIoBee {
    /// The number of the IO bee in its hive.
    pub(crate) io: u64,
    /// The name of the messages' type.
    pub(crate) name: String,
    /// If the sending hive waits until the IO bee has read them: the number that the receiving hive then closes.
    pub(crate) ticket: Option<u64>,
    /// The messages, in order.
    pub(crate) messages: Vec<Payload>,
}

/// The number of parts of a bee's copy that the receiving hive has staged. The source sends the next part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Staged {
    /// The app of the bee.
    pub(crate) app: AppId,
    /// The bee.
    pub(crate) bee: BeeId,
    /// The epoch of the copy.
    pub(crate) epoch: Epoch,
    /// The copy.
    pub(crate) copy: u64,
    /// Number of its parts that are staged.
    pub(crate) parts: u32,
}

/// Messages on their way to a bee in another hive. They all go to the same cells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ToBee {
    /// The bee. Only this one may handle the messages.
    pub(crate) bee: BeeId,
    /// The number under which the sending hive keeps the messages.
    pub(crate) ticket: u64,
    /// The index of the sender's replica of the registry. The receiving hive first waits until its own has reached it.
    pub(crate) known: u64,
    /// The floor of the messages' lane, as told to the app of the bee.
    pub(crate) floor: Seq,
    /// Whether a requester is waiting for reports.
    pub(crate) asks: bool,
    /// The messages, in order.
    pub(crate) messages: Emits,
}

impl ToBee {
    /// Returns the first message.
    pub(crate) fn first(&self) -> Option<&Emit> {
        self.messages.first()
    }
}

/// The outcome of a handler in another hive, with the answer encoded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// A handler answered, or failed while it could answer.
    Answered(Result<Vec<u8>, Failure>),
    /// A handler that cannot answer has committed, or failed.
    Observed(Result<(), Failure>),
    /// The last app of the answer chain passed the message on.
    Unanswered,
}

/// Why a handler in another hive has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Failure {
    /// The handler returned this error, encoded.
    Handler(Vec<u8>),
    /// The platform failed the message.
    Platform(crate::message::Error),
}
