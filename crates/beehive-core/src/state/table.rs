//! `Table`: a typed map whose cells hold ordered rows.

use crate::cell::CellId;
use crate::key::Key;
use crate::mapper::{DictInfo, DictMeta, Evict, RowLimit};
use crate::message::Value;
use crate::shape::Shape;
use crate::state::column::Column;
use crate::state::guard;
use crate::state::image::{CellImage, DecodeError, Op, Redo, decode, encode, words};
use crate::state::rows::{OwnedRows, RowKey, Rows};
use crate::state::slots::{Slot, Slots};
use crate::state::undo::Mark;
use crate::view;
use crate::view::{Mirror, SharedTable, TableChange, TableMirror};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// An app's dictionary whose cells hold ordered rows. `at(key)` selects a cell, and the handler may then use all of
/// that cell's rows.
pub struct Table<K: 'static, R, V> {
    meta: &'static DictMeta<K>,
    cells: Slots<K, OwnedRows<R, V>>,
    /// Cells accessed in this transaction. The list is not maintained while the table has only one cell, because
    /// no other cell can have been accessed.
    touched: Vec<(CellId, K)>,
}

/// Shows only the name, for the same reason as a [`Dict`](crate::Dict).
impl<K, R, V> fmt::Debug for Table<K, R, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("name", &self.meta.name).finish_non_exhaustive()
    }
}

impl<K, R, V> Table<K, R, V> {
    /// Returns an empty table. Called by generated code.
    #[doc(hidden)]
    pub fn open(meta: &'static DictMeta<K>) -> Self {
        Table { meta, cells: Slots::None, touched: Vec::new() }
    }
}

impl<K: Key, R: RowKey, V: Value> Table<K, R, V> {
    /// Returns the rows of cell `key`. A read does not leave an empty cell behind, because cells without rows are
    /// removed when the transaction ends.
    #[inline]
    pub fn at(&mut self, key: K) -> &mut Rows<R, V> {
        let id = guard::check(self.meta, &key);
        self.reach(id, key)
    }

    #[inline(always)]
    fn reach(&mut self, id: CellId, key: K) -> &mut Rows<R, V> {
        let Table { cells, touched, .. } = self;
        let alone = match cells {
            Slots::None => true,
            Slots::One(slot) => slot.id == id && slot.key == key,
            Slots::Many(_) => false,
        };

        // A cell may be recorded twice, because the operations at the end of the transaction are idempotent.
        if !alone && !touched.last().is_some_and(|(i, k)| *i == id && *k == key) {
            if let Slots::One(first) = cells {
                // From now on, the table has several cells. The first one may have been accessed before.
                touched.push((first.id, first.key.clone()));
            }
            touched.push((id, key.clone()));
        }

        let known = cells.find(id, &key).is_some();
        if known {
            return &mut cells.find_mut(id, &key).expect("found a moment ago").content;
        }

        &mut cells.insert(id, key, OwnedRows::default()).content
    }

    /// Returns all cells of the table. They are then all owned by one bee; see [`Dict::whole`](crate::Dict::whole).
    pub fn whole(&mut self) -> WholeTable<'_, K, R, V> {
        guard::check_whole(self.meta);
        WholeTable { table: self }
    }

    /// Returns a read-only view of all cells, regardless of which bees own them. The view contains committed state,
    /// which may be slightly stale, and its cells are not part of the handler's map. Use the view to find a cell,
    /// then confirm the decision at the cell itself.
    ///
    /// # Panics
    ///
    /// Panics if called outside a handler and outside [`Hive::read`](crate::Hive::read). If the view is older
    /// than the dictionary's `#[shared(max_age = "..")]` allows, the transaction fails here with an error of
    /// kind [`Stale`](crate::ErrorKind::Stale).
    #[inline]
    pub fn shared(&self) -> SharedTable<K, R, V> {
        let DictMeta { name, index, max_age, .. } = self.meta;
        SharedTable::new(view::pinned(name, *index, *max_age, || self.mirror()), self.meta)
    }

    fn mirror(&self) -> TableMirror<K, R, V> {
        let (mut mirror, mut changes) = (TableMirror::default(), Vec::new());
        self.contents(&mut changes);
        changes.iter().for_each(|change| mirror.apply(change));
        mirror
    }

    /// Iterates over the cells that the transaction may have changed.
    fn reached(&self) -> impl Iterator<Item = &Slot<K, OwnedRows<R, V>>> {
        let one = match &self.cells {
            Slots::One(slot) => Some(&**slot),
            _ => None,
        };
        // A table with several cells records every accessed cell in `touched`.
        let noted = if one.is_some() { &[] } else { self.touched.as_slice() };
        one.into_iter().chain(noted.iter().filter_map(|(id, key)| self.cells.find(*id, key)))
    }

    /// Same as [`Table::for_touched`], but keeps empty cells until the transaction ends.
    fn for_reached(&mut self, mut f: impl FnMut(&mut Slot<K, OwnedRows<R, V>>)) {
        let Table { cells, touched, .. } = self;
        if let Slots::One(slot) = cells {
            return f(slot);
        }

        for (id, key) in touched {
            if let Some(slot) = cells.find_mut(*id, key) {
                f(slot)
            }
        }
    }

    /// Calls `f` for each cell that the transaction may have changed. Then removes empty cells and clears the list of
    /// accessed cells.
    #[inline(always)]
    fn for_touched(&mut self, mut f: impl FnMut(&mut Slot<K, OwnedRows<R, V>>)) {
        if let Slots::One(slot) = &mut self.cells {
            f(slot);
            self.touched.clear();
            if slot.content.is_empty() {
                self.cells = Slots::None;
            }
            return;
        }

        let Table { cells, touched, .. } = self;
        // Keep the cell in the list until it has been processed, because dropping its content may panic.
        while let Some((id, key)) = touched.last() {
            if let Some(slot) = cells.find_mut(*id, key) {
                f(slot);
                if slot.content.is_empty() {
                    cells.remove(*id, key);
                }
            }
            touched.pop();
        }
    }
}

/// All cells of a [`Table`], in key order.
pub struct WholeTable<'a, K: 'static, R, V> {
    table: &'a mut Table<K, R, V>,
}

impl<K: Key + fmt::Debug, R: RowKey + fmt::Debug, V: Value + fmt::Debug> fmt::Debug
    for WholeTable<'_, K, R, V>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(key, row, value)| ((key, row), value))).finish()
    }
}

impl<K: Key, R: RowKey, V: Value> WholeTable<'_, K, R, V> {
    /// Returns the rows of cell `key`.
    pub fn at(&mut self, key: K) -> &mut Rows<R, V> {
        let id = self.table.meta.cell(guard::seed(), &key);
        self.table.reach(id, key)
    }

    /// Iterates over all rows, in order. Yields the cell key, the row key and the value of each row.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &R, &V)> {
        self.table.cells.sorted().into_iter().flat_map(|s| s.content.iter().map(|(r, v)| (&s.key, r, v)))
    }

    /// Iterates over the keys of all cells that have rows, in order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.table.cells.sorted().into_iter().filter(|s| !s.content.is_empty()).map(|s| &s.key)
    }
}

fn change<K: Clone, R: Clone, V: Clone, C>(
    slot: &Slot<K, C>,
    row: &R,
    value: Option<&V>,
) -> TableChange<K, R, V> {
    let value = value.map(|value| Arc::new(value.clone()));
    TableChange { id: slot.id, key: slot.key.clone(), row: row.clone(), value }
}

impl<K: Key, R: RowKey, V: Value> Column for Table<K, R, V> {
    /// Savepoints of the cells accessed so far, sorted by cell. A cell first accessed after the savepoint has no
    /// earlier changes.
    type Mark = Vec<(CellId, K, Mark)>;
    type Mirror = TableMirror<K, R, V>;

    fn changes(&self, out: &mut Vec<TableChange<K, R, V>>) {
        for slot in self.reached() {
            out.extend(slot.content.changed().map(|(row, value)| change(slot, row, value)))
        }
    }

    fn contents(&self, out: &mut Vec<TableChange<K, R, V>>) {
        for slot in self.cells.sorted() {
            out.extend(slot.content.iter().map(|(row, value)| change(slot, row, Some(value))))
        }
    }

    fn change_of(&self, seed: u64, op: &Op) -> Result<TableChange<K, R, V>, DecodeError> {
        let key: K = decode("a key", op.key)?;
        let row = decode("a row's key", op.row.unwrap_or_default())?;
        let value = op.value.map(|value| decode("a row", value).map(Arc::new)).transpose()?;
        Ok(TableChange { id: self.meta.cell(seed, &key), key, row, value })
    }

    fn evict(&mut self) -> Result<(), String> {
        let Some(RowLimit { max, evict }) = self.meta.rows else { return Ok(()) };
        let (name, mut refused) = (self.meta.name, None);
        self.for_reached(|slot| {
            let (rows, too_many) = (slot.content.len(), slot.content.len().saturating_sub(max as usize));
            match evict {
                _ if too_many == 0 => {}
                Evict::First => slot.content.evict_first(too_many),
                Evict::Last => slot.content.evict_last(too_many),
                Evict::Nothing => {
                    let cell = guard::words(name, &slot.key);
                    refused = Some(format!(
                        "`{cell}` would have {rows} rows; `#[rows(max = {max})]` allows at most {max}"
                    ))
                }
            }
        });

        refused.map_or(Ok(()), Err)
    }

    fn mark(&mut self) -> Self::Mark {
        let mut marks = Vec::new();
        self.for_reached(|slot| marks.push((slot.id, slot.key.clone(), slot.content.mark())));
        // If a cell has two savepoints, keeps the first.
        marks.sort_by(|(a, k, _), (b, l, _)| (a, k).cmp(&(b, l)));
        marks.dedup_by(|(a, k, _), (b, l, _)| a == b && k == l);
        marks
    }

    fn settle(&mut self, marks: Self::Mark, keep: bool) {
        if !keep {
            self.for_reached(|slot| {
                let mark = marks.binary_search_by(|(id, key, _)| (id, key).cmp(&(&slot.id, &slot.key)));
                let mark =
                    mark.ok().and_then(|at| marks.get(at)).map_or(&Mark::BEGINNING, |(_, _, mark)| mark);
                slot.content.rollback_to(mark)
            })
        }

        for (id, key, mark) in &marks {
            if let Some(slot) = self.cells.find_mut(*id, key) {
                slot.content.release(mark)
            }
        }
    }

    fn info(&self) -> DictInfo {
        self.meta.info()
    }

    #[inline(always)]
    fn index(&self) -> u32 {
        self.meta.index
    }

    fn take(&mut self) -> Self {
        std::mem::replace(self, Table::open(self.meta))
    }

    #[inline(always)]
    fn commit(&mut self) {
        self.for_touched(|slot| slot.content.commit())
    }

    fn rollback(&mut self) {
        self.for_touched(|slot| slot.content.rollback())
    }

    fn redo(&self, out: &mut Redo) {
        let mut add = |slot: &Slot<K, OwnedRows<R, V>>| {
            for (row, value, old) in slot.content.changes() {
                out.encode_change(self.meta.index, &slot.key, Some(row), value, old)
            }
        };

        match &self.cells {
            Slots::One(slot) => add(slot),
            cells => self.touched.iter().filter_map(|(id, key)| cells.find(*id, key)).for_each(add),
        }
    }

    fn is_dirty(&self) -> bool {
        match &self.cells {
            Slots::One(slot) => slot.content.is_dirty(),
            cells => self
                .touched
                .iter()
                .any(|(id, key)| cells.find(*id, key).is_some_and(|s| s.content.is_dirty())),
        }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    fn len(&self) -> usize {
        self.cells.len()
    }

    fn export(&self, out: &mut Vec<CellImage>) {
        out.extend(self.cells.sorted().into_iter().map(|slot| CellImage {
            dict: self.meta.index,
            key: encode(&slot.key),
            rows: slot.content.images(),
        }))
    }

    fn import(&mut self, seed: u64, image: &CellImage) -> Result<CellId, DecodeError> {
        let key: K = decode("a key", &image.key)?;
        let mut rows = OwnedRows::default();
        for (row, value) in &image.rows {
            rows.load(decode("a row's key", row)?, decode("a row", value)?);
        }

        let id = self.meta.cell(seed, &key);
        self.cells.remove(id, &key);
        self.cells.insert(id, key, rows);
        Ok(id)
    }

    fn set(&mut self, seed: u64, op: &Op) -> Result<(), DecodeError> {
        let key: K = decode("a key", op.key)?;
        let row: R = decode("a row's key", op.row.unwrap_or_default())?;
        let id = self.meta.cell(seed, &key);

        // Drop the value at the end of the function, because its drop may panic.
        let _old = self.cells.find_mut(id, &key).and_then(|slot| slot.content.unload(&row));
        if self.cells.find(id, &key).is_some_and(|slot| slot.content.is_empty()) {
            self.cells.remove(id, &key);
        }

        if let Some(value) = op.value {
            let value = decode("a row", value)?;
            match self.cells.find_mut(id, &key) {
                Some(slot) => slot.content.load(row, value),
                None => self.cells.insert(id, key, OwnedRows::default()).content.load(row, value),
            }
        }
        Ok(())
    }

    fn cells(&self, with: &mut dyn FnMut(CellId, &dyn Any)) {
        self.cells.sorted().into_iter().for_each(|slot| with(slot.id, &slot.key))
    }

    fn shape(&self) -> Shape {
        let rows = Shape::Map(Box::new(Shape::of::<R>()), Box::new(Shape::of::<V>()));
        Shape::Map(Box::new(Shape::of::<K>()), Box::new(rows))
    }

    fn in_words(&self, out: &mut Vec<(String, String)>) {
        out.extend(self.cells.sorted().into_iter().map(|slot| {
            let rows: Vec<(&R, &V)> = slot.content.iter().collect();
            (guard::words(self.meta.name, &slot.key), words(&rows))
        }))
    }

    fn clear(&mut self) {
        self.cells = Slots::None;
        self.touched.clear();
    }

    fn absorb(&mut self, other: &mut Self) {
        for slot in other.cells.drain() {
            self.cells.insert(slot.id, slot.key, slot.content);
        }
    }
}
