//! How far a logged sweep has come: where its cursor is, and which cells the cursor has passed that are not visited yet.

use crate::cell::{CellId, CellSet};
use crate::hive::consensus::journal::sweep_order;
use crate::hive::sweep::opening::Opening;
use crate::limits;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Number of kept-back cells up to which there is room for another step.
const ROOM: usize = limits::SWEEP_CELLS_KEPT_BACK_MAX - limits::SWEEP_STEP_MAX;

/// A sweep's progress.
pub(super) struct Progress {
    /// The start of the sweep; `None` if it has been committed or is part of a bee's record.
    pub(super) opening: Option<Opening>,
    /// The first cell that the cursor has not passed; `None` if it has passed all cells.
    pub(super) next: Option<CellId>,
    /// Cells that had no owner when their visit was due, until a record has removed them from the log's open cells. Until then,
    /// a later message to such a cell waits: it would create the cell, and after a crash, the visit would come after it.
    gone: BTreeSet<CellId>,
    /// Cells whose bees may be about to leave for another hive. They are visited when it is clear whether they stay.
    pub(super) later: Vec<CellId>,
    kept_back: KeptBack,
}

/// Cells that the cursor has passed, and whose visits have not been sent, because there were too many uncommitted ones in the
/// logs of their bees.
#[derive(Default)]
struct KeptBack {
    /// The cells, by the position of the log, in the order of the sweep.
    by_log: BTreeMap<usize, VecDeque<CellId>>,
    /// The same cells, and those whose visits are being sent.
    cells: BTreeSet<CellId>,
}

/// The cells that a step could not visit.
#[derive(Default)]
pub(super) struct Unvisited {
    /// Those without an owner.
    pub(super) gone: Vec<CellId>,
    /// Those whose owners may be about to leave for another hive.
    pub(super) later: Vec<CellId>,
    /// Those whose logs have no room for their visits, each with the position of its log.
    kept_back: Vec<(usize, CellId)>,
    /// The positions of the logs that get no further visits in this step.
    full: Vec<usize>,
}

impl Unvisited {
    /// Returns those of a step in which these logs get no visits.
    pub(super) fn behind(full: Vec<usize>) -> Unvisited {
        Unvisited { full, ..Unvisited::default() }
    }

    /// Checks whether a log gets no further visits.
    pub(super) fn is_full(&self, log: usize) -> bool {
        self.full.contains(&log)
    }

    /// Keeps back cells of a log, and all its later ones.
    pub(super) fn keep_back(&mut self, log: usize, cells: &CellSet) {
        if !self.is_full(log) {
            self.full.push(log)
        }
        self.kept_back.extend(cells.iter().map(|cell| (log, *cell)))
    }
}

impl Progress {
    pub(super) fn new(opening: Option<Opening>, next: Option<CellId>) -> Progress {
        Progress { opening, next, gone: BTreeSet::new(), later: Vec::new(), kept_back: KeptBack::default() }
    }

    /// Adds the cells that were not visited.
    pub(super) fn note(&mut self, unvisited: Unvisited) {
        self.gone.extend(unvisited.gone);
        self.later.extend(unvisited.later);
        for (log, cell) in unvisited.kept_back {
            self.kept_back.by_log.entry(log).or_default().push_back(cell);
            self.kept_back.cells.insert(cell);
        }
    }

    /// Notes that the visits of kept-back cells are in the mailboxes, except for those of `unvisited`.
    pub(super) fn note_sent(&mut self, sent: &[CellId], unvisited: Unvisited) {
        sent.iter().for_each(|cell| {
            self.kept_back.cells.remove(cell);
        });
        self.note(unvisited)
    }

    /// Returns the cells that had no owner, and that the next record removes from the log's open cells.
    pub(super) fn gone(&self) -> Vec<CellId> {
        self.gone.iter().copied().collect()
    }

    /// Notes that this record is committed.
    pub(super) fn note_removed(&mut self, gone: &[CellId]) {
        gone.iter().for_each(|cell| {
            self.gone.remove(cell);
        })
    }

    /// Takes the next kept-back cells of each log that `has_room`, as many as one step visits. A later message to such a cell still
    /// waits, until [`Progress::note_sent`] is called.
    pub(super) fn take_kept_back(&mut self, has_room: impl Fn(usize) -> bool) -> Vec<CellId> {
        let mut taken = Vec::new();
        self.kept_back.by_log.retain(|log, cells| {
            if has_room(*log) {
                taken.extend(cells.drain(..cells.len().min(limits::SWEEP_STEP_MAX)))
            }
            !cells.is_empty()
        });
        taken
    }

    /// Returns the positions of the logs that have kept-back cells.
    pub(super) fn full_logs(&self) -> Vec<usize> {
        self.kept_back.by_log.keys().copied().collect()
    }

    /// Checks whether the cursor may move, as far as the number of kept-back cells is concerned.
    pub(super) fn may_move_on(&self) -> bool {
        self.next.is_some() && self.kept_back.cells.len() <= ROOM
    }

    /// Checks whether the sweep can do nothing before a log has room: the other cells that the cursor has passed are visited.
    pub(super) fn waits_for_room(&self) -> bool {
        let waits = self.next.is_some() || !self.kept_back.by_log.is_empty();
        waits && self.gone.is_empty() && self.later.is_empty()
    }

    /// Checks whether the cursor has passed all of these cells, and their visits have been sent, or the log says that there was
    /// nothing to visit.
    pub(super) fn has_passed(&self, cells: &[CellId]) -> bool {
        let has_passed = match self.next {
            Some(next) => cells.iter().all(|cell| sweep_order(*cell) < sweep_order(next)),
            None => true,
        };
        let none_in = |set: &BTreeSet<CellId>| set.is_empty() || !cells.iter().any(|cell| set.contains(cell));
        has_passed && none_in(&self.kept_back.cells) && none_in(&self.gone)
    }

    /// Checks whether the cursor has passed all cells, and all visits have been sent.
    pub(super) fn is_over(&self) -> bool {
        let is_all_visited = self.gone.is_empty() && self.later.is_empty() && self.kept_back.cells.is_empty();
        self.opening.is_none() && self.next.is_none() && is_all_visited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: usize = 1;

    fn kept_back(progress: &mut Progress, cells: std::ops::Range<usize>) {
        let mut unvisited = Unvisited::behind(progress.full_logs());
        for cell in cells {
            unvisited.keep_back(FULL, &CellSet::from_slice(&[CellId(cell as u64)]))
        }
        progress.note(unvisited)
    }

    #[test]
    fn the_cursor_waits_when_too_many_cells_are_kept_back() {
        let mut progress = Progress::new(None, Some(CellId(1 << 40)));
        kept_back(&mut progress, 0..ROOM);
        assert!(progress.may_move_on());
        kept_back(&mut progress, ROOM..ROOM + 1);
        assert!(!progress.may_move_on() && progress.waits_for_room());

        assert!(progress.take_kept_back(|log| log != FULL).is_empty());
        let sent = progress.take_kept_back(|log| log == FULL);
        assert_eq!(sent, Vec::from_iter((0..limits::SWEEP_STEP_MAX as u64).map(CellId)), "in their order");
        progress.note_sent(&sent, Unvisited::default());
        assert!(progress.may_move_on());
    }

    #[test]
    fn a_message_to_a_cell_without_an_owner_waits_until_the_log_knows_that() {
        let mut progress = Progress::new(None, Some(CellId(9)));
        progress.note(Unvisited { gone: vec![CellId(3), CellId(4)], ..Unvisited::default() });
        progress.next = None;
        assert!(!progress.has_passed(&[CellId(3)]) && progress.has_passed(&[CellId(2)]));
        let gone = progress.gone();
        progress.note(Unvisited { gone: vec![CellId(5)], ..Unvisited::default() });
        assert!(!progress.has_passed(&[CellId(3)]) && !progress.is_over(), "the record is not committed");
        progress.note_removed(&gone);
        assert!(progress.has_passed(&[CellId(3), CellId(4)]) && !progress.has_passed(&[CellId(5)]));
        assert!(!progress.is_over());
        progress.note_removed(&[CellId(5)]);
        assert!(progress.is_over())
    }

    #[test]
    fn a_message_to_a_kept_back_cell_waits_until_the_visit_is_sent() {
        let mut progress = Progress::new(None, Some(CellId(9)));
        kept_back(&mut progress, 3..4);
        assert!(progress.has_passed(&[CellId(2)]));
        assert!(!progress.has_passed(&[CellId(2), CellId(3)]));

        progress.next = None;
        let sent = progress.take_kept_back(|_| true);
        assert!(
            !progress.has_passed(&[CellId(3)]) && !progress.is_over(),
            "the visit is not in the mailbox yet"
        );
        progress.note_sent(&sent, Unvisited::default());
        assert!(progress.has_passed(&[CellId(3)]) && progress.is_over());
    }
}
