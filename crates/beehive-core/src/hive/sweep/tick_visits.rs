//! The visits of a timer's sweeps that are under way. A tick skips the cells whose last visit may not be over.
//!
//! A visit is over when its record is committed. If one log commits nothing, the ticks at the cells of other logs go on: what is
//! skipped is decided for each log and each part of the cells apart.

use crate::hive::admission::credits::{Cause, Credits, InFlight};
use crate::hive::bee::app::AppRuntime;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The position of a log; `None` for all bees of an app that has one log, or none.
type LogAt = Option<usize>;

/// One timer's visits that are under way.
pub(crate) struct TickVisits {
    /// Whether the bees may be in several logs.
    by_log: bool,
    /// One credit for each part of the cells and each log. The visits to the bees there hold it together, until all of them
    /// are over. Contains no more than the parts times the logs of the hive, whose positions are used again.
    parts: Mutex<BTreeMap<(usize, LogAt), Arc<Credits>>>,
}

impl TickVisits {
    /// Creates the visits of a timer of `app`: none is under way.
    pub(crate) fn of(app: &AppRuntime) -> TickVisits {
        TickVisits::new(app.has_several_logs())
    }

    fn new(by_log: bool) -> TickVisits {
        TickVisits { by_log, parts: Mutex::default() }
    }

    /// Begins to visit the cells of a part.
    pub(crate) fn begin<'a>(&'a self, part: usize, in_flight: &'a Arc<InFlight>) -> PartVisits<'a> {
        let mut visits = PartVisits { visits: self, part, in_flight, causes: SmallVec::new() };
        if !self.by_log {
            visits.begin_in(None);
        }
        visits
    }
}

/// The visits of one sweep to the cells of one part.
pub(crate) struct PartVisits<'a> {
    visits: &'a TickVisits,
    part: usize,
    in_flight: &'a Arc<InFlight>,
    /// The cause of the visits in each log; `None` if those of an earlier sweep are under way there.
    causes: SmallVec<[(LogAt, Option<Arc<Cause>>); 2]>,
}

impl PartVisits<'_> {
    /// Returns the cause of a visit to a bee in this log, or `None` if the bee is to be skipped.
    pub(crate) fn cause(&mut self, log: impl FnOnce() -> LogAt) -> Option<Arc<Cause>> {
        let log = if self.visits.by_log { log() } else { None };
        match self.causes.iter().find(|(of, _)| *of == log) {
            Some((_, cause)) => cause.clone(),
            None => self.begin_in(log),
        }
    }

    /// Takes the credit of a log, if it is free.
    fn begin_in(&mut self, log: LogAt) -> Option<Arc<Cause>> {
        let credits = {
            let mut parts = self.visits.parts.lock();
            parts.entry((self.part, log)).or_insert_with(|| Credits::new(1)).clone()
        };
        let cause = credits.take_all(1).then(|| Cause::new(&credits, 1, self.in_flight));
        self.causes.push((log, cause.clone()));
        cause
    }

    /// Checks whether all bees are to be skipped, whatever their logs are.
    pub(crate) fn are_all_skipped(&self) -> bool {
        !self.visits.by_log && self.has_skipped()
    }

    /// Checks whether bees were or are to be skipped.
    pub(crate) fn has_skipped(&self) -> bool {
        self.causes.iter().any(|(_, cause)| cause.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visit_that_is_under_way_holds_up_its_part_and_log_only() {
        let (visits, in_flight) = (TickVisits::new(true), Arc::default());
        let mut first = visits.begin(7, &in_flight);
        let stuck = first.cause(|| Some(0)).unwrap();
        assert!(first.cause(|| Some(0)).is_some() && first.cause(|| Some(1)).is_some());
        assert!(!first.has_skipped());
        drop(first);

        let mut second = visits.begin(7, &in_flight);
        assert!(!second.are_all_skipped());
        assert!(second.cause(|| Some(1)).is_some() && !second.has_skipped());
        assert!(second.cause(|| Some(0)).is_none() && second.has_skipped());
        assert!(visits.begin(8, &in_flight).cause(|| Some(0)).is_some());
        drop((second, stuck));
        assert!(visits.begin(7, &in_flight).cause(|| Some(0)).is_some());
        assert_eq!(in_flight.count(), 0);
    }

    #[test]
    fn with_one_log_a_part_is_skipped_before_its_cells_are_read() {
        let (visits, in_flight) = (TickVisits::new(false), Arc::default());
        let stuck = visits.begin(7, &in_flight).cause(|| unreachable!("there is one log"));
        assert!(stuck.is_some() && visits.begin(7, &in_flight).are_all_skipped());
        assert!(!visits.begin(8, &in_flight).are_all_skipped());
        drop(stuck);
        assert!(!visits.begin(7, &in_flight).are_all_skipped());
    }
}
