//! Reads a folder without changing it, for the operator's tools. The folder may be a copy.

use crate::error::OpenError;
use crate::files::Files;
use crate::identity::Identity;
use crate::log::reader::Segment;
use crate::log::recovery::{Found, Replay, recover};
use crate::place::{self, Place};
use beehive_protocol::{AppId, EntryNumber, LogState};
use std::path::Path;
use std::sync::Arc;

/// The result of reading a folder.
#[derive(Debug)]
pub struct Inspected {
    /// The identity of the folder.
    pub identity: Identity,
    /// Counts of what was read.
    pub found: Found,
    /// The state of each log.
    pub contents: Vec<Contents>,
    /// The first damage, if there is any. `found` and `contents` then end before it.
    pub damage: Option<OpenError>,
}

/// The state of one log, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Number of the last entry.
    pub last: EntryNumber,
    /// For each app, in order: its name, the number of its bees, of their cells, and of their rows.
    pub apps: Vec<(String, usize, usize, usize)>,
    /// Number of messages that are not handled yet.
    pub waiting: usize,
    /// Number of sweeps that are not finished.
    pub sweeps: usize,
    /// Whether the last process that used the folder crashed, or still runs.
    pub is_in_use_or_crashed: bool,
}

impl Contents {
    fn of(state: &LogState) -> Contents {
        let count = state.bees.keys().map(|(app, _)| app.index() + 1).max().unwrap_or_default();
        let count = count.max(state.shapes.apps.len());
        let app = |at: usize| {
            let name = state.shapes.apps.get(at).map_or_else(|| format!("app {at}"), |app| app.name.clone());
            let bees = || state.bees.iter().filter(|((app, _), _)| *app == AppId(at as u16));
            let cells = bees().map(|(_, bee)| bee.cells.iter().count()).sum();
            (name, bees().count(), cells, bees().map(|(_, bee)| bee.state.row_count()).sum())
        };
        Contents {
            last: state.last,
            apps: (0..count).map(app).collect(),
            waiting: state.outbox.len(),
            sweeps: state.sweeps.len(),
            is_in_use_or_crashed: state.marker.is_some(),
        }
    }
}

/// Reads and checks everything in a folder, exactly as a start does, but changes nothing and takes no lock. A hive may
/// use the folder meanwhile, but then the end of the log may look torn, and a checkpoint may remove files that are
/// being read.
///
/// # Errors
///
/// Returns an error if not even the identity can be read. Other errors are in [`Inspected::damage`].
pub fn inspect(files: Arc<dyn Files>, folder: &Path) -> Result<Inspected, OpenError> {
    let place = Place { files, folder: folder.to_path_buf() };
    let identity = Identity::read(&place)?.ok_or_else(|| {
        let why = "every folder of a hive has one".to_string();
        OpenError::Missing { file: place::identity(folder), why }
    })?;

    let key = (identity.folder_id, identity.logs);
    let (found, states, damage) = match recover(&place, key, identity.incarnation == 0) {
        Ok(recovered) => (recovered.found, recovered.states, None),
        Err(damage) => {
            let (found, states) = up_to_damage(&place, key);
            (found, states, Some(damage))
        }
    };
    Ok(Inspected { identity, found, contents: states.iter().map(Contents::of).collect(), damage })
}

/// Reads as much as can be read.
fn up_to_damage(place: &Place, key: (u64, u16)) -> (Found, Vec<LogState>) {
    let Ok(listing) = place.list() else { return (Found::default(), Vec::new()) };
    let Ok((mut replay, checkpoint_bytes)) = Replay::begin(place, key, listing.checkpoints.last().copied())
    else {
        return (Found::default(), Vec::new());
    };
    let mut found = Found { checkpoint_bytes, ..Found::default() };
    while let Ok(segment) = Segment::read(place, key.0, replay.end) {
        let Ok(valid) = replay.apply(&segment, |_| {}) else { break };
        found.segments += 1;
        found.log_bytes += valid.end.length;
        if valid.wrong.is_some() {
            break;
        }
    }
    (found.entries, found.without_effect) = (replay.entries, replay.without_effect);
    (found, replay.states)
}
