//! Every message of OpenFlow 1.0 to 1.5, complete: nothing that is on the wire is lost.
//!
//! The version is a parameter: a structure has the fields of all versions, and those that a version lacks have their
//! default value there. [`Message::parse`] and [`Message::encode_into`] go both ways; [`Message::show`] tells a message
//! as named values, for text and other notations, and [`Message::compose`] makes one of them. For what controllers do
//! all day, without versions, see [`any`](crate::any).

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
mod experimenter;
mod extension;
mod flow;
mod flow_statistics;
mod flow_update;
mod group;
mod inner;
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
mod parts;
mod port;
mod queue;
mod session;
mod standard;
mod switch;
mod table;

pub use action::{
    Action, Actions, CopyField, Enqueue, EtherType, Group, Meter, NoArgument, Output, SetByte, SetEthernet,
    SetField, SetIpv4, SetQueue, SetTransport, SetVlanId, SetVlanPriority, SetWord,
};
pub use bundle::*;
#[cfg(feature = "text")]
pub use canonical::Canonical;
pub use experimenter::*;
pub use extension::*;
pub use flow::*;
pub use flow_statistics::*;
pub use group::*;
pub use inner::InnerMessage;
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
pub use session::*;
pub use standard::{StandardMatch10, StandardMatch11};
pub use switch::*;
pub use table::*;

pub(crate) use match_::TYPE_OXM;
pub(crate) use standard::{MATCH_NAMES_10, MATCH_NAMES_11, wildcard};
