//! A message of either version, and the way from a frame to it and back.

use bytes::{BufMut, BytesMut};

use super::flow::{FlowMod, FlowRemoved};
use super::packet::{PacketIn, PacketOut};
use super::port::{PortStatus, Ports};
use super::session::{ECHO_REQUEST, ERROR, Echo, ErrorMessage, HELLO, Hello, is_session, version_error};
use super::statistics::{FlowEntries, FlowStatistics, FlowStatisticsRequest, Multipart, PortDescription};
use super::switch::{Features, RoleMessage, SwitchConfig};
use crate::encode::{EncodeError, message};
use crate::error::Error;
use crate::frame::Frame;
use crate::version::Version;
use crate::{v10, v13};

/// A message.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
// Each is read from a frame, looked at and dropped; a box would cost what the codec does not.
#[allow(clippy::large_enum_variant)]
pub enum Message<'a> {
    /// The first message of each side; of any version.
    Hello(Hello),
    /// What the peer could not do; of any version.
    Error(ErrorMessage<'a>),
    /// A test of the connection; of any version.
    EchoRequest(Echo<'a>),
    /// The answer to it; of any version.
    EchoReply(Echo<'a>),
    /// Asks for [`Message::FeaturesReply`].
    FeaturesRequest,
    /// What a switch can do.
    FeaturesReply(Features<'a>),
    /// Asks for [`Message::GetConfigReply`].
    GetConfigRequest,
    /// How a switch is set up.
    GetConfigReply(SwitchConfig),
    /// Sets a switch up.
    SetConfig(SwitchConfig),
    /// A packet for the controller.
    PacketIn(PacketIn<'a>),
    /// A packet from the controller.
    PacketOut(PacketOut<'a>),
    /// Changes a flow table.
    FlowMod(FlowMod<'a>),
    /// A flow is gone.
    FlowRemoved(FlowRemoved),
    /// A port changed.
    PortStatus(PortStatus),
    /// Asks for [`Message::PortDescriptionReply`]. 1.3 only.
    PortDescriptionRequest,
    /// A switch's ports. 1.3 only.
    PortDescriptionReply(PortDescription<'a>),
    /// Asks for [`Message::FlowStatisticsReply`].
    FlowStatisticsRequest(FlowStatisticsRequest),
    /// A switch's flows.
    FlowStatisticsReply(FlowStatistics<'a>),
    /// Another statistics or multipart request.
    MultipartRequest(Multipart<'a>),
    /// The answer to it.
    MultipartReply(Multipart<'a>),
    /// Asks to do what came before first.
    BarrierRequest,
    /// What came before is done.
    BarrierReply,
    /// Asks for a role. 1.3 only.
    RoleRequest(RoleMessage),
    /// The role. 1.3 only.
    RoleReply(RoleMessage),
    /// A message without a view here.
    Unknown(Unknown<'a>),
}

/// A message that has no view here: a vendor's or experimenter's, a port, table, group or meter modification, a queue
/// or an asynchronous configuration message, or an unassigned type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unknown<'a> {
    /// The type in the header.
    pub message_type: u8,
    /// What follows the header.
    pub body: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads the message that `frame` is. Hello, error and echo are read in any version but 0, all else in 1.0 and
    /// 1.3.
    ///
    /// Lists (actions, ports, flow entries) are checked when iterated; all else is checked here.
    ///
    /// # Errors
    ///
    /// The version is none of these, or the message is malformed.
    #[inline]
    pub fn parse(frame: Frame<'a>) -> Result<Self, Error> {
        match (frame.version(), frame.header().message_type) {
            (Some(Version::V1_0), v10::message_type::PACKET_IN) => {
                Ok(Self::PacketIn(v10::PacketIn::parse(frame)?.generalise()))
            }
            (Some(Version::V1_3), v13::message_type::PACKET_IN) => {
                Ok(Self::PacketIn(v13::PacketIn::parse(frame)?.generalise()))
            }
            (_, message_type) if is_session(message_type) => Self::parse_session(frame, message_type),
            (Some(Version::V1_0), message_type) => Self::parse_v10(frame, message_type),
            (Some(Version::V1_3), message_type) => Self::parse_v13(frame, message_type),
            (None, _) => Err(version_error()),
        }
    }

    fn parse_session(frame: Frame<'a>, message_type: u8) -> Result<Self, Error> {
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

    fn parse_v10(frame: Frame<'a>, message_type: u8) -> Result<Self, Error> {
        use v10::message_type as kind;
        Ok(match message_type {
            kind::FEATURES_REQUEST => Self::FeaturesRequest,
            kind::FEATURES_REPLY => Self::FeaturesReply(v10::Features::parse(frame)?.generalise()),
            kind::GET_CONFIG_REQUEST => Self::GetConfigRequest,
            kind::GET_CONFIG_REPLY => Self::GetConfigReply(SwitchConfig::parse(frame)?),
            kind::SET_CONFIG => Self::SetConfig(SwitchConfig::parse(frame)?),
            kind::FLOW_REMOVED => Self::FlowRemoved(v10::FlowRemoved::parse(frame)?.generalise()),
            kind::PORT_STATUS => Self::PortStatus(v10::PortStatus::parse(frame)?.generalise()),
            kind::PACKET_OUT => Self::PacketOut(v10::PacketOut::parse(frame)?.generalise()),
            kind::FLOW_MOD => Self::FlowMod(v10::FlowMod::parse(frame)?.generalise()?),
            kind::STATISTICS_REQUEST => {
                let statistics = v10::Statistics::parse(frame)?;
                match statistics.kind() {
                    Multipart::FLOW => Self::FlowStatisticsRequest(
                        v10::FlowStatisticsRequest::parse(&statistics)?.generalise(),
                    ),
                    _ => Self::MultipartRequest(multipart_v10(&statistics)),
                }
            }
            kind::STATISTICS_REPLY => {
                let statistics = v10::Statistics::parse(frame)?;
                match statistics.kind() {
                    Multipart::FLOW => Self::FlowStatisticsReply(FlowStatistics {
                        more: statistics.flags() & Multipart::MORE != 0,
                        entries: FlowEntries::wire(Version::V1_0, statistics.body(), v10::Statistics::BODY),
                    }),
                    _ => Self::MultipartReply(multipart_v10(&statistics)),
                }
            }
            kind::BARRIER_REQUEST => Self::BarrierRequest,
            kind::BARRIER_REPLY => Self::BarrierReply,
            _ => Self::Unknown(Unknown { message_type, body: frame.body() }),
        })
    }

    fn parse_v13(frame: Frame<'a>, message_type: u8) -> Result<Self, Error> {
        use v13::message_type as kind;
        Ok(match message_type {
            kind::FEATURES_REQUEST => Self::FeaturesRequest,
            kind::FEATURES_REPLY => Self::FeaturesReply(v13::Features::parse(frame)?.generalise()),
            kind::GET_CONFIG_REQUEST => Self::GetConfigRequest,
            kind::GET_CONFIG_REPLY => Self::GetConfigReply(SwitchConfig::parse(frame)?),
            kind::SET_CONFIG => Self::SetConfig(SwitchConfig::parse(frame)?),
            kind::FLOW_REMOVED => Self::FlowRemoved(v13::FlowRemoved::parse(frame)?.generalise()?),
            kind::PORT_STATUS => Self::PortStatus(v13::PortStatus::parse(frame)?.generalise()),
            kind::PACKET_OUT => Self::PacketOut(v13::PacketOut::parse(frame)?.generalise()),
            kind::FLOW_MOD => Self::FlowMod(v13::FlowMod::parse(frame)?.generalise()?),
            kind::MULTIPART_REQUEST => {
                let multipart = v13::Multipart::parse(frame)?;
                match multipart.kind() {
                    Multipart::FLOW => Self::FlowStatisticsRequest(
                        v13::FlowStatisticsRequest::parse(&multipart)?.generalise()?,
                    ),
                    Multipart::PORT_DESCRIPTION => Self::PortDescriptionRequest,
                    _ => Self::MultipartRequest(multipart_v13(&multipart)),
                }
            }
            kind::MULTIPART_REPLY => {
                let multipart = v13::Multipart::parse(frame)?;
                let more = multipart.flags() & Multipart::MORE != 0;
                let (body, offset) = (multipart.body(), v13::Multipart::BODY);
                match multipart.kind() {
                    Multipart::FLOW => Self::FlowStatisticsReply(FlowStatistics {
                        more,
                        entries: FlowEntries::wire(Version::V1_3, body, offset),
                    }),
                    Multipart::PORT_DESCRIPTION => Self::PortDescriptionReply(PortDescription {
                        more,
                        ports: Ports::wire(Version::V1_3, body, offset),
                    }),
                    _ => Self::MultipartReply(multipart_v13(&multipart)),
                }
            }
            kind::BARRIER_REQUEST => Self::BarrierRequest,
            kind::BARRIER_REPLY => Self::BarrierReply,
            kind::ROLE_REQUEST => Self::RoleRequest(RoleMessage::parse(frame)?),
            kind::ROLE_REPLY => Self::RoleReply(RoleMessage::parse(frame)?),
            _ => Self::Unknown(Unknown { message_type, body: frame.body() }),
        })
    }

    /// Checks what [`Message::parse`] leaves to iteration: every action, port and flow entry, and their actions.
    ///
    /// # Errors
    ///
    /// The first malformed element.
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

    /// Appends the message; a hello has its own version.
    ///
    /// # Errors
    ///
    /// The version cannot express the message or one of its fields, or the message is too long.
    pub fn encode_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        use v13::message_type as kind;
        let empty =
            |message_type, out: &mut BytesMut| message(out, version.wire(), message_type, xid, |_| Ok(()));
        match self {
            Self::Hello(hello) => hello.encode_into(xid, out),
            Self::Error(error) => error.encode_into(version, xid, out),
            Self::EchoRequest(echo) => echo.encode_request_into(version, xid, out),
            Self::EchoReply(echo) => echo.encode_reply_into(version, xid, out),
            Self::FeaturesRequest => empty(kind::FEATURES_REQUEST, out),
            Self::FeaturesReply(features) => features.encode_into(version, xid, out),
            Self::GetConfigRequest => empty(kind::GET_CONFIG_REQUEST, out),
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
            Self::BarrierRequest => match version {
                Version::V1_0 => empty(v10::message_type::BARRIER_REQUEST, out),
                Version::V1_3 => empty(kind::BARRIER_REQUEST, out),
            },
            Self::BarrierReply => match version {
                Version::V1_0 => empty(v10::message_type::BARRIER_REPLY, out),
                Version::V1_3 => empty(kind::BARRIER_REPLY, out),
            },
            Self::RoleRequest(role) => role.encode_request_into(version, xid, out),
            Self::RoleReply(role) => role.encode_reply_into(version, xid, out),
            Self::Unknown(unknown) => message(out, version.wire(), unknown.message_type, xid, |out| {
                out.put_slice(unknown.body);
                Ok(())
            }),
        }
    }
}

fn multipart_v10<'a>(statistics: &v10::Statistics<'a>) -> Multipart<'a> {
    Multipart { kind: statistics.kind(), flags: statistics.flags(), body: statistics.body() }
}

fn multipart_v13<'a>(multipart: &v13::Multipart<'a>) -> Multipart<'a> {
    Multipart { kind: multipart.kind(), flags: multipart.flags(), body: multipart.body() }
}
