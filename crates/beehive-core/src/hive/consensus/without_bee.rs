//! Deduplication of messages that no bee consumes because they start a sweep, set a timer, or go to a
//! stateless handler.

use crate::hive::admission::outside_lanes::{Admitted, Lanes};
use crate::hive::consensus::journal::{DedupTable, HandlerId, Input, LaneId, MessageId};
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
            (None, Some(lanes)) => Some(lanes.bees.floor_of_all(message_id.lane)),
            (None, None) => None,
        };
        if lanes.is_some() || (admitted.is_some() && message_id.lane.is_lasting()) {
            self.any.store(true, Ordering::Release);
            let mut seen = self.seen.lock();
            seen.raise(message_id.lane, floor.unwrap_or_default());

            let part = message_id.part.derived(message_id.app, handler);
            if seen.contains(message_id.lane, message_id.seq, part) {
                return None;
            }
            seen.insert(message_id.lane, message_id.seq, part);
        }

        Some(Input { lane: message_id.lane, floor, seq: message_id.seq, count: 1, part: message_id.part })
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
