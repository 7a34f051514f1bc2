//! How a bee of a journaled app runs: what it does becomes one record, and nothing of it is seen before that is committed.

use crate::app::{App, Handlers, Handles};
use crate::cell::CellSet;
use crate::hive::admission::outside_lanes::{Numbers, lane_of};
use crate::hive::bee::bee::{Bee, Body, Delivery};
use crate::hive::bee::pending;
use crate::hive::bee::traffic::Peer;
use crate::hive::dispatch::effects::Gate;
use crate::hive::dispatch::handler::Handler;
use crate::hive::dispatch::probe;
use crate::hive::dispatch::sender_queue::SenderLane;
use crate::hive::dispatch::turn::Turn;
use crate::hive::log::journal::{Input, Record, Visited, Work};
use crate::hive::log::quarantine::{Begun, set_aside};
use crate::hive::message::batch::{AnyBatch, Batch, Messages, batch_of};
use crate::hive::message::trace;
use crate::hive::route::receiver::end_with_error;
use crate::hive::run::transaction::{Executed, Run, execute, release};
use crate::message::{Error, ErrorKind, Message};
use crate::state::image::Op;
use crate::time::Time;
use crate::{limits, panics};
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// What a record will say, besides what goes through the gate.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) visits: Vec<Visited>,
    pub(crate) ops: Vec<Op>,
    /// Of the operations, what they take; and how many of them were added up.
    bytes: usize,
    added_up: usize,
}

impl Draft {
    /// Whether what was changed so far is more than a record holds.
    fn is_too_large(&mut self) -> bool {
        self.bytes += self.ops.iter().skip(self.added_up).map(Op::size).sum::<usize>();
        self.added_up = self.ops.len();
        self.bytes > limits::RECORD_BYTES_MAX
    }
}

/// Transactions of messages of a type that is known there.
trait Transactions<A> {
    /// Runs those of `range`. What they leave is kept.
    fn execute(&mut self, range: Range<u32>, state: &mut A, run: Run, turn: &mut Turn, ops: &mut Vec<Op>);
    /// Lets go what they left so far.
    fn release(&mut self, lane: &mut SenderLane, turn: &mut Turn);
    /// A message ends with an error that is not its handler's.
    fn end_with(&mut self, index: u32, error: &Error, lane: &mut SenderLane, turn: &mut Turn);
}

struct OfABatch<'a, A: App, M: Message> {
    bee: &'a Arc<Bee<A>>,
    batch: &'a Arc<Batch<M>>,
    position: Option<u16>,
    done: Executed<M>,
}

impl<A: Handlers + Handles<M>, M: Message> Transactions<A> for OfABatch<'_, A, M> {
    fn execute(&mut self, range: Range<u32>, state: &mut A, run: Run, turn: &mut Turn, ops: &mut Vec<Op>) {
        let OfABatch { bee, batch, done, .. } = self;
        done.extend(execute::<A, M>(&bee.app, Some(bee.id), state, batch, range, run, turn, Some(ops)))
    }

    fn release(&mut self, lane: &mut SenderLane, turn: &mut Turn) {
        let OfABatch { bee, batch, position, done } = self;
        release(&bee.app, Some(bee.id), batch, *position, std::mem::take(done), lane, turn)
    }

    fn end_with(&mut self, index: u32, error: &Error, lane: &mut SenderLane, turn: &mut Turn) {
        let handler = Handler::of::<A, M>(&self.bee.app);
        end_with_error(&handler, self.batch, index, self.position, error, lane, turn)
    }
}

/// Runs the messages that were not run before; holds back what that lets out until their record is committed.
pub(crate) fn run_journaled<A: Handlers + Handles<M>, M: Message>(
    bee: &Arc<Bee<A>>,
    body: &mut Body<A>,
    delivery: Delivery<A>,
    turn: &mut Turn,
) {
    let batch: Arc<dyn AnyBatch> = delivery.batch.clone();
    let Some(batch) = &batch_of::<M>(batch) else { return };
    let transactions = &mut OfABatch { bee, batch, position: delivery.position, done: Executed::default() };
    run_all(transactions, &Handler::of::<A, M>(&bee.app), &**batch, bee, body, delivery, turn)
}

fn run_all<A: Handlers>(
    transactions: &mut dyn Transactions<A>,
    handler: &Handler,
    batch: &dyn Messages,
    bee: &Arc<Bee<A>>,
    body: &mut Body<A>,
    delivery: Delivery<A>,
    turn: &mut Turn,
) {
    let Some(tail) = &mut body.tail else { return };
    let (first, count) = (delivery.first, delivery.count);
    let began = body.traffic.count(Peer::of(batch.source()), count).then(|| turn.hive.now());
    let (cells, position) = (delivery.cells.clone(), delivery.position);
    let (mut new, inputs) = tail.take_note(batch, handler.app, first..first + count);
    if turn.hive.probe().is_some() {
        for index in (first..first + count).filter(|index| !new.contains(index)) {
            probe::ended_unhandled(handler, batch, index, turn)
        }
    }
    if new.is_empty() && tail.is_settled() {
        // sent again, and committed long since
        return delivery.batch.committed(0);
    }
    let transactions = std::cell::RefCell::new(transactions);
    let mut lost = |error: &Error, _: &mut Draft, lane: &mut SenderLane, turn: &mut Turn| {
        transactions.borrow_mut().end_with(first, error, lane, turn)
    };
    let mut run = |state: &mut A, draft: &mut Draft, lane: &mut SenderLane, now, turn: &mut Turn| {
        let new = std::mem::take(&mut new);
        let run = Run { cells: &cells, position, now };
        let fact = |index: Option<&u32>| batch.source().fact(index.copied().unwrap_or(first), handler.app);
        let (one, other) = (fact(new.first()), fact(new.last()));
        let care = handler.link.map(|link| &link.care);
        // some may have ended the process before, or somebody watches: then they are run by themselves
        let care = care.filter(|care| care.concerns(one, other) || trace::is_on());
        let mut transactions = transactions.borrow_mut();
        for index in new {
            if draft.is_too_large() {
                break;
            }
            let by = (handler.app, handler.number);
            let fact = fact(Some(&index));
            let begun = care.map(|care| care.begin(turn.hive, turn.slot, by, fact, None));
            if let Some(Begun::SetAside) = begun {
                transactions.end_with(index, &set_aside(), lane, turn);
                continue;
            }
            transactions.execute(index..index + 1, state, run, turn, &mut draft.ops);
            if care.is_some() {
                // what stateless handlers make of it, they make now: that is part of it
                transactions.release(lane, turn)
            }
        }
        if care.is_none() {
            transactions.release(lane, turn)
        }
    };
    record(bee, body, delivery, inputs, turn, &mut lost, &mut run);
    if let Some(began) = began {
        body.traffic.timed(count, turn.hive.now().since(began))
    }
}

/// Makes one record of what `run` does, which is called once. `lost` is called instead when that cannot be recorded, and
/// nothing is left of it.
pub(crate) fn record<A: App>(
    bee: &Arc<Bee<A>>,
    body: &mut Body<A>,
    delivery: Delivery<A>,
    inputs: Vec<Input>,
    turn: &mut Turn,
    lost: &mut dyn FnMut(&Error, &mut Draft, &mut SenderLane, &mut Turn),
    run: &mut dyn FnMut(&mut A, &mut Draft, &mut SenderLane, Time, &mut Turn),
) {
    body.now = body.now.max(turn.moment());
    let now = body.now;
    let (app, Some(tail)) = (&bee.app, &mut body.tail) else { return };
    turn.cause = delivery.cause.clone();
    let numbers = Numbers::new(lane_of(app.index, bee.id), tail.next_seq);
    turn.gate = Some(Gate::new(numbers));
    let mut draft = Draft::default();
    let depth = turn.depth;
    let ran = panics::catch(AssertUnwindSafe(|| {
        run(&mut body.app, &mut draft, &mut body.lane, now, turn);
        turn.close_gate(&mut body.lane)
    }));
    let gate = match ran {
        Ok(Some(gate)) if draft.is_too_large() || draft.bytes + gate.size() > limits::RECORD_BYTES_MAX => {
            Err(Error::of(ErrorKind::Limit, TOO_LARGE))
        }
        Ok(gate) => Ok(gate),
        Err(panic) => {
            // something that a handler left behind: a message, say, that panics when it is encoded
            let why = panics::text(&*panic);
            let _ = panics::catch(AssertUnwindSafe(|| drop(panic)));
            Err(Error::of(ErrorKind::Panicked, why))
        }
    };
    let gate = match gate {
        Ok(gate) => gate,
        Err(error) => {
            turn.discard();
            turn.depth = depth;
            tail.restore_executed(app, &mut body.app);
            turn.note_restored(app.index, || bee.cells_after(0).0);
            if delivery.count > 1 || (delivery.count == 0 && delivery.cells.len() > 1) {
                tail.forget(&inputs);
                turn.cause = None;
                return one_by_one(tail, delivery);
            }
            tracing::error!(app = A::NAME, bee = %bee.id, %error, "what a handler left behind is undone");
            draft = Draft::default();
            turn.cause = delivery.cause.clone();
            turn.gate = Some(Gate::new(numbers));
            lost(&error, &mut draft, &mut body.lane, turn);
            turn.close_gate(&mut body.lane)
        }
    };
    let (mut next_seq, mut emits, mut steps) = (tail.next_seq, Vec::new(), Vec::new());
    let mut notes = Vec::new();
    if let Some(mut gate) = gate {
        next_seq = gate.numbers.seq();
        emits = std::mem::take(&mut gate.emits);
        notes = std::mem::take(&mut gate.notes);
        steps = gate.into_steps();
    }
    let Draft { visits, ops, .. } = draft;
    let (cells, cells_end) = bee.cells_after(tail.cells_logged);
    let work = Work {
        app: app.index,
        bee: bee.id,
        cells,
        inputs: inputs.clone(),
        visits,
        ops: ops.clone(),
        emits,
        next_seq,
        now,
    };
    match tail.link().append(bee.clone(), &tail.numbers(), Record::Work(work)) {
        Some(number) => {
            if let Some(probe) = turn.hive.probe() {
                probe.noted(Some(number), notes)
            }
            tail.next_seq = next_seq;
            tail.entries.push_back(pending::Executed { number, delivery, inputs, ops, steps, cells_end });
        }
        // executed on something that is dead by now; the bee is told so when it looks, which is next
        None => {
            tail.forget(&inputs);
            tail.again.push_front(delivery)
        }
    }
    turn.cause = None;
}

const TOO_LARGE: &str = "what the transaction changed and emitted is more than `limits::RECORD_BYTES_MAX`";

/// Has the messages of a run, or the turns of a sweep, executed each by itself, so that one that cannot be recorded harms
/// none but itself.
fn one_by_one<A: App>(tail: &mut pending::Tail<A>, delivery: Delivery<A>) {
    let Delivery { run, batch, cause, first, count, position, cells } = delivery;
    let parts: Vec<(u32, u32, CellSet)> = match count {
        0 => cells.iter().map(|cell| (first, 0, CellSet::from_slice(&[*cell]))).collect(),
        _ => (first..first + count).map(|index| (index, 1, cells.clone())).collect(),
    };
    for (at, (first, count, cells)) in parts.into_iter().enumerate().rev() {
        if at > 0 {
            batch.opened()
        }
        let (batch, cause) = (batch.clone(), cause.clone());
        tail.again.push_front(Delivery { run, batch, cause, first, count, position, cells })
    }
}
