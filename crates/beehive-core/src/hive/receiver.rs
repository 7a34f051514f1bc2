//! An app as a receiver of one type of message: map, route, run.

use crate::app::{Handlers, Handles};
use crate::cell::{BeeId, CellId, CellSet, Outcome};
use crate::hive::Address;
use crate::hive::batch::{AnswerRun, Batch, Source};
use crate::hive::bee::{Bee, Body, Delivery, Local};
use crate::hive::dead_letters::DeadLetter;
use crate::hive::journal::{Record, Work};
use crate::hive::lane::{Parked, SenderLane};
use crate::hive::outputs::Outputs;
use crate::hive::queen::Owner;
use crate::hive::runtime::AppRuntime;
use crate::hive::tail::{self, LetGo};
use crate::hive::turn::{Place, Turn};
use crate::hive::types::{MessageType, Receiver};
use crate::hive::{HiveInner, unwinding};
use crate::limits;
use crate::message::{Error, ErrorKind, Message};
use crate::seams::BoxFuture;
use crate::state::column::Columns;
use crate::state::guard::Held;
use crate::state::image::Op;
use crate::time::Time;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) struct AppReceiver<A: Handlers, M: Message> {
    app: Arc<AppRuntime<A>>,
    kind: std::marker::PhantomData<fn(M)>,
}

impl<A: Handles<M>, M: Message> AppReceiver<A, M> {
    pub(crate) fn new(app: Arc<AppRuntime<A>>) -> Arc<Self> {
        Arc::new(AppReceiver { app, kind: std::marker::PhantomData })
    }
}

impl<A: Handles<M>, M: Message> Receiver<M> for AppReceiver<A, M> {
    fn app(&self) -> u16 {
        self.app.index
    }

    fn answers(&self) -> bool {
        A::ANSWERS
    }

    fn is_journaled(&self) -> bool {
        self.app.link.is_some()
    }

    fn outcome(&self, message: &M, turn: &Turn) -> Outcome {
        let mut mapper = self.app.mapper(turn.hive.id);
        map::<A, M>(message, &mut mapper)
    }

    fn route(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        position: Option<u16>,
        lane: &mut SenderLane,
        turn: &mut Turn,
    ) {
        let app = &self.app;
        let mut mapper = app.mapper(batch.source.origin);
        // neighbours with the same outcome travel together
        let mut run = Neighbours { outcome: Outcome::Drop, cells: CellSet::new(), first: range.start };
        for index in range.clone() {
            let Some(message) = batch.messages.get(index as usize) else { break };
            mapper.clear();
            let outcome = map::<A, M>(message, &mut mapper);
            if outcome != run.outcome || mapper.cells() != &run.cells[..] {
                self.hand_over(batch, &run, index, position, lane, turn);
                run.first = index;
                run.outcome = outcome;
                run.cells.clear();
                run.cells.extend_from_slice(mapper.cells());
            }
        }
        self.hand_over(batch, &run, range.end, position, lane, turn);
    }
}

struct Neighbours {
    outcome: Outcome,
    cells: CellSet,
    first: u32,
}

/// Runs the derived map. A map that panics (an overflow, say, in a build that checks for it) leaves the message to the
/// handler, without cells: it will fail there, where the error has somebody to go to.
#[inline(always)]
pub(crate) fn map<A: Handles<M>, M: Message>(message: &M, mapper: &mut crate::mapper::Mapper) -> Outcome {
    match unwinding::catch(AssertUnwindSafe(|| A::map(message, mapper))) {
        Ok(()) => mapper.outcome(),
        Err(_) => {
            mapper.clear();
            Outcome::Stateless
        }
    }
}

impl<A: Handles<M>, M: Message> AppReceiver<A, M> {
    /// A run has ended before `end`.
    #[inline]
    fn hand_over(
        &self,
        batch: &Arc<Batch<M>>,
        run: &Neighbours,
        end: u32,
        position: Option<u16>,
        lane: &mut SenderLane,
        turn: &mut Turn,
    ) {
        let count = end - run.first;
        if count == 0 {
            return;
        }
        match run.outcome {
            Outcome::Drop => {
                self.app.handlers[A::HANDLER].dropped.fetch_add(count as u64, Ordering::Relaxed);
                if let Some(position) = position {
                    let kind = turn.hive.types.kind::<M>();
                    kind.pass_on(batch, run.first..end, position, lane, turn)
                }
            }
            Outcome::Stateless => self.run_stateless(batch, run.first..end, position, lane, turn),
            Outcome::Cells => {
                let delivery = Delivery {
                    run: run_delivery::<A, M>,
                    batch: batch.clone(),
                    cause: turn.cause.clone(),
                    first: run.first,
                    count,
                    position,
                    cells: run.cells.clone(),
                };
                deliver(&self.app, delivery, lane, turn)
            }
        }
    }

    /// Routes from a task of its own: the stack has been used up. The limit on hops still ends a cycle.
    #[cold]
    fn route_later(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        position: Option<u16>,
        lane: &SenderLane,
        turn: &mut Turn,
    ) {
        let (receiver, batch, hive) = (Self::new(self.app.clone()), batch.clone(), turn.hive.clone());
        let (mut lane, cause) = (lane.clone(), turn.cause.clone());
        let platform = hive.platform.clone();
        platform.spawn(Box::pin(async move {
            Turn::with(&hive, Place::Runners, |turn| {
                turn.cause = cause;
                receiver.route(&batch, range, position, &mut lane, turn)
            })
        }))
    }

    fn run_stateless(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        position: Option<u16>,
        lane: &mut SenderLane,
        turn: &mut Turn,
    ) {
        let app = &self.app;
        if turn.depth >= limits::STATELESS_DEPTH_MAX {
            return self.route_later(batch, range, position, lane, turn);
        }
        let kept = turn.local::<Local<A>>(app.index).stateless.take();
        let mut instance = kept.unwrap_or_else(|| Box::new(app.fresh()));
        turn.depth += 1;
        let run = Run { cells: &[], position, now: turn.now };
        let done = execute::<A, M>(app, &mut instance, batch, range, run, turn, None);
        turn.local::<Local<A>>(app.index).stateless = Some(instance);
        release(app, None, batch, position, done, lane, turn);
        turn.depth -= 1;
    }
}

/// Brings a run of messages to the bee that owns their cells, or lets it wait at its sender.
pub(crate) fn deliver<A: Handlers>(
    app: &Arc<AppRuntime<A>>,
    delivery: Delivery<A>,
    lane: &mut SenderLane,
    turn: &mut Turn,
) {
    let mut delivery = delivery;
    if !lane.blocks(app.index, &delivery.cells) {
        // a bee may retire between the look-up and the push; its cells then get another
        for _ in 0..3 {
            let owner = match app.owner(&delivery.cells) {
                Some(bee) => Owner::Bee(bee),
                None => app.claim(vec![delivery.cells.clone()], turn.hive).pop().unwrap_or(Owner::NotYet),
            };
            match owner {
                Owner::NotYet => break,
                Owner::Bee(bee) => {
                    let pushed = if turn.take_here() {
                        // what it causes has its own cause
                        let cause = turn.cause.take();
                        let pushed = bee.push_and_run(delivery, turn);
                        turn.cause = cause;
                        turn.put_here();
                        pushed
                    } else {
                        bee.push(delivery, turn)
                    };
                    match pushed {
                        Ok(()) => return,
                        Err(back) => delivery = back,
                    }
                }
            }
        }
    }
    lane.park(Box::new(ParkedDelivery { app: app.clone(), delivery }), turn.hive)
}

struct ParkedDelivery<A: Handlers> {
    app: Arc<AppRuntime<A>>,
    delivery: Delivery<A>,
}

impl<A: Handlers> Parked for ParkedDelivery<A> {
    fn app(&self) -> u16 {
        self.app.index
    }

    fn cells(&self) -> &[CellId] {
        &self.delivery.cells
    }

    fn try_deliver(self: Box<Self>, turn: &mut Turn) -> Result<(), Box<dyn Parked>> {
        let ParkedDelivery { app, delivery } = *self;
        match app.owner(&delivery.cells) {
            Some(bee) => bee
                .push(delivery, turn)
                .map_err(|delivery| Box::new(ParkedDelivery { app, delivery }) as Box<dyn Parked>),
            None => Err(Box::new(ParkedDelivery { app, delivery })),
        }
    }

    fn unite(&self, hive: &Arc<HiveInner>) -> BoxFuture<()> {
        self.app.unite(self.delivery.cells.clone(), hive)
    }
}

pub(crate) fn run_delivery<A: Handles<M>, M: Message>(
    bee: &Arc<Bee<A>>,
    body: &mut Body<A>,
    delivery: Delivery<A>,
    turn: &mut Turn,
) {
    if body.tail.is_some() {
        return run_journaled::<A, M>(bee, body, delivery, turn);
    }
    // the function that runs a delivery knows the type of its batch
    let Ok(batch) = (delivery.batch as Arc<dyn std::any::Any + Send + Sync>).downcast::<Batch<M>>() else {
        return;
    };
    let app = &bee.app;
    turn.cause = delivery.cause;
    let range = delivery.first..delivery.first + delivery.count;
    body.traffic.count(batch.source.bee, delivery.count);
    body.now = body.now.max(turn.now);
    let run = Run { cells: &delivery.cells, position: delivery.position, now: body.now };
    let done = execute::<A, M>(app, &mut body.app, &batch, range, run, turn, None);
    release(app, Some(bee.id), &batch, delivery.position, done, &mut body.lane, turn);
    turn.cause = None;
}

/// Runs what was not run before; holds back what that lets out until its record is committed.
fn run_journaled<A: Handles<M>, M: Message>(
    bee: &Arc<Bee<A>>,
    body: &mut Body<A>,
    delivery: Delivery<A>,
    turn: &mut Turn,
) {
    body.now = body.now.max(turn.now);
    let now = body.now;
    let (app, Some(tail)) = (&bee.app, &mut body.tail) else { return };
    let Ok(batch) = (delivery.batch.clone() as Arc<dyn std::any::Any + Send + Sync>).downcast::<Batch<M>>()
    else {
        return;
    };
    turn.cause = delivery.cause.clone();
    body.traffic.count(batch.source.bee, delivery.count);
    let run = Run { cells: &delivery.cells, position: delivery.position, now };
    let mut done = Executed { answers: AnswerRun::<M>::new(), passed: Vec::new(), observed: Vec::new() };
    let mut ops = Vec::new();
    let mut inputs = Vec::new();
    let range = delivery.first..delivery.first + delivery.count;
    for index in range {
        let fact = batch.source.fact(index, app.index);
        if fact.lane != 0 {
            if turn.hive.seen.contains(&fact) {
                continue;
            }
            inputs.push(fact)
        }
        let one = index..index + 1;
        let more = execute::<A, M>(app, &mut body.app, &batch, one, run, turn, Some(&mut ops));
        done.answers.extend(more.answers);
        done.passed.extend(more.passed);
        done.observed.extend(more.observed);
    }
    let mut outputs = turn.take_outputs();
    let (source, cut) = source_of(app, Some(bee.id), &batch, &outputs, turn);
    if cut {
        outputs.discard()
    }
    let mut next_seq = tail.next_seq;
    outputs.freeze(&source, None, &mut next_seq);
    let emits = outputs.emits(app.index, turn);
    let work = Work {
        app: app.index,
        bee: bee.id,
        cells: bee.cells(),
        inputs,
        ops: ops.clone(),
        emits,
        next_seq,
        now,
    };
    match tail.link().append(bee.clone(), &tail.numbers(), Record::Work(work)) {
        Some(number) => {
            tail.next_seq = next_seq;
            let position = delivery.position;
            let held: LetGo<A> = Box::new(move |app, lane, turn| {
                outputs.route(app.index, lane, turn);
                let_go(&batch, position, done, lane, turn)
            });
            tail.entries.push_back(tail::Executed { number, delivery, ops, held });
        }
        // executed on something that is dead by now; the bee is told so when it looks, which is next
        None => tail.again.push_front(delivery),
    }
    turn.cause = None;
}

/// How a run of transactions is run.
#[derive(Clone, Copy)]
struct Run<'a> {
    cells: &'a [CellId],
    position: Option<u16>,
    now: Time,
}

/// What a run of transactions left, besides its changes of state and its outputs.
pub(crate) struct Executed<M: Message> {
    answers: AnswerRun<M>,
    /// Messages that the handler could have answered and did not.
    passed: Vec<u32>,
    /// Of a handler that cannot answer, where somebody counts.
    observed: Vec<(u32, Result<(), Error>)>,
}

/// Runs a handler for each message of `range`: a transaction each. `redo` takes what they changed.
fn execute<A: Handles<M>, M: Message>(
    app: &AppRuntime<A>,
    state: &mut A,
    batch: &Arc<Batch<M>>,
    range: Range<u32>,
    run: Run,
    turn: &mut Turn,
    mut redo: Option<&mut Vec<Op>>,
) -> Executed<M> {
    let mut done = Executed { answers: AnswerRun::<M>::new(), passed: Vec::new(), observed: Vec::new() };
    if A::ANSWERS && batch.sink.is_some() {
        done.answers.reserve(range.len())
    }
    let count = range.len() as u32;
    turn.count(count);
    app.handlers[A::HANDLER].messages.fetch_add(count as u64, Ordering::Relaxed);
    let hive = turn.hive;
    let Run { cells, position, now } = run;
    let slot = turn.slot;
    hive.begin_run(slot, app.index, A::HANDLER);
    let ctx = turn.ctx();
    ctx.now = now;
    ctx.origin = batch.source.origin;
    ctx.sender = batch.source.sender;
    let sink = batch.sink.as_deref();
    let observed = position.is_none() && sink.is_some_and(|s| s.counts());
    let held = Held::strict(app.seed, app.whole, cells);
    for index in range {
        let Some(message) = batch.messages.get(index as usize) else { break };
        ctx.chance = chance(batch, index);
        let mark = ctx.out.mark();
        let result = unwinding::catch(AssertUnwindSafe(|| state.handle(message, ctx)));
        let overflow = ctx.out.take_overflow();
        let result = match (result, held.violation()) {
            (Ok(Ok(answer)), None) if overflow.is_none() => Ok(answer),
            (result, violation) => Err(failure(result, violation, overflow)),
        };
        match result {
            Ok(answer) => {
                if let Some(ops) = redo.as_deref_mut() {
                    state.redo(ops)
                }
                state.commit();
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
                state.rollback();
                ctx.out.rollback(mark);
                fail(app, hive, batch, index, &error);
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
    hive.end_run(slot);
    done
}

/// The same for the same message, whenever it is run.
#[inline(always)]
fn chance<M: Message>(batch: &Batch<M>, index: u32) -> u64 {
    batch.source.chance.wrapping_add((index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
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
        (Err(panic), None) => {
            let text = unwinding::text(&*panic);
            // what a panic carries may panic when it is dropped
            let _ = unwinding::catch(AssertUnwindSafe(|| drop(panic)));
            Error::of(ErrorKind::Panicked, text)
        }
        (Ok(Ok(_)), None) => Error::of(ErrorKind::Limit, overflow.unwrap_or("a limit was passed")),
    }
}

#[cold]
fn fail<A: Handles<M>, M: Message>(
    app: &AppRuntime<A>,
    hive: &HiveInner,
    batch: &Batch<M>,
    index: u32,
    error: &Error,
) {
    let counters = &app.handlers[A::HANDLER];
    let handler = A::REPORT.get(A::HANDLER).map_or("?", |r| r.name);
    if error.kind() == ErrorKind::Handler {
        counters.errors.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(app = A::NAME, handler, message = M::NAME, %error, "a handler answered with an error");
        return;
    }
    counters.panics.fetch_add(1, Ordering::Relaxed);
    hive.dead_letters.add(DeadLetter {
        app: A::NAME,
        handler,
        message: M::NAME,
        bytes: batch.messages.get(index as usize).map(crate::state::image::encode).unwrap_or_default(),
        error: error.clone(),
        at: hive.now(),
    });
}

/// Where what a run emitted comes from, and whether its chain of causes is too long to go on.
fn source_of<A: Handles<M>, M: Message>(
    app: &AppRuntime<A>,
    bee: Option<BeeId>,
    batch: &Batch<M>,
    outputs: &Outputs,
    turn: &mut Turn,
) -> (Source, bool) {
    let source = Source {
        origin: batch.source.origin,
        sender: Address::App(app.index),
        bee,
        lane: bee.filter(|_| app.link.is_some()).map_or(0, |bee| lane_of(app.index, bee)),
        first_seq: 0,
        hops: batch.source.hops + 1,
        chance: chance(batch, outputs.len()),
    };
    if outputs.is_empty() {
        return (source, false);
    }
    turn.count_emits(app.index, A::HANDLER, outputs);
    let cut = source.hops > limits::HOPS_PER_CAUSE_MAX;
    if cut {
        turn.hive.cycle(source.hops, A::NAME, M::NAME);
    }
    (source, cut)
}

/// The lane of a bee. Even, as those of IO bees are odd.
fn lane_of(app: u16, bee: BeeId) -> u64 {
    (bee.0 << 17) | ((app as u64) << 1)
}

/// Lets go what a run left: outputs in order, answers, and what is passed on.
fn release<A: Handles<M>, M: Message>(
    app: &Arc<AppRuntime<A>>,
    bee: Option<BeeId>,
    batch: &Arc<Batch<M>>,
    position: Option<u16>,
    done: Executed<M>,
    lane: &mut SenderLane,
    turn: &mut Turn,
) {
    if !turn.ctx().out.is_empty() {
        let mut outputs = turn.take_outputs();
        let (source, cut) = source_of(app, bee, batch, &outputs, turn);
        if cut {
            outputs.discard()
        } else {
            outputs.freeze(&source, None, &mut 0);
            outputs.route(app.index, lane, turn);
        }
        turn.give_back(outputs);
    }
    let_go(batch, position, done, lane, turn)
}

/// Lets go answers, and what is passed on.
fn let_go<M: Message>(
    batch: &Arc<Batch<M>>,
    position: Option<u16>,
    done: Executed<M>,
    lane: &mut SenderLane,
    turn: &mut Turn,
) {
    if let Some(sink) = &batch.sink {
        for (index, result) in done.observed {
            sink.observed(batch, index, result)
        }
        if !done.answers.is_empty() {
            sink.answers(done.answers, &turn.cause);
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
