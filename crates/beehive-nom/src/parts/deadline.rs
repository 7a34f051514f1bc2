//! Keeps the expiry times of table entries without a write for every packet.

use beehive::{RowKey, Rows, Time};
use std::time::Duration;

/// Precision of deadlines. A change of at most this length is not written.
const PRECISION: Duration = Duration::from_secs(1);

/// Postpones the deadline of `key` to `until`, unless the deadline would change by a second or less. Never moves a
/// deadline back. Therefore a busy station causes at most one write per second instead of one per packet.
///
/// ```
/// use beehive_core::{OwnedRows, Time};
/// use beehive_nom::parts::extend;
///
/// let (mut until, at) = (OwnedRows::<u32, Time>::default(), |ms: u64| Time::from_nanoseconds(ms * 1_000_000));
/// extend(&mut until, 7, at(5_000));
/// extend(&mut until, 7, at(5_900)); // less than a second later
/// assert_eq!(until.get(&7), Some(&at(5_000)));
/// extend(&mut until, 7, at(6_100));
/// extend(&mut until, 7, at(2_000)); // would move the deadline back
/// assert_eq!(until.get(&7), Some(&at(6_100)));
/// ```
#[inline]
pub fn extend<K: RowKey>(deadlines: &mut Rows<K, Time>, key: K, until: Time) {
    if deadlines.get(&key).is_none_or(|known| *known < until - PRECISION) {
        deadlines.insert(key, until);
    }
}

/// Converts a number of seconds from the settings.
pub fn seconds(number: impl Into<u64>) -> Duration {
    Duration::from_secs(number.into())
}
