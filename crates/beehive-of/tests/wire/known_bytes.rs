//! Checks each field of decoded messages of real switches, and each byte of encoded messages.

use std::net::Ipv4Addr;
use std::time::Duration;

use beehive_of::any::*;
use beehive_of::{Frame, MacAddress, Masked, PortNo, Version, VersionSet, message};
use bytes::BytesMut;

use crate::corpus::{bytes, hex, learned, open_vswitch};

/// Returns the messages of one type that a switch sent in one version.
fn sent(version: &str, message_type: u8) -> Vec<Vec<u8>> {
    let messages: Vec<Vec<u8>> = open_vswitch()
        .into_iter()
        .filter(|(from, bytes)| from.ends_with(version) && bytes[1] == message_type)
        .map(|(_, bytes)| bytes)
        .collect();
    assert!(!messages.is_empty(), "no message of type {message_type}");
    messages
}

fn parse(bytes: &[u8]) -> Message<'_> {
    Message::parse(Frame::whole(bytes).unwrap()).unwrap()
}

/// Returns the match of the flow that was installed in both switches, as the switches report it.
fn web() -> Match {
    Match {
        in_port: Some(PortNo(3)),
        eth_type: Some(0x0800),
        vlan: Some(VlanMatch::Id(10)),
        ip_protocol: Some(6),
        ipv4_src: Some(Masked::<Ipv4Addr>::network([10, 0, 0, 0].into(), 8)),
        transport_dst: Some(80),
        ..Match::ANY
    }
}

#[test]
fn hello_and_negotiation_as_real_switches_do_it() {
    // The hello of a switch, its bitmap, and the negotiated version.
    for (digits, versions, negotiated) in [
        ("0600000800000001", None, Some(Version::V1_5)),
        ("06000010000000010001000800000040", Some(0x40), Some(Version::V1_5)),
        ("06000010000000010001000800000050", Some(0x50), Some(Version::V1_5)),
        ("0100000800000001", None, Some(Version::V1_0)),
        ("04000010000000010001000800000010", Some(0x10), Some(Version::V1_3)),
        ("04000010000000010001000800000012", Some(0x12), Some(Version::V1_3)),
        ("0200000800000001", None, Some(Version::V1_1)),
    ] {
        let message = bytes(digits);
        let Message::Hello(hello) = parse(&message) else { panic!("no hello") };
        assert_eq!(hello.versions, versions.map(VersionSet::from_bits));
        let ours = VersionSet::SUPPORTED;
        // Without a bitmap, the result is the lower header version: 6 for 6 and 6, 2 for 2 and 6.
        assert_eq!(hello.negotiate(ours), negotiated, "{digits}");
    }

    let mut out = BytesMut::new();
    Hello::new(VersionSet::SUPPORTED).encode_into(1, &mut out).unwrap();
    assert_eq!(hex(&out), "0600001000000001000100080000007e");
    out.clear();
    Hello::new(VersionSet::only(Version::V1_0)).encode_into(1, &mut out).unwrap();
    assert_eq!(hex(&out), "0100000800000001");

    // An element of another type precedes the bitmap and is padded to 8 bytes.
    let message = bytes("0400001c00000001 00070006aabb0000 0001000800000012 00090004");
    let Message::Hello(hello) = parse(&message) else { panic!("no hello") };
    assert_eq!(hello.versions, Some(VersionSet::from_bits(0x12)));
}

#[test]
fn packet_in() {
    for (name, version) in [("OpenFlow10", Version::V1_0), ("OpenFlow13", Version::V1_3)] {
        let message = sent(name, 10).remove(0);
        let Message::PacketIn(packet) = parse(&message) else { panic!("no packet-in") };
        assert_eq!(
            PacketIn { data: &[], ..packet },
            PacketIn {
                buffer_id: None,
                total_len: 60,
                in_port: PortNo(3),
                // 1.3 distinguishes the table-miss flow from other flows; 1.0 does not.
                reason: if version == Version::V1_0 {
                    PacketInReason::Action
                } else {
                    PacketInReason::NoMatch
                },
                table_id: 0,
                cookie: if version == Version::V1_0 { None } else { Some(0) },
                data: &[],
            }
        );
        assert!(packet.is_whole());
        assert_eq!(hex(&packet.data[..14]), "0200000000020200000000010800");

        let mut out = BytesMut::new();
        packet.encode_into(version, 0, &mut out).unwrap();
        assert_eq!(hex(&out), hex(&message));
        assert_eq!(PacketIn::parse(version, Frame::whole(&message).unwrap()), Ok(packet));
    }
}

#[test]
fn features_ports_and_configuration() {
    let message = sent("OpenFlow10", 6).remove(0);
    let Message::FeaturesReply(features) = parse(&message) else { panic!("no features reply") };
    assert_eq!((features.datapath_id, features.tables, features.actions), (1, 254, 0xfff));

    let ports: Vec<Port> = features.ports.iter().map(Result::unwrap).collect();
    assert_eq!(ports[0].number, PortNo::LOCAL);
    assert_eq!((ports[1].number, ports[1].name), (PortNo(3), PortName::from("p1")));

    let message = sent("OpenFlow13", 6).remove(0);
    let Message::FeaturesReply(features) = parse(&message) else { panic!("no features reply") };
    assert_eq!((features.datapath_id, features.tables, features.auxiliary_id), (4, 254, 0));
    assert!(features.ports.is_empty());

    let message = sent("OpenFlow13", 19).into_iter().find(|message| message[9] == 13).unwrap();
    let Message::PortDescriptionReply(description) = parse(&message) else { panic!("no port description") };
    let ports: Vec<Port> = description.ports.iter().map(Result::unwrap).collect();
    assert_eq!(ports.len(), 2);
    assert_eq!((ports[0].number, ports[0].name), (PortNo::LOCAL, PortName::from("br4")));
    assert_eq!(ports[1].address, MacAddress([0xaa, 0x55, 0xaa, 0x55, 0, 0x10]));
    assert!(ports[1].is_up() && !description.more);

    for name in ["OpenFlow10", "OpenFlow13"] {
        let message = sent(name, 8).remove(0);
        assert_eq!(parse(&message), Message::GetConfigReply(SwitchConfig { flags: 0, miss_send_len: 128 }));
    }
}

#[test]
fn port_status() {
    for name in ["OpenFlow10", "OpenFlow13"] {
        let states: Vec<(PortReason, PortNo, bool, u32)> = sent(name, 12)
            .iter()
            .map(|message| {
                let Message::PortStatus(status) = parse(message) else { panic!("no port-status") };
                (status.reason, status.port.number, status.port.is_up(), status.port.state.0)
            })
            .collect();
        assert_eq!(
            states,
            [(PortReason::Modify, PortNo(3), false, 0), (PortReason::Modify, PortNo(3), false, 1)]
        );
    }
}

#[test]
fn flow_removed() {
    for (name, version) in [("OpenFlow10", Version::V1_0), ("OpenFlow13", Version::V1_3)] {
        let message = sent(name, 11).remove(0);
        let Message::FlowRemoved(flow) = parse(&message) else { panic!("no flow-removed") };
        assert_eq!(flow.match_fields, web());
        assert_eq!((flow.cookie, flow.priority, flow.reason), (0x1234, 100, FlowRemovedReason::Delete));
        assert_eq!(
            (flow.idle_timeout, flow.hard_timeout),
            (60, if version == Version::V1_0 { 0 } else { 600 })
        );
        assert!(flow.duration > Duration::from_millis(100) && flow.duration < Duration::from_secs(5));
        if version == Version::V1_0 {
            let mut out = BytesMut::new();
            flow.encode_into(version, 0, &mut out).unwrap();
            // Open vSwitch also clears the address bits outside of the mask.
            assert_eq!(parse(&out), Message::FlowRemoved(flow));
        }
    }
}

#[test]
fn flow_statistics() {
    for (name, version, kind) in [("OpenFlow10", Version::V1_0, 17), ("OpenFlow13", Version::V1_3, 19)] {
        let message = sent(name, kind).into_iter().find(|message| message[9] == 1).unwrap();
        let Message::FlowStatisticsReply(statistics) = parse(&message) else { panic!("no flow statistics") };
        assert!(!statistics.more);

        let entries: Vec<FlowEntry<'_>> = statistics.entries.iter().map(Result::unwrap).collect();
        let entry = entries.iter().find(|entry| entry.cookie == 0x1234).unwrap();
        assert_eq!(entry.match_fields, web());
        assert_eq!((entry.priority, entry.idle_timeout, entry.hard_timeout), (100, 60, 600));

        let actions: Vec<Action> = entry.actions.iter().map(Result::unwrap).collect();
        let expected = [
            Action::PopVlan,
            Action::SetEthSrc(MacAddress([2, 0, 0, 0, 0, 9])),
            Action::Output { port: PortNo::LOCAL, max_len: 0 },
        ];
        assert_eq!(actions, expected, "{version}");

        let arp = entries.iter().find(|entry| entry.cookie == 0x77).unwrap();
        assert_eq!(
            arp.match_fields,
            Match {
                eth_type: Some(0x0806),
                arp_operation: Some(1),
                arp_target: Some(Ipv4Addr::new(10, 0, 0, 1).into()),
                ..Match::ANY
            }
        );

        let miss = entries.iter().find(|entry| entry.priority == 0).unwrap();
        assert_eq!((miss.match_fields, miss.packet_count), (Match::ANY, 1));

        let to_controller = Action::Output { port: PortNo::CONTROLLER, max_len: 0xffff };
        assert_eq!(miss.actions.iter().collect::<Vec<_>>(), [Ok(to_controller)]);
        if version == Version::V1_3 {
            let neighbor = entries.iter().find(|entry| entry.priority == 7).unwrap();
            assert_eq!(neighbor.match_fields.icmp_type, Some(135));
            assert_eq!((neighbor.goto_table, neighbor.other_instructions), (Some(1), 1));
        }
    }
}

#[test]
fn errors_and_roles() {
    let errors: Vec<(u16, u16)> = sent("OpenFlow13", 1)
        .iter()
        .map(|message| {
            let Message::Error(error) = parse(message) else { panic!("no error") };
            assert!(!error.data.is_empty());
            (error.error_type, error.code)
        })
        .collect();

    // A role request with an outdated generation, and a truncated flow-mod.
    assert_eq!(errors, [(11, 0), (1, 6)]);

    let message = sent("OpenFlow13", 25).remove(0);
    assert_eq!(parse(&message), Message::RoleReply(RoleMessage { role: Role::Master, generation_id: 7 }));
}

#[test]
fn a_learning_switch_in_bytes() {
    let mut out = BytesMut::new();
    let actions = [Action::output(PortNo(4))];
    let flow = FlowMod {
        idle_timeout: 60,
        cookie: 0x1234,
        flags: FlowFlags::SEND_FLOW_REMOVED,
        ..FlowMod::add(100, learned(), (&actions).into())
    };

    flow.encode_into(Version::V1_0, 7, &mut out).unwrap();
    assert_eq!(
        hex(&out),
        concat!(
            "010e005000000007", // header
            "003820f2",
            "0003",
            "020000000001",
            "020000000002",
            "0000",
            "00",
            "00",
            "0000", // match to dl_type
            "00",
            "00",
            "0000",
            "00000000",
            "00000000",
            "0000",
            "0000", // match to tp_dst
            "0000000000001234",
            "0000",
            "003c",
            "0000",
            "0064",
            "ffffffff",
            "ffff",
            "0001", // the rest
            "0000",
            "0008",
            "0004",
            "ffff" // output
        )
    );
    out.clear();
    flow.encode_into(Version::V1_3, 7, &mut out).unwrap();
    assert_eq!(
        hex(&out),
        concat!(
            "040e006800000007", // header
            "0000000000001234",
            "0000000000000000",
            "00",
            "00",
            "003c",
            "0000",
            "0064", // to priority
            "ffffffff",
            "ffffffff",
            "ffffffff",
            "0001",
            "0000", // to padding
            "0001",
            "0020", // match
            "80000004",
            "00000003",
            "80000606",
            "020000000002",
            "80000806",
            "020000000001", // its fields
            "0004",
            "0018",
            "00000000", // apply actions
            "0000",
            "0010",
            "00000004",
            "ffff",
            "000000000000" // output
        )
    );
    out.clear();
    let flood = [Action::output(PortNo::FLOOD)];
    let packet = PacketOut { buffer_id: None, in_port: PortNo(3), actions: (&flood).into(), data: b"frame" };
    packet.encode_into(Version::V1_0, 7, &mut out).unwrap();
    assert_eq!(hex(&out), "010d001d00000007ffffffff0003000800000008fffbffff6672616d65");
    out.clear();
    packet.encode_into(Version::V1_3, 7, &mut out).unwrap();
    assert_eq!(
        hex(&out),
        "040d002d00000007ffffffff00000003001000000000000000000010fffffffbffff0000000000006672616d65"
    );
}

#[test]
fn the_complete_message_tells_what_the_general_one_leaves_out() {
    // The field `tunnel_id` is before `in_port`, and an experimenter field is after it.
    let bytes = bytes(
        "040a003a00000001 ffffffff 0000 00 05 00000000000000ff 00010020 80004c08 0000000000000009 80000004 00000007 ffff0004 00002320 0000",
    );
    let frame = Frame::whole(&bytes).unwrap();
    let message::Message::PacketIn(packet) = message::Message::parse(frame).unwrap() else {
        panic!("no packet-in")
    };
    let fields: Vec<(u16, u8, u32, usize)> = packet
        .match_fields
        .fields()
        .0
        .iter()
        .map(Result::unwrap)
        .map(|field| (field.class, field.number, field.experimenter, field.value.len()))
        .collect();
    assert_eq!(fields, [(0x8000, 38, 0, 8), (0x8000, 0, 0, 4), (0xffff, 0, 0x2320, 0)]);
    assert_eq!((packet.table_id.0, packet.cookie), (5, 0xff));
    assert_eq!(PacketIn::parse(Version::V1_3, frame).unwrap().in_port, PortNo(7));
}
