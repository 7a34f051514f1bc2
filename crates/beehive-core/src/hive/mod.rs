//! One hive: apps, their bees, and the way of a message from where it is emitted to where it is handled.
//!
//! An emitting task maps a message, finds the bee of its cells in a local table, and puts it into that bee's mailbox. It
//! then runs, as one *turn*, the bees it has woken, and those that they wake, until nothing is left or its share is used
//! up. A bee that somebody else is running takes what comes when it is through with what it has.

pub(crate) mod admission;
pub(crate) mod bee;
mod builder;
pub(crate) mod dispatch;
pub(crate) mod edge;
pub(crate) mod log;
pub(crate) mod message;
pub(crate) mod observe;
pub(crate) mod ownership;
mod registration;
pub(crate) mod route;
pub(crate) mod run;
mod scheduling;
mod settings;
mod stop;
pub(crate) mod sweep;

pub use builder::{Builder, StartError};
pub use edge::io_bee::{Answers, Busy, Io, Mail};
pub use edge::read::ReadError;
pub use edge::request::{Asked, RequestError};
pub use edge::supervise::Restart;
pub use log::journal;
pub use message::batch::{Address, Shared};
pub use message::dead_letters::{DeadLetter, Provenance, ResendError};
pub use observe::status::{AppStatus, BeeStatus, EmitStatus, HandlerStatus, PeerStatus, Status, StuckStatus};
pub use ownership::registry;
pub use registration::Registrar;
pub use settings::{ReconfigureError, Reconfigured};
pub use stop::Stopped;

use crate::cell::HiveId;
use crate::hash::HashMap;
use crate::hive::admission::credits::{Cause, Credits, UnderWay};
use crate::hive::admission::deferred_wakes;
use crate::hive::admission::outside_lanes::{Admitted, Routing};
use crate::hive::dispatch::message_types::Types;
use crate::hive::dispatch::probe::Probe;
use crate::hive::dispatch::sender_queue::SenderLane;
use crate::hive::dispatch::turn::{Place, Stateless, Turn};
use crate::hive::dispatch::workers::Workers;
use crate::hive::edge::io_bee::IoBees;
use crate::hive::log::log_client::Link;
use crate::hive::message::batch::{AnswerSink, Batch, Source};
use crate::hive::message::dead_letters::DeadLetters;
use crate::hive::observe::status::AnyApp;
use crate::hive::sweep::ticks::Timers;
use crate::message::Message;
use crate::seams::{BoxFuture, Platform};
use crate::shape::Shape;
use crate::state::{DecodeError, guard, nearest_name};
use crate::time::Time;
use crossbeam_utils::CachePadded;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// App, handler, and the message it emitted.
pub(crate) type EmitKey = (u16, u16, &'static str);

pub(crate) struct HiveInner {
    pub(crate) id: HiveId,
    /// Tells hives of one process apart.
    pub(crate) instance: u64,
    pub(crate) platform: Arc<dyn Platform>,
    pub(crate) types: Arc<Types>,
    pub(crate) io: Arc<IoBees>,
    pub(crate) timers: Timers,
    pub(crate) dead_letters: DeadLetters,
    pub(crate) credits: Arc<Credits>,
    pub(crate) under_way: Arc<UnderWay>,
    /// Of those who emit through a [`Hive`].
    pub(crate) lane: SenderLane,
    pub(crate) link: Option<Arc<Link>>,
    /// The observer that a test has attached; see [`HiveInner::probe`].
    probe: Option<Arc<dyn Probe>>,
    pub(crate) apps: RwLock<Vec<Arc<dyn AnyApp>>>,
    workers: Workers,
    /// A message that holds its handler for longer is named.
    stuck_after: Duration,
    stopped: AtomicBool,
    /// Nothing is finished any more.
    over: AtomicBool,
    pub(crate) stopping: Notify,
    pub(crate) ended: Notify,
    stop_done: Notify,
    /// What was done with what was left.
    report: Mutex<Option<Stopped>>,
    /// IO bees that have not returned.
    tasks: AtomicUsize,
    tasks_done: Notify,
    /// Settings are changed one after the other.
    reconfiguring: tokio::sync::Mutex<()>,
    emits: Mutex<HashMap<EmitKey, Arc<AtomicU64>>>,
    unhandled: Mutex<BTreeSet<&'static str>>,
    cycles: AtomicU64,
    /// Written in every turn, and therefore not next to what every message reads.
    last_now: CachePadded<AtomicU64>,
    started: Time,
}

/// A handle to a running hive; cheap to clone. Start one with [`Hive::builder`].
#[derive(Clone)]
pub struct Hive(Arc<HiveInner>);

impl Hive {
    /// Settings of a hive, and its apps.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn inner(&self) -> &Arc<HiveInner> {
        &self.0
    }

    /// Its number in the cluster.
    pub fn id(&self) -> HiveId {
        self.0.id
    }

    /// Its time.
    pub fn now(&self) -> Time {
        self.0.now()
    }

    /// Emits a message from outside; waits while too many are under way.
    ///
    /// Messages that one task emits one after the other arrive in that order. An IO bee does it in batches and is faster.
    pub async fn emit<M: Message>(&self, message: M) {
        if self.0.is_over() {
            return tracing::debug!(message = M::NAME, "emitted after the hive has stopped; dropped");
        }
        tokio::select! {
            biased;
            () = self.0.room_for_one() => self.emit_with_credit(message),
            () = self.stopped() => tracing::debug!(message = M::NAME, "emitted after the hive has stopped; dropped"),
        }
    }

    /// As [`Hive::emit`], for threads that run no tasks.
    ///
    /// # Panics
    ///
    /// In a task, and in a handler, as [`Hive::request_blocking`] does.
    pub fn emit_blocking<M: Message>(&self, message: M) {
        edge::request::wait_for(self, |hive| async move { hive.emit(message).await });
    }

    /// Emits a message from outside if there is a credit for it.
    pub fn try_emit<M: Message>(&self, message: M) -> Result<(), Busy> {
        let room = self.0.link.as_ref().is_none_or(|link| link.own_lane.has_room_for_next());
        if !room || !self.0.credits.take_all(1) {
            return Err(Busy);
        }
        self.emit_with_credit(message);
        Ok(())
    }

    fn emit_with_credit<M: Message>(&self, message: M) {
        let inner = &self.0;
        if guard::in_transaction() {
            // a handler that should have used its context: its transaction must not see another one start
            let hive = self.clone();
            return inner.platform.spawn(Box::pin(async move { hive.emit_with_credit(message) }));
        }
        inner.route_from_outside(message, None, Place::Runners)
    }

    /// A message that was encoded, in log records or dead letters, in words (JSON); of what type it is, its name says.
    pub fn message_in_words(&self, name: &str, bytes: &[u8]) -> Result<String, DecodeError> {
        self.0.types.in_words(name, bytes)
    }

    /// The messages that some app handles, by name: what they are encoded like.
    pub fn message_shapes(&self) -> BTreeMap<String, Shape> {
        self.0.types.shapes()
    }

    /// The hands of a new IO bee, with the usual number of credits.
    pub fn io(&self) -> Io {
        self.io_with_credits(crate::limits::CREDITS_PER_IO_BEE)
    }

    /// The hands of a new IO bee that may have `credits` messages under way.
    pub fn io_with_credits(&self, credits: u32) -> Io {
        Io::new(self, credits)
    }

    /// Waits until the hive has been told to stop. Cancel-safe.
    pub async fn stopping(&self) {
        loop {
            let stopping = self.0.stopping.notified();
            if self.0.is_stopped() {
                return;
            }
            stopping.await
        }
    }

    /// Waits until it has stopped altogether. Cancel-safe.
    pub(crate) async fn over(&self) {
        loop {
            let ended = self.0.ended.notified();
            if self.0.is_over() {
                return;
            }
            ended.await
        }
    }

    pub(crate) async fn stopped(&self) {
        loop {
            let done = self.0.stop_done.notified();
            if self.0.is_stopped() && self.0.tasks.load(Ordering::Acquire) == 0 {
                return;
            }
            done.await
        }
    }

    /// Completes when nothing is under way: all that came in from outside is handled, with everything that it caused, and
    /// IO bees have looked at what was sent to them. Timers that have not fired do not count. Cancel-safe.
    pub async fn idle(&self) {
        self.0.under_way.done().await
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
        let cause = Cause::new(&self.credits, 1, &self.under_way);
        let kind = self.types.kind::<M>();
        self.from_outside(source, cause, place, |source, admitted, lane, turn| {
            if sink.is_some() {
                turn.stateless = Stateless::Apart
            }
            let batch = Arc::new(Batch { messages: vec![message], source, sink, admitted });
            kind.route(&batch, 0..1, lane, turn)
        })
    }

    /// Has `route` bring in one message on the hive's own lane.
    pub(crate) fn from_outside<R>(
        self: &Arc<Self>,
        source: Source,
        cause: Arc<Cause>,
        place: Place,
        route: impl FnOnce(Source, Option<Arc<Admitted>>, &mut SenderLane, &mut Turn) -> R,
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
            route(source, admitted, &mut self.lane.clone(), turn)
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
