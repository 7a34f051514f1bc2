//! Checks that encoding a value that the version cannot express fails with an error that names the field, and
//! leaves the buffer unchanged.

use beehive_of::any::*;
use beehive_of::{EncodeError, MacAddress, Masked, PortNo, Version};
use bytes::BytesMut;

use crate::corpus::{HOST_A, HOST_B};

fn refused(message: Message<'_>, version: Version) -> EncodeError {
    let mut out = BytesMut::from(&b"before"[..]);
    let error = message.encode_into(version, 1, &mut out).expect_err(&format!("{message:?}"));
    assert_eq!(&out[..], b"before", "a partial message is left");
    error
}

fn flow(match_fields: Match) -> Message<'static> {
    Message::FlowMod(FlowMod::add(1, match_fields, Actions::EMPTY))
}

#[test]
fn what_1_0_cannot_express() {
    let unsupported = |message, field| {
        assert_eq!(
            refused(message, Version::V1_0),
            EncodeError::Unsupported { version: Version::V1_0, field }
        );
    };
    let add = FlowMod::add(1, Match::ANY, Actions::EMPTY);
    let mask = MacAddress([0xff, 0, 0, 0, 0, 0]);
    let ipv6 = Some(std::net::Ipv6Addr::LOCALHOST.into());
    unsupported(Message::FlowMod(FlowMod { table_id: 1, ..add }), "a flow table other than 0");
    unsupported(Message::FlowMod(FlowMod { cookie_mask: 1, ..add }), "cookie_mask");
    unsupported(Message::FlowMod(FlowMod { out_group: Some(1), ..add }), "out_group");
    unsupported(Message::FlowMod(FlowMod { goto_table: Some(1), ..add }), "instructions");
    unsupported(Message::FlowMod(FlowMod { flags: FlowFlags::RESET_COUNTS, ..add }), "these flow-mod flags");
    unsupported(Message::FlowMod(FlowMod { out_port: PortNo(0xff00), ..add }), "out_port above 0xff00");
    unsupported(flow(Match { in_port: Some(PortNo(0x1_0000)), ..Match::ANY }), "in_port above 0xff00");
    unsupported(
        flow(Match { eth_src: Some(Masked { value: mask, mask }), ..Match::ANY }),
        "a mask of eth_src",
    );
    unsupported(flow(Match { vlan: Some(VlanMatch::Tagged), ..Match::ANY }), "a match on any VLAN tag");
    unsupported(
        flow(Match { ipv6_src: ipv6, eth_type: Some(0x86dd), ..Match::ANY }),
        "IPv6 addresses in a match",
    );
    unsupported(
        flow(Match { eth_type: Some(0x86dd), ip_protocol: Some(6), ..Match::ANY }),
        "ip_protocol of IPv6",
    );
    let scattered = Masked { value: [10, 0, 0, 0].into(), mask: [255, 0, 255, 0].into() };
    unsupported(
        flow(Match { eth_type: Some(0x0800), ipv4_src: Some(scattered), ..Match::ANY }),
        "an IPv4 mask that is not a prefix",
    );
    unsupported(
        Message::FlowMod(FlowMod { actions: (&[Action::PushVlan(0x8100)]).into(), ..add }),
        "the push-VLAN action",
    );
    unsupported(
        Message::FlowMod(FlowMod { actions: (&[Action::Group(1)]).into(), ..add }),
        "the group action",
    );
    unsupported(Message::RoleRequest(RoleMessage { role: Role::Equal, generation_id: 0 }), "role");
    unsupported(Message::PortDescriptionRequest, "port description request");
}

#[test]
fn what_1_3_cannot_express() {
    let ports = [Port::new(PortNo(1), HOST_A, PortName::from("one"))];
    let features = Features {
        datapath_id: 1,
        buffers: 0,
        tables: 1,
        auxiliary_id: 0,
        capabilities: Capabilities(0),
        actions: 0,
        ports: (&ports).into(),
    };
    let expected =
        EncodeError::Unsupported { version: Version::V1_3, field: "the ports of a features reply" };
    assert_eq!(refused(Message::FeaturesReply(features), Version::V1_3), expected);
    assert_eq!(expected.to_string(), "OpenFlow 1.3 cannot express the ports of a features reply");
}

#[test]
fn fields_that_lack_what_they_depend_on() {
    for version in Version::ALL {
        let network = Some(Masked::<std::net::Ipv4Addr>::network([10, 0, 0, 0].into(), 8));
        for (match_fields, field) in [
            (Match { ip_protocol: Some(6), ..Match::ANY }, "ip_protocol"),
            (Match { ip_dscp: Some(6), eth_type: Some(0x0806), ..Match::ANY }, "ip_dscp"),
            (Match { ipv4_src: network, ..Match::ANY }, "ipv4_src"),
            (Match { ipv4_dst: network, eth_type: Some(0x0806), ..Match::ANY }, "ipv4_dst"),
            (Match { arp_target: network, eth_type: Some(0x0800), ..Match::ANY }, "arp_target"),
            (Match { arp_operation: Some(1), ..Match::ANY }, "arp_operation"),
            (Match { transport_src: Some(1), eth_type: Some(0x0800), ..Match::ANY }, "transport_src"),
            (
                Match { transport_dst: Some(1), eth_type: Some(0x0800), ip_protocol: Some(1), ..Match::ANY },
                "transport_dst",
            ),
            (
                Match { icmp_type: Some(1), eth_type: Some(0x0800), ip_protocol: Some(6), ..Match::ANY },
                "icmp_type",
            ),
            (
                Match { vlan: Some(VlanMatch::Untagged), vlan_priority: Some(1), ..Match::ANY },
                "vlan_priority",
            ),
        ] {
            assert_eq!(
                refused(flow(match_fields), version),
                EncodeError::Prerequisite { field },
                "{version}"
            );
        }
    }
}

#[test]
fn values_out_of_range() {
    for version in Version::ALL {
        for (match_fields, field) in [
            (Match { vlan: Some(VlanMatch::Id(0x1000)), ..Match::ANY }, "vlan"),
            (Match { vlan: Some(VlanMatch::Id(1)), vlan_priority: Some(8), ..Match::ANY }, "vlan_priority"),
            (Match { eth_type: Some(0x0800), ip_dscp: Some(64), ..Match::ANY }, "ip_dscp"),
        ] {
            assert_eq!(refused(flow(match_fields), version), EncodeError::Value { field });
        }
        for (action, field) in [
            (Action::SetVlanId(0x1000), "VLAN identifier"),
            (Action::SetVlanPriority(8), "VLAN priority"),
            (Action::SetIpDscp(64), "IP DSCP"),
        ] {
            let actions = [Action::SetEthDst(HOST_B), action];
            let flow = FlowMod::add(1, Match::ANY, (&actions).into());
            assert_eq!(refused(Message::FlowMod(flow), version), EncodeError::Value { field });
        }
    }
}

#[test]
fn a_message_longer_than_its_length_field_is_refused() {
    let data = vec![0; 65_536 - 8];
    for version in Version::ALL {
        assert_eq!(refused(Message::EchoRequest(Echo { data: &data }), version), EncodeError::TooLong);
        let mut out = BytesMut::new();
        Message::EchoRequest(Echo { data: &data[1..] }).encode_into(version, 1, &mut out).unwrap();
        assert_eq!(out.len(), 65_535);
        let actions = vec![Action::PopVlan; 8192];
        let packet =
            PacketOut { buffer_id: None, in_port: PortNo(1), actions: (&actions[..]).into(), data: &[] };
        assert_eq!(refused(Message::PacketOut(packet), version), EncodeError::TooLong);
    }
}

#[test]
fn an_action_without_a_name_goes_on_in_its_own_version_only() {
    // A vendor action of 1.0 in a packet-out.
    let bytes = crate::corpus::bytes("010d002000000001 ffffffff0003 0010 ffff0010000023200000000000000002");
    let Message::PacketOut(packet) = Message::parse(beehive_of::Frame::whole(&bytes).unwrap()).unwrap()
    else {
        panic!("not a packet-out")
    };

    assert_eq!(packet.actions.iter().collect::<Vec<_>>(), [Ok(Action::Other(0xffff))]);

    let mut out = BytesMut::new();
    packet.encode_into(Version::V1_0, 1, &mut out).unwrap();
    assert_eq!(&out[..], &bytes[..]);

    let error = refused(Message::PacketOut(packet), Version::V1_3);
    assert!(matches!(error, EncodeError::Unsupported { version: Version::V1_3, .. }));
}

#[test]
fn the_meaning_of_so_many_fields_is_checked_and_no_more() {
    use beehive_of::limits::MATCH_FIELDS_MAX;
    use beehive_of::message;
    use beehive_of::oxm::{OxmField, OxmFields};
    use beehive_of::schema::List;
    let fields = |count: usize| -> Vec<OxmField<'static>> {
        // Each field belongs to a different experimenter, so there are no duplicates.
        let field = |at: usize| OxmField {
            class: 0xffff,
            experimenter: 0x0100_0000 + at as u32,
            ..OxmField::basic(0, &[1])
        };
        (0..count).map(field).collect()
    };
    let check = |count: usize| {
        let list = fields(count);
        let flow = message::FlowMod {
            match_fields: message::Match::Fields(OxmFields(List::new(&list))),
            ..Default::default()
        };
        message::Message::FlowMod(flow).check_meaning(Version::V1_3)
    };

    assert_eq!(check(MATCH_FIELDS_MAX), Ok(()));
    assert_eq!(check(MATCH_FIELDS_MAX + 1).unwrap_err().field(), "match field (too many)");
}
