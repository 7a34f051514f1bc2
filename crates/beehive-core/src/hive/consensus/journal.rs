//! The seam to a colony: commit records as data, a journal that takes them, and the state that a log folds to.
//!
//! A bee of a journaled app goes on executing while its records are on their way; what a record lets out (messages,
//! answers, timers) is held until the journal says that it is committed. When an append is refused, everything executed
//! since then is forgotten and run again from the committed state.

use crate::cell::{BeeId, CellId, HiveId};
use crate::hive::admission::outside_lanes::{is_lasting, lane_of};
pub use crate::hive::consensus::seen::Seen;
pub use crate::hive::consensus::shapes::{AppShapes, Shapes};
use crate::hive::message::batch::Address;
pub use crate::hive::settings::LoggedSettings;
use crate::key::CellHasher;
use crate::state::image::{DecodeError, EncodedCells, Op, decode, encode_many};
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
    /// Which of the messages that were made of that number without a record of their own; zero: the message itself.
    pub part: u64,
    /// The app, by its number.
    pub app: u16,
}

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
    pub(crate) fn size(&self) -> usize {
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
    pub(crate) fn messages(&self) -> impl Iterator<Item = (u64, u64)> {
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

/// A message that may end the process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Suspect {
    /// The message, or the sweep.
    pub fact: Fact,
    /// Of a sweep: the cell whose turn it is.
    pub cell: Option<CellId>,
}

/// What a life of a hive leaves for the next one, should it end without a word.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// A message that is being run. Only messages that a life left unfinished which did not end well are noted.
    pub running: Option<Suspect>,
    /// Messages that ended the process when they were run, and are not run again.
    pub set_aside: Vec<Suspect>,
}

/// Where a colony's records go.
///
/// One that keeps marks, too, makes the hive safe from messages that end the process: such a message is set aside, as a
/// dead letter, by the third life that has it.
pub trait Journal: Send + Sync + 'static {
    /// Takes an entry. In the order of their numbers; must not call back before it returns.
    fn append(&self, entry: Entry);
    /// Tells whom to call back.
    fn attach(&self, events: Arc<dyn JournalEvents>);
    /// Keeps a mark instead of the one before; none: the hive has ended well.
    ///
    /// It must be there for the next life if the process ends the moment that this returns. It need not outlast the machine:
    /// a `write` will do, without `fsync`. Called when a hive begins and ends, and, in a life after one that did not end
    /// well, twice for each message that was unfinished.
    fn mark(&self, _mark: Option<&Mark>) {}
    /// The mark that the life before kept last. None: it ended well, there was none, or no marks are kept.
    fn marked(&self) -> Option<Mark> {
        None
    }
}

/// What a journal tells its hive. It must not hold meanwhile what its own `append` needs.
pub trait JournalEvents: Send + Sync {
    /// All entries up to and including `upto` are committed.
    fn released(&self, upto: u64);
    /// No entry after `last` took effect, and none appended so far ever will. Others are appended before it returns.
    fn aborted(&self, last: u64);
}

/// One bee as a log describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeeImage {
    /// The cells it owns.
    pub cells: BTreeSet<CellId>,
    /// What is in them.
    pub state: EncodedCells,
    /// The messages from elsewhere that it has handled.
    pub seen: Seen,
    /// The number that its lane goes on with.
    pub next_seq: u64,
    /// The time its handlers saw last.
    pub now: Time,
    /// Lanes of bees that have merged into it, on which something was not handled when one last did.
    pub heir_of: BTreeSet<u64>,
}

/// A message that has been emitted and not been handled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Its place in the order in which everything of the colony was emitted.
    pub order: u64,
    /// The message.
    pub emit: Emit,
}

/// A sweep that is not over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    /// The message that every cell has a turn at.
    pub waiting: Waiting,
    /// The first cell, in the order of [`sweep_order`], that it has not reached; none: it has reached all.
    pub next: Option<CellId>,
    /// The cells that it has reached and that have not had their turn.
    pub open: BTreeSet<CellId>,
}

/// What a log of a colony folds to: the bees, the messages that are still to be handled, the sweeps that go on, and what
/// has been handled without a bee.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Colony {
    /// Number of the last entry that took effect.
    pub last: u64,
    /// The bees, by app and number.
    pub bees: BTreeMap<(u16, BeeId), BeeImage>,
    /// Messages that have been emitted and not been handled.
    pub outbox: BTreeMap<Fact, Waiting>,
    /// Sweeps that have begun and are not over.
    pub sweeps: BTreeMap<Fact, Sweep>,
    /// Messages emitted so far.
    pub emitted: u64,
    /// Of the lanes that may be gone on with from outside: their floors, and what was consumed without a bee.
    pub seen: Seen,
    /// What apps were set to last, by number.
    pub settings: BTreeMap<u16, LoggedSettings>,
    /// What everything in it is encoded like.
    pub shapes: Shapes,
}

/// How something that was consumed without a bee is remembered: several handlers may consume the same message.
pub(crate) fn part_for(part: u64, app: u16, handler: u16) -> u64 {
    let mut hasher = CellHasher::new(part);
    hasher.word(((handler as u64) << 16) | app as u64);
    hasher.finish()
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
            Record::Admit { app, handler, input, emits } => {
                let mut others = Seen::default();
                for (seq, part) in input.messages() {
                    let fact = Fact { lane: input.lane, seq, part, app: *app };
                    if self.outbox.remove(&fact).is_none() && is_lasting(input.lane) {
                        others.insert(input.lane, seq, part_for(part, *app, *handler))
                    }
                }
                self.seen.absorb(others);
                self.state_floor(input);
                self.emitted(emits)
            }
            Record::Expand { sweep, cells, gone, next } => {
                if let Some(open) = self.sweeps.get_mut(sweep) {
                    open.open.extend(cells.iter().copied());
                    gone.iter().for_each(|cell| {
                        open.open.remove(cell);
                    });
                    open.next = *next;
                }
                self.close(sweep)
            }
            Record::Fuse { app, from, into } => {
                if let Some(gone) = self.bees.remove(&(*app, *from)) {
                    let target_lanes =
                        self.bees.get_mut(&(*app, *into)).map(|bee| std::mem::take(&mut bee.heir_of));
                    let lanes = gone.heir_of.into_iter().chain(target_lanes.into_iter().flatten());
                    let lanes =
                        lanes.chain([lane_of(*app, *from)]).filter(|lane| self.is_waited_on(*lane)).collect();
                    let target = self.bees.entry((*app, *into)).or_default();
                    target.cells.extend(gone.cells);
                    target.state.absorb(gone.state);
                    target.seen.absorb(gone.seen);
                    target.now = target.now.max(gone.now);
                    target.heir_of = lanes
                }
            }
            Record::Release { app, bee, floors } => {
                self.bees.remove(&(*app, *bee));
                floors.iter().for_each(|(lane, floor)| self.seen.raise(*lane, *floor))
            }
            Record::Shapes(shapes) => self.shapes = shapes.clone(),
            Record::Retire { lanes } => {
                for seen in self.bees.values_mut().map(|bee| &mut bee.seen).chain([&mut self.seen]) {
                    lanes.iter().for_each(|lane| seen.forget(*lane))
                }
            }
            Record::Settings { settings } => {
                for (app, new) in settings {
                    let known = self.settings.entry(*app).or_default();
                    // two that began at once may come in either order
                    if new.version > known.version {
                        known.clone_from(new)
                    }
                }
            }
        }
        true
    }

    /// Whether something that was sent on a lane is still to be handled.
    fn is_waited_on(&self, lane: u64) -> bool {
        let (first, last) = (
            Fact { lane, seq: 0, part: 0, app: 0 },
            Fact { lane, seq: u64::MAX, part: u64::MAX, app: u16::MAX },
        );
        self.outbox.range(first..=last).next().is_some() || self.sweeps.range(first..=last).next().is_some()
    }

    fn work(&mut self, work: &Work) {
        let bee = self.bees.entry((work.app, work.bee)).or_default();
        bee.cells.extend(work.cells.iter().copied());
        work.ops.iter().for_each(|op| bee.state.apply(op));
        bee.next_seq = bee.next_seq.max(work.next_seq);
        bee.now = bee.now.max(work.now);
        for input in &work.inputs {
            for (seq, part) in input.messages() {
                let fact = Fact { lane: input.lane, seq, part, app: work.app };
                // what is in this log is consumed by the entry that takes it out
                if self.outbox.remove(&fact).is_none() {
                    bee.seen.insert(input.lane, seq, part);
                }
            }
            bee.seen.raise(input.lane, input.floor);
        }
        work.inputs.iter().for_each(|input| self.state_floor(input));
        for visited in &work.visits {
            if let Some(sweep) = self.sweeps.get_mut(&visited.sweep) {
                visited.cells.iter().for_each(|cell| {
                    sweep.open.remove(cell);
                })
            }
            self.close(&visited.sweep)
        }
        self.emitted(&work.emits)
    }

    /// The floor of a lane that may be gone on with is remembered also where no bee does.
    fn state_floor(&mut self, input: &Input) {
        if is_lasting(input.lane) {
            self.seen.raise(input.lane, input.floor)
        }
    }

    fn emitted(&mut self, emits: &[Emit]) {
        for emit in emits {
            self.emitted += 1;
            let waiting = Waiting { order: self.emitted, emit: emit.clone() };
            if emit.is_sweep {
                let sweep = Sweep { waiting, next: Some(CellId(0)), open: BTreeSet::new() };
                self.sweeps.insert(emit.fact, sweep);
            } else {
                self.outbox.insert(emit.fact, waiting);
            }
        }
    }

    /// Forgets a sweep that is over.
    fn close(&mut self, sweep: &Fact) {
        if self.sweeps.get(sweep).is_some_and(|sweep| sweep.next.is_none() && sweep.open.is_empty()) {
            self.sweeps.remove(sweep);
        }
    }

    /// The colony that the bytes of a log describe. Entries that took no effect are passed over.
    pub fn replay<'a>(log: impl IntoIterator<Item = &'a [u8]>) -> Result<Colony, DecodeError> {
        let mut colony = Colony::default();
        for bytes in log {
            colony.apply(&Entry::decode(bytes)?);
        }
        Ok(colony)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn emit(bee: u64, seq: u64) -> Emit {
        let fact = Fact { lane: lane_of(0, BeeId(bee)), seq, part: 0, app: 1 };
        let (origin, sender) = (HiveId(0), Address::App(0));
        let (name, bytes) = ("a message".to_string(), Vec::new());
        Emit {
            fact,
            name,
            bytes,
            at: None,
            is_sweep: false,
            position: None,
            origin,
            sender,
            hops: 0,
            chain: 0,
            chance: 0,
        }
    }

    fn work(bee: u64, emits: Vec<Emit>, inputs: Vec<Input>, app: u16) -> Record {
        let (cells, visits, ops) = (vec![CellId(bee)], Vec::new(), Vec::new());
        Record::Work(Work {
            app,
            bee: BeeId(bee),
            cells,
            inputs,
            visits,
            ops,
            emits,
            next_seq: 9,
            now: Time::ZERO,
        })
    }

    /// A bee takes over the lanes of those that have merged into it, and of those that had merged into them, as long as
    /// something that was sent there is not handled.
    #[test]
    fn lanes_are_inherited_while_something_waits_there() {
        let mut colony = Colony::default();
        let mut apply = |record| {
            let (number, after) = (colony.last + 1, colony.last);
            assert!(colony.apply(&Entry { number, after, record }));
            colony.clone()
        };
        for bee in 1..=4 {
            apply(work(bee, if bee == 3 { Vec::new() } else { vec![emit(bee, 0)] }, Vec::new(), 0));
        }
        let fuse = |from, into| Record::Fuse { app: 0, from: BeeId(from), into: BeeId(into) };
        let heirs = |colony: &Colony, bee| colony.bees[&(0, BeeId(bee))].heir_of.clone();
        let lanes = |bees: &[u64]| bees.iter().map(|bee| lane_of(0, BeeId(*bee))).collect::<BTreeSet<_>>();
        assert_eq!(heirs(&apply(fuse(1, 2)), 2), lanes(&[1]));
        assert_eq!(heirs(&apply(fuse(3, 4)), 4), lanes(&[]), "nothing waits there");
        assert_eq!(heirs(&apply(fuse(2, 4)), 4), lanes(&[1, 2]));
        // what the first had sent is handled
        let input = Input { lane: lane_of(0, BeeId(1)), floor: 0, seq: 0, count: 1, part: 0 };
        apply(work(9, Vec::new(), vec![input], 1));
        apply(work(5, Vec::new(), Vec::new(), 0));
        assert_eq!(heirs(&apply(fuse(5, 4)), 4), lanes(&[2]));
    }

    /// Those that a hive begins with and those that somebody gives it at once may be written in either order.
    #[test]
    fn the_newest_settings_stay() {
        let of = |version, table: &str| (0, LoggedSettings { version, table: table.into() });
        let mut colony = Colony::default();
        for (number, settings) in [(1, of(2, "a = 2")), (2, of(1, "a = 1"))] {
            let record = Record::Settings { settings: vec![settings] };
            assert!(colony.apply(&Entry { number, after: number - 1, record }));
        }
        assert_eq!(colony.settings[&0], of(2, "a = 2").1);
    }
}
