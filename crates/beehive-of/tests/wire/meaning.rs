//! Checks `check_meaning`: semantic errors in well-formed messages, and the answers to them.

use beehive_of::message::*;
use beehive_of::oxm::{FieldId, OxmField, OxmFields, named_field};
use beehive_of::{Answer, EncodeError, Error, ErrorKind, Version};
use bytes::BytesMut;

use crate::embedded::{encoded, strictly};

#[test]
fn there_is_one_instruction_of_a_kind() {
    let goto = |table| Instruction::GotoTable(GotoTable { table_id: TableId(table) });
    let apply = Instruction::ApplyActions(ActionList::default());
    for version in Version::ALL.into_iter().skip(1) {
        let one = [goto(1), apply];
        let flow = |list| Message::FlowMod(FlowMod { instructions: list, ..Default::default() });
        let mut bytes = encoded(&flow((&one).into()), version);
        let start = bytes.len() - 16;
        strictly(&bytes).unwrap().check_meaning(version).unwrap();
        let two = [goto(1), goto(2)];
        assert!(flow((&two).into()).check_meaning(version).is_err());

        let refused = flow((&two).into()).encode_into(version, 7, &mut BytesMut::new());
        assert!(
            matches!(refused, Err(EncodeError::Value { field }) if field.contains("duplicate")),
            "{refused:?}"
        );

        // A message with a duplicate instruction can be parsed and shown, but fails the check of its meaning.
        bytes.copy_within(start..start + 8, start + 8);
        let message = strictly(&bytes).unwrap();
        assert_eq!(encoded(&message, version), bytes);

        let error = message.check_meaning(version).unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Duplicate, "goto_table"));
        assert_eq!(error.offset() as usize, start + 8);

        let code = if version >= Version::V1_4 { 9 } else { 1 };
        assert_eq!(error.answer(version), Answer { error_type: 3, code });
    }

    // Experimenter instructions may be repeated.
    let experimenter = Instruction::Experimenter(Experimenter::default());
    let two = [experimenter, experimenter];
    let flow = Message::FlowMod(FlowMod { instructions: (&two).into(), ..Default::default() });
    strictly(&encoded(&flow, Version::V1_3)).unwrap().check_meaning(Version::V1_3).unwrap();
}

#[test]
fn fields_that_a_version_lacks_are_named_before_a_flow_is_sent() {
    let importance = FlowMod { importance: 5, ..Default::default() };
    let goto = [Instruction::GotoTable(GotoTable::default())];
    let output = [Action::Output(Output::default())];
    for (flow, field, has) in [
        (importance, "importance", Version::V1_4..=Version::V1_5),
        (FlowMod { cookie_mask: 1, ..Default::default() }, "cookie_mask", Version::V1_1..=Version::V1_5),
        (FlowMod { table_id: TableId(1), ..Default::default() }, "table_id", Version::V1_1..=Version::V1_5),
        (FlowMod { out_group: GroupId(1), ..Default::default() }, "out_group", Version::V1_1..=Version::V1_5),
        (
            FlowMod { instructions: (&goto).into(), ..Default::default() },
            "instructions",
            Version::V1_1..=Version::V1_5,
        ),
        (
            FlowMod { actions: (&output).into(), ..Default::default() },
            "actions",
            Version::V1_0..=Version::V1_0,
        ),
    ] {
        for version in Version::ALL {
            let message = Message::FlowMod(flow);
            let checked = message.check_meaning(version);
            let sent = message.encode_into(version, 7, &mut BytesMut::new());
            match has.contains(&version) {
                true => assert_eq!((checked, sent), (Ok(()), Ok(())), "{field} {version}"),
                false => {
                    assert_eq!(checked.unwrap_err().field(), field, "{version}");
                    assert_eq!(sent, Err(EncodeError::Unsupported { version, field }));
                }
            }
        }
    }
}

/// Checks the meaning of a match that has the named fields.
fn meaning(fields: &[(&str, &[u8])]) -> Result<(), Error> {
    let list: Vec<OxmField<'_>> = fields
        .iter()
        .map(|(name, value)| {
            let id = FieldId::of(named_field(name).unwrap());
            OxmField { class: id.class, number: id.number, experimenter: id.experimenter, value, mask: None }
        })
        .collect();
    OxmFields((&list[..]).into()).check_meaning(48)
}

#[test]
fn niciras_fields_depend_on_others_as_the_specifications_do() {
    let (ip, ipv6, arp) =
        (("nxm_eth_type", &[8, 0][..]), ("eth_type", &[0x86, 0xdd][..]), ("nxm_eth_type", &[8, 6][..]));
    let (tcp, icmpv6) = (("nxm_ip_proto", &[6][..]), ("ip_proto", &[58][..]));
    let port = ("nxm_tcp_src", &[0, 80][..]);
    for good in [
        &[ip, tcp, port][..],
        &[("eth_type", &[8, 0]), ("ip_proto", &[6]), port],
        &[ip, tcp, ("tcp_dst", &[0, 80])],
        &[ip, ("nxm_ip_proto", &[17]), ("nxm_udp_dst", &[0, 80])],
        &[arp, ("nxm_arp_op", &[0, 1]), ("nxm_arp_sha", &[0; 6])],
        &[ipv6, icmpv6, ("nxm_icmpv6_type", &[135]), ("nxm_nd_target", &[0; 16]), ("nxm_nd_sll", &[0; 6])],
        &[ip, ("ip_frag", &[1]), ("ip_ttl", &[9]), ("nxm_ip_ecn", &[1])],
        &[("nxm_eth_type", &[0x88, 0x47]), ("mpls_ttl", &[9])],
        &[("nxm_vlan_tci", &[0x10, 7]), ("vlan_pcp", &[1])],
        &[("reg0", &[0; 4]), ("ct_state", &[0; 4])],
    ] {
        assert_eq!(meaning(good), Ok(()), "{good:?}");
    }

    for bad in [
        &[port][..],
        &[ip, port],
        &[ip, ("nxm_ip_proto", &[17]), port],
        &[ip, port, tcp],
        &[("nxm_ip_src", &[0; 4])],
        &[ipv6, ("nxm_ip_src", &[0; 4])],
        &[ip, ("nxm_arp_op", &[0, 1])],
        &[ipv6, icmpv6, ("nxm_icmpv6_type", &[136]), ("nxm_nd_sll", &[0; 6])],
        &[("ip_frag", &[1])],
        &[("mpls_ttl", &[9])],
        &[ip, ("nxm_tcp_flags", &[0, 2])],
        &[("nxm_vlan_tci", &[0, 0]), ("vlan_pcp", &[1])],
    ] {
        let error = meaning(bad).expect_err(&format!("{bad:?}"));
        assert_eq!(error.kind(), ErrorKind::Missing, "{bad:?}");
        assert_eq!(error.answer(Version::V1_3), Answer { error_type: 4, code: 9 });
    }

    let twice = meaning(&[ip, ("eth_type", &[8, 0])]).unwrap_err();
    assert_eq!(twice.answer(Version::V1_3), Answer { error_type: 4, code: 10 });
}

#[test]
fn niciras_flow_mods_mean_something_too() {
    let list = [OxmField { class: 0, number: 9, experimenter: 0, value: &[0, 80], mask: None }];
    let flow = |flow| Message::Experimenter(Extended::Nicira(NiciraMessage::FlowMod(flow)));
    let bytes = encoded(
        &flow(NiciraFlowMod { match_fields: OxmFields((&list).into()), ..Default::default() }),
        Version::V1_0,
    );
    assert_eq!(
        strictly(&bytes).unwrap().check_meaning(Version::V1_0).unwrap_err().kind(),
        ErrorKind::Missing
    );

    let command = NiciraFlowMod { command: FlowModCommand(0x0305), ..Default::default() };
    assert!(flow(command).check_meaning(Version::V1_0).is_err());

    let command = NiciraFlowMod { command: FlowModCommand(0x0304), ..Default::default() };
    assert_eq!(flow(command).check_meaning(Version::V1_0), Ok(()));
}
