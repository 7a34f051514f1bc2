//! A certificate authority and certificates of hives, in a folder, for the tests.
#![allow(dead_code, reason = "each test target uses a part of it")]

use beehive_raft::cluster::wire::TlsFiles;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A certificate authority with a folder, which is removed when it is dropped.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
}

/// A certificate and its key.
pub(crate) struct Signed {
    pub(crate) pem: String,
    pub(crate) der: CertificateDer<'static>,
    pub(crate) key: KeyPair,
}

impl Signed {
    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::try_from(self.key.serialize_der()).unwrap()
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A new folder for temporary files.
pub(crate) fn folder() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("beehive-certificates-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

impl Authority {
    pub(crate) fn new() -> Authority {
        Authority::named("a cluster")
    }

    pub(crate) fn named(name: &str) -> Authority {
        let mut parameters = CertificateParams::new([]).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap();
        let authority = Authority { issuer, folder: folder() };
        std::fs::write(authority.ca(), authority.issuer.pem()).unwrap();
        authority
    }

    pub(crate) fn ca(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }

    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    pub(crate) fn der(&self) -> CertificateDer<'static> {
        self.issuer.der().clone()
    }

    /// Signs a certificate with a name.
    pub(crate) fn sign(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Signed {
        let mut parameters = CertificateParams::new([name.to_string()]).unwrap();
        change(&mut parameters);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        Signed { pem: certificate.pem(), der: certificate.der().clone(), key }
    }

    /// Writes the files of a hive, with a valid certificate.
    pub(crate) fn files(&self, hive: u32) -> TlsFiles {
        self.files_with(hive, &self.sign(&format!("hive-{hive}"), |_| ()))
    }

    /// Writes the files of a hive, with this certificate.
    pub(crate) fn files_with(&self, hive: u32, signed: &Signed) -> TlsFiles {
        let file = |kind: &str| self.folder.join(format!("{hive}-{kind}.pem"));
        let files = TlsFiles { ca: self.ca(), certificate: file("certificate"), key: file("key") };
        write(&files.certificate, &signed.pem);
        write(&files.key, &signed.key.serialize_pem());
        files
    }
}

pub(crate) fn write(file: &Path, text: &str) {
    std::fs::write(file, text).unwrap()
}

/// Lets a certificate be valid for a time that begins before now.
pub(crate) fn valid_for(time: Duration) -> impl FnOnce(&mut CertificateParams) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    move |parameters| {
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        parameters.not_before = epoch + (now - Duration::from_secs(3600));
        parameters.not_after = epoch + now + time
    }
}

pub(crate) fn expired(parameters: &mut CertificateParams) {
    parameters.not_before = rcgen::date_time_ymd(2001, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(2002, 1, 1)
}

pub(crate) fn not_yet_valid(parameters: &mut CertificateParams) {
    parameters.not_before = rcgen::date_time_ymd(2096, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(2099, 1, 1)
}
