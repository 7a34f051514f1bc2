//! Zero-copy framing: the header, and the boundaries of messages in a read buffer.

use core::iter::FusedIterator;

use crate::error::{Error, ErrorKind, Part};
use crate::field::{be8, be16, be32};
use crate::limits::{HEADER_LENGTH, MESSAGE_LENGTH_MAX};
use crate::version::Version;

/// The header that starts every message (specification 1.3.5, 7.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    /// The wire version; [`Frame::version`] converts it to a [`Version`].
    pub version: u8,
    /// The message type; its meaning depends on the version.
    pub message_type: u8,
    /// The length of the message in bytes, header included.
    pub length: u16,
    /// The transaction identifier; a reply has the identifier of its request.
    pub xid: u32,
}

/// The bytes of one message: at least a header, and exactly as many bytes as the header states.
// A frame consists of two words, so it is passed in registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Returns the first message of `bytes` and its length, or `None` if more bytes are needed.
    ///
    /// The version is not checked, because a hello may have a version that we do not support.
    ///
    /// # Errors
    ///
    /// Fails if the length in the header is smaller than the header. The start of the next message is then
    /// unknown.
    #[inline]
    pub fn split(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, Error> {
        Self::split_limited(bytes, MESSAGE_LENGTH_MAX)
    }

    /// Like [`Frame::split`], but refuses a message longer than `length_max` bytes as soon as its header has
    /// arrived.
    ///
    /// # Errors
    ///
    /// Fails if the length in the header is smaller than the header or greater than the limit.
    #[inline]
    pub fn split_limited(bytes: &'a [u8], length_max: usize) -> Result<Option<(Self, usize)>, Error> {
        let Some(start) = bytes.first_chunk::<HEADER_LENGTH>() else { return Ok(None) };
        let length = usize::from(be16::<2, _>(start));
        if length < HEADER_LENGTH {
            return Err(Error::new(ErrorKind::LengthTooSmall, Part::Header, 2, "message length"));
        }
        if length > length_max {
            return Err(Error::new(ErrorKind::LengthTooLarge, Part::Header, 2, "message length"));
        }

        let Some(message) = bytes.get(..length) else { return Ok(None) };
        Ok(Some((Self { bytes: message }, length)))
    }

    /// Returns `bytes` as a single message.
    ///
    /// # Errors
    ///
    /// Fails like [`Frame::split`], or if `bytes` is shorter or longer than the header states.
    pub fn whole(bytes: &'a [u8]) -> Result<Self, Error> {
        match Self::split(bytes)? {
            Some((frame, length)) if length == bytes.len() => Ok(frame),
            Some((_, length)) => Err(Error::new(
                ErrorKind::LengthWrong,
                Part::Header,
                length,
                "message length (more bytes follow)",
            )),
            None => Err(Error::new(ErrorKind::Truncated, Part::Header, bytes.len(), "message")),
        }
    }

    /// Returns the bytes of the header.
    #[inline]
    fn start(&self) -> &'a [u8; HEADER_LENGTH] {
        // A frame always has a header, because only `split_limited` creates one.
        self.bytes.first_chunk().unwrap_or(&[0; HEADER_LENGTH])
    }

    /// Returns the decoded header.
    #[inline]
    pub fn header(&self) -> Header {
        let start = self.start();
        Header {
            version: be8::<0, _>(start),
            message_type: be8::<1, _>(start),
            length: be16::<2, _>(start),
            xid: be32::<4, _>(start),
        }
    }

    /// Returns the transaction identifier.
    #[inline]
    pub fn xid(&self) -> u32 {
        be32::<4, _>(self.start())
    }

    /// Returns the version, if it is supported.
    #[inline]
    pub fn version(&self) -> Option<Version> {
        Version::from_wire(be8::<0, _>(self.start()))
    }

    /// Returns all bytes of the message, header included.
    #[inline]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the bytes after the header.
    #[inline]
    pub fn body(&self) -> &'a [u8] {
        self.bytes.get(HEADER_LENGTH..).unwrap_or(&[])
    }
}

/// An iterator over the messages in a buffer. It ends at the first incomplete message or after an error.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    rest: &'a [u8],
    consumed: usize,
    length_max: usize,
    failed: bool,
}

impl<'a> Frames<'a> {
    /// Creates an iterator over the messages in `bytes`.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self::limited(bytes, MESSAGE_LENGTH_MAX)
    }

    /// Creates an iterator over the messages in `bytes` that refuses messages longer than `length_max` bytes.
    #[inline]
    pub const fn limited(bytes: &'a [u8], length_max: usize) -> Self {
        Self { rest: bytes, consumed: 0, length_max, failed: false }
    }

    /// Returns the total length of the messages returned so far, in bytes.
    #[inline]
    pub const fn consumed(&self) -> usize {
        self.consumed
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        match Frame::split_limited(self.rest, self.length_max) {
            Ok(Some((frame, length))) => {
                self.rest = self.rest.get(length..).unwrap_or(&[]);
                self.consumed += length;
                Some(Ok(frame))
            }
            Ok(None) => None,
            Err(error) => {
                self.failed = true;
                Some(Err(error))
            }
        }
    }
}

impl FusedIterator for Frames<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 7];

    #[test]
    fn a_header_waits_for_its_bytes() {
        for length in 0..8 {
            assert_eq!(Frame::split(&HELLO[..length]), Ok(None));
        }
        let (frame, length) = Frame::split(&HELLO).unwrap().unwrap();
        assert_eq!(
            (frame.version(), frame.xid(), frame.body(), length),
            (Some(Version::V1_3), 7, &[][..], 8)
        );
    }

    #[test]
    fn a_length_smaller_than_the_header_is_an_error_even_before_the_message_is_whole() {
        for length in 0..8 {
            let error = Frame::split(&[1, 0, 0, length, 0, 0, 0, 0]).unwrap_err();
            assert_eq!(
                (error.kind(), error.offset(), error.is_framing()),
                (ErrorKind::LengthTooSmall, 2, true)
            );
        }
    }

    #[test]
    fn a_length_over_the_limit_is_refused_before_its_bytes_arrive() {
        let header = [1, 2, 0x40, 1, 0, 0, 0, 0];
        assert_eq!(Frame::split(&header), Ok(None));
        assert_eq!(Frame::split_limited(&header, 0x4000).unwrap_err().kind(), ErrorKind::LengthTooLarge);
    }

    #[test]
    fn frames_end_at_the_incomplete_message_and_after_an_error() {
        let mut bytes = [HELLO, HELLO, HELLO].concat();
        bytes.truncate(20);
        let mut frames = Frames::new(&bytes);
        assert!(frames.next().unwrap().is_ok() && frames.next().unwrap().is_ok());
        assert!(frames.next().is_none() && frames.next().is_none());
        assert_eq!(frames.consumed(), 16);

        let bytes = [HELLO, [0; 8], HELLO].concat();
        let mut frames = Frames::new(&bytes);
        assert!(frames.next().unwrap().is_ok() && frames.next().unwrap().is_err());
        assert!(frames.next().is_none());
        assert_eq!(frames.consumed(), 8);
    }

    #[test]
    fn whole_wants_exactly_one_message() {
        assert!(Frame::whole(&HELLO).is_ok());
        assert_eq!(Frame::whole(&HELLO[..7]).unwrap_err().kind(), ErrorKind::Truncated);
        assert_eq!(Frame::whole(&[HELLO, HELLO].concat()).unwrap_err().kind(), ErrorKind::LengthWrong);
    }
}
