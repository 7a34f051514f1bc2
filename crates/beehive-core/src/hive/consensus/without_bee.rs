//! Deduplication of messages that no bee consumes because they start a sweep, set a timer, or go to a
//! stateless handler.

use crate::hive::admission::outside_lanes::{Admitted, Lanes};
use crate::hive::consensus::journal::{DedupTable, HandlerId, Input, LaneId, MessageId};
use crate::mutant::Mutant;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A log's own dedup table, for resumable lanes and for lanes whose messages are acknowledged.
pub(crate) struct WithoutBee {
    seen: Mutex<DedupTable>,
    /// Whether anything has ever been inserted into `seen`. While it is `false`, `has_consumed` takes no
    /// lock.
    any: AtomicBool,
}

impl WithoutBee {
    /// Starts with the dedup table recovered from a log.
    pub(crate) fn new(seen: DedupTable) -> WithoutBee {
        WithoutBee { any: AtomicBool::new(seen.size() > 0), seen: Mutex::new(seen) }
    }

    /// Checks whether `handler` has already consumed this message from outside.
    pub(crate) fn has_consumed(&self, message_id: MessageId, handler: HandlerId) -> bool {
        self.any.load(Ordering::Acquire)
            && message_id.lane.is_lasting()
            && self.seen.lock().contains(
                message_id.lane,
                message_id.seq,
                message_id.part.derived(message_id.app, handler),
            )
    }

    /// Marks a message as consumed by `handler` and returns it as the input of a record. Returns `None` if
    /// the handler has already consumed it. Only messages that may be resent are remembered. `lanes` is given
    /// if the message comes from a bee or an app and needs an acknowledgment.
    pub(crate) fn input(
        &self,
        message_id: MessageId,
        handler: HandlerId,
        admitted: Option<&Arc<Admitted>>,
        lanes: Option<&Lanes>,
    ) -> Option<Input> {
        // messages from outside and messages that need an acknowledgment can arrive twice. Every other
        // message is in this log's outbox, exactly once
        let floor = match (admitted, lanes) {
            (Some(admitted), _) => Some(admitted.lane().floor()),
            // all of the log's apps share this table, so the floor must not pass an unacknowledged message to
            // any app
            (None, Some(lanes)) if lanes.breaks(Mutant::WithoutBeeFloorOfOneApp) => {
                lanes.bees.floor(message_id.lane, message_id.app)
            }
            (None, Some(lanes)) => Some(lanes.bees.floor_of_all(message_id.lane)),
            (None, None) => None,
        };
        if lanes.is_some() || (admitted.is_some() && message_id.lane.is_lasting()) {
            self.any.store(true, Ordering::Release);
            let mut seen = self.seen.lock();
            seen.raise(message_id.lane, floor.unwrap_or_default());

            let part = message_id.part.derived(message_id.app, handler);
            let is_unmarked = lanes.is_some_and(|lanes| lanes.breaks(Mutant::WithoutBeeUnmarked));
            if seen.contains(message_id.lane, message_id.seq, part) && !is_unmarked {
                return None;
            }
            seen.insert(message_id.lane, message_id.seq, part);
        }

        Some(Input { lane: message_id.lane, floor, seq: message_id.seq, count: 1, part: message_id.part })
    }

    /// Checks whether `handler` has already consumed this message, on any lane. The handler may be one of an earlier program
    /// that this one does not have.
    pub(crate) fn contains(&self, message_id: MessageId, handler: HandlerId) -> bool {
        let MessageId { lane, seq, part, app } = message_id;
        let seen = self.seen.lock();
        seen.contains_lane(lane) && seen.contains(lane, seq, part.derived(app, handler))
    }

    /// Removes lanes that have ended.
    pub(crate) fn forget(&self, lanes: &[LaneId]) {
        let mut seen = self.seen.lock();
        lanes.iter().for_each(|lane| seen.forget(*lane))
    }

    /// Returns the number of entries in the dedup table.
    pub(crate) fn size(&self) -> usize {
        self.seen.lock().size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::BeeId;
    use crate::hive::admission::bee_lanes::tests::emit as emit_of;
    use crate::hive::consensus::journal::{Acked, AppId, Emit, Part, Seq};
    use crate::mutant::Mutation;

    fn emit(app: u16, seq: u64) -> Emit {
        let lane = LaneId::of_bee(AppId(9), BeeId(1));
        emit_of(MessageId { lane, seq: Seq(seq), part: Part::WHOLE, app: AppId(app) })
    }

    /// Two apps of one log get a message. The first one also gets the next message, and is done with both before the
    /// second app gets its own. Returns whether the second app consumes the message.
    fn the_second_app_consumes_it(mutation: Mutation) -> bool {
        let lanes = Lanes::new([], true, None, mutation);
        let (first, next, second) = (emit(1, 0), emit(1, 1), emit(2, 0));
        lanes.bees.sent(lanes.bees.offices.begin(0), [&first, &second, &next]);
        let table = WithoutBee::new(DedupTable::default());
        let consume = |emit: &Emit| table.input(emit.id, HandlerId(0), None, Some(&lanes)).is_some();
        assert!(consume(&first));
        let MessageId { app, lane, seq, part } = first.id;
        lanes.bees.acknowledged(0, &Acked { app, lane, seq, count: 1, part });
        assert!(consume(&next) && !consume(&next));
        consume(&second)
    }

    #[test]
    fn the_floor_in_the_shared_table_is_that_of_all_apps() {
        assert!(the_second_app_consumes_it(Mutation::default()));
    }

    #[cfg(feature = "testing")]
    #[test]
    fn with_the_floor_of_one_app_another_app_loses_its_message() {
        assert!(!the_second_app_consumes_it(Mutation::of(Some(Mutant::WithoutBeeFloorOfOneApp))));
    }
}
