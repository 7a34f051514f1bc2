//! The journal's reports to the hive about committed entries and refused appends.

use crate::hive::consensus::journal::{EntryNumber, JournalEvents};
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::turn::{Executing, Link, Place, Turn};
use std::sync::{Arc, Weak};

/// Registers the hive for the reports of the journal behind `link`.
pub(crate) fn attach(link: &Arc<Link>, hive: &Arc<HiveInner>) {
    let events = Events { link: Arc::downgrade(link), hive: Arc::downgrade(hive) };
    link.attach(Arc::new(events))
}

/// Receives the reports. Both references are weak: the journal may outlive the hive, and the link holds the journal, so
/// a strong reference would keep both in memory forever.
struct Events {
    link: Weak<Link>,
    hive: Weak<HiveInner>,
}

impl Events {
    /// Applies a journal decision to the log client, and wakes the bees with affected entries.
    fn nudge(&self, decide: impl FnOnce(&Link) -> Vec<Arc<dyn Executing>>) {
        let (Some(hive), Some(link)) = (self.hive.upgrade(), self.link.upgrade()) else { return };
        let bees = decide(&link);
        Turn::with(&hive, Place::Runners, |turn| bees.into_iter().for_each(|bee| bee.nudge(turn)))
    }
}

impl JournalEvents for Events {
    fn released(&self, upto: EntryNumber) {
        self.nudge(|link| link.released(upto))
    }

    fn aborted(&self, last: EntryNumber) {
        self.nudge(|link| link.aborted(last))
    }
}
