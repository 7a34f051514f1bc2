//! Recovery after a crash while one of the logs of an app commits nothing, and more bees have unfinished messages in it than the app
//! may have threads: the bees in its other logs go on.

use crate::load::{eventually, killed, on_workers};
use beehive_core::journal::{CrashMarker, Journal, LogState, MessageId, Suspect};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers, limits};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A recovery, on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
/// Each of two logs has about half of them, and more than an app may have threads.
const TASKS: u64 = 600;
/// Number of senders that have a message to a stateless handler, more than an app may have threads.
const NOTES: u64 = 200;

/// The tasks of one test, of which the first ones take long while `IS_CLOSED`.
const SOME: std::ops::Range<u64> = 10_000..10_300;
const SLOW: std::ops::Range<u64> = 10_000..10_040;
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Lets the slow tasks end when it is dropped, so that a failed test does not wait for them.
struct Opens;

impl Drop for Opens {
    fn drop(&mut self) {
        IS_CLOSED.store(false, Ordering::Release)
    }
}

/// Whether notes are handled yet, in each of the tests. Before that, they are postponed, so that they are in the log of their sender.
static ARE_OPEN: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

/// Makes a bee exist.
#[derive(Message)]
#[message(name = "parked_suspects::Hire")]
struct Hire(u64);
#[derive(Message)]
#[message(name = "parked_suspects::Plan")]
struct Plan;
#[derive(Message)]
#[message(name = "parked_suspects::PlanSome")]
struct PlanSome;
#[derive(Message)]
#[message(name = "parked_suspects::Task")]
struct Task(u64);
/// Makes a bee send a `Note`.
#[derive(Message)]
#[message(name = "parked_suspects::Remind")]
struct Remind {
    test: usize,
    key: u64,
}
#[derive(Message)]
#[message(name = "parked_suspects::Note")]
struct Note {
    test: usize,
    key: u64,
}
#[derive(Message)]
#[message(name = "parked_suspects::Noted")]
struct Noted(u64);
/// How often a task was done.
#[derive(Message)]
#[message(name = "parked_suspects::Count", reply = u64)]
struct Count(u64);
/// How often a note was handled.
#[derive(Message)]
#[message(name = "parked_suspects::CountNoted", reply = u64)]
struct CountNoted(u64);

#[derive(App)]
#[app(name = "planning")]
struct Planning {
    plans: Dict<u8, u64>,
    notes: Dict<u64, u64>,
    noted: Dict<u64, u64>,
}
#[handlers]
impl Planning {
    #[rcv(centralized)]
    fn plan(&mut self, _: &Plan, ctx: &mut Ctx) {
        *self.plans.entry(0).or_default() += 1;
        (0..TASKS).for_each(|task| ctx.emit(Task(task)))
    }
    #[rcv(centralized)]
    fn plan_some(&mut self, _: &PlanSome, ctx: &mut Ctx) {
        *self.plans.entry(0).or_default() += 1;
        SOME.for_each(|task| ctx.emit(Task(task)))
    }
    #[rcv(sharded)]
    fn remind(&mut self, msg: &Remind, ctx: &mut Ctx) {
        *self.notes.entry(msg.key).or_default() += 1;
        ctx.emit(Note { test: msg.test, key: msg.key })
    }
    #[rcv(sharded)]
    fn noted(&mut self, msg: &Noted) {
        *self.noted.entry(msg.0).or_default() += 1
    }
    #[rcv(sharded)]
    fn count(&mut self, msg: &CountNoted) -> u64 {
        self.noted.get(&msg.0).copied().unwrap_or_default()
    }
}

#[derive(App)]
#[app(name = "working")]
struct Working {
    done: Dict<u64, u64>,
}
#[handlers]
impl Working {
    #[rcv(sharded)]
    fn hire(&mut self, msg: &Hire) {
        self.done.entry(msg.0).or_default();
    }
    #[rcv(sharded)]
    fn task(&mut self, msg: &Task) {
        while SLOW.contains(&msg.0) && IS_CLOSED.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(5))
        }
        *self.done.entry(msg.0).or_default() += 1
    }
    #[rcv(stateless)]
    fn note(&mut self, msg: &Note, ctx: &mut Ctx) {
        match ARE_OPEN[msg.test].load(Ordering::Acquire) {
            true => ctx.emit(Noted(msg.key)),
            false => ctx.postpone(Duration::from_secs(3600)),
        }
    }
    #[rcv(sharded)]
    fn count(&mut self, msg: &Count) -> u64 {
        self.done.get(&msg.0).copied().unwrap_or_default()
    }
}

/// The log of the plans, and both logs of the work.
type Journals = [Arc<TestJournal>; 3];
type Logs = [Vec<Vec<u8>>; 3];

/// Starts a hive. The logs that are `stalled` commit nothing.
fn start(states: [LogState; 3], stalled: &[usize]) -> (Hive, Journals) {
    let journals = [0, 1, 2].map(|at: usize| TestJournal::start(1 + at as u64, 0, states[at].last));
    stalled.iter().for_each(|at| journals[*at].stall(true));
    let mut logs = journals.iter().map(|journal| journal.clone() as Arc<dyn Journal>).zip(states);
    let mut builder = Hive::builder().seed(5).app::<Planning>().app::<Working>();
    if let Some((journal, state)) = logs.next() {
        builder = builder.journal_of(["planning"], journal, state)
    }
    (builder.journals(logs).start().unwrap(), journals)
}

/// Returns the unfinished messages to the app that works.
fn unfinished(log: &[Vec<u8>]) -> Vec<MessageId> {
    killed(log).outbox.keys().filter(|id| id.app.0 == 1).copied().collect()
}

/// Adds what a hive has logged until it is killed here.
async fn kill(hive: Hive, journals: Journals, logs: &mut Logs) {
    journals.iter().for_each(|journal| journal.stop());
    hive.stop(Duration::ZERO).await;
    logs.iter_mut().zip(&journals).for_each(|(log, journal)| log.extend(journal.log()))
}

/// Returns the states after a crash. Those of the messages in `named` that have not run yet run alone.
fn crashed(logs: &Logs, named: &[MessageId]) -> [LogState; 3] {
    let mut states = [0, 1, 2].map(|at: usize| killed(&logs[at]));
    let running = named.iter().map(|id| Suspect { id: *id, cell: None }).collect();
    for state in &mut states {
        state.marker = Some(CrashMarker::default())
    }
    states[0].marker = Some(CrashMarker { running, ..CrashMarker::default() });
    states
}

/// Asks how often each task was done. Counts the answers in `answers`.
fn ask(hive: &Hive, answers: &Arc<AtomicU64>) -> Vec<tokio::task::JoinHandle<u64>> {
    let ask = |task| {
        let (hive, answers) = (hive.clone(), answers.clone());
        tokio::spawn(async move {
            let times = hive.request_within(2 * LIMIT, Count(task)).await.unwrap();
            answers.fetch_add(1, Ordering::Relaxed);
            times
        })
    };
    (0..TASKS).map(ask).collect()
}

/// The process was killed while all bees had unfinished messages, of which this many run alone in the next one. After that, a log
/// commits nothing: the first or the second one of the work. If this is one of the tests `with_notes`, there are also messages to
/// stateless handlers. If `stops`, the hive stops before the log commits again.
fn others_go_on(stalled: usize, alone: usize, with_notes: Option<usize>, stops: bool) {
    let notes = with_notes.map_or(0, |_| NOTES);
    on_workers(2, async move {
        let mut logs = Logs::default();
        let (hive, journals) = start([(); 3].map(|()| LogState::default()), &[]);
        for task in 0..TASKS {
            hive.emit(Hire(task)).await
        }
        hive.idle().await;
        let bees = [1, 2].map(|at: usize| killed(&journals[at].log()).bees.len());
        assert!(bees.iter().all(|bees| *bees > limits::HELD_THREADS_PER_APP_MAX), "{bees:?}");
        let of_stalled = bees[stalled - 1];

        journals[1].stall(true);
        journals[2].stall(true);
        hive.emit(Plan).await;
        for (test, key) in with_notes.into_iter().flat_map(|test| (0..NOTES).map(move |key| (test, key))) {
            hive.emit(Remind { test, key }).await
        }
        let are_sent = || unfinished(&journals[0].log()).len() as u64 == TASKS + notes;
        eventually("all messages are in the log of the plans", LIMIT, are_sent).await;
        kill(hive, journals, &mut logs).await;
        with_notes.iter().for_each(|test| ARE_OPEN[*test].store(true, Ordering::Release));

        let named = unfinished(&logs[0]);
        let (mut hive, mut journals) = start(crashed(&logs, &named[..alone]), &[stalled]);
        let before = logs[0].clone();
        let left = |journals: &Journals| unfinished(&[before.clone(), journals[0].log()].concat()).len();
        // the first log of the app also has its stateless handlers
        let waits = of_stalled + if stalled == 1 { notes as usize } else { 0 };
        eventually("the tasks in the other log are done", LIMIT, || left(&journals) <= waits).await;
        let answers = Arc::default();
        let mut counts = ask(&hive, &answers);
        let others = TASKS as usize - of_stalled;
        let answered = || answers.load(Ordering::Relaxed) as usize >= others;
        eventually("the bees in the other log answer", LIMIT, answered).await;
        assert_eq!(left(&journals), waits, "the log commits nothing");

        if stops {
            counts.drain(..).for_each(|count| count.abort());
            kill(hive, journals, &mut logs).await;
            (hive, journals) = start(crashed(&logs, &[]), &[]);
            counts = ask(&hive, &answers)
        }
        journals[stalled].stall(false);
        for (task, count) in counts.into_iter().enumerate() {
            assert_eq!(count.await.unwrap(), 1, "task {task}")
        }
        for note in 0..notes {
            for _ in 0..5_000 {
                if hive.request_within(LIMIT, CountNoted(note)).await == Ok(1) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await
            }
            assert_eq!(hive.request_within(LIMIT, CountNoted(note)).await, Ok(1), "note {note}")
        }
        assert!(hive.dead_letters().is_empty());
        hive.stop(Duration::from_secs(5)).await;
        journals.iter().for_each(|journal| journal.stop());
        logs.iter_mut().zip(&journals).for_each(|(log, journal)| log.extend(journal.log()));
        assert!(killed(&logs[0]).outbox.is_empty())
    })
}

#[test]
fn bees_in_a_log_that_commits_wait_for_no_other_log_of_their_app() {
    others_go_on(2, 0, None, false)
}

/// Most messages are to run alone.
#[test]
fn bees_whose_messages_run_alone_wait_for_no_other_log_of_their_app() {
    others_go_on(2, TASKS as usize / 2, None, false)
}

/// The stateless handlers of the app are in the log that commits nothing.
#[test]
fn stateless_handlers_that_wait_for_a_log_hold_up_no_bees_in_other_logs() {
    others_go_on(1, 0, Some(0), false)
}

#[test]
fn a_hive_whose_bees_wait_for_a_log_stops_and_loses_nothing() {
    others_go_on(1, 0, Some(1), true)
}

/// The last process ended cleanly, so the bees wait for the first marker only. Then all of them run, and none waits until the
/// handlers of others have ended.
#[test]
fn after_a_clean_stop_a_bee_waits_for_no_handler_of_another() {
    on_workers(2, async move {
        let mut logs = Logs::default();
        let (hive, journals) = start([(); 3].map(|()| LogState::default()), &[]);
        for task in SOME {
            hive.emit(Hire(task)).await
        }
        hive.idle().await;
        journals[1].stall(true);
        journals[2].stall(true);
        hive.emit(PlanSome).await;
        let are_sent = || unfinished(&journals[0].log()).len() as u64 == SOME.end - SOME.start;
        eventually("all messages are in the log of the plans", LIMIT, are_sent).await;
        kill(hive, journals, &mut logs).await;

        IS_CLOSED.store(true, Ordering::Release);
        let opens = Opens;
        let clean = crashed(&logs, &[]).map(|state| LogState { marker: None, ..state });
        let (hive, journals) = start(clean, &[0, 1, 2]);
        // time for the bees to wait for the first marker
        tokio::time::sleep(Duration::from_millis(500)).await;
        journals.iter().for_each(|journal| journal.stall(false));
        let before = logs[0].clone();
        let left = || unfinished(&[before.clone(), journals[0].log()].concat()).len() as u64;
        eventually("all others are done", LIMIT, || left() <= SLOW.end - SLOW.start).await;
        drop(opens);
        for task in SOME {
            assert_eq!(hive.request_within(LIMIT, Count(task)).await, Ok(1), "task {task}")
        }
        hive.stop(Duration::from_secs(5)).await;
        journals.iter().for_each(|journal| journal.stop())
    })
}
