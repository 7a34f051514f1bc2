//! The way in: packets under credits, waiting for a moment when there are none, then shed; everything else always.
//!
//! A bee that the operating system has taken off its core for some milliseconds is no overload: packets wait for that. They
//! wait here, while the driver goes on reading what must not wait: echo, ports, flows, errors, barriers.

use crate::driver::share::{self, Ledger};
use crate::driver::waiting_room::WaitingRoom;
use crate::driver::{Counters, Event, Events, FlowReading};
use crate::limits;
use crate::object::{DuplicateNode, LLDP, NodeId, NodeJoined, NodeLeft, PacketIn, PortNo, VerifyFlows};
use beehive::{Address, Io, Mail, Message, Time};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What can be set about how packets come in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Admission {
    /// How long a packet may wait at its driver when the hive is behind, before it is dropped. Default 200 ms: a thread is
    /// taken off its core for 10 ms on a busy machine, and for 100 ms in a container that has used up its share of the
    /// processor. Only packets of the same port wait behind it. Zero: none waits.
    pub patience: Duration,
}

impl Default for Admission {
    fn default() -> Self {
        Admission { patience: Duration::from_millis(200) }
    }
}

/// Brings what a driver tells into the hive.
pub(crate) struct Inlet {
    io: Io,
    address: Address,
    node: Option<NodeId>,
    counters: Arc<Counters>,
    admission: Admission,
    /// All credits.
    limit: u32,
    /// With no more credits than this, ports get shares of them.
    scarce: u32,
    /// Credits that are left in this round.
    room: u32,
    ledger: Ledger,
    waiting: WaitingRoom,
    /// Of this round, to be counted when it ends.
    tally: Tally,
    now: Time,
    window: Window,
    flooded: bool,
    /// Commands were lost, and nobody was told.
    amiss: bool,
    /// When the node app was told last that commands were lost.
    told: Option<Time>,
}

#[derive(Default)]
struct Tally {
    arrived: u64,
    waited: u64,
    shed: u64,
}

/// What happened in the second that runs.
struct Window {
    start: Time,
    /// Events that found no credit.
    uncredited: u32,
    shed: u64,
    /// Probes that came in though there was no credit for a packet of their port.
    probes: BTreeMap<PortNo, u32>,
}

impl Window {
    fn open(start: Time) -> Window {
        Window { start, uncredited: 0, shed: 0, probes: BTreeMap::new() }
    }

    /// Whether one more probe of `port` may come in without a credit.
    fn may_have_probe(&mut self, port: PortNo) -> bool {
        if self.probes.len() >= limits::PORTS_PER_NODE_MAX && !self.probes.contains_key(&port) {
            return false;
        }
        let probes = self.probes.entry(port).or_default();
        *probes += 1;
        *probes <= limits::PROBES_PER_PORT_MAX
    }
}

impl Inlet {
    pub(crate) fn new(io: Io, counters: Arc<Counters>, admission: Admission) -> Inlet {
        let (address, now, limit) = (io.address(), io.now(), io.credits());
        Inlet {
            io,
            address,
            node: None,
            counters,
            admission,
            limit,
            scarce: limit / 4,
            room: limit,
            ledger: Ledger::default(),
            waiting: WaitingRoom::default(),
            tally: Tally::default(),
            now,
            window: Window::open(now),
            flooded: false,
            amiss: false,
            told: None,
        }
    }

    pub(crate) fn io(&mut self) -> &mut Io {
        &mut self.io
    }

    /// Waits for mail; if packets wait, also for credits to come back. Cancel-safe.
    pub(crate) async fn stirred(&mut self) -> Option<Mail> {
        if self.waiting.is_empty() {
            return Some(self.io.receive().await);
        }
        // with those that are free already nothing could be done
        let returned = self.io.credits_returned(self.room + 1);
        tokio::select! {
            mail = self.io.receive() => Some(mail),
            () = returned => None,
        }
    }

    /// Starts a round: as much may come in as there are credits for, first what waits.
    #[inline]
    pub(crate) fn begin(&mut self, now: Time) {
        self.now = now;
        self.room = self.io.credits();
        if !self.ledger.is_empty() {
            self.relieve()
        }
        if now.since(self.window.start) >= Duration::from_secs(1) {
            self.turn_window()
        }
    }

    #[cold]
    fn relieve(&mut self) {
        self.admit_waiting();
        self.tally.shed += self.waiting.expire(self.now, self.admission.patience);
        if self.waiting.is_empty() && self.room > self.scarce {
            self.ledger.clear()
        }
    }

    fn turn_window(&mut self) {
        if self.window.shed > 0
            && let Some(node) = self.node
        {
            tracing::warn!(%node, packets = self.window.shed, "the hive is behind: packets of this switch were shed");
        }
        self.window = Window::open(self.now)
    }

    /// Ends a round: hands over what came in.
    #[inline]
    pub(crate) fn finish(&mut self) {
        // there are credits for all of it: only packets take any, and they were counted
        let _ = self.io.try_flush();
        if !self.waiting.is_empty() {
            self.finish_waiting()
        }
        if self.tally.arrived > 0 || self.tally.shed > 0 {
            self.count()
        }
    }

    /// What was handed over may be done by now, and its credits back.
    #[cold]
    fn finish_waiting(&mut self) {
        loop {
            self.room = self.io.credits();
            if !self.admit_waiting() {
                return;
            }
            // admitted as far as there are credits
            let _ = self.io.try_flush();
        }
    }

    fn count(&mut self) {
        let Tally { arrived, waited, shed } = std::mem::take(&mut self.tally);
        Counters::add(&self.counters.packet_ins, arrived);
        Counters::add(&self.counters.packet_ins_waited, waited);
        Counters::add(&self.counters.packet_ins_shed, shed);
        self.window.shed += shed;
    }

    /// Whether more events came in than can be done.
    pub(crate) fn is_flooded(&self) -> bool {
        self.flooded
    }

    /// The switch is lost.
    pub(crate) fn left(&mut self) {
        self.tally.shed += self.waiting.clear();
        self.count();
        if let Some(node) = self.node.take() {
            let driver = self.address;
            self.control(NodeLeft { node, driver })
        }
    }

    /// Looks whether commands to this driver were lost. If so, the node app is asked to compare what the switch has with
    /// what it should have, and the apps whose flows are there say which of them are wrong: so the end is right whatever
    /// was lost. Not more often than once in [`limits::REPAIR_INTERVAL`].
    #[inline]
    pub(crate) fn look_for_losses(&mut self) {
        let lost = self.io.take_lost();
        if lost > 0 || self.amiss {
            self.lost(lost)
        }
    }

    #[cold]
    fn lost(&mut self, lost: u64) {
        Counters::add(&self.counters.commands_lost, lost);
        self.amiss = true;
        let Some(node) = self.node else { return };
        if self.told.is_some_and(|told| self.now.since(told) < limits::REPAIR_INTERVAL) {
            return;
        }
        tracing::warn!(%node, lost, "commands to this switch were lost: its flows are compared with what they should be");
        (self.amiss, self.told) = (false, Some(self.now));
        self.control(VerifyFlows { node })
    }

    /// As [`Inlet::control`], to one who asked.
    fn tell<M: Message>(&mut self, asker: Address, message: M) {
        let _ = self.io.try_flush();
        self.io.send(asker, message);
        self.hand_over()
    }

    fn control<M: Message>(&mut self, message: M) {
        // packets that came before it go before it
        let _ = self.io.try_flush();
        self.io.emit(message);
        self.hand_over()
    }

    fn hand_over(&mut self) {
        if self.io.try_flush().is_ok() {
            self.room = self.room.min(self.io.credits());
            return;
        }
        self.window.uncredited += 1;
        self.flooded |= self.window.uncredited > limits::EVENTS_UNCREDITED_PER_SECOND_MAX;
        self.io.flush_control()
    }

    /// A packet came up while credits are scarce: it goes in if its port has not had its share, or waits, or is shed.
    #[cold]
    fn pressed(&mut self, packet: PacketIn) {
        // a flood must not make the links look dead that it comes through: what would be torn down then is in order
        if packet.ethernet().is_some_and(|header| header.ethertype == LLDP)
            && self.window.may_have_probe(packet.port)
        {
            return self.control(packet.detached());
        }
        if self.ledger.is_empty() {
            self.ledger.open(self.limit - self.room)
        }
        let port = packet.port;
        if !self.waiting.is_waited_at(port) && may_have_credit(&self.ledger, port, self.room) {
            self.ledger.take(port);
            self.room -= 1;
            self.io.emit(packet.detached())
        } else if !self.admission.patience.is_zero() && self.waiting.enter(self.now, packet) {
            self.tally.waited += 1
        } else {
            self.tally.shed += 1
        }
    }

    /// Adds to the batch what waits, as far as there are credits. Whether there was something. To be called when everything
    /// admitted before has been handed over.
    fn admit_waiting(&mut self) -> bool {
        let Inlet { io, room, ledger, waiting, limit, .. } = self;
        ledger.settle(*limit - *room);
        let before = *room;
        let (room, ledger) = (std::cell::Cell::from_mut(room), std::cell::RefCell::new(ledger));
        waiting.leave(
            |port| may_have_credit(&ledger.borrow(), port, room.get()),
            |packet| {
                ledger.borrow_mut().take(packet.port);
                room.set(room.get() - 1);
                io.emit(packet)
            },
        );
        room.get() < before
    }
}

/// Whether a port may have one of `room` credits that are left.
fn may_have_credit(ledger: &Ledger, port: PortNo, room: u32) -> bool {
    share::allows(ledger.held(port) as usize, 1, room as usize)
}

impl Events for Inlet {
    #[inline]
    fn packet_in(&mut self, packet: PacketIn) {
        self.tally.arrived += 1;
        if self.room <= self.scarce {
            return self.pressed(packet);
        }
        self.room -= 1;
        self.io.emit(packet)
    }

    fn happened(&mut self, event: Event) {
        match event {
            Event::Joined { node, ports, knows_owners, drops_misses } => {
                self.node = Some(node);
                let driver = self.address;
                self.control(NodeJoined { node, driver, ports, knows_owners, drops_misses })
            }
            Event::PortUp(message) => self.control(message),
            Event::PortDown(message) => {
                // what waits came in before: after this nobody may learn from it that its sender is there
                self.tally.shed += self.waiting.forget(message.port);
                self.control(message)
            }
            Event::PortChanged(message) => self.control(message),
            Event::FlowRemoved(message) => self.control(message),
            Event::FlowFailed(message) => self.control(message),
            Event::FlowsConfirmed(message) => self.control(message),
            Event::FlowsRead(FlowReading { asker: None, read }) => self.control(read),
            Event::FlowsRead(FlowReading { asker: Some(asker), read }) => self.tell(asker, read),
            Event::Duplicate { node, refused, kept } => self.control(DuplicateNode { node, refused, kept }),
        }
    }
}
