//! A hive goes on where it stopped.

use crate::apps::{Add, Answered, Counter, check, start, stop};
use beehive::Hive;
use beehive_raft::files::SimulatedFiles;
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

#[tokio::test]
async fn other_apps_are_refused() {
    let files = SimulatedFiles::new(6);
    let data = open(&files, 1);
    let hive = start(&data);
    hive.request(Add { key: 1 }).await.expect("an answer");
    stop(hive, data).await;

    let data = open(&files, 1);
    let why =
        data.attach(Hive::builder().app::<Counter>()).start().expect_err("an app is missing").to_string();
    assert!(why.contains("the app `tally`, which this program does not have"), "{why}");
    data.close();
}
