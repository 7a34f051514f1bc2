//! A bee that is parked with its mailbox: it is at rest, and runs again when fewer threads wait for the crash marker of its log.

use crate::hive::bee::body::Body;
use crate::hive::bee::delivery::Delivery;
use crate::hive::bee::lifecycle::Bee;
use crate::hive::consensus::journal::AppId;
use crate::hive::consensus::quarantine::Work;
use crate::hive::dispatch::resumed::resume;
use crate::hive::dispatch::turn::{Executing, Link, Turn};
use std::sync::Arc;

impl Body {
    /// Returns the bee's log if too many threads wait for its crash marker to begin with this delivery.
    #[inline]
    pub(super) fn parks_before(&self, delivery: &Delivery, app: u16) -> Option<Arc<Link>> {
        let link = self.pending.as_ref()?.link();
        link.quarantine.must_park(link, || work_of(delivery, app)).then(|| link.clone())
    }
}

/// Returns what a delivery makes the bee handle.
fn work_of(delivery: &Delivery, app: u16) -> Option<Work> {
    let Some(more) = delivery.count.checked_sub(1) else { return delivery.batch.sweep().map(Work::Visits) };
    let id = |index| delivery.batch.numbers().id(index, AppId(app));
    Some(Work::Messages(id(delivery.first), id(delivery.first + more)))
}

impl Bee {
    /// Parks the bee, whose body is in its mailbox, or schedules it again if it is to run now.
    #[cold]
    pub(super) fn park(self: &Arc<Self>, link: &Link, turn: &mut Turn) {
        let key = Arc::as_ptr(self) as usize;
        if !link.quarantine.park(link, key, || resume(self.clone(), turn.hive)) {
            self.clone().nudge(turn)
        }
    }
}
