//! A sender's messages that cannot be delivered yet, because their cells have several owners or none is known.
//!
//! They wait at the sender, and hold up only later messages of the same sender to the same cells. Owners are asked for
//! all of them at once; merges go on side by side.

use crate::cell::{CellId, CellSet};
use crate::hive::HiveInner;
use crate::hive::errand::Errands;
use crate::hive::parked::{Head, Parked, Queue};
use crate::hive::turn::{Place, Turn};
use crate::limits;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

#[derive(Default)]
struct Waiting {
    parked: Queue,
    /// Cells whose owners are being united.
    uniting: Vec<(u16, CellSet)>,
    resolving: bool,
}

type ErrandsByApp = Vec<(u16, Arc<Errands>)>;

/// What waits at one sender.
#[derive(Default)]
pub(crate) struct Lane {
    /// Written under the lock; a sender that reads `false` has nothing waiting.
    any: AtomicBool,
    waiting: Mutex<Waiting>,
    /// More waits, or owners have been united.
    news: Notify,
    /// By app: what the sender has left to others.
    errands: OnceLock<Mutex<ErrandsByApp>>,
    /// What was too deep for one stack.
    put_off: OnceLock<Arc<Errands>>,
    /// The sender has merged: this is where its messages wait. Set under the lock.
    heir: OnceLock<Arc<Lane>>,
}

/// A sender's lane; made when it first has to wait.
#[derive(Clone, Default)]
pub(crate) struct SenderLane(Option<Arc<Lane>>);

impl SenderLane {
    /// A lane that its clones share.
    pub(crate) fn shared() -> Self {
        SenderLane(Some(Arc::default()))
    }

    /// The same lane once more, for what the sender has somebody else send.
    pub(crate) fn share(&mut self) -> Self {
        SenderLane(Some(self.made().clone()))
    }

    fn made(&mut self) -> &Arc<Lane> {
        self.0.get_or_insert_with(Arc::default)
    }

    /// Whether a message to `cells` must wait behind an earlier one.
    #[inline(always)]
    pub(crate) fn blocks(&self, app: u16, cells: &[CellId]) -> bool {
        match &self.0 {
            Some(lane) if lane.any.load(Ordering::Acquire) => lane.with(|queue| queue.blocks(app, cells)),
            _ => false,
        }
    }

    /// Whether a message to all cells of an app must wait behind an earlier one.
    pub(crate) fn blocks_sweep(&self, app: u16) -> bool {
        match &self.0 {
            Some(lane) if lane.any.load(Ordering::Acquire) => lane.with(|queue| queue.blocks_sweep(app)),
            _ => false,
        }
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        let Some(lane) = &self.0 else { return true };
        !self.is_put_off() && (!lane.any.load(Ordering::Acquire) || lane.with(|queue| queue.is_empty()))
    }

    /// Whether something that the sender has left to others, for an app, is not done.
    #[inline(always)]
    pub(crate) fn has_errands(&self, app: u16) -> bool {
        match self.0.as_ref().and_then(|lane| lane.errands.get()) {
            Some(errands) => errands.lock().iter().any(|(of, errands)| *of == app && errands.are_open()),
            None => false,
        }
    }

    /// What the sender has left to others, for an app.
    pub(crate) fn errands(&mut self, app: u16) -> Arc<Errands> {
        let mut all = self.made().errands.get_or_init(Mutex::default).lock();
        match all.iter().find(|(of, _)| *of == app) {
            Some((_, errands)) => errands.clone(),
            None => {
                let errands = Errands::of(app);
                all.push((app, errands.clone()));
                errands
            }
        }
    }

    /// Whether something of the sender was too deep for one stack and is not done.
    #[inline(always)]
    pub(crate) fn is_put_off(&self) -> bool {
        match self.0.as_ref().and_then(|lane| lane.put_off.get()) {
            Some(put_off) => put_off.are_open(),
            None => false,
        }
    }

    /// What was too deep for one stack; of `app` first.
    pub(crate) fn put_off(&mut self, app: u16) -> Arc<Errands> {
        self.made().put_off.get_or_init(|| Errands::of_the_deep(app)).clone()
    }

    /// Lets a run wait, and sees to it that it is delivered.
    pub(crate) fn park(&mut self, parked: Box<dyn Parked>, hive: &Arc<HiveInner>) {
        let mut lane = self.made().clone();
        loop {
            let mut waiting = lane.waiting.lock();
            if let Some(heir) = lane.heir.get().cloned() {
                drop(waiting);
                lane = heir;
                continue;
            }
            waiting.parked.push(parked);
            return lane.clone().see_to_it(waiting.look(&lane), hive);
        }
    }

    /// Takes over what waits at a sender that has merged into this one. Whoever still has that sender's lane uses this one
    /// from now on.
    pub(crate) fn absorb(&mut self, gone: SenderLane, hive: &Arc<HiveInner>) {
        let Some(gone) = gone.0 else { return };
        if Arc::strong_count(&gone) == 1 && !gone.any.load(Ordering::Acquire) {
            return;
        }
        let mut heir = self.made().clone();
        while let Some(next) = heir.heir.get() {
            heir = next.clone()
        }
        let mut left = gone.waiting.lock();
        let mut waiting = heir.waiting.lock();
        waiting.parked.append(&mut left.parked);
        let _ = gone.heir.set(heir.clone());
        gone.any.store(true, Ordering::Release);
        drop(left);
        let any = !waiting.parked.is_empty();
        let resolving = any.then(|| waiting.look(&heir));
        drop(waiting);
        if let Some(resolving) = resolving {
            heir.see_to_it(resolving, hive)
        }
    }
}

impl Waiting {
    /// Something waits. Whether somebody sees to it already.
    fn look(&mut self, lane: &Lane) -> bool {
        lane.any.store(true, Ordering::Release);
        std::mem::replace(&mut self.resolving, true)
    }
}

impl Lane {
    /// Looks at what waits, here or where that is now.
    #[cold]
    fn with<R>(&self, look: impl FnOnce(&Queue) -> R) -> R {
        let waiting = self.waiting.lock();
        match self.heir.get() {
            Some(heir) => {
                drop(waiting);
                heir.with(look)
            }
            None => look(&waiting.parked),
        }
    }

    fn see_to_it(self: Arc<Self>, resolving: bool, hive: &Arc<HiveInner>) {
        if resolving {
            self.news.notify_one()
        } else {
            hive.spawn(Box::pin(resolve(self, hive.clone())));
        }
    }

    /// What nothing is before and nobody is uniting, by app; a sweep by itself.
    fn heads(&self) -> Vec<Head> {
        let waiting = self.waiting.lock();
        let uniting = |app, cells: &[CellId]| {
            waiting.uniting.iter().any(|(of, united)| *of == app && united[..] == *cells)
        };
        waiting.parked.heads(uniting)
    }

    /// Delivers, in order, what can be delivered. Whether something is left.
    fn retry(&self, turn: &mut Turn) -> bool {
        let mut waiting = self.waiting.lock();
        waiting.parked.deliver(turn);
        let any = !waiting.parked.is_empty();
        // who still has the lane of a sender that has merged must look where its messages wait now
        self.any.store(any || self.heir.get().is_some(), Ordering::Release);
        waiting.resolving = any;
        any
    }

    /// Begins to unite the owners of what is still without one.
    fn unite(self: &Arc<Self>, hive: &Arc<HiveInner>) {
        for Head { app, owners, sets, .. } in self.heads() {
            for cells in sets {
                let mut waiting = self.waiting.lock();
                if waiting.uniting.len() >= limits::MERGES_PER_SENDER_MAX {
                    return;
                }
                waiting.uniting.push((app, cells.clone()));
                drop(waiting);
                let (lane, united) = (self.clone(), owners.clone().unite(cells.clone(), hive));
                // a task of its own, as it must not be dropped half-way
                hive.spawn(Box::pin(async move {
                    united.await;
                    lane.waiting.lock().uniting.retain(|(at, set)| *at != app || *set != cells);
                    lane.news.notify_one()
                }))
            }
        }
    }
}

async fn resolve(lane: Arc<Lane>, hive: Arc<HiveInner>) {
    loop {
        let ended = hive.ended.notified();
        if hive.is_over() {
            return;
        }
        for Head { owners, sets, .. } in lane.heads() {
            owners.ask(sets, &hive).await
        }
        if !Turn::with(&hive, Place::Runners, |turn| lane.retry(turn)) {
            return;
        }
        lane.unite(&hive);
        tokio::select! {
            () = lane.news.notified() => {}
            () = ended => {}
        }
    }
}
