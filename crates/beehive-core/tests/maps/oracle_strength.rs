//! Proof that the oracle finds bugs: maps from an analysis with a known bug do not cover all cells that their
//! handlers touch, and the same random messages and states that find no fault in correct maps reveal this.

use crate::message::{Load, M};
use crate::oracle::{Chance, misses};
use crate::seeded;
use beehive::testing::maps::describe;
use beehive::{Handlers, Handles, Outcome};

/// Checks whether some random message and state reveal that a map of `A` names too few cells.
fn is_caught<A: Handlers + Handles<M<N>> + Handles<Load>, const N: u32>() -> bool {
    (0..300).any(|seed| {
        let mut chance = Chance::new(seed);
        let (message, state) = (chance.message::<N>(), chance.state());
        misses::<A, N>(&message, &state)
    })
}

/// Whether the map of some random message exceeds a limit.
fn is_endless<A: Handlers + Handles<M<N>>, const N: u32>() -> bool {
    (0..3).any(|seed| {
        let message = Chance::new(seed).message::<N>();
        matches!(describe::<A, M<N>>(&message).outcome, Outcome::Refused(_))
    })
}

#[test]
fn every_seeded_bug_is_caught() {
    let caught = [
        ("else branch lost", is_caught::<seeded::ElseBranchLost, 1>()),
        ("views ignored, a loop", is_caught::<seeded::ViewsIgnored, 1>()),
        ("views ignored, zipped", is_caught::<seeded::ViewsIgnored, 2>()),
        ("assignments under state ignored", is_caught::<seeded::AssignmentsUnderStateIgnored, 1>()),
        ("exits leave the whole map", is_caught::<seeded::ExitsLeaveTheWholeMap, 1>()),
        ("exits leave the whole map, in a loop", is_caught::<seeded::ExitsLeaveTheWholeMap, 2>()),
        ("jumps under state ignored", is_caught::<seeded::JumpsUnderStateIgnored, 1>()),
        ("loop body lost", is_caught::<seeded::LoopBodyLost, 1>()),
        ("dropped changes ignored, in a value", is_caught::<seeded::DroppedChangesIgnored, 1>()),
        ("dropped changes ignored, in a call", is_caught::<seeded::DroppedChangesIgnored, 2>()),
        ("temporaries are fixed, an array", is_caught::<seeded::TemporariesAreFixed, 1>()),
        ("temporaries are fixed, an iterator", is_caught::<seeded::TemporariesAreFixed, 2>()),
        ("closures change nothing, a list", is_caught::<seeded::ClosuresChangeNothing, 1>()),
        ("closures change nothing, a number", is_caught::<seeded::ClosuresChangeNothing, 2>()),
        ("methods only read, and are left out", is_caught::<seeded::MethodsOnlyRead, 1>()),
        ("methods only read, also where state decides", is_caught::<seeded::MethodsOnlyRead, 2>()),
        ("statics are fixed", is_caught::<seeded::StaticsAreFixed, 1>()),
        ("panics end the map", is_caught::<seeded::PanicsEndTheMap, 1>()),
        ("other versions ignored", is_caught::<seeded::OtherVersionsIgnored, 1>()),
        ("hash order is fixed, the first element", is_caught::<seeded::HashOrderIsFixed, 1>()),
        ("hash order is fixed, the last of a list", is_caught::<seeded::HashOrderIsFixed, 2>()),
        ("late facts ignored, a local", is_caught::<seeded::LateFactsIgnored, 1>()),
        ("late facts ignored, a counter", is_caught::<seeded::LateFactsIgnored, 2>()),
        ("returned views ignored, of a function of std", is_caught::<seeded::ReturnedViewsIgnored, 1>()),
        ("returned views ignored, of the block", is_caught::<seeded::ReturnedViewsIgnored, 2>()),
        ("results hide changes, an option", is_caught::<seeded::ResultsHideChanges, 1>()),
        ("results hide changes, a list", is_caught::<seeded::ResultsHideChanges, 2>()),
        ("promises hide changes, a list", is_caught::<seeded::PromisesHideChanges, 1>()),
        ("promises hide changes, an array", is_caught::<seeded::PromisesHideChanges, 2>()),
        ("hidden hashes ignored, in a struct", is_caught::<seeded::HiddenHashesIgnored, 1>()),
        ("hidden hashes ignored, in a map", is_caught::<seeded::HiddenHashesIgnored, 2>()),
        ("globals are data", is_caught::<seeded::GlobalsAreData, 1>()),
        ("globals are data, through a reference", is_caught::<seeded::GlobalsAreData, 2>()),
        ("guessed macros only log", is_caught::<seeded::GuessedMacrosOnlyLog, 1>()),
        ("guessed macros only log, in a branch", is_caught::<seeded::GuessedMacrosOnlyLog, 2>()),
        ("macros rebind nothing, a local", is_caught::<seeded::MacrosRebindNothing, 1>()),
        ("macros rebind nothing, the message", is_caught::<seeded::MacrosRebindNothing, 2>()),
        ("methods cannot panic, an option", is_caught::<seeded::MethodsCannotPanic, 1>()),
        ("endless loops are allowed, a range", is_endless::<seeded::EndlessLoopsAreAllowed, 1>()),
        ("endless loops are allowed, successors", is_endless::<seeded::EndlessLoopsAreAllowed, 2>()),
    ];

    let survived: Vec<&str> = caught.iter().filter(|c| !c.1).map(|c| c.0).collect();
    assert!(survived.is_empty(), "not caught: {survived:?}");
}
