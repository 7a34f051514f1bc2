//! The bytes of every kind of value are those that bincode writes, and are decoded as the same value.

use beehive_protocol::codec::{decode, decode_many, encode, encode_many, encodes_as, try_encode};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

type Signed = (i8, i16, i32, i64, i128);
type Unsigned = (u8, u16, u32, u64, u128, usize);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Unit;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Byte(u8);

/// One value of each kind that serde knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Kind {
    Nothing,
    Units((), Unit),
    Signed(Signed),
    Unsigned { of: Unsigned, flag: bool },
    Floats(f32, f64),
    Text(char, String),
    Maybe(Option<Box<Kind>>),
    Array([u8; 5], [u32; 3]),
    Bytes(Vec<u8>),
    SignedBytes(Vec<i8>),
    WrappedBytes(Vec<Byte>),
    Words(Vec<u16>),
    Texts(Vec<String>),
    Set(BTreeSet<u8>),
    Map(BTreeMap<i64, Vec<u8>>),
    Nested(Vec<Kind>),
}

fn kinds() -> impl Strategy<Value = Kind> {
    // finite floats, because no other equals itself
    let floats = (any::<i32>(), any::<i64>()).prop_map(|(a, b)| Kind::Floats(a as f32, b as f64));
    let simple = prop_oneof![
        Just(Kind::Nothing),
        Just(Kind::Units((), Unit)),
        any::<Signed>().prop_map(Kind::Signed),
        // small integers too: most of `any` are large
        (-300i16..300).prop_map(|small| Kind::Signed((
            small as i8,
            small,
            small.into(),
            small.into(),
            small.into()
        ))),
        (any::<Unsigned>(), any::<bool>()).prop_map(|(of, flag)| Kind::Unsigned { of, flag }),
        (0u16..300, any::<bool>()).prop_map(|(small, flag)| Kind::Unsigned {
            of: (small as u8, small, small.into(), small.into(), small.into(), small.into()),
            flag
        }),
        floats,
        any::<(char, String)>().prop_map(|(letter, text)| Kind::Text(letter, text)),
        any::<([u8; 5], [u32; 3])>().prop_map(|(bytes, words)| Kind::Array(bytes, words)),
        vec(any::<u8>(), 0..200).prop_map(Kind::Bytes),
        vec(any::<i8>(), 0..200).prop_map(Kind::SignedBytes),
        vec(any::<u8>().prop_map(Byte), 0..200).prop_map(Kind::WrappedBytes),
        vec(any::<u16>(), 0..200).prop_map(Kind::Words),
        vec(any::<String>(), 0..5).prop_map(Kind::Texts),
        btree_set(any::<u8>(), 0..200).prop_map(Kind::Set),
        btree_map(any::<i64>(), vec(any::<u8>(), 0..100), 0..10).prop_map(Kind::Map),
    ];
    simple.prop_recursive(3, 20, 5, |inner| {
        prop_oneof![
            proptest::option::of(inner.clone()).prop_map(|kind| Kind::Maybe(kind.map(Box::new))),
            vec(inner, 0..5).prop_map(Kind::Nested),
        ]
    })
}

fn of_bincode<T: Serialize>(value: &T) -> [Vec<u8>; 2] {
    let standard = bincode::config::standard();
    let fixed = bincode::serde::encode_to_vec(value, standard.with_fixed_int_encoding());
    [fixed, bincode::serde::encode_to_vec(value, standard)].map(Result::unwrap)
}

fn check<T: Serialize>(value: &T) -> [Vec<u8>; 2] {
    let both = [encode(value), encode_many(value)];
    assert_eq!(both, of_bincode(value));
    let [fixed, _] = &both;
    assert!(encodes_as(value, fixed));
    assert!(
        !encodes_as(value, &[fixed.as_slice(), &[0]].concat()),
        "a value has not more bytes than its own"
    );
    both
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_value_has_the_bytes_of_bincode(kind in kinds(), other in kinds()) {
        let [fixed, variable] = check(&kind);
        prop_assert_eq!(decode::<Kind>("a kind", &fixed), Ok(kind.clone()));
        prop_assert_eq!(decode_many::<Kind>("a kind", &variable), Ok(kind.clone()));
        prop_assert_eq!(encodes_as(&other, &fixed), encode(&other) == fixed);
        prop_assert_eq!(try_encode(&kind, fixed.len()), Ok(fixed.clone()));
        prop_assert!(try_encode(&kind, fixed.len() - 1).is_err(), "every byte counts");
    }
}

/// An element that is a byte or something else, whatever its value says.
struct Mixed(u16);

impl Serialize for Mixed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match u8::try_from(self.0) {
            Ok(byte) => serializer.serialize_u8(byte),
            Err(_) => serializer.serialize_u16(self.0),
        }
    }
}

#[test]
fn a_sequence_of_bytes_and_other_elements_keeps_its_order() {
    let bytes = 0..100;
    for others in [300..300, 300..301, 300..400] {
        let before_or_after = [bytes.clone().chain(others.clone()), others.chain(bytes.clone())];
        for elements in before_or_after {
            check(&elements.map(Mixed).collect::<Vec<_>>());
        }
    }
    check(&[Mixed(1), Mixed(300), Mixed(2), Mixed(301)].as_slice());
}

/// A sequence that does not know how long it is.
struct Unknown;

impl Serialize for Unknown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((0..9u8).filter(|byte| byte % 2 == 0))
    }
}

#[test]
fn a_sequence_of_unknown_length_is_refused() {
    let error = try_encode(&Unknown, 100).unwrap_err();
    assert_eq!(error, "the length of a sequence or map must be known before its elements");
}
