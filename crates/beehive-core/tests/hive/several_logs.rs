//! Several logs in one hive: apps exchange messages, and each app has its own log. When the hive is killed,
//! one log may be ahead of the others.

use crate::load::{eventually, on_workers};
use crate::log_checks::{check_memory, replay};
use crate::relay::{APPS, Begin, Clear, KEYS, Plant, apps};
use crate::relay_load::{Divided, Load, Ran};
use beehive_core::journal::LogState;
use beehive_core::testing::TestJournal;
use beehive_core::{Hive, limits};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn live_and_die(divided: Divided, logs: usize, seed: u64) {
    let messages = 6_000;
    run(&Load::new(divided, logs, messages), seed);
}

/// Runs a load. Checks that enough bees move.
fn run(load: &Load, seed: u64) -> Ran {
    let ran = load.run(seed).unwrap_or_else(|found| panic!("seed {seed}, {load:?}: {found}"));
    let must_move = if load.divided.moves_bees(load.logs) { load.messages / 100 } else { 0 };
    assert!(ran.moves >= must_move, "{ran:?}");
    ran
}

/// Starts a hive whose apps are divided among empty logs that refuse nothing.
fn start(logs: usize, seed: u64) -> (Hive, Vec<Arc<TestJournal>>) {
    let (mut builder, mut journals) = (apps(), Vec::new());
    for at in 0..logs {
        let journal = TestJournal::start(seed * 31 + at as u64, 0, 0);
        let its_apps = APPS.iter().skip(at).step_by(logs).copied();
        builder = builder.journal_of(its_apps, journal.clone(), LogState::default());
        journals.push(journal)
    }
    (builder.start().unwrap(), journals)
}

#[test]
fn each_message_is_handled_once_wherever_the_logs_end() {
    let seeds = if std::env::var_os("BEEHIVE_LONG").is_some() { 40 } else { 2 };
    for seed in 1..=seeds {
        for logs in [1, 2, 4] {
            live_and_die(Divided::ByApp, logs, seed)
        }
    }
}

/// The bees of all apps are spread over the logs, and move all the time.
#[test]
fn each_message_is_handled_once_wherever_bees_move() {
    let seeds = if std::env::var_os("BEEHIVE_LONG").is_some() { 40 } else { 2 };
    for seed in 1..=seeds {
        for logs in [1, 2, 8] {
            live_and_die(Divided::ByBee, logs, seed)
        }
    }
}

/// Two apps have a log each, and the bees of the other apps are spread over the other logs, and move.
#[test]
fn each_message_is_handled_once_if_only_some_apps_have_a_log_of_their_own() {
    let seeds = if std::env::var_os("BEEHIVE_LONG").is_some() { 40 } else { 2 };
    for seed in 1..=seeds {
        for logs in [2, 8] {
            live_and_die(Divided::Mixed, logs, seed)
        }
    }
}

/// Each life of the hive begins a term of its logs, in which entries of the life before arrive late. Meanwhile the journals
/// refuse one entry in 50, and sometimes everything for a while, and bees move all the time. `BEEHIVE_LONG=1` handles more than
/// a million messages with each number of logs, with the seed `BEEHIVE_SEED`, or 1; it takes some ten minutes and 10 GB of memory
/// with 8 logs.
#[test]
fn each_message_is_handled_once_in_many_terms() {
    let is_long = std::env::var_os("BEEHIVE_LONG").is_some();
    let seed =
        std::env::var("BEEHIVE_SEED").map_or(1, |seed| seed.parse().expect("BEEHIVE_SEED is a number"));
    for logs in if is_long { &[8, 4, 2, 1][..] } else { &[8] } {
        let messages = if is_long { 140_000 } else { 3_000 };
        let lives = if is_long { 10 } else { 4 };
        let life = if is_long { 1_000..6_000 } else { 20..120 };
        let load = Load::new(Divided::ByBee, *logs, messages);
        let patience = Duration::from_secs(if is_long { 600 } else { 60 });
        let load = Load { lives, life, patience, is_long: true, begins_terms: true, merges: 6, ..load };
        let began = Instant::now();
        let ran = run(&load, seed);
        let terms = lives * *logs as u64;
        println!("{logs} logs, seed {seed}, {terms} terms, {ran:?}, in {:.1?}", began.elapsed());
        assert!(ran.refused > 0 && ran.late > 0, "{ran:?}");
        assert!(!is_long || ran.handled > 1_000_000, "{ran:?}")
    }
}

/// A receiver in another log remembers a sender's messages only until the sender announces a floor above
/// them. From then on, the sender does not resend them.
#[test]
fn what_came_from_another_log_is_forgotten() {
    on_workers(2, async {
        let (hive, journals) = start(4, 5);
        let mut io = hive.io();
        for id in 0..4_000 {
            io.emit(Begin(id));
            if id.is_multiple_of(100) {
                io.flush().await;
                while io.try_receive().is_some() {}
            }
        }
        io.flush().await;
        hive.idle().await;
        let brief =
            |state: &LogState| state.bees.values().filter(|bee| bee.state.images().next().is_none()).count();
        eventually("bees without cells have ended", Duration::from_secs(20), || {
            let log = journals[2].log();
            brief(&replay(&log)) == 0
        })
        .await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        // the next messages announce a floor above the earlier ones
        for id in 4_000..4_000 + 10 * KEYS {
            io.emit(Begin(id))
        }
        io.flush().await;
        hive.idle().await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let logs: Vec<_> = journals.iter().map(|journal| journal.log()).collect();
        journals.iter().for_each(|journal| journal.stop());
        hive.stop(Duration::ZERO).await;
        check_memory(&logs).unwrap_or_else(|found| panic!("{found}"))
    })
}

/// A message that no app answers must be neither lost nor delayed because another app's log commits nothing.
#[test]
fn a_log_that_cannot_commit_holds_up_only_its_own_apps() {
    on_workers(2, async {
        let (hive, journals) = start(2, 6);
        // the log of `second` and `fourth`
        journals[1].stall(true);
        let (mut to_stalled, mut io) = (hive.io(), hive.io());
        to_stalled.emit(Plant(1));
        to_stalled.flush().await;
        for key in 0..20_000 {
            io.emit(Clear(key % 100));
            if key.is_multiple_of(100) {
                io.flush().await
            }
        }
        io.flush().await;
        let cleared = || io.floor() == 20_000;
        eventually("the other log goes on", Duration::from_secs(20), cleared).await;
        assert_eq!(to_stalled.floor(), 0);
        journals[1].stall(false);
        eventually("all are done", Duration::from_secs(20), || to_stalled.floor() == 1).await;
        hive.stop(Duration::from_secs(5)).await;
        journals.iter().for_each(|journal| journal.stop())
    })
}

/// Messages that enter through the hive share a lane. One of them must not hold up the others because its log commits
/// nothing.
#[test]
fn a_message_of_the_hive_to_a_log_that_cannot_commit_holds_up_no_other() {
    on_workers(2, async {
        let (hive, journals) = start(2, 6);
        // the log of `second` and `fourth`
        journals[1].stall(true);
        hive.emit(Plant(1)).await;
        let sending = async {
            for key in 0..3 * limits::LANE_WINDOW_MAX {
                hive.emit(Clear(key % 100)).await
            }
        };
        let sent = tokio::time::timeout(Duration::from_secs(20), sending).await;
        assert!(sent.is_ok(), "the messages to the other log wait");
        journals[1].stall(false);
        hive.idle().await;
        hive.stop(Duration::from_secs(5)).await;
        journals.iter().for_each(|journal| journal.stop())
    })
}

/// Messages that enter through the hive take credits. Those whose log commits nothing must leave some for the others.
#[test]
fn messages_to_a_log_that_cannot_commit_leave_credits_for_others() {
    on_workers(2, async {
        let (hive, journals) = start(2, 6);
        // the log of `second` and `fourth`
        journals[1].stall(true);
        let mut stuck = 0;
        while hive.try_emit(Plant(stuck % 100)).is_ok() {
            stuck += 1
        }
        assert!(stuck >= u64::from(limits::CREDITS_PER_IO_BEE), "{stuck}");
        let sending = async {
            for key in 0..3 * limits::LANE_WINDOW_MAX {
                hive.emit(Clear(key % 100)).await
            }
        };
        let sent = tokio::time::timeout(Duration::from_secs(20), sending).await;
        assert!(sent.is_ok(), "the messages to the other log wait");
        assert_eq!(hive.status().credits_free, 0, "the first ones are not done");
        journals[1].stall(false);
        hive.idle().await;
        assert_eq!(hive.status().credits_free, limits::CREDITS_PER_IO_BEE);
        hive.stop(Duration::from_secs(5)).await;
        journals.iter().for_each(|journal| journal.stop())
    })
}

/// A driver sends to apps of all logs.
#[test]
fn a_message_of_an_io_bee_to_a_log_that_cannot_commit_holds_up_no_other() {
    on_workers(2, async {
        let (hive, journals) = start(2, 6);
        // the log of `second` and `fourth`
        journals[1].stall(true);
        let mut io = hive.io();
        io.emit(Plant(1));
        io.flush().await;
        for sends_later in [false, true] {
            let sending = async {
                for key in 0..3 * limits::LANE_WINDOW_MAX {
                    io.emit(Clear(key % 100));
                    if key.is_multiple_of(100) && sends_later {
                        // waiting for mail sends what is kept
                        while io.try_flush().is_err() {
                            let _ = tokio::time::timeout(Duration::from_millis(10), io.arrived()).await;
                        }
                    } else if key.is_multiple_of(100) {
                        io.flush().await
                    }
                }
                io.flush().await
            };
            let sent = tokio::time::timeout(Duration::from_secs(20), sending).await;
            assert!(sent.is_ok(), "the messages to the other log wait");
        }
        journals[1].stall(false);
        hive.idle().await;
        assert_eq!(io.credits(), limits::CREDITS_PER_IO_BEE);
        hive.stop(Duration::from_secs(5)).await;
        journals.iter().for_each(|journal| journal.stop())
    })
}
