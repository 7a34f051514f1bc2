//! The lanes of bees, as far as they send to apps of other logs: which of their messages those apps have not
//! acknowledged, and the floors that follow from it.
//!
//! A message between two bees of one log leaves the outbox of the log with the record that consumes it, so it has
//! exactly one place. A message to a bee of another log has two: the outbox of its sender's log, until an
//! acknowledgment is committed there, and the dedup table of the bee that has consumed it, until the floor of the
//! lane has passed it (PROTOCOL 1.4 and 1.6). This is the sender's half of that, in memory. It changes only
//! when the sender's log has committed something, so that no floor rises before a restart would find it risen.

use crate::hash::HashMap;
use beehive_protocol::{AppId, LaneId, MessageId, Part, Seq};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The unacknowledged messages of one lane.
#[derive(Default)]
struct BeeLane {
    /// All messages below it have been emitted, if they went to an app of another log.
    next: Seq,
    /// The messages that are in the outbox. Each app has a floor of its own: it does not wait for the others.
    open: BTreeSet<(AppId, Seq, Part)>,
    /// Numbers that have been taken for records that are not committed. They hold up the floors of all apps.
    reserved: BTreeSet<Seq>,
    /// Whether the lane is not continued.
    has_ended: bool,
}

impl BeeLane {
    fn floor(&self, app: AppId) -> Seq {
        let open = self.open.range((app, Seq::ZERO, Part::WHOLE)..).next();
        let open = open.filter(|(its_app, ..)| *its_app == app).map_or(self.next, |(_, seq, _)| *seq);
        self.reserved.first().map_or(open, |reserved| open.min(*reserved))
    }

    /// Returns the lowest of the floors of all apps.
    fn floor_of_all(&self) -> Seq {
        let open = self.open.iter().map(|(_, seq, _)| *seq);
        open.chain(self.reserved.first().copied()).fold(self.next, Seq::min)
    }

    fn is_done(&self) -> bool {
        self.open.is_empty() && self.reserved.is_empty()
    }
}

const SHARDS: usize = 16;

/// The lanes of bees and of apps that have sent to apps of other logs, and that a dedup table may contain.
pub(crate) struct BeeLanes {
    shards: [Mutex<HashMap<LaneId, BeeLane>>; SHARDS],
    /// Lanes that have ended and are done.
    retiring: Arc<Mutex<Vec<LaneId>>>,
}

impl BeeLanes {
    /// Creates an empty table. `retiring` is the list of the ended lanes that the logs have to forget.
    pub(crate) fn new(retiring: Arc<Mutex<Vec<LaneId>>>) -> BeeLanes {
        BeeLanes { shards: std::array::from_fn(|_| Mutex::default()), retiring }
    }

    fn shard(&self, lane: LaneId) -> &Mutex<HashMap<LaneId, BeeLane>> {
        let spread = (lane.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        &self.shards[spread % SHARDS]
    }

    /// Adds a lane that was recovered from a log, or raises its next number.
    pub(crate) fn restore(&self, id: LaneId, next: Seq) {
        let mut shard = self.shard(id).lock();
        let lane = shard.entry(id).or_default();
        lane.next = lane.next.max(next)
    }

    /// Notes that a record which emits these messages, all of one lane, is committed.
    pub(crate) fn sent(&self, messages: impl IntoIterator<Item = MessageId>) {
        let mut messages = messages.into_iter();
        let Some(first) = messages.next() else { return };
        let mut shard = self.shard(first.lane).lock();
        let lane = shard.entry(first.lane).or_default();
        for id in std::iter::once(first).chain(messages) {
            debug_assert_eq!(id.lane, first.lane, "one record emits on one lane");
            lane.next = lane.next.max(id.seq.next());
            lane.open.insert((id.app, id.seq, id.part));
        }
    }

    /// Notes that the acknowledgment of a message is committed.
    pub(crate) fn acknowledged(&self, id: MessageId) {
        let mut shard = self.shard(id.lane).lock();
        if let Some(lane) = shard.get_mut(&id.lane) {
            lane.open.remove(&(id.app, id.seq, id.part));
            let is_over = lane.has_ended && lane.is_done();
            if is_over {
                shard.remove(&id.lane);
                self.retiring.lock().push(id.lane)
            }
        }
    }

    /// Takes the next number of the lane on which an app sends what its stateless handlers emit. No floor passes the
    /// number before it is dropped.
    pub(crate) fn reserve(self: &Arc<Self>, app: AppId) -> Reserved {
        let id = LaneId::of_app(app);
        let mut shard = self.shard(id).lock();
        let lane = shard.entry(id).or_default();
        let seq = lane.next;
        lane.next = seq.next();
        lane.reserved.insert(seq);
        Reserved { lanes: self.clone(), id: MessageId { lane: id, seq, part: Part::WHOLE, app } }
    }

    /// Ends a lane: its bee is gone. It retires when all its messages are acknowledged.
    pub(crate) fn end(&self, id: LaneId) {
        let mut shard = self.shard(id).lock();
        let Some(lane) = shard.get_mut(&id) else { return };
        lane.has_ended = true;
        if lane.is_done() {
            shard.remove(&id);
            self.retiring.lock().push(id)
        }
    }

    /// Checks whether a message of the lane is not acknowledged.
    pub(crate) fn is_open(&self, id: LaneId) -> bool {
        self.shard(id).lock().get(&id).is_some_and(|lane| !lane.is_done())
    }

    /// Checks whether the lane is known: it has sent to an app of another log, and has not retired.
    pub(crate) fn knows(&self, id: LaneId) -> bool {
        self.shard(id).lock().contains_key(&id)
    }

    /// Returns the lowest of the floors that the lane has for any app; zero if the lane is unknown.
    pub(crate) fn floor_of_all(&self, id: LaneId) -> Seq {
        self.shard(id).lock().get(&id).map_or(Seq::ZERO, BeeLane::floor_of_all)
    }

    /// Returns the floor of a lane for an app: the app never gets a lower number again. `None` if the lane is unknown.
    pub(crate) fn floor(&self, id: LaneId, app: AppId) -> Option<Seq> {
        self.shard(id).lock().get(&id).map(|lane| lane.floor(app))
    }
}

/// A number of an app's lane for which no record is committed yet.
pub(crate) struct Reserved {
    lanes: Arc<BeeLanes>,
    /// The number, as the id of a message to the app itself.
    pub(crate) id: MessageId,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut shard = self.lanes.shard(self.id.lane).lock();
        if let Some(lane) = shard.get_mut(&self.id.lane) {
            lane.reserved.remove(&self.id.seq);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use beehive_protocol::BeeId;

    fn lanes() -> (Arc<BeeLanes>, Arc<Mutex<Vec<LaneId>>>) {
        let retiring = Arc::<Mutex<Vec<LaneId>>>::default();
        (Arc::new(BeeLanes::new(retiring.clone())), retiring)
    }

    const LANE: LaneId = LaneId::of_bee(AppId(3), BeeId(9));

    fn id(app: u16, seq: u64) -> MessageId {
        MessageId { lane: LANE, seq: Seq(seq), part: Part::WHOLE, app: AppId(app) }
    }

    #[test]
    fn each_app_has_the_floor_of_its_own_oldest_message() {
        let (lanes, _) = lanes();
        assert_eq!(lanes.floor(LANE, AppId(1)), None);
        lanes.sent([id(1, 0), id(2, 0), id(1, 2)]);
        assert_eq!(lanes.floor(LANE, AppId(1)), Some(Seq(0)));
        lanes.acknowledged(id(1, 0));
        assert_eq!(lanes.floor(LANE, AppId(1)), Some(Seq(2)));
        assert_eq!(lanes.floor(LANE, AppId(2)), Some(Seq(0)));
        lanes.acknowledged(id(1, 2));
        assert_eq!(lanes.floor(LANE, AppId(1)), Some(Seq(3)));
        assert_eq!(lanes.floor(LANE, AppId(7)), Some(Seq(3)), "it never got one");
        assert!(lanes.is_open(LANE));
        lanes.acknowledged(id(2, 0));
        assert!(!lanes.is_open(LANE));
    }

    #[test]
    fn a_lane_retires_when_it_has_ended_and_all_is_acknowledged() {
        let (lanes, retiring) = lanes();
        lanes.sent([id(1, 4)]);
        lanes.end(LANE);
        assert!(lanes.knows(LANE) && retiring.lock().is_empty());
        lanes.acknowledged(id(1, 4));
        assert_eq!(*retiring.lock(), [LANE]);
        assert!(!lanes.knows(LANE));
    }

    /// Two stateless handlers take numbers, and the record of the second one is committed first.
    #[test]
    fn a_reserved_number_holds_up_the_floors() {
        let (lanes, _) = lanes();
        let (first, second) = (lanes.reserve(AppId(3)), lanes.reserve(AppId(3)));
        let to = |reserved: &Reserved| MessageId { app: AppId(1), ..reserved.id };
        let lane = LaneId::of_app(AppId(3));

        let newer = to(&second);
        lanes.sent([newer]);
        drop(second);
        lanes.acknowledged(newer);
        assert_eq!(lanes.floor(lane, AppId(1)), Some(first.id.seq));

        let older = to(&first);
        lanes.sent([older]);
        drop(first);
        assert_eq!(lanes.floor(lane, AppId(1)), Some(older.seq));
        lanes.acknowledged(older);
        assert_eq!(lanes.floor(lane, AppId(1)), Some(newer.seq.next()));
    }
}
