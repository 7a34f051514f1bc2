//! The log contains everything that a retired bee has handled before anything that the next owner of its
//! cells handles. Therefore, in every prefix of the log, each cell has at most one owner, and this owner
//! knows which messages to the cell were handled.

use crate::load::{eventually, on_workers};
use beehive_core::journal::{Entry, LogState};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Dict, Hive, Message, handlers};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A message whose handler leaves no state.
#[derive(Message)]
struct Touch(u64);
#[derive(Message)]
struct Keep(u64);

#[derive(App)]
struct Notes {
    kept: Dict<u64, u64>,
}
#[handlers]
impl Notes {
    #[rcv(sharded)]
    fn touch(&mut self, msg: &Touch) {
        let _ = self.kept.contains(&msg.0);
    }
    #[rcv(sharded)]
    fn keep(&mut self, msg: &Keep) {
        self.kept.put(msg.0, 1);
    }
}

const KEYS: u64 = 40;

fn begin(journal: Arc<TestJournal>, colony: LogState) -> Hive {
    Hive::builder().app::<Notes>().seed(7).journal(journal, colony).start().unwrap()
}

/// Returns the owners of each cell that has more than one.
fn shared(colony: &LogState) -> Vec<Vec<u64>> {
    let mut owners: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for ((_, bee), image) in &colony.bees {
        image.cells.iter().for_each(|cell| owners.entry(*cell).or_default().push(bee.0))
    }
    owners.into_values().filter(|owners| owners.len() > 1).collect()
}

/// Sends a message to every key. Each message comes from a separate sender that can be resumed.
async fn touch_all(hive: &Hive) {
    let mut senders = Vec::new();
    for key in 0..KEYS {
        let mut io = hive.io();
        io.resume(1 + key, 0);
        io.emit(Touch(key));
        io.flush().await;
        senders.push(io)
    }

    eventually("all are done", Duration::from_secs(20), || senders.iter().all(|io| io.floor() == 1)).await
}

/// Returns the log of an incarnation in which bees retire and their cells get new owners, on a journal that
/// refuses many entries.
fn life(seed: u64) -> Vec<Vec<u8>> {
    on_workers(3, async {
        let journal = TestJournal::start(seed, 8, 0);
        let hive = begin(journal.clone(), LogState::default());
        touch_all(&hive).await;
        eventually("some end", Duration::from_secs(20), || hive.status().apps[0].bees_retired > 0).await;
        for key in 0..KEYS {
            hive.emit(Keep(key)).await
        }

        hive.idle().await;
        journal.stop();
        hive.stop(Duration::ZERO).await;
        journal.log()
    })
}

/// Starts a hive from this state, resends all messages, and returns how many of them the hive handles.
fn handled_again(colony: &LogState) -> u64 {
    on_workers(3, async {
        let journal = TestJournal::start(7, 0, colony.last);
        let hive = begin(journal.clone(), colony.clone());
        touch_all(&hive).await;
        let handled = hive.status().apps[0].handlers[0].messages;
        journal.stop();
        hive.stop(Duration::ZERO).await;
        handled
    })
}

#[test]
fn the_next_owner_of_a_retired_bees_cells_comes_after_it_in_the_log() {
    for seed in 1..=20 {
        let mut colony = LogState::default();
        for entry in life(seed) {
            colony.apply(&Entry::decode(&entry).unwrap());
            let shared = shared(&colony);
            assert!(
                shared.is_empty(),
                "seed {seed}: a cell belongs to {shared:?}; of {KEYS} messages {} are handled again",
                handled_again(&colony)
            );
        }
    }
}
