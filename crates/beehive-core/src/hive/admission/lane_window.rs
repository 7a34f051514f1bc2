//! The window of a lane: how far its numbers may run ahead of its oldest unacknowledged message.
//!
//! Bees remember which messages of a lane they have handled until the lane's floor passes them. If a message stays unacknowledged, for
//! example because the log of its bee commits nothing, the floor stays as well, and the bees in other logs would remember more and
//! more. So behind [`limits::BEE_LANE_WINDOW_MAX`] numbers, the causes of what is sent are held until the floor follows: those
//! outside run out of credits, and send no more. A message between bees never waits, or two bees that send to each other could wait
//! for one another for ever.

use crate::hive::admission::credits::Cause;
use crate::limits;
use beehive_protocol::{AppId, Seq};
use std::sync::Arc;

/// The window is looked at once in this many numbers, a power of two.
const LOOKED_AT_EVERY: u64 = 1 << 10;

/// How much of a lane's window is used.
#[derive(Default)]
pub(super) struct LaneWindow {
    /// The app whose floor is too far behind.
    behind: Option<AppId>,
    /// The causes of what was sent meanwhile.
    held: Vec<Arc<Cause>>,
}

impl LaneWindow {
    /// Checks whether the window is due to be looked at, when numbers from `first` up to but not including `next` were sent.
    pub(super) fn is_due(first: Seq, next: Seq) -> bool {
        first.0 / LOOKED_AT_EVERY != next.0 / LOOKED_AT_EVERY
    }

    /// Looks at the window. `floor` is the lane's lowest floor, that of `app`.
    pub(super) fn look(&mut self, (app, floor): (AppId, Seq), next: Seq) {
        if next.0.saturating_sub(floor.0) > limits::BEE_LANE_WINDOW_MAX {
            self.behind.get_or_insert(app);
        }
    }

    /// Returns the app whose floor is too far behind, if there is one.
    pub(super) fn behind(&self) -> Option<AppId> {
        self.behind
    }

    /// Holds a cause as long as a floor is too far behind.
    pub(super) fn hold(&mut self, cause: &Arc<Cause>) {
        // what one cause has sent in a row
        let is_held = self.held.last().is_some_and(|last| Arc::ptr_eq(last, cause));
        if self.behind.is_some() && !is_held {
            self.held.push(cause.clone())
        }
    }

    /// Takes note of the floor of the app that is behind. If it is no longer too far behind, returns what was held. The caller drops
    /// it without the lane's lock.
    #[must_use]
    pub(super) fn follow(&mut self, floor: Seq, next: Seq) -> Vec<Arc<Cause>> {
        // half of the window, so that not each message has to wait
        if next.0.saturating_sub(floor.0) > limits::BEE_LANE_WINDOW_MAX / 2 {
            return Vec::new();
        }
        self.behind = None;
        std::mem::take(&mut self.held)
    }
}
