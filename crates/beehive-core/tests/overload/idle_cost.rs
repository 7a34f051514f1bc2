//! The cost of idle bees and of pending timers: a hundred thousand of each, or a million bees with
//! `BEEHIVE_LONG=1`.

use crate::load::on_workers;
use crate::memory::{alone, resident};
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use std::time::{Duration, Instant};

#[derive(Message)]
struct Count(u64);
/// Sets a timer for about an hour.
#[derive(Message)]
struct Later(u64);

#[derive(App)]
struct Counters {
    counts: Dict<u64, u64>,
}
#[handlers]
impl Counters {
    #[rcv(sharded)]
    fn count(&mut self, msg: &Count) {
        *self.counts.entry(msg.0).or_default() += 1
    }
    #[rcv(stateless)]
    fn later(&mut self, msg: &Later, ctx: &mut Ctx) {
        // Each timer has a time of its own, because timers with the same time count as one.
        ctx.after(Duration::from_secs(3600) + Duration::from_nanos(msg.0), Count(msg.0))
    }
}

/// Maximum bookkeeping for a bee with one cell, in bytes. The goal of 256 is not quite reached
/// (`benches/README.md`).
const BYTES_PER_BEE_MAX: u64 = 315;
/// Size of the cell's key and value.
const BYTES_OF_THE_USER: u64 = 16;

pub(crate) fn bees() -> u64 {
    if std::env::var_os("BEEHIVE_LONG").is_some() { 1_000_000 } else { 100_000 }
}

/// Returns the processor time that this process has used.
fn spent() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The fields after the name, which is in parentheses and may contain spaces.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    Duration::from_millis(10 * (ticks(11) + ticks(12)))
}

/// Returns the processor time that one idle second takes.
async fn idle_second(hive: &Hive) -> Duration {
    hive.idle().await;
    // Let the work of the last messages finish first.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (began, spent_before) = (Instant::now(), spent());
    tokio::time::sleep(Duration::from_secs(1)).await;
    (spent() - spent_before).div_f64(began.elapsed().as_secs_f64())
}

/// Tolerance for the resolution of a clock that ticks a hundred times a second.
const NOISE: Duration = Duration::from_millis(40);

async fn emitted<M: Message>(hive: &Hive, count: u64, message: impl Fn(u64) -> M) {
    let mut io = hive.io();
    for first in (0..count).step_by(1000) {
        (first..count.min(first + 1000)).for_each(|key| io.emit(message(key)));
        io.flush().await
    }
    hive.idle().await
}

#[test]
fn an_idle_bee_takes_little_memory_and_no_time() {
    alone(|| {
        on_workers(2, async {
            let hive = Hive::builder().app::<Counters>().start().unwrap();
            // The first messages allocate buffers that all later ones reuse.
            emitted(&hive, 1000, |key| Count(key + (1 << 40))).await;
            let empty = idle_second(&hive).await;
            let before = resident();

            emitted(&hive, bees(), Count).await;
            let each = resident().saturating_sub(before) / bees();
            println!("{each} bytes a bee, {} of them the user's", BYTES_OF_THE_USER);
            assert_eq!(hive.status().apps[0].bees as u64, bees() + 1000);
            assert!(each <= BYTES_PER_BEE_MAX + BYTES_OF_THE_USER, "{each} bytes a bee");

            let full = idle_second(&hive).await;
            println!("an idle second takes {empty:?} with 1000 bees, {full:?} with {}", bees() + 1000);
            assert!(
                full <= empty + NOISE,
                "an idle second takes {empty:?} with few bees, {full:?} with many"
            );
            hive.stop(Duration::ZERO).await;
        })
    })
}

#[test]
fn timers_that_are_not_due_take_no_time() {
    const TIMERS: u64 = 100_000;
    alone(|| {
        on_workers(2, async {
            let hive = Hive::builder().app::<Counters>().start().unwrap();
            let empty = idle_second(&hive).await;
            emitted(&hive, TIMERS, Later).await;
            assert!(hive.status().timers as u64 >= TIMERS);

            let full = idle_second(&hive).await;
            println!("an idle second takes {empty:?} without timers, {full:?} with {TIMERS}");
            assert!(
                full <= empty + NOISE,
                "an idle second takes {empty:?} without timers, {full:?} with many"
            );
            hive.stop(Duration::ZERO).await;
        })
    })
}
