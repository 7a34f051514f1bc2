//! Merges, and messages to cells whose owner has ended, that wait for a log that commits nothing. They hold up no merge that
//! needs only other logs, although they have the same sender.

use crate::load::{eventually, on_workers};
use beehive_core::journal::{Journal, LogState};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Dict, Hive, Message, handlers};
use std::sync::Arc;
use std::time::Duration;

/// Half of them are in the log that stalls: more than may be under way for one sender.
const KEYS: u64 = 400;

#[derive(Message)]
#[message(reply = u64)]
struct Put(u64);
#[derive(Message)]
struct Clear(u64);

#[derive(App)]
struct Marks {
    marks: Dict<u64, u64>,
}
#[handlers]
impl Marks {
    #[rcv(sharded)]
    fn put(&mut self, msg: &Put) -> u64 {
        let count = self.marks.entry(msg.0).or_default();
        *count += 1;
        *count
    }
    #[rcv(sharded)]
    fn clear(&mut self, msg: &Clear) {
        self.marks.remove(&msg.0);
    }
}

/// Adds one to two accounts, whose bees merge, and answers with their total.
#[derive(Message)]
#[message(reply = u64)]
struct Join(u64, u64);
#[derive(Message)]
#[message(reply = u64)]
struct Open(u64);

#[derive(App)]
struct Accounts {
    accounts: Dict<u64, u64>,
}
#[handlers]
impl Accounts {
    #[rcv(sharded)]
    fn open(&mut self, msg: &Open) -> u64 {
        let count = self.accounts.entry(msg.0).or_default();
        *count += 1;
        *count
    }
    #[rcv(joins)]
    fn join(&mut self, msg: &Join) -> u64 {
        let mut total = 0;
        for account in [msg.0, msg.1] {
            let count = self.accounts.entry(account).or_default();
            *count += 1;
            total += *count;
        }
        total
    }
}

#[test]
fn what_waits_for_a_log_holds_up_no_merge_in_another_one() {
    on_workers(2, async {
        let journals: Vec<_> = (0..3).map(|at| TestJournal::start(11 + at, 0, 0)).collect();
        let mut logs =
            journals.iter().map(|journal| (journal.clone() as Arc<dyn Journal>, LogState::default()));
        let of_accounts = logs.next().unwrap();
        let builder = Hive::builder().app::<Marks>().app::<Accounts>();
        let builder = builder.journal_of(["accounts"], of_accounts.0, of_accounts.1);
        let hive = builder.journals(logs).start().unwrap();

        for account in 0..4 {
            assert_eq!(hive.request(Open(account)).await, Ok(1))
        }
        for key in 0..KEYS {
            assert_eq!(hive.request(Put(key)).await, Ok(1))
        }
        hive.idle().await;
        let stalled = &journals[2];
        for key in 0..KEYS {
            while hive.try_emit(Clear(key)).is_err() {
                tokio::time::sleep(Duration::from_millis(1)).await
            }
        }
        hive.idle().await;
        // from now on, the ends of its bees are not committed
        stalled.stall(true);
        let marks = || hive.status().apps[0].bees;
        eventually("the bees without rows have ended", Duration::from_secs(20), || marks() == 0).await;

        let put = |key| {
            let hive = hive.clone();
            tokio::spawn(async move { hive.request_within(Duration::from_secs(60), Put(key)).await })
        };
        let waiting: Vec<_> = (0..KEYS).map(put).collect();
        let answered = || waiting.iter().filter(|put| put.is_finished()).count() as u64;
        // those in the log that commits
        eventually("the others are answered", Duration::from_secs(20), || answered() > KEYS / 4).await;
        assert!(KEYS - answered() > 100, "{} wait for the log", KEYS - answered());

        for (one, other, total) in [(0, 1, 4), (2, 3, 4), (1, 3, 6)] {
            let joined = hive.request_within(Duration::from_secs(5), Join(one, other)).await;
            assert_eq!(joined, Ok(total), "a merge in a log that commits")
        }
        assert!(answered() < KEYS);
        stalled.stall(false);
        for put in waiting {
            assert_eq!(put.await.unwrap(), Ok(1))
        }
        journals.iter().for_each(|journal| journal.stop());
        hive.stop(Duration::ZERO).await;
    })
}
