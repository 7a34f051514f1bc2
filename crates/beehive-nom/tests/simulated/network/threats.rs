//! Tests attacks in which hosts send malicious packets (S9 to S17), one test for each row. After each attack,
//! hosts at other ports are served as before: each of their packets arrives exactly once.

use super::harness::{Host, Network, host};
use beehive_nom::apps::{Discovery, Firewall, Hosts, LearningSwitch, LoopGuard, Topology};
use beehive_nom::object::{LLDP, Mac, PortNo};
use bytes::Bytes;

const A: Host = host(1, 1, 1);
const B: Host = host(2, 2, 2);
/// The port of the attacker.
const EVIL: u32 = 5;

const SETTINGS: &str = "[discovery]\nsecret = \"of this test\"\n[firewall]\ndefault = \"allow\"\n\
    open_per_port_max = 500\n\
    [learning-switch]\nstations_per_port_max = 1000\n[hosts]\nhosts_per_port_max = 100\n";

/// Creates two switches with a wire between them, with all apps.
async fn network() -> Network {
    let apps = |hive: beehive_core::Builder| {
        let hive = hive.app::<Discovery>().app::<Topology>().app::<LoopGuard>();
        hive.app::<Hosts>().app::<Firewall>().app::<LearningSwitch>()
    };
    let network = Network::new(apps, SETTINGS, 2, &[((1, 8), (2, 8))]).await;
    network.pass(25).await;

    for (one, other) in [(A, B), (B, A)] {
        assert_eq!(network.send(one, &one.arp(other)).await.len(), 13, "all hosts' ports but its own");
    }
    network
}

/// Checks that known and new hosts at other ports reach each other, and that no handler has failed.
async fn others_are_served(network: &Network, round: u16) {
    // a new conversation each time, so the switch does not forward it by existing flows
    for (from, to) in [(A, B), (B, A)] {
        let data = from.udp(1000 + round, to, 2000);
        assert_eq!(network.send(from, &data).await, [(to.node, to.port, 1)], "round {round}");
    }

    let newcomer = host(1, 2, 100 + (round % 50) as u8);
    let data = newcomer.udp(1000 + round, B, 2000);
    assert_eq!(network.send(newcomer, &data).await, [(B.node, B.port, 1)], "round {round}");
    let status = network.hive.status();
    assert_eq!((status.dead_letters, status.cycles), (0, 0), "{:?}", network.hive.dead_letters());

    let failed = status.apps.iter().flat_map(|app| &app.handlers).map(|h| h.errors + h.panics).sum::<u64>();
    assert_eq!(failed, 0);
}

fn evil(network: &Network, data: impl Into<Bytes>) {
    network.switch(1).receive(PortNo(EVIL), data.into())
}

/// Returns an Ethernet frame from the attacker with this type and payload.
fn ethernet(destination: Mac, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&destination.0[..], &[2, 0, 0, 0, 0, 66], &ethertype.to_be_bytes(), payload].concat()
}

#[tokio::test]
async fn s9_an_unknown_ethernet_type_is_ignored() {
    let network = network().await;
    for round in 0..2 {
        evil(&network, ethernet(Mac::BROADCAST, 0x8870, &[0; 46]));
        evil(&network, ethernet(B.mac(), 0x8870, &[]));
        network.settled().await;
        others_are_served(&network, round).await;
    }
}

#[tokio::test]
async fn s10_broken_probes_and_other_protocols_of_bridges_are_dropped() {
    let network = network().await;
    let bridges = Mac([0x01, 0x80, 0xc2, 0, 0, 0x0e]);
    let slow = Mac([0x01, 0x80, 0xc2, 0, 0, 2]);
    let tlv = |kind: u16, length: u16, data: &[u8]| [&(kind << 9 | length).to_be_bytes()[..], data].concat();
    let chassis = tlv(1, 7, &[4, 2, 0, 0, 0, 0, 66]);
    let broken: Vec<Vec<u8>> = vec![
        Vec::new(),                                           // no part at all
        tlv(1, 511, &[4; 511]),                               // the longest there is
        tlv(1, 511, &[4]),                                    // and cut off
        tlv(1, 0, &[]),                                       // a chassis without a name
        [chassis.clone(), tlv(0, 0, &[])].concat(),           // what must be there is missing
        [tlv(2, 2, &[7, 1]), chassis.clone()].concat(),       // in the wrong order
        [chassis.clone(), chassis.clone(), chassis].concat(), // three times
        tlv(127, 3, &[0, 0x26, 0xe1]).repeat(400),            // unknown TLVs, without an end
    ];

    for (round, payload) in broken.iter().enumerate() {
        evil(&network, ethernet(bridges, LLDP, payload));
        evil(&network, ethernet(Mac::BROADCAST, LLDP, payload));
        evil(&network, ethernet(slow, 0x8809, &[&[1][..], payload].concat()));
        network.settled().await;
        others_are_served(&network, round as u16).await;
    }
}

#[tokio::test]
async fn s11_malformed_packets_are_survived() {
    let network = network().await;
    let (udp, arp) = (A.udp(1, B, 2).to_vec(), A.arp(B).to_vec());
    let six = ethernet(
        B.mac(),
        0x86dd,
        &[&[0x60, 0, 0, 0, 0xff, 0xff, 0, 64][..], &[1; 32], &[0, 255, 0, 0]].concat(),
    );
    let vlans = ethernet(B.mac(), 0x8100, &[0, 5, 0x81, 0].repeat(30));
    let labels = ethernet(B.mac(), 0x8847, &[0; 4].repeat(300));

    let mut packets = vec![six, vlans, labels];
    for length in 0..15u8 {
        let mut short = udp.clone();
        short[14] = 0x40 | length; // the header length, in words
        packets.push(short)
    }

    for total in [0u16, 19, 21, 0xffff] {
        let mut lying = udp.clone();
        lying[16..18].copy_from_slice(&total.to_be_bytes());
        packets.push(lying)
    }

    for at in 14..22 {
        let mut odd = arp.clone();
        odd[at] = 0xff;
        packets.push(odd)
    }

    // none of these packets has the address of a host that is checked afterwards
    packets.iter_mut().for_each(|packet| packet[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 66]));
    for (round, packet) in packets.iter().enumerate() {
        (0..=packet.len())
            .step_by(1 + packet.len() / 16)
            .for_each(|length| evil(&network, packet[..length].to_vec()));
        evil(&network, packet.clone());
        network.settled().await;
        others_are_served(&network, round as u16).await;
    }
}

/// Forged, replayed and relayed probes are tested in `links.rs`; this test floods them.
#[tokio::test]
async fn s12_a_flood_of_probes_leaves_links_as_they_are() {
    let network = network().await;
    let probe = network.switch(1).sent(PortNo(EVIL)).into_iter().find(|f| f[12..14] == LLDP.to_be_bytes());
    let probe = probe.unwrap_or_else(|| ethernet(Mac([0x01, 0x80, 0xc2, 0, 0, 0x0e]), LLDP, &[2; 60]).into());

    for round in 0..20 {
        (0..1_000).for_each(|_| evil(&network, probe.clone()));
        network.pass(2).await;
        others_are_served(&network, round).await;
    }

    let status = network.hive.status();
    let lost = status.emits.iter().filter(|emit| emit.message.ends_with("LinkDown"));
    assert_eq!(lost.map(|emit| emit.count).sum::<u64>(), 0);
}

/// A host that spoofs another one, in its packets and in ARP.
#[tokio::test]
async fn s13_a_host_that_impersonates_another_one_does_not_get_its_packets() {
    let network = network().await;
    let thief = Host { node: 1, port: EVIL, ..B };
    for round in 0..10 {
        network.clear();
        network.switch(1).receive(PortNo(EVIL), thief.arp(thief));
        network.settled().await;
        // B keeps sending
        let data = B.udp(3000 + round, A, 1);
        assert_eq!(network.send(B, &data).await, [(A.node, A.port, 1)], "round {round}");
        network.pass(20).await;
        let data = A.udp(3000 + round, B, 1);
        assert_eq!(network.send(A, &data).await, [(B.node, B.port, 1)], "round {round}");
    }
}

/// A flood of packets from forged addresses: 50 000, or a million in a long run.
#[tokio::test]
async fn s14_s15_s16_a_flood_of_forged_addresses_fills_nothing() {
    let network = network().await;
    let rounds = if std::env::var_os("BEEHIVE_LONG").is_some() { 1_000u32 } else { 50 };
    let mut flows_before = None;

    for round in 0..rounds {
        for number in round * 1_000..(round + 1) * 1_000 {
            let [_, high, middle, low] = number.to_be_bytes();
            let mut forged = host(1, EVIL, 66).udp(number as u16, A, 7).to_vec();
            forged[6..12].copy_from_slice(&[2, 6, 6, high, middle, low]);
            forged[26..30].copy_from_slice(&[10, high, middle, low]);
            if number % 4 == 0 {
                forged[..6].copy_from_slice(&Mac::BROADCAST.0)
            }
            evil(&network, forged);
        }

        network.settled().await;
        others_are_served(&network, round as u16).await;
        let flows = network.switch(1).flows().len();

        if round == 10 {
            flows_before = Some(flows)
        }

        // the flows of the other hosts' conversations in each round, and no flow of the attacker
        let of_others = 8 * (round as usize);
        assert!(flows <= flows_before.unwrap_or(usize::MAX - of_others) + of_others, "{flows} flows");
    }

    let status = network.hive.status_with_sizes();
    let sizes = status.apps.iter().flat_map(|app| &app.busiest).filter_map(|bee| bee.state_bytes);
    let largest = sizes.max().unwrap_or_default();

    // most of this memory holds the addresses that the loop guard has seen recently, whose number is limited
    let most = 64 * beehive_nom::limits::SIGHTINGS_PER_NODE_MAX as u64;
    assert!(largest < most, "a bee keeps {largest} bytes");
}

/// Ports go down and up, and switches leave and join, while packets are in flight.
#[tokio::test]
async fn s17_hosts_and_ports_that_come_and_go_at_the_same_time_leave_nothing_wrong() {
    let network = network().await;
    for round in 0..30u32 {
        for number in 0..20 {
            let guest = host(1, 3 + number % 2, 30 + (number % 5) as u8);
            network.switch(1).receive(PortNo(guest.port), guest.arp(A));
            network.switch(1).receive(PortNo(guest.port), guest.udp(number as u16, B, 9));
            if number % 7 == round % 7 {
                network.switch(1).set_up(PortNo(guest.port), number % 2 == 0);
            }
        }

        if round % 10 == 9 {
            // the test does not wait until the switch has left
            network.switch(2).disconnect();
            network.switch(1).receive(PortNo(4), host(1, 4, 31).arp(B));
            network.settled().await;
            network.switch(2).connect();
            network.pass(45).await;
            let heard = network.send(B, &B.arp(A)).await;
            assert!(heard.iter().any(|(node, ..)| *node == 1), "{heard:?}");
            network.send(A, &A.arp(B)).await;
        }

        network.settled().await;
    }

    for port in [3, 4] {
        network.switch(1).set_up(PortNo(port), true);
    }

    network.pass(45).await;
    network.send(B, &B.arp(A)).await;
    network.send(A, &A.arp(B)).await;
    others_are_served(&network, 1).await;
}
