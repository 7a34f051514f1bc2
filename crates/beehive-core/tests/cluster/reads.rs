//! A request that changes nothing is never answered from an older state than a request that was answered before it, through any hive.

use crate::deposed::FIRST;
use crate::directed::QUIET;
use crate::leaders::{at_rest, notices};
use crate::random::{Chance, depose_one, take_over_one};
use beehive_core::seams::Platform;
use beehive_core::testing::{Cluster, ClusterSetup, Mutant};
use beehive_core::{App, Dict, Message, RequestError, handlers};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Raises the value of a key by one. Answers with the new value.
#[derive(Message)]
#[message(reply = u64)]
struct Raise(u64);

/// Answers with the value of a key.
#[derive(Message)]
#[message(reply = u64)]
struct Value(u64);

#[derive(App)]
#[app(name = "values")]
struct Values {
    values: Dict<u64, u64>,
}

#[handlers]
impl Values {
    #[rcv]
    fn raise(&mut self, msg: &Raise) -> u64 {
        let value = self.values.entry(msg.0).or_default();
        *value += 1;
        *value
    }

    #[rcv]
    fn value(&mut self, msg: &Value) -> u64 {
        self.values.get(&msg.0).copied().unwrap_or_default()
    }
}

fn values(mutant: Option<Mutant>) -> ClusterSetup {
    Cluster::of::<Values>().network(QUIET).mutant(mutant)
}

fn raise(cluster: &mut Cluster, hive: usize, key: u64) -> Result<u64, RequestError> {
    let hive = cluster.hive(hive).clone();
    cluster.drive(hive.request(Raise(key)))
}

/// A hive has lost a colony, and nobody has told it. The next leader has changed what it would read.
fn of_an_old_leader(mutant: Option<Mutant>) -> Result<(), String> {
    for seed in 0..4 {
        let mut cluster = values(mutant).start(seed);
        assert_eq!(raise(&mut cluster, 0, 7), Ok(1));
        cluster.hold_replica(0, Duration::from_secs(2));
        cluster.depose_untold(FIRST, 1);
        assert_eq!(raise(&mut cluster, 1, 7), Ok(2));

        let hive = cluster.hive(0).clone();
        let early = cluster.drive(hive.request_within(Duration::from_millis(500), Value(7)));
        if early.is_ok() {
            return Err(format!("seed {seed}: the old leader answers {early:?}"));
        }
        // what it has read is never answered; it asks again when it knows the next leader
        let later: Arc<Mutex<Option<Result<u64, RequestError>>>> = Arc::default();
        let (answer, asks) = (later.clone(), hive.clone());
        cluster.platform().spawn(Box::pin(async move {
            let answered = asks.request(Value(7)).await;
            *answer.lock().unwrap() = Some(answered)
        }));
        cluster.advance(Duration::from_millis(300));
        assert_eq!(*later.lock().unwrap(), None, "seed {seed}");
        cluster.tell_deposed();
        cluster.advance(Duration::from_secs(3));
        match later.lock().unwrap().take() {
            Some(Ok(2)) => {}
            other => return Err(format!("seed {seed}: later, it answers {other:?}")),
        }
        drop(hive);
        at_rest(&mut cluster)
    }
    Ok(())
}

#[test]
fn a_leader_that_was_deposed_and_does_not_know_it_answers_no_reads() {
    notices(Mutant::ReadUnconfirmed, of_an_old_leader)
}

/// Many reads of a bee share a confirmation.
#[test]
fn reads_wait_for_a_confirmation_together() {
    let mut cluster = values(None).start(3);
    assert_eq!(raise(&mut cluster, 0, 7), Ok(1));
    let answers: Arc<Mutex<Vec<u64>>> = Arc::default();
    for number in 0..400_u64 {
        let (hive, answers) = (cluster.hive(0).clone(), answers.clone());
        cluster.platform().spawn(Box::pin(async move {
            let answer = match number % 100 {
                99 => hive.request(Raise(7)).await,
                _ => hive.request(Value(7)).await,
            };
            answers.lock().unwrap().push(answer.unwrap())
        }))
    }
    let began = cluster.now();
    while answers.lock().unwrap().len() < 400 {
        cluster.advance(Duration::from_micros(100))
    }
    // each round takes up to 1 ms here
    let elapsed = cluster.now().since(began);
    assert!(elapsed < Duration::from_millis(20), "{elapsed:?}");
    let answers = answers.lock().unwrap().clone();
    assert_eq!((answers.iter().min(), answers.iter().max()), (Some(&1), Some(&5)));
    at_rest(&mut cluster)
}

/// A log commits nothing for a while, and reads of it wait. Reads of another log do not.
#[test]
fn a_log_without_a_majority_answers_no_reads_and_holds_up_no_other() {
    let mut cluster = values(None).start(4);
    assert_eq!((raise(&mut cluster, 0, 7), raise(&mut cluster, 1, 8)), (Ok(1), Ok(1)));
    cluster.stall(0, true);
    let ask = |cluster: &mut Cluster, hive: usize, key| {
        let hive = cluster.hive(hive).clone();
        cluster.drive(hive.request_within(Duration::from_millis(100), Value(key)))
    };
    assert!(matches!(ask(&mut cluster, 0, 7), Err(RequestError::Timeout { .. })));
    assert_eq!((ask(&mut cluster, 1, 8), ask(&mut cluster, 0, 8)), (Ok(1), Ok(1)));
    cluster.stall(0, false);
    assert_eq!((ask(&mut cluster, 0, 7), ask(&mut cluster, 2, 7)), (Ok(1), Ok(1)));
    cluster.advance(Duration::from_secs(1));
    at_rest(&mut cluster)
}

const KEYS: usize = 8;

/// The newest value of each key that was answered.
type Answered = Arc<Mutex<[u64; KEYS]>>;

/// Hives raise and read values while colonies change hands. Returns the number of reads that were answered.
fn random(mutant: Option<Mutant>, seed: u64) -> Result<u64, String> {
    let mut cluster = values(mutant).logs_per_hive(2).replicas_late(Duration::from_millis(30)).start(seed);
    let mut chance = Chance(seed);
    let (answered, found) = (Answered::default(), Arc::new(Mutex::new((0, None))));
    for step in 0..400 {
        let running: Vec<usize> = (0..cluster.hives()).filter(|hive| cluster.is_running(*hive)).collect();
        for _ in 0..4 {
            let (key, is_read) = (chance.below(KEYS as u64), chance.below(8) > 0);
            let at = running[chance.below(running.len() as u64) as usize];
            let (hive, answered, found) = (cluster.hive(at).clone(), answered.clone(), found.clone());
            cluster.platform().spawn(Box::pin(async move {
                let least = answered.lock().unwrap()[key as usize];
                let limit = Duration::from_secs(5);
                if !is_read {
                    if let Ok(value) = hive.request_within(limit, Raise(key)).await {
                        let newest = &mut answered.lock().unwrap()[key as usize];
                        *newest = value.max(*newest)
                    }
                    return;
                }
                let Ok(value) = hive.request_within(limit, Value(key)).await else { return };
                let (reads, stale) = &mut *found.lock().unwrap();
                *reads += 1;
                if value < least {
                    *stale =
                        Some(format!("step {step}: hive {at} reads {value} for key {key}, after {least}"))
                }
            }))
        }
        if chance.below(40) == 0 {
            // until then, the old leader does not know of the next one, unless it is told
            running
                .iter()
                .for_each(|hive| cluster.hold_replica(*hive, Duration::from_millis(chance.below(60))));
            depose_one(&mut cluster, &mut chance);
        }
        if chance.below(90) == 0 && running.len() > 1 {
            cluster.crash(running[chance.below(running.len() as u64) as usize])
        }
        if chance.below(40) == 0 {
            take_over_one(&mut cluster, &mut chance);
        }
        cluster.advance(Duration::from_micros(chance.below(3_000)))
    }
    let (reads, stale) = found.lock().unwrap().clone();
    stale.map_or(Ok(reads), |stale| Err(format!("seed {seed}, {stale}")))
}

#[test]
fn no_read_is_older_than_what_was_answered_before() {
    let mut reads = 0;
    for seed in 0..8 {
        reads += random(None, seed).unwrap_or_else(|stale| panic!("{stale}"))
    }
    assert!(reads > 3_000, "{reads} reads were answered");
    println!("{reads} reads were answered");
    // without confirmations
    let stale = (0..20).find_map(|seed| random(Some(Mutant::ReadUnconfirmed), seed).err());
    println!("{}", stale.expect("no seed finds an old value"))
}
