//! An app as a receiver of one type of message: map, route, run.

use crate::app::{Handlers, Handles};
use crate::cell::{CellSet, Outcome};
use crate::hive::admission::outside_lanes::Numbers;
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::bee::{Bee, Body, Delivery, Local, RunDelivery};
use crate::hive::bee::traffic::Peer;
use crate::hive::dispatch::effects::Gate;
use crate::hive::dispatch::handler::Handler;
use crate::hive::dispatch::message_types::Receiver;
use crate::hive::dispatch::probe;
use crate::hive::dispatch::sender_queue::SenderLane;
use crate::hive::dispatch::turn::{Stateless, Turn};
use crate::hive::log::journal::Emit;
use crate::hive::message::batch::{Batch, Messages, batch_of};
use crate::hive::message::trace;
use crate::hive::route::delivery::deliver;
use crate::hive::route::slow_path;
use crate::hive::route::slow_path::{Ahead, Onward, Routed, consume_gate};
use crate::hive::run::journaled::run_journaled;
use crate::hive::run::transaction::{Executed, Run, execute, let_go, release, release_made_of};
use crate::mapper::Mapper;
use crate::message::{Error, Message};
use crate::time::Time;
use crate::{limits, panics};
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) struct AppReceiver<A: Handlers, M: Message> {
    app: Arc<AppRuntime<A>>,
    kind: std::marker::PhantomData<fn(M)>,
}

impl<A: Handlers + Handles<M>, M: Message> AppReceiver<A, M> {
    pub(crate) fn new(app: Arc<AppRuntime<A>>) -> Arc<Self> {
        Arc::new(AppReceiver { app, kind: std::marker::PhantomData })
    }
}

impl<A: Handlers + Handles<M>, M: Message> Receiver<M> for AppReceiver<A, M> {
    fn app(&self) -> u16 {
        self.app.index
    }

    fn handler(&self) -> usize {
        A::HANDLER
    }

    fn answers(&self) -> bool {
        A::ANSWERS
    }

    fn emits(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        position: Option<u16>,
        at: Option<Time>,
    ) -> Vec<Emit> {
        match self.app.link {
            Some(_) => {
                let mapper = self.app.mapper(batch.source.origin);
                slow_path::emits(&OnItsWay { app: &self.app, batch, position }, mapper, range, at)
            }
            None => Vec::new(),
        }
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
        route::<A, M>(&self.app, batch, range, position, lane, turn)
    }
}

impl<A: Handlers + Handles<M>, M: Message> Onward for AppReceiver<A, M> {
    fn route_on(
        &self,
        batch: &Arc<dyn Messages>,
        range: Range<u32>,
        position: Option<u16>,
        lane: &mut SenderLane,
        turn: &mut Turn,
    ) {
        if let Some(batch) = batch_of::<M>(batch.clone()) {
            route::<A, M>(&self.app, &batch, range, position, lane, turn)
        }
    }
}

/// Answers messages of a type that it knows, which a log has, with an error because the app has as many cells as it may have.
type Refuse<A> =
    fn(&Arc<AppRuntime<A>>, Arc<dyn Messages>, Range<u32>, Option<u16>, &mut SenderLane, &mut Turn);

fn refuse<A: Handlers + Handles<M>, M: Message>(
    app: &Arc<AppRuntime<A>>,
    batch: Arc<dyn Messages>,
    range: Range<u32>,
    position: Option<u16>,
    lane: &mut SenderLane,
    turn: &mut Turn,
) {
    if let Some(batch) = &batch_of::<M>(batch) {
        slow_path::refuse::<A>(&OnItsWay { app, batch, position }, range, true, lane, turn)
    }
}

pub(crate) fn route<A: Handlers + Handles<M>, M: Message>(
    app: &Arc<AppRuntime<A>>,
    batch: &Arc<Batch<M>>,
    range: Range<u32>,
    position: Option<u16>,
    lane: &mut SenderLane,
    turn: &mut Turn,
) {
    let (way, code) =
        (&OnItsWay { app, batch, position }, Code { run: run_delivery::<A, M>, refuse: refuse::<A, M> });
    let mut mapper = app.mapper(batch.source.origin);
    // neighbours with the same outcome travel together
    let mut run = Neighbours { outcome: Outcome::Drop, cells: CellSet::new(), first: range.start };
    let mut ahead = Ahead::of(&range);
    for index in range.clone() {
        let Some(message) = batch.messages.get(index as usize) else { break };
        mapper.clear();
        let outcome = map::<A, M>(message, &mut mapper);
        if outcome != run.outcome || mapper.cells() != &run.cells[..] {
            hand_over(app, way, &code, &run, index, &mut ahead, lane, turn);
            run.first = index;
            run.outcome = outcome;
            run.cells.clear();
            run.cells.extend_from_slice(mapper.cells());
        }
    }
    hand_over(app, way, &code, &run, range.end, &mut ahead, lane, turn);
}

/// What knows the type of the messages.
struct Code<A: Handlers> {
    run: RunDelivery<A>,
    refuse: Refuse<A>,
}

/// Messages next to each other of which the map says the same.
struct Neighbours {
    outcome: Outcome,
    cells: CellSet,
    first: u32,
}

/// Runs the derived map. A map that panics (an overflow, say, in a build that checks for it) leaves the message to the
/// handler, without cells: it will fail there, where the error has somebody to go to.
#[inline(always)]
pub(crate) fn map<A: Handlers + Handles<M>, M: Message>(message: &M, mapper: &mut Mapper) -> Outcome {
    match panics::catch(AssertUnwindSafe(|| A::map(message, mapper))) {
        Ok(()) => mapper.outcome(),
        Err(_) => {
            mapper.clear();
            Outcome::Stateless
        }
    }
}

/// Messages on their way to an app.
struct OnItsWay<'a, A: Handlers, M: Message> {
    app: &'a Arc<AppRuntime<A>>,
    batch: &'a Arc<Batch<M>>,
    position: Option<u16>,
}

impl<A: Handlers + Handles<M>, M: Message> Routed for OnItsWay<'_, A, M> {
    fn handler(&self) -> Handler<'_> {
        Handler::of::<A, M>(self.app)
    }

    fn batch(&self) -> &dyn Messages {
        &**self.batch
    }

    fn share(&self) -> Arc<dyn Messages> {
        self.batch.clone()
    }

    fn position(&self) -> Option<u16> {
        self.position
    }

    fn onward(&self) -> Arc<dyn Onward> {
        AppReceiver::<A, M>::new(self.app.clone())
    }

    fn map(&self, index: u32, mapper: &mut Mapper) -> Option<Outcome> {
        self.batch.messages.get(index as usize).map(|message| map::<A, M>(message, mapper))
    }

    fn pass_on(&self, range: Range<u32>, lane: &mut SenderLane, turn: &mut Turn) {
        if let Some(position) = self.position {
            let kind = turn.hive.types.kind::<M>();
            kind.pass_on(self.batch, range, position, lane, turn)
        }
    }

    fn run_now(&self, range: Range<u32>, lane: &mut SenderLane, turn: &mut Turn) {
        let OnItsWay { app, batch, position } = *self;
        if range.len() > 1 && trace::is_on() {
            // what each message causes is told apart
            return range.for_each(|index| self.run_now(index..index + 1, lane, turn));
        }
        let (mut instance, settings) =
            turn.local::<Local<A>>(app.index).stateless.take().unwrap_or_else(|| app.stateless());
        let settings = app.up_to_date(&mut instance, settings);
        turn.depth += 1;
        let outside = batch.admitted.is_some() && turn.gate.is_none();
        let made_of = outside.then(|| batch.source.fact(range.start, app.index));
        let run = Run { cells: &[], position, now: turn.moment() };
        let done = execute::<A, M>(app, None, &mut instance, batch, range.clone(), run, turn, None);
        turn.local::<Local<A>>(app.index).stateless = Some((instance, settings));
        match made_of {
            // then a record says so, and what is made of it until then
            Some(fact) if done.puts_off() => {
                turn.gate = Some(Gate::new(Numbers::parts(fact, A::HANDLER)));
                release(app, None, batch, position, done, lane, turn);
                consume_gate(fact, A::HANDLER, batch.admitted.as_ref(), lane, turn)
            }
            None if turn.gate.is_some() => {
                let mut done = Some(done);
                let mut release = |lane: &mut SenderLane, turn: &mut Turn| {
                    if let Some(done) = done.take() {
                        release(app, None, batch, position, done, lane, turn)
                    }
                };
                slow_path::release_held(self, range, &mut release, lane, turn)
            }
            _ => release_made_of(made_of, app, None, batch, position, done, lane, turn),
        }
        turn.depth -= 1;
    }

    fn end_with(&self, index: u32, error: &Error, lane: &mut SenderLane, turn: &mut Turn) {
        end_with_error(&self.handler(), self.batch, index, self.position, error, lane, turn)
    }
}

/// A run of neighbours has ended before `end`.
#[allow(clippy::too_many_arguments)]
fn hand_over<A: Handlers>(
    app: &Arc<AppRuntime<A>>,
    way: &dyn Routed,
    code: &Code<A>,
    run: &Neighbours,
    end: u32,
    ahead: &mut Ahead,
    lane: &mut SenderLane,
    turn: &mut Turn,
) {
    let count = end - run.first;
    if count == 0 {
        return;
    }
    let (handler, range) = (way.handler(), run.first..end);
    turn.meets(handler.counters);
    let is_stateless = run.outcome == Outcome::Stateless;
    let leaves = match turn.stateless {
        Stateless::Here => false,
        // what the sender has left already comes first
        Stateless::InOrder => is_stateless || lane.has_errands(app.index),
        Stateless::Apart => is_stateless,
    };
    if leaves {
        return slow_path::leave(way, range, lane, turn);
    }
    // looked at in this order: what an errand puts off is put off before the errand is done
    if turn.is_put_off(lane) {
        return slow_path::put_off(way, range, lane, turn);
    }
    match run.outcome {
        Outcome::Drop => {
            handler.counters.dropped.fetch_add(count as u64, Ordering::Relaxed);
            way.pass_on(range, lane, turn)
        }
        Outcome::Stateless if turn.depth >= limits::STATELESS_DEPTH_MAX => {
            slow_path::put_off(way, range, lane, turn)
        }
        Outcome::Stateless if app.link.is_none() => way.run_now(range, lane, turn),
        Outcome::Stateless => slow_path::run_recorded(way, range, lane, turn),
        Outcome::Cells if !app.may_own(&run.cells) => {
            let batch = way.batch();
            let remembered = batch.admitted().is_none() && batch.source().numbers.lane != 0;
            slow_path::refuse::<A>(way, range, remembered, lane, turn)
        }
        Outcome::Cells => {
            if turn.hive.probe().is_some() {
                probe::handed_over(&handler, way.batch(), range, turn)
            }
            let delivery = Delivery {
                run: code.run,
                batch: way.share(),
                cause: turn.cause.clone(),
                first: run.first,
                count,
                position: way.position(),
                cells: run.cells.clone(),
            };
            if turn.gate.is_some() {
                return hold(app, way, delivery, code.refuse, turn);
            }
            if app.link.is_some()
                && let Some(admitted) = way.batch().admitted()
            {
                admitted.open()
            }
            let origin = way.batch().source().origin;
            let mut missing = |cells: &CellSet| ahead.missing(app, way, origin, run.first, cells);
            if deliver(app, delivery, lane, turn, &mut missing) {
                handler.counters.waited.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Delivers when the record is committed that says so. Until then nothing is open: a record that is refused is made again,
/// and what it held is thrown away.
fn hold<A: Handlers>(
    app: &Arc<AppRuntime<A>>,
    way: &dyn Routed,
    delivery: Delivery<A>,
    refuse: Refuse<A>,
    turn: &mut Turn,
) {
    let range = delivery.first..delivery.first + delivery.count;
    let emits = match app.link {
        Some(_) => slow_path::emits(way, app.mapper(way.batch().source().origin), range.clone(), None),
        None => Vec::new(),
    };
    let (app, batch) = (app.clone(), way.share());
    let Some(gate) = &mut turn.gate else { return };
    gate.emits.extend(emits);
    gate.hold(move |lane, turn| {
        // others may have taken the last cells meanwhile
        if !app.may_own(&delivery.cells) {
            return refuse(&app, batch, range, delivery.position, lane, turn);
        }
        if app.link.is_some()
            && let Some(admitted) = batch.admitted()
        {
            admitted.open()
        }
        deliver(&app, delivery, lane, turn, &mut |cells| Some(vec![cells.clone()]));
    })
}

/// A message ends with an error that is not its handler's.
pub(crate) fn end_with_error<M: Message>(
    handler: &Handler,
    batch: &Arc<Batch<M>>,
    index: u32,
    position: Option<u16>,
    error: &Error,
    lane: &mut SenderLane,
    turn: &mut Turn,
) {
    handler.fail(turn.hive, &**batch, index, position, error);
    if turn.hive.probe().is_some() {
        probe::ended_unhandled(handler, &**batch, index, turn)
    }
    let mut done = Executed::default();
    done.end_with(batch, index, error.clone(), position);
    let_go(batch, position, done, lane, turn)
}

pub(crate) fn run_delivery<A: Handlers + Handles<M>, M: Message>(
    bee: &Arc<Bee<A>>,
    body: &mut Body<A>,
    delivery: Delivery<A>,
    turn: &mut Turn,
) {
    if body.tail.is_some() {
        return run_journaled::<A, M>(bee, body, delivery, turn);
    }
    let Delivery { batch, cause, first, count, position, cells, .. } = delivery;
    // the function that runs a delivery knows the type of its batch
    let Some(batch) = batch_of::<M>(batch) else { return };
    turn.cause = cause;
    let began = body.traffic.count(Peer::of(&batch.source), count).then(|| turn.hive.now());
    body.now = body.now.max(turn.moment());
    let run = Run { cells: &cells, position, now: body.now };
    // what each message causes is told apart where somebody watches
    let step = if trace::is_on() { 1 } else { count };
    let end = first + count;
    let mut next = first;
    while next < end {
        let range = next..next + step;
        next += step;
        let done = execute::<A, M>(&bee.app, Some(bee.id), &mut body.app, &batch, range, run, turn, None);
        if next >= end
            && let Some(began) = began
        {
            body.traffic.timed(count, turn.hive.now().since(began))
        }
        release(&bee.app, Some(bee.id), &batch, position, done, &mut body.lane, turn)
    }
    turn.cause = None;
}
