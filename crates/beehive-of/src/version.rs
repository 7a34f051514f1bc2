//! Protocol versions and the set of them that a hello announces.

use core::fmt;

/// A version of the protocol that this crate decodes and encodes in full.
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
    /// Every version of this type, oldest first.
    pub const ALL: [Version; 6] =
        [Version::V1_0, Version::V1_1, Version::V1_2, Version::V1_3, Version::V1_4, Version::V1_5];

    /// The version with this number in the header, if it is one of ours.
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

    /// The number in the header.
    #[inline]
    pub const fn wire(self) -> u8 {
        self as u8
    }

    /// The number after `1.`.
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

/// A set of wire versions 0 to 31, as a hello's version bitmap carries it: bit n stands for wire version n
/// (specification 1.3.5, 7.5.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct VersionSet(u32);

impl VersionSet {
    /// No version.
    pub const EMPTY: Self = Self(0);

    /// All versions that this crate speaks: 1.0 to 1.5.
    pub const SUPPORTED: Self = Self(0b111_1110);

    /// The set with this bitmap.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The set of one version.
    pub const fn only(version: Version) -> Self {
        Self::EMPTY.with(version)
    }

    /// This set and `version`.
    #[must_use]
    pub const fn with(self, version: Version) -> Self {
        Self(self.0 | 1 << version.wire())
    }

    /// The bitmap.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether the wire version is in the set.
    pub const fn contains(self, wire: u8) -> bool {
        wire < 32 && self.0 & (1 << wire) != 0
    }

    /// Whether no version is in the set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The highest wire version in the set.
    pub const fn highest(self) -> Option<u8> {
        match self.0 {
            0 => None,
            bits => Some(31 - bits.leading_zeros() as u8),
        }
    }

    /// The versions in both sets.
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
