//! The ports of a switch and changes to them.

use core::fmt;

use bytes::BytesMut;

use crate::address::MacAddress;
use crate::encode::EncodeError;
use crate::error::Error;
use crate::limits::PORT_NAME_LENGTH;
use crate::message::{self, EthernetPort, PortProperty};
use crate::port_number::PortNo;
use crate::schema::{Fixed, List, Reader, Sink, Source, Value, Writer};
use crate::version::Version;

/// A port of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Port {
    /// The port number.
    pub number: PortNo,
    /// The Ethernet address of the port.
    pub address: MacAddress,
    /// The port name.
    pub name: PortName,
    /// The configuration bits.
    pub config: PortConfig,
    /// The state that the switch observes.
    pub state: PortState,
    /// The current rate and medium of the link.
    pub current: PortFeatures,
    /// The features that the port advertises.
    pub advertised: PortFeatures,
    /// The features that the port supports.
    pub supported: PortFeatures,
    /// The features that the link peer advertises.
    pub peer: PortFeatures,
    /// The current bit rate in kbit/s; 0 in 1.0, whose messages do not carry it.
    pub current_speed_kbps: u32,
    /// The maximum bit rate in kbit/s; 0 in 1.0, whose messages do not carry it.
    pub max_speed_kbps: u32,
}

/// The ports of a message.
pub type Ports<'a> = List<'a, Port>;

/// The name of a port: at most 15 bytes, without the trailing zeros of the wire format.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PortName([u8; PORT_NAME_LENGTH]);

impl PortName {
    /// Creates a name from the bytes of `name` before the first zero byte, at most 15.
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

    /// Returns the bytes of the name, which are not necessarily UTF-8.
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

/// Configuration bits of a port (`ofp_port_config`). A bit has the same number in every version that defines
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PortConfig(pub u32);

impl PortConfig {
    /// The administrator switched the port off.
    pub const PORT_DOWN: u32 = 1;
    /// Drop packets that the port receives.
    pub const NO_RECEIVE: u32 = 1 << 2;
    /// Exclude the port from floods. 1.0 only.
    pub const NO_FLOOD: u32 = 1 << 4;
    /// Drop packets that are forwarded to the port.
    pub const NO_FORWARD: u32 = 1 << 5;
    /// Send no packet-ins for packets that the port receives.
    pub const NO_PACKET_IN: u32 = 1 << 6;
}

/// State bits of a port (`ofp_port_state`). `LINK_DOWN` is the same bit in every version.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PortState(pub u32);

impl PortState {
    /// The port has no link.
    pub const LINK_DOWN: u32 = 1;
    /// A protocol outside of OpenFlow blocks the port. Since 1.1.
    pub const BLOCKED: u32 = 1 << 1;
    /// The port is live for fast-failover groups. Since 1.1.
    pub const LIVE: u32 = 1 << 2;
}

/// Rates and media of a port (`ofp_port_features`). The bits are numbered as in 1.1 and later, even for a
/// port of a 1.0 switch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PortFeatures(pub u32);

impl PortFeatures {
    /// Bits 0 to 6 (10 Mbit/s to 10 Gbit/s) are the same in every version.
    const SAME: u32 = 0x7f;
    /// 1.0 uses bits 7 to 11 for the five media; later versions use bits 11 to 15.
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
    /// Creates a port that is up, with this number, address and name.
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

    /// Returns whether the port is enabled and has a link.
    pub const fn is_up(&self) -> bool {
        self.config.0 & PortConfig::PORT_DOWN == 0 && self.state.0 & PortState::LINK_DOWN == 0
    }
}

impl Port {
    fn generalize(port: &message::Port<'_>, version: Version) -> Result<Self, Error> {
        let mut rates = EthernetPort {
            curr: port.curr,
            advertised: port.advertised,
            supported: port.supported,
            peer: port.peer,
            curr_speed: port.curr_speed,
            max_speed: port.max_speed,
        };

        for property in port.properties {
            if let PortProperty::Ethernet(ethernet) = property? {
                rates = ethernet;
            }
        }

        let features = |bits: u32| match version {
            Version::V1_0 => PortFeatures::from_v10(bits),
            _ => PortFeatures(bits),
        };

        Ok(Self {
            number: port.port_no,
            address: port.hw_addr,
            name: PortName::from_wire(port.name.0),
            config: PortConfig(port.config.0),
            state: PortState(port.state),
            current: features(rates.curr),
            advertised: features(rates.advertised),
            supported: features(rates.supported),
            peer: features(rates.peer),
            current_speed_kbps: rates.curr_speed,
            max_speed_kbps: rates.max_speed,
        })
    }
}

impl<'a> Value<'a> for Port {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let version = reader.version();
        Self::generalize(&message::Port::read(reader)?, version)
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = writer.version();
        let features = |features: PortFeatures| match version {
            Version::V1_0 => {
                features.to_v10().ok_or(EncodeError::unsupported(version, "port rates above 10 Gbit/s"))
            }
            _ => Ok(features.0),
        };

        if version == Version::V1_0 && (self.current_speed_kbps != 0 || self.max_speed_kbps != 0) {
            return Err(writer.unsupported("the speed of a port"));
        }
        if version == Version::V1_0 && self.number.to_v10().is_none() {
            return Err(writer.unsupported("a port above 0xff00"));
        }

        let rates = EthernetPort {
            curr: features(self.current)?,
            advertised: features(self.advertised)?,
            supported: features(self.supported)?,
            peer: features(self.peer)?,
            curr_speed: self.current_speed_kbps,
            max_speed: self.max_speed_kbps,
        };
        let port = message::Port {
            port_no: self.number,
            hw_addr: self.address,
            name: Fixed(self.name.wire()),
            config: message::PortConfig(self.config.0),
            state: self.state.0,
            ..Default::default()
        };

        if version >= Version::V1_4 {
            let properties = [PortProperty::Ethernet(rates)];
            return message::Port { properties: (&properties).into(), ..port }.write(writer);
        }

        message::Port {
            curr: rates.curr,
            advertised: rates.advertised,
            supported: rates.supported,
            peer: rates.peer,
            curr_speed: rates.curr_speed,
            max_speed: rates.max_speed,
            ..port
        }
        .write(writer)
    }

    fn show(&self, _version: Version, sink: &mut dyn Sink) {
        sink.text(format_args!("{self:?}"));
    }

    fn compose(source: &dyn Source, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        message::Port::compose(source, writer)
    }
}

/// A notification that a port changed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PortStatus {
    /// The kind of change.
    pub reason: PortReason,
    /// The port after the change.
    pub port: Port,
}

/// The kind of change to a port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum PortReason {
    /// The port was added.
    Add,
    /// The port was removed.
    Delete,
    /// An attribute of the port changed.
    Modify,
    /// Another change, given by its number on the wire.
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
    /// Appends the encoded message to `out`.
    ///
    /// # Errors
    ///
    /// Fails if the version cannot express a field of the port.
    pub fn encode_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        crate::encode::message(out, version.wire(), PORT_STATUS, xid, |out| {
            let mut writer = Writer::new(version, out);
            writer.put(&[self.reason.wire(), 0, 0, 0, 0, 0, 0, 0]);
            self.port.write(&mut writer)
        })
    }

    pub(super) fn generalize(status: &message::PortStatus<'_>, version: Version) -> Result<Self, Error> {
        Ok(Self {
            reason: PortReason::from_wire(status.reason.0),
            port: Port::generalize(&status.port, version)?,
        })
    }
}

/// The message type, the same in every version.
const PORT_STATUS: u8 = 12;
