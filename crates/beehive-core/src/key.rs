//! Keys: the canonical encoding that identifies a cell, and its 64-bit hash.
//!
//! All hives in a cluster must agree on a cell's id, across platforms and during a rolling upgrade.
//! `std::hash::Hash` is not used, because its byte stream depends on pointer width, byte order and compiler
//! version.

pub use beehive_protocol::CellHasher;

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// A type whose values, or borrowed forms of them, can be fed to the [`CellHasher`]. Types related by
/// `Borrow` must feed the same words.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a cell's key",
    label = "not a `Key`",
    note = "derive whichever of these are missing: Key, Clone, PartialEq, Eq, PartialOrd, Ord",
    note = "more: beehive::guide::errors::derives"
)]
pub trait KeyEncoding {
    /// Feeds the canonical encoding of the value.
    fn feed(&self, hasher: &mut CellHasher);

    /// Feeds a slice of values of this type. `u8` overrides this with a faster version.
    fn feed_slice(slice: &[Self], hasher: &mut CellHasher)
    where
        Self: Sized,
    {
        hasher.word(slice.len() as u64);
        for item in slice {
            item.feed(hasher);
        }
    }

    /// Appends a human-readable form, for reports and error messages.
    fn describe(&self, out: &mut String);
}

/// The trait implemented by `#[derive(Key)]`. [`Key`] also needs other derives. Because this is a separate
/// trait, the compiler reports a missing derive once, at the type, instead of at every use.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key",
    label = "not a `Key`",
    note = "derive whichever of these are missing: Key, Clone, PartialEq, Eq, PartialOrd, Ord",
    note = "more: beehive::guide::errors::derives"
)]
pub trait KeyType: KeyEncoding + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// See [`Key::NAME`].
    const TYPE_NAME: &'static str;
    /// See [`Key::FUSED`].
    const IS_FUSED: bool = false;
}

/// A type whose values identify cells. Derive this trait.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key",
    label = "not a `Key`",
    note = "derive whichever of these are missing: Key, Clone, PartialEq, Eq, PartialOrd, Ord",
    note = "more: beehive::guide::errors::derives"
)]
pub trait Key: KeyType + Ord + Clone {
    /// Stable name of the type: the crate's name followed by the type's.
    const NAME: &'static str;
    /// Whether an app's dictionaries with this key type share cells. True for types that derive `Key`; false
    /// for types such as `u64`, because the same number may mean different things in two dictionaries.
    const FUSED: bool;
}
// `Ord` implies the other bounds only if its impl compiles, so they are listed explicitly.
#[diagnostic::do_not_recommend]
impl<T: KeyType + Ord + PartialOrd + Eq + PartialEq + Clone> Key for T {
    const NAME: &'static str = T::TYPE_NAME;
    const FUSED: bool = T::IS_FUSED;
}

/// Same as [`Key`], for generated code that must not cause a compile error of its own. If a type `T` is not a key, the
/// compiler rejects the bound `T: Key` where it is written, but accepts the bound `for<'a> T: KeyFor<'a>`.
pub trait KeyFor<'a>: Key {}
impl<T: Key> KeyFor<'_> for T {}

/// `#[derive(Key)]` uses this bound to check that a key type also has the other derives it needs.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key: keys are compared and cloned",
    label = "lacks a derive",
    note = "derive whichever of these are missing: Clone, PartialEq, Eq, PartialOrd, Ord",
    note = "more: beehive::guide::errors::derives"
)]
pub trait Ordered {}
#[diagnostic::do_not_recommend]
impl<T: Ord + Clone> Ordered for T {}

/// `#[derive(Key)]` uses this bound to check the type of each field of a key.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a cell's key",
    label = "not a `Key`",
    note = "derive whichever of these are missing: Key, Clone, PartialEq, Eq, PartialOrd, Ord",
    note = "more: beehive::guide::errors::derives"
)]
pub trait EncodedInKey {}
#[diagnostic::do_not_recommend]
impl<T: KeyEncoding + Serialize + DeserializeOwned> EncodedInKey for T {}

/// Names a field type of a key. `N` numbers the distinct field types.
pub trait KeyTypePart<const N: usize> {
    /// The field type.
    type Part: EncodedInKey;
}

/// Names a key type at its declaration, so that a missing derive is reported there.
#[derive(Debug)]
pub struct OrderedKey<T: Ordered>(std::marker::PhantomData<T>);

/// The type `T` itself. Generated code passes the user's type through this alias so that the compiler reports an
/// unknown name only once, with its usual message.
pub type Same<T> = T;

macro_rules! integers { ($($t:ty),*) => { $(
    impl KeyEncoding for $t {
        #[inline(always)]
        fn feed(&self, hasher: &mut CellHasher) { hasher.word(*self as u64) }
        fn describe(&self, out: &mut String) { out.push_str(&self.to_string()) }
    }
    impl KeyType for $t { const TYPE_NAME: &'static str = stringify!($t); }
)* } }
integers!(u16, u32, u64, usize, i8, i16, i32, i64, isize, bool, char);

impl KeyEncoding for u8 {
    #[inline(always)]
    fn feed(&self, hasher: &mut CellHasher) {
        hasher.word(*self as u64)
    }
    #[inline]
    fn feed_slice(slice: &[u8], hasher: &mut CellHasher) {
        hasher.bytes(slice)
    }
    fn describe(&self, out: &mut String) {
        out.push_str(&self.to_string())
    }
}
impl KeyType for u8 {
    const TYPE_NAME: &'static str = "u8";
}

impl KeyEncoding for u128 {
    #[inline(always)]
    fn feed(&self, hasher: &mut CellHasher) {
        hasher.word(*self as u64);
        hasher.word((*self >> 64) as u64)
    }
    fn describe(&self, out: &mut String) {
        out.push_str(&self.to_string())
    }
}
impl KeyType for u128 {
    const TYPE_NAME: &'static str = "u128";
}

impl KeyEncoding for str {
    #[inline]
    fn feed(&self, hasher: &mut CellHasher) {
        hasher.bytes(self.as_bytes())
    }
    fn describe(&self, out: &mut String) {
        out.push_str(self)
    }
}

macro_rules! as_str { ($($t:ty, $name:literal;)*) => { $(
    impl KeyEncoding for $t {
        #[inline]
        fn feed(&self, hasher: &mut CellHasher) { hasher.bytes(self.as_bytes()) }
        fn describe(&self, out: &mut String) { out.push_str(self) }
    }
    impl KeyType for $t { const TYPE_NAME: &'static str = $name; }
)* } }
as_str!(String, "String"; Box<str>, "String"; Arc<str>, "String";);

impl KeyEncoding for () {
    fn feed(&self, _: &mut CellHasher) {}
    fn describe(&self, out: &mut String) {
        out.push_str("()")
    }
}
impl KeyType for () {
    const TYPE_NAME: &'static str = "()";
}

impl<T: KeyEncoding> KeyEncoding for [T] {
    #[inline]
    fn feed(&self, hasher: &mut CellHasher) {
        T::feed_slice(self, hasher)
    }
    fn describe(&self, out: &mut String) {
        out.push('[');
        for (at, item) in self.iter().enumerate() {
            if at > 0 {
                out.push_str(", ");
            }
            item.describe(out);
        }
        out.push(']');
    }
}
impl<T: KeyEncoding, const N: usize> KeyEncoding for [T; N] {
    #[inline]
    fn feed(&self, hasher: &mut CellHasher) {
        T::feed_slice(self, hasher)
    }
    fn describe(&self, out: &mut String) {
        self.as_slice().describe(out)
    }
}
impl<T: KeyEncoding> KeyEncoding for Vec<T> {
    #[inline]
    fn feed(&self, hasher: &mut CellHasher) {
        T::feed_slice(self, hasher)
    }
    fn describe(&self, out: &mut String) {
        self.as_slice().describe(out)
    }
}
impl<T: KeyType> KeyType for Vec<T> {
    const TYPE_NAME: &'static str = "Vec";
}
macro_rules! arrays { ($($n:literal),*) => { $(
    impl<T: KeyType> KeyType for [T; $n] where [T; $n]: Serialize + DeserializeOwned { const TYPE_NAME: &'static str = "array"; }
)* } }
arrays!(1, 2, 3, 4, 5, 6, 7, 8, 16, 32);

impl<T: KeyEncoding + ?Sized> KeyEncoding for &T {
    #[inline(always)]
    fn feed(&self, hasher: &mut CellHasher) {
        (**self).feed(hasher)
    }
    fn describe(&self, out: &mut String) {
        (**self).describe(out)
    }
}

impl<T: KeyEncoding> KeyEncoding for Option<T> {
    #[inline]
    fn feed(&self, hasher: &mut CellHasher) {
        match self {
            None => hasher.word(0),
            Some(value) => {
                hasher.word(1);
                value.feed(hasher)
            }
        }
    }
    fn describe(&self, out: &mut String) {
        match self {
            None => out.push_str("None"),
            Some(value) => value.describe(out),
        }
    }
}
impl<T: KeyType> KeyType for Option<T> {
    const TYPE_NAME: &'static str = "Option";
}

impl KeyEncoding for Ipv4Addr {
    #[inline]
    fn feed(&self, hasher: &mut CellHasher) {
        hasher.word(u32::from(*self) as u64)
    }
    fn describe(&self, out: &mut String) {
        out.push_str(&self.to_string())
    }
}
impl KeyType for Ipv4Addr {
    const TYPE_NAME: &'static str = "Ipv4Addr";
}
impl KeyEncoding for Ipv6Addr {
    #[inline]
    fn feed(&self, hasher: &mut CellHasher) {
        u128::from(*self).feed(hasher)
    }
    fn describe(&self, out: &mut String) {
        out.push_str(&self.to_string())
    }
}
impl KeyType for Ipv6Addr {
    const TYPE_NAME: &'static str = "Ipv6Addr";
}
impl KeyEncoding for IpAddr {
    #[inline]
    fn feed(&self, hasher: &mut CellHasher) {
        match self {
            IpAddr::V4(address) => {
                hasher.word(4);
                address.feed(hasher)
            }
            IpAddr::V6(address) => {
                hasher.word(6);
                address.feed(hasher)
            }
        }
    }
    fn describe(&self, out: &mut String) {
        out.push_str(&self.to_string())
    }
}
impl KeyType for IpAddr {
    const TYPE_NAME: &'static str = "IpAddr";
}

macro_rules! tuples { ($(($($n:tt $t:ident),+)),*) => { $(
    impl<$($t: KeyEncoding),+> KeyEncoding for ($($t,)+) {
        #[inline]
        fn feed(&self, hasher: &mut CellHasher) { $(self.$n.feed(hasher);)+ }
        fn describe(&self, out: &mut String) {
            out.push('(');
            $( if $n > 0 { out.push_str(", ") } self.$n.describe(out); )+
            out.push(')');
        }
    }
    impl<$($t: KeyType),+> KeyType for ($($t,)+) { const TYPE_NAME: &'static str = "tuple"; }
)* } }
tuples!((0 A), (0 A, 1 B), (0 A, 1 B, 2 C), (0 A, 1 B, 2 C, 3 D), (0 A, 1 B, 2 C, 3 D, 4 E));

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(key: &(impl KeyEncoding + ?Sized)) -> u64 {
        let mut hasher = CellHasher::new(7);
        key.feed(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn borrowed_forms_feed_equally() {
        assert_eq!(hash("abc"), hash(&String::from("abc")));
        assert_eq!(hash(&[1u8, 2, 3][..]), hash(&vec![1u8, 2, 3]));
        assert_eq!(hash(&[1u64, 2][..]), hash(&[1u64, 2]));
    }

    const PINNED: (u64, u64, u64) =
        (4_807_052_827_164_375_552, 3_988_363_223_419_854_535, 12_520_033_154_174_769_762);

    /// Hives of different builds must compute the same hashes, so these values must never change.
    #[test]
    fn hashes_never_change() {
        assert_eq!((hash(&1u64), hash("a"), hash("longer than sixteen bytes")), PINNED);
        assert_ne!(hash("a"), hash("b"));
        assert_ne!(hash(&(1u64, 2u64)), hash(&(2u64, 1u64)));
        assert_ne!(hash("ab"), hash("ab\0"));
    }
}
