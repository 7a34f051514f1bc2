//! Samples of Open vSwitch's packet and statistics messages, and of the ONF's extensions of 1.3.

use beehive_of::message::*;
use beehive_of::oxm::{FieldId, OxmField, OxmFields};
use beehive_of::{PortNo, Version};

use crate::message_samples::Messages;

/// Adds the samples that exist in the version.
pub(crate) fn all(messages: &mut Messages) {
    packets(messages);
    if messages.version == Version::V1_0 {
        statistics(messages);
    }
    if messages.version <= Version::V1_2 {
        monitors(messages);
    }

    if messages.version == Version::V1_3 {
        onf(messages);
    }
}

fn packets(messages: &mut Messages) {
    let fields = [
        OxmField { class: 0, ..OxmField::basic(0, &[0, 3]) },
        OxmField { class: 1, ..OxmField::basic(16, &[0, 0, 0, 0, 0, 0, 0, 6]) },
    ];
    messages.add(
        Message::Experimenter(Extended::Nicira(NiciraMessage::PacketIn(NiciraPacketIn {
            total_len: 64,
            reason: PacketInReason::INVALID_TTL,
            table_id: TableId(7),
            cookie: 0x1234,
            match_fields: OxmFields((&fields).into()),
            data: &[0; 64],
            ..Default::default()
        }))),
        &[
            "NXT_PACKET_IN",
            "table_id=7 cookie=0x1234 total_len=64",
            "tun_id=0x6,in_port=3",
            "via invalid_ttl",
        ],
    );
    let properties = [
        PacketProperty::Packet(PropertyBytes { data: &[0; 60] }),
        PacketProperty::FullLength(FullLength { full_len: 60 }),
        PacketProperty::TableId(TableIdProperty { table_id: TableId(7) }),
        PacketProperty::Cookie(CookieProperty { cookie: 0xfedc }),
        PacketProperty::Reason(ReasonProperty { reason: PacketInReason::ACTION }),
        PacketProperty::Metadata(MetadataProperty { fields: OxmFields((&fields).into()) }),
        PacketProperty::UserData(PropertyBytes { data: &[1, 2, 3, 4, 5] }),
    ];
    let properties = PacketProperties { properties: (&properties).into() };
    messages.add(
        Message::Experimenter(Extended::Nicira(NiciraMessage::PacketIn2(properties))),
        &[
            "NXT_PACKET_IN2",
            "table_id=7 cookie=0xfedc total_len=60",
            "tun_id=0x6,in_port=3",
            "via action",
            "userdata=01.02.03.04.05",
        ],
    );
    let resumed = [
        PacketProperty::Packet(PropertyBytes { data: &[0; 60] }),
        PacketProperty::Metadata(MetadataProperty { fields: OxmFields((&fields).into()) }),
        PacketProperty::Continuation(PropertyBytes { data: &[0, 0, 0, 0, 0x80, 2, 0, 8, 0, 0, 0, 1] }),
    ];

    messages.add(
        Message::Experimenter(Extended::Nicira(NiciraMessage::Resume(PacketProperties {
            properties: (&resumed).into(),
        }))),
        &["NXT_RESUME", "tun_id=0x6,in_port=3"],
    );
}

fn statistics(messages: &mut Messages) {
    let fields = [OxmField { class: 0, ..OxmField::basic(0, &[0, 3]) }];
    let match_fields = OxmFields((&fields).into());
    let request = NiciraFlowRequest { out_port: PortNo(2), table_id: TableId(4), match_fields };
    messages.request(
        RequestBody::Experimenter(Extended::Nicira(NiciraRequest::Flow(request))),
        &["NXST_FLOW request", "table=4 out_port=2 in_port=3"],
    );
    messages.request(
        RequestBody::Experimenter(Extended::Nicira(NiciraRequest::Aggregate(request))),
        &["NXST_AGGREGATE request", "table=4 out_port=2 in_port=3"],
    );
    let output = [Action::Output(Output { port: PortNo(2), ..Default::default() })];
    let flows = [NiciraFlowEntry {
        table_id: TableId(4),
        duration_sec: 3,
        priority: 9,
        idle_age_plus_one: 6,
        packet_count: 7,
        byte_count: 8,
        match_fields,
        actions: (&output).into(),
        ..Default::default()
    }];
    messages.reply(
        ReplyBody::Experimenter(Extended::Nicira(NiciraReply::Flow(NiciraFlows { flows: (&flows).into() }))),
        &[
            "NXST_FLOW reply",
            "table=4, n_packets=7, n_bytes=8, idle_age=5, priority=9,in_port=3 actions=output:2",
        ],
    );
    let aggregate = Aggregate { packet_count: 5, byte_count: 6, flow_count: 7, ..Default::default() };
    messages.reply(
        ReplyBody::Experimenter(Extended::Nicira(NiciraReply::Aggregate(aggregate))),
        &["NXST_AGGREGATE reply", "packet_count=5 byte_count=6 flow_count=7"],
    );
    messages.request(
        RequestBody::Experimenter(Extended::Nicira(NiciraRequest::IpfixBridge(Empty {}))),
        &["NXST_IPFIX_BRIDGE request"],
    );
    messages.request(
        RequestBody::Experimenter(Extended::Nicira(NiciraRequest::IpfixFlow(Empty {}))),
        &["NXST_IPFIX_FLOW request"],
    );
    let export = Ipfix { total_flows: 9, sent_packets: 8, collector_set_id: 7, ..Default::default() };
    messages.reply(
        ReplyBody::Experimenter(Extended::Nicira(NiciraReply::IpfixBridge(export))),
        &["NXST_IPFIX_BRIDGE reply", "flows=9"],
    );
    let exports = [export, export];
    messages.reply(
        ReplyBody::Experimenter(Extended::Nicira(NiciraReply::IpfixFlow(IpfixList {
            exports: (&exports).into(),
        }))),
        &["NXST_IPFIX_FLOW reply", "id   7: flows=9"],
    );
}

fn monitors(messages: &mut Messages) {
    let fields = [OxmField { class: 0, ..OxmField::basic(0, &[0, 3]) }];
    let match_fields = OxmFields((&fields).into());
    let monitors = [NiciraMonitorRequest {
        monitor_id: 5,
        flags: FlowMonitorFlags::INITIAL.with(FlowMonitorFlags::ADD),
        table_id: TableId(1),
        match_fields,
        ..Default::default()
    }];
    messages.request(
        RequestBody::Experimenter(Extended::Nicira(NiciraRequest::FlowMonitor(NiciraMonitors {
            monitors: (&monitors).into(),
        }))),
        &["NXST_FLOW_MONITOR request", "id=5 flags=initial,add table=1 in_port=3"],
    );
    let output = [Action::Output(Output { port: PortNo(2), ..Default::default() })];
    let updates = [
        NiciraUpdate {
            event: NiciraFlowEvent::ADDED,
            body: NiciraUpdateBody::Full(NiciraFullUpdate {
                priority: 4,
                table_id: TableId(1),
                cookie: 0x123,
                match_fields,
                actions: (&output).into(),
                ..Default::default()
            }),
        },
        NiciraUpdate {
            event: NiciraFlowEvent::ABBREV,
            body: NiciraUpdateBody::Abbreviated(AbbreviatedUpdate { xid: 0x1234_5678 }),
        },
    ];
    messages.reply(
        ReplyBody::Experimenter(Extended::Nicira(NiciraReply::FlowMonitor(NiciraUpdates {
            updates: (&updates).into(),
        }))),
        &[
            "NXST_FLOW_MONITOR reply",
            "event=ADDED table=1 cookie=0x123 in_port=3 actions=output:2",
            "event=ABBREV xid=0x12345678",
        ],
    );
    messages.add(
        Message::Experimenter(Extended::Nicira(NiciraMessage::FlowMonitorCancel(MonitorCancel {
            monitor_id: 5,
        }))),
        &["NXT_FLOW_MONITOR_CANCEL", "id=5"],
    );
    messages.add(
        Message::Experimenter(Extended::Nicira(NiciraMessage::FlowMonitorPaused(Empty {}))),
        &["NXT_FLOW_MONITOR_PAUSED"],
    );

    messages.add(
        Message::Experimenter(Extended::Nicira(NiciraMessage::FlowMonitorResumed(Empty {}))),
        &["NXT_FLOW_MONITOR_RESUMED"],
    );
}

fn onf(messages: &mut Messages) {
    use OnfMessage as M;
    let send = |messages: &mut Messages, message: OnfMessage<'_>, words: &[&'static str]| {
        messages.add(Message::Experimenter(Extended::Onf(message)), words);
    };
    let flags = BundleFlags::ATOMIC.with(BundleFlags::ORDERED);
    let control = BundleControl { bundle_id: 5, flags, ..Default::default() };
    send(
        messages,
        M::BundleControl(control),
        &["ONFT_BUNDLE_CONTROL", "bundle_id=0x5 type=OPEN_REQUEST flags=atomic ordered"],
    );
    let mut flow = vec![4, 14, 0, 56, 0, 0, 0, 0x2a];
    flow.extend([0; 24]);
    flow.extend([0xff; 12]);
    flow.extend([0, 0, 0, 0, 0, 1, 0, 4, 0, 0, 0, 0]);
    send(
        messages,
        M::BundleAdd(BundleAdd {
            bundle_id: 5,
            flags,
            message: InnerMessage { bytes: &flow, padded: false },
            ..Default::default()
        }),
        &[
            "ONFT_BUNDLE_ADD_MESSAGE",
            "bundle_id=0x5 flags=atomic ordered",
            "OFPT_FLOW_MOD",
            "ADD priority=0 actions=drop",
        ],
    );
    send(
        messages,
        M::RoleStatus(RoleStatus { role: ControllerRole::SLAVE, generation_id: 7, ..Default::default() }),
        &["ONFT_ROLE_STATUS", "role=secondary generation_id=7 reason=primary_request"],
    );
    let group = [4, 15, 0, 16, 0, 0, 0, 0x2a, 0, 0, 1, 0, 0, 0, 0, 9];
    send(
        messages,
        M::RequestForward(RequestForward { request: InnerMessage { bytes: &group, padded: false } }),
        &["ONFT_REQUESTFORWARD", "ADD group_id=9,type=select"],
    );
    let ip = beehive_of::any::Match { eth_type: Some(0x0800), ..beehive_of::any::Match::ANY };
    let monitors = [OnfMonitorRequest {
        monitor_id: 5,
        flags: FlowMonitorFlags::INITIAL.with(FlowMonitorFlags::ADD),
        match_len: 10,
        table_id: TableId(1),
        match_fields: Match::Any(&ip),
        ..Default::default()
    }];
    messages.request(
        RequestBody::Experimenter(Extended::Onf(OnfRequest::FlowMonitor(OnfMonitors {
            monitors: (&monitors).into(),
        }))),
        &["ONFST_FLOW_MONITOR request", "id=5 flags=initial,add table=1 ip"],
    );
    let updates = [NiciraUpdate {
        event: NiciraFlowEvent::ADDED,
        body: NiciraUpdateBody::Full(NiciraFullUpdate {
            priority: 4,
            table_id: TableId(1),
            cookie: 0x123,
            match_len: 10,
            standard_match: Match::Any(&ip),
            ..Default::default()
        }),
    }];
    messages.reply(
        ReplyBody::Experimenter(Extended::Onf(OnfReply::FlowMonitor(OnfUpdates {
            updates: (&updates).into(),
        }))),
        &["ONFST_FLOW_MONITOR reply", "event=ADDED table=1 cookie=0x123 ip"],
    );
    send(
        messages,
        M::FlowMonitorCancel(MonitorCancel { monitor_id: 5 }),
        &["ONFT_FLOW_MONITOR_CANCEL", "id=5"],
    );
    send(messages, M::FlowMonitorPaused(Empty {}), &["ONFT_FLOW_MONITOR_PAUSED"]);
    send(messages, M::FlowMonitorResumed(Empty {}), &["ONFT_FLOW_MONITOR_RESUMED"]);
    let copied = OnfCopyField {
        bit_count: 32,
        source: FieldId { class: 0x8000, number: 11, length: 4, ..FieldId::default() },
        destination: FieldId { class: 0x8000, number: 12, length: 4, ..FieldId::default() },
        ..Default::default()
    };
    let list = [Action::Experimenter(Extended::Onf(OnfAction::CopyField(copied)))];
    messages.add(
        Message::PacketOut(PacketOut {
            in_port: PortNo::CONTROLLER,
            actions: (&list).into(),
            data: &[0; 60],
            ..Default::default()
        }),
        &["OFPT_PACKET_OUT", "move:NXM_OF_IP_SRC[]->NXM_OF_IP_DST[]"],
    );
}
