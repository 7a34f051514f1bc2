//! Accepts switches: a bee for each, and a limit on how many, and on how many that are not yet set up.

use crate::driver::openflow::connection::Connection;
use crate::driver::openflow::half_open::HalfOpen;
use crate::driver::openflow::session::SessionSettings;
use crate::driver::{Admission, Counters, Directory, drive};
use beehive::{Hive, Restart};
use parking_lot::Mutex;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// What can be set about a listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListenerSettings {
    /// Connections at the same time. Default 4 096.
    pub connections_max: usize,
    /// Connections at the same time that are not yet set up; with one more, the one that waits for longest goes.
    /// Default 512.
    pub half_open_max: usize,
    /// Each connection's.
    pub session: SessionSettings,
    /// Each connection's.
    pub admission: Admission,
}

impl Default for ListenerSettings {
    fn default() -> Self {
        ListenerSettings {
            connections_max: 4096,
            half_open_max: 512,
            session: SessionSettings::default(),
            admission: Admission::default(),
        }
    }
}

/// Why it cannot be listened.
#[derive(Debug)]
pub struct ListenError {
    /// Where.
    pub address: SocketAddr,
    /// Why not.
    pub error: std::io::Error,
}

impl std::fmt::Display for ListenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ListenError { address, error } = self;
        match error.kind() {
            ErrorKind::AddrInUse => write!(
                f,
                "cannot listen on {address}: another program does (`ss -ltnp 'sport = :{}'` says which); stop it, or \
                 choose another address",
                address.port()
            ),
            ErrorKind::AddrNotAvailable => {
                write!(
                    f,
                    "cannot listen on {address}: this machine has no such address (`ip address` lists them)"
                )
            }
            ErrorKind::PermissionDenied => write!(
                f,
                "cannot listen on {address}: ports below 1024 need privileges; choose a higher one, 6653 say"
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

/// Accepts switches on one socket.
pub struct Listener {
    hive: Hive,
    directory: Arc<Directory>,
    settings: ListenerSettings,
    half_open: Arc<HalfOpen>,
    /// Connections that could not be accepted.
    failed: AtomicU64,
}

impl Listener {
    /// A listener whose switches talk to `hive` and are listed in `directory`. One may serve several sockets.
    pub fn new(hive: &Hive, directory: Arc<Directory>, settings: ListenerSettings) -> Arc<Listener> {
        Arc::new(Listener {
            hive: hive.clone(),
            directory,
            settings,
            half_open: Arc::default(),
            failed: AtomicU64::new(0),
        })
    }

    /// Accepts on `socket` until the hive stops. Runs as an IO bee of the hive.
    pub fn serve(self: &Arc<Self>, socket: TcpListener) {
        let listener = self.clone();
        let socket = Arc::new(socket);
        self.hive.spawn_io("openflow-listener", Restart::ON_FAILURE, move |io| {
            let (listener, socket) = (listener.clone(), socket.clone());
            async move {
                let stopping = io.hive().stopping();
                tokio::pin!(stopping);
                loop {
                    tokio::select! {
                        biased;
                        () = &mut stopping => return Ok(()),
                        accepted = socket.accept() => listener.accepted(accepted).await,
                    }
                }
            }
        });
    }

    async fn accepted(&self, accepted: std::io::Result<(TcpStream, SocketAddr)>) {
        match accepted {
            Ok((stream, peer)) => self.admit(stream, peer),
            // the other side was faster
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(error) => {
                // no descriptors or memory: the rest of the program may give some back
                let failed = self.failed.fetch_add(1, Ordering::Relaxed) + 1;
                // once for every doubling: it may go on for long
                if failed.is_power_of_two() {
                    tracing::warn!(%error, failed, "connections could not be accepted");
                }
                tokio::time::sleep(Duration::from_millis(50)).await
            }
        }
    }

    fn admit(&self, stream: TcpStream, peer: SocketAddr) {
        if self.directory.len() >= self.settings.connections_max {
            tracing::warn!(%peer, limit = self.settings.connections_max, "too many connections; one more is refused");
            return;
        }
        let slot = self.half_open.add(self.settings.half_open_max);
        let once = Mutex::new(Some((stream, slot)));
        let (hive, directory, settings) = (self.hive.clone(), self.directory.clone(), self.settings);
        self.hive.spawn_io(format!("switch at {peer}"), Restart::Never, move |io| {
            let first = once.lock().take();
            let (hive, directory) = (hive.clone(), directory.clone());
            async move {
                let Some((stream, slot)) = first else { return Ok(()) };
                let counters = Arc::new(Counters::default());
                let entry = directory.enter(peer.to_string(), io.now(), counters.clone());
                let connection = Connection::new(&hive, stream, entry, settings.session, counters);
                drive(io, connection.holding(slot), settings.admission).await;
                Ok(())
            }
        });
    }
}
