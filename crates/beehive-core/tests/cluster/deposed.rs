//! A hive loses a colony and lives on: nothing of the colony is left in it, and another hive, or the same one, goes on.

use crate::bank::{Account, Auditor, Bank, Look, Pay};
use crate::directed::{Count, CountLater, Forget, QUIET, count, counters};
use crate::leaders::{Bell, Bells, Both, Ring, Wind, at_rest, bells, go_on, listen, notices};
use crate::moves::only_bee;
use beehive_core::registry::ColonyId;
use beehive_core::seams::Platform;
use beehive_core::testing::{Cluster, ClusterSetup, Mutant, UnderWay};
use beehive_core::{BeeId, RequestError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) const FIRST: ColonyId = ColonyId(1);

/// Deposes the leader of a colony, which is told or not.
fn depose(cluster: &mut Cluster, colony: ColonyId, by: usize, is_told: bool) {
    match is_told {
        true => cluster.depose(colony, by),
        false => cluster.depose_untold(colony, by),
    }
}

#[test]
fn a_bee_goes_on_where_its_colony_is_led() {
    let mut cluster = counters(None).start(1);
    assert_eq!((count(&mut cluster, 0, 7), count(&mut cluster, 1, 7)), (Ok(1), Ok(2)));
    let (bee, _) = only_bee(&mut cluster);
    for (round, by) in [1, 2, 0, 0, 1].into_iter().enumerate() {
        let before = 3 * round as u64 + 2;
        depose(&mut cluster, FIRST, by, round % 2 == 0);
        assert_eq!(only_bee(&mut cluster), (bee, by));
        let counted = [0, 1, 2].map(|hive| count(&mut cluster, hive, 7));
        assert_eq!(counted, [Ok(before + 1), Ok(before + 2), Ok(before + 3)], "round {round}");
    }
    cluster.advance(Duration::from_secs(1));
    at_rest(&mut cluster)
}

/// The same hive leads the same colony in one term after the other, and its logs use no more positions.
#[test]
fn a_hive_leads_the_same_colony_again() {
    let mut cluster = counters(None).hives(1).start(2);
    assert_eq!(count(&mut cluster, 0, 7), Ok(1));
    cluster.advance(Duration::from_secs(1));
    let (began, tasks) = (cluster.hive(0).under_way(), cluster.platform().tasks());
    for term in 0..200 {
        cluster.depose(FIRST, 0);
        assert_eq!(count(&mut cluster, 0, 7), Ok(term + 2))
    }
    cluster.advance(Duration::from_secs(1));
    assert_eq!((cluster.hive(0).under_way(), cluster.platform().tasks()), (began, tasks));
    at_rest(&mut cluster)
}

/// A hive that leads no colony any more takes part in the cluster all the same.
#[test]
fn a_hive_without_colonies_sends_and_asks() {
    let mut cluster = counters(None).start(3);
    cluster.depose(FIRST, 1);
    assert_eq!(cluster.hive(0).under_way(), UnderWay::default());
    assert_eq!((count(&mut cluster, 0, 7), count(&mut cluster, 0, 8)), (Ok(1), Ok(1)));
    cluster.hive(0).try_emit(CountLater { by: 1, key: 7 }).unwrap();
    cluster.advance(Duration::from_millis(100));
    assert_eq!(count(&mut cluster, 0, 7), Ok(3));
    cluster.depose(ColonyId(2), 0);
    assert_eq!((count(&mut cluster, 2, 7), count(&mut cluster, 0, 8)), (Ok(4), Ok(2)));
    cluster.advance(Duration::from_secs(1));
    at_rest(&mut cluster)
}

/// Messages are in the mailbox of a bee whose log commits nothing, and some of them are executed. Then another hive leads.
fn in_mailbox(mutant: Option<Mutant>) -> Result<(), String> {
    for seed in 0..6 {
        let mut cluster = counters(mutant).start(seed);
        assert_eq!(count(&mut cluster, 0, 7), Ok(1));
        cluster.stall(0, true);
        for hive in [0, 0, 0, 1, 2, 1] {
            cluster.hive(hive).try_emit(Count(7)).map_err(|busy| format!("{busy:?}"))?;
            cluster.advance(Duration::from_micros(300))
        }
        depose(&mut cluster, FIRST, 1, seed % 2 == 0);
        cluster.stall(0, false);
        cluster.advance(Duration::from_millis(300));
        match count(&mut cluster, 2, 7) {
            Ok(8) => {}
            other => return Err(format!("seed {seed}: {other:?}")),
        }
        cluster.advance(Duration::from_secs(1));
        at_rest(&mut cluster)
    }
    Ok(())
}

#[test]
fn what_a_lost_bee_had_accepted_is_handled_once_by_the_next_leader() {
    for mutant in [Mutant::MailboxLost, Mutant::DeposedReleases, Mutant::DeposedStays] {
        notices(mutant, in_mailbox)
    }
}

/// Payments within one hive, from a bee of one log to a bee of another log, which the hive loses.
fn in_order(mutant: Option<Mutant>) -> Result<(), String> {
    for seed in 0..8 {
        let setup = Cluster::of::<Bank>().app::<Auditor>().network(QUIET).logs_per_hive(2).mutant(mutant);
        let mut cluster = setup.start(seed);
        let hive = cluster.hive(0).clone();
        for account in 0..8 {
            let pay = Pay { number: account, from: account, to: account, amount: 1 };
            cluster.drive(hive.request(pay)).map_err(|error| error.to_string())?;
        }
        cluster.advance(Duration::from_millis(200));
        for number in 100..140 {
            let pay = Pay { number, from: number % 8, to: (number * 3 + 1) % 8, amount: 1 };
            hive.try_emit(pay).map_err(|busy| format!("{busy:?}"))?;
            cluster.advance(Duration::from_micros(70 + 13 * seed));
            if number == 120 {
                depose(&mut cluster, FIRST, 1, seed % 2 == 0)
            }
        }
        cluster.advance(Duration::from_millis(500));
        let mut balance = 0;
        for account in 0..8 {
            let hive = cluster.hive(2).clone();
            let Account { balance: its, faults, .. } =
                cluster.drive(hive.request(Look(account))).map_err(|error| error.to_string())?;
            if !faults.is_empty() {
                return Err(format!("seed {seed}, account {account}: {faults:?}"));
            }
            balance += its
        }
        if balance != 0 {
            return Err(format!("seed {seed}: balance {balance}"));
        }
        drop(hive);
        cluster.advance(Duration::from_secs(1));
        at_rest(&mut cluster)
    }
    Ok(())
}

#[test]
fn what_comes_back_from_a_lost_bee_stays_in_the_order_of_its_sender() {
    notices(Mutant::GivenBackLast, in_order);
    notices(Mutant::MailboxLost, in_order)
}

/// The old leader of a sender's log has not been told, and has a message under way. The next leader sends it again, and its
/// receiver handles it and ends. Then the old leader's replica learns of the next leader, and of the next owner of the cell.
fn sends_on(mutant: Option<Mutant>) -> Result<(), String> {
    let mut cluster = counters(mutant).logs_per_hive(2).start(5);
    // the receiver is in hive 2, the sender in hive 0
    assert_eq!(count(&mut cluster, 2, 7), Ok(1));
    cluster.hive(0).try_emit(CountLater { by: 1, key: 9 }).map_err(|busy| format!("{busy:?}"))?;
    cluster.advance(Duration::from_millis(300));
    cluster.cut(0, 2, true);
    cluster.hive(0).try_emit(CountLater { by: 1, key: 7 }).map_err(|busy| format!("{busy:?}"))?;
    cluster.advance(Duration::from_millis(100));
    let sent = cluster.hive(0).under_way().sent;
    if sent == 0 {
        return Err("nothing is under way".into());
    }
    let sends = cluster.log_states(0).iter().position(|state| !state.outbox.is_empty());
    let colony = ColonyId(1 + sends.ok_or("no log has sent anything")? as u32);
    cluster.hold_replica(0, Duration::from_secs(10));
    cluster.depose_untold(colony, 1);
    cluster.advance(Duration::from_millis(300));
    assert_eq!(count(&mut cluster, 2, 7), Ok(3), "the next leader has sent it");
    cluster.hive(2).try_emit(Forget(7)).map_err(|busy| format!("{busy:?}"))?;
    cluster.advance(Duration::from_secs(3));
    let owners = cluster.bees("counters").into_iter().filter(|(_, hive)| *hive == 2).count();
    if owners > 0 {
        return Err(format!("{owners} bees in hive 2 have not ended"));
    }
    cluster.advance(Duration::from_secs(8));
    // the next owner is in the old leader's hive
    let first = count(&mut cluster, 0, 7);
    cluster.cut(0, 2, false);
    cluster.advance(Duration::from_millis(300));
    match (first, count(&mut cluster, 1, 7)) {
        (Ok(1), Ok(2)) => {}
        other => return Err(format!("counted {other:?}")),
    }
    cluster.advance(Duration::from_secs(1));
    at_rest(&mut cluster);
    Ok(())
}

#[test]
fn a_deposed_leader_does_not_send_what_its_successor_has_sent() {
    notices(Mutant::DeposedSends, sends_on)
}

/// A bee that has no records is idle in a hive that was deposed and not told. In the next leader's log it has a row.
fn unlogged(mutant: Option<Mutant>) -> Result<(), String> {
    let mut cluster = counters(mutant).start(6);
    cluster.hive(0).try_emit(Forget(7)).map_err(|busy| format!("{busy:?}"))?;
    cluster.advance(Duration::from_millis(20));
    let (bee, at) = only_bee(&mut cluster);
    assert_eq!(at, 0);
    cluster.hold_replica(0, Duration::from_secs(2));
    cluster.depose_untold(FIRST, 1);
    assert_eq!(count(&mut cluster, 1, 7), Ok(1));
    // the old leader looks for idle bees ten times a second
    cluster.advance(Duration::from_secs(1));
    match (count(&mut cluster, 2, 7), only_bee(&mut cluster)) {
        (Ok(2), (its, 1)) if its == bee => {}
        other => return Err(format!("{bee}: {other:?}")),
    }
    cluster.advance(Duration::from_secs(3));
    assert_eq!(count(&mut cluster, 0, 7), Ok(3));
    Ok(())
}

#[test]
fn a_deposed_leader_ends_no_bee_of_its_successor() {
    notices(Mutant::UnloggedEndsAtOnce, unlogged)
}

#[test]
fn the_timers_of_a_lost_colony_fire_once() {
    for (is_told, by_nobody) in [(true, false), (false, false), (true, true), (false, true)] {
        for by in [0, 2] {
            let mut cluster = bells(None).start(7);
            for bell in 0..6 {
                let after = Duration::from_millis(100 * bell);
                cluster.hive(0).try_emit(Wind { bell, after, by_nobody }).unwrap()
            }
            cluster.advance(Duration::from_millis(250));
            let before = cluster.hive(0).under_way().timers;
            assert!(before >= 3, "{before} timers");
            depose(&mut cluster, FIRST, by, is_told);
            cluster.advance(Duration::from_millis(40));
            if by != 0 {
                assert_eq!(cluster.hive(0).under_way().timers, 0, "{is_told}, {by_nobody}")
            }
            let rung =
                |cluster: &mut Cluster| (0..6).map(|bell| listen(cluster, 1, bell).rung).collect::<Vec<_>>();
            assert_eq!(rung(&mut cluster), [1, 1, 1, 0, 0, 0], "{is_told}, {by_nobody}, by {by}");
            cluster.advance(Duration::from_secs(1));
            assert_eq!(rung(&mut cluster), [1; 6], "{is_told}, {by_nobody}, by {by}");
            cluster.advance(Duration::from_secs(1));
            at_rest(&mut cluster)
        }
    }
}

/// Requests are in flight when their bee is lost. Each one ends once, and what was not handled is answered.
#[test]
fn requests_in_flight_end_once() {
    let mut unanswered = 0;
    for seed in 0..10 {
        let mut cluster = counters(None).start(seed);
        assert_eq!(count(&mut cluster, 0, 7), Ok(1));
        cluster.stall(0, true);
        let answers: Arc<Mutex<Vec<Result<u64, RequestError>>>> = Arc::default();
        for number in 0..9 {
            let (hive, answers) = (cluster.hive(number % 3).clone(), answers.clone());
            cluster.platform().spawn(Box::pin(async move {
                let answer = hive.request(Count(7)).await;
                answers.lock().unwrap().push(answer)
            }));
            cluster.advance(Duration::from_micros(200))
        }
        depose(&mut cluster, FIRST, 1 + seed as usize % 2, seed % 3 > 0);
        cluster.advance(Duration::from_secs(6));
        assert_eq!(count(&mut cluster, 2, 7), Ok(11), "seed {seed}");
        let mut answers = answers.lock().unwrap().clone();
        assert_eq!(answers.len(), 9, "seed {seed}: {answers:?}");
        answers.retain(|answer| match answer {
            Ok(_) => true,
            // the record was committed, and the old leader could not say so
            Err(RequestError::Unavailable | RequestError::Timeout { .. }) => false,
            Err(other) => panic!("seed {seed}: {other:?}"),
        });
        unanswered += 9 - answers.len();
        answers.sort_by_key(|answer| answer.clone().unwrap_or_default());
        answers.dedup();
        assert!(answers.iter().all(|answer| (2..=10).contains(answer.as_ref().unwrap())), "{answers:?}");
        cluster.advance(Duration::from_secs(1));
        at_rest(&mut cluster)
    }
    println!("{unanswered} of 90 were not answered")
}

/// A bee of hive 0 moves to hive 1, and one of the two loses its colony.
#[test]
fn a_move_is_finished_when_its_source_or_its_target_is_deposed() {
    for seed in 0..36 {
        let mut cluster = bells(None).start(seed);
        let after = Duration::from_millis(400);
        cluster.hive(0).try_emit(Wind { bell: 0, after, by_nobody: false }).unwrap();
        for bell in 1..4 {
            cluster.hive(bell as usize - 1).try_emit(Ring(bell)).unwrap()
        }
        cluster.advance(Duration::from_millis(50));
        for (bee, at) in cluster.bees("bells") {
            if at == 0 {
                assert!(cluster.aim(bee, 1))
            }
        }
        cluster.advance(Duration::from_micros(350 * seed));
        let lost = seed % 2;
        let by = [2, 2, 1 - lost as usize, lost as usize][seed as usize % 4];
        depose(&mut cluster, ColonyId(1 + lost as u32), by, seed % 3 == 0);
        cluster.advance(Duration::from_millis(700));
        assert_eq!(
            listen(&mut cluster, 1, 0),
            Bell { wound: 1, rung: 1, ..listen(&mut cluster, 2, 0) },
            "seed {seed}"
        );
        go_on(&mut cluster, seed, [1, 2]);
        cluster.tell_deposed();
        cluster.advance(Duration::from_secs(1));
        at_rest(&mut cluster)
    }
}

/// Bees of hives 0 and 1 merge, and one of the two loses its colony.
#[test]
fn a_merge_is_finished_when_either_hive_is_deposed() {
    for seed in 0..36 {
        let mut cluster = bells(None).start(seed);
        for bell in 0..4 {
            cluster.hive(bell as usize % 2).try_emit(Ring(bell)).unwrap()
        }
        cluster.advance(Duration::from_millis(50));
        cluster.hive(seed as usize % 3).try_emit(Both(0, 1)).unwrap();
        cluster.advance(Duration::from_micros(350 * seed));
        let lost = seed % 2;
        let by = [2, 2, 1 - lost as usize, lost as usize][seed as usize % 4];
        depose(&mut cluster, ColonyId(1 + lost as u32), by, seed % 3 == 0);
        cluster.advance(Duration::from_millis(700));
        let rung: Vec<u64> = (0..4).map(|bell| listen(&mut cluster, 2, bell).rung).collect();
        assert_eq!(rung, [2, 2, 1, 1], "seed {seed}");
        go_on(&mut cluster, seed, [0, 1]);
        cluster.advance(Duration::from_secs(1));
        assert_eq!(cluster.bees("bells").len(), 3, "seed {seed}");
        at_rest(&mut cluster)
    }
}

/// A task of a hive's first term waits, because a move cannot begin. It must not touch the bee of the hive's second term.
#[test]
fn a_move_that_waits_ends_with_the_term() {
    let mut cluster = counters(None).start(8);
    assert_eq!(count(&mut cluster, 0, 7), Ok(1));
    let (bee, _) = only_bee(&mut cluster);
    cluster.cut(0, 1, true);
    assert!(cluster.aim(bee, 1));
    cluster.advance(Duration::from_millis(200));
    cluster.depose(FIRST, 0);
    cluster.advance(Duration::from_millis(20));
    cluster.cut(0, 1, false);
    cluster.advance(Duration::from_secs(2));
    assert_eq!((only_bee(&mut cluster), count(&mut cluster, 2, 7)), ((bee, 1), Ok(2)));
    at_rest(&mut cluster)
}

/// Rings the bells of a colony that hives lose to one another. `others` is what the other hives show of them.
fn views_of_a_lost_colony(bells: ClusterSetup, others: usize) {
    let mut cluster = bells.start(9);
    for bell in 0..50 {
        cluster.hive(0).try_emit(Ring(bell)).unwrap();
        cluster.advance(Duration::from_millis(1))
    }
    cluster.advance(Duration::from_millis(50));
    let shown = |cluster: &mut Cluster, hive: usize| {
        let shown = |bells: &Bells| (0..50).filter(|bell| bells.bells.shared().get(bell).is_some()).count();
        cluster.hive(hive).read(shown)
    };
    assert_eq!((shown(&mut cluster, 0), shown(&mut cluster, 1)), (Ok(50), Ok(others)));
    for (from, to, is_told) in [(0, 1, true), (1, 0, false), (0, 2, true)] {
        depose(&mut cluster, FIRST, to, is_told);
        cluster.hive(to).try_emit(Ring(7)).unwrap();
        cluster.advance(Duration::from_millis(100));
        assert_eq!(
            (shown(&mut cluster, from), shown(&mut cluster, to)),
            (Ok(others), Ok(50)),
            "from {from} to {to}"
        )
    }
}

#[test]
fn views_of_own_bees_lose_the_rows_of_a_lost_colony() {
    views_of_a_lost_colony(bells(None).own_views(), 0)
}

#[test]
fn views_of_all_bees_keep_the_rows_of_a_lost_colony() {
    views_of_a_lost_colony(bells(None), 50)
}

/// Nothing is left in hives that lose colonies to one another, told or not.
#[test]
fn nothing_is_left_of_a_lost_colony() {
    let mut cluster = bells(None).logs_per_hive(2).start(10);
    for bell in 0..30 {
        let after = Duration::from_millis(5 * bell);
        cluster.hive(bell as usize % 3).try_emit(Wind { bell, after, by_nobody: bell % 2 == 0 }).unwrap();
        cluster.advance(Duration::from_millis(2))
    }
    cluster.advance(Duration::from_secs(1));
    let began: Vec<UnderWay> = (0..3).map(|hive| cluster.hive(hive).under_way()).collect();
    let tasks = cluster.platform().tasks();
    for round in 0..60 {
        let colony = ColonyId(1 + round % 6);
        let by = (round as usize * 7 + 1) % 3;
        depose(&mut cluster, colony, by, round % 2 == 0);
        let after = Duration::from_millis(3);
        cluster
            .hive(by)
            .try_emit(Wind { bell: u64::from(round) % 30, after, by_nobody: round % 4 == 0 })
            .unwrap();
        cluster.hive((by + 1) % 3).try_emit(Ring(u64::from(round) % 30)).unwrap();
        cluster.advance(Duration::from_millis(4))
    }
    cluster.tell_deposed();
    // every colony is led by the hive that founded it
    for colony in 1..=6 {
        let founder = (colony as usize - 1) / 2;
        if cluster.leader(ColonyId(colony)) != founder {
            cluster.depose(ColonyId(colony), founder)
        }
    }
    cluster.advance(Duration::from_secs(4));
    at_rest(&mut cluster);
    let ended: Vec<UnderWay> = (0..3).map(|hive| cluster.hive(hive).under_way()).collect();
    assert_eq!((ended, cluster.platform().tasks()), (began, tasks));
    let rung: u64 = (0..30).map(|bell| listen(&mut cluster, 1, bell).rung).sum();
    assert_eq!(rung, 30 + 2 * 60, "every bell that was wound or rung")
}

/// Bees that go on in the hive that leads them, whatever they are named.
#[test]
fn bees_keep_their_names() {
    let mut cluster = counters(None).start(11);
    for key in 0..20 {
        assert_eq!(count(&mut cluster, key as usize % 3, key), Ok(1))
    }
    let names = |cluster: &mut Cluster| {
        let mut names: Vec<BeeId> = cluster.bees("counters").into_iter().map(|(bee, _)| bee).collect();
        names.sort_unstable();
        names
    };
    let before = names(&mut cluster);
    for colony in 1..=3 {
        cluster.depose(ColonyId(colony), 2)
    }
    for key in 0..20 {
        assert_eq!(count(&mut cluster, key as usize % 3, key), Ok(2))
    }
    assert_eq!(names(&mut cluster), before)
}
