//! Messages without their version: what a driver works with.
//!
//! [`Message::parse`] turns a [`Frame`](crate::Frame) of any version into one of the structures here, which borrow
//! from it; `encode_into` of each, or of [`Message`], writes it back in any version. The same type serves both ways:
//! lists such as [`Actions`] are made from a slice when encoding, and read from the message when decoding.
//!
//! What a structure here has no name for is counted (`other` fields) or kept as [`Action::Other`]; the full content is
//! in [`message`](crate::message).

mod action;
mod flow;
mod instructions;
mod match_fields;
mod match_list;
mod match_list_encode;
mod match_standard;
mod message;
mod packet;
mod port;
mod statistics;
mod switch;
mod symmetric;

pub use crate::schema::{Elements, List, Value as Element};
pub use action::{Action, Actions};
pub use flow::{FlowCommand, FlowFlags, FlowMod, FlowRemoved, FlowRemovedReason};
pub use match_fields::{Match, VlanMatch};
pub use message::{Message, Unknown};
pub use packet::{PacketIn, PacketInReason, PacketOut};
pub use port::{Port, PortConfig, PortFeatures, PortName, PortReason, PortState, PortStatus, Ports};
pub use statistics::{
    FlowEntries, FlowEntry, FlowStatistics, FlowStatisticsRequest, Multipart, PortDescription,
};
pub use switch::{Capabilities, Features, Role, RoleMessage, SwitchConfig};
pub use symmetric::{Echo, ErrorMessage, Hello};

pub(crate) use match_list::from_fields;
pub(crate) use match_standard::write_match;

/// The buffer identifier that stands for none in every version (`OFP_NO_BUFFER`).
const NO_BUFFER: u32 = 0xffff_ffff;

/// A buffer identifier from the wire.
#[inline]
pub(crate) const fn buffer_from_wire(wire: u32) -> Option<u32> {
    if wire == NO_BUFFER { None } else { Some(wire) }
}

/// A buffer identifier on the wire.
#[inline]
pub(crate) const fn buffer_to_wire(buffer_id: Option<u32>) -> u32 {
    match buffer_id {
        Some(buffer_id) => buffer_id,
        None => NO_BUFFER,
    }
}
