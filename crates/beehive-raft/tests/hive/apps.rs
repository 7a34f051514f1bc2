//! Two apps: the first one counts and passes on, the second one counts what arrives.

use beehive::{App, Ctx, Dict, Hive, Message, StartError, handlers};
use beehive_raft::Data;
use std::collections::BTreeMap;
use std::time::Duration;

/// Increments the count of a key. Answers with the new count.
#[derive(Message)]
#[message(reply = u64)]
pub(crate) struct Add {
    pub(crate) key: u64,
}

/// Answers with the count of a key.
#[derive(Message)]
#[message(reply = u64)]
pub(crate) struct Counted {
    pub(crate) key: u64,
}

/// What the first app sends for each [`Add`].
#[derive(Message)]
pub(crate) struct Passed {
    key: u64,
    count: u64,
}

/// Answers with the number of [`Passed`] that arrived for a key, and the sum of their counts.
#[derive(Message)]
#[message(reply = (u64, u64))]
pub(crate) struct Arrived {
    pub(crate) key: u64,
}

#[derive(App)]
pub(crate) struct Counter {
    counts: Dict<u64, u64>,
}

#[handlers]
impl Counter {
    #[rcv]
    fn add(&mut self, msg: &Add, ctx: &mut Ctx) -> u64 {
        let count = self.counts.update(msg.key, |count| {
            *count += 1;
            *count
        });
        ctx.emit(Passed { key: msg.key, count });
        count
    }
    #[rcv]
    fn counted(&mut self, msg: &Counted) -> u64 {
        self.counts.get(&msg.key).copied().unwrap_or_default()
    }
}

#[derive(App)]
pub(crate) struct Tally {
    arrived: Dict<u64, (u64, u64)>,
}

#[handlers]
impl Tally {
    #[rcv]
    fn passed(&mut self, msg: &Passed) {
        self.arrived.update(msg.key, |(number, sum)| {
            *number += 1;
            *sum += msg.count
        })
    }
    #[rcv]
    fn arrived(&mut self, msg: &Arrived) -> (u64, u64) {
        self.arrived.get(&msg.key).copied().unwrap_or_default()
    }
}

pub(crate) fn start(data: &Data) -> Hive {
    try_start(data).expect("the hive starts")
}

pub(crate) fn try_start(data: &Data) -> Result<Hive, StartError> {
    data.attach(Hive::builder().app::<Counter>().app::<Tally>()).start()
}

/// For each key: the number of requests, and the last count that was answered.
pub(crate) type Answered = BTreeMap<u64, (u64, u64)>;

/// Checks that the counts are those that were answered, or include requests that got no answer, and that every message
/// of a committed transaction has arrived once.
pub(crate) async fn check(hive: &Hive, answered: &Answered) -> Result<(), String> {
    hive.idle().await;
    for (key, (asked, answered)) in answered {
        let count = hive.request(Counted { key: *key }).await.map_err(|why| why.to_string())?;
        if count < *answered || count > *asked {
            return Err(format!("key {key} counts {count}; {asked} were asked for and {answered} answered"));
        }
        let expected = (count, count * (count + 1) / 2);
        let arrived = hive.request(Arrived { key: *key }).await.map_err(|why| why.to_string())?;
        if arrived != expected {
            return Err(format!("key {key} counts {count}, but {arrived:?} arrived"));
        }
    }
    Ok(())
}

pub(crate) async fn stop(hive: Hive, data: Data) {
    hive.stop(Duration::from_secs(5)).await;
    drop(hive);
    data.close();
}
