//! A switch's ports.

use core::fmt;

use bytes::BytesMut;

use super::list::{Element, List};
use crate::address::MacAddress;
use crate::encode::EncodeError;
use crate::error::Error;
use crate::limits::PORT_NAME_LENGTH;
use crate::port_number::PortNo;
use crate::version::Version;
use crate::{v10, v13};

/// A port of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Port {
    /// Its number.
    pub number: PortNo,
    /// Its Ethernet address.
    pub address: MacAddress,
    /// Its name.
    pub name: PortName,
    /// What the controller configured.
    pub config: PortConfig,
    /// What the switch observes.
    pub state: PortState,
    /// What the link does now.
    pub current: PortFeatures,
    /// What the port advertises.
    pub advertised: PortFeatures,
    /// What the port could do.
    pub supported: PortFeatures,
    /// What the other end advertises.
    pub peer: PortFeatures,
    /// The current bit rate in kbit/s; 0 in 1.0, which does not tell.
    pub current_speed_kbps: u32,
    /// The highest bit rate in kbit/s; 0 in 1.0, which does not tell.
    pub max_speed_kbps: u32,
}

/// The ports of a message.
pub type Ports<'a> = List<'a, Port>;

/// The name of a port: at most 15 bytes, as the switch gives them, without the zeros after them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PortName([u8; PORT_NAME_LENGTH]);

impl PortName {
    /// The first 15 bytes of `name`, up to a zero.
    pub fn new(name: &[u8]) -> Self {
        let mut bytes = [0; PORT_NAME_LENGTH];
        // The last byte stays zero (specification 1.3.5, 7.2.1: null-terminated).
        for (to, from) in
            bytes.iter_mut().take(PORT_NAME_LENGTH - 1).zip(name.iter().take_while(|byte| **byte != 0))
        {
            *to = *from;
        }
        Self(bytes)
    }

    pub(crate) fn from_wire(wire: [u8; PORT_NAME_LENGTH]) -> Self {
        Self::new(&wire)
    }

    pub(crate) const fn wire(self) -> [u8; PORT_NAME_LENGTH] {
        self.0
    }

    /// The bytes of the name; they need not be UTF-8.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or(&[])
    }
}

impl fmt::Display for PortName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_bytes().escape_ascii(), formatter)
    }
}

impl fmt::Debug for PortName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{self}\"")
    }
}

impl From<&str> for PortName {
    fn from(name: &str) -> Self {
        Self::new(name.as_bytes())
    }
}

/// Configuration bits of a port (`ofp_port_config`); those that both versions have are the same in both.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PortConfig(pub u32);

impl PortConfig {
    /// Switched off by the administrator.
    pub const PORT_DOWN: u32 = 1;
    /// Packets that come in are dropped.
    pub const NO_RECEIVE: u32 = 1 << 2;
    /// Not part of floods. 1.0 only.
    pub const NO_FLOOD: u32 = 1 << 4;
    /// Packets to the port are dropped.
    pub const NO_FORWARD: u32 = 1 << 5;
    /// No packet-ins for the port.
    pub const NO_PACKET_IN: u32 = 1 << 6;
}

/// State bits of a port (`ofp_port_state`); `LINK_DOWN` is the same in both versions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PortState(pub u32);

impl PortState {
    /// No link.
    pub const LINK_DOWN: u32 = 1;
    /// Blocked by a protocol outside of OpenFlow. 1.3 only.
    pub const BLOCKED: u32 = 1 << 1;
    /// Fit for a fast-failover group. 1.3 only.
    pub const LIVE: u32 = 1 << 2;
}

/// Rates and media of a port (`ofp_port_features`), with 1.3's bits in both versions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PortFeatures(pub u32);

impl PortFeatures {
    /// Bits 0 to 6, 10 Mbit/s to 10 Gbit/s, are the same in both versions.
    const SAME: u32 = 0x7f;
    /// 1.0 has its five media bits at 7 to 11, 1.3 at 11 to 15.
    const MEDIA_V10: u32 = 0xf80;

    pub(crate) const fn from_v10(bits: u32) -> Self {
        Self(bits & Self::SAME | (bits & Self::MEDIA_V10) << 4)
    }

    pub(crate) const fn to_v10(self) -> Option<u32> {
        let bits = self.0 & Self::SAME | (self.0 >> 4) & Self::MEDIA_V10;
        if Self::from_v10(bits).0 == self.0 { Some(bits) } else { None }
    }
}

impl Port {
    /// A port that is up, with this number, address and name.
    pub const fn new(number: PortNo, address: MacAddress, name: PortName) -> Self {
        Self {
            number,
            address,
            name,
            config: PortConfig(0),
            state: PortState(0),
            current: PortFeatures(0),
            advertised: PortFeatures(0),
            supported: PortFeatures(0),
            peer: PortFeatures(0),
            current_speed_kbps: 0,
            max_speed_kbps: 0,
        }
    }

    /// Whether the port is switched on and has a link.
    pub const fn is_up(&self) -> bool {
        self.config.0 & PortConfig::PORT_DOWN == 0 && self.state.0 & PortState::LINK_DOWN == 0
    }
}

impl<'a> Element<'a> for Port {
    fn read(version: Version, bytes: &'a [u8], offset: usize) -> Result<(Self, usize), Error> {
        match version {
            Version::V1_0 => {
                let port = v10::Port::read(bytes, offset)?;
                Ok((port.generalise(), v10::Port::LENGTH))
            }
            Version::V1_3 => {
                let port = v13::Port::read(bytes, offset)?;
                Ok((port.generalise(), v13::Port::LENGTH))
            }
        }
    }

    fn write(&self, version: Version, out: &mut BytesMut) -> Result<(), EncodeError> {
        match version {
            Version::V1_0 => v10::write_port(self, out),
            Version::V1_3 => v13::write_port(self, out),
        }
    }
}

/// A change of a port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PortStatus {
    /// What changed.
    pub reason: PortReason,
    /// The port after the change.
    pub port: Port,
}

/// What changed about a port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum PortReason {
    /// It is new.
    Add,
    /// It is gone.
    Delete,
    /// One of its attributes.
    Modify,
    /// Another change, as on the wire.
    Other(u8),
}

impl PortReason {
    pub(crate) const fn from_wire(wire: u8) -> Self {
        match wire {
            0 => Self::Add,
            1 => Self::Delete,
            2 => Self::Modify,
            other => Self::Other(other),
        }
    }

    pub(crate) const fn wire(self) -> u8 {
        match self {
            Self::Add => 0,
            Self::Delete => 1,
            Self::Modify => 2,
            Self::Other(other) => other,
        }
    }
}

impl PortStatus {
    /// Appends the message.
    ///
    /// # Errors
    ///
    /// The version cannot express a field of the port.
    pub fn encode_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        match version {
            Version::V1_0 => v10::write_port_status(self, xid, out),
            Version::V1_3 => v13::write_port_status(self, xid, out),
        }
    }
}
