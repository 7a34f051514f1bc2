//! Snapshots: a [`LogState`] as a sequence of chunks of bounded size. A snapshot replaces the entries of a log up to
//! [`LogState::last`].
//!
//! ```text
//! chunk    := version (1 byte), number (8 bytes), bytes, checksum (8 bytes)
//! item     := length, bytes
//! snapshot := Start, [Place], Frozen.., Seen.., Bee.., Staged.., Outbox.., (Sweep, SweepCells..).., End
//! ```
//!
//! The bytes of all chunks, one after the other, are the items, whatever the size of the chunks. The length of an item is
//! a variable-length integer (see [`codec::append_integer`](crate::codec::append_integer)), and its bytes are one
//! [`Item`], encoded like a record. Chunks are numbered from 0, and their fixed-size integers are little-endian. The
//! checksum of a chunk is the XXH3 hash of everything before it in the chunk, seeded with the checksum of the chunk before
//! (0 for the first chunk). So chunks of two snapshots cannot be mixed.

mod merge;

pub use merge::MergedChunks;

use crate::codec::{append_integer, decode_front, decode_many, encode_many, split_integer};
use crate::stage_parts::divide;
use crate::{
    AppId, BeeId, BeeImage, CellId, DecodeError, DedupTable, Emit, Emits, LaneId, LogPlace, LogState,
    StagePart, Staged, Sweep, Waiting, limits,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The version of the format.
const VERSION: u8 = 1;

/// Number of bytes before the items.
const HEAD_BYTES: usize = size_of::<u8>() + size_of::<u64>();

/// Number of bytes after the items.
const CHECKSUM_BYTES: usize = size_of::<u64>();

/// Desired size of an item, in bytes. A larger row or message is an item of its own. The size is part of the format only
/// in so far as equal states have equal bytes.
const ITEM_BYTES: usize = 64 << 10;

/// Part of a state. In a snapshot, the items are in the order of these variants, except for [`Item::Place`], which was added
/// later, and comes after [`Item::Start`].
#[derive(Serialize, Deserialize)]
enum Item {
    /// The state, except for everything that is in the other items.
    Start(Box<LogState>),
    /// Some of the lanes of frozen bees.
    Frozen(Vec<LaneId>),
    /// Some of the messages that were consumed without a bee.
    Seen(DedupTable),
    /// Part of a bee. The first one is a [`StagePart::Bee`].
    Bee(AppId, BeeId, StagePart),
    /// Part of a bee that is about to move to the log. The first one is a [`StagePart::Bee`]. Before the part:
    /// [`Staged::parts`] and [`Staged::of`], which count the parts of the move.
    Staged(AppId, BeeId, (u32, u32), StagePart),
    /// Some of the messages in the outbox, in ascending order of their ids: [`Waiting::order`] of each, and the messages.
    Outbox(Vec<u64>, Emits),
    /// A sweep, without its open cells.
    Sweep(Box<Sweep>),
    /// Some of the open cells of the sweep before.
    SweepCells(Vec<CellId>),
    /// Nothing follows.
    End,
    /// [`LogState::place`], if there is one.
    Place(LogPlace),
}

/// The number of [`Item::Bee`] in its encoding. The app and the id follow it.
const BEE: u32 = 3;

/// The number of [`Item::End`] in its encoding.
const END: u32 = 8;

/// The position of an item in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Start,
    Place,
    Frozen,
    Seen,
    Bees,
    Staged,
    Outbox,
    Sweeps,
    End,
}

impl Item {
    fn section(&self) -> Section {
        match self {
            Item::Start(_) => Section::Start,
            Item::Place(_) => Section::Place,
            Item::Frozen(_) => Section::Frozen,
            Item::Seen(_) => Section::Seen,
            Item::Bee(..) => Section::Bees,
            Item::Staged(..) => Section::Staged,
            Item::Outbox(..) => Section::Outbox,
            Item::Sweep(_) | Item::SweepCells(_) => Section::Sweeps,
            Item::End => Section::End,
        }
    }
}

impl LogState {
    /// Returns a snapshot of the state, in chunks of at most `bytes_max` bytes. A chunk always contains at least one byte
    /// of the state, so it has at least 18 bytes. Equal states have equal chunks.
    ///
    /// Besides one chunk, the iterator keeps a copy of one part of the state in memory: about 64 KiB, or one row or message
    /// if that is larger. [`SnapshotLoader`] turns the chunks back into the state.
    ///
    /// # Panics
    ///
    /// [`SnapshotChunks::next`] panics if one part of the state takes more than
    /// [`ENCODED_BYTES_MAX`](limits::ENCODED_BYTES_MAX) bytes: a row or a message (neither fits into a record then), or the
    /// settings and shapes of all apps together.
    pub fn chunks(&self, bytes_max: usize) -> SnapshotChunks<'_> {
        let bees = self.bees.iter().flat_map(|(bee, image)| bee_items(*bee, image));
        let items = self.items_before_bees().chain(bees).chain(self.items_after_bees());
        let writer = Writer::new(bytes_max);
        SnapshotChunks { items: Box::new(items.map(|item| encode_many(&item))), writer, is_over: false }
    }

    /// Divides what is before the bees in a snapshot into items.
    fn items_before_bees(&self) -> impl Iterator<Item = Item> + Send + use<'_> {
        let LogState {
            last,
            bees: _,
            staged: _,
            frozen,
            outbox: _,
            sweeps: _,
            emitted,
            seen,
            newest,
            next_seqs,
            settings,
            shapes,
            known,
            untold,
            marker,
            now,
            place,
        } = self;
        let start = LogState {
            last: *last,
            emitted: *emitted,
            newest: newest.clone(),
            next_seqs: next_seqs.clone(),
            settings: settings.clone(),
            shapes: shapes.clone(),
            known: *known,
            untold: untold.clone(),
            marker: marker.clone(),
            now: *now,
            ..LogState::default()
        };

        let frozen = divide(frozen.iter().copied(), |_| size_of::<LaneId>(), ITEM_BYTES);
        std::iter::once(Item::Start(Box::new(start)))
            .chain(place.map(Item::Place))
            .chain(frozen.map(Item::Frozen))
            .chain(seen.parts(ITEM_BYTES).map(Item::Seen))
    }

    /// Divides what is behind the bees in a snapshot into items.
    fn items_after_bees(&self) -> impl Iterator<Item = Item> + Send + use<'_> {
        let LogState { staged, outbox, sweeps, .. } = self;
        debug_assert!(outbox.iter().all(|(id, waiting)| *id == waiting.emit.id), "the outbox is by id");
        debug_assert!(sweeps.iter().all(|(id, sweep)| *id == sweep.waiting.emit.id), "the sweeps are by id");
        let staged = staged.iter().flat_map(move |((app, bee), staged)| {
            let Staged { bee: image, outbox, parts, of } = staged;
            let all = StagePart::of_bee(image, &image.state, ITEM_BYTES);
            let all = all.chain(StagePart::of_outbox(outbox.iter().cloned(), ITEM_BYTES));
            all.map(|part| Item::Staged(*app, *bee, (*parts, *of), part))
        });
        let outbox = divide(outbox.values(), |waiting| waiting.emit.size(), ITEM_BYTES).map(|waiting| {
            let emits = waiting.iter().map(|waiting| waiting.emit.clone()).collect();
            Item::Outbox(waiting.iter().map(|waiting| waiting.order).collect(), emits)
        });
        let sweeps = sweeps.values().flat_map(move |sweep| {
            let Sweep { waiting, next, open, began_by } = sweep;
            let (waiting, next, began_by) = (waiting.clone(), *next, *began_by);
            let first = Sweep { waiting, next, open: BTreeSet::new(), began_by };
            let open = divide(open.iter().copied(), |_| size_of::<CellId>(), ITEM_BYTES);
            std::iter::once(Item::Sweep(Box::new(first))).chain(open.map(Item::SweepCells))
        });
        staged.chain(outbox).chain(sweeps).chain([Item::End])
    }
}

/// Divides a bee into items.
fn bee_items((app, bee): (AppId, BeeId), image: &BeeImage) -> impl Iterator<Item = Item> + Send + use<'_> {
    let parts = StagePart::of_bee(image, &image.state, ITEM_BYTES);
    parts.map(move |part| Item::Bee(app, bee, part))
}

/// Returns the bee of an encoded item that is a part of one.
fn bee_of(item: &[u8]) -> Option<(AppId, BeeId)> {
    let ((number, app, bee), _) = decode_front::<(u32, AppId, BeeId)>(item)?;
    (number == BEE).then_some((app, bee))
}

/// Divides encoded items into chunks.
struct Writer {
    /// Size of a chunk without its checksum.
    end: usize,
    /// The chunk that is not full.
    chunk: Vec<u8>,
    /// The full chunks.
    full: VecDeque<Vec<u8>>,
    /// Number of the next chunk.
    number: u64,
    /// The checksum of the previous chunk.
    checksum: u64,
}

impl Writer {
    fn new(bytes_max: usize) -> Writer {
        let end = bytes_max.saturating_sub(CHECKSUM_BYTES).max(HEAD_BYTES + 1);
        Writer { end, chunk: Vec::new(), full: VecDeque::new(), number: 0, checksum: 0 }
    }

    /// Adds an encoded item.
    fn push(&mut self, item: &[u8]) {
        let mut length = Vec::with_capacity(size_of::<u64>() + 1);
        append_integer(item.len() as u64, &mut length);
        self.push_bytes(&length);
        self.push_bytes(item)
    }

    fn push_bytes(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.chunk.len() == self.end {
                self.seal()
            }
            if self.chunk.is_empty() {
                self.chunk.reserve((self.end + CHECKSUM_BYTES).min(ITEM_BYTES));
                self.chunk.push(VERSION);
                self.chunk.extend_from_slice(&self.number.to_le_bytes())
            }
            let (now, later) = bytes.split_at(bytes.len().min(self.end - self.chunk.len()));
            self.chunk.extend_from_slice(now);
            bytes = later
        }
    }

    /// Ends the current chunk, if it has begun.
    fn seal(&mut self) {
        let mut chunk = std::mem::take(&mut self.chunk);
        if !chunk.is_empty() {
            self.number += 1;
            self.checksum = xxh3_64_with_seed(&chunk, self.checksum);
            chunk.extend_from_slice(&self.checksum.to_le_bytes());
            self.full.push_back(chunk)
        }
    }
}

/// The chunks of a snapshot: see [`LogState::chunks`].
pub struct SnapshotChunks<'a> {
    /// The encoded items.
    items: Box<dyn Iterator<Item = Vec<u8>> + Send + 'a>,
    writer: Writer,
    is_over: bool,
}

impl Iterator for SnapshotChunks<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        while self.writer.full.is_empty() && !self.is_over {
            match self.items.next() {
                Some(item) => self.writer.push(&item),
                None => {
                    self.is_over = true;
                    self.writer.seal()
                }
            }
        }
        self.writer.full.pop_front()
    }
}

impl std::fmt::Debug for SnapshotChunks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SnapshotChunks").field("number", &self.writer.number).finish_non_exhaustive()
    }
}

/// Builds a [`LogState`] from the chunks of its snapshot.
///
/// ```
/// # use beehive_protocol::{LogState, SnapshotLoader};
/// # let state = LogState::default();
/// let mut loader = SnapshotLoader::default();
/// for chunk in state.chunks(1 << 20) {
///     loader.add(&chunk)?;
/// }
/// assert_eq!(loader.finish()?, state);
/// # Ok::<(), beehive_protocol::DecodeError>(())
/// ```
#[derive(Debug, Default)]
pub struct SnapshotLoader {
    state: LogState,
    /// Bytes of an item whose end has not arrived.
    rest: Vec<u8>,
    /// Number of the next chunk.
    number: u64,
    /// The checksum of the previous chunk.
    checksum: u64,
    section: Option<Section>,
    /// The bee whose parts are arriving.
    bee: Option<((AppId, BeeId), Staged)>,
    /// The bees that the state gets. `None` for all.
    only: Option<BTreeSet<(AppId, BeeId)>>,
    /// Whether an intact chunk had wrong contents.
    is_wrong: bool,
}

fn error(why: impl Into<String>) -> DecodeError {
    DecodeError { what: "a snapshot", why: why.into() }
}

/// Splits off a fixed-size integer.
fn split_word(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (word, rest) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*word), rest))
}

impl SnapshotLoader {
    /// Builds a state without the bees that are not in `bees`.
    pub fn only(bees: BTreeSet<(AppId, BeeId)>) -> SnapshotLoader {
        SnapshotLoader { only: Some(bees), ..SnapshotLoader::default() }
    }

    /// Adds the next chunk.
    ///
    /// Besides the state itself, this allocates only a few times the size of the chunk, and space for one incomplete row or
    /// message, which has at most [`ENCODED_BYTES_MAX`](limits::ENCODED_BYTES_MAX) bytes.
    ///
    /// # Errors
    ///
    /// Refuses a chunk of another version, one that is not next, or one that is damaged. The loader is then unchanged, so
    /// the caller may add the right chunk. Also refuses a chunk whose checksum is right and whose contents are not; no
    /// further chunk can be added then.
    pub fn add(&mut self, chunk: &[u8]) -> Result<(), DecodeError> {
        let (items, checksum) = self.open(chunk)?;
        self.is_wrong = true;
        self.rest.extend_from_slice(items);
        let rest = std::mem::take(&mut self.rest);
        let used = self.add_items(&rest)?;
        self.is_wrong = false;

        self.rest = rest;
        self.rest.drain(..used);
        self.number += 1;
        self.checksum = checksum;
        Ok(())
    }

    /// Checks a chunk. Returns its items and its checksum.
    fn open<'a>(&self, chunk: &'a [u8]) -> Result<(&'a [u8], u64), DecodeError> {
        if self.is_wrong {
            return Err(error("an earlier chunk has wrong contents"));
        }
        let too_short = || error(format!("a chunk of {} bytes is too short", chunk.len()));
        let (version, rest) = chunk.split_first().ok_or_else(too_short)?;
        if *version != VERSION {
            return Err(error(format!(
                "it has version {version} of the format; this program reads version {VERSION}"
            )));
        }

        let (number, rest) = split_word(rest).ok_or_else(too_short)?;
        if number != self.number {
            return Err(error(format!("chunk {number} arrived instead of chunk {}", self.number)));
        }
        if self.is_complete() {
            return Err(error(format!("chunk {number} follows the last one")));
        }
        let end = rest.len().checked_sub(CHECKSUM_BYTES).ok_or_else(too_short)?;
        let (items, checksum) = rest.split_at(end);
        let (checksum, _) = split_word(checksum).ok_or_else(too_short)?;
        let checked = chunk.get(..HEAD_BYTES + end).unwrap_or_default();
        if xxh3_64_with_seed(checked, self.checksum) != checksum {
            return Err(error(format!("chunk {number} is damaged, or belongs to another snapshot")));
        }
        Ok((items, checksum))
    }

    /// Adds all complete items. Returns the number of bytes that they have.
    fn add_items(&mut self, bytes: &[u8]) -> Result<usize, DecodeError> {
        let mut rest = bytes;
        while let Some((length, more)) = split_integer(rest) {
            if self.is_complete() {
                break;
            }
            if length > limits::ENCODED_BYTES_MAX as u64 {
                return Err(error(format!("an item of {length} bytes is too long")));
            }
            let Some((item, more)) = more.split_at_checked(length as usize) else { break };
            let is_left_out = |only: &BTreeSet<_>| bee_of(item).is_some_and(|bee| !only.contains(&bee));
            match self.only.as_ref().is_some_and(is_left_out) {
                true => self.enter(Section::Bees)?,
                false => self.add_item(decode_many("a snapshot", item)?)?,
            }
            rest = more
        }

        if self.is_complete() && !rest.is_empty() {
            return Err(error(format!("{} bytes follow the end", rest.len())));
        }
        Ok(bytes.len() - rest.len())
    }

    /// Notes the section of the next item.
    fn enter(&mut self, section: Section) -> Result<(), DecodeError> {
        let before = self.section;
        let starts = section == Section::Start;
        if before.is_none() != starts || before.is_some_and(|before| section < before) {
            return Err(error(format!("its section {section:?} follows {before:?}")));
        }
        if before != Some(section) {
            self.end_bee()
        }
        self.section = Some(section);
        Ok(())
    }

    fn add_item(&mut self, item: Item) -> Result<(), DecodeError> {
        self.enter(item.section())?;
        match item {
            Item::Start(state) => {
                let LogState { bees, staged, frozen, outbox, sweeps, seen, .. } = &*state;
                let (bees, messages) = (bees.len() + staged.len(), outbox.len() + sweeps.len());
                if bees + messages + frozen.len() > 0 || !seen.is_empty() {
                    return Err(error("its start contains what belongs into other sections"));
                }
                self.state = *state
            }
            Item::Place(place) => self.state.place = Some(place),
            Item::Frozen(lanes) => self.state.frozen.extend(lanes),
            Item::Seen(seen) => self.state.seen.absorb(seen),
            Item::Bee(.., StagePart::Outbox(_)) => {
                return Err(error("a bee that is not moving has an outbox of its own"));
            }
            Item::Bee(app, bee, part) => self.add_part((app, bee), (0, 0), part)?,
            Item::Staged(app, bee, counts, part) => self.add_part((app, bee), counts, part)?,
            Item::Outbox(orders, emits) => {
                if orders.len() != emits.len() {
                    return Err(error("its outbox has more messages than positions, or fewer"));
                }
                for (order, emit) in orders.into_iter().zip(emits.0) {
                    let last = self.state.outbox.last_key_value().map(|(id, _)| *id);
                    ascends(last, emit.id)?;
                    self.state.outbox.insert(emit.id, Waiting { order, emit });
                }
            }
            Item::Sweep(sweep) => {
                let Emit { id, .. } = sweep.waiting.emit;
                ascends(self.state.sweeps.last_key_value().map(|(id, _)| *id), id)?;
                self.state.sweeps.insert(id, *sweep);
            }
            Item::SweepCells(cells) => match self.state.sweeps.last_entry() {
                Some(mut last) => last.get_mut().open.extend(cells),
                None => return Err(error("it has cells of no sweep")),
            },
            Item::End => {}
        }
        Ok(())
    }

    fn add_part(
        &mut self,
        bee: (AppId, BeeId),
        (parts, of): (u32, u32),
        part: StagePart,
    ) -> Result<(), DecodeError> {
        match (&mut self.bee, part) {
            (last, StagePart::Bee(image)) => {
                ascends(last.as_ref().map(|(bee, _)| *bee), bee)?;
                self.end_bee();
                self.bee = Some((bee, Staged { bee: image, outbox: Emits::default(), parts, of }))
            }
            (Some((last, staged)), part) if *last == bee => {
                if (staged.parts, staged.of) != (parts, of) {
                    return Err(error(format!("the counts of {}'s parts differ", bee.1)));
                }
                staged.add(&part)
            }
            _ => return Err(error(format!("the first part of {} is missing", bee.1))),
        }
        Ok(())
    }

    /// Adds the bee whose parts have arrived.
    fn end_bee(&mut self) {
        match (self.bee.take(), self.section) {
            (Some((bee, staged)), Some(Section::Staged)) => {
                self.state.staged.insert(bee, staged);
            }
            (Some((bee, staged)), _) => {
                self.state.bees.insert(bee, staged.bee);
            }
            (None, _) => {}
        }
    }

    /// Checks whether all chunks have been added.
    pub fn is_complete(&self) -> bool {
        self.section == Some(Section::End)
    }

    /// Returns the state.
    ///
    /// # Errors
    ///
    /// Returns an error if chunks are missing, or a chunk had wrong contents.
    pub fn finish(self) -> Result<LogState, DecodeError> {
        match self.is_complete() && !self.is_wrong {
            true => Ok(self.state),
            false => Err(error(format!("chunk {} is missing", self.number))),
        }
    }
}

/// Checks that `next` comes after `last`.
fn ascends<K: Ord>(last: Option<K>, next: K) -> Result<(), DecodeError> {
    match last.is_none_or(|last| last < next) {
        true => Ok(()),
        false => Err(error("its bees, messages or sweeps are not in order")),
    }
}
