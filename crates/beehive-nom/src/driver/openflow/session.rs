//! Implements the OpenFlow protocol with one switch, without I/O: its inputs are frames and the time, and its outputs
//! are bytes and events.

use crate::driver::openflow::buffers::Buffers;
use crate::driver::openflow::flow_stats::PendingReading;
use crate::driver::openflow::input_age::InputAge;
use crate::driver::openflow::keepalive::Keepalive;
use crate::driver::openflow::roles::RoleRequest;
use crate::driver::openflow::sent_flows::SentFlows;
use crate::driver::openflow::wire;
use crate::driver::{Close, Counters, Events};
use crate::object::{Action, Actions, Flow, NodeId, PacketOut, Payload, Port, PortNo, WithdrawFlows};
use crate::{driver::Event, limits};
use beehive::Time;
use beehive_of::any::{self, ErrorMessage, Hello};
use beehive_of::{Error, Frame, Version, VersionSet};
use bytes::BytesMut;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Settings of an OpenFlow session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionSettings {
    /// Time without a message from the switch after which the controller sends an echo request. Default 1 s.
    pub echo_interval: Duration,
    /// Number of unanswered echo requests, sent one per interval, after which the session ends. Default 3.
    pub echo_misses: u32,
    /// Time limit of the handshake. Only the time for which the controller waits for the switch counts. Default 5 s.
    pub handshake: Duration,
    /// Versions offered by the controller. Default 1.0 to 1.5.
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

/// The result of a handshake frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The handshake needs more frames.
    Continue,
    /// The switch has reported its datapath id. The caller either calls [`Session::admit`] or refuses the switch.
    /// Until then, it must not pass further frames.
    Identified {
        /// The datapath id.
        node: NodeId,
        /// Whether this is an auxiliary connection of that node.
        auxiliary: bool,
    },
    /// The handshake is complete. Further frames go to [`Session::serve`].
    Ready,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Hello,
    Features {
        xid: u32,
    },
    Identified,
    /// The session is waiting for the port description and for the reply to the barrier, as long as their transaction
    /// ids are `Some`.
    Setup {
        ports: Option<u32>,
        barrier: Option<u32>,
        parts: u32,
        since: Time,
    },
    Ready,
}

/// An OpenFlow session.
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
    /// Port status messages that arrived before the handshake was complete.
    pub(super) early_port_status: Vec<any::PortStatus>,
    pub(super) buffers: Buffers,
    pub(super) keepalive: Keepalive,
    pub(super) input_age: InputAge,
    pub(super) ports_changed: bool,
    pub(super) sent_flows: SentFlows,
    /// The role requests that the switch has not answered, oldest first.
    pub(super) role_requests: VecDeque<RoleRequest>,
    /// Flow statistics requests in flight, oldest first.
    pub(super) readings: Vec<PendingReading>,
    /// `flooded`: whether a packet was sent to the `FLOOD` port. `floods_by_port_list`: whether the switch has
    /// refused that port.
    pub(super) flooded: bool,
    pub(super) floods_by_port_list: bool,
    next_xid: u32,
    /// Numbers of packets and flows encoded since the counters were last updated.
    tally: Tally,
}

#[derive(Debug, Default)]
struct Tally {
    packet_outs: u64,
    installed: u64,
}

impl Session {
    /// Creates a session with a switch that connected at time `now`, and writes a hello to `out`.
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
            input_age: InputAge::default(),
            ports_changed: false,
            sent_flows: SentFlows::default(),
            role_requests: VecDeque::new(),
            readings: Vec::new(),
            flooded: false,
            floods_by_port_list: false,
            next_xid: 1,
            tally: Tally::default(),
        };

        let xid = session.xid();
        // cannot fail, because the message has a fixed length
        let _ = Hello::new(settings.versions).encode_into(xid, out);
        session
    }

    /// Returns whether the handshake is complete.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Returns the negotiated version, or an empty text before the negotiation.
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

    /// Returns the datapath id reported by the switch, or 0 before it has reported one.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Returns the ports, ordered by number.
    pub fn ports(&self) -> Vec<Port> {
        self.ports.values().cloned().collect()
    }

    /// Returns whether ports have changed since the previous call.
    pub fn take_ports_changed(&mut self) -> bool {
        std::mem::take(&mut self.ports_changed)
    }

    #[inline]
    pub(super) fn xid(&mut self) -> u32 {
        let xid = self.next_xid;
        // skips zero, which peers use for unsolicited messages
        self.next_xid = xid.wrapping_add(1).max(1);
        xid
    }

    /// Returns the time at which [`Session::tick`] must next be called.
    pub fn deadline(&self) -> Time {
        match self.phase {
            Phase::Ready => self.keepalive.deadline(),
            Phase::Setup { since, .. } => (since + BARRIER_TIMEOUT).min(self.began + self.settings.handshake),
            _ => self.began + self.settings.handshake,
        }
    }

    /// Extends the time limit of the handshake, because the controller has kept the switch waiting.
    pub(super) fn extend_handshake(&mut self, by: Duration) {
        self.began = self.began + by
    }

    /// Handles timeouts: sends an echo request to an idle switch and ends the session with an unresponsive switch.
    ///
    /// # Errors
    ///
    /// Returns an error if the switch does not answer, or has not completed the handshake in time.
    pub fn tick<E: Events>(&mut self, now: Time, out: &mut BytesMut, events: &mut E) -> Result<(), Close> {
        match self.phase {
            Phase::Ready => {
                if self.keepalive.tick(now)? {
                    self.send_echo_request(out);
                }
                Ok(())
            }
            // serves a switch even if it never answers barriers
            Phase::Setup { ports: None, since, .. } if now.since(since) >= BARRIER_TIMEOUT => {
                tracing::debug!(node = %self.node, "switch did not answer the barrier of the handshake; serving it nevertheless");
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

    pub(super) fn send_echo_request(&mut self, out: &mut BytesMut) -> u32 {
        let xid = self.xid();
        // cannot fail, because the message has no data
        let _ = any::Echo { data: &[] }.encode_request_into(self.version, xid, out);
        Counters::add(&self.counters.echoes, 1);
        xid
    }

    /// Sends an echo request if it is time for one, because input waits in the socket.
    pub(super) fn probe_input_age(&mut self, now: Time, out: &mut BytesMut) {
        if self.input_age.is_due(now) {
            let xid = self.send_echo_request(out);
            self.input_age.sent(xid, now)
        }
    }

    /// Records that input waits in the socket by the controller's own decision, so that silence says nothing about the
    /// switch.
    pub(super) fn input_is_held(&mut self, now: Time) {
        self.keepalive.heard(now)
    }

    /// Returns whether the outcome of a probe by another connection is awaited.
    pub(super) fn is_probed(&self) -> bool {
        self.keepalive.is_probed()
    }

    /// Sends an echo request immediately, because another connection is claiming the same datapath id.
    pub fn probe(&mut self, now: Time, out: &mut BytesMut) {
        if self.keepalive.probe(now) {
            self.send_echo_request(out);
        }
    }

    /// Returns whether the switch has sent anything since the probe, or `None` if no probe is active or the switch
    /// can still answer.
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

    /// Answers an invalid frame with an error and returns the reason to close.
    #[cold]
    pub(super) fn malformed(&mut self, frame: Frame<'_>, error: Error, out: &mut BytesMut) -> Close {
        let answer = ErrorMessage::answering(error.answer(self.version), frame.bytes());
        // if this fails, the switch gets no error message
        let _ = answer.encode_into(self.version, frame.xid(), out);
        Close::Malformed(error.to_string())
    }

    /// Tells the switch that it is not permitted to connect.
    #[cold]
    pub fn send_permission_error(&mut self, out: &mut BytesMut) {
        // bad request, not permitted (the same numbers in all versions)
        let answer = beehive_of::Answer { error_type: 1, code: 5 };
        let xid = self.xid();
        // if this fails, the switch gets no error message
        let _ = ErrorMessage::answering(answer, &[]).encode_into(self.version, xid, out);
    }

    /// Answers bytes that are not a frame with an error, and returns the reason to close.
    #[cold]
    pub fn framing_error(&mut self, bytes: &[u8], error: Error, out: &mut BytesMut) -> Close {
        let xid = bytes.get(4..8).and_then(|x| x.first_chunk::<4>()).map_or(0, |x| u32::from_be_bytes(*x));
        let answer = ErrorMessage::answering(error.answer(self.version), bytes);
        let _ = answer.encode_into(self.version, xid, out);
        Close::Malformed(error.to_string())
    }

    // ---- commands ----

    /// Encodes a message that installs a flow.
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

    /// Encodes a barrier request if intended flows are unconfirmed and no barrier is in flight.
    #[inline]
    pub fn request_confirmation(&mut self, out: &mut BytesMut) {
        if self.sent_flows.wants_barrier() {
            self.send_barrier(out)
        }
    }

    #[cold]
    fn send_barrier(&mut self, out: &mut BytesMut) {
        let xid = self.xid();
        // cannot fail, because the message has a fixed length
        let _ = any::Message::BarrierRequest.encode_into(self.version, xid, out);
        self.sent_flows.barrier(xid)
    }

    /// Encodes messages that withdraw flows.
    pub fn withdraw(&mut self, flows: &WithdrawFlows, out: &mut BytesMut) {
        let xid = self.xid();
        match wire::withdraw(flows, self.version, xid, out) {
            Ok(()) => Counters::add(&self.counters.flows_withdrawn, 1),
            Err(error) => self.cannot_encode("a withdrawal of flows", error),
        }
    }

    /// Encodes a packet-out, unless the packet cannot be sent or too much output is pending.
    #[inline]
    pub fn send(&mut self, packet: &PacketOut, out: &mut BytesMut) {
        let (buffer, data) = match &packet.payload {
            Payload::Whole(data) => {
                if packet.actions == Actions::None {
                    return; // the switch does not hold this packet, so no message is needed to drop it
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
                    return; // there is no port to flood to
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
        tracing::warn!(node = %self.node, %error, "cannot encode {what} in the OpenFlow version of the switch");
    }

    /// Adds the numbers of encoded messages to the counters.
    #[inline]
    pub fn flush_tally(&mut self) {
        let Tally { packet_outs, installed } = std::mem::take(&mut self.tally);
        Counters::add(&self.counters.packet_outs, packet_outs);
        Counters::add(&self.counters.flows_installed, installed);
    }
}

/// The actions that flood a packet.
const FLOOD: Actions = Actions::One(Action::Output(PortNo::FLOOD));

/// Time for which the session waits for the reply to the handshake's barrier.
pub(super) const BARRIER_TIMEOUT: Duration = Duration::from_secs(1);
