//! The known extensions of experimenters (1.0: vendors): those of Open vSwitch (Nicira) and the ONF.
//!
//! Unknown extensions are preserved unchanged.

mod nicira_action;
mod nicira_learn;
mod nicira_message;
mod nicira_nat;
mod nicira_statistics;
mod onf;

use core::fmt;

use super::number::ExperimenterId;
use crate::encode::EncodeError;
use crate::error::Error;
use crate::schema::{Reader, Scalar, Sink, Source, Tagged, Value, Writer};
use crate::version::Version;

pub use nicira_action::*;
pub use nicira_learn::*;
pub use nicira_message::*;
pub use nicira_nat::*;
pub use nicira_statistics::*;
pub use onf::*;

/// The place of an extension in the protocol, which determines the encoding of its experimenter type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// An action. The type has 16 bits, and only the actions of known experimenters have one.
    Action,
    /// A message. The type has 32 bits; in 1.0, only the messages of known experimenters have one.
    Message,
    /// A statistics or multipart body. The type is encoded as in a message, and in 1.0 padding follows it.
    Statistics,
}

impl Form {
    /// Returns whether the extension has an experimenter type.
    fn has_type(self, known: bool, version: Version) -> bool {
        known || (self != Self::Action && version != Version::V1_0)
    }

    fn read(self, reader: &mut Reader<'_>) -> Result<u32, Error> {
        let kind = match self {
            Self::Action => reader.name("experimenter type").u16()?.into(),
            _ => reader.name("experimenter type").u32()?,
        };
        if self.is_padded(reader.version()) {
            reader.name("padding").skip(4)?;
        }
        Ok(kind)
    }

    fn write(self, kind: u32, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        match (self, u16::try_from(kind)) {
            (Self::Action, Ok(kind)) => writer.put(&kind.to_be_bytes()),
            (Self::Action, Err(_)) => return Err(EncodeError::Value { field: "experimenter_type" }),
            _ => writer.put(&kind.to_be_bytes()),
        }

        if self.is_padded(writer.version()) {
            writer.zeros(4);
        }

        Ok(())
    }

    fn is_padded(self, version: Version) -> bool {
        self == Self::Statistics && version == Version::V1_0
    }
}

/// The extensions of one experimenter at one place of the protocol.
pub trait Extension<'a>: Tagged<'a> + Copy + PartialEq + fmt::Debug + 'a {
    /// The place of the extensions.
    const FORM: Form;
}

/// An experimenter extension.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Extended<'a, N, O> {
    /// An extension by Nicira (Open vSwitch).
    Nicira(N),
    /// An extension by the ONF.
    Onf(O),
    /// An extension by another experimenter, or one whose type number is larger than any known type. It is
    /// preserved unchanged.
    Unknown {
        /// The experimenter.
        experimenter: ExperimenterId,
        /// The experimenter type. For experimenters other than Nicira and the ONF, it is not on the wire in
        /// 1.0 or in actions.
        experimenter_type: u32,
        /// The remaining bytes.
        body: &'a [u8],
    },
}

/// An experimenter message.
pub type ExperimenterMessage<'a> = Extended<'a, NiciraMessage<'a>, OnfMessage<'a>>;
/// An experimenter statistics or multipart request.
pub type ExperimenterRequest<'a> = Extended<'a, NiciraRequest<'a>, OnfRequest<'a>>;
/// An experimenter statistics or multipart reply.
pub type ExperimenterReply<'a> = Extended<'a, NiciraReply<'a>, OnfReply<'a>>;
/// An experimenter action.
pub type ExperimenterAction<'a> = Extended<'a, NiciraAction<'a>, OnfAction<'a>>;

impl<N, O> Default for Extended<'_, N, O> {
    fn default() -> Self {
        Self::Unknown { experimenter: ExperimenterId::default(), experimenter_type: 0, body: &[] }
    }
}

fn is_known(experimenter: ExperimenterId) -> bool {
    matches!(experimenter, ExperimenterId::NICIRA | ExperimenterId::ONF)
}

impl<'a, N: Extension<'a>, O: Extension<'a>> Extended<'a, N, O> {
    /// Writes the fields to a sink.
    pub(crate) fn show_fields(&self, version: Version, sink: &mut dyn Sink) {
        match self {
            Self::Nicira(extension) => show(ExperimenterId::NICIRA, extension, version, sink),
            Self::Onf(extension) => show(ExperimenterId::ONF, extension, version, sink),
            Self::Unknown { experimenter, experimenter_type, body } => {
                sink.key("experimenter");
                experimenter.show(version, sink);
                if N::FORM.has_type(is_known(*experimenter), version) {
                    sink.key("experimenter_type");
                    sink.number((*experimenter_type).into());
                }
                sink.key("body");
                sink.bytes(body);
            }
        }
    }
}

fn show<'a, T: Extension<'a>>(
    experimenter: ExperimenterId,
    extension: &T,
    version: Version,
    sink: &mut dyn Sink,
) {
    sink.key("experimenter");
    experimenter.show(version, sink);
    sink.key("extension");
    match extension.kind(version) {
        Some(kind) if extension.name() == "unknown" => sink.number(kind.into()),
        _ => sink.text(format_args!("{}", extension.name())),
    }
    extension.show_body(version, sink);
}

fn write<'a, T: Extension<'a>>(
    experimenter: ExperimenterId,
    extension: &T,
    writer: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let kind = extension.kind(writer.version()).ok_or_else(|| writer.unsupported(extension.name()))?;
    experimenter.write(writer)?;
    T::FORM.write(kind.into(), writer)?;
    extension.write_body(writer)
}

fn compose<'a, T: Extension<'a>>(
    told: &dyn Source,
    source: &dyn Source,
    writer: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let named = told.text().and_then(|name| T::kind_of(name, writer.version()));
    let number = || told.number().and_then(|number| number.try_into().ok());
    let kind = named.or_else(number).ok_or(EncodeError::Value { field: "extension" })?;
    T::FORM.write(kind.into(), writer)?;
    T::compose_body(kind, source, writer)
}

impl<'a, N: Extension<'a>, O: Extension<'a>> Value<'a> for Extended<'a, N, O> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let experimenter = ExperimenterId::read(reader.name("experimenter"))?;
        let known = is_known(experimenter);
        let mut experimenter_type = 0;
        if N::FORM.has_type(known, reader.version()) {
            experimenter_type = N::FORM.read(reader)?;
        }

        Ok(match (experimenter, u16::try_from(experimenter_type)) {
            (ExperimenterId::NICIRA, Ok(kind)) => Self::Nicira(N::read_body(kind, reader)?),
            (ExperimenterId::ONF, Ok(kind)) => Self::Onf(O::read_body(kind, reader)?),
            _ => Self::Unknown { experimenter, experimenter_type, body: reader.take_rest() },
        })
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self {
            Self::Nicira(extension) => write(ExperimenterId::NICIRA, extension, writer),
            Self::Onf(extension) => write(ExperimenterId::ONF, extension, writer),
            Self::Unknown { experimenter, experimenter_type, body } => {
                experimenter.write(writer)?;
                if N::FORM.has_type(is_known(*experimenter), writer.version()) {
                    N::FORM.write(*experimenter_type, writer)?;
                } else if *experimenter_type != 0 {
                    return Err(writer.unsupported("experimenter_type"));
                }
                writer.put(body);
                Ok(())
            }
        }
    }

    fn show(&self, version: Version, sink: &mut dyn Sink) {
        sink.open_record();
        self.show_fields(version, sink);
        sink.close_record();
    }

    fn compose(source: &dyn Source, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let wrong = EncodeError::Value { field: "experimenter" };
        let told = source.field("experimenter").ok_or(wrong)?;
        let experimenter = ExperimenterId::parse(told).ok_or(wrong)?;
        experimenter.write(writer)?;
        match (experimenter, source.field("extension")) {
            (ExperimenterId::NICIRA, Some(told)) => return compose::<N>(told, source, writer),
            (ExperimenterId::ONF, Some(told)) => return compose::<O>(told, source, writer),
            (_, Some(_)) => return Err(EncodeError::Value { field: "extension" }),
            (_, None) => {}
        }

        if N::FORM.has_type(is_known(experimenter), writer.version()) {
            let kind = match source.field("experimenter_type") {
                Some(told) => u32::parse(told).ok_or(EncodeError::Value { field: "experimenter_type" })?,
                None => 0,
            };
            N::FORM.write(kind, writer)?;
        }

        match source.field("body") {
            Some(body) => <&[u8] as Value<'_>>::compose(body, writer),
            None => Ok(()),
        }
    }
}
