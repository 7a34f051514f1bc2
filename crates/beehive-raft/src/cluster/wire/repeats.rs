//! Keeps the same refusal from filling the log.

use std::time::{Duration, Instant};

/// Remembers what was logged last.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    last: Option<(String, Instant)>,
}

impl Repeats {
    /// Returns whether a text is to be logged: it is another one than the last, or the last was logged long ago.
    pub(super) fn is_new(&mut self, text: &str, every: Duration) -> bool {
        let now = Instant::now();
        let is_new = self.last.as_ref().is_none_or(|(last, at)| last != text || now - *at >= every);
        if is_new {
            self.last = Some((text.to_string(), now));
        }
        is_new
    }

    /// Returns whether anything is to be logged: the last line was logged long ago.
    pub(super) fn is_due(&mut self, every: Duration) -> bool {
        self.is_new("", every)
    }
}
