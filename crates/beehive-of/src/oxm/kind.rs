//! The types of field values, and their text notation.

use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

use crate::address::MacAddress;
use crate::port_number::PortNo;

/// The type and the length of a field's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldKind {
    /// A port number, 4 bytes.
    Port,
    /// An Ethernet address.
    Mac,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// A number with this many bytes, shown in decimal.
    Decimal(u8),
    /// A number with this many bytes, shown in hexadecimal.
    Hex(u8),
    /// At most this many bytes.
    Bytes(u8),
}

impl FieldKind {
    /// Returns the length of the value in bytes, or the maximum length if it varies.
    pub const fn length(self) -> u8 {
        match self {
            Self::Port | Self::Ipv4 => 4,
            Self::Mac => 6,
            Self::Ipv6 => 16,
            Self::Decimal(length) | Self::Hex(length) | Self::Bytes(length) => length,
        }
    }

    /// Returns whether a value may have this length.
    pub const fn allows(self, length: usize) -> bool {
        match self {
            Self::Bytes(most) => length <= most as usize,
            _ => length == self.length() as usize,
        }
    }

    /// Writes a value.
    ///
    /// # Errors
    ///
    /// Returns the error of the formatter.
    pub fn format(self, value: &[u8], formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = || value.iter().take(8).fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
        match self {
            Self::Port => write!(formatter, "{}", PortNo(number() as u32)),
            Self::Mac => match <[u8; 6]>::try_from(value) {
                Ok(address) => write!(formatter, "{}", MacAddress(address)),
                Err(_) => digits(value, formatter),
            },
            Self::Ipv4 => write!(formatter, "{}", Ipv4Addr::from_bits(number() as u32)),
            Self::Ipv6 => match <[u8; 16]>::try_from(value) {
                Ok(address) => write!(formatter, "{}", Ipv6Addr::from(address)),
                Err(_) => digits(value, formatter),
            },
            Self::Decimal(_) => write!(formatter, "{}", number()),
            Self::Hex(length) if length <= 8 => {
                write!(formatter, "{:#0width$x}", number(), width = 2 + 2 * usize::from(length))
            }
            Self::Hex(_) | Self::Bytes(_) => {
                formatter.write_str("0x")?;
                digits(value, formatter)
            }
        }
    }

    /// Parses a value from text into the last bytes of `into`. Returns its length.
    pub fn parse(self, text: &str, into: &mut [u8; 128]) -> Option<usize> {
        let length = usize::from(self.length());
        let mut put = |bytes: &[u8]| -> Option<usize> {
            into.get_mut(128 - bytes.len()..)?.copy_from_slice(bytes);
            Some(bytes.len())
        };

        match self {
            Self::Port => match PortNo::from_name(text) {
                Some(port) => put(&port.0.to_be_bytes()),
                None => put(&u32::try_from(number(text)?).ok()?.to_be_bytes()),
            },
            Self::Mac => put(&text.parse::<MacAddress>().ok()?.0),
            Self::Ipv4 => put(&text.parse::<Ipv4Addr>().ok()?.octets()),
            Self::Ipv6 => put(&text.parse::<Ipv6Addr>().ok()?.octets()),
            Self::Decimal(_) => {
                let bytes = number(text)?.to_be_bytes();
                let (zeros, value) = bytes.split_at_checked(8usize.checked_sub(length)?)?;
                zeros.iter().all(|byte| *byte == 0).then(|| put(value))?
            }
            Self::Hex(_) | Self::Bytes(_) => {
                let digits = text.strip_prefix("0x")?.as_bytes();
                let exact = matches!(self, Self::Hex(_));
                let bytes = digits.len().div_ceil(2);
                if bytes > length || (exact && digits.is_empty()) {
                    return None;
                }

                let length = if exact { length } else { bytes };
                let to = into.get_mut(128 - length..)?;
                to.fill(0);
                for (place, digit) in digits.iter().rev().enumerate() {
                    let value = char::from(*digit).to_digit(16)? as u8;
                    *to.get_mut(length - 1 - place / 2)? |= value << (4 * (place % 2));
                }

                Some(length)
            }
        }
    }
}

/// Parses a number: decimal, or hexadecimal after `0x`.
pub(crate) fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None if text.starts_with('+') => None,
        None => text.parse().ok(),
    }
}

/// Writes bytes as hexadecimal digits.
pub(crate) fn digits(bytes: &[u8], formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
}
