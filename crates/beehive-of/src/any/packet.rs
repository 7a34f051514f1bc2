//! Packets between switch and controller.

use bytes::BytesMut;

use super::action::Actions;
use crate::encode::EncodeError;
use crate::error::Error;
use crate::frame::Frame;
use crate::port_number::PortNo;
use crate::version::Version;
use crate::{v10, v13};

/// A packet that a switch hands to the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketIn<'a> {
    /// Where the switch keeps the packet; `None` when `data` is all there is.
    pub buffer_id: Option<u32>,
    /// The length of the packet in bytes; more than `data` has when the switch cut it off.
    pub total_len: u16,
    /// The port that it came in on.
    pub in_port: PortNo,
    /// Why it is sent.
    pub reason: PacketInReason,
    /// The table that sent it; 0 in 1.0.
    pub table_id: u8,
    /// The cookie of the flow that sent it; `None` in 1.0 and where the switch gives none.
    pub cookie: Option<u64>,
    /// The packet from its Ethernet header on, or the start of it.
    pub data: &'a [u8],
}

/// Why a packet is sent to the controller.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum PacketInReason {
    /// No flow matched, or the table-miss flow did.
    NoMatch,
    /// A flow's action says so.
    Action,
    /// Its time to live ran out. 1.3 only.
    InvalidTtl,
    /// Another reason, as on the wire.
    Other(u8),
}

impl PacketInReason {
    #[inline]
    pub(crate) const fn from_wire(wire: u8) -> Self {
        match wire {
            0 => Self::NoMatch,
            1 => Self::Action,
            2 => Self::InvalidTtl,
            other => Self::Other(other),
        }
    }

    #[inline]
    pub(crate) const fn wire(self) -> u8 {
        match self {
            Self::NoMatch => 0,
            Self::Action => 1,
            Self::InvalidTtl => 2,
            Self::Other(other) => other,
        }
    }
}

impl<'a> PacketIn<'a> {
    /// Whether `data` is the whole packet.
    #[inline]
    pub const fn is_whole(&self) -> bool {
        self.data.len() >= self.total_len as usize
    }

    /// Reads the packet-in that `frame` is, without looking at the frame's type.
    ///
    /// # Errors
    ///
    /// The message is malformed.
    #[inline]
    pub fn parse(version: Version, frame: Frame<'a>) -> Result<Self, Error> {
        match version {
            Version::V1_0 => Ok(v10::PacketIn::parse(frame)?.generalise()),
            Version::V1_3 => Ok(v13::PacketIn::parse(frame)?.generalise()),
        }
    }

    /// Appends the message.
    ///
    /// # Errors
    ///
    /// 1.0 cannot express a table, a cookie or [`PacketInReason::InvalidTtl`], nor a port above 0xff00; or the message
    /// is too long.
    #[inline]
    pub fn encode_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        match version {
            Version::V1_0 => v10::write_packet_in(self, xid, out),
            Version::V1_3 => v13::write_packet_in(self, xid, out),
        }
    }
}

/// A packet for a switch to process.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PacketOut<'a> {
    /// The packet that the switch keeps; `None` when `data` is the packet.
    pub buffer_id: Option<u32>,
    /// The port that the packet is held to have come in on; [`PortNo::CONTROLLER`] when it is the controller's own
    /// (1.3 allows no other number for that; 1.0 takes [`PortNo::ANY`] too).
    pub in_port: PortNo,
    /// What to do with it.
    pub actions: Actions<'a>,
    /// The packet from its Ethernet header on; empty when the switch keeps it.
    pub data: &'a [u8],
}

impl<'a> PacketOut<'a> {
    /// Appends the message.
    ///
    /// # Errors
    ///
    /// The version cannot express a port or an action, or the message is too long.
    #[inline]
    pub fn encode_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        match version {
            Version::V1_0 => v10::write_packet_out(self, xid, out),
            Version::V1_3 => v13::write_packet_out(self, xid, out),
        }
    }
}
