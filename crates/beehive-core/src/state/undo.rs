//! What a transaction changed, so that it can be undone: as a whole, or back to a mark.

/// Entries that are searched before another one is made for the same thing.
const SEARCHED: usize = 8;

/// Old contents, in the order of the changes. Undone from the end, so that a thing may be in it twice.
#[derive(Debug)]
pub(crate) struct UndoLog<T> {
    entries: Vec<T>,
    /// Entries before it are older than the innermost mark, and do not stand for changes after it.
    from: u32,
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
        UndoLog { entries: Vec::new(), from: 0 }
    }
}

impl<T> UndoLog<T> {
    /// Notes what a thing was before it is changed, unless an entry since the last mark says it.
    #[inline]
    pub(crate) fn note(&mut self, is_same: impl Fn(&T) -> bool, entry: impl FnOnce() -> T) {
        let since = self.entries.get(self.from as usize..).unwrap_or_default();
        if since.len() <= SEARCHED && since.iter().any(is_same) {
            return;
        }
        self.entries.push(entry())
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
        self.from = 0
    }

    /// The last entry, taken out.
    pub(crate) fn pop(&mut self) -> Option<T> {
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
