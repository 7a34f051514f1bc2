//! Merges two bees of an app.
//!
//! If the bees are in different logs, the source first moves to the log of the target. A merge should freeze no bee while it
//! waits for a log that the bee is not in: such a bee would handle nothing for as long as that log commits nothing. So a
//! merge takes three steps:
//!
//! 1. It waits, with nothing frozen, until the log of the target commits something.
//! 2. It freezes the source alone, moves it, and thaws it again. Then it waits, with nothing frozen, until the log that
//!    the source has left has dropped it.
//! 3. It freezes both bees, which are now in one log, and unites them.
//!
//! The first step makes it unlikely that the log of the target stalls during the move, and does not exclude it. If it does,
//! the source is frozen for up to [`limits::MOVE_STAGED_AFTER_MAX`] until that log has committed its copy, and without a
//! limit until the log has committed that it adopts the copy. A move and a merge both wait without a limit for the registry.
//!
//! If a step fails, or if a bee has moved meanwhile, the merge gives up with both bees thawed. The caller asks the registry
//! what is still to be merged, and begins again.
//!
//! Concurrent merges cannot deadlock. The second step freezes one bee, and waits for logs only, never for a bee. The
//! third step waits for a second bee while it holds the first, and takes the two in the order of their ids: in a cycle of
//! merges that wait for each other, the highest bee would be held by a merge that waits for a lower one. Which bee is to
//! merge into which does not matter for this, and it may change: if the bee between two others ends, the registry may
//! later aim them at each other in the opposite direction.

use crate::cell::BeeId;
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::body::Body;
use crate::hive::bee::lifecycle::{Bee, Freezing};
use crate::hive::consensus::journal::{AppId, Record};
use crate::hive::consensus::registry::Proposal;
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::turn::{Link, Place, Turn};
use crate::hive::ownership::queen::RETRY;
use crate::limits;
use crate::mutant::Mutant;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl AppRuntime {
    /// Tries to merge `from` into `into`, and returns whether they have merged. Does nothing if one of them has ended. If the
    /// merge is impossible now, leaves the two as they are, except that `from` may now be in the log of `into`.
    ///
    /// While the registry is unavailable, the merged bee stays frozen. The caller must not drop the future before it
    /// completes, because it may hold the bodies of the bees.
    pub(crate) async fn fuse(self: &Arc<Self>, from: BeeId, into: BeeId, hive: &Arc<HiveInner>) -> bool {
        let (Some(source), Some(target)) = (self.bee(from), self.bee(into)) else { return false };
        if !self.into_one_log(&source, &target, hive).await {
            return false;
        }
        let Some((gone, body)) = freeze_both(&source, &target, hive).await else { return false };

        if gone.log() != body.log() || is_left_behind(&gone) {
            // after the steps before, one of the bees has moved
            let left = gone.pending.as_ref().and_then(|pending| pending.left.clone());
            thaw(&source, gone, hive);
            thaw(&target, body, hive);
            if let Some(left) = left {
                left.none(|| hive.is_over()).await
            }
            return false;
        }
        self.unite_frozen((&source, gone), (&target, body), hive).await
    }

    /// Moves the source to the log of the target, and waits until no other log contains it. Freezes the source only while it
    /// moves, and the target never. Returns whether the source ends up in that log.
    async fn into_one_log(self: &Arc<Self>, source: &Arc<Bee>, target: &Bee, hive: &Arc<HiveInner>) -> bool {
        // A bee that is frozen because it moves is still in its old log, according to this. The third step notices.
        let (Some(at), Some(to)) = (source.log(), target.log()) else { return true };
        if at == to {
            return true;
        }
        if self.is_clustered() {
            // the registry has to move the source first
            return false;
        }
        let Some(to) = &hive.log_at(to) else { return false };
        commits_something(to, hive).await;
        if hive.is_over() {
            // a move that began now would write to logs after the hive has ended
            return false;
        }

        let Some(mut body) = freeze(source, hive).await else { return false };
        let has_moved = self.transfer(source, &mut body, to, hive).await;
        let left = body.pending.as_ref().and_then(|pending| pending.left.clone());
        thaw(source, body, hive);
        if let Some(left) = left.filter(|_| has_moved && !to.lanes.breaks(Mutant::EndsBeforeDropped)) {
            // The source ends soon. If a restart found only a copy, in a log that the source has left, it would thaw that
            // copy.
            left.none(|| hive.is_over()).await
        }
        has_moved && !hive.is_over()
    }

    /// Unites the state, the cells and the queued messages of two frozen bees of one log, and thaws the target. Returns
    /// `false` if what `source` has sent waits for long, for another log or for a handler: then both are thawed. Also returns
    /// `false` if the hive is over: then the bodies are dropped, because no bee runs any more.
    async fn unite_frozen(
        self: &Arc<Self>,
        (source, mut gone): (&Arc<Bee>, Box<Body>),
        (target, mut body): (&Arc<Bee>, Box<Body>),
        hive: &Arc<HiveInner>,
    ) -> bool {
        let (from, into) = (source.id, target.id);
        let mut said = vec![Proposal::Fused { from, into }];
        // `into` takes over the cells of `from`. Messages that `into` emits from now on must not overtake messages that
        // `from` emitted earlier
        let late = hive.now() + limits::FROZEN_BEE_AWAITED_MAX;
        while !body.queue.absorb(&gone.queue, hive) && !hive.is_over() && !body.has_lost_log() {
            if hive.now() >= late {
                // Stateless handlers of other apps ran for messages of `from`, and the logs of these apps commit nothing, or
                // such a handler is still running. If the merge waited only until nothing is unreleased, a bee that goes on
                // sending would never merge.
                let unreleased = gone.queue.unreleased();
                thaw(source, gone, hive);
                thaw(target, body, hive);
                match unreleased {
                    Some(unreleased) => {
                        while !unreleased.are_over() && !hive.is_over() {
                            hive.platform.sleep(RETRY).await
                        }
                    }
                    None => hive.platform.sleep(RETRY).await,
                }
                return false;
            }
            hive.platform.sleep(Duration::from_micros(100)).await
        }

        if let (Some(pending), Some(other)) = (&mut body.pending, &mut gone.pending) {
            let link = pending.link().clone();
            // log the consumed messages before the log forgets `from`
            if !link.lanes.breaks(Mutant::MarksNotMerged) {
                link.log_consumed()
            }
            let lanes = &link.lanes.bees;
            if !link.lanes.breaks(Mutant::OutboxNotMerged) {
                pending.heir_of.append(&mut other.heir_of);
                pending.heir_of.insert(source.lane());
            }
            pending.heir_of.retain(|lane| lanes.is_open(*lane));
            let fuse = Record::Fuse { app: AppId(self.index), from, into, view: self.view() };
            let is_committed = link.commit(fuse).await;
            if !is_committed && link.is_deposed() {
                // the next leader of the log has both bees, or the merged one
                thaw(source, gone, hive);
                thaw(target, body, hive);
                return false;
            }
            if hive.is_over() && !lanes.mutation.breaks(Mutant::MergesWhenOver) {
                return false;
            }
            if !lanes.knows(source.lane()) {
                // the lane table no longer contains this lane, so it will never report that the lane has ended
                said.push(Proposal::Retire { lane: source.lane() })
            }
            lanes.end(source.lane())
        } else {
            said.push(Proposal::Retire { lane: source.lane() })
        }
        {
            let mut queen = self.queen.lock();
            if body.has_lost_log() {
                // the hive is about to end both bees, or has ended them: see `AppRuntime::unhost`, which takes this lock
                drop(queen);
                Bee::drop_lost(gone);
                Bee::drop_lost(body);
                return false;
            }
            body.app.absorb(&mut gone.app);
            if let (Some(pending), Some(other)) = (&mut body.pending, &mut gone.pending) {
                pending.base.absorb(std::mem::take(&mut other.base));
                if !pending.link().lanes.breaks(Mutant::DedupNotMerged) {
                    pending.seen.absorb(std::mem::take(&mut other.seen))
                }
                // zero means unknown: `from` may own cells that are not in the log yet
                pending.cells_logged = 0;
                pending.is_logged |= other.is_logged
            }
            body.now = body.now.max(gone.now);
            body.traffic.absorb(&gone.traffic);
            for cell in target.take_over(source) {
                self.routes.set(cell, target)
            }
            queen.bees.remove(from);
            queen.ended.insert(from);
        }

        self.merged.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(app = self.name, %from, %into, "merged");

        // the registry must know about the merge before the merged bee continues
        if let Some(index) = self.state(&said, hive).await {
            self.knows_end(from, index, hive)
        }
        thaw(target, body, hive);
        true
    }
}

/// Checks whether a log that a bee has left still contains it, so that the bee must not end.
fn is_left_behind(body: &Body) -> bool {
    let ends_now = |link: &Link| link.lanes.breaks(Mutant::EndsBeforeDropped);
    body.pending.as_ref().is_some_and(|pending| pending.not_dropped() > 0 && !ends_now(pending.link()))
}

/// Waits until a log commits something, or the hive is over. If nothing is in flight, appends a record without contents.
async fn commits_something(log: &Link, hive: &HiveInner) {
    let (before, mut pause) = (log.newest_committed(), Duration::from_micros(100));
    while log.newest_committed() == before && !hive.is_over() {
        // an entry that was in flight may have been refused
        log.probe();
        hive.platform.sleep(pause).await;
        pause = (pause * 2).min(RETRY)
    }
}

/// Freezes two bees. If that is impossible now, waits until it may be possible, and returns `None` with both thawed.
async fn freeze_both(
    source: &Arc<Bee>,
    target: &Arc<Bee>,
    hive: &Arc<HiveInner>,
) -> Option<(Box<Body>, Box<Body>)> {
    let is_source_first = source.id < target.id;
    let (low, high) = if is_source_first { (source, target) } else { (target, source) };
    let low_body = freeze(low, hive).await?;
    let high_body = freeze_unless_held(high, low_body.log(), hive).await;
    let Ok(Some(high_body)) = high_body else {
        thaw(low, low_body, hive);
        if high_body.is_err()
            && let Some(body) = freeze(high, hive).await
        {
            thaw(high, body, hive)
        }
        return None;
    };
    Some(if is_source_first { (low_body, high_body) } else { (high_body, low_body) })
}

/// Freezes a bee: see [`Bee::freeze`]. Returns `None` if the bee has ended or the hive is over. A bee whose records are
/// never committed is never frozen.
async fn freeze(bee: &Arc<Bee>, hive: &HiveInner) -> Option<Box<Body>> {
    tokio::select! {
        biased;
        body = bee.freeze() => body,
        () = hive.over() => None,
    }
}

/// The error of a freeze that has waited for [`limits::FROZEN_BEE_AWAITED_MAX`] for a bee that another task held or that was
/// in another log.
struct Held;

/// Freezes a bee, like [`freeze`], for a caller that holds another bee, which is in `log`. Gives up if another task holds the
/// bee for long: that task may be moving the bee into a log that commits nothing. Also gives up if the bee has moved: the
/// log that it is in now may commit nothing either, and without that its records stay in flight.
async fn freeze_unless_held(
    bee: &Arc<Bee>,
    log: Option<usize>,
    hive: &HiveInner,
) -> Result<Option<Box<Body>>, Held> {
    let mut waiting = match bee.ask_to_freeze() {
        Freezing::Done(body) => return Ok(Some(body)),
        Freezing::Ended => return Ok(None),
        Freezing::Waiting(waiting) => waiting,
    };
    loop {
        tokio::select! {
            biased;
            body = &mut waiting => return Ok(body.ok()),
            () = hive.over() => return Ok(None),
            () = hive.platform.sleep(limits::FROZEN_BEE_AWAITED_MAX) => {}
        }
        // A bee of this log that runs, or whose records are in flight, is not held: it waits for its own handler or for the
        // log that both bees have.
        if bee.is_frozen() || bee.log() != log {
            waiting.close();
            // the body may have been sent before
            return waiting.try_recv().map(Some).map_err(|_| Held);
        }
    }
}

fn thaw(bee: &Arc<Bee>, body: Box<Body>, hive: &Arc<HiveInner>) {
    Turn::with(hive, Place::Runners, |turn| bee.thaw(body, turn))
}
