//! Counts of a hive's unfinished work. Tests use them to find what a hive has left behind.

use crate::hive::Hive;
use crate::hive::ownership::reconciler::Reconciler;

/// Counts of a hive's unfinished work. When all work is done, each count is what it was before the work began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnderWay {
    /// Number of logs that the hive leads, or is about to leave.
    pub logs: usize,
    /// Number of positions of logs that are in use.
    pub positions: usize,
    /// Number of bees.
    pub bees: usize,
    /// Number of timers that have not fired.
    pub timers: usize,
    /// Number of messages from outside that are not done, and of causes of their own.
    pub in_flight: u64,
    /// Number of batches from outside that may be sent again.
    pub admitted: usize,
    /// Number of lanes of the hive's bees and apps that may have unhandled messages.
    pub lanes: usize,
    /// Number of messages under way to other hives, and of requesters that wait for their reports.
    pub sent: usize,
    /// Number of steps of moves and merges.
    pub steps: usize,
}

impl Hive {
    /// Counts the hive's unfinished work.
    pub fn under_way(&self) -> UnderWay {
        let hive = self.inner();
        let lanes = hive.logs.as_ref().map(|logs| &logs.lanes);
        UnderWay {
            logs: hive.log_clients().len(),
            positions: hive.logs.as_ref().map_or(0, |logs| logs.clients().positions_in_use()),
            bees: self.status().apps.iter().map(|app| app.bees).sum(),
            timers: hive.timers.len(),
            in_flight: hive.in_flight.count(),
            admitted: lanes.map_or(0, |lanes| lanes.admitted()),
            lanes: lanes.map_or(0, |lanes| lanes.bees.len()),
            sent: hive.links.as_ref().map_or(0, |links| links.under_way()),
            steps: Reconciler::of(hive).map_or(0, |reconciler| reconciler.under_way()),
        }
    }
}
