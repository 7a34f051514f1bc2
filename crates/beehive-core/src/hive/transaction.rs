//! The transactions of a run of messages, and what they leave: outputs, answers, messages to be passed on.

use crate::app::{Handlers, Handles};
use crate::cell::{BeeId, CellId};
use crate::context::Ctx;
use crate::hive::Address;
use crate::hive::HiveInner;
use crate::hive::admission::{Admission, Numbers};
use crate::hive::batch::{AnswerRun, AnyBatch, Batch, Chain, STRIDE, Source};
use crate::hive::bee::Local;
use crate::hive::credit::Cause;
use crate::hive::dead_letters::{DeadLetter, Provenance, Way};
use crate::hive::journal::Fact;
use crate::hive::lane::SenderLane;
use crate::hive::outputs::Outputs;
use crate::hive::postpone::postpone;
use crate::hive::receiver::remembered_name;
use crate::hive::runtime::AppRuntime;
use crate::hive::turn::Turn;
use crate::hive::types::MessageType;
use crate::hive::witness::About;
use crate::hive::{unwinding, watched, words};
use crate::limits;
use crate::message::{Error, ErrorKind, Message};
use crate::snapshot::{self, Changes, Collected, Published};
use crate::state::column::{Columns, State};
use crate::state::guard::Held;
use crate::state::image::{Op, encode};
use crate::time::Time;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How a run of transactions is run.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) cells: &'a [CellId],
    pub(crate) position: Option<u16>,
    pub(crate) now: Time,
}

/// What a run of transactions left, besides its changes of state and its outputs.
pub(crate) struct Executed<M: Message> {
    answers: AnswerRun<M>,
    /// Messages that the handler could have answered and did not.
    passed: Vec<u32>,
    /// Of a handler that cannot answer, where somebody counts.
    observed: Vec<(u32, Result<(), Error>)>,
    /// Messages to be handled again, and when.
    postponed: Vec<(u32, Time)>,
    /// The chance of the first message, from which that of what the run emitted follows.
    chance: u64,
    /// The chain of causes of the first message, which goes on with what the run emitted.
    chain: Chain,
}

impl<M: Message> Default for Executed<M> {
    fn default() -> Self {
        Executed {
            answers: AnswerRun::<M>::new(),
            passed: Vec::new(),
            observed: Vec::new(),
            postponed: Vec::new(),
            chance: 0,
            chain: Chain::default(),
        }
    }
}

impl<M: Message> Executed<M> {
    /// Adds what a later run left.
    pub(crate) fn extend(&mut self, later: Executed<M>) {
        if self.chance == 0 {
            self.chance = later.chance;
            self.chain = later.chain
        }
        self.answers.extend(later.answers);
        self.passed.extend(later.passed);
        self.observed.extend(later.observed);
        self.postponed.extend(later.postponed)
    }

    /// Whether a message is to be handled again.
    pub(crate) fn puts_off(&self) -> bool {
        !self.postponed.is_empty()
    }

    /// A message ends with an error. `position`: that of the app in the chain.
    #[cold]
    pub(crate) fn end_with(&mut self, batch: &Batch<M>, index: u32, error: Error, position: Option<u16>) {
        self.chain = batch.source.chain.after(index);
        match position {
            Some(_) if batch.sink.is_some() => self.answers.push(Err(error)),
            Some(_) => {}
            None => self.observed.push((index, Err(error))),
        }
    }
}

const PUT_OFF_TICK: &str = "a tick cannot be put off with `postpone`: the next one comes by itself";

/// Runs a handler for each message of `range`: a transaction each. `redo` takes what they changed.
#[allow(clippy::too_many_arguments)]
pub(crate) fn execute<A: Handlers + Handles<M>, M: Message>(
    app: &AppRuntime<A>,
    bee: Option<BeeId>,
    state: &mut A,
    batch: &Arc<Batch<M>>,
    range: Range<u32>,
    run: Run,
    turn: &mut Turn,
    mut redo: Option<&mut Vec<Op>>,
) -> Executed<M> {
    let mut done = Executed::default();
    if A::ANSWERS && batch.sink.is_some() {
        done.answers.reserve(range.len())
    }
    let count = range.len() as u32;
    turn.count(count);
    app.handlers[A::HANDLER].messages.fetch_add(count as u64, Ordering::Relaxed);
    let hive = turn.hive;
    let Run { cells, position, now } = run;
    let slot = turn.slot;
    let mut collected = collect(app, redo.is_none(), now, turn);
    let opened = app.snapshots.as_ref().filter(|_| A::PUBLISHED != 0).map(|s| snapshot::open(s, now));
    hive.begin_run(slot, app.index, A::HANDLER);
    // to show the messages, too, costs as much as a short handler
    let shown = app.handlers[A::HANDLER].has_held().then(|| batch.clone() as Arc<dyn AnyBatch>);
    let is_shown = shown.is_some();
    hive.show_run(slot, cells.first().copied(), batch.source.chain.number(range.start), shown);
    let ctx = turn.ctx();
    ctx.now = now;
    ctx.origin = batch.source.origin;
    ctx.sender = batch.source.sender;
    let sink = batch.sink.as_deref();
    let observed = position.is_none() && sink.is_some_and(|s| s.counts());
    let held = Held::strict(app.seed, app.whole, cells);
    ctx.postponed = None;
    let mut answered = 0u32;
    let watched = watched::is_on();
    done.chance = chance(app, batch, range.start, cells);
    done.chain = batch.source.chain.after(range.start);
    let mut notes = hive.witness.is_some().then(Vec::new);
    let is_passed_on = position.is_some_and(|position| position > 0);
    let about = |index| {
        let chance = chance(app, batch, index, cells);
        About { bee, batch, index, cells, chance, is_passed_on }
    };
    for index in range {
        let Some(message) = batch.messages.get(index as usize) else { break };
        if hive.is_over() {
            break;
        }
        hive.run_at(slot, index);
        ctx.chance = chance(app, batch, index, cells);
        let mark = ctx.out.mark();
        let result = match watched {
            false => ended(state, message, ctx, &held),
            true => {
                let _span = watched::handling(A::NAME, handler_name::<A, M>(), batch, index, cells);
                ended_in_span(state, message, ctx, &held)
            }
        };
        let result = match redo.as_deref_mut() {
            Some(ops) => result.and_then(|answer| written_down(state, ops).map(|()| answer)),
            None if A::PUBLISHED != 0 => {
                result.and_then(|answer| noted(state, &mut collected).map(|()| answer))
            }
            None => result,
        };
        match result {
            Ok(answer) => {
                if let Some(notes) = &mut notes {
                    notes.push(about(index).committed(app, state, ctx, mark, &answer))
                }
                unwinding::to_the_end(|| state.commit());
                if let Some(at) = ctx.postponed {
                    ctx.postponed = None;
                    done.postponed.push((index, at));
                    continue;
                }
                answered += u32::from(answer.is_some());
                if A::ANSWERS && position.is_some() {
                    match answer {
                        Some(answer) if sink.is_some() => done.answers.push(Ok(answer)),
                        Some(_) => {}
                        None => done.passed.push(index),
                    }
                } else if observed {
                    done.observed.push((index, Ok(())));
                }
            }
            Err(error) => {
                if let Some(notes) = &mut notes {
                    notes.push(about(index).failed(app, now, &error))
                }
                unwinding::to_the_end(|| state.rollback());
                ctx.out.rollback(mark);
                ctx.postponed = None;
                fail(app, hive, batch, index, position, &error);
                if A::ANSWERS && position.is_some() {
                    if sink.is_some() {
                        done.answers.push(Err(error));
                    }
                } else if observed {
                    done.observed.push((index, Err(error)));
                }
            }
        }
    }
    drop(held);
    drop(opened);
    hive.end_run(slot);
    if A::PUBLISHED != 0 {
        turn.local::<Local<A>>(app.index).changes = collected.end()
    }
    if is_shown {
        hive.hide_run(slot)
    }
    if let Some(notes) = notes {
        turn.note(notes)
    }
    if answered > 0 {
        app.handlers[A::HANDLER].answered.fetch_add(u64::from(answered), Ordering::Relaxed);
    }
    done
}

/// What a run changes that snapshots are told of when it is over. Where there is a log, they are told when it is committed.
#[inline(always)]
fn collect<'a, A: Published>(
    app: &'a AppRuntime<A>,
    is_unlogged: bool,
    now: Time,
    turn: &mut Turn,
) -> Collected<'a> {
    match A::PUBLISHED != 0 && is_unlogged {
        true => {
            let room = std::mem::take(&mut turn.local::<Local<A>>(app.index).changes);
            Collected::begin(app.snapshots.as_ref(), room, now)
        }
        false => Collected::begin(None, Changes::default(), now),
    }
}

/// Adds what a transaction has changed. It is cloned, and that may fail.
fn noted<A: State>(state: &mut A, collected: &mut Collected) -> Result<(), Error> {
    unwinding::catch(AssertUnwindSafe(|| collected.note(state)))
        .map_err(|panic| failure::<()>(Err(panic), None, None))
}

/// Runs a handler to the end of its transaction, which is still to be committed or rolled back.
#[inline(always)]
pub(crate) fn ended<A: Handlers + Handles<M>, M: Message>(
    state: &mut A,
    message: &M,
    ctx: &mut Ctx,
    held: &Held,
) -> Result<Option<M::Reply>, Error> {
    let result = unwinding::catch(AssertUnwindSafe(|| {
        let handled = state.handle(message, ctx);
        // what goes is cloned first, and that is the app's code, too
        if A::LIMITED && handled.is_ok() {
            state.evict().map_err(|text| Error::of(ErrorKind::Limit, text))?
        }
        handled
    }));
    let overflow = ctx.out.take_overflow();
    match (result, held.violation()) {
        (Ok(Ok(_)), None) if M::IS_TICK && ctx.postponed.is_some() => Err(Error::new(PUT_OFF_TICK)),
        (Ok(Ok(answer)), None) if overflow.is_none() => Ok(answer),
        (result, violation) => Err(failure(result, violation, overflow)),
    }
}

/// As [`ended`], for the few that somebody watches: not a second time in the loop.
#[cold]
#[inline(never)]
fn ended_in_span<A: Handlers + Handles<M>, M: Message>(
    state: &mut A,
    message: &M,
    ctx: &mut Ctx,
    held: &Held,
) -> Result<Option<M::Reply>, Error> {
    ended(state, message, ctx, held)
}

/// Adds to `ops` what a transaction has changed. What cannot be encoded fails it: a log must not miss anything.
fn written_down<A: Columns>(state: &mut A, ops: &mut Vec<Op>) -> Result<(), Error> {
    let before = ops.len();
    unwinding::catch(AssertUnwindSafe(|| state.redo(ops))).map_err(|panic| {
        ops.truncate(before);
        failure::<()>(Err(panic), None, None)
    })
}

/// The same for the same message, whenever it is run. A cell's turn at a sweep is known by the cell: its place in the batch
/// says how many cells the bee has, unless one bee has all of them.
#[inline(always)]
fn chance<A: Handlers + Handles<M>, M: Message>(
    app: &AppRuntime<A>,
    batch: &Batch<M>,
    index: u32,
    cells: &[CellId],
) -> u64 {
    match cells.first() {
        Some(own) if M::OF_A_SWEEP && app.swept(A::HANDLER).and_then(|d| app.whole_cell(d)).is_none() => {
            batch.source.chance_of(own.0)
        }
        _ => batch.source.chance_of(index as u64),
    }
}

#[cold]
fn failure<T>(
    result: Result<Result<T, Error>, Box<dyn std::any::Any + Send>>,
    violation: Option<crate::state::guard::Violation>,
    overflow: Option<&'static str>,
) -> Error {
    match (result, violation) {
        // also when the handler caught the unwinding and went on
        (_, Some(violation)) => Error::of(ErrorKind::Unmapped, violation.to_string()),
        (Ok(Err(error)), None) => error,
        // what ended the transaction says so
        (Err(panic), None) if panic.is::<Error>() => {
            panic.downcast().map_or_else(|_| Error::of(ErrorKind::Panicked, "?"), |error| *error)
        }
        (Err(panic), None) => {
            let text = unwinding::text(&*panic);
            // what a panic carries may panic when it is dropped
            let _ = unwinding::catch(AssertUnwindSafe(|| drop(panic)));
            Error::of(ErrorKind::Panicked, text)
        }
        (Ok(Ok(_)), None) => Error::of(ErrorKind::Limit, overflow.unwrap_or("a limit was passed")),
    }
}

fn handler_name<A: Handlers + Handles<M>, M: Message>() -> &'static str {
    A::REPORT.get(A::HANDLER).map_or("?", |r| r.name)
}

#[cold]
pub(crate) fn fail<A: Handlers + Handles<M>, M: Message>(
    app: &AppRuntime<A>,
    hive: &HiveInner,
    batch: &Batch<M>,
    index: u32,
    position: Option<u16>,
    error: &Error,
) {
    let counters = &app.handlers[A::HANDLER];
    let handler = handler_name::<A, M>();
    if matches!(error.kind(), ErrorKind::Handler | ErrorKind::Stale) {
        counters.errors.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(app = A::NAME, handler, message = M::NAME, %error, "a handler answered with an error");
        return;
    }
    counters.panics.fetch_add(1, Ordering::Relaxed);
    let Some(message) = batch.messages.get(index as usize) else { return };
    let Source { origin, sender, hops, chain, handler: sent_by, .. } = batch.source;
    hive.dead_letters.add(DeadLetter {
        number: 0,
        app: A::NAME,
        handler,
        message: M::NAME,
        words: unwinding::harmless(|| words::bounded(message, limits::DEAD_LETTER_WORDS_BYTES_MAX))
            .unwrap_or_default(),
        bytes: unwinding::harmless(|| encode(message)),
        error: error.clone(),
        at: hive.now(),
        cause: Provenance {
            chain: chain.number(index),
            hops,
            origin,
            sender,
            handler: hive.handler_of(sender, sent_by),
        },
        way: Way { app: app.index, name: remembered_name::<A, M>(), position },
    });
}

/// Where what a run emitted comes from, and whether its chain of causes is too long to go on.
fn source_of<A: Handlers + Handles<M>, M: Message>(
    app: &AppRuntime<A>,
    bee: Option<BeeId>,
    batch: &Batch<M>,
    (chance, chain): (u64, Chain),
    outputs: &Outputs,
    turn: &mut Turn,
) -> (Source, bool) {
    let source = Source {
        origin: batch.source.origin,
        sender: Address::App(app.index),
        bee,
        handler: Some(A::HANDLER as u16),
        numbers: Numbers::NONE,
        hops: batch.source.hops + 1,
        chain,
        // of messages that are emitted by one run all are told apart, by their places
        chance: chance.rotate_left(32).wrapping_add(STRIDE),
    };
    turn.count_emits(app.index, A::HANDLER, outputs);
    let cut = source.hops > limits::HOPS_PER_CAUSE_MAX;
    if cut {
        turn.hive.cycle(source.hops, A::NAME, M::NAME);
    }
    (source, cut)
}

/// Lets go what a run left: outputs in order, answers, and what is passed on.
pub(crate) fn release<A: Handlers + Handles<M>, M: Message>(
    app: &Arc<AppRuntime<A>>,
    bee: Option<BeeId>,
    batch: &Arc<Batch<M>>,
    position: Option<u16>,
    done: Executed<M>,
    lane: &mut SenderLane,
    turn: &mut Turn,
) {
    release_made_of(None, app, bee, batch, position, done, lane, turn)
}

/// As [`release`], of a stateless handler that ran for one message from outside: what it emitted is known by that.
#[allow(clippy::too_many_arguments)]
pub(crate) fn release_made_of<A: Handlers + Handles<M>, M: Message>(
    made_of: Option<Fact>,
    app: &Arc<AppRuntime<A>>,
    bee: Option<BeeId>,
    batch: &Arc<Batch<M>>,
    position: Option<u16>,
    mut done: Executed<M>,
    lane: &mut SenderLane,
    turn: &mut Turn,
) {
    if !turn.ctx().out.is_empty() {
        let mut outputs = turn.take_outputs();
        let (source, cut) = source_of(app, bee, batch, (done.chance, done.chain), &outputs, turn);
        if cut {
            outputs.discard()
        } else {
            match (&mut turn.gate, made_of) {
                (Some(gate), _) => outputs.freeze(&source, None, &mut gate.numbers, Admission::Inside),
                (None, Some(fact)) => {
                    let by = batch.admitted.as_ref().map_or(Admission::Inside, Admission::Part);
                    outputs.freeze(&source, None, &mut Numbers::parts(fact, A::HANDLER), by)
                }
                (None, None) => {
                    let mut numbers = Numbers::NONE;
                    outputs.freeze(&source, None, &mut numbers, Admission::Inside)
                }
            }
            outputs.route(app.index, lane, turn);
        }
        turn.give_back(outputs);
    }
    if !done.postponed.is_empty() {
        // has counted them, and may have nothing else
        turn.ctx().out.discard();
        for (index, at) in std::mem::take(&mut done.postponed) {
            if let Err(error) = postpone(app, batch, index, position, at, turn) {
                done.end_with(batch, index, error, position)
            }
        }
    }
    let_go(batch, position, done, lane, turn)
}

/// Lets go answers, and what is passed on.
pub(crate) fn let_go<M: Message>(
    batch: &Arc<Batch<M>>,
    position: Option<u16>,
    done: Executed<M>,
    lane: &mut SenderLane,
    turn: &mut Turn,
) {
    if watched::is_on() && !done.answers.is_empty() {
        watched::answered::<M>(done.chain, done.answers.len())
    }
    if batch.sink.is_some() && !(done.observed.is_empty() && done.answers.is_empty()) {
        match &mut turn.gate {
            Some(gate) => {
                let (batch, cause) = (batch.clone(), turn.cause.clone());
                gate.hold(move |_, _| report(&batch, done.observed, done.answers, &cause))
            }
            None => report(batch, done.observed, done.answers, &turn.cause),
        }
    }
    if let Some(position) = position
        && !done.passed.is_empty()
    {
        let kind: Arc<MessageType<M>> = turn.hive.types.kind::<M>();
        for index in done.passed {
            kind.pass_on(batch, index..index + 1, position, lane, turn)
        }
    }
}

/// Tells whoever waits.
fn report<M: Message>(
    batch: &Batch<M>,
    observed: Vec<(u32, Result<(), Error>)>,
    answers: AnswerRun<M>,
    cause: &Option<Arc<Cause>>,
) {
    let Some(sink) = &batch.sink else { return };
    for (index, result) in observed {
        sink.observed(batch, index, result)
    }
    if !answers.is_empty() {
        sink.answers(answers, cause);
    }
}
