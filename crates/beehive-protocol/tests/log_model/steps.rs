//! The steps of a random history.

use crate::HANDLERS;
use proptest::prelude::*;

/// Number of bees that exist at the same time.
pub(crate) const BEES: u64 = 5;

/// The next step of the hive. A bee is named by its place among [`BEES`]. An index counts modulo the number of items to
/// choose from.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A bee emits, and consumes the oldest messages in the outbox.
    Work { bee: u64, emits: usize, consumes: usize },
    /// A bee consumes messages of an outside lane, possibly for the second time.
    FromOutside { bee: u64, lane: usize, seq: u64, count: u32, floor: u64 },
    /// A bee consumes messages of an outside lane without effect, possibly before the log contains the bee.
    Consumed { bee: u64, lane: usize, seq: u64, count: u32, floor: u64 },
    /// A stateless handler consumes a message, or a sweep begins, so no bee is involved.
    Admit { lane: usize, seq: u64, handler: u32, is_sweep: bool },
    /// A bee merges into another one, or has done so before.
    Fuse { from: u64, into: u64 },
    /// A bee ends.
    Release { bee: u64 },
    /// A lane ends.
    Retire { lane: usize },
    /// A bee emits a sweep.
    BeginSweep { bee: u64 },
    /// A sweep reaches cells, while others lose their owner.
    Expand { cells: Vec<u64>, gone: Vec<u64>, ends: bool },
    /// A sweep visits cells: with effect, without effect, or in another log.
    Visit { bee: u64, cells: Vec<u64>, how: u8 },
    /// A bee consumes part of a message of a bee of another log, possibly for the second time.
    FromAnotherLog { bee: u64, lane: usize, seq: u64, part: u64, floor: u64 },
    /// An app of another log has handled the oldest messages in the outbox and an open sweep.
    Acked { count: usize },
    /// Applies an entry that was executed on another state.
    Stale { bee: u64 },
    /// A bee is about to move to another log.
    Freeze { bee: u64, to: u32 },
    /// Another log has adopted the bee, if it is frozen.
    Drop { bee: u64 },
    /// The move of a frozen bee is abandoned. The registry may have raised its epoch.
    Thaw { bee: u64, raises: bool },
    /// A bee begins to move to this log, with a copy of this size. Its copy may be staged already.
    Arrive { bee: u64, size: u8 },
    /// The next parts of a copy are staged, or the complete copy is adopted.
    Continue { bee: u64, parts: u8 },
    /// The move to this log is abandoned.
    Unstage { bee: u64 },
    /// The registry has given cells to a new bee.
    Create { bee: u64 },
    /// A bee gives a cell to a new one.
    Split { bee: u64, new: u64, cell: usize },
    /// The registry knows a change.
    Told { what: usize },
    /// An app has settings of this version.
    Settings { app: u16, version: u32 },
    /// The program has other types.
    Shapes { name: u8 },
    /// The log gets a marker that names a message, or loses it.
    Mark { names: Option<u64> },
    /// A term begins. An entry of the earlier term arrives late.
    Term { is_on_last: bool },
    /// The hive logs its time.
    Time { now: u64 },
    /// The log learns its place.
    Place { number: u32, of: u32 },
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let bee = || 0..BEES;
    let cells = || prop::collection::vec(0..6u64, 0..4);
    let (lane, seq, floor) = (|| 0..2usize, || 0..12u64, || 0..10u64);
    let messages = || (bee(), lane(), seq(), 1..4u32, floor());
    let of_bees = prop_oneof![
        6 => (bee(), 0..3usize, 0..3usize).prop_map(|(bee, emits, consumes)| Step::Work { bee, emits, consumes }),
        4 => messages()
            .prop_map(|(bee, lane, seq, count, floor)| Step::FromOutside { bee, lane, seq, count, floor }),
        3 => messages()
            .prop_map(|(bee, lane, seq, count, floor)| Step::Consumed { bee, lane, seq, count, floor }),
        3 => (bee(), lane(), seq(), 0..3u64, floor())
            .prop_map(|(bee, lane, seq, part, floor)| Step::FromAnotherLog { bee, lane, seq, part, floor }),
        2 => (lane(), seq(), HANDLERS, any::<bool>())
            .prop_map(|(lane, seq, handler, is_sweep)| Step::Admit { lane, seq, handler, is_sweep }),
        1 => bee().prop_map(|bee| Step::BeginSweep { bee }),
        2 => (cells(), cells(), any::<bool>()).prop_map(|(cells, gone, ends)| Step::Expand { cells, gone, ends }),
        2 => (bee(), cells(), 0..3u8).prop_map(|(bee, cells, how)| Step::Visit { bee, cells, how }),
        2 => (0..4usize).prop_map(|count| Step::Acked { count }),
    ];
    let of_owners = prop_oneof![
        2 => (bee(), bee()).prop_map(|(from, into)| Step::Fuse { from, into }),
        1 => bee().prop_map(|bee| Step::Release { bee }),
        1 => (0..4usize).prop_map(|lane| Step::Retire { lane }),
        1 => bee().prop_map(|bee| Step::Create { bee }),
        2 => (bee(), bee(), 0..4usize).prop_map(|(bee, new, cell)| Step::Split { bee, new, cell }),
        1 => (0..4usize).prop_map(|what| Step::Told { what }),
    ];
    let of_moves = prop_oneof![
        4 => (bee(), 1..3u32).prop_map(|(bee, to)| Step::Freeze { bee, to }),
        3 => bee().prop_map(|bee| Step::Drop { bee }),
        2 => (bee(), any::<bool>()).prop_map(|(bee, raises)| Step::Thaw { bee, raises }),
        3 => (bee(), 0..4u8).prop_map(|(bee, size)| Step::Arrive { bee, size }),
        6 => (bee(), 1..9u8).prop_map(|(bee, parts)| Step::Continue { bee, parts }),
        1 => bee().prop_map(|bee| Step::Unstage { bee }),
    ];
    let of_the_hive = prop_oneof![
        2 => (0..2u16, 0..4u32).prop_map(|(app, version)| Step::Settings { app, version }),
        1 => (0..3u8).prop_map(|name| Step::Shapes { name }),
        1 => prop::option::of(0..3u64).prop_map(|names| Step::Mark { names }),
        2 => any::<bool>().prop_map(|is_on_last| Step::Term { is_on_last }),
        1 => (0..60u64).prop_map(|now| Step::Time { now }),
        1 => (0..4u32, 1..5u32).prop_map(|(number, of)| Step::Place { number, of }),
        1 => bee().prop_map(|bee| Step::Stale { bee }),
    ];
    prop_oneof![24 => of_bees, 7 => of_owners, 10 => of_moves, 4 => of_the_hive]
}
