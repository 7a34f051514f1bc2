//! What is seldom done with messages that are on their way to an app: they are left to others, put off, remembered, refused.
//! None of it depends on their type, so it is compiled once.

use crate::app::{App, Handlers};
use crate::cell::{CellId, CellSet, HiveId, Outcome};
use crate::hash::HashSet;
use crate::hive::admission::outside_lanes::{Admitted, Numbers};
use crate::hive::bee::app::AppRuntime;
use crate::hive::consensus::journal::{Emit, HandlerId, LaneId, MessageId};
use crate::hive::consensus::quarantine::{Begun, set_aside};
use crate::hive::dispatch::deferred::{Deferred, DeferredQueue, Onward};
use crate::hive::dispatch::effects::{Effects, RouteContext};
use crate::hive::dispatch::handler::Handler;
use crate::hive::dispatch::ordered_release;
use crate::hive::dispatch::turn::Stateless;
use crate::hive::message::batch::Messages;
use crate::mapper::Mapper;
use crate::message::{Error, ErrorKind};
use crate::time::Time;
use crate::{limits, panics};
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Messages of a batch on their way to a handler.
pub(crate) trait Routed {
    fn handler(&self) -> Handler<'_>;
    fn batch(&self) -> &dyn Messages;
    fn share(&self) -> Arc<dyn Messages>;
    /// Of the app in the chain of those that can answer.
    fn position(&self) -> Option<u16>;
    /// Who routes them later.
    fn onward(&self) -> Arc<dyn Onward>;
    /// What the map says of message `index`.
    fn map(&self, index: u32, mapper: &mut Mapper) -> Option<Outcome>;
    /// Gives messages that the map drops to the next of the chain.
    fn pass_on(&self, range: Range<u32>, cx: &mut RouteContext);
    /// Runs the handler for messages that have no cells.
    fn run_now(&self, range: Range<u32>, cx: &mut RouteContext);
    /// A message ends with an error that is not its handler's.
    fn end_with(&self, index: u32, error: &Error, cx: &mut RouteContext);
}

/// Leaves messages to those who run bees. Later ones to the same app follow, or they would overtake what these cause.
pub(crate) fn leave(routed: &dyn Routed, range: Range<u32>, cx: &mut RouteContext) {
    let (onward, batch, position) = (routed.onward(), routed.share(), routed.position());
    let app = routed.handler().app;
    if let Some(admitted) = batch.admitted() {
        admitted.open()
    }
    let deferred = Deferred {
        queue: cx.queue.share(),
        cause: cx.turn.cause.clone(),
        route: Box::new(move |cx| {
            onward.route_on(&batch, range, position, cx);
            if let Some(admitted) = batch.admitted() {
                admitted.close()
            }
        }),
    };
    match cx.turn.stateless {
        Stateless::Apart => DeferredQueue::of(app).leave(deferred, cx.turn),
        Stateless::InOrder | Stateless::Here => cx.queue.leave(app, deferred, cx.turn),
    }
}

/// Routes when the stack is free again: it has been used up, or something waits that it has been used up for. The limit on
/// hops still ends a cycle.
#[cold]
pub(crate) fn defer(routed: &dyn Routed, range: Range<u32>, cx: &mut RouteContext) {
    cx.defer(routed.handler().app, routed.onward(), routed.share(), range, routed.position())
}

/// What a log is to remember of messages: of those that the map does not drop.
pub(crate) fn emits(
    routed: &dyn Routed,
    mut mapper: Mapper,
    range: Range<u32>,
    at: Option<Time>,
) -> Vec<Emit> {
    let (handler, batch) = (routed.handler(), routed.batch());
    let mut emits = Vec::new();
    for index in range {
        mapper.clear();
        match routed.map(index, &mut mapper) {
            None => break,
            Some(Outcome::Drop) => {}
            Some(_) => {
                let fact = batch.source().fact(index, handler.app);
                emits.extend(handler.emit_of(batch, index, fact, routed.position(), at))
            }
        }
    }
    emits
}

/// Answers messages with an error because the app has as many cells as it may have. `remembered`: a log has them.
#[cold]
pub(crate) fn refuse<A: App>(
    routed: &dyn Routed,
    range: Range<u32>,
    remembered: bool,
    cx: &mut RouteContext,
) {
    let max = A::OPTIONS.cells.unwrap_or_default();
    let text = format!("the app has {max} cells; `#[app(cells = {max})]` allows no more");
    refuse_with(routed, range, remembered, &Error::of(ErrorKind::Limit, text), cx)
}

fn refuse_with(
    routed: &dyn Routed,
    range: Range<u32>,
    remembered: bool,
    error: &Error,
    cx: &mut RouteContext,
) {
    let handler = routed.handler();
    let says_so = remembered && handler.link.is_some() && !cx.is_held();
    for index in range {
        let fact = routed.batch().source().fact(index, handler.app);
        match says_so {
            true => {
                consume_held((fact, handler.number, None), cx, &mut |cx| routed.end_with(index, error, cx))
            }
            false => routed.end_with(index, error, cx),
        }
    }
}

/// How far the messages of a batch have been looked through for cells without a known owner.
pub(crate) struct Ahead {
    /// Owners of what is before it have been asked for.
    claimed: u32,
    end: u32,
}

impl Ahead {
    pub(crate) fn of(range: &Range<u32>) -> Ahead {
        Ahead { claimed: range.start, end: range.end }
    }

    /// The owner of `cells`, those of message `first`, is not known: all sets of cells of which the same is to be said, in
    /// this message and those after it. So they are asked for at once. Nothing if they have been asked for already.
    #[cold]
    pub(crate) fn missing<A: Handlers>(
        &mut self,
        app: &AppRuntime<A>,
        routed: &dyn Routed,
        origin: HiveId,
        first: u32,
        cells: &CellSet,
    ) -> Option<Vec<CellSet>> {
        let mut is_unowned = |cells: &[CellId]| app.owner(cells).is_none();
        self.sets(routed, app.mapper(origin), app.cells_left(), &mut is_unowned, first, cells)
    }

    fn sets(
        &mut self,
        routed: &dyn Routed,
        mut mapper: Mapper,
        cells_left: usize,
        is_unowned: &mut dyn FnMut(&[CellId]) -> bool,
        first: u32,
        cells: &CellSet,
    ) -> Option<Vec<CellSet>> {
        if first < self.claimed {
            return None;
        }
        let mut sets = vec![cells.clone()];
        let mut known = HashSet::from_iter([cells.clone()]);
        let mut left = cells_left.saturating_sub(cells.len());
        self.claimed = first + 1;
        for index in first + 1..self.end {
            if sets.len() >= limits::CLAIMS_PER_PROPOSAL_MAX {
                break;
            }
            mapper.clear();
            let Some(outcome) = routed.map(index, &mut mapper) else { break };
            if outcome == Outcome::Cells
                && is_unowned(mapper.cells())
                && known.insert(CellSet::from_slice(mapper.cells()))
            {
                // what is too much is not asked for before it is looked at by itself
                let Some(fewer) = left.checked_sub(mapper.cells().len()) else { break };
                left = fewer;
                sets.push(CellSet::from_slice(mapper.cells()))
            }
            self.claimed = index + 1
        }
        Some(sets)
    }
}

/// Runs a stateless handler of a journaled app: what it makes of the messages is part of the record of whoever sent them, or
/// is recorded by itself.
pub(crate) fn run_recorded(routed: &dyn Routed, range: Range<u32>, cx: &mut RouteContext) {
    let (handler, batch) = (routed.handler(), routed.batch());
    match cx.held().map(|effects| effects.takes(range.len())) {
        Some(true) => routed.run_now(range, cx),
        Some(false) => cx.turn.hive.cycle(batch.source().hops, handler.app_name, handler.message),
        None if batch.source().numbers.lane == LaneId::NONE => routed.run_now(range, cx),
        // what is made of a message from outside is known by that message, so they are run one by one
        None if batch.admitted().is_some() => {
            for index in range {
                let fact = batch.source().fact(index, handler.app);
                let Some(link) = handler.link else { break };
                if link.without_bee.has_consumed(fact, HandlerId(handler.number as u16)) {
                    continue;
                }
                match link.quarantine.begin(
                    &**cx.turn.hive,
                    cx.turn.slot,
                    (handler.app, handler.number),
                    fact,
                    None,
                ) {
                    Begun::SetAside => leave_undone(routed, index, batch.admitted(), cx),
                    _begun => routed.run_now(index..index + 1, cx),
                }
            }
        }
        None => consume(routed, range, cx),
    }
}

/// Runs it for messages that a log remembers, whose time has come: a record says what is made of them.
fn consume(routed: &dyn Routed, range: Range<u32>, cx: &mut RouteContext) {
    let handler = routed.handler();
    for index in range {
        let fact = routed.batch().source().fact(index, handler.app);
        let quarantine = handler.link.map(|link| &link.quarantine);
        let by = (handler.app, handler.number);
        let begun =
            quarantine.map(|quarantine| quarantine.begin(&**cx.turn.hive, cx.turn.slot, by, fact, None));
        if let Some(Begun::SetAside) = begun {
            leave_undone(routed, index, None, cx);
            continue;
        }
        consume_held((fact, handler.number, None), cx, &mut |cx| routed.run_now(index..index + 1, cx))
    }
}

/// A message that has ended the process twice is not run: a record says that it is done.
#[cold]
fn leave_undone(routed: &dyn Routed, index: u32, admitted: Option<&Arc<Admitted>>, cx: &mut RouteContext) {
    let handler = routed.handler();
    let fact = routed.batch().source().fact(index, handler.app);
    consume_held((fact, handler.number, admitted), cx, &mut |cx| routed.end_with(index, &set_aside(), cx))
}

/// Lets go what a stateless handler left into the record of its sender, with `release`. What cannot be encoded fails that
/// handler, and nobody else.
pub(crate) fn release_held(
    routed: &dyn Routed,
    range: Range<u32>,
    release: &mut dyn FnMut(&mut RouteContext),
    cx: &mut RouteContext,
) {
    let (depth, before) = (cx.turn.depth, cx.held().map(|effects| effects.savepoint()));
    let released = panics::catch(AssertUnwindSafe(|| release(cx)));
    let (Err(panic), Some(before)) = (released, before) else { return };
    cx.turn.depth = depth;
    cx.turn.ctx().out.discard();
    if let Some(effects) = cx.held() {
        effects.rollback(before)
    }
    if range.len() > 1 {
        // the others are not to blame; they have changed nothing, so they are run again
        cx.turn.depth -= 1;
        range.for_each(|index| routed.run_now(index..index + 1, cx));
        return cx.turn.depth = depth;
    }
    let error = Error::of(ErrorKind::Panicked, panics::text(&*panic));
    let _ = panics::catch(AssertUnwindSafe(|| drop(panic)));
    routed.end_with(range.start, &error, cx)
}

/// Has a record say that handler `handler` consumed the message `fact`, and made of it what `make` lets out.
pub(crate) fn consume_held(
    (fact, handler, admitted): (MessageId, usize, Option<&Arc<Admitted>>),
    cx: &mut RouteContext,
    make: &mut dyn FnMut(&mut RouteContext),
) {
    let mut effects = Effects::new(Numbers::parts(fact, HandlerId(handler as u16)));
    let mut held = cx.hold_in(&mut effects);
    make(&mut held);
    held.run_deferred();
    if effects.size() > limits::RECORD_BYTES_MAX {
        let bytes = effects.size();
        tracing::error!(bytes, "what a stateless handler emitted is more than a record holds; it is dropped");
        return ordered_release::consume(fact, handler, admitted, Vec::new(), Vec::new(), cx);
    }
    let (emits, notes) = (std::mem::take(&mut effects.emits), std::mem::take(&mut effects.notes));
    let mut steps = effects.into_steps();
    if !notes.is_empty() {
        steps.insert(0, Box::new(move |cx| cx.note(notes)))
    }
    ordered_release::consume(fact, handler, admitted, emits, steps, cx)
}
