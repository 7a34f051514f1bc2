//! The window of a lane: how far its numbers may run ahead of its oldest unacknowledged message.
//!
//! Bees remember which messages of a lane they have handled until the lane's floor passes them. If a message stays unacknowledged, for
//! example because the log of its bee commits nothing, the floor stays as well, and the bees in other logs would remember more and
//! more. So behind [`limits::BEE_LANE_WINDOW_MAX`] numbers, the causes of what is sent are held until the message is acknowledged:
//! those outside run out of credits, and send no more. A message between bees never waits, or two bees that send to each other could
//! wait for one another for ever.
//!
//! Timers and postponed messages hold up the floor, too, until their time has come. Nobody waits for them here: a timer of an hour
//! would stop those outside for an hour. A sweep holds it up until its last visit; it counts from its last step, so nobody waits
//! for a sweep that goes on.
//!
//! The cause of a fired timer is not held. Its credits are those of all timers of the hive: if they are used up, a handler that sets
//! a timer does not wait, but fails.

use crate::hive::admission::credits::Cause;
use crate::limits;
use beehive_protocol::Seq;
use std::sync::Arc;

/// The window is looked at when the lane has got so many more numbers.
const LOOKED_AT_EVERY: u64 = 1 << 10;

/// How much of a lane's window is used.
#[derive(Default)]
pub(super) struct LaneWindow {
    /// The lane's next number when the window was looked at.
    looked_at: Seq,
    /// Whether a message is too old.
    is_behind: bool,
    /// The causes of what was sent meanwhile.
    held: Vec<Arc<Cause>>,
}

impl LaneWindow {
    /// Checks whether the window is due to be looked at.
    pub(super) fn is_due(&self, next: Seq) -> bool {
        next.0.saturating_sub(self.looked_at.0) >= LOOKED_AT_EVERY
    }

    /// Looks at the window. `oldest` is the lane's oldest number under way, if there is one.
    pub(super) fn look(&mut self, oldest: Option<Seq>, next: Seq) {
        self.looked_at = next;
        self.is_behind |=
            oldest.is_some_and(|oldest| next.0.saturating_sub(oldest.0) > limits::BEE_LANE_WINDOW_MAX)
    }

    /// Checks whether a message is too old.
    pub(super) fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Holds a cause as long as a message is too old. A cause holds up nobody if no sender waits for its credits, so it is not kept.
    pub(super) fn hold(&mut self, cause: &Arc<Cause>) {
        // what one cause has sent in a row
        let is_held = self.held.last().is_some_and(|last| Arc::ptr_eq(last, cause));
        if self.is_behind && !is_held && cause.holds_up_senders() {
            self.held.push(cause.clone())
        }
    }

    /// Takes note of the lane's oldest number under way. If it is no longer too old, returns what was held. The caller drops it
    /// without the lane's lock.
    #[must_use]
    pub(super) fn follow(&mut self, oldest: Option<Seq>, next: Seq) -> Vec<Arc<Cause>> {
        // half of the window, so that not each message has to wait
        let is_old = |oldest: Seq| next.0.saturating_sub(oldest.0) > limits::BEE_LANE_WINDOW_MAX / 2;
        if oldest.is_some_and(is_old) {
            return Vec::new();
        }
        self.is_behind = false;
        std::mem::take(&mut self.held)
    }
}
