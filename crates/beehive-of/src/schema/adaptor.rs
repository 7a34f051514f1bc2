//! Adaptors for values that some versions encode in a different format.

use super::list::List;
use super::reader::Reader;
use super::sink::Sink;
use super::source::Source;
use super::value::{Scalar, Value};
use super::writer::Writer;
use crate::encode::EncodeError;
use crate::error::Error;
use crate::port_number::PortNo;
use crate::version::Version;

/// An alternative encoding of a value of type `T`.
pub(crate) trait Adaptor<'a, T> {
    /// Reads the value.
    fn read(reader: &mut Reader<'a>) -> Result<T, Error>;

    /// Appends the value. `field` is its name, for errors.
    fn write(value: &T, field: &'static str, writer: &mut Writer<'_>) -> Result<(), EncodeError>;

    /// Writes the value to a sink.
    fn show(value: &T, version: Version, sink: &mut dyn Sink);

    /// Appends the value that a source contains.
    fn compose(source: &dyn Source, field: &'static str, writer: &mut Writer<'_>) -> Result<(), EncodeError>;
}

fn told<T: Scalar>(source: &dyn Source, field: &'static str) -> Result<T, EncodeError> {
    T::parse(source).ok_or(EncodeError::Value { field })
}

/// A port number encoded in 16 bits, as in 1.0.
pub(crate) struct Port16;

impl Adaptor<'_, PortNo> for Port16 {
    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<PortNo, Error> {
        reader.u16().map(PortNo::from_v10)
    }

    #[inline]
    fn write(value: &PortNo, field: &'static str, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let number = value.to_v10().ok_or_else(|| writer.unsupported(field))?;
        writer.put(&number.to_be_bytes());
        Ok(())
    }

    fn show(value: &PortNo, version: Version, sink: &mut dyn Sink) {
        value.show(version, sink);
    }

    fn compose(source: &dyn Source, field: &'static str, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        Self::write(&told(source, field)?, field, writer)
    }
}

/// A number encoded in 8 bits.
pub(crate) struct Byte;

impl<T> Adaptor<'_, T> for Byte
where
    T: Scalar + for<'v> Value<'v> + From<u8> + TryInto<u8>,
{
    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<T, Error> {
        reader.array().map(|[byte]| T::from(byte))
    }

    #[inline]
    fn write(value: &T, field: &'static str, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let byte = (*value).try_into().map_err(|_| writer.unsupported(field))?;
        writer.put(&[byte]);
        Ok(())
    }

    fn show(value: &T, version: Version, sink: &mut dyn Sink) {
        value.show(version, sink);
    }

    fn compose(source: &dyn Source, field: &'static str, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        <Self as Adaptor<'_, T>>::write(&told::<T>(source, field)?, field, writer)
    }
}

/// A value whose length in bytes is in an earlier field.
pub(crate) struct Sized;

impl<'a, T: Value<'a>> Adaptor<'a, T> for Sized {
    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<T, Error> {
        let mut inner = reader.announced()?;
        let value = T::read(&mut inner)?;
        inner.finish()?;
        Ok(value)
    }

    #[inline]
    fn write(value: &T, _field: &'static str, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.announced(|writer| value.write(writer))
    }

    fn show(value: &T, version: Version, sink: &mut dyn Sink) {
        value.show(version, sink);
    }

    fn compose(
        source: &dyn Source,
        _field: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        writer.announced(|writer| T::compose(source, writer))
    }
}

/// A value whose length in bytes is in an earlier field, padded to a multiple of 8 bytes.
pub(crate) struct Padded;

impl<'a, T: Value<'a>> Adaptor<'a, T> for Padded {
    fn read(reader: &mut Reader<'a>) -> Result<T, Error> {
        let start = reader.offset();
        let value = <Sized as Adaptor<'a, T>>::read(reader)?;
        let length = reader.offset() - start;
        reader.name("padding").skip(crate::field::padded(length) - length)?;
        Ok(value)
    }

    fn write(value: &T, field: &'static str, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let start = writer.position();
        <Sized as Adaptor<'a, T>>::write(value, field, writer)?;
        writer.pad_to_8(start);
        Ok(())
    }

    fn show(value: &T, version: Version, sink: &mut dyn Sink) {
        value.show(version, sink);
    }

    fn compose(source: &dyn Source, field: &'static str, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let start = writer.position();
        <Sized as Adaptor<'a, T>>::compose(source, field, writer)?;
        writer.pad_to_8(start);
        Ok(())
    }
}

/// A list of 16-bit numbers whose count is in an earlier field.
pub(crate) struct Words;

impl<'a> Adaptor<'a, List<'a, u16>> for Words {
    fn read(reader: &mut Reader<'a>) -> Result<List<'a, u16>, Error> {
        reader.announce(2 * reader.announcement());
        Ok(List::wire(reader.announced()?))
    }

    fn write(
        value: &List<'a, u16>,
        _field: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        writer.announced_words(|writer| value.write(writer))
    }

    fn show(value: &List<'a, u16>, version: Version, sink: &mut dyn Sink) {
        value.show(version, sink);
    }

    fn compose(
        source: &dyn Source,
        _field: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        writer.announced_words(|writer| List::<u16>::compose(source, writer))
    }
}

/// Actions nested in an action. Their depth is limited, because code that traverses them is recursive.
pub(crate) struct Nested;

impl<'a, T: Value<'a>> Adaptor<'a, T> for Nested {
    fn read(reader: &mut Reader<'a>) -> Result<T, Error> {
        reader.deepen()?;
        let value = T::read(reader)?;
        reader.surface();
        Ok(value)
    }

    fn write(value: &T, _field: &'static str, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        value.write(writer)
    }

    fn show(value: &T, version: Version, sink: &mut dyn Sink) {
        value.show(version, sink);
    }

    fn compose(
        source: &dyn Source,
        _field: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        T::compose(source, writer)
    }
}

/// A number that is shown in hexadecimal.
pub(crate) struct Hex;

impl Adaptor<'_, u64> for Hex {
    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<u64, Error> {
        Value::read(reader)
    }

    #[inline]
    fn write(value: &u64, _field: &'static str, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        value.write(writer)
    }

    fn show(value: &u64, _version: Version, sink: &mut dyn Sink) {
        sink.text(format_args!("{value:#x}"));
    }

    fn compose(source: &dyn Source, field: &'static str, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        told::<u64>(source, field)?.write(writer)
    }
}
