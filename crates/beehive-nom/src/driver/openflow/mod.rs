//! OpenFlow 1.0 to 1.5: a switch at the other end of a TCP connection, with TLS or without.
//!
//! [`Session`] is the protocol without input or output: frames and time in, bytes and events out. [`Connection`] puts a
//! [`Channel`] under it, [`Listener`] accepts sockets and gives each a bee. [`Access`] and [`Credentials`] say who is let in.

mod access;
mod buffers;
#[cfg(test)]
mod canonical_tests;
mod certificate;
mod channel;
mod commands;
mod connection;
mod credentials;
mod flooding;
mod found;
mod greeting;
mod half_open;
mod keepalive;
mod listener;
mod service;
mod session;
mod tls;
mod wire;

pub use access::Access;
pub use channel::{Channel, Moved, Plain};
pub use connection::Connection;
pub use credentials::{CERTIFICATE, Credentials, KEY, SWITCHES_CA};
pub use listener::{ListenError, Listener, ListenerSettings};
pub use session::{Session, SessionSettings, Step};
pub use tls::Tls;
pub use wire::install as encode_flow;
