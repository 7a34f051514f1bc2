//! Quarantine: after a crash, unfinished messages run one at a time under a crash marker. A message that was running
//! when two processes ended is set aside.
//!
//! A handler that panics does not affect other messages. A handler that aborts the process (through a stack
//! overflow, exhausted memory, or a library that calls `abort`) also ends the handling of all other messages,
//! and the log would resend the fatal message in every incarnation. An incarnation therefore appends a crash
//! marker to each of its logs when it starts ([`Record::Mark`]), and removes the markers when it stops. If it
//! finds a marker of the previous incarnation, it quarantines the messages that were unfinished at the crash:
//! no two of them run at the same time, and before one runs, a marker that names it is committed to the log of
//! the bee that handles it. If this message crashes the process again, the next incarnation finds its name in
//! the marker, accuses it, and runs it once more. A message that two markers have named is set aside: it becomes a
//! dead letter instead of being run again. One naming is not enough, because a process that is killed from outside
//! accuses the message that happens to be running.
//!
//! If the previous incarnation stopped cleanly, unfinished messages only wait until a marker of this incarnation
//! is committed. Otherwise a message could crash one incarnation after the other before any of
//! them has left a marker. All other messages cost one flag load per run.

use crate::cell::BeeId;
use crate::hash::{HashMap, HashSet};
use crate::hive::consensus::journal::{
    AppId, CrashMarker, Journal, LaneId, LogState, MessageId, Part, Record, Seq, Suspect,
};
use crate::hive::consensus::log_client::LogClient;
use crate::limits;
use crate::message::{Error, ErrorKind};
use crate::mutant::{Mutant, Mutation};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ThreadId;
use tokio::sync::oneshot;

/// Receives reports of quarantined messages that hold their thread, so that the watchdog can move the work
/// behind them to other threads.
pub(crate) trait Threads {
    /// Notes that the thread of `slot` is busy with a handler.
    fn begin_run(&self, slot: usize, app: u16, handler: usize);
    /// Notes that the thread of `slot` is no longer busy.
    fn end_run(&self, slot: usize);
    /// Runs `work` on a thread that runs no tasks, which may be the calling thread.
    ///
    /// Tokio reserves the task that a worker woke last for that worker. If a worker appended a marker and then
    /// waited for it, the journal's task would wait for the worker.
    fn run_apart(&self, work: Box<dyn FnOnce() + Send>);
}

/// A log to which crash markers are appended.
trait MarkedLog: Send + Sync {
    /// Returns the log's position among the hive's logs.
    fn position(&self) -> usize;
    /// Appends a marker. The returned receiver completes when the marker is committed.
    fn append(&self, marker: Option<CrashMarker>) -> oneshot::Receiver<()>;
}

impl<W: Send + Sync + ?Sized> MarkedLog for LogClient<W> {
    fn position(&self) -> usize {
        LogClient::position(self)
    }

    fn append(&self, marker: Option<CrashMarker>) -> oneshot::Receiver<()> {
        self.say(Record::Mark { marker })
    }
}

/// The quarantine's decision about a message that a handler is about to run.
pub(crate) enum Begun<'a> {
    /// The handler runs normally: the message is not quarantined.
    Plainly,
    /// The handler runs under a crash marker. No other quarantined message runs until this value is dropped.
    Marked(#[allow(dead_code)] Noted<'a>),
    /// The handler does not run: the message is set aside.
    SetAside,
}

/// A quarantined message that is running. The crash marker names it until this value is dropped.
pub(crate) struct Noted<'a> {
    quarantine: &'a Quarantine,
    suspect: Suspect,
    log: Arc<dyn MarkedLog>,
    _alone: MutexGuard<'a, ()>,
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        *self.quarantine.held_by.lock() = None;
        // this marker comes before that of the next message, because `_alone` is still locked. Nobody waits for
        // its commit: until then, the message is suspected needlessly
        let marker = self.quarantine.marker(self.log.position(), None);
        drop(self.log.append(Some(marker)));
        self.quarantine.is_run(&self.suspect)
    }
}

#[derive(Default)]
struct State {
    /// Messages that were unfinished in the logs at startup and have not been run since.
    message_ids: BTreeSet<MessageId>,
    /// Sweeps that were unfinished in the logs at startup and still are.
    sweeps: HashSet<MessageId>,
    /// Resumed lanes, each with a number below which messages may have been sent before the crash.
    lanes: HashMap<LaneId, Seq>,
    /// Messages that a marker named when a process ended, and that have not been run since, each with the position of the
    /// log whose marker lists it.
    accused: BTreeMap<Suspect, usize>,
    /// Messages that must not be run again, each with the position of the log whose marker lists it.
    set_aside: BTreeMap<Suspect, usize>,
}

impl State {
    /// Checks whether every message may run as usual. An accused message is also in one of the other sets, as long as
    /// it may still arrive.
    fn is_empty(&self) -> bool {
        self.message_ids.is_empty()
            && self.sweeps.is_empty()
            && self.lanes.is_empty()
            && self.set_aside.is_empty()
    }

    /// Ends the quarantine of all messages that are not set aside.
    fn clear(&mut self) {
        *self = State { set_aside: std::mem::take(&mut self.set_aside), ..State::default() }
    }

    /// Checks whether any message from `first` to `last` (on the same lane) may be quarantined or set aside.
    fn concerns(&mut self, first: MessageId, last: MessageId) -> bool {
        if self.lanes.get(&first.lane).is_some_and(|end| first.seq >= *end) {
            // the lane has passed all numbers that the previous incarnation could have admitted
            self.lanes.remove(&first.lane);
        }

        let first = MessageId { part: Part::WHOLE, app: AppId(0), ..first };
        let last = MessageId { part: Part(u64::MAX), app: AppId(u16::MAX), ..last };
        let (from, to) = (Suspect { id: first, cell: None }, Suspect { id: last, cell: None });
        self.message_ids.range(first..=last).next().is_some()
            || self.lanes.contains_key(&first.lane)
            || self.set_aside.range(from..=to).next().is_some()
    }

    /// Checks whether the previous incarnation may have run the message.
    fn may_have_been_run(&mut self, message_id: MessageId) -> bool {
        if self.message_ids.contains(&message_id) || self.sweeps.contains(&message_id) {
            return true;
        }
        match self.lanes.get(&message_id.lane) {
            Some(end) if message_id.seq < *end => true,
            Some(_) => {
                self.lanes.remove(&message_id.lane);
                false
            }
            None => false,
        }
    }
}

/// The committed crash markers of this incarnation.
struct Markers {
    /// For each log, the message named by the last committed marker (`Some(None)` if it names none). `None` if no
    /// marker of this incarnation is committed.
    committed: Vec<Option<Option<Suspect>>>,
    /// Whether the hive has stopped, so that nobody should wait for a marker any more.
    is_over: bool,
}

impl Markers {
    /// Checks whether a marker is committed, so that the end of the process counts as a crash.
    fn is_any_committed(&self) -> bool {
        self.committed.iter().any(Option::is_some)
    }

    /// Checks whether the log's committed marker is the only one that names a message, or names none if `running` is
    /// `None`.
    fn names_only(&self, log: usize, running: Option<Suspect>) -> bool {
        let mut others = self.committed.iter().enumerate().filter(|(at, _)| *at != log);
        self.committed.get(log) == Some(&Some(running))
            && !others.any(|(_, other)| matches!(other, Some(Some(_))))
    }
}

/// The messages that may have crashed the process, and the crash markers.
pub(crate) struct Quarantine {
    /// Whether the previous incarnation ended with a crash.
    unclean: bool,
    /// Whether `state` contains anything.
    any: AtomicBool,
    state: Mutex<State>,
    /// Held while a quarantined message is running, so that only one runs at a time.
    alone: Mutex<()>,
    /// The thread that holds `alone`.
    held_by: Mutex<Option<ThreadId>>,
    markers: Mutex<Markers>,
    /// Notified when `markers` changes.
    markers_changed: Condvar,
    mutation: Mutation,
}

impl Quarantine {
    /// Reads the crash markers in the logs. If there is one, quarantines the messages that are unfinished in the
    /// logs. Otherwise the unfinished messages wait until a marker of this incarnation is committed.
    pub(crate) fn new(logs: &[(Arc<dyn Journal>, LogState)], mutation: Mutation) -> Quarantine {
        let markers =
            || logs.iter().enumerate().filter_map(|(at, (_, log))| Some((at, log.marker.as_ref()?)));
        let unclean = markers().next().is_some();
        let mut state = State {
            message_ids: logs.iter().flat_map(|(_, log)| log.outbox.keys()).copied().collect(),
            sweeps: logs.iter().flat_map(|(_, log)| log.sweeps.keys()).copied().collect(),
            ..State::default()
        };

        if unclean {
            let is_unfinished = |(suspect, _): &(Suspect, usize)| is_unfinished(logs, suspect);
            let set_aside =
                markers().flat_map(|(at, marker)| marker.set_aside.iter().map(move |one| (*one, at)));
            state.set_aside = set_aside.filter(is_unfinished).collect();
            let accused = markers().flat_map(|(at, marker)| marker.accused.iter().map(move |one| (*one, at)));
            state.accused = accused.filter(is_unfinished).collect();
            let last = markers().filter_map(|(at, marker)| Some((marker.running?, at)));
            let (again, first): (BTreeMap<_, _>, BTreeMap<_, _>) =
                last.filter(is_unfinished).partition(|(suspect, _)| state.accused.contains_key(suspect));

            // always add the message that was running when the previous process ended, even if that evicts another
            // one, because it would probably end this process too
            state.accused.retain(|suspect, _| !again.contains_key(suspect));
            add(first, &mut state.accused);
            add(again, &mut state.set_aside);

            tracing::warn!(
                unfinished = state.message_ids.len() + state.sweeps.len(),
                set_aside = state.set_aside.len(),
                "the previous process did not stop cleanly; messages that it left unfinished are handled one at a time"
            );
        }

        Quarantine {
            unclean,
            any: AtomicBool::new(!state.is_empty()),
            state: Mutex::new(state),
            alone: Mutex::default(),
            held_by: Mutex::default(),
            markers: Mutex::new(Markers { committed: vec![None; logs.len()], is_over: false }),
            markers_changed: Condvar::new(),
            mutation,
        }
    }

    /// Appends a crash marker to each log: from now on, if the process exits without calling
    /// [`Quarantine::end_life`], that counts as a crash.
    pub(crate) fn begin_life<W: Send + Sync + ?Sized>(&self, logs: &[Arc<LogClient<W>>]) {
        for log in logs {
            let marker = self.marker(log.position(), None);
            drop(MarkedLog::append(&**log, Some(marker)))
        }
    }

    /// Removes the crash markers, because the hive is stopping cleanly. Leaves them in place if a quarantined
    /// message is still running. From now on, nobody waits for a marker. The returned receivers complete when
    /// the markers are removed.
    pub(crate) fn end_life<W: Send + Sync + ?Sized>(
        &self,
        logs: &[Arc<LogClient<W>>],
    ) -> Vec<oneshot::Receiver<()>> {
        self.stop_waiting();
        // a handler that is still running after the grace period may still crash the process
        match self.alone.try_lock() {
            Some(_alone) => logs.iter().map(|log| MarkedLog::append(&**log, None)).collect(),
            None => Vec::new(),
        }
    }

    /// Ends all waiting for markers, now and later.
    pub(crate) fn stop_waiting(&self) {
        self.markers.lock().is_over = true;
        self.markers_changed.notify_all();
    }

    /// Notes that a marker is committed to a log.
    pub(crate) fn committed(&self, log: usize, marker: Option<&CrashMarker>) {
        if let Some(committed) = self.markers.lock().committed.get_mut(log) {
            *committed = Some(marker.and_then(|marker| marker.running))
        }
        self.markers_changed.notify_all();
    }

    /// Notes that a sender outside the hive resumes its lane at `next_seq`. After a crash, one of the next
    /// messages on the lane may be the one that crashed the process, so a whole window of messages is
    /// quarantined.
    pub(crate) fn resumed(&self, lane: LaneId, next_seq: Seq) {
        if self.unclean || !self.markers.lock().is_any_committed() {
            let end = next_seq.plus(limits::LANE_WINDOW_MAX);
            self.state.lock().lanes.insert(lane, end);
            self.any.store(true, Ordering::Release)
        }
    }

    /// Removes a sweep that is complete.
    pub(crate) fn swept(&self, sweep: &MessageId) {
        if self.is_any() {
            let mut state = self.state.lock();
            state.sweeps.remove(sweep);
            self.any.store(!state.is_empty(), Ordering::Release)
        }
    }

    /// Checks whether any message is quarantined or set aside.
    #[inline(always)]
    pub(crate) fn is_any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Checks whether a message in a run is quarantined or set aside. All other runs stay on the fast path,
    /// even if a timer set before the crash keeps its message in quarantine for a long time.
    #[inline]
    pub(crate) fn concerns(&self, first: MessageId, last: MessageId) -> bool {
        self.is_any() && self.look_for(first, last)
    }

    #[cold]
    fn look_for(&self, first: MessageId, last: MessageId) -> bool {
        let mut state = self.state.lock();
        if !self.unclean && self.markers.lock().is_any_committed() {
            state.clear()
        }
        let concerns = state.concerns(first, last);
        self.any.store(!state.is_empty(), Ordering::Release);
        concerns
    }

    /// Decides whether and how a handler runs a message. If the message is quarantined, waits until no other
    /// quarantined message is running, and then names this one in the crash marker of `log`, the log that will
    /// contain the result.
    #[inline]
    pub(crate) fn begin<W: Send + Sync + ?Sized + 'static>(
        &self,
        log: &Arc<LogClient<W>>,
        threads: &impl Threads,
        slot: usize,
        by: (u16, usize),
        suspect: Suspect,
    ) -> Begun<'_> {
        match self.is_any() {
            true => self.look(log.clone(), threads, slot, by, suspect),
            false => Begun::Plainly,
        }
    }

    #[cold]
    fn look(
        &self,
        log: Arc<dyn MarkedLog>,
        threads: &impl Threads,
        slot: usize,
        (app, handler): (u16, usize),
        suspect: Suspect,
    ) -> Begun<'_> {
        {
            let mut state = self.state.lock();
            if state.set_aside.contains_key(&suspect) {
                return Begun::SetAside;
            }
            if !state.may_have_been_run(suspect.id) {
                self.any.store(!state.is_empty(), Ordering::Release);
                return Begun::Plainly;
            }
        }

        if *self.held_by.lock() == Some(std::thread::current().id()) {
            // a quarantined message that is running has caused this one. A crash of its handler is attributed to
            // that message
            return Begun::Plainly;
        }

        // waiting blocks this thread just as a slow handler does, so report it in the same way
        threads.begin_run(slot, app, handler);
        let begun = match self.unclean {
            true => {
                let alone = self.alone.lock();
                *self.held_by.lock() = Some(std::thread::current().id());
                self.name(log.clone(), threads, suspect);
                Begun::Marked(Noted { quarantine: self, suspect, log, _alone: alone })
            }
            false => {
                self.wait(Markers::is_any_committed);
                Begun::Plainly
            }
        };
        threads.end_run(slot);
        begun
    }

    /// Appends a marker that names a message, and waits until it is committed. If the hive stops meanwhile, the
    /// message runs without a committed marker: if it crashes the process now, it is quarantined once more.
    fn name(&self, log: Arc<dyn MarkedLog>, threads: &impl Threads, suspect: Suspect) {
        let position = log.position();
        let marker = self.marker(position, Some(suspect));
        let running = marker.running;
        threads.run_apart(Box::new(move || drop(log.append(Some(marker)))));
        if !self.mutation.breaks(Mutant::PoisonBeforeMarker) {
            // wait until no log names an earlier message any more, because a crash now would accuse it
            self.wait(|markers| markers.names_only(position, running))
        }
    }

    /// Waits until `are_so` returns `true` for the committed markers, or the hive stops.
    fn wait(&self, are_so: impl Fn(&Markers) -> bool) {
        let mut markers = self.markers.lock();
        self.markers_changed.wait_while(&mut markers, |markers| !markers.is_over && !are_so(markers))
    }

    /// Returns a marker for a log. It names the running message, if there is one.
    fn marker(&self, log: usize, running: Option<Suspect>) -> CrashMarker {
        let state = self.state.lock();
        let listed_here = |all: &BTreeMap<Suspect, usize>| {
            all.iter().filter(|(_, at)| **at == log).map(|(suspect, _)| *suspect).collect()
        };
        let running = running.filter(|_| !self.mutation.breaks(Mutant::PoisonUnmarked));
        let (accused, set_aside) = (listed_here(&state.accused), listed_here(&state.set_aside));
        CrashMarker { running, accused, set_aside }
    }

    /// Removes a message from the quarantine after it has been run.
    fn is_run(&self, suspect: &Suspect) {
        let mut state = self.state.lock();
        state.message_ids.remove(&suspect.id);
        state.accused.remove(suspect);
        self.any.store(!state.is_empty(), Ordering::Release)
    }
}

/// Adds messages to a list, and removes others from it if there would be too many.
fn add(more: BTreeMap<Suspect, usize>, to: &mut BTreeMap<Suspect, usize>) {
    while to.len() + more.len() > limits::SET_ASIDE_MAX && !to.is_empty() {
        to.pop_first();
    }
    to.extend(more)
}

/// While this value exists, threads wait for crash markers.
pub(crate) struct Waiting(pub(crate) Arc<Quarantine>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.stop_waiting()
    }
}

/// Checks whether the suspect's app may still have to handle the message. A message from outside is in no
/// log, so it counts as unfinished unless one of that app's bees has consumed it. Bees of other apps do not
/// count, because each app consumes the message separately.
fn is_unfinished(logs: &[(Arc<dyn Journal>, LogState)], Suspect { id: message_id, .. }: &Suspect) -> bool {
    let bees_of_app = (message_id.app, BeeId(0))..=(message_id.app, BeeId(u64::MAX));
    let mut bees = logs.iter().flat_map(|(_, log)| log.bees.range(bees_of_app.clone()));
    logs.iter().any(|(_, log)| log.outbox.contains_key(message_id) || log.sweeps.contains_key(message_id))
        || (message_id.lane.is_lasting()
            && !bees.any(|(_, bee)| bee.seen.contains(message_id.lane, message_id.seq, message_id.part)))
}

/// Returns the error of a message that the quarantine has set aside.
pub(crate) fn set_aside() -> Error {
    let text = "set aside: the process ended twice while its crash marker named this message as running; the message will not be \
                handled again";
    Error::of(ErrorKind::Aborted, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hive::consensus::journal::BeeImage;
    use crate::testing::TestJournal;

    /// Returns message number `seq` of a resumable lane.
    fn suspect(seq: u64) -> Suspect {
        Suspect {
            id: MessageId { lane: LaneId(7), seq: Seq(seq), part: Part::WHOLE, app: AppId(0) },
            cell: None,
        }
    }

    /// App 1 aborted the process while handling a message that app 0 had already consumed.
    #[test]
    fn a_message_that_another_app_has_consumed_is_set_aside() {
        let mut colony = LogState::default();
        colony.bees.insert((AppId(0), BeeId(3)), Box::new(BeeImage::default()));
        colony.bees.insert((AppId(1), BeeId(4)), Box::new(BeeImage::default()));
        let consumed_by = |colony: &mut LogState, app, bee| {
            let seen = &mut colony.bees.get_mut(&(AppId(app), BeeId(bee))).unwrap().seen;
            seen.insert(suspect(9).id.lane, Seq(9), Part::WHOLE);
        };

        let in_app_1 = Suspect { id: MessageId { app: AppId(1), ..suspect(9).id }, cell: None };
        consumed_by(&mut colony, 0, 3);
        let journal = TestJournal::start(1, 0, 0);
        journal.stop();
        let unfinished = |colony: &LogState, suspect: &Suspect| {
            is_unfinished(&[(journal.clone() as Arc<dyn Journal>, colony.clone())], suspect)
        };
        assert!(unfinished(&colony, &in_app_1) && !unfinished(&colony, &suspect(9)));
        consumed_by(&mut colony, 1, 4);
        assert!(!unfinished(&colony, &in_app_1));
    }

    #[test]
    fn of_very_many_the_one_that_ended_the_last_life_is_set_aside() {
        let journal = TestJournal::start(1, 0, 0);
        let set_aside = (1..=limits::SET_ASIDE_MAX as u64).map(suspect).collect();
        let marker = Some(CrashMarker { running: Some(suspect(0)), accused: vec![suspect(0)], set_aside });
        let state = LogState { marker, ..LogState::default() };
        let quarantine = Quarantine::new(&[(journal.clone(), state)], Mutation::default());
        journal.stop();
        let state = quarantine.state.lock();
        assert_eq!(state.set_aside.len(), limits::SET_ASIDE_MAX);
        assert!(state.set_aside.contains_key(&suspect(0)) && state.accused.is_empty());
    }

    /// A process that is killed from outside may accuse a harmless message.
    #[test]
    fn a_message_that_is_accused_once_is_run_again() {
        let journal = TestJournal::start(1, 0, 0);
        let accused = (1..=limits::SET_ASIDE_MAX as u64).map(suspect).collect();
        let marker = Some(CrashMarker { running: Some(suspect(0)), accused, set_aside: vec![] });
        let state = LogState { marker, ..LogState::default() };
        let quarantine = Quarantine::new(&[(journal.clone(), state)], Mutation::default());
        journal.stop();

        let marker = quarantine.marker(0, None);
        assert!(marker.set_aside.is_empty());
        assert_eq!(marker.accused.len(), limits::SET_ASIDE_MAX);
        assert!(marker.accused.contains(&suspect(0)), "until it has run");
        quarantine.is_run(&suspect(0));
        assert!(!quarantine.marker(0, None).accused.contains(&suspect(0)));
    }
}
