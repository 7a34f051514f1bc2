//! Features, configuration, roles, asynchronous messages and controllers of a switch.

use super::experimenter::Experimenter;
use super::number::{
    Capabilities, ChannelStatus, ConfigFlags, ControllerRole, ControllerStatusReason, PacketLength,
    RoleReason,
};
use super::port::Ports;
use crate::schema::{Hex, List, structure, tagged};

structure! {
    /// The features of a switch (1.0.0, 5.3.1; 1.3.5, 7.3.1).
    pub struct Features<'a> in Message {
        datapath_id: u64,
        n_buffers: u32,
        n_tables: u8,
        /// The identifier of this connection of the switch; 0 is the main one (since 1.3).
        auxiliary_id: u8,
        capabilities: Capabilities,
        /// The supported actions, bit n for action type n (1.0).
        actions: u32,
        /// The ports. Present up to 1.2; from 1.3 on, a multipart message carries them.
        ports: Ports<'a>,
    }
    0 => [datapath_id as Hex, n_buffers, n_tables, 3, capabilities, actions, ports],
    1..=2 => [datapath_id as Hex, n_buffers, n_tables, 3, capabilities, 4, ports],
    3.. => [datapath_id as Hex, n_buffers, n_tables, auxiliary_id, 2, capabilities, 4],
}

structure! {
    /// A switch's handling of IP fragments and table misses.
    pub struct SwitchConfig in Message {
        flags: ConfigFlags,
        miss_send_len: PacketLength,
    }
    _ => [flags, miss_send_len],
}

structure! {
    /// A controller's role (since 1.2; 1.3.5, 7.3.9).
    pub struct RoleMessage in Role {
        role: ControllerRole,
        /// The controller's short identifier at the switch (1.5).
        short_id: u16,
        generation_id: u64,
    }
    2..=4 => [role, 4, generation_id as Hex],
    5.. => [role, short_id, 2, generation_id as Hex],
}

structure! {
    /// Reports that the controller's role changed (since 1.4).
    pub struct RoleStatus<'a> in Role {
        role: ControllerRole,
        reason: RoleReason,
        generation_id: u64,
        properties: List<'a, ExperimenterProperty<'a>>,
    }
    3.. => [role, reason, 3, generation_id as Hex, properties],
}

tagged! {
    /// A property in a place where only experimenters define properties.
    pub enum ExperimenterProperty<'a> in Property, "property length", padded true, minimum 4 {
        /// An experimenter property.
        Experimenter(Experimenter<'a>) "experimenter" = [0xffff in 4..],
    }
}

structure! {
    /// The set of asynchronous messages that a switch sends (since 1.3; 1.3.5, 7.3.10). Bit n of a mask stands for
    /// reason n.
    pub struct AsyncConfig<'a> in Message {
        /// The masks are present in 1.3 only; later versions have properties instead. The first mask of each
        /// pair applies to masters and equals, the second to slaves.
        packet_in_mask: u32,
        packet_in_mask_slave: u32,
        port_status_mask: u32,
        port_status_mask_slave: u32,
        flow_removed_mask: u32,
        flow_removed_mask_slave: u32,
        /// Present since 1.4.
        properties: List<'a, AsyncProperty<'a>>,
    }
    3 => [
        packet_in_mask, packet_in_mask_slave, port_status_mask, port_status_mask_slave, flow_removed_mask,
        flow_removed_mask_slave
    ],
    4.. => [properties],
}

tagged! {
    /// The reasons for which a switch sends asynchronous messages of one type (since 1.4).
    pub enum AsyncProperty<'a> in Property, "asynchronous configuration property length", padded true, minimum 4 {
        /// Packet-ins to slaves.
        PacketInSlave(Mask) "packet_in_slave" = [0 in _],
        /// Packet-ins to masters and equals.
        PacketInMaster(Mask) "packet_in_master" = [1 in _],
        /// Port-status messages to slaves.
        PortStatusSlave(Mask) "port_status_slave" = [2 in _],
        /// Port-status messages to masters and equals.
        PortStatusMaster(Mask) "port_status_master" = [3 in _],
        /// Flow-removed messages to slaves.
        FlowRemovedSlave(Mask) "flow_removed_slave" = [4 in _],
        /// Flow-removed messages to masters and equals.
        FlowRemovedMaster(Mask) "flow_removed_master" = [5 in _],
        /// Role-status messages to slaves.
        RoleStatusSlave(Mask) "role_status_slave" = [6 in _],
        /// Role-status messages to masters and equals.
        RoleStatusMaster(Mask) "role_status_master" = [7 in _],
        /// Table-status messages to slaves.
        TableStatusSlave(Mask) "table_status_slave" = [8 in _],
        /// Table-status messages to masters and equals.
        TableStatusMaster(Mask) "table_status_master" = [9 in _],
        /// Request-forward messages to slaves.
        RequestForwardSlave(Mask) "requestforward_slave" = [10 in _],
        /// Request-forward messages to masters and equals.
        RequestForwardMaster(Mask) "requestforward_master" = [11 in _],
        /// Flow statistics to slaves.
        FlowStatisticsSlave(Mask) "flow_stats_slave" = [12 in _],
        /// Flow statistics to masters and equals.
        FlowStatisticsMaster(Mask) "flow_stats_master" = [13 in _],
        /// Controller-status messages to slaves.
        ControllerStatusSlave(Mask) "cont_status_slave" = [14 in _],
        /// Controller-status messages to masters and equals.
        ControllerStatusMaster(Mask) "cont_status_master" = [15 in _],
        /// Experimenter messages to slaves.
        ExperimenterSlave(Experimenter<'a>) "experimenter_slave" = [0xfffe in 4..],
        /// Experimenter messages to masters and equals.
        ExperimenterMaster(Experimenter<'a>) "experimenter_master" = [0xffff in 4..],
    }
}

structure! {
    /// A set of reasons; bit n stands for reason n.
    pub struct Mask in Property { mask: u32 }
    _ => [mask],
}

structure! {
    /// The status of a controller, as the switch knows it (1.5.1, 7.3.5.19).
    pub struct ControllerStatus<'a> in Message {
        short_id: u16,
        role: ControllerRole,
        reason: ControllerStatusReason,
        channel_status: ChannelStatus,
        properties: List<'a, ControllerProperty<'a>>,
    }
    5.. => [len, short_id, role, reason, channel_status, 6, properties],
}

tagged! {
    /// A property of a controller's status.
    pub enum ControllerProperty<'a> in Property, "controller status property length", padded true, minimum 4 {
        /// The address of the controller.
        Uri(Uri<'a>) "uri" = [0 in 5..],
        /// An experimenter property.
        Experimenter(Experimenter<'a>) "experimenter" = [0xffff in 5..],
    }
}

structure! {
    /// The address of a controller as a URI.
    pub struct Uri<'a> in Property { uri: &'a [u8] }
    _ => [uri],
}
