//! Messages whose cells belong to bees in several hives: the bees come to one hive and merge, and then one of them handles
//! the message.

use crate::random::{Chance, check_owners, seeds, take_over_one};
use beehive_core::journal::LogState;
use beehive_core::testing::{Cluster, ClusterSetup};
use beehive_core::{App, Ctx, Dict, Message, handlers};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Moves money between two accounts, in one transaction.
#[derive(Message)]
#[message(reply = i64)]
pub(crate) struct Transfer {
    /// No two transfers have the same number.
    number: u64,
    from: u64,
    to: u64,
    amount: i64,
}

/// A bee pays itself, so that it has messages under way while it moves.
#[derive(Message)]
struct Interest {
    key: u64,
    number: u64,
}

#[derive(Message)]
#[message(reply = Purse)]
struct Look(u64);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Purse {
    balance: i64,
    numbers: BTreeSet<u64>,
    /// The number of the last message, by sender.
    last: BTreeMap<u64, u64>,
    interest: u64,
    faults: Vec<String>,
}

#[derive(App)]
#[app(name = "purses")]
pub(crate) struct Purses {
    purses: Dict<u64, Purse>,
}

#[handlers]
impl Purses {
    #[rcv(joins)]
    fn transfer(&mut self, msg: &Transfer, ctx: &mut Ctx) -> i64 {
        self.purses.entry(msg.from).or_default().balance -= msg.amount;
        let purse = self.purses.entry(msg.to).or_default();
        purse.balance += msg.amount;
        if !purse.numbers.insert(msg.number) {
            purse.faults.push(format!("transfer {} was handled twice", msg.number))
        }
        ctx.emit(Interest { key: msg.to, number: msg.number });
        self.purses.entry(msg.to).or_default().balance
    }

    #[rcv]
    fn interest(&mut self, msg: &Interest) {
        let purse = self.purses.entry(msg.key).or_default();
        purse.interest += 1;
        if !purse.numbers.contains(&msg.number) {
            purse.faults.push(format!("interest {} came before its transfer", msg.number))
        }
    }

    #[rcv]
    fn look(&mut self, msg: &Look) -> Purse {
        self.purses.entry(msg.0).or_default().clone()
    }
}

fn purses() -> ClusterSetup {
    Cluster::of::<Purses>().hives(3)
}

fn look(cluster: &mut Cluster, hive: usize, key: u64) -> Result<Purse, String> {
    let hive = cluster.hive(hive).clone();
    cluster.drive(hive.request(Look(key))).map_err(|error| format!("purse {key}: {error}"))
}

/// Each hive has one purse. A transfer between two of them makes their bees one, and another one makes the three one.
#[test]
fn a_message_that_needs_bees_of_several_hives_is_handled_once() {
    for seed in 0..10 {
        let mut cluster = purses().start(seed);
        for key in 0..3 {
            look(&mut cluster, key as usize, key).unwrap();
        }
        let hives: Vec<usize> = cluster.bees("purses").into_iter().map(|(_, hive)| hive).collect();
        assert_eq!(hives, [0, 1, 2]);
        let pay = |cluster: &mut Cluster, hive: usize, number, from, to| {
            let hive = cluster.hive(hive).clone();
            cluster.drive(hive.request(Transfer { number, from, to, amount: 5 }))
        };
        assert_eq!(pay(&mut cluster, 2, 1, 0, 1), Ok(5), "seed {seed}");
        assert_eq!(cluster.bees("purses").len(), 2);
        assert_eq!(pay(&mut cluster, 0, 2, 1, 2), Ok(5), "seed {seed}");
        assert_eq!(cluster.bees("purses").len(), 1);
        cluster.advance(Duration::from_secs(1));
        let all: Vec<Purse> = (0..3).map(|key| look(&mut cluster, key as usize, key).unwrap()).collect();
        assert_eq!(all.iter().map(|purse| purse.balance).collect::<Vec<_>>(), [-5, 0, 5]);
        assert_eq!(all.iter().map(|purse| purse.interest).sum::<u64>(), 2);
        assert!(all.iter().all(|purse| purse.faults.is_empty()), "{all:?}");
        for state in (0..3).flat_map(|hive| cluster.log_states(hive)) {
            assert_eq!((state.outbox.len(), state.untold.len(), state.staged.len()), (0, 0, 0));
        }
    }
}

/// Random pairs of keys get transfers, until one bee owns all keys.
fn storm(seed: u64, keys: u64, takes: bool) -> Result<String, String> {
    let mut cluster = purses().logs_per_hive(1 + seed as u32 % 2).refuse_one_in(30).start(seed);
    let (mut chance, mut number, mut crashes, mut sent) = (Chance(seed), 0, 0, 0);
    for key in 0..keys {
        look(&mut cluster, key as usize % 3, key)?;
    }
    if cluster.bees("purses").len() as u64 != keys {
        return Err("each key begins with a bee of its own".into());
    }

    let (mut steps, mut taken) = (0, 0);
    while cluster.bees("purses").len() > 1 {
        steps += 1;
        if steps > 3_000 {
            return Err(format!("{} bees are left", cluster.bees("purses").len()));
        }
        match chance.below(60) {
            0 if crashes < 12 => {
                let hive = chance.below(3) as usize;
                // one of them knows the bees
                if (0..3).all(|hive| cluster.is_running(hive)) {
                    crashes += 1;
                    cluster.crash(hive)
                }
            }
            1..4 if takes => taken += u64::from(take_over_one(&mut cluster, &mut chance)),
            1..4 => (0..3).for_each(|hive| cluster.restart(hive)),
            4 => {
                let hive = chance.below(3) as usize;
                cluster.cut(hive, (hive + 1) % 3, true)
            }
            5..8 => (0..3).for_each(|hive| cluster.cut(hive, (hive + 1) % 3, false)),
            _ => {}
        }
        let hive = chance.below(3) as usize;
        if cluster.is_running(hive) {
            number += 1;
            let (from, to) = (chance.below(keys), chance.below(keys));
            let transfer = Transfer { number, from, to, amount: 1 + chance.below(9) as i64 };
            sent += u64::from(cluster.hive(hive).try_emit(transfer).is_ok())
        }
        cluster.advance(Duration::from_micros(chance.below(3_000)));
        if steps % 100 == 0 {
            let states: Vec<LogState> = (0..3).flat_map(|hive| cluster.log_states(hive)).collect();
            check_owners(&states)?
        }
    }

    (0..3).for_each(|hive| cluster.restart(hive));
    cluster.heal();
    cluster.advance(Duration::from_secs(3));
    // the one bee reads all in one moment
    let (mut balance, mut interest, mut numbers) = (0, 0, BTreeSet::new());
    for key in 0..keys {
        let purse = look(&mut cluster, (key % 3) as usize, key)?;
        balance += purse.balance;
        interest += purse.interest;
        numbers.extend(purse.numbers);
        if !purse.faults.is_empty() {
            return Err(format!("purse {key}: {:?}", purse.faults));
        }
    }
    if balance != 0 {
        return Err(format!("the sum of all purses is {balance}"));
    }
    if (interest as usize) < numbers.len() {
        return Err(format!("{} transfers, but {interest} payments of interest", numbers.len()));
    }
    cluster.advance(Duration::from_secs(1));
    for state in (0..3).flat_map(|hive| cluster.log_states(hive)) {
        let left = (state.outbox.len(), state.untold.len(), state.staged.len(), state.frozen.len());
        if left != (0, 0, 0, 0) {
            return Err(format!("(outbox, untold, staged, frozen) = {left:?}"));
        }
    }
    cluster.registry(|state| state.check())?;
    Ok(format!(
        "{sent} transfers, {steps} steps, {crashes} crashes, {taken} taken over, {}",
        cluster.traffic()
    ))
}

#[test]
fn sixty_four_bees_of_three_hives_become_one_while_hives_crash() {
    for seed in seeds().step_by(3) {
        let report = storm(seed, 64, false).unwrap_or_else(|found| panic!("seed {seed}: {found}"));
        println!("seed {seed}: {report}")
    }
}

#[test]
fn thirty_two_bees_of_three_hives_become_one_while_hives_take_over_from_one_another() {
    for seed in seeds().step_by(3) {
        let report = storm(seed, 32, true).unwrap_or_else(|found| panic!("seed {seed}: {found}"));
        println!("seed {seed}: {report}")
    }
}

/// A bee has to merge into one of a hive that is down. It handles messages until that hive is back, and then merges.
#[test]
fn a_bee_does_not_stop_for_a_bee_of_a_hive_that_is_down() {
    let mut cluster = purses().start(4);
    for key in 0..3 {
        look(&mut cluster, key as usize, key).unwrap();
    }
    cluster.crash(0);
    let transfer = Transfer { number: 1, from: 0, to: 1, amount: 5 };
    assert!(cluster.hive(2).try_emit(transfer).is_ok());
    for _ in 0..60 {
        cluster.advance(Duration::from_millis(500));
        assert!(cluster.log_states(1)[0].frozen.is_empty(), "the bee is frozen");
        assert_eq!(look(&mut cluster, 1, 1), Ok(Purse::default()));
    }
    cluster.restart(0);
    cluster.advance(Duration::from_secs(3));
    assert_eq!(cluster.bees("purses").len(), 2);
    assert_eq!(look(&mut cluster, 2, 1).map(|purse| (purse.balance, purse.faults)), Ok((5, Vec::new())));
}
