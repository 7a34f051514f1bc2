//! Supervision: IO bees that fail are restarted after growing pauses, and affect nothing else.

use crate::load::{On, eventually, on_workers, start, unheard};
use beehive_core::seams::Platform;
use beehive_core::testing::Kit;
use beehive_core::{App, Dict, Error, Hive, Io, Message, Restart, handlers};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// An incarnation of an IO bee has started.
#[derive(Message)]
struct Born(u64);
#[derive(Message)]
#[message(reply = u64)]
struct Births(u64);
#[derive(App)]
struct Register {
    births: Dict<u64, u64>,
}
#[handlers]
impl Register {
    #[rcv(sharded)]
    fn born(&mut self, msg: &Born) {
        *self.births.entry(msg.0).or_default() += 1
    }
    #[rcv(sharded)]
    fn births(&mut self, msg: &Births) -> u64 {
        self.births.get(&msg.0).copied().unwrap_or(0)
    }
}

/// The pauses double up to a maximum. They start again from the first pause after an incarnation that ran for
/// at least the maximum pause. In virtual time, the pauses are exact.
#[test]
fn an_io_bee_that_fails_is_started_again_with_growing_pauses_and_harms_nothing() {
    let mut kit = Kit::of::<Register>().start();
    let others = kit.hive().status().io_bees;
    let restart = Restart::OnFailure { first: Duration::from_millis(20), most: Duration::from_millis(80) };
    let ends = [false, true].map(|panics| {
        let ends = Arc::new(Mutex::new(Vec::new()));
        let (noted, platform) = (ends.clone(), kit.platform().clone());
        kit.hive().spawn_io("fails", restart, move |mut io: Io| {
            let (ends, platform) = (noted.clone(), platform.clone());
            async move {
                io.emit(Born(panics as u64));
                io.flush().await;
                if ends.lock().len() == 6 {
                    platform.sleep(Duration::from_millis(80)).await
                }
                ends.lock().push(platform.now());
                if panics { unheard("as asked") } else { Err(Error::new("as asked")) }
            }
        });
        ends
    });

    let once = Arc::new(AtomicU64::new(0));
    let counted = once.clone();
    kit.hive().spawn_io("is done", restart, move |_io: Io| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Ok(()) }
    });

    kit.advance(Duration::from_millis(590));
    for (panics, ends) in [false, true].into_iter().zip(&ends) {
        let between: Vec<u128> = ends.lock().windows(2).map(|two| two[1].since(two[0]).as_millis()).collect();
        // the seventh incarnation starts after a pause of 80 ms and runs for 80 ms, so the next pause is the
        // first one again
        assert_eq!(between, [20, 40, 80, 80, 80, 160, 20, 40]);
        assert_eq!(kit.request(Births(panics as u64)), Ok(between.len() as u64 + 1));
    }

    assert_eq!((once.load(Ordering::Relaxed), kit.hive().status().io_bees), (1, others));
}

/// The function that creates an IO bee may panic, just like the IO bee itself.
#[test]
fn a_panicking_io_bee_factory_is_retried_and_delays_no_stop() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder(), On::Memory);
        let made = Arc::new(AtomicU64::new(0));
        let counted = made.clone();
        hive.spawn_io("cannot be made at first", Restart::ON_FAILURE, move |_io: Io| {
            assert!(counted.fetch_add(1, Ordering::Relaxed) > 1, "not yet");
            async { Ok(()) }
        });

        eventually("made", Duration::from_secs(5), || made.load(Ordering::Relaxed) == 3).await;
        let began = std::time::Instant::now();
        hive.stop(Duration::from_secs(5)).await;
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    })
}

/// A panic payload, and a local of an IO bee, that panic whenever they are dropped.
struct Endless;
impl Drop for Endless {
    fn drop(&mut self) {
        std::panic::resume_unwind(Box::new(Endless))
    }
}

/// An IO bee whose panic panics again when it is dropped is restarted like any other.
#[test]
fn an_io_bee_whose_panic_panics_again_when_it_is_dropped_is_restarted() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder(), On::Memory);
        let begun = Arc::new(AtomicU64::new(0));
        let counted = begun.clone();
        let restart = Restart::OnFailure { first: Duration::from_millis(1), most: Duration::from_millis(2) };
        hive.spawn_io("throws", restart, move |_io: Io| {
            let times = counted.fetch_add(1, Ordering::Relaxed);
            if times == 1 {
                std::panic::resume_unwind(Box::new(Endless))
            }
            async move {
                if times == 0 {
                    std::panic::resume_unwind(Box::new(Endless))
                }
                let _local = Endless;
                std::future::pending().await
            }
        });

        eventually("begun", Duration::from_secs(5), || begun.load(Ordering::Relaxed) == 3).await;
        let stopped = hive.stop(Duration::from_millis(50)).await;
        assert_eq!(stopped.io_bees_dropped, 1);
    })
}
