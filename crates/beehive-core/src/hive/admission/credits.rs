//! Credits bound the work from outside in flight in a hive.
//!
//! A message from outside holds one of its sender's credits until everything it caused is done. Messages
//! between bees need no credits and never wait for any. If they did, two bees with full mailboxes that send
//! to each other would deadlock.

use crate::hive::admission::deferred_wakes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tokio::sync::Notify;

/// The credits of one IO bee, or the hive's own credits for requests and single messages.
#[derive(Debug)]
pub(crate) struct Credits {
    /// Total number of credits, free or taken.
    limit: u32,
    /// Whether who finds too few of them waits, or does without. If not, it fails.
    are_waited_for: bool,
    /// Number of free credits. A waiting task creates its `Notified` before it reads this number, and the
    /// thread in `give_back` adds the credits before it notifies. Therefore either the task reads the new
    /// number, or the notification comes after the `Notified` was created and wakes the task. `Notify`
    /// provides the synchronization.
    free: AtomicU32,
    /// Notified when credits come back.
    returned: Arc<Notify>,
}

impl Credits {
    /// Creates the credits of a sender outside, which waits when there are too few, or of a tick, which is skipped then.
    pub(crate) fn new(limit: u32) -> Arc<Credits> {
        Credits::with(limit, true)
    }

    /// Creates credits for which nobody waits: those of timers. Who finds too few fails.
    pub(crate) fn of_timers(limit: u32) -> Arc<Credits> {
        Credits::with(limit, false)
    }

    fn with(limit: u32, are_waited_for: bool) -> Arc<Credits> {
        Arc::new(Credits { limit, are_waited_for, free: AtomicU32::new(limit), returned: Arc::default() })
    }

    /// Takes `wanted` credits if that many are free; otherwise takes none and returns `false`.
    pub(crate) fn take_all(&self, wanted: u32) -> bool {
        let less = |free: u32| free.checked_sub(wanted);
        self.free.fetch_update(Ordering::Acquire, Ordering::Relaxed, less).is_ok()
    }

    /// Waits until `wanted` credits are free, and takes them. Cancel-safe.
    pub(crate) async fn take_when_free(&self, wanted: u32) {
        loop {
            let returned = self.returned.notified();
            if self.take_all(wanted) {
                return;
            }
            returned.await
        }
    }

    /// Waits until `wanted` credits are free. Another task may take them first. Cancel-safe.
    pub(crate) async fn available(&self, wanted: u32) {
        loop {
            let returned = self.returned.notified();
            if self.free() >= wanted {
                return;
            }
            returned.await
        }
    }

    /// Takes as many credits as are free, up to `wanted`.
    pub(crate) fn take(self: &Arc<Self>, wanted: u32) -> Taken {
        let mut count = 0;
        let less = |free: u32| {
            count = free.min(wanted);
            Some(free - count)
        };
        // the closure never returns `None`, so this cannot fail
        let _ = self.free.fetch_update(Ordering::Acquire, Ordering::Relaxed, less);
        Taken { credits: self.clone(), count }
    }

    /// Returns credits and wakes all waiters.
    fn give_back(&self, count: u32) {
        self.free.fetch_add(count, Ordering::Release);
        deferred_wakes::all(&self.returned)
    }

    /// Returns the number of free credits. Relaxed ordering suffices, because `Notify` provides the
    /// synchronization (see the field).
    pub(crate) fn free(&self) -> u32 {
        self.free.load(Ordering::Relaxed)
    }

    /// Returns the total number of credits, free or taken.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }
}

/// Credits that were taken. Dropping this value returns them.
#[derive(Debug)]
pub(crate) struct Taken {
    credits: Arc<Credits>,
    count: u32,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.credits.give_back(self.count)
    }
}

/// Work from outside that is in flight. Everything caused by a batch shares one `Cause`. Dropping the last
/// reference to it returns the credits.
#[derive(Debug)]
pub(crate) struct Cause {
    /// The credits held by this work; `None` for work that takes none, such as firing timers.
    taken: Option<Taken>,
    in_flight: Arc<InFlight>,
}

/// Number of causes in flight in a hive.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    /// Number of causes. A thread that drops a `Cause`, after the last effect of that cause's work,
    /// decrements this number with release ordering. A task in `done` reads it with acquire ordering, so if
    /// it reads zero, it sees all these effects. Relaxed ordering suffices for increments, because a thread
    /// that begins a cause publishes nothing through this number.
    causes: AtomicU64,
    /// Notified when the number reaches zero.
    none: Notify,
}

impl InFlight {
    /// Returns the number of causes in flight.
    pub(crate) fn count(&self) -> u64 {
        self.causes.load(Ordering::Acquire)
    }

    /// Begins work that holds no credits. The work ends when the last reference to the cause is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Arc<Cause> {
        self.causes.fetch_add(1, Ordering::Relaxed);
        Arc::new(Cause { taken: None, in_flight: self.clone() })
    }

    /// Waits until no cause is in flight. Cancel-safe.
    pub(crate) async fn done(&self) {
        loop {
            let none = self.none.notified();
            if self.causes.load(Ordering::Acquire) == 0 {
                return;
            }
            none.await
        }
    }
}

impl Cause {
    /// Begins work that holds `count` credits, which the caller has already taken.
    pub(crate) fn new(credits: &Arc<Credits>, count: u32, in_flight: &Arc<InFlight>) -> Arc<Cause> {
        Cause::of(Taken { credits: credits.clone(), count }, in_flight)
    }

    /// Checks whether this work holds credits whose return somebody can wait for: without them, nothing fails.
    pub(crate) fn holds_up_senders(&self) -> bool {
        self.taken.as_ref().is_some_and(|taken| taken.credits.are_waited_for)
    }

    /// Begins work that holds the credits in `taken`.
    pub(crate) fn of(taken: Taken, in_flight: &Arc<InFlight>) -> Arc<Cause> {
        in_flight.causes.fetch_add(1, Ordering::Relaxed);
        Arc::new(Cause { taken: Some(taken), in_flight: in_flight.clone() })
    }
}

impl Drop for Cause {
    fn drop(&mut self) {
        // return the credits first so that a task that `done` wakes finds them free
        drop(self.taken.take());
        if self.in_flight.causes.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.in_flight.none.notify_waiters()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credits_come_back_with_the_last_cause() {
        let credits = Credits::new(10);
        assert!(credits.take_all(8));
        let cause = Cause::new(&credits, 8, &Arc::default());
        let derived = cause.clone();
        assert!(!credits.take_all(3) && credits.take_all(2) && !credits.take_all(1));
        drop(cause);
        assert_eq!(credits.free(), 0);
        drop(derived);
        assert_eq!(credits.free(), 8);
    }
}
