//! The replicas of the colonies that each hive of a simulated cluster has. The leader's one has what is committed at once, the others
//! are late by a random time.

use crate::hive::Followed;
use crate::hive::consensus::journal::{Entry, LogState};
use crate::hive::consensus::registry::ColonyId;
use crate::seams::{BoxFuture, Platform};
use crate::testing::cluster::process::Process;
use crate::testing::platform::Chance;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// One round in this many installs a snapshot instead of applying the entries.
const SNAPSHOT_ONE_IN: usize = 8;

/// The entries in the logs of all colonies, including those that have no effect.
#[derive(Default)]
pub(super) struct Streams {
    logs: Mutex<Vec<Vec<Arc<Entry>>>>,
    news: Notify,
}

impl Streams {
    fn len(&self, at: usize) -> usize {
        self.logs.lock().get(at).map_or(0, Vec::len)
    }
}

/// One hive's replicas of all colonies.
pub(crate) struct Followers {
    streams: Arc<Streams>,
    process: Process,
    replicas: Mutex<Vec<Follower>>,
    followed: Mutex<Option<Followed>>,
    chance: Mutex<Chance>,
    delay_max: Duration,
    is_stopped: AtomicBool,
    /// Whether the hive cannot reach the other hives.
    is_cut: AtomicBool,
}

/// A replica of a colony.
#[derive(Default)]
struct Follower {
    state: LogState,
    /// Number of entries that it has applied.
    position: usize,
}

impl Followers {
    /// Creates replicas that have everything so far.
    pub(super) fn new(
        streams: &Arc<Streams>,
        process: &Process,
        seed: u64,
        delay_max: Duration,
    ) -> Arc<Followers> {
        let followers = Arc::new(Followers {
            streams: streams.clone(),
            process: process.clone(),
            replicas: Mutex::default(),
            followed: Mutex::new(None),
            chance: Mutex::new(Chance::new(seed)),
            delay_max,
            is_stopped: AtomicBool::new(false),
            is_cut: AtomicBool::new(false),
        });
        let colonies = streams.logs.lock().len();
        (0..colonies).for_each(|at| followers.follow_until(at, usize::MAX, false));
        followers
    }

    /// Tells a hive what the replicas know, from now on.
    pub(super) fn attach(self: &Arc<Self>, followed: Followed) {
        let replicas = self.replicas.lock();
        for (at, replica) in replicas.iter().enumerate() {
            followed.restored(ColonyId(at as u32 + 1), &replica.state)
        }
        *self.followed.lock() = Some(followed);
        drop(replicas);
        self.process.spawn(Box::pin(learn(self.clone())))
    }

    /// A journal has added an entry to the log of a colony that this hive leads.
    pub(crate) fn committed(&self, colony: ColonyId, entry: &Arc<Entry>) {
        let at = colony.0 as usize - 1;
        {
            let mut logs = self.streams.logs.lock();
            if logs.len() <= at {
                logs.resize_with(at + 1, Vec::new)
            }
            logs[at].push(entry.clone())
        }
        self.follow_until(at, usize::MAX, false);
        self.streams.news.notify_waiters()
    }

    /// The hive is about to lead a colony: its replica has everything.
    pub(super) fn has_all_of(&self, colony: ColonyId) {
        self.follow_until(colony.0 as usize - 1, usize::MAX, false)
    }

    /// The hive is down.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        *self.followed.lock() = None;
        self.streams.news.notify_waiters()
    }

    /// Cuts the hive off, or connects it again.
    pub(super) fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Release);
        self.streams.news.notify_waiters()
    }

    /// Applies entries of a colony up to this position, or installs a snapshot with them.
    fn follow_until(&self, at: usize, end: usize, by_snapshot: bool) {
        let mut replicas = self.replicas.lock();
        if replicas.len() <= at {
            replicas.resize_with(at + 1, Follower::default)
        }
        let replica = &mut replicas[at];
        let entries: Vec<Arc<Entry>> = {
            let logs = self.streams.logs.lock();
            let log = logs.get(at).map_or(&[][..], |log| log);
            log[replica.position..end.min(log.len()).max(replica.position)].to_vec()
        };
        let colony = ColonyId(at as u32 + 1);
        let followed = self.followed.lock();
        let followed = followed.as_ref().filter(|_| !self.is_stopped.load(Ordering::Acquire));
        for entry in &entries {
            replica.position += 1;
            let is_applied = replica.state.apply(entry);
            if let (true, false, Some(followed)) = (is_applied, by_snapshot, followed) {
                followed.applied(colony, &entry.record, &replica.state)
            }
        }
        if let (true, Some(followed)) = (by_snapshot, followed) {
            followed.restored(colony, &replica.state)
        }
    }

    fn delay(&self) -> BoxFuture<()> {
        let nanoseconds = self.delay_max.as_nanos() as u64;
        let delay = self.chance.lock().next() % nanoseconds.max(1);
        self.process.sleep(Duration::from_nanos(delay))
    }

    /// Returns the colonies of which this hive does not have everything, and how much there is.
    fn behind(&self) -> Vec<(usize, usize, usize)> {
        let replicas = self.replicas.lock();
        let colonies = self.streams.logs.lock().len();
        let position = |at: usize| replicas.get(at).map_or(0, |replica| replica.position);
        let all = (0..colonies).map(|at| (at, position(at), self.streams.len(at)));
        all.filter(|(_, position, len)| position < len).collect()
    }

    /// Learns of some entries of one of the colonies.
    fn catch_up(&self) {
        let behind = self.behind();
        if behind.is_empty() {
            return;
        }
        let (at, end, by_snapshot) = {
            let mut chance = self.chance.lock();
            let (at, position, len) = behind[chance.below(behind.len())];
            (at, position + 1 + chance.below(len - position), chance.below(SNAPSHOT_ONE_IN) == 0)
        };
        self.follow_until(at, end, by_snapshot)
    }
}

async fn learn(followers: Arc<Followers>) {
    let streams = followers.streams.clone();
    while !followers.is_stopped.load(Ordering::Acquire) {
        let news = streams.news.notified();
        let is_cut = || followers.is_cut.load(Ordering::Acquire);
        if !is_cut() && !followers.behind().is_empty() {
            followers.delay().await;
            if !is_cut() {
                followers.catch_up()
            }
            continue;
        }
        news.await
    }
}
