//! The bytes of the log: segments, records, and the chain of checksums that connects them.
//!
//! ```text
//! log-00000000000000000007          one segment
//! ┌──────────────────────────────┬────────┬────────┬────────┬─ ─
//! │ header, 56 bytes             │ record │ record │ record │
//! └──────────────────────────────┴────────┴────────┴────────┴─ ─
//!
//! header                            record
//!  0  8  magic, "BeehvLog"           0  8  checksum
//!  8  4  format version              8  4  length of the entry
//! 12  4  zero                       12  2  colony
//! 16  8  id of the folder           14  2  flags: 1 = last record of its group
//! 24  8  incarnation                16  8  group
//! 32  8  number of the segment      24  8  number of the entry
//! 40  8  chain before the segment   32     the entry, as `Entry::encode_into` encodes it
//! 48  8  checksum of the header
//! ```
//!
//! All integers are little-endian. The *chain* is the checksum of the last record before a place. A record's checksum
//! is the XXH3 hash of everything behind it in the record, seeded with the chain. So a record is valid only behind the
//! record that it was written behind: a lost, repeated or exchanged record is as visible as a flipped bit, also at the
//! border of two segments.
//!
//! A *group* is what one sync makes permanent. Group `n + 1` is written only when group `n` is on disk. If a record is
//! invalid, and a record of a later group is found behind it, the invalid one had been acknowledged.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The version of all formats in a folder.
pub(crate) const FORMAT: u32 = 1;

const MAGIC: [u8; 8] = *b"BeehvLog";

/// Length of a segment's header.
pub(crate) const SEGMENT_HEADER: usize = 56;

/// Length of a record without its entry.
pub(crate) const RECORD_HEADER: usize = 32;

/// The flag of the last record of a group.
const LAST_OF_GROUP: u16 = 1;

/// Reads an integer at a place. Returns zero beyond the end.
pub(crate) fn integer<const BYTES: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut integer = [0; 8];
    if let Some(found) = bytes.get(at..at + BYTES) {
        integer[..BYTES].copy_from_slice(found)
    }
    u64::from_le_bytes(integer)
}

/// Why the start of a file is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// The file was written by a newer program.
    Newer(u32),
    /// The bytes are not what a program has written.
    Damaged(&'static str),
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// Id of the folder.
    pub(crate) folder_id: u64,
    /// Number of starts of the hive so far.
    pub(crate) incarnation: u64,
    /// Number of the segment.
    pub(crate) segment: u64,
    /// The chain before the first record.
    pub(crate) chain: u64,
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEADER] {
        let mut bytes = [0; SEGMENT_HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        let fields = [self.folder_id, self.incarnation, self.segment, self.chain];
        for (at, field) in (16..).step_by(8).zip(fields) {
            bytes[at..at + 8].copy_from_slice(&field.to_le_bytes())
        }
        let checksum = xxh3_64(&bytes[..48]);
        bytes[48..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads the header at the front of a segment.
    pub(crate) fn decode(bytes: &[u8]) -> Result<SegmentHeader, Unfit> {
        let Some(header) = bytes.get(..SEGMENT_HEADER) else {
            return Err(Unfit::Damaged("the file ends in its header"));
        };
        if header[..8] != MAGIC {
            return Err(Unfit::Damaged("it does not begin like a segment of a log"));
        }
        if integer::<8>(header, 48) != xxh3_64(&header[..48]) {
            return Err(Unfit::Damaged("the checksum of the header is wrong"));
        }
        match integer::<4>(header, 8) as u32 {
            FORMAT => Ok(SegmentHeader {
                folder_id: integer::<8>(header, 16),
                incarnation: integer::<8>(header, 24),
                segment: integer::<8>(header, 32),
                chain: integer::<8>(header, 40),
            }),
            newer => Err(Unfit::Newer(newer)),
        }
    }
}

/// Appends a record without checksum and group, which [`seal`] fills in. `encode` appends the entry.
pub(crate) fn push_record(buffer: &mut Vec<u8>, colony: u16, number: u64, encode: impl FnOnce(&mut Vec<u8>)) {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; RECORD_HEADER]);
    encode(buffer);

    let length = (buffer.len() - start - RECORD_HEADER) as u32;
    buffer[start + 8..start + 12].copy_from_slice(&length.to_le_bytes());
    buffer[start + 12..start + 14].copy_from_slice(&colony.to_le_bytes());
    buffer[start + 24..start + 32].copy_from_slice(&number.to_le_bytes());
}

/// Returns the length of the records at the front that take at most `bytes_max` bytes, or of the first one.
#[cfg(feature = "cluster")]
pub(crate) fn length_within(records: &[u8], bytes_max: usize) -> usize {
    let mut at = 0;
    while at < records.len() {
        let end = at + RECORD_HEADER + integer::<4>(records, at + 8) as usize;
        if at > 0 && end > bytes_max {
            break;
        }
        at = end
    }
    at
}

/// Completes the records of a group, which follow the record with checksum `chain`. Calls `each` with the colony and
/// the number of each entry. Returns the new chain.
pub(crate) fn seal(records: &mut [u8], group: u64, mut chain: u64, mut each: impl FnMut(u16, u64)) -> u64 {
    let mut at = 0;
    while at < records.len() {
        let end = at + RECORD_HEADER + integer::<4>(records, at + 8) as usize;
        let flags = if end == records.len() { LAST_OF_GROUP } else { 0 };
        records[at + 14..at + 16].copy_from_slice(&flags.to_le_bytes());
        records[at + 16..at + 24].copy_from_slice(&group.to_le_bytes());
        chain = xxh3_64_with_seed(&records[at + 8..end], chain);
        records[at..at + 8].copy_from_slice(&chain.to_le_bytes());
        each(integer::<2>(records, at + 12) as u16, integer::<8>(records, at + 24));
        at = end
    }
    chain
}

/// One record of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) colony: u16,
    pub(crate) number: u64,
    pub(crate) group: u64,
    pub(crate) is_last_of_group: bool,
    pub(crate) entry: &'a [u8],
    /// Where the record begins.
    pub(crate) start: usize,
    /// Where the record ends.
    pub(crate) end: usize,
    /// The chain behind the record.
    pub(crate) chain: u64,
}

/// Reads the record at `start`, which follows the record with checksum `chain`.
pub(crate) fn record(segment: &[u8], start: usize, chain: u64) -> Result<Record<'_>, &'static str> {
    let rest = segment.get(start..).unwrap_or_default();
    let length = integer::<4>(rest, 8) as usize;
    let Some(bytes) = rest.get(..RECORD_HEADER + length).filter(|_| rest.len() >= RECORD_HEADER) else {
        return Err("the file ends in the middle of a record");
    };
    let stored = integer::<8>(bytes, 0);
    if xxh3_64_with_seed(&bytes[8..], chain) != stored {
        return Err("the checksum of a record is wrong");
    }
    Ok(Record {
        colony: integer::<2>(bytes, 12) as u16,
        number: integer::<8>(bytes, 24),
        group: integer::<8>(bytes, 16),
        is_last_of_group: integer::<2>(bytes, 14) as u16 & LAST_OF_GROUP != 0,
        entry: &bytes[RECORD_HEADER..],
        start,
        end: start + bytes.len(),
        chain: stored,
    })
}

/// Searches for a valid record of group `group` or later behind `start`, and returns its place. Two adjacent records
/// prove each other: the second one is valid behind the stored checksum of the first one, which may itself be damaged.
pub(crate) fn later_group(segment: &[u8], start: usize, group: u64) -> Option<usize> {
    /// Entries may contain bytes that look like records, and hashing all of them could take hours.
    const HASHED_BYTES_MAX: usize = 256 << 20;
    let groups_max = (segment.len() - start) as u64 / RECORD_HEADER as u64;
    let mut hashed = 0;
    (start..segment.len().saturating_sub(2 * RECORD_HEADER)).find_map(|first| {
        let length = integer::<4>(segment, first + 8) as usize;
        let second = first + RECORD_HEADER + length;
        let group_there = integer::<8>(segment, second.checked_add(16)?);
        // cheap checks first: hardly any place looks like two records
        if second >= segment.len() || group_there < group || group_there - group > groups_max {
            return None;
        }
        let second_length = RECORD_HEADER + integer::<4>(segment, second + 8) as usize;
        if second + second_length > segment.len() || integer::<2>(segment, second + 14) > 1 {
            return None;
        }
        hashed += second_length;
        if hashed > HASHED_BYTES_MAX {
            return None;
        }
        let found = record(segment, second, integer::<8>(segment, first)).ok()?;
        Some(found.start)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(entries: &[&[u8]], group: u64, chain: u64) -> (Vec<u8>, u64) {
        let mut bytes = Vec::new();
        for (number, entry) in (1..).zip(entries) {
            push_record(&mut bytes, 3, number, |buffer| buffer.extend_from_slice(entry))
        }
        let chain = seal(&mut bytes, group, chain, |colony, _| assert_eq!(colony, 3));
        (bytes, chain)
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let (bytes, chain) = group(&[b"one", b"", b"three"], 9, 77);
        let mut read = Vec::new();
        let (mut at, mut seed) = (0, 77);
        while at < bytes.len() {
            let record = record(&bytes, at, seed).unwrap();
            assert_eq!((record.colony, record.group, record.start), (3, 9, at));
            read.push((record.number, record.entry.to_vec(), record.is_last_of_group));
            (at, seed) = (record.end, record.chain)
        }
        assert_eq!(seed, chain);
        assert_eq!(
            read,
            [(1, b"one".to_vec(), false), (2, b"".to_vec(), false), (3, b"three".to_vec(), true)]
        );
    }

    #[test]
    fn a_header_is_read_as_it_was_written_and_every_flip_is_seen() {
        let header = SegmentHeader { folder_id: 1, incarnation: 2, segment: 3, chain: 4 };
        let bytes = header.encode();
        assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
        for at in 0..bytes.len() {
            let mut flipped = bytes;
            flipped[at] ^= 4;
            assert!(matches!(SegmentHeader::decode(&flipped), Err(Unfit::Damaged(_))), "byte {at}");
            assert!(matches!(SegmentHeader::decode(&bytes[..at]), Err(Unfit::Damaged(_))), "length {at}");
        }

        let mut newer = bytes;
        newer[8] = 9;
        let checksum = xxh3_64(&newer[..48]);
        newer[48..].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(SegmentHeader::decode(&newer), Err(Unfit::Newer(9)));
    }

    /// A folder may be older than the program that reads it. A change of these bytes is a new format.
    #[test]
    fn the_bytes_are_those_of_format_1() {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let header = SegmentHeader { folder_id: 0x1122, incarnation: 3, segment: 4, chain: 0x5566 };
        assert_eq!(
            hex(&header.encode()),
            "42656568764c6f6701000000000000002211000000000000030000000000000004000000000000006655000000000000fc368b2758a06d34"
        );
        let (bytes, _) = group(&[b"entry"], 7, 0x8899);
        assert_eq!(hex(&bytes), "b43123255ae35ae5050000000300010007000000000000000100000000000000656e747279");
    }

    #[test]
    fn a_record_is_valid_behind_the_one_before_it_only() {
        let (bytes, _) = group(&[b"one"], 1, 5);
        assert!(record(&bytes, 0, 5).is_ok() && record(&bytes, 0, 6).is_err());
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert!(record(&flipped, 0, 5).is_err(), "byte {at}");
            assert!(record(&bytes[..at], 0, 5).is_err(), "length {at}");
        }
    }

    #[test]
    fn a_later_group_proves_that_the_earlier_one_was_on_disk() {
        let (first, chain) = group(&[b"one", b"two"], 1, 0);
        let (second, chain) = group(&[b"three"], 2, chain);
        let (third, _) = group(&[b"four"], 3, chain);
        let all = [first.clone(), second, third].concat();
        for at in 0..first.len() {
            let mut flipped = all.clone();
            flipped[at] ^= 0x40;
            assert!(later_group(&flipped, 0, 2).is_some(), "byte {at}");
            assert_eq!(later_group(&flipped, 0, 4), None, "byte {at}");
        }
        assert_eq!(later_group(&first, 0, 2), None, "nothing follows");
    }
}
