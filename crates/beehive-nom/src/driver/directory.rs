//! Who is connected: one main connection per node, however many claim to be it.
//!
//! A switch says itself who it is. When a second one says to be a node that is there, the first is probed at once: alive,
//! it stays and the newcomer is refused; silent, it yields. Auxiliary connections belong to a node's main connection and
//! are no duplicates.

use crate::driver::{Counters, CountersNow};
use crate::limits;
use crate::object::{NodeId, Port};
use beehive::Time;
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Notify, oneshot};

/// The connections of this process.
#[derive(Debug, Default)]
pub struct Directory {
    entries: Mutex<Entries>,
    /// Connections that were refused for their address, of which nothing else is kept.
    addresses_refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Entries {
    next: u64,
    connections: BTreeMap<u64, Arc<ConnectionRecord>>,
    nodes: BTreeMap<NodeId, u64>,
    /// Of connections that are no more.
    past: CountersNow,
    ended: u64,
    refused: u64,
}

/// One connection, as others see it.
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

/// The outcome of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProbeOutcome {
    /// The one that is there answered.
    Alive,
    /// It did not.
    Gone,
}

/// What comes of claiming to be a node.
#[derive(Debug)]
pub enum Claim {
    /// Nobody else is.
    Granted,
    /// Somebody is there already.
    Taken(Arc<ConnectionRecord>),
}

/// A node as people see it.
#[derive(Clone, Debug, Serialize)]
pub struct NodeStatus {
    /// The node; none before the switch has said.
    pub node: Option<String>,
    /// Where it called from.
    pub address: String,
    /// What it speaks.
    pub protocol: &'static str,
    /// Whether this is one of its auxiliary connections.
    pub auxiliary: bool,
    /// Whether it is set up.
    pub ready: bool,
    /// Seconds since it connected.
    pub connected_seconds: u64,
    /// Its ports.
    pub ports: Vec<Port>,
    /// What was counted.
    pub counters: CountersNow,
}

impl Directory {
    /// Enters a new connection.
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

    /// Connections, whatever their state.
    pub fn len(&self) -> usize {
        self.entries.lock().connections.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Nodes that are set up.
    pub fn nodes(&self) -> usize {
        let entries = self.entries.lock();
        entries.connections.values().filter(|c| c.identity.lock().is_main()).count()
    }

    /// Whether the node is there.
    pub fn contains(&self, node: NodeId) -> bool {
        self.entries.lock().nodes.contains_key(&node)
    }

    /// Connections that ended, and those of them refused as duplicates.
    pub fn ended(&self) -> (u64, u64) {
        let entries = self.entries.lock();
        (entries.ended, entries.refused)
    }

    /// Counts a connection that was refused for its address; returns how many there were.
    pub(super) fn refuse_address(&self) -> u64 {
        self.addresses_refused.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Connections that were refused for their address.
    pub fn addresses_refused(&self) -> u64 {
        self.addresses_refused.load(Ordering::Relaxed)
    }

    /// What was counted, connections that are no more included.
    pub fn totals(&self) -> CountersNow {
        let entries = self.entries.lock();
        let mut totals = entries.past;
        entries.connections.values().for_each(|c| totals.add(&c.counters.now()));
        totals
    }

    /// All connections.
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
    /// Where it called from.
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

    /// Has it probed; none if too many wait for that already.
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

    /// Completes when somebody wants it probed. Cancel-safe.
    pub async fn challenged(&self) {
        self.challenged.notified().await
    }

    /// Whether somebody waits for the outcome of a probe.
    pub fn is_challenged(&self) -> bool {
        !self.challengers.lock().is_empty()
    }

    /// Tells the outcome of the probe.
    pub fn report_probe(&self, verdict: ProbeOutcome) {
        for challenger in self.challengers.lock().drain(..) {
            // it may have gone in the meantime
            let _ = challenger.send(verdict);
        }
    }
}

/// A connection's own place in the directory; leaves it when dropped.
#[derive(Debug)]
pub struct Entry {
    directory: Arc<Directory>,
    record: Arc<ConnectionRecord>,
}

impl Entry {
    /// The connection as others see it.
    pub fn record(&self) -> &Arc<ConnectionRecord> {
        &self.record
    }

    /// The directory.
    pub fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// Claims to be the main connection of `node`.
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

    /// Says to be an auxiliary connection of `node`; whether that node is there, and speaks the same.
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

    /// The switch is set up, or its ports have changed.
    pub fn ready(&self, ports: Vec<Port>) {
        let mut identity = self.record.identity.lock();
        identity.ready = true;
        identity.ports = ports;
    }

    /// Counts this connection as refused.
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
