//! `Probe`: what a hive reports about its execution to a test that observes it.
//!
//! A hive has at most one probe ([`HiveInner::probe`]). The implementations are part of the `testing` feature, in
//! `testing/hooks`; nothing in `hive/` knows them.

// without the feature there is no probe that reads these fields
#![cfg_attr(not(feature = "testing"), allow(dead_code))]

use crate::cell::{BeeId, CellId, CellSet};
use crate::context::Ctx;
use crate::hive::consensus::journal::EntryNumber;
use crate::hive::dispatch::effects::{RouteContext, Sink};
use crate::hive::dispatch::handler::Handler;
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::outputs::Savepoint;
use crate::hive::dispatch::turn::Turn;
use crate::hive::message::batch::Messages;
use crate::message::{Error, Reply};
use crate::panics;
use crate::state::column::Columns;
use crate::state::image::Op;
use crate::time::Time;
use std::any::Any;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// An observation that only the probe can read. The hive keeps it with the effects of the run that it belongs to, and drops
/// it if these effects are dropped.
pub(crate) type Note = Box<dyn Any + Send>;

/// An observer of one hive. Every method has a default that does nothing.
///
/// The hive calls the methods on the thread that does what they report, possibly on several threads at once, and waits for
/// them to return. A method must not call the hive: the caller may hold the body of a bee.
///
/// A method that returns a [`Note`] reports something that a record may have to commit first. The hive gives such notes back
/// with [`Probe::noted`].
#[allow(unused_variables)]
pub(crate) trait Probe: Send + Sync {
    /// The hive starts. `Builder::start` calls this once, before it installs the apps.
    fn starting(&self) {}

    /// Messages leave an app or come in from outside, and are not mapped yet. The thread that routes them calls this, once
    /// for each message type and target of what a transaction emitted; with a journal when the record is committed.
    fn emitted(&self, batch: Arc<dyn Messages>, range: Range<u32>) {}

    /// A handler's map has named cells for messages, which are about to be put into a mailbox, or to wait until their cells
    /// have one owner. The thread that routes them calls this.
    fn handed_over(&self, handler: &Handler, batch: &dyn Messages, range: Range<u32>) -> Option<Note> {
        None
    }

    /// A message that was handed over ends without its handler: the dedup set has it already, or the hive refuses it. The
    /// thread that runs the bee, or that routes the message, calls this.
    fn ended_unhandled(&self, handler: &Handler, batch: &dyn Messages, index: u32) -> Option<Note> {
        None
    }

    /// A transaction has succeeded and is about to commit. The thread that runs the handler calls this before the changes
    /// are kept and before the outputs leave; `mark` is where the outputs of the transaction begin in `ctx`.
    fn committing(
        &self,
        transaction: &Transaction,
        uncommitted: &mut dyn Uncommitted,
        ctx: &Ctx,
        mark: Savepoint,
    ) -> Option<Note> {
        None
    }

    /// A transaction has failed and is about to be rolled back. The thread that runs the handler calls this.
    fn failed(&self, transaction: &Transaction, error: &Error) -> Option<Note> {
        None
    }

    /// Takes the notes of a run, in order. With a journal the hive calls this when log entry `entry` was appended, which
    /// commits them if it is committed. Without an entry the notes are final. The thread that made the notes calls this.
    fn noted(&self, entry: Option<EntryNumber>, notes: Vec<Note>) {}

    /// Log entry `entry` is committed. The thread that runs the bee that made the entry calls this, before the effects of the
    /// entry leave.
    fn entry_committed(&self, entry: EntryNumber) {}

    /// The state of a bee was built again from its committed state and its entries in flight, which empties its volatile
    /// dictionaries. `cells` are the cells of the bee. The thread that runs the bee calls this.
    fn restored(&self, app: u16, cells: Vec<CellId>) {}
}

/// A transaction without its outcome, for the probe.
pub(crate) struct Transaction<'a> {
    pub(crate) handler: Handler<'a>,
    /// The bee that runs it. None for a stateless handler.
    pub(crate) bee: Option<BeeId>,
    /// The batch of the message.
    pub(crate) batch: &'a dyn Messages,
    /// Index of the message in the batch.
    pub(crate) index: u32,
    /// The cells that the map named.
    pub(crate) cells: &'a [CellId],
    /// The seed of `Ctx::rng` before the handler ran.
    pub(crate) chance: u64,
    /// The time that the handler was given.
    pub(crate) now: Time,
    /// Whether a handler earlier in the chain passed the message on. There is no order between what one bee passes on and
    /// what the sender itself sends to the same cells.
    pub(crate) is_passed_on: bool,
    /// Functions that run the message again.
    pub(crate) rerun: Rerun,
}

/// State that a transaction has changed and not committed yet, and its answer.
pub(crate) trait Uncommitted {
    /// Returns the changed rows of dictionaries that are not volatile. If a row cannot be encoded,
    /// returns the rows before it.
    fn changes(&mut self) -> Vec<Op>;
    /// Returns the encoded answer: `None` if the handler gave none, empty if it cannot be encoded.
    fn answer(&self) -> Option<Vec<u8>>;
}

/// State of an app and the answer of its handler, whose types [`Uncommitted`] hides.
pub(crate) struct Finished<'a, A, R> {
    pub(crate) state: &'a mut A,
    pub(crate) answer: &'a Option<R>,
}

impl<A: Columns, R: Reply> Uncommitted for Finished<'_, A, R> {
    fn changes(&mut self) -> Vec<Op> {
        let mut changes = Vec::new();
        let _ = panics::catch(AssertUnwindSafe(|| self.state.redo(&mut changes)));
        changes
    }

    fn answer(&self) -> Option<Vec<u8>> {
        let encoded = |answer: &R| panics::catch(AssertUnwindSafe(|| answer.encoded())).unwrap_or_default();
        self.answer.as_ref().map(encoded)
    }
}

/// The outcome of a handler with its encoded answer; or why the handler was not called.
pub(crate) type Replayed = Result<Result<Option<Vec<u8>>, Error>, String>;

/// Functions that know the types of an app and of a message, for a probe that does not.
#[derive(Clone, Copy)]
pub(crate) struct Rerun {
    /// Maps and handles the message again; leaves the changes uncommitted, in the state and in the context.
    pub(crate) run: fn(&mut Replay, &[u8]) -> Replayed,
    /// Returns the name of the message and its content as JSON.
    pub(crate) words: fn(&[u8]) -> String,
}

/// What the second execution of a message uses.
pub(crate) struct Replay<'a> {
    /// An instance of the app that has all cells.
    pub(crate) state: &'a mut dyn Any,
    /// The context, with the time, the origin, the sender and the seed of the first execution.
    pub(crate) ctx: &'a mut Ctx,
    /// The cells that the map named in the first execution.
    pub(crate) cells: &'a CellSet,
    /// The seed for cell ids.
    pub(crate) seed: u64,
    /// The dictionaries that are one cell as a whole, a bit for each.
    pub(crate) whole: u64,
}

impl HiveInner {
    /// Returns the probe, if there is one. Without the `testing` feature nothing can set one, and the
    /// compiler removes the calls.
    #[inline(always)]
    pub(crate) fn probe(&self) -> Option<&Arc<dyn Probe>> {
        match cfg!(feature = "testing") {
            true => self.probe.as_ref(),
            false => None,
        }
    }
}

impl RouteContext<'_, '_> {
    /// Keeps notes with the effects that are held back until a record is committed, or gives them to the probe at once if
    /// none are held back.
    #[cold]
    pub(crate) fn note(&mut self, notes: Vec<Note>) {
        match (&mut self.sink, self.turn.hive.probe()) {
            (_, None) => {}
            (Sink::Held(effects), _) => effects.notes.extend(notes),
            (Sink::Now, Some(probe)) => probe.noted(None, notes),
        }
    }
}

impl Turn<'_> {
    /// Reports that the state of a bee was built again.
    pub(crate) fn note_restored(&mut self, app: u16, cells: impl FnOnce() -> Vec<CellId>) {
        if let Some(probe) = self.hive.probe() {
            probe.restored(app, cells())
        }
    }
}

/// Reports messages that are handed over for a handler.
#[cold]
pub(crate) fn handed_over(handler: &Handler, batch: &dyn Messages, range: Range<u32>, cx: &mut RouteContext) {
    let note = cx.turn.hive.probe().and_then(|probe| probe.handed_over(handler, batch, range));
    cx.note(note.into_iter().collect())
}

/// Reports a message that ends without its handler.
#[cold]
pub(crate) fn ended_unhandled(handler: &Handler, batch: &dyn Messages, index: u32, cx: &mut RouteContext) {
    let note = cx.turn.hive.probe().and_then(|probe| probe.ended_unhandled(handler, batch, index));
    cx.note(note.into_iter().collect())
}
