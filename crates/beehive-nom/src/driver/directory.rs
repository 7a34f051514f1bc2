//! Tracks the connections of this process and grants each node at most one main connection.
//!
//! A switch reports its own datapath id. When a second connection claims the id of a connected node, the
//! first connection is probed immediately. If the first connection is alive, it stays and the second one is
//! refused. If it is silent, the second one replaces it. Auxiliary connections belong to the main connection
//! of a node and do not count as duplicates.

use crate::driver::{Capacity, Counters, CountersNow};
use crate::limits;
use crate::object::{NodeId, Port};
use beehive::Time;
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::sync::{Notify, oneshot};

/// This process's connections.
#[derive(Debug, Default)]
pub struct Directory {
    entries: Mutex<Entries>,
    /// Number of connections refused because of their address. No other data about them is kept.
    addresses_refused: AtomicU64,
    /// Number of accepted connections whose handshake has not begun.
    waiting: AtomicUsize,
    /// The capacity that the connections share.
    capacity: Arc<Capacity>,
}

/// Counts an accepted connection whose handshake has not begun. Dropping this value ends that.
#[derive(Debug)]
pub(super) struct Waiting(Arc<Directory>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct Entries {
    next: u64,
    connections: BTreeMap<u64, Arc<ConnectionRecord>>,
    nodes: BTreeMap<NodeId, u64>,
    /// Sum of the counters of closed connections.
    past: CountersNow,
    ended: u64,
    refused: u64,
}

/// The part of a connection's state that other tasks can read.
#[derive(Debug)]
pub struct ConnectionRecord {
    number: u64,
    peer: String,
    since: Time,
    counters: Arc<Counters>,
    identity: Mutex<Identity>,
    challengers: Mutex<Vec<oneshot::Sender<ProbeOutcome>>>,
    challenged: Notify,
}

#[derive(Debug, Default)]
struct Identity {
    node: Option<NodeId>,
    protocol: &'static str,
    auxiliary: bool,
    ready: bool,
    ports: Vec<Port>,
}

/// The outcome of a liveness probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProbeOutcome {
    /// The probed connection answered.
    Alive,
    /// The probed connection did not answer, or was closed.
    Gone,
}

/// The result of claiming a node.
#[derive(Debug)]
pub enum Claim {
    /// No other connection holds the node.
    Granted,
    /// Another connection holds the node.
    Taken(Arc<ConnectionRecord>),
}

/// The status of a connection, for display.
#[derive(Clone, Debug, Serialize)]
pub struct NodeStatus {
    /// The node; `None` before the switch has reported its datapath id.
    pub node: Option<String>,
    /// The peer's network address.
    pub address: String,
    /// The protocol and its version; empty before it is negotiated.
    pub protocol: &'static str,
    /// Whether this is an auxiliary connection of the node.
    pub auxiliary: bool,
    /// Whether the handshake is complete.
    pub ready: bool,
    /// Seconds since the connection was accepted.
    pub connected_seconds: u64,
    /// The switch's ports.
    pub ports: Vec<Port>,
    /// The connection's counters.
    pub counters: CountersNow,
}

impl Directory {
    /// Adds a new connection.
    pub fn enter(self: &Arc<Self>, peer: String, now: Time, counters: Arc<Counters>) -> Entry {
        let mut entries = self.entries.lock();
        entries.next += 1;
        let record = Arc::new(ConnectionRecord {
            number: entries.next,
            peer,
            since: now,
            counters,
            identity: Mutex::default(),
            challengers: Mutex::default(),
            challenged: Notify::new(),
        });

        entries.connections.insert(record.number, record.clone());
        Entry { directory: self.clone(), record }
    }

    /// Returns the hive's capacity for packets, which the connections share.
    pub fn capacity(&self) -> &Arc<Capacity> {
        &self.capacity
    }

    /// Counts a connection that waits for its handshake to begin.
    pub(super) fn wait(self: &Arc<Self>) -> Waiting {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(self.clone())
    }

    /// Returns the number of accepted connections whose handshake has not begun. They are not in this list.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Returns the number of connections whose handshake has begun, whether or not it is complete.
    pub fn len(&self) -> usize {
        self.entries.lock().connections.len()
    }

    /// Returns whether there is no connection.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of nodes whose main connection has completed the handshake.
    pub fn nodes(&self) -> usize {
        let entries = self.entries.lock();
        entries.connections.values().filter(|c| c.identity.lock().is_main()).count()
    }

    /// Returns whether a main connection holds `node`.
    pub fn contains(&self, node: NodeId) -> bool {
        self.entries.lock().nodes.contains_key(&node)
    }

    /// Returns the number of connections that have ended, and how many of them were refused as duplicates.
    pub fn ended(&self) -> (u64, u64) {
        let entries = self.entries.lock();
        (entries.ended, entries.refused)
    }

    /// Counts a connection refused because of its address, and returns the new total.
    pub(super) fn refuse_address(&self) -> u64 {
        self.addresses_refused.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the number of connections refused because of their address.
    pub fn addresses_refused(&self) -> u64 {
        self.addresses_refused.load(Ordering::Relaxed)
    }

    /// Returns the sum of the counters of all connections, including closed ones.
    pub fn totals(&self) -> CountersNow {
        let entries = self.entries.lock();
        let mut totals = entries.past;
        entries.connections.values().for_each(|c| totals.add(&c.counters.now()));
        totals
    }

    /// Returns the status of all connections, sorted by node.
    pub fn status(&self, now: Time) -> Vec<NodeStatus> {
        let connections: Vec<_> = self.entries.lock().connections.values().cloned().collect();
        let mut list: Vec<NodeStatus> = connections.iter().map(|c| c.status(now)).collect();
        list.sort_by(|a, b| a.node.cmp(&b.node).then(a.auxiliary.cmp(&b.auxiliary)));
        list
    }
}

impl Identity {
    fn is_main(&self) -> bool {
        self.ready && !self.auxiliary
    }
}

impl ConnectionRecord {
    /// Returns the peer's network address.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    fn status(&self, now: Time) -> NodeStatus {
        let identity = self.identity.lock();
        NodeStatus {
            node: identity.node.map(|n| n.to_string()),
            address: self.peer.clone(),
            protocol: identity.protocol,
            auxiliary: identity.auxiliary,
            ready: identity.ready,
            connected_seconds: now.since(self.since).as_secs(),
            ports: identity.ports.clone(),
            counters: self.counters.now(),
        }
    }

    /// Requests a probe of this connection. Returns a receiver of the outcome, or `None` if
    /// [`limits::CHALLENGERS_MAX`] connections are already waiting for it.
    pub fn challenge(&self) -> Option<oneshot::Receiver<ProbeOutcome>> {
        let mut challengers = self.challengers.lock();
        challengers.retain(|c| !c.is_closed());
        if challengers.len() >= limits::CHALLENGERS_MAX {
            return None;
        }

        let (sender, receiver) = oneshot::channel();
        challengers.push(sender);
        drop(challengers);
        self.challenged.notify_one();

        Some(receiver)
    }

    /// Waits until a probe of this connection is requested. Cancel-safe.
    pub async fn challenged(&self) {
        self.challenged.notified().await
    }

    /// Returns whether any connection is waiting for the outcome of a probe.
    pub fn is_challenged(&self) -> bool {
        !self.challengers.lock().is_empty()
    }

    /// Sends the outcome of the probe to all waiting connections.
    pub fn report_probe(&self, verdict: ProbeOutcome) {
        for challenger in self.challengers.lock().drain(..) {
            // the receiver may meanwhile have been dropped
            let _ = challenger.send(verdict);
        }
    }
}

/// The entry of a connection in the directory. Dropping the entry removes the connection.
#[derive(Debug)]
pub struct Entry {
    directory: Arc<Directory>,
    record: Arc<ConnectionRecord>,
}

impl Entry {
    /// Returns the connection's shared record.
    pub fn record(&self) -> &Arc<ConnectionRecord> {
        &self.record
    }

    /// Returns the directory.
    pub fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// Claims the role of `node`'s main connection for this connection.
    pub fn claim(&self, node: NodeId, protocol: &'static str) -> Claim {
        let mut entries = self.directory.entries.lock();
        let holder = entries.nodes.get(&node).and_then(|number| entries.connections.get(number)).cloned();
        if let Some(holder) = holder
            && holder.number != self.record.number
        {
            return Claim::Taken(holder);
        }

        entries.nodes.insert(node, self.record.number);
        drop(entries);
        self.identify(node, protocol, false);
        Claim::Granted
    }

    /// Registers as an auxiliary connection of `node`. Returns whether the main connection exists and uses
    /// the same protocol.
    pub fn attach_auxiliary(&self, node: NodeId, protocol: &'static str) -> bool {
        self.identify(node, protocol, true);
        let entries = self.directory.entries.lock();
        let main = entries.nodes.get(&node).and_then(|number| entries.connections.get(number));
        main.is_some_and(|main| main.identity.lock().protocol == protocol)
    }

    fn identify(&self, node: NodeId, protocol: &'static str, auxiliary: bool) {
        let mut identity = self.record.identity.lock();
        identity.node = Some(node);
        identity.protocol = protocol;
        identity.auxiliary = auxiliary;
    }

    /// Marks the handshake of the connection as complete, or updates its ports.
    pub fn ready(&self, ports: Vec<Port>) {
        let mut identity = self.record.identity.lock();
        identity.ready = true;
        identity.ports = ports;
    }

    /// Counts this connection as refused because it is a duplicate.
    pub fn refused(&self) {
        self.directory.entries.lock().refused += 1;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut entries = self.directory.entries.lock();
        entries.connections.remove(&self.record.number);
        if let Some(node) = self.record.identity.lock().node
            && entries.nodes.get(&node) == Some(&self.record.number)
        {
            entries.nodes.remove(&node);
        }

        entries.past.add(&self.record.counters.now());
        entries.ended += 1;
        drop(entries);
        self.record.report_probe(ProbeOutcome::Gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(directory: &Arc<Directory>, peer: &str) -> Entry {
        directory.enter(peer.into(), Time::ZERO, Arc::default())
    }

    #[test]
    fn a_node_has_one_main_connection() {
        let directory = Arc::new(Directory::default());
        let first = enter(&directory, "a");
        assert!(matches!(first.claim(NodeId(1), "x"), Claim::Granted));
        let second = enter(&directory, "b");
        let Claim::Taken(holder) = second.claim(NodeId(1), "x") else { panic!("two of them") };

        assert_eq!(holder.peer(), "a");
        assert!(matches!(second.claim(NodeId(2), "x"), Claim::Granted));
        let mut verdict = holder.challenge().unwrap();
        assert!(first.record().is_challenged());
        drop(first);
        assert_eq!(verdict.try_recv(), Ok(ProbeOutcome::Gone));

        let third = enter(&directory, "c");
        assert!(matches!(third.claim(NodeId(1), "x"), Claim::Granted));
    }

    #[test]
    fn leaving_keeps_what_was_counted() {
        let directory = Arc::new(Directory::default());
        let entry = enter(&directory, "a");
        Counters::add(&entry.record().counters.packet_ins, 5);
        assert_eq!((directory.totals().packet_ins, directory.len()), (5, 1));
        drop(entry);
        assert_eq!((directory.totals().packet_ins, directory.len(), directory.ended().0), (5, 0, 1));
    }

    #[test]
    fn challengers_are_limited() {
        let directory = Arc::new(Directory::default());
        let entry = enter(&directory, "a");
        let waiting: Vec<_> =
            (0..limits::CHALLENGERS_MAX).map(|_| entry.record().challenge().unwrap()).collect();
        assert!(entry.record().challenge().is_none());
        drop(waiting);
        assert!(entry.record().challenge().is_some());
    }
}
