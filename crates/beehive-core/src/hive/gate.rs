//! The release gate: what a run lets out before its record is committed, held in order, to be let go or thrown away as a
//! whole.
//!
//! While a turn has a gate, whatever is routed is held instead of handed over, and noted for the record. Stateless
//! handlers do run at once: what they let out is held behind the same gate and is part of the same record.

use crate::hive::admission::Numbers;
use crate::hive::journal::Emit;
use crate::hive::lane::SenderLane;
use crate::hive::turn::Turn;
use crate::limits;
use std::collections::VecDeque;

/// Lets something go.
pub(crate) type Step = Box<dyn FnOnce(&mut SenderLane, &mut Turn) + Send>;

/// Runs a stateless handler that was put off.
type PutOff = Box<dyn FnOnce(&mut SenderLane, &mut Turn)>;

pub(crate) struct Gate {
    /// Of what is emitted.
    pub(crate) numbers: Numbers,
    pub(crate) emits: Vec<Emit>,
    steps: Vec<Step>,
    put_off: VecDeque<PutOff>,
    /// Messages that stateless handlers have run for.
    stateless: usize,
}

impl Gate {
    pub(crate) fn new(numbers: Numbers) -> Box<Gate> {
        Box::new(Gate {
            numbers,
            emits: Vec::new(),
            steps: Vec::new(),
            put_off: VecDeque::new(),
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

    /// Runs a stateless handler later, but still before the record is made: those that run now are nested too deeply.
    pub(crate) fn put_off(&mut self, run: impl FnOnce(&mut SenderLane, &mut Turn) + 'static) {
        self.put_off.push_back(Box::new(run))
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
        while let Some(run) = self.gate.as_mut().and_then(|gate| gate.put_off.pop_front()) {
            run(lane, self)
        }
        self.depth = depth;
        self.gate.take()
    }
}

/// Lets go what was held, in order.
pub(crate) fn let_go(steps: Vec<Step>, lane: &mut SenderLane, turn: &mut Turn) {
    for step in steps {
        step(lane, turn)
    }
}
