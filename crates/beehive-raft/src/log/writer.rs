//! The end of the log: writes groups of records into the current segment, and begins the next one.

use crate::files::AppendFile;
use crate::log::format::{SEGMENT_HEADER, SegmentHeader, seal};
use crate::log::witness::End;
use crate::place::{self, Place};
use std::io::{self, ErrorKind};

/// Why a group was not written.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// The disk is full. Nothing of the group is in the log, and it may be written again.
    Full(io::Error),
    /// Something failed, and nobody knows what is on disk. Nothing more must be written.
    Failed(&'static str, io::Error),
}

/// Checks whether an operation failed because the disk is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

/// Writes the log.
#[derive(Debug)]
pub(crate) struct Writer {
    place: Place,
    folder_id: u64,
    incarnation: u64,
    segment_bytes: u64,
    file: Box<dyn AppendFile>,
    /// The acknowledged end.
    end: End,
}

impl Writer {
    /// Begins a segment behind `end`, the end of the log so far.
    pub(crate) fn begin(
        place: &Place,
        (folder_id, incarnation): (u64, u64),
        end: End,
        segment_bytes: u64,
    ) -> io::Result<Writer> {
        let (file, end) = segment_after(place, (folder_id, incarnation), end)?;
        Ok(Writer { place: place.clone(), folder_id, incarnation, segment_bytes, file, end })
    }

    /// Returns the acknowledged end.
    pub(crate) fn end(&self) -> End {
        self.end
    }

    /// Writes a group of records, made with [`push_record`](crate::log::format::push_record), and makes it permanent. Calls `each` with the
    /// colony and the number of each entry.
    pub(crate) fn write(&mut self, group: &mut [u8], each: impl FnMut(u16, u64)) -> Result<(), WriteError> {
        if self.end.length >= self.segment_bytes {
            let begun = segment_after(&self.place, (self.folder_id, self.incarnation), self.end);
            (self.file, self.end) = begun.map_err(|error| match is_full(&error) {
                true => WriteError::Full(error),
                false => WriteError::Failed("begin a segment", error),
            })?
        }

        let number = self.end.group + 1;
        let chain = seal(group, number, self.end.chain, each);
        match self.file.append(group) {
            Ok(()) => {}
            Err(error) if is_full(&error) => {
                // a part of the group may be in the file
                return Err(match self.file.truncate(self.end.length) {
                    Ok(()) => WriteError::Full(error),
                    Err(error) => WriteError::Failed("cut off what a full disk left", error),
                });
            }
            Err(error) => return Err(WriteError::Failed("append", error)),
        }

        // The system may report a failed sync only once, and forget what it could not write. So a second sync that
        // succeeds proves nothing, and there is none.
        self.file.sync().map_err(|error| WriteError::Failed("sync", error))?;
        self.end = End { chain, group: number, length: self.end.length + group.len() as u64, ..self.end };
        Ok(())
    }
}

/// Creates the segment behind `end`.
fn segment_after(
    place: &Place,
    (folder_id, incarnation): (u64, u64),
    end: End,
) -> io::Result<(Box<dyn AppendFile>, End)> {
    let segment = end.segment + 1;
    let header = SegmentHeader { folder_id, incarnation, segment, chain: end.chain }.encode();
    let file = place.write_whole(&place::segment(&place.folder, segment), &[&header])?;
    Ok((file, End { segment, length: SEGMENT_HEADER as u64, ..end }))
}
