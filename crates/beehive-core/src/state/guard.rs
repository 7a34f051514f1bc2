//! The strict guard: checks that the transaction on this thread touches only mapped cells. It reuses the hash by which
//! the dictionary finds the cell.
//!
//! The guard is a thread-local of plain words, so a dictionary needs no pointer to it, and a check costs a few
//! comparisons. A transaction never leaves its thread, because handlers are synchronous.

use crate::cell::CellId;
use crate::key::KeyEncoding;
use crate::mapper::DictMeta;
use std::cell::{Cell, RefCell};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// No transaction is running, so every access is an error.
    Closed,
    /// Only the mapped cells are accessible.
    Strict,
    /// Every access is allowed and recorded.
    Record,
}

struct Guard {
    mode: Cell<Mode>,
    /// The first three mapped cells. 0 means none.
    first: [Cell<u64>; 3],
    has_more: Cell<bool>,
    seed: Cell<u64>,
    /// Bit mask of the dictionaries whose whole group is one cell.
    whole: Cell<u64>,
    violated: Cell<bool>,
}

thread_local! {
    static GUARD: Guard = const {
        Guard {
            mode: Cell::new(Mode::Closed),
            first: [Cell::new(0), Cell::new(0), Cell::new(0)],
            has_more: Cell::new(false),
            seed: Cell::new(0),
            whole: Cell::new(0),
            violated: Cell::new(false),
        }
    };
    static MORE: RefCell<Vec<CellId>> = const { RefCell::new(Vec::new()) };
    static ACCESSES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static VIOLATION: RefCell<Option<Violation>> = const { RefCell::new(None) };
}

/// A handler touched a cell that its map does not name. The transaction is rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "testing"), allow(unreachable_pub))]
pub struct Violation {
    /// The dictionary and key, as text.
    pub cell: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the handler touched `{}`, which its map does not name for this message", self.cell)
    }
}

/// The open guard of a run of transactions over the same cells. Dropping it closes the guard, even during a panic. If
/// another guard was open on this thread because a handler called a hive directly (which is discouraged), dropping this
/// one restores it.
pub(crate) struct Held(Option<Box<Outer>>);

/// The saved state of an open guard while a nested guard replaces it.
struct Outer {
    mode: Mode,
    first: [u64; 3],
    more: Option<Vec<CellId>>,
    seed: u64,
    whole: u64,
    violated: bool,
    violation: Option<Violation>,
}

impl Outer {
    #[cold]
    fn take(guard: &Guard) -> Box<Outer> {
        let more = guard.has_more.replace(false).then(|| MORE.with_borrow_mut(std::mem::take));
        Box::new(Outer {
            mode: guard.mode.replace(Mode::Closed),
            first: [guard.first[0].get(), guard.first[1].get(), guard.first[2].get()],
            more,
            seed: guard.seed.get(),
            whole: guard.whole.get(),
            violated: guard.violated.replace(false),
            violation: VIOLATION.with_borrow_mut(Option::take),
        })
    }

    #[cold]
    fn put_back(self, guard: &Guard) {
        for (slot, cell) in guard.first.iter().zip(self.first) {
            slot.set(cell)
        }

        guard.has_more.set(self.more.is_some());
        MORE.with_borrow_mut(|more| *more = self.more.unwrap_or_default());
        guard.seed.set(self.seed);
        guard.whole.set(self.whole);
        guard.violated.set(self.violated);
        VIOLATION.with_borrow_mut(|violation| *violation = self.violation);
        guard.mode.set(self.mode);
    }
}

impl Held {
    /// Opens the guard so that transactions on this thread may touch only `cells`.
    #[inline]
    pub(crate) fn strict(seed: u64, whole: u64, cells: &[CellId]) -> Held {
        GUARD.with(|guard| {
            let outer = (guard.mode.get() != Mode::Closed).then(|| Outer::take(guard));
            guard.seed.set(seed);
            guard.whole.set(whole);
            guard.violated.set(false);
            for (at, slot) in guard.first.iter().enumerate() {
                slot.set(cells.get(at).map_or(0, |c| c.0));
            }

            let more = cells.len() > guard.first.len();
            guard.has_more.set(more);
            if more {
                MORE.with_borrow_mut(|m| {
                    m.clear();
                    m.extend_from_slice(&cells[guard.first.len()..]);
                    m.sort_unstable();
                });
            }

            guard.mode.set(Mode::Strict);
            Held(outer)
        })
    }

    /// Opens the guard in recording mode: every access is allowed and recorded.
    #[cfg_attr(not(feature = "testing"), allow(dead_code))]
    pub(crate) fn record(seed: u64, whole: u64) -> Held {
        ACCESSES.with_borrow_mut(Vec::clear);
        GUARD.with(|guard| {
            guard.seed.set(seed);
            guard.whole.set(whole);
            guard.violated.set(false);
            guard.mode.set(Mode::Record);
        });
        Held(None)
    }

    /// Returns the accesses since [`Held::record`] as text, without duplicates.
    #[cfg_attr(not(feature = "testing"), allow(dead_code))]
    pub(crate) fn accesses(&self) -> Vec<String> {
        ACCESSES.with_borrow_mut(std::mem::take)
    }

    /// Checks whether the transaction that just ended has violated its map, even if its handler caught the unwinding.
    #[inline(always)]
    pub(crate) fn is_violated(&self) -> bool {
        GUARD.with(|guard| guard.violated.get())
    }

    /// Returns the violation of the transaction that just ended, if there was one, and clears it.
    #[cold]
    pub(crate) fn violation(&self) -> Option<Violation> {
        GUARD
            .with(|guard| guard.violated.replace(false))
            .then(|| VIOLATION.with_borrow_mut(Option::take).unwrap_or(Violation { cell: "?".into() }))
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        GUARD.with(|guard| {
            guard.mode.set(Mode::Closed);
            if let Some(outer) = self.0.take() {
                outer.put_back(guard)
            }
        });
    }
}

/// Checks whether a handler is running on this thread.
pub(crate) fn in_transaction() -> bool {
    GUARD.with(|guard| guard.mode.get() != Mode::Closed)
}

/// Checks whether this thread is in recording mode.
pub(crate) fn is_recording() -> bool {
    GUARD.with(|guard| guard.mode.get() == Mode::Record)
}

/// Returns the cluster's hash seed, as set for the current transaction.
#[inline(always)]
pub(crate) fn seed() -> u64 {
    GUARD.with(|guard| guard.seed.get())
}

/// Checks an access by key. Returns the id under which the cell is stored.
#[inline(always)]
pub(crate) fn check<K, Q: KeyEncoding + ?Sized>(meta: &DictMeta<K>, key: &Q) -> CellId {
    GUARD.with(|guard| {
        let cell = meta.cell(guard.seed.get(), key);
        let [a, b, c] = &guard.first;
        let named = cell.0 == a.get() || cell.0 == b.get() || cell.0 == c.get();
        if !(named && guard.mode.get() == Mode::Strict) {
            check_further(guard, meta, cell, key);
        }
        cell
    })
}

#[inline(never)]
fn check_further<K, Q: KeyEncoding + ?Sized>(guard: &Guard, meta: &DictMeta<K>, cell: CellId, key: &Q) {
    let in_whole = guard.whole.get() & meta.bit() != 0;
    let effective = if in_whole { meta.whole(guard.seed.get()) } else { cell };
    match guard.mode.get() {
        Mode::Strict if names(guard, effective) => {}
        Mode::Record if in_whole => record(format!("{}[*]", meta.name)),
        Mode::Record => record(words(meta.name, key)),
        _ => violate(guard, words(meta.name, key)),
    }
}

/// Checks an access to a whole dictionary.
pub(crate) fn check_whole<K>(meta: &DictMeta<K>) {
    GUARD.with(|guard| match guard.mode.get() {
        Mode::Strict if names(guard, meta.whole(guard.seed.get())) => {}
        Mode::Record => record(format!("{}[*]", meta.name)),
        _ => violate(guard, format!("{}[*]", meta.name)),
    })
}

fn names(guard: &Guard, cell: CellId) -> bool {
    guard.first.iter().any(|c| c.get() == cell.0)
        || (guard.has_more.get() && MORE.with_borrow(|m| m.binary_search(&cell).is_ok()))
}

pub(crate) fn words<Q: KeyEncoding + ?Sized>(dict: &str, key: &Q) -> String {
    let mut text = format!("{dict}[");
    key.describe(&mut text);
    text.push(']');
    text
}

fn record(access: String) {
    ACCESSES.with_borrow_mut(|a| {
        if !a.contains(&access) {
            a.push(access)
        }
    })
}

#[cold]
fn violate(guard: &Guard, cell: String) -> ! {
    let violation = Violation { cell };
    guard.violated.set(true);
    VIOLATION.with_borrow_mut(|v| *v = Some(violation.clone()));
    // Unwind without calling the panic hook, because the violation is reported when the transaction ends.
    std::panic::resume_unwind(Box::new(violation))
}
