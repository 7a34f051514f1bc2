//! Ports (5.2.1), features (5.3.1) and port-status (5.4.3) of 1.0.

use bytes::{BufMut, BytesMut};

use super::{WIRE, message_type, port_to_wire, unsupported};
use crate::address::MacAddress;
use crate::any::{self, Capabilities, PortConfig, PortFeatures, PortName, PortReason, PortState};
use crate::encode::{EncodeError, message};
use crate::error::{Error, ErrorKind, Part};
use crate::field::{array, be8, be16, be32, be64, fixed, getters, set_array, set8, set16, set32, set64};
use crate::frame::Frame;
use crate::port_number::PortNo;
use crate::version::Version;

/// The length of a port, in bytes.
const PORT_LENGTH: usize = 48;

/// `ofp_phy_port`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port<'a> {
    fixed: &'a [u8; PORT_LENGTH],
}

impl<'a> Port<'a> {
    pub(crate) const LENGTH: usize = PORT_LENGTH;

    pub(crate) fn read(bytes: &'a [u8], offset: usize) -> Result<Self, Error> {
        let (fixed, _) = fixed(bytes, Part::Port, offset, "port")?;
        Ok(Self { fixed })
    }

    getters! {
        /// The port's number in 1.0.
        number = be16 at 0 -> u16;
        /// What the controller configured (`ofp_port_config`).
        config = be32 at 24 -> u32;
        /// What the switch observes (`ofp_port_state`).
        state = be32 at 28 -> u32;
        /// What the link does now (`ofp_port_features`).
        current = be32 at 32 -> u32;
        /// What the port advertises.
        advertised = be32 at 36 -> u32;
        /// What the port could do.
        supported = be32 at 40 -> u32;
        /// What the other end advertises.
        peer = be32 at 44 -> u32;
    }

    /// The Ethernet address.
    pub fn address(&self) -> MacAddress {
        MacAddress(array::<2, 6, _>(self.fixed))
    }

    /// The name.
    pub fn name(&self) -> PortName {
        PortName::from_wire(array::<8, 16, _>(self.fixed))
    }

    pub(crate) fn generalise(&self) -> any::Port {
        any::Port {
            number: PortNo::from_v10(self.number()),
            address: self.address(),
            name: self.name(),
            config: PortConfig(self.config()),
            state: PortState(self.state()),
            current: PortFeatures::from_v10(self.current()),
            advertised: PortFeatures::from_v10(self.advertised()),
            supported: PortFeatures::from_v10(self.supported()),
            peer: PortFeatures::from_v10(self.peer()),
            current_speed_kbps: 0,
            max_speed_kbps: 0,
        }
    }
}

pub(crate) fn write_port(port: &any::Port, out: &mut BytesMut) -> Result<(), EncodeError> {
    if port.current_speed_kbps != 0 || port.max_speed_kbps != 0 {
        return Err(unsupported("the speed of a port"));
    }
    let features = |features: PortFeatures| {
        features.to_v10().ok_or_else(|| unsupported("rates above 10 Gbit/s of a port"))
    };
    let mut bytes = [0; PORT_LENGTH];
    set16::<0, _>(&mut bytes, port_to_wire(port.number, "a port above 0xff00")?);
    set_array::<2, 6, _>(&mut bytes, port.address.0);
    set_array::<8, 16, _>(&mut bytes, port.name.wire());
    set32::<24, _>(&mut bytes, port.config.0);
    set32::<28, _>(&mut bytes, port.state.0);
    set32::<32, _>(&mut bytes, features(port.current)?);
    set32::<36, _>(&mut bytes, features(port.advertised)?);
    set32::<40, _>(&mut bytes, features(port.supported)?);
    set32::<44, _>(&mut bytes, features(port.peer)?);
    out.put_slice(&bytes);
    Ok(())
}

/// `ofp_switch_features`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Features<'a> {
    fixed: &'a [u8; 24],
    ports: &'a [u8],
}

impl<'a> Features<'a> {
    /// Where the ports start in the message.
    const PORTS: usize = 32;

    /// Checks the message.
    ///
    /// # Errors
    ///
    /// It is cut off, or what follows its fixed part is no whole number of ports.
    pub fn parse(frame: Frame<'a>) -> Result<Self, Error> {
        let (fixed, ports) = fixed::<24>(frame.body(), Part::Message, 8, "features reply")?;
        if ports.len() % Port::LENGTH != 0 {
            return Err(Error::new(ErrorKind::Truncated, Part::Port, Self::PORTS + ports.len(), "port"));
        }
        Ok(Self { fixed, ports })
    }

    getters! {
        /// The switch's identity.
        datapath_id = be64 at 0 -> u64;
        /// How many packets it can keep.
        buffers = be32 at 8 -> u32;
        /// How many flow tables it has.
        tables = be8 at 12 -> u8;
        /// What else it can do (`ofp_capabilities`).
        capabilities = be32 at 16 -> u32;
        /// The actions that it can do, bit n for action type n.
        actions = be32 at 20 -> u32;
    }

    /// The ports.
    pub fn ports(&self) -> impl Iterator<Item = Port<'a>> + use<'a> {
        self.ports.as_chunks::<PORT_LENGTH>().0.iter().map(|fixed| Port { fixed })
    }

    pub(crate) fn generalise(&self) -> any::Features<'a> {
        any::Features {
            datapath_id: self.datapath_id(),
            buffers: self.buffers(),
            tables: self.tables(),
            auxiliary_id: 0,
            capabilities: Capabilities(self.capabilities()),
            actions: self.actions(),
            ports: any::Ports::wire(Version::V1_0, self.ports, Self::PORTS),
        }
    }
}

pub(crate) fn write_features(
    features: &any::Features<'_>,
    xid: u32,
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    if features.auxiliary_id != 0 {
        return Err(unsupported("an auxiliary connection"));
    }
    let mut bytes = [0; 24];
    set64::<0, _>(&mut bytes, features.datapath_id);
    set32::<8, _>(&mut bytes, features.buffers);
    set8::<12, _>(&mut bytes, features.tables);
    set32::<16, _>(&mut bytes, features.capabilities.0);
    set32::<20, _>(&mut bytes, features.actions);
    message(out, WIRE, message_type::FEATURES_REPLY, xid, |out| {
        out.put_slice(&bytes);
        features.ports.write(Version::V1_0, out)
    })
}

/// `ofp_port_status`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortStatus<'a> {
    fixed: &'a [u8; 8],
    port: Port<'a>,
}

impl<'a> PortStatus<'a> {
    /// Checks the message.
    ///
    /// # Errors
    ///
    /// It is cut off.
    pub fn parse(frame: Frame<'a>) -> Result<Self, Error> {
        let (fixed, rest) = fixed::<8>(frame.body(), Part::Message, 8, "port-status")?;
        Ok(Self { fixed, port: Port::read(rest, 16)? })
    }

    getters! {
        /// What changed (`ofp_port_reason`).
        reason = be8 at 0 -> u8;
    }

    /// The port.
    pub const fn port(&self) -> Port<'a> {
        self.port
    }

    pub(crate) fn generalise(&self) -> any::PortStatus {
        any::PortStatus { reason: PortReason::from_wire(self.reason()), port: self.port.generalise() }
    }
}

pub(crate) fn write_port_status(
    status: &any::PortStatus,
    xid: u32,
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    message(out, WIRE, message_type::PORT_STATUS, xid, |out| {
        out.put_slice(&[status.reason.wire(), 0, 0, 0, 0, 0, 0, 0]);
        write_port(&status.port, out)
    })
}
