//! A hive's logs: which app's records go to which log, and the state that the logs share.

use crate::cell::{BeeId, CellId, HiveId};
use crate::hive::admission::offices::Office;
use crate::hive::admission::outside_lanes::{LaneNumbers, Lanes};
use crate::hive::consensus::journal::{
    Acked, AppId, Emit, Journal, LaneId, LogState, MessageId, Record, Seq,
};
use crate::hive::consensus::log_client::{LogClient, Place};
use crate::hive::consensus::logged_clock::TimeLogged;
use crate::hive::consensus::quarantine::Quarantine;
use crate::hive::consensus::registry::{ColonyId, RegistryState, colony_of};
use crate::limits;
use crate::mutant::{Mutant, Mutation};
use crate::time::Time;
use beehive_protocol::Incarnation;
use crossbeam_utils::sync::ShardedLock;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use tokio::sync::Notify;

/// Clients of some logs. Most hives lead only a few.
pub(crate) type Several<W> = SmallVec<[Arc<LogClient<W>>; 4]>;

/// The clients of a hive's logs, by position. A position is free again when the hive has left its log. Every turn reads the
/// table, so readers on different threads do not share a lock.
pub(crate) struct Clients<W: ?Sized> {
    slots: ShardedLock<Vec<Option<Arc<LogClient<W>>>>>,
    /// For each position, whether it is in use, or reserved for a client which nobody has seen yet.
    reserved: Mutex<Vec<bool>>,
    /// The hive, and its incarnation.
    hive: (HiveId, Incarnation),
    /// Notified when the hive has left a log.
    left: Notify,
}

impl<W: ?Sized> Clients<W> {
    fn with_room_for(logs: usize, hive: (HiveId, Incarnation)) -> Clients<W> {
        let slots = ShardedLock::new((0..logs).map(|_| None).collect());
        Clients { slots, reserved: Mutex::new(vec![false; logs]), hive, left: Notify::new() }
    }

    /// Reserves a position. Returns `None` if none is left.
    fn reserve(&self) -> Option<usize> {
        let mut reserved = self.reserved.lock();
        let free = reserved.iter().position(|is_reserved| !is_reserved)?;
        reserved[free] = true;
        Some(free)
    }

    /// Frees a position. Its client is not in the table, or never was.
    fn free(&self, position: usize) {
        self.reserved.lock()[position] = false
    }

    /// Returns the number of positions that are in use or reserved.
    #[cfg(feature = "testing")]
    pub(crate) fn positions_in_use(&self) -> usize {
        self.reserved.lock().iter().filter(|is_reserved| **is_reserved).count()
    }

    fn read<R>(&self, read: impl FnOnce(&[Option<Arc<LogClient<W>>>]) -> R) -> R {
        read(&self.slots.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, position: usize, client: Option<Arc<LogClient<W>>>) -> Option<Arc<LogClient<W>>> {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        slots.get_mut(position).and_then(|slot| std::mem::replace(slot, client))
    }

    /// Adds a client at the position that was reserved for it. From now on, all of the hive sees it.
    pub(crate) fn publish(&self, client: &Arc<LogClient<W>>) {
        drop(self.set(client.position(), Some(client.clone())))
    }

    /// Removes the client of a log that the hive has left. Another log may get its position.
    pub(crate) fn remove(&self, client: &LogClient<W>) {
        drop(self.set(client.position(), None));
        self.free(client.position());
        self.left.notify_waiters()
    }

    /// Returns the client at a position.
    #[inline]
    pub(crate) fn get(&self, position: usize) -> Option<Arc<LogClient<W>>> {
        self.read(|slots| slots.get(position)?.clone())
    }

    /// Returns all clients, in the order of their positions, also those of logs that the hive is leaving.
    pub(crate) fn all(&self) -> Several<W> {
        self.read(|slots| slots.iter().flatten().cloned().collect())
    }

    /// Returns the clients with an open entry.
    #[inline]
    pub(crate) fn open(&self) -> Several<W> {
        self.read(|slots| slots.iter().flatten().filter(|client| client.has_open()).cloned().collect())
    }

    /// Returns the client of a log in this office. Returns `None` if the office has ended.
    pub(crate) fn in_office(&self, office: Office) -> Option<Arc<LogClient<W>>> {
        self.get(office.position()).filter(|client| client.office() == office && !client.is_deposed())
    }

    /// Returns the client of a colony's log. Returns `None` if the hive does not lead the colony.
    pub(crate) fn of_colony(&self, colony: ColonyId) -> Option<Arc<LogClient<W>>> {
        let is_it = |client: &&Arc<LogClient<W>>| client.colony() == colony && !client.is_deposed();
        self.read(|slots| slots.iter().flatten().find(is_it).cloned())
    }

    /// Returns the clients of the logs that the hive no longer leads according to a state of the registry. Another hive has told
    /// the registry that it leads the colony, or another incarnation of this one, and did so before it did anything else.
    pub(crate) fn lost(&self, view: &RegistryState) -> Several<W> {
        let (hive, incarnation) = self.hive;
        let is_present = view.hive(hive).is_some_and(|entry| entry.incarnation == incarnation);
        let is_lost = |client: &&Arc<LogClient<W>>| {
            let leads = view.colony(client.colony()).is_some_and(|entry| entry.leader == Some(hive));
            client.is_clustered() && !(leads && is_present) && !client.is_deposed()
        };
        self.read(|slots| slots.iter().flatten().filter(is_lost).cloned().collect())
    }

    /// Waits until no client of a colony is left. Returns `false` at once if the hive leads the colony. Cancel-safe.
    pub(crate) async fn have_left(&self, colony: ColonyId) -> bool {
        loop {
            let left = self.left.notified();
            let is_it = |client: &&Arc<LogClient<W>>| client.colony() == colony;
            match self.read(|slots| slots.iter().flatten().find(is_it).cloned()) {
                None => return true,
                Some(client) if !client.is_deposed() => return false,
                Some(_) => left.await,
            }
        }
    }
}

/// Checks whether bees may move from one log to another. `of_apps` contains the positions of each app's logs. In a cluster, a message
/// may go to any hive, so all messages between bees are acknowledged, as if bees moved.
pub(crate) fn bees_move(is_clustered: bool, of_apps: &[Vec<usize>]) -> bool {
    is_clustered || of_apps.iter().any(|logs| logs.len() > 1)
}

/// The logs of a hive. `W` is the type of the bees that a log wakes when it decides their entries.
pub(crate) struct Logs<W: ?Sized> {
    clients: Arc<Clients<W>>,
    /// For each app, the positions of its logs in `clients`, starting with its home log; empty if the app's
    /// state is in memory only.
    of_apps: Vec<Vec<usize>>,
    /// The lanes of senders outside the hive.
    pub(crate) lanes: Arc<Lanes>,
    /// Notified when a log of a hive in a cluster has committed a change of its bees.
    pub(crate) changed: Arc<Notify>,
    /// Messages that may have crashed the previous process.
    pub(crate) quarantine: Arc<Quarantine>,
    time: Mutex<TimeLogged>,
    /// The colonies that the hive is about to lead.
    taking: Mutex<BTreeSet<ColonyId>>,
    /// Held by a hive that begins to lead a log while it runs, from the moment at which it compares the log with the registry
    /// until the log is [published](Clients::publish). Of two logs that were taken at the same time, one could contain a
    /// sender and the other one what the sender's receivers remember. The second one must find all lanes of the first one in
    /// the table or none of them: otherwise it takes a sender whose messages are there, and whose bee is not, for one that
    /// has ended.
    pub(crate) one_at_a_time: tokio::sync::Mutex<()>,
    /// Number of apps.
    apps: usize,
}

impl<W: ?Sized> Logs<W> {
    /// Continues each log after the last entry in its state. `of_apps` contains the positions of each app's
    /// logs in `logs`. `now` is the hive's time. `cluster` contains the
    /// hive, the colonies of the logs and the lane that the registry has assigned to the hive, if the hive is in a cluster.
    pub(crate) fn new(
        logs: &[(Arc<dyn Journal>, LogState)],
        of_apps: Vec<Vec<usize>>,
        now: Time,
        cluster: Option<((HiveId, Incarnation), &[ColonyId], LaneId)>,
        mutation: Mutation,
    ) -> Logs<W> {
        let is_clustered = cluster.is_some();
        let colonies = cluster.map(|(_, colonies, _)| colonies);
        let bees_move = bees_move(is_clustered, &of_apps);
        let remembered = logs.iter().flat_map(|(_, state)| lasting_lanes(state));
        let numbers = cluster.map(|(.., lane)| LaneNumbers::of(lane));
        let lanes = Arc::new(Lanes::new(remembered, bees_move, numbers, mutation));
        let room = logs.len() + if is_clustered { limits::COLONIES_TAKEN_MAX } else { 0 };
        let clients =
            Clients::with_room_for(room, cluster.map_or((HiveId(0), Incarnation(0)), |(hive, ..)| hive));
        let quarantine = Arc::new(Quarantine::new(logs, room, mutation));
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
        for client in logs.iter().enumerate().map(client) {
            let _ = clients.reserve();
            clients.publish(&client)
        }
        Logs {
            clients: Arc::new(clients),
            taking: Mutex::default(),
            one_at_a_time: tokio::sync::Mutex::default(),
            apps: of_apps.len(),
            of_apps,
            lanes: lanes.clone(),
            quarantine: quarantine.clone(),
            changed: changed.clone(),
            time: Mutex::new(TimeLogged::new(now)),
        }
    }

    /// Notes that the hive is about to lead a colony. Returns `false` if it is already.
    pub(crate) fn begin_to_take(&self, colony: ColonyId) -> bool {
        self.taking.lock().insert(colony)
    }

    /// Notes that the hive is no longer about to lead a colony: it leads it, or it does not.
    pub(crate) fn end_to_take(&self, colony: ColonyId) {
        self.taking.lock().remove(&colony);
    }

    /// Creates the client of a log that this hive, which is in a cluster, begins to lead while it runs. Nobody sees the
    /// client before it is [published](Clients::publish). Returns `None` if the hive has no room for another log.
    pub(crate) fn take(
        &self,
        journal: Arc<dyn Journal>,
        state: &LogState,
        colony: ColonyId,
    ) -> Option<Arc<LogClient<W>>> {
        let position = self.clients.reserve()?;
        for (lane, floor) in lasting_lanes(state) {
            let _ = self.lanes.resume(lane.0 >> 2, floor);
        }
        let (alone, changed) = (vec![false; self.apps], self.changed.clone());
        let place = Place { position, alone, bees_move: true, colony, is_clustered: true, changed };
        Some(LogClient::new(journal, state, place, self.lanes.clone(), self.quarantine.clone()))
    }

    /// Gives up a client that was [taken](Logs::take) and not published: it appends nothing more, and another one may get its
    /// position.
    pub(crate) fn give_back(&self, client: Arc<LogClient<W>>) {
        let position = client.position();
        self.lanes.bees.offices.end(client.office());
        client.close();
        // what the journal still reports reaches nobody, because it does not keep the client
        drop(client);
        self.quarantine.forget(position);
        self.clients.free(position)
    }

    /// Returns the positions of an app's logs, starting with its home log. There are none if the app's state is in memory only.
    pub(crate) fn positions_of(&self, app: AppId) -> &[usize] {
        self.of_apps.get(app.index()).map_or(&[], Vec::as_slice)
    }

    /// Logs the time at intervals of [`TIME_LOGGED_EVERY`](crate::limits::TIME_LOGGED_EVERY), in the first log.
    pub(crate) fn log_time(&self, now: Time) {
        if let Some(log) = self.clients.all().first() {
            self.time.lock().log(now, log)
        }
    }

    /// Logs the time at which the hive stops.
    pub(crate) fn log_last_time(&self, now: Time) {
        if let Some(log) = self.clients.all().first() {
            drop(log.say(Record::Time(now)))
        }
    }

    /// Returns the clients of all logs.
    pub(crate) fn clients(&self) -> &Arc<Clients<W>> {
        &self.clients
    }

    /// Returns the client of an app's home log. Returns `None` if the app's state is in memory only. If a hive of a cluster has lost
    /// that log, any other one that it leads is the home; `None` if there is none.
    pub(crate) fn of_app(&self, app: AppId) -> Option<Arc<LogClient<W>>> {
        let home = *self.of_apps.get(app.index())?.first()?;
        let leads = |client: &Arc<LogClient<W>>| !client.is_deposed();
        self.clients.get(home).filter(leads).or_else(|| self.clients.all().into_iter().find(leads))
    }

    /// Returns the clients of all logs that may contain bees of an app, starting with its home log.
    pub(crate) fn all_of_app(&self, app: AppId) -> Vec<Arc<LogClient<W>>> {
        let positions = self.of_apps.get(app.index()).into_iter().flatten();
        positions.filter_map(|at| self.clients.get(*at)).collect()
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

    /// Returns the client of the log that records what the stateless handlers of `message_id.app` do with a message: the
    /// log whose outbox contains the message, if the hive is in a cluster. Whoever leads that log later then knows whether
    /// the message has been handled. Otherwise, it is the app's home log.
    pub(crate) fn for_stateless(&self, message_id: MessageId) -> Option<Arc<LogClient<W>>> {
        let home = self.of_app(message_id.app)?;
        if !home.is_clustered() || self.lanes.breaks(Mutant::StatelessAtHome) {
            return Some(home);
        }
        let of_sender = self.lanes.bees.log_of(message_id.lane).and_then(|at| self.clients.get(at));
        Some(of_sender.unwrap_or(home))
    }

    /// Tells the log of a sweep over app `app` that the sweep has visited cells. The records of the visits must already
    /// be committed.
    pub(crate) fn visited(&self, app: AppId, sweep: MessageId, cells: &[CellId]) {
        // a sweep that another hive has begun is in the log of that hive's colony
        let of_colony = sweep.lane.colony_of_app().and_then(|colony| self.clients.of_colony(colony));
        if let Some(log) = of_colony.or_else(|| self.of_app(app)) {
            log.visited(sweep, cells)
        }
    }

    /// Appends the consumed messages, acknowledgments and visits collected by the clients: see
    /// [`LogClient::log_consumed`].
    pub(crate) fn log_consumed(&self) {
        self.redirect_acknowledgments();
        self.clients.all().iter().for_each(|client| client.log_consumed())
    }

    /// Same as [`Logs::log_consumed`], at intervals: see [`LogClient::log_consumed_if_due`].
    pub(crate) fn log_consumed_if_due(&self) {
        self.redirect_acknowledgments();
        self.clients.all().iter().for_each(|client| client.log_consumed_if_due())
    }

    fn redirect_acknowledgments(&self) {
        self.lanes.bees.take_misdirected().into_iter().for_each(|acked| self.acknowledge(acked))
    }

    /// Restores the bees' lanes from logs that this hive begins to lead. Tracked messages still in an outbox count as
    /// unacknowledged. Returns the lanes that have no unacknowledged message and whose bees no longer exist: the logs may
    /// forget these lanes. `foreign` contains the lanes that may belong to senders in other hives.
    pub(crate) fn restore_lanes(
        &self,
        logs: &[(Arc<LogClient<W>>, LogState)],
        foreign: &BTreeSet<LaneId>,
    ) -> Vec<LaneId> {
        let bees = &self.lanes.bees;
        for ((app, bee), image) in logs.iter().flat_map(|(_, state)| &state.bees) {
            bees.supersede((*app, *bee), image.epoch, |lane| self.lanes.foreign.remember(lane))
        }
        let in_tables = remembered_lanes(logs.iter().map(|(_, state)| state));
        // the senders on these lanes are in the hive's other logs, or have just ended there
        let known_before: BTreeSet<LaneId> =
            in_tables.iter().copied().filter(|lane| bees.knows(*lane)).collect();

        // the lanes with unhandled messages in these logs. The table may contain unhandled messages on other lanes, too: those of
        // the bees in the hive's other logs, and of bees that move to this hive meanwhile
        let mut open = BTreeSet::new();
        for (client, state) in logs {
            let office = client.office();
            let sweeps = state.sweeps.values().map(|sweep| &sweep.waiting);
            let mut waiting: Vec<_> = state.outbox.values().chain(sweeps).collect();
            waiting.sort_unstable_by_key(|waiting| waiting.order);
            let emits = waiting.into_iter().map(|waiting| &waiting.emit);
            let emits: Vec<&Emit> =
                emits.filter(|emit| client.tracks(emit.id.app) && !emit.id.lane.is_outside()).collect();
            // A lane appears with all its messages at once. If the message to one app were there before the one to another
            // app, the lane's floor for the other app would be above its message for a moment. A bee of the other app that
            // runs in this moment would take the message for a duplicate when it comes
            for (lane, emits) in bees.by_lane(emits.into_iter()) {
                bees.sent_in_order(office, emits);
                open.insert(lane);
            }
            for (lane, next) in &state.next_seqs {
                // an app that has got another home since sends there
                let home = lane.app().filter(|_| !client.is_clustered()).and_then(|app| self.of_app(app));
                bees.restore(*lane, *next, home.map_or(office, |home| home.office()))
            }
            if client.is_clustered() {
                // receivers in other hives may ask for their floors
                let senders = state.bees.iter().filter(|(_, image)| image.next_seq > Seq::ZERO);
                senders.for_each(|((app, bee), image)| {
                    bees.restore(LaneId::of_bee(*app, *bee), image.next_seq, office)
                })
            }
        }

        let in_tables = in_tables.iter().copied().filter(|lane| !known_before.contains(lane));
        let lanes: BTreeSet<LaneId> =
            in_tables.chain(open.iter().copied()).filter(|lane| !lane.is_outside()).collect();
        let (mut dead, lanes_here) = (Vec::new(), lanes.clone());
        let outside = foreign.iter().filter(|lane| lane.is_outside());
        outside.for_each(|lane| self.lanes.foreign.remember(*lane));
        for lane in lanes {
            let Some(bee) = lane.bee() else {
                if !bees.knows(lane) && foreign.contains(&lane) {
                    self.lanes.foreign.remember(lane)
                }
                continue;
            };
            let mut images = logs.iter();
            let image = images.find_map(|(log, state)| Some((log.office(), state.bees.get(&bee)?)));
            match image {
                Some((office, image)) => bees.restore(lane, image.next_seq, office),
                None if open.contains(&lane) => bees.end(lane),
                None if foreign.contains(&lane) => self.lanes.foreign.remember(lane),
                None => dead.push(lane),
            }
        }
        if !logs.iter().any(|(log, _)| log.is_clustered()) {
            return dead;
        }
        // a hive that begins to lead a log while it runs has taken the lanes of its bees for those of another hive
        let bees_of = |(app, bee): &(AppId, BeeId)| LaneId::of_bee(*app, *bee);
        let own = logs.iter().flat_map(|(_, state)| state.bees.keys().map(bees_of));
        let apps = logs.iter().flat_map(|(_, state)| state.next_seqs.keys().copied());
        let own: Vec<LaneId> = own.chain(apps).chain(lanes_here).filter(|lane| bees.knows(*lane)).collect();
        self.lanes.foreign.forget(&own);
        dead
    }
}

/// Returns all lanes that the dedup tables in these states list.
pub(crate) fn remembered_lanes<'a>(states: impl Iterator<Item = &'a LogState>) -> BTreeSet<LaneId> {
    let tables = states.flat_map(|state| state.bees.values().map(|bee| &bee.seen).chain([&state.seen]));
    tables.flat_map(|seen| seen.floors()).map(|(lane, _)| lane).collect()
}

/// Returns the resumable lanes in a log, each with a floor.
fn lasting_lanes(state: &LogState) -> impl Iterator<Item = (LaneId, Seq)> {
    let floors = state.seen.floors().chain(state.bees.values().flat_map(|bee| bee.seen.floors()));
    floors.filter(|(lane, _)| lane.is_lasting())
}
