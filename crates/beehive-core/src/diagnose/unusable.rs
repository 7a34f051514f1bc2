//! Stand-ins for the methods of dictionaries whose key or value type lacks a derive, so that the compiler reports only
//! the missing derive.
//!
//! If the types have all derives, the methods of `Dict`, `Table` and `Rows` take precedence. No code in this file ever
//! runs.

#![expect(missing_debug_implementations, reason = "no value of these types exists")]

use crate::diagnose::fallbacks::unbuildable;
use crate::state::dict::Dict;
use crate::state::rows::Rows;
use crate::state::table::Table;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// Stand-in for a [`Dict`].
#[doc(hidden)]
pub struct UnusableDict<K, V>(PhantomData<(K, V)>);
/// Stand-in for the entry of a key.
#[doc(hidden)]
pub struct UnusableEntry<'a, V>(PhantomData<&'a mut V>);
/// Stand-in for a [`Table`].
#[doc(hidden)]
pub struct UnusableTable<K, R, V>(PhantomData<(K, R, V)>);
/// Stand-in for [`Rows`].
#[doc(hidden)]
pub struct UnusableRows<R, V>(PhantomData<(R, V)>);

macro_rules! deref {
    ($(<$($parameter:ident),*> $from:ty => $to:ty;)*) => { $(
        #[doc(hidden)]
        impl<$($parameter),*> Deref for $from {
            type Target = $to;
            fn deref(&self) -> &Self::Target {
                unbuildable!()
            }
        }
        #[doc(hidden)]
        impl<$($parameter),*> DerefMut for $from {
            fn deref_mut(&mut self) -> &mut Self::Target {
                unbuildable!()
            }
        }
    )* }
}
deref! {
    <K, V> Dict<K, V> => UnusableDict<K, V>;
    <K, R, V> Table<K, R, V> => UnusableTable<K, R, V>;
    <R, V> Rows<R, V> => UnusableRows<R, V>;
}

macro_rules! unusable {
    ($($name:ident $([$($generic:tt)*])? ($self:ty $(, $argument:ty)*) $(-> $returned:ty)?;)*) => { $(
        #[allow(missing_docs)]
        pub fn $name<$($($generic)*)?>(self: $self $(, _: $argument)*) $(-> $returned)? {
            unbuildable!()
        }
    )* }
}

impl<K, V> UnusableDict<K, V> {
    unusable! {
        get[Q: ?Sized](&Self, &Q) -> Option<&V>;
        contains[Q: ?Sized](&Self, &Q) -> bool;
        get_mut[Q: ?Sized](&mut Self, &Q) -> Option<&mut V>;
        put(&mut Self, K, V) -> Option<V>;
        insert[Q](&mut Self, Q, V) -> Option<V>;
        contains_key[Q: ?Sized](&Self, &Q) -> bool;
        remove[Q: ?Sized](&mut Self, &Q) -> Option<V>;
        entry(&mut Self, K) -> UnusableEntry<'_, V>;
        update[T](&mut Self, K, impl FnOnce(&mut V) -> T) -> T;
    }
}

impl<'a, V> UnusableEntry<'a, V> {
    unusable! {
        or_default(Self) -> &'a mut V;
        or_insert(Self, V) -> &'a mut V;
        or_insert_with(Self, impl FnOnce() -> V) -> &'a mut V;
        and_modify(Self, impl FnOnce(&mut V)) -> Self;
    }
}

impl<K, R, V> UnusableTable<K, R, V> {
    unusable! {
        at(&mut Self, K) -> &mut Rows<R, V>;
    }
}

impl<R, V> UnusableRows<R, V> {
    unusable! {
        get[Q: ?Sized](&Self, &Q) -> Option<&V>;
        contains[Q: ?Sized](&Self, &Q) -> bool;
        get_mut(&mut Self, &R) -> Option<&mut V>;
        insert(&mut Self, R, V) -> Option<V>;
        remove(&mut Self, &R) -> Option<V>;
        entry(&mut Self, R) -> UnusableEntry<'_, V>;
        len(&Self) -> usize;
        is_empty(&Self) -> bool;
        iter(&Self) -> std::iter::Empty<(&R, &V)>;
        retain(&mut Self, impl FnMut(&R, &V) -> bool);
        clear(&mut Self);
    }
}
