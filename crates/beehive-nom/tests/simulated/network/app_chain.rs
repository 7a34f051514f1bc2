//! Tests firewall, learning switch, hosts and discovery on the same packet: each packet gets exactly one
//! answer, which is the firewall's answer if the packet is denied.

use super::harness::{Host, Network, host};
use beehive_nom::apps::firewall::{Policy, SetPolicy, Verdict};
use beehive_nom::apps::{Discovery, Firewall, Hosts, LearningSwitch, LoopGuard, Topology};
use beehive_nom::object::{
    Cause, DescribeNode, FindHost, IntendedFlow, NodeId, PortId, PortNo, Station, Vlan,
};
use beehive_nom::parts::OwnsFlows;
use bytes::Bytes;
use std::collections::BTreeSet;

const A: Host = host(1, 1, 1);
const B: Host = host(2, 2, 2);
const C: Host = host(1, 3, 3);

/// Allows conversations from A to port 80 of B, wherever the hosts are.
const SETTINGS: &str = "[discovery]\nsecret = \"of this test\"\n\
    [[firewall.rules]]\naction = \"allow\"\nfrom = \"10.0.0.1/32\"\nto = \"10.0.0.2/32\"\nprotocol = \"udp\"\nto_port = 80\n";

/// Creates two switches with a wire between them, with all apps in the intended order.
async fn network() -> Network {
    let apps = |hive: beehive_core::Builder| {
        let hive = hive.app::<Discovery>().app::<Topology>().app::<LoopGuard>();
        hive.app::<Hosts>().app::<Firewall>().app::<LearningSwitch>()
    };
    let network = Network::new(apps, SETTINGS, 2, &[((1, 8), (2, 8))]).await;
    network.pass(25).await;

    for (one, other) in [(A, B), (B, A), (C, A)] {
        assert_eq!(network.send(one, &one.arp(other)).await.len(), 13, "all hosts' ports but its own");
    }
    network
}

/// Sends a frame and returns where it arrived. Checks that each packet-in at each switch was answered exactly
/// once.
async fn send(network: &Network, from: Host, data: &Bytes) -> Vec<(u64, u32, usize)> {
    let counted = || [1, 2].map(|node| network.counters(node));
    let before = counted();
    let arrived = network.send(from, data).await;
    for (before, after) in before.iter().zip(counted()) {
        let (ins, outs) = (after.packet_ins - before.packet_ins, after.packet_outs - before.packet_outs);
        assert_eq!(outs, ins, "packet-outs for packet-ins");
    }
    arrived
}

#[tokio::test]
async fn each_packet_is_answered_once_and_what_is_denied_goes_nowhere() {
    let network = network().await;
    let (question, answer) = (A.udp(5000, B, 80), B.udp(80, A, 5000));
    let strange: Bytes = [&B.mac().0[..], &A.mac().0, &[0x88, 0x70, 1, 2, 3, 4]].concat().into();

    for round in 0..3 {
        // first, replies without a request: no conversation is open yet
        if round == 0 {
            assert!(send(&network, B, &answer).await.is_empty(), "an answer to what was not asked");
        }
        assert!(send(&network, A, &A.udp(5000, B, 81)).await.is_empty(), "another port");
        assert!(send(&network, C, &C.udp(5000, B, 80)).await.is_empty(), "another host");
        assert!(send(&network, A, &strange).await.is_empty(), "neither ARP nor IP");
        assert_eq!(send(&network, A, &question).await, [(2, 2, 1)], "round {round}");
        assert_eq!(send(&network, B, &answer).await, [(1, 1, 1)], "round {round}");
        assert!(send(&network, B, &B.udp(80, A, 5001)).await.is_empty(), "an answer on another port");
        assert!(send(&network, B, &B.udp(81, A, 5000)).await.is_empty(), "an answer from another port");
        assert_eq!(send(&network, C, &C.arp(A)).await.len(), 13, "everybody may ask for addresses");
    }

    // the observing apps have seen all packets
    let station = |host: Host| Station::new(Vlan::NONE, host.mac());
    for host in [A, B, C] {
        let known = network.hive.request(FindHost(station(host))).await.expect("is known");
        assert_eq!(known.at, PortId { node: NodeId(host.node), port: PortNo(host.port) });
    }

    let status = network.hive.status();
    let found = status.emits.iter().filter(|emit| emit.message.ends_with("LinkUp"));
    assert_eq!(found.map(|emit| emit.count).sum::<u64>(), 2, "both directions of the wire");
    assert_eq!(status.dead_letters, 0);
}

#[tokio::test]
async fn a_rule_that_is_removed_ends_its_conversations_at_every_switch() {
    let network = network().await;
    let (question, answer) = (A.udp(5000, B, 80), B.udp(80, A, 5000));
    for _ in 0..2 {
        assert_eq!(send(&network, A, &question).await, [(2, 2, 1)]);
        assert_eq!(send(&network, B, &answer).await, [(1, 1, 1)]);
    }

    let nothing = Policy { rules: Vec::new(), default: Verdict::Deny };
    network.hive.request(SetPolicy(nothing)).await.expect("is taken");
    network.settled().await;

    for _ in 0..2 {
        assert!(send(&network, A, &question).await.is_empty());
        assert!(send(&network, B, &answer).await.is_empty());
    }

    for node in [1, 2] {
        let flows = network.switch(node).flows();
        assert!(flows.iter().all(|flow| flow.matching.conversation.is_none()), "{flows:?}");
    }
}

#[tokio::test]
async fn every_flow_says_who_wants_it_and_what_for() {
    let network = network().await;
    let mut owners = BTreeSet::new();
    for node in [1, 2].map(NodeId) {
        let described = network.hive.request(DescribeNode { node }).await.unwrap();
        for IntendedFlow { flow, .. } in described.flows {
            assert_ne!(flow.cause, Cause::UNKNOWN, "{flow:?}");
            owners.insert(flow.owner);
        }
    }

    assert!(owners.contains(&LoopGuard::OWNER) && owners.contains(&Firewall::OWNER), "{owners:?}");
}
