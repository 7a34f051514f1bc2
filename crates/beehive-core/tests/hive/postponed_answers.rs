//! Messages that a handler postpones, in a hive with a journal: the answer stays pending, the sender
//! continues, and the log keeps the message until it is handled to completion.

use crate::load::{Chance, eventually, on_workers};
use beehive_core::journal::LogState;
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Message, Result, handlers, limits};
use std::sync::Arc;
use std::time::Duration;

/// Answered at the third attempt.
#[derive(Message)]
#[message(reply = u64)]
struct Ask(u64);
/// A message that is postponed by a minute the first time.
#[derive(Message)]
struct Put {
    key: u64,
    off: bool,
}
/// Fires when it is due. Emitted by `Wind`, or sent from outside.
#[derive(Message)]
struct Bell {
    number: u64,
    at: u64,
}
#[derive(Message)]
struct Wind {
    number: u64,
    at: u64,
}
#[derive(Message)]
struct Rung {
    number: u64,
    in_time: bool,
}
#[derive(Message)]
#[message(reply = (u64, u64))]
struct Tries(u64);
#[derive(Message)]
#[message(reply = (u64, u64))]
struct Rings(u64);
/// A request that the first app of the chain postpones, and that only the last app answers.
#[derive(Message)]
#[message(reply = u64)]
struct Chain(u64);

#[derive(App)]
struct First {
    /// Number of attempts, and number of attempts that were final.
    tries: Dict<u64, (u64, u64)>,
}
#[handlers]
impl First {
    #[rcv(sharded)]
    fn ask(&mut self, msg: &Ask, ctx: &mut Ctx) -> Option<u64> {
        let (tries, _) = self.tries.entry(msg.0).or_default();
        *tries += 1;
        if *tries < 3 {
            ctx.postpone(Duration::from_millis(2))
        }
        Some(*tries)
    }
    #[rcv(sharded)]
    fn put(&mut self, msg: &Put, ctx: &mut Ctx) {
        let (tries, last) = self.tries.entry(msg.key).or_default();
        *tries += 1;
        match msg.off && *tries == 1 {
            true => ctx.postpone(Duration::from_secs(60)),
            false => *last += 1,
        }
    }
    #[rcv(sharded)]
    fn tries(&mut self, msg: &Tries) -> (u64, u64) {
        self.tries.get(&msg.0).copied().unwrap_or_default()
    }
    #[rcv(sharded)]
    fn chain(&mut self, msg: &Chain, ctx: &mut Ctx) -> Option<u64> {
        let (tries, _) = self.tries.entry(msg.0).or_default();
        *tries += 1;
        if *tries < 3 {
            ctx.postpone(Duration::from_millis(2))
        }
        None
    }
    #[rcv(sharded)]
    fn wind(&mut self, msg: &Wind, ctx: &mut Ctx) {
        self.tries.entry(msg.number).or_default().0 += 1;
        ctx.emit(Bell { number: msg.number, at: msg.at })
    }
    #[rcv(stateless)]
    fn bell(&mut self, msg: &Bell, ctx: &mut Ctx) {
        let in_time = ctx.now().as_nanoseconds() >= msg.at;
        ctx.emit(Rung { number: msg.number, in_time });
        if !in_time {
            ctx.postpone(Duration::from_millis(3))
        }
    }
}

#[derive(App)]
struct Second {
    /// For each bell: how often it fired too early, and how often on time.
    rung: Dict<u64, (u64, u64)>,
}
#[handlers]
impl Second {
    /// Postpones the message by the time that it specifies, and needs no state.
    #[rcv(stateless)]
    fn chain(&mut self, msg: &Chain, ctx: &mut Ctx) -> Result<Option<u64>> {
        let at = Chance(msg.0).below(20_000_000);
        if ctx.now().as_nanoseconds() % 40_000_000 < at {
            ctx.postpone(Duration::from_millis(1))
        }
        Ok(None)
    }
    #[rcv(sharded)]
    fn rung(&mut self, msg: &Rung) {
        let (early, in_time) = self.rung.entry(msg.number).or_default();
        match msg.in_time {
            true => *in_time += 1,
            false => *early += 1,
        }
    }
    #[rcv(sharded)]
    fn rings(&mut self, msg: &Rings) -> (u64, u64) {
        self.rung.get(&msg.0).copied().unwrap_or_default()
    }
}

#[derive(App)]
struct Third {
    answers: Dict<u64, u64>,
}
#[handlers]
impl Third {
    #[rcv(sharded)]
    fn chain(&mut self, msg: &Chain) -> u64 {
        let times = self.answers.entry(msg.0).or_default();
        *times += 1;
        msg.0 * 100 + *times
    }
}

fn start(log: &[Vec<u8>], refuse_one_in: u64) -> (Hive, Arc<TestJournal>) {
    let colony = crate::load::killed(log);
    let journal = TestJournal::start(7 + log.len() as u64, refuse_one_in, colony.last);
    let builder = Hive::builder().app::<First>().app::<Second>().app::<Third>().seed(7);
    (builder.journal(journal.clone(), colony).start().unwrap(), journal)
}

const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn the_answer_stays_pending_while_the_journal_refuses() {
    on_workers(3, async {
        let (hive, journal) = start(&[], 6);
        let asked: Vec<_> = (0..150u64)
            .map(|key| {
                let hive = hive.clone();
                tokio::spawn(async move {
                    let asked = hive.request_within(LIMIT, Ask(key)).await;
                    (asked, hive.request_within(LIMIT, Chain(1_000 + key)).await)
                })
            })
            .collect();

        for (key, asked) in (0..).zip(asked) {
            let (answer, at_last) = asked.await.unwrap();
            assert_eq!(answer, Ok(3), "the third try of {key} answers, and each counts once");
            assert_eq!(at_last, Ok((1_000 + key) * 100 + 1));
            assert_eq!(hive.request(Tries(1_000 + key)).await, Ok((3, 0)));
        }

        assert!(journal.refused() > 0);
        assert_eq!(hive.status().timers, 0, "nothing is left behind");
    })
}

#[test]
fn a_sender_continues_while_the_log_keeps_a_postponed_message() {
    const MESSAGES: u64 = 3 * limits::LANE_WINDOW_MAX;
    let log = on_workers(2, async {
        let (hive, journal) = start(&[], 0);
        let mut io = hive.io();
        io.resume(5, 0);
        let send = async {
            for seq in 0..MESSAGES {
                io.emit(Put { key: seq % 50, off: seq == 10 });
                if seq % 500 == 499 {
                    io.flush().await
                }
            }
            io.flush().await
        };

        tokio::time::timeout(LIMIT, send).await.expect("one that is put off holds up nobody");
        eventually("all but one are done", LIMIT, || io.floor() == MESSAGES).await;
        journal.stop();
        hive.stop(Duration::ZERO).await;
        journal.log()
    });

    let colony = crate::load::killed(&log);
    assert_eq!(colony.outbox.len(), 1, "the log remembers what is put off, and nothing else");

    on_workers(2, async {
        let (hive, journal) = start(&log, 0);
        let start = std::time::Instant::now();
        let of_key = |key| MESSAGES / 50 + (key < MESSAGES % 50) as u64;
        let mut found = (0, 0);

        // The message has been handled twice, the second time to completion, because a crash ends the delay.
        while found != (of_key(10) + 1, of_key(10)) {
            assert!(start.elapsed() < LIMIT, "{found:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
            found = hive.request(Tries(10)).await.unwrap()
        }

        for key in (0..50).filter(|key| *key != 10) {
            assert_eq!(hive.request(Tries(key)).await, Ok((of_key(key), of_key(key))));
        }

        let journal_log = journal.log();
        let all = log.iter().chain(&journal_log).map(Vec::as_slice);
        assert!(LogState::replay(all).unwrap().outbox.is_empty());
    })
}

/// A stateless handler has no bee. A message that it postpones is in the record of the message's sender, or
/// in a separate record.
#[test]
fn a_message_postponed_by_a_stateless_handler_completes_once() {
    const BELLS: u64 = 200;
    for run in 0..4u64 {
        let mut log: Vec<Vec<u8>> = Vec::new();
        let mut chance = Chance(run);
        let mut began = None;

        for life in 0..5 {
            let last_life = life == 4;
            on_workers(3, async {
                let (hive, journal) = start(&log, if last_life { 0 } else { 30 });
                let mut io = hive.io();
                io.resume(77, 0);
                for number in 0..BELLS {
                    // The same value each time the message is sent.
                    let at =
                        *began.get_or_insert(hive.now().as_nanoseconds()) + Chance(number).below(50_000_000);

                    match number % 2 {
                        0 => io.emit(Bell { number, at }),
                        _ => io.emit(Wind { number, at }),
                    }

                    if number % 8 == 7 {
                        io.flush().await
                    }
                }

                io.flush().await;
                if last_life {
                    for number in 0..BELLS {
                        let start = std::time::Instant::now();
                        while hive.request_within(LIMIT, Rings(number)).await.unwrap().1 == 0 {
                            assert!(start.elapsed() < LIMIT, "run {run}: bell {number} has not rung");
                            tokio::time::sleep(Duration::from_millis(5)).await
                        }
                    }

                    tokio::time::sleep(Duration::from_millis(30)).await;
                    for number in 0..BELLS {
                        let (_, in_time) = hive.request_within(LIMIT, Rings(number)).await.unwrap();
                        assert_eq!(in_time, 1, "run {run}: bell {number}");
                    }
                } else {
                    tokio::time::sleep(Duration::from_micros(chance.below(9_000))).await
                }

                journal.stop();
                log.extend(journal.log());
                hive.stop(Duration::ZERO).await;
            });
        }

        let colony = LogState::replay(log.iter().map(Vec::as_slice)).unwrap();
        assert!(colony.outbox.is_empty(), "run {run}");
    }
}
