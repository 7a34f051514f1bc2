//! A hive embedded in a program: on an existing runtime or its own, next to other hives, and the report of
//! its stop.

use crate::load::{On, eventually, on_workers, start};
use beehive_core::{Address, App, Config, Ctx, Dict, Error, Hive, Io, Message, Restart, Stopped, handlers};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Price {
    each: u64,
}
/// Counts a purchase. Answers the total price.
#[derive(Message, Clone)]
#[message(reply = u64)]
struct Buy(u64);
#[derive(Message)]
struct Bought(u64);
/// Blocks until it is released.
#[derive(Message)]
struct Wait(u64);
#[derive(Message)]
struct Remind(u64);
#[derive(App)]
struct Shop {
    sold: Dict<u64, u64>,
    price: Config<Price>,
}
static LET_GO: AtomicBool = AtomicBool::new(false);
#[handlers]
impl Shop {
    #[rcv(sharded)]
    fn buy(&mut self, msg: &Buy, ctx: &mut Ctx) -> u64 {
        let sold = self.sold.entry(msg.0).or_default();
        *sold += 1;
        ctx.emit(Bought(msg.0));
        *sold * self.price.each
    }
    #[rcv(sharded)]
    fn wait(&mut self, msg: &Wait) {
        *self.sold.entry(msg.0).or_default() += 1;
        while !LET_GO.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1))
        }
    }
    #[rcv(sharded)]
    fn remind(&mut self, msg: &Remind, ctx: &mut Ctx) {
        *self.sold.entry(msg.0).or_default() += 1;
        ctx.after(Duration::from_secs(3600), Wait(msg.0))
    }
}
#[derive(Message)]
#[message(reply = u64)]
struct Total(u64);
#[derive(App)]
struct Ledger {
    bought: Dict<u64, u64>,
}
#[handlers]
impl Ledger {
    #[rcv(sharded)]
    fn bought(&mut self, msg: &Bought) {
        *self.bought.entry(msg.0).or_default() += 1
    }
    #[rcv(sharded)]
    fn total(&mut self, msg: &Total) -> u64 {
        self.bought.get(&msg.0).copied().unwrap_or(0)
    }
}

fn shop(each: u64) -> beehive_core::Builder {
    let settings = format!("[shop]\neach = {each}").parse().unwrap();
    Hive::builder().app::<Shop>().app::<Ledger>().settings(settings)
}

async fn buy_and_count(hive: &Hive, each: u64, times: u64) {
    for time in 1..=times {
        assert_eq!(hive.request(Buy(time % 3)).await, Ok(time.div_ceil(3) * each));
    }

    hive.idle().await;
    let mut all = 0;
    for key in 0..3 {
        all += hive.request(Total(key)).await.unwrap()
    }

    assert_eq!(all, times);
}

#[test]
fn a_hive_runs_on_either_kind_of_runtime() {
    let one = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let many = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap();
    for runtime in [one, many] {
        runtime.block_on(async {
            let hive = shop(7).start().unwrap();
            buy_and_count(&hive, 7, 300).await;
            assert!(hive.stop(Duration::from_secs(5)).await.is_clean());
        })
    }
}

#[test]
fn a_hive_has_a_runtime_of_its_own_where_there_is_none() {
    assert!(matches!(shop(2).start(), Err(beehive_core::StartError::NoRuntime)));
    let hive = shop(2).start_on_own_runtime(2).unwrap();
    assert_eq!((hive.request_blocking(Buy(1)), hive.request_blocking(Buy(1))), (Ok(2), Ok(4)));

    (0..10_000).for_each(|_| hive.emit_blocking(Bought(5)));
    eventually_blocking(|| hive.request_blocking(Total(5)) == Ok(10_000));
    assert!(hive.stop_blocking(Duration::from_secs(5)).is_clean());

    let threads = || {
        std::fs::read_dir("/proc/self/task").map_or(0, |all| {
            let name = |task: std::io::Result<std::fs::DirEntry>| {
                std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
            };
            all.filter_map(name).filter(|name| name.trim_end() == "beehive").count()
        })
    };

    assert!(threads() > 0 || !cfg!(target_os = "linux"));
    drop(hive);
    // The threads end when the hive ends.
    eventually_blocking(|| threads() == 0)
}

fn eventually_blocking(mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(5))
    }
}

/// Hives with the same apps and different settings take turns on the same threads. No hive sees any state of
/// another one.
#[test]
fn hives_beside_each_other_share_threads_and_nothing_else() {
    on_workers(2, async {
        let hives: Vec<Hive> = (1..=4).map(|each| shop(each).start().unwrap()).collect();
        let buyers = hives.iter().zip(1..).flat_map(|(hive, each)| {
            (0..3u64).map(move |key| {
                let hive = hive.clone();
                tokio::spawn(async move {
                    for time in 1..=400 {
                        assert_eq!(hive.request(Buy(key)).await, Ok(time * each));
                        if time % 7 == key {
                            tokio::task::yield_now().await
                        }
                    }
                })
            })
        });

        for buyer in buyers.collect::<Vec<_>>() {
            buyer.await.unwrap()
        }

        // Stopping one hive does not affect the others.
        assert!(hives[0].stop(Duration::from_secs(5)).await.is_clean());

        for (hive, each) in hives.iter().zip(1..).skip(1) {
            assert_eq!(hive.request(Buy(0)).await, Ok(401 * each));
            hive.idle().await;
            assert_eq!(hive.request(Total(0)).await, Ok(401));
            let status = hive.status();
            let buy = status.apps[0].handlers.iter().find(|handler| handler.name == "buy").unwrap();
            assert_eq!(buy.messages, 1_201);
            assert!(hive.stop(Duration::from_secs(5)).await.is_clean());
        }
    })
}

#[test]
fn a_stop_reports_unfinished_work() {
    on_workers(2, async {
        let (hive, _) = start(shop(1), On::Memory);
        hive.spawn_io("never returns", Restart::Never, |_io: Io| std::future::pending());
        hive.request(Remind(5)).await.unwrap();

        // One message runs, and the others wait behind it, because each of them is in a batch of its own.
        for _ in 0..4 {
            hive.emit(Wait(1)).await
        }

        let waiting = || hive.status().apps[0].handlers.iter().any(|h| h.name == "wait" && h.messages > 0);
        eventually("at work", Duration::from_secs(10), waiting).await;
        // an IO bee that has not begun when the hive stops does not begin, and is not dropped
        eventually("begun", Duration::from_secs(10), || hive.find_io("never returns").is_some()).await;
        let again = hive.clone();
        let twice = tokio::spawn(async move { again.stop(Duration::from_secs(60)).await });
        let stopped = hive.stop(Duration::from_millis(50)).await;

        LET_GO.store(true, Ordering::Release);
        let Stopped { unfinished, runs_dropped, timers_dropped, io_bees_dropped, .. } = stopped;
        assert_eq!((unfinished, timers_dropped, io_bees_dropped), (4, 1, 1), "{stopped:?}");

        // The bee may have taken the first message out of its mailbox together with some of those behind it.
        assert!(runs_dropped <= 3 && !stopped.is_clean(), "{stopped:?}");
        assert_eq!(twice.await.unwrap(), stopped, "whoever asks is told the same");
        assert_eq!(hive.stop(Duration::ZERO).await, stopped);
    })
}

/// Replies to an address with the message [`Rang`].
#[derive(Message)]
struct Ring(Address);
#[derive(Message)]
struct Rang(u64);

#[test]
fn an_io_bee_begins_with_the_hive_and_is_found_by_its_name() {
    on_workers(2, async {
        let lives = Arc::new(AtomicU64::new(0));
        let counted = lives.clone();
        let pauses = Restart::OnFailure { first: Duration::from_millis(20), most: Duration::from_millis(20) };
        let bell = move |mut io: Io| {
            let life = counted.fetch_add(1, Ordering::Relaxed) + 1;
            async move {
                loop {
                    let mail = io.receive().await;
                    for Ring(to) in mail.messages::<Ring>().unwrap_or_default() {
                        io.send(*to, Rang(life))
                    }
                    io.flush().await;
                    if life == 1 {
                        return Err(Error::new("its first life ends here"));
                    }
                }
            }
        };

        let hive = shop(1).io("bell", pauses, bell).start().unwrap();
        let mut asker = hive.io();
        for life in 1..=3 {
            eventually("found", Duration::from_secs(10), || hive.find_io("bell").is_some()).await;
            let address = hive.find_io("bell").unwrap();
            asker.send(address, Ring(asker.address()));
            asker.flush().await;

            let mail = asker.receive().await;
            let rang: Vec<u64> = mail.messages::<Rang>().unwrap().iter().map(|rang| rang.0).collect();
            assert_eq!(rang, [life.min(2)], "the second life does not end");

            if life == 1 {
                let gone = || hive.find_io("bell") != Some(address);
                eventually("another life", Duration::from_secs(10), gone).await
            }
        }

        assert_eq!((hive.find_io("whistle"), lives.load(Ordering::Relaxed)), (None, 2));
        hive.stop(Duration::from_millis(50)).await;
        eventually("gone", Duration::from_secs(10), || hive.find_io("bell").is_none()).await
    })
}
