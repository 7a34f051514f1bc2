//! Who runs bees: the threads that wake them, the hive's runners, and relief for those that a handler holds.
//!
//! Every thread has a slot: what it is busy with, and the bees it has woken and not yet run. A task that begins a turn runs
//! none of them: they are left to the *runners*, threads that share a queue, or, where an IO bee asks for it, to a task of
//! their own that *follows* on the same worker. A *relief* looks at all slots every few milliseconds, from a thread of its
//! own; when a handler holds its thread, the bees that wait behind it are taken to others, and who has been woken there is
//! told. So a handler that spins or blocks delays its own cells only.

use crate::hive::HiveInner;
use crate::hive::recovery;
use crate::hive::turn::{Runnable, Turn};
use crate::hive::wake::Later;
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Threads that are told apart; more of them share slots, which does no harm.
const SLOTS: usize = 256;
/// Threads among which the bees are divided that waited behind a handler.
const RELIEF_THREADS: usize = 16;
/// How often the relief looks.
const LOOK: Duration = Duration::from_millis(2);
/// A run that lasts for longer holds its thread.
///
/// Not much more than what the operating system takes a thread off its core for: that is no reason to move anything.
const HELD: Duration = Duration::from_millis(8);
/// What bees may take on a worker before it looks after sockets and timers again.
const ON_WORKER: Duration = Duration::from_millis(2);
/// A handler that runs for longer is named in the log.
const TOO_LONG: Duration = Duration::from_secs(1);

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

pub(crate) type Bees = VecDeque<Arc<dyn Runnable>>;

#[derive(Default)]
struct Slot {
    /// Number of the run that the thread is busy with; even: none.
    run: AtomicU64,
    /// Its app and handler.
    what: AtomicU64,
    woken: Mutex<Bees>,
    /// Who is told at the end of the turn.
    later: Arc<Later>,
}

/// The slots and the runners of a hive.
pub(crate) struct Workers {
    slots: Box<[CachePadded<Slot>]>,
    queue: Mutex<Bees>,
    /// Runners that are at work.
    runners: AtomicUsize,
    runners_max: usize,
    /// Turns that run bees on a worker now; so many may, so that one worker is always left for sockets and timers. Where
    /// there is one worker, none may.
    turns: AtomicUsize,
    turns_max: usize,
    pub(crate) relieved: AtomicU64,
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
            turns: AtomicUsize::new(0),
            turns_max: workers.saturating_sub(1),
            relieved: AtomicU64::new(0),
        }
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

    #[inline]
    pub(crate) fn next_bee(&self, slot: usize) -> Option<Arc<dyn Runnable>> {
        self.workers.slots[slot].woken.lock().pop_front()
    }

    #[inline]
    pub(crate) fn is_idle(&self, slot: usize) -> bool {
        self.workers.slots[slot].woken.lock().is_empty()
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
            self.platform.spawn_blocking(Box::new(move || run(&hive)))
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

/// A runner: runs what is queued until nothing is.
fn run(hive: &Arc<HiveInner>) {
    let slot = hive.slot_of_thread();
    loop {
        while hive.take_queued(slot) {
            Turn::run_slot(hive, slot, None);
            hive.give_back(slot);
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

fn run_on_thread(hive: &Arc<HiveInner>, bees: Bees) {
    let slot = hive.slot_of_thread();
    hive.workers.slots[slot].woken.lock().extend(bees);
    while !hive.is_idle(slot) {
        Turn::run_slot(hive, slot, None)
    }
}

impl HiveInner {
    /// What a turn that is over has left goes behind what others wait for. Whether there was something.
    fn give_back(&self, slot: usize) -> bool {
        let mut left = std::mem::take(&mut *self.workers.slots[slot].woken.lock());
        if left.is_empty() {
            return false;
        }
        self.workers.queue.lock().append(&mut left);
        true
    }

    fn report_too_long(&self, what: u64) {
        let apps = self.apps.read();
        if let Some(app) = apps.get((what >> 32) as usize) {
            let handler = app.handler_name(what as u32 as usize);
            tracing::warn!(
                app = app.name(),
                handler,
                "a handler holds its thread for more than {TOO_LONG:?}; its cells \
                wait, other cells go on"
            );
        }
    }
}

#[derive(Clone, Copy)]
struct Seen {
    run: u64,
    since: Instant,
    poked: bool,
    reported: bool,
}

/// The relief. Runs on a thread of its own, because all workers may be held, until the hive is gone or stopped.
pub(crate) fn relieve(hive: Weak<HiveInner>) {
    let mut seen: Vec<Option<Seen>> = vec![None; SLOTS];
    loop {
        std::thread::sleep(LOOK);
        let Some(hive) = hive.upgrade() else { return };
        if hive.is_over() {
            return;
        }
        let now = Instant::now();
        for (slot, seen) in hive.workers.slots.iter().zip(&mut seen) {
            let run = slot.run.load(Ordering::Relaxed);
            if run & 1 == 0 {
                *seen = None;
                continue;
            }
            let before = match seen {
                Some(before) if before.run == run => before,
                _ => {
                    *seen = Some(Seen { run, since: now, poked: false, reported: false });
                    continue;
                }
            };
            let held = now.duration_since(before.since);
            if held < HELD {
                continue;
            }
            slot.later.wake();
            if !before.poked {
                before.poked = true;
                // the worker may be the one that looked after sockets and timers, and no other one know that it has to
                hive.platform.spawn(Box::pin(std::future::ready(())))
            }
            let bees = std::mem::take(&mut *slot.woken.lock());
            if !bees.is_empty() {
                relieve_of(&hive, bees)
            }
            if held >= TOO_LONG && !before.reported {
                before.reported = true;
                hive.report_too_long(slot.what.load(Ordering::Relaxed));
            }
        }
        // runners that are held cannot take what is queued
        let held = seen.iter().flatten().any(|s| now.duration_since(s.since) >= HELD);
        if held {
            let bees = std::mem::take(&mut *hive.workers.queue.lock());
            if !bees.is_empty() {
                relieve_of(&hive, bees)
            }
        }
    }
}

fn relieve_of(hive: &Arc<HiveInner>, bees: Bees) {
    hive.workers.relieved.fetch_add(1, Ordering::Relaxed);
    // on several threads: others that will be held may be among them
    let share = bees.len().div_ceil(RELIEF_THREADS).max(1);
    let mut bees = bees;
    while !bees.is_empty() {
        let rest = bees.split_off(share.min(bees.len()));
        let (on_thread, some) = (hive.clone(), std::mem::replace(&mut bees, rest));
        hive.platform.spawn_blocking(Box::new(move || run_on_thread(&on_thread, some)));
    }
}

/// Retires what is idle, until the hive stops.
pub(crate) async fn maintain(hive: Arc<HiveInner>) {
    const PERIOD: Duration = Duration::from_millis(100);
    while !hive.is_stopped() {
        tokio::select! {
            () = hive.platform.sleep(PERIOD) => {}
            () = hive.stopping.notified() => {}
        }
        let apps: Vec<_> = hive.apps.read().clone();
        for app in apps {
            app.retire_idle(&hive);
        }
        if let Some(link) = &hive.link {
            recovery::retire_lanes(&hive, link.lanes.take_retired())
        }
    }
}
