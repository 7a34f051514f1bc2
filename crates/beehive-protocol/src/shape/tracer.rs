//! Finds the shape of a type by running its `Deserialize` on made-up values and recording which values it requests.
//!
//! A pass decodes only one variant of each enumeration, so passes repeat until all variants have been decoded.

use crate::limits;
use crate::shape::Shape;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use std::collections::BTreeMap;

/// The error of a pass that ended early because the type refused a made-up value or a limit was reached.
#[derive(Debug)]
struct Refused;

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the type refused a made-up value, or a limit was reached")
    }
}
impl std::error::Error for Refused {}
impl serde::de::Error for Refused {
    fn custom<T: std::fmt::Display>(_: T) -> Self {
        Refused
    }
}

/// An enumeration: its name and variants.
type Enumeration = (&'static str, &'static [&'static str]);

/// A variant of an enumeration. Its shape is known once the variant has been decoded to its end.
#[derive(Clone, Default)]
struct Variant {
    begun: bool,
    shape: Option<Shape>,
}

#[derive(Default)]
struct Pass {
    enumerations: BTreeMap<Enumeration, Vec<Variant>>,
    /// Names of the types being decoded, outermost first.
    inside: Vec<&'static str>,
    /// Number of types being decoded inside themselves. While it is not zero, the tracer yields the shortest possible
    /// values, so that decoding ends.
    again: usize,
    steps: usize,
    depth: usize,
    /// Whether this pass decoded a variant for the first time.
    news: bool,
}

impl Pass {
    fn is_short(&self) -> bool {
        self.again > 0 || self.steps > limits::SHAPE_STEPS_MAX
    }
}

pub(super) fn trace<T: DeserializeOwned>() -> Shape {
    let mut pass = Pass::default();
    loop {
        let mut shape = Shape::Opaque;
        (pass.news, pass.steps, pass.depth, pass.again) = (false, 0, 0, 0);
        pass.inside.clear();

        // A hand-written `Deserialize` may panic on a made-up value.
        let reading = std::panic::AssertUnwindSafe(|| {
            let _ = T::deserialize(Tracer { pass: &mut pass, out: &mut shape });
        });

        if std::panic::catch_unwind(reading).is_err() {
            return Shape::Opaque;
        }
        if !pass.news {
            return resolved(shape, &pass.enumerations, &mut Vec::new());
        }
    }
}

/// Replaces the placeholder inserted for each enumeration with the shapes of its variants.
fn resolved(
    shape: Shape,
    known: &BTreeMap<Enumeration, Vec<Variant>>,
    inside: &mut Vec<Enumeration>,
) -> Shape {
    let mut inner = |shape: Box<Shape>| Box::new(resolved(*shape, known, inside));
    match shape {
        Shape::Maybe(some) => Shape::Maybe(inner(some)),
        Shape::Sequence(of) => Shape::Sequence(inner(of)),
        Shape::Array(of, count) => Shape::Array(inner(of), count),
        Shape::Map(key, value) => Shape::Map(inner(key), inner(value)),
        Shape::Tuple(parts) => {
            Shape::Tuple(parts.into_iter().map(|part| resolved(part, known, inside)).collect())
        }
        Shape::Struct(fields) => {
            let field = |(name, shape)| (name, resolved(shape, known, inside));
            Shape::Struct(fields.into_iter().map(field).collect())
        }
        // The placeholder of a pass consists of the name of the enumeration and the names of its variants.
        Shape::Enum(named) => {
            let is_it = |(_, variants): &&Enumeration| {
                variants.iter().copied().eq(named.iter().skip(1).map(|(name, _)| name.as_str()))
            };
            let name = named.first().map(|(name, _)| name.clone()).unwrap_or_default();
            let found = known.keys().filter(is_it).find(|(known, _)| *known == name).copied();
            let Some(found) = found else { return Shape::Opaque };
            if inside.contains(&found) {
                return Shape::Again(name);
            }

            inside.push(found);
            let seen = known.get(&found).cloned().unwrap_or_default();
            let variants = found.1.iter().zip(seen).map(|(name, variant)| {
                let shape = variant.shape.unwrap_or(Shape::Opaque);
                (name.to_string(), resolved(shape, known, inside))
            });
            let variants = variants.collect();
            inside.pop();
            Shape::Enum(variants)
        }
        plain => plain,
    }
}

struct Tracer<'a> {
    pass: &'a mut Pass,
    out: &'a mut Shape,
}

macro_rules! plain {
    ($($deserialize:ident $visit:ident $value:expr, $name:literal;)*) => {
        $(fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
            *self.out = Shape::Plain($name.to_string());
            visitor.$visit($value)
        })*
    };
}

impl Tracer<'_> {
    /// Decodes `count` elements.
    fn several<'de, V: Visitor<'de>>(
        pass: &mut Pass,
        count: usize,
        visitor: V,
    ) -> (Result<V::Value, Refused>, Vec<Shape>) {
        let mut outs = Vec::new();
        let result = visitor.visit_seq(Several { pass, outs: &mut outs, left: count });
        // Elements that were not reached are unknown.
        outs.resize(count.min(limits::SHAPE_STEPS_MAX), Shape::Opaque);
        (result, outs)
    }

    /// Decodes a named type. A recursive occurrence of the type is also decoded to its end, but its shape is only the
    /// name of the type.
    fn named<R>(
        self,
        name: &'static str,
        read: impl FnOnce(&mut Pass) -> (Result<R, Refused>, Shape),
    ) -> Result<R, Refused> {
        self.pass.steps += 1;
        let again = self.pass.inside.contains(&name);
        if self.pass.depth > limits::SHAPE_DEPTH_MAX {
            return Err(Refused);
        }

        self.pass.inside.push(name);
        self.pass.again += usize::from(again);
        self.pass.depth += 1;
        let (result, shape) = read(self.pass);
        self.pass.depth -= 1;
        self.pass.again -= usize::from(again);
        self.pass.inside.pop();

        *self.out = if again { Shape::Again(name.to_string()) } else { shape };
        result
    }
}

fn tuple(parts: Vec<Shape>) -> Shape {
    match parts.split_first() {
        Some((first, rest)) if !rest.is_empty() && rest.iter().all(|part| part == first) => {
            Shape::Array(Box::new(first.clone()), parts.len() as u32)
        }
        _ => Shape::Tuple(parts),
    }
}

fn fields(names: &'static [&'static str], shapes: Vec<Shape>) -> Shape {
    Shape::Struct(names.iter().map(|name| name.to_string()).zip(shapes).collect())
}

impl<'de> Deserializer<'de> for Tracer<'_> {
    type Error = Refused;

    plain! {
        deserialize_bool visit_bool false, "bool";
        deserialize_i8 visit_i8 1, "i8";
        deserialize_i16 visit_i16 1, "i16";
        deserialize_i32 visit_i32 1, "i32";
        deserialize_i64 visit_i64 1, "i64";
        deserialize_i128 visit_i128 1, "i128";
        deserialize_u8 visit_u8 1, "u8";
        deserialize_u16 visit_u16 1, "u16";
        deserialize_u32 visit_u32 1, "u32";
        deserialize_u64 visit_u64 1, "u64";
        deserialize_u128 visit_u128 1, "u128";
        deserialize_f32 visit_f32 1.0, "f32";
        deserialize_f64 visit_f64 1.0, "f64";
        deserialize_char visit_char '1', "char";
        deserialize_str visit_borrowed_str "1", "str";
        deserialize_string visit_string "1".to_string(), "str";
        deserialize_bytes visit_borrowed_bytes &[], "bytes";
        deserialize_byte_buf visit_byte_buf Vec::new(), "bytes";
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Refused> {
        *self.out = Shape::Any;
        Err(Refused)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.deserialize_any(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Refused> {
        *self.out = Shape::Opaque;
        Err(Refused)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        *self.out = Shape::Unit;
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        if self.pass.is_short() {
            *self.out = Shape::Maybe(Box::new(Shape::Opaque));
            return visitor.visit_none();
        }
        let mut some = Shape::Opaque;
        let result = visitor.visit_some(Tracer { pass: self.pass, out: &mut some });
        *self.out = Shape::Maybe(Box::new(some));
        result
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.named(name, |pass| {
            let mut shape = Shape::Opaque;
            (visitor.visit_newtype_struct(Tracer { pass, out: &mut shape }), shape)
        })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        let count = if self.pass.is_short() { 0 } else { 1 };
        let (result, mut shapes) = Tracer::several(self.pass, count, visitor);
        *self.out = Shape::Sequence(Box::new(shapes.pop().unwrap_or(Shape::Opaque)));
        result
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, count: usize, visitor: V) -> Result<V::Value, Refused> {
        let (result, shapes) = Tracer::several(self.pass, count, visitor);
        *self.out = tuple(shapes);
        result
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        count: usize,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.named(name, |pass| {
            let (result, shapes) = Tracer::several(pass, count, visitor);
            (result, tuple(shapes))
        })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        let left = if self.pass.is_short() { 0 } else { 1 };
        let (mut key, mut value) = (Shape::Opaque, Shape::Opaque);
        let entry = Entry { pass: self.pass, key: &mut key, value: &mut value, left };
        let result = visitor.visit_map(entry);
        *self.out = Shape::Map(Box::new(key), Box::new(value));
        result
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.named(name, |pass| {
            let (result, shapes) = Tracer::several(pass, names.len(), visitor);
            (result, fields(names, shapes))
        })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        let marked = std::iter::once(&name).chain(variants).map(|name| (name.to_string(), Shape::Unit));
        *self.out = Shape::Enum(marked.collect());
        if self.pass.depth > limits::SHAPE_DEPTH_MAX {
            return Err(Refused);
        }
        self.pass.steps += 1;
        self.pass.depth += 1;

        let (short, depth) = (self.pass.is_short(), self.pass.depth);
        let seen = self.pass.enumerations.entry((name, variants)).or_default();
        seen.resize(variants.len(), Variant::default());

        // Prefer a new variant, then one that is known to end.
        let fresh = seen.iter().position(|variant| !variant.begun).filter(|_| !short);
        let ended = || seen.iter().position(|variant| variant.shape.is_some());
        // Otherwise choose a variant by depth, because at least one variant must end.
        let chosen = fresh.or_else(ended).unwrap_or(depth % variants.len().max(1));
        if fresh.is_some()
            && let Some(variant) = seen.get_mut(chosen)
        {
            variant.begun = true
        }

        self.pass.news |= fresh.is_some();

        let mut shape = Shape::Unit;
        let result =
            visitor.visit_enum(OneVariant { pass: self.pass, out: &mut shape, index: chosen as u32 });
        self.pass.depth -= 1;

        let known = self.pass.enumerations.get_mut(&(name, variants));
        if fresh.is_some()
            && let Some(variant) = known.and_then(|seen| seen.get_mut(chosen))
        {
            variant.shape = Some(shape)
        }
        result
    }
}

/// Yields the elements of a sequence or tuple.
struct Several<'a> {
    pass: &'a mut Pass,
    outs: &'a mut Vec<Shape>,
    left: usize,
}

impl<'de> SeqAccess<'de> for Several<'_> {
    type Error = Refused;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Refused> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        let mut out = Shape::Opaque;
        let value = seed.deserialize(Tracer { pass: self.pass, out: &mut out });
        if self.outs.len() < limits::SHAPE_STEPS_MAX {
            self.outs.push(out)
        }
        value.map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// Yields at most one entry of a map.
struct Entry<'a> {
    pass: &'a mut Pass,
    key: &'a mut Shape,
    value: &'a mut Shape,
    left: usize,
}

impl<'de> MapAccess<'de> for Entry<'_> {
    type Error = Refused;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Refused> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        seed.deserialize(Tracer { pass: self.pass, out: self.key }).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Refused> {
        seed.deserialize(Tracer { pass: self.pass, out: self.value })
    }
}

/// Yields one variant of an enumeration.
struct OneVariant<'a> {
    pass: &'a mut Pass,
    out: &'a mut Shape,
    index: u32,
}

impl<'de> EnumAccess<'de> for OneVariant<'_> {
    type Error = Refused;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Refused> {
        let index: serde::de::value::U32Deserializer<Refused> = self.index.into_deserializer();
        seed.deserialize(index).map(|value| (value, self))
    }
}

impl<'de> VariantAccess<'de> for OneVariant<'_> {
    type Error = Refused;

    fn unit_variant(self) -> Result<(), Refused> {
        *self.out = Shape::Unit;
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Refused> {
        seed.deserialize(Tracer { pass: self.pass, out: self.out })
    }

    fn tuple_variant<V: Visitor<'de>>(self, count: usize, visitor: V) -> Result<V::Value, Refused> {
        let (result, shapes) = Tracer::several(self.pass, count, visitor);
        *self.out = tuple(shapes);
        result
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        let (result, shapes) = Tracer::several(self.pass, names.len(), visitor);
        *self.out = fields(names, shapes);
        result
    }
}
