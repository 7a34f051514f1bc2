//! A host that pings another host continuously, and the times of the answers.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use super::daemon::Daemon;

/// Time limit for the last answer.
const LAST_ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// A series of requests that continues until [`Talk::end`].
#[derive(Debug)]
pub(crate) struct Talk {
    daemon: Daemon,
    who: String,
}

/// The times at which answers arrived, in order, measured from 1970; and a description of the two hosts.
#[derive(Debug)]
pub(crate) struct Answers {
    at: Vec<Duration>,
    who: String,
}

impl Talk {
    /// Returns the command that sends a request to `address` every `interval_s` seconds.
    pub(super) fn words<'a>(address: &'a str, interval_s: &'a str) -> [&'a str; 6] {
        ["ping", "-n", "-D", "-i", interval_s, address]
    }

    pub(super) fn new(daemon: Daemon, from: &str, to: IpAddr) -> Talk {
        Talk { daemon, who: format!("{from} to {to}") }
    }

    /// Returns the numbers of the requests that were answered so far.
    pub(super) fn answered(&mut self) -> BTreeSet<u32> {
        self.daemon.assert_running();
        self.daemon.log().lines().filter_map(number).collect()
    }

    /// Returns what `ping` has printed so far.
    pub(crate) fn log(&self) -> String {
        self.daemon.log()
    }

    /// Stops the requests. Returns the answers.
    pub(crate) fn end(self) -> Answers {
        let Talk { mut daemon, who } = self;
        daemon.assert_running();
        let _ = daemon.signal("INT", LAST_ANSWER_LIMIT);
        Answers { at: daemon.log().lines().filter_map(moment).collect(), who }
    }
}

/// Returns the time in a line of `ping -D`, if the line reports an answer: `[1795297137.035121] 64 bytes from
/// ..`.
fn moment(line: &str) -> Option<Duration> {
    let (seconds, rest) = line.strip_prefix('[')?.split_once(']')?;
    rest.contains("bytes from").then(|| seconds.parse().ok().map(Duration::from_secs_f64)).flatten()
}

/// Returns the number of the answered request in a line of `ping`, such as `64 bytes from 10.0.0.2: icmp_seq=7 ttl=64
/// ..`.
fn number(line: &str) -> Option<u32> {
    let (head, rest) = line.split_once(" icmp_seq=")?;
    head.contains("bytes from").then(|| rest.split(' ').next()?.parse().ok()).flatten()
}

impl Answers {
    /// Returns the longest period without an answer that began or ended between two times.
    pub(crate) fn longest_gap(&self, from: Duration, to: Duration) -> Duration {
        let before = self.at.iter().rfind(|at| **at <= from).copied().unwrap_or(from);
        let within = self.at.iter().copied().filter(|at| *at > from && *at < to);
        let after = self.at.iter().find(|at| **at >= to).copied().unwrap_or(to);
        let mut longest = Duration::ZERO;
        let mut last = before;
        for at in within.chain([after]) {
            longest = longest.max(at.saturating_sub(last));
            last = at;
        }
        longest
    }

    /// Returns the time from a given moment to the next answer, or the maximum duration if there was none.
    pub(crate) fn first_after(&self, from: Duration) -> Duration {
        self.at.iter().find(|at| **at >= from).map_or(Duration::MAX, |at| *at - from)
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({} answers)", self.who, self.at.len())
    }
}
