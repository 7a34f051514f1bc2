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
//! quarantined message runs at the same time, and the markers name no other one. A message that runs alone when the process
//! ends is accused, and runs alone once more. One that was accused before is set aside: it becomes a dead letter instead of
//! being run again. So a message may crash four processes. One naming is not enough, because a process that is killed from
//! outside accuses the message that happens to be running.
//!
//! If the previous incarnation stopped cleanly, unfinished messages only wait until a marker of this incarnation
//! is committed. Otherwise a message could crash one incarnation after the other before any of
//! them has left a marker. All other messages cost one flag load per run.

mod names;
mod suspects;

use crate::hive::consensus::journal::{
    CrashMarker, Journal, LaneId, LogState, MessageId, Record, Seq, Suspect,
};
use crate::hive::consensus::log_client::LogClient;
use crate::limits;
use crate::message::{Error, ErrorKind};
use crate::mutant::{Mutant, Mutation};
use names::{Committed, Names};
use parking_lot::{Condvar, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::ThreadId;
use suspects::Suspects;
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
    /// The handler runs under a crash marker, which may name this message until this value is dropped.
    Marked(#[allow(dead_code)] Noted<'a>),
    /// The handler does not run: the message is set aside.
    SetAside,
}

/// A quarantined message that is running. The crash marker names it until this value is dropped.
pub(crate) struct Noted<'a> {
    quarantine: &'a Quarantine,
    suspect: Suspect,
    log: Arc<dyn MarkedLog>,
    _order: Order<'a>,
}

/// The right of a quarantined message to run.
enum Order<'a> {
    /// Together with others.
    #[allow(dead_code)]
    Together(RwLockReadGuard<'a, ()>),
    /// While no other quarantined message runs.
    #[allow(dead_code)]
    Alone(RwLockWriteGuard<'a, ()>),
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        let quarantine = self.quarantine;
        quarantine.running_on.lock().retain(|thread| *thread != std::thread::current().id());

        let mut names = quarantine.names.lock();
        if names[self.log.position()].end(&self.suspect) {
            // nobody waits for its commit: until then, the messages are suspected needlessly
            drop(quarantine.append(&*self.log, &names))
        }
        drop(names);
        quarantine.is_run(&self.suspect)
    }
}

/// The messages that may have crashed the process, and the crash markers.
pub(crate) struct Quarantine {
    /// Whether the previous incarnation ended with a crash, or that of another hive whose log this one has taken over.
    unclean: AtomicBool,
    /// Whether `suspects` contains anything.
    any: AtomicBool,
    suspects: Mutex<Suspects>,
    /// Held while a quarantined message is running: exclusively by one that runs alone.
    order: RwLock<()>,
    /// The threads that hold `order`.
    running_on: Mutex<Vec<ThreadId>>,
    /// The messages that the marker of each log names. Held while a marker is appended, so that the last one appended names
    /// them. Locked before `suspects`.
    names: Mutex<Vec<Names>>,
    committed: Mutex<Committed>,
    /// Notified when `committed` changes.
    committed_changed: Condvar,
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
        let suspects = Suspects::in_logs(&states);
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
            order: RwLock::default(),
            running_on: Mutex::default(),
            names: Mutex::new(vec![Names::default(); room]),
            committed: Mutex::new(Committed { names: vec![None; room], is_over: false }),
            committed_changed: Condvar::new(),
            mutation,
        }
    }

    /// Reads the crash marker in a log that this hive takes over at a position. If there is one, quarantines the messages
    /// that are unfinished in the log. If there is none, the hive sends nothing of the log before its own marker is
    /// committed there, so nothing has to wait.
    pub(crate) fn take_over(&self, position: usize, state: &LogState) {
        if state.marker.is_none() || self.mutation.breaks(Mutant::TakenUnmarked) {
            return;
        }
        let taken = Suspects::in_logs(&[(position, state)]);
        tracing::warn!(
            unfinished = taken.message_ids.len() + taken.sweeps.len(),
            set_aside = taken.set_aside.len(),
            "the leader of the log crashed; its unfinished messages are handled under a crash marker"
        );
        let mut suspects = self.suspects.lock();
        self.unclean.store(true, Ordering::Release);
        suspects.extend(taken);
        self.any.store(!suspects.is_empty(), Ordering::Release)
    }

    /// The hive does not lead the log at a position after all. Another log may get the position.
    pub(crate) fn forget(&self, position: usize) {
        if let Some(names) = self.names.lock().get_mut(position) {
            *names = Names::default()
        }
        if let Some(committed) = self.committed.lock().names.get_mut(position) {
            *committed = None
        }
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
        let _names = self.names.lock();
        self.stop_waiting();
        // a handler that is still running after the grace period may still crash the process
        match self.order.try_write() {
            Some(_order) => logs.into_iter().map(|log| MarkedLog::append(&**log, None)).collect(),
            None => Vec::new(),
        }
    }

    /// Ends all waiting for markers, now and later.
    pub(crate) fn stop_waiting(&self) {
        self.committed.lock().is_over = true;
        self.committed_changed.notify_all();
    }

    /// Notes that a marker is committed to a log.
    pub(crate) fn committed(&self, log: usize, marker: Option<&CrashMarker>) {
        if let Some(names) = self.committed.lock().names.get_mut(log) {
            *names = Some(marker.map(|marker| marker.running.clone()).unwrap_or_default())
        }
        self.committed_changed.notify_all();
    }

    /// Notes that a sender outside the hive resumes its lane at `next_seq`. After a crash, one of the next
    /// messages on the lane may be the one that crashed the process, so a whole window of messages is
    /// quarantined.
    pub(crate) fn resumed(&self, lane: LaneId, next_seq: Seq) {
        if self.unclean.load(Ordering::Acquire) || !self.committed.lock().is_any() {
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
        if !self.unclean.load(Ordering::Acquire) && self.committed.lock().is_any() {
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
        let begun = match self.unclean.load(Ordering::Acquire) {
            true => {
                let order = match runs_alone {
                    true => Order::Alone(self.order.write()),
                    false => Order::Together(self.order.read()),
                };
                self.running_on.lock().push(this_thread);
                match runs_alone {
                    true => self.name_alone(&log, threads, suspect),
                    false => self.name(&log, threads, suspect, next),
                }
                Begun::Marked(Noted { quarantine: self, suspect, log, _order: order })
            }
            false => {
                self.wait(Committed::is_any);
                Begun::Plainly
            }
        };
        threads.end_run(slot);
        begun
    }

    /// Names a message in the marker of a log, together with those that are expected next, and waits until a marker that
    /// names it is committed. If the hive stops meanwhile, the message runs without a committed marker: if it crashes the
    /// process now, it is quarantined once more.
    fn name(
        self: &Arc<Self>,
        log: &Arc<dyn MarkedLog>,
        threads: &impl Threads,
        suspect: Suspect,
        next: &mut dyn Iterator<Item = Suspect>,
    ) {
        let position = log.position();
        let is_new = {
            let mut names = self.names.lock();
            let suspects = self.suspects.lock();
            let next = next.filter(|one| !suspects.runs_alone(one));
            names[position].begin(suspect, next.chain(suspects.behind(&suspect)))
        };

        if is_new {
            self.append_apart(log.clone(), threads)
        }
        self.wait_for_name(|committed| committed.has(position, &suspect))
    }

    /// Names a message in the marker of a log, and waits until the committed markers name it and no other message: a crash
    /// must not accuse one that has run before.
    fn name_alone(self: &Arc<Self>, log: &Arc<dyn MarkedLog>, threads: &impl Threads, suspect: Suspect) {
        let position = log.position();
        let mut to_clear: Vec<Arc<dyn MarkedLog>> = Vec::new();
        {
            let mut names = self.names.lock();
            for (at, names) in names.iter_mut().enumerate() {
                if names.clear() && at != position {
                    to_clear.extend(names.log.as_ref().and_then(Weak::upgrade))
                }
            }
            names[position].begin(suspect, std::iter::empty());
        }

        for log in to_clear {
            self.append_apart(log, threads)
        }
        self.append_apart(log.clone(), threads);
        self.wait_for_name(|committed| committed.has_only(position, &suspect))
    }

    /// Appends a marker to a log, on a thread that runs no tasks.
    fn append_apart(self: &Arc<Self>, log: Arc<dyn MarkedLog>, threads: &impl Threads) {
        let quarantine = self.clone();
        threads.run_apart(Box::new(move || drop(quarantine.append(&*log, &quarantine.names.lock()))))
    }

    /// Appends a marker to a log, unless the hive has stopped. It names the messages that are to be named now. The caller
    /// holds the lock on all names, so the last marker is right in whatever order several threads append theirs.
    fn append(&self, log: &dyn MarkedLog, names: &[Names]) -> Option<oneshot::Receiver<()>> {
        if self.committed.lock().is_over {
            return None;
        }

        let position = log.position();
        let running = match self.mutation.breaks(Mutant::PoisonUnmarked) {
            true => Vec::new(),
            false => names[position].all(),
        };
        let marker = self.suspects.lock().marker(position, running);
        Some(log.append(Some(marker)))
    }

    /// Waits until the committed markers name a message.
    fn wait_for_name(&self, is_named: impl Fn(&Committed) -> bool) {
        if self.mutation.breaks(Mutant::PoisonBeforeMarker) {
            return;
        }
        match self.mutation.breaks(Mutant::PoisonUnmarked) {
            true => self.wait(Committed::is_any),
            false => self.wait(is_named),
        }
    }

    /// Waits until `are_so` returns `true` for the committed markers, or the hive stops.
    fn wait(&self, are_so: impl Fn(&Committed) -> bool) {
        let mut committed = self.committed.lock();
        self.committed_changed
            .wait_while(&mut committed, |committed| !committed.is_over && !are_so(committed))
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
