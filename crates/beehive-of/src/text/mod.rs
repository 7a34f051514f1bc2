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
//!
//! Every field and every action of Open vSwitch 3.1 is read (`ovs-fields`(7), `ovs-actions`(7)), by its short names and
//! its long ones, but for these:
//!
//! | what | why not |
//! |---|---|
//! | names of ports and tables: `in_port=eth0`, `table=classifier` | only the switch knows their numbers |
//! | `skb_priority` | no message has it |
//! | `debug_recirc`, `debug_slow` | for Open vSwitch's own tests; a switch in use refuses them |
//! | bits of options of tunnels in a match: `tun_metadata0[0..7]=1` | how long the option is, is the switch's affair; `tun_metadata0=0x01/0xff` says the same |
//! | `write_actions`, `clear_actions`, `meter` in 1.0 | `ovs-ofctl` leaves them out or refuses; here they are errors, for the flow would do something else |
//!
//! Where `ovs-ofctl` silently loses something, this does not: masks of `set_field` in 1.0 (it sets all of the field), fields
//! without what they depend on (it drops most of them; here they are errors where the specification says what they
//! need).

mod action_parse;
mod action_show;
mod encapsulation;
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
