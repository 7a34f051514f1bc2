//! Checks the text syntax of every field that Open vSwitch's manual lists (`ovs-fields`(7)).

use std::process::Command;

use beehive_of::oxm::{OxmField, OxmFields};
use beehive_of::text::{Flow, show_fields};
use beehive_of::{Frame, Version, message};
use bytes::BytesMut;

use crate::temporary;

/// The short and long names of each field, its prerequisites, and a valid value.
const FIELDS: &[(&[&str], &str, &str)] = &[
    (&["conj_id", "NXM_NX_CONJ_ID"], "", "5"),
    (&["tun_id", "tunnel_id", "NXM_NX_TUN_ID", "OXM_OF_TUNNEL_ID"], "", "5"),
    (&["tun_src", "NXM_NX_TUN_IPV4_SRC"], "", "1.2.3.4"),
    (&["tun_dst", "NXM_NX_TUN_IPV4_DST"], "", "1.2.3.4"),
    (&["tun_ipv6_src", "NXM_NX_TUN_IPV6_SRC"], "", "fe80::1"),
    (&["tun_ipv6_dst", "NXM_NX_TUN_IPV6_DST"], "", "fe80::1"),
    (&["tun_gbp_id", "NXM_NX_TUN_GBP_ID"], "", "5"),
    (&["tun_gbp_flags", "NXM_NX_TUN_GBP_FLAGS"], "", "5"),
    (&["tun_erspan_ver", "NXOXM_ET_ERSPAN_VER"], "", "2"),
    (&["tun_erspan_idx", "NXOXM_ET_ERSPAN_IDX"], "tun_erspan_ver=1", "0xfffff"),
    (&["tun_erspan_dir", "NXOXM_ET_ERSPAN_DIR"], "tun_erspan_ver=2", "1"),
    (&["tun_erspan_hwid", "NXOXM_ET_ERSPAN_HWID"], "tun_erspan_ver=2", "0x3f"),
    (&["tun_gtpu_flags", "NXOXM_ET_GTPU_FLAGS"], "", "0x30"),
    (&["tun_gtpu_msgtype", "NXOXM_ET_GTPU_MSGTYPE"], "", "255"),
    (&["tun_metadata0", "NXM_NX_TUN_METADATA0"], "", "5"),
    (&["tun_metadata63", "NXM_NX_TUN_METADATA63"], "", "5"),
    (&["tun_flags", "NXM_NX_TUN_FLAGS"], "", "oam"),
    (&["in_port", "in_port_oxm", "NXM_OF_IN_PORT", "OXM_OF_IN_PORT"], "", "LOCAL"),
    (&["pkt_mark", "NXM_NX_PKT_MARK"], "", "5"),
    (&["actset_output", "OXM_OF_ACTSET_OUTPUT", "ONFOXM_ET_ACTSET_OUTPUT"], "", "5"),
    (&["packet_type", "OXM_OF_PACKET_TYPE"], "", "(1,0x800)"),
    (&["dp_hash", "NXM_NX_DP_HASH", "NXOXM_ET_DP_HASH"], "", "5"),
    (&["recirc_id", "NXM_NX_RECIRC_ID"], "", "5"),
    (&["ct_state", "NXM_NX_CT_STATE"], "", "new|trk"),
    (&["ct_zone", "NXM_NX_CT_ZONE"], "", "5"),
    (&["ct_mark", "NXM_NX_CT_MARK"], "", "5"),
    (&["ct_label", "NXM_NX_CT_LABEL"], "", "0x123456789abcdef0123456789"),
    (&["ct_nw_src", "NXM_NX_CT_NW_SRC"], "ip,ct_state=+trk", "1.2.3.4"),
    (&["ct_nw_dst", "NXM_NX_CT_NW_DST"], "ip,ct_state=+trk", "1.2.3.4"),
    (&["ct_ipv6_src", "NXM_NX_CT_IPV6_SRC"], "ipv6,ct_state=+trk", "fe80::1"),
    (&["ct_ipv6_dst", "NXM_NX_CT_IPV6_DST"], "ipv6,ct_state=+trk", "fe80::1"),
    (&["ct_nw_proto", "NXM_NX_CT_NW_PROTO"], "ip,ct_state=+trk", "6"),
    (&["ct_tp_src", "NXM_NX_CT_TP_SRC"], "ip,ct_state=+trk,ct_nw_proto=6", "5"),
    (&["ct_tp_dst", "NXM_NX_CT_TP_DST"], "ip,ct_state=+trk,ct_nw_proto=6", "5"),
    (&["metadata", "OXM_OF_METADATA"], "", "0x123456789abcdef0"),
    (&["reg0", "NXM_NX_REG0"], "", "5"),
    (&["reg15", "NXM_NX_REG15"], "", "5"),
    (&["xreg0", "OXM_OF_PKT_REG0"], "", "5"),
    (&["xreg7", "OXM_OF_PKT_REG7"], "", "5"),
    (&["xxreg0", "NXM_NX_XXREG0"], "", "5"),
    (&["xxreg3", "NXM_NX_XXREG3"], "", "5"),
    (&["eth_src", "dl_src", "NXM_OF_ETH_SRC", "OXM_OF_ETH_SRC"], "", "02:00:00:00:00:01"),
    (&["eth_dst", "dl_dst", "NXM_OF_ETH_DST", "OXM_OF_ETH_DST"], "", "02:00:00:00:00:01"),
    (&["eth_type", "dl_type", "NXM_OF_ETH_TYPE", "OXM_OF_ETH_TYPE"], "", "0x1234"),
    (&["vlan_vid", "OXM_OF_VLAN_VID"], "", "0x1005"),
    (&["vlan_pcp", "OXM_OF_VLAN_PCP"], "dl_vlan=5", "7"),
    (&["vlan_tci", "NXM_OF_VLAN_TCI"], "", "0x1123/0x1fff"),
    (&["mpls_label", "OXM_OF_MPLS_LABEL"], "mpls", "0xfffff"),
    (&["mpls_tc", "OXM_OF_MPLS_TC"], "mpls", "7"),
    (&["mpls_bos", "OXM_OF_MPLS_BOS"], "mplsm", "1"),
    (&["mpls_ttl", "NXM_NX_MPLS_TTL"], "mpls", "255"),
    (&["ip_src", "nw_src", "NXM_OF_IP_SRC", "OXM_OF_IPV4_SRC"], "ip", "1.2.3.4"),
    (&["ip_dst", "nw_dst", "NXM_OF_IP_DST", "OXM_OF_IPV4_DST"], "ip4", "1.2.3.4"),
    (&["ipv6_src", "NXM_NX_IPV6_SRC", "OXM_OF_IPV6_SRC"], "ip6", "fe80::1"),
    (&["ipv6_dst", "NXM_NX_IPV6_DST", "OXM_OF_IPV6_DST"], "ipv6", "fe80::1"),
    (&["ipv6_label", "NXM_NX_IPV6_LABEL", "OXM_OF_IPV6_FLABEL"], "ipv6", "0xfffff"),
    (&["nw_proto", "ip_proto", "NXM_OF_IP_PROTO", "OXM_OF_IP_PROTO"], "ipv4", "89"),
    (&["nw_ttl", "NXM_NX_IP_TTL"], "ip", "255"),
    (&["ip_frag", "nw_frag", "NXM_NX_IP_FRAG"], "ip", "later"),
    (&["nw_tos", "NXM_OF_IP_TOS"], "ip", "253"),
    (&["ip_dscp", "OXM_OF_IP_DSCP"], "ip", "63"),
    (&["nw_ecn", "ip_ecn", "NXM_NX_IP_ECN", "OXM_OF_IP_ECN"], "ip", "3"),
    (&["arp_op", "NXM_OF_ARP_OP", "OXM_OF_ARP_OP"], "arp", "2"),
    (&["arp_spa", "NXM_OF_ARP_SPA", "OXM_OF_ARP_SPA"], "arp", "1.2.3.4"),
    (&["arp_tpa", "NXM_OF_ARP_TPA", "OXM_OF_ARP_TPA"], "rarp", "1.2.3.4"),
    (&["arp_sha", "NXM_NX_ARP_SHA", "OXM_OF_ARP_SHA"], "arp", "02:00:00:00:00:01"),
    (&["arp_tha", "NXM_NX_ARP_THA", "OXM_OF_ARP_THA"], "arp", "02:00:00:00:00:01"),
    (&["nsh_flags", "NXOXM_NSH_FLAGS"], "dl_type=0x894f", "2"),
    (&["nsh_ttl", "NXOXM_NSH_TTL"], "dl_type=0x894f", "63"),
    (&["nsh_mdtype", "NXOXM_NSH_MDTYPE"], "dl_type=0x894f", "1"),
    (&["nsh_np", "NXOXM_NSH_NP"], "dl_type=0x894f", "3"),
    (&["nsh_spi", "nsp", "NXOXM_NSH_SPI"], "dl_type=0x894f", "0xffffff"),
    (&["nsh_si", "nsi", "NXOXM_NSH_SI"], "dl_type=0x894f", "255"),
    (&["nsh_c1", "nshc1", "NXOXM_NSH_C1"], "dl_type=0x894f,nsh_mdtype=1", "5"),
    (&["nsh_c2", "nshc2", "NXOXM_NSH_C2"], "dl_type=0x894f,nsh_mdtype=1", "5"),
    (&["nsh_c3", "nshc3", "NXOXM_NSH_C3"], "dl_type=0x894f,nsh_mdtype=1", "5"),
    (&["nsh_c4", "nshc4", "NXOXM_NSH_C4"], "dl_type=0x894f,nsh_mdtype=1", "5"),
    (&["tcp_src", "tp_src", "NXM_OF_TCP_SRC", "OXM_OF_TCP_SRC"], "tcp", "5"),
    (&["tcp_dst", "tp_dst", "NXM_OF_TCP_DST", "OXM_OF_TCP_DST"], "tcp6", "5"),
    (&["tcp_flags", "NXM_NX_TCP_FLAGS", "OXM_OF_TCP_FLAGS", "ONFOXM_ET_TCP_FLAGS"], "tcp", "syn|ack"),
    (&["udp_src", "NXM_OF_UDP_SRC", "OXM_OF_UDP_SRC"], "udp", "5"),
    (&["udp_dst", "NXM_OF_UDP_DST", "OXM_OF_UDP_DST"], "udp6", "5"),
    (&["sctp_src", "OXM_OF_SCTP_SRC"], "sctp", "5"),
    (&["sctp_dst", "OXM_OF_SCTP_DST"], "sctp6", "5"),
    (&["icmp_type", "NXM_OF_ICMP_TYPE", "OXM_OF_ICMPV4_TYPE"], "icmp", "8"),
    (&["icmp_code", "NXM_OF_ICMP_CODE", "OXM_OF_ICMPV4_CODE"], "icmp", "5"),
    (&["icmpv6_type", "NXM_NX_ICMPV6_TYPE", "OXM_OF_ICMPV6_TYPE"], "icmp6", "135"),
    (&["icmpv6_code", "NXM_NX_ICMPV6_CODE", "OXM_OF_ICMPV6_CODE"], "icmp6", "5"),
    (&["nd_target", "NXM_NX_ND_TARGET", "OXM_OF_IPV6_ND_TARGET"], "icmp6,icmp_type=135", "fe80::1"),
    (&["nd_sll", "NXM_NX_ND_SLL", "OXM_OF_IPV6_ND_SLL"], "icmp6,icmp_type=135", "02:00:00:00:00:01"),
    (&["nd_tll", "NXM_NX_ND_TLL", "OXM_OF_IPV6_ND_TLL"], "icmp6,icmp_type=136", "02:00:00:00:00:01"),
    (&["nd_reserved", "ERICOXM_OF_ICMPV6_ND_RESERVED"], "icmp6,icmp_type=135", "4294967295"),
    (&["nd_options_type", "ERICOXM_OF_ICMPV6_ND_OPTIONS_TYPE"], "icmp6,icmp_type=136", "2"),
];

/// Returns the output of `ovs-ofctl` for a file of flows or messages. Prints a note and returns `None` if
/// `ovs-ofctl` is not installed.
fn print(what: &str, version: Version, content: &[u8]) -> Option<Vec<String>> {
    let path = temporary::path("");
    std::fs::write(&path, content).unwrap();
    let option = format!("OpenFlow1{}", version.minor());
    let output = Command::new("ovs-ofctl").args(["-O", &option, what]).arg(&path).output();
    let _ = std::fs::remove_file(&path);
    match output {
        Ok(output) => {
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{version} {what}: {error}");
            let printed = String::from_utf8_lossy(&output.stdout);
            let flows = printed.lines().filter(|line| line.contains("FLOW_MOD"));
            Some(flows.filter_map(|line| line.split_once("): ")).map(|(_, flow)| flow.to_owned()).collect())
        }
        Err(error) => {
            let required = std::env::var_os("BEEHIVE_REQUIRE_OVS").is_some_and(|value| value == "1");
            assert!(!required, "BEEHIVE_REQUIRE_OVS=1, but ovs-ofctl: {error}");
            eprintln!("SKIPPED: Open vSwitch did not check our fields: ovs-ofctl: {error}");
            None
        }
    }
}

/// Asserts that Open vSwitch interprets each text, our encoding of the text, and our displayed form of the
/// text in the same way. Returns `false` if Open vSwitch is not installed.
pub(crate) fn agree(texts: &[String], version: Version) -> bool {
    let (mut messages, mut shown) = (Vec::new(), String::new());
    for text in texts {
        let flow = Flow::parse(text, version).unwrap_or_else(|error| panic!("{version} {text}: {error}"));
        let mut out = BytesMut::new();
        flow.message().encode_into(version, 1, &mut out).unwrap_or_else(|error| panic!("{text}: {error}"));
        let message = message::Message::parse(Frame::whole(&out).unwrap()).unwrap();
        message.check_meaning(version).unwrap_or_else(|error| panic!("{version} {text}: {error}"));
        messages.extend(&out);
        shown += &format!("{flow}\n");
    }

    let Some(theirs) = print("parse-flows", version, texts.join("\n").as_bytes()) else { return false };
    let Some(judged) = print("ofp-parse", version, &messages) else { return false };
    let Some(again) = print("parse-flows", version, shown.as_bytes()) else { return false };
    assert_eq!((theirs.len(), judged.len(), again.len()), (texts.len(), texts.len(), texts.len()));

    let mut disagreements = String::new();
    for (index, text) in texts.iter().enumerate() {
        if theirs[index] != judged[index] || theirs[index] != again[index] {
            let shown = shown.lines().nth(index).unwrap();
            disagreements += &format!(
                "{version} {text}\n    theirs {}\n    judged {}\n    shown  {shown}\n    read   {}\n",
                theirs[index], judged[index], again[index]
            );
        }
    }

    assert!(disagreements.is_empty(), "\n{disagreements}");
    true
}

/// Returns whether this is a short name. As in actions, matches allow long names only with brackets.
fn is_short(name: &str) -> bool {
    name.starts_with(|letter: char| letter.is_ascii_lowercase())
}

#[test]
fn every_field_is_matched_by_every_name() {
    for version in [Version::V1_0, Version::V1_3, Version::V1_5] {
        let mut texts = Vec::new();
        for (names, needs, value) in FIELDS {
            // Open vSwitch supports `packet_type` from 1.5 on.
            if names[0] == "packet_type" && version < Version::V1_5 {
                continue;
            }
            for name in names.iter().filter(|name| is_short(name)) {
                texts.push(format!("{needs},{name}={value} actions=drop"));
            }
            // Our parser does not support matches on bits of tunnel options. Open vSwitch refuses brackets
            // after unmaskable fields that have fewer bits than their bytes hold, even if the brackets select
            // all bits. For `vlan_tci`, Open vSwitch prints text that it refuses itself.
            let narrow = ["vlan_pcp", "mpls_label", "mpls_tc", "mpls_bos", "ip_dscp", "nw_ecn", "nsh_spi"];
            let stumbles = narrow.contains(&names[0]) || names[0] == "vlan_tci";
            if stumbles || names[0].starts_with("tun_metadata") {
                continue;
            }
            for name in names.iter().filter(|name| !is_short(name)) {
                texts.push(format!("{needs},{name}[]=1 actions=drop"));
            }
        }

        if !agree(&texts, version) {
            return;
        }
    }
}

#[test]
fn every_field_is_named_in_actions_by_every_name_and_is_as_wide() {
    for version in [Version::V1_0, Version::V1_3, Version::V1_5] {
        let mut texts = Vec::new();
        for (names, needs, _) in FIELDS {
            // These fields cannot be copied, or only for tracked connections.
            if names[0] == "conj_id"
                || needs.contains("ct_state")
                || (names[0] == "packet_type" && version < Version::V1_5)
            {
                continue;
            }
            for name in *names {
                texts.push(format!("{needs} actions=push:{name}[],push:{name}[0]"));
            }
        }

        if !agree(&texts, version) {
            return;
        }
    }
}

#[test]
fn bits_of_fields_are_matched() {
    let texts = [
        "reg0[0..3]=5 actions=drop",
        "NXM_NX_REG0[0..3]=5,reg0[8]=1 actions=drop",
        "reg0[0..15]=0x1234,reg0[16..31]=0x5678 actions=drop",
        "NXM_OF_ETH_SRC[]=0x020000000001 actions=drop",
        "xxreg1[64..127]=0x123456789abcdef0 actions=drop",
        "tcp,OXM_OF_TCP_DST[0..7]=80 actions=drop",
        "ip,ip_src[24..31]=10 actions=drop",
        "ip,nw_src=*,tcp_src=*,dl_vlan=* actions=drop",
        "tcp,tcp_dst=0x50/0xfff0,tcp_src=1/1 actions=drop",
        "udp,tp_dst=0x50/0xfff0,udp_src=1/0xf actions=drop",
        "icmp6,icmp_type=135,nd_target=fe80::1/64,nd_sll=02:00:00:00:00:01/ff:ff:ff:00:00:00 actions=drop",
    ];
    agree(&texts.map(str::to_owned), Version::V1_3);
}

#[test]
fn a_mask_is_taken_where_open_vswitch_takes_one() {
    let mut disagreements = String::new();
    for (names, needs, value) in FIELDS {
        let value = value.split(['/', '|']).next().unwrap();
        if value.starts_with(|letter: char| letter.is_ascii_alphabetic() && !value.contains(':'))
            || value.starts_with('(')
            // No equivalent field for SCTP ports supports masks.
            || needs.starts_with("sctp")
        {
            continue;
        }
        let text = format!("{needs},{}={value}/{value} actions=drop", names[0]);
        let Ok(output) = Command::new("ovs-ofctl").args(["-O", "OpenFlow15", "parse-flow", &text]).output()
        else {
            eprintln!("SKIPPED: Open vSwitch did not check our masks: ovs-ofctl is not installed");
            return;
        };
        let ours = Flow::parse(&text, Version::V1_5);
        if ours.is_ok() != output.status.success() {
            disagreements += &format!("{text}: {ours:?}, {}\n", String::from_utf8_lossy(&output.stderr));
        }
    }

    assert!(disagreements.is_empty(), "\n{disagreements}");
}

#[test]
fn fields_of_nicira_are_told_by_the_names_that_matches_have() {
    let field = |class, number, value| OxmField { class, ..OxmField::basic(number, value) };

    // These are the fields as a 1.0 switch reports them.
    let list = [
        field(0, 0, &[0xff, 0xfe]),
        field(0, 2, &[2, 0, 0, 0, 0, 1]),
        field(0, 3, &[8, 6]),
        field(0, 15, &[0, 1]),
        field(0, 16, &[1, 2, 3, 4]),
        field(1, 18, &[2, 0, 0, 0, 0, 2]),
    ];
    let fields = message::Match::Fields(OxmFields((&list).into()));
    let told = show_fields(&fields, Version::V1_0).to_string();
    let wanted =
        "in_port=65534,eth_src=02:00:00:00:00:01,arp,arp_op=1,arp_spa=1.2.3.4,arp_tha=02:00:00:00:00:02";
    assert_eq!(told, wanted);
    agree(&[format!("{wanted} actions=drop")], Version::V1_0);
}
