//! Actions (1.0.0, 5.2.4; 1.1.0, A.2.6; 1.3.5, 7.2.5; 1.5.1, 7.2.6).

use core::net::Ipv4Addr;

use super::extension::ExperimenterAction;
use super::number::{GroupId, MeterId, PacketLength, QueueId};
use crate::address::MacAddress;
use crate::oxm::{FieldId, OxmField};
use crate::port_number::PortNo;
use crate::schema::{List, Port16, structure, tagged};

tagged! {
    /// An action on a packet.
    pub enum Action<'a> in Action, "action length", padded false, minimum 8 {
        /// Sends the packet out of a port.
        Output(Output) "output" = [0 in _],
        /// Sets the VLAN identifier.
        SetVlanId(SetVlanId) "set_vlan_vid" = [1 in 0..=1],
        /// Sets the VLAN priority.
        SetVlanPriority(SetVlanPriority) "set_vlan_pcp" = [2 in 0..=1],
        /// Removes the outermost VLAN tag (1.0: strip).
        PopVlan(NoArgument) "pop_vlan" = [3 in 0, 18 in 1..],
        /// Sets the Ethernet source.
        SetEthSrc(SetEthernet) "set_eth_src" = [4 in 0, 3 in 1],
        /// Sets the Ethernet destination.
        SetEthDst(SetEthernet) "set_eth_dst" = [5 in 0, 4 in 1],
        /// Sets the IPv4 source.
        SetIpv4Src(SetIpv4) "set_ipv4_src" = [6 in 0, 5 in 1],
        /// Sets the IPv4 destination.
        SetIpv4Dst(SetIpv4) "set_ipv4_dst" = [7 in 0, 6 in 1],
        /// Sets the IP type of service, whose upper six bits are the code point.
        SetIpTos(SetByte) "set_ip_tos" = [8 in 0, 7 in 1],
        /// Sets the explicit congestion notification bits.
        SetIpEcn(SetByte) "set_ip_ecn" = [8 in 1],
        /// Sets the transport source port.
        SetTransportSrc(SetTransport) "set_transport_src" = [9 in 0..=1],
        /// Sets the transport destination port.
        SetTransportDst(SetTransport) "set_transport_dst" = [10 in 0..=1],
        /// Sends the packet through a queue of a port.
        Enqueue(Enqueue) "enqueue" = [11 in 0],
        /// Copies the time to live from the next-to-outermost header to the outermost header.
        CopyTtlOut(NoArgument) "copy_ttl_out" = [11 in 1..],
        /// Copies the time to live from the outermost header to the next-to-outermost header.
        CopyTtlIn(NoArgument) "copy_ttl_in" = [12 in 1..],
        /// Sets the MPLS label.
        SetMplsLabel(SetWord) "set_mpls_label" = [13 in 1],
        /// Sets the MPLS traffic class.
        SetMplsTc(SetByte) "set_mpls_tc" = [14 in 1],
        /// Sets the MPLS time to live.
        SetMplsTtl(SetByte) "set_mpls_ttl" = [15 in 1..],
        /// Decrements the MPLS time to live.
        DecMplsTtl(NoArgument) "dec_mpls_ttl" = [16 in 1..],
        /// Adds a VLAN tag.
        PushVlan(EtherType) "push_vlan" = [17 in 1..],
        /// Adds an MPLS header.
        PushMpls(EtherType) "push_mpls" = [19 in 1..],
        /// Removes the outermost MPLS header. The argument is the Ethernet type of the payload.
        PopMpls(EtherType) "pop_mpls" = [20 in 1..],
        /// Selects the queue for outputs.
        SetQueue(SetQueue) "set_queue" = [21 in 1..],
        /// Processes the packet with a group.
        Group(Group) "group" = [22 in 1..],
        /// Sets the IP time to live.
        SetIpTtl(SetByte) "set_ip_ttl" = [23 in 1..],
        /// Decrements the IP time to live.
        DecIpTtl(NoArgument) "dec_ip_ttl" = [24 in 1..],
        /// Sets a field.
        SetField(SetField<'a>) "set_field" = [25 in 2..],
        /// Adds a provider backbone header.
        PushPbb(EtherType) "push_pbb" = [26 in 3..],
        /// Removes a provider backbone header.
        PopPbb(NoArgument) "pop_pbb" = [27 in 3..],
        /// Copies bits of a field to another field.
        CopyField(CopyField) "copy_field" = [28 in 5..],
        /// Applies a meter to the packet.
        Meter(Meter) "meter" = [29 in 5..],
        /// An experimenter action.
        Experimenter(ExperimenterAction<'a>) "experimenter" = [0xffff in _],
    }
}

/// A list of actions, in order.
pub type Actions<'a> = List<'a, Action<'a>>;

structure! {
    /// Sends a packet out of a port.
    pub struct Output in Action {
        port: PortNo,
        max_len: PacketLength = PacketLength::NO_BUFFER,
    }
    0 => [port as Port16, max_len],
    1.. => [port, max_len, 6],
}

structure! {
    /// Sets the VLAN identifier (12 bits).
    pub struct SetVlanId in Action { vlan_id: u16 }
    _ => [vlan_id, 2],
}

structure! {
    /// Sets the VLAN priority (3 bits).
    pub struct SetVlanPriority in Action { vlan_priority: u8 }
    _ => [vlan_priority, 3],
}

structure! {
    /// An action without an argument.
    pub struct NoArgument in Action {}
    _ => [4],
}

structure! {
    /// Sets an Ethernet address.
    pub struct SetEthernet in Action { address: MacAddress }
    _ => [address, 6],
}

structure! {
    /// Sets an IPv4 address.
    pub struct SetIpv4 in Action { address: Ipv4Addr = Ipv4Addr::UNSPECIFIED }
    _ => [address],
}

structure! {
    /// Sets an 8-bit field.
    pub struct SetByte in Action { value: u8 }
    _ => [value, 3],
}

structure! {
    /// Sets a TCP, UDP or SCTP port.
    pub struct SetTransport in Action { port: u16 }
    _ => [port, 2],
}

structure! {
    /// Sets a 32-bit field.
    pub struct SetWord in Action { value: u32 }
    _ => [value],
}

structure! {
    /// Sends a packet through a queue of a port.
    pub struct Enqueue in Action {
        port: PortNo,
        queue_id: QueueId,
    }
    _ => [port as Port16, 6, queue_id],
}

structure! {
    /// Pushes or pops a header; the argument is an Ethernet type.
    pub struct EtherType in Action { eth_type: u16 }
    _ => [eth_type, 2],
}

structure! {
    /// Selects a queue.
    pub struct SetQueue in Action { queue_id: QueueId }
    _ => [queue_id],
}

structure! {
    /// Processes a packet with a group.
    pub struct Group in Action { group_id: GroupId }
    _ => [group_id],
}

structure! {
    /// Sets a field.
    pub struct SetField<'a> in Action { field: OxmField<'a> }
    _ => [field, fill],
}

structure! {
    /// Copies bits of a field to another field.
    pub struct CopyField in Action {
        bit_count: u16,
        source_offset: u16,
        destination_offset: u16,
        source: FieldId,
        destination: FieldId,
    }
    _ => [bit_count, source_offset, destination_offset, 2, source, destination, fill],
}

structure! {
    /// Applies a meter to a packet.
    pub struct Meter in Action { meter_id: MeterId }
    _ => [meter_id],
}
