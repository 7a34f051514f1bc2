//! Deduplication of messages that no bee consumes: they start a sweep or set a timer, or a stateless handler
//! handles them.

use crate::hive::admission::outside_lanes::{Admitted, Lanes};
use crate::hive::consensus::journal::{DedupTable, HandlerId, Input, LaneId, MessageId};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The dedup table of a log itself, for resumable lanes and for those of other logs' bees.
pub(crate) struct WithoutBee {
    seen: Mutex<DedupTable>,
    /// Whether anything was ever inserted into `seen`. While it is `false`, `has_consumed` takes no lock.
    any: AtomicBool,
}

impl WithoutBee {
    /// Starts with the dedup table that was recovered from a log.
    pub(crate) fn new(seen: DedupTable) -> WithoutBee {
        WithoutBee { any: AtomicBool::new(seen.size() > 0), seen: Mutex::new(seen) }
    }

    /// Checks whether `handler` has consumed this message from outside already.
    pub(crate) fn has_consumed(&self, message_id: MessageId, handler: HandlerId) -> bool {
        self.any.load(Ordering::Acquire)
            && message_id.lane.is_lasting()
            && self.seen.lock().contains(
                message_id.lane,
                message_id.seq,
                message_id.part.derived(message_id.app, handler),
            )
    }

    /// Marks a message as consumed by `handler`, and returns it as the input of a record. Returns `None` if
    /// the handler has consumed it before. Only messages that may be resent are remembered. `lanes` is given if the
    /// message is from another log.
    pub(crate) fn input(
        &self,
        message_id: MessageId,
        handler: HandlerId,
        admitted: Option<&Arc<Admitted>>,
        lanes: Option<&Lanes>,
    ) -> Option<Input> {
        // only messages from outside and from other logs can arrive twice: all others are in this log, which holds
        // each of them once
        let floor = match (admitted, lanes) {
            (Some(admitted), _) => Some(admitted.lane().floor()),
            // the table is that of all apps of the log, so no app's floor must pass the others' messages
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
