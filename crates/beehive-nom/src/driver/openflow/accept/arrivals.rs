//! Queues accepted connections until their handshakes may begin. The addresses from which they come take turns, so a host
//! that opens thousands of connections delays mostly its own.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// The waiting connections.
#[derive(Debug)]
pub(super) struct Arrivals<T> {
    /// The connections of each address, oldest first. No queue is empty.
    by_address: BTreeMap<IpAddr, VecDeque<T>>,
    /// The addresses in `by_address`, in the order of their turns.
    turns: VecDeque<IpAddr>,
    len: usize,
}

impl<T> Default for Arrivals<T> {
    fn default() -> Self {
        Arrivals { by_address: BTreeMap::new(), turns: VecDeque::new(), len: 0 }
    }
}

impl<T> Arrivals<T> {
    /// Returns the number of waiting connections.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no connection waits.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a connection.
    pub(super) fn push(&mut self, address: IpAddr, connection: T) {
        let queue = self.by_address.entry(address).or_default();
        if queue.is_empty() {
            self.turns.push_back(address)
        }
        queue.push_back(connection);
        self.len += 1
    }

    /// Takes the oldest connection of the address whose turn it is.
    pub(super) fn pop(&mut self) -> Option<T> {
        let address = self.turns.pop_front()?;
        let queue = self.by_address.get_mut(&address)?;
        let next = queue.pop_front();
        match queue.is_empty() {
            true => drop(self.by_address.remove(&address)),
            false => self.turns.push_back(address),
        }
        self.len -= 1;
        next
    }

    /// Takes the oldest connection of the address that has the most. Its peer has waited for longest, so it is the next
    /// to give up by itself. Takes time in proportion to the number of addresses.
    pub(super) fn displace(&mut self) -> Option<T> {
        let (&address, queue) = self.by_address.iter_mut().max_by_key(|(_, queue)| queue.len())?;
        let oldest = queue.pop_front();
        if queue.is_empty() {
            self.by_address.remove(&address);
            self.turns.retain(|turn| *turn != address)
        }
        self.len -= 1;
        oldest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_with_many_connections_does_not_delay_the_others() {
        let [flood, switch, other] = [1, 2, 3].map(|last| IpAddr::from([10, 0, 0, last]));
        let mut arrivals = Arrivals::default();
        (0..1_000).for_each(|number| arrivals.push(flood, number));
        arrivals.push(switch, 1_000);
        arrivals.push(other, 1_001);
        arrivals.push(switch, 1_002);

        assert_eq!(arrivals.len(), 1_003);
        let first: Vec<i32> = std::iter::from_fn(|| arrivals.pop()).take(6).collect();
        assert_eq!(
            first,
            [0, 1_000, 1_001, 1, 1_002, 2],
            "the addresses take turns, and each one's order is kept"
        );
        assert_eq!(std::iter::from_fn(|| arrivals.pop()).count(), 997);
        assert!(arrivals.is_empty() && arrivals.by_address.is_empty());

        arrivals.push(switch, 5);
        assert_eq!(arrivals.pop(), Some(5));
    }

    #[test]
    fn the_host_with_the_most_connections_makes_room() {
        let [flood, switch] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        let mut arrivals = Arrivals::default();
        (0..3).for_each(|number| arrivals.push(flood, number));
        arrivals.push(switch, 10);

        assert_eq!(arrivals.displace(), Some(0), "its oldest");
        assert_eq!(arrivals.displace(), Some(1));
        assert_eq!(arrivals.pop(), Some(2));
        assert_eq!(arrivals.displace(), Some(10));
        assert!(arrivals.is_empty() && arrivals.by_address.is_empty() && arrivals.turns.is_empty());
        assert_eq!(arrivals.displace(), None);
    }
}
