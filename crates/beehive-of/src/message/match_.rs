//! The match in all versions: the fixed structures of 1.0 and 1.1, and the list of fields from 1.2 on.

use super::standard::{StandardMatch10, StandardMatch11};
use crate::any;
use crate::encode::EncodeError;
use crate::error::{Error, ErrorKind, Part};
use crate::field::padded;
use crate::oxm::OxmFields;
use crate::schema::{Reader, Sink, Source, Value, Writer};
use crate::version::Version;

/// The match type of a list of fields (`OFPMT_OXM`).
pub(crate) const TYPE_OXM: u16 = 1;

/// A match.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Match<'a> {
    /// A list of fields (since 1.2).
    Fields(OxmFields<'a>),
    /// The fixed structure of 1.0.
    V1_0(StandardMatch10),
    /// The fixed structure of 1.1.
    V1_1(StandardMatch11),
    /// A list of fields in a message of 1.1. The specification does not have it there, but Open vSwitch
    /// reports flows this way. In other versions, this variant is encoded like [`Match::Fields`].
    Fields1_1(OxmFields<'a>),
    /// A version-independent match, to be encoded in any version.
    Any(&'a any::Match),
}

impl Default for Match<'_> {
    fn default() -> Self {
        Self::Any(&any::Match::ANY)
    }
}

impl<'a> Match<'a> {
    /// Converts this match to the version-independent match. Its `other` counts the fields that it does not
    /// model.
    ///
    /// # Errors
    ///
    /// Fails if a field is malformed or duplicated.
    pub fn generalize(&self) -> Result<any::Match, Error> {
        match self {
            Self::Fields(fields) | Self::Fields1_1(fields) => any::from_fields(fields),
            Self::V1_0(standard) => Ok(standard.generalize()),
            Self::V1_1(standard) => Ok(standard.generalize()),
            Self::Any(fields) => Ok(**fields),
        }
    }

    /// Returns the list of fields; empty for other kinds of match.
    pub fn fields(&self) -> OxmFields<'a> {
        match self {
            Self::Fields(fields) | Self::Fields1_1(fields) => *fields,
            _ => OxmFields::default(),
        }
    }
}

/// Reads a match of 1.2 or later, which is a list of fields, and its padding.
#[inline]
fn read_fields<'a>(reader: &mut Reader<'a>) -> Result<OxmFields<'a>, Error> {
    let outer = reader.enter(Part::Match);
    let start = reader.offset();
    if reader.name("match type").u16()? != TYPE_OXM {
        return Err(reader.error_at(ErrorKind::Value, start));
    }

    let length = usize::from(reader.name("match length").u16()?);
    let mut inner = reader.inner(length, 4, start + 2, "match length")?;
    let fields = OxmFields::read(&mut inner)?;
    reader.name("match padding").skip(padded(length) - length)?;
    reader.enter(outer);
    Ok(fields)
}

fn write_fields(
    writer: &mut Writer<'_>,
    fields: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = writer.position();
    writer.put(&TYPE_OXM.to_be_bytes());
    let at = writer.reserve();
    fields(writer)?;
    writer.patch(at, start)?;
    writer.pad_to_8(start);
    Ok(())
}

impl<'a> Value<'a> for Match<'a> {
    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        match reader.version() {
            Version::V1_0 => StandardMatch10::read(reader).map(Self::V1_0),
            Version::V1_1 if reader.rest().starts_with(&TYPE_OXM.to_be_bytes()) => {
                read_fields(reader).map(Self::Fields1_1)
            }
            Version::V1_1 => StandardMatch11::read(reader).map(Self::V1_1),
            _ => read_fields(reader).map(Self::Fields),
        }
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        match (self, writer.version()) {
            (Self::V1_0(standard), Version::V1_0) => standard.write(writer),
            (Self::V1_1(standard), Version::V1_1) => standard.write(writer),
            (Self::Fields1_1(fields), Version::V1_1) => write_fields(writer, |writer| fields.write(writer)),
            (Self::Fields(fields) | Self::Fields1_1(fields), version) if version >= Version::V1_2 => {
                write_fields(writer, |writer| fields.write(writer))
            }
            (Self::Any(fields), _) => any::write_match(fields, writer),
            (other, _) => any::write_match(&other.generalize()?, writer),
        }
    }

    fn show(&self, version: Version, sink: &mut dyn Sink) {
        match self {
            Self::Fields1_1(fields) if version == Version::V1_1 => {
                // Nest the list under a key of its own, because the names in the fixed structure differ.
                sink.open_record();
                sink.key("fields");
                fields.show(version, sink);
                sink.close_record();
            }
            Self::Fields(fields) | Self::Fields1_1(fields) => fields.show(version, sink),
            Self::V1_0(standard) => standard.show_counting(sink),
            Self::V1_1(standard) => standard.show_counting(sink),
            Self::Any(fields) => sink.text(format_args!("{fields:?}")),
        }
    }

    fn compose(source: &dyn Source, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        match writer.version() {
            Version::V1_0 => StandardMatch10::compose_counting(source)?.write(writer),
            Version::V1_1 => match source.field("fields") {
                Some(fields) => write_fields(writer, |writer| OxmFields::compose(fields, writer)),
                None => StandardMatch11::compose_counting(source)?.write(writer),
            },
            _ => write_fields(writer, |writer| OxmFields::compose(source, writer)),
        }
    }
}
