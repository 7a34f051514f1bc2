//! A bee's counters: message counts by sender, and message durations.
//!
//! Most bees have only one sender and are never timed, so all other counters are allocated on demand.

use crate::cell::BeeId;
use crate::hive::consensus::journal::AppId;
use crate::hive::message::batch::{Address, Source};
use crate::limits;

/// Message counts by sender, and message durations.
#[derive(Default, Clone, Debug)]
pub(crate) struct Traffic {
    /// Number of messages.
    pub(crate) messages: u64,
    /// The first sender. Its count is `messages` minus the counts of all others.
    first: Peer,
    more: Option<Box<More>>,
}

/// The additional counters of a bee that has several senders or has been timed.
#[derive(Default, Clone, Debug)]
struct More {
    /// Number of messages in timed runs, and the duration of these runs.
    timed_messages: u32,
    timed_nanoseconds: u64,
    /// Index of the most recently counted sender. The next message often has the same sender.
    last: u32,
    /// The senders other than the first, and their message counts. Once the list is full, its last entry
    /// counts all other senders together.
    others: Vec<(Peer, u64)>,
}

/// A sender: app and bee, packed into one word. A bee id is unique only within its app.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Peer(u64);

impl Peer {
    /// Stands for all senders outside of apps. No app has this number.
    const OUTSIDE: u16 = u16::MAX;
    /// Stands for senders that are not bees. No bee has this id.
    const STATELESS: u64 = u64::MAX >> 16;

    #[inline]
    pub(crate) fn of(source: &Source) -> Peer {
        let (app, bee) = match source.sender {
            Address::App(AppId(app)) => (app, source.bee.map_or(Peer::STATELESS, |bee| bee.0)),
            Address::Io(..) | Address::Outside => (Peer::OUTSIDE, Peer::STATELESS),
        };
        Peer(bee << 16 | u64::from(app))
    }

    /// Returns the sender's app, or `None` if the sender is not an app.
    pub(crate) fn app(self) -> Option<usize> {
        let app = self.0 as u16;
        (app != Peer::OUTSIDE).then_some(usize::from(app))
    }

    /// Returns the sending bee, or `None` for stateless handlers and for senders outside of apps.
    pub(crate) fn bee(self) -> Option<BeeId> {
        let bee = self.0 >> 16;
        (bee != Peer::STATELESS).then_some(BeeId(bee))
    }
}

impl Traffic {
    /// Counts a run of messages. Returns whether the caller should time it. Reading the clock costs as much
    /// as a short handler, so few runs are timed: about one in `MESSAGES_PER_TIMED_RUN` messages.
    #[inline]
    #[must_use]
    pub(crate) fn count(&mut self, sender: Peer, messages: u32) -> bool {
        let before = self.messages / limits::MESSAGES_PER_TIMED_RUN;
        self.add(sender, u64::from(messages));
        self.messages / limits::MESSAGES_PER_TIMED_RUN != before
    }

    /// Adds a timed run. Halves both sums before the message count overflows, which preserves their ratio.
    #[cold]
    pub(crate) fn timed(&mut self, messages: u32, took: std::time::Duration) {
        let more = self.more.get_or_insert_default();
        if more.timed_messages > u32::MAX / 2 {
            more.timed_messages /= 2;
            more.timed_nanoseconds /= 2;
        }
        more.add_timed(messages, u64::try_from(took.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Returns the average duration of a message, or `None` if no run was timed.
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

    /// Adds the counts of a bee that is merging into this one.
    pub(crate) fn absorb(&mut self, other: &Traffic) {
        for (sender, messages) in other.peers() {
            self.add(sender, messages)
        }
        if let Some(more) = &other.more {
            self.more.get_or_insert_default().add_timed(more.timed_messages, more.timed_nanoseconds)
        }
    }

    /// Returns the senders and their message counts.
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
            // the table is full; its last entry counts all other senders
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
