//! The aims of bees: the colonies to which they have to move, and the bees into which they have to merge.

use crate::{BeeId, ColonyId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The destination of a bee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Aim {
    /// It has to move to this colony.
    Colony(ColonyId),
    /// It has to move to the colony of this bee, and to merge into the bee.
    Bee(BeeId),
}

/// The aims of all bees that have one. There are never cycles, because a bee is aimed only at a root.
#[derive(Clone, Debug, Default)]
pub(super) struct Aims {
    of: BTreeMap<BeeId, Aim>,
    /// The bees that are aimed at a bee, each preceded by its target.
    at: BTreeSet<(BeeId, BeeId)>,
}

impl Aims {
    pub(super) fn get(&self, bee: BeeId) -> Option<Aim> {
        self.of.get(&bee).copied()
    }

    fn target(&self, bee: BeeId) -> Option<BeeId> {
        match self.get(bee)? {
            Aim::Bee(target) => Some(target),
            Aim::Colony(_) => None,
        }
    }

    pub(super) fn set(&mut self, bee: BeeId, aim: Option<Aim>) {
        if let Some(Aim::Bee(before)) = self.of.remove(&bee) {
            self.at.remove(&(before, bee));
        }
        if let Some(Aim::Bee(target)) = aim {
            debug_assert!(
                self.path(target).all(|at| at != bee),
                "the aims of {bee} form a cycle: {:?}",
                self.of
            );
            self.at.insert((target, bee));
        }
        self.of.extend(aim.map(|aim| (bee, aim)))
    }

    /// Returns the bees that have an aim, in ascending order.
    pub(super) fn all(&self) -> impl Iterator<Item = BeeId> {
        self.of.keys().copied()
    }

    /// Returns the bees that are aimed at a bee.
    pub(super) fn at(&self, bee: BeeId) -> impl Iterator<Item = BeeId> {
        self.at.range((bee, BeeId(0))..=(bee, BeeId(u64::MAX))).map(|(_, from)| *from)
    }

    /// Returns the bees into which a bee will merge one after the other, beginning with the bee itself. The path ends even
    /// if aims form a cycle.
    pub(super) fn path(&self, bee: BeeId) -> impl Iterator<Item = BeeId> {
        std::iter::successors(Some(bee), |at| self.target(*at)).take(1 + self.of.len())
    }

    /// Returns the bee into which a bee will ultimately merge.
    pub(super) fn root(&self, bee: BeeId) -> BeeId {
        if self.of.is_empty() {
            return bee;
        }
        let root = self.path(bee).last().unwrap_or(bee);
        debug_assert_eq!(self.target(root), None, "the aims of {bee} form a cycle: {:?}", self.of);
        root
    }

    /// Removes a bee: it has no aim, and no bee is aimed at it.
    pub(super) fn end(&mut self, bee: BeeId) {
        self.set(bee, None);
        let at: Vec<BeeId> = self.at(bee).collect();
        at.into_iter().for_each(|from| self.set(from, None))
    }

    /// Removes the aims at a colony.
    pub(super) fn end_colony(&mut self, colony: ColonyId) {
        self.of.retain(|_, aim| *aim != Aim::Colony(colony))
    }

    /// Replaces `from` with `into`, which has taken over its cells.
    pub(super) fn unite(&mut self, from: BeeId, into: BeeId) {
        // If `into` was aimed at `from`, directly or indirectly, the two are now one bee, which has the aim that `from`
        // had.
        if self.path(into).any(|bee| bee == from) {
            let onward = self.target(from).map(Aim::Bee);
            self.set(from, None);
            self.set(into, onward)
        }
        self.set(from, None);
        let at: Vec<BeeId> = self.at(from).collect();
        at.into_iter().for_each(|bee| self.set(bee, Some(Aim::Bee(into))))
    }

    /// Checks that the tables are consistent with each other.
    pub(super) fn agree(&self) -> bool {
        let targets = self.of.keys().filter_map(|bee| Some((self.target(*bee)?, *bee)));
        targets.collect::<BTreeSet<_>>() == self.at
    }
}
