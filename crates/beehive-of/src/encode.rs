//! Encoding errors, and the framing of an encoded message.

use core::fmt;

use bytes::{BufMut, BytesMut};

use crate::error::Error;
use crate::limits::MESSAGE_LENGTH_MAX;
use crate::version::Version;

/// The reason why a message cannot be encoded. This is an error of the caller. The buffer is left unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EncodeError {
    /// The version cannot express a value.
    Unsupported {
        /// The requested version.
        version: Version,
        /// The value or feature that the version cannot express.
        field: &'static str,
    },
    /// A value is invalid or out of range in every version.
    Value {
        /// The field with that value.
        field: &'static str,
    },
    /// A field lacks its prerequisite; for example, an IPv4 address requires the Ethernet type of IPv4.
    Prerequisite {
        /// The field that lacks its prerequisite.
        field: &'static str,
    },
    /// The message is longer than 65 535 bytes.
    TooLong,
    /// The message contains a list taken from a decoded message, and that list is malformed.
    Source(Error),
}

impl EncodeError {
    #[cold]
    pub(crate) fn unsupported(version: Version, field: &'static str) -> Self {
        Self::Unsupported { version, field }
    }
}

impl From<Error> for EncodeError {
    fn from(error: Error) -> Self {
        Self::Source(error)
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { version, field } => {
                write!(formatter, "OpenFlow {version} cannot express {field}")
            }
            Self::Value { field } => write!(formatter, "{field} is invalid or out of range"),
            Self::Prerequisite { field } => {
                write!(formatter, "{field} lacks the field that is its prerequisite")
            }
            Self::TooLong => write!(formatter, "the message is longer than {MESSAGE_LENGTH_MAX} bytes"),
            Self::Source(error) => write!(formatter, "a decoded list is malformed: {error}"),
        }
    }
}

impl core::error::Error for EncodeError {}

/// Appends one message: the header, then the body that `body` appends. Finally, it fills in the length. On
/// failure, it leaves the buffer unchanged.
#[inline]
pub(crate) fn message(
    out: &mut BytesMut,
    version: u8,
    message_type: u8,
    xid: u32,
    body: impl FnOnce(&mut BytesMut) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = out.len();
    let [x0, x1, x2, x3] = xid.to_be_bytes();
    out.put_slice(&[version, message_type, 0, 0, x0, x1, x2, x3]);
    let result = body(out).and_then(|()| patch_length(out, start, start + 2));
    if result.is_err() {
        out.truncate(start);
    }
    result
}

/// Writes the number of bytes since `start` into the 16-bit field at `at`.
#[inline]
pub(crate) fn patch_length(out: &mut BytesMut, start: usize, at: usize) -> Result<(), EncodeError> {
    let length = u16::try_from(out.len() - start).map_err(|_| EncodeError::TooLong)?;
    if let Some(field) = out.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<2>()) {
        *field = length.to_be_bytes();
    }
    Ok(())
}

/// Appends zeros until the length since `start` is a multiple of 8.
#[inline]
pub(crate) fn pad_to_8(out: &mut BytesMut, start: usize) {
    let length = out.len() - start;
    out.put_bytes(0, crate::field::padded(length) - length);
}
