//! What a transaction changed, so that it can be undone: as a whole, or back to a mark.

use hashbrown::DefaultHashBuilder;
use hashbrown::hash_table::HashTable;

/// Entries that are searched one by one; more are found by hash.
const SEARCHED: usize = 8;

/// Old contents, in the order of the changes. Undone from the end, so that a thing may be in it twice.
#[derive(Debug)]
pub(crate) struct UndoLog<T> {
    entries: Vec<T>,
    /// Entries before it are older than the innermost mark, and do not stand for changes after it.
    from: u32,
    /// Where to find the entries after `from`, if there are many.
    index: Option<Box<Index>>,
}

/// Entries by hash.
#[derive(Debug, Default)]
struct Index {
    hasher: DefaultHashBuilder,
    places: HashTable<u32>,
    from: u32,
    /// Those before it are in the table.
    upto: u32,
}

/// A point in a log that can be gone back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    len: u32,
    /// What `from` was before.
    from: u32,
}

impl<T> Default for UndoLog<T> {
    fn default() -> Self {
        UndoLog { entries: Vec::new(), from: 0, index: None }
    }
}

impl<T> UndoLog<T> {
    /// Notes what a thing was before it is changed, unless an entry since the last mark says it.
    ///
    /// `hash_of` is the hash of what an entry is about, `hash` that of the thing.
    #[inline]
    pub(crate) fn note(
        &mut self,
        is_same: impl Fn(&T) -> bool,
        hash_of: impl Fn(&DefaultHashBuilder, &T) -> u64,
        hash: impl FnOnce(&DefaultHashBuilder) -> u64,
        entry: impl FnOnce() -> T,
    ) {
        let since = self.entries.get(self.from as usize..).unwrap_or_default();
        let is_noted = match since.len() <= SEARCHED {
            true => since.iter().any(is_same),
            false => self.is_indexed(is_same, hash_of, hash),
        };
        if !is_noted {
            self.entries.push(entry())
        }
    }

    #[cold]
    #[inline(never)]
    fn is_indexed(
        &mut self,
        is_same: impl Fn(&T) -> bool,
        hash_of: impl Fn(&DefaultHashBuilder, &T) -> u64,
        hash: impl FnOnce(&DefaultHashBuilder) -> u64,
    ) -> bool {
        let entries = &self.entries;
        let index = self.index.get_or_insert_default();
        if index.from != self.from {
            index.places.clear();
            (index.from, index.upto) = (self.from, self.from)
        }
        let Index { hasher, places, upto, .. } = &mut **index;
        let hash_at = |at: &u32| entries.get(*at as usize).map_or(0, |entry| hash_of(hasher, entry));
        for at in *upto..entries.len() as u32 {
            places.insert_unique(hash_at(&at), at, hash_at);
        }
        *upto = entries.len() as u32;
        places.find(hash(hasher), |at| entries.get(*at as usize).is_some_and(&is_same)).is_some()
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn entries(&self) -> &[T] {
        &self.entries
    }

    /// Forgets everything: it is kept as it is.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.from = 0;
        if self.index.is_some() {
            self.index = None
        }
    }

    /// The last entry, taken out.
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.index = None;
        let last = self.entries.pop();
        if self.entries.is_empty() {
            self.from = 0
        }
        last
    }

    /// Begins a part that can be undone by itself.
    pub(crate) fn mark(&mut self) -> Mark {
        let mark = Mark { len: self.entries.len() as u32, from: self.from };
        self.from = mark.len;
        mark
    }

    /// The last entry since `mark`, taken out.
    pub(crate) fn pop_since(&mut self, mark: &Mark) -> Option<T> {
        self.index = None;
        if self.entries.len() > mark.len as usize { self.entries.pop() } else { None }
    }

    /// Ends the part that began at `mark`.
    pub(crate) fn release(&mut self, mark: &Mark) {
        self.from = mark.from
    }
}

impl Mark {
    /// The beginning of the transaction.
    pub(crate) const BEGINNING: Mark = Mark { len: 0, from: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(log: &mut UndoLog<(u64, u32)>, key: u64, old: u32) {
        // all in one place: what is found must be looked at
        log.note(|(k, _)| *k == key, |_, (k, _)| k % 3, |_| key % 3, || (key, old))
    }

    #[test]
    fn a_thing_is_noted_once_however_many_there_are() {
        let mut log = UndoLog::default();
        for round in 0..50 {
            (0..40).for_each(|key| note(&mut log, key, round))
        }
        assert_eq!(log.entries().len(), 40);
        assert!(log.entries().iter().all(|(_, old)| *old == 0), "as it was before the first change");
        log.clear();
        note(&mut log, 1, 9);
        assert_eq!(log.entries(), [(1, 9)]);
    }

    #[test]
    fn a_part_notes_by_itself() {
        let mut log = UndoLog::default();
        (0..20).for_each(|key| note(&mut log, key, 0));
        let mark = log.mark();
        (0..2).for_each(|round| (0..20).for_each(|key| note(&mut log, key, 1 + round)));
        assert_eq!(log.entries().len(), 40);
        let mut undone = 0;
        while let Some((_, old)) = log.pop_since(&mark) {
            assert_eq!(old, 1);
            undone += 1
        }
        log.release(&mark);
        assert_eq!(undone, 20);
        (0..21).for_each(|key| note(&mut log, key, 5));
        assert_eq!(log.entries().len(), 21, "twenty are noted from before the part");
    }
}
