//! How the cells of a test's apps are spread over bees.

use crate::cell::CellId;
use crate::hive::consensus::registry::{Decision, Ownership, Proposal, Registry, Unavailable};
use crate::seams::BoxFuture;
use parking_lot::Mutex;

/// How cells are spread over bees. Nothing that an app does may depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Spread {
    /// A bee for each cell; cells that some message needs together are merged then. What a hive does by itself.
    Apart,
    /// One bee for all cells of an app: the program as if it ran alone.
    Together,
    /// A bee for each cell at first; then bees merge by chance, or are held up for a while, also while they have messages,
    /// and what is ready to run runs in an order of chance.
    Merging {
        /// What chance follows from.
        seed: u64,
    },
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Spread::Apart => write!(f, "with a bee for each cell"),
            Spread::Together => write!(f, "with one bee for all cells"),
            Spread::Merging { seed } => write!(f, "with bees that merge by chance (seed {seed})"),
        }
    }
}

/// A registry that gives every cell to the same bee.
#[derive(Default)]
pub(crate) struct OneBee(Mutex<One>);

#[derive(Default)]
struct One {
    ownership: Ownership,
    /// A cell that the bee owns.
    known: Option<CellId>,
    index: u64,
}

impl One {
    fn decide(&mut self, proposal: &Proposal) -> Decision {
        self.index += 1;
        match proposal {
            Proposal::Claim { cells } => {
                let mut with_known = cells.clone();
                with_known.extend(self.known);
                self.known = self.known.or(cells.first().copied());
                self.ownership.apply(&Proposal::Claim { cells: with_known })
            }
            other => {
                let decision = self.ownership.apply(other);
                if self.ownership.bees() == 0 {
                    self.known = None
                }
                decision
            }
        }
    }
}

impl Registry for OneBee {
    fn propose(&self, proposals: Vec<Proposal>) -> BoxFuture<Result<Vec<Decision>, Unavailable>> {
        let mut one = self.0.lock();
        let decisions = proposals.iter().map(|proposal| one.decide(proposal)).collect();
        Box::pin(std::future::ready(Ok(decisions)))
    }

    fn index(&self) -> u64 {
        self.0.lock().index
    }
}
