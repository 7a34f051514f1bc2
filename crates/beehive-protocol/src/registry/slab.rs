//! Entries that keep their positions, and an index that finds them by hash.
//!
//! Together they take the size of an entry plus 8 bytes for each entry: the entries fill chunks without spare capacity,
//! and the index stores 32-bit positions.

use hashbrown::HashTable;

/// Position of an entry.
pub(super) type Position = u32;

/// No position.
pub(super) const NOWHERE: Position = Position::MAX;

/// Maximum number of entries in a slab.
pub(super) const ENTRIES_MAX: u32 = NOWHERE;

/// Number of entries in a chunk.
const CHUNK: usize = 1 << 10;

/// An entry of a slab. The vacant ones form a list.
pub(super) trait Entry {
    /// Returns a vacant entry, which leads to the next one.
    fn vacant(next: Position) -> Self;
    /// Returns the next vacant entry if this one is vacant.
    fn next_vacant(&self) -> Option<Position>;
}

/// Entries that keep their positions.
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    chunks: Vec<Vec<T>>,
    /// The first vacant entry.
    vacant: Position,
    /// Number of entries that are not vacant.
    len: u32,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { chunks: Vec::new(), vacant: NOWHERE, len: 0 }
    }
}

impl<T: Entry> Slab<T> {
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn get(&self, at: Position) -> Option<&T> {
        self.chunks.get(at as usize / CHUNK)?.get(at as usize % CHUNK)
    }

    pub(super) fn get_mut(&mut self, at: Position) -> Option<&mut T> {
        self.chunks.get_mut(at as usize / CHUNK)?.get_mut(at as usize % CHUNK)
    }

    /// Adds an entry, and returns its position. The caller ensures that there are fewer than [`ENTRIES_MAX`].
    pub(super) fn add(&mut self, entry: T) -> Position {
        debug_assert!(self.len < ENTRIES_MAX);
        self.len += 1;
        if self.vacant != NOWHERE {
            let at = self.vacant;
            if let Some(old) = self.get_mut(at) {
                let next = old.next_vacant();
                debug_assert!(next.is_some(), "entry {at} is listed as vacant");
                *old = entry;
                self.vacant = next.unwrap_or(NOWHERE);
            }
            return at;
        }

        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(entry),
            _ => self.chunks.push(vec![entry]),
        }
        let (full, last) = (self.chunks.len() - 1, self.chunks.last().map_or(0, Vec::len));
        (full * CHUNK + last - 1) as Position
    }

    /// Makes an entry vacant.
    pub(super) fn remove(&mut self, at: Position) {
        let next = self.vacant;
        if let Some(entry) = self.get_mut(at) {
            debug_assert!(entry.next_vacant().is_none(), "entry {at} is removed twice");
            *entry = T::vacant(next);
            self.vacant = at;
            self.len -= 1;
        }
    }

    /// Returns the entries with their positions, in the order of the positions.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Position, &T)> {
        (0..).zip(self.chunks.iter().flatten()).filter(|(_, entry)| entry.next_vacant().is_none())
    }
}

/// Number of tables of an index.
const PARTS: usize = 8;

/// Finds positions by hash.
///
/// A hash table doubles when it is full, so a single table would be nearly empty from time to time, and adding one
/// entry would sometimes take long. Each of these tables is 1.09 times as large as the previous one. Therefore they
/// double one after the other, and together they always take about the same amount of memory for each entry.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    parts: [HashTable<Position>; PARTS],
}

/// The table of an index for each value of eight bits of the hash.
const PART_OF: [u8; 256] = {
    const SIZES: [usize; PARTS] = [23, 25, 28, 30, 33, 36, 39, 42];
    let mut part_of = [0; 256];
    let (mut part, mut at, mut left) = (0, 0, SIZES[0]);
    while at < 256 {
        if left == 0 {
            part += 1;
            left = SIZES[part];
        }
        part_of[at] = part as u8;
        left -= 1;
        at += 1;
    }
    part_of
};

/// Returns the number of the table for a hash. A table itself uses the lowest and the highest bits.
const fn part_of(hash: u64) -> usize {
    PART_OF[(hash >> 40) as u8 as usize] as usize
}

impl Index {
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(Position) -> bool) -> Option<Position> {
        self.parts.get(part_of(hash))?.find(hash, |at| is_it(*at)).copied()
    }

    /// Adds a position. `hash_of` returns the hash of a position that was added earlier.
    pub(super) fn add(&mut self, hash: u64, at: Position, hash_of: impl Fn(Position) -> u64) {
        if let Some(part) = self.parts.get_mut(part_of(hash)) {
            part.insert_unique(hash, at, |at| hash_of(*at));
        }
    }

    /// Removes a position.
    pub(super) fn remove(&mut self, hash: u64, at: Position) {
        let found = self.parts.get_mut(part_of(hash)).map(|part| part.find_entry(hash, |known| *known == at));
        debug_assert!(matches!(found, Some(Ok(_))), "position {at} is not in the index");
        if let Some(Ok(found)) = found {
            found.remove();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(HashTable::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_an_index_have_the_sizes_that_they_should() {
        let size = |part| PART_OF.iter().filter(|of| **of == part).count() as f64;
        for part in 1..PARTS as u8 {
            let ratio = size(part) / size(part - 1);
            assert!(
                (1.05..1.13).contains(&ratio),
                "table {part} is {ratio} times as large as the one before"
            );
        }
        assert!((1.9..2.1).contains(&(size(7) * 1.09 / size(0))), "then the first one has doubled");
    }
}
