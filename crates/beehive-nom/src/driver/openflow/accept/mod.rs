//! Accepts connections: who may connect, in which order handshakes begin, and which connections give way to others.

mod access;
mod arrivals;
mod half_open;
mod listener;

pub use access::Access;
pub(super) use half_open::Slot;
pub use listener::{ListenError, Listener, ListenerSettings};
