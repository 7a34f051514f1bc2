//! Encodes values in the format of bincode 2, into a [`Sink`].
//!
//! bincode itself writes a `Vec<u8>` byte by byte, and each byte passes through its writer. Values of most programs
//! contain such vectors, and a hive encodes every value that it logs. This serializer hands over the bytes of a sequence
//! in blocks. `tests/codec.rs` compares its output with that of bincode.

use serde::ser::{
    Impossible, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant,
};
use serde::{Serialize, Serializer};
use std::fmt::{Debug, Display, Formatter};

/// Takes encoded bytes.
pub(super) trait Sink {
    /// Takes the next bytes.
    ///
    /// # Errors
    ///
    /// Returns [`Stop::Full`] if it wants no more.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Stop>;
}

/// The reason why a value is not encoded to its end.
pub(super) enum Stop {
    /// The sink wants no more bytes.
    Full,
    /// The value cannot be encoded.
    Unable(Box<str>),
}

impl Debug for Stop {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        Display::fmt(self, f)
    }
}
impl Display for Stop {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Stop::Full => f.write_str("there is no room"),
            Stop::Unable(why) => f.write_str(why),
        }
    }
}
impl std::error::Error for Stop {}
impl serde::ser::Error for Stop {
    fn custom<T: Display>(why: T) -> Stop {
        Stop::Unable(why.to_string().into())
    }
}

/// Encodes one value. If `VARIABLE`, integers of more than a byte take as few bytes as possible; otherwise they have a
/// fixed width.
pub(super) struct Encoder<'a, S, const VARIABLE: bool>(pub(super) &'a mut S);

/// Largest integer that takes one byte in the variable encoding. Larger ones follow a byte that tells their width.
const ONE_BYTE_MAX: u8 = 250;

macro_rules! integers {
    ($($method:ident: $integer:ty, $variable:ident;)*) => {$(
        #[inline]
        fn $method(self, integer: $integer) -> Result<(), Stop> {
            if VARIABLE { self.$variable(integer.into()) } else { self.0.write(&integer.to_le_bytes()) }
        }
    )*};
}

macro_rules! floats {
    ($($method:ident: $float:ty;)*) => {$(
        #[inline]
        fn $method(self, float: $float) -> Result<(), Stop> {
            self.0.write(&float.to_le_bytes())
        }
    )*};
}

impl<S: Sink, const VARIABLE: bool> Encoder<'_, S, VARIABLE> {
    /// The same encoder, for a part of the value.
    #[inline]
    fn part(&mut self) -> Encoder<'_, S, VARIABLE> {
        Encoder(self.0)
    }

    #[inline]
    fn unsigned(self, integer: u64) -> Result<(), Stop> {
        match u8::try_from(integer) {
            Ok(byte) if byte <= ONE_BYTE_MAX => self.0.write(&[byte]),
            _ => self.wide(integer),
        }
    }

    /// Encodes an integer that takes more than a byte.
    #[inline(never)]
    fn wide(self, integer: u64) -> Result<(), Stop> {
        let mut bytes = [0; 9];
        let (kind, width) = match integer {
            0..=0xFFFF => (ONE_BYTE_MAX + 1, 2),
            0x1_0000..=0xFFFF_FFFF => (ONE_BYTE_MAX + 2, 4),
            _ => (ONE_BYTE_MAX + 3, 8),
        };
        bytes[0] = kind;
        bytes[1..].copy_from_slice(&integer.to_le_bytes());
        self.0.write(&bytes[..=width])
    }

    /// Small integers of both signs take few bytes: 0, -1, 1, -2 become 0, 1, 2, 3.
    #[inline]
    fn signed(self, integer: i64) -> Result<(), Stop> {
        self.unsigned(((integer << 1) ^ (integer >> 63)) as u64)
    }

    fn unsigned_wide(self, integer: u128) -> Result<(), Stop> {
        match u64::try_from(integer) {
            Ok(integer) => self.unsigned(integer),
            Err(_) => {
                self.0.write(&[ONE_BYTE_MAX + 4])?;
                self.0.write(&integer.to_le_bytes())
            }
        }
    }

    fn signed_wide(self, integer: i128) -> Result<(), Stop> {
        self.unsigned_wide(((integer << 1) ^ (integer >> 127)) as u128)
    }

    #[inline]
    fn length(&mut self, length: Option<usize>) -> Result<(), Stop> {
        match length {
            Some(length) => self.part().serialize_u64(length as u64),
            None => {
                Err(Stop::Unable("the length of a sequence or map must be known before its elements".into()))
            }
        }
    }
}

/// Number of bytes of a sequence that are handed over together.
const BLOCK: usize = 64;

impl<'a, S: Sink, const VARIABLE: bool> Serializer for Encoder<'a, S, VARIABLE> {
    type Ok = ();
    type Error = Stop;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    integers! {
        serialize_u16: u16, unsigned;
        serialize_u32: u32, unsigned;
        serialize_u64: u64, unsigned;
        serialize_u128: u128, unsigned_wide;
        serialize_i16: i16, signed;
        serialize_i32: i32, signed;
        serialize_i64: i64, signed;
        serialize_i128: i128, signed_wide;
    }

    floats! {
        serialize_u8: u8;
        serialize_i8: i8;
        serialize_f32: f32;
        serialize_f64: f64;
    }

    #[inline]
    fn serialize_bool(self, value: bool) -> Result<(), Stop> {
        self.0.write(&[value.into()])
    }

    fn serialize_char(self, value: char) -> Result<(), Stop> {
        self.0.write(value.encode_utf8(&mut [0; 4]).as_bytes())
    }

    #[inline]
    fn serialize_str(self, text: &str) -> Result<(), Stop> {
        self.serialize_bytes(text.as_bytes())
    }

    #[inline]
    fn serialize_bytes(mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.length(Some(bytes.len()))?;
        self.0.write(bytes)
    }

    #[inline]
    fn serialize_none(self) -> Result<(), Stop> {
        self.0.write(&[0])
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Stop> {
        self.0.write(&[1])?;
        value.serialize(self)
    }

    #[inline]
    fn serialize_unit(self) -> Result<(), Stop> {
        Ok(())
    }

    #[inline]
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Stop> {
        Ok(())
    }

    #[inline]
    fn serialize_unit_variant(self, _: &'static str, variant: u32, _: &'static str) -> Result<(), Stop> {
        self.serialize_u32(variant)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Stop> {
        value.serialize(self)
    }

    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        mut self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Stop> {
        self.part().serialize_u32(variant)?;
        value.serialize(self)
    }

    #[inline]
    fn serialize_seq(mut self, length: Option<usize>) -> Result<Self, Stop> {
        self.length(length)?;
        Ok(self)
    }

    #[inline]
    fn serialize_tuple(self, _: usize) -> Result<Self, Stop> {
        Ok(self)
    }

    #[inline]
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Stop> {
        Ok(self)
    }

    #[inline]
    fn serialize_tuple_variant(
        mut self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Stop> {
        self.part().serialize_u32(variant)?;
        Ok(self)
    }

    #[inline]
    fn serialize_map(self, length: Option<usize>) -> Result<Self, Stop> {
        self.serialize_seq(length)
    }

    #[inline]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Stop> {
        Ok(self)
    }

    #[inline]
    fn serialize_struct_variant(
        self,
        of: &'static str,
        variant: u32,
        name: &'static str,
        length: usize,
    ) -> Result<Self, Stop> {
        self.serialize_tuple_variant(of, variant, name, length)
    }

    /// Vectors and slices come here as a whole. If their elements are bytes, the loop becomes a copy. If they are not, the
    /// first one is serialized twice: a hive may serialize any value several times.
    fn collect_seq<I>(mut self, elements: I) -> Result<(), Stop>
    where
        I: IntoIterator,
        I::Item: Serialize,
    {
        let mut elements = elements.into_iter();
        let (least, most) = elements.size_hint();
        self.length(most.filter(|most| *most == least))?;

        let mut block = [0; BLOCK];
        let mut filled = 0;
        for element in elements.by_ref() {
            // for all types but `u8`, this is an error as soon as the type is known
            let Ok(byte) = element.serialize(AByte) else {
                self.0.write(&block[..filled])?;
                element.serialize(self.part())?;
                filled = 0;
                break;
            };
            block[filled] = byte;
            filled += 1;
            if filled == BLOCK {
                self.0.write(&block)?;
                filled = 0
            }
        }
        self.0.write(&block[..filled])?;
        elements.try_for_each(|element| element.serialize(self.part()))
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

macro_rules! compound {
    ($($kind:ident: $method:ident($($key:ty)?);)*) => {$(
        impl<S: Sink, const VARIABLE: bool> $kind for Encoder<'_, S, VARIABLE> {
            type Ok = ();
            type Error = Stop;

            #[inline]
            fn $method<T: Serialize + ?Sized>(&mut self, $(_: $key,)? value: &T) -> Result<(), Stop> {
                value.serialize(self.part())
            }
            #[inline]
            fn end(self) -> Result<(), Stop> {
                Ok(())
            }
        }
    )*};
}

compound! {
    SerializeSeq: serialize_element();
    SerializeTuple: serialize_element();
    SerializeTupleStruct: serialize_field();
    SerializeTupleVariant: serialize_field();
    SerializeStruct: serialize_field(&'static str);
    SerializeStructVariant: serialize_field(&'static str);
}

impl<S: Sink, const VARIABLE: bool> SerializeMap for Encoder<'_, S, VARIABLE> {
    type Ok = ();
    type Error = Stop;

    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Stop> {
        key.serialize(self.part())
    }
    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        value.serialize(self.part())
    }
    #[inline]
    fn end(self) -> Result<(), Stop> {
        Ok(())
    }
}

/// Returns a value of type `u8`, and refuses every other.
struct AByte;

/// A value that is not a `u8`.
#[derive(Debug)]
struct Other;

impl Display for Other {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("not a byte")
    }
}
impl std::error::Error for Other {}
impl serde::ser::Error for Other {
    fn custom<T: Display>(_: T) -> Other {
        Other
    }
}

macro_rules! refuse {
    ($($method:ident($($type:ty),*) -> $result:ty;)*) => {$(
        #[inline]
        fn $method(self, $(_: $type),*) -> Result<$result, Other> {
            Err(Other)
        }
    )*};
}

impl Serializer for AByte {
    type Ok = u8;
    type Error = Other;
    type SerializeSeq = Impossible<u8, Other>;
    type SerializeTuple = Impossible<u8, Other>;
    type SerializeTupleStruct = Impossible<u8, Other>;
    type SerializeTupleVariant = Impossible<u8, Other>;
    type SerializeMap = Impossible<u8, Other>;
    type SerializeStruct = Impossible<u8, Other>;
    type SerializeStructVariant = Impossible<u8, Other>;

    #[inline]
    fn serialize_u8(self, byte: u8) -> Result<u8, Other> {
        Ok(byte)
    }

    refuse! {
        serialize_bool(bool) -> u8;
        serialize_i8(i8) -> u8;
        serialize_i16(i16) -> u8;
        serialize_i32(i32) -> u8;
        serialize_i64(i64) -> u8;
        serialize_i128(i128) -> u8;
        serialize_u16(u16) -> u8;
        serialize_u32(u32) -> u8;
        serialize_u64(u64) -> u8;
        serialize_u128(u128) -> u8;
        serialize_f32(f32) -> u8;
        serialize_f64(f64) -> u8;
        serialize_char(char) -> u8;
        serialize_str(&str) -> u8;
        serialize_bytes(&[u8]) -> u8;
        serialize_none() -> u8;
        serialize_unit() -> u8;
        serialize_unit_struct(&'static str) -> u8;
        serialize_unit_variant(&'static str, u32, &'static str) -> u8;
        serialize_seq(Option<usize>) -> Self::SerializeSeq;
        serialize_tuple(usize) -> Self::SerializeTuple;
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
        serialize_map(Option<usize>) -> Self::SerializeMap;
        serialize_struct(&'static str, usize) -> Self::SerializeStruct;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<u8, Other> {
        Err(Other)
    }
    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, _: &T) -> Result<u8, Other> {
        Err(Other)
    }
    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<u8, Other> {
        Err(Other)
    }
    fn collect_str<T: Display + ?Sized>(self, _: &T) -> Result<u8, Other> {
        Err(Other)
    }
    fn is_human_readable(&self) -> bool {
        false
    }
}
