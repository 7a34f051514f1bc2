//! Echo requests from a host, and what became of them.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::host::Host;

/// Pause between two echo requests of a series.
const INTERVAL: Duration = Duration::from_millis(200);

/// How long the answer to the last request of a series may take.
const ANSWER_LIMIT: Duration = Duration::from_millis(1_000);

/// How long [`Ping::try_once`] waits, and with it each try of [`Ping::until_answered`].
const TRY_LIMIT: Duration = Duration::from_millis(200);

/// What `ping` may need beyond the time its series takes by design.
const SLACK: Duration = Duration::from_secs(10);

/// A ping that can be sent.
#[derive(Debug)]
pub(crate) struct Ping<'host, 'lab> {
    from: &'host Host<'lab>,
    to: IpAddr,
}

/// How many requests of a series were sent and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Echo requests sent.
    pub(crate) sent: u32,
    /// Echo replies that came back.
    pub(crate) answered: u32,
}

impl<'host, 'lab> Ping<'host, 'lab> {
    pub(super) fn new(from: &'host Host<'lab>, to: IpAddr) -> Self {
        Self { from, to }
    }

    /// Sends `count` requests, 200 ms apart.
    pub(crate) fn send(&self, count: u32) -> Outcome {
        self.series(count, ANSWER_LIMIT)
    }

    /// Sends one request and waits for its answer 200 ms, no longer; whether it came.
    pub(crate) fn try_once(&self) -> bool {
        self.series(1, TRY_LIMIT).answered > 0
    }

    /// Sends `count` requests; all must be answered.
    ///
    /// # Panics
    /// When an answer is missing.
    pub(crate) fn assert_answered(&self, count: u32) {
        let outcome = self.send(count);
        assert!(outcome.all_answered(), "{self}: {outcome:?}, all should have been answered");
    }

    /// Sends `count` requests; none may be answered.
    ///
    /// # Panics
    /// When one is answered.
    pub(crate) fn assert_unanswered(&self, count: u32) {
        let outcome = self.send(count);
        assert_eq!(outcome.answered, 0, "{self}: {outcome:?}, none should have been answered");
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
        let start = Instant::now();
        loop {
            let answered = self.try_once();
            let elapsed = start.elapsed();
            if elapsed > limit {
                return None;
            }
            if answered {
                return Some(elapsed);
            }
        }
    }

    fn series(&self, count: u32, answer_limit: Duration) -> Outcome {
        let seconds = |duration: Duration| format!("{:.3}", duration.as_secs_f64());
        let (count_text, to) = (count.to_string(), self.to.to_string());
        let (interval, answer) = (seconds(INTERVAL), seconds(answer_limit));
        let words = ["ping", "-n", "-q", "-c", &count_text, "-i", &interval, "-W", &answer, &to];
        let limit = INTERVAL * count + answer_limit + SLACK;
        let finished = self.from.lab().run(&self.from.words(&words), limit);
        Outcome::read(&finished.output)
            .unwrap_or_else(|| panic!("{self}: not understood:\n{}{}", finished.output, finished.error))
    }
}

impl std::fmt::Display for Ping<'_, '_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ping {} from {}", self.to, self.from.switch_interface())
    }
}

impl Outcome {
    /// Whether requests were sent and each was answered.
    pub(crate) fn all_answered(self) -> bool {
        self.sent > 0 && self.answered == self.sent
    }

    /// Reads `3 packets transmitted, 3 received, 0% packet loss, time 402ms`.
    fn read(output: &str) -> Option<Self> {
        let line = output.lines().find(|line| line.contains(" packets transmitted"))?;
        let mut numbers =
            line.split(", ").map(|part| part.split(' ').next().unwrap_or_default().parse().ok());
        Some(Self { sent: numbers.next()??, answered: numbers.next()?? })
    }
}
