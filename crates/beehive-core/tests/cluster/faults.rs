//! The faults that a test causes, each with its effect, and those that a seed decides on.

use crate::bank::{Auditor, Bank};
use crate::directed::{Count, QUIET, count, counters};
use crate::leaders::at_rest;
use crate::moves::only_bee;
use crate::trace::payments;
use beehive_core::registry::ColonyId;
use beehive_core::testing::{Cluster, FaultKind, Faults, Mutant};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// Returns the virtual time that `work` takes.
fn time(cluster: &mut Cluster, work: impl FnOnce(&mut Cluster)) -> Duration {
    let before = cluster.now();
    work(cluster);
    cluster.now() - before
}

#[test]
fn a_hive_that_is_paused_does_nothing_and_then_goes_on() {
    let mut cluster = counters(None).start(1);
    assert_eq!(count(&mut cluster, 0, 7), Ok(1));
    cluster.pause(0, 300 * MS);
    let took = time(&mut cluster, |cluster| assert_eq!(count(cluster, 1, 7), Ok(2)));
    assert!(took >= 300 * MS && took < 1_000 * MS, "{took:?}");
    // others are not held up
    let took = time(&mut cluster, |cluster| {
        assert_eq!(count(cluster, 2, 8), Ok(1));
        cluster.pause(0, 300 * MS);
        assert_eq!(count(cluster, 1, 8), Ok(2))
    });
    assert!(took < 100 * MS, "{took:?}");
    // clients go elsewhere
    assert!((0..20).all(|_| cluster.any_hive().id().0 != 0));
    // a new process runs
    cluster.crash(0);
    cluster.restart(0);
    let took = time(&mut cluster, |cluster| assert_eq!(count(cluster, 1, 7), Ok(3)));
    assert!(took < 100 * MS, "{took:?}");
    // the end of the pause of the old process is not the end of this one
    cluster.pause(0, 500 * MS);
    let took = time(&mut cluster, |cluster| assert_eq!(count(cluster, 1, 7), Ok(4)));
    assert!(took >= 500 * MS, "{took:?}")
}

/// Another hive leads while the leader is paused. When it goes on, it does not know, and nothing that it does counts.
#[test]
fn a_leader_that_was_paused_has_lost_what_another_one_leads() {
    let mut cluster = counters(None).start(2);
    assert_eq!(count(&mut cluster, 0, 7), Ok(1));
    cluster.pause(0, 300 * MS);
    cluster.hive(1).try_emit(Count(7)).unwrap();
    cluster.advance(10 * MS);
    cluster.depose_untold(ColonyId(1), 2);
    assert_eq!(count(&mut cluster, 1, 7), Ok(3));
    cluster.advance(1_000 * MS);
    cluster.tell_deposed();
    assert_eq!((count(&mut cluster, 0, 7), count(&mut cluster, 1, 7)), (Ok(4), Ok(5)));
    at_rest(&mut cluster)
}

#[test]
fn a_slow_disk_stays_slow_until_it_is_repaired() {
    let mut cluster = counters(None).start(3);
    assert_eq!(count(&mut cluster, 0, 7), Ok(1));
    let took = time(&mut cluster, |cluster| assert_eq!(count(cluster, 1, 7), Ok(2)));
    assert!(took < 10 * MS, "{took:?}");
    cluster.slow_disk(0, 50 * MS);
    assert_eq!(count(&mut cluster, 1, 7), Ok(3), "the round of commits under way may be a fast one");
    let took = time(&mut cluster, |cluster| assert_eq!(count(cluster, 1, 7), Ok(4)));
    assert!(took >= 5 * MS, "{took:?}");
    // also in the next process
    cluster.crash(0);
    cluster.restart(0);
    let took = time(&mut cluster, |cluster| (5..10).for_each(|n| assert_eq!(count(cluster, 1, 7), Ok(n))));
    assert!(took >= 200 * MS, "{took:?}");
    cluster.slow_disk(0, Duration::ZERO);
    assert_eq!(count(&mut cluster, 1, 7), Ok(10));
    let took = time(&mut cluster, |cluster| assert_eq!(count(cluster, 1, 7), Ok(11)));
    assert!(took < 10 * MS, "{took:?}")
}

#[test]
fn a_clock_that_is_ahead_never_runs_backwards() {
    let mut cluster = counters(None).start(4);
    let ahead = |cluster: &Cluster| cluster.hive(0).now().since(cluster.hive(1).now());
    assert_eq!(ahead(&cluster), Duration::ZERO);
    cluster.skew_clock(0, 1_000 * MS);
    assert_eq!(ahead(&cluster), 1_000 * MS);
    let shown = cluster.hive(0).now();
    cluster.skew_clock(0, Duration::ZERO);
    cluster.advance(400 * MS);
    assert_eq!((cluster.hive(0).now(), ahead(&cluster)), (shown, 600 * MS));
    cluster.advance(1_000 * MS);
    assert_eq!(ahead(&cluster), Duration::ZERO);
    // another process may see an earlier time
    cluster.skew_clock(0, 1_000 * MS);
    cluster.hive(0).now();
    cluster.crash(0);
    cluster.skew_clock(0, Duration::ZERO);
    cluster.restart(0);
    assert_eq!(ahead(&cluster), Duration::ZERO)
}

#[test]
fn the_smaller_side_of_a_partition_does_nothing_that_counts() {
    let mut cluster = counters(None).start(5);
    assert_eq!((count(&mut cluster, 0, 7), count(&mut cluster, 1, 8)), (Ok(1), Ok(1)));
    cluster.partition(&[0]);
    assert!(count(&mut cluster, 0, 7).is_err(), "it commits nothing");
    assert!(count(&mut cluster, 0, 9).is_err(), "it does not reach the registry");
    assert!(count(&mut cluster, 1, 7).is_err(), "its bees are not reached");
    assert_eq!((count(&mut cluster, 1, 8), count(&mut cluster, 2, 8)), (Ok(2), Ok(3)));
    // the others go on with its bees, also with the request that it could not take
    cluster.depose_untold(ColonyId(1), 2);
    let counted = count(&mut cluster, 1, 7);
    assert!(matches!(counted, Ok(2..=4)), "{counted:?}");
    cluster.partition(&[]);
    cluster.advance(1_000 * MS);
    cluster.tell_deposed();
    let more = count(&mut cluster, 0, 7).unwrap() - counted.unwrap();
    assert!((1..=2).contains(&more), "{more}");
    at_rest(&mut cluster)
}

#[test]
fn heal_ends_all_faults() {
    let mut cluster = counters(None).start(6);
    assert_eq!(count(&mut cluster, 0, 7), Ok(1));
    cluster.slow_disk(0, 50 * MS);
    cluster.skew_clock(1, 50 * MS);
    cluster.partition(&[0]);
    cluster.crash(2);
    cluster.pause(1, Duration::from_secs(100));
    cluster.hold_replica(1, Duration::from_secs(100));
    cluster.heal();
    cluster.advance(100 * MS);
    assert!((0..3).all(|hive| cluster.is_running(hive)));
    let took =
        time(&mut cluster, |cluster| assert_eq!([1, 2].map(|hive| count(cluster, hive, 7)), [Ok(2), Ok(3)]));
    assert!(took < 20 * MS, "{took:?}");
    assert_eq!(cluster.hive(1).now(), cluster.hive(0).now())
}

#[test]
fn only_the_faults_that_are_asked_for_happen() {
    let setup = |faults: Faults| Cluster::of::<Bank>().app::<Auditor>().faults(faults.lasting(50 * MS));
    let run = |faults| setup(faults).check(2, |cluster| assert_eq!(payments(cluster), 0));
    let crashes = run(Faults::every(10 * MS).only(&[FaultKind::Crash]));
    assert_eq!(crashes.faults.keys().collect::<Vec<_>>(), [&FaultKind::Crash]);
    let others = run(Faults::every(10 * MS).without(&[FaultKind::Crash, FaultKind::ClockSkew]));
    assert!(others.faults.len() > 2, "{others}");
    assert!(
        ![FaultKind::Crash, FaultKind::ClockSkew].iter().any(|kind| others.faults.contains_key(kind)),
        "{others}"
    )
}

/// A program that runs alone crashes, too. Clients wait until it has started again.
#[test]
fn a_single_hive_crashes_and_loses_nothing() {
    let setup = Cluster::of::<Bank>().app::<Auditor>().hives(1).faults(Faults::every(10 * MS));
    let explored = setup.check(10, |cluster| assert_eq!(payments(cluster), 0));
    assert!(explored.faults[&FaultKind::Crash] >= explored.seeds, "{explored}")
}

#[test]
#[should_panic(expected = "all hives are down; `restart` one, or `heal` the cluster")]
fn a_cluster_without_a_hive_says_what_to_do() {
    let mut cluster = counters(None).start(8);
    (0..3).for_each(|hive| cluster.crash(hive));
    let _ = cluster.request(Count(7));
}

/// The faults of some seed show that a rule of the protocol is broken.
#[test]
fn seeds_find_broken_rules() {
    // the checks of debug builds may end the process of a mutant, so these mutants only lose or double messages
    for mutant in [Mutant::ForeignForgotten, Mutant::RestartRetiresForeign] {
        let setup = Cluster::of::<Bank>().app::<Auditor>().mutant(Some(mutant));
        let setup = setup.faults(Faults::every(20 * MS));
        let failed = setup.explore(100, |cluster| assert_eq!(payments(cluster), 0));
        let failed = failed.expect_err("no seed finds the mutant");
        println!("{mutant:?}: seed {}: {}", failed.seed, failed.why)
    }
}

#[test]
fn a_bee_moves_while_its_hive_is_slow() {
    let mut cluster = counters(None).network(QUIET).start(9);
    assert_eq!(count(&mut cluster, 0, 7), Ok(1));
    let (bee, _) = only_bee(&mut cluster);
    cluster.slow_disk(0, 20 * MS);
    assert_eq!(cluster.move_bee(bee, 2), Ok(()));
    assert_eq!((count(&mut cluster, 0, 7), only_bee(&mut cluster)), (Ok(2), (bee, 2)))
}
