//! Bugs that can be put into the analysis, so that its tests can show that they would notice them.

/// Which parts of the analysis do the wrong thing. The default is none, and nothing outside tests makes another.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// The `else` side of a condition is forgotten.
    pub else_branch_lost: bool,
    /// A change through a view of a local (`for x in v.iter_mut()`) is not seen as a change of the local.
    pub views_ignored: bool,
    /// A local that is assigned under a condition on state is still taken for known.
    pub assignments_under_state_ignored: bool,
    /// Leaving under a condition on state ends the whole map.
    pub exits_leave_the_whole_map: bool,
    /// `break` and `continue` under a condition on state are taken as certain.
    pub jumps_under_state_ignored: bool,
    /// The body of a loop over the message is forgotten.
    pub loop_body_lost: bool,
    /// What an expression that the map does not run does to locals is forgotten.
    pub dropped_changes_ignored: bool,
}
