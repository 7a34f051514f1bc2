//! The folder while a hive runs: the records that wait, and the thread that writes them.

use super::group_log::{GroupLog, Note, Noted};
use super::keeper::{Job, Keeper};
use super::record::{self, Logs};
use crate::cluster::promises::Position;
use crate::cluster::types::{GroupId, LogId, Snapshot, Types};
use crate::files::FileLock;
use crate::limits;
use crate::log::format::{SEGMENT_HEADER, length_within};
use crate::log::shared::Sizes;
use crate::log::witness::{End, Witness};
use crate::log::witnessing::Witnessing;
use crate::log::writer::{WriteError, Writer};
use crate::place::Place;
use openraft::storage::IOFlushed;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, oneshot, watch};

/// Who learns that a record is on disk.
pub(crate) enum Done {
    /// openraft, about entries.
    Flushed(IOFlushed<Types>),
    /// The caller, who waits.
    Told(oneshot::Sender<io::Result<()>>),
}

impl Done {
    pub(crate) fn complete(self, result: Result<(), &str>) {
        let result = result.map_err(|why| io::Error::other(why.to_string()));
        match self {
            Done::Flushed(callback) => callback.io_completed(result),
            // whoever waited may have ended
            Done::Told(sender) => drop(sender.send(result)),
        }
    }
}

#[derive(Default)]
struct State {
    /// The waiting records.
    waiting: Vec<u8>,
    /// Who waits for them.
    done: Vec<Done>,
    /// What was committed since the last write. It is written behind the next records, and nobody waits for it.
    committed: BTreeMap<GroupId, LogId>,
    /// Why nothing more is written.
    over: Option<String>,
    is_closing: bool,
}

/// The folder of a hive, as its groups and its threads share it.
pub(crate) struct Disk {
    place: Place,
    folder_id: u64,
    sizes: Sizes,
    /// Locked before any of the logs, and these before `state`.
    logs: Mutex<BTreeMap<GroupId, Arc<Mutex<GroupLog>>>>,
    /// The snapshots that were read, until their groups start.
    snapshots: Mutex<BTreeMap<GroupId, Snapshot>>,
    next_snapshot: AtomicU64,
    state: Mutex<State>,
    /// Wakes the writer.
    appended: Condvar,
    /// Wakes those who wait for room in the buffer.
    taken: Notify,
    witnessing: Witnessing,
    keeper: Keeper,
    failed: watch::Sender<bool>,
    /// Closed when all threads have ended and the folder is unlocked.
    ended: watch::Receiver<()>,
    syncs: AtomicU64,
}

/// What the threads hold: the last one unlocks the folder. Dropped in this order.
struct Held {
    _lock: Box<dyn FileLock>,
    _ended: watch::Sender<()>,
}

/// What a folder continues from.
pub(crate) struct Continued {
    pub(crate) place: Place,
    pub(crate) folder_id: u64,
    pub(crate) sizes: Sizes,
    pub(crate) logs: Logs,
    pub(crate) snapshots: BTreeMap<GroupId, Snapshot>,
    pub(crate) next_snapshot: u64,
    /// The ends of the segments that no checkpoint covers.
    pub(crate) finished: Vec<End>,
    /// The end of the last one.
    pub(crate) end: End,
}

/// The owner of a folder. Dropping it closes the folder: what waits is written, and the threads end.
pub(crate) struct OpenDisk(pub(crate) Arc<Disk>);

impl Drop for OpenDisk {
    fn drop(&mut self) {
        self.0.close_soon()
    }
}

impl OpenDisk {
    /// Starts the threads.
    pub(crate) fn start(
        from: Continued,
        lock: Box<dyn FileLock>,
        writer: Writer,
        witness: Witness,
    ) -> io::Result<OpenDisk> {
        let Continued { place, folder_id, sizes, logs, snapshots, next_snapshot, finished, end } = from;
        let (sender, ended) = watch::channel(());
        let held = Arc::new(Held { _lock: lock, _ended: sender });
        let shared = logs.iter().map(|(group, log)| (*group, Arc::new(Mutex::new(log.clone())))).collect();
        let disk = OpenDisk(Arc::new(Disk {
            place,
            folder_id,
            sizes,
            logs: Mutex::new(shared),
            snapshots: Mutex::new(snapshots),
            next_snapshot: AtomicU64::new(next_snapshot),
            state: Mutex::default(),
            appended: Condvar::new(),
            taken: Notify::new(),
            witnessing: Witnessing::default(),
            keeper: Keeper::default(),
            failed: watch::Sender::new(false),
            ended,
            syncs: AtomicU64::new(0),
        }));
        disk.0.witnessing.begin(writer.end());

        let mut segments = Segments { finished, full: None };
        if segments.are_many(sizes, 0) {
            // each start begins a segment, however little is written
            disk.0.keeper.push(Job::Checkpoint { logs, end });
            segments.finished.clear()
        }
        let of = || (disk.0.clone(), held.clone());
        let (witnessed, held_by_witness) = of();
        spawn("beehive-witness", move || {
            let warn = |error| {
                let folder = witnessed.place.folder.display();
                tracing::warn!(%folder, %error, "cannot write the witness; the log goes on without it")
            };
            witnessed.witnessing.run(witness, warn);
            drop(held_by_witness)
        })?;
        let (kept, held_by_keeper) = of();
        spawn("beehive-keeper", move || {
            kept.keeper.run(&kept.place, kept.folder_id);
            drop(held_by_keeper)
        })?;
        let (written, held_by_writer) = of();
        spawn("beehive-log", move || {
            written.write(writer, segments);
            written.witnessing.end();
            drop(held_by_writer)
        })?;
        Ok(disk)
    }
}

#[expect(clippy::disallowed_methods, reason = "a disk blocks, and no thread of the hive may wait for it")]
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_string()).spawn(work).map(drop)
}

/// The segments behind the last checkpoint, as the writer knows them.
struct Segments {
    /// The ends of those that are finished.
    finished: Vec<End>,
    /// The logs at the end of the present segment, which is full.
    full: Option<(Logs, End)>,
}

impl Segments {
    /// Checks whether a checkpoint is due when `more` bytes are finished, too.
    fn are_many(&self, sizes: Sizes, more: u64) -> bool {
        let bytes: u64 = self.finished.iter().map(|end| end.length).sum();
        bytes + more >= sizes.checkpoint_after_bytes || self.finished.len() >= limits::SEGMENTS_MAX
    }
}

impl Disk {
    /// Returns the log of a group.
    pub(crate) fn log(&self, group: GroupId) -> Arc<Mutex<GroupLog>> {
        self.logs.lock().entry(group).or_default().clone()
    }

    /// Returns where the log of each group ends.
    pub(crate) fn positions(&self) -> BTreeMap<GroupId, Position> {
        self.logs.lock().iter().map(|(group, log)| (*group, log.lock().position())).collect()
    }

    /// Returns the snapshot that a group had at the start, until it is taken.
    pub(crate) fn snapshot(&self, group: GroupId) -> Option<Snapshot> {
        self.snapshots.lock().get(&group).cloned()
    }

    /// Returns the snapshot that a group had at the start, once.
    pub(crate) fn take_snapshot(&self, group: GroupId) -> Option<Snapshot> {
        self.snapshots.lock().remove(&group)
    }

    /// Completes when the log has failed.
    pub(crate) async fn failure(&self) {
        // the sender lives as long as this
        let _ = self.failed.subscribe().wait_for(|failed| *failed).await;
    }

    /// Number of syncs since the start.
    #[cfg(test)]
    pub(crate) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Waits until there is room in the buffer. Cancel-safe.
    pub(crate) async fn room(&self) {
        loop {
            let taken = self.taken.notified();
            if self.has_room() {
                return;
            }
            taken.await
        }
    }

    fn has_room(&self) -> bool {
        let state = self.state.lock();
        state.waiting.len() < limits::WAITING_BYTES_MAX || state.over.is_some() || state.is_closing
    }

    /// Lets records wait. `fill` appends them. The caller has locked the log that it changes.
    ///
    /// # Errors
    ///
    /// Returns an error if nothing more is written. Then `done` has learned it, too.
    pub(crate) fn push(&self, fill: impl FnOnce(&mut Vec<u8>), done: Option<Done>) -> io::Result<()> {
        let mut state = self.state.lock();
        let over = match &state.over {
            Some(why) => Some(why.clone()),
            None => state.is_closing.then(|| "the folder is closed".to_string()),
        };
        if let Some(why) = over {
            drop(state);
            if let Some(done) = done {
                done.complete(Err(&why))
            }
            return Err(io::Error::other(why));
        }
        fill(&mut state.waiting);
        let wakes = done.is_some();
        state.done.extend(done);
        drop(state);
        if wakes {
            self.appended.notify_one();
        }
        Ok(())
    }

    /// Waits until all records that wait now are on disk. Cancel-safe.
    pub(crate) async fn synced(&self) -> io::Result<()> {
        let (done, told) = oneshot::channel();
        self.push(|_| (), Some(Done::Told(done)))?;
        told.await.map_err(|_| io::Error::other("the folder is closed"))?
    }

    /// Notes what is committed. It is written with the next records. The caller has locked the log.
    pub(crate) fn committed(&self, group: GroupId, upto: LogId) {
        let mut state = self.state.lock();
        // when the log has failed, entries that were waiting are not in it, and openraft may not know that yet
        if state.over.is_none() {
            state.committed.insert(group, upto);
        }
    }

    /// Writes the file of a snapshot and notes it in the log of the group. If the log names this snapshot or a newer one, waits only
    /// until this is on disk.
    pub(crate) async fn save_snapshot(
        &self,
        group: GroupId,
        log: &Mutex<GroupLog>,
        snapshot: &Snapshot,
    ) -> io::Result<()> {
        let meta = &snapshot.meta;
        let is_known = |log: &GroupLog| {
            log.snapshot.as_ref().is_some_and(|noted| noted.meta.last_log_id >= meta.last_log_id)
        };
        let was_known = is_known(&log.lock());
        if was_known {
            // the note may still wait
            return self.synced().await;
        }
        let number = self.next_snapshot.fetch_add(1, Ordering::Relaxed);
        let (done, written) = oneshot::channel();
        let (meta, chunks) = (meta.clone(), snapshot.snapshot.clone());
        self.keeper.push(Job::Snapshot { group, number, meta: meta.clone(), chunks, done });
        let closed = |_| io::Error::other("the folder is closed");
        if let Err(error) = written.await.map_err(closed)? {
            // openraft ends the group. Other groups would go on, and the other hives would trust this one
            self.fail(&format!("cannot write a snapshot: {error}"));
            return Err(error);
        }

        let old = {
            let mut log = log.lock();
            if is_known(&log) {
                Some(number)
            } else {
                let note = Note::Snapshot(Noted { meta, number });
                self.push(|buffer| record::push_note(buffer, group, &note), None)?;
                let old = log.snapshot.take();
                log.note(note);
                old.map(|old| old.number)
            }
        };
        self.synced().await?;
        if let Some(number) = old {
            self.keeper.push(Job::Remove { group, number })
        }
        Ok(())
    }

    /// Lets what waits be written, and ends the threads then. Does not wait for them.
    pub(crate) fn close_soon(&self) {
        self.state.lock().is_closing = true;
        self.keeper.close();
        self.appended.notify_one();
        self.taken.notify_waiters()
    }

    /// Closes the folder, and waits until it is unlocked. Cancel-safe; the folder closes all the same.
    pub(crate) async fn close(&self) {
        self.close_soon();
        let mut ended = self.ended.clone();
        while ended.changed().await.is_ok() {}
    }

    /// Writes what waits until the log closes, or fails. Runs on its own thread.
    fn write(&self, mut writer: Writer, mut segments: Segments) {
        let mut records = Vec::new();
        while let Some((done, logs)) = self.take(&writer, &segments, &mut records) {
            if let Err(why) = self.write_records(&mut writer, &mut segments, &mut records) {
                self.fail(&why);
                done.into_iter().for_each(|done| done.complete(Err(&why)));
                return;
            }
            // several groups may have appended at once, and their records may have begun another segment
            if let Some(logs) = logs.filter(|_| writer.end().length >= self.sizes.segment_bytes) {
                segments.full = Some((logs, writer.end()))
            }
            if !records.is_empty() {
                self.syncs.fetch_add(1, Ordering::Relaxed);
                self.witnessing.acknowledged(writer.end())
            }
            done.into_iter().for_each(|done| done.complete(Ok(())));
            records.clear();
            // one large group must not take up memory for ever
            records.shrink_to(1 << 20)
        }
    }

    /// Writes nothing more. Whoever waits, or calls later, gets an error.
    fn fail(&self, why: &str) {
        tracing::error!(folder = %self.place.folder.display(), why, "the log has failed: this hive leaves its groups until it \
            starts again; check the disk first");
        let later = {
            let mut state = self.state.lock();
            state.over.get_or_insert_with(|| why.to_string());
            (state.waiting, state.committed) = Default::default();
            std::mem::take(&mut state.done)
        };
        later.into_iter().for_each(|done| done.complete(Err(why)));
        self.failed.send_replace(true);
        self.taken.notify_waiters()
    }

    /// Waits for records and takes them, and those who wait for them. If they complete a segment, and a checkpoint is due,
    /// returns also the logs as they are behind these records. Returns `None` when the log has closed.
    fn take(
        &self,
        writer: &Writer,
        segments: &Segments,
        records: &mut Vec<u8>,
    ) -> Option<(Vec<Done>, Option<Logs>)> {
        let mut state = self.state.lock();
        while state.done.is_empty() && !state.is_closing {
            self.appended.wait(&mut state)
        }
        let length = match writer.end().length {
            length if length >= self.sizes.segment_bytes => SEGMENT_HEADER as u64,
            length => length,
        };
        let length = length + state.waiting.len() as u64;
        let is_due = length >= self.sizes.segment_bytes
            && segments.are_many(self.sizes, length)
            && !self.keeper.is_making_checkpoint();
        if !is_due {
            return Disk::empty(&mut state, records).map(|done| (done, None));
        }

        // The logs change together with the buffer, under their locks, which come first. More may wait by then
        drop(state);
        let logs = self.logs.lock();
        let locked: Vec<_> = logs.iter().map(|(group, log)| (*group, log.lock())).collect();
        let done = Disk::empty(&mut self.state.lock(), records)?;
        let copies = locked.iter().map(|(group, log)| (*group, (**log).clone())).collect();
        Some((done, Some(copies)))
    }

    /// Takes what waits, and those who wait for it, or for what was written before. Returns `None` if there is neither.
    fn empty(state: &mut State, records: &mut Vec<u8>) -> Option<Vec<Done>> {
        for (group, upto) in std::mem::take(&mut state.committed) {
            record::push_note(&mut state.waiting, group, &Note::Committed(upto))
        }
        if state.waiting.is_empty() && state.done.is_empty() {
            return None;
        }
        std::mem::swap(&mut state.waiting, records);
        Some(std::mem::take(&mut state.done))
    }

    /// Writes records. Returns the reason if nothing more may be written.
    fn write_records(
        &self,
        writer: &mut Writer,
        segments: &mut Segments,
        mut records: &mut [u8],
    ) -> Result<(), String> {
        while !records.is_empty() {
            // more than fits into a segment may wait, because all groups append at once
            let (first, rest) = records.split_at_mut(length_within(records, limits::WAITING_BYTES_MAX));
            self.write_group(writer, segments, first)?;
            records = rest
        }
        self.taken.notify_waiters();
        Ok(())
    }

    /// Writes records and syncs them. Waits as long as the disk is full.
    fn write_group(
        &self,
        writer: &mut Writer,
        segments: &mut Segments,
        records: &mut [u8],
    ) -> Result<(), String> {
        let mut is_held_up = false;
        loop {
            let before = writer.end();
            let written = writer.write(records, |_, _| {});
            if writer.end().segment > before.segment {
                segments.finished.push(before);
                if let Some((logs, end)) = segments.full.take() {
                    self.keeper.push(Job::Checkpoint { logs, end });
                    segments.finished.clear()
                }
            }
            match written {
                Ok(()) => {
                    if is_held_up {
                        tracing::info!(folder = %self.place.folder.display(), "the log can be written again")
                    }
                    return Ok(());
                }
                Err(WriteError::Full(error)) => {
                    if !std::mem::replace(&mut is_held_up, true) {
                        tracing::error!(folder = %self.place.folder.display(), %error, "the log cannot be written: the \
                            groups of this hive wait until there is space")
                    }
                    if self.pause(limits::FULL_DISK_PAUSE) {
                        return Err("the disk was full when the log was closed".to_string());
                    }
                }
                Err(WriteError::Failed(doing, error)) => return Err(format!("cannot {doing}: {error}")),
            }
        }
    }

    /// Waits, or until the log closes. Returns whether it closes.
    fn pause(&self, time: Duration) -> bool {
        // new records wake the writer, too, and must not shorten the pause
        #[expect(clippy::disallowed_methods, reason = "a pause of the disk, not of the model")]
        let until = std::time::Instant::now() + time;
        let mut state = self.state.lock();
        while !state.is_closing && !self.appended.wait_until(&mut state, until).timed_out() {}
        state.is_closing
    }
}
