//! A hive that goes on where a log ends: lanes, what is still to be handled, sweeps that are not over.

use crate::hash::HashMap;
use crate::hive::consensus::journal::{LaneId, LogState, Record, Waiting};
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::sender_queue::SenderQueue;
use crate::hive::dispatch::turn::{Place, Turn};
use crate::state::DecodeError;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The lanes of senders, so that what is sent again and what comes after it keep their order.
#[derive(Default)]
pub(crate) struct SenderQueues(HashMap<LaneId, SenderQueue>);

impl SenderQueues {
    pub(crate) fn of(&mut self, lane: LaneId) -> SenderQueue {
        self.0.entry(lane).or_insert_with(SenderQueue::shared).clone()
    }

    /// The lane of a bee, which is also that of those that have merged into it.
    pub(crate) fn of_bee(&mut self, lane: LaneId, heir_of: &BTreeSet<LaneId>) -> SenderQueue {
        let own = self.of(lane);
        heir_of.iter().for_each(|other| {
            self.0.insert(*other, own.clone());
        });
        own
    }
}

/// The lanes of outside that ended with the life that wrote the log.
pub(crate) fn dead_lanes(colony: &LogState) -> Vec<LaneId> {
    let all = colony.bees.values().flat_map(|bee| bee.seen.floors());
    let dead: BTreeSet<LaneId> =
        all.map(|(lane, _)| lane).filter(|lane| lane.is_outside() && !lane.is_lasting()).collect();
    dead.into_iter().collect()
}

/// Sends again what has been emitted and not been handled, in the order in which it was emitted.
pub(crate) fn send_again(
    hive: &Arc<HiveInner>,
    colony: &LogState,
    lanes: &mut SenderQueues,
) -> Result<(), DecodeError> {
    let mut all: Vec<(&Waiting, Option<_>)> = colony.outbox.values().map(|waiting| (waiting, None)).collect();
    all.extend(colony.sweeps.values().map(|sweep| (&sweep.waiting, Some(sweep))));
    all.sort_by_key(|(waiting, _)| waiting.order);
    Turn::with(hive, Place::Runners, |turn| {
        all.into_iter().try_for_each(|(waiting, sweep)| {
            let mut lane = lanes.of(waiting.emit.id.lane);
            let cx = &mut RouteContext::new(&mut lane, turn);
            match sweep {
                Some(sweep) => hive.types.resume_sweep(sweep, cx),
                None => hive.types.resend(&waiting.emit, cx),
            }
        })
    })
}

/// Says in the log that nothing comes on these lanes any more.
pub(crate) fn retire_lanes(hive: &Arc<HiveInner>, lanes: Vec<LaneId>) {
    const LANES_PER_RECORD: usize = 4096;
    let Some(link) = hive.link.clone() else { return };
    if lanes.is_empty() {
        return;
    }
    link.without_bee.forget(&lanes);
    hive.platform.spawn(Box::pin(async move {
        for lanes in lanes.chunks(LANES_PER_RECORD) {
            link.commit(Record::Retire { lanes: lanes.to_vec() }).await
        }
    }))
}
