//! The visits of a logged sweep that are under way: how many there may be in one log, and when all of them are over.

use crate::hive::admission::deferred_wakes;
use crate::hive::consensus::journal::MessageId;
use crate::hive::dispatch::turn::Link;
use crate::limits;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Number of open cells up to which there is room for another step.
const ROOM: usize = limits::SWEEP_WINDOW_MAX - limits::SWEEP_STEP_MAX;

/// The cells of a sweep whose visits have been sent but are not yet committed. If the visited app has several logs, each
/// log has its own.
#[derive(Default)]
pub(crate) struct OpenVisits {
    /// Number of such cells.
    open: AtomicUsize,
    /// Notified when the number falls to [`ROOM`] or below. All logs of the sweep share it.
    fewer: Arc<Notify>,
    /// `None` if nobody needs to know when the sweep is over.
    whole: Option<Arc<Whole>>,
}

/// The visits of a sweep in all logs.
struct Whole {
    /// Number of cells whose visits have been sent but are not yet committed.
    open: AtomicUsize,
    /// Whether the cursor has passed the last cell, and all visits have been sent.
    all: AtomicBool,
    /// Notified when this is so and no visit is under way.
    ended: Notify,
    /// The sweep's log and id there. `None` unless an earlier incarnation, or another hive, started the sweep.
    resumed: Option<(Arc<Link>, MessageId)>,
}

impl Whole {
    fn end(&self) {
        if let Some((log, sweep)) = &self.resumed {
            log.quarantine.swept(sweep)
        }
        self.ended.notify_one()
    }
}

impl OpenVisits {
    /// Returns those of a sweep that somebody waits for, or that is `resumed`: it is in this log under this id, and an earlier
    /// incarnation, or another hive, has started it.
    pub(super) fn of_whole(resumed: Option<(Arc<Link>, MessageId)>) -> OpenVisits {
        let (open, all, ended) = Default::default();
        OpenVisits { whole: Some(Arc::new(Whole { open, all, ended, resumed })), ..OpenVisits::default() }
    }

    /// Returns those of the same sweep in another log.
    pub(super) fn in_another_log(&self) -> OpenVisits {
        OpenVisits { open: AtomicUsize::new(0), fewer: self.fewer.clone(), whole: self.whole.clone() }
    }

    /// Adds the cells of a visit about to be sent.
    pub(super) fn begin(&self, cells: usize) {
        self.open.fetch_add(cells, Ordering::AcqRel);
        if let Some(whole) = &self.whole {
            whole.open.fetch_add(cells, Ordering::AcqRel);
        }
    }

    /// Removes the cells of a visit that was committed or that its bee did not accept.
    pub(crate) fn over(&self, cells: usize) {
        let before = self.open.fetch_sub(cells, Ordering::AcqRel);
        let after = before.saturating_sub(cells);
        // the cursor waits only while there is no room, and exactly one call makes room
        if (after..before).contains(&ROOM) {
            deferred_wakes::all(&self.fewer)
        }

        if let Some(whole) = &self.whole
            && whole.open.fetch_sub(cells, Ordering::SeqCst) == cells
            && whole.all.load(Ordering::SeqCst)
        {
            whole.end()
        }
    }

    /// Records that the cursor has passed the last cell. The sweep ends either here or in [`OpenVisits::over`],
    /// which another thread may call at the same time. Each thread first writes its own variable and then reads
    /// the other one. All four accesses are `SeqCst`, so they have a single total order, and the two threads
    /// cannot both miss each other's write.
    pub(super) fn reached_all(&self) {
        if let Some(whole) = &self.whole {
            whole.all.store(true, Ordering::SeqCst);
            if whole.open.load(Ordering::SeqCst) == 0 {
                whole.end()
            }
        }
    }

    /// Waits until the cursor has passed the last cell and no visit is under way. Cancel-safe. One task at most may
    /// wait, and only for visits [of a whole sweep](OpenVisits::of_whole).
    pub(super) async fn ended(&self) {
        match &self.whole {
            Some(whole) => whole.ended.notified().await,
            None => debug_assert!(false, "nobody was to know when the sweep is over"),
        }
    }

    /// Checks whether there is room for another step.
    pub(super) fn has_room(&self) -> bool {
        self.open.load(Ordering::Acquire) <= ROOM
    }

    /// Checks whether there is room for a visit to this many cells.
    pub(super) fn has_room_for(&self, cells: usize) -> bool {
        self.open.load(Ordering::Acquire) + cells <= limits::SWEEP_WINDOW_MAX
    }

    /// Completes when one of the sweep's logs gets room for another step after this call.
    pub(super) fn fewer(&self) -> Notified<'_> {
        self.fewer.notified()
    }

    /// Waits until there is room for another step. Cancel-safe.
    pub(super) async fn room(&self) {
        loop {
            let fewer = self.fewer();
            if self.has_room() {
                return;
            }
            fewer.await
        }
    }
}
