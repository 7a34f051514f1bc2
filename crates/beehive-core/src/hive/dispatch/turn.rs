//! A turn: one worker's run from the moment messages come in until everything that they caused is done
//! or handed to another thread.

use crate::context::Ctx;
use crate::hive::admission::credits::Cause;
use crate::hive::consensus::log_client::LogClient;
use crate::hive::dispatch::deferred::Deferred;
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::outputs::Outputs;
use crate::hive::dispatch::workers::Bees;
use crate::hive::message::counters::HandlerCounters;
use crate::state::guard;
use crate::time::Time;
use crate::{limits, panics};
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Work that a worker can run: a bee with messages, or work that a sender has deferred.
pub(crate) trait Runnable: Send + Sync {
    /// Returns the number of the app that the work belongs to.
    fn app(&self) -> u16;
    /// Runs until there is nothing left to do or the turn is over.
    fn run(self: Arc<Self>, turn: &mut Turn);
}

/// The threads that run the bees which a turn schedules while it only routes. These bees never run on the
/// task that began the turn, because a handler may hold its thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// On the worker of the task, as soon as the task waits for something.
    Worker,
    /// Like `Worker`, except that handlers which held a thread during the last second run on the hive's
    /// runners. For requests: the requester may have a timeout, and other tasks share its worker.
    WorkerIfQuick,
    /// On the hive's runners.
    Runners,
}

/// Where a turn runs the stateless handlers that it routes messages to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stateless {
    /// In the turn itself.
    Here,
    /// On the threads that run bees, in the sender's order. For tasks that must not run handlers, such
    /// as IO bees.
    InOrder,
    /// On the threads that run bees, in no particular order relative to other work of the sender. For
    /// requests: unrelated requesters share the hive's own lane, and none should wait for another's handler.
    Apart,
}

/// Counters of the messages that one handler emits, by message name.
type EmitCounters = Vec<(&'static str, Arc<AtomicU64>)>;

/// Buffers that a thread reuses from turn to turn, so that a turn allocates nothing.
pub(crate) struct Scratch {
    /// The hive that the buffers belong to; another hive cannot use them.
    instance: u64,
    /// The context that handlers on this thread get.
    ctx: Ctx,
    /// Empty outputs for reuse.
    spare: Vec<Outputs>,
    /// Thread-local data of each app, by app number.
    apps: Vec<Option<Box<dyn Any + Send>>>,
    /// Counters of emitted messages, by app and handler, as far as this thread has used them.
    emits: Vec<Vec<EmitCounters>>,
}

/// A bee with log entries in flight. The hive calls `nudge` when the journal has decided the fate of
/// one.
pub(crate) trait Executing: Send + Sync {
    /// Schedules the bee, which then checks the log.
    fn nudge(self: Arc<Self>, turn: &mut Turn);
}

/// The hive's client of its journal.
pub(crate) type Link = LogClient<dyn Executing>;

/// Action of a timer when it fires.
pub(crate) type Fire = Box<dyn FnOnce(&mut Turn) + Send>;

/// Number of messages handled between two readings of the clock. Bounds how old the time is that
/// handlers see in a long turn, and by how much a turn on a worker exceeds its deadline.
const MESSAGES_PER_LOOK: usize = 16;

/// Number of scheduled bees at which a turn that only routes gives them to the runners before it ends. A
/// broadcast is then handled while the rest of it is still being routed.
const WOKEN_MAX: usize = 1024;

/// A turn that goes on for longer appends the log entry that collects what its bees do at its next reading of the clock,
/// so that the first of them does not wait for the last.
const APPEND_AFTER: Duration = Duration::from_micros(200);

/// If at least this much time passed between two readings of the clock, the next reading comes after one
/// message.
const SLOW_LOOK: Duration = Duration::from_millis(1);

thread_local! {
    /// The buffers of this thread; taken by the turn that runs on it.
    static SCRATCH: RefCell<Option<Box<Scratch>>> = const { RefCell::new(None) };
}

/// The state of one turn.
pub(crate) struct Turn<'h> {
    pub(crate) hive: &'h Arc<HiveInner>,
    /// The time of the last reading of the clock.
    pub(crate) now: Time,
    /// The slot of this thread. The watchdog observes it, and the bees that the turn scheduled wait
    /// there. When a handler holds the thread, the watchdog moves them to other threads.
    pub(crate) slot: usize,
    /// Number of messages handled so far.
    done: usize,
    /// Number of stateless handlers that are nested on the stack.
    pub(crate) depth: usize,
    /// Where stateless handlers run.
    pub(crate) stateless: Stateless,
    /// `Some` while the turn routes work that was deferred because it nested too deeply. Collects the work
    /// that nests too deeply again, and everything routed after it.
    pub(crate) unfinished: Option<Vec<Deferred>>,
    /// Whether the turn only routes and runs no bees.
    begins: bool,
    /// The bees that a turn which only routes has scheduled. They run when it ends: on a runner, or on
    /// this worker if `follows` is set.
    woken: Bees,
    /// Number of bees in `woken` at which they are given to the runners.
    woken_max: usize,
    /// Whether the scheduled bees run on this worker.
    follows: bool,
    /// Whether `follows` is cleared when the turn routes to a handler that recently held a thread.
    if_quick: bool,
    /// The deadline of a turn on a worker; `None` elsewhere.
    until: Option<Time>,
    /// Value of `done` at which the turn reads the clock again.
    look_at: usize,
    /// When the turn last appended the open log entry, or began.
    appended_at: Time,
    /// The cause of the messages that are being routed or run. It holds their credits.
    pub(crate) cause: Option<Arc<Cause>>,
    scratch: Box<Scratch>,
}

impl<'h> Turn<'h> {
    /// Calls `begin`, which routes messages, and then has the scheduled bees run at `place`, even if `begin`
    /// panics: a bee that is marked as scheduled but is in no queue would never run again.
    pub(crate) fn with<R>(
        hive: &'h Arc<HiveInner>,
        place: Place,
        begin: impl FnOnce(&mut Turn<'_>) -> R,
    ) -> R {
        let mut turn = Turn::new(hive);
        // a task that is inside a handler may hold this worker for an unknown time
        turn.follows = place != Place::Runners && !guard::in_transaction();
        turn.if_quick = place == Place::WorkerIfQuick;
        turn.begins = true;

        let result = panics::catch(AssertUnwindSafe(|| begin(&mut turn)));
        turn.cause = None;

        if !turn.woken.is_empty() {
            let woken = std::mem::take(&mut turn.woken);
            match turn.follows {
                true => hive.follow_up(woken),
                false => hive.give_to_runners(woken),
            }
        }

        match result {
            Ok(result) => {
                turn.end();
                result
            }
            // the buffers of this thread are dropped with the turn, because they may contain a part of the
            // outputs
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Runs the bees that wait at the slot of this thread until none is left or the turn is over. With a
    /// limit `most`, the turn is over at the first check of the clock after that time.
    pub(crate) fn run_slot(hive: &'h Arc<HiveInner>, slot: usize, most: Option<Duration>) {
        let mut turn = Turn { slot, ..Turn::new(hive) };
        turn.until = most.map(|most| turn.now + most);

        while !turn.is_over()
            && let Some(bee) = hive.next_bee(slot)
        {
            turn.run(bee)
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

    /// Runs a bee, and catches its panics: the thread has to survive, because other bees depend on it.
    fn run(&mut self, bee: Arc<dyn Runnable>) {
        if panics::harmless(|| bee.run(self)).is_none() {
            self.discard()
        }
    }

    /// Starts a turn with the buffers of this thread. New ones are allocated if there are none, or if
    /// they belong to another hive.
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
            scratch,
        }
    }

    /// Calls `run` on a short-lived thread, with the buffers of a thread that has ended, and then keeps them
    /// for the next thread. Otherwise each of these threads would allocate its own buffers.
    pub(crate) fn with_kept(hive: &Arc<HiveInner>, run: impl FnOnce()) {
        SCRATCH.set(hive.workers.take_kept().map(Box::new));

        run();

        if let Some(scratch) = SCRATCH.take()
            && scratch.instance == hive.instance
        {
            hive.workers.keep(*scratch)
        }
    }

    /// Ends the turn, and keeps its buffers for the next turn on this thread.
    fn end(self) {
        SCRATCH.with_borrow_mut(|s| *s = Some(self.scratch));
    }

    /// Keeps all scheduled bees until the turn ends. For a turn that only routes.
    pub(crate) fn keeps_woken(&mut self) {
        self.woken_max = usize::MAX
    }

    /// Schedules a bee: at the slot of this thread, or at the end of a turn that only routes.
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

    /// Reports that a message is being routed to this handler. If it recently held a thread, the
    /// scheduled bees go to the runners.
    #[inline(always)]
    pub(crate) fn meets(&mut self, handler: &HandlerCounters) {
        if self.if_quick && handler.has_held_lately(self.now) {
            self.follows = false
        }
    }

    /// Checks whether the turn only routes and leaves the scheduled bees to other threads or to a later
    /// task.
    #[inline(always)]
    pub(crate) fn only_begins(&self) -> bool {
        self.begins
    }

    /// Checks whether the scheduled bees run on this worker.
    #[inline(always)]
    pub(crate) fn follows(&self) -> bool {
        self.follows
    }

    /// Returns the time at which the next run begins. It is never earlier than a time that any thread
    /// of the hive has read, so no message is handled before it was sent or was due.
    #[inline(always)]
    pub(crate) fn moment(&mut self) -> Time {
        self.now = self.now.max(self.hive.last_now());
        self.now
    }

    /// Checks whether the turn has used up its budget of messages, or its time.
    #[inline(always)]
    pub(crate) fn is_over(&mut self) -> bool {
        self.done >= limits::MESSAGES_PER_TURN_MAX || (self.done >= self.look_at && self.is_late())
    }

    /// Reads the clock, decides when to read it again, and checks the deadline.
    fn is_late(&mut self) -> bool {
        let before = std::mem::replace(&mut self.now, self.hive.now());
        let is_slow = self.now.since(before) >= SLOW_LOOK;
        self.look_at = self.done + if is_slow { 1 } else { MESSAGES_PER_LOOK };
        if self.now.since(self.appended_at) >= APPEND_AFTER {
            self.append_open()
        }
        self.until.is_some_and(|until| self.now >= until)
    }

    /// Appends the log entry that collects what bees do.
    fn append_open(&mut self) {
        self.appended_at = self.now;
        self.hive.log_clients().iter().for_each(|link| link.append_open())
    }

    /// Counts messages that were handled.
    #[inline(always)]
    pub(crate) fn count(&mut self, messages: u32) {
        self.done += messages as usize
    }

    /// Returns the context for the handlers that run in this turn.
    #[inline(always)]
    pub(crate) fn ctx(&mut self) -> &mut Ctx {
        &mut self.scratch.ctx
    }

    /// Takes the outputs of the run that just ended. Leaves empty outputs in their place, for handlers that
    /// run while the taken ones are routed.
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
        self.depth = 0;
    }

    /// Returns the data that the app with number `index` keeps on this thread. Replaces data of another
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

        slot.as_mut().and_then(|kept| kept.downcast_mut()).expect("put there if it was not there")
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
                resume_unwind(Box::new("while it routed"))
            })
        }));

        assert!(panicked.is_err());
        receiver.recv_timeout(Duration::from_secs(20)).expect("the bee runs all the same");
    }
}
