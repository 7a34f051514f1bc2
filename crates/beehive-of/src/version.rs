//! Protocol versions, and the set of versions that a hello announces.

use core::fmt;

/// A protocol version that this crate decodes and encodes completely.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Version {
    /// OpenFlow 1.0, wire version 1.
    V1_0 = 1,
    /// OpenFlow 1.1, wire version 2.
    V1_1 = 2,
    /// OpenFlow 1.2, wire version 3.
    V1_2 = 3,
    /// OpenFlow 1.3, wire version 4.
    V1_3 = 4,
    /// OpenFlow 1.4, wire version 5.
    V1_4 = 5,
    /// OpenFlow 1.5, wire version 6.
    V1_5 = 6,
}

impl Version {
    /// All supported versions, oldest first.
    pub const ALL: [Version; 6] =
        [Version::V1_0, Version::V1_1, Version::V1_2, Version::V1_3, Version::V1_4, Version::V1_5];

    /// Returns the version with this wire version number, if it is supported.
    #[inline]
    pub const fn from_wire(wire: u8) -> Option<Self> {
        match wire {
            1 => Some(Self::V1_0),
            2 => Some(Self::V1_1),
            3 => Some(Self::V1_2),
            4 => Some(Self::V1_3),
            5 => Some(Self::V1_4),
            6 => Some(Self::V1_5),
            _ => None,
        }
    }

    /// Returns the wire version number.
    #[inline]
    pub const fn wire(self) -> u8 {
        self as u8
    }

    /// Returns the minor version number, which is the number after `1.`.
    #[inline]
    pub const fn minor(self) -> u8 {
        self as u8 - 1
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "1.{}", self.minor())
    }
}

/// A set of wire versions from 0 to 31, in the format of a hello's version bitmap: bit n stands for wire
/// version n (specification 1.3.5, 7.5.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct VersionSet(u32);

impl VersionSet {
    /// The empty set.
    pub const EMPTY: Self = Self(0);

    /// All versions that this crate supports: 1.0 to 1.5.
    pub const SUPPORTED: Self = Self(0b111_1110);

    /// Creates a set from a bitmap.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Creates a set of one version.
    pub const fn only(version: Version) -> Self {
        Self::EMPTY.with(version)
    }

    /// Returns this set with `version` added.
    #[must_use]
    pub const fn with(self, version: Version) -> Self {
        Self(self.0 | 1 << version.wire())
    }

    /// Returns the bitmap.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns whether a wire version is in the set.
    pub const fn contains(self, wire: u8) -> bool {
        wire < 32 && self.0 & (1 << wire) != 0
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the highest wire version in the set; `None` if it is empty.
    pub const fn highest(self) -> Option<u8> {
        match self.0 {
            0 => None,
            bits => Some(31 - bits.leading_zeros() as u8),
        }
    }

    /// Returns the intersection of both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl fmt::Debug for VersionSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries((0..32u8).filter(|wire| self.contains(*wire))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_knows_its_highest_version() {
        let all = Version::ALL.into_iter().fold(VersionSet::EMPTY, VersionSet::with);
        assert_eq!(VersionSet::SUPPORTED, all);
        assert_eq!(VersionSet::SUPPORTED.highest(), Some(6));
        assert_eq!(VersionSet::EMPTY.highest(), None);
        assert_eq!(VersionSet::from_bits(u32::MAX).highest(), Some(31));
        assert!(VersionSet::only(Version::V1_0).contains(1));
        assert!(!VersionSet::from_bits(u32::MAX).contains(32));
        assert!(!VersionSet::from_bits(u32::MAX).contains(255));
    }
}
