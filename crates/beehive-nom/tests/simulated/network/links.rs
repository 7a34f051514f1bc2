//! Tests link discovery: links are found and lost, and hosts cannot forge them.

use super::harness::{Cable, Network, host};
use beehive_core::{App, Ctx, Dict, Key, Message, Table, handlers};
use beehive_nom::apps::Discovery;
use beehive_nom::apps::discovery::{Probe, ProbeKey};
use beehive_nom::object::{LLDP, Link, LinkDown, LinkUp, NodeId, PortId, PortNo};
use bytes::Bytes;

/// Records the links that were found.
#[derive(App)]
#[app(name = "links-witness")]
struct Witness {
    links: Table<All, Link, ()>,
    changes: Dict<All, u64>,
}

#[derive(Key, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct All;

#[derive(Message, Clone, Copy, Debug)]
#[message(reply = (Vec<Link>, u64))]
struct Which;

#[handlers]
impl Witness {
    #[rcv(centralized)]
    fn up(&mut self, LinkUp(link): &LinkUp) {
        assert!(self.links.at(All).insert(*link, ()).is_none(), "up twice");
        *self.changes.entry(All).or_default() += 1;
    }
    #[rcv(centralized)]
    fn down(&mut self, LinkDown(link): &LinkDown) {
        assert!(self.links.at(All).remove(link).is_some(), "down twice");
        *self.changes.entry(All).or_default() += 1;
    }
    #[rcv(centralized)]
    fn which(&mut self, _: &Which, _: &mut Ctx) -> (Vec<Link>, u64) {
        (self.links.at(All).keys().copied().collect(), self.changes.get(&All).copied().unwrap_or(0))
    }
}

const SECRET: &str = "[discovery]\nsecret = \"of this test\"\n";

async fn network(switches: u64, wires: &[Cable]) -> Network {
    Network::new(|hive| hive.app::<Discovery>().app::<Witness>(), SECRET, switches, wires).await
}

async fn links(network: &Network) -> Vec<Link> {
    network.settled().await;
    let (links, _) = network.hive.request(Which).await.expect("answers");
    assert_eq!(network.hive.status().dead_letters, 0);
    links
}

fn end(node: u64, port: u32) -> PortId {
    PortId { node: NodeId(node), port: PortNo(port) }
}

fn both(one: PortId, other: PortId) -> Vec<Link> {
    let link = Link { from: one, to: other };
    vec![link, link.reversed()]
}

/// Returns the latest probe that a port has sent.
fn overheard(network: &Network, node: u64, port: u32) -> Bytes {
    let sent = network.switch(node).sent(PortNo(port));
    sent.into_iter().rfind(|frame| frame[12..14] == LLDP.to_be_bytes()).expect("a probe")
}

#[tokio::test]
async fn links_are_found_at_once_and_lost_at_once_and_stay() {
    let network = network(2, &[((1, 1), (2, 2))]).await;
    assert_eq!(links(&network).await, both(end(1, 1), end(2, 2)));
    network.pass(100).await;
    let (_, changes) = network.hive.request(Which).await.expect("answers");
    assert_eq!(changes, 2, "links that were there go and come");
    network.wires[0].cut();
    assert_eq!(links(&network).await, []);
    network.wires[0].mend();

    assert_eq!(links(&network).await, both(end(1, 1), end(2, 2)));
    network.switch(2).disconnect();
    assert_eq!(links(&network).await, []);
    network.switch(2).connect();

    assert_eq!(links(&network).await, both(end(1, 1), end(2, 2)));
}

#[tokio::test]
async fn a_link_that_is_not_heard_any_more_is_lost() {
    let network = network(2, &[((1, 1), (2, 2))]).await;
    assert_eq!(links(&network).await.len(), 2);
    // ports stay up and no frame passes: a switch in between has failed
    network.wires[0].set_lossy(true);
    network.pass(60).await;
    assert_eq!(links(&network).await, []);
    network.wires[0].set_lossy(false);
    network.pass(15).await;

    assert_eq!(links(&network).await.len(), 2);
}

#[tokio::test]
async fn a_link_that_was_lost_comes_back_though_hosts_talk_over_it() {
    let network = network(2, &[((1, 1), (2, 2))]).await;
    network.pass(40).await;
    assert_eq!(links(&network).await.len(), 2);
    network.wires[0].set_lossy(true);
    network.pass(60).await;
    assert_eq!(links(&network).await, []);

    // packets forwarded by flows keep arriving at both ends
    network.wires[0].set_lossy(false);
    let (one, other) = (host(1, 1, 9), host(2, 2, 8));
    for from in [one, other] {
        network.switch(from.node).receive(PortNo(from.port), from.arp(other));
    }

    network.pass(30).await;
    assert_eq!(links(&network).await.len(), 2, "hosts seem to be behind both ports");
}

#[tokio::test]
async fn a_pause_of_ours_does_not_count_against_links() {
    let network = network(2, &[((1, 1), (2, 2))]).await;
    network.pass(20).await;
    for _ in 0..3 {
        network.pause(std::time::Duration::from_secs(7)).await;
        network.pass(20).await;
    }

    let (links, changes) = network.hive.request(Which).await.expect("answers");
    assert_eq!((links.len(), changes), (2, 2), "links were lost and found again");
    network.wires[0].set_lossy(true);
    network.pass(70).await;

    assert_eq!(network.hive.request(Which).await.expect("answers").0, [], "and one that is silent is lost");
}

/// Delays probes by `delay` seconds for 15 seconds, on a wire that loses all other frames. Returns the number
/// of links and the number of link changes.
async fn changes_with_late_answers(delay: usize) -> (usize, u64) {
    let network = network(2, &[((1, 1), (2, 2))]).await;
    network.pass(20).await;
    network.wires[0].set_lossy(true);
    let mut under_way = std::collections::VecDeque::new();

    for _ in 0..15 {
        network.clear();
        network.pass(10).await;
        under_way.push_back([overheard(&network, 1, 1), overheard(&network, 2, 2)]);
        if under_way.len() > delay
            && let Some([from_one, from_other]) = under_way.pop_front()
        {
            network.switch(2).receive(PortNo(2), from_one);
            network.switch(1).receive(PortNo(1), from_other);
            network.settled().await
        }
    }

    let (links, changes) = network.hive.request(Which).await.expect("answers");
    (links.len(), changes)
}

/// An overloaded machine takes seconds to process a probe. Existing links must survive such a delay.
#[tokio::test]
async fn links_stay_when_answers_are_late() {
    assert_eq!(changes_with_late_answers(2).await, (2, 2));
    assert_eq!(changes_with_late_answers(6).await, (0, 4), "so late that they say nothing of now");
}

#[tokio::test]
async fn forged_and_replayed_probes_make_no_link() {
    let network = network(2, &[]).await;
    network.pass(5).await;
    let switch = network.switch(2);
    let real = overheard(&network, 1, 4);

    // with another secret
    let forged = Probe { from: end(1, 4), at: network.hive.now(), nonce: 1 }.frame(&ProbeKey::of("guess"), 3);
    switch.receive(PortNo(1), forged);

    // with the right secret and an invented nonce
    let invented = Probe { from: end(1, 4), at: network.hive.now(), nonce: 1 };
    switch.receive(PortNo(1), invented.frame(&ProbeKey::of("of this test"), 3));

    // with one bit changed, truncated, and longer than declared
    for at in (14..real.len()).step_by(3) {
        let mut changed = real.to_vec();
        changed[at] ^= 0x10;
        if Probe::read(&changed, &ProbeKey::of("of this test")).is_err() {
            switch.receive(PortNo(1), changed.into());
        }
        switch.receive(PortNo(1), real.slice(..at));
    }

    assert_eq!(links(&network).await, []);
    // an old probe, replayed
    network.pass(25).await;
    switch.receive(PortNo(1), real);
    assert_eq!(links(&network).await, []);
}

#[tokio::test]
async fn one_probe_makes_one_link() {
    let network = network(3, &[]).await;
    network.pass(5).await;
    let real = overheard(&network, 1, 4);
    network.switch(2).receive(PortNo(1), real.clone());
    network.settled().await;
    network.switch(3).receive(PortNo(1), real);
    assert_eq!(links(&network).await, [Link { from: end(1, 4), to: end(2, 1) }]);
}

#[tokio::test]
async fn hosts_that_relay_probes_make_no_link() {
    let network = network(2, &[]).await;
    network.pass(40).await;
    let (one, other) = (host(1, 4, 1), host(2, 4, 2));

    for from in [one, other] {
        network.send(from, &from.arp(from)).await;
    }

    for _ in 0..30 {
        network.pass(10).await;
        network.switch(2).receive(PortNo(4), overheard(&network, 1, 4));
        network.switch(1).receive(PortNo(4), overheard(&network, 2, 4));
    }

    assert_eq!(links(&network).await, []);
}

#[tokio::test]
async fn a_flood_of_probes_harms_nobody() {
    let network = network(2, &[((1, 1), (2, 2))]).await;
    assert_eq!(links(&network).await.len(), 2);
    let garbage =
        [&[0x01, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 0, 9][..], &LLDP.to_be_bytes(), &[0xff; 511]].concat();

    for _ in 0..5 {
        for _ in 0..2_000 {
            network.switch(1).receive(PortNo(5), Bytes::from(garbage.clone()));
        }
        network.pass(10).await;
    }

    let (links, changes) = network.hive.request(Which).await.expect("answers");
    assert_eq!((links.len(), changes), (2, 2));
}
