//! The registry, which decides which bee owns which cell. Its interface is asynchronous and batched so that
//! it can be replicated.
//!
//! The state machine is plain data with one function, [`RegistryState::apply`]. [`LocalRegistry`] applies a
//! proposal immediately. A replicated registry applies the proposals that its log commits. Every proposal is
//! idempotent, so a late or repeated proposal has no effect.
//!
//! To the registry, each log of an app is a colony: the app's first log is the colony with id 1, and the others follow.
//! An app without logs has one colony. Each app has a registry of its own, because the ids of bees in existing logs
//! are unique only within an app. The queens of two apps therefore never wait for each other.

pub use beehive_protocol::{ColonyId, Decision, Proposal, RegistryState, Restored};

use crate::seams::BoxFuture;
use parking_lot::Mutex;

/// The error of a registry that currently cannot decide. The caller retries later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailable;

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the registry cannot decide: no majority of its members can be reached")
    }
}
impl std::error::Error for Unavailable {}

/// Decides which bee owns which cell of an app.
pub trait Registry: Send + Sync + 'static {
    /// Decides a batch of proposals in order and returns one decision for each.
    ///
    /// # Errors
    ///
    /// Returns [`Unavailable`] if no decision can currently be made.
    fn propose(&self, proposals: Vec<Proposal>) -> BoxFuture<Result<Vec<Decision>, Unavailable>>;
    /// Returns the index of the last decision known to this hive.
    fn index(&self) -> u64;
}

/// The registry of a hive without a cluster. It decides immediately, without asking anybody.
pub struct LocalRegistry(Mutex<RegistryState>);

impl Default for LocalRegistry {
    /// Returns a registry without bees, for an app with at most one log.
    fn default() -> Self {
        LocalRegistry::restored(RegistryState::alone(1, [], 0))
    }
}

impl std::fmt::Debug for LocalRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (bees, cells) = self.size();
        f.debug_struct("LocalRegistry").field("bees", &bees).field("cells", &cells).finish()
    }
}

impl LocalRegistry {
    /// Creates a registry that continues from `state`.
    pub fn restored(state: RegistryState) -> Self {
        LocalRegistry(Mutex::new(state))
    }

    /// Returns the number of bees and the number of owned cells.
    pub fn size(&self) -> (usize, usize) {
        let state = self.0.lock();
        (state.bees(), state.cells())
    }
}

impl Registry for LocalRegistry {
    fn propose(&self, proposals: Vec<Proposal>) -> BoxFuture<Result<Vec<Decision>, Unavailable>> {
        let mut state = self.0.lock();
        let decisions = proposals.iter().map(|p| state.apply(p)).collect();
        Box::pin(std::future::ready(Ok(decisions)))
    }

    fn index(&self) -> u64 {
        self.0.lock().index()
    }
}
