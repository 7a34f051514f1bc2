//! The visits of a logged sweep that are under way: how many there may be, and when all of them are over.

use crate::hive::admission::deferred_wakes;
use crate::hive::consensus::journal::MessageId;
use crate::hive::dispatch::turn::Link;
use crate::limits;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Number of open cells up to which there is room for another step.
const ROOM: usize = limits::SWEEP_WINDOW_MAX - limits::SWEEP_STEP_MAX;

/// The cells of a sweep whose visits have been sent but are not yet committed.
#[derive(Default)]
pub(crate) struct OpenVisits {
    /// Number of such cells.
    open: AtomicUsize,
    /// Notified when the number falls to [`ROOM`] or below.
    fewer: Arc<Notify>,
    /// Whether the cursor has passed the last cell.
    all: AtomicBool,
    /// Notified when the cursor has passed the last cell and no visit is under way.
    ended: Notify,
    /// The sweep's log and id. `None` unless an earlier incarnation started the sweep.
    resumed: Option<(Arc<Link>, MessageId)>,
}

impl OpenVisits {
    /// Returns those of a sweep in a log that an earlier incarnation, or another hive, has started.
    pub(super) fn of_resumed(log: &Arc<Link>, sweep: MessageId) -> OpenVisits {
        let resumed = Some((log.clone(), sweep));
        OpenVisits { resumed, ..OpenVisits::default() }
    }

    /// Adds the cells of a visit about to be sent.
    pub(super) fn begin(&self, cells: usize) {
        self.open.fetch_add(cells, Ordering::AcqRel);
    }

    /// Removes the cells of a visit that was committed or that its bee did not accept.
    pub(crate) fn over(&self, cells: usize) {
        let before = self.open.fetch_sub(cells, Ordering::SeqCst);
        let after = before.saturating_sub(cells);
        // the cursor waits only while there is no room, and exactly one call makes room
        if (after..before).contains(&ROOM) {
            deferred_wakes::all(&self.fewer)
        }

        if after == 0 && self.all.load(Ordering::SeqCst) {
            self.end()
        }
    }

    /// Records that the cursor has passed the last cell. The sweep ends either here or in [`OpenVisits::over`],
    /// which another thread may call at the same time. Each thread first writes its own variable and then reads
    /// the other one. All four accesses are `SeqCst`, so they have a single total order, and the two threads
    /// cannot both miss each other's write.
    pub(super) fn reached_all(&self) {
        self.all.store(true, Ordering::SeqCst);
        if self.open.load(Ordering::SeqCst) == 0 {
            self.end()
        }
    }

    fn end(&self) {
        if let Some((link, sweep)) = &self.resumed {
            link.quarantine.swept(sweep)
        }
        self.ended.notify_one()
    }

    /// Waits until the cursor has passed the last cell and no visit is under way. Cancel-safe. One task at most may
    /// wait.
    pub(super) async fn ended(&self) {
        self.ended.notified().await
    }

    /// Waits until the window has room for another step. Cancel-safe.
    pub(super) async fn room(&self) {
        loop {
            let fewer = self.fewer.notified();
            if self.open.load(Ordering::Acquire) <= ROOM {
                return;
            }
            fewer.await
        }
    }
}
