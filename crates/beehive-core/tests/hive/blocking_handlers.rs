//! Handlers that block their threads: an app with hundreds of blocked handlers starves only itself.

use crate::load::{On, alone, credits_are_back, eventually, on_workers, start};
use beehive_core::{App, Ctx, Dict, Hive, Io, Message, handlers, limits};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A gate at which handlers block until it is opened.
struct Gate {
    open: AtomicBool,
    inside: AtomicUsize,
    most: AtomicUsize,
}

impl Gate {
    const fn shut() -> Gate {
        Gate { open: AtomicBool::new(false), inside: AtomicUsize::new(0), most: AtomicUsize::new(0) }
    }

    fn pass(&self) {
        let inside = self.inside.fetch_add(1, Ordering::AcqRel) + 1;
        self.most.fetch_max(inside, Ordering::AcqRel);
        while !self.open.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(2))
        }
        self.inside.fetch_sub(1, Ordering::AcqRel);
    }
}

/// One gate per test, because the tests run concurrently.
static GATES: [Gate; 4] = [const { Gate::shut() }; 4];

/// Opens a gate when dropped, even if an assertion fails. Otherwise the runtime would wait for the blocked
/// threads forever.
struct Opens(usize);

impl Drop for Opens {
    fn drop(&mut self) {
        GATES[self.0].open.store(true, Ordering::Release)
    }
}

macro_rules! waiter {
    ($app:ident, $wait:ident, $nothing:ident) => {
        /// Blocks at a gate. Answers with the number of messages that have done so at this place.
        #[derive(Message, Clone)]
        #[message(reply = u64)]
        struct $wait {
            place: u64,
            gate: usize,
        }
        /// Blocks at a gate, and needs no cell.
        #[derive(Message)]
        struct $nothing {
            gate: usize,
        }
        #[derive(App)]
        struct $app {
            waited: Dict<u64, u64>,
        }
        #[handlers]
        impl $app {
            #[rcv(sharded)]
            fn wait(&mut self, msg: &$wait) -> u64 {
                GATES[msg.gate].pass();
                let waited = self.waited.entry(msg.place).or_default();
                *waited += 1;
                *waited
            }
            #[rcv(stateless)]
            fn nothing(&mut self, msg: &$nothing, ctx: &mut Ctx) {
                GATES[msg.gate].pass();
                ctx.emit(Passed)
            }
        }
    };
}
waiter!(Waiters, Wait, WaitForNothing);
waiter!(MoreWaiters, WaitMore, WaitMoreForNothing);
waiter!(MostWaiters, WaitMost, WaitMostForNothing);

/// Counts a visit. With `passes_on`, also sends a message to an app that may be blocked.
#[derive(Message)]
#[message(reply = u64)]
struct Visit {
    place: u64,
    passes_on: bool,
    gate: usize,
}
#[derive(Message)]
struct Passed;
#[derive(Message)]
#[message(reply = u64)]
struct Passes;

#[derive(App)]
struct Others {
    visits: Dict<u64, u64>,
    passed: Dict<bool, u64>,
}
#[handlers]
impl Others {
    #[rcv(sharded)]
    fn visit(&mut self, msg: &Visit, ctx: &mut Ctx) -> u64 {
        if msg.passes_on {
            ctx.emit(Wait { place: msg.place, gate: msg.gate })
        }
        let visits = self.visits.entry(msg.place).or_default();
        *visits += 1;
        *visits
    }
    #[rcv(centralized)]
    fn passed(&mut self, _: &Passed) {
        *self.passed.entry(true).or_default() += 1
    }
    #[rcv(centralized)]
    fn passes(&mut self, _: &Passes) -> u64 {
        self.passed.get(&true).copied().unwrap_or(0)
    }
}

/// Keeps its thread busy for `milliseconds`.
#[derive(Message)]
#[message(reply = u64)]
struct Work {
    place: u64,
    milliseconds: u64,
}
/// Answers with the number of times that there was work at two places. This merges the bees of the two
/// places.
#[derive(Message)]
#[message(reply = u64)]
struct Both(u64, u64);

/// Number of times that work has begun at place [`TURNSTILE`].
static BEGUN: AtomicUsize = AtomicUsize::new(0);
const TURNSTILE: u64 = 1_000_000;

#[derive(App)]
struct Workshop {
    work: Dict<u64, u64>,
}
#[handlers]
impl Workshop {
    #[rcv(sharded)]
    fn work(&mut self, msg: &Work) -> u64 {
        if msg.place >= TURNSTILE {
            BEGUN.fetch_add(1, Ordering::AcqRel);
        }
        std::thread::sleep(Duration::from_millis(msg.milliseconds));
        let work = self.work.entry(msg.place).or_default();
        *work += 1;
        *work
    }
    #[rcv(joins)]
    fn both(&mut self, msg: &Both) -> u64 {
        let one = self.work.get(&msg.0).copied().unwrap_or(0);
        one + self.work.get(&msg.1).copied().unwrap_or(0)
    }
}

/// Time within which 99 % of the requests must be answered, in a debug build on a busy machine.
const SERVED: Duration = Duration::from_millis(100);
const WORKERS: usize = 2;
/// Maximum number of handlers of one app that may run at once. Those beyond the limit on held threads run on
/// runners and workers.
const INSIDE: usize = limits::HELD_THREADS_PER_APP_MAX + 2 * WORKERS;

/// Sends requests to another app for a while, from outside and through an IO bee, for places beyond `from`.
/// None may be slow.
async fn others_are_served(hive: &Hive, gate: usize, from: u64, passes_on: bool) {
    let mut io = hive.io();
    let mut took = Vec::new();
    let began = Instant::now();
    let mut place = from;

    while began.elapsed() < Duration::from_millis(700) {
        place += 1;
        let one = Instant::now();
        let asked = hive.request(Visit { place, passes_on, gate }).await;
        took.push(one.elapsed());

        assert_eq!(asked, Ok(1));
        let one = Instant::now();
        io.emit(Visit { place, passes_on, gate });
        io.flush().await;

        assert_eq!(answers::<Visit>(&mut io, 1).await, [2]);
        took.push(one.elapsed());
        tokio::time::sleep(Duration::from_micros(500)).await
    }

    took.sort_unstable();
    let slow = took[took.len() * 99 / 100];
    assert!(slow < SERVED, "{slow:?} at the 99th percentile of {}", took.len());
    assert!(took.len() > 50, "{}", took.len());
}

async fn answers<M: Message<Reply = u64>>(io: &mut Io, count: usize) -> Vec<u64> {
    let mut answers = Vec::new();
    while answers.len() < count {
        let mail = tokio::time::timeout(Duration::from_secs(30), io.receive()).await.expect("an answer");
        answers.extend(mail.into_answers::<M>().ok().unwrap().into_iter().map(Result::unwrap))
    }
    answers
}

/// Checks that another task gets a thread for blocking work at once.
async fn a_thread_is_left() {
    let asked = Instant::now();
    tokio::task::spawn_blocking(|| ()).await.unwrap();
    assert!(asked.elapsed() < SERVED * 5, "{:?}", asked.elapsed());
}

async fn full(gate: usize, at_least: usize) {
    let inside = || GATES[gate].inside.load(Ordering::Acquire) >= at_least;
    eventually("inside", Duration::from_secs(20), inside).await
}

#[test]
fn six_hundred_handlers_that_block_starve_their_own_app_only() {
    let _alone = alone();
    const GATE: usize = 0;
    const PLACES: u64 = 600;
    on_workers(WORKERS, async {
        let (hive, _) = start(Hive::builder().app::<Waiters>().app::<Others>(), On::Memory);
        let opens = Opens(GATE);
        let mut io = hive.io();
        for place in 0..PLACES {
            io.emit(Wait { place, gate: GATE })
        }

        io.flush().await;
        full(GATE, limits::HELD_THREADS_PER_APP_MAX).await;
        others_are_served(&hive, GATE, 10_000, false).await;
        a_thread_is_left().await;

        // Further blocked handlers take no more threads.
        for place in 0..PLACES {
            io.emit(Wait { place, gate: GATE })
        }

        io.flush().await;
        others_are_served(&hive, GATE, 20_000, false).await;
        let most = GATES[GATE].most.load(Ordering::Acquire);
        assert!(most <= INSIDE, "{most} handlers of one app hold a thread each");

        drop(opens);
        let mut waited = answers::<Wait>(&mut io, 2 * PLACES as usize).await;
        waited.sort_unstable();
        assert!(waited[..PLACES as usize].iter().all(|first| *first == 1), "each place once");
        assert!(waited[PLACES as usize..].iter().all(|second| *second == 2), "and once more");

        credits_are_back(&hive, &[&io], limits::CREDITS_PER_IO_BEE).await;
        // After the gate has opened, the app continues.
        for place in 0..PLACES {
            io.emit(Wait { place, gate: GATE })
        }

        io.flush().await;
        assert!(answers::<Wait>(&mut io, PLACES as usize).await.iter().all(|third| *third == 3));
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// Bees are not blocked by an app that they send messages to.
#[test]
fn a_bee_that_sends_to_a_blocked_app_is_not_blocked() {
    let _alone = alone();
    const GATE: usize = 1;
    on_workers(WORKERS, async {
        let (hive, _) = start(Hive::builder().app::<Waiters>().app::<Others>(), On::Memory);
        let opens = Opens(GATE);
        let mut io = hive.io();
        for place in 0..300 {
            io.emit(Visit { place, passes_on: true, gate: GATE })
        }

        io.flush().await;
        assert_eq!(answers::<Visit>(&mut io, 300).await, [1; 300]);

        others_are_served(&hive, GATE, 10_000, true).await;
        let most = GATES[GATE].most.load(Ordering::Acquire);
        assert!(most <= INSIDE, "{most} handlers of one app hold a thread each");

        drop(opens);
        hive.idle().await;
        let waiters = &hive.status().apps[0].handlers[0];
        let visits = &hive.status().apps[1].handlers[0];

        assert_eq!(waiters.messages, visits.messages, "nothing is lost");
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// Three apps take all threads that are reserved for blocked handlers. The remaining threads suffice for a
/// fourth app and for file I/O.
#[test]
fn apps_that_are_stuck_together_leave_threads_to_the_others() {
    let _alone = alone();
    const GATE: usize = 2;
    const PLACES: u64 = 300;
    on_workers(WORKERS, async {
        let builder = Hive::builder().app::<Waiters>().app::<MoreWaiters>().app::<MostWaiters>();
        let (hive, _) = start(builder.app::<Others>(), On::Memory);
        let opens = Opens(GATE);
        let mut ios = [hive.io(), hive.io(), hive.io()];

        for place in 0..PLACES {
            ios[0].emit(Wait { place, gate: GATE });
            ios[1].emit(WaitMore { place, gate: GATE });
            ios[2].emit(WaitMost { place, gate: GATE })
        }

        for io in &mut ios {
            io.flush().await
        }

        full(GATE, limits::HELD_THREADS_MAX).await;
        others_are_served(&hive, GATE, 10_000, false).await;
        a_thread_is_left().await;
        let most = GATES[GATE].most.load(Ordering::Acquire);

        // Each further app gets one thread.
        assert!(most <= limits::HELD_THREADS_MAX + 1 + 2 * WORKERS, "{most} handlers hold a thread each");

        drop(opens);
        assert!(answers::<Wait>(&mut ios[0], PLACES as usize).await.iter().all(|first| *first == 1));
        assert!(answers::<WaitMore>(&mut ios[1], PLACES as usize).await.iter().all(|first| *first == 1));
        assert!(answers::<WaitMost>(&mut ios[2], PLACES as usize).await.iter().all(|first| *first == 1));
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// A stateless handler has no bee, so every sender of its messages holds a thread.
#[test]
fn stateless_handlers_that_block_starve_their_own_app_only() {
    let _alone = alone();
    const GATE: usize = 3;
    const SENDERS: usize = 300;
    on_workers(WORKERS, async {
        let (hive, _) = start(Hive::builder().app::<Waiters>().app::<Others>(), On::Memory);
        let opens = Opens(GATE);
        let mut senders: Vec<Io> = (0..SENDERS).map(|_| hive.io()).collect();

        for io in &mut senders {
            io.emit(WaitForNothing { gate: GATE });
            io.flush().await
        }

        full(GATE, limits::HELD_THREADS_PER_APP_MAX).await;
        others_are_served(&hive, GATE, 10_000, false).await;
        a_thread_is_left().await;
        let most = GATES[GATE].most.load(Ordering::Acquire);

        assert!(most <= INSIDE, "{most} handlers of one app hold a thread each");
        drop(opens);
        hive.idle().await;
        assert_eq!(hive.request(Passes).await, Ok(SENDERS as u64));
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// Bees run on workers if their IO bees ask for it, but one worker always remains for sockets and timers,
/// even if it is the only one.
#[test]
fn handlers_that_run_on_workers_leave_one_to_sockets_and_timers() {
    let _alone = alone();
    for workers in [1, 2, 3] {
        on_workers(workers, async {
            let (hive, _) = start(Hive::builder().app::<Workshop>(), On::Memory);
            let mut feeding = Vec::new();
            for place in 0..6 {
                let mut io = hive.io();
                io.run_here();
                feeding.push(tokio::spawn(async move {
                    io.emit(Work { place, milliseconds: 600 });
                    io.flush().await;
                    answers::<Work>(&mut io, 1).await
                }))
            }

            // The task runs on a worker, like the task of a socket.
            let began = Instant::now();
            let ticking = tokio::spawn(async move {
                let mut slowest = began.elapsed();
                while began.elapsed() < Duration::from_millis(400) {
                    let one = Instant::now();
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    slowest = slowest.max(one.elapsed())
                }
                slowest
            });

            let slowest = ticking.await.unwrap();
            assert!(slowest < SERVED * 2, "{slowest:?} for a timer of 5 ms, {workers} workers");

            for fed in feeding {
                assert_eq!(fed.await.unwrap(), [1]);
            }

            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

/// A task that waits for a bee is woken as soon as the worker releases the bee, not after the next handler on
/// that worker.
#[test]
fn a_merge_does_not_wait_for_the_handler_that_comes_after_its_bee() {
    let _alone = alone();
    on_workers(4, async {
        let (hive, _) = start(Hive::builder().app::<Workshop>(), On::Memory);
        for round in 0..4 {
            let (first, other, last) = (TURNSTILE + 10 * round, 10 * round + 1, 10 * round + 2);
            for place in [first, other, last] {
                hive.request(Work { place, milliseconds: 0 }).await.unwrap();
            }

            let begun = BEGUN.load(Ordering::Acquire);
            let mut io = hive.io();
            io.run_here();
            let feeding = tokio::spawn(async move {
                io.emit(Work { place: first, milliseconds: 4 });
                io.emit(Work { place: last, milliseconds: 800 });
                io.flush().await;
                answers::<Work>(&mut io, 2).await
            });

            let merging = hive.clone();
            let merged = tokio::spawn(async move {
                while BEGUN.load(Ordering::Acquire) == begun {
                    tokio::task::yield_now().await
                }
                let asked = Instant::now();
                let answer = merging.request(Both(first, other)).await;
                (answer, asked.elapsed())
            });

            let (answer, took) = merged.await.unwrap();
            assert_eq!(answer, Ok(3));
            assert!(took < SERVED * 4, "{took:?} in round {round}");
            feeding.await.unwrap();
        }

        hive.stop(Duration::from_secs(5)).await;
    })
}

/// A worker that runs bees itself does not wait for a bee in another worker's long queue.
#[test]
fn a_bee_that_waits_elsewhere_runs_on_the_worker_that_asks() {
    let _alone = alone();
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Workshop>(), On::Memory);
        let mut fastest = Duration::MAX;
        for round in 0..3 {
            let (mut many, mut here) = (hive.io(), hive.io());
            here.run_here();
            const LINE: u64 = 600;
            let last = 100_000 * (round + 1);
            for place in 0..LINE {
                many.emit(Work { place, milliseconds: 2 })
            }

            many.emit(Work { place: last, milliseconds: 0 });
            many.flush().await;
            let asking = tokio::spawn(async move {
                let asked = Instant::now();
                here.emit(Work { place: last, milliseconds: 0 });
                here.flush().await;
                let answer = answers::<Work>(&mut here, 1).await;
                (answer, asked.elapsed())
            });

            let (answer, took) = asking.await.unwrap();
            assert_eq!(answer, [2], "in order");
            fastest = fastest.min(took);
            answers::<Work>(&mut many, LINE as usize + 1).await;
        }

        assert!(fastest < SERVED, "{fastest:?}");
        hive.stop(Duration::from_secs(5)).await;
    })
}
