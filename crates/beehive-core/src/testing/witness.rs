//! `Witness`: checks that the work of many bees on many cores equals the work of a single bee.

use crate::cell::{BeeId, CellId, CellSet};
use crate::hive::Builder;
use crate::hive::consensus::journal::Entry;
use crate::hive::dispatch::inner::{AnyApp, Hive};
use crate::hive::observe::history::{Alone, Given, Left, Moment, Noted, Notes, Ran, Sender};
use crate::message::ErrorKind;
use crate::state::CellImage;
use crate::testing::platform::Chance;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// Records the execution history of a hive and replays it, in the same order, with all cells in one bee.
///
/// A [`Kit`](crate::testing::Kit) distributes the cells of a scenario differently and compares the runs. A
/// witness checks the same for a hive that runs as in production, on all cores, with racing senders: the
/// history must be one that a single bee would have produced, in the order in which the transactions
/// committed. It checks that
///
/// - each transaction, replayed on one instance of its app that has all cells, gives the same answer or
///   error, sends the same messages in the same order, and leaves the rows it changed in the same state;
/// - each message that was handed over to a handler is handled exactly once, and never before it was handed
///   over;
/// - messages of one sender to one cell are handled in the order in which they were sent;
/// - the final state of all cells equals that of a single bee.
///
/// It finds bugs of the platform, and handlers that depend on something outside their message and their
/// cells.
///
/// ```
/// # extern crate beehive_core as beehive;
/// # use beehive::{App, Dict, Hive, Message, handlers};
/// use beehive::testing::Witness;
/// # #[derive(Message)]
/// # #[message(reply = u64)]
/// # struct Hit { name: String }
/// # #[derive(App)]
/// # struct Counter { hits: Dict<String, u64> }
/// # #[handlers]
/// # impl Counter {
/// #     #[rcv]
/// #     fn hit(&mut self, msg: &Hit) -> u64 {
/// #         *self.hits.entry(msg.name.clone()).or_default() += 1;
/// #         self.hits.get(&msg.name).copied().unwrap_or(0)
/// #     }
/// # }
/// # let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
/// # runtime.block_on(async {
/// let witness = Witness::new();
/// let hive = witness.watch(Hive::builder().app::<Counter>()).start()?;
/// let tasks: Vec<_> = (0..4)
///     .map(|task| {
///         let hive = hive.clone();
///         tokio::spawn(async move {
///             for n in 0..100 {
///                 hive.emit(Hit { name: format!("page {}", (task + n) % 7) }).await
///             }
///         })
///     })
///     .collect();
/// for task in tasks {
///     task.await?
/// }
/// assert_eq!(witness.check(&hive).await.committed, 400);
/// # hive.stop(std::time::Duration::from_secs(1)).await;
/// # Ok::<_, Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Default)]
pub struct Witness(Arc<Notes>);

/// Totals of an observed hive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Witnessed {
    /// Number of transactions that committed.
    pub committed: usize,
    /// Number of transactions that failed.
    pub failed: usize,
    /// Number of bees that ran them.
    pub bees: usize,
    /// Number of messages they sent.
    pub sent: usize,
    /// Number of cells in the final state.
    pub cells: usize,
}

/// A difference between the observed hive and a single bee.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Deviation {
    /// A transaction had a different outcome.
    Otherwise {
        /// App, handler, and message as text.
        what: String,
        /// The outcome on the hive.
        on_the_hive: String,
        /// The outcome on a single bee that has all cells.
        alone: String,
    },
    /// A message was handled after a later message of the same sender to the same cell.
    Overtaken {
        /// App, handler, and message as text.
        what: String,
    },
    /// A message was handled more often than it was handed over, or before it was handed over.
    NotDue {
        /// App, handler, and message as text.
        what: String,
    },
    /// A message was handed over to a handler and never handled.
    NeverHandled {
        /// App and handler.
        what: String,
        /// Number of such messages.
        messages: usize,
    },
    /// A cell has a different final state.
    State {
        /// The app.
        app: &'static str,
        /// A cell found only on the hive: dictionary, key and rows, encoded.
        on_the_hive: String,
        /// A cell found only with the single bee.
        alone: String,
    },
}

impl std::fmt::Display for Deviation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Deviation::Otherwise { what, on_the_hive, alone } => write!(
                f,
                "{what}\n  on the hive: {on_the_hive}\n  with a single bee: {alone}\nhelp: the handler depends on \
                 something outside its message, its cells and its context, or a failed transaction was not rolled back"
            ),
            Deviation::Overtaken { what } => {
                write!(f, "{what}: handled after a later message of the same sender to the same cell")
            }
            Deviation::NotDue { what } => {
                write!(f, "{what}: handled more often than it was sent, or before it was sent")
            }
            Deviation::NeverHandled { what, messages } => {
                write!(f, "{what}: {messages} messages were handed over and never handled")
            }
            Deviation::State { app, on_the_hive, alone } => write!(
                f,
                "the final state of a cell of `{app}` differs\n  on the hive: {on_the_hive}\n  with a single bee: {alone}"
            ),
        }
    }
}
impl std::error::Error for Deviation {}

/// A fault to inject into a recorded history, for tests of the witness.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Two consecutive messages of one sender to one cell are swapped.
    Overtaken,
    /// A message is handled twice.
    Twice,
    /// A transaction that changed something is missing.
    Lost,
    /// A message is handled before it was sent.
    BeforeItsCause,
}

impl Witness {
    /// Returns a witness without any history.
    pub fn new() -> Witness {
        Witness::default()
    }

    /// Attaches the witness to a hive that is about to start. A later call attaches it to the next
    /// incarnation of the same hive.
    pub fn watch(&self, builder: Builder) -> Builder {
        builder.witness(self.0.clone())
    }

    /// Ends the current incarnation of the hive, which crashes and leaves `log`. Transactions that are not in
    /// the log count as never executed, and volatile dictionaries lose their content.
    ///
    /// # Panics
    /// If an element of `log` is not a log entry.
    pub fn died(&self, log: &[Vec<u8>]) {
        let numbers: HashSet<u64> = log
            .iter()
            .map(|bytes| match Entry::decode(bytes) {
                Ok(entry) => entry.number,
                Err(error) => panic!("{error}"),
            })
            .collect();
        self.0.end_life(numbers)
    }

    /// Waits until the hive is idle, and compares the history with what a single bee does. The hive must be
    /// running, because its cells are compared, too. Messages that arrive meanwhile are waited for.
    /// Cancel-safe.
    pub async fn compare(&self, hive: &Hive) -> Result<Witnessed, Deviation> {
        let inner = hive.inner();
        let apps = inner.apps.read().clone();
        let (notes, images) = loop {
            hive.idle().await;
            let before = self.0.len();
            let images: Option<Vec<_>> = apps.iter().map(|app| app.images()).collect();

            // A bee may still be about to become idle, or a timer may have fired.
            if let Some(images) = images
                && self.0.len() == before
                && inner.in_flight.is_none()
            {
                break (self.0.in_order(), images);
            }

            tokio::task::yield_now().await
        };

        let mut again = Again::new(&apps);
        for (moment, note) in notes {
            again.step(moment, note)?
        }

        again.finish(images)
    }

    /// Same as [`Witness::compare`], for use in a test.
    ///
    /// # Panics
    /// If there is a deviation. The message describes it.
    pub async fn check(&self, hive: &Hive) -> Witnessed {
        match self.compare(hive).await {
            Ok(witnessed) => witnessed,
            Err(deviation) => panic!("{deviation}"),
        }
    }

    /// Injects a fault into the history. Returns whether the history contained a suitable place.
    #[doc(hidden)]
    pub fn tamper(&self, fault: Fault) -> bool {
        let mut done = false;
        self.0.tamper(|notes| {
            notes.sort_by_key(|(moment, _)| *moment);
            done = tamper(notes, fault).is_some()
        });
        done
    }
}

fn ran(note: &(Moment, Noted)) -> Option<&Ran> {
    match &note.1 {
        Noted::Ran(ran) => Some(ran),
        _ => None,
    }
}

fn tamper(notes: &mut Vec<(Moment, Noted)>, fault: Fault) -> Option<()> {
    let half = notes.len() / 2;
    let changes = |ran: &Ran| matches!(&ran.left, Left::Committed { changed, .. } if !changed.is_empty());
    let has_cells = |ran: &Ran| !ran.cells.is_empty();

    match fault {
        Fault::Overtaken => {
            let mut last: HashMap<(Sender, u16, CellId), usize> = HashMap::new();
            let pair = notes.iter().enumerate().find_map(|(at, note)| {
                // Failed transactions change nothing, so only their order can reveal the fault.
                let ran = ran(note).filter(|ran| matches!(ran.left, Left::Failed(_)))?;
                let key = (ran.sender?, ran.given.app, *ran.cells.first()?);
                let before = last.insert(key, at)?;
                let other = notes.get(before).and_then(self::ran)?;
                (at > half && other.given != ran.given).then_some((before, at))
            });

            let (before, at) = pair?;
            let note = notes[before].1.clone();
            notes[before].1 = std::mem::replace(&mut notes[at].1, note);
        }
        Fault::Twice => {
            let twice = notes
                .iter()
                .enumerate()
                .position(|(at, note)| at > half && ran(note).is_some_and(has_cells))?;
            notes.insert(twice, notes[twice].clone())
        }
        Fault::Lost => {
            let lost = notes.iter().position(|note| ran(note).is_some_and(changes))?;
            notes.remove(lost);
        }
        Fault::BeforeItsCause => {
            let is_early =
                |note: &(Moment, Noted)| ran(note).is_some_and(|ran| has_cells(ran) && !ran.of_a_sweep);
            let (first, last) = (notes.first()?.0, notes.iter().rposition(is_early)?);
            notes[last].0 = first;
            let note = notes.remove(last);
            notes.insert(0, note)
        }
    }

    Some(())
}

/// The replay, with a single bee per app.
struct Again<'a> {
    apps: &'a [Arc<dyn AnyApp>],
    alone: Vec<Box<dyn Alone>>,
    life: u32,
    /// Messages handed over and not handled yet, with their positions in the order of their senders.
    due: HashMap<Given, VecDeque<(u64, Option<Sender>)>>,
    /// Position of the last message of each sender to each cell of an app.
    last: HashMap<(Sender, u16, CellId), u64>,
    places: u64,
    /// Visits of sweeps that have been executed.
    turns: HashSet<Given>,
    /// Postponed messages, which have lost their place in the order.
    postponed: HashSet<Given>,
    bees: BTreeSet<(u16, BeeId)>,
    seen: Witnessed,
}

impl<'a> Again<'a> {
    fn new(apps: &'a [Arc<dyn AnyApp>]) -> Self {
        Again {
            apps,
            alone: apps.iter().map(|app| app.alone()).collect(),
            life: 0,
            due: HashMap::new(),
            last: HashMap::new(),
            places: 0,
            turns: HashSet::new(),
            postponed: HashSet::new(),
            bees: BTreeSet::new(),
            seen: Witnessed::default(),
        }
    }

    fn step(&mut self, moment: Moment, note: Noted) -> Result<(), Deviation> {
        if std::mem::replace(&mut self.life, moment.life) != moment.life {
            // A new incarnation: messages that were in flight are sent again, if at all.
            self.due.clear();
            self.last.clear();
            self.alone.iter_mut().for_each(|alone| alone.forget_volatile(None))
        }

        match note {
            Noted::Due(given, sender) => {
                self.places += 1;
                self.due.entry(given).or_default().push_back((self.places, sender))
            }
            Noted::Ended(given) => drop(self.take_due(&given)),
            Noted::Restored { app, cells } => {
                if let Some(alone) = self.alone.get_mut(app as usize) {
                    alone.forget_volatile(Some(&cells))
                }
            }
            Noted::Ran(ran) => {
                self.is_due(&ran)?;
                self.run(&ran)?
            }
        }

        Ok(())
    }

    fn take_due(&mut self, given: &Given) -> Option<(u64, Option<Sender>)> {
        let waiting = self.due.get_mut(given)?;
        let first = waiting.pop_front();
        if waiting.is_empty() {
            self.due.remove(given);
        }
        first
    }

    fn handler(&self, given: &Given) -> String {
        match self.apps.get(given.app as usize) {
            Some(app) => format!("`{}` of app `{}`", app.handler_name(given.handler), app.name()),
            None => "a handler of an unknown app".into(),
        }
    }

    fn what(&self, ran: &Ran) -> String {
        format!("{}, given {}", self.handler(&ran.given), ran.words())
    }

    fn is_due(&mut self, ran: &Ran) -> Result<(), Deviation> {
        if ran.of_a_sweep {
            return match self.turns.insert(ran.given.clone()) {
                true => Ok(()),
                false => Err(Deviation::NotDue { what: self.what(ran) }),
            };
        }

        // A stateless handler runs at the sender, so there is no hand-over.
        if ran.cells.is_empty() {
            return Ok(());
        }

        let Some((place, _)) = self.take_due(&ran.given) else {
            return Err(Deviation::NotDue { what: self.what(ran) });
        };
        let is_again = self.postponed.contains(&ran.given);
        if let Left::Committed { postponed: Some(_), .. } = ran.left {
            self.postponed.insert(ran.given.clone());
        }

        let Some(sender) = ran.sender.filter(|_| !is_again) else { return Ok(()) };
        for cell in &ran.cells {
            let before = self.last.insert((sender, ran.given.app, *cell), place);
            if before.is_some_and(|before| before > place) {
                return Err(Deviation::Overtaken { what: self.what(ran) });
            }
        }

        Ok(())
    }

    fn run(&mut self, ran: &Ran) -> Result<(), Deviation> {
        self.bees.extend(ran.bee.map(|bee| (ran.given.app, bee)));
        match &ran.left {
            Left::Committed { sent, .. } => {
                self.seen.committed += 1;
                self.seen.sent += sent.len()
            }
            Left::Failed(error) => {
                self.seen.failed += 1;
                // A limit depends on the load at that moment, which a single bee cannot reproduce.
                if error.kind() == ErrorKind::Limit {
                    return Ok(());
                }
            }
        }

        let Some(alone) = self.alone.get_mut(ran.given.app as usize) else { return Ok(()) };
        let again = ran.again(&mut **alone);
        if again.as_ref() == Ok(&ran.left) {
            return Ok(());
        }

        let alone = again.map_or_else(|why| why, |left| in_words(&left));
        Err(Deviation::Otherwise { what: self.what(ran), on_the_hive: in_words(&ran.left), alone })
    }

    fn finish(mut self, images: Vec<Vec<CellImage>>) -> Result<Witnessed, Deviation> {
        if let Some((given, waiting)) = self.due.iter().min_by_key(|(_, waiting)| waiting.front().copied()) {
            let (what, messages) = (format!("{}, {:02x?}", self.handler(given), given.bytes), waiting.len());
            return Err(Deviation::NeverHandled { what, messages });
        }

        for ((app, alone), images) in self.apps.iter().zip(&mut self.alone).zip(images) {
            let images_alone = alone.images();
            self.seen.cells += images.len();
            if images == images_alone {
                continue;
            }

            let without = |of: &[CellImage], others: &[CellImage]| {
                let found = of.iter().find(|image| !others.contains(image));
                found.map_or("nothing".to_string(), |image| format!("{image:02x?}"))
            };
            let (on_the_hive, alone) = (without(&images, &images_alone), without(&images_alone, &images));
            return Err(Deviation::State { app: app.name(), on_the_hive, alone });
        }

        self.seen.bees = self.bees.len();
        Ok(self.seen)
    }
}

fn in_words(left: &Left) -> String {
    match left {
        Left::Failed(error) => format!("error: {error}"),
        Left::Committed { answer, sent, changed, postponed } => {
            let mut text = format!("answer {answer:02x?}");
            for sent in sent {
                text += &format!(", sent {} {:02x?} to {:?}", sent.name, sent.bytes, sent.to)
            }

            for op in changed {
                text += &format!(", dictionary {} at {:02x?}", op.dict, op.key);
                if let Some(row) = &op.row {
                    text += &format!(" {row:02x?}")
                }
                text += &format!(": {:02x?}", op.value)
            }

            postponed.iter().for_each(|until| text += &format!(", postponed until {until:?}"));
            text
        }
    }
}

/// A background task that merges the bees of a hive at random, and exports and imports them, until it is
/// ended.
pub struct Shaking {
    end: Arc<AtomicBool>,
    ended: oneshot::Receiver<()>,
}

/// Starts a task that merges bees at random, `merges` times, and every few milliseconds exports all bees to
/// bytes and imports them again ([`Hive::reimport`]), until it is ended.
pub fn shake(hive: &Hive, seed: u64, merges: u64) -> Shaking {
    let (end, hive, (told, ended)) = (Arc::<AtomicBool>::default(), hive.clone(), oneshot::channel());
    let (until, platform) = (end.clone(), hive.inner().platform.clone());
    platform.spawn(Box::pin(async move {
        let mut round = 0;
        while !until.load(Ordering::Acquire) && !hive.inner().is_over() {
            if let Err(error) = hive.reimport().await {
                tracing::error!(%error, "cannot import a bee that was just exported");
                return;
            }

            if round < merges {
                merge_two(&hive, seed.wrapping_mul(1_000).wrapping_add(round)).await
            }

            round += 1;
            hive.inner().platform.sleep(BETWEEN_SHAKES).await
        }

        let _ = told.send(());
    }));

    Shaking { end, ended }
}

impl Shaking {
    /// Ends the task. Completes when all bees are back in place.
    ///
    /// # Panics
    /// If a bee could not be imported again.
    pub async fn end(self) {
        self.end.store(true, Ordering::Release);
        if self.ended.await.is_err() {
            panic!("a bee could not be imported again, or the hive has stopped")
        }
    }
}

const BETWEEN_SHAKES: Duration = Duration::from_millis(2);

/// Merges the bees that own two cells of some app, chosen at random from the seed `chance`, as a message that
/// needs both cells would. The merge has no observable effect on the hive. It continues if this future is
/// dropped.
pub async fn merge_two(hive: &Hive, chance: u64) {
    let (inner, mut chance) = (hive.inner(), Chance::new(chance));
    let apps = inner.apps.read().clone();
    let Some(app) = apps.get(chance.below(apps.len())) else { return };
    let owned = app.owned_cells();
    let mut any = || owned.get(chance.below(owned.len())).copied();
    let (Some(one), Some(other)) = (any(), any()) else { return };
    let uniting = app.clone().unite_cells(CellSet::from_slice(&[one, other]), inner);
    let (merged, done) = oneshot::channel();

    inner.platform.spawn(Box::pin(async move {
        uniting.await;
        let _ = merged.send(());
    }));

    // The sender is dropped only if the hive has stopped.
    let _ = done.await;
}
