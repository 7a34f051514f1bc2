//! Scheduling: the watchdog for handlers that hold their thread, and the periodic maintenance.
//!
//! Input: the current run of each worker slot, which the watchdog reads every few milliseconds. Output: bees
//! that wait behind a held thread, which move to the overflow pool of their app; log lines and status entries
//! for messages that take too long; attempts to retire idle bees and lanes.
//!
//! Locks: `hive.stuck` holds the reported messages. The queues of workers and pools have their own locks
//! (`dispatch/workers.rs`), no two of which are held at once.
//!
//! Shutdown: the watchdog's thread ends when the hive is over or dropped, the maintenance task when the
//! hive stops.

pub(crate) mod maintenance;
pub(crate) mod stuck;
pub(crate) mod watchdog;
