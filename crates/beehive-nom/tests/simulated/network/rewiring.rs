//! Tests cables that are moved to another port while all ports stay up, several switches behind one port, and
//! switches that connect only once.

use super::harness::{Network, host};
use beehive_core::{App, Ctx, Key, Message, Table, handlers};
use beehive_nom::apps::{Discovery, Firewall, Forwarding, Hosts, LearningSwitch, LoopGuard, Topology};
use beehive_nom::object::{
    LLDP, Link, LinkDown, LinkUp, ListLinks, NodeId, PortId, PortNo, PortRole, PortRoleChanged,
};
use beehive_nom::sim::Behavior;
use bytes::Bytes;

/// Records the latest role of every port.
#[derive(App)]
#[app(name = "roles-witness")]
struct Roles {
    roles: Table<All, PortId, PortRole>,
    /// The role changes, in order.
    order: Table<All, u64, (PortId, PortRole)>,
}

#[derive(Key, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct All;

#[derive(Message, Clone, Copy, Debug)]
#[message(reply = PortRole)]
struct RoleOf(PortId);

#[derive(Message, Clone, Copy, Debug)]
#[message(reply = Vec<(PortId, PortRole)>)]
struct Order;

#[handlers]
impl Roles {
    #[rcv(centralized)]
    fn changed(&mut self, msg: &PortRoleChanged) {
        self.roles.at(All).insert(msg.port, msg.role);
        let number = self.order.at(All).len() as u64;
        self.order.at(All).insert(number, (msg.port, msg.role));
    }
    #[rcv(centralized)]
    fn told(&mut self, _: &Order) -> Vec<(PortId, PortRole)> {
        self.order.at(All).values().copied().collect()
    }
    #[rcv(centralized)]
    fn which(&mut self, RoleOf(port): &RoleOf, _: &mut Ctx) -> PortRole {
        self.roles.at(All).get(port).copied().unwrap_or(PortRole::Edge)
    }
}

fn end(node: u64, port: u32) -> PortId {
    PortId { node: NodeId(node), port: PortNo(port) }
}

fn link(from: PortId, to: PortId) -> Link {
    Link { from, to }
}

async fn role(network: &Network, port: PortId) -> PortRole {
    network.settled().await;
    network.hive.request(RoleOf(port)).await.expect("answers")
}

/// When an old cable is reported as gone, the role of a port must not change if another cable has been
/// plugged into the port in the meantime.
#[tokio::test]
async fn a_port_keeps_the_role_of_the_cable_that_it_has() {
    let network = Network::new(|hive| hive.app::<Topology>().app::<Roles>(), "", 1, &[]).await;
    let (port, old, new) = (end(1, 1), end(2, 1), end(3, 1));
    let (spare, other) = (end(1, 2), end(3, 2));
    let up = async |one, other| network.hive.emit(LinkUp(link(one, other))).await;
    let down = async |one, other| network.hive.emit(LinkDown(link(one, other))).await;

    for (one, other) in [(spare, other), (port, old)] {
        up(one, other).await;
        up(other, one).await;
    }

    assert_eq!(role(&network, port).await, PortRole::Tree);
    // the cable is plugged into switch 3, to which there is another cable, so this cable would close a loop
    up(port, new).await;
    down(old, port).await;
    up(new, port).await;
    assert_eq!(role(&network, new).await, PortRole::Blocked);
    down(port, old).await;
    assert_eq!(role(&network, port).await, PortRole::Blocked);

    assert_eq!(role(&network, old).await, PortRole::Edge);
    // once the other cable is gone, this cable is needed
    down(spare, other).await;
    down(other, spare).await;
    assert_eq!(role(&network, port).await, PortRole::Tree);

    // a link that works in only one direction changes nothing
    up(port, old).await;
    assert_eq!((role(&network, port).await, role(&network, old).await), (PortRole::Tree, PortRole::Blocked));
    down(port, old).await;
    assert_eq!((role(&network, port).await, role(&network, old).await), (PortRole::Tree, PortRole::Edge));
}

/// At no moment may there be a loop.
#[tokio::test]
async fn what_is_blocked_is_blocked_before_something_else_is_opened() {
    let network = Network::new(|hive| hive.app::<Topology>().app::<Roles>(), "", 1, &[]).await;
    let cables = [(end(1, 1), end(2, 1)), (end(1, 2), end(2, 2))];
    for (one, other) in cables {
        network.hive.emit(LinkUp(link(one, other))).await;
        network.hive.emit(LinkUp(link(other, one))).await;
    }

    assert_eq!(
        (role(&network, end(1, 1)).await, role(&network, end(1, 2)).await),
        (PortRole::Tree, PortRole::Blocked)
    );
    let before = network.hive.request(Order).await.expect("answers").len();

    // one direction of the first link is lost
    network.hive.emit(LinkDown(link(end(2, 1), end(1, 1)))).await;
    network.settled().await;
    let told = network.hive.request(Order).await.expect("answers").split_off(before);
    let [(one, other), (third, fourth)] = cables;
    let (blocked, tree) = (PortRole::Blocked, PortRole::Tree);

    assert_eq!(told, [(one, blocked), (other, blocked), (third, tree), (fourth, tree)]);
}

/// Three switches are connected through a cheap switch that forwards probes, so every probe reaches two of
/// them.
#[tokio::test]
async fn several_switches_behind_a_port_do_not_shake_the_network() {
    let network = Network::new(|hive| hive.app::<Discovery>().app::<Topology>(), SECRET, 3, &[]).await;
    network.pass(5).await;
    let mut before = 0;

    for round in 0..30usize {
        network.clear();
        network.pass(10).await;
        let probes = [1, 2, 3].map(|node| overheard(&network, node));

        for (sender, probe) in probes.iter().enumerate() {
            // either of the two other switches may receive the probe first
            let others = [(sender + 1 + round % 2) % 3, (sender + 2 - round % 2) % 3];
            for other in others {
                network.switch(other as u64 + 1).receive(PortNo(1), probe.clone());
                network.settled().await;
            }
        }

        if round == 10 {
            before = changes(&network)
        }
    }

    let links = network.hive.request(ListLinks).await.expect("answers");
    assert!(links.iter().any(|known| known.in_tree), "{links:?}");
    assert_eq!(changes(&network), before, "links change that nobody has touched");
}

/// Returns the number of link changes.
fn changes(network: &Network) -> u64 {
    let emits = network.hive.status().emits;
    let changes = emits.iter().filter(|e| e.message.ends_with("LinkUp") || e.message.ends_with("LinkDown"));
    changes.map(|emit| emit.count).sum::<u64>()
}

fn overheard(network: &Network, node: u64) -> Bytes {
    let sent = network.switch(node).sent(PortNo(1));
    sent.into_iter().rfind(|frame| frame[12..14] == LLDP.to_be_bytes()).expect("a probe")
}

const SECRET: &str = "[discovery]\nsecret = \"of this test\"\n";

/// Without TLS, any peer that can connect can claim any datapath id, and a new one each time.
#[tokio::test]
async fn nothing_is_kept_of_switches_that_came_once() {
    for paths in [true, false] {
        let apps = |hive: beehive_core::Builder| {
            let hive = hive.app::<Discovery>().app::<Topology>().app::<LoopGuard>();
            let hive = hive.app::<Hosts>().app::<Firewall>();
            if paths { hive.app::<Forwarding>() } else { hive.app::<LearningSwitch>() }
        };
        let settings = format!("{SECRET}[firewall]\ndefault = \"allow\"\n");
        let network = Network::new(apps, &settings, 40, &[((1, 1), (2, 1)), ((3, 1), (4, 1))]).await;
        network.pass(30).await;

        for node in 1..=40 {
            let (a, b) = (host(node, 7, 1), host(node, 6, 2));
            network.send(a, &a.arp(b)).await;
            network.switch(node).set_behavior(if node % 2 == 0 { Behavior::Full } else { Behavior::Normal });
            network.send(b, &b.udp(1, a, 2)).await;
        }

        network.switches.iter().for_each(|switch| switch.disconnect());
        network.settled().await;
        network.pass(1_500).await;
        let status = network.hive.status();
        let kept: Vec<_> = status.apps.iter().map(|app| (app.name, app.bees)).collect();

        assert!(kept.iter().all(|(_, bees)| *bees < 10), "{kept:?}");
    }
}

/// A switch that connects and disconnects repeatedly, with links, hosts and flows, while others talk.
#[tokio::test]
async fn a_thousand_connections_of_one_switch_leave_what_one_does() {
    let apps = |hive: beehive_core::Builder| {
        let hive = hive.app::<Discovery>().app::<Topology>().app::<LoopGuard>();
        hive.app::<Hosts>().app::<Firewall>().app::<Forwarding>()
    };
    let settings =
        format!("{SECRET}[loop-guard]\npaths_on_blocked = true\n[firewall]\ndefault = \"allow\"\n");
    let triangle = [((1, 1), (2, 1)), ((2, 2), (3, 2)), ((3, 1), (1, 2))];
    let network = Network::new(apps, &settings, 3, &triangle).await;

    network.pass(30).await;
    let (a, b) = (host(1, 7, 1), host(3, 7, 3));
    let talk = async || {
        network.send(a, &a.arp(b)).await;
        network.send(b, &b.arp(a)).await;
        network.reaches(a, b).await && network.reaches(b, a).await
    };
    assert!(talk().await);
    network.pass(100).await;

    let wanted = async || {
        let described = network.hive.request(beehive_nom::object::DescribeNode { node: NodeId(3) }).await;
        described.expect("is there").flows
    };
    let before = wanted().await;
    for round in 0..1_000u32 {
        network.switch(3).disconnect();
        if round % 7 == 0 {
            network.settled().await;
        } else {
            network.switch(3).quiet().await;
        }
        network.switch(3).connect();
        network.switch(3).receive(PortNo(7), b.udp(round as u16, a, 9));
        if round % 50 == 0 {
            network.pass(1).await;
        }
    }

    network.pass(160).await;
    assert!(talk().await && talk().await);
    assert_eq!(wanted().await, before);
    assert!(before.iter().all(|flow| flow.state == beehive_nom::object::FlowState::Confirmed), "{before:?}");
    let links = network.hive.request(ListLinks).await.expect("answers");

    assert!(links.len() == 3 && links.iter().all(|known| known.both_ways), "{links:?}");
    let status = network.hive.status();
    assert_eq!(status.dead_letters, 0, "{:?}", network.hive.dead_letters());
    assert!(status.timers < 2_000 && status.remembered < 20_000, "{} {}", status.timers, status.remembered);
}
