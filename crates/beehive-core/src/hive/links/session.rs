//! A session between two incarnations of hives: it makes an unreliable network reliable and ordered. It is a state machine
//! without a clock and without a network.

use super::frame::{Body, Packet};
use beehive_protocol::Incarnation;
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of bodies that a receiver keeps because earlier ones are missing. The sender sends the others again.
const AHEAD_MAX: u64 = 256;

/// Maximum number of unacknowledged bodies that are sent again at once.
const AGAIN_MAX: usize = 64;

/// This hive's end of a session.
pub(super) struct Session {
    /// The two incarnations: this hive's, and the other hive's.
    me: Incarnation,
    pub(super) peer: Incarnation,
    /// The number of the first body in `unacknowledged`.
    first: u64,
    /// The bodies that the other hive has not acknowledged.
    unacknowledged: VecDeque<Body>,
    /// Number of bodies received without a gap.
    received: u64,
    /// Bodies that arrived before earlier ones.
    ahead: BTreeMap<u64, Body>,
    /// Whether the other hive is dead: nothing is sent or taken any more.
    is_over: bool,
    /// Whether nothing was acknowledged since the last call of [`Session::again`].
    is_silent: bool,
}

impl Session {
    pub(super) fn new(me: Incarnation, peer: Incarnation) -> Session {
        Session {
            me,
            peer,
            first: 0,
            unacknowledged: VecDeque::new(),
            received: 0,
            ahead: BTreeMap::new(),
            is_over: false,
            is_silent: false,
        }
    }

    /// Ends the session, because the other hive is dead: what it has not acknowledged never arrives. Returns whether the
    /// session has not ended before.
    pub(super) fn end(&mut self) -> bool {
        self.unacknowledged.clear();
        self.ahead.clear();
        !std::mem::replace(&mut self.is_over, true)
    }

    /// Checks whether the session has ended.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    fn packet(&self, body: Option<(u64, Body)>) -> Packet {
        Packet { from: self.me, to: self.peer, received: self.received, body }
    }

    /// Adds a body. Returns its first packet.
    pub(super) fn send(&mut self, body: Body) -> Packet {
        let number = self.first + self.unacknowledged.len() as u64;
        self.unacknowledged.push_back(body.clone());
        self.packet(Some((number, body)))
    }

    /// Takes a packet of this session. Returns the bodies that are now complete, in order, and a packet that acknowledges
    /// them.
    pub(super) fn take(&mut self, packet: Packet) -> (Vec<Body>, Option<Packet>) {
        debug_assert_eq!((packet.from, packet.to), (self.peer, self.me), "the packet of another session");
        let acknowledged = packet.received.saturating_sub(self.first).min(self.unacknowledged.len() as u64);
        if acknowledged > 0 {
            self.unacknowledged.drain(..acknowledged as usize);
            self.first += acknowledged;
            self.is_silent = false
        }

        let Some((number, body)) = packet.body else { return (Vec::new(), None) };
        if number >= self.received && number - self.received < AHEAD_MAX {
            self.ahead.insert(number, body);
        }
        let mut complete = Vec::new();
        while let Some(next) = self.ahead.remove(&self.received) {
            self.received += 1;
            complete.push(next)
        }
        (complete, Some(self.packet(None)))
    }

    /// Returns the packets to send again, because nothing was acknowledged since the last call.
    pub(super) fn again(&mut self) -> Vec<Packet> {
        if !std::mem::replace(&mut self.is_silent, true) {
            return Vec::new();
        }
        let bodies = (self.first..).zip(self.unacknowledged.iter().cloned());
        bodies.take(AGAIN_MAX).map(|body| self.packet(Some(body))).collect()
    }

    /// Returns the number of bodies that the other hive has not acknowledged.
    pub(super) fn under_way(&self) -> usize {
        self.unacknowledged.len()
    }

    /// Returns the number of bodies that the other hive has acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.first
    }

    /// Checks whether the other hive has acknowledged everything.
    pub(super) fn is_settled(&self) -> bool {
        self.unacknowledged.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Chance;

    fn body(number: u64) -> Body {
        Body::Closed { ticket: number }
    }

    /// Two ends exchange bodies over a network that loses, doubles and reorders packets.
    #[test]
    fn each_body_arrives_once_and_in_order() {
        for seed in 0..200 {
            let mut chance = Chance::new(seed);
            let (one, other) = (Incarnation(3), Incarnation(8));
            let mut ends = [Session::new(one, other), Session::new(other, one)];
            let (mut sent, mut arrived) = ([0, 0], [Vec::new(), Vec::new()]);
            let mut under_way: Vec<(usize, Packet)> = Vec::new();
            let mut steps = 0;
            while sent != [50, 50] || !ends.iter().all(Session::is_settled) {
                steps += 1;
                assert!(steps < 100_000, "seed {seed}: the ends do not settle");
                let end = chance.below(2);
                match chance.below(6) {
                    0 if sent[end] < 50 => {
                        under_way.push((1 - end, ends[end].send(body(sent[end]))));
                        sent[end] += 1
                    }
                    1 => under_way.extend(ends[end].again().into_iter().map(|packet| (1 - end, packet))),
                    _ if under_way.is_empty() => {}
                    kind => {
                        let at = chance.below(under_way.len());
                        let (to, packet) = match kind {
                            2 => under_way[at].clone(),
                            _ => under_way.swap_remove(at),
                        };
                        if kind == 3 {
                            continue;
                        }
                        let packet = Packet::decode(&packet.encode()).unwrap();
                        let (bodies, answer) = ends[to].take(packet);
                        arrived[to].extend(bodies);
                        under_way.extend(answer.map(|packet| (1 - to, packet)))
                    }
                }
            }
            let all: Vec<Body> = (0..50).map(body).collect();
            assert_eq!(arrived, [all.clone(), all], "seed {seed}");
        }
    }

    #[test]
    fn what_a_dead_hive_has_not_acknowledged_is_not_kept() {
        let mut end = Session::new(Incarnation(1), Incarnation(1));
        end.send(body(0));
        assert!(!end.is_settled() && !end.is_over());
        assert!(end.end() && !end.end(), "once");
        assert!(end.is_settled() && end.is_over() && end.again().is_empty());
    }

    #[test]
    fn bodies_far_ahead_are_not_kept() {
        let mut end = Session::new(Incarnation(1), Incarnation(1));
        let packet = |number| Packet {
            from: Incarnation(1),
            to: Incarnation(1),
            received: 0,
            body: Some((number, body(number))),
        };
        for number in (1..10_000).rev() {
            assert_eq!(end.take(packet(number)).0, []);
        }
        assert_eq!(end.ahead.len(), AHEAD_MAX as usize - 1);
        assert_eq!(end.take(packet(0)).0.len(), AHEAD_MAX as usize);
    }
}
