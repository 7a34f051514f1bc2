//! Nicira's actions (Open vSwitch's `ofp-actions.c`).

use super::nicira_learn::{Learn, Learn2};
use super::nicira_nat::Nat;
use super::{Extension, Form};
use crate::message::action::Actions;
use crate::message::number::{
    ConnectionFlags, GroupId, MeterId, PacketInReason, PacketLength, QueueId, SampleDirection, TableId,
};
use crate::oxm::{FieldId, Narrow, OxmField};
use crate::port_number::PortNo;
use crate::schema::{Hex, List, Nested, Port16, Words, choice, structure, tagged};

choice! {
    /// A Nicira action. Fields documented as "offset and count" have a bit offset in the upper 10 bits and
    /// the number of bits minus one in the lower 6.
    pub enum NiciraAction<'a> {
        /// Looks the packet up again, as if another port had received it.
        Resubmit(Resubmit) "resubmit" = [1 in _],
        /// Sets the tunnel identifier.
        SetTunnel(SetTunnel) "set_tunnel" = [2 in _],
        /// Selects the queue for outputs (1.0).
        SetQueue(NiciraSetQueue) "set_queue" = [4 in 0],
        /// Restores the original queue.
        PopQueue(NiciraNothing) "pop_queue" = [5 in _],
        /// Copies bits of a field to another field.
        RegMove(RegMove) "reg_move" = [6 in _],
        /// Sets bits of a field.
        RegLoad(RegLoad) "reg_load" = [7 in _],
        /// A note without an effect.
        Note(Note<'a>) "note" = [8 in _],
        /// Sets the tunnel identifier.
        SetTunnel64(SetTunnel64) "set_tunnel64" = [9 in _],
        /// Writes a hash of the packet to a field.
        Multipath(Multipath) "multipath" = [10 in _],
        /// Selects a port by a hash of the packet, and sends the packet there.
        Bundle(HashBundle<'a>) "bundle" = [12 in _],
        /// Selects a port by a hash of the packet, and writes the port to a field.
        BundleLoad(HashBundle<'a>) "bundle_load" = [13 in _],
        /// Looks the packet up in a table.
        ResubmitTable(ResubmitTable) "resubmit_table" = [14 in _],
        /// Sends the packet out of the port whose number is in a field.
        OutputReg(OutputReg) "output_reg" = [15 in _],
        /// Adds a flow with values from the packet.
        Learn(Learn<'a>) "learn" = [16 in _],
        /// Ends the processing of the packet.
        Exit(NiciraNothing) "exit" = [17 in _],
        /// Decrements the time to live (1.0).
        DecTtl(NiciraNothing) "dec_ttl" = [18 in 0],
        /// Shortens the timeouts of the flow when the TCP connection ends.
        FinTimeout(FinTimeout) "fin_timeout" = [19 in _],
        /// Sends the packet to a controller.
        Controller(Controller) "controller" = [20 in _],
        /// Decrements the time to live; sends expired packets to controllers.
        DecTtlCntIds(DecTtlCntIds<'a>) "dec_ttl_cnt_ids" = [21 in _],
        /// Sets bits of the metadata.
        WriteMetadata(NiciraWriteMetadata) "write_metadata" = [22 in _],
        /// Adds an MPLS header (1.0).
        PushMpls(NiciraEtherType) "push_mpls" = [23 in 0],
        /// Removes the outermost MPLS header (1.0).
        PopMpls(NiciraEtherType) "pop_mpls" = [24 in 0],
        /// Sets the MPLS time to live (1.0).
        SetMplsTtl(NiciraSetByte) "set_mpls_ttl" = [25 in 0],
        /// Decrements the MPLS time to live (1.0).
        DecMplsTtl(NiciraNothing) "dec_mpls_ttl" = [26 in 0],
        /// Pushes a field onto the stack.
        StackPush(StackField) "push" = [27 in _],
        /// Pops a field from the stack.
        StackPop(StackField) "pop" = [28 in _],
        /// Samples packets for export.
        Sample(Sample) "sample" = [29 in _],
        /// Sets the MPLS label (1.0).
        SetMplsLabel(NiciraSetWord) "set_mpls_label" = [30 in 0],
        /// Sets the MPLS traffic class (1.0).
        SetMplsTc(NiciraSetByte) "set_mpls_tc" = [31 in 0],
        /// Sends the packet out of the port whose number is in a field, which may be an experimenter field.
        OutputReg2(OutputReg2) "output_reg2" = [32 in _],
        /// Sets a field.
        RegLoad2(RegLoad2<'a>) "reg_load2" = [33 in _],
        /// Marks the flow as one dimension of a conjunctive match.
        Conjunction(Conjunction) "conjunction" = [34 in _],
        /// Passes the packet to the connection tracker.
        ConnectionTracking(ConnectionTracking<'a>) "ct" = [35 in _],
        /// Translates addresses; nested in `ct`.
        Nat(Nat) "nat" = [36 in _],
        /// Sends the packet to a controller, with properties.
        Controller2(Controller2<'a>) "controller2" = [37 in _],
        /// Samples packets for export.
        Sample2(Sample2) "sample2" = [38 in _],
        /// Truncates the packet, and sends it out of a port.
        OutputTrunc(OutputTrunc) "output_trunc" = [39 in _],
        /// Processes the packet with a group (1.0).
        Group(NiciraGroup) "group" = [40 in 0],
        /// Samples packets of one direction for export.
        Sample3(Sample2) "sample3" = [41 in _],
        /// Applies actions to a copy of the packet.
        Clone(CloneActions<'a>) "clone" = [42 in _],
        /// Clears the connection tracking state of the packet.
        CtClear(NiciraNothing) "ct_clear" = [43 in _],
        /// Looks the packet up in a table, with the tracked addresses and ports of its connection.
        ResubmitTableCt(ResubmitTable) "resubmit_table_ct" = [44 in _],
        /// Adds a flow with values from the packet, up to a maximum number of flows.
        Learn2(Learn2<'a>) "learn2" = [45 in _],
        /// Adds a header.
        Encap(Encap<'a>) "encap" = [46 in 3..],
        /// Removes the outermost header.
        Decap(Decap) "decap" = [47 in 3..],
        /// Decrements the time to live of a network service header.
        DecNshTtl(NiciraNothing) "dec_nsh_ttl" = [48 in 3..],
        /// Sets a bit of a field if the packet is larger than a length, and clears it otherwise.
        CheckPacketLarger(CheckPacketLarger) "check_pkt_larger" = [49 in _],
        /// Removes a field.
        DeleteField(DeleteField) "delete_field" = [50 in _],
    }
}

impl<'a> Extension<'a> for NiciraAction<'a> {
    const FORM: Form = Form::Action;
}

structure! {
    /// Looks a packet up again, as if another port had received it.
    pub struct Resubmit in Action { in_port: PortNo }
    _ => [in_port as Port16, 4],
}

structure! {
    /// Sets the tunnel identifier.
    pub struct SetTunnel in Action { tunnel_id: u32 }
    _ => [2, tunnel_id],
}

structure! {
    /// Selects a queue.
    pub struct NiciraSetQueue in Action { queue_id: QueueId }
    _ => [2, queue_id],
}

structure! {
    /// A Nicira action without an argument.
    pub struct NiciraNothing in Action {}
    _ => [6],
}

structure! {
    /// Copies bits of a field to another field.
    pub struct RegMove in Action {
        bit_count: u16,
        source_offset: u16,
        destination_offset: u16,
        source: FieldId,
        destination: FieldId,
    }
    _ => [bit_count, source_offset, destination_offset, source, destination, fill],
}

structure! {
    /// Sets bits of a field.
    pub struct RegLoad in Action {
        /// The bits of the field, as offset and count.
        bits: u16,
        destination: FieldId,
        value: u64,
    }
    _ => [bits, destination as Narrow, value as Hex],
}

structure! {
    /// A note without an effect. It has at least 6 bytes, and together with the header a multiple of 8 bytes.
    pub struct Note<'a> in Action { note: &'a [u8] }
    _ => [note],
}

structure! {
    /// Sets the tunnel identifier.
    pub struct SetTunnel64 in Action { tunnel_id: u64 }
    _ => [6, tunnel_id as Hex],
}

structure! {
    /// Writes a hash of a packet to a field.
    pub struct Multipath in Action {
        hash_fields: u16,
        basis: u16,
        algorithm: u16,
        /// The number of links minus one.
        max_link: u16,
        argument: u32,
        /// The bits of the field, as offset and count.
        bits: u16,
        destination: FieldId,
    }
    _ => [hash_fields, basis, 2, algorithm, max_link, argument, 2, bits, destination as Narrow],
}

structure! {
    /// Selects one of several ports by a hash of a packet.
    pub struct HashBundle<'a> in Action {
        algorithm: u16,
        hash_fields: u16,
        basis: u16,
        member_type: FieldId,
        /// The bits of the field, as offset and count.
        bits: u16,
        destination: FieldId,
        members: List<'a, u16>,
    }
    _ => [
        algorithm, hash_fields, basis, member_type as Narrow, size, bits, destination as Narrow, 4, members as Words,
        fill
    ],
}

structure! {
    /// Looks a packet up in a table.
    pub struct ResubmitTable in Action {
        in_port: PortNo,
        table_id: TableId = TableId::ALL,
    }
    _ => [in_port as Port16, table_id, 3],
}

structure! {
    /// Sends a packet out of the port whose number is in a field.
    pub struct OutputReg in Action {
        /// The bits of the field, as offset and count.
        bits: u16,
        source: FieldId,
        max_len: PacketLength = PacketLength::NO_BUFFER,
    }
    _ => [bits, source as Narrow, max_len, 6],
}

structure! {
    /// Sends a packet out of the port whose number is in a field.
    pub struct OutputReg2 in Action {
        /// The bits of the field, as offset and count.
        bits: u16,
        max_len: PacketLength = PacketLength::NO_BUFFER,
        source: FieldId,
    }
    _ => [bits, max_len, source, fill],
}

structure! {
    /// The timeouts of a flow after the TCP connection has ended, in seconds.
    pub struct FinTimeout in Action {
        fin_idle_timeout: u16,
        fin_hard_timeout: u16,
    }
    _ => [fin_idle_timeout, fin_hard_timeout, 2],
}

structure! {
    /// Sends a packet to a controller.
    pub struct Controller in Action {
        max_len: PacketLength = PacketLength::NO_BUFFER,
        controller_id: u16,
        reason: PacketInReason = PacketInReason::ACTION,
    }
    _ => [max_len, controller_id, reason, 1],
}

structure! {
    /// Decrements the time to live; sends expired packets to these controllers.
    pub struct DecTtlCntIds<'a> in Action { controllers: List<'a, u16> }
    _ => [size, 4, controllers as Words, fill],
}

structure! {
    /// Sets bits of the metadata.
    pub struct NiciraWriteMetadata in Action {
        metadata: u64,
        mask: u64 = u64::MAX,
    }
    _ => [6, metadata as Hex, mask as Hex],
}

structure! {
    /// Pushes or pops a header; the argument is an Ethernet type.
    pub struct NiciraEtherType in Action { eth_type: u16 }
    _ => [eth_type, 4],
}

structure! {
    /// Sets an 8-bit field.
    pub struct NiciraSetByte in Action { value: u8 }
    _ => [value, 5],
}

structure! {
    /// Sets a 32-bit field.
    pub struct NiciraSetWord in Action { value: u32 }
    _ => [2, value],
}

structure! {
    /// Bits of a field to push onto the stack or to pop from it.
    pub struct StackField in Action {
        offset: u16,
        field: FieldId,
        bit_count: u16,
    }
    _ => [offset, field, bit_count, fill],
}

structure! {
    /// Samples `probability` out of 65 535 packets for export.
    pub struct Sample in Action {
        probability: u16,
        collector_set_id: u32,
        observation_domain_id: u32,
        observation_point_id: u32,
    }
    _ => [probability, collector_set_id, observation_domain_id, observation_point_id],
}

structure! {
    /// Samples `probability` out of 65 535 packets for export.
    pub struct Sample2 in Action {
        probability: u16,
        collector_set_id: u32,
        observation_domain_id: u32,
        observation_point_id: u32,
        sampling_port: PortNo = PortNo::ANY,
        direction: SampleDirection,
    }
    _ => [
        probability, collector_set_id, observation_domain_id, observation_point_id, sampling_port as Port16, direction,
        5
    ],
}

structure! {
    /// Sets a field, or its bits under a mask.
    pub struct RegLoad2<'a> in Action { field: OxmField<'a> }
    _ => [field, fill],
}

structure! {
    /// One dimension of a conjunctive match: its index, counted from 0, and the number of dimensions.
    pub struct Conjunction in Action {
        clause: u8,
        clauses: u8,
        conjunction_id: u32,
    }
    _ => [clause, clauses, conjunction_id],
}

structure! {
    /// Passes a packet to the connection tracker.
    pub struct ConnectionTracking<'a> in Action {
        flags: ConnectionFlags,
        /// The field that contains the zone. If all bits of this identifier are 0, `zone` is the zone itself.
        zone_source: FieldId,
        /// The zone, or the bits of `zone_source` as offset and count.
        zone: u16,
        /// The table that processes the tracked packet next; [`TableId::ALL`] for none.
        recirc_table: TableId = TableId::ALL,
        /// The well-known port of the application protocol whose related connections are tracked; 0 for none.
        alg: u16,
        actions: Actions<'a>,
    }
    _ => [flags, zone_source as Narrow, zone, recirc_table, 3, alg, actions as Nested],
}

structure! {
    /// Applies actions to a copy of the packet.
    pub struct CloneActions<'a> in Action { actions: Actions<'a> }
    _ => [6, actions as Nested],
}

structure! {
    /// Truncates a packet, and sends it out of a port.
    pub struct OutputTrunc in Action {
        port: PortNo,
        max_len: u32,
    }
    _ => [port as Port16, max_len],
}

structure! {
    /// Processes a packet with a group.
    pub struct NiciraGroup in Action { group_id: GroupId }
    _ => [2, group_id],
}

structure! {
    /// Adds a header.
    pub struct Encap<'a> in Action {
        header_size: u16,
        packet_type: u32,
        properties: &'a [u8],
    }
    _ => [header_size, packet_type, properties],
}

structure! {
    /// Removes the outermost header. The argument is the type of the payload.
    pub struct Decap in Action { packet_type: u32 }
    _ => [2, packet_type],
}

structure! {
    /// Sets a bit of a field if a packet is larger than a length, and clears it otherwise.
    pub struct CheckPacketLarger in Action {
        packet_length: u16,
        offset: u16,
        destination: FieldId,
    }
    _ => [packet_length, offset, destination, fill],
}

structure! {
    /// Removes a field.
    pub struct DeleteField in Action { field: FieldId }
    _ => [field, 6, fill],
}

structure! {
    /// Sends a packet to a controller.
    pub struct Controller2<'a> in Action { properties: List<'a, ControllerActionProperty<'a>> }
    _ => [6, properties],
}

tagged! {
    /// A property of the action that sends a packet to a controller.
    pub enum ControllerActionProperty<'a> in Action, "controller property length", padded true, minimum 4 {
        /// The maximum number of bytes to send.
        MaxLength(MaxLength) "max_len" = [0 in _],
        /// The controller.
        ControllerId(ControllerId) "controller_id" = [1 in _],
        /// The reason to report.
        Reason(super::nicira_message::ReasonProperty) "reason" = [2 in _],
        /// Data to send along with the packet.
        UserData(super::nicira_message::PropertyBytes<'a>) "userdata" = [3 in _],
        /// Pauses the processing until the controller resumes it.
        Pause(PauseProperty) "pause" = [4 in _],
        /// The meter to apply.
        MeterId(MeterProperty) "meter_id" = [5 in _],
    }
}

structure! {
    /// The maximum number of bytes to send. If the value of a property has 16 bits, Open vSwitch includes two
    /// bytes of padding in the length of the property.
    pub struct MaxLength in Action { max_len: PacketLength = PacketLength::NO_BUFFER }
    _ => [max_len, 2],
}

structure! {
    /// The identifier of the controller to send the packet to.
    pub struct ControllerId in Action { controller_id: u16 }
    _ => [controller_id, 2],
}

structure! {
    /// Pauses the processing until the controller resumes it.
    pub struct PauseProperty in Action {}
    _ => [],
}

structure! {
    /// The meter to apply.
    pub struct MeterProperty in Action { meter_id: MeterId }
    _ => [meter_id],
}
