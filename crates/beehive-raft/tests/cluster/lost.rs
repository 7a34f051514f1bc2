//! Apps learn of each hive that is lost, and once.

use crate::hives::{ALL, Counters, Hives, Ledger, PATIENCE, until};
use crate::returns::{Disks, must_start};
use beehive::cluster::{HiveLost, Incarnation};
use beehive::{App, Builder, Dict, Hive, HiveId, Message, handlers};
use beehive_raft::cluster::ClusterOptions;
use std::time::{Duration, Instant};

/// Answers with the number of times that an incarnation was lost.
#[derive(Message)]
#[message(reply = u64)]
struct TimesLost {
    hive: HiveId,
    incarnation: Incarnation,
}

/// Counts what was lost.
#[derive(App)]
struct Register {
    lost: Dict<HiveId, Vec<u32>>,
}

#[handlers]
impl Register {
    #[rcv]
    fn hive_lost(&mut self, msg: &HiveLost) {
        self.lost.update(msg.hive, |incarnations| incarnations.push(msg.incarnation.0))
    }
    #[rcv]
    fn times_lost(&mut self, msg: &TimesLost) -> u64 {
        let lost = self.lost.get(&msg.hive);
        let times = lost.map_or(0, |lost| lost.iter().filter(|lost| **lost == msg.incarnation.0).count());
        times as u64
    }
}

fn apps() -> Builder {
    Hive::builder().app::<Counters>().app::<Register>()
}

/// Lets hives be declared dead soon, but not one that lives on a busy machine.
fn soon(options: &mut ClusterOptions) {
    options.dead_after = Duration::from_secs(2)
}

/// Hives with disks.
fn with_disks(seed: u64) -> (Disks, Hives) {
    let disks = Disks::new(seed);
    let used = disks.clone();
    let hives = Hives::of(apps, move |options| {
        soon(options);
        used.use_in(options)
    });
    (disks, hives)
}

fn incarnation(hives: &Hives, hive: usize, seen_by: usize) -> Incarnation {
    let mut found = None;
    hives
        .member(seen_by)
        .registry()
        .read(&mut |state| found = state.hive(ALL[hive]).map(|entry| entry.incarnation));
    found.unwrap()
}

fn is_dead(hives: &Hives, hive: usize, seen_by: usize) -> bool {
    let mut is_dead = false;
    hives.member(seen_by).registry().read(&mut |state| is_dead = state.hive(ALL[hive]).unwrap().is_dead());
    is_dead
}

fn times_lost(hives: &Hives, asked: usize, hive: usize, incarnation: Incarnation) -> Option<u64> {
    let question = TimesLost { hive: ALL[hive], incarnation };
    hives.hive(asked).request_blocking_within(Duration::from_secs(2), question).ok()
}

/// Waits until the loss is told, and for a while in which it could be told again. The hives may have to elect first, on a machine
/// that is busy with other things.
#[track_caller]
fn is_lost_once(hives: &Hives, hive: usize, incarnation: Incarnation) {
    let began = Instant::now();
    let is_told = || {
        hives
            .running()
            .any(|asked| times_lost(hives, asked, hive, incarnation).is_some_and(|times| times > 0))
    };
    while !is_told() {
        assert!(began.elapsed() < 6 * PATIENCE, "incarnation {} of hive {hive} is not lost", incarnation.0);
        std::thread::sleep(Duration::from_millis(2))
    }
    println!("told after {:?}", began.elapsed());
    // time for what the other hives say
    std::thread::sleep(Duration::from_millis(300));
    for asked in hives.running() {
        let mut times = None;
        until("the app answers", || {
            times = times_lost(hives, asked, hive, incarnation);
            times.is_some()
        });
        assert_eq!(times, Some(1), "incarnation {} of hive {hive}", incarnation.0)
    }
}

#[test]
fn a_hive_that_is_lost_is_told_to_the_apps_once() {
    let mut hives = Hives::of(apps, soon);
    let ledger = Ledger::default();
    (0..9).for_each(|key| ledger.must_count(hives.hive(key as usize % 3), key));
    let lost = incarnation(&hives, 2, 0);
    assert_eq!(times_lost(&hives, 0, 2, lost), Some(0));
    hives.kill(2);
    is_lost_once(&hives, 2, lost);
    assert_eq!(times_lost(&hives, 0, 1, incarnation(&hives, 1, 0)), Some(0), "a hive that lives is lost")
}

#[test]
fn each_incarnation_is_lost_once_also_if_all_hives_restart() {
    let (disks, mut hives) = with_disks(31);
    let first = incarnation(&hives, 2, 0);
    disks.power_fails(&mut hives, 2);
    is_lost_once(&hives, 2, first);
    must_start(&mut hives, 2);
    let second = incarnation(&hives, 2, 2);
    assert!(second > first);
    disks.power_fails(&mut hives, 2);
    is_lost_once(&hives, 2, second);

    // all read the log of the registry again, and say again what it says
    (0..2).for_each(|hive| hives.stop(hive));
    hives.start_all();
    is_lost_once(&hives, 2, first);
    is_lost_once(&hives, 2, second)
}

#[test]
fn a_loss_is_told_although_those_who_have_noticed_it_die_at_once() {
    let (disks, mut hives) = with_disks(32);
    for round in 0..3 {
        let (lost, dies) = (2, round % 2);
        let lives = 1 - dies;
        let incarnation = incarnation(&hives, lost, lives);
        disks.power_fails(&mut hives, lost);
        // in one round, the registry's leader dies, which has just declared the hive dead, and in another one the other hive
        until("declared dead", || is_dead(&hives, lost, lives));
        std::thread::sleep(Duration::from_millis(round as u64));
        disks.power_fails(&mut hives, dies);
        // nobody has a majority now, until it returns
        must_start(&mut hives, dies);
        must_start(&mut hives, lost);
        is_lost_once(&hives, lost, incarnation)
    }
}
