//! Says why TLS was not begun with another hive, and what to do.
//!
//! The same text must come of the same reason, and have no time or number in it that changes: a text is logged when it is new.

use super::credentials::TlsFiles;
use crate::cluster::wire::text::tame;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};
use std::io;

/// What a hive without TLS says about one that has it.
pub(in crate::cluster::wire) const UNEXPECTED: &str = "it uses TLS, and this hive does not: give all hives of the cluster certificates (`tls`), or none of them";

/// The text with which the library for certificates refuses one that has no extensions, and therefore no name.
const OLD_VERSION: &str = "UnsupportedCertVersion";

/// Why TLS was not begun. The text begins with "it" or "its", which is the other hive.
#[derive(Debug)]
pub(in crate::cluster::wire) struct Failed {
    pub(in crate::cluster::wire) why: String,
    /// Whether it is so until somebody changes something.
    pub(in crate::cluster::wire) is_misfit: bool,
}

/// Whose certificate a text is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Ours,
    Theirs,
}

pub(super) fn of_io(error: &io::Error, files: &TlsFiles) -> Failed {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<Error>());
    let (why, is_misfit) = match cause {
        Some(error @ Error::InvalidCertificate(_)) => {
            (format!("its certificate {}", of_certificate(error, files, Whose::Theirs)), true)
        }
        Some(Error::NoCertificatesPresented) => {
            ("it shows no certificate: give all hives certificates of the cluster's CA (`tls`)".into(), true)
        }
        Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => (
            "it does not use TLS, and this hive does: give all hives of the cluster certificates (`tls`), or none of them".into(),
            true,
        ),
        Some(Error::PeerIncompatible(what)) => {
            (format!("it does not speak TLS 1.3 as a hive does ({what:?}): is its address right?"), true)
        }
        Some(Error::AlertReceived(alert)) => of_alert(*alert, files),
        Some(error) => (format!("the TLS handshake with it failed: {}", tame(&error.to_string())), false),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            ("it closed the connection during the TLS handshake".into(), false)
        }
        None => (format!("the TLS handshake with it broke off: {error}"), false),
    };
    Failed { why, is_misfit }
}

/// Says what is wrong with a certificate, as the end of a sentence about it.
pub(super) fn of_certificate(error: &Error, files: &TlsFiles, whose: Whose) -> String {
    use CertificateError::*;
    let Error::InvalidCertificate(error) = error else {
        return format!("cannot be used: {error}");
    };
    let make = match whose {
        Whose::Ours => "make a new one, or correct the clock of this machine",
        Whose::Theirs => "give that hive a new one, or correct the clock of this machine",
    };
    match error {
        Expired | ExpiredContext { .. } => format!("has expired: {make}"),
        NotValidYet | NotValidYetContext { .. } => format!("is not valid yet: {make}"),
        // the latter if another CA with the same name has signed it
        UnknownIssuer | BadSignature => format!(
            "was not signed by a CA in {}: sign the certificates of all hives with one CA, and give all hives its certificate",
            files.ca.display()
        ),
        NotValidForName => "is that of another hive: give each hive its own certificate".into(),
        NotValidForNameContext { expected, .. } => format!(
            "is for {}, and not for {}: {}",
            names(error),
            expected.to_str(),
            match whose {
                Whose::Ours => "give each hive a certificate with its own name",
                Whose::Theirs => "correct the address of that hive, or give it its own certificate",
            }
        ),
        InvalidPurpose | InvalidPurposeContext { .. } => {
            "is for one side of a connection only: make one with the extended key usages serverAuth and clientAuth, or with none"
                .into()
        }
        BadEncoding => "cannot be read: it is damaged, or no certificate: make a new one, as the guide to clusters shows".into(),
        Other(error) if error.0.to_string() == OLD_VERSION => {
            "is one of X.509 version 1: make one of version 3 with the name of the hive, as the guide to clusters shows".into()
        }
        error => format!(
            "cannot be used ({}): make a new one, as the guide to clusters shows",
            tame(&error.to_string())
        ),
    }
}

/// The names in a certificate that has not the expected one.
pub(super) fn names(error: &CertificateError) -> String {
    match error {
        CertificateError::NotValidForNameContext { presented, .. } if !presented.is_empty() => {
            // such as `DnsName("hive-1")`
            let names = presented.iter().map(|name| tame(name.split('"').nth(1).unwrap_or(name)));
            names.collect::<Vec<_>>().join(" and ")
        }
        _ => "no name".into(),
    }
}

/// Says why the other side has ended the handshake.
fn of_alert(alert: AlertDescription, files: &TlsFiles) -> (String, bool) {
    let why = match alert {
        AlertDescription::CertificateExpired => {
            "because it has expired, or is not valid yet: make a new one, or correct the clocks of both machines"
        }
        // the latter if they have the name of the CA that has signed it
        AlertDescription::UnknownCA | AlertDescription::DecryptError => {
            "because none of its CAs has signed it: sign the certificates of all hives with one CA, and give all hives its \
             certificate"
        }
        AlertDescription::BadCertificate => {
            "because it expects another hive here: correct the address of this hive in the list of that hive"
        }
        AlertDescription::UnsupportedCertificate => {
            "because it is for one side of a connection only: make one with the extended key usages serverAuth and clientAuth, or \
             with none"
        }
        AlertDescription::CertificateUnknown
        | AlertDescription::CertificateRevoked
        | AlertDescription::AccessDenied => "and does not say why: see its log",
        alert => return (format!("it ended the TLS handshake ({alert:?}); its log says why"), false),
    };
    (format!("it refuses this hive's certificate ({}), {why}", files.certificate.display()), true)
}
