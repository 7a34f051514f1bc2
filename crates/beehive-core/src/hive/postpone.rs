//! Messages that their handler put off: given to it again when it said, and answered then.
//!
//! Where there is a log, such a message is consumed and emitted again, under a number of its own, by the record of the
//! transaction that put it off. So its sender is done with it and need not wait, and the log remembers it until it is
//! handled.

use crate::app::{Handlers, Handles};
use crate::hive::batch::{Batch, Source};
use crate::hive::credit::Cause;
use crate::hive::lane::SenderLane;
use crate::hive::receiver::{AppReceiver, emit_of, remembered_name};
use crate::hive::runtime::AppRuntime;
use crate::hive::transaction::fail;
use crate::hive::turn::Turn;
use crate::hive::types::Receiver;
use crate::hive::unwinding;
use crate::message::{Error, ErrorKind, Message};
use crate::state::image::decode;
use crate::time::Time;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Has message `index` handled again at `at`. `position`: that of the app in the chain.
///
/// # Errors
/// A log could not remember the message: what it is encoded to cannot be decoded.
#[cold]
pub(crate) fn postpone<A: Handlers + Handles<M>, M: Message>(
    app: &Arc<AppRuntime<A>>,
    batch: &Arc<Batch<M>>,
    index: u32,
    position: Option<u16>,
    at: Time,
    turn: &mut Turn,
) -> Result<(), Error> {
    let Some(message) = batch.messages.get(index as usize) else { return Ok(()) };
    let remembered = app.link.as_ref().and(turn.gate.as_mut());
    let Some(gate) = remembered else {
        wait(app.clone(), batch.clone(), index, position, at, turn);
        return Ok(());
    };
    let fact = gate.numbers.take(1).fact(0, app.index);
    // without the time: whoever waits for the answer does not outlive a crash
    let name = remembered_name::<A, M>();
    let encoded =
        unwinding::catch(AssertUnwindSafe(|| emit_of(batch, index, message, fact, name, position, None)));
    let encoded = encoded.map_err(|panic| unwinding::text(&*panic));
    let decoded = encoded.and_then(|emit| {
        let message = decode::<M>(M::NAME, &emit.bytes).map_err(|error| error.to_string())?;
        Ok((emit, message))
    });
    let (emit, message) = decoded.map_err(|why| {
        let error = Error::of(ErrorKind::Limit, format!("it cannot be put off: {why}"));
        fail::<A, M>(app, turn.hive, batch, index, position, &error);
        error
    })?;
    let source = Source { bee: batch.source.bee, handler: batch.source.handler, ..Source::again(&emit) };
    let again = Batch { messages: vec![message], source, sink: batch.sink.clone(), admitted: None };
    let (app, again) = (app.clone(), Arc::new(again));
    gate.emits.push(emit);
    gate.hold(move |_, turn| wait(app, again, 0, position, at, turn));
    Ok(())
}

/// Sets the timer.
fn wait<A: Handlers + Handles<M>, M: Message>(
    app: Arc<AppRuntime<A>>,
    batch: Arc<Batch<M>>,
    index: u32,
    position: Option<u16>,
    at: Time,
    turn: &mut Turn,
) {
    let waiting = turn.hive.types.timers.take(1);
    let again = move |turn: &mut Turn| {
        // as of any timer: it counts as one that waits until all that it brings about is done
        turn.cause = Some(Cause::of(waiting, &turn.hive.under_way));
        let lane = &mut SenderLane::default();
        AppReceiver::<A, M>::new(app).route(&batch, index..index + 1, position, lane, turn);
        turn.cause = None
    };
    turn.hive.timers.at(at, Box::new(again))
}
