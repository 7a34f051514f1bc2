//! What is seldom done with messages that are on their way to an app: they are left to others, put off, remembered, refused.
//! None of it depends on their type, so it is compiled once.

use crate::app::{App, Handlers};
use crate::cell::{CellId, CellSet, HiveId, Outcome};
use crate::hash::HashSet;
use crate::hive::admission::outside_lanes::{Admitted, Numbers};
use crate::hive::bee::app::AppRuntime;
use crate::hive::dispatch::deferred::{Errand, Errands};
use crate::hive::dispatch::effects::Gate;
use crate::hive::dispatch::handler::Handler;
use crate::hive::dispatch::sender_queue::SenderLane;
use crate::hive::dispatch::turn::{Stateless, Turn};
use crate::hive::log::journal::{Emit, Fact};
use crate::hive::log::quarantine::{Begun, set_aside};
use crate::hive::log::without_bee;
use crate::hive::message::batch::Messages;
use crate::mapper::Mapper;
use crate::message::{Error, ErrorKind};
use crate::time::Time;
use crate::{limits, panics};
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Routes messages of one type, which it knows, to one app or IO bee.
pub(crate) trait Onward: Send + Sync {
    /// `position`: in the chain of those that can answer.
    fn route_on(
        &self,
        batch: &Arc<dyn Messages>,
        range: Range<u32>,
        position: Option<u16>,
        lane: &mut SenderLane,
        turn: &mut Turn,
    );
}

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
    fn pass_on(&self, range: Range<u32>, lane: &mut SenderLane, turn: &mut Turn);
    /// Runs the handler for messages that have no cells.
    fn run_now(&self, range: Range<u32>, lane: &mut SenderLane, turn: &mut Turn);
    /// A message ends with an error that is not its handler's.
    fn end_with(&self, index: u32, error: &Error, lane: &mut SenderLane, turn: &mut Turn);
}

/// Leaves messages to those who run bees. Later ones to the same app follow, or they would overtake what these cause.
pub(crate) fn leave(routed: &dyn Routed, range: Range<u32>, lane: &mut SenderLane, turn: &mut Turn) {
    let (onward, batch, position) = (routed.onward(), routed.share(), routed.position());
    let app = routed.handler().app;
    if let Some(admitted) = batch.admitted() {
        admitted.open()
    }
    let errand = Errand {
        lane: lane.share(),
        cause: turn.cause.clone(),
        route: Box::new(move |lane, turn| {
            onward.route_on(&batch, range, position, lane, turn);
            if let Some(admitted) = batch.admitted() {
                admitted.close()
            }
        }),
    };
    match turn.stateless {
        Stateless::Apart => Errands::of(app).leave(errand, turn),
        Stateless::InOrder | Stateless::Here => lane.leave(app, errand, turn),
    }
}

/// Routes when the stack is free again: it has been used up, or something waits that it has been used up for. The limit on
/// hops still ends a cycle.
#[cold]
pub(crate) fn put_off(routed: &dyn Routed, range: Range<u32>, lane: &mut SenderLane, turn: &mut Turn) {
    turn.put_off(routed.handler().app, routed.onward(), routed.share(), range, routed.position(), lane)
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
    lane: &mut SenderLane,
    turn: &mut Turn,
) {
    let max = A::OPTIONS.cells.unwrap_or_default();
    let text = format!("the app has {max} cells; `#[app(cells = {max})]` allows no more");
    refuse_with(routed, range, remembered, &Error::of(ErrorKind::Limit, text), lane, turn)
}

fn refuse_with(
    routed: &dyn Routed,
    range: Range<u32>,
    remembered: bool,
    error: &Error,
    lane: &mut SenderLane,
    turn: &mut Turn,
) {
    let handler = routed.handler();
    let says_so = remembered && handler.link.is_some() && turn.gate.is_none();
    for index in range {
        let fact = routed.batch().source().fact(index, handler.app);
        if says_so {
            turn.gate = Some(Gate::new(Numbers::parts(fact, handler.number)))
        }
        routed.end_with(index, error, lane, turn);
        if says_so {
            consume_gate(fact, handler.number, None, lane, turn)
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
pub(crate) fn run_recorded(routed: &dyn Routed, range: Range<u32>, lane: &mut SenderLane, turn: &mut Turn) {
    let (handler, batch) = (routed.handler(), routed.batch());
    match turn.gate.as_mut().map(|gate| gate.takes(range.len())) {
        Some(true) => routed.run_now(range, lane, turn),
        Some(false) => turn.hive.cycle(batch.source().hops, handler.app_name, handler.message),
        None if batch.source().numbers.lane == 0 => routed.run_now(range, lane, turn),
        // what is made of a message from outside is known by that message, so they are run one by one
        None if batch.admitted().is_some() => {
            for index in range {
                let fact = batch.source().fact(index, handler.app);
                let Some(link) = handler.link else { break };
                if link.unowned.has_consumed(fact, handler.number) {
                    continue;
                }
                match link.care.begin(turn.hive, turn.slot, (handler.app, handler.number), fact, None) {
                    Begun::SetAside => leave_undone(routed, index, batch.admitted(), lane, turn),
                    _begun => routed.run_now(index..index + 1, lane, turn),
                }
            }
        }
        None => consume(routed, range, lane, turn),
    }
}

/// Runs it for messages that a log remembers, whose time has come: a record says what is made of them.
fn consume(routed: &dyn Routed, range: Range<u32>, lane: &mut SenderLane, turn: &mut Turn) {
    let handler = routed.handler();
    for index in range {
        let fact = routed.batch().source().fact(index, handler.app);
        let care = handler.link.map(|link| &link.care);
        let by = (handler.app, handler.number);
        let begun = care.map(|care| care.begin(turn.hive, turn.slot, by, fact, None));
        if let Some(Begun::SetAside) = begun {
            leave_undone(routed, index, None, lane, turn);
            continue;
        }
        turn.gate = Some(Gate::new(Numbers::parts(fact, handler.number)));
        routed.run_now(index..index + 1, lane, turn);
        consume_gate(fact, handler.number, None, lane, turn)
    }
}

/// A message that has ended the process twice is not run: a record says that it is done.
#[cold]
fn leave_undone(
    routed: &dyn Routed,
    index: u32,
    admitted: Option<&Arc<Admitted>>,
    lane: &mut SenderLane,
    turn: &mut Turn,
) {
    let handler = routed.handler();
    let fact = routed.batch().source().fact(index, handler.app);
    turn.gate = Some(Gate::new(Numbers::parts(fact, handler.number)));
    routed.end_with(index, &set_aside(), lane, turn);
    consume_gate(fact, handler.number, admitted, lane, turn)
}

/// Lets go what a stateless handler left into the record of its sender, with `release`. What cannot be encoded fails that
/// handler, and nobody else.
pub(crate) fn release_held(
    routed: &dyn Routed,
    range: Range<u32>,
    release: &mut dyn FnMut(&mut SenderLane, &mut Turn),
    lane: &mut SenderLane,
    turn: &mut Turn,
) {
    let (depth, mark) = (turn.depth, turn.gate.as_ref().map(|gate| gate.mark()));
    let released = panics::catch(AssertUnwindSafe(|| release(lane, turn)));
    let (Err(panic), Some(mark)) = (released, mark) else { return };
    turn.depth = depth;
    turn.ctx().out.discard();
    if let Some(gate) = &mut turn.gate {
        gate.rollback(mark)
    }
    if range.len() > 1 {
        // the others are not to blame; they have changed nothing, so they are run again
        turn.depth -= 1;
        range.for_each(|index| routed.run_now(index..index + 1, lane, turn));
        return turn.depth = depth;
    }
    let error = Error::of(ErrorKind::Panicked, panics::text(&*panic));
    let _ = panics::catch(AssertUnwindSafe(|| drop(panic)));
    routed.end_with(range.start, &error, lane, turn)
}

/// Has a record say that handler `handler` consumed a message, and made of it what is behind the gate.
pub(crate) fn consume_gate(
    fact: Fact,
    handler: usize,
    admitted: Option<&Arc<Admitted>>,
    lane: &mut SenderLane,
    turn: &mut Turn,
) {
    let Some(mut gate) = turn.close_gate(lane) else { return };
    if gate.size() > limits::RECORD_BYTES_MAX {
        let bytes = gate.size();
        tracing::error!(bytes, "what a stateless handler emitted is more than a record holds; it is dropped");
        return without_bee::consume(fact, handler, admitted, Vec::new(), Vec::new(), lane, turn);
    }
    let (emits, notes) = (std::mem::take(&mut gate.emits), std::mem::take(&mut gate.notes));
    let mut steps = gate.into_steps();
    if !notes.is_empty() {
        steps.insert(0, Box::new(move |_, turn| turn.note(notes)))
    }
    without_bee::consume(fact, handler, admitted, emits, steps, lane, turn)
}
