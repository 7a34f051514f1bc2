//! Reads the whole log of a folder, and gives the states that result from it.
//!
//! Everything is checked: the chain of checksums from the first byte behind the checkpoint to the end, every entry, and
//! the end against the witness. What is invalid at the very end, and was never acknowledged as far as anybody can know,
//! is cut off, and reported. Anything else is an error.

use crate::error::OpenError;
use crate::log::checkpoint;
use crate::log::compaction::Bees;
use crate::log::format::{Record, SEGMENT_HEADER};
use crate::log::reader::Segment;
use crate::log::witness::{self, End};
use crate::place::{self, Listing, Place};
use beehive_protocol::{Entry, LaneId, LogState};
use std::io;
use std::path::PathBuf;

/// What was cut off at the end of the log, because it had never been acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The file.
    pub file: PathBuf,
    /// The byte from which on it was cut.
    pub offset: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// What was wrong.
    pub what: &'static str,
}

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

/// What makes a folder ready for a next segment.
#[derive(Debug, Default)]
pub(crate) struct Repairs {
    /// The file that is replaced by a checked copy, and the copy.
    copy: Option<(PathBuf, Vec<u8>)>,
    /// What a crash left behind.
    remove: Vec<PathBuf>,
}

impl Repairs {
    /// Makes sure that everything that was read is on disk, and removes what a crash left behind.
    pub(crate) fn carry_out(&self, place: &Place) -> Result<(), OpenError> {
        if let Some((path, bytes)) = &self.copy {
            let written = place.write_whole(path, &[bytes]);
            written.map_err(|error| OpenError::io(path, "write a checked copy", error))?;
        }
        let sync = || {
            let synced = place.files.sync_folder(&place.folder);
            synced.map_err(|error| OpenError::io(&place.folder, "sync the folder", error))
        };
        if self.remove.is_empty() {
            return Ok(());
        }

        // The last process may have ended between the renaming of a checkpoint and the sync of the folder. The name must
        // be there for good before what the checkpoint covers is removed.
        sync()?;
        for path in &self.remove {
            match place.files.remove(path) {
                // the checked copy has taken its place
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed.map_err(|error| OpenError::io(path, "remove", error))?,
            }
        }
        sync()
    }
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
    ) -> Result<crate::log::reader::Valid, OpenError> {
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
    let listing = place.list().map_err(|error| OpenError::io(&place.folder, "list the folder", error))?;
    let newest = listing.checkpoints.last().copied();
    let witness = match witness::read(&*place.files, &place.folder, folder_id)? {
        Some(end) => end,
        None if is_new && newest.is_none() && listing.segments.is_empty() => End::default(),
        None => {
            let why = "it says how far the log was acknowledged, and every hive has one".to_string();
            return Err(OpenError::Missing { file: place::witness(&place.folder), why });
        }
    };

    let (mut replay, checkpoint_bytes) = Replay::begin(place, (folder_id, logs), newest)?;
    let first = replay.end.segment + 1;
    let numbers: Vec<u64> = listing.segments.iter().copied().filter(|number| *number >= first).collect();
    check_names(place, first, &numbers, newest, witness)?;

    let mut found = Found { checkpoint_bytes, segments: numbers.len() as u64, cut: None, ..Found::default() };
    let (mut lengths, mut repairs) = (Vec::new(), Repairs::default());
    for number in &numbers {
        let segment = Segment::read(place, folder_id, replay.end)?;
        let mut is_witnessed = witness.segment != *number
            || (witness.length == SEGMENT_HEADER as u64 && witness.chain == segment.header.chain);
        let valid = replay.apply(&segment, |record| {
            is_witnessed |= record.end as u64 == witness.length && record.chain == witness.chain
        })?;

        let is_last = numbers.last() == Some(number);
        match valid.wrong {
            Some(wrong) if !is_last => {
                let how = format!("although segment {} follows", number + 1);
                return Err(segment.damaged(&valid, wrong, &how));
            }
            _ => segment.nothing_lost(&valid, witness)?,
        }
        if !is_witnessed {
            let how = format!("not the one that was acknowledged up to byte {}", witness.length);
            return Err(segment.damaged(&valid, "this is another log", &how));
        }

        found.log_bytes += valid.end.length;
        lengths.push(valid.end.length);
        if let Some(what) = valid.wrong {
            let (file, bytes) = (segment.path().to_path_buf(), segment.rest(&valid));
            found.cut = Some(Cut { file, offset: valid.end.length, bytes, what })
        }
        // What was not acknowledged may be in the page cache only: if a sync failed in the last process, the system
        // may have forgotten to write it. A copy that is synced settles it, and cuts off what is invalid.
        if is_last && (valid.end != witness || valid.wrong.is_some()) {
            repairs.copy = Some((segment.path().to_path_buf(), segment.into_valid_bytes(&valid)))
        }
    }

    repairs.remove = left_behind(place, &listing, first);
    (found.entries, found.without_effect) = (replay.entries, replay.without_effect);
    Ok(Recovered { states: replay.states, end: replay.end, lengths, repairs, found })
}

/// Checks that no segment is missing.
fn check_names(
    place: &Place,
    first: u64,
    numbers: &[u64],
    newest: Option<u64>,
    witness: End,
) -> Result<(), OpenError> {
    let missing = |number: u64, why: String| {
        Err(OpenError::Missing { file: place::segment(&place.folder, number), why })
    };
    for (number, expected) in numbers.iter().zip(first..) {
        if *number != expected {
            return missing(expected, format!("segment {number} is there"));
        }
    }
    let last = numbers.last().copied().unwrap_or(first - 1);
    if witness.segment > last {
        let why = format!("the log was acknowledged up to byte {} of it", witness.length);
        return missing(witness.segment, why);
    }
    if numbers.is_empty() && newest.is_some() {
        return missing(first, "a checkpoint is made only when the next segment exists".to_string());
    }
    Ok(())
}

/// Returns what a crash left behind: unfinished files, and what the checkpoint covers.
fn left_behind(place: &Place, listing: &Listing, first: u64) -> Vec<PathBuf> {
    let segments = listing.segments.iter().filter(|number| **number < first);
    let checkpoints = listing.checkpoints.iter().filter(|segment| **segment < first);
    let paths = segments.map(|number| place::segment(&place.folder, *number));
    let paths = paths.chain(checkpoints.map(|segment| place::checkpoint(&place.folder, *segment)));
    paths.chain(listing.unfinished.iter().cloned()).collect()
}
