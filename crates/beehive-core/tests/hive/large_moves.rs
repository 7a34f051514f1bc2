//! A large bee moves to another log in parts, of which only a few are undecided at a time.

use crate::load::{eventually, killed, on_workers};
use beehive_core::journal::{Journal, LogState};
use beehive_core::testing::{TestJournal, move_one};
use beehive_core::{App, Hive, Message, Table, handlers, limits};
use std::sync::Arc;
use std::time::Duration;

/// Number of rows, each of the size of a part.
const ROWS: u64 = 16;
const LIMIT: Duration = Duration::from_secs(20);

#[derive(Message)]
#[message(reply = u64)]
struct Put(u64);
/// Answers with the sum of the numbers of the rows.
#[derive(Message)]
#[message(reply = u64)]
struct Sum;

#[derive(App)]
struct Blobs {
    blobs: Table<u64, u64, Vec<u8>>,
}

#[handlers]
impl Blobs {
    #[rcv(centralized)]
    fn put(&mut self, msg: &Put) -> u64 {
        self.blobs.at(0).insert(msg.0, vec![1; limits::STAGE_PART_BYTES_MAX - 1_000]);
        msg.0
    }
    #[rcv(centralized)]
    fn sum(&mut self, _: &Sum) -> u64 {
        self.blobs.at(0).keys().sum()
    }
}

#[test]
fn a_stalled_log_gets_a_few_parts_of_a_large_bee() {
    on_workers(2, async {
        let journals = [1, 2].map(|seed| TestJournal::start(seed, 0, 0));
        let with = journals.iter().map(|journal| (journal.clone() as Arc<dyn Journal>, LogState::default()));
        let hive = Hive::builder().app::<Blobs>().seed(1).journals(with).start().unwrap();
        for row in 0..ROWS {
            assert_eq!(hive.request_within(LIMIT, Put(row)).await, Ok(row))
        }
        hive.idle().await;
        let holds = |journal: &Arc<TestJournal>| !killed(&journal.log()).bees.is_empty();
        let from = journals.iter().position(holds).expect("a log has the bee");
        let to = &journals[1 - from];

        to.stall(true);
        let moving = tokio::spawn({
            let hive = hive.clone();
            async move {
                // a move to the log in which the bee already is says `false`
                let mut chance = 0;
                while !move_one(&hive, chance).await {
                    chance += 1
                }
            }
        });
        let parts = limits::STAGE_PARTS_UNDECIDED_MAX;
        eventually("parts wait for the stalled log", LIMIT, || to.waiting() >= parts).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(to.waiting(), parts, "{ROWS} parts and more are to be copied");

        to.stall(false);
        tokio::time::timeout(LIMIT, moving).await.expect("the bee moves").unwrap();
        assert_eq!(hive.request_within(LIMIT, Sum).await, Ok(ROWS * (ROWS - 1) / 2));
        hive.stop(LIMIT).await;
        assert!(holds(to) && !holds(&journals[from]))
    })
}
