//! `Recorder`: a probe that records the execution of a hive, so that a test can repeat it with a single bee.
//!
//! The thread that holds a bee's body records a transaction before any of its effects become visible elsewhere. One
//! bee's events are therefore in commit order, and each event comes after those that caused it. With a journal, an
//! event contains the number of the entry that commits it. A transaction whose entry is missing from the log is
//! treated as never executed.

use crate::cell::{BeeId, CellId, CellSet, HiveId};
use crate::context::Ctx;
use crate::hive::consensus::journal::AppId;
use crate::hive::dispatch::outputs::{Savepoint, Sent};
use crate::hive::dispatch::probe::{LoggedIn, Note, Probe, Rerun, Transaction, Uncommitted};
use crate::hive::dispatch::types::handler::Handler;
use crate::hive::message::batch::{Address, Messages, Source};
use crate::message::Error;
use crate::panics;
use crate::state::image::Redo;
use crate::testing::hooks::inspect::Replica;
use crate::time::Time;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A message for one handler of one app.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Given {
    /// The app's number.
    pub(crate) app: u16,
    /// The number of the handler in its app.
    pub(crate) handler: usize,
    /// The encoded message.
    pub(crate) bytes: Vec<u8>,
    /// The seed of `Ctx::rng`, which distinguishes messages with equal content.
    pub(crate) chance: u64,
}

impl Given {
    fn of(handler: &Handler, batch: &dyn Messages, index: u32, chance: u64) -> Given {
        // A message that cannot be encoded fails elsewhere. Here it is recorded as empty.
        let encode = || batch.payload(index).map_or_else(Vec::new, |payload| payload.to_vec());
        let bytes = panics::catch(AssertUnwindSafe(encode)).unwrap_or_default();
        Given { app: handler.app, handler: handler.number, bytes, chance }
    }
}

/// A sender whose messages must be handled in the order in which it sent them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Sender {
    Io(HiveId, u64),
    Bee(u16, BeeId),
}

impl Sender {
    /// Returns the sender of a batch. Returns `None` if the order of its messages is not guaranteed, because a timer or
    /// a stateless handler sent them, or because they entered through the `Hive` itself.
    fn of(source: &Source) -> Option<Sender> {
        match (source.sender, source.bee) {
            (Address::Io(hive, id), _) => Some(Sender::Io(hive, id)),
            (Address::App(AppId(app)), Some(bee)) if source.hops > 0 => Some(Sender::Bee(app, bee)),
            _ => None,
        }
    }
}

/// The outcome of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    Committed {
        /// The encoded answer.
        answer: Option<Vec<u8>>,
        /// The messages it sent, in order.
        sent: Vec<Sent>,
        /// The rows it changed, except in volatile dictionaries, ordered by dictionary, cell and row.
        changed: Redo,
        /// The time until which the message is postponed.
        postponed: Option<Time>,
    },
    Failed(Error),
}

impl Left {
    fn committed(answer: Option<Vec<u8>>, changed: Redo, ctx: &Ctx, mark: Savepoint) -> Left {
        let mut ops: Vec<_> = changed.iter().collect();
        ops.sort();
        let changed = ops.into_iter().collect();
        Left::Committed { answer, sent: ctx.out.sent_since(mark), changed, postponed: ctx.postponed }
    }
}

/// A transaction that the hive executed.
#[derive(Clone)]
pub(crate) struct Ran {
    pub(crate) given: Given,
    /// The sender, if the order of its messages is guaranteed.
    pub(crate) sender: Option<Sender>,
    /// The bee that ran the transaction; `None` for a stateless handler.
    pub(crate) bee: Option<BeeId>,
    /// Whether the message is a sweep's visit to a cell.
    pub(crate) of_a_sweep: bool,
    /// The mapped cells.
    pub(crate) cells: CellSet,
    /// The outcome on the hive.
    pub(crate) left: Left,
    now: Time,
    origin: HiveId,
    from: Address,
    rerun: Rerun,
}

impl Ran {
    fn of(transaction: &Transaction, left: Left) -> Ran {
        let Transaction { handler, batch, index, chance, .. } = transaction;
        let source = batch.source();
        Ran {
            given: Given::of(handler, *batch, *index, *chance),
            sender: Sender::of(source).filter(|_| !transaction.is_passed_on),
            bee: transaction.bee,
            of_a_sweep: handler.is_of_a_sweep,
            cells: CellSet::from_slice(transaction.cells),
            left,
            now: transaction.now,
            origin: source.origin,
            from: source.sender,
            rerun: transaction.rerun,
        }
    }

    /// Executes the transaction again on `replica` and returns its outcome.
    ///
    /// # Errors
    ///
    /// Returns an error if the handler cannot be called, for example because the message cannot be decoded.
    pub(crate) fn again(&self, replica: &mut Replica) -> Result<Left, String> {
        debug_assert_eq!(replica.app(), self.given.app);
        let ctx = &mut replica.ctx;
        ctx.now = self.now;
        ctx.origin = self.origin;
        ctx.sender = self.from;
        ctx.chance = self.given.chance;
        ctx.postponed = None;

        let mark = replica.mark();
        let result = (self.rerun.run)(&mut replica.replay(&self.cells), &self.given.bytes)?;
        let left = match result {
            Ok(answer) => {
                let changed = replica.state().changes();
                let left = Left::committed(answer, changed, &replica.ctx, mark);
                replica.state().commit();
                left
            }
            Err(error) => {
                replica.state().rollback();
                Left::Failed(error)
            }
        };

        replica.ctx.out.discard();

        Ok(left)
    }

    /// Returns the message as text.
    pub(crate) fn words(&self) -> String {
        (self.rerun.words)(&self.given.bytes)
    }
}

/// Something that happened on the hive.
#[derive(Clone)]
pub(crate) enum Event {
    /// A message was handed over to a handler.
    Due(Given, Option<Sender>),
    /// A transaction was executed.
    Ran(Box<Ran>),
    /// A message failed before its handler was called.
    Ended(Given),
    /// The state of the bee with these cells was rebuilt, which emptied its volatile dictionaries.
    Restored { app: u16, cells: Vec<CellId> },
}

/// The position of an event in the order of execution.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Moment {
    /// The incarnation of the hive, counted from 1.
    pub(crate) life: u32,
    /// The position at which the event was recorded. An event is recorded before its effects leave, so causes always
    /// precede the events they cause.
    place: u64,
    /// The entry on which the event depends: without it, the event did not happen. It is the entry that commits the
    /// event or, for a run without an entry, the newest entry whose changes the run has read.
    needs: Option<LoggedIn>,
}

#[derive(Default)]
struct Book {
    /// Number of incarnations so far.
    lives: u32,
    /// Number of events so far.
    places: u64,
    /// The events in the order in which they were recorded.
    events: Vec<(Moment, Event)>,
    /// The entries known to be committed, by incarnation.
    committed: BTreeMap<u32, BTreeSet<LoggedIn>>,
    /// The entries in the logs, for each ended incarnation.
    logged: BTreeMap<u32, BTreeSet<LoggedIn>>,
}

/// The events of all incarnations of a hive.
#[derive(Default)]
pub(crate) struct Events(Mutex<Book>);

impl Events {
    /// Ends the current incarnation. `logged` contains all entries in the logs.
    pub(crate) fn end_life(&self, logged: BTreeSet<LoggedIn>) {
        let mut book = self.0.lock();
        let life = book.lives;
        book.logged.insert(life, logged);
    }

    /// Returns all events that count as executed, in a single order that agrees with the order of each bee and puts
    /// causes before their effects.
    pub(crate) fn in_order(&self) -> Vec<(Moment, Event)> {
        let book = self.0.lock();
        let happened = |moment: &Moment| {
            let known = book.logged.get(&moment.life).or_else(|| book.committed.get(&moment.life));
            moment.needs.is_none_or(|entry| known.is_some_and(|known| known.contains(&entry)))
        };
        let mut events: Vec<_> = book.events.iter().filter(|(moment, _)| happened(moment)).cloned().collect();
        events.sort_by_key(|(moment, _)| (moment.life, moment.place));
        events
    }

    /// Returns the number of events.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().events.len()
    }

    /// Changes the events, to test the code that checks them.
    pub(crate) fn tamper(&self, with: impl FnOnce(&mut Vec<(Moment, Event)>)) {
        with(&mut self.0.lock().events)
    }
}

/// Records the events of one incarnation.
pub(crate) struct Recorder {
    events: Arc<Events>,
    /// The number of the incarnation. It is zero until the hive starts.
    life: AtomicU32,
}

impl Recorder {
    /// Creates a recorder for a hive about to start.
    pub(crate) fn new(events: &Arc<Events>) -> Recorder {
        Recorder { events: events.clone(), life: AtomicU32::new(0) }
    }

    fn life(&self) -> u32 {
        self.life.load(Ordering::Relaxed)
    }

    /// Adds events. `needs` is the entry on which they depend.
    fn add(&self, needs: Option<LoggedIn>, new: impl Iterator<Item = Event>) {
        let mut book = self.events.0.lock();
        let life = self.life();
        let Book { places, events, .. } = &mut *book;
        events.extend(new.map(|event| {
            *places += 1;
            (Moment { life, place: *places, needs }, event)
        }))
    }
}

fn note(events: Vec<Event>) -> Option<Note> {
    Some(Box::new(events))
}

fn events_of(notes: Vec<Note>) -> impl Iterator<Item = Event> {
    notes.into_iter().filter_map(|note| note.downcast::<Vec<Event>>().ok()).flat_map(|events| *events)
}

impl Probe for Recorder {
    fn starting(&self) {
        let mut book = self.events.0.lock();
        book.lives += 1;
        self.life.store(book.lives, Ordering::Relaxed)
    }

    fn handed_over(&self, handler: &Handler, batch: &dyn Messages, range: Range<u32>) -> Option<Note> {
        // A sweep's visit is not a message sent by a sender.
        if handler.is_of_a_sweep {
            return None;
        }
        let source = batch.source();
        let sender = Sender::of(source);
        let given = |index| Given::of(handler, batch, index, source.chance_of(index as u64));
        note(range.map(|index| Event::Due(given(index), sender)).collect())
    }

    fn ended_unhandled(&self, handler: &Handler, batch: &dyn Messages, index: u32) -> Option<Note> {
        let chance = batch.source().chance_of(index as u64);
        note(vec![Event::Ended(Given::of(handler, batch, index, chance))])
    }

    fn committing(
        &self,
        transaction: &Transaction,
        uncommitted: &mut dyn Uncommitted,
        ctx: &Ctx,
        mark: Savepoint,
    ) -> Option<Note> {
        let left = Left::committed(uncommitted.answer(), uncommitted.changes(), ctx, mark);
        note(vec![Event::Ran(Box::new(Ran::of(transaction, left)))])
    }

    fn failed(&self, transaction: &Transaction, error: &Error) -> Option<Note> {
        note(vec![Event::Ran(Box::new(Ran::of(transaction, Left::Failed(error.clone()))))])
    }

    fn noted(&self, entry: Option<LoggedIn>, notes: Vec<Note>) {
        self.add(entry, events_of(notes))
    }

    fn noted_read(&self, newest: Option<LoggedIn>, notes: Vec<Note>) {
        self.add(newest, events_of(notes))
    }

    fn entry_committed(&self, entry: LoggedIn) {
        self.events.0.lock().committed.entry(self.life()).or_default().insert(entry);
    }

    fn restored(&self, app: u16, cells: Vec<CellId>) {
        self.add(None, std::iter::once(Event::Restored { app, cells }))
    }
}
