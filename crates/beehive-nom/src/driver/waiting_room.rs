//! Where packets wait that the hive has no credit for: for a short time, in a bounded space, each port in its own queue.

use crate::driver::share;
use crate::limits;
use crate::object::{PacketIn, PortNo};
use beehive::Time;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Packets that wait, by port; they leave in turns, a packet of each port.
#[derive(Debug, Default)]
pub(super) struct WaitingRoom {
    queues: BTreeMap<PortNo, Queue>,
    /// The ports that have packets here; whose turn it is first.
    turns: VecDeque<PortNo>,
    bytes: usize,
    packets: u64,
}

#[derive(Debug, Default)]
struct Queue {
    /// The one that came first is first.
    packets: VecDeque<(Time, PacketIn)>,
    bytes: usize,
}

/// The bytes that a packet is held to take.
fn cost(packet: &PacketIn) -> usize {
    packet.data.len() + limits::WAITING_BYTES_EACH
}

impl WaitingRoom {
    /// Whether nothing waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Whether a packet of `port` would have to wait behind another one.
    pub(super) fn is_waited_at(&self, port: PortNo) -> bool {
        self.queues.contains_key(&port)
    }

    /// Lets a packet wait. Refused, and dropped, if its port has had its share of the space.
    pub(super) fn enter(&mut self, now: Time, packet: PacketIn) -> bool {
        let (port, cost) = (packet.port, cost(&packet));
        let held = self.queues.get(&port).map_or(0, |queue| queue.bytes);
        if !share::allows(held, cost, limits::WAITING_BYTES_MAX - self.bytes) {
            return false;
        }
        let queue = self.queues.entry(port).or_default();
        if queue.packets.is_empty() {
            self.turns.push_back(port)
        }
        queue.packets.push_back((now, packet.detached()));
        queue.bytes += cost;
        self.bytes += cost;
        self.packets += 1;
        true
    }

    /// Has packets leave, in turns, to `admit`, which says of a port whether it may have a credit; until no port may.
    pub(super) fn leave(&mut self, mut may: impl FnMut(PortNo) -> bool, mut admit: impl FnMut(PacketIn)) {
        // ports in a row that may not
        let mut refused = 0;
        while refused < self.turns.len()
            && let Some(port) = self.turns.pop_front()
        {
            if !may(port) {
                refused += 1;
                self.turns.push_back(port);
                continue;
            }
            refused = 0;
            if let Some((packet, is_last)) = self.take(port) {
                if !is_last {
                    self.turns.push_back(port)
                }
                admit(packet)
            }
        }
    }

    /// Drops what has waited for longer than `patience`; how many.
    pub(super) fn expire(&mut self, now: Time, patience: Duration) -> u64 {
        let before = self.packets;
        for _ in 0..self.turns.len() {
            let Some(port) = self.turns.pop_front() else { break };
            let too_old =
                |queue: &Queue| queue.packets.front().is_some_and(|(since, _)| now.since(*since) > patience);
            let mut waits = true;
            while waits && self.queues.get(&port).is_some_and(too_old) {
                waits = self.take(port).is_some_and(|(_, is_last)| !is_last)
            }
            if waits {
                self.turns.push_back(port)
            }
        }
        before - self.packets
    }

    /// Drops what waits at `port`; how many.
    pub(super) fn forget(&mut self, port: PortNo) -> u64 {
        let Some(queue) = self.queues.remove(&port) else { return 0 };
        self.turns.retain(|other| *other != port);
        self.bytes -= queue.bytes;
        self.packets -= queue.packets.len() as u64;
        queue.packets.len() as u64
    }

    /// Drops everything; how many.
    pub(super) fn clear(&mut self) -> u64 {
        std::mem::take(self).packets
    }

    /// The packet of `port` that has waited for longest, and whether it was the last of them.
    fn take(&mut self, port: PortNo) -> Option<(PacketIn, bool)> {
        let queue = self.queues.get_mut(&port)?;
        let (_, packet) = queue.packets.pop_front()?;
        let cost = cost(&packet);
        queue.bytes -= cost;
        self.bytes -= cost;
        self.packets -= 1;
        let is_last = queue.packets.is_empty();
        if is_last {
            self.queues.remove(&port);
        }
        Some((packet, is_last))
    }
}

impl PacketIn {
    /// With bytes of its own: a packet that stays for longer must not keep the whole chunk that it was read with.
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

    fn drain(room: &mut WaitingRoom, most: usize) -> Vec<u32> {
        let out = std::cell::RefCell::new(Vec::new());
        room.leave(|_| out.borrow().len() < most, |p| out.borrow_mut().push(p.port.0));
        out.into_inner()
    }

    #[test]
    fn ports_take_turns() {
        let mut room = WaitingRoom::default();
        for port in [1, 1, 1, 1, 2, 3, 3] {
            assert!(room.enter(at(0), packet(port, 60)));
        }
        assert_eq!(drain(&mut room, 4), [1, 2, 3, 1]);
        assert_eq!(drain(&mut room, 9), [3, 1, 1]);
        assert!(room.is_empty() && room.bytes == 0 && room.turns.is_empty());
    }

    #[test]
    fn a_flood_leaves_space_for_others() {
        let mut room = WaitingRoom::default();
        let entered = (0..100_000).filter(|_| room.enter(at(0), packet(1, 64))).count();
        let share = limits::WAITING_BYTES_MAX / 2 / (64 + limits::WAITING_BYTES_EACH);
        assert_eq!(entered, share);
        assert!(
            (0..share / 3).all(|_| room.enter(at(0), packet(2, 64))),
            "there is no space for another port"
        );
        assert!(room.bytes <= limits::WAITING_BYTES_MAX);
    }

    #[test]
    fn what_has_waited_for_too_long_goes() {
        let mut room = WaitingRoom::default();
        for ms in 0..10 {
            assert!(room.enter(at(ms), packet(1, 60)) && room.enter(at(2 * ms), packet(2, 60)));
        }
        assert_eq!(room.expire(at(10), Duration::from_millis(5)), 5 + 3);
        assert_eq!(room.expire(at(10), Duration::from_millis(5)), 0);
        assert_eq!(room.forget(PortNo(1)), 5);
        assert_eq!(room.expire(at(100), Duration::from_millis(5)), 7);
        assert!(room.is_empty() && room.bytes == 0 && room.queues.is_empty() && room.turns.is_empty());
    }

    proptest! {
        /// Whatever is done to it, what went in has come out, was dropped and counted, or waits.
        #[test]
        fn nothing_is_lost_uncounted(steps in proptest::collection::vec((0..5u8, 1..6u32, 0..3_000usize), 0..200)) {
            let mut room = WaitingRoom::default();
            let (mut entered, mut gone) = (0u64, 0u64);
            for (ms, (step, port, length)) in steps.into_iter().enumerate() {
                match step {
                    0..=2 => entered += u64::from(room.enter(at(ms as u64), packet(port, length))),
                    3 => gone += drain(&mut room, port as usize).len() as u64,
                    _ if length % 2 == 0 => gone += room.expire(at(ms as u64), Duration::from_millis(20)),
                    _ => gone += room.forget(PortNo(port)),
                }
                prop_assert_eq!(room.packets, entered - gone);
                prop_assert_eq!(room.turns.len(), room.queues.len());
                prop_assert_eq!(room.bytes, room.queues.values().map(|q| q.bytes).sum::<usize>());
            }
            prop_assert_eq!(gone + room.clear(), entered);
        }
    }
}
