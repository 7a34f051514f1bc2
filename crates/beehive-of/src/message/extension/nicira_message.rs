//! Nicira's messages (Open vSwitch's `nicira-ext.h`).

use super::{Extension, Form};
use crate::message::action::Actions;
use crate::message::bundle::RequestForward;
use crate::message::instruction::{Instructions, Once};
use crate::message::number::{
    BufferId, FlowModCommand, FlowModFlags, FlowRemovedReason, NiciraRole, PacketInFormat, PacketInReason,
    TableId, TlvTableCommand,
};
use crate::message::switch::AsyncProperty;
use crate::message::symmetric::Empty;
use crate::oxm::OxmFields;
use crate::port_number::PortNo;
use crate::schema::{Hex, List, Padded, Port16, choice, structure, tagged};

choice! {
    /// A message of Nicira's.
    pub enum NiciraMessage<'a> {
        /// Asks for a role, before 1.2.
        RoleRequest(NiciraRoleMessage) "role_request" = [10 in _],
        /// The role.
        RoleReply(NiciraRoleMessage) "role_reply" = [11 in _],
        /// Selects the format of flow messages (1.0).
        SetFlowFormat(FlowFormat) "set_flow_format" = [12 in 0],
        /// Changes a flow table, with a list of fields.
        FlowMod(NiciraFlowMod<'a>) "flow_mod" = [13 in _],
        /// A flow is gone, with a list of fields.
        FlowRemoved(NiciraFlowRemoved<'a>) "flow_removed" = [14 in _],
        /// Gives flow modifications of 1.0 a table.
        FlowModTableId(FlowModTableId) "flow_mod_table_id" = [15 in _],
        /// Selects the format of packet-ins.
        SetPacketInFormat(SetPacketInFormat) "set_packet_in_format" = [16 in _],
        /// A packet for the controller, with a list of fields.
        PacketIn(NiciraPacketIn<'a>) "packet_in" = [17 in _],
        /// Makes flow statistics tell ages.
        FlowAge(Empty) "flow_age" = [18 in _],
        /// Sets which messages are sent unasked.
        SetAsyncConfig(NiciraAsyncConfig) "set_async_config" = [19 in _],
        /// Numbers the controller, for actions that name it.
        SetControllerId(SetControllerId) "set_controller_id" = [20 in _],
        /// Ends a flow monitor.
        FlowMonitorCancel(MonitorCancel) "flow_monitor_cancel" = [21 in 0..=2],
        /// Too many changes of flows to tell of.
        FlowMonitorPaused(Empty) "flow_monitor_paused" = [22 in 0..=2],
        /// All changes of flows are told.
        FlowMonitorResumed(Empty) "flow_monitor_resumed" = [23 in 0..=2],
        /// Gives tunnel options numbers as fields.
        TlvTableMod(TlvTableMod<'a>) "tlv_table_mod" = [24 in _],
        /// Asks for the numbers of tunnel options.
        TlvTableRequest(Empty) "tlv_table_request" = [25 in _],
        /// The numbers of tunnel options.
        TlvTableReply(TlvTable<'a>) "tlv_table_reply" = [26 in _],
        /// Sets which messages are sent unasked, by properties as 1.4 does.
        SetAsyncConfig2(AsyncProperties<'a>) "set_async_config2" = [27 in 0..=3],
        /// Goes on with a packet that an action paused.
        Resume(PacketProperties<'a>) "resume" = [28 in _],
        /// Forgets the connections of a zone.
        CtFlushZone(CtFlushZone) "ct_flush_zone" = [29 in _],
        /// A packet for the controller, by properties.
        PacketIn2(PacketProperties<'a>) "packet_in2" = [30 in _],
        /// A request of another controller.
        RequestForward(RequestForward<'a>) "requestforward" = [132 in 0..=2],
    }
}

impl<'a> Extension<'a> for NiciraMessage<'a> {
    const FORM: Form = Form::Message;
}

structure! {
    /// A role, before 1.2.
    pub struct NiciraRoleMessage in Role { role: NiciraRole }
    _ => [role],
}

structure! {
    /// The format of flow messages: 0 for that of 1.0, 2 for lists of fields.
    pub struct FlowFormat in Message { format: u32 }
    _ => [format],
}

structure! {
    /// Changes a flow table, with a list of fields.
    pub struct NiciraFlowMod<'a> in FlowMod {
        cookie: u64,
        /// With the table in the upper 8 bits after `flow_mod_table_id`.
        command: FlowModCommand,
        idle_timeout: u16,
        hard_timeout: u16,
        priority: u16,
        buffer_id: BufferId = BufferId::NONE,
        out_port: PortNo = PortNo::ANY,
        flags: FlowModFlags,
        match_fields: OxmFields<'a>,
        /// 1.0 only.
        actions: Actions<'a>,
        /// 1.1 on.
        instructions: Instructions<'a>,
    }
    0 => [
        cookie as Hex, command, idle_timeout, hard_timeout, priority, buffer_id, out_port as Port16, flags, size, 6,
        match_fields as Padded, actions
    ],
    1.. => [
        cookie as Hex, command, idle_timeout, hard_timeout, priority, buffer_id, out_port as Port16, flags, size, 6,
        match_fields as Padded, instructions as Once
    ],
}

structure! {
    /// A flow is gone, with a list of fields.
    pub struct NiciraFlowRemoved<'a> in Message {
        cookie: u64,
        priority: u16,
        reason: FlowRemovedReason,
        /// The table plus one; 0 where the switch does not tell.
        table_id_plus_one: u8,
        duration_sec: u32,
        duration_nsec: u32,
        idle_timeout: u16,
        packet_count: u64,
        byte_count: u64,
        match_fields: OxmFields<'a>,
    }
    _ => [
        cookie as Hex, priority, reason, table_id_plus_one, duration_sec, duration_nsec, idle_timeout, size,
        packet_count, byte_count, match_fields as Padded
    ],
}

structure! {
    /// Gives flow modifications of 1.0 a table: in the upper 8 bits of their command.
    pub struct FlowModTableId in Message { set: u8 }
    _ => [set, 7],
}

structure! {
    /// The format of packet-ins.
    pub struct SetPacketInFormat in Message { format: PacketInFormat }
    _ => [format],
}

structure! {
    /// A packet for the controller, with a list of fields.
    pub struct NiciraPacketIn<'a> in Message {
        buffer_id: BufferId = BufferId::NONE,
        total_len: u16,
        reason: PacketInReason,
        table_id: TableId,
        cookie: u64,
        match_fields: OxmFields<'a>,
        data: &'a [u8],
    }
    _ => [buffer_id, total_len, reason, table_id, cookie as Hex, size, 6, match_fields as Padded, 2, data],
}

structure! {
    /// Which messages a switch sends unasked: bit n of a mask for reason n; to masters, then to slaves.
    pub struct NiciraAsyncConfig in Message {
        packet_in_mask: u32,
        packet_in_mask_slave: u32,
        port_status_mask: u32,
        port_status_mask_slave: u32,
        flow_removed_mask: u32,
        flow_removed_mask_slave: u32,
    }
    _ => [
        packet_in_mask, packet_in_mask_slave, port_status_mask, port_status_mask_slave, flow_removed_mask,
        flow_removed_mask_slave
    ],
}

structure! {
    /// Which messages a switch sends unasked, by properties.
    pub struct AsyncProperties<'a> in Message { properties: List<'a, AsyncProperty<'a>> }
    _ => [properties],
}

structure! {
    /// Numbers the controller.
    pub struct SetControllerId in Message { controller_id: u16 }
    _ => [6, controller_id],
}

structure! {
    /// Ends a flow monitor.
    pub struct MonitorCancel in Message { monitor_id: u32 }
    _ => [monitor_id],
}

structure! {
    /// Gives tunnel options numbers as fields (`tun_metadata0` and so on), or takes them away.
    pub struct TlvTableMod<'a> in Message {
        command: TlvTableCommand,
        maps: List<'a, TlvMap>,
    }
    _ => [command, 6, maps],
}

structure! {
    /// The numbers of tunnel options.
    pub struct TlvTable<'a> in Message {
        max_option_space: u32,
        max_fields: u16,
        maps: List<'a, TlvMap>,
    }
    _ => [max_option_space, max_fields, 10, maps],
}

structure! {
    /// The number of a tunnel option.
    pub struct TlvMap in Message {
        option_class: u16,
        option_type: u8,
        option_len: u8,
        index: u16,
    }
    _ => [option_class, option_type, option_len, index, 2],
}

structure! {
    /// Forgets the connections of a zone.
    pub struct CtFlushZone in Message { zone_id: u16 }
    _ => [6, zone_id],
}

structure! {
    /// A packet for the controller, or back from it.
    pub struct PacketProperties<'a> in Message { properties: List<'a, PacketProperty<'a>> }
    _ => [properties],
}

tagged! {
    /// What is told of a packet.
    pub enum PacketProperty<'a> in Property, "packet property length", padded true, minimum 4 {
        /// The packet, or the start of it.
        Packet(PropertyBytes<'a>) "packet" = [0 in _],
        /// Its length, when it is cut off.
        FullLength(FullLength) "full_len" = [1 in _],
        /// Where the switch keeps it.
        BufferId(BufferProperty) "buffer_id" = [2 in _],
        /// The table that sent it.
        TableId(TableIdProperty) "table_id" = [3 in _],
        /// The cookie of the flow that sent it.
        Cookie(CookieProperty) "cookie" = [4 in _],
        /// Why it is sent.
        Reason(ReasonProperty) "reason" = [5 in _],
        /// What the switch knows about it.
        Metadata(MetadataProperty<'a>) "metadata" = [6 in _],
        /// What the action gave along.
        UserData(PropertyBytes<'a>) "userdata" = [7 in _],
        /// What the switch needs to go on; its own affair.
        Continuation(PropertyBytes<'a>) "continuation" = [8 in _],
    }
}

structure! {
    /// Bytes.
    pub struct PropertyBytes<'a> in Property { data: &'a [u8] }
    _ => [data],
}

structure! {
    /// The length of a packet in bytes.
    pub struct FullLength in Property { full_len: u32 }
    _ => [full_len],
}

structure! {
    /// Where a switch keeps a packet.
    pub struct BufferProperty in Property { buffer_id: BufferId = BufferId::NONE }
    _ => [buffer_id],
}

structure! {
    /// A table.
    pub struct TableIdProperty in Property { table_id: TableId }
    _ => [table_id],
}

structure! {
    /// A cookie.
    pub struct CookieProperty in Property { cookie: u64 }
    _ => [4, cookie as Hex],
}

structure! {
    /// A reason.
    pub struct ReasonProperty in Property { reason: PacketInReason }
    _ => [reason],
}

structure! {
    /// What a switch knows about a packet.
    pub struct MetadataProperty<'a> in Property { fields: OxmFields<'a> }
    _ => [fields],
}
