//! Overflow pools: per-app threads that run bees waiting behind a handler that holds its thread.

use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::turn::{Runnable, Turn};
use crate::hive::dispatch::workers::Bees;
use crate::limits;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Number of threads that an app's pool may have in addition to those held by the app's handlers. It is more
/// than one, because some of the waiting bees may also hold their threads.
const THREADS_NOT_HELD: usize = 16;

/// A hive's pools.
#[derive(Default)]
pub(crate) struct OverflowPools {
    /// The pools of all apps.
    pools: Mutex<Pools>,
    /// Whether any app has all the threads it may have. Caches `Pools::is_full` for the fast path: threads
    /// write it under the lock and read it without locking, with relaxed ordering. A stale value is harmless.
    /// After a stale `true`, `keep_if_full` checks again under the lock. After a stale `false`, a bee of a
    /// full app runs on a runner, which only isolates the app less.
    any_full: AtomicBool,
    /// Number of times that the watchdog has moved bees away from a held thread.
    pub(crate) relieved: AtomicU64,
}

/// The pools and their threads.
#[derive(Default)]
struct Pools {
    /// The pools, by app number.
    all: Vec<Pool>,
    /// Number of threads of all pools.
    threads: usize,
}

/// One app's pool.
#[derive(Default)]
struct Pool {
    /// The bees waiting for a thread of the pool.
    bees: Bees,
    /// Number of threads of the pool.
    threads: usize,
    /// Whether the app has been reported as full. Cleared when the pool has no threads left.
    reported: bool,
}

impl Pools {
    /// Returns an app's pool, creating it if necessary.
    fn of(&mut self, app: u16) -> &mut Pool {
        let app = usize::from(app);
        if self.all.len() <= app {
            self.all.resize_with(app + 1, Pool::default)
        }
        &mut self.all[app]
    }

    /// Checks whether an app has all the threads it may have. Once all pools together have reached their
    /// limit, each app may have only one thread.
    fn is_full(&self, app: usize) -> bool {
        let most = match self.threads < limits::HELD_THREADS_MAX {
            true => limits::HELD_THREADS_PER_APP_MAX,
            false => 1,
        };
        self.all.get(app).is_some_and(|pool| pool.threads >= most)
    }

    /// Adds one to the number of threads of an app.
    fn count(&mut self, app: u16) {
        self.of(app).threads += 1;
        self.threads += 1
    }

    /// Subtracts one from the number of threads of an app.
    fn uncount(&mut self, app: u16) {
        let pool = self.of(app);
        pool.threads -= 1;
        pool.reported &= pool.threads > 0;
        self.threads -= 1
    }
}

impl OverflowPools {
    /// Returns `bee` if a runner or worker may run it. If the bee's app is full, moves the bee to the app's
    /// pool and returns `None`. A full pool has at least one thread, which takes the bee after finishing its
    /// current run.
    #[inline]
    pub(crate) fn keep(&self, bee: Arc<dyn Runnable>) -> Option<Arc<dyn Runnable>> {
        match self.any_full.load(Ordering::Relaxed) {
            true => self.keep_if_full(bee),
            false => Some(bee),
        }
    }

    /// The slow path of `keep`, which takes the lock.
    #[cold]
    fn keep_if_full(&self, bee: Arc<dyn Runnable>) -> Option<Arc<dyn Runnable>> {
        let mut pools = self.pools.lock();
        let app = bee.app();
        if !pools.is_full(usize::from(app)) {
            return Some(bee);
        }
        pools.of(app).bees.push_back(bee);
        None
    }

    /// Adds bees to the pools of their apps. Returns the apps whose pool had no threads. The caller must
    /// start one thread for each of them; these threads are already counted.
    pub(in crate::hive) fn add(&self, bees: Bees) -> Vec<u16> {
        let mut pools = self.pools.lock();
        let mut first = Vec::new();
        for bee in bees {
            let app = bee.app();
            let pool = pools.of(app);
            pool.bees.push_back(bee);
            if pool.threads == 0 {
                pools.count(app);
                first.push(app)
            }
        }
        first
    }

    /// Takes the next bee of a pool on behalf of one of its threads. If there is no bee, uncounts the thread,
    /// which must then end. Both happen under the lock that `add` also takes, so no bee is left without a
    /// thread: if `add` finds the thread still counted, the thread's next call to `next` takes the added bee;
    /// otherwise `add` makes its caller start a new thread.
    fn next(&self, app: u16) -> Option<Arc<dyn Runnable>> {
        let mut pools = self.pools.lock();
        let next = pools.of(app).bees.pop_front();
        if next.is_none() {
            pools.uncount(app);
            self.note_full(&pools)
        }
        next
    }

    /// Counts a runner as a thread of the pool of `app`, because a handler of `app` holds it.
    pub(in crate::hive) fn adopt(&self, app: u16) {
        self.pools.lock().count(app)
    }

    /// Takes back [`OverflowPools::adopt`]: there was no runner. A bee that was added meanwhile gets a thread from
    /// [`OverflowPools::wanted`].
    pub(in crate::hive) fn adopt_none(&self, app: u16) {
        let mut pools = self.pools.lock();
        pools.uncount(app);
        self.note_full(&pools)
    }

    fn note_full(&self, pools: &Pools) {
        let any = (0..pools.all.len()).any(|app| pools.is_full(app));
        self.any_full.store(any, Ordering::Relaxed)
    }

    /// Decides how many threads to start. `held` is the number of threads held by each app's handlers. The
    /// first returned list contains an app once for each thread that the caller must start; these threads are
    /// already counted. The second contains the apps that have become full and have not been reported yet.
    pub(in crate::hive) fn wanted(&self, held: &[usize]) -> (Vec<u16>, Vec<u16>) {
        let mut pools = self.pools.lock();
        let (mut more, mut full) = (Vec::new(), Vec::new());
        for at in 0..pools.all.len() {
            let (app, before) = (at as u16, more.len());

            let wanted = held.get(at).copied().unwrap_or(0) + THREADS_NOT_HELD;
            let waiting = pools.of(app).bees.len();

            while more.len() - before < waiting && pools.of(app).threads < wanted && !pools.is_full(at) {
                pools.count(app);
                more.push(app)
            }

            if pools.is_full(at) {
                self.any_full.store(true, Ordering::Relaxed);
                if !std::mem::replace(&mut pools.of(app).reported, true) {
                    full.push(app)
                }
            }
        }
        (more, full)
    }
}

impl HiveInner {
    /// Starts one thread for each entry of `apps`. These threads are already counted.
    pub(in crate::hive) fn start_overflow_threads(self: &Arc<Self>, apps: Vec<u16>) {
        for app in apps {
            let hive = self.clone();
            self.platform.spawn_blocking(Box::new(move || Turn::with_kept(&hive, || run(&hive, app))))
        }
    }

    /// Logs that an app is full.
    pub(in crate::hive) fn report_full(&self, app: u16) {
        if let Some(app) = self.apps.read().get(usize::from(app)) {
            tracing::warn!(
                app = app.name(),
                "this app's handlers hold all threads that the app may have; messages to its other cells wait for these handlers"
            );
        }
    }
}

/// The main loop of an overflow-pool thread. It runs the pool's bees until none is left. Bees that they schedule go to
/// the pools of their own apps.
pub(crate) fn run(hive: &Arc<HiveInner>, app: u16) {
    let slot = hive.slot_of_thread();
    while let Some(bee) = hive.workers.overflow.next(app) {
        Turn::run_bee(hive, slot, bee);
        let woken = hive.workers.take_woken(slot);
        if !woken.is_empty() {
            hive.start_overflow_threads(hive.workers.overflow.add(woken))
        }
    }
}
