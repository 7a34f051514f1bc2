//! Sweeps: a message to every cell of a dictionary, one transaction each.
//!
//! A sweep visits bees; each bee sends one ordinary message to every cell that it holds at that moment. When bees merge
//! between the visit and the answer to it, each visit keeps to the cells that its own bee held, so no cell is met twice.

use crate::app::{Handlers, Handles};
use crate::cell::{CellSet, Outcome};
use crate::hive::Address;
use crate::hive::batch::{Batch, Shared, Source};
use crate::hive::bee::{Bee, Body, Delivery, RunDelivery};
use crate::hive::credit::Cause;
use crate::hive::lane::SenderLane;
use crate::hive::receiver::AppReceiver;
use crate::hive::routes::Routes;
use crate::hive::runtime::AppRuntime;
use crate::hive::turn::Turn;
use crate::hive::types::Receiver;
use crate::key::Key;
use crate::message::{Each, Message};
use crate::state::column::Columns;
use crate::state::image::decode;
use crate::time::Time;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// An app with a handler for each cell of dictionary `dict`, as a receiver of `M`.
pub(crate) struct EachReceiver<A: Handlers, K, M> {
    pub(crate) app: Arc<AppRuntime<A>>,
    pub(crate) run: RunDelivery<A>,
    pub(crate) kind: std::marker::PhantomData<fn(K, M)>,
}

impl<A: Handles<Each<K, M>>, K: Key, M: Message> Receiver<M> for EachReceiver<A, K, M> {
    fn app(&self) -> u16 {
        self.app.index
    }

    fn answers(&self) -> bool {
        false
    }

    fn outcome(&self, _: &M, _: &Turn) -> Outcome {
        Outcome::Cells
    }

    fn is_journaled(&self) -> bool {
        // what a sweep sends is sent from within each bee
        false
    }

    fn route(
        &self,
        batch: &Arc<Batch<M>>,
        range: Range<u32>,
        _: Option<u16>,
        _: &mut SenderLane,
        turn: &mut Turn,
    ) {
        for index in range {
            // all at once: a later message of the same sender must not overtake the sweep
            self.app.routes.for_each_bee(|bee| visit(bee, batch, index, self.run, turn))
        }
    }
}

fn visit<A: Handlers, M: Message>(
    bee: &Arc<Bee<A>>,
    batch: &Arc<Batch<M>>,
    index: u32,
    run: RunDelivery<A>,
    turn: &mut Turn,
) {
    let delivery = Delivery {
        run,
        batch: batch.clone(),
        cause: turn.cause.clone(),
        first: index,
        count: 1,
        position: None,
        cells: CellSet::new(),
        sweep: true,
    };
    // refused: it has no cells any more
    let _ = bee.clone().push(delivery, turn);
}

/// How a sweep is spread.
pub(crate) struct Pace {
    /// Held until the sweep is done.
    pub(crate) cause: Arc<Cause>,
    pub(crate) start: Time,
    pub(crate) period: Duration,
}

/// Visits one part of the bees after the other, spread over `period`.
pub(crate) fn paced<A: Handlers, M: Message>(
    app: Arc<AppRuntime<A>>,
    batch: Arc<Batch<M>>,
    run: RunDelivery<A>,
    part: usize,
    pace: Pace,
    turn: &mut Turn,
) {
    turn.cause = Some(pace.cause.clone());
    app.routes.for_each_bee_of_shard(part, |bee| visit(bee, &batch, 0, run, turn));
    turn.cause = None;
    let part = part + 1;
    if part < Routes::<A>::SHARDS {
        // done by half of the period, so that the next sweep finds this one over
        let at = pace.start + pace.period.mul_f64(0.5 * part as f64 / Routes::<A>::SHARDS as f64);
        turn.hive.timers.at(at, Box::new(move |turn| paced(app, batch, run, part, pace, turn)));
    }
}

/// Sends the swept message to every cell of dictionary `D` that the bee holds.
pub(crate) fn run_sweep<A: Handles<Each<K, M>>, K: Key, M: Message>(
    bee: &Arc<Bee<A>>,
    body: &mut Body<A>,
    delivery: Delivery<A>,
    turn: &mut Turn,
) {
    let app = &bee.app;
    turn.cause = delivery.cause;
    let Ok(batch) = (delivery.batch as Arc<dyn std::any::Any + Send + Sync>).downcast::<Batch<M>>() else {
        return;
    };
    let Some(dict) = app.swept(A::HANDLER) else { return };
    let confined = &delivery.cells;
    let messages: Vec<Each<K, M>> = body
        .app
        .cells_of(dict)
        .into_iter()
        .filter(|(cell, _)| confined.is_empty() || confined.contains(cell))
        .filter_map(|(_, key)| {
            Some(Each { key: decode("a key", &key).ok()?, msg: Shared::of(&batch, delivery.first)? })
        })
        .collect();
    if messages.is_empty() {
        return;
    }
    let source =
        Source { sender: Address::App(app.index), bee: Some(bee.id), lane: 0, ..batch.source.clone() };
    let count = messages.len() as u32;
    let batch = Arc::new(Batch { messages, source, sink: None });
    AppReceiver::<A, Each<K, M>>::new(app.clone()).route(&batch, 0..count, None, &mut body.lane, turn);
    turn.cause = None;
}
