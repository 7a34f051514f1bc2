//! The lanes that have ended, and of which a log does not know it yet.

use crate::hive::consensus::journal::LaneId;
use parking_lot::Mutex;
use std::collections::BTreeSet;

#[derive(Default)]
struct State {
    /// Each lane takes some ten bytes here until the log can commit.
    waiting: BTreeSet<LaneId>,
    /// Whether a task takes the lanes. There is one for each log, however long the log commits nothing.
    is_taken: bool,
}

/// The ended lanes that wait to be recorded in a log. An ended lane is never used again, so it may wait for any time.
#[derive(Default)]
pub(crate) struct EndedLanes(Mutex<State>);

impl EndedLanes {
    /// Adds lanes. Returns whether the caller has to take them: nobody else does. From then on, the caller calls
    /// [`EndedLanes::next`] until that returns `None`.
    pub(crate) fn add(&self, lanes: &[LaneId]) -> bool {
        let mut state = self.0.lock();
        state.waiting.extend(lanes);
        !std::mem::replace(&mut state.is_taken, true)
    }

    /// Takes at most `count` lanes. Returns `None` if none is left.
    pub(crate) fn next(&self, count: usize) -> Option<Vec<LaneId>> {
        let mut state = self.0.lock();
        let lanes: Vec<LaneId> = std::iter::from_fn(|| state.waiting.pop_first()).take(count).collect();
        state.is_taken = !lanes.is_empty();
        state.is_taken.then_some(lanes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_takes_all_lanes_once() {
        let ended = EndedLanes::default();
        assert!(ended.add(&[LaneId(4), LaneId(8)]));
        assert!(!ended.add(&[LaneId(8), LaneId(2)]), "somebody takes them");
        assert_eq!(ended.next(2), Some(vec![LaneId(2), LaneId(4)]));
        assert!(!ended.add(&[LaneId(1)]));
        assert_eq!(ended.next(9), Some(vec![LaneId(1), LaneId(8)]));
        assert_eq!(ended.next(9), None);
        assert!(ended.add(&[LaneId(3)]), "nobody does any more");
    }
}
