//! Version-independent actions: what a switch does with a packet.

use core::net::Ipv4Addr;

use bytes::BufMut;

use super::match_list::{VLAN_PRESENT, number, value};
use super::match_list_encode::put;
use crate::address::MacAddress;
use crate::encode::EncodeError;
use crate::error::Error;
use crate::field::{set16, set32};
use crate::limits::{DSCP_MAX, VLAN_ID_MAX, VLAN_PRIORITY_MAX};
use crate::message;
use crate::oxm::{OxmField, class};
use crate::port_number::PortNo;
use crate::schema::{List, Reader, Sink, Source, Tagged, Value, Writer};
use crate::version::Version;

/// A version-independent action. A switch drops the packet if the list of actions is empty.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Action {
    /// Sends the packet out of a port. [`Action::output`] builds the common case.
    Output {
        /// The port to send to.
        port: PortNo,
        /// Maximum number of bytes to send when the port is [`PortNo::CONTROLLER`]; 0xffff sends the whole
        /// packet, unbuffered.
        max_len: u16,
    },
    /// Sends the packet through a queue of a port. 1.0 only; in later versions, select the queue first
    /// (`SetQueue`).
    Enqueue {
        /// The port to send to.
        port: PortNo,
        /// The queue of that port.
        queue_id: u32,
    },
    /// Selects the queue for outputs. Not in 1.0.
    SetQueue(u32),
    /// Sets the VLAN identifier (12 bits). In 1.0, this action adds a tag if the packet has none; later
    /// versions require a tag (see `PushVlan`).
    SetVlanId(u16),
    /// Sets the VLAN priority (3 bits).
    SetVlanPriority(u8),
    /// Removes the outermost VLAN tag.
    PopVlan,
    /// Adds a VLAN tag with this Ethernet type (0x8100 or 0x88a8). Not in 1.0.
    PushVlan(u16),
    /// Sets the Ethernet source.
    SetEthSrc(MacAddress),
    /// Sets the Ethernet destination.
    SetEthDst(MacAddress),
    /// Sets the IPv4 source.
    SetIpv4Src(Ipv4Addr),
    /// Sets the IPv4 destination.
    SetIpv4Dst(Ipv4Addr),
    /// Sets the differentiated services code point (6 bits) of an IP packet.
    SetIpDscp(u8),
    /// Sets the time to live of an IP packet. Not in 1.0.
    SetIpTtl(u8),
    /// Decrements the time to live of an IP packet. Not in 1.0.
    DecIpTtl,
    /// Processes the packet with the group that has this number. Not in 1.0.
    Group(u32),
    /// An action that this enum does not model, with its type number. Only decoding produces this variant.
    /// Encoding it fails, unless the whole list comes from a message of the same version; such a list is
    /// copied unchanged.
    Other(u16),
}

/// The actions of a message.
pub type Actions<'a> = List<'a, Action>;

impl Action {
    /// Sends the whole packet out of `port`.
    #[inline]
    pub const fn output(port: PortNo) -> Self {
        Self::Output { port, max_len: 0xffff }
    }

    fn generalize(action: &message::Action<'_>, version: Version, offset: usize) -> Result<Self, Error> {
        use message::Action as Wire;
        Ok(match action {
            Wire::Output(output) => Self::Output { port: output.port, max_len: output.max_len.0 },
            Wire::Enqueue(enqueue) => Self::Enqueue { port: enqueue.port, queue_id: enqueue.queue_id.0 },
            Wire::SetQueue(queue) => Self::SetQueue(queue.queue_id.0),
            Wire::SetVlanId(set) => Self::SetVlanId(set.vlan_id & VLAN_ID_MAX),
            Wire::SetVlanPriority(set) => Self::SetVlanPriority(set.vlan_priority & VLAN_PRIORITY_MAX),
            Wire::PopVlan(_) => Self::PopVlan,
            Wire::PushVlan(push) => Self::PushVlan(push.eth_type),
            Wire::SetEthSrc(set) => Self::SetEthSrc(set.address),
            Wire::SetEthDst(set) => Self::SetEthDst(set.address),
            Wire::SetIpv4Src(set) => Self::SetIpv4Src(set.address),
            Wire::SetIpv4Dst(set) => Self::SetIpv4Dst(set.address),
            Wire::SetIpTos(set) => Self::SetIpDscp(set.value >> 2),
            Wire::SetIpTtl(set) => Self::SetIpTtl(set.value),
            Wire::DecIpTtl(_) => Self::DecIpTtl,
            Wire::Group(group) => Self::Group(group.group_id.0),
            Wire::SetField(set) => return generalize_field(&set.field, offset),
            other => Self::Other(other.kind(version).unwrap_or(0xffff)),
        })
    }
}

fn generalize_field(field: &OxmField<'_>, offset: usize) -> Result<Action, Error> {
    // Masked set-field actions exist in 1.5 only, and this enum has no variant for them.
    if field.class != class::BASIC || field.mask.is_some() {
        return Ok(Action::Other(kind::SET_FIELD));
    }
    Ok(match field.number {
        number::ETH_SRC => Action::SetEthSrc(MacAddress(value(field, offset)?)),
        number::ETH_DST => Action::SetEthDst(MacAddress(value(field, offset)?)),
        number::VLAN_VID => Action::SetVlanId(u16::from_be_bytes(value(field, offset)?) & VLAN_ID_MAX),
        number::VLAN_PCP => {
            Action::SetVlanPriority(u8::from_be_bytes(value(field, offset)?) & VLAN_PRIORITY_MAX)
        }

        number::IP_DSCP => Action::SetIpDscp(u8::from_be_bytes(value(field, offset)?) & DSCP_MAX),
        number::IPV4_SRC => Action::SetIpv4Src(Ipv4Addr::from(value::<4>(field, offset)?)),
        number::IPV4_DST => Action::SetIpv4Dst(Ipv4Addr::from(value::<4>(field, offset)?)),
        _ => Action::Other(kind::SET_FIELD),
    })
}

/// Type numbers of the actions that this module encodes directly, because they occur in the most frequent
/// messages.
mod kind {
    pub(super) const OUTPUT: u16 = 0;
    pub(super) const SET_FIELD: u16 = 25;
}

impl<'a> Value<'a> for Action {
    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        // The offset of the match field inside a set-field action.
        let (version, offset) = (reader.version(), reader.offset() + 4);
        Self::generalize(&message::Action::read(reader)?, version, offset)
    }

    #[inline]
    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        match (*self, writer.version()) {
            (Self::Output { port, max_len }, Version::V1_0) => {
                let Some(port) = port.to_v10() else {
                    return Err(writer.unsupported("output port above 0xff00"));
                };
                let mut bytes = [0; 8];
                set16::<2, _>(&mut bytes, 8);
                set16::<4, _>(&mut bytes, port);
                set16::<6, _>(&mut bytes, max_len);
                writer.put(&bytes);
                Ok(())
            }
            (Self::Output { port, max_len }, _) => {
                let mut bytes = [0; 16];
                set16::<0, _>(&mut bytes, kind::OUTPUT);
                set16::<2, _>(&mut bytes, 16);
                set32::<4, _>(&mut bytes, port.0);
                set16::<8, _>(&mut bytes, max_len);
                writer.put(&bytes);
                Ok(())
            }
            (Self::Enqueue { .. }, version) if version != Version::V1_0 => {
                Err(writer.unsupported("the enqueue action (use set_queue and output)"))
            }
            (_, Version::V1_0 | Version::V1_1) => self.write_old(writer),
            _ => self.write_field(writer),
        }
    }

    fn show(&self, _version: Version, sink: &mut dyn Sink) {
        sink.text(format_args!("{self:?}"));
    }

    fn compose(source: &dyn Source, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        message::Action::compose(source, writer)
    }
}

impl Action {
    /// Checks that the values are in range.
    fn check(&self) -> Result<(), EncodeError> {
        match *self {
            Self::SetVlanId(id) if id > VLAN_ID_MAX => Err(EncodeError::Value { field: "VLAN identifier" }),
            Self::SetVlanPriority(priority) if priority > VLAN_PRIORITY_MAX => {
                Err(EncodeError::Value { field: "VLAN priority" })
            }
            Self::SetIpDscp(dscp) if dscp > DSCP_MAX => Err(EncodeError::Value { field: "IP DSCP" }),
            _ => Ok(()),
        }
    }

    /// Appends an action of 1.0 or 1.1. These versions have a separate action for every field.
    fn write_old(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        use message::Action as Wire;
        self.check()?;
        match *self {
            Self::SetVlanId(vlan_id) => Wire::SetVlanId(message::SetVlanId { vlan_id }),
            Self::SetVlanPriority(vlan_priority) => {
                Wire::SetVlanPriority(message::SetVlanPriority { vlan_priority })
            }
            Self::SetEthSrc(address) => Wire::SetEthSrc(message::SetEthernet { address }),
            Self::SetEthDst(address) => Wire::SetEthDst(message::SetEthernet { address }),
            Self::SetIpv4Src(address) => Wire::SetIpv4Src(message::SetIpv4 { address }),
            Self::SetIpv4Dst(address) => Wire::SetIpv4Dst(message::SetIpv4 { address }),
            Self::SetIpDscp(dscp) => Wire::SetIpTos(message::SetByte { value: dscp << 2 }),
            Self::Enqueue { port, queue_id } => {
                Wire::Enqueue(message::Enqueue { port, queue_id: message::QueueId(queue_id) })
            }
            _ => return self.write_plain(writer),
        }
        .write(writer)
    }

    /// Appends an action of 1.2 or later, where the set-field action sets any field.
    #[inline]
    fn write_field(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.check()?;
        match *self {
            Self::SetVlanId(id) => set_field(writer, number::VLAN_VID, (VLAN_PRESENT | id).to_be_bytes()),
            Self::SetVlanPriority(priority) => set_field(writer, number::VLAN_PCP, [priority]),
            Self::SetIpDscp(dscp) => set_field(writer, number::IP_DSCP, [dscp]),
            Self::SetEthSrc(address) => set_field(writer, number::ETH_SRC, address.0),
            Self::SetEthDst(address) => set_field(writer, number::ETH_DST, address.0),
            Self::SetIpv4Src(address) => set_field(writer, number::IPV4_SRC, address.octets()),
            Self::SetIpv4Dst(address) => set_field(writer, number::IPV4_DST, address.octets()),
            _ => return self.write_plain(writer),
        }

        Ok(())
    }

    /// Appends an action whose encoding is the same in every version that has it.
    fn write_plain(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        use message::Action as Wire;
        let missing = |field, present: bool, writer: &Writer<'_>| {
            if present { Ok(()) } else { Err(writer.unsupported(field)) }
        };
        let newer = writer.version() != Version::V1_0;
        match *self {
            Self::PopVlan => Wire::PopVlan(message::NoArgument {}),
            Self::PushVlan(eth_type) => {
                missing("the push-VLAN action", newer, writer)?;
                Wire::PushVlan(message::EtherType { eth_type })
            }
            Self::SetQueue(queue_id) => {
                missing("the set-queue action", newer, writer)?;
                Wire::SetQueue(message::SetQueue { queue_id: message::QueueId(queue_id) })
            }
            Self::SetIpTtl(value) => {
                missing("the set-TTL action", newer, writer)?;
                Wire::SetIpTtl(message::SetByte { value })
            }
            Self::DecIpTtl => {
                missing("the decrement-TTL action", newer, writer)?;
                Wire::DecIpTtl(message::NoArgument {})
            }
            Self::Group(group_id) => {
                missing("the group action", newer, writer)?;
                Wire::Group(message::Group { group_id: message::GroupId(group_id) })
            }
            _ => return Err(writer.unsupported("an unknown action of a decoded message")),
        }
        .write(writer)
    }
}

/// Appends a set-field action: its header, the field and padding to a multiple of 8 bytes.
#[inline]
fn set_field<const N: usize>(writer: &mut Writer<'_>, field: u8, value: [u8; N]) {
    let length = const { crate::field::padded(8 + N) };
    let out = writer.buffer();
    out.put_u16(kind::SET_FIELD);
    out.put_u16(length as u16);
    put(out, field, value);
    out.put_bytes(0, length - 8 - N);
}
