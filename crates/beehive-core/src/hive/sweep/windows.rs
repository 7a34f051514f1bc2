//! The windows of a logged sweep: how many visits may be uncommitted in each log of the visited app, if the app has several.

use crate::hive::dispatch::turn::Link;
use crate::hive::sweep::unlogged_sweep::Visit;
use crate::message::Message;
use std::sync::Arc;

/// The visits of one sweep to bees in one log.
struct Window<M: Message> {
    log: Arc<Link>,
    /// Every visit to a bee in this log. It knows the window that it has to leave, even if the bee moves to another log meanwhile.
    visit: Arc<Visit<M>>,
}

impl<M: Message> Window<M> {
    /// Checks whether there is room for a visit to this many cells. If the hive no longer leads the log, the visits come back.
    fn has_room_for(&self, cells: usize) -> bool {
        let open = self.visit.open_visits.as_ref();
        self.log.is_deposed() || open.is_none_or(|(_, open)| open.has_room_for(cells))
    }

    /// Checks whether there is room for as many visits as a step sends.
    fn has_room(&self) -> bool {
        self.log.is_deposed() || self.visit.open_visits.as_ref().is_none_or(|(_, open)| open.has_room())
    }
}

/// The windows of one sweep, for the logs in which it has visited bees.
pub(super) struct Windows<M: Message>(Vec<Window<M>>);

impl<M: Message> Default for Windows<M> {
    fn default() -> Self {
        Windows(Vec::new())
    }
}

impl<M: Message> Windows<M> {
    /// Checks whether the log at this position has room for another step.
    pub(super) fn has_room(&self, log: usize) -> bool {
        self.0.iter().all(|window| window.log.position() != log || window.has_room())
    }

    /// Checks whether at least one of this many logs has room for another step.
    pub(super) fn any_has_room(&self, logs: usize) -> bool {
        self.0.len() < logs || self.0.iter().any(Window::has_room)
    }

    /// Returns the visit for a bee in the log at this position, of which it is to visit this many cells, or `None` if the log has
    /// no room for it. `visit` is that of the sweep. `find` looks for the log.
    pub(super) fn visit_within(
        &mut self,
        log: usize,
        cells: usize,
        visit: &Arc<Visit<M>>,
        find: impl FnOnce() -> Option<Arc<Link>>,
    ) -> Option<Arc<Visit<M>>> {
        // the next log that has the position of a lost one gets a window of its own
        self.0.retain(|window| !window.log.is_deposed());
        if let Some(window) = self.0.iter().find(|window| window.log.position() == log) {
            return window.has_room_for(cells).then(|| window.visit.clone());
        }
        // if the hive is losing the log, the bee refuses the visit or gives it back
        let Some(log) = find() else { return Some(visit.clone()) };
        let visit = Arc::new(visit.in_window());
        self.0.push(Window { log, visit: visit.clone() });
        Some(visit)
    }
}
