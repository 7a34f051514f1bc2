//! Samples of messages that only the complete layer models, in every version that has them, for round trips,
//! comparison with Open vSwitch, and mutation.

use beehive_of::message::*;
use beehive_of::oxm::{OxmField, OxmFields};
use beehive_of::{MacAddress, PortNo, Version};
use bytes::BytesMut;

use crate::message_samples_1_3_on;

/// An encoded message, and texts that Open vSwitch must print for it.
pub(crate) type Judged = (Vec<u8>, Vec<&'static str>);

/// Collects the messages of a version.
pub(crate) struct Messages {
    pub(crate) version: Version,
    list: Vec<Judged>,
}

impl Messages {
    pub(crate) fn add(&mut self, message: Message<'_>, words: &[&'static str]) {
        let mut out = BytesMut::new();
        message
            .encode_into(self.version, 0x2a, &mut out)
            .unwrap_or_else(|error| panic!("{words:?} {}: {error}", self.version));
        self.list.push((out.to_vec(), words.to_vec()));
    }

    pub(crate) fn request(&mut self, body: RequestBody<'_>, words: &[&'static str]) {
        self.add(Message::MultipartRequest(Multipart { flags: MultipartFlags::default(), body }), words);
    }

    pub(crate) fn reply(&mut self, body: ReplyBody<'_>, words: &[&'static str]) {
        self.add(Message::MultipartReply(Multipart { flags: MultipartFlags::default(), body }), words);
    }
}

const ETHERNET: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

/// Returns every kind of message that exists in the version and that the version-independent layer does not
/// model.
pub(crate) fn complete(version: Version) -> Vec<Judged> {
    let mut messages = Messages { version, list: Vec::new() };
    every_version(&mut messages);
    if version <= Version::V1_3 {
        let port = PortNo(2);
        messages.add(
            Message::QueueConfigRequest(QueueConfigRequest { port }),
            &["OFPT_QUEUE_GET_CONFIG_REQUEST", "port=2"],
        );
        let rate = [QueueProperty::MinRate(Rate { rate: 500 })];
        let queue_port = if version >= Version::V1_2 { port } else { PortNo(0) };
        let queues = [Queue { queue_id: QueueId(7), port: queue_port, properties: (&rate).into() }];
        messages.add(
            Message::QueueConfigReply(QueueConfig { port, queues: (&queues).into() }),
            &["OFPT_QUEUE_GET_CONFIG_REPLY", "queue 7: min_rate:50.0%"],
        );
    }
    if version >= Version::V1_1 {
        instructions(&mut messages);
        groups(&mut messages);
        let properties = [TableProperty::Vacancy(Vacancy { vacancy_down: 20, vacancy_up: 80, vacancy: 0 })];
        let (config, properties) = match version {
            Version::V1_4 | Version::V1_5 => (TableConfig::VACANCY_EVENTS, (&properties).into()),
            _ => (TableConfig::MISS_CONTINUE, Default::default()),
        };
        let word = if version >= Version::V1_4 { "vacancy=on vacancy:20,80" } else { "table_id=3" };
        messages.add(
            Message::TableMod(TableMod { table_id: TableId(3), config, properties }),
            &["OFPT_TABLE_MOD", word],
        );
    }
    if version >= Version::V1_2 {
        fields(&mut messages);
        messages.request(RequestBody::GroupFeatures(Empty {}), &["OFPST_GROUP_FEATURES request"]);
        messages.reply(
            ReplyBody::GroupFeatures(GroupFeatures {
                types: GroupTypes(15),
                capabilities: GroupCapabilities(15),
                max_groups_all: 11,
                actions_all: 1,
                ..Default::default()
            }),
            &["OFPST_GROUP_FEATURES reply", "max_groups=0xb"],
        );
    }
    if version >= Version::V1_3 {
        message_samples_1_3_on::meters(&mut messages);
        message_samples_1_3_on::tables(&mut messages);
        message_samples_1_3_on::asynchronous(&mut messages);
    }
    if version >= Version::V1_4 {
        message_samples_1_3_on::since_1_4(&mut messages);
    }
    if version >= Version::V1_5 {
        message_samples_1_3_on::since_1_5(&mut messages);
    }

    crate::extensions::extensions(&mut messages);
    messages.list
}

fn every_version(messages: &mut Messages) {
    let version = messages.version;
    let ethernet = [PortModProperty::Ethernet(EthernetPortMod { advertise: 1 })];
    let (advertise, properties) = match version {
        Version::V1_4 | Version::V1_5 => (0, (&ethernet).into()),
        _ => (1, Default::default()),
    };

    messages.add(
        Message::PortMod(PortMod {
            port_no: PortNo(3),
            hw_addr: ETHERNET,
            config: PortConfig::PORT_DOWN,
            mask: PortConfig::PORT_DOWN.with(PortConfig::NO_FWD),
            advertise,
            properties,
        }),
        &["OFPT_PORT_MOD", "port: 3", "addr:02:00:00:00:00:01", "config: PORT_DOWN", "advertise: 10MB-HD"],
    );
    messages.request(RequestBody::Description(Empty {}), &["OFPST_DESC request"]);
    messages.reply(
        ReplyBody::Description(SwitchDescription {
            mfr_desc: beehive_of::schema::Fixed::new("maker"),
            serial_num: beehive_of::schema::Fixed::new("12345"),
            ..Default::default()
        }),
        &["OFPST_DESC reply", "Manufacturer: maker", "Serial Num: 12345"],
    );
    let request = FlowRequest { table_id: TableId(4), out_port: PortNo(2), ..Default::default() };
    messages.request(RequestBody::Aggregate(request), &["OFPST_AGGREGATE request", "table=4", "out_port=2"]);
    let (packets, bytes, flows) = (5u64.to_be_bytes(), 6u64.to_be_bytes(), 7u32.to_be_bytes());
    let counters = [
        Counter { class: 0x8002, number: 3, value: &flows },
        Counter { class: 0x8002, number: 4, value: &packets },
        Counter { class: 0x8002, number: 5, value: &bytes },
    ];
    let aggregate = match version {
        Version::V1_5 => Aggregate { counters: FlowCounters((&counters).into()), ..Default::default() },
        _ => Aggregate { packet_count: 5, byte_count: 6, flow_count: 7, ..Default::default() },
    };

    messages.reply(
        ReplyBody::Aggregate(aggregate),
        &["OFPST_AGGREGATE reply", "packet_count=5 byte_count=6 flow_count=7"],
    );
    messages.request(RequestBody::Table(Empty {}), &["OFPST_TABLE request"]);
    let tables = [TableStatistics {
        table_id: TableId(0),
        active_count: 3,
        lookup_count: 9,
        matched_count: 8,
        ..Default::default()
    }];
    messages.reply(
        ReplyBody::Table(TableStatisticsList { tables: (&tables).into() }),
        &["OFPST_TABLE reply", "active=3, lookup=9, matched=8"],
    );
    messages
        .request(RequestBody::Port(PortRequest { port_no: PortNo(2) }), &["OFPST_PORT request", "port_no=2"]);
    let ethernet =
        [PortStatisticsProperty::Ethernet(EthernetCounters { collisions: 4, ..Default::default() })];
    let mut port = PortStatistics { port_no: PortNo(2), rx_packets: 17, tx_bytes: 18, ..Default::default() };
    match version {
        Version::V1_4 | Version::V1_5 => port.properties = (&ethernet).into(),
        _ => port.collisions = 4,
    }

    if version >= Version::V1_3 {
        (port.duration_sec, port.duration_nsec) = (1, 500_000_000);
    }

    messages.reply(
        ReplyBody::Port(PortStatisticsList { ports: (&[port]).into() }),
        &["OFPST_PORT reply", "port  2: rx pkts=17", "bytes=18", "coll=4"],
    );
    let queue = QueueRequest { port: PortNo(2), queue_id: QueueId(5) };
    messages.request(RequestBody::Queue(queue), &["OFPST_QUEUE request", "port=2 queue=5"]);
    let queues = [QueueStatistics {
        port: PortNo(2),
        queue_id: QueueId(5),
        tx_bytes: 100,
        tx_packets: 3,
        tx_errors: 1,
        ..Default::default()
    }];
    messages.reply(
        ReplyBody::Queue(QueueStatisticsList { queues: (&queues).into() }),
        &["OFPST_QUEUE reply", "port 2 queue 5: bytes=100, pkts=3, errors=1"],
    );
    let set_vlan = match version {
        Version::V1_0 | Version::V1_1 => Some(Action::SetVlanPriority(SetVlanPriority { vlan_priority: 5 })),
        _ => None,
    };

    if version == Version::V1_0 {
        let actions = [
            Action::Enqueue(Enqueue { port: PortNo(2), queue_id: QueueId(5) }),
            Action::SetVlanId(SetVlanId { vlan_id: 9 }),
            set_vlan.unwrap_or_default(),
            Action::SetIpTos(SetByte { value: 0x20 }),
            Action::SetTransportSrc(SetTransport { port: 80 }),
            Action::SetTransportDst(SetTransport { port: 81 }),
        ];
        messages.add(
            Message::PacketOut(PacketOut {
                in_port: PortNo::CONTROLLER,
                actions: (&actions).into(),
                data: &[0; 60],
                ..Default::default()
            }),
            &[
                "OFPT_PACKET_OUT",
                "enqueue:2:5,mod_vlan_vid:9,mod_vlan_pcp:5,mod_nw_tos:32,mod_tp_src:80,mod_tp_dst:81",
            ],
        );
    }
}

fn instructions(messages: &mut Messages) {
    let version = messages.version;
    let actions = [
        Action::PushVlan(EtherType { eth_type: 0x8100 }),
        Action::SetQueue(SetQueue { queue_id: QueueId(3) }),
        Action::DecIpTtl(NoArgument {}),
        Action::SetIpTtl(SetByte { value: 64 }),
        Action::Group(Group { group_id: GroupId(9) }),
        Action::Output(Output { port: PortNo::CONTROLLER, max_len: PacketLength(128) }),
    ];
    let mut list = vec![
        Instruction::ApplyActions(ActionList { actions: (&actions).into() }),
        Instruction::ClearActions(Nothing {}),
        Instruction::WriteActions(ActionList { actions: (&actions[4..]).into() }),
        Instruction::WriteMetadata(WriteMetadata { metadata: 0x12, mask: 0xff }),
        Instruction::GotoTable(GotoTable { table_id: TableId(7) }),
    ];
    let mut words = vec![
        "OFPT_FLOW_MOD",
        "ADD table:2 priority=5",
        "push_vlan:0x8100,set_queue:3,dec_ttl,",
        "group:9,CONTROLLER:128",
        "clear_actions,write_actions(group:9,CONTROLLER:128),write_metadata:0x12/0xff,goto_table:7",
    ];
    if matches!(version, Version::V1_3 | Version::V1_4) {
        list.insert(0, Instruction::Meter(MeterInstruction { meter_id: MeterId(6) }));
        words.push("meter:6,");
    }

    let importance = if version >= Version::V1_4 { 77 } else { 0 };
    if importance > 0 {
        words.push("importance:77");
    }

    let ip = beehive_of::any::Match { eth_type: Some(0x0800), ..beehive_of::any::Match::ANY };
    messages.add(
        Message::FlowMod(FlowMod {
            table_id: TableId(2),
            priority: 5,
            importance,
            match_fields: Match::Any(&ip),
            instructions: (&list[..]).into(),
            ..Default::default()
        }),
        &words,
    );
}

fn groups(messages: &mut Messages) {
    let version = messages.version;
    let actions = [Action::Output(Output { port: PortNo(4), ..Default::default() })];
    let properties = [
        BucketProperty::Weight(Weight { weight: 100 }),
        BucketProperty::WatchPort(WatchPort { watch_port: PortNo(1) }),
    ];
    let bucket = match version {
        Version::V1_5 => Bucket {
            bucket_id: BucketId(3),
            actions: (&actions).into(),
            properties: (&properties).into(),
            ..Default::default()
        },
        _ => Bucket { weight: 100, watch_port: PortNo(1), actions: (&actions).into(), ..Default::default() },
    };
    let buckets = [bucket];
    let bucket_words = if version == Version::V1_5 {
        "bucket=bucket_id:3,weight:100,watch_port:1,actions=output:4"
    } else {
        "weight:100,watch_port:1,actions=output:4"
    };

    messages.add(
        Message::GroupMod(GroupMod {
            command: GroupCommand::ADD,
            group_type: GroupType::SELECT,
            group_id: GroupId(0x1234),
            buckets: (&buckets).into(),
            ..Default::default()
        }),
        &["OFPT_GROUP_MOD", "ADD group_id=4660,type=select", bucket_words],
    );
    messages.request(
        RequestBody::Group(GroupRequest { group_id: GroupId(9) }),
        &["OFPST_GROUP request", "group_id=9"],
    );
    let counters = [BucketCounter { packet_count: 1, byte_count: 2 }];
    let mut group = GroupStatistics {
        group_id: GroupId(9),
        ref_count: 2,
        packet_count: 3,
        byte_count: 4,
        buckets: (&counters).into(),
        ..Default::default()
    };

    if version >= Version::V1_3 {
        (group.duration_sec, group.duration_nsec) = (1, 5);
    }

    messages.reply(
        ReplyBody::Group(GroupStatisticsList { groups: (&[group]).into() }),
        &[
            "OFPST_GROUP reply",
            "group_id=9,",
            "ref_count=2,packet_count=3,byte_count=4,bucket0:packet_count=1,byte_count=2",
        ],
    );
    messages.request(
        RequestBody::GroupDescription(GroupDescriptionRequest::default()),
        &["OFPST_GROUP_DESC request"],
    );
    let groups = [GroupDescription {
        group_type: GroupType::SELECT,
        group_id: GroupId(9),
        buckets: (&buckets).into(),
        ..Default::default()
    }];

    messages.reply(
        ReplyBody::GroupDescription(GroupDescriptions { groups: (&groups).into() }),
        &["OFPST_GROUP_DESC reply", "group_id=9,type=select", bucket_words],
    );
}

fn fields(messages: &mut Messages) {
    let list = [
        OxmField::basic(0, &[0, 0, 0, 3]),
        OxmField {
            mask: Some(&[0, 0, 0, 0, 0, 0, 0, 0xff]),
            ..OxmField::basic(2, &[0, 0, 0, 0, 0, 0, 0, 7])
        },
        OxmField { mask: Some(&[0xff, 0xff, 0, 0, 0, 0]), ..OxmField::basic(3, &[2, 3, 0, 0, 0, 0]) },
        OxmField::basic(5, &[0x86, 0xdd]),
        OxmField::basic(6, &[0x10, 9]),
        OxmField::basic(7, &[5]),
        OxmField::basic(8, &[10]),
        OxmField::basic(9, &[2]),
        OxmField::basic(10, &[58]),
        OxmField::basic(26, &[0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        OxmField::basic(28, &[0, 1, 2, 3]),
        OxmField::basic(29, &[135]),
        OxmField::basic(31, &[0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]),
        OxmField::basic(32, &[2, 0, 0, 0, 0, 9]),
    ];
    let set = [Action::SetField(SetField { field: OxmField::basic(28, &[0, 0, 0, 5]) })];
    let apply = [Instruction::ApplyActions(ActionList { actions: (&set).into() })];
    messages.add(
        Message::FlowMod(FlowMod {
            priority: 6,
            match_fields: Match::Fields(OxmFields((&list).into())),
            instructions: (&apply).into(),
            ..Default::default()
        }),
        &[
            "OFPT_FLOW_MOD",
            "icmp6,metadata=0x7/0xff,in_port=3,dl_vlan=9,dl_vlan_pcp=5,dl_dst=02:03:00:00:00:00/ff:ff:00:00:00:00",
            "ipv6_src=fe80::1,ipv6_label=0x10203,nw_tos=40,nw_ecn=2",
            "icmp_type=135",
            "nd_target=fe80::2,nd_sll=02:00:00:00:00:09",
            "set_field:0x5->ipv6_label",
        ],
    );
}

#[test]
fn what_is_decoded_is_encoded_byte_by_byte() {
    for version in Version::ALL {
        for (bytes, _) in complete(version) {
            let frame = beehive_of::Frame::whole(&bytes).unwrap();
            let message = Message::parse_strict(frame).unwrap_or_else(|error| panic!("{error:?}"));
            message.check_meaning(version).unwrap();
            assert!(!matches!(message, Message::Unknown { .. }));
            let mut out = BytesMut::new();
            message.encode_into(version, 0x2a, &mut out).unwrap();
            assert_eq!(&out[..], &bytes[..], "{}", message.display(frame.header()));
        }
    }
}

#[test]
fn every_kind_of_message_is_here_or_without_a_version() {
    let mut all: Vec<Vec<u8>> = Vec::new();
    for version in Version::ALL {
        all.extend(complete(version).into_iter().map(|(bytes, _)| bytes));
        all.extend(crate::corpus::ours(version).into_iter().map(|(_, bytes)| bytes));
    }

    let present = |version: Version, message_type: u16, kind: Option<u16>| {
        let body = 8;
        all.iter().any(|bytes| {
            (bytes[0], u16::from(bytes[1])) == (version.wire(), message_type)
                && kind.is_none_or(|kind| bytes[body..body + 2] == kind.to_be_bytes())
        })
    };

    for version in Version::ALL {
        for name in Message::NAMES {
            let Some(number) = Message::number(name, version) else { continue };
            assert!(present(version, number, None), "no sample of {name} in {version}");
        }
        for (message, kinds) in [("multipart_request", 0), ("multipart_reply", 1)] {
            let number = Message::number(message, version).unwrap();
            let names = if kinds == 0 { RequestBody::NAMES } else { ReplyBody::NAMES };
            for name in names {
                let kind = if kinds == 0 {
                    RequestBody::number(name, version)
                } else {
                    ReplyBody::number(name, version)
                };
                // An experimenter body is arbitrary, and a flow statistics request has the same format as a
                // flow request.
                let Some(kind) = kind.filter(|kind| *kind != 0xffff && *kind != 17) else { continue };
                assert!(present(version, number, Some(kind)), "no sample of {message} {name} in {version}");
            }
        }
    }
}
