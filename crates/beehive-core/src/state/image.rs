//! State as data: redo operations of a transaction, images of cells, and their encoding.

use crate::limits;
use serde::de::DeserializeOwned;
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

/// Bytes that are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// What was being read.
    pub what: &'static str,
    /// What was wrong with it.
    pub why: String,
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot decode {}: {}", self.what, self.why)
    }
}
impl std::error::Error for DecodeError {}

impl Op {
    /// About what it takes in a record.
    pub(crate) fn size(&self) -> usize {
        const BESIDES: usize = 64;
        let optional = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len);
        BESIDES + self.key.len() + optional(&self.row) + optional(&self.value)
    }
}

fn configuration() -> impl bincode::config::Config {
    bincode::config::standard().with_fixed_int_encoding().with_limit::<{ limits::ENCODED_BYTES_MAX }>()
}

/// Encodes a value for a log or a peer.
///
/// # Panics
///
/// If it cannot be encoded: its `Serialize` refuses (a path that is not UTF-8), or it is too large to be read again. Nothing
/// may go on as if it had been written down: what was about to be done is undone, as with any other panic.
pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    must_encode(value, limits::RECORD_BYTES_MAX)
}

/// As [`encode`], for what is made of many values: a record, or all that a bee has.
pub(crate) fn encode_many<T: Serialize + ?Sized>(values: &T) -> Vec<u8> {
    must_encode(values, limits::ENCODED_BYTES_MAX)
}

fn must_encode<T: Serialize + ?Sized>(value: &T, bytes_max: usize) -> Vec<u8> {
    try_encode(value, bytes_max).unwrap_or_else(|why| {
        panic!("a value of type `{}` cannot be encoded: {why}", std::any::type_name::<T>())
    })
}

fn try_encode<T: Serialize + ?Sized>(value: &T, bytes_max: usize) -> Result<Vec<u8>, String> {
    let bytes = bincode::serde::encode_to_vec(value, configuration()).map_err(|error| error.to_string())?;
    match bytes.len() <= bytes_max {
        true => Ok(bytes),
        false => Err(format!("it takes {} bytes, more than the {bytes_max} that are allowed", bytes.len())),
    }
}

/// A value in words: as JSON, or, where JSON cannot say it, as its bytes.
pub(crate) fn words<T: Serialize + ?Sized>(value: &T) -> String {
    let bytes = || try_encode(value, limits::ENCODED_BYTES_MAX).map(|bytes| format!("{bytes:02x?}"));
    serde_json::to_string(value).unwrap_or_else(|_| bytes().unwrap_or_else(|why| format!("({why})")))
}

/// Decodes what [`encode`] made; all of the bytes must be used.
pub(crate) fn decode<T: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T, DecodeError> {
    match bincode::serde::decode_from_slice(bytes, configuration()) {
        Ok((value, used)) if used == bytes.len() => Ok(value),
        Ok((_, used)) => {
            Err(DecodeError { what, why: format!("{} bytes are left over", bytes.len() - used) })
        }
        Err(error) => Err(DecodeError { what, why: error.to_string() }),
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
    pub(crate) fn dictionaries(&self) -> impl Iterator<Item = u32> {
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
