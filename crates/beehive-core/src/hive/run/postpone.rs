//! Postponed messages. The handler gets a postponed message again at a time of its choosing, and may answer
//! it then.
//!
//! With a journal, the record of the postponing transaction consumes the message and emits it again under a
//! new sequence number. Thus the sender is done with the message and need not wait, and the log contains it
//! until it is handled.

use crate::hive::admission::credits::Cause;
use crate::hive::admission::offices::Office;
use crate::hive::consensus::journal::AppId;
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::sender::deferred::Onward;
use crate::hive::dispatch::sender::queue::SenderQueue;
use crate::hive::dispatch::turn::Turn;
use crate::hive::dispatch::types::handler::Handler;
use crate::hive::message::batch::Messages;
use crate::hive::message::payloads::Payloads;
use crate::message::{Error, ErrorKind};
use crate::panics;
use crate::time::Time;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Schedules message `index` to be handled again at time `at`. `position` is the app's position in the answer
/// chain, if it is in the chain.
///
/// # Errors
///
/// Returns an error if the message cannot be encoded, or if its encoding cannot be decoded, because
/// then the log could not hold the message.
#[cold]
pub(crate) fn postpone(
    handler: &Handler,
    onward: &Arc<dyn Onward>,
    batch: &Arc<dyn Messages>,
    (index, at): (u32, Time),
    position: Option<u16>,
    cx: &mut RouteContext,
) -> Result<(), Error> {
    let onward = onward.clone();

    let effects = match cx.held() {
        Some(effects) if handler.link.is_some() => effects,
        // this app's state is in memory only, but its handler is running as part of another app's record, so
        // the postponement is an effect of that record
        Some(effects) => {
            let batch = batch.clone();
            effects.hold(move |cx| wait(onward, batch, index, position, at, cx.turn));
            return Ok(());
        }
        None => {
            wait(onward, batch.clone(), index, position, at, cx.turn);
            return Ok(());
        }
    };

    let message_id = effects.numbers.take(1).id(0, AppId(handler.app));
    // the record does not contain the time, because after a crash no requester is left, so the message need
    // not wait
    let encoded = panics::catch(AssertUnwindSafe(|| {
        handler.emit_of(&**batch, index, message_id, position, None, &mut Payloads::default())
    }));

    // requesters get to see the text of an exceeded limit, but not that of a panic
    let decoded = encoded.map_err(|panic| (ErrorKind::Panicked, panics::text(&*panic))).and_then(|emit| {
        let Some(emit) = emit else { return Ok(None) };
        let again = batch.again(&emit).map_err(|error| (ErrorKind::Limit, error.to_string()))?;
        Ok(Some((emit, again)))
    });

    let remembered = decoded.map_err(|(kind, why)| {
        let error = Error::of(kind, format!("the message cannot be postponed: {why}"));
        handler.fail(cx.turn.hive, &**batch, index, position, &error);
        error
    })?;
    if let (Some((emit, again)), Some(effects)) = (remembered, cx.held()) {
        effects.emits.push(emit);
        effects.has_postponed = true;
        effects.hold(move |cx| wait(onward, again, 0, position, at, cx.turn))
    }
    Ok(())
}

/// Sets the timer that sends a postponed message again.
fn wait(
    onward: Arc<dyn Onward>,
    batch: Arc<dyn Messages>,
    index: u32,
    position: Option<u16>,
    at: Time,
    turn: &mut Turn,
) {
    if !turn.hive.holds(turn.office) {
        return;
    }
    let (waiting, office) = (turn.hive.types.timers.take(1), turn.office);
    let again = move |turn: &mut Turn| {
        if !turn.hive.holds(office) {
            // the next leader of the log has the message
            return;
        }
        // like every timer, this one holds its credit until everything it causes is done
        turn.cause = Some(Cause::of(waiting, &turn.hive.in_flight));
        turn.office = office;
        let mut queue = SenderQueue::default();
        onward.route_on(&batch, index..index + 1, position, &mut RouteContext::new(&mut queue, turn));
        (turn.cause, turn.office) = (None, Office::NONE)
    };
    turn.hive.timers.in_office(office, at, Box::new(again))
}
