//! Shared views of dictionaries: the cost of a read, the additional cost of a write if the dictionary has
//! views, and the cost of publishing.
//!
//! Run with `cargo bench --bench views`. Times are per read, per message and per change.
#![allow(missing_docs)]

use beehive::prelude::*;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Instant;

const KEYS: u64 = 1_000;

/// Reads per message, so many that the cost of the message itself is negligible.
const READS: u64 = 4_096;

/// Returns the next number of a pseudo-random sequence.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

#[derive(Message)]
#[message(reply = u64)]
struct Add {
    key: u64,
    amount: u64,
}

/// Reads through a view, calling `.shared()` once or for each read.
#[derive(Message)]
#[message(reply = u64)]
struct Read {
    each: bool,
}

/// Reads rows of a cell that the bee owns, for comparison.
#[derive(Message)]
#[message(reply = u64)]
struct Own {
    keys: u64,
}

#[derive(Message)]
#[message(reply = u64)]
struct Derived;

/// An app whose shared views nobody reads.
#[derive(App)]
struct Alone {
    counts: Dict<u64, u64>,
    rows: Table<u64, u64, u64>,
}

#[handlers]
impl Alone {
    #[rcv(sharded)]
    fn add(&mut self, msg: &Add) -> u64 {
        let count = self.counts.entry(msg.key).or_default();
        *count += msg.amount;
        *count
    }

    #[rcv(centralized)]
    fn own(&mut self, msg: &Own) -> u64 {
        let rows = self.rows.at(0);
        for row in rows.len() as u64..msg.keys {
            rows.insert(row, row);
        }

        let (mut state, mut sum) = (1, 0);
        for _ in 0..READS {
            sum += rows.get(&(next(&mut state) % KEYS)).copied().unwrap_or(0);
        }

        sum
    }
}

#[derive(App)]
struct Looked {
    counts: Dict<u64, u64>,
}

#[handlers]
impl Looked {
    #[rcv(sharded)]
    fn add(&mut self, msg: &Add) -> u64 {
        let count = self.counts.entry(msg.key).or_default();
        *count += msg.amount;
        *count
    }

    #[rcv(stateless)]
    fn read(&mut self, msg: &Read) -> u64 {
        let (mut state, mut sum) = (1, 0);
        if msg.each {
            for _ in 0..READS {
                sum += self.counts.shared().get(&(next(&mut state) % KEYS)).copied().unwrap_or(0);
            }
        } else {
            let counts = self.counts.shared();
            for _ in 0..READS {
                sum += counts.get(&(next(&mut state) % KEYS)).copied().unwrap_or(0);
            }
        }

        sum
    }

    #[rcv(stateless)]
    fn derived(&mut self, _: &Derived) -> u64 {
        let (counts, mut sum) = (self.counts.shared(), 0);
        for _ in 0..READS {
            sum += *counts.derive(|counts| counts.values().sum::<u64>());
        }
        sum
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Starts a hive with one of the apps and writes all keys.
fn filled<A: beehive::Handlers>(runtime: &tokio::runtime::Runtime) -> Hive {
    let hive = Hive::builder().app::<A>().start().unwrap();
    runtime.block_on(async {
        for key in 0..KEYS {
            hive.request(Add { key, amount: 1 }).await.unwrap();
        }
    });
    hive
}

fn reads(c: &mut Criterion) {
    let runtime = runtime();
    let _entered = runtime.enter();
    let (alone, looked) = (filled::<Alone>(&runtime), filled::<Looked>(&runtime));
    let mut group = c.benchmark_group("view/read");
    group.throughput(Throughput::Elements(READS));
    group.bench_function("own-cell", |b| {
        b.iter(|| black_box(runtime.block_on(alone.request(Own { keys: KEYS }))).unwrap())
    });

    for (name, each) in [("shared-once", false), ("shared-each-time", true)] {
        group.bench_function(name, |b| {
            b.iter(|| black_box(runtime.block_on(looked.request(Read { each }))).unwrap())
        });
    }

    group.bench_function("derived", |b| {
        b.iter(|| black_box(runtime.block_on(looked.request(Derived))).unwrap())
    });
    group.finish();

    c.bench_function("view/read-from-outside", |b| {
        b.iter(|| looked.read(|app: &Looked| app.counts.shared().get(black_box(&7)).copied()).unwrap())
    });
}

/// Number of messages emitted per flush.
const BATCH: u64 = 256;

/// Emits batches of writes, with `run` consecutive writes per key, and opens the views after each batch if
/// `looks` is set.
async fn written<A: beehive::Handlers>(hive: Hive, batches: u64, run: u64, looks: bool) -> Duration {
    let mut io = hive.io();
    io.run_here();
    let (mut state, began) = (1, Instant::now());

    for _ in 0..batches {
        for _ in 0..BATCH / run {
            let key = next(&mut state) % KEYS;
            for _ in 0..run {
                io.emit(Add { key, amount: 1 })
            }
        }

        io.try_flush().expect("all earlier ones are done");
        let mut answers = 0;
        while answers < BATCH as usize {
            answers += io.receive().await.into_answers::<Add>().map_or(0, |all| all.into_iter().count())
        }

        if looks {
            hive.read(|app: &A| {
                black_box(app);
            })
            .unwrap()
        }
    }

    began.elapsed()
}

fn writes(c: &mut Criterion) {
    let runtime = runtime();
    let _entered = runtime.enter();
    let (alone, looked) = (filled::<Alone>(&runtime), filled::<Looked>(&runtime));
    let mut group = c.benchmark_group("view/write");
    group.throughput(Throughput::Elements(BATCH));
    let on_worker = |work| runtime.block_on(runtime.spawn(work)).expect("does not panic");

    for run in [32, 1] {
        group.bench_function(BenchmarkId::new("not-shared", run), |b| {
            b.iter_custom(|batches| {
                let hive = alone.clone();
                runtime.block_on(runtime.spawn(written::<Alone>(hive, batches, run, false))).unwrap()
            })
        });

        for (name, looks) in [("shared", false), ("shared-and-looked-at", true)] {
            group.bench_function(BenchmarkId::new(name, run), |b| {
                b.iter_custom(|batches| on_worker(written::<Looked>(looked.clone(), batches, run, looks)))
            });
        }
    }

    group.finish()
}

criterion_group!(benches, reads, writes);
criterion_main!(benches);
