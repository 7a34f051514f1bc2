//! Backups: made while a hive works, and restored.

use crate::apps::{Add, Answered, check, start, stop};
use beehive::Time;
use beehive::journal::LogState;
use beehive_raft::files::{Files, SimulatedFiles};
use beehive_raft::{Data, OpenError, Options, export, inspect, limits, restore};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const BACKUP: &str = "/backups/one";

fn open(files: &SimulatedFiles, folder: &str) -> Data {
    let options = Options::default().files(Arc::new(files.clone())).logs(2).sizes(3_000, 6_000);
    options.open(folder).expect("opens")
}

fn exported(files: &SimulatedFiles, file: &str) -> Result<u64, OpenError> {
    export(Arc::new(files.clone()), Path::new("/data"), Path::new(file)).map(|backup| backup.bytes)
}

fn restored(files: &SimulatedFiles, source: &str, folder: &str) -> Result<u64, OpenError> {
    let now = Time::from_nanoseconds(u64::MAX / 2);
    let restored = restore(Arc::new(files.clone()), Path::new(source), Path::new(folder), now);
    restored.map(|backup| backup.identity.incarnation)
}

/// The highest numbers that a folder has handed out: of the bees of each app in each log, and of the messages of each bee
/// and each lane of an app.
fn handed_out(files: &SimulatedFiles, folder: &str) -> BTreeMap<String, u64> {
    let states: Vec<LogState> = open(files, folder).journals().into_iter().map(|(_, state)| state).collect();
    let mut numbers = BTreeMap::new();
    for (log, state) in states.iter().enumerate() {
        numbers.extend(state.newest.iter().map(|(app, bee)| (format!("log {log}, bees of {app:?}"), bee.0)));
        numbers.extend(state.bees.iter().map(|(of, bee)| (format!("log {log}, {of:?}"), bee.next_seq.0)));
        numbers.extend(state.next_seqs.iter().map(|(lane, seq)| (format!("log {log}, {lane:?}"), seq.0)));
    }
    numbers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_working_hive_is_restored_above_all_that_was_handed_out() {
    let files = SimulatedFiles::new(7);
    let data = open(&files, "/data");
    let hive = start(&data);
    let mut answered = Answered::new();
    let add = async |rounds: u64, answered: &mut Answered| {
        for round in 0..rounds {
            let key = round % 7;
            let count = hive.request(Add { key }).await.expect("an answer");
            answered.insert(key, (u64::MAX, count));
        }
    };
    add(100, &mut answered).await;

    // meanwhile, the log goes on and is cut
    let asking = {
        let hive = hive.clone();
        tokio::spawn(async move {
            for round in 0..300u64 {
                hive.request(Add { key: 100 + round % 5 }).await.expect("an answer");
            }
        })
    };
    let mut backups = 0;
    while !asking.is_finished() {
        let file = format!("/backups/{backups}");
        exported(&files, &file).expect("a backup");
        backups += 1;
        tokio::time::sleep(Duration::from_millis(5)).await
    }
    asking.await.expect("answered");
    assert!(backups > 1 && data.status().checkpoints > 0, "{backups} backups, {:?}", data.status());
    for backup in 0..backups {
        let (file, folder) = (format!("/backups/{backup}"), format!("/restored-{backup}"));
        restored(&files, &file, &folder).expect("restored");
        let inspected = inspect(Arc::new(files.clone()), Path::new(&folder)).expect("it can be read");
        assert!(inspected.damage.is_none(), "{:?}", inspected.damage)
    }

    exported(&files, BACKUP).expect("a backup");
    let at_backup = answered.clone();
    add(50, &mut answered).await;
    stop(hive, data).await;
    let old = open(&files, "/data").identity();
    let old_numbers = handed_out(&files, "/data");

    let raised = restored(&files, BACKUP, "/new").expect("restored");
    assert_eq!(raised, 1 + limits::RESTORE_RAISES_TERMS);
    let numbers = handed_out(&files, "/new");
    assert!(old_numbers.len() > 14, "there are bees: {old_numbers:?}");
    for (what, number) in &old_numbers {
        let raised = numbers.get(what).is_some_and(|raised| *raised > number + (1 << 30));
        assert!(raised, "{what}: {number}, and then {:?}", numbers.get(what));
    }
    let data = open(&files, "/new");
    let new = data.identity();
    assert_eq!((new.hive, new.seed, new.logs), (old.hive, old.seed, old.logs));
    assert!(new.folder_id != old.folder_id && new.incarnation > old.incarnation);
    let hive = start(&data);
    check(&hive, &at_backup).await.expect("it is as it was at the backup");
    for key in 0..20 {
        hive.request(Add { key }).await.expect("it goes on");
    }
    stop(hive, data).await;

    // from a copy of a folder, and a second time
    let again = restored(&files, "/new", "/again").expect("restored");
    assert_eq!(again, raised + 1 + limits::RESTORE_RAISES_TERMS);
    let data = open(&files, "/again");
    let hive = start(&data);
    check(&hive, &at_backup).await.expect("it is as it was");
    stop(hive, data).await
}

#[tokio::test]
async fn what_is_no_backup_or_would_be_overwritten_is_refused() {
    let files = SimulatedFiles::new(8);
    let data = open(&files, "/data");
    let hive = start(&data);
    hive.request(Add { key: 1 }).await.expect("an answer");
    stop(hive, data).await;
    exported(&files, BACKUP).expect("a backup");
    let why = exported(&files, BACKUP).expect_err("it exists").to_string();
    assert!(why.starts_with("/backups/one: cannot write: ") && why.contains("name another file"), "{why}");
    let why = restored(&files, BACKUP, "/data").expect_err("it is not empty").to_string();
    assert!(why.starts_with("/data: the folder contains `"), "{why}");
    let why = restored(&files, "/nothing", "/new").expect_err("there is nothing").to_string();
    assert!(why.starts_with("/nothing/identity: the file is missing"), "{why}");

    let bytes = files.content(Path::new(BACKUP)).expect("it is there");
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        files.set_content(Path::new("/flipped"), flipped);
        let why = restored(&files, "/flipped", "/new").expect_err("it is damaged").to_string();
        assert!(why.starts_with("/flipped: "), "byte {at}: {why}");
        files.set_content(Path::new("/cut"), bytes[..at].to_vec());
        assert!(restored(&files, "/cut", "/new").is_err(), "length {at}");
    }
    assert!(files.list(Path::new("/new")).expect("it can be listed").is_empty(), "nothing was written")
}
