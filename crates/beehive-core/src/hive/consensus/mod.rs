//! One hive's side of consensus: the interfaces of the journal and the registry, both of which a cluster
//! replicates, and the clients that append to the logs.
//!
//! Input: records of bees, of stateless handlers, of sweeps and of the hive itself, and the journals' reports
//! about which entries are committed and which are dead. Output: numbered entries for the journals, and the
//! bees whose entries have been decided, which `run/log_events.rs` wakes.
//!
//! Locks: a client's state is locked while an entry is numbered and appended, so the journal gets the entries
//! in order. A journal must therefore not call back from `append`. In the quarantine, the lock held by a
//! running quarantined message is taken before the state's lock. No other lock is taken under the dedup
//! table's lock.
//!
//! Shutdown: the clients release the bees and tasks that wait for entries, and the hive removes its crash marker.
//! Entries in flight may still be committed; if so, the next incarnation finds them in the log.

pub(crate) mod begun_sweeps;
pub(crate) mod confirmations;
mod deposing;
pub(crate) mod ended_lanes;
pub(crate) mod former_homes;
pub mod journal;
pub(crate) mod log_client;
pub(crate) mod logged_clock;
pub(crate) mod logs;
pub(crate) mod open_sweeps;
pub(crate) mod outline;
pub(crate) mod quarantine;
pub mod registry;
pub(crate) mod undecided;
pub(crate) mod without_bee;
