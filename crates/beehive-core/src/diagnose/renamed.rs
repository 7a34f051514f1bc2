//! Methods of standard-library maps that dictionaries have under another name. A call is a compiler error that names
//! the right method.

use crate::diagnose::fallbacks::unbuildable;
use crate::key::Key;
use crate::message::Value;
use crate::state::dict::Dict;
use crate::state::rows::RowKey;
use crate::state::table::Table;
use std::ops::{Index, IndexMut};

/// No dictionary implements this trait. A `Dict` has `put` instead.
#[diagnostic::on_unimplemented(
    message = "a dictionary has no `insert`",
    label = "a `Dict` has `put` instead",
    note = "`self.dict.put(key, value)` sets the value of a key; `self.table.at(key).insert(row, value)` sets that of a row",
    note = "more: beehive::guide::errors::self_escapes"
)]
pub trait HasInsert {}

/// No dictionary implements this trait. A `Dict` has `contains` instead.
#[diagnostic::on_unimplemented(
    message = "a dictionary has no `contains_key`",
    label = "a `Dict` has `contains` instead",
    note = "`self.dict.contains(&key)` returns whether a key has a value; `self.table.at(key).contains(&row)` returns whether a row exists",
    note = "more: beehive::guide::errors::self_escapes"
)]
pub trait HasContainsKey {}

/// No dictionary implements this trait. A `Dict` has `get` instead.
#[diagnostic::on_unimplemented(
    message = "a dictionary cannot be indexed with `[..]`",
    label = "a `Dict` has `get` instead",
    note = "`self.dict.get(&key)` returns the value of a key, if it has one; `self.dict.entry(key).or_default()` inserts one if it has none; \
            `self.table.at(key)` gives the rows of a key",
    note = "more: beehive::guide::errors::self_escapes"
)]
pub trait HasIndex {}

#[doc(hidden)]
impl<K, V, Q> Index<Q> for Dict<K, V>
where
    Self: HasIndex,
{
    type Output = V;

    fn index(&self, _: Q) -> &V {
        unbuildable!()
    }
}

#[doc(hidden)]
impl<K, V, Q> IndexMut<Q> for Dict<K, V>
where
    Self: HasIndex,
{
    fn index_mut(&mut self, _: Q) -> &mut V {
        unbuildable!()
    }
}

#[doc(hidden)]
impl<K, R, V, Q> Index<Q> for Table<K, R, V>
where
    Self: HasIndex,
{
    type Output = V;

    fn index(&self, _: Q) -> &V {
        unbuildable!()
    }
}

#[doc(hidden)]
impl<K, R, V, Q> IndexMut<Q> for Table<K, R, V>
where
    Self: HasIndex,
{
    fn index_mut(&mut self, _: Q) -> &mut V {
        unbuildable!()
    }
}

#[doc(hidden)]
#[allow(missing_docs)]
impl<K: Key, V: Value> Dict<K, V> {
    pub fn insert<Q>(&mut self, _: Q, _: V) -> Option<V>
    where
        Self: HasInsert,
    {
        None
    }

    pub fn contains_key<Q: ?Sized>(&self, _: &Q) -> bool
    where
        Self: HasContainsKey,
    {
        false
    }
}

#[doc(hidden)]
#[allow(missing_docs)]
impl<K: Key, R: RowKey, V: Value> Table<K, R, V> {
    pub fn insert<Q, W>(&mut self, _: Q, _: W) -> Option<W>
    where
        Self: HasInsert,
    {
        None
    }

    pub fn contains_key<Q: ?Sized>(&self, _: &Q) -> bool
    where
        Self: HasContainsKey,
    {
        false
    }
}
