//! The names in the crash markers: the messages that run or are next.

use super::MarkedLog;
use crate::hive::consensus::journal::Suspect;
use std::collections::BTreeSet;
use std::sync::Weak;

/// The messages that the marker of a log names.
#[derive(Clone, Default)]
pub(super) struct Names {
    /// The log, when the hive has begun.
    pub(super) log: Option<Weak<dyn MarkedLog>>,
    /// Those that run, or wait for the commit of the marker that names them.
    running: BTreeSet<Suspect>,
    /// Those that are expected to run next. Some may have run already, or may never arrive: if the process ends, they are
    /// suspected needlessly.
    next: BTreeSet<Suspect>,
}

/// Maximum number of upcoming messages that are added to a marker at once. The marker names fewer than twice as many, and
/// the running messages.
const NEXT_MAX: usize = 64;

impl Names {
    /// Notes that a message is about to run. If the marker does not name it yet, adds it and those that come `after` it.
    /// Returns whether a marker must be appended.
    pub(super) fn begin(&mut self, suspect: Suspect, after: impl Iterator<Item = Suspect>) -> bool {
        let is_named = self.next.remove(&suspect);
        self.running.insert(suspect);

        if !is_named {
            if self.next.len() >= NEXT_MAX {
                // most of these have not come when they were expected, and must not keep others from being named
                self.next.clear()
            }
            self.next.extend(after.filter(|one| !self.running.contains(one)).take(NEXT_MAX))
        }
        !is_named
    }

    /// Removes a message that has run. Returns whether no message is left.
    pub(super) fn end(&mut self, suspect: &Suspect) -> bool {
        self.running.remove(suspect);
        self.running.is_empty() && self.next.is_empty()
    }

    /// Removes the messages that are expected next.
    pub(super) fn expect_none(&mut self) {
        self.next.clear()
    }

    /// Removes all messages. Returns whether there were any.
    pub(super) fn clear(&mut self) -> bool {
        let any = !self.running.is_empty() || !self.next.is_empty();
        self.running.clear();
        self.next.clear();
        any
    }

    /// Returns all named messages.
    pub(super) fn all(&self) -> Vec<Suspect> {
        self.running.union(&self.next).copied().collect()
    }
}
