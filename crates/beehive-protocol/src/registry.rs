//! The registry's state machine: which bee owns which cell.
//!
//! [`Ownership::apply`] decides one proposal. A local registry applies proposals immediately. A replicated registry
//! applies those committed by its log. Every proposal is idempotent: a late or repeated proposal changes nothing.

use crate::hash::HashMap;
use crate::{BeeId, CellId, CellSet};
use hashbrown::HashTable;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

/// A question or a statement to the registry. In Raft's terms, it is a client command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Proposal {
    /// Asks for one owner of all these cells.
    ///
    /// Cells without an owner go to the owner of the other cells or, if there is none, to a new bee. If the cells have
    /// several owners, one of them becomes the root, and the others are aimed at it, which means that they must merge
    /// into it.
    Claim {
        /// One message's cells.
        cells: CellSet,
    },
    /// States that two bees merged: the cells of `from` now belong to `into`.
    Fused {
        /// The bee that ceased to exist.
        from: BeeId,
        /// The bee that took over the cells.
        into: BeeId,
    },
    /// States that a bee gave back all its cells.
    Release {
        /// The bee that ceased to exist.
        bee: BeeId,
    },
}

/// The registry's answer to a proposal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Decision {
    /// Answer to [`Proposal::Claim`].
    Owner {
        /// The bee that owns the cells, or that will own them once the other owners have merged into it.
        root: BeeId,
        /// Whether the root is new. If so, the hive that proposed the claim hosts it.
        created: bool,
        /// Owners that must first merge into the root. Each of them is aimed at the root, either directly or through
        /// other bees.
        merging: Vec<BeeId>,
        /// Index of the proposal in the registry's log.
        index: u64,
    },
    /// Answer to any other proposal.
    Done {
        /// Index of the proposal in the registry's log.
        index: u64,
    },
}

/// The registry's state: the owners of cells, and the bees that have to merge.
///
/// Its encoding is canonical: equal states have equal bytes on every hive. The decoder checks the state's invariants,
/// and refuses bytes that violate them.
#[derive(Clone, Debug, Default)]
pub struct Ownership {
    /// Number of proposals applied.
    index: u64,
    /// The highest bee id assigned so far.
    next_bee: u64,
    /// The owner of each cell.
    cells: HashMap<CellId, BeeId>,
    /// The first cell of every bee, hashed by bee. The bee itself is looked up in `cells`, so each bee takes one word.
    firsts: HashTable<CellId>,
    /// The other cells of the bees that have more than one.
    more: HashMap<BeeId, Vec<CellId>>,
    /// Bees that must merge into another bee, each with its target. There are only a few at a time, so changing a
    /// target scans all of them.
    aims: HashMap<BeeId, BeeId>,
}

impl Ownership {
    /// Decides a proposal.
    pub fn apply(&mut self, proposal: &Proposal) -> Decision {
        self.index += 1;
        match proposal {
            Proposal::Claim { cells } => return self.claim(cells),
            Proposal::Fused { from, into } => self.fused(*from, *into),
            Proposal::Release { bee } => self.release(*bee),
        }
        Decision::Done { index: self.index }
    }

    fn fused(&mut self, from: BeeId, into: BeeId) {
        if from == into || self.first_of(into).is_none() {
            return;
        }
        // If `into` was aimed at `from`, the two are now one bee, which takes over the aim of `from`.
        let into_led_to_from = self.path(into).any(|bee| bee == from);
        let Some(gone) = self.forget(from) else { return };

        for cell in &gone {
            let before = self.cells.insert(*cell, into);
            debug_assert_eq!(before, Some(from), "{cell:?} was listed with a bee that does not own it");
        }
        self.more.entry(into).or_default().extend(gone);

        let onward = self.aims.remove(&from);
        if into_led_to_from {
            self.aims.remove(&into);
            self.aims.extend(onward.map(|onward| (into, onward)));
        }
        self.aims.values_mut().filter(|aim| **aim == from).for_each(|aim| *aim = into);
        debug_assert!(self.is_acyclic(), "aims form a cycle: {:?}", self.aims);
    }

    fn release(&mut self, bee: BeeId) {
        let Some(gone) = self.forget(bee) else { return };
        for cell in gone {
            self.cells.remove(&cell);
        }
        self.aims.remove(&bee);
        self.aims.retain(|_, aim| *aim != bee);
    }

    fn claim(&mut self, cells: &[CellId]) -> Decision {
        let index = self.index;
        // An empty set of cells has no owner.
        let Some(first) = cells.first() else { return Decision::Done { index } };

        let mut owners: Vec<BeeId> = Vec::new();
        for cell in cells {
            if let Some(bee) = self.cells.get(cell)
                && !owners.contains(bee)
            {
                owners.push(*bee)
            }
        }

        let mut roots: Vec<BeeId> = Vec::new();
        for owner in &owners {
            let root = self.root(*owner);
            if !roots.contains(&root) {
                roots.push(root)
            }
        }

        // The root with the most cells wins. Of equally large roots, the one with the lowest id wins.
        let size = |bee: &BeeId| self.more.get(bee).map_or(0, Vec::len);
        let winner = roots.iter().copied().max_by_key(|bee| (size(bee), std::cmp::Reverse(*bee)));
        let (root, created) = match winner {
            Some(root) => (root, false),
            None => {
                self.next_bee += 1;
                let bee = BeeId(self.next_bee);
                self.begin(bee, *first);
                (bee, true)
            }
        };

        for other in roots.iter().filter(|bee| **bee != root) {
            self.aims.insert(*other, root);
        }
        debug_assert!(self.is_acyclic(), "aims form a cycle: {:?}", self.aims);
        for cell in cells {
            if !self.cells.contains_key(cell) {
                self.cells.insert(*cell, root);
                self.more.entry(root).or_default().push(*cell);
            }
        }

        owners.retain(|bee| *bee != root);
        Decision::Owner { root, created, merging: owners, index }
    }

    /// Returns the first cell of a bee, if the bee exists.
    fn first_of(&self, bee: BeeId) -> Option<CellId> {
        self.firsts.find(bee.table_hash(), |cell| self.cells.get(cell) == Some(&bee)).copied()
    }

    /// Adds a bee with its first cell.
    fn begin(&mut self, bee: BeeId, first: CellId) {
        let before = self.cells.insert(first, bee);
        debug_assert_eq!(before, None, "{first:?} got a second owner");

        let cells = &self.cells;
        let hash_of = |cell: &CellId| cells.get(cell).map_or(0, |bee| bee.table_hash());
        self.firsts.insert_unique(bee.table_hash(), first, hash_of);
    }

    /// Removes a bee and returns its cells. They remain in `self.cells` with this bee as their owner.
    fn forget(&mut self, bee: BeeId) -> Option<Vec<CellId>> {
        let is_first = |cell: &CellId| self.cells.get(cell) == Some(&bee);
        let (first, _) = self.firsts.find_entry(bee.table_hash(), is_first).ok()?.remove();

        let mut cells = self.more.remove(&bee).unwrap_or_default();
        cells.insert(0, first);
        Some(cells)
    }

    /// Returns the bees into which a bee will merge one after the other, beginning with the bee itself. The path ends even
    /// if aims form a cycle.
    fn path(&self, bee: BeeId) -> impl Iterator<Item = BeeId> {
        std::iter::successors(Some(bee), |at| self.aims.get(at).copied()).take(1 + self.aims.len())
    }

    /// Returns the bee into which a bee will finally merge.
    fn root(&self, bee: BeeId) -> BeeId {
        let root = self.path(bee).last().unwrap_or(bee);
        // This holds because only roots get an aim, and the aim is always another root.
        debug_assert!(!self.aims.contains_key(&root), "the aims of {bee} form a cycle: {:?}", self.aims);
        root
    }

    fn is_acyclic(&self) -> bool {
        self.aims.keys().all(|bee| self.path(*bee).last().is_some_and(|end| !self.aims.contains_key(&end)))
    }

    /// Returns a state in which the given bees own the given cells. Ids up to `next_bee` are not assigned again.
    pub fn restored(bees: impl IntoIterator<Item = (BeeId, Vec<CellId>)>, next_bee: u64) -> Self {
        let mut ownership = Ownership { next_bee, ..Ownership::default() };
        for (bee, cells) in bees {
            ownership.next_bee = ownership.next_bee.max(bee.0);
            let Some((first, more)) = cells.split_first() else { continue };
            ownership.begin(bee, *first);

            ownership.cells.extend(more.iter().map(|cell| (*cell, bee)));
            if !more.is_empty() {
                ownership.more.insert(bee, more.to_vec());
            }
        }
        ownership
    }

    /// Returns the number of applied proposals, which is the index of the last one in the registry's log.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Returns the number of bees.
    pub fn bees(&self) -> usize {
        self.firsts.len()
    }

    /// Returns the number of owned cells.
    pub fn cells(&self) -> usize {
        self.cells.len()
    }

    /// Returns the bee that owns a cell.
    pub fn owner(&self, cell: CellId) -> Option<BeeId> {
        self.cells.get(&cell).copied()
    }
}

/// The canonical form of [`Ownership`], which is used to encode and compare it.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Image {
    index: u64,
    next_bee: u64,
    /// The cells of each bee, beginning with its first cell.
    bees: BTreeMap<BeeId, Vec<CellId>>,
    aims: BTreeMap<BeeId, BeeId>,
}

impl From<&Ownership> for Image {
    fn from(ownership: &Ownership) -> Image {
        let bee = |first: &CellId| {
            let bee = *ownership.cells.get(first)?;
            let more = ownership.more.get(&bee).into_iter().flatten();
            Some((bee, std::iter::once(first).chain(more).copied().collect()))
        };
        let Ownership { index, next_bee, firsts, aims, .. } = ownership;
        let (bees, aims) =
            (firsts.iter().filter_map(bee).collect(), aims.iter().map(|(a, b)| (*a, *b)).collect());
        Image { index: *index, next_bee: *next_bee, bees, aims }
    }
}

impl TryFrom<Image> for Ownership {
    type Error = &'static str;

    fn try_from(image: Image) -> Result<Ownership, &'static str> {
        let mut owned = BTreeSet::new();
        if !image.bees.values().flatten().all(|cell| owned.insert(*cell)) {
            return Err("a cell has two owners");
        }
        if image.bees.iter().any(|(bee, cells)| cells.is_empty() || bee.0 > image.next_bee) {
            return Err("a bee has no cell, or an id that was not assigned");
        }
        if image.aims.iter().flat_map(|(bee, aim)| [bee, aim]).any(|bee| !image.bees.contains_key(bee)) {
            return Err("a bee has to merge into another one, but one of the two does not exist");
        }

        let mut ownership = Ownership::restored(image.bees, image.next_bee);
        (ownership.index, ownership.aims) = (image.index, image.aims.into_iter().collect());
        if ownership.is_acyclic() { Ok(ownership) } else { Err("aims form a cycle") }
    }
}

impl PartialEq for Ownership {
    fn eq(&self, other: &Ownership) -> bool {
        Image::from(self) == Image::from(other)
    }
}
impl Eq for Ownership {}

impl Serialize for Ownership {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Image::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Ownership {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ownership, D::Error> {
        Ownership::try_from(Image::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn claim(o: &mut Ownership, cells: &[u64]) -> (BeeId, bool, Vec<BeeId>) {
        match o.apply(&Proposal::Claim { cells: cells.iter().map(|c| CellId(*c)).collect() }) {
            Decision::Owner { root, created, merging, .. } => (root, created, merging),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_cell_has_one_owner() {
        let mut o = Ownership::default();
        let (a, created, _) = claim(&mut o, &[1]);
        assert!(created);
        assert_eq!(claim(&mut o, &[1, 2]), (a, false, vec![]));
        assert_eq!(claim(&mut o, &[2]), (a, false, vec![]));
        assert_eq!((o.bees(), o.cells()), (1, 2));
    }

    #[test]
    fn several_owners_are_united_at_the_largest() {
        let mut o = Ownership::default();
        let (a, ..) = claim(&mut o, &[1]);
        let (b, ..) = claim(&mut o, &[2, 3]);
        let (c, ..) = claim(&mut o, &[4]);
        assert_eq!(claim(&mut o, &[1, 2]), (b, false, vec![a]));
        // The same claim gets the same answer until the merge.
        assert_eq!(claim(&mut o, &[1, 2]), (b, false, vec![a]));
        // A cell whose owner is about to merge leads to the same root.
        let (root, _, merging) = claim(&mut o, &[1, 4]);
        assert_eq!(root, b);
        assert_eq!(HashSet::from_iter(merging), HashSet::from([a, c]));
        o.apply(&Proposal::Fused { from: a, into: b });
        o.apply(&Proposal::Fused { from: a, into: b });
        o.apply(&Proposal::Fused { from: c, into: b });
        assert_eq!(claim(&mut o, &[1, 2, 3, 4]), (b, false, vec![]));
        assert_eq!((o.bees(), o.cells()), (1, 4));
    }

    #[test]
    fn a_released_cell_gets_a_new_bee() {
        let mut o = Ownership::default();
        let (a, ..) = claim(&mut o, &[1]);
        o.apply(&Proposal::Release { bee: a });
        o.apply(&Proposal::Release { bee: a });
        let (b, created, _) = claim(&mut o, &[1]);
        assert!(created && b != a);
    }

    /// No hive does so, but a bee may absorb the bee at which it was aimed. Even then, aims must not form a cycle.
    #[test]
    fn a_bee_that_absorbs_its_own_target_is_a_root() {
        let mut o = Ownership::default();
        let (a, ..) = claim(&mut o, &[1]);
        let (b, ..) = claim(&mut o, &[2, 3]);
        let (c, ..) = claim(&mut o, &[4, 5, 6]);
        claim(&mut o, &[1, 2]); // a -> b
        claim(&mut o, &[2, 4]); // b -> c
        o.apply(&Proposal::Fused { from: c, into: a });
        assert_eq!(claim(&mut o, &[2]), (a, false, vec![b]));
    }

    #[test]
    fn aims_at_a_bee_that_fused_go_on_to_where_it_went() {
        let mut o = Ownership::default();
        let (a, ..) = claim(&mut o, &[1]);
        let (b, ..) = claim(&mut o, &[2, 3]);
        let (c, ..) = claim(&mut o, &[4, 5, 6]);
        claim(&mut o, &[1, 2]); // a -> b
        claim(&mut o, &[2, 4]); // b -> c
        o.apply(&Proposal::Fused { from: b, into: c });
        assert_eq!(claim(&mut o, &[1]), (c, false, vec![a]));
    }
}
