//! Reads a switch's flows and converts them to network objects as far as network objects can express them.

use crate::driver::openflow::session::Session;
use crate::driver::openflow::wire;
use crate::driver::{Close, Counters, Event, Events, FlowReading};
use crate::limits;
use crate::object::{Action, Actions, Cause, FlowFlags, FlowsRead, FoundFlow, ReadFlows};
use beehive_of::Version;
use beehive_of::any::{self, FlowEntry, FlowStatistics, FlowStatisticsRequest, VlanMatch};
use bytes::BytesMut;
use std::fmt::Write;

/// A flow statistics request that has not yet been answered completely.
#[derive(Debug)]
pub(super) struct PendingReading {
    xid: u32,
    wanted: ReadFlows,
    parts: u32,
}

impl Session {
    /// Requests the switch's flows.
    pub fn read_flows(&mut self, wanted: &ReadFlows, out: &mut BytesMut) {
        if self.readings.len() >= limits::READINGS_MAX {
            // drops the oldest request, which has timed out or will time out at its requester
            self.readings.remove(0);
        }

        let xid = self.xid();
        match FlowStatisticsRequest::ALL.encode_into(self.version, xid, out) {
            Ok(()) => self.readings.push(PendingReading { xid, wanted: *wanted, parts: 0 }),
            Err(error) => {
                tracing::warn!(node = %self.node, %error, "cannot encode a flow statistics request")
            }
        }
    }

    /// Handles one part of a flow statistics reply.
    pub(super) fn flow_statistics<E: Events>(
        &mut self,
        xid: u32,
        part: &FlowStatistics<'_>,
        events: &mut E,
    ) -> Result<(), Close> {
        let Some(at) = self.readings.iter().position(|pending| pending.xid == xid) else {
            Counters::add(&self.counters.messages_ignored, 1);
            return Ok(());
        };
        let Some(pending) = self.readings.get_mut(at) else { return Ok(()) };

        pending.parts += 1;
        if pending.parts > limits::READING_PARTS_MAX {
            return Err(Close::Malformed("the flow statistics reply has too many parts".into()));
        }

        let ReadFlows { reading, asker } = pending.wanted;
        if !part.more {
            self.readings.remove(at);
        }

        // cannot fail, because the list was checked when the message was parsed
        let version = self.version;
        let flows = part.entries.iter().flatten().map(|entry| found_flow(&entry, version)).collect();
        let read = FlowsRead { node: self.node, reading, last: !part.more, flows };
        events.event(Event::FlowsRead(FlowReading { asker, read }));
        Ok(())
    }

    /// Handles an error reported by the switch for the request `xid`. Returns whether that was a flow statistics
    /// request.
    pub(super) fn reading_refused(&mut self, xid: u32) -> bool {
        let before = self.readings.len();
        self.readings.retain(|pending| pending.xid != xid);
        self.readings.len() < before
    }
}

fn found_flow(entry: &FlowEntry<'_>, version: Version) -> FoundFlow {
    let (owner, cause) = match wire::owner(entry.cookie) {
        Some(owner) => (Some(owner), wire::cause(entry.cookie)),
        None => (None, Cause::UNKNOWN),
    };
    let mut more = unsupported_fields(&entry.match_fields);
    let actions = actions(entry, &mut more);
    if owner.is_none() {
        push_unknown_flags(entry.flags, &mut more)
    }

    FoundFlow {
        table: entry.table_id,
        owner,
        cause,
        cookie: entry.cookie,
        priority: entry.priority,
        matching: wire::match_from(&entry.match_fields),
        actions,
        more: (!more.is_empty()).then(|| more.into()),
        idle_s: entry.idle_timeout,
        hard_s: entry.hard_timeout,
        flags: (version >= Version::V1_3).then(|| flags(entry.flags)),
        age_s: entry.duration.as_secs().min(u64::from(u32::MAX)) as u32,
        packets: entry.packet_count,
        bytes: entry.byte_count,
    }
}

fn flags(flags: any::FlowFlags) -> FlowFlags {
    FlowFlags {
        reports_removal: flags.contains(any::FlowFlags::SEND_FLOW_REMOVED),
        checks_overlap: flags.contains(any::FlowFlags::CHECK_OVERLAP),
        resets_counts: flags.contains(any::FlowFlags::RESET_COUNTS),
        counts_no_packets: flags.contains(any::FlowFlags::NO_PACKET_COUNTS),
        counts_no_bytes: flags.contains(any::FlowFlags::NO_BYTE_COUNTS),
    }
}

/// Describes the flags that [`FlowFlags`] cannot express. Beehive sets none of them. If a switch reports one for a
/// Beehive flow, the switch itself has added the flag, and the flow is still correct.
fn push_unknown_flags(flags: any::FlowFlags, more: &mut String) {
    let known = any::FlowFlags::SEND_FLOW_REMOVED
        .with(any::FlowFlags::CHECK_OVERLAP)
        .with(any::FlowFlags::RESET_COUNTS)
        .with(any::FlowFlags::NO_PACKET_COUNTS)
        .with(any::FlowFlags::NO_BYTE_COUNTS);
    let unknown = flags.0 & !known.0;
    if unknown != 0 {
        push_item(more, format_args!("flags={unknown:#x}"))
    }
}

/// Appends `word` to a comma-separated list.
fn push_item(words: &mut String, word: std::fmt::Arguments<'_>) {
    // writing to a string cannot fail
    let _ = write!(words, "{}{word}", if words.is_empty() { "" } else { "," });
}

fn actions(entry: &FlowEntry<'_>, more: &mut String) -> Actions {
    let mut list: Vec<Action> = Vec::new();
    for action in entry.actions.iter().flatten() {
        match wire::action_from(&action) {
            Some(action) => list.push(action),
            None => push_item(more, format_args!("{action:?}")),
        }
    }

    if let Some(table) = entry.goto_table {
        push_item(more, format_args!("goto_table={table}"))
    }

    if entry.other_instructions > 0 {
        push_item(more, format_args!("{} more instructions", entry.other_instructions))
    }
    list.into()
}

/// Describes the fields of a match that [`FlowMatch`](crate::object::FlowMatch) cannot express.
fn unsupported_fields(m: &any::Match) -> String {
    let mut words = String::new();
    macro_rules! field {
        ($name:literal, $value:expr) => {
            if let Some(value) = $value {
                push_item(&mut words, format_args!("{}={value}", $name))
            }
        };
    }

    macro_rules! masked {
        ($name:literal, $value:expr) => {
            if let Some(masked) = $value {
                push_item(&mut words, format_args!("{}={}/{}", $name, masked.value, masked.mask))
            }
        };
    }

    masked!("eth_src", m.eth_src.filter(|masked| !masked.is_exact()));
    masked!("eth_dst", m.eth_dst.filter(|masked| !masked.is_exact()));
    if m.vlan == Some(VlanMatch::Tagged) {
        push_item(&mut words, format_args!("vlan=any"))
    }

    field!("vlan_priority", m.vlan_priority);
    if wire::conversation_from(m).is_none() {
        field!("ip_protocol", m.ip_protocol);
        masked!("ipv4_src", m.ipv4_src);
        masked!("ipv4_dst", m.ipv4_dst);
        masked!("ipv6_src", m.ipv6_src);
        masked!("ipv6_dst", m.ipv6_dst);
        field!("transport_src", m.transport_src);
        field!("transport_dst", m.transport_dst);
    }

    field!("ip_dscp", m.ip_dscp);
    field!("arp_operation", m.arp_operation);
    masked!("arp_sender", m.arp_sender);
    masked!("arp_target", m.arp_target);
    field!("icmp_type", m.icmp_type);
    field!("icmp_code", m.icmp_code);

    if m.other > 0 {
        push_item(&mut words, format_args!("{} more fields", m.other))
    }
    words
}
