//! Effects: the externally visible actions of a run of transactions (deliveries, answers, timers).
//!
//! Code that runs or routes messages passes a [`RouteContext`] along. Its [`Sink`] decides whether effects
//! take place immediately or are held until the run's record is committed. Held effects are either all
//! flushed, in order, or all dropped. In either case, stateless handlers run immediately; their effects go to
//! the same sink and belong to the same record.

use crate::hive::admission::outside_lanes::Numbers;
use crate::hive::consensus::journal::{Emit, Emits};
use crate::hive::dispatch::probe::Note;
use crate::hive::dispatch::sender::queue::SenderQueue;
use crate::hive::dispatch::turn::Turn;
use crate::hive::message::payloads::Payloads;
use crate::{limits, panics};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// An action visible to other bees or to the outside. With a journal, it takes place only after its run's
/// record has been committed.
pub(crate) type Effect = Box<dyn FnOnce(&mut RouteContext) + Send>;

/// Effects, in order. Most runs have at most two: an answer and a message.
pub(crate) type HeldEffects = SmallVec<[Effect; 2]>;

/// The context of routing: the sender's queue, the turn, and the sink for effects.
pub(crate) struct RouteContext<'a, 'h> {
    /// The queue in which this sender's messages wait if they cannot be delivered yet.
    pub(crate) queue: &'a mut SenderQueue,
    /// The turn of the worker that routes the messages.
    pub(crate) turn: &'a mut Turn<'h>,
    /// The sink of the effects.
    pub(crate) sink: Sink<'a>,
}

/// The destination of effects.
pub(crate) enum Sink<'a> {
    /// Effects take place immediately.
    Now,
    /// Effects are held until a record is committed.
    Held(&'a mut Effects),
}

impl<'a, 'h> RouteContext<'a, 'h> {
    /// Creates a context whose effects take place immediately.
    #[inline(always)]
    pub(crate) fn new(queue: &'a mut SenderQueue, turn: &'a mut Turn<'h>) -> Self {
        RouteContext { queue, turn, sink: Sink::Now }
    }

    /// Creates a context whose effects are held in `effects`.
    pub(crate) fn holding(
        queue: &'a mut SenderQueue,
        turn: &'a mut Turn<'h>,
        effects: &'a mut Effects,
    ) -> Self {
        RouteContext { queue, turn, sink: Sink::Held(effects) }
    }

    /// Returns this context with another sink, which holds effects in `effects`.
    pub(crate) fn hold_in<'b>(&'b mut self, effects: &'b mut Effects) -> RouteContext<'b, 'h> {
        RouteContext { queue: self.queue, turn: self.turn, sink: Sink::Held(effects) }
    }

    /// Returns the held effects; `None` if effects take place immediately.
    #[inline(always)]
    pub(crate) fn held(&mut self) -> Option<&mut Effects> {
        match &mut self.sink {
            Sink::Now => None,
            Sink::Held(effects) => Some(effects),
        }
    }

    /// Checks whether effects are held.
    #[inline(always)]
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.sink, Sink::Held(_))
    }

    /// Routes this run's deferred work, and any work deferred in turn, until none is left. The stack is free
    /// at this point, so the nesting depth starts at zero.
    pub(crate) fn run_deferred(&mut self) {
        let depth = std::mem::take(&mut self.turn.depth);

        while let Some(run) = self.held().and_then(Effects::next_deferred) {
            run(self)
        }

        self.turn.depth = depth;
    }
}

/// Effects that are held until a record is committed, and the parts of the record that describe them.
pub(crate) struct Effects {
    /// The sender's lane, and the next sequence number on it for emitted messages.
    pub(crate) numbers: Numbers,
    /// The emitted messages, in the form in which the record contains them.
    pub(crate) emits: Emits,
    /// The payloads of the messages that are being routed.
    pub(crate) payloads: Payloads,
    /// The probe's notes about the run. The hive passes them to the probe when it appends the record.
    pub(crate) notes: Vec<Note>,
    /// The effects, in order.
    steps: HeldEffects,
    /// Number of `steps` that only report a result to its requester.
    reports: usize,
    /// Routing that would have nested too deeply for one stack, and everything routed after it.
    too_deep: VecDeque<Effect>,
    /// `Some` while an entry of `too_deep` is being routed. Collects work that again nests too deeply, and
    /// everything routed after it.
    unfinished: Option<Vec<Effect>>,
    /// Number of messages handled by stateless handlers in this run.
    stateless: usize,
    /// Whether a message may have been postponed in this run.
    pub(crate) has_postponed: bool,
}

/// A point to which the effects of a run can be rolled back.
#[derive(Clone, Copy)]
pub(crate) struct Savepoint {
    numbers: Numbers,
    emits: usize,
    notes: usize,
    steps: usize,
    reports: usize,
    too_deep: usize,
    unfinished: usize,
}

impl Effects {
    /// Creates empty effects. Emitted messages are numbered from `numbers`.
    pub(crate) fn new(numbers: Numbers) -> Effects {
        Effects {
            numbers,
            emits: Emits::default(),
            payloads: Payloads::default(),
            notes: Vec::new(),
            steps: HeldEffects::new(),
            reports: 0,
            too_deep: VecDeque::new(),
            unfinished: None,
            stateless: 0,
            has_postponed: false,
        }
    }

    /// Adds an effect that takes place when the record is committed.
    pub(crate) fn hold(&mut self, effect: impl FnOnce(&mut RouteContext) + Send + 'static) {
        self.steps.push(Box::new(effect))
    }

    /// Adds an effect that only reports a result (an answer, an error) to its requester.
    pub(crate) fn hold_report(&mut self, report: impl FnOnce(&mut RouteContext) + Send + 'static) {
        self.reports += 1;
        self.hold(report)
    }

    /// Checks whether the run has emitted no messages and has no effects other than reports to requesters.
    pub(crate) fn only_reports(&self) -> bool {
        self.emits.is_empty() && self.steps.len() == self.reports
    }

    /// Counts messages that stateless handlers are about to handle. Returns `false` if the total exceeds
    /// the limit for one record.
    pub(crate) fn takes(&mut self, messages: usize) -> bool {
        self.stateless += messages;
        self.stateless <= limits::STATELESS_PER_RECORD_MAX
    }

    /// Checks whether routing must wait behind earlier work that nested too deeply.
    pub(crate) fn must_defer(&self) -> bool {
        match &self.unfinished {
            Some(unfinished) => !unfinished.is_empty(),
            None => !self.too_deep.is_empty(),
        }
    }

    /// Defers routing until the stack is free. It still takes place before the record is made.
    pub(crate) fn defer(&mut self, route: Effect) {
        match &mut self.unfinished {
            Some(unfinished) => unfinished.push(route),
            None => self.too_deep.push_back(route),
        }
    }

    /// Returns the next deferred entry. Work that the previous entry deferred in turn comes before all
    /// other entries.
    fn next_deferred(&mut self) -> Option<Effect> {
        let unfinished = self.unfinished.replace(Vec::new());
        unfinished.into_iter().flatten().rev().for_each(|route| self.too_deep.push_front(route));

        self.too_deep.pop_front()
    }

    /// Returns a savepoint of the current effects.
    pub(crate) fn savepoint(&self) -> Savepoint {
        Savepoint {
            numbers: self.numbers,
            emits: self.emits.len(),
            notes: self.notes.len(),
            steps: self.steps.len(),
            reports: self.reports,
            too_deep: self.too_deep.len(),
            unfinished: self.unfinished.as_ref().map_or(0, Vec::len),
        }
    }

    /// Drops the effects added since the savepoint `to`.
    pub(crate) fn rollback(&mut self, to: Savepoint) {
        self.numbers = to.numbers;
        self.emits.truncate(to.emits);
        self.payloads = Payloads::default();
        self.notes.truncate(to.notes);
        self.steps.truncate(to.steps);
        self.reports = to.reports;
        self.too_deep.truncate(to.too_deep);
        if let Some(unfinished) = &mut self.unfinished {
            unfinished.truncate(to.unfinished)
        }
    }

    /// Returns the approximate size of the emitted messages in a record, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.emits.iter().map(Emit::size).sum()
    }

    /// Returns the effects, in order.
    pub(crate) fn into_steps(self) -> HeldEffects {
        self.steps
    }
}

/// Performs effects, in order.
pub(crate) fn flush(effects: HeldEffects, cx: &mut RouteContext) {
    debug_assert!(!cx.is_held(), "committed effects take place; they are not held a second time");

    for effect in effects {
        let cause = cx.turn.cause.clone();
        // a panic in one effect must not prevent the others
        if panics::harmless(|| effect(cx)).is_none() {
            cx.turn.discard();
            cx.turn.cause = cause
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hive::dispatch::turn::tests::in_a_turn;

    #[test]
    #[cfg_attr(debug_assertions, should_panic = "they are not held a second time")]
    fn committed_effects_are_not_held_again() {
        in_a_turn(|turn| {
            let (mut queue, mut effects) = (SenderQueue::default(), Effects::new(Numbers::NONE));
            flush(HeldEffects::new(), &mut RouteContext::holding(&mut queue, turn, &mut effects))
        })
    }
}
