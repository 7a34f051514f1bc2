//! Views: read-only copies of the committed state of an app's dictionaries, for handlers of any bee and for
//! programs that embed the hive.
//!
//! Only dictionaries with views are copied. For those, a bee collects the changes made by a run of transactions and
//! hands them over once they are committed, taking one lock per run. The changes stay pending until a reader arrives or
//! too many of them have accumulated. A reader publishes the pending changes before it pins a version. A change to an
//! unused view thus costs its writer one push, and a view in use is as fresh as possible.
//!
//! In a cluster, the bees hand over nothing. The views show what the hive's replicas of all logs have committed: see
//! [`followed`].
//!
//! A transaction reads one version of all of its app's dictionaries: the version pinned by its first read. All
//! transactions in one run share that version and release it at the end of the run.

mod cells;
mod copies;
mod derived;
mod followed;
mod pair;
mod pin;
mod shared;
mod sync;
#[cfg(test)]
mod tests;

pub(crate) use copies::Changes;
pub use copies::{DictChange, DictMirror, Mirror, TableChange, TableMirror};
pub(crate) use followed::{Answers, Change, Restored as RestoredBee};
use pin::Pinned;
pub(crate) use pin::{open, pinned};
pub use shared::{SharedDict, SharedRows, SharedTable};

use crate::app::Handlers;
use crate::mapper::DictInfo;
use crate::state::any::AnyState;
use crate::state::column::{Column, State, Visitor};
use crate::state::image::{Op, Redo};
use crate::time::Time;
use crate::view::copies::{Column as Copy, Copies};
use crate::view::followed::Follow;
use crate::view::pair::{Bounds, Log, Pair};
use crate::{limits, panics};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Selects an app's dictionaries that have views, because a handler reads them or the field has `#[shared]`.
pub(crate) trait Published: Handlers {
    /// Bit mask of the dictionaries that have views.
    const PUBLISHED: u64 = Self::SHARED | said(Self::DICTS);
}
impl<A: Handlers> Published for A {}

const fn said(dicts: &[DictInfo]) -> u64 {
    let (mut at, mut mask) = (0, 0);
    while at < dicts.len() {
        if dicts[at].shared {
            mask |= 1 << dicts[at].index
        }
        at += 1;
    }
    mask
}

/// The views of one app on one hive.
pub(crate) struct Views {
    /// The app's name.
    pub(crate) app: &'static str,
    /// Bit mask of the dictionaries.
    mask: u64,
    seed: u64,
    /// For tests: whether a reader sees only changes committed before its own time, so that results do not depend on
    /// how cells are spread over bees.
    by_moment: bool,
    pair: Pair<Copies>,
    /// The changes that the colonies of the cluster have committed; `None` if the bees of this hive hand over theirs.
    follow: Option<Follow>,
    /// Number of reads rejected because the version was too old.
    stale: AtomicU64,
}

/// Status of an app's views.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ViewStatus {
    /// Number of the current version.
    pub version: u64,
    /// Number of existing copies.
    pub copies: usize,
    /// Number of reads that failed because the version was older than its dictionary allows.
    pub stale: u64,
}

/// How an app's views get what they show.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Source {
    /// See [`Views::by_moment`].
    pub(crate) by_moment: bool,
    /// Whether they show what the logs of all colonies have committed, and not what the bees of this hive hand over.
    pub(crate) follows: bool,
}

impl Views {
    /// Returns empty views of an app, or `None` if none of its dictionaries has views.
    pub(crate) fn of<A: Published>(
        prototype: &A,
        seed: u64,
        Source { by_moment, follows }: Source,
    ) -> Option<Arc<Self>> {
        struct Empty {
            mask: u64,
            copies: Copies,
        }

        impl Visitor for Empty {
            fn column<C: Column>(&mut self, index: u32, _: &mut C) {
                let is_published = self.mask & (1 << index) != 0;
                self.copies.columns.push(is_published.then(|| Copy::of(C::Mirror::default())))
            }
        }

        if A::PUBLISHED == 0 {
            return None;
        }

        let mut empty = Empty { mask: A::PUBLISHED, copies: Copies::default() };
        prototype.fresh().visit(&mut empty);
        let bounds = Bounds {
            waiting: limits::VIEW_CHANGES_PENDING_MAX,
            held: limits::VIEW_COPIES_HELD_MAX,
            patience: limits::VIEW_PATIENCE.as_nanos() as u64,
        };

        Some(Arc::new(Views {
            app: A::NAME,
            mask: A::PUBLISHED,
            seed,
            by_moment,
            pair: Pair::new(empty.copies, bounds),
            follow: follows.then(|| Follow::new(AnyState::fresh(prototype))),
            stale: AtomicU64::new(0),
        }))
    }

    /// Collects a transaction's changes before it commits. This clones values, which runs the app's code.
    #[inline]
    pub(crate) fn note<S: State>(&self, state: &mut S, changes: &mut Changes) {
        struct Note<'a> {
            mask: u64,
            changes: &'a mut Changes,
        }

        impl Visitor for Note<'_> {
            #[inline(always)]
            fn column<C: Column>(&mut self, index: u32, column: &mut C) {
                if self.mask & (1 << index) != 0
                    && column.is_dirty()
                    && let Some(out) = self.changes.of::<C::Mirror>(index)
                {
                    column.changes(out)
                }
            }
        }

        changes.forget();
        state.visit(&mut Note { mask: self.mask, changes });
        changes.keep()
    }

    /// Hands over the changes committed at `now` and empties `changes`.
    pub(crate) fn hand_over(&self, changes: &mut Changes, now: Time) {
        changes.forget();
        if changes.len() > 0 {
            self.pair.hand_over(changes, now.as_nanoseconds(), self.by_moment)
        }
    }

    /// Hands over the committed changes of a log record. `state` is any instance of the app.
    pub(crate) fn committed<S: State>(&self, state: &mut S, redo: &Redo, now: Time) {
        struct Read<'a> {
            seed: u64,
            op: Op<'a>,
            changes: &'a mut Changes,
        }

        impl Visitor for Read<'_> {
            fn column<C: Column>(&mut self, index: u32, column: &mut C) {
                if index != self.op.dict {
                    return;
                }

                // Decoding should not fail, because this process encoded the record.
                match (column.change_of(self.seed, &self.op), self.changes.of::<C::Mirror>(index)) {
                    (Ok(change), Some(changes)) => changes.push(change),
                    (Err(error), _) => tracing::error!(%error, "cannot apply a committed change to a view"),
                    (Ok(_), None) => {}
                }
            }
        }

        let mut changes = Changes::default();
        for op in redo.iter().filter(|op| self.mask & (1 << op.dict) != 0) {
            let read = AssertUnwindSafe(|| {
                state.visit(&mut Read { seed: self.seed, op, changes: &mut changes });
                changes.keep()
            });

            if let Err(panic) = panics::catch(read) {
                let why = panics::text(&*panic);
                tracing::error!(app = self.app, %why, "panic while applying a committed change to a view");
            }
        }

        self.hand_over(&mut changes, now)
    }

    /// Hands over the entire content of a bee restored from a log.
    pub(crate) fn restored<S: State>(&self, state: &mut S, now: Time) {
        struct All<'a> {
            mask: u64,
            changes: &'a mut Changes,
        }

        impl Visitor for All<'_> {
            fn column<C: Column>(&mut self, index: u32, column: &mut C) {
                if self.mask & (1 << index) != 0
                    && let Some(out) = self.changes.of::<C::Mirror>(index)
                {
                    column.contents(out)
                }
            }
        }

        let mut changes = Changes::default();
        state.visit(&mut All { mask: self.mask, changes: &mut changes });
        changes.keep();
        self.hand_over(&mut changes, now)
    }

    /// Returns the set of dictionaries that have views, with a bit for each.
    pub(crate) fn dictionaries(&self) -> u64 {
        self.mask
    }

    /// Publishes pending changes, unless a reader still holds the required copy.
    pub(crate) fn publish(&self, now: Time) {
        self.catch_up();
        self.pair.publish(now.as_nanoseconds())
    }

    /// Returns the version for a transaction at `now`, publishing pending changes first.
    fn pin(&self, now: Time) -> Pinned {
        let now = now.as_nanoseconds();
        self.try_to_catch_up();
        // Loaded before the times of the pair, as those are before its version: a change is there before it is no longer here
        let queued = self.follow.as_ref().and_then(Follow::waiting_since);
        if let Some(since) = self.pair.waiting_since()
            && (!self.by_moment || since < now)
        {
            self.pair.try_publish(now)
        }

        // `waiting_since` must be loaded before `current`. A publisher stores the new version before it clears
        // `waiting_since` (`Release`), so a reader that sees `waiting_since` cleared (`Acquire`) also gets that
        // version. If a publication falls between the two loads, the version is newer than `age` says, but never older.
        let since = self.pair.waiting_since().into_iter().chain(queued).min();
        let age = since.map_or(0, |since| now.saturating_sub(since));
        Pinned::new(self.pair.current(), std::time::Duration::from_nanos(age), self.seed)
    }

    fn count_stale(&self) {
        self.stale.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn status(&self) -> ViewStatus {
        ViewStatus {
            version: self.pair.current().number,
            copies: self.pair.copies(),
            stale: self.stale.load(Ordering::Relaxed),
        }
    }
}

/// The changes made by a run of transactions. Hands them over when the run ends, even if it ends with a panic.
pub(crate) struct Collected<'a> {
    views: Option<&'a Arc<Views>>,
    now: Time,
    changes: Changes,
}

impl<'a> Collected<'a> {
    /// Starts a run. `changes` is an empty buffer, reused from an earlier run. If `views` is `None`, the run
    /// collects nothing.
    pub(crate) fn begin(views: Option<&'a Arc<Views>>, changes: Changes, now: Time) -> Self {
        Collected { views, now, changes }
    }

    /// Collects the changes of a transaction about to commit.
    pub(crate) fn note<S: State>(&mut self, state: &mut S) {
        if let Some(views) = self.views {
            views.note(state, &mut self.changes)
        }
    }

    /// Hands over the collected changes. Returns the empty buffer for reuse.
    pub(crate) fn end(mut self) -> Changes {
        self.hand_over();
        std::mem::take(&mut self.changes)
    }

    fn hand_over(&mut self) {
        if let Some(views) = self.views {
            views.hand_over(&mut self.changes, self.now)
        }
    }
}

impl Drop for Collected<'_> {
    fn drop(&mut self) {
        self.hand_over()
    }
}
