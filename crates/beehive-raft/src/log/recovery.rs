//! Reads the whole log of a folder, and gives the states that result from it.
//!
//! `scan` checks the segments. Here, their records are decoded, checked and applied.

use crate::error::OpenError;
use crate::log::checkpoint;
use crate::log::compaction::Bees;
use crate::log::format::Record;
use crate::log::reader::{Segment, Valid};
use crate::log::scan::{Cut, Repairs, Scanned, Start};
use crate::log::witness::End;
use crate::place::{self, Place};
use beehive_protocol::{Entry, LaneId, LogState};
use std::path::PathBuf;

/// What was found in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Number of entries read from the log, without those in the checkpoint.
    pub entries: u64,
    /// Number of these entries that have no effect, because an entry before them has none.
    pub without_effect: u64,
    /// Number of bytes of the log.
    pub log_bytes: u64,
    /// Number of segments of the log.
    pub segments: u64,
    /// Number of bytes of the checkpoint. Zero if there is none.
    pub checkpoint_bytes: u64,
    /// What was cut off.
    pub cut: Option<Cut>,
}

/// The result of reading the log of a folder.
#[derive(Debug)]
pub(crate) struct Recovered {
    /// The state of each log.
    pub(crate) states: Vec<LogState>,
    /// The end of the log.
    pub(crate) end: End,
    /// The lengths of the segments, in order.
    pub(crate) lengths: Vec<u64>,
    pub(crate) repairs: Repairs,
    pub(crate) found: Found,
}

/// The states, as the log is applied to them.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) states: Vec<LogState>,
    pub(crate) end: End,
    pub(crate) entries: u64,
    pub(crate) without_effect: u64,
    /// For each log, the lanes that the entries have made all bees forget.
    pub(crate) retired: Vec<Vec<LaneId>>,
    /// The file before the next segment.
    before: PathBuf,
}

impl Replay {
    /// Begins with the newest checkpoint. Returns its length, too.
    pub(crate) fn begin(
        place: &Place,
        (folder_id, logs): (u64, u16),
        newest: Option<u64>,
    ) -> Result<(Replay, u64), OpenError> {
        let (states, end, before, bytes) = match newest {
            Some(segment) => {
                let loaded = checkpoint::read(place, (folder_id, logs), segment)?;
                (loaded.states, loaded.end, place::checkpoint(&place.folder, segment), loaded.bytes)
            }
            None => {
                let states = (0..logs).map(|_| LogState::default()).collect();
                (states, End::default(), place::segment(&place.folder, 0), 0)
            }
        };
        Ok((Replay::on(states, end, before), bytes))
    }

    /// Begins with a checkpoint, without the bees that are not in `bees`.
    pub(crate) fn begin_with(
        place: &Place,
        key: (u64, u16),
        segment: u64,
        bees: &Bees,
    ) -> Result<Replay, OpenError> {
        let loaded = checkpoint::read_only(place, key.0, segment, bees)?;
        Ok(Replay::on(loaded.states, loaded.end, place::checkpoint(&place.folder, segment)))
    }

    fn on(states: Vec<LogState>, end: End, before: PathBuf) -> Replay {
        let retired = states.iter().map(|_| Vec::new()).collect();
        Replay { states, end, entries: 0, without_effect: 0, retired, before }
    }

    /// Applies the next segment, up to its first invalid record. `each` is called for each record.
    pub(crate) fn apply(
        &mut self,
        segment: &Segment,
        mut each: impl FnMut(&Record),
    ) -> Result<Valid, OpenError> {
        segment.continues(self.end, &self.before)?;
        let valid = segment.records(self.end, |record| {
            each(record);
            self.entries += 1;
            let fault = |what: String| OpenError::damaged(segment.path(), record.start, what);
            let logs = self.states.len();
            let state = self.states.get_mut(usize::from(record.colony));
            let state = state.ok_or_else(|| {
                fault(format!("a record of log {}, although there are {logs} logs", record.colony))
            })?;
            let entry = decode(segment, record)?;
            if entry.number.0 != record.number || (entry.after == state.last && entry.number <= state.last) {
                return Err(fault(format!("entry {} is out of order", entry.number.0)));
            }
            match (state.apply(&entry), &entry.record) {
                (false, _) => self.without_effect += 1,
                (true, beehive_protocol::Record::Retire { lanes, .. }) => {
                    self.retired[usize::from(record.colony)].extend(lanes)
                }
                (true, _) => {}
            }
            Ok(())
        })?;
        self.end = valid.end;
        self.before = segment.path().to_path_buf();
        Ok(valid)
    }
}

/// Decodes the entry of a record.
pub(crate) fn decode(segment: &Segment, record: &Record) -> Result<Entry, OpenError> {
    // the checksum is right, so a program wrote it like this
    Entry::decode(record.entry).map_err(|why| {
        let what = format!("{why}; perhaps a newer program wrote it");
        OpenError::damaged(segment.path(), record.start, what)
    })
}

/// Reads the log of a folder. Changes nothing.
pub(crate) fn recover(
    place: &Place,
    (folder_id, logs): (u64, u16),
    is_new: bool,
) -> Result<Recovered, OpenError> {
    let start = Start::read(place, folder_id, is_new)?;
    let (mut replay, checkpoint_bytes) = Replay::begin(place, (folder_id, logs), start.newest())?;
    let Scanned { end, lengths, log_bytes, cut, repairs } =
        start.scan(place, folder_id, replay.end, |segment, each| replay.apply(segment, each))?;
    let found = Found {
        entries: replay.entries,
        without_effect: replay.without_effect,
        log_bytes,
        segments: lengths.len() as u64,
        checkpoint_bytes,
        cut,
    };
    Ok(Recovered { states: replay.states, end, lengths, repairs, found })
}
