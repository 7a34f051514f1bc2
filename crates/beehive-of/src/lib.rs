//! Zero-copy, checked OpenFlow 1.0 to 1.5 codec.
//!
//! Three layers, each usable alone:
//!
//! | layer | what it knows | entry point |
//! |---|---|---|
//! | framing | the 8-byte header and where a message ends | [`Frame::split`], [`FrameBuffer`] |
//! | [`message`] | every message of every version, complete | [`message::Message::parse`], `encode_into`, `show`, `compose` |
//! | [`any`] | messages without their version, both ways | [`any::Message::parse`], `encode_into` |
//!
//! # Contract
//!
//! * Bytes are checked once, when a view is made; its accessors cannot fail. Lists of variable-length elements
//!   (actions, instructions, match fields, ports, flow entries, hello elements) are fused iterators of `Result`: the
//!   first malformed element ends them. Every length is checked against its container and its minimum, so decoding
//!   takes time linear in the length of the message.
//! * Nothing in this crate panics on any input, allocates while decoding, or allocates while encoding into a buffer
//!   that has room. `unsafe` is forbidden.
//! * [`Error`] is `Copy`, says which field at which offset was wrong, and knows the OpenFlow error to answer with.
//! * What a version cannot express is an [`EncodeError`] that names the field, never a silent loss; a failed encoding
//!   leaves the buffer as it was.
//! * Names are those of the specification: OpenFlow Switch Specification 1.0.0, 1.1.0, 1.2, 1.3.5, 1.4.1 and 1.5.1.

#![doc = include_str!("../COVERAGE.md")]
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

#[cfg(test)]
extern crate std;

pub mod any;
pub mod limits;
pub mod message;
pub mod oxm;
pub mod schema;

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
