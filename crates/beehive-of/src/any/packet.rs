//! Packet-in and packet-out.

use bytes::{BufMut, BytesMut};

use super::action::Actions;
use super::match_list::{number, value};
use super::{buffer_from_wire, buffer_to_wire};
use crate::encode::{EncodeError, message, patch_length};
use crate::error::{Error, ErrorKind, Part};
use crate::field::{be8, be16, be32, be64, bounded, fixed, padded, set_array, set8, set16, set32, set64};
use crate::frame::Frame;
use crate::message::{self, TYPE_OXM};
use crate::port_number::PortNo;
use crate::schema::Writer;
use crate::version::Version;

/// A packet that a switch sends to the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketIn<'a> {
    /// The identifier of the packet in the switch's buffer; `None` if the switch does not buffer it.
    pub buffer_id: Option<u32>,
    /// The length of the packet in bytes; larger than `data` if the switch truncated it.
    pub total_len: u16,
    /// The port that received the packet.
    pub in_port: PortNo,
    /// The reason why the switch sent the packet.
    pub reason: PacketInReason,
    /// The table of the flow that sent the packet; 0 in 1.0.
    pub table_id: u8,
    /// The cookie of the flow that sent the packet; `None` before 1.3, or if the switch reports no cookie.
    pub cookie: Option<u64>,
    /// The packet from its Ethernet header on, possibly truncated.
    pub data: &'a [u8],
}

/// The reason why a switch sent a packet to the controller.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum PacketInReason {
    /// No flow matched, or only the table-miss flow did.
    NoMatch,
    /// A flow executed an output action.
    Action,
    /// The time to live of the packet expired. Since 1.2.
    InvalidTtl,
    /// The action set contained an output. Since 1.4; earlier versions report [`PacketInReason::Action`].
    ActionSet,
    /// A group executed an output. Since 1.4; earlier versions report [`PacketInReason::Action`].
    Group,
    /// A packet-out contained an output. Since 1.4; earlier versions report [`PacketInReason::Action`].
    PacketOut,
    /// Another reason, given by its number on the wire.
    Other(u8),
}

impl PacketInReason {
    #[inline]
    pub(crate) const fn from_wire(wire: u8) -> Self {
        match wire {
            0 => Self::NoMatch,
            1 => Self::Action,
            2 => Self::InvalidTtl,
            3 => Self::ActionSet,
            4 => Self::Group,
            5 => Self::PacketOut,
            other => Self::Other(other),
        }
    }

    #[inline]
    pub(crate) const fn wire(self) -> u8 {
        match self {
            Self::NoMatch => 0,
            Self::Action => 1,
            Self::InvalidTtl => 2,
            Self::ActionSet => 3,
            Self::Group => 4,
            Self::PacketOut => 5,
            Self::Other(other) => other,
        }
    }
}

impl<'a> PacketIn<'a> {
    /// Returns whether `data` is the whole packet.
    #[inline]
    pub const fn is_whole(&self) -> bool {
        self.data.len() >= self.total_len as usize
    }

    /// Parses the packet-in in `frame` without checking the type in the header.
    ///
    /// # Errors
    ///
    /// Fails if the message is malformed or, from 1.2 on, if its match lacks the mandatory `in_port` (1.3.5,
    /// 7.4.1).
    #[inline]
    pub fn parse(version: Version, frame: Frame<'a>) -> Result<Self, Error> {
        match version {
            Version::V1_0 => Self::parse_10(frame),
            Version::V1_1 => Self::parse_11(frame),
            version => Self::parse_with_match(version, frame),
        }
    }

    #[inline]
    fn parse_10(frame: Frame<'a>) -> Result<Self, Error> {
        let (fixed, data) = fixed::<10>(frame.body(), Part::Message, 8, "packet-in")?;
        Ok(Self {
            buffer_id: buffer_from_wire(be32::<0, _>(fixed)),
            total_len: be16::<4, _>(fixed),
            in_port: PortNo::from_v10(be16::<6, _>(fixed)),
            reason: PacketInReason::from_wire(be8::<8, _>(fixed)),
            table_id: 0,
            cookie: None,
            data,
        })
    }

    fn parse_11(frame: Frame<'a>) -> Result<Self, Error> {
        let (fixed, data) = fixed::<16>(frame.body(), Part::Message, 8, "packet-in")?;
        Ok(Self {
            buffer_id: buffer_from_wire(be32::<0, _>(fixed)),
            total_len: be16::<12, _>(fixed),
            in_port: PortNo(be32::<4, _>(fixed)),
            reason: PacketInReason::from_wire(be8::<14, _>(fixed)),
            table_id: be8::<15, _>(fixed),
            cookie: None,
            data,
        })
    }

    /// Parses a packet-in of 1.2 or later. These versions differ only in the cookie, which 1.2 lacks.
    #[inline]
    fn parse_with_match(version: Version, frame: Frame<'a>) -> Result<Self, Error> {
        let (head, rest) = fixed::<8>(frame.body(), Part::Message, 8, "packet-in")?;
        let (cookie, rest, offset) = if version == Version::V1_2 {
            (None, rest, 16)
        } else {
            let (cookie, rest) = fixed::<8>(rest, Part::Message, 16, "packet-in")?;
            (Some(be64::<0, _>(cookie)).filter(|cookie| *cookie != NO_COOKIE), rest, 24)
        };
        let (in_port, rest) = in_port_of(rest, offset)?;
        let Some(data) = rest.get(2..) else {
            let end = frame.bytes().len();
            return Err(Error::new(ErrorKind::Truncated, Part::Message, end, "packet-in padding"));
        };

        Ok(Self {
            buffer_id: buffer_from_wire(be32::<0, _>(head)),
            total_len: be16::<4, _>(head),
            in_port,
            reason: PacketInReason::from_wire(be8::<6, _>(head)),
            table_id: be8::<7, _>(head),
            cookie,
            data,
        })
    }

    /// Appends the encoded message to `out`.
    ///
    /// # Errors
    ///
    /// Fails if the message is too long or the version cannot express a field: a table or a port above 0xff00
    /// in 1.0, a cookie before 1.3, or a reason that only later versions have.
    #[inline]
    pub fn encode_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        let unsupported = |field| Err(EncodeError::unsupported(version, field));
        if version < Version::V1_3 && self.cookie.is_some() {
            return unsupported("the cookie of a packet-in");
        }

        match self.reason {
            PacketInReason::InvalidTtl if version < Version::V1_2 => {
                return unsupported("the packet-in reason invalid_ttl");
            }
            PacketInReason::ActionSet | PacketInReason::Group | PacketInReason::PacketOut
                if version < Version::V1_4 =>
            {
                return unsupported("the packet-in reasons action_set, group and packet_out");
            }
            _ => {}
        }

        let buffer_id = buffer_to_wire(self.buffer_id);
        let mut bytes = [0; 34];
        let length = match version {
            Version::V1_0 => {
                if self.table_id != 0 {
                    return unsupported("the table of a packet-in");
                }

                let Some(in_port) = self.in_port.to_v10() else {
                    return unsupported("in_port above 0xff00");
                };

                set32::<0, _>(&mut bytes, buffer_id);
                set16::<4, _>(&mut bytes, self.total_len);
                set16::<6, _>(&mut bytes, in_port);
                set8::<8, _>(&mut bytes, self.reason.wire());
                10
            }
            Version::V1_1 => {
                set32::<0, _>(&mut bytes, buffer_id);
                set32::<4, _>(&mut bytes, self.in_port.0);
                set32::<8, _>(&mut bytes, self.in_port.0);
                set16::<12, _>(&mut bytes, self.total_len);
                set8::<14, _>(&mut bytes, self.reason.wire());
                set8::<15, _>(&mut bytes, self.table_id);
                16
            }
            Version::V1_2 => {
                self.set_head(&mut bytes);
                set_array::<8, 16, _>(&mut bytes, in_port_match(self.in_port));
                26
            }
            _ => {
                self.set_head(&mut bytes);
                set64::<8, _>(&mut bytes, self.cookie.unwrap_or(NO_COOKIE));
                set_array::<16, 16, _>(&mut bytes, in_port_match(self.in_port));
                34
            }
        };

        message(out, version.wire(), PACKET_IN, xid, |out| {
            out.put_slice(bytes.get(..length).unwrap_or(&bytes));
            out.put_slice(self.data);
            Ok(())
        })
    }

    #[inline]
    fn set_head(&self, bytes: &mut [u8; 34]) {
        set32::<0, _>(bytes, buffer_to_wire(self.buffer_id));
        set16::<4, _>(bytes, self.total_len);
        set8::<6, _>(bytes, self.reason.wire());
        set8::<7, _>(bytes, self.table_id);
    }
}

/// The wire value that means "no cookie".
const NO_COOKIE: u64 = u64::MAX;
/// The message types, the same in every version.
const PACKET_IN: u8 = 10;
const PACKET_OUT: u8 = 13;
/// The header of the match field `in_port`.
const IN_PORT_FIELD: u32 = 0x8000_0004;

/// Encodes a match with `in_port` only: 12 bytes and 4 bytes of padding.
#[inline]
fn in_port_match(port: PortNo) -> [u8; 16] {
    let mut bytes = [0; 16];
    set16::<0, _>(&mut bytes, TYPE_OXM);
    set16::<2, _>(&mut bytes, 12);
    set32::<4, _>(&mut bytes, IN_PORT_FIELD);
    set32::<8, _>(&mut bytes, port.0);
    bytes
}

/// Checks the match at the start of `bytes`. Returns its `in_port` and the bytes after the match. This
/// function is on the hot path of a controller, so it checks only the lengths of the other fields.
#[inline]
fn in_port_of(bytes: &[u8], offset: usize) -> Result<(PortNo, &[u8]), Error> {
    let wrong = |kind, at: usize, field| Err(Error::new(kind, Part::Match, at, field));
    let (head, _) = fixed::<4>(bytes, Part::Match, offset, "match")?;
    if be16::<0, _>(head) != TYPE_OXM {
        return wrong(ErrorKind::Value, offset, "match type");
    }

    let length = usize::from(be16::<2, _>(head));
    let (whole, _) = bounded(bytes, length, 4, Part::Match, offset + 2, "match length")?;
    let Some(after) = bytes.get(padded(length)..) else {
        return wrong(ErrorKind::Truncated, offset + bytes.len(), "match padding");
    };
    let mut rest = whole.get(4..).unwrap_or(&[]);
    let mut in_port = None;
    while !rest.is_empty() {
        let at = offset + length - rest.len();
        let (head, payload) = fixed::<4>(rest, Part::Match, at, "match field")?;
        let header = be32::<0, _>(head);
        let field_length = usize::from(header as u8);
        let (value, next) = bounded(payload, field_length, 1, Part::Match, at + 3, "match field length")?;
        if header & 0x100 != 0 && field_length % 2 != 0 {
            return wrong(ErrorKind::LengthWrong, at + 3, "match field length");
        }
        if header & 0xffff_ff00 == IN_PORT_FIELD & 0xffff_ff00 {
            match value.try_into() {
                Ok(value) => in_port = Some(PortNo(u32::from_be_bytes(value))),
                Err(_) => return wrong(ErrorKind::LengthWrong, at + 3, "match field length"),
            }
        }

        rest = next;
    }

    match in_port {
        Some(port) => Ok((port, after)),
        None => wrong(ErrorKind::Missing, offset, "in_port of packet-in"),
    }
}

/// A packet that the controller sends to a switch.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PacketOut<'a> {
    /// The identifier of a packet in the switch's buffer; `None` if `data` is the packet.
    pub buffer_id: Option<u32>,
    /// The port that the switch treats as the receiving port. Use [`PortNo::CONTROLLER`] for a packet that
    /// the controller created (1.0 also accepts [`PortNo::ANY`]).
    pub in_port: PortNo,
    /// The actions to apply to the packet.
    pub actions: Actions<'a>,
    /// The packet from its Ethernet header on; empty if the switch buffers it.
    pub data: &'a [u8],
}

impl<'a> PacketOut<'a> {
    pub(super) fn generalize(packet: &message::PacketOut<'a>) -> Result<Self, Error> {
        // From 1.5 on, the port is a field of the match.
        let in_port = match packet.match_fields.fields().basic(number::IN_PORT)? {
            Some(field) => PortNo(u32::from_be_bytes(value(&field, 16)?)),
            None => packet.in_port,
        };
        Ok(Self {
            buffer_id: buffer_from_wire(packet.buffer_id.0),
            in_port,
            actions: packet.actions.reinterpret(),
            data: packet.data,
        })
    }

    /// Appends the encoded message to `out`.
    ///
    /// # Errors
    ///
    /// Fails if the version cannot express a port or an action, or the message is too long.
    #[inline]
    pub fn encode_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        let mut bytes = [0; 24];
        set32::<0, _>(&mut bytes, buffer_to_wire(self.buffer_id));

        // The length of the fixed part, and the offset of the actions' length in it.
        let (length, at) = match version {
            Version::V1_0 => {
                let Some(in_port) = self.in_port.to_v10() else {
                    return Err(EncodeError::unsupported(version, "in_port above 0xff00"));
                };
                set16::<4, _>(&mut bytes, in_port);
                (8, 6)
            }
            Version::V1_5 => {
                set_array::<8, 16, _>(&mut bytes, in_port_match(self.in_port));
                (24, 4)
            }
            _ => {
                set32::<4, _>(&mut bytes, self.in_port.0);
                (16, 8)
            }
        };

        message(out, version.wire(), PACKET_OUT, xid, |out| {
            let head = out.len();
            out.put_slice(bytes.get(..length).unwrap_or(&bytes));
            let start = out.len();
            self.actions.append(&mut Writer::new(version, out))?;
            patch_length(out, start, head + at)?;
            out.put_slice(self.data);
            Ok(())
        })
    }
}
