//! Samples of Open vSwitch's and the ONF's extensions in every version that has them, for round trips,
//! comparison with Open vSwitch, and mutation.

use beehive_of::message::*;
use beehive_of::oxm::{FieldId, OxmField, OxmFields};
use beehive_of::schema::List;
use beehive_of::{PortNo, Version};

use crate::message_samples::Messages;

/// Creates the identity of a field in a Nicira class.
fn field(class: u16, number: u8, length: u8) -> FieldId {
    FieldId { class, number, length, ..FieldId::default() }
}

const REGISTER: FieldId = FieldId { class: 1, number: 0, masked: false, length: 4, experimenter: 0 };
/// All 32 bits of a register, as offset and count.
const WHOLE: u16 = 31;

fn nicira(action: NiciraAction<'_>) -> Action<'_> {
    Action::Experimenter(Extended::Nicira(action))
}

/// Adds every extension that exists in the version.
pub(crate) fn extensions(messages: &mut Messages) {
    actions(messages);
    lists(messages);
    controller_messages(messages);
    crate::extended_statistics::all(messages);
    unknown(messages);
}

fn done(messages: &mut Messages, action: NiciraAction<'_>, words: &'static str) {
    let kind = messages.version.wire();

    // Open vSwitch does not check the prerequisites of actions in a packet-out, so it can print all of them.
    let list = [nicira(action)];
    let packet = PacketOut {
        in_port: if kind == 1 { PortNo::ANY } else { PortNo::CONTROLLER },
        match_fields: Match::Any(&FROM_CONTROLLER),
        actions: (&list).into(),
        data: &[0; 60],
        ..Default::default()
    };
    let packet = match messages.version {
        Version::V1_5 => PacketOut { in_port: PortNo::default(), ..packet },
        _ => PacketOut { match_fields: Match::default(), ..packet },
    };
    let expected = ["OFPT_PACKET_OUT", words];
    let expected = if words.is_empty() { &expected[..0] } else { &expected[..] };
    messages.add(Message::PacketOut(packet), expected);
}

const FROM_CONTROLLER: beehive_of::any::Match =
    beehive_of::any::Match { in_port: Some(PortNo::CONTROLLER), ..beehive_of::any::Match::ANY };

fn actions(messages: &mut Messages) {
    use NiciraAction as A;
    let mac = |number| field(0, number, 6);
    let output = [Action::Output(Output { port: PortNo(2), ..Default::default() })];
    let range = Nat {
        flags: NatFlags::SRC.with(NatFlags::PROTO_RANDOM),
        ipv4_min: Some([10, 0, 0, 1].into()),
        ipv4_max: Some([10, 0, 0, 9].into()),
        port_min: Some(100),
        port_max: Some(200),
        ..Nat::default()
    };
    let six = Nat {
        flags: NatFlags::DST,
        ipv6_min: Some("fe80::1".parse().unwrap()),
        ipv6_max: Some("fe80::9".parse().unwrap()),
        ..Nat::default()
    };
    let translate = [nicira(A::Nat(range))];
    let translate6 = [nicira(A::Nat(six))];
    let specs = [
        LearnSpec {
            bit_count: 12,
            source: LearnSource::Field(field(0, 4, 2), 0),
            destination: LearnDestination::Match(field(0, 4, 2), 0),
        },
        LearnSpec {
            bit_count: 48,
            source: LearnSource::Field(mac(2), 0),
            destination: LearnDestination::Match(mac(1), 0),
        },
        LearnSpec {
            bit_count: 32,
            source: LearnSource::Value(&[0, 0, 0, 7]),
            destination: LearnDestination::Load(REGISTER, 0),
        },
        LearnSpec {
            bit_count: 16,
            source: LearnSource::Field(field(0, 0, 2), 0),
            destination: LearnDestination::Output,
        },
    ];
    let learn = Learn { idle_timeout: 10, table_id: TableId(1), specs: (&specs).into(), ..Learn::default() };
    let learn2 = Learn2 {
        table_id: TableId(1),
        flags: LearnFlags::WRITE_RESULT,
        limit: 5,
        result_offset: 3,
        rest: LearnRest { result: Some(REGISTER), specs: (&specs).into() },
        ..Learn2::default()
    };
    let bundle =
        HashBundle { member_type: field(0, 0, 2), members: List::new(&[4, 8]), ..HashBundle::default() };
    let properties = [
        ControllerActionProperty::MaxLength(MaxLength { max_len: PacketLength(1234) }),
        ControllerActionProperty::ControllerId(ControllerId { controller_id: 5678 }),
        ControllerActionProperty::UserData(PropertyBytes { data: &[1, 2, 3, 4, 5] }),
        ControllerActionProperty::Pause(PauseProperty {}),
    ];
    let sample = Sample2 {
        probability: 12_345,
        collector_set_id: 23_456,
        observation_domain_id: 34_567,
        observation_point_id: 45_678,
        sampling_port: PortNo(5),
        direction: SampleDirection::DEFAULT,
    };
    let stack = StackField { offset: 4, field: field(1, 2, 4), bit_count: 6 };
    let multipath = Multipath { basis: 50, bits: WHOLE, destination: REGISTER, ..Multipath::default() };
    let tracked = ConnectionTracking {
        flags: ConnectionFlags::COMMIT,
        zone: 5,
        recirc_table: TableId(1),
        actions: (&translate).into(),
        ..ConnectionTracking::default()
    };
    let all: Vec<(NiciraAction<'_>, &'static str)> = vec![
        (A::Resubmit(Resubmit { in_port: PortNo(3) }), "resubmit:3"),
        (A::ResubmitTable(ResubmitTable { in_port: PortNo(2), table_id: TableId(5) }), "resubmit(2,5)"),
        (A::ResubmitTableCt(ResubmitTable { in_port: PortNo(2), table_id: TableId(5) }), "resubmit(2,5,ct)"),
        (A::SetTunnel(SetTunnel { tunnel_id: 7 }), "set_tunnel:0x7"),
        (A::SetTunnel64(SetTunnel64 { tunnel_id: 7 << 32 }), "set_tunnel64:0x700000000"),
        (A::PopQueue(NiciraNothing {}), "pop_queue"),
        (A::Note(Note { note: &[1, 2, 3, 4, 5, 6] }), "note:01.02.03.04.05.06"),
        (A::Multipath(multipath), "multipath(eth_src,50,modulo_n,1,0,NXM_NX_REG0[])"),
        (A::Bundle(bundle), "bundle(eth_src,0,active_backup,ofport,"),
        (
            A::BundleLoad(HashBundle { bits: WHOLE, destination: REGISTER, ..bundle }),
            "bundle_load(eth_src,0,active_backup,ofport,NXM_NX_REG0[]",
        ),
        (
            A::OutputReg(OutputReg { bits: WHOLE, source: REGISTER, ..Default::default() }),
            "output:NXM_NX_REG0[]",
        ),
        (
            A::OutputReg2(OutputReg2 { bits: WHOLE, source: REGISTER, ..Default::default() }),
            "output:NXM_NX_REG0[]",
        ),
        (
            A::Learn(learn),
            "learn(table=1,idle_timeout=10,NXM_OF_VLAN_TCI[0..11],NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],load:0x7->NXM_NX_REG0[],output:NXM_OF_IN_PORT[])",
        ),
        (A::Learn2(learn2), "learn(table=1,limit=5,result_dst=NXM_NX_REG0[3],NXM_OF_VLAN_TCI[0..11]"),
        (A::Exit(NiciraNothing {}), "exit"),
        (
            A::FinTimeout(FinTimeout { fin_idle_timeout: 10, fin_hard_timeout: 20 }),
            "fin_timeout(idle_timeout=10,hard_timeout=20)",
        ),
        (
            A::Controller(Controller {
                max_len: PacketLength(1234),
                controller_id: 5678,
                reason: PacketInReason::INVALID_TTL,
            }),
            "controller(reason=invalid_ttl,max_len=1234,id=5678)",
        ),
        (
            A::Controller2(Controller2 { properties: (&properties).into() }),
            "controller(max_len=1234,id=5678,userdata=01.02.03.04.05,pause)",
        ),
        (A::DecTtlCntIds(DecTtlCntIds { controllers: List::new(&[1, 2, 3]) }), "dec_ttl(1,2,3)"),
        // Open vSwitch treats this action as an instruction, so it accepts it in flows only, as below.
        (A::WriteMetadata(NiciraWriteMetadata { metadata: 0x12, mask: 0xff }), ""),
        (A::StackPush(stack), "push:NXM_NX_REG2[4..9]"),
        (A::StackPop(stack), "pop:NXM_NX_REG2[4..9]"),
        (
            A::Sample(Sample {
                probability: 12_345,
                collector_set_id: 23_456,
                observation_domain_id: 34_567,
                observation_point_id: 45_678,
            }),
            "sample(probability=12345,collector_set_id=23456,obs_domain_id=34567,obs_point_id=45678)",
        ),
        (
            A::Sample2(sample),
            "sample(probability=12345,collector_set_id=23456,obs_domain_id=34567,obs_point_id=45678,sampling_port=5)",
        ),
        (A::Sample3(Sample2 { direction: SampleDirection::EGRESS, ..sample }), "sampling_port=5,egress)"),
        (A::Conjunction(Conjunction { clause: 0, clauses: 3, conjunction_id: 5 }), "conjunction(5,1/3)"),
        (
            A::ConnectionTracking(tracked),
            "ct(commit,table=1,zone=5,nat(src=10.0.0.1-10.0.0.9:100-200,random))",
        ),
        (
            A::ConnectionTracking(ConnectionTracking { actions: (&translate6).into(), ..tracked }),
            "nat(dst=fe80::1-fe80::9)",
        ),
        (
            A::ConnectionTracking(ConnectionTracking {
                zone_source: REGISTER,
                zone: 15,
                alg: 21,
                actions: List::EMPTY,
                ..tracked
            }),
            "ct(commit,table=1,zone=NXM_NX_REG0[0..15],alg=ftp)",
        ),
        (A::CtClear(NiciraNothing {}), "ct_clear"),
        (A::OutputTrunc(OutputTrunc { port: PortNo(2), max_len: 100 }), "output(port=2,max_len=100)"),
        (A::Clone(CloneActions { actions: (&output).into() }), "clone(output:2)"),
        (
            A::CheckPacketLarger(CheckPacketLarger { packet_length: 1000, offset: 0, destination: REGISTER }),
            "check_pkt_larger(1000)->NXM_NX_REG0[0]",
        ),
        // Only mapped tunnel options can be removed, and no option is mapped here.
        (A::DeleteField(DeleteField { field: field(1, 40, 124) }), ""),
    ];
    for (action, words) in all {
        done(messages, action, words);
    }

    if messages.version <= Version::V1_4 {
        let moved = RegMove { bit_count: 48, source: mac(2), destination: mac(1), ..Default::default() };
        done(messages, A::RegMove(moved), "move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[]");
        let loaded = RegLoad { bits: 4 << 6 | 7, destination: REGISTER, value: 5 };
        done(messages, A::RegLoad(loaded), "load:0x5->NXM_NX_REG0[4..11]");
        let set = OxmField { class: 1, ..OxmField::basic(1, &[0, 0, 0, 9]) };
        done(messages, A::RegLoad2(RegLoad2 { field: set }), "set_field:0x9->reg1");
    }
    if messages.version == Version::V1_0 {
        let list = [nicira(A::WriteMetadata(NiciraWriteMetadata { metadata: 0x12, mask: 0xff }))];
        let flow = FlowMod { actions: (&list).into(), ..Default::default() };
        messages.add(Message::FlowMod(flow), &["OFPT_FLOW_MOD", "actions=write_metadata:0x12/0xff"]);
        for (action, words) in [
            (A::SetQueue(NiciraSetQueue { queue_id: QueueId(3) }), "set_queue:3"),
            (A::DecTtl(NiciraNothing {}), "dec_ttl"),
            (A::PushMpls(NiciraEtherType { eth_type: 0x8847 }), "push_mpls:0x8847"),
            (A::PopMpls(NiciraEtherType { eth_type: 0x0800 }), "pop_mpls:0x0800"),
            (A::SetMplsTtl(NiciraSetByte { value: 63 }), "set_mpls_ttl(63)"),
            (A::DecMplsTtl(NiciraNothing {}), "dec_mpls_ttl"),
            (A::SetMplsLabel(NiciraSetWord { value: 10 }), "set_mpls_label(10)"),
            (A::SetMplsTc(NiciraSetByte { value: 4 }), "set_mpls_tc(4)"),
            (A::Group(NiciraGroup { group_id: GroupId(5) }), "group:5"),
        ] {
            done(messages, action, words);
        }
    }

    if messages.version >= Version::V1_3 {
        done(messages, A::Encap(Encap::default()), "encap(ethernet)");
        done(messages, A::Decap(Decap { packet_type: 0xfffe }), "decap()");
        done(messages, A::DecNshTtl(NiciraNothing {}), "dec_nsh_ttl");
    }
}

/// Adds messages with Nicira's fields: in the standard messages from 1.2 on, and in Nicira's messages.
fn lists(messages: &mut Messages) {
    let fields = [
        OxmField { class: 0, ..OxmField::basic(0, &[0, 3]) },
        OxmField { class: 1, ..OxmField::basic(0, &[0, 0, 0, 5]) },
        OxmField { class: 1, mask: Some(&[0, 0, 0xff, 0]), ..OxmField::basic(1, &[0, 0, 7, 0]) },
        OxmField { class: 1, mask: Some(&[0, 0, 0, 0x21]), ..OxmField::basic(105, &[0, 0, 0, 0x21]) },
    ];
    let words = "reg0=0x5,reg1=0x700/0xff00,in_port=3";
    let state = "ct_state=+new+trk";
    let output = [Action::Output(Output { port: PortNo(2), ..Default::default() })];
    let apply = [Instruction::ApplyActions(ActionList { actions: (&output).into() })];
    let mut flow = NiciraFlowMod {
        cookie: 0x12,
        priority: 5,
        idle_timeout: 6,
        match_fields: OxmFields((&fields).into()),
        ..Default::default()
    };

    if messages.version == Version::V1_0 {
        flow.actions = (&output).into();
    } else {
        flow.instructions = (&apply).into();
    }

    messages.add(
        Message::Experimenter(Extended::Nicira(NiciraMessage::FlowMod(flow))),
        &["NXT_FLOW_MOD", "ADD priority=5", words, state, "cookie:0x12 idle:6 actions=output:2"],
    );
    messages.add(
        Message::Experimenter(Extended::Nicira(NiciraMessage::FlowRemoved(NiciraFlowRemoved {
            cookie: 0x12,
            priority: 5,
            table_id_plus_one: 3,
            duration_sec: 1,
            packet_count: 3,
            byte_count: 4,
            match_fields: OxmFields((&fields).into()),
            ..Default::default()
        }))),
        &["NXT_FLOW_REMOVED", words, state, "table_id=2", "pkts3 bytes4"],
    );

    if messages.version >= Version::V1_2 {
        messages.add(
            Message::FlowMod(FlowMod {
                priority: 5,
                match_fields: Match::Fields(OxmFields((&fields).into())),
                instructions: (&apply).into(),
                ..Default::default()
            }),
            &["OFPT_FLOW_MOD", words, state],
        );
        // Experimenter fields: the ONF's TCP flags, and an unknown field.
        let flags = OxmField {
            class: 0xffff,
            experimenter: 0x4f4e_4600,
            mask: Some(&[0, 2]),
            ..OxmField::basic(42, &[0, 2])
        };
        let tcp = [OxmField::basic(5, &[8, 0]), OxmField::basic(10, &[6]), flags];
        messages.add(
            Message::FlowMod(FlowMod {
                match_fields: Match::Fields(OxmFields((&tcp).into())),
                ..Default::default()
            }),
            &["OFPT_FLOW_MOD", "tcp,tcp_flags=+syn"],
        );
        let nobody = [OxmField { class: 0xffff, experimenter: 0xfe_dcba, ..OxmField::basic(99, &[1, 2, 3]) }];
        messages.add(
            Message::FlowMod(FlowMod {
                match_fields: Match::Fields(OxmFields((&nobody).into())),
                ..Default::default()
            }),
            &[],
        );
    }
}

fn controller_messages(messages: &mut Messages) {
    use NiciraMessage as M;
    let asynchronous = NiciraAsyncConfig {
        packet_in_mask: 7,
        packet_in_mask_slave: 4,
        port_status_mask: 7,
        port_status_mask_slave: 3,
        flow_removed_mask: 5,
        flow_removed_mask_slave: 0,
    };
    let maps = [TlvMap { option_class: 0xffff, option_type: 1, option_len: 8, index: 2 }];
    let properties = [AsyncProperty::PacketInMaster(Mask { mask: 2 })];
    let role = NiciraRoleMessage { role: NiciraRole::MASTER };
    let mut all: Vec<(NiciraMessage<'_>, Vec<&'static str>)> = vec![
        (M::RoleRequest(role), vec!["NXT_ROLE_REQUEST", "role=primary"]),
        (M::RoleReply(role), vec!["NXT_ROLE_REPLY", "role=primary"]),
        (M::FlowModTableId(FlowModTableId { set: 1 }), vec!["NXT_FLOW_MOD_TABLE_ID", "enable"]),
        (
            M::SetPacketInFormat(SetPacketInFormat { format: PacketInFormat::NICIRA2 }),
            vec!["NXT_SET_PACKET_IN_FORMAT", "format=nxt_packet_in2"],
        ),
        (M::FlowAge(Empty {}), vec!["NXT_FLOW_AGE"]),
        (
            M::SetAsyncConfig(asynchronous),
            vec!["NXT_SET_ASYNC_CONFIG", "PACKET_IN: no_match action invalid_ttl"],
        ),
        (M::SetControllerId(SetControllerId { controller_id: 123 }), vec!["NXT_SET_CONTROLLER_ID", "id=123"]),
        (
            M::TlvTableMod(TlvTableMod { command: TlvTableCommand::ADD, maps: (&maps).into() }),
            vec!["NXT_TLV_TABLE_MOD", "ADD mapping table", "0xffff", "tun_metadata2"],
        ),
        (M::TlvTableRequest(Empty {}), vec!["NXT_TLV_TABLE_REQUEST"]),
        (
            M::TlvTableReply(TlvTable { max_option_space: 256, max_fields: 64, maps: (&maps).into() }),
            vec!["NXT_TLV_TABLE_REPLY", "max option space=256 max fields=64", "tun_metadata2"],
        ),
        (M::CtFlushZone(CtFlushZone { zone_id: 13 }), vec!["NXT_CT_FLUSH_ZONE", "zone_id=13"]),
    ];
    if messages.version == Version::V1_0 {
        all.push((M::SetFlowFormat(FlowFormat { format: 2 }), vec!["NXT_SET_FLOW_FORMAT", "nxm"]));
    }
    if messages.version <= Version::V1_3 {
        all.push((
            M::SetAsyncConfig2(AsyncProperties { properties: (&properties).into() }),
            vec!["NXT_SET_ASYNC_CONFIG2", "PACKET_IN: action"],
        ));
    }

    for (message, words) in all {
        messages.add(Message::Experimenter(Extended::Nicira(message)), &words);
    }
}

/// Adds unknown extensions at every place, which must be preserved unchanged.
fn unknown(messages: &mut Messages) {
    let experimenter = ExperimenterId(0x00ab_cdef);
    let kind = if messages.version == Version::V1_0 { 0 } else { 0x1234_5678 };
    messages.add(
        Message::Experimenter(Extended::Unknown { experimenter, experimenter_type: kind, body: b"whatever" }),
        &[],
    );
    let body = b"of a type that is not known";
    messages.add(Message::Experimenter(Extended::Nicira(NiciraMessage::Unknown { kind: 999, body })), &[]);
    messages.request(
        RequestBody::Experimenter(Extended::Unknown { experimenter, experimenter_type: kind, body }),
        &[],
    );
    messages.reply(ReplyBody::Experimenter(Extended::Onf(OnfReply::Unknown { kind: 9, body })), &[]);
    let list = [
        nicira(NiciraAction::Unknown { kind: 999, body: &[1; 6] }),
        Action::Experimenter(Extended::Unknown { experimenter, experimenter_type: 0, body: &[2; 8] }),
        Action::Unknown { kind: 999, body: &[3; 4] },
    ];
    let packet = PacketOut { actions: (&list).into(), data: b"a packet", ..Default::default() };
    messages.add(Message::PacketOut(packet), &[]);
}

#[test]
fn actions_nest_only_so_deep() {
    use beehive_of::limits::ACTION_DEPTH_MAX;
    let nested = |depth: usize| {
        let mut bytes = Vec::new();
        for level in 0..depth {
            let length = (16 * (depth - level)) as u16;
            bytes.extend([0xff, 0xff]);
            bytes.extend(length.to_be_bytes());
            bytes.extend([0, 0, 0x23, 0x20, 0, 42, 0, 0, 0, 0, 0, 0]);
        }

        let mut message = vec![4, 13, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfd];
        message.extend((bytes.len() as u16).to_be_bytes());
        message.extend([0; 6]);
        message.extend(bytes);
        let length = (message.len() as u16).to_be_bytes();
        message[2..4].copy_from_slice(&length);
        message
    };
    let check = |depth: usize| {
        let bytes = nested(depth);
        let message = Message::parse(beehive_of::Frame::whole(&bytes).unwrap()).unwrap();
        message.check(Version::V1_3)
    };

    assert_eq!(check(ACTION_DEPTH_MAX.into()), Ok(()));

    let error = check(usize::from(ACTION_DEPTH_MAX) + 1).unwrap_err();
    assert_eq!(error.field(), "depth of nested actions");
    assert!(check(4_000).is_err());
}
