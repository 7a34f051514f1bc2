//! The release gate: what a run lets out before its record is committed, held in order, to be let go or thrown away as a
//! whole.
//!
//! While a turn has a gate, whatever is routed is held instead of handed over, and noted for the record. Stateless
//! handlers do run at once: what they let out is held behind the same gate and is part of the same record.

use crate::hive::admission::outside_lanes::Numbers;
use crate::hive::dispatch::deferred::Route;
use crate::hive::dispatch::probe::Note;
use crate::hive::dispatch::sender_queue::SenderLane;
use crate::hive::dispatch::turn::Turn;
use crate::hive::log::journal::Emit;
use crate::{limits, panics};
use std::collections::VecDeque;

/// Lets something go.
pub(crate) type Step = Box<dyn FnOnce(&mut SenderLane, &mut Turn) + Send>;

pub(crate) struct Gate {
    /// Of what is emitted.
    pub(crate) numbers: Numbers,
    pub(crate) emits: Vec<Emit>,
    /// Notes of the probe about the run, for when the record is appended.
    pub(crate) notes: Vec<Note>,
    steps: Vec<Step>,
    /// What was too deep for one stack, and all that was routed after it.
    put_off: VecDeque<Route>,
    /// While that is being routed: what of it was too deep again, and what came after that.
    unfinished: Option<Vec<Route>>,
    /// Messages that stateless handlers have run for.
    stateless: usize,
}

/// A point in what a run lets out.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    numbers: Numbers,
    emits: usize,
    notes: usize,
    steps: usize,
    put_off: usize,
    unfinished: usize,
}

impl Gate {
    pub(crate) fn new(numbers: Numbers) -> Box<Gate> {
        Box::new(Gate {
            numbers,
            emits: Vec::new(),
            notes: Vec::new(),
            steps: Vec::new(),
            put_off: VecDeque::new(),
            unfinished: None,
            stateless: 0,
        })
    }

    /// Does something when the record is committed.
    pub(crate) fn hold(&mut self, step: impl FnOnce(&mut SenderLane, &mut Turn) + Send + 'static) {
        self.steps.push(Box::new(step))
    }

    /// Whether one more run of stateless handlers is within what one record may hold.
    pub(crate) fn takes(&mut self, messages: usize) -> bool {
        self.stateless += messages;
        self.stateless <= limits::STATELESS_PER_RECORD_MAX
    }

    /// Whether what is routed now must wait behind what was too deep for one stack.
    pub(crate) fn is_put_off(&self) -> bool {
        match &self.unfinished {
            Some(unfinished) => !unfinished.is_empty(),
            None => !self.put_off.is_empty(),
        }
    }

    /// Has something routed later, but still before the record is made.
    pub(crate) fn put_off(&mut self, route: Route) {
        match &mut self.unfinished {
            Some(unfinished) => unfinished.push(route),
            None => self.put_off.push_back(route),
        }
    }

    /// The next that was put off. What the one before has put off goes before all others.
    fn next_put_off(&mut self) -> Option<Route> {
        let unfinished = self.unfinished.replace(Vec::new());
        unfinished.into_iter().flatten().rev().for_each(|route| self.put_off.push_front(route));
        self.put_off.pop_front()
    }

    /// A point that can be gone back to.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            numbers: self.numbers,
            emits: self.emits.len(),
            notes: self.notes.len(),
            steps: self.steps.len(),
            put_off: self.put_off.len(),
            unfinished: self.unfinished.as_ref().map_or(0, Vec::len),
        }
    }

    /// Forgets what was let out since `mark`.
    pub(crate) fn rollback(&mut self, mark: Mark) {
        self.numbers = mark.numbers;
        self.emits.truncate(mark.emits);
        self.notes.truncate(mark.notes);
        self.steps.truncate(mark.steps);
        self.put_off.truncate(mark.put_off);
        if let Some(unfinished) = &mut self.unfinished {
            unfinished.truncate(mark.unfinished)
        }
    }

    /// About what it takes in a record.
    pub(crate) fn size(&self) -> usize {
        self.emits.iter().map(Emit::size).sum()
    }

    /// What is to be done when the record is committed.
    pub(crate) fn into_steps(self) -> Vec<Step> {
        self.steps
    }
}

impl Turn<'_> {
    /// Runs what was put off, until nothing is left of it; then takes the gate away.
    pub(crate) fn close_gate(&mut self, lane: &mut SenderLane) -> Option<Box<Gate>> {
        let depth = std::mem::take(&mut self.depth);
        while let Some(run) = self.gate.as_mut().and_then(|gate| gate.next_put_off()) {
            run(lane, self)
        }
        self.depth = depth;
        self.gate.take()
    }
}

/// Lets go what was held, in order.
pub(crate) fn let_go(steps: Vec<Step>, lane: &mut SenderLane, turn: &mut Turn) {
    for step in steps {
        let cause = turn.cause.clone();
        // one that leaves something that panics does not take the others along
        if panics::harmless(|| step(lane, turn)).is_none() {
            turn.discard();
            turn.cause = cause
        }
    }
}
