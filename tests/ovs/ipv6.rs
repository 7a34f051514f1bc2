//! Hosts that speak IPv6 only: neighbour discovery is multicast, and they talk without being asked.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use crate::harness::{Bridge, Controller, Host, Lab, Protocols};

const ALICE: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));
const BOB: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));

/// How long neighbour discovery and the first answer may take.
const FIRST_ANSWER_LIMIT: Duration = Duration::from_secs(5);

#[test]
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
    assert!(bystander.received_frames() > 0, "neighbour discovery was to reach everybody");
    controller.assert_running();
    controller.stop();
    bridge.delete_flows();
    alice.ping(BOB).assert_unanswered(3);
}
