//! Queues packets for which there is no credit. There is one queue per port, a limit on the total size, and a limit on
//! how long a packet waits.

use crate::driver::fair_share;
use crate::limits;
use crate::object::{PacketIn, PortNo};
use beehive::Time;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Queued packets by port. They are taken round-robin, one packet from each port.
#[derive(Debug)]
pub(super) struct PacketQueues {
    /// Maximum total size of the packets, in bytes.
    bytes_max: usize,
    by_port: BTreeMap<PortNo, Queue>,
    /// Ports with queued packets, in round-robin order. The next port comes first.
    rotation: VecDeque<PortNo>,
    bytes: usize,
    packets: u64,
}

#[derive(Debug, Default)]
struct Queue {
    /// Packets with their arrival times, oldest first.
    packets: VecDeque<(Time, PacketIn)>,
    bytes: usize,
}

/// Returns the number of bytes that a queued packet counts toward the limit.
fn cost(packet: &PacketIn) -> usize {
    packet.data.len() + limits::QUEUED_PACKET_OVERHEAD_BYTES
}

impl Default for PacketQueues {
    fn default() -> Self {
        PacketQueues::limited(limits::QUEUED_BYTES_MAX)
    }
}

impl PacketQueues {
    /// Returns empty queues for packets of this total size.
    pub(super) fn limited(bytes_max: usize) -> PacketQueues {
        PacketQueues { bytes_max, by_port: BTreeMap::new(), rotation: VecDeque::new(), bytes: 0, packets: 0 }
    }

    /// Returns the total size of the packets, in bytes.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether no packet is queued.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Returns whether packets from `port` are queued, in which case a new packet must wait behind them.
    pub(super) fn has_queued(&self, port: PortNo) -> bool {
        self.by_port.contains_key(&port)
    }

    /// Queues a packet. If its port has used up its share of the space, drops the packet and returns `false`.
    pub(super) fn push(&mut self, now: Time, packet: PacketIn) -> bool {
        let (port, cost) = (packet.port, cost(&packet));
        let held = self.by_port.get(&port).map_or(0, |queue| queue.bytes);
        if !fair_share::allows(held, cost, self.bytes_max - self.bytes) {
            return false;
        }

        let queue = self.by_port.entry(port).or_default();
        if queue.packets.is_empty() {
            self.rotation.push_back(port)
        }

        queue.packets.push_back((now, packet.detached()));
        queue.bytes += cost;
        self.bytes += cost;
        self.packets += 1;

        true
    }

    /// Takes queued packets round-robin and passes them to `admit`. `may` decides whether a port may take a credit.
    /// Stops when `may` has refused every port.
    pub(super) fn drain(&mut self, mut may: impl FnMut(PortNo) -> bool, mut admit: impl FnMut(PacketIn)) {
        // number of consecutive ports that were refused
        let mut refused = 0;
        while refused < self.rotation.len()
            && let Some(port) = self.rotation.pop_front()
        {
            if !may(port) {
                refused += 1;
                self.rotation.push_back(port);
                continue;
            }
            refused = 0;
            if let Some((packet, is_last)) = self.take(port) {
                if !is_last {
                    self.rotation.push_back(port)
                }
                admit(packet)
            }
        }
    }

    /// Drops the packets that have waited longer than `patience`. Returns their number.
    pub(super) fn expire(&mut self, now: Time, patience: Duration) -> u64 {
        let before = self.packets;
        for _ in 0..self.rotation.len() {
            let Some(port) = self.rotation.pop_front() else { break };
            let too_old =
                |queue: &Queue| queue.packets.front().is_some_and(|(since, _)| now.since(*since) > patience);
            let mut waits = true;
            while waits && self.by_port.get(&port).is_some_and(too_old) {
                waits = self.take(port).is_some_and(|(_, is_last)| !is_last)
            }
            if waits {
                self.rotation.push_back(port)
            }
        }

        before - self.packets
    }

    /// Drops the queued packets of `port`. Returns their number.
    pub(super) fn drop_port(&mut self, port: PortNo) -> u64 {
        let Some(queue) = self.by_port.remove(&port) else { return 0 };
        self.rotation.retain(|other| *other != port);
        self.bytes -= queue.bytes;
        self.packets -= queue.packets.len() as u64;
        queue.packets.len() as u64
    }

    /// Drops all queued packets. Returns their number.
    pub(super) fn clear(&mut self) -> u64 {
        let empty = PacketQueues::limited(self.bytes_max);
        std::mem::replace(self, empty).packets
    }

    /// Takes the oldest packet from `port`. The flag is true if it was that port's last packet.
    fn take(&mut self, port: PortNo) -> Option<(PacketIn, bool)> {
        let queue = self.by_port.get_mut(&port)?;
        let (_, packet) = queue.packets.pop_front()?;
        let cost = cost(&packet);
        queue.bytes -= cost;
        self.bytes -= cost;
        self.packets -= 1;

        let is_last = queue.packets.is_empty();
        if is_last {
            self.by_port.remove(&port);
        }

        Some((packet, is_last))
    }
}

impl PacketIn {
    /// Copies the packet's data, because a packet that is kept longer must not keep alive the whole input chunk from
    /// which it was parsed.
    pub(super) fn detached(self) -> PacketIn {
        PacketIn { data: Bytes::copy_from_slice(&self.data), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{NodeId, PacketInReason};
    use proptest::prelude::*;

    fn packet(port: u32, length: usize) -> PacketIn {
        PacketIn {
            node: NodeId(1),
            port: PortNo(port),
            reason: PacketInReason::Miss,
            length: length as u16,
            buffer: None,
            data: Bytes::from(vec![0; length]),
        }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn drain(queues: &mut PacketQueues, most: usize) -> Vec<u32> {
        let out = std::cell::RefCell::new(Vec::new());
        queues.drain(|_| out.borrow().len() < most, |p| out.borrow_mut().push(p.port.0));
        out.into_inner()
    }

    #[test]
    fn ports_take_turns() {
        let mut queues = PacketQueues::default();
        for port in [1, 1, 1, 1, 2, 3, 3] {
            assert!(queues.push(at(0), packet(port, 60)));
        }
        assert_eq!(drain(&mut queues, 4), [1, 2, 3, 1]);
        assert_eq!(drain(&mut queues, 9), [3, 1, 1]);
        assert!(queues.is_empty() && queues.bytes == 0 && queues.rotation.is_empty());
    }

    #[test]
    fn a_flood_leaves_space_for_others() {
        let mut queues = PacketQueues::default();
        let entered = (0..100_000).filter(|_| queues.push(at(0), packet(1, 64))).count();
        let share = limits::QUEUED_BYTES_MAX / 2 / (64 + limits::QUEUED_PACKET_OVERHEAD_BYTES);
        assert_eq!(entered, share);
        assert!(
            (0..share / 3).all(|_| queues.push(at(0), packet(2, 64))),
            "there is no space for another port"
        );

        assert!(queues.bytes <= limits::QUEUED_BYTES_MAX);
    }

    #[test]
    fn what_has_waited_for_too_long_goes() {
        let mut queues = PacketQueues::default();
        for ms in 0..10 {
            assert!(queues.push(at(ms), packet(1, 60)) && queues.push(at(2 * ms), packet(2, 60)));
        }

        assert_eq!(queues.expire(at(10), Duration::from_millis(5)), 5 + 3);
        assert_eq!(queues.expire(at(10), Duration::from_millis(5)), 0);
        assert_eq!(queues.drop_port(PortNo(1)), 5);
        assert_eq!(queues.expire(at(100), Duration::from_millis(5)), 7);

        assert!(
            queues.is_empty() && queues.bytes == 0 && queues.by_port.is_empty() && queues.rotation.is_empty()
        );
    }

    proptest! {
        /// After any sequence of operations, each accepted packet is still queued, has been admitted, or has been
        /// dropped and counted.
        #[test]
        fn nothing_is_lost_uncounted(steps in proptest::collection::vec((0..5u8, 1..6u32, 0..3_000usize), 0..200)) {
            let mut queues = PacketQueues::default();
            let (mut entered, mut gone) = (0u64, 0u64);
            for (ms, (step, port, length)) in steps.into_iter().enumerate() {
                match step {
                    0..=2 => entered += u64::from(queues.push(at(ms as u64), packet(port, length))),
                    3 => gone += drain(&mut queues, port as usize).len() as u64,
                    _ if length % 2 == 0 => gone += queues.expire(at(ms as u64), Duration::from_millis(20)),
                    _ => gone += queues.drop_port(PortNo(port)),
                }
                prop_assert_eq!(queues.packets, entered - gone);
                prop_assert_eq!(queues.rotation.len(), queues.by_port.len());
                prop_assert_eq!(queues.bytes, queues.by_port.values().map(|q| q.bytes).sum::<usize>());
            }

            prop_assert_eq!(gone + queues.clear(), entered);
        }
    }
}
