//! The changes that a log reports to the views.

use crate::state::image::{EncodedCells, Redo};
use beehive_protocol::{BeeId, Epoch};

/// A change that a log makes to the bees of one app, as far as dictionaries with views are concerned.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// A bee has changed rows. `known` is the highest index of the registry in the log.
    Rows { bee: BeeId, known: u64, redo: Redo },
    /// The log has a new bee, or has adopted one.
    Begin { bee: BeeId, epoch: Epoch, view: u64, rows: EncodedCells },
    /// A bee is about to leave the log.
    Freeze { bee: BeeId, view: u64 },
    /// A bee stays after all.
    Thaw { bee: BeeId, epoch: Epoch, view: u64 },
    /// A bee has left the log.
    Drop { bee: BeeId },
    /// A bee has ended.
    Release { bee: BeeId, view: u64 },
    /// A bee has merged into another one.
    Fuse { from: BeeId, into: BeeId, view: u64 },
    /// A bee has given cells, named by dictionary and key, to a new bee.
    Split { bee: BeeId, new: BeeId, cells: Vec<(u32, Vec<u8>)>, view: u64 },
    /// The log has these bees, and no others. Entries may be missing before this. `staged` are complete copies of bees that are about
    /// to arrive, with their epochs after the move.
    Restored { bees: Vec<Restored>, staged: Vec<Restored>, known: u64 },
}

/// A bee in the state of a log.
#[derive(Clone, Debug)]
pub(crate) struct Restored {
    pub(crate) bee: BeeId,
    pub(crate) epoch: Epoch,
    pub(crate) is_frozen: bool,
    pub(crate) rows: EncodedCells,
}

/// Size of a change without its rows, in bytes.
const FIXED_BYTES: usize = 64;

impl Change {
    /// Returns the index of the registry that the change names. Zero if it names none.
    pub(super) const fn view(&self) -> u64 {
        match self {
            Change::Rows { known, .. } | Change::Restored { known, .. } => *known,
            Change::Begin { view, .. }
            | Change::Freeze { view, .. }
            | Change::Thaw { view, .. }
            | Change::Release { view, .. }
            | Change::Fuse { view, .. }
            | Change::Split { view, .. } => *view,
            Change::Drop { .. } => 0,
        }
    }

    /// Returns about the number of bytes that a change takes. Those of a restored log do not count.
    pub(super) fn size(&self) -> usize {
        FIXED_BYTES
            + match self {
                Change::Rows { redo, .. } => redo.size(),
                Change::Begin { rows, .. } => rows.byte_count(),
                _ => 0,
            }
    }
}
