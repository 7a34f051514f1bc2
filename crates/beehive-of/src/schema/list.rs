//! A list of elements that is either a slice to encode or the undecoded part of a message.

use core::fmt;
use core::iter::FusedIterator;

use super::reader::Reader;
use super::sink::Sink;
use super::source::Source as Told;
use super::value::Value;
use super::writer::Writer;
use crate::encode::EncodeError;
use crate::error::{Error, ErrorKind};
use crate::version::Version;

/// Elements of a message: made from a slice to encode them, or found in a decoded message.
pub struct List<'a, T> {
    source: Source<'a, T>,
}

enum Source<'a, T> {
    Slice(&'a [T]),
    Wire(Reader<'a>),
}

impl<T> Clone for List<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for List<'_, T> {}

impl<T> Clone for Source<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Source<'_, T> {}

impl<'a, T: Value<'a>> List<'a, T> {
    /// The list without elements.
    pub const EMPTY: Self = Self { source: Source::Slice(&[]) };

    /// The elements of a slice.
    #[inline]
    pub const fn new(elements: &'a [T]) -> Self {
        Self { source: Source::Slice(elements) }
    }

    /// The elements that all of what is left to read holds.
    #[inline]
    pub(crate) const fn wire(reader: Reader<'a>) -> Self {
        Self { source: Source::Wire(reader) }
    }

    /// The elements that `bytes` of a version hold.
    #[cfg(feature = "text")]
    pub(crate) const fn of_bytes(version: Version, bytes: &'a [u8]) -> Self {
        Self::wire(Reader::new(version, bytes, 0, crate::error::Part::Message))
    }

    /// The same bytes as elements of another type; an empty list when the elements are those of a slice.
    #[inline]
    pub(crate) const fn reinterpret<U: Value<'a>>(&self) -> List<'a, U> {
        match self.source {
            Source::Wire(reader) => List::wire(reader),
            Source::Slice(_) => List::EMPTY,
        }
    }

    /// The elements in order; the first malformed one ends them.
    #[inline]
    pub const fn iter(&self) -> Elements<'a, T> {
        Elements { source: self.source }
    }

    /// What is read of a message; `None` for the elements of a slice.
    #[inline]
    pub(crate) const fn reader(&self) -> Option<&Reader<'a>> {
        match &self.source {
            Source::Wire(reader) => Some(reader),
            Source::Slice(_) => None,
        }
    }

    /// Whether there is no element.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        match self.source {
            Source::Slice(elements) => elements.is_empty(),
            Source::Wire(reader) => reader.is_empty(),
        }
    }

    /// Reads every element once; not the lists inside of them.
    ///
    /// # Errors
    ///
    /// The first malformed element.
    pub fn check(&self) -> Result<(), Error> {
        self.iter().try_for_each(|element| element.map(drop))
    }

    /// Appends the elements; those of a message of the same version as they are there.
    #[inline]
    pub(crate) fn append(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self.source {
            Source::Slice(elements) => elements.iter().try_for_each(|element| element.write(writer)),
            Source::Wire(reader) if reader.version() == writer.version() => {
                self.check()?;
                writer.put(reader.rest());
                Ok(())
            }
            Source::Wire(_) => self.iter().try_for_each(|element| element?.write(writer)),
        }
    }
}

impl<'a, T: Value<'a>> Value<'a> for List<'a, T> {
    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let list = Self::wire(*reader);
        reader.take_rest();
        Ok(list)
    }

    #[inline]
    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.append(writer)
    }

    fn show(&self, version: Version, sink: &mut dyn Sink) {
        sink.open_list();
        for element in self.iter() {
            match element {
                Ok(element) => element.show(version, sink),
                Err(error) => sink.error(error),
            }
        }
        sink.close_list();
    }

    fn compose(source: &dyn Told, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let mut index = 0;
        while let Some(item) = source.item(index) {
            T::compose(item, writer)?;
            index += 1;
        }
        Ok(())
    }
}

impl<'a, T: Value<'a>> Default for List<'a, T> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<'a, T> From<&'a [T]> for List<'a, T> {
    fn from(elements: &'a [T]) -> Self {
        Self { source: Source::Slice(elements) }
    }
}

impl<'a, T, const N: usize> From<&'a [T; N]> for List<'a, T> {
    fn from(elements: &'a [T; N]) -> Self {
        Self { source: Source::Slice(elements) }
    }
}

impl<'a, T: Value<'a>> IntoIterator for List<'a, T> {
    type Item = Result<T, Error>;
    type IntoIter = Elements<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T: Value<'a>> PartialEq for List<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'a, T: Value<'a>> fmt::Debug for List<'a, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = formatter.debug_list();
        for element in self.iter() {
            match element {
                Ok(element) => list.entry(&element),
                Err(error) => list.entry(&error),
            };
        }
        list.finish()
    }
}

/// The elements of a [`List`], in order; fused.
pub struct Elements<'a, T> {
    source: Source<'a, T>,
}

impl<'a, T: Value<'a>> Elements<'a, T> {
    /// Where the next element starts in its message, in bytes; 0 for those of a slice.
    #[inline]
    pub const fn offset(&self) -> usize {
        match &self.source {
            Source::Slice(_) => 0,
            Source::Wire(reader) => reader.offset(),
        }
    }
}

impl<'a, T: Value<'a>> Iterator for Elements<'a, T> {
    type Item = Result<T, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            Source::Slice(elements) => {
                let (first, rest) = elements.split_first()?;
                *elements = rest;
                Some(Ok(*first))
            }
            Source::Wire(reader) => {
                if reader.is_empty() {
                    return None;
                }
                let start = reader.offset();
                let read = match T::read(reader) {
                    // An element that takes no bytes would be read for ever.
                    Ok(_) if reader.offset() == start => Err(reader.error(ErrorKind::LengthTooSmall)),
                    read => read,
                };
                if read.is_err() {
                    reader.take_rest();
                }
                Some(read)
            }
        }
    }
}

impl<'a, T: Value<'a>> FusedIterator for Elements<'a, T> {}
