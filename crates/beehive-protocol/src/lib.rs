//! Everything on which the hives in a cluster must agree, as data and pure functions.
//!
//! ```text
//!   handlers ran                                                    a message has cells of
//!        |                                                          no bee or of several bees
//!        v                                                                  |
//!   Record  --->  Entry  --->  journal  --->  LogState::apply          Proposal
//!   (record)      number,      (a file, or    (log_state)                   |
//!                 after        Raft; not         |                          v
//!                              in this crate)    |  bees: cells,       RegistryState::apply
//!                                                |    DedupTable       (registry)
//!                                                |  outbox, sweeps          |
//!                                                |  settings, Shapes        v
//!                                                v                     Decision
//!                                       the same on every hive
//!
//!   below both:  ids, lane (layout of lanes), hash, image (cells as bytes), shape, codec (bytes), limits
//! ```
//!
//! Both state machines are total functions from a state and a command to a state. They use no threads, locks, clocks,
//! randomness or I/O. A hive that runs alone takes the commands from memory or a file; a cluster takes those committed
//! by Raft. The traits through which a hive reaches its log and the registry (`Journal`, `Registry`) are in
//! `beehive-core`, which depends on this crate.
//!
//! # Words of the field
//!
//! | here | Raft or Kafka |
//! |---|---|
//! | [`Entry::number`], [`Entry::after`] | index of an entry, index of the previous entry |
//! | `JournalEvents::released(upto)` | the commit index advanced |
//! | `JournalEvents::aborted(last)` | the log was truncated after `last` |
//! | [`LogState`], [`LogState::apply`] | the replicated state machine, and its step |
//! | [`LaneId`] | producer id |
//! | [`Seq`] | sequence number |
//! | *floor* of a lane | low-water mark: the sender resends no message below it |
//! | `Freeze`, `Stage`, `Adopt`, `Drop` of [`Record`] | hand-over of a shard between groups (two-phase: the target's `Adopt` decides) |
//! | [`DedupTable`] | the state that a Kafka broker keeps for an idempotent producer; Raft's client session table |
//! | [`Proposal`], [`Decision`] | client command to the registry's group, and its result |
//! | [`CrashMarker`], [`Suspect`] | quarantine of poison messages |
//!
//! # Formats
//!
//! A log may be older than the program that reads it. `tests/golden.rs` compares the encoding of every record with the
//! bytes in `tests/golden_bytes.txt`. A change to that file is a change to the format.

#![forbid(unsafe_code)]
#![warn(missing_docs)]
// The same inputs must give the same state and the same bytes in every run.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod address;
mod changes;
pub mod codec;
mod consumed;
mod crash_marker;
mod dedup;
mod emits;
mod errors;
mod few_map;
mod few_set;
mod hash;
mod ids;
mod image;
mod lane;
mod lane_set;
pub mod limits;
mod log_place;
mod log_state;
mod moves;
mod outline;
mod packed_rows;
mod reconcile;
mod record;
mod redo;
mod registry;
mod settings;
mod shape;
mod shapes;
mod snapshot;
mod stage_parts;
mod time;

pub use address::Address;
pub use changes::Untold;
pub use codec::DecodeError;
pub use crash_marker::{CrashMarker, Suspect};
pub use dedup::DedupTable;
pub use emits::{Emit, Emits, Payload};
pub use few_set::FewSet;
pub use hash::CellHasher;
pub use ids::{
    AppId, BeeId, CellId, CellSet, ColonyId, EntryNumber, Epoch, HandlerId, HiveId, Incarnation, LaneId,
    MessageId, MessageTypeId, Part, PlaceId, Seq,
};
pub use image::{CellImage, EncodedCells};
pub use lane::Numbers;
pub use lane_set::LaneSet;
pub use log_place::LogPlace;
pub use log_state::{BeeImage, LogState, Staged, Sweep, Waiting};
pub use moves::unfinished_moves;
pub use reconcile::{Leader, StageFrame, Step, changes, forget, frames, release, split, stage, steps};
pub use record::{
    Acked, Consumed, Entry, Input, InputRuns, Record, SWEEP_PARTS, StagePart, Visited, Work, sweep_order,
};
pub use redo::{Op, Ops, Redo, RedoEnd};
pub use registry::{
    Aim, AppEntry, BeeEntry, ColonyEntry, Decision, HiveEntry, Proposal, RegistryState, Restored,
};
pub use settings::LoggedSettings;
pub use shape::Shape;
pub use shapes::{AppShapes, Shapes};
pub use snapshot::{MergedChunks, SnapshotChunks, SnapshotLoader};
pub use time::Time;
