//! A run's redo log: its changes to cells, encoded one after the other in one buffer.
//!
//! A change needs no allocation of its own. It is encoded directly into the buffer that becomes part of the record, and
//! a follower reads it from there.
//!
//! ```text
//! change := head, key, [row], [value]
//! head   := dictionary * 4 + (1 if there is a row) + (2 if there is a value)
//! key, row, value := length, bytes
//! ```
//!
//! `head` and the lengths are variable-length integers (see [`codec::append_integer`](crate::codec::append_integer)).

use crate::codec::{append_integer, append_with_length, encodes_as, split_integer};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;
use std::fmt::{Debug, Formatter};

/// One change of a committed transaction. A follower applies it without running a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Op<'a> {
    /// Position of the dictionary in its app.
    pub dict: u32,
    /// Encoded key of the cell.
    pub key: &'a [u8],
    /// Encoded key of the row. `None` if the dictionary is a `Dict`, whose cells have one value and no rows.
    pub row: Option<&'a [u8]>,
    /// Encoded new value. `None` if the row or value was removed.
    pub value: Option<&'a [u8]>,
}

impl<'a> Op<'a> {
    /// Returns the place of the change: the dictionary, the cell and the row.
    pub fn place(self) -> (u32, &'a [u8], Option<&'a [u8]>) {
        (self.dict, self.key, self.row)
    }
}

/// Changes, in commit order.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Redo {
    /// Complete, well-formed changes.
    bytes: Bytes,
}

/// Encoded changes. One change of a short value needs no allocation.
type Bytes = SmallVec<[u8; INLINE_BYTES]>;

/// A position to which a [`Redo`] can be cut back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedoEnd(usize);

/// Number of bytes that need no allocation: enough for a key, and a value of 64 bytes.
const INLINE_BYTES: usize = 96;

/// Capacity of the first buffer that is allocated. Otherwise the buffer of a long run would grow more often.
const FIRST_BYTES: usize = 256;

/// Number of bytes of memory that a list of changes may keep without a use for them.
const SPARE_BYTES: usize = 64 << 10;

const HAS_ROW: u64 = 1;
const HAS_VALUE: u64 = 2;

impl Redo {
    /// Returns the size of the encoded changes in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Checks whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the changes in order.
    pub fn iter(&self) -> Ops<'_> {
        Ops { rest: &self.bytes }
    }

    /// Returns the position after the last change.
    pub fn end(&self) -> RedoEnd {
        RedoEnd(self.bytes.len())
    }

    /// Removes the changes from `end` on.
    pub fn cut(&mut self, end: RedoEnd) {
        self.bytes.truncate(end.0)
    }

    /// Removes the changes from `earlier` to `later` if those from `later` on have the same places, in the same order, and
    /// so overwrite them. Returns whether it has removed them.
    pub fn overwrite(&mut self, earlier: RedoEnd, later: RedoEnd) -> bool {
        let Some(overwritten) = self.bytes.get(earlier.0..later.0) else { return false };
        if !(Ops { rest: overwritten }).map(Op::place).eq(self.since(later).map(Op::place)) {
            return false;
        }
        self.bytes.copy_within(later.0.., earlier.0);
        self.bytes.truncate(self.bytes.len() - (later.0 - earlier.0));
        true
    }

    /// Gives back the memory of changes that are no longer there, if it is much. It would count nowhere until the changes are
    /// committed.
    pub fn shrink(&mut self) {
        if self.bytes.capacity() > SPARE_BYTES.max(4 * self.bytes.len()) {
            self.bytes.shrink_to_fit()
        }
    }

    /// Returns the changes from `start` on.
    fn since(&self, start: RedoEnd) -> Ops<'_> {
        Ops { rest: self.bytes.get(start.0..).unwrap_or_default() }
    }

    /// Appends a change whose parts are already encoded.
    pub fn push(&mut self, op: Op) {
        append_head(op.dict, op.row.is_some(), op.value.is_some(), &mut self.bytes);
        for part in [Some(op.key), op.row, op.value].into_iter().flatten() {
            append_integer(part.len() as u64, &mut self.bytes);
            self.bytes.extend_from_slice(part)
        }
    }

    /// Encodes the change of a row or value from `old` to `value` and appends it. Appends nothing if both have the same
    /// encoding.
    ///
    /// # Panics
    ///
    /// Panics if a key or a value cannot be encoded (see [`encode`](crate::codec::encode)). Nothing is then appended.
    pub fn encode_change<K, R, V>(
        &mut self,
        dict: u32,
        key: &K,
        row: Option<&R>,
        value: Option<&V>,
        old: Option<&V>,
    ) where
        K: Serialize + ?Sized,
        R: Serialize + ?Sized,
        V: Serialize + ?Sized,
    {
        if value.is_none() && old.is_none() {
            return;
        }

        let start = self.end();
        self.encode(dict, key, row, value);
        let encoded = self.since(start).next().and_then(|op| op.value);
        if let (Some(old), Some(encoded)) = (old, encoded)
            && encodes_as(old, encoded)
        {
            self.cut(start)
        }
    }

    fn encode<K, R, V>(&mut self, dict: u32, key: &K, row: Option<&R>, value: Option<&V>)
    where
        K: Serialize + ?Sized,
        R: Serialize + ?Sized,
        V: Serialize + ?Sized,
    {
        // another change as long as those before does not fit
        if !self.bytes.spilled() && self.bytes.len() > INLINE_BYTES / 2 {
            self.bytes.reserve(FIRST_BYTES)
        }

        // if encoding a value panics, this removes the parts already encoded
        let mut unfinished = Unfinished { end: self.end(), redo: self };
        let bytes = &mut unfinished.redo.bytes;
        append_head(dict, row.is_some(), value.is_some(), bytes);
        append_with_length(key, bytes);
        row.into_iter().for_each(|row| append_with_length(row, bytes));
        value.into_iter().for_each(|value| append_with_length(value, bytes));
        unfinished.end = unfinished.redo.end()
    }
}

fn append_head(dict: u32, has_row: bool, has_value: bool, bytes: &mut Bytes) {
    let flags = u64::from(has_row) * HAS_ROW + u64::from(has_value) * HAS_VALUE;
    append_integer(u64::from(dict) * 4 + flags, bytes)
}

/// Cuts a redo log back to `end` when it is dropped.
struct Unfinished<'a> {
    redo: &'a mut Redo,
    end: RedoEnd,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.redo.cut(self.end)
    }
}

impl<'a> FromIterator<Op<'a>> for Redo {
    fn from_iter<I: IntoIterator<Item = Op<'a>>>(ops: I) -> Redo {
        let mut redo = Redo::default();
        ops.into_iter().for_each(|op| redo.push(op));
        redo
    }
}

impl<'a> IntoIterator for &'a Redo {
    type Item = Op<'a>;
    type IntoIter = Ops<'a>;

    fn into_iter(self) -> Ops<'a> {
        self.iter()
    }
}

impl Debug for Redo {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

/// The changes of a [`Redo`].
#[derive(Clone, Debug)]
pub struct Ops<'a> {
    rest: &'a [u8],
}

impl<'a> Ops<'a> {
    /// Removes and returns the first change. Returns `None` if the bytes do not begin with a change.
    fn split(&mut self) -> Option<Op<'a>> {
        let head = self.integer()?;
        let dict = u32::try_from(head / 4).ok()?;
        let key = self.part()?;
        let row = if head & HAS_ROW != 0 { Some(self.part()?) } else { None };
        let value = if head & HAS_VALUE != 0 { Some(self.part()?) } else { None };
        Some(Op { dict, key, row, value })
    }

    fn integer(&mut self) -> Option<u64> {
        let (integer, rest) = split_integer(self.rest)?;
        self.rest = rest;
        Some(integer)
    }

    fn part(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.integer()?).ok()?;
        let (part, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(part)
    }
}

impl<'a> Iterator for Ops<'a> {
    type Item = Op<'a>;

    fn next(&mut self) -> Option<Op<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let op = self.split();
        debug_assert!(op.is_some(), "a redo log contains only complete changes");
        op
    }
}

impl Serialize for Redo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.bytes)
    }
}

impl<'de> Deserialize<'de> for Redo {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Redo, D::Error> {
        deserializer.deserialize_byte_buf(Checked)
    }
}

/// Accepts bytes only if they are complete changes.
struct Checked;

impl<'de> Visitor<'de> for Checked {
    type Value = Redo;

    fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("a redo log")
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Redo, E> {
        check(&bytes)?;
        // a short one moves into the value, a long one stays where it is
        Ok(Redo {
            bytes: if bytes.len() <= INLINE_BYTES {
                Bytes::from_slice(&bytes)
            } else {
                Bytes::from_vec(bytes)
            },
        })
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Redo, E> {
        check(bytes)?;
        Ok(Redo { bytes: Bytes::from_slice(bytes) })
    }
}

fn check<E: Error>(bytes: &[u8]) -> Result<(), E> {
    let mut ops = Ops { rest: bytes };
    while !ops.rest.is_empty() {
        let at = bytes.len() - ops.rest.len();
        if ops.split().is_none() {
            return Err(E::custom(format_args!("byte {at} of a redo log does not begin a complete change")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EncodedCells;
    use crate::codec::{decode, encode};
    use proptest::prelude::*;

    type Parts = (u32, Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>);

    fn op((dict, key, row, value): &Parts) -> Op<'_> {
        Op { dict: *dict, key, row: row.as_deref(), value: value.as_deref() }
    }

    fn parts() -> impl Strategy<Value = Parts> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..400);
        (any::<u32>(), bytes(), prop::option::of(bytes()), prop::option::of(bytes()))
    }

    /// A few changes of few places.
    fn transaction() -> impl Strategy<Value = Vec<Parts>> {
        let key = || prop::sample::select(vec![vec![1], vec![2]]);
        let value = prop::option::of(prop::collection::vec(any::<u8>(), 0..3));
        prop::collection::vec((1..3u32, key(), prop::option::of(key()), value), 0..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn changes_are_read_as_they_were_written(all in prop::collection::vec(parts(), 0..6)) {
            let redo: Redo = all.iter().map(op).collect();
            prop_assert!(redo.iter().eq(all.iter().map(op)));
            prop_assert_eq!(decode::<Redo>("a redo log", &encode(&redo)), Ok(redo));
        }

        /// Without the changes that are overwritten, the cells and rows become the same.
        #[test]
        fn what_is_overwritten_makes_no_difference(
            before in transaction(),
            transactions in prop::collection::vec(transaction(), 0..12),
        ) {
            let mut of_all: EncodedCells = EncodedCells::default();
            before.iter().for_each(|parts| of_all.apply(op(parts)));
            let mut of_kept = of_all.clone();

            let (mut redo, mut last) = (Redo::default(), None);
            for transaction in &transactions {
                let changes = redo.end();
                for parts in transaction {
                    redo.push(op(parts));
                    of_all.apply(op(parts))
                }
                if redo.end() != changes && !last.is_some_and(|last| redo.overwrite(last, changes)) {
                    last = Some(changes)
                }
            }
            redo.iter().for_each(|op| of_kept.apply(op));
            prop_assert_eq!(of_kept, of_all);
        }

        /// Any bytes are either refused or read to the end.
        #[test]
        fn bytes_that_are_not_changes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(redo) = Checked.visit_byte_buf::<serde::de::value::Error>(bytes.clone()) {
                let again: Redo = redo.iter().collect();
                prop_assert!(again.iter().eq(redo.iter()));
            }
        }
    }

    #[test]
    fn what_is_encoded_in_place_is_what_is_encoded_apart() {
        for length in [0, 1, 100, 250, 251, 252, 300, 70_000] {
            let value = vec![7u8; length];
            let mut in_place = Redo::default();
            in_place.encode(3, "key", Some(&5u64), Some(&value));
            in_place.encode(4, "key", None::<&()>, None::<&()>);
            let (key, row, value) = (encode("key"), encode(&5u64), encode(&value));
            let first = Op { dict: 3, key: &key, row: Some(&row), value: Some(&value) };
            let second = Op { dict: 4, key: &key, row: None, value: None };
            assert_eq!(in_place, [first, second].into_iter().collect());
        }
    }

    #[test]
    fn only_changes_of_the_same_places_are_overwritten() {
        let set = |redo: &mut Redo, key: u8, value: Option<&[u8]>| {
            let begins = redo.end();
            redo.push(Op { dict: 1, key: &[key], row: None, value });
            begins
        };
        let keys =
            |redo: &Redo| redo.iter().map(|op| (op.key[0], op.value.map(<[u8]>::len))).collect::<Vec<_>>();
        let mut redo = Redo::default();
        set(&mut redo, 1, Some(&[5; 300]));
        let first = set(&mut redo, 2, Some(&[5; 10]));
        let second = set(&mut redo, 2, Some(&[6; 400]));
        assert!(redo.overwrite(first, second));
        assert_eq!(keys(&redo), [(1, Some(300)), (2, Some(400))]);

        // a removal overwrites a value, and is overwritten by one
        let third = set(&mut redo, 2, None);
        assert!(redo.overwrite(first, third));
        assert_eq!(keys(&redo), [(1, Some(300)), (2, None)]);
        let fourth = set(&mut redo, 2, Some(&[]));
        assert!(redo.overwrite(first, fourth));
        assert_eq!(keys(&redo), [(1, Some(300)), (2, Some(0))]);

        // memory that is no longer used is given back, if it is much
        let large = set(&mut redo, 2, Some(&[5; 1 << 20]));
        assert!(redo.overwrite(first, large));
        let small = set(&mut redo, 2, None);
        assert!(redo.overwrite(first, small));
        redo.shrink();
        assert!(redo.bytes.capacity() <= SPARE_BYTES);
        let last = set(&mut redo, 2, Some(&[]));
        assert!(redo.overwrite(first, last));

        // another key, fewer changes, and more changes
        let fifth = set(&mut redo, 3, Some(&[]));
        let before = redo.clone();
        assert!(!redo.overwrite(first, fifth));
        let sixth = set(&mut redo, 2, Some(&[]));
        assert!(!redo.overwrite(first, sixth));
        redo.cut(sixth);
        assert_eq!(redo, before);
        set(&mut redo, 3, Some(&[]));
        assert!(!redo.overwrite(first, fifth));
    }

    #[test]
    fn a_change_that_is_cut_off_is_refused_with_its_place() {
        let mut redo = Redo::default();
        redo.encode(0, &1u8, None::<&()>, Some(&2u8));
        let first = redo.size();
        redo.encode(0, &1u8, None::<&()>, Some(&2u8));
        for cut in first + 1..redo.size() {
            let bytes = redo.bytes[..cut].to_vec();
            let error = Checked.visit_byte_buf::<serde::de::value::Error>(bytes).unwrap_err().to_string();
            assert_eq!(error, format!("byte {first} of a redo log does not begin a complete change"));
        }
    }

    #[test]
    fn a_change_that_cannot_be_encoded_leaves_nothing() {
        struct Refused;
        impl Serialize for Refused {
            fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(serde::ser::Error::custom("no"))
            }
        }

        let mut redo = Redo::default();
        redo.encode(0, &1u8, None::<&()>, Some(&2u8));
        let before = redo.clone();
        let encode = std::panic::AssertUnwindSafe(|| redo.encode(1, "key", None::<&()>, Some(&Refused)));
        assert!(std::panic::catch_unwind(encode).is_err());
        assert_eq!(redo, before);
    }
}
