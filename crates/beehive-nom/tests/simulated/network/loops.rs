//! Tests switches that are wired in loops, with learning switches: no broadcast storm, and every host is
//! reached.

use super::harness::{Cable, Host, Network, host};
use beehive_nom::apps::{Discovery, LearningSwitch, LoopGuard, Topology};
use beehive_nom::object::{FlowMatch, PortNo};

type Wires = &'static [Cable];

const SECRET: &str = "[discovery]\nsecret = \"of this test\"\n";
/// Two cables between two switches.
const DOUBLE: Wires = &[((1, 1), (2, 1)), ((1, 2), (2, 2))];
const TRIANGLE: Wires = &[((1, 1), (2, 1)), ((2, 2), (3, 2)), ((3, 1), (1, 2))];
/// Three by three switches; every row and every column is a ring.
const TORUS: Wires = &[
    ((1, 1), (2, 2)),
    ((2, 1), (3, 2)),
    ((3, 1), (1, 2)),
    ((4, 1), (5, 2)),
    ((5, 1), (6, 2)),
    ((6, 1), (4, 2)),
    ((7, 1), (8, 2)),
    ((8, 1), (9, 2)),
    ((9, 1), (7, 2)),
    ((1, 3), (4, 4)),
    ((4, 3), (7, 4)),
    ((7, 3), (1, 4)),
    ((2, 3), (5, 4)),
    ((5, 3), (8, 4)),
    ((8, 3), (2, 4)),
    ((3, 3), (6, 4)),
    ((6, 3), (9, 4)),
    ((9, 3), (3, 4)),
];

async fn network(switches: u64, wires: Wires) -> Network {
    let apps = |hive: beehive_core::Builder| {
        hive.app::<Discovery>().app::<Topology>().app::<LoopGuard>().app::<LearningSwitch>()
    };
    Network::new(apps, SECRET, switches, wires).await
}

/// Returns one host at port 7 of every switch.
fn hosts(switches: u64) -> Vec<Host> {
    (1..=switches).map(|node| host(node, 7, node as u8)).collect()
}

/// Lets every host send an ARP request for every other host and a datagram to it, and checks that no frame
/// arrives twice.
async fn all_talk(network: &Network, hosts: &[Host]) {
    for from in hosts {
        let everywhere = network.send(*from, &from.arp(hosts[0])).await;
        assert!(everywhere.iter().all(|(_, _, times)| *times == 1), "twice: {everywhere:?}");
        for to in hosts.iter().filter(|to| *to != from) {
            assert!(
                everywhere.contains(&(to.node, to.port, 1)),
                "{from:?} is not heard by {to:?}: {everywhere:?}"
            );
        }
    }

    for from in hosts {
        for to in hosts.iter().filter(|to| *to != from) {
            assert!(network.reaches(*from, *to).await, "{from:?} does not reach {to:?}");
        }
    }
}

#[tokio::test]
async fn circles_do_not_melt_and_everybody_is_reached() {
    for (switches, wires) in [(2, DOUBLE), (3, TRIANGLE), (9, TORUS)] {
        let network = network(switches, wires).await;
        network.pass(25).await;
        let before: u64 = network.wires.iter().map(|wire| wire.carried()).sum();
        all_talk(&network, &hosts(switches)).await;
        let broadcasts = switches;
        let datagrams = switches * (switches - 1);
        let carried: u64 = network.wires.iter().map(|wire| wire.carried()).sum::<u64>() - before;
        // a broadcast crosses each cable at most once in each direction
        let most = broadcasts * 2 * wires.len() as u64 + datagrams * switches;
        assert!(carried <= most, "{carried} frames on the wires, {most} are enough");
    }
}

#[tokio::test]
async fn before_links_are_found_nothing_is_flooded_into_them() {
    let network = network(2, DOUBLE).await;
    let [a, b] = [host(1, 7, 1), host(2, 7, 2)];
    assert_eq!(network.send(a, &a.arp(b)).await, [], "its port has just come up");
    network.pass(25).await;
    assert!(network.send(a, &a.arp(b)).await.contains(&(2, 7, 1)));
}

#[tokio::test]
async fn a_link_that_dies_is_replaced_at_once_and_one_that_comes_back_closes_no_loop() {
    let network = network(3, TRIANGLE).await;
    let hosts = hosts(3);
    network.pass(25).await;
    all_talk(&network, &hosts).await;

    for wire in 0..3 {
        network.wires[wire].cut();
        network.settled().await;
        all_talk(&network, &hosts).await;
        network.wires[wire].mend();
        network.settled().await;
        all_talk(&network, &hosts).await;
        network.pass(25).await;
        all_talk(&network, &hosts).await;
    }
}

/// Switches that lose no port also have flows and learned addresses that lead over the link.
#[tokio::test]
async fn a_link_that_dies_takes_nothing_from_those_who_only_talk_to_acquaintances() {
    for wire in 0..3 {
        let network = network(3, TRIANGLE).await;
        let hosts = hosts(3);
        network.pass(25).await;
        all_talk(&network, &hosts).await;
        network.wires[wire].cut();
        network.settled().await;
        for from in &hosts {
            for to in hosts.iter().filter(|to| *to != from) {
                let arrived = network.send(*from, &from.udp(1, *to, 2)).await;
                assert!(arrived.contains(&(to.node, to.port, 1)), "{from:?} to {to:?}: {arrived:?}");
            }
        }
    }
}

#[tokio::test]
async fn switches_that_come_one_after_the_other_make_no_loop() {
    let network = network(3, TRIANGLE).await;
    let hosts = hosts(3);
    for node in 1..=3 {
        network.switch(node).disconnect();
    }

    network.settled().await;
    for node in 1..=3 {
        network.switch(node).connect();
        network.pass(30).await;
        let from = hosts[node as usize - 1];
        let heard = network.send(from, &from.arp(from)).await;
        assert!(heard.iter().all(|(_, _, times)| *times == 1), "{heard:?}");
    }

    all_talk(&network, &hosts).await;
}

/// A cable that drops probes, as cheap switches do. The loop can be detected only from packets.
#[tokio::test]
async fn a_loop_that_discovery_cannot_see_is_found_in_the_packets() {
    let network = network(2, &[((1, 1), (2, 1))]).await;
    let (a, b) = (host(1, 7, 1), host(2, 7, 2));
    network.pass(25).await;
    all_talk(&network, &[a, b]).await;

    // from now on, port 3 of each switch receives the frames of port 3 of the other one, except probes
    let (one, other) = (network.switch(1).clone(), network.switch(2).clone());
    let question = a.arp(b);
    let mut rounds = 0;
    network.clear();
    network.switch(1).receive(PortNo(7), question.clone());

    loop {
        network.settled().await;
        let out = |switch: &beehive_nom::sim::SimulatedSwitch| {
            let sent = switch.sent(PortNo(3));
            sent.into_iter().filter(|frame| *frame == question).collect::<Vec<_>>()
        };
        let (from_one, from_other) = (out(&one), out(&other));

        if from_one.is_empty() && from_other.is_empty() {
            break;
        }

        rounds += 1;
        assert!(rounds < 20, "it goes round and round");
        from_one.into_iter().for_each(|frame| other.receive(PortNo(3), frame));
        from_other.into_iter().for_each(|frame| one.receive(PortNo(3), frame));
    }

    assert!(rounds > 1, "there was no loop to be found");
    let closed = |flow: &beehive_nom::object::Flow| {
        flow.priority == 60_000 && flow.matching == FlowMatch { port: Some(PortNo(3)), ..FlowMatch::ANY }
    };
    assert!(one.flows().iter().chain(&other.flows()).any(closed), "nothing is closed");

    // all other hosts are served, and the port opens again after the quarantine
    assert!(network.reaches(a, b).await && network.reaches(b, a).await);
    network.pass(350).await;
    assert!(!one.flows().iter().chain(&other.flows()).any(closed));
}

#[tokio::test]
async fn an_address_on_two_ports_at_once_is_held_to_the_first() {
    let network = network(1, &[]).await;
    let (victim, other, thief) = (host(1, 1, 1), host(1, 2, 2), host(1, 3, 1));
    network.pass(25).await;
    network.send(victim, &victim.arp(other)).await;
    network.send(other, &other.arp(victim)).await;
    network.pass(11).await;

    for number in 0..20 {
        network.send(victim, &victim.udp(number, other, 1)).await;
        network.send(thief, &thief.udp(number, other, 2)).await;
    }

    assert_eq!(network.send(thief, &thief.udp(99, other, 2)).await, []);
    assert_eq!(network.send(victim, &victim.udp(99, other, 1)).await, [(1, 2, 1)]);
    assert_eq!(network.send(other, &other.udp(99, victim, 1)).await, [(1, 1, 1)]);

    // its port stays open for all other hosts
    let neighbor = host(1, 3, 9);
    assert_eq!(network.send(neighbor, &neighbor.udp(1, other, 1)).await, [(1, 2, 1)]);
}

#[tokio::test]
async fn a_host_that_moves_is_no_loop() {
    let network = network(3, TRIANGLE).await;
    let (a, b) = (host(1, 7, 1), host(2, 7, 2));
    network.pass(25).await;
    all_talk(&network, &[a, b]).await;

    for (node, port) in [(3, 7), (3, 6), (1, 6), (2, 7)] {
        let moved = Host { node, port, ..b };
        network.pass(3).await;
        assert!(network.reaches(moved, a).await);
        assert!(network.reaches(a, moved).await, "it is still sought elsewhere");
    }
}

/// An attacker that forges as many addresses as are tracked must not take over the address of another host.
#[tokio::test]
async fn forged_addresses_do_not_make_those_of_others_forgotten() {
    let network = network(1, &[]).await;
    let (victim, other, thief) = (host(1, 1, 1), host(1, 2, 2), host(1, 3, 1));
    network.pass(25).await;
    network.send(victim, &victim.arp(other)).await;
    network.send(other, &other.arp(victim)).await;

    let mut forged = host(1, 3, 3).udp(1, other, 1).to_vec();
    for number in 0..beehive_nom::limits::SIGHTINGS_PER_NODE_MAX as u32 + 10 {
        forged[6..12].copy_from_slice(&[&[6, 6][..], &number.to_be_bytes()].concat());
        network.switch(1).receive(PortNo(3), forged.clone().into());
        if number % 1_000 == 0 {
            network.settled().await
        }
    }

    for number in 0..20 {
        network.send(thief, &thief.udp(number, other, 2)).await;
        network.send(victim, &victim.udp(number, other, 1)).await;
    }

    assert_eq!(network.send(thief, &thief.udp(99, other, 2)).await, []);
    assert_eq!(network.send(victim, &victim.udp(99, other, 1)).await, [(1, 2, 1)]);
}
