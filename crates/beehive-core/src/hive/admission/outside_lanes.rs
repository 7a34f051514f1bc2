//! The number lines of those outside: which of their messages are on their way, and below which number all are done.
//!
//! Somebody outside has no log and no outbox. What stands in for them is counted here: a batch is open until every record
//! that took one of its messages is committed, and the floor of its lane is the lowest number of an open batch.

pub(crate) use beehive_protocol::Numbers;
pub(crate) use beehive_protocol::lane::{is_lasting, is_outside, lane_of};

use crate::hash::HashMap;
use crate::hive::admission::deferred_wakes;
use crate::limits;
use beehive_protocol::Seen;
use beehive_protocol::lane::lasting;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::sync::Notify;

/// The number line of somebody outside.
pub(crate) struct OutsideLane {
    id: u64,
    floor: AtomicU64,
    line: Mutex<Line>,
    room: Arc<Notify>,
    retiring: Arc<Mutex<Vec<u64>>>,
}

#[derive(Default)]
struct Line {
    /// One past the highest number that was given out.
    next: u64,
    /// First numbers of the batches that are not done, each with a ticket, since a number may be sent again.
    open: BTreeSet<(u64, u64)>,
    tickets: u64,
    ended: bool,
}

impl OutsideLane {
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// All below it are done.
    pub(crate) fn floor(&self) -> u64 {
        self.floor.load(Ordering::Acquire)
    }

    /// Messages from `first` on are on their way.
    pub(crate) fn admit(self: &Arc<Self>, first: u64, count: usize) -> Arc<Admitted> {
        self.admitted(&mut self.line.lock(), first, count)
    }

    /// As [`OutsideLane::admit`], with the next free numbers.
    pub(crate) fn admit_next(self: &Arc<Self>, count: usize) -> (Numbers, Arc<Admitted>) {
        let mut line = self.line.lock();
        let first = line.next;
        (Numbers::new(self.id, first), self.admitted(&mut line, first, count))
    }

    fn admitted(self: &Arc<Self>, line: &mut Line, first: u64, count: usize) -> Arc<Admitted> {
        line.next = line.next.max(first.saturating_add(count as u64));
        line.tickets += 1;
        let ticket = (first, line.tickets);
        line.open.insert(ticket);
        Arc::new(Admitted { lane: self.clone(), ticket, open: AtomicUsize::new(1) })
    }

    fn done(&self, ticket: (u64, u64)) {
        let mut line = self.line.lock();
        line.open.remove(&ticket);
        let floor = line.open.first().map_or(line.next, |(first, _)| *first);
        debug_assert!(floor <= line.next, "a floor never passes a number that was not given out");
        let ended = line.ended && line.open.is_empty();
        let before = self.floor.fetch_max(floor, Ordering::AcqRel);
        drop(line);
        if ended {
            self.retiring.lock().push(self.id)
        }
        if floor > before || ended {
            deferred_wakes::all(&self.room)
        }
    }

    /// Whether `count` messages from `next` on keep within the window. With nothing on its way there is always room.
    pub(crate) fn has_room(&self, next: u64, count: u64) -> bool {
        next.saturating_add(count).saturating_sub(self.floor()) <= limits::LANE_WINDOW_MAX
            || self.line.lock().open.is_empty()
    }

    /// Completes when there may be room. Cancel-safe.
    pub(crate) async fn room_for(&self, next: impl Fn() -> u64, count: u64) {
        loop {
            let room = self.room.notified();
            if self.has_room(next(), count) {
                return;
            }
            room.await
        }
    }

    /// As [`OutsideLane::room_for`] the next free number.
    pub(crate) async fn room(&self) {
        self.room_for(|| self.line.lock().next, 1).await
    }

    /// Whether the next free number keeps within the window.
    pub(crate) fn has_room_for_next(&self) -> bool {
        let next = self.line.lock().next;
        self.has_room(next, 1)
    }
}

/// A batch from outside that is not done.
pub(crate) struct Admitted {
    lane: Arc<OutsideLane>,
    ticket: (u64, u64),
    /// Its router, and what is to be committed. Whatever is thrown away without having been committed stays open for
    /// ever: a floor may be late, never wrong.
    open: AtomicUsize,
}

impl Admitted {
    pub(crate) fn lane(&self) -> &Arc<OutsideLane> {
        &self.lane
    }

    /// Something more must be committed before it is done.
    pub(crate) fn open(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    /// Something is committed, or came to nothing.
    pub(crate) fn close(&self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.lane.done(self.ticket)
        }
    }
}

/// A batch that is being routed: when that ends, one thing less is open.
pub(crate) struct Routing(pub(crate) Arc<Admitted>);

impl Drop for Routing {
    fn drop(&mut self) {
        self.0.close()
    }
}

/// How the batches are admitted that outputs are made into.
#[derive(Clone, Copy)]
pub(crate) enum Admission<'a> {
    /// Not from outside, or not remembered.
    Inside,
    /// Each is a batch of this lane.
    Lane(&'a Arc<OutsideLane>),
    /// All are parts of this one.
    Part(&'a Arc<Admitted>),
}

/// All lanes of the outside that a log may still have something about.
pub(crate) struct Lanes {
    known: Mutex<HashMap<u64, Arc<OutsideLane>>>,
    retiring: Arc<Mutex<Vec<u64>>>,
    /// Goes up whenever lanes have retired.
    retirements: AtomicU64,
}

impl Lanes {
    /// Those that a log may be asked about again, with their floors.
    pub(crate) fn new(remembered: impl IntoIterator<Item = (u64, u64)>) -> Lanes {
        let lanes =
            Lanes { known: Mutex::default(), retiring: Arc::default(), retirements: AtomicU64::new(0) };
        for (id, floor) in remembered {
            lanes.lane(id, floor);
        }
        lanes
    }

    fn lane(&self, id: u64, floor: u64) -> Arc<OutsideLane> {
        let mut known = self.known.lock();
        let lane = known.entry(id).or_insert_with(|| {
            Arc::new(OutsideLane {
                id,
                floor: AtomicU64::new(0),
                line: Mutex::default(),
                room: Arc::default(),
                retiring: self.retiring.clone(),
            })
        });
        lane.floor.fetch_max(floor, Ordering::AcqRel);
        lane.clone()
    }

    /// A lane that ends with the process at the latest.
    pub(crate) fn open(&self, chance: u64) -> Arc<OutsideLane> {
        self.lane((chance << 2) | 1, 0)
    }

    /// A lane that was there before, whose sender sends nothing below `next_seq` again.
    pub(crate) fn resume(&self, number: u64, next_seq: u64) -> Arc<OutsideLane> {
        self.lane(lasting(number), next_seq)
    }

    /// Nothing more comes on this lane; it retires when everything on it is done.
    pub(crate) fn end(&self, lane: &OutsideLane) {
        let mut line = lane.line.lock();
        if !std::mem::replace(&mut line.ended, true) && line.open.is_empty() {
            drop(line);
            self.retiring.lock().push(lane.id)
        }
    }

    /// The lanes that have ended since this was last asked. From now on they are not known.
    pub(crate) fn take_retired(&self) -> Vec<u64> {
        let retired = std::mem::take(&mut *self.retiring.lock());
        if !retired.is_empty() {
            let mut known = self.known.lock();
            retired.iter().for_each(|lane| {
                known.remove(lane);
            });
            self.retirements.fetch_add(1, Ordering::Release);
        }
        retired
    }

    pub(crate) fn retirements(&self) -> u64 {
        self.retirements.load(Ordering::Acquire)
    }

    /// Forgets in `seen` the lanes that have retired.
    pub(crate) fn prune(&self, seen: &mut Seen) {
        let known = self.known.lock();
        seen.retain(|lane| known.contains_key(&lane))
    }

    /// The floors of those lanes of which `seen` remembers something above the floor; none if something of that would
    /// still be sent again. What retired needs no floor.
    pub(crate) fn floors_above(&self, seen: &Seen) -> Option<Vec<(u64, u64)>> {
        let known = self.known.lock();
        let mut floors = Vec::new();
        for lane in seen.lanes_above() {
            let Some(known) = known.get(&lane) else { continue };
            let floor = known.floor();
            if !seen.is_below(lane, floor) {
                return None;
            }
            if is_lasting(lane) {
                floors.push((lane, floor))
            }
        }
        Some(floors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_is_the_lowest_number_that_is_not_done() {
        let lanes = Lanes::new([]);
        let lane = lanes.resume(5, 0);
        let (first, second, third) = (lane.admit(0, 10), lane.admit(10, 5), lane.admit(15, 1));
        second.close();
        assert_eq!(lane.floor(), 0);
        first.open();
        first.close();
        assert_eq!(lane.floor(), 0, "something of it is still open");
        first.close();
        assert_eq!(lane.floor(), 15);
        // sent again under an old number
        let again = lane.admit(3, 4);
        third.close();
        again.close();
        assert_eq!(lane.floor(), 16);
    }

    #[test]
    fn what_is_thrown_away_is_not_done() {
        let lanes = Lanes::new([]);
        let lane = lanes.open(9);
        let (_, lost) = lane.admit_next(1);
        let (numbers, done) = lane.admit_next(1);
        assert_eq!(numbers.seq(), 1);
        drop(lost);
        done.close();
        assert_eq!(lane.floor(), 0);
    }

    #[test]
    fn the_window_is_bounded_and_opens_with_the_floor() {
        let lanes = Lanes::new([]);
        let lane = lanes.open(9);
        let (_, first) = lane.admit_next(1);
        let rest = lane.admit(1, limits::LANE_WINDOW_MAX as usize - 1);
        assert!(!lane.has_room_for_next());
        rest.close();
        assert!(!lane.has_room_for_next(), "one that is late keeps the window where it is");
        first.close();
        assert!(lane.has_room_for_next());
        // a batch larger than the window goes when nothing else is on its way
        assert!(lane.has_room(limits::LANE_WINDOW_MAX, limits::LANE_WINDOW_MAX * 2));
    }

    #[test]
    fn a_lane_retires_when_all_of_it_is_done() {
        let lanes = Lanes::new([]);
        let lane = lanes.open(9);
        let (numbers, open) = lane.admit_next(1);
        let mut seen = Seen::default();
        seen.insert(numbers.lane, 0, 0);
        lanes.end(&lane);
        assert!(lanes.take_retired().is_empty());
        assert_eq!(lanes.floors_above(&seen), None);
        open.close();
        assert_eq!(lanes.take_retired(), [lane.id()]);
        assert_eq!(lanes.floors_above(&seen), Some(vec![]));
        lanes.prune(&mut seen);
        assert!(seen.is_empty());
    }
}
