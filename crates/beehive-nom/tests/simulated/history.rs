//! Checks that the apps behave as a single bee would, although they run on all cores while their bees merge
//! and move. The input is random messages and the traffic of a small network. The hive runs in memory, and on
//! a journal that refuses entries and crashes.

use crate::random::SeededRng;
use beehive_core::journal::LogState;
use beehive_core::testing::{History, HistorySummary, TestJournal, shake};
use beehive_core::{Builder, Hive, Io};
use beehive_nom::apps::firewall::{Policy, SetPolicy, Verdict};
use beehive_nom::apps::{
    Discovery, Firewall, Forwarding, Hosts, Hub, LearningSwitch, LoopGuard, NodeController, Topology,
};
use beehive_nom::object::{
    AdoptFlows, DelFlows, DescribeNode, FindHost, FlowRemoved, FlowRemovedReason, FlowsConfirmed, FlowsFound,
    FlowsRead, FoundFlow, Link, LinkDown, LinkUp, ListHosts, ListLinks, Mac, NodeId, NodeJoined, NodeLeft,
    PathsChanged, PortDown, PortId, PortNo, SendPacket, Station, Tag, VerifyFlows, Vlan,
};
use beehive_nom::sim::{SimulatedSwitch, Wire, frame};
use std::future::Future;
use std::time::Duration;

/// A small number, so many bees remain.
const MERGES: u64 = 4;
const SENDERS: u64 = 4;
const MESSAGES: u64 = 300;

fn end(chance: &mut SeededRng) -> PortId {
    PortId { node: chance.node(), port: chance.port() }
}

/// Emits one message of any type that an app of this crate handles.
fn emit(io: &mut Io, chance: &mut SeededRng) {
    let (node, owner, driver, port) = (chance.node(), chance.owner(), chance.driver(), chance.port());
    match chance.below(32) {
        0 => {
            let knows_owners = chance.below(2) == 0;
            let ports = (1..4).map(|n| crate::map_coverage::up(PortNo(n))).collect();
            io.emit(NodeJoined { node, driver, ports, knows_owners, drops_misses: knows_owners })
        }
        1 => io.emit(NodeLeft { node, driver }),
        2 => io.emit(PortDown { node, port, removed: port.0 == 1 }),
        3 => io.emit(PathsChanged { node }),
        4 => io.emit(AdoptFlows { node, owner }),
        5 => {
            let flows = chance.found().iter().map(FoundFlow::key).collect();
            io.emit(FlowsConfirmed { node, flows })
        }
        6 => {
            let (reading, last) = (chance.below(4), chance.below(2) == 0);
            io.emit(FlowsRead { node, reading, last, flows: chance.found() })
        }
        7 => io.emit(FlowsFound { node, owner, flows: chance.found() }),
        8 => io.emit(VerifyFlows { node }),
        9 => io.emit(DescribeNode { node }),
        10 | 11 => io.emit(chance.add_flow()),
        12 => io.emit(DelFlows { node, owner, scope: chance.scope() }),
        13 => io.emit(SendPacket(chance.packet_in().flood())),
        14 => io.emit(FlowRemoved {
            node,
            owner,
            priority: chance.below(3) as u16,
            matching: chance.matching(),
            reason: FlowRemovedReason::Idle,
            packets: 1,
            bytes: 60,
        }),
        15 => io.emit(LinkUp(Link { from: end(chance), to: end(chance) })),
        16 => io.emit(LinkDown(Link { from: end(chance), to: end(chance) })),
        17 => io.emit(ListLinks),
        18 => io.emit(ListHosts(node)),
        19 => io.emit(FindHost(Station::new(Vlan::NONE, chance.mac()))),
        20 => {
            let default = chance.one(&[Verdict::Allow, Verdict::Deny]);
            io.emit(SetPolicy(Policy { rules: Vec::new(), default }))
        }
        _ => io.emit(chance.packet_in()),
    }
}

async fn send(hive: Hive, seed: u64) {
    let (mut io, mut chance) = (hive.io(), SeededRng::new(seed));
    for _ in 0..MESSAGES / 10 {
        (0..10).for_each(|_| emit(&mut io, &mut chance));
        io.flush().await;
        while io.try_receive().is_some() {}
    }
}

/// Creates two switches with a wire between them, in addition to those in random messages.
fn network(hive: &Hive) -> (Vec<SimulatedSwitch>, Wire) {
    let switches: Vec<_> = (11..=12).map(|n| SimulatedSwitch::new(hive, NodeId(n), 4, true)).collect();
    let wire = Wire::new((&switches[0], PortNo(4)), (&switches[1], PortNo(4)));
    switches.iter().for_each(SimulatedSwitch::connect);
    (switches, wire)
}

fn talk(switches: &[SimulatedSwitch], seed: u64) {
    let mut chance = SeededRng::new(seed);
    for _ in 0..60 {
        let mac = |n: u64| Mac([2, 0, 0, 0, 1, n as u8]);
        let (from, to, switch) = (chance.below(9), chance.below(9), chance.below(2) as usize);
        let data = frame(mac(to), mac(from), Tag::Untagged, &chance.below(u64::MAX).to_be_bytes());
        switches[switch].receive(PortNo(1 + (from % 3) as u32), data)
    }
}

/// Runs the hive once; with `after`, it crashes after that time.
async fn live(hive: &Hive, seed: u64, after: Option<Duration>) {
    let (switches, wire) = network(hive);
    let shaking = shake(hive, seed, MERGES);
    let senders: Vec<_> = (0..SENDERS).map(|s| tokio::spawn(send(hive.clone(), seed * 10 + s))).collect();
    talk(&switches, seed);

    if let Some(after) = after {
        tokio::time::sleep(after).await;
        return shaking.end().await;
    }

    for sender in senders {
        sender.await.expect("sends")
    }

    shaking.end().await;
    // frames in a loop would circulate without end
    wire.cut();
    for _ in 0..3 {
        for switch in &switches {
            switch.quiet().await
        }
        hive.idle().await
    }
}

fn on_all_cores<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let result = runtime.block_on(test);
    runtime.shutdown_timeout(Duration::from_millis(200));
    result
}

fn in_memory(apps: fn() -> Builder, seed: u64) -> HistorySummary {
    on_all_cores(async {
        let history = History::new();
        let hive = history.record(apps().seed(42)).start().expect("starts");
        live(&hive, seed, None).await;
        let seen = history.check(&hive).await;
        hive.stop(Duration::ZERO).await;
        seen
    })
}

fn on_a_journal(apps: fn() -> Builder, seed: u64) -> HistorySummary {
    const LIVES: u64 = 3;
    let (history, mut log, mut seen) = (History::new(), Vec::new(), HistorySummary::default());
    for life in 1..=LIVES {
        seen = on_all_cores(async {
            let colony = LogState::replay(log.iter().map(Vec::as_slice)).expect("a log");
            let journal = TestJournal::start(seed * 10 + life, 40, colony.last);
            let hive = history.record(apps().seed(42).journal(journal.clone(), colony)).start();
            let hive = hive.expect("starts");
            let after = (life < LIVES).then(|| Duration::from_millis(10 + 8 * life));

            live(&hive, seed * 10 + life, after).await;
            let mut seen = HistorySummary::default();
            if life == LIVES {
                seen = history.check(&hive).await
            }

            journal.stop();
            log.extend(journal.log());
            history.died(&log);
            hive.stop(Duration::ZERO).await;

            seen
        })
    }

    seen
}

fn check(apps: fn() -> Builder) {
    for seed in 1..=2 {
        let seen = in_memory(apps, seed);
        println!("in memory: {seen:?}");
        assert!(seen.committed as u64 > SENDERS * MESSAGES / 2 && seen.sent > 100, "{seen:?}");
    }
    let seen = on_a_journal(apps, 3);
    println!("on a journal: {seen:?}");
    assert!(seen.committed as u64 > SENDERS * MESSAGES / 2 && seen.sent > 100, "{seen:?}")
}

#[test]
fn all_apps_together() {
    check(|| {
        let hive = Hive::builder().app::<NodeController>().app::<Discovery>().app::<Topology>();
        let hive = hive.app::<LoopGuard>().app::<Hosts>().app::<Firewall>();
        hive.app::<Forwarding>().app::<LearningSwitch>()
    })
}

#[test]
fn a_hub() {
    check(|| Hive::builder().app::<NodeController>().app::<Hub>())
}
