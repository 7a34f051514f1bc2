//! The cells of all hives in a hive's views: what the logs of all colonies have committed, as this hive's replicas know it.
//!
//! ```text
//!   a replica applies an entry ─► queue ─► claims: which colony's copy of a cell is shown ─► decoded ─► the pair of copies
//!                                       │
//!                                       └─ by a task, by a reader, or, if too many rows have changed, by the replica
//! ```
//!
//! The hive's own bees hand over nothing: their changes arrive here, too, before the hive is told that they are committed. So
//! nothing changes in the views when the hive begins to lead a colony, or leads it no longer.
//!
//! A queue contains encoded changes. If it contains too many changed rows, the replica that has added the last ones takes all changes
//! out. It does not do so for whole bees, which move or are restored: only readers wait until these are decoded. All changes of an
//! entry are in one version.

mod cell;
mod change;
mod claims;
mod recent;
#[cfg(test)]
mod tests;

pub(crate) use change::{Change, Restored};
pub(crate) use claims::Answers;

use crate::limits::VIEW_FOLLOWED_BYTES_MAX;
use crate::state::any::AnyState;
use crate::time::Time;
use crate::view::Views;
use beehive_protocol::{BeeId, ColonyId};
use claims::Claims;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// The changes that the replicas of all colonies have told to an app's views, and the state that results from them.
pub(crate) struct Follow {
    queue: Mutex<Queue>,
    /// The time at which the oldest change that is not handed over yet was queued, plus one. Zero if there is none.
    since: AtomicU64,
    merged: Mutex<Merged>,
    news: Notify,
}

#[derive(Default)]
struct Queue {
    changes: Vec<(ColonyId, Change)>,
    /// Size of the changes, without those of restored logs.
    bytes: usize,
    /// The time at which the first change was queued.
    since: u64,
}

struct Merged {
    claims: Claims,
    /// An instance of the app, which decodes the rows.
    decoder: Box<dyn AnyState>,
}

impl Queue {
    /// Adds a change. Returns whether the caller has to hand over the queue.
    ///
    /// The limit slows down a log that changes rows faster than they are decoded. A whole bee, or all bees of a log, may be much larger.
    /// These are rare, and a replica tells them while it holds its state, so it leaves them to the task and to readers. The queue has
    /// one restored state of each log at most: the newest one takes the place of an earlier one, and of what came behind that.
    fn add(&mut self, colony: ColonyId, change: Change) -> bool {
        if matches!(change, Change::Restored { .. }) {
            let is_earlier = |(of, change): &(ColonyId, Change)| {
                *of == colony && matches!(change, Change::Restored { .. })
            };
            if let Some(at) = self.changes.iter().position(is_earlier) {
                let behind = self.changes.split_off(at);
                self.changes.extend(behind.into_iter().filter(|(of, _)| *of != colony))
            }
        }
        self.bytes += change.size();
        let is_rows = matches!(change, Change::Rows { .. });
        self.changes.push((colony, change));
        is_rows && self.bytes > VIEW_FOLLOWED_BYTES_MAX
    }
}

impl Follow {
    pub(super) fn new(decoder: Box<dyn AnyState>) -> Follow {
        Follow {
            queue: Mutex::default(),
            since: AtomicU64::new(0),
            merged: Mutex::new(Merged { claims: Claims::default(), decoder }),
            news: Notify::new(),
        }
    }

    /// Returns the time at which the oldest change that is not handed over yet was queued.
    pub(super) fn waiting_since(&self) -> Option<u64> {
        self.since.load(Ordering::Acquire).checked_sub(1)
    }

    /// Adds changes to the queue, in the order of the colony's log. Returns whether the queue is full.
    fn push(&self, changes: impl Iterator<Item = (ColonyId, Change)>, now: u64) -> bool {
        let mut queue = self.queue.lock();
        let was_empty = queue.changes.is_empty();
        let mut is_full = false;
        changes.for_each(|(colony, change)| is_full |= queue.add(colony, change));
        if was_empty && !queue.changes.is_empty() {
            queue.since = now;
            if self.waiting_since().is_none() {
                self.since.store(now.saturating_add(1), Ordering::Release)
            }
            self.news.notify_one()
        }
        is_full
    }

    /// Hands over all queued changes, and those that the caller has decided at `now`. The caller has the lock, so that a later
    /// change does not overtake.
    fn hand_over(&self, mut merged: MutexGuard<'_, Merged>, views: &Views, now: u64) {
        let Queue { changes, since, .. } = std::mem::take(&mut *self.queue.lock());
        let since = if changes.is_empty() { now } else { since };
        let Merged { claims, decoder } = &mut *merged;
        changes.into_iter().for_each(|(colony, change)| claims.apply(colony, change));
        let redo = claims.settle();
        decoder.publish_committed(views, &redo, Time::from_nanoseconds(since));

        // Only now: a reader that sees no waiting change gets a version with those of this call
        let queue = self.queue.lock();
        let since = if queue.changes.is_empty() { 0 } else { queue.since.saturating_add(1) };
        self.since.store(since, Ordering::Release)
    }
}

impl Views {
    /// Adds what a colony has committed, in the order of its log.
    pub(crate) fn follow(&self, colony: ColonyId, changes: impl Iterator<Item = Change>, now: Time) {
        let Some(follow) = &self.follow else { return };
        if follow.push(changes.map(|change| (colony, change)), now.as_nanoseconds()) {
            self.catch_up()
        }
    }

    /// Hands over what the colonies have committed.
    pub(crate) fn catch_up(&self) {
        if let Some(follow) = &self.follow
            && let Some(since) = follow.waiting_since()
        {
            follow.hand_over(follow.merged.lock(), self, since)
        }
    }

    /// Same as [`Views::catch_up`], but does nothing if another thread does it.
    pub(super) fn try_to_catch_up(&self) {
        if let Some(follow) = &self.follow
            && let Some(since) = follow.waiting_since()
            && let Some(merged) = follow.merged.try_lock()
        {
            follow.hand_over(merged, self, since)
        }
    }

    /// Waits until a colony has committed something. Cancel-safe.
    pub(crate) async fn news(&self) {
        match &self.follow {
            Some(follow) => follow.news.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Checks whether what the logs of the colonies say about a bee that moves is incomplete.
    pub(crate) fn waits_for_moves(&self) -> bool {
        self.follow.as_ref().is_some_and(|follow| follow.merged.lock().claims.waits())
    }

    /// Returns the bees about which the registry has to be asked, because the logs have not said enough.
    pub(crate) fn questions(&self) -> BTreeSet<BeeId> {
        self.follow.as_ref().map(|follow| follow.merged.lock().claims.questions()).unwrap_or_default()
    }

    /// Decides by the registry what the logs have not decided. See [`Claims::decide`]. This decodes rows, so the caller must not have
    /// the registry's lock.
    pub(crate) fn decide(&self, answers: &Answers, now: Time, patience: Duration) {
        let Some(follow) = &self.follow else { return };
        let mut merged = follow.merged.lock();
        merged.claims.decide(answers, now, patience);
        follow.hand_over(merged, self, now.as_nanoseconds())
    }

    /// Checks whether the views show what all colonies have committed, and not what the bees of this hive hand over.
    pub(crate) fn is_following(&self) -> bool {
        self.follow.is_some()
    }
}
