//! What a structure does not say: whether a message means something, and the error to answer with.

use beehive_of::message::*;
use beehive_of::{Answer, EncodeError, ErrorKind, Version};
use bytes::BytesMut;

use crate::inside::{encoded, strictly};

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
            matches!(refused, Err(EncodeError::Value { field }) if field.contains("twice")),
            "{refused:?}"
        );
        // What somebody else sends is read, for those who want to see it, and means nothing.
        bytes.copy_within(start..start + 8, start + 8);
        let message = strictly(&bytes).unwrap();
        assert_eq!(encoded(&message, version), bytes);
        let error = message.check_meaning(version).unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Duplicate, "goto_table"));
        assert_eq!(error.offset() as usize, start + 8);
        let code = if version >= Version::V1_4 { 9 } else { 1 };
        assert_eq!(error.answer(version), Answer { error_type: 3, code });
    }
    // Of experimenters' there are as many as they like.
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
