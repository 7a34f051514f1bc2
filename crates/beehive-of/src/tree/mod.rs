//! A message as a tree of named values: to be written as JSON or another notation, looked through, changed, and made a
//! message again.
//!
//! With the feature `serde` a [`Node`] is serialized and deserialized. A field of a match whose value is longer or shorter than
//! that of its name has its length (that of value, mask and experimenter's number) in its key: `tcp_src:3`. What is not told is
//! padding, and what does not count in the fixed matches of 1.0 and 1.1.
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
//! ```

mod builder;
mod node;
#[cfg(feature = "serde")]
mod serial;

pub use builder::Tree;
pub use node::Node;
