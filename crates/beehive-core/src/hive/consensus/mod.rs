//! One hive's side of consensus: the journal and the registry, which a cluster replicates, and the client
//! that appends to the log.
//!
//! Input: records of bees, of stateless handlers, of sweeps and of the hive itself; the journal's reports of
//! which entries are committed and which are dead. Output: numbered entries for the journal; the bees whose
//! entries are decided, which `run/log_events.rs` wakes.
//!
//! Locks: the client's state is locked while an entry is numbered and appended, so that the journal gets the
//! entries in order; a journal must therefore not call back from `append`. In the quarantine, the lock that a
//! quarantined message holds while it runs is taken before the lock of the state. The dedup table has a lock
//! under which no other is taken.
//!
//! Shutdown: the hive removes its crash marker. Entries in flight may still be committed; the next
//! incarnation then finds them in the log.

pub mod journal;
pub(crate) mod log_client;
pub(crate) mod logs;
pub(crate) mod open_sweeps;
pub(crate) mod quarantine;
pub mod registry;
pub(crate) mod without_bee;
