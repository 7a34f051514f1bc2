//! The journal's reports to the hive about committed entries and refused appends.

use crate::hive::consensus::journal::{EntryNumber, JournalEvents};
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::turn::{Executing, Link, Place, Turn};
use std::sync::{Arc, Weak};

/// Maximum number of bees that release their effects on the worker of the journal's task. Waking a runner, which then
/// wakes the tasks that wait for answers, costs more than running a few bees. With many bees, a runner works beside
/// the worker.
const ON_WORKER_MAX: usize = 4;

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
    /// Applies a journal decision to the log client, and wakes the bees with affected entries. If there are at most
    /// `on_worker_max` of them, and the journal reports from a task of the hive's runtime, they run on that task's worker.
    fn nudge(&self, on_worker_max: usize, decide: impl FnOnce(&Link) -> Vec<Arc<dyn Executing>>) {
        let (Some(hive), Some(link)) = (self.hive.upgrade(), self.link.upgrade()) else { return };
        let bees = decide(&link);
        let place = match bees.len() <= on_worker_max && hive.platform.spawns_here() {
            true => Place::WorkerIfQuick,
            false => Place::Runners,
        };
        Turn::with(&hive, place, |turn| bees.into_iter().for_each(|bee| bee.nudge(turn)))
    }
}

impl JournalEvents for Events {
    fn released(&self, upto: EntryNumber) {
        self.nudge(ON_WORKER_MAX, |link| link.released(upto))
    }

    fn aborted(&self, last: EntryNumber) {
        // the bees execute all their uncommitted messages again
        self.nudge(0, |link| link.aborted(last))
    }

    fn confirmed(&self, round: u64) {
        self.nudge(ON_WORKER_MAX, |link| link.confirmed(round))
    }

    fn deposed(&self) {
        if let Some(link) = self.link.upgrade() {
            link.depose()
        }
    }
}
