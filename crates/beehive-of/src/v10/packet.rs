//! Packet-in (5.4.1) and packet-out (5.3.6) of 1.0.

use bytes::{BufMut, BytesMut};

use super::{Actions, WIRE, message_type, port_to_wire, unsupported};
use crate::any::{self, PacketInReason};
use crate::encode::{EncodeError, message, patch_length};
use crate::error::{Error, ErrorKind, Part};
use crate::field::{be8, be16, be32, fixed, getters, set8, set16, set32};
use crate::frame::Frame;
use crate::port_number::PortNo;
use crate::version::Version;

/// `ofp_packet_in`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketIn<'a> {
    fixed: &'a [u8; 10],
    data: &'a [u8],
}

impl<'a> PacketIn<'a> {
    /// Checks the message.
    ///
    /// # Errors
    ///
    /// It is cut off.
    #[inline]
    pub fn parse(frame: Frame<'a>) -> Result<Self, Error> {
        let (fixed, data) = fixed::<10>(frame.body(), Part::Message, 8, "packet-in")?;
        Ok(Self { fixed, data })
    }

    getters! {
        /// The buffer identifier, or 0xffffffff.
        buffer_id = be32 at 0 -> u32;
        /// The length of the packet in bytes.
        total_len = be16 at 4 -> u16;
        /// The port that it came in on.
        in_port = be16 at 6 -> u16;
        /// Why it is sent (`ofp_packet_in_reason`).
        reason = be8 at 8 -> u8;
    }

    /// The packet, or the start of it.
    #[inline]
    pub const fn data(&self) -> &'a [u8] {
        self.data
    }

    #[inline]
    pub(crate) fn generalise(&self) -> any::PacketIn<'a> {
        any::PacketIn {
            buffer_id: any::buffer_from_wire(self.buffer_id()),
            total_len: self.total_len(),
            in_port: PortNo::from_v10(self.in_port()),
            reason: PacketInReason::from_wire(self.reason()),
            table_id: 0,
            cookie: None,
            data: self.data,
        }
    }
}

#[inline]
pub(crate) fn write_packet_in(
    packet: &any::PacketIn<'_>,
    xid: u32,
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    if packet.table_id != 0 {
        return Err(unsupported("the table of a packet-in"));
    }
    if packet.cookie.is_some() {
        return Err(unsupported("the cookie of a packet-in"));
    }
    if packet.reason == PacketInReason::InvalidTtl {
        return Err(unsupported("the invalid-TTL reason of a packet-in"));
    }
    let mut bytes = [0; 10];
    set32::<0, _>(&mut bytes, any::buffer_to_wire(packet.buffer_id));
    set16::<4, _>(&mut bytes, packet.total_len);
    set16::<6, _>(&mut bytes, port_to_wire(packet.in_port, "in_port above 0xff00")?);
    set8::<8, _>(&mut bytes, packet.reason.wire());
    message(out, WIRE, message_type::PACKET_IN, xid, |out| {
        out.put_slice(&bytes);
        out.put_slice(packet.data);
        Ok(())
    })
}

/// `ofp_packet_out`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketOut<'a> {
    fixed: &'a [u8; 8],
    actions: &'a [u8],
    data: &'a [u8],
}

impl<'a> PacketOut<'a> {
    /// Where the actions start in the message.
    const ACTIONS: usize = 16;

    /// Checks the message; its actions are checked when iterated.
    ///
    /// # Errors
    ///
    /// It is cut off, or the actions reach beyond it.
    #[inline]
    pub fn parse(frame: Frame<'a>) -> Result<Self, Error> {
        let (fixed, rest) = fixed::<8>(frame.body(), Part::Message, 8, "packet-out")?;
        let Some((actions, data)) = rest.split_at_checked(usize::from(be16::<6, _>(fixed))) else {
            return Err(Error::new(
                ErrorKind::LengthTooLarge,
                Part::Message,
                14,
                "packet-out actions length",
            ));
        };
        Ok(Self { fixed, actions, data })
    }

    getters! {
        /// The buffer identifier, or 0xffffffff.
        buffer_id = be32 at 0 -> u32;
        /// The port that the packet is held to have come in on.
        in_port = be16 at 4 -> u16;
    }

    /// The actions.
    pub const fn actions(&self) -> Actions<'a> {
        Actions::new(self.actions, Self::ACTIONS)
    }

    /// The packet.
    pub const fn data(&self) -> &'a [u8] {
        self.data
    }

    #[inline]
    pub(crate) fn generalise(&self) -> any::PacketOut<'a> {
        any::PacketOut {
            buffer_id: any::buffer_from_wire(self.buffer_id()),
            in_port: PortNo::from_v10(self.in_port()),
            actions: any::Actions::wire(Version::V1_0, self.actions, Self::ACTIONS),
            data: self.data,
        }
    }
}

#[inline]
pub(crate) fn write_packet_out(
    packet: &any::PacketOut<'_>,
    xid: u32,
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    let mut bytes = [0; 8];
    set32::<0, _>(&mut bytes, any::buffer_to_wire(packet.buffer_id));
    set16::<4, _>(&mut bytes, port_to_wire(packet.in_port, "in_port above 0xff00")?);
    message(out, WIRE, message_type::PACKET_OUT, xid, |out| {
        out.put_slice(&bytes);
        let start = out.len();
        packet.actions.write(Version::V1_0, out)?;
        patch_length(out, start, start - 2)?;
        out.put_slice(packet.data);
        Ok(())
    })
}
