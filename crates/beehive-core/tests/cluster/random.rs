//! Payments while hives crash and start again, logs refuse entries, and the network loses packets or is cut.

use crate::bank::{Account, Audited, Auditor, Bank, Look, Pay};
use beehive_core::journal::LogState;
use beehive_core::testing::{Cluster, Mutant};
use beehive_core::{AppId, CellId, RequestError};
use std::collections::BTreeMap;
use std::time::Duration;

const ACCOUNTS: u64 = 12;

/// A small deterministic random number generator.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// Checks that no cell has two owners in the logs of all hives.
pub(crate) fn check_owners(states: &[LogState]) -> Result<(), String> {
    let mut owners: BTreeMap<(AppId, CellId), String> = BTreeMap::new();
    for (at, state) in states.iter().enumerate() {
        for ((app, bee), image) in &state.bees {
            // the other hive may have adopted a frozen bee
            for cell in image.cells.iter().filter(|_| !image.is_frozen()) {
                let owner = format!("{bee} in log {at}");
                if let Some(other) = owners.insert((*app, *cell), owner.clone()) {
                    return Err(format!("{cell:?} belongs to {owner} and to {other}"));
                }
            }
        }
    }
    Ok(())
}

/// Lets a hive take over what one that is down led, if there are two such hives, or lets the one that is down start again, or
/// both. Returns whether a hive has taken over.
pub(crate) fn take_over_one(cluster: &mut Cluster, chance: &mut Chance) -> bool {
    let (running, down): (Vec<usize>, Vec<usize>) =
        (0..cluster.hives()).partition(|hive| cluster.is_running(*hive));
    if down.is_empty() {
        return false;
    }
    let dead = down[chance.below(down.len() as u64) as usize];
    let takes = !running.is_empty() && chance.below(4) > 0;
    if takes {
        cluster.take_over(dead, running[chance.below(running.len() as u64) as usize])
    }
    if !takes || chance.below(4) > 0 {
        cluster.restart(dead)
    }
    takes
}

/// Lets a hive that runs lose a colony to another one, or to itself in a later term. Whether it is told is random. Returns whether
/// a hive has lost one.
pub(crate) fn depose_one(cluster: &mut Cluster, chance: &mut Chance) -> bool {
    let running: Vec<usize> = (0..cluster.hives()).filter(|hive| cluster.is_running(*hive)).collect();
    let led = cluster.led_colonies();
    if led.is_empty() || running.is_empty() {
        return false;
    }
    let colony = led[chance.below(led.len() as u64) as usize];
    let by = running[chance.below(running.len() as u64) as usize];
    match chance.below(2) {
        0 => cluster.depose(colony, by),
        _ => cluster.depose_untold(colony, by),
    }
    true
}

/// What happened in a run.
#[derive(Debug, Default)]
pub(crate) struct Run {
    payments: u64,
    crashes: u64,
    /// Number of times that a hive took over what a dead one led.
    taken: u64,
    /// Number of times that a living hive lost a colony.
    deposed: u64,
    cuts: u64,
    /// Number of moves that the registry was asked for and has begun.
    moves: u64,
}

/// The events of a run, besides payments, crashes and cuts.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// Bees move.
    pub(crate) moves: bool,
    /// Hives take over what crashed ones led.
    pub(crate) takes: bool,
    /// Hives lose colonies and live on.
    pub(crate) deposes: bool,
}

pub(crate) const MOVES: Load = Load { moves: true, takes: false, deposes: false };
pub(crate) const TAKES: Load = Load { moves: true, takes: true, deposes: false };
pub(crate) const DEPOSES: Load = Load { moves: true, takes: true, deposes: true };

pub(crate) fn run(seed: u64, load: Load, mutant: Option<Mutant>) -> Result<(Run, String), String> {
    let Load { moves, takes, deposes } = load;
    let setup = Cluster::of::<Bank>().app::<Auditor>().hives(3).logs_per_hive(1 + seed as u32 % 2);
    let mut cluster = setup.refuse_one_in(30).mutant(mutant).start(seed);
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
            1 | 2 | 36..40 if takes => run.taken += u64::from(take_over_one(&mut cluster, &mut chance)),
            1 | 2 => (0..3).for_each(|hive| cluster.restart(hive)),
            3 => {
                let hive = chance.below(3) as usize;
                run.cuts += 1;
                cluster.cut(hive, (hive + 1) % 3, true)
            }
            4 | 5 => (0..3).for_each(|hive| cluster.cut(hive, (hive + 1) % 3, false)),
            10..16 if moves && (0..3).any(|hive| cluster.is_running(hive)) => {
                let app = ["bank", "auditor"][chance.below(2) as usize];
                let bees = cluster.bees(app);
                if let Some((bee, _)) = bees.get(chance.below(bees.len().max(1) as u64) as usize) {
                    run.moves += u64::from(cluster.aim(*bee, chance.below(3) as usize))
                }
            }
            16..20 if deposes => run.deposed += u64::from(depose_one(&mut cluster, &mut chance)),
            20 if deposes => cluster.tell_deposed(),
            21 if deposes => {
                let hive = chance.below(3) as usize;
                if cluster.is_running(hive) {
                    cluster.hold_replica(hive, Duration::from_millis(chance.below(40)))
                }
            }
            6..10 => cluster.advance(Duration::from_millis(chance.below(30))),
            _ => {}
        }
        let hive = chance.below(3) as usize;
        if cluster.is_running(hive) {
            let (from, to) = (chance.below(ACCOUNTS), chance.below(ACCOUNTS));
            let pay = Pay { number, from, to, amount: 1 + chance.below(9) as i64 };
            run.payments += u64::from(cluster.hive(hive).try_emit(pay).is_ok())
        }
        cluster.advance(Duration::from_micros(chance.below(2_000)));
        if moves && number % 60 == 0 {
            let states: Vec<LogState> = (0..3).flat_map(|hive| cluster.log_states(hive)).collect();
            check_owners(&states)?
        }
    }

    cluster.heal();
    (0..3).for_each(|hive| cluster.restart(hive));
    cluster.tell_deposed();
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
        let left = (state.outbox.len(), state.untold.len(), state.staged.len(), state.frozen.len());
        if left != (0, 0, 0, 0) {
            return Err(format!("log {at}: (outbox, untold, staged, frozen) = {left:?}"));
        }
    }
    cluster.registry(|state| state.check())?;
    Ok((run, cluster.traffic()))
}

/// Returns the seeds to run. `BEEHIVE_SEED` names a single one.
pub(crate) fn seeds() -> std::ops::RangeInclusive<u64> {
    let only = std::env::var("BEEHIVE_SEED").ok().and_then(|seed| seed.parse().ok());
    match (only, std::env::var_os("BEEHIVE_LONG")) {
        (Some(only), _) => only..=only,
        (None, Some(_)) => 1..=300,
        (None, None) => 1..=12,
    }
}

#[test]
fn no_payment_is_lost_or_handled_twice_when_bees_move_and_hives_crash() {
    for seed in seeds() {
        let (run, traffic) = run(seed, MOVES, None).unwrap_or_else(|found| panic!("seed {seed}: {found}"));
        println!("seed {seed}: {run:?}, {traffic}");
        assert!(run.payments > 100 && run.moves > 5, "seed {seed}: {run:?}");
    }
}

#[test]
fn no_payment_is_lost_or_handled_twice_when_hives_crash() {
    for seed in seeds() {
        let load = Load { moves: false, takes: false, deposes: false };
        let (run, traffic) = run(seed, load, None).unwrap_or_else(|found| panic!("seed {seed}: {found}"));
        println!("seed {seed}: {run:?}, {traffic}");
        assert!(run.payments > 100, "seed {seed}: {run:?}");
    }
}

#[test]
fn no_payment_is_lost_or_handled_twice_when_hives_take_over_from_one_another() {
    let mut taken = 0;
    for seed in seeds() {
        let (run, traffic) = run(seed, TAKES, None).unwrap_or_else(|found| panic!("seed {seed}: {found}"));
        println!("seed {seed}: {run:?}, {traffic}");
        assert!(run.payments > 100, "seed {seed}: {run:?}");
        taken += run.taken
    }
    assert!(taken > 0 || seeds().count() == 1, "no hive has taken over")
}

#[test]
fn no_payment_is_lost_or_handled_twice_when_hives_lose_colonies_and_live_on() {
    let mut deposed = 0;
    for seed in seeds() {
        let (run, traffic) = run(seed, DEPOSES, None).unwrap_or_else(|found| panic!("seed {seed}: {found}"));
        println!("seed {seed}: {run:?}, {traffic}");
        assert!(run.payments > 100, "seed {seed}: {run:?}");
        deposed += run.deposed
    }
    assert!(deposed > 0, "no hive has lost a colony")
}

/// The same seed does the same, whatever else happens in the process.
#[test]
fn a_run_can_be_repeated() {
    let one = run(3, TAKES, None).unwrap_or_else(|found| panic!("{found}"));
    let other = run(3, TAKES, None).unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(format!("{one:?}"), format!("{other:?}"))
}
