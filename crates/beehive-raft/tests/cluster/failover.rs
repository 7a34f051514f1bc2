//! A hive ends without a word: the others take its colonies over.

use crate::hives::{ALL, Hives, Ledger, until};
use beehive_raft::cluster::ClusterError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Ends the load when it is dropped.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed)
    }
}

#[test]
fn when_a_hive_is_killed_the_others_go_on_with_every_acknowledged_increment() {
    let mut hives = Hives::with(|options| options.dead_after = Duration::from_secs(1));
    let ledger = Ledger::default();
    // each key is first used on another hive, so each hive has bees
    for key in 0..24 {
        ledger.must_count(hives.hive(key as usize % 3), key);
    }
    for key in 0..24 {
        ledger.must_count(hives.hive((key as usize + 1) % 3), key);
    }
    assert_eq!(hives.led_by(0, 1).len(), 2);

    let stop = AtomicBool::new(false);
    let first = std::thread::scope(|scope| {
        // also if an assertion fails: the scope waits for its threads
        let _stop = Stop(&stop);
        for hive in [1, 2] {
            let (hive, ledger, stop) = (hives.hive(hive).clone(), ledger.clone(), &stop);
            scope.spawn(move || {
                for key in (0..24).cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
                    ledger.count(&hive, key, Duration::from_millis(500));
                }
            });
        }
        std::thread::sleep(Duration::from_millis(200));
        hives.kill(0);
        let start = Instant::now();
        // keys of the colonies that hive 0 led
        let mut first = None;
        until("a key of the killed hive is answered", || {
            let is_answered = ledger.count(hives.hive(1), 0, Duration::from_millis(1000));
            if is_answered && first.is_none() {
                first = Some(start.elapsed())
            }
            is_answered
        });
        until("all its colonies have other leaders", || {
            hives.led_by(0, 1).is_empty() && hives.led_by(0, 2).is_empty()
        });
        std::thread::sleep(Duration::from_millis(200));
        first.unwrap()
    });
    println!("first answer {first:?} after the kill; {} increments answered", ledger.answered());
    assert!(first < Duration::from_secs(3), "{first:?}");
    ledger.check(&hives);

    until("the killed hive is declared dead", || {
        let mut is_dead = false;
        hives
            .member(1)
            .registry()
            .read(&mut |state| is_dead = state.hive(ALL[0]).is_some_and(|hive| hive.is_dead()));
        is_dead
    });
    hives.equal_replicas();
}

#[test]
fn a_hive_that_has_lost_its_memory_does_not_return() {
    let mut hives = Hives::start();
    Ledger::default().must_count(hives.hive(2), 1);
    hives.kill(2);
    let refused = hives.start_again(2);
    assert!(matches!(&refused, Err(ClusterError::Forgotten { .. })), "{refused:?}");
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("let it replace its earlier life"), "{text}");
}

/// The hive ends in a process that lives on. If it still voted, the last hive would have a majority with it.
fn does_not_vote(end: impl FnOnce(&mut Hives)) {
    let mut hives = Hives::start();
    let ledger = Ledger::default();
    // hive 1 leads the colonies of some of the keys
    (0..12).for_each(|key| ledger.must_count(hives.hive(1), key));
    end(&mut hives);
    until("the others lead its colonies", || hives.led_by(0, 1).is_empty() && hives.led_by(0, 2).is_empty());
    (0..12).for_each(|key| ledger.must_count(hives.hive(1), key));
    let before = ledger.answered();
    hives.kill(2);
    for key in 0..12 {
        ledger.count(hives.hive(1), key, Duration::from_millis(100));
    }
    assert_eq!(ledger.answered(), before, "one hive of three has acknowledged increments")
}

#[test]
fn a_hive_that_is_dropped_votes_no_more() {
    does_not_vote(|hives| hives.drop_member(0))
}

#[test]
fn a_hive_that_is_stopped_by_its_own_handle_votes_no_more() {
    does_not_vote(|hives| {
        let hive = hives.hive(0).clone();
        hives.runtime(0).block_on(hive.stop(Duration::ZERO));
    })
}
