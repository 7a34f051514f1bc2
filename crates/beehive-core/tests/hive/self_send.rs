//! Empty bees that send messages to themselves while the queen retires idle ones. Retirement and delivery
//! take the same locks.

use crate::load::{On, on_workers, start};
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use std::time::{Duration, Instant};

/// Blocks for `milliseconds` at these keys.
#[derive(Message)]
struct Listed {
    keys: Vec<u64>,
    milliseconds: u64,
}
#[derive(App)]
struct Ledger {
    lists: Dict<u64, u64>,
}
#[handlers]
impl Ledger {
    #[rcv(joins)]
    fn listed(&mut self, msg: &Listed) {
        for key in &msg.keys {
            *self.lists.entry(*key).or_default() += 1
        }
        std::thread::sleep(Duration::from_millis(msg.milliseconds))
    }
}

/// A message that leaves its cells empty.
#[derive(Message)]
struct Touch {
    keys: Vec<u64>,
}
/// Makes a bee emit many messages to a blocked cell, and then one to itself.
#[derive(Message)]
struct Begin {
    at: u64,
    wait: u64,
}
#[derive(Message)]
#[message(reply = u64)]
struct Ping(u64);

#[derive(App)]
struct Empty {
    nothing: Dict<u64, u64>,
}
#[handlers]
impl Empty {
    #[rcv(joins)]
    fn touch(&mut self, msg: &Touch) {
        for key in &msg.keys {
            let _ = self.nothing.contains(key);
        }
    }
    #[rcv(sharded)]
    fn begin(&mut self, msg: &Begin, ctx: &mut Ctx) {
        let _ = self.nothing.contains(&msg.at);
        for other in 0..msg.wait {
            ctx.emit(Listed { keys: vec![100, 1_000 + other], milliseconds: 0 })
        }
        ctx.emit(Touch { keys: vec![msg.at, msg.at + 1] })
    }
    #[rcv(sharded)]
    fn ping(&mut self, msg: &Ping) -> u64 {
        let _ = self.nothing.contains(&msg.0);
        msg.0
    }
}

/// Empty bees send messages to their own cells and those of others while the queen retires idle bees.
#[test]
fn a_bee_that_sends_to_itself_may_become_idle() {
    on_workers(4, async {
        let (hive, _) = start(Hive::builder().app::<Empty>().app::<Ledger>().credits(10_000_000), On::Memory);
        hive.emit(Listed { keys: vec![100], milliseconds: 0 }).await;
        hive.emit(Listed { keys: vec![1_000], milliseconds: 0 }).await;
        hive.idle().await;

        // Delays the first messages of the bees.
        hive.emit(Listed { keys: vec![100], milliseconds: 6_000 }).await;
        let began = Instant::now();
        let mut key = 0;
        let mut rounds = 0;

        while began.elapsed() < Duration::from_secs(5) {
            rounds += 1;
            for _ in 0..40 {
                key += 10;
                hive.emit(Touch { keys: vec![key] }).await;
                hive.emit(Touch { keys: vec![key + 1] }).await;
                hive.emit(Begin { at: key, wait: 500 }).await;
            }

            tokio::time::sleep(Duration::from_millis(20)).await;
            let answer = hive.request_within(Duration::from_secs(15), Ping(u64::MAX - rounds)).await;
            assert!(answer.is_ok(), "round {rounds}, after {:?}: {answer:?}", began.elapsed());
        }

        hive.stop(Duration::ZERO).await;
    })
}
