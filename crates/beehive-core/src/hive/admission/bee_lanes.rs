//! The lanes of bees and apps whose messages need acknowledgments. The table tracks the unacknowledged messages and
//! the floors of these lanes.
//!
//! If both bees are in one log, the record that consumes a message also removes the message from the outbox, so no
//! acknowledgment is needed. If they are in different logs, two logs remember the message: the sender's log keeps it in
//! the outbox until that log commits an acknowledgment, and the receiver's log keeps it in the consuming bee's dedup
//! table until the lane's floor has passed it. After a crash, the message is resent from the outbox, and the dedup
//! table recognizes it as a duplicate. If bees may move from one log to another, all messages between bees are
//! acknowledged, even within one log. This table is the sender's half, in memory. A floor in it rises only after the
//! sender's log has committed the acknowledgment, so a restart never recovers a floor lower than one that receivers
//! have already seen.

use crate::hash::HashMap;
use crate::hive::admission::offices::{Office, Offices};
use crate::mutant::{Mutant, Mutation};
use beehive_protocol::{Acked, AppId, BeeId, Emit, Epoch, LaneId, MessageId, Part, Seq};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An unacknowledged message in an outbox.
struct OpenMessage {
    /// The message's position in the order in which the hive committed its records, and thus their messages.
    order: u64,
    /// The message itself, if the bee may move to another log.
    emit: Option<Arc<Emit>>,
}

/// The unacknowledged messages of one lane.
#[derive(Default)]
struct BeeLane {
    /// A number above all reserved numbers and above those of all sent messages that need an acknowledgment.
    next: Seq,
    /// The unacknowledged messages. Each receiving app has its own floor, independent of the other apps.
    open: BTreeMap<(AppId, Seq, Part), OpenMessage>,
    /// Numbers reserved for records that are not yet committed, each with the number of its reservation. No app's floor passes
    /// them.
    reserved: BTreeMap<Seq, u64>,
    /// Whether no more messages will be sent on the lane.
    has_ended: bool,
    /// Whether the lane is in the list of lanes to be retired. It stays in the table until it is taken from there.
    is_retiring: bool,
    /// Position of the log that contains the outbox.
    log: usize,
    /// Whether the outbox is moving to another log. If so, acknowledgments have no effect.
    is_moving: bool,
}

impl BeeLane {
    fn floor(&self, app: AppId, mutation: Mutation) -> Seq {
        if mutation.breaks(Mutant::FloorOfOneApp) {
            let of_others = self.open.keys().filter(|(other, ..)| *other != app).map(|(_, seq, _)| *seq);
            return of_others.fold(self.next, Seq::min);
        }
        let open = self.open.range((app, Seq::ZERO, Part::WHOLE)..).next();
        let open =
            open.filter(|((its_app, ..), _)| *its_app == app).map_or(self.next, |((_, seq, _), _)| *seq);
        let reserved = self.reserved.keys().next().filter(|_| !mutation.breaks(Mutant::FloorFromSpeculation));
        reserved.map_or(open, |reserved| open.min(*reserved))
    }

    /// Returns the lowest of all apps' floors.
    fn floor_of_all(&self) -> Seq {
        let open = self.open.keys().map(|(_, seq, _)| *seq);
        open.chain(self.reserved.keys().next().copied()).fold(self.next, Seq::min)
    }

    fn is_done(&self) -> bool {
        self.open.is_empty() && self.reserved.is_empty()
    }
}

/// A bee whose outbox is moving.
struct Moving {
    /// The position of the log that froze the bee.
    log: usize,
    lanes: Vec<LaneId>,
    /// The epoch in which the bee was frozen, if the hive is in a cluster.
    epoch: Option<Epoch>,
}

const SHARDS: usize = 16;

/// The lanes of bees and apps that have sent messages requiring acknowledgment. Dedup tables may contain these lanes.
pub(crate) struct BeeLanes {
    shards: [Mutex<HashMap<LaneId, BeeLane>>; SHARDS],
    /// Whether bees may move to other logs. If so, this table also keeps the messages, because an outbox moves with its
    /// bee.
    keeps_messages: bool,
    /// Whether the hive is in a cluster. If so, acknowledgments of moving lanes are lost: whoever has the outbox sends the
    /// messages again, and receivers acknowledge them again.
    is_clustered: bool,
    /// Number of messages sent so far.
    sent: AtomicU64,
    /// Number of reservations so far.
    reservations: AtomicU64,
    /// Acknowledgments that had no effect because the lane's outbox was moving or had already left the log.
    misdirected: Mutex<Vec<Acked>>,
    /// The lanes of the bees that are moving.
    moving: Mutex<HashMap<(AppId, BeeId), Moving>>,
    /// Ended lanes whose messages are all acknowledged.
    retiring: Arc<Mutex<Vec<LaneId>>>,
    /// The offices of the hive.
    pub(crate) offices: Offices,
    /// The rule that a test breaks, for everything that has a log.
    pub(crate) mutation: Mutation,
}

impl BeeLanes {
    /// Creates an empty table. The table adds lanes that have ended to `retiring`, so that the logs forget them.
    pub(crate) fn new(
        keeps_messages: bool,
        is_clustered: bool,
        retiring: Arc<Mutex<Vec<LaneId>>>,
        mutation: Mutation,
    ) -> BeeLanes {
        let (sent, misdirected, moving, reservations, offices) = Default::default();
        let shards = std::array::from_fn(|_| Mutex::default());
        BeeLanes {
            shards,
            keeps_messages,
            is_clustered,
            sent,
            reservations,
            misdirected,
            moving,
            retiring,
            offices,
            mutation,
        }
    }

    fn shard(&self, lane: LaneId) -> &Mutex<HashMap<LaneId, BeeLane>> {
        let spread = (lane.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        &self.shards[spread % SHARDS]
    }

    /// Adds a lane recovered from the log that the hive leads in this office. If the table has the lane already, raises its next
    /// number. Does nothing if the office has ended.
    pub(crate) fn restore(&self, id: LaneId, next: Seq, office: Office) {
        let mut shard = self.shard(id).lock();
        if self.offices.holds(office) {
            let lane = shard.entry(id).or_default();
            (lane.next, lane.log) = (lane.next.max(next), office.position())
        }
    }

    /// Notes that the log that the hive leads in this office has committed a record that emits these messages. They all belong
    /// to one lane. Does nothing if the office has ended: the next leader of the log has them in its outbox.
    ///
    /// This looks at the office under the lock of the lane's shard, and [`BeeLanes::leave_log`] takes this lock after the
    /// office has ended. So either that call removes the lane, or this one does not add it.
    pub(crate) fn sent<'e>(&self, office: Office, messages: impl IntoIterator<Item = &'e Emit>) {
        let numbered = messages.into_iter().map(|emit| (self.sent.fetch_add(1, Ordering::Relaxed), emit));
        self.sent_in_order(office, numbered)
    }

    /// Sorts messages of several lanes, given in order of emission, by lane. With each message, the place in that order, for
    /// [`BeeLanes::sent_in_order`]: a bee that has merged has several lanes, and its outbox is sent in order of emission again.
    pub(crate) fn by_lane<'e>(
        &self,
        messages: impl ExactSizeIterator<Item = &'e Emit>,
    ) -> BTreeMap<LaneId, Vec<(u64, &'e Emit)>> {
        let first = self.sent.fetch_add(messages.len() as u64, Ordering::Relaxed);
        let mut by_lane: BTreeMap<LaneId, Vec<_>> = BTreeMap::new();
        for numbered in (first..).zip(messages) {
            by_lane.entry(numbered.1.id.lane).or_default().push(numbered)
        }
        by_lane
    }

    /// Same as [`BeeLanes::sent`], for messages with their places in the order of emission.
    pub(crate) fn sent_in_order<'e>(
        &self,
        office: Office,
        messages: impl IntoIterator<Item = (u64, &'e Emit)>,
    ) {
        let mut messages = messages.into_iter();
        let Some(first) = messages.next() else { return };
        let (id, log) = (first.1.id.lane, office.position());
        let mut shard = self.shard(id).lock();
        if !self.offices.holds(office) {
            return;
        }
        let lane = shard.entry(id).or_insert_with(|| BeeLane { log, ..BeeLane::default() });
        debug_assert!(lane.log == log && !lane.is_moving, "a bee sends in the log that has its outbox");
        for (order, emit) in std::iter::once(first).chain(messages) {
            let MessageId { lane: its_lane, seq, part, app } = emit.id;
            debug_assert_eq!(its_lane, id, "one record emits on one lane");
            lane.next = lane.next.max(seq.next());
            let emit = self.keeps_messages.then(|| Arc::new(emit.clone()));
            lane.open.insert((app, seq, part), OpenMessage { order, emit });
        }
    }

    /// Notes that the log at position `log` has committed the acknowledgment of messages. If their outbox is no longer
    /// in this log, the acknowledgment had no effect and becomes [misdirected](BeeLanes::take_misdirected).
    pub(crate) fn acknowledged(&self, log: usize, acked: &Acked) {
        let mut shard = self.shard(acked.lane).lock();
        let Some(lane) = shard.get_mut(&acked.lane) else { return };
        let is_elsewhere = lane.is_moving || lane.log != log;
        if is_elsewhere && !self.mutation.breaks(Mutant::FrozenTakesAcks) {
            drop(shard);
            return self.misdirected(acked);
        }
        if acked.count as usize > lane.open.len() {
            // nothing bounds the length of a run in a packet of another hive
            let id = |(app, seq, part): (AppId, Seq, Part)| MessageId { lane: acked.lane, seq, part, app };
            lane.open.retain(|key, _| !acked.contains(&id(*key)));
            return self.retire_if_done(acked.lane, lane);
        }
        for id in acked.messages() {
            lane.open.remove(&(id.app, id.seq, id.part));
            if self.mutation.breaks(Mutant::AckIgnoresApp) {
                lane.open.retain(|(_, seq, part), _| (*seq, *part) != (id.seq, id.part))
            }
        }
        self.retire_if_done(acked.lane, lane)
    }

    fn retire_if_done(&self, id: LaneId, lane: &mut BeeLane) {
        if lane.has_ended && lane.is_done() && !std::mem::replace(&mut lane.is_retiring, true) {
            self.retiring.lock().push(id)
        }
    }

    /// Removes lanes that have retired.
    pub(crate) fn remove(&self, retired: &[LaneId]) {
        for id in retired {
            self.shard(*id).lock().remove(id);
        }
    }

    /// Returns the position of the log that needs an acknowledgment. Returns `None` if no log needs it, or if the
    /// outbox is moving. In the latter case, the acknowledgment becomes [misdirected](BeeLanes::take_misdirected).
    pub(crate) fn log_for(&self, acked: &Acked) -> Option<usize> {
        let shard = self.shard(acked.lane).lock();
        let lane = shard.get(&acked.lane)?;
        if lane.is_moving {
            drop(shard);
            self.misdirected(acked);
            return None;
        }
        Some(lane.log)
    }

    fn misdirected(&self, acked: &Acked) {
        if !self.is_clustered && !self.mutation.breaks(Mutant::MisdirectedDropped) {
            self.misdirected.lock().push(*acked)
        }
    }

    /// Takes the misdirected acknowledgments, which have not reached the log of their lane. The caller must send them
    /// again.
    pub(crate) fn take_misdirected(&self) -> Vec<Acked> {
        std::mem::take(&mut *self.misdirected.lock())
    }

    /// Notes that a bee's outbox, which consists of these lanes, is about to move from the log at position `log`, which has
    /// committed the record that freezes the bee. `epoch` is that of the frozen bee, if the hive is in a cluster.
    pub(crate) fn leave(&self, bee: (AppId, BeeId), log: usize, lanes: &[LaneId], epoch: Option<Epoch>) {
        for id in lanes {
            if let Some(lane) = self.shard(*id).lock().get_mut(id) {
                lane.is_moving = true
            }
        }
        self.moving.lock().insert(bee, Moving { log, lanes: lanes.to_vec(), epoch });
    }

    /// Notes that a bee's outbox is now in the log at position `log`, which has committed the record that adopts or
    /// thaws the bee in `epoch`. If the bee has been in another hive since this one froze it, the table no longer tells
    /// what is unacknowledged, so its lanes are removed as in [`BeeLanes::depart`].
    ///
    /// This and [`BeeLanes::leave`] are called in the order of the log's entries. Therefore an acknowledgment takes
    /// effect here if and only if it takes effect in the log.
    pub(crate) fn arrive(&self, bee: (AppId, BeeId), log: usize, epoch: Epoch, departs: impl Fn(LaneId)) {
        let Some(moving) = self.moving.lock().remove(&bee) else { return };
        let was_elsewhere = moving.epoch.is_some_and(|frozen| frozen.next() != epoch);
        for id in moving.lanes {
            let mut shard = self.shard(id).lock();
            if was_elsewhere {
                departs(id);
                shard.remove(&id);
            } else if let Some(lane) = shard.get_mut(&id) {
                (lane.is_moving, lane.log) = (false, log)
            }
        }
    }

    /// Notes that the log at position `log` has dropped a bee that has moved to another hive. Calls `departs` for each lane
    /// that is no longer one of this hive, before the lane is removed. If another log of this hive has adopted the bee,
    /// which it may have frozen again by now, there are none.
    pub(crate) fn depart(&self, bee: (AppId, BeeId), log: usize, departs: impl Fn(LaneId)) {
        let moving = {
            let mut all = self.moving.lock();
            if all.get(&bee).is_none_or(|moving| moving.log != log) {
                return;
            }
            all.remove(&bee)
        };
        let Some(moving) = moving else { return };
        for id in moving.lanes {
            let mut shard = self.shard(id).lock();
            if shard.get(&id).is_none_or(|lane| lane.is_moving && lane.log == log) {
                departs(id);
                shard.remove(&id);
            }
        }
    }

    /// Notes that a bee, which a log of this hive has frozen, is in a log that another hive has led so far, in `epoch`. If
    /// that is a later one, this table no longer tells what is unacknowledged. Calls `departs` for each of the bee's lanes,
    /// before the lane is removed.
    pub(crate) fn supersede(&self, bee: (AppId, BeeId), epoch: Epoch, departs: impl Fn(LaneId)) {
        let moving = {
            let mut all = self.moving.lock();
            if all.get(&bee).is_none_or(|moving| moving.epoch.is_none_or(|frozen| frozen >= epoch)) {
                return;
            }
            all.remove(&bee)
        };
        for id in moving.into_iter().flat_map(|moving| moving.lanes) {
            let mut shard = self.shard(id).lock();
            departs(id);
            shard.remove(&id);
        }
    }

    /// Returns the position of the log whose outbox contains what is sent on a lane.
    pub(crate) fn log_of(&self, id: LaneId) -> Option<usize> {
        self.shard(id).lock().get(&id).map(|lane| lane.log)
    }

    /// Returns the messages in the outbox of these lanes, in order of emission.
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

    /// Reserves the next number on `id`, the lane for messages from an app's stateless handlers. None of the lane's floors
    /// passes the number until the returned value is dropped. The hive leads the lane's log in this office. If the office has
    /// ended, reserves nothing: the log commits no record of this hive any more.
    pub(crate) fn reserve(self: &Arc<Self>, id: LaneId, app: AppId, office: Office) -> Reserved {
        let number = self.reservations.fetch_add(1, Ordering::Relaxed) + 1;
        let mut shard = self.shard(id).lock();
        let mut seq = Seq::ZERO;
        if self.offices.holds(office) {
            let log = office.position();
            let lane = shard.entry(id).or_insert_with(|| BeeLane { log, ..BeeLane::default() });
            seq = lane.next;
            lane.next = seq.next();
            lane.reserved.insert(seq, number);
        }
        Reserved { lanes: self.clone(), number, id: MessageId { lane: id, seq, part: Part::WHOLE, app } }
    }

    /// Removes the lanes whose outboxes are in the log at a position, because the hive no longer leads it, and returns them. The
    /// office has ended. Calls `departs` for each of them before it is removed: it is now a lane of another hive, and receivers
    /// in this hive must not forget it.
    pub(crate) fn leave_log(&self, log: usize, departs: impl Fn(LaneId)) -> Vec<LaneId> {
        self.moving.lock().retain(|_, moving| moving.log != log);
        let mut left = Vec::new();
        for shard in &self.shards {
            shard.lock().retain(|id, lane| {
                if lane.log != log {
                    return true;
                }
                departs(*id);
                left.push(*id);
                false
            })
        }
        left
    }

    /// Returns the number of lanes in the table.
    #[cfg(feature = "testing")]
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// Ends a lane whose bee no longer exists. The lane retires when all its messages are acknowledged.
    pub(crate) fn end(&self, id: LaneId) {
        let mut shard = self.shard(id).lock();
        let Some(lane) = shard.get_mut(&id) else { return };
        lane.has_ended = true;
        if self.mutation.breaks(Mutant::RetireBusy) {
            shard.remove(&id);
            return self.retiring.lock().push(id);
        }
        self.retire_if_done(id, lane)
    }

    /// Checks whether the lane has an unacknowledged message or a reserved number.
    pub(crate) fn is_open(&self, id: LaneId) -> bool {
        self.shard(id).lock().get(&id).is_some_and(|lane| !lane.is_done())
    }

    /// Checks whether the table contains the lane.
    pub(crate) fn knows(&self, id: LaneId) -> bool {
        self.shard(id).lock().contains_key(&id)
    }

    /// Returns the lane's lowest floor for any app, or zero if the lane is unknown.
    pub(crate) fn floor_of_all(&self, id: LaneId) -> Seq {
        self.shard(id).lock().get(&id).map_or(Seq::ZERO, BeeLane::floor_of_all)
    }

    /// Returns the floor of a lane for an app: no message below it is ever resent to the app. Returns `None` if the
    /// lane is unknown.
    pub(crate) fn floor(&self, id: LaneId, app: AppId) -> Option<Seq> {
        self.shard(id).lock().get(&id).map(|lane| lane.floor(app, self.mutation))
    }

    /// Checks whether the outbox of the lane is moving to another log.
    pub(crate) fn is_moving(&self, id: LaneId) -> bool {
        self.shard(id).lock().get(&id).is_some_and(|lane| lane.is_moving)
    }

    /// Checks whether the outbox of the lane is in the log at position `log`.
    pub(crate) fn is_in(&self, id: LaneId, log: usize) -> bool {
        self.shard(id).lock().get(&id).is_some_and(|lane| lane.log == log)
    }
}

/// A reserved number on an app's lane. No record with this number has been committed yet.
pub(crate) struct Reserved {
    lanes: Arc<BeeLanes>,
    /// The number of the reservation. The hive may have lost the lane's log meanwhile, and may lead it again: the same number on
    /// the lane may then be reserved for another record.
    number: u64,
    /// The number, as the id of a message to the app itself.
    pub(crate) id: MessageId,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut shard = self.lanes.shard(self.id.lane).lock();
        if let Some(lane) = shard.get_mut(&self.id.lane) {
            let is_it = lane.reserved.get(&self.id.seq) == Some(&self.number);
            if is_it {
                lane.reserved.remove(&self.id.seq);
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use beehive_protocol::{Address, HiveId, MessageTypeId, Payload};

    fn lanes() -> (Arc<BeeLanes>, Arc<Mutex<Vec<LaneId>>>) {
        let retiring = Arc::<Mutex<Vec<LaneId>>>::default();
        (Arc::new(BeeLanes::new(true, false, retiring.clone(), Mutation::default())), retiring)
    }

    const BEE: (AppId, BeeId) = (AppId(3), BeeId(9));
    const LANE: LaneId = LaneId::of_bee(BEE.0, BEE.1);

    fn clustered() -> (Arc<BeeLanes>, Arc<Mutex<Vec<LaneId>>>) {
        let retiring = Arc::<Mutex<Vec<LaneId>>>::default();
        (Arc::new(BeeLanes::new(true, true, retiring.clone(), Mutation::default())), retiring)
    }

    fn id(app: u16, seq: u64) -> MessageId {
        MessageId { lane: LANE, seq: Seq(seq), part: Part::WHOLE, app: AppId(app) }
    }

    pub(crate) fn emit(id: MessageId) -> Emit {
        Emit {
            id,
            message_type: MessageTypeId(1),
            payload: Payload::from(&[][..]),
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

    /// Begins an office in which the hive leads the log at a position.
    pub(crate) fn at(lanes: &BeeLanes, log: usize) -> Office {
        lanes.offices.begin(log)
    }

    /// Sends messages from the first log.
    fn send(lanes: &BeeLanes, ids: &[MessageId]) {
        lanes.sent(at(lanes, 0), &ids.iter().copied().map(emit).collect::<Vec<_>>())
    }

    fn acked(id: MessageId) -> Acked {
        Acked { app: id.app, lane: id.lane, seq: id.seq, count: 1, part: id.part }
    }

    /// A packet of a few bytes acknowledges four thousand million messages.
    #[test]
    fn an_acknowledgment_of_more_messages_than_there_are() {
        let (lanes, _) = lanes();
        send(&lanes, &[id(1, 0), id(1, 1), id(2, 1), id(1, 7)]);
        lanes.acknowledged(0, &Acked { count: u32::MAX, ..acked(id(1, 1)) });
        assert_eq!(lanes.floor(LANE, AppId(1)), Some(Seq(0)), "the first one is open");
        lanes.acknowledged(0, &acked(id(1, 0)));
        assert_eq!(lanes.floor(LANE, AppId(1)), Some(Seq(8)));
        assert_eq!(lanes.floor(LANE, AppId(2)), Some(Seq(1)), "those of another app are");
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
        lanes.acknowledged(0, &acked(id(1, 4)));
        assert_eq!(*retiring.lock(), [LANE], "once");
        lanes.remove(&retiring.lock());
        assert!(!lanes.knows(LANE));
    }

    fn reserve(lanes: &Arc<BeeLanes>) -> Reserved {
        lanes.reserve(LaneId::of_app(AppId(3)), AppId(3), at(lanes, 0))
    }

    /// Two stateless handlers reserve numbers, and the second handler's record is committed first.
    #[test]
    fn a_reserved_number_holds_up_the_floors() {
        let (lanes, _) = lanes();
        let (first, second) = (reserve(&lanes), reserve(&lanes));
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

    /// A receiver that knows this floor would mistake the message with the reserved number for a duplicate.
    #[cfg(feature = "testing")]
    #[test]
    fn the_floor_of_a_mutant_passes_a_reserved_number() {
        let mutation = Mutation::of(Some(Mutant::FloorFromSpeculation));
        let lanes = Arc::new(BeeLanes::new(true, false, Arc::default(), mutation));
        let (first, second) = (reserve(&lanes), reserve(&lanes));
        let newer = MessageId { app: AppId(1), ..second.id };
        send(&lanes, &[newer]);
        drop(second);
        lanes.acknowledged(0, &acked(newer));
        assert!(lanes.floor(newer.lane, AppId(1)) > Some(first.id.seq));
    }

    /// A bee that has merged has messages on two lanes, and those on the lane with the higher id are older. A start, or the hive
    /// to which the bee moves, takes them from a log.
    #[test]
    fn what_several_lanes_of_a_bee_had_sent_stays_in_order() {
        let (lanes, _) = lanes();
        let own = |seq| MessageId { lane: LaneId::of_bee(BEE.0, BeeId(2)), ..id(1, seq) };
        let emits: Vec<Emit> = [id(1, 3), own(7), id(2, 4), own(8)].into_iter().map(emit).collect();
        let office = at(&lanes, 0);
        for (_, emits) in lanes.by_lane(emits.iter()) {
            lanes.sent_in_order(office, emits)
        }
        lanes.sent(office, &[emit(own(9))]);
        let outbox: Vec<_> = lanes.outbox(&[own(0).lane, LANE]).iter().map(|emit| emit.id).collect();
        assert_eq!(outbox, [id(1, 3), own(7), id(2, 4), own(8), own(9)]);
    }

    /// Acknowledgments arrive while the outbox moves from the first log to the second one.
    #[test]
    fn what_is_acknowledged_during_a_move_is_acknowledged_to_the_new_log() {
        let (lanes, _) = lanes();
        send(&lanes, &[id(1, 0), id(2, 1), id(1, 2)]);
        lanes.acknowledged(0, &acked(id(2, 1)));
        lanes.leave(BEE, 0, &[LANE], None);
        // the record of this acknowledgment comes after the record that freezes the bee
        lanes.acknowledged(0, &acked(id(1, 0)));
        assert_eq!(lanes.log_for(&acked(id(1, 2))), None);
        let moves: Vec<_> = lanes.outbox(&[LANE]).iter().map(|emit| emit.id).collect();
        assert_eq!(moves, [id(1, 0), id(1, 2)], "both are in the outbox that moves");

        lanes.arrive(BEE, 1, Epoch(1), |_| ());
        let again = lanes.take_misdirected();
        assert_eq!(again, [acked(id(1, 0)), acked(id(1, 2))]);
        assert_eq!(lanes.log_for(&again[0]), Some(1));
        assert_eq!(lanes.floor(LANE, AppId(1)), Some(Seq(0)), "no log has said so yet");
        again.iter().for_each(|acked| lanes.acknowledged(1, acked));
        assert!(!lanes.is_open(LANE));

        // the acknowledgment is committed in a log that the outbox has already left
        lanes.sent(at(&lanes, 1), &[emit(id(1, 5))]);
        lanes.acknowledged(0, &acked(id(1, 5)));
        assert!(lanes.is_open(LANE));
        assert_eq!(lanes.take_misdirected(), [acked(id(1, 5))]);
    }

    /// A bee leaves the first log, is in another hive for a while, and comes to the second log before the first one has
    /// dropped it.
    #[test]
    fn what_was_unacknowledged_before_a_bee_was_elsewhere_says_nothing() {
        let (lanes, _) = clustered();
        let departed = Mutex::new(Vec::new());
        let departs = |lane| {
            assert!(lanes.shard(lane).is_locked(), "nobody sees the lane in no table");
            departed.lock().push(lane)
        };
        send(&lanes, &[id(1, 0)]);
        lanes.leave(BEE, 0, &[LANE], Some(Epoch(3)));
        lanes.arrive(BEE, 1, Epoch(5), departs);
        assert_eq!((lanes.is_in(LANE, 1), lanes.outbox(&[LANE]).len()), (false, 0));
        assert_eq!(*departed.lock(), [LANE]);
        // the new log says what is unacknowledged
        lanes.sent(at(&lanes, 1), &[emit(id(1, 7))]);
        lanes.depart(BEE, 0, departs);
        assert_eq!(lanes.floor(LANE, AppId(1)), Some(Seq(7)), "the bee is in the second log");

        lanes.leave(BEE, 1, &[LANE], Some(Epoch(5)));
        lanes.arrive(BEE, 0, Epoch(6), departs);
        assert_eq!((lanes.is_in(LANE, 0), lanes.floor(LANE, AppId(1))), (true, Some(Seq(7))));
        lanes.leave(BEE, 0, &[LANE], Some(Epoch(6)));
        lanes.depart(BEE, 0, departs);
        assert!(!lanes.knows(LANE));
        assert_eq!(*departed.lock(), [LANE, LANE]);
    }

    /// A bee moves to another log of this hive, and is about to leave that one when the first log drops it.
    #[test]
    fn a_log_that_drops_a_bee_late_does_not_end_its_next_move() {
        let (lanes, _) = clustered();
        let departs = |lane| panic!("{lane:?} is still here");
        send(&lanes, &[id(1, 0)]);
        lanes.leave(BEE, 0, &[LANE], Some(Epoch(0)));
        lanes.arrive(BEE, 1, Epoch(1), departs);
        lanes.leave(BEE, 1, &[LANE], Some(Epoch(1)));
        lanes.depart(BEE, 0, departs);
        assert!(lanes.is_moving(LANE));
        // it stays after all
        lanes.arrive(BEE, 1, Epoch(2), departs);
        assert_eq!((lanes.is_moving(LANE), lanes.log_for(&acked(id(1, 0)))), (false, Some(1)))
    }

    /// An acknowledgment arrives while the outbox moves. In a cluster, another hive may get the outbox and send the message
    /// again, so the acknowledgment must not take effect later.
    #[test]
    fn what_is_acknowledged_during_a_move_in_a_cluster_is_acknowledged_again() {
        let (lanes, _) = clustered();
        send(&lanes, &[id(1, 0), id(1, 2)]);
        lanes.leave(BEE, 0, &[LANE], Some(Epoch(0)));
        lanes.acknowledged(0, &acked(id(1, 0)));
        assert_eq!(lanes.log_for(&acked(id(1, 2))), None);
        lanes.arrive(BEE, 0, Epoch(1), |_| ());
        assert_eq!(lanes.take_misdirected(), []);
        assert_eq!(lanes.outbox(&[LANE]).len(), 2);
    }
}
