//! The seam to a colony: commit records as data, a journal that takes them, and the state that a log folds to.
//!
//! A bee of a journaled app goes on executing while its records are on their way; what a record lets out (messages,
//! answers, timers) is held until the journal says that it is committed. When an append is refused, everything executed
//! since then is forgotten and run again from the committed state.

use crate::cell::{BeeId, CellId};
use crate::state::image::{DecodeError, EncodedCells, Op, decode, encode};
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A message as a fact: the lane of its sender, its number there, and the app it goes to. True for ever, wherever.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Fact {
    /// The sender's number line.
    pub lane: u64,
    /// The message's number in it.
    pub seq: u64,
    /// The app, by its number.
    pub app: u16,
}

/// A message that a transaction emitted.
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
    /// Messages between the one from outside and this.
    pub hops: u16,
}

/// What a run of transactions of one bee did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The app, by its number.
    pub app: u16,
    /// The bee.
    pub bee: BeeId,
    /// The cells it owns.
    pub cells: Vec<CellId>,
    /// The messages it consumed; those that nobody would send again are left out.
    pub inputs: Vec<Fact>,
    /// What it changed.
    pub ops: Vec<Op>,
    /// What it emitted to journaled apps.
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
    /// The cells of `from` are now with `into`.
    Fuse {
        /// The app.
        app: u16,
        /// The bee that is no more.
        from: BeeId,
        /// The bee that has its cells.
        into: BeeId,
    },
    /// The bee has given its cells back.
    Release {
        /// The app.
        app: u16,
        /// The bee that is no more.
        bee: BeeId,
    },
}

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

/// Where a colony's records go.
pub trait Journal: Send + Sync + 'static {
    /// Takes an entry. In the order of their numbers; must not call back before it returns.
    fn append(&self, entry: Entry);
    /// Tells whom to call back.
    fn attach(&self, events: Arc<dyn JournalEvents>);
}

/// What a journal tells its hive.
pub trait JournalEvents: Send + Sync {
    /// All entries up to and including `upto` are committed.
    fn released(&self, upto: u64);
    /// No entry after `last` took effect, and none appended so far ever will.
    fn aborted(&self, last: u64);
}

/// One bee as a log describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeeImage {
    /// The cells it owns.
    pub cells: BTreeSet<CellId>,
    /// What is in them.
    pub state: EncodedCells,
    /// The number that its lane goes on with.
    pub next_seq: u64,
    /// The time its handlers saw last.
    pub now: Time,
}

/// What a log of a colony folds to: the bees, the messages that are still to be handled, and those from outside that
/// have been.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Colony {
    /// Number of the last entry that took effect.
    pub last: u64,
    /// The bees, by app and number.
    pub bees: BTreeMap<(u16, BeeId), BeeImage>,
    /// Messages between bees that have been emitted and not been handled.
    pub outbox: BTreeMap<Fact, Emit>,
    /// Messages from outside that have been handled.
    pub seen: BTreeSet<Fact>,
}

impl Colony {
    /// Applies an entry. Whether it took effect.
    pub fn apply(&mut self, entry: &Entry) -> bool {
        if entry.after != self.last {
            return false;
        }
        self.last = entry.number;
        match &entry.record {
            Record::Work(work) => self.work(work),
            Record::Fuse { app, from, into } => {
                if let Some(gone) = self.bees.remove(&(*app, *from)) {
                    let target = self.bees.entry((*app, *into)).or_default();
                    target.cells.extend(gone.cells);
                    target.state.absorb(gone.state);
                    target.now = target.now.max(gone.now);
                }
            }
            Record::Release { app, bee } => {
                self.bees.remove(&(*app, *bee));
            }
        }
        true
    }

    fn work(&mut self, work: &Work) {
        let bee = self.bees.entry((work.app, work.bee)).or_default();
        bee.cells.extend(work.cells.iter().copied());
        work.ops.iter().for_each(|op| bee.state.apply(op));
        bee.next_seq = bee.next_seq.max(work.next_seq);
        bee.now = bee.now.max(work.now);
        for fact in &work.inputs {
            if self.outbox.remove(fact).is_none() {
                self.seen.insert(*fact);
            }
        }
        for emit in &work.emits {
            self.outbox.insert(emit.fact, emit.clone());
        }
    }

    /// The colony that the bytes of a log describe. Entries that took no effect are passed over.
    pub fn replay<'a>(log: impl IntoIterator<Item = &'a [u8]>) -> Result<Colony, DecodeError> {
        let mut colony = Colony::default();
        for bytes in log {
            colony.apply(&decode("a log entry", bytes)?);
        }
        Ok(colony)
    }
}

impl Entry {
    /// The entry as bytes.
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }
}
