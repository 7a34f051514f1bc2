//! Storage for the cells of one dictionary in one bee. Most bees own a single cell, which needs no hash table.

use crate::cell::CellId;
use hashbrown::HashTable;
use smallvec::{SmallVec, smallvec};
use std::borrow::Borrow;

pub(crate) struct Slot<K, C> {
    pub(crate) id: CellId,
    pub(crate) key: K,
    pub(crate) content: C,
}

/// The cells of one dictionary in one bee.
pub(crate) enum Slots<K, C> {
    None,
    One(Box<Slot<K, C>>),
    Many(Box<HashTable<Slot<K, C>>>),
}

impl<K: Ord, C> Slots<K, C> {
    #[inline(always)]
    pub(crate) fn find<Q: Eq + ?Sized>(&self, id: CellId, key: &Q) -> Option<&Slot<K, C>>
    where
        K: Borrow<Q>,
    {
        match self {
            Slots::One(slot) if slot.id == id && slot.key.borrow() == key => Some(slot),
            Slots::Many(table) => table.find(id.0, |s| s.id == id && s.key.borrow() == key),
            _ => None,
        }
    }

    #[inline(always)]
    pub(crate) fn find_mut<Q: Eq + ?Sized>(&mut self, id: CellId, key: &Q) -> Option<&mut Slot<K, C>>
    where
        K: Borrow<Q>,
    {
        match self {
            Slots::One(slot) if slot.id == id && slot.key.borrow() == key => Some(slot),
            Slots::Many(table) => table.find_mut(id.0, |s| s.id == id && s.key.borrow() == key),
            _ => None,
        }
    }

    /// Adds a cell that must not exist yet. Returns it.
    pub(crate) fn insert(&mut self, id: CellId, key: K, content: C) -> &mut Slot<K, C> {
        let slot = Slot { id, key, content };
        match self {
            Slots::None => {
                *self = Slots::One(Box::new(slot));
                match self {
                    Slots::One(slot) => slot,
                    _ => unreachable!("just set"),
                }
            }
            Slots::One(_) => {
                let Slots::One(first) = std::mem::replace(self, Slots::None) else {
                    unreachable!("just matched")
                };
                let mut table = HashTable::with_capacity(4);
                table.insert_unique(first.id.0, *first, |s| s.id.0);
                *self = Slots::Many(Box::new(table));
                match self {
                    Slots::Many(table) => table.insert_unique(id.0, slot, |s| s.id.0).into_mut(),
                    _ => unreachable!("just set"),
                }
            }
            Slots::Many(table) => table.insert_unique(id.0, slot, |s| s.id.0).into_mut(),
        }
    }

    /// Removes a cell and returns it.
    pub(crate) fn remove<Q: Eq + ?Sized>(&mut self, id: CellId, key: &Q) -> Option<Slot<K, C>>
    where
        K: Borrow<Q>,
    {
        match self {
            Slots::One(slot) if slot.id == id && slot.key.borrow() == key => {
                let Slots::One(slot) = std::mem::replace(self, Slots::None) else { unreachable!() };
                Some(*slot)
            }
            Slots::Many(table) => {
                let found = table.find_entry(id.0, |s| s.id == id && s.key.borrow() == key).ok()?;
                let slot = found.remove().0;
                if table.is_empty() {
                    *self = Slots::None;
                }
                Some(slot)
            }
            _ => None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Slots::None => 0,
            Slots::One(_) => 1,
            Slots::Many(table) => table.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all cells in key order. A hash table's order would depend on the cells' history.
    pub(crate) fn sorted(&self) -> SmallVec<[&Slot<K, C>; 1]> {
        match self {
            Slots::None => SmallVec::new(),
            Slots::One(slot) => smallvec![&**slot],
            Slots::Many(table) => {
                let mut all: SmallVec<[&Slot<K, C>; 1]> = table.iter().collect();
                all.sort_unstable_by(|a, b| a.key.cmp(&b.key));
                all
            }
        }
    }

    pub(crate) fn sorted_mut(&mut self) -> Vec<&mut Slot<K, C>> {
        match self {
            Slots::None => Vec::new(),
            Slots::One(slot) => vec![slot],
            Slots::Many(table) => {
                let mut all: Vec<_> = table.iter_mut().collect();
                all.sort_unstable_by(|a, b| a.key.cmp(&b.key));
                all
            }
        }
    }

    /// Removes and returns all cells.
    pub(crate) fn drain(&mut self) -> Vec<Slot<K, C>> {
        match std::mem::replace(self, Slots::None) {
            Slots::None => Vec::new(),
            Slots::One(slot) => vec![*slot],
            Slots::Many(table) => table.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_and_shrinks_and_keeps_order() {
        let mut slots: Slots<u64, u64> = Slots::None;
        for key in [5u64, 3, 9, 1] {
            assert_eq!(slots.insert(CellId(key * 10), key, key).content, key);
        }

        assert_eq!(slots.sorted().iter().map(|s| s.key).collect::<Vec<_>>(), [1, 3, 5, 9]);
        assert_eq!(slots.find(CellId(90), &9u64).map(|s| s.content), Some(9));

        for key in [5u64, 3, 9, 1] {
            assert!(slots.remove(CellId(key * 10), &key).is_some());
        }

        assert!(matches!(slots, Slots::None));
    }

    #[test]
    fn keys_with_one_id_stay_apart() {
        let mut slots: Slots<u64, &str> = Slots::None;
        slots.insert(CellId(1), 1, "one");
        slots.insert(CellId(1), 2, "two");
        slots.insert(CellId(1), 3, "three");
        assert_eq!(slots.find(CellId(1), &2u64).map(|s| s.content), Some("two"));
        assert_eq!(slots.remove(CellId(1), &1u64).map(|s| s.content), Some("one"));
        assert_eq!(slots.find(CellId(1), &3u64).map(|s| s.content), Some("three"));
    }
}
