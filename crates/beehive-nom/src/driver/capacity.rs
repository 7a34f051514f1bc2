//! Shares the hive's capacity for packets among the switches that have more to say than the hive can handle, and bounds
//! the memory of all packets that wait in drivers.
//!
//! Each driver may have a share of [`limits::PACKETS_IN_FLIGHT_MAX`] packets in flight: the fewer, the more drivers are
//! busy. All busy drivers have the same share, and a bee handles the packets of a switch together. If more than
//! [`limits::TURNS_MAX`] drivers are busy, they [take turns](crate::driver::turns), first come first served. A switch that
//! sends little takes no turns, and waits behind the packets in flight at most.

use crate::limits;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use tokio::sync::Semaphore;

/// The capacity of one hive for the packets of its switches.
///
/// The counters guard no other data, so relaxed ordering suffices.
#[derive(Debug)]
pub struct Capacity {
    /// Number of busy drivers.
    busy: AtomicU32,
    /// Total size of the packets that wait in drivers, in bytes.
    waiting_bytes: AtomicUsize,
    /// The turns that no driver has. Drivers wait for them in the order in which they came.
    turns: Arc<Semaphore>,
}

impl Default for Capacity {
    fn default() -> Self {
        let turns = Arc::new(Semaphore::new(limits::TURNS_MAX as usize));
        Capacity { busy: AtomicU32::new(0), waiting_bytes: AtomicUsize::new(0), turns }
    }
}

impl Capacity {
    /// Returns the number of switches that recently had more packets than the hive could handle at once.
    pub fn busy(&self) -> u32 {
        self.busy.load(Ordering::Relaxed)
    }

    /// Returns the total size of the packets that wait in drivers, in bytes.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of switches whose turn it is. Zero while so few are busy that they take no turns.
    pub fn turns_taken(&self) -> u32 {
        limits::TURNS_MAX.saturating_sub(self.turns.available_permits() as u32)
    }

    /// Returns whether so many drivers are busy that they take turns.
    #[inline]
    pub(super) fn has_turns(&self) -> bool {
        self.busy() > limits::TURNS_MAX
    }

    /// Returns the turns that no driver has.
    pub(super) fn turns(&self) -> &Arc<Semaphore> {
        &self.turns
    }

    /// Returns the number of packets that one driver may have in flight, if it is its turn.
    #[inline]
    pub(super) fn share(&self) -> u32 {
        let equal = limits::PACKETS_IN_FLIGHT_MAX / self.busy().clamp(1, limits::TURNS_MAX);
        equal.min(limits::CREDITS_PER_DRIVER)
    }

    /// Returns whether one more packet may wait in a driver.
    pub(super) fn may_wait(&self) -> bool {
        self.waiting_bytes() < limits::WAITING_BYTES_MAX
    }
}

/// What one driver contributes to a [`Capacity`]. Dropping this value takes it back.
#[derive(Debug)]
pub(super) struct Contribution {
    capacity: Arc<Capacity>,
    is_busy: bool,
    waiting_bytes: usize,
}

impl Contribution {
    pub(super) fn to(capacity: Arc<Capacity>) -> Contribution {
        Contribution { capacity, is_busy: false, waiting_bytes: 0 }
    }

    pub(super) fn capacity(&self) -> &Arc<Capacity> {
        &self.capacity
    }

    pub(super) fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Records whether the driver is busy.
    pub(super) fn set_busy(&mut self, is_busy: bool) {
        match (self.is_busy, is_busy) {
            (false, true) => self.capacity.busy.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.capacity.busy.fetch_sub(1, Ordering::Relaxed),
            _ => return,
        };
        self.is_busy = is_busy
    }

    /// Records the size of the packets that wait in the driver.
    #[inline]
    pub(super) fn set_waiting(&mut self, bytes: usize) {
        if bytes != self.waiting_bytes {
            // wraps around if the driver has fewer bytes than before, which subtracts the difference
            let more = bytes.wrapping_sub(self.waiting_bytes);
            self.capacity.waiting_bytes.fetch_add(more, Ordering::Relaxed);
            self.waiting_bytes = bytes
        }
    }
}

impl Drop for Contribution {
    fn drop(&mut self) {
        self.set_busy(false);
        self.set_waiting(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_shrinks_with_the_number_of_busy_drivers_and_grows_again() {
        let capacity = Arc::new(Capacity::default());
        assert_eq!(capacity.share(), limits::CREDITS_PER_DRIVER);
        let mut drivers: Vec<_> = (0..200).map(|_| Contribution::to(capacity.clone())).collect();
        drivers.iter_mut().for_each(|driver| driver.set_busy(true));
        drivers.iter_mut().for_each(|driver| driver.set_busy(true));
        let least = limits::PACKETS_IN_FLIGHT_MAX / limits::TURNS_MAX;
        assert_eq!((capacity.busy(), capacity.share(), capacity.has_turns()), (200, least, true));
        drivers.truncate(limits::TURNS_MAX as usize);
        assert_eq!((capacity.share(), capacity.has_turns()), (least, false));
        drivers.truncate(20);
        assert_eq!(capacity.share(), limits::PACKETS_IN_FLIGHT_MAX / 20);
        drivers.iter_mut().for_each(|driver| driver.set_busy(false));
        assert_eq!((capacity.busy(), capacity.share()), (0, limits::CREDITS_PER_DRIVER));
        drivers.extend((0..10_000).map(|_| Contribution::to(capacity.clone())));
        drivers.iter_mut().for_each(|driver| driver.set_busy(true));
        assert_eq!(capacity.share(), least);
    }

    #[test]
    fn waiting_bytes_are_summed_over_the_drivers_that_are_there() {
        let capacity = Arc::new(Capacity::default());
        let (mut one, mut two) = (Contribution::to(capacity.clone()), Contribution::to(capacity.clone()));
        one.set_waiting(10);
        two.set_waiting(limits::WAITING_BYTES_MAX);
        assert!(!capacity.may_wait());
        one.set_waiting(4);
        assert_eq!(capacity.waiting_bytes(), limits::WAITING_BYTES_MAX + 4);
        drop(two);
        assert_eq!(capacity.waiting_bytes(), 4);
        assert!(capacity.may_wait());
    }
}
