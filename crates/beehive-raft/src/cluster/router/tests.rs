//! Tests of the answers to calls of a group: what was acknowledged is on disk, and whose lease counts.

use super::*;
use crate::cluster::detector::must_elect;
use crate::cluster::disk;
use crate::cluster::folds::Colony;
use crate::cluster::machine::{Encode, Fold};
use crate::cluster::options::ClusterOptions;
use crate::cluster::transport::{Transport, Unanswered};
use crate::cluster::types::{Command, LogEntry, Membership, Reply, SnapshotMeta, TransferRequest, Vote};
use crate::files::SimulatedFiles;
use crate::limits::{BEHIND_FOR, ELECTION_WITHIN};
use beehive_core::seams::TokioPlatform;
use openraft::EntryPayload;
use openraft::entry::RaftEntry;
use std::path::Path;
use std::time::Duration;
use tokio::task::JoinHandle;

const GROUP: GroupId = GroupId(5);
const LEADER: MemberId = MemberId { hive: HiveId(0), life: 10 };
const THIRD: MemberId = MemberId { hive: HiveId(2), life: 12 };

/// A network without other hives.
struct Silence;

impl Transport for Silence {
    fn send(&self, _: HiveId, _: Channel, _: Vec<u8>) {}
    fn call(&self, _: HiveId, _: Channel, _: Vec<u8>) -> BoxFuture<Result<Vec<u8>, Unanswered>> {
        Box::pin(std::future::pending())
    }
    fn attach(&self, _: Arc<dyn Receiver>) {}
}

/// A state without contents.
struct Nothing;

impl Fold for Nothing {
    fn begin_term(&self, _: u64, _: u64) -> Result<(), String> {
        Ok(())
    }
    fn apply(&self, _: &Command, _: u64) -> Result<Reply, String> {
        Ok(Reply::Nothing)
    }
    fn pass(&self, _: u64) {}
    fn copy(&self) -> Encode {
        Box::new(|| Ok(Vec::new()))
    }
    fn load(&self, _: &Chunks, _: u64) -> Result<(), String> {
        Ok(())
    }
}

/// A follower with a folder.
struct Follower {
    files: SimulatedFiles,
    node: Arc<Node>,
    group: Arc<Group>,
    arriving: Arc<Mutex<BTreeMap<(GroupId, MemberId), Arriving>>>,
}

fn open(files: &SimulatedFiles) -> (ClusterOptions, disk::Opened) {
    let mut options = ClusterOptions::new(HiveId(1), [HiveId(0), HiveId(2)], 7);
    options.folder = Some("/hive-1".into());
    options.files = Arc::new(files.clone());
    options.suspect_after = Duration::from_secs(10);
    let mut random = 40;
    let opened = disk::open(&options, Path::new("/hive-1"), &mut || {
        random += 1;
        random
    });
    (options, opened.unwrap())
}

fn id(index: u64) -> LogId {
    LogId::new_term_index(1, index)
}

/// The first entry names the members, and the second one begins the term.
fn entry(node: &Node, index: u64) -> LogEntry {
    let members = || openraft::Membership::new_with_defaults(vec![[LEADER, node.me, THIRD].into()], []);
    let payload = match index {
        0 => EntryPayload::Membership(members()),
        1 => EntryPayload::Blank,
        _ => EntryPayload::Normal(Command(vec![index as u8; 50].into())),
    };
    LogEntry::new(id(index), payload)
}

impl Follower {
    async fn start() -> Follower {
        let files = SimulatedFiles::new(3);
        let (options, opened) = open(&files);
        let platform = Arc::new(TokioPlatform::new(tokio::runtime::Handle::current()));
        let node = Node::new((opened.life, Some(opened)), options, Arc::new(Silence), platform);
        let group = Group::start(&node, GROUP, Arc::new(Nothing), None).await.unwrap();
        Follower { files, node, group, arriving: Arc::default() }
    }

    /// Makes a call as the leader. The task ends when it is answered.
    fn call(&self, call: Call, parts: &[&[u8]]) -> JoinHandle<Option<Answer>> {
        self.call_as(LEADER, call, parts)
    }

    fn call_as(&self, from: MemberId, call: Call, parts: &[&[u8]]) -> JoinHandle<Option<Answer>> {
        let head = Head { group: GROUP, from, to: self.node.me, call };
        let bytes = frames::join(&head, parts);
        let (node, group, arriving) = (self.node.clone(), self.group.clone(), self.arriving.clone());
        tokio::spawn(async move {
            let (head, bytes) = frames::split(&bytes).unwrap();
            answer(&node, &group, head, bytes, &arriving).await
        })
    }

    /// Appends entries that are committed already.
    fn append(&self, indexes: std::ops::Range<u64>) -> JoinHandle<Option<Answer>> {
        let entries: Vec<LogEntry> = indexes.clone().map(|index| entry(&self.node, index)).collect();
        let rpc = AppendRequest {
            vote: Vote::new_committed(1, LEADER),
            prev_log_id: indexes.start.checked_sub(1).map(id),
            entries,
            leader_commit: Some(id(indexes.end - 1)),
        };
        let (call, parts) = frames::append(&rpc);
        self.call(call, &parts)
    }

    /// Installs the snapshot that ends with an entry.
    async fn install(&self, last: u64) -> JoinHandle<Option<Answer>> {
        let EntryPayload::Membership(members) = entry(&self.node, 0).payload else { unreachable!() };
        let meta = SnapshotMeta {
            last_log_id: Some(id(last)),
            last_membership: Membership::new(Some(id(0)), members),
        };
        let chunk = Call::Chunk { last: meta.last_log_id, number: 0 };
        assert!(matches!(self.call(chunk, &[b"state"]).await.unwrap(), Some(Answer::Chunk)));
        self.call(Call::Install { vote: Vote::new_committed(1, LEADER), meta, chunks: 1 }, &[])
    }

    /// Asks for a vote. Returns whether it is granted.
    async fn votes(&self, candidate: MemberId, term: u64, last: u64) -> bool {
        let rpc = VoteRequest::new(Vote::new(term, candidate), Some(id(last)));
        match self.call_as(candidate, Call::Vote(rpc), &[]).await.unwrap() {
            Some(Answer::Vote(answer)) => answer.vote_granted,
            answer => panic!("{answer:?}"),
        }
    }

    /// Waits until it is known in which term the group is, and who leads it, or has got the vote.
    async fn learns_of(&self, term: u64, leader: MemberId) {
        let knows = || {
            let leadership = self.group.leadership();
            (leadership.term, leadership.leader) == (term, leader)
        };
        for _ in 0..1000 {
            if knows() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await
        }
        panic!("{:?}", self.group.leadership())
    }

    /// The disk is full: nothing more is written until there is space.
    fn fill(&self) {
        self.files.set_capacity(Some(self.files.used()))
    }

    /// The power fails. Checks that the log has an entry all the same.
    async fn must_keep(self, last: u64) {
        self.files.power_off();
        self.node.stop();
        self.group.raft.shutdown().await.unwrap();
        let disk = self.node.disk.as_ref().unwrap().0.clone();
        disk.close().await;
        self.files.power_on();
        let (_, opened) = open(&self.files);
        let position = opened.disk.0.positions()[&GROUP];
        assert!(position.last >= Some(id(last)), "{position:?}")
    }
}

/// Checks that calls are not answered yet.
async fn wait(calls: &[&JoinHandle<Option<Answer>>]) {
    tokio::time::sleep(Duration::from_millis(200)).await;
    for (number, call) in calls.iter().enumerate() {
        assert!(!call.is_finished(), "call {number} is answered, and nothing is on disk")
    }
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test)
}

#[test]
fn a_snapshot_of_entries_that_wait_to_be_written_is_acknowledged_when_they_are_on_disk() {
    run(async {
        let follower = Follower::start().await;
        let first = follower.append(0..3).await.unwrap();
        assert!(matches!(first, Some(Answer::Append(_))));
        follower.fill();
        let appended = follower.append(3..10);
        wait(&[&appended]).await;
        let installed = follower.install(9).await;
        wait(&[&appended, &installed]).await;
        follower.files.set_capacity(None);
        assert!(matches!(installed.await.unwrap(), Some(Answer::Installed(_))));
        follower.must_keep(9).await
    })
}

#[test]
fn a_snapshot_that_arrives_twice_is_acknowledged_twice_when_it_is_on_disk() {
    run(async {
        let follower = Follower::start().await;
        let first = follower.append(0..3).await.unwrap();
        assert!(matches!(first, Some(Answer::Append(_))));
        follower.fill();
        let installed = follower.install(20).await;
        wait(&[&installed]).await;
        let again = follower.install(20).await;
        wait(&[&installed, &again]).await;
        follower.files.set_capacity(None);
        for installed in [installed, again] {
            assert!(matches!(installed.await.unwrap(), Some(Answer::Installed(_))))
        }
        follower.must_keep(20).await
    })
}

/// The leader has ended, and returns before anybody suspects it, with a shorter log. It wants to be elected again.
#[test]
fn a_leader_that_asks_for_a_later_term_has_no_lease_any_more() {
    run(async {
        let follower = Follower::start().await;
        follower.append(0..10).await.unwrap();
        let (node, group) = (&follower.node, &follower.group);
        follower.learns_of(1, LEADER).await;
        node.hearing.heard(LEADER.hive, true, Vec::new(), node.platform.now());
        assert!(!follower.votes(THIRD, 2, 9).await, "the leader is trusted, and its lease runs");
        assert!(group.leadership().is_elected);

        assert!(!follower.votes(LEADER, 2, 5).await, "its log is shorter");
        assert!(!group.leadership().is_elected);
        assert!(follower.votes(THIRD, 2, 9).await);
        follower.learns_of(2, THIRD).await;
        assert!(!group.hurries(2), "it stands against the candidate for which it has voted")
    })
}

#[test]
fn a_member_that_is_behind_leaves_the_lead_to_others_for_a_while() {
    run(async {
        let follower = Follower::start().await;
        follower.append(0..3).await.unwrap();
        let (node, group, colony) = (&follower.node, &follower.group, Colony::default());
        follower.learns_of(1, LEADER).await;
        let wants_to_lead = group.lead(node, &colony);
        tokio::pin!(wants_to_lead);
        for _ in 0..10 {
            group.is_behind(node.platform.now());
            assert!(tokio::time::timeout(ELECTION_WITHIN / 3, &mut wants_to_lead).await.is_err());
            assert_eq!(group.leadership().term, 1)
        }
        assert!(
            tokio::time::timeout(BEHIND_FOR * 2, &mut wants_to_lead).await.is_err(),
            "nobody votes for it"
        );
        assert!(group.leadership().term > 1)
    })
}

/// The leader has asked before whether this hive stays. The hive has begun to stop since.
#[test]
fn a_hive_that_stops_takes_over_nothing() {
    run(async {
        let follower = Follower::start().await;
        follower.append(0..10).await.unwrap();
        let (node, group) = (&follower.node, &follower.group);
        follower.learns_of(1, LEADER).await;
        node.begin_to_leave();
        let transfer = |to| {
            let request = TransferRequest::new(Vote::new_committed(1, LEADER), to, Some(id(9)));
            follower.call(Call::Transfer(request), &[])
        };
        let refused = transfer(node.me).await.unwrap();
        assert!(matches!(refused, Some(Answer::Transfer(false))), "{refused:?}");
        // another member takes over, and this one votes for it
        let accepted = transfer(THIRD).await.unwrap();
        assert!(matches!(accepted, Some(Answer::Transfer(true))), "{accepted:?}");
        assert_eq!(group.leadership().term, 1)
    })
}

#[test]
fn a_hive_that_stops_elects_if_those_that_stay_are_too_few_or_behind() {
    run(async {
        let follower = Follower::start().await;
        follower.append(0..10).await.unwrap();
        let (node, group) = (&follower.node, &follower.group);
        follower.learns_of(1, LEADER).await;
        let (mut seen, now) = (BTreeMap::new(), node.platform.now());
        // it does not hear the leader either
        node.hearing.heard(THIRD.hive, true, Vec::new(), now);
        let mut elects = |after| must_elect(node, group, &mut seen, now + Duration::from_secs(after));

        node.begin_to_leave();
        node.leave_elections_to(2);
        assert!(!elects(0) && !elects(1), "it is left to the hives that stay");
        group.is_ahead(1);
        assert!(elects(1), "the others cannot win");
        assert!(!elects(2), "the next election is theirs");
        node.leave_elections_to(1);
        assert!(elects(3), "the hive that stays has no majority without this one")
    })
}

#[tokio::test]
async fn a_hive_that_is_heard_is_not_replaced() {
    let Follower { node, .. } = Follower::start().await;
    let new = MemberId { hive: THIRD.hive, life: 99 };
    assert!(replace::admit(&node, new).is_none(), "there is no cluster yet");

    node.lives.lock().recall([LEADER, node.me, THIRD], Some(id(0)));
    let now = node.platform.now();
    node.hearing.heard(THIRD.hive, true, Vec::new(), now);
    assert!(matches!(replace::admit(&node, new), Some(RegistryAnswer::Founded)), "its earlier life runs");
    node.lives.lock().recall([new], Some(id(5)));
    let replaces = |answer| matches!(answer, Some(RegistryAnswer::Replaces { .. }));
    assert!(replaces(replace::admit(&node, new)), "it is the one that is heard");

    let silent = MemberId { hive: LEADER.hive, life: 98 };
    assert!(replaces(replace::admit(&node, silent)))
}
