//! Payments while hives crash and start again, logs refuse entries, and the network loses packets or is cut.

use crate::bank::{Account, Audited, Auditor, Bank, Look, Pay};
use beehive_core::journal::LogState;
use beehive_core::testing::Cluster;
use beehive_core::{AppId, CellId, RequestError};
use std::collections::BTreeMap;
use std::time::Duration;

const ACCOUNTS: u64 = 12;

/// A small deterministic random number generator.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// Checks that no cell has two owners in the logs of all hives.
fn check_owners(states: &[LogState]) -> Result<(), String> {
    let mut owners: BTreeMap<(AppId, CellId), String> = BTreeMap::new();
    for (at, state) in states.iter().enumerate() {
        for ((app, bee), image) in &state.bees {
            for cell in image.cells.iter() {
                let owner = format!("{bee} in log {at}");
                if let Some(other) = owners.insert((*app, *cell), owner.clone()) {
                    return Err(format!("{cell:?} belongs to {owner} and to {other}"));
                }
            }
        }
    }
    Ok(())
}

/// What happened in a run.
#[derive(Debug, Default)]
struct Run {
    payments: u64,
    crashes: u64,
    cuts: u64,
}

fn run(seed: u64) -> Result<(Run, String), String> {
    let setup = Cluster::of::<Bank>().app::<Auditor>().hives(3).logs_per_hive(1 + seed as u32 % 2);
    let mut cluster = setup.refuse_one_in(30).start(seed);
    let (mut chance, mut run) = (Chance(seed), Run::default());
    for number in 0..300 {
        match chance.below(40) {
            0 => {
                let hive = chance.below(3) as usize;
                if cluster.is_running(hive) {
                    run.crashes += 1;
                    cluster.crash(hive)
                }
            }
            1 | 2 => (0..3).for_each(|hive| cluster.restart(hive)),
            3 => {
                let hive = chance.below(3) as usize;
                run.cuts += 1;
                cluster.cut(hive, (hive + 1) % 3, true)
            }
            4 | 5 => (0..3).for_each(|hive| cluster.cut(hive, (hive + 1) % 3, false)),
            6..10 => cluster.advance(Duration::from_millis(chance.below(30))),
            _ => {}
        }
        let hive = chance.below(3) as usize;
        if cluster.is_running(hive) {
            let (from, to) = (chance.below(ACCOUNTS), chance.below(ACCOUNTS));
            let pay = Pay { number, from, to, amount: 1 + chance.below(9) as i64 };
            run.payments += u64::from(cluster.hive(hive).try_emit(pay).is_ok())
        }
        cluster.advance(Duration::from_micros(chance.below(2_000)))
    }

    cluster.heal();
    (0..3).for_each(|hive| cluster.restart(hive));
    cluster.heal();
    cluster.advance(Duration::from_secs(2));

    let (mut balance, mut deposited, mut audited) = (0, 0, 0);
    for account in 0..ACCOUNTS {
        let hive = cluster.hive((account % 3) as usize).clone();
        match cluster.drive(hive.request(Look(account))) {
            Ok(Account { balance: of_one, deposited: to_one, faults, .. }) => {
                balance += of_one;
                deposited += to_one;
                if !faults.is_empty() {
                    return Err(format!("account {account}: {faults:?}"));
                }
            }
            // nobody paid to this account or from it
            Err(RequestError::NoAnswer { .. }) => {}
            Err(error) => return Err(format!("account {account}: {error}")),
        }
    }
    for sum in 0..3 {
        let hive = cluster.hive(sum as usize).clone();
        audited += cluster.drive(hive.request(Audited(sum))).map_err(|error| format!("audit: {error}"))?
    }
    if (balance, audited) != (0, deposited) {
        return Err(format!("balance {balance}, deposits {deposited}, audited {audited}"));
    }

    cluster.advance(Duration::from_secs(1));
    let states: Vec<LogState> = (0..3).flat_map(|hive| cluster.log_states(hive)).collect();
    check_owners(&states)?;
    for (at, state) in states.iter().enumerate() {
        let left = (state.outbox.len(), state.untold.len());
        if left != (0, 0) {
            return Err(format!("log {at}: (messages in the outbox, untold changes) = {left:?}"));
        }
    }
    cluster.registry(|state| state.check())?;
    Ok((run, cluster.traffic()))
}

#[test]
fn no_payment_is_lost_or_handled_twice_when_hives_crash() {
    let seeds = if std::env::var_os("BEEHIVE_LONG").is_some() { 300 } else { 12 };
    for seed in 1..=seeds {
        let (run, traffic) = run(seed).unwrap_or_else(|found| panic!("seed {seed}: {found}"));
        println!("seed {seed}: {run:?}, {traffic}");
        assert!(run.payments > 100, "seed {seed}: {run:?}");
    }
}

/// The same seed does the same, whatever else happens in the process.
#[test]
fn a_run_can_be_repeated() {
    let one = run(3).unwrap_or_else(|found| panic!("{found}"));
    let other = run(3).unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(format!("{one:?}"), format!("{other:?}"))
}
