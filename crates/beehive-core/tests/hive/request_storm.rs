//! Many concurrent requests with all kinds of handlers, and a hive that stops in the middle: each request
//! ends once, in time, and correctly.

use crate::load::{Chance, EVERYWHERE, Lateness, On, alone, on_workers, start};
use beehive_core::{App, Builder, Ctx, Dict, Error, Hive, Message, RequestError, handlers};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Fate {
    Answered,
    Failed,
    Panicked,
    /// The handler blocks for this many milliseconds.
    Slow(u64),
    /// Postponed by this many milliseconds, and answered then.
    PutOff(u64),
    /// The map of the first app drops the request; the second app answers.
    Dropped,
    /// The first app does not answer; the second app does.
    PassedOn,
    /// No app answers.
    LeftByAll,
    /// Answered by a stateless handler.
    Stateless,
    /// No app handles the message.
    Unheard,
}

const KEYS: u64 = 40;

#[derive(Message, Clone, Debug)]
#[message(reply = (u64, u64))]
struct Ask {
    number: u64,
    fate: Fate,
    put_off: Vec<u64>,
}
#[derive(Message)]
#[message(reply = (u64, u64))]
struct AskStateless(u64);
#[derive(Message)]
#[message(reply = (u64, u64))]
struct AskNobody(#[allow(dead_code)] u64);
/// Answers with the number of requests with this key that left a change, in the first app and in the second
/// one.
#[derive(Message)]
#[message(reply = u64)]
struct Left(u64);
#[derive(Message)]
#[message(reply = u64)]
struct LeftWithSecond(u64);

#[derive(App)]
struct First {
    handled: Dict<u64, u64>,
    waiting: Dict<u64, bool>,
}
#[handlers]
impl First {
    #[rcv(joins)]
    fn ask(&mut self, msg: &Ask, ctx: &mut Ctx) -> Result<Option<(u64, u64)>, Error> {
        if msg.fate == Fate::Dropped {
            return Ok(None);
        }

        // Rolled back unless the request is answered here.
        *self.handled.entry(msg.number % KEYS).or_default() += 1;
        match msg.fate {
            Fate::Failed => Err(format!("{} fails", msg.number))?,
            // Unwinds without the panic hook, to keep the output of the test clean.
            Fate::Panicked => std::panic::resume_unwind(Box::new("as asked")),
            Fate::Slow(milliseconds) => std::thread::sleep(Duration::from_millis(milliseconds)),
            _ => {}
        }

        for milliseconds in &msg.put_off {
            if self.waiting.put(msg.number, true).is_none() {
                *self.handled.entry(msg.number % KEYS).or_default() -= 1;
                ctx.postpone(Duration::from_millis(*milliseconds));
                return Ok(None);
            }
            self.waiting.remove(&msg.number);
        }

        Ok((!matches!(msg.fate, Fate::PassedOn | Fate::LeftByAll)).then_some((1, msg.number)))
    }
    #[rcv(stateless)]
    fn stateless(&mut self, msg: &AskStateless) -> (u64, u64) {
        (1, msg.0)
    }
    #[rcv(sharded)]
    fn left(&mut self, msg: &Left) -> u64 {
        self.handled.get(&msg.0).copied().unwrap_or(0)
    }
}
#[derive(App)]
struct Second {
    handled: Dict<u64, u64>,
}
#[handlers]
impl Second {
    #[rcv(sharded)]
    fn ask(&mut self, msg: &Ask) -> Option<(u64, u64)> {
        if msg.fate == Fate::LeftByAll {
            return None;
        }
        *self.handled.entry(msg.number % KEYS).or_default() += 1;
        Some((2, msg.number))
    }
    #[rcv(sharded)]
    fn left(&mut self, msg: &LeftWithSecond) -> u64 {
        self.handled.get(&msg.0).copied().unwrap_or(0)
    }
}

fn apps() -> Builder {
    Hive::builder().app::<First>().app::<Second>()
}

type Answer = Result<(u64, u64), RequestError>;

async fn ask(hive: &Hive, number: u64, fate: Fate, limit: Duration) -> Answer {
    let put_off = match fate {
        Fate::PutOff(milliseconds) => vec![milliseconds],
        _ => vec![],
    };

    match fate {
        Fate::Stateless => hive.request_within(limit, AskStateless(number)).await,
        Fate::Unheard => hive.request_within(limit, AskNobody(number)).await,
        _ => hive.request_within(limit, Ask { number, fate, put_off }).await,
    }
}

/// Checks whether the request has ended correctly.
fn is_right(number: u64, fate: Fate, answer: &Answer) -> bool {
    match fate {
        Fate::Answered | Fate::Slow(_) | Fate::PutOff(_) | Fate::Stateless => *answer == Ok((1, number)),
        Fate::Dropped | Fate::PassedOn => *answer == Ok((2, number)),
        Fate::Failed => *answer == Err(RequestError::Handler(Error::new(format!("{number} fails")))),
        Fate::Panicked => *answer == Err(RequestError::Panicked),
        Fate::LeftByAll => *answer == Err(RequestError::NoAnswer { message: <Ask as Message>::NAME }),
        Fate::Unheard => *answer == Err(RequestError::NoApp { message: <AskNobody as Message>::NAME }),
    }
}

fn any_fate(chance: &mut Chance) -> Fate {
    match chance.below(400) {
        0..2 => Fate::Slow(1 + chance.below(3)),
        2..5 => Fate::PutOff(1 + chance.below(10)),
        n => match n % 8 {
            0 | 1 => Fate::Answered,
            2 => Fate::Failed,
            3 => Fate::Panicked,
            4 => Fate::Dropped,
            5 => Fate::PassedOn,
            6 => {
                if n % 16 == 6 {
                    Fate::LeftByAll
                } else {
                    Fate::Unheard
                }
            }
            _ => Fate::Stateless,
        },
    }
}

/// Maximum delay of an answer.
const LATE_MAX: Duration = Duration::from_millis(50);

/// Adds the delay of the machine itself once for each thread that must wake up before an answer arrives: the
/// thread of the timer, the bee's worker, the requester's worker, and the runtime of the test.
fn may_be_late(machine: Duration) -> Duration {
    LATE_MAX + 4 * machine
}

const QUESTIONS: u64 = 100_000;

/// The results of the requests of one task.
#[derive(Default)]
struct Ends {
    all: u64,
    /// Number of requests that certainly left a change in the first app, and number of those that may have
    /// left one.
    first: (u64, u64),
    second: (u64, u64),
    timeouts: u64,
    unavailable: u64,
    latest: Duration,
}

impl Ends {
    fn add(&mut self, fate: Fate, answer: &Answer, late: Duration) {
        self.all += 1;
        self.latest = self.latest.max(late);
        let unknown = match answer {
            Err(RequestError::Timeout { .. }) => {
                self.timeouts += 1;
                true
            }
            Err(RequestError::Unavailable) => {
                self.unavailable += 1;
                true
            }
            // the request was not handled, and will not be handled later
            Err(RequestError::Overloaded { .. }) => {
                self.timeouts += 1;
                return;
            }
            _ => false,
        };

        let left = |(certain, perhaps): &mut (u64, u64)| {
            *certain += u64::from(!unknown);
            *perhaps += u64::from(unknown)
        };

        match fate {
            Fate::Answered | Fate::Slow(_) | Fate::PutOff(_) | Fate::LeftByAll => left(&mut self.first),
            Fate::PassedOn => {
                left(&mut self.first);
                left(&mut self.second)
            }
            Fate::Dropped => left(&mut self.second),
            Fate::Failed | Fate::Panicked | Fate::Stateless | Fate::Unheard => {}
        }
    }

    fn join(&mut self, other: Ends) {
        self.all += other.all;
        self.timeouts += other.timeouts;
        self.unavailable += other.unavailable;
        self.latest = self.latest.max(other.latest);
        for (one, other) in [(&mut self.first, other.first), (&mut self.second, other.second)] {
            one.0 += other.0;
            one.1 += other.1
        }
    }
}

static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// Sends `count` requests one after the other.
async fn asker(hive: Hive, seed: u64, count: u64, stopping: bool) -> Ends {
    let (mut chance, mut ends) = (Chance(seed), Ends::default());
    for _ in 0..count {
        let (number, mut fate) = (NUMBERS.fetch_add(1, Ordering::Relaxed), any_fate(&mut chance));
        let mut limit = Duration::from_secs(20);
        // Some requests have a deadline that is too short, because they wait behind other requests or because
        // their handler takes longer.
        if chance.below(100) == 0 {
            limit = Duration::from_millis(chance.below(12));
            if chance.below(4) == 0 {
                fate = Fate::Slow(20)
            }
        }

        let began = Instant::now();
        let answer = ask(&hive, number, fate, limit).await;
        let took = began.elapsed();
        let right = match &answer {
            Err(RequestError::Timeout { after } | RequestError::Overloaded { after }) => {
                *after == limit && took >= limit && limit < Duration::from_secs(1)
            }
            Err(RequestError::Unavailable) => stopping,
            answer => is_right(number, fate, answer),
        };

        assert!(right, "question {number}, {fate:?} within {limit:?}: {answer:?} after {took:?}");
        ends.add(fate, &answer, took.saturating_sub(limit));
    }

    ends
}

/// Returns the total number of changes that all requests left.
async fn left(hive: &Hive) -> (u64, u64) {
    let mut sums = (0, 0);
    for key in 0..KEYS {
        sums.0 += hive.request(Left(key)).await.unwrap();
        sums.1 += hive.request(LeftWithSecond(key)).await.unwrap();
    }
    sums
}

fn all_end(on: On, askers: u64, count: u64) {
    let lateness = Lateness::measure();
    let ends = on_workers(2, async {
        let (hive, _journal) = start(apps(), on);
        let tasks: Vec<_> =
            (0..askers).map(|seed| tokio::spawn(asker(hive.clone(), seed, count / askers, false))).collect();
        let mut ends = Ends::default();
        for task in tasks {
            ends.join(task.await.unwrap())
        }

        hive.idle().await;
        // Postponed messages may still arrive.
        tokio::time::sleep(Duration::from_millis(30)).await;
        hive.idle().await;

        // Each request was handled exactly once or, if its outcome is unknown, at most once.
        let left = left(&hive).await;
        for (left, (certain, perhaps)) in [(left.0, ends.first), (left.1, ends.second)] {
            assert!(
                (certain..=certain + perhaps).contains(&left),
                "{left} of {certain} and {perhaps} unknown"
            );
        }

        hive.stop(Duration::from_secs(5)).await;
        ends
    });

    let machine = lateness.worst();
    assert_eq!(ends.all, count / askers * askers, "each has ended once");
    assert!(ends.timeouts > 0 && ends.unavailable == 0, "{} timeouts", ends.timeouts);

    println!(
        "{on:?}: {} questions, {} too late, the latest by {:?}; machine {machine:?}",
        ends.all, ends.timeouts, ends.latest
    );

    assert!(ends.latest <= may_be_late(machine), "late by {:?}; the machine by {machine:?}", ends.latest);
}

#[test]
fn every_question_has_one_end_in_time() {
    let _alone = alone();
    all_end(On::Memory, 64, QUESTIONS * 8 / 10)
}

#[test]
fn every_question_has_one_end_in_time_on_a_journal() {
    let _alone = alone();
    all_end(On::Journal, 64, QUESTIONS / 10)
}

#[test]
fn every_question_has_one_end_in_time_while_bees_move() {
    let _alone = alone();
    all_end(On::Journals, 64, QUESTIONS / 10)
}

#[test]
fn every_question_has_one_end_when_the_hive_stops() {
    let _alone = alone();
    let (hives, lateness) = (20, Lateness::measure());
    let (askers, count) = (32, QUESTIONS / 10 / hives / 32);
    let mut all = Ends::default();

    for seed in 0..hives {
        let ends = on_workers(2, async {
            let (hive, _journal) = start(apps(), EVERYWHERE[seed as usize % EVERYWHERE.len()]);
            let first = NUMBERS.load(Ordering::Relaxed);
            let tasks: Vec<_> = (0..askers)
                .map(|n| tokio::spawn(asker(hive.clone(), seed * 1_000 + n, count, true)))
                .collect();

            // Stop the hive somewhere in the middle, with or without time to finish the work in flight.
            let so_far = first + Chance(seed).below(askers * count);
            while NUMBERS.load(Ordering::Relaxed) < so_far && tasks.iter().any(|task| !task.is_finished()) {
                tokio::task::yield_now().await
            }

            hive.stop(Duration::from_millis(seed % 3 * 20)).await;
            let stopped = Instant::now();
            let mut ends = Ends::default();
            for task in tasks {
                ends.join(task.await.unwrap())
            }

            // A stopped hive must not keep any task waiting.
            ends.latest = ends.latest.max(stopped.elapsed());
            ends
        });
        all.join(ends)
    }

    let machine = lateness.worst();
    assert_eq!(all.all, hives * askers * count, "each has ended once");
    assert!(all.unavailable > 0);

    println!(
        "{} questions, {} unavailable, {} too late, the latest by {:?}; machine {machine:?}",
        all.all, all.unavailable, all.timeouts, all.latest
    );

    assert!(all.latest <= may_be_late(machine), "late by {:?}; the machine by {machine:?}", all.latest);
}
