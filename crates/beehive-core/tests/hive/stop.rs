//! Stopping a hive: work in flight finishes within the grace period.

use crate::load::{On, alone, eventually, on_workers, start};
use beehive_core::{App, Builder, Dict, Error, Hive, Io, Message, Restart, handlers};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

static HANDLED: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];
static IS_HELD: AtomicBool = AtomicBool::new(false);
static BEGUN: AtomicU64 = AtomicU64::new(0);

#[derive(Message)]
struct Late {
    test: u64,
    keys: Vec<u64>,
    milliseconds: u64,
}
/// Takes until [`IS_HELD`] is false.
#[derive(Message)]
struct Held(u64);
/// Takes `.0` milliseconds, without any cell.
#[derive(Message)]
struct Passing(u64);
#[derive(App)]
struct Lates {
    count: Dict<u64, u64>,
}
#[handlers]
impl Lates {
    #[rcv(stateless)]
    fn passing(&mut self, msg: &Passing) {
        std::thread::sleep(Duration::from_millis(msg.0));
        HANDLED[7].fetch_add(1, Ordering::Relaxed);
    }
    #[rcv(sharded)]
    fn held(&mut self, msg: &Held) {
        *self.count.entry(msg.0).or_default() += 1;
        BEGUN.fetch_add(1, Ordering::AcqRel);
        while IS_HELD.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1))
        }
    }
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
fn a_stop_lets_messages_of_io_bees_finish() {
    let _alone = alone();
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
fn a_stop_lets_messages_that_wait_for_a_merge_finish() {
    let _alone = alone();
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
fn a_stop_lets_messages_behind_a_stuck_handler_finish() {
    let _alone = alone();
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
fn io_bees_are_notified_of_a_stop_and_an_unresponsive_one_is_dropped() {
    let _alone = alone();
    on_workers(2, async {
        let (hive, _) = start(lates(), On::Memory);
        let told = Arc::new(AtomicU64::new(0));
        for _ in 0..5 {
            let told = told.clone();
            hive.spawn_io("listens", Restart::ON_FAILURE, move |mut io: Io| {
                let told = told.clone();
                async move {
                    io.stopping().await;
                    // The last message is still handled.
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

/// After the grace period no handler starts. Queued messages return their credits, an IO bee that does not
/// react is dropped, and tasks that wait for credits or for the stop are woken.
///
/// One handler is running all the time, however slow the machine is, and the other messages are behind it.
#[test]
fn nothing_begins_when_the_grace_is_over() {
    let _alone = alone();
    on_workers(2, async {
        IS_HELD.store(true, Ordering::Release);
        let (hive, _) = start(lates(), On::Memory);
        let mut io = hive.io_with_credits(200);
        for _ in 0..200 {
            io.emit(Held(0))
        }

        io.flush().await;
        let begun = || BEGUN.load(Ordering::Acquire);
        eventually("a handler is running", Duration::from_secs(20), || begun() == 1).await;
        let held = Arc::new(());
        let hold = held.clone();
        hive.spawn_io("does not listen", Restart::Never, move |mut io: Io| {
            let hold = hold.clone();
            async move {
                let _hold = hold;
                loop {
                    io.emit(Late { test: 5, keys: vec![0], milliseconds: 0 });
                    io.flush().await
                }
            }
        });

        let flushing = tokio::spawn(async move {
            io.emit(Late { test: 5, keys: vec![0], milliseconds: 0 });
            io.flush().await
        });

        let stop = |grace| {
            let hive = hive.clone();
            tokio::spawn(async move { hive.stop(grace).await })
        };

        let patient = stop(Duration::from_secs(600));
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!patient.is_finished() && !flushing.is_finished());

        // all of these end although the handler does not
        hive.stop(Duration::from_millis(50)).await;
        patient.await.unwrap();
        flushing.await.unwrap();
        let is_dropped = || Arc::strong_count(&held) == 1;
        eventually(
            "the IO bee, and what would start it again, is dropped",
            Duration::from_secs(20),
            is_dropped,
        )
        .await;
        assert_eq!(begun(), 1);

        IS_HELD.store(false, Ordering::Release);
        hive.idle().await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(begun(), 1, "only the one that had begun");

        // These messages were queued behind all earlier ones.
        assert_eq!(HANDLED[5].load(Ordering::Relaxed), 0);
    })
}

/// Messages that wait for a merge release their credits, too.
#[test]
fn a_hive_that_has_stopped_is_idle() {
    let _alone = alone();
    on_workers(3, async {
        let (hive, _) = start(lates(), On::Memory);
        let late = |keys, milliseconds| Late { test: 6, keys, milliseconds };
        for key in [1, 2] {
            hive.emit(late(vec![key], 0)).await
        }

        hive.idle().await;
        hive.emit(late(vec![1], 500)).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        hive.emit(late(vec![1, 2], 0)).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        hive.stop(Duration::ZERO).await;

        let idle = tokio::time::timeout(Duration::from_secs(20), hive.idle()).await;
        assert!(idle.is_ok(), "something is under way");

        // No merge waits for a body that never arrives.
        let tasks = tokio::runtime::Handle::current().metrics();
        eventually("no task is left", Duration::from_secs(20), || tasks.num_alive_tasks() == 0).await;
        assert_eq!(HANDLED[6].load(Ordering::Relaxed), 3);
    })
}

/// Messages that an IO bee has queued for stateless handlers are dropped with the rest.
#[test]
fn no_stateless_handler_begins_when_the_grace_is_over() {
    let _alone = alone();
    on_workers(2, async {
        let (hive, _) = start(lates(), On::Memory);
        let mut io = hive.io();
        for _ in 0..100 {
            io.emit(Passing(20));
            io.flush().await
        }

        tokio::time::sleep(Duration::from_millis(100)).await;
        hive.stop(Duration::ZERO).await;
        let handled = HANDLED[7].load(Ordering::Relaxed);
        assert!(handled < 50, "{handled}");

        hive.idle().await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        let after = HANDLED[7].load(Ordering::Relaxed);
        assert!(after <= handled + 1, "the one that had begun: {handled}, then {after}");
    })
}
