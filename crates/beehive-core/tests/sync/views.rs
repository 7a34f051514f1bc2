//! The pair of copies behind views, under a scheduler that explores the interleavings of hand-over,
//! publication and reads. It compiles the hive's own source file with the scheduler's locks.

use self::pair::{Bounds, Copied, Log, Pair};
use std::collections::BTreeMap;
use std::sync::Arc;

#[path = "../../src/view/pair.rs"]
#[allow(dead_code, unreachable_pub)]
mod pair;

/// The synchronization primitives that the pair uses here.
mod sync {
    pub(super) use shuttle::sync::atomic::{AtomicU64, Ordering};
    pub(super) use std::sync::{Arc, Weak};

    /// A mutex with the interface of the hive's.
    pub(super) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(super) fn new(value: T) -> Self {
            Mutex(shuttle::sync::Mutex::new(value))
        }
        pub(super) fn lock(&self) -> shuttle::sync::MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
        pub(super) fn try_lock(&self) -> Option<shuttle::sync::MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }
    }
}

/// The number of the last transaction of each writer. The second map has the same content, like a second
/// dictionary.
#[derive(Clone, Default)]
struct Copy {
    one: BTreeMap<u64, u64>,
    other: BTreeMap<u64, u64>,
}

/// A log of transactions, each with its writer and its number.
#[derive(Default)]
struct Transactions(Vec<(u64, u64)>);

impl Log for Transactions {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn append(&mut self, later: &mut Self) {
        self.0.append(&mut later.0)
    }
    fn clear(&mut self) {
        self.0.clear()
    }
}

impl Copied for Copy {
    type Log = Transactions;
    fn duplicate(&self) -> Self {
        self.clone()
    }
    fn apply(&mut self, log: &Transactions) {
        for (writer, number) in &log.0 {
            let before = self.one.insert(*writer, *number).unwrap_or(0);
            assert_eq!(before + 1, *number, "each change once, and in order");
            shuttle::thread::yield_now();
            self.other.insert(*writer, *number);
        }
    }
    fn follow(&mut self, _: &Self, log: &Transactions) {
        self.apply(log)
    }
}

const WRITERS: u64 = 2;
const TRANSACTIONS: u64 = 4;
const READERS: u64 = 2;

fn scenario(bounds: Bounds) {
    let pair = Arc::new(Pair::new(Copy::default(), bounds));
    let clock = Arc::new(shuttle::sync::atomic::AtomicU64::new(1));
    let mut threads = Vec::new();

    for writer in 0..WRITERS {
        let (pair, clock) = (pair.clone(), clock.clone());
        threads.push(shuttle::thread::spawn(move || {
            for number in 1..=TRANSACTIONS {
                let now = clock.fetch_add(1, shuttle::sync::atomic::Ordering::SeqCst);
                pair.hand_over(&mut Transactions(vec![(writer, number)]), now, false);
                // A reader that follows the hand-over sees the change, or learns that changes are pending.
                pair.publish(now);
                let waits = pair.waiting_since().is_some();
                let seen = pair.current().content.one.get(&writer).copied().unwrap_or(0);
                assert!(seen == number || waits, "{seen} instead of {number}, and nothing waits");
            }
        }))
    }

    for _ in 0..READERS {
        let (pair, clock) = (pair.clone(), clock.clone());
        threads.push(shuttle::thread::spawn(move || {
            let mut last = (0, BTreeMap::new());
            for _ in 0..4 {
                pair.try_publish(clock.load(shuttle::sync::atomic::Ordering::SeqCst));
                let version = pair.current();
                assert!(version.number >= last.0, "an earlier version");

                for (writer, number) in &last.1 {
                    assert!(version.content.one.get(writer) >= Some(number), "a later version has less");
                }

                let seen = version.content.one.clone();
                assert_eq!(seen, version.content.other, "a version has half of a transaction");

                shuttle::thread::yield_now();
                assert_eq!(seen, version.content.one, "what is read is written");
                last = (version.number, seen)
            }
        }))
    }

    threads.into_iter().for_each(|thread| thread.join().unwrap());
    pair.publish(1_000);
    let all: BTreeMap<u64, u64> = (0..WRITERS).map(|writer| (writer, TRANSACTIONS)).collect();
    assert_eq!(pair.current().content.one, all, "what was handed over is there in the end");
    assert_eq!(pair.waiting_since(), None);
    assert!(pair.copies() <= 2);
}

const RUNS: usize = 400;

#[test]
fn versions_are_whole_and_in_order_when_readers_are_patiently_waited_for() {
    shuttle::check_random(|| scenario(Bounds { waiting: 100, held: 2, patience: 1_000 }), RUNS);
    shuttle::check_pct(|| scenario(Bounds { waiting: 100, held: 2, patience: 1_000 }), RUNS, 3);
}

#[test]
fn versions_are_whole_and_in_order_when_readers_get_copies_of_their_own() {
    shuttle::check_random(|| scenario(Bounds { waiting: 1, held: 2, patience: 0 }), RUNS);
    shuttle::check_pct(|| scenario(Bounds { waiting: 1, held: 2, patience: 0 }), RUNS, 3);
}

#[test]
fn versions_are_whole_and_in_order_when_there_are_no_more_copies_to_be_had() {
    shuttle::check_random(|| scenario(Bounds { waiting: 1, held: 1, patience: 0 }), RUNS);
    shuttle::check_pct(|| scenario(Bounds { waiting: 1, held: 1, patience: 0 }), RUNS, 3);
}
