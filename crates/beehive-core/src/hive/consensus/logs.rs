//! The logs of a hive: which app's records go to which log, and what the logs share.

use crate::hive::admission::outside_lanes::{Lanes, OutsideLane};
use crate::hive::consensus::journal::{AppId, Journal, LaneId, LogState, Seq};
use crate::hive::consensus::log_client::LogClient;
use crate::hive::consensus::quarantine::Quarantine;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The logs of a hive. `W` is the type of a bee with entries in flight.
pub(crate) struct Logs<W: ?Sized> {
    clients: Vec<Arc<LogClient<W>>>,
    /// For each app, the position of its log in `clients`; `None` if its state is in memory only.
    of_apps: Vec<Option<usize>>,
    /// The lanes of senders outside.
    pub(crate) lanes: Arc<Lanes>,
    /// Messages that may have ended the previous process.
    pub(crate) quarantine: Arc<Quarantine>,
    /// The lane of messages that are emitted through the [`Hive`](crate::Hive) itself.
    pub(crate) own_lane: Arc<OutsideLane>,
}

impl<W: ?Sized> Logs<W> {
    /// Continues each log where its state ends. `of_apps` gives the position of each app's log in `logs`; `chance` is
    /// the random id of the hive's own lane.
    pub(crate) fn new(
        logs: &[(Arc<dyn Journal>, LogState)],
        of_apps: Vec<Option<usize>>,
        chance: u64,
    ) -> Logs<W> {
        let lanes = Arc::new(Lanes::new(logs.iter().flat_map(|(_, state)| lasting_lanes(state))));
        let quarantine = Arc::new(Quarantine::new(logs));
        let client = |(at, (journal, state)): (usize, &(Arc<dyn Journal>, LogState))| {
            let apps = of_apps.iter().map(|log| *log == Some(at)).collect();
            LogClient::new(journal.clone(), state, (at, apps), lanes.clone(), quarantine.clone())
        };
        Logs {
            clients: logs.iter().enumerate().map(client).collect(),
            own_lane: lanes.open(chance),
            of_apps,
            lanes,
            quarantine,
        }
    }

    /// Returns the clients of all logs.
    pub(crate) fn clients(&self) -> &[Arc<LogClient<W>>] {
        &self.clients
    }

    /// Returns the client of an app's log; `None` if the app's state is in memory only.
    pub(crate) fn of_app(&self, app: AppId) -> Option<&Arc<LogClient<W>>> {
        self.clients.get((*self.of_apps.get(app.index())?)?)
    }

    /// Restores the lanes of bees: what is in an outbox for an app of another log is not acknowledged. Returns the
    /// lanes whose bees are gone, and of which no message waits: the logs may forget them.
    pub(crate) fn restore_lanes(&self, logs: &[(Arc<dyn Journal>, LogState)]) -> Vec<LaneId> {
        let bees = &self.lanes.bees;
        for (client, (_, state)) in self.clients.iter().zip(logs) {
            for id in state.outbox.keys().chain(state.sweeps.keys()) {
                if !client.has_app(id.app) {
                    bees.sent([*id])
                }
            }
            state.next_seqs.iter().for_each(|(lane, next)| bees.restore(*lane, *next));
        }

        let tables =
            logs.iter().flat_map(|(_, state)| state.bees.values().map(|bee| &bee.seen).chain([&state.seen]));
        let in_tables = tables.flat_map(|seen| seen.floors()).map(|(lane, _)| lane);
        // and the lanes that were just restored
        let in_outboxes = logs.iter().flat_map(|(_, state)| state.outbox.keys().chain(state.sweeps.keys()));
        let open = in_outboxes.map(|id| id.lane).filter(|lane| bees.knows(*lane));
        let lanes: BTreeSet<LaneId> = in_tables.chain(open).filter(|lane| !lane.is_outside()).collect();
        let mut dead = Vec::new();
        for lane in lanes {
            let Some(bee) = lane.bee() else { continue };
            let log = self.of_apps.get(bee.0.index()).copied().flatten();
            let image = log.and_then(|log| logs.get(log)).and_then(|(_, state)| state.bees.get(&bee));
            match image {
                Some(image) => bees.restore(lane, image.next_seq),
                None if bees.is_open(lane) => bees.end(lane),
                None => dead.push(lane),
            }
        }
        dead
    }
}

/// Returns the resumable lanes that a log contains, each with a floor.
fn lasting_lanes(state: &LogState) -> impl Iterator<Item = (LaneId, Seq)> {
    let floors = state.seen.floors().chain(state.bees.values().flat_map(|bee| bee.seen.floors()));
    floors.filter(|(lane, _)| lane.is_lasting())
}
