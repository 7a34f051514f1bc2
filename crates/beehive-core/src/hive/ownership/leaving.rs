//! A bee leaves for another colony: it is frozen, and dropped when the registry says that the colony has it, or thawed when
//! the registry says that it stays.

use crate::cell::{BeeId, CellId};
use crate::hive::bee::lifecycle::Bee;
use crate::hive::consensus::journal::{AppId, BeeImage, Emit, LaneId, Record};
use crate::hive::consensus::registry::ColonyId;
use crate::hive::dispatch::turn::Link;
use crate::hive::ownership::reconciler::{Key, Reconciler};
use crate::limits;
use crate::mutant::Mutant;
use beehive_protocol::Emits;
use std::sync::Arc;
use std::time::Duration;

impl Reconciler {
    /// Puts the bees that are frozen in the logs into the routing tables: they accept no messages until their logs say
    /// what becomes of them.
    pub(super) fn restore(&self) {
        for link in self.hive.log_clients() {
            let outline = link.outline.lock();
            let frozen = outline.log.bees.iter();
            let frozen: Vec<(AppId, BeeId, Vec<CellId>)> = frozen
                .map(|((app, bee), image)| (*app, *bee, image.cells.iter().copied().collect()))
                .collect();
            drop(outline);
            for (app, id, cells) in frozen {
                let Some(runtime) = self.app(app) else { continue };
                let bee = Bee::away(runtime, id, &cells);
                let mut queen = runtime.queen.lock();
                // another log of this hive may have adopted the bee already
                if queen.bees.get(id).is_none() {
                    queen.bees.insert(bee.clone());
                    cells.iter().for_each(|cell| runtime.routes.set(*cell, &bee))
                }
                self.state.lock().away.insert((link.position(), app, id), (bee, self.hive.now()));
            }
        }
    }

    /// Checks whether a bee may begin to move.
    pub(super) fn may_leave(&self, key: Key) -> bool {
        let now = self.hive.now();
        let mut state = self.state.lock();
        state.not_before.retain(|_, until| *until > now);
        !state.not_before.contains_key(&key)
    }

    /// Freezes a bee that moves to the colony `to`.
    pub(super) async fn leave(&self, link: &Arc<Link>, key: Key, to: ColonyId, view: u64) {
        let (_, app, id) = key;
        let bee = self.app(app).and_then(|runtime| runtime.bee(id));
        let Some(bee) = bee else { return self.pause().await };
        let body = tokio::select! {
            biased;
            body = bee.leave() => body,
            () = self.hive.over() => return,
        };
        let Some(mut body) = body else { return self.pause().await };
        // From now on, the hive sends nothing for the bee. What the bee has sent and nobody has handled yet is in the
        // outbox, which moves with it.
        while !body.queue.close() && !self.hive.is_over() {
            self.hive.platform.sleep(Duration::from_micros(100)).await
        }
        let Some(pending) = &mut body.pending else { return };
        link.log_consumed();
        if !pending.is_logged {
            link.commit(Record::Create { app, bee: id, view }).await
        }
        let own = bee.lane();
        let lanes = &link.lanes.bees;
        pending.heir_of.retain(|lane| lanes.is_open(*lane));
        let leaving: Vec<LaneId> = std::iter::once(own).chain(pending.heir_of.iter().copied()).collect();
        link.commit(Record::Freeze { app, bee: id, lanes: leaving.clone(), to, view }).await;
        if self.hive.is_over() {
            return;
        }

        let breaks = |mutant| link.lanes.breaks(mutant);
        let image = BeeImage {
            cells: bee.cells_after(0).0.into_iter().collect(),
            state: if breaks(Mutant::RowsNotMoved) {
                Default::default()
            } else {
                std::mem::take(&mut pending.base)
            },
            seen: if breaks(Mutant::DedupNotMoved) {
                Default::default()
            } else {
                std::mem::take(&mut pending.seen)
            },
            next_seq: if breaks(Mutant::LaneNotMoved) { Default::default() } else { pending.next_seq },
            now: body.now,
            epoch: pending.epoch,
            ..BeeImage::default()
        };
        let outbox = if breaks(Mutant::OutboxNotMoved) { Vec::new() } else { lanes.outbox(&leaving) };
        let outbox = outbox.iter().map(|emit| Emit::clone(emit)).collect();
        link.outline.lock().log.fill((app, id), image, Emits(outbox));
        self.links.forget(&leaving);
        self.state.lock().away.insert(key, (bee, self.hive.now()));
    }

    /// Forgets a bee that another colony has adopted.
    pub(super) async fn drop_moved(&self, link: &Arc<Link>, (app, id): (AppId, BeeId), record: Record) {
        link.commit(record).await;
        if self.hive.is_over() {
            return;
        }
        let key = (link.position(), app, id);
        self.stop_sending(key);
        let away = self.state.lock().away.remove(&key);
        let (Some((bee, _)), Some(runtime)) = (away, self.app(app)) else { return };
        runtime.remove_moved(&bee);
        tracing::debug!(app = runtime.name, bee = %id, "moved to another hive")
    }

    /// Lets a frozen bee continue, because the registry says that it stays.
    pub(super) async fn thaw(&self, link: &Arc<Link>, bee: (AppId, BeeId), record: Record) {
        link.commit(record).await;
        if self.hive.is_over() {
            return;
        }
        let key = (link.position(), bee.0, bee.1);
        self.stop_sending(key);
        let away = self.state.lock().away.remove(&key);
        self.host(link, bee, away.map(|(bee, _)| bee));
        let until = self.hive.now() + limits::MOVE_STAGED_AFTER_MAX;
        self.state.lock().not_before.insert(key, until);
    }
}
