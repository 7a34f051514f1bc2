//! `History`: checks that many bees on many cores produced the same results as a single bee.

use crate::cell::{BeeId, CellId, CellSet};
use crate::hive::Builder;
use crate::hive::consensus::journal::Entry;
use crate::hive::dispatch::inner::{AnyApp, Hive};
use crate::message::ErrorKind;
use crate::seams::BoxFuture;
use crate::state::CellImage;
use crate::testing::hooks::history::{Event, Events, Given, Left, Moment, Ran, Recorder, Sender};
use crate::testing::hooks::inspect::{Inspect, Replica};
use crate::testing::platform::Chance;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// Records a hive's execution history and executes it again, in the same order, with all cells in one bee.
///
/// A [`Kit`](crate::testing::Kit) runs a scenario several times with different distributions of cells, and compares the
/// runs. A history makes this comparison for a hive that runs as in production, on all cores and with racing senders: a
/// single bee that has all cells and executes the same transactions in commit order must produce the same results.
/// [`History::compare`] checks that
///
/// - each transaction, when rerun on one instance of its app that has all cells, returns the same answer or error,
///   sends the same messages in the same order, and leaves the same content in the rows it changed;
/// - every message handed over to a handler is handled exactly once, and not before it was handed over;
/// - one sender's messages to one cell are handled in the order in which they were sent;
/// - the final state of all cells is that of the single bee.
///
/// This finds bugs in the platform, and handlers that depend on something other than their message and their cells.
///
/// ```
/// # extern crate beehive_core as beehive;
/// # use beehive::{App, Dict, Hive, Message, handlers};
/// use beehive::testing::History;
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
/// # let runtime =
/// tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
/// # runtime.block_on(async {
/// let history = History::new();
/// let hive = history.record(Hive::builder().app::<Counter>()).start()?;
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
/// assert_eq!(history.check(&hive).await.committed, 400);
/// # hive.stop(std::time::Duration::from_secs(1)).await;
/// # Ok::<_, Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Default)]
pub struct History(Arc<Events>);

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("History").finish_non_exhaustive()
    }
}

/// Statistics of a recorded hive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistorySummary {
    /// Number of transactions that committed.
    pub committed: usize,
    /// Number of transactions that failed.
    pub failed: usize,
    /// Number of bees that ran at least one transaction.
    pub bees: usize,
    /// Number of messages sent by committed transactions.
    pub sent: usize,
    /// Number of cells of all apps in the final state.
    pub cells: usize,
}

/// A difference between the hive and a single bee with all cells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Deviation {
    /// A transaction had a different outcome.
    Otherwise {
        /// The app, the handler, and the message as text.
        what: String,
        /// The outcome on the hive.
        on_the_hive: String,
        /// The outcome with a single bee.
        alone: String,
    },
    /// A message was handled after a later message from the same sender to the same cell.
    Overtaken {
        /// The app, the handler, and the message as text.
        what: String,
    },
    /// A message was handled more often than it was handed over, or before being handed over.
    NotDue {
        /// The app, the handler, and the message as text.
        what: String,
    },
    /// A message was handed over to a handler and never handled.
    NeverHandled {
        /// The app, the handler, and the encoded message.
        what: String,
        /// Number of such messages.
        messages: usize,
    },
    /// The final state of a cell differs.
    State {
        /// The app.
        app: &'static str,
        /// The first cell that only the hive has: dictionary, key and rows, encoded.
        on_the_hive: String,
        /// The first cell that only the single bee has.
        alone: String,
    },
}

impl std::fmt::Display for Deviation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Deviation::Otherwise { what, on_the_hive, alone } => write!(
                f,
                "{what}\n  on the hive: {on_the_hive}\n  with a single bee: {alone}\nhelp: either the outcome of the handler \
                 depends on something that is not in its message, its cells or its context, or a failed transaction was \
                 not rolled back completely"
            ),
            Deviation::Overtaken { what } => {
                write!(f, "{what}: handled after a later message from the same sender to the same cell")
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

/// A simulated fault in a hive. [`History::tamper`] inserts it into the record to test the history itself.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Two consecutive messages from a sender to a cell are swapped.
    Overtaken,
    /// A message was handled twice.
    Twice,
    /// A transaction that changed something is missing.
    Lost,
    /// A message was handled before it was sent.
    BeforeItsCause,
}

impl History {
    /// Returns an empty history.
    pub fn new() -> History {
        History::default()
    }

    /// Configures `builder` so that its hive records its execution in this history. If the hive is later restored
    /// from its log, call this again for each new incarnation.
    pub fn record(&self, builder: Builder) -> Builder {
        builder.probe(Arc::new(Recorder::new(&self.0)))
    }

    /// Ends the current incarnation. Call this after (or just before) a crash of the most recently recorded hive, with
    /// the content of its colony's log. Transactions whose entries are missing from the log count as never executed,
    /// and volatile dictionaries are empty in the next incarnation.
    ///
    /// # Panics
    ///
    /// Panics if an entry of `log` cannot be decoded.
    pub fn died(&self, log: &[Vec<u8>]) {
        self.died_with([log])
    }

    /// Same as [`History::died`], for a hive with several logs. `logs` is in the order in which the builder got the
    /// logs.
    ///
    /// # Panics
    ///
    /// Panics if an entry of a log cannot be decoded.
    pub fn died_with<'a>(&self, logs: impl IntoIterator<Item = &'a [Vec<u8>]>) {
        let number = |bytes: &Vec<u8>| match Entry::decode(bytes) {
            Ok(entry) => entry.number,
            Err(error) => panic!("{error}"),
        };
        let entries = logs.into_iter().enumerate();
        let numbers =
            entries.flat_map(|(at, log)| log.iter().map(move |bytes| (at, number(bytes)))).collect();
        self.0.end_life(numbers)
    }

    /// Waits until the hive is idle, executes the recorded transactions again with a single bee, and compares the
    /// results. The hive must still be running, because its cells are compared too. If messages arrive meanwhile, waits
    /// until they are handled. Cancel-safe.
    ///
    /// # Errors
    ///
    /// Returns the first deviation.
    pub async fn compare(&self, hive: &Hive) -> Result<HistorySummary, Deviation> {
        let inner = hive.inner();
        let apps = inner.apps.read().clone();
        let (notes, images) = loop {
            hive.idle().await;
            let before = self.0.len();

            let images: Option<Vec<_>> = apps.iter().map(|app| app.images()).collect();
            // A bee may not have put its body back yet, or a timer may have fired. If so, the events and the cells may
            // be from different moments, so read both again.
            if let Some(images) = images
                && self.0.len() == before
                && inner.in_flight.count() == 0
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

    /// Same as [`History::compare`], but fails the test if there is a deviation.
    ///
    /// # Panics
    ///
    /// Panics if there is a deviation. The message contains its text and the caller's line.
    #[track_caller]
    pub fn check(&self, hive: &Hive) -> impl Future<Output = HistorySummary> {
        // The panic would occur when the future is polled, by a different caller, so take the location here.
        let caller = Location::caller();
        async move {
            match self.compare(hive).await {
                Ok(summary) => summary,
                Err(deviation) => panic!("{deviation}\nchecked at {caller}"),
            }
        }
    }

    /// Inserts a fault into the record. Returns `false` if the fault fits no recorded transaction.
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

fn ran(note: &(Moment, Event)) -> Option<&Ran> {
    match &note.1 {
        Event::Ran(ran) => Some(ran),
        _ => None,
    }
}

/// Inserts a fault. Returns `None` if the fault fits no event.
fn tamper(notes: &mut Vec<(Moment, Event)>, fault: Fault) -> Option<()> {
    let half = notes.len() / 2;
    let changes = |ran: &Ran| matches!(&ran.left, Left::Committed { changed, .. } if !changed.is_empty());
    let has_cells = |ran: &Ran| !ran.cells.is_empty();
    match fault {
        Fault::Overtaken => {
            let mut last: BTreeMap<(Sender, u16, CellId), usize> = BTreeMap::new();

            let pair = notes.iter().enumerate().find_map(|(at, note)| {
                // Choose failed transactions: they change nothing, so only their order can reveal the fault.
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
                |note: &(Moment, Event)| ran(note).is_some_and(|ran| has_cells(ran) && !ran.of_a_sweep);

            let (first, last) = (notes.first()?.0, notes.iter().rposition(is_early)?);
            notes[last].0 = first;
            let note = notes.remove(last);
            notes.insert(0, note)
        }
    }
    Some(())
}

/// The second execution, with a single bee for each app.
struct Again<'a> {
    apps: &'a [Arc<dyn AnyApp>],
    /// The single bee of each app.
    alone: Vec<Replica>,
    /// The incarnation of the event executed last.
    life: u32,
    /// Messages handed over but not yet handled, each with its position in the hand-over order and its sender.
    due: BTreeMap<Given, VecDeque<(u64, Option<Sender>)>>,
    /// For each sender and each cell of an app, the position of the last message handled.
    last: BTreeMap<(Sender, u16, CellId), u64>,
    /// Number of messages handed over so far.
    places: u64,
    /// The executed visits of sweeps.
    turns: BTreeSet<Given>,
    /// Messages that were postponed and therefore lost their place in their sender's order.
    postponed: BTreeSet<Given>,
    /// The bees that ran a transaction on the hive.
    bees: BTreeSet<(u16, BeeId)>,
    seen: HistorySummary,
}

impl<'a> Again<'a> {
    fn new(apps: &'a [Arc<dyn AnyApp>]) -> Self {
        Again {
            apps,
            alone: apps.iter().map(|app| app.replica()).collect(),
            life: 0,
            due: BTreeMap::new(),
            last: BTreeMap::new(),
            places: 0,
            turns: BTreeSet::new(),
            postponed: BTreeSet::new(),
            bees: BTreeSet::new(),
            seen: HistorySummary::default(),
        }
    }

    /// Executes one event again and compares the result.
    fn step(&mut self, moment: Moment, note: Event) -> Result<(), Deviation> {
        if std::mem::replace(&mut self.life, moment.life) != moment.life {
            // Messages in flight were either lost in the crash, or are resent and then handed over again.
            self.due.clear();
            self.last.clear();
            self.alone.iter_mut().for_each(|alone| alone.forget_volatile(None))
        }

        match note {
            Event::Due(given, sender) => {
                self.places += 1;
                self.due.entry(given).or_default().push_back((self.places, sender))
            }
            Event::Ended(given) => drop(self.take_due(&given)),
            Event::Restored { app, cells } => {
                if let Some(alone) = self.alone.get_mut(app as usize) {
                    alone.forget_volatile(Some(&cells))
                }
            }
            Event::Ran(ran) => {
                self.is_due(&ran)?;
                self.run(&ran)?
            }
        }
        Ok(())
    }

    /// Removes and returns the oldest hand-over of a message, if there is one.
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
            None => "a handler of no app".into(),
        }
    }

    fn what(&self, ran: &Ran) -> String {
        format!("{}, given {}", self.handler(&ran.given), ran.words())
    }

    /// Checks that the message was handed over, and that none of its cells has already handled a later message from the
    /// same sender.
    fn is_due(&mut self, ran: &Ran) -> Result<(), Deviation> {
        if ran.of_a_sweep {
            return match self.turns.insert(ran.given.clone()) {
                true => Ok(()),
                false => Err(Deviation::NotDue { what: self.what(ran) }),
            };
        }
        // A stateless handler runs without a hand-over.
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

    /// Runs a transaction again and compares its outcome.
    fn run(&mut self, ran: &Ran) -> Result<(), Deviation> {
        self.bees.extend(ran.bee.map(|bee| (ran.given.app, bee)));
        match &ran.left {
            Left::Committed { sent, .. } => {
                self.seen.committed += 1;
                self.seen.sent += sent.len()
            }
            Left::Failed(error) => {
                self.seen.failed += 1;
                // Whether a limit is exceeded depends on what else the hive held at that moment, which a single bee
                // cannot reproduce.
                if error.kind() == ErrorKind::Limit {
                    return Ok(());
                }
            }
        }

        let Some(alone) = self.alone.get_mut(ran.given.app as usize) else { return Ok(()) };

        let again = ran.again(alone);
        if again.as_ref() == Ok(&ran.left) {
            return Ok(());
        }

        let alone = again.map_or_else(|why| why, |left| in_words(&left));
        Err(Deviation::Otherwise { what: self.what(ran), on_the_hive: in_words(&ran.left), alone })
    }

    /// Checks that no message is left over, and compares the final state.
    fn finish(mut self, images: Vec<Vec<CellImage>>) -> Result<HistorySummary, Deviation> {
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

/// The handle of a task that disturbs a hive; see [`shake`].
#[derive(Debug)]
pub struct Shaking {
    end: Arc<AtomicBool>,
    ended: oneshot::Receiver<()>,
}

/// Disturbs a hive every few milliseconds until [`Shaking::end`] is called. In each round, it encodes and decodes the
/// state of all bees ([`Hive::reimport`]), and moves a random bee to another log if its app has several. In the first
/// `merges` rounds, it also merges two random bees.
pub fn shake(hive: &Hive, seed: u64, merges: u64) -> Shaking {
    let (end, hive, (told, ended)) = (Arc::<AtomicBool>::default(), hive.clone(), oneshot::channel());
    let (until, platform) = (end.clone(), hive.inner().platform.clone());
    platform.spawn(Box::pin(async move {
        let mut round = 0;
        while !until.load(Ordering::Acquire) && !hive.inner().is_over() {
            if let Err(error) = hive.reimport().await {
                tracing::error!(%error, "cannot decode the state of a bee");
                return;
            }
            let chance = seed.wrapping_mul(1_000).wrapping_add(round);
            if round < merges {
                merge_two(&hive, chance).await
            }
            move_one(&hive, !chance).await;

            round += 1;
            hive.inner().platform.sleep(BETWEEN_SHAKES).await
        }
        let _ = told.send(());
    }));

    Shaking { end, ended }
}

impl Shaking {
    /// Stops disturbing the hive and waits until the current round is complete.
    ///
    /// # Panics
    ///
    /// Panics if the state of a bee could not be decoded, or the hive is gone.
    pub async fn end(self) {
        self.end.store(true, Ordering::Release);
        if self.ended.await.is_err() {
            panic!("the state of a bee could not be decoded, or the hive is gone")
        }
    }
}

/// Pause between two rounds of [`shake`].
const BETWEEN_SHAKES: Duration = Duration::from_millis(2);

/// Merges the bees of two of an app's cells, as a message that needs both would. `chance` selects the cells. The merge
/// must not be observable. It completes even if this future is dropped.
pub async fn merge_two(hive: &Hive, chance: u64) {
    let (inner, mut chance) = (hive.inner(), Chance::new(chance));
    let apps = inner.apps.read().clone();
    let Some(app) = apps.get(chance.below(apps.len())) else { return };
    let owned = app.owned_cells();
    let mut any = || owned.get(chance.below(owned.len())).copied();
    let (Some(one), Some(other)) = (any(), any()) else { return };

    let uniting = app.clone().unite_cells(CellSet::from_slice(&[one, other]), inner);
    completed(hive, uniting).await;
}

/// Moves the bee that owns one of an app's cells to another of the app's logs. `chance` selects the cell and the log.
/// Returns whether the bee has moved. The move must not be observable. It completes even if this future is dropped.
pub async fn move_one(hive: &Hive, chance: u64) -> bool {
    let (inner, mut chance) = (hive.inner(), Chance::new(chance));
    let apps = inner.apps.read().clone();
    let Some(app) = apps.get(chance.below(apps.len())) else { return false };
    let owned = app.owned_cells();
    let Some(cell) = owned.get(chance.below(owned.len())).copied() else { return false };

    let moving = Inspect::access(app).move_bee_of(cell, chance.below(usize::MAX), inner.clone());
    completed(hive, moving).await.unwrap_or(false)
}

/// Runs `work` as a task of the hive, which completes even if this future is dropped. Returns `None` if the hive is gone
/// and its platform has dropped the task.
async fn completed<T: Send + 'static>(hive: &Hive, work: BoxFuture<T>) -> Option<T> {
    let (send, receive) = oneshot::channel();
    hive.inner().platform.spawn(Box::pin(async move {
        let _ = send.send(work.await);
    }));
    receive.await.ok()
}
