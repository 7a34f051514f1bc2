//! A message as a tree of named values: to be written as JSON or another notation, looked through, changed, and made a
//! message again.
//!
//! With the feature `serde` a [`Node`] is serialized and deserialized. A field of a match whose value is longer or shorter than
//! that of its name has its length (that of value, mask and experimenter's number) in its key: `tcp_src:3`. What is not told is
//! padding, and what does not count in the fixed matches of 1.0 and 1.1.
//!
//! # Composing
//!
//! [`Message::compose`](crate::message::Message::compose) refuses what it does not know: a misspelt key, one that means nothing in its place
//! or in the version, a value that is none of its field. [`ComposeError`] says where, and which name is like it.
//!
//! These must be there: `version` (`"1.3"`, or the number in the header); `type`, of the message and of each action, instruction, property
//! and the like; `multipart`; `experimenter`; `event`; `error_type` and `code`; and in what is learnt `bit_count`, `source` or `value`, and
//! one of `match_field`, `load` and `output`. Every other key may be left out, and then stands for the value that its structure has by
//! `Default`: 0, an empty list, a match of all packets; no buffer, any port and any group, where a structure says so. `xid` is 0. So a flow of
//! 1.3 without `priority` has priority 0, and an action `output` without `port` goes to port 0.
//!
//! Names of values may be in letters of any case (`"LOCAL"`), one flag may be without its list, and numbers may be text, in hexadecimal after
//! `0x`. Types and the names of keys are as they are told.
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
//! assert_eq!(error.to_string(), "`dta` is the name of nothing here; `data` is like it");
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
