//! Messages whose cells belong to several bees: the bees merge, each message runs once, and sums are
//! conserved.

use crate::load::{Ahead, Chance, EVERYWHERE, On, cells_needed, eventually, on_workers, start, unheard};
use beehive_core::journal::LogState;
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Error, Hive, Message, Time, handlers};
use std::sync::Arc;
use std::time::Duration;

#[derive(Message)]
#[message(reply = u64)]
struct Open {
    account: u64,
    amount: u64,
}
#[derive(Message)]
#[message(reply = u64)]
struct Balance(u64);
/// Moves one unit from each account to the next one, and answers with their total.
#[derive(Message)]
#[message(reply = u64)]
struct Around {
    accounts: Vec<u64>,
    fail: bool,
    panic: bool,
}
/// Answers with the total of several accounts.
#[derive(Message)]
#[message(reply = u64)]
struct Sum(Vec<u64>);

#[derive(App)]
struct Bank {
    accounts: Dict<u64, u64>,
}

#[handlers]
impl Bank {
    #[rcv(sharded)]
    fn open(&mut self, msg: &Open) -> u64 {
        self.accounts.put(msg.account, msg.amount);
        msg.amount
    }
    #[rcv(sharded)]
    fn balance(&mut self, msg: &Balance) -> u64 {
        self.accounts.get(&msg.0).copied().unwrap_or(0)
    }
    #[rcv(joins)]
    fn around(&mut self, msg: &Around) -> Result<u64, Error> {
        let mut total = 0;
        for account in &msg.accounts {
            let held = self.accounts.entry(*account).or_default();
            total += *held;
            *held = held.wrapping_sub(1);
        }

        if msg.panic {
            unheard("as asked")
        }

        if msg.fail {
            return Err("as asked".into());
        }

        for account in &msg.accounts {
            let held = self.accounts.entry(*account).or_default();
            *held = held.wrapping_add(1);
        }

        Ok(total)
    }
    #[rcv(joins)]
    fn sum(&mut self, msg: &Sum) -> u64 {
        let mut total = 0;
        for account in &msg.0 {
            total += self.accounts.get(account).copied().unwrap_or(0);
        }
        total
    }
}

const ACCOUNTS: u64 = 64;

async fn storm(hive: &Hive, tasks: u64, rounds: u64) {
    for account in 0..ACCOUNTS {
        hive.request(Open { account, amount: 1_000 }).await.unwrap();
    }

    assert_eq!(hive.status().apps[0].bees, ACCOUNTS as usize);
    let mut running = Vec::new();
    for seed in 0..tasks {
        let hive = hive.clone();
        running.push(tokio::spawn(async move {
            let mut chance = Chance(seed);
            let mut io = hive.io();
            let mut answered = 0;

            for _ in 0..rounds {
                let count = 2 + chance.below(2);
                let mut accounts = Vec::new();
                while (accounts.len() as u64) < count {
                    let account = chance.below(ACCOUNTS);
                    if !accounts.contains(&account) {
                        accounts.push(account)
                    }
                }

                let message = Around { accounts, fail: chance.below(5) == 0, panic: chance.below(20) == 0 };
                io.emit(message);
                io.flush().await;
                while let Some(mail) = io.try_receive() {
                    answered += mail.into_answers::<Around>().ok().unwrap().into_iter().count() as u64
                }
            }

            while answered < rounds {
                let mail =
                    tokio::time::timeout(Duration::from_secs(30), io.receive()).await.expect("an answer");
                for answer in mail.into_answers::<Around>().ok().unwrap() {
                    answered += 1;
                    if let Ok(total) = answer {
                        assert!(total == 2_000 || total == 3_000, "{total}")
                    }
                }
            }

            assert_eq!(answered, rounds);
        }))
    }

    for task in running {
        task.await.unwrap()
    }

    let all: Vec<u64> = (0..ACCOUNTS).collect();
    let sum = hive.request_within(Duration::from_secs(30), Sum(all)).await.unwrap();
    assert_eq!(sum, ACCOUNTS * 1_000);

    let bank = &hive.status().apps[0];
    assert_eq!((bank.bees, bank.bees_merged), (1, ACCOUNTS - 1));

    for account in 0..ACCOUNTS {
        assert_eq!(hive.request(Balance(account)).await.unwrap(), 1_000);
    }
}

/// Takes `milliseconds`. Answers with the time that the handler sees.
#[derive(Message)]
#[message(reply = Time)]
struct Keep {
    keys: Vec<u64>,
    milliseconds: u64,
}
#[derive(App)]
struct Slow {
    kept: Dict<u64, u64>,
}
#[handlers]
impl Slow {
    #[rcv(joins)]
    fn keep(&mut self, msg: &Keep, ctx: &mut Ctx) -> Time {
        std::thread::sleep(Duration::from_millis(msg.milliseconds));
        for key in &msg.keys {
            *self.kept.entry(*key).or_default() += 1
        }
        ctx.now()
    }
}

#[test]
fn sixty_four_bees_become_one() {
    on_workers(4, async {
        let (hive, _) = start(Hive::builder().app::<Bank>(), On::Memory);
        storm(&hive, 8, 500).await;
        hive.stop(Duration::from_secs(5)).await;
    })
}

#[test]
fn sixty_four_bees_become_one_while_they_move_between_journals() {
    on_workers(4, async {
        let (hive, _) = start(Hive::builder().app::<Bank>(), On::Journals);
        storm(&hive, 8, 30).await;
        hive.stop(Duration::from_secs(5)).await;
    })
}

#[test]
fn sixty_four_bees_become_one_on_a_journal_while_they_are_taken_apart() {
    on_workers(4, async {
        let (hive, journal) = start(Hive::builder().app::<Bank>(), On::Journal);
        let shaken = hive.clone();
        let shaking = tokio::spawn(async move {
            loop {
                shaken.reimport().await.unwrap();
                tokio::time::sleep(Duration::from_millis(5)).await
            }
        });

        storm(&hive, 8, 60).await;
        shaking.abort();
        assert!(journal.unwrap().refused() > 0);
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// Waits for a merge. Later messages of the same sender to the same cell must not overtake it.
#[derive(Message)]
struct Append {
    keys: Vec<u64>,
    seq: u64,
}
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct Appended(u64);
#[derive(App)]
struct Lists {
    lists: Dict<u64, Vec<u64>>,
}
#[handlers]
impl Lists {
    #[rcv(joins)]
    fn append(&mut self, msg: &Append) {
        for key in &msg.keys {
            self.lists.entry(*key).or_default().push(msg.seq)
        }
    }
    #[rcv(sharded)]
    fn appended(&mut self, msg: &Appended) -> Vec<u64> {
        self.lists.get(&msg.0).cloned().unwrap_or_default()
    }
}

#[test]
fn nothing_overtakes_a_message_that_waits_for_a_merge() {
    for on in EVERYWHERE {
        on_workers(4, async {
            let (hive, _journal) = start(Hive::builder().app::<Lists>(), on);
            let rounds = if on == On::Memory { 300 } else { 40 };
            for round in 0..rounds {
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

                for (seq, keys) in keys.into_iter().enumerate() {
                    io.emit(Append { keys, seq: seq as u64 });
                    if seq % 2 == 0 {
                        io.flush().await
                    }
                }

                io.flush().await;
                for (key, want) in [(a, vec![0, 3, 4, 7]), (b, vec![1, 3, 5, 8]), (c, vec![2, 5, 6, 7])] {
                    let mut got = Vec::new();
                    for _ in 0..2_000 {
                        got = hive.request(Appended(key)).await.unwrap();
                        if got.len() >= want.len() {
                            break;
                        }
                        tokio::time::sleep(Duration::from_millis(1)).await
                    }

                    assert_eq!(got, want, "round {round}, key {key}, {on:?}");
                }
            }

            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

#[test]
fn a_merge_waits_for_a_handler_and_nobody_else_waits_for_the_merge() {
    on_workers(4, async {
        let (hive, _) = start(Hive::builder().app::<Bank>(), On::Memory);
        for account in 0..4 {
            hive.request(Open { account, amount: 5 }).await.unwrap();
        }

        let sum = hive.request(Sum(vec![0, 1])).await.unwrap();
        assert_eq!(sum, 10);

        eventually("merged", Duration::from_secs(1), || hive.status().apps[0].bees == 3).await;
        assert_eq!(hive.request(Balance(2)).await.unwrap(), 5);
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// Two senders need the same bees merged while one of these bees is busy. The merge for the first sender ends
/// the busy bee, and the second sender must be notified.
#[test]
fn a_sender_that_waits_for_a_merged_bee_is_notified() {
    on_workers(4, async {
        let (hive, _) = start(Hive::builder().app::<Slow>(), On::Memory);
        for round in 0..3 {
            let (small, one, two) = (10 * round, 10 * round + 1, 10 * round + 2);
            let mut ios = [hive.io(), hive.io(), hive.io()];
            // The older bee has one cell, so it merges into the younger one, which has two.
            hive.request(Keep { keys: vec![small], milliseconds: 0 }).await.unwrap();
            hive.request(Keep { keys: vec![one, two], milliseconds: 0 }).await.unwrap();
            ios[0].emit(Keep { keys: vec![small], milliseconds: 150 });
            ios[0].flush().await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            for io in &mut ios[1..] {
                io.emit(Keep { keys: vec![small, one], milliseconds: 0 });
                io.flush().await
            }

            for io in &mut ios {
                let mail =
                    tokio::time::timeout(Duration::from_secs(10), io.receive()).await.expect("an answer");
                assert_eq!(mail.into_answers::<Keep>().ok().unwrap().into_iter().count(), 1);
            }
        }

        assert_eq!(hive.status().apps[0].bees_merged, 3);
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// The log contains transactions of a bee that ran on a machine whose clock was ahead. Neither a bee that is new, nor one
/// into which the first one merges, may see an earlier time.
#[test]
fn time_does_not_run_backwards_when_bees_merge() {
    const HOUR: Duration = Duration::from_secs(3_600);
    on_workers(2, async {
        let journal = TestJournal::start(7, 0, 0);
        let begin = |journal: &Arc<TestJournal>, colony, ahead| {
            let builder = Hive::builder().app::<Slow>().seed(5).platform(Ahead::by(ahead));
            builder.journal(journal.clone(), colony).start().unwrap()
        };

        let hive = begin(&journal, LogState::default(), HOUR);
        let late = hive.request(Keep { keys: vec![1], milliseconds: 0 }).await.unwrap();
        hive.stop(Duration::from_secs(5)).await;
        journal.stop();

        let colony = LogState::replay(journal.log().iter().map(Vec::as_slice)).unwrap();
        let journal = TestJournal::start(8, 0, colony.last);
        let hive = begin(&journal, colony, Duration::ZERO);
        let early = hive.request(Keep { keys: vec![2, 3], milliseconds: 0 }).await.unwrap();

        assert!(early >= late, "the clock of this life is behind, but its time goes on");
        // The older bee merges into the larger one.
        let merged = hive.request(Keep { keys: vec![1, 2], milliseconds: 0 }).await.unwrap();
        assert_eq!(hive.status().apps[0].bees_merged, 1);
        assert!(merged >= late, "{merged:?} after {late:?}");
        hive.stop(Duration::from_secs(5)).await;
        journal.stop()
    })
}

#[test]
fn maps_over_several_keys_name_all_that_is_touched() {
    use beehive_core::testing::maps::instance;
    let mut bank: Bank = instance(Default::default()).unwrap();
    let mut lists: Lists = instance(Default::default()).unwrap();
    let mut chance = Chance(9);
    let (mut around, mut sum, mut append) = (0, 0, 0);

    for seq in 0..1_000 {
        let account = chance.below(6);
        let keys: Vec<u64> = (0..chance.below(4)).map(|_| chance.below(6)).collect();
        assert_eq!(cells_needed(&mut bank, &Open { account, amount: 100 }), 1);
        assert_eq!(cells_needed(&mut bank, &Balance(account)), 1);

        let message = Around { accounts: keys.clone(), fail: chance.below(3) == 0, panic: false };
        around = around.max(cells_needed(&mut bank, &message));
        sum = sum.max(cells_needed(&mut bank, &Sum(keys.clone())));
        append = append.max(cells_needed(&mut lists, &Append { keys, seq }));
        assert_eq!(cells_needed(&mut lists, &Appended(account)), 1);
    }

    assert_eq!((around, sum, append), (3, 3, 3), "every key of a message is needed");
}
