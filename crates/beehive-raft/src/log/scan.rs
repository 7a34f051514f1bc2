//! Reads the segments of a folder, whatever is in their records, and decides what is wrong with them.
//!
//! Everything is checked: the names, the chain of checksums from the first byte behind the checkpoint to the end, and the end
//! against the witness. What is invalid at the very end, and was never acknowledged as far as anybody can know, is cut off, and
//! reported. Anything else is an error. Nothing is changed before [`Repairs::carry_out`].

use crate::error::OpenError;
use crate::log::format::{Record, SEGMENT_HEADER};
use crate::log::reader::{Segment, Valid};
use crate::log::witness::{self, End};
use crate::place::{self, Listing, Place};
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

/// What makes a folder ready for a next segment.
#[derive(Debug, Default)]
pub(crate) struct Repairs {
    /// The file that is replaced by a checked copy, and the copy.
    copy: Option<(PathBuf, Vec<u8>)>,
    /// What a crash left behind.
    pub(crate) remove: Vec<PathBuf>,
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

/// The files of a folder, before its segments are read.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) listing: Listing,
    witness: End,
}

/// What the segments of a folder are.
#[derive(Debug)]
pub(crate) struct Scanned {
    /// The end of the log.
    pub(crate) end: End,
    /// The lengths of the segments behind the checkpoint, in order.
    pub(crate) lengths: Vec<u64>,
    /// Number of bytes in these segments.
    pub(crate) log_bytes: u64,
    pub(crate) cut: Option<Cut>,
    pub(crate) repairs: Repairs,
}

impl Start {
    /// Lists a folder and reads its witness. `is_new` says that no start has been carried out yet.
    pub(crate) fn read(place: &Place, folder_id: u64, is_new: bool) -> Result<Start, OpenError> {
        let listing = place.list().map_err(|error| OpenError::io(&place.folder, "list the folder", error))?;
        let is_empty = listing.checkpoints.is_empty() && listing.segments.is_empty();
        let witness = match witness::read(&*place.files, &place.folder, folder_id)? {
            Some(end) => end,
            None if is_new && is_empty => End::default(),
            None => {
                let why = "it says how far the log was acknowledged, and every hive has one".to_string();
                return Err(OpenError::Missing { file: place::witness(&place.folder), why });
            }
        };
        Ok(Start { listing, witness })
    }

    /// Returns the newest checkpoint: the first segment that it does not cover.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.listing.checkpoints.last().copied()
    }

    /// Reads the segments behind `end`, the end of the log that the newest checkpoint covers. `apply` applies a segment up to
    /// its first invalid record, and calls its second argument for each record.
    pub(crate) fn scan(
        &self,
        place: &Place,
        folder_id: u64,
        mut end: End,
        mut apply: impl FnMut(&Segment, &mut dyn FnMut(&Record)) -> Result<Valid, OpenError>,
    ) -> Result<Scanned, OpenError> {
        let Start { listing, witness } = self;
        let first = end.segment + 1;
        let numbers: Vec<u64> = listing.segments.iter().copied().filter(|number| *number >= first).collect();
        check_names(place, first, &numbers, self.newest(), *witness)?;

        let (mut lengths, mut repairs) = (Vec::new(), Repairs::default());
        let (mut log_bytes, mut cut) = (0, None);
        for number in &numbers {
            let segment = Segment::read(place, folder_id, end)?;
            let mut is_witnessed = witness.segment != *number
                || (witness.length == SEGMENT_HEADER as u64 && witness.chain == segment.header.chain);
            let valid = apply(&segment, &mut |record| {
                is_witnessed |= record.end as u64 == witness.length && record.chain == witness.chain
            })?;
            end = valid.end;

            let is_last = numbers.last() == Some(number);
            match valid.wrong {
                Some(wrong) if !is_last => {
                    let how = format!("although segment {} follows", number + 1);
                    return Err(segment.damaged(&valid, wrong, &how));
                }
                _ => segment.nothing_lost(&valid, *witness)?,
            }
            if !is_witnessed {
                let how = format!("not the one that was acknowledged up to byte {}", witness.length);
                return Err(segment.damaged(&valid, "this is another log", &how));
            }

            log_bytes += valid.end.length;
            lengths.push(valid.end.length);
            if let Some(what) = valid.wrong {
                let (file, bytes) = (segment.path().to_path_buf(), segment.rest(&valid));
                cut = Some(Cut { file, offset: valid.end.length, bytes, what })
            }
            // What was not acknowledged may be in the page cache only: if a sync failed in the last process, the system
            // may have forgotten to write it. A copy that is synced settles it, and cuts off what is invalid.
            if is_last && (valid.end != *witness || valid.wrong.is_some()) {
                repairs.copy = Some((segment.path().to_path_buf(), segment.into_valid_bytes(&valid)))
            }
        }
        repairs.remove = left_behind(place, listing, first);
        Ok(Scanned { end, lengths, log_bytes, cut, repairs })
    }
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
