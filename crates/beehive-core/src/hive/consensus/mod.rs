//! Consensus from the view of one hive: the journal and the registry, which a cluster replicates, and the
//! client that appends to the log.

pub mod journal;
pub(crate) mod log_client;
pub(crate) mod quarantine;
pub mod registry;
pub(crate) mod without_bee;
