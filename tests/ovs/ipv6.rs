//! Hosts that use only IPv6: neighbor discovery uses multicast, and the hosts send messages by themselves.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use crate::harness::{Bridge, Controller, Host, Lab, Protocols};

tests! {
    hosts_ping_each_other_by_ipv6,
}

const ALICE: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));
const BOB: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));

/// Time limit for neighbor discovery and the first answer.
const FIRST_ANSWER_LIMIT: Duration = Duration::from_secs(5);

fn hosts_ping_each_other_by_ipv6() {
    let Some(lab) = Lab::open("hosts_ping_each_other_by_ipv6") else { return };
    let mut controller = Controller::start(&lab);
    let bridge = Bridge::new(&lab, "br0", 1, Protocols::Default);
    bridge.point_at(Controller::PORT);
    bridge.wait_connected();
    let alice = Host::wire_with_ipv6(&bridge, "alice", 1, "02:00:00:00:00:0a");
    let bob = Host::wire_with_ipv6(&bridge, "bob", 2, "02:00:00:00:00:0b");
    let bystander = Host::wire(&bridge, "bystander", 3, "02:00:00:00:00:0c");
    alice.add_address(&format!("{ALICE}/64"));
    bob.add_address(&format!("{BOB}/64"));
    alice.ping(BOB).until_answered(FIRST_ANSWER_LIMIT);
    bob.ping(ALICE).assert_answered(3);
    assert!(bystander.received_frames() > 0, "neighbor discovery was to reach everybody");
    // the messages that hosts send by themselves are counted, and the log does not mention them
    let metrics = lab.succeed(&["curl", "-fsS", "http://127.0.0.1:8653/metrics"]);
    let packets = metrics.lines().find_map(|line| line.strip_prefix("beehive_switch_packet_ins_total "));
    assert!(packets.is_some_and(|count| count.parse().is_ok_and(|count: u64| count >= 6)), "{packets:?}");
    let log = controller.log();
    assert!(log.lines().count() < 10 && !log.to_lowercase().contains("packet"), "{log}");
    controller.assert_running();
    controller.stop();
    bridge.delete_flows();
    alice.ping(BOB).assert_unanswered(3);
}
