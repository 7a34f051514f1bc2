//! An app's routing table on this hive. It maps cells to bees, and every task that emits messages reads it.

use crate::cell::CellId;
use crate::hive::bee::lifecycle::Bee;
use crate::hive::consensus::journal::{SWEEP_PARTS, sweep_order};
use crossbeam_utils::CachePadded;
use hashbrown::HashTable;
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of shards. A sweep has as many parts as there are shards, so its progress within a part is a
/// position in one shard.
const SHARDS: usize = SWEEP_PARTS as usize;

/// One shard. Most bees own a single cell and contain its id. For such a bee, the table stores only one
/// pointer.
struct Table {
    /// Bees by their first cell.
    firsts: HashTable<Arc<Bee>>,
    /// The other cells of bees that own several.
    others: HashTable<(CellId, Arc<Bee>)>,
}

impl Default for Table {
    fn default() -> Self {
        Table { firsts: HashTable::new(), others: HashTable::new() }
    }
}

impl Table {
    #[inline]
    fn find(&self, cell: CellId) -> Option<&Arc<Bee>> {
        let first = self.firsts.find(cell.0, |bee| bee.first_cell() == cell);
        first.or_else(|| self.others.find(cell.0, |(c, _)| *c == cell).map(|(_, bee)| bee))
    }

    fn insert(&mut self, cell: CellId, bee: Arc<Bee>) {
        match bee.first_cell() == cell {
            true => {
                self.firsts.insert_unique(cell.0, bee, |bee| bee.first_cell().0);
            }
            false => {
                self.others.insert_unique(cell.0, (cell, bee), |(cell, _)| cell.0);
            }
        }
    }

    fn remove(&mut self, cell: CellId) {
        if let Ok(entry) = self.firsts.find_entry(cell.0, |bee| bee.first_cell() == cell) {
            entry.remove();
        } else if let Ok(entry) = self.others.find_entry(cell.0, |(c, _)| *c == cell) {
            entry.remove();
        }
    }

    fn iter(&self) -> impl Iterator<Item = (CellId, &Arc<Bee>)> {
        let firsts = self.firsts.iter().map(|bee| (bee.first_cell(), bee));
        firsts.chain(self.others.iter().map(|(cell, bee)| (*cell, bee)))
    }

    fn len(&self) -> usize {
        self.firsts.len() + self.others.len()
    }
}

type Shard = RwLock<Table>;

/// The routing table, sharded by cell.
pub(crate) struct Routes {
    shards: Box<[CachePadded<Shard>]>,
    /// Number of cells that have an owner. Relaxed ordering suffices, because the count is used only for
    /// limits and status.
    len: AtomicUsize,
}

impl Routes {
    pub(crate) fn new() -> Self {
        Routes {
            shards: (0..SHARDS).map(|_| CachePadded::new(RwLock::default())).collect(),
            len: AtomicUsize::new(0),
        }
    }

    #[inline(always)]
    fn shard(&self, cell: CellId) -> &Shard {
        // each part of a sweep has one shard. The hash table in the shard uses the lowest and highest bits,
        // not the bits that select the shard
        &self.shards[sweep_order(cell).0 as usize]
    }

    /// Returns a cell's owner.
    #[inline]
    pub(crate) fn find(&self, cell: CellId) -> Option<Arc<Bee>> {
        self.shard(cell).read().find(cell).cloned()
    }

    /// Checks whether `bee` is the owner of `cell`.
    #[inline]
    pub(crate) fn leads_to(&self, cell: CellId, bee: &Arc<Bee>) -> bool {
        self.shard(cell).read().find(cell).is_some_and(|owner| Arc::ptr_eq(owner, bee))
    }

    /// Makes `bee` the owner of a cell. It replaces any earlier owner.
    pub(crate) fn set(&self, cell: CellId, bee: &Arc<Bee>) {
        let mut shard = self.shard(cell).write();
        debug_assert!(
            shard.find(cell).is_none_or(|owner| Arc::ptr_eq(owner, bee) || owner.may_be_gone()),
            "a cell has one owner: the route of {cell:?} still leads to a living bee"
        );

        match shard.find(cell).is_some() {
            true => shard.remove(cell),
            false => {
                self.len.fetch_add(1, Ordering::Relaxed);
            }
        }
        shard.insert(cell, bee.clone())
    }

    /// Removes the route of a cell if it still leads to `bee`.
    pub(crate) fn remove(&self, cell: CellId, bee: &Arc<Bee>) {
        let mut shard = self.shard(cell).write();
        if shard.find(cell).is_some_and(|owner| Arc::ptr_eq(owner, bee)) {
            shard.remove(cell);
            self.len.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of cells that have an owner.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Calls `f` once for each bee, shard by shard.
    pub(crate) fn for_each_bee(&self, mut f: impl FnMut(&Arc<Bee>)) {
        for shard in 0..SHARDS {
            self.for_each_bee_of_shard(shard, &mut f)
        }
    }

    /// Number of shards, for callers that enumerate cells.
    pub(crate) const SHARDS: usize = SHARDS;

    /// Returns the cells of one shard with their bees. A cell never changes its shard.
    pub(crate) fn cells_of_shard(&self, shard: usize) -> Vec<(CellId, Arc<Bee>)> {
        match self.shards.get(shard) {
            Some(shard) => shard.read().iter().map(|(cell, bee)| (cell, bee.clone())).collect(),
            None => Vec::new(),
        }
    }

    /// Returns up to `most` cells with their bees, beginning at `first`, in sweep order. They all belong to the part of the
    /// sweep that contains `first`. Also returns the cell at which the sweep continues, or `None` after the
    /// last part.
    pub(crate) fn next_cells(&self, first: CellId, most: usize) -> (Vec<(CellId, Arc<Bee>)>, Option<CellId>) {
        let (part, _) = sweep_order(first);
        // the first cell of the next part
        let mut next = (part as usize + 1 < SHARDS).then(|| CellId((part as u64 + 1) << 48));
        let Some(shard) = self.shards.get(part as usize) else { return (Vec::new(), next) };

        let shard = shard.read();
        let mut cells: Vec<_> = shard.iter().filter(|(cell, _)| *cell >= first).collect();
        if most < cells.len() {
            // a shard can have many times as many cells as a step takes, so only those that it takes are sorted and cloned
            let (_, (cell, _), _) = cells.select_nth_unstable_by_key(most, |(cell, _)| *cell);
            next = Some(*cell);
            cells.truncate(most)
        }
        let mut cells: Vec<_> = cells.into_iter().map(|(cell, bee)| (cell, bee.clone())).collect();
        drop(shard);
        cells.sort_unstable_by_key(|(cell, _)| *cell);
        (cells, next)
    }

    fn for_each_bee_of_shard(&self, shard: usize, f: impl FnMut(&Arc<Bee>)) {
        let cells = self.cells_of_shard(shard);
        // `cells` is a copy, so the shard is not locked while `f` is running, and `f` may use the routing
        // table
        cells.iter().filter(|(cell, bee)| bee.first_cell() == *cell).map(|(_, bee)| bee).for_each(f)
    }

    /// Removes all routes.
    pub(crate) fn clear(&self) {
        for shard in &self.shards {
            // drop the table after releasing the lock, because dropping bees runs user code
            let taken = std::mem::take(&mut *shard.write());
            self.len.fetch_sub(taken.len(), Ordering::Relaxed);
            drop(taken)
        }
    }
}
