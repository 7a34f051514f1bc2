//! The distribution of the cells of a test's apps over bees.

use crate::cell::CellId;
use crate::hive::consensus::registry::{Decision, Proposal, Registry, RegistryState, Unavailable};
use crate::seams::BoxFuture;
use parking_lot::Mutex;

/// A distribution of cells over bees. No behavior of an app may depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Spread {
    /// One bee per cell. Bees merge if a message needs several of their cells. This is the default of a hive.
    Apart,
    /// One bee for all cells of an app, as if the app ran on one thread.
    Together,
    /// One bee per cell at first. Then bees merge or pause at random, even while they have messages, and ready tasks
    /// run in a random order.
    Merging {
        /// Seed of the random choices.
        seed: u64,
    },
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Spread::Apart => write!(f, "with one bee per cell"),
            Spread::Together => write!(f, "with one bee for all cells"),
            Spread::Merging { seed } => write!(f, "with bees that merge at random (seed {seed})"),
        }
    }
}

/// A registry that assigns every cell to the same bee.
#[derive(Default)]
pub(crate) struct OneBee(Mutex<One>);

struct One {
    state: RegistryState,
    /// A cell owned by the bee.
    known: Option<CellId>,
    index: u64,
}

impl Default for One {
    fn default() -> Self {
        One { state: RegistryState::alone(1, [], 0), known: None, index: 0 }
    }
}

impl One {
    fn decide(&mut self, proposal: &Proposal) -> Decision {
        self.index += 1;
        match proposal {
            Proposal::Claim { app, cells, colony } => {
                let mut with_known = cells.clone();
                with_known.extend(self.known);
                self.known = self.known.or(cells.first().copied());
                self.state.apply(&Proposal::Claim { app: *app, cells: with_known, colony: *colony })
            }
            other => {
                let decision = self.state.apply(other);
                if self.state.bees() == 0 {
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
