//! Deferred routing: routing that a sender postpones without losing its order.
//!
//! A stateless handler normally runs where its message is routed. There are three exceptions. First, an IO bee
//! must not run handlers. It leaves such messages to the threads that run bees, in one queue per app.
//! Messages that it meanwhile sends to the same app go through the same queue. Second, a hive that sends the
//! messages of a log again leaves those for stateless handlers to the same threads, because such a handler may
//! have to wait for the log, and nobody else should. Third, handlers that emit to
//! one another may nest too deeply for one stack. A message that would nest too deeply is deferred, and
//! everything that the sender routes later waits behind it. All receivers therefore see the same order as
//! with an unlimited stack.

use crate::hive::admission::credits::Cause;
use crate::hive::admission::offices::Office;
use crate::hive::consensus::quarantine::Work;
use crate::hive::dispatch::effects::{Effect, RouteContext, Sink};
use crate::hive::dispatch::resumed::resume;
use crate::hive::dispatch::sender::queue::SenderQueue;
use crate::hive::dispatch::turn::{Link, Runnable, Turn};
use crate::hive::message::batch::Messages;
use crate::panics;
use crate::time::Time;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// A type-erased receiver of one message type. It routes the messages to one app or IO bee.
pub(crate) trait Onward: Send + Sync {
    /// Routes the messages in `range`. `position` is the app's position in the answer chain, or `None` if the
    /// app is not in it.
    fn route_on(
        &self,
        batch: &Arc<dyn Messages>,
        range: Range<u32>,
        position: Option<u16>,
        cx: &mut RouteContext,
    );
}

/// Routing deferred by a sender.
pub(crate) struct Deferred {
    /// The sender's queue.
    pub(crate) queue: SenderQueue,
    /// The messages' cause, which holds their credits.
    pub(crate) cause: Option<Arc<Cause>>,
    /// The log to which the sender belongs.
    pub(crate) office: Office,
    /// The log whose crash marker must name the messages before they run, and the messages; `None` if they are not
    /// quarantined.
    pub(crate) quarantined: Option<(Arc<Link>, Work)>,
    /// The routing itself.
    pub(crate) route: Effect,
}

/// The state of a queue of deferred routing.
#[derive(Default)]
struct State {
    /// The entries that have not begun, oldest first.
    queue: VecDeque<Deferred>,
    /// Whether the queue is scheduled or running.
    scheduled: bool,
}

impl State {
    /// Puts entries in front of all others, keeping their order.
    fn put_first(&mut self, unfinished: &mut Vec<Deferred>) {
        unfinished.drain(..).rev().for_each(|deferred| self.queue.push_front(deferred))
    }
}

/// The decision about the first entry of a queue.
enum Parked {
    /// It runs now.
    Runs(Deferred),
    /// It waits with the queue, which is parked.
    Waits,
    /// It is in the queue, and need not wait any more.
    Again,
}

/// One sender's deferred work: either its work for one app, or everything that nested too deeply.
pub(crate) struct DeferredQueue {
    /// The app to which the threads attribute this work (see [`Runnable::app`]).
    app: u16,
    /// Whether this is the queue for work that nested too deeply.
    is_deep: bool,
    state: Mutex<State>,
}

impl DeferredQueue {
    /// Creates a queue for work of one app.
    pub(crate) fn of(app: u16) -> Arc<DeferredQueue> {
        Arc::new(DeferredQueue { app, is_deep: false, state: Mutex::default() })
    }

    /// Creates a queue for work that was nested too deeply. `app` is the app of the first message in the queue.
    pub(crate) fn for_deep_stacks(app: u16) -> Arc<DeferredQueue> {
        Arc::new(DeferredQueue { app, is_deep: true, state: Mutex::default() })
    }

    /// Returns whether any work is unfinished.
    pub(crate) fn are_open(&self) -> bool {
        self.state.lock().scheduled
    }

    /// Adds work and schedules the queue if necessary.
    pub(crate) fn leave(self: &Arc<Self>, deferred: Deferred, turn: &mut Turn) {
        let mut state = self.state.lock();
        state.queue.push_back(deferred);

        if !std::mem::replace(&mut state.scheduled, true) {
            drop(state);
            turn.schedule(self.clone())
        }
    }

    /// Takes the next entry. `unfinished` contains work that the previous entry deferred again; that work
    /// comes before all other entries.
    fn next(&self, unfinished: &mut Vec<Deferred>) -> Option<Deferred> {
        let mut state = self.state.lock();
        state.put_first(unfinished);

        let next = state.queue.pop_front();
        // clear the flag only when the previous entry is done and no entry is left; from then on, the sender
        // need not defer work behind this queue
        state.scheduled = next.is_some();
        next
    }

    /// Parks the queue if too many threads wait for the crash marker of the log of `next`, its first entry. The queue stays
    /// scheduled, so whoever resumes it is the only one who runs it.
    fn park(self: &Arc<Self>, next: Deferred, turn: &Turn) -> Parked {
        let Some((link, work)) = &next.quarantined else { return Parked::Runs(next) };
        let (link, work) = (link.clone(), *work);
        if !link.quarantine.must_park(&link, || Some(work)) {
            return Parked::Runs(next);
        }
        // first, because another thread may resume the queue as soon as it is parked
        self.state.lock().queue.push_front(next);
        let key = Arc::as_ptr(self) as usize;
        match link.quarantine.park(&link, key, || resume(self.clone(), turn.hive)) {
            true => Parked::Waits,
            false => Parked::Again,
        }
    }

    /// Drops the entries that have not begun, outside the lock, because dropping a message may run the app's
    /// code.
    fn clear(&self) {
        let mut state = self.state.lock();
        let thrown_away = std::mem::take(&mut state.queue);
        state.scheduled = false;
        drop(state);
        drop(thrown_away)
    }
}

impl Runnable for DeferredQueue {
    fn app(&self) -> u16 {
        self.app
    }

    fn has_held_lately(&self, _: Time) -> bool {
        // the handlers are not known before the routing. The turn that defers it looks at the first one
        false
    }

    fn run(self: Arc<Self>, turn: &mut Turn) {
        let mut unfinished = Vec::new();
        while let Some(next) = self.next(&mut unfinished) {
            if turn.hive.is_over() {
                return self.clear();
            }
            let next = match self.park(next, turn) {
                Parked::Runs(next) => next,
                Parked::Waits => return,
                Parked::Again => continue,
            };
            let Deferred { mut queue, cause, office, route, .. } = next;

            (turn.cause, turn.office) = (cause, office);
            turn.unfinished = self.is_deep.then(Vec::new);
            let routed = panics::catch(AssertUnwindSafe(|| route(&mut RouteContext::new(&mut queue, turn))));
            (turn.cause, turn.office) = (None, Office::NONE);
            unfinished.extend(turn.unfinished.take().into_iter().flatten());

            if let Err(panic) = routed {
                let why = panics::text(&*panic);
                tracing::error!(%why, "panic during deferred routing, outside a handler, while a value was dropped or encoded");
                turn.discard();
            }

            if turn.is_over() {
                self.state.lock().put_first(&mut unfinished);
                return turn.schedule(self);
            }
        }
    }
}

impl RouteContext<'_, '_> {
    /// Checks whether routing must wait behind earlier work that nested too deeply.
    #[inline(always)]
    pub(crate) fn must_defer(&self) -> bool {
        match (&self.sink, &self.turn.unfinished) {
            (Sink::Held(effects), _) => effects.must_defer(),
            (Sink::Now, Some(unfinished)) => !unfinished.is_empty(),
            (Sink::Now, None) => self.queue.must_defer(),
        }
    }

    /// Defers the routing of messages to `app` until the stack is free. Everything that the sender
    /// routes later waits behind it.
    #[cold]
    pub(crate) fn defer(
        &mut self,
        app: u16,
        onward: Arc<dyn Onward>,
        batch: Arc<dyn Messages>,
        range: Range<u32>,
        position: Option<u16>,
    ) {
        if let Some(effects) = self.held() {
            return effects.defer(Box::new(move |cx| onward.route_on(&batch, range, position, cx)));
        }

        // keep the batch open until this part of it has been routed as well
        if let Some(admitted) = batch.admitted() {
            admitted.open()
        }
        let route: Effect = Box::new(move |cx| {
            onward.route_on(&batch, range, position, cx);
            if let Some(admitted) = batch.admitted() {
                admitted.close()
            }
        });

        let (queue, cause, office) = (self.queue.share(), self.turn.cause.clone(), self.turn.office);
        let deferred = Deferred { queue, cause, office, quarantined: None, route };
        match &mut self.turn.unfinished {
            Some(unfinished) => unfinished.push(deferred),
            None => self.queue.defer(app, deferred, self.turn),
        }
    }
}
