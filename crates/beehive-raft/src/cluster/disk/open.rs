//! The start: opens a folder, checks all of it, and makes it ready for what comes.

use super::group_log::GroupLog;
use super::identity::Identity;
use super::record::{self, Logs};
use super::snapshot;
use super::whole::{self, Title};
use super::writer::{Continued, OpenDisk};
use crate::cluster::options::ClusterOptions;
use crate::cluster::types::{GroupId, Snapshot};
use crate::data::check_unused;
use crate::error::OpenError;
use crate::log::scan::{Scanned, Start};
use crate::log::shared::Sizes;
use crate::log::witness::{End, Witness};
use crate::log::writer::Writer;
use crate::place::{self, Place};
use std::collections::BTreeMap;
use std::path::Path;

/// The contents of a folder.
struct Recovered {
    logs: Logs,
    snapshots: BTreeMap<GroupId, Snapshot>,
    /// A number that no snapshot has had.
    next_snapshot: u64,
    scanned: Scanned,
}

/// A folder that is open.
pub(crate) struct Opened {
    pub(crate) disk: OpenDisk,
    /// The life of the hive.
    pub(crate) life: u64,
    /// Whether the hive was started with this folder before.
    pub(crate) is_return: bool,
}

/// Returns the seed for cell ids of the cluster to which the folder belongs. Returns `None` if there is no folder, or no cluster yet.
///
/// # Errors
///
/// Returns an error if the folder is not one of a cluster, or is damaged.
pub(crate) fn kept_seed(options: &ClusterOptions) -> Result<Option<u64>, OpenError> {
    let Some(folder) = &options.folder else { return Ok(None) };
    let place = Place { files: options.files.clone(), folder: folder.clone() };
    Ok(Identity::read(&place)?.map(|identity| identity.seed))
}

/// Opens a folder, or makes a new one, for which `random` gives the numbers. Blocks the thread until the log is read.
///
/// # Errors
///
/// See [`OpenError`]. A folder that was refused because of what is in it is as it was.
pub(crate) fn open(
    options: &ClusterOptions,
    folder: &Path,
    random: &mut dyn FnMut() -> u64,
) -> Result<Opened, OpenError> {
    let place = Place { files: options.files.clone(), folder: folder.to_path_buf() };
    // a folder that is another one's gets not even a lock
    identity_of(&place, options, random)?;
    let failed = |doing| move |error| OpenError::io(folder, doing, error);
    place.files.create_folder(folder).map_err(failed("create the folder"))?;
    let lock = place::lock(folder);
    let locked = place.files.lock(&lock).map_err(|error| OpenError::io(&lock, "lock", error))?;
    let lock = locked.ok_or_else(|| OpenError::InUse { folder: folder.to_path_buf() })?;

    // it may have changed before it was locked
    let (identity, is_new) = identity_of(&place, options, random)?;
    let folder_id = identity.folder_id;
    let Recovered { logs, snapshots, next_snapshot, scanned } =
        recover(&place, folder_id, identity.starts == 0)?;
    if let Some(cut) = &scanned.cut {
        tracing::warn!(file = %cut.file.display(), offset = cut.offset, bytes = cut.bytes, what = cut.what,
            "the end of the log had not been acknowledged, and is cut off")
    }

    // From here on, the folder changes. An end that is lost is noticed before a segment follows.
    if is_new {
        // a folder without a witness is whole only if it says that no start has been carried out
        identity.write(&place)?
    }
    scanned.repairs.carry_out(&place)?;
    let end = scanned.end;
    let witness = Witness::create(&place, folder_id, end).map_err(failed("write the witness"))?;
    let identity = Identity { starts: identity.starts + 1, ..identity };
    identity.write(&place)?;
    let start = (folder_id, identity.starts);
    let writer =
        Writer::begin(&place, start, end, options.segment_bytes).map_err(failed("begin a segment"))?;

    let first = end.segment + 1 - scanned.lengths.len() as u64;
    let finished = (first..).zip(scanned.lengths).map(|(segment, length)| End { segment, length, ..end });
    let continued = Continued {
        sizes: Sizes {
            segment_bytes: options.segment_bytes,
            checkpoint_after_bytes: options.checkpoint_after_bytes,
        },
        place,
        folder_id,
        logs,
        snapshots,
        next_snapshot,
        finished: finished.collect(),
        end,
    };
    let disk = OpenDisk::start(continued, lock, writer, witness);
    Ok(Opened {
        disk: disk.map_err(failed("start a thread for the log"))?,
        life: identity.life,
        is_return: identity.starts > 1,
    })
}

/// Returns the identity of a folder, or a new one if it is empty or does not exist. Also returns whether it is new. Changes
/// nothing.
fn identity_of(
    place: &Place,
    options: &ClusterOptions,
    random: &mut dyn FnMut() -> u64,
) -> Result<(Identity, bool), OpenError> {
    if let Some(identity) = Identity::read(place)? {
        identity.check(options, &place.folder)?;
        return Ok((identity, false));
    }
    check_unused(place)?;
    let identity = Identity {
        folder_id: random(),
        hive: options.hive,
        seed: options.seed,
        logs: options.logs,
        hives: options.hives(),
        life: random(),
        starts: 0,
    };
    Ok((identity, true))
}

/// Reads the logs of a folder. Changes nothing.
fn recover(place: &Place, folder_id: u64, is_new: bool) -> Result<Recovered, OpenError> {
    let start = Start::read(place, folder_id, is_new)?;
    let (mut logs, mut end) = (Logs::new(), End::default());
    let mut before = place::segment(&place.folder, 0);
    if let Some(segment) = start.newest() {
        before = place::checkpoint(&place.folder, segment);
        let title = Title::Checkpoint(End { segment: segment.saturating_sub(1), ..End::default() });
        let found = whole::read(place, &before, folder_id, title, |record| record::apply(&mut logs, record))?;
        if let (Title::Checkpoint(covered), _) = found {
            end = covered
        }
    }
    let mut at = end;
    let mut scanned = start.scan(place, folder_id, end, |segment, each| {
        segment.continues(at, &before)?;
        let valid = segment.records(at, |record| {
            each(record);
            let applied = record::apply(&mut logs, record);
            applied.map_err(|what| OpenError::damaged(segment.path(), record.start, what))
        })?;
        (at, before) = (valid.end, segment.path().to_path_buf());
        Ok(valid)
    })?;

    let mut snapshots = BTreeMap::new();
    for (group, log) in &logs {
        if let Some(snapshot) = snapshot_of(place, folder_id, *group, log)? {
            snapshots.insert(*group, snapshot);
        }
    }
    let named = |(group, number): &(GroupId, u64)| {
        let noted = logs.get(group).and_then(|log| log.snapshot.as_ref());
        noted.is_some_and(|noted| noted.number == *number)
    };
    let left = snapshot::files(&start.listing).filter(|file| !named(file));
    let left = left.map(|(group, number)| snapshot::path(&place.folder, group, number));
    scanned.repairs.remove.extend(left);
    let newest = snapshot::files(&start.listing).map(|(_, number)| number).max();
    Ok(Recovered { logs, snapshots, next_snapshot: newest.map_or(1, |newest| newest + 1), scanned })
}

/// Reads the snapshot of a group, and checks that it has what was removed from the log.
fn snapshot_of(
    place: &Place,
    folder_id: u64,
    group: GroupId,
    log: &GroupLog,
) -> Result<Option<Snapshot>, OpenError> {
    let snapshot =
        log.snapshot.as_ref().map(|noted| snapshot::read(place, folder_id, group, noted)).transpose()?;
    let covered = snapshot.as_ref().and_then(|snapshot| snapshot.meta.last_log_id);
    match log.purged {
        Some(purged) if covered < Some(purged) => {
            let why =
                format!("the log of group {} begins behind entry {purged}, and no snapshot has it", group.0);
            Err(OpenError::Missing { file: snapshot::path(&place.folder, group, 0), why })
        }
        _ => Ok(snapshot),
    }
}
