//! A sorted set that is small while it has few elements, for the same reason as [`FewMap`].

use crate::few_map::FewMap;
use serde::{Deserialize, Serialize};
use std::fmt::{Debug, Formatter};

/// A sorted set. It is an exactly sized list while it has few elements, and a tree from then on. It is encoded like a
/// `BTreeSet`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent, bound(serialize = "T: Serialize + Ord", deserialize = "T: Deserialize<'de> + Ord"))]
pub struct FewSet<T: Ord> {
    /// A unit takes no bytes, neither in memory nor in the encoding.
    elements: FewMap<T, ()>,
}

impl<T: Ord> FewSet<T> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Checks whether the set has no elements.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Adds an element, unless the set contains it.
    pub fn insert(&mut self, element: T) {
        self.elements.insert(element, ())
    }

    /// Adds all elements of `other`.
    pub fn absorb(&mut self, other: FewSet<T>) {
        self.extend(other.elements.into_iter().map(|(element, ())| element))
    }

    /// Checks whether the set contains an element.
    pub fn contains(&self, element: &T) -> bool {
        self.elements.get(element).is_some()
    }

    /// Returns the elements in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.elements.iter().map(|(element, ())| element)
    }

    /// Checks whether `other` contains all elements of this set.
    pub fn is_subset(&self, other: &FewSet<T>) -> bool {
        self.iter().all(|element| other.contains(element))
    }
}

impl<T: Ord> Default for FewSet<T> {
    fn default() -> Self {
        FewSet { elements: FewMap::default() }
    }
}

impl<T: Ord> Extend<T> for FewSet<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, new: I) {
        new.into_iter().for_each(|element| self.insert(element))
    }
}

impl<T: Ord> FromIterator<T> for FewSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut set = FewSet::default();
        set.extend(elements);
        set
    }
}

impl<T: Ord + Debug> Debug for FewSet<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{decode_many, encode_many};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Whether it has few elements or many, the set is the same as a `BTreeSet`, also in its bytes.
        #[test]
        fn it_is_a_sorted_set(parts in prop::collection::vec(prop::collection::vec(0..40u8, 0..12), 1..5)) {
            let (mut few, mut model) = (FewSet::default(), BTreeSet::new());
            for part in parts {
                let smaller = few.clone();
                few.extend(part.iter().copied());
                model.extend(part.iter().copied());

                prop_assert!(few.iter().eq(&model));
                let mut united = FewSet::from_iter([7]);
                united.absorb(few.clone());
                prop_assert!(united.iter().eq(&(&model | &BTreeSet::from([7]))));
                prop_assert_eq!((few.len(), few.is_empty()), (model.len(), model.is_empty()));
                prop_assert!((0..40).all(|element| few.contains(&element) == model.contains(&element)));
                prop_assert!(smaller.is_subset(&few));
                prop_assert_eq!(few.is_subset(&smaller), few.len() == smaller.len());
                prop_assert_eq!(encode_many(&few), encode_many(&model));
                prop_assert_eq!(&decode_many::<FewSet<u8>>("a set", &encode_many(&model)).unwrap(), &few);
            }
        }
    }
}
