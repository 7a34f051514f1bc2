//! The network between hives is cut, and healed.

use crate::hives::{ALL, Counted, Hives, Ledger, PATIENCE, until};
use std::time::Duration;

#[test]
fn an_isolated_leader_is_deposed_and_nothing_is_doubled() {
    let hives = Hives::start();
    let ledger = Ledger::default();
    for round in 0..20 {
        (0..9).for_each(|key| ledger.must_count(hives.hive((round + key as usize) % 3), key))
    }
    let led = hives.led_by(0, 1);
    hives.net.isolate(ALL[0], &[ALL[1], ALL[2]]);
    // it goes on in vain
    for key in (0..9).step_by(3) {
        assert!(
            !ledger.count(hives.hive(0), key, Duration::from_millis(50)),
            "an isolated leader acknowledges key {key}"
        );
    }
    // some wait for an answer until the heal
    let waiting = (0..9).step_by(3).map(|key| {
        let (hive, ledger) = (hives.hive(0).clone(), ledger.clone());
        std::thread::spawn(move || ledger.count(&hive, key, PATIENCE))
    });
    let waiting: Vec<_> = waiting.collect();
    until("the others lead its colonies", || hives.led_by(0, 1).is_empty() && hives.led_by(0, 2).is_empty());
    // the isolated hive suspects both others, and nobody agrees
    let suspects = |hive: usize| hives.member(hive).suspects().borrow().iter().copied().collect::<Vec<_>>();
    until("the others agree about it", || [1, 2].iter().all(|hive| suspects(*hive) == [ALL[0]]));
    assert_eq!(suspects(0), []);
    for round in 0..20 {
        (0..9).for_each(|key| ledger.must_count(hives.hive(1 + (round + key as usize) % 2), key))
    }
    hives.net.heal();
    until("the isolated hive learns of it", || hives.led_by(0, 0).is_empty());
    for round in 0..20 {
        (0..9).for_each(|key| ledger.must_count(hives.hive((round + key as usize) % 3), key))
    }
    ledger.check(&hives);
    waiting.into_iter().for_each(|thread| {
        // it asserts that no other increment has made the same count
        thread.join().unwrap();
    });
    ledger.check(&hives);
    let leaders = hives.member(0).leaders();
    let of_led = leaders.iter().filter(|(colony, _)| led.contains(colony));
    assert!(of_led.clone().all(|(_, leader)| leader.is_some_and(|leader| leader != ALL[0])), "{leaders:?}");
    hives.equal_replicas();
}

#[test]
fn a_minority_acknowledges_nothing_and_answers_again_after_the_heal() {
    // so that leaders without a majority also see their leases end
    let hives = Hives::with(|options| {
        options.heartbeat = Duration::from_millis(100);
        options.lease = Duration::from_millis(600)
    });
    let ledger = Ledger::default();
    (0..9).for_each(|key| ledger.must_count(hives.hive(key as usize % 3), key));
    hives.net.isolate(ALL[0], &[ALL[1], ALL[2]]);
    hives.net.isolate(ALL[1], &[ALL[2]]);
    std::thread::sleep(Duration::from_millis(20));
    let before = ledger.answered();
    for round in 0..4 {
        for hive in 0..3 {
            let key = (hive + 3 * (round % 3)) as u64;
            ledger.count(hives.hive(hive), key, Duration::from_millis(100));
        }
    }
    assert_eq!(ledger.answered(), before, "a hive alone has acknowledged an increment");
    hives.net.heal();
    for hive in 0..3 {
        until("a hive answers again", || ledger.count(hives.hive(hive), hive as u64, Duration::from_secs(1)));
    }
    (0..9).for_each(|key| ledger.must_count(hives.hive(key as usize % 3), key));
    ledger.check(&hives);
    hives.equal_replicas();
}

/// An isolated leader has a lease, and nobody can tell it that the others have elected another one.
#[test]
fn an_isolated_leader_answers_no_reads() {
    let hives = Hives::start();
    let ledger = Ledger::default();
    (0..9).for_each(|key| ledger.must_count(hives.hive(key as usize % 3), key));
    hives.net.isolate(ALL[0], &[ALL[1], ALL[2]]);
    until("the others lead its colonies", || hives.led_by(0, 1).is_empty() && hives.led_by(0, 2).is_empty());
    (0..9).for_each(|key| ledger.must_count(hives.hive(1 + key as usize % 2), key));
    for key in 0..9 {
        let read = hives.hive(0).request_blocking_within(Duration::from_millis(60), Counted(key));
        assert!(read.is_err(), "the isolated hive reads {read:?} for key {key}")
    }
    // it waits until the links are back
    let reading: Vec<_> = (0..9)
        .map(|key| {
            let hive = hives.hive(0).clone();
            std::thread::spawn(move || (key, hive.request_blocking_within(PATIENCE, Counted(key))))
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    hives.net.heal();
    for read in reading {
        let (key, read) = read.join().unwrap();
        assert!(read.as_ref().is_ok_and(|count| *count >= 2), "key {key}: {read:?}")
    }
    ledger.check(&hives)
}

#[test]
fn a_hive_that_does_not_hear_a_leader_does_not_depose_it() {
    let hives = Hives::start();
    let ledger = Ledger::default();
    (0..9).for_each(|key| ledger.must_count(hives.hive(key as usize % 3), key));
    let terms = hives.terms(2);
    // hive 2 still hears both and is heard by both
    hives.net.isolate(ALL[0], &[ALL[1]]);
    until("hive 1 suspects hive 0", || hives.member(1).suspicions() > 0);
    assert!(hives.member(1).suspects().borrow().is_empty(), "hive 2 hears both");
    for _ in 0..30 {
        ledger.must_count(hives.hive(0), 0);
        std::thread::sleep(Duration::from_millis(10))
    }
    assert_eq!(hives.terms(2), terms, "hive 2 trusts both");
    hives.net.heal();
    for _ in 0..30 {
        (0..9).for_each(|key| ledger.must_count(hives.hive((key as usize + 1) % 3), key))
    }
    assert_eq!(hives.terms(2), terms, "no leader meets a higher term");
    ledger.check(&hives)
}

/// Nobody hears anybody for longer than it takes to be declared dead. When the links are back, all hives go on.
#[test]
fn hives_that_have_heard_nobody_for_long_are_not_declared_dead() {
    let hives = Hives::with(|options| options.dead_after = Duration::from_millis(500));
    let ledger = Ledger::default();
    for key in 0..6 {
        ledger.must_count(hives.hive(key as usize % 3), key)
    }
    let pairs = [(0, 1), (0, 2), (1, 2)];
    for (one, other) in pairs {
        hives.net.cut(ALL[one], ALL[other]);
        hives.net.cut(ALL[other], ALL[one])
    }
    std::thread::sleep(Duration::from_secs(3));
    hives.net.heal();
    std::thread::sleep(Duration::from_secs(1));
    for key in 0..12 {
        ledger.must_count(hives.hive(key as usize % 3), key % 6)
    }
    for hive in ALL {
        let mut is_dead = true;
        hives
            .member(0)
            .registry()
            .read(&mut |state| is_dead = state.hive(hive).is_none_or(|hive| hive.is_dead()));
        assert!(!is_dead, "{hive:?}")
    }
    ledger.check(&hives)
}
