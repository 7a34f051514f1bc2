//! The log and the vote of one member of a group, in memory and, if the hive has a folder, on disk.
//!
//! openraft reaches it through two traits, [`RaftLogStorage`] and [`RaftLogReader`]. It reads from memory in either case. See
//! `disk` for what is on disk when.

use super::disk::{Disk, Done, GroupLog, Note, push_entry, push_note};
use super::types::{GroupId, LogEntry, LogId, Payload, Snapshot, Types, Vote};
use crate::limits::CALL_BYTES;
use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};
use openraft::{EntryPayload, OptionalSend};
use parking_lot::Mutex;
use std::fmt::Debug;
use std::io;
use std::ops::RangeBounds;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The log. All clones share it.
#[derive(Clone, Default)]
pub(crate) struct LogStore {
    log: Arc<Mutex<GroupLog>>,
    /// The folder, and the group.
    disk: Option<(Arc<Disk>, GroupId)>,
}

impl LogStore {
    /// Returns the log of a group in a folder.
    pub(crate) fn on(disk: &Arc<Disk>, group: GroupId) -> LogStore {
        LogStore { log: disk.log(group), disk: Some((disk.clone(), group)) }
    }

    /// Makes a change, and lets it wait to be written. Nobody is told when it is.
    fn note(&self, note: Note) -> io::Result<()> {
        let mut log = self.log.lock();
        if let Some((disk, group)) = &self.disk {
            disk.push(|buffer| push_note(buffer, *group, &note), None)?
        }
        log.note(note);
        Ok(())
    }

    /// Returns the snapshot that the folder had at the start, until it is taken.
    pub(crate) fn snapshot(&self) -> Option<Snapshot> {
        let (disk, group) = self.disk.as_ref()?;
        disk.snapshot(*group)
    }

    /// Returns the snapshot that the folder had at the start, once.
    pub(crate) fn take_snapshot(&self) -> Option<Snapshot> {
        let (disk, group) = self.disk.as_ref()?;
        disk.take_snapshot(*group)
    }

    /// Makes a snapshot permanent, so that the entries that it covers may be removed. Does nothing in memory.
    pub(crate) async fn save_snapshot(&self, snapshot: &Snapshot) -> io::Result<()> {
        match &self.disk {
            Some((disk, group)) => disk.save_snapshot(*group, &self.log, snapshot).await,
            None => Ok(()),
        }
    }

    /// Checks whether an entry that is committed is in the log on its way to the disk, or in a snapshot. In memory, every entry is
    /// kept: the hive cannot return.
    pub(crate) fn keeps(&self, committed: LogId) -> bool {
        self.disk.is_none() || self.log.lock().has(committed)
    }

    /// Waits until everything that is in the log now is on disk. Cancel-safe.
    pub(crate) async fn synced(&self) -> io::Result<()> {
        match &self.disk {
            Some((disk, _)) => disk.synced().await,
            None => Ok(()),
        }
    }

    /// Returns a copy that is in memory only.
    #[cfg(test)]
    pub(crate) fn in_memory(&self) -> LogStore {
        let log = GroupLog { snapshot: None, ..self.copy() };
        LogStore { log: Arc::new(Mutex::new(log)), disk: None }
    }

    /// Calls `look` with the log.
    pub(crate) fn read<R>(&self, look: impl FnOnce(&GroupLog) -> R) -> R {
        look(&self.log.lock())
    }

    /// Lets the first entry have any index, for the tests of openraft.
    #[cfg(test)]
    pub(crate) fn begin_anywhere(self) -> LogStore {
        self.log.lock().begins_anywhere = true;
        self
    }

    /// Returns a copy of the log.
    #[cfg(test)]
    pub(crate) fn copy(&self) -> GroupLog {
        self.log.lock().clone()
    }
}

fn bytes(payload: &Payload) -> usize {
    match payload {
        EntryPayload::Normal(command) => command.0.len(),
        EntryPayload::Blank | EntryPayload::Membership(_) => 0,
    }
}

impl RaftLogReader<Types> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<LogEntry>, io::Error> {
        Ok(self.log.lock().range(range).cloned().collect())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Ok(self.log.lock().vote)
    }

    /// Returns about [`CALL_BYTES`] of entries, and at least one entry.
    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<LogEntry>, io::Error> {
        let (log, mut sum) = (self.log.lock(), 0);
        let fits = |entry: &&LogEntry| {
            let is_first = sum == 0;
            sum += bytes(&entry.payload) + 1;
            is_first || sum <= CALL_BYTES
        };
        Ok(log.range(start..end).take_while(fits).cloned().collect())
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = LogStore;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, io::Error> {
        let log = self.log.lock();
        Ok(LogState { last_purged_log_id: log.purged, last_log_id: log.last() })
    }

    async fn get_log_reader(&mut self) -> LogStore {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        let note = Note::Vote(*vote);
        let told = {
            let mut log = self.log.lock();
            let told = match &self.disk {
                Some((disk, group)) => {
                    let (done, told) = oneshot::channel();
                    disk.push(|buffer| push_note(buffer, *group, &note), Some(Done::Told(done)))?;
                    Some(told)
                }
                None => None,
            };
            log.note(note);
            told
        };
        match told {
            Some(told) => told.await.map_err(|_| io::Error::other("the log has ended"))?,
            None => Ok(()),
        }
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), io::Error> {
        let mut log = self.log.lock();
        if let Some(upto) = committed {
            log.note(Note::Committed(upto));
            if let Some((disk, group)) = &self.disk {
                disk.committed(*group, upto)
            }
        }
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, io::Error> {
        Ok(self.log.lock().committed)
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = LogEntry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<LogEntry> = entries.into_iter().collect();
        if let Some((disk, _)) = &self.disk {
            disk.room().await
        }
        {
            let mut log = self.log.lock();
            let before = log.entries.len();
            for entry in &entries {
                if let Err(why) = log.is_next(entry) {
                    log.entries.truncate(before);
                    return Err(io::Error::other(why));
                }
                log.push(entry.clone())
            }
            if let Some((disk, group)) = &self.disk {
                let fill =
                    |buffer: &mut Vec<u8>| entries.iter().for_each(|entry| push_entry(buffer, *group, entry));
                return disk.push(fill, Some(Done::Flushed(callback)));
            }
        }
        callback.io_completed(Ok(()));
        Ok(())
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        self.note(Note::Truncate(last))
    }

    async fn purge(&mut self, upto: LogId) -> Result<(), io::Error> {
        self.note(Note::Purge(upto))
    }
}
