//! Hives that reach each other over sockets.

use crate::hives::{ALL, Counters, Ledger, PATIENCE, runtime, until};
use beehive::{Hive, HiveId};
use beehive_raft::cluster::transport::Transport;
use beehive_raft::cluster::wire::{Wire, WireOptions};
use beehive_raft::cluster::{ClusterOptions, Member};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const SEED: u64 = 7;

/// A hive with its own sockets and threads, as in a process of its own.
struct OnSockets {
    runtime: Runtime,
    wire: Arc<Wire>,
    member: Member,
}

impl OnSockets {
    fn hive(&self) -> &Hive {
        self.member.hive()
    }

    /// As if the process ended.
    fn kill(self) {
        self.runtime.shutdown_background();
        drop(self.member)
    }

    fn stop(self) {
        let OnSockets { runtime, wire, member } = self;
        runtime.block_on(async move {
            member.stop(Duration::from_millis(200)).await;
            wire.stop().await
        });
        runtime.shutdown_background()
    }
}

/// Opens the wire of a hive.
fn bind(runtime: &Runtime, hive: HiveId) -> Arc<Wire> {
    let mut options = WireOptions::new("127.0.0.1:0".parse().unwrap(), "counters", hive);
    options.seed = SEED;
    options.token = Some("a token that only these hives have".to_string());
    runtime.block_on(Wire::bind(options)).unwrap()
}

fn start() -> Vec<OnSockets> {
    let wires = ALL.map(|hive| {
        let runtime = runtime();
        let wire = bind(&runtime, hive);
        (hive, runtime, wire)
    });
    let addresses: Vec<_> = wires.iter().map(|(hive, _, wire)| (*hive, wire.address().to_string())).collect();
    for (hive, _, wire) in &wires {
        let others = addresses.iter().filter(|(other, _)| other != hive);
        others.for_each(|(other, address)| wire.set_peer(*other, address.clone()))
    }
    std::thread::scope(|scope| {
        let started = wires.map(|(hive, runtime, wire)| {
            scope.spawn(move || {
                let builder = Hive::builder().app::<Counters>();
                let options = ClusterOptions::new(hive, ALL, SEED);
                let transport = wire.clone() as Arc<dyn Transport>;
                let member = runtime.block_on(Member::start(builder, options, transport)).unwrap();
                OnSockets { runtime, wire, member }
            })
        });
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn three_hives_on_sockets_go_on_when_one_of_them_ends() {
    let mut hives = start();
    let ledger = Ledger::default();
    for turn in 0..2 {
        for key in 0..12 {
            ledger.must_count(hives[(key as usize + turn) % 3].hive(), key)
        }
    }
    hives.remove(0).kill();
    let killed = Instant::now();
    for key in 0..12 {
        ledger.must_count(hives[key as usize % 2].hive(), key);
        if key == 0 {
            println!("first answer {:?} after the end of a hive", killed.elapsed())
        }
    }
    assert!(killed.elapsed() < PATIENCE);
    for hive in &hives {
        ledger.check_at(hive.hive());
        let leaders = || hive.member.leaders().into_iter().all(|(_, leader)| leader != Some(ALL[0]));
        until("the others lead all colonies", leaders);
    }
    hives.into_iter().for_each(OnSockets::stop)
}
