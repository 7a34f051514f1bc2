//! A zero-copy, bounds-checked codec for OpenFlow 1.0 to 1.5.
//!
//! The crate has these layers, each of which can be used alone:
//!
//! | layer | contents | entry points |
//! |---|---|---|
//! | framing | the 8-byte header and message boundaries | [`Frame::split`], [`FrameBuffer`] |
//! | [`message`] | every message of every version in full, with common extensions | [`message::Message::parse`], `encode_into`, `show`, `compose` |
//! | [`any`] | version-independent messages | [`any::Message::parse`], `encode_into` |
//! | `text` (feature) | flows in the syntax of `ovs-ofctl` | `text::Flow::parse`, `text::show_flow` |
//! | [`tree`] | messages as named values, for JSON and similar formats | [`message::Message::tree`], [`message::Message::compose`] |
//!
//! Features: `text` (the syntax of `ovs-ofctl`, canonical forms of flows, `Message::check_meaning`, and the
//! `guide`), `serde` (serializes trees), `codec` (`tokio-util`'s `Decoder` and `Encoder`). The crate is
//! `no_std` with `alloc`; only `codec` requires the standard library.
//!
//! # Decoding messages from a switch
//!
//! ```
//! use beehive_of::any::{Action, FlowMod, Match, Message, PacketOut};
//! use beehive_of::{FrameBuffer, PortNo, Version};
//! use bytes::BytesMut;
//!
//! let mut received = FrameBuffer::new();
//! let mut answers = BytesMut::new();
//! // The bytes to read: a packet-in of 1.0, which arrives in two halves.
//! let bytes = [1, 10, 0, 20, 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff, 0, 2, 0, 3, 0, 0, 0xab, 0xcd];
//! for part in bytes.chunks(10) {
//!     received.read_target().extend_from_slice(part);
//!     while let Some(frame) = received.next_frame().expect("valid framing") {
//!         let version = frame.version().expect("a supported version");
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
//!             // The error message to answer with.
//!             Err(error) => println!("{error}: {:?}", error.answer(version)),
//!         }
//!     }
//! }
//! assert_eq!(answers[1], 13);
//! assert_eq!(answers[0], Version::V1_0.wire());
//! ```
//!
//! The module `guide` has more examples: parsing flows from text, comparing two flow tables, checking
//! messages and answering errors, and preserving unknown elements. The module `codec` provides a stream for
//! tokio.
//!
//! # Contract
//!
//! * Bytes are checked once, when a message is parsed; access to its fields cannot fail. Lists of
//!   variable-length elements (actions, instructions, match fields, ports, flow entries, hello elements) are
//!   fused iterators of `Result`: the first malformed element ends them. Every length is checked against its
//!   container and its minimum, so decoding takes time linear in the length of the message.
//! * Nothing in this crate panics on any input, allocates while decoding, or allocates while encoding into a
//!   buffer with enough capacity. ([`tree`] and the feature `text` do allocate.) `unsafe` is
//!   forbidden.
//! * [`Error`] is `Copy`, names the invalid field and its offset, and determines the OpenFlow error to answer
//!   with.
//! * Encoding a value that the version cannot express returns an [`EncodeError`] that names the field;
//!   nothing is lost silently. A failed encoding leaves the buffer unchanged.
//! * Names follow the OpenFlow Switch Specification 1.0.0, 1.1.0, 1.2, 1.3.5, 1.4.1 and 1.5.1. In this
//!   documentation, "1.0" to "1.5" are the versions of OpenFlow, and "1.3.5, 7.1" is clause 7.1 of
//!   specification 1.3.5.

#![doc = include_str!("../COVERAGE.md")]
// The programs in the README require JSON and the syntax of `ovs-ofctl`.
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
