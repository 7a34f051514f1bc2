//! A sorted map that is small while it has few entries.
//!
//! A hive may have millions of bees, and nearly every map of a bee has one entry or none. The smallest node of a
//! `BTreeMap` has room for eleven. This map is an exactly sized list until it has more than [`FEW`] entries, and a tree
//! from then on. It is encoded like a `BTreeMap`.

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt::{Debug, Formatter};
use std::marker::PhantomData;
use std::ops::Bound;

/// The largest number of entries in a list.
pub(crate) const FEW: usize = 16;

#[derive(Clone)]
pub(crate) enum FewMap<K, V> {
    /// At most [`FEW`] entries, sorted by key.
    Few(Vec<(K, V)>),
    #[allow(clippy::box_collection)] // three words in each map instead of four
    Many(Box<BTreeMap<K, V>>),
}

use FewMap::{Few, Many};

impl<K, V> Default for FewMap<K, V> {
    fn default() -> Self {
        Few(Vec::new())
    }
}

fn position<K: Borrow<Q>, V, Q: Ord + ?Sized>(entries: &[(K, V)], key: &Q) -> Result<usize, usize> {
    entries.binary_search_by(|(known, _)| known.borrow().cmp(key))
}

impl<K: Ord, V> FewMap<K, V> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Few(entries) => entries.len(),
            Many(entries) => entries.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        match self {
            Few(entries) => entries.get(position(entries, key).ok()?).map(|(_, value)| value),
            Many(entries) => entries.get(key),
        }
    }

    pub(crate) fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        match self {
            Few(entries) => {
                let at = position(entries, key).ok()?;
                entries.get_mut(at).map(|(_, value)| value)
            }
            Many(entries) => entries.get_mut(key),
        }
    }

    /// Sets the value of a key.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        match self {
            Few(entries) => match position(entries, &key) {
                Ok(at) => {
                    if let Some(entry) = entries.get_mut(at) {
                        entry.1 = value
                    }
                }
                Err(at) if entries.len() < FEW => {
                    if entries.len() == entries.capacity() {
                        // most maps never get a second entry, so the first one gets space only for itself
                        entries.reserve_exact(entries.len().max(1).min(FEW - entries.len()))
                    }
                    entries.insert(at, (key, value))
                }
                Err(_) => {
                    let mut many: BTreeMap<K, V> = std::mem::take(entries).into_iter().collect();
                    many.insert(key, value);
                    *self = Many(Box::new(many))
                }
            },
            Many(entries) => {
                entries.insert(key, value);
            }
        }
    }

    /// Returns the value of a key. Inserts a default value if there is none.
    pub(crate) fn get_or_default(&mut self, key: K) -> &mut V
    where
        K: Copy,
        V: Default,
    {
        if self.get(&key).is_none() {
            self.insert(key, V::default())
        }
        match self {
            Few(entries) => {
                let at = position(entries, &key).unwrap_or_else(|at| at);
                &mut entries[at].1
            }
            Many(entries) => entries.entry(key).or_default(),
        }
    }

    pub(crate) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        match self {
            Few(entries) => {
                if let Ok(at) = position(entries, key) {
                    entries.remove(at);
                }
            }
            Many(entries) => {
                entries.remove(key);
                self.shrink()
            }
        }
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        match self {
            Few(entries) => entries.retain_mut(|(key, value)| keep(key, value)),
            Many(entries) => {
                entries.retain(keep);
                self.shrink()
            }
        }
    }

    /// Turns a tree with few entries back into a list. The threshold is half of the limit, so that a map at the limit
    /// does not switch between the two forms with every entry.
    fn shrink(&mut self) {
        if let Many(entries) = self
            && entries.len() <= FEW / 2
        {
            *self = Few(std::mem::take(&mut **entries).into_iter().collect())
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let (few, many) = match self {
            Few(entries) => (Some(entries.iter()), None),
            Many(entries) => (None, Some(entries.iter())),
        };
        few.into_iter().flatten().map(|(key, value)| (key, value)).chain(many.into_iter().flatten())
    }

    /// Returns the entries whose key is at least `key`.
    pub(crate) fn from<Q: Ord + ?Sized>(&self, key: &Q) -> impl Iterator<Item = (&K, &V)>
    where
        K: Borrow<Q>,
    {
        let (few, many) = match self {
            Few(entries) => {
                let at = position(entries, key).unwrap_or_else(|at| at);
                (entries.get(at..), None)
            }
            Many(entries) => (None, Some(entries.range::<Q, _>((Bound::Included(key), Bound::Unbounded)))),
        };
        few.into_iter().flatten().map(|(key, value)| (key, value)).chain(many.into_iter().flatten())
    }

    /// Returns a copy of the first entry whose key is at least `key`.
    pub(crate) fn first_from(&self, key: &K) -> Option<(K, V)>
    where
        K: Copy,
        V: Copy,
    {
        self.from(key).next().map(|(key, value)| (*key, *value))
    }

    /// Returns the last entry whose key is at most `key`.
    pub(crate) fn last_up_to(&self, key: &K) -> Option<(&K, &V)> {
        match self {
            Few(entries) => {
                let end = position(entries, key).map_or_else(|at| at, |at| at + 1);
                entries.get(..end)?.last().map(|(key, value)| (key, value))
            }
            Many(entries) => entries.range(..=key).next_back(),
        }
    }

    pub(crate) fn first(&self) -> Option<(&K, &V)> {
        match self {
            Few(entries) => entries.first().map(|(key, value)| (key, value)),
            Many(entries) => entries.first_key_value(),
        }
    }

    pub(crate) fn last(&self) -> Option<(&K, &V)> {
        match self {
            Few(entries) => entries.last().map(|(key, value)| (key, value)),
            Many(entries) => entries.last_key_value(),
        }
    }
}

impl<K: Ord, V> IntoIterator for FewMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::iter::Chain<
        std::iter::Flatten<std::option::IntoIter<Vec<(K, V)>>>,
        std::iter::Flatten<std::option::IntoIter<BTreeMap<K, V>>>,
    >;

    fn into_iter(self) -> Self::IntoIter {
        let (few, many) = match self {
            Few(entries) => (Some(entries), None),
            Many(entries) => (None, Some(*entries)),
        };
        few.into_iter().flatten().chain(many.into_iter().flatten())
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for FewMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = FewMap::default();
        entries.into_iter().for_each(|(key, value)| map.insert(key, value));
        map
    }
}

impl<K: Ord, V: PartialEq> PartialEq for FewMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        // a list and a tree may have the same entries
        self.iter().eq(other.iter())
    }
}

impl<K: Ord, V: Eq> Eq for FewMap<K, V> {}

impl<K: Ord + Debug, V: Debug> Debug for FewMap<K, V> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Ord + Serialize, V: Serialize> Serialize for FewMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        self.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
        map.end()
    }
}

impl<'de, K: Ord + Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de> for FewMap<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<K, V>(PhantomData<(K, V)>);

        impl<'de, K: Ord + Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for Entries<K, V> {
            type Value = FewMap<K, V>;

            fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<FewMap<K, V>, A::Error> {
                let mut map = FewMap::default();
                while let Some((key, value)) = entries.next_entry()? {
                    map.insert(key, value)
                }
                Ok(map)
            }
        }

        deserializer.deserialize_map(Entries(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{decode_many, encode_many};
    use proptest::prelude::*;

    proptest! {
        /// The map behaves like a `BTreeMap` in any sequence of operations, with any number of entries.
        #[test]
        fn it_is_a_sorted_map(steps in prop::collection::vec((0..6u8, 0..40u8, any::<u8>()), 0..120)) {
            let (mut map, mut model) = (FewMap::<u8, u8>::default(), BTreeMap::new());
            for (step, key, value) in steps {
                match step {
                    0..=2 => {
                        map.insert(key, value);
                        model.insert(key, value);
                    }
                    3 => {
                        map.remove(&key);
                        model.remove(&key);
                    }
                    4 => {
                        *map.get_or_default(key) ^= value;
                        *model.entry(key).or_default() ^= value;
                    }
                    _ => {
                        map.retain(|known, _| known % 8 != key % 8);
                        model.retain(|known, _| known % 8 != key % 8);
                    }
                }

                prop_assert!(map.iter().eq(model.iter()));
                prop_assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
                prop_assert_eq!((map.first(), map.last()), (model.first_key_value(), model.last_key_value()));
                prop_assert_eq!(map.get(&key), model.get(&key));
                prop_assert_eq!(map.get_mut(&key), model.get_mut(&key));
                prop_assert!(map.from(&key).eq(model.range(key..)));
                prop_assert_eq!(map.first_from(&key), model.range(key..).next().map(|(key, value)| (*key, *value)));
                prop_assert_eq!(map.last_up_to(&key), model.range(..=key).next_back());
                prop_assert!(map.clone().into_iter().eq(model.clone()));

                prop_assert_eq!(encode_many(&map), encode_many(&model));
                let decoded: FewMap<u8, u8> = decode_many("a map", &encode_many(&map)).unwrap();
                prop_assert_eq!(&decoded, &map);
                prop_assert_eq!(matches!(decoded, Few(_)), model.len() <= FEW);
            }
        }
    }

    #[test]
    fn many_entries_become_a_tree_and_few_a_list_again() {
        let mut map: FewMap<u32, u32> = (0..100).map(|key| (key, key)).collect();
        assert!(matches!(map, Many(_)));
        (0..100).for_each(|key| map.remove(&key));
        assert!(matches!(map, Few(_)) && map.is_empty());
        assert_eq!(size_of::<FewMap<u32, u32>>(), size_of::<Vec<u32>>());
    }
}
