//! Single histories, and a comparison with a model: random worlds, in which bees move, merge, end and begin, whose logs arrive at
//! different times.

mod directed;
mod random;
mod world;

use super::Queue;
use super::change::{Change, Restored};
use super::claims::{Answers, Claims};
use crate::limits::{BEES_ENDED_REMEMBERED_MAX, CELLS_REMOVED_REMEMBERED_MAX, VIEW_FOLLOWED_BYTES_MAX};
use crate::state::image::{EncodedCells, Op, Redo};
use crate::time::Time;
use beehive_protocol::{BeeId, ColonyId, Epoch};
use std::time::Duration;

/// Returns the dictionary of a cell. The first one has views.
fn dict(cell: u8) -> u32 {
    u32::from(cell == world::UNSHOWN)
}

fn put(rows: &mut EncodedCells, cell: u8, value: Option<u32>) -> Redo {
    let bytes = value.map(u32::to_be_bytes);
    let value = bytes.as_ref().map(|bytes| &bytes[..]);
    let op = Op { dict: dict(cell), key: &[cell], row: None, value };
    rows.apply(op);
    std::iter::once(op).collect()
}

fn get(rows: &EncodedCells, cell: u8) -> Option<u32> {
    let value = rows.value(Op { dict: dict(cell), key: &[cell], row: None, value: None })?;
    value.try_into().ok().map(u32::from_be_bytes)
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
    assert!(!queue.add(colony, rows(1, 7, Some(&[1]))), "a restored log does not count");
    assert!(!queue.add(colony, Change::Begin { bee: BeeId(2), epoch: Epoch(1), view: 0, rows: rows_of_bee }));
    assert!(queue.add(colony, rows(1, 7, Some(&[1]))), "a bee counts for the rows behind it");
    assert!(!queue.add(colony, Change::Drop { bee: BeeId(1) }));
}

#[test]
fn the_queue_has_one_restored_state_of_each_log() {
    let restored = |known| Change::Restored { bees: Vec::new(), staged: Vec::new(), known };
    let mut queue = Queue::default();
    let (one, other) = (ColonyId(1), ColonyId(2));
    for known in 1..4 {
        for colony in [one, other] {
            queue.add(colony, rows(known, 7, Some(&[1])));
            queue.add(colony, restored(known));
        }
    }
    queue.add(one, rows(4, 7, Some(&[1])));
    let kept: Vec<_> = queue.changes.iter().map(|(colony, change)| (colony.0, change.view())).collect();
    // the first rows come before the first restored states
    assert_eq!(kept, [(1, 0), (2, 0), (1, 3), (2, 3), (1, 0)]);
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
