//! The operations of every part of a structure: read, write, show and compose.

use core::fmt;

use super::reader::Reader;
use super::sink::Sink;
use super::source::Source;
use super::writer::Writer;
use crate::address::MacAddress;
use crate::encode::EncodeError;
use crate::error::Error;
use crate::port_number::PortNo;
use crate::version::Version;

/// A part of a message: a number, an address, a structure or a list. Only this crate can implement this
/// trait, because lists rely on a correct implementation.
pub trait Value<'a>: Copy + PartialEq + fmt::Debug + 'a {
    /// Reads the value.
    ///
    /// # Errors
    ///
    /// Fails if the value is malformed.
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error>;

    /// Appends the value.
    ///
    /// # Errors
    ///
    /// Fails if the version cannot express the value.
    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError>;

    /// Writes the value to a sink, using that version's names.
    fn show(&self, version: Version, sink: &mut dyn Sink);

    /// Appends the value that a source contains.
    ///
    /// # Errors
    ///
    /// Fails if the source does not contain such a value or the version cannot express it.
    fn compose(source: &dyn Source, writer: &mut Writer<'_>) -> Result<(), EncodeError>;
}

/// A value without parts.
pub(crate) trait Scalar: Sized {
    /// Parses the value.
    fn parse(source: &dyn Source) -> Option<Self>;
}

/// Appends a scalar parsed from a source.
pub(crate) fn compose_scalar<'a, T: Scalar + Value<'a>>(
    source: &dyn Source,
    writer: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    T::parse(source).ok_or(EncodeError::Value { field: "value" })?.write(writer)
}

/// Implements [`Value`] for a scalar, given its conversion to and from bytes and how to show it.
macro_rules! scalar {
    ($type:ty, $length:expr, $from:expr, $to:expr, $show:expr) => {
        impl<'a> $crate::schema::Value<'a> for $type {
            #[inline]
            fn read(reader: &mut $crate::schema::Reader<'a>) -> Result<Self, $crate::error::Error> {
                reader.array::<{ $length }>().map($from)
            }

            #[inline]
            fn write(
                &self,
                writer: &mut $crate::schema::Writer<'_>,
            ) -> Result<(), $crate::encode::EncodeError> {
                let to: fn(&$type) -> [u8; $length] = $to;
                writer.put(&to(self));
                Ok(())
            }

            fn show(&self, _version: $crate::version::Version, sink: &mut dyn $crate::schema::Sink) {
                let show: fn(&$type, &mut dyn $crate::schema::Sink) = $show;
                show(self, sink);
            }

            fn compose(
                source: &dyn $crate::schema::Source,
                writer: &mut $crate::schema::Writer<'_>,
            ) -> Result<(), $crate::encode::EncodeError> {
                $crate::schema::compose_scalar::<$type>(source, writer)
            }
        }
    };
}

macro_rules! number {
    ($type:ty, $length:literal) => {
        scalar!($type, $length, <$type>::from_be_bytes, |value| value.to_be_bytes(), |value, sink| sink
            .number(u64::from(*value)));

        impl Scalar for $type {
            fn parse(source: &dyn Source) -> Option<Self> {
                source.number().and_then(|number| number.try_into().ok())
            }
        }
    };
}

number!(u8, 1);
number!(u16, 2);
number!(u32, 4);
number!(u64, 8);

scalar!(MacAddress, 6, MacAddress, |value| value.0, |value, sink| sink.text(format_args!("{value}")));

impl Scalar for MacAddress {
    fn parse(source: &dyn Source) -> Option<Self> {
        source.text()?.parse().ok()
    }
}

scalar!(core::net::Ipv4Addr, 4, core::net::Ipv4Addr::from_octets, |value| value.octets(), |value, sink| sink
    .text(format_args!("{value}")));

impl Scalar for core::net::Ipv4Addr {
    fn parse(source: &dyn Source) -> Option<Self> {
        source.text()?.parse().ok()
    }
}

scalar!(core::net::Ipv6Addr, 16, core::net::Ipv6Addr::from_octets, |value| value.octets(), |value, sink| {
    sink.text(format_args!("{value}"))
});

impl Scalar for core::net::Ipv6Addr {
    fn parse(source: &dyn Source) -> Option<Self> {
        source.text()?.parse().ok()
    }
}

scalar!(
    PortNo,
    4,
    |bytes| PortNo(u32::from_be_bytes(bytes)),
    |value| value.0.to_be_bytes(),
    |value, sink| match value.name() {
        Some(name) => sink.text(format_args!("{name}")),
        None => sink.number(value.0.into()),
    }
);

impl Scalar for PortNo {
    fn parse(source: &dyn Source) -> Option<Self> {
        let number = || source.number().and_then(|number| number.try_into().ok()).map(Self);
        source.text().and_then(Self::from_name).or_else(number)
    }
}

/// All bytes up to the end of the container.
impl<'a> Value<'a> for &'a [u8] {
    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        Ok(reader.take_rest())
    }

    #[inline]
    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.put(self);
        Ok(())
    }

    fn show(&self, _version: Version, sink: &mut dyn Sink) {
        sink.bytes(self);
    }

    fn compose(source: &dyn Source, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let digits = source.text().ok_or(EncodeError::Value { field: "bytes" })?;
        put_digits(digits, writer)
    }
}

/// Decodes hexadecimal digits and appends the bytes.
pub(crate) fn put_digits(digits: &str, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(EncodeError::Value { field: "bytes" });
    if !rest.is_empty() {
        return Err(EncodeError::Value { field: "bytes" });
    }

    for [high, low] in pairs {
        let byte = digit(*high)? << 4 | digit(*low)?;
        writer.put(&[byte as u8]);
    }

    Ok(())
}

/// A fixed number of bytes, shown as text with escapes.
impl<'a, const N: usize> Value<'a> for Fixed<N> {
    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        reader.array().map(Self)
    }

    #[inline]
    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.put(&self.0);
        Ok(())
    }

    fn show(&self, _version: Version, sink: &mut dyn Sink) {
        // Trailing zeros are padding; zeros before other bytes are part of the text.
        let end = self.0.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let used = self.0.get(..end).unwrap_or(&[]);
        sink.text(format_args!("{}", used.escape_ascii()));
    }

    fn compose(source: &dyn Source, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let text = source.text().ok_or(EncodeError::Value { field: "text" })?;
        let start = writer.position();
        put_unescaped(text, writer)?;
        let length = writer.position() - start;
        let missing = N.checked_sub(length).ok_or(EncodeError::Value { field: "text" })?;
        writer.zeros(missing);
        Ok(())
    }
}

/// Appends the bytes of a text, reversing `escape_ascii`.
fn put_unescaped(text: &str, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
    let wrong = EncodeError::Value { field: "text" };
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'\\' => match bytes.next().ok_or(wrong)? {
                b't' => b'\t',
                b'r' => b'\r',
                b'n' => b'\n',
                b'x' => {
                    let mut digit =
                        || bytes.next().and_then(|digit| char::from(digit).to_digit(16)).ok_or(wrong);
                    (digit()? << 4 | digit()?) as u8
                }
                other => other,
            },
            byte => byte,
        };
        writer.put(&[byte]);
    }

    Ok(())
}

/// Text of at most `N` bytes, padded with zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fixed<const N: usize>(pub [u8; N]);

impl<const N: usize> Default for Fixed<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Fixed<N> {
    /// Creates the text from the first `N` - 1 bytes of `text`.
    pub fn new(text: &str) -> Self {
        let mut bytes = [0; N];
        for (to, from) in bytes.iter_mut().take(N.saturating_sub(1)).zip(text.bytes()) {
            *to = from;
        }
        Self(bytes)
    }

    /// Returns the bytes before the first zero, which are not necessarily UTF-8.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or(&[])
    }
}

impl<const N: usize> fmt::Debug for Fixed<N> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\"", self.as_bytes().escape_ascii())
    }
}

pub(crate) use scalar;
