//! The cells of one dictionary in one copy, indexed by id and by key order.

use crate::cell::CellId;
use crate::state::ordered::is_void;
use hashbrown::HashTable;
use std::borrow::Borrow;
use std::collections::{BTreeMap, btree_map};
use std::ops::RangeBounds;

#[derive(Clone)]
struct Cell<K, C> {
    id: CellId,
    key: K,
    content: C,
}

#[derive(Clone)]
pub(crate) struct Cells<K, C> {
    cells: HashTable<Cell<K, C>>,
    order: BTreeMap<K, CellId>,
}

impl<K, C> Default for Cells<K, C> {
    fn default() -> Self {
        Cells { cells: HashTable::new(), order: BTreeMap::new() }
    }
}

impl<K: Ord + Clone, C> Cells<K, C> {
    #[inline(always)]
    pub(crate) fn find<Q: Eq + ?Sized>(&self, id: CellId, key: &Q) -> Option<&C>
    where
        K: Borrow<Q>,
    {
        self.cells.find(id.0, |c| c.id == id && c.key.borrow() == key).map(|c| &c.content)
    }

    pub(crate) fn find_mut(&mut self, id: CellId, key: &K) -> Option<&mut C> {
        self.cells.find_mut(id.0, |c| c.id == id && c.key == *key).map(|c| &mut c.content)
    }

    /// Returns the content of a cell, inserting the default if there is none.
    pub(crate) fn or_default(&mut self, id: CellId, key: &K) -> &mut C
    where
        C: Default,
    {
        let Cells { cells, order } = self;
        let found = cells.entry(id.0, |c| c.id == id && c.key == *key, |c| c.id.0);
        let cell = found.or_insert_with(|| {
            order.insert(key.clone(), id);
            Cell { id, key: key.clone(), content: C::default() }
        });
        &mut cell.into_mut().content
    }

    pub(crate) fn put(&mut self, id: CellId, key: &K, content: C) {
        let Cells { cells, order } = self;
        match cells.find_mut(id.0, |c| c.id == id && c.key == *key) {
            Some(cell) => cell.content = content,
            None => {
                order.insert(key.clone(), id);
                cells.insert_unique(id.0, Cell { id, key: key.clone(), content }, |c| c.id.0);
            }
        }
    }

    pub(crate) fn remove(&mut self, id: CellId, key: &K) {
        if let Ok(found) = self.cells.find_entry(id.0, |c| c.id == id && c.key == *key) {
            self.order.remove(key);
            found.remove();
        }
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &C)> {
        self.order.iter().filter_map(|at| self.at(at))
    }

    pub(crate) fn range<Q: Ord + ?Sized>(
        &self,
        range: impl RangeBounds<Q>,
    ) -> impl DoubleEndedIterator<Item = (&K, &C)>
    where
        K: Borrow<Q>,
    {
        // An invalid range is treated as empty; the standard library would panic.
        let range = (!is_void(&range)).then(|| self.order.range(range));
        let none: btree_map::Range<'_, K, CellId> = Default::default();
        range.unwrap_or(none).filter_map(|at| self.at(at))
    }

    fn at<'a>(&'a self, (key, id): (&'a K, &CellId)) -> Option<(&'a K, &'a C)> {
        self.find(*id, key).map(|content| (key, content))
    }

    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }
}
