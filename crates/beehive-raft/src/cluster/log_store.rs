//! The log and the vote of one member of a group, in memory.
//!
//! openraft reaches it through two traits, [`RaftLogStorage`] and [`RaftLogReader`]. A log on disk can take its place: it
//! calls the callback of an append when the entries are durable.

use super::types::{LogEntry, LogId, Payload, Types, Vote};
use crate::limits::CALL_BYTES;
use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};
use openraft::{EntryPayload, OptionalSend};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// The log. All clones share it.
#[derive(Clone, Default)]
pub(crate) struct LogStore(Arc<Mutex<Log>>);

#[derive(Default)]
struct Log {
    vote: Option<Vote>,
    /// The last entry that was removed from the front.
    purged: Option<LogId>,
    /// The other entries, without a gap.
    entries: VecDeque<LogEntry>,
}

impl Log {
    /// Returns the index of the first entry, or of the next one if there is none.
    fn first(&self) -> u64 {
        self.purged.map_or(0, |purged| purged.index + 1)
    }

    /// Returns the entries with an index of a range.
    fn range(&self, range: impl RangeBounds<u64>) -> impl Iterator<Item = &LogEntry> {
        let first = self.first();
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(start) => start.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(end) => end.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => u64::MAX,
        };
        let skipped = start.saturating_sub(first);
        let count = end.saturating_sub(start.max(first));
        self.entries.iter().skip(skipped as usize).take(count as usize)
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
        Ok(self.0.lock().range(range).cloned().collect())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Ok(self.0.lock().vote)
    }

    /// Returns about [`CALL_BYTES`] of entries, and at least one entry.
    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<LogEntry>, io::Error> {
        let (log, mut sum) = (self.0.lock(), 0);
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
        let log = self.0.lock();
        let last = log.entries.back().map(|entry| entry.log_id).or(log.purged);
        Ok(LogState { last_purged_log_id: log.purged, last_log_id: last })
    }

    async fn get_log_reader(&mut self) -> LogStore {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        self.0.lock().vote = Some(*vote);
        Ok(())
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = LogEntry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        {
            let mut log = self.0.lock();
            for entry in entries {
                let next = log.first() + log.entries.len() as u64;
                if log.entries.is_empty() && log.purged.is_none() && entry.log_id.index > 0 {
                    return Err(io::Error::other("the log has to begin with entry 0"));
                }
                if entry.log_id.index != next {
                    let index = entry.log_id.index;
                    return Err(io::Error::other(format!("entry {index} does not follow entry {next}")));
                }
                log.entries.push_back(entry)
            }
        }
        callback.io_completed(Ok(()));
        Ok(())
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        let mut log = self.0.lock();
        let end = last.map_or(0, |last| last.index + 1);
        let kept = end.saturating_sub(log.first());
        log.entries.truncate(kept as usize);
        Ok(())
    }

    async fn purge(&mut self, upto: LogId) -> Result<(), io::Error> {
        let mut log = self.0.lock();
        let count = (upto.index + 1).saturating_sub(log.first()).min(log.entries.len() as u64);
        log.entries.drain(..count as usize);
        log.purged = log.purged.max(Some(upto));
        Ok(())
    }
}
