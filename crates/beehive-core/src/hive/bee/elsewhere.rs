//! Finds the owners of cells in other hives.

use crate::cell::{BeeId, CellId, HiveId};
use crate::hive::bee::app::AppRuntime;
use crate::hive::consensus::journal::AppId;
use crate::hive::consensus::registry::ColonyId;

/// A bee of another hive that owns the cells of a message.
pub(crate) struct Elsewhere {
    pub(crate) bee: BeeId,
    pub(crate) colony: ColonyId,
    pub(crate) hive: HiveId,
}

impl AppRuntime {
    /// Returns the owner of all these cells, if it is a bee of another hive according to this hive's replica of the
    /// registry. That hive may be this one, while it begins to lead the bee's colony.
    pub(crate) fn elsewhere(&self, cells: &[CellId]) -> Option<Elsewhere> {
        if !self.is_clustered() {
            return None;
        }
        let mut found = None;
        self.registry.read(&mut |state| {
            let owner = |cell: &CellId| state.owner(AppId(self.index), *cell);
            let Some(bee) = cells.first().and_then(owner) else { return };
            if !cells.iter().all(|cell| owner(cell) == Some(bee)) {
                return;
            }
            let colony =
                state.bee(bee).map(|entry| entry.colony).filter(|colony| self.log_of(*colony).is_none());
            let led = colony.and_then(|colony| Some((colony, state.colony(colony)?.leader?)));
            found = led.map(|(colony, hive)| Elsewhere { bee, colony, hive })
        });
        found
    }
}
