//! The distribution of the cells of a test's apps over bees.

use crate::cell::{AppId, CellId};
use crate::hive::consensus::registry::{
    Decision, LocalRegistry, Proposal, Registry, RegistryState, Unavailable,
};
use crate::seams::BoxFuture;
use parking_lot::Mutex;
use std::collections::BTreeMap;

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

/// A registry that assigns all cells of an app to the same bee.
#[derive(Default)]
pub(crate) struct OneBee {
    registry: LocalRegistry,
    /// For each app that has had a bee, a cell that the bee owned.
    known: Mutex<BTreeMap<AppId, CellId>>,
}

impl OneBee {
    /// Returns the proposal with which a claim also asks for the app's bee.
    fn united(&self, known: &mut BTreeMap<AppId, CellId>, proposal: Proposal) -> Proposal {
        let Proposal::Claim { app, mut cells, colony } = proposal else { return proposal };
        let mut owned = None;
        self.registry.read(&mut |state| {
            // the bee may have ended
            owned = known.get(&app).copied().filter(|cell| state.owner(app, *cell).is_some())
        });
        match owned {
            Some(cell) => cells.push(cell),
            None => known.extend(cells.first().map(|cell| (app, *cell))),
        }
        Proposal::Claim { app, cells, colony }
    }
}

impl Registry for OneBee {
    fn propose(&self, proposals: Vec<Proposal>) -> BoxFuture<Result<Vec<Decision>, Unavailable>> {
        let mut known = self.known.lock();
        // a claim depends on what the proposals before it did
        let decided = proposals.into_iter().map(|one| self.registry.decide(&[self.united(&mut known, one)]));
        let decisions = decided.flatten().collect();
        Box::pin(std::future::ready(Ok(decisions)))
    }

    fn index(&self) -> u64 {
        self.registry.index()
    }

    fn wait(&self, index: u64) -> BoxFuture<()> {
        self.registry.wait(index)
    }

    fn read(&self, read: &mut dyn FnMut(&RegistryState)) {
        self.registry.read(read)
    }
}
