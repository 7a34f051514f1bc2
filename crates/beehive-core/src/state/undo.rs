//! A transaction's undo log, which rolls back all changes or only the changes since a savepoint.

use hashbrown::DefaultHashBuilder;
use hashbrown::hash_table::HashTable;

/// Number of entries up to which the log is searched linearly. A longer log is searched by hash.
const SEARCHED: usize = 8;

/// Maximum capacity, in entries, of a log passed on to another bee. A larger log is dropped to free its memory.
const KEPT: usize = 1024;

/// Previous values, in the order of the changes. Rollback starts at the end, so an item may occur twice.
#[derive(Debug)]
pub(crate) struct UndoLog<T> {
    entries: Vec<T>,
    /// Index of the first entry after the innermost savepoint. An item changed before the savepoint is logged again
    /// when it changes after it.
    from: u32,
    /// Hash index of the entries from `from` on, if there are many.
    index: Option<Box<Index>>,
}

/// Hash index of the entries of a log.
#[derive(Debug, Default)]
struct Index {
    hasher: DefaultHashBuilder,
    places: HashTable<u32>,
    from: u32,
    /// Entries before this position are in the table.
    upto: u32,
}

/// A savepoint: a position to which a log can be rolled back.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    len: u32,
    /// The value of `from` before the savepoint.
    from: u32,
}

impl<T> Default for UndoLog<T> {
    fn default() -> Self {
        UndoLog { entries: Vec::new(), from: 0, index: None }
    }
}

impl<T> UndoLog<T> {
    /// Records the previous state of an item before it changes, unless an entry since the last savepoint already
    /// records it.
    ///
    /// `hash_of` hashes the item of an entry, and `hash` the item to be recorded.
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
            if self.entries.capacity() == 0 {
                // Most transactions change one item.
                self.entries.reserve_exact(1)
            }
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

    /// Removes all entries and keeps the changes.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.from = 0;
        if self.index.is_some() {
            self.index = None
        }

        match std::mem::needs_drop::<T>() {
            // Drop entries one by one: if two drops panicked during one `Vec::clear`, the process would abort.
            true => while self.entries.pop().is_some() {},
            false => self.entries.clear(),
        }
    }

    /// Removes and returns the last entry.
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.index = None;
        let last = self.entries.pop();
        if self.entries.is_empty() {
            self.from = 0
        }
        last
    }

    /// Takes a savepoint.
    pub(crate) fn mark(&mut self) -> Mark {
        let mark = Mark { len: self.entries.len() as u32, from: self.from };
        self.from = mark.len;
        mark
    }

    /// Removes and returns the last entry since `mark`.
    pub(crate) fn pop_since(&mut self, mark: &Mark) -> Option<T> {
        self.index = None;
        if self.entries.len() > mark.len as usize { self.entries.pop() } else { None }
    }

    /// Releases the savepoint `mark`.
    pub(crate) fn release(&mut self, mark: &Mark) {
        self.from = mark.from
    }
}

/// An undo log borrowed by a bee for a run of transactions. Between runs, it takes up only one word.
#[derive(Debug)]
pub(crate) struct LentLog<T>(Option<Box<UndoLog<T>>>);

impl<T> Default for LentLog<T> {
    fn default() -> Self {
        LentLog(None)
    }
}

impl<T> LentLog<T> {
    /// See [`UndoLog::note`].
    #[inline]
    pub(crate) fn note(
        &mut self,
        is_same: impl Fn(&T) -> bool,
        hash_of: impl Fn(&DefaultHashBuilder, &T) -> u64,
        hash: impl FnOnce(&DefaultHashBuilder) -> u64,
        entry: impl FnOnce() -> T,
    ) {
        self.0.get_or_insert_default().note(is_same, hash_of, hash, entry)
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|log| log.is_empty())
    }

    pub(crate) fn entries(&self) -> &[T] {
        self.0.as_ref().map_or(&[], |log| log.entries())
    }

    /// See [`UndoLog::clear`].
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        if let Some(log) = &mut self.0
            && !log.is_empty()
        {
            log.clear()
        }
    }

    /// See [`UndoLog::pop`].
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.0.as_mut()?.pop()
    }

    /// See [`UndoLog::mark`].
    pub(crate) fn mark(&mut self) -> Mark {
        self.0.as_mut().map_or(Mark::BEGINNING, |log| log.mark())
    }

    /// See [`UndoLog::pop_since`].
    pub(crate) fn pop_since(&mut self, mark: &Mark) -> Option<T> {
        self.0.as_mut()?.pop_since(mark)
    }

    /// See [`UndoLog::release`].
    pub(crate) fn release(&mut self, mark: &Mark) {
        if let Some(log) = &mut self.0 {
            log.release(mark)
        }
    }

    /// Passes the log on to `other`. If `other` has a log or this one has grown too large, drops it instead. A log
    /// with entries stays here, because its entries belong to this dictionary.
    #[inline(always)]
    pub(crate) fn lend(&mut self, other: &mut Self) {
        if self.is_empty() {
            let log = self.0.take().filter(|log| log.entries.capacity() <= KEPT);
            if other.0.is_none() {
                other.0 = log
            }
        }
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
        // Use few hash values so that collisions occur and entries must be compared.
        log.note(|(k, _)| *k == key, |_, (k, _)| k % 3, |_| key % 3, || (key, old))
    }

    #[test]
    fn an_item_is_logged_once() {
        let mut log = UndoLog::default();
        for round in 0..50 {
            (0..40).for_each(|key| note(&mut log, key, round))
        }

        assert_eq!(log.entries().len(), 40);
        assert!(log.entries().iter().all(|(_, old)| *old == 0), "not the value before the first change");

        log.clear();
        note(&mut log, 1, 9);
        assert_eq!(log.entries(), [(1, 9)]);
    }

    #[test]
    fn a_log_is_lent_when_nothing_is_in_it() {
        let note = |log: &mut LentLog<(u64, u32)>, key| log.note(|_| false, |_, _| 0, |_| 0, || (key, 0));
        let (mut one, mut other) = (LentLog::default(), LentLog::default());
        note(&mut one, 1);
        one.lend(&mut other);

        assert_eq!((one.entries(), other.entries()), (&[(1, 0)][..], &[][..]));
        one.clear();
        one.lend(&mut other);
        assert!(one.0.is_none() && other.0.is_some());

        // A dictionary that has a log keeps it; the other log is dropped.
        note(&mut one, 2);
        one.clear();
        note(&mut other, 3);
        one.lend(&mut other);

        assert!(one.0.is_none());
        assert_eq!(other.entries(), [(3, 0)]);
    }

    #[test]
    fn a_log_that_was_long_is_not_lent() {
        let (mut long, mut other) = (LentLog::default(), LentLog::default());
        for key in 0..=KEPT as u64 {
            long.note(|(k, _)| *k == key, |_, (k, _)| *k, |_| key, || (key, 0u32))
        }
        long.clear();
        long.lend(&mut other);
        assert!(long.0.is_none() && other.0.is_none());
    }

    /// Panics on every drop.
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("dropped"))
        }
    }

    #[test]
    fn entries_that_panic_on_drop_are_dropped_one_by_one() {
        let mut log = LentLog::default();
        (0..3).for_each(|_| log.note(|_| false, |_, _| 0, |_| 0, || Bomb));
        let mut panics = 0;
        while crate::panics::catch(std::panic::AssertUnwindSafe(|| log.clear())).is_err() {
            panics += 1
        }
        assert!(log.is_empty());
        assert_eq!(panics, 3);
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
        assert_eq!(log.entries().len(), 21, "twenty of the items were logged before the savepoint");
    }
}
