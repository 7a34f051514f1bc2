//! What the controller shows to switches over TLS, and whom it trusts: files in a folder, read again when they change.

use parking_lot::Mutex;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{InvalidMessage, RootCertStore, ServerConfig};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// The controller's certificate, and those of whoever signed it but for the last, in PEM.
pub const CERTIFICATE: &str = "cert.pem";
/// Its private key, in PEM.
pub const KEY: &str = "key.pem";
/// Whoever signs the certificates of switches, in PEM.
pub const SWITCHES_CA: &str = "ca.pem";

/// How often it is looked whether the files have changed.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Bytes of a file that are read at most.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// What is the matter with what a switch sent in place of TLS, or in it, in words.
pub(super) fn fault(error: &std::io::Error) -> String {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            "what it sent is no TLS; it has to be told ssl: and not tcp:".into()
        }
        _ => error.to_string(),
    }
}

/// The credentials of a controller, in a folder.
#[derive(Debug)]
pub struct Credentials {
    folder: PathBuf,
    /// Whether the certificate of a switch has to name it.
    binds: bool,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    config: Arc<ServerConfig>,
    stamps: Stamps,
    looked: Instant,
}

/// When each file was changed, and how long it was.
type Stamps = [Option<(SystemTime, u64)>; 3];

impl Credentials {
    /// Reads them from `folder`: [`CERTIFICATE`], [`KEY`] and [`SWITCHES_CA`]. `binds`: the certificate of a switch has to
    /// name the node that it says to be.
    ///
    /// # Errors
    ///
    /// A file is missing or is not what it should be; in words for whoever put it there.
    pub fn read(folder: &Path, binds: bool) -> Result<Credentials, String> {
        let stamps = stamps(folder);
        let config = Arc::new(load(folder)?);
        #[expect(clippy::disallowed_methods, reason = "files change in real time")]
        let current = Mutex::new(Current { config, stamps, looked: Instant::now() });
        Ok(Credentials { folder: folder.to_path_buf(), binds, current })
    }

    /// Whether the certificate of a switch has to name it.
    pub fn binds(&self) -> bool {
        self.binds
    }

    /// What holds for a connection that begins now. Files that have changed are read again, at most once a second; if they
    /// are no good, what held before goes on holding.
    pub fn current(&self) -> Arc<ServerConfig> {
        let mut current = self.current.lock();
        if current.looked.elapsed() >= LOOK_INTERVAL {
            #[expect(clippy::disallowed_methods, reason = "files change in real time")]
            current.looked = Instant::now();
            let stamps = stamps(&self.folder);
            if stamps != current.stamps {
                current.stamps = stamps;
                let folder = self.folder.display();
                match load(&self.folder) {
                    Ok(config) => {
                        current.config = Arc::new(config);
                        tracing::info!(%folder, "certificates have changed, and hold from now on");
                    }
                    Err(error) => {
                        tracing::error!(%folder, error, "certificates have changed and are no good; the old ones hold")
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
            return Err(format!("{}: {length} bytes are more than it can have", file.display()));
        }
        std::fs::read(&file).map_err(words)
    };
    let certificates = |name: &str| {
        let list: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(name)?).collect();
        match list {
            Ok(list) if !list.is_empty() => Ok(list),
            Ok(_) => Err(format!("{}: there is no certificate in it", folder.join(name).display())),
            Err(error) => Err(format!("{}: {error}", folder.join(name).display())),
        }
    };
    let own = certificates(CERTIFICATE)?;
    let key = PrivateKeyDer::from_pem_slice(&read(KEY)?).map_err(|error| {
        let why = match error {
            pem::Error::NoItemsFound => "there is no private key in it".to_string(),
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
            format!("{}: it is not the key of {CERTIFICATE}", folder.join(KEY).display())
        }
        error => format!("{}: {error}", folder.display()),
    };
    let versions = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = versions.map_err(words)?.with_client_cert_verifier(verifier);
    let mut config = builder.with_single_cert(own, key).map_err(words)?;
    // a switch shows its certificate each time: one that is not trusted any more does not come back by an old ticket
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
            fault(&Error::new(ErrorKind::InvalidData, error))
        };
        // an OpenFlow hello
        assert!(said_of(&[4, 0, 0, 8, 0, 0, 0, 1]).contains("what it sent is no TLS"));
        // an alert where a greeting should be
        assert!(!said_of(&[21, 3, 3, 0, 2, 2, 40]).contains("is no TLS"));
        assert_eq!(fault(&Error::other("something else")), "something else");
    }
}
