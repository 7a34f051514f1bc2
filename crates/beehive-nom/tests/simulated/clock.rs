//! A platform whose clock moves when the test says so.

use beehive_core::Time;
use beehive_core::seams::{BoxFuture, Platform};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// The clock, and who sleeps by it.
pub(crate) struct Clock {
    now: watch::Sender<Time>,
    runtime: tokio::runtime::Handle,
    sleepers: Arc<Mutex<BTreeSet<(Time, u64)>>>,
    next: AtomicU64,
    /// Whether handlers run on threads of their own.
    threads: bool,
}

/// Somebody who sleeps, until he wakes or is dropped.
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
    /// A clock that stands, for the runtime that this is called in, which runs the handlers too: another thread could be in
    /// the middle of a turn, which goes by the time at which it began, when the clock has moved on.
    pub(crate) fn start() -> Arc<Clock> {
        Self::new(false)
    }

    /// As [`Clock::start`], for handlers that block: they run on threads of their own.
    pub(crate) fn with_threads() -> Arc<Clock> {
        Self::new(true)
    }

    fn new(threads: bool) -> Arc<Clock> {
        let (now, _) = watch::channel(Time::ZERO + Duration::from_secs(1_000_000));
        let runtime = tokio::runtime::Handle::current();
        Arc::new(Clock { now, runtime, sleepers: Arc::default(), next: AtomicU64::new(0), threads })
    }

    /// Moves it.
    pub(crate) fn pass(&self, duration: Duration) {
        self.now.send_modify(|now| *now = *now + duration)
    }

    /// Whether nobody sleeps who should be awake.
    pub(crate) fn is_settled(&self) -> bool {
        let first = self.sleepers.lock().expect("no sleeper panics").first().copied();
        first.is_none_or(|(until, _)| until > *self.now.borrow())
    }

    /// Lets those wake whose time has come. On a runtime of one thread they have also done by then what they woke for.
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
        // handlers do not block here for long, so nothing has to watch for that
    }
    fn random(&self) -> u64 {
        // another one each time, as it is from one life of a hive to the next
        static NEXT: AtomicU64 = AtomicU64::new(7);
        NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
    fn workers(&self) -> usize {
        2
    }
}
