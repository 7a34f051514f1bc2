//! The power fails while a hive is at work.

use crate::apps::{Add, Answered, check, start, stop, try_start};
use beehive_raft::files::{Fault, SimulatedFiles};
use beehive_raft::{Data, OpenError, Options};
use std::sync::Arc;
use std::time::Duration;

fn open(files: &SimulatedFiles) -> Result<Data, OpenError> {
    Options::default().files(Arc::new(files.clone())).sizes(8_000, 16_000).open("/data")
}

/// Lets a hive answer requests until operation `at`, when the power fails, then checks what is left.
async fn power_fails_at(seed: u64, at: u64, release_early: bool) -> Result<(), String> {
    let files = SimulatedFiles::new(seed);
    files.fail_at(at, Fault::PowerLoss);
    let mut answered = Answered::new();
    while !files.is_off() {
        let data = match open(&files) {
            Ok(data) => data,
            Err(_) if files.is_off() => break,
            Err(why) => return Err(why.to_string()),
        };
        if release_early {
            data.mutation().release_early()
        }
        let hive = match try_start(&data) {
            Ok(hive) => hive,
            Err(_) if files.is_off() => break,
            Err(why) => return Err(why.to_string()),
        };
        let asked = (0..20).map(|step| {
            let (hive, key) = (hive.clone(), step % 5);
            answered.entry(key).or_default().0 += 1;
            // without power, the hive waits for ever
            tokio::spawn(async move {
                let answer =
                    tokio::time::timeout(Duration::from_millis(100), hive.request(Add { key })).await;
                (key, answer.ok().and_then(Result::ok))
            })
        });
        for task in asked.collect::<Vec<_>>() {
            if let (key, Some(count)) = task.await.expect("does not panic") {
                let last = &mut answered.entry(key).or_default().1;
                *last = count.max(*last)
            }
        }
        let hive_stopped = hive.clone();
        let _ = tokio::time::timeout(Duration::from_millis(50), hive_stopped.stop(Duration::from_millis(20)))
            .await;
        data.close();
    }

    files.power_on();
    let data = open(&files).map_err(|why| why.to_string())?;
    let hive = start(&data);
    let result = check(&hive, &answered).await;
    stop(hive, data).await;
    result
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_outlives_a_power_loss() {
    for at in (5..120).step_by(3) {
        power_fails_at(at, at, false).await.unwrap_or_else(|why| panic!("operation {at}: {why}"))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_before_the_sync_is_noticed() {
    let mut noticed = 0;
    for at in 20..50 {
        noticed += usize::from(power_fails_at(at, at, true).await.is_err())
    }
    assert!(noticed > 0)
}
