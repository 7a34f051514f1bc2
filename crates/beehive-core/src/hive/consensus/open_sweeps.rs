//! A log's running sweeps, if they may visit cells whose bees are in other logs.
//!
//! A sweep has its own sequence number on its app's lane, and each visit is a part of that number. Bees
//! remember which parts they have handled until the lane's floor passes the number. The floor must not pass
//! that number until the sweep's log has committed the end of the sweep: after a crash before that point, the visits
//! are resent.

use crate::cell::CellId;
use beehive_protocol::{LogState, MessageId, Record};
use std::collections::{BTreeMap, BTreeSet};

/// The cells of one sweep that remain to be visited.
struct OpenSweep {
    /// Whether the sweep has reached all cells.
    has_reached_all: bool,
    /// Cells that the sweep has reached but whose visits have not yet been handled.
    cells: BTreeSet<CellId>,
}

/// A log's running sweeps, according to its committed entries. They are part of its
/// [`LogState`](beehive_protocol::LogState).
#[derive(Default)]
pub(crate) struct OpenSweeps(BTreeMap<MessageId, OpenSweep>);

/// Checks whether a sweep has a number of its own, so that it has begun. A sweep that has not begun is in its sender's outbox. If a
/// stateless handler of the app has sent it, it is on the same lane, but it is a part of a number.
pub(crate) fn has_own_number(sweep: &MessageId) -> bool {
    sweep.lane.is_of_app() && sweep.lane.app() == Some(sweep.app) && sweep.part.is_whole()
}

impl OpenSweeps {
    /// Returns a log's running sweeps.
    pub(crate) fn new(state: &LogState) -> OpenSweeps {
        let running = state.sweeps.iter().filter(|(id, _)| has_own_number(id));
        let open = running.map(|(id, sweep)| {
            (*id, OpenSweep { has_reached_all: sweep.next.is_none(), cells: sweep.open.clone() })
        });
        OpenSweeps(open.collect())
    }

    /// Applies a committed record. Returns the sweeps that are over.
    pub(crate) fn committed(&mut self, record: &Record) -> Vec<MessageId> {
        let mut over = Vec::new();
        match record {
            Record::Admit { emits, .. } => {
                for emit in emits.iter().filter(|emit| emit.is_sweep && has_own_number(&emit.id)) {
                    let sweep = OpenSweep { has_reached_all: false, cells: BTreeSet::new() };
                    self.0.insert(emit.id, sweep);
                }
            }
            Record::Expand { sweep, cells, gone, next } => {
                if let Some(open) = self.0.get_mut(sweep) {
                    open.cells.extend(cells.iter().copied());
                    gone.iter().for_each(|cell| {
                        open.cells.remove(cell);
                    });
                    open.has_reached_all = next.is_none()
                }
                over.push(*sweep)
            }
            Record::Visited(visits) => {
                for visited in visits {
                    if let Some(open) = self.0.get_mut(&visited.sweep) {
                        visited.cells.iter().for_each(|cell| {
                            open.cells.remove(cell);
                        })
                    }
                    over.push(visited.sweep)
                }
            }
            _ => {}
        }
        over.retain(|id| {
            let is_over = self.0.get(id).is_some_and(|open| open.has_reached_all && open.cells.is_empty());
            if is_over {
                self.0.remove(id);
            }
            is_over
        });
        over
    }
}
