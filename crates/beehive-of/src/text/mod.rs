//! Flows, matches and actions as `ovs-ofctl` writes them: what people paste.
//!
//! ```
//! use beehive_of::text::Flow;
//! use beehive_of::Version;
//! use bytes::BytesMut;
//!
//! let flow = Flow::parse("priority=100,tcp,nw_src=10.0.0.0/8,tp_dst=80,actions=set_field:02:00:00:00:00:09->eth_dst,output:3",
//!     Version::V1_3).unwrap();
//! let mut out = BytesMut::new();
//! flow.message().encode_into(Version::V1_3, 1, &mut out).unwrap();
//! assert_eq!(
//!     flow.to_string(),
//!     "priority=100,tcp,nw_src=10.0.0.0/8,tcp_dst=80 actions=set_field:02:00:00:00:00:09->eth_dst,output:3",
//! );
//!
//! let error = Flow::parse("tcp,tp_dst=http,actions=drop", Version::V1_3).unwrap_err();
//! assert_eq!(error.to_string(), "`http` at character 12 is no valid value");
//! ```
//!
//! [`Flow::parse`] takes what `ovs-ofctl add-flow` takes. What it returns is a message of a version: some actions are
//! written in another way there, as Open vSwitch does it. [`show_flow`], [`show_fields`] and [`show_actions`] go the
//! other way, for messages from anywhere; what has no name in that syntax is written as `experimenter(..)` or
//! `unknown(..)`, which `ovs-ofctl` does not read.

mod action_parse;
mod action_show;
mod error;
mod field_names;
mod flow;
mod learn_parse;
mod match_parse;
mod match_show;
mod nicira_parse;
mod nicira_show;
mod subfield;
mod token;
mod value;

pub use action_show::{show_actions, show_instructions};
pub use error::{Problem, TextError};
pub use flow::{Flow, show_flow};
pub use match_show::show_fields;
