//! Nicira's statistics: flows with lists of fields (1.0), flow monitors (before 1.3), exports.

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
    /// What is asked for by Nicira's means.
    pub enum NiciraRequest<'a> {
        /// Flows.
        Flow(NiciraFlowRequest<'a>) "flow" = [0 in 0],
        /// Sums over flows.
        Aggregate(NiciraFlowRequest<'a>) "aggregate" = [1 in 0],
        /// To be told of changes of flows.
        FlowMonitor(NiciraMonitors<'a>) "flow_monitor" = [2 in 0..=2],
        /// What a bridge exported.
        IpfixBridge(Empty) "ipfix_bridge" = [3 in _],
        /// What flows exported.
        IpfixFlow(Empty) "ipfix_flow" = [4 in _],
    }
}

choice! {
    /// What is told by Nicira's means.
    pub enum NiciraReply<'a> {
        /// Flows.
        Flow(NiciraFlows<'a>) "flow" = [0 in 0],
        /// Sums over flows.
        Aggregate(Aggregate<'a>) "aggregate" = [1 in 0],
        /// Changes of flows.
        FlowMonitor(NiciraUpdates<'a>) "flow_monitor" = [2 in 0..=2],
        /// What a bridge exported.
        IpfixBridge(Ipfix) "ipfix_bridge" = [3 in _],
        /// What flows exported.
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
    /// Asks for flows.
    pub struct NiciraFlowRequest<'a> in Statistics {
        out_port: PortNo = PortNo::ANY,
        table_id: TableId = TableId::ALL,
        match_fields: OxmFields<'a>,
    }
    _ => [out_port as Port16, size, table_id, 3, match_fields as Padded],
}

structure! {
    /// Flows.
    pub struct NiciraFlows<'a> in Statistics { flows: List<'a, NiciraFlowEntry<'a>> }
    _ => [flows],
}

structure! {
    /// A flow.
    pub struct NiciraFlowEntry<'a> in Statistics {
        table_id: TableId,
        duration_sec: u32,
        duration_nsec: u32,
        priority: u16,
        idle_timeout: u16,
        hard_timeout: u16,
        /// Seconds since its last packet plus one; 0 where the switch does not tell.
        idle_age_plus_one: u16,
        /// Seconds since its last change plus one; 0 where the switch does not tell.
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
    /// Flow monitors.
    pub struct NiciraMonitors<'a> in Statistics { monitors: List<'a, NiciraMonitorRequest<'a>> }
    _ => [monitors],
}

structure! {
    /// Asks to be told of changes of flows.
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
    /// Changes of flows.
    pub struct NiciraUpdates<'a> in Statistics { updates: List<'a, NiciraUpdate<'a>> }
    _ => [updates],
}

structure! {
    /// What was exported.
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
    /// What flows exported.
    pub struct IpfixList<'a> in Statistics { exports: List<'a, Ipfix> }
    _ => [exports],
}

flow_update! {
    /// What happened to a flow, as Nicira and the ONF (1.3) tell it.
    pub struct NiciraUpdate of NiciraFlowEvent;
    /// What is told about a change of a flow; what, depends on the event.
    // Each is read from a message, looked at and dropped; a box would cost what the codec does not.
    #[allow(clippy::large_enum_variant)]
    pub enum NiciraUpdateBody<'a> {
        /// The flow.
        Full(NiciraFullUpdate<'a>) = ADDED | DELETED | MODIFIED,
        /// The controller's own request did it.
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
        /// Nicira's list of fields, before 1.3.
        match_fields: OxmFields<'a>,
        /// Nicira's, before 1.3.
        actions: Actions<'a>,
        /// The ONF's number of bytes of the match, in 1.3.
        match_len: u16,
        /// The ONF's, in 1.3.
        standard_match: Match<'a>,
        /// The ONF's, in 1.3.
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
