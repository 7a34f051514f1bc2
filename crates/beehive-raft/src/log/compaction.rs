//! Makes a checkpoint from the one before it and the finished segments behind that.
//!
//! Only the bees that the segments name are in memory: they are loaded from the checkpoint before, the segments are applied
//! to them, and the new checkpoint takes all other bees as they are from the one before. Nothing that runs has a part in
//! this, because nobody changes these files any more.
//!
//! ```text
//! segments ──► the bees they name                                  (read once)
//! checkpoint ──► these bees, and what belongs to no bee            (read once)
//! segments ──► applied to them                                     (read again)
//! checkpoint + changed bees ──► next checkpoint                    (read again, bee by bee)
//! ```

use crate::error::OpenError;
use crate::log::checkpoint::{self, Changed};
use crate::log::reader::Segment;
use crate::log::recovery::{Replay, decode};
use crate::place::{self, Place};
use beehive_protocol::{AppId, BeeId};
use std::collections::BTreeSet;

/// The bees that are in memory, for each log.
pub(crate) type Bees = Vec<BTreeSet<(AppId, BeeId)>>;

/// Makes a checkpoint that covers the segments up to `newest`, and removes what it covers. Returns its length.
///
/// If the checkpoint before has at most `small_bytes` bytes, all of it is loaded: that takes less time than reading the
/// segments twice.
pub(crate) fn compact(
    place: &Place,
    key: (u64, u16),
    newest: u64,
    small_bytes: u64,
) -> Result<u64, OpenError> {
    let failed = |doing| move |error| OpenError::io(&place.folder, doing, error);
    let listing = place.list().map_err(failed("list the folder"))?;
    let base = match listing.checkpoints.last().copied() {
        Some(segment) => {
            let path = place::checkpoint(&place.folder, segment);
            let bytes = place.files.length(&path).map_err(failed("read the checkpoint"))?;
            (bytes > small_bytes).then_some(segment)
        }
        None => None,
    };

    let (mut replay, bees) = match base {
        Some(segment) => {
            let bees = bees_in(place, key, segment, newest)?;
            (Replay::begin_with(place, key, segment, &bees)?, bees)
        }
        None => (Replay::begin(place, key, listing.checkpoints.last().copied())?.0, Bees::new()),
    };
    while replay.end.segment < newest {
        let segment = Segment::read(place, key.0, replay.end)?;
        let valid = replay.apply(&segment, |_| {})?;
        if let Some(wrong) = valid.wrong {
            return Err(segment.damaged(&valid, wrong, "in a finished segment"));
        }
    }

    let Replay { states, end, retired, .. } = &replay;
    let bytes = match base {
        Some(segment) => {
            let changed = Changed { states, bees: &bees, retired };
            checkpoint::write_changed(place, key.0, segment, changed, *end)
        }
        None => checkpoint::write(place, key.0, states, *end),
    };
    let bytes = bytes.map_err(failed("write the checkpoint"))?;
    let segments = listing.segments.iter().filter(|number| **number <= newest);
    let old = segments.map(|number| place::segment(&place.folder, *number));
    let old = old.chain(listing.checkpoints.iter().map(|at| place::checkpoint(&place.folder, *at)));
    // a crash here leaves files that the next start removes
    old.into_iter().try_for_each(|path| place.files.remove(&path)).map_err(failed("remove old files"))?;
    place.files.sync_folder(&place.folder).map_err(failed("sync the folder"))?;
    Ok(bytes)
}

/// Returns the bees that the segments between a checkpoint and `newest` name.
fn bees_in(
    place: &Place,
    (folder_id, logs): (u64, u16),
    checkpoint: u64,
    newest: u64,
) -> Result<Bees, OpenError> {
    let mut end = checkpoint::end(place, folder_id, checkpoint)?;
    let mut bees = Bees::new();
    bees.resize_with(usize::from(logs), BTreeSet::new);
    while end.segment < newest {
        let segment = Segment::read(place, folder_id, end)?;
        let valid = segment.records(end, |record| {
            let entry = decode(&segment, record)?;
            // a log that does not exist is refused when the record is applied
            if let Some(bees) = bees.get_mut(usize::from(record.colony)) {
                bees.extend(entry.record.bees())
            }
            Ok(())
        })?;
        if let Some(wrong) = valid.wrong {
            return Err(segment.damaged(&valid, wrong, "in a finished segment"));
        }
        end = valid.end
    }
    Ok(bees)
}
