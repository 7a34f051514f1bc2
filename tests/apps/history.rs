//! Checks that every example produces the same results as a single bee would, although it runs on all cores
//! while its bees merge and move. The hive runs in memory, and on a journal that commits late, refuses
//! entries, and is stopped and replayed.

use crate::bank::{Bank, Deposit, Transfer};
use crate::controller::{Ban, Guard};
use crate::crashes::{Bank as Coins, Deposit as DepositCoins, Transfer as TransferCoins};
use crate::hello::{Greeter, Hello};
use crate::key_value::{Delete, Get, Put, Store};
use crate::routing::{Link, Routes, Routing};
use crate::task_queue::{Done, Enqueue, Take, TaskQueues};
use crate::three_hives::{Get as GetValue, Put as PutValue, Values};
use crate::traffic_engineering::{Decoupled, Naive, Network, Poll, Switch, SwitchJoined};
use beehive::journal::LogState;
use beehive::nom::apps::{LearningSwitch, NodeController};
use beehive::nom::object::{Mac, NodeId, PortNo, Tag};
use beehive::nom::sim::{SimulatedSwitch, frame};
use beehive::testing::{History, HistorySummary, TestJournal, shake};
use beehive::{Builder, Hive, Io};
use std::time::Duration;

/// A pseudo-random sequence.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }

    fn name(&mut self) -> String {
        format!("name {}", self.below(12))
    }
}

/// An app and its input from outside.
struct Scenario {
    apps: fn() -> Builder,
    /// Emits the next message of one of several concurrent senders.
    emit: fn(&mut Io, &mut Chance),
    /// Creates the switches that are connected to the app.
    devices: fn(&Hive) -> Vec<SimulatedSwitch>,
}

/// Number of merges that `shake` provokes; low, so many bees remain.
const MERGES: u64 = 4;
const SENDERS: u64 = 4;
const MESSAGES: u64 = 250;

async fn send(hive: Hive, seed: u64, scenario: &'static Scenario) {
    let (mut io, mut chance) = (hive.io(), Chance(seed));
    for _ in 0..MESSAGES / 10 {
        (0..10).for_each(|_| (scenario.emit)(&mut io, &mut chance));
        io.flush().await;
        while io.try_receive().is_some() {}
    }
}

/// Waits until no message is in flight.
async fn done(hive: &Hive, switches: &[SimulatedSwitch]) {
    // timers of the examples fire within a tenth of this time
    tokio::time::sleep(Duration::from_secs(1)).await;
    for _ in 0..2 {
        for switch in switches {
            switch.quiet().await
        }
        hive.idle().await
    }
}

/// Runs one incarnation of the hive. With `cut`, it is stopped at an arbitrary moment.
async fn live(scenario: &'static Scenario, hive: &Hive, seed: u64, cut: bool) {
    let switches = (scenario.devices)(hive);
    let shaking = shake(hive, seed, MERGES);
    let senders: Vec<_> =
        (0..SENDERS).map(|s| tokio::spawn(send(hive.clone(), seed * 10 + s, scenario))).collect();
    let mut chance = Chance(seed);

    for switch in &switches {
        for _ in 0..MESSAGES / 5 {
            let mac = |n| Mac([2, 0, 0, 0, 0, n as u8]);
            let (from, to) = (chance.below(9), chance.below(9));
            let data = frame(mac(to), mac(from), Tag::Untagged, &chance.below(u64::MAX).to_be_bytes());
            switch.receive(PortNo(1 + (from % 3) as u32), data)
        }
    }

    match cut {
        true => tokio::time::sleep(Duration::from_millis(5 + seed % 30)).await,
        false => {
            for sender in senders {
                sender.await.expect("sends")
            }
            shaking.end().await;
            return done(hive, &switches).await;
        }
    }

    shaking.end().await
}

async fn in_memory(scenario: &'static Scenario, seed: u64) -> HistorySummary {
    let history = History::new();
    let hive = history.record((scenario.apps)().seed(42)).start().expect("starts");
    live(scenario, &hive, seed, false).await;
    let seen = history.check(&hive).await;
    hive.stop(Duration::ZERO).await;
    seen
}

/// Runs incarnations that are stopped at an arbitrary moment, and a last one that runs to completion.
async fn on_a_journal(scenario: &'static Scenario, seed: u64) -> HistorySummary {
    const LIVES: u64 = 3;

    let (history, mut log) = (History::new(), Vec::new());
    for life in 1.. {
        let colony = LogState::replay(log.iter().map(Vec::as_slice)).expect("a log");
        let journal = TestJournal::start(seed * 10 + life, 40, colony.last);
        let apps = (scenario.apps)().seed(42).journal(journal.clone(), colony);
        let hive = history.record(apps).start().expect("starts");
        live(scenario, &hive, seed * 10 + life, life < LIVES).await;

        if life == LIVES {
            let seen = history.check(&hive).await;
            journal.stop();
            hive.stop(Duration::ZERO).await;
            return seen;
        }

        journal.stop();
        log.extend(journal.log());
        history.died(&log);
        hive.stop(Duration::ZERO).await;
    }

    unreachable!("the last life returns")
}

fn on_all_cores<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let result = runtime.block_on(test);
    runtime.shutdown_timeout(Duration::from_millis(200));
    result
}

fn check(scenario: &'static Scenario) {
    for seed in 1..=2 {
        let seen = on_all_cores(in_memory(scenario, seed));
        println!("in memory: {seen:?}");
        assert!(seen.committed as u64 > SENDERS * MESSAGES / 2, "{seen:?}");
    }
    let seen = on_all_cores(on_a_journal(scenario, 3));
    println!("on a journal: {seen:?}");
    assert!(seen.committed as u64 > SENDERS * MESSAGES / 2, "{seen:?}")
}

macro_rules! examples {
    ($($name:ident { apps: $($app:ty),+; emit: $emit:expr; devices: $devices:expr; })*) => {$(
        #[test]
        fn $name() {
            static SCENARIO: Scenario = Scenario {
                apps: || Hive::builder()$(.app::<$app>())+,
                emit: $emit,
                devices: $devices,
            };
            check(&SCENARIO)
        }
    )*};
}

examples! {
    hello {
        apps: Greeter;
        emit: |io, chance| io.emit(Hello(chance.name()));
        devices: none;
    }
    bank {
        apps: Bank;
        emit: |io, chance| {
            let (account, amount) = (chance.below(40), chance.below(50));
            match chance.below(20) {
                0 => io.emit(Transfer { from: account, to: chance.below(40), amount }),
                1..=9 => io.emit(Transfer { from: account, to: account, amount }),
                _ => io.emit(Deposit { account, amount }),
            }
        };
        devices: none;
    }
    crashes {
        apps: Coins;
        emit: |io, chance| match chance.below(3) {
            0 => io.emit(DepositCoins(chance.below(40))),
            _ => io.emit(TransferCoins { from: chance.below(40), to: chance.below(40) }),
        };
        devices: none;
    }
    key_value {
        apps: Store;
        emit: |io, chance| {
            let (key, value) = (chance.name(), "x".repeat(chance.below(4) as usize));
            match chance.below(4) {
                0 => io.emit(Get(key)),
                1 => io.emit(Delete(key)),
                _ => io.emit(Put { key, value }),
            }
        };
        devices: none;
    }
    task_queue {
        apps: TaskQueues;
        emit: |io, chance| {
            let queue = chance.name();
            match chance.below(3) {
                0 => io.emit(Take(queue)),
                1 => io.emit(Done { queue, task: 1 + chance.below(20) }),
                _ => io.emit(Enqueue { queue, text: chance.name() }),
            }
        };
        devices: none;
    }
    routing {
        apps: Routing;
        emit: |io, chance| {
            let (from, to) = (chance.below(6) as u32, chance.below(6) as u32);
            match chance.below(8) {
                0 => io.emit(Link { from, to, cost: Some(1 + chance.below(9) as u32) }),
                1 => io.emit(Link { from, to, cost: None }),
                _ => io.emit(Routes(from)),
            }
        };
        devices: none;
    }
    three_hives {
        apps: Values;
        emit: |io, chance| {
            let (key, value) = (chance.name(), chance.name());
            match chance.below(3) {
                0 => io.emit(GetValue(key)),
                _ => io.emit(PutValue(key, value)),
            }
        };
        devices: none;
    }
    traffic_engineering_naive {
        apps: Naive, Network;
        emit: steer;
        devices: none;
    }
    traffic_engineering_decoupled {
        apps: Decoupled, Network;
        emit: steer;
        devices: none;
    }
    controller {
        apps: NodeController, Guard, LearningSwitch;
        emit: |io, chance| {
            let station = Mac([2, 0, 0, 0, 0, chance.below(9) as u8]);
            io.emit(Ban { node: NodeId(1 + chance.below(3)), station })
        };
        devices: |hive| {
            let switches: Vec<_> = (1..=3).map(|n| SimulatedSwitch::new(hive, NodeId(n), 3, true)).collect();
            switches.iter().for_each(SimulatedSwitch::connect);
            switches
        };
    }
}

fn none(_: &Hive) -> Vec<SimulatedSwitch> {
    Vec::new()
}

fn steer(io: &mut Io, chance: &mut Chance) {
    match chance.below(20) {
        0 => io.emit(Poll),
        _ => io.emit(SwitchJoined(Switch(chance.below(16)))),
    }
}

/// Fails when an example is added without a test here.
#[test]
fn every_example_has_a_scenario() {
    let source = include_str!("history.rs");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for entry in std::fs::read_dir(folder).expect("the folder of examples") {
        let path = entry.expect("an entry").path();
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        assert!(
            !is_source || source.contains(&format!("use crate::{name}::")),
            "{name} has no scenario here"
        );
    }
}
