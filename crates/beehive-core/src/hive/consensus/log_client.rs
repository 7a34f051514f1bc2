//! A hive's end of its journal: numbers entries, and knows which of them are committed and which are dead.

use crate::hive::admission::outside_lanes::{Lanes, OutsideLane};
use crate::hive::consensus::journal::{
    Entry, EntryNumber, Journal, JournalEvents, LaneId, LogState, Record, Seq,
};
use crate::hive::consensus::quarantine::Quarantine;
use crate::hive::consensus::without_bee::WithoutBee;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::oneshot;

enum Undecided<W: ?Sized> {
    Bee(Arc<W>),
    /// Said until it is committed.
    Said(Record, oneshot::Sender<()>),
}

struct State<W: ?Sized> {
    next: EntryNumber,
    /// Number of the entry that the next one is executed on.
    last: EntryNumber,
    released: EntryNumber,
    /// Ranges of numbers that never took effect: first, and one past the last.
    dead: Vec<(EntryNumber, EntryNumber)>,
    undecided: BTreeMap<EntryNumber, Undecided<W>>,
}

/// The fate of an entry so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Open,
    Committed,
    Dead,
}

impl<W: ?Sized> State<W> {
    fn fate(&self, number: EntryNumber) -> Fate {
        if self.dead.iter().any(|(first, end)| (*first..*end).contains(&number)) {
            Fate::Dead
        } else if number <= self.released {
            Fate::Committed
        } else {
            Fate::Open
        }
    }

    fn number(&mut self, record: Record) -> Entry {
        self.next = self.next.next();
        let entry = Entry { number: self.next, after: self.last, record };
        self.last = self.next;
        entry
    }

    /// Says something, from now on until it is committed.
    fn say(&mut self, record: Record, committed: oneshot::Sender<()>) -> Entry {
        let entry = self.number(record.clone());
        self.undecided.insert(entry.number, Undecided::Said(record, committed));
        entry
    }

    /// Of the entries that somebody looks after, those that have met their fate, in order.
    fn decided(&self) -> Vec<(EntryNumber, Fate)> {
        let end = self.dead.last().map_or(EntryNumber(0), |(_, end)| *end).max(self.released.next());
        let fates = self.undecided.range(..end).map(|(number, _)| (*number, self.fate(*number)));
        fates.filter(|(_, fate)| *fate != Fate::Open).collect()
    }

    /// A range is of interest as long as somebody has an entry in it.
    fn forget_dead(&mut self) {
        let oldest = self.undecided.first_key_value().map_or(EntryNumber(u64::MAX), |(number, _)| *number);
        self.dead.retain(|(_, end)| *end > oldest);
    }
}

/// `W`: those who have entries on their way.
pub(crate) struct LogClient<W: ?Sized> {
    journal: Arc<dyn Journal>,
    state: Mutex<State<W>>,
    /// Of those outside.
    pub(crate) lanes: Lanes,
    pub(crate) without_bee: WithoutBee,
    pub(crate) quarantine: Quarantine,
    /// The lane of those who emit or ask through the hive itself.
    pub(crate) own_lane: Arc<OutsideLane>,
    /// Goes up whenever the fate of an entry has changed.
    version: AtomicU64,
}

impl<W: ?Sized> LogClient<W> {
    /// Goes on where `colony` is; `chance` makes the hive's own lane.
    pub(crate) fn new(journal: Arc<dyn Journal>, colony: &LogState, chance: u64) -> Arc<LogClient<W>> {
        let last = colony.last;
        let state = State { next: last, last, released: last, dead: Vec::new(), undecided: BTreeMap::new() };
        let lanes = Lanes::new(lasting_lanes(colony));
        Arc::new(LogClient {
            quarantine: Quarantine::new(journal.clone(), colony),
            journal,
            state: Mutex::new(state),
            own_lane: lanes.open(chance),
            lanes,
            without_bee: WithoutBee::new(colony.seen.clone()),
            version: AtomicU64::new(0),
        })
    }

    /// Names who is called back by the journal.
    pub(crate) fn attach(&self, events: Arc<dyn JournalEvents>) {
        self.journal.attach(events)
    }

    /// All entries up to and including `upto` are committed. Returns those whose entries were decided.
    pub(crate) fn released(&self, upto: EntryNumber) -> Vec<Arc<W>> {
        self.decide(|state| {
            debug_assert!(
                upto <= state.next,
                "the journal released {upto:?}, but only {:?} is appended",
                state.next
            );
            state.released = state.released.max(upto)
        })
    }

    /// No entry after `last` took effect, and none appended so far ever will. Returns those whose entries were decided.
    pub(crate) fn aborted(&self, last: EntryNumber) -> Vec<Arc<W>> {
        self.decide(|state| {
            if last < state.next {
                state.dead.push((last.next(), state.next.next()));
                state.last = last;
            }
        })
    }

    fn decide(&self, decide: impl FnOnce(&mut State<W>)) -> Vec<Arc<W>> {
        let mut decided = Vec::new();
        let mut state = self.state.lock();
        decide(&mut state);
        // under the lock: who is refused because of it finds that there is something to look at
        self.version.fetch_add(1, Ordering::Release);
        for (number, fate) in state.decided() {
            if let Some(Undecided::Bee(bee)) = state.undecided.get(&number) {
                // stays until the bee has taken note
                decided.push(bee.clone());
                continue;
            }
            match (state.undecided.remove(&number), fate) {
                (Some(Undecided::Said(record, committed)), Fate::Dead) => {
                    let again = state.say(record, committed);
                    // under the lock: nobody comes before it who did not before
                    self.journal.append(again)
                }
                (Some(Undecided::Said(_, committed)), _) => {
                    let _ = committed.send(());
                }
                _ => {}
            }
        }
        state.forget_dead();
        decided
    }

    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Appends what a bee did, unless one of the entries that it was executed on is dead.
    pub(crate) fn append(
        &self,
        bee: Arc<W>,
        undecided: &[EntryNumber],
        record: Record,
    ) -> Option<EntryNumber> {
        let mut state = self.state.lock();
        if undecided.iter().any(|number| state.fate(*number) == Fate::Dead) {
            return None;
        }
        let entry = state.number(record);
        let number = entry.number;
        state.undecided.insert(number, Undecided::Bee(bee));
        // under the lock, so that the journal sees the numbers in order
        self.journal.append(entry);
        Some(number)
    }

    /// Appends a record that rests on no entry before it, and again whenever it is refused: before anything that is appended
    /// after it, and behind what was said before. Tells when it is committed; nothing if the hive is gone.
    pub(crate) fn say(&self, record: Record) -> oneshot::Receiver<()> {
        let (committed, told) = oneshot::channel();
        let mut state = self.state.lock();
        let entry = state.say(record, committed);
        self.journal.append(entry);
        told
    }

    /// As [`LogClient::say`]; completes when it is committed, or the hive is gone.
    pub(crate) async fn commit(&self, record: Record) {
        let _ = self.say(record).await;
    }

    /// The fates of entries; those that are decided are forgotten.
    pub(crate) fn fates(&self, numbers: impl Iterator<Item = EntryNumber>) -> Vec<Fate> {
        let mut state = self.state.lock();
        let fates: Vec<Fate> = numbers
            .map(|number| {
                let fate = state.fate(number);
                if fate != Fate::Open {
                    state.undecided.remove(&number);
                }
                fate
            })
            .collect();
        state.forget_dead();
        fates
    }
}

/// The lanes of outside that may be gone on with, and their floors.
pub(crate) fn lasting_lanes(colony: &LogState) -> BTreeMap<LaneId, Seq> {
    let mut lanes = BTreeMap::new();
    for (lane, floor) in colony.seen.floors().chain(colony.bees.values().flat_map(|bee| bee.seen.floors())) {
        if lane.is_lasting() {
            let known: &mut Seq = lanes.entry(lane).or_default();
            *known = floor.max(*known)
        }
    }
    lanes
}
