//! The files of snapshots.
//!
//! The records of a file are the note of the snapshot and its chunks. A file counts only if the log names it. One that no log
//! names was left behind by a crash, and the next start removes it.

use super::group_log::{Note, Noted};
use super::record::{self, CHUNK};
use super::whole::{self, Title};
use crate::cluster::types::{Chunks, GroupId, Snapshot, SnapshotMeta};
use crate::error::OpenError;
use crate::log::format::push_record;
use crate::place::{Listing, Place};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PREFIX: &str = "snapshot-";

/// Returns the path of a file.
pub(crate) fn path(folder: &Path, group: GroupId, number: u64) -> PathBuf {
    folder.join(format!("{PREFIX}{:010}-{number:020}", group.0))
}

/// Returns the files of snapshots in a folder, each with its group and its number.
pub(crate) fn files(listing: &Listing) -> impl Iterator<Item = (GroupId, u64)> {
    listing.foreign.iter().filter_map(|name| {
        let (group, number) = name.strip_prefix(PREFIX)?.split_once('-')?;
        Some((GroupId(group.parse().ok()?), number.parse().ok()?))
    })
}

/// Writes a file.
pub(crate) fn write(
    place: &Place,
    folder_id: u64,
    (group, number): (GroupId, u64),
    meta: &SnapshotMeta,
    chunks: &Chunks,
) -> io::Result<()> {
    let path = path(&place.folder, group, number);
    let note = Note::Snapshot(Noted { meta: meta.clone(), number });
    whole::write(place, &path, folder_id, Title::Snapshot(group, number), |sink| {
        sink.push(|buffer| record::push_note(buffer, group, &note))?;
        chunks.iter().try_for_each(|chunk| {
            sink.push(|buffer| {
                push_record(buffer, CHUNK, group.0.into(), |buffer| buffer.extend_from_slice(chunk))
            })
        })
    })?;
    Ok(())
}

/// Reads the file of a snapshot that a log names.
pub(crate) fn read(
    place: &Place,
    folder_id: u64,
    group: GroupId,
    noted: &Noted,
) -> Result<Snapshot, OpenError> {
    let path = path(&place.folder, group, noted.number);
    let (mut found, mut chunks) = (None, Vec::new());
    whole::read(place, &path, folder_id, Title::Snapshot(group, noted.number), |record| {
        match record.colony {
            CHUNK => chunks.push(record.entry.to_vec()),
            _ => found = Some(record::note(record)?),
        }
        Ok(())
    })
    .map_err(|error| match error {
        OpenError::Io { error, .. } if error.kind() == io::ErrorKind::NotFound => {
            OpenError::Missing { file: path.clone(), why: "the log names it".to_string() }
        }
        error => error,
    })?;
    match found == Some(Note::Snapshot(noted.clone())) {
        true => Ok(Snapshot { meta: noted.meta.clone(), snapshot: Arc::new(chunks) }),
        false => Err(OpenError::damaged(&path, 0, "it is another snapshot than the log names")),
    }
}
