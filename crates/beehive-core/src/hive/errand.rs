//! Errands: what the task of an IO bee must not do itself, because handlers run there.
//!
//! A stateless handler runs where its message is routed. An IO bee only routes: it leaves such messages to whoever runs the
//! bees it wakes, in order for each app; what it sends to the same app meanwhile goes the same way.

use crate::hive::credit::Cause;
use crate::hive::lane::SenderLane;
use crate::hive::turn::{Runnable, Turn};
use crate::hive::unwinding;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Routes some messages on a lane.
pub(crate) type Route = Box<dyn FnOnce(&mut SenderLane, &mut Turn) + Send>;

/// Messages of a sender that are to be routed.
pub(crate) struct Errand {
    pub(crate) lane: SenderLane,
    pub(crate) cause: Option<Arc<Cause>>,
    pub(crate) route: Route,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Errand>,
    /// On some turn's list, or running.
    scheduled: bool,
}

/// What one sender has left to others, for one app.
#[derive(Default)]
pub(crate) struct Errands(Mutex<State>);

impl Errands {
    /// Whether something is not done.
    pub(crate) fn are_open(&self) -> bool {
        self.0.lock().scheduled
    }

    pub(crate) fn leave(self: &Arc<Self>, errand: Errand, turn: &mut Turn) {
        let mut state = self.0.lock();
        state.queue.push_back(errand);
        if !std::mem::replace(&mut state.scheduled, true) {
            drop(state);
            turn.schedule(self.clone())
        }
    }

    fn next(&self) -> Option<Errand> {
        let mut state = self.0.lock();
        let next = state.queue.pop_front();
        // not before the last one is done: what comes then need not wait any more
        state.scheduled = next.is_some();
        next
    }
}

impl Runnable for Errands {
    fn run(self: Arc<Self>, turn: &mut Turn) {
        while let Some(Errand { mut lane, cause, route }) = self.next() {
            turn.cause = cause;
            let routed = unwinding::catch(AssertUnwindSafe(|| route(&mut lane, turn)));
            turn.cause = None;
            if let Err(panic) = routed {
                let why = unwinding::text(&*panic);
                tracing::error!(%why, "something that a stateless handler left behind panicked");
                turn.discard();
                let _ = unwinding::catch(AssertUnwindSafe(|| drop(panic)));
            }
            if turn.is_over() {
                return turn.schedule(self);
            }
        }
    }
}
