//! Supervision: IO bees that fail are restarted after growing pauses, and affect nothing else.

use crate::load::{Lateness, On, eventually, on_workers, start};
use beehive_core::{App, Dict, Error, Hive, Io, Message, Restart, handlers};
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

#[test]
fn an_io_bee_that_fails_is_started_again_with_growing_pauses_and_harms_nothing() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Register>(), On::Memory);
        let restart =
            Restart::OnFailure { first: Duration::from_millis(20), most: Duration::from_millis(80) };
        let (lives, machine) = (Arc::new(lives::Lives::default()), Lateness::measure());

        for panics in [true, false] {
            let lives = lives.clone();
            hive.spawn_io("fails", restart, move |mut io: Io| {
                let lives = lives.clone();
                async move {
                    io.emit(Born(panics as u64));
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
            // The pauses are 20, 40, 80, 80, .. ms.
            assert!((4..=9).contains(&pauses.len()), "{pauses:?}");
            for (at, pause) in pauses.iter().enumerate() {
                let least = Duration::from_millis(20 << at.min(2));
                let most = least + Duration::from_millis(150) + machine.worst();
                assert!(*pause >= least && *pause < most, "{pauses:?}");
            }
            assert_eq!(hive.request(Births(panics as u64)).await, Ok(pauses.len() as u64 + 1));
        }

        assert_eq!((once.load(Ordering::Relaxed), hive.status().io_bees), (1, 0));
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// Times at which the incarnations of two IO bees ended.
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
