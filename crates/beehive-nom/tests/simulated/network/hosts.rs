//! Tests host tracking: locations, addresses, and spoofed hosts.

use super::harness::{Cable, Host, Network, host};
use beehive_nom::apps::{Discovery, Forwarding, Hosts, LoopGuard, Topology};
use beehive_nom::object::{
    Action, Actions, FindAddress, FindHost, Flow, Link, LinkUp, ListHosts, ListLinks, Mac, NodeId, PortId,
    PortNo, Station, VerifyFlows, Vlan,
};
use std::net::IpAddr;

const SETTINGS: &str = "[discovery]\nsecret = \"of this test\"\n[loop-guard]\npaths_on_blocked = true\n\
    [hosts]\nhosts_per_port_max = 20\n";
/// A ring of four switches.
const RING: &[Cable] = &[((1, 1), (2, 2)), ((2, 1), (3, 2)), ((3, 1), (4, 2)), ((4, 1), (1, 2))];

async fn ring() -> Network {
    let network = Network::new(
        |hive| {
            let hive = hive.app::<Discovery>().app::<Topology>().app::<LoopGuard>();
            hive.app::<Hosts>().app::<Forwarding>()
        },
        SETTINGS,
        4,
        RING,
    )
    .await;

    network.pass(25).await;
    network
}

fn hosts() -> [Host; 4] {
    [1, 2, 3, 4].map(|node| host(node, 7, node as u8))
}

fn place(host: Host) -> PortId {
    PortId { node: NodeId(host.node), port: PortNo(host.port) }
}

async fn known(network: &Network, host: Host) -> Option<PortId> {
    let station = Station::new(Vlan::NONE, host.mac());
    network.hive.request(FindHost(station)).await.ok().map(|known| known.at)
}

async fn introduce(network: &Network) {
    for host in hosts() {
        let heard = network.send(host, &host.arp(host)).await;
        assert_eq!(heard.iter().filter(|(_, port, times)| *port == 7 && *times == 1).count(), 3, "{heard:?}");
    }
}

#[tokio::test]
async fn hosts_are_where_they_speak_and_not_where_their_packets_pass() {
    let network = ring().await;
    introduce(&network).await;
    for host in hosts() {
        assert_eq!(known(&network, host).await, Some(place(host)));
        let station = network.hive.request(FindAddress(IpAddr::from(host.ip()))).await.expect("is known");
        assert_eq!(station, Station::new(Vlan::NONE, host.mac()));
        let there = network.hive.request(ListHosts(NodeId(host.node))).await.expect("is known");
        assert_eq!(there, [(station, PortNo(host.port))]);
    }

    let links = network.hive.request(ListLinks).await.expect("are known");
    assert!(links.len() == 4 && links.iter().all(|known| known.both_ways), "{links:?}");
    assert_eq!(links.iter().filter(|known| known.in_tree).count(), 3, "{links:?}");
    network.switch(3).set_up(PortNo(7), false);
    network.settled().await;
    assert_eq!(known(&network, hosts()[2]).await, None);
    assert!(
        network.hive.request(FindAddress(IpAddr::from(hosts()[2].ip()))).await.is_err(),
        "it went with the host"
    );

    assert_eq!(known(&network, hosts()[1]).await, Some(place(hosts()[1])));
}

#[tokio::test]
async fn packets_take_shortest_paths_by_flows_also_over_links_that_floods_avoid() {
    let network = ring().await;
    introduce(&network).await;
    let wires = || network.wires.iter().map(|wire| wire.carried()).sum::<u64>();

    for from in hosts() {
        for to in hosts().into_iter().filter(|to| *to != from) {
            for round in 0..2 {
                let (before, up) = (wires(), network.handled());
                assert!(network.reaches(from, to).await, "{from:?} to {to:?}");
                let around = from.node.abs_diff(to.node);
                assert_eq!(wires() - before, around.min(4 - around), "{from:?} to {to:?}");
                assert!(round == 0 || network.handled() == up, "packets still come up");
            }
        }
    }
}

#[tokio::test]
async fn a_host_that_moved_is_reached_in_its_new_place_and_its_flows_are_gone() {
    let network = ring().await;
    introduce(&network).await;
    let [a, _, c, _] = hosts();

    for _ in 0..2 {
        assert!(network.reaches(a, c).await && network.reaches(c, a).await);
    }

    let moved = Host { node: 2, port: 6, ..c };
    assert!(network.reaches(moved, a).await, "it is heard at once");
    network.pass(12).await;
    assert_eq!(known(&network, moved).await, Some(place(moved)));

    for _ in 0..2 {
        assert!(network.reaches(a, moved).await && network.reaches(moved, a).await);
    }

    let old = network.switch(3).flows();
    assert!(!old.iter().any(|flow| flow.matching.destination == Some(c.mac())), "{old:?}");
    // and the host moves back
    network.pass(12).await;
    assert!(network.reaches(c, a).await);
    network.pass(12).await;

    assert!(network.reaches(a, c).await);
}

#[tokio::test]
async fn a_host_that_impersonates_one_that_answers_is_not_believed() {
    let network = ring().await;
    introduce(&network).await;
    let [a, b, c, _] = hosts();
    let thief = Host { node: 4, port: 6, ..a };

    for _ in 0..5 {
        network.clear();
        network.switch(4).receive(PortNo(6), thief.arp(c));
        network.settled().await;

        // the controller probes the host at its old port, and the host answers
        let asked = network
            .switch(1)
            .sent(PortNo(7))
            .into_iter()
            .find(|frame| frame[..6] == a.mac().0 && frame[12..14] == [8, 6] && frame[38..42] == a.ip());

        assert!(asked.is_some(), "nobody asked");
        network.switch(1).receive(PortNo(7), a.arp(a));
        network.pass(12).await;
        assert_eq!(known(&network, a).await, Some(place(a)));

        assert!(network.reaches(b, a).await);
    }
}

#[tokio::test]
async fn a_port_full_of_forged_hosts_harms_nobody_else() {
    let network = ring().await;
    introduce(&network).await;
    let [a, b, ..] = hosts();

    for number in 0..1_000u32 {
        let [_, _, high, low] = number.to_be_bytes();
        let forged = Mac([2, 0, 0, 9, high, low]);
        let frame = beehive_nom::sim::frame(b.mac(), forged, beehive_nom::object::Tag::Untagged, b"x");
        network.switch(1).receive(PortNo(5), frame);
    }

    network.settled().await;
    let told = network.hive.status();
    let sightings =
        told.apps.iter().flat_map(|app| &app.handlers).find(|h| h.name == "sighting").expect("there");
    assert!(sightings.messages < 100, "{} were tracked", sightings.messages);
    assert!(network.reaches(a, b).await && network.reaches(b, a).await);

    let late = host(1, 6, 77);
    assert!(network.reaches(late, a).await);
    assert_eq!(known(&network, late).await, Some(place(late)));
}

#[tokio::test]
async fn a_host_that_says_to_have_every_address_has_the_latest_few() {
    let network = ring().await;
    introduce(&network).await;
    let greedy = hosts()[1];

    for number in 50..150 {
        let mut claim = greedy.arp(greedy).to_vec();
        claim[31] = number; // the sender's address
        network.switch(2).receive(PortNo(7), claim.into());
        network.settled().await;
    }

    let station = Station::new(Vlan::NONE, greedy.mac());
    let known = network.hive.request(FindHost(station)).await.expect("is known");
    assert_eq!(known.addresses.len(), 8);
    assert_eq!(known.addresses.last(), Some(&IpAddr::from([10, 0, 0, 149])));
    let mut found = 0;

    for number in 50..150 {
        let address = IpAddr::from([10, 0, 0, number]);
        found += usize::from(network.hive.request(FindAddress(address)).await.is_ok());
    }

    assert_eq!(found, 8, "addresses that nobody has are kept");
}

#[tokio::test]
async fn a_link_that_dies_takes_its_flows_with_it_and_packets_find_another_way() {
    let network = ring().await;
    introduce(&network).await;
    let all = hosts();

    for wire in 0..4 {
        for from in all {
            for to in all.into_iter().filter(|to| *to != from) {
                assert!(network.reaches(from, to).await);
            }
        }

        network.wires[wire].cut();
        network.settled().await;
        for from in all {
            for to in all.into_iter().filter(|to| *to != from) {
                assert!(network.reaches(from, to).await, "{from:?} to {to:?} without wire {wire}");
            }
        }

        network.wires[wire].mend();
        network.pass(25).await;
    }
}

/// Any host can send a DHCP grant, which assigns an address to another host. Grants must not displace the
/// addresses that the host itself has announced, because the controller uses these to probe the host.
#[tokio::test]
async fn forged_grants_do_not_make_a_host_forgotten_by_its_address() {
    let network = ring().await;
    introduce(&network).await;
    let [a, _, c, _] = hosts();
    let evil = host(4, 6, 66);

    for number in 100..120 {
        let mut message = vec![0; 240];
        message[..3].copy_from_slice(&[2, 1, 6]);
        message[16..20].copy_from_slice(&[10, 9, 9, number]);
        message[28..34].copy_from_slice(&a.mac().0);
        message[236..].copy_from_slice(&[99, 130, 83, 99]);
        message.extend([53, 1, 5, 255]);
        let mut grant = Vec::new();
        let step = etherparse::PacketBuilder::ethernet2(evil.mac().0, [0xff; 6]);
        step.ipv4(evil.ip(), [255; 4], 64).udp(67, 68).write(&mut grant, &message).expect("fits");
        network.switch(4).receive(PortNo(6), grant.into());
        network.settled().await;
    }

    network.clear();
    let thief = Host { node: 4, port: 6, ..a };
    network.switch(4).receive(PortNo(6), thief.udp(1, c, 2));
    network.settled().await;
    let asked = network.switch(1).sent(PortNo(7));
    let about = |frame: &bytes::Bytes| frame[..6] == a.mac().0 && frame[12..14] == [8, 6];
    let asked: Vec<_> =
        asked.iter().filter(|frame| about(frame)).map(|frame| frame[38..42].to_vec()).collect();

    assert!(asked.contains(&a.ip().to_vec()), "it is asked about {asked:?}");
}

#[tokio::test]
async fn a_host_whose_old_port_goes_down_is_where_it_says() {
    let network = ring().await;
    introduce(&network).await;
    let [a, b, ..] = hosts();
    let moved = Host { node: 4, port: 6, ..a };
    network.send(moved, &moved.udp(1, b, 2)).await;
    assert_eq!(known(&network, a).await, Some(place(a)), "it may answer in its old place yet");
    network.switch(1).set_up(PortNo(7), false);
    network.settled().await;

    assert_eq!(known(&network, a).await, Some(place(moved)));
}

/// Packets that arrive before a link is known come from hosts behind it.
#[tokio::test]
async fn who_was_heard_on_a_port_is_not_there_when_a_link_is() {
    let network = Network::new(|hive| hive.app::<Hosts>(), "", 1, &[]).await;
    let (near, far) = (host(1, 1, 1), host(1, 2, 2));
    network.send(near, &near.arp(far)).await;
    network.send(far, &far.arp(near)).await;
    assert_eq!(known(&network, far).await, Some(place(far)));

    let link = Link { from: PortId { node: NodeId(2), port: PortNo(1) }, to: place(far) };
    network.hive.emit(LinkUp(link)).await;
    network.settled().await;
    assert_eq!((known(&network, near).await, known(&network, far).await), (Some(place(near)), None));
    network.send(far, &far.arp(far)).await;

    assert_eq!(known(&network, far).await, None);
}

/// The flow of the first switch of a path must expire first. Otherwise packets would match no flow in the
/// middle of the path, at one switch after the other.
#[tokio::test]
async fn flows_end_first_where_a_path_begins() {
    let network = ring().await;
    introduce(&network).await;
    let [a, _, c, _] = hosts();
    assert!(network.reaches(a, c).await);
    let ends = [1u64, 2, 3, 4].map(|node| {
        let flows = network.switch(node).flows();
        flows.iter().find(|f| f.matching.destination == Some(c.mac())).map(|f| (f.idle_s, f.hard_s))
    });

    let later: Vec<_> = ends[1..].iter().flatten().collect();
    let first = ends[0].expect("a flow where it begins");
    assert!(later.len() == 2 && later.iter().all(|end| end.0 > first.0 && end.1 > first.1), "{ends:?}");
}

#[tokio::test]
async fn flows_that_lead_elsewhere_are_withdrawn_when_they_are_found() {
    let network = ring().await;
    introduce(&network).await;
    let [a, _, c, _] = hosts();
    assert!(network.reaches(a, c).await);
    let flows = network.switch(3).flows();
    let good = flows.into_iter().find(|f| f.matching.destination == Some(c.mac())).expect("a flow");

    network
        .switch(3)
        .install_leftover(&Flow { actions: Actions::One(Action::Output(PortNo(5))), ..good.clone() });
    network.hive.request(VerifyFlows { node: NodeId(3) }).await.expect("is there");
    network.settled().await;
    assert!(network.reaches(a, c).await);
    let flows = network.switch(3).flows();
    let leads = flows.iter().filter(|f| f.matching == good.matching).map(|f| &f.actions).collect::<Vec<_>>();

    assert_eq!(leads, [&good.actions]);
}

#[tokio::test]
async fn what_is_for_a_host_behind_the_same_port_does_not_come_back() {
    let network = ring().await;
    introduce(&network).await;
    let [a, ..] = hosts();
    let neighbor = Host { number: 77, ..a };
    assert_eq!(network.send(neighbor, &neighbor.udp(1, a, 2)).await, []);
}
