//! This hive's replica of the registry, and the way to the registry's leader.

use super::folds::Decisions;
use super::frames::{RegistryAnswer, RegistryCall};
use super::group::Group;
use super::node::Node;
use super::transport::Channel;
use super::types::{Command, GroupId, Reply};
use crate::limits::{ATTEMPT_WITHIN, PROPOSE_WITHIN, RETRY};
use beehive_core::HiveId;
use beehive_core::registry::{Decision, Proposal, Registry, RegistryState, Unavailable};
use beehive_core::seams::BoxFuture;
use beehive_protocol::codec::{decode_many, encode_many};
use std::sync::Arc;

/// This hive's access to the registry.
pub(crate) struct RaftRegistry {
    pub(crate) node: Arc<Node>,
    pub(crate) replica: Arc<Decisions>,
}

impl RaftRegistry {
    /// Proposes to the leader, wherever it is, until it answers.
    ///
    /// A repeated proposal may have been decided before: the answer was lost. It then changes nothing, and the caller finds the
    /// first decision in the state.
    async fn propose_within(node: Arc<Node>, proposals: Vec<Proposal>) -> Result<Vec<Decision>, Unavailable> {
        let request = encode_many(&RegistryCall::Propose(proposals.clone()));
        let attempts = async {
            loop {
                if let Some(group) = node.group(GroupId::REGISTRY) {
                    let leadership = group.leadership();
                    let decided = match leadership.leader.hive {
                        here if here == node.me.hive => decide(&node, &group, &proposals).await,
                        leader => ask(&node, leader, request.clone()).await,
                    };
                    // an answer of another length does not belong to this question
                    if let Some(decisions) = decided.filter(|decisions| decisions.len() == proposals.len()) {
                        return decisions;
                    }
                }
                node.platform.sleep(RETRY).await
            }
        };
        node.within(PROPOSE_WITHIN, attempts).await.ok_or(Unavailable)
    }
}

/// Asks the hive that leads the registry.
async fn ask(node: &Node, leader: HiveId, request: Vec<u8>) -> Option<Vec<Decision>> {
    let answer = node.transport.call(leader, Channel::Registry, request);
    let answer = node.within(ATTEMPT_WITHIN, answer).await?.ok()?;
    match decode_many("an answer of the registry", &answer).ok()? {
        RegistryAnswer::Decided(decisions) => Some(decisions),
        _ => None,
    }
}

/// Decides proposals if this hive leads the registry. Returns `None` if it does not, or if no majority answers in time; the
/// proposals may be decided later, then.
pub(crate) async fn decide(node: &Node, group: &Group, proposals: &[Proposal]) -> Option<Vec<Decision>> {
    if !group.leadership().is_here {
        return None;
    }
    let command = Command(encode_many(proposals).into());
    let written = node.within(ATTEMPT_WITHIN, group.raft.client_write(command)).await?;
    match written.ok()?.data {
        Reply::Decided(decisions) => Some(decisions),
        Reply::Nothing | Reply::Applied(_) => None,
    }
}

impl Registry for RaftRegistry {
    fn propose(&self, proposals: Vec<Proposal>) -> BoxFuture<Result<Vec<Decision>, Unavailable>> {
        Box::pin(RaftRegistry::propose_within(self.node.clone(), proposals))
    }

    fn index(&self) -> u64 {
        self.replica.read(RegistryState::index)
    }

    fn wait(&self, index: u64) -> BoxFuture<()> {
        let mut indexes = self.replica.indexes();
        Box::pin(async move {
            if indexes.wait_for(|known| *known >= index).await.is_err() {
                // the replica is gone, and learns nothing more
                std::future::pending().await
            }
        })
    }

    fn read(&self, read: &mut dyn FnMut(&RegistryState)) {
        self.replica.read(|state| read(state))
    }
}
