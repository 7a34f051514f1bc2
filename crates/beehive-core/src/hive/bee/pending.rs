//! What a journaled bee has executed and not seen committed: held back, to be let go in order or to be run again.

use crate::app::App;
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::delivery::Delivery;
use crate::hive::consensus::journal::{Input, Seen};
use crate::hive::consensus::log_client::Fate;
use crate::hive::dispatch::effects::{Effect, RouteContext, flush};
use crate::hive::dispatch::turn::Link;
use crate::hive::message::batch::Messages;
use crate::panics;
use crate::state::column::Columns;
use crate::state::image::{EncodedCells, Op};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// A run of transactions whose record is on its way.
pub(crate) struct Executed<A: App> {
    pub(crate) number: u64,
    /// To be run again if the record is refused.
    pub(crate) delivery: Delivery<A>,
    /// What it consumed, and nobody before.
    pub(crate) inputs: Vec<Input>,
    pub(crate) ops: Vec<Op>,
    /// What it lets out.
    pub(crate) steps: Vec<Effect>,
    /// How many of the bee's cells the log knows of with it.
    pub(crate) cells_end: usize,
}

pub(crate) struct PendingRuns<A: App> {
    link: Arc<Link>,
    version: u64,
    /// The committed state.
    pub(crate) base: EncodedCells,
    /// The messages from elsewhere that were executed, committed or not.
    pub(crate) seen: Seen,
    /// How many times lanes had retired when `seen` was last pruned.
    retirements: u64,
    pub(crate) entries: VecDeque<Executed<A>>,
    /// To be run again, before anything else.
    pub(crate) again: VecDeque<Delivery<A>>,
    /// The number that the bee's lane goes on with.
    pub(crate) next_seq: u64,
    /// How many of the bee's cells the log knows of.
    pub(crate) cells_logged: usize,
}

impl<A: App> PendingRuns<A> {
    pub(crate) fn new(link: &Arc<Link>) -> Box<Self> {
        Box::new(PendingRuns {
            version: link.version(),
            link: link.clone(),
            base: EncodedCells::default(),
            seen: Seen::default(),
            retirements: link.lanes.retirements(),
            entries: VecDeque::new(),
            again: VecDeque::new(),
            next_seq: 0,
            cells_logged: 0,
        })
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Nothing is on its way.
    pub(crate) fn is_settled(&self) -> bool {
        self.entries.is_empty() && self.again.is_empty()
    }

    /// Whether something may have happened since [`PendingRuns::reconcile`] looked.
    pub(crate) fn is_behind(&self) -> bool {
        self.version != self.link.version()
    }

    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.entries.iter().map(|e| e.number).collect()
    }

    /// Lets go what is committed; takes back what is dead and everything executed on it. Returns whether there was any.
    pub(crate) fn reconcile(
        &mut self,
        app: &Arc<AppRuntime<A>>,
        state: &mut A,
        cx: &mut RouteContext,
    ) -> bool {
        if !self.is_behind() {
            return false;
        }
        // before the look: what happens later makes us look again
        self.version = self.link.version();
        let fates = self.link.fates(self.entries.iter().map(|e| e.number));
        for fate in fates {
            match fate {
                Fate::Open => break,
                Fate::Dead => {
                    self.take_back(app, state);
                    return true;
                }
                Fate::Committed => {
                    let Some(done) = self.entries.pop_front() else { return false };
                    done.ops.iter().for_each(|op| self.base.apply(op));
                    if let Some(snapshots) = &app.snapshots {
                        snapshots.committed(state, &done.ops, cx.turn.moment())
                    }
                    self.cells_logged = self.cells_logged.max(done.cells_end);
                    if let Some(probe) = cx.turn.hive.probe() {
                        probe.entry_committed(done.number)
                    }
                    cx.turn.cause = done.delivery.cause.clone();
                    flush(done.steps, cx);
                    cx.turn.cause = None;
                    let Delivery { batch, cells, .. } = done.delivery;
                    batch.committed(cells.len());
                    panics::harmless(|| drop(batch));
                }
            }
        }
        false
    }

    /// Forgets everything that is not committed and has it run again.
    fn take_back(&mut self, app: &Arc<AppRuntime<A>>, state: &mut A) {
        for executed in self.entries.drain(..).rev() {
            forget(&mut self.seen, &executed.inputs);
            self.again.push_front(executed.delivery)
        }
        restore(app, state, &self.base)
    }

    /// Brings the state back to where the last executed run left it.
    pub(crate) fn restore_executed(&self, app: &Arc<AppRuntime<A>>, state: &mut A) {
        let mut executed = self.base.clone();
        self.entries.iter().flat_map(|e| &e.ops).for_each(|op| executed.apply(op));
        restore(app, state, &executed)
    }

    /// Which messages of `range` were not executed before, and the same as the inputs of a record. From now on they were.
    pub(crate) fn take_note(
        &mut self,
        batch: &dyn Messages,
        app: u16,
        range: Range<u32>,
    ) -> (Vec<u32>, Vec<Input>) {
        if batch.source().numbers.lane == 0 {
            return (range.collect(), Vec::new());
        }
        let mut new = Vec::new();
        let mut inputs: Vec<Input> = Vec::new();
        // what is not from outside is in the log, which has it once
        let floor = batch.admitted().map(|admitted| admitted.lane().floor());
        if let Some(floor) = floor {
            self.prune();
            self.seen.raise(batch.source().numbers.lane, floor)
        }
        for index in range {
            let fact = batch.source().fact(index, app);
            if floor.is_some() {
                if self.seen.contains(fact.lane, fact.seq, fact.part) {
                    continue;
                }
                self.seen.insert(fact.lane, fact.seq, fact.part);
            }
            new.push(index);
            match inputs.last_mut() {
                Some(last) if fact.part == 0 && last.seq + last.count as u64 == fact.seq => last.count += 1,
                _ => inputs.push(Input {
                    lane: fact.lane,
                    floor: floor.unwrap_or(0),
                    seq: fact.seq,
                    count: 1,
                    part: fact.part,
                }),
            }
        }
        (new, inputs)
    }

    /// What was taken note of was not executed after all.
    pub(crate) fn forget(&mut self, inputs: &[Input]) {
        forget(&mut self.seen, inputs)
    }

    /// Forgets lanes on which nothing comes any more.
    pub(crate) fn prune(&mut self) {
        let retirements = self.link.lanes.retirements();
        if std::mem::replace(&mut self.retirements, retirements) != retirements {
            self.forget_unknown()
        }
    }

    /// Forgets lanes that have retired.
    pub(crate) fn forget_unknown(&mut self) {
        self.link.lanes.prune(&mut self.seen)
    }
}

fn forget(seen: &mut Seen, inputs: &[Input]) {
    for input in inputs {
        input.messages().for_each(|(seq, part)| seen.remove(input.lane, seq, part))
    }
}

fn restore<A: App>(app: &Arc<AppRuntime<A>>, state: &mut A, base: &EncodedCells) {
    state.clear();
    for image in base.images() {
        // encoded by this very process
        if let Err(error) = state.import(app.seed, &image) {
            tracing::error!(app = A::NAME, %error, "a cell cannot be restored");
        }
    }
}
