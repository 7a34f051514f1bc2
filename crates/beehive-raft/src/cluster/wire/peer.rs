//! What a wire knows about one other hive.

use super::counted::Traffic;
use super::identity::{Identity, Refusal};
use super::outgoing::Outgoing;
use super::repeats::Repeats;
use super::tasks::Scope;
use crate::limits::wire as limits;
use beehive_core::HiveId;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Which side has made a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Dialed,
    Accepted,
}

/// What a wire knows about one other hive.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) hive: HiveId,
    address: Mutex<Option<String>>,
    /// The address has changed.
    pub(super) changed: Notify,
    /// The connection over which this hive sends.
    outgoing: RwLock<Option<Arc<Outgoing>>>,
    presence: Mutex<Presence>,
    pub(super) traffic: Arc<Traffic>,
    dropped: AtomicU64,
    refusals: Mutex<Refusals>,
}

/// The processes that have run as a hive, as far as they have connected.
#[derive(Debug, Default)]
struct Presence {
    /// The highest incarnation so far, and its process.
    latest: Option<(u64, [u8; 16])>,
    /// The connections with this process.
    connections: Vec<(u64, Direction, Scope)>,
    last_number: u64,
}

#[derive(Debug, Default)]
struct Refusals {
    last: Option<String>,
    /// Why the two hives do not fit.
    misfit: Option<String>,
    repeats: Repeats,
}

/// A connection's permission to exist. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Admission {
    peer: Arc<Peer>,
    number: u64,
}

impl Admission {
    pub(super) fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.peer.presence.lock().connections.retain(|(number, ..)| *number != self.number)
    }
}

/// What a wire says about one other hive.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PeerStatus {
    /// The other hive.
    pub hive: HiveId,
    /// Its address, as `host:port`, if it is known. Without it, this hive cannot send.
    pub address: Option<String>,
    /// How long this hive has been able to send to the other one without a break. `None` if it cannot.
    pub connected_for: Option<Duration>,
    /// Whether the other hive can send to this one.
    pub is_heard: bool,
    /// Number of bytes from the other hive, over all connections.
    pub bytes_in: u64,
    /// Number of bytes to the other hive, over all connections.
    pub bytes_out: u64,
    /// Number of packets that were dropped, because the other hive was not reachable or too many bytes waited.
    pub packets_dropped: u64,
    /// Number of this hive's calls that wait for an answer.
    pub calls_in_flight: usize,
    /// The reason of the last failed attempt to connect, in either direction, with what to do about it.
    pub last_refusal: Option<String>,
    /// Why the two hives refuse each other until somebody changes something, with what to do: their tokens, certificates,
    /// clusters, apps or addresses do not fit. `None` if the other hive has not been heard, or has connected since.
    pub misfit: Option<String>,
}

impl Peer {
    pub(super) fn new(hive: HiveId) -> Arc<Peer> {
        Arc::new(Peer {
            hive,
            address: Mutex::default(),
            changed: Notify::new(),
            outgoing: RwLock::default(),
            presence: Mutex::default(),
            traffic: Arc::default(),
            dropped: AtomicU64::new(0),
            refusals: Mutex::default(),
        })
    }

    pub(super) fn address(&self) -> Option<String> {
        self.address.lock().clone()
    }

    /// Sets the address. Returns the previous one.
    pub(super) fn set_address(&self, address: Option<String>) -> Option<String> {
        let previous = std::mem::replace(&mut *self.address.lock(), address.clone());
        if previous.is_some() && previous != address {
            self.changed.notify_one()
        }
        previous
    }

    pub(super) fn outgoing(&self) -> Option<Arc<Outgoing>> {
        self.outgoing.read().clone()
    }

    pub(super) fn set_outgoing(&self, outgoing: Option<Arc<Outgoing>>) {
        *self.outgoing.write() = outgoing
    }

    pub(super) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Decides whether a process may connect as this hive. A later process ends the connections of the earlier one.
    pub(super) fn admit(
        self: &Arc<Peer>,
        identity: &Identity,
        direction: Direction,
        scope: &Scope,
    ) -> Result<Admission, Refusal> {
        let mut presence = self.presence.lock();
        let found = (identity.incarnation, identity.process);
        match presence.latest {
            Some((known, _)) if known > found.0 => {
                return Err(Refusal::Outdated { known, found: found.0 });
            }
            Some(known) if known == found => {
                // a process has one connection in each direction: the other one is broken, and has not been noticed yet
                for (_, other, scope) in &presence.connections {
                    if *other == direction {
                        scope.end()
                    }
                }
            }
            Some((known, _)) if known == found.0 && !presence.connections.is_empty() => {
                return Err(Refusal::TwoProcesses(self.hive));
            }
            _ => {
                for (_, _, scope) in presence.connections.drain(..) {
                    scope.end()
                }
            }
        }
        self.refusals.lock().misfit = None;
        presence.latest = Some(found);
        presence.last_number += 1;
        let number = presence.last_number;
        presence.connections.push((number, direction, scope.clone()));
        Ok(Admission { peer: self.clone(), number })
    }

    /// Ends all connections.
    pub(super) fn close(&self) {
        for (_, _, scope) in self.presence.lock().connections.drain(..) {
            scope.end()
        }
    }

    /// Notes why a connection could not be made, and logs it if it is new.
    pub(super) fn note_refusal(&self, text: &str) {
        let mut refusals = self.refusals.lock();
        if refusals.repeats.is_new(text, limits::REFUSAL_LOGGED_EVERY) {
            tracing::warn!(peer = self.hive.0, "no connection: {text}")
        }
        refusals.last = Some(text.to_string())
    }

    /// Notes that the two hives do not fit, and why.
    pub(super) fn note_misfit(&self, text: &str) {
        self.note_refusal(text);
        self.refusals.lock().misfit = Some(text.to_string())
    }

    /// Notes that a connection was made: the next refusal is news.
    pub(super) fn note_connected(&self) {
        self.refusals.lock().repeats = Repeats::default()
    }

    pub(super) fn last_refusal(&self) -> Option<String> {
        self.refusals.lock().last.clone()
    }

    pub(super) fn status(&self) -> PeerStatus {
        let outgoing = self.outgoing();
        let connections = &self.presence.lock().connections;
        PeerStatus {
            hive: self.hive,
            address: self.address(),
            connected_for: outgoing.as_ref().map(|outgoing| Instant::now() - outgoing.since),
            is_heard: connections.iter().any(|(_, direction, _)| *direction == Direction::Accepted),
            bytes_in: self.traffic.bytes_in.load(Ordering::Relaxed),
            bytes_out: self.traffic.bytes_out.load(Ordering::Relaxed),
            packets_dropped: self.dropped.load(Ordering::Relaxed),
            calls_in_flight: outgoing.map_or(0, |outgoing| outgoing.calls_in_flight()),
            last_refusal: self.last_refusal(),
            misfit: self.refusals.lock().misfit.clone(),
        }
    }
}
