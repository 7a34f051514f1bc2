//! Which packets, to text.

use core::fmt;

use super::field_names::name_of;
use super::match_parse::shorthand;
use super::value::{Shown, to_number};
use crate::any;
use crate::error::Error;
use crate::message::Match;
use crate::oxm::{FieldKind, OxmField, OxmFields, class};
use crate::schema::{List, Writer};
use crate::version::Version;

use bytes::BytesMut;

/// Tells the fields of a match as text, separated by commas; nothing when there are none.
///
/// A match of 1.0 or 1.1 is told as if it were a list of fields.
/// A malformed list ends with what is wrong in angle brackets.
pub fn show_fields<'a>(fields: &Match<'a>, version: Version) -> impl fmt::Display + use<'a> {
    ShownMatch { fields: *fields, version }
}

struct ShownMatch<'a> {
    fields: Match<'a>,
    version: Version,
}

impl fmt::Display for ShownMatch<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fields {
            Match::Fields(fields) => show_list(&fields, formatter),
            other => match other.generalise() {
                Ok(fields) => show_general(&fields, self.version, formatter),
                Err(error) => write!(formatter, "<{error}>"),
            },
        }
    }
}

/// A match without its version: by way of the list of fields that it is in later versions.
fn show_general(fields: &any::Match, version: Version, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut out = BytesMut::new();
    // What was not understood cannot be told.
    let known = any::Match { other: 0, ..*fields };
    let told = any::write_match(&known, &mut Writer::new(version.max(Version::V1_2), &mut out));
    // A list is preceded by its type and its length, and followed by padding.
    let length = out.get(2..4).and_then(|length| length.try_into().ok()).map_or(0, u16::from_be_bytes);
    let list = out.get(4..usize::from(length)).unwrap_or(&[]);
    match told {
        Ok(()) => show_list(&OxmFields(List::of_bytes(version, list)), formatter)?,
        Err(error) => write!(formatter, "<{error}>")?,
    }
    match fields.other {
        0 => Ok(()),
        other => write!(formatter, ",unknown({other})"),
    }
}

/// A list of fields.
pub(super) fn show_list(fields: &OxmFields<'_>, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut separator = "";
    let basic = |number: u8| -> Result<Option<u128>, Error> {
        Ok(fields.basic(number)?.filter(|field| field.mask.is_none()).map(|field| to_number(field.value)))
    };
    let (eth_type, protocol) = match (basic(5), basic(10)) {
        (Ok(eth_type), Ok(protocol)) => (eth_type, protocol),
        _ => (None, None),
    };
    let word =
        eth_type.and_then(|eth_type| shorthand(eth_type as u16, protocol.map(|protocol| protocol as u8)));
    for field in fields.0 {
        let field = match field {
            Ok(field) => field,
            Err(error) => return write!(formatter, "{separator}<{error}>"),
        };
        match (field.class, field.number, word) {
            (class::BASIC, 5, Some((word, _))) => write!(formatter, "{separator}{word}")?,
            (class::BASIC, 10, Some((_, true))) => continue,
            _ => {
                formatter.write_str(separator)?;
                show_field(&field, formatter)?;
            }
        }
        separator = ",";
    }
    Ok(())
}

fn show_field(field: &OxmField<'_>, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    let id = field.id();
    let whole = to_number(field.value);
    match (name_of(id), id.known()) {
        (Some(_), Some(_)) if field.class == class::BASIC && field.number == 6 && field.mask.is_none() => {
            match whole {
                0 => formatter.write_str("dl_vlan=0xffff"),
                id if id & 0x1000 != 0 => write!(formatter, "dl_vlan={}", id & 0x0fff),
                id => write!(formatter, "vlan_vid={id:#x}"),
            }
        }
        (Some(name), Some(known))
            if known.kind.allows(field.value.len()) && !matches!(known.kind, FieldKind::Bytes(_)) =>
        {
            let shown = Shown { id, kind: known.kind, value: field.value, mask: field.mask };
            write!(formatter, "{name}={shown}")
        }
        _ => write!(formatter, "{field}"),
    }
}
