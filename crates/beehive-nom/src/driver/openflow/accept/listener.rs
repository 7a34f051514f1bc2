//! Accepts connections from switches and starts an IO bee for each of them. Limits the number of connections, and the
//! number of connections that have not completed the handshake.
//!
//! Connections are accepted at once, because the operating system drops those that do not fit into its queue. They then
//! wait here, and the addresses from which they come take turns (`arrivals.rs`), until the handshakes of those before
//! them are complete. So after a restart of the controller, when all switches connect in one moment, each step of a
//! handshake is done in milliseconds, and the time limits of switch and controller hold.

use crate::driver::directory::Waiting;
use crate::driver::openflow::accept::access::Access;
use crate::driver::openflow::accept::arrivals::Arrivals;
use crate::driver::openflow::accept::half_open::{HalfOpen, handshakes_at_once};
use crate::driver::openflow::channel::{Channel, Plain};
use crate::driver::openflow::connection::Connection;
use crate::driver::openflow::session::SessionSettings;
use crate::driver::openflow::tls::{Credentials, Tls};
use crate::driver::{Admission, Counters, Directory, Suspects, drive_among, drive_sharing};
use crate::limits;
use beehive::{Hive, Restart};
use parking_lot::Mutex;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Settings of a listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListenerSettings {
    /// Maximum number of connections. Default 16 384. An idle connection takes some ten kilobytes, and a file
    /// descriptor.
    pub connections_max: usize,
    /// Maximum number of connections whose handshake is in progress. Further connections wait until one of these is
    /// complete, or is evicted because its peer is silent. Default 512.
    pub half_open_max: usize,
    /// Settings of the OpenFlow session of each connection.
    pub session: SessionSettings,
    /// Settings of packet admission of each connection.
    pub admission: Admission,
}

impl Default for ListenerSettings {
    fn default() -> Self {
        ListenerSettings {
            connections_max: 16_384,
            half_open_max: 512,
            session: SessionSettings::default(),
            admission: Admission::default(),
        }
    }
}

/// The error of a socket that cannot listen.
#[derive(Debug)]
pub struct ListenError {
    /// The address to listen on.
    pub address: SocketAddr,
    /// The operating system's error.
    pub error: std::io::Error,
}

impl std::fmt::Display for ListenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ListenError { address, error } = self;
        match error.kind() {
            ErrorKind::AddrInUse => write!(
                f,
                "cannot listen on {address}: another program already listens there (find it with `ss -ltnp 'sport = :{}'`); stop that \
                 program or choose another address",
                address.port()
            ),
            ErrorKind::AddrNotAvailable => {
                write!(
                    f,
                    "cannot listen on {address}: this machine does not have that address (`ip address` lists its addresses)"
                )
            }
            ErrorKind::PermissionDenied => write!(
                f,
                "cannot listen on {address}: ports below 1024 need privileges; choose a higher port, such as 6653"
            ),
            _ => write!(f, "cannot listen on {address}: {error}"),
        }
    }
}
impl std::error::Error for ListenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// Accepts switches on one or more sockets.
pub struct Listener {
    hive: Hive,
    directory: Arc<Directory>,
    settings: ListenerSettings,
    access: Arc<Access>,
    /// In a cluster, the hives that are suspected to be dead.
    suspects: Option<Suspects>,
    half_open: Arc<HalfOpen>,
    /// Accepted connections whose handshake has not begun.
    waiting: Mutex<Arrivals<Accepted>>,
    /// Permits to compute the signatures of a TLS handshake.
    tls_handshakes: Arc<Semaphore>,
    /// Number of failed `accept` calls.
    failed: AtomicU64,
    /// Number of connections refused because of the limit.
    refused: AtomicU64,
}

/// A connection whose handshake has not begun.
struct Accepted {
    stream: TcpStream,
    peer: SocketAddr,
    credentials: Option<Arc<Credentials>>,
    waiting: Waiting,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener")
            .field("hive", &self.hive)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

impl Listener {
    /// Creates a listener that connects switches to `hive` and lists
    /// them in `directory`. One listener can serve several sockets.
    pub fn new(hive: &Hive, directory: Arc<Directory>, settings: ListenerSettings) -> Arc<Listener> {
        Listener::guarded(hive, directory, settings, Access::default())
    }

    /// Creates a listener like [`Listener::new`] that admits only the switches allowed by `access`.
    pub fn guarded(
        hive: &Hive,
        directory: Arc<Directory>,
        settings: ListenerSettings,
        access: Access,
    ) -> Arc<Listener> {
        Listener::of(hive, directory, settings, access, None)
    }

    /// Creates a listener like [`Listener::guarded`], for the hives of a cluster. A switch may connect to several of them, which
    /// must run [`Mastership`](crate::apps::Mastership): it decides which of them controls the switch.
    pub fn in_cluster(
        hive: &Hive,
        directory: Arc<Directory>,
        settings: ListenerSettings,
        access: Access,
        suspects: Suspects,
    ) -> Arc<Listener> {
        Listener::of(hive, directory, settings, access, Some(suspects))
    }

    fn of(
        hive: &Hive,
        directory: Arc<Directory>,
        settings: ListenerSettings,
        access: Access,
        suspects: Option<Suspects>,
    ) -> Arc<Listener> {
        Arc::new(Listener {
            hive: hive.clone(),
            directory,
            settings,
            access: Arc::new(access),
            suspects,
            half_open: Arc::default(),
            waiting: Mutex::default(),
            tls_handshakes: Arc::new(Semaphore::new(handshakes_at_once())),
            failed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        })
    }

    /// Accepts plain TCP connections on `socket` until the hive stops. Runs as an IO bee of the hive.
    pub fn serve(self: &Arc<Self>, socket: TcpListener) {
        self.accept(socket, None)
    }

    /// Accepts TLS connections on `socket` until the hive stops. Runs as an IO bee of the hive.
    pub fn serve_tls(self: &Arc<Self>, socket: TcpListener, credentials: Arc<Credentials>) {
        self.accept(socket, Some(credentials))
    }

    fn accept(self: &Arc<Self>, socket: TcpListener, credentials: Option<Arc<Credentials>>) {
        let listener = self.clone();
        let socket = Arc::new(socket);
        self.hive.spawn_io("openflow-listener", Restart::ON_FAILURE, move |io| {
            let (listener, socket, credentials) = (listener.clone(), socket.clone(), credentials.clone());
            async move {
                let stopping = io.hive().stopping();
                tokio::pin!(stopping);
                loop {
                    tokio::select! {
                        biased;
                        () = &mut stopping => return Ok(()),
                        accepted = socket.accept() => listener.accepted(accepted, credentials.as_ref()).await,
                        () = listener.may_begin() => {}
                    }
                    listener.begin_waiting()
                }
            }
        });
    }

    async fn accepted(
        &self,
        accepted: std::io::Result<(TcpStream, SocketAddr)>,
        credentials: Option<&Arc<Credentials>>,
    ) {
        match accepted {
            Ok((stream, peer)) => self.admit(stream, peer, credentials),
            // the peer closed the connection before it was accepted
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(error) => {
                // out of file descriptors or memory: retries after a pause, during which other tasks may free some
                let failed = self.failed.fetch_add(1, Ordering::Relaxed) + 1;
                // logs only at powers of two, because the condition may last a long time
                if failed.is_power_of_two() {
                    tracing::warn!(%error, failed, "cannot accept connections");
                }
                #[expect(clippy::disallowed_methods, reason = "timeouts at a socket use real time")]
                let pause = tokio::time::sleep(Duration::from_millis(50));
                pause.await
            }
        }
    }

    fn admit(&self, stream: TcpStream, peer: SocketAddr, credentials: Option<&Arc<Credentials>>) {
        if !self.access.admits_address(peer.ip()) {
            // refuses before allocating anything for the connection
            let refused = self.directory.refuse_address();
            if refused.is_power_of_two() {
                tracing::warn!(%peer, refused, "connection refused: its address is not on the list of allowed networks");
            }
            return;
        }

        let mut waiting = self.waiting.lock();
        let open = self.directory.len() + self.directory.waiting();
        let excess = (open + 1).saturating_sub(self.settings.connections_max);
        // At the limit, a connection that is silent gives way to a new one, however short the silence. While every
        // handshake waits for the controller, there is none: then one gives way that has not begun, or else the new one.
        if excess > 0 && !self.half_open.evict(excess, self.hive.now(), Duration::ZERO) {
            let displaced = waiting.displace();
            self.refuse(displaced.as_ref().map_or(peer, |displaced| displaced.peer));
            if displaced.is_none() {
                return;
            }
        }

        let (credentials, counted) = (credentials.cloned(), self.directory.wait());
        waiting.push(peer.ip(), Accepted { stream, peer, credentials, waiting: counted })
    }

    fn refuse(&self, peer: SocketAddr) {
        let (limit, refused) =
            (self.settings.connections_max, self.refused.fetch_add(1, Ordering::Relaxed) + 1);
        // logs only at powers of two, because a refused switch connects again and again
        if refused.is_power_of_two() {
            tracing::warn!(%peer, limit, refused, "connection refused: the connection limit is reached");
        }
    }

    /// Waits until the handshake of a waiting connection may begin, or a silent connection may be evicted for it.
    async fn may_begin(&self) {
        if self.waiting.lock().is_empty() {
            return self.half_open.freed().await;
        }

        #[expect(clippy::disallowed_methods, reason = "timeouts at a socket use real time")]
        let check = tokio::time::sleep(limits::HALF_OPEN_CHECK_INTERVAL);
        tokio::select! {
            biased;
            () = self.half_open.freed() => {}
            () = check => {}
        }
    }

    /// Begins the handshakes of waiting connections, as long as the limit allows, and evicts silent connections in their
    /// favor.
    fn begin_waiting(&self) {
        loop {
            let mut waiting = self.waiting.lock();
            if self.half_open.len() >= self.settings.half_open_max {
                if !waiting.is_empty() {
                    self.half_open.evict(waiting.len(), self.hive.now(), limits::HALF_OPEN_SILENT_MIN);
                }
                return;
            }

            let Some(next) = waiting.pop() else { return };
            drop(waiting);
            self.begin(next)
        }
    }

    fn begin(&self, Accepted { stream, peer, credentials, waiting }: Accepted) {
        // sends small messages immediately; if the option cannot be set, the connection still works, but more slowly
        let _ = stream.set_nodelay(true);
        match credentials {
            None => self.spawn(Plain::new(stream), peer, waiting),
            Some(credentials) => match Tls::new(stream, credentials.current(), credentials.binds_node()) {
                Ok(channel) => self.spawn(channel.limited_by(self.tls_handshakes.clone()), peer, waiting),
                Err(error) => {
                    tracing::error!(%peer, %error, "connection refused: cannot start TLS with these certificates")
                }
            },
        }
    }

    fn spawn<C: Channel>(&self, channel: C, peer: SocketAddr, waiting: Waiting) {
        let slot = self.half_open.add();
        let once = Mutex::new(Some((channel, slot, waiting)));
        let (hive, directory, settings) = (self.hive.clone(), self.directory.clone(), self.settings);
        let (access, suspects) = (self.access.clone(), self.suspects.clone());

        self.hive.spawn_io(format!("switch at {peer}"), Restart::Never, move |io| {
            let first = once.lock().take();
            let (hive, directory, access) = (hive.clone(), directory.clone(), access.clone());
            let suspects = suspects.clone();
            async move {
                let Some((channel, slot, waiting)) = first else { return Ok(()) };
                let counters = Arc::new(Counters::default());
                let entry = directory.enter(peer.to_string(), io.now(), counters.clone());
                drop(waiting);
                let connection = Connection::new(&hive, channel, entry, settings.session, counters);
                let connection = connection.with_slot(slot).with_access(access);
                let capacity = directory.capacity().clone();
                match suspects {
                    Some(suspects) => {
                        drive_among(io, connection, settings.admission, capacity, suspects).await
                    }
                    None => drive_sharing(io, connection, settings.admission, capacity).await,
                };
                Ok(())
            }
        });
    }
}
