//! The connections that have not shown yet that they belong to the cluster.

use super::tasks::Scope;
use crate::limits::wire as limits;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// The connections that have not shown yet that they belong to the cluster.
///
/// A handshake takes milliseconds. If there are too many, the oldest one is closed: so hives can connect while somebody opens
/// connections and says nothing.
#[derive(Debug, Default)]
pub(super) struct Strangers(Mutex<Connections>);

#[derive(Debug, Default)]
struct Connections {
    last: u64,
    open: BTreeMap<u64, Scope>,
    closed: u64,
}

impl Strangers {
    /// Adds a connection, and closes the oldest one if there are too many.
    pub(super) fn add(&self, scope: Scope) -> u64 {
        let mut connections = self.0.lock();
        if connections.open.len() >= limits::STRANGERS_MAX
            && let Some((_, oldest)) = connections.open.pop_first()
        {
            connections.closed += 1;
            oldest.end()
        }
        connections.last += 1;
        let number = connections.last;
        connections.open.insert(number, scope);
        number
    }

    pub(super) fn remove(&self, number: u64) {
        self.0.lock().open.remove(&number);
    }

    /// The number of connections that are open, and of those that were closed because there were too many.
    pub(super) fn counts(&self) -> (usize, u64) {
        let connections = self.0.lock();
        (connections.open.len(), connections.closed)
    }
}
