//! An ordered map whose point access stays fast as it grows; stores a table's rows.
//!
//! A small map is a sorted vector. A large one is a hash table with an ordered set of its keys for iteration. No
//! observable behavior depends on the hash.

use hashbrown::DefaultHashBuilder;
use hashbrown::hash_table::{Entry as Place, HashTable};
use std::borrow::Borrow;
use std::collections::{BTreeSet, btree_set};
use std::hash::{BuildHasher, Hash};
use std::iter::FusedIterator;
use std::ops::{Bound, RangeBounds};

/// Maximum number of entries of a sorted vector.
const FEW: usize = 16;

/// Number of entries at which a hash table becomes a vector again. It is smaller than [`FEW`], so that a map whose size
/// oscillates around one value is not rebuilt each time.
const FEW_AGAIN: usize = FEW / 4;

#[derive(Clone, Debug)]
pub(crate) enum Ordered<K, V> {
    Few(Vec<(K, V)>),
    Many(Box<Many<K, V>>),
}

#[derive(Clone, Debug)]
pub(crate) struct Many<K, V> {
    hasher: DefaultHashBuilder,
    entries: HashTable<(K, V)>,
    order: BTreeSet<K>,
}

impl<K, V> Default for Ordered<K, V> {
    fn default() -> Self {
        Ordered::Few(Vec::new())
    }
}

impl<K: Hash + Ord + Clone, V> Many<K, V> {
    #[inline(always)]
    fn get<Q: Ord + Hash + ?Sized>(&self, key: &Q) -> Option<&(K, V)>
    where
        K: Borrow<Q>,
    {
        self.entries.find(self.hasher.hash_one(key), |(k, _)| k.borrow() == key)
    }
}

impl<K: Hash + Ord + Clone, V> Ordered<K, V> {
    #[inline(always)]
    pub(crate) fn get<Q: Ord + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        match self {
            Ordered::Few(few) => find(few, key).ok().map(|at| &few[at].1),
            Ordered::Many(many) => many.get(key).map(|(_, value)| value),
        }
    }

    #[inline(always)]
    pub(crate) fn get_mut<Q: Ord + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        match self {
            Ordered::Few(few) => find(few, key).ok().map(|at| &mut few[at].1),
            Ordered::Many(many) => {
                let hash = many.hasher.hash_one(key);
                many.entries.find_mut(hash, |(k, _)| k.borrow() == key).map(|(_, value)| value)
            }
        }
    }

    /// Adds an entry that must not exist yet. Returns its value.
    pub(crate) fn add(&mut self, key: K, value: V) -> &mut V {
        if let Ordered::Few(few) = self
            && few.len() >= FEW
        {
            *self = Ordered::Many(Box::new(Many::of(std::mem::take(few))));
        }

        match self {
            Ordered::Few(few) => {
                let at = few.partition_point(|(k, _)| *k < key);
                few.insert(at, (key, value));
                &mut few[at].1
            }
            Ordered::Many(many) => many.add(key, value),
        }
    }

    /// Sets the value of `key`. Returns the previous value.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.get_mut(&key) {
            Some(slot) => Some(std::mem::replace(slot, value)),
            None => {
                self.add(key, value);
                None
            }
        }
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        match self {
            Ordered::Few(few) => find(few, key).ok().map(|at| few.remove(at).1),
            Ordered::Many(many) => {
                let hash = many.hasher.hash_one(key);
                let found = many.entries.find_entry(hash, |(k, _)| k == key).ok()?;
                let (_, value) = found.remove().0;
                many.order.remove(key);
                if many.order.len() <= FEW_AGAIN {
                    *self = Ordered::Few(many.drain())
                }
                Some(value)
            }
        }
    }

    pub(crate) fn range<Q: Ord + ?Sized>(&self, range: impl RangeBounds<Q>) -> Iter<'_, K, V>
    where
        K: Borrow<Q>,
    {
        if is_void(&range) {
            return Iter::Few([].iter()); // The standard library panics here, but a bad range must not fail the transaction.
        }

        match self {
            Ordered::Few(few) => {
                let from = match range.start_bound() {
                    Bound::Unbounded => 0,
                    Bound::Included(start) => few.partition_point(|(k, _)| k.borrow() < start),
                    Bound::Excluded(start) => few.partition_point(|(k, _)| k.borrow() <= start),
                };

                let to = match range.end_bound() {
                    Bound::Unbounded => few.len(),
                    Bound::Included(end) => few.partition_point(|(k, _)| k.borrow() <= end),
                    Bound::Excluded(end) => few.partition_point(|(k, _)| k.borrow() < end),
                };
                Iter::Few(few.get(from..to).unwrap_or(&[]).iter())
            }
            Ordered::Many(many) => Iter::Range(many.order.range(range), many),
        }
    }

    pub(crate) fn iter(&self) -> Iter<'_, K, V> {
        match self {
            Ordered::Few(few) => Iter::Few(few.iter()),
            Ordered::Many(many) => Iter::All(many.order.iter(), many),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Ordered::Few(few) => few.len(),
            Ordered::Many(many) => many.order.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: Hash + Ord + Clone, V> Many<K, V> {
    fn of(few: Vec<(K, V)>) -> Self {
        let mut many = Many {
            hasher: DefaultHashBuilder::default(),
            entries: HashTable::with_capacity(2 * FEW),
            order: BTreeSet::new(),
        };

        for (key, value) in few {
            many.add(key, value);
        }

        many
    }

    fn add(&mut self, key: K, value: V) -> &mut V {
        let Many { hasher, entries, order } = self;
        let hash = hasher.hash_one(&key);
        match entries.entry(hash, |(k, _)| *k == key, |(k, _)| hasher.hash_one(k)) {
            Place::Occupied(place) => {
                let (_, slot) = place.into_mut();
                *slot = value;
                slot
            }
            Place::Vacant(place) => {
                order.insert(key.clone());
                &mut place.insert((key, value)).into_mut().1
            }
        }
    }

    fn drain(&mut self) -> Vec<(K, V)> {
        self.order.clear();
        let mut all: Vec<_> = self.entries.drain().collect();
        all.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        all
    }
}

#[inline(always)]
fn find<K: Borrow<Q>, Q: Ord + ?Sized, V>(few: &[(K, V)], key: &Q) -> Result<usize, usize> {
    few.binary_search_by(|(k, _)| k.borrow().cmp(key))
}

/// Checks whether a range is empty, including the cases in which the standard library panics.
pub(crate) fn is_void<Q: Ord + ?Sized>(range: &impl RangeBounds<Q>) -> bool {
    match (range.start_bound(), range.end_bound()) {
        (Bound::Excluded(start), Bound::Excluded(end)) => start >= end,
        (Bound::Included(start) | Bound::Excluded(start), Bound::Included(end) | Bound::Excluded(end)) => {
            start > end
        }
        _ => false,
    }
}

/// Iterator over the entries, in key order.
pub(crate) enum Iter<'a, K, V> {
    Few(std::slice::Iter<'a, (K, V)>),
    All(btree_set::Iter<'a, K>, &'a Many<K, V>),
    Range(btree_set::Range<'a, K>, &'a Many<K, V>),
}

impl<'a, K: Hash + Ord + Clone, V> Iter<'a, K, V> {
    fn found(many: &'a Many<K, V>, key: &K) -> Option<(&'a K, &'a V)> {
        // Every key in `order` has an entry.
        many.get(key).map(|(key, value)| (key, value))
    }
}

impl<'a, K: Hash + Ord + Clone, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Iter::Few(iter) => iter.next().map(|(key, value)| (key, value)),
            Iter::All(iter, many) => iter.next().and_then(|key| Self::found(many, key)),
            Iter::Range(iter, many) => iter.next().and_then(|key| Self::found(many, key)),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Iter::Few(iter) => iter.size_hint(),
            Iter::All(iter, _) => iter.size_hint(),
            Iter::Range(iter, _) => iter.size_hint(),
        }
    }
}

impl<K: Hash + Ord + Clone, V> DoubleEndedIterator for Iter<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match self {
            Iter::Few(iter) => iter.next_back().map(|(key, value)| (key, value)),
            Iter::All(iter, many) => iter.next_back().and_then(|key| Self::found(many, key)),
            Iter::Range(iter, many) => iter.next_back().and_then(|key| Self::found(many, key)),
        }
    }
}

impl<K: Hash + Ord + Clone, V> FusedIterator for Iter<'_, K, V> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u8, u32),
        Remove(u8),
        Change(u8),
        Range(Bound<u8>, Bound<u8>),
        /// Removes all keys from this one on, so a hash table becomes a vector again.
        Shrink(u8),
    }

    fn bound() -> impl Strategy<Value = Bound<u8>> {
        prop_oneof![
            Just(Bound::Unbounded),
            (0u8..64).prop_map(Bound::Included),
            (0u8..64).prop_map(Bound::Excluded)
        ]
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            40 => (0u8..64, any::<u32>()).prop_map(|(k, v)| Step::Insert(k, v)),
            30 => (0u8..64).prop_map(Step::Remove),
            10 => (0u8..64).prop_map(Step::Change),
            10 => (bound(), bound()).prop_map(|(a, b)| Step::Range(a, b)),
            1 => (0u8..8).prop_map(Step::Shrink),
        ]
    }

    proptest! {
        /// The map behaves like a `BTreeMap` in both of its forms and across conversions between them.
        #[test]
        fn is_an_ordered_map(steps in prop::collection::vec(step(), 0..400)) {
            let mut map: Ordered<u8, u32> = Ordered::default();
            let mut plain = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Insert(k, v) => prop_assert_eq!(map.insert(k, v), plain.insert(k, v)),
                    Step::Remove(k) => prop_assert_eq!(map.remove(&k), plain.remove(&k)),
                    Step::Change(k) => {
                        let (one, other) = (map.get_mut(&k), plain.get_mut(&k));
                        prop_assert_eq!(&one, &other);
                        if let (Some(one), Some(other)) = (one, other) {
                            (*one, *other) = (one.wrapping_add(1), other.wrapping_add(1))
                        }
                    }
                    Step::Range(a, b) => {
                        let expected: Vec<_> = if is_void::<u8>(&(a, b)) { Vec::new() } else { plain.range((a, b)).collect() };
                        prop_assert_eq!(map.range::<u8>((a, b)).collect::<Vec<_>>(), expected.clone());
                        let mut backwards: Vec<_> = map.range::<u8>((a, b)).rev().collect();
                        backwards.reverse();
                        prop_assert_eq!(backwards, expected);
                    }
                    Step::Shrink(from) => {
                        for k in from..64 {
                            prop_assert_eq!(map.remove(&k), plain.remove(&k))
                        }
                        prop_assert_eq!(map.iter().collect::<Vec<_>>(), plain.iter().collect::<Vec<_>>());
                    }
                }

                prop_assert_eq!(map.len(), plain.len());
            }

            prop_assert_eq!(map.iter().collect::<Vec<_>>(), plain.iter().collect::<Vec<_>>());
            for k in 0..64 {
                prop_assert_eq!(map.get(&k), plain.get(&k));
            }
        }
    }

    #[test]
    fn changes_its_form_with_its_size() {
        let mut map: Ordered<u32, u32> = Ordered::default();
        for k in 0..=FEW as u32 {
            map.insert(k, k);
        }

        assert!(matches!(map, Ordered::Many(_)));
        for k in FEW_AGAIN as u32..=FEW as u32 {
            map.remove(&k);
        }

        assert!(matches!(map, Ordered::Few(_)));
        assert_eq!(map.len(), FEW_AGAIN);
    }
}
