//! Tests a firewall in front of the learning switch.

use super::harness::{Host, Network, host};
use beehive_nom::apps::firewall::{Firewall, GUARD, OPEN, Policy, Rule, SetPolicy, Verdict};
use beehive_nom::apps::{Discovery, Forwarding, Hosts, LearningSwitch, LoopGuard, Topology};
use beehive_nom::object::{Conversation, DelFlows, Flow, FlowMatch, NodeId, PortNo};
use beehive_nom::parts::OwnsFlows;
use bytes::Bytes;

const A: Host = host(1, 1, 1);
const B: Host = host(1, 2, 2);
const C: Host = host(1, 3, 3);

/// Allows conversations from A to port 80 of B, and nothing else.
const RULES: &str = "[[firewall.rules]]\naction = \"allow\"\nfrom = \"10.0.0.1/32\"\nto = \"10.0.0.2/32\"\n\
    protocol = \"udp\"\nto_port = 80\n";

async fn behind(rules: &str) -> Network {
    Network::new(|hive| hive.app::<Firewall>().app::<LearningSwitch>(), rules, 1, &[]).await
}

async fn introduced(network: &Network) {
    for (one, other) in [(A, B), (B, A), (C, A)] {
        assert!(!network.send(one, &one.arp(other)).await.is_empty(), "everybody may ask for addresses");
    }
}

fn open(network: &Network) -> Vec<Flow> {
    network.switch(1).flows().into_iter().filter(|flow| flow.priority == OPEN).collect()
}

const TO_B: [(u64, u32, usize); 1] = [(1, 2, 1)];
const TO_A: [(u64, u32, usize); 1] = [(1, 1, 1)];
const NOWHERE: [(u64, u32, usize); 0] = [];

#[tokio::test]
async fn what_no_rule_allows_is_never_forwarded_not_even_the_first_packet() {
    let network = behind(RULES).await;
    introduced(&network).await;
    for _ in 0..3 {
        assert_eq!(network.send(A, &A.udp(5000, B, 81)).await, NOWHERE);
        assert_eq!(network.send(C, &C.udp(5000, B, 80)).await, NOWHERE);
        assert_eq!(network.send(B, &B.udp(80, A, 5000)).await, NOWHERE, "an answer to what was not asked");
        let strange = [&B.mac().0[..], &A.mac().0, &[0x88, 0x70, 1, 2, 3, 4]].concat().into();
        assert_eq!(network.send(A, &strange).await, NOWHERE, "neither ARP nor IP");
    }

    assert!(open(&network).is_empty());
}

#[tokio::test]
async fn answers_pass_and_the_switch_forwards_what_is_open_alone() {
    let network = behind(RULES).await;
    introduced(&network).await;
    let (question, answer) = (A.udp(5000, B, 80), B.udp(80, A, 5000));
    assert_eq!(network.send(B, &answer).await, NOWHERE);
    assert_eq!(network.send(A, &question).await, TO_B);
    assert_eq!(network.send(B, &answer).await, TO_A);
    assert_eq!(open(&network).len(), 2);

    let before = network.counters(1).packet_outs;
    for _ in 0..5 {
        assert_eq!(network.send(A, &question).await, TO_B);
        assert_eq!(network.send(B, &answer).await, TO_A);
    }

    assert_eq!(network.counters(1).packet_outs, before, "packets still come up");
    // the flows of the learning switch, which match Ethernet only, let nothing else pass
    assert!(network.switch(1).flows().iter().any(|flow| flow.owner == LearningSwitch::OWNER));
    assert_eq!(network.send(B, &B.udp(80, A, 5001)).await, NOWHERE);
    assert_eq!(network.send(A, &A.udp(5000, B, 81)).await, NOWHERE);
}

/// Any router may report that a packet was undeliverable, but only to the sender of the packet. Otherwise,
/// ICMP errors would bypass all rules.
#[tokio::test]
async fn failures_are_told_to_whoever_sent_what_failed() {
    let network = behind(RULES).await;
    introduced(&network).await;
    let question = A.udp(5000, B, 80);
    let failure = B.failure(A, &question);
    assert_eq!(network.send(B, &failure).await, NOWHERE, "nothing is open");
    assert_eq!(network.send(A, &question).await, TO_B);
    assert_eq!(network.send(B, &failure).await, TO_A);
    assert_eq!(network.send(C, &C.failure(A, &question)).await, TO_A);

    assert_eq!(network.send(A, &A.failure(B, &B.udp(80, A, 5000))).await, TO_B);
    assert_eq!(network.send(C, &C.failure(B, &question)).await, NOWHERE, "B has sent no such thing");
    assert_eq!(network.send(B, &B.failure(A, &A.udp(5001, B, 80))).await, NOWHERE, "another conversation");
}

/// Later fragments of a packet carry no ports. They pass between hosts that have an open conversation of the
/// same protocol.
#[tokio::test]
async fn fragments_pass_where_a_conversation_may_be_theirs() {
    let network = behind(RULES).await;
    introduced(&network).await;
    let later = |packet: Bytes| {
        let mut packet = packet.to_vec();
        packet[14 + 7] = 2; // offset, in units of eight bytes
        Bytes::from(packet)
    };
    let (there, back) = (later(A.udp(5000, B, 80)), later(B.udp(80, A, 5000)));

    assert_eq!(network.send(A, &there).await, NOWHERE, "nothing is open");
    assert_eq!(network.send(A, &A.udp(5000, B, 80)).await, TO_B);
    assert_eq!(network.send(A, &there).await, TO_B);
    assert_eq!(network.send(B, &back).await, TO_A);
    assert_eq!(network.send(C, &later(C.udp(5000, B, 80))).await, NOWHERE);

    let mut other = there.to_vec();
    other[14 + 9] = 6; // TCP
    assert_eq!(network.send(A, &other.into()).await, NOWHERE);
}

/// The flows of a flapping port are withdrawn repeatedly. Conversations at other ports are not affected.
#[tokio::test]
async fn conversations_end_with_the_flow_that_they_follow_and_with_no_other() {
    let network = behind(RULES).await;
    introduced(&network).await;
    for _ in 0..2 {
        assert_eq!(network.send(A, &A.udp(5000, B, 80)).await, TO_B);
        assert_eq!(network.send(B, &B.udp(80, A, 5000)).await, TO_A);
    }

    assert_eq!(open(&network).len(), 2);
    let withdraw = async |owner, key| {
        network.hive.emit(DelFlows::exactly(owner, NodeId(1), key)).await;
        network.settled().await;
    };
    let elsewhere = FlowMatch { port: Some(PortNo(9)), ..FlowMatch::ANY };
    withdraw(LoopGuard::OWNER, (50, elsewhere)).await;
    assert_eq!(open(&network).len(), 2);

    let is_there = |flow: &Flow| flow.matching.source == Some(A.mac());
    let lane =
        network.switch(1).flows().into_iter().find(|f| f.owner == LearningSwitch::OWNER && is_there(f));
    withdraw(LearningSwitch::OWNER, lane.expect("the learning switch's").key()).await;
    let left = open(&network);

    assert!(left.len() == 1 && !is_there(&left[0]), "{left:?}");
}

#[tokio::test]
async fn one_packet_is_answered_once() {
    let network = behind(RULES).await;
    introduced(&network).await;
    for (from, data, expected) in [
        (A, A.udp(5000, B, 80), 1),
        (B, B.udp(80, A, 5000), 1),
        (A, A.udp(5000, B, 81), 1), // the discarding one, for which no message goes to a real switch
        (C, C.arp(B), 1),
    ] {
        let before = network.counters(1).packet_outs;
        network.send(from, &data).await;
        assert_eq!(network.counters(1).packet_outs - before, expected);
    }
}

#[tokio::test]
async fn a_rule_that_is_removed_ends_its_conversations() {
    let network = behind(RULES).await;
    introduced(&network).await;
    let (question, answer) = (A.udp(5000, B, 80), B.udp(80, A, 5000));

    for _ in 0..2 {
        assert_eq!(network.send(A, &question).await, TO_B);
        assert_eq!(network.send(B, &answer).await, TO_A);
    }

    let nothing = Policy { rules: Vec::new(), default: Verdict::Deny };
    network.hive.request(SetPolicy(nothing)).await.expect("is taken");
    network.settled().await;
    assert!(open(&network).is_empty());
    assert_eq!(network.send(A, &question).await, NOWHERE);
    assert_eq!(network.send(B, &answer).await, NOWHERE);

    // a switch that reconnects gets the new rules, not those of the file
    network.switch(1).disconnect();
    network.settled().await;
    network.switch(1).connect();
    network.settled().await;
    assert_eq!(network.send(A, &question).await, NOWHERE);

    let rule =
        Rule { action: Verdict::Allow, from: None, to: None, protocol: None, from_port: None, to_port: None };
    let everything = Policy { rules: vec![rule], default: Verdict::Deny };
    network.hive.request(SetPolicy(everything)).await.expect("is taken");
    network.settled().await;
    introduced(&network).await;

    assert_eq!(network.send(B, &answer).await, TO_A, "anybody may begin now");
}

#[tokio::test]
async fn rules_of_other_settings_hold_at_switches_that_are_there() {
    let network = behind(RULES).await;
    introduced(&network).await;
    let (question, answer) = (A.udp(5000, B, 80), B.udp(80, A, 5000));

    for _ in 0..2 {
        assert_eq!(network.send(A, &question).await, TO_B);
        assert_eq!(network.send(B, &answer).await, TO_A);
    }

    let other = RULES.replace("to_port = 80", "to_port = 81").parse().expect("TOML");
    assert_eq!(network.hive.reconfigure(other).await, Ok(vec!["firewall"]));
    network.settled().await;
    assert!(open(&network).is_empty());
    assert_eq!(network.send(A, &question).await, NOWHERE);
    assert_eq!(network.send(B, &answer).await, NOWHERE);

    assert_eq!(network.send(A, &A.udp(5000, B, 81)).await, TO_B);
}

#[tokio::test]
async fn a_silent_conversation_is_over() {
    let network = behind(&format!("{RULES}\n[firewall]\nidle_s = 5\n")).await;
    introduced(&network).await;
    let (question, answer) = (A.udp(5000, B, 80), B.udp(80, A, 5000));
    assert_eq!(network.send(A, &question).await, TO_B);
    network.pass(40).await;
    assert_eq!(network.send(B, &answer).await, TO_A);
    network.pass(180).await;
    assert!(open(&network).is_empty());

    assert_eq!(network.send(B, &answer).await, NOWHERE);
}

#[tokio::test]
async fn a_host_that_moved_is_still_heard_and_reached() {
    let network = behind("[firewall]\ndefault = \"allow\"\n").await;
    introduced(&network).await;
    let (question, answer) = (A.udp(5000, B, 80), B.udp(80, A, 5000));

    for _ in 0..2 {
        assert_eq!(network.send(A, &question).await, TO_B);
        assert_eq!(network.send(B, &answer).await, TO_A);
    }

    let moved = Host { port: 4, ..B };
    assert_eq!(network.send(moved, &answer).await, TO_A);
    for _ in 0..2 {
        assert_eq!(network.send(A, &question).await, [(1, 4, 1)]);
        assert_eq!(network.send(moved, &answer).await, TO_A);
    }
}

#[tokio::test]
async fn one_port_cannot_open_everything() {
    let network = behind("[firewall]\ndefault = \"allow\"\nopen_per_port_max = 10\n").await;
    introduced(&network).await;
    for port in 0..50 {
        network.send(A, &A.udp(port, B, 80)).await;
    }
    assert!(open(&network).len() <= 10);
    assert_eq!(network.send(A, &A.udp(60, B, 80)).await, NOWHERE);
    assert_eq!(network.send(C, &C.udp(1, B, 80)).await, TO_B, "other ports do not notice");
}

#[tokio::test]
async fn the_guard_is_there_from_the_start_and_comes_back() {
    let network = behind("").await;
    let guards = || network.switch(1).flows().iter().filter(|flow| flow.priority == GUARD).count();
    assert_eq!(guards(), 1);
    network.switch(1).disconnect();
    network.settled().await;
    network.switch(1).connect();
    network.settled().await;
    assert_eq!(guards(), 1);
}

#[tokio::test]
async fn flows_of_what_is_open_stay_and_others_go_when_the_switch_tells_its_flows() {
    let network = behind(&format!("{RULES}\n[firewall]\nidle_s = 600\n")).await;
    introduced(&network).await;
    let (question, answer) = (A.udp(5000, B, 80), B.udp(80, A, 5000));
    assert_eq!(network.send(A, &question).await, TO_B);
    assert_eq!(network.send(B, &answer).await, TO_A);

    let mut stray = open(&network).remove(0);
    stray.matching.conversation =
        stray.matching.conversation.map(|c| Conversation { source_port: 1, ..*c }.into());
    network.switch(1).install_leftover(&stray);
    let before = network.counters(1).packet_outs;

    network.pass(900).await; // its flows are read every minute
    assert_eq!(open(&network).len(), 2, "{:?}", open(&network));
    assert_eq!(network.send(A, &question).await, TO_B);
    assert_eq!(network.send(B, &answer).await, TO_A);
    assert_eq!(network.counters(1).packet_outs, before, "packets came up");

    // the switch may be wired differently when it connects again
    network.switch(1).disconnect();
    network.settled().await;
    network.switch(1).connect();
    network.settled().await;
    assert!(open(&network).is_empty());
    introduced(&network).await;

    assert_eq!(network.send(B, &answer).await, TO_A, "and it is still open");
}

/// Every switch on the path applies the rules by itself, and sees both directions.
#[tokio::test]
async fn conversations_over_shortest_paths_pass_every_switch_on_the_way() {
    let ring = [((1, 1), (2, 2)), ((2, 1), (3, 2)), ((3, 1), (4, 2)), ((4, 1), (1, 2))];
    let settings = "[discovery]\nsecret = \"of this test\"\n[loop-guard]\npaths_on_blocked = true\n";
    let network = Network::new(
        |hive| {
            let hive = hive.app::<Discovery>().app::<Topology>().app::<LoopGuard>();
            hive.app::<Hosts>().app::<Firewall>().app::<Forwarding>()
        },
        &format!("{RULES}{settings}"),
        4,
        &ring,
    )
    .await;

    network.pass(25).await;
    for (number, (a, b)) in (6000..).zip([(1, 3), (2, 4), (3, 4), (4, 1)]) {
        let (a, b) = (host(a, 7, 1), host(b, 7, 2));
        for host in [a, b] {
            assert_eq!(network.send(host, &host.arp(host)).await.len(), 23, "all hosts' ports but its own");
        }

        network.pass(12).await; // the previous host is treated as moved
        let (question, answer) = (a.udp(number, b, 80), b.udp(80, a, number));
        assert_eq!(network.send(b, &answer).await, NOWHERE);

        for _ in 0..4 {
            assert_eq!(network.send(a, &question).await, [(b.node, b.port, 1)]);
            assert_eq!(network.send(b, &answer).await, [(a.node, a.port, 1)]);
        }

        assert_eq!(network.send(a, &a.udp(number, b, 81)).await, NOWHERE);
        for node in [a.node, b.node] {
            network.switch(node).set_up(beehive_nom::object::PortNo(7), false);
            network.settled().await;
            network.switch(node).set_up(beehive_nom::object::PortNo(7), true);
        }

        network.pass(25).await;
    }
}

/// A router with two ports at one switch: each packet passes the switch twice, with different Ethernet
/// addresses.
#[tokio::test]
async fn a_conversation_that_passes_a_switch_twice_is_forwarded_by_the_switch_alone() {
    let network = behind("[firewall]\ndefault = \"allow\"\n").await;
    let (near, far) = (host(1, 4, 4), host(1, 5, 5));
    introduced(&network).await;

    for (router, other) in [(near, A), (far, B)] {
        assert!(!network.send(router, &router.arp(other)).await.is_empty());
    }

    // the same packet on both sides of the router
    let framed = |packet: &Bytes, from: Host, to: Host| -> Bytes {
        [&to.mac().0[..], &from.mac().0, &packet[12..]].concat().into()
    };
    let (question, answer) = (A.udp(5000, B, 80), B.udp(80, A, 5000));
    let round = async || {
        assert_eq!(network.send(A, &framed(&question, A, near)).await, [(1, 4, 1)]);
        assert_eq!(network.send(far, &framed(&question, far, B)).await, TO_B);
        assert_eq!(network.send(B, &framed(&answer, B, far)).await, [(1, 5, 1)]);
        assert_eq!(network.send(near, &framed(&answer, near, A)).await, TO_A);
    };

    round().await;
    round().await;
    assert_eq!(open(&network).len(), 4);
    let before = network.counters(1).packet_outs;
    round().await;
    assert_eq!(network.counters(1).packet_outs, before, "packets still come up");

    // when the rule is removed, all of these flows are withdrawn
    let nothing = Policy { rules: Vec::new(), default: Verdict::Deny };
    network.hive.request(SetPolicy(nothing)).await.expect("is taken");
    network.settled().await;
    assert!(open(&network).is_empty(), "{:?}", open(&network));
}

/// Frames in which a conversation is hidden that no rule allows.
#[tokio::test]
async fn what_is_wrapped_is_what_is_in_it() {
    use etherparse::PacketBuilder;
    let network = behind(RULES).await;
    introduced(&network).await;
    let (allowed, denied) = (A.udp(5000, B, 80), A.udp(5000, B, 81));
    let tagged = |packet: &Bytes, tags: &[[u8; 4]]| -> Bytes {
        [&packet[..12], &tags.concat(), &packet[12..]].concat().into()
    };
    let (customer, service) = ([0x81, 0, 0, 7], [0x88, 0xa8, 0, 9]);

    for tags in [&[customer][..], &[service, customer], &[customer, customer], &[service, service, customer]]
    {
        assert_eq!(network.send(A, &tagged(&denied, tags)).await, NOWHERE, "{tags:?}");
        let arrived = network.send(A, &tagged(&allowed, tags)).await;
        assert!(arrived.contains(&(1, 2, 1)), "{tags:?}: {arrived:?}");
        assert_eq!(network.send(A, &tagged(&denied, tags)).await, NOWHERE, "{tags:?}, though one is open");
    }

    // deeper than the parser looks, and a tag at the end of the frame
    for tags in [&[customer; 4][..], &[customer; 9]] {
        assert_eq!(network.send(A, &tagged(&denied, tags)).await, NOWHERE);
    }

    assert_eq!(network.send(A, &tagged(&allowed, &[customer]).slice(..16)).await, NOWHERE);
    // other disguises: a malformed ARP, a tunnel, an MPLS label
    let inside = &denied[14..];
    let frame = |kind: [u8; 2], head: &[u8]| -> Bytes {
        [&B.mac().0[..], &A.mac().0, &kind, head, inside].concat().into()
    };

    for (kind, head) in [
        ([0x08, 0x06], &[][..]),
        ([0x88, 0x47], &[0, 0, 0x11, 64]),
        ([0x88, 0x64], &[0x11, 0, 0, 1, 0, 0x40, 0, 0x21]),
        ([0x00, 0x40], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]),
    ] {
        assert_eq!(network.send(A, &frame(kind, head)).await, NOWHERE, "{kind:x?}");
    }

    let mut tunnel = Vec::new();
    let step = PacketBuilder::ethernet2(A.mac().0, B.mac().0).ipv4(A.ip(), B.ip(), 64);
    step.write(&mut tunnel, etherparse::IpNumber::IPV4, inside).expect("fits");
    assert_eq!(network.send(A, &tunnel.into()).await, NOWHERE);
}

/// IPv6 extension headers hide the payload: known ones are skipped, and unknown ones do not bypass the rules.
#[tokio::test]
async fn headers_of_ipv6_hide_nothing() {
    let rules = "[firewall]\ndefault = \"allow\"\n[[firewall.rules]]\naction = \"deny\"\nprotocol = \"udp\"\nto_port = 81\n";
    let network = behind(rules).await;
    introduced(&network).await;
    let datagram = |port: u8| [0x13, 0x88, 0, port, 0, 12, 0, 0, 1, 2, 3, 4];
    let frame = |next: u8, rest: &[u8]| -> Bytes {
        let length = (rest.len() as u16).to_be_bytes();
        let head = [&[0x60, 0, 0, 0][..], &length, &[next, 64], &[0x20; 16], &[0x30; 16]].concat();
        [&B.mac().0[..], &A.mac().0, &[0x86, 0xdd], &head, rest].concat().into()
    };

    let behind_headers = |headers: &[(u8, &[u8])], port: u8| {
        let kinds = headers.iter().map(|(kind, _)| *kind).chain([17]).collect::<Vec<_>>();
        let mut rest = Vec::new();
        for (number, (_, data)) in headers.iter().enumerate() {
            rest.push(kinds[number + 1]);
            rest.extend_from_slice(data);
        }
        rest.extend_from_slice(&datagram(port));
        frame(kinds[0], &rest)
    };

    let (options, routing) = ([0, 1, 4, 0, 0, 0, 0], [0, 4, 0, 0, 0, 0, 0]);
    let (whole, first) = ([0, 0, 0, 0, 0, 0, 9], [0, 0, 1, 0, 0, 0, 9]);
    let chains: [&[(u8, &[u8])]; 8] = [
        &[],
        &[(0, &options)],
        &[(60, &options)],
        &[(43, &routing)],
        &[(44, &whole)],
        &[(44, &first)],
        &[(0, &options), (60, &options), (43, &routing), (44, &whole), (60, &options)],
        &[(60, &options), (60, &options), (60, &options), (60, &options), (60, &options)],
    ];

    for chain in chains {
        assert_eq!(network.send(A, &behind_headers(chain, 81)).await, NOWHERE, "{chain:?}");
        if chain.len() < 5 {
            assert_eq!(network.send(A, &behind_headers(chain, 80)).await, TO_B, "{chain:?}");
        }
        assert_eq!(
            network.send(A, &behind_headers(chain, 81)).await,
            NOWHERE,
            "{chain:?}, after another one"
        );
    }
}
