//! Switches wired in circles: nothing melts, everybody is reached, and a link that dies is replaced.

use std::net::{IpAddr, Ipv4Addr};
use std::thread::sleep;
use std::time::Duration;

use crate::harness::{Bridge, Controller, Host, Lab, Protocols};

/// How long ports may stay closed after switches have joined: two seconds for discovery, and what machines add.
const OPEN_LIMIT: Duration = Duration::from_secs(10);

/// How soon hosts reach each other again once a link is down.
const REPAIR_LIMIT: Duration = Duration::from_secs(1);

/// How long frames are counted after a question to everybody.
const WATCH: Duration = Duration::from_secs(2);

/// Frames that a host may receive meanwhile: questions of the others and probes, no storm.
const FRAMES_MAX: u64 = 200;

const NAMES: [&str; 3] = ["one", "two", "three"];

fn address(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, number))
}

/// A triangle with a second cable between the first two switches, and a host at each.
fn triangle<'lab>(lab: &'lab Lab, protocols: Protocols) -> (Vec<Bridge<'lab>>, Vec<Host<'lab>>) {
    let bridges: Vec<_> =
        (1..).zip(NAMES).map(|(number, name)| Bridge::new(lab, name, number, protocols)).collect();
    let [one, two, three] = &bridges[..] else { panic!("three switches") };
    one.join(11, two, 11);
    one.join(12, two, 12);
    two.join(13, three, 13);
    three.join(14, one, 14);
    let hosts: Vec<_> = (1..)
        .zip(&bridges)
        .map(|(number, bridge)| {
            let host = Host::wire(bridge, &format!("host{number}"), 1, &format!("02:00:00:00:00:0{number}"));
            host.add_address(&format!("{}/24", address(number)));
            host
        })
        .collect();
    for bridge in &bridges {
        bridge.point_at(Controller::PORT);
    }
    for bridge in &bridges {
        bridge.wait_connected();
    }
    (bridges, hosts)
}

fn all_reach_all(hosts: &[Host<'_>], limit: Duration) {
    for (number, from) in (1..).zip(hosts) {
        for to in (1..=hosts.len() as u8).filter(|to| *to != number) {
            from.ping(address(to)).until_answered(limit);
            from.ping(address(to)).assert_answered(2);
        }
    }
}

fn a_triangle(test: &str, protocols: Protocols, apps: &str) {
    let Some(lab) = Lab::open(test) else { return };
    let mut controller = Controller::start_with(&lab, apps, "");
    let (bridges, hosts) = triangle(&lab, protocols);
    all_reach_all(&hosts, OPEN_LIMIT);

    // a question that nobody answers goes to everybody, and then it is over
    hosts[0].forget_neighbours();
    let before: Vec<_> = hosts.iter().map(Host::received_frames).collect();
    hosts[0].ping(address(99)).assert_unanswered(1);
    sleep(WATCH);
    for (host, before) in hosts.iter().zip(before) {
        let frames = host.received_frames() - before;
        assert!(frames <= FRAMES_MAX, "{} received {frames} frames", host.switch_interface());
    }

    // each cable in turn: what went over it goes another way
    for cable in ["one-11", "one-12", "two-13", "three-14"] {
        lab.succeed(&["ip", "link", "set", cable, "down"]);
        // the switch looks at its links now and then; the limit is ours from when it has seen it
        let owner = &bridges[NAMES.iter().position(|name| cable.starts_with(name)).unwrap_or_default()];
        crate::harness::eventually("the link is down", OPEN_LIMIT, || {
            (!owner.link_is_up(cable)).then_some(())
        });
        all_reach_all(&hosts, REPAIR_LIMIT);
        lab.succeed(&["ip", "link", "set", cable, "up"]);
        all_reach_all(&hosts, OPEN_LIMIT);
    }
    for bridge in &bridges {
        assert_eq!(bridge.refusals(), Vec::<String>::new(), "the switch refused messages");
    }
    controller.assert_running();
    controller.stop();
}

#[test]
fn a_triangle_of_learning_switches_on_openflow_1_3() {
    a_triangle(
        "a_triangle_of_learning_switches_on_openflow_1_3",
        Protocols::OpenFlow13,
        "discovery,learning-switch",
    );
}

#[test]
fn a_triangle_of_learning_switches_on_openflow_1_0() {
    a_triangle(
        "a_triangle_of_learning_switches_on_openflow_1_0",
        Protocols::OpenFlow10,
        "discovery,learning-switch",
    );
}

#[test]
fn a_triangle_with_shortest_paths_on_openflow_1_3() {
    a_triangle(
        "a_triangle_with_shortest_paths_on_openflow_1_3",
        Protocols::OpenFlow13,
        "discovery,hosts,forwarding",
    );
}
