//! Single histories, each of which an earlier rule got wrong.

use super::super::change::{Change, Restored};
use super::super::claims::{Answers, Claims};
use super::{get, put};
use crate::limits::{BEES_ENDED_REMEMBERED_MAX, CELLS_REMOVED_REMEMBERED_MAX};
use crate::state::image::EncodedCells;
use crate::time::Time;
use beehive_protocol::{BeeId, ColonyId, Epoch};
use std::time::Duration;

const X: ColonyId = ColonyId(1);
const Y: ColonyId = ColonyId(2);
const Z: ColonyId = ColonyId(3);
const A: u8 = 0;
const B: u8 = 1;
const C: u8 = 2;

/// A hive that is told what the logs contain.
#[derive(Default)]
struct Hive {
    claims: Claims,
    shown: EncodedCells,
}

impl Hive {
    /// Tells a change of a colony. Returns what is shown for the cell `C` after it.
    fn tell(&mut self, colony: ColonyId, change: Change) -> Option<u32> {
        self.claims.apply(colony, change);
        self.read()
    }

    fn read(&mut self) -> Option<u32> {
        self.claims.settle().iter().for_each(|op| self.shown.apply(op));
        get(&self.shown, C)
    }

    /// Asks the registry, which contains these bees at this index.
    fn ask(&mut self, index: u64, bees: &[(u64, ColonyId, u32)], seconds: u64) -> Option<u32> {
        let find = |bee: BeeId| {
            let found = bees.iter().find(|(one, ..)| *one == bee.0);
            found.map(|(_, colony, epoch)| (*colony, Epoch(*epoch)))
        };
        let places = self.claims.questions().into_iter().map(|bee| (bee, find(bee))).collect();
        let now = Time::from_nanoseconds(seconds * 1_000_000_000);
        self.claims.decide(&Answers { index, places }, now, Duration::from_secs(10));
        self.read()
    }
}

fn content(cells: &[(u8, u32)]) -> EncodedCells {
    let mut rows = EncodedCells::default();
    for (cell, value) in cells {
        put(&mut rows, *cell, Some(*value));
    }
    rows
}

fn rows(bee: u64, known: u64, cell: u8, value: Option<u32>) -> Change {
    Change::Rows { bee: BeeId(bee), known, redo: put(&mut EncodedCells::default(), cell, value) }
}

fn begin(bee: u64, epoch: u32, view: u64, cells: &[(u8, u32)]) -> Change {
    Change::Begin { bee: BeeId(bee), epoch: Epoch(epoch), view, rows: content(cells) }
}

fn freeze(bee: u64, view: u64) -> Change {
    Change::Freeze { bee: BeeId(bee), view }
}

fn thaw(bee: u64, epoch: u32, view: u64) -> Change {
    Change::Thaw { bee: BeeId(bee), epoch: Epoch(epoch), view }
}

fn drop_bee(bee: u64) -> Change {
    Change::Drop { bee: BeeId(bee) }
}

fn release(bee: u64, view: u64) -> Change {
    Change::Release { bee: BeeId(bee), view }
}

fn image(bee: u64, epoch: u32, is_frozen: bool, cells: &[(u8, u32)]) -> Restored {
    Restored { bee: BeeId(bee), epoch: Epoch(epoch), is_frozen, rows: content(cells) }
}

fn restored(known: u64, bees: Vec<Restored>) -> Change {
    Change::Restored { bees, staged: Vec::new(), known }
}

fn restored_with_staged(known: u64, bees: Vec<Restored>, staged: Vec<Restored>) -> Change {
    Change::Restored { bees, staged, known }
}

#[test]
fn a_frozen_copy_is_not_newer_because_its_log_said_it_later() {
    let mut hive = Hive::default();
    assert_eq!(hive.tell(Z, rows(2, 0, C, Some(3))), Some(3));
    // bee 1 has merged into bee 2 before that one has left for X
    assert_eq!(hive.tell(X, rows(1, 0, C, Some(1))), Some(3));
    assert_eq!(hive.tell(X, freeze(1, 2)), Some(3));
    assert_eq!(hive.tell(X, begin(2, 1, 7, &[(C, 3)])), Some(3));
}

#[test]
fn a_frozen_copy_in_a_restored_log_does_not_win_against_the_active_one() {
    let mut hive = Hive::default();
    assert_eq!(hive.tell(X, begin(1, 2, 5, &[(C, 4)])), Some(4));
    let bees = vec![image(1, 2, false, &[(C, 5)]), image(2, 0, true, &[(C, 4)])];
    assert_eq!(hive.tell(X, restored(9, bees)), Some(5));
}

#[test]
fn a_removal_by_a_newer_bee_is_remembered_after_that_bee_has_ended() {
    let mut hive = Hive::default();
    hive.tell(Y, begin(1, 1, 100, &[(C, 1)]));
    hive.tell(X, begin(2, 1, 200, &[(A, 1)]));
    assert_eq!(hive.tell(Y, rows(1, 240, C, Some(1))), Some(1));
    assert_eq!(hive.tell(X, rows(2, 200, C, Some(2))), Some(1), "bee 2 may be older");
    assert_eq!(hive.tell(X, rows(2, 250, C, None)), None);
    assert_eq!(hive.tell(X, rows(2, 250, A, None)), None);
    assert_eq!(hive.tell(X, release(2, 260)), None);
    assert_eq!(hive.tell(Y, rows(1, 245, C, Some(3))), None, "Y is behind");
    assert_eq!(hive.tell(Z, begin(4, 1, 270, &[(C, 4)])), Some(4));
}

#[test]
fn a_bee_without_rows_has_the_epoch_of_its_return() {
    let mut hive = Hive::default();
    assert_eq!(hive.tell(Y, rows(1, 0, C, Some(1))), Some(1));
    assert_eq!(hive.tell(Y, rows(1, 0, C, None)), None);
    hive.tell(Y, release(1, 1));
    hive.tell(X, freeze(2, 4));
    hive.tell(X, thaw(2, 1, 5));
    hive.tell(X, rows(2, 5, C, Some(3)));
    assert_eq!(hive.ask(9, &[(2, X, 1)], 0), Some(3));
}

#[test]
fn an_answer_that_is_older_than_the_log_does_not_count() {
    let mut hive = Hive::default();
    let registry = [(1, Y, 0)];
    // bee 2 has merged into bee 1
    assert_eq!(hive.tell(Y, restored(4, vec![image(1, 0, false, &[(A, 1), (C, 2)])])), Some(2));
    hive.tell(X, rows(2, 0, C, Some(2)));
    hive.tell(X, freeze(2, 3));
    assert_eq!(hive.tell(X, drop_bee(2)), Some(2));
    assert_eq!(hive.ask(1, &registry, 0), Some(2));
    for seconds in [1, 100, 200] {
        assert_eq!(hive.ask(5, &registry, seconds), Some(2))
    }
}

#[test]
fn a_cell_that_the_newest_copy_has_removed_does_not_come_back_with_an_older_bee() {
    let mut hive = Hive::default();
    assert_eq!(hive.tell(X, restored(0, vec![image(3, 0, false, &[(C, 4)])])), Some(4));
    assert_eq!(hive.tell(Z, begin(3, 1, 7, &[])), Some(4));
    assert_eq!(hive.tell(X, restored(0, vec![image(3, 0, false, &[])])), None);
    hive.tell(Y, begin(2, 0, 2, &[]));
    assert_eq!(hive.tell(Y, rows(2, 2, C, Some(1))), None);
}

/// The epochs of a bee arrive in the order 0, 2, 1.
#[test]
fn a_cell_that_an_ended_bee_has_removed_does_not_come_back() {
    let mut hive = Hive::default();
    assert_eq!(hive.tell(X, rows(1, 2, C, Some(1))), Some(1));
    hive.tell(Z, begin(1, 2, 5, &[]));
    assert_eq!(hive.tell(Z, release(1, 5)), Some(1));
    assert_eq!(hive.tell(Y, begin(1, 1, 3, &[(C, 1)])), Some(1));
    hive.tell(X, freeze(1, 2));
    assert_eq!(hive.tell(X, drop_bee(1)), None);
    assert_eq!(hive.tell(Y, rows(1, 3, C, Some(2))), None);
}

#[test]
fn the_bees_that_ended_last_are_remembered() {
    let mut hive = Hive::default();
    for bee in (1..BEES_ENDED_REMEMBERED_MAX as u64 + 100).rev() {
        hive.claims.apply(X, begin(bee, 1, 9, &[]));
        hive.claims.apply(X, release(bee, 9));
    }
    assert_eq!(hive.tell(Y, rows(1, 0, C, Some(1))), None, "bee 1 has moved from Y to X and ended there");
}

#[test]
fn a_cell_that_is_often_removed_does_not_displace_others() {
    let mut hive = Hive::default();
    hive.tell(X, rows(1, 0, A, Some(1)));
    hive.tell(X, rows(1, 0, A, None));
    for number in 0..CELLS_REMOVED_REMEMBERED_MAX as u32 + 100 {
        hive.tell(X, rows(1, 0, B, Some(number)));
        hive.tell(X, rows(1, 0, B, None));
    }
    assert_eq!(hive.claims.remembered(), (2, 0));
}

/// The old log has dropped the bee, and the new one has not adopted it.
#[test]
fn a_hive_that_starts_in_the_middle_of_a_move_shows_the_bee() {
    let mut hive = Hive::default();
    hive.tell(X, restored(5, vec![]));
    let arriving = || restored_with_staged(5, vec![], vec![image(1, 1, false, &[(C, 5)])]);
    assert_eq!(hive.tell(Y, arriving()), Some(5));
    assert!(hive.claims.waits());
    assert_eq!(hive.tell(Y, begin(1, 1, 6, &[(C, 5)])), Some(5));
    assert_eq!(hive.tell(Y, rows(1, 6, C, None)), None);
    assert!(!hive.claims.waits());

    // the same, but the bee ends elsewhere
    let mut hive = Hive::default();
    assert_eq!(hive.tell(Y, arriving()), Some(5));
    assert_eq!([0, 9, 10].map(|seconds| hive.ask(7, &[], seconds)), [Some(5), Some(5), None]);
    assert!(!hive.claims.waits());
}

#[test]
fn a_copy_that_is_about_to_arrive_is_newer_than_the_log_that_is_behind() {
    let mut hive = Hive::default();
    assert_eq!(hive.tell(Y, restored_with_staged(5, vec![], vec![image(1, 1, false, &[(C, 5)])])), Some(5));
    for value in [3, 5] {
        assert_eq!(hive.tell(X, rows(1, 0, C, Some(value))), Some(5))
    }
    assert_eq!(hive.tell(X, freeze(1, 4)), Some(5));
    // it has stayed where it was
    assert_eq!(hive.tell(X, thaw(1, 1, 6)), Some(5));
    assert_eq!(hive.tell(X, rows(1, 6, C, Some(6))), Some(6));
    assert!(!hive.claims.waits());
}

#[test]
fn a_copy_that_is_about_to_arrive_takes_over_from_an_older_one_in_the_same_log() {
    let mut hive = Hive::default();
    assert_eq!(hive.tell(Y, rows(1, 2, C, Some(1))), Some(1));
    assert_eq!(hive.tell(Y, freeze(1, 2)), Some(1));
    let arriving = image(1, 2, false, &[(C, 2)]);
    assert_eq!(
        hive.tell(Y, restored_with_staged(4, vec![image(1, 0, true, &[(C, 1)])], vec![arriving])),
        Some(2)
    );
    assert_eq!(hive.tell(Y, drop_bee(1)), Some(2));
    // bee 2 had the cell before bee 1 did: it merged into that one in X
    assert_eq!(hive.tell(X, begin(2, 1, 3, &[(C, 1)])), Some(2));
    assert_eq!(hive.tell(Y, begin(1, 2, 8, &[(C, 2)])), Some(2));
    assert_eq!(hive.ask(9, &[(1, Y, 2)], 0), Some(2));
    assert_eq!(hive.tell(X, release(2, 4)), Some(2));
    assert!(!hive.claims.waits());
}

/// Bee 2 has merged into bee 1, which has moved from Z to X, and then to Y. Both logs are restored while it arrives there.
#[test]
fn a_second_copy_that_is_about_to_arrive_does_not_have_the_index_of_the_first() {
    let mut hive = Hive::default();
    hive.tell(Z, restored(2, vec![image(1, 0, false, &[(A, 1)])]));
    hive.tell(Z, freeze(1, 2));
    hive.tell(Z, drop_bee(1));
    hive.tell(X, restored_with_staged(2, vec![], vec![image(1, 1, false, &[(A, 1)])]));
    let arriving = image(1, 2, false, &[(A, 1), (C, 2)]);
    assert_eq!(hive.tell(Y, restored_with_staged(7, vec![], vec![arriving])), Some(2));
    hive.tell(X, rows(2, 3, C, Some(2)));
    hive.tell(X, begin(2, 0, 3, &[]));
    hive.tell(X, begin(1, 1, 4, &[(A, 1)]));
    hive.tell(X, Change::Fuse { from: BeeId(2), into: BeeId(1), view: 5 });
    hive.tell(X, freeze(1, 7));
    assert_eq!(hive.tell(X, drop_bee(1)), Some(2));
}

#[test]
fn a_frozen_bee_that_has_gone_elsewhere_gives_way() {
    let mut hive = Hive::default();
    assert_eq!(hive.tell(X, restored(50, vec![image(1, 0, true, &[(C, 1)])])), Some(1));
    hive.tell(Y, restored(60, vec![image(2, 0, false, &[(C, 5)])]));
    assert_eq!(hive.ask(70, &[(2, Y, 0)], 0), Some(5));
}

/// The logs go on while the registry is read.
#[test]
fn a_bee_about_which_the_registry_was_not_asked_is_not_taken_for_unknown() {
    let mut hive = Hive::default();
    hive.tell(X, rows(1, 0, C, Some(1)));
    hive.tell(X, freeze(1, 2));
    let asked = hive.claims.questions();
    assert!(asked.is_empty());
    assert_eq!(hive.tell(X, drop_bee(1)), Some(1));
    for seconds in [1, 100] {
        let now = Time::from_nanoseconds(seconds * 1_000_000_000);
        hive.claims.decide(&Answers { index: 9, ..Answers::default() }, now, Duration::from_secs(10));
        assert_eq!(hive.read(), Some(1))
    }
    assert_eq!(hive.claims.questions().into_iter().collect::<Vec<_>>(), [BeeId(1)]);
}

/// The registry has given a cell to a bee that exists already: see the known limit of [`Claims`].
#[test]
fn a_cell_of_a_bee_with_a_low_index_comes_back() {
    let told = || {
        let mut hive = Hive::default();
        hive.tell(Y, begin(10, 1, 100, &[(C, 1)]));
        hive.tell(X, begin(20, 1, 200, &[(A, 1)]));
        // X is ahead: meanwhile, bee 10 has ended, and bee 20 has got its cell
        assert_eq!(hive.tell(X, rows(20, 200, C, Some(3))), Some(3));
        hive.tell(Y, rows(10, 205, C, Some(2)));
        hive
    };
    let registry = [(20, X, 1)];
    assert_eq!(told().ask(300, &registry, 0), Some(3));

    let mut hive = told();
    hive.tell(Y, rows(10, 206, C, None));
    hive.tell(Y, release(10, 210));
    assert_eq!(hive.ask(300, &registry, 0), Some(3));
    assert!(!hive.claims.waits());
}
