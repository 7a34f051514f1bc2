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
//! flow.encode_into(1, &mut out).unwrap();
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
//! written in another way there, as Open vSwitch does it. [`show_flow`], [`show_entry`], [`show_fields`],
//! [`show_program`], [`show_actions`] and [`show_instructions`] go the other way, for messages from anywhere; what has no name in that syntax is written as `experimenter(..)` or
//! `unknown(..)`, which `ovs-ofctl` does not read.
//!
//! Every field and every action of Open vSwitch 3.1 is read (`ovs-fields`(7), `ovs-actions`(7)), by its short names and
//! its long ones, but for these:
//!
//! | what | why not |
//! |---|---|
//! | names of ports and tables: `in_port=eth0`, `output:eth1`, `table=classifier` | only the switch knows their numbers |
//! | `skb_priority` | no message has it |
//! | `debug_recirc`, `debug_slow` | for Open vSwitch's own tests; a switch in use refuses them |
//! | bits of options of tunnels in a match: `tun_metadata0[0..7]=1` | how long the option is, is the switch's affair; `tun_metadata0=0x01/0xff` says the same |
//! | all of an option of a tunnel in `load`, or as a value in `learn` | the same; `set_field` sets it |
//! | `write_actions`, `clear_actions`, `meter` in 1.0 | `ovs-ofctl` leaves them out or refuses; here they are errors, for the flow would do something else |
//!
//! # Differences
//!
//! Numbers are read as `ovs-ofctl` reads them: octal after a `0` and hexadecimal after `0x`, but ports, tables, bits of
//! fields, and the numbers of `dec_ttl`, `multipath`, `bundle` and most of `learn` are decimal whatever they start with.
//! Where `ovs-ofctl` takes a text for something else than is written, or silently loses some of it, this is an error:
//!
//! | what | `ovs-ofctl` makes of it |
//! |---|---|
//! | fields that contradict each other: `tcp,udp`, `reg0=1,reg0=2`, `xreg0=5,reg0=1`, `dl_vlan=5,vlan_tci=0x1006` | the last one; what says the same again is read here, too |
//! | fields without what they depend on: `tcp_dst=80` | a match without them |
//! | fields, flags and actions with a value that they do not have: `tcp=1`, `send_flow_rem=1`, `exit:1`, `drop(1)`, `ct(commit=1)` | the same without it |
//! | fields without their value: `reg0`, `reg0=`, `reg0=0x` | no match, or one on 0 |
//! | values too long for their field: `nw_src=256.0.0.1`, `eth_src=102:0:0:0:0:1`, `mpls_label=0xffffffff`, `dl_vlan=4096`, `group:4294967296`, a port of 70000 in `nat` | the lower bits |
//! | `-1` where there are not just 64 bits | all bits, or the lower 64 |
//! | what is no number in `learn`, `dec_ttl`, `multipath`, `bundle`: `priority=x`, `priority=0x10`, `priority=70000` | 0, or the lower bits |
//! | letters after a value: `mod_dl_src:02:00:00:00:00:01x` | the value |
//! | parentheses that are not closed: `ct(commit` | as if they were |
//! | `ct(zone=1,zone=2)`, more than one `nat`, a zone from other than 16 bits, `exec` or a range without `commit` | the last one, or what switches refuse |
//! | `output:xxreg0[]`, `multipath` and `bundle_load` to more than 64 bits | other bits |
//! | masks of ports of SCTP | a field that may have no mask; for those of TCP and UDP, and for what neighbours look for, Nicira's fields are written, which may |
//! | masks of `set_field` in 1.0 | all of the field is set; here, bits are loaded |
//! | `importance` before 1.4, a table in 1.0, and what else a version cannot express | the flow without it, or an error, too |
//!
//! Some is read here that `ovs-ofctl` refuses: ports of 32 bits that Open vSwitch does not have, long names of fields in a match without
//! brackets, actions of the specification that Open vSwitch lacks (`copy_ttl_out`, `push_pbb`), `encap` of a packet type by its
//! number, and what `experimenter(..)` tells. Whether packets have what an action sets is for the switch to say.

mod action_names;
mod action_parse;
mod action_show;
mod connection_parse;
mod encapsulation;
mod entry;
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
pub use entry::{show_entry, show_program};
pub use error::{Problem, TextError};
pub use flow::{Flow, show_flow};
pub use match_show::show_fields;
