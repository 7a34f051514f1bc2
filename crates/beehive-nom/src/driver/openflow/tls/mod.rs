//! TLS: the channel, the files with the controller's and the switches' credentials, and the names in certificates.

mod certificate;
mod channel;
mod credentials;

pub use channel::Tls;
pub(super) use credentials::describe_tls_error;
pub use credentials::{CERTIFICATE, Credentials, KEY, SWITCHES_CA};
