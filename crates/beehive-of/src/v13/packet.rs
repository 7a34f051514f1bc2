//! Packet-in (7.4.1) and packet-out (7.3.7) of 1.3.

use bytes::{BufMut, BytesMut};

use super::match_fields::{CLASS_BASIC, Match, TYPE_OXM, match_field};
use super::{Actions, WIRE, message_type};
use crate::any::{self, PacketInReason};
use crate::encode::{EncodeError, message, patch_length};
use crate::error::{Error, ErrorKind, Part};
use crate::field::{be8, be16, be32, be64, fixed, getters, set8, set16, set32, set64};
use crate::frame::Frame;
use crate::port_number::PortNo;
use crate::version::Version;

/// The cookie of a packet-in for which the switch has none.
const NO_COOKIE: u64 = u64::MAX;

/// `ofp_packet_in`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketIn<'a> {
    fixed: &'a [u8; 16],
    match_fields: Match<'a>,
    in_port: PortNo,
    data: &'a [u8],
}

impl<'a> PacketIn<'a> {
    /// Checks the message, and the fields of its match.
    ///
    /// # Errors
    ///
    /// It is cut off, a field of the match is malformed, or the match does not say the port that the packet came in
    /// on (7.4.1: it must).
    #[inline]
    pub fn parse(frame: Frame<'a>) -> Result<Self, Error> {
        let (fixed, rest) = fixed::<16>(frame.body(), Part::Message, 8, "packet-in")?;
        let (match_fields, rest) = Match::read(rest, 24)?;
        let mut in_port = None;
        for field in match_fields.fields() {
            let field = field?;
            if field.class == CLASS_BASIC && field.field == match_field::IN_PORT {
                in_port = Some(PortNo(u32::from_be_bytes(field.value()?)));
            }
        }
        let Some(in_port) = in_port else {
            return Err(Error::new(ErrorKind::Missing, Part::Match, 24, "in_port of packet-in"));
        };
        let Some(data) = rest.get(2..) else {
            return Err(Error::new(
                ErrorKind::Truncated,
                Part::Message,
                frame.bytes().len(),
                "packet-in padding",
            ));
        };
        Ok(Self { fixed, match_fields, in_port, data })
    }

    getters! {
        /// The buffer identifier, or 0xffffffff.
        buffer_id = be32 at 0 -> u32;
        /// The length of the packet in bytes.
        total_len = be16 at 4 -> u16;
        /// Why it is sent (`ofp_packet_in_reason`).
        reason = be8 at 6 -> u8;
        /// The table that sent it.
        table_id = be8 at 7 -> u8;
        /// The cookie of the flow that sent it, or all ones.
        cookie = be64 at 8 -> u64;
    }

    /// What the switch knows about the packet.
    #[inline]
    pub const fn match_fields(&self) -> Match<'a> {
        self.match_fields
    }

    /// The port that it came in on.
    #[inline]
    pub const fn in_port(&self) -> PortNo {
        self.in_port
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
            in_port: self.in_port,
            reason: PacketInReason::from_wire(self.reason()),
            table_id: self.table_id(),
            cookie: Some(self.cookie()).filter(|cookie| *cookie != NO_COOKIE),
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
    let mut bytes = [0; 34];
    set32::<0, _>(&mut bytes, any::buffer_to_wire(packet.buffer_id));
    set16::<4, _>(&mut bytes, packet.total_len);
    set8::<6, _>(&mut bytes, packet.reason.wire());
    set8::<7, _>(&mut bytes, packet.table_id);
    set64::<8, _>(&mut bytes, packet.cookie.unwrap_or(NO_COOKIE));
    // A match of one field, 12 bytes and 4 of padding, and the 2 bytes that align the packet's network header.
    set16::<16, _>(&mut bytes, TYPE_OXM);
    set16::<18, _>(&mut bytes, 12);
    set16::<20, _>(&mut bytes, CLASS_BASIC);
    set8::<22, _>(&mut bytes, match_field::IN_PORT << 1);
    set8::<23, _>(&mut bytes, 4);
    set32::<24, _>(&mut bytes, packet.in_port.0);
    message(out, WIRE, message_type::PACKET_IN, xid, |out| {
        out.put_slice(&bytes);
        out.put_slice(packet.data);
        Ok(())
    })
}

/// `ofp_packet_out`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketOut<'a> {
    fixed: &'a [u8; 16],
    actions: &'a [u8],
    data: &'a [u8],
}

impl<'a> PacketOut<'a> {
    /// Where the actions start in the message.
    const ACTIONS: usize = 24;

    /// Checks the message; its actions are checked when iterated.
    ///
    /// # Errors
    ///
    /// It is cut off, or the actions reach beyond it.
    #[inline]
    pub fn parse(frame: Frame<'a>) -> Result<Self, Error> {
        let (fixed, rest) = fixed::<16>(frame.body(), Part::Message, 8, "packet-out")?;
        let Some((actions, data)) = rest.split_at_checked(usize::from(be16::<8, _>(fixed))) else {
            return Err(Error::new(
                ErrorKind::LengthTooLarge,
                Part::Message,
                16,
                "packet-out actions length",
            ));
        };
        Ok(Self { fixed, actions, data })
    }

    getters! {
        /// The buffer identifier, or 0xffffffff.
        buffer_id = be32 at 0 -> u32;
    }

    /// The port that the packet is held to have come in on.
    pub fn in_port(&self) -> PortNo {
        PortNo(be32::<4, _>(self.fixed))
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
            in_port: self.in_port(),
            actions: any::Actions::wire(Version::V1_3, self.actions, Self::ACTIONS),
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
    let mut bytes = [0; 16];
    set32::<0, _>(&mut bytes, any::buffer_to_wire(packet.buffer_id));
    set32::<4, _>(&mut bytes, packet.in_port.0);
    message(out, WIRE, message_type::PACKET_OUT, xid, |out| {
        out.put_slice(&bytes);
        let start = out.len();
        packet.actions.write(Version::V1_3, out)?;
        patch_length(out, start, start - 8)?;
        out.put_slice(packet.data);
        Ok(())
    })
}
