//! OpenFlow 1.0 to 1.5: a switch at the other end of a TCP connection.
//!
//! [`Session`] is the protocol without input or output: frames and time in, bytes and events out. [`Connection`] puts a
//! socket under it, [`Listener`] accepts sockets and gives each a bee.

mod buffers;
mod commands;
mod connection;
mod flooding;
mod found;
mod greeting;
mod half_open;
mod keepalive;
mod listener;
mod service;
mod session;
mod wire;

pub use connection::Connection;
pub use listener::{ListenError, Listener, ListenerSettings};
pub use session::{Session, SessionSettings, Step};
