//! Sends echo requests from a host and checks their answers.
//!
//! A late answer does not count as lost, because an overloaded machine may pause for a while. `ping -c` cannot be used:
//! once it has received one answer, it waits for the rest only twice as long as that answer took. Each
//! request is therefore a separate `ping` process.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::host::Host;

/// Pause between two echo requests of a series.
const INTERVAL: Duration = Duration::from_millis(200);

/// Time limit for an answer, after which it counts as lost.
const LOST: Duration = Duration::from_secs(5);

/// Time for which a test waits for answers if none may arrive.
const SILENCE: Duration = Duration::from_secs(1);

/// Interval at which the answers are polled.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Time for which [`Ping::try_once`] waits.
const TRY_LIMIT: Duration = Duration::from_millis(200);

/// Time that `ping` may take in addition to its timeout.
const SLACK: Duration = Duration::from_secs(10);

/// A ping that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Ping<'host, 'lab> {
    from: &'host Host<'lab>,
    to: IpAddr,
}

/// The result of a series of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    /// Number of requests in the series.
    count: u32,
    /// The numbers of the answered requests, counted from 1.
    answered: BTreeSet<u32>,
}

impl<'host, 'lab> Ping<'host, 'lab> {
    pub(super) fn new(from: &'host Host<'lab>, to: IpAddr) -> Self {
        Self { from, to }
    }

    /// Sends one request and waits up to 200 ms for its answer. Returns whether the answer arrived.
    pub(crate) fn try_once(&self) -> bool {
        self.one(TRY_LIMIT)
    }

    /// Sends `count` requests, 200 ms apart. All of them must be answered.
    ///
    /// # Panics
    /// Panics if an answer is missing.
    pub(crate) fn assert_answered(&self, count: u32) {
        if let Err(what) = self.answered(count) {
            panic!("{what}")
        }
    }

    /// Same as [`Ping::assert_answered`], with an error instead of a panic.
    pub(crate) fn answered(&self, count: u32) -> Result<(), String> {
        let outcome = self.series(count, LOST);
        let all = outcome.all_answered().then_some(());
        all.ok_or_else(|| format!("{self}: {outcome:?}, all should have been answered"))
    }

    /// Sends `count` requests, 200 ms apart. None of them may be answered.
    ///
    /// # Panics
    /// Panics if a request is answered.
    pub(crate) fn assert_unanswered(&self, count: u32) {
        let outcome = self.series(count, SILENCE);
        assert!(outcome.answered.is_empty(), "{self}: {outcome:?}, none should have been answered");
    }

    /// Sends requests until one is answered. Returns how long that took.
    ///
    /// # Panics
    /// Panics if no request is answered within `limit`.
    pub(crate) fn until_answered(&self, limit: Duration) -> Duration {
        self.answered_within(limit).unwrap_or_else(|| panic!("{self}: no answer within {limit:?}"))
    }

    /// Same as [`Ping::until_answered`], but returns `None` if no request is answered within `limit`.
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

    /// Sends exactly `count` requests. Each of them is a separate `ping` process that waits up to `limit` for
    /// the answer.
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

    /// Sends one request. Returns whether it is answered within `limit`.
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
    /// Returns whether all requests were answered.
    fn all_answered(&self) -> bool {
        self.answered.len() == self.count as usize
    }
}
