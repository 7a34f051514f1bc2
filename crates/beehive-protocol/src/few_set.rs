//! A sorted set that is small while it has few elements, for the same reason as [`FewMap`].

use crate::few_map::FewMap;
use serde::de::{SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::{Debug, Formatter};
use std::marker::PhantomData;

/// A sorted set. It stores a single element inline, a few elements in an exactly sized list, and more in a tree. It is
/// encoded like a `BTreeSet`.
#[derive(Clone)]
pub struct FewSet<T: Ord> {
    elements: Elements<T>,
}

#[derive(Clone)]
enum Elements<T: Ord> {
    One(T),
    /// No elements, or at least two. A unit takes no bytes.
    Others(FewMap<T, ()>),
}

use Elements::{One, Others};

impl<T: Ord> FewSet<T> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        match &self.elements {
            One(_) => 1,
            Others(elements) => elements.len(),
        }
    }

    /// Checks whether the set has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an element, unless the set contains it.
    pub fn insert(&mut self, element: T) {
        match &mut self.elements {
            One(known) if *known == element => {}
            One(_) => {
                if let One(known) = std::mem::replace(&mut self.elements, Others(FewMap::default())) {
                    self.elements = Others([(known, ()), (element, ())].into_iter().collect())
                }
            }
            Others(elements) if elements.is_empty() => self.elements = One(element),
            Others(elements) => elements.insert(element, ()),
        }
    }

    /// Adds all elements of `other`.
    pub fn absorb(&mut self, other: FewSet<T>) {
        match other.elements {
            One(element) => self.insert(element),
            Others(elements) => self.extend(elements.into_iter().map(|(element, ())| element)),
        }
    }

    /// Checks whether the set contains an element.
    pub fn contains(&self, element: &T) -> bool {
        match &self.elements {
            One(known) => known == element,
            Others(elements) => elements.get(element).is_some(),
        }
    }

    /// Returns the elements in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let (one, others) = match &self.elements {
            One(element) => (Some(element), None),
            Others(elements) => (None, Some(elements.iter())),
        };
        one.into_iter().chain(others.into_iter().flatten().map(|(element, ())| element))
    }

    /// Checks whether `other` contains all elements of this set.
    pub fn is_subset(&self, other: &FewSet<T>) -> bool {
        self.iter().all(|element| other.contains(element))
    }
}

impl<T: Ord> Default for FewSet<T> {
    fn default() -> Self {
        FewSet { elements: Others(FewMap::default()) }
    }
}

impl<T: Ord> PartialEq for FewSet<T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Ord> Eq for FewSet<T> {}

impl<T: Ord + Serialize> Serialize for FewSet<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.len()))?;
        self.iter().try_for_each(|element| list.serialize_element(element))?;
        list.end()
    }
}

impl<'de, T: Ord + Deserialize<'de>> Deserialize<'de> for FewSet<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FewSet<T>, D::Error> {
        struct Elements<T>(PhantomData<T>);

        impl<'de, T: Ord + Deserialize<'de>> Visitor<'de> for Elements<T> {
            type Value = FewSet<T>;

            fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
                f.write_str("a set")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<FewSet<T>, A::Error> {
                let mut set = FewSet::default();
                while let Some(element) = elements.next_element()? {
                    set.insert(element)
                }
                Ok(set)
            }
        }

        deserializer.deserialize_seq(Elements(PhantomData))
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

    #[test]
    fn a_single_element_takes_no_block() {
        assert_eq!(size_of::<FewSet<u64>>(), size_of::<Vec<u64>>());
        assert!(matches!(FewSet::from_iter([7, 7]).elements, One(7)));
    }

    proptest! {
        /// Whether it has few elements or many, the set equals a `BTreeSet`, and so do its bytes.
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
