//! The lanes of bees, as far as they send to apps of other logs: which of their messages those apps have not
//! acknowledged, and the floors that follow from it.
//!
//! A message between two bees of one log leaves the outbox of the log with the record that consumes it, so it has
//! exactly one place. A message to a bee of another log has two: the outbox of its sender's log, until an
//! acknowledgment is committed there, and the dedup table of the bee that has consumed it, until the floor of the
//! lane has passed it (PROTOCOL 1.4 and 1.6). If bees may move from one log to another, all messages between bees are
//! treated like that, also within a log. This is the sender's half, in memory. It changes only when the sender's log has
//! committed something, so that no floor rises before a restart would find it risen.

use crate::hash::HashMap;
use beehive_protocol::{Acked, AppId, BeeId, Emit, LaneId, MessageId, Part, Seq};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A message that is in an outbox.
struct OpenMessage {
    /// Its place among all messages of the hive, in the order in which their records were released.
    order: u64,
    /// The message, if its bee may move to another log.
    emit: Option<Arc<Emit>>,
}

/// The unacknowledged messages of one lane.
#[derive(Default)]
struct BeeLane {
    /// All messages below it have been emitted, if they went to an app of another log.
    next: Seq,
    /// The messages that are in the outbox. Each app has a floor of its own: it does not wait for the others.
    open: BTreeMap<(AppId, Seq, Part), OpenMessage>,
    /// Numbers that have been taken for records that are not committed. They hold up the floors of all apps.
    reserved: BTreeSet<Seq>,
    /// Whether the lane is not continued.
    has_ended: bool,
    /// The position of the log that has the outbox.
    log: usize,
    /// Whether the outbox is moving to another log: no acknowledgment takes effect.
    is_moving: bool,
}

impl BeeLane {
    fn floor(&self, app: AppId) -> Seq {
        let open = self.open.range((app, Seq::ZERO, Part::WHOLE)..).next();
        let open =
            open.filter(|((its_app, ..), _)| *its_app == app).map_or(self.next, |((_, seq, _), _)| *seq);
        self.reserved.first().map_or(open, |reserved| open.min(*reserved))
    }

    /// Returns the lowest of the floors of all apps.
    fn floor_of_all(&self) -> Seq {
        let open = self.open.keys().map(|(_, seq, _)| *seq);
        open.chain(self.reserved.first().copied()).fold(self.next, Seq::min)
    }

    fn is_done(&self) -> bool {
        self.open.is_empty() && self.reserved.is_empty()
    }
}

const SHARDS: usize = 16;

/// The lanes of bees and of apps that have sent messages which are acknowledged, and that a dedup table may contain.
pub(crate) struct BeeLanes {
    shards: [Mutex<HashMap<LaneId, BeeLane>>; SHARDS],
    /// Whether bees may move to other logs. Then the messages themselves are kept, because the outbox moves too.
    keeps_messages: bool,
    /// Number of messages so far.
    sent: AtomicU64,
    /// Acknowledgments that came while the lane's outbox was moving, or too late for the log that it left.
    misdirected: Mutex<Vec<Acked>>,
    /// The lanes of the bees that are moving.
    moving: Mutex<HashMap<(AppId, BeeId), Vec<LaneId>>>,
    /// Lanes that have ended and are done.
    retiring: Arc<Mutex<Vec<LaneId>>>,
}

impl BeeLanes {
    /// Creates an empty table. `retiring` is the list of the ended lanes that the logs have to forget.
    pub(crate) fn new(keeps_messages: bool, retiring: Arc<Mutex<Vec<LaneId>>>) -> BeeLanes {
        let (sent, misdirected, moving) = Default::default();
        let shards = std::array::from_fn(|_| Mutex::default());
        BeeLanes { shards, keeps_messages, sent, misdirected, moving, retiring }
    }

    fn shard(&self, lane: LaneId) -> &Mutex<HashMap<LaneId, BeeLane>> {
        let spread = (lane.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        &self.shards[spread % SHARDS]
    }

    /// Adds a lane that was recovered from the log at a position, or raises its next number.
    pub(crate) fn restore(&self, id: LaneId, next: Seq, log: usize) {
        let mut shard = self.shard(id).lock();
        let lane = shard.entry(id).or_default();
        (lane.next, lane.log) = (lane.next.max(next), log)
    }

    /// Notes that a record of the log at a position which emits these messages, all of one lane, is committed.
    pub(crate) fn sent<'e>(&self, log: usize, messages: impl IntoIterator<Item = &'e Emit>) {
        let mut messages = messages.into_iter();
        let Some(first) = messages.next() else { return };
        let id = first.id.lane;
        let mut shard = self.shard(id).lock();
        let lane = shard.entry(id).or_insert_with(|| BeeLane { log, ..BeeLane::default() });
        debug_assert!(lane.log == log && !lane.is_moving, "a bee sends in the log that has its outbox");
        for emit in std::iter::once(first).chain(messages) {
            let MessageId { lane: its_lane, seq, part, app } = emit.id;
            debug_assert_eq!(its_lane, id, "one record emits on one lane");
            lane.next = lane.next.max(seq.next());
            let order = self.sent.fetch_add(1, Ordering::Relaxed);
            let emit = self.keeps_messages.then(|| Arc::new(emit.clone()));
            lane.open.insert((app, seq, part), OpenMessage { order, emit });
        }
    }

    /// Notes that the acknowledgment of messages is committed in the log at a position. If their outbox is not there any
    /// more, the acknowledgment has had no effect, and is [given out](BeeLanes::take_misdirected) again.
    pub(crate) fn acknowledged(&self, log: usize, acked: &Acked) {
        let mut shard = self.shard(acked.lane).lock();
        let Some(lane) = shard.get_mut(&acked.lane) else { return };
        if lane.is_moving || lane.log != log {
            drop(shard);
            return self.misdirected.lock().push(*acked);
        }
        for id in acked.messages() {
            lane.open.remove(&(id.app, id.seq, id.part));
        }
        if lane.has_ended && lane.is_done() {
            shard.remove(&acked.lane);
            self.retiring.lock().push(acked.lane)
        }
    }

    /// Returns the position of the log that must learn of an acknowledgment. `None` if no log needs it, or if none can
    /// take it now; the acknowledgment is then [given out](BeeLanes::take_misdirected) again.
    pub(crate) fn log_for(&self, acked: &Acked) -> Option<usize> {
        let shard = self.shard(acked.lane).lock();
        let lane = shard.get(&acked.lane)?;
        if lane.is_moving {
            drop(shard);
            self.misdirected.lock().push(*acked);
            return None;
        }
        Some(lane.log)
    }

    /// Takes the acknowledgments that have not reached the log of their lane.
    pub(crate) fn take_misdirected(&self) -> Vec<Acked> {
        std::mem::take(&mut *self.misdirected.lock())
    }

    /// Notes that the outbox of a bee, which consists of these lanes, is about to move: the record that freezes the bee is
    /// committed.
    pub(crate) fn leave(&self, bee: (AppId, BeeId), lanes: &[LaneId]) {
        for id in lanes {
            if let Some(lane) = self.shard(*id).lock().get_mut(id) {
                lane.is_moving = true
            }
        }
        self.moving.lock().insert(bee, lanes.to_vec());
    }

    /// Notes that the log at a position has the outbox of a bee: the record that adopts or thaws the bee is committed.
    ///
    /// This and [`BeeLanes::leave`] are called in the order of the log, so an acknowledgment has an effect here exactly if
    /// it has one in the log.
    pub(crate) fn arrive(&self, bee: (AppId, BeeId), log: usize) {
        for id in self.moving.lock().remove(&bee).unwrap_or_default() {
            if let Some(lane) = self.shard(id).lock().get_mut(&id) {
                (lane.is_moving, lane.log) = (false, log)
            }
        }
    }

    /// Returns the messages in the outbox of these lanes, in the order in which they were emitted.
    pub(crate) fn outbox(&self, lanes: &[LaneId]) -> Vec<Arc<Emit>> {
        debug_assert!(self.keeps_messages, "only an outbox that may move is kept");
        let mut all = Vec::new();
        for id in lanes {
            if let Some(lane) = self.shard(*id).lock().get(id) {
                all.extend(lane.open.values().filter_map(|open| Some((open.order, open.emit.clone()?))))
            }
        }
        all.sort_unstable_by_key(|(order, _)| *order);
        all.into_iter().map(|(_, emit)| emit).collect()
    }

    /// Takes the next number of the lane on which an app sends what its stateless handlers emit. No floor passes the
    /// number before it is dropped. `log` is the position of the app's log.
    pub(crate) fn reserve(self: &Arc<Self>, app: AppId, log: usize) -> Reserved {
        let id = LaneId::of_app(app);
        let mut shard = self.shard(id).lock();
        let lane = shard.entry(id).or_insert_with(|| BeeLane { log, ..BeeLane::default() });
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

    /// Checks whether the lane is known: it has sent messages that are acknowledged, and has not retired.
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
    use beehive_protocol::{Address, HiveId};

    fn lanes() -> (Arc<BeeLanes>, Arc<Mutex<Vec<LaneId>>>) {
        let retiring = Arc::<Mutex<Vec<LaneId>>>::default();
        (Arc::new(BeeLanes::new(true, retiring.clone())), retiring)
    }

    const LANE: LaneId = LaneId::of_bee(AppId(3), BeeId(9));

    fn id(app: u16, seq: u64) -> MessageId {
        MessageId { lane: LANE, seq: Seq(seq), part: Part::WHOLE, app: AppId(app) }
    }

    fn emit(id: MessageId) -> Emit {
        Emit {
            id,
            name: "m".into(),
            bytes: Vec::new(),
            at: None,
            is_sweep: false,
            position: None,
            origin: HiveId(0),
            sender: Address::Outside,
            hops: 0,
            chain: 0,
            chance: 0,
        }
    }

    /// Sends from the first log.
    fn send(lanes: &BeeLanes, ids: &[MessageId]) {
        lanes.sent(0, &ids.iter().copied().map(emit).collect::<Vec<_>>())
    }

    fn acked(id: MessageId) -> Acked {
        Acked { app: id.app, lane: id.lane, seq: id.seq, count: 1, part: id.part }
    }

    #[test]
    fn each_app_has_the_floor_of_its_own_oldest_message() {
        let (lanes, _) = lanes();
        assert_eq!(lanes.floor(LANE, AppId(1)), None);
        send(&lanes, &[id(1, 0), id(2, 0), id(1, 2)]);
        assert_eq!(lanes.floor(LANE, AppId(1)), Some(Seq(0)));
        lanes.acknowledged(0, &acked(id(1, 0)));
        assert_eq!(lanes.floor(LANE, AppId(1)), Some(Seq(2)));
        assert_eq!(lanes.floor(LANE, AppId(2)), Some(Seq(0)));
        lanes.acknowledged(0, &acked(id(1, 2)));
        assert_eq!(lanes.floor(LANE, AppId(1)), Some(Seq(3)));
        assert_eq!(lanes.floor(LANE, AppId(7)), Some(Seq(3)), "it never got one");
        assert!(lanes.is_open(LANE));
        lanes.acknowledged(0, &acked(id(2, 0)));
        assert!(!lanes.is_open(LANE));
    }

    #[test]
    fn a_lane_retires_when_it_has_ended_and_all_is_acknowledged() {
        let (lanes, retiring) = lanes();
        send(&lanes, &[id(1, 4)]);
        lanes.end(LANE);
        assert!(lanes.knows(LANE) && retiring.lock().is_empty());
        lanes.acknowledged(0, &acked(id(1, 4)));
        assert_eq!(*retiring.lock(), [LANE]);
        assert!(!lanes.knows(LANE));
    }

    /// Two stateless handlers take numbers, and the record of the second one is committed first.
    #[test]
    fn a_reserved_number_holds_up_the_floors() {
        let (lanes, _) = lanes();
        let (first, second) = (lanes.reserve(AppId(3), 0), lanes.reserve(AppId(3), 0));
        let to = |reserved: &Reserved| MessageId { app: AppId(1), ..reserved.id };
        let lane = LaneId::of_app(AppId(3));

        let newer = to(&second);
        send(&lanes, &[newer]);
        drop(second);
        lanes.acknowledged(0, &acked(newer));
        assert_eq!(lanes.floor(lane, AppId(1)), Some(first.id.seq));

        let older = to(&first);
        send(&lanes, &[older]);
        drop(first);
        assert_eq!(lanes.floor(lane, AppId(1)), Some(older.seq));
        lanes.acknowledged(0, &acked(older));
        assert_eq!(lanes.floor(lane, AppId(1)), Some(newer.seq.next()));
    }

    /// The outbox is on its way from the first log to the second one.
    #[test]
    fn what_is_acknowledged_during_a_move_is_acknowledged_to_the_new_log() {
        let (lanes, _) = lanes();
        send(&lanes, &[id(1, 0), id(2, 1), id(1, 2)]);
        lanes.acknowledged(0, &acked(id(2, 1)));
        lanes.leave((AppId(3), BeeId(9)), &[LANE]);
        // its record comes after the one that freezes the bee
        lanes.acknowledged(0, &acked(id(1, 0)));
        assert_eq!(lanes.log_for(&acked(id(1, 2))), None);
        let moves: Vec<_> = lanes.outbox(&[LANE]).iter().map(|emit| emit.id).collect();
        assert_eq!(moves, [id(1, 0), id(1, 2)], "both are in the outbox that moves");

        lanes.arrive((AppId(3), BeeId(9)), 1);
        let again = lanes.take_misdirected();
        assert_eq!(again, [acked(id(1, 0)), acked(id(1, 2))]);
        assert_eq!(lanes.log_for(&again[0]), Some(1));
        assert_eq!(lanes.floor(LANE, AppId(1)), Some(Seq(0)), "no log has said so yet");
        again.iter().for_each(|acked| lanes.acknowledged(1, acked));
        assert!(!lanes.is_open(LANE));

        // a log that the lane has left says that something is acknowledged
        lanes.sent(1, &[emit(id(1, 5))]);
        lanes.acknowledged(0, &acked(id(1, 5)));
        assert!(lanes.is_open(LANE));
        assert_eq!(lanes.take_misdirected(), [acked(id(1, 5))]);
    }
}
