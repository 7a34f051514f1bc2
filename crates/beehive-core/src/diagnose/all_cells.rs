//! Methods that iterate over all cells of a dictionary. Such iteration is rejected, because each cell may belong to a
//! different bee.
//!
//! The methods exist so that the compiler error can list the alternatives. None of them can be called.

use crate::key::Key;
use crate::message::Value;
use crate::state::dict::Dict;
use crate::state::rows::RowKey;
use crate::state::table::Table;
use std::iter::{Empty, empty};

/// A dictionary whose cells all belong to one bee. No dictionary implements this trait; `whole()` returns a type with
/// methods of its own.
#[diagnostic::on_unimplemented(
    message = "this needs all cells of a dictionary, and each may be owned by a different bee",
    label = "needs all cells of the dictionary",
    note = "to read all cells without changing them, use `self.dictionary.shared()`, a read-only view with `iter` and `keys`; reading it joins no bees",
    note = "to have one bee own all cells, use `self.dictionary.whole()`, which has `iter` and `keys`",
    note = "to process each cell on the bee that owns it, write a handler that runs once for every cell: `#[rcv(each = dictionary)]`, or `#[every(\"10s\", each = dictionary)]`",
    note = "data that belongs together can be stored in the rows of one cell of a `Table`: `self.table.at(key).iter()`",
    note = "more: beehive::guide::errors::all_cells"
)]
pub trait OnOneBee {}

macro_rules! refuse {
    ($($self:ty => $name:ident($($argument:ty),*) -> $returned:ty = $value:expr;)*) => {
        $(
            #[doc(hidden)]
            #[allow(missing_docs)]
            pub fn $name(self: $self, $(_: $argument),*) -> $returned
            where
                Self: OnOneBee,
            {
                $value
            }
        )*
    };
}

#[allow(clippy::should_implement_trait, clippy::len_without_is_empty)]
impl<K: Key, V: Value> Dict<K, V> {
    refuse! {
        &Self => iter() -> Empty<(&K, &V)> = empty();
        &mut Self => iter_mut() -> Empty<(&K, &mut V)> = empty();
        &Self => into_iter() -> Empty<(&K, &V)> = empty();
        &mut Self => drain() -> Empty<(K, V)> = empty();
        &Self => range(impl Sized) -> Empty<(&K, &V)> = empty();
        &Self => keys() -> Empty<&K> = empty();
        &Self => values() -> Empty<&V> = empty();
        &mut Self => values_mut() -> Empty<&mut V> = empty();
        &mut Self => retain(impl FnMut(&K, &V) -> bool) -> () = ();
        &mut Self => clear() -> () = ();
        &Self => len() -> usize = 0;
        &Self => is_empty() -> bool = true;
    }
}

#[allow(clippy::should_implement_trait, clippy::len_without_is_empty)]
impl<K: Key, R: RowKey, V: Value> Table<K, R, V> {
    refuse! {
        &Self => iter() -> Empty<(&K, &R, &V)> = empty();
        &mut Self => iter_mut() -> Empty<(&K, &R, &mut V)> = empty();
        &Self => into_iter() -> Empty<(&K, &R, &V)> = empty();
        &mut Self => drain() -> Empty<(K, R, V)> = empty();
        &Self => range(impl Sized) -> Empty<(&K, &R, &V)> = empty();
        &Self => keys() -> Empty<&K> = empty();
        &Self => values() -> Empty<&V> = empty();
        &mut Self => values_mut() -> Empty<&mut V> = empty();
        &mut Self => retain(impl FnMut(&K, &R, &V) -> bool) -> () = ();
        &mut Self => clear() -> () = ();
        &Self => len() -> usize = 0;
        &Self => is_empty() -> bool = true;
    }
}

/// Implements `IntoIterator` for dictionaries. The analysis already rejects a loop over a dictionary, and these impls
/// keep the compiler from also reporting that a dictionary is not an iterator. They never run.
macro_rules! refuse_loops {
    ($(<$($parameter:ident),*> $of:ty => $($item:ty),+;)*) => { $(
        #[doc(hidden)]
        impl<'a, $($parameter),*> IntoIterator for $of {
            type Item = ($($item),+);
            type IntoIter = Empty<Self::Item>;
            fn into_iter(self) -> Self::IntoIter {
                const { panic!("a loop over a dictionary needs all its cells, and each may be owned by a different bee") }
            }
        }
    )* };
}
refuse_loops! {
    <K, V> &'a Dict<K, V> => &'a K, &'a V;
    <K, V> &'a mut Dict<K, V> => &'a K, &'a mut V;
    <K, R, V> &'a Table<K, R, V> => &'a K, &'a R, &'a V;
    <K, R, V> &'a mut Table<K, R, V> => &'a K, &'a R, &'a mut V;
}
