//! Changes to existing bees: they move, merge, split, change their lanes, and end.

use super::{Aim, RegistryState};
use crate::{BeeId, CellId, ColonyId, Epoch, LaneId};

impl RegistryState {
    pub(super) fn aim_at(&mut self, bee: BeeId, epoch: Epoch, colony: ColonyId) -> Option<()> {
        let owner = self.owners.get(bee).filter(|owner| owner.epoch == epoch)?;
        self.living(colony)?;
        // a bee into which others have to merge stays where it is
        let is_free = self.aims.get(bee).is_none() && self.aims.at(bee).next().is_none();
        if !is_free || owner.colony == colony {
            return None;
        }
        self.aims.set(bee, Some(Aim::Colony(colony)));
        Some(())
    }

    pub(super) fn commit(&mut self, bee: BeeId, epoch: Epoch, to: ColonyId) -> Option<()> {
        self.owners.get(bee).filter(|owner| owner.epoch == epoch && epoch.next() != epoch)?;
        self.living(to)?;
        self.owners.move_to(bee, to, epoch.next());
        if let Some(Aim::Colony(_)) = self.aims.get(bee) {
            self.aims.set(bee, None)
        }
        Some(())
    }

    pub(super) fn fused(&mut self, from: BeeId, into: BeeId) -> Option<()> {
        let (source, target) = (self.owners.get(from)?, self.owners.get(into)?);
        if from == into || source.app != target.app {
            return None;
        }
        self.owners.unite(from, into);
        let first = source.has_first_lane.then_some(from.0);
        for number in self.lanes.end(from).into_iter().chain(first) {
            self.lanes.inherit(into, number)
        }
        self.aims.unite(from, into);
        Some(())
    }

    pub(super) fn split(&mut self, bee: BeeId, cells: &[CellId], new: BeeId) -> Option<()> {
        let owner = self.owners.get(bee)?;
        let mut cells = cells.to_vec();
        cells.sort_unstable();
        cells.dedup();

        let is_owned = |cell: &CellId| self.owners.of(owner.app, *cell).is_some_and(|owner| owner.bee == bee);
        let some_stay = !cells.is_empty() && cells.len() < owner.cells as usize;
        if !some_stay || !cells.iter().all(is_owned) || !self.owners.has_room(0) {
            return None;
        }
        self.reserved.remove(&new)?;
        self.owners.begin(new, owner.app, owner.colony, Epoch(0));
        self.owners.split(bee, &cells, new);
        Some(())
    }

    pub(super) fn release(&mut self, bee: BeeId) -> Option<()> {
        self.owners.get(bee)?;
        self.end(bee);
        Some(())
    }

    pub(super) fn relane(&mut self, bee: BeeId, number: BeeId) -> Option<()> {
        self.owners.get(bee)?;
        self.reserved.remove(&number)?;
        self.lanes.take(bee, number.0);
        Some(())
    }

    pub(super) fn retire(&mut self, lane: LaneId) -> Option<()> {
        let bee = self.bee_of_lane(lane)?;
        if self.lane_of(bee) == Some(lane) {
            return None;
        }
        let number = lane.number()?;
        match number == bee.0 {
            true => self.owners.drop_first_lane(bee),
            false => self.lanes.remove(number),
        }
        Some(())
    }
}
