//! The interface to a colony: records as data, the journal to which they are appended, and the state obtained
//! by applying a log.
//!
//! A journaled bee continues to execute messages while its records are in flight. The effects of a run
//! (messages, answers, timers) are held until the journal reports that its record is committed. If an append
//! is refused, the bee discards everything it has executed since, and executes those messages again on the
//! committed state.
//!
//! # Writing a journal
//!
//! [`Journal`] and [`JournalEvents`] say what a journal must do and what the hive does in return. In short: `append` hands
//! the entry to a thread of the journal and returns. That thread writes all entries that it finds, in order, makes them
//! durable, and calls [`released`](JournalEvents::released) once for all of them. When the program starts again, it reads
//! the entries back, and starts the hive with the state that results from them.
//!
//! ```
//! use beehive_core::journal::{Entry, Journal, JournalEvents, LogState};
//! use std::fs::File;
//! use std::io::Write;
//! use std::path::Path;
//! use std::sync::{Arc, OnceLock, mpsc};
//!
//! struct FileJournal {
//!     entries: mpsc::Sender<Arc<Entry>>,
//!     events: Arc<OnceLock<Arc<dyn JournalEvents>>>,
//! }
//!
//! impl Journal for FileJournal {
//!     fn append(&self, entry: Arc<Entry>) {
//!         // fails only if the writing thread is gone; the entry then stays undecided
//!         let _ = self.entries.send(entry);
//!     }
//!     fn attach(&self, events: Arc<dyn JournalEvents>) {
//!         let _ = self.events.set(events);
//!     }
//! }
//!
//! /// Opens the log in a file. Returns the journal and the state from which the hive continues.
//! fn open(path: &Path) -> std::io::Result<(Arc<FileJournal>, LogState)> {
//!     let mut file = File::options().read(true).append(true).create(true).open(path)?;
//!     let log = std::fs::read(path)?;
//!     let (mut entries, mut rest) = (Vec::new(), &log[..]);
//!     while let Some((length, more)) = rest.split_first_chunk()
//!         && let Some((entry, more)) = more.split_at_checked(u32::from_le_bytes(*length) as usize)
//!     {
//!         entries.push(entry);
//!         rest = more
//!     }
//!     // If the process ended while it wrote, the last entry is incomplete. It was never released. It must go, so that
//!     // the next entry does not come after half of another one. (With a checksum in each entry, a journal also notices
//!     // an entry whose length was written and whose bytes were not.)
//!     file.set_len((log.len() - rest.len()) as u64)?;
//!     let state = LogState::replay(entries).map_err(std::io::Error::other)?;
//!
//!     let (sender, receiver) = mpsc::channel::<Arc<Entry>>();
//!     let journal = FileJournal { entries: sender, events: Arc::default() };
//!     let events = journal.events.clone();
//!     // the thread ends when the hive has dropped the journal
//!     std::thread::spawn(move || {
//!         while let Ok(first) = receiver.recv() {
//!             let (mut bytes, mut last) = (Vec::new(), first.number);
//!             for entry in std::iter::once(first).chain(receiver.try_iter()) {
//!                 let encoded = entry.encode();
//!                 bytes.extend((encoded.len() as u32).to_le_bytes());
//!                 bytes.extend(encoded);
//!                 last = entry.number
//!             }
//!             if file.write_all(&bytes).and_then(|()| file.sync_data()).is_err() {
//!                 // nobody knows what is in the file now; the next process will see
//!                 std::process::abort()
//!             }
//!             if let Some(events) = events.get() {
//!                 events.released(last)
//!             }
//!         }
//!     });
//!     Ok((Arc::new(journal), state))
//! }
//! # let path = std::env::temp_dir().join(format!("beehive-journal-{}", std::process::id()));
//! # let _ = std::fs::remove_file(&path);
//! # for life in 0..3 {
//! #     use beehive_core::{Hive, journal::Record};
//! #     let (journal, state) = open(&path)?;
//! #     assert_eq!(state.last.0 > 0, life > 0);
//! #     assert_eq!(state.marker, None, "the last hive has stopped cleanly");
//! #     let hive = Hive::builder().journal(journal, state).start_on_own_runtime(1).unwrap();
//! #     hive.stop_blocking(std::time::Duration::from_secs(5));
//! #     drop(hive);
//! #     // as if the process had ended while it wrote
//! #     File::options().append(true).open(&path)?.write_all(&[9, 0, 0, 0, 1])?;
//! # }
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A log grows forever unless the journal replaces its beginning by a snapshot. To do so, it keeps a [`LogState`] of its
//! own, to which it [applies](LogState::apply) each entry that it releases. It writes the [chunks](LogState::chunks) of that
//! state, makes them durable, and only then removes the entries up to [`LogState::last`]. At the next start, a
//! [`SnapshotLoader`] reads the chunks, and the remaining entries are applied to the result.

pub use beehive_protocol::{
    Acked, AppId, AppShapes, BeeImage, Consumed, CrashMarker, DedupTable, Emit, Emits, Entry, EntryNumber,
    Epoch, HandlerId, Input, InputRuns, LaneId, LogPlace, LogState, LoggedSettings, MessageId, MessageTypeId,
    Part, Payload, Record, SWEEP_PARTS, Seq, Shapes, SnapshotChunks, SnapshotLoader, StagePart, Staged,
    Suspect, Sweep, Untold, Visited, Waiting, Work, sweep_order, unfinished_moves,
};

use std::sync::Arc;

/// The log to which a hive appends its records.
///
/// A journal belongs to one hive. When the hive starts, or begins to lead the log's colony, it calls
/// [`attach`](Journal::attach) once and then, if the log fits its apps, [`begin`](Journal::begin), before the first
/// [`append`](Journal::append). It drops the journal after it has stopped and all handles to it are dropped.
///
/// # What a journal guarantees
///
/// - **Every entry is decided,** unless the hive [loses the log](JournalEvents::deposed). The journal reports each entry as committed ([`JournalEvents::released`]) or as dead
///   ([`JournalEvents::aborted`]). Until then, the answers and messages of its bees are held. There is no deadline: while
///   entries are undecided, the hive goes on, until its senders' windows and credits are used up. After a failed sync, nobody
///   knows whether the entries are in the log; they stay undecided until the next process reads it.
/// - **What is released is never lost.** From then on, the entry is in the log that the next process reads, whatever happens
///   to this process (and to the machine, if the journal promises that).
/// - **The log is in order and has no gap.** The next process reads the entries in the order in which they were appended. If
///   the log contains an entry, it contains all earlier ones, except for dead ones. An entry that was appended and not
///   released may be in the log or not, so a log may end anywhere after the last released entry.
/// - **The next process starts from the whole log.** It passes the journal to the hive together with the state that results
///   from all entries of the log ([`LogState::replay`]), also those that were never released. The hive continues after
///   [`LogState::last`], and the journal counts all earlier entries as released.
/// - **Dead entries stay dead.** An entry takes effect only if [`Entry::after`] is the number of the last entry that took
///   effect. A journal that never calls [`JournalEvents::aborted`] need not look at this. It may also write dead entries:
///   [`LogState::apply`] ignores them. A journal that drops them compares `after` with the number of the newest entry that
///   it has accepted (or with `last`, after it has called `aborted(last)`), and drops the entry if they differ.
/// - **Committing needs no thread of the hive.** After a crash, a log protects its hive from poison messages, because it
///   contains a [crash marker](CrashMarker): if two processes ended while a message was running alone, the next one does not
///   run it but makes it a dead letter. A thread that runs bees waits until the marker that names its message is committed.
///   A journal that needed these threads to commit would wait for itself.
///
/// # What a hive guarantees
///
/// Entry numbers ascend. The first is above [`LogState::last`], and there may be gaps. No number is used twice, not even if
/// its entry is dead. No encoded entry is longer than 64 MiB.
pub trait Journal: Send + Sync + 'static {
    /// Appends an entry. The hive calls this in order of entry number, from any of its threads but never from two at the
    /// same time, and holds a lock during the call. Therefore the function must not call its [`JournalEvents`], and must not
    /// wait for anything that does. Meanwhile other threads run bees for the next entry, and wait only when this entry is
    /// complete, too.
    ///
    /// The hive keeps the entry until it is decided. If the journal drops its reference as soon as it has
    /// encoded the entry, the hive need not clone the changes.
    fn append(&self, entry: Arc<Entry>);
    /// Prepares the journal for the first entry. The hive calls this once, when it has found that the log fits its apps. If
    /// it does not, the hive does not start, and must have changed nothing: a journal on disk therefore writes nothing
    /// before this call. The default does nothing.
    ///
    /// # Errors
    ///
    /// After an error, the hive does not start.
    fn begin(&self) -> std::io::Result<()> {
        Ok(())
    }
    /// Returns whether another hive may lead the log although nobody has told this one yet. If so, the hive asks for a
    /// [confirmation](Journal::confirm) before it answers a request that no entry records. The default is `false`.
    fn may_lose_leadership(&self) -> bool {
        false
    }
    /// Confirms that the hive leads the log: reports `round` with [`JournalEvents::confirmed`] when it is certain that no other
    /// hive had been elected by the time of this call. A consensus group asks a majority of its members for that. A lease is not
    /// enough if the members may elect another leader before it has run out.
    ///
    /// As long as this is not certain, the journal reports nothing, and tries again. Rounds ascend, and the next one comes after
    /// the report of the one before. The hive calls this from any of its threads, also from within a report; like
    /// [`append`](Journal::append), it must not call its [`JournalEvents`]. It is only called if the journal
    /// [may lose the leadership](Journal::may_lose_leadership), in a cluster. The default does nothing.
    fn confirm(&self, round: u64) {
        let _ = round;
    }
    /// Sets the object to which the journal reports. It does not keep the hive in memory: after the hive has been dropped,
    /// reports have no effect.
    fn attach(&self, events: Arc<dyn JournalEvents>);
}

/// A journal's reports to its hive.
///
/// A journal may call these functions from any thread, inside or outside of a runtime, but not from within
/// [`Journal::append`]. They only wake bees, and never run a handler. During a call, the hive may append entries, on
/// this thread and on others. The journal must therefore not hold a lock that its own [`Journal::append`] takes.
///
/// Reports may come late, and one report may concern many entries. They must be made in the order of the decisions: if two
/// threads of the journal report, neither may overtake the other.
///
/// A report from a task of the hive's runtime saves thread switches: if it concerns only a few bees, they let go of their
/// answers and messages on the same thread, at the task's next `.await`.
pub trait JournalEvents: Send + Sync {
    /// Reports that all entries up to and including `upto` are committed, except for dead ones. `upto` has been
    /// appended. A number that is not higher than an earlier one has no effect.
    fn released(&self, upto: EntryNumber);
    /// Reports that no entry after `last` has taken effect, and that no such entry appended before this call
    /// ever will. `last` is at least the highest number released so far. The hive may append new entries before this
    /// returns: it appends its own records again, and their [`Entry::after`] is `last`.
    fn aborted(&self, last: EntryNumber);
    /// Reports that the hive no longer leads the log: its term is over, or it has given up the leadership. A journal over a
    /// consensus group calls this when the group has stepped down, or has refused an entry because another member leads. It
    /// need not decide the entries that are in flight: nobody knows which of them are committed, and the next leader finds out.
    /// After this call, the hive appends nothing more, and drops the journal.
    ///
    /// The hive lives on: it discards what it has executed and what was not reported as committed, and leaves to the next
    /// leader what else it has under way for the log. That may be the same hive, in a later term, with another journal
    /// ([`Hive::lead`](crate::Hive::lead)).
    ///
    /// Until this call, the hive may go on to execute messages and to append entries, which must have no effect: those of a
    /// later term come first. It also stops by itself when it learns from the registry that another hive leads. So a report
    /// that comes late, or never, does no harm: what the hive reads meanwhile is not answered, because nobody
    /// [confirms](JournalEvents::confirmed) that it leads.
    ///
    /// Only a hive in a cluster can be deposed. A hive that is alone ignores the call, and its log commits nothing more.
    fn deposed(&self);
    /// Reports that no other hive had been elected to lead the log when the hive asked for this
    /// [round](Journal::confirm). From now on, the hive answers what it has read before it asked.
    fn confirmed(&self, round: u64);
}
