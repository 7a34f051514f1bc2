//! Three hives control a switch that is connected to all of them: one is the master, and another one takes over.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::harness::{Bridge, Controller, Host, Lab, Protocols, eventually};

tests! {
    a_hive_that_is_killed_is_succeeded_as_the_master,
    a_hive_that_has_slept_is_refused_by_the_switch,
    flows_and_hosts_outlive_the_hive_that_learned_them,
    a_switch_without_roles_is_controlled_by_one_hive,
}

const ALICE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const BOB: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const CAROL: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3));

/// Time limit for three hives to start, and for a switch to have a master.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Time limit for another master, on a busy machine.
const SUCCESSION_LIMIT: Duration = Duration::from_secs(5);

/// The three hives.
struct Hives(Vec<(u16, Controller)>);

impl Hives {
    fn start(lab: &Lab, options: &[&str]) -> Hives {
        Hives((1..=3).map(|hive| (hive, Controller::start_hive(lab, (hive, 3), options))).collect())
    }

    /// Takes the hive that listens on this port.
    fn take(&mut self, port: u16) -> Controller {
        let at = self.0.iter().position(|(hive, _)| Controller::port_of(*hive) == port);
        at.map(|at| self.0.remove(at).1).unwrap_or_else(|| panic!("no hive listens on port {port}"))
    }
}

/// A switch that is connected to three hives.
fn bridge<'lab>(lab: &'lab Lab, protocols: Protocols) -> Bridge<'lab> {
    let bridge = Bridge::new(lab, "br0", 1, protocols);
    bridge.point_at_all(&[1, 2, 3].map(Controller::port_of));
    bridge
}

fn hosts<'lab>(bridge: &Bridge<'lab>) -> [Host<'lab>; 3] {
    let hosts = [
        Host::wire(bridge, "alice", 1, "02:00:00:00:00:0a"),
        Host::wire(bridge, "bob", 2, "02:00:00:00:00:0b"),
        Host::wire(bridge, "carol", 3, "02:00:00:00:00:0c"),
    ];
    for (host, address) in hosts.iter().zip([ALICE, BOB, CAROL]) {
        host.add_address(&format!("{address}/24"))
    }
    hosts
}

/// Waits until exactly one hive is the master, other than `before`, and `slaves` others are not. Returns the master's port.
fn master(bridge: &Bridge<'_>, before: Option<u16>, slaves: usize) -> u16 {
    eventually("one hive is the master, and the others are slaves", START_LIMIT, || {
        let (masters, others) = (bridge.with_role("master"), bridge.with_role("slave"));
        match masters[..] {
            [master] if Some(master) != before && others.len() == slaves => Some(master),
            _ => None,
        }
    })
    .0
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Every packet goes through the controller, which keeps nothing.
fn a_hive_that_is_killed_is_succeeded_as_the_master() {
    let test = "a_hive_that_is_killed_is_succeeded_as_the_master";
    let Some(lab) = Lab::open(test) else { return };
    let mut hives = Hives::start(&lab, &["--app", "hub"]);
    let bridge = bridge(&lab, Protocols::Default);
    let [alice, ..] = hosts(&bridge);
    let first = master(&bridge, None, 2);
    alice.ping(BOB).until_answered(SUCCESSION_LIMIT);

    let talk = alice.talk_to(BOB, "0.05");
    std::thread::sleep(Duration::from_secs(1));
    let killed = now();
    hives.take(first).kill();
    let second = master(&bridge, Some(first), 1);
    assert_ne!(first, second);
    alice.ping(BOB).until_answered(SUCCESSION_LIMIT);
    std::thread::sleep(Duration::from_secs(1));
    let log = talk.log();
    let answers = talk.end();
    let gap = answers.longest_gap(killed - Duration::from_millis(500), now());
    println!("{test}: {answers}, longest gap {gap:?}");
    assert!(gap < SUCCESSION_LIMIT, "{answers}: a gap of {gap:?}");
    assert!(!log.contains("DUP!"), "a packet was doubled:\n{log}");
}

/// The master does not run for a while, and does not know that there is another one when it goes on.
fn a_hive_that_has_slept_is_refused_by_the_switch() {
    let Some(lab) = Lab::open("a_hive_that_has_slept_is_refused_by_the_switch") else { return };
    let mut hives = Hives::start(&lab, &["--app", "hub"]);
    let bridge = bridge(&lab, Protocols::OpenFlow13);
    let [alice, ..] = hosts(&bridge);
    let first = master(&bridge, None, 2);
    alice.ping(BOB).until_answered(SUCCESSION_LIMIT);

    let mut sleeper = hives.take(first);
    let asleep = sleeper.pause();
    let second = master(&bridge, Some(first), 2);
    alice.ping(BOB).until_answered(SUCCESSION_LIMIT);
    drop(asleep);
    alice.ping(BOB).assert_answered(20);
    assert_eq!(master(&bridge, Some(first), 2), second, "the switch has another master");
    sleeper.assert_running();
}

/// The learning switch keeps what it has learned in cells that all hives replicate.
fn flows_and_hosts_outlive_the_hive_that_learned_them() {
    let Some(lab) = Lab::open("flows_and_hosts_outlive_the_hive_that_learned_them") else { return };
    let mut hives = Hives::start(&lab, &[]);
    let bridge = bridge(&lab, Protocols::Default);
    let [alice, _bob, carol] = hosts(&bridge);
    let first = master(&bridge, None, 2);
    alice.ping(BOB).until_answered(SUCCESSION_LIMIT);
    alice.ping(BOB).assert_answered(3);
    carol.ping(ALICE).until_answered(SUCCESSION_LIMIT);

    hives.take(first).kill();
    // the switch forwards between known hosts by itself
    alice.ping(BOB).assert_answered(20);
    master(&bridge, Some(first), 1);
    // bob and carol have not talked to each other, so the next hive has to know both
    carol.ping(BOB).until_answered(SUCCESSION_LIMIT);
    carol.ping(BOB).assert_answered(3);
}

/// OpenFlow 1.0 has no roles: the switch sends everything to all hives, and those that are not the master ignore it.
fn a_switch_without_roles_is_controlled_by_one_hive() {
    let test = "a_switch_without_roles_is_controlled_by_one_hive";
    let Some(lab) = Lab::open(test) else { return };
    let mut hives = Hives::start(&lab, &["--app", "hub"]);
    let bridge = bridge(&lab, Protocols::OpenFlow10);
    let [alice, ..] = hosts(&bridge);
    alice.ping(BOB).until_answered(START_LIMIT);
    let talk = alice.talk_to(BOB, "0.05");
    // whichever is the master, one of them is
    for hive in [1, 2] {
        std::thread::sleep(Duration::from_secs(1));
        hives.take(Controller::port_of(hive)).kill();
        alice.ping(BOB).until_answered(SUCCESSION_LIMIT);
        hives
            .0
            .push((hive, Controller::start_hive(&lab, (hive, 3), &["--app", "hub", "--cluster-replaces"])));
        std::thread::sleep(Duration::from_secs(3))
    }
    let log = talk.log();
    println!("{test}: {}", talk.end());
    assert!(!log.contains("DUP!"), "a packet was doubled:\n{log}");
}
