//! Nicira's statistics: flows with lists of fields (1.0), flow monitors (before 1.3), IPFIX exports.

use super::{Extension, Form};
use crate::message::action::Actions;
use crate::message::flow_statistics::Aggregate;
use crate::message::flow_update::flow_update;
use crate::message::instruction::Instructions;
use crate::message::match_::Match;
use crate::message::monitor::AbbreviatedUpdate;
use crate::message::number::{FlowMonitorFlags, MonitorReason, NiciraFlowEvent, TableId};
use crate::message::symmetric::Empty;
use crate::oxm::OxmFields;
use crate::port_number::PortNo;
use crate::schema::{Hex, List, Padded, Port16, choice, structure};

choice! {
    /// The body of a Nicira statistics request.
    pub enum NiciraRequest<'a> {
        /// Flows and their counters.
        Flow(NiciraFlowRequest<'a>) "flow" = [0 in 0],
        /// Sums of the counters of flows.
        Aggregate(NiciraFlowRequest<'a>) "aggregate" = [1 in 0],
        /// Requests for notifications of changes to flows.
        FlowMonitor(NiciraMonitors<'a>) "flow_monitor" = [2 in 0..=2],
        /// The IPFIX export counters of a bridge.
        IpfixBridge(Empty) "ipfix_bridge" = [3 in _],
        /// The IPFIX export counters of flows.
        IpfixFlow(Empty) "ipfix_flow" = [4 in _],
    }
}

choice! {
    /// The body of a Nicira statistics reply.
    pub enum NiciraReply<'a> {
        /// Flows and their counters.
        Flow(NiciraFlows<'a>) "flow" = [0 in 0],
        /// Sums of the counters of flows.
        Aggregate(Aggregate<'a>) "aggregate" = [1 in 0],
        /// Updates of monitored flows.
        FlowMonitor(NiciraUpdates<'a>) "flow_monitor" = [2 in 0..=2],
        /// The IPFIX export counters of a bridge.
        IpfixBridge(Ipfix) "ipfix_bridge" = [3 in _],
        /// The IPFIX export counters of flows.
        IpfixFlow(IpfixList<'a>) "ipfix_flow" = [4 in _],
    }
}

impl<'a> Extension<'a> for NiciraRequest<'a> {
    const FORM: Form = Form::Statistics;
}

impl<'a> Extension<'a> for NiciraReply<'a> {
    const FORM: Form = Form::Statistics;
}

structure! {
    /// Requests flows.
    pub struct NiciraFlowRequest<'a> in Statistics {
        out_port: PortNo = PortNo::ANY,
        table_id: TableId = TableId::ALL,
        match_fields: OxmFields<'a>,
    }
    _ => [out_port as Port16, size, table_id, 3, match_fields as Padded],
}

structure! {
    /// Flows and their counters.
    pub struct NiciraFlows<'a> in Statistics { flows: List<'a, NiciraFlowEntry<'a>> }
    _ => [flows],
}

structure! {
    /// A flow and its counters.
    pub struct NiciraFlowEntry<'a> in Statistics {
        table_id: TableId,
        duration_sec: u32,
        duration_nsec: u32,
        priority: u16,
        idle_timeout: u16,
        hard_timeout: u16,
        /// Seconds since the last packet plus one; 0 if the switch does not report it.
        idle_age_plus_one: u16,
        /// Seconds since the last change plus one; 0 if the switch does not report it.
        hard_age_plus_one: u16,
        cookie: u64,
        packet_count: u64,
        byte_count: u64,
        match_fields: OxmFields<'a>,
        actions: Actions<'a>,
    }
    _ => [
        len, table_id, 1, duration_sec, duration_nsec, priority, idle_timeout, hard_timeout, size, idle_age_plus_one,
        hard_age_plus_one, cookie as Hex, packet_count, byte_count, match_fields as Padded, actions
    ],
}

structure! {
    /// Requests for notifications of changes to flows.
    pub struct NiciraMonitors<'a> in Statistics { monitors: List<'a, NiciraMonitorRequest<'a>> }
    _ => [monitors],
}

structure! {
    /// Requests notifications of changes to flows.
    pub struct NiciraMonitorRequest<'a> in Statistics {
        monitor_id: u32,
        flags: FlowMonitorFlags,
        out_port: PortNo = PortNo::ANY,
        table_id: TableId = TableId::ALL,
        match_fields: OxmFields<'a>,
    }
    _ => [monitor_id, flags, out_port as Port16, size, table_id, 5, match_fields as Padded],
}

structure! {
    /// Updates of monitored flows.
    pub struct NiciraUpdates<'a> in Statistics { updates: List<'a, NiciraUpdate<'a>> }
    _ => [updates],
}

structure! {
    /// IPFIX export counters.
    pub struct Ipfix in Statistics {
        total_flows: u64,
        current_flows: u64,
        packets: u64,
        ipv4_packets: u64,
        ipv6_packets: u64,
        error_packets: u64,
        ipv4_error_packets: u64,
        ipv6_error_packets: u64,
        sent_packets: u64,
        send_errors: u64,
        collector_set_id: u32,
    }
    _ => [
        total_flows, current_flows, packets, ipv4_packets, ipv6_packets, error_packets, ipv4_error_packets,
        ipv6_error_packets, sent_packets, send_errors, collector_set_id, 4
    ],
}

structure! {
    /// The IPFIX export counters of flows.
    pub struct IpfixList<'a> in Statistics { exports: List<'a, Ipfix> }
    _ => [exports],
}

flow_update! {
    /// A change to a monitored flow, in the format of Nicira or (in 1.3) of the ONF.
    pub struct NiciraUpdate of NiciraFlowEvent;
    /// The body of a flow update, which depends on the event.
    // Updates are short-lived values on the stack. Boxing the large variant would add an allocation.
    #[allow(clippy::large_enum_variant)]
    pub enum NiciraUpdateBody<'a> {
        /// The flow after the change.
        Full(NiciraFullUpdate<'a>) = ADDED | DELETED | MODIFIED,
        /// The transaction identifier of the controller's own request, which caused the change.
        Abbreviated(AbbreviatedUpdate) = ABBREV,
    }
    default ABBREV, Abbreviated
}

structure! {
    /// A flow that changed.
    pub struct NiciraFullUpdate<'a> in Statistics {
        reason: MonitorReason,
        priority: u16,
        idle_timeout: u16,
        hard_timeout: u16,
        table_id: TableId,
        cookie: u64,
        /// The match in Nicira's format, before 1.3.
        match_fields: OxmFields<'a>,
        /// The actions in Nicira's format, before 1.3.
        actions: Actions<'a>,
        /// The length of the match in the ONF's format, in bytes (1.3).
        match_len: u16,
        /// The match in the ONF's format (1.3).
        standard_match: Match<'a>,
        /// The instructions in the ONF's format (1.3).
        instructions: Instructions<'a>,
    }
    0..=2 => [
        reason, priority, idle_timeout, hard_timeout, size, table_id, 1, cookie as Hex, match_fields as Padded, actions
    ],
    _ => [
        reason, priority, idle_timeout, hard_timeout, match_len, table_id, 1, cookie as Hex, standard_match,
        instructions
    ],
}
