//! A run that cannot be recorded is undone. This takes as long as the run's changes warrant, however many rows the bee has.

use crate::load::on_workers;
use beehive_core::journal::LogState;
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Message, Table, handlers};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const ROWS: u64 = 100_000;
const LIMIT: Duration = Duration::from_secs(20);

static DECODED: AtomicU64 = AtomicU64::new(0);

/// A value that counts how often any value of its type is decoded.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Counted(u64);
impl<'de> Deserialize<'de> for Counted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Counted, D::Error> {
        DECODED.fetch_add(1, Ordering::Relaxed);
        u64::deserialize(deserializer).map(Counted)
    }
}

/// Cannot be encoded if it is true.
#[derive(Clone, Deserialize)]
struct Prickly(bool);
impl Serialize for Prickly {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            true => Err(serde::ser::Error::custom("it will not be encoded")),
            false => serializer.serialize_bool(false),
        }
    }
}

/// Fills the table with rows, all of the same value.
#[derive(Message)]
#[message(reply = u64)]
struct Fill(u64);
/// Changes a row, removes the next one, adds one, and changes a cell. Then fails, if it is to fail.
#[derive(Message)]
#[message(reply = u64)]
struct Change {
    row: u64,
    fails: bool,
}
#[derive(Message)]
struct Out(Prickly);
/// Answers with rows of the table (zero stands for one that does not exist), with the number of rows and the number of cells.
#[derive(Message)]
#[message(reply = (Vec<u64>, u64, u64))]
struct Look(Vec<u64>);

#[derive(App)]
struct Rowed {
    rows: Table<u64, u64, Counted>,
    cells: Dict<u64, Counted>,
    outs: Dict<u64, u64>,
}
#[handlers]
impl Rowed {
    #[rcv(centralized)]
    fn fill(&mut self, msg: &Fill) -> u64 {
        let mut rows = self.rows.whole();
        let rows = rows.at(0);
        for row in 0..msg.0 {
            rows.insert(row, Counted(1));
        }
        msg.0
    }
    #[rcv(centralized)]
    fn change(&mut self, msg: &Change, ctx: &mut Ctx) -> u64 {
        let mut all = self.rows.whole();
        let rows = all.at(0);
        rows.insert(msg.row, Counted(2));
        rows.remove(&(msg.row + 1));
        rows.insert(ROWS + msg.row, Counted(3));
        // a cell with rows of its own
        all.at(1 + msg.row).insert(0, Counted(4));
        let mut cells = self.cells.whole();
        let count = cells.get(&0).map_or(0, |count| count.0);
        cells.put(0, Counted(count + 1));
        cells.put(1 + msg.row, Counted(5));
        ctx.emit(Out(Prickly(msg.fails)));
        count + 1
    }
    #[rcv(centralized)]
    fn out(&mut self, _: &Out) {
        *self.outs.entry(0).or_default() += 1
    }
    #[rcv(centralized)]
    fn look(&mut self, msg: &Look) -> (Vec<u64>, u64, u64) {
        let mut all = self.rows.whole();
        let cells = all.keys().count() as u64;
        let rows = all.at(0);
        let found = msg.0.iter().map(|row| rows.get(row).map_or(0, |value| value.0)).collect();
        (found, rows.len() as u64, cells + self.cells.whole().len() as u64)
    }
}

fn started() -> (Hive, Arc<TestJournal>) {
    let journal = TestJournal::start(9, 0, 0);
    let builder = Hive::builder().app::<Rowed>().seed(1);
    (builder.journal(journal.clone(), LogState::default()).start().unwrap(), journal)
}

/// Each message of a batch fails by itself. None of them may cost as much as all rows of the bee.
#[test]
fn undoing_a_run_decodes_only_what_it_has_changed() {
    const FAILING: u64 = 20;
    on_workers(3, async {
        let (hive, journal) = started();
        assert_eq!(hive.request_within(LIMIT, Fill(ROWS)).await, Ok(ROWS));
        let before = DECODED.load(Ordering::Relaxed);
        let began = Instant::now();

        let mut io = hive.io();
        (0..FAILING).for_each(|at| io.emit(Change { row: 2 * at, fails: true }));
        io.flush().await;
        let looked = hive.request_within(LIMIT, Look((0..6).collect())).await;
        println!("{FAILING} messages failed in {:.1?}", began.elapsed());
        let decoded = DECODED.load(Ordering::Relaxed) - before;
        assert_eq!(hive.dead_letters().len() as u64, FAILING);
        assert_eq!(looked, Ok((vec![1; 6], ROWS, 1)), "nothing has changed");
        assert!(decoded <= 10 * FAILING, "{decoded} values were decoded");
        journal.stop();
        hive.stop(Duration::ZERO).await;
    })
}

/// The log commits nothing while messages run, some of which fail. What is undone is the change of those that fail, on top of
/// those before them, and the state is that of the log in the end.
#[test]
fn what_was_executed_before_a_run_that_fails_stays() {
    on_workers(3, async {
        let (hive, journal) = started();
        assert_eq!(hive.request_within(LIMIT, Fill(100)).await, Ok(100));
        journal.stall(true);
        let mut io = hive.io();
        let failing = |at: u64| at % 3 == 1;
        for at in 0..12 {
            // two messages after each other change the same rows
            io.emit(Change { row: 4 * (at / 2), fails: failing(at) });
            tokio::time::sleep(Duration::from_millis(3)).await
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        journal.stall(false);
        io.flush().await;

        let done: Vec<u64> = (0..12).filter(|at| !failing(*at)).collect();
        let changed: std::collections::BTreeSet<u64> = done.iter().map(|at| 4 * (at / 2)).collect();
        let rows: Vec<u64> = (0..24).collect();
        let expected = rows.iter().map(|row| match row % 4 {
            0 if changed.contains(row) => 2,
            1 if changed.contains(&(row - 1)) => 0,
            _ => 1,
        });
        let expected =
            (expected.collect::<Vec<_>>(), 100, 1 + changed.len() as u64 + 1 + changed.len() as u64);
        assert_eq!(hive.request_within(LIMIT, Look(rows.clone())).await, Ok(expected.clone()));
        assert_eq!(
            hive.request_within(LIMIT, Change { row: 0, fails: false }).await,
            Ok(done.len() as u64 + 1)
        );
        assert_eq!(hive.dead_letters().len(), 12 - done.len());
        journal.stop();
        hive.stop(Duration::ZERO).await;

        let state = crate::load::killed(&journal.log());
        let journal = TestJournal::start(9, 0, state.last);
        let builder = Hive::builder().app::<Rowed>().seed(1);
        let hive = builder.journal(journal.clone(), state).start().unwrap();
        assert_eq!(hive.request_within(LIMIT, Look(rows)).await, Ok(expected), "the log says the same");
        journal.stop();
        hive.stop(Duration::ZERO).await;
    })
}
