//! The records of a log: what bees and hives write down, and the entries that carry them.

use crate::codec::{DecodeError, decode, encode_many};
use crate::{
    Address, AppId, BeeId, CellId, EntryNumber, HandlerId, HiveId, LaneId, LoggedSettings, MessageId, Op,
    Part, Seq, Shapes, Time,
};
use serde::{Deserialize, Serialize};

/// A message that was emitted and that one app has to handle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Emit {
    /// Identity of the message at the app that handles it.
    pub id: MessageId,
    /// Stable name of the message's type.
    pub name: String,
    /// The encoded message.
    pub bytes: Vec<u8>,
    /// Earliest time of delivery, for a message that a timer sends; none: at once.
    pub at: Option<Time>,
    /// Whether the message goes to every cell of a dictionary, one cell after the other.
    pub is_sweep: bool,
    /// Position of the app in the chain of apps that can answer the message. None: the app does not pass it on.
    pub position: Option<u16>,
    /// The hive where the first message of the causal chain came in from outside.
    pub origin: HiveId,
    /// The sender, as the handler sees it.
    pub sender: Address,
    /// Number of messages between the first message of the causal chain and this one.
    pub hops: u16,
    /// The causal chain that the message belongs to: the number of the message from outside that began it.
    pub chain: u64,
    /// Seed of the random numbers that its handler draws.
    pub chance: u64,
}

impl Emit {
    /// Estimate of the bytes that the message takes in a record.
    pub fn size(&self) -> usize {
        const FIXED_FIELDS: usize = 128;
        FIXED_FIELDS + self.name.len() + self.bytes.len()
    }
}

/// Consumed messages of one lane: a run of `count` numbers from `seq` on, or one part of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The sender's lane.
    pub lane: LaneId,
    /// The lane's low-water mark, as its sender stated it: the sender sends nothing below it again. Zero: not stated.
    pub floor: Seq,
    /// The first number.
    pub seq: Seq,
    /// Length of the run.
    pub count: u32,
    /// As in [`MessageId::part`]. A part other than [`Part::WHOLE`] comes with a count of one only.
    pub part: Part,
}

impl Input {
    /// The consumed numbers, each with the part.
    pub fn messages(&self) -> impl Iterator<Item = (Seq, Part)> {
        (self.seq.0..self.seq.plus(self.count as u64).0).map(|seq| (Seq(seq), self.part))
    }
}

/// Cells that a sweep has visited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visited {
    /// The sweep.
    pub sweep: MessageId,
    /// The cells.
    pub cells: Vec<CellId>,
}

/// Result of a run of transactions of one bee, including that of the stateless handlers that ran as part of it.
///
/// It is complete: a follower applies it without running a handler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The app.
    pub app: AppId,
    /// The bee.
    pub bee: BeeId,
    /// Cells that the bee owns and that the log does not know to be its own yet.
    pub cells: Vec<CellId>,
    /// Messages that the bee consumed, without those that nobody would send again.
    pub inputs: Vec<Input>,
    /// Visits of sweeps that the bee handled.
    pub visits: Vec<Visited>,
    /// Changes of the bee's cells, in order: its redo log.
    pub ops: Vec<Op>,
    /// Messages emitted to journaled apps, in order.
    pub emits: Vec<Emit>,
    /// The next free number of the bee's lane.
    pub next_seq: Seq,
    /// The time that the handlers saw.
    pub now: Time,
}

/// One change of the state that a log folds to (see [`LogState`](crate::LogState)).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Record {
    /// A bee handled messages.
    Work(Work),
    /// A message was consumed without a bee: it began a sweep, or a stateless handler derived others from it.
    Admit {
        /// The app.
        app: AppId,
        /// The handler.
        handler: HandlerId,
        /// The consumed message.
        input: Input,
        /// Messages that have to be handled because of it.
        emits: Vec<Emit>,
    },
    /// A sweep advanced: it now visits these cells.
    Expand {
        /// The sweep.
        sweep: MessageId,
        /// Cells to be visited.
        cells: Vec<CellId>,
        /// Cells of earlier steps that lost their owner before they were visited. They are not visited any more.
        gone: Vec<CellId>,
        /// The first cell, in the order of [`sweep_order`], that the sweep has not reached; none: it has reached all.
        next: Option<CellId>,
    },
    /// Two bees merged: the cells of `from` now belong to `into`.
    Fuse {
        /// The app of both.
        app: AppId,
        /// The bee that ceased to exist.
        from: BeeId,
        /// The bee that has its cells.
        into: BeeId,
    },
    /// A bee gave its cells back and ceased to exist. Its sender lanes have passed every message that it had handled.
    Release {
        /// The app.
        app: AppId,
        /// The bee.
        bee: BeeId,
        /// Low-water marks of the lanes that may go on after a crash ([`LaneId::is_lasting`]). The log keeps them, since
        /// the bee no longer does.
        floors: Vec<(LaneId, Seq)>,
    },
    /// These lanes have ended: their senders never send anything again, so the log forgets what it knows of them.
    Retire {
        /// The lanes.
        lanes: Vec<LaneId>,
    },
    /// Apps have new settings.
    Settings {
        /// The settings, by app.
        settings: Vec<(AppId, LoggedSettings)>,
    },
    /// What follows in the log is encoded in these shapes.
    Shapes(Shapes),
}

/// Parts into which the cells are divided for a sweep, which visits one part after the other.
pub const SWEEP_PARTS: u64 = 64;

/// Sort key of a cell in the order in which a sweep visits the cells.
pub fn sweep_order(cell: CellId) -> (u8, CellId) {
    (((cell.0 >> 48) % SWEEP_PARTS) as u8, cell)
}

/// A record on its way into a log.
///
/// It takes effect only if `after` is the number of the last entry that did: nothing is committed that was executed on
/// top of something that was not. In Raft's words, `number` is the index of the entry and `after` the index of the
/// previous one, which the hive checks again when it applies the entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Number of this entry; used once.
    pub number: EntryNumber,
    /// Number of the entry on whose state the record was executed.
    pub after: EntryNumber,
    /// The change.
    pub record: Record,
}

impl Entry {
    /// Encodes the entry.
    ///
    /// # Panics
    ///
    /// If it takes more than [`ENCODED_BYTES_MAX`](crate::limits::ENCODED_BYTES_MAX) bytes.
    pub fn encode(&self) -> Vec<u8> {
        encode_many(self)
    }

    /// Decodes an entry that [`Entry::encode`] encoded.
    ///
    /// # Errors
    ///
    /// If the bytes are not exactly one entry.
    pub fn decode(bytes: &[u8]) -> Result<Entry, DecodeError> {
        decode("a log entry", bytes)
    }
}
