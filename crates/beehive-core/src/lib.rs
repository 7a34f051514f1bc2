//! The programming model of Beehive and one hive to run it on.
//!
//! Write handlers over dictionaries as if the program ran alone; the cells that each message touches are derived from
//! the handler's body, and every cell has exactly one owner. See the guide in the `beehive` crate.

// the simulator runs this crate: see clippy.toml
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

extern crate self as beehive;

mod app;
mod attempt;
mod cell;
mod context;
mod hash;
mod hive;
mod key;
pub mod limits;
mod mapper;
mod message;
mod panics;
mod report;
pub mod seams;
mod shape;
mod spared;
mod state;
#[cfg(feature = "testing")]
pub mod testing;
mod time;
mod view;

pub use app::{App, Handlers, Handles};
pub use beehive_macros::{App, Key, Message, every, handlers, rcv};
pub use cell::{BeeId, CellId, CellSet, HiveId, Outcome, PlaceId};
pub use context::{Ctx, Rng};
pub use hive::{
    Address, Answers, AppStatus, Asked, BeeStatus, Builder, Busy, DeadLetter, EmitStatus, HandlerStatus,
    Hive, Io, Mail, PeerStatus, Provenance, ReadError, ReconfigureError, Reconfigured, RequestError,
    ResendError, Restart, Shared, StartError, Status, Stopped, StuckStatus, journal, registry,
};
pub use key::Key;
pub use mapper::Mapper;
pub use message::{Error, ErrorKind, Message, Value};
pub use report::HandlerReport;
pub use shape::Shape;
pub use state::{
    CellImage, Config, ConfigError, DecodeError, Dict, EncodedCells, Entry, Op, RowEntry, RowKey, Rows,
    Table, WholeDict, WholeTable, nearest_name,
};
pub use time::Time;
pub use view::{SharedDict, SharedRows, SharedTable, SnapshotStatus};

/// What a handler or a program around a hive returns, when it may fail.
pub type Result<T = (), E = Error> = core::result::Result<T, E>;

/// Asserts that an expression is a deterministic function of what it is given, so that it may be part of a key.
///
/// The promise is checked at run time only: a handler that then touches another cell is stopped.
#[macro_export]
macro_rules! pure {
    ($e:expr) => {
        $e
    };
}

/// What derived code uses. Not for people.
#[doc(hidden)]
pub mod __private {
    pub use crate::app::{AppOptions, Handlers};
    pub use crate::attempt::{Attempt, refused, yielded};
    pub use crate::hive::Registrar;
    pub use crate::key::{CellHasher, KeyEncoding, KeyFor, KeyType, KeyTypePart, OrderedKey, Same};
    pub use crate::mapper::{
        DictInfo, DictMeta, Evict, MapEnvelope, Mapper, PlainField, TryLike, assert_plain,
    };
    pub use crate::message::{Answer, Done, Each, EncodedFor, MessagePart, NoAnswer, Stored, Tick};
    pub use crate::report::HandlerReport;
    pub use crate::spared::{
        As, At, AtValue, CellOtherwise, CellThrough, CellThroughTwo, Field, FieldOtherwise, KeyPart,
        KeyPartOtherwise, MirrorOtherwise, Registration, RegistrationOtherwise, Sound, Undeclared, Unknown,
    };
    pub use crate::state::{Column, ConfigError, ConfigSource, PairVisitor, State, StoredRow, Visitor};
    pub use crate::view::{DictChange, DictMirror, Mirror, TableChange, TableMirror};
    pub use serde;

    /// Says what a method with `#[rcv]` is that no `#[handlers]` has seen.
    #[must_use = "write `#[handlers]` above the impl block: without it `#[rcv]` and `#[every]` do nothing (more: beehive::guide::errors::derives)"]
    pub fn is_no_handler() -> bool {
        true
    }

    /// The answer of a handler that can answer. Its message is answered with an `R`.
    #[inline(always)]
    pub fn answer<R, T: Answer<R>>(returned: T) -> Result<Option<R>, crate::Error> {
        returned.split()
    }

    /// The outcome of a handler that answers nothing, where there is nothing to be answered.
    #[inline(always)]
    pub fn unanswered<R: NoAnswer, T: Done>(returned: T) -> Result<Option<R>, crate::Error> {
        returned.done().map(|()| None)
    }

    /// The outcome of a handler that leaves the answer to others.
    #[inline(always)]
    pub fn outcome<R, T: Done>(returned: T) -> Result<Option<R>, crate::Error> {
        returned.done().map(|()| None)
    }
}
