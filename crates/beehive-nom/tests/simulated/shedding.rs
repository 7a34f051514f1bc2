//! Tests an overloaded hive: packets wait for a short time and are then shed fairly by port. Nothing else is
//! shed.

use crate::clock::Clock;
use crate::harness::settled;
use beehive_core::{App, Dict, Hive, Message, handlers};
use beehive_nom::driver::CountersNow;
use beehive_nom::object::{LLDP, Mac, NodeId, PacketIn, PacketOut, PortDown, PortNo, Tag};
use beehive_nom::sim::{SimulatedSwitch, frame};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Blocks the bee of a switch until the test releases it.
#[derive(Message, Clone)]
struct Hold(NodeId);
/// Requests the number of packets handled, by port.
#[derive(Message)]
#[message(reply = Vec<(PortNo, u64)>)]
struct Handled(NodeId);

/// Requests the number of probes handled.
#[derive(Message)]
#[message(reply = u64)]
struct Probes(NodeId);

/// Answers every packet, unless it is blocked.
#[derive(App)]
struct Slow {
    handled: Dict<NodeId, Vec<(PortNo, u64)>>,
    downs: Dict<NodeId, u64>,
    probes: Dict<NodeId, u64>,
}

/// The node of the blocked bee, the channel that announces the block, and the channel that ends it.
type Held = (NodeId, Sender<()>, Receiver<()>);

/// Channels of blocked bees. They are in a static, because a handler has no other connection to the test.
static HOLD: std::sync::Mutex<Vec<Held>> = std::sync::Mutex::new(Vec::new());

#[handlers]
impl Slow {
    #[rcv(sharded)]
    fn packet_in(&mut self, msg: &PacketIn) -> Option<PacketOut> {
        if msg.ethernet().is_some_and(|header| header.ethertype == LLDP) {
            *self.probes.entry(msg.node).or_default() += 1;
            return Some(msg.flood());
        }

        let handled = self.handled.entry(msg.node).or_default();
        match handled.iter_mut().find(|(port, _)| *port == msg.port) {
            Some((_, count)) => *count += 1,
            None => handled.push((msg.port, 1)),
        }

        Some(msg.flood())
    }
    #[rcv(sharded)]
    fn port_down(&mut self, msg: &PortDown) {
        *self.downs.entry(msg.node).or_default() += 1;
    }
    #[rcv(sharded)]
    fn probes(&mut self, msg: &Probes) -> u64 {
        self.probes.get(&msg.0).copied().unwrap_or(0)
    }
    #[rcv(sharded)]
    fn hold(&mut self, msg: &Hold) {
        let _ = self.downs.contains(&msg.0);
        let held = {
            let mut all = HOLD.lock().unwrap();
            let at = all.iter().position(|(node, ..)| *node == msg.0);
            at.map(|at| all.swap_remove(at))
        };
        if let Some((_, begun, release)) = held {
            begun.send(()).unwrap();
            release.recv().unwrap();
        }
    }
    #[rcv(sharded)]
    fn handled(&mut self, msg: &Handled) -> Vec<(PortNo, u64)> {
        self.handled.get(&msg.0).cloned().unwrap_or_default()
    }
}

struct Bench {
    clock: Arc<Clock>,
    hive: Hive,
    switch: SimulatedSwitch,
    node: NodeId,
}

impl Bench {
    async fn start(node: u64) -> Bench {
        let clock = Clock::with_threads();
        let hive = Hive::builder().platform(clock.clone()).app::<Slow>().start().unwrap();
        let node = NodeId(node);
        let switch = SimulatedSwitch::new(&hive, node, 4, true);
        switch.connect();
        settled(&clock, &hive, &[&switch]).await;
        Bench { clock, hive, switch, node }
    }

    /// Blocks the switch's bee on a thread until the returned sender is used or dropped.
    async fn hold(&self) -> Sender<()> {
        let (begun, has_begun) = channel();
        let (release, released) = channel();
        HOLD.lock().unwrap().push((self.node, begun, released));
        self.hive.emit(Hold(self.node)).await;
        tokio::task::spawn_blocking(move || has_begun.recv().unwrap()).await.unwrap();
        release
    }

    async fn release(&self, hold: Sender<()>) {
        hold.send(()).unwrap();
        // queued packets are admitted as credits return
        while self.counters().packet_ins > self.counters().packet_outs + self.counters().packet_ins_shed {
            tokio::task::yield_now().await
        }
        settled(&self.clock, &self.hive, &[&self.switch]).await
    }

    /// Sends `count` packets from `port`, and lets the driver read them.
    async fn flood(&self, port: u32, count: usize) {
        let source = Mac([2, 0, 0, 0, 0, port as u8]);
        let data = frame(Mac([2, 0, 0, 0, 0, 99]), source, Tag::Untagged, b"flood");
        (0..count).for_each(|_| self.switch.receive(PortNo(port), data.clone()));
        self.switch.quiet().await
    }

    fn counters(&self) -> CountersNow {
        self.switch.counters().now()
    }

    async fn handled(&self, port: u32) -> u64 {
        let handled = self.hive.request(Handled(self.node)).await.unwrap();
        handled.iter().find(|(p, _)| p.0 == port).map_or(0, |(_, count)| *count)
    }
}

#[tokio::test]
async fn a_bee_that_is_off_its_core_for_a_moment_costs_no_packet() {
    let bench = Bench::start(1).await;
    let hold = bench.hold().await;
    bench.flood(1, 6_000).await; // more than there are credits
    bench.clock.pass(Duration::from_millis(3));
    bench.flood(1, 1_000).await;

    let counters = bench.counters();
    assert!(counters.packet_ins_waited > 2_000, "{counters:?}");
    bench.release(hold).await;
    let counters = bench.counters();
    assert_eq!((counters.packet_ins, counters.packet_ins_shed), (7_000, 0));
    assert_eq!(bench.handled(1).await, 7_000);

    // the overload was over at once
    bench.flood(1, 6_000).await;
    assert_eq!(bench.counters().packet_ins_shed, 0);
}

#[tokio::test]
async fn a_bee_that_is_away_for_long_has_packets_shed_and_nothing_else() {
    let bench = Bench::start(2).await;
    let hold = bench.hold().await;
    for _ in 0..100 {
        bench.flood(1, 1_000).await;
        bench.clock.pass(Duration::from_millis(250));
        bench.switch.set_up(PortNo(3), false);
        bench.switch.set_up(PortNo(3), true);
    }

    bench.switch.quiet().await;
    let counters = bench.counters();
    assert_eq!(counters.packet_ins, 100_000);
    assert!(counters.packet_ins_shed > 90_000, "{counters:?}");
    bench.release(hold).await;

    let counters = bench.counters();
    let handled = bench.handled(1).await;
    assert_eq!(handled + counters.packet_ins_shed, 100_000, "each is handled or counted");
    assert!(handled < 3_072 + 512 + 1_000 + 100, "{handled} were let in without a credit");

    assert_eq!(
        bench.hive.status().apps[0].handlers.iter().find(|h| h.name == "port_down").unwrap().messages,
        100
    );
}

#[tokio::test]
async fn a_port_that_floods_takes_nothing_from_one_that_does_not() {
    let bench = Bench::start(3).await;
    let hold = bench.hold().await;
    for _ in 0..50 {
        bench.flood(1, 3_000).await;
        bench.flood(2, 4).await;
        bench.flood(1, 3_000).await;
        bench.clock.pass(Duration::from_millis(250));
    }

    bench.release(hold).await;
    assert_eq!(bench.handled(2).await, 200, "of the port that sent a little");
    assert!(bench.handled(1).await < 10_000);
    assert!(bench.counters().packet_ins_shed > 290_000);
}

/// If probes were shed, a flood through a link would make the link appear to be down, and the flood tree
/// would be torn down.
#[tokio::test]
async fn a_flood_through_a_port_sheds_none_of_its_probes() {
    let bench = Bench::start(6).await;
    let hold = bench.hold().await;
    let group = Mac([0x01, 0x80, 0xc2, 0, 0, 0x0e]);
    let probe = [&group.0[..], &[2, 0, 0, 0, 0, 1], &LLDP.to_be_bytes(), &[0; 46]].concat();
    let mut sent = 0;

    for second in 0..10 {
        bench.flood(1, 10_000).await;
        // one probe per second belongs to a link; the others come from an attacker
        let count = if second < 5 { 1 } else { 1_000 };
        (0..count).for_each(|_| bench.switch.receive(PortNo(1), probe.clone().into()));
        bench.switch.quiet().await;
        sent += count;
        bench.clock.pass(Duration::from_secs(1));
    }

    bench.release(hold).await;
    let probes = bench.hive.request(Probes(bench.node)).await.unwrap();
    assert!(probes >= 10, "{probes} of {sent} probes came in");
    let most = 5 + 5 * u64::from(beehive_nom::limits::PROBES_PER_PORT_MAX);
    assert!(probes <= most, "{probes} came in without a credit, {most} may");

    assert!(bench.counters().packet_ins_shed > 90_000);
}

#[tokio::test]
async fn floods_at_several_ports_are_shed_alike() {
    let bench = Bench::start(4).await;
    let hold = bench.hold().await;
    bench.flood(4, 3_072).await; // until credits are scarce

    for _ in 0..500 {
        for port in 1..=3 {
            bench.flood(port, 20).await;
        }
        bench.clock.pass(Duration::from_millis(3));
    }

    bench.release(hold).await;
    let handled = [bench.handled(1).await, bench.handled(2).await, bench.handled(3).await];
    let most = handled.into_iter().max().unwrap();
    assert!(handled.iter().all(|h| *h * 3 > most), "{handled:?}");
}

#[tokio::test]
async fn what_waits_at_a_port_that_goes_down_does_not_come_after_that() {
    let bench = Bench::start(5).await;
    let hold = bench.hold().await;
    bench.flood(1, 5_000).await;
    let waited = bench.counters().packet_ins_waited;
    assert!(waited > 1_000);
    bench.switch.set_up(PortNo(1), false);
    bench.switch.quiet().await;
    assert_eq!(bench.counters().packet_ins_shed, waited);

    bench.release(hold).await;
}

#[tokio::test]
async fn a_hive_ends_in_the_middle_of_a_sweep() {
    let lab = crate::harness::Lab::learning("", true).await;
    let (a, b) = (crate::harness::host(1, 1), crate::harness::host(2, 2));
    assert!(lab.ping(a, b).await);
    lab.pass(12).await; // the sweep that began at 10 s lasts until 15 s
    let stopped = lab.hive.stop(Duration::from_secs(3600));
    tokio::time::timeout(Duration::from_secs(10), stopped).await.expect("it waits for the sweep");
}
