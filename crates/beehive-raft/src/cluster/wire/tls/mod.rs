//! TLS between hives: the files with a hive's certificate, how a connection begins with them, and what is said if it does not.
//!
//! Both sides show a certificate that a CA of the cluster has signed, and speak TLS 1.3. The certificate of hive 1 has the DNS
//! name `hive-1`, so no hive can say that it is another one: who connects expects the name of the hive that it wants to reach, and
//! who accepts compares the name with what the handshake of the wire (`handshake.rs`) says.
//!
//! The files are read again when they have changed, for the next connection. Connections that exist go on. Sessions are not
//! resumed, so that each connection shows a certificate that is valid then.

mod begin;
mod credentials;
mod words;

pub(super) use begin::{Shown, accept, dial, is_begun, part};
pub(super) use credentials::Credentials;
pub use credentials::TlsFiles;
pub(super) use words::UNEXPECTED;

use beehive_core::HiveId;
use rustls::pki_types::ServerName;

/// The name in the certificate of a hive.
fn name_of(hive: HiveId) -> ServerName<'static> {
    let name = format!("hive-{}", hive.0);
    ServerName::try_from(name).expect("letters, digits and a hyphen are a DNS name")
}
