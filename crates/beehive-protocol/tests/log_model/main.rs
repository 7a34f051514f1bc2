//! Compares the state machine of the log with a naive model, which keeps lists of everything that has happened.

mod kinds;
mod model;
mod moves;
#[path = "../partial/mod.rs"]
mod partial;
mod run;
mod steps;

use beehive_protocol::{AppId, BeeId, LaneId, LogState, unfinished_moves};
use kinds::Effects;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRunner};
use run::Run;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::time::Instant;
use steps::{Step, step};

const APP: AppId = AppId(0);
const RECEIVER: AppId = AppId(1);
const OUTSIDE: [LaneId; 2] = [LaneId::passing(1), LaneId::lasting(1)];
/// Lanes of bees whose records are in another log.
const OF_ANOTHER_LOG: [LaneId; 2] = [LaneId::of_bee(AppId(7), BeeId(1)), LaneId::of_app(AppId(7))];
/// More numbers than any message on these lanes has.
const SEQS: Range<u64> = 0..15;
const PARTS: Range<u64> = 0..3;
const HANDLERS: Range<u32> = 0..2;

/// Returns the number of histories. `BEEHIVE_LONG=1` runs a million.
fn histories() -> u32 {
    if std::env::var_os("BEEHIVE_LONG").is_some() { 1_000_000 } else { 5_000 }
}

/// Applies each step to both the state and the model, and compares them after each step. Returns the number of entries.
fn live(steps: Vec<Step>, effects: &RefCell<Effects>) {
    let mut run = Run::new(effects);
    for step in steps {
        run.step(step);
        run.check()
    }
    run.model.check(&run.state, |_| true);

    // A follower that reads the same bytes reaches the same state.
    let replayed = LogState::replay(run.log.iter().map(Vec::as_slice)).unwrap();
    assert_eq!(replayed, run.state);

    // The next process finishes the moves of a log that decides alone.
    let mut state = run.state;
    for (_, record) in unfinished_moves(&[&state]) {
        state.carry_out(&record)
    }
    assert!(state.staged.is_empty() && state.frozen.is_empty());
    assert!(state.bees.values().all(|image| !image.is_frozen()))
}

/// Two in three histories are short, and one is long enough for a bee to come, merge and leave again.
#[test]
fn the_state_is_that_of_the_model() {
    let (effects, longest, began) = (RefCell::new(Effects::default()), Cell::new(0), Instant::now());
    let config = ProptestConfig {
        cases: histories(),
        failure_persistence: None,
        // without optimization, the default takes more time than the histories
        rng_algorithm: RngAlgorithm::XorShift,
        ..ProptestConfig::default()
    };
    let steps =
        prop_oneof![2 => prop::collection::vec(step(), 1..10), 1 => prop::collection::vec(step(), 10..50)];
    let found = TestRunner::new(config).run(&steps, |steps| {
        longest.set(steps.len().max(longest.get()));
        live(steps, &effects);
        Ok(())
    });
    found.unwrap_or_else(|found| panic!("{found}"));

    let effects = effects.into_inner();
    println!(
        "{} histories of up to {} steps, {} entries, in {:.1?}: {effects:?}",
        histories(),
        longest.get(),
        effects.entries(),
        began.elapsed()
    );
    assert!(effects.missing().is_empty(), "never had an effect: {:?}", effects.missing());
    assert!(effects.consumed_by_frozen > 50, "{effects:?}")
}
