//! The logs of all groups of a hive on disk, in one log, so that a hive that has ended returns with what it has promised.
//!
//! ```text
//!  group ── vote, entries, .. ──► in memory, and waiting ──► writer ──► segment, sync ──► callback, or the caller goes on
//!                                      (one buffer)         (thread)        │
//!                                                                           ├─► witness (thread, at most 0.1 s behind)
//!  snapshot ──► keeper ──► file, sync ──► noted in the log                  └─► keeper: checkpoint when segments are full
//!              (thread)
//! ```
//!
//! `group_log` has a log as data, `record`, `whole` and `identity` the bytes, `open` the start, `writer` the buffer and the thread
//! that writes it, and `keeper` the thread for snapshots and checkpoints. Segments, their check and the witness are those of
//! `crate::log`.
//!
//! # What is promised
//!
//! - The log of a group changes in memory and in the buffer under one lock. So the order on disk is that of the calls, and a
//!   power loss leaves what some moment had.
//! - A vote is on disk before `save_vote` returns, and entries are before their callback is called. All that waits shares one
//!   sync. A truncation, a purge and what is committed wait for nothing: if they are lost, they had not happened, and whatever is
//!   acknowledged later is behind them.
//! - A snapshot has a file of its own, so that a large one does not hold up the commits of all groups. It is synced and noted
//!   before the entries that it covers are removed, and before the leader learns that it has arrived.
//! - A sync that failed is not repeated. The log has failed: it writes nothing more, and every call that waits or comes later
//!   gets an error, which ends its group.
//! - While the disk is full, all calls wait, as if the disk were slow.

mod group_log;
mod identity;
mod keeper;
mod open;
mod record;
mod snapshot;
#[cfg(test)]
mod tests;
mod whole;
mod writer;

pub(crate) use group_log::{GroupLog, Note};
pub(crate) use open::{Opened, kept_seed, open};
pub(crate) use record::{push_entry, push_note};
pub(crate) use writer::{Disk, Done, OpenDisk};
