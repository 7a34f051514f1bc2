//! The lanes of senders in other hives, as far as this hive remembers messages that came on them.

use crate::hash::HashMap;
use beehive_protocol::{AppId, HiveId, LaneId, Seq};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// The lane of a sender in another hive.
#[derive(Default)]
struct ForeignLane {
    /// The hive from which the last message came. `None` if no message came since this hive started.
    hive: Option<HiveId>,
    /// The floors that the sender has stated, by app.
    floors: BTreeMap<AppId, Seq>,
}

/// The lanes of senders in other hives. A dedup table may contain them. An unknown lane is none of these.
#[derive(Default)]
pub(crate) struct ForeignLanes(Mutex<HashMap<LaneId, ForeignLane>>);

impl ForeignLanes {
    /// Adds a lane that a log remembers.
    pub(crate) fn remember(&self, lane: LaneId) {
        self.0.lock().entry(lane).or_default();
    }

    /// Notes that messages for `app` come from `hive`, and that the sender states a floor.
    pub(crate) fn arrived(&self, lane: LaneId, hive: HiveId, app: AppId, floor: Seq) {
        let mut lanes = self.0.lock();
        let lane = lanes.entry(lane).or_default();
        lane.hive = Some(hive);
        let known = lane.floors.entry(app).or_default();
        *known = floor.max(*known)
    }

    /// Notes a floor, if the lane is known.
    pub(crate) fn raise(&self, lane: LaneId, app: AppId, floor: Seq) {
        if let Some(lane) = self.0.lock().get_mut(&lane) {
            let known = lane.floors.entry(app).or_default();
            *known = floor.max(*known)
        }
    }

    /// Removes lanes that have ended. Returns those that were known.
    pub(crate) fn forget(&self, ended: &[LaneId]) -> Vec<LaneId> {
        let mut lanes = self.0.lock();
        ended.iter().copied().filter(|lane| lanes.remove(lane).is_some()).collect()
    }

    pub(crate) fn knows(&self, lane: LaneId) -> bool {
        self.0.lock().contains_key(&lane)
    }

    /// Returns the hive from which messages come on the lane.
    pub(crate) fn hive_of(&self, lane: LaneId) -> Option<HiveId> {
        self.0.lock().get(&lane)?.hive
    }

    /// Returns the floor of a lane for an app: zero if the sender has stated none. `None` if the lane is unknown.
    pub(crate) fn floor(&self, lane: LaneId, app: AppId) -> Option<Seq> {
        self.0.lock().get(&lane).map(|lane| lane.floors.get(&app).copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_app_has_the_highest_floor_that_it_was_told() {
        let lanes = ForeignLanes::default();
        let lane = LaneId::passing(9);
        assert_eq!((lanes.floor(lane, AppId(1)), lanes.hive_of(lane)), (None, None));
        lanes.raise(lane, AppId(1), Seq(9));
        assert!(!lanes.knows(lane), "nothing came on it");

        lanes.arrived(lane, HiveId(2), AppId(1), Seq(5));
        lanes.arrived(lane, HiveId(2), AppId(1), Seq(3));
        assert_eq!(lanes.floor(lane, AppId(1)), Some(Seq(5)));
        assert_eq!(lanes.floor(lane, AppId(2)), Some(Seq(0)));
        lanes.raise(lane, AppId(1), Seq(7));
        assert_eq!((lanes.floor(lane, AppId(1)), lanes.hive_of(lane)), (Some(Seq(7)), Some(HiveId(2))));

        assert_eq!(lanes.forget(&[lane, LaneId::passing(8)]), [lane]);
        assert_eq!(lanes.floor(lane, AppId(1)), None)
    }
}
