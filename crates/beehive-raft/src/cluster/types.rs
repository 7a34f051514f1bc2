//! The types with which openraft is instantiated. One set serves the colonies and the registry.

use beehive_core::HiveId;
use beehive_core::registry::Decision;
use openraft::impls::leader_id_std;
use openraft::{EmptyNode, EntryPayload};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::{Display, Formatter};
use std::sync::Arc;

openraft::declare_raft_types!(
    /// One leader per term: a colony's (term, number) names an entry only if no two leaders share a term.
    pub(crate) Types:
        D = Command,
        R = Reply,
        NodeId = MemberId,
        Node = EmptyNode,
        LeaderId = leader_id_std::LeaderId<u64, MemberId>,
);

pub(crate) type LogId = openraft::type_config::alias::LogIdOf<Types>;
pub(crate) type Vote = openraft::type_config::alias::VoteOf<Types>;
pub(crate) type LogEntry = openraft::type_config::alias::EntryOf<Types>;
pub(crate) type Membership = openraft::type_config::alias::StoredMembershipOf<Types>;
pub(crate) type SnapshotMeta = openraft::type_config::alias::SnapshotMetaOf<Types>;
pub(crate) type Snapshot = openraft::type_config::alias::SnapshotOf<Types, Chunks>;
pub(crate) type Payload = EntryPayload<Command, MemberId, EmptyNode>;
pub(crate) type VoteRequest = openraft::raft::VoteRequest<Types>;
pub(crate) type VoteResponse = openraft::raft::VoteResponse<Types>;
pub(crate) type TransferRequest = openraft::raft::TransferLeaderRequest<Types>;
pub(crate) type AppendRequest = openraft::raft::AppendEntriesRequest<Types>;
pub(crate) type AppendResponse = openraft::raft::AppendEntriesResponse<Types>;

/// A snapshot: the chunks of a state, in order.
pub(crate) type Chunks = Arc<Vec<Vec<u8>>>;

/// A member of a group: one life of a hive.
///
/// A hive that has lost its memory could vote twice in a term, and could forget entries that it has acknowledged. Therefore it
/// is another member, with another life, which no group knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct MemberId {
    pub(crate) hive: HiveId,
    /// A random number.
    pub(crate) life: u64,
}

/// openraft's own tests of a log make members from numbers.
#[cfg(test)]
impl From<u64> for MemberId {
    fn from(number: u64) -> MemberId {
        MemberId { hive: HiveId(number as u32), life: 1 }
    }
}

impl Display for MemberId {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{:x}", self.hive.0, self.life)
    }
}

/// The group of the registry, or that of a colony.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct GroupId(pub(crate) u32);

impl GroupId {
    /// The group of the registry. A colony's group has the number of the colony, and these begin with 1.
    pub(crate) const REGISTRY: GroupId = GroupId(0);
}

/// The contents of an entry, encoded: an entry of a colony's log, or proposals to the registry.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Command(pub(crate) Arc<[u8]>);

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Display for Command {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

// openraft asks for these two. Calls carry commands behind the encoded head: see `frames`.
impl Serialize for Command {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Command {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Command, D::Error> {
        beehive_protocol::Payload::deserialize(deserializer).map(|bytes| Command((&*bytes).into()))
    }
}

/// What a command did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// Nothing: the entry has no command.
    Nothing,
    /// Whether an entry of a colony's log took effect.
    Applied(bool),
    /// The registry's decisions about the proposals, in order.
    Decided(Vec<Decision>),
}
