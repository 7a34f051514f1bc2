//! Checks that the switch answers every kind of request with the matching reply.

use beehive_of::message::*;
use beehive_of::{Frame, PortNo, Version};

use super::connection::{Connection, NICIRA, refusal};
use super::switch::Switch;

/// Requests that Open vSwitch 3.1 refuses, each with the possible errors.
const UNANSWERED: &[(&str, &[&str])] = &[
    // The switch does not support these statistics.
    ("flow_statistics", &["bad_request bad_multipart"]),
    ("controller_status", &["bad_request bad_multipart"]),
    ("bundle_features", &["bad_request bad_multipart"]),
    // No IPFIX exporter is configured.
    ("ipfix_bridge", NICIRA),
    ("ipfix_flow", NICIRA),
];

/// Returns all statistics or multipart requests of a version, each with its name.
fn questions(version: Version) -> Vec<(&'static str, RequestBody<'static>)> {
    use RequestBody as Q;
    let nicira = |request| Q::Experimenter(Extended::Nicira(request));
    let any_port = PortRequest { port_no: PortNo::ANY };
    let all: Vec<(std::ops::RangeInclusive<u8>, &str, RequestBody<'static>)> = vec![
        (0..=5, "description", Q::Description(Empty {})),
        (0..=5, "flow", Q::Flow(FlowRequest::default())),
        (0..=5, "aggregate", Q::Aggregate(FlowRequest::default())),
        (0..=5, "table", Q::Table(Empty {})),
        (0..=5, "port", Q::Port(any_port)),
        (0..=5, "queue", Q::Queue(QueueRequest::default())),
        (1..=5, "group", Q::Group(GroupRequest::default())),
        (1..=5, "group_description", Q::GroupDescription(GroupDescriptionRequest::default())),
        (2..=5, "group_features", Q::GroupFeatures(Empty {})),
        (3..=5, "meter", Q::Meter(MeterRequest::default())),
        (3..=5, "meter_config", Q::MeterConfig(MeterRequest::default())),
        (3..=5, "meter_features", Q::MeterFeatures(Empty {})),
        (3..=5, "table_features", Q::TableFeatures(TableFeaturesList::default())),
        (3..=5, "port_description", Q::PortDescription(PortDescriptionRequest::default())),
        (4..=5, "table_description", Q::TableDescription(Empty {})),
        (4..=5, "queue_description", Q::QueueDescription(QueueRequest::default())),
        (5..=5, "flow_statistics", Q::FlowStatistics(FlowRequest::default())),
        (5..=5, "controller_status", Q::ControllerStatus(Empty {})),
        (5..=5, "bundle_features", Q::BundleFeatures(BundleFeaturesRequest::default())),
        (0..=0, "flow", nicira(NiciraRequest::Flow(NiciraFlowRequest::default()))),
        (0..=0, "aggregate", nicira(NiciraRequest::Aggregate(NiciraFlowRequest::default()))),
        (0..=5, "ipfix_bridge", nicira(NiciraRequest::IpfixBridge(Empty {}))),
        (0..=5, "ipfix_flow", nicira(NiciraRequest::IpfixFlow(Empty {}))),
    ];

    all.into_iter()
        .filter(|(versions, ..)| versions.contains(&version.minor()))
        .map(|(_, name, body)| (name, body))
        .collect()
}

/// Returns the name of the reply's type. Returns `None` if the reply is empty.
fn told(reply: &[u8]) -> Option<&'static str> {
    use ReplyBody as R;
    let Ok(Message::MultipartReply(reply)) = Message::parse(Frame::whole(reply).unwrap()) else {
        return None;
    };

    Some(match reply.body {
        R::Description(_) => "description",
        R::Flow(list) if !list.flows.is_empty() => "flow",
        R::Aggregate(_) => "aggregate",
        R::Table(list) if !list.tables.is_empty() => "table",
        R::Port(list) if !list.ports.is_empty() => "port",
        R::Queue(list) if !list.queues.is_empty() => "queue",
        R::Group(list) if !list.groups.is_empty() => "group",
        R::GroupDescription(list) if !list.groups.is_empty() => "group_description",
        R::GroupFeatures(_) => "group_features",
        R::Meter(list) if !list.meters.is_empty() => "meter",
        R::MeterConfig(list) if !list.meters.is_empty() => "meter_config",
        R::MeterFeatures(_) => "meter_features",
        R::TableFeatures(list) if !list.tables.is_empty() => "table_features",
        R::PortDescription(list) if !list.ports.is_empty() => "port_description",
        R::TableDescription(list) if !list.tables.is_empty() => "table_description",
        R::QueueDescription(list) if !list.queues.is_empty() => "queue_description",
        R::Experimenter(Extended::Nicira(NiciraReply::Flow(list))) if !list.flows.is_empty() => "flow",
        R::Experimenter(Extended::Nicira(NiciraReply::Aggregate(_))) => "aggregate",
        _ => return None,
    })
}

/// Creates the objects that the switch will report: a flow, a group of two buckets and a meter.
fn furnish(connection: &mut Connection, version: Version) {
    let flow = beehive_of::text::Flow::parse("tcp,tp_dst=80,actions=output:2", version).unwrap();
    connection.succeed(&flow.message());
    if version >= Version::V1_1 {
        let output = [Action::Output(Output { port: PortNo(2), ..Default::default() })];
        let weight = [BucketProperty::Weight(Weight { weight: 3 })];
        let bucket = |number: u32| match version {
            Version::V1_5 => Bucket {
                bucket_id: BucketId(number),
                actions: (&output).into(),
                properties: (&weight).into(),
                ..Default::default()
            },
            _ => Bucket { weight: 3, actions: (&output).into(), ..Default::default() },
        };
        let buckets = [bucket(1), bucket(2)];
        let mut group = GroupMod {
            command: GroupCommand::DELETE,
            group_type: GroupType::SELECT,
            group_id: GroupId(9),
            ..Default::default()
        };
        connection.succeed(&Message::GroupMod(group));
        (group.command, group.buckets) = (GroupCommand::ADD, (&buckets).into());
        connection.succeed(&Message::GroupMod(group));
    }

    if version >= Version::V1_3 {
        let bands = [Band::Drop(DropBand { rate: 1000, burst_size: 50 })];
        let meter_id = MeterId(9);
        let delete = MeterMod { command: MeterCommand::DELETE, meter_id, ..Default::default() };
        connection.succeed(&Message::MeterMod(delete));
        let flags = MeterFlags::KBPS.with(MeterFlags::BURST).with(MeterFlags::STATS);
        let add = MeterMod { command: MeterCommand::ADD, flags, meter_id, bands: (&bands).into() };
        connection.succeed(&Message::MeterMod(add));
    }
}

#[test]
fn every_question_has_its_answer() {
    let Some(switch) = Switch::start() else { return };
    let mut wrong = String::new();
    for version in Version::ALL {
        let mut connection = Connection::open(&switch, version);
        furnish(&mut connection, version);
        for (name, body) in questions(version) {
            let request = Multipart { flags: MultipartFlags::default(), body };
            let answers = connection.ask(&Message::MultipartRequest(request));
            let errors: Vec<String> = answers.iter().filter_map(|answer| refusal(answer)).collect();
            let expected = UNANSWERED.iter().find(|(unanswered, _)| *unanswered == name);
            let fine = match (expected, &errors[..]) {
                (None, []) => answers.iter().any(|answer| told(answer) == Some(name)),
                (Some((_, words)), [error]) => words.iter().any(|word| error.starts_with(word)),
                _ => false,
            };

            if !fine {
                let count = answers.len();
                wrong += &format!("{version} {name}: {count} answers, refused {errors:?}\n");
            }
        }
    }

    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Sends a request and checks that `is` returns true for a reply.
fn replied(connection: &mut Connection, request: Message<'_>, is: &dyn Fn(&Message<'_>) -> bool) {
    let answers = connection.succeed(&request);
    let found = answers.iter().any(|answer| is(&Message::parse(Frame::whole(answer).unwrap()).unwrap()));
    assert!(found, "{request:?}: {answers:x?}");
}

/// Covers the requests other than multipart requests.
#[test]
fn every_request_has_its_reply() {
    let Some(switch) = Switch::start() else { return };
    for version in Version::ALL {
        let mut connection = Connection::open(&switch, version);
        let mut reply = |request: Message<'_>, is: &dyn Fn(&Message<'_>) -> bool| {
            replied(&mut connection, request, is);
        };
        reply(Message::FeaturesRequest(Empty {}), &|reply| {
            matches!(reply, Message::FeaturesReply(features)
                if features.n_tables > 0 && (version >= Version::V1_3 || features.ports.iter().count() == 3))
        });
        reply(Message::GetConfigRequest(Empty {}), &|reply| matches!(reply, Message::GetConfigReply(_)));
        reply(
            Message::EchoRequest(Echo { data: b"are you there" }),
            &|reply| matches!(reply, Message::EchoReply(echo) if echo.data == b"are you there"),
        );
        if version <= Version::V1_3 {
            let port = if version <= Version::V1_2 { PortNo(1) } else { PortNo::ANY };
            reply(Message::QueueConfigRequest(QueueConfigRequest { port }), &|reply| {
                matches!(reply, Message::QueueConfigReply(_))
            });
        }
        let role = match version {
            Version::V1_0 | Version::V1_1 => {
                Message::Experimenter(Extended::Nicira(NiciraMessage::RoleRequest(NiciraRoleMessage {
                    role: NiciraRole::MASTER,
                })))
            }
            _ => Message::RoleRequest(RoleMessage {
                role: ControllerRole::MASTER,
                generation_id: u64::from(version.minor()),
                ..Default::default()
            }),
        };
        reply(role, &|reply| match reply {
            Message::RoleReply(reply) => reply.role == ControllerRole::MASTER,
            Message::Experimenter(Extended::Nicira(NiciraMessage::RoleReply(reply))) => {
                reply.role == NiciraRole::MASTER
            }
            _ => false,
        });
        if version >= Version::V1_3 {
            reply(Message::GetAsyncRequest(Empty {}), &|reply| matches!(reply, Message::GetAsyncReply(_)));
        }
        let maps = [TlvMap { option_class: 0xffff, option_type: version.wire(), option_len: 8, index: 2 }];
        let nicira = |message| Message::Experimenter(Extended::Nicira(message));
        for command in [TlvTableCommand::CLEAR, TlvTableCommand::ADD] {
            let maps = if command == TlvTableCommand::ADD { (&maps).into() } else { Default::default() };
            let change = nicira(NiciraMessage::TlvTableMod(TlvTableMod { command, maps }));
            connection.succeed(&change);
        }
        let mut reply = |request: Message<'_>, is: &dyn Fn(&Message<'_>) -> bool| {
            replied(&mut connection, request, is);
        };
        reply(nicira(NiciraMessage::TlvTableRequest(Empty {})), &|reply| {
            let Message::Experimenter(Extended::Nicira(NiciraMessage::TlvTableReply(table))) = reply else {
                return false;
            };
            table.maps.iter().any(|map| map == Ok(maps[0]))
        });
    }
}
