//! A bee's cells in encoded form: images of cells, and the copy kept by a follower.

use crate::Op;
use crate::few_map::FEW;
use crate::packed_rows::{PackedRows, Row};
use crate::stage_parts::divide;
use serde::de::{SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::fmt::{Debug, Formatter};
use std::ops::Bound;

/// One cell of one dictionary, encoded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellImage {
    /// Position of the dictionary in its app.
    pub dict: u32,
    /// Encoded key of the cell.
    pub key: Vec<u8>,
    /// Encoded key and value of each row. A `Dict` value is a single row with an empty key.
    pub rows: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The committed cells of one bee, encoded. A follower keeps them up to date by applying redo operations.
#[derive(Clone, Default)]
pub struct EncodedCells {
    rows: Rows,
}

/// The rows of all cells.
#[derive(Clone)]
enum Rows {
    /// At most [`FEW`] rows in at most [`PACKED_BYTES_MAX`] bytes.
    Few(PackedRows),
    #[allow(clippy::box_collection)] // two words in each bee instead of three
    Many(Box<BTreeMap<Key, Box<[u8]>>>),
}

/// Maximum length of a buffer with few rows. A row with a new length rewrites the whole buffer.
const PACKED_BYTES_MAX: usize = 4096;

/// The key of a row: dictionary and length of the cell's key, four bytes each, then the cell's key, then the row's key.
/// The order of the bytes is the order of [`Row::place`], so the rows of a cell are next to each other.
type Key = Box<[u8]>;

/// The key of a row to look up.
type Wanted = SmallVec<[u8; 96]>;

/// Returns the key of a row in a tree.
fn wanted(row: &Row) -> Wanted {
    let mut wanted = Wanted::new();
    wanted.extend_from_slice(&row.dict.to_be_bytes());
    wanted.extend_from_slice(&u32::try_from(row.key.len()).unwrap_or(u32::MAX).to_be_bytes());
    wanted.extend_from_slice(row.key);
    wanted.extend_from_slice(row.row);
    wanted
}

/// Returns the row with this key in a tree.
fn row_of<'a>(key: &'a [u8], value: &'a [u8]) -> Option<Row<'a>> {
    let (dict, rest) = key.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (key, row) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    Some(Row { dict: u32::from_be_bytes(*dict), key, row, value })
}

impl Default for Rows {
    fn default() -> Self {
        Rows::Few(PackedRows::default())
    }
}

impl Rows {
    /// Returns the rows in ascending order of their places.
    fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        let (few, many) = match self {
            Rows::Few(rows) => (Some(rows.iter()), None),
            Rows::Many(rows) => (None, Some(rows.iter())),
        };
        let many = many.into_iter().flatten().filter_map(|(key, value)| row_of(key, value));
        few.into_iter().flatten().chain(many)
    }

    /// Returns the rows of a cell.
    fn of_cell<'a>(&'a self, dict: u32, key: &'a [u8]) -> impl Iterator<Item = Row<'a>> {
        let first = wanted(&Row { dict, key, row: &[], value: &[] });
        let (few, many) = match self {
            Rows::Few(rows) => (Some(rows.iter()), None),
            Rows::Many(rows) => {
                (None, Some(rows.range::<[u8], _>((Bound::Included(&*first), Bound::Unbounded))))
            }
        };
        let few = few.into_iter().flatten().skip_while(move |row| (row.dict, row.key) != (dict, key));
        let many = many.into_iter().flatten().filter_map(|(key, value)| row_of(key, value));
        few.chain(many).take_while(move |row| (row.dict, row.key) == (dict, key))
    }

    /// Returns the value of the row at the place of `row`; the value of `row` is ignored.
    fn get(&self, row: &Row) -> Option<&[u8]> {
        match self {
            Rows::Few(rows) => {
                let is_same = |other: &Row| other.place() == row.place();
                rows.iter().find(is_same).map(|found| found.value)
            }
            Rows::Many(rows) => rows.get(&*wanted(row)).map(|value| &**value),
        }
    }

    fn set(&mut self, row: Row) {
        match self {
            Rows::Few(rows) => {
                let is_new = rows.set(row);
                if rows.byte_count() > PACKED_BYTES_MAX || (is_new && rows.iter().count() > FEW) {
                    let rows = rows.iter().map(|row| (wanted(&row).as_slice().into(), row.value.into()));
                    *self = Rows::Many(Box::new(rows.collect()))
                }
            }
            Rows::Many(rows) => {
                let wanted = wanted(&row);
                match rows.get_mut(&*wanted) {
                    // most changes keep the length of the value, so they need no allocation
                    Some(known) if known.len() == row.value.len() => known.copy_from_slice(row.value),
                    Some(known) => *known = row.value.into(),
                    None => {
                        rows.insert(wanted.as_slice().into(), row.value.into());
                    }
                }
            }
        }
    }

    /// Removes the row at the place of `row`; the value of `row` is ignored.
    fn remove(&mut self, row: &Row) {
        match self {
            Rows::Few(rows) => rows.remove(row),
            Rows::Many(rows) => {
                // half of the limit, so that cells at the limit do not switch between the two forms with every row
                if rows.remove(&*wanted(row)).is_some() && rows.len() <= FEW / 2 {
                    let bytes: usize = rows.iter().map(|(key, value)| key.len() + value.len()).sum();
                    if bytes <= PACKED_BYTES_MAX / 2 {
                        let mut few = PackedRows::default();
                        rows.iter().filter_map(|(key, value)| row_of(key, value)).for_each(|row| {
                            few.set(row);
                        });
                        *self = Rows::Few(few)
                    }
                }
            }
        }
    }
}

impl EncodedCells {
    /// Applies one change.
    pub fn apply(&mut self, op: Op) {
        let Op { dict, key, row, value } = op;
        let place = Row { dict, key, row: row.unwrap_or_default(), value: value.unwrap_or_default() };
        match value {
            Some(_) => self.rows.set(place),
            None => self.rows.remove(&place),
        }
    }

    /// Returns the encoded value at the place of a change, whose own value is ignored. Returns `None` if there is none.
    pub fn value(&self, at: Op) -> Option<&[u8]> {
        let Op { dict, key, row, value: _ } = at;
        self.rows.get(&Row { dict, key, row: row.unwrap_or_default(), value: &[] })
    }

    /// Returns the number of rows. The value of a `Dict` is one row.
    pub fn row_count(&self) -> usize {
        match &self.rows {
            Rows::Few(rows) => rows.iter().count(),
            Rows::Many(rows) => rows.len(),
        }
    }

    /// Returns the number of cells.
    pub fn cell_count(&self) -> usize {
        self.cells().count()
    }

    /// Returns the dictionary of each row, in ascending order. A dictionary with several rows appears several times.
    pub fn dictionaries(&self) -> impl Iterator<Item = u32> {
        self.rows.iter().map(|row| row.dict)
    }

    /// Returns the encoded key and value of each row of a cell, in order. The value of a `Dict` is a row with an empty key.
    pub fn rows_of<'a>(&'a self, dict: u32, key: &'a [u8]) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.rows.of_cell(dict, key).map(|row| (row.row, row.value))
    }

    /// Returns the size of the keys and values, in bytes.
    pub fn byte_count(&self) -> usize {
        self.rows.iter().map(|row| row.key.len() + row.row.len() + row.value.len()).sum()
    }

    /// Returns the dictionary and the encoded key of each cell, in the order of [`EncodedCells::images`].
    pub fn cells(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let mut last = None;
        let cells = self.rows.iter().map(|row| (row.dict, row.key));
        cells.filter(move |cell| last.replace(*cell) != Some(*cell))
    }

    /// Returns a copy of the cells of these dictionaries, a set with a bit for each dictionary.
    pub fn of_dictionaries(&self, dicts: u64) -> EncodedCells {
        let mut copy = EncodedCells::default();
        let is_in = |row: &Row| dicts.checked_shr(row.dict).is_some_and(|rest| rest & 1 == 1);
        self.rows.iter().filter(is_in).for_each(|row| copy.rows.set(row));
        copy
    }

    /// Removes a cell, and returns it.
    pub fn take(&mut self, dict: u32, key: &[u8]) -> CellImage {
        let rows: Vec<_> =
            self.rows.of_cell(dict, key).map(|row| (row.row.to_vec(), row.value.to_vec())).collect();
        rows.iter().for_each(|(row, _)| self.rows.remove(&Row { dict, key, row, value: &[] }));
        CellImage { dict, key: key.to_vec(), rows }
    }

    /// Adds the cells of a bee that merged into this one.
    pub fn absorb(&mut self, other: EncodedCells) {
        other.rows.iter().for_each(|row| self.rows.set(row))
    }

    /// Returns all cells, ordered by dictionary, length of the encoded key, and encoded key.
    pub fn images(&self) -> impl Iterator<Item = CellImage> {
        images_of(self.rows.iter())
    }

    /// Returns all rows, divided into parts of at most `bytes_max` bytes each. A larger row gets a part of its own. The
    /// rows of a cell may be in several parts.
    pub(crate) fn parts(&self, bytes_max: usize) -> impl Iterator<Item = Vec<CellImage>> {
        let parts = divide(self.rows.iter(), Row::size, bytes_max);
        parts.map(|rows| images_of(rows.into_iter()).collect())
    }

    /// Adds rows to a cell.
    pub fn add_rows(&mut self, CellImage { dict, key, rows }: &CellImage) {
        rows.iter().for_each(|(row, value)| self.rows.set(Row { dict: *dict, key, row, value }))
    }

    /// Replaces a cell.
    pub fn insert(&mut self, image: CellImage) {
        let (dict, key) = (image.dict, &*image.key);
        self.take(dict, key);
        self.add_rows(&image)
    }
}

/// Returns the images of cells whose rows are next to each other.
fn images_of<'a>(rows: impl Iterator<Item = Row<'a>>) -> impl Iterator<Item = CellImage> {
    let mut rows = rows.peekable();
    std::iter::from_fn(move || {
        let Row { dict, key, row, value } = rows.next()?;
        let mut image = CellImage { dict, key: key.to_vec(), rows: vec![(row.to_vec(), value.to_vec())] };
        while let Some(next) = rows.next_if(|next| (next.dict, next.key) == (dict, key)) {
            image.rows.push((next.row.to_vec(), next.value.to_vec()))
        }
        Some(image)
    })
}

impl PartialEq for EncodedCells {
    fn eq(&self, other: &Self) -> bool {
        // the same rows may be packed or in a tree
        self.rows.iter().eq(other.rows.iter())
    }
}

impl Eq for EncodedCells {}

impl Debug for EncodedCells {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.images()).finish()
    }
}

impl Serialize for EncodedCells {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // encodes one image at a time, because a bee may be large
        let mut list = serializer.serialize_seq(Some(self.cell_count()))?;
        self.images().try_for_each(|image| list.serialize_element(&image))?;
        list.end()
    }
}

impl<'de> Deserialize<'de> for EncodedCells {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<EncodedCells, D::Error> {
        /// Adds one image after the other.
        struct FromImages;

        impl<'de> Visitor<'de> for FromImages {
            type Value = EncodedCells;

            fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of cells")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut images: A) -> Result<EncodedCells, A::Error> {
                let mut cells = EncodedCells::default();
                while let Some(image) = images.next_element()? {
                    cells.add_rows(&image)
                }
                Ok(cells)
            }
        }

        deserializer.deserialize_seq(FromImages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{decode_many, encode_many};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// The rows by dictionary, key and row.
    type Model = BTreeMap<(u32, Vec<u8>, Vec<u8>), Vec<u8>>;

    #[derive(Clone, Debug)]
    enum Step {
        Apply { dict: u32, key: Vec<u8>, row: Option<Vec<u8>>, value: Option<Vec<u8>> },
        Insert(CellImage),
        AddRows(CellImage),
        Absorb(Vec<CellImage>),
    }

    fn bytes(length: usize) -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(0..3u8, 0..=length)
    }

    fn image() -> impl Strategy<Value = CellImage> {
        let rows = prop::collection::btree_map(bytes(2), bytes(3), 1..6);
        (0..3u32, bytes(2), rows).prop_map(|(dict, key, rows)| CellImage {
            dict,
            key,
            rows: rows.into_iter().collect(),
        })
    }

    fn step() -> impl Strategy<Value = Step> {
        let apply = (0..3u32, bytes(2), prop::option::of(bytes(2)), prop::option::of(bytes(3)));
        prop_oneof![
            8 => apply.prop_map(|(dict, key, row, value)| Step::Apply { dict, key, row, value }),
            1 => image().prop_map(Step::Insert),
            1 => image().prop_map(Step::AddRows),
            1 => prop::collection::vec(image(), 0..8).prop_map(Step::Absorb),
        ]
    }

    fn add(model: &mut Model, image: &CellImage) {
        for (row, value) in &image.rows {
            model.insert((image.dict, image.key.clone(), row.clone()), value.clone());
        }
    }

    fn of_images(images: impl IntoIterator<Item = CellImage>) -> EncodedCells {
        let mut cells = EncodedCells::default();
        images.into_iter().for_each(|image| cells.add_rows(&image));
        cells
    }

    /// Large values are stored in a tree; if only a few small rows remain, they are stored in a buffer again.
    #[test]
    fn a_bee_takes_two_words_and_one_block() {
        assert_eq!(size_of::<EncodedCells>(), 2 * size_of::<usize>());
        let mut cells = EncodedCells::default();
        let op = |value| Op { dict: 0, key: b"key", row: None, value };
        let is_packed = |cells: &EncodedCells| matches!(cells.rows, Rows::Few(_));
        cells.apply(op(Some(&[0; 100])));
        assert!(is_packed(&cells));
        cells.apply(op(Some(&[0; PACKED_BYTES_MAX])));
        assert!(!is_packed(&cells));
        cells.apply(op(None));
        assert!(is_packed(&cells) && cells.row_count() == 0);
    }

    proptest! {
        /// After any operations, with any number of rows, the cells equal those of a plain map.
        #[test]
        fn the_cells_are_those_of_a_map(steps in prop::collection::vec(step(), 0..80)) {
            let (mut cells, mut model) = (EncodedCells::default(), Model::new());
            for step in steps {
                match step {
                    Step::Apply { dict, key, row, value } => {
                        let op = Op { dict, key: &key, row: row.as_deref(), value: value.as_deref() };
                        cells.apply(op);
                        let row = (dict, key, row.unwrap_or_default());
                        match value {
                            Some(value) => model.insert(row, value),
                            None => model.remove(&row),
                        };
                    }
                    Step::Insert(image) => {
                        model.retain(|(dict, key, _), _| *dict != image.dict || *key != image.key);
                        add(&mut model, &image);
                        cells.insert(image)
                    }
                    Step::AddRows(image) => {
                        add(&mut model, &image);
                        cells.add_rows(&image)
                    }
                    Step::Absorb(images) => {
                        images.iter().for_each(|image| add(&mut model, image));
                        cells.absorb(of_images(images))
                    }
                }

                let mut rows = Model::new();
                cells.images().for_each(|image| add(&mut rows, &image));
                prop_assert_eq!(&rows, &model);
                prop_assert_eq!(cells.row_count(), model.len());
                prop_assert_eq!(cells.cell_count(), cells.images().count());
                prop_assert!(cells.images().all(|image| !image.rows.is_empty()));
                for ((dict, key, row), value) in &model {
                    let at = Op { dict: *dict, key, row: Some(row), value: None };
                    prop_assert_eq!(cells.value(at), Some(value.as_slice()));
                }
                prop_assert_eq!(cells.value(Op { dict: 9, key: &[], row: None, value: None }), None);
                prop_assert!(cells.dictionaries().is_sorted());
                // if the cells are built in a different order, they are equal and have the same bytes
                let again = of_images(cells.images().collect::<Vec<_>>().into_iter().rev());
                prop_assert_eq!(&again, &cells);
                prop_assert_eq!(encode_many(&again), encode_many(&cells));
                prop_assert_eq!(&decode_many::<EncodedCells>("cells", &encode_many(&cells)).unwrap(), &cells);
            }
        }
    }
}
