//! A set of lanes that is empty for nearly every bee, and takes one word while it is empty.

use crate::LaneId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeSet, btree_set};
use std::ops::Deref;

/// A set of lanes. It reads like a `BTreeSet`, and is encoded like one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneSet {
    /// `None` if the set is empty.
    #[allow(clippy::box_collection)] // one word in each bee instead of three
    lanes: Option<Box<BTreeSet<LaneId>>>,
}

impl Deref for LaneSet {
    type Target = BTreeSet<LaneId>;

    fn deref(&self) -> &BTreeSet<LaneId> {
        static EMPTY: BTreeSet<LaneId> = BTreeSet::new();
        self.lanes.as_deref().unwrap_or(&EMPTY)
    }
}

impl From<BTreeSet<LaneId>> for LaneSet {
    fn from(lanes: BTreeSet<LaneId>) -> LaneSet {
        LaneSet { lanes: (!lanes.is_empty()).then(|| Box::new(lanes)) }
    }
}

impl FromIterator<LaneId> for LaneSet {
    fn from_iter<I: IntoIterator<Item = LaneId>>(lanes: I) -> LaneSet {
        LaneSet::from(BTreeSet::from_iter(lanes))
    }
}

impl IntoIterator for LaneSet {
    type Item = LaneId;
    type IntoIter = btree_set::IntoIter<LaneId>;

    fn into_iter(self) -> Self::IntoIter {
        self.lanes.map(|lanes| *lanes).unwrap_or_default().into_iter()
    }
}

impl Serialize for LaneSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LaneSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LaneSet, D::Error> {
        BTreeSet::deserialize(deserializer).map(LaneSet::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{decode_many, encode_many};

    #[test]
    fn an_empty_set_takes_one_word_and_all_sets_are_encoded_as_before() {
        assert_eq!(size_of::<LaneSet>(), size_of::<usize>());
        for lanes in [vec![], vec![LaneId(1)], vec![LaneId(3), LaneId(2)]] {
            let (set, model): (LaneSet, BTreeSet<LaneId>) =
                (lanes.iter().copied().collect(), lanes.into_iter().collect());
            assert_eq!(*set, model);
            assert_eq!(encode_many(&set), encode_many(&model));
            assert_eq!(decode_many::<LaneSet>("a set", &encode_many(&model)), Ok(set.clone()));
            assert!(set.clone().into_iter().eq(model));
            assert_eq!(set.lanes.is_none(), set.is_empty());
        }
    }
}
