//! Recovery after a crash while one log commits nothing: its unfinished messages hold up no messages of other logs.

use crate::load::{eventually, killed, on_workers};
use beehive_core::journal::{CrashMarker, LogState, MessageId, Suspect};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use std::sync::Arc;
use std::time::Duration;

const TASKS: u64 = 60;
/// Number of messages of each log that a marker names.
const NAMED: usize = 20;

#[derive(Message)]
#[message(name = "stalled_suspects::Plan")]
struct Plan;
#[derive(Message)]
#[message(name = "stalled_suspects::Task")]
struct Task(u64);
/// How often the app has done a task.
#[derive(Message)]
#[message(name = "stalled_suspects::CountOne", reply = u64)]
struct CountOne(u64);
#[derive(Message)]
#[message(name = "stalled_suspects::CountOther", reply = u64)]
struct CountOther(u64);

#[derive(App)]
#[app(name = "plans")]
struct Plans {
    plans: Dict<u64, u64>,
}
#[handlers]
impl Plans {
    #[rcv(centralized)]
    fn plan(&mut self, _: &Plan, ctx: &mut Ctx) {
        *self.plans.entry(0).or_default() += 1;
        (0..TASKS).for_each(|task| ctx.emit(Task(task)))
    }
}

#[derive(App)]
#[app(name = "one")]
struct One {
    done: Dict<u64, u64>,
}
#[handlers]
impl One {
    #[rcv(sharded)]
    fn task(&mut self, msg: &Task) {
        *self.done.entry(msg.0).or_default() += 1
    }
    #[rcv(sharded)]
    fn count(&mut self, msg: &CountOne) -> u64 {
        self.done.get(&msg.0).copied().unwrap_or_default()
    }
}

#[derive(App)]
#[app(name = "other")]
struct Other {
    done: Dict<u64, u64>,
}
#[handlers]
impl Other {
    #[rcv(sharded)]
    fn task(&mut self, msg: &Task) {
        *self.done.entry(msg.0).or_default() += 1
    }
    #[rcv(sharded)]
    fn count(&mut self, msg: &CountOther) -> u64 {
        self.done.get(&msg.0).copied().unwrap_or_default()
    }
}

type Journals = [Arc<TestJournal>; 3];

/// Starts a hive whose apps have a log each. Those that are `stalled` commit nothing.
fn start(states: [LogState; 3], stalled: &[usize]) -> (Hive, Journals) {
    let journals = [0, 1, 2].map(|at: usize| TestJournal::start(1 + at as u64, 0, states[at].last));
    stalled.iter().for_each(|at| journals[*at].stall(true));
    let mut builder = Hive::builder().seed(5).app::<Plans>().app::<One>().app::<Other>();
    for ((app, journal), state) in ["plans", "one", "other"].into_iter().zip(&journals).zip(states) {
        builder = builder.journal_of([app], journal.clone(), state)
    }
    (builder.start().unwrap(), journals)
}

/// Returns the messages to an app, of those in the outbox.
fn to_app(state: &LogState, app: u16) -> Vec<MessageId> {
    state.outbox.keys().filter(|id| id.app.0 == app).copied().collect()
}

/// Returns a state with a marker that names some of the messages to an app.
fn naming(mut state: LogState, ids: &[MessageId]) -> LogState {
    let running = ids.iter().take(NAMED).map(|id| Suspect { id: *id, cell: None }).collect();
    state.marker = Some(CrashMarker { running, ..CrashMarker::default() });
    state
}

/// The process was killed while both apps had tasks, and while its markers named some of them, in the log of each app in
/// `suspects`. The log of the first one commits nothing after that.
fn others_go_on(suspects: [bool; 2]) {
    on_workers(2, async move {
        let (hive, journals) = start([(); 3].map(|()| LogState::default()), &[1, 2]);
        hive.emit(Plan).await;
        let plans = |journals: &Journals| killed(&journals[0].log());
        let planned = || plans(&journals).outbox.len() as u64 == 2 * TASKS;
        eventually("the tasks are in a log", Duration::from_secs(10), planned).await;
        journals.iter().for_each(|journal| journal.stop());
        hive.stop(Duration::ZERO).await;

        let first = plans(&journals);
        let named = [1, 2].map(|app: usize| {
            let state = killed(&journals[app].log());
            match suspects[app - 1] {
                true => naming(state, &to_app(&first, app as u16)),
                false => LogState { marker: Some(CrashMarker::default()), ..state },
            }
        });
        let [one, other] = named;
        let before = journals[0].log();
        let (hive, journals) = start([first, one, other], &[1]);
        let left = |app| {
            let log = [before.clone(), journals[0].log()].concat();
            to_app(&killed(&log), app).len() as u64
        };
        eventually("the tasks of the other app are done", Duration::from_secs(30), || left(2) == 0).await;
        assert_eq!(left(1), TASKS, "the log of the first app has committed nothing");
        for task in 0..TASKS {
            assert_eq!(
                hive.request_within(Duration::from_secs(20), CountOther(task)).await,
                Ok(1),
                "task {task}"
            )
        }

        journals[1].stall(false);
        eventually("all tasks are done", Duration::from_secs(30), || left(1) == 0).await;
        for task in 0..TASKS {
            assert_eq!(
                hive.request_within(Duration::from_secs(20), CountOne(task)).await,
                Ok(1),
                "task {task}"
            )
        }
        assert!(hive.dead_letters().is_empty());
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// Messages of the log that commits nothing are to run alone.
#[test]
fn messages_that_run_alone_wait_for_no_other_log() {
    others_go_on([true, true])
}

/// Messages of the log that commits nothing would run together.
#[test]
fn messages_that_run_alone_do_not_wait_for_those_that_run_together() {
    others_go_on([false, true])
}

/// Those of the log that commits nothing are to run alone, those of the other log run together.
#[test]
fn messages_that_run_together_wait_for_no_other_log() {
    others_go_on([true, false])
}
