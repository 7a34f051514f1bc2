//! A turn: what one worker does from the moment messages come in until what they caused is done or handed over.

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
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A bee that has something to do.
pub(crate) trait Runnable: Send + Sync {
    /// The number of its app.
    fn app(&self) -> u16;
    /// Runs it until it has nothing to do or the turn is over.
    fn run(self: Arc<Self>, turn: &mut Turn);
}

/// Where the bees run that a turn wakes. Never on the task that began the turn: a handler may hold whatever runs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// On the worker that the task is on, as soon as the task waits for something.
    Worker,
    /// There, too, but for handlers that have held a thread of late: who waits looks at the clock, and so do others who wait
    /// on that worker.
    WorkerIfQuick,
    /// On the hive's runners.
    Runners,
}

/// Who runs the stateless handlers of what a turn routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stateless {
    /// The turn.
    Here,
    /// Those who run the bees, in the order of the sender: whoever begins the turn must not run handlers.
    InOrder,
    /// Those who run the bees, whatever else the sender has left to them: many who know nothing of each other send by its
    /// name, and each waits for what becomes of it.
    Apart,
}

/// Counters of what a handler emits, by the names of the messages.
type EmitCounters = Vec<(&'static str, Arc<AtomicU64>)>;

/// What is kept from turn to turn, so that a turn allocates nothing.
pub(crate) struct Scratch {
    /// Of the hive it was made for.
    instance: u64,
    ctx: Ctx,
    spare: Vec<Outputs>,
    /// By app: what its code keeps.
    apps: Vec<Option<Box<dyn Any + Send>>>,
    /// By app and handler: counters of the messages that it emits, as far as this thread has used them.
    emits: Vec<Vec<EmitCounters>>,
}

/// Somebody who has entries on their way, and looks after them when told that something has happened.
pub(crate) trait Executing: Send + Sync {
    fn nudge(self: Arc<Self>, turn: &mut Turn);
}

/// A hive's end of its journal.
pub(crate) type Link = LogClient<dyn Executing>;

/// What is done when a timer is due.
pub(crate) type Fire = Box<dyn FnOnce(&mut Turn) + Send>;

/// Messages that are handled between two looks at the clock: what handlers are told of the time must not grow old in a turn
/// of many, and a turn on a worker ends in time.
const MESSAGES_PER_LOOK: usize = 16;

/// Bees that wait for the end of the turn that wakes them; more are left to the runners at once, so that a message to
/// everybody is handled while it is still put on its way.
const WOKEN_MAX: usize = 1024;

/// After a look that comes as late as this, the next is one message later.
const SLOW_LOOK: Duration = Duration::from_millis(1);

thread_local! {
    static SCRATCH: RefCell<Option<Box<Scratch>>> = const { RefCell::new(None) };
}

pub(crate) struct Turn<'h> {
    pub(crate) hive: &'h Arc<HiveInner>,
    pub(crate) now: Time,
    /// Where this thread is watched, and where the bees wait that the turn has woken: others can take them from there
    /// when a handler holds the thread.
    pub(crate) slot: usize,
    /// Messages handled so far.
    done: usize,
    /// Stateless handlers that run inside one another.
    pub(crate) depth: usize,
    /// Who runs stateless handlers.
    pub(crate) stateless: Stateless,
    /// What was too deep for one stack is being routed; this is too deep again, or comes after what is.
    pub(crate) unfinished: Option<Vec<Deferred>>,
    /// It runs nothing; what it wakes waits here until it ends, and then runs elsewhere, or follows on this worker.
    begins: bool,
    woken: Bees,
    follows: bool,
    if_quick: bool,
    /// When it is over, on a worker.
    until: Option<Time>,
    /// After how many messages it looks at the clock again.
    look_at: usize,
    /// What is held until that which is being routed or run is done.
    pub(crate) cause: Option<Arc<Cause>>,
    scratch: Box<Scratch>,
}

impl<'h> Turn<'h> {
    /// Runs `begin`, which routes something, and has run, at `place`, whatever that woke.
    pub(crate) fn with<R>(
        hive: &'h Arc<HiveInner>,
        place: Place,
        begin: impl FnOnce(&mut Turn<'_>) -> R,
    ) -> R {
        let mut turn = Turn::new(hive);
        // inside a handler this worker may be held for who knows how long
        turn.follows = place != Place::Runners && !guard::in_transaction();
        turn.if_quick = place == Place::WorkerIfQuick;
        turn.begins = true;
        let result = begin(&mut turn);
        turn.cause = None;
        if !turn.woken.is_empty() {
            let woken = std::mem::take(&mut turn.woken);
            match turn.follows {
                true => hive.follow_up(woken),
                false => hive.give_to_runners(woken),
            }
        }
        turn.end();
        result
    }

    /// Runs the bees that wait at this thread's slot until there are none or the turn is over; it takes `most` at most,
    /// where there is a limit, and one run longer.
    pub(crate) fn run_slot(hive: &'h Arc<HiveInner>, slot: usize, most: Option<Duration>) {
        let mut turn = Turn { slot, ..Turn::new(hive) };
        turn.until = most.map(|most| turn.now + most);
        while !turn.is_over()
            && let Some(bee) = hive.next_bee(slot)
        {
            turn.run(bee)
        }
        turn.end()
    }

    /// Runs one bee on a thread of its own.
    pub(crate) fn run_bee(hive: &'h Arc<HiveInner>, slot: usize, bee: Arc<dyn Runnable>) {
        let mut turn = Turn { slot, ..Turn::new(hive) };
        turn.run(bee);
        turn.end()
    }

    /// Runs a bee. Whatever unwinds out of it must not take the thread along, which others count on.
    fn run(&mut self, bee: Arc<dyn Runnable>) {
        if panics::harmless(|| bee.run(self)).is_none() {
            self.discard()
        }
    }

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
        let slot = hive.slot_of_thread();
        Turn {
            hive,
            now: hive.now(),
            slot,
            done: 0,
            depth: 0,
            stateless: Stateless::Here,
            unfinished: None,
            begins: false,
            woken: Bees::new(),
            follows: false,
            if_quick: false,
            until: None,
            look_at: 0,
            cause: None,
            scratch,
        }
    }

    /// Runs something, on a thread of many that take turns, with what an earlier one has kept; the next one gets it.
    /// Else each of them would keep as much.
    pub(crate) fn with_kept(hive: &Arc<HiveInner>, run: impl FnOnce()) {
        SCRATCH.set(hive.workers.take_kept().map(Box::new));
        run();
        if let Some(scratch) = SCRATCH.take()
            && scratch.instance == hive.instance
        {
            hive.workers.keep(*scratch)
        }
    }

    fn end(self) {
        SCRATCH.with_borrow_mut(|s| *s = Some(self.scratch));
    }

    /// The bee will be run.
    #[inline]
    pub(crate) fn schedule(&mut self, bee: Arc<dyn Runnable>) {
        match self.begins {
            true => {
                self.woken.push_back(bee);
                if self.woken.len() >= WOKEN_MAX {
                    self.hive.give_to_runners(std::mem::take(&mut self.woken))
                }
            }
            false => self.hive.wake(self.slot, bee),
        }
    }

    /// What is routed now is for a handler of which this is known.
    #[inline(always)]
    pub(crate) fn meets(&mut self, handler: &HandlerCounters) {
        if self.if_quick && handler.has_held_lately(self.now) {
            self.follows = false
        }
    }

    /// Whether the turn runs no bees, but leaves those that it wakes to others.
    #[inline(always)]
    pub(crate) fn only_begins(&self) -> bool {
        self.begins
    }

    /// Whether what the turn wakes runs on this worker.
    #[inline(always)]
    pub(crate) fn follows(&self) -> bool {
        self.follows
    }

    /// The time at which what is run now begins: never before a time that somebody in the hive has read already, so that no
    /// message is handled earlier than it was sent, or was due.
    #[inline(always)]
    pub(crate) fn moment(&mut self) -> Time {
        self.now = self.now.max(self.hive.last_now());
        self.now
    }

    /// Whether the turn has taken its share.
    #[inline(always)]
    pub(crate) fn is_over(&mut self) -> bool {
        self.done >= limits::MESSAGES_PER_TURN_MAX || (self.done >= self.look_at && self.is_late())
    }

    fn is_late(&mut self) -> bool {
        let before = std::mem::replace(&mut self.now, self.hive.now());
        let is_slow = self.now.since(before) >= SLOW_LOOK;
        self.look_at = self.done + if is_slow { 1 } else { MESSAGES_PER_LOOK };
        self.until.is_some_and(|until| self.now >= until)
    }

    #[inline(always)]
    pub(crate) fn count(&mut self, messages: u32) {
        self.done += messages as usize
    }

    #[inline(always)]
    pub(crate) fn ctx(&mut self) -> &mut Ctx {
        &mut self.scratch.ctx
    }

    /// Takes the outputs of the run that just ended, leaving empty ones for what is run while these are handed over.
    pub(crate) fn take_outputs(&mut self) -> Outputs {
        let spare = self.scratch.spare.pop().unwrap_or_else(|| Outputs::new(self.hive.types.clone()));
        std::mem::replace(&mut self.scratch.ctx.out, spare)
    }

    /// Gives outputs back, to be used again.
    pub(crate) fn give_back(&mut self, outputs: Outputs) {
        self.scratch.spare.push(outputs)
    }

    /// Forgets what a run left that did not end as it should.
    pub(crate) fn discard(&mut self) {
        self.scratch.ctx.out = Outputs::new(self.hive.types.clone());
        self.cause = None;
        self.depth = 0;
    }

    /// What the code of app `index` keeps on this thread.
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

    /// Counts what a handler emitted, by type.
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
