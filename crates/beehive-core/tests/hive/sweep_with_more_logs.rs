//! A hive gets more logs while a sweep is unfinished. Wherever the logs have ended, each cell is visited once: none is left out, none is
//! visited again, and nothing of the sweep stays in a log.

use crate::load::{killed, on_workers};
use beehive_core::journal::{Entry, Journal, JournalEvents, LogState, Record, Sweep};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Builder, Ctx, Dict, Hive, Message, handlers, limits};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[derive(Message)]
struct Sow(u64);
/// Visits all beds.
#[derive(Message)]
struct Water(u64);
/// Comes to a bed behind a sweep of the same sender.
#[derive(Message)]
struct Weed(u64);
/// Makes a bee of another app send a sweep.
#[derive(Message)]
struct Send;
/// Makes a bee set a timer.
#[derive(Message)]
struct Wait;
/// The timer sends this to a stateless handler, which sends a sweep to its own app.
#[derive(Message)]
struct Ring;
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct Done(u64);

#[derive(App)]
struct Garden {
    beds: Dict<u64, Vec<u64>>,
    waits: Dict<u8, u64>,
}
#[handlers]
impl Garden {
    #[rcv(sharded)]
    fn sow(&mut self, msg: &Sow) {
        self.beds.entry(msg.0).or_default();
    }
    #[rcv(each = beds)]
    fn water(&mut self, key: &u64, msg: &Water) {
        self.beds.entry(*key).or_default().push(msg.0)
    }
    #[rcv(sharded)]
    fn weed(&mut self, msg: &Weed) {
        self.beds.entry(msg.0).or_default().push(WEEDED)
    }
    #[rcv(centralized)]
    fn wait(&mut self, _: &Wait, ctx: &mut Ctx) {
        *self.waits.entry(0).or_default() += 1;
        ctx.after(Duration::from_millis(1), Ring)
    }
    #[rcv(stateless)]
    fn ring(&mut self, _: &Ring, ctx: &mut Ctx) {
        ctx.emit(Water(WATERED))
    }
    #[rcv(sharded)]
    fn done(&mut self, msg: &Done) -> Vec<u64> {
        self.beds.get(&msg.0).cloned().unwrap_or_default()
    }
}

#[derive(App)]
struct Gardener {
    sent: Dict<u8, u64>,
}
#[handlers]
impl Gardener {
    #[rcv(centralized)]
    fn send(&mut self, _: &Send, ctx: &mut Ctx) {
        *self.sent.entry(0).or_default() += 1;
        ctx.emit(Water(WATERED));
        for key in 0..WEEDS {
            ctx.emit(Weed(key))
        }
    }
}

const WATERED: u64 = 1;
const WEEDED: u64 = 2;
/// The beds that a bee weeds behind its sweep.
const WEEDS: u64 = 3;
/// A life of a hive beside many others, on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// What the logs got, in the order in which they got it. A crash may leave any beginning of it: what a journal got later may depend
/// on what is committed before.
type Told = Arc<Mutex<Vec<(usize, Arc<Entry>)>>>;

/// A journal that notes what it gets.
struct Telling {
    journal: Arc<TestJournal>,
    at: usize,
    told: Told,
}

impl Journal for Telling {
    fn append(&self, entry: Arc<Entry>) {
        self.told.lock().unwrap().push((self.at, entry.clone()));
        self.journal.append(entry)
    }
    fn begin(&self) -> std::io::Result<()> {
        self.journal.begin()
    }
    fn attach(&self, events: Arc<dyn JournalEvents>) {
        self.journal.attach(events)
    }
}

/// The entries of all logs.
type Entries = Vec<(usize, Arc<Entry>)>;

/// Returns the states of this many logs.
fn states(entries: &[(usize, Arc<Entry>)], logs: usize) -> Vec<LogState> {
    let log = |at| entries.iter().filter(|(of, _)| *of == at).map(|(_, entry)| entry.encode()).collect();
    (0..logs).map(|at| killed(&Vec::from_iter::<Vec<Vec<u8>>>(log(at)))).collect()
}

/// Where the apps have their logs, given the first ones or all of them.
type Layout = fn(Vec<(Arc<dyn Journal>, LogState)>) -> Builder;

fn apps() -> Builder {
    Hive::builder().app::<Garden>().app::<Gardener>().seed(3)
}

fn all_together(logs: Vec<(Arc<dyn Journal>, LogState)>) -> Builder {
    apps().journals(logs)
}

fn first_for(app: &'static str, mut logs: Vec<(Arc<dyn Journal>, LogState)>) -> Builder {
    let rest = logs.split_off(1);
    logs.into_iter()
        .fold(apps(), |builder, (journal, state)| builder.journal_of([app], journal, state))
        .journals(rest)
}

fn gardener_apart(logs: Vec<(Arc<dyn Journal>, LogState)>) -> Builder {
    first_for("gardener", logs)
}

fn garden_apart(logs: Vec<(Arc<dyn Journal>, LogState)>) -> Builder {
    first_for("garden", logs)
}

/// A life of a hive.
struct Life {
    hive: Hive,
    told: Told,
    journals: Vec<Arc<TestJournal>>,
    before: Entries,
}

impl Life {
    /// Starts a hive with this many logs, which contain these entries.
    fn start(layout: Layout, logs: usize, before: &[(usize, Arc<Entry>)]) -> Life {
        let states = states(before, logs);
        let told = Told::default();
        let journals: Vec<_> =
            (7..).zip(&states).map(|(seed, state)| TestJournal::start(seed, 0, state.last)).collect();
        let telling =
            journals.iter().cloned().enumerate().map(|(at, journal)| {
                Arc::new(Telling { journal, at, told: told.clone() }) as Arc<dyn Journal>
            });
        let hive = layout(telling.zip(states).collect()).start().unwrap();
        Life { hive, told, journals, before: before.to_vec() }
    }

    /// Returns all entries so far.
    fn entries(&self) -> Entries {
        [&self.before[..], &self.told.lock().unwrap()].concat()
    }

    /// Waits until the logs contain nothing that is unfinished.
    async fn finishes(&self, what: &str) {
        let began = Instant::now();
        loop {
            self.hive.idle().await;
            let states = states(&self.entries(), self.journals.len());
            let is_finished = |state: &LogState| state.sweeps.is_empty() && state.outbox.is_empty();
            if states.iter().all(is_finished) {
                return;
            }
            let left: Vec<_> = states.iter().map(|state| (&state.sweeps, &state.outbox)).collect();
            assert!(began.elapsed() < LIMIT, "{what}: the logs contain {left:?}");
            tokio::time::sleep(Duration::from_millis(5)).await
        }
    }

    /// Checks what the beds have got.
    async fn check(&self, beds: u64, expected: fn(u64) -> Vec<u64>, what: &str) {
        for key in 0..beds {
            let done = self.hive.request_within(LIMIT, Done(key)).await.unwrap();
            assert_eq!(done, expected(key), "{what}: bed {key}")
        }
    }

    async fn end(self) -> Entries {
        self.journals.iter().for_each(|journal| journal.stop());
        let entries = self.entries();
        self.hive.stop(Duration::ZERO).await;
        entries
    }
}

fn watered(_: u64) -> Vec<u64> {
    vec![WATERED]
}

fn watered_and_weeded(key: u64) -> Vec<u64> {
    if key < WEEDS { vec![WATERED, WEEDED] } else { vec![WATERED] }
}

/// What begins a sweep, and the logs.
#[derive(Clone, Copy)]
struct Case {
    layout: Layout,
    /// Number of logs before, and later.
    logs: (usize, usize),
    begin: fn(&Hive) -> Begin,
    expected: fn(u64) -> Vec<u64>,
    beds: u64,
}

type Begin = std::pin::Pin<Box<dyn Future<Output = ()> + std::marker::Send>>;

fn by_a_bee(hive: &Hive) -> Begin {
    let hive = hive.clone();
    Box::pin(async move { hive.emit(Send).await })
}

fn from_outside(hive: &Hive) -> Begin {
    let hive = hive.clone();
    Box::pin(async move { hive.emit(Water(WATERED)).await })
}

fn by_a_timer(hive: &Hive) -> Begin {
    let hive = hive.clone();
    Box::pin(async move { hive.emit(Wait).await })
}

/// The states in which the logs have ended.
#[derive(Debug, Default)]
struct Ends {
    /// The sweep had begun, and no cell was named.
    begun: usize,
    /// Some visits were not committed, and the cursor had passed all cells.
    at_end: usize,
    /// The cursor was between two cells.
    between: usize,
}

impl Case {
    /// Returns the entries of a hive with the fewer logs, and how many of them precede the sweep.
    async fn before(self) -> (Entries, usize) {
        let life = Life::start(self.layout, self.logs.0, &[]);
        for key in 0..self.beds {
            life.hive.emit(Sow(key)).await
        }
        life.hive.idle().await;
        (self.begin)(&life.hive).await;
        life.finishes("before").await;
        life.check(self.beds, self.expected, "before").await;
        let entries = life.end().await;
        let emits = |(_, entry): &(usize, Arc<Entry>)| match &entry.record {
            Record::Turn(works) => works.iter().any(|work| !work.emits.is_empty()),
            Record::Admit { emits, .. } => !emits.is_empty(),
            _ => false,
        };
        let first = entries.iter().position(emits).unwrap();
        (entries, first)
    }

    /// The hive ends behind each entry that follows the first one of the sweep, and then has more logs. For one in `again` of these
    /// ends, the second hive ends behind each of its entries, too.
    fn run(self, again: usize) -> Ends {
        self.run_some((again, usize::MAX), |_| true)
    }

    /// Same as [`Case::run`], for some of the ends, and at most `most` of them.
    fn run_some(self, (again, most): (usize, usize), takes: fn(&[LogState]) -> bool) -> Ends {
        on_workers(3, async {
            let (entries, first) = self.before().await;
            let mut ends = Ends::default();
            let mut lives = Vec::new();
            for end in first + 1..=entries.len() {
                let before = entries[..end].to_vec();
                let states = states(&before, self.logs.0);
                if !takes(&states) || lives.len() == most {
                    continue;
                }
                for sweep in states.iter().flat_map(|state| state.sweeps.values()) {
                    let is_named = !sweep.open.is_empty();
                    ends.begun += usize::from(!is_named);
                    ends.at_end += usize::from(is_named && sweep.next.is_none());
                    ends.between += usize::from(is_between(sweep))
                }
                let what = format!("{:?} logs, end {end} of {}", self.logs, entries.len());
                lives.push(tokio::spawn(self.live_on(before, what, end % again == 0)))
            }
            for life in lives {
                life.await.unwrap()
            }
            ends
        })
    }

    async fn live_on(self, before: Entries, what: String, again: bool) {
        let after = self.live(&before, &what).await;
        let ends = if again { before.len()..after.len() } else { 0..0 };
        for end in ends {
            self.live(&after[..end], &format!("{what}, and {end} of {}", after.len())).await;
        }
    }

    /// Returns the entries of a hive with more logs that goes on behind these entries, until nothing is unfinished.
    async fn live(self, before: &[(usize, Arc<Entry>)], what: &str) -> Entries {
        let life = Life::start(self.layout, self.logs.1, before);
        life.finishes(what).await;
        life.check(self.beds, self.expected, what).await;
        life.end().await
    }
}

/// Checks whether the cursor is between two cells.
fn is_between(sweep: &Sweep) -> bool {
    sweep.next.is_some_and(|next| next.0 != 0)
}

const BEDS: u64 = 24;

#[test]
fn a_sweep_of_a_bee_in_the_same_log() {
    let case = Case {
        layout: all_together,
        logs: (1, 2),
        begin: by_a_bee,
        expected: watered_and_weeded,
        beds: BEDS,
    };
    let ends = case.run(4);
    assert!(ends.begun > 0 && ends.at_end > 0, "{ends:?}")
}

#[test]
fn a_sweep_of_a_bee_in_another_log() {
    for layout in [gardener_apart, garden_apart] {
        let case = Case { layout, logs: (2, 3), begin: by_a_bee, expected: watered_and_weeded, beds: BEDS };
        let ends = case.run(4);
        assert!(ends.begun > 0 && ends.at_end > 0, "{ends:?}")
    }
}

#[test]
fn a_sweep_from_outside() {
    let case =
        Case { layout: all_together, logs: (1, 2), begin: from_outside, expected: watered, beds: BEDS };
    let ends = case.run(4);
    assert!(ends.begun > 0 && ends.at_end > 0, "{ends:?}")
}

/// The number of such a sweep is a part of a number of the app that it visits.
#[test]
fn a_sweep_of_a_stateless_handler_of_its_own_app() {
    for logs in [(2, 2), (1, 2)] {
        let case = Case { layout: all_together, logs, begin: by_a_timer, expected: watered, beds: BEDS };
        let ends = case.run(4);
        assert!(ends.begun > 0 && ends.at_end > 0, "{ends:?}")
    }
}

/// The cursor has come to the next step.
#[test]
fn a_sweep_of_several_steps() {
    let beds = limits::SWEEP_STEP_MAX as u64 + 80;
    for is_of_a_bee in [true, false] {
        let begin = if is_of_a_bee { by_a_bee } else { from_outside };
        let expected = if is_of_a_bee { watered_and_weeded } else { watered };
        let case = Case { layout: all_together, logs: (1, 2), begin, expected, beds };
        let ends = case.run_some((usize::MAX, 3), |states| {
            states.iter().flat_map(|state| state.sweeps.values()).any(is_between)
        });
        assert!(ends.between > 0, "{ends:?}")
    }
}
