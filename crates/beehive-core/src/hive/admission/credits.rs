//! Credits: what bounds a hive is the work admitted from outside.
//!
//! A message from outside holds a credit of its IO bee until everything it caused is done. Messages between bees never
//! wait: two full bees that talk to each other would wait for ever.

use crate::hive::admission::deferred_wakes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tokio::sync::Notify;

/// The credits of one IO bee.
#[derive(Debug)]
pub(crate) struct Credits {
    limit: u32,
    free: AtomicU32,
    returned: Arc<Notify>,
}

impl Credits {
    pub(crate) fn new(limit: u32) -> Arc<Credits> {
        let limit = limit.max(1);
        Arc::new(Credits { limit, free: AtomicU32::new(limit), returned: Arc::default() })
    }

    /// Takes `wanted` credits, if there are as many.
    pub(crate) fn take_all(&self, wanted: u32) -> bool {
        let less = |free: u32| free.checked_sub(wanted);
        self.free.fetch_update(Ordering::Acquire, Ordering::Relaxed, less).is_ok()
    }

    /// Waits until there are `wanted` credits, and takes them. Cancel-safe.
    pub(crate) async fn take_when_free(&self, wanted: u32) {
        loop {
            let returned = self.returned.notified();
            if self.take_all(wanted) {
                return;
            }
            returned.await
        }
    }

    /// Waits until there are `wanted` credits. Cancel-safe.
    pub(crate) async fn available(&self, wanted: u32) {
        loop {
            let returned = self.returned.notified();
            if self.free() >= wanted {
                return;
            }
            returned.await
        }
    }

    /// Takes `wanted` credits, or as many as there are.
    pub(crate) fn take(self: &Arc<Self>, wanted: u32) -> Taken {
        let mut count = 0;
        let less = |free: u32| {
            count = free.min(wanted);
            Some(free - count)
        };
        // it always changes something, if only by nothing
        let _ = self.free.fetch_update(Ordering::Acquire, Ordering::Relaxed, less);
        Taken { credits: self.clone(), count }
    }

    fn give_back(&self, count: u32) {
        self.free.fetch_add(count, Ordering::Release);
        deferred_wakes::all(&self.returned)
    }

    /// Credits not in use.
    pub(crate) fn free(&self) -> u32 {
        self.free.load(Ordering::Relaxed)
    }

    /// All credits.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }
}

/// Credits that were taken; dropping it gives them back.
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

/// Credits in use; shared by everything that the messages caused, given back when the last of it is done.
#[derive(Debug)]
pub(crate) struct Cause {
    taken: Option<Taken>,
    in_flight: Arc<InFlight>,
}

/// Everything of a hive that is not done: so many causes.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    causes: AtomicU64,
    none: Notify,
}

impl InFlight {
    /// So many.
    pub(crate) fn count(&self) -> u64 {
        self.causes.load(Ordering::Acquire)
    }

    /// Begins something that holds no credits. It is done when the cause is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Arc<Cause> {
        self.causes.fetch_add(1, Ordering::Relaxed);
        Arc::new(Cause { taken: None, in_flight: self.clone() })
    }

    /// Waits until nothing is under way. Cancel-safe.
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
    pub(crate) fn new(credits: &Arc<Credits>, count: u32, in_flight: &Arc<InFlight>) -> Arc<Cause> {
        Cause::of(Taken { credits: credits.clone(), count }, in_flight)
    }

    /// Of credits that were taken before.
    pub(crate) fn of(taken: Taken, in_flight: &Arc<InFlight>) -> Arc<Cause> {
        in_flight.causes.fetch_add(1, Ordering::Relaxed);
        Arc::new(Cause { taken: Some(taken), in_flight: in_flight.clone() })
    }
}

impl Drop for Cause {
    fn drop(&mut self) {
        // before anybody is told that nothing is under way
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
