//! The time that handlers see and logs record.

use crate::hive::consensus::journal::Record;
use crate::hive::consensus::log_client::LogClient;
use crate::limits::{CLOCK_CORRECTION, CLOCK_JUMP_MAX, TIME_LOGGED_EVERY};
use crate::time::Time;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

/// Turns the platform's time into the hive's time.
///
/// Without a log, the two are equal. A hive that goes on with a log begins with the latest time in the log, because what is
/// in the log was measured with it: handlers compare such times with the present one, to find out what has expired. If the
/// platform's clock is ahead, at most [`CLOCK_JUMP_MAX`] of the difference is added at once. From then on, the hive's time
/// follows the platform's time, which is monotonic, and approaches it, with a correction of one part in
/// [`CLOCK_CORRECTION`]. So a clock that is wrong by a year neither stops time until the year is over, nor lets everything
/// expire that expires within a year. The time for which a hive did not run counts up to [`CLOCK_JUMP_MAX`] at once, and
/// the rest little by little.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoggedClock {
    /// The platform's time at the start.
    start: Time,
    /// By how many nanoseconds the hive's time is ahead at the start.
    ahead: u64,
    /// By how many nanoseconds it is behind at the start.
    behind: u64,
}

impl LoggedClock {
    /// Starts the clock of a hive when the platform's time is `start`. `latest` contains the latest time in each log. Warns if
    /// the two are far from each other.
    pub(crate) fn start(start: Time, latest: impl Iterator<Item = Time>) -> LoggedClock {
        // a log in which anything has happened contains a time
        let clock = LoggedClock::new(start, latest.max().filter(|latest| *latest > Time::ZERO));
        if !clock.gap().is_zero() {
            tracing::warn!(
                gap = ?clock.gap(),
                "the clock of the machine is far from the latest time in the log: the hive's time goes on from there, and \
                 approaches the clock little by little"
            )
        }
        clock
    }

    /// Starts a clock when the platform's time is `start`. `latest` is the latest time in the logs, if any.
    fn new(start: Time, latest: Option<Time>) -> LoggedClock {
        let latest = latest.unwrap_or(start);
        let ahead = latest.as_nanoseconds().saturating_sub(start.as_nanoseconds());
        let reached = (latest + CLOCK_JUMP_MAX).as_nanoseconds();
        LoggedClock { start, ahead, behind: start.as_nanoseconds().saturating_sub(reached) }
    }

    /// Returns the hive's time at the moment `now` of the platform.
    #[inline]
    pub(crate) fn at(&self, now: Time) -> Time {
        if self.ahead | self.behind == 0 {
            return now;
        }
        let now = now.as_nanoseconds();
        let corrected = now.saturating_sub(self.start.as_nanoseconds()) / CLOCK_CORRECTION;
        let ahead = now.saturating_add(self.ahead.saturating_sub(corrected));
        Time::from_nanoseconds(ahead.saturating_sub(self.behind.saturating_sub(corrected)))
    }

    /// Returns how far the hive's time is from the platform's, at the start.
    fn gap(&self) -> Duration {
        Duration::from_nanos(self.ahead.max(self.behind))
    }
}

/// The time as it was last logged.
#[derive(Debug)]
pub(crate) struct TimeLogged {
    at: Time,
    /// Completes when the record is committed.
    committed: Option<oneshot::Receiver<()>>,
}

impl TimeLogged {
    /// Counts from `start`, the hive's time at its start.
    pub(crate) fn new(start: Time) -> TimeLogged {
        TimeLogged { at: start, committed: None }
    }

    /// Logs the time, if the last record is old enough, and committed: while a log cannot commit, no further ones wait.
    pub(crate) fn log<W: ?Sized>(&mut self, now: Time, log: &LogClient<W>) {
        let waits = self.committed.as_mut().is_some_and(|told| told.try_recv() == Err(TryRecvError::Empty));
        if !waits && now.since(self.at) >= TIME_LOGGED_EVERY {
            self.committed = Some(log.say(Record::Time(now)));
            self.at = now
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YEAR: Duration = Duration::from_secs(365 * 86_400);
    const HOUR: Duration = Duration::from_secs(3600);

    fn noon() -> Time {
        Time::ZERO + 50 * YEAR
    }

    #[test]
    fn without_a_log_or_after_a_short_pause_it_is_the_platforms_time() {
        for latest in [None, Some(noon()), Some(noon() - CLOCK_JUMP_MAX)] {
            let clock = LoggedClock::new(noon(), latest);
            assert_eq!((clock.at(noon()), clock.at(noon() + HOUR)), (noon(), noon() + HOUR));
            assert_eq!(clock.gap(), Duration::ZERO);
        }
    }

    #[test]
    fn a_wrong_clock_neither_stops_time_nor_lets_it_leap() {
        for (start, begins) in [(noon() - YEAR, noon()), (noon() + YEAR, noon() + CLOCK_JUMP_MAX)] {
            let clock = LoggedClock::new(start, Some(noon()));
            assert_eq!(clock.at(start), begins);
            let mut last = clock.at(start);
            for step in 1..1_000 {
                let now = clock.at(start + step * HOUR);
                let passed = now.since(last);
                assert!(passed >= HOUR * 7 / 8 && passed <= HOUR * 9 / 8, "{passed:?} in an hour");
                last = now
            }
            let end = start + YEAR * 8;
            assert_eq!(clock.at(end + CLOCK_JUMP_MAX), end + CLOCK_JUMP_MAX, "in the end it is right");
        }
    }
}
