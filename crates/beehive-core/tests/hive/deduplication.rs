//! Deduplication of messages from outside: no message is handled twice, and the dedup tables do not grow with
//! the number of messages.

use crate::load::{Chance, eventually, on_workers};
use beehive_core::journal::{Entry, LogState};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Busy, Ctx, Dict, Hive, Message, handlers, limits};
use std::sync::Arc;
use std::time::Duration;

/// Message number `seq` of one sender, counted at `key`.
#[derive(Message)]
struct Count {
    key: u64,
    seq: u64,
}
/// Removes the cell of a key.
#[derive(Message)]
struct Clear(u64);
#[derive(Message)]
#[message(reply = (u64, u64, u64))]
struct Counted(u64);

#[derive(App)]
struct Counter {
    /// For each key: the number of messages, the sum of their numbers, the last number, and how often a
    /// number was not larger than the previous one.
    counts: Dict<u64, (u64, u64, u64, u64)>,
}
#[handlers]
impl Counter {
    #[rcv(sharded)]
    fn count(&mut self, msg: &Count, _: &mut Ctx) {
        let (count, sum, last, disorder) = self.counts.get(&msg.key).copied().unwrap_or_default();
        let disordered = (count > 0 && msg.seq <= last) as u64;
        self.counts.put(msg.key, (count + 1, sum + msg.seq, msg.seq, disorder + disordered));
    }
    #[rcv(sharded)]
    fn clear(&mut self, msg: &Clear) {
        self.counts.remove(&msg.0);
    }
    #[rcv(sharded)]
    fn counted(&mut self, msg: &Counted) -> (u64, u64, u64) {
        let (count, sum, _, disorder) = self.counts.get(&msg.0).copied().unwrap_or_default();
        (count, sum, disorder)
    }
}

const SEED: u64 = 7;
const LANE: u64 = 5;

fn begin(journal: &Arc<TestJournal>, colony: LogState) -> Hive {
    Hive::builder().app::<Counter>().seed(SEED).journal(journal.clone(), colony).start().unwrap()
}

fn replay(log: &[Vec<u8>]) -> LogState {
    crate::load::killed(log)
}

/// Returns the total size of the dedup tables of all bees in a log, and of the log itself.
fn remembered(colony: &LogState) -> usize {
    colony.bees.values().map(|bee| bee.seen.size()).sum::<usize>() + colony.seen.size()
}

const RUN: u64 = 40;
const KEYS: u64 = 200;

/// Returns the key of a message. Consecutive messages go to one key, so a run of them becomes one record.
fn key_of(seq: u64) -> u64 {
    Chance(seq / RUN).below(KEYS)
}

/// `BEEHIVE_LONG=1` sends a million messages; the bound is the same.
#[test]
fn many_messages_are_handled_once_and_leave_a_memory_that_does_not_grow() {
    let messages: u64 = if std::env::var_os("BEEHIVE_LONG").is_some() { 1_000_000 } else { 250_000 };
    const LIVES: u64 = 5;
    // Each bee remembers the floors of the sender's lane and of the lanes that requests use, and the numbers
    // above these floors.
    const MOST: usize = KEYS as usize * 8;
    let mut log: Vec<Vec<u8>> = Vec::new();
    let mut done = 0u64;

    for life in 0..LIVES {
        let until = messages * (life + 1) / LIVES;
        (log, done) = on_workers(2, async {
            let colony = replay(&log);
            let refuse = if life % 2 == 0 { 50 } else { 0 };
            let journal = TestJournal::start(1 + life, refuse, colony.last);
            assert!(remembered(&colony) <= MOST, "{} in the log", remembered(&colony));

            let hive = begin(&journal, colony);
            let mut io = hive.io();
            // This simulates a sender that stores its position only occasionally.
            let mut seq = (done / 10_000 * 10_000).saturating_sub(20_000);
            io.resume(LANE, seq);
            while seq < until {
                for _ in 0..1_000 {
                    io.emit(Count { key: key_of(seq), seq });
                    seq += 1;
                }

                io.flush().await;
                assert!(seq.saturating_sub(io.floor()) <= limits::LANE_WINDOW_MAX);

                if seq.is_multiple_of(50_000) {
                    let now = hive.status().remembered;
                    assert!(now <= MOST, "{now} remembered after {seq} messages");
                }
            }

            if life + 1 == LIVES {
                journal.accept_all();
                eventually("all are done", Duration::from_secs(60), || io.floor() == messages).await;
                check(&hive, messages).await;
                assert!(hive.status().remembered <= MOST);
            }

            // Kill the hive: nothing is committed from here on.
            journal.stop();
            let floor = io.floor();
            log.extend(journal.log());
            hive.stop(Duration::ZERO).await;
            (log, floor)
        });
    }

    let colony = replay(&log);
    assert!(remembered(&colony) <= MOST, "{} in the log", remembered(&colony));
}

async fn check(hive: &Hive, messages: u64) {
    let mut want = vec![(0, 0); KEYS as usize];
    for seq in 0..messages {
        let (count, sum) = &mut want[key_of(seq) as usize];
        *count += 1;
        *sum += seq;
    }

    for (key, (count, sum)) in want.into_iter().enumerate() {
        let got = hive.request(Counted(key as u64)).await.unwrap();
        assert_eq!(got, (count, sum, 0), "key {key}");
    }
}

/// The messages are resent under their old numbers in the same incarnation, while the original messages are
/// still in flight.
#[test]
fn a_message_sent_twice_is_handled_once() {
    on_workers(3, async {
        let journal = TestJournal::start(3, 30, 0);
        let hive = begin(&journal, LogState::default());
        let mut ios = [hive.io(), hive.io()];
        ios.iter_mut().for_each(|io| io.resume(LANE, 0));
        for first in (0..4_000).step_by(20) {
            for io in &mut ios {
                for seq in first..first + 20 {
                    io.emit(Count { key: seq % 7, seq })
                }
                io.flush().await
            }
        }

        journal.accept_all();
        eventually("all are done", Duration::from_secs(20), || ios[0].floor() == 4_000).await;
        for key in 0..7 {
            let want: Vec<u64> = (0..4_000).filter(|seq| seq % 7 == key).collect();
            let got = hive.request(Counted(key)).await.unwrap();
            assert_eq!(got, (want.len() as u64, want.iter().sum(), 0));
        }

        journal.stop();
        hive.stop(Duration::ZERO).await;
    })
}

/// The dedup table of a bee ends when the bee retires. The messages in it must still be recognized as
/// handled.
#[test]
fn messages_handled_by_a_retired_bee_are_not_handled_again() {
    let mut log: Vec<Vec<u8>> = Vec::new();
    for life in 0..4 {
        log = on_workers(2, async {
            let colony = replay(&log);
            let journal = TestJournal::start(20 + life, 0, colony.last);
            let hive = begin(&journal, colony);
            let mut io = hive.io();
            io.resume(LANE, 0);
            for seq in 0..100 {
                io.emit(Count { key: seq, seq });
                io.emit(Clear(seq));
            }

            io.flush().await;
            let retired = || hive.status().apps[0].bees == 0 && io.floor() == 200;
            eventually("all bees have ended", Duration::from_secs(20), retired).await;
            let messages: u64 = hive.status().apps[0].handlers.iter().map(|h| h.messages).sum();

            assert_eq!(messages, if life == 0 { 200 } else { 0 }, "life {life}");
            tokio::time::sleep(Duration::from_millis(50)).await;
            journal.stop();
            log.extend(journal.log());
            hive.stop(Duration::ZERO).await;
            log
        });

        let colony = replay(&log);
        assert!(colony.bees.is_empty(), "{:?}", colony.bees.keys());
        assert_eq!(colony.seen.size(), 1, "{:?}", colony.seen);
    }
}

#[test]
fn a_sender_that_ended_is_forgotten_everywhere() {
    on_workers(2, async {
        let journal = TestJournal::start(5, 20, 0);
        let hive = begin(&journal, LogState::default());
        for connection in 0..300u64 {
            let mut io = hive.io();
            if connection % 3 == 0 {
                io.resume(1_000 + connection, 0)
            }

            for key in 0..10 {
                io.emit(Count { key, seq: connection })
            }

            io.flush().await;
            if connection % 3 == 0 {
                io.retire()
            }
        }

        journal.accept_all();
        // An idle bee forgets retired lanes at its next run.
        let mut asked = 0;

        while hive.status().remembered > 60 {
            asked += 1;
            assert!(asked < 200, "{} remembered", hive.status().remembered);
            for key in 0..10 {
                let _ = hive.request(Counted(key)).await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }

        for key in 0..10 {
            assert_eq!(hive.request(Counted(key)).await.unwrap().0, 300);
        }

        let in_log = || remembered(&replay(&journal.log())) <= 60;
        eventually("the log has forgotten them, too", Duration::from_secs(20), in_log).await;
        journal.stop();
        hive.stop(Duration::ZERO).await;
    })
}

/// The next incarnation retires the lanes of senders that ended with the process.
#[test]
fn senders_of_an_earlier_incarnation_are_retired() {
    let log = on_workers(2, async {
        let journal = TestJournal::start(5, 0, 0);
        let hive = begin(&journal, LogState::default());
        let ios: Vec<_> = (0..50).map(|_| hive.io()).collect();

        for (at, mut io) in ios.into_iter().enumerate() {
            for key in 0..10 {
                io.emit(Count { key, seq: at as u64 })
            }
            io.flush().await;
            // This does not drop the IO bee, because a crash would not drop it either.
            std::mem::forget(io)
        }

        eventually("all are counted", Duration::from_secs(10), || {
            replay(&journal.log()).bees.values().map(|bee| bee.seen.size()).sum::<usize>() >= 500
        })
        .await;
        journal.stop();
        journal.log()
    });

    on_workers(2, async {
        let colony = replay(&log);
        let journal = TestJournal::start(6, 0, colony.last);
        let hive = begin(&journal, colony.clone());
        let forgotten = || {
            let mut now = colony.clone();
            journal.log().iter().for_each(|bytes| {
                now.apply(&Entry::decode(bytes).unwrap());
            });
            now.bees.values().all(|bee| bee.seen.is_empty())
        };

        eventually("they are forgotten", Duration::from_secs(10), forgotten).await;
        journal.stop();
        hive.stop(Duration::ZERO).await;
    })
}

/// The window bounds the memory: while nothing is committed, no message beyond the window is admitted.
#[test]
fn a_journal_that_commits_nothing_stops_its_senders_at_the_window() {
    on_workers(2, async {
        let journal = TestJournal::start(5, 1, 0);
        let hive = Hive::builder()
            .app::<Counter>()
            .credits(1 << 20)
            .journal(journal.clone(), LogState::default())
            .start()
            .unwrap();

        let mut io = hive.io_with_credits(1 << 20);
        let mut sent = 0u64;
        let mut refused = None;

        for _ in 0..200 {
            for _ in 0..100 {
                io.emit(Count { key: sent % 3, seq: sent });
                sent += 1;
            }
            if io.try_flush() == Err(Busy) {
                refused = Some(sent - 100);
                break;
            }
        }

        assert!(refused.is_some_and(|sent| sent <= limits::LANE_WINDOW_MAX), "{refused:?}");
        let mut emitted = 0u64;
        while hive.try_emit(Count { key: 9, seq: emitted }).is_ok() {
            emitted += 1;
            assert!(emitted <= limits::LANE_WINDOW_MAX);
        }

        // The senders continue once the journal commits again.
        journal.accept_all();
        io.flush().await;
        eventually("all are done", Duration::from_secs(20), || io.floor() == sent).await;

        assert!(hive.try_emit(Count { key: 9, seq: emitted }).is_ok());
        let counted =
            async { (hive.request(Counted(0)).await.unwrap(), hive.request(Counted(9)).await.unwrap()) };
        let (got, emits) = counted.await;

        assert_eq!((got.0, got.2, emits.0, emits.2), (sent.div_ceil(3), 0, emitted + 1, 0));
        journal.stop();
        hive.stop(Duration::ZERO).await;
    })
}
