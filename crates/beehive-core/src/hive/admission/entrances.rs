//! Entrances: the credits and lanes of messages that programs send through a [`Hive`](crate::Hive), which are requests and
//! single messages.
//!
//! Such a message holds a credit, and a place in the window of a lane, until it is committed. If the log of one app cannot
//! commit, its messages would use up both, and messages to other apps would wait. Therefore each set of logs has an entrance
//! of its own. A message enters at that of the logs of all apps that handle its type.

use crate::hive::admission::credits::Credits;
use crate::hive::admission::outside_lanes::{Admitted, Lanes, Numbers, OutsideLane, Room};
use crate::mutant::Mutant;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One entrance for each set of logs.
pub(crate) struct Entrances {
    /// Number of credits of each entrance.
    limit: u32,
    /// The lanes of the hive; `None` without a journal.
    lanes: Option<Arc<Lanes>>,
    /// The entrances, by the positions of their logs. There are at most as many as message types and apps.
    by_logs: Mutex<BTreeMap<Vec<usize>, Arc<Entrance>>>,
}

impl Entrances {
    pub(crate) fn new(limit: u32, lanes: Option<Arc<Lanes>>) -> Entrances {
        Entrances { limit, lanes, by_logs: Mutex::default() }
    }

    /// Returns the entrance of messages that wait for the logs at these positions. `chance` is the random id of its lane, if it
    /// is a new one.
    pub(crate) fn of(&self, mut logs: Vec<usize>, chance: impl FnOnce() -> u64) -> Arc<Entrance> {
        logs.sort_unstable();
        logs.dedup();
        let make = || Arc::new(Entrance::new(self.limit, self.lanes.as_ref(), chance()));
        self.by_logs.lock().entry(logs).or_insert_with(make).clone()
    }

    /// Returns the number of free credits of the entrance that has the fewest.
    pub(crate) fn free(&self) -> u32 {
        let entrances = self.by_logs.lock();
        entrances.values().map(|entrance| entrance.credits.free()).min().unwrap_or(self.limit)
    }
}

/// The credits and the lane of messages to a set of logs.
pub(crate) struct Entrance {
    pub(crate) credits: Arc<Credits>,
    lane: Option<OwnLane>,
}

/// The lane of an entrance. If a few messages hold it up, because their log cannot commit, those that follow get another
/// lane. Their app may have several logs.
struct OwnLane {
    lanes: Arc<Lanes>,
    current: Mutex<Arc<OutsideLane>>,
}

impl OwnLane {
    /// Returns the lane, unless it is held up: then ends it, and opens another one with this random id.
    fn current(&self, chance: impl FnOnce() -> u64) -> Arc<OutsideLane> {
        let mut current = self.current.lock();
        if current.room_for_one() == Room::HeldUp {
            let held_up = std::mem::replace(&mut *current, self.lanes.open(chance()));
            self.lanes.end(&held_up)
        }
        current.clone()
    }
}

impl Entrance {
    fn new(limit: u32, lanes: Option<&Arc<Lanes>>, chance: u64) -> Entrance {
        let lane = lanes.map(|lanes| {
            let chance = if lanes.breaks(Mutant::SameLane) { 1 } else { chance };
            OwnLane { lanes: lanes.clone(), current: Mutex::new(lanes.open(chance)) }
        });
        Entrance { credits: Credits::new(limit), lane }
    }

    /// Waits for room on the lane, and then takes a credit. `chance` returns random ids of lanes. Cancel-safe.
    pub(crate) async fn room_for_one(&self, chance: impl Fn() -> u64) {
        if let Some(own) = &self.lane {
            loop {
                let lane = own.current(&chance);
                lane.room_or_held_up(None, 1).await;
                if lane.room_for_one() == Room::Free {
                    break;
                }
            }
        }
        self.credits.take_when_free(1).await
    }

    /// Takes a credit if there is one, and room on the lane. Returns whether it did.
    pub(crate) fn take_one(&self, chance: impl FnOnce() -> u64) -> bool {
        let has_room = self.lane.as_ref().is_none_or(|own| own.current(chance).room_for_one() == Room::Free);
        has_room && self.credits.take_all(1)
    }

    /// Admits a message on the lane. Returns `None` without a journal.
    pub(crate) fn admit(&self) -> Option<(Numbers, Arc<Admitted>)> {
        self.lane.as_ref().map(|own| own.current.lock().admit_next(1))
    }
}
