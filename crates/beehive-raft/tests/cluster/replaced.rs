//! A hive has lost its folder, or had none, and takes the place of its earlier life.

use crate::hives::{ALL, Hives, Ledger, until};
use crate::returns::{Disks, count, incarnation, must_start};
use beehive_raft::cluster::ClusterError;
use std::time::{Duration, Instant};

fn on(disks: &Disks) -> Hives {
    within(disks, Duration::from_secs(30))
}

/// Starts hives whose starts take so long at most.
fn within(disks: &Disks, limit: Duration) -> Hives {
    let disks = disks.clone();
    Hives::with(move |options| {
        disks.use_in(options);
        options.replaces = true;
        options.start_within = limit
    })
}

/// Checks that all three hives take part, so that any two of them are enough.
fn any_two_are_enough(mut hives: Hives, ledger: &Ledger, end: impl Fn(&mut Hives, usize), other: usize) {
    hives.equal_replicas();
    end(&mut hives, other);
    count(&hives, ledger, 2);
    ledger.check(&hives);
    hives.equal_replicas();
}

#[test]
fn hives_in_memory_are_replaced_one_after_the_other() {
    let mut hives = Hives::with(|options| {
        options.replaces = true;
        (options.snapshot_after, options.entries_kept) = (50, 10)
    });
    let ledger = Ledger::default();
    count(&hives, &ledger, 12);
    // in the end, no hive is left that was there at the beginning
    for hive in [1, 0, 2] {
        let other = (hive + 1) % 3;
        let led = hives.led_by(hive, other);
        hives.kill(hive);
        until("the others lead its colonies", || hives.led_by(hive, other).is_empty());
        count(&hives, &ledger, 2);
        let begun = Instant::now();
        must_start(&mut hives, hive);
        println!("hive {hive} was replaced within {:?}", begun.elapsed());
        assert_eq!(hives.led_by(hive, hive), led, "it leads what it led");
        assert!(hives.member(hive).snapshots_installed() > 0, "the logs are not short enough");
        count(&hives, &ledger, 2);
        ledger.check(&hives)
    }
    any_two_are_enough(hives, &ledger, Hives::kill, 0)
}

#[test]
fn a_hive_whose_folder_is_lost_gets_everything_from_the_others() {
    for hive in 0..3 {
        let disks = Disks::new(100 + hive as u64);
        let mut hives = on(&disks);
        let ledger = Ledger::default();
        count(&hives, &ledger, 3);
        disks.power_fails(&mut hives, hive);
        let old = disks.replace(hive, 777);
        must_start(&mut hives, hive);
        assert_eq!(incarnation(&hives, hive, hive), (2, false));
        count(&hives, &ledger, 2);
        ledger.check(&hives);

        // its new folder is as good as any
        disks.power_fails(&mut hives, hive);
        count(&hives, &ledger, 1);
        must_start(&mut hives, hive);
        count(&hives, &ledger, 1);

        // the old one is none any more: it may not take part, nor replace the new one with what it has promised
        disks.power_fails(&mut hives, hive);
        let new = disks.replace(hive, 0);
        disks.put(hive, old);
        let refused = hives.start_again(hive);
        assert!(matches!(&refused, Err(ClusterError::Replaced { .. })), "{refused:?}");
        disks.put(hive, new);
        must_start(&mut hives, hive);
        ledger.check(&hives);
        any_two_are_enough(hives, &ledger, |hives, hive| disks.power_fails(hives, hive), (hive + 1) % 3)
    }
}

/// The new life ends while it replaces the earlier one, at one moment after the other, and its disk is lost again.
#[test]
fn a_replacement_that_was_cut_short_is_made_again() {
    let disks = Disks::new(200);
    let mut hives = on(&disks);
    let ledger = Ledger::default();
    count(&hives, &ledger, 3);
    disks.power_fails(&mut hives, 2);
    for after in [1, 10, 30, 60, 100, 150] {
        disks.replace(2, 300 + after);
        hives.start_for(2, Duration::from_millis(after));
        count(&hives, &ledger, 1)
    }
    // it gets no further than to learn: its disk has no room for the log
    for after in [300, 600] {
        disks.replace(2, 300 + after);
        disks.of(2).set_capacity(Some(8 << 10));
        hives.start_for(2, Duration::from_millis(after));
        count(&hives, &ledger, 1)
    }
    disks.replace(2, 400);
    must_start(&mut hives, 2);
    count(&hives, &ledger, 2);
    ledger.check(&hives);
    any_two_are_enough(hives, &ledger, |hives, hive| disks.power_fails(hives, hive), 1)
}

/// The new life ends while it replaces the earlier one, at one moment after the other, and returns with its folder.
#[test]
fn a_replacement_that_was_cut_short_goes_on_with_the_folder() {
    for after in [20, 60, 100, 140, 200] {
        let disks = Disks::new(900 + after);
        let mut hives = on(&disks);
        let ledger = Ledger::default();
        count(&hives, &ledger, 8);
        disks.power_fails(&mut hives, 2);
        disks.replace(2, 950 + after);
        hives.start_for(2, Duration::from_millis(after));
        disks.of(2).power_off();
        std::thread::sleep(Duration::from_millis(50));
        disks.of(2).power_on();
        must_start(&mut hives, 2);
        count(&hives, &ledger, 1);
        ledger.check(&hives);
        any_two_are_enough(
            hives,
            &ledger,
            |hives, hive| disks.power_fails(hives, hive),
            after as usize / 10 % 2,
        )
    }
}

/// The start ends before any other hive has answered, and is made again.
#[test]
fn a_start_that_was_in_vain_is_made_again() {
    let disks = Disks::new(980);
    let mut hives = within(&disks, Duration::from_secs(7));
    let ledger = Ledger::default();
    count(&hives, &ledger, 2);
    disks.power_fails(&mut hives, 2);
    disks.replace(2, 981);
    hives.net.isolate(ALL[2], &[ALL[0], ALL[1]]);
    let refused = hives.start_again(2);
    assert!(matches!(&refused, Err(ClusterError::Alone { .. })), "{refused:?}");
    hives.net.heal();
    must_start(&mut hives, 2);
    count(&hives, &ledger, 2);
    ledger.check(&hives);
    any_two_are_enough(hives, &ledger, |hives, hive| disks.power_fails(hives, hive), 0)
}

/// While a hive is replaced, its messages go on, and the others hand over or lose what they lead.
#[test]
fn a_hive_is_replaced_while_the_leaders_change() {
    for seed in 0..3 {
        let disks = Disks::new(500 + seed);
        let mut hives = on(&disks);
        let ledger = Ledger::default();
        count(&hives, &ledger, 3);
        disks.power_fails(&mut hives, 0);
        disks.replace(0, 600 + seed);
        let started = std::thread::scope(|scope| {
            let starting = scope.spawn(|| hives.start_alone(0));
            std::thread::sleep(Duration::from_millis(20 + 40 * seed));
            // there is no majority
            hives.net.isolate(ALL[1], &[ALL[0], ALL[2]]);
            std::thread::sleep(Duration::from_millis(700));
            hives.net.heal();
            starting.join().unwrap()
        });
        hives.add(0, started);
        count(&hives, &ledger, 2);
        ledger.check(&hives);
        any_two_are_enough(hives, &ledger, |hives, hive| disks.power_fails(hives, hive), 2)
    }
}

#[test]
fn where_too_many_are_gone_nobody_is_replaced() {
    let disks = Disks::new(700);
    let mut hives = within(&disks, Duration::from_secs(7));
    let ledger = Ledger::default();
    count(&hives, &ledger, 2);
    disks.all_fail(&mut hives, &[1, 2]);
    let old = disks.replace(1, 800);
    let refused = hives.start_again(1);
    assert!(matches!(&refused, Err(ClusterError::Alone { .. })), "{refused:?}");
    println!("{}", refused.unwrap_err());

    // with the folder, there is a majority, and then the third one can be replaced
    disks.put(1, old);
    let begun = Instant::now();
    must_start(&mut hives, 1);
    println!("it has returned after {:?}", begun.elapsed());
    disks.replace(2, 801);
    must_start(&mut hives, 2);
    count(&hives, &ledger, 2);
    ledger.check(&hives);
    hives.equal_replicas();
}
