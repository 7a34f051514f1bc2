//! Errands: what is to be routed later, by somebody else, in the sender's order.
//!
//! A stateless handler runs where its message is routed. Two things stand against that. An IO bee only routes: it leaves such
//! messages to whoever runs the bees it wakes, in order for each app, and what it sends to the same app meanwhile goes the
//! same way. And handlers that emit to one another may nest too deeply for one stack: what is too deep is put off, and all
//! that the sender routes after it waits until it is done, so that it comes to nobody in another order than it would have
//! with a stack without end.

use crate::hive::admission::credits::Cause;
use crate::hive::dispatch::effects::{Effect, RouteContext, Sink};
use crate::hive::dispatch::sender_queue::SenderLane;
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
pub(crate) struct Errand {
    pub(crate) lane: SenderLane,
    pub(crate) cause: Option<Arc<Cause>>,
    pub(crate) route: Effect,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Errand>,
    /// On some turn's list, or running.
    scheduled: bool,
}

impl State {
    fn put_first(&mut self, unfinished: &mut Vec<Errand>) {
        unfinished.drain(..).rev().for_each(|errand| self.queue.push_front(errand))
    }
}

/// What one sender has left to others: for one app, or what was too deep for one stack.
pub(crate) struct Errands {
    app: u16,
    is_deep: bool,
    state: Mutex<State>,
}

impl Errands {
    pub(crate) fn of(app: u16) -> Arc<Errands> {
        Arc::new(Errands { app, is_deep: false, state: Mutex::default() })
    }

    /// `app`: the one whose handlers are the first that were too deep.
    pub(crate) fn of_the_deep(app: u16) -> Arc<Errands> {
        Arc::new(Errands { app, is_deep: true, state: Mutex::default() })
    }

    /// Whether something is not done.
    pub(crate) fn are_open(&self) -> bool {
        self.state.lock().scheduled
    }

    pub(crate) fn leave(self: &Arc<Self>, errand: Errand, turn: &mut Turn) {
        let mut state = self.state.lock();
        state.queue.push_back(errand);
        if !std::mem::replace(&mut state.scheduled, true) {
            drop(state);
            turn.schedule(self.clone())
        }
    }

    /// `unfinished`: what the last one has put off, which goes on before all others.
    fn next(&self, unfinished: &mut Vec<Errand>) -> Option<Errand> {
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

impl Runnable for Errands {
    fn app(&self) -> u16 {
        self.app
    }

    fn run(self: Arc<Self>, turn: &mut Turn) {
        let mut unfinished = Vec::new();
        while let Some(Errand { mut lane, cause, route }) = self.next(&mut unfinished) {
            if turn.hive.is_over() {
                return self.clear();
            }
            turn.cause = cause;
            turn.unfinished = self.is_deep.then(Vec::new);
            let routed = panics::catch(AssertUnwindSafe(|| route(&mut RouteContext::new(&mut lane, turn))));
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
    pub(crate) fn is_put_off(&self) -> bool {
        match (&self.sink, &self.turn.unfinished) {
            (Sink::Held(effects), _) => effects.is_put_off(),
            (Sink::Now, Some(unfinished)) => !unfinished.is_empty(),
            (Sink::Now, None) => self.lane.is_put_off(),
        }
    }

    /// Has messages of a batch, for `app`, routed when the stack is free again, before all that the sender routes later.
    #[cold]
    pub(crate) fn put_off(
        &mut self,
        app: u16,
        onward: Arc<dyn Onward>,
        batch: Arc<dyn Messages>,
        range: Range<u32>,
        position: Option<u16>,
    ) {
        if let Some(effects) = self.held() {
            return effects.put_off(Box::new(move |cx| onward.route_on(&batch, range, position, cx)));
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
        let errand = Errand { lane: self.lane.share(), cause: self.turn.cause.clone(), route };
        match &mut self.turn.unfinished {
            Some(unfinished) => unfinished.push(errand),
            None => self.lane.put_off(app, errand, self.turn),
        }
    }
}
