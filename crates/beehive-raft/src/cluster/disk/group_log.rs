//! The log of a member of a group as data: what the calls of openraft do to it.
//!
//! A member has it in memory while it runs. A folder has the calls, and a start repeats them.

use crate::cluster::promises::Position;
use crate::cluster::types::{LogEntry, LogId, MemberId, SnapshotMeta, Vote};
use openraft::{EmptyNode, EntryPayload};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::{Bound, RangeBounds};

/// The log of a member of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GroupLog {
    pub(crate) vote: Option<Vote>,
    /// The last entry that was removed from the front.
    pub(crate) purged: Option<LogId>,
    /// The other entries, without a gap.
    pub(crate) entries: VecDeque<LogEntry>,
    /// An entry up to which all are known to be committed. There may be later ones.
    pub(crate) committed: Option<LogId>,
    /// The newest snapshot that is on disk.
    pub(crate) snapshot: Option<Noted>,
    /// Whether the first entry may have any index: openraft's own tests begin with entry 1, or 2.
    #[cfg(test)]
    pub(crate) begins_anywhere: bool,
}

/// A snapshot that is in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Noted {
    pub(crate) meta: SnapshotMeta,
    /// The number of the file.
    pub(crate) number: u64,
}

/// A change of a log other than a new entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Note {
    Vote(Vote),
    /// The entries behind this one are removed.
    Truncate(Option<LogId>),
    /// The entries up to this one are removed.
    Purge(LogId),
    Committed(LogId),
    Snapshot(Noted),
}

impl GroupLog {
    /// Returns the index of the first entry, or of the next one if there is none.
    fn first(&self) -> u64 {
        let behind_purged = || self.purged.map_or(0, |purged| purged.index + 1);
        self.entries.front().map_or_else(behind_purged, |entry| entry.log_id.index)
    }

    /// Returns the last entry, or the last one that was removed from the front.
    pub(crate) fn last(&self) -> Option<LogId> {
        self.entries.back().map(|entry| entry.log_id).or(self.purged)
    }

    /// Checks whether an entry that is committed is in the log, or in the part that a snapshot has replaced.
    pub(crate) fn has(&self, committed: LogId) -> bool {
        let in_snapshot = self.snapshot.as_ref().and_then(|noted| noted.meta.last_log_id);
        // these are committed, too, so the later one has the other before it
        let is_before = Some(committed) <= self.purged.max(in_snapshot);
        is_before || self.range(committed.index..=committed.index).any(|entry| entry.log_id == committed)
    }

    /// Returns where the log ends.
    pub(crate) fn position(&self) -> Position {
        let in_snapshot = self.snapshot.as_ref().and_then(|noted| noted.meta.last_log_id);
        let term = self.vote.map_or(0, |vote| vote.leader_id.term);
        Position { term, last: self.last().max(in_snapshot) }
    }

    /// Returns the entries with an index of a range.
    pub(crate) fn range(&self, range: impl RangeBounds<u64>) -> impl Iterator<Item = &LogEntry> {
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

    /// Returns the members that vote in the group, and the entry that says so, if the group exists as far as this log says. While
    /// the membership changes, these are the members after that.
    pub(crate) fn members(&self) -> (Option<LogId>, Vec<MemberId>) {
        let voters = |membership: &openraft::Membership<MemberId, EmptyNode>| {
            membership.get_joint_config().last().into_iter().flatten().copied().collect()
        };
        let in_log = self.entries.iter().rev().find_map(|entry| match &entry.payload {
            EntryPayload::Membership(membership) => Some((Some(entry.log_id), voters(membership))),
            EntryPayload::Blank | EntryPayload::Normal(_) => None,
        });
        let in_snapshot = || {
            let membership = &self.snapshot.as_ref()?.meta.last_membership;
            Some((*membership.log_id(), voters(membership.membership())))
        };
        in_log.or_else(in_snapshot).unwrap_or_default()
    }

    /// Checks that an entry is the next one.
    pub(crate) fn is_next(&self, entry: &LogEntry) -> Result<(), String> {
        #[cfg(test)]
        if self.begins_anywhere && self.last().is_none() {
            return Ok(());
        }
        let (index, next) = (entry.log_id.index, self.first() + self.entries.len() as u64);
        match index == next {
            true => Ok(()),
            false => Err(format!("entry {index} does not follow: the next one is entry {next}")),
        }
    }

    pub(crate) fn push(&mut self, entry: LogEntry) {
        self.entries.push_back(entry)
    }

    /// Makes a change.
    pub(crate) fn note(&mut self, note: Note) {
        match note {
            Note::Vote(vote) => self.vote = Some(vote),
            Note::Truncate(last) => {
                let end = last.map_or(0, |last| last.index + 1);
                self.entries.truncate(end.saturating_sub(self.first()) as usize)
            }
            Note::Purge(upto) => {
                let count = (upto.index + 1).saturating_sub(self.first()).min(self.entries.len() as u64);
                self.entries.drain(..count as usize);
                self.purged = self.purged.max(Some(upto))
            }
            Note::Committed(upto) => self.committed = Some(upto),
            Note::Snapshot(noted) => self.snapshot = Some(noted),
        }
    }

    /// Returns the changes that make this log from an empty one, other than its entries.
    pub(crate) fn notes(&self) -> impl Iterator<Item = Note> {
        let vote = self.vote.map(Note::Vote);
        let snapshot = self.snapshot.clone().map(Note::Snapshot);
        let purged = self.purged.map(Note::Purge);
        let committed = self.committed.map(Note::Committed);
        vote.into_iter().chain(snapshot).chain(purged).chain(committed)
    }
}
