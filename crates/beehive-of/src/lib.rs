//! Zero-copy, checked OpenFlow 1.0 to 1.5 codec.
//!
//! Layers, each usable alone:
//!
//! | layer | what it knows | entry point |
//! |---|---|---|
//! | framing | the 8-byte header and where a message ends | [`Frame::split`], [`FrameBuffer`] |
//! | [`message`] | every message of every version, complete, with the extensions in use | [`message::Message::parse`], `encode_into`, `show`, `compose` |
//! | [`any`] | messages without their version, both ways | [`any::Message::parse`], `encode_into` |
//! | `text` (feature) | flows as `ovs-ofctl` writes them | `text::Flow::parse`, `text::show_flow` |
//! | [`tree`] | messages as named values, for JSON and the like | [`message::Message::tree`], [`message::Message::compose`] |
//!
//! Features: `text` (`ovs-ofctl`'s syntax, canonical forms of flows, `Message::check_meaning`, and the `guide`), `serde` (trees
//! are serialized), `codec` (`tokio-util`'s `Decoder` and `Encoder`). The crate is `no_std` with
//! `alloc`; `codec` alone needs the standard library.
//!
//! # Reading what a switch sends
//!
//! ```
//! use beehive_of::any::{Action, FlowMod, Match, Message, PacketOut};
//! use beehive_of::{FrameBuffer, PortNo, Version};
//! use bytes::BytesMut;
//!
//! let mut received = FrameBuffer::new();
//! let mut answers = BytesMut::new();
//! // Whatever a read of the connection gave: here, the first half of a packet-in of 1.0, then the rest.
//! let bytes = [1, 10, 0, 20, 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff, 0, 2, 0, 3, 0, 0, 0xab, 0xcd];
//! for part in bytes.chunks(10) {
//!     received.read_target().extend_from_slice(part);
//!     while let Some(frame) = received.next_frame().expect("a stream that can be followed") {
//!         let version = frame.version().expect("a version that is spoken");
//!         match Message::parse(frame) {
//!             Ok(Message::PacketIn(packet)) => {
//!                 let actions = [Action::output(PortNo::FLOOD)];
//!                 let out = PacketOut {
//!                     buffer_id: packet.buffer_id,
//!                     in_port: packet.in_port,
//!                     actions: (&actions).into(),
//!                     data: packet.data,
//!                 };
//!                 out.encode_into(version, frame.xid(), &mut answers).unwrap();
//!                 let from = Match { in_port: Some(packet.in_port), ..Match::ANY };
//!                 FlowMod::add(1, from, (&actions).into()).encode_into(version, 1, &mut answers).unwrap();
//!             }
//!             Ok(_) => {}
//!             // What OpenFlow wants answered.
//!             Err(error) => println!("{error}: {:?}", error.answer(version)),
//!         }
//!     }
//! }
//! assert_eq!(answers[1], 13);
//! assert_eq!(answers[0], Version::V1_0.wire());
//! ```
//!
//! More in the module `guide`: flows from text, two tables compared, how strictly to check and what to answer, what survives
//! without a name. A stream for tokio is in the module `codec`.
//!
//! # Contract
//!
//! * Bytes are checked once, when a view is made; its accessors cannot fail. Lists of variable-length elements
//!   (actions, instructions, match fields, ports, flow entries, hello elements) are fused iterators of `Result`: the
//!   first malformed element ends them. Every length is checked against its container and its minimum, so decoding
//!   takes time linear in the length of the message.
//! * Nothing in this crate panics on any input, allocates while decoding, or allocates while encoding into a buffer
//!   that has room. ([`tree`] does allocate, and so does all of the feature `text`.) `unsafe` is forbidden.
//! * [`Error`] is `Copy`, says which field at which offset was wrong, and knows the OpenFlow error to answer with.
//! * What a version cannot express is an [`EncodeError`] that names the field, never a silent loss; a failed encoding
//!   leaves the buffer as it was.
//! * Names are those of the specification: OpenFlow Switch Specification 1.0.0, 1.1.0, 1.2, 1.3.5, 1.4.1 and 1.5.1.

#![doc = include_str!("../COVERAGE.md")]
// One of its programs wants JSON.
#![cfg_attr(all(doctest, feature = "serde", feature = "text"), doc = include_str!("../README.md"))]
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unreachable
    )
)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod any;
#[cfg(feature = "codec")]
pub mod codec;
#[cfg(feature = "text")]
pub mod guide;
pub mod limits;
pub mod message;
pub mod oxm;
pub mod schema;
#[cfg(feature = "text")]
pub mod text;
pub mod tree;

mod address;
mod encode;
mod error;
mod field;
mod frame;
mod frame_buffer;
mod names;
mod port_number;
mod version;

pub use address::{MacAddress, Maskable, Masked, NotMacAddress};
pub use encode::EncodeError;
pub use error::{Answer, Error, ErrorKind, Part};
pub use frame::{Frame, Frames, Header};
pub use frame_buffer::FrameBuffer;
pub use names::{error_code_name, error_type_name, message_type_name};
pub use port_number::PortNo;
pub use version::{Version, VersionSet};
