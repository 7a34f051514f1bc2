//! The log: commit records, the state that they fold to, and the client that appends them.

pub mod journal;
pub(crate) mod log_client;
pub(crate) mod quarantine;
pub(crate) mod seen;
pub(crate) mod shapes;
pub(crate) mod without_bee;
