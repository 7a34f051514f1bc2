//! Snapshots: read-only copies of an app's dictionaries, of what is committed, that handlers of any bee and programs
//! outside may look at.
//!
//! Nothing is copied of dictionaries that nobody reads in this way. For the others, a bee collects what a run of
//! transactions changed, and hands it over when that is committed, with one lock for the run. Nothing is done with it
//! until somebody looks, or until it is much: whoever pins a version first publishes what waits. So what nobody looks at
//! costs its writers a push, and what is looked at is as fresh as it can be.
//!
//! A transaction has one version of all dictionaries of its app, that which it pinned when it looked first; transactions of
//! one run of a bee share it, and give it back at its end.

mod cells;
mod copies;
mod derived;
mod pair;
mod pin;
mod sync;
#[cfg(test)]
mod tests;
#[allow(clippy::module_inception)]
mod view;

pub(crate) use copies::Changes;
pub use copies::{DictChange, DictMirror, Mirror, TableChange, TableMirror};
use pin::Pinned;
pub(crate) use pin::{open, pinned};
pub use view::{SharedDict, SharedRows, SharedTable};

use crate::app::Handlers;
use crate::mapper::DictInfo;
use crate::state::column::{Column, State, Visitor};
use crate::state::image::Op;
use crate::time::Time;
use crate::view::copies::{Column as Copy, Copies};
use crate::view::pair::{Bounds, Log, Pair};
use crate::{limits, panics};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which dictionaries of an app have snapshots: those that some handler reads, and those that say so.
pub(crate) trait Published: Handlers {
    /// A bit for each dictionary.
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

/// The snapshots of one app on one hive.
pub(crate) struct Snapshots {
    /// The app's name.
    pub(crate) app: &'static str,
    /// The dictionaries, a bit each.
    mask: u64,
    seed: u64,
    /// In a test: what a handler sees was committed before this moment, however cells are spread over bees.
    by_moment: bool,
    pair: Pair<Copies>,
    /// Looks that were refused.
    stale: AtomicU64,
}

/// What a hive tells of the snapshots of an app.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SnapshotStatus {
    /// The number of the version that is read now.
    pub version: u64,
    /// Copies that exist.
    pub copies: usize,
    /// Looks that failed because the version was older than its dictionary allows.
    pub stale: u64,
}

impl Snapshots {
    /// The empty snapshots of an app; none if nobody reads any.
    pub(crate) fn of<A: Published>(prototype: &A, seed: u64, by_moment: bool) -> Option<Arc<Self>> {
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
            waiting: limits::SNAPSHOT_CHANGES_WAITING_MAX,
            held: limits::SNAPSHOT_COPIES_HELD_MAX,
            patience: limits::SNAPSHOT_PATIENCE.as_nanos() as u64,
        };
        Some(Arc::new(Snapshots {
            app: A::NAME,
            mask: A::PUBLISHED,
            seed,
            by_moment,
            pair: Pair::new(empty.copies, bounds),
            stale: AtomicU64::new(0),
        }))
    }

    /// Adds what the transaction changed, before it is committed. Clones, and so runs the app's code.
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

    /// Hands over what was committed by `now`; `changes` is then empty.
    pub(crate) fn hand_over(&self, changes: &mut Changes, now: Time) {
        changes.forget();
        if changes.len() > 0 {
            self.pair.hand_over(changes, now.as_nanoseconds(), self.by_moment)
        }
    }

    /// Hands over what a record says that is committed. `state`: any instance of the app.
    pub(crate) fn committed<S: State>(&self, state: &mut S, ops: &[Op], now: Time) {
        struct Read<'a> {
            seed: u64,
            op: &'a Op,
            changes: &'a mut Changes,
        }
        impl Visitor for Read<'_> {
            fn column<C: Column>(&mut self, index: u32, column: &mut C) {
                if index != self.op.dict {
                    return;
                }
                // encoded by this very process
                match (column.change_of(self.seed, self.op), self.changes.of::<C::Mirror>(index)) {
                    (Ok(change), Some(changes)) => changes.push(change),
                    (Err(error), _) => tracing::error!(%error, "a snapshot cannot follow what was committed"),
                    (Ok(_), None) => {}
                }
            }
        }
        let mut changes = Changes::default();
        for op in ops.iter().filter(|op| self.mask & (1 << op.dict) != 0) {
            let read = AssertUnwindSafe(|| {
                state.visit(&mut Read { seed: self.seed, op, changes: &mut changes });
                changes.keep()
            });
            if let Err(panic) = panics::catch(read) {
                let why = panics::text(&*panic);
                tracing::error!(app = self.app, %why, "a snapshot cannot follow what was committed");
                let _ = panics::catch(AssertUnwindSafe(|| drop(panic)));
            }
        }
        self.hand_over(&mut changes, now)
    }

    /// Hands over all that a bee holds that comes from a log.
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

    /// Publishes what waits, if no reader is in the way.
    pub(crate) fn publish(&self, now: Time) {
        self.pair.publish(now.as_nanoseconds())
    }

    /// The version that a transaction at `now` has to do with.
    fn pin(&self, now: Time) -> Pinned {
        let now = now.as_nanoseconds();
        if let Some(since) = self.pair.waiting_since()
            && (!self.by_moment || since < now)
        {
            self.pair.try_publish(now)
        }
        // asked for first: the version may be younger than that, and not older
        let since = self.pair.waiting_since();
        let age = since.map_or(0, |since| now.saturating_sub(since));
        Pinned::new(self.pair.current(), std::time::Duration::from_nanos(age), self.seed)
    }

    fn count_stale(&self) {
        self.stale.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn status(&self) -> SnapshotStatus {
        SnapshotStatus {
            version: self.pair.current().number,
            copies: self.pair.copies(),
            stale: self.stale.load(Ordering::Relaxed),
        }
    }
}

/// What the transactions of a run have changed, handed over when the run is over, whatever ends it.
pub(crate) struct Collected<'a> {
    snapshots: Option<&'a Arc<Snapshots>>,
    now: Time,
    changes: Changes,
}

impl<'a> Collected<'a> {
    /// `changes`: empty, and kept from an earlier run. Collects nothing where there are no snapshots.
    pub(crate) fn begin(snapshots: Option<&'a Arc<Snapshots>>, changes: Changes, now: Time) -> Self {
        Collected { snapshots, now, changes }
    }

    /// Adds what a transaction changed that is about to be committed.
    pub(crate) fn note<S: State>(&mut self, state: &mut S) {
        if let Some(snapshots) = self.snapshots {
            snapshots.note(state, &mut self.changes)
        }
    }

    /// Hands over what was collected; returns what can be used again.
    pub(crate) fn end(mut self) -> Changes {
        self.hand_over();
        std::mem::take(&mut self.changes)
    }

    fn hand_over(&mut self) {
        if let Some(snapshots) = self.snapshots {
            snapshots.hand_over(&mut self.changes, self.now)
        }
    }
}

impl Drop for Collected<'_> {
    fn drop(&mut self) {
        self.hand_over()
    }
}
