//! Ticks at each cell of an app while one of its logs commits nothing.

use crate::load::{eventually, on_workers};
use beehive_core::journal::{Journal, LogState};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);
const KEYS: usize = 32;

/// How often the handler has run at each key.
static TICKS: [AtomicU64; KEYS] = [const { AtomicU64::new(0) }; KEYS];

#[derive(Message)]
#[message(name = "stalled_ticks::Plant")]
struct Plant(u64);

#[derive(App)]
struct Orchard {
    trees: Dict<u64, u64>,
}
#[handlers]
impl Orchard {
    #[rcv(sharded)]
    fn plant(&mut self, msg: &Plant) {
        self.trees.entry(msg.0).or_default();
    }
    #[every("50ms", each = trees)]
    fn grow(&mut self, key: &u64, _: &mut Ctx) {
        TICKS[*key as usize].fetch_add(1, Ordering::Relaxed);
        *self.trees.entry(*key).or_default() += 1
    }
}

fn ticks() -> [u64; KEYS] {
    TICKS.each_ref().map(|ticks| ticks.load(Ordering::Relaxed))
}

#[test]
fn ticks_go_on_at_the_cells_of_logs_that_commit() {
    on_workers(2, async {
        let journals = [1, 2].map(|seed| TestJournal::start(seed, 0, 0));
        let logs = journals.clone().map(|journal| (journal as Arc<dyn Journal>, LogState::default()));
        let hive = Hive::builder().seed(5).app::<Orchard>().journals(logs).start().unwrap();
        for key in 0..KEYS as u64 {
            assert!(hive.request_within(LIMIT, Plant(key)).await.is_ok())
        }
        let all_have = |least: u64| ticks().iter().all(|ticks| *ticks >= least);
        eventually("each tree has grown", LIMIT, || all_have(2)).await;

        journals[0].stall(true);
        let before = ticks();
        let grown = || -> Vec<u64> { ticks().iter().zip(before).map(|(now, before)| now - before).collect() };
        eventually("others go on", LIMIT, || grown().iter().any(|more| *more >= 10)).await;
        // a visit may have been committed when the log stalled, and another one runs before it can be
        let of_stalled = grown().iter().filter(|more| **more <= 2).count();
        let of_other = grown().iter().filter(|more| **more >= 5).count();
        assert!(of_stalled > 0 && of_other > 0 && of_stalled + of_other == KEYS, "{:?}", grown());

        journals[0].stall(false);
        let (after, least) = (ticks(), 3);
        let go_on = || ticks().iter().zip(after).all(|(now, after)| now - after >= least);
        eventually("all go on", LIMIT, go_on).await;
        hive.stop(Duration::from_secs(5)).await;
        journals.iter().for_each(|journal| journal.stop())
    })
}
