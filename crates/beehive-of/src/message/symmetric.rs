//! Hello, echo and error (1.3.5, 7.5.1 and 7.5.4).

use crate::encode::EncodeError;
use crate::error::{Error, Part};
use crate::names::{error_code_name, error_code_number, error_type_name, error_type_number};
use crate::schema::{List, Reader, Sink, Source, Value, Writer, structure, tagged};
use crate::version::Version;

structure! {
    /// The first message that each side sends.
    pub struct Hello<'a> in Hello {
        /// The elements, from 1.3 on.
        elements: List<'a, HelloElement<'a>>,
        /// Arbitrary data, before 1.3.
        data: &'a [u8],
    }
    0..=2 => [data],
    3.. => [elements],
}

tagged! {
    /// An element of a hello.
    pub enum HelloElement<'a> in Hello, "hello element length", padded true, minimum 4 {
        /// The versions that the sender supports.
        VersionBitmap(VersionBitmap<'a>) "version_bitmap" = [1 in _],
    }
}

structure! {
    /// A version bitmap: bit n of the first word stands for wire version n.
    pub struct VersionBitmap<'a> in Hello { bitmaps: List<'a, u32> }
    _ => [bitmaps],
}

structure! {
    /// Arbitrary data. The reply to an echo request repeats it.
    pub struct Echo<'a> in Message { data: &'a [u8] }
    _ => [data],
}

structure! {
    /// A message without fields.
    pub struct Empty in Message {}
    _ => [],
}

/// An error report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ErrorMessage<'a> {
    /// `ofp_error_type`; 0xffff means an experimenter error, whose data contains the experimenter number.
    pub error_type: u16,
    /// The code; its meaning depends on the type.
    pub code: u16,
    /// The start of the message that caused the error; for a failed hello, an ASCII text.
    pub data: &'a [u8],
}

impl ErrorMessage<'_> {
    pub(crate) fn show_fields(&self, version: Version, sink: &mut dyn Sink) {
        sink.key("error_type");
        match error_type_name(version, self.error_type) {
            Some(name) => sink.text(format_args!("{name}")),
            None => sink.number(self.error_type.into()),
        }

        sink.key("code");
        match error_code_name(version, self.error_type, self.code) {
            Some(name) => sink.text(format_args!("{name}")),
            None => sink.number(self.code.into()),
        }

        let words = self.error_type == 0 && self.data.iter().all(|byte| matches!(byte, 0x20..=0x7e));
        sink.key(if words { "text" } else { "data" });
        if words {
            sink.text(format_args!("{}", str::from_utf8(self.data).unwrap_or("")));
        } else {
            sink.bytes(self.data);
        }
    }
}

impl<'a> Value<'a> for ErrorMessage<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let outer = reader.enter(Part::Message);
        let error_type = reader.name("error message").u16()?;
        let code = reader.name("error message").u16()?;
        reader.enter(outer);
        Ok(Self { error_type, code, data: reader.take_rest() })
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.put(&self.error_type.to_be_bytes());
        writer.put(&self.code.to_be_bytes());
        writer.put(self.data);
        Ok(())
    }

    fn show(&self, version: Version, sink: &mut dyn Sink) {
        sink.open_record();
        self.show_fields(version, sink);
        sink.close_record();
    }

    fn compose(source: &dyn Source, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = writer.version();
        let number = |told: &dyn Source| told.number().and_then(|number| u16::try_from(number).ok());
        let told = source.field("error_type").ok_or(EncodeError::Value { field: "error_type" })?;
        let error_type = told
            .text()
            .and_then(|name| error_type_number(version, name))
            .or_else(|| number(told))
            .ok_or(EncodeError::Value { field: "error_type" })?;
        let told = source.field("code").ok_or(EncodeError::Value { field: "code" })?;
        let code = told
            .text()
            .and_then(|name| error_code_number(version, error_type, name))
            .or_else(|| number(told))
            .ok_or(EncodeError::Value { field: "code" })?;
        writer.put(&error_type.to_be_bytes());
        writer.put(&code.to_be_bytes());
        match (source.field("text"), source.field("data")) {
            (Some(words), _) => {
                writer.put(words.text().ok_or(EncodeError::Value { field: "text" })?.as_bytes());
                Ok(())
            }
            (None, Some(data)) => <&[u8] as Value<'_>>::compose(data, writer),
            (None, None) => Ok(()),
        }
    }
}
