//! The greeting of the other hives: each says which life it has, and what the other one has promised to it.
//!
//! A hive that returns starts no group before a majority has answered. Until another hive has answered, this one answers none of
//! its calls either. So all promises in an answer are older than this start, and the logs as the start found them must have them.
//! A majority is enough: whatever was committed or elected with this member's promise is known to one of any majority of the
//! members that run, or more of them have ended or lost something than the group survives.

use super::frames::{RegistryAnswer, RegistryCall};
use super::node::Node;
use super::options::ClusterError;
use super::promises::{Position, Promise};
use super::transport::Channel;
use super::types::GroupId;
use crate::limits::{ATTEMPT_WITHIN, RETRY};
use beehive_core::HiveId;
use beehive_protocol::codec::{decode_many, encode_many};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::mpsc;

/// The logs of this hive as its start has found them.
pub(crate) type Positions = BTreeMap<GroupId, Position>;

/// What the hives say that had not answered when enough had.
pub(crate) struct Late(mpsc::UnboundedReceiver<Result<(), ClusterError>>);

impl Late {
    /// Nobody says anything more.
    pub(crate) fn nothing() -> Late {
        Late(mpsc::unbounded_channel().1)
    }

    /// Waits until a hive says that this one may not take part. Cancel-safe.
    pub(crate) async fn refusal(&mut self) -> ClusterError {
        while let Some(met) = self.0.recv().await {
            if let Err(refusal) = met {
                return refusal;
            }
        }
        std::future::pending().await
    }
}

/// Greets the other hives. Completes when all of them have answered, or a majority if the log of the registry says who the members
/// are.
pub(crate) async fn greet(node: &Arc<Node>) -> Result<Late, ClusterError> {
    let (as_of, known) = node.store(GroupId::REGISTRY).read(|log| log.members());
    let positions = node.disk.as_ref().map(|disk| disk.0.positions()).unwrap_or_default();
    let needed = match known.is_empty() {
        true => node.options.peers.len(),
        false => {
            node.lives.lock().recall(known.iter().copied(), as_of);
            known.len() / 2
        }
    };
    let positions = Arc::new(positions);
    let (sender, mut answers) = mpsc::unbounded_channel();
    for peer in &node.options.peers {
        let (of_task, peer, positions, sender) = (node.clone(), *peer, positions.clone(), sender.clone());
        node.spawn(async move {
            let met = meet(&of_task, peer, &positions).await;
            // the receiver ends only with the hive
            let _ = sender.send(met);
        })
    }
    drop(sender);
    for _ in 0..needed {
        match answers.recv().await {
            Some(met) => met?,
            None => return Err(ClusterError::Alone { why: "the hive stops".to_string() }),
        }
    }
    Ok(Late(answers))
}

/// Greets a hive until it answers.
async fn meet(node: &Node, peer: HiveId, positions: &Positions) -> Result<(), ClusterError> {
    let request = encode_many(&RegistryCall::Hello { life: node.me.life, as_of: node.member_as_of() });
    loop {
        let answer = node.transport.call(peer, Channel::Registry, request.clone());
        if let Some(Ok(answer)) = node.within(ATTEMPT_WITHIN, answer).await {
            match decode_many("a greeting", &answer) {
                Ok(RegistryAnswer::Founded) => {
                    // the folder of a life that was a member once
                    return Err(match node.member_as_of() {
                        Some(_) => ClusterError::Replaced { peer },
                        None => ClusterError::Forgotten { peer },
                    });
                }
                Ok(RegistryAnswer::Hello { life, as_of, promises })
                    if node.lives.lock().meet(peer, life, as_of) =>
                {
                    return remembers(node, peer, positions, &promises);
                }
                _ => {}
            }
        }
        node.platform.sleep(RETRY).await
    }
}

/// Another hive says what this one has promised. Checks that its logs, as the start has found them, have it. From then on, calls of
/// the other hive are answered.
pub(crate) fn remembers(
    node: &Node,
    peer: HiveId,
    positions: &Positions,
    promises: &[(GroupId, Promise)],
) -> Result<(), ClusterError> {
    // on the first start of a life, they are of this start
    if node.is_return()
        && let Some(what) = missing(positions, promises)
    {
        return Err(ClusterError::RolledBack { peer, what });
    }
    node.lives.lock().has_answered(peer);
    Ok(())
}

/// Returns what is missing of what this hive has promised.
fn missing(positions: &Positions, promises: &[(GroupId, Promise)]) -> Option<String> {
    promises.iter().find_map(|(group, promise)| {
        let position = positions.get(group).copied().unwrap_or_default();
        Some(format!("in group {}, {}", group.0, promise.missing(position)?))
    })
}
