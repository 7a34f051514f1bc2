//! Timers set by handlers: how many may be pending, when they fire, and when they stop counting.

use crate::load::{Ahead, On, eventually, on_workers, start};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Message, RequestError, handlers, limits};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Sets `timers` timers. Answers with the number of timers that have been set at this place.
#[derive(Message)]
#[message(reply = u64)]
struct Set {
    place: u64,
    timers: u64,
    milliseconds: u64,
}
#[derive(Message)]
struct Rings {
    place: u64,
}
#[derive(Message)]
#[message(reply = (u64, u64))]
struct Read(u64);

#[derive(App)]
struct Clocks {
    /// Number of timers set, and number of timers fired.
    clocks: Dict<u64, (u64, u64)>,
}
#[handlers]
impl Clocks {
    #[rcv(sharded)]
    fn set(&mut self, msg: &Set, ctx: &mut Ctx) -> u64 {
        let clock = self.clocks.entry(msg.place).or_default();
        clock.0 += msg.timers;
        for _ in 0..msg.timers {
            ctx.after(Duration::from_millis(msg.milliseconds), Rings { place: msg.place })
        }
        clock.0
    }
    #[rcv(sharded)]
    fn rings(&mut self, msg: &Rings) {
        self.clocks.entry(msg.place).or_default().1 += 1
    }
    #[rcv(sharded)]
    fn read(&mut self, msg: &Read) -> (u64, u64) {
        self.clocks.get(&msg.0).copied().unwrap_or_default()
    }
}

const LIMIT: Duration = Duration::from_secs(20);

/// A transaction that would exceed the limit on timers fails as a whole. A transaction that sets no timer
/// still succeeds, and once some timers have fired, others may be set again.
#[test]
fn timers_beyond_the_limit_are_refused_and_leave_nothing_behind() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Clocks>(), On::Memory);
        let set =
            |place, timers, milliseconds| hive.request_within(LIMIT, Set { place, timers, milliseconds });
        const HOUR: u64 = 3_600_000;
        const MOST: u64 = limits::TIMERS_WAITING_MAX as u64;

        // Half of the messages that one transaction may emit.
        const SHARE: u64 = limits::EMITS_PER_TRANSACTION_MAX as u64 / 2;
        const SOON: u64 = 100;
        for share in 0..MOST / SHARE - 1 {
            assert_eq!(set(1, SHARE, HOUR).await, Ok((share + 1) * SHARE));
        }

        assert_eq!(set(1, SHARE - SOON, HOUR).await, Ok(MOST - SOON));
        assert_eq!(set(2, SOON, 500).await, Ok(SOON), "the last ones that there is room for");

        let refused = set(2, 1, 0).await;
        assert!(matches!(&refused, Err(RequestError::Limit(_))), "{refused:?}");

        assert_eq!(hive.request(Read(2)).await, Ok((SOON, 0)), "it left nothing");
        assert_eq!(set(2, 0, 0).await, Ok(SOON), "who sets none is not refused");

        let mut read = (0, 0);
        for _ in 0..2_000 {
            read = hive.request(Read(2)).await.unwrap();
            if read == (SOON, SOON) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await
        }

        assert_eq!(read, (SOON, SOON), "the one that was refused does not ring");
        assert_eq!(set(2, SOON, HOUR).await, Ok(2 * SOON), "room for those that rang");
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// Timers set in one incarnation fire in a later one, once, when they are due and not before. A pause counts up to
/// [`limits::CLOCK_JUMP_MAX`].
#[test]
fn timers_of_an_earlier_incarnation_fire_when_due() {
    const PAUSE: Duration = limits::CLOCK_JUMP_MAX;
    const DELAY: Duration = Duration::from_secs(25);
    const TIMERS: u64 = 5;
    let mut log: Vec<Vec<u8>> = Vec::new();

    for (life, (ahead, rung)) in [(0, 0), (0, 0), (2, TIMERS), (3, TIMERS)].into_iter().enumerate() {
        log = on_workers(2, async {
            let colony = crate::load::killed(&log);
            let journal = TestJournal::start(life as u64 + 1, 0, colony.last);
            let builder = Hive::builder().app::<Clocks>().seed(5).platform(Ahead::by(ahead * PAUSE));
            let hive = builder.journal(journal.clone(), colony).start().unwrap();

            if life == 0 {
                let milliseconds = DELAY.as_millis() as u64;
                assert_eq!(hive.request(Set { place: 1, timers: TIMERS, milliseconds }).await, Ok(TIMERS));
            }

            // Timers that are due at the same time count as one.
            eventually("timers", LIMIT, || (hive.status().timers == 0) == (rung == TIMERS)).await;
            hive.idle().await;

            // Wait, in case a timer fires too early.
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert_eq!(hive.request(Read(1)).await, Ok((TIMERS, rung)), "life {life}");

            hive.stop(Duration::from_secs(5)).await;
            journal.stop();
            log.extend(journal.log());
            log
        })
    }
}

#[derive(App)]
struct Chimer {
    held: Dict<u64, u64>,
    rung: Dict<u64, u64>,
}
/// Sets timers that fire at another place.
#[derive(Message)]
#[message(reply = ())]
struct Wind {
    place: u64,
    rings: u64,
    timers: u64,
    milliseconds: u64,
}
#[derive(Message)]
struct Chime {
    place: u64,
    milliseconds: u64,
}

#[handlers]
impl Chimer {
    #[rcv(sharded)]
    fn wind(&mut self, msg: &Wind, ctx: &mut Ctx) {
        self.held.entry(msg.place).or_default();
        for _ in 0..msg.timers {
            ctx.after(Duration::from_millis(1), Chime { place: msg.rings, milliseconds: msg.milliseconds })
        }
    }
    #[rcv(sharded)]
    fn chime(&mut self, msg: &Chime) {
        std::thread::sleep(Duration::from_millis(msg.milliseconds));
        *self.rung.entry(msg.place).or_default() += 1
    }
}

/// Waits until no timer is pending.
async fn all_fired(hive: &Hive) {
    while hive.status().timers > 0 {
        tokio::time::sleep(Duration::from_millis(2)).await
    }
}

#[test]
fn a_hive_is_idle_when_the_messages_of_its_timers_are_done() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Chimer>(), On::Memory);
        hive.request(Wind { place: 1, rings: 1, timers: 40, milliseconds: 5 }).await.unwrap();
        all_fired(&hive).await;
        hive.idle().await;

        let busy = hive.status().apps[0].handlers.iter().find(|h| h.name == "chime").unwrap().messages;
        assert_eq!(busy, 40, "idle, though it was not");

        hive.request(Wind { place: 2, rings: 2, timers: 40, milliseconds: 5 }).await.unwrap();
        all_fired(&hive).await;
        hive.stop(Duration::from_secs(10)).await;
        let done = hive.status().apps[0].handlers.iter().find(|h| h.name == "chime").unwrap().messages;

        assert_eq!(done, 80, "stopped before it was done");
        // Messages that arrive later are dropped.
        for _ in 0..10 {
            hive.emit(Chime { place: 3, milliseconds: 0 }).await
        }

        tokio::time::sleep(Duration::from_millis(100)).await;
        let after = hive.status().apps[0].handlers.iter().find(|h| h.name == "chime").unwrap().messages;
        assert_eq!(after, 80);
    })
}

/// A handler of [`Bells`] waits for this flag.
static RELEASED: AtomicBool = AtomicBool::new(false);

/// Releases the handler when dropped, even if an assertion fails. Otherwise the runtime would wait for the
/// handler's thread forever.
struct Release;

impl Drop for Release {
    fn drop(&mut self) {
        RELEASED.store(true, Ordering::Release)
    }
}

/// Sets timers that fire at another place.
#[derive(Message)]
#[message(reply = u64)]
struct Hang {
    place: u64,
    rings: u64,
    timers: u64,
}
#[derive(Message)]
struct Toll {
    place: u64,
}
#[derive(Message)]
#[message(reply = u64)]
struct Tolled(u64);

#[derive(App)]
struct Bells {
    hung: Dict<u64, u64>,
    tolled: Dict<u64, u64>,
}
#[handlers]
impl Bells {
    #[rcv(sharded)]
    fn hang(&mut self, msg: &Hang, ctx: &mut Ctx) -> u64 {
        *self.hung.entry(msg.place).or_default() += msg.timers;
        for _ in 0..msg.timers {
            ctx.after(Duration::ZERO, Toll { place: msg.rings })
        }
        self.hung.get(&msg.place).copied().unwrap_or(0)
    }
    #[rcv(sharded)]
    fn toll(&mut self, msg: &Toll) {
        while !RELEASED.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1))
        }
        *self.tolled.entry(msg.place).or_default() += 1
    }
    #[rcv(sharded)]
    fn tolled(&mut self, msg: &Tolled) -> u64 {
        self.tolled.get(&msg.0).copied().unwrap_or(0)
    }
}

/// Timers that have fired but are not yet handled count as pending. Otherwise nothing would bound an app that
/// sets them faster than it handles them.
#[test]
fn timers_that_have_fired_count_until_they_are_handled() {
    on_workers(2, async {
        let release = Release;
        let (hive, _) = start(Hive::builder().app::<Bells>(), On::Memory);
        let hang = |place, timers| hive.request_within(LIMIT, Hang { place, rings: 0, timers });
        const SHARE: u64 = limits::EMITS_PER_TRANSACTION_MAX as u64;
        const SHARES: u64 = limits::TIMERS_WAITING_MAX as u64 / SHARE;
        for place in 1..=SHARES {
            assert_eq!(hang(place, SHARE).await, Ok(SHARE));
        }

        eventually("fired", LIMIT, || hive.status().timers == 0).await;
        let refused = hang(1, 1).await;
        assert!(
            matches!(&refused, Err(RequestError::Limit(_))),
            "all have fired, none is handled: {refused:?}"
        );

        drop(release);
        hive.idle().await;
        assert_eq!(hive.request(Tolled(0)).await, Ok(SHARES * SHARE));
        assert_eq!(hang(1, SHARE).await, Ok(2 * SHARE), "room for those that are handled");
        hive.idle().await;
        hive.stop(Duration::from_secs(5)).await;
    })
}

#[derive(App)]
struct Ticking {
    count: Dict<u64, u64>,
}
#[handlers]
impl Ticking {
    #[every("10ms", centralized)]
    fn tick(&mut self, ctx: &mut Ctx) {
        *self.count.entry(0).or_default() += 1;
        // Not ready yet.
        ctx.postpone(Duration::from_millis(500))
    }
}

/// At most one tick is in flight: a handler that tries to postpone one fails instead.
#[test]
fn ticks_do_not_pile_up() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Ticking>(), On::Memory);
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        let status = hive.status();
        assert!(status.timers <= 2, "{} timers wait", status.timers);
        assert!(status.apps[0].handlers[0].errors > 10, "{:?}", status.apps[0].handlers);
        hive.stop(Duration::ZERO).await;
    })
}
