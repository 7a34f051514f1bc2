//! `kill -9` under load, on real files. `BEEHIVE_KILL_ROUNDS=200 cargo test -p beehive-raft --test hive killed` runs more
//! rounds.

use crate::apps::{Add, Answered, check, start, stop};
use beehive_raft::{Data, Options};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The variable that names the folder of the process that is killed.
pub(crate) const FOLDER: &str = "BEEHIVE_KILLED_FOLDER";
const KEYS: u64 = 8;

fn open(folder: &Path) -> Data {
    Options::default().sizes(100_000, 200_000).open(folder).expect("opens")
}

/// Not a test by itself: the process that is killed. Asks for ever, and prints each answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_process() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let data = open(Path::new(&folder));
    let hive = start(&data);
    let ask = |key| {
        let hive = hive.clone();
        tokio::spawn(async move {
            loop {
                writeln!(std::io::stdout(), "asked {key}").expect("the parent listens");
                let count = hive.request(Add { key }).await.expect("an answer");
                writeln!(std::io::stdout(), "answered {key} {count}").expect("the parent listens")
            }
        })
    };
    for task in (0..KEYS).map(ask).collect::<Vec<_>>() {
        task.await.expect("never ends")
    }
}

/// Notes what a line of the process says about a request. Returns whether it is an answer.
pub(crate) fn note(line: &str, answered: &mut Answered) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    match (words.as_slice(), words.get(1).and_then(|key| key.parse().ok())) {
        (["asked", _], Some(key)) => answered.entry(key).or_default().0 += 1,
        (["answered", _, count], Some(key)) => {
            answered.entry(key).or_default().1 = count.parse().expect("a number");
            return true;
        }
        _ => {}
    }
    false
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_outlives_kill_9() {
    let rounds = std::env::var("BEEHIVE_KILL_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(10);
    let folder: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join("killed");
    let _ = std::fs::remove_dir_all(&folder);

    let mut answered = Answered::new();
    let mut random = 0x2545_f491_4f6c_dd1du64;
    for round in 0..rounds {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .args(["killed::killed_process", "--exact", "--nocapture"])
            .env(FOLDER, &folder)
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let (first_answer, answered_once) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            let note = |line: &String| {
                if line.starts_with("answered") {
                    // nobody waits for it if the process is killed while it starts
                    let _ = first_answer.send(());
                }
            };
            lines.map_while(Result::ok).inspect(note).collect::<Vec<_>>()
        });
        // some are killed while they start
        let starts = round % 5 == 4;
        if !starts {
            answered_once.recv_timeout(Duration::from_secs(60)).expect("the process answers")
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        tokio::time::sleep(Duration::from_millis((random >> 11) % 300)).await;
        child.kill().expect("it runs");
        child.wait().expect("it ends");

        let mut answers = 0;
        for line in reader.join().expect("reads") {
            answers += u64::from(note(&line, &mut answered))
        }

        let data = open(&folder);
        let found = data.found().clone();
        let hive = start(&data);
        check(&hive, &answered).await.unwrap_or_else(|why| panic!("round {round}: {why}"));
        println!("round {round}: {answers} answers, {} entries read, {:?}", found.entries, found.cut);
        // requests without an answer were done, or never will be
        for (key, counts) in &mut answered {
            let count = hive.request(crate::apps::Counted { key: *key }).await.expect("an answer");
            *counts = (count, count)
        }
        stop(hive, data).await;
    }
    assert!(answered.values().any(|(asked, _)| *asked > 0), "nothing was ever asked");
}
