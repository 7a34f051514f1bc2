//! A hive with its state on disk: puts into a key-value store, beside a C program that appends as many bytes with one
//! `fdatasync` a group; and what many bees cost in memory, on disk, and at the start.
//!
//! - `cargo bench -p beehive-raft --bench hive -- kv SECONDS FOLDER APPEND`: each row is the median of five rounds, in
//!   turns with the C program `APPEND` (`make -C benches/peers`).
//! - `cargo bench -p beehive-raft --bench hive -- bees COUNT FOLDER`: makes as many bees, and starts a second process on
//!   their folder.
//! - `cargo bench -p beehive-raft --bench hive -- compact KEYS RATE SECONDS FOLDER`: writes a log of 1 GB without a
//!   checkpoint, and starts on it. While the hive makes the checkpoint, and afterwards, puts arrive at a fixed rate. The time
//!   of an answer counts from the moment at which the put was due.
//! - `cargo bench -p beehive-raft --bench hive -- rest KEYS ACTIVE RATE SECONDS FOLDER`: the same on as many bees, of which
//!   only the first `ACTIVE` get puts, until a checkpoint is made of those.
//!
//! The folder must be on a disk: a file system in memory syncs nothing.
#![allow(missing_docs)]

extern crate beehive_core as beehive;

use beehive::{App, Dict, Hive, Io, Message, handlers};
use beehive_raft::{Data, Options};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const KEYS: u64 = 65_536;

/// Stores 64 bytes under a key of 8 bytes.
#[derive(Message)]
#[message(reply = u64)]
struct Put {
    key: u64,
    value: Vec<u8>,
}

#[derive(App)]
struct Store {
    values: Dict<u64, Vec<u8>>,
}

#[handlers]
impl Store {
    /// Returns the number in the value.
    #[rcv(sharded)]
    fn put(&mut self, msg: &Put) -> u64 {
        self.values.put(msg.key, msg.value.clone());
        msg.value.first_chunk().map_or(0, |number| u64::from_le_bytes(*number))
    }
}

/// Returns put number `number`, whose value is different from all earlier ones.
fn put(number: u64) -> Put {
    Put { key: number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % KEYS, value: number.to_le_bytes().repeat(8) }
}

fn start(folder: &Path) -> (Hive, Data) {
    let data = Data::open(folder).expect("opens");
    let hive = data.attach(Hive::builder().app::<Store>()).start().expect("starts");
    (hive, data)
}

async fn stop(hive: Hive, data: Data) {
    hive.stop(Duration::from_secs(30)).await;
    drop(hive);
    data.close()
}

async fn receive(io: &mut Io) -> u64 {
    io.receive().await.into_answers::<Put>().map_or(0, |answers| answers.into_iter().count()) as u64
}

/// Puts a second, in batches, with at most `in_flight` unanswered. Also returns the bytes of an entry in the log, and the
/// number of puts for each sync.
async fn puts(folder: &Path, time: Duration, batch: u64, in_flight: u64) -> (f64, f64, f64) {
    let (hive, data) = start(folder);
    let mut io = hive.io();
    io.run_here();
    let (mut sent, mut answered) = (0, 0);
    // every bee is made before the time counts
    for _ in 0..KEYS / 256 {
        (0..256).for_each(|_| {
            sent += 1;
            io.emit(Put { key: sent - 1, value: vec![0; 64] })
        });
        io.flush().await;
        while answered < sent {
            answered += receive(&mut io).await
        }
    }

    let before = data.status();
    let (first, began) = (sent, Instant::now());
    while began.elapsed() < time {
        while sent + batch <= answered + in_flight {
            (0..batch).for_each(|at| io.emit(put(sent + at)));
            sent += batch;
            io.flush().await
        }
        answered += receive(&mut io).await
    }
    while answered < sent {
        answered += receive(&mut io).await
    }
    let rate = (sent - first) as f64 / began.elapsed().as_secs_f64();
    let after = data.status();
    let bytes = (after.bytes - before.bytes) as f64 / (sent - first) as f64;
    let per_sync = (sent - first) as f64 / (after.syncs - before.syncs) as f64;
    drop(io);
    stop(hive, data).await;
    (rate, bytes, per_sync)
}

/// Puts a second, one request after the other.
async fn requests(folder: &Path, time: Duration) -> (f64, f64, f64) {
    let (hive, data) = start(folder);
    hive.request(put(0)).await.expect("an answer");
    let before = data.status();
    let (mut sent, began) = (0, Instant::now());
    while began.elapsed() < time {
        sent += 1;
        hive.request(put(sent)).await.expect("an answer");
    }
    let rate = sent as f64 / began.elapsed().as_secs_f64();
    let after = data.status();
    let bytes = (after.bytes - before.bytes) as f64 / sent as f64;
    let per_sync = sent as f64 / (after.syncs - before.syncs) as f64;
    stop(hive, data).await;
    (rate, bytes, per_sync)
}

/// Entries a second of the C program.
fn append(program: &str, folder: &Path, time: Duration, batch: u64, bytes: f64) -> f64 {
    let output = Command::new(program)
        .arg(folder.join("append"))
        .arg(time.as_secs_f64().to_string())
        .args([batch.to_string(), bytes.round().to_string()])
        .output()
        .expect("starts");
    let text = String::from_utf8(output.stdout).expect("words");
    text.trim().parse().unwrap_or_else(|_| panic!("{text} {}", String::from_utf8_lossy(&output.stderr)))
}

fn median(rates: &[f64]) -> f64 {
    let mut rates = rates.to_vec();
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

async fn kv(time: Duration, folder: &Path, program: &str) {
    println!(
        "{:<34} {:>12} {:>12} {:>7} {:>11} {:>14}",
        "puts a second", "C program", "hive", "ratio", "puts a sync", "bytes an entry"
    );
    for (name, batch, in_flight) in [
        ("request, one in flight", 1, 0),
        ("batch 1, one in flight", 1, 1),
        ("batch 1, 1 024 in flight", 1, 1_024),
        ("batch 128, 1 024 in flight", 128, 1_024),
        ("batch 1 024, 4 096 in flight", 1_024, 4_096),
    ] {
        let (mut peers, mut hives, mut per_sync, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), 100.0);
        for _ in 0..5 {
            let _ = std::fs::remove_dir_all(folder);
            let (rate, of_entry, of_sync) = match in_flight {
                0 => requests(folder, time).await,
                _ => puts(folder, time, batch, in_flight).await,
            };
            hives.push(rate);
            per_sync.push(of_sync);
            bytes = of_entry;
            let _ = std::fs::remove_dir_all(folder);
            std::fs::create_dir_all(folder).expect("creates");
            peers.push(append(program, folder, time, in_flight.max(1), bytes))
        }
        let (peer, hive, per_sync) = (median(&peers), median(&hives), median(&per_sync));
        let ratio = hive / peer;
        println!("{name:<34} {peer:>12.0} {hive:>12.0} {ratio:>7.2} {per_sync:>11.1} {bytes:>14.1}");
    }
    let _ = std::fs::remove_dir_all(folder);
}

/// Resident memory of this process, in bytes.
fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().expect("a number") * 1024.0
}

fn bytes_in(folder: &Path) -> f64 {
    let files = std::fs::read_dir(folder).expect("a folder");
    files.map(|file| file.and_then(|file| file.metadata()).expect("a file").len() as f64).sum()
}

/// Makes bees, each with one cell of 8 + 8 bytes.
async fn make(count: u64, folder: &Path) {
    let (hive, data) = start(folder);
    let mut io = hive.io();
    io.run_here();
    let (empty, began, mut answered) = (memory(), Instant::now(), 0);
    for first in (0..count).step_by(1_024) {
        let end = (first + 1_024).min(count);
        (first..end).for_each(|key| io.emit(Put { key, value: vec![1; 8] }));
        io.flush().await;
        while answered < end {
            answered += receive(&mut io).await
        }
    }
    let per_bee = (memory() - empty) / count as f64;
    println!(
        "{count} bees: {per_bee:.0} bytes each in memory, made in {:.1} s",
        began.elapsed().as_secs_f64()
    );
    drop(io);
    stop(hive, data).await;
    println!("{:.0} bytes each on disk, log included", bytes_in(folder) / count as f64)
}

/// Starts on the bees, and asks one of them.
async fn first_answer(count: u64, folder: &Path) {
    let (empty, began) = (memory(), Instant::now());
    let (hive, data) = start(folder);
    let started = began.elapsed();
    hive.request(put(count / 2)).await.expect("an answer");
    let answered = began.elapsed();
    let per_bee = (memory() - empty) / count as f64;
    println!(
        "start on {} bytes of log and {} of checkpoint: {:.2} s, first answer after {:.2} s, {per_bee:.0} bytes a bee in memory",
        data.found().log_bytes,
        data.found().checkpoint_bytes,
        started.as_secs_f64(),
        answered.as_secs_f64(),
    );
    stop(hive, data).await
}

/// Waits until the answers to all puts up to `sent` have arrived.
async fn settle(io: &mut Io, mut answered: u64, sent: u64) {
    while answered < sent {
        answered += receive(io).await
    }
}

/// The log that is compacted.
const YEAR_BYTES: u64 = 1_000_000_000;

/// Writes a log of [`YEAR_BYTES`], without a checkpoint.
async fn write_log(folder: &Path, keys: u64) {
    let data = Options::default().sizes(u64::MAX, u64::MAX).open(folder).expect("opens");
    let hive = data.attach(Hive::builder().app::<Store>()).start().expect("starts");
    let mut io = hive.io();
    io.run_here();
    let (mut sent, mut answered) = (0, 0);
    while data.status().bytes < YEAR_BYTES {
        for _ in 0..1_024 {
            let number = sent % keys;
            io.emit(Put { key: number.wrapping_mul(0x9e37_79b9) % keys, ..put(sent) });
            sent += 1
        }
        io.flush().await;
        while sent > answered + 2_048 {
            answered += receive(&mut io).await
        }
    }
    settle(&mut io, answered, sent).await;
    drop(io);
    stop(hive, data).await
}

/// Prints the times of answers in microseconds.
fn print_times(what: &str, times: &mut [u32]) {
    times.sort_unstable();
    let at =
        |share: f64| times.get((times.len() as f64 * share) as usize).map_or(0.0, |time| f64::from(*time));
    let [half, most, nearly_all] = [0.5, 0.99, 0.999].map(|share| at(share) / 1e3);
    println!(
        "{what:<28} {:>9} answers, median {half:>8.2} ms, 99 % {most:>8.2} ms, 99.9 % {nearly_all:>8.2} ms",
        times.len()
    );
}

/// Puts at a fixed rate, until a checkpoint is made, and for `time` seconds more.
async fn measure(folder: &Path, (keys, rate, time): (u64, f64, f64)) {
    let (hive, data) = start(folder);
    println!(
        "start on {} bytes of log and {} of checkpoint, {:.0} MB resident",
        data.found().log_bytes,
        data.found().checkpoint_bytes,
        memory() / 1e6
    );
    let mut io = hive.io();
    io.run_here();
    let (began, mut sent, mut answered) = (Instant::now(), 0, 0);
    // the times of answers while a checkpoint is made, and while none is
    let (mut during, mut usual) = (Vec::new(), Vec::new());
    let (mut made, mut most, mut making) = (None, 0.0f64, Duration::ZERO);
    let (mut looked, mut is_making) = (Duration::ZERO, false);
    loop {
        let now = began.elapsed();
        if now > looked + Duration::from_millis(5) {
            let status = data.status();
            making += if is_making { now - looked } else { Duration::ZERO };
            (looked, is_making) = (now, status.is_making_checkpoint);
            most = most.max(memory());
            if status.checkpoints > 0 && made.is_none() {
                made = Some(now)
            }
            if made.is_some_and(|made| now.as_secs_f64() > made.as_secs_f64() + time) {
                break;
            }
        }
        // what waits because the hive has no room is late as well
        let due = ((now.as_secs_f64() * rate) as u64).min(sent + u64::from(io.credits()));
        if due > sent {
            (sent..due).for_each(|number| {
                io.emit(Put { key: number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % keys, ..put(number) })
            });
            sent = due;
            io.flush().await
        }
        let Ok(mail) = tokio::time::timeout(Duration::from_millis(1), io.receive()).await else { continue };
        let now = began.elapsed().as_secs_f64();
        for answer in mail.into_answers::<Put>().into_iter().flatten() {
            let number = answer.expect("an answer");
            let late = ((now - number as f64 / rate).max(0.0) * 1e6) as u32;
            if is_making { &mut during } else { &mut usual }.push(late);
            answered += 1
        }
    }
    let rate = answered as f64 / began.elapsed().as_secs_f64();
    settle(&mut io, answered, sent).await;
    let status = data.status();
    println!(
        "first checkpoint after {:.1} s, {} in all, {:.1} s of {:.1} s making them, {rate:.0} answers a second, at most {:.0} MB resident",
        made.unwrap_or_default().as_secs_f64(),
        status.checkpoints,
        making.as_secs_f64(),
        began.elapsed().as_secs_f64(),
        most / 1e6
    );
    print_times("no checkpoint", &mut usual);
    print_times("while one is made", &mut during);
    drop(io);
    stop(hive, data).await;
    println!("{:.0} MB on disk", bytes_in(folder) / 1e6);
    let _ = std::fs::remove_dir_all(folder);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let argument = |at: usize| arguments.get(at).map(String::as_str);
    let folder = argument(2).map_or_else(|| PathBuf::from("target"), PathBuf::from).join("bench-hive");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    match (argument(0), argument(1).and_then(|number| number.parse::<f64>().ok())) {
        (Some("kv"), Some(seconds)) => {
            let program = argument(3).unwrap_or("target/peers/append");
            runtime.block_on(kv(Duration::from_secs_f64(seconds), &folder, program))
        }
        (Some("bees"), Some(count)) => {
            let _ = std::fs::remove_dir_all(&folder);
            runtime.block_on(make(count as u64, &folder));
            let program = std::env::current_exe().expect("this program");
            let parent = folder.parent().unwrap_or(Path::new("."));
            for _ in 0..3 {
                let arguments = ["start".to_string(), count.to_string()];
                let child = Command::new(&program).args(arguments).arg(parent).status();
                assert!(child.expect("starts").success())
            }
            let _ = std::fs::remove_dir_all(&folder);
        }
        (Some("start"), Some(count)) => runtime.block_on(first_answer(count as u64, &folder)),
        (Some("compact"), Some(keys)) => {
            let number = |at| argument(at).and_then(|number| number.parse::<f64>().ok()).expect("a number");
            let folder = PathBuf::from(argument(4).expect("a folder")).join("bench-hive");
            let _ = std::fs::remove_dir_all(&folder);
            runtime.block_on(async {
                write_log(&folder, keys as u64).await;
                measure(&folder, (keys as u64, number(2), number(3))).await
            })
        }
        (Some("rest"), Some(keys)) => {
            let parent = argument(5).expect("a folder");
            let folder = Path::new(parent).join("bench-hive");
            let _ = std::fs::remove_dir_all(&folder);
            runtime.block_on(make(keys as u64, &folder));
            // another process, whose memory is its own
            let program = std::env::current_exe().expect("this program");
            let child = Command::new(&program).arg("measure").args(&arguments[2..5]).arg(parent).status();
            assert!(child.expect("starts").success())
        }
        (Some("measure"), Some(keys)) => {
            let number = |at| argument(at).and_then(|number| number.parse::<f64>().ok()).expect("a number");
            let folder = Path::new(argument(4).expect("a folder")).join("bench-hive");
            runtime.block_on(measure(&folder, (keys as u64, number(2), number(3))))
        }
        _ => println!(
            "usage: kv SECONDS FOLDER APPEND, or bees COUNT FOLDER, or compact KEYS RATE SECONDS FOLDER, or rest KEYS \
             ACTIVE RATE SECONDS FOLDER"
        ),
    }
}
