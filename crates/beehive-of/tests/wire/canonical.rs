//! Checks that equivalent flows have the same canonical form, and different flows have different forms.

use std::collections::HashSet;

use beehive_of::message::*;
use beehive_of::oxm::{FieldId, OxmField, named_field};
use beehive_of::text::Flow;
use beehive_of::{PortNo, Version};
use proptest::prelude::*;

use crate::strategies::config;

/// Returns the canonical form of the actions of a flow, which is given as text, in a version.
fn told(text: &str, version: Version) -> Canonical {
    let flow = Flow::parse(text, version).unwrap_or_else(|error| panic!("{version} {text}: {error}"));
    let (actions, instructions) = match flow.message() {
        Message::FlowMod(flow) => (flow.actions, flow.instructions),
        Message::Experimenter(Extended::Nicira(NiciraMessage::FlowMod(flow))) => {
            (flow.actions, flow.instructions)
        }
        other => panic!("no flow-mod: {other:?}"),
    };

    Canonical::of_instructions(&actions, &instructions, version).unwrap()
}

fn of(actions: &[Action<'_>], version: Version) -> Canonical {
    Canonical::of_actions(&actions.into(), version).unwrap()
}

fn instructed(instructions: &[Instruction<'_>], version: Version) -> Canonical {
    Canonical::of_instructions(&Actions::EMPTY, &instructions.into(), version).unwrap()
}

fn applied<'a>(actions: &'a [Action<'a>]) -> Instruction<'a> {
    Instruction::ApplyActions(ActionList { actions: actions.into() })
}

fn written(actions: &[Action<'_>]) -> Canonical {
    instructed(&[Instruction::WriteActions(ActionList { actions: actions.into() })], Version::V1_5)
}

fn nicira(action: NiciraAction<'_>) -> Action<'_> {
    Action::Experimenter(Extended::Nicira(action))
}

fn out(port: u32) -> Action<'static> {
    Action::Output(Output { port: PortNo(port), ..Default::default() })
}

fn queue(queue_id: u32) -> Action<'static> {
    Action::SetQueue(SetQueue { queue_id: QueueId(queue_id) })
}

fn pop_queue() -> Action<'static> {
    nicira(NiciraAction::PopQueue(NiciraNothing {}))
}

fn enqueue(port: u32, queue_id: u32) -> Action<'static> {
    Action::Enqueue(Enqueue { port: PortNo(port), queue_id: QueueId(queue_id) })
}

fn id(name: &str) -> FieldId {
    FieldId::of(named_field(name).unwrap())
}

fn load(name: &str, offset: u16, count: u16, value: u64) -> Action<'static> {
    nicira(NiciraAction::RegLoad(RegLoad { bits: offset << 6 | (count - 1), destination: id(name), value }))
}

fn set<'a>(name: &str, value: &'a [u8], mask: Option<&'a [u8]>) -> Action<'a> {
    let id = id(name);
    let (class, number, experimenter) = (id.class, id.number, id.experimenter);
    Action::SetField(SetField { field: OxmField { class, number, experimenter, value, mask } })
}

const V1_0: Version = Version::V1_0;
const V1_3: Version = Version::V1_3;
const V1_5: Version = Version::V1_5;

#[test]
fn what_versions_and_notations_say_otherwise_has_one_form() {
    for ((one, first), (other, second)) in [
        (("actions=dec_ttl,2", V1_0), ("actions=dec_ttl,2", V1_3)),
        (("actions=dec_ttl(0),2", V1_0), ("actions=dec_ttl,2", V1_5)),
        (("actions=move:reg0[]->reg1[],2", V1_3), ("actions=move:reg0[]->reg1[],2", V1_5)),
        (
            ("actions=move:NXM_NX_REG0[0..15]->NXM_NX_REG2[16..31]", V1_0),
            ("actions=move:xreg0[32..47]->xxreg0[48..63]", V1_5),
        ),
        (("actions=load:5->reg0[],2", V1_0), ("actions=set_field:5->reg0,2", V1_3)),
        (("actions=load:5->reg0[4..7],2", V1_0), ("actions=set_field:0x50/0xf0->reg0,2", V1_5)),
        (("tcp actions=load:80->NXM_OF_TCP_DST[]", V1_0), ("tcp actions=set_field:80->tcp_dst", V1_3)),
        (("actions=load:0x100000002->xreg1[]", V1_0), ("actions=set_field:2->reg3,set_field:1->reg2", V1_5)),
        (("actions=set_field:1->xxreg0", V1_3), ("actions=set_field:0->xreg0,set_field:1->xreg1", V1_5)),
        (
            ("actions=set_field:1->reg0,set_field:2->reg1,2", V1_3),
            ("actions=load:2->reg1[],load:1->reg0[],2", V1_0),
        ),
        (
            ("actions=load:1->reg0[0..7],load:2->reg0[8..15]", V1_0),
            ("actions=set_field:0x201/0xffff->reg0", V1_5),
        ),
        (("actions=resubmit:1", V1_0), ("actions=resubmit(1,255)", V1_5)),
        (("actions=resubmit:1", V1_3), ("actions=resubmit(1)", V1_3)),
        (("actions=meter:3,2", V1_3), ("actions=meter:3,2", V1_5)),
        (("actions=enqueue:1:7,3", V1_0), ("actions=enqueue:1:7,3", V1_3)),
        (("actions=set_tunnel:7,2", V1_0), ("actions=set_field:7->tun_id,2", V1_5)),
        (
            ("actions=push_mpls:0x8847,set_mpls_label(7),dec_mpls_ttl", V1_0),
            ("actions=push_mpls:0x8847,set_field:7->mpls_label,dec_mpls_ttl", V1_3),
        ),
        (("ip actions=mod_nw_ttl:7,2", V1_3), ("ip actions=load:7->nw_ttl[],2", V1_0)),
        (("actions=write_metadata:7/0xff", V1_0), ("actions=write_metadata:0x107/0xff", V1_3)),
        (
            ("actions=ct(commit,exec(load:1->ct_mark[])),2", V1_0),
            ("actions=ct(commit,exec(set_field:1->ct_mark)),2", V1_5),
        ),
        (("actions=clone(dec_ttl,2)", V1_0), ("actions=clone(dec_ttl,2)", V1_5)),
        (("actions=group:9", V1_0), ("actions=group:9", V1_3)),
        (("actions=output:reg0[0..15]", V1_0), ("actions=output:reg0[0..15]", V1_5)),
    ] {
        assert_eq!(told(one, first), told(other, second), "{first} {one}; {second} {other}");
    }
}

#[test]
fn bits_of_a_wide_register_are_those_of_its_part_in_every_action() {
    for (wide, part) in [("xreg0[0..15]", "reg1[0..15]"), ("xxreg1[48..63]", "reg6[16..31]")] {
        for action in [
            "output:#",
            "push:#",
            "pop:#",
            "multipath(eth_src,0,modulo_n,4,0,#)",
            "bundle_load(eth_src,0,hrw,ofport,#,members:1)",
            "ct(zone=#)",
            "learn(table=1,#=5)",
            "learn(table=1,load:5->#)",
            "learn(table=1,load:#->reg8[0..15])",
            "learn(table=1,output:#)",
        ] {
            let text = |bits: &str| format!("actions={}", action.replace('#', bits));
            assert_eq!(told(&text(wide), V1_3), told(&text(part), V1_3), "{action} {wide}");
        }
    }

    for (one, other) in [
        ("check_pkt_larger(9)->xreg0[33]", "check_pkt_larger(9)->reg0[1]"),
        ("learn(table=1,result_dst=xxreg0[33])", "learn(table=1,result_dst=reg2[1])"),
        ("move:xxreg0[64..127]->xxreg1[0..63]", "move:xreg0[]->xreg3[]"),
    ] {
        let text = |action| format!("actions={action}");
        assert_eq!(told(&text(one), V1_3), told(&text(other), V1_3), "{one} {other}");
    }

    assert_ne!(told("actions=output:xreg0[16..47]", V1_3), told("actions=output:reg0[0..15]", V1_3));
}

#[test]
fn the_newer_notation_that_says_no_more_has_the_form_of_the_older() {
    let id = ControllerActionProperty::ControllerId(ControllerId { controller_id: 5 });
    let max_len = PacketLength(9);
    let length = ControllerActionProperty::MaxLength(MaxLength { max_len });
    let newer = |properties: &[ControllerActionProperty<'_>]| {
        let properties = beehive_of::schema::List::new(properties);
        of(&[nicira(NiciraAction::Controller2(Controller2 { properties }))], V1_3)
    };
    let controller = Controller { max_len, controller_id: 5, reason: PacketInReason::ACTION };
    let older = of(&[nicira(NiciraAction::Controller(controller))], V1_3);
    assert_eq!(older, newer(&[id, length]));
    assert_eq!(older, newer(&[length, id]));
    assert_ne!(older, newer(&[length]));
    assert_ne!(older, newer(&[length, id, ControllerActionProperty::Pause(PauseProperty {})]));

    let (learn, learn2) = (Learn::default(), Learn2::default());
    let learned = of(&[nicira(NiciraAction::Learn(learn))], V1_3);
    assert_eq!(learned, of(&[nicira(NiciraAction::Learn2(learn2))], V1_3));
    assert_ne!(learned, of(&[nicira(NiciraAction::Learn2(Learn2 { limit: 1, ..learn2 }))], V1_3));
}

/// The match requires a VLAN priority in any tag, and a protocol without an Ethernet type. This is valid in
/// 1.0, but later versions cannot express it.
#[test]
fn a_match_of_1_0_that_later_versions_cannot_say_has_a_form() {
    let digits = "00015e16010203040000000000000000000000007f000880000600000000000000000000007b0000\
        000000000000000000000000000000008000ffffffffffff00000000";
    let mut message = crate::corpus::bytes("010e004800000000");
    message.extend(crate::corpus::bytes(digits));
    message.resize(72, 0);
    let form = |message: &[u8]| {
        let frame = beehive_of::Frame::whole(message).unwrap();
        let Message::FlowMod(flow) = Message::parse(frame).unwrap() else { panic!() };
        Canonical::of_match(&flow.match_fields).unwrap()
    };
    let one = form(&message);
    message[45] ^= 1;
    assert_ne!(one, form(&message));
}

/// The message is Open vSwitch's encoding of `dl_vlan_pcp=3` in 1.0.
#[test]
fn a_priority_of_any_tag_is_one_in_every_version() {
    let mut message = crate::corpus::bytes("010e0048 00000000 002820ff");
    message.resize(72, 0);
    message[28] = 3;
    let frame = beehive_of::Frame::whole(&message).unwrap();
    let Message::FlowMod(flow) = Message::parse(frame).unwrap() else { panic!() };
    let newer = Flow::parse("dl_vlan_pcp=3 actions=drop", V1_3).unwrap();
    let of = |fields| Canonical::of_match(&fields).unwrap();
    assert_eq!(of(flow.match_fields), of(Match::Fields(newer.list())));

    let shown = beehive_of::text::show_fields(&flow.match_fields, V1_0).to_string();
    assert_eq!(shown, "vlan_vid=0x1000/0x1000,vlan_pcp=3");
}

/// There are eight packet registers. Fields of their class with other numbers or lengths are unknown.
#[test]
fn a_packet_register_that_there_is_not_is_no_other_field() {
    let form = |class, number, value: &[u8]| {
        of(
            &[Action::SetField(SetField {
                field: OxmField { class, number, experimenter: 0, value, mask: None },
            })],
            V1_5,
        )
    };
    let mut forms = HashSet::new();
    for number in 0..=255 {
        for value in [&[1; 4][..], &[1; 7], &[1; 8], &[1; 100]] {
            assert!(forms.insert(form(0x8001, number, value)), "{number} {value:?}");
        }
    }

    assert!(forms.insert(form(1, 0, &[1; 4])));
    assert!(forms.insert(form(1, 111, &[1; 100])));
}

#[test]
fn what_does_something_else_has_another_form() {
    let texts = [
        ("actions=2", V1_3),
        ("actions=dec_ttl", V1_3),
        ("actions=dec_ttl(1)", V1_3),
        ("actions=dec_ttl(0,1)", V1_3),
        ("actions=load:5->reg0[]", V1_3),
        ("actions=load:5->reg0[0..15]", V1_3),
        ("actions=load:5->reg1[]", V1_3),
        ("actions=load:5->reg0[],2", V1_3),
        ("actions=2,load:5->reg0[]", V1_3),
        ("actions=load:5->reg0[],2,load:6->reg0[]", V1_3),
        ("actions=load:6->reg0[],2,load:5->reg0[]", V1_3),
        ("actions=move:reg0[]->reg1[]", V1_3),
        ("actions=move:reg0[]->reg1[],load:5->reg0[]", V1_3),
        ("actions=load:5->reg0[],move:reg0[]->reg1[]", V1_3),
        ("actions=move:reg1[]->reg0[]", V1_3),
        ("actions=move:xreg0[16..47]->reg4[0..31]", V1_3),
        ("actions=resubmit(1,255)", V1_3),
        ("actions=resubmit(1,1)", V1_3),
        ("actions=resubmit(,1)", V1_3),
        ("actions=resubmit(1,1,ct)", V1_3),
        ("actions=goto_table:1", V1_3),
        ("actions=meter:3", V1_3),
        ("actions=meter:3,2", V1_3),
        ("actions=set_queue:7,1,3", V1_3),
        ("actions=enqueue:1:7,3", V1_3),
        ("actions=set_queue:7,1,pop_queue,3,set_queue:7", V1_3),
        ("actions=pop_queue,2", V1_3),
        ("actions=controller(max_len=128)", V1_3),
        ("actions=load:0x10->NXM_OF_IN_PORT[0..7]", V1_3),
        ("actions=load:0x10->NXM_OF_IN_PORT[]", V1_3),
        ("actions=write_metadata:7/0xff", V1_3),
        ("actions=write_metadata:7/0xffff", V1_3),
        ("actions=clone(2)", V1_3),
        ("actions=clone(3)", V1_3),
        ("actions=ct(commit)", V1_3),
        ("actions=ct(commit,exec(load:1->ct_mark[]))", V1_3),
        ("actions=ct(commit,exec(load:2->ct_mark[]))", V1_3),
        ("tcp actions=set_field:80->tcp_dst", V1_3),
        ("tcp actions=mod_tp_dst:80", V1_0),
    ];
    let mut forms: HashSet<_> = texts.iter().map(|(text, version)| told(text, *version)).collect();

    // The text syntax has no notation for a meter action that follows other actions.
    assert!(forms.insert(of(&[out(2), Action::Meter(action_meter(3))], V1_5)));
    assert_eq!(forms.len(), texts.len() + 1);
}

#[test]
fn a_queue_counts_where_something_is_done() {
    for (one, other) in [
        (vec![enqueue(1, 7)], vec![queue(7), out(1), pop_queue()]),
        (vec![queue(9), enqueue(1, 7), out(2)], vec![queue(7), out(1), queue(9), out(2)]),
        (vec![queue(7), queue(8), out(1)], vec![queue(8), out(1), queue(8)]),
        (vec![pop_queue(), enqueue(1, 7)], vec![queue(7), out(1), pop_queue()]),
        (vec![queue(7), load("reg0", 0, 32, 1), out(1)], vec![load("reg0", 0, 32, 1), queue(7), out(1)]),
    ] {
        assert_eq!(of(&one, V1_0), of(&other, V1_0), "{one:?} {other:?}");
    }
    for (one, other) in [
        (vec![enqueue(1, 7)], vec![queue(7), out(1)]),
        (vec![queue(9), enqueue(1, 7)], vec![queue(7), out(1), pop_queue()]),
        (vec![out(1)], vec![pop_queue(), out(1)]),
        (vec![out(1)], vec![out(1), queue(1)]),
        (vec![enqueue(1, 7)], vec![enqueue(1, 8)]),
    ] {
        assert_ne!(of(&one, V1_0), of(&other, V1_0), "{one:?} {other:?}");
    }
}

#[test]
fn the_onf_copies_as_1_5_does() {
    let (source, destination) = (id("reg0"), id("xreg1"));
    let onf = OnfCopyField { bit_count: 8, source_offset: 1, destination_offset: 40, source, destination };
    let onf = [Action::Experimenter(Extended::Onf(OnfAction::CopyField(onf)))];
    let of_1_5 =
        CopyField { bit_count: 8, source_offset: 1, destination_offset: 8, source, destination: id("reg2") };
    assert_eq!(of(&onf, V1_3), of(&[Action::CopyField(of_1_5)], V1_5));
}

#[test]
fn instructions_are_one_form_in_any_order_and_no_two_of_a_kind() {
    let meter_before = Instruction::Meter(message_meter(3));
    let apply = [out(2)];
    let metadata = Instruction::WriteMetadata(WriteMetadata { metadata: 7, mask: 0xff });
    let goto = Instruction::GotoTable(GotoTable { table_id: TableId(4) });
    let form = instructed(&[meter_before, applied(&apply), metadata, goto], V1_3);
    assert_eq!(form, instructed(&[goto, metadata, applied(&apply), meter_before], V1_3));

    let seven = [0, 0, 0, 0, 0, 0, 0, 7];
    let bits = [0, 0, 0, 0, 0, 0, 0, 0xff];
    let all = [Action::Meter(action_meter(3)), out(2), set("metadata", &seven, Some(&bits))];
    assert_eq!(form, instructed(&[applied(&all), goto], V1_5));
    assert_eq!(
        instructed(&[goto, applied(&[]), Instruction::WriteActions(ActionList::default())], V1_3),
        instructed(&[goto], V1_3)
    );

    let list = [goto, goto];
    assert!(Canonical::of_instructions(&Actions::EMPTY, &(&list).into(), V1_3).is_err());

    let list = [applied(&apply), applied(&apply)];
    assert!(Canonical::of_instructions(&Actions::EMPTY, &(&list).into(), V1_3).is_err());
}

fn message_meter(id: u32) -> MeterInstruction {
    MeterInstruction { meter_id: MeterId(id) }
}

fn action_meter(id: u32) -> Meter {
    Meter { meter_id: MeterId(id) }
}

#[test]
fn what_is_written_is_a_set() {
    let group = Action::Group(Group { group_id: GroupId(1) });
    let push = Action::PushVlan(EtherType { eth_type: 0x8100 });
    let (one, two) = (set("reg0", &[0, 0, 0, 1], None), set("reg0", &[0, 0, 0, 2], None));
    let vlan = set("vlan_vid", &[0x10, 7], None);
    for (one, other) in [
        (vec![out(2), vlan, push], vec![push, vlan, out(2)]),
        (vec![out(1), push, out(2)], vec![push, out(2)]),
        (vec![queue(1), queue(2), out(2)], vec![out(2), queue(2)]),
        (vec![one, two], vec![two]),
        (vec![out(1), group], vec![group]),
        (vec![group, out(1)], vec![group]),
        (vec![load("reg0", 0, 8, 1), two], vec![two]),
    ] {
        assert_eq!(written(&one), written(&other), "{one:?} {other:?}");
    }

    let copy = CopyField {
        bit_count: 32,
        source_offset: 0,
        destination_offset: 0,
        source: id("reg0"),
        destination: id("reg1"),
    };
    let copy = Action::CopyField(copy);
    for (one, other) in [
        (vec![out(2)], vec![out(1)]),
        (vec![out(2), out(1)], vec![out(2)]),
        (vec![one, two], vec![one]),
        (vec![group], vec![out(1)]),
        (vec![one, copy], vec![copy, one]),
        (vec![load("reg0", 0, 8, 1), load("reg0", 8, 8, 1)], vec![load("reg0", 0, 16, 0x101)]),
        (vec![load("reg0", 0, 8, 1), load("reg0", 8, 8, 1)], vec![load("reg0", 8, 8, 1)]),
    ] {
        assert_ne!(written(&one), written(&other), "{one:?} {other:?}");
    }

    assert_ne!(written(&[out(2)]), instructed(&[applied(&[out(2)])], V1_5));
}

/// Returns the value and the loaded bits of each register after a list of loads.
fn loaded(loads: &[(u8, u16, u16, u64)]) -> [(u32, u32); 4] {
    let mut registers = [(0u32, 0u32); 4];
    for &(register, offset, count, value) in loads {
        let bits = ((1u64 << count) - 1) as u32;
        let (held, known) = &mut registers[usize::from(register)];
        *held = *held & !(bits << offset) | (value as u32 & bits) << offset;
        *known |= bits << offset;
    }
    registers
}

fn some_load() -> impl Strategy<Value = (u8, u16, u16, u64)> {
    (0..4u8, 0..32u16).prop_flat_map(|(register, offset)| {
        (1..=32 - offset)
            .prop_flat_map(move |count| (Just(register), Just(offset), Just(count), 0..1u64 << count))
    })
}

proptest! {
    #![proptest_config(config(192))]

    /// Two lists of loads have the same form if and only if they leave the same values in the registers,
    /// whether the loads address the registers as 32, 64 or 128 bits.
    #[test]
    fn loads_are_what_registers_hold(loads in prop::collection::vec(some_load(), 1..8), other in prop::collection::vec(some_load(), 1..8)) {
        const NAMES: [&str; 4] = ["reg0", "reg1", "reg2", "reg3"];
        let actions = |loads: &[(u8, u16, u16, u64)]| -> Vec<Action<'static>> {
            loads.iter().map(|(register, offset, count, value)| load(NAMES[usize::from(*register)], *offset, *count, *value)).collect()
        };
        let form = of(&actions(&loads), V1_0);
        let held = loaded(&loads);
        let value: Vec<u8> = held.iter().flat_map(|(value, _)| value.to_be_bytes()).collect();
        let mask: Vec<u8> = held.iter().flat_map(|(_, mask)| mask.to_be_bytes()).collect();
        prop_assert_eq!(&form, &of(&[set("xxreg0", &value, Some(&mask))], V1_5));
        let pairs = [set("xreg1", &value[8..], Some(&mask[8..])), set("xreg0", &value[..8], Some(&mask[..8]))];
        prop_assert_eq!(&form, &of(&pairs, V1_5));
        prop_assert_eq!(form == of(&actions(&other), V1_0), held == loaded(&other));
    }
}
