//! The OpenFlow protocol with one switch, without input or output: frames and time in, bytes and events out.

use crate::driver::openflow::buffers::Buffers;
use crate::driver::openflow::flow_stats::PendingReading;
use crate::driver::openflow::keepalive::Keepalive;
use crate::driver::openflow::sent_flows::SentFlows;
use crate::driver::openflow::wire;
use crate::driver::{Close, Counters, Events};
use crate::object::{Action, Actions, Flow, NodeId, PacketOut, Payload, Port, PortNo, WithdrawFlows};
use crate::{driver::Event, limits};
use beehive::Time;
use beehive_of::any::{self, ErrorMessage, Hello};
use beehive_of::{Error, Frame, Version, VersionSet};
use bytes::BytesMut;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What can be set about a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionSettings {
    /// Silence after which the switch is asked whether it is there. Default 1 s.
    pub echo_interval: Duration,
    /// Questions that it may leave unanswered, one interval each. Default 3.
    pub echo_misses: u32,
    /// Time it has to be set up, from the first byte. Default 5 s.
    pub handshake: Duration,
    /// Versions that are spoken. Default 1.0 to 1.5.
    pub versions: VersionSet,
}

impl Default for SessionSettings {
    fn default() -> Self {
        SessionSettings {
            echo_interval: Duration::from_secs(1),
            echo_misses: 3,
            handshake: Duration::from_secs(5),
            versions: VersionSet::SUPPORTED,
        }
    }
}

/// What a frame of the handshake led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// More is needed.
    Continue,
    /// The switch has said who it is. Say [`Session::admit`] or refuse it; until then it is given no frame.
    Identified {
        /// Who it says to be.
        node: NodeId,
        /// Whether this is an auxiliary connection of that node.
        auxiliary: bool,
    },
    /// It is set up: [`Session::serve`] from now on.
    Ready,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Hello,
    Features {
        xid: u32,
    },
    Identified,
    /// Waits for what is `Some`: the description of the ports, the barrier.
    Setup {
        ports: Option<u32>,
        barrier: Option<u32>,
        parts: u32,
        since: Time,
    },
    Ready,
}

/// One OpenFlow session.
#[derive(Debug)]
pub struct Session {
    pub(super) settings: SessionSettings,
    pub(super) counters: Arc<Counters>,
    pub(super) phase: Phase,
    pub(super) version: Version,
    pub(super) began: Time,
    pub(super) node: NodeId,
    pub(super) auxiliary: bool,
    pub(super) ports: BTreeMap<PortNo, Port>,
    /// Changes of ports that came before their description.
    pub(super) early_port_status: Vec<any::PortStatus>,
    pub(super) buffers: Buffers,
    pub(super) keepalive: Keepalive,
    pub(super) ports_changed: bool,
    pub(super) sent_flows: SentFlows,
    /// Readings of flows under way, the oldest first.
    pub(super) readings: Vec<PendingReading>,
    /// Whether a packet was flooded, and whether the switch has refused that.
    pub(super) flooded: bool,
    pub(super) floods_by_port_list: bool,
    next_xid: u32,
    /// Packets and flows put together since they were last counted.
    tally: Tally,
}

#[derive(Debug, Default)]
struct Tally {
    packet_outs: u64,
    installed: u64,
}

impl Session {
    /// A session with a switch that connected at `now`; says hello.
    pub fn new(settings: SessionSettings, counters: Arc<Counters>, now: Time, out: &mut BytesMut) -> Session {
        let mut session = Session {
            settings,
            counters,
            phase: Phase::Hello,
            version: Version::V1_0,
            began: now,
            node: NodeId(0),
            auxiliary: false,
            ports: BTreeMap::new(),
            early_port_status: Vec::new(),
            buffers: Buffers::default(),
            keepalive: Keepalive::new(settings.echo_interval, settings.echo_misses, now),
            ports_changed: false,
            sent_flows: SentFlows::default(),
            readings: Vec::new(),
            flooded: false,
            floods_by_port_list: false,
            next_xid: 1,
            tally: Tally::default(),
        };
        let xid = session.xid();
        // cannot fail: it has a fixed length
        let _ = Hello::new(settings.versions).encode_into(xid, out);
        session
    }

    /// Whether the switch is set up.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// The version that is spoken, once that is agreed upon.
    pub fn protocol(&self) -> &'static str {
        match (self.phase, self.version) {
            (Phase::Hello, _) => "",
            (_, Version::V1_0) => "OpenFlow 1.0",
            (_, Version::V1_1) => "OpenFlow 1.1",
            (_, Version::V1_2) => "OpenFlow 1.2",
            (_, Version::V1_3) => "OpenFlow 1.3",
            (_, Version::V1_4) => "OpenFlow 1.4",
            (_, Version::V1_5) => "OpenFlow 1.5",
        }
    }

    /// Who the switch says to be, once it has.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// The ports, by number.
    pub fn ports(&self) -> Vec<Port> {
        self.ports.values().cloned().collect()
    }

    /// Whether ports have changed since this was asked last.
    pub fn take_ports_changed(&mut self) -> bool {
        std::mem::take(&mut self.ports_changed)
    }

    #[inline]
    pub(super) fn xid(&mut self) -> u32 {
        let xid = self.next_xid;
        // zero is what peers use for what nobody asked for
        self.next_xid = xid.wrapping_add(1).max(1);
        xid
    }

    /// When [`Session::tick`] has something to do next.
    pub fn deadline(&self) -> Time {
        match self.phase {
            Phase::Ready => self.keepalive.deadline(),
            Phase::Setup { since, .. } => (since + BARRIER_TIMEOUT).min(self.began + self.settings.handshake),
            _ => self.began + self.settings.handshake,
        }
    }

    /// Does what time brings: asks a silent switch whether it is there, and gives up on one that is not.
    ///
    /// # Errors
    ///
    /// The switch is silent, or was not set up in time.
    pub fn tick<E: Events>(&mut self, now: Time, out: &mut BytesMut, events: &mut E) -> Result<(), Close> {
        match self.phase {
            Phase::Ready => {
                if self.keepalive.tick(now)? {
                    self.send_echo_request(out)
                }
                Ok(())
            }
            // a switch that never answers barriers is served all the same
            Phase::Setup { ports: None, since, .. } if now.since(since) >= BARRIER_TIMEOUT => {
                tracing::debug!(node = %self.node, "the switch has not answered a barrier");
                self.become_ready(now, events);
                Ok(())
            }
            _ if now.since(self.began) >= self.settings.handshake => Err(match self.phase {
                Phase::Hello => Close::NoHello,
                _ => Close::Handshake,
            }),
            _ => Ok(()),
        }
    }

    pub(super) fn send_echo_request(&mut self, out: &mut BytesMut) {
        let xid = self.xid();
        // cannot fail: it has no data
        let _ = any::Echo { data: &[] }.encode_request_into(self.version, xid, out);
        Counters::add(&self.counters.echoes, 1);
    }

    /// Asks the switch at once whether it is there, since another one says to be it.
    pub fn probe(&mut self, now: Time, out: &mut BytesMut) {
        if self.keepalive.probe(now) {
            self.send_echo_request(out)
        }
    }

    /// Whether the switch has said anything since it was probed; none: it is not being probed, or may still answer.
    pub fn probe_outcome(&mut self, now: Time) -> Option<bool> {
        self.keepalive.probe_outcome(now)
    }

    pub(super) fn become_ready<E: Events>(&mut self, now: Time, events: &mut E) {
        self.phase = Phase::Ready;
        self.keepalive = Keepalive::new(self.settings.echo_interval, self.settings.echo_misses, now);
        for status in std::mem::take(&mut self.early_port_status) {
            self.apply_port_status(&status);
        }
        self.ports_changed = true;
        if !self.auxiliary {
            events.event(Event::Joined {
                node: self.node,
                ports: self.ports(),
                knows_owners: self.version != Version::V1_0,
                drops_misses: self.version >= Version::V1_3,
            })
        }
    }

    /// Answers a frame that is wrong, and says why the connection ends.
    #[cold]
    pub(super) fn malformed(&mut self, frame: Frame<'_>, error: Error, out: &mut BytesMut) -> Close {
        let answer = ErrorMessage::answering(error.answer(self.version), frame.bytes());
        // no more can be done for it if that fails
        let _ = answer.encode_into(self.version, frame.xid(), out);
        Close::Malformed(error.to_string())
    }

    /// Says that the switch is not let in, whatever it says.
    #[cold]
    pub fn send_permission_error(&mut self, out: &mut BytesMut) {
        // bad request, not permitted (the same numbers in both versions)
        let answer = beehive_of::Answer { error_type: 1, code: 5 };
        let xid = self.xid();
        // no more can be done for it if that fails
        let _ = ErrorMessage::answering(answer, &[]).encode_into(self.version, xid, out);
    }

    /// Says that bytes cannot be split into frames, and why the connection ends.
    #[cold]
    pub fn framing_error(&mut self, bytes: &[u8], error: Error, out: &mut BytesMut) -> Close {
        let xid = bytes.get(4..8).and_then(|x| x.first_chunk::<4>()).map_or(0, |x| u32::from_be_bytes(*x));
        let answer = ErrorMessage::answering(error.answer(self.version), bytes);
        let _ = answer.encode_into(self.version, xid, out);
        Close::Malformed(error.to_string())
    }

    // ---- commands ----

    /// Puts a flow in place.
    #[inline]
    pub fn install(&mut self, flow: &Flow, out: &mut BytesMut) {
        let xid = self.xid();
        match wire::install(flow, self.version, xid, out) {
            Ok(()) => {
                self.tally.installed += 1;
                self.sent_flows.sent(xid, flow)
            }
            Err(error) => self.cannot_encode("a flow", error),
        }
    }

    /// Asks to be told when the intended flows that were put together are in place, if there are any.
    #[inline]
    pub fn request_confirmation(&mut self, out: &mut BytesMut) {
        if self.sent_flows.wants_barrier() {
            self.send_barrier(out)
        }
    }

    #[cold]
    fn send_barrier(&mut self, out: &mut BytesMut) {
        let xid = self.xid();
        // cannot fail: it has a fixed length
        let _ = any::Message::BarrierRequest.encode_into(self.version, xid, out);
        self.sent_flows.barrier(xid)
    }

    /// Takes flows away.
    pub fn withdraw(&mut self, flows: &WithdrawFlows, out: &mut BytesMut) {
        let xid = self.xid();
        match wire::withdraw(flows, self.version, xid, out) {
            Ok(()) => Counters::add(&self.counters.flows_withdrawn, 1),
            Err(error) => self.cannot_encode("a withdrawal of flows", error),
        }
    }

    /// Sends a packet out.
    #[inline]
    pub fn send(&mut self, packet: &PacketOut, out: &mut BytesMut) {
        let (buffer, data) = match &packet.payload {
            Payload::Whole(data) => {
                if packet.actions == Actions::None {
                    return; // dropping what only we have takes no message
                }
                if out.len() >= limits::BACKLOG_BYTES_SOFT {
                    return Counters::add(&self.counters.packet_outs_dropped, 1);
                }
                (None, &data[..])
            }
            Payload::Buffered(buffer) => {
                if !self.buffers.take(buffer.0) {
                    return Counters::add(&self.counters.packet_outs_stale, 1);
                }
                (Some(buffer.0), &[][..])
            }
            Payload::CutOff => return Counters::add(&self.counters.packet_outs_cut_off, 1),
        };
        let xid = self.xid();
        let spread;
        let mut packet = packet;
        if packet.actions == FLOOD {
            self.flooded = true;
            if self.floods_by_port_list {
                spread = PacketOut { actions: self.flood_to_ports(packet), ..packet.clone() };
                packet = &spread;
                if packet.actions == Actions::None && buffer.is_none() {
                    return; // nobody to flood it to
                }
            }
        }
        match wire::packet_out(packet, buffer, data, self.version, xid, out) {
            Ok(()) => self.tally.packet_outs += 1,
            Err(error) => self.cannot_encode("a packet", error),
        }
    }

    #[cold]
    fn cannot_encode(&mut self, what: &str, error: beehive_of::EncodeError) {
        Counters::add(&self.counters.commands_refused, 1);
        tracing::warn!(node = %self.node, %error, "{what} cannot be expressed in the version that the switch speaks");
    }

    /// Brings the counters up to date.
    #[inline]
    pub fn flush_tally(&mut self) {
        let Tally { packet_outs, installed } = std::mem::take(&mut self.tally);
        Counters::add(&self.counters.packet_outs, packet_outs);
        Counters::add(&self.counters.flows_installed, installed);
    }
}

/// What floods a packet.
const FLOOD: Actions = Actions::One(Action::Output(PortNo::FLOOD));

/// How long an answer to the barrier of the handshake is waited for.
pub(super) const BARRIER_TIMEOUT: Duration = Duration::from_secs(1);
