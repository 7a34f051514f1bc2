//! The counters of one handler.

use crate::time::Time;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The counters of one handler. Relaxed is enough for all of them: they guard no other data.
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
    /// Whether a message has been found that the map drops but the handler would not.
    drops_wrongly: AtomicBool,
    /// Time at which it last held a thread, in nanoseconds; zero if never.
    held_at: AtomicU64,
}

/// For this long after it held a thread, a handler does not run on the worker of a waiting requester.
const HELD_LATELY: Duration = Duration::from_secs(1);

impl HandlerCounters {
    /// Notes that the handler holds a thread.
    pub(crate) fn hold(&self, now: Time) {
        self.held_at.store(now.as_nanoseconds().max(1), Ordering::Relaxed)
    }

    /// Notes that the map drops a message that the handler would not. All later messages that it drops are
    /// verified. Returns whether this is the first one.
    pub(crate) fn found_wrong_drop(&self) -> bool {
        !self.drops_wrongly.swap(true, Ordering::Relaxed)
    }

    /// Checks whether the map has dropped a message that the handler would not.
    pub(crate) fn drops_wrongly(&self) -> bool {
        self.drops_wrongly.load(Ordering::Relaxed)
    }

    /// Checks whether the handler has ever held a thread. From the first time on, its messages are recorded
    /// while they run.
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
