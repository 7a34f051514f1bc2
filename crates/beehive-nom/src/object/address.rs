//! Defines Ethernet addresses, VLANs, and stations, which combine both.

use beehive::Key;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// An Ethernet address. Human-readable formats such as JSON encode it as text, such as `02:00:00:00:00:01`. Other
/// formats encode it as six bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The broadcast address.
    pub const BROADCAST: Mac = Mac([0xff; 6]);
    /// The all-zero address, which is never a valid source.
    pub const ZERO: Mac = Mac([0; 6]);

    /// Returns whether this is a group address. A group address is never a valid source.
    #[inline]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// Returns whether this is one of the group addresses 01-80-C2-00-00-00 to -0F. A bridge never forwards frames to
    /// these addresses (IEEE 802.1Q, 8.6.3).
    #[inline]
    pub const fn is_bridge_reserved(self) -> bool {
        matches!(self.0, [0x01, 0x80, 0xc2, 0, 0, last] if last <= 0x0f)
    }

    /// Returns the six bytes as a big-endian number.
    #[inline]
    pub const fn to_u64(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// Creates the address from a number whose upper 16 bits are ignored.
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

impl Serialize for Mac {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.collect_str(self),
            false => self.0.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Mac {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return <[u8; 6]>::deserialize(deserializer).map(Mac);
        }

        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Parses the form in which an address is shown, such as `02:00:00:00:00:01`.
impl FromStr for Mac {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let not_an_address = || NotAnAddress(text.chars().take(SHOWN_CHARS_MAX).collect());
        let mut bytes = [0; 6];
        let mut words = text.split(':');

        for byte in &mut bytes {
            let word =
                words.next().filter(|word| word.len() == 2 && word.bytes().all(|b| b.is_ascii_hexdigit()));
            let number = word.and_then(|word| u8::from_str_radix(word, 16).ok());
            *byte = number.ok_or_else(not_an_address)?
        }

        if words.next().is_some() { Err(not_an_address()) } else { Ok(Mac(bytes)) }
    }
}

/// Maximum number of characters that an error shows of a text that is not an address.
const SHOWN_CHARS_MAX: usize = 40;

/// The error of a text that is not an Ethernet address. Contains the beginning of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAnAddress(String);

impl fmt::Display for NotAnAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not an Ethernet address (expected a form such as 02:00:00:00:00:01)", self.0)
    }
}

impl std::error::Error for NotAnAddress {}

/// A VLAN identifier (12 bits). Untagged and priority-tagged frames are in VLAN 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Vlan(pub u16);

impl Vlan {
    /// The VLAN of frames without an identifier.
    pub const NONE: Vlan = Vlan(0);
}

/// An Ethernet address in a VLAN, which is the key of a bridge's address table. The same address in two VLANs counts
/// as two stations.
///
/// A station is stored in one word, so comparisons in large tables are fast. Stations are ordered by VLAN,
/// then by address.
#[derive(Key, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Station(u64);

impl Station {
    /// Creates the station with the address `mac` in `vlan`.
    #[inline]
    pub const fn new(vlan: Vlan, mac: Mac) -> Station {
        Station((vlan.0 as u64) << 48 | mac.to_u64())
    }

    /// Returns the VLAN.
    #[inline]
    pub const fn vlan(self) -> Vlan {
        Vlan((self.0 >> 48) as u16)
    }

    /// Returns the Ethernet address.
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
    fn an_address_is_text_for_people_and_six_bytes_for_a_log() {
        let mac = Mac([0xfe, 0x01, 0x02, 0x03, 0x04, 0xff]);
        assert_eq!(serde_json::to_string(&mac).unwrap(), "\"fe:01:02:03:04:ff\"");
        assert_eq!(serde_json::from_str::<Mac>("\"FE:01:02:03:04:ff\"").unwrap(), mac);
        assert_eq!(mac.to_string().parse(), Ok(mac));

        for wrong in ["", "fe:01:02:03:04", "fe:01:02:03:04:ff:00", "fe:1:02:03:04:ff", "fe:+1:02:03:04:ff"] {
            let why = serde_json::from_value::<Mac>(wrong.into()).unwrap_err().to_string();
            assert!(why.contains(&format!("`{wrong}` is not an Ethernet address")), "{why}");
            assert_eq!(wrong.parse::<Mac>().unwrap_err().to_string(), why);
        }

        let shape = bincode::config::standard();
        let bytes = bincode::serde::encode_to_vec(mac, shape).unwrap();
        assert_eq!(bytes, mac.0);
        assert_eq!(bincode::serde::decode_from_slice::<Mac, _>(&bytes, shape).unwrap(), (mac, 6));
    }

    #[test]
    fn groups() {
        assert!(Mac::BROADCAST.is_multicast() && !Mac([2, 0, 0, 0, 0, 1]).is_multicast());
        assert!(Mac([0x01, 0x80, 0xc2, 0, 0, 0x0e]).is_bridge_reserved());
        assert!(!Mac([0x01, 0x80, 0xc2, 0, 0, 0x10]).is_bridge_reserved());
    }
}
