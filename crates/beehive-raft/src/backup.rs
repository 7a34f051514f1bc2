//! Backups: everything in a folder as one file, and a new folder made from one.
//!
//! A backup is the state of every log at one place of the log, so it can be made while a hive uses the folder. It contains
//! no log.
//!
//! ```text
//! backup
//!  0  8  magic, "BeehvBak"
//!  8  4  format version
//! 12  4  length of the identity
//! 16  8  checksum of the 16 bytes before it and of the identity
//! 24     the identity file of the folder
//!  .     a checkpoint: see `log/checkpoint.rs`
//! ```

use crate::data::random;
use crate::error::OpenError;
use crate::files::Files;
use crate::identity::Identity;
use crate::limits::{RESTORE_RAISES_NUMBERS, RESTORE_RAISES_TERMS};
use crate::log::checkpoint;
use crate::log::format::{FORMAT, integer};
use crate::log::recovery::{Recovered, recover};
use crate::log::witness::{End, Witness};
use crate::log::writer::Writer;
use crate::place::{self, Place};
use beehive_protocol::{AppId, BeeId, EntryNumber, LaneId, LogState, Seq, Time};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: [u8; 8] = *b"BeehvBak";
const HEADER: usize = 24;

/// Number of attempts to read a folder. The hive that uses it may remove files while they are being read.
const ATTEMPTS_MAX: usize = 10;

/// Pause between two attempts.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(10);

/// What a backup contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backup {
    /// The identity of the folder: in a restored folder, that of the new one.
    pub identity: Identity,
    /// The latest time in the logs.
    pub now: Time,
    /// Length of the file in bytes.
    pub bytes: u64,
}

/// Writes everything in a folder to a file. The folder is not changed, and a hive may use it meanwhile. The backup then
/// contains all that was acknowledged before the call.
///
/// # Errors
///
/// Returns an error if the folder cannot be read as a whole, or if the file exists or cannot be written.
pub fn export(files: Arc<dyn Files>, folder: &Path, file: &Path) -> Result<Backup, OpenError> {
    let place = Place { files: files.clone(), folder: folder.to_path_buf() };
    let (identity, states) = read_folder(&place)?;
    let failed = |error| OpenError::io(file, "write", error);
    if files.length(file).is_ok() {
        return Err(failed(io::ErrorKind::AlreadyExists.into()));
    }

    let text = identity.text();
    let mut head = MAGIC.to_vec();
    head.extend_from_slice(&FORMAT.to_le_bytes());
    head.extend_from_slice(&(text.len() as u32).to_le_bytes());
    let checksum = xxh3_64(&[&head, text.as_bytes()].concat());
    head.extend_from_slice(&checksum.to_le_bytes());
    head.extend_from_slice(text.as_bytes());

    let beside = file.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    let beside = Place { files, folder: beside.to_path_buf() };
    let bytes = checkpoint::write_to(&beside, file, &head, identity.folder_id, &states, End::default());
    Ok(Backup { identity, now: latest(&states), bytes: bytes.map_err(failed)? })
}

/// Makes a new folder from a backup, or from a copy of a folder.
///
/// The new folder belongs to the same hive. Everything that the old one may have handed out since the backup is skipped:
/// terms, the ids of bees, and the numbers of messages. So nobody who has seen such a number takes what comes now for
/// something old. A second folder made from the same backup skips the same numbers, so only one of them may be used. The
/// hive's time goes on from `now`, the present time, because the old hive has handed out times, too.
///
/// # Errors
///
/// Returns an error if the backup is damaged, if the folder is not empty, or if it cannot be written. What was written of
/// the folder can then be removed.
pub fn restore(files: Arc<dyn Files>, source: &Path, folder: &Path, now: Time) -> Result<Backup, OpenError> {
    let (found, mut states) = match files.read(source, 0, MAGIC.len()) {
        Ok(start) if start == MAGIC => read_backup(files.clone(), source)?,
        Ok(_) => return Err(OpenError::damaged(source, 0, "it does not begin like a backup")),
        // not a file, so perhaps a folder
        Err(_) => read_folder(&Place { files: files.clone(), folder: source.to_path_buf() })?,
    };
    states.iter_mut().for_each(|state| raise(state, now));
    if let Some(first) = states.first_mut() {
        raise_apps(first)
    }
    let term = states.iter().map(|state| state.last.term()).fold(found.incarnation, u64::max);
    let incarnation = term + RESTORE_RAISES_TERMS;
    if incarnation >= EntryNumber::TERM_MAX {
        return Err(OpenError::NoMoreTerms { file: source.to_path_buf() });
    }
    let identity = Identity { folder_id: random(), incarnation, ..found };

    let place = Place { files: files.clone(), folder: folder.to_path_buf() };
    let failed = |doing| move |error| OpenError::io(folder, doing, error);
    files.create_folder(folder).map_err(failed("create the folder"))?;
    let mut present = files.list(folder).map_err(failed("list the folder"))?;
    present.retain(|name| name != "lost+found" && name != "lock");
    if let Some(found) = present.into_iter().next() {
        return Err(OpenError::NotEmpty { folder: folder.to_path_buf(), found });
    }
    let _lock = files
        .lock(&place::lock(folder))
        .map_err(failed("lock the folder"))?
        .ok_or_else(|| OpenError::InUse { folder: folder.to_path_buf() })?;

    let id = identity.folder_id;
    let end = End::default();
    let bytes = checkpoint::write(&place, id, &states, end).map_err(failed("write the checkpoint"))?;
    let writer = Writer::begin(&place, (id, incarnation), end, 0).map_err(failed("begin a segment"))?;
    Witness::create(&place, id, writer.end()).map_err(failed("write the witness"))?;
    // without an identity, the folder is refused, so an interrupted restore is noticed
    identity.write(&place)?;
    Ok(Backup { identity, now: latest(&states), bytes })
}

fn latest(states: &[LogState]) -> Time {
    states.iter().map(|state| state.now).max().unwrap_or_default()
}

/// Reads a folder that a hive may be using.
#[expect(clippy::disallowed_methods, reason = "a tool reads the folder, on a thread of its own")]
fn read_folder(place: &Place) -> Result<(Identity, Vec<LogState>), OpenError> {
    let read = || {
        let identity = Identity::read(place)?.ok_or_else(|| {
            let why = "every folder of a hive has one".to_string();
            OpenError::Missing { file: place::identity(&place.folder), why }
        })?;
        let key = (identity.folder_id, identity.logs);
        let Recovered { states, .. } = recover(place, key, identity.incarnation == 0)?;
        Ok((identity, states))
    };
    let mut attempts = 1;
    loop {
        match read() {
            Err(OpenError::Missing { .. }) if attempts < ATTEMPTS_MAX => {}
            Err(OpenError::Io { error, .. })
                if attempts < ATTEMPTS_MAX && error.kind() == io::ErrorKind::NotFound => {}
            result => return result,
        }
        // the hive removes files after a checkpoint, and is then busy for a while
        std::thread::sleep(ATTEMPT_PAUSE);
        attempts += 1
    }
}

fn read_backup(files: Arc<dyn Files>, file: &Path) -> Result<(Identity, Vec<LogState>), OpenError> {
    let read =
        |offset, length| files.read(file, offset, length).map_err(|error| OpenError::io(file, "read", error));
    let damaged = |what: &str| OpenError::damaged(file, 0, what);
    let head = read(0, HEADER)?;
    let length = integer::<4>(&head, 12) as usize;
    if head.len() < HEADER || length > Identity::LENGTH_MAX {
        return Err(damaged("the header is wrong"));
    }
    let text = read(HEADER as u64, length)?;
    if integer::<8>(&head, 16) != xxh3_64(&[&head[..16], &text].concat()) {
        return Err(damaged("the checksum of the header is wrong"));
    }
    match integer::<4>(&head, 8) as u32 {
        FORMAT => {}
        version => return Err(OpenError::Newer { file: file.to_path_buf(), version }),
    }

    let identity = Identity::parse(&text, file)?;
    let place = Place { files, folder: file.parent().unwrap_or(Path::new(".")).to_path_buf() };
    let key = (identity.folder_id, identity.logs);
    let loaded = checkpoint::read_from(&place, file, (HEADER + text.len()) as u64, key, 1)?;
    Ok((identity, loaded.states))
}

/// Skips what the hive may have handed out since this state, and forgets that it was running.
fn raise(state: &mut LogState, now: Time) {
    let later = |seq: &mut Seq| *seq = seq.plus(RESTORE_RAISES_NUMBERS);
    state.bees.values_mut().for_each(|bee| later(&mut bee.next_seq));
    state.staged.values_mut().for_each(|staged| later(&mut staged.bee.next_seq));
    state.next_seqs.values_mut().for_each(later);
    for newest in state.newest.values_mut() {
        newest.0 += RESTORE_RAISES_NUMBERS
    }
    state.marker = None;
    state.now = state.now.max(now)
}

/// The same for apps that have handed out nothing so far, in the first log, which is that of everything without a bee.
fn raise_apps(first: &mut LogState) {
    let raised = BeeId(RESTORE_RAISES_NUMBERS);
    first.newest.entry(AppId(0)).or_insert(raised);
    for app in 0..first.shapes.apps.len() as u16 {
        first.next_seqs.entry(LaneId::of_app(AppId(app))).or_insert(Seq(RESTORE_RAISES_NUMBERS));
    }
}
