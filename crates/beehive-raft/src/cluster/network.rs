//! openraft's way to the other members of a group, over the transport.

use super::frames::{self, Answer, Call, Head};
use super::node::Node;
use super::transport::Channel;
use super::types::{
    AppendRequest, AppendResponse, Chunks, GroupId, MemberId, Snapshot, TransferRequest, Types, Vote,
    VoteRequest, VoteResponse,
};
use crate::limits::{CHUNK_BYTES, CHUNK_WITHIN};
use beehive_protocol::codec::decode_many;
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{Backoff, RPCOption};
use openraft::raft::{SnapshotResponse, TransferLeaderError, TransferLeaderResponse};
use openraft::{EmptyNode, OptionalSend, RaftNetworkFactory, RaftNetworkV2};
use std::cmp::Ordering;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

type Failure = RPCError<Types>;

/// Pauses between the attempts to reach a member.
const BACKOFF: [Duration; 4] = [
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(50),
    Duration::from_millis(100),
];

/// Makes the ways to the members of a group.
pub(crate) struct Paths {
    pub(crate) node: Arc<Node>,
    pub(crate) group: GroupId,
}

impl RaftNetworkFactory<Types> for Paths {
    type Network = Path;

    async fn new_client(&mut self, to: MemberId, _: &EmptyNode) -> Path {
        Path { node: self.node.clone(), group: self.group, to }
    }
}

/// The way to one member of a group.
pub(crate) struct Path {
    node: Arc<Node>,
    group: GroupId,
    to: MemberId,
}

impl Path {
    async fn call(&self, call: Call, parts: &[&[u8]], within: Duration) -> Result<Answer, Failure> {
        let head = Head { group: self.group, from: self.node.me, to: self.to, call };
        let request = frames::join(&head, parts);
        let answer = self.node.transport.call(self.to.hive, Channel::Raft, request);
        let answer = match self.node.within(within, answer).await {
            None => return Err(Unreachable::from_string("there was no answer in time").into()),
            Some(Err(unanswered)) => return Err(Unreachable::from_string(unanswered.why).into()),
            Some(Ok(answer)) => answer,
        };
        decode_many("an answer", &answer).map_err(|error| NetworkError::from_string(error).into())
    }
}

/// The error of a member that answers something else than it was asked.
fn confused() -> Failure {
    NetworkError::from_string("the answer belongs to another call").into()
}

impl RaftNetworkV2<Types> for Path {
    type SnapshotData = Chunks;

    async fn append_entries(
        &mut self,
        rpc: AppendRequest,
        option: RPCOption,
    ) -> Result<AppendResponse, Failure> {
        let (call, parts) = frames::append(&rpc);
        // a large entry takes longer than the time between two heartbeats, and would never arrive
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let within = option.hard_ttl() + CHUNK_WITHIN * (bytes / CHUNK_BYTES) as u32;
        let (term, last) = (rpc.vote.leader_id.term, rpc.entries.last().map(|entry| entry.log_id));
        match self.call(call, &parts, within).await? {
            Answer::Append(answer) => {
                let has = match &answer {
                    AppendResponse::Success => last.or(rpc.prev_log_id),
                    AppendResponse::PartialSuccess(last) => *last,
                    AppendResponse::Conflict | AppendResponse::HigherVote(_) => return Ok(answer),
                };
                self.node.promises.lock().note(self.to, self.group, term, has);
                Ok(answer)
            }
            _ => Err(confused()),
        }
    }

    async fn vote(&mut self, rpc: VoteRequest, option: RPCOption) -> Result<VoteResponse, Failure> {
        let (term, last) = (rpc.vote.leader_id.term, rpc.last_log_id);
        match self.call(Call::Vote(rpc), &[], option.hard_ttl()).await? {
            Answer::Vote(answer) => {
                if answer.vote_granted {
                    self.node.promises.lock().note(self.to, self.group, term, None)
                }
                if !answer.vote_granted
                    && let Some(group) = self.node.group(self.group)
                {
                    match answer.last_log_id.cmp(&last) {
                        Ordering::Greater => group.is_behind(self.node.platform.now()),
                        // it has voted for itself, or its term is higher: the next term is this member's
                        Ordering::Less => group.is_ahead(term.max(answer.vote.leader_id.term)),
                        Ordering::Equal => {}
                    }
                }
                Ok(answer)
            }
            _ => Err(confused()),
        }
    }

    async fn pre_vote(&mut self, rpc: VoteRequest, option: RPCOption) -> Result<VoteResponse, Failure> {
        match self.call(Call::PreVote(rpc), &[], option.hard_ttl()).await? {
            Answer::Vote(answer) => Ok(answer),
            _ => Err(confused()),
        }
    }

    async fn transfer_leader(
        &mut self,
        request: TransferRequest,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<Types>, Failure> {
        let expected = request.last_log_id().copied();
        match self.call(Call::Transfer(request), &[], option.hard_ttl()).await? {
            Answer::Transfer(true) => Ok(Ok(())),
            // openraft only logs it
            Answer::Transfer(false) => Ok(Err(TransferLeaderError::LogNotFlushed { expected, actual: None })),
            _ => Err(confused()),
        }
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let Snapshot { meta, snapshot } = snapshot;
        let send = async {
            for (chunk, number) in snapshot.iter().zip(0..) {
                let call = Call::Chunk { last: meta.last_log_id, number };
                if !matches!(self.call(call, &[chunk], CHUNK_WITHIN).await?, Answer::Chunk) {
                    return Err(confused());
                }
            }
            let install = Call::Install { vote, meta: meta.clone(), chunks: snapshot.len() as u32 };
            match self.call(install, &[], option.hard_ttl()).await? {
                Answer::Installed(answered) => {
                    if answered == vote {
                        let mut promises = self.node.promises.lock();
                        promises.note(self.to, self.group, vote.leader_id.term, meta.last_log_id)
                    }
                    Ok(SnapshotResponse::new(answered))
                }
                _ => Err(confused()),
            }
        };
        tokio::select! {
            biased;
            closed = cancel => Err(closed.into()),
            sent = send => sent.map_err(Into::into),
        }
    }

    fn backoff(&self) -> Option<Backoff> {
        let last = BACKOFF[BACKOFF.len() - 1];
        Some(Backoff::new(BACKOFF.into_iter().chain(std::iter::repeat(last))))
    }
}
