//! What one sender lets go when it is committed, by itself and not in the record of a bee: in the order in which it happened,
//! whichever record is heard of first.

use crate::hive::admission::credits::Cause;
use crate::hive::admission::outside_lanes::Admitted;
use crate::hive::consensus::journal::{Emit, HandlerId, MessageId, Record};
use crate::hive::dispatch::effects::{Effect, RouteContext, flush};
use crate::hive::dispatch::turn::{Place, Turn};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// What a record lets go.
pub(crate) struct Release {
    pub(crate) steps: Vec<Effect>,
    pub(crate) cause: Option<Arc<Cause>>,
}

#[derive(Default)]
struct State {
    /// In the order of their places; none: its record is on its way.
    queue: VecDeque<Option<Release>>,
    /// The place of the first.
    first: u64,
    /// Somebody lets go what is at the front.
    going: bool,
}

#[derive(Default)]
pub(crate) struct Releases(Mutex<State>);

impl Releases {
    /// Whether something has a place and has not gone.
    pub(crate) fn are_open(&self) -> bool {
        let state = self.0.lock();
        state.going || !state.queue.is_empty()
    }

    pub(crate) fn enter(&self) -> u64 {
        let mut state = self.0.lock();
        state.queue.push_back(None);
        state.first + state.queue.len() as u64 - 1
    }

    /// Lets go what has place `place` as soon as all before it have gone. Not under the lock: what goes may enter again.
    pub(crate) fn committed(&self, place: u64, release: Release, cx: &mut RouteContext) {
        let mut state = self.0.lock();
        let at = place.saturating_sub(state.first) as usize;
        if let Some(waiting) = state.queue.get_mut(at) {
            *waiting = Some(release)
        }
        if std::mem::replace(&mut state.going, true) {
            return;
        }
        while let Some(Some(Release { steps, cause })) = state.queue.front_mut().map(Option::take) {
            state.queue.pop_front();
            state.first += 1;
            drop(state);
            cx.turn.cause = cause;
            flush(steps, cx);
            cx.turn.cause = None;
            state = self.0.lock();
        }
        state.going = false
    }
}

/// Has handler `handler` consume a message, unless it did so before: a record says what is made of it, and then `steps`
/// let that go.
pub(crate) fn consume(
    fact: MessageId,
    handler: usize,
    admitted: Option<&Arc<Admitted>>,
    emits: Vec<Emit>,
    steps: Vec<Effect>,
    cx: &mut RouteContext,
) {
    let Some(link) = cx.turn.hive.link.clone() else { return };
    let handler = HandlerId(handler as u16);
    let Some(input) = link.without_bee.input(fact, handler, admitted) else { return };
    let admitted = admitted.cloned();
    if let Some(admitted) = &admitted {
        admitted.open()
    }
    let record = Record::Admit { app: fact.app, handler, input, emits };
    let release = Release { steps, cause: cx.turn.cause.clone() };
    let (hive, (lane, place)) = (cx.turn.hive.clone(), cx.queue.queue_release());
    // in the log, too, it stands where it happened
    let committed = link.say(record);
    cx.turn.hive.spawn(Box::pin(async move {
        let _ = committed.await;
        Turn::with(&hive, Place::Runners, |turn| lane.committed(place, release, turn));
        if let Some(admitted) = admitted {
            admitted.close()
        }
    }))
}
