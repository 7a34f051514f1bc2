//! Cells as keys of maps, and the difference between two contents of a cell.

use crate::state::image::{EncodedCells, Op, Redo};
use std::collections::BTreeMap;

/// A cell: dictionary, then encoded key.
pub(super) type Cell = Box<[u8]>;

pub(super) fn cell(dict: u32, key: &[u8]) -> Cell {
    [&dict.to_be_bytes(), key].concat().into()
}

pub(super) fn split(cell: &[u8]) -> (u32, &[u8]) {
    match cell.split_first_chunk() {
        Some((dict, key)) => (u32::from_be_bytes(*dict), key),
        None => (0, &[]),
    }
}

pub(super) fn cells(rows: &EncodedCells) -> Vec<Cell> {
    rows.cells().map(|(dict, key)| cell(dict, key)).collect()
}

/// Appends the changes that lead from one content of a cell to another.
pub(super) fn change(out: &mut Redo, cell: &[u8], from: Option<&EncodedCells>, to: Option<&EncodedCells>) {
    let (dict, key) = split(cell);
    let rows = |of: Option<&EncodedCells>| -> BTreeMap<Vec<u8>, Vec<u8>> {
        of.into_iter()
            .flat_map(|of| of.rows_of(dict, key))
            .map(|(row, value)| (row.into(), value.into()))
            .collect()
    };
    let (from, to) = (rows(from), rows(to));
    // the value of a `Dict` is a row with an empty key
    let op = |row, value| Op { dict, key, row, value };
    for row in from.keys().filter(|row| !to.contains_key(*row)) {
        out.push(op((!row.is_empty()).then_some(row), None))
    }
    for (row, value) in to.iter().filter(|(row, value)| from.get(*row) != Some(value)) {
        out.push(op((!row.is_empty()).then_some(row), Some(value)))
    }
}
