//! Runs of journaled bees. Each run becomes part of a log entry, and its effects are held until the record is
//! committed.

use crate::app::{Handlers, Handles};
use crate::cell::CellSet;
use crate::hive::admission::outside_lanes::Numbers;
use crate::hive::bee::body::Body;
use crate::hive::bee::delivery::Delivery;
use crate::hive::bee::executed::{self, Inputs, Unsaid};
use crate::hive::bee::lifecycle::Bee;
use crate::hive::bee::pending;
use crate::hive::bee::traffic::Peer;
use crate::hive::consensus::journal::{AppId, InputRuns, LaneId, MessageId, Suspect, Visited, Work};
use crate::hive::consensus::log_client::Appended;
use crate::hive::consensus::quarantine::{Begun, set_aside};
use crate::hive::dispatch::effects::{Effects, HeldEffects, RouteContext, flush};
use crate::hive::dispatch::probe;
use crate::hive::dispatch::sender::queue::SenderQueue;
use crate::hive::dispatch::turn::Turn;
use crate::hive::dispatch::types::handler::Handler;
use crate::hive::message::batch::{AnyBatch, Batch, Messages, batch_of};
use crate::hive::message::trace;
use crate::hive::run::results::{Executed, end_with_error, release};
use crate::hive::run::transaction::{Run, execute, is_too_large};
use crate::message::{Error, ErrorKind, Message};
use crate::mutant::Mutant;
use crate::state::any::{self, AnyState};
use crate::state::image::Redo;
use crate::time::Time;
use crate::{limits, panics};
use std::marker::PhantomData;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// The parts of a record produced by transactions, except for the emitted messages, which are in [`Effects`].
#[derive(Default)]
pub(crate) struct Draft {
    /// The changes of state.
    pub(crate) redo: Redo,
}

/// Type-erased transactions for messages of one type, so that `run_all` is compiled only once per app.
trait Transactions {
    /// Runs the messages in `range` and keeps the results.
    fn execute(
        &mut self,
        range: Range<u32>,
        state: &mut dyn AnyState,
        redo: &mut Redo,
        run: &Run,
        cx: &mut RouteContext,
    );
    /// Releases the results so far into `cx`, which holds their effects.
    fn release(&mut self, run: &Run, cx: &mut RouteContext);
    /// Fails a message with an error that its handler did not return.
    fn end_with(&mut self, index: u32, error: &Error, cx: &mut RouteContext);
}

/// One batch's transactions.
struct OfABatch<'a, A, M: Message> {
    app: PhantomData<fn(A)>,
    bee: &'a Arc<Bee>,
    batch: &'a Arc<Batch<M>>,
    position: Option<u16>,
    done: Executed<M>,
}

impl<A: Handlers + Handles<M>, M: Message> Transactions for OfABatch<'_, A, M> {
    fn execute(
        &mut self,
        range: Range<u32>,
        state: &mut dyn AnyState,
        redo: &mut Redo,
        run: &Run,
        cx: &mut RouteContext,
    ) {
        self.done.extend(execute::<A, M>(run, any::of(state), (self.batch, range), Some(redo), cx))
    }

    fn release(&mut self, run: &Run, cx: &mut RouteContext) {
        release::<A, M>(run, self.batch, std::mem::take(&mut self.done), cx)
    }

    fn end_with(&mut self, index: u32, error: &Error, cx: &mut RouteContext) {
        let handler = Handler::of::<A, M>(&self.bee.app);
        end_with_error(&handler, self.batch, index, self.position, error, cx)
    }
}

/// Runs the messages in a delivery that the bee has not yet consumed. Holds their effects until the record is
/// committed.
pub(crate) fn run_journaled<A: Handlers + Handles<M>, M: Message>(
    bee: &Arc<Bee>,
    body: &mut Body,
    delivery: Delivery,
    turn: &mut Turn,
) {
    let batch: Arc<dyn AnyBatch> = delivery.batch.clone();
    let Some(batch) = &batch_of::<M>(batch) else { return };
    let transactions = &mut OfABatch {
        app: PhantomData::<fn(A)>,
        bee,
        batch,
        position: delivery.position,
        done: Executed::default(),
    };
    let messages = (&Handler::of::<A, M>(&bee.app), &**batch as &dyn Messages);
    run_all(transactions, messages, bee, body, delivery, turn)
}

/// The part of [`run_journaled`] that does not depend on the message type.
fn run_all(
    transactions: &mut dyn Transactions,
    (handler, batch): (&Handler, &dyn Messages),
    bee: &Arc<Bee>,
    body: &mut Body,
    delivery: Delivery,
    turn: &mut Turn,
) {
    let Some(pending) = &mut body.pending else { return };

    if let Some(arrival) = batch.arrival()
        && arrival.bee != bee.id
    {
        // the bee has merged into this one since the sender's hive routed the messages
        return arrival.refuse();
    }

    let (first, count) = (delivery.first, delivery.count);
    let began = body.traffic.count(Peer::of(batch.source()), count).then(|| turn.hive.now());
    let (cells, position) = (delivery.cells.clone(), delivery.position);

    let (mut new, inputs) = pending.take_note(batch, handler.app, first..first + count);

    let mut old: Vec<u32> = match turn.hive.probe() {
        Some(_) => (first..first + count).filter(|index| !new.contains(index)).collect(),
        None => Vec::new(),
    };
    let note_old = |old: Vec<u32>, cx: &mut RouteContext| {
        old.into_iter().for_each(|index| probe::ended_unhandled(handler, batch, index, cx))
    };

    if new.is_empty() && pending.is_settled() {
        note_old(old, &mut RouteContext::new(&mut body.queue, turn));
        // all messages are duplicates, and the records that consumed the first copies are committed. While
        // such a record is still in flight, the duplicates go through an empty run below instead: the journal
        // may still refuse it, and a duplicate must not be reported as committed before the record that
        // consumed the first copy
        pending::acknowledge(pending.link(), &delivery, bee.app.index, turn.hive);
        return delivery.batch.committed(0);
    }

    let message_id =
        |index: Option<&u32>| batch.source().message_id(index.copied().unwrap_or(first), handler.app);
    let (one, other) = (message_id(new.first()), message_id(new.last()));
    let link = pending.link();
    // messages that may have crashed the process run under a crash marker, and their effects are released
    // message by message. The same applies to traced messages
    let quarantined = (link.quarantine.concerns(one, other) || trace::is_on()).then(|| link.clone());

    let transactions = std::cell::RefCell::new(transactions);
    let mut lost = |error: &Error, _: &mut Draft, cx: &mut RouteContext| {
        transactions.borrow_mut().end_with(first, error, cx)
    };

    let mut run = |state: &mut dyn AnyState, draft: &mut Draft, now, cx: &mut RouteContext| {
        // report the duplicates as part of this run's effects: if its record is refused, they will arrive
        // again
        note_old(std::mem::take(&mut old), cx);
        let new = std::mem::take(&mut new);
        let id_of = |index| batch.source().message_id(index, handler.app);
        let run = &Run { app: &bee.app, bee: Some(bee.id), cells: &cells, position, now };
        let mut transactions = transactions.borrow_mut();

        let Some(link) = &quarantined else {
            let mut rest = &*new;
            while !rest.is_empty() && !is_too_large(&draft.redo) {
                let (together, later) = rest.split_at(adjacent(rest));
                let range = together[0]..together[0] + together.len() as u32;
                transactions.execute(range, state, &mut draft.redo, run, cx);
                rest = later
            }
            return transactions.release(run, cx);
        };

        for (at, &index) in new.iter().enumerate() {
            if is_too_large(&draft.redo) {
                break;
            }

            let by = (handler.app, handler.number);
            let suspect = Suspect { id: id_of(index), cell: None };
            let later = new[at + 1..].iter();
            let suspects = || later.map(|index| Suspect { id: id_of(*index), cell: None });
            let begun = link.quarantine.begin(link, (&**cx.turn.hive, cx.turn.slot), by, suspect, suspects);

            if let Begun::Deposed = begun {
                // the run is not recorded
                continue;
            }
            if let Begun::SetAside = begun {
                transactions.end_with(index, &set_aside(), cx);
                continue;
            }

            transactions.execute(index..index + 1, state, &mut draft.redo, run, cx);
            // this also runs the stateless handlers that get the message's outputs. A crash of one of them is
            // attributed to this message
            transactions.release(run, cx)
        }
    };

    // a message from outside arrives only once, even after a crash, with two exceptions. First, its lane may
    // outlive the process. Second, another app may have passed the message on, in which case the record of
    // that app contains it
    let is_passed_on = position.is_some_and(|position| position > 0);
    let is_outside = batch.admitted().is_some() && !batch.source().numbers.lane.is_lasting();
    let may_repeat = !inputs.is_empty() && (is_passed_on || !is_outside);
    let mut steps = Steps { run: &mut run, lost: &mut lost, sweep: None, may_repeat };
    record(bee, body, (delivery, inputs), &mut steps, turn);
    if let Some(began) = began {
        body.traffic.timed(count, turn.hive.now().since(began))
    }
}

/// Returns how many of the messages at the front follow one another in their batch.
fn adjacent(messages: &[u32]) -> usize {
    1 + messages.windows(2).take_while(|pair| pair[1] == pair[0] + 1).count()
}

/// Functions that produce the contents of a record.
pub(crate) struct Steps<'a> {
    /// Runs the transactions. The `Time` is the current time as the handlers see it.
    pub(crate) run: &'a mut dyn FnMut(&mut dyn AnyState, &mut Draft, Time, &mut RouteContext),
    /// Fails the messages instead. Called after a rollback if the changes or outputs cannot be
    /// recorded.
    pub(crate) lost: &'a mut dyn FnMut(&Error, &mut Draft, &mut RouteContext),
    /// The sweep whose visits to the delivery's cells the record names; `None` if there are no visits, or if they are
    /// inputs of the record.
    pub(crate) sweep: Option<MessageId>,
    /// Whether the log must remember the delivery's messages or visits, because they may arrive again.
    pub(crate) may_repeat: bool,
}

/// Runs `steps` and appends one record of the resulting changes and emitted messages. `inputs` are the
/// messages of `delivery` that the record consumes.
pub(crate) fn record(
    bee: &Arc<Bee>,
    body: &mut Body,
    (delivery, inputs): (Delivery, InputRuns),
    steps: &mut Steps,
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

    let is_over = turn.hive.is_over() && !turn.hive.breaks(Mutant::RecordsWhenOver);
    if is_over || pending.link().is_deposed() {
        // No handler begins once the hive is over, so `execute` may have skipped the last messages of the
        // run. A record would still mark them as consumed, and if their senders resent them, they would be
        // taken for duplicates. If the hive has lost the log, the messages go to its next leader
        turn.discard();
        turn.depth = depth;
        turn.cause = None;
        pending.forget(&inputs);
        return pending.again.push_front(delivery);
    }

    let failed = match ran {
        Ok(()) if draft.redo.size() + effects.size() > limits::RECORD_BYTES_MAX => {
            Some(Error::of(ErrorKind::Limit, TOO_LARGE))
        }
        Ok(()) => None,
        Err(panic) => {
            // the app's code outside the handler has panicked, for example while encoding a message
            let why = panics::text(&*panic);
            Some(Error::of(ErrorKind::Panicked, why))
        }
    };

    if let Some(error) = failed {
        turn.discard();
        turn.depth = depth;
        pending.undo(&draft.redo, app, &mut body.app);
        turn.note_restored(app.index, || bee.cells_after(0).0);

        if delivery.count > 1 || (delivery.count == 0 && delivery.cells.len() > 1) {
            pending.forget(&inputs);
            turn.cause = None;
            return one_by_one(pending, delivery);
        }

        tracing::error!(app = app.name, bee = %bee.id, %error, "a transaction cannot be recorded; it was rolled back");
        draft = Draft::default();
        turn.cause = delivery.cause.clone();

        effects = Effects::new(numbers);
        let mut cx = RouteContext::holding(&mut body.queue, turn, &mut effects);
        (steps.lost)(&error, &mut draft, &mut cx);
        cx.run_deferred()
    }

    if draft.redo.is_empty() && effects.only_reports() {
        // if a message from a resumable lane is resent after a restart, it reaches this bee only if the log
        // knows that the bee owns the message's cells
        let is_lasting = inputs.iter().any(|input| input.lane.is_lasting());
        // some messages are acknowledged as soon as this run is released, so by then, an entry must record that
        // they have been handled
        let link = pending.link();
        let is_acked = inputs.iter().any(|input| link.acknowledges(input.lane))
            && !link.lanes.breaks(Mutant::AckFromMemory);
        let unsaid = match steps.may_repeat {
            false => Some(Unsaid::Nothing),
            true if is_acked => None,
            true if is_lasting && !bee.cells_after(pending.cells_logged).0.is_empty() => None,
            true => Some(Unsaid::Open(steps.sweep)),
        };

        if let Some(unsaid) = unsaid {
            return read(bee, body, (delivery, inputs, unsaid), effects, turn);
        }
    }

    let bytes = draft.redo.size() + effects.size();
    let next_seq = effects.numbers.seq();
    let emits = std::mem::take(&mut effects.emits);
    let notes = std::mem::take(&mut effects.notes);
    let visited = steps.sweep.map(|sweep| Visited { sweep, cells: delivery.cells.to_vec() });
    let has_postponed = effects.has_postponed;
    let steps = effects.into_steps();
    let Draft { mut redo } = draft;
    redo.shrink();

    let (own_inputs, mut inputs) = (inputs.len(), inputs);
    let (consumed, visited_before) = pending.unsaid();
    inputs.extend(consumed);
    let visits = visited.into_iter().chain(visited_before).collect();

    let bytes = bytes + size_of_val(&*inputs) + size_of::<Work>();
    let (cells, cells_end) = bee.cells_after(pending.cells_logged);
    let work = Work { app: AppId(app.index), bee: bee.id, cells, inputs, visits, redo, emits, next_seq, now };

    match pending.link().append(bee.clone(), pending.newest(), work, bytes) {
        Ok(Appended { number, work, consumed: says }) => {
            let steps = leave_early(pending, &delivery, bee.app.index, steps, (&mut body.queue, turn));
            if let Some(probe) = turn.hive.probe() {
                probe.noted(Some((pending.link().position(), number)), notes)
            }
            pending.next_seq = next_seq;
            pending.is_logged = true;
            let (entry, inputs, unsaid) =
                (Some((number, work)), Inputs::OfEntry(own_inputs), Unsaid::Nothing);
            let confirmation = 0;
            let executed = executed::Executed {
                entry,
                delivery,
                inputs,
                unsaid,
                says,
                steps,
                cells_end,
                has_postponed,
                confirmation,
            };
            pending.push(executed, app, turn.local(app.index))
        }
        // the log client has rejected this run, because the journal refused one of the bee's uncommitted
        // entries. The thread that processed the refusal changed the client's version under the lock that
        // `append` takes on this thread. The `reconcile` that follows every run on this thread therefore sees
        // the new version, restores the committed state and queues the messages to be run again
        Err(refused) => {
            pending.forget(refused.inputs.get(..own_inputs).unwrap_or(&[]));
            pending.again.push_front(delivery)
        }
    }

    turn.cause = None;
}

/// For a mutant: breaks the rules that nothing is acknowledged, and that no effect leaves, before the record is
/// committed. Returns the remaining effects.
#[inline(always)]
fn leave_early(
    pending: &pending::PendingRuns,
    delivery: &Delivery,
    app: u16,
    steps: HeldEffects,
    (queue, turn): (&mut SenderQueue, &mut Turn),
) -> HeldEffects {
    let lanes = &pending.link().lanes;
    if lanes.breaks(Mutant::AckBeforeCommit) {
        pending::acknowledge(pending.link(), delivery, app, turn.hive)
    }
    if !lanes.breaks(Mutant::EmitBeforeCommit) {
        return steps;
    }
    flush(steps, &mut RouteContext::new(queue, turn));
    HeldEffects::new()
}

/// Ends a run that changed and sent nothing, without a log entry. Its reports are released when the entries
/// before it are committed, because the run has read their changes, and when the journal has confirmed that the hive leads the
/// log, because another leader may have changed what the run has read. If the journal refuses one of those
/// entries, the run is executed again. If the log must record that the run handled its messages (`unsaid`), a
/// later entry does so.
fn read(
    bee: &Arc<Bee>,
    body: &mut Body,
    (delivery, inputs, unsaid): (Delivery, InputRuns, Unsaid),
    mut effects: Effects,
    turn: &mut Turn,
) {
    let Some(pending) = &mut body.pending else { return };
    turn.cause = None;

    if let Some(probe) = turn.hive.probe() {
        let newest = pending.newest().map(|number| (pending.link().position(), number));
        probe.noted_read(newest, std::mem::take(&mut effects.notes))
    }

    let (steps, cells_end) = (effects.into_steps(), pending.cells_logged);
    // if nobody gets an answer, nobody learns what the run has read
    let confirmation = match steps.is_empty() {
        true => 0,
        false => pending.link().confirm(|| bee.clone(), pending.newest_confirmation()),
    };
    let done = executed::Executed::without_entry(delivery, (inputs, unsaid), steps, cells_end, confirmation);
    let waits = !pending.entries.is_empty() && !pending.link().lanes.breaks(Mutant::ReadTail);
    if waits || !pending.link().is_confirmed(confirmation) {
        return pending.push(done, &bee.app, turn.local(bee.app.index));
    }

    let mut cx = RouteContext::new(&mut body.queue, turn);
    pending.release(done, bee, &mut body.app, &mut cx)
}

const TOO_LARGE: &str = "the changes and messages of the transaction exceed `limits::RECORD_BYTES_MAX`";

/// Queues a run's messages (or a visit's cells) to be executed one by one, so that only those that cannot be
/// recorded fail.
fn one_by_one(pending: &mut pending::PendingRuns, delivery: Delivery) {
    let Delivery { run, batch, office, back, cause, first, count, position, cells } = delivery;
    let parts: Vec<(u32, u32, CellSet)> = match count {
        0 => cells.iter().map(|cell| (first, 0, CellSet::from_slice(&[*cell]))).collect(),
        _ => (first..first + count).map(|index| (index, 1, cells.clone())).collect(),
    };

    for (at, (first, count, cells)) in parts.into_iter().enumerate().rev() {
        if at > 0 {
            batch.opened()
        }
        let (batch, back, cause) = (batch.clone(), back.clone(), cause.clone());
        let one = Delivery { run, batch, office, back, cause, first, count, position, cells };
        pending.again.push_front(one)
    }
}
