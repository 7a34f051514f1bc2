//! A port that dies: what led to it is withdrawn, so that its host is found elsewhere before it says a word.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use crate::harness::{Bridge, Controller, Host, Lab, Protocols, eventually};

const ALICE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const BOB: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

const ALICE_ETHERNET: &str = "02:00:00:00:00:0a";
const BOB_ETHERNET: &str = "02:00:00:00:00:0b";

/// How long the switch may take to see that a link is down.
const LINK_LIMIT: Duration = Duration::from_secs(5);

/// How soon a host must be found elsewhere once the link of its old port is down.
const FIND_LIMIT: Duration = Duration::from_secs(2);

#[test]
fn a_dead_port_is_forgotten_on_openflow_1_0() {
    a_port_dies("a_dead_port_is_forgotten_on_openflow_1_0", Protocols::OpenFlow10);
}

#[test]
fn a_dead_port_is_forgotten_on_openflow_1_3() {
    a_port_dies("a_dead_port_is_forgotten_on_openflow_1_3", Protocols::OpenFlow13);
}

fn a_port_dies(test: &str, protocols: Protocols) {
    let Some(lab) = Lab::open(test) else { return };
    let mut controller = Controller::start(&lab);
    let bridge = Bridge::new(&lab, "br0", 1, protocols);
    // The hosts are there before the controller is, which must learn of their ports from the switch's description.
    let alice = Host::wire(&bridge, "alice", 1, ALICE_ETHERNET);
    let bob = Host::wire(&bridge, "bob", 2, BOB_ETHERNET);
    let elsewhere = Host::wire(&bridge, "elsewhere", 3, BOB_ETHERNET);
    alice.add_address(&format!("{ALICE}/24"));
    bob.add_address(&format!("{BOB}/24"));
    bridge.point_at(Controller::PORT);
    bridge.wait_connected();

    alice.ping(BOB).assert_answered(3);
    alice.know(BOB, BOB_ETHERNET);
    elsewhere.know(ALICE, ALICE_ETHERNET);
    elsewhere.add_address(&format!("{BOB}/24"));
    alice.ping(BOB).assert_answered(1);
    assert_eq!(elsewhere.sent_frames(), 0, "the host was not to say a word in its new place");

    bob.unplug();
    let interface = bob.switch_interface();
    eventually("the link is down", LINK_LIMIT, || (!bridge.link_is_up(&interface)).then_some(()));
    if alice.ping(BOB).answered_within(FIND_LIMIT).is_none() {
        panic!("frames still go to the dead port after {FIND_LIMIT:?}; flows:\n{}", bridge.flows());
    }
    assert_eq!(bridge.refusals(), Vec::<String>::new(), "the switch refused messages");
    controller.assert_running();
    controller.stop();
}
