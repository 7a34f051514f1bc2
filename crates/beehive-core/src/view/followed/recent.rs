//! A map that forgets its oldest entries.

use std::collections::BTreeMap;

/// A map whose entries are ordered by the time at which they were last inserted.
#[derive(Clone, Debug)]
pub(super) struct Recent<K, V> {
    entries: BTreeMap<K, (u64, V)>,
    /// The keys, oldest first.
    order: BTreeMap<u64, K>,
    next: u64,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Recent<K, V> {
        Recent { entries: BTreeMap::new(), order: BTreeMap::new(), next: 0 }
    }
}

impl<K: Ord + Clone, V> Recent<K, V> {
    /// Inserts an entry, which is now the newest one, also if the map had one with this key.
    pub(super) fn insert(&mut self, key: K, value: V) {
        if let Some((before, _)) = self.entries.insert(key.clone(), (self.next, value)) {
            self.order.remove(&before);
        }
        self.order.insert(self.next, key);
        self.next += 1
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(_, value)| value)
    }

    pub(super) fn contains(&self, key: &K) -> bool {
        self.entries.contains_key(key)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Removes the oldest entry, and returns its key.
    pub(super) fn pop_oldest(&mut self) -> Option<K> {
        let (_, key) = self.order.pop_first()?;
        self.entries.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_that_was_not_inserted_for_the_longest_time_is_the_oldest() {
        let mut recent = Recent::default();
        [5, 1, 3, 5].iter().for_each(|key| recent.insert(*key, *key * 10));
        assert_eq!((recent.len(), recent.get(&5), recent.contains(&2)), (3, Some(&50), false));
        assert_eq!([(); 4].map(|()| recent.pop_oldest()), [Some(1), Some(3), Some(5), None]);
        assert_eq!(recent.len(), 0);
    }
}
