//! A codec for `tokio-util` that turns a connection into a stream and a sink of messages (feature `codec`).
//!
//! ```
//! use beehive_of::Version;
//! use beehive_of::any::{Echo, Message};
//! use beehive_of::codec::{CodecError, MessageCodec, Outgoing};
//! use futures_util::{SinkExt, StreamExt};
//! use tokio_util::codec::Framed;
//!
//! # fn main() -> Result<(), CodecError> { tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! // Use a TCP or TLS connection in the same way as this pipe.
//! let (ours, theirs) = tokio::io::duplex(4096);
//! let mut controller = Framed::new(ours, MessageCodec::new());
//! let mut switch = Framed::new(theirs, MessageCodec::new());
//!
//! let message = Message::EchoRequest(Echo { data: b"are you there" });
//! controller.send(Outgoing { version: Version::V1_3, xid: 7, message }).await?;
//!
//! let received = switch.next().await.expect("the pipe is open")?;
//! let frame = received.frame().map_err(CodecError::Framing)?;
//! match Message::parse(frame) {
//!     Ok(Message::EchoRequest(echo)) => {
//!         let message = Message::EchoReply(echo);
//!         switch.send(Outgoing { version: Version::V1_3, xid: frame.xid(), message }).await?;
//!     }
//!     Ok(other) => panic!("not an echo request: {other:?}"),
//!     Err(error) => panic!("{error}"),
//! }
//! assert_eq!(controller.next().await.expect("the pipe is open")?.frame().map(|frame| frame.xid()).ok(), Some(7));
//! # Ok::<(), CodecError>(())
//! # }) }
//! ```

extern crate std;

use core::fmt;
use std::io;

use bytes::{Bytes, BytesMut};
use tokio_util::codec::{Decoder, Encoder};

use crate::any;
use crate::encode::EncodeError;
use crate::error::Error;
use crate::frame::Frame;
use crate::limits::MESSAGE_LENGTH_MAX;
use crate::message;
use crate::version::Version;

/// Splits the bytes of a connection into messages, and encodes messages.
///
/// A message length that is too large or too small ends the stream. Malformed contents do not end the stream;
/// parsing the message reports them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageCodec {
    length_max: usize,
}

/// A message that owns its bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnedMessage {
    bytes: Bytes,
}

/// A message to encode.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<M> {
    /// The version to encode the message in.
    pub version: Version,
    /// The transaction identifier.
    pub xid: u32,
    /// The message.
    pub message: M,
}

/// The reason why the stream ended, or why a message was not sent.
#[derive(Debug)]
#[non_exhaustive]
pub enum CodecError {
    /// The connection failed.
    Io(io::Error),
    /// The start of the peer's next message is unknown: close the connection.
    Framing(Error),
    /// The message cannot be encoded; none of it was written.
    Encode(EncodeError),
}

impl MessageCodec {
    /// Creates a codec for messages of any length.
    pub const fn new() -> Self {
        Self::limited(MESSAGE_LENGTH_MAX)
    }

    /// Creates a codec that refuses messages longer than `length_max` bytes.
    pub const fn limited(length_max: usize) -> Self {
        Self { length_max }
    }
}

impl Default for MessageCodec {
    fn default() -> Self {
        Self::new()
    }
}

impl OwnedMessage {
    /// Returns the message's frame.
    ///
    /// # Errors
    ///
    /// Never fails for a message from [`MessageCodec`], which has checked it.
    pub fn frame(&self) -> Result<Frame<'_>, Error> {
        Frame::whole(&self.bytes)
    }

    /// Returns the bytes of the message, header included.
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

impl Decoder for MessageCodec {
    type Item = OwnedMessage;
    type Error = CodecError;

    fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<OwnedMessage>, CodecError> {
        let length = match Frame::split_limited(buffer, self.length_max).map_err(CodecError::Framing)? {
            Some((_, length)) => length,
            None => return Ok(None),
        };
        Ok(Some(OwnedMessage { bytes: buffer.split_to(length).freeze() }))
    }
}

impl Encoder<Outgoing<message::Message<'_>>> for MessageCodec {
    type Error = CodecError;

    fn encode(&mut self, out: Outgoing<message::Message<'_>>, to: &mut BytesMut) -> Result<(), CodecError> {
        out.message.encode_into(out.version, out.xid, to).map_err(CodecError::Encode)
    }
}

impl Encoder<Outgoing<any::Message<'_>>> for MessageCodec {
    type Error = CodecError;

    fn encode(&mut self, out: Outgoing<any::Message<'_>>, to: &mut BytesMut) -> Result<(), CodecError> {
        out.message.encode_into(out.version, out.xid, to).map_err(CodecError::Encode)
    }
}

impl Encoder<OwnedMessage> for MessageCodec {
    type Error = CodecError;

    fn encode(&mut self, message: OwnedMessage, to: &mut BytesMut) -> Result<(), CodecError> {
        to.extend_from_slice(&message.bytes);
        Ok(())
    }
}

impl From<io::Error> for CodecError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for CodecError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(formatter, "{error}"),
            Self::Framing(error) => write!(formatter, "{error}"),
            Self::Encode(error) => write!(formatter, "{error}"),
        }
    }
}

impl core::error::Error for CodecError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Framing(error) => Some(error),
            Self::Encode(error) => Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_message_by_message() {
        let mut codec = MessageCodec::new();
        let mut stream = BytesMut::new();
        let echo = any::Message::EchoRequest(any::Echo { data: b"are you there" });
        codec.encode(Outgoing { version: Version::V1_3, xid: 7, message: echo }, &mut stream).unwrap();
        let hello = message::Message::Hello(message::Hello::default());
        codec.encode(Outgoing { version: Version::V1_5, xid: 8, message: hello }, &mut stream).unwrap();
        let mut arrived = BytesMut::new();
        let mut messages = std::vec::Vec::new();
        for byte in stream.iter() {
            arrived.extend_from_slice(&[*byte]);
            messages.extend(codec.decode(&mut arrived).unwrap());
        }

        assert!(arrived.is_empty());
        assert_eq!(
            messages.iter().map(|message| message.frame().unwrap().xid()).collect::<std::vec::Vec<_>>(),
            [7, 8]
        );

        let mut copy = BytesMut::new();
        messages.into_iter().for_each(|message| codec.encode(message, &mut copy).unwrap());
        assert_eq!(copy, stream);
    }

    #[test]
    fn a_stream_that_cannot_be_followed_ends() {
        let mut bytes = BytesMut::from(&[4, 0, 0, 7, 0, 0, 0, 0][..]);
        assert!(matches!(MessageCodec::new().decode(&mut bytes), Err(CodecError::Framing(_))));

        let mut bytes = BytesMut::from(&[4, 0, 1, 0, 0, 0, 0, 0][..]);
        assert!(matches!(MessageCodec::limited(100).decode(&mut bytes), Err(CodecError::Framing(_))));

        let role = any::Message::BarrierRequest;
        let mut out = BytesMut::new();
        MessageCodec::new()
            .encode(Outgoing { version: Version::V1_0, xid: 1, message: role }, &mut out)
            .unwrap();
        let group = message::Message::GroupMod(message::GroupMod::default());
        let refused = Outgoing { version: Version::V1_0, xid: 1, message: group };
        assert!(matches!(MessageCodec::new().encode(refused, &mut out), Err(CodecError::Encode(_))));
        assert_eq!(out.len(), 8);
    }
}
