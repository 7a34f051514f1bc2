//! Faults that can be seeded into the analysis, so that its tests can prove that they would notice them.
//!
//! Only the feature `faults`, which the crate's own tests and examples enable, can seed one. Without this
//! feature, [`Faults`] is empty and [`Faults::has`] is always false, so other builds contain none of the
//! faults.

#![cfg_attr(not(feature = "faults"), expect(unreachable_pub, reason = "exported only with the feature"))]

/// A bug in one part of the analysis.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Drops the `else` side of a condition.
    ElseBranchLost,
    /// Does not treat a change through a view of a local (`for x in v.iter_mut()`) as a change to the local.
    ViewsIgnored,
    /// Treats a local assigned under a condition on state as known.
    AssignmentsUnderStateIgnored,
    /// Leaves the whole map where the handler leaves under a condition on state.
    ExitsLeaveTheWholeMap,
    /// Treats `break` and `continue` under a condition on state as certain.
    JumpsUnderStateIgnored,
    /// Drops the body of a loop over the message.
    LoopBodyLost,
    /// Ignores changes made to locals by an expression that the map does not run.
    DroppedChangesIgnored,
    /// Does not treat a temporary behind a `&mut` as something that changes.
    TemporariesAreFixed,
    /// Does not treat a call to a closure as a change to the values that the closure has captured.
    ClosuresChangeNothing,
    /// Assumes that every method only reads.
    MethodsOnlyRead,
    /// Assumes that methods of statics are functions of the message.
    StaticsAreFixed,
    /// Lets a panic under a condition on state end the whole map.
    PanicsEndTheMap,
    /// Follows only the first of the `#[cfg]` versions of a method.
    OtherVersionsIgnored,
    /// Treats the order of a hash set or a hash map as known.
    HashOrderIsFixed,
    /// Does not apply facts learned late in a loop to earlier code in the loop.
    LateFactsIgnored,
    /// Does not treat the result of a function as a view of the values lent to the function.
    ReturnedViewsIgnored,
    /// Does not see the change that the initial value of a local makes to another local.
    ResultsHideChanges,
    /// Assumes that the argument of `pure!` changes nothing.
    PromisesHideChanges,
    /// Recognizes only those hash maps and hash sets that the type of a local shows.
    HiddenHashesIgnored,
    /// Treats statics as data of the message.
    GlobalsAreData,
    /// Assumes that a macro with the name of a logging macro is that logging macro.
    GuessedMacrosOnlyLog,
    /// Assumes that a macro rebinds none of the names passed to it.
    MacrosRebindNothing,
    /// Assumes that no method panics.
    MethodsCannotPanic,
    /// Accepts loops that only state ends.
    EndlessLoopsAreAllowed,
}

impl Fault {
    /// Returns the fault with this name.
    #[cfg(feature = "faults")]
    pub fn named(name: &str) -> Option<Fault> {
        use Fault::*;
        let all = [
            ElseBranchLost,
            ViewsIgnored,
            AssignmentsUnderStateIgnored,
            ExitsLeaveTheWholeMap,
            JumpsUnderStateIgnored,
            LoopBodyLost,
            DroppedChangesIgnored,
            TemporariesAreFixed,
            ClosuresChangeNothing,
            MethodsOnlyRead,
            StaticsAreFixed,
            PanicsEndTheMap,
            OtherVersionsIgnored,
            HashOrderIsFixed,
            LateFactsIgnored,
            ReturnedViewsIgnored,
            ResultsHideChanges,
            PromisesHideChanges,
            HiddenHashesIgnored,
            GlobalsAreData,
            GuessedMacrosOnlyLog,
            MacrosRebindNothing,
            MethodsCannotPanic,
            EndlessLoopsAreAllowed,
        ];
        all.into_iter().find(|fault| format!("{fault:?}") == name)
    }
}

/// The fault seeded into an analysis; none by default.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    #[cfg(feature = "faults")]
    seeded: Option<Fault>,
}

#[cfg(feature = "faults")]
impl Faults {
    /// Seeds one fault.
    pub fn only(fault: Fault) -> Faults {
        Faults { seeded: Some(fault) }
    }

    /// Checks whether a fault is seeded.
    pub(crate) fn has(self, fault: Fault) -> bool {
        self.seeded == Some(fault)
    }
}

#[cfg(not(feature = "faults"))]
impl Faults {
    /// Checks whether a fault is seeded, which is impossible without the feature `faults`.
    pub(crate) const fn has(self, _: Fault) -> bool {
        false
    }
}
