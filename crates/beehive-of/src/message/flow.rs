//! Flow-mod and flow-removed (1.0.0, 5.3.3 and 5.4.2; 1.3.5, 7.3.4.2 and 7.4.2; 1.5.1, 7.4.2).

use super::action::Actions;
use super::instruction::{Instructions, Once};
use super::match_::Match;
use super::number::{BufferId, FlowModCommand, FlowModFlags, FlowRemovedReason, GroupId, TableId};
use super::oxs::FlowCounters;
use crate::port_number::PortNo;
use crate::schema::{Byte, Hex, Port16, structure};

structure! {
    /// Changes a flow table.
    pub struct FlowMod<'a> in FlowMod {
        cookie: u64,
        /// The bits of `cookie` to compare: a modification or deletion applies only to flows whose cookie
        /// equals `cookie` in these bits (since 1.1).
        cookie_mask: u64,
        table_id: TableId,
        command: FlowModCommand,
        idle_timeout: u16,
        hard_timeout: u16,
        priority: u16,
        buffer_id: BufferId = BufferId::NONE,
        /// Restricts deletions to flows that output to this port.
        out_port: PortNo = PortNo::ANY,
        /// Restricts deletions to flows that use this group (since 1.1).
        out_group: GroupId = GroupId::ANY,
        flags: FlowModFlags,
        /// Flows with higher importance are evicted later (since 1.4).
        importance: u16,
        match_fields: Match<'a>,
        /// Present in 1.0 only.
        actions: Actions<'a>,
        /// Present since 1.1.
        instructions: Instructions<'a>,
    }
    0 => [
        match_fields, cookie as Hex, command, idle_timeout, hard_timeout, priority, buffer_id, out_port as Port16, flags,
        actions
    ],
    1..=3 => [
        cookie as Hex, cookie_mask as Hex, table_id, command as Byte, idle_timeout, hard_timeout, priority, buffer_id, out_port,
        out_group, flags, 2, match_fields, instructions as Once
    ],
    4.. => [
        cookie as Hex, cookie_mask as Hex, table_id, command as Byte, idle_timeout, hard_timeout, priority, buffer_id, out_port,
        out_group, flags, importance, match_fields, instructions as Once
    ],
}

structure! {
    /// Reports that the switch removed a flow.
    pub struct FlowRemoved<'a> in Message {
        cookie: u64,
        priority: u16,
        reason: FlowRemovedReason,
        table_id: TableId,
        /// Lifetime of the flow in whole seconds.
        duration_sec: u32,
        /// Lifetime of the flow in nanoseconds beyond `duration_sec`.
        duration_nsec: u32,
        idle_timeout: u16,
        /// Present since 1.2.
        hard_timeout: u16,
        packet_count: u64,
        byte_count: u64,
        match_fields: Match<'a>,
        /// The flow's counters (since 1.5).
        counters: FlowCounters<'a>,
    }
    0 => [
        match_fields, cookie as Hex, priority, reason, 1, duration_sec, duration_nsec, idle_timeout, 2, packet_count,
        byte_count
    ],
    1 => [
        cookie as Hex, priority, reason, table_id, duration_sec, duration_nsec, idle_timeout, 2, packet_count, byte_count,
        match_fields
    ],
    2..=4 => [
        cookie as Hex, priority, reason, table_id, duration_sec, duration_nsec, idle_timeout, hard_timeout, packet_count,
        byte_count, match_fields
    ],
    5.. => [table_id, reason, priority, idle_timeout, hard_timeout, cookie as Hex, match_fields, counters],
}
