//! Detects dead connections: sends echo requests when the switch
//! is idle, and gives up after a number of unanswered requests.

use crate::driver::Close;
use beehive::Time;
use std::time::Duration;

/// The keep-alive state of one connection.
#[derive(Debug)]
pub(super) struct Keepalive {
    interval: Duration,
    misses: u32,
    heard: Time,
    asked: u32,
    probed: Option<Time>,
}

impl Keepalive {
    pub(super) fn new(interval: Duration, misses: u32, now: Time) -> Keepalive {
        Keepalive { interval, misses, heard: now, asked: 0, probed: None }
    }

    /// Records that a message of any type has arrived.
    #[inline]
    pub(super) fn heard(&mut self, now: Time) {
        self.heard = now;
        self.asked = 0;
    }

    /// Returns the time at which [`Keepalive::tick`] must next be called.
    pub(super) fn deadline(&self) -> Time {
        let question = self.heard + self.interval * (self.asked + 1);
        self.probed.map_or(question, |probed| question.min(probed + self.interval))
    }

    /// Returns whether to send an echo request now, or an error if too many requests are unanswered.
    pub(super) fn tick(&mut self, now: Time) -> Result<bool, Close> {
        let due = (now.since(self.heard).as_nanos() / self.interval.as_nanos().max(1))
            .min(u128::from(u32::MAX)) as u32;
        if due <= self.asked {
            return Ok(false);
        }
        if self.asked >= self.misses {
            return Err(Close::Silent);
        }

        // sends one request at a time, even if the clock has jumped
        self.asked += 1;
        if due > self.asked {
            self.heard = now - self.interval * self.asked;
        }

        Ok(true)
    }

    /// Starts a probe. Returns whether to send an echo request now.
    pub(super) fn probe(&mut self, now: Time) -> bool {
        let first = self.probed.is_none();
        self.probed.get_or_insert(now);
        first
    }

    /// Returns whether the outcome of a probe is awaited.
    pub(super) fn is_probed(&self) -> bool {
        self.probed.is_some()
    }

    /// Returns whether a message has arrived since the probe began, or `None` as long as the outcome is unknown.
    pub(super) fn probe_outcome(&mut self, now: Time) -> Option<bool> {
        let probed = self.probed?;
        let alive = self.heard > probed;
        if !alive && now.since(probed) < self.interval {
            return None;
        }
        self.probed = None;
        Some(alive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn at(ms: u64) -> Time {
        Time::from_nanoseconds(1_000_000_000) + Duration::from_millis(ms)
    }

    #[test]
    fn three_unanswered_questions_are_the_end() {
        let mut k = Keepalive::new(S, 3, at(0));
        assert_eq!(k.tick(at(999)), Ok(false));
        assert_eq!(k.deadline(), at(1000));
        assert_eq!(k.tick(at(1000)), Ok(true));
        assert_eq!(k.tick(at(1001)), Ok(false));
        assert_eq!(k.tick(at(2000)), Ok(true));
        assert_eq!(k.tick(at(3000)), Ok(true));
        assert_eq!(k.tick(at(3999)), Ok(false));

        assert_eq!(k.tick(at(4000)), Err(Close::Silent));
    }

    #[test]
    fn any_word_is_an_answer() {
        let mut k = Keepalive::new(S, 3, at(0));
        for second in 1..100 {
            assert_eq!(k.tick(at(second * 2000)), Ok(true));
            k.heard(at(second * 2000 + 1));
            assert_eq!(k.tick(at(second * 2000 + 1000)), Ok(false));
        }
    }

    #[test]
    fn a_pause_of_our_own_does_not_count_against_the_switch() {
        let mut k = Keepalive::new(S, 3, at(0));
        assert_eq!(k.tick(at(60_000)), Ok(true));
        assert_eq!(k.tick(at(60_001)), Ok(false));
        assert_eq!(k.tick(at(61_000)), Ok(true));
    }

    #[test]
    fn a_probe_ends_with_a_word_or_with_silence() {
        let mut k = Keepalive::new(S, 3, at(0));
        assert_eq!(k.probe_outcome(at(5)), None);
        assert!(k.probe(at(10)) && !k.probe(at(11)));
        assert_eq!(k.probe_outcome(at(500)), None);
        k.heard(at(501));
        assert_eq!(k.probe_outcome(at(502)), Some(true));
        assert_eq!(k.probe_outcome(at(503)), None);
        assert!(k.probe(at(600)));

        assert_eq!(k.deadline(), at(1501));
        assert_eq!(k.probe_outcome(at(1600)), Some(false));
    }
}
