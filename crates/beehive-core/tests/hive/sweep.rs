//! Sweeps and timers: each cell is visited once and in the sender's order, even while bees merge. At most one
//! tick is pending.

use crate::load::{Chance, EVERYWHERE, On, eventually, on_workers, start, unheard};
use beehive_core::testing::Kit;
use beehive_core::{App, Ctx, Dict, Hive, Message, Time, handlers, limits};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Appends a number to the lists of some keys. Several keys are joined.
#[derive(Message)]
struct Append {
    keys: Vec<u64>,
    number: u64,
}
/// Appends a number to the list of every key.
#[derive(Message)]
struct All(u64);
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct Numbers(u64);
#[derive(Message)]
struct Erase(u64);

#[derive(App)]
struct Rolls {
    numbers: Dict<u64, Vec<u64>>,
}
#[handlers]
impl Rolls {
    #[rcv(joins)]
    fn append(&mut self, msg: &Append) {
        for key in &msg.keys {
            self.numbers.entry(*key).or_default().push(msg.number)
        }
    }
    #[rcv(each = numbers)]
    fn all(&mut self, key: &u64, msg: &All) {
        self.numbers.entry(*key).or_default().push(msg.0)
    }
    #[rcv(sharded)]
    fn erase(&mut self, msg: &Erase) {
        self.numbers.remove(&msg.0);
    }
    #[rcv(sharded)]
    fn numbers(&mut self, msg: &Numbers) -> Vec<u64> {
        self.numbers.get(&msg.0).cloned().unwrap_or_default()
    }
}

async fn numbers(hive: &Hive, key: u64) -> Vec<u64> {
    hive.request_within(Duration::from_secs(30), Numbers(key)).await.unwrap()
}

async fn numbers_of(hive: &Hive, key: u64, count: usize) -> Vec<u64> {
    for _ in 0..2_000 {
        let got = numbers(hive, key).await;
        if got.len() >= count {
            return got;
        }
        tokio::time::sleep(Duration::from_millis(2)).await
    }
    numbers(hive, key).await
}

#[test]
fn a_sweep_reaches_every_cell_once_and_creates_none() {
    for on in EVERYWHERE {
        on_workers(2, async {
            let (hive, _journal) = start(Hive::builder().app::<Rolls>(), on);
            const KEYS: u64 = 300;
            let mut io = hive.io();
            for key in 0..KEYS {
                io.emit(Append { keys: vec![key], number: 0 })
            }

            // Some of the cells share a bee.
            io.emit(Append { keys: (0..40).collect(), number: 1 });
            io.flush().await;
            for key in 0..KEYS {
                numbers_of(&hive, key, if key < 40 { 2 } else { 1 }).await;
            }

            hive.emit(Erase(5)).await;
            hive.emit(Erase(KEYS - 1)).await;
            let _ = (numbers(&hive, 5).await, numbers(&hive, KEYS - 1).await);
            for sweep in 100..105 {
                hive.emit(All(sweep)).await
            }

            for key in 0..KEYS {
                let start: &[u64] = match key {
                    5 | 299 => &[],
                    0..40 => &[0, 1],
                    _ => &[0],
                };

                let mut want = start.to_vec();
                if !want.is_empty() {
                    want.extend(100..105)
                }

                assert_eq!(numbers_of(&hive, key, want.len()).await, want, "key {key}, {on:?}");
            }

            tokio::time::sleep(Duration::from_millis(20)).await;
            for key in [0, 5, 50, KEYS - 1] {
                assert!(numbers(&hive, key).await.len() <= 7);
            }

            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

/// Messages of one sender to one cell and to all cells arrive in the order in which they were sent.
#[test]
fn a_sweep_keeps_its_place_in_the_order_of_its_sender() {
    for on in EVERYWHERE {
        on_workers(3, async {
            let (hive, _journal) = start(Hive::builder().app::<Rolls>(), on);
            for round in 0..if on == On::Memory { 100 } else { 10 } {
                let (a, b) = (round * 2, round * 2 + 1);
                let mut io = hive.io();
                io.emit(Append { keys: vec![a], number: round * 100 });
                io.emit(Append { keys: vec![b], number: round * 100 });
                io.flush().await;
                numbers_of(&hive, a, 1).await;
                numbers_of(&hive, b, 1).await;

                // The second message waits for a merge.
                let base = round * 100;
                io.emit(All(base + 1));
                io.emit(Append { keys: vec![a, b], number: base + 2 });
                io.emit(All(base + 3));
                io.emit(Append { keys: vec![a], number: base + 4 });
                io.emit(All(base + 5));
                io.flush().await;
                for (key, want) in [(a, vec![0, 1, 2, 3, 4, 5]), (b, vec![0, 1, 2, 3, 5])] {
                    let want: Vec<u64> = want.into_iter().map(|n| base + n).collect();
                    assert_eq!(numbers_of(&hive, key, want.len()).await, want, "round {round}, {on:?}");
                }

                // Remove the cells of this round so that the sweeps of the next round visit only that round's
                // cells.
                io.emit(Erase(a));
                io.emit(Erase(b));
                io.flush().await;
                let _ = (numbers(&hive, a).await, numbers(&hive, b).await);
            }

            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

#[test]
fn no_cell_is_missed_or_met_twice_while_bees_merge() {
    for on in EVERYWHERE {
        on_workers(4, async {
            let (hive, _journal) = start(Hive::builder().app::<Rolls>(), on);
            let (rounds, keys) = if on == On::Memory { (12, 128) } else { (3, 64) };
            for round in 0..rounds {
                let first = round * 1_000;
                let mut io = hive.io();
                for key in first..first + keys {
                    io.emit(Append { keys: vec![key], number: 0 })
                }

                io.flush().await;
                for key in first..first + keys {
                    numbers_of(&hive, key, 1).await;
                }

                let merging = hive.clone();
                let merges = tokio::spawn(async move {
                    let mut chance = Chance(round);
                    let mut io = merging.io();
                    for _ in 0..keys * 2 {
                        let pair = vec![first + chance.below(keys), first + chance.below(keys)];
                        io.emit(Append { keys: pair, number: 1 });
                        io.flush().await;
                        if chance.below(4) == 0 {
                            tokio::task::yield_now().await
                        }
                    }
                });

                const SWEEPS: u64 = 20;
                let mut sweeper = hive.io();
                for sweep in 0..SWEEPS {
                    sweeper.emit(All(100 + sweep));
                    sweeper.flush().await;
                    tokio::task::yield_now().await
                }

                merges.await.unwrap();
                for key in first..first + keys {
                    let mut swept = Vec::new();
                    for _ in 0..1_000 {
                        swept = numbers(&hive, key).await;
                        swept.retain(|n| *n >= 100);
                        if swept.len() as u64 >= SWEEPS {
                            break;
                        }
                        tokio::time::sleep(Duration::from_millis(2)).await
                    }

                    let want: Vec<u64> = (100..100 + SWEEPS).collect();
                    assert_eq!(swept, want, "key {key}, {on:?}");
                }

                for key in first..first + keys {
                    hive.emit(Erase(key)).await
                }

                let _ = numbers(&hive, first + keys - 1).await;
            }

            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

// ---- timers ----

#[derive(Message)]
struct Plant(Vec<u64>);
#[derive(Message)]
#[message(reply = Vec<Time>)]
struct Ticks(u64);

const PERIOD: Duration = Duration::from_millis(400);

#[derive(App)]
struct Garden {
    ticks: Dict<u64, Vec<Time>>,
}
#[handlers]
impl Garden {
    #[rcv(joins)]
    fn plant(&mut self, msg: &Plant) {
        for key in &msg.0 {
            self.ticks.entry(*key).or_default();
        }
    }
    #[every("400ms", each = ticks)]
    fn tick(&mut self, key: &u64, ctx: &mut Ctx) {
        self.ticks.entry(*key).or_default().push(ctx.now())
    }
    #[rcv(sharded)]
    fn ticks(&mut self, msg: &Ticks) -> Vec<Time> {
        self.ticks.get(&msg.0).cloned().unwrap_or_default()
    }
}

/// A sweep spread over half of its period visits every cell once, even if bees merge meanwhile. With virtual
/// time, a delay of the machine cannot be mistaken for a delay of the sweep.
#[test]
fn a_paced_sweep_meets_every_cell_once_in_each_period_while_bees_merge() {
    let mut kit = Kit::of::<Garden>().start();
    let began = kit.hive().now();
    const KEYS: u64 = 256;
    for key in 0..KEYS {
        kit.emit(Plant(vec![key]));
    }

    // Pairs are merged continuously, so some merge between the visits to their two cells.
    let mut merged = 0;
    for pair in 0..KEYS / 2 {
        kit.emit(Plant(vec![pair * 2, pair * 2 + 1]));
        merged += 1;
        kit.advance(Duration::from_millis(12));
    }

    assert_eq!(kit.hive().status().apps[0].bees_merged, merged);
    // Sweeps start at the end of every period and are complete by the middle of the next.
    let sweeps = (kit.hive().now().since(began).as_nanos() / PERIOD.as_nanos()) as usize - 1;

    assert!(sweeps >= 2);
    for key in 0..KEYS {
        let ticks = kit.request(Ticks(key)).unwrap();
        for pair in ticks.windows(2) {
            let apart = pair[1].since(pair[0]);
            // The minimum is the time from the end of one sweep to the start of the next.
            assert!(apart >= PERIOD / 2, "key {key}: met twice within {apart:?}: {ticks:?}");
            assert!(apart <= PERIOD * 3 / 2, "key {key}: missed for {apart:?}: {ticks:?}");
        }
        assert!(ticks.len() + 1 >= sweeps, "key {key}: {} of {sweeps}", ticks.len());
    }
}

static SLOW_TICKS: AtomicU64 = AtomicU64::new(0);
static INSIDE: AtomicU64 = AtomicU64::new(0);
static TWO_INSIDE: AtomicU64 = AtomicU64::new(0);

#[derive(App)]
struct Slow {
    ticks: Dict<u64, u64>,
}
#[handlers]
impl Slow {
    #[every("10ms")]
    fn tick(&mut self, ctx: &mut Ctx) {
        *self.ticks.entry(ctx.origin().0 as u64).or_default() += 1;
        if INSIDE.fetch_add(1, Ordering::AcqRel) > 0 {
            TWO_INSIDE.fetch_add(1, Ordering::Relaxed);
        }
        std::thread::sleep(Duration::from_millis(100));
        SLOW_TICKS.fetch_add(1, Ordering::Relaxed);
        INSIDE.fetch_sub(1, Ordering::AcqRel);
    }
}
static QUICK_TICKS: AtomicU64 = AtomicU64::new(0);
#[derive(App)]
struct Quick {
    ticks: Dict<u64, u64>,
}
#[handlers]
impl Quick {
    #[every("10ms")]
    fn tick(&mut self, ctx: &mut Ctx) {
        *self.ticks.entry(ctx.origin().0 as u64).or_default() += 1;
        QUICK_TICKS.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn one_tick_is_pending_at_most_and_missed_ones_collapse() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Slow>().app::<Quick>(), On::Memory);
        tokio::time::sleep(Duration::from_millis(1_000)).await;
        let (slow, quick) = (SLOW_TICKS.load(Ordering::Relaxed), QUICK_TICKS.load(Ordering::Relaxed));
        assert!((5..=10).contains(&slow), "{slow}");
        assert!((40..=101).contains(&quick), "a slow timer holds up another: {quick}");
        assert_eq!(TWO_INSIDE.load(Ordering::Relaxed), 0);
        assert!(hive.status().ticks_collapsed >= 40);

        // No ticks have piled up: none arrives after the hive has stopped.
        hive.stop(Duration::from_secs(2)).await;
        let at_stop = SLOW_TICKS.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(300)).await;

        assert!(SLOW_TICKS.load(Ordering::Relaxed) <= at_stop + 1);
        let quick = QUICK_TICKS.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(QUICK_TICKS.load(Ordering::Relaxed), quick);
    })
}

// ---- timers set by `after` ----

#[derive(Message)]
struct Remind {
    key: u64,
    milliseconds: u64,
    fail: bool,
}
#[derive(Message)]
struct Reminder {
    key: u64,
    asked: Time,
    milliseconds: u64,
}
#[derive(Message)]
#[message(reply = Vec<(u64, u64)>)]
struct Reminded(u64);

#[derive(App)]
struct Clock {
    reminded: Dict<u64, Vec<(u64, u64)>>,
}
#[handlers]
impl Clock {
    #[rcv(sharded)]
    fn remind(&mut self, msg: &Remind, ctx: &mut Ctx) {
        let _ = self.reminded.contains(&msg.key);
        let reminder = Reminder { key: msg.key, asked: ctx.now(), milliseconds: msg.milliseconds };
        ctx.after(Duration::from_millis(msg.milliseconds), reminder);
        if msg.fail {
            unheard("as asked")
        }
    }
    #[rcv(sharded)]
    fn reminder(&mut self, msg: &Reminder, ctx: &mut Ctx) {
        let took = ctx.now().since(msg.asked).as_millis() as u64;
        self.reminded.entry(msg.key).or_default().push((msg.milliseconds, took))
    }
    #[rcv(sharded)]
    fn reminded(&mut self, msg: &Reminded) -> Vec<(u64, u64)> {
        self.reminded.get(&msg.0).cloned().unwrap_or_default()
    }
}

#[test]
fn a_timer_fires_once_not_early_and_never_for_a_failed_transaction() {
    for on in EVERYWHERE {
        on_workers(2, async {
            let (hive, _journal) = start(Hive::builder().app::<Clock>(), on);
            let mut io = hive.io();
            for key in 0..10 {
                for milliseconds in [90, 0, 30, 60, 3_600_000] {
                    io.emit(Remind { key, milliseconds, fail: false });
                    io.emit(Remind { key, milliseconds: 10, fail: true });
                }
            }

            io.flush().await;
            for key in 0..10 {
                let mut got = Vec::new();
                for _ in 0..1_000 {
                    got = hive.request(Reminded(key)).await.unwrap();
                    if got.len() >= 4 {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await
                }

                assert_eq!(
                    got.iter().map(|(asked, _)| *asked).collect::<Vec<_>>(),
                    [0, 30, 60, 90],
                    "{on:?}"
                );
                assert!(got.iter().all(|(asked, took)| took >= asked && *took < asked + 2_000), "{got:?}");
            }

            // The timers of one hour stay pending, and do not delay a stop.
            eventually("timers", Duration::from_secs(5), || hive.status().timers == 10).await;
            let all_free = || hive.status().credits_free == limits::CREDITS_PER_IO_BEE;
            eventually("credits", Duration::from_secs(5), all_free).await;

            let began = std::time::Instant::now();
            hive.stop(Duration::from_secs(5)).await;
            assert!(began.elapsed() < Duration::from_secs(2));
            assert_eq!(hive.status().timers, 0);
        })
    }
}

/// Sets a timer for itself again and again.
#[derive(Message)]
struct Again {
    key: u64,
    left: u64,
}
#[derive(App)]
struct Snooze {
    rounds: Dict<u64, u64>,
}
#[handlers]
impl Snooze {
    #[rcv(sharded)]
    fn again(&mut self, msg: &Again, ctx: &mut Ctx) {
        *self.rounds.entry(msg.key).or_default() += 1;
        if msg.left > 0 {
            ctx.after(Duration::ZERO, Again { key: msg.key, left: msg.left - 1 })
        }
    }
    #[rcv(sharded)]
    fn rounds(&mut self, msg: &Rounds) -> u64 {
        self.rounds.get(&msg.0).copied().unwrap_or(0)
    }
}
#[derive(Message)]
#[message(reply = u64)]
struct Rounds(u64);

#[test]
fn a_chain_of_timers_is_no_cycle() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Snooze>(), On::Memory);
        let rounds = limits::HOPS_PER_CAUSE_MAX as u64 * 2;
        hive.emit(Again { key: 1, left: rounds }).await;
        let mut got = 0;

        for _ in 0..2_000 {
            got = hive.request(Rounds(1)).await.unwrap();
            if got == rounds + 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await
        }

        assert_eq!((got, hive.status().cycles), (rounds + 1, 0));
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// Passes itself on `left` times, and then sets a timer.
#[derive(Message)]
struct PassOn {
    key: u64,
    left: u64,
}
#[derive(App)]
struct Relay {
    passed: Dict<u64, u64>,
    rung: Dict<u64, u64>,
}
#[derive(Message)]
struct Ring(u64);
#[derive(Message)]
#[message(reply = (u64, u64))]
struct RelayState(u64);
#[handlers]
impl Relay {
    #[rcv(sharded)]
    fn pass_on(&mut self, msg: &PassOn, ctx: &mut Ctx) {
        *self.passed.entry(msg.key).or_default() += 1;
        match msg.left.checked_sub(1) {
            Some(left) => ctx.emit(PassOn { key: msg.key, left }),
            None => ctx.after(Duration::from_millis(1), Ring(msg.key)),
        }
    }
    #[rcv(sharded)]
    fn ring(&mut self, msg: &Ring) {
        *self.rung.entry(msg.0).or_default() += 1
    }
    #[rcv(sharded)]
    fn state(&mut self, msg: &RelayState) -> (u64, u64) {
        let count = |dict: Option<&u64>| dict.copied().unwrap_or(0);
        (count(self.passed.get(&msg.0)), count(self.rung.get(&msg.0)))
    }
}

/// The last message of the longest chain may set a timer, because a timer begins a new chain.
#[test]
fn a_timer_at_the_end_of_the_longest_chain_fires() {
    for on in [On::Memory, On::Journal] {
        on_workers(2, async {
            let (hive, _journal) = start(Hive::builder().app::<Relay>(), on);
            let hops = limits::HOPS_PER_CAUSE_MAX as u64;
            hive.emit(PassOn { key: 1, left: hops }).await;

            let mut got = (0, 0);
            for _ in 0..2_000 {
                got = hive.request(RelayState(1)).await.unwrap();
                if got.1 > 0 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await
            }
            assert_eq!((got, hive.status().cycles), ((hops + 1, 1), 0), "{on:?}");
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

/// Records the time at several keys, and joins them.
#[derive(Message)]
struct Stamp(Vec<u64>);
#[derive(App)]
struct Stamps {
    times: Dict<u64, Vec<Time>>,
}
#[handlers]
impl Stamps {
    #[rcv(joins)]
    fn stamp(&mut self, msg: &Stamp, ctx: &mut Ctx) {
        for key in &msg.0 {
            self.times.entry(*key).or_default().push(ctx.now())
        }
        std::thread::sleep(Duration::from_micros(50));
    }
    #[rcv(sharded)]
    fn times(&mut self, msg: &Ticks) -> Vec<Time> {
        self.times.get(&msg.0).cloned().unwrap_or_default()
    }
}

#[test]
fn time_never_runs_backwards_in_a_cell_also_when_its_bee_merges() {
    on_workers(4, async {
        let (hive, _) = start(Hive::builder().app::<Stamps>(), On::Memory);
        const KEYS: u64 = 16;
        for round in 0..8 {
            let first = round * 100;
            let mut stamping = Vec::new();
            for sender in 0..4 {
                let hive = hive.clone();
                stamping.push(tokio::spawn(async move {
                    let mut io = hive.io();
                    let mut chance = Chance(round * 10 + sender);
                    for at in 0..100 {
                        let key = first + chance.below(KEYS);
                        let joins = at > 50 && chance.below(8) == 0;
                        let keys = if joins { vec![key, first + chance.below(KEYS)] } else { vec![key] };
                        io.emit(Stamp(keys));
                        if chance.below(3) == 0 {
                            io.flush().await
                        }
                    }

                    io.flush().await;
                    while io.credits() < limits::CREDITS_PER_IO_BEE {
                        tokio::time::sleep(Duration::from_millis(1)).await
                    }
                }))
            }

            for task in stamping {
                task.await.unwrap()
            }

            for key in first..first + KEYS {
                let times = hive.request(Ticks(key)).await.unwrap();
                assert!(times.is_sorted(), "key {key}: {times:?}");
            }
        }

        hive.stop(Duration::from_secs(5)).await;
    })
}
