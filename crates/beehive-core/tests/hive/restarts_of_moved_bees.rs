//! A bee has moved to another log, and its hive restarts before the old log has dropped it. It restarts again before the old
//! log has committed anything.

use crate::load::{eventually, killed, on_workers};
use crate::stalls::StallsAt;
use beehive_core::journal::{Entry, Journal, LogState, Record};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Dict, Hive, Message, handlers};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

#[derive(Message)]
#[message(reply = u64)]
struct Add(u64);
/// Merges the owners of two accounts, and adds one to each of them.
#[derive(Message)]
#[message(reply = u64)]
struct Join(u64, u64);
/// Answers with the count, or zero if the account does not exist.
#[derive(Message)]
#[message(reply = u64)]
struct Remove(u64);

#[derive(App)]
struct Bank {
    accounts: Dict<u64, u64>,
}

#[handlers]
impl Bank {
    #[rcv(sharded)]
    fn add(&mut self, msg: &Add) -> u64 {
        let count = self.accounts.entry(msg.0).or_default();
        *count += 1;
        *count
    }
    #[rcv(joins)]
    fn join(&mut self, msg: &Join) -> u64 {
        for account in [msg.0, msg.1] {
            *self.accounts.entry(account).or_default() += 1
        }
        self.accounts.get(&msg.0).copied().unwrap_or(0)
    }
    #[rcv(sharded)]
    fn remove(&mut self, msg: &Remove) -> u64 {
        self.accounts.remove(&msg.0).unwrap_or(0)
    }
}

const LIMIT: Duration = Duration::from_secs(20);
/// How long a process lives whose first log commits nothing.
const WHILE: Duration = Duration::from_millis(700);
/// The position of the log that bees leave.
const OLD: usize = 0;
/// The position of the log to which they move.
const NEW: usize = 1;

/// The entries of both logs.
type Logs = [Vec<Vec<u8>>; 2];

/// A process.
struct Life {
    hive: Hive,
    logs: [Arc<StallsAt>; 2],
    before: Logs,
}

impl Life {
    /// Goes on with these logs. The old one commits nothing if it `is_stalled`; otherwise it stops when it is to drop a bee, once it
    /// is armed.
    fn start(before: Logs, is_stalled: bool) -> Life {
        let states =
            before.each_ref().map(|log| if log.is_empty() { LogState::default() } else { killed(log) });
        let is_drop = |record: &Record| matches!(record, Record::Drop { .. });
        let log = |at: usize| StallsAt::new(TestJournal::start(71 + at as u64, 0, states[at].last), is_drop);
        let logs = [OLD, NEW].map(log).map(Arc::new);
        logs[OLD].log.stall(is_stalled);
        let with = logs.iter().map(|log| log.clone() as Arc<dyn Journal>).zip(states);
        let hive = Hive::builder().app::<Bank>().seed(1).journals(with).start().unwrap();
        Life { hive, logs, before }
    }

    /// Returns how many records of a kind this process has written to a log.
    fn written(&self, log: usize, is_one: fn(&Record) -> bool) -> usize {
        self.logs[log].log.log().iter().filter(|bytes| is_one(&Entry::decode(bytes).unwrap().record)).count()
    }

    fn runs_in(&self, log: usize) -> usize {
        self.written(log, |record| matches!(record, Record::Turn(_)))
    }

    /// Creates accounts, until one of them has its bee in `log`, and returns that one.
    async fn account_in(&self, log: usize, keys: &mut impl Iterator<Item = u64>) -> u64 {
        loop {
            let (key, before) = (keys.next().unwrap(), self.runs_in(log));
            self.hive.request_within(LIMIT, Add(key)).await.unwrap();
            if self.runs_in(log) > before {
                return key;
            }
        }
    }

    fn join(&self, one: u64, other: u64) -> JoinHandle<Option<u64>> {
        let hive = self.hive.clone();
        tokio::spawn(async move { hive.request_within(LIMIT, Join(one, other)).await.ok() })
    }

    async fn kill(self) -> Logs {
        self.logs.iter().for_each(|log| log.log.stop());
        self.hive.stop(Duration::ZERO).await;
        let [old, new] = self.before;
        [[old, self.logs[OLD].log.log()].concat(), [new, self.logs[NEW].log.log()].concat()]
    }
}

/// An account whose bee has moved to the new log, another account of that log, and both logs. The old one has not dropped the bee.
/// Both accounts have a count of one.
async fn moved() -> (u64, u64, Logs) {
    let life = Life::start([const { Vec::new() }; 2], false);
    let mut keys = 0..;
    // the bee with the lower id is the target
    let target = life.account_in(NEW, &mut keys).await;
    let moves = life.account_in(OLD, &mut keys).await;
    life.logs[OLD].arm();
    let joining = life.join(target, moves);
    eventually("the bee has moved", LIMIT, || life.logs[OLD].has_stalled()).await;
    assert_eq!(life.written(NEW, |record| matches!(record, Record::Adopt { .. })), 1);
    assert!(!joining.is_finished());
    (moves, target, life.kill().await)
}

#[test]
fn a_bee_does_not_merge_before_the_next_process_has_dropped_its_old_copy() {
    on_workers(2, async {
        let (moved, target, logs) = moved().await;
        let life = Life::start(logs, true);
        let joining = life.join(moved, target);
        tokio::time::sleep(WHILE).await;
        let answered = if joining.is_finished() { joining.await.unwrap() } else { None };
        let logs = life.kill().await;

        let life = Life::start(logs, false);
        let count = life.hive.request_within(LIMIT, Add(moved)).await.unwrap();
        assert_eq!(count, answered.unwrap_or(1) + 1, "an answered message is not lost");
        assert_eq!(life.join(moved, target).await.unwrap(), Some(count + 1));
        life.kill().await;
    })
}

#[test]
fn a_bee_does_not_end_before_the_next_process_has_dropped_its_old_copy() {
    on_workers(2, async {
        let (moved, _, logs) = moved().await;
        let life = Life::start(logs, true);
        assert_eq!(life.hive.request_within(LIMIT, Remove(moved)).await, Ok(1));
        tokio::time::sleep(WHILE).await;
        let logs = life.kill().await;

        let life = Life::start(logs, false);
        assert_eq!(life.hive.request_within(LIMIT, Remove(moved)).await, Ok(0), "the account was removed");
        life.kill().await;
    })
}

/// When the old log commits, the bee that has waited for it goes on.
#[test]
fn a_bee_merges_or_ends_when_the_next_process_has_dropped_its_old_copy() {
    on_workers(2, async {
        let (moved, target, logs) = moved().await;
        for removes in [false, true] {
            let life = Life::start(logs.clone(), true);
            let joining = (!removes).then(|| life.join(moved, target));
            if removes {
                assert_eq!(life.hive.request_within(LIMIT, Remove(moved)).await, Ok(1));
            }
            tokio::time::sleep(WHILE).await;
            life.logs[OLD].log.stall(false);
            match joining {
                Some(joining) => assert_eq!(joining.await.unwrap(), Some(2)),
                None => {
                    let has_ended =
                        || life.written(NEW, |record| matches!(record, Record::Release { .. })) > 0;
                    eventually("the bee ends", LIMIT, has_ended).await
                }
            }
            life.kill().await;
        }
    })
}
