//! Strategies that generate arbitrary messages that a version can express.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use beehive_of::any::*;
use beehive_of::{MacAddress, Masked, PortNo, Version};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// Returns the configuration of a property test with this number of cases, unless `PROPTEST_CASES` is set.
/// Failures are printed, but not stored in files.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let standard = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() { standard } else { ProptestConfig { cases, ..standard } }
}

pub(crate) fn version() -> impl Strategy<Value = Version> {
    prop::sample::select(&Version::ALL[..])
}

/// Generates a buffer identifier other than the reserved identifier.
pub(crate) fn buffer_id() -> impl Strategy<Value = Option<u32>> {
    option::of(0..u32::MAX)
}

pub(crate) fn port_number(version: Version) -> BoxedStrategy<PortNo> {
    match version {
        Version::V1_0 => any::<u16>().prop_map(PortNo::from_v10).boxed(),
        _ => any::<u32>().prop_map(PortNo).boxed(),
    }
}

pub(crate) fn mac() -> impl Strategy<Value = MacAddress> {
    any::<[u8; 6]>().prop_map(MacAddress)
}

pub(crate) fn payload() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..200)
}

fn masked_mac(version: Version) -> BoxedStrategy<Masked<MacAddress>> {
    match version {
        Version::V1_0 => mac().prop_map(Masked::<MacAddress>::exact).boxed(),
        _ => (mac(), mac()).prop_map(|(value, mask)| Masked { value, mask }).boxed(),
    }
}

fn network() -> impl Strategy<Value = Masked<Ipv4Addr>> {
    (any::<u32>(), 1..=32u32)
        .prop_map(|(bits, prefix)| Masked::<Ipv4Addr>::network(Ipv4Addr::from_bits(bits), prefix))
}

fn network6() -> impl Strategy<Value = Masked<Ipv6Addr>> {
    (any::<u128>(), 1..=128u32)
        .prop_map(|(bits, prefix)| Masked::<Ipv6Addr>::network(Ipv6Addr::from_bits(bits), prefix))
}

/// Generates fields above Ethernet that are consistent with each other.
fn upper(version: Version) -> BoxedStrategy<Match> {
    let arp = (option::of(0..=255u16), option::of(network()), option::of(network())).prop_map(
        |(arp_operation, arp_sender, arp_target)| Match {
            eth_type: Some(0x0806),
            arp_operation,
            arp_sender,
            arp_target,
            ..Match::ANY
        },
    );
    let ipv4 = (option::of(0..64u8), option::of(network()), option::of(network()), option::of(any::<u8>()))
        .prop_map(|(ip_dscp, ipv4_src, ipv4_dst, ip_protocol)| Match {
            eth_type: Some(0x0800),
            ip_dscp,
            ipv4_src,
            ipv4_dst,
            ip_protocol,
            ..Match::ANY
        });
    let protocols = match version {
        Version::V1_0 => vec![6u8, 17],
        _ => vec![6u8, 17, 132],
    };
    let transport = (
        prop::sample::select(protocols),
        option::of(any::<u16>()),
        option::of(any::<u16>()),
        option::of(network()),
    )
        .prop_map(|(protocol, transport_src, transport_dst, ipv4_src)| Match {
            eth_type: Some(0x0800),
            ip_protocol: Some(protocol),
            ipv4_src,
            transport_src,
            transport_dst,
            ..Match::ANY
        });
    let icmp = (option::of(any::<u8>()), option::of(any::<u8>())).prop_map(|(icmp_type, icmp_code)| Match {
        eth_type: Some(0x0800),
        ip_protocol: Some(1),
        icmp_type,
        icmp_code,
        ..Match::ANY
    });
    let other = option::of(any::<u16>()).prop_map(|eth_type| Match { eth_type, ..Match::ANY });
    let same = prop_oneof![arp, ipv4, transport, icmp, other];
    match version {
        Version::V1_0 | Version::V1_1 => same.boxed(),
        _ => {
            let ipv6 = (option::of(network6()), option::of(network6()), option::of(0..64u8)).prop_map(
                |(ipv6_src, ipv6_dst, ip_dscp)| Match {
                    eth_type: Some(0x86dd),
                    ipv6_src,
                    ipv6_dst,
                    ip_dscp,
                    ..Match::ANY
                },
            );
            let icmp6 =
                (option::of(any::<u8>()), option::of(any::<u8>())).prop_map(|(icmp_type, icmp_code)| Match {
                    eth_type: Some(0x86dd),
                    ip_protocol: Some(58),
                    icmp_type,
                    icmp_code,
                    ..Match::ANY
                });

            prop_oneof![3 => same, 1 => ipv6, 1 => icmp6].boxed()
        }
    }
}

fn vlan(version: Version) -> BoxedStrategy<(Option<VlanMatch>, Option<u8>)> {
    let id = (0..4096u16).prop_map(VlanMatch::Id);
    let tagged = match version {
        Version::V1_0 => id.boxed(),
        _ => prop_oneof![id, Just(VlanMatch::Tagged)].boxed(),
    };

    prop_oneof![
        Just((None, None)),
        Just((Some(VlanMatch::Untagged), None)),
        (tagged.prop_map(Some), option::of(0..8u8)),
    ]
    .boxed()
}

pub(crate) fn match_fields(version: Version) -> impl Strategy<Value = Match> {
    let port = option::of(port_number(version));
    (port, option::of(masked_mac(version)), option::of(masked_mac(version)), vlan(version), upper(version))
        .prop_map(|(in_port, eth_src, eth_dst, (vlan, vlan_priority), upper)| Match {
            in_port,
            eth_src,
            eth_dst,
            vlan,
            vlan_priority,
            ..upper
        })
}

fn action(version: Version) -> BoxedStrategy<Action> {
    let same = prop_oneof![
        (port_number(version), any::<u16>()).prop_map(|(port, max_len)| Action::Output { port, max_len }),
        (0..4096u16).prop_map(Action::SetVlanId),
        (0..8u8).prop_map(Action::SetVlanPriority),
        Just(Action::PopVlan),
        mac().prop_map(Action::SetEthSrc),
        mac().prop_map(Action::SetEthDst),
        any::<u32>().prop_map(|bits| Action::SetIpv4Src(Ipv4Addr::from_bits(bits))),
        any::<u32>().prop_map(|bits| Action::SetIpv4Dst(Ipv4Addr::from_bits(bits))),
        (0..64u8).prop_map(Action::SetIpDscp),
    ];
    match version {
        Version::V1_0 => same.boxed(),
        _ => {
            prop_oneof![9 => same, 1 => any::<u16>().prop_map(Action::PushVlan), 1 => any::<u32>().prop_map(Action::Group)]
                .boxed()
        }
    }
}

pub(crate) fn actions(version: Version) -> impl Strategy<Value = Vec<Action>> {
    vec(action(version), 0..6)
}

pub(crate) fn command() -> impl Strategy<Value = FlowCommand> {
    use FlowCommand::*;
    prop::sample::select(vec![Add, Modify, ModifyStrict, Delete, DeleteStrict])
}

pub(crate) fn duration() -> impl Strategy<Value = Duration> {
    (any::<u32>(), 0..1_000_000_000u32)
        .prop_map(|(seconds, nanoseconds)| Duration::new(seconds.into(), nanoseconds))
}

pub(crate) fn port(version: Version) -> impl Strategy<Value = Port> {
    let features = match version {
        Version::V1_0 => prop::sample::select(vec![0u32, 0x7f, 0xf87f, 0x0820, 1 << 15]).boxed(),
        _ => any::<u32>().boxed(),
    };
    let speed = match version {
        Version::V1_0 => Just(0u32).boxed(),
        _ => any::<u32>().boxed(),
    };

    (
        port_number(version),
        mac(),
        vec(1..=255u8, 0..16),
        (any::<u32>(), any::<u32>()),
        (features.clone(), features.clone(), features.clone(), features),
        (speed.clone(), speed),
    )
        .prop_map(|(number, address, name, (config, state), features, speeds)| Port {
            config: PortConfig(config),
            state: PortState(state),
            current: PortFeatures(features.0),
            advertised: PortFeatures(features.1),
            supported: PortFeatures(features.2),
            peer: PortFeatures(features.3),
            current_speed_kbps: speeds.0,
            max_speed_kbps: speeds.1,
            ..Port::new(number, address, PortName::new(&name))
        })
}
