//! Sweeps of apps without a journal, and the code shared with logged sweeps. A sweep is a message to every
//! cell of a dictionary, with one transaction per cell.
//!
//! A sweep walks the routing table shard by shard. For each shard, it sends each bee one visit for all
//! cells that the bee owns in that shard. A cell never changes its shard, so it is visited exactly once,
//! even if bees merge during the sweep. If a bee is merged while a visit is in its mailbox, the visit moves
//! to the new owner together with the cells.

use crate::app::{Handlers, Handles};
use crate::cell::{CellId, CellSet, Outcome};
use crate::failure::RequestError;
use crate::hive::admission::credits::Cause;
use crate::hive::admission::offices::Office;
use crate::hive::admission::outside_lanes::Numbers;
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::body::Body;
use crate::hive::bee::delivery::{Delivery, RunDelivery};
use crate::hive::bee::lifecycle::Bee;
use crate::hive::bee::routing_table::Routes;
use crate::hive::consensus::journal::{AppId, Emit, LaneId, MessageId, SWEEP_PARTS};
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::sender::blocked::{Blocked, Owners};
use crate::hive::dispatch::sender::deferred::Onward;
use crate::hive::dispatch::turn::Turn;
use crate::hive::dispatch::types::handler::{Handler, LoggedName, map};
use crate::hive::dispatch::types::message_types::Receiver;
use crate::hive::message::batch::{
    Address, AnswerRun, AnswerSink, AnyBatch, Batch, Messages, Observed, Shared, Source, batch_of,
};
use crate::hive::message::payloads::Payloads;
use crate::hive::message::render;
use crate::hive::route::receiver::route;
use crate::hive::run::delivery::run_delivery;
use crate::hive::run::dropped::verify_visit;
use crate::hive::sweep::logged_sweep;
use crate::hive::sweep::open_visits::OpenVisits;
use crate::hive::sweep::tick_visits::TickVisits;
use crate::key::Key;
use crate::message::{Each, Message};
use crate::panics;
use crate::state::any::AnyState;
use crate::time::Time;
use parking_lot::Mutex;
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The receiver of messages of type `M` in an app whose handler runs for each cell of a dictionary with
/// keys of type `K`.
pub(crate) struct EachReceiver<A, K, M> {
    pub(crate) app: Arc<AppRuntime>,
    /// Runs a visit in its bee.
    pub(crate) run: RunDelivery,
    pub(crate) kind: std::marker::PhantomData<fn(A, K, M)>,
}

impl<A, K, M> EachReceiver<A, K, M> {
    /// Creates the receiver of an app.
    pub(crate) fn of(app: &Arc<AppRuntime>, run: RunDelivery) -> Self {
        EachReceiver { app: app.clone(), run, kind: std::marker::PhantomData }
    }
}

impl<A: Handlers + Handles<Each<K, M>>, K: Key, M: Message> Receiver<M> for EachReceiver<A, K, M> {
    fn app(&self) -> u16 {
        self.app.index
    }

    fn answers(&self) -> bool {
        false
    }

    fn drops(&self, _: &Batch<M>, _: u32, _: &mut Turn) -> bool {
        false
    }

    fn emits(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        position: Option<u16>,
        at: Option<Time>,
        payloads: &mut Payloads,
    ) -> Vec<Emit> {
        let emit = |index| {
            let message_id = batch.source.message_id(index, self.app.index);
            sweep_emit::<A, K, M>(&self.app, &**batch, index, message_id, position, at, payloads)
        };
        range.filter_map(emit).collect()
    }

    fn route(&self, batch: &Arc<Batch<M>>, range: Range<u32>, _: Option<u16>, cx: &mut RouteContext) {
        if cx.must_defer() {
            let onward = Arc::new(Self::of(&self.app, self.run));
            return cx.defer(self.app.index, onward, batch.clone(), range, None);
        }

        if self.app.link.is_none()
            && let Some(effects) = cx.held()
        {
            // an app whose state is in memory only records nothing
            let (receiver, batch) = (Self::of(&self.app, self.run), batch.clone());
            return effects.hold(move |cx| receiver.route(&batch, range, None, cx));
        }

        // messages from an app whose state is in memory only have no sequence number and are never resent
        let is_logged = self.app.link.is_some() && batch.source.numbers.lane != LaneId::NONE;

        for index in range {
            let Some(visit) = Visit::of(batch, index) else { continue };
            if is_logged {
                logged_sweep::begin::<A, K, M>(&self.app, (batch, index), visit, self.run, cx);
                continue;
            }

            if cx.queue.blocks_sweep(self.app.index) {
                let (app, run, cause) = (self.app.clone(), self.run, cx.turn.cause.clone());
                cx.queue.block(Box::new(BlockedSweep { app, visit, run, cause }), cx.turn.hive)
            } else {
                visit_all(&self.app, &visit, self.run, cx.turn)
            }
        }
    }
}

impl<A: Handlers + Handles<Each<K, M>>, K: Key, M: Message> Onward for EachReceiver<A, K, M> {
    fn route_on(
        &self,
        batch: &Arc<dyn Messages>,
        range: Range<u32>,
        position: Option<u16>,
        cx: &mut RouteContext,
    ) {
        if let Some(batch) = batch_of::<M>(batch.clone()) {
            self.route(&batch, range, position, cx)
        }
    }
}

/// Returns a message that starts a sweep, in the form used in a log. `at` is the time at which the message is
/// due; `None` means now.
pub(crate) fn sweep_emit<A: Handlers + Handles<Each<K, M>>, K: Key, M: Message>(
    app: &AppRuntime,
    batch: &dyn Messages,
    index: u32,
    message_id: MessageId,
    position: Option<u16>,
    at: Option<Time>,
    payloads: &mut Payloads,
) -> Option<Emit> {
    let handler = Handler::of::<A, Each<K, M>>(app);
    let emit = handler.emit_of(batch, index, message_id, position, at, payloads)?;
    Some(Emit { message_type: const { LoggedName::of_sweep::<A, K, M>().number() }, ..emit })
}

/// The data shared by all visits of a sweep: the message, and the counters of visits not yet done.
pub(crate) struct Visit<M: Message> {
    pub(crate) message: Shared<M>,
    pub(crate) source: Source,
    /// Reports to the sender when all cells are done; `None` if the sender is not waiting for this.
    pub(crate) report: Option<Arc<Report<M>>>,
    /// The sweep's id and its uncommitted visits; `None` for an unlogged sweep.
    pub(crate) open_visits: Option<(MessageId, Arc<OpenVisits>)>,
}

impl<M: Message> Visit<M> {
    /// Creates the visit of an unlogged sweep.
    pub(crate) fn of(batch: &Arc<Batch<M>>, index: u32) -> Option<Arc<Visit<M>>> {
        Self::new(batch, index, None).map(Arc::new)
    }

    /// Creates the visit of a sweep. Returns `None` if the batch has no message `index`.
    pub(crate) fn new(
        batch: &Arc<Batch<M>>,
        index: u32,
        open_visits: Option<(MessageId, Arc<OpenVisits>)>,
    ) -> Option<Visit<M>> {
        let message = Shared::of(batch, index)?;
        let report = batch.sink.as_ref().filter(|sink| sink.counts()).map(|_| {
            Arc::new(Report {
                batch: batch.clone(),
                index,
                open: AtomicUsize::new(0),
                failed: Mutex::new(None),
            })
        });
        // each sweep gets its own seed, because two sweeps from one batch must not see the same random
        // numbers at a cell. The seed derives from the batch's seed, so a sweep resumed after a crash sees
        // the same numbers as before
        let source = Source { chance: batch.source.chance_of(u64::from(index)), ..batch.source.clone() };
        Some(Visit { message, source, report, open_visits })
    }

    /// Returns the same visit, counted apart from this one: for the bees in one of several logs.
    pub(crate) fn in_window(&self) -> Visit<M> {
        let open_visits = self.open_visits.as_ref();
        Visit {
            message: self.message.clone(),
            source: self.source.clone(),
            report: self.report.clone(),
            open_visits: open_visits.map(|(sweep, open)| (*sweep, Arc::new(open.in_another_log()))),
        }
    }
}

impl<M: Message> AnyBatch for Visit<M> {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn message_name(&self) -> &'static str {
        M::NAME
    }
    fn words(&self, _: usize, bytes_max: usize) -> String {
        panics::harmless(|| render::bounded::<M>(&self.message, bytes_max)).unwrap_or_default()
    }
    fn opened(&self) {
        self.expect(1)
    }
    fn committed(&self, cells: usize) {
        if let Some((_, open_visits)) = &self.open_visits {
            open_visits.over(cells)
        }
    }
    fn sweep(&self) -> Option<MessageId> {
        self.open_visits.as_ref().map(|(sweep, _)| *sweep)
    }
}

/// Reports to the sender of a sweep when all cells are done. If a visit is dropped, for example because the
/// hive stops, the count never reaches zero and nothing is reported.
pub(crate) struct Report<M: Message> {
    batch: Arc<Batch<M>>,
    index: u32,
    /// Number of unfinished visits and messages to cells, plus one for the sweep itself until all visits have
    /// been sent.
    open: AtomicUsize,
    /// The first error that occurred at any cell.
    failed: Mutex<Option<RequestError<M::Error>>>,
}

impl<M: Message> Report<M> {
    /// Adds unfinished visits or messages.
    fn opened(&self, count: usize) {
        self.open.fetch_add(count, Ordering::AcqRel);
    }

    /// Removes one visit or message. The call that brings the number to zero reports to the sender.
    fn done(&self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(sink) = &self.batch.sink
        {
            let result = self.failed.lock().take().map_or(Ok(()), Err);
            sink.observed(&self.batch, self.index, result)
        }
    }
}

impl<M: Message> Visit<M> {
    /// Adds `count` visits or messages that must be done before the sweep is done.
    pub(crate) fn expect(&self, count: usize) {
        if let Some(report) = &self.report {
            report.opened(count)
        }
    }

    /// Marks one visit or message as done.
    pub(crate) fn done(&self) {
        if let Some(report) = &self.report {
            report.done()
        }
    }
}

/// Receives the outcome of the handler at each cell.
impl<K: Key, M: Message> AnswerSink<Each<K, M>> for Report<M> {
    fn expect(&self, _: &Batch<Each<K, M>>, _: u32, _: Option<u32>) {}
    fn answers(&self, _: AnswerRun<Each<K, M>>, _: &Option<Arc<Cause>>) {}
    fn observed(&self, _: &Batch<Each<K, M>>, _: u32, result: Observed<M>) {
        let mut failed = self.failed.lock();
        match result {
            Err(error) if failed.is_none() => *failed = Some(error),
            // dropping an error runs code of the app, which may panic
            result => drop(panics::harmless(|| drop(result))),
        }
        drop(failed);
        self.done()
    }
    fn unanswered(&self, _: &Batch<Each<K, M>>, _: u32) {}
    fn counts(&self) -> bool {
        true
    }
}

/// Sends all visits at once, because the sender's later messages must not overtake the sweep.
fn visit_all<M: Message>(app: &Arc<AppRuntime>, visit: &Arc<Visit<M>>, run: RunDelivery, turn: &mut Turn) {
    // the sweep itself counts as one visit, so that the report is not made before all visits have been sent
    visit.expect(1);
    let cause = turn.cause.clone();
    for shard in 0..Routes::SHARDS {
        visit_shard(app, shard, visit, run, &mut |_| Causing::Visit(cause.clone()), turn)
    }
    visit.done()
}

/// A sweep blocked behind one of its sender's earlier messages.
struct BlockedSweep<M: Message> {
    app: Arc<AppRuntime>,
    visit: Arc<Visit<M>>,
    run: RunDelivery,
    cause: Option<Arc<Cause>>,
}

impl<M: Message> Blocked for BlockedSweep<M> {
    fn app(&self) -> u16 {
        self.app.index
    }

    fn cells(&self) -> &[CellId] {
        &[]
    }

    fn is_sweep(&self) -> bool {
        true
    }

    fn try_deliver(self: Box<Self>, turn: &mut Turn) -> Result<(), Box<dyn Blocked>> {
        turn.cause = self.cause;
        visit_all(&self.app, &self.visit, self.run, turn);
        turn.cause = None;
        Ok(())
    }

    fn owners(&self) -> Option<Arc<dyn Owners>> {
        None
    }
}

/// Whether a bee is visited.
enum Causing {
    /// The bee is visited, with this cause.
    Visit(Option<Arc<Cause>>),
    Skip,
}

/// Sends one visit to each bee that owns cells in this shard, unless `causes` says that the bee is to be skipped.
fn visit_shard<M: Message>(
    app: &Arc<AppRuntime>,
    shard: usize,
    visit: &Arc<Visit<M>>,
    run: RunDelivery,
    causes: &mut dyn FnMut(&Bee) -> Causing,
    turn: &mut Turn,
) {
    let mut cells = app.routes.cells_of_shard(shard);
    cells.sort_unstable_by_key(|(cell, bee)| (bee.id, *cell));

    let mut rest = cells.as_slice();
    while let Some((_, bee)) = rest.first() {
        let count = rest.iter().take_while(|(_, other)| other.id == bee.id).count();
        let (its, others) = rest.split_at(count);
        rest = others;
        let Causing::Visit(cause) = causes(bee) else { continue };
        let delivery = Delivery {
            run,
            batch: visit.clone(),
            office: Office::NONE,
            back: None,
            cause,
            first: 0,
            count: 0,
            position: None,
            cells: its.iter().map(|(cell, _)| *cell).collect(),
        };
        visit.expect(1);
        send_visit(app, bee, delivery, visit, turn)
    }
}

/// Pushes a visit into the mailbox of a bee. If the bee has been merged or retired since the caller looked
/// it up, sends a separate visit for each cell to the cell's present owner.
fn send_visit<M: Message>(
    app: &Arc<AppRuntime>,
    bee: &Arc<Bee>,
    delivery: Delivery,
    visit: &Visit<M>,
    turn: &mut Turn,
) {
    let Err(refused) = bee.clone().push(delivery, turn) else { return };
    for cell in &refused.cells {
        let mut one = Delivery {
            run: refused.run,
            batch: refused.batch.clone(),
            office: Office::NONE,
            back: None,
            cause: refused.cause.clone(),
            first: 0,
            count: 0,
            position: None,
            cells: CellSet::from_slice(&[*cell]),
        };
        // a cell without an owner is empty, so it needs no visit. If the present owner has ended too, looks
        // up the cell again
        while let Some(bee) = app.routes.find(*cell) {
            let is_leaving = bee.is_leaving();
            match bee.push(one, turn) {
                Ok(()) => {
                    visit.expect(1);
                    break;
                }
                Err(back) => one = back,
            }
            if is_leaving {
                // the hive to which the cell moves visits it at the next tick
                break;
            }
            std::hint::spin_loop()
        }
    }

    visit.done()
}

/// The schedule that spreads a timer's sweep over its period.
pub(crate) struct Pace {
    /// The visits of all sweeps of the timer that are under way.
    pub(crate) visits: Arc<TickVisits>,
    /// The time at which the sweep started.
    pub(crate) start: Time,
    pub(crate) period: Duration,
    /// Whether no visit has been skipped so far.
    pub(crate) is_whole: bool,
}

impl Pace {
    /// Returns the time at which a part's visits are due. The parts are spread over half of the period, so
    /// that this sweep is over when the next one is due.
    pub(crate) fn due(&self, part: usize) -> Time {
        self.start + self.period.mul_f64(0.5 * part as f64 / SWEEP_PARTS as f64)
    }
}

/// Visits one part of the cells and sets a timer for the next part.
pub(crate) fn paced<M: Message>(
    app: Arc<AppRuntime>,
    visit: Arc<Visit<M>>,
    run: RunDelivery,
    part: usize,
    mut pace: Pace,
    turn: &mut Turn,
) {
    if turn.hive.is_stopped() {
        return;
    }

    // each part has its own causes, so nothing is in flight between two parts
    let in_flight = turn.hive.in_flight.clone();
    let mut visits = pace.visits.begin(part, &in_flight);
    if !visits.are_all_skipped() {
        let causes = &mut |bee: &Bee| {
            visits.cause(|| bee.log()).map_or(Causing::Skip, |cause| Causing::Visit(Some(cause)))
        };
        visit_shard(&app, part, &visit, run, causes, turn)
    }
    if visits.has_skipped() && std::mem::replace(&mut pace.is_whole, false) {
        turn.hive.timers.collapsed.fetch_add(1, Ordering::Relaxed);
    }
    drop(visits);

    let part = part + 1;
    if part < Routes::SHARDS {
        let at = pace.due(part);
        turn.hive.timers.at(at, Box::new(move |turn| paced(app, visit, run, part, pace, turn)));
    }
}

/// Runs the handler for each entry of the visited cells that the bee owns, in key order, before any message
/// that arrived later.
pub(crate) fn run_sweep<A: Handlers + Handles<Each<K, M>>, K: Key, M: Message>(
    bee: &Arc<Bee>,
    body: &mut Body,
    delivery: Delivery,
    turn: &mut Turn,
) {
    if body.pending.is_some() {
        return logged_sweep::run_visit::<A, K, M>(bee, body, delivery, turn);
    }

    let app = &bee.app;
    let Some(visit) = delivery.batch.as_any().downcast_ref::<Visit<M>>() else { return };
    let batch = visits_of::<A, K, M>(bee, &mut body.app, &delivery.cells, visit, Numbers::NONE);
    let count = batch.messages.len() as u32;
    visit.expect(count as usize);

    let mut mapper = app.mapper(batch.source.origin);
    for index in 0..count {
        let Some(message) = batch.messages.get(index as usize) else { break };
        mapper.clear();
        if map::<A, Each<K, M>>(message, &mut mapper) == Outcome::Drop {
            verify_visit::<A, Each<K, M>>(app, &batch, index, turn);
            visit.done();
            continue;
        }

        if is_here(bee, mapper.cells()) {
            let one = Delivery {
                run: run_delivery::<A, Each<K, M>>,
                batch: batch.clone(),
                office: Office::NONE,
                back: None,
                cause: delivery.cause.clone(),
                first: index,
                count: 1,
                position: None,
                cells: CellSet::from_slice(mapper.cells()),
            };
            run_delivery::<A, Each<K, M>>(bee, body, one, turn)
        } else {
            // the handler also needs other bees' cells
            turn.cause = delivery.cause.clone();
            let range = index..index + 1;
            route::<A, Each<K, M>>(app, &batch, range, None, &mut RouteContext::new(&mut body.queue, turn));
            turn.cause = None;
        }
    }

    visit.done()
}

/// Checks whether a bee owns all of the cells.
#[inline]
pub(crate) fn is_here(bee: &Arc<Bee>, cells: &[CellId]) -> bool {
    match cells {
        [own] => bee.app.routes.leads_to(*own, bee),
        cells => bee.app.owner(cells).is_some_and(|owner| Arc::ptr_eq(&owner, bee)),
    }
}

/// Returns a batch with one message for each entry that the swept dictionary has in these cells. `cells`
/// must be sorted.
pub(crate) fn visits_of<A: Handlers + Handles<Each<K, M>>, K: Key, M: Message>(
    bee: &Arc<Bee>,
    state: &mut dyn AnyState,
    cells: &[CellId],
    visit: &Visit<M>,
    numbers: Numbers,
) -> Arc<Batch<Each<K, M>>> {
    let app = &bee.app;
    // if the whole dictionary is one cell, all its entries belong to that cell
    let swept = app.swept(A::HANDLER).map(|dict| (dict, app.whole_cell(dict)));
    // most cells have one entry
    let mut messages = Vec::with_capacity(cells.len());
    if let Some((dict, whole)) = swept {
        state.cells_of(dict, &mut |cell, key| {
            if cells.binary_search(&whole.unwrap_or(cell)).is_ok()
                && let Some(key) = key.downcast_ref::<K>()
            {
                messages.push(Each { key: key.clone(), msg: visit.message.clone() })
            }
        })
    }

    let source =
        Source { sender: Address::App(AppId(app.index)), bee: Some(bee.id), numbers, ..visit.source.clone() };
    let sink = visit.report.clone().map(|report| report as Arc<dyn AnswerSink<Each<K, M>>>);
    Arc::new(Batch { messages, passed: None, source, sink, admitted: None, arrival: None })
}
