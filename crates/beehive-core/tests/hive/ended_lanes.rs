//! Lanes that end while a log commits nothing.

use crate::load::{eventually, on_workers};
use beehive_core::journal::{Entry, LaneId, LogState, Record};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Dict, Hive, Message, handlers};
use std::collections::BTreeSet;
use std::time::Duration;

#[derive(Message)]
struct Note(u64);

#[derive(App)]
#[app(name = "noted")]
struct Noted {
    notes: Dict<u64, u64>,
}
#[handlers]
impl Noted {
    #[rcv(sharded)]
    fn note(&mut self, msg: &Note) {
        *self.notes.entry(msg.0).or_default() += 1
    }
}

/// Has a log that commits nothing.
#[derive(App)]
#[app(name = "idle")]
struct Idle {
    notes: Dict<u64, u64>,
}
#[handlers]
impl Idle {
    #[rcv(sharded)]
    fn late(&mut self, msg: &Late) {
        *self.notes.entry(msg.0).or_default() += 1
    }
}
#[derive(Message)]
struct Late(u64);

/// Returns the number of records that retire lanes, and these lanes.
fn retired(journal: &TestJournal) -> (usize, BTreeSet<LaneId>) {
    let records = journal.log().into_iter().map(|bytes| Entry::decode(&bytes).unwrap().record);
    let retired: Vec<_> = records
        .filter_map(|record| match record {
            Record::Retire { lanes, .. } => Some(lanes),
            _ => None,
        })
        .collect();
    (retired.len(), retired.into_iter().flatten().collect())
}

#[test]
fn lanes_that_end_while_a_log_stalls_wait_for_one_record() {
    const ROUNDS: usize = 15;
    const LANES: usize = 300;
    on_workers(2, async {
        let [of_noted, of_idle] = [1, 2].map(|seed| TestJournal::start(seed, 0, 0));
        let builder = Hive::builder().app::<Noted>().app::<Idle>().seed(7);
        let builder = builder.journal_of(["noted"], of_noted.clone(), LogState::default());
        let hive = builder.journal_of(["idle"], of_idle.clone(), LogState::default()).start().unwrap();
        hive.idle().await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        of_idle.stall(true);
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let (waited, before) = (of_idle.waiting(), tasks());

        for round in 1..=ROUNDS {
            for lane in 0..LANES {
                let mut io = hive.io();
                io.emit(Note(lane as u64));
                io.flush().await
            }
            let is_retired = || retired(&of_noted).1.len() == round * LANES;
            eventually("the log that commits retires them", Duration::from_secs(10), is_retired).await
        }
        let (waiting, after) = (of_idle.waiting() - waited, tasks().saturating_sub(before));
        assert!(waiting <= 2, "{waiting} entries wait for the other log");
        assert!(after <= 2, "{after} tasks wait for the other log");

        of_idle.stall(false);
        let (records, lanes) = retired(&of_noted);
        assert!(records >= ROUNDS);
        let are_retired = || retired(&of_idle).1 == lanes;
        eventually("the other log retires them as well", Duration::from_secs(10), are_retired).await;
        let (records, _) = retired(&of_idle);
        assert!(records <= 2 + ROUNDS * LANES / 4096, "{records} records");
        hive.stop(Duration::from_secs(5)).await;
    })
}
