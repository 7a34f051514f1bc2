//! A hive dies, and another one takes over its colonies.

use crate::bank::{Account, Auditor, Bank, Look, Pay};
use crate::directed::{Count, Forget, QUIET, count, counters};
use crate::moves::only_bee;
use crate::random::{TAKES, run};
use beehive_core::cluster::LeadError;
use beehive_core::journal::{CrashMarker, LogState, Suspect};
use beehive_core::registry::ColonyId;
use beehive_core::seams::Platform;
use beehive_core::testing::{Cluster, ClusterSetup, Mutant, TestJournal};
use beehive_core::{
    App, BeeId, Config, Ctx, Dict, Message, ReconfigureError, Reconfigured, handlers, limits,
};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Lets a bell ring later.
#[derive(Message)]
pub(crate) struct Wind {
    pub(crate) bell: u64,
    pub(crate) after: Duration,
    /// Whether a handler without state rings it.
    pub(crate) by_nobody: bool,
}

#[derive(Message)]
pub(crate) struct Ring(pub(crate) u64);

/// Rings a bell, by way of a handler without state.
#[derive(Message)]
struct Pull(u64);

/// Rings two bells at once.
#[derive(Message)]
#[message(reply = u64)]
pub(crate) struct Both(pub(crate) u64, pub(crate) u64);

#[derive(Message)]
#[message(reply = Bell)]
struct Listen(u64);

#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Bell {
    pub(crate) wound: u64,
    pub(crate) rung: u64,
    /// Number of times that the settings were looked at.
    pub(crate) tuned: u64,
}

#[derive(Clone, Debug, Default, serde::Deserialize)]
struct Tune {
    #[serde(default)]
    pitch: u32,
}

#[derive(App)]
#[app(name = "bells")]
pub(crate) struct Bells {
    #[shared]
    pub(crate) bells: Dict<u64, Bell>,
    tune: Config<Tune>,
}

#[handlers]
impl Bells {
    #[rcv]
    fn wind(&mut self, msg: &Wind, ctx: &mut Ctx) {
        self.bells.entry(msg.bell).or_default().wound += 1;
        match msg.by_nobody {
            true => ctx.after(msg.after, Pull(msg.bell)),
            false => ctx.after(msg.after, Ring(msg.bell)),
        }
    }

    #[rcv(stateless)]
    fn pull(&mut self, msg: &Pull, ctx: &mut Ctx) {
        ctx.emit(Ring(msg.0))
    }

    #[rcv]
    fn ring(&mut self, msg: &Ring) {
        self.bells.entry(msg.0).or_default().rung += 1
    }

    #[rcv(joins)]
    fn both(&mut self, msg: &Both) -> u64 {
        self.bells.entry(msg.0).or_default().rung += 1;
        let other = self.bells.entry(msg.1).or_default();
        other.rung += 1;
        other.rung
    }

    #[rcv]
    fn listen(&mut self, msg: &Listen) -> Bell {
        self.bells.get(&msg.0).copied().unwrap_or_default()
    }

    #[rcv(each = bells)]
    fn reconfigured(&mut self, bell: &u64, _: &Reconfigured) {
        let _ = self.tune.pitch;
        if let Some(bell) = self.bells.get_mut(bell) {
            bell.tuned += 1
        }
    }
}

pub(crate) fn bells(mutant: Option<Mutant>) -> ClusterSetup {
    Cluster::of::<Bells>().network(QUIET).mutant(mutant)
}

#[track_caller]
pub(crate) fn listen(cluster: &mut Cluster, hive: usize, bell: u64) -> Bell {
    let hive = cluster.hive(hive).clone();
    cluster.drive(hive.request(Listen(bell))).unwrap()
}

/// Checks that nothing is left to be done in any log.
#[track_caller]
pub(crate) fn at_rest(cluster: &mut Cluster) {
    for (at, state) in (0..cluster.hives()).flat_map(|hive| cluster.log_states(hive)).enumerate() {
        let left = (state.outbox.len(), state.untold.len(), state.staged.len(), state.frozen.len());
        assert_eq!((left, state.sweeps.len()), ((0, 0, 0, 0), 0), "log {at}");
    }
    cluster.registry(|state| state.check()).unwrap()
}

/// Runs a test that passes without the mutant, and fails with it.
pub(crate) fn notices(mutant: Mutant, test: impl Fn(Option<Mutant>) -> Result<(), String>) {
    test(None).unwrap_or_else(|found| panic!("without the mutant: {found}"));
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(Some(mutant))));
    match broken {
        Ok(Ok(())) => panic!("the test does not notice {mutant:?}"),
        Ok(Err(found)) => println!("{mutant:?}: {found}"),
        Err(_) => println!("{mutant:?}: a panic"),
    }
}

#[test]
fn a_bee_lives_on_in_the_hive_that_takes_over() {
    let mut cluster = counters(None).start(1);
    assert_eq!((count(&mut cluster, 0, 7), count(&mut cluster, 1, 7)), (Ok(1), Ok(2)));
    let (bee, _) = only_bee(&mut cluster);
    cluster.crash(0);
    cluster.take_over(0, 1);
    assert_eq!(only_bee(&mut cluster), (bee, 1));
    assert_eq!((count(&mut cluster, 1, 7), count(&mut cluster, 2, 7)), (Ok(3), Ok(4)));

    // it comes back without its old colony, and hosts new bees
    cluster.restart(0);
    assert_eq!((count(&mut cluster, 0, 7), count(&mut cluster, 0, 8)), (Ok(5), Ok(1)));
    assert_eq!(cluster.bees("counters").into_iter().filter(|(_, hive)| *hive == 0).count(), 1);
    assert_eq!((count(&mut cluster, 1, 8), count(&mut cluster, 2, 8)), (Ok(2), Ok(3)));
    cluster.advance(Duration::from_secs(1));
    at_rest(&mut cluster)
}

/// A message is under way to a hive that dies: before it has handled the message, or before it could say that it has.
fn under_way(by: usize, is_handled: bool, mutant: Option<Mutant>) -> Result<(), String> {
    let mut cluster = counters(mutant).start(2);
    assert_eq!((count(&mut cluster, 0, 7), count(&mut cluster, 1, 7)), (Ok(1), Ok(2)));
    cluster.stall(0, true);
    cluster.hive(1).try_emit(Count(7)).map_err(|busy| format!("{busy:?}"))?;
    cluster.advance(Duration::from_millis(5));
    cluster.cut(0, 1, true);
    if is_handled {
        cluster.stall(0, false);
        cluster.advance(Duration::from_millis(50))
    }
    cluster.crash(0);
    cluster.cut(0, 1, false);
    cluster.advance(Duration::from_millis(100));
    cluster.take_over(0, by);
    cluster.advance(Duration::from_millis(200));
    match (count(&mut cluster, 2, 7), count(&mut cluster, 1, 7)) {
        (Ok(4), Ok(5)) => {}
        other => return Err(format!("the counter is at {other:?}")),
    }
    cluster.advance(Duration::from_secs(1));
    at_rest(&mut cluster);
    Ok(())
}

#[test]
fn a_message_under_way_to_a_dead_hive_arrives_once() {
    for by in [1, 2] {
        for is_handled in [false, true] {
            under_way(by, is_handled, None).unwrap_or_else(|found| panic!("by {by}, {is_handled}: {found}"))
        }
        notices(Mutant::OldLeaderKept, |mutant| under_way(by, false, mutant))
    }
}

/// A hive dies before the messages of its bees have arrived.
fn outbox(by: usize, mutant: Option<Mutant>) -> Result<(), String> {
    let mut cluster = Cluster::of::<Bank>().app::<Auditor>().network(QUIET).mutant(mutant).start(3);
    let look = |cluster: &mut Cluster, account| -> Result<Account, String> {
        let hive = cluster.hive(2).clone();
        cluster.drive(hive.request(Look(account))).map_err(|error| error.to_string())
    };
    let pay = |number, from, to| Pay { number, from, to, amount: 5 };
    // account 2 is in hive 2, account 1 in hive 0
    let (zero, two) = (cluster.hive(0).clone(), cluster.hive(2).clone());
    assert_eq!(cluster.drive(two.request(pay(1, 2, 3))), Ok(1));
    assert_eq!(cluster.drive(zero.request(pay(2, 1, 2))), Ok(1));
    cluster.advance(Duration::from_millis(100));
    cluster.cut(0, 2, true);
    cluster.cut(0, 1, true);
    for number in 3..8 {
        assert_eq!(cluster.drive(zero.request(pay(number, 1, 2))), Ok(number - 1))
    }
    drop((zero, two));
    cluster.crash(0);
    cluster.cut(0, 2, false);
    cluster.cut(0, 1, false);
    cluster.take_over(0, by);
    cluster.advance(Duration::from_millis(500));
    let account = look(&mut cluster, 2)?;
    if (account.balance, account.faults.len()) != (6 * 5 - 5, 0) {
        return Err(format!("{account:?}"));
    }
    cluster.advance(Duration::from_secs(1));
    at_rest(&mut cluster);
    Ok(())
}

#[test]
fn what_the_bees_of_a_dead_hive_have_sent_arrives() {
    for by in [1, 2] {
        notices(Mutant::TakenNotResent, |mutant| outbox(by, mutant))
    }
}

/// A hive dies with timers that have not fired.
#[test]
fn the_timers_of_a_dead_hive_fire_once_in_the_hive_that_takes_over() {
    for by_nobody in [false, true] {
        let mut cluster = bells(None).start(4);
        for bell in 0..6 {
            let after = Duration::from_millis(100 * bell);
            cluster.hive(0).try_emit(Wind { bell, after, by_nobody }).unwrap()
        }
        cluster.advance(Duration::from_millis(250));
        cluster.crash(0);
        cluster.take_over(0, 2);
        // those that are due have fired before or fire at once
        cluster.advance(Duration::from_millis(40));
        let rung =
            |cluster: &mut Cluster| (0..6).map(|bell| listen(cluster, 1, bell).rung).collect::<Vec<_>>();
        assert_eq!(rung(&mut cluster), [1, 1, 1, 0, 0, 0], "{by_nobody}");
        cluster.advance(Duration::from_secs(1));
        assert_eq!(rung(&mut cluster), [1; 6], "{by_nobody}");
        at_rest(&mut cluster)
    }
}

/// A handler without state has handled a message. Its hive dies before the log of the sender knows, and another hive sends the
/// message again.
fn handled_by_nobody(logs: u32, mutant: Option<Mutant>) -> Result<(), String> {
    for seed in 0..8 {
        let mut cluster = bells(mutant).logs_per_hive(logs).start(seed);
        for bell in 0..4 {
            let wind = Wind { bell, after: Duration::from_millis(5), by_nobody: true };
            cluster.hive(0).try_emit(wind).map_err(|busy| format!("{busy:?}"))?
        }
        cluster.advance(Duration::from_millis(8 + seed));
        cluster.crash(0);
        cluster.take_over(0, 1);
        cluster.advance(Duration::from_millis(500));
        let rung: Vec<u64> = (0..4).map(|bell| listen(&mut cluster, 2, bell).rung).collect();
        if rung != [1; 4] {
            return Err(format!("seed {seed}: {rung:?}"));
        }
        cluster.advance(Duration::from_secs(1));
        at_rest(&mut cluster)
    }
    Ok(())
}

#[test]
fn what_a_handler_without_state_has_handled_is_not_handled_by_the_next_leader() {
    for logs in [1, 2] {
        notices(Mutant::StatelessAtHome, |mutant| handled_by_nobody(logs, mutant))
    }
}

/// A hive dies while `Reconfigured` visits its bells. The hive that takes over visits the other ones, and then all its
/// bells, because it does not know whether its settings are the same.
#[test]
fn a_sweep_of_a_dead_hive_goes_on_in_the_hive_that_takes_over() {
    const BELLS: u64 = 40;
    let mut interrupted = 0;
    for seed in 0..6 {
        let mut cluster = bells(None).start(seed);
        for bell in 0..BELLS {
            let hive = cluster.hive(0).clone();
            cluster.drive(hive.request(Both(bell, bell))).unwrap();
        }
        let table = "[bells]\npitch = 3".parse().unwrap();
        let hive = cluster.hive(0).clone();
        let changed = async move { hive.reconfigure(table).await };
        cluster.drive(changed).unwrap();
        cluster.advance(Duration::from_micros(700 + 300 * seed));
        let visited = {
            let states = cluster.log_states(0);
            interrupted += usize::from(!states[0].sweeps.is_empty());
            states[0].sweeps.values().map(|sweep| sweep.open.len()).sum::<usize>()
        };
        cluster.crash(0);
        cluster.take_over(0, 1);
        cluster.advance(Duration::from_secs(1));
        for bell in 0..BELLS {
            assert_eq!(listen(&mut cluster, 2, bell).tuned, 2, "seed {seed}, bell {bell}, {visited} open")
        }
        at_rest(&mut cluster)
    }
    assert!(interrupted > 1, "a sweep was interrupted in {interrupted} of 6 runs")
}

/// The caller learns that new settings are not in force yet, and they take effect later.
#[test]
fn settings_whose_log_stalls_are_reported_and_take_effect_when_it_commits() {
    let mut cluster = bells(None).start(5);
    let change = |cluster: &Cluster, pitch: u64| {
        let (hive, told) = (cluster.hive(0).clone(), Arc::new(Mutex::new(None)));
        let (table, tell) = (format!("[bells]\npitch = {pitch}").parse().unwrap(), told.clone());
        cluster.platform().spawn(Box::pin(async move { *tell.lock() = Some(hive.reconfigure(table).await) }));
        told
    };
    // the settings with which the hive has started are in the log
    cluster.advance(Duration::from_secs(1));
    cluster.stall(0, true);
    let (first, second) = (change(&cluster, 3), change(&cluster, 4));
    cluster.advance(limits::SETTINGS_COMMITTED_AFTER_MAX - Duration::from_millis(1));
    assert!(first.lock().is_none());
    cluster.advance(Duration::from_millis(2));
    for told in [&first, &second] {
        let error = told.lock().clone().unwrap().unwrap_err();
        assert_eq!(error, ReconfigureError::NotCommitted { apps: vec!["bells"], logs: vec![0] });
        assert!(
            error.to_string().starts_with(
                "the new settings of bells are not in force after 10 s: a log of these apps does not commit"
            ),
            "{error}"
        );
    }
    // nothing waits for the log but one change that has begun, and one that has not
    let before = cluster.platform().tasks();
    for pitch in 5..100 {
        change(&cluster, pitch);
        cluster.advance(limits::SETTINGS_COMMITTED_AFTER_MAX + Duration::from_millis(1));
    }
    assert_eq!(cluster.platform().tasks(), before);
    cluster.stall(0, false);
    cluster.advance(Duration::from_secs(1));
    let states = cluster.log_states(0);
    let logged = states[0].settings.values().next().unwrap();
    assert_eq!((logged.version, &*logged.table), (3, "pitch = 99\n"));
}

/// Checks that bells go on wherever they are, also when they merge and move.
#[track_caller]
pub(crate) fn go_on(cluster: &mut Cluster, seed: u64, hives: [usize; 2]) {
    for bell in 0..4 {
        let before = listen(cluster, hives[0], bell).rung;
        cluster.hive(hives[1]).try_emit(Ring(bell)).unwrap();
        cluster.advance(Duration::from_millis(300));
        assert_eq!(listen(cluster, hives[0], bell).rung, before + 1, "seed {seed}, bell {bell}");
    }
}

/// A bee of hive 0 moves to hive 1, and one of the two dies. Hive 2 takes over.
#[test]
fn a_move_is_finished_when_its_source_or_its_target_dies() {
    for seed in 0..24 {
        let dead = seed as usize % 2;
        let mut cluster = bells(None).start(seed);
        cluster
            .hive(0)
            .try_emit(Wind { bell: 0, after: Duration::from_millis(400), by_nobody: false })
            .unwrap();
        for bell in 1..4 {
            cluster.hive(bell as usize - 1).try_emit(Ring(bell)).unwrap()
        }
        cluster.advance(Duration::from_millis(50));
        for (bee, at) in cluster.bees("bells") {
            if at == 0 {
                assert!(cluster.aim(bee, 1))
            }
        }
        cluster.advance(Duration::from_micros(500 * seed));
        cluster.crash(dead);
        cluster.take_over(dead, 2);
        cluster.advance(Duration::from_millis(700));
        let bees = cluster.bees("bells");
        let at = if dead == 0 { 1 } else { 2 };
        assert!(bees.iter().all(|(_, hive)| [at, 2].contains(hive)), "seed {seed}: {bees:?}");
        assert_eq!(
            listen(&mut cluster, 1 - dead, 0),
            Bell { wound: 1, rung: 1, ..listen(&mut cluster, 2, 0) },
            "seed {seed}"
        );
        go_on(&mut cluster, seed, [1 - dead, 2]);
        cluster.advance(Duration::from_secs(1));
        at_rest(&mut cluster)
    }
}

/// Bees of hives 0 and 1 merge, and one of the two dies. Hive 2 takes over.
#[test]
fn a_merge_is_finished_when_either_hive_dies() {
    for seed in 0..24 {
        let dead = seed as usize % 2;
        let mut cluster = bells(None).start(seed);
        for bell in 0..4 {
            cluster.hive(bell as usize % 2).try_emit(Ring(bell)).unwrap()
        }
        cluster.advance(Duration::from_millis(50));
        cluster.hive(1 - dead).try_emit(Both(0, 1)).unwrap();
        cluster.advance(Duration::from_micros(500 * seed));
        cluster.crash(dead);
        cluster.take_over(dead, 2);
        cluster.advance(Duration::from_millis(700));
        let rung: Vec<u64> = (0..4).map(|bell| listen(&mut cluster, 2, bell).rung).collect();
        assert_eq!(rung, [2, 2, 1, 1], "seed {seed}");
        go_on(&mut cluster, seed, [1 - dead, 2]);
        cluster.advance(Duration::from_secs(1));
        assert_eq!(cluster.bees("bells").len(), 3, "seed {seed}");
        at_rest(&mut cluster)
    }
}

#[test]
fn the_bees_of_a_dead_hive_move_and_merge_on_and_a_third_hive_takes_over_everything() {
    let mut cluster = bells(None).start(5);
    for bell in 0..6 {
        cluster.hive(bell as usize % 3).try_emit(Ring(bell)).unwrap()
    }
    cluster.advance(Duration::from_millis(50));
    cluster.crash(0);
    cluster.take_over(0, 1);
    let bees: Vec<BeeId> =
        cluster.bees("bells").into_iter().filter(|(_, at)| *at == 1).map(|(bee, _)| bee).collect();
    assert_eq!(bees.len(), 4);
    // one of the dead hive's, and one of the other hive's
    assert_eq!((cluster.move_bee(bees[0], 2), cluster.move_bee(bees[2], 2)), (Ok(()), Ok(())));
    go_on(&mut cluster, 0, [1, 2]);
    assert_eq!((cluster.move_bee(bees[0], 1), cluster.move_bee(bees[2], 1)), (Ok(()), Ok(())));
    let hive = cluster.hive(2).clone();
    // bells of all three hives
    cluster.drive(hive.request(Both(0, 1))).unwrap();
    cluster.drive(hive.request(Both(3, 5))).unwrap();
    cluster.advance(Duration::from_millis(200));

    cluster.crash(1);
    cluster.take_over(1, 2);
    assert!(cluster.bees("bells").iter().all(|(_, at)| *at == 2));
    go_on(&mut cluster, 1, [2, 2]);
    let rung: u64 = (0..6).map(|bell| listen(&mut cluster, 2, bell).rung).sum();
    assert_eq!(rung, 6 + 4 + 4 + 4);
    for hive in 0..2 {
        cluster.restart(hive)
    }
    go_on(&mut cluster, 2, [0, 1]);
    cluster.advance(Duration::from_secs(1));
    at_rest(&mut cluster)
}

/// A hive starts again. Another one, which does not know it yet, is asked to take over a colony that has handled a message of
/// the new incarnation, and the message comes once more.
fn behind(mutant: Option<Mutant>) -> Result<(), String> {
    let mut cluster = counters(mutant).start(6);
    assert_eq!(count(&mut cluster, 0, 7), Ok(1));
    cluster.advance(Duration::from_millis(50));
    cluster.hold_replica(1, Duration::from_secs(1));
    cluster.crash(2);
    cluster.restart(2);
    assert_eq!(count(&mut cluster, 2, 7), Ok(2));
    cluster.stall(0, true);
    cluster.hive(2).try_emit(Count(7)).map_err(|busy| format!("{busy:?}"))?;
    cluster.advance(Duration::from_millis(5));
    cluster.cut(0, 2, true);
    cluster.stall(0, false);
    cluster.advance(Duration::from_millis(50));
    cluster.crash(0);
    cluster.cut(0, 2, false);
    let (hive, platform) = (cluster.hive(1).clone(), cluster.platform().clone());
    cluster.platform().spawn(Box::pin(async move {
        // the bee wakes, if it is there
        platform.sleep(Duration::from_millis(100)).await;
        hive.emit(Count(7)).await
    }));
    cluster.take_over(0, 1);
    cluster.advance(Duration::from_secs(1));
    match count(&mut cluster, 1, 7) {
        Ok(5) => Ok(()),
        other => Err(format!("the counter is at {other:?}")),
    }
}

#[test]
fn a_hive_leads_only_when_its_replica_of_the_registry_is_new_enough() {
    notices(Mutant::LeadsBehind, behind)
}

/// A message has ended two processes of a hive while it ran alone.
fn poison(mutant: Option<Mutant>) -> Result<(), String> {
    let mut cluster = bells(mutant).failures_allowed().start(7);
    let wind = Wind { bell: 1, after: Duration::from_millis(100), by_nobody: false };
    cluster.hive(0).try_emit(wind).map_err(|busy| format!("{busy:?}"))?;
    cluster.advance(Duration::from_millis(50));
    cluster.crash(0);
    cluster.take_over_with(0, 1, |state| {
        let named: Vec<Suspect> = state.outbox.keys().map(|id| Suspect { id: *id, cell: None }).collect();
        assert_eq!(named.len(), 1);
        state.marker = Some(CrashMarker { running: named.clone(), accused: named, ..CrashMarker::default() })
    });
    cluster.advance(Duration::from_secs(1));
    at_rest(&mut cluster);
    let (bell, letters) = (listen(&mut cluster, 2, 1), cluster.hive(1).dead_letters().len());
    if (bell.wound, bell.rung, letters) != (1, 0, 1) {
        return Err(format!("{bell:?}, {letters} dead letters"));
    }
    Ok(())
}

#[test]
fn a_message_that_ended_the_processes_of_the_old_leader_does_not_run_in_the_new_one() {
    notices(Mutant::TakenUnmarked, poison)
}

/// The rows of bees that have not run since their hive died are in the views of the hive that has them.
#[test]
fn views_contain_the_rows_of_bees_that_were_taken_over() {
    let mut cluster = bells(None).start(8);
    for bell in 0..200 {
        cluster.hive(0).try_emit(Ring(bell)).unwrap();
        cluster.advance(Duration::from_millis(1))
    }
    cluster.advance(Duration::from_millis(50));
    cluster.crash(0);
    cluster.take_over(0, 1);
    // one of them runs before it is shown
    cluster.hive(1).try_emit(Ring(7)).unwrap();
    cluster.advance(Duration::from_millis(100));
    let rung = cluster.hive(1).read(|bells: &Bells| {
        (0..200).map(|bell| bells.bells.shared().get(&bell).map_or(0, |bell| bell.rung)).collect::<Vec<_>>()
    });
    let expected: Vec<u64> = (0..200).map(|bell| if bell == 7 { 2 } else { 1 }).collect();
    assert_eq!(rung, Ok(expected))
}

/// A hive dies while another one handles its request. Nothing remains of the hive: its lanes end, so that the bee can end.
#[test]
fn what_a_dead_hive_has_asked_for_is_forgotten() {
    let mut cluster = counters(None).start(9);
    assert_eq!(count(&mut cluster, 0, 7), Ok(1));
    cluster.stall(0, true);
    let hive = cluster.hive(1).clone();
    cluster.platform().spawn(Box::pin(async move {
        let _ = hive.request(Count(7)).await;
    }));
    cluster.advance(Duration::from_millis(5));
    cluster.crash(1);
    cluster.stall(0, false);
    cluster.take_over(1, 2);
    assert_eq!(count(&mut cluster, 2, 7), Ok(3), "the request had arrived");
    cluster.hive(2).try_emit(Forget(7)).unwrap();
    cluster.advance(Duration::from_secs(2));
    assert_eq!(cluster.bees("counters"), []);
    at_rest(&mut cluster)
}

#[test]
fn a_hive_does_not_lead_what_it_cannot_lead() {
    let mut cluster = counters(None).start(10);
    assert_eq!(count(&mut cluster, 0, 7), Ok(1));
    let mut lead = |colony, term| {
        let mut state = LogState::default();
        state.begin_term(term);
        let hive = cluster.hive(1).clone();
        cluster
            .drive(async move { hive.lead(ColonyId(colony), term, TestJournal::start(1, 0, 0), state).await })
    };
    assert_eq!(lead(2, 9), Err(LeadError::Led));
    assert_eq!(lead(9, 9), Err(LeadError::NoColony));
    assert_eq!(lead(1, 1), Err(LeadError::Superseded), "hive 0 leads in this term");
    assert_eq!((count(&mut cluster, 1, 7), count(&mut cluster, 2, 8)), (Ok(2), Ok(1)))
}

/// Checks that payments in random runs go wrong with a mutant.
fn random_runs_notice(mutant: Mutant) {
    let found = (1..=12).find_map(|seed| {
        let ran = std::panic::catch_unwind(|| run(seed, TAKES, Some(mutant)));
        match ran {
            Ok(Ok(_)) => None,
            Ok(Err(found)) => Some((seed, found)),
            Err(_) => Some((seed, "a panic".into())),
        }
    });
    match found {
        Some((seed, found)) => println!("{mutant:?}, seed {seed}: {found}"),
        None => panic!("no run notices {mutant:?}"),
    }
}

#[test]
fn random_runs_notice_what_a_new_leader_forgets() {
    for mutant in [Mutant::TakenNotResent, Mutant::TakenOvertakes] {
        random_runs_notice(mutant)
    }
}
