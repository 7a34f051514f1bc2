//! The registry: which bee owns which cell. Asynchronous and batched, so that a replicated one can take its place.
//!
//! The state machine is plain data with one function, [`Ownership::apply`]; [`LocalRegistry`] applies to it at once, a
//! replicated registry applies what its log commits. Every proposal is idempotent: a late or repeated one does nothing.

use crate::cell::{BeeId, CellId, CellSet};
use crate::hash::HashMap;
use crate::hive::bee::bee_table;
use crate::seams::BoxFuture;
use hashbrown::HashTable;
use parking_lot::Mutex;

/// Something to be decided.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Proposal {
    /// One owner for all of these cells. Those without one go to the owner of the others, or to a new bee; several
    /// owners are aimed at one of them, the root.
    Claim {
        /// The cells of one message.
        cells: CellSet,
    },
    /// The cells of `from` are now with `into`; `from` is no more.
    Fused {
        /// The bee that was absorbed.
        from: BeeId,
        /// The bee that has its cells now.
        into: BeeId,
    },
    /// The bee has given its cells back as a whole.
    Release {
        /// The bee, which is no more.
        bee: BeeId,
    },
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// Of a claim.
    Owner {
        /// Who owns the cells, or will once the others have merged into it.
        root: BeeId,
        /// The bee is new: whoever asked hosts it.
        created: bool,
        /// Owners that must merge into the root first; each aims at it, perhaps by way of others.
        merging: Vec<BeeId>,
        /// State of the registry that this was decided on.
        index: u64,
    },
    /// Of anything else.
    Done {
        /// State of the registry that this was decided on.
        index: u64,
    },
}

/// No decision can be had now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailable;

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the registry cannot decide: no majority of its members can be reached")
    }
}
impl std::error::Error for Unavailable {}

/// Decides who owns what.
pub trait Registry: Send + Sync + 'static {
    /// Decides many things at once, in order. The answers carry the registry's index.
    fn propose(&self, proposals: Vec<Proposal>) -> BoxFuture<Result<Vec<Decision>, Unavailable>>;
    /// Index of the last decision that this hive knows.
    fn index(&self) -> u64;
}

/// Who owns what, as a state machine.
#[derive(Default)]
pub struct Ownership {
    index: u64,
    next_bee: u64,
    cells: HashMap<CellId, BeeId>,
    /// The first cell of every bee, by bee: `cells` says whose it is, so there is a word for each and no more.
    firsts: HashTable<CellId>,
    /// The others of those that have several.
    more: HashMap<BeeId, Vec<CellId>>,
    /// Bees on their way into another. Few, so a change at their target is looked for in all of them.
    aims: HashMap<BeeId, BeeId>,
}

impl Ownership {
    /// Decides one thing.
    pub fn apply(&mut self, proposal: &Proposal) -> Decision {
        self.index += 1;
        match proposal {
            Proposal::Claim { cells } => self.claim(cells),
            Proposal::Fused { from, into } => {
                if from != into
                    && self.first_of(*into).is_some()
                    && let Some(gone) = self.forget(*from)
                {
                    for cell in &gone {
                        self.cells.insert(*cell, *into);
                    }
                    self.more.entry(*into).or_default().extend(gone);
                    self.aims.remove(from);
                    for aim in self.aims.values_mut().filter(|aim| *aim == from) {
                        *aim = *into
                    }
                    self.aims.retain(|bee, aim| bee != aim);
                }
                Decision::Done { index: self.index }
            }
            Proposal::Release { bee } => {
                if let Some(gone) = self.forget(*bee) {
                    for cell in gone {
                        self.cells.remove(&cell);
                    }
                    self.aims.remove(bee);
                    self.aims.retain(|_, aim| aim != bee);
                }
                Decision::Done { index: self.index }
            }
        }
    }

    /// The first cell of a bee, if there is such a bee.
    fn first_of(&self, bee: BeeId) -> Option<CellId> {
        self.firsts.find(bee_table::hash(bee), |cell| self.cells.get(cell) == Some(&bee)).copied()
    }

    /// Gives a bee its first cell.
    fn begin(&mut self, bee: BeeId, first: CellId) {
        self.cells.insert(first, bee);
        let cells = &self.cells;
        let hash_of = |cell: &CellId| cells.get(cell).map_or(0, |bee| bee_table::hash(*bee));
        self.firsts.insert_unique(bee_table::hash(bee), first, hash_of);
    }

    /// Forgets a bee; returns its cells, which still say that they are its own.
    fn forget(&mut self, bee: BeeId) -> Option<Vec<CellId>> {
        let (first, _) = self
            .firsts
            .find_entry(bee_table::hash(bee), |cell| self.cells.get(cell) == Some(&bee))
            .ok()?
            .remove();
        let mut cells = self.more.remove(&bee).unwrap_or_default();
        cells.insert(0, first);
        Some(cells)
    }

    fn root(&self, bee: BeeId) -> BeeId {
        let mut at = bee;
        // aims cannot form a cycle: only roots are given one
        while let Some(aim) = self.aims.get(&at) {
            at = *aim
        }
        at
    }

    fn claim(&mut self, cells: &[CellId]) -> Decision {
        let index = self.index;
        // of nothing there is no owner
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
        for cell in cells {
            if !self.cells.contains_key(cell) {
                self.cells.insert(*cell, root);
                self.more.entry(root).or_default().push(*cell);
            }
        }
        owners.retain(|bee| *bee != root);
        Decision::Owner { root, created, merging: owners, index }
    }

    /// The state in which these bees own these cells.
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

    /// Number of bees.
    pub fn bees(&self) -> usize {
        self.firsts.len()
    }

    /// Number of owned cells.
    pub fn cells(&self) -> usize {
        self.cells.len()
    }
}

/// The registry of a hive that is alone.
#[derive(Default)]
pub struct LocalRegistry(Mutex<Ownership>);

impl LocalRegistry {
    /// Goes on from `ownership`.
    pub fn restored(ownership: Ownership) -> Self {
        LocalRegistry(Mutex::new(ownership))
    }

    /// Number of bees and of owned cells.
    pub fn size(&self) -> (usize, usize) {
        let ownership = self.0.lock();
        (ownership.bees(), ownership.cells())
    }
}

impl Registry for LocalRegistry {
    fn propose(&self, proposals: Vec<Proposal>) -> BoxFuture<Result<Vec<Decision>, Unavailable>> {
        let mut ownership = self.0.lock();
        let decisions = proposals.iter().map(|p| ownership.apply(p)).collect();
        Box::pin(std::future::ready(Ok(decisions)))
    }

    fn index(&self) -> u64 {
        self.0.lock().index
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
        // asked again before the merge is done: the same answer
        assert_eq!(claim(&mut o, &[1, 2]), (b, false, vec![a]));
        // by way of the one that is on its way
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
