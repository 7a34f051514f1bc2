//! Compares what is shown with a model, in which bees move, merge, end and begin, while the logs of three colonies arrive at
//! different times, entry by entry or with gaps.

mod directed;

use super::Queue;
use super::change::{Change, Restored};
use super::claims::{Answers, Claims};
use crate::limits::{BEES_ENDED_REMEMBERED_MAX, CELLS_REMOVED_REMEMBERED_MAX, VIEW_FOLLOWED_BYTES_MAX};
use crate::state::image::{EncodedCells, Op, Redo};
use crate::time::Time;
use beehive_protocol::{BeeId, ColonyId, Epoch};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

const COLONIES: usize = 3;
const CELLS: u8 = 4;

/// A bee in the state of a log.
#[derive(Clone, Default)]
struct Bee {
    epoch: u32,
    is_frozen: bool,
    cells: Vec<u8>,
    rows: EncodedCells,
}

type Bees = BTreeMap<u64, Bee>;

/// The log of a colony.
#[derive(Clone, Default)]
struct Log {
    changes: Vec<Change>,
    /// The bees and the highest index of the registry, after each number of changes.
    states: Vec<(Bees, u64)>,
    bees: Bees,
    known: u64,
}

impl Log {
    fn append(&mut self, change: Change, view: u64) {
        self.known = self.known.max(view);
        self.changes.push(change);
        self.states.push((self.bees.clone(), self.known))
    }
}

/// The registry's entry for a bee.
struct Entry {
    at: usize,
    epoch: u32,
    /// The colony that has yet to drop it, and whether the present one has adopted it.
    left: Option<usize>,
    is_adopted: bool,
}

/// The whole cluster.
#[derive(Default)]
struct World {
    index: u64,
    newest: u64,
    logs: [Log; COLONIES],
    registry: BTreeMap<u64, Entry>,
    /// The values that each cell has had.
    history: BTreeMap<u8, Vec<Option<u32>>>,
    values: u32,
}

fn put(rows: &mut EncodedCells, cell: u8, value: Option<u32>) -> Redo {
    let bytes = value.map(u32::to_be_bytes);
    let op = Op { dict: 0, key: &[cell], row: None, value: bytes.as_ref().map(|bytes| &bytes[..]) };
    rows.apply(op);
    std::iter::once(op).collect()
}

fn get(rows: &EncodedCells, cell: u8) -> Option<u32> {
    let value = rows.value(Op { dict: 0, key: &[cell], row: None, value: None })?;
    value.try_into().ok().map(u32::from_be_bytes)
}

impl World {
    /// Returns a bee that may handle messages, of those that `fits`, and its colony.
    fn active(&self, choice: u8, fits: impl Fn(&Bee) -> bool) -> Option<(u64, usize)> {
        let all: Vec<_> = self
            .registry
            .iter()
            .filter_map(|(bee, entry)| {
                let copy = self.logs[entry.at].bees.get(bee)?;
                let is_active = copy.epoch == entry.epoch && !copy.is_frozen && fits(copy);
                is_active.then_some((*bee, entry.at))
            })
            .collect();
        (!all.is_empty()).then(|| all[usize::from(choice) % all.len()])
    }

    fn write(&mut self, choice: u8, cell: u8, removes: bool) {
        let Some((bee, at)) = self.active(choice, |bee| bee.cells.contains(&cell)) else { return };
        self.values += 1;
        let value = (!removes).then_some(self.values);
        self.history.entry(cell).or_insert_with(|| vec![None]).push(value);
        let log = &mut self.logs[at];
        let redo = log.bees.get_mut(&bee).map(|bee| put(&mut bee.rows, cell, value));
        let known = log.known;
        log.append(Change::Rows { bee: BeeId(bee), known, redo: redo.unwrap_or_default() }, 0)
    }

    fn create(&mut self, at: usize, cell: u8, is_logged: bool) {
        let is_owned = self.registry.iter().any(|(bee, entry)| {
            let mut copies = self.logs.iter().filter_map(|log| log.bees.get(bee));
            copies.any(|copy| copy.cells.contains(&cell) && copy.epoch <= entry.epoch)
        });
        if is_owned {
            return;
        }
        (self.index, self.newest) = (self.index + 1, self.newest + 1);
        let entry = Entry { at, epoch: 0, left: None, is_adopted: true };
        self.registry.insert(self.newest, entry);
        let log = &mut self.logs[at];
        log.bees.insert(self.newest, Bee { cells: vec![cell], ..Bee::default() });
        if is_logged {
            let begin = Change::Begin {
                bee: BeeId(self.newest),
                epoch: Epoch(0),
                view: self.index,
                rows: EncodedCells::default(),
            };
            log.append(begin, self.index)
        }
        self.write(0, cell, false)
    }

    fn freeze(&mut self, choice: u8) {
        let Some((bee, at)) = self.active(choice, |_| true) else { return };
        if self.registry[&bee].left.is_some() {
            return;
        }
        let view = self.index;
        let log = &mut self.logs[at];
        log.bees.get_mut(&bee).unwrap().is_frozen = true;
        log.append(Change::Freeze { bee: BeeId(bee), view }, view)
    }

    /// The registry decides about a frozen bee.
    fn decide(&mut self, choice: u8, to: usize) {
        let frozen = |(bee, entry): (&u64, &Entry)| {
            let copy = self.logs[entry.at].bees.get(bee)?;
            (entry.is_adopted && copy.is_frozen && copy.epoch == entry.epoch && entry.left.is_none())
                .then_some(*bee)
        };
        let all: Vec<u64> = self.registry.iter().filter_map(frozen).collect();
        if all.is_empty() {
            return;
        }
        let bee = all[usize::from(choice) % all.len()];
        self.index += 1;
        let entry = self.registry.get_mut(&bee).unwrap();
        entry.epoch += 1;
        if entry.at == to {
            let log = &mut self.logs[to];
            let copy = log.bees.get_mut(&bee).unwrap();
            (copy.is_frozen, copy.epoch) = (false, entry.epoch);
            let thaw = Change::Thaw { bee: BeeId(bee), epoch: Epoch(entry.epoch), view: self.index };
            log.append(thaw, self.index)
        } else {
            (entry.left, entry.at, entry.is_adopted) = (Some(entry.at), to, false)
        }
    }

    fn adopt(&mut self, choice: u8) {
        let all: Vec<u64> =
            self.registry.iter().filter(|(_, entry)| !entry.is_adopted).map(|(bee, _)| *bee).collect();
        if all.is_empty() {
            return;
        }
        let bee = all[usize::from(choice) % all.len()];
        let entry = self.registry.get_mut(&bee).unwrap();
        entry.is_adopted = true;
        let mut copy = self.logs[entry.left.unwrap()].bees[&bee].clone();
        (copy.epoch, copy.is_frozen) = (entry.epoch, false);
        let (epoch, view) = (Epoch(entry.epoch), self.index);
        let adopt = Change::Begin { bee: BeeId(bee), epoch, view, rows: copy.rows.clone() };
        let log = &mut self.logs[entry.at];
        log.bees.insert(bee, copy);
        log.append(adopt, view)
    }

    fn drop_moved(&mut self, choice: u8) {
        let all: Vec<u64> = self
            .registry
            .iter()
            .filter(|(_, entry)| entry.left.is_some() && entry.is_adopted)
            .map(|(bee, _)| *bee)
            .collect();
        if !all.is_empty() {
            self.drop_bee(all[usize::from(choice) % all.len()])
        }
    }

    fn drop_bee(&mut self, bee: u64) {
        let Some(from) = self.registry.get_mut(&bee).and_then(|entry| entry.left.take()) else { return };
        let (log, view) = (&mut self.logs[from], self.index);
        log.bees.remove(&bee);
        log.append(Change::Drop { bee: BeeId(bee) }, view)
    }

    fn release(&mut self, choice: u8) {
        let Some((bee, at)) = self.active(choice, |bee| bee.rows.row_count() == 0) else { return };
        self.drop_bee(bee);
        let view = self.index;
        let log = &mut self.logs[at];
        log.bees.remove(&bee);
        log.append(Change::Release { bee: BeeId(bee), view }, view);
        self.index += 1;
        self.registry.remove(&bee);
    }

    fn fuse(&mut self, choice: u8, other: u8) {
        let Some((from, at)) = self.active(choice, |_| true) else { return };
        let Some((into, of)) = self.active(other, |_| true) else { return };
        if from == into || at != of {
            return;
        }
        self.drop_bee(from);
        let view = self.index;
        let log = &mut self.logs[at];
        let gone = log.bees.remove(&from).unwrap();
        let target = log.bees.get_mut(&into).unwrap();
        target.cells.extend(gone.cells);
        target.rows.absorb(gone.rows);
        log.append(Change::Fuse { from: BeeId(from), into: BeeId(into), view }, view);
        self.index += 1;
        self.registry.remove(&from);
    }
}

/// A hive that reads.
#[derive(Default)]
struct Reader {
    claims: Claims,
    positions: [usize; COLONIES],
    shown: EncodedCells,
    /// For each cell, the place in its history of what was read last.
    seen: BTreeMap<u8, usize>,
}

impl Reader {
    fn learn(&mut self, world: &World, at: usize, count: usize, by_snapshot: bool) {
        let (log, begin) = (&world.logs[at], self.positions[at]);
        let end = log.changes.len().min(begin + count);
        let colony = ColonyId(at as u32 + 1);
        self.positions[at] = end;
        if by_snapshot && let Some((bees, known)) = end.checked_sub(1).map(|last| &log.states[last]) {
            let restored = |(bee, copy): (&u64, &Bee)| Restored {
                bee: BeeId(*bee),
                epoch: Epoch(copy.epoch),
                is_frozen: copy.is_frozen,
                rows: copy.rows.clone(),
            };
            let bees = bees.iter().map(restored).collect();
            self.claims.apply(colony, Change::Restored { bees, staged: Vec::new(), known: *known })
        } else {
            for change in &log.changes[begin..end] {
                self.claims.apply(colony, change.clone())
            }
        }
        self.read()
    }

    fn ask(&mut self, world: &World, now: Time) {
        let find = |bee: BeeId| {
            let entry = world.registry.get(&bee.0)?;
            Some((ColonyId(entry.at as u32 + 1), Epoch(entry.epoch)))
        };
        let places = self.claims.questions().into_iter().map(|bee| (bee, find(bee))).collect();
        self.claims.decide(&Answers { index: world.index, places }, now, Duration::from_secs(10))
    }

    fn read(&mut self) {
        self.claims.settle().iter().for_each(|op| self.shown.apply(op))
    }

    fn check(&mut self, world: &World) -> Result<(), TestCaseError> {
        for (cell, history) in &world.history {
            let (value, seen) = (get(&self.shown, *cell), self.seen.entry(*cell).or_default());
            let next = history[*seen..].iter().position(|past| *past == value);
            let Some(next) = next else {
                let last = history[*seen];
                return Err(TestCaseError::fail(format!(
                    "cell {cell}: {value:?} after {last:?} of {history:?}"
                )));
            };
            *seen += next
        }
        Ok(())
    }
}

type Step = (u8, u8, u8);

fn run(steps: &[Step], removes: bool, snapshots: bool) -> Result<(), TestCaseError> {
    let (mut world, mut reader) = (World::default(), Reader::default());
    for (kind, one, other) in steps.iter().copied() {
        let (cell, at) = (other % CELLS, usize::from(other) % COLONIES);
        match kind {
            0 | 1 => world.write(one, cell, false),
            2 => world.write(one, cell, removes),
            3 => world.create(usize::from(one) % COLONIES, cell, one & 4 == 0),
            4 => world.freeze(one),
            5 => world.decide(one, at),
            6 => world.adopt(one),
            7 => world.drop_moved(one),
            8 => world.fuse(one, other),
            9 => world.release(one),
            10 => world.index += 1,
            11 => {
                reader.ask(&world, Time::ZERO);
                reader.read();
                reader.check(&world)?
            }
            _ => {
                reader.learn(&world, at, 1 + usize::from(one % 8), snapshots && one >= 224);
                reader.check(&world)?
            }
        }
    }
    (0..=u8::MAX).for_each(|_| {
        world.adopt(0);
        world.drop_moved(0)
    });
    for at in 0..COLONIES {
        reader.learn(&world, at, usize::MAX / 2, false);
        reader.check(&world)?
    }
    for seconds in [0, 100] {
        let now = Time::from_nanoseconds(seconds * 1_000_000_000);
        reader.ask(&world, now);
        reader.read();
        reader.check(&world)?
    }
    for (cell, history) in &world.history {
        prop_assert_eq!(get(&reader.shown, *cell), *history.last().unwrap(), "cell {}", cell)
    }
    prop_assert!(!reader.claims.waits(), "something is left for ever");
    Ok(())
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0..18u8, any::<u8>(), any::<u8>()), 0..150)
}

fn cases() -> u32 {
    if std::env::var_os("BEEHIVE_LONG").is_some() { 1_000_000 } else { 2_000 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cell_never_goes_back_and_never_vanishes(steps in steps()) {
        run(&steps, false, false)?
    }

    #[test]
    fn the_same_where_cells_are_removed(steps in steps()) {
        run(&steps, true, false)?
    }

    #[test]
    fn the_same_where_entries_are_missing(steps in steps()) {
        run(&steps, false, true)?
    }
}

fn rows(bee: u64, key: u32, value: Option<&[u8]>) -> Change {
    let key = key.to_be_bytes();
    let redo = std::iter::once(Op { dict: 0, key: &key, row: None, value }).collect();
    Change::Rows { bee: BeeId(bee), known: 0, redo }
}

#[test]
fn only_changed_rows_fill_the_queue() {
    let big = vec![0; VIEW_FOLLOWED_BYTES_MAX];
    let mut image = EncodedCells::default();
    image.apply(Op { dict: 0, key: &[1], row: None, value: Some(&big) });
    let bee = || Restored { bee: BeeId(1), epoch: Epoch(1), is_frozen: false, rows: image.clone() };
    let (mut queue, colony, rows_of_bee) = (Queue::default(), ColonyId(1), image.clone());
    assert!(!queue.add(colony, Change::Restored { bees: vec![bee()], staged: vec![bee()], known: 0 }));
    assert!(!queue.add(colony, Change::Begin { bee: BeeId(2), epoch: Epoch(1), view: 0, rows: rows_of_bee }));
    assert!(!queue.add(colony, rows(1, 7, Some(&[1]))));
    assert!(queue.add(colony, rows(1, 7, Some(&big))));
    assert!(!queue.add(colony, Change::Drop { bee: BeeId(1) }));
}

#[test]
fn few_of_the_removed_cells_and_ended_bees_are_remembered() {
    let (mut claims, colony) = (Claims::default(), ColonyId(1));
    let (cells_max, bees_max) = (CELLS_REMOVED_REMEMBERED_MAX as u32, BEES_ENDED_REMEMBERED_MAX as u64);
    for key in 0..cells_max + 100 {
        claims.apply(colony, rows(1, key, Some(&[1])));
        claims.apply(colony, rows(1, key, None));
        claims.settle();
    }
    for bee in 2..bees_max + 100 {
        let (bee, epoch, rows) = (BeeId(bee), Epoch(1), EncodedCells::default());
        claims.apply(colony, Change::Begin { bee, epoch, view: 1, rows });
        claims.apply(colony, Change::Release { bee, view: 1 });
    }
    claims.settle();
    assert_eq!(claims.remembered(), (cells_max as usize, bees_max as usize));
    // also a cell that is forgotten may come back
    claims.apply(colony, rows(1, 0, Some(&[2])));
    assert_eq!(claims.settle().iter().count(), 1);
}

#[test]
fn a_bee_whose_end_was_missed_is_shown_for_a_while() {
    let mut claims = Claims::default();
    let view = 1;
    claims.apply(ColonyId(1), rows(1, 7, Some(&[1])));
    claims.apply(ColonyId(1), Change::Freeze { bee: BeeId(1), view });
    claims.apply(ColonyId(1), Change::Drop { bee: BeeId(1) });
    assert_eq!(claims.settle().iter().count(), 1);
    let seconds = |seconds: u64| Time::from_nanoseconds(seconds * 1_000_000_000);
    let mut removals = |now, place: Option<(ColonyId, Epoch)>| {
        let places = claims.questions().into_iter().map(|bee| (bee, place)).collect();
        claims.decide(&Answers { index: 9, places }, seconds(now), Duration::from_secs(10));
        claims.settle().iter().count()
    };
    assert_eq!(removals(1, Some((ColonyId(2), Epoch(1)))), 0, "the other log has it");
    assert_eq!((removals(100, None), removals(109, None)), (0, 0));
    assert_eq!((removals(110, None), removals(111, None)), (1, 0));
    assert!(!claims.waits());
}

#[test]
fn a_bee_that_splits_changes_nothing_that_is_shown() {
    let (mut claims, colony, view) = (Claims::default(), ColonyId(1), 3);
    [1, 2].iter().for_each(|key| claims.apply(colony, rows(1, *key, Some(&[1]))));
    assert_eq!(claims.settle().iter().count(), 2);
    let cells = vec![(0, 2u32.to_be_bytes().to_vec())];
    claims.apply(colony, Change::Split { bee: BeeId(1), new: BeeId(2), cells, view });
    assert_eq!(claims.settle().iter().count(), 0);
    [(1, 1), (2, 2)].iter().for_each(|(bee, key)| claims.apply(colony, rows(*bee, *key, Some(&[2]))));
    assert_eq!(claims.settle().iter().count(), 2);
    // the new bee moves
    claims.apply(colony, Change::Freeze { bee: BeeId(2), view });
    claims.apply(colony, Change::Drop { bee: BeeId(2) });
    assert_eq!(claims.settle().iter().count(), 0);
}

/// A copy that contests a cell leaves its log. Then the holder merges into an older copy of the same bee, which is dropped.
#[test]
fn a_contestant_that_has_left_its_log_takes_over() {
    let steps = [
        (3, 2, 59),
        (4, 0, 0),
        (3, 148, 124),
        (5, 0, 70),
        (12, 0, 190),
        (6, 0, 0),
        (7, 0, 0),
        (0, 0, 0),
        (0, 0, 0),
        (8, 31, 156),
        (4, 0, 0),
        (5, 0, 177),
        (6, 0, 0),
        (7, 0, 0),
        (4, 0, 0),
        (5, 0, 29),
    ];
    run(&steps, false, false).unwrap()
}
