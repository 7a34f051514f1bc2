//! A message embedded in another message.

use super::message::{Message, compose_message, wire_version};
use crate::encode::EncodeError;
use crate::error::{Error, ErrorKind};
use crate::frame::Frame;
use crate::limits::HEADER_LENGTH;
use crate::schema::{Reader, Sink, Source, Value, Writer};
use crate::version::Version;

/// An embedded message with its header. It has the same version as the outer message. If its type can itself
/// contain messages, it is not decoded, because valid messages are not nested that way; so deep nesting costs
/// nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InnerMessage<'a> {
    /// The bytes of the message, header included.
    pub bytes: &'a [u8],
    /// Whether padding to a multiple of 8 bytes follows. Such padding is required before properties.
    pub padded: bool,
}

impl<'a> InnerMessage<'a> {
    /// The types that contain messages: experimenter (bundles of 1.3), request-forward and bundle-add.
    const HOLDERS: [u8; 3] = [4, 32, 34];

    /// Returns the message's frame.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not one message.
    pub fn frame(&self) -> Result<Frame<'a>, Error> {
        Frame::whole(self.bytes)
    }

    fn decoded(&self, version: Version) -> Option<(Frame<'a>, Message<'a>)> {
        let frame = self.frame().ok()?;
        let header = frame.header();
        if frame.version() != Some(version) || Self::HOLDERS.contains(&header.message_type) {
            return None;
        }
        Some((frame, Message::parse(frame).ok()?))
    }
}

impl<'a> Value<'a> for InnerMessage<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let mut ahead = *reader;
        ahead.name("embedded message").skip_any(2)?;
        let length = usize::from(ahead.u16()?);
        if length < HEADER_LENGTH {
            return Err(ahead.error_at(ErrorKind::LengthTooSmall, reader.offset() + 2));
        }
        if reader.rest().first() != Some(&reader.version().wire()) {
            return Err(reader.name("version of the embedded message").error(ErrorKind::Version));
        }

        let bytes = reader.name("embedded message").take(length)?;
        let padding = (crate::field::padded(length) - length).min(reader.rest().len());
        let padding_start = reader.offset();
        reader.skip(padding)?;
        let inner = Self { bytes, padded: padding > 0 };

        // A strict check includes the padding in the embedded message. Other errors in that message are found
        // when it is shown.
        if reader.is_strict()
            && let Some((frame, _)) = inner.decoded(reader.version())
            && Message::parse_strict(frame).is_err_and(|error| error.kind() == ErrorKind::Padding)
        {
            let start = padding_start - length;
            return Err(reader.name("padding of the embedded message").error_at(ErrorKind::Padding, start));
        }

        Ok(inner)
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let same = self.frame().is_ok_and(|frame| frame.version() == Some(writer.version()));
        if !same {
            return Err(EncodeError::Value { field: "message" });
        }

        let start = writer.position();
        writer.put(self.bytes);
        if self.padded {
            writer.pad_to_8(start);
        }

        Ok(())
    }

    fn show(&self, version: Version, sink: &mut dyn Sink) {
        sink.open_record();
        match self.decoded(version) {
            Some((frame, message)) => message.show_fields(frame.header(), version, sink),
            None => {
                sink.key("bytes");
                sink.bytes(self.bytes);
            }
        }

        if self.padded {
            sink.key("padded");
            sink.flag(true);
        }

        sink.close_record();
    }

    fn compose(source: &dyn Source, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let start = writer.position();
        match source.field("bytes") {
            Some(bytes) => <&[u8] as Value<'_>>::compose(bytes, writer)?,
            None => {
                let version = writer.version();
                // The version is optional here, because it must be the version of the outer message.
                let told = source.field("version").map(wire_version).transpose()?;
                if told.is_some_and(|told| told != version.wire()) {
                    return Err(EncodeError::Value { field: "version" });
                }
                compose_message(source, version, writer.buffer())?;
            }
        }

        if source.field("padded").is_some_and(|told| told.flag() != Some(false)) {
            writer.pad_to_8(start);
        }

        Ok(())
    }
}
