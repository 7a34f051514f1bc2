//! What a hive did, written down while it happens, so that a test can do it again with a single bee.
//!
//! A transaction is noted before anything of it can be seen elsewhere, by whoever holds the body of its bee. So the notes of
//! one bee stand in the order of its commits, and a note stands behind that of whatever caused it. Where there is a
//! journal, notes have the number of the entry that commits them: those of entries that a log does not have never happened.
//!
//! A hive that nobody watches asks once for each run of messages whether somebody does.

use crate::app::{Handlers, Handles};
use crate::cell::{BeeId, CellId, CellSet, HiveId};
use crate::context::Ctx;
use crate::hive::bee::app::AppRuntime;
use crate::hive::dispatch::handler::Handler;
use crate::hive::dispatch::message_types::Types;
use crate::hive::dispatch::outputs::{Mark, Outputs, Sent};
use crate::hive::dispatch::turn::Turn;
use crate::hive::edge::io_bee::IoBees;
use crate::hive::message::batch::{Address, Messages, Source};
use crate::hive::route::receiver::map;
use crate::hive::run::transaction::ended;
use crate::mapper::Mapper;
use crate::message::{Error, Message, Reply};
use crate::panics;
use crate::state::column::Columns;
use crate::state::guard::Held;
use crate::state::image::{CellImage, Op, decode, words};
use crate::time::Time;
use parking_lot::Mutex;
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A message, as one handler of one app is given it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Given {
    /// The app and its handler, by number.
    pub(crate) app: u16,
    pub(crate) handler: usize,
    pub(crate) bytes: Vec<u8>,
    /// What chance is derived from: tells equal messages apart.
    pub(crate) chance: u64,
}

/// Who sends messages in an order that must be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Sender {
    Io(HiveId, u64),
    Bee(u16, BeeId),
}

impl Sender {
    /// None if there is none, or no order: a message that has waited for its time, a stateless handler, the hive's own hands.
    fn of(source: &Source) -> Option<Sender> {
        match (source.sender, source.bee) {
            (Address::Io(hive, id), _) => Some(Sender::Io(hive, id)),
            (Address::App(app), Some(bee)) if source.hops > 0 => Some(Sender::Bee(app, bee)),
            _ => None,
        }
    }
}

/// What a transaction left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    Committed {
        /// Encoded.
        answer: Option<Vec<u8>>,
        /// In order.
        sent: Vec<Sent>,
        /// Rows after it, those of volatile dictionaries left out; by dictionary, cell and row.
        changed: Vec<Op>,
        put_off: Option<Time>,
    },
    Failed(Error),
}

/// A transaction.
#[derive(Clone)]
pub(crate) struct Ran {
    pub(crate) given: Given,
    pub(crate) sender: Option<Sender>,
    pub(crate) bee: Option<BeeId>,
    pub(crate) of_a_sweep: bool,
    pub(crate) cells: CellSet,
    pub(crate) left: Left,
    now: Time,
    origin: HiveId,
    from: Address,
    code: Code,
}

impl Ran {
    /// Does it again. Fails if it cannot even begin.
    pub(crate) fn again(&self, alone: &mut dyn Alone) -> Result<Left, String> {
        (self.code.again)(alone, self)
    }

    /// The message in words.
    pub(crate) fn words(&self) -> String {
        (self.code.words)(&self.given.bytes)
    }
}

/// Something that happened.
#[derive(Clone)]
pub(crate) enum Noted {
    /// A message was handed over for a handler.
    Due(Given, Option<Sender>),
    Ran(Box<Ran>),
    /// A message ended with an error before its handler was given it.
    Ended(Given),
    /// A bee with these cells was put together from what is logged.
    Restored {
        app: u16,
        cells: Vec<CellId>,
    },
}

/// When something happened: in which life of its colony, behind which entry of the log, and then in which order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Moment {
    pub(crate) life: u32,
    /// The entry that commits it, if that is true of it.
    pub(crate) entry: u64,
    place: u64,
    pub(crate) is_logged: bool,
}

#[derive(Default)]
struct Book {
    lives: u32,
    places: u64,
    notes: Vec<(Moment, Noted)>,
    /// By life: the entries that are known to be committed.
    committed: HashMap<u32, HashSet<u64>>,
    /// By life that has ended: the entries that the log has.
    logged: HashMap<u32, HashSet<u64>>,
}

/// The notes about all lives of a hive.
#[derive(Default)]
pub(crate) struct Notes(Mutex<Book>);

/// Takes the notes of one life.
pub(crate) struct Watch {
    notes: Arc<Notes>,
    life: u32,
    /// The highest number of an entry so far.
    last: AtomicU64,
}

impl Watch {
    /// Entry `entry` is committed.
    #[cold]
    pub(crate) fn committed(&self, entry: u64) {
        self.notes.0.lock().committed.entry(self.life).or_default().insert(entry);
    }

    /// Notes what has happened, and what entry `entry` commits if there is one.
    pub(crate) fn add(&self, entry: Option<u64>, notes: Vec<Noted>) {
        let mut book = self.notes.0.lock();
        let last = self.last.fetch_max(entry.unwrap_or(0), Ordering::Relaxed);
        let Book { places, notes: all, .. } = &mut *book;
        all.extend(notes.into_iter().map(|note| {
            *places += 1;
            let entry_or_last = entry.unwrap_or(last);
            let moment =
                Moment { life: self.life, entry: entry_or_last, place: *places, is_logged: entry.is_some() };
            (moment, note)
        }))
    }
}

impl Notes {
    /// A hive starts.
    pub(crate) fn begin_life(self: &Arc<Self>) -> Arc<Watch> {
        let mut book = self.0.lock();
        book.lives += 1;
        Arc::new(Watch { notes: self.clone(), life: book.lives, last: AtomicU64::new(0) })
    }

    /// The last life ends; of what it did, these entries are in the log.
    pub(crate) fn end_life(&self, logged: HashSet<u64>) {
        let mut book = self.0.lock();
        let life = book.lives;
        book.logged.insert(life, logged);
    }

    /// All that has happened, in one order that is that of every bee, and has causes before what they cause.
    pub(crate) fn in_order(&self) -> Vec<(Moment, Noted)> {
        let book = self.0.lock();
        let happened = |moment: &Moment| {
            let known = book.logged.get(&moment.life).or_else(|| book.committed.get(&moment.life));
            !moment.is_logged || known.is_some_and(|known| known.contains(&moment.entry))
        };
        let mut notes: Vec<_> = book.notes.iter().filter(|(moment, _)| happened(moment)).cloned().collect();
        notes.sort_by_key(|(moment, _)| (moment.life, moment.entry, !moment.is_logged, moment.place));
        notes
    }

    /// How many notes there are.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().notes.len()
    }

    /// Changes the notes: for tests of those who read them.
    pub(crate) fn tamper(&self, with: impl FnOnce(&mut Vec<(Moment, Noted)>)) {
        with(&mut self.0.lock().notes)
    }
}

impl Turn<'_> {
    /// Notes something, behind the gate if there is one: it has happened if what is there was committed.
    #[cold]
    pub(crate) fn note(&mut self, notes: Vec<Noted>) {
        match (&mut self.gate, &self.hive.history) {
            (_, None) => {}
            (Some(gate), _) => gate.notes.extend(notes),
            (None, Some(history)) => history.add(None, notes),
        }
    }

    /// Notes that a bee was put together from what is logged.
    pub(crate) fn note_restored(&mut self, app: u16, cells: impl FnOnce() -> Vec<CellId>) {
        if let Some(history) = &self.hive.history {
            history.add(None, vec![Noted::Restored { app, cells: cells() }])
        }
    }
}

/// What cannot be encoded fails the transaction, or is told by the one who has to log it; here it says no more than that.
fn encoding(encode: &dyn Fn() -> Vec<u8>) -> Vec<u8> {
    panics::catch(AssertUnwindSafe(encode)).unwrap_or_default()
}

fn given(handler: &Handler, batch: &dyn Messages, index: u32, chance: u64) -> Given {
    let bytes = encoding(&|| batch.encoded(index).unwrap_or_default());
    Given { app: handler.app, handler: handler.number, bytes, chance }
}

/// Messages that are handed over for a handler.
#[cold]
pub(crate) fn due(handler: &Handler, batch: &dyn Messages, range: Range<u32>, turn: &mut Turn) {
    // a cell's turn at a sweep is no message that was sent
    if handler.is_of_a_sweep {
        return;
    }
    let source = batch.source();
    let sender = Sender::of(source);
    let notes =
        range.map(|index| Noted::Due(given(handler, batch, index, source.chance_of(index as u64)), sender));
    turn.note(notes.collect())
}

/// A message has ended without its handler.
#[cold]
pub(crate) fn ended_before(handler: &Handler, batch: &dyn Messages, index: u32, turn: &mut Turn) {
    let chance = batch.source().chance_of(index as u64);
    turn.note(vec![Noted::Ended(given(handler, batch, index, chance))])
}

/// What is known of a transaction besides its end.
pub(crate) struct About<'a> {
    pub(crate) handler: Handler<'a>,
    pub(crate) bee: Option<BeeId>,
    pub(crate) batch: &'a dyn Messages,
    pub(crate) index: u32,
    pub(crate) cells: &'a [CellId],
    pub(crate) chance: u64,
    pub(crate) now: Time,
    /// Somebody earlier in the chain passed it on. Between what one bee passes on and what the sender itself sends to the same
    /// cells there is no order.
    pub(crate) is_passed_on: bool,
    /// What knows the types.
    pub(crate) code: Code,
}

/// What is done with a transaction by code that knows its types.
#[derive(Clone, Copy)]
pub(crate) struct Code {
    again: fn(&mut dyn Alone, &Ran) -> Result<Left, String>,
    words: fn(&[u8]) -> String,
}

impl Code {
    pub(crate) fn of<A: Handlers + Handles<M>, M: Message>() -> Code {
        Code { again: again::<A, M>, words: in_words::<M> }
    }
}

impl About<'_> {
    /// It has ended.
    #[cold]
    pub(crate) fn left(self, left: Left) -> Noted {
        let About { handler, bee, batch, index, cells, chance, now, is_passed_on, code } = self;
        let source = batch.source();
        Noted::Ran(Box::new(Ran {
            given: given(&handler, batch, index, chance),
            sender: Sender::of(source).filter(|_| !is_passed_on),
            bee,
            of_a_sweep: handler.is_of_a_sweep,
            cells: CellSet::from_slice(cells),
            left,
            now,
            origin: source.origin,
            from: source.sender,
            code,
        }))
    }
}

/// An answer, encoded, if there is one.
#[cold]
pub(crate) fn encoded<R: Reply>(answer: &Option<R>) -> Option<Vec<u8>> {
    answer.as_ref().map(|answer| encoding(&|| answer.encoded()))
}

/// What a transaction leaves that is about to commit. `mark`: where its outputs begin.
#[cold]
pub(crate) fn committed<A: Columns>(state: &mut A, ctx: &Ctx, mark: Mark, answer: Option<Vec<u8>>) -> Left {
    let mut changed = Vec::new();
    let _ = panics::catch(AssertUnwindSafe(|| state.redo(&mut changed)));
    changed.sort_by(|a, b| (a.dict, &a.key, &a.row).cmp(&(b.dict, &b.key, &b.row)));
    Left::Committed { answer, sent: ctx.out.sent_since(mark), changed, put_off: ctx.postponed }
}

fn in_words<M: Message>(bytes: &[u8]) -> String {
    match decode::<M>(M::NAME, bytes) {
        Ok(message) => format!("{} {}", M::NAME, words(&message)),
        Err(_) => M::NAME.to_string(),
    }
}

/// An app whose cells are all in one bee.
pub(crate) trait Alone: Send {
    fn as_any_mut(&mut self) -> &mut dyn Any;
    /// All cells, by dictionary and key.
    fn images(&mut self) -> Vec<CellImage>;
    /// Forgets what is in volatile dictionaries: all of it, or what is in these cells.
    fn forget_volatile(&mut self, cells: Option<&[CellId]>);
}

struct AloneOf<A> {
    app: A,
    index: u16,
    seed: u64,
    whole: u64,
    ctx: Ctx,
}

impl<A: Handlers> AppRuntime<A> {
    /// The app without state, outside the hive.
    pub(crate) fn alone(&self) -> Box<dyn Alone> {
        let ctx = Ctx::new(Outputs::new(Types::new(Arc::new(IoBees::default()))));
        Box::new(AloneOf { app: self.fresh(), index: self.index, seed: self.seed, whole: self.whole, ctx })
    }
}

impl<A: Handlers> Alone for AloneOf<A> {
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn images(&mut self) -> Vec<CellImage> {
        let mut images = self.app.export(true);
        images.sort_by(|a, b| (a.dict, &a.key).cmp(&(b.dict, &b.key)));
        images
    }

    fn forget_volatile(&mut self, cells: Option<&[CellId]>) {
        let volatile: Vec<_> = A::DICTS.iter().filter(|dict| dict.volatile).collect();
        if volatile.is_empty() {
            return;
        }
        let gone = |dict: u32, cell: CellId| {
            volatile.iter().any(|info| {
                let owned = if self.whole & (1 << dict) != 0 { info.whole(self.seed) } else { cell };
                info.index == dict && cells.is_none_or(|cells| cells.contains(&owned))
            })
        };
        let mut rest = self.app.fresh();
        let mut known = self.app.fresh();
        for image in self.app.export(true) {
            // written by this very process a moment ago
            if let Ok(cell) = known.import(self.seed, &image)
                && !gone(image.dict, cell)
            {
                let _ = rest.import(self.seed, &image);
            }
        }
        self.app = rest
    }
}

/// Runs a transaction as the hive does, on an app that has all cells.
fn again<A: Handlers + Handles<M>, M: Message>(alone: &mut dyn Alone, ran: &Ran) -> Result<Left, String> {
    let alone = alone.as_any_mut().downcast_mut::<AloneOf<A>>().ok_or("it is another app's")?;
    let message = decode::<M>(M::NAME, &ran.given.bytes).map_err(|error| error.to_string())?;
    let mut mapper = alone.mapper(ran);
    map::<A, M>(&message, &mut mapper);
    if mapper.cells() != &ran.cells[..] {
        return Err("its map names other cells".into());
    }
    let (mark, held) = alone.begin(ran);
    let result = ended::<A, M>(&mut alone.app, &message, &mut alone.ctx, &held);
    drop(held);
    Ok(alone.end(mark, result.map(|answer| encoded(&answer))))
}

impl<A: Handlers> AloneOf<A> {
    fn mapper(&self, ran: &Ran) -> Mapper {
        debug_assert_eq!(self.index, ran.given.app);
        Mapper::new(self.seed, self.whole, ran.origin)
    }

    fn begin(&mut self, ran: &Ran) -> (Mark, Held) {
        let ctx = &mut self.ctx;
        ctx.now = ran.now;
        ctx.origin = ran.origin;
        ctx.sender = ran.from;
        ctx.chance = ran.given.chance;
        ctx.postponed = None;
        (ctx.out.mark(), Held::strict(self.seed, self.whole, &ran.cells))
    }

    fn end(&mut self, mark: Mark, result: Result<Option<Vec<u8>>, Error>) -> Left {
        let left = match result {
            Ok(answer) => {
                let left = committed(&mut self.app, &self.ctx, mark, answer);
                self.app.commit();
                left
            }
            Err(error) => {
                self.app.rollback();
                Left::Failed(error)
            }
        };
        self.ctx.out.discard();
        left
    }
}
