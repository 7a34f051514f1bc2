//! One sender's queue. It holds the messages that cannot be delivered yet because their cells have several
//! owners or no known owner.
//!
//! These messages wait at the sender. They block only the sender's later messages to the same cells. Each
//! sender with waiting messages has one `resolve` task, which finds the owners. For each app, the task asks
//! for all awaited cells in one request. Merges of owners run concurrently.
//!
//! Lock order: `deferred_queues` before `waiting`; and when two bees merge, the queue of the bee that ends
//! before the queue of the bee that remains. Messages are delivered while `waiting` is locked, so a thread
//! that has locked a mailbox must not lock `waiting`.

use crate::cell::{CellId, CellSet};
use crate::hive::consensus::journal::LaneId;
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::sender::blocked::{Blocked, Head, Queue};
use crate::hive::dispatch::sender::deferred::{Deferred, DeferredQueue};
use crate::hive::dispatch::sender::ordered_release::{Release, Releases};
use crate::hive::dispatch::turn::{Place, Turn};
use crate::limits;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

/// A merge in flight, or a step of a sweep.
struct Uniting {
    app: u16,
    cells: CellSet,
    /// Whether it counts towards the limit on merges of the sender.
    counts: bool,
}

impl Uniting {
    fn is(&self, app: u16, cells: &[CellId]) -> bool {
        self.app == app && self.cells[..] == *cells
    }
}

/// A sender's waiting messages and the state of its `resolve` task.
#[derive(Default)]
struct Waiting {
    /// The waiting messages, in the order in which they were sent.
    blocked: Queue,
    /// The merges in flight.
    uniting: Vec<Uniting>,
    /// Whether a `resolve` task is running for this queue.
    resolving: bool,
    /// Number of threads that are sending on the sender's behalf: see [`SenderQueue::enter`].
    entered: usize,
}

/// The work that a sender has deferred to the threads running bees, by app.
type DeferredByApp = Vec<(u16, Arc<DeferredQueue>)>;

/// The shared state of one sender's queue.
#[derive(Default)]
pub(crate) struct QueueState {
    /// Whether any message is waiting, or the queue has been merged into another one. Threads write this flag
    /// with release ordering under the lock of `waiting`. The sender reads it with acquire ordering and
    /// without locking. If the sender reads `false`, none of the messages it has added is still waiting.
    any: AtomicBool,
    /// The waiting messages.
    waiting: Mutex<Waiting>,
    /// Notified when a message is added or a merge is complete. Only the `resolve` task waits for this, and
    /// `notify_one` stores a permit, so no wake-up is lost.
    news: Notify,
    /// The sender's deferred work. A thread also takes this lock to add to `too_deep` or `releases`.
    deferred_queues: OnceLock<Mutex<DeferredByApp>>,
    /// Work that would have nested too deeply on one stack. Threads add to it under the lock of
    /// `deferred_queues`.
    too_deep: OnceLock<Arc<DeferredQueue>>,
    /// Effects, in order, waiting for their records to be committed.
    releases: Releases,
    /// The queue that replaced this one when the sender was merged into another bee. The merging thread
    /// sets it while it holds the locks of both `deferred_queues` and `waiting` of this queue. Its value
    /// therefore cannot change while another thread holds either lock.
    forward_to: OnceLock<Arc<QueueState>>,
    /// The lanes of the sender, if it has moved to another hive, which sends what is not handled. From then on, what is sent on
    /// these lanes through this queue is dropped. Other lanes stay in this hive: those of the apps whose stateless handlers
    /// ran for a message of the sender. A thread sets this under the lock of `waiting`.
    closed: OnceLock<Vec<LaneId>>,
    /// Number of deliveries that may come back.
    lent: AtomicUsize,
}

/// The queue to which a delivery comes back if its receiver's hive loses the receiver.
pub(crate) struct Back(Arc<QueueState>);

impl Back {
    pub(crate) fn to(state: Arc<QueueState>) -> Back {
        state.lent.fetch_add(1, Ordering::Relaxed);
        Back(state)
    }
}

impl Clone for Back {
    fn clone(&self) -> Back {
        Back::to(self.0.clone())
    }
}

impl Drop for Back {
    fn drop(&mut self) {
        self.0.lent.fetch_sub(1, Ordering::Release);
    }
}

/// A thread is sending on a sender's behalf, outside of a run of the sender.
pub(crate) struct Entered(Arc<QueueState>);

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.waiting.lock().entered -= 1
    }
}

/// The releases that a sender had reserved at some moment.
pub(crate) struct Unreleased {
    state: Arc<QueueState>,
    /// The place behind the last one.
    end: u64,
}

impl Unreleased {
    /// Checks whether all of them have been released.
    pub(crate) fn are_over(&self) -> bool {
        self.state.releases.has_released(self.end)
    }
}

/// A handle to a sender's queue. The queue is allocated on first use.
#[derive(Clone, Default)]
pub(crate) struct SenderQueue(Option<Arc<QueueState>>);

impl SenderQueue {
    /// Creates a handle whose queue is already allocated, so all its clones share that queue.
    pub(crate) fn shared() -> Self {
        SenderQueue(Some(Arc::default()))
    }

    /// Clones the handle for work delegated on the sender's behalf, such as a timer.
    pub(crate) fn share(&mut self) -> Self {
        SenderQueue(Some(self.made().clone()))
    }

    /// Returns the queue to which a delivery comes back.
    pub(crate) fn of(back: &Back) -> Self {
        SenderQueue(Some(back.0.clone()))
    }

    /// Returns the queue, for a delivery that may have to come back.
    pub(crate) fn back(&mut self) -> Back {
        Back::to(self.made().clone())
    }

    /// Drops everything that is waiting, because the hive no longer leads the log to which the sender belongs. Whoever sends
    /// through the queue later finds that, too ([`HiveInner::holds`]).
    pub(crate) fn abandon(&self) {
        let Some(state) = &self.0 else { return };
        let blocked = state.waiting(|state, waiting| {
            state.news.notify_one();
            std::mem::take(&mut waiting.blocked)
        });
        // dropped without a lock, because this may run the app's code
        drop(blocked)
    }

    /// Puts messages that their receiver has given back in front of all others.
    pub(crate) fn block_first(mut self, mut blocked: Box<dyn Blocked>, hive: &Arc<HiveInner>) {
        let resolving = self.made().waiting(|state, waiting| {
            if state.is_closed_for(blocked.lane()) {
                return Err(blocked);
            }
            blocked.enter(state);
            waiting.blocked.push_first(blocked);
            Ok((state.clone(), waiting.look(state)))
        });
        match resolving {
            Ok((state, resolving)) => state.see_to_it(resolving, hive),
            // without a lock, because this may run the app's code
            Err(blocked) => drop(blocked),
        }
    }

    /// Returns the queue, allocating it if necessary.
    fn made(&mut self) -> &Arc<QueueState> {
        self.0.get_or_insert_with(Arc::default)
    }

    /// Checks whether a message to `cells` must wait behind an earlier message.
    #[inline(always)]
    pub(crate) fn blocks(&self, app: u16, cells: &[CellId]) -> bool {
        match &self.0 {
            Some(state) if state.any.load(Ordering::Acquire) => {
                state.with(|queue| queue.blocks(app, cells)) || state.root().closed.get().is_some()
            }
            _ => false,
        }
    }

    /// Checks whether a message to all cells of an app must wait behind an earlier message.
    pub(crate) fn blocks_sweep(&self, app: u16) -> bool {
        match &self.0 {
            Some(state) if state.any.load(Ordering::Acquire) => state.with(|queue| queue.blocks_sweep(app)),
            _ => false,
        }
    }

    /// Closes the queue for `lanes`, because its sender moves to another hive: drops the messages on these lanes that are
    /// waiting, and those that are sent through the queue from now on. If deferred work or a reserved release is unfinished,
    /// or a thread is sending on the sender's behalf, changes nothing and returns `false`; the caller must try again later.
    pub(crate) fn close(&self, lanes: &[LaneId]) -> bool {
        let Some(state) = &self.0 else { return true };
        let closed = state.locked(|state, deferred_queues| {
            let is_busy = deferred_queues.iter().any(|(_, queue)| queue.are_open())
                || state.too_deep.get().is_some_and(|too_deep| too_deep.are_open())
                || state.releases.are_open();
            if is_busy {
                return None;
            }
            let mut waiting = state.waiting.lock();
            if waiting.entered > 0 {
                return None;
            }
            let _ = state.closed.set(lanes.to_vec());
            // from now on, every sender takes the slow path, and finds the queue closed
            state.any.store(true, Ordering::Release);
            state.news.notify_one();
            Some(waiting.blocked.take_lanes(lanes))
        });
        // dropped without a lock, because this may run the app's code
        closed.map(drop).is_some()
    }

    /// Begins to send on `lane` on the sender's behalf, for a timer. Until the returned value is dropped, the sender neither
    /// leaves nor merges. Returns `None` if the queue is closed for the lane: the sender has moved to another hive, which has
    /// set the timer as well.
    pub(crate) fn enter(&mut self, lane: LaneId) -> Option<Entered> {
        self.made().waiting(|state, waiting| {
            if state.is_closed_for(lane) {
                return None;
            }
            waiting.entered += 1;
            Some(Entered(state.clone()))
        })
    }

    /// Checks that no message is waiting and no work is deferred because of its depth. Does not lock
    /// `waiting`: the caller may hold the lock of a mailbox, which deliveries lock after `waiting`.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|state| !state.any.load(Ordering::Acquire)) && !self.must_defer()
    }

    /// Checks whether another handle to the queue exists, for example in a timer that will still send
    /// messages. Deliveries that may come back do not count.
    pub(crate) fn is_shared(&self) -> bool {
        // a delivery that may come back is unacknowledged, which the caller checks, too
        self.0.as_ref().is_some_and(|state| {
            let lent = state.lent.load(Ordering::Acquire);
            Arc::strong_count(state) > 1 + lent
        })
    }

    /// Checks whether the sender has deferred work for `app` to other threads that is not finished yet.
    #[inline(always)]
    pub(crate) fn has_deferred(&self, app: u16) -> bool {
        match self.0.as_ref().and_then(|state| state.root().deferred_queues.get()) {
            Some(queues) => queues.lock().iter().any(|(of, queue)| *of == app && queue.are_open()),
            None => false,
        }
    }

    /// Defers work for `app` to the threads running bees.
    pub(crate) fn leave(&mut self, app: u16, deferred: Deferred, turn: &mut Turn) {
        self.made().locked(|_, all| {
            let queue = match all.iter().find(|(of, _)| *of == app) {
                Some((_, queue)) => queue,
                None => {
                    all.push((app, DeferredQueue::of(app)));
                    &all[all.len() - 1].1
                }
            };

            queue.leave(deferred, turn)
        })
    }

    /// Checks whether any of the sender's work that nested too deeply is unfinished.
    #[inline(always)]
    pub(crate) fn must_defer(&self) -> bool {
        match self.0.as_ref().and_then(|state| state.root().too_deep.get()) {
            Some(too_deep) => too_deep.are_open(),
            None => false,
        }
    }

    /// Defers work that would nest too deeply. If this is the first such work, the threads attribute the
    /// queue to `app`.
    pub(crate) fn defer(&mut self, app: u16, deferred: Deferred, turn: &mut Turn) {
        self.made().locked(|state, _| {
            state.too_deep.get_or_init(|| DeferredQueue::for_deep_stacks(app)).leave(deferred, turn);
        })
    }

    /// Reserves the next place in the order of releases.
    pub(crate) fn queue_release(&mut self) -> (Arc<QueueState>, u64) {
        self.made().locked(|state, _| (state.clone(), state.releases.enter()))
    }

    /// Adds a run of messages to the queue and makes sure that a task resolves the owners of its cells.
    pub(crate) fn block(&mut self, mut blocked: Box<dyn Blocked>, hive: &Arc<HiveInner>) {
        let resolving = self.made().waiting(|state, waiting| {
            if state.is_closed_for(blocked.lane()) {
                return Err(blocked);
            }
            blocked.enter(state);
            waiting.blocked.push(blocked);
            Ok((state.clone(), waiting.look(state)))
        });
        match resolving {
            Ok((state, resolving)) => state.see_to_it(resolving, hive),
            // without a lock, because this may run the app's code
            Err(blocked) => drop(blocked),
        }
    }

    /// Returns the releases of this sender that wait for records, or `None` if there are none. A log that may be another one
    /// than the sender's commits these records.
    pub(crate) fn unreleased(&self) -> Option<Unreleased> {
        let state = self.0.as_ref().filter(|state| state.releases.are_open())?;
        Some(Unreleased { end: state.releases.end(), state: state.clone() })
    }

    /// Takes over the waiting messages of `gone`, a sender being merged into this one. From then on, all
    /// handles to the queue of `gone` use this queue. If deferred work or a reserved release of `gone` is
    /// unfinished, changes nothing and returns `false`; the caller must try again later.
    pub(crate) fn absorb(&mut self, gone: &SenderQueue, hive: &Arc<HiveInner>) -> bool {
        let Some(gone) = &gone.0 else { return true };

        let deferred_queues = gone.deferred_queues.get_or_init(Mutex::default).lock();
        let is_busy = deferred_queues.iter().any(|(_, queue)| queue.are_open())
            || gone.too_deep.get().is_some_and(|too_deep| too_deep.are_open())
            || gone.releases.are_open();

        if is_busy {
            return false;
        }

        let forward_to = self.made().root().clone();
        let mut left = gone.waiting.lock();
        if left.entered > 0 {
            return false;
        }
        let mut waiting = forward_to.waiting.lock();

        waiting.blocked.append(&mut left.blocked, &forward_to);
        // what is in flight for a message stays in flight, or it would begin again: a sweep would take a step twice
        waiting.uniting.append(&mut left.uniting);
        let _ = gone.forward_to.set(forward_to.clone());
        // from now on, every reader of the old queue takes the lock and finds `forward_to`
        gone.any.store(true, Ordering::Release);
        drop((left, deferred_queues));
        // Its task waits for news of this queue, and all news are now for the other one. It finds nothing, and ends
        gone.news.notify_one();

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
    /// Returns the waiting messages that are first in line for their cells and have no merge in flight, grouped by app; each
    /// sweep is a separate entry.
    fn heads(&self) -> Vec<Head> {
        let uniting = |app, cells: &[CellId]| self.uniting.iter().any(|merge| merge.is(app, cells));
        self.blocked.heads(uniting)
    }

    /// Records that a message is waiting. Returns whether a `resolve` task is already running.
    fn look(&mut self, state: &QueueState) -> bool {
        state.any.store(true, Ordering::Release);
        std::mem::replace(&mut self.resolving, true)
    }
}

impl QueueState {
    /// Returns the queue at the end of the chain of merges.
    fn root(self: &Arc<QueueState>) -> &Arc<QueueState> {
        let mut state = self;
        while let Some(forward_to) = state.forward_to.get() {
            state = forward_to
        }
        state
    }

    /// Calls `run` with the current queue and its deferred work, under a lock that excludes `absorb`.
    fn locked<R>(self: &Arc<QueueState>, run: impl FnOnce(&Arc<QueueState>, &mut DeferredByApp) -> R) -> R {
        let mut state = self.root();
        loop {
            let mut deferred_queues = state.deferred_queues.get_or_init(Mutex::default).lock();

            match state.forward_to.get() {
                None => return run(state, &mut deferred_queues),
                Some(forward_to) => {
                    drop(deferred_queues);
                    state = forward_to.root()
                }
            }
        }
    }

    /// Calls `run` with the waiting messages of this queue, or of the queue that has replaced it, and with that queue.
    fn waiting<R>(self: &Arc<QueueState>, run: impl FnOnce(&Arc<QueueState>, &mut Waiting) -> R) -> R {
        let mut state = self.root();
        loop {
            let mut waiting = state.waiting.lock();
            match state.forward_to.get() {
                None => return run(state, &mut waiting),
                Some(forward_to) => {
                    drop(waiting);
                    state = forward_to.root()
                }
            }
        }
    }

    /// Checks whether the sender has moved to another hive, which sends on this lane.
    fn is_closed_for(&self, lane: LaneId) -> bool {
        self.closed.get().is_some_and(|closed| closed.contains(&lane))
    }

    /// Makes the `resolve` task look at the waiting messages, if there are any.
    pub(crate) fn wake(self: &Arc<Self>) {
        self.root().news.notify_one()
    }

    /// Reports that the record at place `place` is committed. Releases the effects of committed records in
    /// order.
    pub(crate) fn committed(self: &Arc<QueueState>, place: u64, release: Release, turn: &mut Turn) {
        let mut queue = SenderQueue(Some(self.clone()));
        self.releases.committed(place, release, &mut RouteContext::new(&mut queue, turn))
    }

    /// Calls `look` with the waiting messages of this queue, or of the queue that replaced it.
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

    /// Starts a `resolve` task, or notifies the one that is running.
    fn see_to_it(self: Arc<Self>, resolving: bool, hive: &Arc<HiveInner>) {
        if resolving {
            self.news.notify_one()
        } else {
            hive.spawn(Box::pin(resolve(self, hive.clone())));
        }
    }

    /// Delivers, in order, all messages that can be delivered. Returns whether any message is still waiting.
    ///
    /// If no message is waiting, this clears `resolving` under the same lock under which `block`, on another
    /// thread, adds a message. Either `block` comes first and this call sees its message, or this call comes
    /// first, and `block` finds `resolving` cleared and starts a new task.
    fn retry(&self, turn: &mut Turn) -> bool {
        let mut waiting = self.waiting.lock();
        waiting.blocked.deliver(turn);

        let any = !waiting.blocked.is_empty();
        // if the sender has been merged, every holder of a handle to the old queue must still follow
        // `forward_to`
        let is_closed = self.closed.get().is_some();
        self.any.store(any || is_closed || self.forward_to.get().is_some(), Ordering::Release);
        waiting.resolving = any;
        any
    }

    /// Starts merges for the cells that still have no owner or several, up to the limit on merges per sender.
    ///
    /// A merge that takes long waits for something: mostly for a log that commits nothing. It stops counting, so that those
    /// that wait for one log do not hold up those that need another one.
    fn unite(self: &Arc<Self>, hive: &Arc<HiveInner>) {
        let mut begun = Vec::new();
        {
            let mut waiting = self.waiting.lock();
            if self.forward_to.get().is_some() {
                // what waits has moved to the queue of the bee into which the sender merged, and is begun there
                return;
            }
            let counted = waiting.uniting.iter().filter(|merge| merge.counts).count();
            let mut left = limits::MERGES_PER_SENDER_MAX.saturating_sub(counted);
            for Head { app, owners, sets, .. } in waiting.heads() {
                let sets = sets.into_iter().take(left);
                left -= sets.len();
                for cells in sets {
                    waiting.uniting.push(Uniting { app, cells: cells.clone(), counts: true });
                    begun.push((app, cells, owners.clone()))
                }
            }
        }
        for (app, cells, owners) in begun {
            let (state, mut united) = (self.clone(), owners.unite(cells.clone(), hive));
            let long = hive.platform.sleep(limits::MERGE_COUNTED_FOR_MAX);
            // a merge needs a task of its own: it holds bodies of bees, so it must run to completion
            hive.spawn(Box::pin(async move {
                tokio::select! {
                    biased;
                    () = &mut united => {}
                    () = long => {
                        state.of_merge(app, &cells, |merges, at| {
                            if let Some(merge) = merges.get_mut(at) {
                                merge.counts = false
                            }
                        });
                        united.await
                    }
                }
                state.of_merge(app, &cells, |merges, at| {
                    merges.swap_remove(at);
                })
            }))
        }
    }

    /// Changes the merges in flight, given the place of the one with these cells, and wakes the `resolve` task. Two senders that
    /// have merged may each have a sweep of one app; this is then about one of them.
    fn of_merge(self: &Arc<Self>, app: u16, cells: &[CellId], change: impl FnOnce(&mut Vec<Uniting>, usize)) {
        self.waiting(|state, waiting| {
            if let Some(at) = waiting.uniting.iter().position(|merge| merge.is(app, cells)) {
                change(&mut waiting.uniting, at)
            }
            state.news.notify_one()
        })
    }
}

/// Resolves the owners of a queue's waiting messages until none is left or the hive is over.
async fn resolve(state: Arc<QueueState>, hive: Arc<HiveInner>) {
    loop {
        // created before the check of `is_over`, so that no notification is lost
        let ended = hive.ended.notified();
        if hive.is_over() {
            // these messages will not be delivered; dropping them returns their credits
            let blocked = std::mem::take(&mut state.waiting.lock().blocked);
            return drop(blocked);
        }

        let heads = state.waiting.lock().heads();
        for Head { owners, sets, .. } in heads {
            owners.ask(sets, &hive).await
        }

        if !Turn::with(&hive, Place::Runners, |turn| state.retry(turn)) {
            return;
        }

        state.unite(&hive);

        tokio::select! {
            biased;
            () = state.news.notified() => {}
            () = ended => {}
        }
    }
}
