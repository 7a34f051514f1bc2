//! The rows of a small bee, packed into one buffer.
//!
//! A hive may have millions of bees, and nearly every bee has one row or a few. Three memory blocks for each row (the
//! list, the key and the value) would take more memory than the row itself. To find a row, the earlier rows have to be
//! walked, so the buffer is only for few rows.

use std::ops::Range;

/// One row of a cell. A `Dict` value is a single row with an empty key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row<'a> {
    /// Position of the dictionary in its app.
    pub(crate) dict: u32,
    /// Encoded key of the cell.
    pub(crate) key: &'a [u8],
    /// Encoded key of the row.
    pub(crate) row: &'a [u8],
    /// Encoded value.
    pub(crate) value: &'a [u8],
}

impl<'a> Row<'a> {
    /// Returns the row's sort key: dictionary, length of the cell's key, cell's key, row's key.
    pub(crate) fn place(&self) -> (u32, usize, &'a [u8], &'a [u8]) {
        (self.dict, self.key.len(), self.key, self.row)
    }

    /// Returns an estimate of the bytes that the row takes in a record, if no other row has the same cell.
    pub(crate) fn size(&self) -> usize {
        const NUMBERS: usize = 8;
        NUMBERS + self.key.len() + self.row.len() + self.value.len()
    }
}

/// Rows in ascending order of their places. A row is four numbers (the dictionary, and the lengths of the cell's key, of
/// the row's key and of the value), followed by the cell's key, the row's key and the value. Equal rows have equal bytes.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct PackedRows {
    bytes: Box<[u8]>,
}

/// Splits off a number: seven bits in each byte, the lowest first. The highest bit of a byte is set if another byte
/// follows.
fn number(rest: &mut &[u8]) -> Option<u32> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (byte, more) = rest.split_first()?;
        *rest = more;
        number |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if *byte < 0x80 {
            return Some(number);
        }
        shift += 7;
    }
}

fn add_number(mut number: u32, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7
    }
    bytes.push(number as u8)
}

fn add_row(Row { dict, key, row, value }: Row, bytes: &mut Vec<u8>) {
    [dict, length(key), length(row), length(value)].into_iter().for_each(|number| add_number(number, bytes));
    [key, row, value].into_iter().for_each(|part| bytes.extend_from_slice(part))
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

/// Returns the number of bytes that a row takes.
fn bytes_of(row: &Row) -> usize {
    let numbers = [row.dict, length(row.key), length(row.row), length(row.value)];
    let digits = |number: u32| (u32::BITS - (number | 1).leading_zeros()).div_ceil(7) as usize;
    numbers.into_iter().map(digits).sum::<usize>() + row.key.len() + row.row.len() + row.value.len()
}

/// Splits off the first row.
fn split<'a>(rest: &mut &'a [u8]) -> Option<Row<'a>> {
    let dict = number(rest)?;
    let lengths = [number(rest)?, number(rest)?, number(rest)?];
    let mut part = |length: u32| -> Option<&'a [u8]> {
        let (part, more) = rest.split_at_checked(length as usize)?;
        *rest = more;
        Some(part)
    };
    Some(Row { dict, key: part(lengths[0])?, row: part(lengths[1])?, value: part(lengths[2])? })
}

/// The position of a row, or the position at which it would be inserted.
struct Found {
    /// The bytes of the row; empty if there is none.
    all: Range<usize>,
    /// The bytes of its value, if there is a row.
    value: Option<Range<usize>>,
}

impl PackedRows {
    /// Returns the number of bytes in the buffer.
    pub(crate) fn byte_count(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the rows in ascending order of their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        let mut rest = &*self.bytes;
        std::iter::from_fn(move || split(&mut rest))
    }

    fn find(&self, wanted: &Row) -> Found {
        let (mut rest, all) = (&*self.bytes, self.bytes.len());
        loop {
            let start = all - rest.len();
            let Some(row) = split(&mut rest) else { break Found { all: start..start, value: None } };
            let end = all - rest.len();
            match row.place().cmp(&wanted.place()) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => {
                    break Found { all: start..end, value: Some(end - row.value.len()..end) };
                }
                std::cmp::Ordering::Greater => break Found { all: start..start, value: None },
            }
        }
    }

    /// Replaces the bytes in `range` by a row, or by nothing.
    fn replace(&mut self, range: Range<usize>, row: Option<Row>) {
        let (before, after) = (self.bytes.get(..range.start), self.bytes.get(range.end..));
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        let length = before.len() + row.as_ref().map_or(0, bytes_of) + after.len();
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(before);
        if let Some(row) = row {
            add_row(row, &mut bytes)
        }
        bytes.extend_from_slice(after);
        debug_assert_eq!(bytes.len(), length, "the buffer has the size that it was given");
        self.bytes = bytes.into_boxed_slice()
    }

    /// Sets a row. Returns whether the row is new.
    pub(crate) fn set(&mut self, row: Row) -> bool {
        let Found { all, value } = self.find(&row);
        let is_new = value.is_none();
        match value.and_then(|value| self.bytes.get_mut(value)) {
            // most changes keep the length of the value, so they need no allocation
            Some(value) if value.len() == row.value.len() => value.copy_from_slice(row.value),
            _ => self.replace(all, Some(row)),
        }
        is_new
    }

    /// Removes the row at the place of `row`; the value of `row` is ignored.
    pub(crate) fn remove(&mut self, row: &Row) {
        let found = self.find(row);
        if found.value.is_some() {
            self.replace(found.all, None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_takes_four_bytes_more_than_its_parts() {
        let mut rows = PackedRows::default();
        let row = |value| Row { dict: 3, key: &[1; 8], row: &[], value };
        assert!(rows.set(row(&[0; 8])) && !rows.set(row(&[1; 8])));
        assert_eq!(rows.byte_count(), 20);
        assert!(rows.iter().eq([row(&[1; 8])]));
        rows.remove(&row(&[]));
        assert_eq!(rows.byte_count(), 0);
    }

    #[test]
    fn numbers_have_any_size() {
        for number in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u32::MAX - 1, u32::MAX] {
            let mut bytes = Vec::new();
            add_number(number, &mut bytes);
            let mut rest = &*bytes;
            assert_eq!((super::number(&mut rest), rest.len()), (Some(number), 0));
            let row = Row { dict: number, key: &[], row: &[], value: &[] };
            assert_eq!(bytes_of(&row), bytes.len() + 3, "{number}");
        }
    }
}
