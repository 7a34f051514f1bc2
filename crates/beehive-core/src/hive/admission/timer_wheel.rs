//! Timers as data: what is due when, in one ordered table, woken by one sleep.

use crate::hive::admission::credits::{Cause, InFlight};
use crate::hive::admission::deferred_wakes;
use crate::time::Time;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tokio::sync::Notify;

/// What has been taken, and what says that it is under way.
type Fired<F> = (Arc<Cause>, Vec<F>);

struct Due<F> {
    table: BTreeMap<(Time, u64), F>,
    next_id: u64,
}

/// What a hive has to do later.
pub(crate) struct TimerWheel<F> {
    due: Mutex<Due<F>>,
    pub(crate) sooner: Arc<Notify>,
    /// Ticks that were left out because the one before was not done.
    pub(crate) collapsed: AtomicU64,
}

impl<F> Default for TimerWheel<F> {
    fn default() -> Self {
        let due = Due { table: BTreeMap::new(), next_id: 0 };
        TimerWheel { due: Mutex::new(due), sooner: Arc::default(), collapsed: AtomicU64::new(0) }
    }
}

impl<F> TimerWheel<F> {
    pub(crate) fn at(&self, at: Time, fire: F) {
        let mut due = self.due.lock();
        due.next_id += 1;
        let id = due.next_id;
        let first = due.table.first_key_value().is_none_or(|((first, _), _)| at < *first);
        due.table.insert((at, id), fire);
        drop(due);
        if first {
            deferred_wakes::one(&self.sooner)
        }
    }

    /// Number of timers that wait.
    pub(crate) fn len(&self) -> usize {
        self.due.lock().table.len()
    }

    /// Takes what is due at `now` out of the table, and tells when the next is. What is taken is under way for as long as
    /// its cause is held, from before it has left the table: at no time does it neither wait nor count as work.
    pub(crate) fn take_due(&self, now: Time, in_flight: &Arc<InFlight>) -> (Option<Fired<F>>, Option<Time>) {
        let mut due = self.due.lock();
        let mut fired: Option<Fired<F>> = None;
        while let Some(entry) = due.table.first_entry() {
            if entry.key().0 > now {
                return (fired, Some(entry.key().0));
            }
            let fired = fired.get_or_insert_with(|| (in_flight.begin(), Vec::new()));
            fired.1.push(entry.remove());
        }
        (fired, None)
    }

    /// Drops all that wait; returns how many.
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
