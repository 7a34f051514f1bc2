//! The options of a wire, and the reasons why it cannot be opened.

use super::tls::TlsFiles;
use crate::limits::wire as limits;
use beehive_core::HiveId;
use std::io;
use std::net::SocketAddr;

/// The options of a [`Wire`](super::Wire).
#[derive(Clone)]
pub struct WireOptions {
    /// The address to listen on. Port 0 stands for any free port.
    pub listen: SocketAddr,
    /// The name of the cluster. Hives of other clusters are refused.
    pub cluster: String,
    /// The seed from which cells are hashed. It must be the same on all hives.
    pub seed: u64,
    /// Bytes that are the same on all hives that run the same apps, in the same order, with the same shapes.
    pub fingerprint: Vec<u8>,
    /// This hive.
    pub hive: HiveId,
    /// A number that is higher in each later process of this hive, such as the number of starts of its folder. While a
    /// process with a higher one is known, the others refuse this one.
    pub incarnation: u64,
    /// The join token: a secret that all hives of the cluster share. It is not sent. If other machines can reach the address, a
    /// token or [`tls`](Self::tls) is required. Both together are best: then a certificate that the CA has signed for something
    /// else is not enough.
    pub token: Option<String>,
    /// The certificates. With them, connections use TLS 1.3, and each side knows which hive the other one is. Either all hives of a
    /// cluster have certificates or none. By default, nothing is encrypted.
    pub tls: Option<TlsFiles>,
    /// The other hives, each with its address as `host:port`. See [`Wire::set_peer`](super::Wire::set_peer).
    pub peers: Vec<(HiveId, String)>,
}

// Does not show the token.
impl std::fmt::Debug for WireOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WireOptions")
            .field("listen", &self.listen)
            .field("cluster", &self.cluster)
            .field("hive", &self.hive)
            .field("incarnation", &self.incarnation)
            .field("has_token", &self.token.is_some())
            .field("tls", &self.tls)
            .field("peers", &self.peers)
            .finish_non_exhaustive()
    }
}

impl WireOptions {
    /// Options without a token, without certificates and without peers.
    pub fn new(listen: SocketAddr, cluster: impl Into<String>, hive: HiveId) -> WireOptions {
        WireOptions {
            listen,
            cluster: cluster.into(),
            seed: 0,
            fingerprint: Vec::new(),
            hive,
            incarnation: 0,
            token: None,
            tls: None,
            peers: Vec::new(),
        }
    }

    pub(super) fn check(&self) -> Result<(), WireError> {
        let length = self.cluster.len();
        if !(1..=limits::CLUSTER_NAME_BYTES_MAX).contains(&length) {
            return Err(WireError::ClusterName { length });
        }
        match &self.token {
            None if self.tls.is_none() && !self.listen.ip().is_loopback() => {
                Err(WireError::NoToken { listen: self.listen })
            }
            Some(token) if token.len() < limits::TOKEN_BYTES_MIN => {
                Err(WireError::ShortToken { length: token.len() })
            }
            _ => Ok(()),
        }
    }
}

/// The reason why a wire cannot be opened.
#[non_exhaustive]
pub enum WireError {
    /// Other machines can reach the address, and there is neither a join token nor a certificate.
    NoToken {
        /// The address.
        listen: SocketAddr,
    },
    /// The join token is too short.
    ShortToken {
        /// Its length in bytes.
        length: usize,
    },
    /// The certificates cannot be used.
    Tls {
        /// The file, and the reason.
        why: String,
    },
    /// The cluster has no name, or a too long one.
    ClusterName {
        /// The length of the name in bytes.
        length: usize,
    },
    /// The address cannot be used.
    Listen {
        /// The address.
        listen: SocketAddr,
        /// The error.
        error: io::Error,
    },
    /// The system gives no random numbers.
    Random {
        /// The error.
        error: io::Error,
    },
}

impl std::fmt::Display for WireError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WireError::NoToken { listen } => write!(
                f,
                "{listen} can be reached from other machines, and this hive has no join token and no certificate: \
                 set `token` to the secret of the cluster (at least {} bytes) or `tls` to its certificates, or listen on 127.0.0.1",
                limits::TOKEN_BYTES_MIN
            ),
            WireError::ShortToken { length } => write!(
                f,
                "the join token has {length} bytes, and could be guessed: make a random one of at least {} bytes",
                limits::TOKEN_BYTES_MIN
            ),
            WireError::Tls { why } => write!(f, "this hive cannot use its certificates: {why}"),
            WireError::ClusterName { length } => write!(
                f,
                "the name of the cluster has {length} bytes: give it a `name` of 1 to {} bytes",
                limits::CLUSTER_NAME_BYTES_MAX
            ),
            WireError::Listen { listen, error } => write!(
                f,
                "cannot listen on {listen}: {error}{}",
                match error.kind() {
                    io::ErrorKind::AddrInUse => "; stop the process that uses the port, or name another port",
                    io::ErrorKind::AddrNotAvailable => "; name an address of this machine",
                    io::ErrorKind::PermissionDenied => "; name a port above 1023",
                    _ => "",
                }
            ),
            WireError::Random { error } => write!(f, "the system gives no random numbers: {error}"),
        }
    }
}

beehive_protocol::debug_is_display!(WireError);

impl std::error::Error for WireError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WireError::Listen { error, .. } | WireError::Random { error } => Some(error),
            _ => None,
        }
    }
}
