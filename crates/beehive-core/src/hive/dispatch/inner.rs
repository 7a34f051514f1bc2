//! `HiveInner`, the state shared by all parts of a hive, and `Hive`, the public handle to it.

use crate::cell::{BeeId, HiveId};
use crate::hash::HashMap;
use crate::hive::admission::credits::{Cause, InFlight};
use crate::hive::admission::deferred_wakes;
use crate::hive::admission::entrances::{Entrance, Entrances};
use crate::hive::admission::lifecycle::Stopped;
use crate::hive::admission::offices::Office;
use crate::hive::admission::outside_lanes::{Admitted, Routing};
use crate::hive::admission::timer_wheel::TimerWheel;
use crate::hive::consensus::journal::{Acked, AppId, Emit, LaneId, MessageId};
use crate::hive::consensus::logged_clock::LoggedClock;
use crate::hive::consensus::logs::{Logs, Several};
#[cfg(feature = "testing")]
use crate::hive::dispatch::app_access::AppAccess;
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::probe::Probe;
use crate::hive::dispatch::sender::queue::SenderQueue;
use crate::hive::dispatch::turn::{Executing, Fire, Link, Place, Stateless, Turn};
use crate::hive::dispatch::types::message_types::Types;
use crate::hive::dispatch::upcoming::Upcoming;
use crate::hive::dispatch::workers::Workers;
use crate::hive::links::frame::Body;
use crate::hive::links::links::Links;
use crate::hive::message::batch::{Address, AnswerSink, Batch, Source};
use crate::hive::message::dead_letters::DeadLetters;
use crate::hive::message::inbox::IoBees;
use crate::hive::message::reports::{AppStatus, StuckStatus};
use crate::message::Message;
use crate::mutant::Mutant;
use crate::seams::{BoxFuture, Platform};
use crate::state::{ConfigError, nearest_name};
use crate::time::Time;
#[cfg(feature = "testing")]
use crate::view::Views;
use crossbeam_utils::CachePadded;
use parking_lot::{Mutex, RwLock};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// An app with its type erased.
pub(crate) trait AnyApp: Send + Sync {
    /// Returns the app's name.
    fn name(&self) -> &'static str;
    /// Returns the name of a handler; `handler` is its number in the app.
    fn handler_name(&self, handler: usize) -> &'static str;
    /// Returns the name of the message type that a handler accepts.
    fn handles(&self, handler: usize) -> &'static str;
    /// Records that a handler is holding its thread. `too_long` is true if it has done so for longer than
    /// `Builder::stuck_after`.
    fn note_held(&self, handler: usize, now: Time, too_long: bool);
    /// Returns the status of the app. If `sizes` is set, the status contains the state sizes of the busiest
    /// bees, in bytes. `apps` contains the names of all apps, by number.
    fn status(&self, sizes: bool, apps: &[&'static str]) -> AppStatus;
    /// Tries to retire the bees that are idle and empty.
    fn retire_idle(self: Arc<Self>, hive: &Arc<HiveInner>);
    /// Tells the registry that these lanes have ended. Ignores the lanes of other apps.
    fn lanes_ended(self: Arc<Self>, lanes: &[LaneId], hive: &Arc<HiveInner>);
    /// Notes bees of any app that have ended, although the replica of the registry does not know it yet.
    fn note_ended(&self, bees: &[BeeId]);
    /// Forgets these bees, because the replica of the registry knows that they have ended.
    fn forget_ended(&self, bees: &[BeeId]);
    /// Drops all bees together with the message runs queued for them. Returns the number of these runs.
    fn clear(&self) -> usize;
    /// Returns the views of the app's dictionaries, if anything reads them.
    #[cfg(feature = "testing")]
    fn views(&self) -> Option<&Arc<Views>>;
    /// Returns the `AppRuntime`, to be downcast.
    fn as_any(&self) -> &dyn Any;
    /// Returns the total size of the dedup tables of the app's idle bees, in the unit of
    /// `DedupTable::size`.
    fn remembered(&self) -> usize;
    /// Parses new settings.
    fn change(self: Arc<Self>, table: toml::Table) -> Result<Change, ConfigError>;
    /// Checks whether the current settings are those in `table`.
    fn has_settings(&self, table: &toml::Table) -> bool;
    /// Returns the version of the current settings.
    fn settings_version(&self) -> u32;
    /// Returns the number of copies that `#[app(replication = n)]` requests.
    fn replication_asked(&self) -> u32;
    /// Returns the operations that only tests need.
    #[cfg(feature = "testing")]
    fn for_tests(self: Arc<Self>) -> Arc<dyn AppAccess>;
}

/// New settings accepted but not yet adopted by an app.
pub(crate) struct Change {
    /// Number of the app.
    pub(crate) app: u16,
    /// The settings.
    pub(crate) table: toml::Table,
    /// The settings, in the form used in the log.
    pub(crate) text: String,
    /// Makes these settings the current ones, as the given version.
    pub(crate) put: Box<dyn FnOnce(u32) + Send>,
}

/// App, handler, and name of the emitted message type.
pub(crate) type EmitKey = (u16, u16, &'static str);

/// A hive's shared state.
pub(crate) struct HiveInner {
    pub(crate) id: HiveId,
    /// Number of the hive in this process. It distinguishes the hives of one process.
    pub(crate) instance: u64,
    /// Provides the clock, random numbers, tasks and threads.
    pub(crate) platform: Arc<dyn Platform>,
    /// The known message types, and their receivers.
    pub(crate) types: Arc<Types>,
    pub(crate) io: Arc<IoBees>,
    pub(crate) timers: TimerWheel<Fire>,
    /// The messages that failed.
    pub(crate) dead_letters: DeadLetters,
    /// The credits and lanes of requests and messages that enter through a [`Hive`].
    pub(crate) entrances: Entrances,
    /// The work from outside that is not yet done.
    pub(crate) in_flight: Arc<InFlight>,
    /// The sender's queue of messages that enter through a [`Hive`].
    pub(crate) queue: SenderQueue,
    /// The links to the other hives; `None` without a cluster.
    pub(crate) links: Option<Arc<Links>>,
    /// The object that moves and merges bees, if the hive is in a cluster. Its type is in a room above this one.
    pub(in crate::hive) reconciler: OnceLock<Weak<dyn Any + Send + Sync>>,
    /// The logs; `None` without a journal.
    pub(crate) logs: Option<Logs<dyn Executing>>,
    /// The observer attached by a test; see [`HiveInner::probe`].
    pub(in crate::hive) probe: Option<Arc<dyn Probe>>,
    /// The apps, by number.
    pub(crate) apps: RwLock<Vec<Arc<dyn AnyApp>>>,
    pub(in crate::hive) workers: Workers,
    /// The messages that have held their threads for too long, and the time at which each began, by slot.
    pub(in crate::hive) stuck: Mutex<BTreeMap<usize, (StuckStatus, Instant)>>,
    /// The time for which a message may hold its thread before the watchdog reports it.
    pub(in crate::hive) stuck_after: Duration,
    /// The hive verifies one in this many of the messages dropped by a map. 0 turns verification off.
    pub(crate) verify_maps: u32,
    /// Whether the hive was asked to stop. It still handles messages in flight until it is `over`.
    pub(in crate::hive) stopped: AtomicBool,
    /// Whether the hive is over. From then on, no handler begins.
    pub(in crate::hive) over: AtomicBool,
    /// Notified when `stopped` is set.
    pub(crate) stopping: Notify,
    /// Notified when `over` is set.
    pub(crate) ended: Notify,
    /// Notified when the hive has finished stopping.
    pub(in crate::hive) stop_done: Notify,
    /// Whether the call that stopped the hive no longer waits for the logs.
    pub(in crate::hive) stop_is_complete: AtomicBool,
    /// The work that the hive left unfinished when it stopped; `None` until it has stopped.
    pub(in crate::hive) report: Mutex<Option<Stopped>>,
    /// Number of IO bees that have not returned.
    pub(in crate::hive) tasks: AtomicUsize,
    /// Notified when `tasks` becomes zero.
    pub(in crate::hive) tasks_done: Notify,
    /// The settings that are not in force yet.
    pub(in crate::hive) upcoming: Upcoming,
    /// Counters of emitted messages.
    pub(in crate::hive) emits: Mutex<HashMap<EmitKey, Arc<AtomicU64>>>,
    pub(in crate::hive) unhandled: Mutex<BTreeSet<&'static str>>,
    /// Number of times that outputs were dropped because a causal chain was too long or a record too large.
    pub(in crate::hive) cycles: AtomicU64,
    /// The latest time read by any thread, in nanoseconds. It has its own cache line, because every turn
    /// writes it.
    pub(in crate::hive) last_now: CachePadded<AtomicU64>,
    /// Turns the platform's time into the hive's.
    pub(in crate::hive) clock: LoggedClock,
    /// The time at which the hive started.
    pub(in crate::hive) started: Time,
}

/// A handle to a running hive; cheap to clone. Start one with [`Hive::builder`].
#[derive(Clone)]
pub struct Hive(pub(in crate::hive) Arc<HiveInner>);

impl std::fmt::Debug for Hive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hive").field("id", &self.0.id).finish_non_exhaustive()
    }
}

impl Hive {
    pub(crate) fn inner(&self) -> &Arc<HiveInner> {
        &self.0
    }
}

impl Drop for HiveInner {
    fn drop(&mut self) {
        self.log_clients().iter().for_each(|link| link.close())
    }
}

impl HiveInner {
    /// Returns the entrance of messages of type `M`.
    pub(crate) fn entrance<M: Message>(&self) -> Arc<Entrance> {
        self.types.kind::<M>().entrance(|apps| self.entrance_to(apps))
    }

    /// Returns the entrance of messages to these apps.
    pub(crate) fn entrance_to(&self, apps: &[AppId]) -> Arc<Entrance> {
        let logs = self.logs.iter().flat_map(|logs| apps.iter().flat_map(|app| logs.positions_of(*app)));
        self.entrances.of(logs.copied().collect(), || self.platform.random())
    }

    /// Waits until an entrance has room for a message, and takes one of its credits. Cancel-safe.
    pub(crate) async fn room_at(&self, entrance: &Entrance) {
        entrance.room_for_one(|| self.platform.random()).await
    }

    /// Routes a message that entered through a [`Hive`], and for which the caller has taken a credit of its entrance. The
    /// handling bees run at `place`.
    pub(crate) fn route_from_outside<M: Message>(
        self: &Arc<Self>,
        message: M,
        entrance: &Entrance,
        sink: Option<Arc<dyn AnswerSink<M>>>,
        place: Place,
    ) {
        let source = Source::outside(self.id, self.platform.random());
        let cause = Cause::new(&entrance.credits, 1, &self.in_flight);
        let kind = self.types.kind::<M>();
        self.from_outside(source, entrance, cause, place, |source, admitted, cx| {
            if sink.is_some() {
                cx.turn.stateless = Stateless::Apart
            }
            let batch = Arc::new(Batch {
                messages: vec![message],
                passed: None,
                source,
                sink,
                admitted,
                arrival: None,
            });
            kind.route(&batch, 0..1, cx)
        })
    }

    /// Admits one message at an entrance and calls `route` to route it.
    pub(crate) fn from_outside<R>(
        self: &Arc<Self>,
        source: Source,
        entrance: &Entrance,
        cause: Arc<Cause>,
        place: Place,
        route: impl FnOnce(Source, Option<Arc<Admitted>>, &mut RouteContext) -> R,
    ) -> R {
        let mut source = source;
        let admitted = entrance.admit().map(|(numbers, admitted)| {
            source.numbers = numbers;
            admitted
        });

        // close the batch even if `route` panics, because an open batch would block the lane that all
        // callers share
        let _routing = admitted.clone().map(Routing);
        Turn::with(self, place, |turn| {
            turn.cause = Some(cause);
            route(source, admitted, &mut RouteContext::new(&mut self.queue.clone(), turn))
        })
    }

    /// Returns the clients of all logs, or none if the hive has no journal.
    pub(crate) fn log_clients(&self) -> Several<dyn Executing> {
        self.logs.as_ref().map(|logs| logs.clients().all()).unwrap_or_default()
    }

    /// Checks whether the hive still leads the log to which something belongs, or whether it belongs to none.
    #[inline]
    pub(crate) fn holds(&self, office: Office) -> bool {
        office.is_none()
            || self.breaks(Mutant::DeposedSends)
            || self.logs.as_ref().is_none_or(|logs| logs.lanes.bees.offices.holds(office))
    }

    /// Returns the client of the log at a position.
    pub(crate) fn log_at(&self, position: usize) -> Option<Arc<Link>> {
        self.logs.as_ref()?.clients().get(position)
    }

    /// Checks whether a message in an outbox was handled without a bee, according to the log that records this. Returns
    /// `false` if the message needs no acknowledgment: then it leaves the outbox when it is handled. A floor tells nothing
    /// about such a message, because a handler may have derived it from a message of a sender outside the hive, and then it
    /// has the lane and the number of that one.
    pub(crate) fn is_handled_without_bee(&self, emit: &Emit) -> bool {
        let id = emit.id;
        let log = self.log_for_stateless(id).filter(|log| log.acknowledges(id.lane));
        let Some(log) = log.filter(|_| !self.breaks(Mutant::WithoutBeeUnmarked)) else { return false };
        log.without_bee.contains(id, emit.message_type.into())
    }

    /// Returns the client of the log that records what a stateless handler does with a message: see
    /// [`Logs::for_stateless`].
    pub(crate) fn log_for_stateless(&self, message_id: MessageId) -> Option<Arc<Link>> {
        self.logs.as_ref()?.for_stateless(message_id)
    }

    /// Returns the clients of an app's logs, starting with its home log, or none if the app's state is in
    /// memory only.
    pub(crate) fn logs_of(&self, app: AppId) -> Vec<Arc<Link>> {
        self.logs.as_ref().map_or_else(Vec::new, |logs| logs.all_of_app(app))
    }

    /// Acknowledges messages to the log or the hive whose outbox contains them. The records that consumed the messages must
    /// already be committed.
    pub(crate) fn acknowledge(&self, acked: Acked) {
        let Some(logs) = &self.logs else { return };
        // a late copy may have made a lane of this hive look like that of another one
        let links = self.links.as_ref().filter(|_| !logs.lanes.bees.knows(acked.lane));
        let from = links.and_then(|_| logs.lanes.foreign.hive_of(acked.lane));
        match (&self.links, from) {
            (Some(links), Some(from)) => links.send(from, Body::Acked(acked)),
            _ => logs.acknowledge(acked),
        }
    }

    /// Checks whether a test breaks the rule of this mutant.
    #[inline(always)]
    pub(crate) fn breaks(&self, mutant: Mutant) -> bool {
        cfg!(feature = "testing") && self.logs.as_ref().is_some_and(|logs| logs.lanes.breaks(mutant))
    }

    /// Returns the client of an app's home log, or `None` if the app's state is in memory only.
    pub(crate) fn log_of(&self, app: AppId) -> Option<Arc<Link>> {
        self.logs.as_ref()?.of_app(app)
    }

    /// Returns the current time. It never runs backwards, even if the platform's clock does. See [`LoggedClock`].
    #[inline]
    pub(crate) fn now(&self) -> Time {
        let now = self.clock.at(self.platform.now()).as_nanoseconds();
        let last = self.last_now.fetch_max(now, Ordering::Relaxed);
        Time::from_nanoseconds(now.max(last))
    }

    /// Returns the latest time read by any thread of this hive.
    #[inline(always)]
    pub(crate) fn last_now(&self) -> Time {
        Time::from_nanoseconds(self.last_now.load(Ordering::Relaxed))
    }

    /// Checks whether the hive is over. Until it is, it still handles messages that were in flight when it
    /// was asked to stop.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Waits until the hive is over. Cancel-safe.
    pub(crate) async fn over(&self) {
        loop {
            let ended = self.ended.notified();
            if self.is_over() {
                return;
            }
            ended.await
        }
    }

    /// Checks whether the hive was asked to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Logs that no app handles a message type, once per type.
    #[cold]
    pub(crate) fn nobody_handles(&self, name: &'static str, sender: Address) {
        if !self.unhandled.lock().insert(name) {
            return;
        }

        const WHAT: &str = "no app handles this message; it is dropped";
        // a separate log target, so that operators who did not write the apps can filter these lines out
        const TARGET: &str = "beehive::unhandled";
        match (self.nearest_handled(name), sender) {
            (Some(near), _) => {
                tracing::warn!(target: TARGET, message = name, near, "{WHAT}; did you mean `{near}`?")
            }
            // an IO bee emits everything that arrives from outside, so a message type without a handler is no
            // mistake here
            (None, Address::Io(..)) => tracing::debug!(target: TARGET, message = name, "{WHAT}"),
            (None, _) => {
                tracing::warn!(target: TARGET, message = name, "{WHAT}: add one with `Builder::app`")
            }
        }
    }

    /// Returns a handled message type that the user may have meant: one with the same name in another crate,
    /// or one with a similar name.
    fn nearest_handled(&self, name: &'static str) -> Option<&'static str> {
        let short = |name: &'static str| name.rsplit("::").next().unwrap_or(name);
        let handled = self.types.handled();
        let shorts: Vec<&'static str> = handled.iter().map(|name| short(name)).collect();
        let near = nearest_name(short(name), &shorts)?;
        handled.into_iter().find(|name| short(name) == near)
    }

    /// Counts a message whose handler failed because its causal chain was too long. Logs the first of every
    /// 1000 occurrences.
    #[cold]
    pub(crate) fn cycle(&self, hops: u16, app: &'static str, message: &'static str) {
        if self.cycles.fetch_add(1, Ordering::Relaxed).is_multiple_of(1000) {
            tracing::error!(
                hops,
                app,
                message,
                "hop limit exceeded: the handler emitted at the end of the longest allowed causal chain and failed; the \
                 messages probably form a cycle"
            );
        }
    }

    /// Counts a message run dropped because stateless handlers would have handled too many messages within
    /// one record. Logs the first of every 1000 occurrences.
    #[cold]
    pub(crate) fn too_many_stateless(&self, hops: u16, app: &'static str, message: &'static str) {
        if self.cycles.fetch_add(1, Ordering::Relaxed).is_multiple_of(1000) {
            tracing::error!(
                hops,
                app,
                message,
                "too many messages for stateless handlers in one log record: the excess was dropped; the messages probably form a cycle"
            );
        }
    }

    /// Spawns a task. If this thread is collecting wake-ups until the end of its turn, defers the spawn as
    /// well, because tokio would put the task into the worker's LIFO slot, from which no other worker steals.
    pub(crate) fn spawn(&self, task: BoxFuture<()>) {
        if deferred_wakes::is_collecting() {
            let platform = self.platform.clone();
            deferred_wakes::call(move || platform.spawn(task))
        } else {
            self.platform.spawn(task)
        }
    }

    /// Makes a task that was just woken available to other workers. Call this after a wake-up that cannot be
    /// deferred to the end of the turn. tokio has put the woken task into the worker's LIFO slot. Spawning an
    /// empty task pushes it out to the run queue, from which other workers can steal it.
    pub(crate) fn displace(&self) {
        if deferred_wakes::is_collecting() {
            self.platform.spawn(Box::pin(std::future::ready(())))
        }
    }

    /// Returns the counter for a handler and an emitted message type.
    pub(crate) fn emit_counter(&self, key: EmitKey) -> Arc<AtomicU64> {
        self.emits.lock().entry(key).or_default().clone()
    }
}

/// Returns a number for a new hive.
pub(crate) fn next_instance() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
