//! Which colony's copy of a cell the views show, while a bee moves from one colony to another.
//!
//! The logs of the colonies arrive independently. While a bee moves, both logs contain it, and either may be behind: this hive
//! may learn that the new colony has adopted the bee before it learns what the bee last did in the old one, or that the old
//! colony has dropped it before it learns that the new one has adopted it. A cell is shown from one copy of its bee, and
//! changes to another copy only if that one is newer:
//!
//! - Of two copies of one bee, the one with the higher epoch is newer. The other one is *superseded*, whatever its log still
//!   says about it.
//! - Of copies of different bees, which merged somewhere else, or one of which has ended, the one with the higher *stamp* is
//!   newer. A stamp is an index of the registry at which the colony had the bee. A cell has one owner at each index, so the order
//!   of two stamps is that of the owners. Most records about bees name such an index.
//! - Of two copies in one log, the one that is not frozen is newer: one such bee at most has the cell.
//! - A copy that its log has dropped stays shown until the new one arrives. So does the complete copy of a bee that is about to arrive,
//!   in a log that is restored: it is newer than what the old log says about the bee, unless the bee stays there after all.
//!
//! A copy that loses, or has no stamp yet, may be the newer one: a bee begins with its first rows, whose record names no index.
//! So it is remembered as a *contestant*, until it has a stamp or the other bee ends. If the logs say nothing about either,
//! the registry is asked. Its answer counts if it is not older than the log with the copy: see [`Claims::decide`].
//!
//! A cell that was removed is remembered for a while, so that a log that is behind does not bring it back. It was removed by the newest
//! copy of its bee, also if only an old copy, whose log is behind, still had it; or, if the bee has ended, by the bee's end.
//!
//! # Known limit
//!
//! A stamp belongs to a bee, and not to each of its cells. The registry may give a cell without an owner to a bee that exists
//! already, and the record with the cell's first rows names no index. Then the bee's stamp may be lower than an index at which an earlier
//! owner, which has ended since, still had the cell. If the log of the earlier owner is behind, the cell goes back to one of that bee's
//! values, or is missing, until the bee that lost has a higher stamp, or the registry has been asked: it is a contestant.

mod asked;

pub(crate) use asked::Answers;

use crate::limits::{BEES_ENDED_REMEMBERED_MAX, CELLS_REMOVED_REMEMBERED_MAX};
use crate::state::image::{EncodedCells, Redo};
use crate::time::Time;
use crate::view::followed::cell::{Cell, cell, cells, change, split};
use crate::view::followed::change::{Change, Restored};
use crate::view::followed::recent::Recent;
use beehive_protocol::{BeeId, ColonyId, Epoch};
use std::collections::{BTreeMap, BTreeSet};

/// A bee as one log describes it.
struct Copied {
    home: ColonyId,
    epoch: Epoch,
    /// The highest index of the registry at which the bee was in this colony, as far as is known.
    stamp: Option<u64>,
    is_frozen: bool,
    /// Whether there is a newer copy of the bee, or the bee has ended. A superseded copy is shown only for cells that the newer
    /// one does not have, and only until its log has dropped it: these cells were removed, or belong to another bee by now.
    is_superseded: bool,
    rows: EncodedCells,
    /// The cells that this copy has removed and that are still remembered.
    removed: BTreeSet<Cell>,
}

/// A copy that its log has dropped, or that the next log has not adopted yet.
struct Left {
    copied: Copied,
    /// The time since which the registry does not know the bee.
    unknown_since: Option<Time>,
}

/// A copy of a bee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The copy in a log.
    In(ColonyId, BeeId),
    /// The copy in no log.
    Left(BeeId),
    /// No copy: the last bee with the cell has ended. It was in this colony at this index of the registry.
    Gone(ColonyId, u64),
}

impl Place {
    const fn bee(self) -> Option<BeeId> {
        match self {
            Place::In(_, bee) | Place::Left(bee) => Some(bee),
            Place::Gone(..) => None,
        }
    }
}

/// The copies of an app's bees in all logs, and which of them is shown for each cell.
#[derive(Default)]
pub(super) struct Claims {
    colonies: BTreeMap<ColonyId, BTreeMap<BeeId, Copied>>,
    left: BTreeMap<BeeId, Left>,
    /// The highest index of the registry that each log has named.
    known: BTreeMap<ColonyId, u64>,
    /// The copy that is shown, for each cell that has rows there, or had some and is remembered.
    shown: BTreeMap<Cell, Place>,
    /// The cells that are remembered without rows, oldest first, and others.
    removed: Recent<Cell, ()>,
    contested: BTreeMap<Cell, Vec<(ColonyId, BeeId)>>,
    /// Bees that have moved and ended: the colony in which each has ended, and when. A log that is behind may still contain them.
    ended: Recent<BeeId, (ColonyId, u64)>,
    /// The changes of what is shown.
    out: Redo,
}

impl Claims {
    /// Applies what a log says.
    pub(super) fn apply(&mut self, colony: ColonyId, change: Change) {
        let known = self.known.entry(colony).or_default();
        *known = change.view().max(*known);
        match change {
            Change::Rows { bee, known, redo } => self.rows(colony, bee, known, &redo),
            Change::Begin { bee, epoch, view, rows } => {
                if rows.row_count() == 0 && self.copied(Place::In(colony, bee)).is_some() {
                    return self.is_here((colony, bee), view);
                }
                self.enter(bee, Copied::new(colony, epoch, Some(view), rows))
            }
            Change::Freeze { bee, view } => {
                self.enter_if_unknown(colony, bee, Some(view));
                self.is_here((colony, bee), view);
                if let Some(copied) = self.copied_mut(colony, bee) {
                    copied.is_frozen = true
                }
            }
            Change::Thaw { bee, epoch, view } => {
                self.enter_if_unknown(colony, bee, Some(view));
                let Some(mut copied) = self.remove(colony, bee) else { return };
                (copied.is_frozen, copied.epoch) = (false, epoch);
                copied.stamp = copied.stamp.max(Some(view));
                self.enter(bee, copied)
            }
            Change::Drop { bee } => {
                let is_frozen = self.copied_mut(colony, bee).is_some_and(|copied| copied.is_frozen);
                if is_frozen && let Some(copied) = self.remove(colony, bee) {
                    self.leave(bee, copied)
                }
            }
            Change::Release { bee, view } => {
                let Some(gone) = self.remove(colony, bee) else { return };
                self.note_ended(bee, &gone, view);
                for cell in self.shown_by(Place::In(colony, bee), &gone) {
                    self.vanish(cell, &gone, Place::Gone(colony, gone.stamp.unwrap_or_default().max(view)))
                }
            }
            Change::Fuse { from, into, view } => self.fuse(colony, from, into, view),
            Change::Split { bee, new, cells, view } => self.split(colony, (bee, new), &cells, view),
            Change::Restored { bees, staged, known } => {
                self.restored(colony, bees, known);
                for Restored { bee, epoch, rows, .. } in staged {
                    self.stage(bee, Copied { is_frozen: true, ..Copied::new(colony, epoch, None, rows) })
                }
            }
        }
    }

    /// Decides anew about the cells with contestants, whose stamps may be higher now. Returns the changes of what is shown
    /// since the last call.
    pub(super) fn settle(&mut self) -> Redo {
        for (cell, contestants) in std::mem::take(&mut self.contested) {
            let found = |one| {
                let place = self.contestant(one).filter(|place| self.has_rows(*place, &cell))?;
                Some((self.copied(place)?.stamp, place, one))
            };
            let mut contestants: Vec<_> = contestants.into_iter().filter_map(found).collect();
            contestants.sort_by_key(|(stamp, ..)| *stamp);
            let best = contestants.last().map(|(_, best, _)| *best);
            let is_beaten = |holder| best.is_some_and(|best| self.beats(best, holder));
            if self.shown.get(&cell).copied().is_none_or(is_beaten)
                && let Some((_, best, _)) = contestants.pop()
            {
                self.show(cell.clone(), best)
            }
            match contestants.is_empty() {
                true if best.is_none() => self.removed.insert(cell, ()),
                true => {}
                false => {
                    let known = self.contested.entry(cell).or_default();
                    let contestants = contestants.into_iter().map(|(.., one)| one);
                    contestants.for_each(|one| {
                        if !known.contains(&one) {
                            known.push(one)
                        }
                    })
                }
            }
        }
        self.forget_removed();
        std::mem::take(&mut self.out)
    }

    /// Returns the numbers of removed cells and of ended bees that are remembered.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> (usize, usize) {
        (self.shown.len(), self.ended.len())
    }

    fn copied(&self, place: Place) -> Option<&Copied> {
        match place {
            Place::In(colony, bee) => self.colonies.get(&colony)?.get(&bee),
            Place::Left(bee) => self.left.get(&bee).map(|left| &left.copied),
            Place::Gone(..) => None,
        }
    }

    /// Returns the place of a copy that contests a cell, also after its log has dropped it: if the holder merges into an old
    /// copy of the same bee, and that one is dropped, nobody else has the cell until the bee arrives somewhere.
    fn contestant(&self, (colony, bee): (ColonyId, BeeId)) -> Option<Place> {
        let place = Place::In(colony, bee);
        if self.copied(place).is_some_and(|copied| !copied.is_superseded) {
            return Some(place);
        }
        let left = self.left.get(&bee).filter(|left| left.copied.home == colony);
        left.map(|_| Place::Left(bee))
    }

    fn copied_at_mut(&mut self, place: Place) -> Option<&mut Copied> {
        match place {
            Place::In(colony, bee) => self.copied_mut(colony, bee),
            Place::Left(bee) => self.left.get_mut(&bee).map(|left| &mut left.copied),
            Place::Gone(..) => None,
        }
    }

    fn copied_mut(&mut self, colony: ColonyId, bee: BeeId) -> Option<&mut Copied> {
        self.colonies.get_mut(&colony)?.get_mut(&bee)
    }

    fn remove(&mut self, colony: ColonyId, bee: BeeId) -> Option<Copied> {
        self.colonies.get_mut(&colony)?.remove(&bee)
    }

    /// At this index of the registry, the bee is in the colony.
    fn is_here(&mut self, (colony, bee): (ColonyId, BeeId), view: u64) {
        if let Some(copied) = self.copied_mut(colony, bee).filter(|copied| !copied.is_frozen) {
            copied.stamp = copied.stamp.max(Some(view))
        }
    }

    /// Returns the highest epoch of a bee that is known from elsewhere than this log.
    fn epoch_elsewhere(&self, home: ColonyId, bee: BeeId) -> Option<Epoch> {
        let others = self.colonies.iter().filter(|(colony, _)| **colony != home);
        let others = others.filter_map(|(_, bees)| bees.get(&bee));
        let left = self.left.get(&bee).map(|left| &left.copied);
        others.chain(left).map(|copied| copied.epoch).max()
    }

    /// Checks whether another copy of a bee is newer, or the bee has ended.
    fn is_superseded(&self, home: ColonyId, bee: BeeId, epoch: Epoch) -> bool {
        self.ended.contains(&bee) || self.epoch_elsewhere(home, bee).is_some_and(|other| other > epoch)
    }

    /// Returns the newest copy of a bee, which has removed the cells that only the superseded copy `old` has.
    fn newest(&self, bee: BeeId, old: &Copied) -> Place {
        if let Some((colony, index)) = self.ended.get(&bee) {
            return Place::Gone(*colony, *index);
        }
        let in_logs = self.colonies.iter().filter_map(|(colony, bees)| Some((bees.get(&bee)?, *colony)));
        let in_logs = in_logs.map(|(copied, colony)| (copied.epoch, Place::In(colony, bee)));
        let left = self.left.get(&bee).map(|left| (left.copied.epoch, Place::Left(bee)));
        let newest =
            in_logs.chain(left).filter(|(epoch, _)| *epoch > old.epoch).max_by_key(|(epoch, _)| *epoch);
        newest.map_or(Place::Gone(old.home, old.stamp.unwrap_or_default()), |(_, place)| place)
    }

    fn note_ended(&mut self, bee: BeeId, gone: &Copied, view: u64) {
        // no other log has ever had a bee that has not moved
        if gone.epoch > Epoch(0) {
            self.ended.insert(bee, (gone.home, gone.stamp.unwrap_or_default().max(view)));
            if self.ended.len() > BEES_ENDED_REMEMBERED_MAX {
                self.ended.pop_oldest();
            }
        }
    }

    /// Returns the cells that are shown from a copy, with those that are remembered.
    fn shown_by(&self, place: Place, copied: &Copied) -> Vec<Cell> {
        let mut found = cells(&copied.rows);
        found.extend(copied.removed.iter().cloned());
        found.retain(|cell| self.shown.get(cell) == Some(&place));
        found
    }

    /// Shows a cell from a copy.
    fn show(&mut self, cell: Cell, to: Place) {
        let from = self.shown.get(&cell).copied().filter(|from| *from != to);
        let mut out = std::mem::take(&mut self.out);
        let rows = |place| self.copied(place).map(|copied| &copied.rows);
        change(&mut out, &cell, from.and_then(rows), rows(to));
        self.out = out;
        if let Some(from) = from.and_then(|from| self.copied_at_mut(from)) {
            from.removed.remove(&cell);
        }
        let mut contestants = self.contested.remove(&cell).unwrap_or_default();
        contestants.retain(|one| self.contestant(*one) != Some(to));
        if let Some(loser) =
            from.and_then(|from| self.loser(from, to, &cell)).filter(|one| !contestants.contains(one))
        {
            contestants.push(loser)
        }
        if !contestants.is_empty() {
            self.contested.insert(cell.clone(), contestants);
        }
        self.shown.insert(cell.clone(), to);
        if self.copied(to).is_some() && !self.has_rows(to, &cell) {
            // a newer copy has removed the cell
            self.remember(cell, to)
        }
    }

    /// Remembers a cell without rows, and the copy that has removed it.
    fn remember(&mut self, cell: Cell, by: Place) {
        if let Some(copied) = self.copied_at_mut(by) {
            copied.removed.insert(cell.clone());
        }
        self.removed.insert(cell, ())
    }

    /// Returns the copy `from`, which shows a cell no longer, if it may have the cell and is a copy of another bee than `to`. The registry
    /// may say that it is the newer one all the same.
    fn loser(&self, from: Place, to: Place, cell: &Cell) -> Option<(ColonyId, BeeId)> {
        let bee = from.bee().filter(|bee| to.bee() != Some(*bee))?;
        let by = (self.copied(from)?.home, bee);
        (self.contestant(by) == Some(from) && self.has_rows(from, cell)).then_some(by)
    }

    fn has_rows(&self, place: Place, cell: &Cell) -> bool {
        let (dict, key) = split(cell);
        self.copied(place).is_some_and(|copied| copied.rows.rows_of(dict, key).next().is_some())
    }

    /// Shows a cell no longer, and remembers it. `gone` is the copy from which it was shown. A contestant may be shown instead: see
    /// [`Claims::settle`].
    fn vanish(&mut self, cell: Cell, gone: &Copied, to: Place) {
        change(&mut self.out, &cell, Some(&gone.rows), None);
        self.shown.insert(cell.clone(), to);
        self.remember(cell, to)
    }

    /// Forgets cells that were removed, if there are too many.
    fn forget_removed(&mut self) {
        while self.removed.len() > CELLS_REMOVED_REMEMBERED_MAX {
            let Some(cell) = self.removed.pop_oldest() else { return };
            let Some(place) = self.shown.get(&cell).copied().filter(|_| !self.contested.contains_key(&cell))
            else {
                continue;
            };
            if !self.has_rows(place, &cell) {
                self.shown.remove(&cell);
                if let Some(copied) = self.copied_at_mut(place) {
                    copied.removed.remove(&cell);
                }
            }
        }
    }

    /// Checks whether a copy that is not superseded is newer than another one, which has the same cell.
    fn beats(&self, by: Place, holder: Place) -> bool {
        let (Some(copied), Some(bee)) = (self.copied(by), by.bee()) else { return false };
        let (home, stamp) = match holder {
            // a superseded copy does not challenge
            Place::In(_, held) | Place::Left(held) if held == bee => return true,
            Place::Gone(home, stamp) => (home, Some(stamp)),
            Place::In(..) | Place::Left(_) => match self.copied(holder) {
                Some(held) => (held.home, held.stamp),
                None => {
                    debug_assert!(false, "a cell is shown from a copy that does not exist: {holder:?}");
                    return true;
                }
            },
        };
        // In a log, one bee at most has the cell and is not about to leave. Another one has lost it before
        let is_later = copied.home == home && matches!(by, Place::In(..)) && !copied.is_frozen;
        is_later || (stamp.is_some() && copied.stamp > stamp)
    }

    /// A copy has a cell that may be shown from the copy of another bee.
    fn challenge(&mut self, cell: Cell, by: (ColonyId, BeeId)) {
        let Some(place) = self.contestant(by) else { return };
        match self.shown.get(&cell).copied() {
            Some(holder) if holder == place => {}
            Some(holder) if !self.beats(place, holder) => {
                let contestants = self.contested.entry(cell).or_default();
                if !contestants.contains(&by) {
                    contestants.push(by)
                }
            }
            _ => self.show(cell, place),
        }
    }

    fn rows(&mut self, colony: ColonyId, bee: BeeId, known: u64, redo: &Redo) {
        self.enter_if_unknown(colony, bee, None);
        if self.copied(Place::In(colony, bee)).is_some_and(|copied| copied.stamp.is_some()) {
            // otherwise the bee may be younger than what the log knew
            self.is_here((colony, bee), known)
        }
        let (place, mut challenged) = (Place::In(colony, bee), Vec::new());
        let Claims { colonies, shown, removed, out, .. } = self;
        let Some(copied) = colonies.get_mut(&colony).and_then(|bees| bees.get_mut(&bee)) else { return };
        let mut at = Vec::new();
        for op in redo.iter() {
            copied.rows.apply(op);
            at.clear();
            at.extend_from_slice(&op.dict.to_be_bytes());
            at.extend_from_slice(op.key);
            match shown.get(&*at) {
                Some(holder) if *holder == place => {
                    out.push(op);
                    if op.value.is_some() {
                        if !copied.removed.is_empty() {
                            copied.removed.remove(&*at);
                        }
                    } else if copied.rows.rows_of(op.dict, op.key).next().is_none() {
                        copied.removed.insert(at.as_slice().into());
                        removed.insert(at.as_slice().into(), ())
                    }
                }
                _ if copied.is_superseded => {}
                None if op.value.is_some() => {
                    out.push(op);
                    shown.insert(at.as_slice().into(), place);
                }
                None => {}
                Some(_) => challenged.push(Cell::from(at.as_slice())),
            }
        }
        challenged.into_iter().for_each(|cell| self.challenge(cell, (colony, bee)))
    }

    /// A log mentions a bee that is in the log already, but had no rows so far.
    fn enter_if_unknown(&mut self, colony: ColonyId, bee: BeeId, stamp: Option<u64>) {
        if self.copied(Place::In(colony, bee)).is_none() {
            self.enter(bee, Copied::new(colony, Epoch(0), stamp, EncodedCells::default()))
        }
    }

    /// A copy has appeared in a log, or has become newer.
    fn enter(&mut self, bee: BeeId, mut copied: Copied) {
        let (home, epoch) = (copied.home, copied.epoch);
        let is_left = self.left.get(&bee).is_some_and(|left| left.copied.epoch <= epoch);
        copied.is_superseded = self.is_superseded(home, bee, epoch);
        let is_superseded = copied.is_superseded;
        let entered = cells(&copied.rows);
        if let Some(old) = self.colonies.entry(home).or_default().insert(bee, copied) {
            self.replace(Place::In(home, bee), &old)
        }
        if is_superseded {
            return;
        }
        for (colony, bees) in &mut self.colonies {
            if let Some(old) = bees.get_mut(&bee).filter(|_| *colony != home) {
                old.is_superseded = true
            }
        }
        entered.into_iter().for_each(|cell| self.challenge(cell, (home, bee)));
        if is_left && let Some(Left { copied, .. }) = self.left.remove(&bee) {
            // the newer copy does not have these cells any more
            for cell in self.shown_by(Place::Left(bee), &copied) {
                self.vanish(cell, &copied, Place::In(home, bee))
            }
        }
    }

    /// A copy is in the place of an older one of the same bee.
    fn replace(&mut self, place: Place, old: &Copied) {
        for cell in self.shown_by(place, old) {
            let mut out = std::mem::take(&mut self.out);
            change(&mut out, &cell, Some(&old.rows), self.copied(place).map(|new| &new.rows));
            self.out = out;
            if !self.has_rows(place, &cell) {
                self.remember(cell, place)
            }
        }
    }

    /// A log has dropped a copy, which stays shown until a newer one arrives.
    ///
    /// Nothing is newer than the cells of a superseded copy but their removal by the newest copy, or a bee that has split from it.
    /// In the second case, a cell vanishes until the log with the new bee arrives. Hives do not split bees yet.
    fn leave(&mut self, bee: BeeId, copied: Copied) {
        for cell in self.shown_by(Place::In(copied.home, bee), &copied) {
            match copied.is_superseded {
                true => {
                    let newest = self.newest(bee, &copied);
                    self.vanish(cell, &copied, newest)
                }
                false => drop(self.shown.insert(cell, Place::Left(bee))),
            }
        }
        if !copied.is_superseded {
            self.left.insert(bee, Left { copied, unknown_since: None });
        }
    }

    /// A log has the copy of a bee that is about to arrive. Its old log contains it no longer, or not for long, or has not been told to
    /// this hive. What that log has said about the bee is not newer than this copy, unless the bee has stayed there. So it counts as a
    /// copy that has left its log, with the epoch that it will have.
    fn stage(&mut self, bee: BeeId, copied: Copied) {
        let by = (copied.home, bee);
        let in_logs = self.colonies.values().filter_map(|bees| bees.get(&bee));
        let known =
            in_logs.chain(self.left.get(&bee).map(|left| &left.copied)).map(|known| known.epoch).max();
        if self.ended.contains(&bee) || known.is_some_and(|known| known >= copied.epoch) {
            return;
        }
        for old in self.colonies.values_mut().filter_map(|bees| bees.get_mut(&bee)) {
            old.is_superseded = true
        }

        let (entered, old) = (cells(&copied.rows), self.left.remove(&bee));
        let unknown_since = old.as_ref().and_then(|old| old.unknown_since);
        self.left.insert(bee, Left { copied, unknown_since });
        if let Some(old) = old {
            self.replace(Place::Left(bee), &old.copied)
        }
        entered.into_iter().for_each(|cell| self.challenge(cell, by))
    }

    fn fuse(&mut self, colony: ColonyId, from: BeeId, into: BeeId, view: u64) {
        let Some(gone) = self.remove(colony, from) else { return };
        self.enter_if_unknown(colony, into, Some(view));
        self.note_ended(from, &gone, view);
        let shown = self.shown_by(Place::In(colony, from), &gone);
        self.is_here((colony, into), view);
        // A contestant without rows has nothing to show. The next call of `settle` removes it
        for (dict, key) in gone.rows.cells() {
            let contestants = self.contested.get_mut(&cell(dict, key)).into_iter().flatten();
            contestants.filter(|one| **one == (colony, from)).for_each(|one| one.1 = into)
        }
        let Some(target) = self.copied_mut(colony, into) else { return };
        target.rows.absorb(gone.rows);
        target.removed.extend(gone.removed);
        for cell in shown {
            self.shown.insert(cell, Place::In(colony, into));
        }
    }

    fn split(&mut self, colony: ColonyId, (bee, new): (BeeId, BeeId), given: &[(u32, Vec<u8>)], view: u64) {
        let is_superseded = self.is_superseded(colony, new, Epoch(0));
        let Some(copied) = self.copied_mut(colony, bee) else { return };
        let mut rows = EncodedCells::default();
        given.iter().for_each(|(dict, key)| rows.add_rows(&copied.rows.take(*dict, key)));
        let (with_rows, new_copy) = (cells(&rows), Copied::new(colony, Epoch(0), Some(view), rows));
        self.colonies.entry(colony).or_default().insert(new, Copied { is_superseded, ..new_copy });
        for (dict, key) in given {
            let cell = cell(*dict, key);
            if self.shown.get(&cell) == Some(&Place::In(colony, bee)) {
                self.shown.insert(cell.clone(), Place::In(colony, new));
                let is_removed =
                    self.copied_mut(colony, bee).is_some_and(|copied| copied.removed.remove(&cell));
                if let Some(copied) = self.copied_mut(colony, new).filter(|_| is_removed) {
                    copied.removed.insert(cell.clone());
                }
            }
            let contestants = self.contested.get_mut(&cell).into_iter().flatten();
            contestants.filter(|one| **one == (colony, bee)).for_each(|one| one.1 = new)
        }
        if !is_superseded {
            with_rows.into_iter().for_each(|cell| self.challenge(cell, (colony, new)))
        }
    }

    fn restored(&mut self, colony: ColonyId, bees: Vec<Restored>, known: u64) {
        let mut known_before = BTreeMap::new();
        for (bee, copied) in self.colonies.remove(&colony).unwrap_or_default() {
            known_before.insert(bee, (copied.epoch, copied.stamp, copied.is_frozen));
            self.leave(bee, copied)
        }
        for Restored { bee, epoch, is_frozen, rows } in bees {
            let (_, before, was_frozen) =
                known_before.remove(&bee).filter(|(before, ..)| *before == epoch).unwrap_or_default();
            let stamp = match is_frozen {
                // The log may know of the decision that the bee has left. Before, the bee may not have had all its cells
                true => before.filter(|_| was_frozen),
                // a bee that has never moved may be younger than what the log knows
                false => {
                    (epoch > Epoch(0) || before.is_some()).then_some(known.max(before.unwrap_or_default()))
                }
            };
            self.enter(bee, Copied { is_frozen, ..Copied::new(colony, epoch, stamp, rows) })
        }
    }
}

impl Copied {
    fn new(home: ColonyId, epoch: Epoch, stamp: Option<u64>, rows: EncodedCells) -> Copied {
        Copied { home, epoch, stamp, is_frozen: false, is_superseded: false, rows, removed: BTreeSet::new() }
    }
}
