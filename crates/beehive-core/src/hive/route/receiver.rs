//! An app as the receiver of one message type. It maps the messages, and then routes or runs them.

use crate::app::{Handlers, Handles};
use crate::cell::{CellSet, Outcome};
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::body::Local;
use crate::hive::bee::delivery::{Delivery, RunDelivery};
use crate::hive::consensus::journal::{Emit, LaneId};
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::probe;
use crate::hive::dispatch::sender::deferred::Onward;
use crate::hive::dispatch::turn::{Stateless, Turn};
use crate::hive::dispatch::types::handler::{Handler, map};
use crate::hive::dispatch::types::message_types::Receiver;
use crate::hive::message::batch::{Batch, Messages, batch_of};
use crate::hive::message::payloads::Payloads;
use crate::hive::message::trace;
use crate::hive::route::delivery::deliver;
use crate::hive::route::routed;
use crate::hive::route::routed::{Ahead, Routed, consume_held};
use crate::hive::run::delivery::run_delivery;
use crate::hive::run::dropped::dropped_wrongly;
use crate::hive::run::results::{Executed, end_with_error, release, release_made_of};
use crate::hive::run::transaction::{Run, execute};
use crate::limits;
use crate::mapper::Mapper;
use crate::message::{Error, ErrorKind, Message};
use crate::state::any;
use crate::time::Time;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The receiver of messages of type `M` in an app.
pub(crate) struct AppReceiver<A, M> {
    app: Arc<AppRuntime>,
    kind: PhantomData<fn(A, M)>,
}

impl<A: Handlers + Handles<M>, M: Message> AppReceiver<A, M> {
    pub(crate) fn new(app: Arc<AppRuntime>) -> Arc<Self> {
        Arc::new(AppReceiver { app, kind: PhantomData })
    }
}

impl<A: Handlers + Handles<M>, M: Message> Receiver<M> for AppReceiver<A, M> {
    fn app(&self) -> u16 {
        self.app.index
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
        payloads: &mut Payloads,
    ) -> Vec<Emit> {
        match self.app.link {
            Some(_) => {
                let mapper = self.app.mapper(batch.source.origin);
                routed::emits(&OnItsWay::<A, M>::new(&self.app, batch, position), mapper, range, at, payloads)
            }
            None => Vec::new(),
        }
    }

    fn drops(&self, batch: &Batch<M>, index: u32, turn: &mut Turn) -> bool {
        let Some(message) = batch.get(index) else { return true };
        let outcome = map::<A, M>(message, &mut self.app.mapper(turn.hive.id));
        if outcome != Outcome::Drop {
            return false;
        }
        let id = batch.source.message_id(index, self.app.index);
        let is_quarantined = self.app.link.as_ref().is_some_and(|link| link.quarantine.concerns(id, id));
        // if the map is wrong, `drop_all` detects this as well, and the message fails
        turn.hive.verify_maps == 0
            || is_quarantined
            || dropped_wrongly::<A, M>(&self.app, batch, index, turn).is_none()
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

/// A function that refuses messages of one type because the app has reached its cell limit: each fails with an
/// error. Called only for logged messages.
type Refuse = fn(&Arc<AppRuntime>, Arc<dyn Messages>, Range<u32>, Option<u16>, &mut RouteContext);

fn refuse<A: Handlers + Handles<M>, M: Message>(
    app: &Arc<AppRuntime>,
    batch: Arc<dyn Messages>,
    range: Range<u32>,
    position: Option<u16>,
    cx: &mut RouteContext,
) {
    if let Some(batch) = &batch_of::<M>(batch) {
        routed::refuse(&OnItsWay::<A, M>::new(app, batch, position), range, true, &cells_used_up(app), cx)
    }
}

/// Returns the error for a message that would make the app exceed its cell limit.
#[cold]
fn cells_used_up(app: &AppRuntime) -> Error {
    let max = app.options.cells.unwrap_or_default();
    let text = format!("cell limit reached: the app may have {max} cells (`#[app(cells = {max})]`)");
    Error::of(ErrorKind::Limit, text)
}

/// Checks whether the messages are logged. If so, a record must mark them as consumed.
fn is_remembered(batch: &dyn Messages) -> bool {
    batch.admitted().is_none() && batch.source().numbers.lane != LaneId::NONE
}

/// Maps the messages in `range` one by one and hands over each run of adjacent messages with the same outcome
/// and cells. `position` is the app's position in the answer chain, if it is in the chain.
pub(crate) fn route<A: Handlers + Handles<M>, M: Message>(
    app: &Arc<AppRuntime>,
    batch: &Arc<Batch<M>>,
    range: Range<u32>,
    position: Option<u16>,
    cx: &mut RouteContext,
) {
    let way = &OnItsWay::<A, M>::new(app, batch, position);
    let code = Code { run: run_delivery::<A, M>, refuse: refuse::<A, M> };
    let mut handing = Handing { app, way, code, ahead: Ahead::of(&range) };
    let mut mapper = app.mapper(batch.source.origin);
    // adjacent messages with the same outcome and cells become one delivery
    let mut run = Neighbors { outcome: Outcome::Drop, cells: CellSet::new(), first: range.start };

    let messages = batch.all();
    for index in range.clone() {
        let Some(message) = messages.get(index as usize) else { break };
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

/// Functions compiled for each message type. The code that calls them is compiled only once per app.
struct Code {
    /// Runs a delivery in its bee.
    run: RunDelivery,
    /// Refuses the messages: each fails with an error.
    refuse: Refuse,
}

/// Adjacent messages in a batch with the same outcome and cells.
struct Neighbors {
    outcome: Outcome,
    /// The cells that the map derived.
    cells: CellSet,
    /// The index of the first message.
    first: u32,
}

/// Messages being routed to an app.
struct OnItsWay<'a, A, M: Message> {
    kind: PhantomData<fn(A)>,
    app: &'a Arc<AppRuntime>,
    batch: &'a Arc<Batch<M>>,
    /// The app's position in the answer chain; `None` if it is not in the chain.
    position: Option<u16>,
}

impl<'a, A, M: Message> OnItsWay<'a, A, M> {
    fn new(app: &'a Arc<AppRuntime>, batch: &'a Arc<Batch<M>>, position: Option<u16>) -> Self {
        OnItsWay { kind: PhantomData, app, batch, position }
    }
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
        self.batch.get(index).map(|message| map::<A, M>(message, mapper))
    }

    fn is_counted(&self) -> bool {
        self.position.is_none() && self.batch.sink.as_ref().is_some_and(|sink| sink.counts())
    }

    fn dropped_wrongly(&self, index: u32, turn: &mut Turn) -> Option<Error> {
        dropped_wrongly::<A, M>(self.app, self.batch, index, turn)
    }

    fn pass_on(&self, range: Range<u32>, cx: &mut RouteContext) {
        if let Some(position) = self.position {
            let kind = cx.turn.hive.types.kind::<M>();
            kind.pass_on(self.batch, range, position, cx)
        }
    }

    fn pass_on_handled(&self, index: u32, cx: &mut RouteContext) {
        if let Some(position) = self.position {
            let kind = cx.turn.hive.types.kind::<M>();
            kind.pass_on_handled(self.batch, index, position, cx)
        }
    }

    fn run_now(&self, range: Range<u32>, cx: &mut RouteContext) {
        let OnItsWay { app, batch, position, .. } = *self;
        if range.len() > 1 && trace::is_on() {
            // while tracing is on, each run has only one message, so each causal chain is exact
            return range.for_each(|index| self.run_now(index..index + 1, cx));
        }

        let (mut instance, settings) =
            cx.turn.local::<Local>(app.index).stateless.take().unwrap_or_else(|| app.stateless());
        let settings = app.up_to_date(&mut *instance, settings);

        cx.turn.depth += 1;
        let outside = batch.admitted.is_some() && !cx.is_held();
        let id = Handler::of::<A, M>(app).id();
        let made_of = outside.then(|| (batch.source.message_id(range.start, app.index), id));
        let run = Run { app, bee: None, cells: &[], position, now: cx.turn.moment() };
        let done = execute::<A, M>(&run, any::of(&mut *instance), (batch, range.clone()), None, cx);
        cx.turn.local::<Local>(app.index).stateless = Some((instance, settings));

        let mut done = Some(done);
        match made_of {
            // a record postpones the message from outside. It also contains the messages emitted by the
            // handler
            Some((message_id, _)) if app.link.is_some() && done.as_ref().is_some_and(Executed::postpones) => {
                let by = (message_id, id, batch.admitted.as_ref());
                consume_held(by, cx, &mut |cx| {
                    if let Some(done) = done.take() {
                        release::<A, M>(&run, batch, done, cx)
                    }
                })
            }
            None if cx.is_held() => {
                let mut release = |cx: &mut RouteContext| {
                    if let Some(done) = done.take() {
                        release::<A, M>(&run, batch, done, cx)
                    }
                };
                routed::release_held(self, range, &mut release, cx)
            }
            _ => {
                if let Some(done) = done.take() {
                    release_made_of::<A, M>(&run, made_of, batch, done, cx)
                }
            }
        }

        cx.turn.depth -= 1;
    }

    fn end_with(&self, index: u32, error: &Error, cx: &mut RouteContext) {
        end_with_error(&self.handler(), self.batch, index, self.position, error, cx)
    }
}

/// The hand-over of one batch to an app.
struct Handing<'a> {
    app: &'a Arc<AppRuntime>,
    way: &'a dyn Routed,
    code: Code,
    /// The progress of the search for cells without an owner.
    ahead: Ahead,
}

impl Handing<'_> {
    /// Hands over the adjacent messages from `run.first` up to, but not including, `end`. Does nothing if
    /// there are none.
    #[inline]
    fn over(&mut self, run: &Neighbors, end: u32, cx: &mut RouteContext) {
        if end > run.first {
            hand_over(self, run, end - run.first, cx)
        }
    }
}

/// Hands over `count` adjacent messages: drops them, runs them here, leaves them to another thread, or
/// delivers them to the owner of their cells.
fn hand_over(handing: &mut Handing, run: &Neighbors, count: u32, cx: &mut RouteContext) {
    let Handing { app, way, code, ahead } = handing;
    let (app, way, end) = (*app, *way, run.first + count);
    let (handler, range) = (way.handler(), run.first..end);
    cx.turn.meets(handler.counters);

    let is_stateless = run.outcome == Outcome::Stateless;
    let leaves = match cx.turn.stateless {
        Stateless::Here => false,
        // messages to cells must not overtake work that the sender has left to other threads
        Stateless::InOrder => is_stateless || cx.queue.has_deferred(app.index),
        Stateless::Apart => is_stateless,
        // a handler that gets a message which another app has passed on is part of the record of that app
        Stateless::AfterOthers => is_stateless && !cx.is_held(),
    };
    if leaves {
        return routed::leave(way, range, cx);
    }
    // This thread must read `has_deferred` before `must_defer`. Work that the sender has left to another
    // thread may nest too deeply there. That thread then opens the queue for deep stacks before it marks the
    // app's queue as done. Therefore, if this thread sees the app's queue done, it also sees the queue for
    // deep stacks open. With the reads in the opposite order, both changes could happen between them, and
    // this message would overtake the deferred work.
    if cx.must_defer() {
        return routed::defer(way, range, cx);
    }

    match run.outcome {
        Outcome::Drop if way.batch().source().is_logged => routed::drop_logged(way, range, cx),
        Outcome::Drop => routed::drop_all(way, range, cx),
        Outcome::Refused(limit) => {
            let error = Error::of(ErrorKind::Limit, limit.to_string());
            routed::refuse(way, range, is_remembered(way.batch()), &error, cx)
        }
        Outcome::Stateless if cx.turn.depth >= limits::STATELESS_DEPTH_MAX => routed::defer(way, range, cx),
        Outcome::Stateless if app.link.is_none() => way.run_now(range, cx),
        Outcome::Stateless => routed::run_recorded(way, range, cx),
        Outcome::Cells if !app.may_own(&run.cells) => {
            routed::refuse(way, range, is_remembered(way.batch()), &cells_used_up(app), cx)
        }
        Outcome::Cells => {
            if cx.turn.hive.probe().is_some() {
                probe::handed_over(&handler, way.batch(), range, cx)
            }

            let delivery = Delivery {
                run: code.run,
                batch: way.share(),
                office: cx.turn.office,
                back: None,
                cause: cx.turn.cause.clone(),
                first: run.first,
                count,
                position: way.position(),
                cells: run.cells.clone(),
            };

            if cx.is_held() {
                return hold(app, way, delivery, code.refuse, cx);
            }
            if let Some(admitted) = way.batch().admitted() {
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

/// Holds a delivery until the record containing it is committed.
///
/// The delivery does not count as open before that. If the record is refused, its held effects are dropped,
/// and the run is executed again, producing new effects.
fn hold(app: &Arc<AppRuntime>, way: &dyn Routed, delivery: Delivery, refuse: Refuse, cx: &mut RouteContext) {
    let range = delivery.first..delivery.first + delivery.count;
    let Some(effects) = cx.held() else { return };
    if app.link.is_some() {
        let mapper = app.mapper(way.batch().source().origin);
        effects.emits.extend(routed::emits(way, mapper, range.clone(), None, &mut effects.payloads))
    }

    let (app, batch, mut delivery) = (app.clone(), way.share(), delivery);
    effects.hold(move |cx| {
        delivery.office = cx.turn.office;
        // `hand_over` has checked the limit, but before the record was committed, other senders may have
        // claimed the last cells
        if !app.may_own(&delivery.cells) {
            return refuse(&app, batch, range, delivery.position, cx);
        }
        if let Some(admitted) = batch.admitted() {
            admitted.open()
        }
        deliver(&app, delivery, cx, &mut |cells| Some(vec![cells.clone()]));
    })
}
