//! A turn: the work of one worker from the moment messages come in until everything caused by them is done or
//! has been handed to another thread.

use crate::context::Ctx;
use crate::hive::admission::credits::Cause;
use crate::hive::admission::offices::Office;
use crate::hive::consensus::journal::LogState;
use crate::hive::consensus::log_client::LogClient;
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::outputs::Outputs;
use crate::hive::dispatch::sender::deferred::Deferred;
use crate::hive::dispatch::workers::Bees;
use crate::hive::message::counters::HandlerCounters;
use crate::state::guard;
use crate::time::Time;
use crate::{limits, panics};
use std::any::Any;
use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Work that a thread can run: a bee with messages, or work deferred by a sender.
pub(crate) trait Runnable: Send + Sync {
    /// Returns the number of the app that the work belongs to.
    fn app(&self) -> u16;
    /// Runs until no work is left or the turn is over.
    fn run(self: Arc<Self>, turn: &mut Turn);
    /// Returns whether a handler that this work may run recently held its thread.
    fn has_held_lately(&self, now: Time) -> bool;
}

/// The place where the bees scheduled by a routing-only turn run. They never run on the task that began the turn,
/// because a handler may hold its thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// On the worker of the task that began the turn, as soon as that task yields.
    Worker,
    /// Like `Worker`, but on the hive's runners if the turn routes a message to a handler that recently
    /// held its thread, or if the bee that is about to run has such a handler. For requests: the requester
    /// may have a timeout, and other tasks share its worker. For a journal's reports: nobody has asked that
    /// bees run on this worker.
    WorkerIfQuick,
    /// On the hive's runners.
    Runners,
}

/// The place where a turn runs the stateless handlers to which it routes messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stateless {
    /// In the turn itself, where the message is routed.
    Here,
    /// On the threads that run bees, in the sender's order. For tasks that must not run handlers, such as
    /// those of IO bees.
    InOrder,
    /// On the threads that run bees, in no particular order relative to other work of the sender. For
    /// requests: unrelated requesters share the hive's own lane, and no requester should wait for a handler
    /// that runs for another one.
    Apart,
    /// On the threads that run bees, in the order of the sender's other messages to stateless handlers of the app. For
    /// messages that the hive sends again, for example at its start: before such a handler may run, the log may have to commit a
    /// crash marker, and the caller must not wait for that. Messages to cells are routed at once. If they waited behind a
    /// handler, the sender's next message to the same cells could overtake them: bees do not look for deferred work.
    AfterOthers,
}

/// Counters of the messages emitted by one handler, by message name.
type EmitCounters = Vec<(&'static str, Arc<AtomicU64>)>;

/// Buffers that a thread reuses from turn to turn, so that turns need not allocate them.
pub(crate) struct Scratch {
    /// The instance number of the hive to which the buffers belong. Another hive cannot use them.
    instance: u64,
    /// The context passed to handlers on this thread.
    ctx: Ctx,
    /// Empty outputs for reuse.
    spare: Vec<Outputs>,
    /// Thread-local data of each app, by app number.
    apps: Vec<Option<Box<dyn Any + Send>>>,
    /// Counters of emitted messages, by app and handler. Contains only counters used by this thread.
    emits: Vec<Vec<EmitCounters>>,
}

/// A bee with log entries in flight. The hive calls `nudge` when the journal has committed or refused one
/// of them.
pub(crate) trait Executing: Send + Sync {
    /// Schedules the bee. When it runs, it checks the state of its entries in the log.
    fn nudge(self: Arc<Self>, turn: &mut Turn);
}

/// The hive's client of its journal.
pub(crate) type Link = LogClient<dyn Executing>;

/// A log that the hive begins to lead, and the state that results from its entries so far.
pub(crate) type LedLog = (Arc<Link>, LogState);

/// The action of a firing timer.
pub(crate) type Fire = Box<dyn FnOnce(&mut Turn) + Send>;

/// Number of messages handled between two readings of the clock. In a long turn, this bounds the staleness of
/// the handlers' time, and the time by which a turn on a worker can exceed its deadline.
const MESSAGES_PER_LOOK: usize = 16;

/// When a routing-only turn has scheduled this many bees, it gives them to the runners before it ends. The
/// runners can then handle the first messages of a broadcast while the turn is still routing the rest.
const WOKEN_MAX: usize = 1024;

/// A turn appends its open log entry once this much time has passed, and again after each further interval of
/// this length. It checks the time whenever it reads the clock. Thus the records of a long turn's first bees
/// need not wait for the records of its last bees.
const APPEND_AFTER: Duration = Duration::from_micros(200);

/// If at least this much time has passed between two readings of the clock, the turn reads the clock again
/// after the next message.
const SLOW_LOOK: Duration = Duration::from_millis(1);

thread_local! {
    /// This thread's buffers. The turn running on the thread takes them.
    static SCRATCH: RefCell<Option<Box<Scratch>>> = const { RefCell::new(None) };
}

/// One turn's state.
pub(crate) struct Turn<'h> {
    pub(crate) hive: &'h Arc<HiveInner>,
    /// The current time, as of the last reading of the clock.
    pub(crate) now: Time,
    /// This thread's slot, where the bees scheduled by the turn wait. The watchdog observes the slot and
    /// moves the bees to other threads when a handler holds this one.
    pub(crate) slot: usize,
    /// Number of messages handled so far.
    done: usize,
    /// Number of stateless handlers on the stack, nested inside one another.
    pub(crate) depth: usize,
    /// The place where stateless handlers run.
    pub(crate) stateless: Stateless,
    /// `Some` while the turn is routing work that was deferred because it nested too deeply. Collects work
    /// that again nests too deeply, and everything routed after it.
    pub(crate) unfinished: Option<Vec<Deferred>>,
    /// Whether the turn only routes and runs no bees.
    begins: bool,
    /// The bees that a routing-only turn has scheduled. They run after the turn has ended: on this worker
    /// if `follows` is set, otherwise on a runner.
    woken: Bees,
    /// When `woken` contains this many bees, the turn gives them to the runners.
    woken_max: usize,
    /// Whether the scheduled bees run on this worker.
    follows: bool,
    /// Whether the turn clears `follows` when it routes to a handler that recently held its thread.
    if_quick: bool,
    /// The deadline of a turn on a worker; `None` elsewhere.
    until: Option<Time>,
    /// Value of `done` at which the turn reads the clock again.
    look_at: usize,
    /// The time at which the turn last appended the open log entry, or at which it began.
    appended_at: Time,
    /// The cause of the messages that are being routed or run. It holds their credits.
    pub(crate) cause: Option<Arc<Cause>>,
    /// The log to which the sender of the messages belongs that are being routed.
    pub(crate) office: Office,
    scratch: Box<Scratch>,
}

impl<'h> Turn<'h> {
    /// Calls `begin`, which routes messages, and then hands the scheduled bees to the threads named by
    /// `place`. The hand-over happens even if `begin` panics: a bee marked as scheduled but in no queue would
    /// never run again.
    pub(crate) fn with<R>(
        hive: &'h Arc<HiveInner>,
        place: Place,
        begin: impl FnOnce(&mut Turn<'_>) -> R,
    ) -> R {
        let mut turn = Turn::new(hive);
        // if this task is inside a handler, it may hold this worker for any length of time
        turn.follows = place != Place::Runners && !guard::in_transaction();
        turn.if_quick = place == Place::WorkerIfQuick;
        turn.begins = true;

        let result = panics::catch(AssertUnwindSafe(|| begin(&mut turn)));
        (turn.cause, turn.office) = (None, Office::NONE);

        if !turn.woken.is_empty() {
            let woken = std::mem::take(&mut turn.woken);
            match turn.follows {
                true => hive.follow_up(woken, turn.if_quick),
                false => hive.give_to_runners(woken),
            }
        }

        match result {
            Ok(result) => {
                turn.end();
                result
            }
            // drop the buffers together with the turn, because they may contain some of the outputs
            Err(panic) => panic.resume(),
        }
    }

    /// Runs the bees waiting at this thread's slot until none is left or the turn is over. If `most` is
    /// given, the turn is over at the first reading of the clock after that time. If `if_quick` is set,
    /// bees whose handlers recently held their threads go to the runners.
    pub(crate) fn run_slot(hive: &'h Arc<HiveInner>, slot: usize, most: Option<Duration>, if_quick: bool) {
        let mut turn = Turn { slot, ..Turn::new(hive) };
        turn.until = most.map(|most| turn.now + most);

        while !turn.is_over()
            && let Some(bee) = hive.next_bee(slot)
        {
            match if_quick && bee.has_held_lately(turn.now) {
                true => hive.give_to_runners(Bees::from([bee])),
                false => turn.run(bee),
            }
        }

        turn.append_open();
        turn.end()
    }

    /// Runs one bee, on a thread of an overflow pool.
    pub(crate) fn run_bee(hive: &'h Arc<HiveInner>, slot: usize, bee: Arc<dyn Runnable>) {
        let mut turn = Turn { slot, ..Turn::new(hive) };
        turn.run(bee);
        turn.append_open();
        turn.end()
    }

    /// Runs a bee and catches its panics. The thread has to survive them, because other bees depend on it.
    fn run(&mut self, bee: Arc<dyn Runnable>) {
        if panics::harmless(|| bee.run(self)).is_none() {
            self.discard()
        }
    }

    /// Starts a turn with this thread's buffers. Allocates new ones if the thread has none, or if they belong
    /// to another hive.
    fn new(hive: &'h Arc<HiveInner>) -> Self {
        let scratch = SCRATCH
            .with_borrow_mut(Option::take)
            .filter(|s| s.instance == hive.instance)
            .unwrap_or_else(|| {
                Box::new(Scratch {
                    instance: hive.instance,
                    ctx: Ctx::new(Outputs::new(hive.types.clone())),
                    spare: Vec::new(),
                    apps: Vec::new(),
                    emits: Vec::new(),
                })
            });

        let (slot, now) = (hive.slot_of_thread(), hive.now());

        Turn {
            hive,
            now,
            slot,
            done: 0,
            depth: 0,
            stateless: Stateless::Here,
            unfinished: None,
            begins: false,
            woken: Bees::new(),
            woken_max: WOKEN_MAX,
            follows: false,
            if_quick: false,
            until: None,
            look_at: 0,
            appended_at: now,
            cause: None,
            office: Office::NONE,
            scratch,
        }
    }

    /// For short-lived threads: lends the calling thread the buffers that an earlier one left, calls `run`, and
    /// stores the buffers for the next one.
    pub(crate) fn with_kept(hive: &Arc<HiveInner>, run: impl FnOnce()) {
        SCRATCH.set(hive.workers.take_kept().map(Box::new));

        run();

        if let Some(scratch) = SCRATCH.take()
            && scratch.instance == hive.instance
        {
            hive.workers.keep(*scratch)
        }
    }

    /// Ends the turn and keeps its buffers for the next turn on this thread.
    fn end(self) {
        SCRATCH.with_borrow_mut(|s| *s = Some(self.scratch));
    }

    /// Keeps all scheduled bees until the turn ends, regardless of their number. For a routing-only turn.
    pub(crate) fn keeps_woken(&mut self) {
        self.woken_max = usize::MAX
    }

    /// Schedules a bee. It waits at this thread's slot or, in a routing-only turn, until the turn hands it
    /// over.
    #[inline]
    pub(crate) fn schedule(&mut self, bee: Arc<dyn Runnable>) {
        match self.begins {
            true => {
                self.woken.push_back(bee);
                if self.woken.len() >= self.woken_max {
                    self.hive.give_to_runners(std::mem::take(&mut self.woken))
                }
            }
            false => self.hive.wake(self.slot, bee),
        }
    }

    /// Tells the turn that it is routing a message to this handler. If `if_quick` is set and the handler
    /// recently held its thread, the scheduled bees go to the runners.
    #[inline(always)]
    pub(crate) fn meets(&mut self, handler: &HandlerCounters) {
        if self.if_quick && handler.has_held_lately(self.now) {
            self.follows = false
        }
    }

    /// Checks whether this is a routing-only turn, which leaves the scheduled bees to other threads or to a
    /// later task.
    #[inline(always)]
    pub(crate) fn only_begins(&self) -> bool {
        self.begins
    }

    /// Checks whether the scheduled bees run on this worker.
    #[inline(always)]
    pub(crate) fn follows(&self) -> bool {
        self.follows
    }

    /// Returns the time at which the next run begins. This is never earlier than any time that a thread of
    /// the hive has read, so handlers never see a time before their message was sent or due.
    #[inline(always)]
    pub(crate) fn moment(&mut self) -> Time {
        self.now = self.now.max(self.hive.last_now());
        self.now
    }

    /// Checks whether the turn has used up its message budget or its time.
    #[inline(always)]
    pub(crate) fn is_over(&mut self) -> bool {
        self.done >= limits::MESSAGES_PER_TURN_MAX || (self.done >= self.look_at && self.is_late())
    }

    /// Reads the clock, decides when to do so next, and checks the deadline. Also appends the open log entry
    /// if that is due.
    fn is_late(&mut self) -> bool {
        let before = std::mem::replace(&mut self.now, self.hive.now());
        let is_slow = self.now.since(before) >= SLOW_LOOK;
        self.look_at = self.done + if is_slow { 1 } else { MESSAGES_PER_LOOK };
        if self.now.since(self.appended_at) >= APPEND_AFTER {
            self.append_open()
        }
        self.until.is_some_and(|until| self.now >= until)
    }

    /// Appends the open log entry of each log to the journal.
    fn append_open(&mut self) {
        self.appended_at = self.now;
        if let Some(logs) = &self.hive.logs {
            logs.clients().open().iter().for_each(|link| link.append_open())
        }
    }

    /// Adds `messages` to the number of messages handled in the turn.
    #[inline(always)]
    pub(crate) fn count(&mut self, messages: u32) {
        self.done += messages as usize
    }

    /// Returns the context for the handlers that run in this turn.
    #[inline(always)]
    pub(crate) fn ctx(&mut self) -> &mut Ctx {
        &mut self.scratch.ctx
    }

    /// Takes the outputs of the run that has just ended. Puts empty outputs in their place, for handlers
    /// that run while the taken outputs are routed.
    pub(crate) fn take_outputs(&mut self) -> Outputs {
        let spare = self.scratch.spare.pop().unwrap_or_else(|| Outputs::new(self.hive.types.clone()));
        std::mem::replace(&mut self.scratch.ctx.out, spare)
    }

    /// Keeps outputs for reuse.
    pub(crate) fn give_back(&mut self, outputs: Outputs) {
        self.scratch.spare.push(outputs)
    }

    /// Discards the outputs, the cause and the nesting depth of a run that ended with a panic.
    pub(crate) fn discard(&mut self) {
        self.scratch.ctx.out = Outputs::new(self.hive.types.clone());
        self.cause = None;
        self.office = Office::NONE;
        self.depth = 0;
    }

    /// Returns the data that app `index` keeps on this thread. Creates it if it is missing or has another
    /// type.
    #[inline]
    pub(crate) fn local<T: Any + Send + Default>(&mut self, index: u16) -> &mut T {
        let index = index as usize;
        if self.scratch.apps.len() <= index {
            self.scratch.apps.resize_with(index + 1, || None)
        }

        let slot = &mut self.scratch.apps[index];
        if !slot.as_ref().is_some_and(|kept| kept.is::<T>()) {
            *slot = Some(Box::<T>::default());
        }

        slot.as_mut().and_then(|kept| kept.downcast_mut()).expect("created above if it was missing")
    }

    /// Counts the messages that a handler emitted, by type.
    pub(crate) fn count_emits(&mut self, app: u16, handler: usize, outputs: &Outputs) {
        let (emits, app_at) = (&mut self.scratch.emits, usize::from(app));
        if emits.len() <= app_at {
            emits.resize_with(app_at + 1, Vec::new)
        }

        let handlers = &mut emits[app_at];
        if handlers.len() <= handler {
            handlers.resize_with(handler + 1, Vec::new)
        }

        let counters = &mut handlers[handler];

        for (name, count) in outputs.summary() {
            let known = counters.iter().position(|(known, _)| std::ptr::eq(*known, name));
            let at = known.unwrap_or_else(|| {
                counters.push((name, self.hive.emit_counter((app, handler as u16, name))));
                counters.len() - 1
            });
            counters[at].1.fetch_add(count as u64, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Hive;
    use std::sync::mpsc::{Sender, channel};

    /// Calls `begin` in a turn that only routes, on a hive without apps.
    pub(crate) fn in_a_turn(begin: impl FnOnce(&mut Turn)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let _inside = runtime.enter();
        let hive = Hive::builder().start().unwrap();
        Turn::with(hive.inner(), Place::Runners, begin)
    }

    struct Tells(Sender<()>);

    impl Runnable for Tells {
        fn app(&self) -> u16 {
            0
        }
        fn has_held_lately(&self, _: Time) -> bool {
            false
        }
        fn run(self: Arc<Self>, _: &mut Turn) {
            let _ = self.0.send(());
        }
    }

    #[test]
    fn what_a_turn_scheduled_before_it_panicked_runs() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let _inside = runtime.enter();
        let hive = Hive::builder().start().unwrap();
        let (sender, receiver) = channel();

        let panicked = panics::catch(AssertUnwindSafe(|| {
            Turn::with(hive.inner(), Place::Runners, |turn| {
                turn.schedule(Arc::new(Tells(sender)));
                std::panic::resume_unwind(Box::new("while it routed"))
            })
        }));

        assert!(panicked.is_err());
        receiver.recv_timeout(Duration::from_secs(20)).expect("the bee runs despite the panic");
    }
}
