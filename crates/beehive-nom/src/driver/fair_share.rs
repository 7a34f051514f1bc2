//! Divides a scarce resource fairly: a port may hold at most as much as is still free.
//!
//! A single flooding port gets half of the resource, two of them get a third each, and there is always some left for
//! a port that holds none. The number of ports need not be known, and each decision compares only two numbers.

use crate::object::PortNo;
use std::collections::{BTreeMap, VecDeque};

/// Returns whether a port that holds `held` units may take `more` units if `free` units are left.
#[inline]
pub(super) fn allows(held: usize, more: usize, free: usize) -> bool {
    held + more <= free
}

/// Records how many of a driver's credits each port holds. It is maintained only while credits are scarce.
///
/// A returned credit does not name its port. The ledger assumes that credits return in the order in which they were
/// taken, which is true if a single bee handles the packets; with several bees, it is an estimate whose errors average
/// out.
#[derive(Debug, Default)]
pub(super) struct CreditLedger {
    /// Credits in the order in which they were taken. `None` stands for credits taken before credits became scarce.
    taken: VecDeque<(Option<PortNo>, u32)>,
    held: BTreeMap<PortNo, u32>,
    total: u32,
}

impl CreditLedger {
    /// Returns whether the ledger is empty, that is, credits are not scarce.
    pub(super) fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// Starts the ledger when credits become scarce. Unknown ports hold the `in_use` credits that are already taken.
    pub(super) fn start(&mut self, in_use: u32) {
        self.clear();
        self.push(None, in_use);
    }

    /// Returns the number of credits that `port` holds.
    pub(super) fn held(&self, port: PortNo) -> u32 {
        self.held.get(&port).copied().unwrap_or(0)
    }

    /// Records that `port` has taken one credit.
    pub(super) fn take(&mut self, port: PortNo) {
        *self.held.entry(port).or_default() += 1;
        self.push(Some(port), 1)
    }

    /// Records that all credits except `in_use` have been returned.
    pub(super) fn settle(&mut self, in_use: u32) {
        while self.total > in_use
            && let Some((port, count)) = self.taken.front_mut()
        {
            let back = (*count).min(self.total - in_use);
            *count -= back;
            self.total -= back;
            let (port, is_over) = (*port, *count == 0);

            if is_over {
                self.taken.pop_front();
            }

            let Some(port) = port else { continue };

            if let Some(held) = self.held.get_mut(&port) {
                *held = held.saturating_sub(back);
                if *held == 0 {
                    self.held.remove(&port);
                }
            }
        }
    }

    /// Empties the ledger when credits are no longer scarce.
    pub(super) fn clear(&mut self) {
        *self = CreditLedger::default()
    }

    fn push(&mut self, port: Option<PortNo>, count: u32) {
        self.total += count;
        match self.taken.back_mut() {
            Some((last, held)) if *last == port => *held += count,
            _ => self.taken.push_back((port, count)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates ports that take as many of 1 000 credits as they are allowed to.
    fn divided(flooding: u32) -> (Vec<u32>, u32) {
        let (mut ledger, mut free) = (CreditLedger::default(), 1_000u32);
        ledger.start(3_000);
        for _ in 0..2_000 {
            for port in (0..flooding).map(PortNo) {
                if allows(ledger.held(port) as usize, 1, free as usize) {
                    ledger.take(port);
                    free -= 1
                }
            }
        }

        ((0..flooding).map(|port| ledger.held(PortNo(port))).collect(), free)
    }

    #[test]
    fn floods_get_equal_shares_and_leave_one_free() {
        for (flooding, share) in [(1, 500), (2, 333), (4, 200), (9, 100)] {
            let (held, free) = divided(flooding);
            assert!(held.iter().all(|held| held.abs_diff(share) <= 2), "{flooding} flood: {held:?}");
            assert!(free + 2 >= share, "{flooding} flood, {free} left");
        }
    }

    #[test]
    fn credits_come_back_in_the_order_in_which_they_were_taken() {
        let (a, b) = (PortNo(1), PortNo(2));
        let mut ledger = CreditLedger::default();
        ledger.start(10);
        (0..5).for_each(|_| ledger.take(a));
        (0..3).for_each(|_| ledger.take(b));
        ledger.settle(18);
        assert_eq!((ledger.held(a), ledger.held(b)), (5, 3), "none has come back");
        ledger.settle(8);

        assert_eq!((ledger.held(a), ledger.held(b)), (5, 3), "those from before have come back");
        ledger.settle(4);
        assert_eq!((ledger.held(a), ledger.held(b)), (1, 3));
        ledger.settle(0);
        assert_eq!((ledger.held(a), ledger.held(b)), (0, 0));

        assert!(ledger.is_empty() && ledger.held.is_empty());
    }
}
