//! The path of a message through one hive: map, route, handler, commit, answer.
//!
//! Run with `cargo bench --bench message`. Times are per message. Everything runs as in the daemon: counters
//! are on, guards are strict, and the allocator is the same.
#![allow(missing_docs)]

use beehive::prelude::*;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::future::Future;
use std::hint::black_box;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Message)]
#[message(reply = u64)]
struct Add {
    key: u64,
    amount: u64,
}

/// A message without a reply; its handler emits another one to the next app.
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

/// Starts an exchange of `left` questions and answers between two apps.
#[derive(Message)]
struct Talk {
    key: u64,
    left: u64,
}

#[derive(Message)]
struct Question {
    key: u64,
    left: u64,
}

#[derive(Message)]
struct Reply {
    key: u64,
    left: u64,
}

#[derive(App)]
struct Asks {
    said: Dict<u64, u64>,
}

#[derive(App)]
struct Knows {
    asked: Dict<u64, u64>,
}

#[handlers]
impl Asks {
    #[rcv(sharded)]
    fn talk(&mut self, msg: &Talk, ctx: &mut Ctx) {
        *self.said.entry(msg.key).or_default() += 1;
        ctx.emit(Question { key: msg.key, left: msg.left })
    }

    #[rcv(sharded)]
    fn reply(&mut self, msg: &Reply, ctx: &mut Ctx) {
        *self.said.entry(msg.key).or_default() += 1;
        if msg.left > 0 {
            ctx.emit(Question { key: msg.key, left: msg.left - 1 })
        }
    }
}

#[handlers]
impl Knows {
    #[rcv(sharded)]
    fn question(&mut self, msg: &Question, ctx: &mut Ctx) {
        *self.asked.entry(msg.key).or_default() += 1;
        ctx.emit(Reply { key: msg.key, left: msg.left })
    }
}

/// A message to every cell.
#[derive(Message)]
struct Visit;

#[derive(App)]
struct Visited {
    visits: Dict<u64, u64>,
}

#[handlers]
impl Visited {
    #[rcv(sharded)]
    fn add(&mut self, msg: &Forwarded) {
        *self.visits.entry(msg.key).or_default() += 1;
    }

    #[rcv(sharded, each = visits)]
    fn visit(&mut self, key: &u64, _: &Visit) {
        *self.visits.entry(*key).or_default() += 1;
    }
}

/// Reads `LOOKS` rows of one cell, so many that the cost of the message itself is negligible.
#[derive(Message)]
#[message(reply = u64)]
struct Look {
    cell: u64,
    rows: u64,
}

/// Fills a cell with `rows` rows.
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

/// Returns the next number of a pseudo-random sequence.
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

/// Number of messages emitted per flush.
const BATCH: u64 = 256;

/// Runs on a worker thread, as an IO bee does, and returns the time that `work` measured.
fn on_worker(runtime: &Runtime, work: impl Future<Output = Duration> + Send + 'static) -> Duration {
    runtime.block_on(runtime.spawn(work)).expect("does not panic")
}

/// Emits one batch at a time and waits for all answers. With `here`, the handlers run on the worker of the IO
/// bee.
async fn answered(hive: Hive, batches: u64, run: u64, here: bool) -> Duration {
    let mut io = hive.io();
    if here {
        io.run_here()
    }

    let (mut state, began) = (1, Instant::now());
    for _ in 0..batches {
        for _ in 0..BATCH / run {
            let key = next(&mut state) % 1000;
            for _ in 0..run {
                io.emit(Add { key, amount: 1 })
            }
        }

        io.try_flush().expect("all earlier ones are done");
        let mut answers = 0;
        while answers < BATCH as usize {
            answers +=
                io.receive().await.into_answers::<Add>().map_or(0, |answers| answers.into_iter().count())
        }
    }

    began.elapsed()
}

/// Keeps as many batches in flight as there are credits for.
async fn forwarded(hive: Hive, batches: u64) -> Duration {
    let mut io = hive.io();
    io.run_here();
    let (all, mut state, began) = (io.credits(), 1, Instant::now());

    for _ in 0..batches {
        for _ in 0..BATCH {
            io.emit(Forward { key: next(&mut state) % 1000 })
        }
        io.flush().await
    }

    while io.credits() < all {
        tokio::task::yield_now().await
    }

    began.elapsed()
}

/// Like [`answered`], with one message at a time.
async fn asked(hive: Hive, messages: u64, here: bool) -> Duration {
    let mut io = hive.io();
    if here {
        io.run_here()
    }

    let (mut state, began) = (1, Instant::now());
    for _ in 0..messages {
        io.emit(Add { key: next(&mut state) % 1000, amount: 1 });
        io.try_flush().expect("all earlier ones are done");
        io.receive().await;
    }

    began.elapsed()
}

fn path(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let _entered = runtime.enter();
    let hive = Hive::builder().app::<Counters>().app::<First>().app::<Second>().start().unwrap();
    let mut group = c.benchmark_group("path");
    group.throughput(Throughput::Elements(BATCH));

    for (name, run) in [("runs-of-32", 32), ("one-at-a-time", 1)] {
        group.bench_function(format!("{name}/1000-keys/one-core"), |b| {
            b.iter_custom(|batches| on_worker(&runtime, answered(hive.clone(), batches, run, true)))
        });
    }

    group.bench_function("bee-to-bee/1000-keys/one-core", |b| {
        b.iter_custom(|batches| on_worker(&runtime, forwarded(hive.clone(), batches)))
    });

    for run in [32, 1] {
        group.bench_function(format!("runners/runs-of-{run}/1000-keys"), |b| {
            b.iter_custom(|batches| on_worker(&runtime, answered(hive.clone(), batches, run, false)))
        });
    }

    group.finish();
    for (name, here) in [("here", true), ("runners", false)] {
        c.bench_function(&format!("one-under-way/{name}"), |b| {
            b.iter_custom(|messages| on_worker(&runtime, asked(hive.clone(), messages, here)))
        });
    }

    let mut state = 1;
    c.bench_function("request/from-outside", |b| {
        b.iter(|| runtime.block_on(hive.request(Add { key: next(&mut state) % 1000, amount: 1 })).unwrap())
    });

    // this measures requests from a task of a program under load: no sleeping thread has to be woken
    let busy = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let flood = runtime.spawn(flooded(hive.clone(), busy.clone()));
    c.bench_function("request/busy", |b| {
        b.iter_custom(|requests| on_worker(&runtime, requested(hive.clone(), requests)))
    });
    busy.store(false, std::sync::atomic::Ordering::Relaxed);
    runtime.block_on(flood).expect("does not panic");
}

/// Keeps the hive busy with one batch in flight at a time.
async fn flooded(hive: Hive, busy: std::sync::Arc<std::sync::atomic::AtomicBool>) {
    let mut io = hive.io();
    let mut state = 7;
    while busy.load(std::sync::atomic::Ordering::Relaxed) {
        (0..32).for_each(|_| io.emit(Add { key: 1000 + next(&mut state) % 1000, amount: 1 }));
        io.try_flush().expect("all earlier ones are done");
        let mut answers = 0;
        while answers < 32 {
            answers +=
                io.receive().await.into_answers::<Add>().map_or(0, |answers| answers.into_iter().count())
        }
    }
}

/// Returns the median latency, times the number of requests.
async fn requested(hive: Hive, requests: u64) -> Duration {
    let (mut state, mut took) = (1, Vec::with_capacity(requests as usize));
    for _ in 0..requests {
        let began = Instant::now();
        hive.request(Add { key: next(&mut state) % 1000, amount: 1 }).await.expect("is answered");
        took.push(began.elapsed())
    }
    took.sort_unstable();
    took.get(took.len() / 2).copied().unwrap_or_default() * requests as u32
}

/// Number of questions and answers in one exchange. It is below the limit on the length of a causal chain.
const PAIRS: u64 = 100;
/// Number of concurrent exchanges, each between its own two bees.
const EXCHANGES: u64 = 64;

async fn talked(hive: Hive, times: u64) -> Duration {
    let mut io = hive.io();
    io.run_here();
    let (all, began) = (io.credits(), Instant::now());

    for _ in 0..times {
        (0..EXCHANGES).for_each(|key| io.emit(Talk { key, left: PAIRS - 1 }));
        io.flush().await;
        while io.credits() < all {
            tokio::task::yield_now().await
        }
    }

    began.elapsed()
}

fn inside(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let _entered = runtime.enter();
    let hive = Hive::builder().app::<Asks>().app::<Knows>().start().unwrap();
    let mut group = c.benchmark_group("inside");
    group.throughput(Throughput::Elements(PAIRS * EXCHANGES));
    group.bench_function("question-and-answer", |b| {
        b.iter_custom(|times| on_worker(&runtime, talked(hive.clone(), times)))
    });

    group.finish()
}

/// Number of cells that a sweep visits.
const SWEPT: u64 = 100_000;

fn sweep(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let _entered = runtime.enter();
    let hive = Hive::builder().app::<Visited>().start().unwrap();
    runtime.block_on(async {
        let mut io = hive.io();
        for first in (0..SWEPT).step_by(1000) {
            (first..first + 1000).for_each(|key| io.emit(Forwarded { key }));
            io.flush().await
        }
        hive.idle().await
    });

    let mut group = c.benchmark_group("sweep");
    group.throughput(Throughput::Elements(SWEPT)).sample_size(20);
    group.bench_function("cell", |b| b.iter(|| runtime.block_on(hive.request(Visit)).unwrap()));
    group.finish()
}

/// Looks up rows of a table by key.
fn table(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let _entered = runtime.enter();
    let hive = Hive::builder().app::<Tables>().start().unwrap();
    let mut group = c.benchmark_group("table");
    group.throughput(Throughput::Elements(LOOKS));

    for (cell, rows) in [10, 100, 10_000].into_iter().enumerate() {
        let cell = cell as u64;
        let mut io = hive.io();

        // one transaction fills the cell, because the tables are small
        io.emit(Fill { cell, rows });
        runtime.block_on(io.flush());
        group.bench_function(format!("point-access/{rows}-rows"), |b| {
            b.iter(|| {
                io.emit(Look { cell, rows });
                runtime.block_on(async {
                    io.flush().await;
                    black_box(io.receive().await)
                });
            })
        });
    }

    group.finish()
}

/// Number of bees created per measurement, and in one batch.
const BEES: u64 = 100_000;
const BEES_PER_BATCH: u64 = 1_000;

async fn created(hive: Hive) -> Duration {
    let mut io = hive.io();
    io.run_here();
    let began = Instant::now();

    for batch in 0..BEES / BEES_PER_BATCH {
        for key in 0..BEES_PER_BATCH {
            io.emit(Add { key: batch * BEES_PER_BATCH + key, amount: 1 })
        }
        io.flush().await;
        let mut answers = 0;
        while answers < BEES_PER_BATCH as usize {
            answers +=
                io.receive().await.into_answers::<Add>().map_or(0, |answers| answers.into_iter().count())
        }
    }

    began.elapsed()
}

fn bees(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let _entered = runtime.enter();
    let mut group = c.benchmark_group("bees");
    group.throughput(Throughput::Elements(BEES)).sample_size(10);
    group.bench_function("created-in-batches", |b| {
        b.iter_custom(|times| {
            let mut sum = Duration::ZERO;
            for _ in 0..times {
                let hive = Hive::builder().app::<Counters>().start().unwrap();
                sum += on_worker(&runtime, created(hive.clone()));
                runtime.block_on(hive.stop(Duration::from_secs(5)));
            }

            sum
        })
    });

    group.finish()
}

criterion_group!(benches, map, path, inside, sweep, bees, table);
criterion_main!(benches);
