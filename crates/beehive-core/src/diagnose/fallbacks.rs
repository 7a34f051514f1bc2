//! Fallback methods to which generated code resolves if a type lacks a derive, so that the compiler reports only the
//! missing derive.
//!
//! Method resolution prefers an inherent method whose bounds hold to a trait method of the same name. If all types have
//! their derives, the compiler therefore never chooses a fallback. If a derive is missing, the compiler reports it
//! once, at the field or parameter where the type is written, and all other uses resolve to the fallbacks. These never
//! run, because the program does not compile.

#![expect(missing_debug_implementations, reason = "only generated code names these types")]

use crate::app::{Handlers, Handles};
use crate::hive::Registrar;
use crate::key::{CellHasher, Key, KeyEncoding};
use crate::mapper::{IsPlain, Keyed, KeyedByValue, Mapper, Whole};
use crate::message::{Each, Message, Tick};
use crate::state::{Column, PairVisitor, Visitor};
use std::marker::PhantomData;
use std::ops::Deref;
use std::time::Duration;

/// The body of a fallback. It is a `panic!` rather than a failing constant, because optimized builds also evaluate
/// constants in functions that are never called.
macro_rules! unbuildable {
    () => {
        panic!("this code was derived from a type that lacks a derive")
    };
}
pub(crate) use unbuildable;

/// An unknown type. Generated code names it with a number `N` whose computation fails with an already reported error.
/// The compiler then treats the type as erroneous, and reports no further errors about it.
pub type Unknown<const N: usize> = <Sound<N> as As<()>>::Type;

/// Proof that the number `N` could be computed.
pub struct Sound<const N: usize>;

/// Maps every type to itself, but only if `Self` is a valid type.
pub trait As<T: ?Sized> {
    /// The type.
    type Type: ?Sized;
}
impl<T: ?Sized, const N: usize> As<T> for Sound<N> {
    type Type = T;
}

/// Stand-in for a dictionary not described by any `#[derive(App)]`.
pub struct Undeclared {
    /// Always 0.
    pub index: u32,
}

impl Undeclared {
    /// The only value.
    pub const IT: &'static Undeclared = &Undeclared { index: 0 };

    /// Returns 0, because this is not a dictionary.
    pub const fn bit(&self) -> u64 {
        0
    }

    /// Returns 0, because this is not a dictionary.
    pub const fn shared_bit(&self) -> u64 {
        0
    }
}

impl IsPlain for Undeclared {}
impl<Q: ?Sized> Keyed<Q> for Undeclared {
    fn add(&self, _: &mut Mapper, _: &Q) {
        unbuildable!()
    }
}
impl<Q> KeyedByValue<Q> for Undeclared {
    fn add(&self, _: &mut Mapper, _: &Q) {
        unbuildable!()
    }
}
impl Whole for Undeclared {
    fn add_whole(&self, mapper: &mut Mapper) {
        mapper.effect()
    }
}

/// An access that takes its key by reference: the dictionary and the key.
pub struct At<'a, D, B>(pub &'a D, pub &'a B);

/// A borrowed key.
pub trait Borrowed {
    /// The type of the key.
    type Key: ?Sized;
    /// Returns the key.
    fn key(&self) -> &Self::Key;
}
impl<Q: ?Sized> Borrowed for &Q {
    type Key = Q;
    #[inline(always)]
    fn key(&self) -> &Q {
        self
    }
}
impl<Q: ?Sized> Borrowed for &mut Q {
    type Key = Q;
    #[inline(always)]
    fn key(&self) -> &Q {
        self
    }
}

impl<D: Keyed<B::Key>, B: Borrowed> At<'_, D, B> {
    /// Adds the cell.
    #[inline(always)]
    pub fn cell(self, mapper: &mut Mapper) {
        self.0.add(mapper, self.1.key())
    }
}

/// Finds the cell if the argument is a reference to a pointer to the key, such as `&Box<K>` or `&&K`. In the
/// handler's `get(key)`, the compiler dereferences such an argument automatically.
///
/// Method resolution tries the key itself first, then a key behind one pointer, then a key behind two pointers, and
/// then [`CellOtherwise`]. To fix this order, each method takes `self` in a form that the compiler tries later than
/// the previous one: by value, by shared reference, by mutable reference.
pub trait CellThrough: Sized {
    /// Adds the cell.
    fn cell(self, mapper: &mut Mapper);
}
impl<D, B> CellThrough for At<'_, D, B>
where
    B: Borrowed<Key: Deref>,
    D: Keyed<<B::Key as Deref>::Target>,
{
    #[inline(always)]
    fn cell(self, mapper: &mut Mapper) {
        self.0.add(mapper, self.1.key())
    }
}

/// Same as [`CellThrough`], for a key behind two pointers.
pub trait CellThroughTwo {
    /// Adds the cell.
    fn cell(&self, mapper: &mut Mapper);
}
impl<D, B> CellThroughTwo for At<'_, D, B>
where
    B: Borrowed<Key: Deref<Target: Deref>>,
    D: Keyed<<<B::Key as Deref>::Target as Deref>::Target>,
{
    #[inline(always)]
    fn cell(&self, mapper: &mut Mapper) {
        self.0.add(mapper, self.1.key())
    }
}

/// An access that takes its key by value: the dictionary and the key.
pub struct AtValue<'a, D, Q>(pub &'a D, pub &'a Q);

impl<D: KeyedByValue<Q>, Q> AtValue<'_, D, Q> {
    /// Adds the cell.
    #[inline(always)]
    pub fn cell(self, mapper: &mut Mapper) {
        self.0.add(mapper, self.1)
    }
}

/// Fallback for a key that is not borrowed or whose type is not the dictionary's key type. The compiler reports the
/// error at the access itself.
pub trait CellOtherwise {
    /// Never called, because the program does not compile.
    fn cell(&mut self, _: &mut Mapper) {
        unbuildable!()
    }
}
impl<D, B> CellOtherwise for At<'_, D, B> {}
impl<D, Q> CellOtherwise for AtValue<'_, D, Q> {}

/// A handler to be registered with the runtime: its app, its message and, if it has one, its key.
pub struct Registration<'r, 'a, A: Handlers, K, M> {
    registrar: &'r mut Registrar<'a, A>,
    of: PhantomData<fn(K, M)>,
}

impl<'r, 'a, A: Handlers, K, M> Registration<'r, 'a, A, K, M> {
    /// Returns a registration with `registrar`.
    pub fn of(registrar: &'r mut Registrar<'a, A>) -> Self {
        Registration { registrar, of: PhantomData }
    }
}

impl<A: Handles<M> + Handlers, M: Message> Registration<'_, '_, A, (), M> {
    /// See [`Registrar::rcv`].
    pub fn rcv(self) {
        self.registrar.rcv::<M>()
    }
}

impl<A: Handles<Each<K, M>> + Handlers, K: Key, M: Message> Registration<'_, '_, A, K, M> {
    /// See [`Registrar::each`].
    pub fn each(self, dict: u32) {
        self.registrar.each::<K, M>(dict)
    }
}

impl<A: Handles<Each<K, Tick<N>>> + Handlers, K: Key, const N: u32> Registration<'_, '_, A, K, Tick<N>> {
    /// See [`Registrar::every_each`].
    pub fn every_each(self, period: Duration, dict: u32) {
        self.registrar.every_each::<K, N>(period, dict)
    }
}

/// Fallback for a handler whose message or key lacks a derive. The compiler reports the error at the handler.
pub trait RegistrationOtherwise: Sized {
    /// Never called, because the program does not compile.
    fn rcv(self) {
        unbuildable!()
    }
    /// Never called, because the program does not compile.
    fn each(self, _: u32) {
        unbuildable!()
    }
    /// Never called, because the program does not compile.
    fn every_each(self, _: Duration, _: u32) {
        unbuildable!()
    }
}
impl<A: Handlers, K, M> RegistrationOtherwise for Registration<'_, '_, A, K, M> {}

/// A field of an app, as visited by a visitor.
pub struct Field<'a, C>(pub &'a mut C);

impl<C: Column> Field<'_, C> {
    /// Calls `visitor` for the field.
    #[inline(always)]
    pub fn visit<V: Visitor>(self, index: u32, visitor: &mut V) {
        visitor.column(index, self.0)
    }

    /// Calls `visitor` for the field together with the same field of another bee.
    #[inline(always)]
    pub fn visit_pair<V: PairVisitor>(self, index: u32, other: &mut C, visitor: &mut V) {
        visitor.columns(index, self.0, other)
    }
}

/// Fallback for a field whose key or value type lacks a derive. The compiler reports the error at the field's type.
pub trait FieldOtherwise<C>: Sized {
    /// Never called, because the program does not compile.
    fn visit<V: Visitor>(self, _: u32, _: &mut V) {
        unbuildable!()
    }
    /// Never called, because the program does not compile.
    fn visit_pair<V: PairVisitor>(self, _: u32, _: &mut C, _: &mut V) {
        unbuildable!()
    }
}
impl<C> FieldOtherwise<C> for Field<'_, C> {}

/// A field of a key.
pub struct KeyPart<'a, T>(pub &'a T);

impl<T: KeyEncoding> KeyPart<'_, T> {
    /// See [`KeyEncoding::feed`].
    #[inline(always)]
    pub fn feed(self, hasher: &mut CellHasher) {
        self.0.feed(hasher)
    }

    /// See [`KeyEncoding::describe`].
    pub fn describe(self, out: &mut String) {
        self.0.describe(out)
    }
}

/// Fallback for a key with a field that cannot be part of a key. The compiler reports the error at the field.
pub trait KeyPartOtherwise: Sized {
    /// Never called, because the program does not compile.
    fn feed(self, _: &mut CellHasher) {
        unbuildable!()
    }
    /// Never called, because the program does not compile.
    fn describe(self, _: &mut String) {
        unbuildable!()
    }
}
impl<T> KeyPartOtherwise for KeyPart<'_, T> {}

/// Fallback for a message or key with a field that cannot be encoded. The compiler reports the error at the field.
pub trait MirrorOtherwise {
    /// Never called, because the program does not compile.
    fn write<T, S: serde::Serializer>(_: &T, _: S) -> Result<S::Ok, S::Error> {
        unbuildable!()
    }
    /// Never called, because the program does not compile.
    fn read<'de, T, D: serde::Deserializer<'de>>(_: D) -> Result<T, D::Error> {
        unbuildable!()
    }
}
impl<T> MirrorOtherwise for T {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{HiveId, Outcome};
    use crate::mapper::DictMeta;

    const COUNTS: &DictMeta<String> = &DictMeta::new("shop", "counts", 0, false);

    const SUMS: &DictMeta<u64> = &DictMeta::new("shop", "sums", 1, false);

    #[test]
    fn with_all_derives_the_fallback_is_not_chosen() {
        let mut mapper = Mapper::new(1, 0, HiveId(1));
        At(COUNTS, &"borrowed").cell(&mut mapper);
        At(COUNTS, &&mut *String::from("changed")).cell(&mut mapper);
        AtValue(COUNTS, &"moved".to_string()).cell(&mut mapper);

        assert_eq!((mapper.outcome(), mapper.cells().len()), (Outcome::Cells, 3));
        // The compiler dereferences all of these automatically to reach the key.
        let (mut mapper, number) = (Mapper::new(1, 0, HiveId(1)), 7);
        At(SUMS, &&number).cell(&mut mapper);
        At(SUMS, &&&number).cell(&mut mapper);
        At(SUMS, &&mut &number).cell(&mut mapper);
        At(SUMS, &&Box::new(number)).cell(&mut mapper);
        At(SUMS, &&&&number).cell(&mut mapper);
        At(SUMS, &&&std::sync::Arc::new(number)).cell(&mut mapper);

        assert_eq!((mapper.outcome(), mapper.cells().len()), (Outcome::Cells, 1));

        struct Seen(u32);

        impl Visitor for Seen {
            fn column<C: Column>(&mut self, index: u32, column: &mut C) {
                assert_eq!(column.info().name, "counts");
                self.0 = index
            }
        }

        let mut seen = Seen(0);
        Field(&mut crate::Dict::<String, u64>::open(COUNTS)).visit(7, &mut seen);
        assert_eq!(seen.0, 7);
    }
}
