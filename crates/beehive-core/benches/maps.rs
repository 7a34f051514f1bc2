//! The cost of derived maps and of their verification, and what a wrong or an endless map does to a hive.
//!
//! Run with `cargo bench -p beehive-core --bench maps`. Rows that are compared are measured in turns, and medians are
//! printed, because other programs may use the machine. Everything runs in memory, without a journal.
#![allow(missing_docs)]

extern crate beehive_core as beehive;

use beehive::{
    App, Ctx, Dict, Error, ErrorKind, HandlerReport, Handlers, Handles, Hive, Io, Mapper, Message,
    RequestError, handlers,
};
use std::future::Future;
use std::hint::black_box;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Adds to the counter of one key.
#[derive(Message)]
#[message(reply = u64)]
struct Add {
    key: u64,
}

/// Adds to the counters of many keys.
#[derive(Message)]
#[message(reply = u64)]
struct AddAll(Vec<u64>);

#[derive(App)]
struct Counters {
    counts: Dict<u64, u64>,
}

#[handlers]
impl Counters {
    #[rcv(sharded)]
    fn add(&mut self, msg: &Add) -> u64 {
        let count = self.counts.entry(msg.key).or_default();
        *count += 1;
        *count
    }

    #[rcv(sharded)]
    fn bump(&mut self, msg: &Bump) {
        *self.counts.entry(msg.key).or_default() += 1;
    }

    #[rcv(joins)]
    fn add_all(&mut self, msg: &AddAll) -> u64 {
        for key in &msg.0 {
            *self.counts.entry(*key).or_default() += 1;
        }
        msg.0.len() as u64
    }
}

/// Adds to the counter of one key, without an answer.
#[derive(Message)]
struct Bump {
    key: u64,
}

/// Dropped by the map of its handler, which does nothing with it unless `touches`.
#[derive(Message)]
struct Tell {
    touches: bool,
}

/// An app with the map that a faulty derivation would yield: it drops every message.
#[derive(App)]
struct Faulty {
    sold: Dict<u64, u64>,
}

impl Handlers for Faulty {
    const MONOLITHIC: u64 = 0;
    const REPORT: &'static [HandlerReport] = &[HandlerReport {
        name: "tell",
        message: "Tell",
        answer: "",
        kind: "sharded",
        cells: "sold[..]",
        joins: "",
        views: "",
        file: file!(),
        line: line!(),
        reason: "",
        reason_line: 0,
        note: "",
    }];

    fn register(registrar: &mut beehive::__private::Registrar<'_, Self>) {
        beehive::__private::Registration::<Self, (), Tell>::of(registrar).rcv();
    }
}

impl Handles<Tell> for Faulty {
    const HANDLER: usize = 0;
    const ANSWERS: bool = false;

    fn map(_: &Tell, _: &mut Mapper) {}
    fn handle(&mut self, msg: &Tell, _: &mut Ctx) -> Result<Option<()>, Error> {
        if msg.touches {
            self.sold.put(7, 1);
        }
        Ok(None)
    }
}

/// Number of rounds whose median is printed.
const ROUNDS: usize = 31;

/// Number of messages emitted per flush.
const BATCH: u64 = 256;

/// Number of batches in one round.
const BATCHES: u64 = 400;

/// Number of keys of a message that no map may have.
const MANY: u64 = 1_000_000;

/// Returns the next number of a pseudo-random sequence.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

/// Returns the element below which this share of the elements lie.
fn quantile<T: Copy + PartialOrd>(all: &mut [T], share: f64) -> T {
    all.sort_by(|a, b| a.partial_cmp(b).expect("a number"));
    all[((all.len() - 1) as f64 * share) as usize]
}

fn row(name: &str, value: f64, unit: &str, remark: &str) {
    println!("{name:<40} {value:>12.1} {unit:<4} {remark}");
}

/// Runs on a worker thread, as an IO bee does.
fn on_worker<T: Send + 'static>(runtime: &Runtime, work: impl Future<Output = T> + Send + 'static) -> T {
    runtime.block_on(runtime.spawn(work)).expect("does not panic")
}

/// Prints the time that a map with one key takes, without an allocation.
fn one_key() {
    const MAPS: u32 = 1 << 18;
    let mut mapper = beehive::testing::maps::mapper::<Counters>();
    let (mut state, mut rounds) = (1, vec![]);
    for _ in 0..ROUNDS {
        let began = Instant::now();
        for _ in 0..MAPS {
            let message = Add { key: next(&mut state) };
            black_box(beehive::testing::maps::map_into::<Counters, _>(black_box(&message), &mut mapper));
        }
        rounds.push(began.elapsed().as_nanos() as f64 / f64::from(MAPS));
    }
    row("map/one-key", quantile(&mut rounds, 0.5), "ns", "target 15");
}

/// Emits batches of one kind of message, one batch at a time, and returns nanoseconds per message.
async fn emitted<M: Message>(hive: &Hive, batches: u64, message: impl Fn(u64) -> M) -> f64 {
    let mut io = hive.io();
    io.run_here();
    let (all, mut state, began) = (io.credits(), 1, Instant::now());
    for _ in 0..batches {
        for _ in 0..BATCH {
            io.emit(message(next(&mut state) % 1000))
        }
        io.flush().await;
        settled(&mut io, all).await
    }
    began.elapsed().as_nanos() as f64 / (batches * BATCH) as f64
}

async fn settled(io: &mut Io, all: u32) {
    while io.credits() < all {
        tokio::task::yield_now().await
    }
}

/// Prints the cost of a message with maps verified never, as often as in a release build, and always.
fn verification(runtime: &Runtime) {
    let default = beehive::limits::DROPS_PER_VERIFICATION;
    let intervals = [("off", 0), ("default", default), ("every", 1)];
    let hives = intervals.map(|(_, every)| {
        Hive::builder().app::<Counters>().app::<Faulty>().verify_maps(every).start().expect("a hive")
    });
    let mut rounds: [[Vec<f64>; 3]; 2] = Default::default();
    // in turns, each time from another interval on
    for round in 0..ROUNDS * intervals.len() {
        let at = (round + round / intervals.len()) % intervals.len();
        let hive = hives[at].clone();
        let (handled, dropped) = on_worker(runtime, async move {
            let handled = emitted(&hive, BATCHES, |key| Bump { key }).await;
            (handled, emitted(&hive, BATCHES, |_| Tell { touches: false }).await)
        });
        rounds[0][at].push(handled);
        rounds[1][at].push(dropped);
    }

    for (load, rounds) in ["handled", "dropped"].into_iter().zip(&mut rounds) {
        let medians: Vec<f64> = rounds.iter_mut().map(|all| quantile(all, 0.5)).collect();
        for ((name, every), median) in intervals.into_iter().zip(&medians) {
            let beside = format!("verify_maps({every}), {:+.1} %", (median / medians[0] - 1.0) * 100.0);
            row(&format!("verify/{load}/{name}"), *median, "ns", &beside);
        }
    }
}

/// Returns the arguments with which this program emits dropped messages and does nothing else.
fn dropping(every: u32, batches: u64) -> [String; 3] {
    ["dropping".into(), every.to_string(), batches.to_string()]
}

/// Emits batches of messages that their map drops, on one thread, to be counted by valgrind.
fn drop_batches(every: u32, batches: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let _entered = runtime.enter();
    let hive = Hive::builder().app::<Faulty>().verify_maps(every).start().expect("a hive");
    on_worker(&runtime, async move { emitted(&hive, batches, |_| Tell { touches: false }).await });
}

/// Returns the number of instructions that this program executes to emit dropped messages, or `None` without
/// valgrind.
fn instructions(every: u32, batches: u64) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().ok()?)
        .args(dropping(every, batches))
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let collected = text.lines().find_map(|line| line.split_once("Collected : "));
    let (_, count) = collected.unwrap_or_else(|| panic!("valgrind printed: {text}"));
    Some(count.trim().parse().expect("a number"))
}

/// Prints the instructions per dropped message with maps verified never, as often as in a release build, and always.
/// Two counts of which one has twice as many messages differ by the cost of the messages alone.
fn verification_in_instructions() {
    let mut first = None;
    for (name, every) in [("off", 0), ("default", beehive::limits::DROPS_PER_VERIFICATION), ("every", 1)] {
        let counted = |batches| instructions(every, batches);
        let (Some(once), Some(twice)) = (counted(BATCHES), counted(2 * BATCHES)) else {
            return println!("no valgrind, so no instructions are counted");
        };
        let each = (twice - once) as f64 / (BATCHES * BATCH) as f64;
        let beside = (each / *first.get_or_insert(each) - 1.0) * 100.0;
        let remark = format!("instructions, verify_maps({every}), {beside:+.2} %");
        row(&format!("verify/dropped/{name}/instructions"), each, "", &remark);
    }
}

/// Emits 10 000 messages a second, of which one in `apart` is dropped wrongly, until the hive reports one.
/// Returns the number of messages and the time.
async fn until_found(hive: Hive, apart: u64) -> (u64, Duration) {
    const RATE: u64 = 10_000;
    let mut io = hive.io();
    let (began, mut sent, mut state) = (Instant::now(), 0, 1);
    while hive.dead_letters().is_empty() {
        let due = began.elapsed().as_micros() as u64 * RATE / 1_000_000;
        while sent < due {
            io.emit(Tell { touches: next(&mut state).is_multiple_of(apart) });
            sent += 1;
        }
        io.flush().await;
        assert!(began.elapsed() < Duration::from_secs(60), "not found within a minute");
        tokio::task::yield_now().await;
    }
    let letters = hive.dead_letters();
    assert!(letters.iter().all(|l| l.error.kind() == ErrorKind::Unmapped));
    (sent, began.elapsed())
}

/// Prints how long a faulty map stays unnoticed.
fn wrong_drops(runtime: &Runtime) {
    for (name, every) in [("every", Some(1)), ("build", None)] {
        for apart in [1, 10, 100] {
            let (mut sent, mut times) = (vec![], vec![]);
            for _ in 0..5 {
                let mut builder = Hive::builder().app::<Counters>().app::<Faulty>();
                if let Some(every) = every {
                    builder = builder.verify_maps(every);
                }
                let hive = builder.start().expect("a hive");
                let (messages, time) = on_worker(runtime, until_found(hive, apart));
                sent.push(messages);
                times.push(time.as_secs_f64() * 1e3);
            }
            let (sent, most) = (quantile(&mut sent, 0.5), quantile(&mut times, 1.0));
            let remark = format!("after {sent} messages at 10 000/s, the longest {most:.1} ms");
            row(&format!("wrong-drop/{name}/one-in-{apart}"), quantile(&mut times, 0.5), "ms", &remark);
        }
    }
}

/// Prints the time until a message with too many keys is answered, and what other requests notice.
fn too_many_keys(runtime: &Runtime) {
    let hive = Hive::builder().app::<Counters>().start().expect("a hive");
    let flood = Arc::new(AtomicBool::new(false));
    let (mut answers, mut beside) = (vec![], [vec![], vec![]]);
    // bystanders with and without such messages, in turns
    for round in 0..ROUNDS {
        let large = round % 2 == 1;
        flood.store(true, Relaxed);
        let asked = runtime.spawn(bystander(hive.clone(), flood.clone()));
        if large {
            for _ in 0..20 {
                let message = AddAll((0..MANY).collect());
                let began = Instant::now();
                let answer = runtime.block_on(hive.request(message));
                answers.push(began.elapsed().as_secs_f64() * 1e3);
                assert!(matches!(answer, Err(RequestError::Limit(_))), "{answer:?}");
            }
        } else {
            // as much work for the thread that makes the messages
            for _ in 0..20 {
                black_box((0..MANY).collect::<Vec<u64>>());
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        flood.store(false, Relaxed);
        beside[usize::from(large)].extend(runtime.block_on(asked).expect("does not panic"));
    }

    let longest = quantile(&mut answers, 1.0);
    let remark =
        format!("median; 99 %: {:.2} ms, longest {longest:.2} ms; target 10", quantile(&mut answers, 0.99));
    row("million-keys/answer", quantile(&mut answers, 0.5), "ms", &remark);
    for (name, all) in ["without", "beside"].into_iter().zip(&mut beside) {
        let remark = format!("99 % of {} requests; half: {:.1} us", all.len(), quantile(all, 0.5));
        row(&format!("million-keys/bystander/{name}"), quantile(all, 0.99), "us", &remark);
    }
}

/// Sends one request after the other to other keys, and returns the microseconds that each took.
async fn bystander(hive: Hive, flood: Arc<AtomicBool>) -> Vec<f64> {
    let (mut state, mut times) = (1, vec![]);
    while flood.load(Relaxed) {
        let began = Instant::now();
        hive.request(Add { key: MANY + next(&mut state) % 1000 }).await.expect("an answer");
        times.push(began.elapsed().as_nanos() as f64 / 1e3);
    }
    times
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, every, batches] = &arguments[..]
        && mode == "dropping"
    {
        let (every, batches) = (every.parse().expect("a number"), batches.parse().expect("a number"));
        return drop_batches(every, batches);
    }

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let _entered = runtime.enter();
    one_key();
    verification_in_instructions();
    verification(&runtime);
    wrong_drops(&runtime);
    too_many_keys(&runtime);
}
