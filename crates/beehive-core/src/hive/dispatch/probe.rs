//! `Probe`: the interface through which a hive reports its execution to a test.
//!
//! A hive has at most one probe ([`HiveInner::probe`]). The implementations are in `testing/hooks`,
//! behind the `testing` feature; no code in `hive/` depends on them.

// without the `testing` feature, no probe reads these fields
#![cfg_attr(not(feature = "testing"), allow(dead_code))]

use crate::cell::{BeeId, CellId, CellSet, HiveId};
use crate::context::Ctx;
use crate::hive::consensus::journal::EntryNumber;
use crate::hive::dispatch::effects::{RouteContext, Sink};
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::outputs::Savepoint;
use crate::hive::dispatch::turn::Turn;
use crate::hive::dispatch::types::handler::Handler;
use crate::hive::message::batch::Messages;
use crate::hive::message::dead_letters::DeadLetter;
use crate::message::{Error, Reply};
use crate::panics;
use crate::state::column::Columns;
use crate::state::image::{EncodedCells, Redo};
use crate::time::Time;
use std::any::Any;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// An observation that only the probe can read. The hive keeps it together with the effects of its run, and
/// drops it if those effects are dropped.
pub(crate) type Note = Box<dyn Any + Send>;

/// An observer of one hive. The default implementation of every method does nothing.
///
/// The hive calls a method on the thread on which the reported event takes place, and waits for it to return.
/// Several threads may call methods at once. A method must not call the hive, because the calling thread may
/// hold a bee's body.
///
/// A method returns a [`Note`] if its event may depend on a record that is not yet committed. The hive
/// passes such notes to [`Probe::noted`].
#[allow(unused_variables)]
pub(crate) trait Probe: Send + Sync {
    /// Called once when the hive starts, by `Builder::start`, before it installs the apps.
    fn starting(&self) {}

    /// Called when messages leave an app or enter from outside, before they are mapped, once for each span of
    /// messages with the same type and target. Called by the thread that routes the messages. With a journal,
    /// a bee routes its messages before their record is appended, and again each time the journal refuses the
    /// record.
    fn emitted(&self, batch: Arc<dyn Messages>, range: Range<u32>) {}

    /// Called when a map has named the cells of messages, before the messages enter a mailbox or wait for
    /// an owner. Called by the thread that routes the messages.
    fn handed_over(&self, handler: &Handler, batch: &dyn Messages, range: Range<u32>) -> Option<Note> {
        None
    }

    /// Called when a handed-over message ends without any effect of its handler. The message may be a
    /// duplicate, it may have been refused by a limit or the quarantine, or the hive may have failed to
    /// record the handler's effects and rolled them back. Called by the thread that runs the bee or routes
    /// the message.
    fn ended_unhandled(&self, handler: &Handler, batch: &dyn Messages, index: u32) -> Option<Note> {
        None
    }

    /// Whether the probe compares the states before and after transactions.
    fn compares(&self) -> bool {
        false
    }

    /// Called before a transaction, if the probe [compares](Probe::compares). Returns a copy of the state, or `None`
    /// if the probe skips this transaction.
    fn beginning(&self, state: &mut dyn Encodable) -> Option<EncodedCells> {
        None
    }

    /// Called when the transaction has succeeded or has been rolled back, before a commit. `before`
    /// comes from [`Probe::beginning`]. Returns the name of a dictionary with a change that the transaction did not
    /// record.
    fn hidden_change(&self, before: EncodedCells, state: &mut dyn Encodable) -> Option<&'static str> {
        None
    }

    /// Called when a transaction has succeeded, before its changes are committed and its outputs leave.
    /// Called by the thread that runs the handler. `mark` is the savepoint in `ctx` at which the
    /// transaction's outputs begin.
    fn committing(
        &self,
        transaction: &Transaction,
        uncommitted: &mut dyn Uncommitted,
        ctx: &Ctx,
        mark: Savepoint,
    ) -> Option<Note> {
        None
    }

    /// Called when a transaction has failed, before it is rolled back. Called by the thread that runs
    /// the handler.
    fn failed(&self, transaction: &Transaction, error: &Error) -> Option<Note> {
        None
    }

    /// Called when a message has become a dead letter, before the letter is numbered. Called by the thread
    /// that runs the bee or routes the message.
    fn dead_letter(&self, letter: &DeadLetter) {}

    /// Takes the notes of a run, in order. With a journal, this is called after log entry `entry` was
    /// appended, and the notes become final once the entry is committed. Without an entry, they are final
    /// immediately. Called by the thread that made the notes.
    fn noted(&self, entry: Option<LoggedIn>, notes: Vec<Note>) {}

    /// Takes the notes of a journaled run that has no entry. They become final once `newest`, the bee's
    /// newest entry in flight, is committed, because the run has read the changes of that entry. Called by
    /// the thread that made the notes.
    fn noted_read(&self, newest: Option<LoggedIn>, notes: Vec<Note>) {}

    /// Called when log entry `entry` is committed, before its effects are released. Called by the thread
    /// running the bee that made the entry.
    fn entry_committed(&self, entry: LoggedIn) {}

    /// Called when a bee's state has been rebuilt from its committed state and its entries in flight. This
    /// empties the bee's volatile dictionaries. `cells` contains the bee's cells. Called by the thread that
    /// runs the bee.
    fn restored(&self, app: u16, cells: Vec<CellId>) {}
}

/// An entry: the position of its log among the hive's logs, and the entry's number.
pub(crate) type LoggedIn = (usize, EntryNumber);

/// A transaction without its outcome, as the probe sees it.
pub(crate) struct Transaction<'a> {
    pub(crate) handler: Handler<'a>,
    /// The bee that runs it; `None` for a stateless handler.
    pub(crate) bee: Option<BeeId>,
    /// The message's batch.
    pub(crate) batch: &'a dyn Messages,
    /// Index of the message in the batch.
    pub(crate) index: u32,
    /// The cells that the map named.
    pub(crate) cells: &'a [CellId],
    /// The seed of `Ctx::rng` before the handler ran.
    pub(crate) chance: u64,
    /// The time the handler saw through its context.
    pub(crate) now: Time,
    /// Whether a handler earlier in the answer chain passed the message on. Such a message has no fixed order
    /// relative to messages from the sender itself to the same cells.
    pub(crate) is_passed_on: bool,
    /// Functions that rerun the message.
    pub(crate) rerun: Rerun,
}

/// A bee's state. Volatile dictionaries are left out.
pub(crate) trait Encodable {
    /// Returns all cells, or `None` if one cannot be encoded.
    fn cells(&mut self) -> Option<EncodedCells>;
    /// Returns the changes that the running transaction has recorded.
    fn recorded(&mut self) -> Redo;
    /// Returns the name of a dictionary.
    fn name(&self, dict: u32) -> &'static str;
}

impl<A: Columns> Encodable for A {
    fn cells(&mut self) -> Option<EncodedCells> {
        let images = panics::catch(AssertUnwindSafe(|| self.export(false))).ok()?;
        let mut cells = EncodedCells::default();
        images.into_iter().for_each(|image| cells.insert(image));
        Some(cells)
    }

    fn recorded(&mut self) -> Redo {
        let mut changes = Redo::default();
        let _ = panics::catch(AssertUnwindSafe(|| self.redo(&mut changes)));
        changes
    }

    fn name(&self, dict: u32) -> &'static str {
        A::DICTS.iter().find(|d| d.index == dict).map_or("?", |d| d.name)
    }
}

/// The state that a transaction has changed but not yet committed, and the transaction's answer.
pub(crate) trait Uncommitted {
    /// Returns the changed rows of all dictionaries that are not volatile. If a row cannot be encoded,
    /// returns only the rows that precede it.
    fn changes(&mut self) -> Redo;
    /// Returns the encoded answer: `None` if the handler gave none, empty if it cannot be encoded.
    fn answer(&self) -> Option<Vec<u8>>;
}

/// An app's state and its handler's answer. [`Uncommitted`] hides their types.
pub(crate) struct Finished<'a, A, R> {
    pub(crate) state: &'a mut A,
    pub(crate) answer: &'a Option<R>,
}

impl<A: Columns, R: Reply> Uncommitted for Finished<'_, A, R> {
    fn changes(&mut self) -> Redo {
        self.state.recorded()
    }

    fn answer(&self) -> Option<Vec<u8>> {
        let encoded = |answer: &R| panics::catch(AssertUnwindSafe(|| answer.encoded())).unwrap_or_default();
        self.answer.as_ref().map(encoded)
    }
}

/// A handler's outcome with its encoded answer, or the reason why the handler was not called.
pub(crate) type Replayed = Result<Result<Option<Vec<u8>>, Error>, String>;

/// Functions that know the types of an app and a message, for a probe that does not.
#[derive(Clone, Copy)]
pub(crate) struct Rerun {
    /// Maps and handles the message again. Leaves the changes uncommitted in the state and in the context.
    pub(crate) run: fn(&mut Replay, &[u8]) -> Replayed,
    /// Returns the name of the message and its content as JSON.
    pub(crate) words: fn(&[u8]) -> String,
    /// Returns the cells that the map names for a message from this hive, as text. Empty if the message cannot be decoded.
    pub(crate) cells: fn(&[u8], HiveId) -> Vec<String>,
}

/// The inputs of the second execution of a message.
pub(crate) struct Replay<'a> {
    /// An instance of the app with all cells.
    pub(crate) state: &'a mut dyn Any,
    /// The context, with the time, the origin, the sender and the seed of the first execution.
    pub(crate) ctx: &'a mut Ctx,
    /// The cells that the map named in the first execution.
    pub(crate) cells: &'a CellSet,
    /// The seed for cell ids.
    pub(crate) seed: u64,
    /// Bit set of the dictionaries that each form a single cell.
    pub(crate) whole: u64,
}

impl HiveInner {
    /// Returns the probe, if there is one. Without the `testing` feature, no code can set a probe, so the
    /// compiler removes all calls to it.
    #[inline(always)]
    pub(crate) fn probe(&self) -> Option<&Arc<dyn Probe>> {
        match cfg!(feature = "testing") {
            true => self.probe.as_ref(),
            false => None,
        }
    }
}

impl RouteContext<'_, '_> {
    /// Keeps notes together with the held effects, or gives them to the probe immediately if the sink does
    /// not hold effects.
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
    /// Reports that a bee's state was rebuilt.
    pub(crate) fn note_restored(&mut self, app: u16, cells: impl FnOnce() -> Vec<CellId>) {
        if let Some(probe) = self.hive.probe() {
            probe.restored(app, cells())
        }
    }
}

/// Reports messages being handed over to a handler.
#[cold]
pub(crate) fn handed_over(handler: &Handler, batch: &dyn Messages, range: Range<u32>, cx: &mut RouteContext) {
    let note = cx.turn.hive.probe().and_then(|probe| probe.handed_over(handler, batch, range));
    cx.note(note.into_iter().collect())
}

/// Reports a message that ends without any effect of its handler.
#[cold]
pub(crate) fn ended_unhandled(handler: &Handler, batch: &dyn Messages, index: u32, cx: &mut RouteContext) {
    let note = cx.turn.hive.probe().and_then(|probe| probe.ended_unhandled(handler, batch, index));
    cx.note(note.into_iter().collect())
}
