//! Takes what arrives from other hives to where it belongs.

use super::frames::{self, Answer, Call, Head, Ping, RegistryAnswer, RegistryCall};
use super::group::{Group, Leadership};
use super::node::Node;
use super::registry;
use super::replace;
use super::transport::{Channel, Receiver};
use super::types::{AppendRequest, Chunks, GroupId, LogId, MemberId, Snapshot, VoteRequest};
use crate::limits::{RETRY, SNAPSHOT_BYTES_MAX};
use beehive_core::HiveId;
use beehive_core::cluster::Packets;
use beehive_core::seams::BoxFuture;
use beehive_protocol::codec::{decode_many, encode_many};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};

/// Takes what arrives to where it belongs. It does not keep the node in memory.
pub(crate) struct Router {
    node: Weak<Node>,
    /// The hive's links.
    links: Arc<OnceLock<Arc<dyn Packets>>>,
    /// The snapshots that are arriving.
    arriving: Arc<Mutex<BTreeMap<(GroupId, MemberId), Arriving>>>,
}

/// The chunks of a snapshot that have arrived.
#[derive(Default)]
struct Arriving {
    last: Option<LogId>,
    chunks: Vec<Vec<u8>>,
    bytes: usize,
}

impl Router {
    pub(crate) fn new(node: &Arc<Node>, links: Arc<OnceLock<Arc<dyn Packets>>>) -> Arc<Router> {
        Arc::new(Router { node: Arc::downgrade(node), links, arriving: Arc::default() })
    }
}

impl Receiver for Router {
    fn packet(&self, from: HiveId, channel: Channel, packet: Vec<u8>) {
        match channel {
            Channel::Links => {
                if let Some(links) = self.links.get() {
                    links.arrived(from, &packet)
                }
            }
            Channel::Detector => {
                let (Some(node), Ok(ping)) = (self.node.upgrade(), decode_many::<Ping>("a ping", &packet))
                else {
                    return;
                };
                if node.lives.lock().member(from).is_some_and(|member| member.life == ping.life) {
                    let hears = ping.heard.contains(&node.me.hive);
                    node.hearing.heard(from, hears, ping.trusted, node.platform.now())
                }
            }
            Channel::Raft | Channel::Registry => {}
        }
    }

    fn call(&self, from: HiveId, channel: Channel, request: Vec<u8>) -> BoxFuture<Option<Vec<u8>>> {
        let (node, arriving) = (self.node.clone(), self.arriving.clone());
        Box::pin(async move {
            let node = node.upgrade().filter(|node| !node.has_stopped())?;
            match channel {
                Channel::Raft => {
                    let (head, bytes) = frames::split(&request).ok()?;
                    let is_member = head.from.hive == from && head.to == node.me;
                    if !is_member || !node.lives.lock().seal(head.from) {
                        return None;
                    }
                    let group = node.group(head.group)?;
                    let answer = answer(&node, &group, head, bytes, &arriving).await?;
                    Some(encode_many(&answer))
                }
                Channel::Registry => {
                    let call = decode_many("a call to the registry", &request).ok()?;
                    let answer = match call {
                        RegistryCall::Hello { life, as_of } => {
                            let is_known = node.lives.lock().meet(from, life, as_of);
                            match is_known {
                                true => {
                                    let promises = node.promises.lock().of(MemberId { hive: from, life });
                                    let as_of = node.member_as_of();
                                    RegistryAnswer::Hello { life: node.me.life, as_of, promises }
                                }
                                false => RegistryAnswer::Founded,
                            }
                        }
                        RegistryCall::HandOver(group) => {
                            let to = node.lives.lock().member(from)?;
                            let group = node.group(group).filter(|group| group.leadership().is_here)?;
                            group.hand_over(&node, to).await;
                            RegistryAnswer::HandsOver
                        }
                        RegistryCall::Replace { life } => {
                            replace::admit(&node, MemberId { hive: from, life })?
                        }
                        RegistryCall::Stays => RegistryAnswer::Stays(node.stays()),
                        RegistryCall::Propose(proposals) => {
                            let group = node.group(GroupId::REGISTRY)?;
                            match registry::decide(&node, &group, &proposals).await {
                                Some(decisions) => RegistryAnswer::Decided(decisions),
                                None => RegistryAnswer::Elsewhere,
                            }
                        }
                    };
                    Some(encode_many(&answer))
                }
                Channel::Links | Channel::Detector => None,
            }
        })
    }
}

/// Answers a call of a group.
async fn answer(
    node: &Node,
    group: &Group,
    head: Head,
    bytes: &[u8],
    arriving: &Mutex<BTreeMap<(GroupId, MemberId), Arriving>>,
) -> Option<Answer> {
    let of = (head.group, head.from);
    match head.call {
        Call::Append { vote, previous, committed, entries } => {
            // only the leader sends snapshots: what an earlier one has sent of them is never completed
            arriving.lock().retain(|(group, sender), _| *group != head.group || *sender == head.from);
            let entries = frames::entries(entries, bytes)?;
            let rpc = AppendRequest { vote, prev_log_id: previous, entries, leader_commit: committed };
            group.raft.append_entries(rpc).await.ok().map(Answer::Append)
        }
        Call::Vote(rpc) => {
            group.asks(head.from, rpc.vote.leader_id.term);
            let leadership_transfer = may_depose(node, group, head.from.hive);
            let rpc = VoteRequest { leadership_transfer, ..rpc };
            let last = rpc.last_log_id;
            let answer = group.raft.vote(rpc).await.ok()?;
            if leadership_transfer && !answer.vote_granted && answer.last_log_id > last {
                group.is_ahead(answer.vote.leader_id.term)
            }
            Some(Answer::Vote(answer))
        }
        Call::Transfer(request) => {
            // it may have begun to stop since it has said that it stays
            if *request.to_node_id() == node.me && node.leaves() {
                return Some(Answer::Transfer(false));
            }
            let accepted = group.raft.handle_transfer_leader(request).await.ok()?;
            Some(Answer::Transfer(accepted.is_ok()))
        }
        Call::PreVote(rpc) => group.raft.pre_vote(rpc).await.ok().map(Answer::Vote),
        Call::Chunk { last, number } => {
            let mut arriving = arriving.lock();
            if number == 0 {
                arriving.insert(of, Arriving { last, ..Arriving::default() });
            }
            let snapshot = arriving.get_mut(&of)?;
            let is_next = snapshot.last == last && snapshot.chunks.len() == number as usize;
            snapshot.bytes += bytes.len();
            if !is_next || snapshot.bytes > SNAPSHOT_BYTES_MAX {
                arriving.remove(&of);
                return None;
            }
            snapshot.chunks.push(bytes.to_vec());
            Some(Answer::Chunk)
        }
        Call::Install { vote, meta, chunks } => {
            let snapshot = arriving.lock().remove(&of)?;
            if snapshot.last != meta.last_log_id || snapshot.chunks.len() != chunks as usize {
                return None;
            }
            let chunks: Chunks = Arc::new(snapshot.chunks);
            let last = meta.last_log_id;
            let answer = group.raft.install_full_snapshot(vote, Snapshot { meta, snapshot: chunks }).await;
            let answer = answer.ok()?;
            if answer.vote == vote {
                node.within(node.options.start_within, must_keep(node, group, last)).await??
            }
            node.installed.fetch_add(1, Ordering::Relaxed);
            Some(Answer::Installed(answer.vote))
        }
    }
}

/// Waits until a snapshot that openraft has accepted is on disk, or the entries up to `last` are. Returns `None` if the log has
/// failed.
///
/// openraft accepts a snapshot at once if the log has its last entry, and the leader has said that this is committed. The entry may
/// still wait to be written. If the leader were told that this member has it, and the power failed then, this member would return
/// with less than the leader knows it has, and a leader has no way back: it would offer what comes behind, again and again.
async fn must_keep(node: &Node, group: &Group, last: Option<LogId>) -> Option<()> {
    let (Some(last), store) = (last, node.store(group.id)) else { return Some(()) };
    while !store.keeps(last) {
        node.platform.sleep(RETRY).await
    }
    store.synced().await.ok()
}

/// Checks whether another hive may become the leader of a group although the lease of the present leader runs.
///
/// The lease is long, so that groups without work are quiet. The failure detector ends it early, but only if it suspects the
/// leader on this hive, too: otherwise a hive that does not hear the leader, and is heard by the others, would depose it again
/// and again. A leader that has asked for a later term has no lease.
fn may_depose(node: &Node, group: &Group, candidate: HiveId) -> bool {
    let Leadership { term, leader: MemberId { hive: leader, .. }, .. } = group.leadership();
    if leader == node.me.hive {
        // from then on, this leader accepts nothing, but its own lease runs on
        return group.hands_over_to(candidate);
    }
    leader == candidate || group.is_abandoned(term) || !node.hearing.trusts(leader, node.platform.now())
}

#[cfg(test)]
mod tests;
