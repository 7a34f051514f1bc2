//! The seam to a colony: commit records as data, a journal that takes them, and the state that a log folds to.
//!
//! A bee of a journaled app goes on executing while its records are on their way; what a record lets out (messages,
//! answers, timers) is held until the journal says that it is committed. When an append is refused, everything executed
//! since then is forgotten and run again from the committed state.

pub use beehive_protocol::{
    AppId, AppShapes, BeeImage, CrashMarker, DedupTable, Emit, Entry, EntryNumber, HandlerId, Input, LaneId,
    LogState, LoggedSettings, MessageId, Part, Record, SWEEP_PARTS, Seq, Shapes, Suspect, Sweep, Visited,
    Waiting, Work, sweep_order,
};

use std::sync::Arc;

/// Where a colony's records go.
///
/// One that keeps marks, too, makes the hive safe from messages that end the process: such a message is set aside, as a
/// dead letter, by the third life that has it.
pub trait Journal: Send + Sync + 'static {
    /// Takes an entry. In the order of their numbers; must not call back before it returns.
    fn append(&self, entry: Entry);
    /// Tells whom to call back.
    fn attach(&self, events: Arc<dyn JournalEvents>);
    /// Keeps a mark instead of the one before; none: the hive has ended well.
    ///
    /// It must be there for the next life if the process ends the moment that this returns. It need not outlast the machine:
    /// a `write` will do, without `fsync`. Called when a hive begins and ends, and, in a life after one that did not end
    /// well, twice for each message that was unfinished.
    fn mark(&self, _mark: Option<&CrashMarker>) {}
    /// The mark that the life before kept last. None: it ended well, there was none, or no marks are kept.
    fn marked(&self) -> Option<CrashMarker> {
        None
    }
}

/// What a journal tells its hive. It must not hold meanwhile what its own `append` needs.
pub trait JournalEvents: Send + Sync {
    /// All entries up to and including `upto` are committed.
    fn released(&self, upto: EntryNumber);
    /// No entry after `last` took effect, and none appended so far ever will. Others are appended before it returns.
    fn aborted(&self, last: EntryNumber);
}
