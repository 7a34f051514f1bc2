//! The calls between hives as bytes.
//!
//! ```text
//! call of a group := length of the head (4 bytes, little-endian), head, bytes of the commands or of a chunk
//! ```
//!
//! Heads and all other calls are encoded like records. Commands follow the head as they are: they are encoded already, and
//! each of them may be as long as a head may be.

use super::promises::Promise;
use super::types::{
    AppendRequest, AppendResponse, Command, GroupId, LogEntry, LogId, MemberId, Payload, SnapshotMeta,
    TransferRequest, Vote, VoteRequest, VoteResponse,
};
use beehive_core::HiveId;
use beehive_core::registry::{Decision, Proposal};
use beehive_protocol::DecodeError;
use beehive_protocol::codec::{decode_many, encode_many, encode_many_into};
use openraft::entry::RaftEntry;
use openraft::{EmptyNode, EntryPayload};
use serde::{Deserialize, Serialize};

/// The head of a call from one member of a group to another.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) group: GroupId,
    pub(crate) from: MemberId,
    pub(crate) to: MemberId,
    pub(crate) call: Call,
}

/// A call of a group. The bytes of its commands, or of its chunk, follow the head.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Call {
    Append {
        vote: Vote,
        previous: Option<LogId>,
        committed: Option<LogId>,
        entries: Vec<EntryHead>,
    },
    Vote(VoteRequest),
    PreVote(VoteRequest),
    /// The leader hands over to another member.
    Transfer(TransferRequest),
    /// A chunk of the snapshot that ends with entry `last`. Chunk 0 replaces the chunks before.
    Chunk {
        last: Option<LogId>,
        number: u32,
    },
    /// Installs the snapshot whose chunks have arrived.
    Install {
        vote: Vote,
        meta: SnapshotMeta,
        chunks: u32,
    },
}

/// An entry without the bytes of its command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EntryHead {
    id: LogId,
    contents: Contents,
}

#[derive(Debug, Serialize, Deserialize)]
enum Contents {
    Blank,
    /// Number of bytes.
    Command(u32),
    Membership(openraft::Membership<MemberId, EmptyNode>),
}

/// The answer to a call of a group.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Append(AppendResponse),
    Vote(VoteResponse),
    Chunk,
    Installed(Vote),
    /// Whether the member accepts the transfer.
    Transfer(bool),
}

/// A call to the registry.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum RegistryCall {
    /// The caller begins a life, or goes on with one.
    Hello {
        life: u64,
        /// The entry of the registry's log that names this life as a member.
        as_of: Option<LogId>,
    },
    Propose(Vec<Proposal>),
    /// The caller wants to lead a group that the called hive leads.
    HandOver(GroupId),
    /// The caller stops, and asks whether the called hive may lead its groups.
    Stays,
    /// The caller has lost what it knew, and asks to take the place of its earlier life.
    Replace {
        life: u64,
    },
}

/// The answer to a call to the registry.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum RegistryAnswer {
    /// The called hive knows the caller by its life.
    Hello {
        /// The life of the called hive.
        life: u64,
        /// The entry of the registry's log that names this life as a member.
        as_of: Option<LogId>,
        /// What the caller has promised to the called hive.
        promises: Vec<(GroupId, Promise)>,
    },
    /// The groups exist already, with another life of the caller.
    Founded,
    Decided(Vec<Decision>),
    /// The called hive does not lead the registry, or cannot decide.
    Elsewhere,
    /// The called hive begins to hand over the group, if it leads it.
    HandsOver,
    /// Whether the called hive has started and does not stop.
    Stays(bool),
    /// The called hive replaces the earlier life of the caller in the groups that it leads.
    Replaces {
        /// The life of the called hive.
        life: u64,
        /// The entry of the registry's log that names this life as a member.
        as_of: Option<LogId>,
        /// What the caller has promised to the called hive, if it has begun to be a member.
        promises: Vec<(GroupId, Promise)>,
    },
}

/// A packet of the failure detector.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ping {
    pub(crate) life: u64,
    /// The hives that the sender has heard lately.
    pub(crate) heard: Vec<HiveId>,
    /// Those of them that hear the sender, too.
    pub(crate) trusted: Vec<HiveId>,
}

impl EntryHead {
    fn of(entry: &LogEntry) -> EntryHead {
        let contents = match &entry.payload {
            EntryPayload::Blank => Contents::Blank,
            EntryPayload::Normal(command) => Contents::Command(command.0.len() as u32),
            EntryPayload::Membership(membership) => Contents::Membership(membership.clone()),
        };
        EntryHead { id: entry.log_id, contents }
    }
}

/// Appends an entry to a buffer: the length of its head (4 bytes, little-endian), the head, and the bytes of its command.
pub(crate) fn push_entry(entry: &LogEntry, buffer: &mut Vec<u8>) {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; size_of::<u32>()]);
    encode_many_into(&EntryHead::of(entry), buffer);
    let length = (buffer.len() - start - size_of::<u32>()) as u32;
    buffer[start..start + size_of::<u32>()].copy_from_slice(&length.to_le_bytes());
    if let EntryPayload::Normal(command) = &entry.payload {
        buffer.extend_from_slice(&command.0)
    }
}

/// Decodes an entry that [`push_entry`] has encoded. Returns `None` if the bytes are not exactly one entry.
pub(crate) fn entry(bytes: &[u8]) -> Option<LogEntry> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (head, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    entries(vec![decode_many("an entry of a log", head).ok()?], rest)?.pop()
}

/// Encodes a request to append entries.
pub(crate) fn append(rpc: &AppendRequest) -> (Call, Vec<&[u8]>) {
    let mut bytes = Vec::new();
    for entry in &rpc.entries {
        if let EntryPayload::Normal(command) = &entry.payload {
            bytes.push(&*command.0)
        }
    }
    let entries = rpc.entries.iter().map(EntryHead::of).collect();
    (Call::Append { vote: rpc.vote, previous: rpc.prev_log_id, committed: rpc.leader_commit, entries }, bytes)
}

/// Adds the bytes behind the head to the entries. Returns `None` if they are not exactly the commands.
pub(crate) fn entries(heads: Vec<EntryHead>, mut bytes: &[u8]) -> Option<Vec<LogEntry>> {
    let mut entries = Vec::with_capacity(heads.len());
    for head in heads {
        let payload: Payload = match head.contents {
            Contents::Blank => EntryPayload::Blank,
            Contents::Membership(membership) => EntryPayload::Membership(membership),
            Contents::Command(length) => {
                let (command, rest) = bytes.split_at_checked(length as usize)?;
                bytes = rest;
                EntryPayload::Normal(Command(command.into()))
            }
        };
        entries.push(LogEntry::new(head.id, payload))
    }
    bytes.is_empty().then_some(entries)
}

/// Encodes a call of a group.
pub(crate) fn join(head: &Head, parts: &[&[u8]]) -> Vec<u8> {
    let encoded = encode_many(head);
    let length = parts.iter().map(|part| part.len()).sum::<usize>();
    let mut bytes = Vec::with_capacity(size_of::<u32>() + encoded.len() + length);
    bytes.extend((encoded.len() as u32).to_le_bytes());
    bytes.extend(encoded);
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes
}

/// Decodes a call of a group. Returns the head and the bytes behind it.
pub(crate) fn split(bytes: &[u8]) -> Result<(Head, &[u8]), DecodeError> {
    let error = || DecodeError { what: "a call of a group", why: "it is too short".to_string() };
    let (length, rest) = bytes.split_first_chunk().ok_or_else(error)?;
    let (head, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(error)?;
    Ok((decode_many("a call of a group", head)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> Vec<u8> {
        let id = |index| LogId::new_term_index(3, index);
        let me = MemberId { hive: HiveId(1), life: 9 };
        let entry = |index, payload| LogEntry::new(id(index), payload);
        let command = |text: &str| EntryPayload::Normal(Command(text.as_bytes().into()));
        let entries = vec![entry(5, EntryPayload::Blank), entry(6, command("one")), entry(7, command("two"))];
        let vote = Vote::new_committed(3, me);
        let rpc = AppendRequest { vote, prev_log_id: Some(id(4)), entries, leader_commit: None };
        let (call, parts) = append(&rpc);
        join(&Head { group: GroupId(2), from: me, to: me, call }, &parts)
    }

    #[test]
    fn entries_arrive_as_they_were_sent() {
        let bytes = call();
        let (head, rest) = split(&bytes).unwrap();
        let Call::Append { entries: heads, previous, .. } = head.call else { panic!("{head:?}") };
        let entries = entries(heads, rest).unwrap();
        assert_eq!((head.group, previous), (GroupId(2), Some(LogId::new_term_index(3, 4))));
        let commands = entries.iter().filter_map(|entry| match &entry.payload {
            EntryPayload::Normal(command) => Some(&*command.0),
            _ => None,
        });
        assert_eq!(commands.collect::<Vec<_>>(), [&b"one"[..], b"two"]);
        assert_eq!(entries.iter().map(|entry| entry.log_id.index).collect::<Vec<_>>(), [5, 6, 7]);
    }

    #[test]
    fn a_call_that_was_cut_or_extended_is_refused() {
        let bytes = call();
        let reads = |bytes: &[u8]| match split(bytes) {
            Ok((Head { call: Call::Append { entries: heads, .. }, .. }, rest)) => {
                entries(heads, rest).is_some()
            }
            _ => false,
        };
        assert!(reads(&bytes));
        assert!((0..bytes.len()).all(|length| !reads(&bytes[..length])));
        assert!(!reads(&[&bytes[..], b"x"].concat()));
    }
}
