//! Parses and displays the actions that add and remove headers: `encap(nsh(md_type=1))`, `decap()`.

use alloc::vec::Vec;
use core::fmt;

use super::error::{Fault, Problem};
use super::nicira_parse::argument;
use super::token::Tokens;
use super::value::{decimal, small};
use crate::message::{Decap, Encap};

/// The packet types that `encap` knows by name.
const PACKET_TYPES: &[(&str, u32)] =
    &[("ethernet", 0), ("nsh", 0x1_894f), ("mpls", 0x1_8847), ("mpls_mc", 0x1_8848)];

/// The packet type that means "use the type of the next header".
const BELOW: u32 = 0xfffe;

/// The class of the properties of a network service header, and the types of these properties.
const NSH: u16 = 4;
const MD_TYPE: u8 = 1;
const TLV: u8 = 2;

/// Parses the argument of `encap`: the packet type and the properties.
pub(super) fn encapsulation(text: &str) -> Result<(u32, Vec<u8>), Fault<'_>> {
    let mut parts = Tokens(text);
    let header = parts.next().ok_or(Fault::new(text, Problem::MissingValue))??;
    if parts.next().is_some() {
        return Err(Fault::new(text, Problem::Value));
    }

    let named = PACKET_TYPES.iter().find(|(name, _)| *name == header.name).map(|(_, number)| *number);
    let packet_type = named.or_else(|| small(header.name)).ok_or(header.fault(Problem::Name))?;
    let mut properties = Vec::new();
    match header.value {
        Some(inner) if header.parenthesized && header.name == "nsh" => {
            for property in Tokens(inner) {
                let property = property?;
                match property.name {
                    "md_type" => {
                        properties.extend(NSH.to_be_bytes());
                        let kind: u8 = argument(&property)?;
                        if !matches!(kind, 1 | 2) {
                            return Err(property.fault(Problem::Value));
                        }
                        properties.extend([MD_TYPE, 5, kind, 0, 0, 0]);
                    }
                    "tlv" => put_tlv(property.want()?, &mut properties)?,
                    _ => return Err(property.fault(Problem::Name)),
                }
            }
        }
        Some(_) => return Err(header.fault(Problem::Value)),
        None => {}
    }

    Ok((packet_type, properties))
}

/// Appends a property written as `class,type,0xdigits`.
fn put_tlv<'t>(text: &'t str, properties: &mut Vec<u8>) -> Result<(), Fault<'t>> {
    let wrong = Fault::new(text, Problem::Value);
    let mut parts = text.split(',').map(str::trim);
    let (Some(class), Some(kind), Some(digits), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(wrong);
    };
    let class: u16 = small(class).filter(|_| class.starts_with("0x")).ok_or(wrong)?;
    let kind: u8 = decimal(kind).ok_or(wrong)?;
    let digits = digits.strip_prefix("0x").ok_or(wrong)?;
    let bytes: Option<Vec<u8>> = digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok())
        .collect();
    let bytes =
        bytes.filter(|bytes| digits.len() % 2 == 0 && (1..=124).contains(&bytes.len())).ok_or(wrong)?;
    let length = (8 + bytes.len()).next_multiple_of(8);
    properties.extend(NSH.to_be_bytes());
    properties.extend([TLV, length as u8]);
    properties.extend(class.to_be_bytes());
    properties.extend([kind, bytes.len() as u8]);
    properties.extend(&bytes);
    properties.resize(properties.len() + length - 8 - bytes.len(), 0);
    Ok(())
}

/// Parses the argument of `decap`: the type of the remaining packet.
pub(super) fn decapsulated(text: &str) -> Result<u32, Fault<'_>> {
    let mut parts = Tokens(text);
    let Some(token) = parts.next() else { return Ok(BELOW) };
    if let Some(more) = parts.next() {
        return Err(more?.fault(Problem::Name));
    }

    let token = token?;
    let (mut space, mut kind) = (None, None);
    if token.name != "packet_type" {
        return Err(token.fault(Problem::Name));
    }

    for part in Tokens(token.want()?) {
        let part = part?;
        match part.name {
            // Only the name spaces 0 to 4 are defined.
            "ns" => {
                let number = Some(argument::<u16>(&part)?).filter(|space| *space < 5);
                space = Some(number.ok_or(part.fault(Problem::Value))?);
            }
            "type" if space.is_none() => return Err(part.fault(Problem::Order)),
            "type" => kind = Some(argument::<u16>(&part)?),
            _ => return Err(part.fault(Problem::Name)),
        }
    }

    let (space, kind) = space.zip(kind).ok_or(token.fault(Problem::MissingValue))?;
    Ok(u32::from(space) << 16 | u32::from(kind))
}

/// Writes `encap(..)`.
pub(super) fn show_encapsulation(encap: &Encap<'_>, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match PACKET_TYPES.iter().find(|(_, number)| *number == encap.packet_type) {
        Some((name, _)) => write!(out, "encap({name}")?,
        None => write!(out, "encap({:#x}", encap.packet_type)?,
    }

    let mut rest = encap.properties;
    let mut separator = "(";
    while let [high, low, kind, length, ..] = *rest {
        let length = usize::from(length).max(4);
        let (Some(body), after) =
            (rest.get(4..length), rest.get(length.next_multiple_of(8)..).unwrap_or(&[]))
        else {
            return out.write_str(separator).and_then(|()| out.write_str("truncated))"));
        };

        out.write_str(separator)?;
        separator = ",";
        match (u16::from_be_bytes([high, low]), kind, body) {
            (NSH, MD_TYPE, &[kind]) => write!(out, "md_type={kind}")?,
            (NSH, TLV, &[high, low, kind, length, ref bytes @ ..]) => {
                write!(out, "tlv({:#06x},{kind},0x", u16::from_be_bytes([high, low]))?;
                let bytes = bytes.get(..usize::from(length)).unwrap_or(bytes);
                bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
                out.write_str(")")?;
            }
            (class, kind, body) => write!(out, "unknown({class}:{kind}:{} bytes)", body.len())?,
        }

        rest = after;
    }

    out.write_str(if separator == "(" { ")" } else { "))" })
}

/// Writes `decap(..)`.
pub(super) fn show_decapsulated(decap: &Decap, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match decap.packet_type {
        BELOW => out.write_str("decap()"),
        kind => write!(out, "decap(packet_type(ns={},type={:#x}))", kind >> 16, kind & 0xffff),
    }
}
