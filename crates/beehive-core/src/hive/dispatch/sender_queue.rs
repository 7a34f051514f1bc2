//! A sender's messages that cannot be delivered yet, because their cells have several owners or none is known.
//!
//! They wait at the sender, and hold up only later messages of the same sender to the same cells. Owners are asked for
//! all of them at once; merges go on side by side.

use crate::cell::{CellId, CellSet};
use crate::hive::dispatch::blocked::{Head, Parked, Queue};
use crate::hive::dispatch::deferred::{Errand, Errands};
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
    parked: Queue,
    /// Cells whose owners are being united.
    uniting: Vec<(u16, CellSet)>,
    resolving: bool,
}

/// What a sender has left to others, by app.
type ErrandsByApp = Vec<(u16, Arc<Errands>)>;

/// What waits at one sender.
#[derive(Default)]
pub(crate) struct Lane {
    /// Written under the lock; a sender that reads `false` has nothing waiting.
    any: AtomicBool,
    waiting: Mutex<Waiting>,
    /// More waits, or owners have been united.
    news: Notify,
    errands: OnceLock<Mutex<ErrandsByApp>>,
    /// What was too deep for one stack. Left under the lock of the errands.
    put_off: OnceLock<Arc<Errands>>,
    /// What is let go when it is committed.
    releases: Releases,
    /// The sender has merged: this is where its messages wait. Set under both locks.
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

    /// Whether nothing waits. Takes no lock under which something is delivered.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|lane| !lane.any.load(Ordering::Acquire)) && !self.is_put_off()
    }

    /// Whether somebody else has it, too: a timer, say, that will ring.
    pub(crate) fn is_shared(&self) -> bool {
        self.0.as_ref().is_some_and(|lane| Arc::strong_count(lane) > 1)
    }

    /// Whether something that the sender has left to others, for an app, is not done.
    #[inline(always)]
    pub(crate) fn has_errands(&self, app: u16) -> bool {
        match self.0.as_ref().and_then(|lane| lane.root().errands.get()) {
            Some(errands) => errands.lock().iter().any(|(of, errands)| *of == app && errands.are_open()),
            None => false,
        }
    }

    /// Leaves something to others, for an app.
    pub(crate) fn leave(&mut self, app: u16, errand: Errand, turn: &mut Turn) {
        self.made().locked(|_, all| {
            let errands = match all.iter().find(|(of, _)| *of == app) {
                Some((_, errands)) => errands,
                None => {
                    all.push((app, Errands::of(app)));
                    &all[all.len() - 1].1
                }
            };
            errands.leave(errand, turn)
        })
    }

    /// Whether something of the sender was too deep for one stack and is not done.
    #[inline(always)]
    pub(crate) fn is_put_off(&self) -> bool {
        match self.0.as_ref().and_then(|lane| lane.root().put_off.get()) {
            Some(put_off) => put_off.are_open(),
            None => false,
        }
    }

    /// Leaves what is too deep for one stack; of `app` first.
    pub(crate) fn put_off(&mut self, app: u16, errand: Errand, turn: &mut Turn) {
        self.made().locked(|lane, _| {
            lane.put_off.get_or_init(|| Errands::of_the_deep(app)).leave(errand, turn);
        })
    }

    /// A place among what is let go when it is committed, behind all that has one already.
    pub(crate) fn queue_release(&mut self) -> (Arc<Lane>, u64) {
        self.made().locked(|lane, _| (lane.clone(), lane.releases.enter()))
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

    /// Takes over what waits at a sender that merges into this one. Whoever still has that sender's lane uses this one from
    /// then on. Not while something that sender has left to others is under way: that is to be waited for.
    pub(crate) fn absorb(&mut self, gone: &SenderLane, hive: &Arc<HiveInner>) -> bool {
        let Some(gone) = &gone.0 else { return true };
        let errands = gone.errands.get_or_init(Mutex::default).lock();
        let is_busy = errands.iter().any(|(_, errands)| errands.are_open())
            || gone.put_off.get().is_some_and(|put_off| put_off.are_open())
            || gone.releases.are_open();
        if is_busy {
            return false;
        }
        let heir = self.made().root().clone();
        let mut left = gone.waiting.lock();
        let mut waiting = heir.waiting.lock();
        waiting.parked.append(&mut left.parked);
        let _ = gone.heir.set(heir.clone());
        gone.any.store(true, Ordering::Release);
        drop((left, errands));
        let any = !waiting.parked.is_empty();
        let resolving = any.then(|| waiting.look(&heir));
        drop(waiting);
        if let Some(resolving) = resolving {
            heir.see_to_it(resolving, hive)
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
        while let Some(heir) = lane.heir.get() {
            lane = heir
        }
        lane
    }

    /// Does something to what is left to others, which nobody absorbs meanwhile.
    fn locked<R>(self: &Arc<Lane>, run: impl FnOnce(&Arc<Lane>, &mut ErrandsByApp) -> R) -> R {
        let mut lane = self.root();
        loop {
            let mut errands = lane.errands.get_or_init(Mutex::default).lock();
            match lane.heir.get() {
                None => return run(lane, &mut errands),
                Some(heir) => {
                    drop(errands);
                    lane = heir.root()
                }
            }
        }
    }

    /// What has a place among what is let go is committed.
    pub(crate) fn committed(self: &Arc<Lane>, place: u64, release: Release, turn: &mut Turn) {
        let mut lane = SenderLane(Some(self.clone()));
        self.releases.committed(place, release, &mut RouteContext::new(&mut lane, turn))
    }

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
            // nobody is told of it any more: what it holds is given back
            let parked = std::mem::take(&mut lane.waiting.lock().parked);
            return drop(parked);
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
