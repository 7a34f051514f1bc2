//! Checks that version-independent messages survive conversion between every pair of versions that can
//! express them.

use std::collections::HashSet;

use beehive_of::any::*;
use beehive_of::message::{self, Canonical};
use beehive_of::{EncodeError, Frame, MacAddress, Masked, PortNo, Version};
use bytes::BytesMut;
use proptest::option;
use proptest::prelude::*;

use crate::strategies::*;

fn encoded(message: &Message<'_>, version: Version) -> Vec<u8> {
    let mut out = BytesMut::new();
    message
        .encode_into(version, 7, &mut out)
        .unwrap_or_else(|error| panic!("{version} {message:?}: {error}"));
    out.to_vec()
}

/// Encodes the message in each version since `first`, decodes it, encodes the result in each other version,
/// and decodes it again.
fn same_in_pairs(message: Message<'_>, first: Version) {
    for one in Version::ALL.into_iter().filter(|version| *version >= first) {
        let bytes = encoded(&message, one);
        let decoded = Message::parse(Frame::whole(&bytes).unwrap()).unwrap();
        assert_eq!(decoded, message, "{one}");
        for other in Version::ALL.into_iter().filter(|version| *version >= first) {
            let bytes = encoded(&decoded, other);
            let again = Message::parse(Frame::whole(&bytes).unwrap()).unwrap();
            assert_eq!(again, message, "{one} to {other}");
        }
    }
}

/// Returns the set of the canonical forms that a flow has in the versions since `first`. The set should have
/// one element.
fn canonical(flow: FlowMod<'_>, first: Version) -> HashSet<(Canonical, Canonical)> {
    Version::ALL
        .into_iter()
        .filter(|version| *version >= first)
        .map(|version| {
            let bytes = encoded(&Message::FlowMod(flow), version);
            let parsed = message::Message::parse(Frame::whole(&bytes).unwrap()).unwrap();
            let message::Message::FlowMod(complete) = parsed else { panic!("{parsed:?}") };
            (
                Canonical::of_match(&complete.match_fields).unwrap(),
                Canonical::of_instructions(&complete.actions, &complete.instructions, version).unwrap(),
            )
        })
        .collect()
}

fn oldest() -> impl Strategy<Value = Version> {
    prop::sample::select(vec![Version::V1_0, Version::V1_1, Version::V1_2])
}

proptest! {
    #![proptest_config(config(192))]

    #[test]
    fn flows(
        (first, match_fields, actions, out_port) in oldest().prop_flat_map(|version| {
            (Just(version), match_fields(version), actions(version), port_number(version))
        }),
        command in command(), buffer_id in buffer_id(), numbers: (u16, u16, u16, u64), flags in 0..4u16,
        reason in prop::sample::select(vec![FlowRemovedReason::IdleTimeout, FlowRemovedReason::HardTimeout, FlowRemovedReason::Delete]),
        counts: (u64, u64), duration in duration(),
    ) {
        let flow = FlowMod {
            command,
            priority: numbers.0,
            idle_timeout: numbers.1,
            hard_timeout: numbers.2,
            cookie: numbers.3,
            buffer_id,
            out_port,
            flags: FlowFlags(flags),
            ..FlowMod::add(1, match_fields, (&actions[..]).into())
        };
        same_in_pairs(Message::FlowMod(flow), first);
        let forms = canonical(flow, first);
        prop_assert_eq!(forms.len(), 1, "{:?}", forms);
        same_in_pairs(
            Message::FlowRemoved(FlowRemoved {
                match_fields,
                cookie: numbers.3,
                priority: numbers.0,
                reason,
                table_id: 0,
                duration,
                idle_timeout: numbers.1,
                hard_timeout: 0,
                packet_count: counts.0,
                byte_count: counts.1,
            }),
            first,
        );
        let entries = [FlowEntry {
            table_id: 3,
            duration,
            priority: numbers.0,
            idle_timeout: numbers.1,
            hard_timeout: numbers.2,
            flags: FlowFlags::NONE,
            cookie: numbers.3,
            packet_count: counts.0,
            byte_count: counts.1,
            match_fields,
            actions: (&actions[..]).into(),
            goto_table: None,
            other_instructions: 0,
        }];
        let statistics = FlowStatistics { more: false, entries: (&entries).into() };
        same_in_pairs(Message::FlowStatisticsReply(statistics), first);
        let request = FlowStatisticsRequest { match_fields, out_port, ..FlowStatisticsRequest::ALL };
        same_in_pairs(Message::FlowStatisticsRequest(request), first);
    }

    #[test]
    fn packets_and_ports(
        (in_port, actions) in (port_number(Version::V1_0), actions(Version::V1_0)), buffer_id in buffer_id(), data in payload(),
        total_len: u16, port in port(Version::V1_0), cookie in option::of(0..u64::MAX), table_id: u8,
        reason in prop::sample::select(vec![PacketInReason::NoMatch, PacketInReason::Action]),
    ) {
        let packet = PacketIn { buffer_id, total_len, in_port, reason, table_id: 0, cookie: None, data: &data };
        same_in_pairs(Message::PacketIn(packet), Version::V1_0);
        same_in_pairs(Message::PacketIn(PacketIn { table_id, ..packet }), Version::V1_1);
        same_in_pairs(Message::PacketIn(PacketIn { table_id, cookie, ..packet }), Version::V1_3);
        let packet = PacketOut { buffer_id, in_port, actions: (&actions[..]).into(), data: &data };
        same_in_pairs(Message::PacketOut(packet), Version::V1_0);
        same_in_pairs(
            Message::PortStatus(PortStatus { reason: PortReason::Modify, port: Port::new(port.number, port.address, port.name) }),
            Version::V1_0,
        );
    }
}

fn flow(match_fields: Match, actions: &[Action]) -> FlowMod<'_> {
    FlowMod::add(5, match_fields, actions.into())
}

#[test]
fn what_is_told_in_another_way_by_each_version() {
    let network =
        |address: [u8; 4], prefix| Some(Masked::<std::net::Ipv4Addr>::network(address.into(), prefix));
    let ip = Match { eth_type: Some(0x0800), ..Match::ANY };
    let arp = Match { eth_type: Some(0x0806), ..Match::ANY };

    // Each match with the first version that can express it.
    let matches = [
        (Match { vlan: Some(VlanMatch::Untagged), ..Match::ANY }, Version::V1_0),
        (Match { vlan: Some(VlanMatch::Tagged), ..Match::ANY }, Version::V1_1),
        (Match { vlan: Some(VlanMatch::Id(0)), ..Match::ANY }, Version::V1_0),
        (Match { vlan: Some(VlanMatch::Id(4095)), vlan_priority: Some(7), ..Match::ANY }, Version::V1_0),
        (Match { arp_operation: Some(2), arp_sender: network([10, 0, 0, 1], 32), ..arp }, Version::V1_0),
        (Match { arp_target: network([10, 0, 0, 0], 8), ..arp }, Version::V1_0),
        (Match { arp_operation: Some(256), ..arp }, Version::V1_2),
        (Match { ip_protocol: Some(1), icmp_type: Some(8), icmp_code: Some(0), ..ip }, Version::V1_0),
        (Match { ip_protocol: Some(132), transport_src: Some(9), ..ip }, Version::V1_1),
        (Match { ip_dscp: Some(63), ..ip }, Version::V1_0),
        (
            Match { ipv4_src: network([10, 1, 2, 3], 1), ipv4_dst: network([10, 1, 2, 3], 31), ..ip },
            Version::V1_0,
        ),
        (Match { in_port: Some(PortNo::LOCAL), ..Match::ANY }, Version::V1_0),
        (Match { in_port: Some(PortNo(0xfeff)), ..Match::ANY }, Version::V1_0),
        (Match { in_port: Some(PortNo(0x1_0000)), ..Match::ANY }, Version::V1_1),
    ];
    let mut forms = HashSet::new();
    for (fields, first) in matches {
        same_in_pairs(Message::FlowMod(flow(fields, &[])), first);
        let form = canonical(flow(fields, &[]), first);
        assert_eq!(form.len(), 1, "{fields:?}");
        forms.extend(form);
        for version in Version::ALL.into_iter().filter(|version| *version < first) {
            let error = Message::FlowMod(flow(fields, &[])).encode_into(version, 1, &mut BytesMut::new());
            assert!(
                matches!(error, Err(EncodeError::Unsupported { version: named, field }) if named == version && !field.is_empty()),
                "{version} {fields:?}: {error:?}"
            );
        }
    }

    assert_eq!(forms.len(), matches.len(), "different matches have different forms");

    let actions = [
        (Action::output(PortNo::CONTROLLER), Version::V1_0),
        (Action::output(PortNo::FLOOD), Version::V1_0),
        (Action::SetVlanId(7), Version::V1_0),
        (Action::SetVlanPriority(3), Version::V1_0),
        (Action::PopVlan, Version::V1_0),
        (Action::PushVlan(0x8100), Version::V1_1),
        (Action::SetIpDscp(46), Version::V1_0),
        (Action::SetEthSrc(MacAddress([2, 0, 0, 0, 0, 9])), Version::V1_0),
        (Action::SetIpv4Dst([1, 2, 3, 4].into()), Version::V1_0),
        (Action::SetQueue(4), Version::V1_1),
        (Action::Group(4), Version::V1_1),
        (Action::DecIpTtl, Version::V1_1),
        (Action::SetIpTtl(9), Version::V1_1),
    ];
    let mut forms = HashSet::new();
    for (action, first) in actions {
        let list = [action];
        same_in_pairs(Message::FlowMod(flow(Match::ANY, &list)), first);
        let form = canonical(flow(Match::ANY, &list), first);
        assert_eq!(form.len(), 1, "{action:?}");
        forms.extend(form);
        for version in Version::ALL.into_iter().filter(|version| *version < first) {
            let error =
                Message::FlowMod(flow(Match::ANY, &list)).encode_into(version, 1, &mut BytesMut::new());
            assert!(
                matches!(error, Err(EncodeError::Unsupported { version: named, .. }) if named == version),
                "{version} {action:?}: {error:?}"
            );
        }
    }

    assert_eq!(forms.len(), actions.len());

    let enqueue = [Action::Enqueue { port: PortNo(1), queue_id: 2 }];
    for version in Version::ALL.into_iter().skip(1) {
        let error =
            Message::FlowMod(flow(Match::ANY, &enqueue)).encode_into(version, 1, &mut BytesMut::new());
        assert!(error.unwrap_err().to_string().contains("enqueue"));
    }
}

#[test]
fn options_of_tunnels_are_compared_however_long_they_are_told() {
    let canonical = |text: &str| {
        let flow = beehive_of::text::Flow::parse(text, Version::V1_3).unwrap();
        let message = flow.message();
        let beehive_of::message::Message::FlowMod(flow) = message else { panic!("no flow-mod: {message:?}") };
        (
            Canonical::of_match(&flow.match_fields).unwrap(),
            Canonical::of_instructions(&flow.actions, &flow.instructions, Version::V1_3).unwrap(),
        )
    };

    for (one, other) in [
        ("tun_metadata3=0x12 actions=drop", "tun_metadata3=0x00000012 actions=drop"),
        ("tun_metadata3=0x12/0xff actions=drop", "tun_metadata3=0x7712/0x00ff actions=drop"),
        ("tun_metadata3 actions=drop", "tun_metadata3=0x0000/0x0000 actions=drop"),
        ("actions=set_field:1->tun_metadata3", "actions=set_field:0x0001->tun_metadata3"),
    ] {
        assert_eq!(canonical(one), canonical(other), "{one}; {other}");
    }

    let different = [
        "actions=drop",
        "tun_metadata3 actions=drop",
        "tun_metadata3=0 actions=drop",
        "tun_metadata3=0/0xff actions=drop",
        "tun_metadata3=0xff actions=drop",
        "tun_metadata3=0xff/0xff actions=drop",
        "tun_metadata3=0xff/0xffff actions=drop",
        "tun_metadata4=0xff/0xff actions=drop",
    ];
    let forms: HashSet<_> = different.iter().map(|text| canonical(text)).collect();
    assert_eq!(forms.len(), different.len());
}

/// A message that the version-independent layer does not model can be encoded in its own version only,
/// because types and kinds have different numbers in other versions.
#[test]
fn what_has_no_view_stays_in_its_version() {
    let port_mod = "010f002000000021000000000000000400000000fe0000000000004f00000000";
    let statistics = "01110010000000020007000000000000";
    for message in [port_mod, statistics] {
        let bytes: Vec<u8> = (0..message.len() / 2)
            .map(|at| u8::from_str_radix(&message[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        let frame = Frame::whole(&bytes).unwrap();
        let any = beehive_of::any::Message::parse(frame).unwrap();
        for version in Version::ALL {
            let mut out = BytesMut::new();
            let encoded = any.encode_into(version, frame.header().xid, &mut out);
            match version == Version::V1_0 {
                true => assert_eq!((encoded, &out[..]), (Ok(()), &bytes[..])),
                false => assert!(encoded.is_err() && out.is_empty(), "{version}: {encoded:?}"),
            }
        }
    }
}
