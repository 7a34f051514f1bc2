//! The state that all rooms of a hive share, and the handle to it.

use crate::cell::HiveId;
use crate::hash::HashMap;
use crate::hive::admission::credits::{Cause, Credits, InFlight};
use crate::hive::admission::deferred_wakes;
use crate::hive::admission::lifecycle::Stopped;
use crate::hive::admission::outside_lanes::{Admitted, Routing};
use crate::hive::admission::timer_wheel::TimerWheel;
use crate::hive::consensus::journal::LoggedSettings;
#[cfg(feature = "testing")]
use crate::hive::dispatch::app_access::AppAccess;
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::message_types::Types;
use crate::hive::dispatch::probe::Probe;
use crate::hive::dispatch::sender_queue::SenderQueue;
use crate::hive::dispatch::turn::{Fire, Link, Place, Stateless, Turn};
use crate::hive::dispatch::workers::Workers;
use crate::hive::message::batch::{Address, AnswerSink, Batch, Source};
use crate::hive::message::dead_letters::DeadLetters;
use crate::hive::message::inbox::IoBees;
use crate::hive::message::reports::{AppStatus, StuckStatus};
use crate::message::Message;
use crate::seams::{BoxFuture, Platform};
use crate::state::{ConfigError, nearest_name};
use crate::time::Time;
#[cfg(feature = "testing")]
use crate::view::Views;
use crossbeam_utils::CachePadded;
use parking_lot::{Mutex, RwLock};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// An app whose type is not known here.
pub(crate) trait AnyApp: Send + Sync {
    fn name(&self) -> &'static str;
    fn handler_name(&self, handler: usize) -> &'static str;
    /// What a handler handles.
    fn handles(&self, handler: usize) -> &'static str;
    /// `sizes`: also the bytes of the state of its busiest bees.
    /// `apps`: the names of all apps, by number.
    /// A handler holds its thread; it does so for too long.
    fn note_held(&self, handler: usize, now: Time, too_long: bool);
    fn status(&self, sizes: bool, apps: &[&'static str]) -> AppStatus;
    fn retire_idle(self: Arc<Self>, hive: &Arc<HiveInner>);
    /// Forgets all bees; returns how many runs of messages waited for them.
    fn clear(&self) -> usize;
    /// Its views, if anybody reads them.
    #[cfg(feature = "testing")]
    fn views(&self) -> Option<&Arc<Views>>;
    fn as_any(&self) -> &dyn Any;
    /// What its idle bees remember of messages.
    fn remembered(&self) -> usize;
    /// Reads settings for it; nothing if they are those in force.
    fn change(self: Arc<Self>, table: toml::Table) -> Result<Option<Change>, ConfigError>;
    fn settings_version(&self) -> u32;
    /// Returns the number of copies that `#[app(replication = n)]` asks for.
    fn replication_asked(&self) -> u32;
    /// Returns the operations that only tests need.
    #[cfg(feature = "testing")]
    fn for_tests(self: Arc<Self>) -> Arc<dyn AppAccess>;
}

/// Settings that an app has accepted.
pub(crate) struct Change {
    pub(crate) app: u16,
    pub(crate) logged: LoggedSettings,
    /// Puts them in force.
    pub(crate) put: Box<dyn FnOnce() + Send>,
}

/// App, handler, and the message it emitted.
pub(crate) type EmitKey = (u16, u16, &'static str);

pub(crate) struct HiveInner {
    pub(crate) id: HiveId,
    /// Tells hives of one process apart.
    pub(crate) instance: u64,
    pub(crate) platform: Arc<dyn Platform>,
    pub(crate) types: Arc<Types>,
    pub(crate) io: Arc<IoBees>,
    pub(crate) timers: TimerWheel<Fire>,
    pub(crate) dead_letters: DeadLetters,
    pub(crate) credits: Arc<Credits>,
    pub(crate) in_flight: Arc<InFlight>,
    /// Of those who emit through a [`Hive`].
    pub(crate) lane: SenderQueue,
    pub(crate) link: Option<Arc<Link>>,
    /// The observer that a test has attached; see [`HiveInner::probe`].
    pub(in crate::hive) probe: Option<Arc<dyn Probe>>,
    pub(crate) apps: RwLock<Vec<Arc<dyn AnyApp>>>,
    pub(in crate::hive) workers: Workers,
    /// The messages that hold their handlers for too long, by the slot of their thread, and since when.
    pub(in crate::hive) stuck: Mutex<BTreeMap<usize, (StuckStatus, Instant)>>,
    /// A message that holds its handler for longer is named.
    pub(in crate::hive) stuck_after: Duration,
    pub(in crate::hive) stopped: AtomicBool,
    /// Nothing is finished any more.
    pub(in crate::hive) over: AtomicBool,
    pub(crate) stopping: Notify,
    pub(crate) ended: Notify,
    pub(in crate::hive) stop_done: Notify,
    /// What was done with what was left.
    pub(in crate::hive) report: Mutex<Option<Stopped>>,
    /// IO bees that have not returned.
    pub(in crate::hive) tasks: AtomicUsize,
    pub(in crate::hive) tasks_done: Notify,
    /// Settings are changed one after the other.
    pub(in crate::hive) reconfiguring: tokio::sync::Mutex<()>,
    pub(in crate::hive) emits: Mutex<HashMap<EmitKey, Arc<AtomicU64>>>,
    pub(in crate::hive) unhandled: Mutex<BTreeSet<&'static str>>,
    pub(in crate::hive) cycles: AtomicU64,
    /// Written in every turn, and therefore not next to what every message reads.
    pub(in crate::hive) last_now: CachePadded<AtomicU64>,
    pub(in crate::hive) started: Time,
}

/// A handle to a running hive; cheap to clone. Start one with [`Hive::builder`].
#[derive(Clone)]
pub struct Hive(pub(in crate::hive) Arc<HiveInner>);

impl Hive {
    pub(crate) fn inner(&self) -> &Arc<HiveInner> {
        &self.0
    }
}

impl HiveInner {
    /// Waits for a credit of the hive itself, and for room on its lane. Cancel-safe.
    pub(crate) async fn room_for_one(&self) {
        if let Some(link) = &self.link {
            link.own_lane.room().await
        }
        self.credits.take_when_free(1).await
    }

    /// Routes a message that came in through the hive itself, for which a credit was taken, and has it handled at `place`.
    pub(crate) fn route_from_outside<M: Message>(
        self: &Arc<Self>,
        message: M,
        sink: Option<Arc<dyn AnswerSink<M>>>,
        place: Place,
    ) {
        let source = Source::outside(self.id, self.platform.random());
        let cause = Cause::new(&self.credits, 1, &self.in_flight);
        let kind = self.types.kind::<M>();
        self.from_outside(source, cause, place, |source, admitted, cx| {
            if sink.is_some() {
                cx.turn.stateless = Stateless::Apart
            }
            let batch = Arc::new(Batch { messages: vec![message], source, sink, admitted });
            kind.route(&batch, 0..1, cx)
        })
    }

    /// Has `route` bring in one message on the hive's own lane.
    pub(crate) fn from_outside<R>(
        self: &Arc<Self>,
        source: Source,
        cause: Arc<Cause>,
        place: Place,
        route: impl FnOnce(Source, Option<Arc<Admitted>>, &mut RouteContext) -> R,
    ) -> R {
        let mut source = source;
        let admitted = self.link.as_ref().map(|link| {
            let (numbers, admitted) = link.own_lane.admit_next(1);
            source.numbers = numbers;
            admitted
        });
        // also if something that the message brings along panics: the lane is everybody's
        let _routing = admitted.clone().map(Routing);
        Turn::with(self, place, |turn| {
            turn.cause = Some(cause);
            route(source, admitted, &mut RouteContext::new(&mut self.lane.clone(), turn))
        })
    }

    /// The time; never runs backwards, whatever the platform says.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        let now = self.platform.now().as_nanoseconds();
        let last = self.last_now.fetch_max(now, Ordering::Relaxed);
        Time::from_nanoseconds(now.max(last))
    }

    /// The latest time that was read.
    #[inline(always)]
    pub(crate) fn last_now(&self) -> Time {
        Time::from_nanoseconds(self.last_now.load(Ordering::Relaxed))
    }

    /// Whether it has stopped altogether; what was under way when it was told to stop goes on until then.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Says once for each type of message that nobody handles it.
    #[cold]
    pub(crate) fn nobody_handles(&self, name: &'static str, sender: Address) {
        if !self.unhandled.lock().insert(name) {
            return;
        }
        const WHAT: &str = "no app handles this message; it is dropped";
        // with a name of its own, so that who does not write the apps need not read it
        const TARGET: &str = "beehive::unhandled";
        match (self.nearest_handled(name), sender) {
            (Some(near), _) => {
                tracing::warn!(target: TARGET, message = name, near, "{WHAT}; was the one that is near meant?")
            }
            // it brings in what there is, for whichever apps there are
            (None, Address::Io(..)) => tracing::debug!(target: TARGET, message = name, "{WHAT}"),
            (None, _) => tracing::warn!(target: TARGET, message = name, "{WHAT}"),
        }
    }

    /// The name of a message that some app handles, of the same name in another crate or of nearly the same.
    fn nearest_handled(&self, name: &'static str) -> Option<&'static str> {
        let short = |name: &'static str| name.rsplit("::").next().unwrap_or(name);
        let handled = self.types.handled();
        let shorts: Vec<&'static str> = handled.iter().map(|name| short(name)).collect();
        let near = nearest_name(short(name), &shorts)?;
        handled.into_iter().find(|name| short(name) == near)
    }

    /// A chain of messages has gone on for too long.
    #[cold]
    pub(crate) fn cycle(&self, hops: u16, app: &'static str, message: &'static str) {
        if self.cycles.fetch_add(1, Ordering::Relaxed).is_multiple_of(1000) {
            tracing::error!(
                hops,
                app,
                message,
                "what this handler emitted is dropped: too many messages in a row cause one another; is it a cycle?"
            );
        }
    }

    /// Runs a task. What a worker spawns stands next in line there, as what it wakes does.
    pub(crate) fn spawn(&self, task: BoxFuture<()>) {
        if deferred_wakes::is_collecting() {
            let platform = self.platform.clone();
            deferred_wakes::call(move || platform.spawn(task))
        } else {
            self.platform.spawn(task)
        }
    }

    /// Something was woken that could not be collected: it makes room at the worker for something else, and goes where
    /// other workers find it.
    pub(crate) fn displace(&self) {
        if deferred_wakes::is_collecting() {
            self.platform.spawn(Box::pin(std::future::ready(())))
        }
    }

    pub(crate) fn emit_counter(&self, key: EmitKey) -> Arc<AtomicU64> {
        self.emits.lock().entry(key).or_default().clone()
    }
}

pub(crate) fn next_instance() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
