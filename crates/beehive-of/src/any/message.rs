//! The version-independent message, its parser and its encoder.

use bytes::{BufMut, BytesMut};

use super::flow::{FlowMod, FlowRemoved};
use super::packet::{PacketIn, PacketOut};
use super::port::{PortStatus, Ports};
use super::statistics::{FlowEntries, FlowStatistics, FlowStatisticsRequest, Multipart, PortDescription};
use super::switch::{Features, RoleMessage, SwitchConfig};
use super::symmetric::{ECHO_REQUEST, ERROR, Echo, ErrorMessage, HELLO, Hello, is_symmetric, version_error};
use crate::encode::{self, EncodeError};
use crate::error::{Error, Part};
use crate::frame::Frame;
use crate::limits::HEADER_LENGTH;
use crate::message;
use crate::schema::{Reader, Value};
use crate::version::Version;

/// A version-independent message.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
// Messages are short-lived values on the stack. Boxing the large variants would add an allocation.
#[allow(clippy::large_enum_variant)]
pub enum Message<'a> {
    /// The first message that each side sends. Any version.
    Hello(Hello),
    /// An error report. Any version.
    Error(ErrorMessage<'a>),
    /// A liveness check of the connection. Any version.
    EchoRequest(Echo<'a>),
    /// The reply to an echo request. Any version.
    EchoReply(Echo<'a>),
    /// Asks for [`Message::FeaturesReply`].
    FeaturesRequest,
    /// The features of a switch.
    FeaturesReply(Features<'a>),
    /// Asks for [`Message::GetConfigReply`].
    GetConfigRequest,
    /// The configuration of a switch.
    GetConfigReply(SwitchConfig),
    /// Sets the configuration of a switch.
    SetConfig(SwitchConfig),
    /// A packet that the switch sends to the controller.
    PacketIn(PacketIn<'a>),
    /// A packet that the controller sends to the switch.
    PacketOut(PacketOut<'a>),
    /// Changes a flow table.
    FlowMod(FlowMod<'a>),
    /// Reports that a flow was removed.
    FlowRemoved(FlowRemoved),
    /// Reports that a port changed.
    PortStatus(PortStatus),
    /// Asks for [`Message::PortDescriptionReply`]. Since 1.3.
    PortDescriptionRequest,
    /// The ports of a switch. Since 1.3.
    PortDescriptionReply(PortDescription<'a>),
    /// Asks for [`Message::FlowStatisticsReply`].
    FlowStatisticsRequest(FlowStatisticsRequest),
    /// The flows of a switch.
    FlowStatisticsReply(FlowStatistics<'a>),
    /// A statistics or multipart request of another kind.
    MultipartRequest(Multipart<'a>),
    /// A statistics or multipart reply of another kind.
    MultipartReply(Multipart<'a>),
    /// Asks the switch to finish all earlier messages before it processes later ones.
    BarrierRequest,
    /// Reports that the switch has processed all messages before the barrier request.
    BarrierReply,
    /// Asks for a role. Since 1.2.
    RoleRequest(RoleMessage),
    /// The role that the switch granted. Since 1.2.
    RoleReply(RoleMessage),
    /// A message that this module does not model.
    Unknown(Unknown<'a>),
}

/// A message that this module does not model: a vendor or experimenter message; a port, table, group or meter
/// modification; a queue or asynchronous configuration message; or a message of an unassigned type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unknown<'a> {
    /// The version of `message_type` and `body`. The message can be encoded in this version only.
    pub version: Version,
    /// The type in the header.
    pub message_type: u8,
    /// The bytes after the header.
    pub body: &'a [u8],
}

impl<'a> Message<'a> {
    /// Parses the message in `frame`. Hello, error and echo messages may have any version except 0; all other
    /// messages must have a version from 1.0 to 1.5.
    ///
    /// This function checks everything except lists (actions, ports, flow entries), which are checked when
    /// they are iterated.
    ///
    /// # Errors
    ///
    /// Fails if the version is not supported or the message is malformed.
    #[inline]
    pub fn parse(frame: Frame<'a>) -> Result<Self, Error> {
        match (frame.version(), frame.header().message_type) {
            (Some(version), PACKET_IN) => Ok(Self::PacketIn(PacketIn::parse(version, frame)?)),
            (_, message_type) if is_symmetric(message_type) => Self::parse_symmetric(frame, message_type),
            (Some(version), message_type) => Self::parse_other(version, frame, message_type),
            (None, _) => Err(version_error()),
        }
    }

    fn parse_symmetric(frame: Frame<'a>, message_type: u8) -> Result<Self, Error> {
        if frame.header().version == 0 {
            return Err(version_error());
        }

        let echo = Echo { data: frame.body() };
        Ok(match message_type {
            HELLO => Self::Hello(Hello::parse(frame)?),
            ERROR => Self::Error(ErrorMessage::parse(frame)?),
            ECHO_REQUEST => Self::EchoRequest(echo),
            _ => Self::EchoReply(echo),
        })
    }

    fn parse_other(version: Version, frame: Frame<'a>, message_type: u8) -> Result<Self, Error> {
        let body = frame.body();
        let reader = &mut Reader::new(version, body, HEADER_LENGTH, Part::Message);
        Ok(match message_type {
            5 => Self::FeaturesRequest,
            6 => Self::FeaturesReply(Features::generalize(&message::Features::read(reader)?)),
            7 => Self::GetConfigRequest,
            8 => Self::GetConfigReply(SwitchConfig::parse(frame)?),
            9 => Self::SetConfig(SwitchConfig::parse(frame)?),
            11 => {
                let flow = message::FlowRemoved::read(reader)?;
                Self::FlowRemoved(FlowRemoved::generalize(&flow, version)?)
            }

            12 => {
                let status = message::PortStatus::read(reader)?;
                Self::PortStatus(PortStatus::generalize(&status, version)?)
            }

            13 => Self::PacketOut(PacketOut::generalize(&message::PacketOut::read(reader)?)?),
            14 => Self::FlowMod(FlowMod::generalize(&message::FlowMod::read(reader)?, version)?),
            24 if version >= Version::V1_2 => Self::RoleRequest(RoleMessage::parse(frame)?),
            25 if version >= Version::V1_2 => Self::RoleReply(RoleMessage::parse(frame)?),
            _ => match (version.minor(), message_type) {
                (0, 16) | (1.., 18) => Self::parse_request(reader)?,
                (0, 17) | (1.., 19) => Self::parse_reply(reader)?,
                (0, 18) | (1.., 20) => Self::BarrierRequest,
                (0, 19) | (1.., 21) => Self::BarrierReply,
                _ => Self::Unknown(Unknown { version, message_type, body }),
            },
        })
    }

    fn parse_request(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let multipart = read_multipart(reader)?;
        Ok(match multipart.kind {
            Multipart::FLOW => Self::FlowStatisticsRequest(FlowStatisticsRequest::generalize(
                &message::FlowRequest::read(reader)?,
            )?),
            Multipart::PORT_DESCRIPTION => Self::PortDescriptionRequest,
            _ => Self::MultipartRequest(multipart),
        })
    }

    fn parse_reply(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let multipart = read_multipart(reader)?;
        let more = multipart.flags & Multipart::MORE != 0;
        Ok(match multipart.kind {
            Multipart::FLOW => {
                Self::FlowStatisticsReply(FlowStatistics { more, entries: FlowEntries::read(reader)? })
            }
            Multipart::PORT_DESCRIPTION => {
                Self::PortDescriptionReply(PortDescription { more, ports: Ports::read(reader)? })
            }
            _ => Self::MultipartReply(multipart),
        })
    }

    /// Checks the lists that [`Message::parse`] does not check: actions, ports, and flow entries with their
    /// actions.
    ///
    /// # Errors
    ///
    /// Returns the error of the first malformed element.
    pub fn check_lists(&self) -> Result<(), Error> {
        match self {
            Self::FeaturesReply(features) => features.ports.check(),
            Self::PacketOut(packet) => packet.actions.check(),
            Self::FlowMod(flow) => flow.actions.check(),
            Self::PortDescriptionReply(description) => description.ports.check(),
            Self::FlowStatisticsReply(statistics) => {
                statistics.entries.iter().try_for_each(|entry| entry?.actions.check())
            }
            _ => Ok(()),
        }
    }

    /// Appends the encoded message to `out`. `version` is ignored for a hello, which carries its own version.
    ///
    /// # Errors
    ///
    /// Fails if the version cannot express the message or one of its fields, or the message is too long.
    pub fn encode_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        let empty = |message_type, out: &mut BytesMut| {
            encode::message(out, version.wire(), message_type, xid, |_| Ok(()))
        };
        match self {
            Self::Hello(hello) => hello.encode_into(xid, out),
            Self::Error(error) => error.encode_into(version, xid, out),
            Self::EchoRequest(echo) => echo.encode_request_into(version, xid, out),
            Self::EchoReply(echo) => echo.encode_reply_into(version, xid, out),
            Self::FeaturesRequest => empty(5, out),
            Self::FeaturesReply(features) => features.encode_into(version, xid, out),
            Self::GetConfigRequest => empty(7, out),
            Self::GetConfigReply(config) => config.encode_reply_into(version, xid, out),
            Self::SetConfig(config) => config.encode_set_into(version, xid, out),
            Self::PacketIn(packet) => packet.encode_into(version, xid, out),
            Self::PacketOut(packet) => packet.encode_into(version, xid, out),
            Self::FlowMod(flow) => flow.encode_into(version, xid, out),
            Self::FlowRemoved(flow) => flow.encode_into(version, xid, out),
            Self::PortStatus(status) => status.encode_into(version, xid, out),
            Self::PortDescriptionRequest => PortDescription::encode_request_into(version, xid, out),
            Self::PortDescriptionReply(description) => description.encode_into(version, xid, out),
            Self::FlowStatisticsRequest(request) => request.encode_into(version, xid, out),
            Self::FlowStatisticsReply(statistics) => statistics.encode_into(version, xid, out),
            Self::MultipartRequest(multipart) => multipart.encode_request_into(version, xid, out),
            Self::MultipartReply(multipart) => multipart.encode_reply_into(version, xid, out),
            Self::BarrierRequest => empty(if version == Version::V1_0 { 18 } else { 20 }, out),
            Self::BarrierReply => empty(if version == Version::V1_0 { 19 } else { 21 }, out),
            Self::RoleRequest(role) => role.encode_request_into(version, xid, out),
            Self::RoleReply(role) => role.encode_reply_into(version, xid, out),
            Self::Unknown(unknown) if unknown.version != version => {
                Err(EncodeError::unsupported(version, "a message of another version"))
            }
            Self::Unknown(unknown) => {
                encode::message(out, version.wire(), unknown.message_type, xid, |out| {
                    out.put_slice(unknown.body);
                    Ok(())
                })
            }
        }
    }
}

/// The message type of a packet-in, the same in every version.
const PACKET_IN: u8 = 10;

/// Reads the kind and the flags of a statistics or multipart message. The reader is then at the body.
fn read_multipart<'a>(reader: &mut Reader<'a>) -> Result<Multipart<'a>, Error> {
    reader.enter(Part::Statistics);
    let kind = reader.name("multipart").u16()?;
    let flags = reader.name("multipart").u16()?;
    if reader.version() != Version::V1_0 {
        reader.name("multipart").skip(4)?;
    }
    Ok(Multipart { version: reader.version(), kind, flags, body: reader.rest() })
}
