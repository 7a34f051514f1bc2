//! The bees and their cells, in as little memory as possible: 24 bytes for each cell and 32 for each bee.
//!
//! ```text
//!   cell ──index──► CellEntry { cell, bee ─┐, next ──► CellEntry ──► ..  the other cells of the bee }
//!                                          ▼
//!   bee id ─index─► BeeEntry { id, app, colony, epoch, first cell, number of cells }
//! ```
//!
//! A cell is listed under its app: two apps may each have a cell with the same id.

use super::slab::{ENTRIES_MAX, Entry, Index, NOWHERE, Position, Slab};
use crate::{AppId, BeeId, CellHasher, CellId, ColonyId, Epoch};

/// A cell that has an owner.
#[derive(Clone, Debug)]
struct CellEntry {
    cell: CellId,
    /// The owner. [`NOWHERE`] if the entry is vacant.
    bee: Position,
    /// The next cell of this bee, or the next vacant entry.
    next: Position,
}

impl Entry for CellEntry {
    fn vacant(next: Position) -> CellEntry {
        CellEntry { cell: CellId(0), bee: NOWHERE, next }
    }

    fn next_vacant(&self) -> Option<Position> {
        (self.bee == NOWHERE).then_some(self.next)
    }
}

/// A bee.
#[derive(Clone, Debug)]
struct BeeEntry {
    /// The bee's id in the highest 47 bits, then the app in 16 bits, then a bit that is set while the bee has its first
    /// lane. Zero if the entry is vacant.
    id: u64,
    colony: ColonyId,
    epoch: Epoch,
    /// The first of its cells, or the next vacant entry.
    first: Position,
    /// Number of its cells.
    cells: u32,
}

impl BeeEntry {
    const fn bee(&self) -> BeeId {
        BeeId(self.id >> 17)
    }

    const fn app(&self) -> AppId {
        AppId((self.id >> 1) as u16)
    }
}

impl Entry for BeeEntry {
    fn vacant(next: Position) -> BeeEntry {
        BeeEntry { id: 0, colony: ColonyId(0), epoch: Epoch(0), first: next, cells: 0 }
    }

    fn next_vacant(&self) -> Option<Position> {
        (self.id == 0).then_some(self.first)
    }
}

const _: () = assert!(size_of::<CellEntry>() == 16 && size_of::<BeeEntry>() == 24);

/// The registry's data about a bee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) bee: BeeId,
    pub(super) app: AppId,
    pub(super) colony: ColonyId,
    pub(super) epoch: Epoch,
    /// Number of its cells.
    pub(super) cells: u32,
    /// Whether it still has its first lane.
    pub(super) has_first_lane: bool,
}

/// All bees and their cells.
#[derive(Clone, Debug, Default)]
pub(super) struct Owners {
    cells: Slab<CellEntry>,
    by_cell: Index,
    bees: Slab<BeeEntry>,
    by_bee: Index,
}

/// Returns the hash of a cell or of a bee. Cells with the same id in several apps have the same hash, so that a table
/// can grow without access to the bees.
fn hash_of(id: u64) -> u64 {
    let mut hasher = CellHasher::new(0);
    hasher.word(id);
    hasher.finish()
}

impl Owners {
    pub(super) fn bee_count(&self) -> usize {
        self.bees.len() as usize
    }

    pub(super) fn cell_count(&self) -> usize {
        self.cells.len() as usize
    }

    /// Checks whether there is room for another bee and this number of cells.
    pub(super) fn has_room(&self, cells: usize) -> bool {
        let free = ENTRIES_MAX - self.cells.len();
        self.bees.len() < ENTRIES_MAX && u32::try_from(cells).is_ok_and(|cells| cells <= free)
    }

    fn at(&self, bee: BeeId) -> Option<Position> {
        self.by_bee.find(hash_of(bee.0), |at| self.bees.get(at).is_some_and(|entry| entry.bee() == bee))
    }

    fn entry(&self, bee: BeeId) -> Option<&BeeEntry> {
        self.bees.get(self.at(bee)?)
    }

    fn entry_mut(&mut self, bee: BeeId) -> Option<&mut BeeEntry> {
        let at = self.at(bee)?;
        self.bees.get_mut(at)
    }

    pub(super) fn get(&self, bee: BeeId) -> Option<Owner> {
        self.entry(bee).map(owner)
    }

    pub(super) fn contains(&self, bee: BeeId) -> bool {
        self.at(bee).is_some()
    }

    /// Returns the owner of a cell.
    pub(super) fn of(&self, app: AppId, cell: CellId) -> Option<Owner> {
        let is_it = |at| {
            let Some(entry) = self.cells.get(at).filter(|entry| entry.cell == cell) else { return false };
            self.bees.get(entry.bee).is_some_and(|bee| bee.app() == app)
        };
        let at = self.by_cell.find(hash_of(cell.0), is_it)?;
        Some(owner(self.bees.get(self.cells.get(at)?.bee)?))
    }

    /// Returns all bees, in no particular order.
    pub(super) fn all(&self) -> impl Iterator<Item = Owner> {
        self.bees.iter().map(|(_, entry)| owner(entry))
    }

    /// Returns the cells of a bee, in no particular order.
    pub(super) fn cells_of(&self, bee: BeeId) -> impl Iterator<Item = CellId> {
        self.list(self.entry(bee)).map(|(_, entry)| entry.cell)
    }

    fn list(&self, bee: Option<&BeeEntry>) -> impl Iterator<Item = (Position, &CellEntry)> {
        let entry = |at| self.cells.get(at).map(|entry| (at, entry));
        std::iter::successors(bee.and_then(|bee| entry(bee.first)), move |(_, cell)| entry(cell.next))
    }

    /// Adds a bee, which has no cells yet.
    pub(super) fn begin(&mut self, bee: BeeId, app: AppId, colony: ColonyId, epoch: Epoch) {
        debug_assert!(!self.contains(bee), "{bee} exists already");
        let id = (bee.0 << 17) | (u64::from(app.0) << 1) | 1;
        let at = self.bees.add(BeeEntry { id, colony, epoch, first: NOWHERE, cells: 0 });
        let bees = &self.bees;
        self.by_bee.add(hash_of(bee.0), at, |at| bees.get(at).map_or(0, |entry| hash_of(entry.bee().0)))
    }

    /// Gives cells that have no owner to a bee.
    pub(super) fn give(&mut self, given: &[CellId], bee: BeeId) {
        let Some(owner) = self.at(bee) else { return };
        let Some(entry) = self.bees.get_mut(owner) else { return };
        for cell in given {
            let at = self.cells.add(CellEntry { cell: *cell, bee: owner, next: entry.first });
            (entry.first, entry.cells) = (at, entry.cells + 1);

            let cells = &self.cells;
            self.by_cell.add(hash_of(cell.0), at, |at| cells.get(at).map_or(0, |entry| hash_of(entry.cell.0)))
        }
    }

    fn forget(&mut self, bee: BeeId) {
        if let Some(at) = self.at(bee) {
            self.by_bee.remove(hash_of(bee.0), at);
            self.bees.remove(at)
        }
    }

    /// Removes a bee. Its cells have no owner afterwards.
    pub(super) fn end(&mut self, bee: BeeId) {
        let Some(entry) = self.entry(bee) else { return };
        let mut at = entry.first;
        while let Some(CellEntry { cell, next, .. }) = self.cells.get(at).cloned() {
            self.by_cell.remove(hash_of(cell.0), at);
            self.cells.remove(at);
            at = next
        }
        self.forget(bee)
    }

    /// Gives all cells of `from` to `into`, which is a bee of the same app, and removes `from`.
    pub(super) fn unite(&mut self, from: BeeId, into: BeeId) {
        let (Some(gone), Some(target)) = (self.entry(from).cloned(), self.at(into)) else { return };
        let (mut at, mut last) = (gone.first, NOWHERE);
        while let Some(entry) = self.cells.get_mut(at) {
            entry.bee = target;
            (last, at) = (at, entry.next)
        }
        if let Some(target) = self.bees.get_mut(target) {
            if let Some(last) = self.cells.get_mut(last) {
                last.next = std::mem::replace(&mut target.first, gone.first)
            }
            target.cells += gone.cells
        }
        self.forget(from)
    }

    /// Gives some of the cells of `bee` to `new`, which is a bee of the same app without cells. `cells` must be sorted.
    pub(super) fn split(&mut self, bee: BeeId, cells: &[CellId], new: BeeId) {
        let (Some(from), Some(to)) = (self.at(bee), self.at(new)) else { return };
        let Some(mut at) = self.bees.get(from).map(|entry| entry.first) else { return };
        let mut lists = [(from, NOWHERE, 0), (to, NOWHERE, 0)];
        while let Some(entry) = self.cells.get_mut(at) {
            let (owner, first, count) = &mut lists[usize::from(cells.binary_search(&entry.cell).is_ok())];
            entry.bee = *owner;
            let next = std::mem::replace(&mut entry.next, *first);
            (*first, *count) = (at, *count + 1);
            at = next
        }
        for (bee, first, count) in lists {
            if let Some(bee) = self.bees.get_mut(bee) {
                (bee.first, bee.cells) = (first, count)
            }
        }
    }

    /// Sets the colony and the epoch of a bee.
    pub(super) fn move_to(&mut self, bee: BeeId, colony: ColonyId, epoch: Epoch) {
        if let Some(entry) = self.entry_mut(bee) {
            (entry.colony, entry.epoch) = (colony, epoch)
        }
    }

    /// Records that a bee no longer has its first lane.
    pub(super) fn drop_first_lane(&mut self, bee: BeeId) {
        if let Some(entry) = self.entry_mut(bee) {
            entry.id &= !1
        }
    }

    /// Checks that the tables are consistent with each other.
    pub(super) fn agree(&self) -> bool {
        let is_whole = |(at, bee): (Position, &BeeEntry)| {
            let mut cells = self.list(Some(bee)).take(bee.cells as usize + 1);
            let is_listed = |(_, cell): (Position, &CellEntry)| {
                cell.bee == at && self.of(bee.app(), cell.cell).is_some_and(|owner| owner.bee == bee.bee())
            };
            self.at(bee.bee()) == Some(at)
                && self.list(Some(bee)).take(bee.cells as usize + 1).count() == bee.cells as usize
                && cells.all(is_listed)
        };
        let cells: u64 = self.bees.iter().map(|(_, bee)| u64::from(bee.cells)).sum();
        self.bees.iter().all(is_whole)
            && cells == u64::from(self.cells.len())
            && self.by_cell.len() == self.cell_count()
            && self.by_bee.len() == self.bee_count()
    }
}

fn owner(entry: &BeeEntry) -> Owner {
    Owner {
        bee: entry.bee(),
        app: entry.app(),
        colony: entry.colony,
        epoch: entry.epoch,
        cells: entry.cells,
        has_first_lane: entry.id & 1 == 1,
    }
}
