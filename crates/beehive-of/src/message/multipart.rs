//! Statistics (1.0 to 1.2) and multipart (since 1.3) messages, with a request and a reply for each kind.

use super::bundle::{BundleFeatures, BundleFeaturesRequest};
use super::extension::{ExperimenterReply, ExperimenterRequest};
use super::flow_statistics::{
    Aggregate, FlowEntry, FlowRequest, FlowStatistics, PortDescriptionRequest, PortRequest, PortStatistics,
    SwitchDescription,
};
use super::group::{GroupDescription, GroupDescriptionRequest, GroupFeatures, GroupRequest, GroupStatistics};
use super::meter::{MeterConfig, MeterFeatures, MeterRequest, MeterStatistics};
use super::monitor::{FlowMonitorRequest, FlowUpdate};
use super::number::{MultipartFlags, MultipartKind};
use super::port::Ports;
use super::queue::{QueueDescription, QueueRequest, QueueStatistics};
use super::switch::ControllerStatus;
use super::symmetric::Empty;
use super::table::{TableDescription, TableFeatures, TableStatistics};
use crate::encode::EncodeError;
use crate::error::{Error, Part};
use crate::schema::{List, Reader, Scalar, Sink, Source, Tagged, Value, Writer, choice, structure};
use crate::version::Version;

choice! {
    /// The body of a request.
    pub enum RequestBody<'a> {
        /// The description of the switch.
        Description(Empty) "description" = [0 in _],
        /// Flows and their counters.
        Flow(FlowRequest<'a>) "flow" = [1 in _],
        /// Sums of the counters of flows.
        Aggregate(FlowRequest<'a>) "aggregate" = [2 in _],
        /// The counters of tables.
        Table(Empty) "table" = [3 in _],
        /// The counters of ports.
        Port(PortRequest) "port" = [4 in _],
        /// The counters of queues.
        Queue(QueueRequest) "queue" = [5 in _],
        /// The counters of groups.
        Group(GroupRequest) "group" = [6 in 1..],
        /// The configurations of groups.
        GroupDescription(GroupDescriptionRequest) "group_description" = [7 in 1..],
        /// The group features.
        GroupFeatures(Empty) "group_features" = [8 in 2..],
        /// The counters of meters.
        Meter(MeterRequest) "meter" = [9 in 3..],
        /// The configurations of meters.
        MeterConfig(MeterRequest) "meter_config" = [10 in 3..],
        /// The meter features.
        MeterFeatures(Empty) "meter_features" = [11 in 3..],
        /// The table features; the request can also set them.
        TableFeatures(TableFeaturesList<'a>) "table_features" = [12 in 3..],
        /// The descriptions of ports.
        PortDescription(PortDescriptionRequest) "port_description" = [13 in 3..],
        /// The configurations of tables.
        TableDescription(Empty) "table_description" = [14 in 4..],
        /// The configurations of queues.
        QueueDescription(QueueRequest) "queue_description" = [15 in 4..],
        /// Requests for notifications of changes to flows.
        FlowMonitor(FlowMonitors<'a>) "flow_monitor" = [16 in 4..],
        /// The counters of flows.
        FlowStatistics(FlowRequest<'a>) "flow_statistics" = [17 in 5..],
        /// The status of controllers.
        ControllerStatus(Empty) "controller_status" = [18 in 5..],
        /// The bundle features.
        BundleFeatures(BundleFeaturesRequest<'a>) "bundle_features" = [19 in 5..],
        /// An experimenter body.
        Experimenter(ExperimenterRequest<'a>) "experimenter" = [0xffff in _],
    }
}

choice! {
    /// The body of a reply.
    pub enum ReplyBody<'a> {
        /// The description of the switch.
        Description(SwitchDescription) "description" = [0 in _],
        /// Flows and their counters.
        Flow(Flows<'a>) "flow" = [1 in _],
        /// Sums of the counters of flows.
        Aggregate(Aggregate<'a>) "aggregate" = [2 in _],
        /// The counters of tables.
        Table(TableStatisticsList<'a>) "table" = [3 in _],
        /// The counters of ports.
        Port(PortStatisticsList<'a>) "port" = [4 in _],
        /// The counters of queues.
        Queue(QueueStatisticsList<'a>) "queue" = [5 in _],
        /// The counters of groups.
        Group(GroupStatisticsList<'a>) "group" = [6 in 1..],
        /// The configurations of groups.
        GroupDescription(GroupDescriptions<'a>) "group_description" = [7 in 1..],
        /// The group features.
        GroupFeatures(GroupFeatures) "group_features" = [8 in 2..],
        /// The counters of meters.
        Meter(MeterStatisticsList<'a>) "meter" = [9 in 3..],
        /// The configurations of meters.
        MeterConfig(MeterConfigs<'a>) "meter_config" = [10 in 3..],
        /// The meter features.
        MeterFeatures(MeterFeatures) "meter_features" = [11 in 3..],
        /// The table features.
        TableFeatures(TableFeaturesList<'a>) "table_features" = [12 in 3..],
        /// The descriptions of ports.
        PortDescription(PortList<'a>) "port_description" = [13 in 3..],
        /// The configurations of tables.
        TableDescription(TableDescriptions<'a>) "table_description" = [14 in 4..],
        /// The configurations of queues.
        QueueDescription(QueueDescriptions<'a>) "queue_description" = [15 in 4..],
        /// Updates of monitored flows.
        FlowMonitor(FlowUpdates<'a>) "flow_monitor" = [16 in 4..],
        /// The counters of flows.
        FlowStatistics(FlowStatisticsList<'a>) "flow_statistics" = [17 in 5..],
        /// The status of controllers.
        ControllerStatus(ControllerStatuses<'a>) "controller_status" = [18 in 5..],
        /// The bundle features.
        BundleFeatures(BundleFeatures<'a>) "bundle_features" = [19 in 5..],
        /// An experimenter body.
        Experimenter(ExperimenterReply<'a>) "experimenter" = [0xffff in _],
    }
}

macro_rules! lists {
    ($($(#[$meta:meta])* $name:ident { $field:ident: $type:ty })*) => {
        $(
            structure! {
                $(#[$meta])*
                pub struct $name<'a> in Statistics { $field: $type }
                _ => [$field],
            }
        )*
    };
}

lists! {
    /// Flows and their counters.
    Flows { flows: List<'a, FlowEntry<'a>> }
    /// The counters of tables.
    TableStatisticsList { tables: List<'a, TableStatistics> }
    /// The counters of ports.
    PortStatisticsList { ports: List<'a, PortStatistics<'a>> }
    /// The counters of queues.
    QueueStatisticsList { queues: List<'a, QueueStatistics<'a>> }
    /// The counters of groups.
    GroupStatisticsList { groups: List<'a, GroupStatistics<'a>> }
    /// The configurations of groups.
    GroupDescriptions { groups: List<'a, GroupDescription<'a>> }
    /// The counters of meters.
    MeterStatisticsList { meters: List<'a, MeterStatistics<'a>> }
    /// The configurations of meters.
    MeterConfigs { meters: List<'a, MeterConfig<'a>> }
    /// The table features.
    TableFeaturesList { tables: List<'a, TableFeatures<'a>> }
    /// The descriptions of ports.
    PortList { ports: Ports<'a> }
    /// The configurations of tables.
    TableDescriptions { tables: List<'a, TableDescription<'a>> }
    /// The configurations of queues.
    QueueDescriptions { queues: List<'a, QueueDescription<'a>> }
    /// Requests for notifications of changes to flows.
    FlowMonitors { monitors: List<'a, FlowMonitorRequest<'a>> }
    /// Updates of monitored flows.
    FlowUpdates { updates: List<'a, FlowUpdate<'a>> }
    /// The counters of flows.
    FlowStatisticsList { flows: List<'a, FlowStatistics<'a>> }
    /// The status of controllers.
    ControllerStatuses { controllers: List<'a, ControllerStatus<'a>> }
}

/// A statistics or multipart message: flags, and a body of one kind.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Multipart<T> {
    /// The flags, which state whether another part follows.
    pub flags: MultipartFlags,
    /// The body.
    pub body: T,
}

/// A statistics or multipart request.
pub type MultipartRequest<'a> = Multipart<RequestBody<'a>>;
/// A statistics or multipart reply.
pub type MultipartReply<'a> = Multipart<ReplyBody<'a>>;

impl<'a, T: Tagged<'a>> Multipart<T> {
    pub(crate) fn show_fields(&self, version: Version, sink: &mut dyn Sink) {
        sink.key("multipart");
        match self.body.kind(version) {
            Some(kind) if self.body.name() == "unknown" => sink.number(kind.into()),
            _ => sink.text(format_args!("{}", self.body.name())),
        }
        sink.key("flags");
        self.flags.show(version, sink);
        self.body.show_body(version, sink);
    }
}

impl<'a, T: Tagged<'a> + Copy + PartialEq + core::fmt::Debug + 'a> Value<'a> for Multipart<T> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let outer = reader.enter(Part::Statistics);
        let kind = reader.name("multipart").u16()?;
        let flags = MultipartFlags::read(reader.name("multipart"))?;
        if reader.version() != Version::V1_0 {
            reader.name("multipart").skip(4)?;
        }

        let body = T::read_body(kind, reader)?;
        reader.enter(outer);
        Ok(Self { flags, body })
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let kind = self.body.kind(writer.version()).ok_or_else(|| writer.unsupported(self.body.name()))?;
        head(kind, self.flags, writer)?;
        self.body.write_body(writer)
    }

    fn show(&self, version: Version, sink: &mut dyn Sink) {
        sink.open_record();
        self.show_fields(version, sink);
        sink.close_record();
    }

    fn compose(source: &dyn Source, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let wrong = EncodeError::Value { field: "multipart" };
        let told = source.field("multipart").ok_or(wrong)?;
        let named = told.text().and_then(|name| T::kind_of(name, writer.version()));
        let kind = named.or_else(|| told.number().and_then(|number| number.try_into().ok())).ok_or(wrong)?;
        let flags = match source.field("flags") {
            Some(told) => MultipartFlags::parse(told).ok_or(EncodeError::Value { field: "flags" })?,
            None => MultipartFlags::default(),
        };

        head(kind, flags, writer)?;
        T::compose_body(kind, source, writer)
    }
}

fn head(kind: u16, flags: MultipartFlags, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
    MultipartKind(kind).write(writer)?;
    flags.write(writer)?;
    if writer.version() != Version::V1_0 {
        writer.zeros(4);
    }
    Ok(())
}
