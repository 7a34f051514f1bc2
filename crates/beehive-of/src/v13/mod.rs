//! OpenFlow 1.3 (wire version 4): its messages as borrowed views.
//!
//! A view's `parse` checks everything that its accessors read; sections are those of the OpenFlow Switch
//! Specification 1.3.5.

mod action;
mod flow;
mod instruction;
mod match_encode;
mod match_fields;
mod packet;
mod port;
mod statistics;

pub use action::{Action, Actions};
pub use flow::{FlowMod, FlowRemoved};
pub use instruction::{Instruction, Instructions};
pub use match_fields::{Match, MatchField, MatchFields, match_field};
pub use packet::{PacketIn, PacketOut};
pub use port::{Features, Port, PortStatus};
pub use statistics::{FlowEntry, FlowStatisticsRequest, Multipart};

pub(crate) use action::write_action;
pub(crate) use flow::{write_flow_mod, write_flow_removed};
pub(crate) use packet::{write_packet_in, write_packet_out};
pub(crate) use port::{write_features, write_port, write_port_status};
pub(crate) use statistics::{write_flow_entry, write_flow_statistics_request};

/// The wire version.
pub(crate) const WIRE: u8 = 4;

/// The group that stands for any (`OFPG_ANY`).
const GROUP_ANY: u32 = 0xffff_ffff;

/// The message types (`ofp_type`, 7.1.1).
#[allow(missing_docs)]
pub mod message_type {
    pub const HELLO: u8 = 0;
    pub const ERROR: u8 = 1;
    pub const ECHO_REQUEST: u8 = 2;
    pub const ECHO_REPLY: u8 = 3;
    pub const EXPERIMENTER: u8 = 4;
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
    pub const GROUP_MOD: u8 = 15;
    pub const PORT_MOD: u8 = 16;
    pub const TABLE_MOD: u8 = 17;
    pub const MULTIPART_REQUEST: u8 = 18;
    pub const MULTIPART_REPLY: u8 = 19;
    pub const BARRIER_REQUEST: u8 = 20;
    pub const BARRIER_REPLY: u8 = 21;
    pub const QUEUE_GET_CONFIG_REQUEST: u8 = 22;
    pub const QUEUE_GET_CONFIG_REPLY: u8 = 23;
    pub const ROLE_REQUEST: u8 = 24;
    pub const ROLE_REPLY: u8 = 25;
    pub const GET_ASYNC_REQUEST: u8 = 26;
    pub const GET_ASYNC_REPLY: u8 = 27;
    pub const SET_ASYNC: u8 = 28;
    pub const METER_MOD: u8 = 29;
}

/// The error that names what 1.3 cannot express.
fn unsupported(field: &'static str) -> crate::EncodeError {
    crate::EncodeError::unsupported(crate::Version::V1_3, field)
}
