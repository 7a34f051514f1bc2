//! The transactions of a run of messages. Their results are released elsewhere (`results`).

use crate::app::{Handlers, Handles};
use crate::cell::{BeeId, CellId};
use crate::context::Ctx;
use crate::failure::Failed;
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::body::Local;
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::outputs::{CHAIN_TOO_LONG, Savepoint};
use crate::hive::dispatch::probe::{Finished, Probe, Rerun, Transaction};
use crate::hive::dispatch::turn::Turn;
use crate::hive::dispatch::types::handler::{Handler, place};
use crate::hive::message::batch::{AnyBatch, Batch, Source};
use crate::hive::message::counters::HandlerCounters;
use crate::hive::message::trace;
use crate::hive::run::results::Executed;
use crate::hive::run::unrecorded::{may_move, moved, recorded};
use crate::message::{Error, ErrorKind, Message};
use crate::mutant::Mutant;
use crate::panics::Refusal;
use crate::state::column::{Columns, State};
use crate::state::guard::Held;
use crate::state::image::{Redo, decode, encode};
use crate::time::Time;
use crate::view::{Changes, Collected, Published};
use crate::{limits, panics, view};
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A run of transactions: the owner, the cells that handlers may touch, and the time.
pub(crate) struct Run<'a> {
    /// The app.
    pub(crate) app: &'a Arc<AppRuntime>,
    /// The running bee; `None` for a stateless handler.
    pub(crate) bee: Option<BeeId>,
    /// The cells named by the map. Handlers may touch no others.
    pub(crate) cells: &'a [CellId],
    /// The app's position in the answer chain; `None` if it is not in the chain.
    pub(crate) position: Option<u16>,
    /// The time that the handlers see.
    pub(crate) now: Time,
}

/// Error of a handler that postponed a tick.
const POSTPONED_TICK: &str = "a tick cannot be postponed: the next tick comes anyway";

/// Runs a handler for each message in `range`, in one transaction per message. If `redo` is `Some`, adds the
/// state changes to it, in the form used in log records. A record is applied as a whole, so it need not contain the changes
/// of a transaction that the next one overwrites.
pub(crate) fn execute<A: Handlers + Handles<M>, M: Message>(
    run: &Run,
    state: &mut A,
    (batch, range): (&Arc<Batch<M>>, Range<u32>),
    mut redo: Option<&mut Redo>,
    cx: &mut RouteContext,
) -> Executed<M> {
    let Run { app, bee, cells, position, now } = *run;
    debug_assert!(bee.is_none() || !cx.turn.only_begins(), "no bee runs on the task that emits or asks");

    let mut done = Executed::default();
    if A::ANSWERS && batch.sink.is_some() {
        done.answers.reserve(range.len())
    }

    let counters = &app.handlers[A::HANDLER];
    let mut collected = collect::<A>(app, redo.is_none(), now, cx.turn);

    let opened = app.views.as_ref().filter(|_| A::PUBLISHED != 0).map(|s| view::open(s, now));
    // publish the messages only if the handler has held a thread before, because this costs as much as a
    // short handler
    let shown = counters.has_held().then(|| batch.clone() as Arc<dyn AnyBatch>);
    let is_shown = shown.is_some();

    let start = (app.index, A::HANDLER, counters);
    let (slot, watched) = begin(start, &batch.source, &range, run, shown, cx.turn);

    let hive = cx.turn.hive;
    let ctx = cx.turn.ctx();
    let sink = batch.sink.as_deref();
    let observed = position.is_none() && sink.is_some_and(|s| s.counts());

    let held = Held::strict(app.seed, app.whole, cells);
    let mut answered = 0u32;

    let chances = Chances::of::<A, M>(app, cells);
    done.chance = chances.of_message(&batch.source, range.start);
    done.chain = batch.source.chain.after(range.start);

    let probe = hive.probe();
    let watched = watched || probe.is_some_and(|probe| probe.compares());
    let mut notes = Vec::new();
    // recompute the seed, because the handler has advanced the one in `ctx`
    let transaction = |index| Transaction {
        handler: Handler::of::<A, M>(app),
        bee,
        batch: &**batch,
        index,
        cells,
        chance: chances.of_message(&batch.source, index),
        now,
        is_passed_on: position.is_some_and(|position| position > 0),
        rerun: Rerun::of::<A, M>(),
    };

    let (messages, at) = (batch.all(), hive.run_at(slot));
    // where the changes of the last transaction begin that has changed anything
    let mut last_changes = None;
    for index in range {
        let Some(message) = messages.get(index as usize) else { break };
        if hive.is_over() && !hive.breaks(Mutant::RunsWhenOver) {
            // no handler begins once the hive is over
            break;
        }
        if redo.as_deref().is_some_and(is_too_large) {
            // the run fails, and its messages run again one by one
            break;
        }

        at.store(u64::from(index), Ordering::Relaxed);
        ctx.chance = chances.of_message(&batch.source, index);
        let mark = ctx.out.mark();

        let result = match watched {
            false => ended(state, message, ctx, &held),
            true => ended_watched(
                state,
                message,
                ctx,
                &held,
                || trace::is_on().then(|| Handler::of::<A, M>(app).span(&batch.source, index, cells)),
                probe,
            ),
        };

        let result = match ctx.postponed {
            Some(_) if Handler::of::<A, M>(app).link.is_some() => {
                result.and_then(|answer| kept(answer, can_be_postponed(message)))
            }
            _ => result,
        };

        let changes = redo.as_deref().map(Redo::end);
        let result = match redo.as_deref_mut() {
            Some(redo) => result.and_then(|answer| kept(answer, written_down(state, redo))),
            None if A::PUBLISHED != 0 => result.and_then(|answer| kept(answer, noted(state, &mut collected))),
            None => result,
        };

        match result {
            Ok(answer) => {
                if let Some(probe) = probe {
                    let uncommitted = &mut Finished { state, answer: &answer };
                    notes.extend(probe.committing(&transaction(index), uncommitted, ctx, mark))
                }
                if let (Some(redo), Some(changes)) = (redo.as_deref_mut(), changes)
                    && redo.end() != changes
                    && !last_changes.is_some_and(|last| redo.overwrite(last, changes))
                {
                    last_changes = Some(changes)
                }
                commit(state);

                if let Some(at) = ctx.postponed {
                    ctx.postponed = None;
                    done.postponed.push((index, at));
                    unwanted(answer);
                    continue;
                }

                answered += u32::from(answer.is_some());
                if A::ANSWERS && position.is_some() {
                    match answer {
                        Some(answer) if sink.is_some() => done.answers.push(Ok(answer)),
                        Some(answer) => unwanted(answer),
                        None => done.passed.push(index),
                    }
                } else if observed {
                    done.observed.push((index, Ok(())));
                }
            }
            Err(failed) => {
                if let Some(probe) = probe {
                    notes.extend(probe.failed(&transaction(index), &failed.in_words()))
                }

                roll_back(state, ctx, mark);
                let handler = Handler::of::<A, M>(app);
                match &*failed {
                    Failed::Handler(error) => handler.returned(error),
                    Failed::Platform(error) => {
                        if error.text() == CHAIN_TOO_LONG {
                            hive.cycle(batch.source.hops, app.name, M::NAME)
                        }
                        handler.fail(hive, &**batch, index, position, error)
                    }
                }

                let answers = A::ANSWERS && position.is_some();
                match (*failed).into_request_error() {
                    error if answers && sink.is_some() => done.answers.push(Err(error)),
                    error if observed && !answers => done.observed.push((index, Err(error))),
                    error => unwanted(error),
                }
            }
        }
    }

    drop(held);
    drop(opened);
    hive.end_run(slot);

    if A::PUBLISHED != 0 {
        cx.turn.local::<Local>(app.index).changes = collected.end()
    }
    if is_shown {
        hive.hide_run(slot)
    }
    if !notes.is_empty() {
        cx.note(notes)
    }
    if answered > 0 {
        counters.answered.fetch_add(u64::from(answered), Ordering::Relaxed);
    }
    done
}

/// Begins a run: counts it, publishes it in the thread's slot and prepares the context. Returns the slot, and
/// whether messages are traced.
fn begin(
    (app, handler, counters): (u16, usize, &HandlerCounters),
    source: &Source,
    range: &Range<u32>,
    run: &Run,
    shown: Option<Arc<dyn AnyBatch>>,
    turn: &mut Turn,
) -> (usize, bool) {
    let count = range.len() as u32;
    turn.count(count);
    counters.messages.fetch_add(u64::from(count), Ordering::Relaxed);

    let (hive, slot) = (turn.hive, turn.slot);
    hive.begin_run(slot, app, handler);
    hive.show_run(slot, run.cells.first().copied(), source.chain.number(range.start), shown);

    let ctx = turn.ctx();
    ctx.now = run.now;
    ctx.origin = source.origin;
    ctx.sender = source.sender;
    ctx.postponed = None;
    ctx.out.begin(source.hops);

    (slot, trace::is_on())
}

/// Checks whether the changes of a run exceed the size limit of a record.
pub(super) fn is_too_large(redo: &Redo) -> bool {
    redo.size() > limits::RECORD_BYTES_MAX
}

/// Commits the changes of a transaction.
fn commit<A: Columns>(state: &mut A) {
    panics::to_the_end(|| state.commit())
}

/// Drops a value that is no longer needed. This may run the app's code; its panics are caught, so the
/// transaction stays committed.
#[inline(always)]
pub(crate) fn unwanted<T>(what: T) {
    if std::mem::needs_drop::<T>() {
        panics::harmless(|| drop(what));
    }
}

/// Returns the answer. If the transaction failed after the handler had returned (`done`), drops the answer
/// and returns the error.
#[inline(always)]
fn kept<T, E>(answer: T, done: Result<(), Error>) -> Result<T, Box<Failed<E>>> {
    match done {
        Ok(()) => Ok(answer),
        Err(error) => {
            unwanted(answer);
            Err(Failed::platform(error))
        }
    }
}

/// Undoes a transaction's state changes, outputs and postponement.
#[cold]
pub(crate) fn roll_back<A: Columns>(state: &mut A, ctx: &mut Ctx, mark: Savepoint) {
    panics::to_the_end(|| state.rollback());
    ctx.out.rollback(mark);
    ctx.postponed = None
}

/// The source of random seeds for a run's messages. A message always gets the same seed, no matter when it
/// runs.
///
/// For a sweep, `Chances` contains the visited cell, and the seed depends on the cell. The index in the batch
/// cannot be used, because it depends on how many cells the bee owns. If the whole swept dictionary is a
/// single cell, the seed depends on the index, as for all other messages.
struct Chances(Option<CellId>);

impl Chances {
    #[inline(always)]
    fn of<A: Handlers + Handles<M>, M: Message>(app: &AppRuntime, cells: &[CellId]) -> Chances {
        Chances(match cells.first() {
            Some(own) if M::OF_A_SWEEP && app.swept(A::HANDLER).and_then(|d| app.whole_cell(d)).is_none() => {
                Some(*own)
            }
            _ => None,
        })
    }

    #[inline(always)]
    fn of_message(&self, source: &Source, index: u32) -> u64 {
        source.chance_of(self.0.map_or(index as u64, |own| own.0))
    }
}

/// Starts collecting a run's changes for the app's views. With a log, collects nothing, because the views are
/// updated when the record is committed.
#[inline(always)]
fn collect<'a, A: Published>(
    app: &'a AppRuntime,
    is_unlogged: bool,
    now: Time,
    turn: &mut Turn,
) -> Collected<'a> {
    match A::PUBLISHED != 0 && is_unlogged {
        true => {
            let room = std::mem::take(&mut turn.local::<Local>(app.index).changes);
            Collected::begin(app.views.as_ref(), room, now)
        }
        false => Collected::begin(None, Changes::default(), now),
    }
}

/// Adds a transaction's changes to the changes collected for the views. This clones rows; if the app's `Clone`
/// panics, the transaction fails.
fn noted<A: State>(state: &mut A, collected: &mut Collected) -> Result<(), Error> {
    panics::catch(AssertUnwindSafe(|| collected.note(state))).map_err(panicked)
}

/// The result of a transaction: the answer, if there is one, or why it failed.
pub(crate) type Ended<M> = Result<Option<<M as Message>::Reply>, Box<Failed<<M as Message>::Error>>>;

/// Runs a handler and evicts excess rows. The caller then commits or rolls back the transaction.
#[inline(always)]
pub(crate) fn ended<A: Handlers + Handles<M>, M: Message>(
    state: &mut A,
    message: &M,
    ctx: &mut Ctx,
    held: &Held,
) -> Ended<M> {
    let result = panics::catch(AssertUnwindSafe(|| {
        let handled = state.handle(message, ctx).map_err(Failed::handler);
        // inside the `catch`, because eviction clones rows, and `Clone` is the app's code
        if A::LIMITED && handled.is_ok() {
            state.evict().map_err(|text| Failed::platform(Error::of(ErrorKind::Limit, text)))?
        }
        handled
    }));

    if may_move::<A, M>() && !state.is_in_place() {
        ctx.out.take_overflow();
        return Err(moved(state, result, held, place::<A, M>));
    }

    let is_postponed_tick = M::IS_TICK && ctx.postponed.is_some();
    match result {
        Ok(Ok(answer)) if !(held.is_violated() || ctx.out.is_overflown() || is_postponed_tick) => Ok(answer),
        result => {
            let overflow = ctx.out.take_overflow();
            Err(failure(result, held.violation(), is_postponed_tick, overflow, place::<A, M>))
        }
    }
}

/// Like [`ended`], for a message that is traced (in `span`) or whose transaction a probe compares. It is a separate
/// function so that the loop over the messages contains neither its code nor its variables.
#[cold]
#[inline(never)]
fn ended_watched<A: Handlers + Handles<M>, M: Message, S>(
    state: &mut A,
    message: &M,
    ctx: &mut Ctx,
    held: &Held,
    span: impl FnOnce() -> S,
    probe: Option<&Arc<dyn Probe>>,
) -> Ended<M> {
    let before = probe.and_then(|probe| probe.beginning(state));
    let span = span();
    let result = ended(state, message, ctx, held);
    drop(span);

    match before.zip(probe) {
        None => result,
        Some((before, probe)) => recorded(&**probe, before, state, result, place::<A, M>),
    }
}

/// Appends a transaction's changes to `redo`. If a change cannot be encoded, the transaction fails, because
/// the log must contain every change.
fn written_down<A: Columns>(state: &mut A, redo: &mut Redo) -> Result<(), Error> {
    let before = redo.end();
    panics::catch(AssertUnwindSafe(|| state.redo(redo))).map_err(|panic| {
        redo.cut(before);
        panicked(panic)
    })
}

/// Checks that the log can hold a postponed message. If not, the postponing transaction must fail now,
/// because it could not be undone after its commit.
#[cold]
fn can_be_postponed<M: Message>(message: &M) -> Result<(), Error> {
    let again =
        panics::catch(AssertUnwindSafe(|| decode::<M>(M::NAME, &encode(message)))).map_err(panicked)?;
    again
        .map(unwanted)
        .map_err(|why| Error::of(ErrorKind::Limit, format!("the message cannot be postponed: {why}")))
}

/// Returns why a transaction failed. A violation of the map takes precedence over the handler's own error or
/// panic, which takes precedence over a postponed tick, which takes precedence over an exceeded limit.
#[cold]
fn failure<T, E>(
    result: Result<Result<T, Box<Failed<E>>>, panics::Caught>,
    violation: Option<crate::state::guard::Violation>,
    is_postponed_tick: bool,
    overflow: Option<&'static str>,
    place: fn() -> String,
) -> Box<Failed<E>> {
    match (result, violation) {
        // this applies even if the handler has caught the violation's panic and continued
        (result, Some(violation)) => {
            // dropping an answer or an error may itself panic
            unwanted(result);
            Failed::platform(Error::of(ErrorKind::Unmapped, format!("{violation}{}", place())))
        }
        (Ok(Err(failed)), None) => failed,
        (Err(panic), None) => Failed::platform(panicked(panic)),
        (Ok(Ok(answer)), None) => {
            unwanted(answer);
            Failed::platform(match is_postponed_tick {
                true => Error::new(POSTPONED_TICK),
                false => Error::of(ErrorKind::Limit, overflow.unwrap_or("a limit was exceeded")),
            })
        }
    }
}

/// Converts a transaction's panic into an error.
#[cold]
fn panicked(panic: panics::Caught) -> Error {
    match panic.downcast_ref::<Refusal>() {
        // the hive itself has ended the transaction by unwinding with this error
        Some(Refusal(error)) => error.clone(),
        None => Error::of(ErrorKind::Panicked, panics::text(&*panic)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hive::bee::tests::{Add, Counts, app};
    use crate::hive::dispatch::sender::queue::SenderQueue;
    use crate::hive::dispatch::turn::tests::in_a_turn;
    use crate::state::any;

    /// Runs a handler of `bee` in a routing-only turn.
    fn execute_while_routing(bee: Option<BeeId>) {
        let app = app();
        let source = Source::outside(crate::cell::HiveId(1), 3);
        let batch = Arc::new(Batch {
            messages: vec![Add(1)],
            passed: None,
            source,
            sink: None,
            admitted: None,
            arrival: None,
        });
        in_a_turn(|turn| {
            let run = Run { app: &app, bee, cells: &[], position: None, now: Time::ZERO };
            let mut queue = SenderQueue::default();
            let cx = &mut RouteContext::new(&mut queue, turn);
            execute(&run, any::of::<Counts>(&mut *app.fresh()), (&batch, 0..1), None, cx);
        })
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic = "no bee runs on the task that emits or asks")]
    fn no_bee_runs_on_a_task_that_only_routes() {
        execute_while_routing(Some(BeeId(1)))
    }

    #[test]
    fn a_handler_without_a_bee_may_run_on_a_task_that_only_routes() {
        execute_while_routing(None)
    }
}
