//! Claims: who owns the cells of a message, and which bees must merge for it.

use super::{Aim, RegistryState};
use crate::{AppId, BeeId, CellId, ColonyId, Decision, Epoch};
use smallvec::SmallVec;
use std::cmp::Reverse;

impl RegistryState {
    pub(super) fn claim(&mut self, app: AppId, cells: &[CellId], colony: ColonyId) -> Option<Decision> {
        // an empty set of cells has no owner
        let index = self.index;
        let mut owners: SmallVec<[BeeId; 4]> = SmallVec::new();
        let mut unowned: SmallVec<[CellId; 4]> = SmallVec::new();
        for cell in cells {
            match self.owners.of(app, *cell) {
                Some(owner) if !owners.contains(&owner.bee) => owners.push(owner.bee),
                None if !unowned.contains(cell) => unowned.push(*cell),
                _ => {}
            }
        }
        if !self.owners.has_room(unowned.len()) {
            return None;
        }

        let mut roots: SmallVec<[BeeId; 4]> = SmallVec::new();
        for owner in &owners {
            let root = self.aims.root(*owner);
            if !roots.contains(&root) {
                roots.push(root)
            }
        }

        let (root, created) = match self.winner(&roots) {
            Some(root) => (root, false),
            None => (self.begin(app, colony, &unowned)?, true),
        };
        for other in roots.iter().filter(|bee| **bee != root) {
            self.aims.set(*other, Some(Aim::Bee(root)))
        }
        self.owners.give(&unowned, root);

        let place = self.owners.get(root)?;
        owners.retain(|bee| *bee != root);
        let (colony, epoch, merging) = (place.colony, place.epoch, owners.into_vec());
        Some(Decision::Owner { root, colony, epoch, created, merging, index })
    }

    /// Selects the bee into which the others merge: bees of replicated colonies are preferred, then the bee with the
    /// most cells, then the one with the lowest id.
    fn winner(&self, roots: &[BeeId]) -> Option<BeeId> {
        if let [only] = roots {
            return Some(*only);
        }
        let rank = |bee: &BeeId| {
            let owner = self.owners.get(*bee)?;
            let is_replicated = self.colony(owner.colony).is_some_and(|colony| colony.is_replicated);
            Some((is_replicated, owner.cells, Reverse(*bee)))
        };
        roots.iter().copied().max_by_key(rank)
    }

    /// Adds a bee for cells without an owner. The caller gives it the cells.
    fn begin(&mut self, app: AppId, colony: ColonyId, cells: &[CellId]) -> Option<BeeId> {
        if cells.is_empty() {
            return None;
        }
        self.living(colony)?;
        let bee = BeeId(self.assign(1)?);
        self.owners.begin(bee, app, colony, Epoch(0));
        Some(bee)
    }
}
