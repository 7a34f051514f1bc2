//! Flow monitors (since 1.4; 1.4.1, 7.3.5.17).

use super::flow_update::flow_update;
use super::instruction::Instructions;
use super::match_::Match;
use super::number::{FlowEvent, FlowMonitorCommand, FlowMonitorFlags, FlowRemovedReason, GroupId, TableId};
use crate::port_number::PortNo;
use crate::schema::{Hex, structure};

structure! {
    /// Requests notifications of changes to flows.
    pub struct FlowMonitorRequest<'a> in Statistics {
        monitor_id: u32,
        out_port: PortNo = PortNo::ANY,
        out_group: GroupId = GroupId::ANY,
        flags: FlowMonitorFlags,
        table_id: TableId = TableId::ALL,
        command: FlowMonitorCommand,
        match_fields: Match<'a>,
    }
    4.. => [monitor_id, out_port, out_group, flags, table_id, command, match_fields],
}

flow_update! {
    /// A change to a monitored flow.
    pub struct FlowUpdate of FlowEvent;
    /// The body of a flow update, which depends on the event.
    pub enum FlowUpdateBody<'a> {
        /// The flow after the change.
        Full(FullUpdate<'a>) = INITIAL | ADDED | REMOVED | MODIFIED,
        /// The transaction identifier of the controller's own request, which caused the change.
        Abbreviated(AbbreviatedUpdate) = ABBREV,
        /// The switch paused or resumed the updates, because there were too many.
        Pause(Pause) = PAUSED | RESUMED,
    }
    default PAUSED, Pause
}

structure! {
    /// A flow that changed.
    pub struct FullUpdate<'a> in Statistics {
        table_id: TableId,
        reason: FlowRemovedReason,
        idle_timeout: u16,
        hard_timeout: u16,
        priority: u16,
        cookie: u64,
        match_fields: Match<'a>,
        instructions: Instructions<'a>,
    }
    _ => [table_id, reason, idle_timeout, hard_timeout, priority, 4, cookie as Hex, match_fields, instructions],
}

structure! {
    /// The transaction identifier of the request that changed a flow.
    pub struct AbbreviatedUpdate in Statistics { xid: u32 }
    _ => [xid],
}

structure! {
    /// An empty body.
    pub struct Pause in Statistics {}
    _ => [4],
}
