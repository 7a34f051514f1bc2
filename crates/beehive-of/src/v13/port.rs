//! Ports (7.2.1), features (7.3.1) and port-status (7.4.3) of 1.3.

use bytes::{BufMut, BytesMut};

use super::{WIRE, message_type, unsupported};
use crate::address::MacAddress;
use crate::any::{self, Capabilities, PortConfig, PortFeatures, PortName, PortReason, PortState};
use crate::encode::{EncodeError, message};
use crate::error::{Error, Part};
use crate::field::{array, be8, be32, be64, fixed, getters, set_array, set8, set32, set64};
use crate::frame::Frame;
use crate::port_number::PortNo;

/// The length of a port, in bytes.
const PORT_LENGTH: usize = 64;

/// `ofp_port`.
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
        /// The port's number.
        number = be32 at 0 -> u32;
        /// What the controller configured (`ofp_port_config`).
        config = be32 at 32 -> u32;
        /// What the switch observes (`ofp_port_state`).
        state = be32 at 36 -> u32;
        /// What the link does now (`ofp_port_features`).
        current = be32 at 40 -> u32;
        /// What the port advertises.
        advertised = be32 at 44 -> u32;
        /// What the port could do.
        supported = be32 at 48 -> u32;
        /// What the other end advertises.
        peer = be32 at 52 -> u32;
        /// The current bit rate in kbit/s.
        current_speed_kbps = be32 at 56 -> u32;
        /// The highest bit rate in kbit/s.
        max_speed_kbps = be32 at 60 -> u32;
    }

    /// The Ethernet address.
    pub fn address(&self) -> MacAddress {
        MacAddress(array::<8, 6, _>(self.fixed))
    }

    /// The name.
    pub fn name(&self) -> PortName {
        PortName::from_wire(array::<16, 16, _>(self.fixed))
    }

    pub(crate) fn generalise(&self) -> any::Port {
        any::Port {
            number: PortNo(self.number()),
            address: self.address(),
            name: self.name(),
            config: PortConfig(self.config()),
            state: PortState(self.state()),
            current: PortFeatures(self.current()),
            advertised: PortFeatures(self.advertised()),
            supported: PortFeatures(self.supported()),
            peer: PortFeatures(self.peer()),
            current_speed_kbps: self.current_speed_kbps(),
            max_speed_kbps: self.max_speed_kbps(),
        }
    }
}

pub(crate) fn write_port(port: &any::Port, out: &mut BytesMut) -> Result<(), EncodeError> {
    let mut bytes = [0; PORT_LENGTH];
    set32::<0, _>(&mut bytes, port.number.0);
    set_array::<8, 6, _>(&mut bytes, port.address.0);
    set_array::<16, 16, _>(&mut bytes, port.name.wire());
    set32::<32, _>(&mut bytes, port.config.0);
    set32::<36, _>(&mut bytes, port.state.0);
    set32::<40, _>(&mut bytes, port.current.0);
    set32::<44, _>(&mut bytes, port.advertised.0);
    set32::<48, _>(&mut bytes, port.supported.0);
    set32::<52, _>(&mut bytes, port.peer.0);
    set32::<56, _>(&mut bytes, port.current_speed_kbps);
    set32::<60, _>(&mut bytes, port.max_speed_kbps);
    out.put_slice(&bytes);
    Ok(())
}

/// `ofp_switch_features`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Features<'a> {
    fixed: &'a [u8; 24],
}

impl<'a> Features<'a> {
    /// Checks the message.
    ///
    /// # Errors
    ///
    /// It is cut off.
    pub fn parse(frame: Frame<'a>) -> Result<Self, Error> {
        let (fixed, _) = fixed::<24>(frame.body(), Part::Message, 8, "features reply")?;
        Ok(Self { fixed })
    }

    getters! {
        /// The switch's identity.
        datapath_id = be64 at 0 -> u64;
        /// How many packets it can keep.
        buffers = be32 at 8 -> u32;
        /// How many flow tables it has.
        tables = be8 at 12 -> u8;
        /// Which of the switch's connections this is; 0 is the main one.
        auxiliary_id = be8 at 13 -> u8;
        /// What else it can do (`ofp_capabilities`).
        capabilities = be32 at 16 -> u32;
    }

    pub(crate) fn generalise(&self) -> any::Features<'a> {
        any::Features {
            datapath_id: self.datapath_id(),
            buffers: self.buffers(),
            tables: self.tables(),
            auxiliary_id: self.auxiliary_id(),
            capabilities: Capabilities(self.capabilities()),
            actions: 0,
            ports: any::Ports::EMPTY,
        }
    }
}

pub(crate) fn write_features(
    features: &any::Features<'_>,
    xid: u32,
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    if features.actions != 0 {
        return Err(unsupported("the actions of a features reply"));
    }
    if !features.ports.is_empty() {
        return Err(unsupported("the ports of a features reply"));
    }
    let mut bytes = [0; 24];
    set64::<0, _>(&mut bytes, features.datapath_id);
    set32::<8, _>(&mut bytes, features.buffers);
    set8::<12, _>(&mut bytes, features.tables);
    set8::<13, _>(&mut bytes, features.auxiliary_id);
    set32::<16, _>(&mut bytes, features.capabilities.0);
    message(out, WIRE, message_type::FEATURES_REPLY, xid, |out| {
        out.put_slice(&bytes);
        Ok(())
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
