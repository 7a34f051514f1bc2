//! The trace of a simulated cluster is the same in every process, and shows what a failed run is about.

use crate::bank::{Account, Auditor, Bank, Look, Pay};
use beehive_core::testing::{Cluster, ClusterSetup, FaultKind, Faults, Trace};
use beehive_core::{App, Dict, Message, RequestError, handlers};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const ACCOUNTS: u64 = 8;
/// Name of the variable with the seed, and the file to which the child process writes its trace.
const CHILD: &str = "BEEHIVE_CHILD_WRITES";

fn stormy() -> ClusterSetup {
    Cluster::of::<Bank>().app::<Auditor>().faults(Faults::every(Duration::from_millis(20)))
}

/// Payments, whose outcome the test does not look at, and then the balances.
pub(crate) fn payments(cluster: &mut Cluster) -> i64 {
    for number in 0..60 {
        let (from, to) = (cluster.random(ACCOUNTS), cluster.random(ACCOUNTS));
        let pay = Pay { number, from, to, amount: 1 };
        match number % 3 {
            0 => drop(cluster.request(pay)),
            _ => drop(cluster.emit(pay)),
        }
        let pause = cluster.random(5_000);
        cluster.advance(Duration::from_micros(pause))
    }
    cluster.heal();
    cluster.advance(Duration::from_secs(1));
    let mut sum = 0;
    for account in 0..ACCOUNTS {
        match cluster.request(Look(account)) {
            Ok(Account { balance, faults, .. }) => {
                assert_eq!(faults, Vec::<String>::new());
                sum += balance
            }
            Err(RequestError::NoAnswer { .. }) => {}
            Err(error) => panic!("account {account}: {error}"),
        }
    }
    sum
}

fn trace_of(seed: u64) -> Trace {
    let mut cluster = stormy().keep_events(usize::MAX).start(seed);
    assert_eq!(payments(&mut cluster), 0, "seed {seed}");
    cluster.trace()
}

/// Writes a trace, if this is the child process.
#[test]
fn a_child_process_writes_its_trace() {
    let Ok(what) = std::env::var(CHILD) else { return };
    let Some((seed, path)) = what.split_once(' ') else { panic!("{what}") };
    // what this process did before must not matter
    drop(Cluster::of::<Bank>().start(99));
    let trace = trace_of(seed.parse().unwrap());
    std::fs::write(path, trace.to_string()).unwrap()
}

fn trace_of_a_child(seed: u64) -> String {
    let path: PathBuf = [env!("CARGO_TARGET_TMPDIR"), &format!("trace-{seed}.txt")].iter().collect();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["trace::a_child_process_writes_its_trace", "--exact"])
        .env(CHILD, format!("{seed} {}", path.display()))
        .output()
        .unwrap();
    assert!(child.status.success(), "{child:?}");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_same_seed_has_the_same_trace_in_another_process_and_another_seed_has_not() {
    let mut seen = BTreeSet::new();
    for seed in 1..=4 {
        let trace = trace_of(seed);
        let (here, there) = (trace.to_string(), trace_of_a_child(seed));
        let differs = here.lines().zip(there.lines()).find(|(here, there)| here != there);
        assert_eq!(differs, None, "seed {seed}");
        assert!(here == there && trace.events() == here.lines().count() as u64, "seed {seed}");
        assert!(trace.events() > 1_000, "seed {seed}: {} events", trace.events());
        seen.insert(trace.digest());
    }
    assert_eq!(seen.len(), 4)
}

#[test]
fn nothing_is_lost_or_doubled_whatever_happens() {
    let explored = stormy().check(30, |cluster| assert_eq!(payments(cluster), 0));
    // `BEEHIVE_SEED` selects a single one
    if explored.seeds >= 30 {
        for kind in FaultKind::ALL {
            assert!(explored.faults.get(&kind).is_some_and(|count| *count > 0), "no {kind:?}: {explored}")
        }
        assert!(explored.distinct_events > 1_000, "{explored}");
        assert!(explored.simulated > Duration::from_secs(30), "{explored}")
    }
}

#[derive(Message)]
#[message(reply = u64)]
struct Draw(u64);

static DRAWN: AtomicU64 = AtomicU64::new(0);

/// Depends on what else the process has done.
#[derive(App)]
#[app(name = "dice")]
struct Dice {
    drawn: Dict<u64, u64>,
}

#[handlers]
impl Dice {
    #[rcv]
    fn draw(&mut self, msg: &Draw) -> u64 {
        let number = DRAWN.fetch_add(1, Ordering::Relaxed);
        assert!(number < 1_000, "too many draws");
        self.drawn.put(msg.0, number);
        number
    }
}

#[test]
fn a_handler_that_depends_on_a_static_is_found() {
    let run = || Cluster::of::<Dice>().check(3, |cluster| drop(cluster.request(Draw(1))));
    let panic = std::panic::catch_unwind(run).unwrap_err();
    let why = panic.downcast_ref::<String>().unwrap();
    assert!(why.contains("two runs with seed 1 differ") && why.contains("Draw: 0"), "{why}");
    assert!(why.contains("take time and randomness from `Ctx`"), "{why}")
}

#[test]
fn a_failed_seed_shows_the_command_that_repeats_it_and_what_happened() {
    let failed = stormy().explore(100, |cluster| {
        for number in 0..20 {
            let answer = cluster.request(Pay { number, from: 1, to: 2, amount: 1 });
            assert!(answer.is_ok(), "payment {number}")
        }
    });
    let failed = failed.expect_err("a hive crashes before it answers");
    let name = "trace::a_failed_seed_shows_the_command_that_repeats_it_and_what_happened";
    let command =
        format!("BEEHIVE_SEED={} cargo test -p beehive-core --test cluster -- {name} --exact", failed.seed);
    assert_eq!(failed.command, command);
    assert!(failed.why.starts_with("payment "), "{}", failed.why);
    let text = failed.to_string();
    assert!(text.contains(&command) && text.contains("error: the hive has stopped"), "{text}");
    assert!(text.lines().count() < 60, "{text}");

    // the same seed fails in the same way
    let mut cluster = stormy().start(failed.seed);
    while cluster.trace().events() < failed.trace.events() {
        let number = cluster.trace().lines().filter(|line| line.contains(" ask ")).count() as u64;
        let _ = cluster.request(Pay { number, from: 1, to: 2, amount: 1 });
    }
    assert_eq!(cluster.trace(), failed.trace);

    // what concerns one account, and all faults
    let about = failed.trace.clone().about("accounts[2]");
    assert!(about.lines().any(|line| line.contains("bank.deposit accounts[2]")), "{about}");
    assert!(about.lines().any(|line| line.contains(" fault ")), "{about}");
    assert!(about.lines().count() < failed.trace.lines().count());
    let kept = failed.trace.clone().newest(3);
    assert_eq!((kept.lines().count(), kept.digest()), (3, failed.trace.digest()))
}

#[derive(Message)]
#[message(reply = u64)]
struct Divide(u64);

#[derive(App)]
#[app(name = "divider")]
struct Divider {
    quotients: Dict<u64, u64>,
}

#[handlers]
impl Divider {
    #[rcv]
    fn divide(&mut self, msg: &Divide) -> u64 {
        self.quotients.put(msg.0, 100 / msg.0);
        100 / msg.0
    }
}

#[test]
fn a_handler_that_panics_fails_the_test_and_the_report_is_about_its_message() {
    let divide = |cluster: &mut Cluster| {
        for divisor in [4, 2, 0] {
            let _ = cluster.request(Divide(divisor));
        }
    };
    let failed = Cluster::of::<Divider>().explore(1, divide).expect_err("a handler panics");
    assert!(failed.why.contains("`divide` of app `divider`"), "{}", failed.why);
    assert!(failed.report.contains("divider.divide quotients[0]"), "{}", failed.report);
    assert!(!failed.report.contains("divider.divide quotients[4]"), "{}", failed.report);
    let explored = Cluster::of::<Divider>().failures_allowed().explore(1, divide);
    assert!(explored.is_ok())
}

/// Only the newest events are kept, however long a run is.
#[test]
fn the_trace_is_bounded() {
    let mut cluster = Cluster::of::<Divider>().keep_events(50).start(1);
    for _ in 0..20 {
        assert_eq!(cluster.request(Divide(5)), Ok(20))
    }
    let trace = cluster.trace();
    assert!(trace.lines().count() == 50 && trace.events() > 100)
}
