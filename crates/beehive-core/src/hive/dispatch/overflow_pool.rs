//! Overflow pools: each app's own threads for bees that wait behind a handler that holds its thread.

use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::turn::{Runnable, Turn};
use crate::hive::dispatch::workers::Bees;
use crate::limits;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Number of threads that an app's pool may have beyond those that its handlers hold. More than one,
/// because some of the waiting bees may hold their threads too.
const THREADS_NOT_HELD: usize = 16;

/// The pools of a hive.
#[derive(Default)]
pub(crate) struct OverflowPools {
    /// The pools of all apps.
    pools: Mutex<Pools>,
    /// Whether some app holds all the threads that it may have. A cache of `Pools::is_full` for the fast
    /// path: it is written under the lock, and read without it (relaxed). A stale value is harmless, because
    /// `keep_if_full` checks again under the lock, and a bee that nevertheless runs on a runner is only less
    /// isolated.
    any_full: AtomicBool,
    /// Number of times that the watchdog moved bees away from a held thread.
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

/// The pool of one app.
#[derive(Default)]
struct Pool {
    /// The bees that wait for a thread of the pool.
    bees: Bees,
    /// Number of threads of the pool.
    threads: usize,
    /// Whether the app was reported as full. Cleared when the pool has no thread left.
    reported: bool,
}

impl Pools {
    /// Returns the pool of an app, and creates it if necessary.
    fn of(&mut self, app: u16) -> &mut Pool {
        let app = usize::from(app);
        if self.all.len() <= app {
            self.all.resize_with(app + 1, Pool::default)
        }
        &mut self.all[app]
    }

    /// Checks whether an app has all the threads that it may have. Once all pools together are at their
    /// limit, each app may have only one.
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
    /// Checks whether a runner or worker may run `bee`, and returns it if so. If the app of the bee is full,
    /// the bee moves to the app's pool instead. A full pool has at least one thread, which takes the bee when
    /// its current run ends.
    #[inline]
    pub(crate) fn keep(&self, bee: Arc<dyn Runnable>) -> Option<Arc<dyn Runnable>> {
        match self.any_full.load(Ordering::Relaxed) {
            true => self.keep_if_full(bee),
            false => Some(bee),
        }
    }

    /// The part of `keep` that takes the lock.
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

    /// Adds bees to the pools of their apps. Returns the apps whose pool had no thread: the caller
    /// starts one for each.
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

    /// Takes the next bee of a pool for one of its threads. If there is none, the thread is no longer counted
    /// and must end. Both happen under the lock that `add` takes, too: if `add` finds the thread counted, the
    /// thread's next call takes the added bee; otherwise `add` makes its caller start a new thread.
    fn next(&self, app: u16) -> Option<Arc<dyn Runnable>> {
        let mut pools = self.pools.lock();
        let next = pools.of(app).bees.pop_front();
        if next.is_none() {
            pools.uncount(app);
            let any = (0..pools.all.len()).any(|app| pools.is_full(app));
            self.any_full.store(any, Ordering::Relaxed);
        }
        next
    }

    /// Counts a runner that a handler of `app` holds as a thread of the app's pool.
    pub(in crate::hive) fn adopt(&self, app: u16) {
        self.pools.lock().count(app)
    }

    /// Decides how many threads to start, given the number of threads that each app's handlers hold.
    /// Returns the apps to start a thread for, which are counted already, and the apps that have become
    /// full and were not reported.
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
    /// Starts one thread for each entry of `apps`, which are counted already.
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
                "handlers of this app hold all the threads that it may have; its other cells wait for them"
            );
        }
    }
}

/// The loop of a pool's thread: runs the bees of the pool until none is left. Bees that they schedule go
/// to the pools of their own apps.
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
