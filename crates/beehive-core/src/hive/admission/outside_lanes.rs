//! The lanes of senders outside the hive. A lane tracks its sender's messages in flight, and a floor: the
//! sequence number below which all messages are done.
//!
//! A sender outside the hive has no log and no outbox that could track its messages. Therefore a batch of its
//! messages stays open until every record that contains one of them is committed. A lane's floor is the
//! lowest number of an open batch.

pub(crate) use beehive_protocol::Numbers;

use crate::hash::HashMap;
use crate::hive::admission::bee_lanes::BeeLanes;
use crate::hive::admission::deferred_wakes;
use crate::hive::admission::foreign_lanes::ForeignLanes;
use crate::limits;
use crate::mutant::{Mutant, Mutation};
use beehive_protocol::{AppId, DedupTable, LaneId, Seq};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::sync::Notify;

/// The lane of one sender outside the hive.
pub(crate) struct OutsideLane {
    id: LaneId,
    /// The low-water mark. `done` and `Lanes::lane` only raise it, with `fetch_max`, so the order in which
    /// two threads do so does not matter. Readers take no lock and may see an older, lower floor. This is
    /// safe: a floor may lag behind, but must never be too high.
    floor: AtomicU64,
    /// The batches in flight.
    state: Mutex<LaneState>,
    /// Notified when the floor rises, and when few batches are left open.
    room: Arc<Notify>,
    /// Lanes waiting to be retired: they admit no more batches and have none open. All lanes of a hive share
    /// this list.
    retiring: Arc<Mutex<Vec<LaneId>>>,
}

/// A lane that is held up has fewer open messages than this.
const HOLDING_UP_MAX: u64 = limits::LANE_WINDOW_MAX / 2;

/// Whether a lane has room for another message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Room {
    /// There is room.
    Free,
    /// A few old messages use up the window, because their logs cannot commit. Most of the later ones are done. The sender may
    /// go on with another lane. A lane that its sender may resume after a crash is never held up, because the sender has
    /// given it its numbers: it is full.
    HeldUp,
    /// The window is full of messages that are not done.
    Full,
}

/// The batches in flight on a lane.
#[derive(Default)]
struct LaneState {
    /// The highest assigned number plus one.
    next: Seq,
    /// The first number of each open batch, with a ticket that makes the pair unique, because a sender may
    /// resend a batch under the same number.
    open: BTreeSet<(Seq, u64)>,
    /// Number of messages in open batches.
    open_messages: u64,
    /// Number of batches admitted so far.
    tickets: u64,
    /// Whether the lane has ended: it admits no more batches.
    ended: bool,
}

impl OutsideLane {
    /// Returns the lane's id.
    pub(crate) fn id(&self) -> LaneId {
        self.id
    }

    /// Returns the floor: all messages below it are done.
    pub(crate) fn floor(&self) -> Seq {
        Seq(self.floor.load(Ordering::Acquire))
    }

    /// Admits a batch of `count` messages, numbered from `first`.
    pub(crate) fn admit(self: &Arc<Self>, first: Seq, count: usize) -> Arc<Admitted> {
        self.admitted(&mut self.state.lock(), first, count)
    }

    /// Admits a batch of `count` messages under the next free numbers.
    pub(crate) fn admit_next(self: &Arc<Self>, count: usize) -> (Numbers, Arc<Admitted>) {
        let mut state = self.state.lock();
        let first = state.next;
        (Numbers::new(self.id, first), self.admitted(&mut state, first, count))
    }

    fn admitted(self: &Arc<Self>, state: &mut LaneState, first: Seq, count: usize) -> Arc<Admitted> {
        state.next = state.next.max(first.plus(count as u64));
        state.tickets += 1;
        let ticket = (first, state.tickets);
        state.open.insert(ticket);
        state.open_messages += count as u64;
        Arc::new(Admitted { lane: self.clone(), ticket, count: count as u64, open: AtomicUsize::new(1) })
    }

    /// Removes a completed batch of `count` messages and raises the floor if that batch was the oldest one open.
    fn done(&self, ticket: (Seq, u64), count: u64) {
        let mut state = self.state.lock();
        state.open.remove(&ticket);
        let before = state.open_messages;
        state.open_messages -= count;
        let few = before >= HOLDING_UP_MAX && state.open_messages < HOLDING_UP_MAX;
        let floor = state.open.first().map_or(state.next, |(first, _)| *first);
        debug_assert!(floor <= state.next, "the floor never exceeds the next unassigned number");

        let ended = state.ended && state.open.is_empty();
        let before = Seq(self.floor.fetch_max(floor.0, Ordering::AcqRel));

        drop(state);
        if ended {
            self.retiring.lock().push(self.id)
        }
        if floor > before || ended || few {
            deferred_wakes::all(&self.room)
        }
    }

    /// Returns whether `count` messages fit into the window, and if they do not, why. They are numbered from `next`, or from the
    /// next free number. They always fit if no batch is open.
    pub(crate) fn room_for(&self, next: Option<Seq>, count: u64) -> Room {
        let fits = |next: Seq| next.plus(count).0.saturating_sub(self.floor().0) <= limits::LANE_WINDOW_MAX;
        // without the lock: nearly all batches of an IO bee fit
        if next.is_some_and(fits) {
            return Room::Free;
        }
        let state = self.state.lock();
        if fits(next.unwrap_or(state.next)) || state.open.is_empty() {
            Room::Free
        } else if state.open_messages < HOLDING_UP_MAX && !self.id.is_lasting() {
            Room::HeldUp
        } else {
            Room::Full
        }
    }

    /// Returns whether one more message fits into the window.
    pub(crate) fn room_for_one(&self) -> Room {
        self.room_for(None, 1)
    }

    /// Waits until messages may fit into the window (see [`OutsideLane::room_for`]), or the lane may be held up. Cancel-safe.
    ///
    /// No wake-up is lost: this task calls `notified()` before the check, and the thread in `done` raises the floor, and
    /// removes the batch, before it notifies. Either the check sees this, or the notification wakes this task.
    pub(crate) async fn room_or_held_up(&self, next: Option<Seq>, count: u64) {
        loop {
            let room = self.room.notified();
            if self.room_for(next, count) != Room::Full {
                return;
            }
            room.await
        }
    }
}

/// A batch from outside that is not yet done.
pub(crate) struct Admitted {
    lane: Arc<OutsideLane>,
    ticket: (Seq, u64),
    /// Number of messages in the batch.
    count: u64,
    /// Number of reasons why the batch is open: its routing, and each uncommitted delivery. A delivery
    /// dropped before its commit is never subtracted, so the batch stays open and holds the floor down.
    ///
    /// Relaxed ordering suffices for increments, because the caller still holds a counted reason. Decrements
    /// use AcqRel, so the thread that reaches zero sees everything that other threads did before
    /// decrementing.
    open: AtomicUsize,
}

impl Admitted {
    /// Returns the batch's lane.
    pub(crate) fn lane(&self) -> &Arc<OutsideLane> {
        &self.lane
    }

    /// Adds a delivery that must be committed before the batch is done.
    pub(crate) fn open(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes one reason for staying open: a delivery was committed or had no effect, or the routing is
    /// complete.
    pub(crate) fn close(&self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.lane.done(self.ticket, self.count)
        }
    }
}

/// A batch that is being routed. Dropping it removes the routing from the batch's reasons for staying open.
pub(crate) struct Routing(pub(crate) Arc<Admitted>);

impl Drop for Routing {
    fn drop(&mut self) {
        self.0.close()
    }
}

/// The lane, if any, on which new batches are admitted.
#[derive(Clone, Copy)]
pub(crate) enum Admission<'a> {
    /// No lane: the messages do not come from outside, or are never resent.
    Inside,
    /// The lane on which each batch is admitted.
    Lane(&'a Arc<OutsideLane>),
    /// The admitted batch of which all batches are parts.
    Part(&'a Arc<Admitted>),
}

/// The numbers of the outside lanes of a hive in a cluster. No other hive and no other incarnation of the hive has them.
///
/// Another hive may remember these lanes. If that hive starts again, it must not take them for its own, which have ended.
pub(crate) struct LaneNumbers {
    /// The lower half of the number that the registry has assigned to the hive's incarnation.
    of_incarnation: u64,
    opened: AtomicU64,
}

impl LaneNumbers {
    /// Creates the numbers of the incarnation to which the registry has assigned `lane`.
    pub(crate) fn of(lane: LaneId) -> LaneNumbers {
        LaneNumbers { of_incarnation: LaneNumbers::incarnation(lane), opened: AtomicU64::new(0) }
    }

    fn incarnation(of_registry: LaneId) -> u64 {
        (of_registry.0 >> 2) & 0x3fff_ffff
    }

    fn next(&self) -> LaneId {
        let opened = self.opened.fetch_add(1, Ordering::Relaxed) & 0xffff_ffff;
        LaneId::passing(self.of_incarnation << 32 | opened)
    }

    /// Checks whether `lane` belongs to the incarnation to which the registry has assigned `of_registry`.
    pub(crate) fn are_of(lane: LaneId, of_registry: LaneId) -> bool {
        lane.is_outside() && lane.0 >> 34 == LaneNumbers::incarnation(of_registry)
    }
}

/// All lanes that a dedup table in a log may still contain.
pub(crate) struct Lanes {
    /// The lanes of bees that have sent messages to apps in other logs.
    pub(crate) bees: Arc<BeeLanes>,
    /// The lanes of senders in other hives.
    pub(crate) foreign: ForeignLanes,
    /// The numbers of the hive's lanes, if it is in a cluster.
    numbers: Option<LaneNumbers>,
    /// The lanes of senders outside the hive, by id.
    known: Mutex<HashMap<LaneId, Arc<OutsideLane>>>,
    /// Lanes of both kinds that are waiting for `take_retired` to return them.
    retiring: Arc<Mutex<Vec<LaneId>>>,
    /// Number of times that lanes were removed from `known`. One thread, in `take_retired`, increments this
    /// number with release ordering while still holding the lock of `known`. A second thread, which runs a
    /// bee, reads the number with acquire ordering and then locks `known` in `prune`. If the second thread
    /// reads the new number, it therefore finds the lanes removed.
    retirements: AtomicU64,
}

impl Lanes {
    /// Creates the lanes that the logs remember, with their floors. `bees_move` says whether bees may move
    /// from one log to another. `numbers` are those of the hive's lanes if it is in a cluster.
    pub(crate) fn new(
        remembered: impl IntoIterator<Item = (LaneId, Seq)>,
        bees_move: bool,
        numbers: Option<LaneNumbers>,
        mutation: Mutation,
    ) -> Lanes {
        let retiring = Arc::<Mutex<Vec<LaneId>>>::default();
        let bees = Arc::new(BeeLanes::new(bees_move, numbers.is_some(), retiring.clone(), mutation));
        let (known, foreign) = Default::default();
        let lanes = Lanes { bees, foreign, numbers, known, retiring, retirements: AtomicU64::new(0) };
        for (id, floor) in remembered {
            lanes.lane(id, floor);
        }
        lanes
    }

    /// Returns the lane with this id, creating it if necessary, and raises its floor to at least `floor`.
    fn lane(&self, id: LaneId, floor: Seq) -> Arc<OutsideLane> {
        let mut known = self.known.lock();
        let lane = known.entry(id).or_insert_with(|| {
            Arc::new(OutsideLane {
                id,
                floor: AtomicU64::new(0),
                state: Mutex::default(),
                room: Arc::default(),
                retiring: self.retiring.clone(),
            })
        });

        lane.floor.fetch_max(floor.0, Ordering::AcqRel);
        lane.clone()
    }

    /// Opens a lane that no later process can resume. Its id is made from the random number `chance`, or from the number
    /// that the registry has assigned to the hive.
    pub(crate) fn open(&self, chance: u64) -> Arc<OutsideLane> {
        let id = self.numbers.as_ref().map_or(LaneId::passing(chance), LaneNumbers::next);
        self.lane(id, Seq::ZERO)
    }

    /// Returns the floor of a bee's or an app's lane of this hive or of another one, as stated to an app.
    pub(crate) fn floor(&self, lane: LaneId, app: AppId) -> Option<Seq> {
        let of_this_hive = || self.bees.floor(lane, app);
        of_this_hive().or_else(|| self.foreign.floor(lane, app)).or_else(of_this_hive)
    }

    /// Returns the floor of a lane of this hive, as stated to an app. A bee that is moving states none: it may be active in
    /// another hive already.
    pub(crate) fn floor_of_sender(&self, lane: LaneId, app: AppId) -> Option<Seq> {
        match lane.is_outside() {
            true => self.known.lock().get(&lane).map(|lane| lane.floor()),
            false if self.bees.is_moving(lane) => None,
            false => self.bees.floor(lane, app),
        }
    }

    /// Checks whether a lane is one of this hive, which has not retired.
    pub(crate) fn is_of_this_hive(&self, lane: LaneId) -> bool {
        match lane.is_outside() {
            true => self.known.lock().contains_key(&lane),
            false => self.bees.knows(lane),
        }
    }

    /// Forgets lanes of other hives that have ended. Returns those that were known.
    pub(crate) fn forget_foreign(&self, ended: &[LaneId]) -> Vec<LaneId> {
        let known = self.foreign.forget(ended);
        if !known.is_empty() {
            self.retirements.fetch_add(1, Ordering::Release);
        }
        known
    }

    /// Reopens lane `number`, which an earlier process may have used. Its sender will not resend any
    /// message numbered below `next_seq`.
    pub(crate) fn resume(&self, number: u64, next_seq: Seq) -> Arc<OutsideLane> {
        self.lane(LaneId::lasting(number), next_seq)
    }

    /// Ends a lane. The lane retires when all its messages are done.
    pub(crate) fn end(&self, lane: &OutsideLane) {
        let mut state = lane.state.lock();
        if !std::mem::replace(&mut state.ended, true) && state.open.is_empty() {
            drop(state);
            self.retiring.lock().push(lane.id)
        }
    }

    /// Returns the lanes that have retired since the last call, and removes them. In a cluster, the lane of a bee is then
    /// remembered like that of a sender in another hive: a late copy of a message may come from a hive that had the sender
    /// before, until the registry says that the lane has ended.
    pub(crate) fn take_retired(&self) -> Vec<LaneId> {
        let retired = std::mem::take(&mut *self.retiring.lock());
        if !retired.is_empty() {
            if self.numbers.is_some() && !self.breaks(Mutant::RetiredUnheard) {
                retired.iter().filter(|lane| !lane.is_outside()).for_each(|lane| self.foreign.remember(*lane))
            }
            self.bees.remove(&retired);
            let mut known = self.known.lock();
            retired.iter().for_each(|lane| {
                known.remove(lane);
            });
            self.retirements.fetch_add(1, Ordering::Release);
        }
        retired
    }

    /// Returns the number of batches from outside that are not done.
    #[cfg(feature = "testing")]
    pub(crate) fn admitted(&self) -> usize {
        self.known.lock().values().map(|lane| lane.state.lock().open.len()).sum()
    }

    /// Returns how many times retired lanes were removed.
    pub(crate) fn retirements(&self) -> u64 {
        self.retirements.load(Ordering::Acquire)
    }

    /// Checks whether a test breaks the rule of this mutant.
    #[inline(always)]
    pub(crate) fn breaks(&self, mutant: Mutant) -> bool {
        self.bees.mutation.breaks(mutant)
    }

    /// Removes retired lanes from `seen`.
    pub(crate) fn prune(&self, seen: &mut DedupTable) {
        let known = self.known.lock();
        let of_bee = |lane| self.bees.knows(lane) && !self.breaks(Mutant::UnknownForgotten);
        seen.retain(|lane| match lane.is_outside() {
            true => known.contains_key(&lane) && !self.breaks(Mutant::TakeoverRetires) || self.keeps(lane),
            // the bee may come to this hive between the first two checks
            false => of_bee(lane) || self.keeps(lane) || of_bee(lane),
        })
    }

    fn keeps(&self, lane: LaneId) -> bool {
        self.foreign.knows(lane) && !self.breaks(Mutant::ForeignForgotten)
    }

    /// Returns the current floors of the lanes on which `seen`, the dedup table of one of `app`'s bees,
    /// contains numbers above its own floor. Includes only resumable lanes. Returns `None` if one of these
    /// messages may still be resent, because its number is not below the lane's current floor. Retired lanes
    /// need no floor.
    pub(crate) fn floors_above(&self, seen: &DedupTable, app: AppId) -> Option<Vec<(LaneId, Seq)>> {
        let known = self.known.lock();
        let mut floors = Vec::new();
        for lane in seen.lanes_above() {
            let floor = match lane.is_outside() {
                true => known.get(&lane).map(|lane| lane.floor()).or_else(|| self.foreign.floor(lane, app)),
                false => self.floor(lane, app),
            };
            let Some(floor) = floor else { continue };
            if !seen.is_below(lane, floor) && !self.breaks(Mutant::ReleaseNaive) {
                return None;
            }
            if lane.is_lasting() {
                floors.push((lane, floor))
            }
        }

        Some(floors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use beehive_protocol::Part;

    #[test]
    fn a_floor_is_the_lowest_number_that_is_not_done() {
        let lanes = Lanes::new([], false, None, Mutation::default());
        let lane = lanes.resume(5, Seq(0));
        let (first, second, third) = (lane.admit(Seq(0), 10), lane.admit(Seq(10), 5), lane.admit(Seq(15), 1));
        second.close();
        assert_eq!(lane.floor(), Seq(0));
        first.open();
        first.close();
        assert_eq!(lane.floor(), Seq(0), "part of the batch is still open");
        first.close();
        assert_eq!(lane.floor(), Seq(15));
        // a batch resent under an old number
        let again = lane.admit(Seq(3), 4);
        third.close();
        again.close();
        assert_eq!(lane.floor(), Seq(16));
    }

    #[test]
    fn what_is_thrown_away_is_not_done() {
        let lanes = Lanes::new([], false, None, Mutation::default());
        let lane = lanes.open(9);
        let (_, lost) = lane.admit_next(1);
        let (numbers, done) = lane.admit_next(1);
        assert_eq!(numbers.seq(), Seq(1));
        drop(lost);
        done.close();
        assert_eq!(lane.floor(), Seq(0));
    }

    #[test]
    fn the_window_is_bounded_and_opens_with_the_floor() {
        let lanes = Lanes::new([], false, None, Mutation::default());
        let lane = lanes.open(9);
        let (_, first) = lane.admit_next(1);
        let rest = lane.admit(Seq(1), limits::LANE_WINDOW_MAX as usize - 1);
        let has_room = || lane.room_for_one() == Room::Free;
        assert!(!has_room());
        rest.close();
        assert!(!has_room(), "an unfinished batch holds the window back");
        first.close();
        assert!(has_room());
        // a batch larger than the window is admitted when no other batch is in flight
        assert_eq!(lane.room_for(None, limits::LANE_WINDOW_MAX * 2), Room::Free);
    }

    #[test]
    fn a_lane_is_held_up_by_few_messages_and_full_with_many() {
        let lanes = Lanes::new([], false, None, Mutation::default());
        let lane = lanes.open(9);
        let mut open: Vec<_> = (0..limits::LANE_WINDOW_MAX).map(|_| lane.admit_next(1).1).collect();
        assert_eq!(lane.room_for_one(), Room::Full);
        while open.len() as u64 >= HOLDING_UP_MAX {
            assert_eq!(lane.room_for_one(), Room::Full);
            open.pop().unwrap().close()
        }
        assert_eq!(lane.room_for_one(), Room::HeldUp);
        open.iter().for_each(|batch| batch.close());
        assert_eq!(lane.room_for_one(), Room::Free);
    }

    #[test]
    fn a_lane_retires_when_all_of_it_is_done() {
        let lanes = Lanes::new([], false, None, Mutation::default());
        let lane = lanes.open(9);
        let (numbers, open) = lane.admit_next(1);
        let mut seen = DedupTable::default();
        seen.insert(numbers.lane, Seq(0), Part::WHOLE);
        lanes.end(&lane);
        assert!(lanes.take_retired().is_empty());
        assert_eq!(lanes.floors_above(&seen, AppId(0)), None);
        open.close();
        assert_eq!(lanes.take_retired(), [lane.id()]);
        assert_eq!(lanes.floors_above(&seen, AppId(0)), Some(vec![]));
        lanes.prune(&mut seen);
        assert!(seen.is_empty());
    }
}
