//! Parses and displays bit ranges of fields: `reg0[4..11]`, `reg0[]`, `NXM_OF_ETH_SRC[]`.

use core::fmt;

use super::error::{Fault, Problem};
use super::field_names::{name_of, named};
use super::value::decimal;
use crate::oxm::{FieldId, FieldKind, class, experimenter};

/// A bit range of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Subfield {
    pub(super) field: FieldId,
    pub(super) offset: u16,
    pub(super) count: u16,
}

/// Returns the number of bits of a field that can be addressed. This can be less than the number of bits in
/// its bytes.
pub(super) fn bits(field: FieldId) -> u16 {
    match (field.class, field.number) {
        // The "tag present" bit is not part of the identifier.
        (class::BASIC, 6) => 12,
        _ => field.bits(),
    }
}

/// Returns whether an action may set the field. Switches refuse to set other fields.
pub(super) fn writable(field: FieldId) -> bool {
    let id = field.standard();
    match id.class {
        class::BASIC => !matches!(id.number, 5 | 10 | 36 | 42..=44),
        class::NXM_NX => !matches!(id.number, 26 | 35..=37 | 105 | 106 | 119..=125),
        class::EXPERIMENTER => !matches!(
            (id.experimenter, id.number),
            (experimenter::NSH, 2 | 3) | (experimenter::NICIRA, 15 | 16)
        ),
        _ => true,
    }
}

impl Subfield {
    /// Parses a bit range that must be writable.
    pub(super) fn destination(text: &str) -> Result<Self, Fault<'_>> {
        let part = Self::parse(text)?;
        if writable(part.field) { Ok(part) } else { Err(Fault::new(text, Problem::ReadOnly)) }
    }

    /// Fails if the field's header does not fit in 32 bits in Open vSwitch's encoding.
    pub(super) fn short(part: Self, text: &str) -> Result<Self, Fault<'_>> {
        let long = part.field.class == class::EXPERIMENTER
            || (part.field.class == class::BASIC && part.field.number == 43);
        if long { Err(Fault::new(text, Problem::Value)) } else { Ok(part) }
    }

    /// Parses a bit range. Without brackets, the range is the whole field.
    pub(super) fn parse(text: &str) -> Result<Self, Fault<'_>> {
        let text = text.trim();
        let (name, range) = match text.split_once('[') {
            Some((name, range)) => {
                (name, range.strip_suffix(']').ok_or(Fault::new(text, Problem::Parentheses))?)
            }
            None => (text, ""),
        };
        let field = named(name).ok_or(Fault::new(name, Problem::Name))?;
        let width = bits(field);
        let wrong = Fault::new(text, Problem::Value);
        let (first, last) = match range.split_once("..") {
            Some((first, last)) => (decimal::<u16>(first).ok_or(wrong)?, decimal::<u16>(last).ok_or(wrong)?),
            None if range.is_empty() => (0, width.saturating_sub(1)),
            None => {
                let bit = decimal::<u16>(range).ok_or(wrong)?;
                (bit, bit)
            }
        };

        if first > last || last >= width {
            return Err(wrong);
        }

        Ok(Self { field, offset: first, count: last - first + 1 })
    }

    /// Returns the name and the kind of the field, if this is the whole field and its kind has a notation for
    /// values.
    pub(super) fn whole(&self) -> Option<(&'static str, FieldKind)> {
        let kind = self.field.known()?.kind;
        let all = (self.offset, self.count) == (0, bits(self.field)) && !matches!(kind, FieldKind::Bytes(_));
        Some((name_of(self.field)?, kind)).filter(|_| all)
    }

    /// Encodes the offset and the count minus one in 16 bits; `None` if they do not fit.
    pub(super) fn packed(&self) -> Option<u16> {
        (self.offset < 1 << 10 && self.count <= 64).then(|| self.offset << 6 | (self.count - 1))
    }

    pub(super) fn unpack(field: FieldId, packed: u16) -> Self {
        Self { field, offset: packed >> 6, count: (packed & 0x3f) + 1 }
    }
}

impl fmt::Display for Subfield {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match name_of(self.field) {
            Some(name) => formatter.write_str(name)?,
            None => write!(formatter, "{}", self.field)?,
        }
        match (self.offset, self.count) {
            (0, count) if count == bits(self.field) => formatter.write_str("[]"),
            (offset, 1) => write!(formatter, "[{offset}]"),
            (offset, count) => {
                write!(formatter, "[{offset}..{}]", (u32::from(offset) + u32::from(count)).saturating_sub(1))
            }
        }
    }
}
