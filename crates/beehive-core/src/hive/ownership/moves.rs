//! Moves a bee from one log of its app to another. `beehive-protocol/src/moves.rs` lists the records of a move, and
//! describes the recovery from a crash between two of them.
//!
//! The bee remains the same object with the same mailbox, so senders notice only a pause. During the move, the bee is
//! frozen and none of its records are in flight. Meanwhile, receivers handle and acknowledge messages that the bee has
//! already sent. An acknowledgment that arrives too late for the old log goes to the new one
//! (`admission/bee_lanes.rs`).

use crate::cell::BeeId;
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::body::Body;
use crate::hive::bee::lifecycle::Bee;
use crate::hive::consensus::journal::{
    AppId, BeeImage, DedupTable, Emit, Epoch, LaneId, Record, Seq, StagePart,
};
use crate::hive::consensus::registry::{Decision, Proposal, Unavailable};
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::turn::Link;
use crate::hive::ownership::queen::RETRY;
use crate::limits;
use crate::mutant::Mutant;
use crate::state::image::EncodedCells;
use std::collections::VecDeque;
use std::sync::Arc;

impl AppRuntime {
    /// Moves a frozen bee, whose body the caller has taken. Returns whether the bee ends up in the log `to`.
    pub(crate) async fn transfer(
        self: &Arc<Self>,
        bee: &Arc<Bee>,
        body: &mut Body,
        to: &Arc<Link>,
        hive: &Arc<HiveInner>,
    ) -> bool {
        let Some(pending) = &mut body.pending else { return true };
        let from = pending.link().clone();
        if Arc::ptr_eq(&from, to) {
            return true;
        }
        debug_assert!(from.bees_move(), "a bee moves only if its lane is acknowledged within a log, too");

        // The old log need not know what the bee has handled without effect. The copy's dedup table lists these messages, and
        // what the old log says of them later does not concern the copy. If the bee stays, the note stays in the old
        // log's client. A bee that the old log does not contain has no notes: its first run on a lane whose messages may
        // arrive again has an entry, with or without effect (`run/journaled.rs: record`).
        if !pending.is_logged {
            pending.moved_to(to, 0);
            self.said_moved(bee.id, &mut pending.registry_epoch, to, hive).await;
            return true;
        }

        let (app, id, lanes) = (AppId(self.index), bee.id, from.lanes.bees.clone());
        let own = bee.lane();
        pending.heir_of.retain(|lane| lanes.is_open(*lane));
        let leaving: Vec<LaneId> = std::iter::once(own).chain(pending.heir_of.iter().copied()).collect();
        let breaks = |mutant| lanes.mutation.breaks(mutant);
        if !breaks(Mutant::SkipFreeze) {
            let to = to.colony();
            let _ = from.commit(Record::Freeze { app, bee: id, lanes: leaving.clone(), to, view: 0 }).await;
        }
        if hive.is_over() {
            return false;
        }

        let epoch = if breaks(Mutant::EpochReused) { pending.epoch } else { pending.epoch.next() };
        let (cells, cells_end) = bee.cells_after(0);
        let image = BeeImage {
            cells: cells.into_iter().collect(),
            state: EncodedCells::default(),
            seen: if breaks(Mutant::DedupNotMoved) { DedupTable::default() } else { pending.seen.clone() },
            next_seq: if breaks(Mutant::LaneNotMoved) { Seq::ZERO } else { pending.next_seq },
            now: body.now,
            heir_of: pending.heir_of.clone().into(),
            epoch,
            leaves_for: None,
        };
        let adopt = Record::Adopt { app, bee: id, epoch, view: 0 };
        let outbox = if breaks(Mutant::OutboxNotMoved) { Vec::new() } else { lanes.outbox(&leaving) };
        let none = EncodedCells::default();
        let rows = if breaks(Mutant::RowsNotMoved) { &none } else { &pending.base };
        let bytes_max = limits::STAGE_PART_BYTES_MAX;
        let outbox = StagePart::of_outbox(outbox.iter().map(|emit| Emit::clone(emit)), bytes_max);
        let parts: Vec<StagePart> = StagePart::of_bee(&image, rows, bytes_max).chain(outbox).collect();
        let of = parts.len() as u32;
        let stage = |(at, part)| to.say(Record::Stage { app, bee: id, epoch, part, at, of, view: 0 });
        let mut parts = (0..).zip(parts).map(stage);
        let mut undecided = VecDeque::new();
        if breaks(Mutant::OwnBeforeStage) {
            undecided.extend(parts.next());
            drop(to.say(adopt.clone()))
        }
        if breaks(Mutant::DropBeforeOwn) {
            let _ = from.commit(Record::Drop { app, bee: id, view: 0 }).await;
        }

        let is_staged = all_committed(parts, undecided, hive).await;
        if hive.is_over() {
            return false;
        }
        if !is_staged {
            tracing::warn!(app = self.name, bee = %id, "the bee does not move: the destination log commits nothing");
            // the log `to` may commit nothing for a long time, so the bee thaws first, and nothing waits for
            // the `Unstage`
            let _ = from.commit(Record::Thaw { app, bee: id, epoch: pending.epoch, view: 0 }).await;
            drop(to.say(Record::Unstage { app, bee: id, view: 0 }));
            return false;
        }

        if !breaks(Mutant::ActivateOnStage) {
            let _ = to.commit(adopt).await;
        }
        if hive.is_over() {
            return false;
        }
        pending.epoch = epoch;
        pending.moved_to(to, cells_end);

        let left = pending.left.get_or_insert_default().clone();
        hive.spawn(Box::pin(left.add(from.say(Record::Drop { app, bee: id, view: 0 }))));
        self.said_moved(id, &mut pending.registry_epoch, to, hive).await;
        tracing::debug!(app = self.name, bee = %id, from = from.position(), to = to.position(), "moved");
        true
    }

    /// Tells the registry that a bee has moved, and retries until this succeeds. Meanwhile the bee stays frozen, so that
    /// the registry learns of the bee's moves in the order in which they happen.
    ///
    /// `epoch` is the bee's epoch in the registry, as far as this hive knows. It may be another one if the registry has
    /// outlived an earlier process, which has told it more or fewer moves than are in the log.
    async fn said_moved(&self, bee: BeeId, epoch: &mut Epoch, to: &Arc<Link>, hive: &Arc<HiveInner>) {
        loop {
            let moved = Proposal::Commit { bee, epoch: *epoch, to: to.colony() };
            let index = match self.registry.propose(vec![moved]).await {
                Ok(decisions) => match decisions.last() {
                    Some(Decision::Void { index }) => *index,
                    _ => return *epoch = epoch.next(),
                },
                Err(Unavailable) if hive.is_over() => return,
                Err(Unavailable) => {
                    hive.platform.sleep(RETRY).await;
                    continue;
                }
            };

            tokio::select! {
                biased;
                () = hive.over() => return,
                () = self.registry.wait(index) => {}
            }
            let mut known = None;
            self.registry.read(&mut |state| known = state.bee(bee));
            match known {
                Some(entry) if entry.colony != to.colony() && entry.epoch != *epoch => *epoch = entry.epoch,
                // an earlier answer was lost, or the registry does not know the bee
                Some(entry) => return *epoch = entry.epoch,
                None => return,
            }
        }
    }
}

/// Appends the parts of a copy, a few at a time, so that a stalled log does not get all of a large bee at once. Returns whether
/// the log has committed all of them. It may commit none for up to [`limits::MOVE_STAGED_AFTER_MAX`].
///
/// `parts` appends a part whenever it is asked for one. `undecided` contains those that it has appended already.
async fn all_committed<C: Future<Output = Result<T, E>>, T, E>(
    mut parts: impl Iterator<Item = C>,
    mut undecided: VecDeque<C>,
    hive: &HiveInner,
) -> bool {
    loop {
        let room = limits::STAGE_PARTS_UNDECIDED_MAX.saturating_sub(undecided.len());
        undecided.extend(parts.by_ref().take(room));
        let Some(oldest) = undecided.pop_front() else { return true };
        let is_committed = tokio::select! {
            biased;
            decided = oldest => decided.is_ok(),
            () = hive.platform.sleep(limits::MOVE_STAGED_AFTER_MAX) => false,
        };
        if !is_committed {
            return false;
        }
    }
}
