//! A bounds-checked reader of the bytes of a message.

use crate::error::{Error, ErrorKind, Part};
use crate::limits::ACTION_DEPTH_MAX;
use crate::version::Version;

/// The unread part of a message, with its offset for errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Offset of `rest` in the message.
    offset: usize,
    version: Version,
    part: Part,
    field: &'static str,
    /// Length or count of a later field, as an earlier field announced it.
    announced: usize,
    /// Whether padding must be zero.
    strict: bool,
    /// Number of actions that enclose this position.
    depth: u8,
}

impl<'a> Reader<'a> {
    /// Creates a reader of `bytes`, which start at `offset` in a message of `version`.
    pub(crate) const fn new(version: Version, bytes: &'a [u8], offset: usize, part: Part) -> Self {
        Self { rest: bytes, offset, version, part, field: "message", announced: 0, strict: false, depth: 0 }
    }

    /// Makes the reader refuse padding that is not zero.
    pub(crate) const fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Returns the message's version.
    #[inline]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Returns the unread bytes.
    #[inline]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns the offset of the next read in the message, in bytes.
    #[inline]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Returns whether all bytes have been read.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns whether padding must be zero.
    pub(crate) const fn is_strict(&self) -> bool {
        self.strict
    }

    /// Sets the part of the message to report in errors. Returns the previous one.
    #[inline]
    pub(crate) fn enter(&mut self, part: Part) -> Part {
        core::mem::replace(&mut self.part, part)
    }

    /// Sets the name of the next field to report in errors.
    #[inline]
    pub(crate) fn name(&mut self, field: &'static str) -> &mut Self {
        self.field = field;
        self
    }

    /// Creates an error in the current field, at the next byte.
    #[cold]
    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        Error::new(kind, self.part, self.offset, self.field)
    }

    /// Creates an error in the current field, at `offset`.
    #[cold]
    pub(crate) fn error_at(&self, kind: ErrorKind, offset: usize) -> Error {
        Error::new(kind, self.part, offset, self.field)
    }

    #[cold]
    fn truncated(&self) -> Error {
        self.error_at(ErrorKind::Truncated, self.offset + self.rest.len())
    }

    /// Reads the next `N` bytes.
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        match self.rest.split_first_chunk::<N>() {
            Some((bytes, rest)) => {
                self.rest = rest;
                self.offset += N;
                Ok(*bytes)
            }
            None => Err(self.truncated()),
        }
    }

    /// Reads the next `length` bytes.
    #[inline]
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        match self.rest.split_at_checked(length) {
            Some((bytes, rest)) => {
                self.rest = rest;
                self.offset += length;
                Ok(bytes)
            }
            None => Err(self.truncated()),
        }
    }

    /// Reads all remaining bytes.
    #[inline]
    pub(crate) fn take_rest(&mut self) -> &'a [u8] {
        let rest = self.rest;
        self.offset += rest.len();
        self.rest = &[];
        rest
    }

    /// Skips padding. A strict reader fails if it is not zero.
    #[inline]
    pub(crate) fn skip(&mut self, length: usize) -> Result<(), Error> {
        let start = self.offset;
        let padding = self.take(length)?;
        if self.strict && padding.iter().any(|byte| *byte != 0) {
            return Err(Error::new(ErrorKind::Padding, self.part, start, "padding"));
        }
        Ok(())
    }

    /// Skips bytes without checking that they are zero.
    #[inline]
    pub(crate) fn skip_any(&mut self, length: usize) -> Result<(), Error> {
        self.take(length).map(drop)
    }

    /// Skips the padding at the end of an element, which must be less than 8 bytes.
    #[inline]
    pub(crate) fn fill(&mut self) -> Result<(), Error> {
        if self.rest.len() < 8 { self.skip(self.rest.len()) } else { self.finish() }
    }

    /// Reads the next 16 bits.
    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads the next 32 bits.
    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_be_bytes)
    }

    /// Splits off a reader of a structure and skips the structure. `length` counts from `before` bytes before
    /// the current position; `at` is the offset of the length field, for errors.
    #[inline]
    pub(crate) fn inner(
        &mut self,
        length: usize,
        before: usize,
        at: usize,
        field: &'static str,
    ) -> Result<Self, Error> {
        let Some(left) = length.checked_sub(before) else {
            return Err(Error::new(ErrorKind::LengthTooSmall, self.part, at, field));
        };
        let mut inner = *self;
        match self.rest.split_at_checked(left) {
            Some((bytes, rest)) => {
                inner.rest = bytes;
                self.rest = rest;
                self.offset += left;
                Ok(inner)
            }
            None => Err(Error::new(ErrorKind::LengthTooLarge, self.part, at, field)),
        }
    }

    /// Reads the length of the structure that started at `start`, and limits the reader to the structure.
    /// Returns the bytes after the structure, for [`go_on`](Self::go_on).
    #[inline]
    pub(crate) fn read_length(&mut self, start: usize) -> Result<&'a [u8], Error> {
        let at = self.offset;
        let length = usize::from(self.u16()?);
        let inner = self.inner(length, self.offset - start, at, "length")?;
        Ok(core::mem::replace(self, inner).rest)
    }

    /// Continues with the bytes after a structure that has been read to its end.
    #[inline]
    pub(crate) fn go_on(&mut self, after: &'a [u8]) {
        self.rest = after;
    }

    /// Reads and stores the length or count of a later field.
    #[inline]
    pub(crate) fn read_announcement(&mut self) -> Result<(), Error> {
        self.announced = usize::from(self.u16()?);
        Ok(())
    }

    /// Returns the stored length or count.
    #[inline]
    pub(crate) const fn announcement(&self) -> usize {
        self.announced
    }

    /// Stores a length or count for a later field.
    #[inline]
    pub(crate) fn announce(&mut self, announced: usize) {
        self.announced = announced;
    }

    /// Enters the nested actions of an action.
    ///
    /// # Errors
    ///
    /// Fails if actions are nested too deeply.
    pub(crate) fn deepen(&mut self) -> Result<(), Error> {
        if self.depth >= ACTION_DEPTH_MAX {
            return Err(Error::new(
                ErrorKind::LengthTooLarge,
                self.part,
                self.offset,
                "depth of nested actions",
            ));
        }

        self.depth += 1;
        Ok(())
    }

    /// Leaves the nested actions of an action.
    pub(crate) fn surface(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Returns a reader of the bytes between this position and the position of `later` in the same message.
    pub(crate) fn up_to(mut self, later: &Self) -> Self {
        self.rest = self.rest.get(..later.offset.saturating_sub(self.offset)).unwrap_or(&[]);
        self
    }

    /// Splits off a reader of the announced number of bytes, and skips these bytes.
    #[inline]
    pub(crate) fn announced(&mut self) -> Result<Self, Error> {
        self.inner(self.announced, 0, self.offset, self.field)
    }

    /// Fails if unread bytes are left.
    #[inline]
    pub(crate) fn finish(&self) -> Result<(), Error> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::LengthWrong, self.part, self.offset, "length (unread bytes remain)"))
        }
    }

    /// Creates the error for a structure that the version lacks.
    #[cold]
    pub(crate) fn not_in_version(&self, structure: &'static str) -> Error {
        Error::new(ErrorKind::Value, self.part, self.offset, structure)
    }
}
