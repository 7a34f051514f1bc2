//! The machine of one simulated hive: it can be paused, and its clock can be ahead.

use crate::cell::HiveId;
use crate::seams::{BoxFuture, Platform};
use crate::testing::VirtualPlatform;
use crate::testing::platform::Owner;
use crate::time::Time;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The platform of one hive, which is part of the platform of the cluster.
#[derive(Clone)]
pub(super) struct Process {
    machine: VirtualPlatform,
    owner: Owner,
    clock: Arc<Clock>,
    /// Number of times that the hive was paused, resumed, or started. The end of a pause has no effect if it has changed.
    changes: Arc<AtomicU64>,
}

/// The clock of a hive.
#[derive(Default)]
struct Clock {
    /// The time by which it is ahead, in nanoseconds.
    ahead: AtomicU64,
    /// The latest time that it has shown. A clock never runs backwards.
    shown: AtomicU64,
}

impl Process {
    /// Returns the machine of a hive. Its clock is right.
    pub(super) fn new(machine: &VirtualPlatform, hive: HiveId) -> Process {
        Process {
            machine: machine.clone(),
            owner: Owner(hive.0),
            clock: Arc::default(),
            changes: Arc::default(),
        }
    }

    /// Sets the time by which the clock is ahead. If that is less than before, the clock stands still until the time has
    /// caught up.
    pub(super) fn set_ahead(&self, ahead: Duration) {
        // the hive has seen the time until now
        self.now();
        self.clock.ahead.store(ahead.as_nanos() as u64, Ordering::Release)
    }

    /// Another process begins, to which the clock may show an earlier time.
    pub(super) fn begins(&self) {
        self.resume();
        self.clock.shown.store(0, Ordering::Release)
    }

    /// Runs nothing for some time, or until [`Process::resume`]. A later pause replaces this one.
    pub(super) fn pause(&self, duration: Duration) {
        let change = self.changes.fetch_add(1, Ordering::AcqRel) + 1;
        self.machine.pause(self.owner);
        let process = self.clone();
        // a task of the machine, because those of the hive do not run
        self.machine.spawn(Box::pin(async move {
            process.machine.sleep(duration).await;
            if process.changes.load(Ordering::Acquire) == change {
                process.resume()
            }
        }))
    }

    pub(super) fn resume(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.machine.resume(self.owner)
    }

    pub(super) fn is_paused(&self) -> bool {
        self.machine.is_paused(self.owner)
    }
}

impl Platform for Process {
    fn now(&self) -> Time {
        let ahead = self.clock.ahead.load(Ordering::Acquire);
        let now = self.machine.now().as_nanoseconds().saturating_add(ahead);
        let before = self.clock.shown.fetch_max(now, Ordering::AcqRel);
        Time::from_nanoseconds(now.max(before))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        self.machine.sleep(duration)
    }

    fn spawn(&self, task: BoxFuture<()>) {
        self.machine.spawn_as(self.owner, task)
    }

    fn spawn_blocking(&self, task: Box<dyn FnOnce() + Send>) {
        self.machine.spawn_blocking_as(self.owner, task)
    }

    fn spawn_thread(&self, name: &str, task: Box<dyn FnOnce() + Send>) {
        self.machine.spawn_thread(name, task)
    }

    fn random(&self) -> u64 {
        self.machine.random()
    }

    fn workers(&self) -> usize {
        self.machine.workers()
    }
}
