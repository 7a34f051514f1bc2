//! The interface to a colony: records as data, the journal to which they are appended, and the state obtained
//! by applying a log.
//!
//! A journaled bee continues to execute messages while its records are in flight. The effects of a run
//! (messages, answers, timers) are held until the journal reports that its record is committed. If an append
//! is refused, the bee discards everything it has executed since, and executes those messages again on the
//! committed state.

pub use beehive_protocol::{
    Acked, AppId, AppShapes, BeeImage, Consumed, CrashMarker, DedupTable, Emit, Emits, Entry, EntryNumber,
    Epoch, HandlerId, Input, InputRuns, LaneId, LogState, LoggedSettings, MessageId, MessageTypeId, Part,
    Payload, Record, SWEEP_PARTS, Seq, Shapes, StagePart, Staged, Suspect, Sweep, Visited, Waiting, Work,
    sweep_order, unfinished_moves,
};

use std::sync::Arc;

/// The log to which a hive appends its records.
///
/// A log also protects its hive from poison messages, because it contains a [crash marker](CrashMarker): if two
/// processes ended while a message was running alone, the next one does not run it but makes it a dead letter. After a crash, a
/// thread that runs bees waits until the marker that names its message is committed. A journal must
/// therefore not need these threads to commit.
pub trait Journal: Send + Sync + 'static {
    /// Appends an entry. The hive calls this in order of entry number and holds a lock during the call, so
    /// the journal must not call its [`JournalEvents`] from here.
    ///
    /// The hive keeps the entry until it is decided. If the journal drops its reference as soon as it has
    /// encoded the entry, the hive need not clone the changes.
    fn append(&self, entry: Arc<Entry>);
    /// Sets the object to which the journal reports.
    fn attach(&self, events: Arc<dyn JournalEvents>);
}

/// A journal's reports to its hive. While the journal calls these functions, it must not hold a lock that its
/// own [`Journal::append`] takes. They may be called from any thread. A task of the hive's runtime saves thread
/// switches: if a report concerns only a few bees, they let go of their answers and messages on the same thread, at
/// the task's next `.await`.
pub trait JournalEvents: Send + Sync {
    /// Reports that all entries up to and including `upto` are committed.
    fn released(&self, upto: EntryNumber);
    /// Reports that no entry after `last` has taken effect, and that no such entry appended before this call
    /// ever will. The hive may append new entries before this returns.
    fn aborted(&self, last: EntryNumber);
}
