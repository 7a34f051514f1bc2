//! Port numbers, with the width of 1.1 and later in all versions.

use core::fmt;

/// A 32-bit port number of OpenFlow 1.1 and later, with the reserved ports at the top. The 16-bit reserved
/// ports of 1.0 are mapped to them, so for example [`PortNo::FLOOD`] is the same in all versions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PortNo(pub u32);

impl PortNo {
    /// The highest number of a physical or logical port; reserved ports are above it (`OFPP_MAX`).
    pub const MAX: Self = Self(0xffff_ff00);
    /// The value of `actset_output` if the action set has no output (`OFPP_UNSET`, 1.5).
    pub const UNSET: Self = Self(0xffff_fff7);
    /// The port that received the packet (`OFPP_IN_PORT`).
    pub const IN_PORT: Self = Self(0xffff_fff8);
    /// Process the packet with the flow tables; packet-out only (`OFPP_TABLE`).
    pub const TABLE: Self = Self(0xffff_fff9);
    /// Forward the packet as a switch without OpenFlow would (`OFPP_NORMAL`).
    pub const NORMAL: Self = Self(0xffff_fffa);
    /// All ports except the receiving port and the ports that are excluded from floods (`OFPP_FLOOD`).
    pub const FLOOD: Self = Self(0xffff_fffb);
    /// All ports except the receiving port (`OFPP_ALL`).
    pub const ALL: Self = Self(0xffff_fffc);
    /// The controller (`OFPP_CONTROLLER`).
    pub const CONTROLLER: Self = Self(0xffff_fffd);
    /// The switch's own network stack (`OFPP_LOCAL`).
    pub const LOCAL: Self = Self(0xffff_fffe);
    /// No port, or any port (`OFPP_NONE` in 1.0, `OFPP_ANY` in 1.3).
    pub const ANY: Self = Self(0xffff_ffff);

    /// The first reserved 16-bit port number of 1.0.
    const RESERVED_V10: u16 = 0xff00;

    /// Returns the port with this 16-bit number of 1.0.
    #[inline]
    pub const fn from_v10(number: u16) -> Self {
        if number >= Self::RESERVED_V10 { Self(0xffff_0000 | number as u32) } else { Self(number as u32) }
    }

    /// Returns the port's 16-bit number in 1.0, if it has one.
    #[inline]
    pub const fn to_v10(self) -> Option<u16> {
        if self.0 < Self::RESERVED_V10 as u32 || self.0 >= Self::MAX.0 { Some(self.0 as u16) } else { None }
    }

    /// Returns whether this is a reserved number (including `LOCAL`) rather than a physical or logical port.
    #[inline]
    pub const fn is_reserved(self) -> bool {
        self.0 > Self::MAX.0
    }

    /// Returns the reserved port with this name, ignoring case; the inverse of [`PortNo::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        let is_it = |port: &Self| port.name().is_some_and(|known| known.eq_ignore_ascii_case(name));
        (0..=8).map(|index| Self(u32::MAX - index)).find(is_it)
    }

    /// Returns the name of a reserved port.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::UNSET => "unset",
            Self::IN_PORT => "in_port",
            Self::TABLE => "table",
            Self::NORMAL => "normal",
            Self::FLOOD => "flood",
            Self::ALL => "all",
            Self::CONTROLLER => "controller",
            Self::LOCAL => "local",
            Self::ANY => "any",
            _ => return None,
        })
    }
}

impl From<u32> for PortNo {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

impl fmt::Display for PortNo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => formatter.pad(name),
            None => fmt::Display::fmt(&self.0, formatter),
        }
    }
}

impl fmt::Debug for PortNo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_1_0_maps_there_and_back() {
        for number in 0..=u16::MAX {
            assert_eq!(PortNo::from_v10(number).to_v10(), Some(number));
        }
        assert_eq!(PortNo::from_v10(0xfffb), PortNo::FLOOD);
        assert_eq!(PortNo::from_v10(0xffff), PortNo::ANY);
        assert_eq!(PortNo(0xff00).to_v10(), None);
        assert_eq!(PortNo(70_000).to_v10(), None);
    }
}
