//! A registry that several hives share. Each hive has a replica, which learns of decisions late.

use crate::hive::consensus::registry::{Decision, Proposal, Registry, RegistryState, Unavailable};
use crate::seams::{BoxFuture, Platform};
use crate::testing::VirtualPlatform;
use crate::testing::cluster::process::Process;
use crate::testing::cluster::trace::{Brief, Kind, Log};
use crate::testing::platform::Chance;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// The registry itself: all decisions so far.
pub(super) struct SharedRegistry {
    platform: VirtualPlatform,
    log: Arc<Log>,
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
    pub(super) fn new(platform: VirtualPlatform, log: Arc<Log>) -> Arc<SharedRegistry> {
        Arc::new(SharedRegistry { platform, log, decided: Mutex::default(), news: Notify::new() })
    }

    /// Decides proposals, in order.
    pub(super) fn decide(&self, proposals: &[Proposal]) -> Vec<Decision> {
        let mut decided = self.decided.lock();
        let decide = |proposal| {
            let decision = decided.state.apply(proposal);
            self.log.add(Kind::Decide, None, None, format_args!("{}: {}", Brief(proposal), Brief(&decision)));
            decision
        };
        let decisions = proposals.iter().map(decide).collect();
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
    process: Process,
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
    /// Number of times that this has begun and ended. The end of a time has no effect if it has changed.
    changes: AtomicU64,
    /// Whether the hive cannot reach the registry.
    is_cut: AtomicBool,
}

impl Known {
    /// Waits until the hive can reach the registry.
    async fn reachable(&self) {
        loop {
            let news = self.news.notified();
            if !self.is_cut.load(Ordering::Acquire) {
                return;
            }
            news.await
        }
    }

    fn learns(&self) -> bool {
        !self.is_held.load(Ordering::Acquire) && !self.is_cut.load(Ordering::Acquire)
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }
}

impl Replica {
    /// Returns a replica that knows all decisions so far. It learns of each further one within `delay_max`.
    pub(super) fn new(
        registry: &Arc<SharedRegistry>,
        process: &Process,
        delay_max: Duration,
    ) -> Arc<Replica> {
        let replica = Arc::new(Replica {
            registry: registry.clone(),
            process: process.clone(),
            known: Arc::new(Known {
                state: Mutex::new(registry.look(RegistryState::clone)),
                news: Notify::new(),
                is_stopped: AtomicBool::new(false),
                is_held: AtomicBool::new(false),
                changes: AtomicU64::new(0),
                is_cut: AtomicBool::new(false),
            }),
            chance: Mutex::new(Chance::new(registry.platform.random())),
            delay_max,
        });
        process.spawn(Box::pin(learn(replica.clone())));
        replica
    }

    /// The hive is down: from now on, it proposes nothing.
    pub(super) fn stop(&self) {
        self.known.is_stopped.store(true, Ordering::Release);
        self.known.news.notify_waiters();
        self.registry.news.notify_waiters()
    }

    /// Learns nothing for some time, or until [`Replica::release`]. A later call replaces this one.
    pub(super) fn hold(self: &Arc<Self>, duration: Duration) {
        let change = self.known.changes.fetch_add(1, Ordering::AcqRel) + 1;
        self.known.is_held.store(true, Ordering::Release);
        let (replica, platform) = (self.clone(), self.registry.platform.clone());
        platform.clone().spawn(Box::pin(async move {
            platform.sleep(duration).await;
            if replica.known.changes.load(Ordering::Acquire) == change {
                replica.release()
            }
        }))
    }

    /// Learns of decisions again.
    pub(super) fn release(&self) {
        self.known.changes.fetch_add(1, Ordering::AcqRel);
        self.known.is_held.store(false, Ordering::Release);
        self.registry.news.notify_waiters()
    }

    /// Cuts the hive off from the registry, or connects it again.
    pub(super) fn cut(&self, is_cut: bool) {
        self.known.is_cut.store(is_cut, Ordering::Release);
        self.known.news.notify_waiters();
        self.registry.news.notify_waiters()
    }

    fn delay(&self) -> BoxFuture<()> {
        let nanoseconds = self.delay_max.as_nanos() as u64;
        let delay = self.chance.lock().next() % nanoseconds.max(1);
        self.process.sleep(Duration::from_nanos(delay))
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
        if registry.look(RegistryState::index) > replica.index() && replica.known.learns() {
            replica.delay().await;
            if replica.known.learns() {
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
        let (registry, known) = (self.registry.clone(), self.known.clone());
        Box::pin(async move {
            there.await;
            known.reachable().await;
            let decisions = registry.decide(&proposals);
            back.await;
            known.reachable().await;
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
