//! Applies ten thousand random proposals to the state machine of the registry. Many of them are late or repeated.

use beehive_protocol::codec::{decode_many, encode_many, split_integer};
use beehive_protocol::{BeeId, CellId, CellSet, Decision, Ownership, Proposal};
use std::collections::{HashMap, HashSet};

const PROPOSALS: usize = 10_000;
const CELLS: u64 = 200;

/// A generator of random numbers that needs no crate: xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound.max(1)
    }
}

/// The naive model: the owner of each cell. The registry decides which bee wins a claim, and the model checks that this
/// bee may win.
#[derive(Default)]
struct Model {
    owners: HashMap<CellId, BeeId>,
    /// Bees that no longer exist.
    gone: HashSet<BeeId>,
}

impl Model {
    fn exists(&self, bee: BeeId) -> bool {
        self.owners.values().any(|owner| *owner == bee)
    }

    fn decided(&mut self, proposal: &Proposal, decision: &Decision) {
        match (proposal, decision) {
            (Proposal::Claim { cells }, Decision::Owner { root, created, merging, .. }) => {
                let owners: HashSet<BeeId> =
                    cells.iter().filter_map(|cell| self.owners.get(cell)).copied().collect();
                assert_eq!(*created, owners.is_empty(), "a bee is made only where nobody owns a cell");
                assert!(!self.gone.contains(root), "{root} was used before");
                assert!(*created || self.exists(*root));
                let others: HashSet<BeeId> = owners.into_iter().filter(|owner| owner != root).collect();
                assert_eq!(merging.iter().copied().collect::<HashSet<_>>(), others);
                assert_eq!(merging.len(), others.len(), "each merges once");
                cells.iter().for_each(|cell| {
                    self.owners.entry(*cell).or_insert(*root);
                })
            }
            (Proposal::Fused { from, into }, Decision::Done { .. }) => {
                if from != into && self.exists(*from) && self.exists(*into) {
                    self.owners.values_mut().filter(|owner| *owner == from).for_each(|owner| *owner = *into);
                    self.gone.insert(*from);
                }
            }
            (Proposal::Release { bee }, Decision::Done { .. }) => {
                if self.exists(*bee) {
                    self.owners.retain(|_, owner| owner != bee);
                    self.gone.insert(*bee);
                }
            }
            (proposal, decision) => panic!("{decision:?} is no answer to {proposal:?}"),
        }
    }

    fn check(&self, ownership: &Ownership) {
        for cell in (0..CELLS).map(CellId) {
            assert_eq!(ownership.owner(cell), self.owners.get(&cell).copied());
        }
        assert_eq!(ownership.cells(), self.owners.len());
        assert_eq!(ownership.bees(), self.owners.values().collect::<HashSet<_>>().len());
    }
}

fn proposal(random: &mut Random, bees: u64) -> Proposal {
    match random.below(10) {
        0..6 => {
            let count = 1 + random.below(4);
            Proposal::Claim { cells: (0..count).map(|_| CellId(random.below(CELLS))).collect::<CellSet>() }
        }
        // The two bees are arbitrary: the registry need not have decided to merge them, and they may be gone or may
        // never have existed.
        6..8 => Proposal::Fused {
            from: BeeId(1 + random.below(bees + 2)),
            into: BeeId(1 + random.below(bees + 2)),
        },
        _ => Proposal::Release { bee: BeeId(1 + random.below(bees + 2)) },
    }
}

/// Returns the encoded state without the number of applied proposals.
fn contents(ownership: &Ownership) -> Vec<u8> {
    let bytes = encode_many(ownership);
    let (_index, rest) = split_integer(&bytes).unwrap();
    rest.to_vec()
}

#[test]
fn a_cell_has_one_owner_whatever_is_proposed() {
    for seed in [1, 2, 3] {
        let (mut random, mut bees) = (Random(seed), 0);
        let (mut ownership, mut model) = (Ownership::default(), Model::default());
        let mut past: Vec<Proposal> = Vec::new();

        for number in 0..PROPOSALS {
            let proposal = match random.below(4) {
                // A late or repeated proposal.
                0 if !past.is_empty() => past[random.below(past.len() as u64) as usize].clone(),
                _ => proposal(&mut random, bees),
            };
            let decision = ownership.apply(&proposal);
            if let Decision::Owner { root, .. } = &decision {
                bees = bees.max(root.0)
            }
            model.decided(&proposal, &decision);
            past.push(proposal);
            if number % 100 == 0 {
                model.check(&ownership)
            }
        }
        model.check(&ownership);

        let copy: Ownership = decode_many("a registry", &encode_many(&ownership)).unwrap();
        assert_eq!(copy, ownership);
        assert_eq!(ownership.index(), PROPOSALS as u64);
    }
}

/// A proposal that is repeated immediately gets the same decision and changes nothing.
#[test]
fn a_repeated_proposal_changes_nothing() {
    let (mut random, mut bees, mut ownership) = (Random(4), 0, Ownership::default());
    for _ in 0..1_000 {
        let proposal = proposal(&mut random, bees);
        let first = ownership.apply(&proposal);
        let before = contents(&ownership);
        let second = ownership.apply(&proposal);
        assert_eq!(contents(&ownership), before, "{proposal:?}");

        match (first, second) {
            (
                Decision::Owner { root, merging, .. },
                Decision::Owner { root: same, created, merging: still, .. },
            ) => {
                bees = bees.max(root.0);
                assert_eq!((same, created, still), (root, false, merging));
            }
            (Decision::Done { .. }, Decision::Done { .. }) => {}
            (first, second) => panic!("{first:?} and then {second:?}"),
        }
    }
}

/// Statements about bees that are gone, or that never existed, have no effect.
#[test]
fn a_late_statement_changes_nothing() {
    let (mut random, mut ownership) = (Random(5), Ownership::default());
    for cell in 0..50 {
        ownership.apply(&Proposal::Claim { cells: CellSet::from_slice(&[CellId(cell)]) });
    }
    let gone: Vec<BeeId> = (1..=10).map(BeeId).collect();
    gone.iter().for_each(|bee| {
        ownership.apply(&Proposal::Release { bee: *bee });
    });

    let before = contents(&ownership);
    for _ in 0..1_000 {
        let (gone, any) = (gone[random.below(10) as usize], BeeId(random.below(60)));
        let late = match random.below(3) {
            0 => Proposal::Release { bee: gone },
            1 => Proposal::Fused { from: gone, into: any },
            _ => Proposal::Fused { from: any, into: gone },
        };
        ownership.apply(&late);
        assert_eq!(contents(&ownership), before, "{late:?}");
    }
}
