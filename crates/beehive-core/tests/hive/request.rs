//! Requests: each request ends exactly once and on time, with a value, the handler's error, no answer, a
//! timeout, or unavailability.

use crate::load::{EVERYWHERE, On, alone, eventually, on_workers, start, unheard};
use beehive_core::{App, Ctx, Dict, Error, Hive, Message, RequestError, handlers, limits};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Fate {
    Answered,
    Failed,
    Panicked,
    /// Answered after this many milliseconds.
    Slow(u64),
    /// The map drops it.
    Dropped,
    /// The handler has no answer.
    PassedOn,
}

#[derive(Message, Clone, Debug)]
#[message(reply = String)]
struct Ask {
    key: u64,
    first: Fate,
    second: Fate,
}

fn answer(who: &str, fate: Fate) -> Result<Option<String>, Error> {
    match fate {
        Fate::Answered => Ok(Some(who.to_string())),
        Fate::Failed => Err(format!("{who} says no").into()),
        Fate::Panicked => unheard(&format!("{who} panics")),
        Fate::Slow(milliseconds) => {
            std::thread::sleep(Duration::from_millis(milliseconds));
            Ok(Some(who.to_string()))
        }
        Fate::Dropped | Fate::PassedOn => Ok(None),
    }
}

#[derive(App)]
struct First {
    asked: Dict<u64, u64>,
}
#[handlers]
impl First {
    #[rcv(sharded)]
    fn ask(&mut self, msg: &Ask) -> Result<Option<String>, Error> {
        if msg.first == Fate::Dropped {
            return Ok(None);
        }
        *self.asked.entry(msg.key).or_default() += 1;
        answer("first", msg.first)
    }
    #[rcv(sharded)]
    fn count(&mut self, msg: &Count) -> Option<u64> {
        let count = *self.asked.get(&msg.0)?;
        Some(count)
    }
}
#[derive(App)]
struct Second {
    asked: Dict<u64, u64>,
}
#[handlers]
impl Second {
    #[rcv(sharded)]
    fn ask(&mut self, msg: &Ask) -> Result<Option<String>, Error> {
        if msg.second == Fate::Dropped {
            return Ok(None);
        }
        *self.asked.entry(msg.key + 1_000_000).or_default() += 1;
        answer("second", msg.second)
    }
    #[rcv(sharded)]
    fn count(&mut self, msg: &CountSecond) -> Option<u64> {
        let count = *self.asked.get(&msg.0)?;
        Some(count)
    }
}
/// Answers with the number of changes that requests caused in the first app.
#[derive(Message)]
#[message(reply = u64)]
struct Count(u64);
#[derive(Message)]
#[message(reply = u64)]
struct CountSecond(u64);
/// Sees every request and cannot answer.
#[derive(App)]
struct Observer {
    seen: Dict<u64, u64>,
}
#[handlers]
impl Observer {
    #[rcv(sharded, observes)]
    fn ask(&mut self, msg: &Ask) -> Result<(), Error> {
        *self.seen.entry(msg.key).or_default() += 1;
        // An observer's error must not become the answer.
        if msg.key % 2 == 1 { Err("observers have no say".into()) } else { Ok(()) }
    }
}

/// A message that no app handles.
#[derive(Message)]
#[message(reply = u64)]
struct Unheard;

fn expected(ask: &Ask) -> Result<String, RequestError> {
    let mut fates = [("first", ask.first), ("second", ask.second)].into_iter();
    loop {
        return match fates.next() {
            Some((_, Fate::Dropped | Fate::PassedOn)) => continue,
            Some((who, Fate::Answered | Fate::Slow(_))) => Ok(who.into()),
            Some((who, Fate::Failed)) => Err(RequestError::Handler(Error::new(format!("{who} says no")))),
            Some((_, Fate::Panicked)) => Err(RequestError::Panicked),
            None => Err(RequestError::NoAnswer { message: <Ask as Message>::NAME }),
        };
    }
}

const FATES: [Fate; 6] =
    [Fate::Answered, Fate::Failed, Fate::Panicked, Fate::Slow(2), Fate::Dropped, Fate::PassedOn];

#[test]
fn the_first_answer_in_the_order_of_apps_is_the_answer() {
    for on in EVERYWHERE {
        on_workers(2, async {
            let builder = Hive::builder().app::<First>().app::<Observer>().app::<Second>();
            let (hive, _journal) = start(builder, on);
            let mut key = 0;

            for first in FATES {
                for second in FATES {
                    for twice in 0..2 {
                        key += 1;
                        let ask = Ask { key, first, second };
                        let want = expected(&ask);
                        let got = hive.request_within(Duration::from_secs(20), ask.clone()).await;

                        assert_eq!(got, want, "{ask:?}, {twice}");

                        // Once an app has answered, later apps do not get the request. An error is an answer,
                        // too. A failed handler changes nothing.
                        let ran = match first {
                            Fate::Answered | Fate::Slow(_) | Fate::PassedOn => Ok(1),
                            _ => Err(RequestError::NoAnswer { message: <Count as Message>::NAME }),
                        };

                        assert_eq!(hive.request(Count(key)).await, ran, "{ask:?}");
                        let reached = matches!(first, Fate::Dropped | Fate::PassedOn);
                        let ran = match second {
                            Fate::Answered | Fate::Slow(_) | Fate::PassedOn if reached => Ok(1),
                            _ => Err(RequestError::NoAnswer { message: <CountSecond as Message>::NAME }),
                        };
                        assert_eq!(hive.request(CountSecond(key + 1_000_000)).await, ran, "{ask:?}");
                    }
                }
            }

            let unheard = hive.request(Unheard).await;
            assert_eq!(unheard, Err(RequestError::NoApp { message: <Unheard as Message>::NAME }));

            let all_free = || hive.status().credits_free == limits::CREDITS_PER_IO_BEE;
            eventually("credits", Duration::from_secs(5), all_free).await;
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

#[test]
fn the_order_of_apps_is_the_order_of_the_chain() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Second>().app::<First>(), On::Memory);
        let ask = Ask { key: 1, first: Fate::Answered, second: Fate::Answered };
        assert_eq!(hive.request(ask).await, Ok("second".to_string()));
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// Maximum delay of an answer on a busy machine.
const SLACK: Duration = Duration::from_millis(300);

#[test]
fn no_request_ends_after_its_deadline() {
    let _alone = alone();
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<First>().app::<Second>().credits(64), On::Memory);
        let mut asking = Vec::new();
        // Far more requests than credits, most of them behind slow handlers.
        for n in 0..400u64 {
            let hive = hive.clone();
            asking.push(tokio::spawn(async move {
                let limit = Duration::from_millis(50 + n % 7 * 30);
                let first = if n % 4 == 0 { Fate::Slow(100) } else { Fate::Answered };
                let began = Instant::now();
                let got =
                    hive.request_within(limit, Ask { key: n % 20, first, second: Fate::Answered }).await;
                let took = began.elapsed();

                assert!(took < limit + SLACK, "{took:?} of {limit:?}");
                match got {
                    Ok(who) => assert_eq!(who, "first"),
                    Err(error) => {
                        // some requests wait for a credit until their timeout
                        let overloaded = error == RequestError::Overloaded { after: limit };
                        assert!(overloaded || error == RequestError::Timeout { after: limit }, "{error}");
                        assert!(took >= limit, "{took:?} of {limit:?}")
                    }
                }
            }))
        }

        for task in asking {
            task.await.unwrap()
        }

        // Requests that timed out were handled or dropped in the end, and hold no credits.
        eventually("credits", Duration::from_secs(20), || hive.status().credits_free == 64).await;
        let again = Ask { key: 1, first: Fate::Answered, second: Fate::Answered };
        assert_eq!(hive.request(again).await, Ok("first".to_string()));
        hive.stop(Duration::from_secs(5)).await;
    })
}

// ---- "handled and committed" ----

#[derive(Message)]
struct Note {
    key: u64,
    fail: u64,
}
#[derive(Message)]
#[message(reply = u64)]
struct Noted(u64);

macro_rules! noting {
    ($name:ident, $number:literal, $($read:item)*) => {
        #[derive(App)]
        struct $name {
            notes: Dict<u64, u64>,
        }
        #[handlers]
        impl $name {
            #[rcv(sharded)]
            fn note(&mut self, msg: &Note) -> Result<(), Error> {
                if msg.key == 1_000 + $number {
                    return Ok(());
                }

                std::thread::sleep(Duration::from_millis($number * 5));
                *self.notes.entry(msg.key).or_default() += 1;
                if msg.fail == $number {
                    return Err("as asked".into());
                }

                Ok(())
            }
            #[rcv(sharded)]
            fn noted(&mut self, msg: &Noted) -> Option<u64> {
                if msg.0 / 10_000 != $number {
                    return None;
                }
                let count = self.notes.get(&(msg.0 % 10_000)).copied().unwrap_or(0);
                Some(count)
            }
        }
    };
}
noting!(NoteOne, 1,);
noting!(NoteTwo, 2,);

#[test]
fn a_unit_answer_means_that_all_who_handle_it_have_committed() {
    for on in EVERYWHERE {
        on_workers(3, async {
            let (hive, _journal) = start(Hive::builder().app::<NoteOne>().app::<NoteTwo>(), on);
            for key in 0..20 {
                assert_eq!(hive.request(Note { key, fail: 0 }).await, Ok(()));
                for app in [1, 2] {
                    assert_eq!(hive.request(Noted(app * 10_000 + key)).await, Ok(1), "{on:?}");
                }

                // One of the apps fails. Its error is the answer, and the changes of the other app stay.
                let failed = hive.request(Note { key, fail: 1 + key % 2 }).await;
                assert_eq!(failed, Err(RequestError::Handler(Error::new("as asked"))));

                let kept = [1, 2].map(|app| if app == 1 + key % 2 { 1 } else { 2 });
                for (app, kept) in [1, 2].into_iter().zip(kept) {
                    assert_eq!(hive.request(Noted(app * 10_000 + key)).await, Ok(kept));
                }
            }

            // One of the apps drops the message.
            assert_eq!(hive.request(Note { key: 1_001, fail: 0 }).await, Ok(()));
            assert_eq!(hive.request(Noted(21_001)).await, Ok(1));
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

/// Handled once per cell.
#[derive(Message)]
struct Roll {
    fail: bool,
}
#[derive(App)]
struct Calling {
    names: Dict<u64, u64>,
}
#[handlers]
impl Calling {
    #[rcv(sharded)]
    fn name(&mut self, msg: &Note) {
        self.names.put(msg.key, 0);
    }
    #[rcv(each = names)]
    fn roll(&mut self, key: &u64, msg: &Roll) -> Result<(), Error> {
        std::thread::sleep(Duration::from_millis(2));
        *self.names.entry(*key).or_default() += 1;
        if msg.fail && *key == 3 { Err("not here".into()) } else { Ok(()) }
    }
    #[rcv(sharded)]
    fn noted(&mut self, msg: &Noted) -> u64 {
        self.names.get(&msg.0).copied().unwrap_or(0)
    }
}

#[test]
fn a_sweep_is_answered_when_every_cell_has_committed() {
    for on in EVERYWHERE {
        on_workers(2, async {
            let (hive, _journal) = start(Hive::builder().app::<Calling>(), on);
            // If there are no cells, the sweep is complete at once.
            assert_eq!(hive.request(Roll { fail: false }).await, Ok(()), "{on:?}");

            for key in 0..10 {
                hive.request(Note { key, fail: 0 }).await.unwrap();
            }

            for round in 1..4 {
                assert_eq!(hive.request(Roll { fail: false }).await, Ok(()), "{on:?}");
                for key in 0..10 {
                    assert_eq!(hive.request(Noted(key)).await, Ok(round));
                }
            }

            let failed = hive.request(Roll { fail: true }).await;
            assert_eq!(failed, Err(RequestError::Handler(Error::new("not here"))));
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

static DRILL_ENDS: AtomicBool = AtomicBool::new(false);

/// Handled once per cell; each handler runs until it is released.
#[derive(Message)]
struct Drill;
#[derive(App)]
struct Drilling {
    names: Dict<u64, u64>,
    before: Dict<u64, u64>,
}
#[handlers]
impl Drilling {
    #[rcv(sharded)]
    fn name(&mut self, msg: &Note) {
        self.names.put(msg.key, 0);
    }
    #[rcv(each = names)]
    fn drill(&mut self, key: &u64, _: &Drill) {
        *self.names.entry(*key).or_default() += 1;
        while !DRILL_ENDS.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1))
        }
    }
    /// A handler whose map panics for the first key.
    #[rcv(each = names, joins)]
    fn roll(&mut self, key: &u64, msg: &Roll) -> Result<(), Error> {
        let left = *key - 1;
        *self.before.entry(left).or_default() += 1;
        *self.names.entry(*key).or_default() += 1;
        if msg.fail { Err("as asked".into()) } else { Ok(()) }
    }
    #[rcv(sharded)]
    fn noted(&mut self, msg: &Noted) -> u64 {
        self.names.get(&msg.0).copied().unwrap_or(0)
    }
}

#[test]
fn a_sweep_that_a_stop_cuts_off_is_not_said_to_be_done() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Drilling>(), On::Memory);
        for key in 0..10 {
            hive.request(Note { key, fail: 0 }).await.unwrap();
        }

        let asking = hive.clone();
        let asked = tokio::spawn(async move { asking.request(Drill).await });
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!asked.is_finished());

        hive.stop(Duration::ZERO).await;
        assert_eq!(asked.await.unwrap(), Err(RequestError::Unavailable));
        DRILL_ENDS.store(true, Ordering::Release);
    })
}

#[test]
fn a_sweep_whose_map_panics_for_one_cell_fails_there_and_reaches_the_others() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Drilling>(), On::Memory);
        for key in 0..5 {
            hive.request(Note { key, fail: 0 }).await.unwrap();
        }

        for round in 1..4 {
            let failed = hive.request(Roll { fail: false }).await;
            assert_eq!(failed, Err(RequestError::Panicked), "round {round}");
            for key in 0..5 {
                let want = if key == 0 { 0 } else { round };
                assert_eq!(hive.request(Noted(key)).await, Ok(want), "key {key}");
            }
        }

        let all_free = || hive.status().credits_free == limits::CREDITS_PER_IO_BEE;
        eventually("credits", Duration::from_secs(5), all_free).await;
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// A message that passes through more nested stateless handlers than the limit allows.
#[derive(Message)]
struct Down {
    left: u64,
}
#[derive(App)]
struct Stairs {
    arrived: Dict<u64, u64>,
}
#[derive(Message)]
struct Arrived;
#[handlers]
impl Stairs {
    #[rcv(stateless)]
    fn down(&mut self, msg: &Down, ctx: &mut Ctx) {
        if msg.left == 0 { ctx.emit(Arrived) } else { ctx.emit(Down { left: msg.left - 1 }) }
    }
    #[rcv(centralized)]
    fn arrived(&mut self, _: &Arrived) {
        *self.arrived.entry(0).or_default() += 1
    }
    #[rcv(centralized)]
    fn noted(&mut self, _: &Noted) -> u64 {
        self.arrived.get(&0).copied().unwrap_or(0)
    }
}

#[test]
fn stateless_handlers_nested_too_deep_are_sent_on_as_ordinary_messages() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Stairs>(), On::Memory);
        for depth in
            [0, 5, limits::STATELESS_DEPTH_MAX as u64 - 1, limits::STATELESS_DEPTH_MAX as u64 + 5, 200]
        {
            let before = hive.request(Noted(0)).await.unwrap();
            hive.emit(Down { left: depth }).await;
            let mut now = before;

            for _ in 0..200 {
                now = hive.request(Noted(0)).await.unwrap();
                if now > before {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await
            }

            assert_eq!(now, before + 1, "{depth} deep");
        }

        assert_eq!(hive.status().cycles, 0);
        hive.stop(Duration::from_secs(5)).await;
    })
}

// ---- while the hive stops ----

#[test]
fn requests_while_the_hive_stops_end_too() {
    for grace in [Duration::ZERO, Duration::from_millis(50), Duration::from_secs(5)] {
        on_workers(2, async {
            let (hive, _) = start(Hive::builder().app::<First>().app::<Second>(), On::Memory);
            let mut asking = Vec::new();
            for n in 0..200u64 {
                let hive = hive.clone();
                asking.push(tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_micros(n * 200)).await;
                    let limit = Duration::from_secs(2);
                    let began = Instant::now();
                    let first = if n % 10 == 0 { Fate::Slow(20) } else { Fate::Answered };
                    let got =
                        hive.request_within(limit, Ask { key: n % 30, first, second: Fate::Answered }).await;

                    assert!(began.elapsed() < limit + SLACK);
                    match got {
                        Ok(_) => true,
                        Err(RequestError::Unavailable) => false,
                        Err(other) => panic!("{n}: {other}"),
                    }
                }))
            }

            tokio::time::sleep(Duration::from_millis(20)).await;
            let began = Instant::now();
            hive.stop(grace).await;
            assert!(began.elapsed() < grace + SLACK, "{:?}", began.elapsed());

            let mut answered = 0;
            for task in asking {
                answered += task.await.unwrap() as usize
            }

            assert!(answered > 0 && answered < 200, "{answered}");
            let ask = Ask { key: 1, first: Fate::Answered, second: Fate::Answered };
            assert_eq!(hive.request(ask).await, Err(RequestError::Unavailable));
        })
    }
}

#[test]
fn nobody_waits_for_ever_on_a_hive_that_has_stopped() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<First>().credits(4), On::Memory);
        hive.stop(Duration::from_secs(1)).await;
        let ask = || Ask { key: 1, first: Fate::Answered, second: Fate::Answered };
        let limit = Duration::from_secs(1);
        tokio::time::timeout(limit, async {
            for _ in 0..20 {
                hive.emit(ask()).await
            }
        })
        .await
        .expect("what is emitted to a hive that has stopped is dropped at once");

        let mut io = hive.io_with_credits(4);
        tokio::time::timeout(limit, async {
            for _ in 0..20 {
                io.emit(ask());
                io.flush().await
            }
        })
        .await
        .expect("so is what an IO bee flushes");

        tokio::time::timeout(limit, hive.stop(Duration::from_secs(5)))
            .await
            .expect("stopping twice is no harm");
    })
}

#[test]
fn settings_for_an_app_without_any_are_refused() {
    on_workers(2, async {
        let settings: toml::Table = "[first]\nsize = 3".parse().unwrap();
        let error = Hive::builder().app::<First>().settings(settings).start().expect_err("refused");
        assert!(error.to_string().contains("`size`"), "{error}");
        let settings: toml::Table = "[frist]\nsize = 3".parse().unwrap();
        let error = Hive::builder().app::<First>().settings(settings).start().expect_err("refused");
        assert!(error.to_string().contains("first"), "{error}");
    })
}

/// A thread that runs no tasks sends requests, which end in the same ways as the requests of a task.
#[test]
fn a_plain_thread_can_send_blocking_requests() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let hive = {
        let _inside = runtime.enter();
        Hive::builder().app::<First>().app::<Second>().start().unwrap()
    };

    let ask = |key, first| Ask { key, first, second: Fate::PassedOn };
    assert_eq!(hive.request_blocking(ask(1, Fate::Answered)), Ok("first".to_string()));

    let failed = hive.request_blocking(ask(1, Fate::Failed));
    assert!(matches!(failed, Err(RequestError::Handler(error)) if error.text() == "first says no"));

    let nobody = hive.request_blocking(ask(1, Fate::PassedOn));
    assert_eq!(nobody, Err(RequestError::NoAnswer { message: <Ask as Message>::NAME }));

    let limit = Duration::from_millis(30);
    let late = hive.request_blocking_within(limit, ask(2, Fate::Slow(300)));
    assert_eq!(late, Err(RequestError::Timeout { after: limit }));

    // Many threads at the same time.
    std::thread::scope(|scope| {
        let asks =
            |n: u64| (0..50u64).all(|k| hive.request_blocking(ask(100 * n + k, Fate::Answered)).is_ok());
        let threads: Vec<_> = (1..=8).map(|n| scope.spawn(move || asks(n))).collect();
        threads.into_iter().for_each(|thread| assert!(thread.join().unwrap()))
    });

    // A blocking thread of the runtime may wait, too.
    let blocking = hive.clone();
    let asked = runtime.spawn_blocking(move || blocking.request_blocking(Count(1)));
    assert_eq!(runtime.block_on(asked).unwrap(), Ok(2), "what was undone does not count");

    runtime.block_on(hive.stop(Duration::from_secs(5)));
    assert_eq!(hive.request_blocking(ask(1, Fate::Answered)), Err(RequestError::Unavailable));
    runtime.shutdown_timeout(Duration::from_millis(200));
    assert_eq!(hive.request_blocking(ask(1, Fate::Answered)), Err(RequestError::Unavailable));
}

/// A task or a handler must not block, because it may hold the thread that has to answer. The call fails
/// before it sends anything.
#[test]
fn a_blocking_request_from_a_task_or_handler_is_refused() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<First>().app::<Waits>(), On::Memory);
        let asking = hive.clone();
        let in_a_task = tokio::spawn(async move { asking.request_blocking(Count(7)) });
        assert!(in_a_task.await.unwrap_err().is_panic());
        assert_eq!(hive.status().apps[0].handlers[1].messages, 0, "nothing was asked");

        *ASKED_FROM_INSIDE.lock().unwrap() = Some(hive.clone());
        assert_eq!(hive.request(AskFromInside).await, Err(RequestError::Panicked));
        let error = hive.dead_letters().remove(0).error;
        assert!(error.text().contains("a handler cannot wait for an answer"), "{error}");
        ASKED_FROM_INSIDE.lock().unwrap().take();
        hive.stop(Duration::from_secs(5)).await;
    })
}

static ASKED_FROM_INSIDE: std::sync::Mutex<Option<Hive>> = std::sync::Mutex::new(None);

#[derive(Message)]
struct AskFromInside;
#[derive(App)]
struct Waits {}
#[handlers]
impl Waits {
    #[rcv(stateless)]
    fn ask(&mut self, _: &AskFromInside) {
        let hive = ASKED_FROM_INSIDE.lock().unwrap().clone();
        if let Some(hive) = hive {
            let _ = hive.request_blocking(Count(7));
        }
    }
}
