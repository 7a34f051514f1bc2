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
    /// An action of Nicira's. Fields that are written "in bits" have an offset in the upper 10 bits and their number
    /// less one in the lower 6.
    pub enum NiciraAction<'a> {
        /// Looks the packet up again, as if it came in on another port.
        Resubmit(Resubmit) "resubmit" = [1 in _],
        /// Sets the tunnel.
        SetTunnel(SetTunnel) "set_tunnel" = [2 in _],
        /// Selects the queue for outputs (1.0).
        SetQueue(NiciraSetQueue) "set_queue" = [4 in 0],
        /// Selects the queue that was selected first.
        PopQueue(NiciraNothing) "pop_queue" = [5 in _],
        /// Copies bits of a field to another.
        RegMove(RegMove) "reg_move" = [6 in _],
        /// Sets bits of a field.
        RegLoad(RegLoad) "reg_load" = [7 in _],
        /// Does nothing.
        Note(Note<'a>) "note" = [8 in _],
        /// Sets the tunnel.
        SetTunnel64(SetTunnel64) "set_tunnel64" = [9 in _],
        /// Hashes the packet to a number.
        Multipath(Multipath) "multipath" = [10 in _],
        /// Hashes the packet to a port, and sends it there.
        Bundle(HashBundle<'a>) "bundle" = [12 in _],
        /// Hashes the packet to a port, and writes the port to a field.
        BundleLoad(HashBundle<'a>) "bundle_load" = [13 in _],
        /// Looks the packet up in a table.
        ResubmitTable(ResubmitTable) "resubmit_table" = [14 in _],
        /// Sends the packet out of the port that a field says.
        OutputReg(OutputReg) "output_reg" = [15 in _],
        /// Adds a flow made of the packet.
        Learn(Learn<'a>) "learn" = [16 in _],
        /// Ends.
        Exit(NiciraNothing) "exit" = [17 in _],
        /// Decrements the time to live (1.0).
        DecTtl(NiciraNothing) "dec_ttl" = [18 in 0],
        /// Gives the flow other timeouts when the connection ends.
        FinTimeout(FinTimeout) "fin_timeout" = [19 in _],
        /// Sends the packet to a controller.
        Controller(Controller) "controller" = [20 in _],
        /// Decrements the time to live; what runs out goes to controllers.
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
        /// Puts a field on the stack.
        StackPush(StackField) "push" = [27 in _],
        /// Takes a field off the stack.
        StackPop(StackField) "pop" = [28 in _],
        /// Exports some packets.
        Sample(Sample) "sample" = [29 in _],
        /// Sets the MPLS label (1.0).
        SetMplsLabel(NiciraSetWord) "set_mpls_label" = [30 in 0],
        /// Sets the MPLS traffic class (1.0).
        SetMplsTc(NiciraSetByte) "set_mpls_tc" = [31 in 0],
        /// Sends the packet out of the port that a field says, whose header may be long.
        OutputReg2(OutputReg2) "output_reg2" = [32 in _],
        /// Sets a field.
        RegLoad2(RegLoad2<'a>) "reg_load2" = [33 in _],
        /// Is one dimension of a conjunctive match.
        Conjunction(Conjunction) "conjunction" = [34 in _],
        /// Hands the packet to the connection tracker.
        ConnectionTracking(ConnectionTracking<'a>) "ct" = [35 in _],
        /// Translates addresses; inside of `ct`.
        Nat(Nat) "nat" = [36 in _],
        /// Sends the packet to a controller, with properties.
        Controller2(Controller2<'a>) "controller2" = [37 in _],
        /// Exports some packets.
        Sample2(Sample2) "sample2" = [38 in _],
        /// Sends the start of the packet out of a port.
        OutputTrunc(OutputTrunc) "output_trunc" = [39 in _],
        /// Processes the packet by a group (1.0).
        Group(NiciraGroup) "group" = [40 in 0],
        /// Exports some packets that go in a direction.
        Sample3(Sample2) "sample3" = [41 in _],
        /// Does actions with a copy of the packet.
        Clone(CloneActions<'a>) "clone" = [42 in _],
        /// Forgets what the connection tracker said.
        CtClear(NiciraNothing) "ct_clear" = [43 in _],
        /// Looks the packet up in a table, with the ends of its connection.
        ResubmitTableCt(ResubmitTable) "resubmit_table_ct" = [44 in _],
        /// Adds a flow made of the packet, if there are not too many.
        Learn2(Learn2<'a>) "learn2" = [45 in _],
        /// Adds a header.
        Encap(Encap<'a>) "encap" = [46 in 3..],
        /// Removes the outermost header.
        Decap(Decap) "decap" = [47 in 3..],
        /// Decrements the time to live of a service header.
        DecNshTtl(NiciraNothing) "dec_nsh_ttl" = [48 in 3..],
        /// Says in a field whether the packet is larger.
        CheckPacketLarger(CheckPacketLarger) "check_pkt_larger" = [49 in _],
        /// Removes a field.
        DeleteField(DeleteField) "delete_field" = [50 in _],
    }
}

impl<'a> Extension<'a> for NiciraAction<'a> {
    const FORM: Form = Form::Action;
}

structure! {
    /// Looks a packet up again, as if it came in on another port.
    pub struct Resubmit in Action { in_port: PortNo }
    _ => [in_port as Port16, 4],
}

structure! {
    /// Sets the tunnel.
    pub struct SetTunnel in Action { tunnel_id: u32 }
    _ => [2, tunnel_id],
}

structure! {
    /// Selects a queue.
    pub struct NiciraSetQueue in Action { queue_id: QueueId }
    _ => [2, queue_id],
}

structure! {
    /// An action of Nicira's without an argument.
    pub struct NiciraNothing in Action {}
    _ => [6],
}

structure! {
    /// Copies bits of a field to another.
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
        /// Which bits, in bits.
        bits: u16,
        destination: FieldId,
        value: u64,
    }
    _ => [bits, destination as Narrow, value as Hex],
}

structure! {
    /// Does nothing; at least 6 bytes, and a multiple of 8 with the header.
    pub struct Note<'a> in Action { note: &'a [u8] }
    _ => [note],
}

structure! {
    /// Sets the tunnel.
    pub struct SetTunnel64 in Action { tunnel_id: u64 }
    _ => [6, tunnel_id as Hex],
}

structure! {
    /// Hashes a packet to a number.
    pub struct Multipath in Action {
        hash_fields: u16,
        basis: u16,
        algorithm: u16,
        /// The number of links less one.
        max_link: u16,
        argument: u32,
        /// Which bits, in bits.
        bits: u16,
        destination: FieldId,
    }
    _ => [hash_fields, basis, 2, algorithm, max_link, argument, 2, bits, destination as Narrow],
}

structure! {
    /// Hashes a packet to one of several ports.
    pub struct HashBundle<'a> in Action {
        algorithm: u16,
        hash_fields: u16,
        basis: u16,
        member_type: FieldId,
        /// Which bits, in bits.
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
    /// Sends a packet out of the port that a field says.
    pub struct OutputReg in Action {
        /// Which bits, in bits.
        bits: u16,
        source: FieldId,
        max_len: PacketLength = PacketLength::NO_BUFFER,
    }
    _ => [bits, source as Narrow, max_len, 6],
}

structure! {
    /// Sends a packet out of the port that a field says.
    pub struct OutputReg2 in Action {
        /// Which bits, in bits.
        bits: u16,
        max_len: PacketLength = PacketLength::NO_BUFFER,
        source: FieldId,
    }
    _ => [bits, max_len, source, fill],
}

structure! {
    /// Gives a flow other timeouts when the connection ends, in seconds.
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
    /// Decrements the time to live; what runs out goes to these controllers.
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
    /// An Ethernet type.
    pub struct NiciraEtherType in Action { eth_type: u16 }
    _ => [eth_type, 4],
}

structure! {
    /// A byte.
    pub struct NiciraSetByte in Action { value: u8 }
    _ => [value, 5],
}

structure! {
    /// 32 bits.
    pub struct NiciraSetWord in Action { value: u32 }
    _ => [2, value],
}

structure! {
    /// Bits of a field, for the stack.
    pub struct StackField in Action {
        offset: u16,
        field: FieldId,
        bit_count: u16,
    }
    _ => [offset, field, bit_count, fill],
}

structure! {
    /// Exports some packets: `probability` of 65 535.
    pub struct Sample in Action {
        probability: u16,
        collector_set_id: u32,
        observation_domain_id: u32,
        observation_point_id: u32,
    }
    _ => [probability, collector_set_id, observation_domain_id, observation_point_id],
}

structure! {
    /// Exports some packets: `probability` of 65 535.
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
    /// Sets a field, or the bits of it that a mask has.
    pub struct RegLoad2<'a> in Action { field: OxmField<'a> }
    _ => [field, fill],
}

structure! {
    /// One dimension of a conjunctive match, counted from 0, of so many.
    pub struct Conjunction in Action {
        clause: u8,
        clauses: u8,
        conjunction_id: u32,
    }
    _ => [clause, clauses, conjunction_id],
}

structure! {
    /// Hands a packet to the connection tracker.
    pub struct ConnectionTracking<'a> in Action {
        flags: ConnectionFlags,
        /// The field that says the zone; none when all of it is 0.
        zone_source: FieldId,
        /// The zone; or which bits of the field, in bits.
        zone: u16,
        /// The table that the tracked packet goes on in; [`TableId::ALL`] for none.
        recirc_table: TableId = TableId::ALL,
        /// The port of the protocol whose connections are related; 0 for none.
        alg: u16,
        actions: Actions<'a>,
    }
    _ => [flags, zone_source as Narrow, zone, recirc_table, 3, alg, actions as Nested],
}

structure! {
    /// Does actions with a copy of the packet.
    pub struct CloneActions<'a> in Action { actions: Actions<'a> }
    _ => [6, actions as Nested],
}

structure! {
    /// Sends the start of a packet out of a port.
    pub struct OutputTrunc in Action {
        port: PortNo,
        max_len: u32,
    }
    _ => [port as Port16, max_len],
}

structure! {
    /// Processes a packet by a group.
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
    /// Removes the outermost header; what is below has this type.
    pub struct Decap in Action { packet_type: u32 }
    _ => [2, packet_type],
}

structure! {
    /// Says in a bit of a field whether a packet is larger.
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
    /// How a packet is sent to a controller.
    pub enum ControllerActionProperty<'a> in Action, "controller property length", padded true, minimum 4 {
        /// How much of it.
        MaxLength(MaxLength) "max_len" = [0 in _],
        /// To which.
        ControllerId(ControllerId) "controller_id" = [1 in _],
        /// Why.
        Reason(super::nicira_message::ReasonProperty) "reason" = [2 in _],
        /// What goes along.
        UserData(super::nicira_message::PropertyBytes<'a>) "userdata" = [3 in _],
        /// Waits for the controller to send it back.
        Pause(PauseProperty) "pause" = [4 in _],
        /// Counts it against a meter.
        MeterId(MeterProperty) "meter_id" = [5 in _],
    }
}

structure! {
    /// How many bytes. Open vSwitch counts two bytes of padding in properties of 16 bits.
    pub struct MaxLength in Action { max_len: PacketLength = PacketLength::NO_BUFFER }
    _ => [max_len, 2],
}

structure! {
    /// Which controller.
    pub struct ControllerId in Action { controller_id: u16 }
    _ => [controller_id, 2],
}

structure! {
    /// Waits for the controller.
    pub struct PauseProperty in Action {}
    _ => [],
}

structure! {
    /// Which meter.
    pub struct MeterProperty in Action { meter_id: MeterId }
    _ => [meter_id],
}
