//! The registry: which bee owns which cell. Asynchronous and batched, so that a replicated one can take its place.
//!
//! The state machine is plain data with one function, [`Ownership::apply`]; [`LocalRegistry`] applies to it at once, a
//! replicated registry applies what its log commits. Every proposal is idempotent: a late or repeated one does nothing.

pub use beehive_protocol::{Decision, Ownership, Proposal};

use crate::seams::BoxFuture;
use parking_lot::Mutex;

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
        self.0.lock().index()
    }
}
