//! An encoding of a field identity in 32 bits, for places without room for an experimenter number.

use super::{FieldId, class};
use crate::encode::EncodeError;
use crate::error::Error;
use crate::schema::{Adaptor, Reader, Sink, Source, Value, Writer};
use crate::version::Version;

/// Encodes a [`FieldId`] without its experimenter number.
pub(crate) struct Narrow;

impl Adaptor<'_, FieldId> for Narrow {
    fn read(reader: &mut Reader<'_>) -> Result<FieldId, Error> {
        FieldId::read_header(reader)
    }

    fn write(value: &FieldId, field: &'static str, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        if value.class == class::EXPERIMENTER && value.experimenter != 0 {
            return Err(EncodeError::Value { field });
        }
        writer.put(&value.header().to_be_bytes());
        Ok(())
    }

    fn show(value: &FieldId, version: Version, sink: &mut dyn Sink) {
        value.show(version, sink);
    }

    fn compose(source: &dyn Source, field: &'static str, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        Self::write(&FieldId::told(source)?, field, writer)
    }
}
