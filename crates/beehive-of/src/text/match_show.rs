//! Displays matches.

use core::fmt;

use super::field_names::name_in_match;
use super::match_parse::shorthand;
use super::value::{Shown, to_number};
use crate::any;
use crate::message::Match;
use crate::oxm::{FieldKind, OxmField, OxmFields, class};
use crate::schema::{List, Writer};
use crate::version::Version;

use bytes::BytesMut;

/// Displays the fields of a match, separated by commas, or the empty string if there are none.
///
/// A match of 1.0 or 1.1 is displayed like a list of fields. A malformed list ends with the error in angle
/// brackets.
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
            Match::Fields(fields) | Match::Fields1_1(fields) => show_list(&fields, formatter),
            other => match other.generalize() {
                Ok(fields) => show_general(&fields, self.version, formatter),
                Err(error) => write!(formatter, "<{error}>"),
            },
        }
    }
}

/// Displays a version-independent match by converting it to a list of fields.
fn show_general(fields: &any::Match, version: Version, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut out = BytesMut::new();

    // Encoding fails if `other` is set, so clear it and display the count separately.
    let known = any::Match { other: 0, ..*fields }.with_tag();
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

/// Displays a list of fields.
pub(super) fn show_list(fields: &OxmFields<'_>, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut separator = "";
    let exact = |number: u8| {
        let is_it = |field: &OxmField<'_>| {
            let id = field.id().standard();
            (id.class, id.number, id.masked) == (class::BASIC, number, false)
        };
        fields.0.iter().flatten().find(is_it).map(|field| to_number(field.value))
    };
    let (eth_type, protocol) = (exact(5), exact(10));
    let word =
        eth_type.and_then(|eth_type| shorthand(eth_type as u16, protocol.map(|protocol| protocol as u8)));
    for field in fields.0 {
        let field = match field {
            Ok(field) => field,
            Err(error) => return write!(formatter, "{separator}<{error}>"),
        };
        let id = field.id().standard();
        match (id.class, id.number, word) {
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

/// Displays the value and the mask of a tunnel option with all their digits.
pub(super) struct Bytes<'f, 'a>(pub(super) &'f OxmField<'a>);

impl fmt::Display for Bytes<'_, '_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut prefix = "0x";
        for bytes in [Some(self.0.value), self.0.mask].into_iter().flatten() {
            formatter.write_str(prefix)?;
            // `0x` without digits would not be a number.
            if bytes.is_empty() {
                formatter.write_str("0")?;
            }
            bytes.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))?;
            prefix = "/0x";
        }

        Ok(())
    }
}

fn show_field(field: &OxmField<'_>, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    let id = field.id();
    let whole = to_number(field.value);
    match (name_in_match(id), id.known()) {
        (Some(_), Some(_)) if field.class == class::BASIC && field.number == 6 && field.mask.is_none() => {
            match whole {
                0 => formatter.write_str("dl_vlan=0xffff"),
                id if id & 0x1000 != 0 => write!(formatter, "dl_vlan={}", id & 0x0fff),
                id => write!(formatter, "vlan_vid={id:#x}"),
            }
        }
        (Some(name), Some(_)) if id.is_option() => {
            formatter.write_str(name)?;
            match (field.value, field.mask) {
                // The option must be present, but may have any value.
                (&[] | &[0], Some(&[] | &[0])) => Ok(()),
                _ => write!(formatter, "={}", Bytes(field)),
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
