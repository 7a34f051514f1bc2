//! Runs a scenario with many seeds, each of which decides on other faults and another order.

use super::report::{SEED, command};
use super::trace::DISTINCT_MAX;
use super::{Cluster, ClusterSetup, FaultKind, Trace};
use crate::panics;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Formatter};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

/// The variable that sets the number of seeds.
const SEEDS: &str = "BEEHIVE_SEEDS";

/// What happened while a scenario ran with many seeds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Explored {
    /// Number of seeds.
    pub seeds: u64,
    /// Number of events.
    pub events: u64,
    /// Number of events that differ in more than their time, at most a million. If more seeds add few of them, they repeat what
    /// others have done.
    pub distinct_events: usize,
    /// Number of faults, by kind. Moves are counted when they begin.
    pub faults: BTreeMap<FaultKind, u64>,
    /// Virtual time of all runs together.
    pub simulated: Duration,
}

impl Display for Explored {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Explored { seeds, events, distinct_events, faults, simulated } = self;
        write!(f, "{seeds} seeds, {events} events ({distinct_events} distinct), ")?;
        match simulated.as_secs() {
            seconds @ 3_600.. => write!(f, "{:.1} simulated hours", seconds as f64 / 3_600.0)?,
            _ => write!(f, "{:.1} simulated seconds", simulated.as_secs_f64())?,
        }
        write!(f, ", {} faults", faults.values().sum::<u64>())?;
        for (at, (kind, count)) in faults.iter().enumerate() {
            write!(f, "{} {count} {}", if at == 0 { ":" } else { "," }, kind.name())?
        }
        Ok(())
    }
}

/// The first seed with which a scenario failed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FailedSeed {
    /// The seed.
    pub seed: u64,
    /// The message of the panic.
    pub why: String,
    /// The command that repeats the run.
    pub command: String,
    /// What happened in the run.
    pub trace: Trace,
    /// What is printed about the run: the command, and the newest events.
    pub report: String,
}

impl Display for FailedSeed {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n{}", self.why, self.report)
    }
}
impl std::error::Error for FailedSeed {}

/// A failed run, with the panic that ended it.
type Failed = (Box<FailedSeed>, panics::Caught);

/// Returns the number in an environment variable.
#[track_caller]
fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    match text.parse() {
        Ok(number) => Some(number),
        Err(_) => panic!("{variable} is `{text}`, which is not a number"),
    }
}

/// Returns the seeds to run.
#[track_caller]
fn seeds(count: u64) -> std::ops::RangeInclusive<u64> {
    match number(SEED) {
        Some(only) => only..=only,
        None => {
            let count = number(SEEDS).unwrap_or(count);
            assert!(count > 0, "no seed would run: set {SEEDS} to 1 or more");
            1..=count
        }
    }
}

impl ClusterSetup {
    /// Runs `scenario` once for each of the seeds 1 to `seeds`. A seed decides on the [faults](ClusterSetup::faults), on the
    /// order in which everything happens, and on [`Cluster::random`]. Prints a line of counters at the end
    /// (`cargo test -- --nocapture` shows it), and returns them.
    ///
    /// The environment variable `BEEHIVE_SEED` selects a single seed, and `BEEHIVE_SEEDS` sets the number of seeds.
    ///
    /// # Panics
    ///
    /// Panics if `scenario` panics with one of the seeds, which fails the test. Prints the command that repeats this run, and
    /// the last events before the panic. Also panics if two runs with the first seed differ: then an app or the scenario depends
    /// on something that no seed decides, such as the real time, a static, or the order of a `HashMap`.
    #[track_caller]
    pub fn check(&self, seeds: u64, scenario: impl Fn(&mut Cluster)) -> Explored {
        match self.run_all(seeds, scenario) {
            Ok(explored) => {
                println!("{explored}");
                explored
            }
            Err((failed, panic)) => {
                eprintln!("{}", failed.report);
                panic.resume()
            }
        }
    }

    /// Same as [`ClusterSetup::check`], but returns the first failure. Use this to test that a scenario finds a known error.
    ///
    /// # Errors
    ///
    /// Returns the first seed with which `scenario` panics.
    ///
    /// # Panics
    ///
    /// Panics if two runs with the first seed differ.
    #[track_caller]
    pub fn explore(&self, seeds: u64, scenario: impl Fn(&mut Cluster)) -> Result<Explored, Box<FailedSeed>> {
        self.run_all(seeds, scenario).map_err(|(failed, _)| failed)
    }

    #[track_caller]
    fn run_all(&self, count: u64, scenario: impl Fn(&mut Cluster)) -> Result<Explored, Failed> {
        let (mut explored, mut distinct) = (Explored::default(), BTreeSet::new());
        let seeds = seeds(count);
        let first = *seeds.start();
        for seed in seeds {
            let cluster = self.run_one(seed, &scenario)?;
            let trace = cluster.trace();
            explored.seeds += 1;
            explored.events += trace.events();
            explored.simulated += cluster.platform.elapsed();
            let room = DISTINCT_MAX.saturating_sub(distinct.len());
            distinct.extend(cluster.log.distinct().into_iter().take(room));
            for (kind, count) in &cluster.counts {
                *explored.faults.entry(*kind).or_default() += count
            }
            drop(cluster);
            if seed == first {
                self.run_again(seed, &trace, &scenario)
            }
        }
        explored.distinct_events = distinct.len();
        Ok(explored)
    }

    /// Runs a scenario again that has passed with this seed, and checks that the same happens.
    #[track_caller]
    fn run_again(&self, seed: u64, before: &Trace, scenario: &impl Fn(&mut Cluster)) {
        let run = |setup: &ClusterSetup| match setup.run_one(seed, scenario) {
            Ok(cluster) => cluster.trace(),
            Err((failed, _)) => {
                panic!("seed {seed} passes in one run and fails in another: {}\n{DIFFER}", failed.why)
            }
        };
        let after = run(self);
        if after.digest() == before.digest() {
            return;
        }
        let found = match before.is_whole() && after.is_whole() {
            true => first_difference(before, &after),
            false => {
                let whole = self.clone().keep_events(usize::MAX);
                first_difference(&run(&whole), &run(&whole))
            }
        };
        match found {
            Some((one, other)) => {
                panic!("two runs with seed {seed} differ, first in these events:\n{one}\n{other}\n{DIFFER}")
            }
            None => panic!("of several runs with seed {seed}, some differ\n{DIFFER}"),
        }
    }

    /// Runs the scenario with one seed. Returns the cluster as the scenario left it.
    #[track_caller]
    fn run_one(&self, seed: u64, scenario: &impl Fn(&mut Cluster)) -> Result<Cluster, Failed> {
        let mut cluster = self.clone().start(seed);
        let run = || {
            scenario(&mut cluster);
            // what has run since the last call that looks
            cluster.fail_if_a_handler_failed()
        };
        match panics::catch(AssertUnwindSafe(run)) {
            Ok(()) => Ok(cluster),
            Err(panic) => {
                let (why, command) = (panics::text(&*panic), command(seed));
                let report = cluster.report(Some(&command)).to_string();
                Err((Box::new(FailedSeed { seed, why, command, trace: cluster.trace(), report }), panic))
            }
        }
    }
}

/// What makes two runs with one seed differ.
const DIFFER: &str = "help: an app or the scenario depends on something that no seed decides, such as the real time, a static, or \
                      the order of a `HashMap`; take time and randomness from `Ctx` (in a scenario: `Cluster::random`), and \
                      iterate over a `BTreeMap`";

/// Returns the first lines in which two traces differ.
fn first_difference(one: &Trace, other: &Trace) -> Option<(String, String)> {
    let end = || std::iter::once(String::from("(nothing more)"));
    let mut pairs = one.lines().chain(end()).zip(other.lines().chain(end()));
    pairs.find(|(one, other)| one != other)
}
