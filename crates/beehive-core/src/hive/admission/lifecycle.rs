//! What a hive did with the work in flight when it stopped.

/// What a hive did with what was under way when it stopped.
///
/// What it has thrown away is lost where there is no log; where there is one, the next life goes on with whatever the log
/// remembers: messages that were emitted and not handled, timers, sweeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stopped {
    /// Flushes of IO bees, and single messages and questions from outside, that were not done with all that they caused.
    /// Whoever still waited for an answer was told [`RequestError::Unavailable`](crate::RequestError::Unavailable).
    pub unfinished: u64,
    /// Runs of messages that waited in front of their bees and were thrown away. What a handler that was at work had behind
    /// it, in the same hands, is thrown away when that handler returns, and counts as `unfinished` only.
    pub runs_dropped: usize,
    /// Timers that had not rung and were dropped: those that handlers had set, and the next tick of each `#[every]`.
    pub timers_dropped: usize,
    /// IO bees that had not returned and were dropped where they waited.
    pub io_bees_dropped: usize,
}

impl Stopped {
    /// Whether everything that had come in was handled, with all that it caused, and all IO bees had returned. Timers do not
    /// count: there are always some.
    pub fn is_clean(&self) -> bool {
        self.unfinished == 0 && self.runs_dropped == 0 && self.io_bees_dropped == 0
    }
}
