//! The registry, which decides which bee owns which cell. Its interface is asynchronous and batched so that
//! it can be replicated.
//!
//! The state machine is plain data with one function, [`Ownership::apply`]. [`LocalRegistry`] applies a
//! proposal immediately. A replicated registry applies the proposals that its log commits. Every proposal is
//! idempotent, so a late or repeated proposal has no effect.

pub use beehive_protocol::{Decision, Ownership, Proposal};

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
    /// # Errors Returns [`Unavailable`] if no decision can currently be made.
    fn propose(&self, proposals: Vec<Proposal>) -> BoxFuture<Result<Vec<Decision>, Unavailable>>;
    /// Returns the index of the last decision known to this hive.
    fn index(&self) -> u64;
}

/// The registry of a hive without a cluster. It decides immediately, without asking anybody.
#[derive(Default)]
pub struct LocalRegistry(Mutex<Ownership>);

impl std::fmt::Debug for LocalRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (bees, cells) = self.size();
        f.debug_struct("LocalRegistry").field("bees", &bees).field("cells", &cells).finish()
    }
}

impl LocalRegistry {
    /// Creates a registry that continues from `ownership`.
    pub fn restored(ownership: Ownership) -> Self {
        LocalRegistry(Mutex::new(ownership))
    }

    /// Returns the number of bees and the number of owned cells.
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
        self.0.lock().index()
    }
}
