//! Actions of 1.0 (5.2.4).

use core::iter::FusedIterator;
use core::net::Ipv4Addr;

use bytes::{BufMut, BytesMut};

use super::{port_to_wire, unsupported};
use crate::address::MacAddress;
use crate::any;
use crate::encode::EncodeError;
use crate::error::{Error, ErrorKind, Part};
use crate::field::{array, be8, be16, be32, bounded, fixed, set16};
use crate::limits::{DSCP_MAX, VLAN_ID_MAX, VLAN_PRIORITY_MAX};
use crate::port_number::PortNo;

mod kind {
    pub(super) const OUTPUT: u16 = 0;
    pub(super) const SET_VLAN_VID: u16 = 1;
    pub(super) const SET_VLAN_PCP: u16 = 2;
    pub(super) const STRIP_VLAN: u16 = 3;
    pub(super) const SET_DL_SRC: u16 = 4;
    pub(super) const SET_DL_DST: u16 = 5;
    pub(super) const SET_NW_SRC: u16 = 6;
    pub(super) const SET_NW_DST: u16 = 7;
    pub(super) const SET_NW_TOS: u16 = 8;
    pub(super) const SET_TP_SRC: u16 = 9;
    pub(super) const SET_TP_DST: u16 = 10;
    pub(super) const ENQUEUE: u16 = 11;
}

/// An action (`ofp_action_header` and those that follow it).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Action<'a> {
    /// Sends the packet out of a port.
    Output {
        /// The port's number in 1.0.
        port: u16,
        /// How many bytes go to the controller.
        max_len: u16,
    },
    /// Sets the VLAN identifier.
    SetVlanId(u16),
    /// Sets the VLAN priority.
    SetVlanPriority(u8),
    /// Removes the VLAN tag.
    StripVlan,
    /// Sets the Ethernet source.
    SetEthSrc(MacAddress),
    /// Sets the Ethernet destination.
    SetEthDst(MacAddress),
    /// Sets the IPv4 source.
    SetIpv4Src(Ipv4Addr),
    /// Sets the IPv4 destination.
    SetIpv4Dst(Ipv4Addr),
    /// Sets the IP type of service, whose upper six bits are the differentiated services code point.
    SetIpTos(u8),
    /// Sets the TCP or UDP source port.
    SetTransportSrc(u16),
    /// Sets the TCP or UDP destination port.
    SetTransportDst(u16),
    /// Sends the packet through a queue of a port.
    Enqueue {
        /// The port's number in 1.0.
        port: u16,
        /// The queue.
        queue_id: u32,
    },
    /// Another action, or a vendor's (type 0xffff).
    Unknown {
        /// `ofp_action_type`.
        kind: u16,
        /// What follows the length.
        body: &'a [u8],
    },
}

impl<'a> Action<'a> {
    /// The first action of `bytes` and its length.
    #[inline]
    pub(crate) fn read(bytes: &'a [u8], offset: usize) -> Result<(Self, usize), Error> {
        let (head, _) = fixed::<8>(bytes, Part::Action, offset, "action")?;
        let kind = be16::<0, _>(head);
        let length = usize::from(be16::<2, _>(head));
        let (whole, _) = bounded(bytes, length, 8, Part::Action, offset + 2, "action length")?;
        let wrong = || Error::new(ErrorKind::LengthWrong, Part::Action, offset + 2, "action length");
        if length % 8 != 0 {
            return Err(wrong());
        }
        let expected = match kind {
            kind::SET_DL_SRC | kind::SET_DL_DST | kind::ENQUEUE => 16,
            kind::OUTPUT..kind::ENQUEUE => 8,
            _ => length,
        };
        if length != expected {
            return Err(wrong());
        }
        let action = match kind {
            kind::OUTPUT => Self::Output { port: be16::<4, _>(head), max_len: be16::<6, _>(head) },
            kind::SET_VLAN_VID => Self::SetVlanId(be16::<4, _>(head)),
            kind::SET_VLAN_PCP => Self::SetVlanPriority(be8::<4, _>(head)),
            kind::STRIP_VLAN => Self::StripVlan,
            kind::SET_NW_SRC => Self::SetIpv4Src(Ipv4Addr::from_bits(be32::<4, _>(head))),
            kind::SET_NW_DST => Self::SetIpv4Dst(Ipv4Addr::from_bits(be32::<4, _>(head))),
            kind::SET_NW_TOS => Self::SetIpTos(be8::<4, _>(head)),
            kind::SET_TP_SRC => Self::SetTransportSrc(be16::<4, _>(head)),
            kind::SET_TP_DST => Self::SetTransportDst(be16::<4, _>(head)),
            kind::SET_DL_SRC | kind::SET_DL_DST | kind::ENQUEUE => {
                let (long, _) = fixed::<16>(whole, Part::Action, offset, "action")?;
                match kind {
                    kind::SET_DL_SRC => Self::SetEthSrc(MacAddress(array::<4, 6, _>(long))),
                    kind::SET_DL_DST => Self::SetEthDst(MacAddress(array::<4, 6, _>(long))),
                    _ => Self::Enqueue { port: be16::<4, _>(long), queue_id: be32::<12, _>(long) },
                }
            }
            _ => Self::Unknown { kind, body: whole.get(4..).unwrap_or(&[]) },
        };
        Ok((action, length))
    }

    #[inline]
    pub(crate) fn generalise(self) -> any::Action {
        match self {
            Self::Output { port, max_len } => any::Action::Output { port: PortNo::from_v10(port), max_len },
            Self::SetVlanId(id) => any::Action::SetVlanId(id & VLAN_ID_MAX),
            Self::SetVlanPriority(priority) => any::Action::SetVlanPriority(priority & VLAN_PRIORITY_MAX),
            Self::StripVlan => any::Action::PopVlan,
            Self::SetEthSrc(address) => any::Action::SetEthSrc(address),
            Self::SetEthDst(address) => any::Action::SetEthDst(address),
            Self::SetIpv4Src(address) => any::Action::SetIpv4Src(address),
            Self::SetIpv4Dst(address) => any::Action::SetIpv4Dst(address),
            Self::SetIpTos(tos) => any::Action::SetIpDscp(tos >> 2),
            Self::SetTransportSrc(_) => any::Action::Other(kind::SET_TP_SRC),
            Self::SetTransportDst(_) => any::Action::Other(kind::SET_TP_DST),
            Self::Enqueue { .. } => any::Action::Other(kind::ENQUEUE),
            Self::Unknown { kind, .. } => any::Action::Other(kind),
        }
    }
}

/// Actions in order; the first malformed one ends them.
#[derive(Clone, Debug)]
pub struct Actions<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Actions<'a> {
    /// The actions that `bytes` hold, which start at `offset` of their message.
    pub const fn new(bytes: &'a [u8], offset: usize) -> Self {
        Self { rest: bytes, offset }
    }
}

impl<'a> Iterator for Actions<'a> {
    type Item = Result<Action<'a>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let read = Action::read(self.rest, self.offset);
        // An error leaves nothing to go on with; `read` never returns a length of zero.
        let length = read.as_ref().map_or(self.rest.len(), |(_, length)| *length);
        self.rest = self.rest.get(length..).unwrap_or(&[]);
        self.offset += length;
        Some(read.map(|(action, _)| action))
    }
}

impl FusedIterator for Actions<'_> {}

#[inline]
pub(crate) fn write_action(action: &any::Action, out: &mut BytesMut) -> Result<(), EncodeError> {
    match *action {
        any::Action::Output { port, max_len } => {
            let mut bytes = [0; 8];
            set16::<0, _>(&mut bytes, kind::OUTPUT);
            set16::<2, _>(&mut bytes, 8);
            set16::<4, _>(&mut bytes, port_to_wire(port, "output port above 0xff00")?);
            set16::<6, _>(&mut bytes, max_len);
            out.put_slice(&bytes);
        }
        any::Action::SetVlanId(id) => {
            if id > VLAN_ID_MAX {
                return Err(EncodeError::Value { field: "VLAN identifier" });
            }
            let [high, low] = id.to_be_bytes();
            short(out, kind::SET_VLAN_VID, [high, low, 0, 0]);
        }
        any::Action::SetVlanPriority(priority) => {
            if priority > VLAN_PRIORITY_MAX {
                return Err(EncodeError::Value { field: "VLAN priority" });
            }
            short(out, kind::SET_VLAN_PCP, [priority, 0, 0, 0]);
        }
        any::Action::PopVlan => short(out, kind::STRIP_VLAN, [0; 4]),
        any::Action::SetEthSrc(address) => ethernet(out, kind::SET_DL_SRC, address),
        any::Action::SetEthDst(address) => ethernet(out, kind::SET_DL_DST, address),
        any::Action::SetIpv4Src(address) => short(out, kind::SET_NW_SRC, address.octets()),
        any::Action::SetIpv4Dst(address) => short(out, kind::SET_NW_DST, address.octets()),
        any::Action::SetIpDscp(dscp) => {
            if dscp > DSCP_MAX {
                return Err(EncodeError::Value { field: "IP DSCP" });
            }
            short(out, kind::SET_NW_TOS, [dscp << 2, 0, 0, 0]);
        }
        any::Action::PushVlan(_) => return Err(unsupported("the push-VLAN action")),
        any::Action::Group(_) => return Err(unsupported("the group action")),
        any::Action::Other(_) => return Err(unsupported("an action that was decoded without a name")),
    }
    Ok(())
}

fn short(out: &mut BytesMut, kind: u16, value: [u8; 4]) {
    out.put_u16(kind);
    out.put_u16(8);
    out.put_slice(&value);
}

fn ethernet(out: &mut BytesMut, kind: u16, address: MacAddress) {
    out.put_u16(kind);
    out.put_u16(16);
    out.put_slice(&address.0);
    out.put_bytes(0, 6);
}
