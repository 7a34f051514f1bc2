//! One log on disk for all logs (colonies) of a hive.
//!
//! ```text
//!  hive ── append(entry) ──► encoded, waiting ──► writer ──► segment, sync ──► released(number) ── ► hive
//!          (never waits          (one buffer)     (thread)        │
//!           for a disk)                                           ├─► witness  (thread, at most 0.1 s behind)
//!                                                                 └─► checkpoint when a segment is full (thread)
//! ```
//!
//! `format` has the bytes, `writer` the end of the log, `shared` and `witnessing` the threads, `reader`, `scan`, `recovery` and `begin`
//! the start, and
//! `checkpoint` the state that replaces the segments before it, and `compaction` how one is made.
//!
//! # Why plain files
//!
//! Five embedded stores were measured beside a plain segment file, with 100 bytes an entry and one sync a batch, in entries
//! a second:
//!
//! | batch | segment file | raft-engine 0.4 | fjall 3 | redb 4 | sled 0.34 |
//! |---|---|---|---|---|---|
//! | 1 | 4 k | 7 k | 6 k | 4 k | 4 k |
//! | 100 | 333 k | 81 k to 0.3 M | 215 k | 38 k | 68 k |
//! | 1 000 | 1.6 M | 0.9 M | 386 k | 68 k | 77 k |
//!
//! raft-engine is faster at batches of one, which a hive has only while hardly anything happens. None of them knows what
//! was acknowledged: with a flipped byte in the middle, raft-engine opens without an error, fjall loses what follows, and all of them drop a damaged last record, acknowledged or not. This
//! module would have to check every entry and keep a witness on top of any of them, so it has nothing to gain from one: what
//! remains is to append and to sync, and to remove old files.
//!
//! # What is promised
//!
//! - An entry is released only when its record, and all records before it, have been synced.
//! - A sync that failed is not repeated. The log has *failed*: it writes nothing more, refuses every later entry, and the
//!   entries whose sync failed stay undecided until the next start reads them, or does not.
//! - While the disk is full, entries wait, as if the disk were slow. What is beyond
//!   [`WAITING_BYTES_MAX`](crate::limits::WAITING_BYTES_MAX) is refused. When there is space again, the log goes on.
//! - Opening a folder changes nothing. When the hive has found that the log fits its apps, the start is carried out
//!   (`begin`): what the last process had not synced for sure is copied and synced, or cut off; a new segment follows, with
//!   the number of the start in its header; and a new term begins in each log. Its first entry is synced before the hive
//!   executes anything, and no entry of an earlier term takes effect behind it.
//! - At the start, everything is checked; see `recovery`. The witness is behind by up to 0.1 s: if a power loss takes records
//!   with it that were acknowledged in this time although the disk had confirmed the sync, nothing shows it.

pub(crate) mod begin;
pub(crate) mod checkpoint;
mod compaction;
pub(crate) mod format;
pub(crate) mod reader;
pub(crate) mod recovery;
pub(crate) mod scan;
pub(crate) mod shared;
pub(crate) mod witness;
pub(crate) mod witnessing;
pub(crate) mod writer;

#[cfg(feature = "testing")]
use std::sync::atomic::{AtomicBool, Ordering};

/// A rule that a test breaks, to see that a checker notices.
#[cfg(feature = "testing")]
#[derive(Debug, Default)]
pub struct Mutation {
    /// Entries are released before they are written.
    pub(crate) releases_early: AtomicBool,
}

#[cfg(feature = "testing")]
impl Mutation {
    /// Makes the log release entries before they are written and synced.
    pub fn release_early(&self) {
        self.releases_early.store(true, Ordering::Relaxed)
    }
}
