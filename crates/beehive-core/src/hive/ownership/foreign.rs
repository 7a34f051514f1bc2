//! Which of the lanes that a log remembers belong to senders in other hives.

use crate::hive::admission::outside_lanes::LaneNumbers;
use crate::hive::consensus::journal::LaneId;
use crate::hive::consensus::registry::RegistryState;

/// Checks whether a lane may belong to another hive that still uses it. Otherwise it belonged to an earlier incarnation of
/// some hive, or to a bee that has ended. `own` is the lane that the registry has assigned to this hive.
pub(crate) fn is_foreign(lane: LaneId, own: LaneId, view: &RegistryState) -> bool {
    if !lane.is_outside() {
        return !view.is_retired(lane);
    }
    let mut others = view.hives().filter_map(|(_, hive)| hive.lane()).filter(|of_hive| *of_hive != own);
    others.any(|of_hive| LaneNumbers::are_of(lane, of_hive))
}
