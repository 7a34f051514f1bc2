//! Recovery after a crash: the markers name many unfinished messages at once, and a message that was named runs alone in
//! the next incarnation.

use crate::load::{eventually, on_workers};
use beehive_core::journal::{CrashMarker, Entry, LogState, Record, Suspect};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const TASKS: u64 = 1_000;

#[derive(Message)]
struct Plan;
#[derive(Message)]
struct Task(u64);
#[derive(Message)]
#[message(reply = u64)]
struct Count(u64);

/// Begins a sweep.
#[derive(Message)]
struct Begin;
#[derive(Message)]
struct Look;
/// Makes all cells below a number cells of one bee. Only half of them get a value.
#[derive(Message)]
struct Join(u64);

#[derive(App)]
struct Planner {
    plans: Dict<u64, u64>,
}
#[handlers]
impl Planner {
    #[rcv(centralized)]
    fn plan(&mut self, _: &Plan, ctx: &mut Ctx) {
        *self.plans.entry(0).or_default() += 1;
        (0..TASKS).for_each(|task| ctx.emit(Task(task)))
    }
    #[rcv(centralized)]
    fn begin(&mut self, _: &Begin, ctx: &mut Ctx) {
        *self.plans.entry(0).or_default() += 1;
        ctx.emit(Look)
    }
}

static RUNNING: AtomicUsize = AtomicUsize::new(0);
static MOST_RUNNING: AtomicUsize = AtomicUsize::new(0);

#[derive(App)]
struct Worker {
    done: Dict<u64, u64>,
}
#[handlers]
impl Worker {
    #[rcv(sharded)]
    fn task(&mut self, msg: &Task) {
        MOST_RUNNING.fetch_max(RUNNING.fetch_add(1, Ordering::AcqRel) + 1, Ordering::AcqRel);
        std::thread::sleep(Duration::from_micros(20));
        *self.done.entry(msg.0).or_default() += 1;
        RUNNING.fetch_sub(1, Ordering::AcqRel);
    }
    #[rcv(joins)]
    fn join(&mut self, msg: &Join) {
        for key in 0..msg.0 {
            match key % 2 {
                0 => self.done.put(key, 0),
                _ => self.done.get(&key).copied(),
            };
        }
    }
    #[rcv(each = done)]
    fn look(&mut self, key: &u64, _: &Look) {
        *self.done.entry(*key).or_default() += 1
    }
    #[rcv(sharded)]
    fn count(&mut self, msg: &Count) -> u64 {
        self.done.get(&msg.0).copied().unwrap_or_default()
    }
}

/// Starts a hive whose apps have a log each. The journals commit at once.
fn start(planner: LogState, worker: LogState) -> (Hive, [Arc<TestJournal>; 2]) {
    let journals = [(1, &planner), (2, &worker)].map(|(seed, state)| TestJournal::start(seed, 0, state.last));
    let builder = Hive::builder().seed(5).app::<Planner>().app::<Worker>();
    let builder = builder.journal_of(["planner"], journals[0].clone(), planner);
    let hive = builder.journal_of(["worker"], journals[1].clone(), worker).start().unwrap();
    (hive, journals)
}

fn state(entries: impl IntoIterator<Item = Vec<u8>>) -> LogState {
    let entries: Vec<_> = entries.into_iter().collect();
    LogState::replay(entries.iter().map(Vec::as_slice)).unwrap()
}

/// Returns the markers in a log, in order.
fn markers(journal: &TestJournal) -> Vec<CrashMarker> {
    let records = journal.log().into_iter().map(|bytes| Entry::decode(&bytes).unwrap().record);
    let marker = |record| match record {
        Record::Mark { marker } => marker,
        _ => None,
    };
    records.filter_map(marker).collect()
}

/// Runs a hive that is killed while the worker's log has committed none of the tasks.
async fn killed_before_the_tasks() -> (LogState, LogState) {
    let (hive, journals) = start(LogState::default(), LogState::default());
    let is_marked = || journals.iter().all(|journal| !markers(journal).is_empty());
    eventually("both logs have a marker", Duration::from_secs(10), is_marked).await;
    journals[1].stall(true);
    hive.emit(Plan).await;
    let planned = || state(journals[0].log()).outbox.len() as u64 == TASKS;
    eventually("the planner's log has the tasks", Duration::from_secs(10), planned).await;

    journals.iter().for_each(|journal| journal.stop());
    hive.stop(Duration::ZERO).await;
    (state(journals[0].log()), state(journals[1].log()))
}

/// Runs a hive until it has done the tasks, and returns the number of markers in its worker's log.
async fn recovered(planner: LogState, worker: LogState) -> usize {
    MOST_RUNNING.store(0, Ordering::Release);
    let (hive, journals) = start(planner, worker);
    let is_done = || state(journals[0].log()).outbox.is_empty();
    eventually("all tasks are acknowledged", Duration::from_secs(30), is_done).await;

    for task in 0..TASKS {
        assert_eq!(hive.request_within(Duration::from_secs(30), Count(task)).await, Ok(1), "task {task}")
    }
    assert!(hive.dead_letters().is_empty());
    eventually("the markers name none", Duration::from_secs(10), || {
        journals.iter().all(|journal| markers(journal).last().is_none_or(|marker| marker.running.is_empty()))
    })
    .await;

    let count = markers(&journals[1]).len();
    hive.stop(Duration::from_secs(5)).await;
    count
}

/// Many messages that were unfinished at a crash wait for few markers. If the process ends again, those named at that moment
/// run one at a time, the others do not.
#[test]
fn the_markers_name_many_unfinished_messages_at_once() {
    on_workers(2, async {
        let (planner, worker) = killed_before_the_tasks().await;
        let unfinished: Vec<_> = planner.outbox.keys().copied().collect();

        let count = recovered(planner.clone(), worker.clone()).await as u64;
        assert!(count < TASKS / 10, "{count} markers for {TASKS} messages");
        assert!(MOST_RUNNING.load(Ordering::Acquire) > 1, "they run side by side");

        let named = |count: usize| {
            let running = unfinished[..count].iter().map(|id| Suspect { id: *id, cell: None }).collect();
            LogState { marker: Some(CrashMarker { running, ..CrashMarker::default() }), ..worker.clone() }
        };
        let count = recovered(planner.clone(), named(50)).await as u64;
        // each of them needs a marker, and one that no longer names it. It ends a group, whose other messages have to be named
        // again, and if the group was small, a marker says that it has ended
        assert!((100..200 + TASKS / 10).contains(&count), "{count} markers if 50 messages run alone");

        recovered(planner.clone(), named(TASKS as usize)).await;
        assert_eq!(MOST_RUNNING.load(Ordering::Acquire), 1, "all run alone");
    })
}

/// The visits of one bee are in one delivery, but some of its cells have no value, so no handler runs for them. The marker
/// must not name them for ever.
#[test]
fn after_a_sweep_the_markers_name_no_cells() {
    const CELLS: u64 = 10;
    on_workers(2, async {
        let (hive, journals) = start(LogState::default(), LogState::default());
        hive.emit(Join(CELLS)).await;
        hive.idle().await;
        let is_marked = || journals.iter().all(|journal| !markers(journal).is_empty());
        eventually("both logs have a marker", Duration::from_secs(10), is_marked).await;
        let joined = state(journals[1].log());
        assert_eq!(joined.bees.values().map(|bee| bee.cells.len() as u64).collect::<Vec<_>>(), [CELLS]);
        journals[1].stall(true);
        hive.emit(Begin).await;
        let begun = || state(journals[0].log()).sweeps.len() == 1;
        eventually("the planner's log has the sweep", Duration::from_secs(10), begun).await;
        journals.iter().for_each(|journal| journal.stop());
        hive.stop(Duration::ZERO).await;

        let (planner, worker) = (state(journals[0].log()), state(journals[1].log()));
        let (hive, journals) = start(planner, worker);
        eventually("the sweep is over", Duration::from_secs(10), || {
            let log = journals[1].log().into_iter().map(|bytes| Entry::decode(&bytes).unwrap().record);
            let visits: usize = log
                .map(|record| match record {
                    Record::Turn(works) => works.iter().map(|work| work.visits.len()).sum(),
                    _ => 0,
                })
                .sum();
            visits > 0
        })
        .await;
        assert_eq!(hive.request(Count(4)).await, Ok(1));
        assert!(
            markers(&journals[1]).iter().any(|marker| marker.running.len() as u64 >= CELLS / 2),
            "named together"
        );
        eventually("the markers name none", Duration::from_secs(5), || {
            journals
                .iter()
                .all(|journal| markers(journal).last().is_none_or(|marker| marker.running.is_empty()))
        })
        .await;
        hive.stop(Duration::from_secs(5)).await;
    })
}
