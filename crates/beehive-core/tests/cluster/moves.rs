//! Bees move from one hive to another while messages arrive.

use crate::bank::{Audited, Auditor, Bank, Look, Pay};
use crate::directed::{Count, CountLater, count, counters};
use crate::random::{MOVES, run};
use beehive_core::cluster::MoveError;
use beehive_core::registry::Proposal;
use beehive_core::testing::{Cluster, Mutant};
use beehive_core::{BeeId, HiveId};
use std::time::Duration;

/// Returns the only bee of the counters, and its hive.
pub(crate) fn only_bee(cluster: &mut Cluster) -> (BeeId, usize) {
    let bees = cluster.bees("counters");
    assert_eq!(bees.len(), 1, "{bees:?}");
    bees[0]
}

#[test]
fn a_bee_moves_to_every_hive_with_its_state() {
    let mut cluster = counters(None).start(1);
    assert_eq!(count(&mut cluster, 0, 7), Ok(1));
    let (bee, at) = only_bee(&mut cluster);
    assert_eq!(at, 0);
    let mut counted = 1;
    for to in [1, 2, 0, 2, 2, 1, 0] {
        let (from, index) = (only_bee(&mut cluster).1, cluster.registry(|state| state.index()));
        assert_eq!(cluster.move_bee(bee, to), Ok(()));
        assert_eq!(only_bee(&mut cluster), (bee, to));
        if from != to {
            // the aim and the decision
            cluster.advance(Duration::from_millis(50));
            let known = |hive: usize| cluster.log_states(hive)[0].known;
            assert!(
                known(from) >= index + 2 && known(to) >= index + 2,
                "the logs know the registry that they followed"
            )
        }
        for hive in 0..3 {
            counted += 1;
            assert_eq!(
                count(&mut cluster, hive, 7),
                Ok(counted),
                "the bee is at {to}, the request came to {hive}"
            );
        }
    }
    cluster.advance(Duration::from_millis(500));
    for hive in 0..3 {
        let states = cluster.log_states(hive);
        let bees: usize = states.iter().map(|state| state.bees.len()).sum();
        assert_eq!(bees, usize::from(hive == 0), "the old logs have dropped the bee");
        assert!(states.iter().all(|state| state.staged.is_empty() && state.frozen.is_empty()));
    }
}

#[test]
fn a_bee_that_has_moved_survives_crashes_of_its_new_hive() {
    let mut cluster = counters(None).start(2);
    assert_eq!(count(&mut cluster, 0, 7), Ok(1));
    let (bee, _) = only_bee(&mut cluster);
    assert_eq!(cluster.move_bee(bee, 1), Ok(()));
    assert_eq!(count(&mut cluster, 0, 7), Ok(2));
    for hive in [0, 1, 0, 1] {
        cluster.crash(hive);
        cluster.restart(hive);
    }
    assert_eq!(count(&mut cluster, 2, 7), Ok(3));
    assert_eq!(cluster.move_bee(bee, 0), Ok(()));
    assert_eq!(count(&mut cluster, 2, 7), Ok(4));
}

#[test]
fn only_a_bee_moves_and_only_to_a_hive() {
    let mut cluster = counters(None).start(3);
    assert_eq!(cluster.move_bee(BeeId(9), 1), Err(MoveError::NoSuchBee));
    assert_eq!(count(&mut cluster, 0, 7), Ok(1));
    let (bee, _) = only_bee(&mut cluster);
    assert_eq!(cluster.move_bee(bee, 9), Err(MoveError::NoSuchHive));
    assert_eq!(cluster.move_bee(bee, 0), Ok(()));
    assert!(cluster.aim(bee, 1));
    assert!(!cluster.aim(bee, 2), "it is about to move");
}

/// Checks that payments go wrong with a mutant in one of twelve random runs, which begin with seed `first`.
fn random_runs_notice(mutant: Mutant, first: u64) {
    let found = (first..first + 12).find_map(|seed| {
        let ran = std::panic::catch_unwind(|| run(seed, MOVES, Some(mutant)));
        let found = match ran {
            Ok(Ok(_)) => return None,
            Ok(Err(found)) => found,
            Err(_) => "a panic".into(),
        };
        Some((seed, found))
    });
    match found {
        Some((seed, found)) => println!("{mutant:?}, seed {seed}: {found}"),
        None => panic!("no run notices {mutant:?}"),
    }
}

#[test]
fn random_runs_notice_what_does_not_move() {
    for (mutant, first) in [
        (Mutant::RowsNotMoved, 1),
        (Mutant::DedupNotMoved, 1),
        (Mutant::OutboxNotMoved, 1),
        (Mutant::LaneNotMoved, 1),
        (Mutant::AckByLane, 1),
        // about one run in twenty notices it
        (Mutant::AdoptedOvertakes, 19),
    ] {
        random_runs_notice(mutant, first)
    }
}

/// Messages from both hives and from a third one arrive while the bee moves. Nobody loses or doubles one.
#[test]
fn messages_arrive_while_the_bee_moves() {
    for seed in 0..10 {
        let mut cluster = Cluster::of::<Bank>().app::<Auditor>().refuse_one_in(20).start(seed);
        let (mut number, mut sum) = (0, 0);
        for round in 0..12 {
            for _ in 0..20 {
                number += 1;
                let (from, to, amount) = (number % 3, number % 5, 1 + number as i64 % 7);
                sum += amount;
                let pay = Pay { number, from, to, amount };
                cluster.hive(number as usize % 3).try_emit(pay).unwrap();
                cluster.advance(Duration::from_micros(number * 37 % 500))
            }
            let bees = cluster.bees("bank");
            let (bee, _) = bees[round % bees.len()];
            cluster.aim(bee, (round + seed as usize) % 3);
        }
        cluster.advance(Duration::from_secs(2));
        let (mut balance, mut audited) = (0, 0);
        for account in 0..5 {
            let hive = cluster.hive(account as usize % 3).clone();
            let account = cluster.drive(hive.request(Look(account))).unwrap();
            assert!(account.faults.is_empty(), "seed {seed}: {:?}", account.faults);
            balance += account.balance;
            audited += account.deposited
        }
        let in_audit: i64 =
            (0..3).map(|sum| cluster.drive(cluster.hive(0).clone().request(Audited(sum))).unwrap()).sum();
        assert_eq!((balance, audited, in_audit), (0, sum, sum), "seed {seed}");
        for hive in 0..3 {
            for state in cluster.log_states(hive) {
                let left = (state.outbox.len(), state.untold.len(), state.staged.len(), state.frozen.len());
                assert_eq!(left, (0, 0, 0, 0), "seed {seed}, hive {hive}")
            }
        }
    }
}

/// A handler without state has handled a delayed message, which its sender's outbox still contains, when the hive crashes. Only
/// that hive remembers that the message was handled. Its next process moves the sender before the timer fires again.
#[test]
fn what_was_handled_without_a_bee_before_a_crash_does_not_move() {
    let mut hit = 0;
    for seed in 0..60 {
        let mut cluster = counters(None).start(seed);
        let emitted = cluster.hive(0).try_emit(CountLater { by: 1, key: 7 });
        assert!(emitted.is_ok(), "{emitted:?}");
        // between the delay and the time at which acknowledgments are recorded
        cluster.advance(Duration::from_micros(1_000 + seed * 80));
        cluster.crash(0);
        let log = &cluster.log_states(0)[0];
        let waits =
            log.outbox.keys().find_map(|id| Some((id.lane.bee()?.1, log.seen.contains_lane(id.lane))));
        let Some((sender, true)) = waits else { continue };
        hit += 1;
        assert!(cluster.aim(sender, 1));
        cluster.restart(0);
        cluster.advance(Duration::from_secs(1));
        assert_eq!(count(&mut cluster, 2, 7), Ok(2), "seed {seed}");
        assert!(cluster.bees("counters").contains(&(sender, 1)), "seed {seed}: the sender has moved");
    }
    assert!(hit > 10, "{hit} of 60 crashes came between the record and the acknowledgment");
}

/// A bee is to move to a hive that is down. It handles messages, and stays when the move has taken too long.
#[test]
fn a_bee_does_not_stop_for_a_hive_that_is_down() {
    let mut cluster = counters(None).start(6);
    assert_eq!(count(&mut cluster, 0, 7), Ok(1));
    let (bee, _) = only_bee(&mut cluster);
    cluster.crash(1);
    assert!(cluster.aim(bee, 1));
    let is_aimed =
        |cluster: &Cluster| cluster.registry(|view| view.bee(bee)).is_some_and(|entry| entry.aim.is_some());
    let mut counted = 1;
    while is_aimed(&cluster) {
        counted += 1;
        assert_eq!(count(&mut cluster, 2, 7), Ok(counted));
        cluster.advance(Duration::from_millis(500));
        let is_frozen = !cluster.log_states(0)[0].frozen.is_empty();
        assert!(!is_frozen || counted >= 20, "the bee is frozen");
        assert!(counted < 30, "the move goes on forever")
    }
    assert_eq!(cluster.move_bee(bee, 1), Err(MoveError::Abandoned));
    cluster.restart(1);
    assert_eq!(cluster.move_bee(bee, 1), Ok(()));
    assert_eq!((only_bee(&mut cluster), count(&mut cluster, 2, 7)), ((bee, 1), Ok(counted + 1)));
}

/// A message is under way to a hive whose bee has moved. The hive dies before it has sent the message back, and nobody takes
/// over its colony.
#[test]
fn a_message_under_way_to_a_dead_hive_follows_its_bee() {
    let mut cluster = counters(None).start(21);
    assert_eq!((count(&mut cluster, 0, 7), count(&mut cluster, 1, 7)), (Ok(1), Ok(2)));
    let (bee, at) = only_bee(&mut cluster);
    assert_eq!(at, 0);
    cluster.advance(Duration::from_millis(50));
    cluster.cut(0, 1, true);
    cluster.hive(1).try_emit(Count(7)).unwrap();
    cluster.advance(Duration::from_millis(5));
    assert_eq!(cluster.move_bee(bee, 2), Ok(()));
    cluster.crash(0);
    cluster.cut(0, 1, false);
    let hive = HiveId(0);
    let Some(incarnation) = cluster.registry(|view| view.hive(hive).map(|entry| entry.incarnation)) else {
        panic!("the hive has joined")
    };
    cluster.decide(&[Proposal::HiveDead { hive, incarnation }]);
    cluster.advance(Duration::from_millis(200));
    assert_eq!((count(&mut cluster, 2, 7), count(&mut cluster, 1, 7)), (Ok(4), Ok(5)))
}
