//! Scheduling: the watchdog for handlers that hold their thread, and periodic maintenance.
//!
//! Input: the slots of all threads, which the watchdog reads every few milliseconds. Output: bees waiting
//! behind a held thread, which the watchdog moves to their app's overflow pool; log lines and status entries
//! for messages that take too long; and attempts to retire idle bees and lanes.
//!
//! Locks: `hive.stuck` guards the list of reported messages. The queues of threads and pools have their own
//! locks (`dispatch/workers.rs`). No thread holds two of these locks at once.
//!
//! Shutdown: the watchdog's thread ends when the hive is over or dropped. The maintenance task ends when
//! the hive begins to stop.

pub(crate) mod maintenance;
pub(crate) mod stuck;
pub(crate) mod watchdog;
