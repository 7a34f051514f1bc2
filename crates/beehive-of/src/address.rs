//! Ethernet addresses, and values with a mask.

use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

/// An Ethernet (MAC) address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// The broadcast address, ff:ff:ff:ff:ff:ff.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Returns whether this is a group address: multicast or broadcast.
    #[inline]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(formatter, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// The error for text that is not six hexadecimal bytes separated by colons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotMacAddress;

impl fmt::Display for NotMacAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .write_str("invalid Ethernet address (expected six hexadecimal bytes, as in 02:00:00:00:00:01)")
    }
}

impl core::error::Error for NotMacAddress {}

impl FromStr for MacAddress {
    type Err = NotMacAddress;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut address = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut address {
            let part = parts.next().ok_or(NotMacAddress)?;
            if part.len() != 2 || part.starts_with('+') {
                return Err(NotMacAddress);
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| NotMacAddress)?;
        }

        parts.next().is_none().then_some(Self(address)).ok_or(NotMacAddress)
    }
}

/// A value with a mask. Only the bits that are 1 in the mask are compared.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Masked<T> {
    /// The value. In a well-formed match, the bits outside of the mask are zero.
    pub value: T,
    /// The bits to compare.
    pub mask: T,
}

/// An address type that supports masks.
pub trait Maskable: Copy + PartialEq {
    /// The mask that compares all bits.
    const ONES: Self;
}

impl Maskable for MacAddress {
    const ONES: Self = Self([0xff; 6]);
}

impl Maskable for Ipv4Addr {
    const ONES: Self = Self::BROADCAST;
}

impl Maskable for Ipv6Addr {
    const ONES: Self = Self::from_bits(u128::MAX);
}

impl<T: Maskable> Masked<T> {
    /// Creates a value whose bits are all compared.
    #[inline]
    pub const fn exact(value: T) -> Self {
        Self { value, mask: T::ONES }
    }

    /// Returns whether all bits are compared.
    #[inline]
    pub fn is_exact(&self) -> bool {
        self.mask == T::ONES
    }
}

impl<T: Maskable> From<T> for Masked<T> {
    #[inline]
    fn from(value: T) -> Self {
        Self::exact(value)
    }
}

impl Masked<Ipv4Addr> {
    /// Creates the network that contains `address` and has a prefix of `prefix` bits. Values above 32 are
    /// treated as 32.
    pub fn network(address: Ipv4Addr, prefix: u32) -> Self {
        let mask = u32::MAX.checked_shl(32u32.saturating_sub(prefix)).unwrap_or(0);
        Self { value: Ipv4Addr::from_bits(address.to_bits() & mask), mask: Ipv4Addr::from_bits(mask) }
    }

    /// Returns the prefix length if the mask is a prefix.
    pub fn prefix(&self) -> Option<u32> {
        let mask = self.mask.to_bits();
        (mask.leading_ones() + mask.trailing_zeros() == 32 || mask == u32::MAX).then_some(mask.leading_ones())
    }
}

impl Masked<Ipv6Addr> {
    /// Creates the network that contains `address` and has a prefix of `prefix` bits. Values above 128 are
    /// treated as 128.
    pub fn network(address: Ipv6Addr, prefix: u32) -> Self {
        let mask = u128::MAX.checked_shl(128u32.saturating_sub(prefix)).unwrap_or(0);
        Self { value: Ipv6Addr::from_bits(address.to_bits() & mask), mask: Ipv6Addr::from_bits(mask) }
    }
}

impl<T: Maskable + fmt::Display> fmt::Display for Masked<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_exact() {
            write!(formatter, "{}", self.value)
        } else {
            write!(formatter, "{}/{}", self.value, self.mask)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn addresses_read_back_as_written() {
        let address = MacAddress([0, 0x1b, 0x21, 0xff, 0, 9]);
        assert_eq!(address.to_string().parse(), Ok(address));
        for wrong in [
            "",
            "00:11:22:33:44",
            "00:11:22:33:44:55:66",
            "0:11:22:33:44:55",
            "00:11:22:33:44:5g",
            "+1:11:22:33:44:55",
        ] {
            assert_eq!(wrong.parse::<MacAddress>(), Err(NotMacAddress), "{wrong}");
        }
    }

    #[test]
    fn prefixes() {
        let address = Ipv4Addr::new(10, 1, 2, 3);
        for prefix in 0..=32 {
            assert_eq!(Masked::<Ipv4Addr>::network(address, prefix).prefix(), Some(prefix));
        }
        assert_eq!(Masked::<Ipv4Addr>::network(address, 8).to_string(), "10.0.0.0/255.0.0.0");
        assert_eq!(Masked { value: address, mask: Ipv4Addr::new(255, 0, 255, 0) }.prefix(), None);
        assert!(Masked::<Ipv4Addr>::network(address, 99).is_exact());
        assert_eq!(Masked::exact(address).to_string(), "10.1.2.3");
    }
}
