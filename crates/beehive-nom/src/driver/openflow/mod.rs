//! The OpenFlow driver: connects switches that speak OpenFlow 1.0 to 1.5 over TCP, with or without TLS.
//!
//! [`Session`] implements the protocol without I/O: its inputs are frames and the time, its outputs are bytes and
//! events. [`Connection`] runs a session over a [`Channel`]. [`Listener`] accepts connections and starts an IO bee
//! for each of them. [`Access`] and [`Credentials`] decide which switches may connect.

mod accept;
mod buffers;
#[cfg(test)]
mod canonical_tests;
mod channel;
mod connection;
mod established;
mod flood_list;
mod flow_stats;
mod handshake;
mod input_age;
mod keepalive;
mod roles;
mod sent_flows;
mod session;
mod tls;
mod wire;

pub use accept::{Access, ListenError, Listener, ListenerSettings};
pub use channel::{Channel, ChannelEvent, Plain};
pub use connection::Connection;
pub use session::{Session, SessionSettings, Step};
pub use tls::{CERTIFICATE, Credentials, KEY, SWITCHES_CA, Tls};
pub use wire::install as encode_flow;
