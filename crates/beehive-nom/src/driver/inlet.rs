//! The way in: packets under credits, shed fairly when there are none; everything else always.

use crate::driver::{Counters, Event, Events};
use crate::limits;
use crate::object::{DuplicateNode, NodeId, NodeJoined, NodeLeft, PacketIn, PortNo};
use beehive::{Address, Io, Message, Time};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Below this many credits packets are rationed by port.
const SCARCE: u32 = limits::CREDITS_PER_DRIVER / 4;

/// Brings what a driver tells into the hive.
pub(crate) struct Inlet {
    io: Io,
    address: Address,
    node: Option<NodeId>,
    counters: Arc<Counters>,
    /// Packets that may still come in in this round.
    room: u32,
    scarce: bool,
    quota: u32,
    /// Packets of this round by port, where they are rationed.
    taken: HashMap<PortNo, u32>,
    ports_before: u32,
    admitted: u64,
    shed: u64,
    window_start: Time,
    uncredited: u32,
    flooded: bool,
}

impl Inlet {
    pub(crate) fn new(io: Io, counters: Arc<Counters>) -> Inlet {
        let (address, window_start) = (io.address(), io.now());
        Inlet {
            io,
            address,
            node: None,
            counters,
            room: 0,
            scarce: false,
            quota: 0,
            taken: HashMap::new(),
            ports_before: 1,
            admitted: 0,
            shed: 0,
            window_start,
            uncredited: 0,
            flooded: false,
        }
    }

    pub(crate) fn io(&mut self) -> &mut Io {
        &mut self.io
    }

    /// Starts a round: as much may come in as there are credits for.
    #[inline]
    pub(crate) fn begin(&mut self, now: Time) {
        self.room = self.io.credits();
        self.scarce = self.room < SCARCE;
        if self.scarce {
            self.ports_before = (self.taken.len() as u32).max(1);
            self.taken.clear();
            self.quota = (self.room / self.ports_before).max(1);
        }
        if now.since(self.window_start) >= Duration::from_secs(1) {
            self.window_start = now;
            self.uncredited = 0;
        }
    }

    /// Ends a round: hands over what came in, and runs what that causes.
    #[inline]
    pub(crate) fn finish(&mut self) {
        // there are credits for all of it: only packets take any, and they were counted
        let _ = self.io.try_flush();
        if self.admitted + self.shed > 0 {
            Counters::add(&self.counters.packet_ins, self.admitted + self.shed);
            Counters::add(&self.counters.packet_ins_shed, self.shed);
            (self.admitted, self.shed) = (0, 0);
        }
    }

    /// Whether more events came in than can be done.
    pub(crate) fn is_flooded(&self) -> bool {
        self.flooded
    }

    /// The switch is lost.
    pub(crate) fn left(&mut self) {
        if let Some(node) = self.node.take() {
            let driver = self.address;
            self.control(NodeLeft { node, driver })
        }
    }

    fn control<M: Message>(&mut self, message: M) {
        // packets that came before it go before it
        let _ = self.io.try_flush();
        self.io.emit(message);
        if self.io.try_flush().is_ok() {
            self.room = self.room.min(self.io.credits());
            return;
        }
        self.uncredited += 1;
        self.flooded |= self.uncredited > limits::EVENTS_UNCREDITED_PER_SECOND_MAX;
        self.io.flush_control()
    }

    /// Whether `port` has used up its share.
    #[cold]
    fn is_rationed(&mut self, port: PortNo) -> bool {
        let crowded = self.taken.len() >= limits::SHEDDING_PORTS_MAX;
        let port = if crowded && !self.taken.contains_key(&port) { PortNo::NONE } else { port };
        let taken = self.taken.entry(port).or_default();
        *taken += 1;
        *taken > self.quota
    }
}

impl Events for Inlet {
    #[inline]
    fn packet_in(&mut self, packet: PacketIn) {
        if self.room == 0 || (self.scarce && self.is_rationed(packet.port)) {
            self.shed += 1;
            return;
        }
        self.room -= 1;
        self.admitted += 1;
        self.io.emit(packet)
    }

    fn happened(&mut self, event: Event) {
        match event {
            Event::Joined { node, ports, knows_owners } => {
                self.node = Some(node);
                let driver = self.address;
                self.control(NodeJoined { node, driver, ports, knows_owners })
            }
            Event::PortUp(message) => self.control(message),
            Event::PortDown(message) => self.control(message),
            Event::PortChanged(message) => self.control(message),
            Event::FlowRemoved(message) => self.control(message),
            Event::FlowFailed(message) => self.control(message),
            Event::Duplicate { node, refused, kept } => self.control(DuplicateNode { node, refused, kept }),
        }
    }
}
