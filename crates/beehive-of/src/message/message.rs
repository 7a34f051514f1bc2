//! A message of any type and version, both ways.

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
        /// The first message of each side.
        Hello(Hello<'a>) "hello" = [0 in _],
        /// What the peer could not do.
        Error(ErrorMessage<'a>) "error" = [1 in _],
        /// A test of the connection.
        EchoRequest(Echo<'a>) "echo_request" = [2 in _],
        /// The answer to it.
        EchoReply(Echo<'a>) "echo_reply" = [3 in _],
        /// An experimenter's (1.0: vendor's).
        Experimenter(ExperimenterMessage<'a>) "experimenter" = [4 in _],
        /// Asks what a switch can do.
        FeaturesRequest(Empty) "features_request" = [5 in _],
        /// What a switch can do.
        FeaturesReply(Features<'a>) "features_reply" = [6 in _],
        /// Asks how a switch is set up.
        GetConfigRequest(Empty) "get_config_request" = [7 in _],
        /// How a switch is set up.
        GetConfigReply(SwitchConfig) "get_config_reply" = [8 in _],
        /// Sets a switch up.
        SetConfig(SwitchConfig) "set_config" = [9 in _],
        /// A packet for the controller.
        PacketIn(PacketIn<'a>) "packet_in" = [10 in _],
        /// A flow is gone.
        FlowRemoved(FlowRemoved<'a>) "flow_removed" = [11 in _],
        /// A port changed.
        PortStatus(PortStatus<'a>) "port_status" = [12 in _],
        /// A packet from the controller.
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
        /// The answer to it.
        MultipartReply(MultipartReply<'a>) "multipart_reply" = [17 in 0, 19 in 1..],
        /// Asks to do what came before first.
        BarrierRequest(Empty) "barrier_request" = [18 in 0, 20 in 1..],
        /// What came before is done.
        BarrierReply(Empty) "barrier_reply" = [19 in 0, 21 in 1..],
        /// Asks for the queues of a port.
        QueueConfigRequest(QueueConfigRequest) "queue_get_config_request" = [20 in 0, 22 in 1..=3],
        /// The queues of a port.
        QueueConfigReply(QueueConfig<'a>) "queue_get_config_reply" = [21 in 0, 23 in 1..=3],
        /// Asks for a role.
        RoleRequest(RoleMessage) "role_request" = [24 in 2..],
        /// The role.
        RoleReply(RoleMessage) "role_reply" = [25 in 2..],
        /// Asks which messages are sent unasked.
        GetAsyncRequest(Empty) "get_async_request" = [26 in 3..],
        /// Which messages are sent unasked.
        GetAsyncReply(AsyncConfig<'a>) "get_async_reply" = [27 in 3..],
        /// Sets which messages are sent unasked.
        SetAsync(AsyncConfig<'a>) "set_async" = [28 in 3..],
        /// Changes a meter.
        MeterMod(MeterMod<'a>) "meter_mod" = [29 in 3..],
        /// The controller's role changed.
        RoleStatus(RoleStatus<'a>) "role_status" = [30 in 4..],
        /// A table became full or free.
        TableStatus(TableStatus<'a>) "table_status" = [31 in 4..],
        /// A request of another controller.
        RequestForward(RequestForward<'a>) "requestforward" = [32 in 4..],
        /// Opens, closes, commits or discards a bundle.
        BundleControl(BundleControl<'a>) "bundle_control" = [33 in 4..],
        /// Adds a message to a bundle.
        BundleAdd(BundleAdd<'a>) "bundle_add_message" = [34 in 4..],
        /// What the switch knows about a controller changed.
        ControllerStatus(ControllerStatus<'a>) "controller_status" = [35 in 5..],
    }
}

impl<'a> Message<'a> {
    /// Reads the message that `frame` is. Lists inside of it are checked when iterated, or by [`Message::check`].
    /// Hello, error and echo are read in any version but 0.
    ///
    /// # Errors
    ///
    /// The message is malformed, or of a version that is not spoken here.
    pub fn parse(frame: Frame<'a>) -> Result<Self, Error> {
        Self::read(frame, false)
    }

    /// Reads the message that `frame` is, and wants its padding and reserved bits, outside of lists too, to be zero.
    ///
    /// # Errors
    ///
    /// As for [`Message::parse`]; or padding is not zero.
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

    /// Checks every element of every list, however deep.
    ///
    /// # Errors
    ///
    /// The first malformed element.
    pub fn check(&self, version: Version) -> Result<(), Error> {
        let mut checker = Checker::default();
        self.show_body(version, &mut checker);
        checker.error.map_or(Ok(()), Err)
    }

    /// Appends the message.
    ///
    /// # Errors
    ///
    /// The version cannot express the message or one of its fields, or the message is too long.
    pub fn encode_into(&self, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        let kind = self
            .kind(version)
            .and_then(|kind| u8::try_from(kind).ok())
            .ok_or_else(|| EncodeError::unsupported(version, self.name()))?;
        crate::encode::message(out, version.wire(), kind, xid, |out| {
            self.write_body(&mut Writer::new(version, out))
        })
    }

    /// Tells the message: its version, type and transaction, and its fields.
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

    /// The message as a tree of named values.
    ///
    /// # Errors
    ///
    /// A list of the message is malformed.
    pub fn tree(&self, header: Header) -> Result<Node, Error> {
        let mut tree = Tree::default();
        self.show(header, &mut tree);
        tree.finish()
    }

    /// The message as text.
    pub fn display(&self, header: Header) -> impl fmt::Display + use<'_, 'a> {
        Displayed { message: self, header }
    }

    /// Appends the message that is told, with its version, type and transaction, as [`Message::show`] tells it. What may be left
    /// out, and what it is then, is said in [`tree`](crate::tree#composing).
    ///
    /// # Errors
    ///
    /// A key is misspelt, or means nothing in this place and version; one that must be there is missing; a value is none of its
    /// field; or the version cannot express what is told. The error says where; nothing is appended then.
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

/// Appends the message that is told, of the version that is told.
fn compose_any(source: &dyn Source, out: &mut BytesMut) -> Result<(), EncodeError> {
    let wrong = EncodeError::Value { field: "version" };
    let told = source.field("version").ok_or(wrong)?;
    let wire = wire_version(told)?;
    let Some(version) = Version::from_wire(wire) else {
        // Hello, error and echo are the same in all of them.
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
                // The version is what is wrong, so it is looked at last.
                wire_version(told).and(Err(wrong))
            }
        };
    };
    compose_message(source, version, out)
}

/// The version that is told: `1.3`, or the number that it has in a header.
pub(crate) fn wire_version(told: &dyn Source) -> Result<u8, EncodeError> {
    match told.text().and_then(|text| text.strip_prefix("1.")) {
        Some(minor) => minor.parse::<u8>().ok().and_then(|minor| minor.checked_add(1)),
        None => told.number().and_then(|number| number.try_into().ok()),
    }
    .filter(|wire| *wire > 0)
    .ok_or(EncodeError::Value { field: "version" })
}

/// Appends the message of a version that is told.
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

/// The version to read a frame in: hello, error and echo are the same in all of them.
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
