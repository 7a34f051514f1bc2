//! Decides by the registry which copies of bees are newer, where the logs do not say it.

use super::{Claims, Copied, Left, Place};
use crate::time::Time;
use beehive_protocol::{BeeId, ColonyId, Epoch};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The answers of the hive's replica of the registry about some bees.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// The index of the replica.
    pub(crate) index: u64,
    /// The colony and the epoch of each bee. `None` if the registry does not contain the bee.
    pub(crate) places: BTreeMap<BeeId, Option<(ColonyId, Epoch)>>,
}

impl Claims {
    /// Checks whether a copy is left whose new copy has not arrived, or it is not known which of two copies is newer.
    pub(in crate::view::followed) fn waits(&self) -> bool {
        !self.left.is_empty() || !self.contested.is_empty()
    }

    /// Returns the bees about which the registry has to be asked.
    pub(in crate::view::followed) fn questions(&self) -> BTreeSet<BeeId> {
        let mut bees: BTreeSet<BeeId> = self.left.keys().copied().collect();
        for (cell, contestants) in &self.contested {
            bees.extend(contestants.iter().map(|(_, bee)| *bee));
            bees.extend(self.shown.get(cell).and_then(|place| place.bee()))
        }
        bees
    }

    /// Decides by the registry what the logs have not decided.
    ///
    /// An answer says that a copy is the newest one of its bee at an index. That counts only if the log of the copy has named no
    /// higher index: otherwise the bee may not have had all its cells yet.
    ///
    /// A copy that has left its log, and whose bee the registry has not known for the time `patience`, is forgotten: the bee has
    /// ended, and entries are missing that said how. If it has merged into another one, and the log with that one is behind for
    /// longer than that, although the registry is not, the bee's cells vanish until that log arrives.
    pub(in crate::view::followed) fn decide(&mut self, answers: &Answers, now: Time, patience: Duration) {
        let (mut there, mut won) = (Vec::new(), Vec::new());
        for (cell, contestants) in &self.contested {
            let contestants = contestants.iter().filter_map(|one| self.contestant(*one));
            let confirmed: Vec<Place> = contestants.filter(|one| self.is_there(*one, answers)).collect();
            if let Some(holder) = self.shown.get(cell).copied() {
                if self.is_there(holder, answers) {
                    there.push(holder)
                } else if self.has_gone(holder, answers) {
                    let next = confirmed.iter().find(|one| self.has_rows(**one, cell));
                    won.extend(next.map(|next| (cell.clone(), *next)))
                }
            }
            there.extend(confirmed)
        }
        for place in there {
            if let Some(copied) = self.copied_at_mut(place) {
                copied.stamp = copied.stamp.max(Some(answers.index))
            }
        }
        won.into_iter().for_each(|(cell, place)| self.show(cell, place));
        self.forget_left(answers, now, patience)
    }

    fn forget_left(&mut self, answers: &Answers, now: Time, patience: Duration) {
        let mut over = Vec::new();
        for (bee, left) in &mut self.left {
            match answers.places.get(bee) {
                None => {}
                Some(Some(_)) => left.unknown_since = None,
                Some(None) => {
                    let since = *left.unknown_since.get_or_insert(now);
                    if now.since(since) >= patience {
                        over.push(*bee)
                    }
                }
            }
        }
        for bee in over {
            let Some(Left { copied, .. }) = self.left.remove(&bee) else { continue };
            for cell in self.shown_by(Place::Left(bee), &copied) {
                self.vanish(cell, &copied, Place::Gone(copied.home, copied.stamp.unwrap_or_default()))
            }
        }
    }

    /// Returns a copy and what the registry says about its bee, if the answer is not older than the copy's log.
    fn answer(&self, place: Place, answers: &Answers) -> Option<(&Copied, Option<(ColonyId, Epoch)>)> {
        let (copied, bee) = (self.copied(place)?, place.bee()?);
        let is_recent = self.known.get(&copied.home).is_none_or(|known| answers.index >= *known);
        let answer = answers.places.get(&bee).filter(|_| is_recent)?;
        Some((copied, *answer))
    }

    /// Checks whether the registry says that a copy is the newest one of its bee.
    fn is_there(&self, place: Place, answers: &Answers) -> bool {
        self.answer(place, answers).is_some_and(|(copied, at)| at == Some((copied.home, copied.epoch)))
    }

    /// Checks whether the registry says that the bee of a frozen copy has moved or ended, and it is not known when it was there.
    /// Its cells belong to any bee that is known to have them at the same index. If the copy is not frozen, the bee may be younger than
    /// the answer.
    fn has_gone(&self, place: Place, answers: &Answers) -> bool {
        let answer =
            self.answer(place, answers).filter(|(copied, _)| copied.is_frozen && copied.stamp.is_none());
        answer.is_some_and(|(copied, at)| at != Some((copied.home, copied.epoch)))
    }
}
