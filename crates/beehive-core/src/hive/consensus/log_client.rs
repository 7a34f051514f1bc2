//! The hive's side of a journal. A [`LogClient`] numbers the entries and tracks which of them are committed
//! and which are dead.

use crate::cell::CellId;
use crate::hash::HashMap;
use crate::hive::admission::bee_lanes::Reserved;
use crate::hive::admission::offices::Office;
use crate::hive::admission::outside_lanes::{Admitted, Lanes};
use crate::hive::consensus::confirmations::Confirmations;
use crate::hive::consensus::ended_lanes::EndedLanes;
use crate::hive::consensus::journal::{
    Acked, AppId, Consumed, Entry, EntryNumber, HandlerId, Input, Journal, JournalEvents, LaneId, LogState,
    MessageId, Record, Work,
};
use crate::hive::consensus::open_sweeps::OpenSweeps;
use crate::hive::consensus::outline::Outline;
use crate::hive::consensus::quarantine::Quarantine;
use crate::hive::consensus::registry::ColonyId;
use crate::hive::consensus::undecided::{Fate, Open, RUNS_EXPECTED_MAX, State, Undecided};
use crate::hive::consensus::without_bee::WithoutBee;
use crate::limits;
use crate::mutant::Mutant;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tokio::sync::{Notify, oneshot};

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
    /// Notified when a log of a hive in a cluster has committed a change of its bees. All logs of the hive share it.
    pub(crate) changed: Arc<Notify>,
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
///
/// A run is added under the lock of `state` alone, so runs on other threads do not wait while an entry is encoded. A thread
/// that holds both locks has taken that of `journal` first.
pub(crate) struct LogClient<W: ?Sized> {
    pub(super) place: Place,
    /// The office in which the hive leads the log.
    pub(super) office: Office,
    /// The term of the office.
    pub(super) term: u64,
    /// The journal; `None` after the hive was dropped, or has left the log. The lock is held from the moment at which an entry is complete until
    /// the journal has it, so the journal gets the entries in order, and no entry that an abort concerns after the abort.
    pub(super) journal: Mutex<Option<Arc<dyn Journal>>>,
    pub(super) state: Mutex<State<W>>,
    /// Number of the newest entry that is known to be decided. All entries up to this one are committed or dead. Changed
    /// under the lock of `state`.
    committed: AtomicU64,
    /// Number of dead entries in `state`. Changed under its lock.
    dead: AtomicUsize,
    /// The bees whose answers wait until the journal confirms that the hive leads the log; `None` if no other hive can lead it.
    pub(super) confirmations: Option<Confirmations<W>>,
    /// The lanes, which all logs of the hive share.
    pub(crate) lanes: Arc<Lanes>,
    /// The dedup table for messages that no bee consumes.
    pub(crate) without_bee: WithoutBee,
    /// The lanes that have ended, and of which no entry says so yet.
    pub(crate) ended_lanes: EndedLanes,
    /// Messages that may have crashed the previous process, for all of the hive's logs.
    pub(crate) quarantine: Arc<Quarantine>,
    /// The outline of the log, which moves and merges need. It is empty unless the hive is in a cluster. A thread that
    /// needs both locks takes that of `state` first.
    pub(crate) outline: Mutex<Outline>,
    /// Incremented with each journal decision.
    pub(super) version: AtomicU64,
    /// Whether an entry is open. Threads read this without the lock. A thread that has added a run to the open entry
    /// reads either `true`, which it has set itself, or `false` because another thread has since appended the entry.
    pub(super) is_open: AtomicBool,
    /// Number of bees that are running or frozen, although the hive has begun to leave the log.
    pub(super) staying: AtomicUsize,
    /// Notified when `staying` becomes zero.
    pub(super) all_left: Notify,
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
        let forgets_sweeps = lanes.breaks(Mutant::OpenSweepsForgotten);
        let office = lanes.bees.offices.begin(place.position);
        let confirms = place.is_clustered && journal.may_lose_leadership();
        let state = State {
            next: last,
            last,
            open: None,
            runs_before: 0,
            undecided: BTreeMap::new(),
            dead: HashMap::default(),
            consumed: BTreeMap::new(),
            consumed_bytes: 0,
            consumed_bytes_max: limits::CONSUMED_BYTES_MAX,
            consumed_in_flight: 0,
            acked: Vec::new(),
            messages_acked: 0,
            visited: Vec::new(),
            cells_visited: 0,
            sweeps: if forgets_sweeps { OpenSweeps::default() } else { OpenSweeps::new(colony) },
            is_over: false,
        };
        Arc::new(LogClient {
            place,
            office,
            term: last.term(),
            journal: Mutex::new(Some(journal)),
            state: Mutex::new(state),
            committed: AtomicU64::new(last.0),
            dead: AtomicUsize::new(0),
            confirmations: confirms.then(Confirmations::default),
            lanes,
            quarantine,
            outline: Mutex::default(),
            without_bee: WithoutBee::new(colony.seen.clone()),
            ended_lanes: EndedLanes::default(),
            version: AtomicU64::new(0),
            is_open: AtomicBool::new(false),
            staying: AtomicUsize::new(0),
            all_left: Notify::new(),
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
        self.lanes.bees.reserve(lane, app, self.office)
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
        let journal = self.journal.lock().clone();
        journal.map_or(Ok(()), |journal| journal.begin())
    }

    /// Splits off the outline of the log's state. The lanes of frozen bees take no acknowledgments.
    pub(crate) fn split_outline(&self, state: &mut LogState) -> Outline {
        let outline = Outline::split(state);
        for ((app, bee), image) in &outline.log.bees {
            let own = LaneId::of_bee(*app, *bee);
            let lanes: Vec<LaneId> = image.heir_of.iter().copied().chain([own]).collect();
            self.lanes.bees.leave((*app, *bee), self.place.position, &lanes, Some(image.epoch))
        }
        outline
    }

    /// Sets the object to which the journal reports.
    pub(crate) fn attach(&self, events: Arc<dyn JournalEvents>) {
        let journal = self.journal.lock().clone();
        if let Some(journal) = journal {
            journal.attach(events)
        }
    }

    /// Records that all entries up to and including `upto` are committed. Returns the bees whose entries are thereby
    /// decided.
    pub(crate) fn released(&self, upto: EntryNumber) -> Vec<Arc<W>> {
        self.decide(Fate::Committed, None, |state| {
            debug_assert!(
                upto <= state.next,
                "the journal released {upto:?}, but only {:?} is appended",
                state.next
            );
            self.committed.fetch_max(upto.0, Ordering::Release);
            let open = state.undecided.split_off(&upto.next());
            std::mem::replace(&mut state.undecided, open)
        })
    }

    /// Records that all entries after `last`, up to the newest one, are dead. Returns the bees whose entries are thereby
    /// decided.
    pub(crate) fn aborted(&self, last: EntryNumber) -> Vec<Arc<W>> {
        // wait for an entry that another thread is handing to the journal: a journal need not expect it after the abort
        let journal = self.journal.lock();
        self.decide(Fate::Dead, journal.as_deref(), |state| {
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

    /// Applies a journal decision. `take` removes the entries that it concerns from `undecided`. `journal` gets the records
    /// that must be appended again.
    fn decide(
        &self,
        fate: Fate,
        journal: Option<&dyn Journal>,
        take: impl FnOnce(&mut State<W>) -> BTreeMap<EntryNumber, Undecided<W>>,
    ) -> Vec<Arc<W>> {
        let mut waking = Vec::new();
        let mut state = self.state.lock();
        if self.is_deposed() {
            // Reports that the journal made before it knew. What an entry decides is up to the next leader now
            return Vec::new();
        }

        for (number, entry) in take(&mut state) {
            match (entry, fate) {
                (Undecided::Turn { bees, runs, visited }, fate) => {
                    if fate == Fate::Dead {
                        state.dead.insert(number, runs);
                        // under this lock, so that the next run of any bee records them
                        visited.iter().for_each(|visited| state.note_visits(visited.sweep, &visited.cells))
                    }
                    waking.push(bees)
                }
                (Undecided::Said(dead, _), Fate::Dead) if self.lanes.breaks(Mutant::RefusedRecordDropped) => {
                    state.is_decided(&dead.record)
                }
                (Undecided::Said(dead, committed), Fate::Dead) => {
                    let mut record =
                        Arc::try_unwrap(dead).map_or_else(|dead| dead.record.clone(), |dead| dead.record);
                    if let Record::Visited(visits) = &mut record {
                        // those of dead entries before this one: see `log_visits`
                        visits.extend(state.take_visited())
                    }
                    let again = state.say(record, committed);
                    // both locks are still held, so no newer record can be appended before this one
                    append_to(journal, again)
                }
                (Undecided::Said(entry, committed), _) => {
                    // the lock is still held, so the lanes change in the order of the log
                    self.committed(&entry.record, &mut state.sweeps);
                    state.is_decided(&entry.record);
                    let _ = committed.send(());
                }
            }
        }

        self.dead.store(state.dead.len(), Ordering::Release);
        // Change the version last, because who sees the new version reads `committed` and `dead` without the lock, and while
        // the lock is held: a thread whose `append` fails because of this decision takes the lock later, so it sees the new
        // version and reconciles its bee. If this thread changed the version only after the unlock, the other thread could
        // still see the old version and find nothing to reconcile.
        self.version.fetch_add(1, Ordering::Release);
        drop(state);

        let mut waking = waking.into_iter();
        let mut bees = waking.next().unwrap_or_default();
        waking.for_each(|more| bees.extend(more));
        bees
    }

    /// Updates the lanes and the open sweeps after a record has been committed.
    fn committed(&self, record: &Record, sweeps: &mut OpenSweeps) {
        let lanes = &self.lanes.bees;
        let departs = |lane| self.lanes.foreign.remember(lane);
        if self.place.is_clustered && self.outline.lock().follow(record) {
            self.place.changed.notify_one()
        }
        match record {
            Record::Acked(messages) => {
                messages.iter().for_each(|acked| lanes.acknowledged(self.place.position, acked))
            }
            Record::Freeze { app, bee, lanes: leaving, .. } => {
                let is_clustered = self.place.is_clustered;
                let epoch = is_clustered.then(|| self.outline.lock().epoch(*app, *bee));
                lanes.leave((*app, *bee), self.place.position, leaving, epoch)
            }
            Record::Mark { marker } => self.quarantine.committed(self.place.position, marker.as_ref()),
            // a lane that another hive has used meanwhile is remembered before it is removed
            Record::Adopt { app, bee, epoch, .. } | Record::Thaw { app, bee, epoch, .. } => {
                lanes.arrive((*app, *bee), self.place.position, *epoch, departs)
            }
            Record::Drop { app, bee, .. } if self.place.is_clustered => {
                // what the bee has sent is now sent by another hive
                lanes.depart((*app, *bee), self.place.position, departs)
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

    /// Returns the number of the newest entry that is known to be committed. It rises with each commit, and stays the
    /// same when entries are refused.
    pub(crate) fn newest_committed(&self) -> EntryNumber {
        EntryNumber(self.committed.load(Ordering::Acquire))
    }

    /// Makes sure that the journal has something to decide: appends a record without contents, unless an entry is in
    /// flight. Nobody waits for it to commit.
    pub(crate) fn probe(&self) {
        self.say_next(|state| state.undecided.is_empty().then(|| Record::Acked(Vec::new())))
    }

    /// Returns a number that changes with each journal decision.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Adds a bee's run to the open entry, together with the messages that the bee previously handled without effect.
    /// `bytes` is the estimated size of the run. Returns the run as an error if `newest`, the bee's newest entry in
    /// flight, is dead. An abort also kills all later entries, so if the run was executed on any dead entry, `newest`
    /// is dead as well. Also returns the run as an error if the hive no longer leads the log.
    ///
    /// The check and the addition happen under one lock, so no abort can come between them. The caller's turn
    /// [appends](LogClient::append_open) the open entry before the turn ends.
    pub(crate) fn append(
        &self,
        bee: Arc<W>,
        newest: Option<EntryNumber>,
        work: Work,
        bytes: usize,
    ) -> Result<Appended, Arc<Work>> {
        // the allocation is made without the lock
        let mut work = Arc::new(work);
        let mut state = self.state.lock();
        while state.open.as_ref().is_some_and(|open| open.bytes + bytes > limits::TURN_BYTES_MAX) {
            drop(state);
            self.append_open();
            state = self.state.lock()
        }
        if self.is_deposed() || newest.is_some_and(|newest| state.dead.contains_key(&newest)) {
            return Err(work);
        }

        let mut bytes = bytes;
        let is_one_mark = self.lanes.breaks(Mutant::OneMark);
        let consumed = state.take_consumed((work.app, work.bee)).filter(|_| !is_one_mark);
        // the visits that bees handled without effect before this run, in case this is the next run of one of them
        let visited = match self.place.bees_move || is_one_mark {
            true => Vec::new(),
            false => state.take_visited(),
        };
        if consumed.is_some() || !visited.is_empty() {
            // nobody else has the run yet, so this does not clone it. What is added is small: notes are logged or
            // compacted before they are many
            let work = Arc::make_mut(&mut work);
            if let Some(consumed) = &consumed {
                bytes += consumed.size();
                work.inputs.extend_from_slice(&consumed.inputs);
                work.visits.extend_from_slice(&consumed.visits)
            }
            let cells = visited.iter().map(|visited| size_of_val(&*visited.cells)).sum::<usize>();
            bytes += size_of_val(&*visited) + cells;
            work.visits.extend_from_slice(&visited)
        }

        let number = state.add(bee, work.clone(), visited, bytes);
        self.is_open.store(true, Ordering::Relaxed);
        Ok(Appended { number, work, consumed })
    }

    /// Checks whether an entry is open.
    #[inline]
    pub(crate) fn has_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Appends the open entry, if there is one. It may contain runs added by other threads. Returns at once if another thread
    /// is handing it to the journal.
    #[inline]
    pub(crate) fn append_open(&self) {
        if !self.has_open() {
            return;
        }

        let journal = self.journal.lock();
        let open = self.take_open(&mut self.state.lock());
        // without the lock of `state`: the journal may take its time to encode the entry, and other threads begin the next
        // one meanwhile
        if let Some(entry) = open {
            append_to(journal.as_deref(), entry)
        }
    }

    /// Appends the open entry if it was already open at the previous call. The watchdog calls this at intervals,
    /// because a slow handler may delay the end of a turn while other bees are waiting for the entry to commit.
    pub(crate) fn append_old(&self) {
        if !self.is_open.load(Ordering::Relaxed) {
            return;
        }

        match &mut self.state.lock().open {
            Some(open) if !open.is_old => return open.is_old = true,
            _ => {}
        }
        self.append_open()
    }

    /// Takes the open entry. The caller holds the lock of `journal`.
    fn take_open(&self, state: &mut State<W>) -> Option<Arc<Entry>> {
        self.is_open.store(false, Ordering::Relaxed);
        let Open { number, after, works, .. } = state.open.take()?;
        state.runs_before = works.len().min(RUNS_EXPECTED_MAX);
        Some(Arc::new(Entry { number, after, record: Record::Turn(works) }))
    }

    /// Notes messages that a bee has handled without effect on top of committed state. They are recorded as consumed by
    /// the bee's next entry or by the next call to [`LogClient::log_consumed`], whichever comes first.
    pub(crate) fn note_consumed(&self, new: Consumed) {
        let mut state = self.state.lock();
        if self.is_deposed() {
            return;
        }
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

        if state.consumed_bytes <= state.consumed_bytes_max {
            return;
        }
        if state.consumed_in_flight > 0 {
            return state.compact_consumed();
        }
        drop(state);
        self.say_next(State::take_consumed_if_due)
    }

    /// Notes that messages from this log have been handled. The record that consumed them has already been committed in
    /// the receiver's log.
    pub(crate) fn acknowledge(&self, new: Acked) {
        let mut state = self.state.lock();
        if self.is_deposed() {
            return;
        }
        if !state.acked.last_mut().is_some_and(|last| last.extend(&new)) {
            state.acked.push(new)
        }

        state.messages_acked += u64::from(new.count);

        // a lane must not run ahead of its acknowledgments because they are few runs
        if state.acked.len() >= limits::ACKED_RUNS_MAX
            || state.messages_acked >= limits::BEE_LANE_WINDOW_MAX / 8
        {
            drop(state);
            self.say_next(State::take_acked)
        }
    }

    /// Notes that one of this log's sweeps has visited cells. Either bees may move, and the records of these visits have
    /// already been committed in the visited bees' logs. Or the visits had no effect on top of committed state, and the
    /// next run of any bee, or the next call to [`LogClient::log_consumed`], records them.
    pub(crate) fn visited(&self, sweep: MessageId, cells: &[CellId]) {
        let mut state = self.state.lock();
        if self.is_deposed() {
            return;
        }
        state.note_visits(sweep, cells);
        if state.cells_visited > limits::VISITS_NOTED_MAX {
            drop(state);
            self.say_next(State::take_visits)
        }
    }

    /// Appends a record of the visits collected so far, even if there are none. When the returned receiver completes, all
    /// visits that were noted before are recorded: see [`LogClient::say`]. A visit that the next entry of its bee was to name
    /// is not noted, so if that entry is refused, it is recorded later.
    pub(crate) fn log_visits(&self) -> oneshot::Receiver<()> {
        let (committed, told) = oneshot::channel();
        self.say_of(|state| Some((Record::Visited(state.take_visited()), committed)));
        told
    }

    /// Appends entries for everything collected so far, like [`LogClient::log_consumed`]. But as long as an entry about
    /// messages handled without effect is in flight, those that follow are not logged.
    pub(crate) fn log_consumed_if_due(&self) {
        self.say_next(State::take_consumed_if_due);
        self.say_next(State::take_acked);
        self.say_next(State::take_visits)
    }

    /// Appends entries for everything collected so far: acknowledgments, visits, and messages handled without effect.
    /// Appends nothing if nothing was collected. Nobody waits for these entries to commit.
    pub(crate) fn log_consumed(&self) {
        self.say_next(State::take_all_consumed);
        self.say_next(State::take_acked);
        self.say_next(State::take_visits)
    }

    /// Appends a record like [`LogClient::say`]. `take` takes its contents from the state, if there are any. Nobody waits
    /// for the entry to commit.
    fn say_next(&self, take: impl FnOnce(&mut State<W>) -> Option<Record>) {
        self.say_of(|state| Some((take(state)?, oneshot::channel().0)))
    }

    /// Appends a record that does not depend on any earlier entry. A refused record is appended again before anything
    /// newer, so such records keep their order.
    ///
    /// The returned receiver completes when the record is committed, or with an error if the hive is over first, or no longer
    /// leads the log. In the latter case, the record may have been committed all the same: the next leader knows.
    pub(crate) fn say(&self, record: Record) -> oneshot::Receiver<()> {
        let (committed, told) = oneshot::channel();
        self.say_of(|_| Some((record, committed)));
        told
    }

    fn say_of(&self, take: impl FnOnce(&mut State<W>) -> Option<(Record, oneshot::Sender<()>)>) {
        let journal = self.journal.lock();
        let mut state = self.state.lock();
        if self.is_deposed() {
            return;
        }
        let Some((record, committed)) = take(&mut state) else { return };
        let open = self.take_open(&mut state);
        let entry = state.say(record, committed);
        drop(state);
        open.into_iter().chain([entry]).for_each(|entry| append_to(journal.as_deref(), entry))
    }

    /// Releases everything that waits for an entry, now and from now on, because the hive is over: the bees, and the
    /// receivers returned by [`LogClient::say`]. Otherwise a journal that never decides an entry would keep the bees in
    /// memory, and the bees would keep this client and the journal.
    pub(crate) fn end(&self) {
        let waiters = (self.state.lock().end(), self.confirmations.as_ref().map(Confirmations::end));
        // dropped without the lock, because dropping a bee runs the app's code
        drop(waiters)
    }

    /// Drops the journal, because the hive is dropped. What remains of the client may be in memory for longer: each
    /// thread keeps its buffers for the next turn, and these lead to the apps of the last hive for which it ran a turn.
    pub(crate) fn close(&self) {
        self.end();
        let journal = self.journal.lock().take();
        // dropped without the lock, because the journal may wait for a thread that reports to this client
        drop(journal)
    }

    /// Appends a record like [`LogClient::say`] and waits until it is committed. Returns `false` if the hive is over first, or no
    /// longer leads the log: then the caller must do nothing more for the log.
    #[must_use]
    pub(crate) async fn commit(&self, record: Record) -> bool {
        self.say(record).await.is_ok()
    }

    /// Returns the fate of an entry. The caller must not have released or [taken back](LogClient::taken_back) its run in this
    /// entry: once all runs of a dead entry are taken back, the client no longer knows that it is dead.
    pub(crate) fn fate(&self, number: EntryNumber) -> Fate {
        // Read `committed` first. If it has passed a dead entry, the abort came before, so `dead` counts this entry.
        let is_decided = number.0 <= self.committed.load(Ordering::Acquire);
        if self.dead.load(Ordering::Acquire) > 0 && self.state.lock().dead.contains_key(&number) {
            Fate::Dead
        } else if is_decided {
            Fate::Committed
        } else {
            Fate::Open
        }
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
        self.dead.store(state.dead.len(), Ordering::Release)
    }
}

/// Hands an entry to the journal, unless the hive was dropped.
fn append_to(journal: Option<&dyn Journal>, entry: Arc<Entry>) {
    if let Some(journal) = journal {
        journal.append(entry)
    }
}

#[cfg(test)]
#[path = "log_client_tests.rs"]
mod tests;
