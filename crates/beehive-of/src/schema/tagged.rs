//! Macros that declare a tagged union, such as actions, instructions and properties: the type number selects
//! the structure.

use super::reader::Reader;
use super::sink::Sink;
use super::source::Source;
use super::writer::Writer;
use crate::encode::EncodeError;
use crate::error::{Error, ErrorKind, Part};
use crate::version::Version;

/// The framing of a tagged union's elements. Every element starts with a type number and a length, 16 bits each.
#[derive(Clone, Copy)]
pub(crate) struct Framing {
    /// The part of the message, for errors.
    pub(crate) part: Part,
    /// The name of the length field, for errors.
    pub(crate) length: &'static str,
    /// Whether the length excludes the padding to a multiple of 8 bytes. Otherwise the length must be a
    /// multiple of 8.
    pub(crate) padded: bool,
    /// The minimum length, in bytes.
    pub(crate) minimum: usize,
}

/// A tagged union of structures.
pub trait Tagged<'a>: core::marker::Sized {
    /// Reads the structure with this type number to the end of the reader.
    fn read_body(kind: u16, reader: &mut Reader<'a>) -> Result<Self, Error>;

    /// Returns the type number in a version.
    fn kind(&self, version: Version) -> Option<u16>;

    /// Returns the name of the structure.
    fn name(&self) -> &'static str;

    /// Appends the structure.
    fn write_body(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError>;

    /// Writes the fields of the structure to a sink.
    fn show_body(&self, version: Version, sink: &mut dyn Sink);

    /// Returns the type number, in a version, of the structure with this name.
    fn kind_of(name: &str, version: Version) -> Option<u16>;

    /// Appends the structure with this type number, composed from a source.
    fn compose_body(kind: u16, source: &dyn Source, writer: &mut Writer<'_>) -> Result<(), EncodeError>;
}

/// A tagged union that is an element of a list, framed by its type number and its length.
pub(crate) trait Framed<'a>: Tagged<'a> {
    /// The framing of the elements.
    const FRAMING: Framing;
}

/// Reads one element.
#[inline]
pub(crate) fn read_element<'a, T: Framed<'a>>(reader: &mut Reader<'a>) -> Result<T, Error> {
    let framing = T::FRAMING;
    let outer = reader.enter(framing.part);
    let start = reader.offset();
    if reader.rest().len() < framing.minimum {
        let end = start + reader.rest().len();
        return Err(Error::new(ErrorKind::Truncated, framing.part, end, framing.length));
    }

    let kind = reader.name("type").u16()?;
    let length = usize::from(reader.name(framing.length).u16()?);
    if length < framing.minimum {
        return Err(reader.error_at(ErrorKind::LengthTooSmall, start + 2));
    }
    if !framing.padded && !length.is_multiple_of(8) {
        return Err(reader.error_at(ErrorKind::LengthWrong, start + 2));
    }

    let mut inner = reader.inner(length, 4, start + 2, framing.length)?;
    let element = T::read_body(kind, &mut inner).map_err(|error| match error.kind() {
        // An element that is too short for its structure has a wrong length field.
        ErrorKind::Truncated if error.part() == framing.part => {
            Error::new(ErrorKind::LengthWrong, framing.part, start + 2, framing.length)
        }
        _ => error,
    })?;
    inner.finish()?;
    if framing.padded {
        // Some senders omit the padding of the last element.
        let padding = crate::field::padded(length) - length;
        reader.skip(padding.min(reader.rest().len()))?;
    }

    reader.enter(outer);
    Ok(element)
}

fn frame(
    framing: Framing,
    kind: u16,
    writer: &mut Writer<'_>,
    body: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = writer.position();
    writer.put(&kind.to_be_bytes());
    let at = writer.reserve();
    body(writer)?;
    if framing.padded {
        writer.patch(at, start)?;
        writer.pad_to_8(start);
        Ok(())
    } else {
        writer.pad_to_8(start);
        writer.patch(at, start)
    }
}

/// Appends one element.
#[inline]
pub(crate) fn write_element<'a, T: Framed<'a>>(
    element: &T,
    writer: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let kind = element.kind(writer.version()).ok_or_else(|| writer.unsupported(element.name()))?;
    frame(T::FRAMING, kind, writer, |writer| element.write_body(writer))
}

/// Appends one element composed from a record, whose field `type` is the name or the type number of its
/// structure.
pub(crate) fn compose_element<'a, T: Framed<'a>>(
    source: &dyn Source,
    writer: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let told = source.field("type").ok_or(EncodeError::Value { field: "type" })?;
    let named = told.text().and_then(|name| T::kind_of(name, writer.version()));
    let number = || told.number().and_then(|number| number.try_into().ok());
    let kind = named.or_else(number).ok_or(EncodeError::Value { field: "type" })?;
    frame(T::FRAMING, kind, writer, |writer| T::compose_body(kind, source, writer))
}

/// Declares a tagged union: each structure has a name in text, and a type number per range of versions.
macro_rules! choice {
    (
        $(#[$meta:meta])*
        pub enum $name:ident<$life:lifetime> {
            $(
                $(#[$variant_meta:meta])*
                $variant:ident($type:ty) $text:literal = [$($number:literal in $versions:pat),+]
            ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Debug)]
        #[non_exhaustive]
        // Elements are short-lived values on the stack. Boxing the large variants would add an allocation.
        #[allow(clippy::large_enum_variant)]
        pub enum $name<$life> {
            $( $(#[$variant_meta])* $variant($type), )*
            /// An element of an unknown type, preserved unchanged.
            Unknown {
                /// The type number.
                kind: u16,
                /// The bytes after the length field.
                body: &$life [u8],
            },
        }

        impl Default for $name<'_> {
            fn default() -> Self {
                Self::Unknown { kind: 0, body: &[] }
            }
        }

        impl $name<'_> {
            /// The names of all structures, as a [`Sink`](crate::schema::Sink) receives them.
            pub const NAMES: &'static [&'static str] = &[$($text),*];

            /// Returns the type number, in a version, of the structure with this name; `None` if the version
            /// lacks it.
            pub fn number(name: &str, version: $crate::version::Version) -> Option<u16> {
                <Self as $crate::schema::Tagged<'_>>::kind_of(name, version)
            }
        }

        impl<$life> $crate::schema::Tagged<$life> for $name<$life> {
            #[inline]
            #[allow(unreachable_patterns)]
            fn read_body(
                kind: u16,
                reader: &mut $crate::schema::Reader<$life>,
            ) -> Result<Self, $crate::error::Error> {
                Ok(match (kind, reader.version().minor()) {
                    $( $( ($number, $versions) )|+ => {
                        Self::$variant($crate::schema::Value::read(reader.name(stringify!($variant)))?)
                    } )*
                    _ => Self::Unknown { kind, body: reader.take_rest() },
                })
            }

            #[allow(unreachable_patterns, unused_variables)]
            fn kind(&self, version: $crate::version::Version) -> Option<u16> {
                match self {
                    $( Self::$variant(_) => match version.minor() {
                        $( $versions => Some($number), )+
                        _ => None,
                    }, )*
                    Self::Unknown { kind, .. } => Some(*kind),
                }
            }

            fn name(&self) -> &'static str {
                match self {
                    $( Self::$variant(_) => $text, )*
                    Self::Unknown { .. } => "unknown",
                }
            }

            #[inline]
            fn write_body(
                &self,
                writer: &mut $crate::schema::Writer<'_>,
            ) -> Result<(), $crate::encode::EncodeError> {
                match self {
                    $( Self::$variant(body) => $crate::schema::Value::write(body, writer), )*
                    Self::Unknown { body, .. } => {
                        writer.put(body);
                        Ok(())
                    }
                }
            }

            fn show_body(&self, version: $crate::version::Version, sink: &mut dyn $crate::schema::Sink) {
                match self {
                    $( Self::$variant(body) => body.show_fields(version, sink), )*
                    Self::Unknown { body, .. } => {
                        sink.key("body");
                        sink.bytes(body);
                    }
                }
            }

            #[allow(unreachable_patterns, unused_variables)]
            fn kind_of(name: &str, version: $crate::version::Version) -> Option<u16> {
                match name {
                    $( $text => match version.minor() {
                        $( $versions => Some($number), )+
                        _ => None,
                    }, )*
                    _ => None,
                }
            }

            #[allow(unreachable_patterns)]
            fn compose_body(
                kind: u16,
                source: &dyn $crate::schema::Source,
                writer: &mut $crate::schema::Writer<'_>,
            ) -> Result<(), $crate::encode::EncodeError> {
                match (kind, writer.version().minor()) {
                    $( $( ($number, $versions) )|+ => {
                        <$type as $crate::schema::Value<'_>>::compose(source, writer)
                    } )*
                    _ => match source.field("body") {
                        Some(body) => <&[u8] as $crate::schema::Value<'_>>::compose(body, writer),
                        None => Ok(()),
                    },
                }
            }
        }
    };
}

/// Declares a tagged union that is an element of a list.
macro_rules! tagged {
    (
        $(#[$meta:meta])*
        pub enum $name:ident<$life:lifetime> in $part:ident, $length:literal, padded $padded:literal, minimum $minimum:literal {
            $($variants:tt)*
        }
    ) => {
        $crate::schema::choice! {
            $(#[$meta])*
            pub enum $name<$life> { $($variants)* }
        }

        impl<$life> $crate::schema::Framed<$life> for $name<$life> {
            const FRAMING: $crate::schema::Framing = $crate::schema::Framing {
                part: $crate::error::Part::$part,
                length: $length,
                padded: $padded,
                minimum: $minimum,
            };
        }

        impl<$life> $crate::schema::Value<$life> for $name<$life> {
            #[inline]
            fn read(reader: &mut $crate::schema::Reader<$life>) -> Result<Self, $crate::error::Error> {
                $crate::schema::read_element(reader)
            }

            #[inline]
            fn write(
                &self,
                writer: &mut $crate::schema::Writer<'_>,
            ) -> Result<(), $crate::encode::EncodeError> {
                $crate::schema::write_element(self, writer)
            }

            fn show(&self, version: $crate::version::Version, sink: &mut dyn $crate::schema::Sink) {
                use $crate::schema::Tagged;
                sink.open_record();
                sink.key("type");
                match self {
                    Self::Unknown { kind, .. } => sink.number((*kind).into()),
                    known => sink.text(format_args!("{}", known.name())),
                }
                self.show_body(version, sink);
                sink.close_record();
            }

            fn compose(
                source: &dyn $crate::schema::Source,
                writer: &mut $crate::schema::Writer<'_>,
            ) -> Result<(), $crate::encode::EncodeError> {
                $crate::schema::compose_element::<Self>(source, writer)
            }
        }
    };
}

pub(crate) use {choice, tagged};
