//! An app as a receiver of one type of message: map, route, run.

use crate::app::{Handlers, Handles};
use crate::cell::{CellSet, Outcome};
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::body::Local;
use crate::hive::bee::delivery::{Delivery, RunDelivery};
use crate::hive::consensus::journal::{Emit, LaneId};
use crate::hive::dispatch::deferred::Onward;
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::handler::{Handler, map};
use crate::hive::dispatch::message_types::Receiver;
use crate::hive::dispatch::probe;
use crate::hive::dispatch::turn::{Stateless, Turn};
use crate::hive::message::batch::{Batch, Messages, batch_of};
use crate::hive::message::trace;
use crate::hive::route::delivery::deliver;
use crate::hive::route::routed;
use crate::hive::route::routed::{Ahead, Routed, consume_held};
use crate::hive::run::delivery::run_delivery;
use crate::hive::run::transaction::{Executed, Run, end_with_error, execute, release, release_made_of};
use crate::limits;
use crate::mapper::Mapper;
use crate::message::{Error, Message};
use crate::time::Time;
use std::ops::Range;
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
                routed::emits(&OnItsWay { app: &self.app, batch, position }, mapper, range, at)
            }
            None => Vec::new(),
        }
    }

    fn outcome(&self, message: &M, turn: &Turn) -> Outcome {
        let mut mapper = self.app.mapper(turn.hive.id);
        map::<A, M>(message, &mut mapper)
    }

    fn route(&self, batch: &Arc<Batch<M>>, range: Range<u32>, position: Option<u16>, cx: &mut RouteContext) {
        route::<A, M>(&self.app, batch, range, position, cx)
    }
}

impl<A: Handlers + Handles<M>, M: Message> Onward for AppReceiver<A, M> {
    fn route_on(
        &self,
        batch: &Arc<dyn Messages>,
        range: Range<u32>,
        position: Option<u16>,
        cx: &mut RouteContext,
    ) {
        if let Some(batch) = batch_of::<M>(batch.clone()) {
            route::<A, M>(&self.app, &batch, range, position, cx)
        }
    }
}

/// Answers messages of a type that it knows, which a log has, with an error because the app has as many cells as it may have.
type Refuse<A> = fn(&Arc<AppRuntime<A>>, Arc<dyn Messages>, Range<u32>, Option<u16>, &mut RouteContext);

fn refuse<A: Handlers + Handles<M>, M: Message>(
    app: &Arc<AppRuntime<A>>,
    batch: Arc<dyn Messages>,
    range: Range<u32>,
    position: Option<u16>,
    cx: &mut RouteContext,
) {
    if let Some(batch) = &batch_of::<M>(batch) {
        routed::refuse::<A>(&OnItsWay { app, batch, position }, range, true, cx)
    }
}

pub(crate) fn route<A: Handlers + Handles<M>, M: Message>(
    app: &Arc<AppRuntime<A>>,
    batch: &Arc<Batch<M>>,
    range: Range<u32>,
    position: Option<u16>,
    cx: &mut RouteContext,
) {
    let way = &OnItsWay { app, batch, position };
    let code = Code { run: run_delivery::<A, M>, refuse: refuse::<A, M> };
    let mut handing = Handing { app, way, code, ahead: Ahead::of(&range) };
    let mut mapper = app.mapper(batch.source.origin);
    // neighbours with the same outcome travel together
    let mut run = Neighbours { outcome: Outcome::Drop, cells: CellSet::new(), first: range.start };
    for index in range.clone() {
        let Some(message) = batch.messages.get(index as usize) else { break };
        mapper.clear();
        let outcome = map::<A, M>(message, &mut mapper);
        if outcome != run.outcome || mapper.cells() != &run.cells[..] {
            handing.over(&run, index, cx);
            run.first = index;
            run.outcome = outcome;
            run.cells.clear();
            run.cells.extend_from_slice(mapper.cells());
        }
    }
    handing.over(&run, range.end, cx);
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

    fn pass_on(&self, range: Range<u32>, cx: &mut RouteContext) {
        if let Some(position) = self.position {
            let kind = cx.turn.hive.types.kind::<M>();
            kind.pass_on(self.batch, range, position, cx)
        }
    }

    fn run_now(&self, range: Range<u32>, cx: &mut RouteContext) {
        let OnItsWay { app, batch, position } = *self;
        if range.len() > 1 && trace::is_on() {
            // what each message causes is told apart
            return range.for_each(|index| self.run_now(index..index + 1, cx));
        }
        let (mut instance, settings) =
            cx.turn.local::<Local<A>>(app.index).stateless.take().unwrap_or_else(|| app.stateless());
        let settings = app.up_to_date(&mut instance, settings);
        cx.turn.depth += 1;
        let outside = batch.admitted.is_some() && !cx.is_held();
        let made_of = outside.then(|| batch.source.fact(range.start, app.index));
        let run = Run { app, bee: None, cells: &[], position, now: cx.turn.moment() };
        let done = execute::<A, M>(&run, &mut instance, (batch, range.clone()), None, cx);
        cx.turn.local::<Local<A>>(app.index).stateless = Some((instance, settings));
        let mut done = Some(done);
        match made_of {
            // then a record says so, and what is made of it until then
            Some(fact) if done.as_ref().is_some_and(Executed::postpones) => {
                let by = (fact, A::HANDLER, batch.admitted.as_ref());
                consume_held(by, cx, &mut |cx| {
                    if let Some(done) = done.take() {
                        release(&run, batch, done, cx)
                    }
                })
            }
            None if cx.is_held() => {
                let mut release = |cx: &mut RouteContext| {
                    if let Some(done) = done.take() {
                        release(&run, batch, done, cx)
                    }
                };
                routed::release_held(self, range, &mut release, cx)
            }
            _ => {
                if let Some(done) = done.take() {
                    release_made_of(&run, made_of, batch, done, cx)
                }
            }
        }
        cx.turn.depth -= 1;
    }

    fn end_with(&self, index: u32, error: &Error, cx: &mut RouteContext) {
        end_with_error(&self.handler(), self.batch, index, self.position, error, cx)
    }
}

/// Messages of one batch that are being handed over to an app.
struct Handing<'a, A: Handlers> {
    app: &'a Arc<AppRuntime<A>>,
    way: &'a dyn Routed,
    code: Code<A>,
    ahead: Ahead,
}

impl<A: Handlers> Handing<'_, A> {
    /// Hands over a run of neighbours that has ended before `end`.
    #[inline]
    fn over(&mut self, run: &Neighbours, end: u32, cx: &mut RouteContext) {
        if end > run.first {
            hand_over(self, run, end - run.first, cx)
        }
    }
}

fn hand_over<A: Handlers>(handing: &mut Handing<A>, run: &Neighbours, count: u32, cx: &mut RouteContext) {
    let Handing { app, way, code, ahead } = handing;
    let (app, way, end) = (*app, *way, run.first + count);
    let (handler, range) = (way.handler(), run.first..end);
    cx.turn.meets(handler.counters);
    let is_stateless = run.outcome == Outcome::Stateless;
    let leaves = match cx.turn.stateless {
        Stateless::Here => false,
        // what the sender has left already comes first
        Stateless::InOrder => is_stateless || cx.queue.has_deferred(app.index),
        Stateless::Apart => is_stateless,
    };
    if leaves {
        return routed::leave(way, range, cx);
    }
    // looked at in this order: what an deferred puts off is put off before the deferred is done
    if cx.must_defer() {
        return routed::defer(way, range, cx);
    }
    match run.outcome {
        Outcome::Drop => {
            handler.counters.dropped.fetch_add(count as u64, Ordering::Relaxed);
            way.pass_on(range, cx)
        }
        Outcome::Stateless if cx.turn.depth >= limits::STATELESS_DEPTH_MAX => routed::defer(way, range, cx),
        Outcome::Stateless if app.link.is_none() => way.run_now(range, cx),
        Outcome::Stateless => routed::run_recorded(way, range, cx),
        Outcome::Cells if !app.may_own(&run.cells) => {
            let batch = way.batch();
            let remembered = batch.admitted().is_none() && batch.source().numbers.lane != LaneId::NONE;
            routed::refuse::<A>(way, range, remembered, cx)
        }
        Outcome::Cells => {
            if cx.turn.hive.probe().is_some() {
                probe::handed_over(&handler, way.batch(), range, cx)
            }
            let delivery = Delivery {
                run: code.run,
                batch: way.share(),
                cause: cx.turn.cause.clone(),
                first: run.first,
                count,
                position: way.position(),
                cells: run.cells.clone(),
            };
            if cx.is_held() {
                return hold(app, way, delivery, code.refuse, cx);
            }
            if app.link.is_some()
                && let Some(admitted) = way.batch().admitted()
            {
                admitted.open()
            }
            let origin = way.batch().source().origin;
            let mut missing = |cells: &CellSet| ahead.missing(app, way, origin, run.first, cells);
            if deliver(app, delivery, cx, &mut missing) {
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
    cx: &mut RouteContext,
) {
    let range = delivery.first..delivery.first + delivery.count;
    let emits = match app.link {
        Some(_) => routed::emits(way, app.mapper(way.batch().source().origin), range.clone(), None),
        None => Vec::new(),
    };
    let (app, batch) = (app.clone(), way.share());
    let Some(effects) = cx.held() else { return };
    effects.emits.extend(emits);
    effects.hold(move |cx| {
        // others may have taken the last cells meanwhile
        if !app.may_own(&delivery.cells) {
            return refuse(&app, batch, range, delivery.position, cx);
        }
        if app.link.is_some()
            && let Some(admitted) = batch.admitted()
        {
            admitted.open()
        }
        deliver(&app, delivery, cx, &mut |cells| Some(vec![cells.clone()]));
    })
}
