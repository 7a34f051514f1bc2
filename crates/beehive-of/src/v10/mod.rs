//! OpenFlow 1.0 (wire version 1): its messages as borrowed views.
//!
//! A view's `parse` checks everything that its accessors read; sections are those of the OpenFlow Switch
//! Specification 1.0.0.

mod action;
mod flow;
mod match_fields;
mod packet;
mod port;
mod statistics;

pub use action::{Action, Actions};
pub use flow::{FlowMod, FlowRemoved};
pub use match_fields::Match;
pub use packet::{PacketIn, PacketOut};
pub use port::{Features, Port, PortStatus};
pub use statistics::{FlowEntry, FlowStatisticsRequest, Statistics};

pub(crate) use action::write_action;
pub(crate) use flow::{write_flow_mod, write_flow_removed};
pub(crate) use packet::{write_packet_in, write_packet_out};
pub(crate) use port::{write_features, write_port, write_port_status};
pub(crate) use statistics::{write_flow_entry, write_flow_statistics_request};

/// The wire version.
pub(crate) const WIRE: u8 = 1;

/// The message types (`ofp_type`, 5.1).
#[allow(missing_docs)]
pub mod message_type {
    pub const HELLO: u8 = 0;
    pub const ERROR: u8 = 1;
    pub const ECHO_REQUEST: u8 = 2;
    pub const ECHO_REPLY: u8 = 3;
    pub const VENDOR: u8 = 4;
    pub const FEATURES_REQUEST: u8 = 5;
    pub const FEATURES_REPLY: u8 = 6;
    pub const GET_CONFIG_REQUEST: u8 = 7;
    pub const GET_CONFIG_REPLY: u8 = 8;
    pub const SET_CONFIG: u8 = 9;
    pub const PACKET_IN: u8 = 10;
    pub const FLOW_REMOVED: u8 = 11;
    pub const PORT_STATUS: u8 = 12;
    pub const PACKET_OUT: u8 = 13;
    pub const FLOW_MOD: u8 = 14;
    pub const PORT_MOD: u8 = 15;
    pub const STATISTICS_REQUEST: u8 = 16;
    pub const STATISTICS_REPLY: u8 = 17;
    pub const BARRIER_REQUEST: u8 = 18;
    pub const BARRIER_REPLY: u8 = 19;
    pub const QUEUE_GET_CONFIG_REQUEST: u8 = 20;
    pub const QUEUE_GET_CONFIG_REPLY: u8 = 21;
}

/// A port's number in 1.0, or the error that names the field.
#[inline]
fn port_to_wire(port: crate::PortNo, field: &'static str) -> Result<u16, crate::EncodeError> {
    port.to_v10().ok_or(crate::EncodeError::Unsupported { version: crate::Version::V1_0, field })
}

/// The error that names what 1.0 cannot express.
fn unsupported(field: &'static str) -> crate::EncodeError {
    crate::EncodeError::unsupported(crate::Version::V1_0, field)
}
