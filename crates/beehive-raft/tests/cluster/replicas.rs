//! Replicas of a log are equal, however they came to their state.

use crate::hives::{ALL, Hives, Ledger, until};
use std::time::Duration;

#[test]
fn replicas_are_equal_to_the_byte_after_takeovers() {
    let hives = Hives::start();
    let ledger = Ledger::default();
    for round in 0..3 {
        let hive = round % 3;
        (0..30).for_each(|key| ledger.must_count(hives.hive(key as usize % 3), key));
        let others: Vec<_> = ALL.into_iter().filter(|other| *other != ALL[hive]).collect();
        hives.net.isolate(ALL[hive], &others);
        (0..30).for_each(|key| {
            ledger.count(hives.hive((hive + 1) % 3), key, Duration::from_secs(2));
        });
        hives.net.heal();
        until("the isolated hive has learned of it", || hives.led_by(hive, hive).is_empty());
    }
    ledger.check(&hives);
    let chunks = hives.equal_replicas();
    assert!(chunks.values().any(|chunks| chunks.concat().len() > 200), "some logs have bees");
}

#[test]
fn a_hive_that_was_cut_off_for_long_gets_a_snapshot() {
    let hives = Hives::with(|options| {
        options.snapshot_after = 40;
        options.entries_kept = 5;
        // on a busy machine, it is cut off for longer than it takes to be declared dead
        options.dead_after = Duration::from_secs(300)
    });
    let ledger = Ledger::default();
    (0..9).for_each(|key| ledger.must_count(hives.hive(key as usize % 3), key));
    hives.net.isolate(ALL[2], &[ALL[0], ALL[1]]);
    until("the others lead its colonies", || hives.led_by(2, 0).is_empty() && hives.led_by(2, 1).is_empty());
    for _ in 0..40 {
        (0..9).for_each(|key| ledger.must_count(hives.hive(key as usize % 2), key))
    }
    hives.net.heal();
    hives.equal_replicas();
    (0..9).for_each(|key| ledger.must_count(hives.hive(2), key));
    ledger.check(&hives);
    assert!(hives.member(2).snapshots_installed() > 0, "no log was shortened");
}
