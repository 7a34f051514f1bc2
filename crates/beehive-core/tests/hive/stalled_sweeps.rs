//! Sweeps over an app with several logs, one of which commits nothing.

use crate::load::{eventually, on_workers};
use beehive_core::journal::{Journal, LogState};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers, limits};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Some thousands of records, on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);
/// Each of two logs has about half of these cells, and more than a window of a sweep.
const KEYS: u64 = 10_000;
/// The sender of a sweep sends another message to one in so many cells.
const AFTER_EVERY: usize = 10;

/// How often each key was seen in each of the tests.
static SEEN: [[AtomicU64; KEYS as usize]; 2] = [const { [const { AtomicU64::new(0) }; KEYS as usize] }; 2];

#[derive(Message)]
#[message(name = "stalled_sweeps::Plant")]
struct Plant(u64);
/// Visits all plants.
#[derive(Message)]
#[message(name = "stalled_sweeps::Water")]
struct Water {
    test: usize,
}
/// Comes to a plant behind the sweep.
#[derive(Message)]
#[message(name = "stalled_sweeps::Weed")]
struct Weed(u64);
/// Emitted at every visit.
#[derive(Message)]
#[message(name = "stalled_sweeps::Seen")]
struct Seen {
    test: usize,
    key: u64,
}
#[derive(Message)]
#[message(name = "stalled_sweeps::Begin")]
struct Begin {
    test: usize,
}
#[derive(Message)]
#[message(name = "stalled_sweeps::Done", reply = Vec<u8>)]
struct Done(u64);

const WATERED: u8 = 1;
const WEEDED: u8 = 2;

#[derive(App)]
#[app(name = "nursery")]
struct Nursery {
    plants: Dict<u64, Vec<u8>>,
}
#[handlers]
impl Nursery {
    #[rcv(sharded)]
    fn plant(&mut self, msg: &Plant) {
        self.plants.entry(msg.0).or_default();
    }
    #[rcv(each = plants)]
    fn water(&mut self, key: &u64, msg: &Water, ctx: &mut Ctx) {
        self.plants.entry(*key).or_default().push(WATERED);
        ctx.emit(Seen { test: msg.test, key: *key })
    }
    #[rcv(sharded)]
    fn weed(&mut self, msg: &Weed) {
        self.plants.entry(msg.0).or_default().push(WEEDED)
    }
    #[rcv(sharded)]
    fn done(&mut self, msg: &Done) -> Vec<u8> {
        self.plants.get(&msg.0).cloned().unwrap_or_default()
    }
}

/// Sends the sweep, and hears of the visits that are committed.
#[derive(App)]
#[app(name = "nurserywoman")]
struct Nurserywoman {
    begun: Dict<u8, u64>,
}
#[handlers]
impl Nurserywoman {
    #[rcv(centralized)]
    fn begin(&mut self, msg: &Begin, ctx: &mut Ctx) {
        *self.begun.entry(0).or_default() += 1;
        ctx.emit(Water { test: msg.test });
        (0..KEYS).step_by(AFTER_EVERY).for_each(|key| ctx.emit(Weed(key)))
    }
    /// In another bee than that of the visit, so after its commit.
    #[rcv(centralized)]
    fn seen(&mut self, msg: &Seen) {
        *self.begun.entry(1).or_default() += 1;
        SEEN[msg.test][msg.key as usize].fetch_add(1, Ordering::Relaxed);
    }
}

fn seen(test: usize) -> Vec<u64> {
    SEEN[test].iter().map(|seen| seen.load(Ordering::Relaxed)).collect()
}

fn seen_at_all(test: usize) -> usize {
    seen(test).iter().filter(|seen| **seen > 0).count()
}

/// The first two logs are those of the plants.
type Journals = [Arc<TestJournal>; 3];

/// Starts a hive. If `is_stalled`, the second log commits nothing.
fn start(states: [LogState; 3], is_stalled: bool) -> (Hive, Journals) {
    let journals = [0, 1, 2].map(|at: usize| TestJournal::start(1 + at as u64, 0, states[at].last));
    journals[1].stall(is_stalled);
    let mut logs = journals.iter().map(|journal| journal.clone() as Arc<dyn Journal>).zip(states);
    let of_plants: Vec<_> = logs.by_ref().take(2).collect();
    let mut builder = Hive::builder().seed(5).app::<Nursery>().app::<Nurserywoman>();
    for (journal, state) in logs {
        builder = builder.journal_of(["nurserywoman"], journal, state)
    }
    let builder = builder.journals(of_plants);
    (builder.start().unwrap(), journals)
}

/// Returns the states of the logs, as after a clean stop: unfinished messages do not run under a marker.
fn states(logs: [Vec<Vec<u8>>; 3]) -> [LogState; 3] {
    logs.map(|log| LogState { marker: None, ..LogState::replay(log.iter().map(Vec::as_slice)).unwrap() })
}

/// Returns what was done at a key.
async fn done(hive: &Hive, key: u64) -> Vec<u8> {
    hive.request_within(LIMIT, Done(key)).await.unwrap()
}

/// Returns what is done at a key in the end, in this order.
fn expected(key: u64) -> Vec<u8> {
    match key.is_multiple_of(AFTER_EVERY as u64) {
        true => vec![WATERED, WEEDED],
        false => vec![WATERED],
    }
}

/// Waits until everything is done.
async fn all_is_done(hive: &Hive) {
    for key in 0..KEYS {
        let expected = expected(key);
        for _ in 0..5_000 {
            if done(hive, key).await.len() >= expected.len() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await
        }
        assert_eq!(done(hive, key).await, expected, "key {key}")
    }
}

/// Begins a sweep while the second log commits nothing, and waits until it has visited the cells of the first one.
async fn stalled(test: usize) -> (Hive, Journals) {
    let (hive, journals) = start([(); 3].map(|()| LogState::default()), false);
    let mut io = hive.io();
    for key in 0..KEYS {
        io.emit(Plant(key));
        if key % 500 == 0 {
            io.flush().await
        }
    }
    io.flush().await;
    hive.idle().await;
    let of_log = [0, 1].map(|at: usize| {
        let log = journals[at].log();
        LogState::replay(log.iter().map(Vec::as_slice)).unwrap().bees.len()
    });
    assert!(of_log.iter().all(|cells| *cells > limits::SWEEP_WINDOW_MAX), "{of_log:?}");

    journals[1].stall(true);
    hive.emit(Begin { test }).await;
    eventually("the cells of the first log are visited", LIMIT, || seen_at_all(test) >= of_log[0]).await;
    assert_eq!(seen_at_all(test), of_log[0], "the second log commits nothing");
    assert!(seen(test).iter().all(|seen| *seen <= 1));

    // the sender's later messages go on, too
    let seen = seen(test);
    for key in (0..KEYS).step_by(AFTER_EVERY).filter(|key| seen[*key as usize] > 0) {
        for _ in 0..5_000 {
            if done(&hive, key).await.len() == 2 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await
        }
        assert_eq!(done(&hive, key).await, expected(key), "key {key}")
    }
    (hive, journals)
}

#[test]
fn a_sweep_visits_the_cells_of_logs_that_commit() {
    on_workers(2, async {
        let (hive, journals) = stalled(0).await;
        journals[1].stall(false);
        eventually("all cells are visited", LIMIT, || seen_at_all(0) as u64 == KEYS).await;
        all_is_done(&hive).await;
        assert!(seen(0).iter().all(|seen| *seen == 1));
        hive.stop(Duration::from_secs(5)).await;
        journals.iter().for_each(|journal| journal.stop());
        let logs = states(journals.map(|journal| journal.log()));
        assert!(logs.iter().all(|log| log.sweeps.is_empty() && log.outbox.is_empty()))
    })
}

#[test]
fn a_sweep_that_a_log_holds_up_visits_each_cell_once_although_the_hive_crashes() {
    on_workers(2, async {
        let (hive, journals) = stalled(1).await;
        journals.iter().for_each(|journal| journal.stop());
        hive.stop(Duration::ZERO).await;

        let mut logs = journals.map(|journal| journal.log());
        for life in 0..2 {
            let crashed = states(logs.clone());
            let open = crashed[0].sweeps.values().map(|sweep| sweep.open.len()).sum::<usize>();
            assert!(open > limits::SWEEP_WINDOW_MAX, "{open} cells are open");
            let (hive, journals) = start(crashed, true);
            match life {
                0 => tokio::time::sleep(Duration::from_millis(300)).await,
                _ => {
                    journals[1].stall(false);
                    all_is_done(&hive).await
                }
            }
            journals.iter().for_each(|journal| journal.stop());
            hive.stop(Duration::ZERO).await;
            let more = journals.map(|journal| journal.log());
            logs.iter_mut().zip(more).for_each(|(log, more)| log.extend(more))
        }
        assert!(states(logs).iter().all(|log| log.sweeps.is_empty()))
    })
}
