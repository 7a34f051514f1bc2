//! Hello, error and echo: the symmetric messages, which have the same format in every version.

use core::fmt;

use bytes::{BufMut, BytesMut};

use crate::encode::{EncodeError, message};
use crate::error::{Answer, Error, ErrorKind, Part};
use crate::field::{be16, be32, bounded, fixed, padded};
use crate::frame::Frame;
use crate::version::{Version, VersionSet};

/// Message types that every version has.
pub(crate) const HELLO: u8 = 0;
pub(crate) const ERROR: u8 = 1;
pub(crate) const ECHO_REQUEST: u8 = 2;
pub(crate) const ECHO_REPLY: u8 = 3;

/// The type of the hello element that holds a version bitmap (`OFPHET_VERSIONBITMAP`).
const VERSION_BITMAP: u16 = 1;

/// The first message that each side sends (specification 1.3.5, 7.5.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Hello {
    /// The wire version in the header: the highest version that the sender supports, which this crate may not
    /// support.
    pub version: u8,
    /// The wire versions in the version bitmap (0 to 31); `None` if the hello has no bitmap.
    pub versions: Option<VersionSet>,
}

impl Hello {
    /// Creates the hello of a peer that supports `versions`. The header has the highest of these versions. If
    /// that is 1.3 or later, the bitmap lists all of them.
    pub const fn new(versions: VersionSet) -> Self {
        match versions.highest() {
            Some(version) if version >= Version::V1_3.wire() => Self { version, versions: Some(versions) },
            Some(version) => Self { version, versions: None },
            None => Self { version: Version::V1_0.wire(), versions: None },
        }
    }

    /// Negotiates the version with the peer that sent this hello, given that we sent a hello for `ours`. The
    /// result is the highest version that is in both bitmaps or, if this hello has no bitmap, the lower of
    /// the two header versions. Returns `None` if we do not support the result (specification 1.3.5, 6.3.1).
    pub fn negotiate(&self, ours: VersionSet) -> Option<Version> {
        let wire = match self.versions {
            Some(theirs) => ours.intersection(theirs).highest()?,
            None => ours.highest()?.min(self.version),
        };
        if ours.contains(wire) { Version::from_wire(wire) } else { None }
    }

    /// Parses the hello in `frame` without checking the type in the header.
    ///
    /// # Errors
    ///
    /// Fails if an element is malformed. Before 1.3, a hello has no elements, and bytes after its header are
    /// ignored (specification 1.0.0, 5.5.1).
    pub fn parse(frame: Frame<'_>) -> Result<Self, Error> {
        let mut hello = Self { version: frame.header().version, versions: None };
        if hello.version < Version::V1_3.wire() {
            return Ok(hello);
        }

        let mut rest = frame.body();
        while !rest.is_empty() {
            let offset = frame.bytes().len() - rest.len();
            let (head, _) = fixed::<4>(rest, Part::Hello, offset, "hello element")?;
            let length = usize::from(be16::<2, _>(head));
            let (element, _) = bounded(rest, length, 4, Part::Hello, offset + 2, "hello element length")?;

            // Some peers omit the padding of the last element.
            rest = rest.get(padded(length)..).unwrap_or(&[]);
            if be16::<0, _>(head) == VERSION_BITMAP && hello.versions.is_none() {
                let (bitmap, _) = fixed::<8>(element, Part::Hello, offset, "hello version bitmap")?;
                hello.versions = Some(VersionSet::from_bits(be32::<4, _>(bitmap)));
            }
        }

        Ok(hello)
    }

    /// Appends the message with [`Hello::version`] in its header.
    ///
    /// # Errors
    ///
    /// Currently never fails.
    pub fn encode_into(&self, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        message(out, self.version, HELLO, xid, |out| {
            if let Some(versions) = self.versions {
                out.put_u16(VERSION_BITMAP);
                out.put_u16(8);
                out.put_u32(versions.bits());
            }
            Ok(())
        })
    }
}

/// An echo request, or the reply to it, which carries the same data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Echo<'a> {
    /// Arbitrary data.
    pub data: &'a [u8],
}

impl Echo<'_> {
    /// Appends an echo request.
    ///
    /// # Errors
    ///
    /// Fails if the message is too long.
    pub fn encode_request_into(
        &self,
        version: Version,
        xid: u32,
        out: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        self.encode(version.wire(), ECHO_REQUEST, xid, out)
    }

    /// Appends an echo reply.
    ///
    /// # Errors
    ///
    /// Fails if the message is too long.
    pub fn encode_reply_into(
        &self,
        version: Version,
        xid: u32,
        out: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        self.encode(version.wire(), ECHO_REPLY, xid, out)
    }

    fn encode(&self, version: u8, message_type: u8, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        message(out, version, message_type, xid, |out| {
            out.put_slice(self.data);
            Ok(())
        })
    }
}

/// An error report.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ErrorMessage<'a> {
    /// `ofp_error_type`; its meaning depends on the version, see [`error_type_name`](crate::error_type_name).
    pub error_type: u16,
    /// The code; its meaning depends on the type, see [`error_code_name`](crate::error_code_name).
    pub code: u16,
    /// The start of the message that caused the error, at least 64 bytes; for a failed hello, an ASCII text.
    pub data: &'a [u8],
}

impl<'a> ErrorMessage<'a> {
    /// The error type of a failed hello (`OFPET_HELLO_FAILED`).
    pub const HELLO_FAILED: u16 = 0;
    /// The code of a `HELLO_FAILED` error: the peers have no version in common (`OFPHFC_INCOMPATIBLE`).
    pub const INCOMPATIBLE: u16 = 0;

    /// Creates the error that answers `request`, with the first 64 bytes of the request (specification 1.3.5,
    /// 7.5.4).
    pub fn answering(answer: Answer, request: &'a [u8]) -> Self {
        let data = request.get(..64).unwrap_or(request);
        Self { error_type: answer.error_type, code: answer.code, data }
    }

    /// Creates the error that refuses a peer without a common version; `words` is an explanation for its
    /// operator.
    pub const fn hello_failed(words: &'a str) -> Self {
        Self { error_type: Self::HELLO_FAILED, code: Self::INCOMPATIBLE, data: words.as_bytes() }
    }

    /// Parses the error in `frame` without checking the type in the header.
    ///
    /// # Errors
    ///
    /// Fails if the message is truncated.
    pub fn parse(frame: Frame<'a>) -> Result<Self, Error> {
        let (head, data) = fixed::<4>(frame.body(), Part::Message, 8, "error message")?;
        Ok(Self { error_type: be16::<0, _>(head), code: be16::<2, _>(head), data })
    }

    /// Appends the encoded message to `out`.
    ///
    /// # Errors
    ///
    /// Fails if the message is too long.
    pub fn encode_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        message(out, version.wire(), ERROR, xid, |out| {
            out.put_u16(self.error_type);
            out.put_u16(self.code);
            out.put_slice(self.data);
            Ok(())
        })
    }
}

impl fmt::Debug for ErrorMessage<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "ErrorMessage {{ error_type: {}, code: {}, data: \"{}\" }}",
            self.error_type,
            self.code,
            self.data.escape_ascii()
        )
    }
}

/// Returns whether a message type has the same format in every version.
#[inline]
pub(crate) const fn is_symmetric(message_type: u8) -> bool {
    message_type <= ECHO_REPLY
}

/// Creates the error for an unsupported version.
pub(crate) fn version_error() -> Error {
    Error::new(ErrorKind::Version, Part::Header, 0, "version")
}
