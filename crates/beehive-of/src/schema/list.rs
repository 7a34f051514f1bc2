//! A list of elements: a slice to encode, or an undecoded part of a message.

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

/// A list of elements of a message. It borrows a slice to encode, or the bytes of a decoded message.
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
    /// The empty list.
    pub const EMPTY: Self = Self { source: Source::Slice(&[]) };

    /// Creates a list of the elements of a slice.
    #[inline]
    pub const fn new(elements: &'a [T]) -> Self {
        Self { source: Source::Slice(elements) }
    }

    /// Creates a list of the elements in the rest of `reader`.
    #[inline]
    pub(crate) const fn wire(reader: Reader<'a>) -> Self {
        Self { source: Source::Wire(reader) }
    }

    /// Creates a list of the elements in `bytes`, which are encoded in `version`.
    #[cfg(feature = "text")]
    pub(crate) const fn of_bytes(version: Version, bytes: &'a [u8]) -> Self {
        Self::wire(Reader::new(version, bytes, 0, crate::error::Part::Message))
    }

    /// Returns a list of elements of another type in the same bytes, or an empty list if this list is a
    /// slice.
    #[inline]
    pub(crate) const fn reinterpret<U: Value<'a>>(&self) -> List<'a, U> {
        match self.source {
            Source::Wire(reader) => List::wire(reader),
            Source::Slice(_) => List::EMPTY,
        }
    }

    /// Iterates over the elements in order. The iterator ends after the first malformed element.
    #[inline]
    pub const fn iter(&self) -> Elements<'a, T> {
        Elements { source: self.source }
    }

    /// Returns the reader of the encoded elements; `None` if the list is a slice.
    #[inline]
    pub(crate) const fn reader(&self) -> Option<&Reader<'a>> {
        match &self.source {
            Source::Wire(reader) => Some(reader),
            Source::Slice(_) => None,
        }
    }

    /// Returns whether the list has no elements.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        match self.source {
            Source::Slice(elements) => elements.is_empty(),
            Source::Wire(reader) => reader.is_empty(),
        }
    }

    /// Decodes every element to check it, but not the lists nested in the elements.
    ///
    /// # Errors
    ///
    /// Returns the error of the first malformed element.
    pub fn check(&self) -> Result<(), Error> {
        self.iter().try_for_each(|element| element.map(drop))
    }

    /// Appends the elements. If they come from a message of the same version, their bytes are copied
    /// unchanged.
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

/// A fused iterator over the elements of a [`List`].
pub struct Elements<'a, T> {
    source: Source<'a, T>,
}

impl<T> fmt::Debug for Elements<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Elements").finish_non_exhaustive()
    }
}

impl<'a, T: Value<'a>> Elements<'a, T> {
    /// Returns the offset of the next element in its message, in bytes; 0 if the list is a slice.
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
                    // An element that consumes no bytes would cause an infinite loop.
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
