//! One hive's part of the cluster: what its groups, its registry and its failure detector share.

use super::detector::Hearing;
use super::disk::{OpenDisk, Opened};
use super::group::Group;
use super::log_store::LogStore;
use super::options::ClusterOptions;
use super::promises::Promises;
use super::transport::Transport;
use super::types::{GroupId, LogId, MemberId};
use beehive_core::seams::{BoxFuture, Platform};
use beehive_core::{Hive, HiveId};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// One hive's part of the cluster.
pub(crate) struct Node {
    pub(crate) me: MemberId,
    pub(crate) options: ClusterOptions,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) platform: Arc<dyn Platform>,
    pub(crate) lives: Mutex<Lives>,
    pub(crate) groups: RwLock<BTreeMap<GroupId, Arc<Group>>>,
    pub(crate) hearing: Hearing,
    /// The hive, from its start to its stop.
    pub(crate) hive: watch::Sender<Option<Hive>>,
    /// Number of snapshots that other members have sent and that were installed.
    pub(crate) installed: AtomicU64,
    /// Number of times that this member has begun to hand over a group.
    pub(crate) handed_over: AtomicU64,
    /// Whether the node has stopped.
    stopped: watch::Sender<bool>,
    /// Whether the failure detector may begin elections.
    elects: AtomicBool,
    /// Whether the hive has begun to stop.
    leaves: AtomicBool,
    /// Whether the failure detector leaves elections to the hives that stay, as long as they can win.
    abstains: AtomicBool,
    /// The folder. `None` if the logs are in memory. It closes at the latest when the node is dropped.
    pub(crate) disk: Option<OpenDisk>,
    is_return: bool,
    /// What the other members have promised to this one.
    pub(crate) promises: Mutex<Promises>,
}

impl Node {
    pub(crate) fn new(
        (life, opened): (u64, Option<Opened>),
        options: ClusterOptions,
        transport: Arc<dyn Transport>,
        platform: Arc<dyn Platform>,
    ) -> Arc<Node> {
        let hearing = Hearing::new(&options, platform.now());
        let is_return = opened.as_ref().is_some_and(|opened| opened.is_return);
        let silent = if is_return { options.peers.iter().copied().collect() } else { BTreeSet::new() };
        Arc::new(Node {
            me: MemberId { hive: options.hive, life },
            options,
            transport,
            platform,
            lives: Mutex::new(Lives { silent, ..Lives::default() }),
            groups: RwLock::default(),
            hearing,
            hive: watch::Sender::new(None),
            installed: AtomicU64::new(0),
            handed_over: AtomicU64::new(0),
            stopped: watch::Sender::new(false),
            elects: AtomicBool::new(false),
            leaves: AtomicBool::new(false),
            abstains: AtomicBool::new(false),
            is_return,
            disk: opened.map(|opened| opened.disk),
            promises: Mutex::default(),
        })
    }

    /// Whether the hive was started with its folder before, and may have promised something.
    pub(crate) fn is_return(&self) -> bool {
        self.is_return
    }

    /// Returns the log of a group.
    pub(crate) fn store(&self, group: GroupId) -> LogStore {
        self.disk.as_ref().map_or_else(LogStore::default, |disk| LogStore::on(&disk.0, group))
    }

    /// Returns the entry of the registry's log that names this member, if there is one.
    pub(crate) fn member_as_of(&self) -> Option<LogId> {
        let (as_of, members) = self.store(GroupId::REGISTRY).read(|log| log.members());
        as_of.filter(|_| members.contains(&self.me))
    }

    pub(crate) fn group(&self, id: GroupId) -> Option<Arc<Group>> {
        self.groups.read().get(&id).cloned()
    }

    /// Waits for a future, for a limited time. Cancel-safe if the future is.
    pub(crate) async fn within<T>(&self, limit: Duration, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            output = future => Some(output),
            () = self.platform.sleep(limit) => None,
        }
    }

    /// Starts a task that ends when the node stops.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stopped = self.stopped();
        let task: BoxFuture<()> = Box::pin(async move {
            tokio::select! {
                biased;
                () = stopped => {}
                () = task => {}
            }
        });
        self.platform.spawn(task)
    }

    /// Waits until the node stops.
    pub(crate) fn stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stopped = self.stopped.subscribe();
        async move {
            // fails if the node is gone
            let _ = stopped.wait_for(|is_stopped| *is_stopped).await;
        }
    }

    pub(crate) fn has_stopped(&self) -> bool {
        *self.stopped.borrow()
    }

    pub(crate) fn stop(&self) {
        self.elects.store(false, Ordering::Release);
        self.stopped.send_replace(true);
        self.hive.send_replace(None);
    }

    /// Lets the failure detector begin elections.
    pub(crate) fn begin_to_elect(&self) {
        self.elects.store(true, Ordering::Release)
    }

    pub(crate) fn elects(&self) -> bool {
        self.elects.load(Ordering::Acquire)
    }

    /// The hive begins to stop. Nobody hands over to it any more.
    pub(crate) fn begin_to_leave(&self) {
        self.leaves.store(true, Ordering::Release)
    }

    pub(crate) fn leaves(&self) -> bool {
        self.leaves.load(Ordering::Acquire)
    }

    /// The hive stops, and `staying` others do not. If they are a majority, elections are theirs. If not, they may need this hive for
    /// what is under way until it ends.
    pub(crate) fn leave_elections_to(&self, staying: usize) {
        self.abstains.store(staying * 2 > self.options.peers.len() + 1, Ordering::Release)
    }

    /// Checks whether elections are left to the hives that stay, as long as they can win.
    pub(crate) fn abstains(&self) -> bool {
        self.abstains.load(Ordering::Acquire)
    }

    /// Checks whether the hive has started and does not stop: if a group elects it, it leads.
    pub(crate) fn stays(&self) -> bool {
        self.elects() && !self.leaves() && self.hive.borrow().is_some()
    }
}

/// The lives of the other hives.
///
/// The groups are made of the lives that all hives have told each other. From then on, a hive with another life is not a member:
/// it has lost what the member knew. It becomes one when the groups have replaced the earlier life (`replace.rs`). A hive may have
/// missed that, so a member says which entry of the registry's log has made it one: the latest entry counts.
#[derive(Default)]
pub(crate) struct Lives {
    known: BTreeMap<HiveId, Life>,
    /// Whether a group exists.
    are_founded: bool,
    /// If this hive returns, the hives that have not said yet what it has promised to them. Calls from them are not answered.
    silent: BTreeSet<HiveId>,
}

/// The life of a hive, as far as another one knows.
#[derive(Clone, Copy)]
struct Life {
    life: u64,
    /// The entry of the registry's log that says so. `None` if no group knew the hive.
    as_of: Option<LogId>,
}

impl Lives {
    /// Another hive says which life it has, and which entry of the registry's log names this life as a member. Returns whether that is
    /// the life that this hive knows from now on.
    pub(crate) fn meet(&mut self, hive: HiveId, life: u64, as_of: Option<LogId>) -> bool {
        match self.known.get(&hive) {
            Some(known) if known.life != life && (self.are_founded && as_of <= known.as_of) => false,
            known => {
                let as_of = as_of.max(known.and_then(|known| known.as_of));
                self.known.insert(hive, Life { life, as_of });
                true
            }
        }
    }

    /// Returns the member that a hive is, if its life is known.
    pub(crate) fn member(&self, hive: HiveId) -> Option<MemberId> {
        self.known.get(&hive).map(|known| MemberId { hive, life: known.life })
    }

    /// Checks whether a member is known. If it is, groups exist, and lives change no more, unless the groups replace them.
    pub(crate) fn seal(&mut self, member: MemberId) -> bool {
        if self.silent.contains(&member.hive) {
            return false;
        }
        let is_known = self.member(member.hive) == Some(member);
        self.are_founded |= is_known;
        is_known
    }

    /// Checks whether a hive has not said yet what this one has promised to it.
    pub(crate) fn is_silent(&self, hive: HiveId) -> bool {
        self.silent.contains(&hive)
    }

    /// A hive has said what this one has promised to it.
    pub(crate) fn has_answered(&mut self, hive: HiveId) {
        self.silent.remove(&hive);
    }

    /// Checks whether a group exists.
    pub(crate) fn are_founded(&self) -> bool {
        self.are_founded
    }

    /// The groups are made of the lives that are known now. Returns them.
    pub(crate) fn found(&mut self) -> Vec<MemberId> {
        self.are_founded = true;
        self.known.iter().map(|(hive, known)| MemberId { hive: *hive, life: known.life }).collect()
    }

    /// The groups are made of these members, as an entry of the registry's log says.
    pub(crate) fn recall(&mut self, members: impl IntoIterator<Item = MemberId>, as_of: Option<LogId>) {
        for MemberId { hive, life } in members {
            if self.known.get(&hive).is_none_or(|known| known.as_of <= as_of) {
                self.known.insert(hive, Life { life, as_of });
            }
        }
        self.are_founded = true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hive_begins_lives_until_the_groups_are_made() {
        let (hive, other) = (HiveId(1), HiveId(2));
        let mut lives = Lives::default();
        assert!(lives.meet(hive, 1, None) && lives.meet(hive, 2, None), "no group knows the first life");
        assert!(!lives.seal(MemberId { hive, life: 1 }), "this member is gone");
        assert!(lives.seal(MemberId { hive, life: 2 }));
        assert!(!lives.meet(hive, 3, None), "a member that has forgotten everything");
        assert!(lives.meet(hive, 2, None), "the same life");
        assert!(lives.meet(other, 1, None), "a hive that was not met yet");
    }

    #[test]
    fn the_latest_entry_says_which_life_of_a_hive_is_a_member() {
        let hive = HiveId(1);
        let life = |life| MemberId { hive, life };
        let at = |index| Some(LogId::new_term_index(2, index));
        let mut lives = Lives::default();
        lives.recall([life(1)], at(5));
        assert!(!lives.meet(hive, 2, None), "it has not replaced the first life yet");
        assert!(!lives.seal(life(2)));
        assert!(lives.meet(hive, 2, at(9)), "it has, and this hive has not heard of it");
        assert!(lives.seal(life(2)) && !lives.seal(life(1)));

        // while this hive catches up
        lives.recall([life(1)], at(7));
        assert!(lives.seal(life(2)));
        assert!(!lives.meet(hive, 1, at(5)), "the first life, with its old folder");
        lives.recall([life(2)], at(9));
        lives.recall([life(3)], at(12));
        assert!(lives.seal(life(3)) && !lives.meet(hive, 2, at(9)))
    }
}
