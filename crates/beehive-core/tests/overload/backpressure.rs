//! Overload: memory use stays flat, no message is lost, credits are returned, and cycles are cut off.

use crate::load::{On, credits_are_back, eventually, on_workers, start};
use crate::memory::{alone, load_time, memory_is_flat, memory_stays_within};
use beehive_core::{App, Ctx, Dict, ErrorKind, Hive, Message, handlers, limits};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

// ---- a chain with a slow end ----

/// A message to the first app of the chain.
#[derive(Message)]
struct Enter {
    key: u64,
    bytes: Vec<u8>,
}
#[derive(Message)]
struct Through {
    key: u64,
    bytes: Vec<u8>,
}
#[derive(Message)]
#[message(reply = u64)]
struct Passed(u64);

#[derive(App)]
struct Front {
    entered: Dict<u64, u64>,
}
#[handlers]
impl Front {
    #[rcv(sharded)]
    fn enter(&mut self, msg: &Enter, ctx: &mut Ctx) {
        *self.entered.entry(msg.key).or_default() += 1;
        ctx.emit(Through { key: msg.key % 4, bytes: msg.bytes.clone() })
    }
}
#[derive(App)]
struct Back {
    passed: Dict<u64, u64>,
}
#[handlers]
impl Back {
    #[rcv(sharded)]
    fn through(&mut self, msg: &Through) {
        *self.passed.entry(msg.key).or_default() += 1;
        assert_eq!(msg.bytes.len(), 1_000);
        std::thread::sleep(Duration::from_micros(200));
    }
    #[rcv(sharded)]
    fn passed(&mut self, msg: &Passed) -> u64 {
        self.passed.get(&msg.0).copied().unwrap_or(0)
    }
}

#[test]
fn a_slow_end_of_a_chain_holds_back_its_start_and_nothing_is_lost() {
    alone(|| {
        on_workers(2, async {
            let (hive, _) = start(Hive::builder().app::<Front>().app::<Back>(), On::Memory);
            let mut io = hive.io_with_credits(1_000);
            let mut sent = 0u64;
            memory_is_flat("slow end", async {
                let until = Instant::now() + load_time();
                while Instant::now() < until {
                    for _ in 0..50 {
                        io.emit(Enter { key: sent % 64, bytes: vec![1; 1_000] });
                        sent += 1
                    }
                    io.flush().await
                }
            })
            .await;

            credits_are_back(&hive, &[&io], 1_000).await;
            let mut passed = 0;
            for key in 0..4 {
                passed += hive.request(Passed(key)).await.unwrap()
            }

            assert_eq!(passed, sent);
            assert!(sent > 2_000, "{sent}");
            hive.stop(Duration::from_secs(5)).await;
        })
    })
}

// ---- messages back and forth ----

/// Goes back and forth between two apps until `left` is zero.
#[derive(Message)]
struct Ping {
    key: u64,
    left: u64,
}
#[derive(Message)]
struct Pong {
    key: u64,
    left: u64,
}
macro_rules! player {
    ($app:ident, $takes:ident, $gives:ident, $reads:ident) => {
        #[derive(App)]
        struct $app {
            taken: Dict<u64, u64>,
        }
        #[derive(Message)]
        #[message(reply = u64)]
        struct $reads(u64);
        #[handlers]
        impl $app {
            #[rcv(sharded)]
            fn take(&mut self, msg: &$takes, ctx: &mut Ctx) {
                *self.taken.entry(msg.key).or_default() += 1;
                if msg.left > 0 {
                    ctx.emit($gives { key: msg.key, left: msg.left - 1 })
                }
            }
            #[rcv(sharded)]
            fn read(&mut self, msg: &$reads) -> u64 {
                self.taken.get(&msg.0).copied().unwrap_or(0)
            }
        }
    };
}
player!(Left, Ping, Pong, ReadLeft);
player!(Right, Pong, Ping, ReadRight);

#[test]
fn two_apps_that_flood_each_other_neither_grow_nor_lock_up() {
    alone(|| {
        on_workers(2, async {
            let (hive, _) = start(Hive::builder().app::<Left>().app::<Right>(), On::Memory);
            const HOPS: u64 = 300;
            let mut io = hive.io_with_credits(2_000);
            let mut games = 0u64;
            memory_is_flat("to and fro", async {
                let until = Instant::now() + load_time();
                while Instant::now() < until {
                    for _ in 0..100 {
                        io.emit(Ping { key: games % 16, left: HOPS });
                        games += 1
                    }
                    io.flush().await
                }
            })
            .await;

            credits_are_back(&hive, &[&io], 2_000).await;
            let (mut left, mut right) = (0, 0);
            for key in 0..16 {
                left += hive.request(ReadLeft(key)).await.unwrap();
                right += hive.request(ReadRight(key)).await.unwrap();
            }

            assert_eq!((left, right), (games * (HOPS / 2 + 1), games * HOPS / 2));
            assert_eq!(hive.status().cycles, 0);
            hive.stop(Duration::from_secs(5)).await;
        })
    })
}

#[test]
fn a_cycle_is_cut_off_counted_and_gives_its_credit_back() {
    for on in [On::Memory, On::Journal] {
        on_workers(2, async {
            let (hive, _journal) = start(Hive::builder().app::<Left>().app::<Right>(), on);
            hive.emit(Ping { key: 1, left: u64::MAX }).await;
            eventually("cut off", Duration::from_secs(30), || hive.status().cycles > 0).await;
            credits_are_back(&hive, &[], 0).await;

            let left = hive.request(ReadLeft(1)).await.unwrap();
            let right = hive.request(ReadRight(1)).await.unwrap();
            // the handler of the last message emits, so it fails, and its change is undone
            assert_eq!(left + right, limits::HOPS_PER_CAUSE_MAX as u64, "{on:?}");
            let kinds: Vec<_> = hive.dead_letters().iter().map(|letter| letter.error.kind()).collect();
            assert!(!kinds.is_empty() && kinds.iter().all(|kind| *kind == ErrorKind::Limit), "{kinds:?}");

            // A transaction is counted again if it is re-run because its record was refused.
            let cycles = hive.status().cycles;
            assert!(cycles == 1 || on == On::Journal, "{cycles}");

            // The longest allowed chain is not cut off.
            hive.emit(Ping { key: 2, left: limits::HOPS_PER_CAUSE_MAX as u64 }).await;
            let all = limits::HOPS_PER_CAUSE_MAX as u64 + 1;
            let mut sum = 0;

            for _ in 0..2_000 {
                sum = hive.request(ReadLeft(2)).await.unwrap() + hive.request(ReadRight(2)).await.unwrap();
                if sum == all {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await
            }

            assert_eq!((sum, hive.status().cycles), (all, cycles), "{on:?}");
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

// ---- one message to a thousand bees ----

#[derive(Message)]
struct Spread(u64);

#[derive(App)]
struct Fan {
    spread: Dict<u64, u64>,
}
#[handlers]
impl Fan {
    #[rcv(sharded)]
    fn spread(&mut self, msg: &Spread, ctx: &mut Ctx) {
        *self.spread.entry(msg.0).or_default() += 1;
        for key in 0..1_000 {
            ctx.emit(Ping { key, left: 0 })
        }
    }
}

#[test]
fn one_message_to_a_thousand_bees_is_bounded_by_its_one_credit() {
    const CREDITS: u32 = 50;
    /// The memory of a message that waits in a mailbox: its delivery, and its batch.
    const BYTES_PER_MESSAGE_MAX: u64 = 400;
    alone(|| {
        on_workers(2, async {
            let (hive, _) = start(Hive::builder().app::<Fan>().app::<Left>(), On::Memory);
            let mut io = hive.io_with_credits(CREDITS);
            let mut sent = 0u64;
            // how many of the credits are in use at once depends on when the threads run
            let most = u64::from(CREDITS) * 1_000 * BYTES_PER_MESSAGE_MAX;
            memory_stays_within("one to a thousand", most, async {
                let until = Instant::now() + load_time();
                while Instant::now() < until {
                    io.emit(Spread(sent % 8));
                    sent += 1;
                    io.flush().await
                }
            })
            .await;

            credits_are_back(&hive, &[&io], CREDITS).await;
            for key in (0..1_000).step_by(37) {
                assert_eq!(hive.request(ReadLeft(key)).await, Ok(sent));
            }

            hive.stop(Duration::from_secs(5)).await;
        })
    })
}

// ---- one slow place among a thousand ----

/// Whether the slow place is currently slow.
static SLOW: AtomicBool = AtomicBool::new(false);

#[derive(Message)]
#[message(reply = u64)]
struct Work {
    place: u64,
    may_be_slow: bool,
}
#[derive(App)]
struct Worker {
    done: Dict<u64, u64>,
}
#[handlers]
impl Worker {
    #[rcv(sharded)]
    fn work(&mut self, msg: &Work) -> u64 {
        let done = self.done.entry(msg.place).or_default();
        *done += 1;
        if msg.may_be_slow && SLOW.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(10))
        }
        *done
    }
}

const PLACES: u64 = 1_000;

/// Returns how many messages all places except the first one handle while the first place is fast, and how many
/// while it is slow. Every place has its own IO bee.
///
/// Both numbers are measured on one hive, alternating in short turns. Other load on the machine therefore affects
/// both equally, and the two measurements do not take processor time from each other, as they would on two hives
/// side by side.
async fn handled_by_the_others(time: Duration) -> (u64, u64) {
    const TURN: Duration = Duration::from_millis(50);

    let (hive, _) = start(Hive::builder().app::<Worker>(), On::Memory);
    let over = Arc::new(AtomicBool::new(false));
    let handled = Arc::new(AtomicU64::new(0));
    let mut feeding = Vec::new();

    for place in 0..PLACES {
        let (hive, over, handled) = (hive.clone(), over.clone(), handled.clone());
        feeding.push(tokio::spawn(async move {
            let mut io = hive.io_with_credits(64);
            let (mut sent, mut answered) = (0u64, 0u64);
            while !over.load(Ordering::Relaxed) {
                for _ in 0..16 {
                    io.emit(Work { place, may_be_slow: place == 0 });
                    sent += 1
                }
                io.flush().await;
                let mail = io.receive().await;
                let answers = mail.into_answers::<Work>().ok().unwrap().into_iter().count() as u64;
                answered += answers;
                if place != 0 {
                    handled.fetch_add(answers, Ordering::Relaxed);
                }
                tokio::task::yield_now().await
            }

            while answered < sent {
                let mail =
                    tokio::time::timeout(Duration::from_secs(20), io.receive()).await.expect("all answered");
                answered += mail.into_answers::<Work>().ok().unwrap().into_iter().count() as u64
            }
        }))
    }

    let turns = (time.as_millis() / TURN.as_millis() / 2) as u32;
    let (mut fast, mut slow) = (0.0, 0.0);
    for turn in 0..turns * 2 {
        let is_slow = turn % 2 == 1;
        SLOW.store(is_slow, Ordering::Relaxed);
        let (before, began) = (handled.load(Ordering::Relaxed), Instant::now());
        tokio::time::sleep(TURN).await;

        // divide by the actual time, because a timer that fires late makes the turn longer
        let rate = (handled.load(Ordering::Relaxed) - before) as f64 / began.elapsed().as_secs_f64();
        match is_slow {
            true => slow += rate * TURN.as_secs_f64(),
            false => fast += rate * TURN.as_secs_f64(),
        }
    }
    SLOW.store(false, Ordering::Relaxed);

    over.store(true, Ordering::Relaxed);
    for task in feeding {
        task.await.unwrap()
    }

    credits_are_back(&hive, &[], 0).await;
    hive.stop(Duration::from_secs(5)).await;
    (fast as u64, slow as u64)
}

#[test]
fn a_slow_place_among_a_thousand_takes_little_from_the_others() {
    alone(|| {
        let (fast, slow) = on_workers(2, handled_by_the_others(load_time()));
        println!("the others handle {slow} messages beside the slow place, {fast} without it");
        assert!(slow * 10 >= fast * 8, "{slow} instead of {fast}");
    })
}
