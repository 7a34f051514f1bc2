//! A sender's messages that cannot be delivered yet, because their cells have several owners or none is known.
//!
//! They wait at the sender, and hold up only later messages of the same sender to the same cells. Owners are asked for
//! all of them at once; merges go on side by side.

use crate::cell::{CellId, CellSet};
use crate::hive::dispatch::blocked::{Blocked, Head, Queue};
use crate::hive::dispatch::deferred::{Deferred, DeferredQueue};
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::ordered_release::{Release, Releases};
use crate::hive::dispatch::turn::{Place, Turn};
use crate::limits;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

#[derive(Default)]
struct Waiting {
    blocked: Queue,
    /// Cells whose owners are being united.
    uniting: Vec<(u16, CellSet)>,
    resolving: bool,
}

/// What a sender has left to others, by app.
type DeferredByApp = Vec<(u16, Arc<DeferredQueue>)>;

/// What waits at one sender.
#[derive(Default)]
pub(crate) struct Lane {
    /// Written under the lock; a sender that reads `false` has nothing waiting.
    any: AtomicBool,
    waiting: Mutex<Waiting>,
    /// More waits, or owners have been united.
    news: Notify,
    deferred_queues: OnceLock<Mutex<DeferredByApp>>,
    /// What was too deep for one stack. Left under the lock of the deferred_queues.
    too_deep: OnceLock<Arc<DeferredQueue>>,
    /// What is let go when it is committed.
    releases: Releases,
    /// The sender has merged: this is where its messages wait. Set under both locks.
    forward_to: OnceLock<Arc<Lane>>,
}

/// A sender's lane; made when it first has to wait.
#[derive(Clone, Default)]
pub(crate) struct SenderQueue(Option<Arc<Lane>>);

impl SenderQueue {
    /// A lane that its clones share.
    pub(crate) fn shared() -> Self {
        SenderQueue(Some(Arc::default()))
    }

    /// The same lane once more, for what the sender has somebody else send.
    pub(crate) fn share(&mut self) -> Self {
        SenderQueue(Some(self.made().clone()))
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

    /// Whether nothing waits. Takes no lock under which something is delivered.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|lane| !lane.any.load(Ordering::Acquire)) && !self.must_defer()
    }

    /// Whether somebody else has it, too: a timer, say, that will ring.
    pub(crate) fn is_shared(&self) -> bool {
        self.0.as_ref().is_some_and(|lane| Arc::strong_count(lane) > 1)
    }

    /// Whether something that the sender has left to others, for an app, is not done.
    #[inline(always)]
    pub(crate) fn has_deferred(&self, app: u16) -> bool {
        match self.0.as_ref().and_then(|lane| lane.root().deferred_queues.get()) {
            Some(deferred_queues) => deferred_queues
                .lock()
                .iter()
                .any(|(of, deferred_queues)| *of == app && deferred_queues.are_open()),
            None => false,
        }
    }

    /// Leaves something to others, for an app.
    pub(crate) fn leave(&mut self, app: u16, deferred: Deferred, turn: &mut Turn) {
        self.made().locked(|_, all| {
            let deferred_queues = match all.iter().find(|(of, _)| *of == app) {
                Some((_, deferred_queues)) => deferred_queues,
                None => {
                    all.push((app, DeferredQueue::of(app)));
                    &all[all.len() - 1].1
                }
            };
            deferred_queues.leave(deferred, turn)
        })
    }

    /// Whether something of the sender was too deep for one stack and is not done.
    #[inline(always)]
    pub(crate) fn must_defer(&self) -> bool {
        match self.0.as_ref().and_then(|lane| lane.root().too_deep.get()) {
            Some(too_deep) => too_deep.are_open(),
            None => false,
        }
    }

    /// Leaves what is too deep for one stack; of `app` first.
    pub(crate) fn defer(&mut self, app: u16, deferred: Deferred, turn: &mut Turn) {
        self.made().locked(|lane, _| {
            lane.too_deep.get_or_init(|| DeferredQueue::for_deep_stacks(app)).leave(deferred, turn);
        })
    }

    /// A place among what is let go when it is committed, behind all that has one already.
    pub(crate) fn queue_release(&mut self) -> (Arc<Lane>, u64) {
        self.made().locked(|lane, _| (lane.clone(), lane.releases.enter()))
    }

    /// Lets a run wait, and sees to it that it is delivered.
    pub(crate) fn block(&mut self, blocked: Box<dyn Blocked>, hive: &Arc<HiveInner>) {
        let mut lane = self.made().clone();
        loop {
            let mut waiting = lane.waiting.lock();
            if let Some(forward_to) = lane.forward_to.get().cloned() {
                drop(waiting);
                lane = forward_to;
                continue;
            }
            waiting.blocked.push(blocked);
            return lane.clone().see_to_it(waiting.look(&lane), hive);
        }
    }

    /// Takes over what waits at a sender that merges into this one. Whoever still has that sender's lane uses this one from
    /// then on. Not while something that sender has left to others is under way: that is to be waited for.
    pub(crate) fn absorb(&mut self, gone: &SenderQueue, hive: &Arc<HiveInner>) -> bool {
        let Some(gone) = &gone.0 else { return true };
        let deferred_queues = gone.deferred_queues.get_or_init(Mutex::default).lock();
        let is_busy = deferred_queues.iter().any(|(_, deferred_queues)| deferred_queues.are_open())
            || gone.too_deep.get().is_some_and(|too_deep| too_deep.are_open())
            || gone.releases.are_open();
        if is_busy {
            return false;
        }
        let forward_to = self.made().root().clone();
        let mut left = gone.waiting.lock();
        let mut waiting = forward_to.waiting.lock();
        waiting.blocked.append(&mut left.blocked);
        let _ = gone.forward_to.set(forward_to.clone());
        gone.any.store(true, Ordering::Release);
        drop((left, deferred_queues));
        let any = !waiting.blocked.is_empty();
        let resolving = any.then(|| waiting.look(&forward_to));
        drop(waiting);
        if let Some(resolving) = resolving {
            forward_to.see_to_it(resolving, hive)
        }
        true
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
    /// Where its messages wait now.
    fn root(self: &Arc<Lane>) -> &Arc<Lane> {
        let mut lane = self;
        while let Some(forward_to) = lane.forward_to.get() {
            lane = forward_to
        }
        lane
    }

    /// Does something to what is left to others, which nobody absorbs meanwhile.
    fn locked<R>(self: &Arc<Lane>, run: impl FnOnce(&Arc<Lane>, &mut DeferredByApp) -> R) -> R {
        let mut lane = self.root();
        loop {
            let mut deferred_queues = lane.deferred_queues.get_or_init(Mutex::default).lock();
            match lane.forward_to.get() {
                None => return run(lane, &mut deferred_queues),
                Some(forward_to) => {
                    drop(deferred_queues);
                    lane = forward_to.root()
                }
            }
        }
    }

    /// What has a place among what is let go is committed.
    pub(crate) fn committed(self: &Arc<Lane>, place: u64, release: Release, turn: &mut Turn) {
        let mut lane = SenderQueue(Some(self.clone()));
        self.releases.committed(place, release, &mut RouteContext::new(&mut lane, turn))
    }

    /// Looks at what waits, here or where that is now.
    #[cold]
    fn with<R>(&self, look: impl FnOnce(&Queue) -> R) -> R {
        let waiting = self.waiting.lock();
        match self.forward_to.get() {
            Some(forward_to) => {
                drop(waiting);
                forward_to.with(look)
            }
            None => look(&waiting.blocked),
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
        waiting.blocked.heads(uniting)
    }

    /// Delivers, in order, what can be delivered. Whether something is left.
    fn retry(&self, turn: &mut Turn) -> bool {
        let mut waiting = self.waiting.lock();
        waiting.blocked.deliver(turn);
        let any = !waiting.blocked.is_empty();
        // who still has the lane of a sender that has merged must look where its messages wait now
        self.any.store(any || self.forward_to.get().is_some(), Ordering::Release);
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
            // nobody is told of it any more: what it holds is given back
            let blocked = std::mem::take(&mut lane.waiting.lock().blocked);
            return drop(blocked);
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
