//! The cells of a bee in encoded form: images of cells, and the copy that a follower keeps.

use crate::Op;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One cell of one dictionary, encoded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellImage {
    /// Position of the dictionary in its app.
    pub dict: u32,
    /// Encoded key of the cell.
    pub key: Vec<u8>,
    /// Encoded key and value of each row. The value of a `Dict` is a single row with an empty key.
    pub rows: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The encoded rows of one cell: values by key.
type EncodedRows = BTreeMap<Vec<u8>, Vec<u8>>;

/// The committed cells of one bee, encoded. A follower keeps them up to date by applying redo operations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncodedCells {
    /// Rows by dictionary and encoded key of the cell. No cell is empty.
    cells: BTreeMap<(u32, Vec<u8>), EncodedRows>,
}

impl EncodedCells {
    /// Applies one change.
    pub fn apply(&mut self, op: Op) {
        let (cell, row) = ((op.dict, op.key.to_vec()), op.row.unwrap_or_default());
        match op.value {
            Some(value) => {
                let rows = self.cells.entry(cell).or_default();
                match rows.get_mut(row) {
                    // most changes keep the length of the value, so they need no allocation
                    Some(known) if known.len() == value.len() => known.copy_from_slice(value),
                    Some(known) => *known = value.to_vec(),
                    None => {
                        rows.insert(row.to_vec(), value.to_vec());
                    }
                }
            }
            None => {
                if let Some(rows) = self.cells.get_mut(&cell) {
                    rows.remove(row);
                    if rows.is_empty() {
                        self.cells.remove(&cell);
                    }
                }
            }
        }
    }

    /// Returns the dictionary of each cell, in ascending order. A dictionary with several cells appears several times.
    pub fn dictionaries(&self) -> impl Iterator<Item = u32> {
        self.cells.keys().map(|(dict, _)| *dict)
    }

    /// Adds the cells of a bee that merged into this one.
    pub fn absorb(&mut self, other: EncodedCells) {
        self.cells.extend(other.cells)
    }

    /// Returns all cells, ordered by dictionary and encoded key.
    pub fn images(&self) -> impl Iterator<Item = CellImage> {
        self.cells.iter().map(|((dict, key), rows)| CellImage {
            dict: *dict,
            key: key.clone(),
            rows: rows.iter().map(|(r, v)| (r.clone(), v.clone())).collect(),
        })
    }

    /// Adds rows to a cell.
    pub fn add_rows(&mut self, image: CellImage) {
        if !image.rows.is_empty() {
            self.cells.entry((image.dict, image.key)).or_default().extend(image.rows)
        }
    }

    /// Replaces a cell.
    pub fn insert(&mut self, image: CellImage) {
        self.cells.insert((image.dict, image.key), image.rows.into_iter().collect());
    }
}
