//! Messages that are consumed without a bee: they begin a sweep, ask for a timer, or are turned into others by a stateless
//! handler whose time has come.

use crate::hive::admission::outside_lanes::Admitted;
use crate::hive::consensus::journal::{DedupTable, HandlerId, Input, LaneId, MessageId, Seq};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What of the lanes that are gone on with was consumed without a bee.
pub(crate) struct WithoutBee {
    seen: Mutex<DedupTable>,
    /// Something was consumed, at some time.
    any: AtomicBool,
}

impl WithoutBee {
    pub(crate) fn new(seen: DedupTable) -> WithoutBee {
        WithoutBee { any: AtomicBool::new(seen.size() > 0), seen: Mutex::new(seen) }
    }

    /// Whether a record says already what handler `handler` made of a message from outside.
    pub(crate) fn has_consumed(&self, fact: MessageId, handler: HandlerId) -> bool {
        self.any.load(Ordering::Acquire)
            && fact.lane.is_lasting()
            && self.seen.lock().contains(fact.lane, fact.seq, fact.part.derived(fact.app, handler))
    }

    /// What a record says of a message that handler `handler` consumes; none if it did so before. Only what may be sent
    /// again is remembered.
    pub(crate) fn input(
        &self,
        fact: MessageId,
        handler: HandlerId,
        admitted: Option<&Arc<Admitted>>,
    ) -> Option<Input> {
        // what is not from outside is in the log, which has it once
        let floor = admitted.map_or(Seq::ZERO, |admitted| admitted.lane().floor());
        if admitted.is_some() && fact.lane.is_lasting() {
            self.any.store(true, Ordering::Release);
            let mut seen = self.seen.lock();
            seen.raise(fact.lane, floor);
            let part = fact.part.derived(fact.app, handler);
            if seen.contains(fact.lane, fact.seq, part) {
                return None;
            }
            seen.insert(fact.lane, fact.seq, part);
        }
        Some(Input { lane: fact.lane, floor, seq: fact.seq, count: 1, part: fact.part })
    }

    pub(crate) fn forget(&self, lanes: &[LaneId]) {
        let mut seen = self.seen.lock();
        lanes.iter().for_each(|lane| seen.forget(*lane))
    }

    pub(crate) fn size(&self) -> usize {
        self.seen.lock().size()
    }
}
