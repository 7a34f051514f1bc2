//! Overflow pools: the threads of each app for bees that wait behind handlers that hold a thread.

use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::turn::{Runnable, Turn};
use crate::hive::dispatch::workers::Bees;
use crate::limits;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Threads of an app that no handler holds: there may be some among the bees that will.
const THREADS_NOT_HELD: usize = 16;
/// The pools of a hive.
#[derive(Default)]
pub(crate) struct OverflowPools {
    pools: Mutex<Pools>,
    /// An app has all the threads that it may have.
    any_full: AtomicBool,
    /// How often bees were taken from behind a handler.
    pub(crate) relieved: AtomicU64,
}

#[derive(Default)]
struct Pools {
    /// By app.
    all: Vec<Pool>,
    threads: usize,
}

/// The bees of one app that wait for a thread other than the one they waited for first.
#[derive(Default)]
struct Pool {
    bees: Bees,
    threads: usize,
    /// It has been said that it is full, and it has not been empty since.
    reported: bool,
}

impl Pools {
    fn of(&mut self, app: u16) -> &mut Pool {
        let app = usize::from(app);
        if self.all.len() <= app {
            self.all.resize_with(app + 1, Pool::default)
        }
        &mut self.all[app]
    }

    /// Whether an app has all the threads that it may have: one, where those of all apps are used up.
    fn is_full(&self, app: usize) -> bool {
        let most = match self.threads < limits::HELD_THREADS_MAX {
            true => limits::HELD_THREADS_PER_APP_MAX,
            false => 1,
        };
        self.all.get(app).is_some_and(|pool| pool.threads >= most)
    }

    fn count(&mut self, app: u16) {
        self.of(app).threads += 1;
        self.threads += 1
    }

    fn uncount(&mut self, app: u16) {
        let pool = self.of(app);
        pool.threads -= 1;
        pool.reported &= pool.threads > 0;
        self.threads -= 1
    }
}

impl OverflowPools {
    /// Keeps a bee whose app holds all the threads that it may have.
    #[inline]
    pub(crate) fn keep(&self, bee: Arc<dyn Runnable>) -> Option<Arc<dyn Runnable>> {
        match self.any_full.load(Ordering::Relaxed) {
            true => self.keep_if_full(bee),
            false => Some(bee),
        }
    }

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

    /// Adds bees to their pools. Returns the apps to start a thread for: those that had none.
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

    /// The next bee of an pool for one of its threads; with none, the thread is no longer counted.
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

    /// A runner that is held by a handler of `app` is from now on a thread of its pool.
    pub(in crate::hive) fn adopt(&self, app: u16) {
        self.pools.lock().count(app)
    }

    /// The apps to start a thread for, where `held` threads are held by each; and those that are full for the first time.
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
    pub(in crate::hive) fn start_overflow_threads(self: &Arc<Self>, apps: Vec<u16>) {
        for app in apps {
            let hive = self.clone();
            self.platform.spawn_blocking(Box::new(move || Turn::with_kept(&hive, || run(&hive, app))))
        }
    }

    pub(in crate::hive) fn report_full(&self, app: u16) {
        if let Some(app) = self.apps.read().get(usize::from(app)) {
            tracing::warn!(
                app = app.name(),
                "handlers of this app hold all the threads that it may have; its other cells wait for them"
            );
        }
    }
}

/// A thread of an pool: runs what is there, and sees to it that what this wakes is run.
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
