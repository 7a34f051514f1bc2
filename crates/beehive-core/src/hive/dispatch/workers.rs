//! The threads that run bees: a slot for each thread, which describes it, and the hive's runners.
//!
//! Every thread has a slot. The slot shows the thread's current run, and holds the bees that the thread
//! has scheduled but not yet run. A task that begins a turn does not run bees itself. It gives them to the
//! *runners*, which are threads that share a queue, or, if an IO bee asks for it, to a *follow-up* task on
//! the same worker.
//!
//! The [watchdog](crate::hive::scheduling::watchdog) checks all slots every few milliseconds. When a handler
//! holds its thread, the watchdog moves the bees waiting behind it to overflow pools and sends the thread's
//! deferred wake-ups. A handler that spins or blocks therefore delays only the cells of its own bee.

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
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Number of slots. It exceeds the number of threads that handlers may hold. If a process has more threads
/// than slots, some threads share a slot.
const SLOTS: usize = 512;
/// The time for which bees may run on a worker before the worker polls sockets and timers again.
const ON_WORKER: Duration = Duration::from_millis(2);
/// With at least this many bees in the queue, a runner starts another one, unless the maximum number is active. Starting
/// one takes as long as running a few bees.
const BEES_FOR_ANOTHER_RUNNER: usize = 16;
/// Maximum number of wake-ups, each a system call, that a runner sends before it runs bees that were left to it.
const WAKES_BEFORE_BEES: usize = 4;
/// The slots of threads that have ended.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
/// Number of threads that found `FREE` empty. This number modulo `SLOTS` is the slot of the next such
/// thread.
static NEXT_THREAD: AtomicUsize = AtomicUsize::new(0);
thread_local! {
    /// This thread's slot; `usize::MAX` before the first use.
    static SLOT: Cell<usize> = const { Cell::new(usize::MAX) };
    /// Returns the slot to `FREE` when the thread ends.
    static LEASE: RefCell<Option<Lease>> = const { RefCell::new(None) };
}

/// A thread's claim to its slot. Dropping it frees the slot.
struct Lease(usize);

impl Drop for Lease {
    fn drop(&mut self) {
        FREE.lock().push(self.0)
    }
}

/// Assigns a slot to this thread.
#[cold]
fn lease() -> usize {
    let slot = FREE.lock().pop().unwrap_or_else(|| NEXT_THREAD.fetch_add(1, Ordering::Relaxed) % SLOTS);
    SLOT.set(slot);
    // this fails on a thread whose thread-local data is being destroyed; its slot is then never reused
    let _ = LEASE.try_with(|lease| lease.replace(Some(Lease(slot))));
    slot
}

/// Returns the number of slots that have ever been in use. The slots above it have no thread.
pub(crate) fn known_slots() -> usize {
    NEXT_THREAD.load(Ordering::Relaxed).min(SLOTS)
}

/// A queue of scheduled bees.
pub(crate) type Bees = VecDeque<Arc<dyn Runnable>>;

/// The state of one thread: its current run, and the bees and wake-ups waiting for it. The thread writes the
/// atomics and the watchdog reads them, both with relaxed ordering. If the thread begins a new run between
/// two of the watchdog's reads, the watchdog sees a mix of both runs. This is harmless: the watchdog acts
/// only on a run that it has seen for several milliseconds, and at worst it blames the wrong handler.
#[derive(Default)]
struct Slot {
    /// Number of the current run; odd while a handler runs, even otherwise.
    run: AtomicU64,
    /// App (upper 32 bits) and handler (lower 32 bits) of the run.
    what: AtomicU64,
    /// First cell of the run; zero if it has none.
    cell: AtomicU64,
    /// Chain number of the first message of the run.
    chain: AtomicU64,
    /// Index in the batch of the message that is being handled.
    at: AtomicU64,
    /// The run's messages. Set only for handlers that have been slow in the past.
    shown: Mutex<Option<Arc<dyn AnyBatch>>>,
    /// The bees that this thread has scheduled but not yet run.
    woken: Mutex<Bees>,
    /// Wake-ups that this thread's turn has deferred until it ends.
    later: Arc<Later>,
    /// This thread's post, if the thread is a runner.
    runner: Mutex<Option<Arc<Post>>>,
}

/// A runner's post. The runner may end just as the watchdog is replacing it. Whichever of the two sets the
/// cell first wins, and subtracts the runner from `Workers::runners`. `None` means that the runner ended;
/// `Some(app)` means that it became a thread of the overflow pool of `app`.
#[derive(Default)]
struct Post(OnceLock<Option<u16>>);

impl Post {
    /// Makes the runner a thread of the overflow pool of `app`. Returns `false` if the runner has
    /// already ended or been replaced.
    fn replace(&self, app: u16) -> bool {
        self.0.set(Some(app)).is_ok()
    }

    /// Returns the app whose overflow pool the runner now belongs to, if it has been replaced.
    fn replaced(&self) -> Option<u16> {
        self.0.get().copied().flatten()
    }

    /// Ends the post so that the watchdog can no longer replace the runner. If the watchdog has already
    /// replaced it, returns the app.
    fn end(&self) -> Option<u16> {
        *self.0.get_or_init(|| None)
    }
}

/// A snapshot of the run that a slot's thread is executing.
pub(crate) struct Shown {
    /// The first cell of the run; zero if it has none.
    pub(crate) cell: CellId,
    /// Chain number of the first message.
    pub(crate) chain: u64,
    /// Index in the batch of the message that is being handled.
    pub(crate) at: u64,
    /// The run's messages, if the slot shows them.
    pub(crate) batch: Option<Arc<dyn AnyBatch>>,
}

/// The slots, the queue and the runners of a hive.
pub(crate) struct Workers {
    /// The slots, by number.
    slots: Box<[CachePadded<Slot>]>,
    /// The bees waiting for a runner.
    queue: Mutex<Bees>,
    /// Number of active runners.
    runners: AtomicUsize,
    /// Whether a runner that is waking tasks will look at the queue afterwards. Whoever clears this has left bees in the
    /// queue for that runner.
    is_runner_coming: CachePadded<AtomicBool>,
    /// Maximum number of active runners: the number of workers, at least one.
    runners_max: usize,
    /// Buffers of runners and pool threads that have ended.
    kept: Mutex<Vec<Scratch>>,
    /// Number of workers that are running bees.
    turns: AtomicUsize,
    /// Maximum of `turns`: one less than the number of workers, so that at least one worker always polls
    /// sockets and timers; zero on a runtime with a single worker.
    turns_max: usize,
    /// The overflow pools. They have their own cache line, because every run reads them while every turn
    /// writes the fields above.
    pub(crate) overflow: CachePadded<OverflowPools>,
}

/// A permit to run bees on a worker. Dropping it returns the permit.
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
            is_runner_coming: CachePadded::default(),
            runners_max: workers.max(1),
            kept: Mutex::default(),
            turns: AtomicUsize::new(0),
            turns_max: workers.saturating_sub(1),
            overflow: CachePadded::default(),
        }
    }

    /// Returns the number of the slot's current run (an even number if no handler is running), and the
    /// run's app and handler.
    pub(crate) fn busy_with(&self, slot: usize) -> (u64, u64) {
        let slot = &self.slots[slot];
        (slot.run.load(Ordering::Relaxed), slot.what.load(Ordering::Relaxed))
    }

    /// Returns a snapshot of the run that the slot's thread is executing.
    pub(crate) fn shown(&self, slot: usize) -> Shown {
        let slot = &self.slots[slot];
        Shown {
            cell: CellId(slot.cell.load(Ordering::Relaxed)),
            chain: slot.chain.load(Ordering::Relaxed),
            at: slot.at.load(Ordering::Relaxed),
            batch: slot.shown.lock().clone(),
        }
    }

    /// Returns the index of the message that a slot's thread is handling.
    pub(crate) fn is_at(&self, slot: usize) -> u64 {
        self.slots[slot].at.load(Ordering::Relaxed)
    }

    /// Sends the wake-ups deferred by a slot's thread.
    pub(crate) fn wake_later(&self, slot: usize) {
        self.slots[slot].later.wake()
    }

    /// Takes the buffers left behind by an ended thread, if there are any.
    pub(crate) fn take_kept(&self) -> Option<Scratch> {
        self.kept.lock().pop()
    }

    /// Keeps an ending thread's buffers, unless there are already enough for all runners.
    pub(crate) fn keep(&self, scratch: Scratch) {
        let mut kept = self.kept.lock();
        if kept.len() < self.runners_max {
            kept.push(scratch)
        }
    }

    /// Takes the bees waiting at a slot.
    pub(crate) fn take_woken(&self, slot: usize) -> Bees {
        std::mem::take(&mut *self.slots[slot].woken.lock())
    }

    /// Takes all bees waiting for a runner.
    pub(crate) fn take_all_queued(&self) -> Bees {
        std::mem::take(&mut *self.queue.lock())
    }

    /// Makes a slot's runner, if there is one, a thread of the overflow pool of `app`, so that another runner
    /// can be started. Returns whether it did so.
    pub(crate) fn replace_runner(&self, slot: usize, app: u16) -> bool {
        let replaced = self.slots[slot].runner.lock().take().is_some_and(|runner| runner.replace(app));
        if replaced {
            self.runners.fetch_sub(1, Ordering::AcqRel);
        }

        replaced
    }
}

impl HiveInner {
    /// Returns the slot of the calling thread.
    #[inline]
    pub(crate) fn slot_of_thread(&self) -> usize {
        match SLOT.get() {
            usize::MAX => lease(),
            slot => slot,
        }
    }

    /// Shows that a run of `handler` begins.
    #[inline]
    pub(crate) fn begin_run(&self, slot: usize, app: u16, handler: usize) {
        let slot = &self.workers.slots[slot];
        slot.what.store((app as u64) << 32 | handler as u64, Ordering::Relaxed);
        let run = slot.run.load(Ordering::Relaxed);
        // go from an even number to the next odd one; if several threads share the slot, the number may
        // already be odd
        slot.run.store((run + 1) | 1, Ordering::Relaxed);
    }

    /// Shows the cell and the chain of the current run to other threads. `batch` is `Some` only for handlers
    /// that have been slow in the past.
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

    /// Hides the messages shown by [`HiveInner::show_run`], and drops them outside the lock.
    #[cold]
    pub(crate) fn hide_run(&self, slot: usize) {
        let shown = self.workers.slots[slot].shown.lock().take();
        drop(shown)
    }

    /// Returns the place that shows which message of the batch the run is handling.
    #[inline(always)]
    pub(crate) fn run_at(&self, slot: usize) -> &AtomicU64 {
        &self.workers.slots[slot].at
    }

    /// Shows that the run has ended.
    #[inline]
    pub(crate) fn end_run(&self, slot: usize) {
        let slot = &self.workers.slots[slot];
        let run = slot.run.load(Ordering::Relaxed);
        slot.run.store((run | 1).wrapping_add(1), Ordering::Relaxed);
    }

    /// Adds a scheduled bee to a slot.
    #[inline]
    pub(crate) fn wake(&self, slot: usize, bee: Arc<dyn Runnable>) {
        self.workers.slots[slot].woken.lock().push_back(bee)
    }

    /// Takes the next bee waiting at a slot. If the bee's app has used up its overflow threads, moves the bee
    /// to the app's pool and tries the next one.
    #[inline]
    pub(crate) fn next_bee(&self, slot: usize) -> Option<Arc<dyn Runnable>> {
        loop {
            let next = self.workers.slots[slot].woken.lock().pop_front()?;
            if let Some(next) = self.workers.overflow.keep(next) {
                return Some(next);
            }
        }
    }

    /// Takes a permit to run bees on a worker, if one is left. A refused attempt counts until it is dropped,
    /// so a concurrent attempt may be refused needlessly; its bees then go to the runners.
    #[inline]
    pub(crate) fn enter(&self) -> Option<Entered<'_>> {
        let entered = Entered(&self.workers.turns);
        let taken = self.workers.turns.fetch_add(1, Ordering::Relaxed) < self.workers.turns_max;
        taken.then_some(entered)
    }

    /// Gives bees to the runners.
    pub(crate) fn give_to_runners(self: &Arc<Self>, mut bees: Bees) {
        self.workers.queue.lock().append(&mut bees);
        self.start_runner()
    }

    /// Gives bees to a task that runs on this worker as soon as the current task waits for something. If
    /// `if_quick` is set, the task leaves bees whose handlers recently held their threads to the runners.
    pub(crate) fn follow_up(self: &Arc<Self>, bees: Bees, if_quick: bool) {
        let hive = self.clone();
        self.platform.spawn(Box::pin(async move { run_on_worker(&hive, bees, if_quick) }))
    }

    /// Leaves the queued bees to a runner that will look at the queue. If there is none, starts a runner, unless the maximum
    /// number of runners is active.
    fn start_runner(self: &Arc<Self>) {
        let is_left = &self.workers.is_runner_coming;
        let is_left = is_left.load(Ordering::Relaxed) && is_left.swap(false, Ordering::AcqRel);
        if !is_left && self.count_runner() {
            let hive = self.clone();
            // use a blocking thread, not a worker: a handler may block, and tasks woken by a blocked worker
            // would be stuck behind it
            self.platform.spawn_blocking(Box::new(move || Turn::with_kept(&hive, || run(&hive))))
        }
    }

    /// Counts one more runner. Returns `false` if the maximum number of runners is active.
    fn count_runner(&self) -> bool {
        let max = self.workers.runners_max;
        // Most calls come while all runners are active, so this looks before it writes. A runner that ends is uncounted before
        // it takes the lock of the queue for the last time. Whoever has pushed after that sees the lower number.
        if self.workers.runners.load(Ordering::Relaxed) >= max {
            return false;
        }
        let more = |n: usize| (n < max).then_some(n + 1);
        self.workers.runners.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more).is_ok()
    }

    /// Moves some bees from the shared queue to a slot. Returns whether there were any.
    ///
    /// This never holds the queue's lock and the slot's lock at the same time, so they need no order.
    fn take_queued(self: &Arc<Self>, slot: usize) -> bool {
        // take only a few at a time, because the watchdog has to move them away if a handler holds this
        // thread
        let (some, left): (Bees, usize) = {
            let mut queue = self.workers.queue.lock();
            let count = queue.len().min(8);
            (queue.drain(..count).collect(), queue.len())
        };
        if left >= BEES_FOR_ANOTHER_RUNNER {
            self.start_runner()
        }

        let any = !some.is_empty();
        self.workers.slots[slot].woken.lock().extend(some);
        any
    }
}

/// The loop of a runner. It runs queued bees until the queue is empty, or until the watchdog has replaced
/// the runner because a handler held its thread.
fn run(hive: &Arc<HiveInner>) {
    let slot = hive.slot_of_thread();
    loop {
        let post = Arc::new(Post::default());
        *hive.workers.slots[slot].runner.lock() = Some(post.clone());

        while post.replaced().is_none() && hive.take_queued(slot) {
            // collect wake-ups, so that a task is woken only once for the answers of several bees: one
            // system call per answer would cost more than the handlers. If a handler holds this thread, the
            // watchdog sends the collected wake-ups
            let collecting = hive.workers.slots[slot].later.collect();
            Turn::run_slot(hive, slot, None, false);
            hive.give_back(slot);

            // A woken task may send its next message before `drop` returns, because the kernel may run it in place of this
            // thread. It need not wake another thread for that message: if it clears the flag, its bee is already in the
            // queue when this runner looks. It should not wait for many other wake-ups, however
            if collecting.len() <= WAKES_BEFORE_BEES {
                hive.workers.is_runner_coming.store(true, Ordering::Release);
            }
            drop(collecting);
            hive.workers.is_runner_coming.swap(false, Ordering::AcqRel);
        }

        if let Some(app) = post.end() {
            // `give_back` may have queued bees without starting a runner for them
            if !hive.workers.queue.lock().is_empty() {
                hive.start_runner()
            }

            return overflow_pool::run(hive, app);
        }

        hive.workers.runners.fetch_sub(1, Ordering::AcqRel);
        // Re-check. Another thread may have queued bees after this runner saw the queue empty but before this
        // runner was uncounted. If so, it saw the maximum number of runners active and did not start one. The
        // queue's lock ensures that the two threads cannot both miss the bees: either the other thread's push
        // comes before the check below, which sees the bees, or the subtraction above comes before the other
        // thread's attempt to start a runner.
        if hive.workers.queue.lock().is_empty() || !hive.count_runner() {
            return;
        }
    }
}

/// Runs bees on a worker, or gives them to the runners if the maximum number of workers is already running
/// bees. Bees left over when the time is up go to the runners.
fn run_on_worker(hive: &Arc<HiveInner>, bees: Bees, if_quick: bool) {
    let slot = hive.slot_of_thread();
    let Some(entered) = hive.enter() else { return hive.give_to_runners(bees) };

    hive.workers.slots[slot].woken.lock().extend(bees);
    let collecting = hive.workers.slots[slot].later.collect();
    Turn::run_slot(hive, slot, Some(ON_WORKER), if_quick);

    drop(entered);
    drop(collecting);

    if hive.give_back(slot) {
        hive.start_runner()
    }
}

impl HiveInner {
    /// Moves the bees that a turn left in its slot to the end of the shared queue. Returns whether there were
    /// any.
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

    fn run_apart(&self, work: Box<dyn FnOnce() + Send>) {
        match self.workers.turns_max {
            // no bee runs on a worker
            0 => work(),
            _ => self.platform.spawn_blocking(work),
        }
    }
}
