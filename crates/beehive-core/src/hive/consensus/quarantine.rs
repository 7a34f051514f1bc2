//! Quarantine: messages that may have ended the process are run one at a time, each noted before it is, and one that did so again
//! is set aside.
//!
//! A handler that panics harms nobody. One that aborts the process (a stack without end, memory that is used up, a library
//! that calls `abort`) takes everything along, and the log would have it run again for ever. A life of the hive therefore
//! notes with its journal that it has begun, and that it has ended. One that finds that the life before did not end runs
//! what that left unfinished *with care*: nothing at the same time that is unfinished, too, and with a mark that says
//! what it is. A life that finds such a mark knows what ended the one before, and does not run it a third time.
//!
//! Nothing of this costs anything where the life before has ended well, but one look at a flag for each run.

use crate::cell::CellId;
use crate::hash::{HashMap, HashSet};
use crate::hive::consensus::journal::{
    AppId, CrashMarker, Journal, LaneId, LogState, MessageId, Part, Seq, Suspect,
};
use crate::limits;
use crate::message::{Error, ErrorKind};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a message that waits for its turn tells of its thread, so that others do not wait behind it.
pub(crate) trait Threads {
    /// The thread of `slot` is busy with a handler.
    fn begin_run(&self, slot: usize, app: u16, handler: usize);
    /// It is not any more.
    fn end_run(&self, slot: usize);
}

/// How a message is to be run.
pub(crate) enum Begun<'a> {
    /// As always.
    Plainly,
    /// By itself, until this is dropped.
    Marked(#[allow(dead_code)] Noted<'a>),
    /// Not at all.
    SetAside,
}

/// A message that is being run with quarantine.
pub(crate) struct Noted<'a> {
    quarantine: &'a Quarantine,
    suspect: Suspect,
    _alone: MutexGuard<'a, ()>,
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        // before others may begin
        self.quarantine.note(None);
        self.quarantine.is_run(&self.suspect)
    }
}

#[derive(Default)]
struct State {
    /// Messages that the log had as unfinished, and that have not been run since.
    facts: BTreeSet<MessageId>,
    /// Sweeps that the log had as unfinished, and that are not over.
    sweeps: HashSet<MessageId>,
    /// Lanes from outside that are gone on with: what comes below these numbers may have come before.
    lanes: HashMap<LaneId, Seq>,
    set_aside: BTreeSet<Suspect>,
}

impl State {
    fn is_empty(&self) -> bool {
        self.facts.is_empty() && self.sweeps.is_empty() && self.lanes.is_empty() && self.set_aside.is_empty()
    }

    /// Whether there is anything to be said about messages of a lane, from the first to the last.
    fn concerns(&mut self, first: MessageId, last: MessageId) -> bool {
        if self.lanes.get(&first.lane).is_some_and(|end| first.seq >= *end) {
            // what comes now has not come before
            self.lanes.remove(&first.lane);
        }
        let first = MessageId { part: Part::WHOLE, app: AppId(0), ..first };
        let last = MessageId { part: Part(u64::MAX), app: AppId(u16::MAX), ..last };
        let (from, to) = (Suspect { id: first, cell: None }, Suspect { id: last, cell: None });
        self.facts.range(first..=last).next().is_some()
            || self.lanes.contains_key(&first.lane)
            || self.set_aside.range(from..=to).next().is_some()
    }

    /// Whether the message may have been run by the life before.
    fn may_have_been_run(&mut self, fact: MessageId) -> bool {
        if self.facts.contains(&fact) || self.sweeps.contains(&fact) {
            return true;
        }
        match self.lanes.get(&fact.lane) {
            Some(end) if fact.seq < *end => true,
            Some(_) => {
                self.lanes.remove(&fact.lane);
                false
            }
            None => false,
        }
    }
}

pub(crate) struct Quarantine {
    journal: Arc<dyn Journal>,
    /// The life before this one did not end well.
    unclean: bool,
    /// Something is to be run with quarantine, or not at all.
    any: AtomicBool,
    state: Mutex<State>,
    /// Held by the message that is run with quarantine, so that there is one.
    alone: Mutex<()>,
}

impl Quarantine {
    /// Takes over from the life that wrote the log.
    pub(crate) fn new(journal: Arc<dyn Journal>, colony: &LogState) -> Quarantine {
        let before = journal.marked();
        let unclean = before.is_some();
        let mut state = State::default();
        if let Some(CrashMarker { running, set_aside }) = before {
            let unfinished = |suspect: &Suspect| is_unfinished(colony, suspect);
            let last = running.filter(unfinished);
            state.set_aside = set_aside.into_iter().filter(unfinished).collect();
            while state.set_aside.len() + usize::from(last.is_some()) > limits::SET_ASIDE_MAX {
                state.set_aside.pop_first();
            }
            // whoever has to make room: the one that ended the last life would end this one
            state.set_aside.extend(last);
            state.facts = colony.outbox.keys().copied().collect();
            state.sweeps = colony.sweeps.keys().copied().collect();
            tracing::warn!(
                unfinished = state.facts.len() + state.sweeps.len(),
                set_aside = state.set_aside.len(),
                "the process did not end well the last time; what it left unfinished is run one message at a time"
            );
        }
        let any = AtomicBool::new(!state.is_empty());
        Quarantine { journal, unclean, any, state: Mutex::new(state), alone: Mutex::default() }
    }

    /// This life has begun.
    pub(crate) fn begin_life(&self) {
        self.note(None)
    }

    /// It ends well.
    pub(crate) fn end_life(&self) {
        // a handler that runs on after the end may still end the process
        if let Some(_alone) = self.alone.try_lock() {
            self.journal.mark(None)
        }
    }

    /// Somebody outside goes on with a lane: what was sent there last may be sent again.
    pub(crate) fn resumed(&self, lane: LaneId, next_seq: Seq) {
        if self.unclean {
            let end = next_seq.plus(limits::LANE_WINDOW_MAX);
            self.state.lock().lanes.insert(lane, end);
            self.any.store(true, Ordering::Release)
        }
    }

    /// A sweep is over.
    pub(crate) fn swept(&self, sweep: &MessageId) {
        if self.is_any() {
            let mut state = self.state.lock();
            state.sweeps.remove(sweep);
            self.any.store(!state.is_empty(), Ordering::Release)
        }
    }

    /// Whether there is anything to be careful about.
    #[inline(always)]
    pub(crate) fn is_any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Whether there is anything to be careful about in a run of messages: a timer that the life before has set may ring
    /// in a year, and until then all else is run as always.
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

    /// A message is about to be run by a handler; of a sweep, for a cell.
    #[inline]
    pub(crate) fn begin(
        &self,
        threads: &impl Threads,
        slot: usize,
        (app, handler): (u16, usize),
        fact: MessageId,
        cell: Option<CellId>,
    ) -> Begun<'_> {
        match self.is_any() {
            true => self.look(threads, slot, (app, handler), Suspect { id: fact, cell }),
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
        // whoever waits here holds its thread, as a handler would: what waits behind it goes elsewhere
        threads.begin_run(slot, app, handler);
        let alone = self.alone.lock();
        threads.end_run(slot);
        self.note(Some(suspect));
        Begun::Marked(Noted { quarantine: self, suspect, _alone: alone })
    }

    fn note(&self, running: Option<Suspect>) {
        let set_aside = self.state.lock().set_aside.iter().copied().collect();
        self.journal.mark(Some(&CrashMarker { running, set_aside }))
    }

    fn is_run(&self, suspect: &Suspect) {
        let mut state = self.state.lock();
        state.facts.remove(&suspect.id);
        self.any.store(!state.is_empty(), Ordering::Release)
    }
}

/// Whether the log does not say that the message is done. Of one from outside it may not know.
fn is_unfinished(colony: &LogState, Suspect { id: fact, .. }: &Suspect) -> bool {
    colony.outbox.contains_key(fact)
        || colony.sweeps.contains_key(fact)
        || (fact.lane.is_lasting()
            && !colony.bees.values().any(|bee| bee.seen.contains(fact.lane, fact.seq, fact.part)))
}

/// What a message ends with that is set aside.
pub(crate) fn set_aside() -> Error {
    let text =
        "the process ended while this was run, and had ended without a word before: it is not run again";
    Error::of(ErrorKind::Aborted, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestJournal;

    /// Number `seq` of somebody outside who may go on.
    fn suspect(seq: u64) -> Suspect {
        Suspect {
            id: MessageId { lane: LaneId(7), seq: Seq(seq), part: Part::WHOLE, app: AppId(0) },
            cell: None,
        }
    }

    #[test]
    fn of_very_many_the_one_that_ended_the_last_life_is_set_aside() {
        let journal = TestJournal::start(1, 0, 0);
        let set_aside = (1..=limits::SET_ASIDE_MAX as u64).map(suspect).collect();
        journal.leave(Some(CrashMarker { running: Some(suspect(0)), set_aside }));
        let quarantine = Quarantine::new(journal.clone(), &LogState::default());
        journal.stop();
        let state = quarantine.state.lock();
        assert_eq!(state.set_aside.len(), limits::SET_ASIDE_MAX);
        assert!(state.set_aside.contains(&suspect(0)));
    }
}
