//! The report about the work in flight when a hive stopped.

/// A report about the work in flight when a hive stopped.
///
/// Without a log, dropped work is lost. With a log, the next incarnation resumes the logged work: messages
/// that were emitted but not handled, timers, and sweeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stopped {
    /// Number of flushed batches, single messages and requests from outside that were not done, including
    /// everything they caused. Requests that were still waiting for an answer ended with
    /// [`RequestError::Unavailable`](crate::RequestError::Unavailable).
    pub unfinished: u64,
    /// Number of message runs dropped from mailboxes. Runs that a running bee had already taken out of its
    /// mailbox are dropped when the handler returns; only `unfinished` counts those.
    pub runs_dropped: usize,
    /// Number of timers dropped before they fired: timers set by handlers, and the next tick of each
    /// `#[every]`.
    pub timers_dropped: usize,
    /// Number of IO bees that had not returned and were dropped at an await point.
    pub io_bees_dropped: usize,
}

impl Stopped {
    /// Checks whether the hive had handled all messages from outside and everything they caused, and whether
    /// all IO bees had returned. Timers do not count, because some are always pending.
    pub fn is_clean(&self) -> bool {
        self.unfinished == 0 && self.runs_dropped == 0 && self.io_bees_dropped == 0
    }
}
