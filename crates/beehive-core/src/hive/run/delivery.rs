//! Runs a delivery in its bee.

use crate::app::{Handlers, Handles};
use crate::hive::admission::outside_lanes::Routing;
use crate::hive::bee::body::Body;
use crate::hive::bee::delivery::Delivery;
use crate::hive::bee::lifecycle::Bee;
use crate::hive::bee::traffic::Peer;
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::turn::Turn;
use crate::hive::message::batch::batch_of;
use crate::hive::message::trace;
use crate::hive::run::journaled::run_journaled;
use crate::hive::run::results::release;
use crate::hive::run::transaction::{Run, execute};
use crate::message::Message;
use crate::state::any;
use std::sync::Arc;

/// Runs the messages in a delivery. Without a journal, their effects take place immediately.
pub(crate) fn run_delivery<A: Handlers + Handles<M>, M: Message>(
    bee: &Arc<Bee>,
    body: &mut Body,
    delivery: Delivery,
    turn: &mut Turn,
) {
    if body.pending.is_some() {
        return run_journaled::<A, M>(bee, body, delivery, turn);
    }

    let Delivery { batch, cause, first, count, position, cells, .. } = delivery;
    // this always succeeds, because `Delivery::run` is instantiated for the type of the batch
    let Some(batch) = batch_of::<M>(batch) else { return };

    // keep the batch open while this run may still pass a message on to an app that has a log
    let _open = batch.admitted.clone().map(Routing);
    turn.cause = cause;
    let began = body.traffic.count(Peer::of(&batch.source), count).then(|| turn.hive.now());
    body.now = body.now.max(turn.moment());
    let run = Run { app: &bee.app, bee: Some(bee.id), cells: &cells, position, now: body.now };

    let mut cx = RouteContext::new(&mut body.queue, turn);
    // while tracing is on, each message is a run of its own, so its effects continue its own causal chain
    let step = if trace::is_on() { 1 } else { count };
    let end = first + count;
    let mut next = first;

    while next < end {
        let range = next..next + step;
        next += step;
        let done = execute::<A, M>(&run, any::of(&mut body.app), (&batch, range), None, &mut cx);

        if next >= end
            && let Some(began) = began
        {
            body.traffic.timed(count, cx.turn.hive.now().since(began))
        }

        release::<A, M>(&run, &batch, done, &mut cx)
    }

    turn.cause = None;
}
