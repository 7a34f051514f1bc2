//! Parses and displays flows, matches and actions in the syntax of `ovs-ofctl`.
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
//! assert_eq!(error.to_string(), "`http` at character 12 is not a valid value");
//! ```
//!
//! [`Flow::parse`] accepts the syntax of `ovs-ofctl add-flow`. It returns a flow for one version. As in Open
//! vSwitch, that flow may have equivalent actions instead of those in the text. [`show_flow`],
//! [`show_entry`], [`show_fields`], [`show_program`], [`show_actions`] and [`show_instructions`] display
//! messages from any source. Elements that the syntax lacks are displayed as `experimenter(..)` or
//! `unknown(..)`, which `ovs-ofctl` cannot parse.
//!
//! Every field and every action of Open vSwitch 3.1 is supported (`ovs-fields`(7), `ovs-actions`(7)), by its
//! short and long names, except these:
//!
//! | syntax | reason |
//! |---|---|
//! | names of ports and tables: `in_port=eth0`, `output:eth1`, `table=classifier` | only the switch knows their numbers |
//! | `skb_priority` | no message can contain it |
//! | `debug_recirc`, `debug_slow` | for Open vSwitch's own tests; a production switch refuses them |
//! | bits of tunnel options in a match: `tun_metadata0[0..7]=1` | only the switch knows the length of the option; `tun_metadata0=0x01/0xff` is equivalent |
//! | a whole tunnel option in `load`, or as a value in `learn` | only the switch knows the length of the option; use `set_field` |
//! | `write_actions`, `clear_actions`, `meter` in 1.0 | `ovs-ofctl` omits or refuses them; here they are errors, because the flow would have another effect |
//!
//! # Differences
//!
//! Numbers are parsed as in `ovs-ofctl`: octal after a `0` and hexadecimal after `0x`, except that ports,
//! tables, bits of fields, and the numbers of `dec_ttl`, `multipath`, `bundle` and most of `learn` are always
//! decimal. Where `ovs-ofctl` misinterprets or silently ignores text, this parser returns an error:
//!
//! | syntax | interpretation by `ovs-ofctl` |
//! |---|---|
//! | fields that contradict each other: `tcp,udp`, `reg0=1,reg0=2`, `xreg0=5,reg0=1`, `dl_vlan=5,vlan_tci=0x1006` | the last field; like `ovs-ofctl`, this parser accepts repeated fields with the same value |
//! | fields without their prerequisite: `tcp_dst=80` | a match without them |
//! | fields, flags and actions with a value that they cannot have: `tcp=1`, `send_flow_rem=1`, `exit:1`, `drop(1)`, `ct(commit=1)` | the same field, flag or action without the value |
//! | fields without a value: `reg0`, `reg0=`, `reg0=0x` | no match on the field, or a match on 0 |
//! | values too long for their field: `nw_src=256.0.0.1`, `eth_src=102:0:0:0:0:1`, `mpls_label=0xffffffff`, `dl_vlan=4096`, `group:4294967296`, a port of 70000 in `nat` | the lower bits |
//! | `-1` for fields that do not have 64 bits | all bits, or the lower 64 |
//! | invalid numbers in `learn`, `dec_ttl`, `multipath`, `bundle`: `priority=x`, `priority=0x10`, `priority=70000` | 0, or the lower bits |
//! | letters after a value: `mod_dl_src:02:00:00:00:00:01x` | the value without the letters |
//! | unclosed parentheses: `ct(commit` | as if the parentheses were closed |
//! | `ct(zone=1,zone=2)`, more than one `nat`, a zone from a field part that does not have 16 bits, `exec` or a range without `commit` | the last of them, or an action that switches refuse |
//! | `output:xxreg0[]`, `multipath` and `bundle_load` to more than 64 bits | different bits |
//! | masks of SCTP ports | a field that does not support a mask; for TCP and UDP ports and neighbor discovery, Nicira's maskable fields are used |
//! | masks of `set_field` in 1.0 | the whole field is set; here, `load` sets the bits |
//! | `importance` before 1.4, a table in 1.0, and everything else that a version cannot express | the flow without it, or also an error |
//!
//! The parser accepts some text that `ovs-ofctl` refuses: 32-bit ports that Open vSwitch does not have, long
//! names of fields in a match without brackets, actions of the specification that Open vSwitch lacks
//! (`copy_ttl_out`, `push_pbb`), `encap` of a packet type by its number, and `experimenter(..)`. The parser
//! does not check whether packets have the field that an action sets; the switch checks it.

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
