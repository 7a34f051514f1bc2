//! A hive is stopped, and the others need not suspect it to go on.

use crate::hives::{ALL, Hives, Ledger, until};
use beehive::Restart;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A suspicion takes so long that a pause shows whether the others have waited for it.
const SUSPECT_AFTER: Duration = Duration::from_secs(8);

fn start() -> (Hives, Ledger) {
    let hives = Hives::with(|options| options.suspect_after = SUSPECT_AFTER);
    let ledger = Ledger::default();
    // each key is first used on another hive, so each hive has bees
    (0..12).for_each(|key| ledger.must_count(hives.hive(key as usize % 3), key));
    (hives, ledger)
}

/// Counts keys through other hives while a hive is stopped. Returns the longest time without an answer about a key of that hive, and
/// how many requests were not answered.
fn pause(
    hives: &mut Hives,
    ledger: &Ledger,
    stopped: usize,
    stop: impl FnOnce(&mut Hives),
) -> (Duration, usize) {
    let is_over = AtomicBool::new(false);
    let (longest, unanswered) = std::thread::scope(|scope| {
        // many, so that some of them wait for an answer at any moment
        let others = (0..3).filter(|hive| *hive != stopped).flat_map(|hive| [hive; 4]);
        let threads: Vec<_> = others
            .map(|hive| {
                let (hive, ledger, is_over) = (hives.hive(hive).clone(), ledger.clone(), &is_over);
                scope.spawn(move || {
                    let (mut last, mut longest, mut unanswered) = (Instant::now(), Duration::ZERO, 0);
                    let keys = (0..12).filter(|key| key % 3 == stopped as u64);
                    for key in keys.collect::<Vec<_>>().into_iter().cycle() {
                        // the last answer comes from the next leader
                        let was_over = is_over.load(Ordering::Relaxed);
                        if !ledger.count(&hive, key, SUSPECT_AFTER / 3) {
                            unanswered += 1;
                            continue;
                        }
                        longest = longest.max(last.elapsed());
                        last = Instant::now();
                        if was_over {
                            break;
                        }
                    }
                    (longest, unanswered)
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(200));
        stop(hives);
        std::thread::sleep(Duration::from_millis(300));
        is_over.store(true, Ordering::Relaxed);
        let of_threads: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        let longest = of_threads.iter().map(|(longest, _)| *longest).max().unwrap();
        (longest, of_threads.iter().map(|(_, unanswered)| unanswered).sum::<usize>())
    });
    println!("the longest pause was {longest:?}, and {unanswered} requests were not answered");
    (longest, unanswered)
}

#[test]
fn a_hive_that_is_stopped_hands_over_what_it_leads() {
    for (hive, id) in ALL.into_iter().enumerate() {
        let (mut hives, ledger) = start();
        let other = (hive + 1) % 3;
        let led = hives.led_by(hive, other);
        assert_eq!(led.len(), 2);
        let (longest, unanswered) = pause(&mut hives, &ledger, hive, |hives| hives.stop(hive));
        assert!(longest < SUSPECT_AFTER / 2, "the others have waited for a suspicion: {longest:?}");
        assert_eq!(unanswered, 0);
        let leaders = hives.member(other).leaders();
        let of_led = leaders.iter().filter(|(colony, _)| led.contains(colony));
        let next: Vec<_> = of_led.map(|(_, leader)| leader.unwrap()).collect();
        assert!(next[0] != next[1] && !next.contains(&id), "{leaders:?}");
        ledger.check(&hives);
        hives.equal_replicas();
    }
}

#[test]
fn a_hive_that_is_stopped_by_its_own_handle_hands_over_what_it_leads() {
    let (mut hives, ledger) = start();
    // what it handles when its grace period ends is done, and the answer is lost
    let (longest, _) = pause(&mut hives, &ledger, 0, |hives| {
        let hive = hives.hive(0).clone();
        hives.runtime(0).block_on(hive.stop(Duration::from_millis(200)));
        until("the others lead its colonies", || hives.led_by(0, 1).is_empty());
        hives.stop(0)
    });
    assert!(longest < SUSPECT_AFTER / 2, "the others have waited for a suspicion: {longest:?}");
    ledger.check(&hives);
    hives.equal_replicas();
}

/// An heir says that it stays, and does not take over then.
#[test]
fn what_one_heir_does_not_take_over_goes_to_another_one() {
    let (mut hives, ledger) = start();
    let led = hives.led_by(0, 2);
    assert_eq!(led.len(), 2);
    hives.net.deafen(ALL[1], ALL[0]);
    let (longest, _) = pause(&mut hives, &ledger, 0, |hives| hives.stop(0));
    assert!(longest < SUSPECT_AFTER / 2, "the others have waited for a suspicion: {longest:?}");
    let leaders = hives.member(2).leaders();
    let mut of_led = leaders.iter().filter(|(colony, _)| led.contains(colony));
    assert!(of_led.all(|(_, leader)| *leader == Some(ALL[2])), "{leaders:?}");
    ledger.check(&hives);
    hives.equal_replicas();
}

/// All hives are stopped. What two of them have under way needs a hive that has crashed just before.
#[test]
fn hives_that_stop_together_still_elect_others_for_what_is_under_way() {
    const GRACE: Duration = Duration::from_secs(12);
    let mut hives = Hives::with(|options| {
        options.suspect_after = Duration::from_secs(1);
        // until then, only the failure detector begins elections
        options.lease = GRACE * 2
    });
    let ledger = Ledger::default();
    (0..12).for_each(|key| ledger.must_count(hives.hive(key as usize % 3), key));
    let is_over = Arc::new(AtomicBool::new(false));
    for at in [1, 2] {
        // it does not end before the other one is done
        let is_over = is_over.clone();
        hives.hive(at).spawn_io("work", Restart::Never, move |_| {
            let is_over = is_over.clone();
            async move {
                while !is_over.load(Ordering::Relaxed) {
                    tokio::time::sleep(Duration::from_millis(10)).await
                }
                Ok(())
            }
        })
    }
    hives.kill(0);
    let begun = Instant::now();
    let are_answered = std::thread::scope(|scope| {
        let requests = [1, 2].map(|at| (at, hives.hive(at))).into_iter();
        let requests = requests.flat_map(|(at, hive)| [0, 3].map(|key| (hive, key + 6 * (at - 1) as u64)));
        let threads: Vec<_> = requests
            .map(|(hive, key)| {
                let ledger = &ledger;
                scope.spawn(move || ledger.count(hive, key, GRACE))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(100));
        for at in [1, 2] {
            let hive = hives.hive(at).clone();
            hives.runtime(at).spawn(async move { hive.stop(GRACE).await });
        }
        threads.into_iter().all(|thread| thread.join().unwrap())
    });
    let took = begun.elapsed();
    println!("all was answered after {took:?}");
    is_over.store(true, Ordering::Relaxed);
    assert!(are_answered && took < GRACE / 2, "nobody was elected: {took:?}")
}

/// The second one has a majority until it has ended. The last one cannot commit any more that it has stopped.
#[test]
fn hives_that_are_stopped_one_after_the_other_do_not_wait_for_their_grace_period() {
    const GRACE: Duration = Duration::from_secs(9);
    let mut hives = Hives::start();
    let ledger = Ledger::default();
    (0..12).for_each(|key| ledger.must_count(hives.hive(key as usize % 3), key));
    for hive in 0..3 {
        let begun = Instant::now();
        hives.stop_within(hive, GRACE);
        println!("hive {hive}: {:?}", begun.elapsed());
        assert!(begun.elapsed() < GRACE / 2, "hive {hive}: {:?}", begun.elapsed())
    }
}
