//! The start of a hive after a crash while one log commits nothing: unfinished messages to stateless handlers of that log hold up
//! neither the start nor the messages of other logs.

use crate::load::{eventually, killed, on_workers};
use beehive_core::journal::LogState;
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);
const LETTERS: u64 = 50;

/// Whether the post office is closed: then it postpones all letters.
static IS_CLOSED: AtomicBool = AtomicBool::new(true);

#[derive(Message)]
#[message(name = "stalled_start::Write")]
struct Write;
#[derive(Message)]
#[message(name = "stalled_start::Letter")]
struct Letter(u64);
#[derive(Message)]
#[message(name = "stalled_start::Delivered")]
struct Delivered(u64);
/// The letters that have been delivered, in order.
#[derive(Message)]
#[message(name = "stalled_start::Look", reply = Vec<u64>)]
struct Look;

#[derive(App)]
#[app(name = "writers")]
struct Writers {
    written: Dict<u64, u64>,
}
#[handlers]
impl Writers {
    #[rcv(centralized)]
    fn write(&mut self, _: &Write, ctx: &mut Ctx) {
        *self.written.entry(0).or_default() += 1;
        (0..LETTERS).for_each(|letter| ctx.emit(Letter(letter)))
    }
}

#[derive(App)]
#[app(name = "office")]
struct PostOffice {}
#[handlers]
impl PostOffice {
    #[rcv(stateless)]
    fn letter(&self, msg: &Letter, ctx: &mut Ctx) {
        match IS_CLOSED.load(Ordering::Acquire) {
            true => ctx.postpone(Duration::from_secs(3600)),
            false => ctx.emit(Delivered(msg.0)),
        }
    }
}

#[derive(App)]
#[app(name = "readers")]
struct Readers {
    letters: Dict<u64, Vec<u64>>,
}
#[handlers]
impl Readers {
    #[rcv(centralized)]
    fn delivered(&mut self, msg: &Delivered) {
        self.letters.entry(0).or_default().push(msg.0)
    }
    #[rcv(centralized)]
    fn look(&mut self, _: &Look) -> Vec<u64> {
        self.letters.get(&0).cloned().unwrap_or_default()
    }
}

type Journals = [Arc<TestJournal>; 3];

/// Returns journals that go on with these logs.
fn journals(states: &[LogState; 3]) -> Journals {
    [0, 1, 2].map(|at: usize| TestJournal::start(1 + at as u64, 0, states[at].last))
}

/// Starts a hive whose apps have a log each.
fn start(states: [LogState; 3], journals: &Journals) -> Hive {
    let mut builder = Hive::builder().seed(5).app::<Writers>().app::<PostOffice>().app::<Readers>();
    for ((app, journal), state) in ["writers", "office", "readers"].into_iter().zip(journals).zip(states) {
        builder = builder.journal_of([app], journal.clone(), state)
    }
    builder.start().unwrap()
}

/// The process was killed while the letters were postponed: they are in the log of the writers.
#[test]
fn a_start_runs_no_stateless_handlers_and_does_not_wait_for_their_log() {
    on_workers(2, async {
        let states = [(); 3].map(|()| LogState::default());
        let first = journals(&states);
        let hive = start(states, &first);
        hive.emit(Write).await;
        let is_written = || killed(&first[0].log()).outbox.len() as u64 == LETTERS;
        eventually("the letters are in a log", SOON, is_written).await;
        first.iter().for_each(|journal| journal.stop());
        hive.stop(Duration::ZERO).await;

        IS_CLOSED.store(false, Ordering::Release);
        let states = [0, 1, 2].map(|at: usize| killed(&first[at].log()));
        let second = journals(&states);
        second[1].stall(true);
        let its_journals = second.clone();
        let starting = tokio::task::spawn_blocking(move || start(states, &its_journals));
        let started = tokio::time::timeout(SOON, starting).await;
        if started.is_err() {
            // the runtime cannot end before the start does
            second[1].stall(false)
        }
        let hive = started.expect("the start waits for a log").unwrap();
        assert_eq!(hive.request_within(SOON, Look).await, Ok(Vec::new()), "nobody may run a letter yet");

        second[1].stall(false);
        let mut delivered = Vec::new();
        for _ in 0..1000 {
            delivered = hive.request_within(SOON, Look).await.unwrap();
            if delivered.len() as u64 == LETTERS {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await
        }
        assert_eq!(delivered, (0..LETTERS).collect::<Vec<_>>(), "each one is delivered once, and in order");
        assert!(hive.dead_letters().is_empty());
        hive.stop(Duration::from_secs(5)).await;
        second.iter().for_each(|journal| journal.stop())
    })
}
