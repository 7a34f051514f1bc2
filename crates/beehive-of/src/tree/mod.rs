//! A message as a tree of named values. Programs can write the tree as JSON or in another notation, search
//! it, change it, and compose a message from it again.
//!
//! The feature `serde` implements `Serialize` and `Deserialize` for [`Node`]. If the value of a match field
//! is longer or shorter than its name implies, the key contains the length of value, mask and experimenter
//! number in bytes: `tcp_src:3`. The tree does not contain padding, nor the wildcarded fields of the fixed
//! matches of 1.0 and 1.1.
//!
//! # Composing
//!
//! [`Message::compose`](crate::message::Message::compose) refuses keys that are misspelled or not valid at
//! their place or in the version, and values that are not valid for their field. [`ComposeError`] contains
//! the path and, for keys, the most similar valid name.
//!
//! These keys are mandatory: `version` (`"1.3"`, or the number in the header); `type`, of the message and of
//! each action, instruction, property and similar element; `multipart`; `experimenter`; `event`; `error_type`
//! and `code`; and in a `learn` action's specifications `bit_count`, `source` or `value`, and one of
//! `match_field`, `load` and `output`. Every other key is optional. Its default is the one in the `Default`
//! of its structure: 0, an empty list or a match of all packets, unless the structure defines another one (no
//! buffer, any port or any group). `xid` defaults to 0. For example, a flow of 1.3 without `priority` has
//! priority 0, and an action `output` without `port` goes to port 0.
//!
//! Named values are case-insensitive (`"LOCAL"`), a single flag need not be in a list, and numbers may be
//! text, decimal or hexadecimal after `0x`. Keys and types are case-sensitive.
//!
//! ```
//! use beehive_of::tree::Node;
//! use beehive_of::{Frame, message::Message};
//! use bytes::BytesMut;
//!
//! let bytes = [4, 2, 0, 10, 0, 0, 0, 7, 0xab, 0xcd];
//! let frame = Frame::whole(&bytes).unwrap();
//! let node = Message::parse(frame).unwrap().tree(frame.header()).unwrap();
//! assert_eq!(node.to_string(), "version=1.3 type=echo_request xid=7 data=abcd");
//! let mut out = BytesMut::new();
//! Message::compose(&node, &mut out).unwrap();
//! assert_eq!(&out[..], &bytes);
//!
//! let Node::Record(mut values) = node else { unreachable!() };
//! values.push(("dta".to_owned(), Node::Text("ef".to_owned())));
//! values.retain(|(name, _)| name != "data");
//! let error = Message::compose(&Node::Record(values), &mut out).unwrap_err();
//! assert_eq!(error.to_string(), "unknown key `dta` (did you mean `data`?)");
//! ```

mod builder;
mod compose_error;
mod nearest_name;
mod node;
#[cfg(feature = "serde")]
mod serde_impl;
mod tracked_source;

pub use builder::Tree;
pub use compose_error::{ComposeError, ComposeProblem};
pub use node::Node;
pub(crate) use tracked_source::TrackedSource;
