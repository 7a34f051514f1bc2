//! State as data: redo operations of a transaction, images of cells, and their encoding.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One change of a committed transaction. Followers apply these; they do not run handlers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Op {
    /// Position of the dictionary in its app.
    pub dict: u32,
    /// Encoded key of the cell.
    pub key: Vec<u8>,
    /// Encoded key of the row; none in a `Dict`.
    pub row: Option<Vec<u8>>,
    /// Encoded new value; none when it was removed.
    pub value: Option<Vec<u8>>,
}

/// One cell of one dictionary as bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellImage {
    /// Position of the dictionary in its app.
    pub dict: u32,
    /// Encoded key.
    pub key: Vec<u8>,
    /// Encoded rows, in key order of their type; a `Dict`'s value is the row with the empty key.
    pub rows: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Op {
    /// About what it takes in a record.
    pub fn size(&self) -> usize {
        const BESIDES: usize = 64;
        let optional = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len);
        BESIDES + self.key.len() + optional(&self.row) + optional(&self.value)
    }
}

/// Rows of one cell: key → value.
type EncodedRows = BTreeMap<Vec<u8>, Vec<u8>>;

/// The committed cells of one bee as bytes: what a follower keeps, fed by redo operations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncodedCells {
    /// By dictionary and key.
    cells: BTreeMap<(u32, Vec<u8>), EncodedRows>,
}

impl EncodedCells {
    /// Applies one committed change.
    pub fn apply(&mut self, op: &Op) {
        let cell = (op.dict, op.key.clone());
        let row = op.row.clone().unwrap_or_default();
        match &op.value {
            Some(value) => {
                self.cells.entry(cell).or_default().insert(row, value.clone());
            }
            None => {
                if let Some(rows) = self.cells.get_mut(&cell) {
                    rows.remove(&row);
                    if rows.is_empty() {
                        self.cells.remove(&cell);
                    }
                }
            }
        }
    }

    /// The dictionaries that have a cell, each once or more often.
    pub fn dictionaries(&self) -> impl Iterator<Item = u32> {
        self.cells.keys().map(|(dict, _)| *dict)
    }

    /// Takes over the cells of another bee.
    pub fn absorb(&mut self, other: EncodedCells) {
        self.cells.extend(other.cells)
    }

    /// All cells.
    pub fn images(&self) -> impl Iterator<Item = CellImage> {
        self.cells.iter().map(|((dict, key), rows)| CellImage {
            dict: *dict,
            key: key.clone(),
            rows: rows.iter().map(|(r, v)| (r.clone(), v.clone())).collect(),
        })
    }

    /// Replaces a cell.
    pub fn insert(&mut self, image: CellImage) {
        self.cells.insert((image.dict, image.key), image.rows.into_iter().collect());
    }
}
