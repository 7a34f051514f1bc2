//! A message that is told as a tree and composed of it is the same, byte by byte, however long its fields are.

use beehive_of::message::*;
use beehive_of::oxm::{FIELDS, FieldId, OxmField, OxmFields};
use beehive_of::{Frame, Version};
use bytes::BytesMut;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::strategies::config;

/// A field as it is drawn: which, with which bytes, of which half are a mask.
type Drawn = (FieldId, Vec<u8>, bool);

fn drawn() -> impl Strategy<Value = Drawn> {
    let named = prop::sample::select(FIELDS).prop_map(|known| FieldId::of(&known));
    let nameless =
        (any::<u16>(), 0..0x80u8, any::<u32>()).prop_map(|(class, number, experimenter)| FieldId {
            class,
            number,
            experimenter: if class == 0xffff { experimenter } else { 0 },
            ..FieldId::default()
        });
    let length = prop_oneof![4 => 1..20usize, 1 => 1..251usize];
    (prop_oneof![4 => named, 1 => nameless], length, any::<bool>(), any::<bool>()).prop_flat_map(
        |(id, length, masked, usual)| {
            let usual = usual.then(|| id.known().map(|known| usize::from(known.kind.length()))).flatten();
            let length = match (usual, masked) {
                (Some(usual), false) => usual,
                (Some(usual), true) => 2 * usual,
                (None, false) => length,
                (None, true) => length / 2 * 2 + 2,
            };
            (Just(id), vec(any::<u8>(), length.min(250)), Just(masked))
        },
    )
}

fn field((id, bytes, masked): &Drawn) -> OxmField<'_> {
    let half = bytes.len() / 2;
    let (value, mask) = if *masked { (&bytes[..half], Some(&bytes[half..])) } else { (&bytes[..], None) };
    OxmField { class: id.class, number: id.number, experimenter: id.experimenter, value, mask }
}

/// Goes from bytes to a tree and back.
fn goes_round(message: &Message<'_>, version: Version) -> Result<(), TestCaseError> {
    let mut bytes = BytesMut::new();
    message.encode_into(version, 7, &mut bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let frame = Frame::whole(&bytes).unwrap();
    let message = Message::parse_strict(frame).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let tree = message.tree(frame.header()).unwrap();
    let mut composed = BytesMut::new();
    Message::compose(&tree, &mut composed)
        .map_err(|error| TestCaseError::fail(format!("{error}: {tree}")))?;
    prop_assert_eq!(&composed[..], &bytes[..], "{}", tree);
    Ok(())
}

proptest! {
    #![proptest_config(config(512))]

    #[test]
    fn fields_of_any_length_are_told_and_composed(
        drawn in vec(drawn(), 1..6), version in prop::sample::select(&Version::ALL[2..]),
    ) {
        let fields: Vec<OxmField<'_>> = drawn.iter().map(field).collect();
        let actions: Vec<Action<'_>> = fields
            .iter()
            .flat_map(|field| {
                let load = NiciraAction::RegLoad2(RegLoad2 { field: *field });
                let (field, id) = (*field, field.id());
                let stack = NiciraAction::StackPush(StackField { offset: 1, field: id, bit_count: 3 });
                let nicira = |action| Action::Experimenter(Extended::Nicira(action));
                [Action::SetField(SetField { field }), nicira(load), nicira(stack)]
            })
            .collect();
        let apply = [Instruction::ApplyActions(ActionList { actions: (&actions[..]).into() })];
        let match_fields = OxmFields((&fields[..]).into());
        let flow = FlowMod {
            match_fields: Match::Fields(match_fields),
            instructions: (&apply).into(),
            ..Default::default()
        };
        goes_round(&Message::FlowMod(flow), version)?;
        let flow = NiciraFlowMod { match_fields, instructions: (&apply).into(), ..Default::default() };
        goes_round(&Message::Experimenter(Extended::Nicira(NiciraMessage::FlowMod(flow))), version)?;
    }
}

/// Whose lengths are told say how much there must be.
#[test]
fn a_length_that_is_told_is_that_of_the_value() {
    let compose = |entry: &str, value: &str| {
        let record = |entries: Vec<(&str, beehive_of::tree::Node)>| {
            beehive_of::tree::Node::Record(
                entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            )
        };
        let text = |text: &str| beehive_of::tree::Node::Text(text.to_owned());
        let message = record(vec![
            ("version", text("1.3")),
            ("type", text("flow_mod")),
            ("match", record(vec![(entry, text(value))])),
        ]);
        Message::compose(&message, &mut BytesMut::new())
    };
    assert_eq!(compose("tcp_src:3", "0x010203"), Ok(()));
    assert_eq!(compose("tcp_src:6", "0x010203/0xffffff"), Ok(()));
    for (entry, value) in [
        ("tcp_src:2", "0x010203"),
        ("tcp_src:3", "0x0102"),
        ("tcp_src:3", "0x10203"),
        ("tcp_src:3", "66051"),
        ("tcp_src:6", "0x0102/0xffffffff"),
        ("tcp_src:", "0x010203"),
        ("tcp_src:256", "0x010203"),
        ("unheard_of:3", "0x010203"),
        ("onf_tcp_flags:3", "0x010203"),
    ] {
        assert!(compose(entry, value).is_err(), "{entry} {value}");
    }
}
