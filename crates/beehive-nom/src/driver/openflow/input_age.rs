//! Finds out how long messages wait before the driver reads them, with echo requests: the switch's reply stands behind
//! all that it had sent before. Part of what waits is in the switch's own send buffer, where nothing else can see it.

use crate::limits;
use beehive::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// The echo requests whose replies have not been read.
#[derive(Debug, Default)]
pub(super) struct InputAge {
    /// Transaction ids with the times at which they were sent, oldest first.
    unanswered: VecDeque<(u32, Time)>,
    /// Time at which the latest request was sent.
    latest: Option<Time>,
}

impl InputAge {
    /// Returns whether to send another request now.
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.unanswered.len() < limits::INPUT_PROBES_MAX
            && self.latest.is_none_or(|latest| now.since(latest) >= limits::INPUT_PROBE_INTERVAL)
    }

    /// Records that a request was sent.
    pub(super) fn sent(&mut self, xid: u32, now: Time) {
        self.unanswered.push_back((xid, now));
        self.latest = Some(now)
    }

    /// Records that a reply was read. All that was sent before the request has then been read, too.
    pub(super) fn answered(&mut self, xid: u32) {
        if let Some(at) = self.unanswered.iter().position(|(other, _)| *other == xid) {
            self.unanswered.drain(..=at);
        }
    }

    /// Returns whether messages may have waited for longer than [`limits::INPUT_AGE_MAX`].
    pub(super) fn is_overdue(&self, now: Time) -> bool {
        self.unanswered.front().is_some_and(|(_, sent)| now.since(*sent) >= limits::INPUT_AGE_MAX)
    }

    /// Returns the time at which to look again, while input is held back since `now`.
    pub(super) fn deadline(&self, now: Time) -> Time {
        let next = match self.latest {
            Some(latest) if self.unanswered.len() < limits::INPUT_PROBES_MAX => {
                latest + limits::INPUT_PROBE_INTERVAL
            }
            Some(_) => now + limits::INPUT_PROBE_INTERVAL,
            None => now,
        };
        // input that is overdue is read, so nothing else has to be waited for
        let deadline = match self.unanswered.front() {
            Some((_, sent)) if !self.is_overdue(now) => next.min(*sent + limits::INPUT_AGE_MAX),
            _ => next,
        };
        deadline.max(now + Duration::from_millis(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn input_is_overdue_until_the_reply_is_read() {
        let (interval, age_max) =
            (limits::INPUT_PROBE_INTERVAL.as_millis() as u64, limits::INPUT_AGE_MAX.as_millis() as u64);
        let mut age = InputAge::default();
        assert!(age.is_due(at(0)) && !age.is_overdue(at(99_999)));
        age.sent(1, at(0));
        assert!(!age.is_due(at(interval - 1)) && age.is_due(at(interval)));
        assert_eq!(age.deadline(at(1)), at(interval));
        age.sent(2, at(interval));
        assert!(!age.is_overdue(at(age_max - 1)) && age.is_overdue(at(age_max)));

        // the reply to the second request says more than the one to the first
        age.answered(99);
        assert!(age.is_overdue(at(age_max)));
        age.answered(2);
        assert!(!age.is_overdue(at(99_999)));
    }

    #[test]
    fn the_number_of_requests_is_bounded_even_if_none_is_answered() {
        let mut age = InputAge::default();
        let mut now = at(0);
        for xid in 0..1_000 {
            if age.is_due(now) {
                age.sent(xid, now)
            }
            now = age.deadline(now).max(now + Duration::from_millis(1))
        }
        assert_eq!(age.unanswered.len(), limits::INPUT_PROBES_MAX);
        assert!(age.is_overdue(now));
    }
}
