//! The lanes of bees, except each bee's first lane.
//!
//! A bee's first lane has the number of the bee, and takes no memory here. A bee has further lanes if it took a new one
//! (`Relane`), or inherited the lanes of bees that merged into it.

use crate::BeeId;
use std::collections::BTreeMap;

/// The lanes of bees, except each bee's first lane. Each lane is listed with its bee.
#[derive(Clone, Debug, Default)]
pub(super) struct Lanes {
    of: BTreeMap<u64, BeeId>,
    /// Whether the bee now sends on the lane.
    by_bee: BTreeMap<(BeeId, u64), bool>,
}

impl Lanes {
    /// Returns the bee that has a lane.
    pub(super) fn bee_of(&self, number: u64) -> Option<BeeId> {
        self.of.get(&number).copied()
    }

    /// Returns the lanes of a bee, and whether it now sends on them.
    pub(super) fn of(&self, bee: BeeId) -> impl Iterator<Item = (u64, bool)> {
        self.by_bee.range((bee, 0)..=(bee, u64::MAX)).map(|((_, number), is_current)| (*number, *is_current))
    }

    /// Returns the lane on which a bee sends now, unless it is the bee's first lane.
    pub(super) fn current(&self, bee: BeeId) -> Option<u64> {
        self.of(bee).find(|(_, is_current)| *is_current).map(|(number, _)| number)
    }

    /// Adds a lane that a bee inherited.
    pub(super) fn inherit(&mut self, bee: BeeId, number: u64) {
        let before = self.of.insert(number, bee);
        debug_assert_eq!(before, None, "lane {number} has two bees");
        self.by_bee.insert((bee, number), false);
    }

    /// Adds a lane, on which the bee sends from now on.
    pub(super) fn take(&mut self, bee: BeeId, number: u64) {
        for (_, is_current) in self.by_bee.range_mut((bee, 0)..=(bee, u64::MAX)) {
            *is_current = false
        }
        self.inherit(bee, number);
        self.by_bee.insert((bee, number), true);
    }

    /// Removes a lane.
    pub(super) fn remove(&mut self, number: u64) {
        if let Some(bee) = self.of.remove(&number) {
            self.by_bee.remove(&(bee, number));
        }
    }

    /// Removes the lanes of a bee, and returns them.
    pub(super) fn end(&mut self, bee: BeeId) -> Vec<u64> {
        let numbers: Vec<u64> = self.of(bee).map(|(number, _)| number).collect();
        numbers.iter().for_each(|number| self.remove(*number));
        numbers
    }

    /// Checks that the tables are consistent with each other.
    pub(super) fn agree(&self) -> bool {
        self.of.len() == self.by_bee.len()
            && self.of.iter().all(|(number, bee)| self.by_bee.contains_key(&(*bee, *number)))
    }
}
