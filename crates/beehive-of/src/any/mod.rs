//! Version-independent messages, for drivers.
//!
//! [`Message::parse`] converts a [`Frame`](crate::Frame) of any version to one of the structures in this
//! module, which borrow from the frame. The method `encode_into` of each structure, and of [`Message`],
//! encodes it in any version. Decoding and encoding use the same types: lists such as [`Actions`] borrow from
//! the message when decoding and from a slice when encoding.
//!
//! Fields that a structure does not model are counted in its `other` fields or kept as [`Action::Other`];
//! [`message`](crate::message) decodes everything.

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

/// The buffer identifier that means "not buffered" in every version (`OFP_NO_BUFFER`).
const NO_BUFFER: u32 = 0xffff_ffff;

/// Decodes a buffer identifier.
#[inline]
pub(crate) const fn buffer_from_wire(wire: u32) -> Option<u32> {
    if wire == NO_BUFFER { None } else { Some(wire) }
}

/// Encodes a buffer identifier.
#[inline]
pub(crate) const fn buffer_to_wire(buffer_id: Option<u32>) -> u32 {
    match buffer_id {
        Some(buffer_id) => buffer_id,
        None => NO_BUFFER,
    }
}
