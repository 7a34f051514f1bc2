//! Tracks the open connections so that the oldest idle one can be evicted when the limit is reached.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::oneshot;

/// All open connections, in the order in which they were accepted.
#[derive(Clone, Default)]
pub(super) struct ConnectionTracker {
    connections: Arc<Mutex<Connections>>,
}

#[derive(Default)]
struct Connections {
    /// Number of the next connection.
    next: u64,
    by_number: BTreeMap<u64, Connection>,
}

struct Connection {
    /// Whether a request is in flight.
    busy: Arc<AtomicBool>,
    /// When this sender is dropped, the receiver returned by [`ConnectionTracker::track`] resolves, which
    /// evicts the connection.
    _keep_open: oneshot::Sender<()>,
}

/// Registration of a connection. Dropping it unregisters the connection.
pub(super) struct TrackedConnection {
    tracker: ConnectionTracker,
    number: u64,
    busy: Arc<AtomicBool>,
}

/// Guard that marks the connection as busy until the guard is dropped.
pub(super) struct RequestInFlight(Arc<AtomicBool>);

impl ConnectionTracker {
    /// Registers a connection. The receiver resolves when the connection is evicted.
    pub(super) fn track(&self) -> (TrackedConnection, oneshot::Receiver<()>) {
        let (keep_open, evicted) = oneshot::channel();
        let busy = Arc::<AtomicBool>::default();
        let mut connections = self.connections.lock();
        let number = connections.next;
        connections.next += 1;
        connections.by_number.insert(number, Connection { busy: busy.clone(), _keep_open: keep_open });
        drop(connections);
        (TrackedConnection { tracker: self.clone(), number, busy }, evicted)
    }

    /// Evicts the oldest connection that has no request in flight. Returns `false` if there is none.
    pub(super) fn evict_idle(&self) -> bool {
        let mut connections = self.connections.lock();
        let idle = |connection: &Connection| !connection.busy.load(Ordering::Acquire);
        let first =
            connections.by_number.iter().find(|(_, connection)| idle(connection)).map(|(number, _)| *number);
        first.and_then(|number| connections.by_number.remove(&number)).is_some()
    }
}

impl TrackedConnection {
    /// Marks the connection as busy while the returned guard lives.
    pub(super) fn begin_request(&self) -> RequestInFlight {
        self.busy.store(true, Ordering::Release);
        RequestInFlight(self.busy.clone())
    }
}

impl Drop for TrackedConnection {
    fn drop(&mut self) {
        self.tracker.connections.lock().by_number.remove(&self.number);
    }
}

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_idle_connection_is_evicted() {
        let tracker = ConnectionTracker::default();
        let mut all: Vec<_> = (0..4).map(|_| tracker.track()).collect();
        let asks = all[0].0.begin_request();
        let gone = |all: &mut Vec<(TrackedConnection, oneshot::Receiver<()>)>| {
            let closed = oneshot::error::TryRecvError::Closed;
            all.iter_mut().map(|(_, over)| over.try_recv() == Err(closed.clone())).collect::<Vec<_>>()
        };

        assert!(tracker.evict_idle());
        assert_eq!(gone(&mut all), [false, true, false, false]);
        drop(asks);
        assert!(tracker.evict_idle());
        assert_eq!(gone(&mut all), [true, true, false, false]);
        all.truncate(3); // one connection ends by itself
        assert!(tracker.evict_idle() && !tracker.evict_idle(), "no connection is left");
        assert_eq!(gone(&mut all), [true; 3]);
        drop(all);

        assert!(tracker.connections.lock().by_number.is_empty());
    }

    #[test]
    fn a_connection_with_a_request_in_flight_is_not_evicted() {
        let tracker = ConnectionTracker::default();
        let (place, _over) = tracker.track();
        let _asks = place.begin_request();
        assert!(!tracker.evict_idle());
    }
}
