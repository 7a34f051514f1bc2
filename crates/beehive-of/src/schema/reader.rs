//! Reading structures from the bytes of a message, every read checked.

use crate::error::{Error, ErrorKind, Part};
use crate::limits::ACTION_DEPTH_MAX;
use crate::version::Version;

/// The part of a message that is not read yet; knows where in the message it is, for errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Where `rest` starts in the message.
    offset: usize,
    version: Version,
    part: Part,
    field: &'static str,
    /// The length that a field announced for a later one, in bytes.
    announced: usize,
    /// Whether padding must be zero.
    strict: bool,
    /// How many actions this is inside of.
    depth: u8,
}

impl<'a> Reader<'a> {
    /// Reads `bytes`, which start at `offset` of a message of `version`.
    pub(crate) const fn new(version: Version, bytes: &'a [u8], offset: usize, part: Part) -> Self {
        Self { rest: bytes, offset, version, part, field: "message", announced: 0, strict: false, depth: 0 }
    }

    /// The reader that wants padding to be zero.
    pub(crate) const fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// The message's version.
    #[inline]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// What is not read yet.
    #[inline]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Where the next read starts in the message, in bytes.
    #[inline]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Whether everything is read.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Whether padding must be zero.
    pub(crate) const fn is_strict(&self) -> bool {
        self.strict
    }

    /// Enters a part of the message, for errors; returns the one it was in.
    #[inline]
    pub(crate) fn enter(&mut self, part: Part) -> Part {
        core::mem::replace(&mut self.part, part)
    }

    /// Names the field that is read next, for errors.
    #[inline]
    pub(crate) fn name(&mut self, field: &'static str) -> &mut Self {
        self.field = field;
        self
    }

    /// An error in the field that is read, at the next byte.
    #[cold]
    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        Error::new(kind, self.part, self.offset, self.field)
    }

    /// An error in the field that is read, at `offset`.
    #[cold]
    pub(crate) fn error_at(&self, kind: ErrorKind, offset: usize) -> Error {
        Error::new(kind, self.part, offset, self.field)
    }

    #[cold]
    fn truncated(&self) -> Error {
        self.error_at(ErrorKind::Truncated, self.offset + self.rest.len())
    }

    /// The next `N` bytes.
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

    /// The next `length` bytes.
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

    /// All that is left.
    #[inline]
    pub(crate) fn take_rest(&mut self) -> &'a [u8] {
        let rest = self.rest;
        self.offset += rest.len();
        self.rest = &[];
        rest
    }

    /// Skips padding, which a strict reader wants to be zero.
    #[inline]
    pub(crate) fn skip(&mut self, length: usize) -> Result<(), Error> {
        let start = self.offset;
        let padding = self.take(length)?;
        if self.strict && padding.iter().any(|byte| *byte != 0) {
            return Err(Error::new(ErrorKind::Padding, self.part, start, "padding"));
        }
        Ok(())
    }

    /// Skips bytes, whatever they are.
    #[inline]
    pub(crate) fn skip_any(&mut self, length: usize) -> Result<(), Error> {
        self.take(length).map(drop)
    }

    /// Skips what pads an element to a multiple of 8 bytes: less than that.
    #[inline]
    pub(crate) fn fill(&mut self) -> Result<(), Error> {
        if self.rest.len() < 8 { self.skip(self.rest.len()) } else { self.finish() }
    }

    /// The next 16 bits.
    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_be_bytes)
    }

    /// The next 32 bits.
    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_be_bytes)
    }

    /// A reader of the next `length` bytes, which this one skips. What `length` measures starts `before` bytes ago; the
    /// length itself is at `at`.
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

    /// Reads the length of the structure that started at `start`, and reads no further than its end from now on; what
    /// follows it is returned.
    #[inline]
    pub(crate) fn read_length(&mut self, start: usize) -> Result<&'a [u8], Error> {
        let at = self.offset;
        let length = usize::from(self.u16()?);
        let inner = self.inner(length, self.offset - start, at, "length")?;
        Ok(core::mem::replace(self, inner).rest)
    }

    /// Reads what follows the structure that was read to its end.
    #[inline]
    pub(crate) fn go_on(&mut self, after: &'a [u8]) {
        self.rest = after;
    }

    /// Reads the length that a later field has.
    #[inline]
    pub(crate) fn read_announcement(&mut self) -> Result<(), Error> {
        self.announced = usize::from(self.u16()?);
        Ok(())
    }

    /// What was announced for a later field.
    #[inline]
    pub(crate) const fn announcement(&self) -> usize {
        self.announced
    }

    /// Announces something for a later field.
    #[inline]
    pub(crate) fn announce(&mut self, announced: usize) {
        self.announced = announced;
    }

    /// Goes inside of an action.
    ///
    /// # Errors
    ///
    /// It is too deep.
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

    /// Comes out of an action.
    pub(crate) fn surface(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// The reader of what is between here and where `later` is in the same message.
    pub(crate) fn up_to(mut self, later: &Self) -> Self {
        self.rest = self.rest.get(..later.offset.saturating_sub(self.offset)).unwrap_or(&[]);
        self
    }

    /// A reader of the bytes whose length was announced, which this one skips.
    #[inline]
    pub(crate) fn announced(&mut self) -> Result<Self, Error> {
        self.inner(self.announced, 0, self.offset, self.field)
    }

    /// Nothing may be left.
    #[inline]
    pub(crate) fn finish(&self) -> Result<(), Error> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::LengthWrong, self.part, self.offset, "length (bytes are left over)"))
        }
    }

    /// The error for a structure that the version does not have.
    #[cold]
    pub(crate) fn not_in_version(&self, structure: &'static str) -> Error {
        Error::new(ErrorKind::Value, self.part, self.offset, structure)
    }
}
