//! The programming model of Beehive, and the runtime of one hive.
//!
//! An application is a set of handlers over dictionaries, written as if the whole program ran on one thread. From each
//! handler's body, the macros derive which cells a message touches. Every cell has exactly one owner. The guide in the
//! `beehive` crate explains the model.

// This crate runs in the simulator, so it must not use clocks, threads or randomness directly. See clippy.toml.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

extern crate self as beehive;

mod app;
mod attempt;
mod cell;
mod context;
mod diagnose;
mod failure;
mod hash;
mod hive;
mod hive_lost;
mod key;
pub mod limits;
mod mapper;
mod message;
mod mutant;
mod panics;
mod report;
pub mod seams;
mod state;
#[cfg(feature = "testing")]
pub mod testing;
mod view;

mod shape {
    pub(crate) use beehive_protocol::Shape;
}

mod time {
    pub(crate) use beehive_protocol::Time;
}

pub use app::{App, Durability, Handlers, Handles};
pub use beehive_macros::{App, Key, Message, every, handlers, rcv};
pub use beehive_protocol::{Shape, Time};
pub use cell::{AppId, BeeId, CellId, CellSet, HiveId, MapLimit, Outcome, PlaceId};
pub use context::{Ctx, Rng};
pub use failure::RequestError;
pub use hive::{
    Address, Answers, AppStatus, Asked, BeeStatus, Builder, Busy, DeadLetter, EmitStatus, HandlerStatus,
    Hive, Io, Mail, PeerStatus, Provenance, ReadError, ReconfigureError, Reconfigured, ResendError, Restart,
    Shared, StartError, Status, Stopped, StuckStatus, journal, registry,
};
/// Several hives that form a cluster: the network between them, and the place of each hive.
///
/// A hive becomes a member with [`Builder::cluster`]. Its bees then exchange messages with those of the other hives: a
/// message goes to the hive that leads the colony of the bee that owns its cells. A message of a bee stays in the outbox of
/// its log until the other hive has committed the record that consumes it, so it is handled once, even if hives crash and
/// start again. A message from outside holds its credit until then.
///
/// If the cells of a message belong to bees of several hives, these bees come to one hive and merge, and the bee that results
/// handles the message. [`Hive::move_bee`] moves a bee to another hive. A bee moves with its dictionaries, its unhandled
/// messages, its timers, and its memory of the messages that it has handled. While it moves, nobody handles its messages;
/// they wait with their senders. A crash of either hive delays the move. If the other hive
/// cannot be reached for ten seconds, the bee stays where it is.
///
/// If a hive dies, another one that replicates its colonies' logs leads them from then on ([`Hive::lead`]), and goes on with
/// their bees as the dead hive would have after a restart. Messages under way to the dead hive go to the new leader, which
/// recognizes those that were handled. A request that was handled there and not answered ends with
/// [`RequestError::Unavailable`]: its outcome is unknown.
///
/// A hive may also lose a colony and live on: its journal says so ([`JournalEvents::deposed`](crate::journal::JournalEvents::deposed)), or
/// the registry, which the next leader tells first. The hive discards what was not committed, gives back the messages that the
/// bees had accepted, and keeps nothing of the colony. The next leader, which may be the same hive in a later term, goes on.
///
/// No answer is older than what was answered before it was asked for, by any hive. A request that changes something is answered
/// when the log has committed the change. One that changes nothing is answered when the journal has
/// [confirmed](crate::journal::Journal::confirm), after it was handled, that the hive leads the log; all such requests that wait share
/// one confirmation. A hive that is cut off from the others therefore answers nothing, except from `.shared()` views.
///
/// # What a cluster does not do yet
///
/// - This crate elects no leaders: the program calls [`Hive::lead`], or `beehive-raft` (feature `cluster`, experimental) does.
///   Until then, the bees of a hive that is down are not available.
/// - No policy moves bees: they move for merges, and on request.
/// - If a hive crashes between a stateless handler's record of a timer's message and its acknowledgment, and the bee that
///   set the timer then moves before the timer fires again, the handler may run twice.
/// - The rows of `#[volatile]` dictionaries do not move with a bee. A periodic tick may miss a cell that is moving.
/// - A request that an app passes on to the next app of the answer chain may end without an answer if the bee that passes it
///   on moves at the same time. Its message is handled.
/// - A message cannot visit all cells of a dictionary: an app with a handler for that (`each`) is refused at the start. Timers
///   can, each on the hive that has the cell.
/// - Views (`.shared()`) contain only what the hive itself has committed, also about bees that have moved away, unless the program
///   tells the hive what all colonies have committed ([`Membership::follows`](cluster::Membership::follows)). `beehive-raft` does.
/// - A message to an IO bee of another hive arrives at most once: if one of the two hives dies, it may be lost.
/// - A sender's message to other hives waits until the previous one to the same cells is handled.
pub mod cluster {
    pub use crate::hive::links::network::{Membership, Network, Packets};
    pub use crate::hive::{Followed, LeadError, MoveError};
    pub use crate::hive_lost::HiveLost;
    pub use beehive_protocol::Incarnation;
}

pub use key::Key;
pub use mapper::Mapper;
pub use message::{Error, ErrorKind, Message, MessageError, Value};
pub use report::HandlerReport;
pub use state::{
    CellImage, Config, ConfigError, DecodeError, Dict, EncodedCells, Entry, Op, OwnedRows, Redo, RowEntry,
    RowKey, Rows, Table, WholeDict, WholeTable, nearest_name,
};
pub use view::{SharedDict, SharedRows, SharedTable, ViewStatus};

/// The result of a handler, or of a program that embeds a hive. The error type defaults to [`Error`].
pub type Result<T = (), E = Error> = core::result::Result<T, E>;

/// Asserts that an expression is a deterministic function of its inputs and may therefore be part of a key.
///
/// The assertion is checked at run time only: if the expression yields a different key when the handler runs, the
/// handler touches a cell outside its map, and its transaction fails.
#[macro_export]
macro_rules! pure {
    ($e:expr) => {
        $e
    };
}

/// Items used by generated code. Not part of the public API.
#[doc(hidden)]
pub mod __private {
    pub use crate::app::{AppOptions, Durability, Handlers};
    pub use crate::attempt::{Attempt, refused, yielded};
    pub use crate::diagnose::bindings::{StillBound, Watched, still_bound, watched};
    pub use crate::diagnose::fallbacks::{
        As, At, AtValue, CellOtherwise, CellThrough, CellThroughTwo, Field, FieldOtherwise, KeyPart,
        KeyPartOtherwise, MirrorOtherwise, Registration, RegistrationOtherwise, Sound, Undeclared, Unknown,
    };
    pub use crate::diagnose::row_derives::{RowDerives, RowOtherwise, RowWithAll, RowWithoutHash, StoredRow};
    pub use crate::hive::Registrar;
    pub use crate::key::{CellHasher, KeyEncoding, KeyFor, KeyType, KeyTypePart, OrderedKey, Same};
    pub use crate::mapper::{
        DictInfo, DictMeta, Evict, MapEnvelope, Mapper, PlainField, TryLike, assert_plain,
    };
    pub use crate::message::{
        Answer, AnswerCheck, AnswerOtherwise, Done, Each, EncodedFor, ErrorCheck, MessagePart, NoAnswer,
        NoResult, ReplyCheck, Stored, Tick, TickDone,
    };
    pub use crate::report::HandlerReport;
    pub use crate::state::{Column, ConfigError, ConfigSource, PairVisitor, State, Visitor};
    pub use crate::view::{DictChange, DictMirror, Mirror, TableChange, TableMirror};
    pub use serde;

    /// The standard library's macros known to the analysis, and `pure!`. Generated code imports all of them to check
    /// that an unqualified macro name in a handler refers to the standard library's macro.
    pub mod macros {
        pub use crate::pure;
        pub use std::{
            assert, assert_eq, assert_ne, cfg, column, concat, dbg, debug_assert, debug_assert_eq,
            debug_assert_ne, eprint, eprintln, file, format, format_args, line, matches, module_path, panic,
            print, println, stringify, todo, unimplemented, unreachable, vec, write, writeln,
        };
    }

    /// Generated code calls this function in a method with `#[rcv]` or `#[every]` outside a `#[handlers]` block. The
    /// user sees its `must_use` message as a warning.
    #[must_use = "write `#[handlers]` above the impl block: without it `#[rcv]` and `#[every]` do nothing (more: beehive::guide::errors::derives)"]
    pub fn is_no_handler() -> bool {
        true
    }

    /// Converts the return value of a handler that can answer into an optional answer of type `R` or an error
    /// of type `F`.
    #[inline(always)]
    pub fn answer<R, F, T: Answer<R, F>>(returned: T) -> Result<Option<R>, F> {
        returned.split()
    }

    /// Converts the return value of a handler that returns no answer. `R` is the reply of its message, or `()` if the
    /// handler only observes.
    #[inline(always)]
    pub fn unanswered<R: NoAnswer, F, T: Done<(), F>>(returned: T) -> Result<Option<R>, F> {
        returned.done().map(|()| None)
    }

    /// Same as [`unanswered`], for a return type that is written as `Result`, without arguments. If the name hides an
    /// answer, the compiler reports this instead of a missing answer.
    #[inline(always)]
    pub fn bare_result<R, F, T: Done<R, F>>(returned: T) -> Result<Option<R>, F> {
        returned.done().map(|()| None)
    }

    /// Converts the return value of a timer.
    #[inline(always)]
    pub fn ticked<T: TickDone>(returned: T) -> Result<Option<()>, crate::Error> {
        returned.ticked().map(|()| None)
    }
}
