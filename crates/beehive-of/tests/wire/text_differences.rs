//! Compares our parser with `ovs-ofctl` on a bounded grammar, and checks that our parser refuses text that
//! `ovs-ofctl` misinterprets.

use beehive_of::text::{Flow, Problem, show_flow};
use beehive_of::{EncodeError, Version, message};

use crate::text::ovs;
use crate::text_fields::agree;

/// Flows with numbers that may be decimal, octal or hexadecimal. `#` stands for the number.
const NUMBERS: &[&str] = &[
    "priority=# actions=drop",
    "idle_timeout=#,hard_timeout=# actions=drop",
    "cookie=# actions=drop",
    "reg0=# actions=drop",
    "reg0=0xff/# actions=drop",
    "reg0[0..15]=# actions=drop",
    "metadata=# actions=drop",
    "tun_id=#/0xff actions=drop",
    "dl_vlan=# actions=drop",
    "ip,nw_ttl=#,nw_tos=# actions=drop",
    "tcp,tp_src=# actions=drop",
    "tcp,tp_dst=#/0xfff0 actions=drop",
    "udp6,udp_src=#/0x1f actions=drop",
    "mpls,mpls_label=# actions=drop",
    "actions=set_queue:#,group:#",
    "actions=write_metadata:#/0xff",
    "actions=controller(max_len=#,id=#,meter_id=#)",
    "actions=load:#->reg0[],load:#->xxreg0[],set_field:#->reg1,set_field:#/0x1f->reg2",
    "tcp actions=mod_nw_ttl:#,set_nw_ttl:#,mod_tp_src:#,mod_vlan_vid:#",
    "tcp actions=ct(commit,zone=#,exec(load:#->ct_mark[]))",
    "tcp actions=fin_timeout(idle_timeout=#,hard_timeout=#)",
    "actions=conjunction(#,1/2)",
    "actions=sample(probability=#,collector_set_id=#,obs_domain_id=#,obs_point_id=#)",
    "actions=check_pkt_larger(#)->reg0[0],check_pkt_larger:#->reg0[1]",
    "actions=output(port=1,max_len=#)",
    "actions=enqueue:1:#",
    "actions=learn(table=1,cookie=#,reg0=#,reg1[0..7]=#,load:#->reg2[0..7])",
];

/// Flows with numbers that are always decimal.
const DECIMALS: &[&str] = &[
    "table=# actions=drop",
    "in_port=# actions=output:#,output(#)",
    "actions=goto_table:#",
    "actions=resubmit(,#),resubmit(#,#),resubmit:#",
    "ip actions=ct(table=#),dec_ttl(#,#)",
    "actions=multipath(eth_src,#,modulo_n,4,#,reg0[])",
    "actions=bundle(eth_src,#,hrw,ofport,members:#,1)",
    "actions=learn(table=#,priority=#,idle_timeout=#,hard_timeout=#,limit=#)",
    "actions=learn(table=1,fin_idle_timeout=#,fin_hard_timeout=#)",
    "tcp actions=ct(commit,nat(src=1.2.3.4:#-90))",
    "actions=output:reg0[#],push:reg0[#..31],move:reg0[#]->reg1[#]",
    "actions=conjunction(1,#/64)",
];

/// Other notations that our parser must interpret in the same way as `ovs-ofctl`.
const TEXTS: &[&str] = &[
    "actions=",
    "actions = output:1",
    "action=output:1",
    "tcp,actions=drop,drop",
    "actions=DROP",
    "actions=Output:1,NORMAL,Exit",
    "ip actions=ct(commit)output:1",
    "ip actions=ct(commit) output:1 , output:2",
    "priority(5)tcp,reg0(7) actions=drop",
    "tcp,tcp actions=drop",
    "ip,tcp,dl_type=0x800,nw_proto=6 actions=drop",
    "reg0=1,reg0=1,reg1[0..3]=5,reg1[2..7]=1 actions=drop",
    "no_readonly_table,allow_hidden_fields actions=drop",
    "table=255 actions=drop",
    "cookie=-1,metadata=-1,tun_id=5/-1 actions=drop",
    "eth_src=1:2:3:4:5:6,eth_dst=A:b:0C:d:E:f/ff:ff:0:0:0:0 actions=drop",
    "ip,nw_src=010.0.0.1,nw_dst=1.2.3.4/024 actions=drop",
    "ip,nw_frag=NO actions=drop",
    "tun_metadata0=* actions=drop",
    "recirc_id=5/0 actions=drop",
    "in_port=65534 actions=65533,4294967294",
    "tcp,tcp_dst=0x50/0xfff0,tcp_src=1/1 actions=drop",
    "udp,tp_dst=0x50/0xfff0,udp_src=1/0xf actions=drop",
    "tcp,tcp_dst[4..15]=5 actions=drop",
    "icmp6,icmp_type=135,nd_target=fe80::1/64,nd_sll=02:00:00:00:00:01/ff:ff:ff:00:00:00 actions=drop",
    "icmp6,icmp_type=136,nd_tll=02:00:00:00:00:01/ff:ff:ff:00:00:00 actions=drop",
    "actions=resubmit(1,2,),resubmit(in_port,3)",
    "actions=enqueue:1q2",
    "actions=pop_queue(),exit(),controller(5)",
    "actions=bundle(ETH_SRC 0 hrw ofport members:[1 2]),multipath(nw_src 0 HRW 4 0 reg0[0..3])",
    "actions=load:0x123456789abcdef0fedcba9876543210->xxreg0[],load:1->xxreg1[3..100]",
    "tcp6 actions=ct(commit,nat(src=fe80::1-[fe80::9]:80-90)),ct(commit,nat(dst=[fe80::1]))",
    "tcp actions=ct(commit,exec(nat,move:reg0[]->ct_mark[],set_field:1/1->ct_mark,load:1->ct_label[])),ct(exec())",
];

/// Text that both parsers refuse.
const REFUSED: &[&str] = &[
    "priority=65536 actions=drop",
    "priority=08 actions=drop",
    "table=0x10 actions=drop",
    "in_port=0x1 actions=drop",
    "out_port=1 actions=drop",
    "out_group=1 actions=drop",
    "cookie=1/1 actions=drop",
    "reg0=-1 actions=drop",
    "xxreg0=18446744073709551616 actions=drop",
    "nw_frag=1 actions=drop",
    "packet_type=1 actions=drop",
    "ct_state=0x100 actions=drop",
    "tcp,tcp_flags=0x1000 actions=drop",
    "arp,nw_proto=256 actions=drop",
    "actions=drop,output:1",
    "actions=output:none",
    "actions=output(port=flood,max_len=100)",
    "actions=output(port=1,max_len=13)",
    "actions=output:reg0[0x1]",
    "actions=check_pkt_larger(1500)->reg0[0..1]",
    "actions=check_pkt_larger(1500)->reg0[]",
    "actions=ct(table=255)",
    "actions=ct(force)",
    "actions=ct(commit,exec(output:1))",
    "actions=ct(commit,exec(load:1->reg0[]))",
    "ip actions=ct(commit,nat(src,dst))",
    "ip actions=ct(commit,nat(hash))",
    "ip actions=ct(commit,nat(src=1.2.3.9-1.2.3.4))",
    "ip actions=ct(commit,nat(src=1.2.3.4:90-80))",
    "ip actions=nat(src=1.2.3.4)",
    "actions=resubmit(,)",
    "actions=resubmit:in_port",
    "actions=goto_table:1,output:1",
    "actions=output:1,meter:1",
    "actions=clear_actions,output:1",
    "actions=clone(goto_table:1)",
    "actions=learn(table=255)",
    "actions=learn(table=1,reg0[0..3]=16)",
    "actions=conjunction(1,1/1)",
    "actions=conjunction(1,1/65)",
    "actions=conjunction(1,1/2),output:1",
    "actions=multipath(eth_src,0,hrw,17,0,reg0[0..3])",
    "actions=sample(collector_set_id=1)",
    "actions=push_vlan:0x800",
    "actions=note:1",
    "actions=set_field:0x800->eth_type",
    "ip actions=set_field:5->nw_tos",
    "actions=move:reg0[]->ct_mark[]",
    "actions=encap(nsh(md_type=3))",
    "actions=encap(nsh(tlv(1,1,0x12)))",
];

/// Text that `ovs-ofctl` misinterprets or silently ignores. The table in the documentation of the module
/// `text` lists it.
const SWALLOWED: &[&str] = &[
    "tcp=1 actions=drop",
    "send_flow_rem=1 actions=drop",
    "reg0= actions=drop",
    "reg0=0x actions=drop",
    "reg0=1,reg0=2 actions=drop",
    "tcp,udp actions=drop",
    "xreg0=5,reg0=1 actions=drop",
    "tcp_dst=80 actions=drop",
    "ip,nw_src=256.0.0.1 actions=drop",
    "eth_src=102:0:0:0:0:1 actions=drop",
    "mpls,mpls_label=0xffffffff actions=drop",
    "dl_vlan=4096 actions=drop",
    "sctp,sctp_dst=1/1 actions=drop",
    "importance=5 actions=drop",
    "ip actions=ct(commit",
    "ip actions=ct(zone=1,zone=2)",
    "ip actions=ct(zone=reg0[0..7])",
    "ip actions=ct(commit,nat(src=1.2.3.4:70000))",
    "actions=drop(1)",
    "actions=exit:1",
    "actions=group:4294967296",
    "actions=multipath(eth_src,x,modulo_n,4,0,reg0[])",
    "actions=learn(table=1,priority=0x10)",
    "actions=learn(table=1,priority=70000)",
    "actions=mod_dl_src:02:00:00:00:00:01x",
    "ip actions=dec_ttl(0x10)",
    "actions=output:xxreg0[]",
];

fn grammar() -> Vec<String> {
    let fill = |texts: &[&str], numbers: &[&str]| -> Vec<String> {
        texts.iter().flat_map(|text| numbers.iter().map(move |number| text.replace('#', number))).collect()
    };
    let mut texts = fill(NUMBERS, &["17", "020", "0x1c", "0X1F", "+18"]);
    texts.extend(fill(DECIMALS, &["7", "010", "30"]));
    texts.extend(TEXTS.iter().map(|text| (*text).to_owned()));
    texts
}

#[test]
fn what_is_written_means_what_it_means_to_open_vswitch() {
    let texts = grammar();
    assert!(texts.len() > 180);
    if !agree(&texts, Version::V1_3) {
        return;
    }

    // 1.0 cannot express some of the text. 1.5 is omitted, because Open vSwitch prints `load` differently in
    // 1.5.
    let early: Vec<String> =
        texts.into_iter().filter(|text| Flow::parse(text, Version::V1_0).is_ok()).collect();
    assert!(early.len() > 150);
    agree(&early, Version::V1_0);
}

#[test]
fn what_open_vswitch_refuses_is_refused() {
    for text in REFUSED {
        assert!(Flow::parse(text, Version::V1_3).is_err(), "{text}");
        let Some(theirs) = ovs(&["-O", "OpenFlow13", "parse-flow", text]) else { return };
        assert!(theirs.is_err(), "{text}: {theirs:?}");
    }
}

#[test]
fn what_open_vswitch_swallows_is_refused() {
    for text in SWALLOWED {
        assert!(Flow::parse(text, Version::V1_3).is_err(), "{text}");
        let Some(theirs) = ovs(&["-O", "OpenFlow13", "parse-flow", text]) else { return };
        assert!(theirs.is_ok(), "{text}: {theirs:?}");
    }
}

#[test]
fn deletions_and_additions_take_what_is_theirs() {
    let flow =
        Flow::parse_deletion("cookie=5/-1,table=3,tcp,out_port=LOCAL,out_group=any", Version::V1_3, false);
    let flow = flow.unwrap();
    assert_eq!((flow.cookie, flow.cookie_mask), (5, u64::MAX));
    assert_eq!(flow.to_string(), "cookie=0x5/0xffffffffffffffff,table=3,out_port=local,tcp");
    for (text, strict, problem) in [
        ("priority=5,tcp", false, Problem::Command),
        ("tcp,idle_timeout=5", true, Problem::Command),
        ("send_flow_rem,tcp", false, Problem::Command),
        ("cookie=5,tcp", false, Problem::NoMask),
    ] {
        let error = Flow::parse_deletion(text, Version::V1_3, strict).unwrap_err();
        assert_eq!(error.problem(), problem, "{text}");
    }

    Flow::parse_deletion("priority=5,tcp", Version::V1_3, true).unwrap();
}

#[test]
fn what_a_command_does_not_look_at_is_not_told() {
    use message::{FlowMod, FlowModCommand, FlowModFlags, GroupId};
    let everything = FlowMod {
        cookie: 1,
        cookie_mask: 2,
        idle_timeout: 3,
        hard_timeout: 4,
        importance: 5,
        priority: 6,
        out_port: 7.into(),
        out_group: GroupId(8),
        flags: FlowModFlags::SEND_FLOW_REMOVED,
        ..FlowMod::default()
    };

    for (command, told) in [
        (
            FlowModCommand::ADD,
            "cookie=0x1,idle_timeout=3,hard_timeout=4,importance=5,send_flow_rem,priority=6 actions=drop",
        ),
        (FlowModCommand::DELETE, "cookie=0x1/0x2,table=0,out_port=7,out_group=8"),
        (FlowModCommand::DELETE_STRICT, "cookie=0x1/0x2,table=0,out_port=7,out_group=8,priority=6"),
    ] {
        let flow = FlowMod { command, ..everything };
        let shown = show_flow(&flow, Version::V1_4).to_string();
        assert_eq!(shown, told);
        let read = match command {
            FlowModCommand::ADD => Flow::parse(&shown, Version::V1_4),
            command => Flow::parse_deletion(&shown, Version::V1_4, command == FlowModCommand::DELETE_STRICT),
        };
        assert_eq!(read.unwrap().to_string(), shown);
    }
}

/// Nicira's message, which 1.0 needs for registers, cannot express these options, either.
#[test]
fn what_1_0_cannot_restrict_is_refused_whatever_is_matched() {
    for text in ["cookie=1/-1", "cookie=1/-1,reg0=5", "out_group=5", "out_group=5,reg0=5"] {
        let error = Flow::parse_deletion(text, Version::V1_0, false).unwrap_err();
        let field = if text.starts_with("cookie") { "cookie_mask" } else { "out_group" };
        let wanted = EncodeError::Unsupported { version: Version::V1_0, field };
        assert_eq!(error.problem(), Problem::Version(wanted), "{text}");
    }

    let mut flow = Flow::parse_deletion("reg0=5", Version::V1_0, false).unwrap();
    flow.cookie_mask = 1;
    assert!(flow.message().encode_into(Version::V1_0, 0, &mut bytes::BytesMut::new()).is_err());
}

/// In earlier versions, the bits of these options are undefined or have another meaning; for example, one bit
/// marks an emergency flow in 1.0.
#[test]
fn options_of_later_versions_are_refused() {
    for (option, first) in [("reset_counts", 2), ("no_packet_counts", 3), ("no_byte_counts", 3)] {
        for (number, version) in Version::ALL.into_iter().enumerate() {
            for fields in ["tcp", "reg0=1"] {
                let text = format!("{option},{fields} actions=drop");
                let read = Flow::parse(&text, version);
                match read {
                    Ok(_) => assert!(number >= first, "{version} {text}"),
                    Err(error) => {
                        assert!(number < first || number == 1, "{version} {text}: {error}");
                        assert!(matches!(error.problem(), Problem::Version(_)), "{version} {text}: {error}");
                    }
                }
            }
        }
    }
}
