//! The content of a version: the cells of each dictionary with views, and the values derived from them.

use crate::cell::CellId;
use crate::key::Key;
use crate::message::Value;
use crate::panics::to_the_end;
use crate::state::ordered::Ordered;
use crate::state::rows::RowKey;
use crate::view::cells::Cells;
use crate::view::derived::Derived;
use crate::view::pair::{Copied, Log};
use std::any::Any;
use std::sync::Arc;

/// The copied cells of one dictionary, which are kept in sync by changes. All copies share the values.
pub trait Mirror: Default + Clone + Send + Sync + 'static {
    /// The new value of one row, or of one cell without rows.
    type Change: Send + 'static;
    /// Applies a change.
    fn apply(&mut self, change: &Self::Change);
}

/// The cells of a `Dict`.
#[expect(missing_debug_implementations, reason = "only generated code names this type")]
pub struct DictMirror<K, V>(pub(crate) Cells<K, Arc<V>>);

/// The new value of an entry of a `Dict`; `None` if it was removed.
#[expect(missing_debug_implementations, reason = "only generated code names this type")]
pub struct DictChange<K, V> {
    pub(crate) id: CellId,
    pub(crate) key: K,
    pub(crate) value: Option<Arc<V>>,
}

impl<K, V> Default for DictMirror<K, V> {
    fn default() -> Self {
        DictMirror(Cells::default())
    }
}

impl<K: Clone, V> Clone for DictMirror<K, V> {
    fn clone(&self) -> Self {
        DictMirror(self.0.clone())
    }
}

impl<K: Key, V: Value> Mirror for DictMirror<K, V> {
    type Change = DictChange<K, V>;

    fn apply(&mut self, DictChange { id, key, value }: &DictChange<K, V>) {
        match value {
            Some(value) => self.0.put(*id, key, value.clone()),
            None => self.0.remove(*id, key),
        }
    }
}

/// The cells of a `Table`.
#[expect(missing_debug_implementations, reason = "only generated code names this type")]
pub struct TableMirror<K, R, V> {
    pub(crate) cells: Cells<K, Ordered<R, Arc<V>>>,
}

/// The new value of a row of a `Table`; `None` if it was removed.
#[expect(missing_debug_implementations, reason = "only generated code names this type")]
pub struct TableChange<K, R, V> {
    pub(crate) id: CellId,
    pub(crate) key: K,
    pub(crate) row: R,
    pub(crate) value: Option<Arc<V>>,
}

impl<K, R, V> Default for TableMirror<K, R, V> {
    fn default() -> Self {
        TableMirror { cells: Cells::default() }
    }
}

impl<K: Clone, R: Clone, V> Clone for TableMirror<K, R, V> {
    fn clone(&self) -> Self {
        TableMirror { cells: self.cells.clone() }
    }
}

impl<K: Key, R: RowKey, V: Value> Mirror for TableMirror<K, R, V> {
    type Change = TableChange<K, R, V>;

    fn apply(&mut self, TableChange { id, key, row, value }: &TableChange<K, R, V>) {
        match value {
            Some(value) => drop(self.cells.or_default(*id, key).insert(row.clone(), value.clone())),
            None => {
                let Some(rows) = self.cells.find_mut(*id, key) else { return };
                let gone = rows.remove(row);
                if rows.is_empty() {
                    self.cells.remove(*id, key)
                }
                drop(gone)
            }
        }
    }
}

/// A [`Mirror`] with its type erased.
pub(crate) trait AnyMirror: Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn duplicate(&self) -> Box<dyn AnyMirror>;
    fn apply(&mut self, changes: &dyn AnyChanges);
}

struct Of<M>(M);

impl<M: Mirror> AnyMirror for Of<M> {
    fn as_any(&self) -> &dyn Any {
        &self.0
    }

    fn duplicate(&self) -> Box<dyn AnyMirror> {
        Box::new(Of(self.0.clone()))
    }

    fn apply(&mut self, changes: &dyn AnyChanges) {
        if let Some(ChangesOf { changes, .. }) = changes.as_any().downcast_ref::<ChangesOf<M>>() {
            let mut rest = changes.iter();
            to_the_end(|| rest.by_ref().for_each(|change| self.0.apply(change)))
        }
    }
}

/// The copy of one dictionary.
pub(crate) struct Column {
    mirror: Box<dyn AnyMirror>,
    /// Values derived from the current content of `mirror`.
    pub(crate) derived: Arc<Derived>,
}

impl Column {
    pub(crate) fn of<M: Mirror>(mirror: M) -> Self {
        Column { mirror: Box::new(Of(mirror)), derived: Arc::default() }
    }

    #[inline(always)]
    pub(crate) fn cells<M: Mirror>(&self) -> Option<&M> {
        self.mirror.as_any().downcast_ref()
    }

    fn apply(&mut self, changes: &dyn AnyChanges) {
        self.mirror.apply(changes);
        self.derived = Arc::default()
    }
}

/// The dictionaries of an app by index; `None` for dictionaries without views.
#[derive(Default)]
pub(crate) struct Copies {
    pub(crate) columns: Vec<Option<Column>>,
}

impl Copied for Copies {
    type Log = Changes;

    fn duplicate(&self) -> Self {
        let column =
            |column: &Column| Column { mirror: column.mirror.duplicate(), derived: column.derived.clone() };
        Copies { columns: self.columns.iter().map(|c| c.as_ref().map(column)).collect() }
    }

    fn apply(&mut self, log: &Changes) {
        for (column, changes) in self.columns.iter_mut().zip(&log.columns) {
            if let (Some(column), Some(changes)) = (column, changes)
                && changes.len() > 0
            {
                column.apply(&**changes)
            }
        }
    }

    fn follow(&mut self, current: &Self, log: &Changes) {
        self.apply(log);
        for (at, (column, current)) in self.columns.iter_mut().zip(&current.columns).enumerate() {
            let is_same = log.columns.get(at).is_none_or(|c| c.as_ref().is_none_or(|c| c.len() == 0));
            if let (Some(column), Some(current), true) = (column, current, is_same) {
                column.derived = current.derived.clone()
            }
        }
    }
}

/// Changes to one dictionary, with the type erased.
pub(crate) trait AnyChanges: Send {
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
    fn len(&self) -> usize;
    fn append(&mut self, later: &mut dyn AnyChanges);
    fn clear(&mut self);
    /// Protects the changes collected so far from [`AnyChanges::forget`].
    fn keep(&mut self);
    /// Discards the changes collected since the last [`AnyChanges::keep`].
    fn forget(&mut self);
    fn another(&self) -> Box<dyn AnyChanges>;
}

pub(crate) struct ChangesOf<M: Mirror> {
    pub(crate) changes: Vec<M::Change>,
    kept: usize,
}

impl<M: Mirror> Default for ChangesOf<M> {
    fn default() -> Self {
        ChangesOf { changes: Vec::new(), kept: 0 }
    }
}

/// Maximum capacity, in changes, that the buffer of a dictionary retains after use.
const CHANGES_KEPT: usize = 1024;

impl<M: Mirror> AnyChanges for ChangesOf<M> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn len(&self) -> usize {
        self.changes.len()
    }

    fn append(&mut self, later: &mut dyn AnyChanges) {
        if let Some(later) = later.as_any_mut().downcast_mut::<ChangesOf<M>>() {
            self.changes.append(&mut later.changes);
            later.clear();
            self.kept = self.changes.len()
        }
    }

    fn clear(&mut self) {
        self.kept = 0;
        to_the_end(|| while self.changes.pop().is_some() {});
        self.changes.shrink_to(CHANGES_KEPT)
    }

    fn keep(&mut self) {
        self.kept = self.changes.len()
    }

    fn forget(&mut self) {
        self.changes.truncate(self.kept)
    }

    fn another(&self) -> Box<dyn AnyChanges> {
        Box::new(ChangesOf::<M>::default())
    }
}

/// Changes to all of an app's dictionaries that have views. The changes of each dictionary are in order.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) columns: Vec<Option<Box<dyn AnyChanges>>>,
}

impl Changes {
    fn each(&mut self) -> impl Iterator<Item = &mut Box<dyn AnyChanges>> {
        self.columns.iter_mut().flatten()
    }

    /// Protects the changes collected so far from [`Changes::forget`].
    pub(crate) fn keep(&mut self) {
        self.each().for_each(|column| column.keep())
    }

    /// Discards the changes collected since the last [`Changes::keep`].
    pub(crate) fn forget(&mut self) {
        self.each().for_each(|column| column.forget())
    }

    /// Returns the changes of dictionary `index`, which it creates if necessary. Returns `None` if the type does
    /// not match.
    #[inline]
    pub(crate) fn of<M: Mirror>(&mut self, index: u32) -> Option<&mut Vec<M::Change>> {
        let index = index as usize;
        if self.columns.len() <= index {
            self.columns.resize_with(index + 1, || None)
        }
        let column = self.columns.get_mut(index)?.get_or_insert_with(|| Box::new(ChangesOf::<M>::default()));
        column.as_any_mut().downcast_mut::<ChangesOf<M>>().map(|of| &mut of.changes)
    }
}

impl Log for Changes {
    fn len(&self) -> usize {
        self.columns.iter().flatten().map(|column| column.len()).sum()
    }

    fn append(&mut self, later: &mut Self) {
        if self.columns.len() < later.columns.len() {
            self.columns.resize_with(later.columns.len(), || None)
        }

        for (own, later) in self.columns.iter_mut().zip(&mut later.columns) {
            if let Some(later) = later
                && later.len() > 0
            {
                own.get_or_insert_with(|| later.another()).append(&mut **later)
            }
        }
    }

    fn clear(&mut self) {
        self.each().for_each(|column| column.clear())
    }
}
