//! A registry that several hives share. Each hive has a replica, which learns of decisions late.

use crate::hive::consensus::registry::{Decision, Proposal, Registry, RegistryState, Unavailable};
use crate::seams::{BoxFuture, Platform};
use crate::testing::VirtualPlatform;
use crate::testing::platform::Chance;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// The registry itself: all decisions so far.
pub(super) struct SharedRegistry {
    platform: VirtualPlatform,
    decided: Mutex<Decided>,
    /// Notified of each decision.
    news: Notify,
}

#[derive(Default)]
struct Decided {
    state: RegistryState,
    proposals: Vec<Proposal>,
}

impl SharedRegistry {
    pub(super) fn new(platform: VirtualPlatform) -> Arc<SharedRegistry> {
        Arc::new(SharedRegistry { platform, decided: Mutex::default(), news: Notify::new() })
    }

    /// Decides proposals, in order.
    pub(super) fn decide(&self, proposals: &[Proposal]) -> Vec<Decision> {
        let mut decided = self.decided.lock();
        let decisions = proposals.iter().map(|proposal| decided.state.apply(proposal)).collect();
        decided.proposals.extend_from_slice(proposals);
        drop(decided);
        self.news.notify_waiters();
        decisions
    }

    pub(super) fn look<R>(&self, look: impl FnOnce(&RegistryState) -> R) -> R {
        look(&self.decided.lock().state)
    }
}

/// A hive's replica of the registry.
pub(super) struct Replica {
    registry: Arc<SharedRegistry>,
    known: Arc<Known>,
    chance: Mutex<Chance>,
    delay_max: Duration,
}

/// What a replica knows.
struct Known {
    state: Mutex<RegistryState>,
    /// Notified when the replica has learned of decisions, and when the hive is down.
    news: Notify,
    /// Whether the hive is down.
    is_stopped: AtomicBool,
    /// Whether the replica learns nothing for a while.
    is_held: AtomicBool,
}

impl Known {
    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }
}

impl Replica {
    /// Returns a replica that knows all decisions so far. It learns of each further one within `delay_max`.
    pub(super) fn new(registry: &Arc<SharedRegistry>, delay_max: Duration) -> Arc<Replica> {
        let replica = Arc::new(Replica {
            registry: registry.clone(),
            known: Arc::new(Known {
                state: Mutex::new(registry.look(RegistryState::clone)),
                news: Notify::new(),
                is_stopped: AtomicBool::new(false),
                is_held: AtomicBool::new(false),
            }),
            chance: Mutex::new(Chance::new(registry.platform.random())),
            delay_max,
        });
        registry.platform.spawn(Box::pin(learn(replica.clone())));
        replica
    }

    /// The hive is down: from now on, it proposes nothing.
    pub(super) fn stop(&self) {
        self.known.is_stopped.store(true, Ordering::Release);
        self.known.news.notify_waiters();
        self.registry.news.notify_waiters()
    }

    /// Learns nothing for some time.
    pub(super) fn hold(self: &Arc<Self>, duration: Duration) {
        self.known.is_held.store(true, Ordering::Release);
        let (replica, platform) = (self.clone(), self.registry.platform.clone());
        platform.clone().spawn(Box::pin(async move {
            platform.sleep(duration).await;
            replica.known.is_held.store(false, Ordering::Release);
            replica.registry.news.notify_waiters()
        }))
    }

    fn delay(&self) -> BoxFuture<()> {
        let nanoseconds = self.delay_max.as_nanos() as u64;
        let delay = self.chance.lock().next() % nanoseconds.max(1);
        self.registry.platform.sleep(Duration::from_nanos(delay))
    }

    /// Learns of the next decisions, of a random number of them.
    fn catch_up(&self) {
        let decided = self.registry.decided.lock();
        let mut state = self.known.state.lock();
        let unknown = &decided.proposals[state.index() as usize..];
        let count = 1 + self.chance.lock().below(unknown.len());
        unknown.iter().take(count).for_each(|proposal| {
            state.apply(proposal);
        });
        drop((state, decided));
        self.known.news.notify_waiters()
    }
}

async fn learn(replica: Arc<Replica>) {
    let registry = replica.registry.clone();
    while !replica.known.is_stopped() {
        let news = registry.news.notified();
        let is_held = || replica.known.is_held.load(Ordering::Acquire);
        if registry.look(RegistryState::index) > replica.index() && !is_held() {
            replica.delay().await;
            if !is_held() {
                replica.catch_up()
            }
            continue;
        }
        news.await
    }
}

impl Registry for Replica {
    fn propose(&self, proposals: Vec<Proposal>) -> BoxFuture<Result<Vec<Decision>, Unavailable>> {
        if self.known.is_stopped() {
            return Box::pin(std::future::pending());
        }
        let (there, back) = (self.delay(), self.delay());
        let registry = self.registry.clone();
        Box::pin(async move {
            there.await;
            let decisions = registry.decide(&proposals);
            back.await;
            Ok(decisions)
        })
    }

    fn index(&self) -> u64 {
        self.known.state.lock().index()
    }

    fn wait(&self, index: u64) -> BoxFuture<()> {
        let known = self.known.clone();
        Box::pin(async move {
            loop {
                let news = known.news.notified();
                if known.state.lock().index() >= index {
                    return;
                }
                if known.is_stopped() {
                    return std::future::pending().await;
                }
                news.await
            }
        })
    }

    fn read(&self, read: &mut dyn FnMut(&RegistryState)) {
        read(&self.known.state.lock())
    }
}
