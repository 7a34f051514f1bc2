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
    /// A Nicira message.
    pub enum NiciraMessage<'a> {
        /// Requests a role, before 1.2.
        RoleRequest(NiciraRoleMessage) "role_request" = [10 in _],
        /// The role that the switch granted.
        RoleReply(NiciraRoleMessage) "role_reply" = [11 in _],
        /// Selects the format of flow messages (1.0).
        SetFlowFormat(FlowFormat) "set_flow_format" = [12 in 0],
        /// Changes a flow table; the match is a list of fields.
        FlowMod(NiciraFlowMod<'a>) "flow_mod" = [13 in _],
        /// Reports that a flow was removed; the match is a list of fields.
        FlowRemoved(NiciraFlowRemoved<'a>) "flow_removed" = [14 in _],
        /// Adds a table number to flow modifications of 1.0.
        FlowModTableId(FlowModTableId) "flow_mod_table_id" = [15 in _],
        /// Selects the format of packet-ins.
        SetPacketInFormat(SetPacketInFormat) "set_packet_in_format" = [16 in _],
        /// A packet that the switch sends to the controller; its metadata is a list of fields.
        PacketIn(NiciraPacketIn<'a>) "packet_in" = [17 in _],
        /// Makes flow statistics report the ages of flows.
        FlowAge(Empty) "flow_age" = [18 in _],
        /// Sets which asynchronous messages the switch sends.
        SetAsyncConfig(NiciraAsyncConfig) "set_async_config" = [19 in _],
        /// Sets the controller identifier that actions refer to.
        SetControllerId(SetControllerId) "set_controller_id" = [20 in _],
        /// Cancels a flow monitor.
        FlowMonitorCancel(MonitorCancel) "flow_monitor_cancel" = [21 in 0..=2],
        /// Reports that the switch paused a flow monitor, because there were too many updates.
        FlowMonitorPaused(Empty) "flow_monitor_paused" = [22 in 0..=2],
        /// Reports that the switch resumed a flow monitor.
        FlowMonitorResumed(Empty) "flow_monitor_resumed" = [23 in 0..=2],
        /// Maps tunnel options to match fields.
        TlvTableMod(TlvTableMod<'a>) "tlv_table_mod" = [24 in _],
        /// Requests the mapping of tunnel options.
        TlvTableRequest(Empty) "tlv_table_request" = [25 in _],
        /// The mapping of tunnel options.
        TlvTableReply(TlvTable<'a>) "tlv_table_reply" = [26 in _],
        /// Sets which asynchronous messages the switch sends, with the properties of 1.4.
        SetAsyncConfig2(AsyncProperties<'a>) "set_async_config2" = [27 in 0..=3],
        /// Resumes the processing of a packet that an action paused.
        Resume(PacketProperties<'a>) "resume" = [28 in _],
        /// Flushes the tracked connections of a zone.
        CtFlushZone(CtFlushZone) "ct_flush_zone" = [29 in _],
        /// A packet that the switch sends to the controller, as properties.
        PacketIn2(PacketProperties<'a>) "packet_in2" = [30 in _],
        /// A forwarded request of another controller.
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
    /// The format of flow messages: 0 is the format of 1.0, and 2 is lists of fields.
    pub struct FlowFormat in Message { format: u32 }
    _ => [format],
}

structure! {
    /// Changes a flow table; the match is a list of fields.
    pub struct NiciraFlowMod<'a> in FlowMod {
        cookie: u64,
        /// The command. If [`FlowModTableId`] enabled it, the upper 8 bits are the table.
        command: FlowModCommand,
        idle_timeout: u16,
        hard_timeout: u16,
        priority: u16,
        buffer_id: BufferId = BufferId::NONE,
        out_port: PortNo = PortNo::ANY,
        flags: FlowModFlags,
        match_fields: OxmFields<'a>,
        /// Present in 1.0 only.
        actions: Actions<'a>,
        /// Present since 1.1.
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
    /// Reports that a flow was removed; the match is a list of fields.
    pub struct NiciraFlowRemoved<'a> in Message {
        cookie: u64,
        priority: u16,
        reason: FlowRemovedReason,
        /// The table plus one; 0 if the switch does not report it.
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
    /// Enables a table number in the upper 8 bits of the command of flow modifications of 1.0.
    pub struct FlowModTableId in Message { set: u8 }
    _ => [set, 7],
}

structure! {
    /// The format of packet-ins.
    pub struct SetPacketInFormat in Message { format: PacketInFormat }
    _ => [format],
}

structure! {
    /// A packet that the switch sends to the controller; its metadata is a list of fields.
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
    /// The set of asynchronous messages that a switch sends. Bit n of a mask stands for reason n. The first mask of
    /// each pair applies to masters, the second to slaves.
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
    /// The set of asynchronous messages that a switch sends, as properties.
    pub struct AsyncProperties<'a> in Message { properties: List<'a, AsyncProperty<'a>> }
    _ => [properties],
}

structure! {
    /// Sets the identifier of the controller.
    pub struct SetControllerId in Message { controller_id: u16 }
    _ => [6, controller_id],
}

structure! {
    /// Cancels a flow monitor.
    pub struct MonitorCancel in Message { monitor_id: u32 }
    _ => [monitor_id],
}

structure! {
    /// Maps tunnel options to match fields (`tun_metadata0` and so on), or removes mappings.
    pub struct TlvTableMod<'a> in Message {
        command: TlvTableCommand,
        maps: List<'a, TlvMap>,
    }
    _ => [command, 6, maps],
}

structure! {
    /// The mapping of tunnel options.
    pub struct TlvTable<'a> in Message {
        max_option_space: u32,
        max_fields: u16,
        maps: List<'a, TlvMap>,
    }
    _ => [max_option_space, max_fields, 10, maps],
}

structure! {
    /// The mapping of a tunnel option to a match field.
    pub struct TlvMap in Message {
        option_class: u16,
        option_type: u8,
        option_len: u8,
        index: u16,
    }
    _ => [option_class, option_type, option_len, index, 2],
}

structure! {
    /// Flushes the tracked connections of a zone.
    pub struct CtFlushZone in Message { zone_id: u16 }
    _ => [6, zone_id],
}

structure! {
    /// A packet as properties: one that the switch sends to the controller, or one that the controller
    /// resumes.
    pub struct PacketProperties<'a> in Message { properties: List<'a, PacketProperty<'a>> }
    _ => [properties],
}

tagged! {
    /// A property of a packet.
    pub enum PacketProperty<'a> in Property, "packet property length", padded true, minimum 4 {
        /// The packet, possibly truncated.
        Packet(PropertyBytes<'a>) "packet" = [0 in _],
        /// The full length of a truncated packet.
        FullLength(FullLength) "full_len" = [1 in _],
        /// The identifier of the packet in the switch's buffer.
        BufferId(BufferProperty) "buffer_id" = [2 in _],
        /// The table of the flow that sent the packet.
        TableId(TableIdProperty) "table_id" = [3 in _],
        /// The cookie of the flow that sent the packet.
        Cookie(CookieProperty) "cookie" = [4 in _],
        /// The reason why the switch sent the packet.
        Reason(ReasonProperty) "reason" = [5 in _],
        /// The metadata fields of the packet.
        Metadata(MetadataProperty<'a>) "metadata" = [6 in _],
        /// The user data of the action that sent the packet.
        UserData(PropertyBytes<'a>) "userdata" = [7 in _],
        /// Opaque state that the switch needs to resume the packet.
        Continuation(PropertyBytes<'a>) "continuation" = [8 in _],
    }
}

structure! {
    /// A property whose value is bytes.
    pub struct PropertyBytes<'a> in Property { data: &'a [u8] }
    _ => [data],
}

structure! {
    /// The full length of a packet in bytes.
    pub struct FullLength in Property { full_len: u32 }
    _ => [full_len],
}

structure! {
    /// The identifier of a packet in the switch's buffer.
    pub struct BufferProperty in Property { buffer_id: BufferId = BufferId::NONE }
    _ => [buffer_id],
}

structure! {
    /// The number of a table.
    pub struct TableIdProperty in Property { table_id: TableId }
    _ => [table_id],
}

structure! {
    /// The cookie of a flow.
    pub struct CookieProperty in Property { cookie: u64 }
    _ => [4, cookie as Hex],
}

structure! {
    /// The reason of a packet-in.
    pub struct ReasonProperty in Property { reason: PacketInReason }
    _ => [reason],
}

structure! {
    /// The metadata fields of a packet.
    pub struct MetadataProperty<'a> in Property { fields: OxmFields<'a> }
    _ => [fields],
}
