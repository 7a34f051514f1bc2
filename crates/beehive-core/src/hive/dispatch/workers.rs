//! Who runs bees: the threads that wake them, and the hive's runners.
//!
//! Every thread has a slot: what it is busy with, and the bees it has woken and not yet run. A task that begins a turn runs
//! none of them: they are left to the *runners*, threads that share a queue, or, where an IO bee asks for it, to a task of
//! their own that *follows* on the same worker. A [*relief*](crate::hive::scheduling::watchdog) looks at all slots every few
//! milliseconds; when a handler holds its thread, the bees that wait behind it are taken to others, and who has been woken
//! there is told. So a handler that spins or blocks delays its own cells only.

use crate::cell::CellId;
use crate::hive::admission::deferred_wakes::Later;
use crate::hive::consensus::quarantine::Threads;
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::overflow_pool;
use crate::hive::dispatch::overflow_pool::OverflowPools;
use crate::hive::dispatch::turn::{Runnable, Scratch, Turn};
use crate::hive::message::batch::AnyBatch;
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Threads that are told apart: more than handlers may hold. Further ones share slots.
const SLOTS: usize = 512;
/// What bees may take on a worker before it looks after sockets and timers again.
const ON_WORKER: Duration = Duration::from_millis(2);
/// Slots that no living thread has.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
static NEXT_THREAD: AtomicUsize = AtomicUsize::new(0);
thread_local! {
    static SLOT: Cell<usize> = const { Cell::new(usize::MAX) };
    static LEASE: RefCell<Option<Lease>> = const { RefCell::new(None) };
}

/// A thread's slot, until the thread ends.
struct Lease(usize);

impl Drop for Lease {
    fn drop(&mut self) {
        FREE.lock().push(self.0)
    }
}

#[cold]
fn lease() -> usize {
    let slot = FREE.lock().pop().unwrap_or_else(|| NEXT_THREAD.fetch_add(1, Ordering::Relaxed) % SLOTS);
    SLOT.set(slot);
    // a thread that is ending has no place for it; its slot is then not used again
    let _ = LEASE.try_with(|lease| lease.replace(Some(Lease(slot))));
    slot
}

/// How many slots there are that a thread has or had.
pub(crate) fn known_slots() -> usize {
    NEXT_THREAD.load(Ordering::Relaxed).min(SLOTS)
}

pub(crate) type Bees = VecDeque<Arc<dyn Runnable>>;

#[derive(Default)]
struct Slot {
    /// Number of the run that the thread is busy with; even: none.
    run: AtomicU64,
    /// Its app and handler.
    what: AtomicU64,
    /// The first of its cells, and the chain of causes of its first message.
    cell: AtomicU64,
    chain: AtomicU64,
    /// The message that its handler is at, by its place in the batch.
    at: AtomicU64,
    /// The messages themselves: only of handlers that have taken long before.
    shown: Mutex<Option<Arc<dyn AnyBatch>>>,
    woken: Mutex<Bees>,
    /// Who is told at the end of the turn.
    later: Arc<Later>,
    /// If the thread is a runner.
    runner: Mutex<Option<Arc<Post>>>,
}

/// The post of a runner, until it ends or is replaced.
#[derive(Default)]
struct Post(OnceLock<Option<u16>>);

impl Post {
    /// Whether it could be replaced, and counts as a thread of `app`.
    fn replace(&self, app: u16) -> bool {
        self.0.set(Some(app)).is_ok()
    }

    /// The app that the runner now counts for, if it has been replaced.
    fn replaced(&self) -> Option<u16> {
        self.0.get().copied().flatten()
    }

    /// As [`Post::replaced`]; it will not be any more if it has not.
    fn end(&self) -> Option<u16> {
        *self.0.get_or_init(|| None)
    }
}

/// What a thread is busy with.
pub(crate) struct Shown {
    /// Zero: its handler has none.
    pub(crate) cell: CellId,
    pub(crate) chain: u64,
    pub(crate) at: u64,
    pub(crate) batch: Option<Arc<dyn AnyBatch>>,
}

/// The slots and the runners of a hive.
pub(crate) struct Workers {
    slots: Box<[CachePadded<Slot>]>,
    queue: Mutex<Bees>,
    /// Runners that are at work.
    runners: AtomicUsize,
    runners_max: usize,
    /// What runners have kept that are at work no more.
    kept: Mutex<Vec<Scratch>>,
    /// OpenVisits that run bees on a worker now; so many may, so that one worker is always left for sockets and timers. Where
    /// there is one worker, none may.
    turns: AtomicUsize,
    turns_max: usize,
    /// Apart from what changes with every turn: it is read for every bee that runs.
    pub(crate) overflow: CachePadded<OverflowPools>,
}

/// A worker that runs bees.
pub(crate) struct Entered<'a>(&'a AtomicUsize);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Workers {
    pub(crate) fn new(workers: usize) -> Self {
        Workers {
            slots: (0..SLOTS).map(|_| CachePadded::default()).collect(),
            queue: Mutex::default(),
            runners: AtomicUsize::new(0),
            runners_max: workers.max(1),
            kept: Mutex::default(),
            turns: AtomicUsize::new(0),
            turns_max: workers.saturating_sub(1),
            overflow: CachePadded::default(),
        }
    }

    /// Number of the run that the thread of a slot is busy with, even if none, and its app and handler.
    pub(crate) fn busy_with(&self, slot: usize) -> (u64, u64) {
        let slot = &self.slots[slot];
        (slot.run.load(Ordering::Relaxed), slot.what.load(Ordering::Relaxed))
    }

    /// What a slot shows of what its thread is busy with.
    pub(crate) fn shown(&self, slot: usize) -> Shown {
        let slot = &self.slots[slot];
        Shown {
            cell: CellId(slot.cell.load(Ordering::Relaxed)),
            chain: slot.chain.load(Ordering::Relaxed),
            at: slot.at.load(Ordering::Relaxed),
            batch: slot.shown.lock().clone(),
        }
    }

    /// The message that the thread of a slot is at.
    pub(crate) fn is_at(&self, slot: usize) -> u64 {
        self.slots[slot].at.load(Ordering::Relaxed)
    }

    /// Tells whom the thread of a slot has woken.
    pub(crate) fn wake_later(&self, slot: usize) {
        self.slots[slot].later.wake()
    }

    pub(crate) fn take_kept(&self) -> Option<Scratch> {
        self.kept.lock().pop()
    }

    pub(crate) fn keep(&self, scratch: Scratch) {
        let mut kept = self.kept.lock();
        if kept.len() < self.runners_max {
            kept.push(scratch)
        }
    }

    /// The bees that wait at a slot.
    pub(crate) fn take_woken(&self, slot: usize) -> Bees {
        std::mem::take(&mut *self.slots[slot].woken.lock())
    }

    /// The bees that wait for a runner.
    pub(crate) fn take_all_queued(&self) -> Bees {
        std::mem::take(&mut *self.queue.lock())
    }

    /// The runner at a slot, if there is one, counts as a thread of `app` from now on: another one may take its place.
    pub(crate) fn replace_runner(&self, slot: usize, app: u16) -> bool {
        let replaced = self.slots[slot].runner.lock().take().is_some_and(|runner| runner.replace(app));
        if replaced {
            self.runners.fetch_sub(1, Ordering::AcqRel);
        }
        replaced
    }
}

impl HiveInner {
    #[inline]
    pub(crate) fn slot_of_thread(&self) -> usize {
        match SLOT.get() {
            usize::MAX => lease(),
            slot => slot,
        }
    }

    /// A run of `handler` begins on this thread.
    #[inline]
    pub(crate) fn begin_run(&self, slot: usize, app: u16, handler: usize) {
        let slot = &self.workers.slots[slot];
        slot.what.store((app as u64) << 32 | handler as u64, Ordering::Relaxed);
        let run = slot.run.load(Ordering::Relaxed);
        // from even to the next odd number; a slot that threads share may be odd already
        slot.run.store((run + 1) | 1, Ordering::Relaxed);
    }

    /// Of the run that has begun: what it is about. `batch`: of a handler that has taken long before.
    #[inline]
    pub(crate) fn show_run(
        &self,
        slot: usize,
        cell: Option<CellId>,
        chain: u64,
        batch: Option<Arc<dyn AnyBatch>>,
    ) {
        let slot = &self.workers.slots[slot];
        slot.cell.store(cell.map_or(0, |cell| cell.0), Ordering::Relaxed);
        slot.chain.store(chain, Ordering::Relaxed);
        if let Some(batch) = batch {
            *slot.shown.lock() = Some(batch)
        }
    }

    /// What [`HiveInner::show_run`] has shown of the messages is over.
    #[cold]
    pub(crate) fn hide_run(&self, slot: usize) {
        let shown = self.workers.slots[slot].shown.lock().take();
        drop(shown)
    }

    /// The run is at this message.
    #[inline(always)]
    pub(crate) fn run_at(&self, slot: usize, index: u32) {
        self.workers.slots[slot].at.store(u64::from(index), Ordering::Relaxed)
    }

    /// It ends.
    #[inline]
    pub(crate) fn end_run(&self, slot: usize) {
        let slot = &self.workers.slots[slot];
        let run = slot.run.load(Ordering::Relaxed);
        slot.run.store((run | 1).wrapping_add(1), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn wake(&self, slot: usize, bee: Arc<dyn Runnable>) {
        self.workers.slots[slot].woken.lock().push_back(bee)
    }

    /// The next bee that waits at a slot, unless its app has to wait for itself.
    #[inline]
    pub(crate) fn next_bee(&self, slot: usize) -> Option<Arc<dyn Runnable>> {
        loop {
            let next = self.workers.slots[slot].woken.lock().pop_front()?;
            if let Some(next) = self.workers.overflow.keep(next) {
                return Some(next);
            }
        }
    }

    /// Takes one of the workers for running bees, until the return value is dropped.
    #[inline]
    pub(crate) fn enter(&self) -> Option<Entered<'_>> {
        let entered = Entered(&self.workers.turns);
        let taken = self.workers.turns.fetch_add(1, Ordering::Relaxed) < self.workers.turns_max;
        taken.then_some(entered)
    }

    /// Leaves bees to the runners.
    pub(crate) fn give_to_runners(self: &Arc<Self>, mut bees: Bees) {
        self.workers.queue.lock().append(&mut bees);
        self.start_runner()
    }

    /// Leaves bees to a task that runs on this worker when the one that runs now waits for something.
    pub(crate) fn follow_up(self: &Arc<Self>, bees: Bees) {
        let hive = self.clone();
        self.platform.spawn(Box::pin(async move { run_on_worker(&hive, bees) }))
    }

    fn start_runner(self: &Arc<Self>) {
        if self.count_runner() {
            let hive = self.clone();
            // on a thread of its own and not on a worker: what a worker wakes waits for it, and a handler may hold it
            self.platform.spawn_blocking(Box::new(move || Turn::with_kept(&hive, || run(&hive))))
        }
    }

    fn count_runner(&self) -> bool {
        let max = self.workers.runners_max;
        let more = |n: usize| (n < max).then_some(n + 1);
        self.workers.runners.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more).is_ok()
    }

    // No two of these locks are ever held at once: who holds what would depend on how many threads share a slot.
    fn take_queued(&self, slot: usize) -> bool {
        // a few at a time: what is taken may have to be taken back by the relief
        let some: Bees = {
            let mut queue = self.workers.queue.lock();
            let count = queue.len().min(8);
            queue.drain(..count).collect()
        };
        let any = !some.is_empty();
        self.workers.slots[slot].woken.lock().extend(some);
        any
    }
}

/// A runner: runs what is queued until nothing is, or until a handler has held it.
fn run(hive: &Arc<HiveInner>) {
    let slot = hive.slot_of_thread();
    loop {
        let post = Arc::new(Post::default());
        *hive.workers.slots[slot].runner.lock() = Some(post.clone());
        while post.replaced().is_none() && hive.take_queued(slot) {
            Turn::run_slot(hive, slot, None);
            hive.give_back(slot);
        }
        if let Some(app) = post.end() {
            // what it left may be all that is queued
            if !hive.workers.queue.lock().is_empty() {
                hive.start_runner()
            }
            return overflow_pool::run(hive, app);
        }
        hive.workers.runners.fetch_sub(1, Ordering::AcqRel);
        // what was queued since the last look had no runner started for it if this one was counted
        if hive.workers.queue.lock().is_empty() || !hive.count_runner() {
            return;
        }
    }
}

/// Runs bees on a worker, unless too many workers do that; leaves the rest to the runners.
fn run_on_worker(hive: &Arc<HiveInner>, bees: Bees) {
    let slot = hive.slot_of_thread();
    let Some(entered) = hive.enter() else { return hive.give_to_runners(bees) };
    hive.workers.slots[slot].woken.lock().extend(bees);
    let collecting = hive.workers.slots[slot].later.collect();
    Turn::run_slot(hive, slot, Some(ON_WORKER));
    drop(entered);
    drop(collecting);
    if hive.give_back(slot) {
        hive.start_runner()
    }
}

impl HiveInner {
    /// What a turn that is over has left goes behind what others wait for. Whether there was something.
    fn give_back(&self, slot: usize) -> bool {
        let mut left = self.workers.take_woken(slot);
        if left.is_empty() {
            return false;
        }
        self.workers.queue.lock().append(&mut left);
        true
    }
}

impl Threads for HiveInner {
    fn begin_run(&self, slot: usize, app: u16, handler: usize) {
        HiveInner::begin_run(self, slot, app, handler)
    }

    fn end_run(&self, slot: usize) {
        HiveInner::end_run(self, slot)
    }
}
