//! Echo requests from a host, and what became of them.
//!
//! An answer that is late is not lost: on a machine that has too much to do everything stands still now and then. `ping -c`
//! would not know, for once it has an answer it waits for the others twice as long as that one took, and no longer: so each
//! request is a `ping` of its own.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::host::Host;

/// Pause between two echo requests of a series.
const INTERVAL: Duration = Duration::from_millis(200);

/// How long an answer may take; one that is not there by then is lost.
const LOST: Duration = Duration::from_secs(5);

/// How long is listened for answers where none are wanted.
const SILENCE: Duration = Duration::from_secs(1);

/// Pause between two looks at what was answered.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// How long [`Ping::try_once`] waits.
const TRY_LIMIT: Duration = Duration::from_millis(200);

/// What `ping` may need beyond the time it takes by design.
const SLACK: Duration = Duration::from_secs(10);

/// A ping that can be sent.
#[derive(Debug)]
pub(crate) struct Ping<'host, 'lab> {
    from: &'host Host<'lab>,
    to: IpAddr,
}

/// Which requests of a series were answered.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    /// Requests of the series.
    count: u32,
    /// Those that were answered, by number, from 1.
    answered: BTreeSet<u32>,
}

impl<'host, 'lab> Ping<'host, 'lab> {
    pub(super) fn new(from: &'host Host<'lab>, to: IpAddr) -> Self {
        Self { from, to }
    }

    /// Sends one request and waits for its answer 200 ms, no longer; whether it came.
    pub(crate) fn try_once(&self) -> bool {
        self.one(TRY_LIMIT)
    }

    /// Sends `count` requests, 200 ms apart; all must be answered.
    ///
    /// # Panics
    /// When an answer is missing.
    pub(crate) fn assert_answered(&self, count: u32) {
        if let Err(what) = self.answered(count) {
            panic!("{what}")
        }
    }

    /// As [`Ping::assert_answered`], with an error instead of a panic.
    pub(crate) fn answered(&self, count: u32) -> Result<(), String> {
        let outcome = self.series(count, LOST);
        let all = outcome.all_answered().then_some(());
        all.ok_or_else(|| format!("{self}: {outcome:?}, all should have been answered"))
    }

    /// Sends `count` requests, 200 ms apart; none may be answered.
    ///
    /// # Panics
    /// When one is answered.
    pub(crate) fn assert_unanswered(&self, count: u32) {
        let outcome = self.series(count, SILENCE);
        assert!(outcome.answered.is_empty(), "{self}: {outcome:?}, none should have been answered");
    }

    /// Sends requests until one is answered and returns how long that took.
    ///
    /// # Panics
    /// When `limit` has passed.
    pub(crate) fn until_answered(&self, limit: Duration) -> Duration {
        self.answered_within(limit).unwrap_or_else(|| panic!("{self}: no answer within {limit:?}"))
    }

    /// As [`Ping::until_answered`]; `None` when `limit` has passed.
    pub(crate) fn answered_within(&self, limit: Duration) -> Option<Duration> {
        let mut talk = self.from.talk_to(self.to, &format!("{:.3}", INTERVAL.as_secs_f64()));
        let begun = Instant::now();
        loop {
            let elapsed = begun.elapsed();
            if !talk.answered().is_empty() {
                return Some(elapsed);
            }
            if elapsed > limit {
                return None;
            }
            sleep(LOOK_INTERVAL)
        }
    }

    /// Sends `count` requests and no more, each by a `ping` of its own that waits for its answer for `limit`.
    fn series(&self, count: u32, limit: Duration) -> Outcome {
        std::thread::scope(|scope| {
            let one = |number: u32| {
                sleep(INTERVAL * (number - 1));
                self.one(limit).then_some(number)
            };
            let all: Vec<_> = (1..=count).map(|number| scope.spawn(move || one(number))).collect();
            let answers = all.into_iter().filter_map(|request| {
                request.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            Outcome { count, answered: answers.collect() }
        })
    }

    /// Whether one request is answered within `limit`.
    fn one(&self, limit: Duration) -> bool {
        let (to, seconds) = (self.to.to_string(), format!("{:.3}", limit.as_secs_f64()));
        let words = ["ping", "-n", "-q", "-c", "1", "-W", &seconds, &to];
        let finished = self.from.lab().run(&self.from.words(&words), limit + SLACK);
        match finished.output.split(", ").nth(1).and_then(|part| part.split(' ').next()) {
            Some("1") => true,
            Some("0") => false,
            _ => panic!("{self}: not understood:\n{}{}", finished.output, finished.error),
        }
    }
}

impl std::fmt::Display for Ping<'_, '_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ping {} from {}", self.to, self.from.switch_interface())
    }
}

impl Outcome {
    /// Whether each request was answered.
    fn all_answered(&self) -> bool {
        self.answered.len() == self.count as usize
    }
}
