//! Actions of 1.3 (7.2.5).

use core::iter::FusedIterator;
use core::net::Ipv4Addr;

use bytes::{BufMut, BytesMut};

use super::match_encode::put;
use super::match_fields::{CLASS_BASIC, MatchField, VLAN_PRESENT, match_field as number};
use super::unsupported;
use crate::address::MacAddress;
use crate::any;
use crate::encode::EncodeError;
use crate::error::{Error, ErrorKind, Part};
use crate::field::{be16, be32, bounded, fixed, set16, set32};
use crate::limits::{DSCP_MAX, VLAN_ID_MAX, VLAN_PRIORITY_MAX};
use crate::port_number::PortNo;

mod kind {
    pub(super) const OUTPUT: u16 = 0;
    pub(super) const PUSH_VLAN: u16 = 17;
    pub(super) const POP_VLAN: u16 = 18;
    pub(super) const SET_QUEUE: u16 = 21;
    pub(super) const GROUP: u16 = 22;
    pub(super) const SET_FIELD: u16 = 25;
}

/// An action (`ofp_action_header` and those that follow it).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Action<'a> {
    /// Sends the packet out of a port.
    Output {
        /// The port.
        port: PortNo,
        /// How many bytes go to the controller.
        max_len: u16,
    },
    /// Adds a VLAN tag with this Ethernet type.
    PushVlan(u16),
    /// Removes the outermost VLAN tag.
    PopVlan,
    /// Selects the queue for outputs.
    SetQueue(u32),
    /// Processes the packet by a group.
    Group(u32),
    /// Sets a header field.
    SetField(MatchField<'a>),
    /// Another action, or an experimenter's (type 0xffff).
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
        let expected = match kind {
            kind::OUTPUT => 16,
            kind::PUSH_VLAN | kind::POP_VLAN | kind::SET_QUEUE | kind::GROUP => 8,
            _ => length,
        };
        if length % 8 != 0 || length != expected {
            return Err(Error::new(ErrorKind::LengthWrong, Part::Action, offset + 2, "action length"));
        }
        let body = whole.get(4..).unwrap_or(&[]);
        let action = match kind {
            kind::OUTPUT => {
                let (long, _) = fixed::<16>(whole, Part::Action, offset, "action")?;
                Self::Output { port: PortNo(be32::<4, _>(long)), max_len: be16::<8, _>(long) }
            }
            kind::PUSH_VLAN => Self::PushVlan(be16::<4, _>(head)),
            kind::POP_VLAN => Self::PopVlan,
            kind::SET_QUEUE => Self::SetQueue(be32::<4, _>(head)),
            kind::GROUP => Self::Group(be32::<4, _>(head)),
            kind::SET_FIELD => Self::SetField(MatchField::read(body, offset + 4)?.0),
            _ => Self::Unknown { kind, body },
        };
        Ok((action, length))
    }

    #[inline]
    pub(crate) fn generalise(self) -> Result<any::Action, Error> {
        Ok(match self {
            Self::Output { port, max_len } => any::Action::Output { port, max_len },
            Self::PushVlan(eth_type) => any::Action::PushVlan(eth_type),
            Self::PopVlan => any::Action::PopVlan,
            Self::SetQueue(_) => any::Action::Other(kind::SET_QUEUE),
            Self::Group(group) => any::Action::Group(group),
            Self::SetField(field) => return generalise_field(&field),
            Self::Unknown { kind, .. } => any::Action::Other(kind),
        })
    }
}

fn generalise_field(field: &MatchField<'_>) -> Result<any::Action, Error> {
    // Only 1.5 sets fields under a mask.
    if field.class != CLASS_BASIC || field.mask.is_some() {
        return Ok(any::Action::Other(kind::SET_FIELD));
    }
    Ok(match field.field {
        number::ETH_SRC => any::Action::SetEthSrc(MacAddress(field.value()?)),
        number::ETH_DST => any::Action::SetEthDst(MacAddress(field.value()?)),
        number::VLAN_VID => any::Action::SetVlanId(u16::from_be_bytes(field.value()?) & VLAN_ID_MAX),
        number::VLAN_PCP => {
            any::Action::SetVlanPriority(u8::from_be_bytes(field.value()?) & VLAN_PRIORITY_MAX)
        }
        number::IP_DSCP => any::Action::SetIpDscp(u8::from_be_bytes(field.value()?) & DSCP_MAX),
        number::IPV4_SRC => any::Action::SetIpv4Src(Ipv4Addr::from(field.value::<4>()?)),
        number::IPV4_DST => any::Action::SetIpv4Dst(Ipv4Addr::from(field.value::<4>()?)),
        _ => any::Action::Other(kind::SET_FIELD),
    })
}

/// Actions in order; the first malformed one ends them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Actions<'a> {
    pub(super) rest: &'a [u8],
    pub(super) offset: usize,
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
            let mut bytes = [0; 16];
            set16::<0, _>(&mut bytes, kind::OUTPUT);
            set16::<2, _>(&mut bytes, 16);
            set32::<4, _>(&mut bytes, port.0);
            set16::<8, _>(&mut bytes, max_len);
            out.put_slice(&bytes);
        }
        any::Action::SetVlanId(id) => {
            if id > VLAN_ID_MAX {
                return Err(EncodeError::Value { field: "VLAN identifier" });
            }
            set_field(out, number::VLAN_VID, (VLAN_PRESENT | id).to_be_bytes());
        }
        any::Action::SetVlanPriority(priority) => {
            if priority > VLAN_PRIORITY_MAX {
                return Err(EncodeError::Value { field: "VLAN priority" });
            }
            set_field(out, number::VLAN_PCP, [priority]);
        }
        any::Action::SetIpDscp(dscp) => {
            if dscp > DSCP_MAX {
                return Err(EncodeError::Value { field: "IP DSCP" });
            }
            set_field(out, number::IP_DSCP, [dscp]);
        }
        any::Action::SetEthSrc(address) => set_field(out, number::ETH_SRC, address.0),
        any::Action::SetEthDst(address) => set_field(out, number::ETH_DST, address.0),
        any::Action::SetIpv4Src(address) => set_field(out, number::IPV4_SRC, address.octets()),
        any::Action::SetIpv4Dst(address) => set_field(out, number::IPV4_DST, address.octets()),
        any::Action::PopVlan => short(out, kind::POP_VLAN, [0; 4]),
        any::Action::PushVlan(eth_type) => {
            let [high, low] = eth_type.to_be_bytes();
            short(out, kind::PUSH_VLAN, [high, low, 0, 0]);
        }
        any::Action::Group(group) => short(out, kind::GROUP, group.to_be_bytes()),
        any::Action::Other(_) => return Err(unsupported("an action that was decoded without a name")),
    }
    Ok(())
}

fn short(out: &mut BytesMut, kind: u16, value: [u8; 4]) {
    out.put_u16(kind);
    out.put_u16(8);
    out.put_slice(&value);
}

/// Appends a set-field action: its header, the field and padding to a multiple of 8.
fn set_field<const N: usize>(out: &mut BytesMut, field: u8, value: [u8; N]) {
    let length = const { crate::field::padded(8 + N) };
    out.put_u16(kind::SET_FIELD);
    out.put_u16(length as u16);
    put(out, field, value);
    out.put_bytes(0, length - 8 - N);
}
