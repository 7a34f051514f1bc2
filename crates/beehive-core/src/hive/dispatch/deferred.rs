//! DeferredQueue: what is to be routed later, by somebody else, in the sender's order.
//!
//! A stateless handler runs where its message is routed. Two things stand against that. An IO bee only routes: it leaves such
//! messages to whoever runs the bees it wakes, in order for each app, and what it sends to the same app meanwhile goes the
//! same way. And handlers that emit to one another may nest too deeply for one stack: what is too deep is put off, and all
//! that the sender routes after it waits until it is done, so that it comes to nobody in another order than it would have
//! with a stack without end.

use crate::hive::admission::credits::Cause;
use crate::hive::dispatch::effects::{Effect, RouteContext, Sink};
use crate::hive::dispatch::sender_queue::SenderQueue;
use crate::hive::dispatch::turn::{Runnable, Turn};
use crate::hive::message::batch::Messages;
use crate::panics;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Routes messages of one type, which it knows, to one app or IO bee.
pub(crate) trait Onward: Send + Sync {
    /// `position`: in the chain of those that can answer.
    fn route_on(
        &self,
        batch: &Arc<dyn Messages>,
        range: Range<u32>,
        position: Option<u16>,
        cx: &mut RouteContext,
    );
}

/// Messages of a sender that are to be routed.
pub(crate) struct Deferred {
    pub(crate) queue: SenderQueue,
    pub(crate) cause: Option<Arc<Cause>>,
    pub(crate) route: Effect,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Deferred>,
    /// On some turn's list, or running.
    scheduled: bool,
}

impl State {
    fn put_first(&mut self, unfinished: &mut Vec<Deferred>) {
        unfinished.drain(..).rev().for_each(|deferred| self.queue.push_front(deferred))
    }
}

/// What one sender has left to others: for one app, or what was too deep for one stack.
pub(crate) struct DeferredQueue {
    app: u16,
    is_deep: bool,
    state: Mutex<State>,
}

impl DeferredQueue {
    pub(crate) fn of(app: u16) -> Arc<DeferredQueue> {
        Arc::new(DeferredQueue { app, is_deep: false, state: Mutex::default() })
    }

    /// `app`: the one whose handlers are the first that were too deep.
    pub(crate) fn for_deep_stacks(app: u16) -> Arc<DeferredQueue> {
        Arc::new(DeferredQueue { app, is_deep: true, state: Mutex::default() })
    }

    /// Whether something is not done.
    pub(crate) fn are_open(&self) -> bool {
        self.state.lock().scheduled
    }

    pub(crate) fn leave(self: &Arc<Self>, deferred: Deferred, turn: &mut Turn) {
        let mut state = self.state.lock();
        state.queue.push_back(deferred);
        if !std::mem::replace(&mut state.scheduled, true) {
            drop(state);
            turn.schedule(self.clone())
        }
    }

    /// `unfinished`: what the last one has put off, which goes on before all others.
    fn next(&self, unfinished: &mut Vec<Deferred>) -> Option<Deferred> {
        let mut state = self.state.lock();
        state.put_first(unfinished);
        let next = state.queue.pop_front();
        // not before the last one is done: what comes then need not wait any more
        state.scheduled = next.is_some();
        next
    }

    /// Throws away what is not begun.
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

    fn run(self: Arc<Self>, turn: &mut Turn) {
        let mut unfinished = Vec::new();
        while let Some(Deferred { mut queue, cause, route }) = self.next(&mut unfinished) {
            if turn.hive.is_over() {
                return self.clear();
            }
            turn.cause = cause;
            turn.unfinished = self.is_deep.then(Vec::new);
            let routed = panics::catch(AssertUnwindSafe(|| route(&mut RouteContext::new(&mut queue, turn))));
            turn.cause = None;
            unfinished.extend(turn.unfinished.take().into_iter().flatten());
            if let Err(panic) = routed {
                let why = panics::text(&*panic);
                tracing::error!(%why, "something that a stateless handler left behind panicked");
                turn.discard();
                let _ = panics::catch(AssertUnwindSafe(|| drop(panic)));
            }
            if turn.is_over() {
                self.state.lock().put_first(&mut unfinished);
                return turn.schedule(self);
            }
        }
    }
}

impl RouteContext<'_, '_> {
    /// Whether what is routed now must wait behind what was too deep for one stack.
    #[inline(always)]
    pub(crate) fn must_defer(&self) -> bool {
        match (&self.sink, &self.turn.unfinished) {
            (Sink::Held(effects), _) => effects.must_defer(),
            (Sink::Now, Some(unfinished)) => !unfinished.is_empty(),
            (Sink::Now, None) => self.queue.must_defer(),
        }
    }

    /// Has messages of a batch, for `app`, routed when the stack is free again, before all that the sender routes later.
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
        // who waits for what becomes of it waits for that, too
        if let Some(admitted) = batch.admitted() {
            admitted.open()
        }
        let route: Effect = Box::new(move |cx| {
            onward.route_on(&batch, range, position, cx);
            if let Some(admitted) = batch.admitted() {
                admitted.close()
            }
        });
        let deferred = Deferred { queue: self.queue.share(), cause: self.turn.cause.clone(), route };
        match &mut self.turn.unfinished {
            Some(unfinished) => unfinished.push(deferred),
            None => self.queue.defer(app, deferred, self.turn),
        }
    }
}
