//! What a bee counts: messages by sender, and how long they take. Most bees hear of one sender only, and are never timed.

use crate::cell::BeeId;
use crate::hive::message::batch::{Address, Source};
use crate::limits;

/// Messages by sender, and how long they take.
#[derive(Default, Clone, Debug)]
pub(crate) struct Traffic {
    pub(crate) messages: u64,
    /// Whose messages are those that nobody else sent.
    first: Peer,
    more: Option<Box<More>>,
}

/// What only busy bees have.
#[derive(Default, Clone, Debug)]
struct More {
    /// Messages of the runs that were timed, and what they took.
    timed_messages: u32,
    timed_nanoseconds: u64,
    last: u32,
    others: Vec<(Peer, u64)>,
}

/// Who sends to a bee: app and bee. Bees are numbered by app, so a number alone names none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Peer(u64);

impl Peer {
    /// No app has this number.
    const OUTSIDE: u16 = u16::MAX;
    /// No bee has this number.
    const STATELESS: u64 = u64::MAX >> 16;

    #[inline]
    pub(crate) fn of(source: &Source) -> Peer {
        let (app, bee) = match source.sender {
            Address::App(app) => (app, source.bee.map_or(Peer::STATELESS, |bee| bee.0)),
            Address::Io(..) | Address::Outside => (Peer::OUTSIDE, Peer::STATELESS),
        };
        Peer(bee << 16 | u64::from(app))
    }

    /// The app's number; none if it is from outside.
    pub(crate) fn app(self) -> Option<usize> {
        let app = self.0 as u16;
        (app != Peer::OUTSIDE).then_some(usize::from(app))
    }

    /// The bee; none if it is from outside, or a stateless handler's.
    pub(crate) fn bee(self) -> Option<BeeId> {
        let bee = self.0 >> 16;
        (bee != Peer::STATELESS).then_some(BeeId(bee))
    }
}

impl Traffic {
    /// Counts a run of messages; returns whether it should be timed: a clock costs as much as a short handler, so only some
    /// runs are.
    #[inline]
    #[must_use]
    pub(crate) fn count(&mut self, sender: Peer, messages: u32) -> bool {
        let before = self.messages / limits::MESSAGES_PER_TIMED_RUN;
        self.add(sender, u64::from(messages));
        self.messages / limits::MESSAGES_PER_TIMED_RUN != before
    }

    /// A run of `messages` took so long.
    #[cold]
    pub(crate) fn timed(&mut self, messages: u32, took: std::time::Duration) {
        let more = self.more.get_or_insert_default();
        if more.timed_messages > u32::MAX / 2 {
            more.timed_messages /= 2;
            more.timed_nanoseconds /= 2;
        }
        more.add_timed(messages, u64::try_from(took.as_nanos()).unwrap_or(u64::MAX))
    }

    /// What a message took, on average; nothing if none was timed.
    pub(crate) fn nanoseconds_per_message(&self) -> Option<u64> {
        let more = self.more.as_ref()?;
        more.timed_nanoseconds.checked_div(u64::from(more.timed_messages))
    }

    #[inline]
    fn add(&mut self, sender: Peer, messages: u64) {
        if self.messages == 0 {
            self.first = sender
        }
        self.messages += messages;
        if self.first != sender {
            self.more.get_or_insert_default().add(sender, messages)
        }
    }

    pub(crate) fn absorb(&mut self, other: &Traffic) {
        for (sender, messages) in other.peers() {
            self.add(sender, messages)
        }
        if let Some(more) = &other.more {
            self.more.get_or_insert_default().add_timed(more.timed_messages, more.timed_nanoseconds)
        }
    }

    /// Senders, with their messages.
    pub(crate) fn peers(&self) -> Vec<(Peer, u64)> {
        let others = self.more.as_ref().map_or(&[][..], |more| &more.others);
        let theirs: u64 = others.iter().map(|(_, messages)| messages).sum();
        let first = (self.messages > theirs).then(|| (self.first, self.messages - theirs));
        first.into_iter().chain(others.iter().copied()).collect()
    }
}

impl More {
    fn add_timed(&mut self, messages: u32, nanoseconds: u64) {
        self.timed_messages = self.timed_messages.saturating_add(messages);
        self.timed_nanoseconds = self.timed_nanoseconds.saturating_add(nanoseconds);
    }

    #[inline]
    fn add(&mut self, sender: Peer, messages: u64) {
        match self.others.get_mut(self.last as usize) {
            Some(slot) if slot.0 == sender => slot.1 += messages,
            _ => self.add_elsewhere(sender, messages),
        }
    }

    #[inline(never)]
    fn add_elsewhere(&mut self, sender: Peer, messages: u64) {
        let at = match self.others.iter().position(|(s, _)| *s == sender) {
            Some(at) => at,
            // the last place is for all further senders
            None if self.others.len() + 1 >= limits::PEERS_PER_BEE_MAX => self.others.len() - 1,
            None => {
                self.others.push((sender, 0));
                self.others.len() - 1
            }
        };
        self.others[at].1 += messages;
        self.last = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(bee: u64) -> Peer {
        Peer(bee << 16 | 3)
    }

    #[test]
    fn senders_are_told_apart_up_to_a_number() {
        let mut traffic = Traffic::default();
        for round in 1..=3 {
            for bee in 1..=20 {
                let _ = traffic.count(peer(bee), round);
            }
        }
        assert_eq!(traffic.messages, 120);
        let peers = traffic.peers();
        assert_eq!(peers.len(), limits::PEERS_PER_BEE_MAX);
        assert_eq!(peers.iter().map(|(_, messages)| messages).sum::<u64>(), 120);
        assert!(peers[..15].iter().zip(1..).all(|(found, bee)| *found == (peer(bee), 6)), "{peers:?}");
        assert_eq!((peers[0].0.app(), peers[0].0.bee()), (Some(3), Some(BeeId(1))));
    }

    #[test]
    fn two_bees_in_one_have_heard_what_both_have() {
        let (mut one, mut other) = (Traffic::default(), Traffic::default());
        let _ = one.count(peer(1), 5);
        let _ = other.count(peer(1), 2);
        let _ = other.count(peer(2), 3);
        other.timed(4, std::time::Duration::from_nanos(400));
        one.absorb(&other);
        assert_eq!(one.peers(), [(peer(1), 7), (peer(2), 3)]);
        assert_eq!((one.messages, one.nanoseconds_per_message()), (10, Some(100)));
        let mut none = Traffic::default();
        none.absorb(&one);
        assert_eq!(none.peers(), one.peers());
    }
}
