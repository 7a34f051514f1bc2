//! Switches that are connected to three hives: one driver controls each of them, whichever hives crash or suspect each other.

use beehive_core::cluster::HiveLost;
use beehive_core::testing::Cluster;
use beehive_core::{Address, Handlers, HiveId, Restart, Time};
use beehive_nom::apps::{Hub, Mastership, NodeController};
use beehive_nom::driver::{
    Admission, Close, Counters, Driver, Event, Events, FlowReading, Role, drive_among,
};
use beehive_nom::object::{
    DescribeNode, Flow, FlowsRead, Mac, NodeId, PacketIn, PacketInReason, PacketOut, Port, PortNo, ReadFlows,
    Tag, WithdrawFlows,
};
use beehive_nom::sim::frame;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Notify, watch};

const HIVES: usize = 3;
const NODES: u64 = 3;

/// A switch with any number of connections, which obeys its master only.
#[derive(Default)]
struct Switch {
    connections: BTreeMap<u64, Wire>,
    connected: u64,
    newest: Option<u64>,
    master: Option<u64>,
    /// The connection to which each generation was granted.
    granted: BTreeMap<u64, u64>,
    sent: Vec<PacketOut>,
    refused: usize,
    faults: Vec<String>,
}

/// One end of a connection.
#[derive(Default)]
struct Wire {
    hive: usize,
    driver: Option<Address>,
    events: VecDeque<Event>,
    packets: VecDeque<PacketIn>,
    wake: Arc<Notify>,
}

/// The driver of one connection.
struct End {
    node: NodeId,
    switch: Arc<Mutex<Switch>>,
    number: u64,
    wake: Arc<Notify>,
    counters: Arc<Counters>,
}

impl End {
    fn switch(&self) -> MutexGuard<'_, Switch> {
        self.switch.lock().unwrap()
    }

    /// Lets the switch do something that only its master may ask for.
    fn command(&self, command: impl FnOnce(&mut Switch)) {
        let mut switch = self.switch();
        match switch.master == Some(self.number) {
            true => command(&mut switch),
            false => switch.refused += 1,
        }
    }
}

fn ports() -> Vec<Port> {
    let port = |number: u32| Port {
        number: PortNo(number),
        address: Mac([2, 9, 0, 0, 0, number as u8]),
        name: format!("eth{number}"),
        up: true,
        floods: true,
        forwards: true,
    };
    (1..=2).map(port).collect()
}

impl Driver for End {
    fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    async fn wait(&mut self) {
        self.wake.notified().await
    }

    fn take<E: Events>(&mut self, _: Time, events: &mut E) -> Result<(), Close> {
        let mut switch = self.switch();
        let Some(wire) = switch.connections.get_mut(&self.number) else { return Err(Close::ByPeer) };
        let (told, packets) = (std::mem::take(&mut wire.events), std::mem::take(&mut wire.packets));
        drop(switch);
        told.into_iter().for_each(|event| events.event(event));
        packets.into_iter().for_each(|packet| events.packet_in(packet));
        Ok(())
    }

    fn install(&mut self, _: &Flow) {
        self.command(|_| ())
    }

    fn withdraw(&mut self, _: &WithdrawFlows) {
        self.command(|_| ())
    }

    fn read_flows(&mut self, wanted: &ReadFlows) {
        let (node, number) = (self.node, self.number);
        let read = FlowsRead { node, reading: wanted.reading, flows: Vec::new(), last: true };
        self.command(|switch| {
            switch.tell(number, Event::FlowsRead(FlowReading { asker: wanted.asker, read }))
        })
    }

    fn send(&mut self, packet: &PacketOut) {
        self.command(|switch| switch.sent.push(packet.clone()))
    }

    fn request_role(&mut self, role: Role) -> bool {
        self.switch().request_role(self.number, role);
        true
    }

    fn ports(&self) -> Vec<Port> {
        ports()
    }

    fn flush(&mut self, _: Time) -> Result<(), Close> {
        Ok(())
    }

    async fn end(&mut self, _: &Close) {}
}

impl Switch {
    fn tell(&mut self, connection: u64, event: Event) {
        if let Some(wire) = self.connections.get_mut(&connection) {
            wire.events.push_back(event);
            wire.wake.notify_one()
        }
    }

    fn request_role(&mut self, connection: u64, role: Role) {
        let generation = role.generation;
        if let Some(newest) = self.newest.filter(|newest| generation.wrapping_sub(*newest) as i64 <= -1) {
            return self.tell(connection, Event::RoleRefused { role, newest });
        }
        self.newest = Some(generation);
        if role.is_master {
            let other = *self.granted.entry(generation).or_insert(connection);
            if other != connection {
                self.faults.push(format!("generation {generation} has two masters: {other} and {connection}"))
            }
            self.master = Some(connection)
        } else if self.master == Some(connection) {
            self.master = None
        }
        self.tell(connection, Event::RoleGranted(role))
    }

    fn close(&mut self, connection: u64) {
        if let Some(wire) = self.connections.remove(&connection) {
            wire.wake.notify_one()
        }
        self.master = self.master.filter(|master| *master != connection)
    }

    fn close_all_of(&mut self, hive: usize) {
        let of_hive = self.connections.iter().filter(|(_, wire)| wire.hive == hive);
        let numbers: Vec<u64> = of_hive.map(|(number, _)| *number).collect();
        numbers.into_iter().for_each(|number| self.close(number))
    }
}

struct Lab {
    cluster: Cluster,
    switches: Vec<Arc<Mutex<Switch>>>,
    suspects: Vec<watch::Sender<BTreeSet<HiveId>>>,
}

impl Lab {
    fn start<A: Handlers>(seed: u64) -> Lab {
        let cluster = Cluster::of::<NodeController>().app::<Mastership>().app::<A>();
        let mut lab = Lab {
            cluster: cluster.hives(HIVES as u32).start(seed),
            switches: (0..NODES).map(|_| Arc::default()).collect(),
            suspects: (0..HIVES).map(|_| watch::Sender::default()).collect(),
        };
        (0..HIVES).for_each(|hive| lab.connect_all(hive));
        lab.cluster.advance(Duration::from_secs(1));
        lab
    }

    fn connect_all(&mut self, hive: usize) {
        (0..NODES).for_each(|node| self.connect(node, hive))
    }

    /// Connects a switch to a hive that runs.
    fn connect(&mut self, node: u64, hive: usize) {
        let shared = &self.switches[node as usize];
        let mut switch = shared.lock().unwrap();
        if !self.cluster.is_running(hive) || switch.connections.values().any(|wire| wire.hive == hive) {
            return;
        }
        switch.connected += 1;
        let (number, node) = (switch.connected, NodeId(node + 1));
        let joined = Event::Joined { node, ports: ports(), knows_owners: true, drops_misses: true };
        let wire = Wire { hive, events: VecDeque::from([joined]), ..Wire::default() };
        wire.wake.notify_one();
        let (wake, counters) = (wire.wake.clone(), Arc::default());
        switch.connections.insert(number, wire);
        drop(switch);
        let end = Mutex::new(Some(End { node, switch: shared.clone(), number, wake, counters }));
        let suspects = self.suspects[hive].subscribe();
        self.cluster.hive(hive).spawn_io("switch", Restart::Never, move |io| {
            let end = end.lock().unwrap().take().expect("runs once");
            let suspects = suspects.clone();
            async move {
                if let Some(wire) = end.switch().connections.get_mut(&end.number) {
                    wire.driver = Some(io.address())
                }
                drive_among(io, end, Admission::default(), Arc::default(), suspects).await;
                Ok(())
            }
        });
    }

    fn cut_all(&mut self, is_cut: bool) {
        for (one, other) in [(0, 1), (0, 2), (1, 2)] {
            self.cluster.cut(one, other, is_cut)
        }
    }

    fn suspect(&self, by: usize, hive: usize, is_suspected: bool) {
        let hive = HiveId(hive as u32);
        self.suspects[by].send_if_modified(|suspects| match is_suspected {
            true => suspects.insert(hive),
            false => suspects.remove(&hive),
        });
    }

    /// A hive crashes, and another one takes over its colonies. The others notice it, now or later.
    fn crash(&mut self, hive: usize, by: usize) {
        self.cluster.crash(hive);
        self.switches.iter().for_each(|switch| switch.lock().unwrap().close_all_of(hive));
        self.cluster.take_over(hive, by);
        (0..HIVES).filter(|other| *other != hive).for_each(|other| self.suspect(other, hive, true))
    }

    /// The loss of a hive is told to the apps.
    fn tell_lost(&mut self, hive: usize) {
        let hive = HiveId(hive as u32);
        let incarnation =
            self.cluster.registry(|state| state.hive(hive).map(|entry| entry.incarnation)).unwrap();
        self.cluster.emit(HiveLost { hive, incarnation });
    }

    fn restart(&mut self, hive: usize) {
        self.cluster.restart(hive);
        (0..HIVES).for_each(|other| self.suspect(other, hive, false));
        self.suspects[hive].send_modify(BTreeSet::clear)
    }

    /// A packet arrives at a switch, which sends it to all its controllers.
    fn packet(&self, node: u64) {
        let mut switch = self.switches[node as usize].lock().unwrap();
        let data = frame(Mac::BROADCAST, Mac([2, 0, 0, 0, 0, 1]), Tag::Untagged, b"hello");
        for wire in switch.connections.values_mut() {
            wire.packets.push_back(PacketIn {
                node: NodeId(node + 1),
                port: PortNo(1),
                reason: PacketInReason::Action,
                length: data.len() as u16,
                buffer: None,
                data: data.clone(),
            });
            wire.wake.notify_one()
        }
    }

    /// Checks that each switch has one master, which all apps know, and that it serves the switch.
    fn check(&mut self) -> Result<(), String> {
        for node in 0..NODES {
            let (master, refused) = {
                let mut switch = self.switches[node as usize].lock().unwrap();
                if let Some(fault) = switch.faults.pop() {
                    return Err(fault);
                }
                switch.sent.clear();
                let master = switch.master.and_then(|master| switch.connections.get(&master));
                (master.and_then(|wire| wire.driver), switch.refused)
            };
            let Some(master) = master else { return Err(format!("switch {node} has no master")) };
            self.packet(node);
            self.cluster.advance(Duration::from_millis(200));
            let hive = self.cluster.any_hive();
            let known = self.cluster.drive(hive.request(DescribeNode { node: NodeId(node + 1) }));
            let known = known.map_err(|error| error.to_string())?.driver;
            if known != Some(master) {
                return Err(format!("switch {node}: the apps know {known:?}, and the master is {master:?}"));
            }
            let switch = self.switches[node as usize].lock().unwrap();
            if (switch.sent.len(), switch.refused) != (1, refused) {
                let (sent, late) = (switch.sent.len(), switch.refused - refused);
                return Err(format!("switch {node}: {sent} packets out, and {late} commands of others"));
            }
        }
        Ok(())
    }
}

#[test]
fn the_first_driver_is_the_master_and_the_others_stand_by() {
    let mut lab = Lab::start::<Hub>(1);
    lab.check().unwrap();
    let connections = lab.switches[0].lock().unwrap().connections.len();
    assert_eq!(connections, HIVES)
}

/// The master's hive is suspected while it lives, and its commands are refused from then on.
#[test]
fn a_wrong_suspicion_costs_a_change_of_masters() {
    let mut lab = Lab::start::<Hub>(2);
    let master = |lab: &Lab| {
        let switch = lab.switches[0].lock().unwrap();
        switch.connections[&switch.master.unwrap()].hive
    };
    let first = master(&lab);
    lab.suspect((first + 1) % HIVES, first, true);
    lab.cluster.advance(Duration::from_millis(200));
    assert_eq!(master(&lab), (first + 1) % HIVES);
    lab.suspect((first + 1) % HIVES, first, false);
    lab.cluster.advance(Duration::from_millis(200));
    assert_eq!(master(&lab), (first + 1) % HIVES, "the old master does not come back by itself");
    lab.check().unwrap()
}

/// Two hives do not hear each other, and each claims what the other one has.
#[test]
fn hives_that_suspect_each_other_do_not_displace_each_other_without_end() {
    let mut lab = Lab::start::<Hub>(4);
    for (by, hive) in [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)] {
        lab.suspect(by, hive, true)
    }
    lab.cluster.advance(Duration::from_secs(5));
    let decisions = lab.switches[0].lock().unwrap().granted.len();
    assert!(decisions <= 25, "{decisions} masters in five seconds");
    lab.suspects.iter().for_each(|suspects| suspects.send_modify(BTreeSet::clear));
    lab.cluster.advance(Duration::from_secs(2));
    lab.check().unwrap()
}

/// The hive that decides dies after it has committed the decision. Nobody has told the next master.
#[test]
fn a_decision_that_nobody_was_told_is_told_by_the_next_leader() {
    let mut tried = 0;
    for seed in 0..10 {
        let mut lab = Lab::start::<Hub>(seed);
        let switch = lab.switches[0].clone();
        let (master, next) = {
            let switch = switch.lock().unwrap();
            let master = switch.connections[&switch.master.unwrap()].hive;
            (master, switch.connections.values().map(|wire| wire.hive).find(|hive| *hive != master).unwrap())
        };
        let decider = 3 - master - next;
        for (bee, hive) in lab.cluster.bees("mastership") {
            if hive != decider {
                lab.cluster.move_bee(bee, decider).unwrap()
            }
        }
        lab.cluster.cut(decider, next, true);
        switch.lock().unwrap().close_all_of(master);
        lab.cluster.advance(Duration::from_millis(100));
        if switch.lock().unwrap().master.is_some() {
            // the driver of the hive that decides was next
            continue;
        }
        tried += 1;
        switch.lock().unwrap().close_all_of(decider);
        lab.cluster.crash(decider);
        lab.cluster.take_over(decider, master);
        lab.cut_all(false);
        lab.cluster.advance(Duration::from_secs(2));
        assert!(switch.lock().unwrap().master.is_some(), "seed {seed}: nobody is the master")
    }
    assert!(tried > 0, "in no seed did the next master depend on the network")
}

/// The switch has seen a generation of a cluster whose clock was ahead.
#[test]
fn a_switch_that_knows_a_newer_generation_gets_a_master() {
    let mut lab = Lab::start::<Hub>(3);
    let now = lab.cluster.now().as_nanoseconds();
    lab.switches[0].lock().unwrap().newest = Some(now + 1_000_000_000_000);
    let hive = {
        let mut switch = lab.switches[0].lock().unwrap();
        let master = switch.master.unwrap();
        let hive = switch.connections[&master].hive;
        switch.close(master);
        hive
    };
    lab.cluster.advance(Duration::from_secs(1));
    lab.connect(0, hive);
    lab.cluster.advance(Duration::from_secs(2));
    lab.check().unwrap()
}

/// A hive returns before it is declared dead, and the switch does not connect to it again. So nobody says that its driver has left.
#[test]
fn a_driver_whose_hive_has_returned_without_it_is_removed() {
    let mut lab = Lab::start::<Hub>(5);
    let switch = lab.switches[0].clone();
    let standby = {
        let switch = switch.lock().unwrap();
        let master = switch.master.unwrap();
        switch.connections.iter().find(|(number, _)| **number != master).map(|(_, wire)| wire.hive).unwrap()
    };
    lab.crash(standby, (standby + 1) % HIVES);
    lab.restart(standby);
    // a change of masters, which the lost driver cannot confirm
    let master = {
        let switch = switch.lock().unwrap();
        switch.connections[&switch.master.unwrap()].hive
    };
    lab.suspect(3 - standby - master, master, true);
    lab.cluster.advance(Duration::from_secs(10));
    for hive in (0..HIVES).filter(|hive| *hive != standby) {
        switch.lock().unwrap().close_all_of(hive)
    }
    lab.cluster.advance(Duration::from_secs(1));
    let hive = lab.cluster.any_hive();
    let known = lab.cluster.drive(hive.request(DescribeNode { node: NodeId(1) }));
    assert_eq!(known.ok().and_then(|node| node.driver), None, "a driver that is gone keeps the switch")
}

/// Hives crash, are suspected wrongly, and return; connections break.
#[test]
fn each_switch_has_one_master_after_any_faults() {
    let seeds = if std::env::var_os("BEEHIVE_LONG").is_some() { 2_000 } else { 15 };
    let only = std::env::var("BEEHIVE_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in only.map_or(0..seeds, |seed: u64| seed..seed + 1) {
        let mut lab = Lab::start::<Hub>(seed);
        let mut down = None;
        for _ in 0..30 {
            let (hive, other) = (lab.cluster.random(3) as usize, lab.cluster.random(3) as usize);
            let node = lab.cluster.random(NODES);
            match lab.cluster.random(12) {
                0 if down.is_none() && hive != other => {
                    lab.crash(hive, other);
                    down = Some(hive)
                }
                1 | 2 => {
                    if let Some(hive) = down.take() {
                        // the loss may be told late, when the hive has returned, or not at all, if it has returned soon
                        let told = lab.cluster.random(3);
                        if told == 0 {
                            lab.tell_lost(hive)
                        }
                        let incarnation = lab
                            .cluster
                            .registry(|state| state.hive(HiveId(hive as u32)).map(|entry| entry.incarnation));
                        lab.restart(hive);
                        lab.connect_all(hive);
                        if told == 1 {
                            let (hive, incarnation) = (HiveId(hive as u32), incarnation.unwrap());
                            lab.cluster.emit(HiveLost { hive, incarnation });
                        }
                    }
                }
                3 if hive != other => lab.suspect(hive, other, true),
                4 if down != Some(other) => lab.suspect(hive, other, false),
                5 => {
                    let mut switch = lab.switches[node as usize].lock().unwrap();
                    switch.close_all_of(hive)
                }
                6 => lab.connect(node, hive),
                7 if hive != other => lab.cluster.cut(hive, other, true),
                8 => lab.cut_all(false),
                _ => lab.packet(node),
            }
            let pause = lab.cluster.random(300);
            lab.cluster.advance(Duration::from_millis(pause))
        }
        lab.cut_all(false);
        if let Some(hive) = down {
            lab.restart(hive)
        }
        lab.suspects.iter().for_each(|suspects| suspects.send_modify(BTreeSet::clear));
        (0..HIVES).for_each(|hive| lab.connect_all(hive));
        lab.cluster.advance(Duration::from_secs(10));
        lab.check().unwrap_or_else(|found| panic!("BEEHIVE_SEED={seed}: {found}"));

        // the switch loses its power
        let first = lab.cluster.random(3) as usize;
        for hive in (0..HIVES).map(|hive| (first + hive) % HIVES) {
            lab.switches[0].lock().unwrap().close_all_of(hive);
            let pause = lab.cluster.random(20);
            lab.cluster.advance(Duration::from_millis(pause))
        }
        lab.cluster.advance(Duration::from_secs(1));
        let hive = lab.cluster.any_hive();
        let known = lab.cluster.drive(hive.request(DescribeNode { node: NodeId(1) }));
        let driver = known.ok().and_then(|node| node.driver);
        assert_eq!(driver, None, "BEEHIVE_SEED={seed}: the apps know a driver of a switch that is gone");
        (0..HIVES).for_each(|hive| lab.connect(0, hive));
        lab.cluster.advance(Duration::from_secs(1));
        lab.check().unwrap_or_else(|found| panic!("BEEHIVE_SEED={seed}, connected again: {found}"))
    }
}
