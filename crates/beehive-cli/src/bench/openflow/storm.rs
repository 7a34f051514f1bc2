//! The times at which switches are connected and set up, and the switches of a storm that have to try again.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::limits::STORM_RETRY;
use super::worker::WorkerResult;

/// The times at which a switch was connected and set up, since the start of the run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Arrival {
    /// It has answered the FEATURES_REQUEST.
    pub(super) ready: Option<Duration>,
    /// It has a table-miss flow or does not need one.
    pub(super) table_miss: Option<Duration>,
    /// The controller has asked for its flows.
    pub(super) flows_read: Option<Duration>,
}

/// Switches that connect again after a pause, in order.
#[derive(Debug, Default)]
pub(super) struct Retries {
    waiting: VecDeque<(Instant, usize)>,
    count: u64,
}

impl Retries {
    /// Adds a switch whose connection has just ended.
    pub(super) fn add(&mut self, now: Instant, at: usize) {
        self.count += 1;
        self.waiting.push_back((now + STORM_RETRY, at));
    }

    /// Removes and returns the switches whose pause is over.
    pub(super) fn due(&mut self, now: Instant) -> impl Iterator<Item = usize> + use<> {
        let due = self.waiting.iter().take_while(|(at, _)| *at <= now).count();
        self.waiting.drain(..due).map(|(_, at)| at).collect::<Vec<_>>().into_iter()
    }

    /// Returns how often switches have tried again.
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

/// How a storm went. Names of time fields end in their unit.
#[derive(Debug, Serialize)]
pub(super) struct Storm {
    /// Switches that have answered the FEATURES_REQUEST.
    pub(super) ready: Spread,
    /// Switches that have a table-miss flow or do not need one.
    pub(super) table_miss: Spread,
    /// Switches that were asked for their flows.
    pub(super) flows_read: Spread,
    /// Number of connections that were refused or ended before the handshake was complete. The switch tried again.
    pub(super) retried: u64,
}

/// When the first, the median and the last of these switches got so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Spread {
    pub(super) switches: u32,
    pub(super) first_s: f64,
    pub(super) median_s: f64,
    pub(super) last_s: f64,
}

impl Storm {
    /// Combines the results of the workers.
    pub(super) fn new(results: &[WorkerResult]) -> Self {
        let spread = |time: fn(&Arrival) -> Option<Duration>| {
            Spread::new(results.iter().flat_map(|result| result.arrivals.iter().filter_map(time)).collect())
        };
        Self {
            ready: spread(|arrival| arrival.ready),
            table_miss: spread(|arrival| arrival.table_miss),
            flows_read: spread(|arrival| arrival.flows_read),
            retried: results.iter().map(|result| result.retried).sum(),
        }
    }
}

impl Spread {
    fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |place: usize| times.get(place).map_or(0.0, Duration::as_secs_f64);
        Self {
            switches: times.len() as u32,
            first_s: at(0),
            median_s: at(times.len() / 2),
            last_s: at(times.len().saturating_sub(1)),
        }
    }
}

impl fmt::Display for Storm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("connected", self.ready),
            ("table-miss flow", self.table_miss),
            ("flows read", self.flows_read),
        ];
        f.write_str("  storm        ")?;
        for (name, Spread { switches, first_s, median_s, last_s }) in parts {
            write!(
                f,
                "{name}: {switches}, first {first_s:.3} s, median {median_s:.3} s, last {last_s:.3} s; "
            )?;
        }
        writeln!(f, "{} refused or reset, and tried again", self.retried)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_switch_tries_again_after_a_pause() {
        let (mut retries, now) = (Retries::default(), Instant::now());
        retries.add(now, 7);
        retries.add(now + STORM_RETRY / 2, 3);
        assert_eq!(retries.due(now + STORM_RETRY / 2).count(), 0);
        assert_eq!(retries.due(now + STORM_RETRY).collect::<Vec<_>>(), [7]);
        assert_eq!(retries.due(now + STORM_RETRY * 2).collect::<Vec<_>>(), [3]);
        assert_eq!((retries.count(), retries.due(now + STORM_RETRY * 9).count()), (2, 0));
    }

    #[test]
    fn the_spread_of_times_is_told_and_nobody_is_no_time() {
        let seconds = |list: &[u64]| list.iter().map(|s| Duration::from_secs(*s)).collect();
        let spread = Spread::new(seconds(&[5, 1, 3]));
        assert_eq!(spread, Spread { switches: 3, first_s: 1.0, median_s: 3.0, last_s: 5.0 });
        assert_eq!(Spread::new(seconds(&[])), Spread::default());
    }
}
