//! The runs of all bees in one turn share one log entry. Neither a full turn nor a handler that holds its
//! thread delays this entry.

use crate::load::on_workers;
use beehive_core::journal::{Entry, LogState, Record};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Dict, Hive, Io, Message, handlers};
use std::sync::Arc;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(20);

/// Counts in a cell, and then holds the thread for `held_ms` milliseconds.
#[derive(Message)]
#[message(reply = u64)]
struct Visit {
    place: u64,
    held_ms: u64,
}

#[derive(App)]
struct Places {
    visits: Dict<u64, u64>,
}
#[handlers]
impl Places {
    #[rcv(sharded)]
    fn visit(&mut self, msg: &Visit) -> u64 {
        let visits = self.visits.entry(msg.place).or_default();
        *visits += 1;
        std::thread::sleep(Duration::from_millis(msg.held_ms));
        msg.place
    }
}

fn start() -> (Hive, Arc<TestJournal>) {
    let journal = TestJournal::start(7, 0, 0);
    let builder = Hive::builder().app::<Places>().journal(journal.clone(), LogState::default());
    (builder.start().unwrap(), journal)
}

async fn answers(io: &mut Io, count: usize) -> Vec<u64> {
    let mut answers = Vec::new();
    while answers.len() < count {
        let mail = tokio::time::timeout(LIMIT, io.receive()).await.expect("is answered");
        answers.extend(mail.into_answers::<Visit>().ok().unwrap().into_iter().map(Result::unwrap))
    }
    answers
}

#[test]
fn bees_that_run_one_after_the_other_share_an_entry() {
    on_workers(2, async {
        let (hive, journal) = start();
        let mut io = hive.io();
        for round in 1..=20 {
            (0..100).for_each(|place| io.emit(Visit { place, held_ms: 0 }));
            io.flush().await;
            answers(&mut io, 100).await;
            assert!(journal.log().len() <= round * 50, "{} entries of {round} rounds", journal.log().len());
        }

        let runs = |bytes: &Vec<u8>| match Entry::decode(bytes).expect("is an entry").record {
            Record::Turn(works) => works.len(),
            _ => 0,
        };
        assert_eq!(journal.log().iter().map(runs).sum::<usize>(), 2_000, "each visit is in one entry");
        hive.stop(LIMIT).await;
    })
}

/// The first bee has run, and its answer waits for its log entry, which is appended when the turn ends. The second bee
/// of the turn holds the thread, in one message or in many, so the turn does not end.
#[test]
fn a_bee_that_holds_its_thread_does_not_delay_the_entry_of_the_bees_before_it() {
    on_workers(2, async {
        let (hive, _) = start();
        let mut io = hive.io_with_credits(1_000);
        // create both bees first so that no bee is created during the test
        (0..2).for_each(|place| io.emit(Visit { place, held_ms: 0 }));
        io.flush().await;
        answers(&mut io, 2).await;

        for (messages, held_ms) in [(1, 3_000), (600, 5)] {
            let began = Instant::now();
            io.emit(Visit { place: 0, held_ms: 0 });
            (0..messages).for_each(|_| io.emit(Visit { place: 1, held_ms }));
            io.flush().await;
            let first = answers(&mut io, 1).await;
            assert_eq!(first[0], 0);
            assert!(began.elapsed() < Duration::from_millis(2_000), "after {:?}", began.elapsed());
            answers(&mut io, messages + 1 - first.len()).await;
        }

        hive.stop(LIMIT).await;
    })
}
