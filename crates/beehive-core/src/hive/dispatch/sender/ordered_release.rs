//! Releases, in order, the effects of handlers that run without a bee. Each set of effects waits for its own
//! record to commit. One sender's effects are released in the order in which they arose, even if their
//! records are reported as committed in a different order.

use crate::hive::admission::bee_lanes::Reserved;
use crate::hive::admission::credits::Cause;
use crate::hive::admission::offices::Office;
use crate::hive::admission::outside_lanes::Admitted;
use crate::hive::consensus::journal::{Acked, Emit, Emits, HandlerId, MessageId, Record};
use crate::hive::dispatch::effects::{HeldEffects, RouteContext, flush};
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::turn::{Link, Place, Turn};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// One record's effects.
pub(crate) struct Release {
    /// The effects, in order.
    pub(crate) steps: HeldEffects,
    /// The cause of the effects, which holds the credits.
    pub(crate) cause: Option<Arc<Cause>>,
    /// The log that contains the record.
    pub(crate) office: Office,
}

/// The state of one sender's releases.
#[derive(Default)]
struct State {
    /// The pending releases, oldest first; an entry's place is `first` plus its index. An entry is `None` while its
    /// record is in flight.
    queue: VecDeque<Option<Release>>,
    /// The place of the first entry.
    first: u64,
    /// Whether a thread is releasing the entries at the front.
    going: bool,
}

/// The releases of one sender, in the order in which their places were reserved.
#[derive(Default)]
pub(crate) struct Releases(Mutex<State>);

impl Releases {
    /// Returns whether any reserved place has not been released yet.
    pub(crate) fn are_open(&self) -> bool {
        let state = self.0.lock();
        state.going || !state.queue.is_empty()
    }

    /// Returns the place behind the last one that is reserved.
    pub(crate) fn end(&self) -> u64 {
        let state = self.0.lock();
        state.first + state.queue.len() as u64
    }

    /// Checks whether all places before `place` have been released.
    pub(crate) fn has_released(&self, place: u64) -> bool {
        self.0.lock().first >= place
    }

    /// Reserves the next place.
    pub(crate) fn enter(&self) -> u64 {
        let mut state = self.0.lock();
        state.queue.push_back(None);
        state.first + state.queue.len() as u64 - 1
    }

    /// Stores the effects of a committed record, and then releases effects from the front of the queue up to
    /// the first uncommitted record.
    ///
    /// Only one thread releases at a time. If a second thread meanwhile reports another place as committed,
    /// it stores its effects under the lock, finds `going` set and returns. The first thread takes the lock
    /// again after each entry and thus sees the stored effects. Effects are flushed outside the lock, because
    /// they may reserve further places.
    pub(crate) fn committed(&self, place: u64, release: Release, cx: &mut RouteContext) {
        let mut state = self.0.lock();
        let at = place.saturating_sub(state.first) as usize;
        if let Some(waiting) = state.queue.get_mut(at) {
            *waiting = Some(release)
        }

        if std::mem::replace(&mut state.going, true) {
            return;
        }

        while let Some(Some(Release { steps, cause, office })) = state.queue.front_mut().map(Option::take) {
            state.queue.pop_front();
            state.first += 1;
            drop(state);
            (cx.turn.cause, cx.turn.office) = (cause, office);
            flush(steps, cx);
            (cx.turn.cause, cx.turn.office) = (None, Office::NONE);
            state = self.0.lock();
        }
        state.going = false
    }
}

/// Consumes a message with `handler`, unless that handler has already consumed it. The record, which goes to `link`, contains the
/// messages emitted during handling (`emits`); if it `has_postponed` messages, they may wait for a time. `reserved`, if given, is the
/// reservation of their sequence number, which ends when the record is committed. After that, the effects in `steps` are released.
pub(crate) fn consume(
    link: &Arc<Link>,
    message_id: MessageId,
    handler: HandlerId,
    admitted: Option<&Arc<Admitted>>,
    (emits, reserved, has_postponed): (Emits, Option<Reserved>, bool),
    steps: HeldEffects,
    cx: &mut RouteContext,
) {
    if cx.turn.hive.is_over() {
        // no handler begins once the hive is over, so the handler may not have seen the message
        return;
    }

    let link = link.clone();
    let Some(input) = link.input_without_bee(message_id, handler, admitted) else {
        return acknowledge(&link, message_id, cx.turn.hive);
    };

    let admitted = admitted.cloned();
    if let Some(admitted) = &admitted {
        admitted.open()
    }

    let tracked: Vec<Emit> = emits.iter().filter(|emit| link.tracks(emit.id.app)).cloned().collect();
    let record = Record::Admit { app: message_id.app, handler, input, emits };
    let release = Release { steps, cause: cx.turn.cause.clone(), office: link.office() };
    let (hive, (queue, place)) = (cx.turn.hive.clone(), cx.queue.queue_release());
    // a thread reserves its places in the order in which it appends its records, so its effects are released
    // in log order
    let committed = link.say(record);

    cx.turn.hive.spawn(Box::pin(async move {
        let is_committed = committed.await.is_ok();
        if hive.is_over() && !is_committed {
            return;
        }
        let release = match is_committed {
            true => release,
            // The hive has lost the log. If the record is committed all the same, its next leader sends what the handler has
            // emitted. What the same sender has emitted later must not wait for that
            false => Release { steps: HeldEffects::new(), ..release },
        };
        let sent = tracked.iter().filter(|_| is_committed);
        if link.lanes.bees.sent_or_postponed(link.office(), sent, has_postponed)
            && let Some(emit) = tracked.first()
        {
            link.lanes.bees.hold(emit.id.lane, release.cause.as_ref())
        }
        drop(reserved);
        if is_committed {
            acknowledge(&link, message_id, &hive)
        }
        Turn::with(&hive, Place::Runners, |turn| queue.committed(place, release, turn));
        if let Some(admitted) = admitted {
            admitted.close()
        }
    }))
}

/// Acknowledges a message to the log that contains it, if the message may arrive twice. The record that
/// consumes the message must already be committed in the log `link`.
pub(crate) fn acknowledge(link: &Link, message_id: MessageId, hive: &HiveInner) {
    let MessageId { lane, seq, part, app } = message_id;
    if link.acknowledges(lane) {
        hive.acknowledge(Acked { app, lane, seq, count: 1, part })
    }
}
