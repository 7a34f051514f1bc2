//! The end of a [`LogClient`]'s leadership: what happens to the client of a log that the hive no longer leads.

use crate::hive::admission::offices::Office;
use crate::hive::consensus::confirmations::Confirmations;
use crate::hive::consensus::log_client::LogClient;
use crate::mutant::Mutant;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

impl<W: ?Sized> LogClient<W> {
    /// Returns the office in which the hive leads the log.
    #[inline(always)]
    pub(crate) fn office(&self) -> Office {
        self.office
    }

    /// Returns the term of the office.
    pub(crate) fn term(&self) -> u64 {
        self.term
    }

    /// Checks whether the hive no longer leads the log. From then on, the client appends nothing, and what is appended is never
    /// decided. Takes no lock.
    #[inline(always)]
    pub(crate) fn is_deposed(&self) -> bool {
        !self.lanes.bees.offices.holds(self.office)
    }

    /// Notes that the hive no longer leads the log: from now on, nothing that was begun for the log leaves the hive. The
    /// reconciler, which this wakes, does the rest. Takes no lock, so any thread may call this.
    pub(crate) fn depose(&self) {
        // a hive that is alone has nobody who could lead instead
        let can_lose = self.place.is_clustered && !self.lanes.breaks(Mutant::DeposedStays);
        if can_lose && self.lanes.bees.offices.end(self.office) {
            tracing::info!(
                colony = self.place.colony.0,
                term = self.term,
                "the hive no longer leads the colony"
            );
            self.place.changed.notify_one()
        }
    }

    /// Gives up the journal of a log that the hive no longer leads, and all entries in flight, the open one included. Whoever
    /// waits for an entry learns that it will never be decided.
    pub(crate) fn leave(&self) {
        debug_assert!(self.is_deposed(), "the hive leads the log");
        // waits for an entry that another thread is handing to the journal
        let journal = self.journal.lock().take();
        let waiters = {
            let mut state = self.state.lock();
            let waiters = state.end();
            (state.open, state.undecided) = (None, BTreeMap::new());
            waiters
        };
        self.is_open.store(false, Ordering::Relaxed);
        let unconfirmed = self.confirmations.as_ref().map(Confirmations::end);
        // without a lock: dropping a bee runs the app's code, and a journal may wait for a thread that reports to this client
        drop((waiters, unconfirmed, journal))
    }

    /// Notes that a bee of a log which the hive leaves is running or frozen.
    pub(crate) fn stays(&self) {
        self.staying.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that such a bee has left.
    pub(crate) fn has_left(&self) {
        if self.staying.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.all_left.notify_waiters()
        }
    }

    /// Waits until all such bees have left. Cancel-safe.
    pub(crate) async fn all_have_left(&self) {
        loop {
            let all_left = self.all_left.notified();
            if self.staying.load(Ordering::Acquire) == 0 {
                return;
            }
            all_left.await
        }
    }
}
