//! A hive with a journal is killed at arbitrary moments, and starts again from the bytes of its log.

use crate::load::{Chance, eventually, on_workers};
use beehive_core::journal::LogState;
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use std::time::Duration;

/// Message number `seq` from outside. It is counted at `key` and passed on to the counter of its group.
#[derive(Message)]
struct Hit {
    key: u64,
    seq: u64,
}
#[derive(Message)]
struct Passed {
    group: u64,
    seq: u64,
}
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct Hits(u64);
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct Group(u64);

#[derive(App)]
struct Front {
    hits: Dict<u64, Vec<u64>>,
}
#[handlers]
impl Front {
    #[rcv(sharded)]
    fn hit(&mut self, msg: &Hit, ctx: &mut Ctx) {
        self.hits.entry(msg.key).or_default().push(msg.seq);
        if msg.seq.is_multiple_of(3) {
            ctx.after(Duration::from_millis(msg.seq % 7), Passed { group: msg.key % 4, seq: msg.seq })
        } else {
            ctx.emit(Passed { group: msg.key % 4, seq: msg.seq })
        }
    }
    #[rcv(sharded)]
    fn hits(&mut self, msg: &Hits) -> Vec<u64> {
        self.hits.get(&msg.0).cloned().unwrap_or_default()
    }
    #[rcv(sharded)]
    fn passed(&mut self, msg: &Passed, ctx: &mut Ctx) {
        // A message sent with `after` returns to the app that set the timer.
        let _ = self.hits.contains(&(1_000_000 + msg.group));
        if msg.seq.is_multiple_of(3) {
            ctx.emit(Late { group: msg.group, seq: msg.seq })
        }
    }
}
#[derive(Message)]
struct Late {
    group: u64,
    seq: u64,
}
#[derive(App)]
struct Back {
    groups: Dict<u64, Vec<u64>>,
}
#[handlers]
impl Back {
    #[rcv(sharded)]
    fn passed(&mut self, msg: &Passed) {
        if !msg.seq.is_multiple_of(3) {
            self.groups.entry(msg.group).or_default().push(msg.seq);
        }
    }
    #[rcv(sharded)]
    fn late(&mut self, msg: &Late) {
        self.groups.entry(msg.group).or_default().push(msg.seq);
    }
    #[rcv(sharded)]
    fn group(&mut self, msg: &Group) -> Vec<u64> {
        self.groups.get(&msg.0).cloned().unwrap_or_default()
    }
}

const SEED: u64 = 42;
const LANE: u64 = 77;
const MESSAGES: u64 = 400;
const KEYS: u64 = 10;

fn key_of(seq: u64) -> u64 {
    Chance(seq).below(KEYS)
}

#[test]
fn killed_at_any_moment_everything_is_handled_once() {
    for run in 0..6u64 {
        let mut log: Vec<Vec<u8>> = Vec::new();
        let mut chance = Chance(run);
        // Six incarnations, of which the last one runs to completion.
        for life in 0..6 {
            let last_life = life == 5;
            log = on_workers(3, async {
                let mut colony = crate::load::killed(&log);
                let journal =
                    TestJournal::start(run * 100 + life, if last_life { 0 } else { 40 }, colony.last);

                // A marker tells each incarnation that the previous one crashed.
                assert_eq!(colony.marker.is_some(), !log.is_empty());
                if run % 2 == 1 {
                    // Without it, unfinished messages do not run under a marker.
                    colony.marker = None
                }

                let hive = Hive::builder()
                    .app::<Front>()
                    .app::<Back>()
                    .seed(SEED)
                    .journal(journal.clone(), colony)
                    .start()
                    .unwrap();

                // The sender does not know which messages were handled, so it resends all of them.
                let mut io = hive.io();
                io.resume(LANE, 0);
                for seq in 0..MESSAGES {
                    io.emit(Hit { key: key_of(seq), seq });
                    if seq % 8 == 7 {
                        io.flush().await
                    }
                }

                if last_life {
                    check(&hive).await;
                    // messages without effect are recorded in the log a little later
                    let open = || {
                        let new = journal.log();
                        let all = log.iter().chain(&new).map(Vec::as_slice);
                        LogState::replay(all).unwrap().outbox.len()
                    };
                    eventually("all are handled in the log, too", Duration::from_secs(20), || open() == 0)
                        .await
                } else {
                    tokio::time::sleep(Duration::from_micros(chance.below(30_000))).await
                }

                // Kill the hive: nothing is committed from here on.
                journal.stop();
                let mut all = log.clone();
                all.extend(journal.log());
                hive.stop(Duration::ZERO).await;
                all
            });
        }

        let colony = LogState::replay(log.iter().map(Vec::as_slice)).unwrap();
        assert!(colony.outbox.is_empty(), "{:?}", colony.outbox.keys().collect::<Vec<_>>());
    }
}

async fn check(hive: &Hive) {
    let mut left = 2_000;
    loop {
        let mut all = Vec::new();
        for key in 0..KEYS {
            let hits = hive.request(Hits(key)).await.unwrap();
            assert!(hits.iter().all(|seq| key_of(*seq) == key));
            assert!(hits.is_sorted_by(|a, b| a < b), "one sender, one key: in order and once: {hits:?}");
            all.extend(hits);
        }

        let mut passed = Vec::new();
        for group in 0..4 {
            passed.extend(hive.request(Group(group)).await.unwrap());
        }

        all.sort_unstable();
        passed.sort_unstable();
        assert!(passed.is_sorted_by(|a, b| a < b), "something was passed on twice: {passed:?}");

        let want: Vec<u64> = (0..MESSAGES).collect();
        if all == want && passed == want {
            return;
        }

        left -= 1;
        assert!(left > 0, "{} of {MESSAGES} handled, {} passed on", all.len(), passed.len());
        tokio::time::sleep(Duration::from_millis(5)).await
    }
}
