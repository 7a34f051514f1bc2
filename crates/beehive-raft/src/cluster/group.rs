//! A group of which this hive is a member, and the hive's leadership of a colony.

use super::folds::Colony;
use super::frames::RegistryCall;
use super::journal::{Office, RaftJournal};
use super::machine::{Fold, Machine};
use super::network::Paths;
use super::node::Node;
use super::options::ClusterError;
use super::transport::Channel;
use super::types::{GroupId, MemberId, Types};
use crate::limits::{
    ATTEMPT_WITHIN, BEHIND_FOR, ELECTION_WITHIN, HANDED_OVER_BEHIND, HANDED_OVER_WITHIN, HEARD_FOR, RETRY,
};
use beehive_core::cluster::LeadError;
use beehive_core::registry::ColonyId;
use beehive_core::{HiveId, Time};
use beehive_protocol::codec::encode_many;
use openraft::async_runtime::watch::WatchReceiver;
use openraft::{EmptyNode, Raft, ServerState};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use tokio::sync::mpsc;

/// A group of which this hive is a member.
pub(crate) struct Group {
    pub(crate) id: GroupId,
    pub(crate) raft: Raft<Types, Machine>,
    /// The state, if this is the group of a colony.
    pub(crate) colony: Option<Arc<Colony>>,
    /// The time until which this member leaves elections to another one, whose log is longer.
    yields: Mutex<Time>,
    /// The term in which another member cannot be elected, because its log is shorter than that of this member. `None` if this
    /// member has begun an election since.
    is_ahead_in: Mutex<Option<u64>>,
    /// The newest term whose leader has asked to be elected in a later one.
    abandoned: Mutex<Option<u64>>,
    /// The hive to which this member hands the group over, and the term that it gives up.
    heir: Mutex<Option<(HiveId, u64)>>,
    /// This hive's newest leadership of the colony.
    office: Mutex<Weak<Office>>,
    /// The member with which this one, as the leader, is replacing another life of its hive, and when it has asked for that last.
    replaces_with: Mutex<Option<(MemberId, Time)>>,
}

/// Who leads a group, as far as a member knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leadership {
    pub(crate) term: u64,
    /// The leader, or the candidate for which this member has voted.
    pub(crate) leader: MemberId,
    /// Whether a majority has elected the leader, and it has not given up the term since.
    pub(crate) is_elected: bool,
    /// Whether the leader is this member.
    pub(crate) is_here: bool,
}

impl Group {
    /// Becomes a member of a group that this hive does not know yet.
    pub(crate) async fn start(
        node: &Arc<Node>,
        id: GroupId,
        fold: Arc<dyn Fold>,
        colony: Option<Arc<Colony>>,
    ) -> Result<Arc<Group>, ClusterError> {
        let config = Arc::new(node.options.raft()?);
        let paths = Paths { node: node.clone(), group: id };
        let store = node.store(id);
        let raft = Raft::new(node.me, config, paths, store.clone(), Machine::new(fold, store)).await;
        let raft = raft.map_err(|error| ClusterError::Group { why: error.to_string() })?;
        let (yields, is_ahead_in, abandoned, heir, office, replaces_with) = Default::default();
        let group =
            Arc::new(Group { id, raft, colony, yields, is_ahead_in, abandoned, heir, office, replaces_with });
        node.groups.write().insert(id, group.clone());
        Ok(group)
    }

    /// Makes the group of its members, if it does not exist yet.
    pub(crate) async fn found(
        &self,
        members: impl IntoIterator<Item = MemberId>,
    ) -> Result<(), ClusterError> {
        let members: BTreeMap<MemberId, EmptyNode> =
            members.into_iter().map(|member| (member, EmptyNode::new())).collect();
        let is_founded = self.raft.is_initialized().await;
        match is_founded.map_err(|error| ClusterError::Group { why: error.to_string() })? {
            true => Ok(()),
            false => {
                let founded = self.raft.initialize(members).await;
                founded.map_err(|error| ClusterError::Group { why: error.to_string() })
            }
        }
    }

    pub(crate) fn leadership(&self) -> Leadership {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        let term = metrics.vote.leader_id.term;
        Leadership {
            term,
            leader: metrics.vote.leader_id.voted_for,
            is_elected: metrics.vote.committed && !self.is_abandoned(term),
            is_here: metrics.state == ServerState::Leader,
        }
    }

    /// A member asks to be elected in a term. If it led an earlier one, it does so no more: a leader begins no elections.
    ///
    /// A leader that returns with a shorter log than the others asks in vain. They refuse without taking over its term, hear its
    /// pings, and would take it for the leader until its lease has run out.
    pub(crate) fn asks(&self, candidate: MemberId, term: u64) {
        let leadership = self.leadership();
        if leadership.leader == candidate && leadership.term < term {
            let mut abandoned = self.abandoned.lock();
            *abandoned = (*abandoned).max(Some(leadership.term))
        }
    }

    /// Checks whether the leader of a term, if there was one, has given it up.
    pub(crate) fn is_abandoned(&self, term: u64) -> bool {
        Some(term) <= *self.abandoned.lock()
    }

    /// Another member has refused its vote because its log is longer.
    pub(crate) fn is_behind(&self, now: Time) {
        *self.yields.lock() = now + BEHIND_FOR
    }

    /// Checks whether this member leaves elections to another one.
    ///
    /// openraft's members refuse a candidate with a shorter log without taking over its term. If that candidate went on, its term
    /// would always be higher than that of the member that can win.
    pub(crate) fn yields(&self, now: Time) -> bool {
        now < *self.yields.lock()
    }

    /// Another member cannot win an election, because its log is shorter. This one can, unless it votes for a third one first:
    /// then it is in a later term than this.
    pub(crate) fn is_ahead(&self, term: u64) {
        *self.is_ahead_in.lock() = Some(term)
    }

    /// Checks whether this member, which is in this term, should begin an election without waiting for others. Returns true once.
    pub(crate) fn hurries(&self, term: u64) -> bool {
        self.is_ahead_in.lock().take_if(|ahead_in| *ahead_in == term).is_some()
    }

    /// Returns the members that vote.
    pub(crate) fn voters(&self) -> Vec<MemberId> {
        self.raft.voter_ids().collect()
    }

    /// Asks the leader to hand over to this member.
    async fn ask_for(&self, node: &Node, leader: HiveId) {
        let request = encode_many(&RegistryCall::HandOver(self.id));
        let answer = node.transport.call(leader, Channel::Registry, request);
        // if it did not arrive, it is asked again
        let _ = node.within(ATTEMPT_WITHIN, answer).await;
    }

    /// Checks whether this member leads, and hands the group over to that hive.
    pub(crate) fn hands_over_to(&self, hive: HiveId) -> bool {
        let leadership = self.leadership();
        leadership.is_here && *self.heir.lock() == Some((hive, leadership.term))
    }

    /// Checks whether this member leads, and has begun to hand the group over: it accepts nothing then.
    pub(crate) fn is_handed_over(&self) -> bool {
        let leadership = self.leadership();
        leadership.is_here && self.heir.lock().is_some_and(|(_, term)| term == leadership.term)
    }

    /// A member asks to replace the earlier lives of its hive. Returns whether this is to begin: it is not under way. A replacement
    /// with an earlier life ends.
    pub(crate) fn begin_to_replace_with(&self, member: MemberId, now: Time) -> bool {
        self.replaces_with.lock().replace((member, now)).is_none_or(|(with, _)| with != member)
    }

    /// Checks whether this is under way, and the member has asked for it lately.
    pub(crate) fn replaces_with(&self, member: MemberId, now: Time) -> bool {
        self.replaces_with.lock().is_some_and(|(with, asked)| with == member && now < asked + HEARD_FOR)
    }

    /// The replacement with a member is over, or has failed.
    pub(crate) fn end_to_replace_with(&self, member: MemberId) {
        self.replaces_with.lock().take_if(|(with, _)| *with == member);
    }

    /// Returns the index up to which another member has the log, if this one leads and knows it, and that of the last entry.
    pub(crate) fn replicated(&self, member: MemberId) -> (Option<u64>, u64) {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let has = metrics.replication.as_ref().and_then(|members| *members.get(&member)?);
        (has.map(|has| has.index), metrics.last_log_index.unwrap_or_default())
    }

    /// Checks whether this member leads, and another one has nearly the whole log.
    pub(crate) fn is_near(&self, member: MemberId) -> bool {
        let (has, last) = self.replicated(member);
        has.is_some_and(|has| last.saturating_sub(has) <= HANDED_OVER_BEHIND)
    }

    /// The hive leads the colony.
    pub(crate) fn is_led_by(&self, office: &Arc<Office>) {
        *self.office.lock() = Arc::downgrade(office)
    }

    /// Begins to hand the group over to another member if this one leads, and the other one has nearly the whole log. The group
    /// accepts nothing then until the other one leads. Returns whether it has begun.
    pub(crate) async fn hand_over(&self, node: &Node, to: MemberId) -> bool {
        let (term, is_near) = (self.leadership().term, self.is_near(to));
        if is_near {
            let office = self.office.lock().upgrade();
            if let Some(office) = office.filter(|office| office.term == term) {
                // what takes longer is committed by the next leader
                let _ = node.within(HANDED_OVER_WITHIN, office.finish()).await;
            }
            node.handed_over.fetch_add(1, Ordering::Relaxed);
            *self.heir.lock() = Some((to.hive, term));
            // fails if the group has failed
            let _ = self.raft.trigger().transfer_leader(to).await;
        }
        is_near
    }

    /// Waits until this member leads the group and has applied the first entry of its term. Begins elections until then, or asks
    /// the leader to hand over if there is one. Returns the term.
    pub(crate) async fn lead(&self, node: &Node, colony: &Colony) -> u64 {
        let mut since = node.platform.now();
        loop {
            let leadership = self.leadership();
            if leadership.is_here && *colony.terms().borrow() == leadership.term {
                return leadership.term;
            }
            let now = node.platform.now();
            if !leadership.is_here && now > since + ELECTION_WITHIN {
                since = now;
                let leader = leadership.leader.hive;
                if leadership.is_elected && leader != node.me.hive && node.hearing.trusts(leader, now) {
                    self.ask_for(node, leader).await
                } else if !self.yields(now) {
                    // fails if the group has failed, and then it never leads
                    let _ = self.raft.trigger().elect(false).await;
                }
            }
            node.platform.sleep(RETRY).await
        }
    }
}

/// Lets the hive lead a colony as long as this member leads the group, again and again. `office` is the leadership with which
/// the hive has started.
pub(crate) async fn follow(
    node: Arc<Node>,
    group: Arc<Group>,
    colony: Arc<Colony>,
    office: Option<Arc<Office>>,
) {
    let mut hives = node.hive.subscribe();
    let hive = match hives.wait_for(Option::is_some).await {
        Ok(hive) => hive.clone(),
        Err(_) => return,
    };
    let Some(hive) = hive else { return };
    if let Some(followed) = hive.followed() {
        colony.tell(ColonyId(group.id.0), &followed)
    }
    let (mut metrics, mut terms) = (group.raft.server_metrics(), colony.terms());
    let (failed, mut failures) = mpsc::unbounded_channel::<(u64, LeadError)>();
    let mut office = office;
    // a term in which the hive may not lead
    let mut refused = 0;
    loop {
        let now = {
            metrics.borrow_and_update();
            group.leadership()
        };
        let begun = *terms.borrow_and_update();
        if let Some(led) = &office
            && (!now.is_here || led.term != now.term)
        {
            led.depose();
            office = None
        }
        if now.is_here && begun == now.term && now.term != refused && office.is_none() {
            let (_, state) = colony.state();
            let (journal, begins) = RaftJournal::new(&node, &group, now.term, state.last);
            office = Some(begins);
            let (hive, failed, term, id) = (hive.clone(), failed.clone(), now.term, ColonyId(group.id.0));
            node.spawn(async move {
                if let Err(error) = hive.lead(id, term, journal, state).await {
                    // the receiver ends only with the node
                    let _ = failed.send((term, error));
                }
            })
        }
        tokio::select! {
            biased;
            Some((term, error)) = failures.recv() => {
                match error {
                    LeadError::Led => {}
                    LeadError::Superseded | LeadError::Stopped => refused = term,
                    error => {
                        tracing::error!(
                            colony = group.id.0, term, %error,
                            "the hive cannot lead a colony that it was elected to lead; it gives up its replica"
                        );
                        // otherwise the others would trust a leader that hosts no bees
                        let _ = group.raft.shutdown().await;
                        return;
                    }
                }
                if office.as_ref().is_some_and(|led| led.term == term) {
                    office = None
                }
                node.platform.sleep(RETRY).await
            }
            changed = metrics.changed() => if changed.is_err() {
                // the group has stopped, or has failed
                if let Some(led) = &office {
                    led.depose()
                }
                return;
            },
            changed = terms.changed() => if changed.is_err() { return },
        }
    }
}
