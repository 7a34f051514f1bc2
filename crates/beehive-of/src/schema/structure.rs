//! The macro that declares a structure: its fields, then a layout for each range of versions.
//!
//! ```text
//! structure! {
//!     /// Changes a port.
//!     pub struct PortMod<'a> in Port {
//!         /// The port.
//!         port: PortNo,
//!         /// What to change.
//!         mask: u32 = ALL,                 // a default other than the type's own
//!         /// Properties.
//!         properties: Properties<'a>,
//!     }
//!     0 => [port as Port16, mask, 4],      // 1.0: 16 bits for the port; 4 bytes of padding at the end
//!     1..=3 => [port, 4, mask, 4],         // 1.1 to 1.3
//!     4.. => [port, 4, mask, properties],
//! }
//! ```
//!
//! Besides fields, a layout can contain a number (that many bytes of padding), `len` (the length of the
//! structure in 16 bits, which determines where the structure ends), `size` (the length of the later field
//! that is `as Sized`, in 16 bits) and `fill` (padding of an element to a multiple of 8 bytes). Layouts are
//! selected by the minor version: 3 is OpenFlow 1.3.

/// Declares a structure. See the module documentation.
macro_rules! structure {
    (
        $(#[$meta:meta])*
        pub struct $name:ident<$life:lifetime> in $part:ident { $($fields:tt)* }
        $($layouts:tt)*
    ) => {
        structure! { @emit [$life] [<$life>] [$(#[$meta])*] $name $part [$($fields)*] $($layouts)* }
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident in $part:ident { $($fields:tt)* }
        $($layouts:tt)*
    ) => {
        structure! { @emit ['wire] [] [$(#[$meta])*] $name $part [$($fields)*] $($layouts)* }
    };
    (
        @emit [$life:lifetime] [$($generics:tt)*] [$($meta:tt)*] $name:ident $part:ident
        [$( $(#[$field_meta:meta])* $field:ident : $type:ty $(= $default:expr)? ),* $(,)?]
        $( $versions:pat => [ $( $item:tt $(as $adaptor:ty)? ),* $(,)? ] ),+ $(,)?
    ) => {
        $($meta)*
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub struct $name $($generics)* {
            $(
                $(#[$field_meta])*
                #[doc = concat!("The `", stringify!($field), "` field.")]
                pub $field: $type,
            )*
        }

        impl $($generics)* Default for $name $($generics)* {
            #[inline]
            fn default() -> Self {
                Self { $( $field: $crate::schema::default_of!($($default)?), )* }
            }
        }

        impl<$life> $crate::schema::Value<$life> for $name $($generics)* {
            #[allow(unused_mut, unused_variables, unused_assignments, unreachable_patterns)]
            fn read(
                reader: &mut $crate::schema::Reader<$life>,
            ) -> Result<Self, $crate::error::Error> {
                let mut value = Self::default();
                let outer = reader.enter($crate::error::Part::$part);
                let start = reader.offset();
                // The bytes after the structure, if it has a length field.
                let mut after: Option<&$life [u8]> = None;
                match reader.version().minor() {
                    $( $versions => {
                        $( $crate::schema::read_item!(reader, value, start, after, $item $(as $adaptor)?); )*
                    } )+
                    _ => return Err(reader.not_in_version(stringify!($name))),
                }
                if let Some(after) = after {
                    reader.finish()?;
                    reader.go_on(after);
                }
                reader.enter(outer);
                Ok(value)
            }

            #[allow(unused_mut, unused_variables, unused_assignments, unreachable_patterns)]
            fn write(
                &self,
                writer: &mut $crate::schema::Writer<'_>,
            ) -> Result<(), $crate::encode::EncodeError> {
                let default = Self::default();
                // Each field that is written is reset to its default in `left`. If a field still differs from
                // its default at the end, the layout does not have it.
                let mut left = *self;
                let start = writer.position();
                let mut length_at = None;
                match writer.version().minor() {
                    $( $versions => {
                        $( $crate::schema::write_item!(
                            writer, self, left, default, length_at, $item $(as $adaptor)?
                        ); )*
                    } )+
                    _ => return Err(writer.unsupported(stringify!($name))),
                }
                $(
                    if left.$field != default.$field {
                        return Err(writer.unsupported(stringify!($field)));
                    }
                )*
                match length_at {
                    Some(at) => writer.patch(at, start),
                    None => Ok(()),
                }
            }

            #[allow(unused_variables, unreachable_patterns)]
            fn show(&self, version: $crate::version::Version, sink: &mut dyn $crate::schema::Sink) {
                sink.open_record();
                self.show_fields(version, sink);
                sink.close_record();
            }

            #[allow(unused_mut, unused_variables, unused_assignments, unreachable_patterns)]
            fn compose(
                source: &dyn $crate::schema::Source,
                writer: &mut $crate::schema::Writer<'_>,
            ) -> Result<(), $crate::encode::EncodeError> {
                let default = Self::default();
                let start = writer.position();
                let mut length_at = None;
                match writer.version().minor() {
                    $( $versions => {
                        $( $crate::schema::compose_item!(
                            writer, source, default, length_at, $item $(as $adaptor)?
                        ); )*
                    } )+
                    _ => return Err(writer.unsupported(stringify!($name))),
                }
                match length_at {
                    Some(at) => writer.patch(at, start),
                    None => Ok(()),
                }
            }
        }

        impl $($generics)* $name $($generics)* {
            /// Writes the fields that exist in the version to a sink.
            #[allow(unused_variables, unreachable_patterns)]
            pub(crate) fn show_fields(
                &self,
                version: $crate::version::Version,
                sink: &mut dyn $crate::schema::Sink,
            ) {
                match version.minor() {
                    $( $versions => { $( $crate::schema::show_item!(version, sink, self, $item $(as $adaptor)?); )* } )+
                    _ => {}
                }
            }
        }
    };
}

macro_rules! default_of {
    () => {
        Default::default()
    };
    ($default:expr) => {
        $default
    };
}

macro_rules! read_item {
    ($reader:ident, $value:ident, $start:ident, $after:ident, len) => {
        $after = Some($reader.read_length($start)?);
    };
    ($reader:ident, $value:ident, $start:ident, $after:ident, size) => {
        $reader.name("length").read_announcement()?;
    };
    ($reader:ident, $value:ident, $start:ident, $after:ident, fill) => {
        $reader.name("padding").fill()?;
    };
    ($reader:ident, $value:ident, $start:ident, $after:ident, $padding:literal) => {
        $reader.name("padding").skip($padding)?;
    };
    ($reader:ident, $value:ident, $start:ident, $after:ident, $field:ident) => {
        $value.$field = $crate::schema::Value::read($reader.name(stringify!($field)))?;
    };
    ($reader:ident, $value:ident, $start:ident, $after:ident, $field:ident as $adaptor:ty) => {
        $value.$field = <$adaptor as $crate::schema::Adaptor<'_, _>>::read($reader.name(stringify!($field)))?;
    };
}

macro_rules! write_item {
    ($writer:ident, $self:ident, $left:ident, $default:ident, $at:ident, len) => {
        $at = Some($writer.reserve());
    };
    ($writer:ident, $self:ident, $left:ident, $default:ident, $at:ident, size) => {
        $writer.announce();
    };
    ($writer:ident, $self:ident, $left:ident, $default:ident, $at:ident, fill) => {};
    ($writer:ident, $self:ident, $left:ident, $default:ident, $at:ident, $padding:literal) => {
        $writer.zeros($padding);
    };
    ($writer:ident, $self:ident, $left:ident, $default:ident, $at:ident, $field:ident) => {
        $crate::schema::Value::write(&$self.$field, $writer)?;
        $left.$field = $default.$field;
    };
    ($writer:ident, $self:ident, $left:ident, $default:ident, $at:ident, $field:ident as $adaptor:ty) => {
        <$adaptor as $crate::schema::Adaptor<'_, _>>::write(&$self.$field, stringify!($field), $writer)?;
        $left.$field = $default.$field;
    };
}

macro_rules! show_item {
    ($version:ident, $sink:ident, $self:ident, len) => {};
    ($version:ident, $sink:ident, $self:ident, size) => {};
    ($version:ident, $sink:ident, $self:ident, fill) => {};
    ($version:ident, $sink:ident, $self:ident, $padding:literal) => {};
    ($version:ident, $sink:ident, $self:ident, $field:ident) => {
        $sink.key($crate::schema::told_name(stringify!($field)));
        $crate::schema::Value::show(&$self.$field, $version, $sink);
    };
    ($version:ident, $sink:ident, $self:ident, $field:ident as $adaptor:ty) => {
        $sink.key($crate::schema::told_name(stringify!($field)));
        <$adaptor as $crate::schema::Adaptor<'_, _>>::show(&$self.$field, $version, $sink);
    };
}

macro_rules! compose_item {
    ($writer:ident, $source:ident, $default:ident, $at:ident, len) => {
        $at = Some($writer.reserve());
    };
    ($writer:ident, $source:ident, $default:ident, $at:ident, size) => {
        $writer.announce();
    };
    ($writer:ident, $source:ident, $default:ident, $at:ident, fill) => {};
    ($writer:ident, $source:ident, $default:ident, $at:ident, $padding:literal) => {
        $writer.zeros($padding);
    };
    ($writer:ident, $source:ident, $default:ident, $at:ident, $field:ident) => {
        match $source.field($crate::schema::told_name(stringify!($field))) {
            Some(told) => $crate::schema::compose_field(&$default.$field, told, stringify!($field), $writer)?,
            None => $crate::schema::Value::write(&$default.$field, $writer)?,
        }
    };
    ($writer:ident, $source:ident, $default:ident, $at:ident, $field:ident as $adaptor:ty) => {
        match $source.field($crate::schema::told_name(stringify!($field))) {
            Some(told) => $crate::schema::compose_adapted::<$adaptor, _>(
                &$default.$field,
                told,
                stringify!($field),
                $writer,
            )?,
            None => <$adaptor as $crate::schema::Adaptor<'_, _>>::write(
                &$default.$field,
                stringify!($field),
                $writer,
            )?,
        }
    };
}

use super::adaptor::Adaptor;
use super::source::Source;
use super::value::Value;
use super::writer::Writer;
use crate::encode::EncodeError;

/// Returns the name under which a field is shown. `match` is a keyword, so no Rust field can have that name.
pub(crate) const fn told_name(field: &'static str) -> &'static str {
    match field.as_bytes() {
        b"match_fields" => "match",
        _ => field,
    }
}

/// Composes a field. `_default` only determines its type. Errors about a scalar name the field.
pub(crate) fn compose_field<'a, T: Value<'a>>(
    _default: &T,
    told: &dyn Source,
    field: &'static str,
    writer: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    T::compose(told, writer).map_err(|error| match error {
        EncodeError::Value { field: "value" } => EncodeError::Value { field },
        other => other,
    })
}

/// Composes a field with an adaptor. `_default` only determines its type.
pub(crate) fn compose_adapted<'a, A: Adaptor<'a, T>, T>(
    _default: &T,
    told: &dyn Source,
    field: &'static str,
    writer: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    A::compose(told, field, writer)
}

pub(crate) use {compose_item, default_of, read_item, show_item, structure, write_item};
