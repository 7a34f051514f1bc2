//! The codec that tonic uses for frames.

use super::frame::Frame;
use bytes::Buf;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Encodes and decodes frames. tonic checks their length before it reads them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FrameCodec;

/// A stream sends what it has when this many bytes are encoded.
const SENT_TOGETHER_BYTES: usize = 32 << 10;

impl Codec for FrameCodec {
    type Encode = Frame;
    type Decode = Frame;
    type Encoder = FrameCodec;
    type Decoder = FrameCodec;

    fn encoder(&mut self) -> FrameCodec {
        FrameCodec
    }
    fn decoder(&mut self) -> FrameCodec {
        FrameCodec
    }
}

impl Encoder for FrameCodec {
    type Item = Frame;
    type Error = Status;

    fn encode(&mut self, frame: Frame, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.reserve(Frame::HEADER_BYTES + frame.part.len());
        frame.write(to);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(SENT_TOGETHER_BYTES, SENT_TOGETHER_BYTES)
    }
}

impl Decoder for FrameCodec {
    type Item = Frame;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Frame>, Status> {
        let frame = Frame::read(from).map_err(Status::invalid_argument)?;
        debug_assert!(!from.has_remaining());
        Ok(Some(frame))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(SENT_TOGETHER_BYTES, SENT_TOGETHER_BYTES)
    }
}
