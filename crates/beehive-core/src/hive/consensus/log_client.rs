//! The hive's side of its journal: numbers entries, and tracks which of them are committed and which are
//! dead.

use crate::cell::BeeId;
use crate::hash::HashMap;
use crate::hive::admission::outside_lanes::{Lanes, OutsideLane};
use crate::hive::consensus::journal::{
    AppId, Consumed, Entry, EntryNumber, Journal, JournalEvents, LaneId, LogState, Record, Seq, Work,
};
use crate::hive::consensus::quarantine::Quarantine;
use crate::hive::consensus::without_bee::WithoutBee;
use crate::limits;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::oneshot;

/// An entry whose fate the hive has not processed yet.
enum Undecided<W: ?Sized> {
    /// The record of a bee. The bee is woken when the entry is decided, and executes the run again if the
    /// entry is dead.
    Bee(Arc<W>),
    /// A record of the hive itself, which is appended again until it is committed.
    Said(Arc<Entry>, oneshot::Sender<()>),
}

struct State<W: ?Sized> {
    /// The number of the newest entry, dead ones included.
    next: EntryNumber,
    /// The number of the newest entry that is not dead: the next one is executed on it.
    last: EntryNumber,
    /// The entries in flight.
    undecided: BTreeMap<EntryNumber, Undecided<W>>,
    /// The fates of decided entries whose bee has not asked for them yet.
    decided: HashMap<EntryNumber, Fate>,
    /// What bees have handled without effect, on top of committed state, and no entry says so yet.
    consumed: BTreeMap<(AppId, BeeId), Consumed>,
    /// Size of `consumed`, in bytes.
    consumed_bytes: usize,
}

/// An entry that was appended for a bee.
pub(crate) struct Appended {
    /// The entry, whose record is [`Record::Work`].
    pub(crate) entry: Arc<Entry>,
    /// What the bee had handled without effect before, which the entry says as well. It must be
    /// [noted](LogClient::note_consumed) again if the entry is dead.
    pub(crate) consumed: Option<Consumed>,
}

/// What is known about the fate of an entry.
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
    /// Returns the fate of an entry. The entry must be in flight, or decided but not yet asked about by its
    /// bee: a decided entry is forgotten once its bee has asked for its fate.
    fn fate(&self, number: EntryNumber) -> Fate {
        self.decided.get(&number).copied().unwrap_or(Fate::Open)
    }

    /// Makes a record the next entry.
    fn number(&mut self, record: Record) -> Arc<Entry> {
        self.next = self.next.next();
        let entry = Arc::new(Entry { number: self.next, after: self.last, record });
        self.last = self.next;
        entry
    }

    /// Removes what a bee has handled without effect.
    fn take_consumed(&mut self, of: (AppId, BeeId)) -> Option<Consumed> {
        let consumed = self.consumed.remove(&of)?;
        self.consumed_bytes -= consumed.size();
        Some(consumed)
    }

    /// Makes a record of the hive itself the next entry. It is appended again each time it dies.
    fn say(&mut self, record: Record, committed: oneshot::Sender<()>) -> Arc<Entry> {
        let entry = self.number(record);
        self.undecided.insert(entry.number, Undecided::Said(entry.clone(), committed));
        entry
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
    /// Messages that may have ended the previous process.
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
        let state = State {
            next: last,
            last,
            undecided: BTreeMap::new(),
            decided: HashMap::default(),
            consumed: BTreeMap::new(),
            consumed_bytes: 0,
        };
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
        self.decide(Fate::Committed, |state| {
            debug_assert!(
                upto <= state.next,
                "the journal released {upto:?}, but only {:?} is appended",
                state.next
            );
            let open = state.undecided.split_off(&upto.next());
            std::mem::replace(&mut state.undecided, open)
        })
    }

    /// Notes that all entries after `last` that have been appended so far are dead. Returns the bees whose
    /// entries are decided.
    pub(crate) fn aborted(&self, last: EntryNumber) -> Vec<Arc<W>> {
        self.decide(Fate::Dead, |state| {
            if last < state.next {
                state.last = last
            }
            state.undecided.split_off(&last.next())
        })
    }

    /// Applies a decision of the journal. `take` removes the entries that it decides from `undecided`.
    fn decide(
        &self,
        fate: Fate,
        take: impl FnOnce(&mut State<W>) -> BTreeMap<EntryNumber, Undecided<W>>,
    ) -> Vec<Arc<W>> {
        let mut bees = Vec::new();
        let mut state = self.state.lock();
        let decided = take(&mut state);
        // incremented while the lock is held: a bee whose `append` is refused because of this decision has
        // taken the lock after it, so it sees the new version and reconciles. If the version changed only
        // after the unlock, the bee could find nothing to reconcile
        self.version.fetch_add(1, Ordering::Release);

        for (number, entry) in decided {
            match (entry, fate) {
                (Undecided::Bee(bee), _) => {
                    // stays until the bee asks
                    state.decided.insert(number, fate);
                    bees.push(bee)
                }
                (Undecided::Said(dead, committed), Fate::Dead) => {
                    let record =
                        Arc::try_unwrap(dead).map_or_else(|dead| dead.record.clone(), |dead| dead.record);
                    let again = state.say(record, committed);
                    // appended while the lock is held, so that no newer record gets in front of it
                    self.journal.append(again)
                }
                (Undecided::Said(_, committed), _) => {
                    let _ = committed.send(());
                }
            }
        }

        bees
    }

    /// Returns a number that changes with each decision of the journal.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Appends the record of a bee's run, with everything that the bee has handled without effect before.
    /// Returns the record if `newest`, the bee's newest entry in flight, is dead. An abort leaves no later entry
    /// alive, so `newest` is dead whenever the run was executed on a dead entry.
    ///
    /// The check and the append happen under one lock, so no abort can come between them.
    pub(crate) fn append(
        &self,
        bee: Arc<W>,
        newest: Option<EntryNumber>,
        mut work: Work,
    ) -> Result<Appended, Box<Work>> {
        let mut state = self.state.lock();
        if newest.is_some_and(|newest| state.fate(newest) == Fate::Dead) {
            return Err(Box::new(work));
        }

        let consumed = state.take_consumed((work.app, work.bee));
        if let Some(consumed) = &consumed {
            work.inputs.extend_from_slice(&consumed.inputs);
            work.visits.extend_from_slice(&consumed.visits)
        }

        let entry = state.number(Record::Work(work));
        state.undecided.insert(entry.number, Undecided::Bee(bee));
        // appended while the lock is held, so that the journal gets the entries in the order of their numbers
        self.journal.append(entry.clone());
        Ok(Appended { entry, consumed })
    }

    /// Notes what a bee has handled without effect, on top of committed state. The bee's next entry says it,
    /// or else the next call of [`LogClient::log_consumed`].
    pub(crate) fn note_consumed(&self, new: Consumed) {
        let mut state = self.state.lock();
        let of = (new.app, new.bee);
        let consumed = match state.take_consumed(of) {
            None => new,
            Some(mut known) => {
                known.absorb(new);
                known
            }
        };
        state.consumed_bytes += consumed.size();
        state.consumed.insert(of, consumed);

        if state.consumed_bytes > limits::CONSUMED_BYTES_MAX {
            self.say_consumed(&mut state)
        }
    }

    /// Appends an entry with everything that bees have handled without effect, if there is anything. Nothing
    /// waits for its commit.
    pub(crate) fn log_consumed(&self) {
        self.say_consumed(&mut self.state.lock())
    }

    fn say_consumed(&self, state: &mut State<W>) {
        if state.consumed.is_empty() {
            return;
        }
        let consumed = std::mem::take(&mut state.consumed).into_values().collect();
        state.consumed_bytes = 0;
        let entry = state.say(Record::Consumed(consumed), oneshot::channel().0);
        self.journal.append(entry)
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
        numbers.map(|number| state.decided.remove(&number).unwrap_or(Fate::Open)).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A journal that keeps nothing.
    struct Nothing;

    impl Journal for Nothing {
        fn append(&self, _: Arc<Entry>) {}
        fn attach(&self, _: Arc<dyn JournalEvents>) {}
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic = "the journal released")]
    fn an_entry_that_was_not_appended_is_not_released() {
        let client = LogClient::<()>::new(Arc::new(Nothing), &LogState::default(), 1);
        drop(client.say(Record::Retire { lanes: Vec::new() }));
        assert!(client.released(EntryNumber(1)).is_empty());
        client.released(EntryNumber(2));
    }
}
