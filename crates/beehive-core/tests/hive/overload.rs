//! More than a hive can take: memory stays flat, nothing is lost, credits come back, cycles are cut off; and how it stops.

use crate::load::{On, eventually, on_workers, start};
use beehive_core::{App, Builder, Ctx, Dict, Error, Hive, Io, Message, Restart, handlers, limits};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a load lasts: long enough to see memory grow; half a minute with `BEEHIVE_LONG=1`.
fn load_time() -> Duration {
    match std::env::var_os("BEEHIVE_LONG") {
        Some(_) => Duration::from_secs(30),
        None => Duration::from_secs(2),
    }
}

/// Memory of this process that is in use, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = status.split_whitespace().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    pages * 4096
}

/// Runs a load; memory may not grow after its first third. Other tests of this process have memory too, hence the room.
async fn memory_is_flat(what: &str, load: impl Future<Output = ()>) {
    const ROOM: u64 = 24 << 20;
    let time = load_time();
    let sampling = async {
        tokio::time::sleep(time / 3).await;
        let (mut low, mut high) = (u64::MAX, 0);
        let until = Instant::now() + time * 2 / 3;
        let first = resident();
        while Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(20)).await;
            low = low.min(resident());
            high = high.max(resident());
        }
        (first, low, high)
    };
    let ((first, _, high), ()) = tokio::join!(sampling, load);
    assert!(high < first + ROOM, "{what}: from {} to {} MiB", first >> 20, high >> 20);
}

/// Tests that look at the memory of the process take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn alone<T>(test: impl FnOnce() -> T) -> T {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    test()
}

async fn credits_are_back(hive: &Hive, io: &[&Io], limit: u32) {
    eventually("credits", Duration::from_secs(60), || {
        hive.status().credits_free == limits::CREDITS_PER_IO_BEE && io.iter().all(|io| io.credits() == limit)
    })
    .await
}

// ---- a chain with a slow end ----

/// Enters the chain at its first app.
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

// ---- to and fro ----

/// Goes to and fro between two apps until nothing is left.
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
            assert_eq!(left + right, limits::HOPS_PER_CAUSE_MAX as u64 + 1, "{on:?}");
            // what is run again because its record was refused is counted again
            let cycles = hive.status().cycles;
            assert!(cycles == 1 || on == On::Journal, "{cycles}");
            // as long as may be: not cut off
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

// ---- one to a thousand ----

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
    alone(|| {
        on_workers(2, async {
            let (hive, _) = start(Hive::builder().app::<Fan>().app::<Left>(), On::Memory);
            let mut io = hive.io_with_credits(50);
            let mut sent = 0u64;
            memory_is_flat("one to a thousand", async {
                let until = Instant::now() + load_time();
                while Instant::now() < until {
                    io.emit(Spread(sent % 8));
                    sent += 1;
                    io.flush().await
                }
            })
            .await;
            credits_are_back(&hive, &[&io], 50).await;
            for key in (0..1_000).step_by(37) {
                assert_eq!(hive.request(ReadLeft(key)).await, Ok(sent));
            }
            hive.stop(Duration::from_secs(5)).await;
        })
    })
}

// ---- one slow place among a thousand ----

#[derive(Message)]
#[message(reply = u64)]
struct Work {
    place: u64,
    slow: bool,
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
        if msg.slow {
            std::thread::sleep(Duration::from_millis(10))
        }
        *done
    }
}

const PLACES: u64 = 1_000;

/// Messages that the places but the first handled in a while; every place has a socket of its own.
async fn rate_of_the_others(time: Duration, slow: bool) -> u64 {
    let (hive, _) = start(Hive::builder().app::<Worker>(), On::Memory);
    let over = Arc::new(AtomicBool::new(false));
    let mut feeding = Vec::new();
    for place in 0..PLACES {
        let (hive, over) = (hive.clone(), over.clone());
        feeding.push(tokio::spawn(async move {
            let mut io = hive.io_with_credits(64);
            let (mut sent, mut answered) = (0u64, 0u64);
            while !over.load(Ordering::Relaxed) {
                for _ in 0..16 {
                    io.emit(Work { place, slow: slow && place == 0 });
                    sent += 1
                }
                io.flush().await;
                let mail = io.receive().await;
                answered += mail.into_answers::<Work>().ok().unwrap().into_iter().count() as u64;
                tokio::task::yield_now().await
            }
            let handled = answered;
            while answered < sent {
                let mail =
                    tokio::time::timeout(Duration::from_secs(20), io.receive()).await.expect("all answered");
                answered += mail.into_answers::<Work>().ok().unwrap().into_iter().count() as u64
            }
            if place == 0 { 0 } else { handled }
        }))
    }
    tokio::time::sleep(time).await;
    over.store(true, Ordering::Relaxed);
    let mut sum = 0;
    for task in feeding {
        sum += task.await.unwrap()
    }
    credits_are_back(&hive, &[], 0).await;
    hive.stop(Duration::from_secs(5)).await;
    sum
}

#[test]
fn a_slow_place_among_a_thousand_takes_little_from_the_others() {
    alone(|| {
        // side by side, so that whatever else runs on the machine takes as much from the one as from the other
        let (mut without, mut with) = (0, 0);
        for _ in 0..3 {
            (without, with) = std::thread::scope(|scope| {
                let rate = |slow| {
                    move || on_workers(2, async move { rate_of_the_others(load_time() / 3, slow).await })
                };
                let (without, with) = (scope.spawn(rate(false)), scope.spawn(rate(true)));
                (without.join().unwrap(), with.join().unwrap())
            });
            if with * 10 >= without * 8 {
                break;
            }
        }
        assert!(with * 10 >= without * 8, "{with} instead of {without}");
    })
}

#[derive(Message)]
struct Numbered {
    key: u64,
    number: u64,
    milliseconds: u64,
}
#[derive(Message)]
#[message(reply = (u64, u64))]
struct Numbers(u64);
/// Emits, for a cell that stays empty.
#[derive(Message)]
struct Relay {
    key: u64,
    keys: Vec<u64>,
    number: u64,
}
#[derive(Message)]
struct Listed {
    keys: Vec<u64>,
    number: u64,
    milliseconds: u64,
}
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct List(u64);

/// Counts what came, and what came out of its order.
#[derive(App)]
struct Ledger {
    /// The number that comes next, and how often another one came.
    next: Dict<u64, (u64, u64)>,
    lists: Dict<u64, Vec<u64>>,
}
#[handlers]
impl Ledger {
    #[rcv(sharded)]
    fn numbered(&mut self, msg: &Numbered) {
        let next = self.next.entry(msg.key).or_default();
        next.1 += (next.0 != msg.number) as u64;
        next.0 = msg.number + 1;
        std::thread::sleep(Duration::from_millis(msg.milliseconds))
    }
    #[rcv(sharded)]
    fn numbers(&mut self, msg: &Numbers) -> (u64, u64) {
        self.next.get(&msg.0).copied().unwrap_or_default()
    }
    #[rcv(joins)]
    fn listed(&mut self, msg: &Listed) {
        std::thread::sleep(Duration::from_millis(msg.milliseconds));
        for key in &msg.keys {
            self.lists.entry(*key).or_default().push(msg.number)
        }
    }
    #[rcv(sharded)]
    fn list(&mut self, msg: &List) -> Vec<u64> {
        self.lists.get(&msg.0).cloned().unwrap_or_default()
    }
}
#[derive(App)]
struct Relays {
    nothing: Dict<u64, u64>,
}
#[handlers]
impl Relays {
    #[rcv(sharded)]
    fn relay(&mut self, msg: &Relay, ctx: &mut Ctx) {
        let _ = self.nothing.contains(&msg.key);
        ctx.emit(Listed { keys: msg.keys.clone(), number: msg.number, milliseconds: 0 })
    }
}

/// More than one turn can take lies at one bee while more of it comes.
#[test]
fn order_is_kept_over_the_end_of_a_turn() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Ledger>(), On::Memory);
        let mut number = 0;
        for _ in 0..3 {
            let mut io = hive.io_with_credits(1_000_000);
            let mut emit = |io: &mut Io, count: u64, milliseconds: u64| {
                for _ in 0..count {
                    io.emit(Numbered { key: 1, number, milliseconds });
                    number += 1
                }
            };
            emit(&mut io, 1, 50);
            io.flush().await;
            for _ in 0..40 {
                emit(&mut io, 1_000, 0);
                io.flush().await
            }
            // what comes while the bee is at it
            for _ in 0..2_000 {
                emit(&mut io, 1, 0);
                io.flush().await
            }
            credits_are_back(&hive, &[&io], 1_000_000).await
        }
        assert_eq!(hive.request(Numbers(1)).await, Ok((number, 0)));
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// A bee without content stays as long as something it emitted waits for a merge: its cell's next bee would not know.
#[test]
fn what_a_cell_emitted_is_not_overtaken_by_what_it_emits_after_its_bee_was_idle() {
    on_workers(3, async {
        let (hive, _) = start(Hive::builder().app::<Relays>().app::<Ledger>(), On::Memory);
        for key in [1, 2] {
            hive.emit(Listed { keys: vec![key], number: 0, milliseconds: 0 }).await
        }
        assert_eq!(hive.request(List(2)).await, Ok(vec![0]));
        // holds up the merge for longer than idle bees live
        hive.emit(Listed { keys: vec![1], number: 1, milliseconds: 600 }).await;
        hive.emit(Relay { key: 7, keys: vec![1, 2], number: 2 }).await;
        tokio::time::sleep(Duration::from_millis(350)).await;
        hive.emit(Relay { key: 7, keys: vec![2], number: 3 }).await;
        hive.emit(Relay { key: 7, keys: vec![1], number: 4 }).await;
        for (key, want) in [(1, vec![0, 1, 2, 4]), (2, vec![0, 2, 3])] {
            let mut got = Vec::new();
            for _ in 0..400 {
                got = hive.request(List(key)).await.unwrap();
                if got.len() >= want.len() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await
            }
            assert_eq!(got, want, "key {key}");
        }
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// Mail that lies unread holds credits; who waits for credits must not wait for itself.
#[test]
fn an_io_bee_that_reads_no_mail_does_not_lock_itself_out() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Worker>(), On::Memory);
        let mut io = hive.io_with_credits(8);
        const MESSAGES: u64 = 400;
        let flushing = async {
            for place in 0..MESSAGES {
                io.emit(Work { place, slow: false });
                io.flush().await
            }
            // a batch larger than all credits takes all of them
            for place in 0..MESSAGES {
                io.emit(Work { place, slow: false })
            }
            io.flush().await;
        };
        tokio::time::timeout(Duration::from_secs(20), flushing).await.expect("credits come back");
        let mut answers = 0;
        while answers < 2 * MESSAGES as usize {
            let mail = tokio::time::timeout(Duration::from_secs(20), io.receive()).await.unwrap();
            answers += mail.into_answers::<Work>().ok().unwrap().into_iter().count()
        }
        credits_are_back(&hive, &[&io], 8).await;
        hive.stop(Duration::from_secs(5)).await;
    })
}

// ---- stopping ----

static HANDLED: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

#[derive(Message)]
struct Late {
    test: u64,
    keys: Vec<u64>,
    milliseconds: u64,
}
#[derive(App)]
struct Lates {
    count: Dict<u64, u64>,
}
#[handlers]
impl Lates {
    #[rcv(joins)]
    fn late(&mut self, msg: &Late) {
        for key in &msg.keys {
            *self.count.entry(*key).or_default() += 1
        }
        std::thread::sleep(Duration::from_millis(msg.milliseconds));
        HANDLED[msg.test as usize].fetch_add(1, Ordering::Relaxed);
    }
}

fn lates() -> Builder {
    Hive::builder().app::<Lates>()
}

#[test]
fn a_stop_lets_what_io_bees_have_brought_in_finish() {
    on_workers(2, async {
        let (hive, _) = start(lates(), On::Memory);
        let mut io = hive.io();
        for key in 0..40 {
            io.emit(Late { test: 0, keys: vec![key % 10], milliseconds: 5 })
        }
        io.flush().await;
        hive.stop(Duration::from_secs(10)).await;
        assert_eq!(HANDLED[0].load(Ordering::Relaxed), 40);
    })
}

#[test]
fn a_stop_lets_what_waits_for_a_merge_finish() {
    on_workers(2, async {
        let (hive, _) = start(lates(), On::Memory);
        for key in 0..4 {
            hive.emit(Late { test: 1, keys: vec![key], milliseconds: 100 }).await
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        for keys in [vec![0, 1], vec![1], vec![2, 3], vec![1, 2]] {
            hive.emit(Late { test: 1, keys, milliseconds: 0 }).await
        }
        let began = Instant::now();
        hive.stop(Duration::from_secs(5)).await;
        assert_eq!(HANDLED[1].load(Ordering::Relaxed), 8);
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    })
}

#[test]
fn a_stop_lets_what_lies_behind_a_stuck_handler_finish() {
    on_workers(2, async {
        let (hive, _) = start(lates(), On::Memory);
        hive.emit(Late { test: 2, keys: vec![0], milliseconds: 1_500 }).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        for key in 1..50 {
            hive.emit(Late { test: 2, keys: vec![key], milliseconds: 1 }).await
        }
        let began = Instant::now();
        hive.stop(Duration::from_millis(900)).await;
        assert!(began.elapsed() < Duration::from_millis(1_300), "{:?}", began.elapsed());
        assert_eq!(HANDLED[2].load(Ordering::Relaxed), 49, "all but the one that is stuck");
    })
}

#[test]
fn io_bees_are_told_and_one_that_does_not_listen_is_not_waited_for() {
    on_workers(2, async {
        let (hive, _) = start(lates(), On::Memory);
        let told = Arc::new(AtomicU64::new(0));
        for _ in 0..5 {
            let told = told.clone();
            hive.spawn_io("listens", Restart::ON_FAILURE, move |mut io: Io| {
                let told = told.clone();
                async move {
                    io.stopping().await;
                    // what it says last is still handled
                    io.emit(Late { test: 3, keys: vec![1], milliseconds: 0 });
                    io.flush().await;
                    told.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                }
            })
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(hive.status().io_bees, 5);
        let began = Instant::now();
        hive.stop(Duration::from_secs(5)).await;
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        assert_eq!((told.load(Ordering::Relaxed), HANDLED[3].load(Ordering::Relaxed)), (5, 5));

        let (hive, _) = start(lates(), On::Memory);
        hive.spawn_io("does not listen", Restart::Never, |_io: Io| async {
            std::future::pending::<()>().await;
            Ok(())
        });
        hive.spawn_io("is between two lives", Restart::ON_FAILURE, |_io: Io| async {
            Err(Error::new("as asked"))
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        let began = Instant::now();
        hive.stop(Duration::from_millis(300)).await;
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(300) && took < Duration::from_millis(800), "{took:?}");
    })
}

#[test]
fn an_io_bee_that_fails_is_started_again_with_growing_pauses_and_harms_nothing() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Left>(), On::Memory);
        let restart =
            Restart::OnFailure { first: Duration::from_millis(20), most: Duration::from_millis(80) };
        let lives = Arc::new(lives::Lives::default());
        for panics in [true, false] {
            let lives = lives.clone();
            hive.spawn_io("fails", restart, move |mut io: Io| {
                let lives = lives.clone();
                async move {
                    io.emit(Ping { key: panics as u64, left: 0 });
                    io.flush().await;
                    lives.add(panics);
                    if panics { panic!("as asked") } else { Err(Error::new("as asked")) }
                }
            })
        }
        let once = Arc::new(AtomicU64::new(0));
        let counted = once.clone();
        hive.spawn_io("is done", restart, move |_io: Io| {
            counted.fetch_add(1, Ordering::Relaxed);
            async { Ok(()) }
        });
        tokio::time::sleep(Duration::from_millis(600)).await;
        for panics in [true, false] {
            let pauses = lives.pauses(panics);
            // 20, 40, 80, 80, ..
            assert!((4..=9).contains(&pauses.len()), "{pauses:?}");
            for (at, pause) in pauses.iter().enumerate() {
                let least = Duration::from_millis(20 << at.min(2));
                assert!(*pause >= least && *pause < least + Duration::from_millis(150), "{pauses:?}");
            }
            assert_eq!(hive.request(ReadLeft(panics as u64)).await, Ok(pauses.len() as u64 + 1));
        }
        assert_eq!((once.load(Ordering::Relaxed), hive.status().io_bees), (1, 0));
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// When the lives of two IO bees ended.
mod lives {
    use std::sync::Mutex;
    use std::time::{Duration, Instant};

    #[derive(Default)]
    pub(super) struct Lives([Mutex<Vec<Instant>>; 2]);

    impl Lives {
        pub(super) fn add(&self, which: bool) {
            self.0[which as usize].lock().unwrap().push(Instant::now())
        }
        pub(super) fn pauses(&self, which: bool) -> Vec<Duration> {
            self.0[which as usize].lock().unwrap().windows(2).map(|two| two[1] - two[0]).collect()
        }
    }
}
