//! A sender's messages that cannot be delivered yet, because their cells have several owners or none is known.
//!
//! They wait at the sender, and hold up only later messages of the same sender to the same cells.

use crate::cell::CellId;
use crate::hive::HiveInner;
use crate::hive::turn::{Place, Turn};
use crate::seams::BoxFuture;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A run of messages that waits at its sender.
pub(crate) trait Parked: Send {
    fn app(&self) -> u16;
    fn cells(&self) -> &[CellId];
    /// Goes to all cells of the app.
    fn is_sweep(&self) -> bool {
        false
    }
    /// A sweep that has reached all of these cells.
    fn has_passed(&self, _: &[CellId]) -> bool {
        false
    }
    /// Delivers it if its cells have one owner.
    fn try_deliver(self: Box<Self>, turn: &mut Turn) -> Result<(), Box<dyn Parked>>;
    /// Completes when its cells had one owner.
    fn unite(&self, hive: &Arc<HiveInner>) -> BoxFuture<()>;
}

#[derive(Default)]
struct Waiting {
    parked: Vec<Box<dyn Parked>>,
    resolving: bool,
}

/// What waits at one sender.
#[derive(Default)]
pub(crate) struct Lane {
    /// Written by the sender, and under the lock; a sender that reads `false` has nothing waiting.
    any: AtomicBool,
    waiting: Mutex<Waiting>,
}

/// A sender's lane; made when it first has to wait.
#[derive(Clone, Default)]
pub(crate) struct SenderLane(Option<Arc<Lane>>);

impl SenderLane {
    /// A lane that its clones share.
    pub(crate) fn shared() -> Self {
        SenderLane(Some(Arc::default()))
    }

    /// Whether a message to `cells` must wait behind an earlier one.
    #[inline(always)]
    pub(crate) fn blocks(&self, app: u16, cells: &[CellId]) -> bool {
        match &self.0 {
            Some(lane) if lane.any.load(Ordering::Acquire) => lane.blocks(app, cells),
            _ => false,
        }
    }

    /// Whether a message to all cells of an app must wait behind an earlier one.
    pub(crate) fn blocks_sweep(&self, app: u16) -> bool {
        match &self.0 {
            Some(lane) if lane.any.load(Ordering::Acquire) => {
                lane.waiting.lock().parked.iter().any(|p| p.app() == app)
            }
            _ => false,
        }
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|lane| !lane.any.load(Ordering::Acquire))
    }

    /// Lets a run wait, and sees to it that it is delivered.
    pub(crate) fn park(&mut self, parked: Box<dyn Parked>, hive: &Arc<HiveInner>) {
        let lane = self.0.get_or_insert_with(Arc::default).clone();
        let mut waiting = lane.waiting.lock();
        lane.any.store(true, Ordering::Release);
        waiting.parked.push(parked);
        if !std::mem::replace(&mut waiting.resolving, true) {
            drop(waiting);
            hive.platform.spawn(Box::pin(resolve(lane, hive.clone())));
        }
    }
}

fn intersect(parked: &dyn Parked, app: u16, cells: &[CellId]) -> bool {
    parked.app() == app
        && match parked.is_sweep() {
            true => !parked.has_passed(cells),
            false => parked.cells().iter().any(|c| cells.contains(c)),
        }
}

fn in_the_way(earlier: &dyn Parked, later: &dyn Parked) -> bool {
    intersect(earlier, later.app(), later.cells()) || (later.is_sweep() && earlier.app() == later.app())
}

impl Lane {
    fn blocks(&self, app: u16, cells: &[CellId]) -> bool {
        self.waiting.lock().parked.iter().any(|p| intersect(&**p, app, cells))
    }

    /// Delivers, in order, what can be delivered. Whether something is left.
    fn retry(&self, turn: &mut Turn) -> bool {
        let mut waiting = self.waiting.lock();
        let mut left: Vec<Box<dyn Parked>> = Vec::new();
        for parked in std::mem::take(&mut waiting.parked) {
            if left.iter().any(|earlier| in_the_way(&**earlier, &*parked)) {
                left.push(parked)
            } else if let Err(parked) = parked.try_deliver(turn) {
                left.push(parked)
            }
        }
        waiting.parked = left;
        let any = !waiting.parked.is_empty();
        self.any.store(any, Ordering::Release);
        waiting.resolving = any;
        any
    }
}

async fn resolve(lane: Arc<Lane>, hive: Arc<HiveInner>) {
    loop {
        let Some(united) = lane.waiting.lock().parked.first().map(|p| p.unite(&hive)) else { return };
        united.await;
        let any = Turn::with(&hive, Place::Runners, |turn| lane.retry(turn));
        if !any || hive.is_over() {
            return;
        }
    }
}
