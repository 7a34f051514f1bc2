//! The way of a message through one hive: map, route, handler, commit, answer.
//!
//! `cargo bench --bench message`. Times are per message. Everything runs as in the daemon: counters on, guards strict.
#![allow(missing_docs)]

use beehive::prelude::*;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::collections::VecDeque;
use std::hint::black_box;

#[derive(Message)]
#[message(reply = u64)]
struct Add {
    key: u64,
    amount: u64,
}

/// Answered by nobody; handled by the next app.
#[derive(Message)]
struct Forward {
    key: u64,
}

#[derive(App)]
struct Counters {
    counts: Dict<u64, u64>,
}

#[handlers]
impl Counters {
    #[rcv(sharded)]
    fn add(&mut self, msg: &Add) -> u64 {
        let count = self.counts.entry(msg.key).or_default();
        *count += msg.amount;
        *count
    }
}

#[derive(App)]
struct First {
    seen: Dict<u64, u64>,
}
#[derive(App)]
struct Second {
    seen: Dict<u64, u64>,
}
#[derive(Message)]
struct Forwarded {
    key: u64,
}

#[handlers]
impl First {
    #[rcv(sharded)]
    fn forward(&mut self, msg: &Forward, ctx: &mut Ctx) {
        *self.seen.entry(msg.key).or_default() += 1;
        ctx.emit(Forwarded { key: msg.key });
    }
}
#[handlers]
impl Second {
    #[rcv(sharded)]
    fn forwarded(&mut self, msg: &Forwarded) {
        *self.seen.entry(msg.key).or_default() += 1;
    }
}

/// Reads rows of one cell: so many that the message itself costs nothing beside them.
#[derive(Message)]
#[message(reply = u64)]
struct Look {
    cell: u64,
    rows: u64,
}

/// Fills a cell with rows.
#[derive(Message)]
struct Fill {
    cell: u64,
    rows: u64,
}

#[derive(App)]
struct Tables {
    rows: Table<u64, u64, u64>,
}

const LOOKS: u64 = 4096;

#[handlers]
impl Tables {
    #[rcv(sharded)]
    fn fill(&mut self, msg: &Fill) {
        let rows = self.rows.at(msg.cell);
        for row in 0..msg.rows {
            rows.insert(row * 7919, row);
        }
    }

    #[rcv(sharded)]
    fn look(&mut self, msg: &Look) -> u64 {
        let rows = self.rows.at(msg.cell);
        let (mut state, mut sum) = (1, 0);
        for _ in 0..LOOKS {
            sum += rows.get(&(next(&mut state) % msg.rows * 7919)).copied().unwrap_or(0);
        }
        sum
    }
}

/// The next of a sequence that looks like chance.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

fn map(c: &mut Criterion) {
    let mut mapper = beehive::testing::maps::mapper::<Counters>();
    let mut state = 1;
    c.bench_function("map/one-key", |b| {
        b.iter(|| {
            let message = Add { key: next(&mut state), amount: 1 };
            beehive::testing::maps::map_into::<Counters, _>(black_box(&message), &mut mapper)
        })
    });
}

/// Messages handed over with one flush.
const BATCH: u64 = 256;

fn path(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let _entered = runtime.enter();
    let hive = Hive::builder().app::<Counters>().app::<First>().app::<Second>().start().unwrap();
    let mut group = c.benchmark_group("path");
    group.throughput(Throughput::Elements(BATCH));
    for (name, run) in [("runs-of-32", 32), ("one-at-a-time", 1)] {
        let mut io = hive.io();
        io.run_here();
        let (mut state, mut mail) = (1, VecDeque::new());
        group.bench_function(format!("{name}/1000-keys/one-core"), |b| {
            b.iter(|| {
                for _ in 0..BATCH / run {
                    let key = next(&mut state) % 1000;
                    for _ in 0..run {
                        io.emit(Add { key, amount: 1 })
                    }
                }
                io.try_flush().expect("all earlier ones are done");
                io.receive_into(&mut mail);
                assert!(!mail.is_empty());
                mail.clear();
            })
        });
    }
    {
        let mut io = hive.io();
        io.run_here();
        let mut state = 1;
        group.bench_function("bee-to-bee/1000-keys/one-core", |b| {
            b.iter(|| {
                for _ in 0..BATCH {
                    io.emit(Forward { key: next(&mut state) % 1000 })
                }
                io.try_flush().expect("all earlier ones are done")
            })
        });
    }
    for run in [32, 1] {
        let mut io = hive.io();
        let (mut state, mut mail) = (1, VecDeque::new());
        group.bench_function(format!("runners/runs-of-{run}/1000-keys"), |b| {
            b.iter(|| {
                for _ in 0..BATCH / run {
                    let key = next(&mut state) % 1000;
                    for _ in 0..run {
                        io.emit(Add { key, amount: 1 })
                    }
                }
                runtime.block_on(io.flush());
                io.receive_into(&mut mail);
                mail.clear();
            })
        });
    }
    group.finish();
    let mut state = 1;
    c.bench_function("request/from-outside", |b| {
        b.iter(|| runtime.block_on(hive.request(Add { key: next(&mut state) % 1000, amount: 1 })).unwrap())
    });
}

/// A row of a table, found by its key.
fn table(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let _entered = runtime.enter();
    let hive = Hive::builder().app::<Tables>().start().unwrap();
    let mut group = c.benchmark_group("table");
    group.throughput(Throughput::Elements(LOOKS));
    for (cell, rows) in [10, 100, 10_000].into_iter().enumerate() {
        let cell = cell as u64;
        let mut io = hive.io();
        io.run_here();
        // as many in one transaction as there are, for they are not many
        io.emit(Fill { cell, rows });
        io.try_flush().expect("nothing is under way");
        let mut mail = VecDeque::new();
        group.bench_function(format!("point-access/{rows}-rows"), |b| {
            b.iter(|| {
                io.emit(Look { cell, rows });
                io.try_flush().expect("all earlier ones are done");
                io.receive_into(&mut mail);
                assert!(!mail.is_empty());
                mail.clear();
            })
        });
    }
    group.finish()
}

criterion_group!(benches, map, path, table);
criterion_main!(benches);
