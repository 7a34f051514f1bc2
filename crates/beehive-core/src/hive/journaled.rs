//! How a bee of a journaled app runs: what it does becomes one record, and nothing of it is seen before that is committed.

use crate::app::{App, Handlers, Handles};
use crate::cell::CellSet;
use crate::hive::admission::{Numbers, lane_of};
use crate::hive::batch::Batch;
use crate::hive::bee::{Bee, Body, Delivery};
use crate::hive::care::{Begun, Care, set_aside};
use crate::hive::gate::Gate;
use crate::hive::journal::{Input, Record, Visited, Work};
use crate::hive::lane::SenderLane;
use crate::hive::receiver::end_with_error;
use crate::hive::tail;
use crate::hive::traffic::Peer;
use crate::hive::transaction::{Executed, Run, execute, release};
use crate::hive::turn::Turn;
use crate::hive::{unwinding, watched, witness};
use crate::limits;
use crate::message::{Error, ErrorKind, Message};
use crate::state::image::Op;
use crate::time::Time;
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

/// Runs the messages that were not run before; holds back what that lets out until their record is committed.
pub(crate) fn run_journaled<A: Handlers + Handles<M>, M: Message>(
    bee: &Arc<Bee<A>>,
    body: &mut Body<A>,
    delivery: Delivery<A>,
    turn: &mut Turn,
) {
    let batch = delivery.batch.clone() as Arc<dyn std::any::Any + Send + Sync>;
    let (Ok(batch), Some(tail)) = (batch.downcast::<Batch<M>>(), &mut body.tail) else { return };
    let count = delivery.count;
    let began = body.traffic.count(Peer::of(&batch.source), count).then(|| turn.hive.now());
    let (cells, position) = (delivery.cells.clone(), delivery.position);
    let (mut new, inputs) =
        tail.take_note(&batch, bee.app.index, delivery.first..delivery.first + delivery.count);
    if turn.hive.witness.is_some() {
        for index in (delivery.first..delivery.first + count).filter(|index| !new.contains(index)) {
            witness::ended_before(&bee.app, &batch, index, turn)
        }
    }
    if new.is_empty() && tail.is_settled() {
        // sent again, and committed long since
        return delivery.batch.committed(0);
    }
    let (app, first) = (&bee.app, delivery.first);
    let mut lost = |error: &Error, _: &mut Draft, lane: &mut SenderLane, turn: &mut Turn| {
        end_with_error::<A, M>(app, &batch, first, position, error, lane, turn)
    };
    let mut run = |state: &mut A, draft: &mut Draft, lane: &mut SenderLane, now, turn: &mut Turn| {
        let new = std::mem::take(&mut new);
        let run = Run { cells: &cells, position, now };
        let fact = |index: Option<&u32>| batch.source.fact(index.copied().unwrap_or(first), bee.app.index);
        let (one, other) = (fact(new.first()), fact(new.last()));
        let care = bee.app.link.as_ref().map(|link| &link.care);
        if let Some(care) = care.filter(|care| care.concerns(one, other) || watched::is_on()) {
            return one_at_a_time::<A, M>(care, bee, state, &batch, new, run, draft, lane, turn);
        }
        let mut done = Executed::default();
        for index in new {
            if draft.is_too_large() {
                break;
            }
            done.extend(execute::<A, M>(
                &bee.app,
                Some(bee.id),
                state,
                &batch,
                index..index + 1,
                run,
                turn,
                Some(&mut draft.ops),
            ))
        }
        release(&bee.app, Some(bee.id), &batch, position, done, lane, turn)
    };
    record(bee, body, delivery, inputs, turn, &mut lost, &mut run);
    if let Some(began) = began {
        body.traffic.timed(count, turn.hive.now().since(began))
    }
}

/// Runs messages of which some may have ended the process before, or that somebody watches, by themselves.
#[allow(clippy::too_many_arguments)]
fn one_at_a_time<A: Handlers + Handles<M>, M: Message>(
    care: &Care,
    bee: &Arc<Bee<A>>,
    state: &mut A,
    batch: &Arc<Batch<M>>,
    new: Vec<u32>,
    run: Run,
    draft: &mut Draft,
    lane: &mut SenderLane,
    turn: &mut Turn,
) {
    let app = &bee.app;
    for index in new {
        if draft.is_too_large() {
            break;
        }
        let fact = batch.source.fact(index, app.index);
        let begun = care.begin(turn.hive, turn.slot, (app.index, A::HANDLER), fact, None);
        if let Begun::SetAside = begun {
            end_with_error::<A, M>(app, batch, index, run.position, &set_aside(), lane, turn);
            continue;
        }
        // what stateless handlers make of it, they make now: that is part of it
        let done = execute::<A, M>(
            app,
            Some(bee.id),
            state,
            batch,
            index..index + 1,
            run,
            turn,
            Some(&mut draft.ops),
        );
        release(app, Some(bee.id), batch, run.position, done, lane, turn)
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
    let ran = unwinding::catch(AssertUnwindSafe(|| {
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
            let why = unwinding::text(&*panic);
            let _ = unwinding::catch(AssertUnwindSafe(|| drop(panic)));
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
            if let Some(witness) = &turn.hive.witness {
                witness.add(Some(number), notes)
            }
            tail.next_seq = next_seq;
            tail.entries.push_back(tail::Executed { number, delivery, inputs, ops, steps, cells_end });
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
fn one_by_one<A: App>(tail: &mut tail::Tail<A>, delivery: Delivery<A>) {
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
