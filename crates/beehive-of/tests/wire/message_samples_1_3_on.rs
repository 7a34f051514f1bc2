//! Samples of the messages that were added in 1.3, 1.4 and 1.5.

use beehive_of::message::*;
use beehive_of::{PortNo, Version};
use bytes::BytesMut;

use crate::message_samples::Messages;

pub(crate) fn meters(messages: &mut Messages) {
    let bands = [
        Band::Drop(DropBand { rate: 1000, burst_size: 50 }),
        Band::DscpRemark(DscpRemarkBand { rate: 2000, burst_size: 0, prec_level: 1 }),
    ];
    messages.add(
        Message::MeterMod(MeterMod {
            command: MeterCommand::ADD,
            flags: MeterFlags::KBPS.with(MeterFlags::BURST),
            meter_id: MeterId(7),
            bands: (&bands).into(),
        }),
        &[
            "OFPT_METER_MOD",
            "ADD meter=7 kbps burst bands=",
            "type=drop rate=1000 burst_size=50",
            "prec_level=1",
        ],
    );
    let request = MeterRequest { meter_id: MeterId(7) };
    messages.request(RequestBody::Meter(request), &["OFPST_METER request", "meter=7"]);
    let counters = [BandCounter { packet_band_count: 1, byte_band_count: 2 }];
    let meters = [MeterStatistics {
        meter_id: MeterId(7),
        flow_count: 3,
        packet_in_count: 4,
        byte_in_count: 5,
        duration_sec: 6,
        duration_nsec: 0,
        bands: (&counters).into(),
    }];
    messages.reply(
        ReplyBody::Meter(MeterStatisticsList { meters: (&meters).into() }),
        &[
            "OFPST_METER reply",
            "meter:7 flow_count:3 packet_in_count:4 byte_in_count:5",
            "packet_count:1 byte_count:2",
        ],
    );
    messages.request(RequestBody::MeterConfig(request), &["OFPST_METER_CONFIG request", "meter=7"]);
    let configs =
        [MeterConfig { flags: MeterFlags::PKTPS, meter_id: MeterId(7), bands: (&bands[..1]).into() }];
    messages.reply(
        ReplyBody::MeterConfig(MeterConfigs { meters: (&configs).into() }),
        &["OFPST_METER_CONFIG reply", "meter=7 pktps bands=", "type=drop rate=1000"],
    );
    messages.request(RequestBody::MeterFeatures(Empty {}), &["OFPST_METER_FEATURES request"]);
    messages.reply(
        ReplyBody::MeterFeatures(MeterFeatures {
            max_meter: 99,
            band_types: BandTypes::DROP,
            capabilities: MeterCapabilities::KBPS,
            max_bands: 4,
            max_color: 5,
            features: 0,
        }),
        // Open vSwitch 3.1 uses the shorter structure of 1.3 in 1.5, too.
        match messages.version {
            Version::V1_5 => &[],
            _ => &["OFPST_METER_FEATURES reply", "max_meter:99 max_bands:4 max_color:5", "band_types: drop"],
        },
    );
}

pub(crate) fn tables(messages: &mut Messages) {
    use beehive_of::oxm::FieldId;
    messages.request(
        RequestBody::TableFeatures(TableFeaturesList { tables: Default::default() }),
        &["OFPST_TABLE_FEATURES request"],
    );
    let kinds = [Kind { kind: 1, body: &[] }, Kind { kind: 4, body: &[] }];
    let outputs = [Kind { kind: 0, body: &[] }];
    let fields = [
        FieldId { class: 0x8000, number: 0, length: 4, ..Default::default() },
        FieldId { class: 0x8000, number: 3, masked: true, length: 12, ..Default::default() },
    ];
    let settable = [FieldId { masked: false, length: 6, ..fields[1] }];
    let properties = [
        TableFeatureProperty::Instructions(Kinds { kinds: (&kinds).into() }),
        TableFeatureProperty::NextTables(Tables { tables: &[1, 2] }),
        TableFeatureProperty::WriteActions(Kinds { kinds: (&outputs).into() }),
        TableFeatureProperty::ApplyActions(Kinds { kinds: (&outputs).into() }),
        TableFeatureProperty::Match(FieldIds { fields: (&fields).into() }),
        TableFeatureProperty::Wildcards(FieldIds { fields: (&settable).into() }),
        TableFeatureProperty::WriteSetField(FieldIds { fields: (&settable).into() }),
        TableFeatureProperty::ApplySetField(FieldIds { fields: (&settable).into() }),
    ];
    let table = TableFeatures {
        table_id: TableId(0),
        name: beehive_of::schema::Fixed::new("classifier"),
        metadata_match: u64::MAX,
        metadata_write: 0xff,
        max_entries: 1_000_000,
        properties: (&properties).into(),
        ..Default::default()
    };

    messages.reply(
        ReplyBody::TableFeatures(TableFeaturesList { tables: (&[table]).into() }),
        &["OFPST_TABLE_FEATURES reply", "classifier", "max_entries=1000000", "in_port", "eth_dst"],
    );
}

pub(crate) fn asynchronous(messages: &mut Messages) {
    messages.add(Message::GetAsyncRequest(Empty {}), &["OFPT_GET_ASYNC_REQUEST"]);
    let masters = [
        AsyncProperty::PacketInMaster(Mask { mask: 3 }),
        AsyncProperty::PortStatusSlave(Mask { mask: 7 }),
        AsyncProperty::FlowRemovedMaster(Mask { mask: 15 }),
    ];
    let config = match messages.version {
        Version::V1_3 => AsyncConfig {
            packet_in_mask: 3,
            port_status_mask_slave: 7,
            flow_removed_mask: 15,
            ..Default::default()
        },
        _ => AsyncConfig { properties: (&masters).into(), ..Default::default() },
    };
    let words = ["no_match action", "add delete modify"];
    messages.add(Message::GetAsyncReply(config), &["OFPT_GET_ASYNC_REPLY", words[0], words[1]]);
    messages.add(Message::SetAsync(config), &["OFPT_SET_ASYNC", words[0], words[1]]);
}

pub(crate) fn since_1_4(messages: &mut Messages) {
    let version = messages.version;
    messages.add(
        Message::RoleStatus(RoleStatus {
            role: ControllerRole::SLAVE,
            reason: RoleReason::MASTER_REQUEST,
            generation_id: 5,
            properties: Default::default(),
        }),
        &["OFPT_ROLE_STATUS", "role=", "generation_id=5", "reason="],
    );
    let vacancy = [TableProperty::Vacancy(Vacancy { vacancy_down: 20, vacancy_up: 80, vacancy: 75 })];
    let table = TableDescription {
        table_id: TableId(3),
        config: TableConfig::VACANCY_EVENTS,
        properties: (&vacancy).into(),
    };

    messages.add(
        Message::TableStatus(TableStatus { reason: TableReason::VACANCY_UP, table }),
        &["OFPT_TABLE_STATUS", "reason=VACANCY_UP", "table 3:", "vacancy_down=20%"],
    );
    messages.request(RequestBody::TableDescription(Empty {}), &["OFPST_TABLE_DESC request"]);
    messages.reply(
        ReplyBody::TableDescription(TableDescriptions { tables: (&[table]).into() }),
        &["OFPST_TABLE_DESC reply", "table 3", "vacancy_down=20%", "vacancy_up=80%"],
    );
    let queue = QueueRequest { port: PortNo(2), queue_id: QueueId(5) };
    messages.request(RequestBody::QueueDescription(queue), &["OFPST_QUEUE_DESC request", "port=2 queue=5"]);
    let rates = [
        QueueDescriptionProperty::MinRate(Rate { rate: 500 }),
        QueueDescriptionProperty::MaxRate(Rate { rate: 900 }),
    ];
    let queues = [QueueDescription { port: PortNo(2), queue_id: QueueId(5), properties: (&rates).into() }];
    messages.reply(
        ReplyBody::QueueDescription(QueueDescriptions { queues: (&queues).into() }),
        &["OFPST_QUEUE_DESC reply", "queue 5: min_rate:50.0% max_rate:90.0%"],
    );
    let monitors = [FlowMonitorRequest {
        monitor_id: 9,
        flags: FlowMonitorFlags::INITIAL.with(FlowMonitorFlags::ADD),
        ..Default::default()
    }];
    messages.request(
        RequestBody::FlowMonitor(FlowMonitors { monitors: (&monitors).into() }),
        &["OFPST_FLOW_MONITOR request", "id=9"],
    );
    let updates = [
        FlowUpdate {
            event: FlowEvent::ADDED,
            body: FlowUpdateBody::Full(FullUpdate {
                table_id: TableId(1),
                priority: 5,
                ..Default::default()
            }),
        },
        FlowUpdate {
            event: FlowEvent::ABBREV,
            body: FlowUpdateBody::Abbreviated(AbbreviatedUpdate { xid: 0x55 }),
        },
        FlowUpdate::default(),
    ];
    messages.reply(
        ReplyBody::FlowMonitor(FlowUpdates { updates: (&updates).into() }),
        &["OFPST_FLOW_MONITOR reply", "event=ADDED table=1", "event=ABBREV xid=0x55"],
    );
    messages.add(
        Message::BundleControl(BundleControl {
            bundle_id: 3,
            control_type: BundleControlType::COMMIT_REQUEST,
            flags: BundleFlags::ATOMIC.with(BundleFlags::ORDERED),
            properties: Default::default(),
        }),
        &["OFPT_BUNDLE_CONTROL", "bundle_id=0x3 type=COMMIT_REQUEST flags=atomic ordered"],
    );
    let mut inner = BytesMut::new();
    Message::GroupMod(GroupMod { group_id: GroupId(1), ..Default::default() })
        .encode_into(version, 0x2a, &mut inner)
        .unwrap();
    let message = InnerMessage { bytes: &inner, padded: false };
    messages.add(
        Message::BundleAdd(BundleAdd {
            bundle_id: 3,
            flags: BundleFlags::ATOMIC,
            message,
            properties: Default::default(),
        }),
        &[
            "OFPT_BUNDLE_ADD_MESSAGE",
            "bundle_id=0x3 flags=atomic",
            "OFPT_GROUP_MOD",
            "ADD group_id=1,type=all",
        ],
    );

    messages.add(
        Message::RequestForward(RequestForward { request: message }),
        &["OFPT_REQUESTFORWARD", "ADD group_id=1,type=all"],
    );
}

pub(crate) fn since_1_5(messages: &mut Messages) {
    use beehive_of::oxm::FieldId;
    let copied = FieldId { class: 0x8000, number: 3, length: 6, ..Default::default() };
    let actions = [
        Action::Meter(Meter { meter_id: MeterId(6) }),
        Action::CopyField(CopyField {
            bit_count: 48,
            source: copied,
            destination: FieldId { number: 4, ..copied },
            ..Default::default()
        }),
    ];
    let apply = [Instruction::ApplyActions(ActionList { actions: (&actions).into() })];
    messages.add(
        Message::FlowMod(FlowMod { instructions: (&apply).into(), ..Default::default() }),
        &["OFPT_FLOW_MOD", "meter:6", "move:NXM_OF_ETH_DST[]->NXM_OF_ETH_SRC[]"],
    );
    let packets = 9u64.to_be_bytes();
    let counters = [Counter { class: 0x8002, number: 4, value: &packets }];
    let flows = [FlowStatistics {
        table_id: TableId(1),
        priority: 7,
        counters: FlowCounters((&counters).into()),
        ..Default::default()
    }];

    // Open vSwitch 3.1 supports neither of these messages, so the test does not let it print them.
    messages.reply(ReplyBody::FlowStatistics(FlowStatisticsList { flows: (&flows).into() }), &[]);
    let trigger = [Instruction::StatTrigger(StatTrigger {
        flags: StatTriggerFlags::PERIODIC,
        thresholds: FlowCounters((&counters).into()),
    })];
    messages.add(Message::FlowMod(FlowMod { instructions: (&trigger).into(), ..Default::default() }), &[]);
    let uri = [ControllerProperty::Uri(Uri { uri: b"tcp:192.0.2.1:6653" })];
    let status = ControllerStatus {
        short_id: 2,
        role: ControllerRole::MASTER,
        reason: ControllerStatusReason::ROLE,
        channel_status: ChannelStatus::UP,
        properties: (&uri).into(),
    };

    messages.add(Message::ControllerStatus(status), &[]);
    messages.reply(ReplyBody::ControllerStatus(ControllerStatuses { controllers: (&[status]).into() }), &[]);
    messages.request(RequestBody::ControllerStatus(Empty {}), &[]);
    let time = [BundleFeaturesProperty::Time(TimeFeatures {
        sched_accuracy: Time { seconds: 0, nanoseconds: 1000 },
        ..Default::default()
    })];
    messages.request(
        RequestBody::BundleFeatures(BundleFeaturesRequest {
            feature_request_flags: 1,
            properties: (&time).into(),
        }),
        &[],
    );
    messages.reply(
        ReplyBody::BundleFeatures(BundleFeatures {
            capabilities: BundleFlags::ATOMIC,
            properties: (&time).into(),
        }),
        &[],
    );
    let at = [BundleProperty::Time(ScheduledTime { seconds: 1, nanoseconds: 2 })];
    messages.add(
        Message::BundleControl(BundleControl {
            bundle_id: 3,
            control_type: BundleControlType::COMMIT_REQUEST,
            flags: BundleFlags::TIME,
            properties: (&at).into(),
        }),
        &[],
    );
}
