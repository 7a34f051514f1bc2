//! The wire between hives, over real sockets on the loopback interface.
#![allow(missing_docs)]

#[path = "../common/certificates.rs"]
mod certificates;

mod calls;
mod flood;
mod hives;
mod hostile;
mod reconnect;
mod refusals;
mod stop;
mod tls;
