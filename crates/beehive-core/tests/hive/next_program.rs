//! The program changes between two processes: the next one has another map, which drops messages that the log still
//! contains. They must leave the log, and go on to the next app that can answer.

use crate::load::{eventually, killed, on_workers};
use beehive_core::journal::LogState;
use beehive_core::testing::TestJournal;
use beehive_core::{App, Builder, Ctx, Dict, Handlers, Hive, Message, handlers};
use std::sync::Arc;
use std::time::Duration;

/// Sends a job for each number.
#[derive(Message)]
#[message(name = "next_program::Send")]
struct Send(Vec<u64>);
/// Sets a timer for each number.
#[derive(Message)]
#[message(name = "next_program::Later")]
struct Later(Vec<u64>);
#[derive(Message)]
#[message(name = "next_program::Late")]
struct Late(u64);
#[derive(Message)]
#[message(name = "next_program::Job", reply = u64)]
struct Job(u64);
#[derive(Message)]
#[message(name = "next_program::Done", reply = u64)]
struct Done(u64);

#[derive(App)]
#[app(name = "sender")]
struct Sender {
    sent: Dict<u64, u64>,
}
#[handlers]
impl Sender {
    #[rcv(centralized)]
    fn send(&mut self, msg: &Send, ctx: &mut Ctx) {
        *self.sent.entry(0).or_default() += 1;
        for number in &msg.0 {
            ctx.emit(Job(*number))
        }
    }
}

/// Handles all jobs.
#[derive(App)]
#[app(name = "first")]
struct All {
    jobs: Dict<u64, u64>,
}
#[handlers]
impl All {
    #[rcv(sharded)]
    fn job(&mut self, msg: &Job) -> Option<u64> {
        *self.jobs.entry(msg.0).or_default() += 1;
        // the next app gets these as well
        (msg.0 < 100).then_some(msg.0)
    }
    #[rcv(centralized)]
    fn later(&mut self, msg: &Later, ctx: &mut Ctx) {
        self.jobs.entry(u64::MAX).or_default();
        for number in &msg.0 {
            ctx.after(TIMER, Late(*number))
        }
    }
    #[rcv(sharded)]
    fn late(&mut self, msg: &Late) {
        *self.jobs.entry(msg.0).or_default() += 1;
    }
}

/// The same app in the next program: handles only even jobs.
#[derive(App)]
#[app(name = "first")]
struct Even {
    jobs: Dict<u64, u64>,
}
#[handlers]
impl Even {
    #[rcv(sharded)]
    fn job(&mut self, msg: &Job) -> Option<u64> {
        if msg.0.is_multiple_of(2) {
            *self.jobs.entry(msg.0).or_default() += 1;
            return Some(msg.0);
        }
        None
    }
    #[rcv(sharded)]
    fn late(&mut self, msg: &Late) {
        if msg.0.is_multiple_of(2) {
            *self.jobs.entry(msg.0).or_default() += 1;
        }
    }
}

/// The same app in another next program: handles only even jobs, and passes on all of them.
#[derive(App)]
#[app(name = "first")]
struct EvenAndOn {
    jobs: Dict<u64, u64>,
}
#[handlers]
impl EvenAndOn {
    #[rcv(sharded)]
    fn job(&mut self, msg: &Job) -> Option<u64> {
        if msg.0.is_multiple_of(2) {
            *self.jobs.entry(msg.0).or_default() += 1;
        }
        None
    }
    #[rcv(sharded)]
    fn late(&mut self, msg: &Late) {
        *self.jobs.entry(msg.0).or_default() += 1;
    }
}

/// The same app in another next program: a job belongs to another cell.
#[derive(App)]
#[app(name = "first")]
struct Other {
    jobs: Dict<u64, u64>,
}
#[handlers]
impl Other {
    #[rcv(sharded)]
    fn job(&mut self, msg: &Job) -> Option<u64> {
        *self.jobs.entry(msg.0 + 1000).or_default() += 1;
        None
    }
    #[rcv(sharded)]
    fn late(&mut self, msg: &Late) {
        *self.jobs.entry(msg.0).or_default() += 1;
    }
}

/// The same app in a third next program: a job needs no state.
#[derive(App)]
#[app(name = "first")]
struct Stateless {
    jobs: Dict<u64, u64>,
}
#[handlers]
impl Stateless {
    #[rcv(stateless)]
    fn job(&self, msg: &Job, ctx: &mut Ctx) -> Option<u64> {
        ctx.emit(Done(msg.0));
        None
    }
    #[rcv(sharded)]
    fn late(&mut self, msg: &Late) {
        *self.jobs.entry(msg.0).or_default() += 1;
    }
}

#[derive(App)]
#[app(name = "second")]
struct Rest {
    jobs: Dict<u64, u64>,
}
#[handlers]
impl Rest {
    #[rcv(sharded)]
    fn job(&mut self, msg: &Job) -> u64 {
        *self.jobs.entry(msg.0).or_default() += 1;
        msg.0
    }
    #[rcv(sharded)]
    fn done(&mut self, msg: &Done) -> u64 {
        self.jobs.get(&msg.0).copied().unwrap_or(0)
    }
}

/// Long enough for a test to kill the hive before its timers fire.
const TIMER: Duration = Duration::from_secs(3);

type Logs = Vec<Arc<TestJournal>>;

/// Starts a hive whose apps have one log together, or a log each. `before` are the logs that it continues.
fn start(builder: Builder, before: Option<&Logs>, has_one_log: bool) -> (Hive, Logs) {
    let before: Option<Vec<_>> = before.map(|logs| logs.iter().map(|log| log.log()).collect());
    start_on(builder, before.as_ref(), has_one_log)
}

/// Starts a hive, like [`start`], that continues these states. The journals at the positions `stalled` commit nothing.
fn start_with(builder: Builder, states: Vec<LogState>, stalled: &[usize], has_one_log: bool) -> (Hive, Logs) {
    let apps = ["sender", "first", "second"];
    let of_logs: Vec<&[&'static str]> = if has_one_log { vec![&apps] } else { apps.chunks(1).collect() };
    let mut builder = builder.seed(3);
    let mut logs = Logs::new();
    for (at, (its_apps, state)) in of_logs.into_iter().zip(states).enumerate() {
        let journal = TestJournal::start(17 + at as u64, 0, state.last);
        journal.stall(stalled.contains(&at));
        builder = builder.journal_of(its_apps.iter().copied(), journal.clone(), state);
        logs.push(journal)
    }
    (builder.start().unwrap(), logs)
}

/// Starts a hive, like [`start`], that continues these entries of each log.
fn start_on(builder: Builder, before: Option<&Vec<Vec<Vec<u8>>>>, has_one_log: bool) -> (Hive, Logs) {
    let count = if has_one_log { 1 } else { 3 };
    let state = |at: usize| before.map_or_else(LogState::default, |logs| killed(&logs[at]));
    start_with(builder, (0..count).map(state).collect(), &[], has_one_log)
}

/// Returns a program whose first receiver of jobs is `A`.
fn program_of<A: Handlers>() -> Builder {
    Hive::builder().app::<Sender>().app::<A>().app::<Rest>()
}

fn first_program() -> Builder {
    program_of::<All>()
}

fn next_program() -> Builder {
    program_of::<Even>()
}

/// Returns the number of messages in the outboxes of logs, of which the later ones continue the earlier ones.
fn waiting(earlier: &Logs, later: &Logs) -> usize {
    let both = earlier.iter().zip(later);
    both.map(|(earlier, later)| replay(&[earlier.log(), later.log()].concat()).outbox.len()).sum()
}

fn replay(log: &[Vec<u8>]) -> LogState {
    LogState::replay(log.iter().map(Vec::as_slice)).unwrap()
}

async fn kill(hive: Hive, logs: &Logs) {
    logs.iter().for_each(|log| log.stop());
    hive.stop(Duration::ZERO).await;
}

/// Waits until no log contains a message, and checks that half of `jobs` messages were dropped.
async fn odd_ones_left_the_logs(hive: &Hive, earlier: &Logs, later: &Logs, jobs: u64) {
    let what = "the logs have no messages left";
    eventually(what, Duration::from_secs(20), || waiting(earlier, later) == 0).await;
    let dropped: u64 = hive.status().apps[1].handlers.iter().map(|handler| handler.dropped).sum();
    assert_eq!(dropped, jobs / 2, "they are counted");
    assert_eq!(hive.dead_letters().len(), 0);
}

/// The log has timers, which fire in the next program.
async fn timers_of_dropped_messages(has_one_log: bool) {
    let (hive, earlier) = start(first_program(), None, has_one_log);
    let of_timers = &earlier[earlier.len() / 2];
    let mut io = hive.io();
    io.emit(Later((0..10).collect()));
    io.flush().await;
    eventually("set", Duration::from_secs(5), || replay(&of_timers.log()).outbox.len() == 10).await;
    kill(hive, &earlier).await;

    let (hive, later) = start(next_program(), Some(&earlier), has_one_log);
    odd_ones_left_the_logs(&hive, &earlier, &later, 10).await;
    kill(hive, &later).await;
}

#[test]
fn a_message_of_a_timer_that_the_next_program_drops_leaves_the_log() {
    for has_one_log in [true, false] {
        on_workers(2, timers_of_dropped_messages(has_one_log))
    }
}

/// The first program sends ten jobs, and is killed before the log of their receivers commits anything.
async fn killed_with_jobs_sent(jobs: std::ops::Range<u64>) -> Vec<Arc<TestJournal>> {
    let (hive, journals) = start(first_program(), None, false);
    journals[1].stall(true);
    let mut io = hive.io();
    io.emit(Send(jobs.collect()));
    io.flush().await;
    eventually("sent", Duration::from_secs(5), || replay(&journals[0].log()).outbox.len() == 10).await;
    kill(hive, &journals).await;
    journals
}

/// The logs of the receivers commit nothing while the first program runs.
#[test]
fn a_message_that_the_next_program_drops_leaves_the_log_of_its_sender() {
    on_workers(2, async {
        let earlier = killed_with_jobs_sent(0..10).await;

        let (hive, later) = start(next_program(), Some(&earlier), false);
        odd_ones_left_the_logs(&hive, &earlier, &later, 10).await;
        for number in 0..10 {
            assert_eq!(
                hive.request(Done(number)).await,
                Ok(number % 2),
                "job {number} went on once if it was dropped"
            );
        }
        kill(hive, &later).await;
    })
}

const JOBS: std::ops::Range<u64> = 100..110;

/// The first app has handled the messages and passed them on. The log of the sender does not know it yet.
async fn handled_before(first_program: Builder, next_program: Builder) {
    let (hive, earlier) = start(first_program, None, false);
    earlier[1].stall(true);
    let mut io = hive.io();
    io.emit(Send(JOBS.collect()));
    io.flush().await;
    let sent = || replay(&earlier[0].log()).outbox.len() == 10;
    eventually("sent", Duration::from_secs(5), sent).await;
    earlier[0].stall(true);
    earlier[1].stall(false);
    let handled = || replay(&earlier[2].log()).bees.len() == 10;
    eventually("handled", Duration::from_secs(5), handled).await;
    kill(hive, &earlier).await;
    assert!(sent());

    let (hive, later) = start(next_program, Some(&earlier), false);
    eventually("empty", Duration::from_secs(10), || waiting(&earlier, &later) == 0).await;
    for number in JOBS {
        assert_eq!(hive.request(Done(number)).await, Ok(1), "job {number}");
    }
    kill(hive, &later).await;
}

#[test]
fn a_message_that_was_handled_before_does_not_go_on_again() {
    on_workers(2, handled_before(first_program(), next_program()))
}

/// The bee that remembers the messages does not get them.
#[test]
fn a_message_that_was_handled_before_is_not_handled_in_another_cell() {
    on_workers(2, handled_before(first_program(), program_of::<Other>()));
    on_workers(2, handled_before(first_program(), program_of::<Stateless>()))
}

/// The second program has dropped some of the messages. Its log remembers that, and no bee does. The log of the sender does
/// not know it yet, and the third program drops none.
#[test]
fn a_message_that_was_dropped_before_is_not_handled_by_a_bee() {
    on_workers(2, async {
        let first = killed_with_jobs_sent(JOBS).await;

        let (hive, second) = start(next_program(), Some(&first), false);
        let entries = |at: usize| [first[at].log(), second[at].log()].concat();
        // half of the messages have a bee in the log of the first receiver, the others in that of the second one
        let are_handled = || [1, 2].iter().all(|at| replay(&entries(*at)).bees.len() == 5);
        eventually("handled", Duration::from_secs(10), are_handled).await;
        kill(hive, &second).await;
        // what the second process has appended to the log of the sender was not committed
        let before = vec![first[0].log(), entries(1), entries(2)];
        assert_eq!(replay(&before[0]).outbox.len(), 10);

        let (hive, third) = start_on(first_program(), Some(&before), false);
        let is_empty = || replay(&[first[0].log(), third[0].log()].concat()).outbox.is_empty();
        eventually("empty", Duration::from_secs(10), is_empty).await;
        for number in JOBS {
            assert_eq!(hive.request(Done(number)).await, Ok(number % 2), "job {number}");
        }
        kill(hive, &third).await;
    })
}

/// The second program drops some of the messages and passes them on, and ends at any point between that and the
/// acknowledgment of the last of them: each number of entries of its logs is a point at which a crash may have left them.
/// Then a program comes back that drops none. Each message goes on exactly once, whichever program has handled it.
fn ended_anywhere(third: fn() -> Builder) {
    on_workers(2, async {
        let first = killed_with_jobs_sent(JOBS).await;
        let before: Vec<_> = first.iter().map(|log| log.log()).collect();

        // no entry of the second log depends on one of the third log, which commits nothing
        let states = before.iter().map(|log| replay(log)).collect::<Vec<_>>();
        let (hive, second) = start_with(program_of::<EvenAndOn>(), states, &[2], false);
        let sent = |log: &[Vec<u8>]| replay(&[before[0].clone(), log.to_vec()].concat()).outbox.len();
        let all_acked = || sent(&second[0].log()) == 0;
        eventually("all are acknowledged", Duration::from_secs(10), all_acked).await;
        kill(hive, &second).await;

        // the acknowledgments in the first log depend on all entries of the second one
        let (acked, handled) = (second[0].log(), second[1].log());
        let ends = (0..handled.len()).map(|of_second| (0, of_second));
        let ends: Vec<_> = ends.chain((0..=acked.len()).map(|of_first| (of_first, handled.len()))).collect();
        let mut left = std::collections::BTreeSet::new();
        for (of_first, of_second) in ends {
            let logs = vec![
                [before[0].clone(), acked[..of_first].to_vec()].concat(),
                [before[1].clone(), handled[..of_second].to_vec()].concat(),
                before[2].clone(),
            ];
            left.insert((sent(&acked[..of_first]), replay(&logs[1]).outbox.len()));
            let (hive, last) = start_on(third(), Some(&logs), false);
            let both = logs.iter().zip(&last).take(2);
            let is_empty = || {
                both.clone().all(|(log, last)| replay(&[log.clone(), last.log()].concat()).outbox.is_empty())
            };
            eventually("empty", Duration::from_secs(20), is_empty).await;
            for number in JOBS {
                let ended = (of_first, of_second);
                assert_eq!(hive.request(Done(number)).await, Ok(1), "job {number}, after {ended:?} entries")
            }
            kill(hive, &last).await;
        }
        // none has gone on yet; all have, and none is acknowledged; all are acknowledged
        assert!([(10, 0), (10, 10), (0, 10)].iter().all(|point| left.contains(point)), "{left:?}");
    })
}

#[test]
fn a_program_that_drops_messages_may_end_anywhere_before_one_that_does_not() {
    ended_anywhere(first_program)
}

#[test]
fn a_program_that_drops_messages_may_end_anywhere_before_one_that_needs_no_state() {
    ended_anywhere(program_of::<Stateless>)
}
