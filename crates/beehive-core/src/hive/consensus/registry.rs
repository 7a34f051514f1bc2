//! The registry, which decides which bee owns which cell. Its interface is asynchronous and batched so that
//! it can be replicated.
//!
//! The state machine is plain data with one function, [`RegistryState::apply`]. [`LocalRegistry`] applies a
//! proposal immediately. A replicated registry applies the proposals that its log commits. Every proposal is
//! idempotent, so a late or repeated proposal has no effect.
//!
//! All apps of a hive have one registry, which assigns every id of a bee only once, whichever app the bee belongs to. To the
//! registry, each log of the hive is a colony: the first log is the colony with id 1, and the others follow. The bees
//! that are in memory only have one more colony, which comes after those of the logs.

pub use beehive_protocol::{BeeEntry, ColonyId, Decision, Proposal, RegistryState, Restored};

use crate::seams::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The error of a registry that currently cannot decide. The caller retries later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailable;

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the registry cannot decide: no majority of its members can be reached")
    }
}
impl std::error::Error for Unavailable {}

/// Decides which bee owns which cell, for all apps.
///
/// Each hive has a replica of the registry's state. A replica may be behind the decisions; it is never ahead of them.
pub trait Registry: Send + Sync + 'static {
    /// Decides a batch of proposals in order and returns one decision for each. The proposals may concern several apps.
    /// The replica of this hive may learn of the decisions later than the caller.
    ///
    /// # Errors
    ///
    /// Returns [`Unavailable`] if no decision can currently be made.
    fn propose(&self, proposals: Vec<Proposal>) -> BoxFuture<Result<Vec<Decision>, Unavailable>>;
    /// Returns the index of the last decision known to this hive's replica.
    fn index(&self) -> u64;
    /// Completes when this hive's replica knows the decision with this index. To be told of the next decision, wait for
    /// the index after [`Registry::index`].
    fn wait(&self, index: u64) -> BoxFuture<()>;
    /// Calls `read` with this hive's replica. Asks no other hive. `read` must not call the registry.
    fn read(&self, read: &mut dyn FnMut(&RegistryState));
}

/// Returns the colony of a log of a hive without a cluster, by the position of the log in the hive.
pub(crate) fn colony_of(log: usize) -> ColonyId {
    ColonyId(log as u32 + 1)
}

/// The registry of a hive without a cluster. It decides immediately, without asking anybody.
pub struct LocalRegistry(Mutex<Local>);

struct Local {
    state: RegistryState,
    /// The callers that are waiting for an index.
    waiting: Vec<(u64, oneshot::Sender<()>)>,
}

impl Local {
    fn wake(&mut self) {
        let index = self.state.index();
        for (_, waiting) in self.waiting.extract_if(.., |(until, _)| *until <= index) {
            // sending fails if the caller no longer waits
            let _ = waiting.send(());
        }
    }
}

impl Default for LocalRegistry {
    /// Returns a registry without bees, for a hive without logs.
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
        LocalRegistry(Mutex::new(Local { state, waiting: Vec::new() }))
    }

    /// Decides proposals, in order.
    pub fn decide(&self, proposals: &[Proposal]) -> Vec<Decision> {
        let mut local = self.0.lock();
        let decisions = proposals.iter().map(|proposal| local.state.apply(proposal)).collect();
        if !local.waiting.is_empty() {
            local.wake()
        }
        decisions
    }

    /// Returns the number of bees and the number of owned cells.
    pub fn size(&self) -> (usize, usize) {
        let local = self.0.lock();
        (local.state.bees(), local.state.cells())
    }
}

impl Registry for LocalRegistry {
    fn propose(&self, proposals: Vec<Proposal>) -> BoxFuture<Result<Vec<Decision>, Unavailable>> {
        Box::pin(std::future::ready(Ok(self.decide(&proposals))))
    }

    fn index(&self) -> u64 {
        self.0.lock().state.index()
    }

    fn wait(&self, index: u64) -> BoxFuture<()> {
        let mut local = self.0.lock();
        if local.state.index() >= index {
            return Box::pin(std::future::ready(()));
        }
        let (sender, receiver) = oneshot::channel();
        local.waiting.retain(|(_, waiting)| !waiting.is_closed());
        local.waiting.push((index, sender));
        Box::pin(async move {
            if receiver.await.is_err() {
                // the registry is gone, so it makes no further decision
                std::future::pending().await
            }
        })
    }

    fn read(&self, read: &mut dyn FnMut(&RegistryState)) {
        read(&self.0.lock().state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use beehive_protocol::{AppId, CellId};
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::task::{Context, Wake};

    /// Counts how often it is woken.
    #[derive(Default)]
    struct Woken(AtomicU64);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn claim(app: u16, cell: u64) -> Proposal {
        Proposal::Claim { app: AppId(app), cells: [CellId(cell)].into_iter().collect(), colony: ColonyId(1) }
    }

    #[test]
    fn the_bees_of_all_apps_have_different_ids() {
        let registry = LocalRegistry::default();
        let decisions = registry.decide(&[claim(0, 7), claim(1, 7), claim(0, 7)]);
        let roots = decisions.iter().map(|decision| match decision {
            Decision::Owner { root, created, .. } => (*root, *created),
            other => panic!("{other:?}"),
        });
        let [first, second, again] = roots.collect::<Vec<_>>()[..] else { panic!("three decisions") };
        assert!(first.0 != second.0, "two apps with one cell id");
        assert_eq!((again.0, first.1, second.1, again.1), (first.0, true, true, false));
        let mut owner = None;
        registry.read(&mut |state| owner = state.owner(AppId(1), CellId(7)));
        assert_eq!(owner, Some(second.0));
    }

    #[test]
    fn a_caller_is_woken_once_when_its_index_is_reached() {
        let registry = LocalRegistry::default();
        let woken = Arc::new(Woken::default());
        let waker = woken.clone().into();
        let mut context = Context::from_waker(&waker);
        let (mut now, mut second, mut third) =
            (pin!(registry.wait(0)), pin!(registry.wait(2)), pin!(registry.wait(3)));
        assert!(now.as_mut().poll(&mut context).is_ready(), "the index is known");
        assert!(second.as_mut().poll(&mut context).is_pending());
        assert!(third.as_mut().poll(&mut context).is_pending());

        registry.decide(&[claim(0, 1)]);
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
        registry.decide(&[claim(0, 2)]);
        assert_eq!((woken.0.load(Ordering::Relaxed), registry.index()), (1, 2));
        assert!(second.as_mut().poll(&mut context).is_ready());
        assert!(third.as_mut().poll(&mut context).is_pending());
        registry.decide(&[claim(0, 3)]);
        assert_eq!(woken.0.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn callers_that_have_gone_are_forgotten() {
        let registry = LocalRegistry::default();
        for _ in 0..100 {
            drop(registry.wait(9))
        }
        let waiting = registry.wait(9);
        assert_eq!(registry.0.lock().waiting.len(), 1);
        drop(waiting)
    }
}
