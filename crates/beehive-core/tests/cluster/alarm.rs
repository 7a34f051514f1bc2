//! A colony with many bees is deposed many times a second, and never killed: nothing is lost or doubled, and everything that a
//! hive has under way returns to where it began.

use crate::directed::{QUIET, counters};
use crate::leaders::at_rest;
use crate::random::Chance;
use beehive_core::registry::ColonyId;
use beehive_core::testing::UnderWay;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const COLONY: ColonyId = ColonyId(1);
const EVERY: Duration = Duration::from_millis(50);

/// Returns the memory of the process in KiB; zero if the machine does not tell.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    resident.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Deposes the leader of a colony with `bees` bees `times` times, and lets one of the hives lead it, told or not.
fn depose_often(bees: u64, times: u64) {
    let mut cluster = counters(None).network(QUIET).credits(4_096).start(bees);
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    let mut chance = Chance(times);
    for key in 0..bees {
        while cluster.hive(0).try_emit(crate::directed::Count(key)).is_err() {
            cluster.advance(Duration::from_millis(1))
        }
        counts.insert(key, 1);
    }
    cluster.advance(Duration::from_secs(2));
    assert_eq!(cluster.bees("counters").len() as u64, bees);
    // one round, so that each hive has had the bees and has left them
    for by in [1, 2, 0] {
        cluster.depose(COLONY, by);
        cluster.advance(EVERY)
    }
    cluster.advance(Duration::from_secs(2));
    let under_way = |cluster: &mut beehive_core::testing::Cluster| -> (Vec<UnderWay>, usize) {
        ((0..3).map(|hive| cluster.hive(hive).under_way()).collect(), cluster.platform().tasks())
    };
    let (began, memory_before) = (under_way(&mut cluster), memory());

    let mut sent = 0;
    for _ in 0..times {
        let by = chance.below(3) as usize;
        match chance.below(3) {
            0 => cluster.depose_untold(COLONY, by),
            _ => cluster.depose(COLONY, by),
        }
        if chance.below(4) == 0 {
            cluster.tell_deposed()
        }
        if chance.below(4) == 0 {
            cluster.hold_replica(chance.below(3) as usize, EVERY / 2)
        }
        for _ in 0..10 {
            for _ in 0..4 {
                let key = chance.below(bees);
                if cluster.hive(chance.below(3) as usize).try_emit(crate::directed::Count(key)).is_ok() {
                    *counts.entry(key).or_default() += 1;
                    sent += 1
                }
            }
            cluster.advance(EVERY / 10)
        }
    }
    cluster.tell_deposed();
    cluster.depose(COLONY, 0);
    cluster.advance(Duration::from_secs(4));
    assert!(sent > 20 * times, "only {sent} messages were sent");
    at_rest(&mut cluster);

    let (ended, memory_after) = (under_way(&mut cluster), memory());
    assert_eq!(ended, began);
    // the logs of the test are in memory, too
    let in_logs = sent / 4;
    let more = memory_after.saturating_sub(memory_before + in_logs);
    println!(
        "{bees} bees, {times} times: {memory_before} KiB before, {memory_after} KiB after, {sent} messages"
    );
    assert!(more <= memory_before / 4 + 8_192, "{more} KiB more");

    let hive = cluster.hive(1).clone();
    let keys: Vec<u64> = match bees > 10_000 {
        true => (0..10_000).map(|_| chance.below(bees)).collect(),
        false => (0..bees).collect(),
    };
    for key in keys {
        let count = counts.entry(key).or_default();
        *count += 1;
        let counted = cluster.drive(hive.request(crate::directed::Count(key)));
        assert_eq!(counted, Ok(*count), "key {key}")
    }
}

#[test]
fn a_colony_that_is_deposed_every_50_ms_loses_nothing_and_leaves_nothing() {
    match std::env::var_os("BEEHIVE_LONG") {
        Some(_) => depose_often(100_000, 1_200),
        None => depose_often(2_000, 40),
    }
}

/// Returns the real time from the moment at which a hive is told to lead the colony of a dead one, with `bees` bees, to its
/// first answer. The least of some attempts.
fn first_answer(bees: u64) -> Duration {
    let mut cluster = counters(None).network(QUIET).credits(4_096).start(bees);
    for key in 0..bees {
        while cluster.hive(0).try_emit(crate::directed::Count(key)).is_err() {
            cluster.advance(Duration::from_millis(1))
        }
    }
    cluster.advance(Duration::from_secs(2));
    let mut least = Duration::MAX;
    for (times, by) in [1, 2, 0, 1, 2].into_iter().enumerate() {
        let dead = cluster.leader(COLONY);
        cluster.crash(dead);
        let begun = std::cell::Cell::new(None);
        // the colony with the bees is the first of those that the dead one led
        cluster.take_over_with(dead, by, |_| begun.set(begun.get().or_else(|| Some(Instant::now()))));
        let hive = cluster.hive(by).clone();
        let counted = cluster.drive(hive.request(crate::directed::Count(bees / 2)));
        assert_eq!(counted, Ok(2 + times as u64));
        least = least.min(begun.get().expect("it has begun").elapsed());
        cluster.restart(dead)
    }
    least
}

/// A leader takes each bee of a log before it answers, but looks at each one only once. `BEEHIVE_LONG=1` goes to 100 000 bees.
#[test]
fn the_first_answer_after_a_take_over_takes_at_most_time_in_proportion_to_the_bees() {
    let largest = if std::env::var_os("BEEHIVE_LONG").is_some() { 100_000 } else { 10_000 };
    let times: Vec<(u64, Duration)> = std::iter::successors(Some(100), |bees| Some(bees * 10))
        .take_while(|bees| *bees <= largest)
        .map(|bees| (bees, first_answer(bees)))
        .collect();
    println!("{times:?}");
    for two in times.windows(2) {
        assert!(two[1].1 < two[0].1 * 40, "ten times the bees: {two:?}")
    }
}
