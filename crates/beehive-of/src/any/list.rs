//! A list of elements that is either a slice to encode or the undecoded part of a message.

use core::fmt;
use core::iter::FusedIterator;

use bytes::BytesMut;

use crate::encode::EncodeError;
use crate::error::{Error, ErrorKind, Part};
use crate::version::Version;

/// An element of a [`List`]: an action, a port, a flow entry. Implemented here only.
pub trait Element<'a>: sealed::Sealed + Copy + PartialEq + fmt::Debug + 'a {
    /// The first element of `bytes`, which are not empty, and its length; `offset` is theirs in the message.
    ///
    /// # Errors
    ///
    /// The element is malformed.
    fn read(version: Version, bytes: &'a [u8], offset: usize) -> Result<(Self, usize), Error>;

    /// Appends the element.
    ///
    /// # Errors
    ///
    /// The version cannot express the element.
    fn write(&self, version: Version, out: &mut BytesMut) -> Result<(), EncodeError>;
}

mod sealed {
    /// Keeps other crates from implementing [`Element`](super::Element): a list trusts the lengths that it reports.
    pub trait Sealed {}

    impl Sealed for crate::any::Action {}
    impl Sealed for crate::any::Port {}
    impl Sealed for crate::any::FlowEntry<'_> {}
}

/// Elements of a message: made from a slice to encode them, or found in a decoded message.
pub struct List<'a, T> {
    source: Source<'a, T>,
}

enum Source<'a, T> {
    Slice(&'a [T]),
    Wire { version: Version, bytes: &'a [u8], offset: usize },
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

impl<'a, T: Element<'a>> List<'a, T> {
    /// The list without elements.
    pub const EMPTY: Self = Self { source: Source::Slice(&[]) };

    /// The elements of a slice.
    #[inline]
    pub const fn new(elements: &'a [T]) -> Self {
        Self { source: Source::Slice(elements) }
    }

    #[inline]
    pub(crate) const fn wire(version: Version, bytes: &'a [u8], offset: usize) -> Self {
        Self { source: Source::Wire { version, bytes, offset } }
    }

    /// The elements in order; the first malformed one ends them.
    #[inline]
    pub const fn iter(&self) -> Elements<'a, T> {
        Elements { source: self.source }
    }

    /// Whether there is no element.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        match self.source {
            Source::Slice(elements) => elements.is_empty(),
            Source::Wire { bytes, .. } => bytes.is_empty(),
        }
    }

    /// Reads every element once.
    ///
    /// # Errors
    ///
    /// The first malformed element.
    pub fn check(&self) -> Result<(), Error> {
        self.iter().try_for_each(|element| element.map(drop))
    }

    #[inline]
    pub(crate) fn write(&self, version: Version, out: &mut BytesMut) -> Result<(), EncodeError> {
        match self.source {
            Source::Slice(elements) => elements.iter().try_for_each(|element| element.write(version, out)),
            Source::Wire { version: read, bytes, .. } if read == version => {
                self.check()?;
                out.extend_from_slice(bytes);
                Ok(())
            }
            Source::Wire { .. } => self.iter().try_for_each(|element| element?.write(version, out)),
        }
    }
}

impl<'a, T: Element<'a>> Default for List<'a, T> {
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

impl<'a, T: Element<'a>> IntoIterator for List<'a, T> {
    type Item = Result<T, Error>;
    type IntoIter = Elements<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T: Element<'a>> PartialEq for List<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'a, T: Element<'a>> fmt::Debug for List<'a, T> {
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

impl<'a, T: Element<'a>> Iterator for Elements<'a, T> {
    type Item = Result<T, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            Source::Slice(elements) => {
                let (first, rest) = elements.split_first()?;
                *elements = rest;
                Some(Ok(*first))
            }
            Source::Wire { version, bytes, offset } => {
                if bytes.is_empty() {
                    return None;
                }
                let read = T::read(*version, bytes, *offset).and_then(|(element, length)| {
                    // An element that takes no bytes would be read for ever.
                    match bytes.get(length..) {
                        Some(rest) if length > 0 => Ok((element, rest, length)),
                        _ => Err(Error::new(
                            ErrorKind::LengthTooSmall,
                            Part::Message,
                            *offset,
                            "element length",
                        )),
                    }
                });
                match read {
                    Ok((element, rest, length)) => {
                        *bytes = rest;
                        *offset += length;
                        Some(Ok(element))
                    }
                    Err(error) => {
                        *bytes = &[];
                        Some(Err(error))
                    }
                }
            }
        }
    }
}

impl<'a, T: Element<'a>> FusedIterator for Elements<'a, T> {}
