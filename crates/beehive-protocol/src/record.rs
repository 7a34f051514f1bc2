//! The records of a log.

use crate::codec::{DecodeError, decode, encode_many};
use crate::{Address, BeeId, CellId, Fact, HiveId, LoggedSettings, Op, Shapes, Time};
use serde::{Deserialize, Serialize};

/// A message that was emitted and has to be handled by one app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Emit {
    /// What identifies it.
    pub fact: Fact,
    /// Stable name of its type.
    pub name: String,
    /// The message.
    pub bytes: Vec<u8>,
    /// Not before this moment.
    pub at: Option<Time>,
    /// It goes to every cell of a dictionary, each in its turn.
    pub is_sweep: bool,
    /// Where in the chain of those that can answer it is; none: it is not passed on.
    pub position: Option<u16>,
    /// The hive where the chain of messages came in from outside.
    pub origin: HiveId,
    /// Who sent it.
    pub sender: Address,
    /// Messages between the one from outside and this.
    pub hops: u16,
    /// The chain of causes that it belongs to: the number of the message from outside that began it.
    pub chain: u64,
    /// What chance is derived from when it is handled.
    pub chance: u64,
}

impl Emit {
    /// About what it takes in a record.
    pub fn size(&self) -> usize {
        const BESIDES: usize = 128;
        BESIDES + self.name.len() + self.bytes.len()
    }
}

/// Messages of one lane that were consumed: `count` numbers from `seq` on, or one part of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The sender's number line.
    pub lane: u64,
    /// Below it, says the sender, all are done: of what is there nothing will be sent again. Zero: it says nothing.
    pub floor: u64,
    /// The first number.
    pub seq: u64,
    /// So many numbers in a row.
    pub count: u32,
    /// As in [`Fact::part`]; not zero only with a count of one.
    pub part: u64,
}

impl Input {
    /// The numbers, and the part.
    pub fn messages(&self) -> impl Iterator<Item = (u64, u64)> {
        (self.seq..self.seq.saturating_add(self.count as u64)).map(|seq| (seq, self.part))
    }
}

/// Cells that a bee had its turn at a sweep for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visited {
    /// The sweep.
    pub sweep: Fact,
    /// The cells.
    pub cells: Vec<CellId>,
}

/// What a run of transactions of one bee did, the stateless handlers included that ran because of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The app, by its number.
    pub app: u16,
    /// The bee.
    pub bee: BeeId,
    /// The cells it owns; those that the log knows of are left out.
    pub cells: Vec<CellId>,
    /// The messages it consumed; those that nobody would send again are left out.
    pub inputs: Vec<Input>,
    /// The turns at sweeps that it took.
    pub visits: Vec<Visited>,
    /// What it changed.
    pub ops: Vec<Op>,
    /// What it emitted to journaled apps, in order.
    pub emits: Vec<Emit>,
    /// The number that its lane goes on with.
    pub next_seq: u64,
    /// The time its handlers saw.
    pub now: Time,
}

/// Something that happened in a colony.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Record {
    /// A bee has worked.
    Work(Work),
    /// A message was consumed without a bee: it began a sweep, or a stateless handler made others of it.
    Admit {
        /// The app, by its number.
        app: u16,
        /// The handler, by its number.
        handler: u16,
        /// The message.
        input: Input,
        /// What is to be handled because of it.
        emits: Vec<Emit>,
    },
    /// A sweep has gone on: these cells have their turn now.
    Expand {
        /// The sweep.
        sweep: Fact,
        /// The cells whose turn it is.
        cells: Vec<CellId>,
        /// Cells whose turn it was, and which nobody owned any more.
        gone: Vec<CellId>,
        /// The first cell, in the order of [`sweep_order`], that the sweep has not reached; none: it has reached all.
        next: Option<CellId>,
    },
    /// The cells of `from` are now with `into`.
    Fuse {
        /// The app.
        app: u16,
        /// The bee that is no more.
        from: BeeId,
        /// The bee that has its cells.
        into: BeeId,
    },
    /// The bee has given its cells back. Everything that it has seen is below these floors.
    Release {
        /// The app.
        app: u16,
        /// The bee that is no more.
        bee: BeeId,
        /// Of lanes that may be gone on with: lane and floor.
        floors: Vec<(u64, u64)>,
    },
    /// Nothing will ever come on these lanes again.
    Retire {
        /// The lanes.
        lanes: Vec<u64>,
    },
    /// Apps have other settings.
    Settings {
        /// The apps, by number, and what they have now.
        settings: Vec<(u16, LoggedSettings)>,
    },
    /// What is written from here on is encoded like this.
    Shapes(Shapes),
}

/// The order in which a sweep goes through the cells.
pub fn sweep_order(cell: CellId) -> (u8, CellId) {
    (((cell.0 >> 48) % SWEEP_PARTS) as u8, cell)
}

/// Parts that the cells are divided into; a sweep goes through one after the other.
pub const SWEEP_PARTS: u64 = 64;

/// A record on its way into a log. It takes effect only if `after` is the number of the last one that did: so nothing
/// can be committed that was executed on something that was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Used once.
    pub number: u64,
    /// Number of the entry before it when it was executed.
    pub after: u64,
    /// What happened.
    pub record: Record,
}

impl Entry {
    /// The entry as bytes.
    pub fn encode(&self) -> Vec<u8> {
        encode_many(self)
    }

    /// The entry that [`Entry::encode`] made bytes of.
    pub fn decode(bytes: &[u8]) -> Result<Entry, DecodeError> {
        decode("a log entry", bytes)
    }
}
