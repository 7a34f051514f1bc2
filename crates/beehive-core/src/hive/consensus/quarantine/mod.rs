//! Quarantine: after a crash, unfinished messages run under a crash marker that names them. A message that was running
//! alone when two processes ended is set aside.
//!
//! A handler that panics does not affect other messages. A handler that aborts the process (through a stack
//! overflow, exhausted memory, or a library that calls `abort`) also ends the handling of all other messages,
//! and the log would resend the fatal message in every incarnation. An incarnation therefore appends a crash
//! marker to each of its logs when it starts ([`Record::Mark`]), and removes the markers when it stops. If it
//! finds a marker of the previous incarnation, it quarantines the messages that were unfinished at the crash:
//! before one of them runs, a marker that names it is committed to the log of the bee that handles it.
//!
//! Naming costs a commit, so a marker names a message together with those that are expected next. If the process ends
//! again, all messages named at that moment are suspected, and each of them runs alone in the next incarnation: no other
//! quarantined message runs at the same time, and no newer marker names another one (`turns.rs`). A message that runs alone
//! when the process ends is accused, and runs alone once more. One that was accused before is set aside: it becomes a dead letter instead of
//! being run again. So a message may crash four processes. One naming is not enough, because a process that is killed from
//! outside accuses the message that happens to be running.
//!
//! A message holds its thread while it waits for its marker. Only a few threads wait for each log; further bees and deferred
//! messages are parked (`parking.rs`).
//!
//! If the previous incarnation stopped cleanly, unfinished messages only wait until a marker of this incarnation
//! is committed. Otherwise a message could crash one incarnation after the other before any of
//! them has left a marker. All other messages cost one flag load per run.

mod names;
mod parking;
mod suspects;
mod turns;

use crate::hive::consensus::journal::{
    CrashMarker, Journal, LaneId, LogState, MessageId, Record, Seq, Suspect,
};
use crate::hive::consensus::log_client::LogClient;
use crate::limits;
use crate::message::{Error, ErrorKind};
use crate::mutant::{Mutant, Mutation};
use names::Names;
use parking::Parking;
pub(crate) use parking::{Resume, Resumed, Work};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::ThreadId;
use std::time::Duration;
use suspects::Suspects;
use tokio::sync::oneshot;
use turns::Turns;

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
    /// Checks whether the hive no longer leads the log, so that no marker is committed any more.
    fn is_deposed(&self) -> bool;
}

impl<W: Send + Sync + ?Sized> MarkedLog for LogClient<W> {
    fn position(&self) -> usize {
        LogClient::position(self)
    }

    fn append(&self, marker: Option<CrashMarker>) -> oneshot::Receiver<()> {
        self.say(Record::Mark { marker })
    }

    fn is_deposed(&self) -> bool {
        LogClient::is_deposed(self)
    }
}

/// The quarantine's decision about a message that a handler is about to run.
pub(crate) enum Begun<'a> {
    /// The handler runs normally: the message is not quarantined.
    Plainly,
    /// The handler runs under a crash marker, which may name this message until this value is dropped.
    Marked(#[allow(dead_code)] Noted<'a>),
    /// The handler does not run: the message is set aside.
    SetAside,
    /// The handler does not run: the hive has lost the log while the message waited for the crash marker.
    Deposed,
}

/// A quarantined message that is running. The crash marker names it until this value is dropped.
pub(crate) struct Noted<'a> {
    quarantine: &'a Quarantine,
    suspect: Suspect,
    log: Arc<dyn MarkedLog>,
    /// Whether no other quarantined message runs.
    is_alone: bool,
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        let quarantine = self.quarantine;
        quarantine.running_on.lock().retain(|thread| *thread != std::thread::current().id());

        // Before its name is removed. If another thread named the messages that follow its own between the two, it would name
        // this one, which never runs again, so its name would stay.
        quarantine.is_run(&self.suspect);
        let mut names = quarantine.names.lock();
        if self.is_alone {
            // the next marker says that it has ended. Nobody names another message before it is appended
            quarantine.turns.lock().end()
        }
        // the names at the position of a log that the hive has lost may be those of its next log
        if !self.log.is_deposed() && names[self.log.position()].end(&self.suspect) {
            // nobody waits for its commit: until then, the messages are suspected needlessly
            drop(quarantine.append(&*self.log, &names))
        }
        drop(names);
        if !self.is_alone {
            quarantine.turns.lock().end_together()
        }
        quarantine.turns_changed.notify_all();
    }
}

/// The messages that may have crashed the process, and the crash markers.
pub(crate) struct Quarantine {
    /// Whether the previous incarnation ended with a crash, or that of another hive whose log this one has taken over.
    unclean: AtomicBool,
    /// Whether `suspects` contains anything.
    any: AtomicBool,
    suspects: Mutex<Suspects>,
    /// The threads that run a quarantined message, or wait until they may.
    running_on: Mutex<Vec<ThreadId>>,
    /// The messages that the marker of each log names. Held while a marker is appended, so that the last one appended names
    /// them. Locked before `suspects` and `turns`.
    names: Mutex<Vec<Names>>,
    /// Locked last.
    turns: Mutex<Turns>,
    /// Notified when `turns` changes.
    turns_changed: Condvar,
    /// No other lock is taken under this one.
    parking: Mutex<Parking>,
    /// Whether as many threads as may do so wait for the marker of any log. Changed under the lock of `parking`.
    any_full: AtomicBool,
    mutation: Mutation,
}

impl Quarantine {
    /// Reads the crash markers in the logs. If there is one, quarantines the messages that are unfinished in the
    /// logs. Otherwise the unfinished messages wait until a marker of this incarnation is committed. The hive never has more
    /// than `room` logs.
    pub(crate) fn new(logs: &[(Arc<dyn Journal>, LogState)], room: usize, mutation: Mutation) -> Quarantine {
        let unclean = logs.iter().any(|(_, log)| log.marker.is_some());
        let states: Vec<(usize, &LogState)> =
            logs.iter().enumerate().map(|(at, (_, state))| (at, state)).collect();
        let suspects = Suspects::in_logs(&states, true);
        let newest = logs.iter().filter_map(|(_, log)| log.marker.as_ref()).map(|marker| marker.number).max();
        if unclean {
            tracing::warn!(
                unfinished = suspects.message_ids.len() + suspects.sweeps.len(),
                set_aside = suspects.set_aside.len(),
                "the previous run of this process crashed; unfinished messages are handled under a crash marker"
            );
        }

        Quarantine {
            unclean: AtomicBool::new(unclean),
            any: AtomicBool::new(!suspects.is_empty()),
            suspects: Mutex::new(suspects),
            running_on: Mutex::default(),
            names: Mutex::new(vec![Names::default(); room]),
            turns: Mutex::new(Turns::new(room, newest.map_or(0, |newest| newest.saturating_add(1)))),
            turns_changed: Condvar::new(),
            parking: Mutex::new(Parking::new(room)),
            any_full: AtomicBool::new(false),
            mutation,
        }
    }

    /// Reads the crash marker in a log that this hive takes over at a position. If there is one, quarantines the messages
    /// that are unfinished in the log. If there is none, the hive sends nothing of the log before its own marker is
    /// committed there, so nothing has to wait. `has_ended` says whether the previous leader is known to have died.
    pub(crate) fn take_over(&self, position: usize, state: &LogState, has_ended: bool) {
        let Some(marker) = &state.marker else { return };
        if self.mutation.breaks(Mutant::TakenUnmarked) {
            return;
        }
        {
            // who is expected next has to be named again, in a marker with a higher number
            let mut names = self.names.lock();
            names.iter_mut().for_each(Names::expect_none);
            self.turns.lock().count_on_from(marker.number)
        }
        self.turns_changed.notify_all();
        let taken = Suspects::in_logs(&[(position, state)], has_ended);
        tracing::warn!(
            unfinished = taken.message_ids.len() + taken.sweeps.len(),
            set_aside = taken.set_aside.len(),
            has_ended,
            "the last leader of the log has left a crash marker; its unfinished messages are handled under another one"
        );
        let mut suspects = self.suspects.lock();
        self.unclean.store(true, Ordering::Release);
        suspects.extend(taken);
        self.any.store(!suspects.is_empty(), Ordering::Release)
    }

    /// The hive does not lead the log at a position after all, or no longer. Another log may get the position. Messages that wait
    /// for the marker of the log wait no longer.
    pub(crate) fn forget(&self, position: usize) {
        if let Some(names) = self.names.lock().get_mut(position) {
            *names = Names::default()
        }
        self.turns.lock().forget(position);
        {
            let mut suspects = self.suspects.lock();
            suspects.forget(position);
            self.any.store(!suspects.is_empty(), Ordering::Release)
        }
        self.turns_changed.notify_all();
        self.resume_all_of(position)
    }

    /// Appends a crash marker to each log: from now on, if the process exits without calling
    /// [`Quarantine::end_life`], that counts as a crash. The returned receivers complete when the markers are committed.
    pub(crate) fn begin_life<'a, W: Send + Sync + ?Sized + 'static>(
        &self,
        logs: impl IntoIterator<Item = &'a Arc<LogClient<W>>>,
    ) -> Vec<oneshot::Receiver<()>> {
        let mut names = self.names.lock();
        let mut committed = Vec::new();
        for log in logs {
            names[log.position()].log = Some(Arc::downgrade(log) as Weak<dyn MarkedLog>);
            committed.extend(self.append(&**log, &names))
        }
        committed
    }

    /// Removes the crash markers, because the hive is stopping cleanly. Leaves them in place if a quarantined
    /// message is still running. From now on, nobody waits for a marker. The returned receivers complete when
    /// the markers are removed.
    pub(crate) fn end_life<'a, W: Send + Sync + ?Sized + 'a>(
        &self,
        logs: impl IntoIterator<Item = &'a Arc<LogClient<W>>>,
    ) -> Vec<oneshot::Receiver<()>> {
        // no other marker follows
        let names = self.names.lock();
        self.end_turns();
        // a handler that is still running after the grace period may still crash the process
        let removed = match self.running_on.lock().is_empty() {
            true => logs.into_iter().map(|log| MarkedLog::append(&**log, None)).collect(),
            false => Vec::new(),
        };
        drop(names);
        self.end_parking();
        removed
    }

    /// Ends all waiting for markers, now and later.
    pub(crate) fn stop_waiting(&self) {
        self.end_turns();
        self.end_parking()
    }

    fn end_turns(&self) {
        self.turns.lock().is_over = true;
        self.turns_changed.notify_all();
    }

    /// Notes that a marker is committed to a log.
    pub(crate) fn committed(&self, log: usize, marker: Option<&CrashMarker>) {
        self.turns.lock().committed(log, marker);
        self.turns_changed.notify_all();
    }

    /// Notes that a sender outside the hive resumes its lane at `next_seq`. After a crash, one of the next
    /// messages on the lane may be the one that crashed the process, so a whole window of messages is
    /// quarantined.
    pub(crate) fn resumed(&self, lane: LaneId, next_seq: Seq) {
        if self.unclean.load(Ordering::Acquire) || !self.turns.lock().is_any() {
            let end = next_seq.plus(limits::LANE_WINDOW_MAX);
            self.suspects.lock().lanes.insert(lane, end);
            self.any.store(true, Ordering::Release)
        }
    }

    /// Removes a sweep that is complete.
    pub(crate) fn swept(&self, sweep: &MessageId) {
        if self.is_any() {
            let mut suspects = self.suspects.lock();
            suspects.sweeps.remove(sweep);
            self.any.store(!suspects.is_empty(), Ordering::Release)
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
        let mut suspects = self.suspects.lock();
        if !self.unclean.load(Ordering::Acquire) && self.turns.lock().is_any() {
            suspects.clear()
        }
        let concerns = suspects.concerns(first, last);
        self.any.store(!suspects.is_empty(), Ordering::Release);
        concerns
    }

    /// Decides whether and how a handler runs a message. If the message is quarantined, waits until the crash marker of
    /// `log` names it: the log that will contain the result. `next` are the messages that the caller runs after this one.
    #[inline]
    pub(crate) fn begin<W: Send + Sync + ?Sized + 'static, I: Iterator<Item = Suspect>>(
        self: &Arc<Self>,
        log: &Arc<LogClient<W>>,
        (threads, slot): (&impl Threads, usize),
        by: (u16, usize),
        suspect: Suspect,
        next: impl FnOnce() -> I,
    ) -> Begun<'_> {
        match self.is_any() {
            true => self.look(log.clone(), (threads, slot), by, suspect, &mut next()),
            false => Begun::Plainly,
        }
    }

    #[cold]
    fn look(
        self: &Arc<Self>,
        log: Arc<dyn MarkedLog>,
        (threads, slot): (&impl Threads, usize),
        (app, handler): (u16, usize),
        suspect: Suspect,
        next: &mut dyn Iterator<Item = Suspect>,
    ) -> Begun<'_> {
        let runs_alone = {
            let mut suspects = self.suspects.lock();
            if suspects.set_aside.contains_key(&suspect) {
                return Begun::SetAside;
            }
            if !suspects.may_have_been_run(suspect.id) {
                self.any.store(!suspects.is_empty(), Ordering::Release);
                return Begun::Plainly;
            }
            suspects.runs_alone(&suspect)
        };

        let this_thread = std::thread::current().id();
        if self.running_on.lock().contains(&this_thread) {
            // a quarantined message that is running has caused this one. A crash of its handler is attributed to
            // that message
            return Begun::Plainly;
        }

        // waiting blocks this thread just as a slow handler does, so report it in the same way
        threads.begin_run(slot, app, handler);
        let waits = self.waits(log.position());
        let begun = match self.unclean.load(Ordering::Acquire) {
            true => {
                self.running_on.lock().push(this_thread);
                match runs_alone {
                    true => self.name_alone(&log, threads, suspect),
                    false => self.name(&log, threads, suspect, next),
                }
                drop(waits);
                let noted = Noted { quarantine: self, suspect, log: log.clone(), is_alone: runs_alone };
                match log.is_deposed() {
                    true => {
                        drop(noted);
                        Begun::Deposed
                    }
                    false => Begun::Marked(noted),
                }
            }
            false => {
                drop(self.wait(|turns| turns.is_over || log.is_deposed() || turns.is_any()));
                self.resume_all_if_unsuspected();
                drop(waits);
                if log.is_deposed() { Begun::Deposed } else { Begun::Plainly }
            }
        };
        threads.end_run(slot);
        begun
    }

    /// Names a message in the marker of its log, together with those that are expected next, and waits until a marker that
    /// names it is committed, and no message runs alone. If the hive stops meanwhile, the message runs without a committed
    /// marker: if it crashes the process now, it is quarantined once more.
    fn name(
        self: &Arc<Self>,
        log: &Arc<dyn MarkedLog>,
        threads: &impl Threads,
        suspect: Suspect,
        next: &mut dyn Iterator<Item = Suspect>,
    ) {
        let position = log.position();
        loop {
            let named = {
                let mut names = self.names.lock();
                let turn =
                    Some(self.turns.lock()).filter(|turns| turns.is_open()).map(|turns| turns.number());
                turn.map(|number| {
                    let suspects = self.suspects.lock();
                    let next = (&mut *next).filter(|one| !suspects.runs_alone(one));
                    // the hive may have lost the log, and another one may have its position
                    let is_new = !log.is_deposed()
                        && names[position].begin(suspect, next.chain(suspects.behind(&suspect)));
                    (number, is_new)
                })
            };
            let Some((number, is_new)) = named else {
                drop(self.wait_for_turn(false));
                continue;
            };
            if is_new {
                self.append_apart(log.clone(), threads)
            }

            // A message that runs alone removes the names of all others, which then have to be named again: otherwise the
            // marker that names it might be the newest when one of them crashes the process.
            let is_void = |turns: &Turns| turns.is_taken() || turns.number() != number;
            let is_named = |turns: &Turns| {
                turns.is_over
                    || log.is_deposed()
                    || self.may_run(turns, turns.has(position, &suspect, number))
            };
            let mut turns = self.wait(|turns| is_void(turns) || is_named(turns));
            if !is_void(&turns) {
                return turns.begin_together();
            }
        }
    }

    /// Names a message alone in the marker of its log, and waits until that marker is committed. No other message runs, and
    /// none is named in a newer marker: a crash must not accuse one that has run before. Gives up the turn and begins again if
    /// the log commits nothing and others wait.
    fn name_alone(self: &Arc<Self>, log: &Arc<dyn MarkedLog>, threads: &impl Threads, suspect: Suspect) {
        let position = log.position();
        let mut patience = limits::SUSPECT_TURN_MAX;
        loop {
            // what the log may still commit names this message, or no longer names it
            drop(self.wait(|turns| turns.is_over || log.is_deposed() || !turns.is_stalled(position)));
            let number = {
                let mut turns = self.wait_for_turn(true);
                if turns.is_stalled(position) && !turns.is_over && !log.is_deposed() {
                    continue;
                }
                turns.take();
                self.turns_changed.notify_all();
                self.turns_changed.wait_while(&mut turns, |turns| turns.is_together());
                turns.number()
            };

            let mut to_clear: Vec<Arc<dyn MarkedLog>> = Vec::new();
            {
                let mut names = self.names.lock();
                for (at, names) in names.iter_mut().enumerate() {
                    if names.clear() && at != position {
                        to_clear.extend(names.log.as_ref().and_then(Weak::upgrade))
                    }
                }
                if !log.is_deposed() {
                    names[position].begin(suspect, std::iter::empty());
                }
            }
            // nobody waits for their commits: until then, the messages are suspected needlessly
            for log in to_clear {
                self.append_apart(log, threads)
            }
            self.append_apart(log.clone(), threads);
            if self.is_named_in_time(&**log, number, &suspect, patience) {
                return;
            }

            {
                // names first: until the turn has ended, nobody else is named
                let mut names = self.names.lock();
                names[position].clear();
                self.turns.lock().give_up(position)
            }
            self.turns_changed.notify_all();
            self.append_apart(log.clone(), threads);
            // so that slow logs, each with messages that run alone, do not take the turn from one another for ever
            patience = patience.saturating_mul(2)
        }
    }

    /// Waits until a marker with this number, or a higher one, is committed to the log and names this message only, or the hive
    /// stops or loses the log. Returns `false` if that takes longer than `patience` while others wait.
    fn is_named_in_time(
        &self,
        log: &dyn MarkedLog,
        number: u64,
        suspect: &Suspect,
        patience: Duration,
    ) -> bool {
        let is_named = |turns: &Turns| {
            turns.is_over
                || log.is_deposed()
                || self.may_run(turns, turns.has_only(log.position(), suspect, number))
        };
        let mut turns = self.turns.lock();
        while !is_named(&turns) {
            let waited = self.turns_changed.wait_while_for(&mut turns, |turns| !is_named(turns), patience);
            if waited.timed_out() && turns.is_waited_for() && !is_named(&turns) {
                return false;
            }
        }
        true
    }

    /// Waits until it is the turn of a message that runs `alone`, or together with others.
    fn wait_for_turn(&self, alone: bool) -> MutexGuard<'_, Turns> {
        let mut turns = self.turns.lock();
        *turns.waiting(alone) += 1;
        self.turns_changed
            .wait_while(&mut turns, |turns| if alone { turns.is_taken() } else { !turns.is_open() });
        *turns.waiting(alone) -= 1;
        if alone {
            // those that run together wait for this, too
            self.turns_changed.notify_all();
        }
        turns
    }

    /// Appends a marker to a log, on a thread that runs no tasks.
    fn append_apart(self: &Arc<Self>, log: Arc<dyn MarkedLog>, threads: &impl Threads) {
        let quarantine = self.clone();
        threads.run_apart(Box::new(move || drop(quarantine.append(&*log, &quarantine.names.lock()))))
    }

    /// Appends a marker to a log, unless the hive has stopped. It names the messages that are to be named now. The caller
    /// holds the lock on all names, so the last marker is right in whatever order several threads append theirs.
    fn append(&self, log: &dyn MarkedLog, names: &[Names]) -> Option<oneshot::Receiver<()>> {
        let number = {
            let turns = self.turns.lock();
            if turns.is_over {
                return None;
            }
            turns.number()
        };

        let position = log.position();
        let running = match self.mutation.breaks(Mutant::PoisonUnmarked) {
            true => Vec::new(),
            false => names[position].all(),
        };
        let marker = self.suspects.lock().marker((position, number), running);
        Some(log.append(Some(marker)))
    }

    /// Checks whether a message may run if its marker `is_committed`.
    fn may_run(&self, turns: &Turns, is_committed: bool) -> bool {
        if self.mutation.breaks(Mutant::PoisonBeforeMarker) {
            return true;
        }
        match self.mutation.breaks(Mutant::PoisonUnmarked) {
            true => turns.is_any(),
            false => is_committed,
        }
    }

    /// Waits until `are_so` returns `true`.
    fn wait(&self, are_so: impl Fn(&Turns) -> bool) -> MutexGuard<'_, Turns> {
        let mut turns = self.turns.lock();
        self.turns_changed.wait_while(&mut turns, |turns| !are_so(turns));
        turns
    }

    /// Removes a message from the quarantine after it has been run, or because no handler will run it.
    pub(crate) fn is_run(&self, suspect: &Suspect) {
        let mut suspects = self.suspects.lock();
        suspects.is_run(suspect);
        self.any.store(!suspects.is_empty(), Ordering::Release)
    }
}

/// While this value exists, threads wait for crash markers.
pub(crate) struct Waiting(pub(crate) Arc<Quarantine>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.stop_waiting()
    }
}

/// Returns the error of a message that the quarantine has set aside.
pub(crate) fn set_aside() -> Error {
    let text = "set aside: the process ended twice while this message was running alone; it will not be handled again";
    Error::of(ErrorKind::Aborted, text)
}
