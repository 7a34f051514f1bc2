//! A list of match fields, and the check of its meaning.

use crate::encode::EncodeError;
use crate::error::{Error, ErrorKind, Part};
use crate::limits::MATCH_FIELDS_MAX;
use crate::schema::{List, Reader, Sink, Source, Value, Writer};
use crate::version::Version;

use super::class::{BASIC, NXM_OF};
use super::field::OxmField;
use super::registry::Need;

/// A list of fields, in order. It is shown as one record with the name and the value of each field.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct OxmFields<'a>(pub List<'a, OxmField<'a>>);

impl<'a> OxmFields<'a> {
    /// Returns the field with this number in the standard class.
    ///
    /// # Errors
    ///
    /// Fails if an earlier field is malformed.
    pub fn basic(&self, number: u8) -> Result<Option<OxmField<'a>>, Error> {
        for field in self.0 {
            let field = field?;
            if field.class == BASIC && field.number == number {
                return Ok(Some(field));
            }
        }
        Ok(None)
    }

    /// Checks the semantics of the fields: their lengths are valid, only fields that support a mask have one,
    /// no value has bits outside of its mask, no field is duplicated, and the prerequisites of each field
    /// come before it (1.3.5, 7.2.3.6 and table 12). Errors report `offset`.
    ///
    /// # Errors
    ///
    /// Returns the error of the first invalid field.
    pub fn check_meaning(&self, offset: usize) -> Result<(), Error> {
        let wrong = |kind, what| Error::new(kind, Part::Match, offset, what);
        for (index, field) in self.0.iter().enumerate() {
            let field = field?;

            // Each field is compared with all earlier fields, so the number of fields is limited.
            if index >= MATCH_FIELDS_MAX {
                return Err(wrong(ErrorKind::Value, "match field (too many)"));
            }

            for earlier in self.0.iter().take(index) {
                let earlier = earlier?;
                if earlier.id().standard().has_number_of(&field.id().standard()) {
                    return Err(wrong(ErrorKind::Duplicate, "match field"));
                }
            }

            if let Some(mask) = field.mask
                && field.value.iter().zip(mask).any(|(value, mask)| value & !mask != 0)
            {
                return Err(wrong(ErrorKind::Value, "match field (bits outside of its mask)"));
            }

            let Some(known) = field.id().known() else { continue };
            if !known.kind.allows(field.value.len()) {
                return Err(wrong(ErrorKind::LengthWrong, known.name));
            }
            if field.mask.is_some() && !known.maskable {
                return Err(wrong(ErrorKind::Value, known.name));
            }
            if known.needs.is_empty() {
                continue;
            }

            let mut met = false;
            for earlier in self.0.iter().take(index) {
                let earlier = earlier?;
                met |= known.needs.iter().any(|need| earlier.meets(need));
            }

            if !met {
                return Err(wrong(ErrorKind::Missing, known.name));
            }
        }

        Ok(())
    }
}

impl OxmField<'_> {
    /// Returns whether this field satisfies a prerequisite. The Nicira or ONF equivalent of the required
    /// field does, too.
    fn meets(&self, need: &Need) -> bool {
        let value = self.value.iter().fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
        let number = match self.id().standard() {
            id if id.class == BASIC => id.number,
            // Nicira's `vlan_tci` has its "tag present" bit at the same position as the standard `vlan_vid`.
            id if (id.class, id.number) == (NXM_OF, 4) => 6,
            _ => return false,
        };
        need.number == number && need.value.map_or(value & 0x1000 != 0, |wanted| u64::from(wanted) == value)
    }
}

impl<'a> Value<'a> for OxmFields<'a> {
    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        List::read(reader).map(Self)
    }

    #[inline]
    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.0.write(writer)
    }

    fn show(&self, _version: Version, sink: &mut dyn Sink) {
        sink.open_record();
        for field in self.0 {
            match field {
                Ok(field) => field.show_entry(sink),
                Err(error) => sink.error(error),
            }
        }
        sink.close_record();
    }

    fn compose(source: &dyn Source, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let mut index = 0;
        while let Some((name, value)) = source.entry(index) {
            OxmField::compose_entry(name, value, writer)?;
            index += 1;
        }
        Ok(())
    }
}
