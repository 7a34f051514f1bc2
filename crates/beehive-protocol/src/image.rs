//! A bee's cells in encoded form: images of cells, and the copy kept by a follower.

use crate::Op;
use crate::few_map::FewMap;
use serde::de::{SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;
use std::fmt::{Debug, Formatter};

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
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EncodedCells {
    /// Keys and values in exactly sized blocks.
    rows: FewMap<Key, Box<[u8]>>,
}

/// The key of a row: dictionary and length of the cell's key, four bytes each, then the cell's key, then the row's key.
/// The rows of a cell are therefore next to each other in the order of the bytes.
type Key = Box<[u8]>;

/// A key that is looked up.
type Wanted = SmallVec<[u8; 96]>;

/// Returns what the keys of all rows of a cell begin with.
fn cell(dict: u32, key: &[u8]) -> Wanted {
    let mut wanted = Wanted::new();
    wanted.extend_from_slice(&dict.to_be_bytes());
    wanted.extend_from_slice(&u32::try_from(key.len()).unwrap_or(u32::MAX).to_be_bytes());
    wanted.extend_from_slice(key);
    wanted
}

/// Splits the key of a row into the dictionary, the cell's key and the row's key.
fn split(key: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let (dict, rest) = key.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (key, row) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    Some((u32::from_be_bytes(*dict), key, row))
}

impl EncodedCells {
    /// Applies one change.
    pub fn apply(&mut self, op: Op) {
        let mut wanted = cell(op.dict, op.key);
        wanted.extend_from_slice(op.row.unwrap_or_default());
        match (op.value, self.rows.get_mut(&*wanted)) {
            // most changes keep the length of the value, so they need no allocation
            (Some(value), Some(known)) if known.len() == value.len() => known.copy_from_slice(value),
            (Some(value), Some(known)) => *known = value.into(),
            (Some(value), None) => self.rows.insert(wanted.as_slice().into(), value.into()),
            (None, Some(_)) => self.rows.remove(&*wanted),
            (None, None) => {}
        }
    }

    /// Returns the number of rows. The value of a `Dict` is one row.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number of cells.
    pub fn cell_count(&self) -> usize {
        let mut last = None;
        let cells = self.rows.iter().filter_map(|(key, _)| split(key)).map(|(dict, key, _)| (dict, key));
        cells.filter(|cell| last.replace(*cell) != Some(*cell)).count()
    }

    /// Returns the dictionary of each row, in ascending order. A dictionary with several rows appears several times.
    pub fn dictionaries(&self) -> impl Iterator<Item = u32> {
        self.rows.iter().filter_map(|(key, _)| split(key)).map(|(dict, _, _)| dict)
    }

    /// Adds the cells of a bee that merged into this one.
    pub fn absorb(&mut self, other: EncodedCells) {
        other.rows.into_iter().for_each(|(key, value)| self.rows.insert(key, value))
    }

    /// Returns all cells, ordered by dictionary, length of the encoded key, and encoded key.
    pub fn images(&self) -> impl Iterator<Item = CellImage> {
        let mut rows = self.rows.iter().peekable();
        std::iter::from_fn(move || {
            let (key, value) = rows.next()?;
            let (dict, key, row) = split(key)?;
            let mut image = CellImage { dict, key: key.to_vec(), rows: vec![(row.to_vec(), value.to_vec())] };
            while let Some((next, value)) = rows.next_if(|(next, _)| {
                split(next).is_some_and(|(next_dict, next_key, _)| (next_dict, next_key) == (dict, key))
            }) {
                let (_, _, row) = split(next)?;
                image.rows.push((row.to_vec(), value.to_vec()))
            }
            Some(image)
        })
    }

    /// Adds rows to a cell.
    pub fn add_rows(&mut self, image: CellImage) {
        let prefix = cell(image.dict, &image.key);
        for (row, value) in image.rows {
            let mut wanted = prefix.clone();
            wanted.extend_from_slice(&row);
            self.rows.insert(wanted.as_slice().into(), value.into())
        }
    }

    /// Replaces a cell.
    pub fn insert(&mut self, image: CellImage) {
        let prefix = cell(image.dict, &image.key);
        let rows = self.rows.from(&*prefix).map(|(key, _)| key);
        let old: Vec<Key> = rows.take_while(|key| key.starts_with(&prefix)).cloned().collect();
        old.iter().for_each(|key| self.rows.remove(key));
        self.add_rows(image)
    }
}

impl Debug for EncodedCells {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.images()).finish()
    }
}

impl Serialize for EncodedCells {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // one image at a time, because a bee may be large
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
                    cells.add_rows(image)
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
        images.into_iter().for_each(|image| cells.add_rows(image));
        cells
    }

    proptest! {
        /// Whatever is done, with few rows or many, the cells are those of a plain map.
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
                        cells.add_rows(image)
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
                prop_assert!(cells.dictionaries().is_sorted());
                // built in another order, the cells are equal and have the same bytes
                let again = of_images(cells.images().collect::<Vec<_>>().into_iter().rev());
                prop_assert_eq!(&again, &cells);
                prop_assert_eq!(encode_many(&again), encode_many(&cells));
                prop_assert_eq!(&decode_many::<EncodedCells>("cells", &encode_many(&cells)).unwrap(), &cells);
            }
        }
    }
}
