//! Enumerations and bit sets on the wire, with a name for each value or bit.

use core::fmt;

use super::sink::Sink;
use super::source::Source;

/// Displays a name in lower case.
struct Lower<'n>(&'n str);

impl fmt::Display for Lower<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        self.0.chars().try_for_each(|letter| formatter.write_char(letter.to_ascii_lowercase()))
    }
}

/// Writes the name of a number to a sink, or the number if it has no name.
pub(crate) fn show_named(value: u64, names: &[(u64, &str)], sink: &mut dyn Sink) {
    match names.iter().find(|(named, _)| *named == value) {
        Some((_, name)) => sink.text(format_args!("{}", Lower(name))),
        None => sink.number(value),
    }
}

/// Parses a name or a number.
pub(crate) fn parse_named(source: &dyn Source, names: &[(u64, &str)]) -> Option<u64> {
    let by_name = |text: &str| names.iter().find(|(_, name)| name.eq_ignore_ascii_case(text));
    match source.text().and_then(by_name) {
        Some((value, _)) => Some(*value),
        None => source.number(),
    }
}

/// Writes a bit set to a sink as a list of names, and the bits without a name in hexadecimal.
pub(crate) fn show_bits(value: u64, names: &[(u64, &str)], sink: &mut dyn Sink) {
    let mut left = value;
    sink.open_list();
    for (bits, name) in names {
        if left & bits == *bits && *bits != 0 {
            sink.text(format_args!("{}", Lower(name)));
            left &= !bits;
        }
    }

    if left != 0 {
        sink.text(format_args!("{left:#x}"));
    }

    sink.close_list();
}

/// Parses a list of names and numbers to a bit set.
pub(crate) fn parse_bits(source: &dyn Source, names: &[(u64, &str)]) -> Option<u64> {
    // A single bit need not be in a list.
    if source.text().is_some() || source.number().is_some() {
        return parse_named(source, names);
    }

    let mut bits = 0;
    let mut index = 0;
    while let Some(item) = source.item(index) {
        bits |= parse_named(item, names)?;
        index += 1;
    }

    Some(bits)
}

/// Declares a number whose values have names. Values without a name are preserved.
macro_rules! named {
    (
        $(#[$meta:meta])*
        pub struct $name:ident($type:ident) { $( $(#[$value_meta:meta])* $value:ident = $number:expr ),* $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub $type);

        #[allow(missing_docs)]
        impl $name {
            $( $(#[$value_meta])* pub const $value: Self = Self($number); )*

            const NAMES: &[(u64, &str)] = &[ $( ($number as u64, stringify!($value)) ),* ];
        }

        named! { @value $name $type show_named parse_named }
    };
    (@value $name:ident $type:ident $show:ident $parse:ident) => {
        $crate::schema::scalar!(
            $name,
            size_of::<$type>(),
            |bytes| $name(<$type>::from_be_bytes(bytes)),
            |value| value.0.to_be_bytes(),
            |value, sink| $crate::schema::$show(value.0.into(), $name::NAMES, sink)
        );

        impl $crate::schema::Scalar for $name {
            fn parse(source: &dyn $crate::schema::Source) -> Option<Self> {
                $crate::schema::$parse(source, Self::NAMES).and_then(|number| number.try_into().ok()).map(Self)
            }
        }

        $crate::schema::narrowing!($name $type);
    };
}

/// Implements conversions to and from narrower integers, for versions that encode the number in fewer bits.
macro_rules! narrowing {
    ($name:ident u8) => {};
    ($name:ident u64) => {};
    ($name:ident u16) => {
        $crate::schema::narrowing!(@one $name u8);
    };
    ($name:ident u32) => {
        $crate::schema::narrowing!(@one $name u8);
        $crate::schema::narrowing!(@one $name u16);
    };
    (@one $name:ident $narrow:ty) => {
        impl From<$narrow> for $name {
            fn from(narrow: $narrow) -> Self {
                Self(narrow.into())
            }
        }

        impl TryFrom<$name> for $narrow {
            type Error = core::num::TryFromIntError;

            fn try_from(wide: $name) -> Result<Self, Self::Error> {
                wide.0.try_into()
            }
        }
    };
}

/// Declares a bit set whose bits have names. Bits without a name are preserved.
macro_rules! bits {
    (
        $(#[$meta:meta])*
        pub struct $name:ident($type:ident) { $( $(#[$value_meta:meta])* $value:ident = $number:expr ),* $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub struct $name(pub $type);

        #[allow(missing_docs)]
        impl $name {
            $( $(#[$value_meta])* pub const $value: Self = Self($number); )*

            const NAMES: &[(u64, &str)] = &[ $( ($number as u64, stringify!($value)) ),* ];

            /// Returns the union of both sets.
            #[must_use]
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// Returns whether all bits of `other` are set.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }

        $crate::schema::named! { @value $name $type show_bits parse_bits }
    };
}

pub(crate) use {bits, named, narrowing};
