//! A registry that behaves like the registry of a cluster: it answers late, or cannot decide.

use beehive_core::registry::{Decision, LocalRegistry, Proposal, Registry, RegistryState, Unavailable};
use beehive_core::seams::BoxFuture;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// When a proposal takes effect, from the point of view of the proposer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// At once, although the answer is late. A proposer that does not wait for the answer never learns of the
    /// decision.
    BeforeTheAnswer,
    /// Together with the answer. If the proposer does not wait for the answer, the proposal has no effect.
    WithTheAnswer,
}

/// A registry that delays its answers, and refuses one round of proposals in `refuse_one_in`.
pub(crate) struct LateRegistry {
    registry: Arc<LocalRegistry>,
    effect: Effect,
    refuse_one_in: u64,
    asked: Mutex<u64>,
    counts: Arc<Counts>,
}

/// Counters of the requests to a registry.
#[derive(Default)]
pub(crate) struct Counts {
    /// Number of rounds of proposals that contain claims.
    pub(crate) rounds: AtomicU64,
    pub(crate) claims: AtomicU64,
}

impl Counts {
    fn count(&self, proposals: &[Proposal]) {
        let claims = proposals.iter().filter(|one| matches!(one, Proposal::Claim { .. })).count() as u64;
        self.rounds.fetch_add((claims > 0) as u64, Ordering::Relaxed);
        self.claims.fetch_add(claims, Ordering::Relaxed);
    }
    pub(crate) fn read(&self) -> (u64, u64) {
        (self.rounds.load(Ordering::Relaxed), self.claims.load(Ordering::Relaxed))
    }
}

/// The registry of a single hive, with counters.
pub(crate) struct Counted(pub(crate) LocalRegistry, pub(crate) Arc<Counts>);

impl Registry for Counted {
    fn propose(&self, proposals: Vec<Proposal>) -> BoxFuture<Result<Vec<Decision>, Unavailable>> {
        self.1.count(&proposals);
        self.0.propose(proposals)
    }
    fn index(&self) -> u64 {
        self.0.index()
    }
    fn wait(&self, index: u64) -> BoxFuture<()> {
        self.0.wait(index)
    }
    fn read(&self, read: &mut dyn FnMut(&RegistryState)) {
        self.0.read(read)
    }
}

impl LateRegistry {
    pub(crate) fn new(effect: Effect, refuse_one_in: u64) -> Self {
        Self::counted(effect, refuse_one_in, Arc::default())
    }

    pub(crate) fn counted(effect: Effect, refuse_one_in: u64, counts: Arc<Counts>) -> Self {
        LateRegistry { registry: Arc::default(), effect, refuse_one_in, asked: Mutex::new(0), counts }
    }
}

impl Registry for LateRegistry {
    fn propose(&self, proposals: Vec<Proposal>) -> BoxFuture<Result<Vec<Decision>, Unavailable>> {
        self.counts.count(&proposals);
        let asked = {
            let mut asked = self.asked.lock().unwrap();
            *asked += 1;
            *asked
        };

        let delay = Duration::from_micros(asked * 7_919 % 700);
        if self.refuse_one_in > 0 && asked.is_multiple_of(self.refuse_one_in) {
            return Box::pin(async move {
                tokio::time::sleep(delay).await;
                Err(Unavailable)
            });
        }

        let registry = self.registry.clone();
        let decide = move || registry.decide(&proposals);

        match self.effect {
            Effect::BeforeTheAnswer => {
                let decisions = decide();
                Box::pin(async move {
                    tokio::time::sleep(delay).await;
                    Ok(decisions)
                })
            }
            Effect::WithTheAnswer => Box::pin(async move {
                tokio::time::sleep(delay).await;
                Ok(decide())
            }),
        }
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
