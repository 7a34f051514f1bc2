//! Finds out whether one port sends nearly all packets of a switch while others send a little.
//!
//! If a driver left its input in the socket, the few packets of the other ports would wait behind those of the flood.
//! So in this case it reads on, and sheds the packets of the port that floods.

use crate::object::PortNo;

/// Votes of the packets for their ports (Boyer and Moore): the port with a clear majority remains.
#[derive(Debug, Default)]
pub(super) struct PortShares {
    candidate: Option<PortNo>,
    /// Votes for the candidate minus votes for others.
    lead: u32,
    total: u32,
    /// Whether packets of several ports have arrived in the current period, and in the previous one.
    is_mixed: bool,
    was_mixed: bool,
}

/// Number of packets from which on the shares say something.
const PACKETS_MIN: u32 = 64;

impl PortShares {
    /// Counts a packet.
    #[inline]
    pub(super) fn count(&mut self, port: PortNo) {
        self.total = self.total.saturating_add(1);
        if self.candidate == Some(port) {
            self.lead += 1
        } else if self.lead == 0 {
            self.is_mixed |= self.candidate.is_some();
            (self.candidate, self.lead) = (Some(port), 1)
        } else {
            self.is_mixed = true;
            self.lead -= 1
        }
    }

    /// Begins the next period. Earlier packets count half.
    pub(super) fn next_period(&mut self) {
        (self.lead, self.total) = (self.lead / 2, self.total / 2);
        (self.was_mixed, self.is_mixed) = (self.is_mixed, false)
    }

    /// Returns whether one port sends more than three quarters of the packets, and others send some.
    pub(super) fn is_dominated(&self) -> bool {
        let has_majority = self.total >= PACKETS_MIN && self.lead > self.total / 2;
        has_majority && (self.is_mixed || self.was_mixed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(ports: impl IntoIterator<Item = u32>) -> PortShares {
        let mut shares = PortShares::default();
        ports.into_iter().for_each(|port| shares.count(PortNo(port)));
        shares
    }

    #[test]
    fn a_flood_beside_others_dominates_and_equal_ports_do_not() {
        let flood = |n: u32| if n % 50 == 49 { 2 } else { 1 };
        assert!(after((0..1_000).map(flood)).is_dominated());
        assert!(!after((0..1_000).map(|n| n % 16)).is_dominated());
        assert!(!after((0..1_000).map(|n| n % 3 / 2)).is_dominated(), "two thirds");
        assert!(!after((0..1_000).map(|_| 1)).is_dominated(), "there is nobody else");
        assert!(!after((0..20).map(flood)).is_dominated(), "too few packets");
    }

    #[test]
    fn a_flood_is_forgotten_when_the_others_are_silent_or_the_flood_ends() {
        let mut shares = after((0..1_000).map(|n| u32::from(n % 50 == 49)));
        shares.next_period();
        assert!(shares.is_dominated());
        (0..1_000).for_each(|_| shares.count(PortNo(0)));
        shares.next_period();
        assert!(!shares.is_dominated(), "the others have been silent for a period");

        let mut shares = after((0..1_000).map(|n| u32::from(n % 50 == 49)));
        for _ in 0..3 {
            shares.next_period();
            (0..1_000).for_each(|n| shares.count(PortNo(n % 4)));
        }
        assert!(!shares.is_dominated());
    }
}
