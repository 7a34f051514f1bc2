//! The hive's side of a journal. A [`LogClient`] numbers the entries and tracks which of them are committed
//! and which are dead.

use crate::cell::CellId;
use crate::hash::HashMap;
use crate::hive::admission::bee_lanes::Reserved;
use crate::hive::admission::outside_lanes::{Admitted, Lanes};
use crate::hive::consensus::journal::{
    Acked, AppId, Consumed, Entry, EntryNumber, HandlerId, Input, Journal, JournalEvents, LaneId, LogState,
    MessageId, Record, Work,
};
use crate::hive::consensus::open_sweeps::OpenSweeps;
use crate::hive::consensus::quarantine::Quarantine;
use crate::hive::consensus::registry::ColonyId;
use crate::hive::consensus::undecided::{Fate, Open, RUNS_EXPECTED_MAX, State, Undecided};
use crate::hive::consensus::without_bee::WithoutBee;
use crate::limits;
use crate::mutant::Mutant;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::oneshot;

/// A log's place among a hive's logs.
pub(crate) struct Place {
    /// The log's position.
    pub(crate) position: usize,
    /// For each app, whether all its bees are in this log and never leave it.
    pub(crate) alone: Vec<bool>,
    /// Whether bees may move from one log to another.
    pub(crate) bees_move: bool,
    /// The colony whose log this is.
    pub(crate) colony: ColonyId,
    /// Whether the hive is in a cluster.
    pub(crate) is_clustered: bool,
}

/// A bee's run in an entry.
pub(crate) struct Appended {
    /// The entry.
    pub(crate) number: EntryNumber,
    /// The part of the entry's [`Record::Turn`] that describes this run.
    pub(crate) work: Arc<Work>,
    /// The messages that the bee previously handled without effect, which the entry also records. If the entry is dead,
    /// the caller must [note](LogClient::note_consumed) them again.
    pub(crate) consumed: Option<Consumed>,
}

/// The client through which a hive uses one of its journals. `W` is the type of a bee with entries in flight.
pub(crate) struct LogClient<W: ?Sized> {
    place: Place,
    state: Mutex<State<W>>,
    /// The lanes, which all logs of the hive share.
    pub(crate) lanes: Arc<Lanes>,
    /// The dedup table for messages that no bee consumes.
    pub(crate) without_bee: WithoutBee,
    /// Messages that may have crashed the previous process, for all of the hive's logs.
    pub(crate) quarantine: Arc<Quarantine>,
    /// Incremented with each journal decision.
    version: AtomicU64,
    /// Whether an entry is open. Threads read this without the lock. A thread that has added a run to the open entry
    /// reads either `true`, which it has set itself, or `false` because another thread has since appended the entry.
    is_open: AtomicBool,
}

impl<W: ?Sized> LogClient<W> {
    /// Creates a client whose next entry follows the last entry of `colony`.
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        colony: &LogState,
        place: Place,
        lanes: Arc<Lanes>,
        quarantine: Arc<Quarantine>,
    ) -> Arc<LogClient<W>> {
        let last = colony.last;
        let state = State {
            journal: Some(journal),
            next: last,
            last,
            open: None,
            runs_before: 0,
            undecided: BTreeMap::new(),
            committed: last,
            dead: HashMap::default(),
            consumed: BTreeMap::new(),
            consumed_bytes: 0,
            acked: Vec::new(),
            visited: Vec::new(),
            cells_visited: 0,
            sweeps: OpenSweeps::new(colony),
            is_over: false,
        };
        Arc::new(LogClient {
            place,
            state: Mutex::new(state),
            lanes,
            quarantine,
            without_bee: WithoutBee::new(colony.seen.clone()),
            version: AtomicU64::new(0),
            is_open: AtomicBool::new(false),
        })
    }

    /// Returns the log's position among the hive's logs.
    pub(crate) fn position(&self) -> usize {
        self.place.position
    }

    /// Checks whether the hive is in a cluster.
    pub(crate) fn is_clustered(&self) -> bool {
        self.place.is_clustered
    }

    /// Returns the colony whose log this is.
    pub(crate) fn colony(&self) -> ColonyId {
        self.place.colony
    }

    /// Reserves the next number on the lane of an app whose home log this is: see [`BeeLanes::reserve`](crate::hive::admission::bee_lanes::BeeLanes::reserve).
    pub(crate) fn reserve(&self, app: AppId) -> Reserved {
        let lane = match self.place.is_clustered && !self.lanes.breaks(Mutant::SameAppLane) {
            true => LaneId::of_app_in(app, self.place.colony),
            false => LaneId::of_app(app),
        };
        self.lanes.bees.reserve(lane, app, self.place.position)
    }

    /// Checks whether bees may move from one log of the hive to another.
    #[inline]
    pub(crate) fn bees_move(&self) -> bool {
        self.place.bees_move
    }

    /// Checks whether messages from this log to an app must be acknowledged, which is the case unless both sender and
    /// receiver always stay in this log.
    #[inline]
    pub(crate) fn tracks(&self, app: AppId) -> bool {
        !self.place.alone.get(app.index()).copied().unwrap_or(false)
    }

    /// Checks whether messages that arrive on a lane must be acknowledged because they may arrive twice. This is the
    /// case for the lanes of bees and apps, unless both sender and receiver always stay in this log, and for all lanes of
    /// other hives.
    #[inline]
    pub(crate) fn acknowledges(&self, lane: LaneId) -> bool {
        lane.app().is_some_and(|app| self.tracks(app))
            || (self.place.is_clustered && self.lanes.foreign.knows(lane))
    }

    /// Marks a message as consumed without a bee: see [`WithoutBee::input`].
    pub(crate) fn input_without_bee(
        &self,
        message_id: MessageId,
        handler: HandlerId,
        admitted: Option<&Arc<Admitted>>,
    ) -> Option<Input> {
        let lanes = self.acknowledges(message_id.lane).then_some(&*self.lanes);
        self.without_bee.input(message_id, handler, admitted, lanes)
    }

    /// Prepares the journal for the first entry.
    pub(crate) fn begin(&self) -> std::io::Result<()> {
        let journal = self.state.lock().journal.clone();
        journal.map_or(Ok(()), |journal| journal.begin())
    }

    /// Sets the object to which the journal reports.
    pub(crate) fn attach(&self, events: Arc<dyn JournalEvents>) {
        let journal = self.state.lock().journal.clone();
        if let Some(journal) = journal {
            journal.attach(events)
        }
    }

    /// Records that all entries up to and including `upto` are committed. Returns the bees whose entries are thereby
    /// decided.
    pub(crate) fn released(&self, upto: EntryNumber) -> Vec<Arc<W>> {
        self.decide(Fate::Committed, |state| {
            debug_assert!(
                upto <= state.next,
                "the journal released {upto:?}, but only {:?} is appended",
                state.next
            );
            state.committed = state.committed.max(upto);
            let open = state.undecided.split_off(&upto.next());
            std::mem::replace(&mut state.undecided, open)
        })
    }

    /// Records that all entries after `last`, up to the newest one, are dead. Returns the bees whose entries are thereby
    /// decided.
    pub(crate) fn aborted(&self, last: EntryNumber) -> Vec<Arc<W>> {
        self.decide(Fate::Dead, |state| {
            if last < state.next {
                state.last = last;
                // the open entry was executed on top of a dead entry, so it is dropped without being appended
                state.open = None;
                if self.lanes.breaks(Mutant::NumberReused) {
                    state.next = last
                }
            }
            state.undecided.split_off(&last.next())
        })
    }

    /// Applies a journal decision. `take` removes the entries that it concerns from `undecided`.
    fn decide(
        &self,
        fate: Fate,
        take: impl FnOnce(&mut State<W>) -> BTreeMap<EntryNumber, Undecided<W>>,
    ) -> Vec<Arc<W>> {
        let mut bees = Vec::new();
        let mut state = self.state.lock();
        let decided = take(&mut state);
        // change the version while the lock is held. A thread whose `append` fails because of this decision
        // takes the lock later, so it sees the new version and reconciles its bee. If this thread changed the
        // version only after the unlock, the other thread could still see the old version and find nothing to
        // reconcile
        self.version.fetch_add(1, Ordering::Release);

        for (number, entry) in decided {
            match (entry, fate) {
                (Undecided::Turn { bees: of_entry, runs, visited }, fate) => {
                    if fate == Fate::Dead {
                        state.dead.insert(number, runs);
                        // under this lock, so that the next run of any bee records them
                        visited.iter().for_each(|visited| state.note_visits(visited.sweep, &visited.cells))
                    }
                    bees.extend(of_entry)
                }
                (Undecided::Said(..), Fate::Dead) if self.lanes.breaks(Mutant::RefusedRecordDropped) => {}
                (Undecided::Said(dead, committed), Fate::Dead) => {
                    let record =
                        Arc::try_unwrap(dead).map_or_else(|dead| dead.record.clone(), |dead| dead.record);
                    let again = state.say(record, committed);
                    // the lock is still held, so no newer record can be appended before this one
                    state.append(again)
                }
                (Undecided::Said(entry, committed), _) => {
                    // the lock is still held, so the lanes change in the order of the log
                    self.committed(&entry.record, &mut state.sweeps);
                    let _ = committed.send(());
                }
            }
        }

        bees
    }

    /// Updates the lanes and the open sweeps after a record has been committed.
    fn committed(&self, record: &Record, sweeps: &mut OpenSweeps) {
        let lanes = &self.lanes.bees;
        match record {
            Record::Acked(messages) => {
                messages.iter().for_each(|acked| lanes.acknowledged(self.place.position, acked))
            }
            Record::Freeze { app, bee, lanes: leaving, .. } => lanes.leave((*app, *bee), leaving),
            Record::Mark { marker } => self.quarantine.committed(self.place.position, marker.as_ref()),
            Record::Adopt { app, bee, .. } | Record::Thaw { app, bee, .. } => {
                lanes.arrive((*app, *bee), self.place.position)
            }
            _ if self.place.bees_move => {
                for sweep in sweeps.committed(record) {
                    let MessageId { lane, seq, part, app } = sweep;
                    lanes.acknowledged(self.place.position, &Acked { app, lane, seq, count: 1, part })
                }
            }
            _ => {}
        }
    }

    /// Returns a number that changes with each journal decision.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Adds a bee's run to the open entry, together with the messages that the bee previously handled without effect.
    /// `bytes` is the estimated size of the run. Returns the run as an error if `newest`, the bee's newest entry in
    /// flight, is dead. An abort also kills all later entries, so if the run was executed on any dead entry, `newest`
    /// is dead as well.
    ///
    /// The check and the addition happen under one lock, so no abort can come between them. The caller's turn
    /// [appends](LogClient::append_open) the open entry before the turn ends.
    pub(crate) fn append(
        &self,
        bee: Arc<W>,
        newest: Option<EntryNumber>,
        mut work: Work,
        bytes: usize,
    ) -> Result<Appended, Box<Work>> {
        let mut state = self.state.lock();
        if newest.is_some_and(|newest| state.fate(newest) == Fate::Dead) {
            return Err(Box::new(work));
        }

        let mut bytes = bytes;
        let is_one_mark = self.lanes.breaks(Mutant::OneMark);
        let consumed = state.take_consumed((work.app, work.bee)).filter(|_| !is_one_mark);
        if let Some(consumed) = &consumed {
            bytes += consumed.size();
            work.inputs.extend_from_slice(&consumed.inputs);
            work.visits.extend_from_slice(&consumed.visits)
        }
        // the visits that bees handled without effect before this run, in case this is the next run of one of them
        let visited = match self.place.bees_move || is_one_mark {
            true => Vec::new(),
            false => state.take_visited(),
        };
        bytes +=
            visited.iter().map(|visited| size_of_val(visited) + size_of_val(&*visited.cells)).sum::<usize>();
        work.visits.extend_from_slice(&visited);

        if state.open.as_ref().is_some_and(|open| open.bytes + bytes > limits::TURN_BYTES_MAX) {
            self.append_open_of(&mut state)
        }

        let work = Arc::new(work);
        let number = state.add(bee, work.clone(), visited, bytes);
        self.is_open.store(true, Ordering::Relaxed);
        Ok(Appended { number, work, consumed })
    }

    /// Appends the open entry, if there is one. It may contain runs added by other threads.
    #[inline]
    pub(crate) fn append_open(&self) {
        if self.is_open.load(Ordering::Relaxed) {
            self.append_open_of(&mut self.state.lock())
        }
    }

    /// Appends the open entry if it was already open at the previous call. The watchdog calls this at intervals,
    /// because a slow handler may delay the end of a turn while other bees are waiting for the entry to commit.
    pub(crate) fn append_old(&self) {
        if !self.is_open.load(Ordering::Relaxed) {
            return;
        }

        let mut state = self.state.lock();
        match &mut state.open {
            Some(open) if !open.is_old => open.is_old = true,
            _ => self.append_open_of(&mut state),
        }
    }

    fn append_open_of(&self, state: &mut State<W>) {
        self.is_open.store(false, Ordering::Relaxed);
        if let Some(Open { number, after, works, .. }) = state.open.take() {
            state.runs_before = works.len().min(RUNS_EXPECTED_MAX);
            // the lock is still held, so the journal gets the entries in order of their numbers
            state.append(Arc::new(Entry { number, after, record: Record::Turn(works) }))
        }
    }

    /// Notes messages that a bee has handled without effect on top of committed state. They are recorded as consumed by
    /// the bee's next entry or by the next call to [`LogClient::log_consumed`], whichever comes first.
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

    /// Notes that messages from this log have been handled. The record that consumed them has already been committed in
    /// the receiver's log.
    pub(crate) fn acknowledge(&self, new: Acked) {
        let mut state = self.state.lock();
        if !state.acked.last_mut().is_some_and(|last| last.extend(&new)) {
            state.acked.push(new)
        }
        if state.acked.len() >= limits::ACKED_RUNS_MAX {
            self.say_acked(&mut state)
        }
    }

    /// Notes that one of this log's sweeps has visited cells. Either bees may move, and the records of these visits have
    /// already been committed in the visited bees' logs. Or the visits had no effect on top of committed state, and the
    /// next run of any bee, or the next call to [`LogClient::log_consumed`], records them.
    pub(crate) fn visited(&self, sweep: MessageId, cells: &[CellId]) {
        let mut state = self.state.lock();
        state.note_visits(sweep, cells);
        if state.cells_visited > limits::VISITS_NOTED_MAX {
            self.say_visited(&mut state)
        }
    }

    /// Appends entries for everything collected so far: acknowledgments, visits, and messages handled without effect.
    /// Appends nothing if nothing was collected. Nobody waits for these entries to commit.
    pub(crate) fn log_consumed(&self) {
        let mut state = self.state.lock();
        self.say_consumed(&mut state);
        self.say_acked(&mut state);
        self.say_visited(&mut state)
    }

    fn say_visited(&self, state: &mut State<W>) {
        if state.visited.is_empty() {
            return;
        }
        self.append_open_of(state);
        let visited = state.take_visited();
        let entry = state.say(Record::Visited(visited), oneshot::channel().0);
        state.append(entry)
    }

    fn say_acked(&self, state: &mut State<W>) {
        if state.acked.is_empty() {
            return;
        }
        self.append_open_of(state);
        let acked = std::mem::take(&mut state.acked);
        let entry = state.say(Record::Acked(acked), oneshot::channel().0);
        state.append(entry)
    }

    fn say_consumed(&self, state: &mut State<W>) {
        if state.consumed.is_empty() {
            return;
        }
        self.append_open_of(state);
        let consumed = std::mem::take(&mut state.consumed).into_values().collect();
        state.consumed_bytes = 0;
        let entry = state.say(Record::Consumed(consumed), oneshot::channel().0);
        state.append(entry)
    }

    /// Appends a record that does not depend on any earlier entry. A refused record is appended again before anything
    /// newer, so such records keep their order.
    ///
    /// The returned receiver completes when the record is committed, or with an error if the hive is over
    /// first.
    pub(crate) fn say(&self, record: Record) -> oneshot::Receiver<()> {
        let (committed, told) = oneshot::channel();
        let mut state = self.state.lock();
        self.append_open_of(&mut state);
        let entry = state.say(record, committed);
        state.append(entry);
        told
    }

    /// Releases everything that waits for an entry, now and from now on, because the hive is over: the bees, and the
    /// receivers returned by [`LogClient::say`]. Otherwise a journal that never decides an entry would keep the bees in
    /// memory, and the bees would keep this client and the journal.
    pub(crate) fn end(&self) {
        let waiters = self.state.lock().end();
        // dropped without the lock, because dropping a bee runs the app's code
        drop(waiters)
    }

    /// Drops the journal, because the hive is dropped. What remains of the client may be in memory for longer: each
    /// thread keeps its buffers for the next turn, and these lead to the apps of the last hive for which it ran a turn.
    pub(crate) fn close(&self) {
        self.end();
        let journal = self.state.lock().journal.take();
        // dropped without the lock, because the journal may wait for a thread that reports to this client
        drop(journal)
    }

    /// Appends a record like [`LogClient::say`] and waits until it is committed or the hive is over.
    pub(crate) async fn commit(&self, record: Record) {
        let _ = self.say(record).await;
    }

    /// Returns the fates of entries. The caller must not have released or taken back its runs in these
    /// entries.
    pub(crate) fn fates(&self, numbers: impl Iterator<Item = EntryNumber>) -> SmallVec<[Fate; 16]> {
        let state = self.state.lock();
        numbers.map(|number| state.fate(number)).collect()
    }

    /// Notes that runs of dead entries have been taken back. `numbers` contains the number of the entry once
    /// for each run.
    pub(crate) fn taken_back(&self, numbers: impl Iterator<Item = EntryNumber>) {
        let mut state = self.state.lock();
        for number in numbers {
            let left = state.dead.get_mut(&number).map(|runs| {
                *runs -= 1;
                *runs
            });
            debug_assert!(left.is_some(), "{number:?} is dead, and a run of it is left");
            if left == Some(0) {
                state.dead.remove(&number);
            }
        }
    }
}

#[cfg(test)]
#[path = "log_client_tests.rs"]
mod tests;
