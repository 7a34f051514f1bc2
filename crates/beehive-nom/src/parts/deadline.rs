//! Deadlines: until when something is remembered, without a note for each packet.

use beehive::{RowKey, Rows, Time};
use std::time::Duration;

/// How exactly deadlines are kept: what would move one by less is no reason to write.
const PRECISION: Duration = Duration::from_secs(1);

/// Moves the deadline of `key` to `until` or a second before, at the earliest; never back. So a busy station costs one
/// write a second, not one a packet.
///
/// ```
/// use beehive_core::{Rows, Time};
/// use beehive_nom::parts::extend;
///
/// let (mut until, at) = (Rows::<u32, Time>::default(), |ms: u64| Time::from_nanoseconds(ms * 1_000_000));
/// extend(&mut until, 7, at(5_000));
/// extend(&mut until, 7, at(5_900)); // less than a second later
/// assert_eq!(until.get(&7), Some(&at(5_000)));
/// extend(&mut until, 7, at(6_100));
/// extend(&mut until, 7, at(2_000)); // never back
/// assert_eq!(until.get(&7), Some(&at(6_100)));
/// ```
#[inline]
pub fn extend<K: RowKey>(deadlines: &mut Rows<K, Time>, key: K, until: Time) {
    if deadlines.get(&key).is_none_or(|known| *known < until - PRECISION) {
        deadlines.insert(key, until);
    }
}

/// So many seconds, as settings say them.
pub fn seconds(number: impl Into<u64>) -> Duration {
    Duration::from_secs(number.into())
}
