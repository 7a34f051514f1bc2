//! A hive that has lost what it knew takes the place of its earlier life in all groups.
//!
//! ```text
//!   new life                               the leader of each group
//!      ── Replace, again and again ──►     is the earlier life silent?
//!      ◄──────────── log or snapshot ──    the new life is a learner
//!                                          the new life votes, and the earlier one is no member any more
//!   all of its groups say that
//! ```
//!
//! A member that has forgotten votes or entries must not vote as what it was: see [`MemberId`]. Its place is taken by a change of the
//! membership, to which a majority of the members agrees, the earlier life counted among them. So whatever was committed with the
//! earlier life is with one of them, as after any death, and nothing is replaced where too many are gone. A step that was carried out
//! is not repeated, so the leaders may change meanwhile. The new life may end halfway. If it returns with its folder, it goes on from
//! there; if not, the next life replaces it, too.

use super::folds::Decisions;
use super::frames::{RegistryAnswer, RegistryCall};
use super::greeting::{Positions, remembers};
use super::group::Group;
use super::node::Node;
use super::options::ClusterError;
use super::transport::Channel;
use super::types::{GroupId, LogId, MemberId};
use crate::limits::{ATTEMPT_WITHIN, HEARD_FOR, REPLACED_EVERY};
use beehive_core::HiveId;
use beehive_core::registry::Registry;
use beehive_protocol::codec::{decode_many, encode_many};
use futures_util::future::join_all;
use openraft::async_runtime::watch::WatchReceiver;
use openraft::{ChangeMembers, EmptyNode};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The members of a group.
struct Membership {
    /// The entry of the log that says so.
    as_of: Option<LogId>,
    /// Those that vote. While the membership changes, those that vote after that.
    voters: BTreeSet<MemberId>,
    /// Whether the membership changes.
    is_joint: bool,
    /// All, with those that learn.
    members: BTreeSet<MemberId>,
    /// Whether the group has committed this, and no change is under way.
    is_settled: bool,
}

impl Membership {
    fn of(group: &Group) -> Membership {
        let metrics = group.raft.metrics();
        let metrics = metrics.borrow_watched();
        let stored = &metrics.membership_config;
        let is_applied = stored.log_id().as_ref() <= metrics.last_applied.as_ref();
        let membership = stored.membership();
        let configs = membership.get_joint_config();
        let is_joint = configs.len() > 1;
        Membership {
            as_of: *stored.log_id(),
            voters: configs.last().cloned().unwrap_or_default(),
            is_joint,
            members: membership.nodes().map(|(member, _)| *member).collect(),
            is_settled: is_applied && !is_joint,
        }
    }

    /// Returns the other lives of the hive of this member.
    fn earlier(&self, member: MemberId) -> BTreeSet<MemberId> {
        self.members.iter().copied().filter(|other| other.hive == member.hive && *other != member).collect()
    }

    /// Checks whether a member votes, and no other life of its hive is a member.
    fn has_replaced(&self, member: MemberId) -> bool {
        self.is_settled && self.voters.contains(&member) && self.earlier(member).is_empty()
    }
}

/// The registry, this hive's replica of it, and its group.
type OfRegistry<'a> = (&'a dyn Registry, &'a Decisions, &'a Group);

/// Returns the groups of the colonies that exist and of which this hive is a member.
fn of_colonies(node: &Node, replica: &Decisions) -> Vec<GroupId> {
    replica.read(|state| {
        // a colony that nobody has led yet may not have a group
        let exist = state.colonies().filter(|(_, entry)| !entry.is_dead && entry.leader.is_some());
        let here = exist.filter(|(_, entry)| entry.members.contains(&node.me.hive));
        here.map(|(colony, _)| GroupId(colony.0)).collect()
    })
}

/// Checks whether this hive has begun to take the place of an earlier life, and has not finished that: as far as its own logs
/// say, it is no member of some of its groups, or the membership of one changes.
pub(crate) fn is_incomplete(node: &Node, replica: &Decisions, registry_group: &Group) -> bool {
    let is_joint = |group: &Group| Membership::of(group).is_joint;
    let lacks = |id: GroupId| !node.store(id).read(|log| log.members()).1.contains(&node.me);
    let colonies = of_colonies(node, replica);
    is_joint(registry_group)
        || colonies.iter().any(|id| lacks(*id) || node.group(*id).is_some_and(|group| is_joint(&group)))
}

/// Waits until the members of the registry's group are certain, and returns them.
pub(crate) async fn members(node: &Node, registry_group: &Group) -> Vec<MemberId> {
    loop {
        let Membership { voters, is_settled, .. } = Membership::of(registry_group);
        if is_settled && !voters.is_empty() {
            return voters.into_iter().collect();
        }
        node.platform.sleep(REPLACED_EVERY).await
    }
}

/// Asks the other hives to let this one take the place of its earlier life, until it has it in the registry's group and in those of
/// all its colonies.
pub(crate) async fn replace(
    node: &Arc<Node>,
    (registry, replica, registry_group): OfRegistry<'_>,
    positions: &Positions,
) -> Result<(), ClusterError> {
    let begun = node.platform.now();
    let asks = async {
        loop {
            // at the same time: a leader gives up a hive that does not ask, and those that do not answer would take too long
            let asked = node.options.peers.iter().map(|peer| ask(node, *peer, positions));
            let answers = join_all(asked).await;
            for (peer, is_heard) in node.options.peers.iter().zip(answers) {
                match is_heard {
                    Err(error) => return error,
                    Ok(true) if node.platform.now() > begun + HEARD_FOR + node.options.suspect_after => {
                        return ClusterError::Runs { peer: *peer };
                    }
                    Ok(_) => {}
                }
            }
            node.platform.sleep(REPLACED_EVERY).await
        }
    };
    let replaced = async {
        until(node, registry_group).await;
        // the replica knows all colonies then
        registry.wait(super::member::present(node, registry).await).await;
        for id in of_colonies(node, replica) {
            let group = loop {
                match node.group(id) {
                    Some(group) => break group,
                    None => node.platform.sleep(REPLACED_EVERY).await,
                }
            };
            until(node, &group).await
        }
    };
    tokio::select! {
        biased;
        () = replaced => Ok(()),
        error = asks => Err(error),
    }
}

/// Waits until this hive has the place of its earlier life in a group.
async fn until(node: &Node, group: &Group) {
    while !Membership::of(group).has_replaced(node.me) {
        node.platform.sleep(REPLACED_EVERY).await
    }
}

/// Asks a hive once. Returns whether it hears the earlier life.
///
/// # Errors
///
/// Returns an error if this hive has promised it something that is not in its logs.
async fn ask(node: &Node, peer: HiveId, positions: &Positions) -> Result<bool, ClusterError> {
    let request = encode_many(&RegistryCall::Replace { life: node.me.life });
    let answer = node.transport.call(peer, Channel::Registry, request);
    let Some(Ok(answer)) = node.within(ATTEMPT_WITHIN, answer).await else { return Ok(false) };
    match decode_many("an answer to `Replace`", &answer) {
        Ok(RegistryAnswer::Replaces { life, as_of, promises }) => {
            // from now on, calls of this member are answered, and what it says later may be of this start
            let is_first = {
                let mut lives = node.lives.lock();
                lives.meet(peer, life, as_of) && lives.is_silent(peer)
            };
            if is_first {
                remembers(node, peer, positions, &promises)?
            }
            Ok(false)
        }
        Ok(RegistryAnswer::Founded) => Ok(true),
        _ => Ok(false),
    }
}

/// Another hive asks to take the place of its earlier life. Begins what is to be done in the groups that this hive leads.
pub(crate) fn admit(node: &Arc<Node>, member: MemberId) -> Option<RegistryAnswer> {
    let is_new = {
        let lives = node.lives.lock();
        if !lives.are_founded() {
            // there is nothing to replace, so it takes part as at a first start
            return None;
        }
        lives.member(member.hive) != Some(member)
    };
    let now = node.platform.now();
    if is_new && node.hearing.trusts(member.hive, now) {
        tracing::warn!(
            hive = member.hive.0,
            "a process asks to replace a hive, and the hive is heard: it is not replaced"
        );
        return Some(RegistryAnswer::Founded);
    }
    for group in node.groups.read().values().filter(|group| group.leadership().is_here) {
        if !Membership::of(group).has_replaced(member) && group.begin_to_replace_with(member, now) {
            let (node, group) = (node.clone(), group.clone());
            node.clone().spawn(async move {
                // what fails is tried again when the hive asks again
                if let Err(error) = replace_in(&node, &group, member).await {
                    tracing::info!(group = group.id.0, %member, error, "a hive is not replaced yet")
                }
                group.end_to_replace_with(member)
            })
        }
    }
    let promises = node.promises.lock().of(member);
    Some(RegistryAnswer::Replaces { life: node.me.life, as_of: node.member_as_of(), promises })
}

/// Replaces the earlier life of a member in a group that this hive leads.
async fn replace_in(node: &Node, group: &Group, member: MemberId) -> Result<(), String> {
    let change = |changes| async {
        let changed = group.raft.change_membership(changes, false).await;
        changed.map(drop).map_err(|error| error.to_string())
    };
    let mut before = Membership::of(group);
    if before.is_joint {
        // an earlier leader has begun to change it
        change(ChangeMembers::ReplaceAllVoters(before.voters)).await?;
        before = Membership::of(group)
    }
    let earlier = before.earlier(member);
    if earlier.is_empty() && !before.members.contains(&member) {
        // the hive has never been a member
        return Ok(());
    }
    // lives that have ended before they voted
    let learners: BTreeSet<MemberId> = &earlier - &before.voters;
    let mut changes = Vec::new();
    if !learners.is_empty() {
        changes.push(ChangeMembers::RemoveNodes(learners))
    }
    if !before.members.contains(&member) {
        changes.push(ChangeMembers::AddNodes(BTreeMap::from([(member, EmptyNode::new())])))
    }
    if !changes.is_empty() {
        change(ChangeMembers::Batch(changes)).await?
    }
    let mut ended_at = u64::MAX;
    let voters = loop {
        let now = node.platform.now();
        if !group.replaces_with(member, now) || !group.leadership().is_here {
            return Err("the hive asks no more, or another hive leads".to_string());
        }
        // Once the change has begun, nothing is committed without a majority of the new voters. If the earlier life returned instead of
        // the new one, and others were missing, nothing would be. So it begins only where the new life and a majority without the
        // earlier one are there
        let voters = Membership::of(group).voters;
        let stay = &voters - &earlier;
        let lives = |voter: &&MemberId| **voter == node.me || node.hearing.trusts(voter.hive, now);
        let (has, last) = group.replicated(member);
        // under load, it is never quite there
        let is_near = group.is_near(member) || has.is_some_and(|has| has >= ended_at);
        if is_near && stay.iter().filter(lives).count() * 2 > voters.len() {
            break stay.into_iter().chain([member]).collect();
        }
        ended_at = last;
        node.platform.sleep(REPLACED_EVERY).await
    };
    change(ChangeMembers::ReplaceAllVoters(voters)).await?;
    tracing::info!(group = group.id.0, %member, "a hive has taken the place of its earlier life");
    Ok(())
}

/// Takes note of the lives of the hives, as the registry's group knows them. Runs until the node stops.
pub(crate) async fn follow_lives(node: Arc<Node>, registry_group: Arc<Group>) {
    let mut metrics = registry_group.raft.metrics();
    let mut noted = None;
    loop {
        // these change with each entry, and the members do not
        if metrics.borrow_and_update().membership_config.log_id() != &noted {
            let Membership { as_of, voters, is_settled, .. } = Membership::of(&registry_group);
            // a new life gets the log from its beginning: who was a member before it says nothing
            if is_settled && voters.contains(&node.me) {
                noted = as_of;
                node.promises.lock().forget_replaced(&voters);
                node.lives.lock().recall(voters, as_of)
            }
        }
        if metrics.changed().await.is_err() {
            return;
        }
    }
}
