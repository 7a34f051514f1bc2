//! A log that stops to commit at an entry of the test's choice.

use beehive_core::journal::{Entry, Journal, JournalEvents, Record};
use beehive_core::testing::TestJournal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A log that stops to commit when it is to commit a record of some kind for the first time after it was armed.
pub(crate) struct StallsAt {
    pub(crate) log: Arc<TestJournal>,
    is_armed: AtomicBool,
    is_at: fn(&Record) -> bool,
}

impl StallsAt {
    pub(crate) fn new(log: Arc<TestJournal>, is_at: fn(&Record) -> bool) -> StallsAt {
        StallsAt { log, is_armed: AtomicBool::new(false), is_at }
    }

    pub(crate) fn arm(&self) {
        self.is_armed.store(true, Ordering::Release)
    }

    /// Checks whether the log was armed and has stopped since then.
    pub(crate) fn has_stalled(&self) -> bool {
        !self.is_armed.load(Ordering::Acquire)
    }
}

impl Journal for StallsAt {
    fn append(&self, entry: Arc<Entry>) {
        if (self.is_at)(&entry.record) && self.is_armed.swap(false, Ordering::AcqRel) {
            self.log.stall(true)
        }
        self.log.append(entry)
    }
    fn begin(&self) -> std::io::Result<()> {
        self.log.begin()
    }
    fn attach(&self, events: Arc<dyn JournalEvents>) {
        self.log.attach(events)
    }
}
