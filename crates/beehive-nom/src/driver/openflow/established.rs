//! Handles a switch's messages after the handshake. Packet-ins have a fast path, because they are by far the most
//! frequent messages.

use crate::driver::openflow::handshake::describe_error;
use crate::driver::openflow::sent_flows::SentFlow;
use crate::driver::openflow::session::Session;
use crate::driver::openflow::wire;
use crate::driver::{Close, Counters, Event, Events};
use crate::limits;
use crate::object::{
    BufferId, FlowFailed, FlowRemoved, FlowsConfirmed, PacketIn, PortChanged, PortDown, PortNo, PortUp,
};
use beehive::Time;
use beehive_of::any::{self, Echo, ErrorMessage, Message, PortReason, PortStatus};
use beehive_of::{Frame, Frames, Version, error_code_name, error_type_name};
use bytes::{Bytes, BytesMut};

/// Message type of a packet-in, in all versions.
const PACKET_IN: u8 = 10;
/// Message type of a flow modification, in all versions.
const FLOW_MOD: u8 = 14;

impl Session {
    /// Handles all frames in `chunk` after the handshake. `chunk` must end with a complete frame. The data of packets
    /// are slices of `chunk`.
    ///
    /// # Errors
    ///
    /// Returns an error if the switch violated the protocol. `out` then contains the error message for the switch.
    pub fn serve<E: Events>(
        &mut self,
        chunk: &Bytes,
        now: Time,
        out: &mut BytesMut,
        events: &mut E,
    ) -> Result<(), Close> {
        self.keepalive.heard(now);
        let mut messages = 0;
        let mut result = Ok(());

        for frame in Frames::new(chunk) {
            // cannot fail, because the caller has already checked the frames
            let Ok(frame) = frame else { break };
            messages += 1;
            let header = frame.header();
            result = if header.message_type == PACKET_IN && header.version == self.version.wire() {
                self.packet_in(frame, chunk, out, events)
            } else {
                self.control_message(frame, out, events)
            };
            if result.is_err() {
                break;
            }
        }

        Counters::add(&self.counters.messages, messages);
        result
    }

    #[inline]
    fn packet_in<E: Events>(
        &mut self,
        frame: Frame<'_>,
        chunk: &Bytes,
        out: &mut BytesMut,
        events: &mut E,
    ) -> Result<(), Close> {
        let packet = match any::PacketIn::parse(self.version, frame) {
            Ok(packet) => packet,
            Err(error) => return Err(self.malformed(frame, error, out)),
        };
        let port = wire::port_from(packet.in_port);
        if !port.is_single() {
            Counters::add(&self.counters.packet_ins_odd, 1);
            return Ok(());
        }

        if let Some(buffer) = packet.buffer_id {
            self.buffers.keep(buffer)
        }

        events.packet_in(PacketIn {
            node: self.node,
            port,
            reason: wire::packet_in_reason(packet.reason),
            length: packet.total_len,
            buffer: packet.buffer_id.map(BufferId),
            data: chunk.slice_ref(packet.data),
        });

        Ok(())
    }

    #[inline(never)]
    fn control_message<E: Events>(
        &mut self,
        frame: Frame<'_>,
        out: &mut BytesMut,
        events: &mut E,
    ) -> Result<(), Close> {
        if frame.header().version != self.version.wire() {
            return Err(self.wrong_version(frame, out));
        }

        let message = match Message::parse(frame).and_then(|m| m.check_lists().map(|()| m)) {
            Ok(message) => message,
            Err(error) => return Err(self.malformed(frame, error, out)),
        };
        match message {
            Message::EchoRequest(Echo { data }) => {
                if out.len() >= limits::BACKLOG_BYTES_MAX + limits::BACKLOG_BYTES_RESERVE {
                    return Err(Close::NotReading);
                }
                // cannot fail, because the data came from a frame and therefore fits into one
                let _ = Echo { data }.encode_reply_into(self.version, frame.xid(), out);
            }
            Message::EchoReply(_) => self.input_age.answered(frame.xid()),
            Message::BarrierReply => {
                if let Some(flows) = self.sent_flows.confirmed(frame.xid()) {
                    events.event(Event::FlowsConfirmed(FlowsConfirmed { node: self.node, flows }))
                }
            }
            Message::FlowStatisticsReply(part) => self.flow_statistics(frame.xid(), &part, events)?,
            Message::PortStatus(status) => self.port_status(&status, events),
            Message::FlowRemoved(removed) => self.flow_removed(&removed, events),
            Message::RoleReply(reply) => self.role_reply(frame.xid(), &reply, events),
            Message::Error(error) if self.role_refused(frame.xid(), &error, out, events) => {}
            Message::Error(error) => self.error(frame.xid(), &error, events),
            // these messages include a second hello and a second features reply
            _ => Counters::add(&self.counters.messages_ignored, 1),
        }

        Ok(())
    }

    /// Applies a port status message. Returns whether the port was previously up, or `None` if the message was ignored.
    pub(super) fn apply_port_status(&mut self, status: &PortStatus) -> Option<bool> {
        let number = wire::port_from(status.port.number);
        let known = self.ports.contains_key(&number);
        let odd = !PortNo::is_single(number)
            || matches!(status.reason, PortReason::Other(_))
            || (!known && status.reason == PortReason::Delete)
            || (!known && self.ports.len() >= limits::PORTS_PER_NODE_MAX);

        if odd {
            Counters::add(&self.counters.messages_ignored, 1);
            return None;
        }

        Counters::add(&self.counters.port_changes, 1);
        self.ports_changed = true;
        let before = match status.reason {
            PortReason::Delete => self.ports.remove(&number),
            _ => self.ports.insert(number, wire::port(&status.port)),
        };
        Some(before.is_some_and(|port| port.up))
    }

    fn port_status<E: Events>(&mut self, status: &PortStatus, events: &mut E) {
        let Some(was_up) = self.apply_port_status(status) else { return };

        let (node, port) = (self.node, wire::port(&status.port));
        let removed = status.reason == PortReason::Delete;
        let event = match (was_up, port.up && !removed) {
            (false, true) => Event::PortUp(PortUp { node, port }),
            (true, false) => Event::PortDown(PortDown { node, port: port.number, removed }),
            (false, false) if removed => Event::PortDown(PortDown { node, port: port.number, removed }),
            (_, _) => Event::PortChanged(PortChanged { node, port }),
        };

        events.event(event)
    }

    fn flow_removed<E: Events>(&mut self, removed: &any::FlowRemoved, events: &mut E) {
        let Some(owner) = wire::owner(removed.cookie) else {
            return Counters::add(&self.counters.messages_ignored, 1);
        };

        Counters::add(&self.counters.flows_removed, 1);
        events.event(Event::FlowRemoved(FlowRemoved {
            node: self.node,
            owner,
            priority: removed.priority,
            matching: wire::match_from(&removed.match_fields),
            reason: wire::flow_removed_reason(removed.reason),
            packets: removed.packet_count,
            bytes: removed.byte_count,
        }))
    }

    fn error<E: Events>(&mut self, xid: u32, error: &ErrorMessage<'_>, events: &mut E) {
        Counters::add(&self.counters.errors, 1);
        self.check_flood_refused(error);
        let why = match (
            error_type_name(self.version, error.error_type),
            error_code_name(self.version, error.error_type, error.code),
        ) {
            // the name under which this error is commonly known
            (Some(kind), Some("permission")) => format!("{kind}: EPERM"),
            (Some(kind), Some(code)) => format!("{kind}: {}", code.to_ascii_uppercase()),
            _ => describe_error(error),
        };

        tracing::debug!(node = %self.node, why, "switch reported an error");
        if self.reading_refused(xid) {
            tracing::warn!(node = %self.node, why, "switch refused a flow statistics request");
            return;
        }
        if self.sent_flows.barrier_refused(xid) {
            let flows = Vec::new();
            events.event(Event::FlowsConfirmed(FlowsConfirmed { node: self.node, flows }));
            return;
        }

        if let Some(SentFlow { owner, cause, flow, .. }) = self.sent_flows.refused(xid) {
            let flow = Some(flow);
            events.event(Event::FlowFailed(FlowFailed { node: self.node, owner, cause, flow, why }));
            return;
        }

        // The flow was sent too long ago to be remembered, or the message was a withdrawal. The error quotes the
        // message that caused it. The cookie's offset in that message depends on the version.
        let cookie_at = match self.version {
            Version::V1_0 => 8 + 40,
            _ => 8,
        };

        let cookie =
            error.data.get(cookie_at..).and_then(|c| c.first_chunk::<8>()).map(|c| u64::from_be_bytes(*c));
        if error.data.get(1) == Some(&FLOW_MOD)
            && let Some(cookie) = cookie
            && let Some(owner) = wire::owner(cookie)
        {
            let (node, cause) = (self.node, wire::cause(cookie));
            events.event(Event::FlowFailed(FlowFailed { node, owner, cause, flow: None, why }))
        }
    }
}
