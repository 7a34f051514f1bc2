//! Runs every handler of this crate, while bees move and merge, on a journal that commits late and in
//! batches, refuses entries, crashes, and is replayed from its bytes. The results must be the same as without
//! a journal.

use crate::clock::Clock;
use crate::harness::settled;
use crate::random::SeededRng;
use beehive_core::journal::LogState;
use beehive_core::testing::TestJournal;
use beehive_core::{Builder, Hive};
use beehive_nom::apps::{Hub, LearningSwitch, NodeController};
use beehive_nom::object::{
    Action, Actions, AddFlow, DelFlows, Flow, FlowMatch, FlowScope, Mac, NodeId, Owner, PortNo, Tag,
};
use beehive_nom::sim::{SimulatedSwitch, frame};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SWITCHES: u64 = 3;
const PORTS: u32 = 4;
const FIREWALL: Owner = Owner::named("firewall");

fn mac(number: u64) -> Mac {
    Mac::from_u64(0x0200_0000_0000 | number)
}

/// Returns a flow that drops packets that no host here sends, so it does not interfere.
fn wall(node: NodeId, number: u64) -> AddFlow {
    let matching = FlowMatch { source: Some(mac(0xff_0000 + number)), ..FlowMatch::ANY };
    AddFlow::new(node, FIREWALL, matching, Actions::None).priority(900)
}

fn breach(node: NodeId, number: u64) -> DelFlows {
    let AddFlow { flow, .. } = wall(node, number);
    DelFlows { node, owner: FIREWALL, scope: FlowScope::Exactly(flow.priority, flow.matching) }
}

/// A hive on its own clock, and switches.
struct World {
    clock: Arc<Clock>,
    hive: Hive,
    switches: Vec<SimulatedSwitch>,
}

impl World {
    fn start(apps: Builder) -> World {
        let clock = Clock::start();
        let hive = apps.platform(clock.clone()).seed(42).start().unwrap();
        // the last switch does not support owners of flows
        let switch = |n| SimulatedSwitch::new(&hive, NodeId(n), PORTS, n != SWITCHES);
        let switches = (1..=SWITCHES).map(switch).collect();
        World { clock, hive, switches }
    }

    async fn settled(&self) {
        let switches: Vec<_> = self.switches.iter().collect();
        settled(&self.clock, &self.hive, &switches).await
    }
}

/// A step of the script; any amount of work may be in flight between two steps.
enum Step {
    Frame {
        switch: usize,
        port: PortNo,
        data: Bytes,
    },
    Wall {
        number: u64,
        node: NodeId,
    },
    Breach {
        number: u64,
        node: NodeId,
    },
    /// Waits for idle, takes a port down, waits for idle, and brings it up again.
    Flap {
        switch: usize,
        port: PortNo,
    },
}

/// Generates steps in which hosts talk and move. Each pair talks once from the same ports, so no flow matches
/// and every frame comes to the controller. Some hosts are in VLANs, and some frames are broadcast.
fn script(seed: u64, steps: usize) -> Vec<Step> {
    let mut chance = SeededRng::new(seed);
    let mut ports: BTreeMap<(usize, u64), u32> = BTreeMap::new();
    let mut sent = HashSet::new();
    let mut script = Vec::new();

    while script.len() < steps {
        let switch = chance.below(SWITCHES) as usize;
        let node = NodeId(switch as u64 + 1);
        let (from, to) = (chance.below(20), chance.below(20));
        let number = chance.below(30);

        match chance.below(200) {
            0 => script.push(Step::Flap { switch, port: PortNo(1 + chance.below(u64::from(PORTS)) as u32) }),
            1..=10 => script.push(Step::Wall { number, node }),
            11..=18 => script.push(Step::Breach { number, node }),
            19..=30 => drop(ports.insert((switch, from), 1 + chance.below(u64::from(PORTS)) as u32)),
            _ => {
                let port = *ports.entry((switch, from)).or_insert(1 + (from % u64::from(PORTS)) as u32);
                if from != to && sent.insert((switch, port, from, to)) {
                    let destination = if to == 0 { Mac::BROADCAST } else { mac(to) };
                    let tag =
                        if from % 5 == 4 { Tag::Id(beehive_nom::object::Vlan(7)) } else { Tag::Untagged };
                    let payload = (script.len() as u64).to_be_bytes();
                    let data = frame(destination, mac(from), tag, &payload);
                    script.push(Step::Frame { switch, port: PortNo(port), data })
                }
            }
        }
    }

    script
}

/// The observable final state of a switch.
#[derive(PartialEq, Eq, Debug, Default)]
struct Outcome {
    flows: Vec<Flow>,
    /// Frames by port, in order.
    frames: BTreeMap<PortNo, Vec<Bytes>>,
    packet_ins: u64,
    answers: u64,
}

impl Outcome {
    fn collect(&mut self, switch: &SimulatedSwitch) {
        for port in switch.ports() {
            self.frames.entry(port.number).or_default().extend(switch.sent(port.number))
        }
        self.flows = switch.flows();
        self.flows.sort_by_key(|flow| (flow.priority, flow.matching.clone()));
        let counters = switch.counters().now();
        (self.packet_ins, self.answers) = (counters.packet_ins, counters.packet_outs);
        assert_eq!(counters.packet_ins_shed, 0);
    }
}

async fn play(world: &World, script: &[Step]) -> Vec<Outcome> {
    world.switches.iter().for_each(SimulatedSwitch::connect);
    world.settled().await;
    let mut outcomes: Vec<Outcome> = world.switches.iter().map(|_| Outcome::default()).collect();

    for (at, step) in script.iter().enumerate() {
        match step {
            Step::Frame { switch, port, data } => world.switches[*switch].receive(*port, data.clone()),
            Step::Wall { number, node } => world.hive.request(wall(*node, *number)).await.unwrap(),
            Step::Breach { number, node } => world.hive.request(breach(*node, *number)).await.unwrap(),
            Step::Flap { switch, port } => {
                world.settled().await;
                world.switches[*switch].set_up(*port, false);
                world.settled().await;
                world.switches[*switch].set_up(*port, true)
            }
        }

        if at % 500 == 499 {
            world.settled().await;
            outcomes.iter_mut().zip(&world.switches).for_each(|(outcome, switch)| outcome.collect(switch))
        }
    }

    world.settled().await;
    outcomes.iter_mut().zip(&world.switches).for_each(|(outcome, switch)| outcome.collect(switch));
    outcomes
}

fn learning() -> Builder {
    Hive::builder().app::<NodeController>().app::<LearningSwitch>()
}

fn flooding() -> Builder {
    Hive::builder().app::<NodeController>().app::<Hub>()
}

/// Moves and merges bees repeatedly until the test ends.
fn shaken(hive: &Hive) -> tokio::task::JoinHandle<()> {
    let hive = hive.clone();
    tokio::spawn(async move {
        loop {
            hive.reimport().await.expect("a bee is put together again");
            tokio::time::sleep(Duration::from_millis(1)).await
        }
    })
}

async fn same_as_without(apps: fn() -> Builder, seed: u64, steps: usize) {
    let script = script(seed, steps);
    let world = World::start(apps());
    let expected = play(&world, &script).await;
    world.hive.stop(Duration::ZERO).await;

    let journal = TestJournal::start(seed, 30, 0);
    let world = World::start(apps().journal(journal.clone(), LogState::default()));
    let shaking = shaken(&world.hive);
    let outcome = play(&world, &script).await;
    shaking.abort();

    for (at, (outcome, expected)) in outcome.iter().zip(&expected).enumerate() {
        assert_eq!(outcome.flows, expected.flows, "flows of switch {at}, seed {seed}");
        assert_eq!(outcome.answers, outcome.packet_ins, "each packet is answered once, seed {seed}");
        assert_eq!(outcome, expected, "switch {at}, seed {seed}");
        assert!(outcome.packet_ins > steps as u64 / 8 && !outcome.frames.is_empty());
    }

    assert!(journal.refused() > 0, "nothing was refused: nothing is shown");

    // the log agrees with the hive. Messages without effect are logged a little later. Only a delayed message is
    // left: the check whether a switch has reported its flows
    let mut colony = LogState::default();
    let undelayed = |colony: &LogState| colony.outbox.values().any(|waiting| waiting.emit.at.is_none());
    for _ in 0..500 {
        colony = LogState::replay(journal.log().iter().map(Vec::as_slice)).unwrap();
        if !undelayed(&colony) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await
    }
    journal.stop();
    assert!(!undelayed(&colony), "{:?}", colony.outbox.values());
    assert!(
        colony.outbox.values().all(|waiting| {
            let name = colony.shapes.name_of(waiting.emit.message_type);
            name.is_some_and(|name| name.ends_with("ReadingOverdue"))
        }),
        "{:?}",
        colony.outbox.values()
    );
    world.hive.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn a_learning_switch_is_the_same_on_a_journal() {
    for seed in 1..=4 {
        same_as_without(learning, seed, 1_200).await
    }
}

#[tokio::test]
async fn a_hub_is_the_same_on_a_journal() {
    same_as_without(flooding, 9, 800).await
}

/// A drop flow: its node and number.
type Wall = (NodeId, u64);

/// Facts that previous runs have established.
#[derive(Default)]
struct Known {
    /// Intended flows that were acknowledged as added (true) or deleted (false).
    walls: BTreeMap<Wall, bool>,
    /// Hosts whose packets were answered, and their ports.
    hosts: BTreeSet<(NodeId, u64)>,
}

fn port_of(host: u64) -> PortNo {
    PortNo(1 + (host % u64::from(PORTS - 1)) as u32)
}

/// Number of rounds of frames and requests in a run.
const ROUNDS: u64 = 60;

/// Runs the hive once: checks that all established facts hold, does some work, and crashes at a random
/// moment.
async fn live(seed: u64, life: u64, log: &mut Vec<Vec<u8>>, known: &mut Known) {
    let mut chance = SeededRng::new(seed * 1_000 + life);
    let colony = LogState::replay(log.iter().map(Vec::as_slice)).unwrap();
    let journal = TestJournal::start(seed * 100 + life, 40, colony.last);
    let world = World::start(learning().journal(journal.clone(), colony));
    let mut order: Vec<_> = world.switches.iter().collect();

    // connect the switches in another order so that their drivers have other addresses than in the previous
    // run
    order.rotate_left((life % SWITCHES) as usize);
    order.into_iter().for_each(SimulatedSwitch::connect);
    world.settled().await;

    for (index, switch) in world.switches.iter().enumerate() {
        let node = NodeId(index as u64 + 1);
        let flows = switch.flows();
        for ((at, number), is_there) in &known.walls {
            if *at == node {
                let flow = wall(node, *number).flow;
                assert_eq!(
                    flows.contains(&flow),
                    *is_there,
                    "wall {number} of {node}, seed {seed}, life {life}"
                );
            }
        }

        // a new host sends a frame to all others
        let last = life.saturating_sub(1) * 1_000;
        for host in
            known.hosts.iter().filter(|(at, host)| *at == node && *host >= last).map(|(_, host)| *host)
        {
            switch.ports().iter().for_each(|port| drop(switch.sent(port.number)));
            let probe = frame(mac(host), mac(0xee_0000 + life), Tag::Untagged, b"probe");
            switch.receive(PortNo(PORTS), probe.clone());
            world.settled().await;
            let out: Vec<_> = switch
                .ports()
                .iter()
                .filter(|port| switch.sent(port.number).contains(&probe))
                .map(|port| port.number)
                .collect();
            assert_eq!(out, [port_of(host)], "host {host} at {node} was learned, seed {seed}, life {life}");
        }

        switch.ports().iter().for_each(|port| drop(switch.sent(port.number)));
    }

    let shaking = shaken(&world.hive);
    let acknowledged: Arc<Mutex<Vec<(Wall, bool)>>> = Arc::default();
    let mut asking = Vec::new();
    let mut asked = BTreeSet::new();
    let mut frames: BTreeMap<Bytes, (NodeId, u64)> = BTreeMap::new();

    for round in 0..ROUNDS {
        let switch = chance.below(SWITCHES) as usize;
        let (node, number) = (NodeId(switch as u64 + 1), chance.below(1_000));
        if round % 3 == 0 && asked.insert((node, number)) {
            // while the request is pending, its result is uncertain
            let is_there = known.walls.remove(&(node, number)).is_none_or(|is_there| !is_there);
            let (hive, acknowledged) = (world.hive.clone(), acknowledged.clone());
            asking.push(tokio::spawn(async move {
                let done = match is_there {
                    true => hive.request(wall(node, number)).await,
                    false => hive.request(breach(node, number)).await,
                };
                if done.is_ok() {
                    acknowledged.lock().unwrap().push(((node, number), is_there))
                }
            }));
        }
        for one in 0..5 {
            // a new host sends its only packet. The packet is either both answered and committed, or neither
            let host = life * 1_000 + round * 5 + one;
            let payload = [round.to_be_bytes(), chance.below(u64::MAX).to_be_bytes()].concat();
            let data = frame(Mac::BROADCAST, mac(host), Tag::Untagged, &payload);
            frames.insert(data.clone(), (node, host));
            world.switches[switch].receive(port_of(host), data)
        }
        match round + 5 < ROUNDS {
            true => tokio::time::sleep(Duration::from_micros(chance.below(800))).await,
            // crash while work is in flight
            false => tokio::task::yield_now().await,
        }
    }

    // everything that is visible outside was committed before
    for switch in &world.switches {
        let sent = switch.ports().iter().flat_map(|port| switch.sent(port.number)).collect::<Vec<_>>();
        known.hosts.extend(sent.iter().filter_map(|data| frames.get(data).copied()))
    }

    known.walls.extend(acknowledged.lock().unwrap().iter().copied());
    journal.stop();
    log.extend(journal.log());
    shaking.abort();
    asking.iter().for_each(|task| task.abort());

    world.hive.stop(Duration::ZERO).await;
}

#[test]
fn killed_at_any_moment_what_was_seen_outside_is_remembered() {
    for seed in 1..=4 {
        let (mut log, mut known) = (Vec::new(), Known::default());
        for life in 0..5 {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(live(seed, life, &mut log, &mut known));
            runtime.shutdown_timeout(Duration::from_millis(200));
        }
        assert!(known.hosts.len() > 50 && known.walls.len() > 20, "nothing was answered, nothing is shown");
    }
}

#[tokio::test]
async fn after_a_restart_nobody_hears_commands_for_another() {
    let journal = TestJournal::start(5, 0, 0);
    let world = World::start(learning().journal(journal.clone(), LogState::default()));
    world.switches[0].connect();
    world.settled().await;
    journal.stop();

    let log = journal.log();
    world.hive.stop(Duration::ZERO).await;

    let colony = LogState::replay(log.iter().map(Vec::as_slice)).unwrap();
    let journal = TestJournal::start(6, 0, colony.last);
    let world = World::start(learning().journal(journal, colony));
    world.switches[1].connect(); // in the same way as the first one
    world.settled().await;

    let actions = Actions::One(Action::Output(PortNo(1)));
    let flow = AddFlow::new(NodeId(1), FIREWALL, FlowMatch::ANY, actions);
    world.hive.request(flow.clone()).await.unwrap();
    world.settled().await;
    assert!(world.switches[1].flows().is_empty(), "switch 2 has a flow of switch 1");
    world.switches[0].connect();
    world.settled().await;
    assert_eq!(world.switches[0].flows(), [flow.flow]);

    world.hive.stop(Duration::ZERO).await;
}
