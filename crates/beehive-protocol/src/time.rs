//! Time as handlers see it: a number that comes from the platform and is recorded in the log.

use serde::{Deserialize, Serialize};
use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment, in nanoseconds since the start of 1970 (UTC), read from the hive's clock. It never runs backwards within a
/// hive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Time(u64);

impl Time {
    /// The start of 1970, which is the earliest moment.
    pub const ZERO: Time = Time(0);

    /// Returns the moment `nanoseconds` after the start of 1970.
    pub const fn from_nanoseconds(nanoseconds: u64) -> Time {
        Time(nanoseconds)
    }

    /// Returns the nanoseconds since the start of 1970.
    pub const fn as_nanoseconds(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to this moment, or zero if `earlier` is later than this moment.
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(duration.as_nanos().min(u64::MAX as u128) as u64))
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    /// Saturates at [`Time::ZERO`].
    fn sub(self, duration: Duration) -> Time {
        Time(self.0.saturating_sub(duration.as_nanos().min(u64::MAX as u128) as u64))
    }
}

impl Sub<Time> for Time {
    type Output = Duration;
    /// Same as [`Time::since`].
    fn sub(self, earlier: Time) -> Duration {
        self.since(earlier)
    }
}
