//! Merges, retirements and claims on a registry that answers late: sums are conserved, and nothing is lost or
//! reordered.

use crate::registry::{Effect, LateRegistry};
use beehive_core::{App, Builder, Dict, Hive, Message, handlers, limits};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Message)]
struct Append {
    keys: Vec<u64>,
    number: u64,
}
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct Read(u64);
/// Moves one unit from the first account to the second. An account with a balance of zero is removed.
#[derive(Message)]
#[message(reply = i64)]
struct Move {
    from: u64,
    to: u64,
}
#[derive(Message)]
#[message(reply = i64)]
struct Balance(u64);

#[derive(App)]
struct Lists {
    lists: Dict<u64, Vec<u64>>,
}
#[handlers]
impl Lists {
    #[rcv(joins)]
    fn append(&mut self, msg: &Append) {
        for key in &msg.keys {
            self.lists.entry(*key).or_default().push(msg.number)
        }
    }
    #[rcv(sharded)]
    fn read(&mut self, msg: &Read) -> Vec<u64> {
        self.lists.get(&msg.0).cloned().unwrap_or_default()
    }
}

#[derive(App)]
struct Bank {
    accounts: Dict<u64, i64>,
}
#[handlers]
impl Bank {
    #[rcv(joins)]
    fn give(&mut self, msg: &Move) -> i64 {
        let less = self.accounts.get(&msg.from).copied().unwrap_or(0) - 1;
        if less == 0 {
            self.accounts.remove(&msg.from);
        } else {
            self.accounts.put(msg.from, less);
        }

        let more = self.accounts.get(&msg.to).copied().unwrap_or(0) + 1;
        if more == 0 {
            self.accounts.remove(&msg.to);
        } else {
            self.accounts.put(msg.to, more);
        }

        less + more
    }
    #[rcv(sharded)]
    fn balance(&mut self, msg: &Balance) -> i64 {
        self.accounts.get(&msg.0).copied().unwrap_or(0)
    }
}

pub(crate) fn on_workers<T>(workers: usize, test: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap();
    let result = runtime.block_on(test);
    runtime.shutdown_timeout(Duration::from_millis(200));
    result
}

fn late(builder: Builder, effect: Effect, refuse_one_in: u64) -> Hive {
    builder.registry(Arc::new(LateRegistry::new(effect, refuse_one_in))).start().unwrap()
}

const EFFECTS: [(Effect, u64); 3] =
    [(Effect::WithTheAnswer, 0), (Effect::BeforeTheAnswer, 0), (Effect::BeforeTheAnswer, 11)];
const LIMIT: Duration = Duration::from_secs(10);

#[test]
fn cells_find_an_owner_though_the_registry_answers_late() {
    for (effect, refuse_one_in) in EFFECTS {
        on_workers(2, async {
            let hive = late(Hive::builder().app::<Lists>(), effect, refuse_one_in);
            let mut io = hive.io();
            for number in 0..10 {
                for key in 0..50 {
                    io.emit(Append { keys: vec![key], number })
                }
                io.flush().await
            }

            let want: Vec<u64> = (0..10).collect();
            for key in 0..50 {
                let (began, mut got) = (Instant::now(), Vec::new());
                while got != want && began.elapsed() < LIMIT {
                    got = hive.request_within(LIMIT, Read(key)).await.unwrap_or_else(|error| {
                        panic!("key {key}, {effect:?}, one in {refuse_one_in} refused: {error}")
                    });
                }
                assert_eq!(got, want, "key {key}, {effect:?}")
            }

            hive.stop(LIMIT).await;
        })
    }
}

#[test]
fn nothing_overtakes_a_message_that_waits_for_a_merge_on_a_late_registry() {
    for (effect, refuse_one_in) in EFFECTS {
        on_workers(3, async {
            let hive = late(Hive::builder().app::<Lists>(), effect, refuse_one_in);
            for round in 0..30u64 {
                let (a, b, c) = (round * 3, round * 3 + 1, round * 3 + 2);
                let mut io = hive.io();
                let keys = [
                    vec![a],
                    vec![b],
                    vec![c],
                    vec![a, b],
                    vec![a],
                    vec![b, c],
                    vec![c],
                    vec![a, c],
                    vec![b],
                ];

                for (number, keys) in keys.into_iter().enumerate() {
                    io.emit(Append { keys, number: number as u64 });
                    if number % 2 == 0 {
                        io.flush().await
                    }
                }

                io.flush().await;
                for (key, want) in [(a, vec![0, 3, 4, 7]), (b, vec![1, 3, 5, 8]), (c, vec![2, 5, 6, 7])] {
                    let (began, mut got) = (Instant::now(), Vec::new());
                    while got.len() < want.len() && began.elapsed() < LIMIT {
                        got = hive
                            .request_within(LIMIT, Read(key))
                            .await
                            .unwrap_or_else(|error| panic!("round {round}, key {key}, {effect:?}: {error}"));
                    }
                    assert_eq!(got, want, "round {round}, key {key}, {effect:?}")
                }
            }

            hive.stop(LIMIT).await;
        })
    }
}

/// Accounts come and go, so bees retire while other bees claim their cells and merge with them.
#[test]
fn sums_are_conserved_while_bees_merge_retire_and_are_made_again() {
    for (effect, refuse_one_in) in [(Effect::WithTheAnswer, 0), (Effect::BeforeTheAnswer, 0)] {
        on_workers(3, async {
            let hive = late(Hive::builder().app::<Bank>(), effect, refuse_one_in);
            const ACCOUNTS: u64 = 40;
            let mut moving = Vec::new();

            for task in 0..4u64 {
                let hive = hive.clone();
                moving.push(tokio::spawn(async move {
                    let mut chance = task + 1;
                    for round in 0..120u64 {
                        chance = chance.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                        let pair = (chance >> 33) % (ACCOUNTS / 2) * 2;
                        // Move each unit back and forth so that most accounts are empty most of the time.
                        for (from, to) in [(pair, pair + 1), (pair + 1, pair)] {
                            hive.request_within(LIMIT, Move { from, to }).await.unwrap_or_else(|error| {
                                panic!("task {task}, round {round}, {effect:?}: {error}")
                            });
                        }

                        if round % 20 == 19 {
                            // Long enough for idle bees to retire.
                            tokio::time::sleep(Duration::from_millis(120)).await
                        }
                    }
                }))
            }

            for task in moving {
                task.await.unwrap()
            }

            for account in 0..ACCOUNTS {
                assert_eq!(hive.request_within(LIMIT, Balance(account)).await, Ok(0), "{effect:?}");
            }

            let began = Instant::now();
            while hive.status().credits_free < limits::CREDITS_PER_IO_BEE && began.elapsed() < LIMIT {
                tokio::time::sleep(Duration::from_millis(5)).await
            }

            assert_eq!(hive.status().credits_free, limits::CREDITS_PER_IO_BEE);
            hive.stop(LIMIT).await;
        })
    }
}
