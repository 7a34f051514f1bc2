//! Postponed messages, evicted rows and undone blocks, on a journal that refuses entries and with a hive that
//! is killed. Each message is handled to completion exactly once, and the log agrees with the hive.

use crate::load::{Chance, on_workers};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Hive, Message, Table, attempt, handlers};
use std::time::Duration;

/// Succeeds at the third attempt.
#[derive(Message)]
struct Knock {
    door: u64,
    seq: u64,
}
#[derive(Message)]
#[message(reply = (Vec<(u64, u64)>, Vec<u64>))]
struct Inside(u64);

#[derive(App)]
struct House {
    tries: Table<u64, u64, u64>,
    #[rows(max = 5, evict = first)]
    last: Table<u64, u64, u64>,
}
#[handlers]
impl House {
    #[rcv(sharded)]
    fn knock(&mut self, msg: &Knock, ctx: &mut Ctx) {
        let tries = self.tries.at(msg.door).entry(msg.seq).or_default();
        *tries += 1;
        if *tries < 3 {
            return ctx.postpone(Duration::from_micros(msg.seq % 3_000));
        }

        let undone = attempt! {
            self.last.at(msg.door).clear();
            self.tries.at(msg.door).insert(msg.seq, 1_000);
            if msg.seq.is_multiple_of(2) { Err("on second thoughts")? }
            self.tries.at(msg.door).insert(msg.seq, 4);
            Ok(())
        };

        if undone.is_err() {
            self.last.at(msg.door).insert(msg.seq, 1);
        }
    }
    #[rcv(sharded)]
    fn inside(&mut self, msg: &Inside) -> (Vec<(u64, u64)>, Vec<u64>) {
        let tries = self.tries.at(msg.0).iter().map(|(seq, tries)| (*seq, *tries)).collect();
        (tries, self.last.at(msg.0).keys().copied().collect())
    }
}

const SEED: u64 = 42;
const MESSAGES: u64 = 300;
const DOORS: u64 = 5;

fn start(log: &[Vec<u8>], refuse_one_in: u64) -> (Hive, std::sync::Arc<TestJournal>) {
    let colony = crate::load::killed(log);
    let journal = TestJournal::start(log.len() as u64, refuse_one_in, colony.last);
    let builder = Hive::builder().app::<House>().seed(SEED);
    (builder.journal(journal.clone(), colony).start().unwrap(), journal)
}

type All = Vec<(Vec<(u64, u64)>, Vec<u64>)>;

async fn all(hive: &Hive) -> All {
    let mut all = Vec::new();
    for door in 0..DOORS {
        all.push(hive.request_within(Duration::from_secs(30), Inside(door)).await.unwrap())
    }
    all
}

fn is_done(all: &All) -> bool {
    let tries = |tries: &u64, seq: &u64| *tries == if seq.is_multiple_of(2) { 3 } else { 4 };
    all.iter().map(|(tries, _)| tries.len() as u64).sum::<u64>() == MESSAGES
        && all.iter().flat_map(|(tries, _)| tries).all(|(seq, n)| tries(n, seq))
}

#[test]
fn killed_while_messages_wait_each_is_handled_to_its_end_once() {
    for run in 0..4u64 {
        let mut log: Vec<Vec<u8>> = Vec::new();
        let mut chance = Chance(run);
        let mut at_last = None;

        for life in 0..5 {
            let last_life = life == 4;
            on_workers(3, async {
                let (hive, journal) = start(&log, if last_life { 0 } else { 30 });
                let mut io = hive.io();
                io.resume(77, 0);
                for seq in 0..MESSAGES {
                    io.emit(Knock { door: Chance(seq).below(DOORS), seq });
                    if seq % 8 == 7 {
                        io.flush().await
                    }
                }

                io.flush().await;
                if last_life {
                    let mut found = all(&hive).await;
                    for _ in 0..2_000 {
                        for (seq, tries) in found.iter().flat_map(|(tries, _)| tries) {
                            assert!(*tries <= 3 + seq % 2, "message {seq} was run {tries} times");
                        }
                        if is_done(&found) {
                            break;
                        }
                        tokio::time::sleep(Duration::from_millis(5)).await;
                        found = all(&hive).await;
                    }

                    assert!(is_done(&found), "{found:?}");
                    assert!(found.iter().all(|(_, last)| last.len() <= 5), "{found:?}");
                    at_last = Some(found);
                } else {
                    tokio::time::sleep(Duration::from_micros(chance.below(12_000))).await
                }

                journal.stop();
                log.extend(journal.log());
                hive.stop(Duration::ZERO).await;
            });
        }

        let again = on_workers(2, async {
            let (hive, _journal) = start(&log, 0);
            all(&hive).await
        });
        assert_eq!(Some(again), at_last, "what was evicted and undone stands in the log");
    }
}
