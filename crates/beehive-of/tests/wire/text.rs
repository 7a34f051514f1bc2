//! Compares how this crate parses and displays flows with how Open vSwitch does.

use std::process::Command;

use beehive_of::message::{
    Canonical, Counter, Extended, FlowCounters, FlowEntry, Match, Message, NiciraMessage,
};
use beehive_of::text::{Flow, Problem, show_entry, show_flow, show_program};
use beehive_of::{EncodeError, Frame, Version, message};
use bytes::BytesMut;

use crate::corpus::hex;

/// Flows, each with the minor numbers of the versions that can express it.
pub(crate) const FLOWS: &[(&str, std::ops::RangeInclusive<u8>)] = &[
    ("actions=drop", 0..=5),
    ("tcp,tp_src=123,actions=flood", 0..=5),
    ("in_port=LOCAL dl_vlan=9 dl_src=00:0A:E4:25:6B:B0 actions=drop", 0..=5),
    ("dl_vlan=0xffff,actions=normal", 0..=5),
    ("dl_vlan=7,dl_vlan_pcp=5,actions=strip_vlan,output:2", 0..=5),
    ("arp,dl_src=00:0A:E4:25:6B:B0,arp_op=1,nw_src=10.0.0.1,nw_dst=10.0.0.0/24 actions=all", 0..=5),
    ("arp,arp_sha=00:0A:E4:25:6B:B0 actions=drop", 0..=0),
    ("arp,arp_sha=00:0A:E4:25:6B:B0 actions=drop", 2..=5),
    ("ip,nw_tos=8,nw_src=10.0.0.0/8 actions=mod_nw_tos:4,mod_vlan_vid:5,mod_vlan_pcp:3,output:2", 0..=0),
    ("ip,nw_tos=8,nw_src=10.0.0.0/8 actions=mod_nw_tos:4,mod_vlan_vid:5,mod_vlan_pcp:3,output:2", 2..=5),
    ("ip,nw_src=10.0.0.0/255.0.255.0 actions=output:2", 1..=5),
    ("ip,dl_vlan=7,actions=set_vlan_vid:8,set_vlan_pcp:3,in_port", 1..=5),
    ("priority=7,idle_timeout=9,hard_timeout=10,cookie=0x1234,udp,tp_dst=53,actions=controller:128", 0..=5),
    ("send_flow_rem,check_overlap,icmp,icmp_type=8,icmp_code=0,actions=local", 0..=5),
    ("sctp,tp_dst=80,actions=output:1", 1..=5),
    ("tcp6,tp_dst=80,ipv6_src=fe80::/64,ipv6_label=5,actions=output:1", 2..=5),
    ("icmp6,icmp_type=135,nd_target=FEC0::1234:F045:8FFF:1111:FE4E:0571 actions=drop", 0..=0),
    ("icmp6,icmp_type=135,nd_target=FEC0::1234:F045:8FFF:1111:FE4E:0571 actions=drop", 2..=5),
    ("tcp,tp_src=0x10/0xfff0,tcp_flags=+syn-ack actions=drop", 2..=5),
    ("metadata=0x12/0xff,mpls,mpls_label=5,mpls_tc=2,mpls_bos=1 actions=drop", 3..=5),
    ("tun_id=0x5/0xff,reg0=1,reg15=0x10/0x10,pkt_mark=7 actions=drop", 3..=5),
    ("reg0=1,tun_src=1.2.3.4,ip,ip_frag=first,nw_ttl=9,nw_ecn=2 actions=drop", 0..=0),
    ("reg0=1,tun_src=1.2.3.4,ip,ip_frag=not_later,nw_ttl=9,nw_ecn=2 actions=drop", 2..=5),
    (
        "xreg0=0x123456789,xxreg1=0x1/0xff,tcp,ct_state=+trk-new,ct_zone=5,ct_mark=1/1,ct_label=0x5 actions=drop",
        3..=5,
    ),
    ("vlan_tci=0x1123/0x1fff actions=drop", 0..=0),
    ("vlan_tci=0x1000/0x1000 actions=drop", 2..=5),
    ("dl_dst=01:00:00:00:00:00/01:00:00:00:00:00 actions=drop", 1..=5),
    ("dl_type=0x1234 actions=drop", 0..=5),
    ("ip,nw_proto=89 actions=drop", 0..=5),
    (
        "tcp actions=mod_dl_src:02:00:00:00:00:01,mod_dl_dst:02:00:00:00:00:02,mod_nw_src:1.2.3.4,mod_nw_dst:1.2.3.5,mod_tp_src:80,mod_tp_dst:81,output:2",
        0..=5,
    ),
    ("ip actions=mod_nw_ecn:2,mod_nw_ttl:9,dec_ttl,dec_ttl(1,2),2", 1..=5),
    ("ip actions=mod_nw_ttl:9,dec_ttl,dec_ttl(1,2),2", 0..=5),
    ("actions=enqueue:2:5", 0..=0),
    ("actions=set_queue:5,output:2,pop_queue", 0..=5),
    ("actions=group:7", 1..=5),
    (
        "actions=set_tunnel:0x5,set_tunnel64:0x123456789,resubmit:3,resubmit(,5),resubmit(2,5),resubmit(2,)",
        0..=4,
    ),
    ("ct_state=+trk+est,tcp actions=resubmit(2,5,ct)", 0..=0),
    ("ct_state=+trk+est,tcp actions=resubmit(2,5,ct)", 2..=5),
    (
        "ip actions=ct_clear,ct(),ct(commit,force,zone=5,nat(src=10.0.0.1-10.0.0.9:100-200,random)),ct(table=1,zone=reg0[0..15],nat)",
        0..=5,
    ),
    (
        "ipv6 actions=ct(commit,nat(dst=[fe80::1]-[fe80::9]:80,hash)),ct(commit,nat(src=fe80::1,persistent))",
        2..=5,
    ),
    ("tcp actions=ct(commit,alg=ftp,exec(set_field:5->ct_mark))", 2..=4),
    (
        "actions=learn(table=1,hard_timeout=60,NXM_OF_VLAN_TCI[0..11],NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[]),flood",
        0..=5,
    ),
    (
        "actions=learn(table=2,idle_timeout=10,priority=5,cookie=0x9,send_flow_rem,limit=5,eth_type=0x800,load:7->reg0[0..3],load:reg1[4..7]->reg2[0..3],result_dst=reg0[8])",
        2..=5,
    ),
    ("actions=exit", 0..=5),
    ("actions=note:01.02.0a,note:", 0..=5),
    (
        "actions=push:reg0[4..9],pop:NXM_NX_REG1[],move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],load:0x5->NXM_NX_REG0[4..11]",
        0..=4,
    ),
    ("actions=move:reg0[0..7]->reg1[8..15],load:0x5->reg0[4..11],load:7->xreg0[]", 5..=5),
    ("tcp actions=fin_timeout(idle_timeout=10,hard_timeout=20)", 0..=5),
    ("conj_id=5 actions=drop", 2..=5),
    ("in_port=1 actions=conjunction(5,1/3),conjunction(6,2/2)", 0..=5),
    (
        "actions=multipath(eth_src,50,modulo_n,5,0,NXM_NX_REG0[]),bundle(symmetric_l4,7,hrw,ofport,members:4,8)",
        0..=5,
    ),
    ("actions=bundle_load(symmetric_l3l4+udp,0,active_backup,ofport,NXM_NX_REG0[0..15],slaves:1,2,3)", 0..=5),
    (
        "actions=output:NXM_NX_REG0[0..15],output(port=2,max_len=100),clone(output:2,push_vlan:0x8100,output:3)",
        1..=5,
    ),
    (
        "actions=controller(reason=invalid_ttl,max_len=123,id=555),controller(userdata=01.02.03,pause),controller(max_len=7)",
        0..=5,
    ),
    (
        "actions=sample(probability=1,collector_set_id=2,obs_domain_id=3,obs_point_id=4),sample(probability=1,collector_set_id=2,obs_domain_id=3,obs_point_id=4,sampling_port=5,egress)",
        0..=5,
    ),
    ("actions=check_pkt_larger(1000)->reg0[0],output:2", 0..=5),
    ("actions=push_vlan:0x8100,set_field:0x1009->vlan_vid,set_field:3->vlan_pcp,output:2", 2..=5),
    (
        "tcp actions=set_field:02:00:00:00:00:09->eth_dst,set_field:1.2.3.4->ip_src,set_field:80->tcp_dst,set_field:9->ip_dscp",
        1..=5,
    ),
    ("ipv6 actions=set_field:fe80::1->ipv6_src,set_field:0x5->tun_id,set_field:0x10/0xff->reg0", 2..=5),
    ("mpls actions=dec_mpls_ttl,set_mpls_ttl:9,pop_mpls:0x0800", 0..=5),
    ("ip actions=push_mpls:0x8847,set_field:10->mpls_label,set_field:4->mpls_tc", 2..=5),
    (
        "actions=output:1,clear_actions,write_actions(group:5,output:2),write_metadata:0x12/0xff,goto_table:7",
        1..=5,
    ),
    ("table=3,actions=write_metadata:0x12,goto_table:7", 1..=5),
    ("actions=meter:5,output:1", 3..=5),
    ("actions=encap(ethernet),encap(mpls),encap(mpls_mc),encap(nsh),decap,decap()", 3..=5),
    (
        "actions=encap(nsh(md_type=2,tlv(0x1000,10,0x12345678),tlv(0x2000,20,0xfedcba9876543210))),encap(nsh(md_type=1))",
        3..=5,
    ),
    ("actions=decap(packet_type(ns=1,type=0x800)),encap(nsh),decap(packet_type(ns=0,type=0))", 3..=5),
    ("tun_metadata0=0x1234,tun_metadata1=0x1234/0xffff,tun_metadata63=0x5,tun_metadata3 actions=drop", 0..=0),
    ("tun_metadata0=0x1234,tun_metadata1=0x1234/0xffff,tun_metadata63=0x5,tun_metadata3 actions=drop", 2..=5),
    ("tun_metadata3=0x0000/0x0000 actions=drop", 2..=5),
    ("tun_metadata3=0 actions=drop", 2..=5),
    (
        "tun_metadata7=0x0102030405060708090a0b0c0d0e0f10111213141516 actions=delete_field:tun_metadata7",
        2..=5,
    ),
    // In 1.1, Open vSwitch cannot parse `set_field` with a tunnel option.
    ("actions=delete_field:tun_metadata1,move:tun_metadata0[0..31]->reg0[]", 0..=5),
    ("actions=delete_field:tun_metadata1,set_field:0x1234->tun_metadata2", 0..=0),
    ("actions=delete_field:tun_metadata1,set_field:0x1234->tun_metadata2", 2..=5),
    ("actions=set_field:0x12/0xff->tun_metadata2", 0..=0),
    ("actions=set_field:0x12/0xff->tun_metadata2", 2..=5),
    ("actions=load:5->tun_metadata0[0..31],load:1->NXM_NX_TUN_METADATA1[8..9]", 0..=5),
    ("dp_hash=0x5/0xf,recirc_id=3,tun_flags=+oam,tun_gbp_id=5,tun_gbp_flags=3 actions=drop", 0..=0),
    ("dp_hash=0x5/0xf,recirc_id=3,tun_flags=+oam,tun_gbp_id=5,tun_gbp_flags=3 actions=drop", 2..=5),
    (
        "dl_type=0x894f,nsh_mdtype=1,nsh_ttl=63,nsh_np=3,nsh_si=255,nsh_c4=0x1/0xff,nsh_spi=0x123 actions=drop",
        3..=5,
    ),
    ("dl_type=0x894f,nsh_flags=2 actions=set_field:4->nsh_ttl,dec_nsh_ttl,move:nsh_c1[]->reg0[]", 3..=4),
    ("mpls actions=set_mpls_label:5,set_mpls_tc:3", 0..=5),
    ("actions=controller(meter_id=5),controller(reason=no_match,max_len=9,meter_id=6)", 0..=5),
    (
        "actions=learn(table=1,fin_idle_timeout=10,fin_hard_timeout=20,delete_learned,NXM_OF_VLAN_TCI[0..11])",
        0..=5,
    ),
    ("ipv6,ipv6_src=2001:db8::/32 actions=drop", 0..=0),
    ("ip,nw_src=10.0.0.1/255.255.0.255 actions=drop", 0..=0),
    ("actions=enqueue:LOCAL:4,enqueue(3,4)", 1..=5),
    ("actions=goto_table:3", 0..=5),
    ("ip actions=dec_ttl(),clone(drop),controller(userdata=),note:001122", 1..=5),
    ("actions=set_field:3->in_port,output:in_port", 0..=5),
    (
        "tcp actions=set_field:80->tp_src,move:tp_dst[]->reg0[0..15],bundle(eth_src,0,hrw,ofport,members:)",
        0..=5,
    ),
    (
        "actions=learn(priority=1,in_port=99,eth_type=0x800,nw_proto=6,ip_src=1.2.3.4,tcp_src[0..7]=80,load:NXM_OF_IN_PORT[]->reg0[0..15])",
        0..=5,
    ),
    ("actions=learn(eth_type=0x86dd,ipv6_src=fe80::1,eth_src=02:00:00:00:00:01)", 0..=5),
    ("actions=set_field:1->tun_erspan_ver,set_field:5->tun_erspan_idx", 0..=0),
    ("actions=set_field:1->tun_erspan_ver,set_field:5->tun_erspan_idx", 2..=5),
    (
        "actions=load:5->tun_erspan_idx[],output:tun_erspan_idx[0..15],move:tun_erspan_idx[]->reg0[0..19]",
        2..=4,
    ),
    ("actions=load:5->tun_erspan_idx[0..3],set_field:0x5/0xf->tun_erspan_idx", 2..=4),
    ("mpls actions=set_field:4->mpls_ttl", 0..=0),
    ("mpls actions=set_field:4->mpls_ttl", 2..=5),
    ("icmp6,icmp_type=136 actions=set_field:5->nd_reserved,set_field:2->nd_options_type", 2..=5),
    ("importance=9,reset_counts,no_packet_counts,no_byte_counts,actions=drop", 4..=5),
];

pub(crate) fn ovs(arguments: &[&str]) -> Option<Result<String, String>> {
    match Command::new("ovs-ofctl").args(arguments).output() {
        Ok(output) if output.status.success() => {
            Some(Ok(String::from_utf8_lossy(&output.stdout).into_owned()))
        }
        Ok(output) => Some(Err(String::from_utf8_lossy(&output.stderr).into_owned())),
        Err(error) => {
            let required = std::env::var_os("BEEHIVE_REQUIRE_OVS").is_some_and(|value| value == "1");
            assert!(!required, "BEEHIVE_REQUIRE_OVS=1, but ovs-ofctl: {error}");
            eprintln!("SKIPPED: Open vSwitch did not check our text: ovs-ofctl: {error}");
            None
        }
    }
}

/// Returns the flow in the output of `ovs-ofctl`: the text after the name of the message.
fn flow_of(printed: &str) -> String {
    let line = printed.lines().find(|line| line.contains("FLOW_MOD")).unwrap_or(printed);
    line.split_once("): ").map_or(line, |(_, flow)| flow).trim().to_owned()
}

fn encoded(flow: &Flow, version: Version) -> Vec<u8> {
    let mut out = BytesMut::new();
    flow.message().encode_into(version, 1, &mut out).unwrap_or_else(|error| panic!("{flow}: {error}"));
    out.to_vec()
}

#[test]
fn open_vswitch_makes_the_same_of_the_text_and_of_the_message_and_of_the_text_again() {
    let mut disagreements = String::new();
    for version in Version::ALL {
        let option = format!("OpenFlow1{}", version.minor());
        for (text, versions) in FLOWS {
            if !versions.contains(&version.minor()) {
                continue;
            }
            let flow = match Flow::parse(text, version) {
                Ok(flow) => flow,
                Err(error) => {
                    disagreements += &format!("{version} {text}\n    we: {error}\n");
                    continue;
                }
            };
            let Some(theirs) = ovs(&["-O", &option, "parse-flow", text]) else { return };
            let Some(judged) = ovs(&["ofp-print", &hex(&encoded(&flow, version))]) else { return };
            let again = flow.to_string();
            let Some(read_again) = ovs(&["-O", &option, "parse-flow", &again]) else { return };
            let (theirs, judged, read_again) = (
                theirs.map(|text| flow_of(&text)),
                judged.map(|text| flow_of(&text)),
                read_again.map(|text| flow_of(&text)),
            );
            if theirs.is_err() || theirs != judged || theirs != read_again {
                disagreements += &format!(
                    "{version} {text}\n    theirs {theirs:?}\n    judged {judged:?}\n    shown  {again}\n    read   {read_again:?}\n"
                );
            }
        }
    }

    assert!(disagreements.is_empty(), "\n{disagreements}");
}

#[test]
fn what_is_written_is_read_as_the_same_flow() {
    for version in Version::ALL {
        for (text, versions) in FLOWS {
            if !versions.contains(&version.minor()) {
                continue;
            }
            let flow = Flow::parse(text, version).unwrap();
            let shown = flow.to_string();
            let again = Flow::parse(&shown, version).unwrap_or_else(|error| panic!("{shown}: {error}"));
            assert_eq!(encoded(&again, version), encoded(&flow, version), "{version} {text}: {shown}");
            // The decoded message is displayed in the same way.
            let bytes = encoded(&flow, version);
            let message = message::Message::parse(Frame::whole(&bytes).unwrap()).unwrap();
            message.check(version).unwrap();
            if let message::Message::FlowMod(decoded) = message {
                let told = show_flow(&decoded, version).to_string();
                let again = Flow::parse(&told, version).unwrap_or_else(|error| panic!("{told}: {error}"));
                assert_eq!(encoded(&again, version), bytes, "{version} {text}: {told}");
            }
        }
    }
}

const IMPORTANCE: Problem =
    Problem::Version(EncodeError::Unsupported { version: Version::V1_3, field: "importance" });

#[test]
fn a_long_token_is_told_in_part() {
    let name = "ä".repeat(50_000);
    let text = format!("{name}=1,actions=drop");
    let error = Flow::parse(&text, Version::V1_3).unwrap_err();
    assert_eq!(error.token(), name);
    let shown = "ä".repeat(40);
    assert_eq!(error.to_string(), format!("`{shown}…` at character 1 is not a known field or option"));
    let text = format!("{shown}=1,actions=drop");
    let error = Flow::parse(&text, Version::V1_3).unwrap_err();
    assert_eq!(error.to_string(), format!("`{shown}` at character 1 is not a known field or option"));
}

#[test]
fn errors_name_the_token_and_its_place() {
    for (text, token, position, problem) in [
        ("in_prot=3,actions=drop", "in_prot", 1, Problem::Name),
        ("tcp,tp_dst=http,actions=drop", "http", 12, Problem::Value),
        ("tcp,tp_dst=65536,actions=drop", "65536", 12, Problem::Value),
        ("ip,nw_src=10.0.0.0/33,actions=drop", "10.0.0.0/33", 11, Problem::Value),
        ("tp_dst=80,actions=drop", "tp_dst=80", 1, Problem::Prerequisite),
        ("tcp,udp,actions=drop", "udp", 5, Problem::Twice),
        ("reg0=1,reg0=2,actions=drop", "reg0=2", 8, Problem::Twice),
        ("xreg0=1,reg1=1,actions=drop", "xreg0=1", 1, Problem::Twice),
        ("dl_vlan=1,vlan_tci=0x1001,actions=drop", "vlan_tci=0x1001", 11, Problem::Twice),
        ("dl_vlan=0xffff,dl_vlan_pcp=1,actions=drop", "dl_vlan_pcp=1", 16, Problem::Prerequisite),
        ("arp,nw_ttl=1,actions=drop", "nw_ttl=1", 5, Problem::Prerequisite),
        ("sctp,sctp_dst=1/1,actions=drop", "1/1", 15, Problem::Mask),
        ("out_port=1,actions=drop", "out_port=1", 1, Problem::Command),
        ("cookie=1/1,actions=drop", "1/1", 8, Problem::Mask),
        ("importance=1,actions=drop", "importance=1", 1, IMPORTANCE),
        ("in_port=1/2,actions=drop", "1/2", 9, Problem::Mask),
        ("tun_metadata0=0x0g,actions=drop", "0x0g", 15, Problem::Value),
        ("tun_metadata0=0x,actions=drop", "0x", 15, Problem::Value),
        ("tun_metadata0=1/0x,actions=drop", "1/0x", 15, Problem::Value),
        ("tun_metadata64=1,actions=drop", "tun_metadata64", 1, Problem::Name),
        ("actions=encap(ipv4)", "ipv4", 15, Problem::Name),
        ("actions=encap(nsh(tlv(1,2)))", "1,2", 23, Problem::Value),
        ("actions=decap(packet_type(ns=1))", "packet_type(ns=1)", 15, Problem::MissingValue),
        ("actions=delete_field:reg0", "reg0", 22, Problem::Name),
        ("reg0[3..40]=1,actions=drop", "reg0[3..40]", 1, Problem::Value),
        ("reg0[0..3]=16,actions=drop", "16", 12, Problem::Value),
        ("reg0[0..3]=1,reg0[3]=1,actions=drop", "reg0[3]=1", 14, Problem::Twice),
        ("recirc_id[0]=1,actions=drop", "recirc_id[0]", 1, Problem::Mask),
        ("tun_metadata0[0]=1,actions=drop", "tun_metadata0[0]", 1, Problem::Name),
        ("tcp,tcp_flags=syn|fun,actions=drop", "syn|fun", 15, Problem::Value),
        ("nsh_si=1/1,actions=drop", "1/1", 8, Problem::Mask),
        ("tun_erspan_idx=0x100000,actions=drop", "0x100000", 16, Problem::Value),
        ("in_port=,actions=drop", "in_port=", 1, Problem::MissingValue),
        ("in_port=1", "in_port=1", 1, Problem::NoActions),
        ("reg0,actions=drop", "reg0", 1, Problem::MissingValue),
        ("actions=drop(1)", "1", 14, Problem::Value),
        ("actions=drop;output:1", "drop;output", 9, Problem::Action),
        ("actions=ct(commit)hop:1", "hop", 19, Problem::Action),
        ("actions=set_queue", "set_queue", 9, Problem::MissingValue),
        ("actions=HOVER:2", "HOVER", 9, Problem::Action),
        ("actions=strip_vlan:2", "2", 20, Problem::Value),
        ("actions=check_pkt_larger(9)->reg0[0..1]", "reg0[0..1]", 30, Problem::Value),
        ("actions=ct(table=255)", "255", 18, Problem::Value),
        ("actions=ct(commit,exec(output:1))", "output:1", 24, Problem::Place),
        ("actions=ct(force)", "force", 12, Problem::Place),
        ("actions=ct(zone=1,zone=2)", "zone=2", 19, Problem::Twice),
        ("actions=goto_table:1,output:2", "output:2", 22, Problem::Order),
        ("actions=goto_table:1,goto_table:2", "goto_table:2", 22, Problem::Twice),
        ("actions=conjunction(1,1/2),output:2", "output:2", 28, Problem::Place),
        ("actions=set_field:6->nw_proto", "nw_proto", 22, Problem::ReadOnly),
        ("actions=learn(reg0[0..3]=16)", "16", 26, Problem::Value),
        ("actions=output:1,fly", "fly", 18, Problem::Action),
        ("actions=drop,output:1", "drop,output:1", 9, Problem::Value),
        ("actions=clone(output:1,hover:2)", "hover", 24, Problem::Action),
        ("actions=ct(zone=5", "ct(zone=5", 9, Problem::Parentheses),
        ("mpls,actions=set_field:8->mpls_tc", "8", 24, Problem::Value),
        ("ip,actions=set_field:64->ip_dscp", "64", 22, Problem::Value),
        ("ip,actions=set_field:1/0x40->ip_dscp", "1/0x40", 22, Problem::Value),
        ("dl_vlan=1,actions=set_field:0x2000->vlan_vid", "0x2000", 29, Problem::Value),
        ("actions=load:256->reg0[0..7]", "256->reg0[0..7]", 14, Problem::Value),
        ("actions=move:reg0[]->reg99[]", "reg99", 22, Problem::Name),
        ("ip,nw_src=ä,actions=drop", "ä", 11, Problem::Value),
        ("priority=70000,actions=drop", "70000", 10, Problem::Value),
    ] {
        let error = Flow::parse(text, Version::V1_3).expect_err(text);
        assert_eq!((error.token(), error.position(), error.problem()), (token, position, problem), "{text}");
        assert!(error.to_string().contains(&position.to_string()), "{error}");
    }

    let error = Flow::parse("actions=group:1,push_vlan:0x8100", Version::V1_0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`push_vlan:0x8100` at character 17 cannot be encoded: OpenFlow 1.0 cannot express push_vlan"
    );

    let error = Flow::parse("actions=write_metadata:1,goto_table:1", Version::V1_0).unwrap_err();
    assert_eq!((error.token(), error.problem()), ("goto_table:1", Problem::Order));

    let error = Flow::parse("reg0=5,actions=drop", Version::V1_1).unwrap_err();
    assert_eq!(error.token(), "reg0=5");
}

#[test]
fn no_bits_at_all_are_told_without_a_panic() {
    let field = beehive_of::oxm::FieldId { class: 0x8000, number: 3, length: 6, ..Default::default() };
    let copy = message::CopyField { source: field, destination: field, ..Default::default() };
    let actions = [message::Action::CopyField(copy)];
    let told = beehive_of::text::show_actions(&(&actions).into(), Version::V1_5).to_string();
    assert_eq!(told, "move:eth_dst[0..0]->eth_dst[0..0]");
}

#[test]
fn what_nobody_knows_is_told_and_read_again() {
    for version in Version::ALL {
        let text = "actions=experimenter(0x00abcdef:0202020202020202),drop";
        assert!(Flow::parse(text, version).is_err(), "`drop` must be the only action");
        let text = "actions=experimenter(0x00abcdef:0202020202020202)";
        let flow = Flow::parse(text, version).unwrap();
        assert_eq!(flow.to_string(), text);
        let again = Flow::parse(text, version).unwrap();
        assert_eq!(encoded(&again, version), encoded(&flow, version));
    }
    for text in ["0x2320:0001000000000000", "5:01", "5:0g00000000000000", "0x00abcdef"] {
        Flow::parse(&format!("actions=experimenter({text})"), Version::V1_3).unwrap_err();
    }
}

#[test]
fn fragments_that_are_none_are_refused_or_told_as_they_are() {
    let error = Flow::parse("nw_frag=4 actions=drop", Version::V1_3).unwrap_err();
    assert_eq!(error.token(), "4");
    // A message can contain such a number nevertheless.
    let field = beehive_of::oxm::OxmField { class: 1, ..beehive_of::oxm::OxmField::basic(26, &[4]) };
    let list = [field];
    let fields = beehive_of::oxm::OxmFields((&list).into());
    let told = beehive_of::text::show_fields(&message::Match::Fields(fields), Version::V1_3).to_string();
    assert_eq!(told, "ip_frag=0x4");
}

#[test]
fn a_translation_of_no_end_or_of_both_is_told_as_it_is() {
    use message::{Action, ConnectionTracking, Extended, Nat, NatFlags, NiciraAction};
    let ends = NatFlags::SRC.with(NatFlags::DST);
    for (flags, told) in [
        (NatFlags::default(), "ct(nat)"),
        (NatFlags::PROTO_HASH, "ct(nat(hash))"),
        (ends, "ct(nat(src,dst))"),
        (ends.with(NatFlags::PROTO_RANDOM), "ct(nat(src,dst,random))"),
    ] {
        let nat =
            [Action::Experimenter(Extended::Nicira(NiciraAction::Nat(Nat { flags, ..Nat::default() })))];
        let tracked = ConnectionTracking { actions: (&nat).into(), ..ConnectionTracking::default() };
        let actions = [Action::Experimenter(Extended::Nicira(NiciraAction::ConnectionTracking(tracked)))];
        assert_eq!(beehive_of::text::show_actions(&(&actions).into(), Version::V1_3).to_string(), told);
        // Both Open vSwitch and our parser refuse all of these sets of flags, except the empty set.
        let read = Flow::parse(&format!("ip actions={told}"), Version::V1_3).is_ok();
        assert_eq!(read, flags == NatFlags::default(), "{told}");
    }
}

#[test]
fn broken_text_is_an_error_or_another_flow_and_never_a_panic() {
    let letters = ['(', ')', '[', ']', ',', ':', '=', '/', '-', '+', '0', '9', 'x', ' ', '.', '>', 'ä', '\0'];
    for (text, versions) in FLOWS {
        let version = Version::ALL[usize::from(*versions.end())];
        let read = |text: &str| {
            if let Ok(flow) = Flow::parse(text, version) {
                let mut out = BytesMut::new();
                if flow.message().encode_into(version, 1, &mut out).is_ok() {
                    let message = message::Message::parse(Frame::whole(&out).unwrap()).unwrap();
                    let _ = message.check(version);
                }
                let _ = flow.to_string();
            }
            let _ = Flow::parse_deletion(text, version, false);
        };
        for at in text.char_indices().map(|(at, _)| at) {
            read(&text[..at]);
            read(&text[at..]);
            for letter in letters {
                let mut changed = text.to_string();
                changed.replace_range(at..=at, &letter.to_string());
                read(&changed);
            }
        }
    }

    // The nesting limit prevents a stack overflow.
    let deep = format!("actions={}drop{}", "clone(".repeat(20_000), ")".repeat(20_000));
    assert!(Flow::parse(&deep, Version::V1_3).is_err());
}

/// The displayed name of a field does not depend on the class in the parsed name, because all equivalent
/// fields share one name.
#[test]
fn what_is_named_by_its_class_is_written_by_its_meaning() {
    let names = ["ONFOXM_ET_ACTSET_OUTPUT=89", "tcp,ONFOXM_ET_TCP_FLAGS=2", "tcp,NXM_NX_TCP_FLAGS=2"];
    let more = [
        "NXM_OF_ETH_DST=02:00:00:00:00:01",
        "NXM_NX_TUN_ID=7",
        "NXOXM_ET_DP_HASH=9",
        "ip,NXM_OF_IP_SRC=10.0.0.1",
    ];
    for (name, version) in
        names.iter().chain(&more).flat_map(|name| (0..6u8).map(move |version| (name, version)))
    {
        crate::harness::text(&[&[version], format!("{name} actions=drop").as_bytes()].concat());
    }
}

#[test]
fn names_of_ports_and_actions_that_1_0_lacks_are_told_as_such() {
    for version in Version::ALL {
        let error = Flow::parse("in_port=1 actions=output:eth1", version).unwrap_err();
        assert_eq!((error.token(), error.problem()), ("eth1", Problem::Port), "{version}");
    }
    for action in ["meter:3", "clear_actions", "write_actions(output:1)"] {
        let text = format!("actions={action}");
        let error = Flow::parse(&text, Version::V1_0).unwrap_err();
        assert!(error.to_string().contains("OpenFlow 1.0 cannot express "), "{error}");
    }
}

/// The encoding and the comparison of a flow do not depend on the message in which the flow is encoded.
#[test]
fn a_flow_is_encoded_and_compared_as_it_is_whatever_its_message() {
    for text in ["priority=7,tcp,tp_dst=80 actions=output:2", "ipv6,ipv6_dst=fe80::1,reg0=7 actions=output:2"]
    {
        // 1.1 supports neither the fields nor Nicira's message.
        let versions = Version::ALL.into_iter().filter(|version| *version != Version::V1_1);
        let flows: Vec<Flow> = versions.map(|version| Flow::parse(text, version).unwrap()).collect();
        for flow in &flows {
            let (mut out, mut expected) = (BytesMut::new(), BytesMut::new());
            flow.encode_into(7, &mut out).unwrap();
            flow.message().encode_into(flow.version(), 7, &mut expected).unwrap();
            assert_eq!(out, expected, "{text}");
            assert_eq!(flow.canonical_match(), flows[4].canonical_match(), "{text}");
            assert_eq!(flow.canonical_program(), flows[4].canonical_program(), "{text}");
        }

        let flow = &flows[0];
        let of_message = match flow.message() {
            Message::FlowMod(sent) => Canonical::of_match(&sent.match_fields),
            Message::Experimenter(Extended::Nicira(NiciraMessage::FlowMod(sent))) => {
                Canonical::of_match(&Match::Fields(sent.match_fields))
            }
            other => panic!("{other:?}"),
        };

        assert_eq!(flow.canonical_match(), of_message, "{text}");
    }
}

#[test]
fn an_entry_is_told_in_every_version_and_read_again() {
    let counters = [
        (0, &[0, 0, 0, 9, 0x1d, 0xcd, 0x65, 0][..]),
        (4, &[0, 0, 0, 0, 0, 0, 0, 3]),
        (5, &[0, 0, 0, 0, 0, 0, 0, 180]),
    ]
    .map(|(number, value)| Counter { class: 0x8002, number, value });
    for version in Version::ALL {
        let text = "idle_timeout=5,priority=7,tcp,tp_dst=80 actions=output:2";
        let flow = Flow::parse(text, version).unwrap();
        let Message::FlowMod(sent) = flow.message() else { panic!("{text}") };
        let mut entry = FlowEntry {
            idle_timeout: 5,
            priority: 7,
            match_fields: sent.match_fields,
            actions: sent.actions,
            instructions: sent.instructions,
            ..Default::default()
        };
        match version {
            Version::V1_5 => entry.counters = FlowCounters((&counters).into()),
            _ => {
                (entry.duration_sec, entry.duration_nsec) = (9, 500_000_000);
                (entry.packet_count, entry.byte_count) = (3, 180);
            }
        }
        let told = show_entry(&entry, version).to_string();
        let expected = "duration=9.500s,n_packets=3,n_bytes=180,idle_timeout=5,priority=7,tcp,tcp_dst=80 actions=output:2";
        assert_eq!(told, expected, "{version}");
        assert_eq!(Flow::parse(&told, version).as_ref(), Ok(&flow));
        assert_eq!(show_program(&entry.actions, &entry.instructions, version).to_string(), "output:2");
    }
}
