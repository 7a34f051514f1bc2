//! Checkpoints: the state of every log at the border of two segments, so that the segments before it can be removed.
//!
//! A checkpoint is made from files that nobody changes any more: the checkpoint before it, and the finished segments
//! behind that. The hive, its memory and the end of the log have no part in it. It has its name only when it is complete and
//! synced, and only then is a segment removed, so no crash leaves less than the whole log. See `compaction` for how it is
//! made, and what is in memory meanwhile. It is written as a whole. Stores that change rows in place (sled, redb, fjall) take
//! more time and more disk than that for as many bees as anybody has measured: see `benches/README.md`.
//!
//! ```text
//! checkpoint-00000000000000000007         piece
//!  0  8  magic, "BeehvChk"                 0  4  length of what follows the header of the piece
//!  8  4  format version                    4  2  log, or 65535: the last piece
//! 12  4  zero                              6     a chunk of the log's snapshot, or the seal
//! 16  8  id of the folder
//! 24  8  first segment not covered
//! 32  8  chain before that segment
//! 40  8  group before that segment
//! 48  8  checksum of the header
//! 56     pieces
//! ```
//!
//! The chunks are those of [`LogState::chunks`], in order. Each has a checksum of its own, which covers its contents and
//! the chunk before it. The seal, 8 bytes, is the XXH3 hash, seeded with the checksum of the header, of the headers of all
//! pieces before it and the checksums of their chunks. So the contents are hashed once, and no piece can be lost, repeated
//! or exchanged.

use crate::error::OpenError;
use crate::files::AppendFile;
use crate::log::compaction::Bees;
use crate::log::format::{FORMAT, integer};
use crate::log::witness::End;
use crate::place::{self, Place};
use beehive_protocol::{DecodeError, LaneId, LogState, SnapshotLoader};
use std::io;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

const MAGIC: [u8; 8] = *b"BeehvChk";
const HEADER: usize = 56;
const PIECE_HEADER: usize = 6;
const SEAL: usize = 8;

/// The log of the last piece.
const LAST: u16 = u16::MAX;

/// Maximum length of a chunk. A longer piece is not read.
const CHUNK_BYTES: usize = 256 << 10;

/// The file is written, and read, in parts of about this size.
const PART_BYTES: usize = 1 << 20;

/// A checkpoint in memory.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) states: Vec<LogState>,
    /// The end of the log that it covers: of the last segment, without its length.
    pub(crate) end: End,
    /// The length of the file.
    pub(crate) bytes: u64,
}

fn header(folder_id: u64, end: End) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    let fields = [folder_id, end.segment + 1, end.chain, end.group];
    for (at, field) in (16..).step_by(8).zip(fields) {
        bytes[at..at + 8].copy_from_slice(&field.to_le_bytes())
    }
    let checksum = xxh3_64(&bytes[..48]);
    bytes[48..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Writes the checkpoint that covers the log up to `end`, the end of a segment. Returns the length of the file.
pub(crate) fn write(place: &Place, folder_id: u64, states: &[LogState], end: End) -> io::Result<u64> {
    write_to(place, &place::checkpoint(&place.folder, end.segment + 1), &[], folder_id, states, end)
}

/// The changes since a checkpoint, for each log.
#[derive(Clone, Copy)]
pub(crate) struct Changed<'a> {
    /// The states, of which only the bees in `bees` are loaded.
    pub(crate) states: &'a [LogState],
    pub(crate) bees: &'a Bees,
    /// The lanes that all bees have forgotten.
    pub(crate) retired: &'a [Vec<LaneId>],
}

/// Same as [`write`], with the bees that are not loaded as they are in checkpoint `segment`.
pub(crate) fn write_changed(
    place: &Place,
    folder_id: u64,
    segment: u64,
    Changed { states, bees, retired }: Changed,
    end: End,
) -> io::Result<u64> {
    let mut old = Pieces::open(place, segment).map_err(io::Error::other)?;
    let path = place::checkpoint(&place.folder, end.segment + 1);
    write_file(place, &path, &[], header(folder_id, end), |push| {
        for (log, ((state, bees), retired)) in (0..).zip(states.iter().zip(bees).zip(retired)) {
            let mut failed = None;
            let chunks = std::iter::from_fn(|| {
                old.next_of(log).unwrap_or_else(|why| {
                    failed = Some(why);
                    None
                })
            });
            let written = state
                .merged_chunks(chunks, bees, retired, CHUNK_BYTES)
                .try_for_each(|chunk| push(log, &chunk.map_err(io::Error::other)?));
            // a file that cannot be read also looks like one in which chunks are missing
            failed.map_or(written, |why| Err(io::Error::other(why)))?
        }
        Ok(())
    })
}

/// Same as [`write`], to another file in the folder, behind `head`.
pub(crate) fn write_to(
    place: &Place,
    path: &Path,
    head: &[u8],
    folder_id: u64,
    states: &[LogState],
    end: End,
) -> io::Result<u64> {
    write_file(place, path, head, header(folder_id, end), |push| {
        for (log, state) in (0..).zip(states) {
            state.chunks(CHUNK_BYTES).try_for_each(|chunk| push(log, &chunk))?
        }
        Ok(())
    })
}

/// Adds a chunk of a log to a file.
type Push<'a> = dyn FnMut(u16, &[u8]) -> io::Result<()> + 'a;

/// Writes a file that begins with `head`, and has the chunks that `chunks` adds.
fn write_file(
    place: &Place,
    path: &Path,
    head: &[u8],
    header: [u8; HEADER],
    chunks: impl FnOnce(&mut Push) -> io::Result<()>,
) -> io::Result<u64> {
    let (unfinished, mut file) = place.begin(path)?;
    let written = file
        .append(head)
        .and_then(|()| write_pieces(&mut *file, header, chunks))
        .and_then(|bytes| place.finish(&unfinished, &mut *file, path).map(|()| head.len() as u64 + bytes));
    if written.is_err() {
        // if this fails as well, the next start removes the file
        let _ = place.files.remove(&unfinished);
    }
    written
}

fn write_pieces(
    file: &mut dyn AppendFile,
    head: [u8; HEADER],
    chunks: impl FnOnce(&mut Push) -> io::Result<()>,
) -> io::Result<u64> {
    let mut seal = Xxh3::with_seed(integer::<8>(&head, 48));
    let (mut buffer, mut written) = (head.to_vec(), 0);
    let mut push = |log: u16, content: &[u8]| -> io::Result<()> {
        buffer.extend_from_slice(&(content.len() as u32).to_le_bytes());
        buffer.extend_from_slice(&log.to_le_bytes());
        buffer.extend_from_slice(content);
        if buffer.len() < PART_BYTES && log != LAST {
            return Ok(());
        }
        file.append(&buffer)?;
        written += buffer.len() as u64;
        buffer.clear();
        Ok(())
    };

    chunks(&mut |log, chunk| {
        seal_piece(&mut seal, log, chunk);
        push(log, chunk)
    })?;
    push(LAST, &seal.digest().to_le_bytes())?;
    Ok(written)
}

/// Adds a piece to the seal. The chunk ends with its checksum.
fn seal_piece(seal: &mut Xxh3, log: u16, chunk: &[u8]) {
    seal.update(&(chunk.len() as u32).to_le_bytes());
    seal.update(&log.to_le_bytes());
    seal.update(chunk.last_chunk::<8>().map_or(chunk, |checksum| checksum))
}

/// Reads a file piece by piece.
struct Reader<'a> {
    place: &'a Place,
    path: PathBuf,
    /// Where `buffer` begins in the file.
    offset: u64,
    buffer: Vec<u8>,
    /// The place in the buffer.
    at: usize,
}

impl Reader<'_> {
    fn new<'a>(place: &'a Place, path: &Path, offset: u64) -> Reader<'a> {
        Reader { place, path: path.to_path_buf(), offset, buffer: Vec::new(), at: 0 }
    }

    /// Reads the header of a piece: its log, and the length of its content.
    fn next_piece(&mut self) -> Result<(u16, usize), OpenError> {
        let head: [u8; PIECE_HEADER] = self.next(PIECE_HEADER)?.try_into().unwrap_or([0; PIECE_HEADER]);
        let (length, log) = (integer::<4>(&head, 0) as usize, integer::<2>(&head, 4) as u16);
        match length > CHUNK_BYTES || (log == LAST && length != SEAL) {
            true => Err(self.damaged("the length of a piece is impossible")),
            false => Ok((log, length)),
        }
    }

    fn damaged(&self, what: impl Into<String>) -> OpenError {
        OpenError::damaged(&self.path, self.offset as usize + self.at, what)
    }

    /// Returns the next `length` bytes.
    fn next(&mut self, length: usize) -> Result<&[u8], OpenError> {
        if self.buffer.len() - self.at < length {
            self.buffer.drain(..self.at);
            (self.offset, self.at) = (self.offset + self.at as u64, 0);
            let wanted = (length - self.buffer.len()).max(PART_BYTES);
            let more = self.place.files.read(&self.path, self.offset + self.buffer.len() as u64, wanted);
            self.buffer.extend(more.map_err(|error| OpenError::io(&self.path, "read", error))?)
        }
        let start = self.at;
        match self.buffer.get(start..start + length) {
            Some(bytes) => {
                self.at += length;
                Ok(bytes)
            }
            None => Err(OpenError::damaged(&self.path, self.offset as usize + start, "the file ends early")),
        }
    }
}

/// The pieces of a checkpoint that has been checked.
struct Pieces<'a> {
    reader: Reader<'a>,
    /// The next piece, if it has been read.
    next: Option<(u16, Vec<u8>)>,
}

impl Pieces<'_> {
    fn open(place: &Place, segment: u64) -> Result<Pieces<'_>, OpenError> {
        let mut reader = Reader::new(place, &place::checkpoint(&place.folder, segment), 0);
        reader.next(HEADER)?;
        Ok(Pieces { reader, next: None })
    }

    /// Returns the next piece if it belongs to this log.
    fn next_of(&mut self, log: u16) -> Result<Option<Vec<u8>>, OpenError> {
        if self.next.is_none() {
            let (log, length) = self.reader.next_piece()?;
            self.next = Some((log, self.reader.next(length)?.to_vec()))
        }
        Ok(self.next.take_if(|(next, _)| *next == log).map(|(_, chunk)| chunk))
    }
}

/// Returns the end of the log that a checkpoint covers.
pub(crate) fn end(place: &Place, folder_id: u64, segment: u64) -> Result<End, OpenError> {
    let path = place::checkpoint(&place.folder, segment);
    let mut reader = Reader::new(place, &path, 0);
    check_header(&reader.next(HEADER)?.try_into().unwrap_or([0; HEADER]), &path, folder_id)
}

/// Reads the checkpoint that covers all segments before `segment`, without the bees that are not in `bees`.
pub(crate) fn read_only(
    place: &Place,
    folder_id: u64,
    segment: u64,
    bees: &Bees,
) -> Result<Loaded, OpenError> {
    let loaders = bees.iter().cloned().map(SnapshotLoader::only).collect();
    read_with(place, &place::checkpoint(&place.folder, segment), 0, (folder_id, loaders), segment)
}

/// Reads the checkpoint that covers all segments before `segment`.
pub(crate) fn read(place: &Place, key: (u64, u16), segment: u64) -> Result<Loaded, OpenError> {
    read_from(place, &place::checkpoint(&place.folder, segment), 0, key, segment)
}

/// Same as [`read`], from another file, in which the checkpoint begins at `offset`.
pub(crate) fn read_from(
    place: &Place,
    path: &Path,
    offset: u64,
    (folder_id, logs): (u64, u16),
    segment: u64,
) -> Result<Loaded, OpenError> {
    let loaders = (0..logs).map(|_| SnapshotLoader::default()).collect();
    read_with(place, path, offset, (folder_id, loaders), segment)
}

fn read_with(
    place: &Place,
    path: &Path,
    offset: u64,
    (folder_id, mut loaders): (u64, Vec<SnapshotLoader>),
    segment: u64,
) -> Result<Loaded, OpenError> {
    let logs = loaders.len();
    let mut reader = Reader::new(place, path, offset);
    let head: [u8; HEADER] = reader.next(HEADER)?.try_into().unwrap_or([0; HEADER]);
    let end = check_header(&head, path, folder_id)?;
    if end.segment + 1 != segment {
        return Err(OpenError::damaged(
            path,
            offset as usize + 24,
            "it is another checkpoint, under the name of this one",
        ));
    }

    let mut seal = Xxh3::with_seed(integer::<8>(&head, 48));
    loop {
        let (log, length) = reader.next_piece()?;
        let content = reader.next(length)?;
        if log == LAST {
            match integer::<8>(content, 0) == seal.digest() {
                true => break,
                false => return Err(reader.damaged("the seal is wrong")),
            }
        }

        let added = match loaders.get_mut(usize::from(log)) {
            Some(loader) => loader.add(content).map_err(|why| why.to_string()),
            None => Err(format!("a piece of log {log}, although there are {logs} logs")),
        };
        seal_piece(&mut seal, log, content);
        added.map_err(|why| reader.damaged(why))?
    }

    let states: Result<Vec<LogState>, DecodeError> =
        loaders.into_iter().map(SnapshotLoader::finish).collect();
    let states = states.map_err(|why| reader.damaged(why.to_string()))?;
    let bytes = reader.offset + reader.at as u64;
    match place.files.length(path).map_err(|error| OpenError::io(path, "read", error))? {
        length if length == bytes => Ok(Loaded { states, end, bytes }),
        _ => Err(reader.damaged("something follows the last piece")),
    }
}

fn check_header(head: &[u8; HEADER], path: &Path, folder_id: u64) -> Result<End, OpenError> {
    if head[..8] != MAGIC || integer::<8>(head, 48) != xxh3_64(&head[..48]) {
        return Err(OpenError::damaged(path, 0, "the header is wrong"));
    }
    match integer::<4>(head, 8) as u32 {
        FORMAT => {}
        version => return Err(OpenError::Newer { file: path.to_path_buf(), version }),
    }
    if integer::<8>(head, 16) != folder_id {
        return Err(OpenError::OtherFolder { file: path.to_path_buf() });
    }
    let [segment, chain, group] = [24, 32, 40].map(|at| integer::<8>(head, at));
    Ok(End { segment: segment.saturating_sub(1), length: 0, chain, group })
}
