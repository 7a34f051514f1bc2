//! A disk that takes 100 ms for a sync.

use crate::apps::{Add, Answered, check, start, stop};
use beehive_raft::Options;
use beehive_raft::files::SimulatedFiles;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SYNC: Duration = Duration::from_millis(100);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_a_slow_disk_shares_its_syncs_and_is_not_lost() {
    const KEYS: u64 = 256;
    let files = SimulatedFiles::new(11);
    let open = || Options::default().files(Arc::new(files.clone())).open("/data").expect("opens");
    let data = open();
    let hive = start(&data);
    hive.request(Add { key: 0 }).await.expect("an answer");

    // so long that a busy machine alone does not explain it
    files.set_sync_time(10 * SYNC);
    let began = Instant::now();
    hive.request(Add { key: 0 }).await.expect("an answer");
    assert!(began.elapsed() >= 10 * SYNC, "an answer came before the sync: {:?}", began.elapsed());

    files.set_sync_time(SYNC);
    let syncs = data.status().syncs;

    let ask = |key| {
        let hive = hive.clone();
        tokio::spawn(async move { hive.request_within(Duration::from_secs(60), Add { key }).await })
    };
    let asked: Vec<_> = (0..2).flat_map(|_| (1..KEYS).map(ask)).collect();
    let mut answered = Answered::new();
    for (at, task) in asked.into_iter().enumerate() {
        let count = task.await.expect("does not panic").expect("an answer");
        let (asked, last) = answered.entry(1 + at as u64 % (KEYS - 1)).or_default();
        (*asked, *last) = (*asked + 1, count.max(*last))
    }
    let syncs = data.status().syncs - syncs;
    assert!(syncs < 40, "{syncs} syncs for {} requests", 2 * (KEYS - 1));
    assert!(data.status().failed.is_none() && data.status().held_up.is_none());
    files.set_sync_time(Duration::ZERO);
    stop(hive, data).await;

    let data = open();
    let hive = start(&data);
    check(&hive, &answered).await.expect("nothing is lost");
    stop(hive, data).await
}
