//! The wire: the [`Transport`] of a real cluster, over HTTP/2 streams between each two hives.
//!
//! ```text
//!   this hive                                                        another hive
//!   ┌──────────────────────────────┐   one connection: it dials    ┌────────────────────────────┐
//!   │ send, call ► outgoing        │                               │ incoming ► Receiver        │
//!   │   queue of each lane ────────┼──► detector  packets, forget ─┼─►  at most 64 calls a lane │
//!   │                              │    links     packets          │    at once                 │
//!   │   waiting calls ◄────────────┼─── registry  calls, answers   │    answers                 │
//!   │                              │    raft      calls up to 64 k │                            │
//!   │                              │    raft long other calls      │                            │
//!   └──────────────────────────────┘                               └────────────────────────────┘
//! ```
//!
//! Each hive dials each other hive, so there are two connections between two hives, and each carries what the dialer sends,
//! and the answers. So nobody has to decide which of two connections stays when both dial at once, and a hive can send as
//! soon as it has connected itself. Each connection has a stream for each lane (`lane.rs`). A stream's window is smaller
//! than the connection's, and HTTP/2 sends frames of 16 KiB of all streams in turn. So a lane whose receiver is slow, or that
//! carries long messages, does not hold up the others.
//!
//! Every queue has a limit (`limits.rs`). A packet for which there is no room is dropped and counted. A call waits for room. A
//! receiver that serves enough calls of a lane does not read more of it, so that HTTP/2 stops the sender.
//!
//! A connection begins with a handshake (`handshake.rs`). Before it is done, the other side can use little memory
//! (`strangers.rs`), and nothing reaches the receiver. All tasks belong to a scope (`tasks.rs`): when a connection ends, its
//! tasks end, and [`Wire::stop`] waits for all of them.
//!
//! With certificates (`tls/`), everything is encrypted, and each side knows which hive the other one is. Without, nothing is
//! encrypted: with a join token, nobody without it can take part, but who can change packets on the network can change what hives
//! say.

mod accept;
mod calls;
mod codec;
mod counted;
mod dial;
mod frame;
mod handshake;
mod identity;
mod incoming;
mod lane;
mod options;
mod outgoing;
mod peer;
mod queue;
mod repeats;
mod served;
mod shared;
mod strangers;
mod tasks;
#[cfg(feature = "testing")]
pub mod testing;
mod text;
mod tls;
mod token;

pub use options::{WireError, WireOptions};
pub use peer::PeerStatus;
pub use tls::TlsFiles;

use self::identity::Identity;
use self::shared::Shared;
use self::tasks::Scope;
use self::tls::Credentials;
use self::token::Key;
use super::transport::{Channel, Receiver, Transport, Unanswered};
use crate::limits::wire as limits;
use beehive_core::HiveId;
use beehive_core::seams::BoxFuture;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::time::timeout;

/// The [`Transport`] of a real cluster. See the documentation of this module.
///
/// If it is dropped without [`stop`](Wire::stop), its connections are closed soon afterwards, but nobody waits for that. It
/// keeps the attached receiver until it is stopped or dropped.
#[derive(Debug)]
pub struct Wire {
    shared: Arc<Shared>,
    address: SocketAddr,
}

/// What a wire says about itself.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WireStatus {
    /// The other hives, by their ids.
    pub peers: Vec<PeerStatus>,
    /// Number of connections that have not shown yet that they belong to the cluster.
    pub strangers: usize,
    /// Number of connections that were closed because they did not show that they belong to the cluster.
    pub strangers_refused: u64,
}

impl Wire {
    /// Listens, and begins to connect with the peers. Must be called in a tokio runtime, which then runs all tasks.
    ///
    /// Packets that arrive before a receiver is attached are dropped, and calls are refused.
    ///
    /// Dropping the future opens nothing.
    ///
    /// # Errors
    ///
    /// Returns an error if the options are refused or the address cannot be used. It says what to do.
    pub async fn bind(options: WireOptions) -> Result<Arc<Wire>, WireError> {
        options.check()?;
        let WireOptions { listen, cluster, seed, fingerprint, hive, incarnation, token, tls, peers } =
            options;
        let credentials = tls.map(|files| Credentials::read(files, hive)).transpose();
        let credentials = credentials.map_err(|why| WireError::Tls { why })?;
        let listener =
            TcpListener::bind(listen).await.map_err(|error| WireError::Listen { listen, error })?;
        let address = listener.local_addr().map_err(|error| WireError::Listen { listen, error })?;
        let mut process = [0; 16];
        getrandom::fill(&mut process)
            .map_err(|error| WireError::Random { error: io::Error::other(error.to_string()) })?;
        let apps = *blake3::hash(&fingerprint).as_bytes();

        let identity = Identity { cluster, seed, apps, hive, incarnation, process };
        let scope = Scope::new(Handle::current());
        let shared = Shared::new(identity, Key::new(token.as_deref()), credentials, scope);
        shared.scope.spawn(accept::accept_all(shared.clone(), listener));
        let wire = Arc::new(Wire { shared, address });
        for (hive, address) in peers {
            wire.set_peer(hive, address)
        }
        Ok(wire)
    }

    /// The address on which the wire listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the address of another hive, as `host:port`, and connects with it. A connection with another address of the hive
    /// is closed. This hive itself is ignored, and so is one more than [`PEERS_MAX`](limits::PEERS_MAX) hives.
    pub fn set_peer(&self, hive: HiveId, address: impl Into<String>) {
        if hive == self.shared.identity.hive || self.shared.is_draining() {
            return;
        }
        let Some(peer) = self.shared.peer_or_new(hive) else {
            tracing::warn!("{hive} is not added: {} hives are known, which is the limit", limits::PEERS_MAX);
            return;
        };
        let previous = peer.set_address(Some(address.into()));
        if previous.is_none() {
            self.shared.scope.spawn(dial::keep_connected(self.shared.clone(), peer))
        }
    }

    /// Forgets another hive, and closes the connections with it. It can connect again if it knows this hive's address.
    pub fn remove_peer(&self, hive: HiveId) {
        if let Some(peer) = self.shared.remove_peer(hive) {
            peer.set_address(None);
            peer.close()
        }
    }

    /// Says how the connections are.
    pub fn status(&self) -> WireStatus {
        WireStatus {
            peers: self.shared.peers().iter().map(|peer| peer.status()).collect(),
            strangers: self.shared.strangers.counts().0,
            strangers_refused: self.shared.strangers_refused.load(Ordering::Relaxed)
                + self.shared.strangers.counts().1,
        }
    }

    /// Stops: sends what waits, answers the calls that are served and waits for answers, for at most
    /// [`DRAIN_TIME_MAX`](limits::DRAIN_TIME_MAX); then closes all connections, and waits until no task runs. A task ends at
    /// its next `.await`, so a receiver that blocks delays this. The receiver is dropped. May be called again.
    ///
    /// Dropping the future does not undo the stop, but the connections may then live on until the wire is dropped.
    pub async fn stop(&self) {
        self.shared.draining.cancel();
        let finished = self.shared.scope.finished();
        if timeout(limits::DRAIN_TIME_MAX, finished).await.is_err() {
            self.shared.scope.end();
            self.shared.scope.finished().await
        }
        self.shared.scope.end();
        self.shared.set_receiver(None)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.shared.scope.end();
        self.shared.set_receiver(None)
    }
}

impl Transport for Wire {
    fn send(&self, to: HiveId, channel: Channel, packet: Vec<u8>) {
        if let Some(peer) = self.shared.peer(to) {
            let is_sent = peer.outgoing().is_some_and(|outgoing| outgoing.send(channel, packet));
            if !is_sent {
                peer.count_dropped()
            }
        }
    }

    fn call(&self, to: HiveId, channel: Channel, request: Vec<u8>) -> BoxFuture<Result<Vec<u8>, Unanswered>> {
        let peer = self.shared.peer(to);
        Box::pin(async move {
            let Some(peer) = peer else {
                return Err(Unanswered { why: format!("{to} is not known") });
            };
            match peer.outgoing() {
                Some(outgoing) => outgoing.call(channel, request).await,
                None => {
                    let reason = peer.last_refusal().map(|reason| format!("; {reason}")).unwrap_or_default();
                    Err(Unanswered { why: format!("{to} is not connected{reason}") })
                }
            }
        })
    }

    fn attach(&self, receiver: Arc<dyn Receiver>) {
        self.shared.set_receiver(Some(receiver))
    }
}
