//! Counts how often each kind of record changed the state, so that a run shows which kinds it has not tested.

use beehive_protocol::Record;
use serde::de::value::Error as ValueError;
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// For each kind of record, the number of entries, and of those that changed more than the number of the last entry.
    kinds: BTreeMap<&'static str, (u64, u64)>,
    /// The number of records of what a frozen bee has handled without effect.
    pub(crate) consumed_by_frozen: u64,
}

impl Effects {
    pub(crate) fn count(&mut self, record: &Record, has_effect: bool) {
        let (entries, effects) = self.kinds.entry(kind(record)).or_default();
        *entries += 1;
        *effects += u64::from(has_effect)
    }

    /// Returns the number of entries.
    pub(crate) fn entries(&self) -> u64 {
        self.kinds.values().map(|(entries, _)| entries).sum()
    }

    /// Returns the kinds of records that have never had an effect.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let has_effect = |kind: &str| self.kinds.get(kind).is_some_and(|(_, effects)| *effects > 0);
        kinds().iter().copied().filter(|kind| !has_effect(kind)).collect()
    }
}

/// Returns the kind of a record, as [`kinds`] names it.
fn kind(record: &Record) -> &'static str {
    match record {
        Record::Turn(_) => "Turn",
        Record::Admit { .. } => "Admit",
        Record::Expand { .. } => "Expand",
        Record::Fuse { .. } => "Fuse",
        Record::Release { .. } => "Release",
        Record::Retire { .. } => "Retire",
        Record::Settings { .. } => "Settings",
        Record::Shapes(_) => "Shapes",
        Record::Consumed(_) => "Consumed",
        Record::Acked(_) => "Acked",
        Record::Visited(_) => "Visited",
        Record::Freeze { .. } => "Freeze",
        Record::Stage { .. } => "Stage",
        Record::Adopt { .. } => "Adopt",
        Record::Unstage { .. } => "Unstage",
        Record::Drop { .. } => "Drop",
        Record::Thaw { .. } => "Thaw",
        Record::Mark { .. } => "Mark",
        Record::Create { .. } => "Create",
        Record::Split { .. } => "Split",
        Record::Told { .. } => "Told",
        Record::Blank => "Blank",
        Record::Time(_) => "Time",
        Record::Place(_) => "Place",
        // `Record` is not exhaustive for other crates. A new kind is in `kinds()`, so it is missing until a step appends it
        // and this match names it
        other => panic!("a kind of record that the model does not know: {other:?}"),
    }
}

/// Returns the names of all variants of [`Record`], according to its implementation of `Deserialize`.
pub(crate) fn kinds() -> &'static [&'static str] {
    let mut kinds: &[&str] = &[];
    let _ends_before_a_value = Record::deserialize(Variants(&mut kinds));
    assert!(!kinds.is_empty(), "`Record` is not an enumeration");
    kinds
}

/// A deserializer that has no value. It learns the names of the variants that an enumeration expects.
struct Variants<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Variants<'_> {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ValueError> {
        Err(ValueError::custom("not an enumeration"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, ValueError> {
        *self.0 = variants;
        Err(ValueError::custom("there is no value"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
