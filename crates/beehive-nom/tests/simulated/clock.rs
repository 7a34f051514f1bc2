//! A platform with a clock that only the test advances.

use beehive_core::Time;
use beehive_core::seams::{BoxFuture, Platform};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// The clock and the tasks that sleep on it.
pub(crate) struct Clock {
    now: watch::Sender<Time>,
    runtime: tokio::runtime::Handle,
    sleepers: Arc<Mutex<BTreeSet<(Time, u64)>>>,
    next: AtomicU64,
    /// Whether handlers run on separate threads.
    threads: bool,
}

/// A sleeping task; removed when it wakes or is dropped.
struct Sleeper {
    sleepers: Arc<Mutex<BTreeSet<(Time, u64)>>>,
    entry: (Time, u64),
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.sleepers.lock().expect("no sleeper panics").remove(&self.entry);
    }
}

impl Clock {
    /// Creates a stopped clock for the current runtime, which also runs the handlers. If handlers ran on
    /// another thread, the clock could advance in the middle of a turn, and the turn would continue with the
    /// time of its start.
    pub(crate) fn start() -> Arc<Clock> {
        Self::new(false)
    }

    /// Creates a clock like [`Clock::start`] for handlers that block; they run on separate threads.
    pub(crate) fn with_threads() -> Arc<Clock> {
        Self::new(true)
    }

    fn new(threads: bool) -> Arc<Clock> {
        let (now, _) = watch::channel(Time::ZERO + Duration::from_secs(1_000_000));
        let runtime = tokio::runtime::Handle::current();
        Arc::new(Clock { now, runtime, sleepers: Arc::default(), next: AtomicU64::new(0), threads })
    }

    /// Advances the clock.
    pub(crate) fn pass(&self, duration: Duration) {
        self.now.send_modify(|now| *now = *now + duration)
    }

    /// Returns whether no sleeping task is due.
    pub(crate) fn is_settled(&self) -> bool {
        let first = self.sleepers.lock().expect("no sleeper panics").first().copied();
        first.is_none_or(|(until, _)| until > *self.now.borrow())
    }

    /// Waits until all tasks that are due have woken. On a single-threaded runtime they have also run by
    /// then.
    pub(crate) async fn settled(&self) {
        while !self.is_settled() {
            tokio::task::yield_now().await
        }
    }
}

impl Platform for Clock {
    fn now(&self) -> Time {
        *self.now.borrow()
    }
    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        let mut now = self.now.subscribe();
        let until = *now.borrow() + duration;
        let entry = (until, self.next.fetch_add(1, Ordering::Relaxed));
        self.sleepers.lock().expect("no sleeper panics").insert(entry);
        let sleeper = Sleeper { sleepers: self.sleepers.clone(), entry };

        Box::pin(async move {
            // the clock lives as long as the test
            let _ = now.wait_for(|now| *now >= until).await;
            drop(sleeper)
        })
    }
    fn spawn(&self, task: BoxFuture<()>) {
        self.runtime.spawn(task);
    }
    fn spawn_blocking(&self, task: Box<dyn FnOnce() + Send>) {
        match self.threads {
            true => drop(self.runtime.spawn_blocking(task)),
            false => drop(self.runtime.spawn(async move { task() })),
        }
    }
    fn spawn_thread(&self, _: &str, _: Box<dyn FnOnce() + Send>) {
        // the watchdog is not started, because handlers do not block for long here
    }
    fn random(&self) -> u64 {
        // each call returns a different value, as in successive runs of a hive
        static NEXT: AtomicU64 = AtomicU64::new(7);
        NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
    fn workers(&self) -> usize {
        2
    }
}
