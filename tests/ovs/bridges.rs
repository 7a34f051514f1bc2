//! Two switches at one controller: separate switches are kept apart, and connected switches form one network.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use crate::harness::{Bridge, Controller, Host, Lab, Mirror, Protocols};

tests! {
    separate_switches_with_the_same_addresses_do_not_mix,
    hosts_reach_each_other_through_two_switches,
}

const ALICE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const BOB: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

const ALICE_ETHERNET: &str = "02:00:00:00:00:0a";
const BOB_ETHERNET: &str = "02:00:00:00:00:0b";

/// Time during which no packet may reach the controller once flows are in place.
const SILENCE: Duration = Duration::from_secs(5);

/// Time limit for the first answer through two switches.
const FIRST_ANSWER_LIMIT: Duration = Duration::from_secs(5);

fn two_switches(lab: &Lab) -> (Bridge<'_>, Bridge<'_>) {
    let left = Bridge::new(lab, "left", 1, Protocols::OpenFlow10);
    let right = Bridge::new(lab, "right", 2, Protocols::OpenFlow13);
    for bridge in [&left, &right] {
        bridge.point_at(Controller::PORT);
    }
    for bridge in [&left, &right] {
        bridge.wait_connected();
    }
    (left, right)
}

/// The same two hosts exist on both switches, with their ports exchanged. A single address table for both
/// switches would send packets to the wrong ports.
fn separate_switches_with_the_same_addresses_do_not_mix() {
    let Some(lab) = Lab::open("separate_switches_with_the_same_addresses_do_not_mix") else { return };
    let mut controller = Controller::start(&lab);
    let (left, right) = two_switches(&lab);
    let hosts = [
        (Host::wire(&left, "left-alice", 1, ALICE_ETHERNET), Host::wire(&left, "left-bob", 2, BOB_ETHERNET)),
        (
            Host::wire(&right, "right-alice", 2, ALICE_ETHERNET),
            Host::wire(&right, "right-bob", 1, BOB_ETHERNET),
        ),
    ];
    for (alice, bob) in &hosts {
        alice.add_address(&format!("{ALICE}/24"));
        bob.add_address(&format!("{BOB}/24"));
    }
    let mirrors = [Mirror::open(&left), Mirror::open(&right)];
    std::thread::scope(|scope| {
        for (alice, bob) in &hosts {
            scope.spawn(|| alice.ping(BOB).assert_answered(5));
            scope.spawn(|| bob.ping(ALICE).assert_answered(5));
        }
    });
    std::thread::scope(|scope| {
        for (alice, _) in &hosts {
            scope.spawn(|| alice.ping(BOB).assert_answered(25));
        }
        for mirror in &mirrors {
            scope.spawn(|| mirror.no_packet_in_for(SILENCE).unwrap_or_else(|reason| panic!("{reason}")));
        }
    });
    controller.assert_running();
    controller.stop();
}

fn hosts_reach_each_other_through_two_switches() {
    let Some(lab) = Lab::open("hosts_reach_each_other_through_two_switches") else { return };
    let mut controller = Controller::start(&lab);
    let (left, right) = two_switches(&lab);
    left.join(9, &right, 8);
    let alice = Host::wire(&left, "alice", 1, ALICE_ETHERNET);
    let bob = Host::wire(&right, "bob", 1, BOB_ETHERNET);
    alice.add_address(&format!("{ALICE}/24"));
    bob.add_address(&format!("{BOB}/24"));
    let mirrors = [Mirror::open(&left), Mirror::open(&right)];
    let marks = mirrors.each_ref().map(Mirror::mark);
    alice.ping(BOB).until_answered(FIRST_ANSWER_LIMIT);
    bob.ping(ALICE).assert_answered(3);
    for (mirror, mark) in mirrors.iter().zip(marks) {
        assert!(mirror.packet_ins_since(mark) > 0, "each switch was to ask for itself");
    }
    controller.assert_running();
    controller.stop();
}
