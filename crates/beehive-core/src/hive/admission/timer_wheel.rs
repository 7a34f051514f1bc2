//! A hive's timers: one table, ordered by time. One task sleeps until the next timer is due.

use crate::hive::admission::credits::{Cause, InFlight};
use crate::hive::admission::deferred_wakes;
use crate::hive::admission::offices::Office;
use crate::time::Time;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tokio::sync::Notify;

/// Timers taken out of the table, and the cause that counts them as work in flight.
type Fired<F> = (Arc<Cause>, Vec<F>);

/// The table of timers, and the last id assigned.
struct Due<F> {
    /// Timers by time and id. Timers due at the same time fire in the order in which they were set.
    table: BTreeMap<(Time, u64), (Office, F)>,
    next_id: u64,
}

/// A hive's timers.
pub(crate) struct TimerWheel<F> {
    due: Mutex<Due<F>>,
    /// Notified when a timer is set to fire before all others.
    pub(crate) sooner: Arc<Notify>,
    /// Number of ticks skipped, for all cells or some, because the previous tick was still in flight. Relaxed ordering suffices,
    /// because only the status reads it.
    pub(crate) collapsed: AtomicU64,
}

impl<F> Default for TimerWheel<F> {
    fn default() -> Self {
        let due = Due { table: BTreeMap::new(), next_id: 0 };
        TimerWheel { due: Mutex::new(due), sooner: Arc::default(), collapsed: AtomicU64::new(0) }
    }
}

impl<F> TimerWheel<F> {
    /// Sets a timer that belongs to no log.
    pub(crate) fn at(&self, at: Time, fire: F) {
        self.in_office(Office::NONE, at, fire)
    }

    /// Sets a timer of a sender that belongs to the log which the hive leads in this office.
    pub(crate) fn in_office(&self, office: Office, at: Time, fire: F) {
        let mut due = self.due.lock();
        due.next_id += 1;
        let id = due.next_id;
        let first = due.table.first_key_value().is_none_or(|((first, _), _)| at < *first);
        due.table.insert((at, id), (office, fire));

        drop(due);
        if first {
            deferred_wakes::one(&self.sooner)
        }
    }

    /// Returns the number of timers in the table.
    pub(crate) fn len(&self) -> usize {
        self.due.lock().table.len()
    }

    /// Takes the timers that are due at `now`, and returns them with the time of the next timer. These timers
    /// count as in flight while the caller holds the returned cause. The cause begins before they leave the
    /// table, so the hive never looks idle in between.
    pub(crate) fn take_due(&self, now: Time, in_flight: &Arc<InFlight>) -> (Option<Fired<F>>, Option<Time>) {
        let mut due = self.due.lock();
        let mut fired: Option<Fired<F>> = None;
        while let Some(entry) = due.table.first_entry() {
            if entry.key().0 > now {
                return (fired, Some(entry.key().0));
            }
            let fired = fired.get_or_insert_with(|| (in_flight.begin(), Vec::new()));
            fired.1.push(entry.remove().1);
        }

        (fired, None)
    }

    /// Drops the timers of a log that the hive no longer leads: its next leader has set them, too.
    pub(crate) fn cancel(&self, office: Office) {
        let cancelled: Vec<_> = self.due.lock().table.extract_if(.., |_, (of, _)| *of == office).collect();
        // without the lock: dropping a message runs the app's code
        drop(cancelled)
    }

    /// Drops all timers and returns how many there were.
    pub(crate) fn clear(&self) -> usize {
        let table = std::mem::take(&mut self.due.lock().table);
        table.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_been_taken_is_under_way_until_it_has_fired() {
        let (timers, in_flight) = (TimerWheel::default(), Arc::new(InFlight::default()));
        let second = |n: u64| Time::from_nanoseconds(n * 1_000_000_000);
        timers.at(second(1), ());
        timers.at(second(3), ());
        let (early, next) = timers.take_due(Time::from_nanoseconds(0), &in_flight);
        assert!(early.is_none() && (in_flight.count() == 0) && next == Some(second(1)));
        let (fired, next) = timers.take_due(second(2), &in_flight);
        assert!(timers.len() == 1 && in_flight.count() > 0 && next == Some(second(3)));
        assert_eq!(fired.as_ref().map(|fired| fired.1.len()), Some(1));
        drop(fired);
        assert!((in_flight.count() == 0))
    }
}
