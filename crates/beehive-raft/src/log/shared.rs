//! The log while a hive runs: the buffer of waiting records, and the threads that write, witness and check point.

use crate::error::OpenError;
use crate::files::FileLock;
use crate::limits;
use crate::log::begin::Beginning;
use crate::log::compaction::compact;
use crate::log::format::push_record;
use crate::log::recovery::Found;
use crate::log::scan::Cut;
use crate::log::witness::{End, Witness};
use crate::log::witnessing::Witnessing;
use crate::log::writer::{WriteError, Writer};
use crate::place::Place;
use beehive_core::journal::{Entry, EntryNumber, Journal, JournalEvents};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// The sizes at which the log begins a new file. The defaults are those of [`limits`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) segment_bytes: u64,
    pub(crate) checkpoint_after_bytes: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Sizes { segment_bytes: limits::SEGMENT_BYTES, checkpoint_after_bytes: limits::CHECKPOINT_AFTER_BYTES }
    }
}

/// A checkpoint is small if its length is at most one in this many of the log's length at which the next one is made.
const SMALL_CHECKPOINT: u64 = 4;

/// What the log does at the moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogStatus {
    /// Number of entries that were acknowledged since the start.
    pub entries: u64,
    /// Number of syncs since the start, each for one group of entries.
    pub syncs: u64,
    /// Number of bytes appended since the start.
    pub bytes: u64,
    /// Number of finished segments that no checkpoint covers.
    pub finished_segments: u64,
    /// Number of checkpoints made since the start.
    pub checkpoints: u64,
    /// Whether a checkpoint is being made.
    pub is_making_checkpoint: bool,
    /// Why nothing can be written at the moment, although the log goes on as soon as it can: the disk is full.
    pub held_up: Option<String>,
    /// Why nothing will be written until the next start.
    pub failed: Option<String>,
    /// What went wrong without harm: the witness or a checkpoint could not be written.
    pub warning: Option<String>,
}

/// Where one log of the hive stands.
#[derive(Clone, Copy, Debug, Default)]
struct Tail {
    /// The last entry that was accepted. The next one must have been executed on it.
    accepted: EntryNumber,
    /// The last entry that was written.
    written: EntryNumber,
    /// Whether an entry was refused, and the hive must be told.
    refused: bool,
}

#[derive(Debug, Default)]
struct State {
    /// The waiting records.
    waiting: Vec<u8>,
    /// Length of the complete records in `waiting`. If an entry cannot be encoded, the buffer ends with a part of it.
    complete: usize,
    tails: Vec<Tail>,
    /// The finished segments that no checkpoint covers: the end of each.
    finished: Vec<End>,
    is_closing: bool,
    status: LogStatus,
}

/// The log of a hive, as its threads share it.
pub(crate) struct Shared {
    place: Place,
    folder_id: u64,
    sizes: Sizes,
    state: Mutex<State>,
    /// Wakes the writer: something waits, or the log closes.
    appended: Condvar,
    witnessing: Witnessing,
    /// Wakes the thread that makes checkpoints.
    segment_finished: Condvar,
    events: Vec<Mutex<Option<Arc<dyn JournalEvents>>>>,
    lock: Mutex<Option<Box<dyn FileLock>>>,
    #[cfg(feature = "testing")]
    pub(crate) mutation: crate::log::Mutation,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("folder", &self.place.folder).finish_non_exhaustive()
    }
}

/// What the log continues from.
pub(crate) struct Continued {
    pub(crate) sizes: Sizes,
    pub(crate) lock: Box<dyn FileLock>,
    /// The last entry of each log.
    pub(crate) last: Vec<EntryNumber>,
    /// The ends of the finished segments that no checkpoint covers.
    pub(crate) finished: Vec<End>,
    pub(crate) found: Found,
    pub(crate) beginning: Beginning,
}

/// The owner of the log. When it is dropped, the log closes: what waits is written, and the threads end.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The start, until it is carried out, and the length of the last checkpoint.
    beginning: Mutex<Option<(Beginning, u64)>>,
}

impl Drop for Log {
    fn drop(&mut self) {
        // One of the threads may be the one that drops the hive, so nobody waits for them here.
        self.shared.close()
    }
}

impl Log {
    /// Opens the log. Nothing can be appended before [`Log::begin`].
    pub(crate) fn open(from: Continued) -> Log {
        let Continued { sizes, lock, last, finished, found, beginning } = from;
        let tail = |accepted: EntryNumber| Tail { accepted, written: accepted, refused: false };
        let tails: Vec<Tail> = last.into_iter().map(tail).collect();
        let status = LogStatus { finished_segments: finished.len() as u64, ..LogStatus::default() };
        let shared = Shared {
            place: beginning.place.clone(),
            folder_id: beginning.identity.folder_id,
            sizes,
            events: tails.iter().map(|_| Mutex::default()).collect(),
            state: Mutex::new(State { tails, finished, status, ..State::default() }),
            appended: Condvar::new(),
            witnessing: Witnessing::default(),
            segment_finished: Condvar::new(),
            lock: Mutex::new(Some(lock)),
            #[cfg(feature = "testing")]
            mutation: crate::log::Mutation::default(),
        };
        if let Some(Cut { file, offset, bytes, what }) = &found.cut {
            tracing::warn!(file = %file.display(), offset, bytes, what,
                "the end of the log had not been acknowledged, and is cut off")
        }
        let beginning = Mutex::new(Some((beginning, found.checkpoint_bytes)));
        Log { shared: Arc::new(shared), threads: Mutex::default(), beginning }
    }

    /// Carries out the start, and starts the threads that write. Does nothing the second time. Fails if the log is closed:
    /// the folder is no longer locked, and another process may use it.
    pub(crate) fn begin(&self) -> Result<(), OpenError> {
        let mut beginning = self.beginning.lock();
        if self.shared.state.lock().is_closing {
            let closed = io::Error::other("it was closed before the hive started; open it again");
            return Err(OpenError::io(&self.shared.place.folder, "use the folder", closed));
        }
        let Some((start, checkpoint_bytes)) = beginning.take() else { return Ok(()) };
        let begun = start.carry_out().and_then(|(writer, witness)| {
            self.shared.witnessing.begin(writer.end());
            let failed = |error| OpenError::io(&start.place.folder, "start a thread for the log", error);
            self.start_threads(writer, witness, checkpoint_bytes).map_err(failed)
        });
        if let Err(why) = &begun {
            self.shared.state.lock().status.failed = Some(why.to_string())
        }
        begun
    }

    fn start_threads(&self, mut writer: Writer, witness: Witness, checkpoint_bytes: u64) -> io::Result<()> {
        let [of_writer, of_witness, shared] = [(); 3].map(|()| self.shared.clone());
        self.spawn("beehive-log", move || of_writer.write(&mut writer))?;
        self.spawn("beehive-witness", move || {
            let warn = |error| of_witness.warn(format!("cannot write the witness: {error}"));
            of_witness.witnessing.run(witness, warn)
        })?;
        self.spawn("beehive-checkpoint", move || shared.make_checkpoints(checkpoint_bytes))
    }

    #[expect(clippy::disallowed_methods, reason = "a disk blocks, and no thread of the hive may wait for it")]
    fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = std::thread::Builder::new().name(name.to_string()).spawn(work)?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// Writes what waits, ends the threads, and unlocks the folder. Everything appended later is refused.
    pub(crate) fn close(&self) {
        // a start that is being carried out writes to the folder, so it stays locked until then
        let beginning = self.beginning.lock();
        self.shared.close();
        drop(beginning);
        for thread in std::mem::take(&mut *self.threads.lock()) {
            // a thread that has panicked has nothing left to close
            let _ = thread.join();
        }
        drop(self.shared.lock.lock().take())
    }
}

impl Shared {
    pub(crate) fn status(&self) -> LogStatus {
        self.state.lock().status.clone()
    }

    fn close(&self) {
        self.state.lock().is_closing = true;
        self.appended.notify_all();
        self.segment_finished.notify_all();
    }

    fn append(&self, log: usize, entry: &Entry) {
        let mut state = self.state.lock();
        let State { waiting, complete, tails, status, is_closing, .. } = &mut *state;
        let Some(tail) = tails.get_mut(log) else { return };
        if entry.after != tail.accepted {
            // It was executed on a refused entry, and the hive is about to learn that.
            return;
        }

        if status.failed.is_some() || *is_closing || *complete >= limits::WAITING_BYTES_MAX {
            tail.refused = true
        } else {
            waiting.truncate(*complete);
            push_record(waiting, log as u16, entry.number.0, |buffer| entry.encode_into(buffer));
            *complete = waiting.len();
            tail.accepted = entry.number
        }
        drop(state);
        self.appended.notify_one();
    }

    /// Writes groups until the log closes. Runs on its own thread.
    fn write(&self, writer: &mut Writer) {
        /// Tells the witness that the writer has ended, even if the hive has panicked on its thread.
        struct Done<'a>(&'a Shared);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                self.0.witnessing.end()
            }
        }
        let _done = Done(self);
        let mut group = Vec::new();
        let mut written: Vec<Option<EntryNumber>> = Vec::new();
        loop {
            let mut state = self.state.lock();
            let is_idle = |state: &State| state.complete == 0 && !state.tails.iter().any(|tail| tail.refused);
            while is_idle(&state) && !state.is_closing {
                self.appended.wait(&mut state)
            }
            if state.complete == 0 && state.is_closing {
                return;
            }
            let complete = std::mem::take(&mut state.complete);
            state.waiting.truncate(complete);
            std::mem::swap(&mut state.waiting, &mut group);
            drop(state);

            if !group.is_empty() {
                written.clear();
                written.resize(self.events.len(), None);
                if self.write_group(writer, &mut group, &mut written) {
                    for (log, number) in (0..).zip(&written) {
                        if let Some((number, events)) = number.zip(self.events_of(log)) {
                            events.released(number)
                        }
                    }
                }
                group.clear();
                // one large group must not take up memory for ever
                group.shrink_to(1 << 20)
            }
            self.refuse()
        }
    }

    fn events_of(&self, log: usize) -> Option<Arc<dyn JournalEvents>> {
        self.events.get(log)?.lock().clone()
    }

    /// Writes a group, and waits as long as the disk is full. Returns whether the group is on disk. `written` gets the
    /// last entry of each log.
    fn write_group(
        &self,
        writer: &mut Writer,
        group: &mut [u8],
        written: &mut [Option<EntryNumber>],
    ) -> bool {
        #[cfg(feature = "testing")]
        if self.mutation.releases_early.load(std::sync::atomic::Ordering::Relaxed) {
            crate::log::format::seal(group, 0, 0, |log, number| {
                self.events_of(usize::from(log)).into_iter().for_each(|events| events.released(number.into()))
            });
        }

        loop {
            let mut entries = 0;
            let before = writer.end();
            let result = writer.write(group, |log, number| {
                entries += 1;
                if let Some(written) = written.get_mut(usize::from(log)) {
                    *written = Some(number.into())
                }
            });

            let mut state = self.state.lock();
            if writer.end().segment > before.segment {
                state.finished.push(before);
                state.status.finished_segments = state.finished.len() as u64;
                self.segment_finished.notify_one();
            }
            match result {
                Ok(()) => {
                    if state.status.held_up.take().is_some() {
                        // nobody may wait for the lock while the message is written
                        MutexGuard::unlocked(
                            &mut state,
                            || tracing::info!(folder = %self.place.folder.display(), "the log can be written again"),
                        )
                    }
                    for (tail, written) in state.tails.iter_mut().zip(&*written) {
                        tail.written = written.unwrap_or(tail.written)
                    }
                    state.status.entries += entries;
                    state.status.syncs += 1;
                    state.status.bytes += group.len() as u64;
                    drop(state);
                    self.witnessing.acknowledged(writer.end());
                    return true;
                }
                Err(WriteError::Full(error)) => {
                    let why = error.to_string();
                    if state.status.held_up.replace(why.clone()).is_none() {
                        MutexGuard::unlocked(&mut state, || {
                            tracing::error!(folder = %self.place.folder.display(), why, "the log cannot be written: what \
                                changes state waits until there is space")
                        })
                    }
                    if self.pause(&mut state, limits::FULL_DISK_PAUSE) {
                        // What waits was never acknowledged. It is lost, as in a crash.
                        self.fail(
                            &mut state,
                            "the disk was full when the log was closed".to_string(),
                            written,
                        );
                        return false;
                    }
                }
                Err(WriteError::Failed(doing, error)) => {
                    let why = format!("cannot {doing}: {error}");
                    MutexGuard::unlocked(&mut state, || {
                        tracing::error!(folder = %self.place.folder.display(), why, "the log has failed: what changes \
                            state is refused until the program starts again; check the disk first")
                    });
                    self.fail(&mut state, why, written);
                    return false;
                }
            }
        }
    }

    /// Writes nothing from now on. The group whose entries end with `group` stays undecided; what waits behind it is
    /// refused.
    fn fail(&self, state: &mut State, why: String, group: &[Option<EntryNumber>]) {
        state.status.failed = Some(why);
        state.status.held_up = None;
        (state.waiting, state.complete) = (Vec::new(), 0);
        for (tail, group) in state.tails.iter_mut().zip(group) {
            tail.accepted = group.unwrap_or(tail.written);
            tail.refused = true
        }
    }

    /// Waits, or until the log closes. Returns whether it closes.
    fn pause(&self, state: &mut MutexGuard<State>, time: Duration) -> bool {
        // Appends wake the writer, too. They must not shorten the pause, because each attempt costs the hive work.
        #[expect(clippy::disallowed_methods, reason = "a pause of the disk, not of the model")]
        let until = std::time::Instant::now() + time;
        while !state.is_closing && !self.appended.wait_until(state, until).timed_out() {}
        state.is_closing
    }

    /// Tells the hive which entries were refused.
    fn refuse(&self) {
        let mut state = self.state.lock();
        if state.tails.iter().any(|tail| tail.refused) && state.status.failed.is_some() {
            self.pause(&mut state, limits::FAILED_LOG_PAUSE);
        }
        let refused = state.tails.iter_mut().enumerate();
        let refused: Vec<(usize, EntryNumber)> = refused
            .filter_map(|(log, tail)| std::mem::take(&mut tail.refused).then_some((log, tail.accepted)))
            .collect();
        let is_closing = state.is_closing;
        drop(state);
        // a hive that is told would append again at once
        for (log, last) in refused.into_iter().filter(|_| !is_closing) {
            if let Some(events) = self.events_of(log) {
                events.aborted(last)
            }
        }
    }

    fn warn(&self, warning: String) {
        let known = self.state.lock().status.warning.replace(warning.clone());
        if known.as_ref() != Some(&warning) {
            tracing::warn!(folder = %self.place.folder.display(), warning, "the log goes on without it")
        }
    }

    /// Makes a checkpoint whenever enough segments are finished. Runs on its own thread.
    fn make_checkpoints(&self, mut checkpoint_bytes: u64) {
        let mut tried = 0;
        loop {
            let mut state = self.state.lock();
            let is_due = |state: &State| {
                let bytes: u64 = state.finished.iter().map(|end| end.length).sum();
                let enough = self.sizes.checkpoint_after_bytes.max(checkpoint_bytes);
                let newest = state.finished.last().map_or(0, |end| end.segment);
                newest > tried && (bytes >= enough || state.finished.len() >= limits::SEGMENTS_MAX)
            };
            while !is_due(&state) && !state.is_closing {
                self.segment_finished.wait(&mut state);
            }
            if state.is_closing {
                return;
            }
            let Some(newest) = state.finished.last().copied() else { continue };
            let logs = state.tails.len() as u16;
            state.status.is_making_checkpoint = true;
            drop(state);

            tried = newest.segment;
            let small_bytes = self.sizes.checkpoint_after_bytes / SMALL_CHECKPOINT;
            let made = compact(&self.place, (self.folder_id, logs), newest.segment, small_bytes);
            self.state.lock().status.is_making_checkpoint = false;
            match made {
                Ok(bytes) => {
                    checkpoint_bytes = bytes;
                    let mut state = self.state.lock();
                    state.finished.retain(|end| end.segment > newest.segment);
                    state.status.finished_segments = state.finished.len() as u64;
                    state.status.checkpoints += 1
                }
                // the log is complete without it, and the next finished segment is the next attempt
                Err(why) => self.warn(format!("cannot make a checkpoint: {why}")),
            }
        }
    }
}

/// One of a hive's logs, as the hive sees it.
pub(crate) struct Colony {
    pub(crate) log: Arc<Log>,
    pub(crate) number: usize,
}

impl Journal for Colony {
    fn append(&self, entry: Arc<Entry>) {
        self.log.shared.append(self.number, &entry)
    }

    fn begin(&self) -> io::Result<()> {
        self.log.begin().map_err(io::Error::other)
    }

    fn attach(&self, events: Arc<dyn JournalEvents>) {
        if let Some(slot) = self.log.shared.events.get(self.number) {
            *slot.lock() = Some(events)
        }
    }
}
