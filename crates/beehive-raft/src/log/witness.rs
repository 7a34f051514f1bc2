//! The second witness of the acknowledged end of the log.
//!
//! A log cannot tell by itself whether its last records were lost: a file without them is a valid log. The witness is a
//! small file that says how far the log has been acknowledged. It is written away from the path of commits, at most
//! [`WITNESS_EVERY`](crate::limits::WITNESS_EVERY) (and one sync) behind, so it tells a lost tail from one that was
//! never acknowledged, except for what was acknowledged just before a power loss.
//!
//! ```text
//! witness                             record
//!  0  8  magic, "BeehvWit"             0  8  checksum, seeded with the id of the folder
//!  8  4  format version                8  8  segment
//! 12  4  zero                         16  8  length of the segment
//! 16  8  id of the folder             24  8  chain there
//! 24  8  checksum                     32  8  group of the last record
//! 32     records, 40 bytes each
//! ```
//!
//! The record that reaches farthest counts. Each end is written twice if there is time, so that no single damaged record
//! weakens the witness. The file is replaced when it is long.

use crate::error::OpenError;
use crate::files::{AppendFile, Files};
use crate::log::format::{FORMAT, integer};
use crate::place::{self, Place};
use std::io;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

const MAGIC: [u8; 8] = *b"BeehvWit";
const HEADER: usize = 32;
const RECORD: usize = 40;

/// The witness is replaced when it is this long.
const LENGTH_MAX: u64 = 64 << 10;

/// An end of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct End {
    /// The segment.
    pub(crate) segment: u64,
    /// The length of the segment.
    pub(crate) length: u64,
    /// The chain there.
    pub(crate) chain: u64,
    /// The group of the last record.
    pub(crate) group: u64,
}

impl End {
    fn encode(&self, folder_id: u64) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        let fields = [self.segment, self.length, self.chain, self.group];
        for (at, field) in (8..).step_by(8).zip(fields) {
            bytes[at..at + 8].copy_from_slice(&field.to_le_bytes())
        }
        let checksum = xxh3_64_with_seed(&bytes[8..], folder_id);
        bytes[..8].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8], folder_id: u64) -> Option<End> {
        let is_whole = integer::<8>(bytes, 0) == xxh3_64_with_seed(&bytes[8..], folder_id);
        let [segment, length, chain, group] = [8, 16, 24, 32].map(|at| integer::<8>(bytes, at));
        is_whole.then_some(End { segment, length, chain, group })
    }
}

fn header(folder_id: u64) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    bytes[16..24].copy_from_slice(&folder_id.to_le_bytes());
    let checksum = xxh3_64(&bytes[..24]);
    bytes[24..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Reads the witness of a folder. Returns `None` if there is none.
pub(crate) fn read(files: &dyn Files, folder: &Path, folder_id: u64) -> Result<Option<End>, OpenError> {
    let path = place::witness(folder);
    let bytes = match files.read(&path, 0, 2 * LENGTH_MAX as usize) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(OpenError::io(&path, "read", error)),
    };

    let damaged = |what: &str| OpenError::damaged(&path, 0, what);
    let head = bytes.get(..HEADER).ok_or_else(|| damaged("the file ends in its header"))?;
    if head[..8] != MAGIC || integer::<8>(head, 24) != xxh3_64(&head[..24]) {
        return Err(damaged("the header is wrong"));
    }
    match integer::<4>(head, 8) as u32 {
        FORMAT => {}
        version => return Err(OpenError::Newer { file: path, version }),
    }
    if head[16..24] != folder_id.to_le_bytes() {
        return Err(OpenError::OtherFolder { file: path });
    }

    let (records, _) = bytes[HEADER..].as_chunks::<RECORD>();
    let ends = records.iter().filter_map(|record| End::decode(record, folder_id));
    ends.max().map(Some).ok_or_else(|| damaged("it has no valid record"))
}

/// The open witness.
#[derive(Debug)]
pub(crate) struct Witness {
    place: Place,
    folder_id: u64,
    /// The file and its length. `None` after an error: then the file is replaced.
    file: Option<(Box<dyn AppendFile>, u64)>,
}

impl Witness {
    /// Replaces the witness of a folder by one that says `end`, in one step.
    pub(crate) fn create(place: &Place, folder_id: u64, end: End) -> io::Result<Witness> {
        let mut witness = Witness { place: place.clone(), folder_id, file: None };
        witness.replace(end)?;
        Ok(witness)
    }

    /// Records an end `times` times, and makes it permanent.
    pub(crate) fn write(&mut self, end: End, times: usize) -> io::Result<()> {
        let Some((mut file, length)) = self.file.take().filter(|(_, length)| *length < LENGTH_MAX) else {
            return self.replace(end);
        };
        let bytes = end.encode(self.folder_id).repeat(times);
        file.append(&bytes)?;
        file.sync()?;
        self.file = Some((file, length + bytes.len() as u64));
        Ok(())
    }

    fn replace(&mut self, end: End) -> io::Result<()> {
        let bytes = [&header(self.folder_id)[..], &end.encode(self.folder_id).repeat(2)].concat();
        let path: PathBuf = place::witness(&self.place.folder);
        self.file = Some((self.place.write_whole(&path, &[&bytes])?, bytes.len() as u64));
        Ok(())
    }
}
