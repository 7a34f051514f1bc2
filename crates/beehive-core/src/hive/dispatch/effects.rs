//! Effects: what leaves a run of transactions (deliveries, answers, timers), and where it goes.
//!
//! Whoever runs or routes messages passes a [`RouteContext`] on. Its [`Sink`] says whether effects take place at once, or are
//! held until the record of the run is committed. Held effects are flushed in order, or thrown away as a whole.
//! Stateless handlers run at once all the same: their effects are held in the same sink and are part of the same record.

use crate::hive::admission::outside_lanes::Numbers;
use crate::hive::consensus::journal::Emit;
use crate::hive::dispatch::probe::Note;
use crate::hive::dispatch::sender_queue::SenderQueue;
use crate::hive::dispatch::turn::Turn;
use crate::{limits, panics};
use std::collections::VecDeque;

/// An effect: something that is done when it may be seen outside.
pub(crate) type Effect = Box<dyn FnOnce(&mut RouteContext) + Send>;

/// What routing needs besides the messages.
pub(crate) struct RouteContext<'a, 'h> {
    /// Where messages of this sender wait that cannot be delivered yet.
    pub(crate) queue: &'a mut SenderQueue,
    /// The turn of the worker that routes.
    pub(crate) turn: &'a mut Turn<'h>,
    pub(crate) sink: Sink<'a>,
}

/// Where effects go.
pub(crate) enum Sink<'a> {
    /// They take place at once.
    Now,
    /// They wait for a record to be committed.
    Held(&'a mut Effects),
}

impl<'a, 'h> RouteContext<'a, 'h> {
    /// A context whose effects take place at once.
    #[inline(always)]
    pub(crate) fn new(queue: &'a mut SenderQueue, turn: &'a mut Turn<'h>) -> Self {
        RouteContext { queue, turn, sink: Sink::Now }
    }

    /// A context whose effects are held in `effects`.
    pub(crate) fn holding(
        queue: &'a mut SenderQueue,
        turn: &'a mut Turn<'h>,
        effects: &'a mut Effects,
    ) -> Self {
        RouteContext { queue, turn, sink: Sink::Held(effects) }
    }

    /// This context, with its effects held in `effects`.
    pub(crate) fn hold_in<'b>(&'b mut self, effects: &'b mut Effects) -> RouteContext<'b, 'h> {
        RouteContext { queue: self.queue, turn: self.turn, sink: Sink::Held(effects) }
    }

    /// The effects that are held; none where they take place at once.
    #[inline(always)]
    pub(crate) fn held(&mut self) -> Option<&mut Effects> {
        match &mut self.sink {
            Sink::Now => None,
            Sink::Held(effects) => Some(effects),
        }
    }

    /// Whether effects are held.
    #[inline(always)]
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.sink, Sink::Held(_))
    }

    /// Routes what was deferred until nothing is left of it.
    pub(crate) fn run_deferred(&mut self) {
        let depth = std::mem::take(&mut self.turn.depth);
        while let Some(run) = self.held().and_then(Effects::next_deferred) {
            run(self)
        }
        self.turn.depth = depth;
    }
}

/// Effects that are held until a record is committed, and what goes into that record because of them.
pub(crate) struct Effects {
    /// Of what is emitted.
    pub(crate) numbers: Numbers,
    pub(crate) emits: Vec<Emit>,
    /// Notes of the probe about the run, for when the record is appended.
    pub(crate) notes: Vec<Note>,
    steps: Vec<Effect>,
    /// What was too deep for one stack, and all that was routed after it.
    too_deep: VecDeque<Effect>,
    /// While that is being routed: what of it was too deep again, and what came after that.
    unfinished: Option<Vec<Effect>>,
    /// Messages that stateless handlers have run for.
    stateless: usize,
}

/// A point in the effects of a run.
#[derive(Clone, Copy)]
pub(crate) struct Savepoint {
    numbers: Numbers,
    emits: usize,
    notes: usize,
    steps: usize,
    too_deep: usize,
    unfinished: usize,
}

impl Effects {
    pub(crate) fn new(numbers: Numbers) -> Effects {
        Effects {
            numbers,
            emits: Vec::new(),
            notes: Vec::new(),
            steps: Vec::new(),
            too_deep: VecDeque::new(),
            unfinished: None,
            stateless: 0,
        }
    }

    /// Does something when the record is committed.
    pub(crate) fn hold(&mut self, effect: impl FnOnce(&mut RouteContext) + Send + 'static) {
        self.steps.push(Box::new(effect))
    }

    /// Whether one more run of stateless handlers is within what one record may hold.
    pub(crate) fn takes(&mut self, messages: usize) -> bool {
        self.stateless += messages;
        self.stateless <= limits::STATELESS_PER_RECORD_MAX
    }

    /// Whether what is routed now must wait behind what was too deep for one stack.
    pub(crate) fn must_defer(&self) -> bool {
        match &self.unfinished {
            Some(unfinished) => !unfinished.is_empty(),
            None => !self.too_deep.is_empty(),
        }
    }

    /// Has something routed later, but still before the record is made.
    pub(crate) fn defer(&mut self, route: Effect) {
        match &mut self.unfinished {
            Some(unfinished) => unfinished.push(route),
            None => self.too_deep.push_back(route),
        }
    }

    /// The next that was put off. What the one before has put off goes before all others.
    fn next_deferred(&mut self) -> Option<Effect> {
        let unfinished = self.unfinished.replace(Vec::new());
        unfinished.into_iter().flatten().rev().for_each(|route| self.too_deep.push_front(route));
        self.too_deep.pop_front()
    }

    /// A point that can be gone back to.
    pub(crate) fn savepoint(&self) -> Savepoint {
        Savepoint {
            numbers: self.numbers,
            emits: self.emits.len(),
            notes: self.notes.len(),
            steps: self.steps.len(),
            too_deep: self.too_deep.len(),
            unfinished: self.unfinished.as_ref().map_or(0, Vec::len),
        }
    }

    /// Forgets the effects since `to`.
    pub(crate) fn rollback(&mut self, to: Savepoint) {
        self.numbers = to.numbers;
        self.emits.truncate(to.emits);
        self.notes.truncate(to.notes);
        self.steps.truncate(to.steps);
        self.too_deep.truncate(to.too_deep);
        if let Some(unfinished) = &mut self.unfinished {
            unfinished.truncate(to.unfinished)
        }
    }

    /// About what it takes in a record.
    pub(crate) fn size(&self) -> usize {
        self.emits.iter().map(Emit::size).sum()
    }

    /// What is to be done when the record is committed.
    pub(crate) fn into_steps(self) -> Vec<Effect> {
        self.steps
    }
}

/// Has effects take place, in order.
pub(crate) fn flush(effects: Vec<Effect>, cx: &mut RouteContext) {
    debug_assert!(!cx.is_held(), "committed effects take place; they are not held a second time");

    for effect in effects {
        let cause = cx.turn.cause.clone();
        // one that leaves something that panics does not take the others along
        if panics::harmless(|| effect(cx)).is_none() {
            cx.turn.discard();
            cx.turn.cause = cause
        }
    }
}
