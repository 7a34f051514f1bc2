//! Makes the snapshot of a state from that of an earlier one, without the bees that have not changed in memory.
//!
//! The items of such bees are copied as they are, so a million bees that rest cost little more than reading and writing
//! their bytes.

use super::{END, Item, Section, SnapshotLoader, Writer, ascends, bee_items, bee_of, error};
use crate::codec::{decode_front, decode_many, encode_many, split_integer};
use crate::{AppId, BeeId, BeeImage, DecodeError, LaneId, LogState, limits};
use std::collections::{BTreeSet, btree_map};
use std::iter::Peekable;

impl LogState {
    /// Returns the snapshot of a state of which only the changed bees are in memory.
    ///
    /// This state has no bees but those in `changed`. All other bees are as they are in `old`, the chunks of an earlier
    /// snapshot, but have forgotten the lanes in `retired`. The result has the chunks that [`LogState::chunks`] would return
    /// for the whole state. Besides a chunk of each snapshot, it keeps one bee in memory.
    ///
    /// An error is the last item: chunks of `old` are missing or wrong.
    pub fn merged_chunks<'a>(
        &'a self,
        old: impl Iterator<Item = Vec<u8>> + 'a,
        changed: &'a BTreeSet<(AppId, BeeId)>,
        retired: &'a [LaneId],
        bytes_max: usize,
    ) -> MergedChunks<'a> {
        debug_assert!(self.bees.keys().all(|bee| changed.contains(bee)), "a bee is not in the list");
        let old =
            OldBees { chunks: Box::new(old), loader: SnapshotLoader::default(), bytes: Vec::new(), at: 0 };
        let mut writer = Writer::new(bytes_max);
        self.items_before_bees().for_each(|item| writer.push(&encode_many(&item)));
        MergedChunks {
            state: self,
            changed,
            retired,
            old,
            next_old: None,
            last_old: None,
            new: self.bees.iter().peekable(),
            rest: None,
            writer,
            is_over: false,
        }
    }
}

/// The chunks of a snapshot: see [`LogState::merged_chunks`].
pub struct MergedChunks<'a> {
    state: &'a LogState,
    changed: &'a BTreeSet<(AppId, BeeId)>,
    retired: &'a [LaneId],
    old: OldBees<'a>,
    /// The next item of a bee in the old snapshot.
    next_old: Option<OldItem>,
    /// The bee of the item before.
    last_old: Option<(AppId, BeeId)>,
    /// The bees in memory that have not been written.
    new: Peekable<btree_map::Iter<'a, (AppId, BeeId), Box<BeeImage>>>,
    /// The items behind the last bee. `None` until that is reached.
    rest: Option<Box<dyn Iterator<Item = Item> + 'a>>,
    writer: Writer,
    is_over: bool,
}

impl std::fmt::Debug for MergedChunks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MergedChunks").field("number", &self.writer.number).finish_non_exhaustive()
    }
}

impl MergedChunks<'_> {
    /// Writes the next bee, or an item of what follows the last one.
    fn step(&mut self) -> Result<(), DecodeError> {
        if let Some(rest) = &mut self.rest {
            match rest.next() {
                Some(item) => self.writer.push(&encode_many(&item)),
                None => {
                    self.is_over = true;
                    self.writer.seal()
                }
            }
            return Ok(());
        }
        if self.next_old.is_none() {
            self.next_old = self.old.next()?
        }
        let before_old = |bee: &(AppId, BeeId)| self.next_old.as_ref().is_none_or(|(old, _)| bee <= old);
        if let Some((bee, image)) = self.new.next_if(|(bee, _)| before_old(bee)) {
            bee_items(*bee, image).for_each(|item| self.writer.push(&encode_many(&item)));
            return Ok(());
        }
        let Some((bee, item)) = self.next_old.take() else {
            self.rest = Some(Box::new(self.state.items_after_bees()));
            return Ok(());
        };

        if self.last_old != Some(bee) {
            ascends(self.last_old.replace(bee), bee)?
        }
        match (self.changed.contains(&bee), self.retired.is_empty()) {
            (true, _) => {}
            (false, true) => self.writer.push(&item),
            (false, false) => self.forget_retired(bee, item)?,
        }
        Ok(())
    }

    /// Writes an old bee, of which this is the first item, without the retired lanes.
    fn forget_retired(&mut self, bee: (AppId, BeeId), mut item: Vec<u8>) -> Result<(), DecodeError> {
        let mut staged = crate::Staged::default();
        loop {
            match decode_many("a snapshot", &item)? {
                Item::Bee(.., part) => staged.add(&part),
                _ => return Err(error("an item of a bee is none")),
            }
            self.next_old = self.old.next()?;
            match self.next_old.take_if(|(next, _)| *next == bee) {
                Some((_, next)) => item = next,
                None => break,
            }
        }
        self.retired.iter().for_each(|lane| staged.bee.seen.forget(*lane));
        bee_items(bee, &staged.bee).for_each(|item| self.writer.push(&encode_many(&item)));
        Ok(())
    }
}

impl Iterator for MergedChunks<'_> {
    type Item = Result<Vec<u8>, DecodeError>;

    fn next(&mut self) -> Option<Result<Vec<u8>, DecodeError>> {
        while self.writer.full.is_empty() && !self.is_over {
            if let Err(why) = self.step() {
                self.is_over = true;
                return Some(Err(why));
            }
        }
        self.writer.full.pop_front().map(Ok)
    }
}

/// A bee, and an item of it, encoded.
type OldItem = ((AppId, BeeId), Vec<u8>);

/// Reads the items of bees in a snapshot.
struct OldBees<'a> {
    chunks: Box<dyn Iterator<Item = Vec<u8>> + 'a>,
    /// Checks the chunks.
    loader: SnapshotLoader,
    /// Items that have not been read, and a part of one.
    bytes: Vec<u8>,
    /// The place of the next item.
    at: usize,
}

impl OldBees<'_> {
    /// Returns the next item, encoded. Returns `None` behind the last item of a bee, when all chunks have been checked.
    fn next(&mut self) -> Result<Option<OldItem>, DecodeError> {
        while !self.loader.is_complete() {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let Some((length, more)) = split_integer(rest) else {
                self.more()?;
                continue;
            };
            if length > limits::ENCODED_BYTES_MAX as u64 {
                return Err(error(format!("an item of {length} bytes is too long")));
            }
            let Some(item) = more.get(..length as usize) else {
                self.more()?;
                continue;
            };
            self.at += rest.len() - more.len() + item.len();
            if let Some(bee) = bee_of(item) {
                return Ok(Some((bee, item.to_vec())));
            }
            // everything else comes from the new state
            if decode_front::<u32>(item).is_some_and(|(number, _)| number == END) {
                self.loader.section = Some(Section::End)
            }
        }
        Ok(None)
    }

    /// Reads the next chunk.
    fn more(&mut self) -> Result<(), DecodeError> {
        let number = self.loader.number;
        let chunk = self.chunks.next().ok_or_else(|| error(format!("chunk {number} is missing")))?;
        let (items, checksum) = self.loader.open(&chunk)?;
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(items);
        (self.loader.number, self.loader.checksum) = (number + 1, checksum);
        Ok(())
    }
}
