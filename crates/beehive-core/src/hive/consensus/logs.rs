//! A hive's logs: which app's records go to which log, and the state that the logs share.

use crate::cell::CellId;
use crate::hive::admission::outside_lanes::{Admitted, LaneNumbers, Lanes, Numbers, OutsideLane, Room};
use crate::hive::consensus::journal::{
    Acked, AppId, Journal, LaneId, LogState, MessageId, Record, Seq, Waiting,
};
use crate::hive::consensus::log_client::{LogClient, Place};
use crate::hive::consensus::logged_clock::TimeLogged;
use crate::hive::consensus::quarantine::Quarantine;
use crate::hive::consensus::registry::{ColonyId, colony_of};
use crate::mutant::{Mutant, Mutation};
use crate::time::Time;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::Notify;

/// The logs of a hive. `W` is the type of the bees that a log wakes when it decides their entries.
pub(crate) struct Logs<W: ?Sized> {
    clients: Vec<Arc<LogClient<W>>>,
    /// For each app, the positions of its logs in `clients`, starting with its home log; empty if the app's
    /// state is in memory only.
    of_apps: Vec<Vec<usize>>,
    /// The lanes of senders outside the hive.
    pub(crate) lanes: Arc<Lanes>,
    /// Notified when a log of a hive in a cluster has committed a change of its bees.
    pub(crate) changed: Arc<Notify>,
    /// Messages that may have crashed the previous process.
    pub(crate) quarantine: Arc<Quarantine>,
    /// The lane of messages emitted through the [`Hive`](crate::Hive) itself. If a few of them hold it up, because their
    /// logs cannot commit, those that follow get another lane.
    own_lane: Mutex<Arc<OutsideLane>>,
    time: Mutex<TimeLogged>,
}

impl<W: ?Sized> Logs<W> {
    /// Continues each log after the last entry in its state. `of_apps` contains the positions of each app's
    /// logs in `logs`. `chance` is the random id of the hive's own lane, and `now` the hive's time. `cluster` contains the
    /// colonies of the logs and the lane that the registry has assigned to the hive, if the hive is in a cluster.
    pub(crate) fn new(
        logs: &[(Arc<dyn Journal>, LogState)],
        of_apps: Vec<Vec<usize>>,
        (chance, now): (u64, Time),
        cluster: Option<(&[ColonyId], LaneId)>,
        mutation: Mutation,
    ) -> Logs<W> {
        let is_clustered = cluster.is_some();
        let colonies = cluster.map(|(colonies, _)| colonies);
        // in a cluster, a message may go to any hive, so all messages between bees are acknowledged
        let bees_move = is_clustered || of_apps.iter().any(|logs| logs.len() > 1);
        let remembered = logs.iter().flat_map(|(_, state)| lasting_lanes(state));
        let numbers = cluster.map(|(_, lane)| LaneNumbers::of(lane));
        let lanes = Arc::new(Lanes::new(remembered, bees_move, numbers, mutation));
        let quarantine = Arc::new(Quarantine::new(logs, mutation));
        let changed = Arc::<Notify>::default();
        let client = |(at, (journal, state)): (usize, &(Arc<dyn Journal>, LogState))| {
            // the apps whose bees are all in this log and stay there; none if bees may move
            let alone = of_apps.iter().map(|logs| !bees_move && *logs == [at]).collect();
            let colony = match colonies {
                Some(colonies) => colonies.get(at).copied().unwrap_or_default(),
                None => colony_of(at),
            };
            let changed = changed.clone();
            let place = Place { position: at, alone, bees_move, colony, is_clustered, changed };
            LogClient::new(journal.clone(), state, place, lanes.clone(), quarantine.clone())
        };
        Logs {
            clients: logs.iter().enumerate().map(client).collect(),
            own_lane: Mutex::new(lanes.open(if mutation.breaks(Mutant::SameLane) { 1 } else { chance })),
            of_apps,
            lanes: lanes.clone(),
            quarantine: quarantine.clone(),
            changed: changed.clone(),
            time: Mutex::new(TimeLogged::new(now)),
        }
    }

    /// Admits a message on the hive's own lane.
    pub(crate) fn admit_own(&self) -> (Numbers, Arc<Admitted>) {
        self.own_lane.lock().admit_next(1)
    }

    /// Returns the hive's own lane, unless it is held up: then ends it, and opens another one with this random id.
    fn own_lane(&self, chance: impl FnOnce() -> u64) -> Arc<OutsideLane> {
        let mut own = self.own_lane.lock();
        if own.room_for_next() == Room::HeldUp {
            let held_up = std::mem::replace(&mut *own, self.lanes.open(chance()));
            self.lanes.end(&held_up)
        }
        own.clone()
    }

    /// Checks whether the hive's own lane, or the one that replaces it, has room for a message.
    pub(crate) fn has_room_for_own(&self, chance: impl FnOnce() -> u64) -> bool {
        self.own_lane(chance).room_for_next() == Room::Free
    }

    /// Waits until the hive's own lane, or the one that replaces it, may have room for a message. Cancel-safe.
    pub(crate) async fn room_for_own(&self, chance: impl Fn() -> u64) {
        loop {
            let own = self.own_lane(&chance);
            own.room_or_held_up().await;
            if own.room_for_next() == Room::Free {
                return;
            }
        }
    }

    /// Logs the time at intervals of [`TIME_LOGGED_EVERY`](crate::limits::TIME_LOGGED_EVERY), in the first log.
    pub(crate) fn log_time(&self, now: Time) {
        if let Some(log) = self.clients.first() {
            self.time.lock().log(now, log)
        }
    }

    /// Logs the time at which the hive stops.
    pub(crate) fn log_last_time(&self, now: Time) {
        if let Some(log) = self.clients.first() {
            drop(log.say(Record::Time(now)))
        }
    }

    /// Returns the clients of all logs.
    pub(crate) fn clients(&self) -> &[Arc<LogClient<W>>] {
        &self.clients
    }

    /// Returns the client of an app's home log. Returns `None` if the app's state is in memory only.
    pub(crate) fn of_app(&self, app: AppId) -> Option<&Arc<LogClient<W>>> {
        self.clients.get(*self.of_apps.get(app.index())?.first()?)
    }

    /// Returns the clients of all logs that may contain bees of an app, starting with its home log.
    pub(crate) fn all_of_app(&self, app: AppId) -> Vec<Arc<LogClient<W>>> {
        let positions = self.of_apps.get(app.index()).into_iter().flatten();
        positions.filter_map(|at| self.clients.get(*at)).cloned().collect()
    }

    /// Acknowledges messages to the log whose outbox contains them. The records that consumed the messages
    /// must already be committed.
    pub(crate) fn acknowledge(&self, acked: Acked) {
        if let Some(client) = self.lanes.bees.log_for(&acked).and_then(|at| self.clients.get(at)) {
            if self.lanes.breaks(Mutant::FloorOnVolatileAck) {
                self.lanes.bees.acknowledged(client.position(), &acked)
            }
            client.acknowledge(acked)
        }
    }

    /// Tells the home log of app `app` that a sweep has visited cells. The records of the visits must already
    /// be committed.
    pub(crate) fn visited(&self, app: AppId, sweep: MessageId, cells: &[CellId]) {
        if let Some(home) = self.of_app(app) {
            home.visited(sweep, cells)
        }
    }

    /// Appends the consumed messages, acknowledgments and visits collected by the clients: see
    /// [`LogClient::log_consumed`].
    pub(crate) fn log_consumed(&self) {
        self.redirect_acknowledgments();
        self.clients.iter().for_each(|client| client.log_consumed())
    }

    /// Same as [`Logs::log_consumed`], at intervals: see [`LogClient::log_consumed_if_due`].
    pub(crate) fn log_consumed_if_due(&self) {
        self.redirect_acknowledgments();
        self.clients.iter().for_each(|client| client.log_consumed_if_due())
    }

    fn redirect_acknowledgments(&self) {
        self.lanes.bees.take_misdirected().into_iter().for_each(|acked| self.acknowledge(acked))
    }

    /// Restores the bees' lanes. Tracked messages still in an outbox count as unacknowledged. Returns the
    /// lanes that have no unacknowledged message and whose bees no longer exist: the logs may forget these
    /// lanes. `foreign` contains the lanes that may belong to senders in other hives.
    pub(crate) fn restore_lanes(
        &self,
        logs: &[(Arc<dyn Journal>, LogState)],
        foreign: &BTreeSet<LaneId>,
    ) -> Vec<LaneId> {
        let bees = &self.lanes.bees;
        for (at, (client, (_, state))) in self.clients.iter().zip(logs).enumerate() {
            let sweeps = state.sweeps.values().map(|sweep| &sweep.waiting);
            let mut waiting: Vec<_> = state.outbox.values().chain(sweeps).collect();
            waiting.sort_unstable_by_key(|waiting| waiting.order);
            for Waiting { emit, .. } in waiting {
                if client.tracks(emit.id.app) && !emit.id.lane.is_outside() {
                    bees.sent(at, [emit])
                }
            }
            state.next_seqs.iter().for_each(|(lane, next)| bees.restore(*lane, *next, at));
            if client.is_clustered() {
                // receivers in other hives may ask for their floors
                let senders = state.bees.iter().filter(|(_, image)| image.next_seq > Seq::ZERO);
                senders.for_each(|((app, bee), image)| {
                    bees.restore(LaneId::of_bee(*app, *bee), image.next_seq, at)
                })
            }
        }

        let tables =
            logs.iter().flat_map(|(_, state)| state.bees.values().map(|bee| &bee.seen).chain([&state.seen]));
        let in_tables = tables.flat_map(|seen| seen.floors()).map(|(lane, _)| lane);
        // these are the lanes restored just now
        let in_outboxes = logs.iter().flat_map(|(_, state)| state.outbox.keys().chain(state.sweeps.keys()));
        let open = in_outboxes.map(|id| id.lane).filter(|lane| bees.knows(*lane));
        let lanes: BTreeSet<LaneId> = in_tables.chain(open).filter(|lane| !lane.is_outside()).collect();
        let mut dead = Vec::new();
        let outside = foreign.iter().filter(|lane| lane.is_outside());
        outside.for_each(|lane| self.lanes.foreign.remember(*lane));
        for lane in lanes {
            let Some(bee) = lane.bee() else {
                if !bees.knows(lane) && foreign.contains(&lane) {
                    self.lanes.foreign.remember(lane)
                }
                continue;
            };
            let images = logs.iter().enumerate();
            let image = images.filter_map(|(at, (_, state))| Some((at, state.bees.get(&bee)?))).next();
            match image {
                Some((at, image)) => bees.restore(lane, image.next_seq, at),
                None if bees.is_open(lane) => bees.end(lane),
                None if foreign.contains(&lane) => self.lanes.foreign.remember(lane),
                None => dead.push(lane),
            }
        }
        dead
    }
}

/// Returns the resumable lanes in a log, each with a floor.
fn lasting_lanes(state: &LogState) -> impl Iterator<Item = (LaneId, Seq)> {
    let floors = state.seen.floors().chain(state.bees.values().flat_map(|bee| bee.seen.floors()));
    floors.filter(|(lane, _)| lane.is_lasting())
}
