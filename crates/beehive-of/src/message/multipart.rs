//! Statistics (1.0 to 1.2) and multipart (1.3 on) messages: one kind of request and one of reply for each number.

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
    /// What is asked for.
    pub enum RequestBody<'a> {
        /// What the switch is.
        Description(Empty) "description" = [0 in _],
        /// Flows.
        Flow(FlowRequest<'a>) "flow" = [1 in _],
        /// Sums over flows.
        Aggregate(FlowRequest<'a>) "aggregate" = [2 in _],
        /// What tables counted.
        Table(Empty) "table" = [3 in _],
        /// What ports counted.
        Port(PortRequest) "port" = [4 in _],
        /// What queues counted.
        Queue(QueueRequest) "queue" = [5 in _],
        /// What groups counted.
        Group(GroupRequest) "group" = [6 in 1..],
        /// How groups are set up.
        GroupDescription(GroupDescriptionRequest) "group_description" = [7 in 1..],
        /// What groups can do.
        GroupFeatures(Empty) "group_features" = [8 in 2..],
        /// What meters counted.
        Meter(MeterRequest) "meter" = [9 in 3..],
        /// How meters are set up.
        MeterConfig(MeterRequest) "meter_config" = [10 in 3..],
        /// What meters can do.
        MeterFeatures(Empty) "meter_features" = [11 in 3..],
        /// What tables can do, or are to do.
        TableFeatures(TableFeaturesList<'a>) "table_features" = [12 in 3..],
        /// Ports.
        PortDescription(PortDescriptionRequest) "port_description" = [13 in 3..],
        /// How tables are set up.
        TableDescription(Empty) "table_description" = [14 in 4..],
        /// How queues are set up.
        QueueDescription(QueueRequest) "queue_description" = [15 in 4..],
        /// To be told of changes of flows.
        FlowMonitor(FlowMonitors<'a>) "flow_monitor" = [16 in 4..],
        /// What flows counted.
        FlowStatistics(FlowRequest<'a>) "flow_statistics" = [17 in 5..],
        /// What the switch knows about controllers.
        ControllerStatus(Empty) "controller_status" = [18 in 5..],
        /// What bundles can do.
        BundleFeatures(BundleFeaturesRequest<'a>) "bundle_features" = [19 in 5..],
        /// An experimenter's.
        Experimenter(ExperimenterRequest<'a>) "experimenter" = [0xffff in _],
    }
}

choice! {
    /// What is told.
    pub enum ReplyBody<'a> {
        /// What the switch is.
        Description(SwitchDescription) "description" = [0 in _],
        /// Flows.
        Flow(Flows<'a>) "flow" = [1 in _],
        /// Sums over flows.
        Aggregate(Aggregate<'a>) "aggregate" = [2 in _],
        /// What tables counted.
        Table(TableStatisticsList<'a>) "table" = [3 in _],
        /// What ports counted.
        Port(PortStatisticsList<'a>) "port" = [4 in _],
        /// What queues counted.
        Queue(QueueStatisticsList<'a>) "queue" = [5 in _],
        /// What groups counted.
        Group(GroupStatisticsList<'a>) "group" = [6 in 1..],
        /// How groups are set up.
        GroupDescription(GroupDescriptions<'a>) "group_description" = [7 in 1..],
        /// What groups can do.
        GroupFeatures(GroupFeatures) "group_features" = [8 in 2..],
        /// What meters counted.
        Meter(MeterStatisticsList<'a>) "meter" = [9 in 3..],
        /// How meters are set up.
        MeterConfig(MeterConfigs<'a>) "meter_config" = [10 in 3..],
        /// What meters can do.
        MeterFeatures(MeterFeatures) "meter_features" = [11 in 3..],
        /// What tables can do.
        TableFeatures(TableFeaturesList<'a>) "table_features" = [12 in 3..],
        /// Ports.
        PortDescription(PortList<'a>) "port_description" = [13 in 3..],
        /// How tables are set up.
        TableDescription(TableDescriptions<'a>) "table_description" = [14 in 4..],
        /// How queues are set up.
        QueueDescription(QueueDescriptions<'a>) "queue_description" = [15 in 4..],
        /// Changes of flows.
        FlowMonitor(FlowUpdates<'a>) "flow_monitor" = [16 in 4..],
        /// What flows counted.
        FlowStatistics(FlowStatisticsList<'a>) "flow_statistics" = [17 in 5..],
        /// What the switch knows about controllers.
        ControllerStatus(ControllerStatuses<'a>) "controller_status" = [18 in 5..],
        /// What bundles can do.
        BundleFeatures(BundleFeatures<'a>) "bundle_features" = [19 in 5..],
        /// An experimenter's.
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
    /// Flows.
    Flows { flows: List<'a, FlowEntry<'a>> }
    /// What tables counted.
    TableStatisticsList { tables: List<'a, TableStatistics> }
    /// What ports counted.
    PortStatisticsList { ports: List<'a, PortStatistics<'a>> }
    /// What queues counted.
    QueueStatisticsList { queues: List<'a, QueueStatistics<'a>> }
    /// What groups counted.
    GroupStatisticsList { groups: List<'a, GroupStatistics<'a>> }
    /// How groups are set up.
    GroupDescriptions { groups: List<'a, GroupDescription<'a>> }
    /// What meters counted.
    MeterStatisticsList { meters: List<'a, MeterStatistics<'a>> }
    /// How meters are set up.
    MeterConfigs { meters: List<'a, MeterConfig<'a>> }
    /// What tables can do.
    TableFeaturesList { tables: List<'a, TableFeatures<'a>> }
    /// Ports.
    PortList { ports: Ports<'a> }
    /// How tables are set up.
    TableDescriptions { tables: List<'a, TableDescription<'a>> }
    /// How queues are set up.
    QueueDescriptions { queues: List<'a, QueueDescription<'a>> }
    /// Flow monitors.
    FlowMonitors { monitors: List<'a, FlowMonitorRequest<'a>> }
    /// Changes of flows.
    FlowUpdates { updates: List<'a, FlowUpdate<'a>> }
    /// What flows counted.
    FlowStatisticsList { flows: List<'a, FlowStatistics<'a>> }
    /// What the switch knows about controllers.
    ControllerStatuses { controllers: List<'a, ControllerStatus<'a>> }
}

/// A statistics or multipart message: flags, and a body of one of its kinds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Multipart<T> {
    /// Whether another part follows.
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
