//! Values of fields: numbers, addresses, ports and flags, with their masks.

use alloc::borrow::ToOwned;
use alloc::vec::Vec;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

use crate::address::MacAddress;
use crate::oxm::{FieldId, FieldKind, class};
use crate::port_number::PortNo;

/// The longest value that has a notation here, in bytes.
pub(super) const LENGTH_MAX: usize = 16;

/// A value and its mask, right-aligned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Value {
    pub(super) value: u128,
    /// The bits that count, if not all.
    pub(super) mask: Option<u128>,
}

/// A number: decimal, hexadecimal after `0x`, octal after `0`. Open vSwitch reads it like this, as C does; its decimal
/// numbers have 64 bits, whatever the field has.
pub(super) fn number(text: &str) -> Option<u128> {
    let text = text.strip_prefix('+').unwrap_or(text);
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return hexadecimal(digits);
    }
    if !text.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let octal = text.len() > 1 && text.starts_with('0');
    u64::from_str_radix(text, if octal { 8 } else { 10 }).ok().map(u128::from)
}

fn hexadecimal(digits: &str) -> Option<u128> {
    let all = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if all { u128::from_str_radix(digits, 16).ok() } else { None }
}

/// A number of 64 bits, all of which `-1` has.
pub(super) fn wide(text: &str) -> Option<u64> {
    match text.strip_prefix('-') {
        Some(text) => small::<u64>(text.strip_prefix('+').is_none().then_some(text)?).map(u64::wrapping_neg),
        None => small(text),
    }
}

/// A number that is decimal whatever it starts with: Open vSwitch takes `010` for 10 in some places, and `0x10` for 0.
pub(super) fn decimal<T: TryFrom<u128>>(text: &str) -> Option<T> {
    let digits = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    digits.then(|| text.parse::<u128>().ok())??.try_into().ok()
}

/// A number of a type.
pub(super) fn small<T: TryFrom<u128>>(text: &str) -> Option<T> {
    number(text)?.try_into().ok()
}

/// A port: a number, or the name of a reserved one in any case.
pub(super) fn port(text: &str) -> Option<PortNo> {
    let none = text.eq_ignore_ascii_case("none");
    let named = (0..=8u32)
        .map(|index| PortNo(u32::MAX - index))
        .find(|port| port.name().is_some_and(|name| name.eq_ignore_ascii_case(text)));
    match named {
        Some(port) => Some(port),
        None if none => Some(PortNo::ANY),
        None => {
            let number: u32 = decimal(text)?;
            // The reserved ports of 1.0 have their 16 bits in text, too.
            Some(match u16::try_from(number) {
                Ok(short) => PortNo::from_v10(short),
                Err(_) => PortNo(number),
            })
        }
    }
}

/// All ones, so many bytes.
pub(super) fn ones(length: usize) -> u128 {
    match length {
        LENGTH_MAX.. => u128::MAX,
        length => (1 << (8 * length)) - 1,
    }
}

/// The names of the bits of a field that has flags, from the lowest on.
pub(super) fn flags_of(id: FieldId) -> &'static [&'static str] {
    let id = id.standard();
    match (id.class, id.number) {
        (class::NXM_NX, 104) => &["oam"],
        (class::NXM_NX, 105) => &["new", "est", "rel", "rpl", "inv", "trk", "snat", "dnat"],
        (class::BASIC, 42) => &["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns"],
        _ => &[],
    }
}

/// `+one-other`: which flags are set, and which are not.
fn flags(text: &str, names: &[&str]) -> Option<Value> {
    let (mut value, mut mask) = (0u128, 0u128);
    let mut rest = text;
    while !rest.is_empty() {
        let set = match rest.as_bytes().first()? {
            b'+' => true,
            b'-' => false,
            _ => return None,
        };
        rest = rest.get(1..)?;
        let end = rest.find(['+', '-']).unwrap_or(rest.len());
        let (name, after) = rest.split_at_checked(end)?;
        let bit = 1 << names.iter().position(|known| *known == name)?;
        if mask & bit != 0 {
            return None;
        }
        mask |= bit;
        value |= if set { bit } else { 0 };
        rest = after;
    }
    Some(Value { value, mask: Some(mask) })
}

fn one(kind: FieldKind, text: &str) -> Option<u128> {
    Some(match kind {
        FieldKind::Port => port(text)?.0.into(),
        FieldKind::Mac => {
            // A byte may have one digit.
            let byte = |text: &str| hexadecimal(text).filter(|_| matches!(text.len(), 1 | 2));
            parts(text, ':', 6, byte)?
        }
        FieldKind::Ipv4 => ipv4(text)?.to_bits().into(),
        FieldKind::Ipv6 => text.parse::<Ipv6Addr>().ok()?.to_bits(),
        FieldKind::Hex(8) => wide(text)?.into(),
        FieldKind::Decimal(_) | FieldKind::Hex(_) | FieldKind::Bytes(_) => number(text)?,
    })
}

/// So many bytes, the first one the highest.
fn parts(text: &str, separator: char, count: usize, byte: impl Fn(&str) -> Option<u128>) -> Option<u128> {
    if text.split(separator).count() != count {
        return None;
    }
    text.split(separator).try_fold(0, |number, part| Some(number << 8 | byte(part)?))
}

/// An address, whose bytes are decimal with any zeros before them.
pub(super) fn ipv4(text: &str) -> Option<Ipv4Addr> {
    let byte = |text: &str| decimal::<u8>(text).filter(|_| text.len() <= 3).map(u128::from);
    parts(text, '.', 4, byte).map(|number| Ipv4Addr::from_bits(number as u32))
}

/// `one|other`: which flags are set, and no others.
fn all_flags(text: &str, names: &[&str]) -> Option<Value> {
    let bit = |name: &str| names.iter().position(|known| *known == name).map(|bit| 1 << bit);
    let value = text.split('|').try_fold(0, |value: u128, name| Some(value | bit(name)?))?;
    Some(Value { value, mask: None })
}

/// Reads a value of a field.
pub(super) fn parse(id: FieldId, kind: FieldKind, text: &str) -> Option<Value> {
    let length = usize::from(kind.length()).min(LENGTH_MAX);
    if (id.class, id.number) == (class::NXM_NX, 26) {
        return fragment(text);
    }
    if (id.class, id.number) == (class::BASIC, 44) {
        let (space, kind) = text.strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
        let (space, kind) = (small::<u16>(space.trim())?, small::<u16>(kind.trim())?);
        return Some(Value { value: u128::from(space) << 16 | u128::from(kind), mask: None });
    }
    let names = flags_of(id);
    if !names.is_empty() {
        let value = match text {
            text if text.starts_with(['+', '-']) => flags(text, names),
            text if !text.starts_with(|letter: char| letter.is_ascii_digit()) => all_flags(text, names),
            text => masked(kind, text, length),
        }?;
        // The three above the names of TCP have none, but are bits of the field.
        let bits = names.len() + if names.len() == 9 { 3 } else { 0 };
        return Some(value).filter(|value| (value.value | value.mask.unwrap_or(0)) >> bits == 0);
    }
    if (id.class, id.number) == (class::NXM_OF, 0) {
        return Some(Value { value: port(text)?.to_v10()?.into(), mask: None });
    }
    masked(kind, text, length)
}

/// A value of so many bytes, which may have a mask.
fn masked(kind: FieldKind, text: &str, length: usize) -> Option<Value> {
    let (value, mask) = match text.split_once('/') {
        None => (one(kind, text)?, None),
        Some((value, mask)) => {
            let bits = 8 * length as u32;
            let prefix =
                matches!(kind, FieldKind::Ipv4 | FieldKind::Ipv6).then(|| decimal::<u32>(mask)).flatten();
            let mask = match prefix {
                Some(prefix) if prefix > bits => return None,
                Some(0) => 0,
                Some(prefix) => ones(length) & (u128::MAX << (bits - prefix)),
                None if kind == FieldKind::Port => number(mask)?,
                None => one(kind, mask)?,
            };
            (one(kind, value)?, Some(mask))
        }
    };
    let all = ones(length);
    if value > all || mask.is_some_and(|mask| mask > all) {
        return None;
    }
    Some(Value { value, mask: mask.filter(|mask| *mask != all) })
}

/// Which fragments: bit 0 for any, bit 1 for all but the first. With the value and the mask that each is.
const FRAGMENTS: &[(&str, u128, u128)] =
    &[("no", 0, 3), ("yes", 1, 1), ("first", 1, 3), ("later", 3, 3), ("not_later", 0, 2)];

fn fragment(text: &str) -> Option<Value> {
    let (_, value, mask) = FRAGMENTS.iter().find(|(name, ..)| name.eq_ignore_ascii_case(text))?;
    Some(Value { value: *value, mask: Some(*mask).filter(|mask| *mask != 3) })
}

/// A field's value as text.
pub(super) struct Shown<'v> {
    pub(super) id: FieldId,
    pub(super) kind: FieldKind,
    pub(super) value: &'v [u8],
    pub(super) mask: Option<&'v [u8]>,
}

pub(super) fn to_number(bytes: &[u8]) -> u128 {
    bytes.iter().rev().take(LENGTH_MAX).rev().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, mask) = (to_number(self.value), self.mask.map(to_number));
        let names = flags_of(self.id);
        if let Some(mask) = mask
            && !names.is_empty()
            && mask >> names.len() == 0
            && mask != 0
        {
            for (bit, name) in names.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1) {
                write!(formatter, "{}{name}", if value >> bit & 1 == 1 { '+' } else { '-' })?;
            }
            return Ok(());
        }
        if (self.id.class, self.id.number) == (class::NXM_NX, 26)
            && let Some((name, ..)) =
                FRAGMENTS.iter().find(|(_, known, bits)| *known == value && *bits == mask.unwrap_or(3))
        {
            return formatter.write_str(name);
        }
        if (self.id.class, self.id.number) == (class::BASIC, 44) {
            return write!(formatter, "({},{:#x})", value >> 16, value & 0xffff);
        }
        write_one(self.kind, value, formatter)?;
        let Some(mask) = mask else { return Ok(()) };
        formatter.write_str("/")?;
        let bits = 8 * self.value.len() as u32;
        let prefix = (mask << (128 - bits.clamp(1, 128))).leading_ones();
        match self.kind {
            FieldKind::Ipv4 | FieldKind::Ipv6 if mask.count_ones() == prefix => write!(formatter, "{prefix}"),
            FieldKind::Port | FieldKind::Decimal(_) => write!(formatter, "{mask:#x}"),
            kind => write_one(kind, mask, formatter),
        }
    }
}

/// Bytes in hexadecimal notation, and those that count after a slash; as long as the longer of them.
pub(super) fn parse_bytes(text: &str) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let bytes = |text: &str| -> Option<Vec<u8>> {
        let digits = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => digits.to_owned(),
            None => alloc::format!("{:x}", number(text)?),
        };
        if digits.is_empty()
            || digits.len() > 2 * OPTION_LENGTH_MAX
            || !digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        {
            return None;
        }
        let even = if digits.len() % 2 == 1 { alloc::format!("0{digits}") } else { digits };
        even.as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok())
            .collect()
    };
    let (value, mask) = text.split_once('/').map_or((text, None), |(value, mask)| (value, Some(mask)));
    let (mut value, mut mask) = (bytes(value)?, mask.map(bytes).map_or(Some(None), |mask| mask.map(Some))?);
    if let Some(mask) = &mut mask {
        let length = value.len().max(mask.len());
        for shorter in [&mut value, mask] {
            shorter.splice(0..0, core::iter::repeat_n(0, length - shorter.len()));
        }
        // A value and its mask are one field.
        if 2 * length > OPTION_LENGTH_MAX {
            return None;
        }
        value.iter_mut().zip(mask).for_each(|(value, mask)| *value &= *mask);
    }
    Some((value, mask))
}

/// The longest value of an option of a tunnel, in bytes.
const OPTION_LENGTH_MAX: usize = 124;

fn write_one(kind: FieldKind, value: u128, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    match kind {
        FieldKind::Port => match PortNo(value as u32).name() {
            Some(name) => formatter.write_str(name),
            None => write!(formatter, "{value}"),
        },
        FieldKind::Mac => {
            let [.., a, b, c, d, e, f] = value.to_be_bytes();
            write!(formatter, "{}", MacAddress([a, b, c, d, e, f]))
        }
        FieldKind::Ipv4 => write!(formatter, "{}", Ipv4Addr::from_bits(value as u32)),
        FieldKind::Ipv6 => write!(formatter, "{}", Ipv6Addr::from_bits(value)),
        FieldKind::Decimal(_) => write!(formatter, "{value}"),
        FieldKind::Hex(_) | FieldKind::Bytes(_) => write!(formatter, "{value:#x}"),
    }
}
