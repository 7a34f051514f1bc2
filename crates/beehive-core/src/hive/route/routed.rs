//! The rare steps of routing: handing messages to another thread, deferring, logging and refusing them.
//!
//! These steps do not depend on the message type. They take a `dyn Routed`, so that they are compiled only
//! once.

use crate::cell::{CellId, CellSet, HiveId, Outcome};
use crate::hash::HashSet;
use crate::hive::admission::outside_lanes::{Admitted, Numbers};
use crate::hive::bee::app::AppRuntime;
use crate::hive::consensus::journal::{Emit, Emits, HandlerId, LaneId, MessageId, Suspect};
use crate::hive::consensus::quarantine::{Begun, Work, set_aside};
use crate::hive::dispatch::effects::{Effects, HeldEffects, RouteContext};
use crate::hive::dispatch::sender::deferred::{Deferred, DeferredQueue, Onward};
use crate::hive::dispatch::sender::ordered_release;
use crate::hive::dispatch::turn::{Link, Stateless, Turn};
use crate::hive::dispatch::types::handler::Handler;
use crate::hive::message::batch::Messages;
use crate::hive::message::payloads::Payloads;
use crate::hive::run::dropped;
use crate::mapper::Mapper;
use crate::message::{Error, ErrorKind};
use crate::mutant::Mutant;
use crate::time::Time;
use crate::{limits, panics};
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A batch of messages being routed to a handler.
pub(crate) trait Routed {
    /// Returns the handler.
    fn handler(&self) -> Handler<'_>;
    /// Returns the batch.
    fn batch(&self) -> &dyn Messages;
    /// Returns the batch as a shared pointer.
    fn share(&self) -> Arc<dyn Messages>;
    /// Returns the app's position in the answer chain, or `None` if it is not in the chain.
    fn position(&self) -> Option<u16>;
    /// Returns the object that routes the messages when they are deferred.
    fn onward(&self) -> Arc<dyn Onward>;
    /// Maps message `index` and leaves its cells in `mapper`. Returns `None` if the batch has no such
    /// message.
    fn map(&self, index: u32, mapper: &mut Mapper) -> Option<Outcome>;
    /// Checks whether a requester is waiting for a report about each of these messages.
    fn is_counted(&self) -> bool;
    /// Runs the handler for a message dropped by the map, and undoes everything that the handler did. Returns
    /// an error if it did anything.
    fn dropped_wrongly(&self, index: u32, turn: &mut Turn) -> Option<Error>;
    /// Routes messages dropped by the map to the next app in the answer chain.
    fn pass_on(&self, range: Range<u32>, cx: &mut RouteContext);
    /// Routes a message that a record marks as consumed to the next app in the answer chain, under a new number.
    fn pass_on_handled(&self, index: u32, cx: &mut RouteContext);
    /// Runs the stateless handler.
    fn run_now(&self, range: Range<u32>, cx: &mut RouteContext);
    /// Fails a message with an error that its handler did not return.
    fn end_with(&self, index: u32, error: &Error, cx: &mut RouteContext);
}

/// Hands messages to the threads that run bees, because the handler must not run on the sender's thread.
///
/// With `Stateless::InOrder`, the sender's later messages to the same app take the same path. Otherwise they
/// could overtake messages that the handler emits while handling these. With `Stateless::AfterOthers`, only those to stateless
/// handlers do.
pub(crate) fn leave(routed: &dyn Routed, range: Range<u32>, cx: &mut RouteContext) {
    let (onward, batch, position) = (routed.onward(), routed.share(), routed.position());
    let app = routed.handler().app;
    if let Some(admitted) = batch.admitted() {
        admitted.open()
    }

    let deferred = Deferred {
        queue: cx.queue.share(),
        cause: cx.turn.cause.clone(),
        office: cx.turn.office,
        quarantined: quarantined(routed, &range, cx),
        route: Box::new(move |cx| {
            onward.route_on(&batch, range, position, cx);
            if let Some(admitted) = batch.admitted() {
                admitted.close()
            }
        }),
    };

    match cx.turn.stateless {
        Stateless::Apart => DeferredQueue::of(app).leave(deferred, cx.turn),
        Stateless::InOrder | Stateless::AfterOthers | Stateless::Here => {
            cx.queue.leave(app, deferred, cx.turn)
        }
    }
}

/// Returns the log whose crash marker must name these messages before the handler runs, if they are quarantined.
fn quarantined(routed: &dyn Routed, range: &Range<u32>, cx: &RouteContext) -> Option<(Arc<Link>, Work)> {
    let quarantine = cx.turn.hive.logs.as_ref().map(|logs| &logs.quarantine);
    quarantine.filter(|quarantine| quarantine.is_any())?;

    let (batch, app) = (routed.batch(), routed.handler().app);
    let id = |index| batch.source().message_id(index, app);
    let (first, last) = (id(range.start), id(range.end.saturating_sub(1)));
    let link = match batch.admitted() {
        Some(_) => cx.turn.hive.log_for_stateless(first),
        None => log_of_sender(first, cx),
    };
    link.filter(|link| link.quarantine.concerns(first, last)).map(|link| (link, Work::Messages(first, last)))
}

/// Defers the routing of messages until the stack has unwound, because the stack is too deep or because
/// earlier messages from the sender were deferred for that reason.
///
/// Deferred messages keep their hop count, so the hop limit still ends a cycle of handlers.
#[cold]
pub(crate) fn defer(routed: &dyn Routed, range: Range<u32>, cx: &mut RouteContext) {
    cx.defer(routed.handler().app, routed.onward(), routed.share(), range, routed.position())
}

/// Returns the messages that the map does not drop, in the form used in a log. `at` is the time at which they
/// are due; `None` means now.
pub(crate) fn emits(
    routed: &dyn Routed,
    mut mapper: Mapper,
    range: Range<u32>,
    at: Option<Time>,
    payloads: &mut Payloads,
) -> Vec<Emit> {
    let (handler, batch) = (routed.handler(), routed.batch());
    let mut emits = Vec::new();

    for index in range {
        mapper.clear();
        match routed.map(index, &mut mapper) {
            None => break,
            Some(Outcome::Drop) => {}
            Some(_) => {
                let message_id = batch.source().message_id(index, handler.app);
                emits.extend(handler.emit_of(batch, index, message_id, routed.position(), at, payloads))
            }
        }
    }

    emits
}

/// Drops messages as their map decided, after verifying the map for one in every `verify_maps` of them.
/// Verifies the map for all of them if the map was wrong before, or if a requester is waiting for reports
/// about them, because the number of expected reports depends on which messages are dropped. The map of a message in
/// quarantine is never verified: to verify a map, the handler runs, and it may end each process that gets the message.
pub(crate) fn drop_all(routed: &dyn Routed, range: Range<u32>, cx: &mut RouteContext) {
    let handler = routed.handler();
    let (count, every) = (range.len() as u64, u64::from(cx.turn.hive.verify_maps));
    let before = handler.counters.dropped.fetch_add(count, Ordering::Relaxed);
    if every == 0 {
        return routed.pass_on(range, cx);
    }

    let all = every == 1 || handler.counters.drops_wrongly() || routed.is_counted();
    let (next, last) = (before + 1, before + count);
    // visit only the messages that it verifies, which are few
    let (mut number, apart) = match all {
        true => (next, 1),
        false => (next.max(handler.counters.verified.load(Ordering::Relaxed) + every), every),
    };
    let mut first = range.start;
    while number <= last {
        let index = range.start + (number - next) as u32;
        // Another worker that has loaded the old number also verifies one of its messages, which is harmless.
        handler.counters.verified.store(number, Ordering::Relaxed);
        number += apart;

        let id = routed.batch().source().message_id(index, handler.app);
        if handler.link.is_some_and(|link| link.quarantine.concerns(id, id)) {
            continue;
        }
        let Some(error) = routed.dropped_wrongly(index, cx.turn) else { continue };

        dropped::report(&handler, &error);
        routed.pass_on(first..index, cx);
        routed.end_with(index, &error, cx);
        first = index + 1;
    }

    routed.pass_on(first..range.end, cx)
}

/// Drops messages from a log, which another version of the program has sent: its map did not drop them. A record marks each of
/// them as consumed and contains what becomes of it, so that the log need not keep it. The maps are verified for all of
/// them, because they are few, except for those in quarantine: to verify a map, the handler runs, and it may end the process.
#[cold]
pub(crate) fn drop_logged(routed: &dyn Routed, range: Range<u32>, cx: &mut RouteContext) {
    let handler = routed.handler();
    let Some(link) = handler.link.filter(|_| !cx.is_held()) else { return drop_all(routed, range, cx) };
    for index in range {
        let id = routed.batch().source().message_id(index, handler.app);
        handler.counters.dropped.fetch_add(1, Ordering::Relaxed);
        let wrong = match cx.turn.hive.verify_maps {
            0 => None,
            _ if link.quarantine.concerns(id, id) => None,
            _ => routed.dropped_wrongly(index, cx.turn),
        };
        consume_held((id, handler.id(), None), cx, &mut |cx| match &wrong {
            Some(error) => {
                dropped::report(&handler, error);
                routed.end_with(index, error, cx)
            }
            None => routed.pass_on_handled(index, cx),
        });
        link.quarantine.is_run(&Suspect { id, cell: None })
    }
}

/// Refuses messages: each fails with an error. If the messages are logged (`remembered`), a record marks them as
/// consumed, so that they are not resent.
#[cold]
pub(crate) fn refuse(
    routed: &dyn Routed,
    range: Range<u32>,
    remembered: bool,
    error: &Error,
    cx: &mut RouteContext,
) {
    let handler = routed.handler();
    let says_so = remembered && handler.link.is_some() && !cx.is_held();

    for index in range {
        let message_id = routed.batch().source().message_id(index, handler.app);
        match says_so {
            true => consume_held((message_id, handler.id(), None), cx, &mut |cx| {
                routed.end_with(index, error, cx)
            }),
            false => routed.end_with(index, error, cx),
        }
    }
}

/// The progress of the search for cells without an owner in a batch. The search runs ahead of routing, so that one
/// proposal can claim many cells.
pub(crate) struct Ahead {
    /// The index after the last searched message. The searched messages' cells without an owner have been claimed.
    claimed: u32,
    /// The index after the last message to route.
    end: u32,
}

impl Ahead {
    /// Creates a search that begins at the first message of `range`.
    pub(crate) fn of(range: &Range<u32>) -> Ahead {
        Ahead { claimed: range.start, end: range.end }
    }

    /// Returns the sets of cells to claim for message `first`, whose `cells` have no owner. The result
    /// contains `cells` and the unowned sets of the messages after `first`, so one proposal claims them all.
    /// Returns `None` if `cells` have already been claimed.
    #[cold]
    pub(crate) fn missing(
        &mut self,
        app: &AppRuntime,
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
                // cells beyond the app's limit are not claimed in advance; their message is refused when it
                // is routed
                let Some(fewer) = left.checked_sub(mapper.cells().len()) else { break };
                left = fewer;
                sets.push(CellSet::from_slice(mapper.cells()))
            }
            self.claimed = index + 1
        }

        Some(sets)
    }
}

/// Runs a journaled app's stateless handler. If the sender is a journaled run, the handler's effects become
/// part of the sender's record. Otherwise they get a record of their own.
pub(crate) fn run_recorded(routed: &dyn Routed, range: Range<u32>, cx: &mut RouteContext) {
    let (handler, batch) = (routed.handler(), routed.batch());
    match cx.held().map(|effects| effects.takes(range.len())) {
        Some(true) => routed.run_now(range, cx),
        // there are too many messages for one record
        Some(false) => {
            cx.turn.hive.too_many_stateless(batch.source().hops, handler.app_name, handler.message)
        }
        // messages without a lane are never resent, so nothing needs to be recorded
        None if batch.source().numbers.lane == LaneId::NONE => routed.run_now(range, cx),
        // the ids of emitted messages derive from the outside message's id, so each message runs alone
        None if batch.admitted().is_some() => {
            let id_of = |index| batch.source().message_id(index, handler.app);
            for index in range.clone() {
                let message_id = id_of(index);

                let Some(link) = cx.turn.hive.log_for_stateless(message_id) else {
                    // the hive leads no log at the moment, and needs none for a message that is never resent
                    routed.run_now(index..index + 1, cx);
                    continue;
                };
                if link.without_bee.has_consumed(message_id, handler.id()) {
                    continue;
                }

                let suspect = Suspect { id: message_id, cell: None };
                let by = (handler.app, handler.number);
                let next = || (index + 1..range.end).map(|index| Suspect { id: id_of(index), cell: None });
                match link.quarantine.begin(&link, (&**cx.turn.hive, cx.turn.slot), by, suspect, next) {
                    Begun::SetAside => leave_undone(routed, index, batch.admitted(), cx),
                    Begun::Deposed => {}
                    // `_begun` keeps the message in the crash marker until the run ends
                    _begun => routed.run_now(index..index + 1, cx),
                }
            }
        }
        None => consume(routed, range, cx),
    }
}

/// Runs the stateless handler for logged messages, for example those sent by a timer. Each message gets a
/// record that marks it as consumed and contains the handler's effects.
fn consume(routed: &dyn Routed, range: Range<u32>, cx: &mut RouteContext) {
    let handler = routed.handler();
    let id_of = |index| routed.batch().source().message_id(index, handler.app);
    for index in range.clone() {
        let message_id = id_of(index);
        let by = (handler.app, handler.number);
        let suspect = Suspect { id: message_id, cell: None };
        let next = || (index + 1..range.end).map(|index| Suspect { id: id_of(index), cell: None });
        let link = log_of_sender(message_id, cx);
        let begun = link
            .as_ref()
            .map(|link| link.quarantine.begin(link, (&**cx.turn.hive, cx.turn.slot), by, suspect, next));
        match &begun {
            Some(Begun::SetAside) => {
                leave_undone(routed, index, None, cx);
                continue;
            }
            // the next leader of the log has the message
            Some(Begun::Deposed) => continue,
            // as long as `begun` lives, the crash marker names the message
            _ => {}
        }

        consume_held((message_id, handler.id(), None), cx, &mut |cx| routed.run_now(index..index + 1, cx))
    }
}

/// Fails a message that the quarantine has set aside, without running its handler. A record marks the message as
/// consumed.
#[cold]
fn leave_undone(routed: &dyn Routed, index: u32, admitted: Option<&Arc<Admitted>>, cx: &mut RouteContext) {
    let handler = routed.handler();
    let message_id = routed.batch().source().message_id(index, handler.app);
    consume_held((message_id, handler.id(), admitted), cx, &mut |cx| routed.end_with(index, &set_aside(), cx))
}

/// Calls `release`, which adds a stateless handler's effects to its sender's record.
///
/// `release` panics if, for example, a message cannot be encoded. If so, the effects added by `release` are
/// rolled back, and only that handler's messages fail, not the sender's run.
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
        // any of these messages may have caused the panic. A stateless handler changes no state, so each
        // message can be rerun by itself
        cx.turn.depth -= 1;
        range.for_each(|index| routed.run_now(index..index + 1, cx));
        return cx.turn.depth = depth;
    }

    let error = Error::of(ErrorKind::Panicked, panics::text(&*panic));
    routed.end_with(range.start, &error, cx)
}

/// Appends a record that marks message `message_id` as consumed by `handler`. `make` produces the effects,
/// which take place when the record is committed.
pub(crate) fn consume_held(
    (message_id, handler, admitted): (MessageId, HandlerId, Option<&Arc<Admitted>>),
    cx: &mut RouteContext,
    make: &mut dyn FnMut(&mut RouteContext),
) {
    // the emitted messages get a new sequence number, because the number of `message_id` may be consumed in
    // another log
    let Some(link) = log_of_sender(message_id, cx) else { return };
    let reserved = link.reserve(message_id.app);
    let mut effects = Effects::new(Numbers::parts(reserved.id, handler));
    let mut held = cx.hold_in(&mut effects);
    make(&mut held);
    held.run_deferred();

    if effects.size() > limits::RECORD_BYTES_MAX {
        let bytes = effects.size();
        tracing::error!(
            bytes,
            "a stateless handler emitted more bytes than one log record may hold; its output was dropped"
        );
        return ordered_release::consume(
            &link,
            message_id,
            handler,
            admitted,
            (Emits::default(), None, false),
            HeldEffects::new(),
            cx,
        );
    }

    let (emits, notes) = (std::mem::take(&mut effects.emits), std::mem::take(&mut effects.notes));
    let has_postponed = effects.has_postponed;
    let mut steps = effects.into_steps();
    if !notes.is_empty() {
        steps.insert(0, Box::new(move |cx| cx.note(notes)))
    }
    ordered_release::consume(
        &link,
        message_id,
        handler,
        admitted,
        (emits, Some(reserved), has_postponed),
        steps,
        cx,
    )
}

/// Returns the log that records what a stateless handler does with a message. Returns `None` if the hive has lost the log to
/// which the sender belongs: its next leader has the message, and no other log must record it.
pub(crate) fn log_of_sender(message_id: MessageId, cx: &RouteContext) -> Option<Arc<Link>> {
    let (hive, office) = (cx.turn.hive, cx.turn.office);
    // a hive that is alone loses no log, and records all this in the home log of the app
    match office.is_none() || hive.links.is_none() || hive.breaks(Mutant::StatelessAtHome) {
        true => hive.log_for_stateless(message_id),
        false => hive.logs.as_ref()?.clients().in_office(office),
    }
}
