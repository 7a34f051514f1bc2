//! The types returned by `.shared()`: a dictionary as of the version pinned by the transaction's first read.

use crate::key::{Key, KeyEncoding};
use crate::mapper::DictMeta;
use crate::message::Value;
use crate::state::ordered::Ordered;
use crate::state::rows::RowKey;
use crate::view::copies::{DictMirror, TableMirror};
use crate::view::pin::Pinned;
use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const CAPTURES: &str = "a value derived from a view is computed once and shared by all readers, so the function passed to \
                        `derive` must not capture anything";

/// Fails at compile time if `F` captures variables.
const fn assert_captures_nothing<F>() {
    assert!(size_of::<F>() == 0, "{}", CAPTURES)
}

/// A read-only view of a [`Dict`](crate::Dict). It contains all of the dictionary's cells, regardless of which bees own them. In
/// a cluster, the view of an app that is in a log also contains the cells of other hives, as far as this hive's replicas of the
/// logs know them: usually as they were a moment ago, but a hive that is cut off from the others goes on showing what it knew.
///
/// The view contains committed state, which may be slightly stale, and none of the current transaction's changes. All
/// views read by a transaction, of all of the app's dictionaries, belong to one version. Later transactions of any bee
/// on this hive never see an earlier version. A change that this hive knows and the view lacks is never older than the dictionary's
/// `max_age`; if it were, the transaction would fail with [`ErrorKind::Stale`](crate::ErrorKind).
pub struct SharedDict<K: 'static, V> {
    pinned: Rc<Pinned>,
    meta: &'static DictMeta<K>,
    values: PhantomData<fn() -> V>,
}

impl<K: Key + fmt::Debug, V: Value + fmt::Debug> fmt::Debug for SharedDict<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Key, V: Value> SharedDict<K, V> {
    pub(crate) fn new(pinned: Rc<Pinned>, meta: &'static DictMeta<K>) -> Self {
        SharedDict { pinned, meta, values: PhantomData }
    }

    #[inline(always)]
    fn cells(&self) -> Option<&DictMirror<K, V>> {
        self.pinned.column(self.meta.index)?.cells()
    }

    /// Returns the value of `key`.
    #[inline]
    pub fn get<Q: KeyEncoding + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let id = self.meta.cell(self.pinned.seed, key);
        self.cells()?.0.find(id, key).map(|value| &**value)
    }

    /// Checks whether `key` has a value.
    #[inline]
    pub fn contains<Q: KeyEncoding + Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// Iterates over the keys and their values, in key order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.cells().into_iter().flat_map(|cells| cells.0.iter()).map(|(key, value)| (key, &**value))
    }

    /// Iterates over keys, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// Iterates over values, in key order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Iterates over the keys in `range` and their values, in order.
    pub fn range<Q: Ord + ?Sized>(
        &self,
        range: impl RangeBounds<Q>,
    ) -> impl DoubleEndedIterator<Item = (&K, &V)>
    where
        K: Borrow<Q>,
    {
        let cells = self.cells().map(|cells| cells.0.range(range));
        cells.into_iter().flatten().map(|(key, value)| (key, &**value))
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.cells().map_or(0, |cells| cells.0.len())
    }

    /// Checks whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a value derived from this dictionary by `compute`, such as a graph, a prefix tree or a sum. The value is
    /// computed on first use, and all callers share it until the dictionary changes. The function's type identifies the
    /// value, so the function must not capture anything:
    ///
    /// ```
    /// # extern crate beehive_core as beehive;
    /// # use beehive::{App, Dict, Message, handlers, testing::Kit};
    /// # #[derive(Message)]
    /// # #[message(reply = bool)]
    /// # struct Add { item: u64, price: u64 }
    /// #[derive(App)]
    /// struct Shop { prices: Dict<u64, u64> }
    ///
    /// #[handlers]
    /// impl Shop {
    ///     /// Answers whether the item costs more than the average.
    ///     #[rcv(sharded)]
    ///     fn add(&mut self, msg: &Add) -> bool {
    ///         let mean = self.prices.shared().derive(|prices| {
    ///             prices.values().sum::<u64>() / (prices.len() as u64).max(1)
    ///         });
    ///         self.prices.put(msg.item, msg.price);
    ///         msg.price > *mean
    ///     }
    /// }
    /// # let mut kit = Kit::of::<Shop>().start();
    /// # assert!(kit.request(Add { item: 1, price: 10 }).unwrap());
    /// # assert!(!kit.request(Add { item: 2, price: 6 }).unwrap());
    /// # assert!(kit.request(Add { item: 3, price: 9 }).unwrap());
    /// ```
    ///
    /// ```compile_fail,E0080
    /// # extern crate beehive_core as beehive;
    /// # use beehive::{App, Dict, Message, handlers};
    /// # #[derive(Message)]
    /// # #[message(reply = u64)]
    /// # struct Above(u64);
    /// # #[derive(App)]
    /// # struct Shop { prices: Dict<u64, u64> }
    /// #[handlers]
    /// impl Shop {
    ///     #[rcv]
    ///     fn above(&mut self, msg: &Above) -> u64 {
    ///         let limit = msg.0;
    ///         *self.prices.shared().derive(move |prices| prices.values().filter(|p| **p > limit).count() as u64)
    ///     }
    /// }
    /// # let _ = beehive::Hive::builder().app::<Shop>();
    /// ```
    pub fn derive<T: Send + Sync + 'static, F: Fn(&Self) -> T + 'static>(&self, compute: F) -> Arc<T> {
        const { assert_captures_nothing::<F>() }
        self.pinned.derived::<T, F>(self.meta.index, || compute(self))
    }

    /// Returns an upper bound on the staleness of the view. The view contains every change that this hive
    /// had committed, or had learned of from other hives, at least this long before the transaction.
    pub fn age(&self) -> Duration {
        self.pinned.age
    }

    /// Returns the number of the version. Numbering starts when the hive starts, and increases with every version.
    /// Version numbers from different hives, or from one hive before and after a restart, are not comparable.
    pub fn version(&self) -> u64 {
        self.pinned.number()
    }
}

/// A read-only view of a [`Table`](crate::Table). It contains all of the table's cells, regardless of which bees own them, and
/// gives the same guarantees as a [`SharedDict`].
pub struct SharedTable<K: 'static, R, V> {
    pinned: Rc<Pinned>,
    meta: &'static DictMeta<K>,
    rows: PhantomData<fn() -> (R, V)>,
}

impl<K: Key + fmt::Debug, R: RowKey + fmt::Debug, V: Value + fmt::Debug> fmt::Debug for SharedTable<K, R, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(key, row, value)| ((key, row), value))).finish()
    }
}

impl<K: Key, R: RowKey, V: Value> SharedTable<K, R, V> {
    pub(crate) fn new(pinned: Rc<Pinned>, meta: &'static DictMeta<K>) -> Self {
        SharedTable { pinned, meta, rows: PhantomData }
    }

    #[inline(always)]
    fn cells(&self) -> Option<&TableMirror<K, R, V>> {
        self.pinned.column(self.meta.index)?.cells()
    }

    /// Returns the rows of cell `key`. The result is empty if there is no such cell.
    #[inline]
    pub fn at(&self, key: K) -> SharedRows<'_, R, V> {
        let id = self.meta.cell(self.pinned.seed, &key);
        SharedRows(self.cells().and_then(|cells| cells.cells.find(id, &key)))
    }

    /// Iterates over all rows, in order. Yields the cell key, the row key and the value of each row.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &R, &V)> {
        let cells = self.cells().into_iter().flat_map(|cells| cells.cells.iter());
        cells.flat_map(|(key, rows)| rows.iter().map(move |(row, value)| (key, row, &**value)))
    }

    /// Iterates over the keys of all cells, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.cells().into_iter().flat_map(|cells| cells.cells.iter()).map(|(key, _)| key)
    }

    /// Iterates over the cells in `range` and their rows, in order.
    pub fn range<Q: Ord + ?Sized>(
        &self,
        range: impl RangeBounds<Q>,
    ) -> impl DoubleEndedIterator<Item = (&K, SharedRows<'_, R, V>)>
    where
        K: Borrow<Q>,
    {
        let cells = self.cells().map(|cells| cells.cells.range(range));
        cells.into_iter().flatten().map(|(key, rows)| (key, SharedRows(Some(rows))))
    }

    /// Returns the number of cells.
    pub fn len(&self) -> usize {
        self.cells().map_or(0, |cells| cells.cells.len())
    }

    /// Checks whether there are no cells, and so no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a value derived from this table by `compute`; see [`SharedDict::derive`].
    pub fn derive<T: Send + Sync + 'static, F: Fn(&Self) -> T + 'static>(&self, compute: F) -> Arc<T> {
        const { assert_captures_nothing::<F>() }
        self.pinned.derived::<T, F>(self.meta.index, || compute(self))
    }

    /// Returns an upper bound on the staleness of the view. The view contains every change that this hive
    /// had committed, or had learned of from other hives, at least this long before the transaction.
    pub fn age(&self) -> Duration {
        self.pinned.age
    }

    /// Returns the number of the version. Numbering starts when the hive starts, and increases with every version.
    /// Version numbers from different hives, or from one hive before and after a restart, are not comparable.
    pub fn version(&self) -> u64 {
        self.pinned.number()
    }
}

/// The rows of one cell in a [`SharedTable`], in key order.
pub struct SharedRows<'a, R, V>(Option<&'a Ordered<R, Arc<V>>>);

impl<R: RowKey + fmt::Debug, V: Value + fmt::Debug> fmt::Debug for SharedRows<'_, R, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<R, V> Clone for SharedRows<'_, R, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<R, V> Copy for SharedRows<'_, R, V> {}

impl<'a, R: RowKey, V: Value> SharedRows<'a, R, V> {
    /// Returns the value of `row`.
    #[inline]
    pub fn get<Q: Ord + Hash + ?Sized>(&self, row: &Q) -> Option<&'a V>
    where
        R: Borrow<Q>,
    {
        self.0?.get(row).map(|value| &**value)
    }

    /// Checks whether `row` exists.
    #[inline]
    pub fn contains<Q: Ord + Hash + ?Sized>(&self, row: &Q) -> bool
    where
        R: Borrow<Q>,
    {
        self.get(row).is_some()
    }

    /// Iterates over the rows in `range`, in order.
    pub fn range<Q: Ord + ?Sized>(
        &self,
        range: impl RangeBounds<Q>,
    ) -> impl DoubleEndedIterator<Item = (&'a R, &'a V)>
    where
        R: Borrow<Q>,
    {
        let rows = self.0.map(|rows| rows.range(range));
        rows.into_iter().flatten().map(|(row, value)| (row, &**value))
    }

    /// Iterates over all rows, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&'a R, &'a V)> {
        self.0.into_iter().flat_map(|rows| rows.iter()).map(|(row, value)| (row, &**value))
    }

    /// Iterates over the keys of all rows, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &'a R> {
        self.iter().map(|(row, _)| row)
    }

    /// Iterates over the values of all rows, in key order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &'a V> {
        self.iter().map(|(_, value)| value)
    }

    /// Returns the first row.
    pub fn first(&self) -> Option<(&'a R, &'a V)> {
        self.iter().next()
    }

    /// Returns the last row.
    pub fn last(&self) -> Option<(&'a R, &'a V)> {
        self.iter().next_back()
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.0.map_or(0, |rows| rows.len())
    }

    /// Checks whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
