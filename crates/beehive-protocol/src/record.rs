//! The records of a log: what bees and hives write down, and the entries that carry them.

use crate::codec::{DecodeError, decode, encode_many, encode_many_into};
use crate::{
    Address, AppId, BeeId, BeeImage, CellId, CellImage, EntryNumber, Epoch, HandlerId, HiveId, LaneId,
    LoggedSettings, MessageId, Op, Part, Seq, Shapes, Time,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A message that was emitted and that one app has to handle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Emit {
    /// Identity of the message at the app that handles it.
    pub id: MessageId,
    /// Stable name of the message's type.
    pub name: String,
    /// The encoded message.
    pub bytes: Vec<u8>,
    /// Earliest time of delivery, for a message that a timer sends; `None` if the message is delivered at
    /// once.
    pub at: Option<Time>,
    /// Whether the message goes to every cell of a dictionary, one cell after the other.
    pub is_sweep: bool,
    /// Position of the app in the chain of apps that can answer the message. `None` if the app does not pass
    /// it on.
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
    /// Returns an estimate of the bytes that the message takes in a record.
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
    /// The lane's low-water mark, as its sender announced it: the sender never resends a message below it. The receiver
    /// remembers the message until the mark has passed it. `None` if the message can only come from the outbox of this
    /// log: consuming it removes it there, so it never arrives a second time.
    pub floor: Option<Seq>,
    /// The first number.
    pub seq: Seq,
    /// Length of the run.
    pub count: u32,
    /// See [`MessageId::part`]. If it is not [`Part::WHOLE`], the count is one.
    pub part: Part,
}

impl Input {
    /// Returns the consumed numbers, each with the part.
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
    /// Cells that the bee owns, and whose owner the log does not know yet.
    pub cells: Vec<CellId>,
    /// Messages that the bee consumed, except those that are never resent.
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

/// Messages that a bee handled without changing or sending anything. No record of its own says so: several runs, of
/// several bees, share a [`Record::Consumed`], or the bee's next [`Work`] lists them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consumed {
    /// The app.
    pub app: AppId,
    /// The bee.
    pub bee: BeeId,
    /// The messages.
    pub inputs: Vec<Input>,
    /// The visits of sweeps.
    pub visits: Vec<Visited>,
}

impl Consumed {
    /// Adds what the same bee handled later.
    pub fn absorb(&mut self, later: Consumed) {
        debug_assert_eq!((self.app, self.bee), (later.app, later.bee), "each bee has its own");
        self.inputs.extend(later.inputs);
        self.visits.extend(later.visits)
    }

    /// Estimate of the number of bytes that it takes in a record.
    pub fn size(&self) -> usize {
        const FIXED_FIELDS: usize = 64;
        let visits =
            self.visits.iter().map(|visited| FIXED_FIELDS + size_of_val(&*visited.cells)).sum::<usize>();
        FIXED_FIELDS + size_of_val(&*self.inputs) + visits
    }
}

/// Messages of one lane that an app of another log has handled: a run of `count` numbers from `seq` on, or one part of
/// one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acked {
    /// The app that has handled them.
    pub app: AppId,
    /// The sender's lane.
    pub lane: LaneId,
    /// The first number.
    pub seq: Seq,
    /// Length of the run.
    pub count: u32,
    /// See [`MessageId::part`]. If it is not [`Part::WHOLE`], the count is one.
    pub part: Part,
}

impl Acked {
    /// Returns the ids of the messages.
    pub fn messages(self) -> impl Iterator<Item = MessageId> {
        let Acked { app, lane, seq, count, part } = self;
        (seq.0..seq.plus(u64::from(count)).0).map(move |seq| MessageId { lane, seq: Seq(seq), part, app })
    }

    /// Adds messages that follow immediately. Returns whether they do.
    pub fn extend(&mut self, later: &Acked) -> bool {
        let follows = (self.app, self.lane, self.part, self.seq.plus(u64::from(self.count)))
            == (later.app, later.lane, later.part, later.seq);
        let count = self.count.checked_add(later.count).filter(|_| follows && self.part.is_whole());
        count.map(|count| self.count = count).is_some()
    }
}

/// One change of the state that a log folds to (see [`LogState`](crate::LogState)).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Record {
    /// Bees handled messages, in this order: everything that one or more workers did between two entries. A bee may be
    /// among them several times.
    Turn(Vec<Arc<Work>>),
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
        /// Cells of earlier steps that lost their owner before they were visited. They are no longer visited.
        gone: Vec<CellId>,
        /// The first cell, in the order of [`sweep_order`], that the sweep has not reached; `None` if it has
        /// reached all.
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
    /// A bee gave its cells back and ceased to exist. The floors of its senders' lanes are above every
    /// message that it had handled.
    Release {
        /// The app.
        app: AppId,
        /// The bee.
        bee: BeeId,
        /// Low-water marks of the lanes that may continue after a crash ([`LaneId::is_lasting`]). The log
        /// keeps them, since the bee no longer does.
        floors: Vec<(LaneId, Seq)>,
    },
    /// These lanes have ended: their senders send no more messages, so the log forgets the lanes.
    Retire {
        /// The lanes.
        lanes: Vec<LaneId>,
    },
    /// Apps have new settings.
    Settings {
        /// The settings, by app.
        settings: Vec<(AppId, LoggedSettings)>,
    },
    /// The records after this one are encoded in these shapes.
    Shapes(Shapes),
    /// Bees handled messages that had no effect. Until this is logged, such a message counts as not handled: after a
    /// crash it is handled again.
    Consumed(Vec<Consumed>),
    /// Messages of this log were handled, and the records that say so are committed in the logs of their receivers: this
    /// log need not send them again. Has no effect on the lanes of a frozen bee.
    Acked(Vec<Acked>),
    /// Cells that the sweeps of this log visited at bees of other logs. The records of the visits are committed there.
    Visited(Vec<Visited>),
    /// A bee is about to move to another log. From here on it handles nothing, and its outbox stays as it is.
    Freeze {
        /// The app.
        app: AppId,
        /// The bee.
        bee: BeeId,
        /// Its own lane, and the lanes of bees that merged into it and have messages in the outbox.
        lanes: Vec<LaneId>,
    },
    /// A part of a bee that is frozen in another log. This log keeps it, and does nothing with it yet.
    Stage {
        /// The app.
        app: AppId,
        /// The bee.
        bee: BeeId,
        /// The number of moves that the bee will have made.
        epoch: Epoch,
        /// The part. The first one is a [`StagePart::Bee`].
        part: StagePart,
    },
    /// All parts of a bee are staged: from here on it is a bee of this log. This decides the move.
    Adopt {
        /// The app.
        app: AppId,
        /// The bee.
        bee: BeeId,
        /// The number of moves that the bee has made.
        epoch: Epoch,
    },
    /// A move to this log was given up: what is staged of the bee is forgotten.
    Unstage {
        /// The app.
        app: AppId,
        /// The bee.
        bee: BeeId,
    },
    /// A frozen bee has moved: another log has adopted it, and this one forgets it, with its outbox.
    Drop {
        /// The app.
        app: AppId,
        /// The bee.
        bee: BeeId,
    },
    /// A frozen bee stays: its move was given up.
    Thaw {
        /// The app.
        app: AppId,
        /// The bee.
        bee: BeeId,
    },
}

/// A part of a bee that moves from one log to another. A bee may be larger than an entry, so it moves in parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum StagePart {
    /// Everything but the contents of its cells and the outbox.
    Bee(Box<BeeImage>),
    /// Some of its rows. Rows of one cell may be in several parts.
    Rows(Vec<CellImage>),
    /// Some of the messages in its outbox, in the order in which they were emitted.
    Outbox(Vec<Emit>),
}

/// Number of parts into which the cells are divided for a sweep, which visits one part after the other.
pub const SWEEP_PARTS: u64 = 64;

/// Returns the sort key of a cell in the order in which a sweep visits the cells.
pub fn sweep_order(cell: CellId) -> (u8, CellId) {
    (((cell.0 >> 48) % SWEEP_PARTS) as u8, cell)
}

/// A record with its position in the log.
///
/// It takes effect only if `after` is the number of the last entry that took effect. A record that was
/// executed on top of a dead entry is therefore dead, too. In Raft's words, `number` is the index of the
/// entry and `after` the index of the previous one, which the hive checks again when it applies the entry.
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
    /// Panics if it takes more than [`ENCODED_BYTES_MAX`](crate::limits::ENCODED_BYTES_MAX) bytes.
    pub fn encode(&self) -> Vec<u8> {
        encode_many(self)
    }

    /// Appends the encoded entry to a buffer.
    ///
    /// # Panics
    ///
    /// See [`Entry::encode`].
    pub fn encode_into(&self, bytes: &mut Vec<u8>) {
        encode_many_into(self, bytes)
    }

    /// Decodes an entry that [`Entry::encode`] encoded.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are not exactly one entry.
    pub fn decode(bytes: &[u8]) -> Result<Entry, DecodeError> {
        decode("a log entry", bytes)
    }
}
