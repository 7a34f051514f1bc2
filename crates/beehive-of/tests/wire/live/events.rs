//! Checks asynchronous messages: packets in every format, removed and changed flows, port changes, role
//! changes, and requests of other controllers.

use beehive_of::message::*;
use beehive_of::text::Flow;
use beehive_of::{Frame, PortNo, Version};
use bytes::BytesMut;

use super::connection::Connection;
use super::switch::Switch;

/// An Ethernet frame of an experimental type.
const PACKET: [u8; 60] = {
    let mut packet = [0xab; 60];
    packet[12] = 0x88;
    packet[13] = 0xb5;
    packet
};

fn nicira(message: NiciraMessage<'_>) -> Message<'_> {
    Message::Experimenter(Extended::Nicira(message))
}

/// Returns whether `is` returns true for one of these messages.
fn any_is(messages: &[Vec<u8>], is: impl Fn(&Message<'_>) -> bool) -> bool {
    messages.iter().any(|message| is(&Message::parse(Frame::whole(message).unwrap()).unwrap()))
}

/// Opens a connection that receives all asynchronous messages, like an ordinary controller.
fn listening(switch: &Switch, version: Version) -> Connection {
    let mut connection = Connection::open(switch, version);
    let config = SwitchConfig { miss_send_len: PacketLength::NO_BUFFER, ..Default::default() };
    connection.succeed(&Message::SetConfig(config));
    connection.succeed(&Flow::parse_deletion("", version, false).unwrap().message());
    connection
}

/// Sends the packet through the flow tables, as if port 1 had received it.
fn inject(connection: &mut Connection, version: Version) -> Vec<Vec<u8>> {
    let in_port = beehive_of::any::Match { in_port: Some(PortNo(1)), ..beehive_of::any::Match::ANY };
    let table = [Action::Output(Output { port: PortNo::TABLE, ..Default::default() })];
    let mut packet = PacketOut { actions: (&table).into(), data: &PACKET, ..Default::default() };
    match version {
        Version::V1_5 => packet.match_fields = Match::Any(&in_port),
        _ => packet.in_port = PortNo(1),
    }
    connection.succeed(&Message::PacketOut(packet))
}

#[test]
fn packets_come_in_every_format() {
    let Some(switch) = Switch::start() else { return };
    for version in Version::ALL {
        let mut connection = listening(&switch, version);
        let flow = "cookie=0x1234,actions=controller(max_len=40)";
        connection.succeed(&Flow::parse(flow, version).unwrap().message());
        for format in [PacketInFormat::STANDARD, PacketInFormat::NICIRA, PacketInFormat::NICIRA2] {
            let set = NiciraMessage::SetPacketInFormat(SetPacketInFormat { format });
            connection.succeed(&nicira(set));
            let came = inject(&mut connection, version);
            connection.wait_for(&came, |message| match (format, message) {
                (PacketInFormat::STANDARD, Message::PacketIn(packet)) => {
                    let port = match version {
                        Version::V1_0 | Version::V1_1 => packet.in_port,
                        _ => packet.match_fields.generalize().unwrap().in_port.unwrap(),
                    };
                    let cookie = if version < Version::V1_3 { 0 } else { 0x1234 };
                    port == PortNo(1) && packet.total_len == 60 && packet.cookie == cookie
                }
                (
                    PacketInFormat::NICIRA,
                    Message::Experimenter(Extended::Nicira(NiciraMessage::PacketIn(packet))),
                ) => packet.cookie == 0x1234 && packet.total_len == 60,
                (
                    PacketInFormat::NICIRA2,
                    Message::Experimenter(Extended::Nicira(NiciraMessage::PacketIn2(packet))),
                ) => packet.properties.iter().any(|property| {
                    property == Ok(PacketProperty::Cookie(CookieProperty { cookie: 0x1234 }))
                }),
                _ => false,
            });
        }
        // The packet is paused until the controller resumes it. It then goes to port 2, which counts it.
        let flow = "priority=40000,actions=controller(userdata=01.02.03,pause),output:2";
        connection.succeed(&Flow::parse(flow, version).unwrap().message());
        let before = sent(&mut connection);
        let came = inject(&mut connection, version);
        let packet = connection.wait_for(&came, |message| {
            let user = PacketProperty::UserData(PropertyBytes { data: &[1, 2, 3] });
            matches!(message, Message::Experimenter(Extended::Nicira(NiciraMessage::PacketIn2(packet)))
                if packet.properties.iter().any(|property| property == Ok(user)))
        });
        let Ok(Message::Experimenter(Extended::Nicira(NiciraMessage::PacketIn2(packet)))) =
            Message::parse(Frame::whole(&packet).unwrap())
        else {
            unreachable!("the predicate accepts nothing else")
        };
        assert_eq!(sent(&mut connection), before, "{version}: the packet was not paused");
        connection.succeed(&nicira(NiciraMessage::Resume(packet)));
        assert_eq!(sent(&mut connection), before + 1, "{version}: the packet was not resumed");
    }
}

/// Returns the number of packets that port 2 has sent.
fn sent(connection: &mut Connection) -> u64 {
    let body = RequestBody::Port(PortRequest { port_no: PortNo(2) });
    let request = Multipart { flags: MultipartFlags::default(), body };
    let answers = connection.succeed(&Message::MultipartRequest(request));
    for answer in &answers {
        if let Ok(Message::MultipartReply(reply)) = Message::parse(Frame::whole(answer).unwrap())
            && let ReplyBody::Port(list) = reply.body
        {
            return list.ports.iter().map(|port| port.unwrap().tx_packets).sum();
        }
    }

    panic!("no statistics of port 2");
}

#[test]
fn flows_that_are_gone_and_ports_that_change_are_told() {
    let Some(switch) = Switch::start() else { return };
    for version in Version::ALL {
        let mut connection = listening(&switch, version);
        // 1.0 supports its own format and the two formats of Nicira.
        for format in if version == Version::V1_0 { 0..=2u32 } else { 0..=0 } {
            if format == 1 {
                continue;
            }
            if version == Version::V1_0 {
                connection.succeed(&nicira(NiciraMessage::SetFlowFormat(FlowFormat { format })));
            }

            let flow = "cookie=0x77,idle_timeout=90,send_flow_rem,tcp,tp_dst=80,actions=output:2";
            connection.succeed(&Flow::parse(flow, version).unwrap().message());
            let delete = Flow::parse_deletion("tcp,tp_dst=80", version, false).unwrap();
            let gone = connection.succeed(&delete.message());
            connection.wait_for(&gone, |message| match message {
                Message::FlowRemoved(flow) if format == 0 => {
                    (flow.cookie, flow.idle_timeout, flow.reason) == (0x77, 90, FlowRemovedReason::DELETE)
                }
                Message::Experimenter(Extended::Nicira(NiciraMessage::FlowRemoved(flow))) if format == 2 => {
                    (flow.cookie, flow.idle_timeout, flow.reason) == (0x77, 90, FlowRemovedReason::DELETE)
                }
                _ => false,
            });
        }
        for (state, down) in [("down", true), ("up", false)] {
            switch.appctl(&["netdev-dummy/set-admin-state", "p1", state]);
            connection.wait_for(&[], |message| {
                let Message::PortStatus(status) = message else { return false };
                status.port.port_no == PortNo(1) && status.port.config.contains(PortConfig::PORT_DOWN) == down
            });
        }
    }
}

/// Returns the events of the flow updates in messages.
fn changes(messages: &[Vec<u8>]) -> Vec<String> {
    let mut events = Vec::new();
    for message in messages {
        let Ok(Message::MultipartReply(reply)) = Message::parse(Frame::whole(message).unwrap()) else {
            continue;
        };
        match reply.body {
            ReplyBody::FlowMonitor(list) => {
                events.extend(list.updates.iter().map(|update| format!("{:?}", update.unwrap().event)));
            }
            ReplyBody::Experimenter(Extended::Nicira(NiciraReply::FlowMonitor(list))) => {
                events.extend(list.updates.iter().map(|update| format!("{:?}", update.unwrap().event)));
            }
            ReplyBody::Experimenter(Extended::Onf(OnfReply::FlowMonitor(list))) => {
                events.extend(list.updates.iter().map(|update| format!("{:?}", update.unwrap().event)));
            }
            _ => {}
        }
    }

    events
}

#[test]
fn changes_of_flows_are_told_to_who_monitors_them() {
    let Some(switch) = Switch::start() else { return };
    for version in Version::ALL {
        let mut connection = listening(&switch, version);
        connection.succeed(&Flow::parse("tcp,tp_dst=80,actions=output:2", version).unwrap().message());
        use FlowMonitorFlags as F;
        let flags = F::INITIAL.with(F::ADD).with(F::REMOVED).with(F::MODIFY).with(F::INSTRUCTIONS);
        let old = [NiciraMonitorRequest { monitor_id: 7, flags, ..Default::default() }];
        let onf = [OnfMonitorRequest { monitor_id: 7, flags, match_len: 4, ..Default::default() }];
        let standard = [FlowMonitorRequest { monitor_id: 7, flags, ..Default::default() }];
        let body = match version {
            Version::V1_3 => RequestBody::Experimenter(Extended::Onf(OnfRequest::FlowMonitor(OnfMonitors {
                monitors: (&onf).into(),
            }))),
            Version::V1_4 | Version::V1_5 => {
                RequestBody::FlowMonitor(FlowMonitors { monitors: (&standard).into() })
            }
            _ => RequestBody::Experimenter(Extended::Nicira(NiciraRequest::FlowMonitor(NiciraMonitors {
                monitors: (&old).into(),
            }))),
        };
        let request = Multipart { flags: MultipartFlags::default(), body };
        let first = changes(&connection.succeed(&Message::MultipartRequest(request)));
        assert_eq!(first.len(), 1, "{version}: {first:?}");
        // An update about a change by the same controller contains the transaction identifier only. An update
        // about a change by another controller contains the whole flow.
        let own =
            connection.succeed(&Flow::parse("tcp,tp_dst=81,actions=output:2", version).unwrap().message());
        assert_eq!(changes(&own).len(), 1, "{version}: {own:x?}");
        let mut other = Connection::open(&switch, version);
        other.succeed(&Flow::parse("tcp,tp_dst=82,actions=output:2", version).unwrap().message());
        other.succeed(&Flow::parse_deletion("tcp", version, false).unwrap().message());
        let others = changes(&connection.settle());
        assert_eq!(others.len(), 4, "{version}: {others:?}");
    }
}

#[test]
fn what_is_bundled_is_done_at_once() {
    let Some(switch) = Switch::start() else { return };
    for version in [Version::V1_3, Version::V1_4, Version::V1_5] {
        let mut connection = listening(&switch, version);
        let onf = version == Version::V1_3;
        let flags = BundleFlags::ATOMIC.with(BundleFlags::ORDERED);
        let control = |connection: &mut Connection, control_type: BundleControlType| {
            let control = BundleControl { bundle_id: 5, control_type, flags, ..Default::default() };
            let message = match onf {
                true => Message::Experimenter(Extended::Onf(OnfMessage::BundleControl(control))),
                false => Message::BundleControl(control),
            };
            let answers = connection.succeed(&message);
            let expected = BundleControlType(control_type.0 + 1);
            let right = any_is(&answers, |message| match message {
                Message::BundleControl(reply) => !onf && reply.control_type == expected,
                Message::Experimenter(Extended::Onf(OnfMessage::BundleControl(reply))) => {
                    onf && reply.control_type == expected
                }
                _ => false,
            });

            assert!(right, "{version}: {answers:x?}");
        };

        control(&mut connection, BundleControlType::OPEN_REQUEST);
        for port in [80, 81] {
            let text = format!("tcp,tp_dst={port},actions=output:2");
            let flow = Flow::parse(&text, version).unwrap();

            // An embedded message must have the transaction identifier of the outer message.
            let mut bytes = BytesMut::new();
            flow.message().encode_into(version, connection.next_xid(), &mut bytes).unwrap();
            let message = InnerMessage { bytes: &bytes, padded: false };
            let add = BundleAdd { bundle_id: 5, flags, message, ..Default::default() };
            connection.succeed(&match onf {
                true => Message::Experimenter(Extended::Onf(OnfMessage::BundleAdd(add))),
                false => Message::BundleAdd(add),
            });
        }

        let flows = |connection: &mut Connection| -> usize {
            let body = RequestBody::Flow(FlowRequest::default());
            let request = Multipart { flags: MultipartFlags::default(), body };
            let answers = connection.succeed(&Message::MultipartRequest(request));
            answers
                .iter()
                .map(|answer| match Message::parse(Frame::whole(answer).unwrap()) {
                    Ok(Message::MultipartReply(Multipart { body: ReplyBody::Flow(list), .. })) => {
                        list.flows.iter().count()
                    }
                    _ => 0,
                })
                .sum()
        };

        assert_eq!(flows(&mut connection), 0);
        control(&mut connection, BundleControlType::COMMIT_REQUEST);
        assert_eq!(flows(&mut connection), 2);
    }
}

#[test]
fn roles_and_requests_of_other_controllers_are_told() {
    let Some(switch) = Switch::start() else { return };
    for version in Version::ALL {
        let mut connection = listening(&switch, version);
        let mut other = Connection::open(&switch, version);
        // Subscribe to role changes and forwarded requests with the message of 1.4 or, before 1.4, with
        // Nicira's equivalent.
        let masks = |mask| {
            let mask = Mask { mask };
            [
                AsyncProperty::RoleStatusMaster(mask),
                AsyncProperty::RoleStatusSlave(mask),
                AsyncProperty::RequestForwardMaster(mask),
                AsyncProperty::RequestForwardSlave(mask),
            ]
        };
        let properties = masks(3);
        let forwarded = [properties[2], properties[3]];
        if version >= Version::V1_4 {
            let properties = (&properties).into();
            connection.succeed(&Message::SetAsync(AsyncConfig { properties, ..Default::default() }));
        } else {
            let properties = (&forwarded).into();
            connection.succeed(&nicira(NiciraMessage::SetAsyncConfig2(AsyncProperties { properties })));
        }
        if version >= Version::V1_1 {
            let group_id = GroupId(0x100 + u32::from(version.minor()));
            let add = GroupMod { command: GroupCommand::ADD, group_id, ..Default::default() };
            other.succeed(&Message::GroupMod(add));
            let told = connection.settle();
            connection.wait_for(&told, |message| {
                let request = match message {
                    Message::RequestForward(forward) => forward.request,
                    Message::Experimenter(Extended::Onf(OnfMessage::RequestForward(forward))) => {
                        forward.request
                    }
                    Message::Experimenter(Extended::Nicira(NiciraMessage::RequestForward(forward))) => {
                        forward.request
                    }
                    _ => return false,
                };
                let request = Message::parse(request.frame().unwrap()).unwrap();
                matches!(request, Message::GroupMod(group) if group.group_id == group_id)
            });
        }
        if version >= Version::V1_3 {
            let master = |generation_id| {
                Message::RoleRequest(RoleMessage {
                    role: ControllerRole::MASTER,
                    generation_id,
                    ..Default::default()
                })
            };
            let generation = 10 * u64::from(version.minor());
            connection.succeed(&master(generation));
            other.succeed(&master(generation + 1));
            let told = connection.settle();
            connection.wait_for(&told, |message| match message {
                Message::RoleStatus(status) => status.role == ControllerRole::SLAVE,
                Message::Experimenter(Extended::Onf(OnfMessage::RoleStatus(status))) => {
                    status.role == ControllerRole::SLAVE
                }
                _ => false,
            });
        }
    }
}
