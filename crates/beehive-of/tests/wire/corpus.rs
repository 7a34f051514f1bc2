//! The corpus of messages for other tests: messages that Open vSwitch 3.1 sent, and one message of every kind
//! that this crate encodes.

use std::sync::LazyLock;
use std::time::Duration;

use beehive_of::any::*;
use beehive_of::{MacAddress, Masked, PortNo, Version, VersionSet};
use bytes::BytesMut;

/// Messages sent by Open vSwitch 3.1.0 and its `ovs-ofctl`, one per line.
const OPEN_VSWITCH: &str = include_str!("open_vswitch.hex");

/// Decodes hexadecimal digits.
pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// Encodes bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the messages of real switches and controllers, each with its origin.
pub(crate) fn open_vswitch() -> Vec<(String, Vec<u8>)> {
    OPEN_VSWITCH
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let (words, digits) = line.rsplit_once(' ').unwrap();
            (words.to_owned(), bytes(digits))
        })
        .collect()
}

pub(crate) const HOST_A: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
pub(crate) const HOST_B: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

/// Returns a match as a learning switch installs it.
pub(crate) fn learned() -> Match {
    Match {
        in_port: Some(PortNo(3)),
        eth_src: Some(HOST_A.into()),
        eth_dst: Some(HOST_B.into()),
        ..Match::ANY
    }
}

/// Returns a match as a firewall installs it.
pub(crate) fn web() -> Match {
    Match {
        eth_type: Some(0x0800),
        vlan: Some(VlanMatch::Id(10)),
        ip_protocol: Some(6),
        ipv4_src: Some(Masked::<std::net::Ipv4Addr>::network([10, 0, 0, 0].into(), 8)),
        transport_dst: Some(80),
        ..Match::ANY
    }
}

/// Returns one message of every kind that the version has, encoded by this crate.
pub(crate) fn ours(version: Version) -> Vec<(&'static str, Vec<u8>)> {
    let old = version == Version::V1_0;
    let port = Port::new(PortNo(3), HOST_A, PortName::from("eth3"));
    let ports = [port, Port { number: PortNo::LOCAL, ..port }];
    let actions = [
        Action::SetEthSrc(HOST_B),
        Action::SetVlanId(9),
        Action::PopVlan,
        Action::SetIpv4Dst([10, 0, 0, 7].into()),
        Action::output(PortNo::FLOOD),
    ];

    // Actions on a VLAN tag or an IPv4 packet require a match on a VLAN tag or on IPv4.
    let tagged = Match { eth_type: Some(0x0800), vlan: Some(VlanMatch::Id(10)), ..learned() };
    let flow = FlowMod {
        idle_timeout: 60,
        cookie: 0x1234,
        flags: FlowFlags::SEND_FLOW_REMOVED,
        goto_table: if old { None } else { Some(1) },
        ..FlowMod::add(100, tagged, (&actions).into())
    };
    let entry = FlowEntry {
        table_id: 0,
        duration: Duration::new(3, 4),
        priority: 9,
        idle_timeout: 5,
        hard_timeout: 6,
        flags: FlowFlags::NONE,
        cookie: 7,
        packet_count: 8,
        byte_count: 9,
        match_fields: web(),
        actions: (&actions).into(),
        goto_table: None,
        other_instructions: 0,
    };
    let entries = [entry, FlowEntry { match_fields: learned(), ..entry }];
    let packet = [0xab; 60];
    let config = SwitchConfig { flags: 0, miss_send_len: 0xffff };
    let multipart = Multipart { version, kind: 3, flags: 1, body: &packet };
    let mut messages = vec![
        (
            "hello",
            Message::Hello(Hello::new(match version {
                Version::V1_5 => VersionSet::SUPPORTED,
                version => VersionSet::only(version),
            })),
        ),
        ("error", Message::Error(ErrorMessage { error_type: 1, code: 6, data: &packet })),
        ("echo request", Message::EchoRequest(Echo { data: b"are you there" })),
        ("echo reply", Message::EchoReply(Echo { data: b"are you there" })),
        ("features request", Message::FeaturesRequest),
        (
            "features reply",
            Message::FeaturesReply(Features {
                datapath_id: 0x2a,
                buffers: 256,
                tables: 2,
                auxiliary_id: 0,
                capabilities: Capabilities(Capabilities::FLOW_STATISTICS),
                actions: if old { 0xfff } else { 0 },
                ports: if version < Version::V1_3 { (&ports).into() } else { Ports::EMPTY },
            }),
        ),
        ("get config request", Message::GetConfigRequest),
        ("get config reply", Message::GetConfigReply(config)),
        ("set config", Message::SetConfig(config)),
        (
            "packet-in",
            Message::PacketIn(PacketIn {
                buffer_id: None,
                total_len: 60,
                in_port: PortNo(3),
                reason: PacketInReason::NoMatch,
                table_id: 0,
                cookie: None,
                data: &packet,
            }),
        ),
        (
            "packet-out",
            Message::PacketOut(PacketOut {
                buffer_id: None,
                in_port: PortNo(3),
                actions: (&actions).into(),
                data: &packet,
            }),
        ),
        ("flow-mod", Message::FlowMod(flow)),
        ("flow-mod delete", Message::FlowMod(FlowMod { out_port: PortNo(4), ..FlowMod::delete(web()) })),
        (
            "flow-removed",
            Message::FlowRemoved(FlowRemoved {
                match_fields: web(),
                cookie: 1,
                priority: 2,
                reason: FlowRemovedReason::IdleTimeout,
                table_id: 0,
                duration: Duration::from_millis(1500),
                idle_timeout: 60,
                hard_timeout: 0,
                packet_count: 3,
                byte_count: 4,
            }),
        ),
        ("port-status", Message::PortStatus(PortStatus { reason: PortReason::Modify, port })),
        ("flow statistics request", Message::FlowStatisticsRequest(FlowStatisticsRequest::ALL)),
        (
            "flow statistics reply",
            Message::FlowStatisticsReply(FlowStatistics { more: false, entries: (&entries).into() }),
        ),
        ("multipart request", Message::MultipartRequest(multipart)),
        ("multipart reply", Message::MultipartReply(multipart)),
        ("barrier request", Message::BarrierRequest),
        ("barrier reply", Message::BarrierReply),
        ("unknown", Message::Unknown(Unknown { version, message_type: 4, body: &packet })),
    ];
    if version >= Version::V1_3 {
        messages.extend([
            ("port description request", Message::PortDescriptionRequest),
            (
                "port description reply",
                Message::PortDescriptionReply(PortDescription { more: false, ports: (&ports).into() }),
            ),
        ]);
    }
    if version >= Version::V1_2 {
        let role = RoleMessage { role: Role::Master, generation_id: 7 };
        messages
            .extend([("role request", Message::RoleRequest(role)), ("role reply", Message::RoleReply(role))]);
    }

    messages
        .into_iter()
        .map(|(name, message)| {
            let mut out = BytesMut::new();
            message
                .encode_into(version, 0x2a, &mut out)
                .unwrap_or_else(|error| panic!("{name} {version}: {error}"));
            (name, out.to_vec())
        })
        .collect()
}

/// Returns every message of the corpus.
pub(crate) fn all() -> Vec<Vec<u8>> {
    static ALL: LazyLock<Vec<Vec<u8>>> = LazyLock::new(made);
    ALL.clone()
}

fn made() -> Vec<Vec<u8>> {
    let ours = Version::ALL.into_iter().flat_map(ours).map(|(_, bytes)| bytes);
    let complete =
        Version::ALL.into_iter().flat_map(crate::message_samples::complete).map(|(bytes, _)| bytes);
    open_vswitch().into_iter().map(|(_, bytes)| bytes).chain(ours).chain(complete).collect()
}
