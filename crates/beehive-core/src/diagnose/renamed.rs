//! Methods of the standard library's maps that dictionaries have under another name or in another place. A call causes
//! one compiler error, which says what to write instead.
//!
//! Each of these methods has a bound that never holds. Its return type is a parameter that only the bound determines, so
//! after the error the compiler reports nothing else about the result, whatever the caller does with it. An inherent
//! method takes precedence over trait methods, so an app cannot give a dictionary a method of such a name either.
//!
//! `tests/kit/other_names.rs` uses everything that the errors name.

use crate::diagnose::fallbacks::unbuildable;
use crate::key::Key;
use crate::message::Value;
use crate::state::dict::{Dict, WholeDict};
use crate::state::rows::{RowKey, Rows};
use crate::state::table::{Table, WholeTable};
use crate::view::{SharedDict, SharedRows, SharedTable};
use std::ops::{Index, IndexMut};

/// Declares a method that a type does not have: its arguments, the compiler's message, and the code to write instead.
macro_rules! missing {
    ($generics:tt $self:tt: $(
        $name:ident<$($parameter:ident),*>($($argument:ty),*) = $message:literal, $instead:literal;
    )*) => { $( one_missing! { $generics $self $name [$($parameter),*] [$($argument),*] $message $instead } )* };
}

macro_rules! one_missing {
    (
        [$($generics:tt)*] [$self:ty] $name:ident [$($parameter:ident),*] [$($argument:ty),*]
        $message:literal $instead:literal
    ) => {
        const _: () = {
            #[diagnostic::on_unimplemented(
                message = $message,
                label = $instead,
                note = "more: beehive::guide::errors::other_names"
            )]
            pub trait HasThisMethod {
                type Returned;
            }

            #[allow(clippy::should_implement_trait, clippy::len_without_is_empty)]
            impl<$($generics)*> $self {
                #[doc(hidden)]
                pub fn $name<$($parameter,)* Returned>(&self, $(_: $argument),*) -> Returned
                where
                    Self: HasThisMethod<Returned = Returned>,
                {
                    unbuildable!()
                }
            }
        };
    };
}

missing! { [K: Key, V: Value] [Dict<K, V>]:
    insert<A, B>(A, B) = "a `Dict` has no `insert`", "write `self.dict.put(key, value)`";
    set<A, B>(A, B) = "a `Dict` has no `set`", "write `self.dict.put(key, value)`";
    contains_key<A>(A) = "a `Dict` has no `contains_key`", "write `self.dict.contains(&key)`";
    get_or_insert_with<A>(A, impl FnOnce() -> V)
        = "a `Dict` has no `get_or_insert_with`", "write `self.dict.entry(key).or_insert_with(new)`";
    get_key_value<A>(A) = "a `Dict` has no `get_key_value`", "write `self.dict.get(&key)`";
    remove_entry<A>(A) = "a `Dict` has no `remove_entry`", "write `self.dict.remove(&key)`";
    at<A>(A) = "a `Dict` has no `at`, because its cells have no rows",
        "write `self.dict.get(&key)`, or make it a `Table`";
}

missing! { [K: Key, R: RowKey, V: Value] [Table<K, R, V>]:
    get<A>(A) = "a `Table` has no `get`: select a cell first", "write `self.table.at(key).get(&row)`";
    get_mut<A>(A) = "a `Table` has no `get_mut`: select a cell first", "write `self.table.at(key).get_mut(&row)`";
    contains<A>(A) = "a `Table` has no `contains`: select a cell first",
        "write `self.table.at(key).contains(&row)`, or `!self.table.at(key).is_empty()`";
    contains_key<A>(A) = "a `Table` has no `contains_key`: select a cell first",
        "write `self.table.at(key).contains(&row)`, or `!self.table.at(key).is_empty()`";
    insert<A, B>(A, B) = "a `Table` has no `insert`: select a cell first",
        "write `self.table.at(key).insert(row, value)`";
    put<A, B>(A, B) = "a `Table` has no `put`: select a cell first",
        "write `self.table.at(key).insert(row, value)`";
    set<A, B>(A, B) = "a `Table` has no `set`: select a cell first",
        "write `self.table.at(key).insert(row, value)`";
    remove<A>(A) = "a `Table` has no `remove`: select a cell first",
        "write `self.table.at(key).remove(&row)`, or `self.table.at(key).clear()` for the whole cell";
    entry<A>(A) = "a `Table` has no `entry`: select a cell first",
        "write `self.table.at(key).entry(row).or_default()`";
    update<A, B>(A, impl FnOnce(&mut V) -> B) = "a `Table` has no `update`: select a cell first",
        "write `*self.table.at(key).entry(row).or_default() += 1`";
}

missing! { [R: RowKey, V: Value, Place: ?Sized] [Rows<R, V, Place>]:
    put<A, B>(A, B) = "rows have no `put`", "write `self.table.at(key).insert(row, value)`";
    set<A, B>(A, B) = "rows have no `set`", "write `self.table.at(key).insert(row, value)`";
    contains_key<A>(A) = "rows have no `contains_key`", "write `self.table.at(key).contains(&row)`";
    update<A, B>(A, impl FnOnce(&mut V) -> B) = "rows have no `update`",
        "write `*self.table.at(key).entry(row).or_default() += 1`";
    first_key_value<>() = "rows have no `first_key_value`", "write `self.table.at(key).first()`";
    last_key_value<>() = "rows have no `last_key_value`", "write `self.table.at(key).last()`";
    iter_mut<>() = "rows have no `iter_mut`, because each changed row needs an undo entry",
        "collect the keys, and write `self.table.at(key).get_mut(&row)` for each row to be changed";
    values_mut<>() = "rows have no `values_mut`, because each changed row needs an undo entry",
        "collect the keys, and write `self.table.at(key).get_mut(&row)` for each row to be changed";
    drain<>() = "rows have no `drain`", "write `self.table.at(key).take_if(|_, _| true)`";
    extract_if<A>(A) = "rows have no `extract_if`", "write `self.table.at(key).take_if(|_, _| true)`";
}

missing! { ['a, K: Key, V: Value] [WholeDict<'a, K, V>]:
    insert<A, B>(A, B) = "a whole dictionary has no `insert`", "write `self.dict.whole().put(key, value)`";
    contains<A>(A) = "a whole dictionary has no `contains`", "write `self.dict.whole().get(&key).is_some()`";
    contains_key<A>(A) = "a whole dictionary has no `contains_key`",
        "write `self.dict.whole().get(&key).is_some()`";
    get_mut<A>(A) = "a whole dictionary has no `get_mut`", "write `self.dict.get_mut(&key)`";
    entry<A>(A) = "a whole dictionary has no `entry`", "write `self.dict.entry(key).or_default()`";
    update<A, B>(A, impl FnOnce(&mut V) -> B) = "a whole dictionary has no `update`",
        "write `self.dict.update(key, change)`";
    iter_mut<>() = "a whole dictionary has no `iter_mut`, because each changed value needs an undo entry",
        "write `self.dict.whole().for_each_mut(|_, value| *value += 1)`";
    values_mut<>() = "a whole dictionary has no `values_mut`, because each changed value needs an undo entry",
        "write `self.dict.whole().for_each_mut(|_, value| *value += 1)`";
    clear<>() = "a whole dictionary has no `clear`", "write `self.dict.whole().retain(|_, _| false)`";
    drain<>() = "a whole dictionary has no `drain`", "write `self.dict.whole().retain(|_, _| false)`";
    range<A>(A) = "a whole dictionary has no `range`",
        "write `self.dict.shared().range(from..to)`, or keep the entries as rows of a `Table` to own a range";
}

missing! { ['a, K: Key, R: RowKey, V: Value] [WholeTable<'a, K, R, V>]:
    get<A>(A) = "a whole table has no `get`: select a cell first", "write `self.table.whole().at(key).get(&row)`";
    get_mut<A>(A) = "a whole table has no `get_mut`: select a cell first",
        "write `self.table.whole().at(key).get_mut(&row)`";
    contains<A>(A) = "a whole table has no `contains`: select a cell first",
        "write `!self.table.whole().at(key).is_empty()`";
    contains_key<A>(A) = "a whole table has no `contains_key`: select a cell first",
        "write `!self.table.whole().at(key).is_empty()`";
    insert<A, B>(A, B) = "a whole table has no `insert`: select a cell first",
        "write `self.table.whole().at(key).insert(row, value)`";
    put<A, B>(A, B) = "a whole table has no `put`: select a cell first",
        "write `self.table.whole().at(key).insert(row, value)`";
    remove<A>(A) = "a whole table has no `remove`: select a cell first",
        "write `self.table.whole().at(key).clear()`";
    entry<A>(A) = "a whole table has no `entry`: select a cell first",
        "write `self.table.whole().at(key).entry(row).or_default()`";
    values<>() = "a whole table has no `values`", "write `self.table.whole().iter()`, which has keys and rows as well";
    len<>() = "a whole table has no `len`",
        "`self.table.whole().keys().count()` counts the cells, and `self.table.whole().iter().count()` the rows";
    is_empty<>() = "a whole table has no `is_empty`", "write `self.table.whole().iter().next().is_none()`";
    retain<A>(A) = "a whole table has no `retain`", "select each cell, and write `self.table.whole().at(key).retain(keep)`";
    clear<>() = "a whole table has no `clear`", "select each cell, and write `self.table.whole().at(key).clear()`";
}

missing! { [K: Key, V: Value] [SharedDict<K, V>]:
    contains_key<A>(A) = "a view has no `contains_key`", "write `self.dict.shared().contains(&key)`";
    insert<A, B>(A, B) = "a view is read-only", "change the dictionary: `self.dict.put(key, value)`";
    put<A, B>(A, B) = "a view is read-only", "change the dictionary: `self.dict.put(key, value)`";
    get_mut<A>(A) = "a view is read-only", "change the dictionary: `self.dict.get_mut(&key)`";
    remove<A>(A) = "a view is read-only", "change the dictionary: `self.dict.remove(&key)`";
    entry<A>(A) = "a view is read-only", "change the dictionary: `self.dict.entry(key).or_default()`";
    update<A, B>(A, impl FnOnce(&mut V) -> B) = "a view is read-only",
        "change the dictionary: `self.dict.update(key, change)`";
}

missing! { [K: Key, R: RowKey, V: Value] [SharedTable<K, R, V>]:
    get<A>(A) = "the view of a table has no `get`: select a cell first",
        "write `self.table.shared().at(key).get(&row)`";
    contains<A>(A) = "the view of a table has no `contains`: select a cell first",
        "write `self.table.shared().at(key).contains(&row)`";
    contains_key<A>(A) = "the view of a table has no `contains_key`: select a cell first",
        "write `self.table.shared().at(key).contains(&row)`";
    values<>() = "the view of a table has no `values`",
        "write `self.table.shared().iter()`, which has keys and rows as well";
    insert<A, B>(A, B) = "a view is read-only", "change the table: `self.table.at(key).insert(row, value)`";
    put<A, B>(A, B) = "a view is read-only", "change the table: `self.table.at(key).insert(row, value)`";
    get_mut<A>(A) = "a view is read-only", "change the table: `self.table.at(key).get_mut(&row)`";
    remove<A>(A) = "a view is read-only", "change the table: `self.table.at(key).remove(&row)`";
    entry<A>(A) = "a view is read-only", "change the table: `self.table.at(key).entry(row).or_default()`";
}

missing! { ['a, R: RowKey, V: Value] [SharedRows<'a, R, V>]:
    contains_key<A>(A) = "rows have no `contains_key`", "write `self.table.shared().at(key).contains(&row)`";
    insert<A, B>(A, B) = "a view is read-only", "change the table: `self.table.at(key).insert(row, value)`";
    get_mut<A>(A) = "a view is read-only", "change the table: `self.table.at(key).get_mut(&row)`";
    remove<A>(A) = "a view is read-only", "change the table: `self.table.at(key).remove(&row)`";
    entry<A>(A) = "a view is read-only", "change the table: `self.table.at(key).entry(row).or_default()`";
}

/// Declares that a type cannot be indexed.
macro_rules! not_indexed {
    ($([$($generics:tt)*] [$self:ty] $message:literal, $instead:literal;)*) => { $(
        const _: () = {
            #[diagnostic::on_unimplemented(
                message = $message,
                label = $instead,
                note = "more: beehive::guide::errors::other_names"
            )]
            pub trait HasIndex {}

            #[doc(hidden)]
            impl<$($generics)*, Q> Index<Q> for $self
            where
                Self: HasIndex,
            {
                type Output = V;

                fn index(&self, _: Q) -> &V {
                    unbuildable!()
                }
            }

            #[doc(hidden)]
            impl<$($generics)*, Q> IndexMut<Q> for $self
            where
                Self: HasIndex,
            {
                fn index_mut(&mut self, _: Q) -> &mut V {
                    unbuildable!()
                }
            }
        };
    )* };
}

not_indexed! {
    [K, V] [Dict<K, V>] "a `Dict` cannot be indexed with `[..]`",
        "write `self.dict.get(&key)`, or `self.dict.entry(key).or_default()` to change it";
    [K, R, V] [Table<K, R, V>] "a `Table` cannot be indexed with `[..]`: select a cell first",
        "write `self.table.at(key).get(&row)`";
    [R, V, Place: ?Sized] [Rows<R, V, Place>] "rows cannot be indexed with `[..]`",
        "write `self.table.at(key).get(&row)`, or `self.table.at(key).entry(row).or_default()` to change it";
    [K, V] [SharedDict<K, V>] "a view cannot be indexed with `[..]`", "write `self.dict.shared().get(&key)`";
}
