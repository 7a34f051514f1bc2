//! The sinks of an [`Encoder`](super::serializer::Encoder): one appends the bytes of a value to a buffer, and one compares
//! them with the bytes of another value.

use super::Buffer;
use super::serializer::{Sink, Stop};

/// Appends bytes to a buffer, up to a limit.
///
/// Most values consist of many small parts, often single bytes, so parts are first collected in an array: this takes a
/// few instructions for each, while a buffer that may have to grow takes many.
pub(super) struct Append<'a, B> {
    to: &'a mut B,
    collected: [u8; COLLECTED_MAX],
    /// Number of bytes collected.
    length: usize,
    /// Number of bytes that the buffer may still take, those collected included.
    room: usize,
}

/// Maximum number of bytes that are collected before they are appended to a buffer.
const COLLECTED_MAX: usize = 64;

impl<'a, B: Buffer> Append<'a, B> {
    pub(super) fn new(to: &'a mut B, bytes_max: usize) -> Append<'a, B> {
        Append { to, collected: [0; COLLECTED_MAX], length: 0, room: bytes_max }
    }

    /// Appends what is collected.
    #[inline]
    pub(super) fn flush(&mut self) {
        self.to.extend_from_slice(&self.collected[..self.length]);
        self.length = 0
    }

    #[cold]
    fn flush_and_append(&mut self, bytes: &[u8]) {
        self.flush();
        self.to.extend_from_slice(bytes)
    }
}

impl<B: Buffer> Sink for Append<'_, B> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.room = self.room.checked_sub(bytes.len()).ok_or(Stop::Full)?;
        match self.collected.get_mut(self.length..self.length + bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.length += bytes.len()
            }
            None => self.flush_and_append(bytes),
        }
        Ok(())
    }
}

/// Compares bytes with those that are expected. It is full at the first difference.
pub(super) struct Compare<'a> {
    /// The bytes that are still to come. `None` after a difference, whatever the value's `Serialize` does with the error.
    pub(super) expected: Option<&'a [u8]>,
}

impl Sink for Compare<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.expected = self.expected.and_then(|expected| expected.strip_prefix(bytes));
        if self.expected.is_some() { Ok(()) } else { Err(Stop::Full) }
    }
}
