//! Statistics of flows and ports, and the description of a switch (1.0.0, 5.3.5; 1.3.5, 7.3.5; 1.5.1,
//! 7.3.5.3).

use super::action::Actions;
use super::experimenter::Experimenter;
use super::instruction::Instructions;
use super::match_::Match;
use super::number::{FlowModFlags, FlowStatsReason, GroupId, TableId};
use super::oxs::FlowCounters;
use crate::port_number::PortNo;
use crate::schema::{Fixed, Hex, List, Port16, structure, tagged};

structure! {
    /// The description of a switch: manufacturer, hardware, software and serial number.
    pub struct SwitchDescription in Statistics {
        mfr_desc: Fixed<256>,
        hw_desc: Fixed<256>,
        sw_desc: Fixed<256>,
        serial_num: Fixed<32>,
        dp_desc: Fixed<256>,
    }
    _ => [mfr_desc, hw_desc, sw_desc, serial_num, dp_desc],
}

structure! {
    /// Requests the flows that a match covers, or the sums of their counters.
    pub struct FlowRequest<'a> in Statistics {
        table_id: TableId = TableId::ALL,
        out_port: PortNo = PortNo::ANY,
        /// Present since 1.1.
        out_group: GroupId = GroupId::ANY,
        /// Present since 1.1.
        cookie: u64,
        /// Present since 1.1.
        cookie_mask: u64,
        match_fields: Match<'a>,
    }
    0 => [match_fields, table_id, 1, out_port as Port16],
    1.. => [table_id, 3, out_port, out_group, 4, cookie as Hex, cookie_mask as Hex, match_fields],
}

structure! {
    /// A flow and its counters.
    pub struct FlowEntry<'a> in Statistics {
        table_id: TableId,
        duration_sec: u32,
        duration_nsec: u32,
        priority: u16,
        idle_timeout: u16,
        hard_timeout: u16,
        /// Present since 1.3.
        flags: FlowModFlags,
        /// Present since 1.4.
        importance: u16,
        cookie: u64,
        packet_count: u64,
        byte_count: u64,
        match_fields: Match<'a>,
        /// Present since 1.5.
        counters: FlowCounters<'a>,
        /// Present in 1.0 only.
        actions: Actions<'a>,
        /// Present since 1.1.
        instructions: Instructions<'a>,
    }
    0 => [
        len, table_id, 1, match_fields, duration_sec, duration_nsec, priority, idle_timeout, hard_timeout, 6, cookie as Hex,
        packet_count, byte_count, actions
    ],
    1..=2 => [
        len, table_id, 1, duration_sec, duration_nsec, priority, idle_timeout, hard_timeout, 6, cookie as Hex, packet_count,
        byte_count, match_fields, instructions
    ],
    3 => [
        len, table_id, 1, duration_sec, duration_nsec, priority, idle_timeout, hard_timeout, flags, 4, cookie as Hex,
        packet_count, byte_count, match_fields, instructions
    ],
    4 => [
        len, table_id, 1, duration_sec, duration_nsec, priority, idle_timeout, hard_timeout, flags, importance, 2,
        cookie as Hex, packet_count, byte_count, match_fields, instructions
    ],
    5.. => [
        len, 2, table_id, 1, priority, idle_timeout, hard_timeout, flags, importance, cookie as Hex, match_fields, counters,
        instructions
    ],
}

structure! {
    /// The counters of a flow (1.5).
    pub struct FlowStatistics<'a> in Statistics {
        table_id: TableId,
        reason: FlowStatsReason,
        priority: u16,
        match_fields: Match<'a>,
        counters: FlowCounters<'a>,
    }
    5.. => [len, 2, table_id, reason, priority, match_fields, counters],
}

structure! {
    /// The sums of the counters of several flows.
    pub struct Aggregate<'a> in Statistics {
        packet_count: u64,
        byte_count: u64,
        flow_count: u32,
        /// The sums (since 1.5).
        counters: FlowCounters<'a>,
    }
    0..=4 => [packet_count, byte_count, flow_count, 4],
    5.. => [counters],
}

structure! {
    /// Requests the counters of a port, or of all ports.
    pub struct PortRequest in Statistics { port_no: PortNo = PortNo::ANY }
    0 => [port_no as Port16, 6],
    1.. => [port_no, 4],
}

structure! {
    /// Requests the descriptions of all ports or, from 1.5 on, of one port.
    pub struct PortDescriptionRequest in Statistics { port_no: PortNo = PortNo::ANY }
    0..=4 => [],
    5.. => [port_no, 4],
}

structure! {
    /// The counters of a port. A counter that the port does not support has all bits set.
    pub struct PortStatistics<'a> in Statistics {
        port_no: PortNo,
        /// Present since 1.3.
        duration_sec: u32,
        /// Present since 1.3.
        duration_nsec: u32,
        rx_packets: u64,
        tx_packets: u64,
        rx_bytes: u64,
        tx_bytes: u64,
        rx_dropped: u64,
        tx_dropped: u64,
        rx_errors: u64,
        tx_errors: u64,
        /// From 1.4 on, this field and the next three are in a property.
        rx_frame_err: u64,
        rx_over_err: u64,
        rx_crc_err: u64,
        collisions: u64,
        /// Present since 1.4.
        properties: List<'a, PortStatisticsProperty<'a>>,
    }
    0 => [
        port_no as Port16, 6, rx_packets, tx_packets, rx_bytes, tx_bytes, rx_dropped, tx_dropped, rx_errors, tx_errors,
        rx_frame_err, rx_over_err, rx_crc_err, collisions
    ],
    1..=2 => [
        port_no, 4, rx_packets, tx_packets, rx_bytes, tx_bytes, rx_dropped, tx_dropped, rx_errors, tx_errors,
        rx_frame_err, rx_over_err, rx_crc_err, collisions
    ],
    3 => [
        port_no, 4, rx_packets, tx_packets, rx_bytes, tx_bytes, rx_dropped, tx_dropped, rx_errors, tx_errors,
        rx_frame_err, rx_over_err, rx_crc_err, collisions, duration_sec, duration_nsec
    ],
    4.. => [
        len, 2, port_no, duration_sec, duration_nsec, rx_packets, tx_packets, rx_bytes, tx_bytes, rx_dropped,
        tx_dropped, rx_errors, tx_errors, properties
    ],
}

tagged! {
    /// A property of the port statistics (since 1.4).
    pub enum PortStatisticsProperty<'a> in Property, "port statistics property length", padded true, minimum 4 {
        /// The counters of an Ethernet port.
        Ethernet(EthernetCounters) "ethernet" = [0 in 4..],
        /// The measurements of an optical port.
        Optical(OpticalCounters) "optical" = [1 in 4..],
        /// An experimenter property.
        Experimenter(Experimenter<'a>) "experimenter" = [0xffff in 4..],
    }
}

structure! {
    /// The counters of an Ethernet port.
    pub struct EthernetCounters in Property {
        rx_frame_err: u64,
        rx_over_err: u64,
        rx_crc_err: u64,
        collisions: u64,
    }
    _ => [4, rx_frame_err, rx_over_err, rx_crc_err, collisions],
}

structure! {
    /// The measurements of an optical port.
    pub struct OpticalCounters in Property {
        flags: u32,
        tx_freq_lmda: u32,
        tx_offset: u32,
        tx_grid_span: u32,
        rx_freq_lmda: u32,
        rx_offset: u32,
        rx_grid_span: u32,
        tx_pwr: u16,
        rx_pwr: u16,
        bias_current: u16,
        temperature: u16,
    }
    _ => [
        4, flags, tx_freq_lmda, tx_offset, tx_grid_span, rx_freq_lmda, rx_offset, rx_grid_span, tx_pwr, rx_pwr,
        bias_current, temperature
    ],
}
