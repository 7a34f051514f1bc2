//! Tests the time that handlers see: while one thread is busy for a long time, and after a restart with a wrong clock.

use crate::load::{Ahead, alone, killed, on_workers};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Message, Time, handlers, limits};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Keeps its thread busy and checks the clock.
#[derive(Message)]
#[message(reply = ())]
struct Work(u64);
/// Sent by a handler to another cell. It must not arrive before the time at which it was sent.
#[derive(Message)]
struct Sent {
    to: u64,
    at: Time,
}
/// Sent by a timer that is due at time `at`.
#[derive(Message)]
struct Due {
    to: u64,
    at: Time,
}

#[derive(App)]
struct Watched {
    cells: Dict<u64, u64>,
}

/// The hive's time and the test's time, read together.
static BEGAN: OnceLock<(Time, Instant)> = OnceLock::new();
/// Maximum delay of a handler's time behind the real time, in microseconds.
static BEHIND: AtomicU64 = AtomicU64::new(0);
static EARLY: AtomicU64 = AtomicU64::new(0);
static DUE: AtomicU64 = AtomicU64::new(0);

#[handlers]
impl Watched {
    #[rcv(sharded)]
    fn work(&mut self, msg: &Work, ctx: &mut Ctx) {
        self.cells.put(msg.0, 1);
        let (time, instant) = BEGAN.get_or_init(|| (ctx.now(), Instant::now()));
        let behind = instant.elapsed().saturating_sub(ctx.now().since(*time));
        BEHIND.fetch_max(behind.as_micros() as u64, Ordering::Relaxed);
        ctx.emit(Sent { to: msg.0 + 1, at: ctx.now() });
        let delay = Duration::from_millis(5);
        ctx.after(delay, Due { to: msg.0 + 2, at: ctx.now() + delay });
        std::thread::sleep(Duration::from_millis(2))
    }
    #[rcv(sharded)]
    fn sent(&mut self, msg: &Sent, ctx: &mut Ctx) {
        self.cells.put(msg.to, 2);
        EARLY.fetch_add(u64::from(ctx.now() < msg.at), Ordering::Relaxed);
    }
    #[rcv(sharded)]
    fn due(&mut self, msg: &Due, ctx: &mut Ctx) {
        self.cells.put(msg.to, 3);
        EARLY.fetch_add(u64::from(ctx.now() < msg.at), Ordering::Relaxed);
        DUE.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn time_goes_on_where_a_thread_never_runs_out_of_bees() {
    let _alone = alone();
    on_workers(2, async {
        let hive = Hive::builder().app::<Watched>().start().unwrap();
        let tasks: Vec<_> = (0..8u64)
            .map(|task| {
                let hive = hive.clone();
                tokio::spawn(async move {
                    for n in 0..100 {
                        hive.request_within(Duration::from_secs(60), Work(task * 1_000 + n % 7))
                            .await
                            .unwrap()
                    }
                })
            })
            .collect();

        for task in tasks {
            task.await.unwrap()
        }

        hive.idle().await;
        hive.stop(Duration::from_secs(5)).await;
    });

    let behind = Duration::from_micros(BEHIND.load(Ordering::Relaxed));
    assert!(DUE.load(Ordering::Relaxed) > 0);
    assert_eq!(EARLY.load(Ordering::Relaxed), 0, "handled before they were sent, or due");
    assert!(behind < Duration::from_millis(250), "a handler's time was {behind:?} behind");
}

/// Answers with the time, and with the number of the timers of earlier questions that have fired.
#[derive(Message)]
#[message(reply = (Time, u64))]
struct Ask;
/// A timer of [`Ask`].
#[derive(Message)]
struct Rang;

#[derive(App)]
struct Asked {
    rung: Dict<u64, u64>,
}

#[handlers]
impl Asked {
    #[rcv(centralized)]
    fn ask(&mut self, _: &Ask, ctx: &mut Ctx) -> (Time, u64) {
        ctx.after(Duration::from_millis(20), Rang);
        (ctx.now(), self.rung.update(0, |rung| *rung))
    }
    #[rcv(centralized)]
    fn rang(&mut self, _: &Rang) {
        self.rung.update(0, |rung| *rung += 1)
    }
}

/// The clock of the machine is set back by a year, and then forward by two, while the hive does not run.
#[test]
fn a_clock_that_is_off_by_a_year_neither_stops_time_nor_lets_it_leap() {
    const YEAR: Duration = Duration::from_secs(365 * 86_400);
    let (mut log, mut last): (Vec<Vec<u8>>, Option<Time>) = (Vec::new(), None);
    for (life, years) in [2, 1, 3].into_iter().enumerate() {
        let began = Instant::now();
        log.extend(on_workers(2, async {
            let colony = killed(&log);
            let journal = TestJournal::start(life as u64 + 1, 0, colony.last);
            let builder = Hive::builder().app::<Asked>().seed(5).platform(Ahead::by(years * YEAR));
            let hive = builder.journal(journal.clone(), colony).start().unwrap();
            let (first, _) = hive.request(Ask).await.unwrap();
            if let Some(last) = last {
                assert!(first >= last, "life {life}: time goes on");
                let leap = first.since(last);
                assert!(leap < limits::CLOCK_JUMP_MAX + began.elapsed() * 2, "life {life}: {leap:?}")
            }

            let rung = async {
                while hive.request(Ask).await.unwrap().1 == 0 {
                    tokio::time::sleep(Duration::from_millis(10)).await
                }
            };
            tokio::time::timeout(Duration::from_secs(60), rung).await.expect("timers fire");
            last = Some(hive.request(Ask).await.unwrap().0);
            hive.idle().await;
            hive.stop(Duration::from_secs(5)).await;
            journal.log()
        }))
    }
}
