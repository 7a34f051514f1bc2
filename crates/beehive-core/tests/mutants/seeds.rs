//! The load with each mutant, with one seed after the other, until a checker finds the mutant.

use crate::findings::Checker::{self, *};
use crate::findings::Finding;
use crate::log_mutants::LogMutant;
use crate::relay_load::{Divided, Load};
use beehive_core::testing::Mutant;
use std::time::{Duration, Instant};

/// A mutant must be found within this number of seeds.
const SEEDS: u64 = 100;

/// A load that is small and impatient.
fn load(divided: Divided, logs: usize) -> Load {
    Load {
        lives: 4,
        life: 3..25,
        merges: 6,
        patience: Duration::from_secs(4),
        ..Load::new(divided, logs, 600)
    }
}

fn by_app() -> Load {
    load(Divided::ByApp, 4)
}

fn by_bee() -> Load {
    load(Divided::ByBee, 2)
}

/// Hives live long enough for bees to retire. One log stops to commit before the hive is killed.
fn retiring() -> Load {
    Load { life: 130..300, pause: 35, uneven: true, ..by_bee() }
}

/// One log stops to commit before the hive is killed.
fn uneven() -> Load {
    Load { life: 3..60, uneven: true, ..by_bee() }
}

/// The logs contain entries without effect.
fn with_dead_entries() -> Load {
    Load { logs_dead: true, ..by_bee() }
}

/// Enough messages that a receiver would notice if it never forgot one.
fn many() -> Load {
    Load { lives: 1, messages: 4_000, is_long: true, ..by_app() }
}

/// The load that reaches the rule of a mutant, and the checkers that may find the mutant: first the one whose property
/// the rule protects. Returns `None` if a directed test finds the mutant.
fn reached_by(mutant: Mutant) -> Option<(Load, &'static [Checker])> {
    Some(match mutant {
        Mutant::UnknownForgotten => (uneven(), &[Counts, Order, Visits]),
        Mutant::TakeoverRetires => (by_bee(), &[Counts]),
        Mutant::RetireBusy => (retiring(), &[Counts, Order, Visits]),
        Mutant::LocalUnmarked => (uneven(), &[Counts, Moves, Order]),
        Mutant::FloorUnstated => (many(), &[Memory]),
        Mutant::FloorOfOneApp => (by_bee(), &[Counts]),
        Mutant::FloorOnVolatileAck => (retiring(), &[Counts, Moves, Order]),
        Mutant::WithoutBeeUnmarked => (Load { uneven: true, ..by_app() }, &[Counts, Visits]),
        Mutant::AckIgnoresApp => (by_bee(), &[Counts]),
        Mutant::AckBeforeCommit => (by_bee(), &[Counts]),
        Mutant::FrozenTakesAcks => (by_bee(), &[Rest, Moves]),
        Mutant::MisdirectedDropped => (by_bee(), &[Rest]),
        Mutant::PassOnSameNumber => (by_bee(), &[Counts, Assertion]),
        Mutant::ResentInReverse => (by_bee(), &[Order]),
        Mutant::EmitBeforeCommit => (by_bee(), &[Counts, Order]),
        Mutant::RefusedRemembered => (by_bee(), &[Counts]),
        Mutant::RefusedKept => (by_bee(), &[Counts, Order]),
        Mutant::NumberReused => (by_bee(), &[Assertion]),
        Mutant::RefusedRecordDropped => (by_bee(), &[Assertion, Liveness, Rest]),
        Mutant::ReleaseNaive => (retiring(), &[Counts]),
        Mutant::EndsBeforeDropped => (retiring(), &[Moves, Owners, Assertion]),
        Mutant::StaleRouteAccepted => {
            (Load { lives: 1, merges: 60, ..by_bee() }, &[Counts, Liveness, Visits])
        }
        Mutant::OutboxNotMerged => (by_bee(), &[Moves, Order]),
        Mutant::SkipFreeze => (by_bee(), &[Owners, Assertion]),
        Mutant::ActivateOnStage => (by_bee(), &[Restart, Owners, Assertion]),
        Mutant::OwnBeforeStage => (by_bee(), &[Counts, Moves, Visits]),
        Mutant::DropBeforeOwn => (by_bee(), &[Counts, Moves, Visits]),
        Mutant::EpochReused => (by_bee(), &[Owners, Moves, Assertion]),
        Mutant::DedupNotMoved => (uneven(), &[Counts, Order]),
        Mutant::OutboxNotMoved => (by_bee(), &[Moves, Counts]),
        Mutant::LaneNotMoved => (by_bee(), &[Moves, Lanes, Counts]),
        Mutant::RowsNotMoved => (by_bee(), &[Moves, Counts, Visits]),
        Mutant::Visited => (by_bee(), &[Visits, Rest]),
        Mutant::SameLane
        | Mutant::AskerForgotten
        | Mutant::NoAfter
        | Mutant::ReadTail
        | Mutant::OneMark
        | Mutant::IdReused
        | Mutant::DedupNotMerged
        | Mutant::ReleaseBusy
        | Mutant::ReleaseRegistryFirst
        | Mutant::EachOvertaken
        | Mutant::PoisonUnmarked
        | Mutant::PoisonBeforeMarker => return None, // `directed.rs`
        Mutant::MarksNotMerged => return None, // `marks.rs`
        Mutant::AckFromMemory => return None,  // `acks.rs`
        // A log that is no longer hosted, as far as one hive allows. `after_the_end.rs` stops and crashes a hive in the middle of
        // runs, merges, moves, timers and requests. `tests/hive/stop_memory.rs` checks that nothing keeps the log's client
        // and its journal in memory, `tests/hive/stop_log.rs` that the log says of no message that it is handled which no
        // handler has seen, and `tests/hive/stop.rs` that no task is left.
        Mutant::RunsWhenOver | Mutant::RecordsWhenOver | Mutant::MergesWhenOver => return None,
        Mutant::OpenSweepsForgotten => return None, // `sweep_ends.rs`
        Mutant::ForeignForgotten
        | Mutant::RestartRetiresForeign
        | Mutant::ForeignFloorTooHigh
        | Mutant::SameAppLane
        | Mutant::CreditAtSend
        | Mutant::AckByLane
        | Mutant::AdoptedOvertakes
        | Mutant::RetiredUnheard
        | Mutant::MissingNotCreated => return None, // they need several hives: `tests/cluster/directed.rs`
        Mutant::LeadsBehind
        | Mutant::OldLeaderKept
        | Mutant::TakenNotResent
        | Mutant::TakenUnmarked
        | Mutant::StatelessAtHome
        | Mutant::TakenOvertakes => return None, // one hive takes over from another: `tests/cluster/leaders.rs`
        Mutant::ReadUnconfirmed
        | Mutant::DeposedStays
        | Mutant::DeposedReleases
        | Mutant::DeposedSends
        | Mutant::MailboxLost
        | Mutant::GivenBackLast
        | Mutant::UnloggedEndsAtOnce => return None, // a hive loses a log and lives on: `tests/cluster/deposed.rs`, `reads.rs`
        Mutant::FloorFromSpeculation => return None, // `hive/admission/bee_lanes.rs`
        Mutant::WithoutBeeFloorOfOneApp => return None, // `hive/consensus/without_bee.rs`
    })
}

/// Runs a load with one seed after the other until one of `checkers` finds something.
fn find(load: &Load, checkers: &[Checker]) -> Result<(u64, Finding), Vec<Finding>> {
    let mut others = Vec::new();
    for seed in 1..=SEEDS {
        match load.run(seed) {
            Err(found) if checkers.contains(&found.checker) => return Ok((seed, found)),
            Err(found) => others.push(found),
            Ok(_) => {}
        }
    }
    Err(others)
}

/// Runs a load with a mutant. Returns why the mutant counts as not found, if it does.
fn hunt(mutant: String, load: &Load, checkers: &[Checker]) -> Option<String> {
    if std::env::var("BEEHIVE_MUTANT").is_ok_and(|only| only != mutant) {
        return None;
    }
    let began = Instant::now();
    match find(load, checkers) {
        Ok((seeds, found)) => {
            let what: String = found.to_string().chars().take(150).collect();
            println!("{mutant}: seed {seeds}, {:.1?}: {what}", began.elapsed());
            None
        }
        Err(others) => {
            let others: Vec<String> = others.iter().map(Finding::to_string).collect();
            Some(format!("{mutant}: not found by {checkers:?} with {SEEDS} seeds, but {others:?}"))
        }
    }
}

fn none_is_missed(missed: impl Iterator<Item = String>) {
    let missed: Vec<String> = missed.collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

/// The hunt for [`Mutant::EndsBeforeDropped`] takes up to half a minute, so only `BEEHIVE_LONG=1` includes it.
#[test]
fn every_mutant_of_a_hive_is_found() {
    let is_long = std::env::var_os("BEEHIVE_LONG").is_some();
    let hunted = Mutant::ALL.iter().filter(|mutant| is_long || **mutant != Mutant::EndsBeforeDropped);
    let reached = hunted.filter_map(|mutant| Some((*mutant, reached_by(*mutant)?)));
    none_is_missed(reached.filter_map(|(mutant, (load, checkers))| {
        hunt(format!("{mutant:?}"), &Load { mutant: Some(mutant), ..load }, checkers)
    }))
}

/// `directed.rs` has the mutant `LogMutant::DedupNotMerged`.
#[test]
fn every_mutant_of_the_state_machine_is_found() {
    let all: [(LogMutant, Load, &[Checker]); 4] = [
        (LogMutant::PredecessorIgnored, with_dead_entries(), &[Rest, Counts, Assertion]),
        (LogMutant::OnlyWorkNumbered, with_dead_entries(), &[Moves, Assertion]),
        (LogMutant::LocalTakesFrozen, Load { lives: 8, ..by_bee() }, &[Moves, Counts]),
        (LogMutant::DropKeeps, by_bee(), &[Moves, Owners, Assertion]),
    ];
    none_is_missed(all.into_iter().filter_map(|(mutant, load, checkers)| {
        hunt(format!("log, {mutant:?}"), &Load { log_mutant: Some(mutant), ..load }, checkers)
    }))
}

/// The logs themselves show that a message is lost. The seeds are more than [`SEEDS`], because other checkers find many of the
/// same runs first.
#[test]
fn an_emitted_message_that_is_not_accounted_for_is_found() {
    let load = Load { mutant: Some(Mutant::OutboxNotMoved), checks_emits: true, ..by_bee() };
    let found = (1..=4 * SEEDS)
        .find_map(|seed| Some((seed, load.run(seed).err()?)).filter(|(_, found)| found.checker == Emits));
    let (seed, found) = found.expect("no run shows that the outbox was left behind");
    println!("seed {seed}: {found}")
}

/// The same loads on a hive that keeps all rules. `BEEHIVE_LONG=1` runs as many seeds as for a mutant.
#[test]
fn without_a_mutant_nothing_is_found() {
    let seeds = if std::env::var_os("BEEHIVE_LONG").is_some() { SEEDS } else { 2 };
    let mixed = load(Divided::Mixed, 4);
    for load in [by_app(), by_bee(), mixed, retiring(), uneven(), with_dead_entries(), many()] {
        for seed in 1..=seeds {
            let load = Load { patience: Duration::from_secs(60), ..load.clone() };
            load.run(seed).unwrap_or_else(|found| panic!("seed {seed}, {load:?}: {found}"));
        }
    }
}
