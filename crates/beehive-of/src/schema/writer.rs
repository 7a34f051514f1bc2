//! The writer that encodes structures.

use bytes::{BufMut, BytesMut};

use crate::encode::{EncodeError, patch_length};
use crate::version::Version;

/// Appends structures of one version to a buffer.
#[derive(Debug)]
pub struct Writer<'w> {
    out: &'w mut BytesMut,
    version: Version,
    /// Position of the reserved 16 bits for the length or count of a later field.
    announcement: Option<usize>,
}

impl<'w> Writer<'w> {
    /// Creates a writer that appends to `out`.
    #[inline]
    pub(crate) fn new(version: Version, out: &'w mut BytesMut) -> Self {
        Self { out, version, announcement: None }
    }

    /// Returns the version to encode in.
    #[inline]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Returns the length of the buffer, in bytes.
    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.out.len()
    }

    /// Returns the buffer.
    #[inline]
    pub(crate) fn buffer(&mut self) -> &mut BytesMut {
        self.out
    }

    /// Appends bytes.
    #[inline]
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.out.put_slice(bytes);
    }

    /// Appends `length` zero bytes.
    #[inline]
    pub(crate) fn zeros(&mut self, length: usize) {
        self.out.put_bytes(0, length);
    }

    /// Reserves 16 bits to be filled in later. Returns their position.
    #[inline]
    pub(crate) fn reserve(&mut self) -> usize {
        let at = self.out.len();
        self.out.put_u16(0);
        at
    }

    /// Writes the length since `start` into the 16 bits at `at`.
    #[inline]
    pub(crate) fn patch(&mut self, at: usize, start: usize) -> Result<(), EncodeError> {
        patch_length(self.out, start, at)
    }

    /// Pads to a multiple of 8 bytes since `start`.
    #[inline]
    pub(crate) fn pad_to_8(&mut self, start: usize) {
        crate::encode::pad_to_8(self.out, start);
    }

    /// Reserves 16 bits for the length or count of a later field.
    #[inline]
    pub(crate) fn announce(&mut self) {
        self.announcement = Some(self.reserve());
    }

    /// Appends the announced field and writes its length to the reserved place.
    #[inline]
    pub(crate) fn announced(
        &mut self,
        field: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        // Take the position first, because parts of the field may announce their own lengths.
        let at = self.announcement.take();
        let start = self.position();
        field(self)?;
        match at {
            Some(at) => patch_length(self.out, start, at),
            None => Ok(()),
        }
    }

    /// Appends the announced list of 16-bit numbers and writes their count to the reserved place.
    pub(crate) fn announced_words(
        &mut self,
        list: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        let at = self.announcement.take();
        let start = self.position();
        list(self)?;
        let count = u16::try_from((self.position() - start) / 2).map_err(|_| EncodeError::TooLong)?;
        if let Some(field) = at.and_then(|at| self.out.get_mut(at..)).and_then(<[u8]>::first_chunk_mut::<2>) {
            *field = count.to_be_bytes();
        }
        Ok(())
    }

    /// Creates the error for something that the version cannot express; `field` names it.
    #[cold]
    pub(crate) fn unsupported(&self, field: &'static str) -> EncodeError {
        EncodeError::unsupported(self.version, field)
    }
}
