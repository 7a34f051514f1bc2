//! The hive's side of its journal: numbers entries, and tracks which of them are committed and which are
//! dead.

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

/// An entry whose fate the hive has not processed yet.
enum Undecided<W: ?Sized> {
    /// The record of a bee. The bee is woken when the entry is decided, and executes the run again if it is
    /// dead.
    Bee(Arc<W>),
    /// A record of the hive itself, which is appended again until it is committed.
    Said(Record, oneshot::Sender<()>),
}

struct State<W: ?Sized> {
    /// The number of the newest entry, dead ones included.
    next: EntryNumber,
    /// The number of the newest entry that is not dead: the next one is executed on it.
    last: EntryNumber,
    /// The commit index: all entries up to it are committed, except those in `dead`.
    released: EntryNumber,
    /// Ranges of entries that never took effect: the first number, and the last plus one.
    dead: Vec<(EntryNumber, EntryNumber)>,
    /// The entries in flight, and the decided ones whose bee has not asked for their fate yet.
    undecided: BTreeMap<EntryNumber, Undecided<W>>,
}

/// The fate of an entry so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// The journal has not decided yet.
    Open,
    /// The entry is committed.
    Committed,
    /// The entry never takes effect.
    Dead,
}

impl<W: ?Sized> State<W> {
    /// Returns the fate of an entry. Dead ranges come first, because `released` may pass them later.
    fn fate(&self, number: EntryNumber) -> Fate {
        if self.dead.iter().any(|(first, end)| (*first..*end).contains(&number)) {
            Fate::Dead
        } else if number <= self.released {
            Fate::Committed
        } else {
            Fate::Open
        }
    }

    /// Makes a record the next entry.
    fn number(&mut self, record: Record) -> Entry {
        self.next = self.next.next();
        let entry = Entry { number: self.next, after: self.last, record };
        self.last = self.next;
        entry
    }

    /// Makes a record of the hive itself the next entry. It is appended again each time it dies.
    fn say(&mut self, record: Record, committed: oneshot::Sender<()>) -> Entry {
        let entry = self.number(record.clone());
        self.undecided.insert(entry.number, Undecided::Said(record, committed));
        entry
    }

    /// Returns the entries in `undecided` that are committed or dead, in order.
    fn decided(&self) -> Vec<(EntryNumber, Fate)> {
        let end = self.dead.last().map_or(EntryNumber(0), |(_, end)| *end).max(self.released.next());
        let fates = self.undecided.range(..end).map(|(number, _)| (*number, self.fate(*number)));
        fates.filter(|(_, fate)| *fate != Fate::Open).collect()
    }

    /// Removes the dead ranges that end before the oldest entry in `undecided`.
    fn forget_dead(&mut self) {
        let oldest = self.undecided.first_key_value().map_or(EntryNumber(u64::MAX), |(number, _)| *number);
        self.dead.retain(|(_, end)| *end > oldest);
    }
}

/// The client through which a hive uses its journal. `W` is the type of a bee with entries in flight.
pub(crate) struct LogClient<W: ?Sized> {
    journal: Arc<dyn Journal>,
    state: Mutex<State<W>>,
    /// The lanes of senders outside.
    pub(crate) lanes: Lanes,
    /// The dedup table for messages that no bee consumes.
    pub(crate) without_bee: WithoutBee,
    /// Messages that may have ended the process before this one.
    pub(crate) quarantine: Quarantine,
    /// The lane of messages that are emitted through the [`Hive`](crate::Hive) itself.
    pub(crate) own_lane: Arc<OutsideLane>,
    /// Incremented whenever the fate of entries has changed.
    version: AtomicU64,
}

impl<W: ?Sized> LogClient<W> {
    /// Continues where `colony` ends. `chance` is the random id of the hive's own lane.
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

    /// Sets the object that the journal reports to.
    pub(crate) fn attach(&self, events: Arc<dyn JournalEvents>) {
        self.journal.attach(events)
    }

    /// Notes that all entries up to and including `upto` are committed. Returns the bees whose entries are
    /// decided.
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

    /// Notes that all entries after `last` that have been appended so far are dead. Returns the bees whose
    /// entries are decided.
    pub(crate) fn aborted(&self, last: EntryNumber) -> Vec<Arc<W>> {
        self.decide(|state| {
            if last < state.next {
                state.dead.push((last.next(), state.next.next()));
                state.last = last;
            }
        })
    }

    /// Applies a decision of the journal to the entries in flight.
    fn decide(&self, decide: impl FnOnce(&mut State<W>)) -> Vec<Arc<W>> {
        let mut decided = Vec::new();
        let mut state = self.state.lock();
        decide(&mut state);
        // incremented while the lock is held: a bee whose `append` is refused because of this decision has
        // taken the lock after it, hence sees the new version and reconciles. If the version changed only
        // after the unlock, the bee could find nothing to reconcile
        self.version.fetch_add(1, Ordering::Release);

        for (number, fate) in state.decided() {
            if let Some(Undecided::Bee(bee)) = state.undecided.get(&number) {
                // the entry stays until the bee asks for its fate
                decided.push(bee.clone());
                continue;
            }
            match (state.undecided.remove(&number), fate) {
                (Some(Undecided::Said(record, committed)), Fate::Dead) => {
                    let again = state.say(record, committed);
                    // appended while the lock is held, so that no newer record gets in front of it
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

    /// Returns a number that changes with each decision of the journal.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Appends the record of a bee's run, and returns its number. Returns `None` if one of the `undecided`
    /// entries on which the run was executed is dead.
    ///
    /// The check and the append happen under one lock, so no abort can come between them.
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
        // appended while the lock is held, so that the journal gets the entries in the order of their numbers
        self.journal.append(entry);
        Some(number)
    }

    /// Appends a record that does not depend on any earlier entry. A refused record is appended again before
    /// anything else is, so such records keep their order among themselves.
    ///
    /// The receiver completes when the record is committed, or with an error if the hive is dropped before.
    pub(crate) fn say(&self, record: Record) -> oneshot::Receiver<()> {
        let (committed, told) = oneshot::channel();
        let mut state = self.state.lock();
        let entry = state.say(record, committed);
        self.journal.append(entry);
        told
    }

    /// Appends a record as [`LogClient::say`] does, and waits until it is committed or the hive is dropped.
    pub(crate) async fn commit(&self, record: Record) {
        let _ = self.say(record).await;
    }

    /// Returns the fates of entries, and forgets the decided ones, whose fate must not be asked for again.
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

/// Returns the resumable lanes that a log contains, each with its highest known floor.
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
