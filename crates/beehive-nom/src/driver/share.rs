//! Fair shares of something scarce: each port may hold as much as is left for the others.
//!
//! One port that floods gets half, two get a third each, and there is always something left for one that has nothing yet.
//! Nobody has to know how many ports there are, and a decision looks at two numbers only.

use crate::object::PortNo;
use std::collections::{BTreeMap, VecDeque};

/// Whether one who holds `held` may have `more` when `free` are left.
#[inline]
pub(super) fn allows(held: usize, more: usize, free: usize) -> bool {
    held + more <= free
}

/// Which ports hold the credits of a driver; kept only while they are scarce.
///
/// Credits come back without a name. They are held to come back in the order in which they were taken, which is how a bee
/// works; where several bees are behind it is an estimate, and evens out.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// The longest held first; none: taken before credits were scarce.
    taken: VecDeque<(Option<PortNo>, u32)>,
    held: BTreeMap<PortNo, u32>,
    total: u32,
}

impl Ledger {
    /// Whether nothing is written in it: credits are not scarce.
    pub(super) fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// Credits have become scarce, and `in_use` of them are with nobody in particular.
    pub(super) fn open(&mut self, in_use: u32) {
        self.clear();
        self.push(None, in_use);
    }

    /// Credits that `port` holds.
    pub(super) fn held(&self, port: PortNo) -> u32 {
        self.held.get(&port).copied().unwrap_or(0)
    }

    /// `port` has taken one.
    pub(super) fn take(&mut self, port: PortNo) {
        *self.held.entry(port).or_default() += 1;
        self.push(Some(port), 1)
    }

    /// All but `in_use` have come back.
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

    /// Credits are not scarce any more.
    pub(super) fn clear(&mut self) {
        *self = Ledger::default()
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

    /// Ports that take as much as they are allowed to of 1 000.
    fn divided(flooding: u32) -> (Vec<u32>, u32) {
        let (mut ledger, mut free) = (Ledger::default(), 1_000u32);
        ledger.open(3_000);
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
        let mut ledger = Ledger::default();
        ledger.open(10);
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
