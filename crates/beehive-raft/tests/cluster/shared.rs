//! Views of the counts of all hives.

use crate::hives::{ALL, Count, Counted, Counters, Hives, Ledger, until};
use beehive::Hive;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const KEYS: u64 = 24;

fn shown(hive: &Hive) -> BTreeMap<u64, u64> {
    hive.read(|app: &Counters| app.counters.shared().iter().map(|(key, count)| (*key, *count)).collect())
        .unwrap()
}

/// Reads the view of a hive again and again, and checks that no count is ever missing or lower than before. Returns how often.
fn watch(hive: &Hive, is_over: &AtomicBool) -> u64 {
    let (mut seen, mut looks) = (shown(hive), 0);
    while !is_over.load(Ordering::Relaxed) {
        let now = shown(hive);
        for (key, count) in &seen {
            assert!(now.get(key) >= Some(count), "key {key} is {:?} after {count}", now.get(key))
        }
        (seen, looks) = (now, looks + 1);
        std::thread::sleep(Duration::from_micros(300))
    }
    looks
}

/// Sets a flag when it is dropped, also by a failed assertion: the scope waits for its threads.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed)
    }
}

#[test]
fn a_view_shows_the_counts_of_all_hives_also_when_one_is_killed() {
    let mut hives = Hives::with(|options| options.dead_after = Duration::from_secs(1));
    let ledger = Ledger::default();
    for key in 0..KEYS {
        ledger.must_count(hives.hive(key as usize % 3), key);
    }
    for hive in 0..3 {
        until("the hive shows all counts", || shown(hives.hive(hive)).len() as u64 == KEYS);
    }

    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = Over(&is_over);
        let watches = [1, 2].map(|hive| {
            let (hive, is_over) = (hives.hive(hive).clone(), &is_over);
            scope.spawn(move || watch(&hive, is_over))
        });
        for hive in [1, 2] {
            let (hive, ledger, is_over) = (hives.hive(hive).clone(), ledger.clone(), &is_over);
            scope.spawn(move || {
                for key in (0..KEYS).cycle().take_while(|_| !is_over.load(Ordering::Relaxed)) {
                    ledger.count(&hive, key, Duration::from_millis(500));
                }
            });
        }
        std::thread::sleep(Duration::from_millis(200));
        hives.kill(0);
        until("the colonies of the killed hive have other leaders", || {
            hives.led_by(0, 1).is_empty() && hives.led_by(0, 2).is_empty()
        });
        until("a key of the killed hive is answered", || {
            ledger.count(hives.hive(1), 0, Duration::from_secs(1))
        });
        std::thread::sleep(Duration::from_millis(300));
        is_over.store(true, Ordering::Relaxed);
        for watch in watches {
            assert!(watch.join().unwrap() > 50)
        }
    });

    ledger.check(&hives);
    until("both hives show the same", || shown(hives.hive(1)) == shown(hives.hive(2)));
    let all = shown(hives.hive(1));
    assert_eq!(all.len() as u64, KEYS);
    for (key, count) in all {
        let counted = hives.hive(2).request_blocking(Counted(key)).unwrap();
        assert_eq!(counted, count, "key {key}")
    }
}

#[test]
fn an_answered_count_is_shown_at_once_by_the_hive_that_has_it() {
    let hives = Hives::start();
    let ledger = Ledger::default();
    ledger.must_count(hives.hive(0), 1);
    for _ in 0..200 {
        let answered = hives.hive(0).request_blocking(Count(1)).unwrap();
        assert!(shown(hives.hive(0)).get(&1) >= Some(&answered))
    }
}

#[test]
fn after_a_snapshot_a_view_shows_what_the_hive_has_missed() {
    let hives = Hives::with(|options| {
        options.snapshot_after = 40;
        options.entries_kept = 5;
        // on a busy machine, it is cut off for longer than it takes to be declared dead
        options.dead_after = Duration::from_secs(300)
    });
    let ledger = Ledger::default();
    (0..KEYS).for_each(|key| ledger.must_count(hives.hive(0), key));
    until("hive 2 shows all counts", || shown(hives.hive(2)).len() as u64 == KEYS);
    hives.net.isolate(ALL[2], &[ALL[0], ALL[1]]);
    until("the others lead its colonies", || hives.led_by(2, 0).is_empty() && hives.led_by(2, 1).is_empty());
    for _ in 0..20 {
        (0..KEYS).for_each(|key| ledger.must_count(hives.hive(0), key))
    }
    let before = shown(hives.hive(2));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = Over(&is_over);
        let watched = scope.spawn(|| watch(hives.hive(2), &is_over));
        hives.net.heal();
        until("hive 2 shows what it has missed", || {
            let (one, other) = (shown(hives.hive(0)), shown(hives.hive(2)));
            one == other && one != before
        });
        is_over.store(true, Ordering::Relaxed);
        watched.join().unwrap()
    });
    assert!(hives.member(2).snapshots_installed() > 0, "no log was shortened");
}
