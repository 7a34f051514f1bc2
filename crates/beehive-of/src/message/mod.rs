//! Every message of OpenFlow 1.0 to 1.5, decoded and encoded without loss.
//!
//! The version is a parameter: a structure has the fields of all versions, and the fields that a version
//! lacks have their default value. [`Message::parse`] decodes and [`Message::encode_into`] encodes a message;
//! [`Message::show`] writes it as named values, for text and other notations, and [`Message::compose`]
//! composes a message from named values. For version-independent messages, see [`any`](crate::any).

mod action;
mod bundle;
#[cfg(feature = "text")]
mod canonical;
#[cfg(feature = "text")]
mod canonical_action;
#[cfg(feature = "text")]
mod canonical_field;
#[cfg(feature = "text")]
mod canonical_instructions;
#[cfg(feature = "text")]
mod canonical_sequence;
mod embedded;
mod experimenter;
mod extension;
mod flow;
mod flow_statistics;
mod flow_update;
mod group;
mod instruction;
mod match_;
#[cfg(feature = "text")]
mod meaning;
#[allow(clippy::module_inception)]
mod message;
mod meter;
mod monitor;
mod multipart;
mod number;
mod oxs;
mod packet;
mod port;
mod queue;
mod split_multipart;
mod standard;
mod switch;
mod symmetric;
mod table;

pub use action::{
    Action, Actions, CopyField, Enqueue, EtherType, Group, Meter, NoArgument, Output, SetByte, SetEthernet,
    SetField, SetIpv4, SetQueue, SetTransport, SetVlanId, SetVlanPriority, SetWord,
};
pub use bundle::*;
#[cfg(feature = "text")]
pub use canonical::Canonical;
pub use embedded::InnerMessage;
pub use experimenter::*;
pub use extension::*;
pub use flow::*;
pub use flow_statistics::*;
pub use group::*;
pub use instruction::{
    ActionList, GotoTable, Instruction, Instructions, Meter as MeterInstruction, Nothing, StatTrigger,
    WriteMetadata,
};
pub use match_::Match;
pub use message::Message;
pub use meter::*;
pub use monitor::*;
pub use multipart::*;
pub use number::*;
pub use oxs::{Counter, Counters, FlowCounters};
pub use packet::*;
pub use port::*;
pub use queue::*;
pub use standard::{StandardMatch10, StandardMatch11};
pub use switch::*;
pub use symmetric::*;
pub use table::*;

pub(crate) use match_::TYPE_OXM;
pub(crate) use standard::{MATCH_NAMES_10, MATCH_NAMES_11, wildcard};
