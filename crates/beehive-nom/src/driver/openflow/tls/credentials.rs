//! Loads the controller's TLS certificates from a folder and reloads them when the files change.

use parking_lot::Mutex;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{InvalidMessage, RootCertStore, ServerConfig};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// The PEM file with the controller's certificate and the intermediate certificates, without the root certificate.
pub const CERTIFICATE: &str = "cert.pem";
/// The PEM file with the private key of the controller's certificate.
pub const KEY: &str = "key.pem";
/// The PEM file with the certificates of the CAs that sign switch certificates.
pub const SWITCHES_CA: &str = "ca.pem";

/// Minimum time between two checks for changed files.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum size of a file, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Describes a TLS error. Has a special text for a peer that does not speak TLS.
pub(in crate::driver::openflow) fn describe_tls_error(error: &std::io::Error) -> String {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            "the peer does not speak TLS; configure the switch to connect with ssl: instead of tcp:".into()
        }
        _ => error.to_string(),
    }
}

/// The TLS credentials of a controller, loaded from a folder.
#[derive(Debug)]
pub struct Credentials {
    folder: PathBuf,
    /// Whether a switch's certificate must contain the node id that the switch reports.
    binds_node: bool,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    config: Arc<ServerConfig>,
    stamps: Stamps,
    checked: Instant,
}

/// Modification time and length of each file; `None` if the file cannot be read.
type Stamps = [Option<(SystemTime, u64)>; 3];

impl Credentials {
    /// Reads [`CERTIFICATE`], [`KEY`] and [`SWITCHES_CA`] from `folder`. With `binds_node`, a switch's certificate must
    /// contain the node id that the switch reports.
    ///
    /// # Errors
    ///
    /// Returns an error if a file is missing or invalid. The text names the file and the reason.
    pub fn read(folder: &Path, binds_node: bool) -> Result<Credentials, String> {
        let stamps = stamps(folder);
        let config = Arc::new(load(folder)?);
        #[expect(clippy::disallowed_methods, reason = "files change in real time")]
        let current = Mutex::new(Current { config, stamps, checked: Instant::now() });
        Ok(Credentials { folder: folder.to_path_buf(), binds_node, current })
    }

    /// Returns whether a switch's certificate must contain the node id that the switch reports.
    pub fn binds_node(&self) -> bool {
        self.binds_node
    }

    /// Returns the configuration for a new connection. Checks at most once a second whether the files have changed,
    /// and reloads them if so. If they are invalid, the previous configuration stays in force.
    pub fn current(&self) -> Arc<ServerConfig> {
        #[expect(clippy::disallowed_methods, reason = "files change in real time")]
        let now = Instant::now();
        let mut current = self.current.lock();
        if now.duration_since(current.checked) >= CHECK_INTERVAL {
            current.checked = now;
            let stamps = stamps(&self.folder);
            if stamps != current.stamps {
                current.stamps = stamps;
                let folder = self.folder.display();
                match load(&self.folder) {
                    Ok(config) => {
                        current.config = Arc::new(config);
                        tracing::info!(%folder, "reloaded certificates");
                    }
                    Err(error) => {
                        tracing::error!(%folder, error, "cannot reload the certificates; the previous ones stay in use")
                    }
                }
            }
        }

        current.config.clone()
    }
}

fn stamps(folder: &Path) -> Stamps {
    [CERTIFICATE, KEY, SWITCHES_CA].map(|name| {
        let data = std::fs::metadata(folder.join(name)).ok()?;
        Some((data.modified().ok()?, data.len()))
    })
}

fn load(folder: &Path) -> Result<ServerConfig, String> {
    let read = |name: &str| {
        let file = folder.join(name);
        let words = |error: std::io::Error| format!("{}: {error}", file.display());
        let length = std::fs::metadata(&file).map_err(words)?.len();
        if length > FILE_BYTES_MAX {
            return Err(format!(
                "{}: the file has {length} bytes (at most {FILE_BYTES_MAX})",
                file.display()
            ));
        }
        std::fs::read(&file).map_err(words)
    };

    let certificates = |name: &str| {
        let list: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(name)?).collect();
        match list {
            Ok(list) if !list.is_empty() => Ok(list),
            Ok(_) => Err(format!("{}: no certificate found", folder.join(name).display())),
            Err(error) => Err(format!("{}: {error}", folder.join(name).display())),
        }
    };

    let own = certificates(CERTIFICATE)?;
    let key = PrivateKeyDer::from_pem_slice(&read(KEY)?).map_err(|error| {
        let why = match error {
            pem::Error::NoItemsFound => "no private key found".to_string(),
            error => error.to_string(),
        };
        format!("{}: {why}", folder.join(KEY).display())
    })?;

    let mut roots = RootCertStore::empty();
    for certificate in certificates(SWITCHES_CA)? {
        roots.add(certificate).map_err(|error| format!("{}: {error}", folder.join(SWITCHES_CA).display()))?;
    }

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| format!("{}: {error}", folder.join(SWITCHES_CA).display()))?;
    let words = |error: rustls::Error| match error {
        rustls::Error::InconsistentKeys(_) => {
            format!("{}: the private key does not match {CERTIFICATE}", folder.join(KEY).display())
        }
        error => format!("{}: {error}", folder.display()),
    };

    let versions = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = versions.map_err(words)?.with_client_cert_verifier(verifier);
    let mut config = builder.with_single_cert(own, key).map_err(words)?;

    // disables session resumption: a switch whose certificate is no longer trusted must not reconnect with an old TLS
    // ticket
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};

    #[test]
    fn a_switch_that_speaks_no_tls_is_named_as_that() {
        let said_of = |bytes: &[u8]| {
            let mut acceptor = rustls::server::Acceptor::default();
            acceptor.read_tls(&mut &bytes[..]).expect("bytes are read");
            let (error, _) = acceptor.accept().expect_err("this is no handshake");
            describe_tls_error(&Error::new(ErrorKind::InvalidData, error))
        };

        // an OpenFlow hello
        assert!(said_of(&[4, 0, 0, 8, 0, 0, 0, 1]).contains("does not speak TLS"));
        // an alert in place of a client hello
        assert!(!said_of(&[21, 3, 3, 0, 2, 2, 40]).contains("does not speak TLS"));
        assert_eq!(describe_tls_error(&Error::other("something else")), "something else");
    }
}
