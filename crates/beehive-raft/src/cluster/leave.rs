//! A hive that stops hands over what it leads, so that the others need not suspect it before they go on.

use super::frames::{RegistryAnswer, RegistryCall};
use super::group::Group;
use super::node::Node;
use super::transport::Channel;
use super::types::GroupId;
use crate::limits::{ATTEMPT_WITHIN, HEIR_WITHIN, LEAVE_WITHIN, REGISTRY_FIRST_FOR, RETRY};
use beehive_core::HiveId;
use beehive_protocol::codec::{decode_many, encode_many};
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Hands over the groups that this member leads. Completes when others lead them, when nobody can, or after
/// [`LEAVE_WITHIN`]. The hive may still run meanwhile: what it has under way goes on with the next leader.
pub(crate) async fn leave(node: &Node) {
    node.begin_to_leave();
    let handed_over = async {
        let staying = staying(node).await;
        node.leave_elections_to(staying.len());
        // the next leaders of the colonies write into the registry that they lead
        if let Some(registry) = node.group(GroupId::REGISTRY) {
            // if it takes longer, it goes on with the colonies
            let _ = node.within(REGISTRY_FIRST_FOR, hand_over(node, &registry, &staying)).await;
        }
        let groups: Vec<Arc<Group>> = node.groups.read().values().cloned().collect();
        join_all(groups.iter().map(|group| hand_over(node, group, &staying))).await;
    };
    // if it takes longer, the others will suspect this hive
    let _ = node.within(LEAVE_WITHIN, handed_over).await;
}

/// Asks the other hives which of them stay. If all stop at once, nobody hands over: a group accepts nothing while it is handed
/// over, and the hives could not finish what they have under way.
async fn staying(node: &Node) -> BTreeSet<HiveId> {
    let now = node.platform.now();
    let peers = node.options.peers.iter().copied().filter(|peer| node.hearing.trusts(*peer, now));
    let answers = peers.map(|peer| async move {
        let answer = node.transport.call(peer, Channel::Registry, encode_many(&RegistryCall::Stays));
        let answer = node.within(ATTEMPT_WITHIN, answer).await?.ok()?;
        let answer = decode_many("an answer about a stop", &answer).ok()?;
        matches!(answer, RegistryAnswer::Stays(true)).then_some(peer)
    });
    join_all(answers).await.into_iter().flatten().collect()
}

/// Hands over a group if this member leads it. Groups go to different hives.
async fn hand_over(node: &Node, group: &Group, staying: &BTreeSet<HiveId>) {
    let mut heirs = group.voters();
    let voters = heirs.len();
    heirs.retain(|member| staying.contains(&member.hive));
    // without this member, nobody could be elected
    if heirs.is_empty() || (heirs.len() * 2 <= voters && !group.is_handed_over()) {
        return;
    }
    let first = group.id.0 as usize % heirs.len();
    heirs.rotate_left(first);
    while group.leadership().is_here {
        for heir in &heirs {
            let trusts = || node.hearing.trusts(heir.hive, node.platform.now());
            if trusts() && group.hand_over(node, *heir).await {
                let waits = async {
                    while trusts() && group.hands_over_to(heir.hive) {
                        node.platform.sleep(RETRY).await
                    }
                };
                // It may have died, or its disk may be full. The group accepts nothing until somebody leads it
                let _ = node.within(HEIR_WITHIN, waits).await;
            }
            if !group.leadership().is_here {
                return;
            }
        }
        // nobody has nearly the whole log
        if !group.is_handed_over() {
            return;
        }
        node.platform.sleep(RETRY).await
    }
}
