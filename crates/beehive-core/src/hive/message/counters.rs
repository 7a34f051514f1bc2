//! Counters of one handler.

use crate::time::Time;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What is counted about a handler.
#[derive(Default)]
pub(crate) struct HandlerCounters {
    pub(crate) messages: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) panics: AtomicU64,
    pub(crate) answered: AtomicU64,
    pub(crate) waited: AtomicU64,
    /// Messages that it took too long for.
    pub(crate) stuck: AtomicU64,
    /// When it last held a thread, in nanoseconds; zero: it never has.
    held_at: AtomicU64,
}

/// For so long after it has held a thread, a handler runs nothing on the worker of somebody who waits.
const HELD_LATELY: Duration = Duration::from_secs(1);

impl HandlerCounters {
    /// It holds a thread.
    pub(crate) fn hold(&self, now: Time) {
        self.held_at.store(now.as_nanoseconds().max(1), Ordering::Relaxed)
    }

    /// Whether it has ever held a thread: what it handles is shown from then on.
    #[inline(always)]
    pub(crate) fn has_held(&self) -> bool {
        self.held_at.load(Ordering::Relaxed) != 0
    }

    /// Whether it has held a thread of late.
    #[inline(always)]
    pub(crate) fn has_held_lately(&self, now: Time) -> bool {
        let at = self.held_at.load(Ordering::Relaxed);
        at != 0 && now.since(Time::from_nanoseconds(at)) < HELD_LATELY
    }
}
