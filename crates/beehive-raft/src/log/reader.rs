//! Reads segments, and decides what an invalid record at the end of the log means.

use crate::error::OpenError;
use crate::limits::SEGMENT_BYTES_MAX;
use crate::log::format::{self, Record, SEGMENT_HEADER, SegmentHeader, Unfit};
use crate::log::witness::End;
use crate::place::{self, Place};
use std::path::{Path, PathBuf};

/// A segment in memory.
#[derive(Debug)]
pub(crate) struct Segment {
    path: PathBuf,
    number: u64,
    pub(crate) header: SegmentHeader,
    bytes: Vec<u8>,
}

/// The end of the valid records of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Valid {
    /// The end.
    pub(crate) end: End,
    /// What is wrong behind it. `None` if the segment ends there.
    pub(crate) wrong: Option<&'static str>,
    /// The group to which the record behind the end would belong.
    next_group: u64,
}

impl Segment {
    /// Reads the segment behind `end`. The header is checked, the records are not.
    pub(crate) fn read(place: &Place, folder_id: u64, end: End) -> Result<Segment, OpenError> {
        let number = end.segment + 1;
        let path = place::segment(&place.folder, number);
        let failed = |error| OpenError::io(&path, "read", error);
        if place.files.length(&path).map_err(failed)? > SEGMENT_BYTES_MAX {
            return Err(OpenError::damaged(&path, 0, "the file is longer than any segment"));
        }

        let bytes = place.files.read(&path, 0, SEGMENT_BYTES_MAX as usize).map_err(failed)?;
        let header = SegmentHeader::decode(&bytes).map_err(|unfit| match unfit {
            Unfit::Newer(version) => OpenError::Newer { file: path.clone(), version },
            Unfit::Damaged(what) => OpenError::damaged(&path, 0, what),
        })?;
        if header.folder_id != folder_id {
            return Err(OpenError::OtherFolder { file: path });
        }
        if header.segment != number {
            let what = format!("it is segment {}, under the name of another", header.segment);
            return Err(OpenError::damaged(&path, 32, what));
        }
        Ok(Segment { path, number, header, bytes })
    }

    /// Checks that this segment continues the file before it, which is a segment or a checkpoint.
    pub(crate) fn continues(&self, end: End, before: &Path) -> Result<(), OpenError> {
        if self.header.chain == end.chain {
            return Ok(());
        }
        let what = format!("what is missing behind it is in no file, as segment {} shows", self.number);
        Err(OpenError::damaged(before, end.length as usize, what))
    }

    /// Calls `each` with each valid record, up to the first invalid one.
    ///
    /// # Errors
    ///
    /// Returns the error of `each`.
    pub(crate) fn records<'a>(
        &'a self,
        before: End,
        mut each: impl FnMut(&Record<'a>) -> Result<(), OpenError>,
    ) -> Result<Valid, OpenError> {
        let mut end = End { segment: self.number, length: SEGMENT_HEADER as u64, ..before };
        let mut next_group = before.group + 1;
        while (end.length as usize) < self.bytes.len() {
            let record = match format::record(&self.bytes, end.length as usize, end.chain) {
                Ok(record) => record,
                Err(what) => return Ok(Valid { end, wrong: Some(what), next_group }),
            };
            each(&record)?;
            end = End { length: record.end as u64, chain: record.chain, group: record.group, ..end };
            next_group = record.group + u64::from(record.is_last_of_group)
        }
        // a segment may end with a part of a group, which was never acknowledged, but need not be lost
        Ok(Valid { end, wrong: None, next_group })
    }

    /// Returns an error for what is wrong behind the valid records.
    pub(crate) fn damaged(&self, valid: &Valid, what: &str, how: &str) -> OpenError {
        OpenError::damaged(&self.path, valid.end.length as usize, format!("{what}, {how}"))
    }

    /// Checks that nothing behind the valid records was ever acknowledged, as far as it can be known.
    ///
    /// # Errors
    ///
    /// Returns an error if the witness or a later group proves the opposite.
    pub(crate) fn nothing_lost(&self, valid: &Valid, witness: End) -> Result<(), OpenError> {
        let what = valid.wrong.unwrap_or("the file ends");
        if witness.segment == self.number && witness.length > valid.end.length {
            let how = format!("although everything up to byte {} was acknowledged", witness.length);
            return Err(self.damaged(valid, what, &how));
        }
        let Some(wrong) = valid.wrong else { return Ok(()) };
        match format::later_group(&self.bytes, valid.end.length as usize, valid.next_group + 1) {
            Some(at) => {
                let how = format!("although a record at byte {at} was written when it had been acknowledged");
                Err(self.damaged(valid, wrong, &how))
            }
            None => Ok(()),
        }
    }

    /// Returns the bytes of the valid records, with the header.
    pub(crate) fn into_valid_bytes(mut self, valid: &Valid) -> Vec<u8> {
        self.bytes.truncate(valid.end.length as usize);
        self.bytes
    }

    /// Returns the number of bytes behind the valid records.
    pub(crate) fn rest(&self, valid: &Valid) -> u64 {
        (self.bytes.len() as u64).saturating_sub(valid.end.length)
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
