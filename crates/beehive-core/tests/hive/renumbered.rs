//! The next program has other handlers, or has them in another order. What the log says of a handler concerns the handler of
//! that name.

use crate::load::{eventually, killed, on_workers};
use beehive_core::journal::LogState;
use beehive_core::testing::TestJournal;
use beehive_core::{App, Builder, Ctx, Dict, Handlers, Hive, Message, handlers};
use std::sync::Arc;
use std::time::Duration;

#[derive(Message)]
#[message(name = "renumbered::Send")]
struct Send(Vec<u64>);
/// Goes to `first`, which passes it on to `second`.
#[derive(Message)]
#[message(name = "renumbered::Job", reply = u64)]
struct Job(u64);
#[derive(Message)]
#[message(name = "renumbered::One")]
struct One(u64);
#[derive(Message)]
#[message(name = "renumbered::Other")]
struct Other(u64);
/// A handler without state sends it to `second`.
#[derive(Message)]
#[message(name = "renumbered::Tally")]
struct Tally(u64);
/// How often `second` has got a tally.
#[derive(Message)]
#[message(name = "renumbered::Tallies", reply = u64)]
struct Tallies(u64);
/// How often `second` has done a job.
#[derive(Message)]
#[message(name = "renumbered::Done", reply = u64)]
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
        msg.0.iter().for_each(|number| ctx.emit(Job(*number)))
    }
}

/// The handler of jobs is the third one.
#[derive(App)]
#[app(name = "first")]
struct Third {
    jobs: Dict<u64, u64>,
}
#[handlers]
impl Third {
    #[rcv(sharded)]
    fn one(&mut self, msg: &One) {
        self.jobs.entry(msg.0).or_default();
    }
    #[rcv(sharded)]
    fn other(&mut self, msg: &Other) {
        self.jobs.entry(msg.0).or_default();
    }
    #[rcv(stateless)]
    fn job(&self, msg: &Job, ctx: &mut Ctx) -> Option<u64> {
        ctx.emit(Tally(msg.0));
        None
    }
}

/// The handler of jobs is the first one.
#[derive(App)]
#[app(name = "first")]
struct First {
    jobs: Dict<u64, u64>,
}
#[handlers]
impl First {
    #[rcv(stateless)]
    fn job(&self, msg: &Job, ctx: &mut Ctx) -> Option<u64> {
        ctx.emit(Tally(msg.0));
        None
    }
    #[rcv(sharded)]
    fn other(&mut self, msg: &Other) {
        self.jobs.entry(msg.0).or_default();
    }
    #[rcv(sharded)]
    fn one(&mut self, msg: &One) {
        self.jobs.entry(msg.0).or_default();
    }
}

/// There are no other handlers, and jobs need a cell.
#[derive(App)]
#[app(name = "first")]
struct Only {
    jobs: Dict<u64, u64>,
}
#[handlers]
impl Only {
    #[rcv(sharded)]
    fn job(&mut self, msg: &Job) -> Option<u64> {
        *self.jobs.entry(msg.0).or_default() += 1;
        None
    }
}

/// There is no handler of jobs.
#[derive(App)]
#[app(name = "first")]
struct Neither {
    jobs: Dict<u64, u64>,
}
#[handlers]
impl Neither {
    #[rcv(sharded)]
    fn one(&mut self, msg: &One) {
        self.jobs.entry(msg.0).or_default();
    }
}

#[derive(App)]
#[app(name = "second")]
struct Rest {
    jobs: Dict<u64, u64>,
    tallies: Dict<u64, u64>,
}
#[handlers]
impl Rest {
    #[rcv(sharded)]
    fn job(&mut self, msg: &Job) -> u64 {
        *self.jobs.entry(msg.0).or_default() += 1;
        msg.0
    }
    #[rcv(sharded)]
    fn tally(&mut self, msg: &Tally) {
        *self.tallies.entry(msg.0).or_default() += 1
    }
    #[rcv(sharded)]
    fn tallies(&mut self, msg: &Tallies) -> u64 {
        self.tallies.get(&msg.0).copied().unwrap_or(0)
    }
    #[rcv(sharded)]
    fn done(&mut self, msg: &Done) -> u64 {
        self.jobs.get(&msg.0).copied().unwrap_or(0)
    }
}

type Journals = [Arc<TestJournal>; 3];

/// Returns a program whose first receiver of jobs is `A`, and whose apps have a log each that continues these entries.
fn program<A: Handlers>(before: &[Vec<Vec<u8>>; 3]) -> (Builder, Journals) {
    let states = before.each_ref().map(|log| if log.is_empty() { LogState::default() } else { killed(log) });
    let journals = [0, 1, 2].map(|at: usize| TestJournal::start(17 + at as u64, 0, states[at].last));
    let mut builder = Hive::builder().seed(3).app::<Sender>().app::<A>().app::<Rest>();
    for ((app, journal), state) in ["sender", "first", "second"].into_iter().zip(&journals).zip(states) {
        builder = builder.journal_of([app], journal.clone(), state)
    }
    (builder, journals)
}

/// Starts a program. The journals at the positions `stalled` commit nothing.
fn start<A: Handlers>(before: &[Vec<Vec<u8>>; 3], stalled: &[usize]) -> (Hive, Journals) {
    let (builder, journals) = program::<A>(before);
    stalled.iter().for_each(|at| journals[*at].stall(true));
    (builder.start().unwrap(), journals)
}

fn replay(before: &[Vec<u8>], later: &TestJournal) -> LogState {
    LogState::replay([before.to_vec(), later.log()].concat().iter().map(Vec::as_slice)).unwrap()
}

async fn kill(hive: Hive, journals: &Journals) -> [Vec<Vec<u8>>; 3] {
    journals.iter().for_each(|journal| journal.stop());
    hive.stop(Duration::ZERO).await;
    journals.each_ref().map(|journal| journal.log())
}

const JOBS: std::ops::Range<u64> = 0..10;

/// The jobs are in the log of their sender.
async fn sent() -> [Vec<Vec<u8>>; 3] {
    let (hive, journals) = start::<Only>(&[const { Vec::new() }; 3], &[1]);
    hive.emit(Send(JOBS.collect())).await;
    let sent = || replay(&[], &journals[0]).outbox.len() == 10;
    eventually("sent", Duration::from_secs(5), sent).await;
    kill(hive, &journals).await
}

/// A handler without state has handled the jobs, and they have gone on. The log of their sender does not know it.
async fn gone_on() -> [Vec<Vec<u8>>; 3] {
    let before = sent().await;
    let (hive, journals) = start::<Third>(&before, &[0]);
    let are_done = || replay(&before[2], &journals[2]).bees.len() >= 10;
    eventually("done", Duration::from_secs(5), are_done).await;
    let later = kill(hive, &journals).await;
    let logs = [0, 1, 2].map(|at: usize| [before[at].clone(), later[at].clone()].concat());
    assert_eq!(LogState::replay(logs[0].iter().map(Vec::as_slice)).unwrap().outbox.len(), 10);
    logs
}

/// Starts the next program after [`gone_on`]. No job may be done again.
fn done_once<A: Handlers>() {
    on_workers(2, async {
        let before = gone_on().await;
        let (hive, journals) = start::<A>(&before, &[]);
        let is_empty =
            || before.iter().zip(&journals).all(|(log, later)| replay(log, later).outbox.is_empty());
        eventually("empty", Duration::from_secs(10), is_empty).await;
        for number in JOBS {
            assert_eq!(hive.request(Done(number)).await, Ok(1), "job {number}")
        }
        kill(hive, &journals).await;
    })
}

#[test]
fn a_message_that_a_handler_with_another_number_has_handled_is_not_handled_again() {
    done_once::<First>()
}

#[test]
fn a_message_that_a_handler_beyond_the_last_one_has_handled_is_not_handled_again() {
    done_once::<Only>()
}

/// A sender outside sends its messages again to the next program, which has the handler under another number.
#[test]
fn a_message_from_outside_is_handled_once_by_a_handler_with_another_number() {
    on_workers(2, async {
        const LANE: u64 = 77;
        let none = [const { Vec::new() }; 3];
        let (hive, journals) = start::<Third>(&none, &[]);
        let mut io = hive.io();
        io.resume(LANE, 0);
        JOBS.for_each(|number| io.emit(Job(number)));
        io.flush().await;
        let are_done = || replay(&[], &journals[2]).bees.len() >= 10;
        eventually("done", Duration::from_secs(5), are_done).await;
        let before = kill(hive, &journals).await;

        let (hive, journals) = start::<First>(&before, &[]);
        let mut io = hive.io();
        io.resume(LANE, 0);
        JOBS.for_each(|number| io.emit(Job(number)));
        io.flush().await;
        for number in JOBS {
            assert_eq!(hive.request(Done(number)).await, Ok(1), "job {number}");
            assert_eq!(
                hive.request(Tallies(number)).await,
                Ok(1),
                "what the handler has sent for job {number}"
            )
        }
        kill(hive, &journals).await;
    })
}

/// The error names the message. The remedy is a handler for it.
#[test]
fn a_program_without_a_handler_for_a_logged_message_is_refused() {
    on_workers(2, async {
        let before = sent().await;
        let (builder, journals) = program::<Neither>(&before);
        let refused = builder.start().map(drop).unwrap_err().to_string();
        assert!(refused.contains("`renumbered::Job`: the app has no handler for it"), "{refused}");
        journals.iter().for_each(|journal| journal.stop())
    })
}
