//! One handler's counters.

use crate::time::Time;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The counters of one handler. Relaxed ordering suffices for all of them, because they guard no other
/// data.
#[derive(Default)]
pub(crate) struct HandlerCounters {
    pub(crate) messages: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) panics: AtomicU64,
    pub(crate) answered: AtomicU64,
    pub(crate) waited: AtomicU64,
    /// Number of messages that took longer than `Builder::stuck_after`.
    pub(crate) stuck: AtomicU64,
    /// Whether the hive has found a message that the map drops but the handler would act on.
    drops_wrongly: AtomicBool,
    /// Number of the last verified dropped message, counted from 1.
    pub(crate) verified: AtomicU64,
    /// The time at which the handler last held a thread, in nanoseconds; zero if it never has.
    held_at: AtomicU64,
}

/// The time for which a handler that has held a thread does not run on the worker of a waiting requester.
const HELD_LATELY: Duration = Duration::from_secs(1);

impl HandlerCounters {
    /// Records that the handler is holding a thread.
    pub(crate) fn hold(&self, now: Time) {
        self.held_at.store(now.as_nanoseconds().max(1), Ordering::Relaxed)
    }

    /// Records that the map drops a message that the handler would act on. From then on, all messages dropped
    /// by the map are verified. Returns whether this is the first such message.
    pub(crate) fn found_wrong_drop(&self) -> bool {
        !self.drops_wrongly.swap(true, Ordering::Relaxed)
    }

    /// Checks whether the map has dropped a message that the handler would act on.
    pub(crate) fn drops_wrongly(&self) -> bool {
        self.drops_wrongly.load(Ordering::Relaxed)
    }

    /// Checks whether the handler has ever held a thread. Once it has, each run keeps its messages in
    /// the thread's slot, so that the watchdog can show them.
    #[inline(always)]
    pub(crate) fn has_held(&self) -> bool {
        self.held_at.load(Ordering::Relaxed) != 0
    }

    /// Checks whether the handler has held a thread recently.
    #[inline(always)]
    pub(crate) fn has_held_lately(&self, now: Time) -> bool {
        let at = self.held_at.load(Ordering::Relaxed);
        at != 0 && now.since(Time::from_nanoseconds(at)) < HELD_LATELY
    }
}
