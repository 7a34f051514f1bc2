//! The log beside a loop that writes the same bytes with one `fdatasync` a batch.
//!
//! `cargo bench -p beehive-raft --bench log [-- SECONDS FOLDER]`. Each row is the median of five rounds, in turns with the
//! loop. The folder must be on a disk: a file system in memory syncs nothing.
#![allow(missing_docs)]

use beehive_core::journal::{EntryNumber, JournalEvents};
use beehive_protocol::{AppId, BeeId, Emits, Entry, Op, Record, Redo, Seq, Time, Work};
use beehive_raft::Data;
use parking_lot::{Condvar, Mutex};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Puts 64 bytes under one of 65 536 keys, as one message of a key-value store does.
fn entry(number: u64) -> Arc<Entry> {
    let value = [number as u8; 64];
    let mut redo = Redo::default();
    redo.push(Op { dict: 0, key: &(number % 65_536).to_le_bytes(), row: None, value: Some(&value) });
    let work = Work {
        app: AppId(0),
        bee: BeeId(1),
        cells: Vec::new(),
        inputs: Default::default(),
        visits: Vec::new(),
        redo,
        emits: Emits::default(),
        next_seq: Seq(1),
        now: Time::from_nanoseconds(number),
    };
    let (number, after) = (EntryNumber(number), EntryNumber(number - 1));
    Arc::new(Entry { number, after, record: Record::Turn(vec![Arc::new(work)]) })
}

#[derive(Default)]
struct Released {
    upto: Mutex<u64>,
    changed: Condvar,
}

impl JournalEvents for Released {
    fn released(&self, upto: EntryNumber) {
        *self.upto.lock() = upto.0;
        self.changed.notify_one();
    }
    fn aborted(&self, last: EntryNumber) {
        panic!("refused after {last:?}")
    }
    fn deposed(&self) {
        panic!("nobody else leads the log")
    }
    fn confirmed(&self, round: u64) {
        panic!("nobody has asked for {round}")
    }
}

impl Released {
    fn wait(&self, number: u64) {
        let mut upto = self.upto.lock();
        while *upto < number {
            self.changed.wait(&mut upto)
        }
    }
}

/// Entries a second through the log, with at most `in_flight` undecided, of which `batch` are appended at once.
fn log(folder: &Path, time: Duration, batch: u64, in_flight: u64) -> (f64, f64) {
    let data = Data::open(folder).expect("opens");
    data.begin().expect("begins");
    let (journal, state) = data.journals().remove(0);
    let released = Arc::new(Released::default());
    journal.attach(released.clone());
    let first = state.last.0;
    drop(state);

    let (mut last, began) = (first, Instant::now());
    while began.elapsed() < time {
        for _ in 0..batch {
            last += 1;
            journal.append(entry(last))
        }
        released.wait((last + batch).saturating_sub(in_flight).min(last))
    }
    released.wait(last);
    let rate = (last - first) as f64 / began.elapsed().as_secs_f64();
    let syncs = data.status().syncs;
    drop(journal);
    data.close();
    (rate, (last - first) as f64 / syncs as f64)
}

/// Entries a second through a loop that writes `batch` entries and syncs.
fn plain(folder: &Path, time: Duration, batch: u64) -> f64 {
    let mut file = File::create(folder.join("plain")).expect("creates");
    let (mut last, began) = (0, Instant::now());
    let mut buffer = Vec::new();
    while began.elapsed() < time {
        buffer.clear();
        for _ in 0..batch {
            last += 1;
            // the header of a record of the log
            buffer.extend_from_slice(&[0; 32]);
            entry(last).encode_into(&mut buffer)
        }
        file.write_all(&buffer).expect("writes");
        file.sync_data().expect("syncs")
    }
    last as f64 / began.elapsed().as_secs_f64()
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let seconds = arguments.first().and_then(|seconds| seconds.parse().ok()).unwrap_or(1.0);
    let time = Duration::from_secs_f64(seconds);
    let folder = arguments.get(1).map_or_else(|| PathBuf::from("target"), PathBuf::from).join("bench-log");
    println!(
        "{:<34} {:>12} {:>12} {:>7} {:>15}",
        "entries a second", "loop", "log", "ratio", "entries a sync"
    );
    for (name, batch, in_flight) in [
        ("batch 1, one in flight", 1, 1),
        ("batch 1, 1 024 in flight", 1, 1_024),
        ("batch 128, one batch in flight", 128, 128),
        ("batch 128, eight in flight", 128, 1_024),
        ("batch 1 024, one batch in flight", 1_024, 1_024),
        ("batch 1 024, four in flight", 1_024, 4_096),
    ] {
        let (mut loops, mut logs, mut per_sync) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..5 {
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir_all(&folder).expect("creates");
            loops.push(plain(&folder, time, batch));
            let _ = std::fs::remove_dir_all(&folder);
            let (rate, entries) = log(&folder, time, batch, in_flight);
            logs.push(rate);
            per_sync.push(entries)
        }
        let (plain, log) = (median(loops), median(logs));
        println!("{name:<34} {plain:>12.0} {log:>12.0} {:>7.2} {:>15.1}", log / plain, median(per_sync));
    }
    start(&folder);
    let _ = std::fs::remove_dir_all(&folder);
}

/// Prints how long a start takes on what the last row has left.
fn start(folder: &Path) {
    let began = Instant::now();
    let data = Data::open(folder).expect("opens");
    let (seconds, found) = (began.elapsed().as_secs_f64(), data.found());
    println!(
        "start: {seconds:.2} s for {} entries ({} bytes) behind a checkpoint of {} bytes",
        found.entries, found.log_bytes, found.checkpoint_bytes
    );
    data.close()
}
