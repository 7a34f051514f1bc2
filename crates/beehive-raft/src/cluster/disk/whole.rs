//! Files of records that are written as a whole: checkpoints and snapshots.
//!
//! ```text
//!  0  8  magic, "BeehvSet"
//!  8  4  format version
//! 12  4  1 = checkpoint, 2 = snapshot
//! 16  8  id of the folder
//! 24  8  first segment not covered    group
//! 32  8  chain before that segment    number of the snapshot
//! 40  8  group before that segment    zero
//! 48  8  checksum of the header
//! 56     records, chained from the checksum of the header; the last one is the end
//! ```
//!
//! A file has its name only when it is complete and synced.

use super::record::{self, END, Logs};
use crate::cluster::types::GroupId;
use crate::error::OpenError;
use crate::files::AppendFile;
use crate::log::format::{self, FORMAT, Record, integer, push_record, seal};
use crate::log::witness::End;
use crate::place::Place;
use std::io;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: [u8; 8] = *b"BeehvSet";
const HEADER: usize = 56;

/// The file is written in parts of about this size.
const PART_BYTES: usize = 1 << 20;

/// What a file is, and the three fields of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Title {
    /// The logs of all groups at the end of a segment.
    Checkpoint(End),
    /// A snapshot.
    Snapshot(GroupId, u64),
}

impl Title {
    fn fields(self) -> (u32, [u64; 3]) {
        match self {
            Title::Checkpoint(end) => (1, [end.segment + 1, end.chain, end.group]),
            Title::Snapshot(group, number) => (2, [group.0.into(), number, 0]),
        }
    }

    fn header(self, folder_id: u64) -> [u8; HEADER] {
        let (kind, fields) = self.fields();
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[12..16].copy_from_slice(&kind.to_le_bytes());
        for (at, field) in (16..).step_by(8).zip([folder_id].into_iter().chain(fields)) {
            bytes[at..at + 8].copy_from_slice(&field.to_le_bytes())
        }
        let checksum = xxh3_64(&bytes[..48]);
        bytes[48..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }
}

/// A file that is being written.
pub(crate) struct Sink<'a> {
    file: &'a mut dyn AppendFile,
    buffer: Vec<u8>,
    chain: u64,
    part: u64,
    bytes: u64,
}

impl Sink<'_> {
    /// Appends records. `push` appends them to a buffer.
    pub(crate) fn push(&mut self, push: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        push(&mut self.buffer);
        if self.buffer.len() < PART_BYTES { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.part += 1;
        self.chain = seal(&mut self.buffer, self.part, self.chain, |_, _| {});
        self.file.append(&self.buffer)?;
        self.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// Writes a file, syncs it and gives it its name. `fill` appends its records. Returns its length.
pub(crate) fn write(
    place: &Place,
    path: &Path,
    folder_id: u64,
    title: Title,
    fill: impl FnOnce(&mut Sink) -> io::Result<()>,
) -> io::Result<u64> {
    let (unfinished, mut file) = place.begin(path)?;
    let header = title.header(folder_id);
    let written = file.append(&header).and_then(|()| {
        let chain = integer::<8>(&header, 48);
        let mut sink = Sink { file: &mut *file, buffer: Vec::new(), chain, part: 0, bytes: HEADER as u64 };
        fill(&mut sink)?;
        push_record(&mut sink.buffer, END, 0, |_| {});
        sink.flush()?;
        let bytes = sink.bytes;
        place.finish(&unfinished, &mut *file, path)?;
        Ok(bytes)
    });
    if written.is_err() {
        // if this fails as well, the next start removes the file
        let _ = place.files.remove(&unfinished);
    }
    written
}

/// Writes a checkpoint: the logs at `end`, the end of a segment. Returns its length.
pub(crate) fn write_checkpoint(place: &Place, folder_id: u64, logs: &Logs, end: End) -> io::Result<u64> {
    let path = crate::place::checkpoint(&place.folder, end.segment + 1);
    write(place, &path, folder_id, Title::Checkpoint(end), |sink| {
        for (group, log) in logs {
            log.notes().try_for_each(|note| sink.push(|buffer| record::push_note(buffer, *group, &note)))?;
            let mut entries = log.entries.iter();
            entries.try_for_each(|entry| sink.push(|buffer| record::push_entry(buffer, *group, entry)))?
        }
        Ok(())
    })
}

/// Reads a file, and checks all of it. `title` says what it should be; of a checkpoint, only the segment is compared. Calls
/// `each` with each record but the last. Returns what the file is, and its length.
pub(crate) fn read(
    place: &Place,
    path: &Path,
    folder_id: u64,
    title: Title,
    mut each: impl FnMut(&Record) -> Result<(), String>,
) -> Result<(Title, u64), OpenError> {
    let failed = |error| OpenError::io(path, "read", error);
    let length = place.files.length(path).map_err(failed)?;
    let bytes = place.files.read(path, 0, length as usize).map_err(failed)?;
    let damaged = |at: usize, what: &str| OpenError::damaged(path, at, what);

    let header = bytes.get(..HEADER).ok_or_else(|| damaged(0, "the file ends in its header"))?;
    let checksum = integer::<8>(header, 48);
    if header[..8] != MAGIC || checksum != xxh3_64(&header[..48]) {
        return Err(damaged(0, "the header is wrong"));
    }
    match integer::<4>(header, 8) as u32 {
        FORMAT => {}
        version => return Err(OpenError::Newer { file: path.to_path_buf(), version }),
    }
    if integer::<8>(header, 16) != folder_id {
        return Err(OpenError::OtherFolder { file: path.to_path_buf() });
    }
    let (kind, fields) = title.fields();
    let [first, second, third] = [24, 32, 40].map(|at| integer::<8>(header, at));
    let found = match title {
        Title::Checkpoint(_) => {
            let segment = first.saturating_sub(1);
            Title::Checkpoint(End { segment, length: 0, chain: second, group: third })
        }
        Title::Snapshot(..) => Title::Snapshot(GroupId(first as u32), second),
    };
    if integer::<4>(header, 12) as u32 != kind || first != fields[0] || (kind == 2 && found != title) {
        return Err(damaged(12, "it is another file, under the name of this one"));
    }

    let (mut at, mut chain) = (HEADER, checksum);
    loop {
        if at == bytes.len() {
            return Err(damaged(at, "the file ends early"));
        }
        let record = format::record(&bytes, at, chain).map_err(|what| damaged(at, what))?;
        (at, chain) = (record.end, record.chain);
        if record.colony == END {
            break;
        }
        each(&record).map_err(|what| damaged(record.start, &what))?
    }
    match at == bytes.len() {
        true => Ok((found, length)),
        false => Err(damaged(at, "something follows the last record")),
    }
}
