//! What the tasks of a wire share.

use super::identity::Identity;
use super::peer::Peer;
use super::repeats::Repeats;
use super::strangers::Strangers;
use super::tasks::Scope;
use super::tls::Credentials;
use super::token::Key;
use crate::cluster::transport::Receiver;
use crate::limits::wire as limits;
use beehive_core::HiveId;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio_util::sync::CancellationToken;

/// What the tasks of a wire share.
pub(super) struct Shared {
    pub(super) identity: Identity,
    pub(super) key: Key,
    /// What this hive shows and trusts, if it uses TLS.
    pub(super) credentials: Option<Credentials>,
    pub(super) scope: Scope,
    /// The wire stops: nothing new begins, and what has begun may end.
    pub(super) draining: CancellationToken,
    pub(super) strangers: Strangers,
    pub(super) strangers_refused: AtomicU64,
    peers: RwLock<BTreeMap<HiveId, Arc<Peer>>>,
    receiver: RwLock<Option<Arc<dyn Receiver>>>,
    stranger_log: Mutex<Repeats>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("hive", &self.identity.hive).finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(
        identity: Identity,
        key: Key,
        credentials: Option<Credentials>,
        scope: Scope,
    ) -> Arc<Shared> {
        Arc::new(Shared {
            identity,
            key,
            credentials,
            scope,
            draining: CancellationToken::new(),
            strangers: Strangers::default(),
            strangers_refused: AtomicU64::new(0),
            peers: RwLock::default(),
            receiver: RwLock::default(),
            stranger_log: Mutex::default(),
        })
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    pub(super) fn peer(&self, hive: HiveId) -> Option<Arc<Peer>> {
        self.peers.read().get(&hive).cloned()
    }

    pub(super) fn peers(&self) -> Vec<Arc<Peer>> {
        self.peers.read().values().cloned().collect()
    }

    /// Returns what is known about a hive, or `None` if too many hives are known already.
    pub(super) fn peer_or_new(&self, hive: HiveId) -> Option<Arc<Peer>> {
        let mut peers = self.peers.write();
        if let Some(peer) = peers.get(&hive) {
            return Some(peer.clone());
        }
        (peers.len() < limits::PEERS_MAX)
            .then(|| peers.entry(hive).or_insert_with(|| Peer::new(hive)).clone())
    }

    pub(super) fn remove_peer(&self, hive: HiveId) -> Option<Arc<Peer>> {
        self.peers.write().remove(&hive)
    }

    pub(super) fn receiver(&self) -> Option<Arc<dyn Receiver>> {
        self.receiver.read().clone()
    }

    pub(super) fn set_receiver(&self, receiver: Option<Arc<dyn Receiver>>) {
        // dropped outside the lock, because it may drop the last reference to anything
        let previous = std::mem::replace(&mut *self.receiver.write(), receiver);
        drop(previous)
    }

    /// Notes that a hive that has shown that it has the join token was refused.
    pub(super) fn note_refused(&self, hive: HiveId, text: &str) {
        match self.peer(hive) {
            Some(peer) => peer.note_refusal(text),
            None => self.note_stranger(text),
        }
    }

    /// Notes that a hive that has shown that it has the join token does not fit.
    pub(super) fn note_misfit(&self, hive: HiveId, text: &str) {
        match self.peer(hive) {
            Some(peer) => peer.note_misfit(text),
            None => self.note_stranger(text),
        }
    }

    /// Notes that somebody was refused who has not shown that it has the join token.
    pub(super) fn note_stranger(&self, text: &str) {
        let refused = self.strangers_refused.fetch_add(1, Ordering::Relaxed) + 1;
        if self.stranger_log.lock().is_due(limits::STRANGER_LOGGED_EVERY) {
            tracing::warn!(refused, "a connection was refused: {text}")
        }
    }

    /// Notes that a hive has sent what no hive sends.
    pub(super) fn note_violation(&self, hive: HiveId, why: &str) {
        self.note_refused(hive, &format!("{hive} broke the protocol, and its connection was closed: {why}"))
    }
}
