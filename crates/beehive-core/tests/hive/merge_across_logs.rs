//! Merges of bees whose logs are different ones, while one of these logs commits nothing. The bees of the other logs go
//! on handling messages to their own cells, and the merge is finished when the log commits again.

use crate::load::{eventually, on_workers};
use crate::stalls::StallsAt;
use beehive_core::journal::{Entry, Journal, LogState, Record};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Message, RequestError, handlers};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

#[derive(Message)]
#[message(reply = u64)]
struct Add(u64);
/// Merges the owners of accounts, adds one to each of them, and answers with their total.
#[derive(Message)]
#[message(reply = u64)]
struct Join(Vec<u64>);

/// Sets a timer for a [`Ping`].
#[derive(Message)]
#[message(reply = u64)]
struct Ring(u64);
#[derive(Message)]
struct Ping;

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
    #[rcv(sharded)]
    fn ring(&mut self, msg: &Ring, ctx: &mut Ctx) -> u64 {
        ctx.after(Duration::from_millis(1), Ping);
        self.accounts.get(&msg.0).copied().unwrap_or(0)
    }
    #[rcv(stateless)]
    fn ping(&mut self, _: &Ping, ctx: &mut Ctx) {
        ctx.emit(Add(u64::MAX))
    }
    #[rcv(joins)]
    fn join(&mut self, msg: &Join) -> u64 {
        let mut total = 0;
        for account in &msg.0 {
            let count = self.accounts.entry(*account).or_default();
            *count += 1;
            total += *count;
        }
        total
    }
}

/// How long a request to a bee that nothing holds up may take.
const SOON: Duration = Duration::from_secs(5);
/// How long a request may take that waits for a log.
const PATIENCE: Duration = Duration::from_secs(60);

/// A hive with several logs.
struct Logged {
    hive: Hive,
    logs: Vec<Arc<StallsAt>>,
}

/// An account, and the position of the log that has its bee.
#[derive(Clone, Copy)]
struct Account {
    key: u64,
    log: usize,
}

impl Logged {
    fn start(logs: u64, refuse_one_in: u64) -> Logged {
        // stops to commit as soon as it is to commit a part of a bee that moves
        let is_part = |record: &Record| matches!(record, Record::Stage { .. });
        let log = |at| StallsAt::new(TestJournal::start(31 + at, refuse_one_in, 0), is_part);
        let logs: Vec<_> = (0..logs).map(log).map(Arc::new).collect();
        let all = logs.iter().map(|log| (log.clone() as Arc<dyn Journal>, LogState::default()));
        let hive = Hive::builder().app::<Bank>().journals(all).start().unwrap();
        Logged { hive, logs }
    }

    fn stall(&self, log: usize, stalled: bool) {
        self.logs[log].log.stall(stalled)
    }

    fn runs_in(&self, log: usize) -> usize {
        let entries = self.logs[log].log.log();
        let is_run = |bytes: &&Vec<u8>| matches!(Entry::decode(bytes).unwrap().record, Record::Turn(_));
        entries.iter().filter(is_run).count()
    }

    /// Creates accounts with a bee each, in the order of the bees' ids, until there is one in each of these logs.
    async fn accounts(&self, logs: &[usize]) -> Vec<Account> {
        let mut accounts = Vec::new();
        for key in 0.. {
            let Some(wanted) = logs.get(accounts.len()) else { break };
            let before = self.runs_in(*wanted);
            self.hive.request(Add(key)).await.unwrap();
            if self.runs_in(*wanted) > before {
                accounts.push(Account { key, log: *wanted })
            }
        }
        accounts
    }

    fn add(&self, account: Account) -> JoinHandle<Result<u64, RequestError>> {
        let hive = self.hive.clone();
        tokio::spawn(async move { hive.request_within(PATIENCE, Add(account.key)).await })
    }

    /// The message has a sender of its own, so that no other message waits behind it.
    fn join(&self, accounts: &[Account]) -> JoinHandle<Result<u64, RequestError>> {
        let mut io = self.hive.io();
        io.emit(Join(accounts.iter().map(|account| account.key).collect()));
        tokio::spawn(async move {
            io.flush().await;
            let mail = tokio::time::timeout(PATIENCE, io.receive()).await.expect("an answer");
            let mut answers = mail.into_answers::<Join>().ok().unwrap().into_iter();
            answers.next().expect("an answer")
        })
    }

    /// Checks for some time that an account's bee handles messages.
    async fn goes_on(&self, account: Account, time: Duration) {
        let (began, mut count) = (Instant::now(), 0);
        while began.elapsed() < time {
            let added = self.hive.request_within(SOON, Add(account.key)).await;
            assert!(added.is_ok(), "{added:?} after {count} requests");
            count += 1;
            tokio::time::sleep(Duration::from_millis(2)).await
        }
    }

    fn merged(&self) -> u64 {
        self.hive.status().apps[0].bees_merged
    }

    async fn stop(self) {
        self.hive.stop(Duration::from_secs(5)).await;
        self.logs.iter().for_each(|log| log.log.stop())
    }
}

/// One bee of two merges into the other, which has the lower id, and the log of one of them commits nothing.
async fn one_log_is_stalled(is_target_stalled: bool, has_entries_in_flight: bool) {
    let logged = Logged::start(2, 0);
    let [target, source] = logged.accounts(&[0, 1]).await[..] else { panic!("two accounts") };
    let (stalled, healthy) = if is_target_stalled { (target, source) } else { (source, target) };
    logged.stall(stalled.log, true);
    let in_flight = has_entries_in_flight.then(|| logged.add(stalled));
    if has_entries_in_flight {
        eventually("in flight", SOON, || logged.logs[stalled.log].log.waiting() > 0).await
    }

    let joined = logged.join(&[target, source]);
    logged.goes_on(healthy, Duration::from_secs(1)).await;
    assert!(!joined.is_finished() && logged.merged() == 0);

    logged.stall(stalled.log, false);
    assert!(joined.await.unwrap().is_ok());
    if let Some(in_flight) = in_flight {
        assert_eq!(in_flight.await.unwrap(), Ok(2))
    }
    assert_eq!(logged.merged(), 1);
    logged.stop().await
}

#[test]
fn a_merge_with_a_bee_of_a_stalled_log_does_not_freeze_the_other_bee() {
    for is_target_stalled in [false, true] {
        for has_entries_in_flight in [false, true] {
            on_workers(2, one_log_is_stalled(is_target_stalled, has_entries_in_flight))
        }
    }
}

/// A bee is held because it is moving into a log that stalls then. Meanwhile another bee, which is now in the same log as
/// the first one, is to merge into it.
#[test]
fn a_merge_with_a_bee_that_cannot_arrive_does_not_freeze_the_other_bee() {
    on_workers(2, async {
        let logged = Logged::start(3, 0);
        let [far, waits, moves, near_moves, near_far] = logged.accounts(&[2, 0, 1, 1, 2]).await[..] else {
            panic!("five accounts")
        };
        // bees with more cells are targets
        logged.join(&[far, near_far]).await.unwrap().unwrap();
        logged.join(&[moves, near_moves]).await.unwrap().unwrap();

        logged.stall(moves.log, true);
        let waiting = logged.join(&[waits, moves]);
        logged.goes_on(waits, Duration::from_millis(300)).await;
        logged.logs[far.log].arm();
        let moving = logged.join(&[far, moves]);
        logged.goes_on(waits, Duration::from_millis(300)).await;
        logged.stall(moves.log, false);
        eventually("the bee is moving", SOON, || logged.logs[far.log].has_stalled()).await;

        logged.goes_on(waits, Duration::from_secs(4)).await;
        assert!(!moving.is_finished() && !waiting.is_finished());

        logged.stall(far.log, false);
        assert!(moving.await.unwrap().is_ok() && waiting.await.unwrap().is_ok());
        assert_eq!(logged.merged(), 4);
        logged.stop().await
    })
}

/// A timer of a bee has sent a message to a stateless handler, whose log is stalled. The bee is to merge into another bee of
/// its own log.
#[test]
fn a_merge_of_a_bee_that_waits_for_another_log_does_not_freeze_it() {
    on_workers(2, async {
        let logged = Logged::start(2, 0);
        let [target, source] = logged.accounts(&[1, 1]).await[..] else { panic!("two accounts") };
        // the home log of the app
        logged.stall(0, true);
        logged.hive.request(Ring(source.key)).await.unwrap();
        eventually("the message waits", SOON, || logged.logs[0].log.waiting() > 0).await;

        let joined = logged.join(&[target, source]);
        logged.goes_on(source, Duration::from_secs(2)).await;
        logged.goes_on(target, Duration::from_secs(2)).await;
        assert!(!joined.is_finished() && logged.merged() == 0);

        logged.stall(0, false);
        assert!(joined.await.unwrap().is_ok());
        logged.stop().await
    })
}

/// Chains and rings of bees of all logs merge at the same time. Each log stalls for a moment, and refuses entries.
#[test]
fn merges_across_logs_that_stall_in_turn_do_not_deadlock() {
    on_workers(2, async {
        let logged = Logged::start(4, 20);
        let logs: Vec<usize> = (0..24).map(|at| at * 7 % 4).collect();
        let accounts = logged.accounts(&logs).await;
        let count = accounts.len();
        let mut joining = Vec::new();
        for at in 0..count {
            logged.stall(at % 4, at.is_multiple_of(3));
            joining.push(logged.join(&[accounts[at], accounts[(at + 1) % count]]));
            joining.push(logged.join(&[
                accounts[(at + 5) % count],
                accounts[at],
                accounts[(at + 11) % count],
            ]));
            tokio::time::sleep(Duration::from_millis(10)).await
        }
        (0..4).for_each(|log| logged.stall(log, false));
        for joined in joining {
            assert!(joined.await.unwrap().is_ok())
        }
        assert!(logged.merged() >= count as u64 - 1, "{} merges", logged.merged());
        logged.stop().await
    })
}
