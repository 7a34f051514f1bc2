//! A hive's certificate and those of the CAs: reads the files, checks them, and reads them again when they have changed.

use super::name_of;
use super::words::{self, Whose};
use crate::limits::wire as limits;
use beehive_core::HiveId;
use parking_lot::Mutex;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// The PEM files by which a hive shows which one it is, and knows the others. When they change, they hold for the next connection,
/// without a restart; if they are wrong, the previous ones stay in use, and the log says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificates of the CAs of the cluster. All hives whose certificate one of them has signed belong to it.
    pub ca: PathBuf,
    /// This hive's certificate, followed by the intermediate ones, if there are any. That of hive 1 has the DNS name `hive-1`.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
}

/// The two configurations of a hive: that of the connections that it makes, and of those that it accepts.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    pub(super) client: Arc<ClientConfig>,
    pub(super) server: Arc<ServerConfig>,
}

/// What a hive shows and trusts.
#[derive(Debug)]
pub(in crate::cluster::wire) struct Credentials {
    files: TlsFiles,
    hive: HiveId,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    ends: Ends,
    stamps: Stamps,
    looked: Instant,
}

/// The modification time and the length of each file; `None` if it cannot be read.
type Stamps = [Option<(SystemTime, u64)>; 3];

impl Credentials {
    /// Reads the files of a hive.
    ///
    /// # Errors
    ///
    /// Returns the file and the reason if another hive would refuse them.
    pub(in crate::cluster::wire) fn read(files: TlsFiles, hive: HiveId) -> Result<Credentials, String> {
        // before the files are read: a change while they are read is a change
        let stamps = stamps(&files);
        let ends = load(&files, hive)?;
        Ok(Credentials { files, hive, current: Mutex::new(Current { ends, stamps, looked: Instant::now() }) })
    }

    pub(super) fn files(&self) -> &TlsFiles {
        &self.files
    }

    /// The configurations for a new connection. Looks for changed files, but not at each connection of a storm.
    pub(super) fn current(&self) -> Ends {
        let mut current = self.current.lock();
        let now = Instant::now();
        if now - current.looked >= limits::CERTIFICATES_LOOKED_AT_EVERY {
            current.looked = now;
            let stamps = stamps(&self.files);
            if stamps != current.stamps {
                current.stamps = stamps;
                match load(&self.files, self.hive) {
                    Ok(ends) => {
                        current.ends = ends;
                        tracing::info!("read the changed certificates of {}", self.hive)
                    }
                    Err(why) => {
                        tracing::error!(
                            "the changed certificates are not used, and the previous ones stay: {why}"
                        )
                    }
                }
            }
        }
        current.ends.clone()
    }
}

fn stamps(files: &TlsFiles) -> Stamps {
    [&files.ca, &files.certificate, &files.key].map(|file| {
        let data = std::fs::metadata(file).ok()?;
        Some((data.modified().ok()?, data.len()))
    })
}

fn in_file(file: &Path, why: impl Display) -> String {
    format!("{}: {why}", file.display())
}

fn load(files: &TlsFiles, hive: HiveId) -> Result<Ends, String> {
    let own = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| match error {
        pem::Error::NoItemsFound => in_file(&files.key, "the file has no private key without a password"),
        error => in_file(&files.key, error),
    })?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&files.ca)? {
        roots.add(certificate).map_err(|error| in_file(&files.ca, error))?
    }
    let roots = Arc::new(roots);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let servers = WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone())
        .build()
        .map_err(|error| in_file(&files.ca, error))?;
    let clients = WebPkiClientVerifier::builder_with_provider(roots, provider.clone())
        .build()
        .map_err(|error| in_file(&files.ca, error))?;

    // what the others are going to say about the certificate
    if let Some((first, intermediate)) = own.split_first() {
        let now = UnixTime::now();
        servers
            .verify_server_cert(first, intermediate, &name_of(hive), &[], now)
            .and_then(|_| clients.verify_client_cert(first, intermediate, now))
            .map_err(|error| {
                let why = words::of_certificate(&error, files, Whose::Ours);
                in_file(&files.certificate, format!("the certificate {why}"))
            })?;
    }

    let wrong = |error: rustls::Error| match error {
        rustls::Error::InconsistentKeys(_) => {
            in_file(&files.key, format!("it is not the key of {}", files.certificate.display()))
        }
        error => in_file(&files.key, error),
    };
    let mut client = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])
        .map_err(wrong)?
        .with_webpki_verifier(servers)
        .with_client_auth_cert(own.clone(), key.clone_key())
        .map_err(wrong)?;
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(wrong)?
        .with_client_cert_verifier(clients)
        .with_single_cert(own, key)
        .map_err(wrong)?;

    // HTTP/2 wants it (RFC 9113, 3.2)
    client.alpn_protocols = vec![b"h2".to_vec()];
    server.alpn_protocols = vec![b"h2".to_vec()];
    // a ticket would be as good as a certificate that is no longer trusted
    client.resumption = Resumption::disabled();
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.send_tls13_tickets = 0;
    Ok(Ends { client: Arc::new(client), server: Arc::new(server) })
}

/// Reads the certificates in a file, of which there is at least one.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).map_err(|error| in_file(file, error))?;
    let certificates: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| in_file(file, error))?;
    match certificates.is_empty() {
        true => Err(in_file(file, "the file has no certificate")),
        false => Ok(certificates),
    }
}
