//! Runs the examples on a journal that commits late and in batches, refuses entries, and is stopped and
//! replayed, while bees are exported and imported.

use crate::bank::{Bank, Deposit, Transfer};
use crate::hello::{Greeter, Hello};
use beehive::journal::LogState;
use beehive::testing::TestJournal;
use beehive::{Builder, Hive};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const ACCOUNTS: u64 = 12;

fn start(apps: Builder, seed: u64, refuse_one_in: u64, log: &[Vec<u8>]) -> (Hive, Arc<TestJournal>) {
    let colony = LogState::replay(log.iter().map(Vec::as_slice)).expect("a log");
    let journal = TestJournal::start(seed, refuse_one_in, colony.last);
    (apps.seed(42).journal(journal.clone(), colony).start().expect("starts"), journal)
}

fn shaken(hive: &Hive) -> tokio::task::JoinHandle<()> {
    let hive = hive.clone();
    tokio::spawn(async move {
        loop {
            hive.reimport().await.expect("a bee is put together again");
            tokio::time::sleep(Duration::from_millis(1)).await
        }
    })
}

/// Returns a fixed sequence of transfers, some of which exceed the balance of the account.
fn transfers(count: u64) -> impl Iterator<Item = Transfer> {
    (0..count).map(|n| {
        let random = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        Transfer { from: random % ACCOUNTS, to: (random >> 8) % ACCOUNTS, amount: (random >> 16) % 130 }
    })
}

/// Returns the balance of each account: the answer to a transfer of zero.
async fn balances(hive: &Hive) -> Vec<u64> {
    let mut all = Vec::new();
    for account in 0..ACCOUNTS {
        all.push(hive.request(Transfer { from: account, to: account, amount: 0 }).await.expect("says"))
    }
    all
}

async fn opened(hive: &Hive) {
    for account in 0..ACCOUNTS {
        hive.request(Deposit { account, amount: 100 }).await.expect("takes money")
    }
}

async fn answers(hive: &Hive) -> Vec<Option<u64>> {
    opened(hive).await;
    let mut answers = Vec::new();
    for transfer in transfers(150) {
        answers.push(hive.request(transfer).await.ok())
    }
    answers.extend(balances(hive).await.into_iter().map(Some));
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn the_bank_answers_as_without_a_journal() {
    let hive = Hive::builder().app::<Bank>().start().expect("starts");
    let expected = answers(&hive).await;
    assert!(expected.contains(&None), "nothing was refused for want of money");
    let (hive, journal) = start(Hive::builder().app::<Bank>(), 1, 20, &[]);
    let shaking = shaken(&hive);
    assert_eq!(answers(&hive).await, expected);

    shaking.abort();
    assert!(journal.refused() > 0);
    journal.stop();
    hive.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn no_money_is_made_or_lost_when_the_bank_dies() {
    for seed in 0..3 {
        let mut log = Vec::new();
        for life in 0..5 {
            let (hive, journal) = start(Hive::builder().app::<Bank>(), seed * 10 + life, 30, &log);
            match life {
                0 => opened(&hive).await,
                _ => assert_eq!(
                    balances(&hive).await.iter().sum::<u64>(),
                    ACCOUNTS * 100,
                    "seed {seed}, life {life}"
                ),
            }

            let shaking = shaken(&hive);
            let tasks: Vec<_> = (0..4u64)
                .map(|task| {
                    let hive = hive.clone();
                    tokio::spawn(async move {
                        for transfer in transfers(400).skip(task as usize * 100).take(100) {
                            let _ = hive.request(transfer).await;
                        }
                    })
                })
                .collect();

            tokio::time::sleep(Duration::from_millis(3 + 4 * life + 7 * seed)).await;
            journal.stop();
            log.extend(journal.log());
            shaking.abort();
            tasks.iter().for_each(|task| task.abort());
            hive.stop(Duration::ZERO).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn who_was_greeted_is_remembered() {
    let (mut log, greeted) = (Vec::new(), Arc::new(AtomicU64::new(0)));
    let mut asked = 0;
    for life in 0..6u64 {
        let (hive, journal) = start(Hive::builder().app::<Greeter>(), 70 + life, 30, &log);
        let count = hive.request(Hello("world".into())).await.expect("greets");
        asked += 1;
        let certain = greeted.load(Ordering::Acquire);
        assert!(
            count > certain && count <= asked,
            "{count} after {certain} greetings of {asked}, life {life}"
        );

        greeted.store(count, Ordering::Release);
        let shaking = shaken(&hive);
        let (asking, heard) = (hive.clone(), greeted.clone());
        let greeting = tokio::spawn(async move {
            for _ in 0..200 {
                let Ok(count) = asking.request(Hello("world".into())).await else { return };
                assert_eq!(heard.fetch_max(count, Ordering::AcqRel) + 1, count, "one after the other");
            }
        });

        asked += 200;
        tokio::time::sleep(Duration::from_millis(10 + life)).await;
        greeting.abort();

        // the task has ended, or was aborted because it receives no more answers
        let failed = greeting.await.is_err_and(|error| error.is_panic());
        assert!(!failed, "a greeting was counted twice or not at all");
        journal.stop();
        log.extend(journal.log());
        shaking.abort();
        hive.stop(Duration::ZERO).await;
    }
}
