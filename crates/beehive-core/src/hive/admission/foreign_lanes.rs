//! The lanes of senders in other hives, as far as this hive remembers messages that came on them.
//!
//! The hive that has a sender tells its floors to the hives that got messages from it. Sender and receiver may both move, so
//! this table also notes who tells the floors: the hive asks again if that is not the hive that has the sender
//! (`ownership/foreign.rs`).

use crate::hash::HashMap;
use beehive_protocol::{AppId, HiveId, Incarnation, LaneId, Seq};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// The hive that tells a floor. Its next incarnation does not know that it has to.
pub(crate) type Teller = (HiveId, Incarnation);

/// The floor of a lane for an app.
#[derive(Clone, Copy, Default)]
struct Floor {
    floor: Seq,
    /// `None` if nobody has told a floor yet.
    told_by: Option<Teller>,
}

/// The lane of a sender in another hive.
#[derive(Default)]
struct ForeignLane {
    /// The hive from which the last message came. `None` if no message came since this hive started.
    hive: Option<HiveId>,
    /// The floors that the sender has stated, by app. An app whose bees have asked for a floor is among them.
    floors: BTreeMap<AppId, Floor>,
}

impl ForeignLane {
    fn raise(&mut self, app: AppId, floor: Seq, teller: Teller) {
        let known = self.floors.entry(app).or_default();
        *known = Floor { floor: floor.max(known.floor), told_by: Some(teller) }
    }
}

#[derive(Default)]
struct State {
    lanes: HashMap<LaneId, ForeignLane>,
    /// The lanes that are still to be checked in this pass over the table.
    unchecked: Vec<LaneId>,
}

/// A lane to be checked, and the apps whose bees need its floors, each with the hive that tells it.
pub(crate) type Checked = (LaneId, Vec<(AppId, Option<Teller>)>);

/// The lanes of senders in other hives. A dedup table may contain them. An unknown lane is none of these.
#[derive(Default)]
pub(crate) struct ForeignLanes(Mutex<State>);

impl ForeignLanes {
    /// Adds a lane that a log remembers.
    pub(crate) fn remember(&self, lane: LaneId) {
        self.0.lock().lanes.entry(lane).or_default();
    }

    /// Notes that messages for `app` come from the hive of `teller`, and that the sender states a floor. Adds the lane, unless
    /// it has retired. `has_retired` is called under the lock, so the lane is not added after [`ForeignLanes::forget`] has
    /// removed it for the same reason. Returns whether the lane is known now.
    pub(crate) fn arrived(
        &self,
        lane: LaneId,
        teller: Teller,
        (app, floor): (AppId, Seq),
        has_retired: impl FnOnce() -> bool,
    ) -> bool {
        let mut state = self.0.lock();
        if has_retired() {
            return false;
        }
        let lane = state.lanes.entry(lane).or_default();
        lane.hive = Some(teller.0);
        lane.raise(app, floor, teller);
        true
    }

    /// Notes a floor, if the lane is known.
    pub(crate) fn raise(&self, lane: LaneId, app: AppId, floor: Seq, teller: Teller) {
        if let Some(lane) = self.0.lock().lanes.get_mut(&lane) {
            lane.raise(app, floor, teller)
        }
    }

    /// Removes lanes that have ended. Returns those that were known.
    pub(crate) fn forget(&self, ended: &[LaneId]) -> Vec<LaneId> {
        let mut state = self.0.lock();
        ended.iter().copied().filter(|lane| state.lanes.remove(lane).is_some()).collect()
    }

    pub(crate) fn knows(&self, lane: LaneId) -> bool {
        self.0.lock().lanes.contains_key(&lane)
    }

    /// Returns the hive from which messages come on the lane.
    pub(crate) fn hive_of(&self, lane: LaneId) -> Option<HiveId> {
        self.0.lock().lanes.get(&lane)?.hive
    }

    /// Returns the floor of a lane for an app: zero if the sender has stated none. `None` if the lane is unknown. From now
    /// on, the app needs the floors of the lane.
    pub(crate) fn floor(&self, lane: LaneId, app: AppId) -> Option<Seq> {
        self.0.lock().lanes.get_mut(&lane).map(|lane| lane.floors.entry(app).or_default().floor)
    }

    /// Checks these lanes next, if they are known. If other hives name lanes faster than this hive checks them, they are
    /// checked when their turn comes.
    pub(crate) fn check_soon(&self, soon: impl IntoIterator<Item = LaneId>) {
        let State { lanes, unchecked } = &mut *self.0.lock();
        let room = (2 * lanes.len()).saturating_sub(unchecked.len());
        unchecked.extend(soon.into_iter().filter(|lane| lanes.contains_key(lane)).take(room))
    }

    /// Returns the next lanes to be checked, at most `count`. One call after the other, it returns all of them, and then
    /// begins again.
    pub(crate) fn to_check(&self, count: usize) -> Vec<Checked> {
        let State { lanes, unchecked } = &mut *self.0.lock();
        if unchecked.is_empty() {
            unchecked.extend(lanes.keys().copied())
        }
        let rest = unchecked.len().saturating_sub(count);
        let known = unchecked.split_off(rest).into_iter().filter_map(|id| Some((id, lanes.get(&id)?)));
        let told =
            |lane: &ForeignLane| lane.floors.iter().map(|(app, floor)| (*app, floor.told_by)).collect();
        known.map(|(id, lane)| (id, told(lane))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_app_has_the_highest_floor_that_it_was_told() {
        let lanes = ForeignLanes::default();
        let (lane, teller) = (LaneId::passing(9), (HiveId(2), Incarnation(1)));
        let arrived = |app, floor| lanes.arrived(lane, teller, (AppId(app), Seq(floor)), || false);
        assert_eq!((lanes.floor(lane, AppId(1)), lanes.hive_of(lane)), (None, None));
        lanes.raise(lane, AppId(1), Seq(9), teller);
        assert!(!lanes.knows(lane), "nothing came on it");

        assert!(arrived(1, 5) && arrived(1, 3));
        assert_eq!(lanes.floor(lane, AppId(1)), Some(Seq(5)));
        assert_eq!(lanes.floor(lane, AppId(2)), Some(Seq(0)));
        lanes.raise(lane, AppId(1), Seq(7), teller);
        assert_eq!((lanes.floor(lane, AppId(1)), lanes.hive_of(lane)), (Some(Seq(7)), Some(HiveId(2))));

        assert_eq!(lanes.forget(&[lane, LaneId::passing(8)]), [lane]);
        assert_eq!(lanes.floor(lane, AppId(1)), None)
    }

    #[test]
    fn a_lane_that_has_retired_is_not_added() {
        let lanes = ForeignLanes::default();
        let lane = LaneId::passing(9);
        assert!(!lanes.arrived(lane, (HiveId(2), Incarnation(1)), (AppId(1), Seq(5)), || true));
        assert!(!lanes.knows(lane))
    }

    #[test]
    fn a_pass_checks_each_lane_and_says_who_tells_its_floors() {
        let lanes = ForeignLanes::default();
        let teller = (HiveId(2), Incarnation(1));
        (0..10).for_each(|lane| lanes.remember(LaneId::passing(lane)));
        let (told, asked) = (LaneId::passing(4), LaneId::passing(5));
        lanes.raise(told, AppId(1), Seq(9), teller);
        lanes.floor(asked, AppId(3));
        let mut all: Vec<Checked> = (0..3).flat_map(|_| lanes.to_check(4)).collect();
        all.sort();
        assert_eq!(all.iter().map(|(lane, _)| lane.0 >> 2).collect::<Vec<_>>(), Vec::from_iter(0..10));
        assert_eq!(all[4].1, [(AppId(1), Some(teller))]);
        assert_eq!(all[5].1, [(AppId(3), None)]);
        lanes.check_soon([told, LaneId::passing(99)]);
        assert_eq!(lanes.to_check(9).len(), 1);
        lanes.check_soon(std::iter::repeat_n(told, 1_000));
        assert_eq!(lanes.to_check(2_000).len(), 20, "their number is bounded");
        assert_eq!(lanes.to_check(9).len(), 9)
    }
}
