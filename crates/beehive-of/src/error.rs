//! Decoding errors, and the OpenFlow errors to answer them with.

use core::fmt;

use crate::version::Version;

/// The reason why bytes are not a valid message. This is an error of the peer: answer it with [`Error::answer`], and
/// close the connection if [`Error::is_framing`] returns true, because the start of the next message is then unknown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    part: Part,
    offset: u32,
    field: &'static str,
}

/// The kind of a decoding error.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The version in the header is not supported.
    Version,
    /// The container ends before the structure does.
    Truncated,
    /// A length field is smaller than its structure; for example, it is 0.
    LengthTooSmall,
    /// A length field exceeds its container or a limit.
    LengthTooLarge,
    /// A length field does not fit its structure, or is not a multiple of 8 as required.
    LengthWrong,
    /// A field has a value that the specification does not allow.
    Value,
    /// A mandatory field is absent.
    Missing,
    /// An element that may occur only once is duplicated.
    Duplicate,
    /// Padding or a reserved bit is not zero. Only strict checks report this.
    Padding,
}

/// The part of a message that contains the error. It determines the OpenFlow error to answer with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Part {
    /// The header.
    Header,
    /// A hello or one of its elements.
    Hello,
    /// A field of the message itself.
    Message,
    /// A match or one of its fields.
    Match,
    /// An action.
    Action,
    /// An instruction.
    Instruction,
    /// A field of the flow modification itself.
    FlowMod,
    /// A port description.
    Port,
    /// A statistics or multipart body.
    Statistics,
    /// A role.
    Role,
    /// A property of a port, queue, table, role, bundle or asynchronous configuration (since 1.4).
    Property,
    /// A group or one of its buckets.
    Group,
    /// A meter or one of its bands.
    Meter,
    /// A queue or one of its properties.
    Queue,
    /// A table's features or configuration.
    Table,
    /// A bundle.
    Bundle,
}

/// The type and code of the OpenFlow error message that answers a malformed message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Answer {
    /// `ofp_error_type`.
    pub error_type: u16,
    /// The code; its meaning depends on the type.
    pub code: u16,
}

impl Answer {
    /// The answer to a message of an unknown or unexpected type (`OFPBRC_BAD_TYPE`), the same in all
    /// versions.
    pub const BAD_TYPE: Self = Self { error_type: 1, code: 1 };

    /// The answer to a statistics or multipart request of an unknown kind (`OFPBRC_BAD_MULTIPART`;
    /// `OFPBRC_BAD_STAT` before 1.3), the same in all versions.
    pub const BAD_MULTIPART: Self = Self { error_type: 1, code: 2 };

    /// The answer to a message or multipart request of an unknown experimenter (`OFPBRC_BAD_EXPERIMENTER`;
    /// `OFPBRC_BAD_VENDOR` in 1.0), the same in all versions.
    pub const BAD_EXPERIMENTER: Self = Self { error_type: 1, code: 3 };

    /// The answer to an unknown message type of a known experimenter (`OFPBRC_BAD_EXPERIMENTER_TYPE`;
    /// `OFPBRC_BAD_SUBTYPE` in 1.0), the same in all versions.
    pub const BAD_EXPERIMENTER_TYPE: Self = Self { error_type: 1, code: 4 };
}

impl Error {
    /// Creates an error in `part`, at `offset` bytes from the start of the message, in the named field.
    #[cold]
    #[inline(never)]
    pub(crate) fn new(kind: ErrorKind, part: Part, offset: usize, field: &'static str) -> Self {
        Self { kind, part, offset: u32::try_from(offset).unwrap_or(u32::MAX), field }
    }

    /// Returns the kind of error.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the part of the message that contains the error.
    pub const fn part(&self) -> Part {
        self.part
    }

    /// Returns the offset of the error from the start of the message, in bytes.
    pub const fn offset(&self) -> u32 {
        self.offset
    }

    /// Returns the name of the field that contains the error.
    pub const fn field(&self) -> &'static str {
        self.field
    }

    /// Returns whether the error is in the header, so the start of the next message is unknown.
    pub const fn is_framing(&self) -> bool {
        matches!(self.part, Part::Header) && !matches!(self.kind, ErrorKind::Version)
    }

    /// Returns the error message to answer with in `version` (`ofp_error_type` and its codes; specification
    /// 1.0.0, 5.4.4 and 1.3.5, 7.5.4).
    pub const fn answer(&self, version: Version) -> Answer {
        use ErrorKind::{Duplicate, Missing, Value};
        const BAD_REQUEST: u16 = 1;
        const BAD_ACTION: u16 = 2;
        let old = matches!(version, Version::V1_0);

        // From 1.4 on, there is a code for duplicate instructions, and an error type for bundles.
        let recent = matches!(version, Version::V1_4 | Version::V1_5);
        let (error_type, code) = match self.part {
            Part::Action => (BAD_ACTION, if matches!(self.kind, Value) { 5 } else { 1 }),
            Part::Instruction if !old => match self.kind {
                Value => (3, 0),
                Duplicate => (3, if recent { 9 } else { 1 }),
                _ => (3, 7),
            },
            Part::Match if !old => match self.kind {
                Value => (4, 7),
                Missing => (4, 9),
                // 1.1 has no code for a duplicate field.
                Duplicate if matches!(version, Version::V1_1) => (4, 7),
                Duplicate => (4, 10),
                _ => (4, 1),
            },
            Part::FlowMod if matches!(self.kind, Value) => {
                if old {
                    (3, 4)
                } else {
                    (5, 6)
                }
            }
            Part::Group if !old && matches!(self.kind, Value) => (6, 11),
            Part::Role if !old && matches!(self.kind, Value) => (11, 2),
            Part::Meter if !old && matches!(self.kind, Value) => (12, 4),
            Part::Property if !old => (14, if matches!(self.kind, Value) { 2 } else { 1 }),
            _ if matches!(self.kind, ErrorKind::Version) => (BAD_REQUEST, 0),
            Part::Bundle if recent && !matches!(self.kind, Value) => (17, 8),
            Part::Hello => (0, 0),
            _ => (BAD_REQUEST, 6),
        };

        Answer { error_type, code }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            ErrorKind::Version => "is not supported",
            ErrorKind::Truncated => "is truncated",
            ErrorKind::LengthTooSmall => "is too small for its structure",
            ErrorKind::LengthTooLarge => "exceeds its container",
            ErrorKind::LengthWrong => "does not match its structure",
            ErrorKind::Value => "has a value that the specification does not allow",
            ErrorKind::Missing => "is missing",
            ErrorKind::Duplicate => "is duplicated",
            ErrorKind::Padding => "is not zero",
        };
        write!(formatter, "{} {} at byte {}", self.field, what, self.offset)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Error({:?} in {:?}: {self})", self.kind, self.part)
    }
}

impl core::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn an_error_says_where_and_what_and_how_to_answer() {
        let error = Error::new(ErrorKind::LengthTooSmall, Part::Action, 84, "action length");
        assert_eq!(error.to_string(), "action length is too small for its structure at byte 84");
        assert_eq!(error.answer(Version::V1_0), Answer { error_type: 2, code: 1 });
        assert_eq!(error.answer(Version::V1_3), Answer { error_type: 2, code: 1 });

        let error = Error::new(ErrorKind::Truncated, Part::Match, 48, "match");
        assert_eq!(error.answer(Version::V1_0), Answer { error_type: 1, code: 6 });
        assert_eq!(error.answer(Version::V1_3), Answer { error_type: 4, code: 1 });

        let error = Error::new(ErrorKind::Version, Part::Header, 0, "version");
        assert_eq!(error.answer(Version::V1_3), Answer { error_type: 1, code: 0 });
        assert!(!error.is_framing());
        assert!(Error::new(ErrorKind::LengthTooSmall, Part::Header, 2, "length").is_framing());
    }

    #[test]
    fn an_error_is_small() {
        assert!(size_of::<Error>() <= 24);
    }
}
