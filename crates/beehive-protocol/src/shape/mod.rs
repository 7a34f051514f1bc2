//! Shapes: descriptions, as data, of how types are encoded. A log keeps the shapes of its values, so that a program
//! whose types have changed does not misread them.

mod tracer;

use crate::{CellHasher, limits};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::{Display, Formatter};

/// A type's encoding.
///
/// A shape does not contain type names, because types may be renamed freely. It does contain the names of fields and
/// variants, because otherwise swapping two fields of the same type would go unnoticed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Shape {
    /// A primitive type, by its name, such as `u64`, `str` or `bytes`.
    Plain(String),
    /// The unit type, which takes no bytes.
    Unit,
    /// An `Option`.
    Maybe(#[serde(deserialize_with = "levels::boxed")] Box<Shape>),
    /// A sequence of any length.
    Sequence(#[serde(deserialize_with = "levels::boxed")] Box<Shape>),
    /// A map, with the shapes of its keys and values.
    Map(
        #[serde(deserialize_with = "levels::boxed")] Box<Shape>,
        #[serde(deserialize_with = "levels::boxed")] Box<Shape>,
    ),
    /// An array of a fixed length, or a tuple whose elements have the same shape.
    Array(#[serde(deserialize_with = "levels::boxed")] Box<Shape>, u32),
    /// A tuple.
    Tuple(#[serde(deserialize_with = "levels::all")] Vec<Shape>),
    /// A struct with named fields.
    Struct(#[serde(deserialize_with = "levels::named")] Vec<(String, Shape)>),
    /// An enumeration, with its variants.
    Enum(#[serde(deserialize_with = "levels::named")] Vec<(String, Shape)>),
    /// A recursive occurrence of the type with this name.
    Again(String),
    /// Unknown: the type's `Deserialize` is written by hand and does not reveal the shape. It matches every shape.
    Opaque,
    /// Any value. Only a self-describing format such as JSON can decode it; the codec of logs cannot.
    Any,
}

impl Shape {
    /// Returns the shape of `T`, found by tracing its `Deserialize`.
    pub fn of<T: DeserializeOwned>() -> Shape {
        tracer::trace::<T>().cut(limits::SHAPE_LEVELS_MAX)
    }

    /// Returns a hash of the shape.
    pub fn fingerprint(&self) -> u64 {
        CellHasher::name(0x73_68_61_70_65, &self.to_string())
    }

    /// Returns the shape with all parts below level `levels` replaced by [`Shape::Opaque`].
    fn cut(self, levels: usize) -> Shape {
        let Some(levels) = levels.checked_sub(1) else { return Shape::Opaque };
        let boxed = |shape: Box<Shape>| Box::new(shape.cut(levels));
        let named = |named: Vec<(String, Shape)>| {
            named.into_iter().map(|(name, shape)| (name, shape.cut(levels))).collect()
        };
        match self {
            Shape::Maybe(of) => Shape::Maybe(boxed(of)),
            Shape::Sequence(of) => Shape::Sequence(boxed(of)),
            Shape::Map(key, value) => Shape::Map(boxed(key), boxed(value)),
            Shape::Array(of, count) => Shape::Array(boxed(of), count),
            Shape::Tuple(parts) => Shape::Tuple(parts.into_iter().map(|part| part.cut(levels)).collect()),
            Shape::Struct(fields) => Shape::Struct(named(fields)),
            Shape::Enum(variants) => Shape::Enum(named(variants)),
            plain => plain,
        }
    }

    /// Checks whether a log can hold values of this shape, which is the case if none of its parts is [`Shape::Any`].
    pub fn is_readable(&self) -> bool {
        let all = |named: &[(String, Shape)]| named.iter().all(|(_, shape)| shape.is_readable());
        match self {
            Shape::Any => false,
            Shape::Maybe(of) | Shape::Sequence(of) | Shape::Array(of, _) => of.is_readable(),
            Shape::Map(key, value) => key.is_readable() && value.is_readable(),
            Shape::Tuple(parts) => parts.iter().all(Shape::is_readable),
            Shape::Struct(fields) => all(fields),
            Shape::Enum(variants) => all(variants),
            Shape::Plain(_) | Shape::Unit | Shape::Again(_) | Shape::Opaque => true,
        }
    }

    /// Checks that values encoded in the shape `old` can be decoded in this one.
    ///
    /// # Errors
    ///
    /// Returns a description of the first difference and its place.
    pub fn reads(&self, old: &Shape) -> Result<(), String> {
        self.reads_at(old, &mut String::new())
    }

    fn reads_at(&self, old: &Shape, at: &mut String) -> Result<(), String> {
        let differs = |at: &str| {
            let place =
                if at.is_empty() { String::new() } else { format!("`{}` ", at.trim_start_matches('.')) };
            Err(format!("{place}was {old} and is {self}"))
        };
        let mut inside = |new: &Shape, old: &Shape, step: &str| {
            let length = at.len();
            at.push_str(step);
            let result = new.reads_at(old, at);
            at.truncate(length);
            result
        };
        match (self, old) {
            // An unknown shape cannot be compared.
            (Shape::Opaque | Shape::Any, _) | (_, Shape::Opaque | Shape::Any) => Ok(()),
            (Shape::Maybe(new), Shape::Maybe(old)) => inside(new, old, ""),
            (Shape::Sequence(new), Shape::Sequence(old)) => inside(new, old, "[]"),
            (Shape::Array(new, n), Shape::Array(old, o)) if n == o => inside(new, old, "[]"),
            (Shape::Map(key, value), Shape::Map(old_key, old_value)) => {
                inside(key, old_key, "[key]")?;
                inside(value, old_value, "[]")
            }
            (Shape::Tuple(new), Shape::Tuple(old)) if new.len() == old.len() => {
                let mut pairs = new.iter().zip(old).enumerate();
                pairs.try_for_each(|(place, (new, old))| inside(new, old, &format!(".{place}")))
            }
            (Shape::Struct(new), Shape::Struct(old)) if names(new).eq(names(old)) => {
                let mut pairs = new.iter().zip(old);
                pairs.try_for_each(|((name, new), (_, old))| inside(new, old, &format!(".{name}")))
            }
            // New variants may follow the old ones.
            (Shape::Enum(new), Shape::Enum(old))
                if new.len() >= old.len() && names(&new[..old.len()]).eq(names(old)) =>
            {
                let mut pairs = new.iter().zip(old);
                pairs.try_for_each(|((name, new), (_, old))| inside(new, old, &format!("::{name}")))
            }
            (new, old) if new == old => Ok(()),
            _ => differs(at),
        }
    }
}

/// Refuses bytes that nest shapes too deeply. Decoding recurses once per level, so hostile bytes could otherwise
/// exhaust the stack.
mod levels {
    use super::Shape;
    use crate::limits;
    use serde::{Deserialize, Deserializer, de::Error};
    use std::cell::Cell;

    thread_local! {
        /// Current level of the shape that this thread is decoding. It is a thread-local because `Deserialize` has no
        /// parameter for it.
        static LEVEL: Cell<usize> = const { Cell::new(0) };
    }

    /// A guard that restores the level, even if decoding fails or panics.
    struct Level(usize);

    impl Drop for Level {
        fn drop(&mut self) {
            LEVEL.set(self.0)
        }
    }

    fn deeper<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        let level = Level(LEVEL.get());
        if level.0 >= limits::SHAPE_LEVELS_MAX {
            return Err(D::Error::custom("a shape is nested too deeply"));
        }
        LEVEL.set(level.0 + 1);
        T::deserialize(deserializer)
    }

    pub(super) fn boxed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<Shape>, D::Error> {
        deeper(deserializer)
    }

    pub(super) fn all<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Shape>, D::Error> {
        deeper(deserializer)
    }

    pub(super) fn named<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(String, Shape)>, D::Error> {
        deeper(deserializer)
    }
}

fn names(named: &[(String, Shape)]) -> impl Iterator<Item = &String> {
    named.iter().map(|(name, _)| name)
}

impl Display for Shape {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        fn list(f: &mut Formatter<'_>, parts: &[(String, Shape)], between: &str) -> std::fmt::Result {
            for (at, (name, shape)) in parts.iter().enumerate() {
                let comma = if at > 0 { between } else { "" };
                match shape {
                    Shape::Unit if between == " | " => write!(f, "{comma}{name}")?,
                    _ => write!(f, "{comma}{name}: {shape}")?,
                }
            }
            Ok(())
        }
        match self {
            Shape::Plain(name) => write!(f, "{name}"),
            Shape::Unit => write!(f, "()"),
            Shape::Maybe(some) => write!(f, "Option<{some}>"),
            Shape::Sequence(of) => write!(f, "[{of}]"),
            Shape::Map(key, value) => write!(f, "{{{key}: {value}}}"),
            Shape::Array(of, count) => write!(f, "[{of}; {count}]"),
            Shape::Tuple(parts) => {
                write!(f, "(")?;
                for (at, part) in parts.iter().enumerate() {
                    write!(f, "{}{part}", if at > 0 { ", " } else { "" })?
                }
                write!(f, ")")
            }
            Shape::Struct(fields) => {
                write!(f, "{{ ")?;
                list(f, fields, ", ")?;
                write!(f, " }}")
            }
            Shape::Enum(variants) => {
                write!(f, "<")?;
                list(f, variants, " | ")?;
                write!(f, ">")
            }
            Shape::Again(name) => write!(f, "{name} again"),
            Shape::Opaque => write!(f, "?"),
            Shape::Any => write!(f, "anything"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet, HashMap};
    use std::num::NonZeroU32;

    #[derive(Serialize, Deserialize)]
    #[allow(dead_code)]
    struct All {
        number: u64,
        text: String,
        list: Vec<(u8, bool)>,
        maybe: Option<char>,
        map: HashMap<String, i32>,
        set: BTreeSet<u16>,
        bytes: [u8; 6],
        new: New,
        nothing: (),
        kind: Kind,
        least: NonZeroU32,
        time: std::time::Duration,
        place: std::net::IpAddr,
    }
    #[derive(Serialize, Deserialize)]
    struct New(f64);
    #[derive(Serialize, Deserialize)]
    #[allow(dead_code)]
    enum Kind {
        None,
        One(u8),
        Two(u8, u16),
        Named { x: bool },
    }
    #[derive(Serialize, Deserialize)]
    #[allow(dead_code)]
    enum Expression {
        Add(Box<Expression>, Box<Expression>),
        Not(Box<Expression>),
        Number(u64),
        All(Vec<Expression>),
    }
    #[derive(Serialize, Deserialize)]
    #[allow(dead_code)]
    struct Node {
        left: Option<Box<Node>>,
        right: Option<Box<Node>>,
        rest: BTreeMap<u8, Node>,
        value: u8,
    }

    #[test]
    fn a_type_is_described_as_it_is_encoded() {
        let kind = "<None | One: u8 | Two: (u8, u16) | Named: { x: bool }>";
        let want = format!(
            "{{ number: u64, text: str, list: [(u8, bool)], maybe: Option<char>, map: {{str: i32}}, \
             set: [u16], bytes: [u8; 6], new: f64, nothing: (), kind: {kind}, least: u32, \
             time: {{ secs: u64, nanos: u32 }}, place: <V4: [u8; 4] | V6: [u8; 16]> }}"
        );
        assert_eq!(Shape::of::<All>().to_string(), want);
        assert_eq!(Shape::of::<All>().fingerprint(), Shape::of::<All>().fingerprint());
        assert_ne!(Shape::of::<Kind>().fingerprint(), Shape::of::<Option<u8>>().fingerprint());
    }

    #[test]
    fn a_type_inside_itself_has_an_end() {
        assert_eq!(
            Shape::of::<Expression>().to_string(),
            "<Add: [Expression again; 2] | Not: Expression again | Number: u64 | All: [Expression again]>"
        );
        assert_eq!(
            Shape::of::<Node>().to_string(),
            "{ left: Option<Node again>, right: Option<Node again>, rest: {u8: Node again}, value: u8 }"
        );
    }

    /// A struct with a field whose custom `Deserialize` refuses the tracer's value.
    #[derive(Serialize, Deserialize)]
    #[allow(dead_code)]
    struct Partly {
        before: u8,
        #[serde(deserialize_with = "picky")]
        picky: String,
        after: u8,
    }
    fn picky<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.as_str() {
            "only this" => Ok(text),
            _ => Err(serde::de::Error::custom("not this")),
        }
    }

    #[test]
    fn what_refuses_to_be_traced_is_opaque_from_there_on() {
        assert_eq!(Shape::of::<Partly>().to_string(), "{ before: u8, picky: str, after: ? }");
        assert!(Shape::of::<Partly>().is_readable());
    }

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    #[allow(dead_code)]
    enum Either {
        Number(u64),
        Text(String),
    }

    #[test]
    fn what_only_a_text_like_json_can_hold_is_known() {
        assert_eq!(Shape::of::<serde_json::Value>(), Shape::Any);
        let shape = Shape::of::<(u8, Option<Vec<Either>>)>();
        assert_eq!(shape.to_string(), "(u8, Option<[anything]>)");
        assert!(!shape.is_readable());
        assert!(Shape::of::<All>().is_readable() && Shape::of::<Expression>().is_readable());
    }

    macro_rules! shape {
        ($($item:item)*) => {{
            #[allow(dead_code)]
            mod it { use serde::{Deserialize, Serialize}; $(#[derive(Serialize, Deserialize)] $item)* }
            Shape::of::<it::T>()
        }};
    }

    #[test]
    fn what_can_be_read_and_what_cannot() {
        let old = shape! { pub(super) struct T { a: u8, b: Vec<E> } pub(super) enum E { X, Y(u8) } };
        let renamed = shape! { pub(super) struct T { a: u8, b: Vec<F> } pub(super) enum F { X, Y(u8) } };
        let longer = shape! { pub(super) struct T { a: u8, b: Vec<E> } pub(super) enum E { X, Y(u8), Z } };
        assert_eq!((renamed.reads(&old), longer.reads(&old)), (Ok(()), Ok(())));
        assert_eq!(
            old.reads(&longer),
            Err("`b[]` was <X | Y: u8 | Z> and is <X | Y: u8>".to_string()),
            "the log may contain the variant that is missing"
        );
        let wider = shape! { pub(super) struct T { a: u8, b: Vec<E> } pub(super) enum E { X, Y(u16) } };
        assert_eq!(wider.reads(&old), Err("`b[]::Y` was u8 and is u16".to_string()));
        let moved = shape! { pub(super) struct T { b: Vec<E>, a: u8 } pub(super) enum E { X, Y(u8) } };
        assert!(moved.reads(&old).unwrap_err().contains("was { a: u8, b:"));
        let swapped = shape! { pub(super) struct T { a: u8, b: u8 } };
        let back = shape! { pub(super) struct T { b: u8, a: u8 } };
        assert!(swapped.reads(&back).is_err(), "the same bytes would have another meaning");
    }

    /// Bytes that nest shapes too deeply must not exhaust the stack, and it must always be possible to decode a traced
    /// shape.
    #[test]
    fn nesting_is_limited() {
        let nested = |levels| (0..levels).fold(Shape::Unit, |shape, _| Shape::Maybe(Box::new(shape)));
        let decode = |shape: &Shape| crate::codec::decode::<Shape>("a shape", &crate::codec::encode(shape));

        let deepest = nested(limits::SHAPE_LEVELS_MAX);
        assert_eq!(decode(&deepest).as_ref(), Ok(&deepest));
        let error = decode(&nested(limits::SHAPE_LEVELS_MAX + 1)).unwrap_err();
        assert!(error.why.contains("nested too deeply"), "{error}");
        assert!(decode(&nested(3)).is_ok(), "a failure did not restore the level");

        let cut = nested(1_000).cut(limits::SHAPE_LEVELS_MAX);
        assert_eq!(decode(&cut).as_ref(), Ok(&cut));
    }
}
