//! A port that goes down: the flows that lead to it are withdrawn, so its host is found at another port even
//! before the host sends a packet.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use crate::harness::{Bridge, Controller, Host, Lab, Protocols, eventually};

tests! {
    a_dead_port_is_forgotten_on_openflow_1_0,
    a_dead_port_is_forgotten_on_openflow_1_3,
    the_switch_itself_is_a_host_on_openflow_1_0,
    the_switch_itself_is_a_host_on_openflow_1_3,
}

const ALICE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const BOB: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

const ALICE_ETHERNET: &str = "02:00:00:00:00:0a";
const BOB_ETHERNET: &str = "02:00:00:00:00:0b";

/// Time limit for the switch to notice that a link is down.
const LINK_LIMIT: Duration = Duration::from_secs(5);

/// Time limit for the first answer. Ports open two seconds after a switch has joined.
const FIRST_ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Time limit within which a host must be found at another port once the link of its old port is down.
const FIND_LIMIT: Duration = Duration::from_secs(2);

fn a_dead_port_is_forgotten_on_openflow_1_0() {
    a_port_dies("a_dead_port_is_forgotten_on_openflow_1_0", Protocols::OpenFlow10);
}

fn a_dead_port_is_forgotten_on_openflow_1_3() {
    a_port_dies("a_dead_port_is_forgotten_on_openflow_1_3", Protocols::OpenFlow13);
}

/// The network stack of the switch itself is a host like any other, behind the reserved port `LOCAL`.
fn the_switch_itself_is_a_host(test: &str, protocols: Protocols, apps: &str) {
    let Some(lab) = Lab::open(test) else { return };
    let mut controller = Controller::start_with(&lab, apps, "");
    let bridge = Bridge::new(&lab, "br0", 1, protocols);
    let alice = Host::wire(&bridge, "alice", 1, ALICE_ETHERNET);
    alice.add_address(&format!("{ALICE}/24"));
    lab.succeed(&["ip", "address", "add", &format!("{BOB}/24"), "dev", bridge.name()]);
    lab.succeed(&["ip", "link", "set", bridge.name(), "up"]);
    bridge.point_at(Controller::PORT);
    bridge.wait_connected();
    alice.ping(BOB).until_answered(FIRST_ANSWER_LIMIT);
    alice.ping(BOB).assert_answered(5);
    assert!(bridge.flows().contains("LOCAL"), "no flow leads there:\n{}", bridge.flows());
    assert_eq!(bridge.refusals(), Vec::<String>::new(), "the switch refused messages");
    controller.assert_running();
    controller.stop();
}

fn the_switch_itself_is_a_host_on_openflow_1_0() {
    let test = "the_switch_itself_is_a_host_on_openflow_1_0";
    the_switch_itself_is_a_host(test, Protocols::OpenFlow10, "learning-switch");
}

fn the_switch_itself_is_a_host_on_openflow_1_3() {
    let test = "the_switch_itself_is_a_host_on_openflow_1_3";
    the_switch_itself_is_a_host(test, Protocols::OpenFlow13, "discovery,hosts,forwarding");
}

fn a_port_dies(test: &str, protocols: Protocols) {
    let Some(lab) = Lab::open(test) else { return };
    let mut controller = Controller::start(&lab);
    let bridge = Bridge::new(&lab, "br0", 1, protocols);
    // The hosts exist before the controller starts, so the controller must learn about their ports from the
    // switch's port description.
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
