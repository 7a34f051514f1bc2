//! How a bee of a journaled app runs: what it does becomes one record, and nothing of it is seen before that is committed.

use crate::app::{App, Handlers, Handles};
use crate::cell::CellSet;
use crate::hive::admission::outside_lanes::Numbers;
use crate::hive::bee::body::Body;
use crate::hive::bee::delivery::Delivery;
use crate::hive::bee::lifecycle::Bee;
use crate::hive::bee::pending;
use crate::hive::bee::traffic::Peer;
use crate::hive::consensus::journal::{AppId, Input, LaneId, Record, Visited, Work};
use crate::hive::consensus::quarantine::{Begun, set_aside};
use crate::hive::dispatch::effects::{Effects, RouteContext};
use crate::hive::dispatch::handler::Handler;
use crate::hive::dispatch::probe;
use crate::hive::dispatch::turn::Turn;
use crate::hive::message::batch::{AnyBatch, Batch, Messages, batch_of};
use crate::hive::message::trace;
use crate::hive::run::transaction::{Executed, Run, end_with_error, execute, release};
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
trait Transactions<A: App> {
    /// Runs those of `range`. What they leave is kept.
    fn execute(
        &mut self,
        range: Range<u32>,
        state: &mut A,
        ops: &mut Vec<Op>,
        run: &Run<A>,
        cx: &mut RouteContext,
    );
    /// Lets go what they left so far.
    fn release(&mut self, run: &Run<A>, cx: &mut RouteContext);
    /// A message ends with an error that is not its handler's.
    fn end_with(&mut self, index: u32, error: &Error, cx: &mut RouteContext);
}

struct OfABatch<'a, A: App, M: Message> {
    bee: &'a Arc<Bee<A>>,
    batch: &'a Arc<Batch<M>>,
    position: Option<u16>,
    done: Executed<M>,
}

impl<A: Handlers + Handles<M>, M: Message> Transactions<A> for OfABatch<'_, A, M> {
    fn execute(
        &mut self,
        range: Range<u32>,
        state: &mut A,
        ops: &mut Vec<Op>,
        run: &Run<A>,
        cx: &mut RouteContext,
    ) {
        self.done.extend(execute::<A, M>(run, state, (self.batch, range), Some(ops), cx))
    }

    fn release(&mut self, run: &Run<A>, cx: &mut RouteContext) {
        release(run, self.batch, std::mem::take(&mut self.done), cx)
    }

    fn end_with(&mut self, index: u32, error: &Error, cx: &mut RouteContext) {
        let handler = Handler::of::<A, M>(&self.bee.app);
        end_with_error(&handler, self.batch, index, self.position, error, cx)
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
    let messages = (&Handler::of::<A, M>(&bee.app), &**batch as &dyn Messages);
    run_all(transactions, messages, bee, body, delivery, turn)
}

fn run_all<A: Handlers>(
    transactions: &mut dyn Transactions<A>,
    (handler, batch): (&Handler, &dyn Messages),
    bee: &Arc<Bee<A>>,
    body: &mut Body<A>,
    delivery: Delivery<A>,
    turn: &mut Turn,
) {
    let Some(pending) = &mut body.pending else { return };
    let (first, count) = (delivery.first, delivery.count);
    let began = body.traffic.count(Peer::of(batch.source()), count).then(|| turn.hive.now());
    let (cells, position) = (delivery.cells.clone(), delivery.position);
    let (mut new, inputs) = pending.take_note(batch, handler.app, first..first + count);
    if turn.hive.probe().is_some() {
        for index in (first..first + count).filter(|index| !new.contains(index)) {
            probe::ended_unhandled(handler, batch, index, &mut RouteContext::new(&mut body.queue, turn))
        }
    }
    if new.is_empty() && pending.is_settled() {
        // sent again, and committed long since
        return delivery.batch.committed(0);
    }
    let transactions = std::cell::RefCell::new(transactions);
    let mut lost = |error: &Error, _: &mut Draft, cx: &mut RouteContext| {
        transactions.borrow_mut().end_with(first, error, cx)
    };
    let mut run = |state: &mut A, draft: &mut Draft, now, cx: &mut RouteContext| {
        let new = std::mem::take(&mut new);
        let run = &Run { app: &bee.app, bee: Some(bee.id), cells: &cells, position, now };
        let fact = |index: Option<&u32>| batch.source().fact(index.copied().unwrap_or(first), handler.app);
        let (one, other) = (fact(new.first()), fact(new.last()));
        let quarantine = handler.link.map(|link| &link.quarantine);
        // some may have ended the process before, or somebody watches: then they are run by themselves
        let quarantine = quarantine.filter(|quarantine| quarantine.concerns(one, other) || trace::is_on());
        let mut transactions = transactions.borrow_mut();
        for index in new {
            if draft.is_too_large() {
                break;
            }
            let by = (handler.app, handler.number);
            let fact = fact(Some(&index));
            let begun =
                quarantine.map(|quarantine| quarantine.begin(&**cx.turn.hive, cx.turn.slot, by, fact, None));
            if let Some(Begun::SetAside) = begun {
                transactions.end_with(index, &set_aside(), cx);
                continue;
            }
            transactions.execute(index..index + 1, state, &mut draft.ops, run, cx);
            if quarantine.is_some() {
                // what stateless handlers make of it, they make now: that is part of it
                transactions.release(run, cx)
            }
        }
        if quarantine.is_none() {
            transactions.release(run, cx)
        }
    };
    let mut steps = Steps { run: &mut run, lost: &mut lost };
    record(bee, body, (delivery, inputs), &mut steps, turn);
    if let Some(began) = began {
        body.traffic.timed(count, turn.hive.now().since(began))
    }
}

/// What a record is made of.
pub(crate) struct Steps<'a, A> {
    /// Runs the transactions, at a time.
    pub(crate) run: &'a mut dyn FnMut(&mut A, &mut Draft, Time, &mut RouteContext),
    /// Ends them with an error instead, when what they did cannot be recorded and nothing is left of it.
    pub(crate) lost: &'a mut dyn FnMut(&Error, &mut Draft, &mut RouteContext),
}

/// Makes one record of what `steps` do. `inputs`: the messages of `delivery` that are consumed.
pub(crate) fn record<A: App>(
    bee: &Arc<Bee<A>>,
    body: &mut Body<A>,
    (delivery, inputs): (Delivery<A>, Vec<Input>),
    steps: &mut Steps<A>,
    turn: &mut Turn,
) {
    body.now = body.now.max(turn.moment());
    let now = body.now;
    let (app, Some(pending)) = (&bee.app, &mut body.pending) else { return };
    turn.cause = delivery.cause.clone();
    let numbers = Numbers::new(LaneId::of_bee(AppId(app.index), bee.id), pending.next_seq);
    let mut effects = Effects::new(numbers);
    let mut draft = Draft::default();
    let depth = turn.depth;
    let ran = panics::catch(AssertUnwindSafe(|| {
        let mut cx = RouteContext::holding(&mut body.queue, turn, &mut effects);
        (steps.run)(&mut body.app, &mut draft, now, &mut cx);
        cx.run_deferred()
    }));
    let failed = match ran {
        Ok(()) if draft.is_too_large() || draft.bytes + effects.size() > limits::RECORD_BYTES_MAX => {
            Some(Error::of(ErrorKind::Limit, TOO_LARGE))
        }
        Ok(()) => None,
        Err(panic) => {
            // something that a handler left behind: a message, say, that panics when it is encoded
            let why = panics::text(&*panic);
            let _ = panics::catch(AssertUnwindSafe(|| drop(panic)));
            Some(Error::of(ErrorKind::Panicked, why))
        }
    };
    if let Some(error) = failed {
        turn.discard();
        turn.depth = depth;
        pending.restore_executed(app, &mut body.app);
        turn.note_restored(app.index, || bee.cells_after(0).0);
        if delivery.count > 1 || (delivery.count == 0 && delivery.cells.len() > 1) {
            pending.forget(&inputs);
            turn.cause = None;
            return one_by_one(pending, delivery);
        }
        tracing::error!(app = A::NAME, bee = %bee.id, %error, "what a handler left behind is undone");
        draft = Draft::default();
        turn.cause = delivery.cause.clone();
        effects = Effects::new(numbers);
        let mut cx = RouteContext::holding(&mut body.queue, turn, &mut effects);
        (steps.lost)(&error, &mut draft, &mut cx);
        cx.run_deferred()
    }
    let next_seq = effects.numbers.seq();
    let emits = std::mem::take(&mut effects.emits);
    let notes = std::mem::take(&mut effects.notes);
    let steps = effects.into_steps();
    let Draft { visits, ops, .. } = draft;
    let (cells, cells_end) = bee.cells_after(pending.cells_logged);
    let work = Work {
        app: AppId(app.index),
        bee: bee.id,
        cells,
        inputs: inputs.clone(),
        visits,
        ops: ops.clone(),
        emits,
        next_seq,
        now,
    };
    match pending.link().append(bee.clone(), &pending.numbers(), Record::Work(work)) {
        Some(number) => {
            if let Some(probe) = turn.hive.probe() {
                probe.noted(Some(number), notes)
            }
            pending.next_seq = next_seq;
            pending.entries.push_back(pending::Executed { number, delivery, inputs, ops, steps, cells_end });
        }
        // executed on something that is dead by now; the bee is told so when it looks, which is next
        None => {
            pending.forget(&inputs);
            pending.again.push_front(delivery)
        }
    }
    turn.cause = None;
}

const TOO_LARGE: &str = "what the transaction changed and emitted is more than `limits::RECORD_BYTES_MAX`";

/// Has the messages of a run, or the turns of a sweep, executed each by itself, so that one that cannot be recorded harms
/// none but itself.
fn one_by_one<A: App>(pending: &mut pending::PendingRuns<A>, delivery: Delivery<A>) {
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
        pending.again.push_front(Delivery { run, batch, cause, first, count, position, cells })
    }
}
