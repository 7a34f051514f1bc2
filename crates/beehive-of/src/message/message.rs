//! The enum of all messages of all versions, its parser and its encoder.

use core::cell::Cell;
use core::fmt;

use bytes::BytesMut;

use super::bundle::{BundleAdd, BundleControl, RequestForward};
use super::extension::ExperimenterMessage;
use super::flow::{FlowMod, FlowRemoved};
use super::group::GroupMod;
use super::meter::MeterMod;
use super::multipart::{MultipartReply, MultipartRequest};
use super::packet::{PacketIn, PacketOut};
use super::port::{PortMod, PortStatus};
use super::queue::{QueueConfig, QueueConfigRequest};
use super::switch::{AsyncConfig, ControllerStatus, Features, RoleMessage, RoleStatus, SwitchConfig};
use super::symmetric::{Echo, Empty, ErrorMessage, Hello};
use super::table::{TableMod, TableStatus};
use crate::encode::EncodeError;
use crate::error::{Error, ErrorKind, Part};
use crate::frame::{Frame, Header};
use crate::limits::HEADER_LENGTH;
use crate::schema::{Checker, Reader, Sink, Source, Tagged, Text, Writer, choice};
use crate::tree::{ComposeError, Node, TrackedSource, Tree};
use crate::version::Version;

choice! {
    /// A message.
    pub enum Message<'a> {
        /// The first message that each side sends.
        Hello(Hello<'a>) "hello" = [0 in _],
        /// An error report.
        Error(ErrorMessage<'a>) "error" = [1 in _],
        /// A liveness check of the connection.
        EchoRequest(Echo<'a>) "echo_request" = [2 in _],
        /// The reply to an echo request.
        EchoReply(Echo<'a>) "echo_reply" = [3 in _],
        /// An experimenter message (1.0: vendor).
        Experimenter(ExperimenterMessage<'a>) "experimenter" = [4 in _],
        /// Requests the features of a switch.
        FeaturesRequest(Empty) "features_request" = [5 in _],
        /// The features of a switch.
        FeaturesReply(Features<'a>) "features_reply" = [6 in _],
        /// Requests the configuration of a switch.
        GetConfigRequest(Empty) "get_config_request" = [7 in _],
        /// The configuration of a switch.
        GetConfigReply(SwitchConfig) "get_config_reply" = [8 in _],
        /// Sets the configuration of a switch.
        SetConfig(SwitchConfig) "set_config" = [9 in _],
        /// A packet that the switch sends to the controller.
        PacketIn(PacketIn<'a>) "packet_in" = [10 in _],
        /// Reports that a flow was removed.
        FlowRemoved(FlowRemoved<'a>) "flow_removed" = [11 in _],
        /// Reports that a port changed.
        PortStatus(PortStatus<'a>) "port_status" = [12 in _],
        /// A packet that the controller sends to the switch.
        PacketOut(PacketOut<'a>) "packet_out" = [13 in _],
        /// Changes a flow table.
        FlowMod(FlowMod<'a>) "flow_mod" = [14 in _],
        /// Changes a group.
        GroupMod(GroupMod<'a>) "group_mod" = [15 in 1..],
        /// Changes a port.
        PortMod(PortMod<'a>) "port_mod" = [15 in 0, 16 in 1..],
        /// Changes a table.
        TableMod(TableMod<'a>) "table_mod" = [17 in 1..],
        /// A statistics or multipart request.
        MultipartRequest(MultipartRequest<'a>) "multipart_request" = [16 in 0, 18 in 1..],
        /// A statistics or multipart reply.
        MultipartReply(MultipartReply<'a>) "multipart_reply" = [17 in 0, 19 in 1..],
        /// Asks the switch to finish all earlier messages before it processes later ones.
        BarrierRequest(Empty) "barrier_request" = [18 in 0, 20 in 1..],
        /// Reports that the switch has processed all messages before the barrier request.
        BarrierReply(Empty) "barrier_reply" = [19 in 0, 21 in 1..],
        /// Requests the queues of a port.
        QueueConfigRequest(QueueConfigRequest) "queue_get_config_request" = [20 in 0, 22 in 1..=3],
        /// The queues of a port.
        QueueConfigReply(QueueConfig<'a>) "queue_get_config_reply" = [21 in 0, 23 in 1..=3],
        /// Requests a role.
        RoleRequest(RoleMessage) "role_request" = [24 in 2..],
        /// The role that the switch granted.
        RoleReply(RoleMessage) "role_reply" = [25 in 2..],
        /// Requests the configuration of asynchronous messages.
        GetAsyncRequest(Empty) "get_async_request" = [26 in 3..],
        /// The configuration of asynchronous messages.
        GetAsyncReply(AsyncConfig<'a>) "get_async_reply" = [27 in 3..],
        /// Sets which asynchronous messages the switch sends.
        SetAsync(AsyncConfig<'a>) "set_async" = [28 in 3..],
        /// Changes a meter.
        MeterMod(MeterMod<'a>) "meter_mod" = [29 in 3..],
        /// Reports that the controller's role changed.
        RoleStatus(RoleStatus<'a>) "role_status" = [30 in 4..],
        /// Reports that a table crossed a vacancy threshold.
        TableStatus(TableStatus<'a>) "table_status" = [31 in 4..],
        /// A forwarded request of another controller.
        RequestForward(RequestForward<'a>) "requestforward" = [32 in 4..],
        /// Opens, closes, commits or discards a bundle.
        BundleControl(BundleControl<'a>) "bundle_control" = [33 in 4..],
        /// Adds a message to a bundle.
        BundleAdd(BundleAdd<'a>) "bundle_add_message" = [34 in 4..],
        /// Reports that the status of a controller changed.
        ControllerStatus(ControllerStatus<'a>) "controller_status" = [35 in 5..],
    }
}

impl<'a> Message<'a> {
    /// Parses the message in `frame`. Its lists are checked when they are iterated, or by [`Message::check`].
    /// Hello, error and echo messages may have any version except 0.
    ///
    /// # Errors
    ///
    /// Fails if the message is malformed or its version is not supported.
    pub fn parse(frame: Frame<'a>) -> Result<Self, Error> {
        Self::read(frame, false)
    }

    /// Parses the message in `frame`, including all its lists, and checks that padding and reserved bits are
    /// zero.
    ///
    /// # Errors
    ///
    /// Fails like [`Message::parse`], and if padding or a reserved bit is not zero.
    pub fn parse_strict(frame: Frame<'a>) -> Result<Self, Error> {
        let message = Self::read(frame, true)?;
        message.check(version_of(frame)?)?;
        Ok(message)
    }

    fn read(frame: Frame<'a>, strict: bool) -> Result<Self, Error> {
        let mut reader = Reader::new(version_of(frame)?, frame.body(), HEADER_LENGTH, Part::Message);
        if strict {
            reader = reader.strict();
        }
        let message = Self::read_body(frame.header().message_type.into(), &mut reader)?;
        reader.finish()?;
        Ok(message)
    }

    /// Checks every element of every list, at any depth.
    ///
    /// # Errors
    ///
    /// Returns the error of the first malformed element.
    pub fn check(&self, version: Version) -> Result<(), Error> {
        let mut checker = Checker::default();
        self.show_body(version, &mut checker);
        checker.error.map_or(Ok(()), Err)
    }

    /// Appends the encoded message to `out`.
    ///
    /// # Errors
    ///
    /// Fails if the version cannot express the message or one of its fields, or the message is too long.
    pub fn encode_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        let kind = self
            .kind(version)
            .and_then(|kind| u8::try_from(kind).ok())
            .ok_or_else(|| EncodeError::unsupported(version, self.name()))?;
        crate::encode::message(out, version.wire(), kind, xid, |out| {
            self.write_body(&mut Writer::new(version, out))
        })
    }

    /// Writes the message to a sink: its version, type, transaction identifier and fields.
    pub fn show(&self, header: Header, sink: &mut dyn Sink) {
        sink.open_record();
        let version = Version::from_wire(header.version).unwrap_or(Version::V1_3);
        self.show_fields(header, version, sink);
        sink.close_record();
    }

    pub(crate) fn show_fields(&self, header: Header, version: Version, sink: &mut dyn Sink) {
        sink.key("version");
        match header.version {
            1..=6 => sink.text(format_args!("1.{}", header.version - 1)),
            other => sink.number(other.into()),
        }

        sink.key("type");
        match self {
            Self::Unknown { kind, .. } => sink.number((*kind).into()),
            known => sink.text(format_args!("{}", known.name())),
        }

        sink.key("xid");
        sink.number(header.xid.into());
        self.show_body(version, sink);
    }

    /// Returns the message as a tree of named values.
    ///
    /// # Errors
    ///
    /// Fails if a list of the message is malformed.
    pub fn tree(&self, header: Header) -> Result<Node, Error> {
        let mut tree = Tree::default();
        self.show(header, &mut tree);
        tree.finish()
    }

    /// Returns the message as text.
    pub fn display(&self, header: Header) -> impl fmt::Display + use<'_, 'a> {
        Displayed { message: self, header }
    }

    /// Composes a message from a source with the keys that [`Message::show`] writes, and appends it to `out`.
    /// [`tree`](crate::tree#composing) describes the optional keys and their defaults.
    ///
    /// # Errors
    ///
    /// Fails if a key is unknown at its place in this version, a mandatory key is missing, a value is
    /// invalid, or the version cannot express a value. The error contains the path of the key or value.
    /// Nothing is appended.
    pub fn compose(source: &dyn Source, out: &mut BytesMut) -> Result<(), ComposeError> {
        let clock = Cell::new(0);
        let told = TrackedSource::new(source, &clock);
        let start = out.len();
        compose_any(&told, out).map_err(|error| told.blame(error))?;
        match told.unused() {
            None => Ok(()),
            Some(error) => {
                out.truncate(start);
                Err(error)
            }
        }
    }
}

/// Appends the message composed from a source, in the version that the source contains.
fn compose_any(source: &dyn Source, out: &mut BytesMut) -> Result<(), EncodeError> {
    let wrong = EncodeError::Value { field: "version" };
    let told = source.field("version").ok_or(wrong)?;
    let wire = wire_version(told)?;
    let Some(version) = Version::from_wire(wire) else {
        // The version is unknown, but hello, error and echo are the same in every version.
        let start = out.len();
        compose_message(source, Version::V1_3, out)?;
        let same = out.get(start + 1).is_some_and(|kind| *kind <= 3);
        return match out.get_mut(start) {
            Some(version) if same => {
                *version = wire;
                Ok(())
            }
            _ => {
                out.truncate(start);
                // Access the version last so that the error gets the path of the version.
                wire_version(told).and(Err(wrong))
            }
        };
    };

    compose_message(source, version, out)
}

/// Parses a version: `1.3`, or the number in the header.
pub(crate) fn wire_version(told: &dyn Source) -> Result<u8, EncodeError> {
    match told.text().and_then(|text| text.strip_prefix("1.")) {
        Some(minor) => minor.parse::<u8>().ok().and_then(|minor| minor.checked_add(1)),
        None => told.number().and_then(|number| number.try_into().ok()),
    }
    .filter(|wire| *wire > 0)
    .ok_or(EncodeError::Value { field: "version" })
}

/// Appends the message composed from a source, in `version`.
pub(crate) fn compose_message(
    source: &dyn Source,
    version: Version,
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    let wrong = EncodeError::Value { field: "type" };
    let told = source.field("type").ok_or(wrong)?;
    let named = told.text().and_then(|name| Message::kind_of(name, version));
    let kind = named.or_else(|| told.number().and_then(|number| number.try_into().ok())).ok_or(wrong)?;
    let message_type = u8::try_from(kind).map_err(|_| wrong)?;
    let xid = match source.field("xid") {
        Some(told) => told
            .number()
            .and_then(|number| number.try_into().ok())
            .ok_or(EncodeError::Value { field: "xid" })?,
        None => 0,
    };

    crate::encode::message(out, version.wire(), message_type, xid, |out| {
        Message::compose_body(kind, source, &mut Writer::new(version, out))
    })
}

/// Returns the version to parse a frame in. Hello, error and echo of an unknown version are parsed as 1.3,
/// because they are the same in every version.
fn version_of(frame: Frame<'_>) -> Result<Version, Error> {
    let header = frame.header();
    match frame.version() {
        Some(version) => Ok(version),
        None if header.version > 0 && header.message_type <= 3 => Ok(Version::V1_3),
        None => Err(Error::new(ErrorKind::Version, Part::Header, 0, "version")),
    }
}

struct Displayed<'m, 'a> {
    message: &'m Message<'a>,
    header: Header,
}

impl fmt::Display for Displayed<'_, '_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::new(formatter);
        self.message.show(self.header, &mut text);
        text.finish()
    }
}
