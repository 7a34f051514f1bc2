//! Ethernet addresses, VLANs, and both together.

use beehive::Key;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Everybody.
    pub const BROADCAST: Mac = Mac([0xff; 6]);
    /// Nobody: never a valid source.
    pub const ZERO: Mac = Mac([0; 6]);

    /// Whether it names a group of stations. Never a valid source.
    #[inline]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// Whether it is one of the groups 01-80-C2-00-00-00 to -0F, which a bridge never forwards (IEEE 802.1Q, 8.6.3).
    #[inline]
    pub const fn is_bridge_reserved(self) -> bool {
        matches!(self.0, [0x01, 0x80, 0xc2, 0, 0, last] if last <= 0x0f)
    }

    /// The six bytes as a number.
    #[inline]
    pub const fn to_u64(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// The address with this number; its upper 16 bits are ignored.
    #[inline]
    pub const fn from_u64(number: u64) -> Mac {
        let [_, _, a, b, c, d, e, f] = number.to_be_bytes();
        Mac([a, b, c, d, e, f])
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A VLAN, by its identifier (12 bits). Frames without a tag, and those whose tag has a priority only, are in VLAN 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Vlan(pub u16);

impl Vlan {
    /// The VLAN of frames without an identifier.
    pub const NONE: Vlan = Vlan(0);
}

/// An Ethernet address in a VLAN: what a bridge learns. The same address in two VLANs is two stations.
///
/// One word, so that a table of many compares fast; ordered by VLAN, then by address.
#[derive(Key, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Station(u64);

impl Station {
    /// The address `mac` in `vlan`.
    #[inline]
    pub const fn new(vlan: Vlan, mac: Mac) -> Station {
        Station((vlan.0 as u64) << 48 | mac.to_u64())
    }

    /// Its VLAN.
    #[inline]
    pub const fn vlan(self) -> Vlan {
        Vlan((self.0 >> 48) as u16)
    }

    /// Its address.
    #[inline]
    pub const fn mac(self) -> Mac {
        Mac::from_u64(self.0)
    }
}

impl fmt::Display for Station {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.vlan() {
            Vlan::NONE => write!(f, "{}", self.mac()),
            Vlan(vlan) => write!(f, "{}@{vlan}", self.mac()),
        }
    }
}

impl fmt::Debug for Station {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_station_keeps_both_parts() {
        let mac = Mac([0xfe, 0x01, 0x02, 0x03, 0x04, 0xff]);
        let station = Station::new(Vlan(4095), mac);
        assert_eq!((station.vlan(), station.mac()), (Vlan(4095), mac));
        assert_eq!(station.to_string(), "fe:01:02:03:04:ff@4095");
        assert!(Station::new(Vlan(1), Mac::ZERO) > Station::new(Vlan(0), Mac::BROADCAST));
    }

    #[test]
    fn groups() {
        assert!(Mac::BROADCAST.is_multicast() && !Mac([2, 0, 0, 0, 0, 1]).is_multicast());
        assert!(Mac([0x01, 0x80, 0xc2, 0, 0, 0x0e]).is_bridge_reserved());
        assert!(!Mac([0x01, 0x80, 0xc2, 0, 0, 0x10]).is_bridge_reserved());
    }
}
