//! Parses and displays values of fields: numbers, addresses, ports and flags, with their masks.

use alloc::borrow::ToOwned;
use alloc::vec::Vec;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

use crate::address::MacAddress;
use crate::oxm::{FieldId, FieldKind, class};
use crate::port_number::PortNo;

/// Maximum length of a value that is parsed as a number, in bytes.
pub(super) const LENGTH_MAX: usize = 16;

/// A value and its mask, right-aligned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Value {
    pub(super) value: u128,
    /// The bits to compare or set; `None` means all bits.
    pub(super) mask: Option<u128>,
}

/// Parses a number as in C and Open vSwitch: hexadecimal after `0x`, octal after `0`, or else decimal.
/// Decimal and octal numbers have at most 64 bits, regardless of the field.
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

/// Parses a 64-bit number, which may be negative: `-1` has all bits set.
pub(super) fn wide(text: &str) -> Option<u64> {
    match text.strip_prefix('-') {
        Some(text) => small::<u64>(text.strip_prefix('+').is_none().then_some(text)?).map(u64::wrapping_neg),
        None => small(text),
    }
}

/// Parses a number that is always decimal. In some places, Open vSwitch interprets `010` as 10, and `0x10` as
/// 0.
pub(super) fn decimal<T: TryFrom<u128>>(text: &str) -> Option<T> {
    let digits = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    digits.then(|| text.parse::<u128>().ok())??.try_into().ok()
}

/// Parses a number that must fit in the type.
pub(super) fn small<T: TryFrom<u128>>(text: &str) -> Option<T> {
    number(text)?.try_into().ok()
}

/// Parses a port: a number, or the name of a reserved port, ignoring case.
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
            // The 16-bit numbers of 1.0's reserved ports are also accepted.
            Some(match u16::try_from(number) {
                Ok(short) => PortNo::from_v10(short),
                Err(_) => PortNo(number),
            })
        }
    }
}

/// Returns a number of `length` bytes of ones.
pub(super) fn ones(length: usize) -> u128 {
    match length {
        LENGTH_MAX.. => u128::MAX,
        length => (1 << (8 * length)) - 1,
    }
}

/// Returns the names of a field's flags, the least significant bit first; empty for fields without flags.
pub(super) fn flags_of(id: FieldId) -> &'static [&'static str] {
    let id = id.standard();
    match (id.class, id.number) {
        (class::NXM_NX, 104) => &["oam"],
        (class::NXM_NX, 105) => &["new", "est", "rel", "rpl", "inv", "trk", "snat", "dnat"],
        (class::BASIC, 42) => &["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns"],
        _ => &[],
    }
}

/// Parses `+one-other`: flags that must be set, and flags that must be clear.
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
            // A byte may be written with one digit.
            let byte = |text: &str| hexadecimal(text).filter(|_| matches!(text.len(), 1 | 2));
            parts(text, ':', 6, byte)?
        }

        FieldKind::Ipv4 => ipv4(text)?.to_bits().into(),
        FieldKind::Ipv6 => text.parse::<Ipv6Addr>().ok()?.to_bits(),
        FieldKind::Hex(8) => wide(text)?.into(),
        FieldKind::Decimal(_) | FieldKind::Hex(_) | FieldKind::Bytes(_) => number(text)?,
    })
}

/// Parses `count` bytes, most significant first.
fn parts(text: &str, separator: char, count: usize, byte: impl Fn(&str) -> Option<u128>) -> Option<u128> {
    if text.split(separator).count() != count {
        return None;
    }
    text.split(separator).try_fold(0, |number, part| Some(number << 8 | byte(part)?))
}

/// Parses an IPv4 address, whose bytes may have leading zeros and are always decimal.
pub(super) fn ipv4(text: &str) -> Option<Ipv4Addr> {
    let byte = |text: &str| decimal::<u8>(text).filter(|_| text.len() <= 3).map(u128::from);
    parts(text, '.', 4, byte).map(|number| Ipv4Addr::from_bits(number as u32))
}

/// Parses `one|other`: exactly these flags must be set.
fn all_flags(text: &str, names: &[&str]) -> Option<Value> {
    let bit = |name: &str| names.iter().position(|known| *known == name).map(|bit| 1 << bit);
    let value = text.split('|').try_fold(0, |value: u128, name| Some(value | bit(name)?))?;
    Some(Value { value, mask: None })
}

/// Parses a value of a field.
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
        // `tcp_flags` has three more bits, which have no names.
        let bits = names.len() + if names.len() == 9 { 3 } else { 0 };
        return Some(value).filter(|value| (value.value | value.mask.unwrap_or(0)) >> bits == 0);
    }
    if (id.class, id.number) == (class::NXM_OF, 0) {
        return Some(Value { value: port(text)?.to_v10()?.into(), mask: None });
    }

    masked(kind, text, length)
}

/// Parses a value of at most `length` bytes, with an optional mask.
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

/// The names of `ip_frag` values, each with value and mask. Bit 0 is set for any fragment, and bit 1 for any
/// fragment except the first.
const FRAGMENTS: &[(&str, u128, u128)] =
    &[("no", 0, 3), ("yes", 1, 1), ("first", 1, 3), ("later", 3, 3), ("not_later", 0, 2)];

fn fragment(text: &str) -> Option<Value> {
    let (_, value, mask) = FRAGMENTS.iter().find(|(name, ..)| name.eq_ignore_ascii_case(text))?;
    Some(Value { value: *value, mask: Some(*mask).filter(|mask| *mask != 3) })
}

/// Displays the value of a field.
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

/// Parses bytes in hexadecimal notation, with an optional mask. The shorter of value and mask is padded with
/// leading zeros.
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
        // The value and the mask must fit together in one field.
        if 2 * length > OPTION_LENGTH_MAX {
            return None;
        }
        value.iter_mut().zip(mask).for_each(|(value, mask)| *value &= *mask);
    }

    Some((value, mask))
}

/// Maximum length of the value of a tunnel option, in bytes.
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
