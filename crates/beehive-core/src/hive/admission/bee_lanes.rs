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
use crate::hive::admission::credits::Cause;
use crate::hive::admission::lane_window::LaneWindow;
use crate::hive::admission::offices::{Office, Offices};
use crate::mutant::{Mutant, Mutation};
use beehive_protocol::{Acked, AppId, BeeId, Emit, Epoch, LaneId, MessageId, Part, Seq};
use open::{Lasts, OpenMessage, OpenMessages};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The unacknowledged messages of one lane.
#[derive(Default)]
struct BeeLane {
    /// A number above all reserved numbers and above those of all sent messages that need an acknowledgment.
    next: Seq,
    /// The unacknowledged messages. Each receiving app has its own floor, independent of the other apps.
    open: OpenMessages,
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
    window: LaneWindow,
}

impl BeeLane {
    fn floor(&self, app: AppId, mutation: Mutation) -> Seq {
        if mutation.breaks(Mutant::FloorOfOneApp) {
            let of_others = self.open.numbers().filter(|(other, _)| *other != app).map(|(_, seq)| seq);
            return of_others.fold(self.next, Seq::min);
        }
        let open = self.open.first(app).unwrap_or(self.next);
        let reserved = self.reserved.keys().next().filter(|_| !mutation.breaks(Mutant::FloorFromSpeculation));
        reserved.map_or(open, |reserved| open.min(*reserved))
    }

    /// Returns the lowest of all apps' floors.
    fn floor_of_all(&self) -> Seq {
        let open = self.open.numbers().map(|(_, seq)| seq);
        open.chain(self.reserved.keys().next().copied()).fold(self.next, Seq::min)
    }

    /// Returns the lowest number that is reserved, or of a message under way. Takes time in proportion to the number of apps.
    fn oldest(&self) -> Option<Seq> {
        let reserved = self.reserved.keys().next().copied();
        self.open.oldest_sent().into_iter().chain(reserved).min()
    }

    /// Returns the causes that were held, if the lane is no longer too far ahead. The caller drops them without the lock.
    fn follow(&mut self) -> Vec<Arc<Cause>> {
        match self.window.is_behind() {
            true => self.window.follow(self.oldest(), self.next),
            false => Vec::new(),
        }
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
    /// to one lane. Does nothing if the office has ended: the next leader of the log has them in its outbox. Returns whether the lane
    /// is too far ahead of its floors: then the caller [holds](BeeLanes::hold) the cause of the messages.
    ///
    /// This looks at the office under the lock of the lane's shard, and [`BeeLanes::leave_log`] takes this lock after the
    /// office has ended. So either that call removes the lane, or this one does not add it.
    pub(crate) fn sent<'e>(&self, office: Office, messages: impl IntoIterator<Item = &'e Emit>) -> bool {
        self.sent_or_postponed(office, messages, false)
    }

    /// Same as [`BeeLanes::sent`]. If the run `has_postponed` messages, any of those that it has sent may wait for a time.
    pub(crate) fn sent_or_postponed<'e>(
        &self,
        office: Office,
        messages: impl IntoIterator<Item = &'e Emit>,
        has_postponed: bool,
    ) -> bool {
        let numbered = messages.into_iter().map(|emit| (self.sent.fetch_add(1, Ordering::Relaxed), emit));
        self.note_sent(office, numbered, has_postponed)
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
        // the outbox of a bee that comes from elsewhere, or from a log: nobody outside waits for it
        self.note_sent(office, messages, false);
    }

    fn note_sent<'e>(
        &self,
        office: Office,
        messages: impl IntoIterator<Item = (u64, &'e Emit)>,
        has_postponed: bool,
    ) -> bool {
        let mut messages = messages.into_iter();
        let Some(first) = messages.next() else { return false };
        let (id, log) = (first.1.id.lane, office.position());
        let mut shard = self.shard(id).lock();
        if !self.offices.holds(office) {
            return false;
        }
        let lane = shard.entry(id).or_insert_with(|| BeeLane { log, ..BeeLane::default() });
        debug_assert!(lane.log == log && !lane.is_moving, "a bee sends in the log that has its outbox");
        for (order, emit) in std::iter::once(first).chain(messages) {
            debug_assert_eq!(emit.id.lane, id, "one record emits on one lane");
            lane.next = lane.next.max(emit.id.seq.next());
            let lasts = match emit.at.is_some() || has_postponed {
                true => Lasts::UntilItsTime,
                false if emit.is_sweep => Lasts::UntilSwept,
                false => Lasts::No,
            };
            let kept = self.keeps_messages.then(|| Arc::new(emit.clone()));
            lane.open.insert(emit.id, OpenMessage { order, emit: kept }, lasts)
        }
        if lane.window.is_due(lane.next) {
            lane.window.look(lane.oldest(), lane.next)
        }
        lane.window.is_behind()
    }

    /// Holds the cause of what was sent on a lane, as long as the lane is too far ahead of its floors.
    #[cold]
    pub(crate) fn hold(&self, id: LaneId, cause: Option<&Arc<Cause>>) {
        if let Some(cause) = cause
            && let Some(lane) = self.shard(id).lock().get_mut(&id)
        {
            lane.window.hold(cause)
        }
    }

    /// Notes that a sweep has made a step. `ids` are the message that has begun it, and the number under which it runs.
    pub(crate) fn swept(&self, ids: [MessageId; 2]) {
        for id in ids {
            let mut shard = self.shard(id.lane).lock();
            let Some(lane) = shard.get_mut(&id.lane) else { continue };
            lane.open.swept(id, lane.next);
            let held = lane.follow();
            drop(shard);
            drop(held)
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
            lane.open.retain(|key| !acked.contains(&id(key)))
        } else {
            for id in acked.messages() {
                lane.open.remove(id);
                if self.mutation.breaks(Mutant::AckIgnoresApp) {
                    lane.open.retain(|(_, seq, part)| (seq, part) != (id.seq, id.part))
                }
            }
        }
        let held = lane.follow();
        self.retire_if_done(acked.lane, lane);
        drop(shard);
        drop(held)
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
                all.extend(lane.open.messages().filter_map(|open| Some((open.order, open.emit.clone()?))))
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
        let mut held = Vec::new();
        if let Some(lane) = shard.get_mut(&self.id.lane) {
            let is_it = lane.reserved.get(&self.id.seq) == Some(&self.number);
            if is_it {
                lane.reserved.remove(&self.id.seq);
                held = lane.follow()
            }
        }
        drop(shard);
        drop(held)
    }
}

mod open;
#[cfg(test)]
pub(crate) mod tests;
