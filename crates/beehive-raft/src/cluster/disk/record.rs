//! The records of a cluster's folder. Their frame is that of `log/format.rs`: the field for the colony has the kind, and the
//! field for the number has the group.
//!
//! ```text
//! 0  entry   the length of its head (4 bytes), its head, the bytes of its command: see `frames::push_entry`
//! 1  note    a vote, a truncation, a purge, what is committed, or a snapshot: `Note`, as `encode_many` encodes it
//! 2  chunk   a chunk of a snapshot, in the file of the snapshot
//! 3  end     the end of a checkpoint or of a snapshot: nothing
//! ```

use super::group_log::{GroupLog, Note};
use crate::cluster::frames;
use crate::cluster::types::{GroupId, LogEntry};
use crate::log::format::{Record, push_record};
use beehive_protocol::codec::{decode_many, encode_many_into};
use std::collections::BTreeMap;

const ENTRY: u16 = 0;
const NOTE: u16 = 1;
pub(crate) const CHUNK: u16 = 2;
pub(crate) const END: u16 = 3;

/// The logs of all groups.
pub(crate) type Logs = BTreeMap<GroupId, GroupLog>;

/// Appends the record of an entry.
pub(crate) fn push_entry(buffer: &mut Vec<u8>, group: GroupId, entry: &LogEntry) {
    push_record(buffer, ENTRY, group.0.into(), |buffer| frames::push_entry(entry, buffer))
}

/// Appends the record of a change.
pub(crate) fn push_note(buffer: &mut Vec<u8>, group: GroupId, note: &Note) {
    push_record(buffer, NOTE, group.0.into(), |buffer| encode_many_into(note, buffer))
}

/// Decodes the group of a record.
pub(crate) fn group(record: &Record) -> Result<GroupId, String> {
    u32::try_from(record.number).map(GroupId).map_err(|_| format!("there is no group {}", record.number))
}

/// Decodes the change that a record is.
pub(crate) fn note(record: &Record) -> Result<Note, String> {
    match record.colony {
        NOTE => decode_many("a change of a log", record.entry).map_err(|error| error.to_string()),
        kind => Err(format!("a record of kind {kind} where a change belongs")),
    }
}

/// Applies a record to the logs.
pub(crate) fn apply(logs: &mut Logs, record: &Record) -> Result<(), String> {
    let log = logs.entry(group(record)?).or_default();
    match record.colony {
        ENTRY => {
            let entry = frames::entry(record.entry).ok_or("an entry cannot be decoded")?;
            log.is_next(&entry)?;
            log.push(entry)
        }
        NOTE => log.note(note(record)?),
        kind => return Err(format!("a record of kind {kind}")),
    }
    Ok(())
}
