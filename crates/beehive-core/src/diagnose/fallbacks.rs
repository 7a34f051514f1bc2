//! What derived code falls back on where a type lacks a derive, so that the compiler speaks of the derive and of nothing else.
//!
//! A method of an impl whose bounds hold comes before a method of a trait with the same name: where all is well, nothing
//! in here is chosen. Where something is missing, it is reported once, at the field or the parameter where the type
//! is written, and the rest ends up here: it is never run, for the program does not compile.

use crate::app::{Handlers, Handles};
use crate::hive::Registrar;
use crate::key::{CellHasher, Key, KeyEncoding};
use crate::mapper::{IsPlain, Keyed, KeyedByValue, Mapper, Whole};
use crate::message::{Each, Message, Tick};
use crate::state::{Column, PairVisitor, Visitor};
use std::marker::PhantomData;
use std::ops::Deref;
use std::time::Duration;

/// Stands where a fallback was chosen, which is reported elsewhere. No constant: those of functions that nobody calls are
/// evaluated, too, where code is optimised.
macro_rules! unbuildable {
    () => {
        panic!("this code was derived from a type that lacks a derive")
    };
}
pub(crate) use unbuildable;

/// A type that stands for one that is not known: with a number that could not be computed, for what was said already, the
/// compiler knows it to be wrong, and says nothing more about what is of it.
pub type Unknown<const N: usize> = <Sound<N> as As<()>>::Type;

/// Something that was computed.
pub struct Sound<const N: usize>;

/// A type, under a condition.
pub trait As<T: ?Sized> {
    /// The type.
    type Type: ?Sized;
}
impl<T: ?Sized, const N: usize> As<T> for Sound<N> {
    type Type = T;
}

/// Stands for a dictionary that no `#[derive(App)]` has described.
pub struct Undeclared {
    /// None.
    pub index: u32,
}

impl Undeclared {
    /// The only one.
    pub const IT: &'static Undeclared = &Undeclared { index: 0 };

    /// No dictionary.
    pub const fn bit(&self) -> u64 {
        0
    }

    /// No dictionary.
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

/// A key as it is handed over, which should be borrowed, at its dictionary.
pub struct At<'a, D, B>(pub &'a D, pub &'a B);

/// A key that is borrowed.
pub trait Borrowed {
    /// What is borrowed.
    type Key: ?Sized;
    /// It.
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

/// For a reference to what points at a key: where the handler says `get(key)`, the compiler goes through it by itself.
///
/// Tried in this order: the key itself, through one pointer, through two, and [`CellOtherwise`]. What is tried later takes
/// itself in a way that the compiler looks for later.
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

/// As [`CellThrough`], through two pointers.
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

/// A key that is moved, at its dictionary.
pub struct AtValue<'a, D, Q>(pub &'a D, pub &'a Q);

impl<D: KeyedByValue<Q>, Q> AtValue<'_, D, Q> {
    /// Adds the cell.
    #[inline(always)]
    pub fn cell(self, mapper: &mut Mapper) {
        self.0.add(mapper, self.1)
    }
}

/// For a key of another type than its dictionary's, or one that is not borrowed: the access itself is reported.
pub trait CellOtherwise {
    /// Never built.
    fn cell(&mut self, _: &mut Mapper) {
        unbuildable!()
    }
}
impl<D, B> CellOtherwise for At<'_, D, B> {}
impl<D, Q> CellOtherwise for AtValue<'_, D, Q> {}

/// A handler that is about to be named to the runtime: its app, its message and, if it has one, its key.
pub struct Registration<'r, 'a, A: Handlers, K, M> {
    registrar: &'r mut Registrar<'a, A>,
    of: PhantomData<fn(K, M)>,
}

impl<'r, 'a, A: Handlers, K, M> Registration<'r, 'a, A, K, M> {
    /// One at `registrar`.
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

/// For handlers whose message or key lacks a derive: the handler itself is reported.
pub trait RegistrationOtherwise: Sized {
    /// Never built.
    fn rcv(self) {
        unbuildable!()
    }
    /// Never built.
    fn each(self, _: u32) {
        unbuildable!()
    }
    /// Never built.
    fn every_each(self, _: Duration, _: u32) {
        unbuildable!()
    }
}
impl<A: Handlers, K, M> RegistrationOtherwise for Registration<'_, '_, A, K, M> {}

/// A field of an app that is about to be visited.
pub struct Field<'a, C>(pub &'a mut C);

impl<C: Column> Field<'_, C> {
    /// Lets `visitor` see it.
    #[inline(always)]
    pub fn visit<V: Visitor>(self, index: u32, visitor: &mut V) {
        visitor.column(index, self.0)
    }

    /// Lets `visitor` see it together with that of another bee.
    #[inline(always)]
    pub fn visit_pair<V: PairVisitor>(self, index: u32, other: &mut C, visitor: &mut V) {
        visitor.columns(index, self.0, other)
    }
}

/// For fields whose key or value lacks a derive: the field's type is reported.
pub trait FieldOtherwise<C>: Sized {
    /// Never built.
    fn visit<V: Visitor>(self, _: u32, _: &mut V) {
        unbuildable!()
    }
    /// Never built.
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

/// For keys with a field that cannot be part of one: the field is reported.
pub trait KeyPartOtherwise: Sized {
    /// Never run.
    fn feed(self, _: &mut CellHasher) {
        unbuildable!()
    }
    /// Never run.
    fn describe(self, _: &mut String) {
        unbuildable!()
    }
}
impl<T> KeyPartOtherwise for KeyPart<'_, T> {}

/// For messages and keys with a field that cannot be encoded: the field is reported.
pub trait MirrorOtherwise {
    /// Never run.
    fn write<T, S: serde::Serializer>(_: &T, _: S) -> Result<S::Ok, S::Error> {
        unbuildable!()
    }
    /// Never run.
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
    fn where_all_is_well_the_trait_is_not_chosen() {
        let mut mapper = Mapper::new(1, 0, HiveId(1));
        At(COUNTS, &"borrowed").cell(&mut mapper);
        At(COUNTS, &&mut *String::from("changed")).cell(&mut mapper);
        AtValue(COUNTS, &"moved".to_string()).cell(&mut mapper);
        assert_eq!((mapper.outcome(), mapper.cells().len()), (Outcome::Cells, 3));
        // whatever the compiler goes through to get at a key
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
