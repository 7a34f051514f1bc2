//! Hives that reach each other over sockets.

use crate::certificates::Authority;
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
fn bind(runtime: &Runtime, hive: HiveId, authority: Option<&Authority>) -> Arc<Wire> {
    let mut options = WireOptions::new("127.0.0.1:0".parse().unwrap(), "counters", hive);
    options.seed = SEED;
    options.token = Some("a token that only these hives have".to_string());
    options.tls = authority.map(|authority| authority.files(hive.0));
    runtime.block_on(Wire::bind(options)).unwrap()
}

/// Starts a hive whose wire is open.
fn start_hive(
    (hive, runtime, wire): (HiveId, Runtime, Arc<Wire>),
    tweak: &(dyn Fn(&mut ClusterOptions) + Sync),
) -> OnSockets {
    let builder = Hive::builder().app::<Counters>();
    let mut options = ClusterOptions::new(hive, ALL, SEED);
    tweak(&mut options);
    let transport = wire.clone() as Arc<dyn Transport>;
    let member = runtime.block_on(Member::start(builder, options, transport)).unwrap();
    OnSockets { runtime, wire, member }
}

fn start(tweak: &(dyn Fn(&mut ClusterOptions) + Sync), authority: Option<&Authority>) -> Vec<OnSockets> {
    let wires = ALL.map(|hive| {
        let runtime = runtime();
        let wire = bind(&runtime, hive, authority);
        (hive, runtime, wire)
    });
    let addresses: Vec<_> = wires.iter().map(|(hive, _, wire)| (*hive, wire.address().to_string())).collect();
    for (hive, _, wire) in &wires {
        let others = addresses.iter().filter(|(other, _)| other != hive);
        others.for_each(|(other, address)| wire.set_peer(*other, address.clone()))
    }
    std::thread::scope(|scope| {
        let started = wires.map(|opened| scope.spawn(move || start_hive(opened, tweak)));
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn three_hives_on_sockets_go_on_when_one_of_them_ends() {
    go_on_when_one_ends(None)
}

#[test]
fn three_hives_with_certificates_go_on_when_one_of_them_ends() {
    go_on_when_one_ends(Some(&Authority::new()))
}

fn go_on_when_one_ends(authority: Option<&Authority>) {
    let mut hives = start(&|_| (), authority);
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

#[test]
fn a_hive_returns_over_sockets() {
    // with certificates, whose files it reads again
    let authority = Authority::new();
    let folder = std::env::temp_dir().join(format!("beehive-sockets-{}", std::process::id()));
    let tweak = |options: &mut ClusterOptions| options.folder = Some(folder.join(options.hive.0.to_string()));
    let mut hives = start(&tweak, Some(&authority));
    let ledger = Ledger::default();
    (0..12).for_each(|key| ledger.must_count(hives[key as usize % 3].hive(), key));
    hives.pop().unwrap().kill();
    (0..12).for_each(|key| ledger.must_count(hives[key as usize % 2].hive(), key));
    // what stands for a process here unlocks its folder a moment later
    std::thread::sleep(Duration::from_millis(300));

    let runtime = runtime();
    let wire = bind(&runtime, ALL[2], Some(&authority));
    for (other, hive) in ALL.into_iter().zip(&hives) {
        wire.set_peer(other, hive.wire.address().to_string());
        hive.wire.set_peer(ALL[2], wire.address().to_string())
    }
    hives.push(start_hive((ALL[2], runtime, wire), &tweak));
    (0..12).for_each(|key| ledger.must_count(hives[key as usize % 3].hive(), key));
    hives.iter().for_each(|hive| ledger.check_at(hive.hive()));
    assert!(hives[0].member.leaders().iter().any(|(_, leader)| *leader == Some(ALL[2])), "it leads again");
    hives.into_iter().for_each(OnSockets::stop);
    std::fs::remove_dir_all(&folder).unwrap()
}
