//! Checks that converting a message to a tree and composing the tree to a message again preserves every byte,
//! for fields of any length.

use beehive_of::message::*;
use beehive_of::oxm::{FIELDS, FieldId, OxmField, OxmFields};
use beehive_of::tree::Node;
use beehive_of::{Frame, Version};
use bytes::BytesMut;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::strategies::config;

/// A random field: its identity, its bytes, and whether half of the bytes are a mask.
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

/// Checks the conversion from bytes to a tree and back.
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

/// A length in the key must match the length of the value.
#[test]
fn a_length_that_is_told_is_that_of_the_value() {
    let compose = |entry: &str, value: &str| {
        let record = |entries: Vec<(&str, Node)>| {
            Node::Record(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        };
        let text = |text: &str| Node::Text(text.to_owned());
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

/// Checks that an invalid tree is refused with an error that contains the path and the problem.
#[cfg(feature = "serde")]
mod refused {
    use super::*;

    /// Composes a message of 1.3 from JSON fields. Returns the bytes or the error message.
    fn told(fields: &str) -> Result<BytesMut, String> {
        told_in("1.3", fields)
    }

    fn told_in(version: &str, fields: &str) -> Result<BytesMut, String> {
        let node: Node = serde_json::from_str(&format!(r#"{{"version":"{version}",{fields}}}"#)).unwrap();
        let mut out = BytesMut::from(&b"before"[..]);
        match Message::compose(&node, &mut out) {
            Ok(()) => Ok(out.split_off(6)),
            Err(error) => {
                assert_eq!(out, b"before"[..], "{error}");
                Err(error.to_string())
            }
        }
    }

    #[test]
    fn a_name_that_nothing_has_is_refused_with_the_one_that_is_like_it() {
        let flow = |rest: &str| told(&format!(r#""type":"flow_mod",{rest}"#)).unwrap_err();
        let like = |path: &str, name: &str| format!("unknown key `{path}` (did you mean `{name}`?)");
        assert_eq!(flow(r#""matches":{"in_port":1}"#), like("matches", "match"));
        assert_eq!(flow(r#""match":{"in_prot":1}"#), like("match.in_prot", "in_port"));
        assert_eq!(flow(r#""match":{"in_port":1,"tcp_dts":1}"#), like("match.tcp_dts", "tcp_dst"));

        let apply = |action: &str| {
            flow(&format!(
                r#""instructions":[{{"type":"apply_actions","actions":[{{"type":"output","port":1}},{action}]}}]"#
            ))
        };
        let action = |rest: &str| format!("instructions[0].actions[1].{rest}");
        assert_eq!(apply(r#"{"type":"output","prt":2}"#), like(&action("prt"), "port"));
        assert_eq!(apply(r#"{"tpye":"output","port":2}"#), like(&action("tpye"), "type"));
        assert_eq!(apply(r#"{"port":2}"#), format!("missing key `{}`", action("type")));
        assert_eq!(flow(r#""frobnicate":1"#), "unknown key `frobnicate`");
        assert_eq!(told(r#""tpye":"hello""#).unwrap_err(), like("tpye", "type"));
        assert_eq!(told(r#""xid":1"#).unwrap_err(), "missing key `type`");
        for (version, name) in [("1.0", "in_port"), ("1.1", "in_port"), ("1.1", "mpls_label")] {
            let misspelled = name.replace('l', "1").replace('t', "");
            let error =
                told_in(version, &format!(r#""type":"flow_mod","match":{{"{misspelled}":1}}"#)).unwrap_err();
            assert_eq!(error, like(&format!("match.{misspelled}"), name));
        }

        // This key exists in other versions only.
        assert!(flow(r#""importance":1"#).starts_with("unknown key `importance`"));
    }

    #[test]
    fn a_value_that_its_name_does_not_have_is_told_with_its_place() {
        let cannot = |path: &str, value: &str| {
            format!("invalid value `{value}` for `{path}`: misspelled, out of range, or not in this version")
        };

        assert_eq!(told(r#""type":"flow_mdo""#).unwrap_err(), cannot("type", "flow_mdo"));
        assert_eq!(told_in("1.0", r#""type":"group_mod""#).unwrap_err(), cannot("type", "group_mod"));
        assert_eq!(told_in("1.7", r#""type":"features_request""#).unwrap_err(), cannot("version", "1.7"));
        for (fields, path, value) in [
            (r#""priority":65536"#, "priority", "65536"),
            (r#""match":{"tcp_dst":70000}"#, "match.tcp_dst", "70000"),
            (r#""match":{"eth_dst":"02:00"}"#, "match.eth_dst", "02:00"),
            (r#""flags":["send_flow_removed","no_flag"]"#, "flags[1]", "no_flag"),
            (r#""flags":"no_flag""#, "flags", "no_flag"),
            (r#""out_port":"lokal""#, "out_port", "lokal"),
            (r#""match":"in_port=1""#, "match", "in_port=1"),
            (r#""instructions":"drop""#, "instructions", "drop"),
            (r#""instructions":[{"type":"go_to_table"}]"#, "instructions[0].type", "go_to_table"),
        ] {
            assert_eq!(told(&format!(r#""type":"flow_mod",{fields}"#)).unwrap_err(), cannot(path, value));
        }

        let list = told(r#""type":"flow_mod","priority":[1]"#).unwrap_err();
        assert_eq!(list, "`priority` has a value of the wrong type");

        let long = told(&format!(r#""type":"flow_mod","priority":"{}""#, "x".repeat(9999))).unwrap_err();
        assert_eq!(long, cannot("priority", &("x".repeat(40) + "…")));
    }

    #[test]
    fn a_message_inside_has_the_version_of_the_one_around_it() {
        let bundle = |inner: &str| {
            let inner = format!(r#""message":{{{inner}"type":"barrier_request","xid":0}}"#);
            told_in("1.4", &format!(r#""type":"bundle_add_message","bundle_id":1,{inner}"#))
        };
        let usual = bundle("").unwrap();
        assert_eq!(bundle(r#""version":"1.4","#).as_ref(), Ok(&usual));
        assert_eq!(bundle(r#""padded":false,"#).as_ref(), Ok(&usual));
        assert!(
            bundle(r#""version":"1.3","#)
                .unwrap_err()
                .starts_with("invalid value `1.3` for `message.version`")
        );
    }

    #[test]
    fn names_in_capitals_and_one_flag_alone_are_read() {
        let flow = |out_port: &str, flags: &str| {
            told(&format!(
                r#""type":"flow_mod","out_port":{out_port},"flags":{flags},"match":{{"in_port":{out_port}}}"#
            ))
        };
        let usual = flow(r#""local""#, r#"["send_flow_removed"]"#).unwrap();
        assert_eq!(flow(r#""LOCAL""#, r#""SEND_FLOW_REMOVED""#).unwrap(), usual);
        assert_eq!(flow("4294967294", "1").unwrap(), usual);
    }
}
