//! Quarantine: after a crash, unfinished messages run one at a time under a crash marker, and a message that
//! crashes the process again is set aside.
//!
//! A handler that panics does not affect other messages. A handler that aborts the process (through a stack
//! overflow, exhausted memory, or a library that calls `abort`) also ends the handling of all other messages,
//! and the log would resend the fatal message in every incarnation. An incarnation therefore stores a crash
//! marker with its journal when it starts, and removes the marker when it stops. If it finds the previous
//! incarnation's marker, it quarantines the messages that were unfinished at the crash: no two of them run at
//! the same time, and while one is running, the marker names it. If this message crashes the process again,
//! the next incarnation finds its name in the marker and does not run it a third time.
//!
//! If the previous incarnation stopped cleanly, the only cost is one flag load per run.

use crate::cell::{BeeId, CellId};
use crate::hash::{HashMap, HashSet};
use crate::hive::consensus::journal::{
    AppId, CrashMarker, Journal, LaneId, LogState, MessageId, Part, Seq, Suspect,
};
use crate::limits;
use crate::message::{Error, ErrorKind};
use crate::mutant::{Mutant, Mutation};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Receives reports of quarantined messages that hold their thread, so that the watchdog can move the work
/// behind them to other threads.
pub(crate) trait Threads {
    /// Notes that the thread of `slot` is busy with a handler.
    fn begin_run(&self, slot: usize, app: u16, handler: usize);
    /// Notes that the thread of `slot` is no longer busy.
    fn end_run(&self, slot: usize);
}

/// How a handler runs a message.
pub(crate) enum Begun<'a> {
    /// Normally: the message is not quarantined.
    Plainly,
    /// Under the crash marker. No other quarantined message runs until this is dropped.
    Marked(#[allow(dead_code)] Noted<'a>),
    /// The handler does not run: the message is set aside.
    SetAside,
}

/// A quarantined message that is running. The crash marker names it until this is dropped.
pub(crate) struct Noted<'a> {
    quarantine: &'a Quarantine,
    suspect: Suspect,
    _alone: MutexGuard<'a, ()>,
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        // the marker is cleared before `_alone` is unlocked, so before the next message sets it
        self.quarantine.note(None);
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
    /// Messages that must not be run again.
    set_aside: BTreeSet<Suspect>,
}

impl State {
    fn is_empty(&self) -> bool {
        self.message_ids.is_empty()
            && self.sweeps.is_empty()
            && self.lanes.is_empty()
            && self.set_aside.is_empty()
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

/// The messages that may have crashed the process, and the crash marker.
pub(crate) struct Quarantine {
    /// The hive's journals. All that store a crash marker store the same one.
    journals: Vec<Arc<dyn Journal>>,
    /// Whether the previous incarnation ended with a crash.
    unclean: bool,
    /// Whether `state` contains anything.
    any: AtomicBool,
    state: Mutex<State>,
    /// Held while a quarantined message is running, so that only one runs at a time.
    alone: Mutex<()>,
    mutation: Mutation,
}

impl Quarantine {
    /// Reads the crash marker. If there is one, quarantines the messages that are unfinished in the logs.
    pub(crate) fn new(logs: &[(Arc<dyn Journal>, LogState)], mutation: Mutation) -> Quarantine {
        let before = logs.iter().find_map(|(journal, _)| journal.marked());
        let unclean = before.is_some();
        let mut state = State::default();
        if let Some(CrashMarker { running, set_aside }) = before {
            let unfinished = |suspect: &Suspect| is_unfinished(logs, suspect);
            let last = running.filter(unfinished);
            state.set_aside = set_aside.into_iter().filter(unfinished).collect();

            while state.set_aside.len() + usize::from(last.is_some()) > limits::SET_ASIDE_MAX {
                state.set_aside.pop_first();
            }
            // always adds the message that crashed the previous process, even if that evicts another one,
            // because it would crash this process too
            state.set_aside.extend(last);

            state.message_ids = logs.iter().flat_map(|(_, log)| log.outbox.keys()).copied().collect();
            state.sweeps = logs.iter().flat_map(|(_, log)| log.sweeps.keys()).copied().collect();
            tracing::warn!(
                unfinished = state.message_ids.len() + state.sweeps.len(),
                set_aside = state.set_aside.len(),
                "the previous run of this process crashed; unfinished messages are handled one at a time"
            );
        }

        let any = AtomicBool::new(!state.is_empty());
        let journals = logs.iter().map(|(journal, _)| journal.clone()).collect();
        Quarantine { journals, unclean, any, state: Mutex::new(state), alone: Mutex::default(), mutation }
    }

    /// Stores a crash marker: from now on, if the process exits without calling [`Quarantine::end_life`],
    /// that counts as a crash.
    pub(crate) fn begin_life(&self) {
        self.note(None)
    }

    /// Removes the crash marker, because the hive is stopping cleanly. Leaves it in place if a quarantined
    /// message is still running.
    pub(crate) fn end_life(&self) {
        // a handler that is still running after the grace period may still crash the process
        if let Some(_alone) = self.alone.try_lock() {
            self.journals.iter().for_each(|journal| journal.mark(None))
        }
    }

    /// Notes that a sender outside the hive resumes its lane at `next_seq`. After a crash, one of the next
    /// messages on the lane may be the one that crashed the process, so a whole window of messages is
    /// quarantined.
    pub(crate) fn resumed(&self, lane: LaneId, next_seq: Seq) {
        if self.unclean {
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
        let concerns = state.concerns(first, last);
        self.any.store(!state.is_empty(), Ordering::Release);
        concerns
    }

    /// Decides how a handler runs a message. `cell` is the visited cell if the message is a sweep. If the
    /// message is quarantined, waits until no other quarantined message is running, and then names this one
    /// in the crash marker.
    #[inline]
    pub(crate) fn begin(
        &self,
        threads: &impl Threads,
        slot: usize,
        (app, handler): (u16, usize),
        message_id: MessageId,
        cell: Option<CellId>,
    ) -> Begun<'_> {
        match self.is_any() {
            true => self.look(threads, slot, (app, handler), Suspect { id: message_id, cell }),
            false => Begun::Plainly,
        }
    }

    #[cold]
    fn look(
        &self,
        threads: &impl Threads,
        slot: usize,
        (app, handler): (u16, usize),
        suspect: Suspect,
    ) -> Begun<'_> {
        {
            let mut state = self.state.lock();
            if state.set_aside.contains(&suspect) {
                return Begun::SetAside;
            }
            if !state.may_have_been_run(suspect.id) {
                self.any.store(!state.is_empty(), Ordering::Release);
                return Begun::Plainly;
            }
        }

        // waiting for `alone` blocks this thread just as a slow handler does, so report it in the same way
        threads.begin_run(slot, app, handler);
        let alone = self.alone.lock();
        threads.end_run(slot);
        self.note(Some(suspect));
        Begun::Marked(Noted { quarantine: self, suspect, _alone: alone })
    }

    /// Stores a crash marker that names the running message, if there is one.
    fn note(&self, running: Option<Suspect>) {
        let set_aside = self.state.lock().set_aside.iter().copied().collect();
        let running = running.filter(|_| !self.mutation.breaks(Mutant::PoisonUnmarked));
        let marker = CrashMarker { running, set_aside };
        self.journals.iter().for_each(|journal| journal.mark(Some(&marker)))
    }

    /// Removes a message from the quarantine after it has been run.
    fn is_run(&self, suspect: &Suspect) {
        let mut state = self.state.lock();
        state.message_ids.remove(&suspect.id);
        self.any.store(!state.is_empty(), Ordering::Release)
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

/// Returns the error that ends a message set aside by the quarantine.
pub(crate) fn set_aside() -> Error {
    let text =
        "quarantined: the process crashed twice while handling this message, and will not handle it again";
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
        journal.leave(Some(CrashMarker { running: Some(suspect(0)), set_aside }));
        let quarantine = Quarantine::new(&[(journal.clone(), LogState::default())], Mutation::default());
        journal.stop();
        let state = quarantine.state.lock();
        assert_eq!(state.set_aside.len(), limits::SET_ASIDE_MAX);
        assert!(state.set_aside.contains(&suspect(0)));
    }
}
