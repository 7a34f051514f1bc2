//! The path of a message through a journaled hive, beside the same path without a journal.
//!
//! Run with `cargo bench --bench journal`. Throughput is in messages. The journal encodes each entry and commits it
//! at once, without a disk or a network, so a row shows the cost that the hive itself adds. Below each journaled
//! row are the allocations, log bytes and log entries per message, which do not depend on the machine.
//!
//! To compare one core with two, run the same rows on one of them: `taskset -c 1 cargo bench --bench journal -- put/r`.
#![allow(missing_docs)]

use beehive::Io;
use beehive::journal::{Entry, EntryNumber, Journal, JournalEvents, LogState};
use beehive::nom::apps::{LearningSwitch, NodeController};
use beehive::nom::object::{FlowsRead, NodeId, NodeJoined, PacketIn, PacketInReason, PortNo, ReadFlows};
use beehive::prelude::*;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::borrow::Borrow;
use std::cell::Cell;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::Notify;

/// Counts the allocations of the process, and makes them as the daemon does.
struct Counting;

/// A count for a few threads. Two threads that add to the same one would wait for each other, at each allocation.
#[repr(align(128))]
struct Count(AtomicU64);

static ALLOCATIONS: [Count; 16] = [const { Count(AtomicU64::new(0)) }; 16];
static THREADS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Number of this thread, counted from one; 0 if it has none so far.
    static THREAD: Cell<u64> = const { Cell::new(0) };
    /// What [`put`] has stored last.
    static STORED: Cell<u64> = const { Cell::new(0) };
}

fn thread() -> u64 {
    THREAD.with(|thread| {
        if thread.get() == 0 {
            thread.set(THREADS.fetch_add(1, Relaxed) + 1)
        }
        thread.get()
    })
}

fn count_allocation() {
    ALLOCATIONS[thread() as usize % ALLOCATIONS.len()].0.fetch_add(1, Relaxed);
}

fn allocations() -> u64 {
    ALLOCATIONS.iter().map(|count| count.0.load(Relaxed)).sum()
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call is passed on to another allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_allocation();
        // SAFETY: the caller upholds the contract of `GlobalAlloc::alloc`.
        unsafe { MiMalloc.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `GlobalAlloc::dealloc`.
        unsafe { MiMalloc.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count_allocation();
        // SAFETY: the caller upholds the contract of `GlobalAlloc::realloc`.
        unsafe { MiMalloc.realloc(at, layout, size) }
    }
}

/// A journal that commits each entry as soon as its reporting task gets to run.
#[derive(Default)]
struct AtOnce {
    last: AtomicU64,
    entries: AtomicU64,
    bytes: AtomicU64,
    /// The encoded entry, as a journal would write it to a file.
    buffer: Mutex<Vec<u8>>,
    /// All encoded entries, if the journal keeps them.
    kept: Option<Mutex<Vec<Vec<u8>>>>,
    appended: Notify,
    events: OnceLock<Arc<dyn JournalEvents>>,
}

impl AtOnce {
    fn start(runtime: &Runtime, keeps: bool) -> Arc<AtOnce> {
        let journal = Arc::new(AtOnce { kept: keeps.then(Mutex::default), ..AtOnce::default() });
        let committing = journal.clone();
        runtime.spawn(async move {
            loop {
                committing.appended.notified().await;
                if let Some(events) = committing.events.get() {
                    events.released(EntryNumber(committing.last.load(Relaxed)))
                }
            }
        });
        journal
    }
}

impl Journal for AtOnce {
    fn append(&self, entry: Arc<Entry>) {
        self.entries.fetch_add(1, Relaxed);
        let mut buffer = self.buffer.lock().unwrap();
        buffer.clear();
        entry.encode_into(&mut buffer);
        self.bytes.fetch_add(buffer.len() as u64, Relaxed);
        if let Some(kept) = &self.kept {
            kept.lock().unwrap().push(buffer.clone())
        }
        self.last.store(entry.number.0, Relaxed);
        self.appended.notify_one()
    }
    fn attach(&self, events: Arc<dyn JournalEvents>) {
        let _ = self.events.set(events);
    }
}

/// Stores 64 bytes under a key of 8 bytes.
#[derive(Message)]
#[message(reply = u64)]
struct Put {
    key: u64,
    value: Vec<u8>,
}
#[derive(Message)]
#[message(reply = u64)]
struct Get {
    key: u64,
}
#[derive(Message)]
struct Forward {
    key: u64,
}
#[derive(Message)]
struct Forwarded {
    key: u64,
}

#[derive(Message)]
struct Look;
#[derive(Message)]
struct Pass {
    key: u64,
}
#[derive(Message)]
struct Passed {
    key: u64,
}

#[derive(App)]
struct Store {
    values: Dict<u64, Vec<u8>>,
}
#[handlers]
impl Store {
    #[rcv(sharded)]
    fn put(&mut self, msg: &Put) -> u64 {
        self.values.put(msg.key, msg.value.clone());
        msg.key
    }
    #[rcv(sharded)]
    fn get(&mut self, msg: &Get) -> u64 {
        self.values.get(&msg.key).map_or(0, |value| value.len() as u64)
    }
    #[rcv(each = values)]
    fn look(&mut self, key: &u64, _: &Look) {
        std::hint::black_box(self.values.get(key));
    }
}
#[derive(App)]
struct First {
    seen: Dict<u64, u64>,
}
#[handlers]
impl First {
    #[rcv(sharded)]
    fn forward(&mut self, msg: &Forward, ctx: &mut Ctx) {
        *self.seen.entry(msg.key).or_default() += 1;
        ctx.emit(Forwarded { key: msg.key })
    }
    #[rcv(sharded)]
    fn pass(&mut self, msg: &Pass, ctx: &mut Ctx) {
        *self.seen.entry(msg.key).or_default() += 1;
        ctx.emit(Passed { key: msg.key })
    }
}
#[derive(App)]
struct Second {
    seen: Dict<u64, u64>,
}
#[handlers]
impl Second {
    #[rcv(sharded)]
    fn forwarded(&mut self, msg: &Forwarded) {
        *self.seen.entry(msg.key).or_default() += 1
    }
    #[rcv(sharded)]
    fn passed(&mut self, msg: &Passed) {
        std::hint::black_box(self.seen.get(&msg.key));
    }
}

const KEYS: u64 = 1_000;
/// Number of messages emitted per flush.
const BATCH: u64 = 256;

/// A pseudo-random number (xorshift).
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Returns a message that stores a value different from all earlier ones, because storing the same value
/// again would not cause a log entry.
fn put(key: u64) -> Put {
    let next = STORED.get() + 1;
    STORED.set(next);
    Put { key, value: (next << 8 | thread()).to_le_bytes().repeat(8) }
}

fn forward(key: u64) -> Forward {
    Forward { key }
}

/// Receives mail until it has contained `count` answers to messages of type `M`.
async fn receive_answers<M: Message>(io: &mut Io, count: u64) {
    let mut answers = 0;
    while answers < count as usize {
        answers += io.receive().await.into_answers::<M>().map_or(0, |answers| answers.into_iter().count())
    }
}

/// Emits batches of messages and waits for the answers. `run` consecutive messages have one key.
async fn answered<M: Message>(
    hive: Hive,
    batches: u64,
    (batch, run): (u64, u64),
    of: fn(u64) -> M,
) -> Duration {
    let mut io = hive.io();
    io.run_here();
    // each client has keys of its own, in an order of its own
    static CLIENT: AtomicU64 = AtomicU64::new(1);
    let (mut state, began) = (CLIENT.fetch_add(1, Relaxed), Instant::now());

    for _ in 0..batches {
        for _ in 0..batch / run {
            let key = next(&mut state) % KEYS;
            (0..run).for_each(|_| io.emit(of(key)))
        }

        io.flush().await;
        receive_answers::<M>(&mut io, batch).await
    }

    began.elapsed()
}

/// Number of tasks of [`by_many`].
const CLIENTS: u64 = 8;

/// Does what [`answered`] does in several tasks at once, because one that waits for its answers leaves a second core idle.
async fn by_many<M: Message>(
    hive: Hive,
    batches: u64,
    (batch, run): (u64, u64),
    of: fn(u64) -> M,
) -> Duration {
    let began = Instant::now();
    let clients = (0..CLIENTS).map(|_| tokio::spawn(answered(hive.clone(), batches, (batch, run), of)));
    for client in clients.collect::<Vec<_>>() {
        client.await.expect("a client does not panic");
    }
    began.elapsed()
}

/// Keeps as many batches in flight as there are credits for, and waits until all of them are done.
async fn forwarded<M: Message>(hive: Hive, batches: u64, of: fn(u64) -> M) -> Duration {
    let mut io = hive.io();
    io.run_here();
    let (all, mut state, began) = (io.credits(), 1, Instant::now());

    for _ in 0..batches {
        (0..BATCH).for_each(|_| io.emit(of(next(&mut state) % KEYS)));
        io.flush().await
    }
    io.credits_returned(all).await;

    began.elapsed()
}

/// Visits every key, one sweep after the other.
async fn swept(hive: Hive, sweeps: u64) -> Duration {
    let mut io = hive.io();
    io.run_here();
    let (all, began) = (io.credits(), Instant::now());

    for _ in 0..sweeps {
        io.emit(Look);
        io.flush().await;
        io.credits_returned(all).await
    }

    began.elapsed()
}

/// Number of switches, and number of stations that each of them knows.
const NODES: u64 = 16;
const STATIONS: u64 = 64;

/// Returns a packet that a switch sends to the controller.
fn packet(node: u64, from: u64, to: u64) -> PacketIn {
    let address = |station: u64| [2, 0, 0, 0, 0, station as u8];
    let data = [&address(to)[..], &address(from), &[8, 0], &[0; 50]].concat();
    let (node, port, length) = (NodeId(node), PortNo(1 + from as u32 % 8), data.len() as u16);
    PacketIn { node, port, reason: PacketInReason::Miss, length, buffer: None, data: data.into() }
}

/// Returns the driver of switches whose stations are known to the learning switch.
async fn driver(hive: Hive) -> Io {
    let mut io = hive.io();
    io.run_here();
    let driver = io.address();
    for node in 0..NODES {
        let (ports, knows_owners, drops_misses) = (Vec::new(), true, true);
        io.emit(NodeJoined { node: NodeId(node), driver, ports, knows_owners, drops_misses });
        io.flush().await;
        let reading = loop {
            if let Some([read, ..]) = io.receive().await.messages::<ReadFlows>() {
                break read.reading;
            }
        };
        // the switch has no flows
        io.emit(FlowsRead { node: NodeId(node), reading, last: true, flows: Vec::new() });
        (0..STATIONS).for_each(|from| io.emit(packet(node, from, (from + 1) % STATIONS)));
        io.flush().await;
        receive_answers::<PacketIn>(&mut io, STATIONS).await
    }
    io
}

/// Emits batches of packets between known stations and waits for the answers.
async fn switched(driver: Arc<tokio::sync::Mutex<Io>>, batches: u64) -> Duration {
    let mut io = driver.lock().await;
    let (mut state, began) = (1, Instant::now());

    for _ in 0..batches {
        for _ in 0..BATCH {
            let random = next(&mut state);
            io.emit(packet(random % NODES, (random >> 8) % STATIONS, (random >> 16) % STATIONS))
        }

        io.flush().await;
        // the other mail is flows to install
        receive_answers::<PacketIn>(&mut io, BATCH).await
    }

    began.elapsed()
}

/// Measures packet-ins of known stations. If `flows` is `true`, most of them cause a flow, which the learning switch sends
/// to the node controller, and this one to the switch.
fn learning(c: &mut Criterion, name: &str, flows: bool) {
    let runtime = runtime();
    let _entered = runtime.enter();
    let journal = AtOnce::start(&runtime, false);
    let settings = format!("[learning-switch]\nflows = {flows}").parse().unwrap();
    let apps = || Hive::builder().settings(settings).app::<LearningSwitch>().app::<NodeController>();
    let without = apps.clone()().start().unwrap();
    let with = apps().journal(journal.clone(), LogState::default()).start().unwrap();
    let driver = |hive: &Hive| runtime.block_on(runtime.spawn(driver(hive.clone()))).unwrap();
    let drivers = [&without, &with].map(|hive| Arc::new(tokio::sync::Mutex::new(driver(hive))));
    compare(c, &runtime, (name, BATCH), &journal, &drivers, switched)
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Measures `work`, which handles `messages` for each unit that it is asked for, without and with a journal.
fn row<F>(c: &mut Criterion, name: &str, messages: u64, work: impl Fn(Hive, u64) -> F)
where
    F: Future<Output = Duration> + Send + 'static,
{
    let runtime = runtime();
    let _entered = runtime.enter();
    let journal = AtOnce::start(&runtime, false);
    let apps = || Hive::builder().app::<Store>().app::<First>().app::<Second>();
    let without = apps().start().unwrap();
    let with = apps().journal(journal.clone(), LogState::default()).start().unwrap();

    for hive in [&without, &with] {
        // every key exists, so no row measures the creation of bees
        runtime.block_on(async {
            for key in 0..KEYS {
                hive.request(put(key)).await.unwrap();
            }
        });
        runtime.block_on(runtime.spawn(forwarded(hive.clone(), 40, forward))).unwrap();
    }

    compare(c, &runtime, (name, messages), &journal, &[without, with], work)
}

/// Measures `work` on `subjects`, the first of which has no journal, while the second one uses `journal`.
fn compare<S: Clone, F>(
    c: &mut Criterion,
    runtime: &Runtime,
    (name, messages): (&str, u64),
    journal: &AtOnce,
    [without, with]: &[S; 2],
    work: impl Fn(S, u64) -> F,
) where
    F: Future<Output = Duration> + Send + 'static,
{
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(messages));
    for (kind, subject) in [("unjournaled", without), ("journaled", with)] {
        let mut handled = 0;
        let count = || [allocations(), journal.entries.load(Relaxed), journal.bytes.load(Relaxed)];
        let before = count();
        group.bench_function(BenchmarkId::from_parameter(kind), |b| {
            b.iter_custom(|units| {
                handled += units * messages;
                runtime.block_on(runtime.spawn(work(subject.clone(), units))).expect("does not panic")
            })
        });

        let after = count();
        let each = |at: usize| (after[at] - before[at]) as f64 / handled.max(1) as f64;
        println!(
            "{name}/{kind}: {:.2} allocations, {:.3} entries, {:.1} bytes of log per message",
            each(0),
            each(1),
            each(2)
        );
    }
    group.finish()
}

/// Applies entries, each of which must take effect.
fn apply_all(mut state: LogState, entries: impl Iterator<Item = impl Borrow<Entry>>) -> LogState {
    for entry in entries {
        assert!(state.apply(entry.borrow()))
    }
    state
}

/// Measures a follower: another hive puts values, in runs of `run` messages with one key, and the follower applies the
/// entries of its log. `applied` takes entries that are decoded already, `decoded` takes bytes. Neither decodes a value.
fn follower(c: &mut Criterion, name: &str, run: u64) {
    const BATCHES: u64 = 200;
    let runtime = runtime();
    let _entered = runtime.enter();
    let journal = AtOnce::start(&runtime, true);
    let hive = Hive::builder().app::<Store>().journal(journal.clone(), LogState::default()).start().unwrap();
    let kept = || std::mem::take(&mut *journal.kept.as_ref().unwrap().lock().unwrap());
    let drive = |batches| {
        let work = answered(hive.clone(), batches, (BATCH, run), put);
        runtime.block_on(runtime.spawn(work)).unwrap();
        runtime.block_on(hive.idle())
    };

    // every key exists before the measurement
    drive(40);
    let base = LogState::replay(kept().iter().map(Vec::as_slice)).unwrap();
    drive(BATCHES);
    let bytes = kept();
    let entries: Vec<Entry> = bytes.iter().map(|bytes| Entry::decode(bytes).unwrap()).collect();

    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(BATCH * BATCHES)).sample_size(20);
    group.bench_function("applied", |b| {
        b.iter_batched(|| base.clone(), |state| apply_all(state, entries.iter()), BatchSize::PerIteration)
    });
    group.bench_function("decoded", |b| {
        let decoded = || bytes.iter().map(|bytes| Entry::decode(bytes).unwrap());
        b.iter_batched(|| base.clone(), |state| apply_all(state, decoded()), BatchSize::PerIteration)
    });
    group.finish()
}

fn journal(c: &mut Criterion) {
    row(c, "put/runs-of-32", BATCH, |hive, batches| answered(hive, batches, (BATCH, 32), put));
    row(c, "put/random-key", BATCH, |hive, batches| answered(hive, batches, (BATCH, 1), put));
    let all = BATCH * CLIENTS;
    row(c, "put/runs-of-32/eight-clients", all, |hive, batches| by_many(hive, batches, (BATCH, 32), put));
    row(c, "put/random-key/eight-clients", all, |hive, batches| by_many(hive, batches, (BATCH, 1), put));
    row(c, "put/one-under-way", 1, |hive, messages| answered(hive, messages, (1, 1), put));
    row(c, "get/random-key", BATCH, |hive, batches| answered(hive, batches, (BATCH, 1), |key| Get { key }));
    row(c, "get/one-under-way", 1, |hive, messages| answered(hive, messages, (1, 1), |key| Get { key }));
    row(c, "chain-of-two", BATCH, |hive, batches| forwarded(hive, batches, forward));
    row(c, "chain-to-a-reader", BATCH, |hive, batches| forwarded(hive, batches, |key| Pass { key }));
    row(c, "sweep/idle", KEYS, swept);
    learning(c, "learning-switch/forward", false);
    learning(c, "learning-switch/forward-and-install", true);
    follower(c, "follower/put/runs-of-32", 32);
    follower(c, "follower/put/random-key", 1);
}

criterion_group!(benches, journal);
criterion_main!(benches);
