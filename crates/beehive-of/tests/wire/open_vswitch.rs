//! Checks our encoding by decoding it with `ovs-ofctl ofp-print`.

use std::process::Command;

use beehive_of::Version;

use crate::corpus::{hex, ours};

/// Returns the output of `ovs-ofctl ofp-print` for a message; `None` if the program is not installed.
fn judge(message: &[u8]) -> Option<String> {
    let output = Command::new("ovs-ofctl").args(["ofp-print", &hex(message)]).output();
    match output {
        Ok(output) => Some(
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat(),
        ),
        Err(error) => {
            let required = std::env::var_os("BEEHIVE_REQUIRE_OVS").is_some_and(|value| value == "1");
            assert!(!required, "BEEHIVE_REQUIRE_OVS=1, but ovs-ofctl: {error}");
            eprintln!("SKIPPED: Open vSwitch did not check our messages: ovs-ofctl: {error}");
            None
        }
    }
}

#[test]
fn open_vswitch_reads_every_kind_of_message_that_it_knows() {
    let mut disagreements = String::new();
    for version in Version::ALL {
        for (message, words) in crate::message_samples::complete(version) {
            if words.is_empty() {
                continue;
            }

            let Some(verdict) = judge(&message) else { return };
            let lacks: Vec<&str> = words.into_iter().filter(|words| !verdict.contains(words)).collect();
            let complains = ["***", "decode error", "trunc", "malformed", "OFPERR"]
                .iter()
                .any(|complaint| verdict.contains(complaint));

            if complains || !lacks.is_empty() {
                disagreements += &format!("{version} lacks {lacks:?} in {verdict}{}\n\n", hex(&message));
            }
        }
    }

    assert!(disagreements.is_empty(), "{disagreements}");
}

#[test]
fn open_vswitch_reads_what_we_write() {
    for version in Version::ALL {
        let ofp = match version {
            Version::V1_0 => String::new(),
            version => format!(" (OF{version})"),
        };
        for (name, message) in ours(version) {
            let Some(verdict) = judge(&message) else { return };
            let expected: &[&str] = match name {
                "hello" if version == Version::V1_0 => &["OFPT_HELLO (xid=0x2a):", "version bitmap: 0x01"],
                "hello" if version == Version::V1_5 => {
                    &["version bitmap: 0x01, 0x02, 0x03, 0x04, 0x05, 0x06"]
                }
                "hello" => &["OFPT_HELLO (OF1.", "version bitmap: 0x0"],
                "error" => &["OFPT_ERROR", "OFPBRC_BAD_LEN"],
                "echo request" => &["OFPT_ECHO_REQUEST", "13 bytes of payload"],
                "echo reply" => &["OFPT_ECHO_REPLY", "13 bytes of payload"],
                "features request" => &["OFPT_FEATURES_REQUEST"],
                "features reply" if version == Version::V1_0 => &[
                    "OFPT_FEATURES_REPLY",
                    "dpid:000000000000002a",
                    "n_buffers:256",
                    "3(eth3): addr:02:00:00:00:00:01",
                    "LOCAL(eth3)",
                ],
                "features reply" => &[
                    "OFPT_FEATURES_REPLY",
                    "dpid:000000000000002a",
                    "n_tables:2, n_buffers:256",
                    "FLOW_STATS",
                ],
                "get config request" => &["OFPT_GET_CONFIG_REQUEST"],
                "get config reply" => &["OFPT_GET_CONFIG_REPLY", "frags=normal miss_send_len=65535"],
                "set config" => &["OFPT_SET_CONFIG", "frags=normal miss_send_len=65535"],
                "packet-in" => &["OFPT_PACKET_IN", "total_len=60 in_port=3", "(unbuffered)"],
                "packet-out" => &["OFPT_PACKET_OUT", "in_port=3", "FLOOD", "data_len=60"],
                "flow-mod" if version == Version::V1_0 => &[
                    "OFPT_FLOW_MOD",
                    "ADD priority=100,ip,in_port=3,dl_vlan=10,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02",
                    "cookie:0x1234 idle:60 send_flow_rem",
                    "mod_dl_src:02:00:00:00:00:02,mod_vlan_vid:9,strip_vlan,mod_nw_dst:10.0.0.7,FLOOD",
                ],
                "flow-mod" if version == Version::V1_1 => &[
                    "OFPT_FLOW_MOD",
                    "ADD priority=100,ip,in_port=3,dl_vlan=10,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02",
                    "cookie:0x1234 idle:60 send_flow_rem",
                    "mod_dl_src:02:00:00:00:00:02,set_vlan_vid:9,pop_vlan,mod_nw_dst:10.0.0.7,FLOOD,goto_table:1",
                ],
                "flow-mod" => &[
                    "OFPT_FLOW_MOD",
                    "ADD priority=100,ip,in_port=3,dl_vlan=10,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02",
                    "cookie:0x1234 idle:60 send_flow_rem",
                    "set_field:02:00:00:00:00:02->eth_src",
                    "set_field:4105->vlan_vid",
                    "pop_vlan",
                    "set_field:10.0.0.7->ip_dst",
                    "FLOOD",
                    "goto_table:1",
                ],
                "flow-mod delete" => &["DEL", "tcp,dl_vlan=10,nw_src=10.0.0.0/8,tp_dst=80", "out_port:4"],
                "flow-removed" => &[
                    "OFPT_FLOW_REMOVED",
                    "tcp,dl_vlan=10,nw_src=10.0.0.0/8,tp_dst=80",
                    "reason=idle",
                    "duration1.500s idle60 pkts3 bytes4",
                ],
                "port-status" => &["OFPT_PORT_STATUS", "MOD: 3(eth3): addr:02:00:00:00:00:01"],
                "flow statistics request" => &["OFPST_FLOW request"],
                "flow statistics reply" => &[
                    "OFPST_FLOW reply",
                    "n_packets=8, n_bytes=9",
                    "priority=9,tcp,dl_vlan=10,nw_src=10.0.0.0/8,tp_dst=80",
                    "dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02",
                ],
                "barrier request" => &["OFPT_BARRIER_REQUEST"],
                "barrier reply" => &["OFPT_BARRIER_REPLY"],
                "port description request" => &["OFPST_PORT_DESC request"],
                "port description reply" => {
                    &["OFPST_PORT_DESC reply", "3(eth3): addr:02:00:00:00:00:01", "LOCAL(eth3)"]
                }
                "role request" => &["OFPT_ROLE_REQUEST", "role=", "generation_id=7"],
                "role reply" => &["OFPT_ROLE_REPLY", "role=", "generation_id=7"],
                // These messages have bodies that this crate does not decode. The corpus fills them with
                // arbitrary bytes.
                "multipart request" | "multipart reply" | "unknown" => continue,
                _ => panic!("no expected output for {name}"),
            };

            assert!(verdict.contains(&ofp), "{name} {version}: {verdict}");
            for words in expected {
                assert!(verdict.contains(words), "{name} {version} lacks {words:?}:\n{verdict}");
            }

            let complaints = ["***", "decode error", "trunc", "malformed", "OFPERR", "bad"];
            for complaint in complaints.iter().filter(|_| name != "error") {
                assert!(!verdict.contains(complaint), "{name} {version}:\n{verdict}");
            }
        }
    }
}
