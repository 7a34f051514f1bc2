//! Admits a switch's messages to the hive. A packet needs a credit. While there is none, the packet waits in a queue,
//! and is shed if it waits too long. All other events are always admitted.
//!
//! If the operating system preempts a bee's thread for a few milliseconds, the bee is not overloaded, so packets wait
//! for it. A driver that can leaves them in its socket ([`Ingress::room`]); it reads on only for the messages that must
//! not wait for long: echoes, ports, flows, errors and barriers.
//!
//! How many packets of a switch may be in flight depends on how many other switches are busy
//! ([`Capacity`](crate::driver::Capacity)).

use crate::driver::capacity::{Capacity, Contribution};
use crate::driver::fair_share::{self, CreditLedger};
use crate::driver::packet_queue::PacketQueues;
use crate::driver::port_shares::PortShares;
use crate::driver::standing::{Standing, Wish};
use crate::driver::turns::Turn;
use crate::driver::{Counters, Driver, Event, Events, FlowReading, Role};
use crate::limits;
use crate::object::{
    DriverConnected, DriverLeft, DuplicateNode, LLDP, MasterAccepted, MasterRefused, MasterReports, NodeId,
    NodeJoined, NodeLeft, PacketIn, PortEvent, PortNo, StoodBy, VerifyFlows,
};
use beehive::{Address, Io, Mail, Message, Time};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Settings of packet admission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Admission {
    /// Maximum time for which a packet waits in its driver while the hive is behind, before it is dropped. The default
    /// is 200 ms, because a thread can be preempted for 10 ms on a busy machine, and for 100 ms in a container that has
    /// used up its CPU quota. A waiting packet delays only packets from the same port. Zero disables queueing.
    pub patience: Duration,
}

impl Default for Admission {
    fn default() -> Self {
        Admission { patience: Duration::from_millis(200) }
    }
}

/// Passes the events of a driver to the hive.
pub(crate) struct Ingress {
    io: Io,
    address: Address,
    node: Option<NodeId>,
    /// In a cluster, this driver's standing among those of the switch.
    standing: Option<Standing>,
    /// In a cluster, the message by which the apps learn of the switch, without its ports.
    joined: Option<NodeJoined>,
    /// The generation with which the switch has granted mastership in this round.
    granted: Option<u64>,
    counters: Arc<Counters>,
    admission: Admission,
    /// Total number of credits of this IO bee.
    credits: u32,
    /// What this driver contributes to the load of the hive.
    contribution: Contribution,
    /// The driver's turn to hand packets to the hive, if the hive has more busy switches than it can serve at once.
    turn: Turn,
    /// Whether the driver leaves input in its socket, so that it can wait for its turn.
    holds_input: bool,
    /// Number of packets that may be in flight in this round.
    share: u32,
    /// The same, or the number of packets that are in flight if they are more.
    limit: u32,
    /// Number of packets at or below which each port is limited to a fair share.
    scarce_below: u32,
    /// Number of further packets that may be in flight in this round.
    credits_left: u32,
    /// Number of free credits when `credits_left` was determined.
    free_seen: u32,
    /// Whether the driver reads no input until more credits are free.
    is_held: bool,
    /// Time at which more packets than could be in flight last arrived.
    scarce_at: Time,
    ports: PortShares,
    ledger: CreditLedger,
    queues: PacketQueues,
    /// This round's counts, which are added to the counters when the round ends.
    tally: Tally,
    now: Time,
    window: Window,
    flooded: bool,
    /// Whether commands were lost and no [`VerifyFlows`] has been sent since.
    resync_needed: bool,
    /// Time of the latest [`VerifyFlows`].
    resync_sent: Option<Time>,
}

#[derive(Default)]
struct Tally {
    arrived: u64,
    queued: u64,
    shed: u64,
}

/// Counts of the current second.
struct Window {
    start: Time,
    /// Number of events that found no free credit.
    uncredited: u32,
    shed: u64,
    /// Number of LLDP probes, by port, that were admitted although the port had no credit.
    probes: BTreeMap<PortNo, u32>,
}

impl Window {
    fn open(start: Time) -> Window {
        Window { start, uncredited: 0, shed: 0, probes: BTreeMap::new() }
    }

    /// Counts a probe from `port` and returns whether it may be admitted without a credit.
    fn allows_probe(&mut self, port: PortNo) -> bool {
        if self.probes.len() >= limits::PORTS_PER_NODE_MAX && !self.probes.contains_key(&port) {
            return false;
        }
        let probes = self.probes.entry(port).or_default();
        *probes += 1;
        *probes <= limits::PROBES_PER_PORT_MAX
    }
}

impl Ingress {
    /// Creates the ingress of one driver. `holds_input`: see [`Driver::HOLDS_INPUT`](crate::driver::Driver::HOLDS_INPUT).
    pub(crate) fn new(
        io: Io,
        counters: Arc<Counters>,
        admission: Admission,
        capacity: Arc<Capacity>,
        holds_input: bool,
    ) -> Ingress {
        let (address, now, limit) = (io.address(), io.now(), io.credits());
        let queues = match holds_input {
            true => PacketQueues::limited(limits::QUEUED_BYTES_BEFORE_SOCKET_MAX),
            false => PacketQueues::default(),
        };
        Ingress {
            io,
            address,
            node: None,
            standing: None,
            joined: None,
            granted: None,
            counters,
            admission,
            credits: limit,
            contribution: Contribution::to(capacity),
            turn: Turn::None,
            holds_input,
            share: limit,
            limit,
            scarce_below: limit / 4,
            credits_left: limit,
            free_seen: limit,
            is_held: false,
            scarce_at: Time::ZERO,
            ports: PortShares::default(),
            ledger: CreditLedger::default(),
            queues,
            tally: Tally::default(),
            now,
            window: Window::open(now),
            flooded: false,
            resync_needed: false,
            resync_sent: None,
        }
    }

    pub(crate) fn io(&mut self) -> &mut Io {
        &mut self.io
    }

    /// Sets the driver's standing in a cluster.
    pub(crate) fn stand(&mut self, standing: Option<Standing>) {
        self.standing = standing
    }

    /// Returns whether this driver controls the switch: the hive gets from it what happens there, and it carries out commands.
    #[inline]
    pub(crate) fn is_heard(&self) -> bool {
        self.standing.as_ref().is_none_or(|standing| standing.mastership().is_some())
    }

    /// Says what follows from a change of the standing.
    #[inline]
    pub(crate) fn look_at_standing<D: Driver>(&mut self, driver: &D) {
        if self.standing.is_some() {
            self.follow_standing(driver)
        }
    }

    #[cold]
    fn follow_standing<D: Driver>(&mut self, driver: &D) {
        let (Some(node), Some(standing)) = (self.node, &mut self.standing) else { return };
        if let Some(generation) = self.granted.take() {
            if standing.accepted(generation)
                && let Some(joined) = self.joined.clone()
            {
                let joined = NodeJoined { ports: driver.ports(), ..joined };
                self.emit_now(MasterAccepted { generation, joined })
            }
            return;
        }
        match standing.wish(node, self.address) {
            Some(Wish::Role(message)) => self.emit_now(message),
            Some(Wish::Mastership(message)) => self.emit_now(message),
            None => {}
        }
    }

    /// The hives have decided that this driver is the master.
    pub(crate) fn become_master<D: Driver>(&mut self, driver: &mut D, generation: u64) {
        let Some(standing) = &mut self.standing else { return };
        if !standing.appointed(generation) {
            return;
        }
        if !driver.request_role(Role { is_master: true, generation }) {
            self.granted = Some(generation);
            self.follow_standing(driver)
        }
    }

    /// The hives have decided that another driver is the master.
    pub(crate) fn stand_by<D: Driver>(&mut self, driver: &mut D, master: Address, generation: u64) {
        let (Some(node), Some(standing)) = (self.node, &mut self.standing) else { return };
        if standing.stands_by(master, generation) {
            self.tally.shed += self.queues.clear();
            driver.request_role(Role { is_master: false, generation });
            let driver = self.address;
            self.emit_now(StoodBy { node, driver, generation })
        }
    }

    /// Says that the driver is connected, because the hives may have forgotten it.
    pub(crate) fn say_connected(&mut self) {
        if let (Some(node), Some(standing)) = (self.node, &self.standing) {
            let (driver, newest) = (self.address, standing.told());
            self.emit_now(DriverConnected { node, driver, newest })
        }
    }

    /// Waits for mail and, if packets are queued, for credits to return. Cancel-safe.
    pub(crate) async fn next_mail(&mut self) -> Option<Mail> {
        if self.turn.is_ours() && !self.turn.is_used() {
            // the driver, which was asked before, has found nothing to read: the next one goes on
            self.turn.end()
        }

        let wanted = if !self.queues.is_empty() {
            // the credits that are free now do not suffice to admit a packet
            Some(self.free_seen + 1)
        } else if self.turn.is_used() {
            // the turn ends when nearly all of the batch has been handled
            Some(self.credits - self.in_flight_at_end())
        } else if self.turn.is_awaited() {
            None
        } else if self.is_held {
            // with as many credits, the driver reads a batch that is worth the effort
            Some(self.room_min() + self.scarce_below + self.credits - self.share)
        } else if let Some(standing) = &mut self.standing {
            return tokio::select! {
                biased;
                mail = self.io.receive() => Some(mail),
                () = standing.changed() => None,
            };
        } else {
            return Some(self.io.receive().await);
        };

        let returned = wanted.map(|wanted| self.io.credits_returned(wanted.min(self.credits)));
        let returned = async {
            match returned {
                Some(returned) => returned.await,
                None => std::future::pending().await,
            }
        };
        let standing = self.standing.as_mut();
        let standing = async {
            match standing {
                Some(standing) => standing.changed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            mail = self.io.receive() => Some(mail),
            () = self.turn.come() => None,
            () = returned => None,
            () = standing => None,
        }
    }

    /// Starts a round: reads the number of free credits and admits queued packets before new ones.
    #[inline]
    pub(crate) fn begin(&mut self, now: Time) {
        self.now = now;
        self.count_credits();
        if !self.ledger.is_empty() {
            self.drain_queues()
        }
        if now.since(self.window.start) >= Duration::from_secs(1) {
            self.roll_window()
        }
    }

    /// Determines how many further packets may be in flight.
    #[inline]
    fn count_credits(&mut self) {
        let capacity = self.contribution.capacity();
        let share = match self.holds_input && capacity.has_turns() && self.contribution.is_busy() {
            true if !self.turn.is_ours() => limits::PACKETS_OUT_OF_TURN_MAX,
            _ => capacity.share(),
        };
        let share = share.min(self.credits);
        self.free_seen = self.io.credits();
        let in_flight = self.credits - self.free_seen;
        self.share = share;
        self.limit = share.max(in_flight);
        self.scarce_below = share / 4;
        self.credits_left = share.saturating_sub(in_flight)
    }

    /// Returns the number of packets that the hive takes now, before credits become scarce. Zero tells the driver to leave
    /// its input where it is; [`Ingress::next_mail`] then returns when there is room.
    #[inline]
    pub(crate) fn room(&mut self) -> u32 {
        let is_turn = self.take_turns();
        self.count_credits();
        let room = self.credits_left.saturating_sub(self.scarce_below);
        self.is_held = room < self.room_min() || !self.queues.is_empty() || !is_turn;
        if self.is_held {
            return self.room_when_scarce();
        }
        if self.contribution.is_busy() && self.now.since(self.scarce_at) >= limits::BUSY_TIME {
            self.contribution.set_busy(false)
        }
        room
    }

    /// Ends a turn whose packets have been handled, and begins the next one. Returns whether the driver may read.
    fn take_turns(&mut self) -> bool {
        if self.turn.is_used() {
            let in_flight = self.credits - self.io.credits();
            if in_flight > self.in_flight_at_end() && !self.turn.is_over(self.io.now()) {
                return true;
            }
            self.turn.end()
        }
        if self.holds_input && self.contribution.is_busy() && self.contribution.capacity().has_turns() {
            return self.turn.begin(self.contribution.capacity());
        }
        self.turn.end();
        true
    }

    /// Returns the number of packets in flight at which a turn ends.
    fn in_flight_at_end(&self) -> u32 {
        self.share / 8
    }

    /// Ends the driver's turn, because the driver cannot use it now.
    pub(crate) fn pass_turn(&mut self) {
        self.turn.end()
    }

    #[cold]
    fn room_when_scarce(&mut self) -> u32 {
        self.scarce_at = self.now;
        self.contribution.set_busy(true);
        // the packets of other ports must not wait in the socket behind those of a flood
        if self.ports.is_dominated() { u32::MAX } else { 0 }
    }

    /// Returns the number of packets for which it is worth to read.
    fn room_min(&self) -> u32 {
        (self.scarce_below / 2).max(1)
    }

    #[cold]
    fn drain_queues(&mut self) {
        if self.admit_queued() {
            self.turn.hand_over(self.now)
        }
        self.tally.shed += self.queues.expire(self.now, self.admission.patience);
        if self.queues.is_empty() && self.credits_left > self.scarce_below {
            self.ledger.clear()
        }
    }

    fn roll_window(&mut self) {
        if self.window.shed > 0
            && let Some(node) = self.node
        {
            tracing::warn!(%node, packets = self.window.shed, "hive is overloaded: dropped packets from this switch");
        }
        self.window = Window::open(self.now);
        self.ports.next_period()
    }

    /// Ends a round: hands the admitted messages to the hive.
    #[inline]
    pub(crate) fn finish(&mut self) {
        // cannot fail, because only packets take credits, and each
        // admitted packet was counted against the free credits
        let _ = self.io.try_flush();
        if !self.queues.is_empty() {
            self.flush_queues()
        }
        if self.tally.arrived > 0 {
            self.turn.hand_over(self.now)
        }
        if self.tally.arrived > 0 || self.tally.shed > 0 {
            self.flush_tally()
        }
        self.contribution.set_waiting(self.queues.bytes())
    }

    /// Admits more queued packets, because handlers may have finished by now and returned their credits.
    #[cold]
    fn flush_queues(&mut self) {
        loop {
            self.count_credits();
            if !self.admit_queued() {
                return;
            }
            // cannot fail, because no more packets have been admitted than there are credits
            let _ = self.io.try_flush();
        }
    }

    fn flush_tally(&mut self) {
        let Tally { arrived, queued, shed } = std::mem::take(&mut self.tally);
        Counters::add(&self.counters.packet_ins, arrived);
        Counters::add(&self.counters.packet_ins_waited, queued);
        Counters::add(&self.counters.packet_ins_shed, shed);
        self.window.shed += shed;
    }

    /// Returns whether the switch has sent more events than [`limits::EVENTS_UNCREDITED_PER_SECOND_MAX`] allows.
    pub(crate) fn is_flooded(&self) -> bool {
        self.flooded
    }

    /// Drops the queued packets and announces that the switch has left.
    pub(crate) fn node_left(&mut self) {
        self.tally.shed += self.queues.clear();
        self.flush_tally();
        self.contribution.set_waiting(0);
        self.contribution.set_busy(false);
        self.turn.end();
        let driver = self.address;
        match (self.node.take(), &self.standing) {
            (Some(node), None) => self.emit_now(NodeLeft { node, driver }),
            (Some(node), Some(_)) => self.emit_now(DriverLeft { node, driver }),
            (None, _) => {}
        }
    }

    /// Checks whether the inbox of this IO bee has overflowed. If so, asks the node app to compare the switch's flows
    /// with the intended ones, which also makes the apps check their own flows. The final state is therefore correct
    /// regardless of which commands were lost. Sends at most one request per [`limits::REPAIR_INTERVAL`].
    #[inline]
    pub(crate) fn check_lost_commands(&mut self) {
        let lost = self.io.take_lost();
        if lost > 0 || self.resync_needed {
            self.request_resync(lost)
        }
    }

    #[cold]
    fn request_resync(&mut self, lost: u64) {
        Counters::add(&self.counters.commands_lost, lost);
        self.resync_needed = true;
        let Some(node) = self.node else { return };

        if self.resync_sent.is_some_and(|sent| self.now.since(sent) < limits::REPAIR_INTERVAL) {
            return;
        }

        tracing::warn!(%node, lost, "command queue overflowed; resynchronizing the flow table");
        (self.resync_needed, self.resync_sent) = (false, Some(self.now));
        self.emit_now(VerifyFlows { node })
    }

    /// Tells the apps of a change of a port.
    fn report(&mut self, change: PortEvent) {
        let generation = self.standing.as_ref().and_then(Standing::mastership);
        match (generation, self.node, change) {
            (Some(generation), Some(node), change) => {
                self.emit_now(MasterReports { node, generation, change })
            }
            (_, _, PortEvent::Up(message)) => self.emit_now(message),
            (_, _, PortEvent::Down(message)) => self.emit_now(message),
            (_, _, PortEvent::Changed(message)) => self.emit_now(message),
        }
    }

    /// Like [`Ingress::emit_now`], but sends the message to the IO bee that requested it.
    fn send_now<M: Message>(&mut self, asker: Address, message: M) {
        let _ = self.io.try_flush();
        self.io.send(asker, message);
        self.flush_event()
    }

    fn emit_now<M: Message>(&mut self, message: M) {
        // first flushes the packets that arrived earlier, to preserve the order
        let _ = self.io.try_flush();
        self.io.emit(message);
        self.flush_event()
    }

    fn flush_event(&mut self) {
        if self.io.try_flush().is_ok() {
            self.credits_left = self.credits_left.min(self.io.credits());
            return;
        }
        self.window.uncredited += 1;
        self.flooded |= self.window.uncredited > limits::EVENTS_UNCREDITED_PER_SECOND_MAX;
        self.io.flush_control()
    }

    /// Handles a packet while credits are scarce. Admits the packet if its port has not used up its share; otherwise
    /// queues or sheds it.
    #[cold]
    fn packet_in_scarce(&mut self, packet: PacketIn) {
        // a flood must not make the links over which it arrives look dead; otherwise the topology would change for no
        // reason
        if packet.ethernet().is_some_and(|header| header.ethertype == LLDP)
            && self.window.allows_probe(packet.port)
        {
            return self.emit_now(packet.detached());
        }

        if self.ledger.is_empty() {
            self.ledger.start(self.limit - self.credits_left)
        }

        let port = packet.port;
        if !self.queues.has_queued(port) && credit_available(&self.ledger, port, self.credits_left) {
            self.ledger.take(port);
            self.credits_left -= 1;
            self.io.emit(packet.detached())
        } else if !self.admission.patience.is_zero()
            && self.contribution.capacity().may_wait()
            && self.queues.push(self.now, packet)
        {
            self.tally.queued += 1
        } else {
            self.tally.shed += 1
        }
    }

    /// Adds queued packets to the batch as long as there are credits. Returns whether it added any. Call it only
    /// after all packets admitted before have been handed to the hive.
    fn admit_queued(&mut self) -> bool {
        let Ingress { io, credits_left, ledger, queues, limit, .. } = self;
        ledger.settle(*limit - *credits_left);
        let before = *credits_left;
        let (credits_left, ledger) =
            (std::cell::Cell::from_mut(credits_left), std::cell::RefCell::new(ledger));

        queues.drain(
            |port| credit_available(&ledger.borrow(), port, credits_left.get()),
            |packet| {
                ledger.borrow_mut().take(packet.port);
                credits_left.set(credits_left.get() - 1);
                io.emit(packet)
            },
        );

        credits_left.get() < before
    }
}

/// Returns whether a port may take one of the `credits_left` free credits.
fn credit_available(ledger: &CreditLedger, port: PortNo, credits_left: u32) -> bool {
    fair_share::allows(ledger.held(port) as usize, 1, credits_left as usize)
}

impl Events for Ingress {
    #[inline]
    fn packet_in(&mut self, packet: PacketIn) {
        if !self.is_heard() {
            return Counters::add(&self.counters.packet_ins_standby, 1);
        }
        self.tally.arrived += 1;
        self.ports.count(packet.port);
        if self.credits_left <= self.scarce_below {
            return self.packet_in_scarce(packet);
        }
        self.credits_left -= 1;
        self.io.emit(packet)
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Joined { node, ports, knows_owners, drops_misses } => {
                self.node = Some(node);
                let driver = self.address;
                let joined = NodeJoined { node, driver, ports, knows_owners, drops_misses };
                match self.standing.is_some() {
                    true => self.joined = Some(NodeJoined { ports: Vec::new(), ..joined }),
                    false => self.emit_now(joined),
                }
            }
            Event::RoleGranted(Role { is_master: true, generation }) => self.granted = Some(generation),
            Event::RoleRefused { role: Role { is_master: true, generation }, newest } => {
                if let Some(node) = self.node {
                    self.emit_now(MasterRefused { node, generation, newest })
                }
            }
            // a driver that stands by does so whatever the switch says
            Event::RoleGranted(_) | Event::RoleRefused { .. } => {}
            Event::Duplicate { node, refused, kept } => self.emit_now(DuplicateNode { node, refused, kept }),
            Event::FlowsRead(FlowReading { asker: Some(asker), read }) => self.send_now(asker, read),
            // the master reports the same
            _ if !self.is_heard() => {}
            Event::PortUp(message) => self.report(PortEvent::Up(message)),
            Event::PortDown(message) => {
                // The queued packets arrived before this event. After this event, no app may learn from them that their
                // senders are at this port.
                self.tally.shed += self.queues.drop_port(message.port);
                self.report(PortEvent::Down(message))
            }
            Event::PortChanged(message) => self.report(PortEvent::Changed(message)),
            Event::FlowRemoved(message) => self.emit_now(message),
            Event::FlowFailed(message) => self.emit_now(message),
            Event::FlowsConfirmed(message) => self.emit_now(message),
            Event::FlowsRead(FlowReading { asker: None, read }) => self.emit_now(read),
        }
    }
}
