//! A record need not contain the changes that later transactions of the same run overwrite.

use crate::load::{killed, on_workers};
use beehive_core::journal::{Entry, LogState, Record};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Dict, Hive, Message, RequestError, Table, handlers};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);
const MESSAGES: u64 = 24;

/// How a message changes the value of its cell.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum Do {
    Put(u64),
    Remove,
    /// Puts the value in a row of its own as well.
    PutRow(u64),
    /// Puts the value, and fails.
    Fail(u64),
}

#[derive(Message)]
#[message(reply = u64)]
struct Change(Do);
/// Answers with the value of the cell and with the rows.
#[derive(Message)]
#[message(reply = (Option<u64>, Vec<u64>))]
struct Look;

#[derive(App)]
struct Cells {
    value: Dict<u64, u64>,
    rows: Table<u64, u64, u64>,
}
#[handlers]
impl Cells {
    #[rcv(centralized)]
    fn change(&mut self, msg: &Change) -> Result<u64, beehive_core::Error> {
        let rows = self.rows.at(0);
        match msg.0 {
            Do::Put(value) => drop(self.value.put(0, value)),
            Do::Remove => drop(self.value.remove(&0)),
            Do::PutRow(value) => {
                rows.insert(value, value);
                self.value.put(0, value);
            }
            Do::Fail(value) => {
                self.value.put(0, value);
                Err("it fails")?
            }
        }
        Ok(1)
    }
    #[rcv(centralized)]
    fn look(&mut self, _: &Look) -> (Option<u64>, Vec<u64>) {
        (self.value.get(&0).copied(), self.rows.at(0).keys().copied().collect())
    }
}

fn start(journal: &Arc<TestJournal>, state: LogState) -> Hive {
    Hive::builder().app::<Cells>().seed(1).journal(journal.clone(), state).start().unwrap()
}

/// Handles all messages as one run. Returns what the hive answers to [`Look`] afterwards, and the number of changes in the
/// run's record. The answer is the same after a restart on the log.
fn handled(of: fn(u64) -> Do) -> ((Option<u64>, Vec<u64>), usize) {
    let (mut looked, mut changes) = (None, 0);
    on_workers(2, async {
        let journal = TestJournal::start(7, 0, 0);
        let hive = start(&journal, LogState::default());
        // the bee exists before the run
        assert_eq!(hive.request_within(LIMIT, Change(Do::Put(1_000))).await, Ok(1));
        let before = journal.log().len();

        let mut io = hive.io();
        (0..MESSAGES).for_each(|at| io.emit(Change(of(at))));
        io.flush().await;
        let mut answers = 0;
        while answers < MESSAGES {
            let mail = tokio::time::timeout(LIMIT, io.receive()).await.expect("is answered");
            let mail: Vec<Result<u64, RequestError>> =
                mail.into_answers::<Change>().ok().unwrap().into_iter().collect();
            answers += mail.len() as u64
        }
        let answer = hive.request_within(LIMIT, Look).await;
        hive.stop(LIMIT).await;
        journal.stop();

        for bytes in &journal.log()[before..] {
            if let Record::Turn(works) = Entry::decode(bytes).expect("is an entry").record {
                changes += works.iter().map(|work| work.redo.iter().count()).sum::<usize>()
            }
        }
        let state = killed(&journal.log());
        let journal = TestJournal::start(7, 0, state.last);
        let again = start(&journal, state);
        assert_eq!(again.request_within(LIMIT, Look).await, answer, "the log says the same");
        again.stop(LIMIT).await;
        looked = answer.ok()
    });
    (looked.expect("the hive answers"), changes)
}

#[test]
fn only_the_last_of_a_run_of_changes_to_one_cell_is_logged() {
    assert_eq!(handled(Do::Put), ((Some(MESSAGES - 1), vec![]), 1));
}

#[test]
fn a_removal_overwrites_and_is_overwritten() {
    let of = |at| if at % 2 == 0 { Do::Remove } else { Do::Put(at) };
    assert_eq!(handled(of), ((Some(MESSAGES - 1), vec![]), 1));
    let of = |at| if at % 2 == 1 { Do::Remove } else { Do::Put(at) };
    assert_eq!(handled(of), ((None, vec![]), 1));
}

#[test]
fn what_a_transaction_changes_before_it_fails_overwrites_nothing() {
    let of = |at| if at % 3 == 2 { Do::Fail(at) } else { Do::Put(at) };
    assert_eq!(handled(of), ((Some(MESSAGES - 2), vec![]), 1));
}

#[test]
fn changes_of_other_places_stay() {
    let of = |at| if at % 2 == 0 { Do::PutRow(at) } else { Do::Put(at) };
    let rows: Vec<u64> = (0..MESSAGES).filter(|at| at % 2 == 0).collect();
    let (looked, changes) = handled(of);
    assert_eq!(looked, (Some(MESSAGES - 1), rows.clone()));
    // the value is logged once for each transaction, because each one changes other places than the one before it
    assert_eq!(changes, MESSAGES as usize + rows.len());
}
