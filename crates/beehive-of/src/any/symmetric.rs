//! The messages that are the same in every version: hello, error and echo.

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

/// The first message of each side (specification 1.3.5, 7.5.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Hello {
    /// The wire version of the header: the highest that the peer speaks, of this crate's versions or not.
    pub version: u8,
    /// The version bitmap's first 32 versions; `None` when the hello has no bitmap.
    pub versions: Option<VersionSet>,
}

impl Hello {
    /// The hello of a peer that speaks `versions`: its header has the highest of them, and the bitmap says all, where
    /// the header's version knows of bitmaps (1.3 on).
    pub const fn new(versions: VersionSet) -> Self {
        match versions.highest() {
            Some(version) if version >= Version::V1_3.wire() => Self { version, versions: Some(versions) },
            Some(version) => Self { version, versions: None },
            None => Self { version: Version::V1_0.wire(), versions: None },
        }
    }

    /// The version to speak with a peer that sent this, when we sent a hello for `ours`: the highest in both bitmaps;
    /// without a bitmap the smaller of both headers' versions, if we speak it (specification 1.3.5, 6.3.1).
    pub fn negotiate(&self, ours: VersionSet) -> Option<Version> {
        let wire = match self.versions {
            Some(theirs) => ours.intersection(theirs).highest()?,
            None => ours.highest()?.min(self.version),
        };
        if ours.contains(wire) { Version::from_wire(wire) } else { None }
    }

    /// Reads the hello that `frame` is, without looking at the frame's type.
    ///
    /// # Errors
    ///
    /// An element is malformed. A hello of 1.0 has no elements; what follows its header is ignored (specification
    /// 1.0.0, 5.5.1).
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
            // Some peers leave out the padding of the last element.
            rest = rest.get(padded(length)..).unwrap_or(&[]);
            if be16::<0, _>(head) == VERSION_BITMAP && hello.versions.is_none() {
                let (bitmap, _) = fixed::<8>(element, Part::Hello, offset, "hello version bitmap")?;
                hello.versions = Some(VersionSet::from_bits(be32::<4, _>(bitmap)));
            }
        }
        Ok(hello)
    }

    /// Appends the message; its header's version is [`Hello::version`].
    ///
    /// # Errors
    ///
    /// None today.
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

/// A test of the connection, and the answer to it: the answer has the same data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Echo<'a> {
    /// Anything.
    pub data: &'a [u8],
}

impl Echo<'_> {
    /// Appends an echo request.
    ///
    /// # Errors
    ///
    /// The message is too long.
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
    /// The message is too long.
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

/// What the peer could not do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ErrorMessage<'a> {
    /// `ofp_error_type`; its meaning depends on the version, see [`error_type_name`](crate::error_type_name).
    pub error_type: u16,
    /// The code; its meaning depends on the type, see [`error_code_name`](crate::error_code_name).
    pub code: u16,
    /// The start of the message that was wrong, at least 64 bytes of it; words when the hello failed.
    pub data: &'a [u8],
}

impl<'a> ErrorMessage<'a> {
    /// The type of [`ErrorMessage::INCOMPATIBLE`]'s errors: the hello failed (`OFPET_HELLO_FAILED`).
    pub const HELLO_FAILED: u16 = 0;
    /// The code of `HELLO_FAILED`: no version in common (`OFPHFC_INCOMPATIBLE`).
    pub const INCOMPATIBLE: u16 = 0;

    /// The error that answers `request`, whose first 64 bytes it carries (specification 1.3.5, 7.5.4).
    pub fn answering(answer: Answer, request: &'a [u8]) -> Self {
        let data = request.get(..64).unwrap_or(request);
        Self { error_type: answer.error_type, code: answer.code, data }
    }

    /// The refusal of a peer without a version in common; `words` say why.
    pub const fn hello_failed(words: &'a str) -> Self {
        Self { error_type: Self::HELLO_FAILED, code: Self::INCOMPATIBLE, data: words.as_bytes() }
    }

    /// Reads the error that `frame` is, without looking at the frame's type.
    ///
    /// # Errors
    ///
    /// The message is cut off.
    pub fn parse(frame: Frame<'a>) -> Result<Self, Error> {
        let (head, data) = fixed::<4>(frame.body(), Part::Message, 8, "error message")?;
        Ok(Self { error_type: be16::<0, _>(head), code: be16::<2, _>(head), data })
    }

    /// Appends the message.
    ///
    /// # Errors
    ///
    /// The message is too long.
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

/// Whether a message type is one of those that are the same in every version.
#[inline]
pub(crate) const fn is_symmetric(message_type: u8) -> bool {
    message_type <= ECHO_REPLY
}

/// The error for a version that is not spoken here.
pub(crate) fn version_error() -> Error {
    Error::new(ErrorKind::Version, Part::Header, 0, "version")
}
