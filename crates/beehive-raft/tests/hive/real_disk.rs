//! Real files that fail: a small file system that is full, and syncs that the system refuses.
//!
//! The tests mount a file system, which needs root, or use `strace`. If that is not possible, they print `SKIPPED` and the
//! reason to standard error.

use crate::apps::{Add, Answered, check, start, stop};
use crate::killed::{FOLDER, note};
use beehive_raft::Data;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A small file system in memory, until it is dropped.
struct Small(PathBuf);

impl Small {
    fn mount(name: &str) -> Option<Small> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=4m", "none"]).arg(&folder).output();
        match mount {
            Ok(output) if output.status.success() => Some(Small(folder)),
            Ok(output) => skipped(&String::from_utf8_lossy(&output.stderr)),
            Err(error) => skipped(&format!("mount: {error}")),
        }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn skipped<T>(why: &str) -> Option<T> {
    eprintln!("SKIPPED: {}", why.trim());
    None
}

/// Fills a file system.
fn fill(file: &Path) {
    let mut filler = File::create(file).expect("a file");
    let mut part = vec![7; 1 << 16];
    while !part.is_empty() {
        if filler.write_all(&part).is_err() {
            part.truncate(part.len() / 2)
        }
    }
}

/// Makes space again.
fn empty(file: &Path) {
    // A process that another test is starting may have a copy of the open file, which would keep what it takes up.
    File::create(file).expect("it can be cut off");
    std::fs::remove_file(file).expect("it is there")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_file_system_holds_changes_up_until_there_is_space() {
    let Some(small) = Small::mount("small") else { return };
    let (folder, filler) = (small.0.join("data"), small.0.join("filler"));
    let mut answered = Answered::new();
    for round in 1..4u64 {
        let data = Data::open(&folder).expect("opens");
        let hive = start(&data);
        check(&hive, &answered).await.expect("everything is there");
        hive.request(Add { key: 0 }).await.expect("an answer");
        fill(&filler);

        let ask = |key| {
            let hive = hive.clone();
            tokio::spawn(async move { hive.request_within(Duration::from_secs(60), Add { key }).await })
        };
        let mut asked = Vec::new();
        while data.status().held_up.is_none() {
            assert!(data.status().failed.is_none(), "a full disk is no failure");
            // the last page of the segment may have space left
            asked.extend((1..64).map(ask));
            tokio::time::sleep(Duration::from_millis(20)).await
        }
        let waiting: Vec<_> = (1..64).map(ask).collect();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(waiting.iter().all(|task| !task.is_finished()), "no change takes effect");
        assert!(data.status().failed.is_none());

        empty(&filler);
        let times = (asked.len() + waiting.len()) as u64 / 63;
        for task in asked.into_iter().chain(waiting) {
            task.await.expect("does not panic").expect("the hive goes on by itself");
        }
        assert!(data.status().held_up.is_none());
        answered.insert(0, (round, round));
        for key in 1..64 {
            let count = answered.get(&key).map_or(0, |(_, count)| *count) + times;
            answered.insert(key, (count, count));
        }
        stop(hive, data).await
    }
}

/// A start needs space for a segment. Without it, the start is refused with the remedy, and the folder stays usable.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_on_a_full_file_system_is_refused_and_can_be_repeated() {
    let Some(small) = Small::mount("small-start") else { return };
    let (folder, filler) = (small.0.join("data"), small.0.join("filler"));
    let data = Data::open(&folder).expect("opens");
    let hive = start(&data);
    hive.request(Add { key: 0 }).await.expect("an answer");
    stop(hive, data).await;
    fill(&filler);
    let data = Data::open(&folder).expect("reads");
    let why = crate::apps::try_start(&data).expect_err("there is no space").to_string();
    assert!(why.contains("make space, and start again"), "{why}");
    data.close();
    empty(&filler);
    let data = Data::open(&folder).expect("opens");
    let hive = start(&data);
    assert_eq!(hive.request(Add { key: 0 }).await.expect("an answer"), 2);
    stop(hive, data).await
}

/// The system refuses a sync, and from then on would report success. What had been answered is there at the next start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sync_that_the_system_refuses_ends_all_answers_and_loses_none() {
    if let Err(error) = Command::new("strace").arg("-V").output() {
        return skipped(&format!("strace: {error}")).unwrap_or_default();
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("refused-sync");
    let _ = std::fs::remove_dir_all(&folder);
    let mut child = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync"])
        .args(["-e", "inject=fdatasync:error=EIO:when=60", "--"])
        .arg(std::env::current_exe().expect("this program"))
        .args(["killed::killed_process", "--exact", "--nocapture"])
        .env(FOLDER, &folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let (said, heard) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || lines.map_while(Result::ok).all(|line| said.send(line).is_ok()));

    let mut answered = Answered::new();
    // after the refused sync, nothing is answered any more
    while let Ok(line) = heard.recv_timeout(Duration::from_secs(if answered.is_empty() { 60 } else { 3 })) {
        note(&line, &mut answered);
    }
    assert!(child.try_wait().expect("waits").is_none(), "the process goes on");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let answers: u64 = answered.values().map(|(_, answers)| *answers).sum();
    assert!(answers > 0, "nothing was answered before");

    // strace ends with what it traces, but perhaps a moment later
    let data = loop {
        match Data::open(&folder) {
            Err(beehive_raft::OpenError::InUse { .. }) => tokio::time::sleep(Duration::from_millis(20)).await,
            opened => break opened.expect("opens"),
        }
    };
    let hive = start(&data);
    check(&hive, &answered).await.expect("what was answered is there");
    stop(hive, data).await;
    drop(reader)
}
