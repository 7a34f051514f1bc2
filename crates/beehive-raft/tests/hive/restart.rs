//! A hive goes on where it stopped.

use crate::apps::{Add, Answered, Counter, Tally, check, start, stop};
use beehive::Hive;
use beehive::journal::EntryNumber;
use beehive_raft::files::{Files, SimulatedFiles};
use beehive_raft::{Data, Options, inspect};
use std::path::Path;
use std::sync::Arc;

fn open(files: &SimulatedFiles, logs: u16) -> Data {
    Options::default()
        .files(Arc::new(files.clone()))
        .logs(logs)
        .sizes(20_000, 40_000)
        .open("/data")
        .expect("opens")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hive_goes_on_where_it_stopped_or_was_dropped() {
    for logs in [1, 3] {
        let files = SimulatedFiles::new(4);
        let mut answered = Answered::new();
        let mut checkpoints = 0;
        for round in 0..6u64 {
            let data = open(&files, logs);
            let hive = start(&data);
            check(&hive, &answered).await.expect("everything is there");
            for step in 0..100 {
                let key = step % 7;
                let count = hive.request(Add { key }).await.expect("an answer");
                let (asked, last) = answered.entry(key).or_default();
                assert_eq!(count, *last + 1, "key {key} in round {round}");
                (*asked, *last) = (count, count)
            }
            checkpoints += data.status().checkpoints;
            if round % 2 == 0 {
                stop(hive, data).await
            } else {
                // the process ends without stopping the hive
                data.close();
                drop(hive)
            }
        }
        assert!(checkpoints > 0, "the log was never cut");

        let inspected = inspect(Arc::new(files.clone()), Path::new("/data")).expect("it can be read");
        assert!(inspected.damage.is_none(), "{:?}", inspected.damage);
        let cells: usize = inspected
            .contents
            .iter()
            .flat_map(|log| &log.apps)
            .filter(|app| app.0 == "counter")
            .map(|app| app.2)
            .sum();
        assert_eq!(
            (inspected.contents.len(), cells, inspected.identity.incarnation),
            (usize::from(logs), 7, 6)
        );
    }
}

/// Everything in the folder.
fn everything(files: &SimulatedFiles) -> Vec<(String, Option<Vec<u8>>)> {
    let names = files.list(Path::new("/data")).expect("it can be listed");
    names.into_iter().map(|name| (name.clone(), files.content(&Path::new("/data").join(name)))).collect()
}

/// When the log is closed, the folder is no longer locked, so another process may have begun to use it.
#[tokio::test]
async fn a_hive_does_not_start_on_a_log_that_was_closed() {
    let files = SimulatedFiles::new(7);
    let data = open(&files, 1);
    let builder = data.attach(Hive::builder().app::<Counter>().app::<Tally>());
    data.close();
    let before = everything(&files);
    let why = builder.start().expect_err("the log is closed").to_string();
    assert!(why.contains("open it again"), "{why}");
    assert_eq!(everything(&files), before);
}

#[tokio::test]
async fn other_apps_are_refused_and_the_folder_is_as_it_was() {
    let files = SimulatedFiles::new(6);
    let data = open(&files, 1);
    let hive = start(&data);
    hive.request(Add { key: 1 }).await.expect("an answer");
    // the process ends while it writes
    let crashed = files.copy();
    stop(hive, data).await;
    let segment = Path::new("/data/log-00000000000000000001");
    let mut torn = crashed.content(segment).expect("it is there");
    torn.extend_from_slice(&[7; 40]);
    crashed.set_content(segment, torn);

    for files in [files, crashed] {
        let before = everything(&files);
        for _ in 0..2 {
            let data = open(&files, 1);
            let builder = data.attach(Hive::builder().app::<Counter>());
            let why = builder.start().expect_err("an app is missing").to_string();
            // the copy may have a message that the app has not handled
            let [app, message] =
                ["the app `tally`, which this program does not have", "Passed`: the app has no handler"];
            assert!(why.contains(app) || why.contains(message), "{why}");
            data.close();
            assert_eq!(everything(&files), before, "neither counted nor cut");
        }

        let data = open(&files, 1);
        let hive = start(&data);
        assert_eq!((data.identity().incarnation, hive.request(Add { key: 1 }).await.ok()), (2, Some(2)));
        stop(hive, data).await;
        assert_ne!(everything(&files), before)
    }
}

/// A term is never used twice, also if nothing was logged in it.
#[tokio::test]
async fn every_start_begins_a_term_before_anything_runs() {
    let files = SimulatedFiles::new(3);
    for term in 1..5 {
        let data = open(&files, 2);
        assert_eq!(data.identity().incarnation, term);
        data.begin().expect("the start is carried out");
        let on_disk = files.copy();
        on_disk.power_off();
        on_disk.power_on();
        let inspected = inspect(Arc::new(on_disk), Path::new("/data")).expect("it can be read");
        let last: Vec<EntryNumber> = inspected.contents.iter().map(|log| log.last).collect();
        assert_eq!(last, [EntryNumber::first_of(term); 2], "synced before the hive knows of it");
        let logs = data.journals();
        assert!(logs.iter().all(|(_, state)| state.last == EntryNumber::first_of(term)));
        data.close()
    }
}
