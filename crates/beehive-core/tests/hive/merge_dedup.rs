//! Deduplication across merges: messages that bees handled before they merged are not handled again, neither
//! in the same incarnation nor in the next one.

use crate::load::{eventually, on_workers};
use beehive_core::journal::{Entry, Journal, JournalEvents, LogState, Record};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Dict, Hive, Message, handlers};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Message)]
struct Count {
    key: u64,
}
/// Blocks its thread until it is released.
#[derive(Message)]
struct Block;
#[derive(Message)]
#[message(reply = u64)]
struct Counted(u64);
/// Needs the cells of two keys.
#[derive(Message)]
#[message(reply = u64)]
struct Both(u64, u64);

static HELD: AtomicBool = AtomicBool::new(false);

#[derive(App)]
struct Counter {
    counts: Dict<u64, u64>,
}
#[handlers]
impl Counter {
    #[rcv(sharded)]
    fn count(&mut self, msg: &Count) {
        *self.counts.entry(msg.key).or_default() += 1
    }
    #[rcv(centralized)]
    fn block(&mut self, _: &Block) {
        while HELD.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1))
        }
        *self.counts.entry(u64::MAX).or_default() += 1
    }
    #[rcv(joins)]
    fn both(&mut self, msg: &Both) -> u64 {
        let one = self.counts.get(&msg.0).copied().unwrap_or(0);
        one + self.counts.get(&msg.1).copied().unwrap_or(0)
    }
    #[rcv(sharded)]
    fn counted(&mut self, msg: &Counted) -> u64 {
        self.counts.get(&msg.0).copied().unwrap_or(0)
    }
}

const LANE: u64 = 5;
const KEYS: u64 = 6;

fn begin(journal: Arc<dyn Journal>, colony: LogState) -> Hive {
    Hive::builder().app::<Counter>().seed(7).journal(journal, colony).start().unwrap()
}

/// Merges the bees of all keys into one.
async fn merged(hive: &Hive) {
    for key in 1..KEYS {
        hive.request(Both(key - 1, key)).await.unwrap();
    }
}

async fn counted_once(hive: &Hive) {
    for key in 0..KEYS {
        assert_eq!(hive.request(Counted(key)).await.unwrap(), 1, "key {key}")
    }
}

/// Within one incarnation: the floor of the sender's lane cannot rise above a message that is blocked, so all
/// later messages may be resent.
#[test]
fn messages_handled_before_a_merge_are_not_handled_again() {
    HELD.store(true, Ordering::Release);
    on_workers(3, async {
        let journal = TestJournal::start(3, 0, 0);
        let hive = begin(journal.clone(), LogState::default());
        let (mut io, mut again) = (hive.io(), hive.io());
        io.resume(LANE, 0);
        io.emit(Block);
        (0..KEYS).for_each(|key| io.emit(Count { key }));
        io.flush().await;
        // one entry may contain runs of several bees
        let are_counted = || {
            let log = journal.log();
            let state = LogState::replay(log.iter().map(Vec::as_slice)).unwrap();
            state.bees.values().filter(|bee| bee.state.images().next().is_some()).count() >= KEYS as usize
        };
        eventually("all are counted", Duration::from_secs(20), are_counted).await;
        merged(&hive).await;

        assert_eq!(io.floor(), 0);
        again.resume(LANE, 1);
        (0..KEYS).for_each(|key| again.emit(Count { key }));
        again.flush().await;
        HELD.store(false, Ordering::Release);
        eventually("all are done", Duration::from_secs(20), || io.floor() == KEYS + 1).await;
        hive.idle().await;
        counted_once(&hive).await;
        journal.stop();
        hive.stop(Duration::ZERO).await;
    })
}

/// Across incarnations: when a log applies the record of the merge, it must unite the dedup tables of the two
/// bees.
#[test]
fn after_a_restart_messages_handled_before_a_merge_are_not_handled_again() {
    let log = on_workers(2, async {
        let journal = TestJournal::start(4, 0, 0);
        let hive = begin(journal.clone(), LogState::default());
        let mut io = hive.io();
        io.resume(LANE, 0);

        // All messages are in one batch, so no bee learns that another message of the batch is done.
        (0..KEYS).for_each(|key| io.emit(Count { key }));
        io.flush().await;
        eventually("all are done", Duration::from_secs(20), || io.floor() == KEYS).await;
        merged(&hive).await;

        let fused = || {
            let log = journal.log();
            let of_colony = LogState::replay(log.iter().map(Vec::as_slice)).unwrap();
            of_colony.bees.len() == 1
        };

        eventually("the log knows", Duration::from_secs(20), fused).await;
        journal.stop();
        let log = journal.log();
        hive.stop(Duration::ZERO).await;
        log
    });

    let colony = LogState::replay(log.iter().map(Vec::as_slice)).unwrap();
    on_workers(2, async {
        let journal = TestJournal::start(5, 0, colony.last);
        let hive = begin(journal.clone(), colony);
        let mut io = hive.io();

        // This simulates a sender that does not remember which messages were handled.
        io.resume(LANE, 0);
        (0..KEYS).for_each(|key| io.emit(Count { key }));
        io.flush().await;
        eventually("all are done", Duration::from_secs(20), || io.floor() == KEYS).await;
        counted_once(&hive).await;
        journal.stop();
        hive.stop(Duration::ZERO).await;
    })
}

/// A journal that commits when the test asks it to.
#[derive(Default)]
struct Patient {
    entries: Mutex<Vec<Arc<Entry>>>,
    events: Mutex<Option<Arc<dyn JournalEvents>>>,
}

impl Patient {
    /// Returns the number of uncommitted runs of bees. Entries of the hive itself, such as the shapes that it
    /// writes at start, do not count.
    fn waiting(&self) -> usize {
        let entries = self.entries.lock().unwrap();
        let runs = |entry: &Arc<Entry>| match &entry.record {
            Record::Turn(works) => works.len(),
            _ => 0,
        };
        entries.iter().map(runs).sum()
    }

    fn commit_all(&self) {
        let last = self.entries.lock().unwrap().drain(..).next_back().map(|entry| entry.number);
        let events = self.events.lock().unwrap().clone();
        if let (Some(last), Some(events)) = (last, events) {
            events.released(last)
        }
    }
}

impl Journal for Patient {
    fn append(&self, entry: Arc<Entry>) {
        self.entries.lock().unwrap().push(entry)
    }

    fn attach(&self, events: Arc<dyn JournalEvents>) {
        *self.events.lock().unwrap() = Some(events)
    }
}

/// A duplicate must not be reported as done before the first copy of the message is committed.
#[test]
fn a_duplicate_is_not_done_before_the_first_is_committed() {
    on_workers(2, async {
        let journal = Arc::new(Patient::default());
        let hive = begin(journal.clone(), LogState::default());
        // a message that may be resent does not run before the crash marker of this process is committed
        journal.commit_all();
        let (mut io, mut again) = (hive.io(), hive.io());
        io.resume(LANE, 0);
        io.emit(Count { key: 1 });
        io.flush().await;
        eventually("it is executed", Duration::from_secs(20), || journal.waiting() == 1).await;
        again.resume(LANE, 0);
        again.emit(Count { key: 1 });
        again.flush().await;

        // It does not matter whether the duplicate causes an entry of its own.
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!((io.floor(), again.floor()), (0, 0), "it is not committed");

        eventually("it is done", Duration::from_secs(20), || {
            journal.commit_all();
            io.floor() == 1
        })
        .await;

        let asking = hive.clone();
        let asked = tokio::spawn(async move { asking.request(Counted(1)).await });
        eventually("it is answered", Duration::from_secs(20), || {
            journal.commit_all();
            asked.is_finished()
        })
        .await;

        assert_eq!(asked.await.unwrap().unwrap(), 1);
        hive.stop(Duration::ZERO).await;
    })
}
