//! `Rows`: the content of one cell of a `Table`. Rows are ordered, and each row is undone separately.

use crate::message::Value;
use crate::state::image::encode;
use crate::state::ordered::Ordered;
use crate::state::undo::{Mark, UndoLog};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::ops::RangeBounds;

/// The key of a row inside a cell. It must be `Ord`, because rows are iterated in order, and `Hash`, because rows in a
/// large cell are found by hash.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the key of a table's rows",
    label = "not a row key",
    note = "derive whichever of these are missing: Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize (serde with its feature `derive` in Cargo.toml)",
    note = "more: beehive::guide::errors::derives"
)]
pub trait RowKey: Ord + Hash + Clone + Serialize + DeserializeOwned + Send + Sync + 'static {}
#[diagnostic::do_not_recommend]
impl<R: Ord + Hash + Clone + Serialize + DeserializeOwned + Send + Sync + 'static> RowKey for R {}

/// The rows of one [`Table`](crate::Table) cell, in key order.
///
/// Once the cell is mapped, a handler may use all its rows. However large the cell is, a change needs an undo entry
/// only for the changed row.
///
/// The type has no size known at compile time, so a handler cannot move the rows out of their cell, as with
/// [`std::mem::swap`] or [`std::mem::take`]: they contain the undo entries of the transaction, which would be applied to
/// the wrong cell if the handler failed. Move single rows instead, for example those that [`Rows::take_if`] returns.
///
/// ```compile_fail,E0277
/// # use beehive_core::Rows;
/// fn swap(one: &mut Rows<u64, u64>, other: &mut Rows<u64, u64>) {
///     std::mem::swap(one, other)
/// }
/// ```
pub struct Rows<R, V, Place: ?Sized = [()]> {
    rows: Ordered<R, V>,
    undo: UndoLog<(R, Option<V>)>,
    /// Empty: a slice without elements for a handler, which makes the type unsized, and an array of length 0 for the
    /// owner.
    _place: Place,
}

impl<R: RowKey + fmt::Debug, V: Value + fmt::Debug, Place: ?Sized> fmt::Debug for Rows<R, V, Place> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Rows whose size is known, for their owner: a table, or a test of a function that takes `&mut Rows`.
pub type OwnedRows<R, V> = Rows<R, V, [(); 0]>;

impl<R, V> Default for OwnedRows<R, V> {
    fn default() -> Self {
        Rows { rows: Ordered::default(), undo: UndoLog::default(), _place: [] }
    }
}

impl<R: RowKey, V: Value, Place: ?Sized> Rows<R, V, Place> {
    /// Returns the value of `row`.
    #[inline]
    pub fn get<Q: Ord + Hash + ?Sized>(&self, row: &Q) -> Option<&V>
    where
        R: Borrow<Q>,
    {
        self.rows.get(row)
    }

    /// Checks whether `row` exists.
    #[inline]
    pub fn contains<Q: Ord + Hash + ?Sized>(&self, row: &Q) -> bool
    where
        R: Borrow<Q>,
    {
        self.rows.get(row).is_some()
    }

    /// Returns the value of `row` for modification.
    #[inline]
    pub fn get_mut(&mut self, row: &R) -> Option<&mut V> {
        let value = self.rows.get_mut(row)?;
        log(&mut self.undo, row, || Some(value.clone()));
        Some(value)
    }

    /// Sets the value of `row`. Returns the previous value.
    #[inline]
    pub fn insert(&mut self, row: R, value: V) -> Option<V> {
        match self.rows.get_mut(&row) {
            Some(slot) => {
                // Log the old value before anything changes, because `clone` may panic.
                log(&mut self.undo, &row, || Some(slot.clone()));
                Some(std::mem::replace(slot, value))
            }
            None => {
                log(&mut self.undo, &row, || None);
                self.rows.add(row, value);
                None
            }
        }
    }

    /// Removes `row`. Returns its value.
    #[inline]
    pub fn remove(&mut self, row: &R) -> Option<V> {
        let old = self.rows.get(row)?;
        log(&mut self.undo, row, || Some(old.clone()));
        self.rows.remove(row)
    }

    /// Returns the entry of `row`, for insertion or modification in place.
    #[inline]
    pub fn entry(&mut self, row: R) -> RowEntry<'_, R, V> {
        RowEntry { rows: &mut self.rows, undo: &mut self.undo, row }
    }

    /// Iterates over the rows in `range`, in order.
    pub fn range<Q: Ord + ?Sized>(
        &self,
        range: impl RangeBounds<Q>,
    ) -> impl DoubleEndedIterator<Item = (&R, &V)>
    where
        R: Borrow<Q>,
    {
        self.rows.range(range)
    }

    /// Iterates over all rows, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&R, &V)> {
        self.rows.iter()
    }

    /// Iterates over the keys of all rows, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &R> {
        self.rows.iter().map(|(row, _)| row)
    }

    /// Iterates over the values of all rows, in key order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.rows.iter().map(|(_, value)| value)
    }

    /// Returns the first row.
    pub fn first(&self) -> Option<(&R, &V)> {
        self.rows.iter().next()
    }

    /// Returns the last row.
    pub fn last(&self) -> Option<(&R, &V)> {
        self.rows.iter().next_back()
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Checks whether there are no rows. A cell without rows at the end of a transaction ceases to exist.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Removes the rows for which `take` returns true, and returns them. Calls `take` in key order.
    pub fn take_if(&mut self, mut take: impl FnMut(&R, &V) -> bool) -> Vec<(R, V)> {
        let chosen: Vec<R> = self.rows.iter().filter(|(r, v)| take(r, v)).map(|(r, _)| r.clone()).collect();
        chosen
            .into_iter()
            .filter_map(|row| {
                let value = self.remove(&row)?;
                Some((row, value))
            })
            .collect()
    }

    /// Keeps the rows for which `keep` returns true. Calls `keep` in key order.
    pub fn retain(&mut self, mut keep: impl FnMut(&R, &V) -> bool) {
        self.take_if(|row, value| !keep(row, value));
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.take_if(|_, _| true);
    }

    // ---- methods that the table calls on its cells ----

    pub(crate) fn evict_first(&mut self, count: usize) {
        let rows: Vec<R> = self.rows.iter().take(count).map(|(row, _)| row.clone()).collect();
        rows.iter().for_each(|row| drop(self.remove(row)))
    }

    pub(crate) fn evict_last(&mut self, count: usize) {
        let rows: Vec<R> = self.rows.iter().rev().take(count).map(|(row, _)| row.clone()).collect();
        rows.iter().for_each(|row| drop(self.remove(row)))
    }

    pub(crate) fn is_dirty(&self) -> bool {
        !self.undo.is_empty()
    }

    #[inline(always)]
    pub(crate) fn commit(&mut self) {
        self.undo.clear()
    }

    pub(crate) fn rollback(&mut self) {
        while let Some((row, old)) = self.undo.pop() {
            self.put_back(row, old)
        }
    }

    fn put_back(&mut self, row: R, old: Option<V>) {
        match old {
            Some(value) => drop(self.rows.insert(row, value)),
            None => drop(self.rows.remove(&row)),
        }
    }

    pub(crate) fn mark(&mut self) -> Mark {
        self.undo.mark()
    }

    pub(crate) fn rollback_to(&mut self, mark: &Mark) {
        while let Some((row, old)) = self.undo.pop_since(mark) {
            self.put_back(row, old)
        }
    }

    pub(crate) fn release(&mut self, mark: &Mark) {
        self.undo.release(mark)
    }

    /// Iterates over the rows that the transaction may have changed. Yields the key, the current value and the value
    /// before the transaction.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (&R, Option<&V>, Option<&V>)> {
        let undo = self.undo.entries();
        // A row occurs more than once in the undo log if it changed again after a savepoint.
        #[expect(clippy::disallowed_types, reason = "seeded, because rows come from outside; never iterated")]
        let mut known = hashbrown::HashSet::<_>::new();
        // Most transactions change one row once and so need no set.
        let first = undo.iter().filter(move |(row, _)| undo.len() == 1 || known.insert(row));
        first.map(|(row, old)| (row, self.rows.get(row), old.as_ref()))
    }

    /// Iterates over the changed rows with their current values. A row may occur more than once.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (&R, Option<&V>)> {
        self.undo.entries().iter().map(|(row, _)| (row, self.rows.get(row)))
    }

    pub(crate) fn images(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.rows.iter().map(|(r, v)| (encode(r), encode(v))).collect()
    }

    /// Inserts a row outside any transaction.
    pub(crate) fn load(&mut self, row: R, value: V) {
        self.rows.insert(row, value);
    }

    /// Removes a row outside any transaction. Returns its value.
    pub(crate) fn unload(&mut self, row: &R) -> Option<V> {
        self.rows.remove(row)
    }
}

#[inline]
fn log<R: RowKey, V>(undo: &mut UndoLog<(R, Option<V>)>, row: &R, old: impl FnOnce() -> Option<V>) {
    undo.note(
        |(r, _)| r == row,
        |hasher, (r, _)| hasher.hash_one(r),
        |hasher| hasher.hash_one(row),
        || (row.clone(), old()),
    )
}

/// The entry of one row, occupied or vacant.
pub struct RowEntry<'a, R, V> {
    rows: &'a mut Ordered<R, V>,
    undo: &'a mut UndoLog<(R, Option<V>)>,
    row: R,
}

impl<R: RowKey + fmt::Debug, V: fmt::Debug> fmt::Debug for RowEntry<'_, R, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowEntry").field("key", &self.row).field("value", &self.rows.get(&self.row)).finish()
    }
}

impl<'a, R: RowKey, V: Value> RowEntry<'a, R, V> {
    /// Inserts `value` if the entry is vacant. Returns the entry's value.
    #[inline]
    pub fn or_insert(self, value: V) -> &'a mut V {
        self.or_insert_with(|| value)
    }

    /// Inserts the result of `make` if the entry is vacant. Returns the entry's value.
    #[inline]
    pub fn or_insert_with(self, make: impl FnOnce() -> V) -> &'a mut V {
        let RowEntry { rows, undo, row } = self;
        match rows.get_mut(&row) {
            // Look the row up again below, because the borrow checker does not allow returning this borrow.
            Some(slot) => log(undo, &row, || Some(slot.clone())),
            None => {
                log(undo, &row, || None);
                return rows.add(row, make());
            }
        }

        rows.get_mut(&row).expect("found a moment ago")
    }

    /// Inserts `V::default()` if the entry is vacant. Returns the entry's value.
    #[inline]
    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }

    /// Calls `change` on the value if the entry is occupied.
    #[inline]
    pub fn and_modify(self, change: impl FnOnce(&mut V)) -> Self {
        if let Some(value) = self.rows.get_mut(&self.row) {
            log(self.undo, &self.row, || Some(value.clone()));
            change(value)
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::image::{Op, Redo};

    #[test]
    fn undoes_by_row_and_in_reverse() {
        let mut rows = OwnedRows::<u32, u32>::default();
        rows.insert(1, 10);
        rows.insert(2, 20);
        rows.commit();
        rows.insert(1, 11);
        rows.remove(&2);
        rows.insert(2, 22);
        *rows.entry(3).or_default() += 7;
        rows.entry(1).and_modify(|v| *v += 1);

        assert_eq!(rows.iter().map(|(r, v)| (*r, *v)).collect::<Vec<_>>(), [(1, 12), (2, 22), (3, 7)]);
        rows.rollback();
        assert_eq!(rows.iter().map(|(r, v)| (*r, *v)).collect::<Vec<_>>(), [(1, 10), (2, 20)]);
    }

    #[test]
    fn changes_name_a_row_once_with_its_last_value() {
        let mut rows = OwnedRows::<u32, u32>::default();
        rows.load(0, 7);
        for n in 0..40 {
            rows.insert(n % 20, n);
        }

        rows.remove(&0);
        let changes: Vec<_> = rows.changes().collect();
        assert_eq!(changes.len(), 20);
        assert_eq!(changes[0], (&0, None, Some(&7)));
        assert_eq!(changes[19], (&19, Some(&39), None));
    }

    #[test]
    fn a_row_that_is_as_before_is_no_change() {
        let mut rows = OwnedRows::<u32, u32>::default();
        (0..4).for_each(|row| rows.load(row, row));

        rows.insert(0, 0);
        rows.remove(&1);
        rows.insert(1, 1);
        *rows.entry(2).or_default() += 1;
        rows.insert(9, 9);
        rows.remove(&9);

        let mut redo = Redo::default();
        for (row, value, old) in rows.changes() {
            redo.encode_change(0, "key", Some(row), value, old)
        }
        let (key, row, value) = (encode("key"), encode(&2u32), encode(&3u32));
        let change = Op { dict: 0, key: &key, row: Some(&row), value: Some(&value) };
        assert!(redo.iter().eq([change]), "{redo:?}");
    }
}
