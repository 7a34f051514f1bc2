//! A bee leaves for another colony: it is frozen, and dropped when the registry says that the colony has it, or thawed when
//! the registry says that it stays.

use crate::cell::{BeeId, CellId};
use crate::hive::bee::lifecycle::Bee;
use crate::hive::consensus::journal::{Acked, AppId, BeeImage, Emit, LaneId, LogState, MessageId, Record};
use crate::hive::consensus::registry::ColonyId;
use crate::hive::dispatch::inner::AnyApp;
use crate::hive::dispatch::turn::{Link, Place, Turn};
use crate::hive::ownership::reconciler::{Away, Key, Reconciler, ended_by};
use crate::limits;
use crate::mutant::Mutant;
use crate::time::Time;
use beehive_protocol::{Aim, Emits, Step};
use std::sync::Arc;
use std::time::Duration;

/// Longest time for the first answer of the hive to which a bee moves. The bee is not frozen before that answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

impl Reconciler {
    /// Puts the bees that are frozen in a log, which this hive begins to lead, into the routing tables: they accept no
    /// messages until the log says what becomes of them. Notes which bees of the log have ended, although the replica of the
    /// registry does not know it yet. Until it does, the registry names these bees. A sender that is told such a name must not
    /// take it for a bee that the hive has yet to create.
    pub(in crate::hive) fn begin(&self, link: &Link) {
        let ended: Vec<BeeId> = link.outline.lock().log.untold.iter().filter_map(ended_by).collect();
        self.apps().iter().for_each(|app| app.note_ended(&ended));

        let mut outline = link.outline.lock();
        let frozen: Vec<(AppId, BeeId)> = outline.log.bees.keys().copied().collect();
        let detach = |(app, bee)| Some((app, bee, outline.log.detach(app, bee)?));
        let frozen: Vec<(AppId, BeeId, LogState)> = frozen.into_iter().filter_map(detach).collect();
        drop(outline);
        for (app, id, content) in frozen {
            let image = content.bees.get(&(app, id));
            let cells: Vec<CellId> =
                image.into_iter().flat_map(|image| image.cells.iter().copied()).collect();
            let Some(runtime) = self.app(app) else { continue };
            let bee = Bee::away(runtime, id, &cells, link.position());
            let mut queen = runtime.queen.lock();
            // another log of this hive may have adopted the bee already, or may not have dropped it yet
            let old = queen.bees.get(id).filter(|old| old.is_leaving());
            if let Some(old) = old {
                old.has_moved();
            }
            if old.is_some() || queen.bees.get(id).is_none() {
                queen.bees.insert(bee.clone());
                cells.iter().for_each(|cell| runtime.routes.set(*cell, &bee))
            }
            let away = Away { bee, since: self.hive.now(), content: Arc::new(content) };
            self.state.lock().away.insert((link.position(), app, id), away);
        }
    }

    /// Checks whether a bee may begin to move.
    pub(super) fn may_leave(&self, key: Key) -> bool {
        !self.state.lock().not_before.contains_key(&key)
    }

    /// Checks whether the hive that leads a colony answers within [`ANSWERS_WITHIN`]. Takes as long if it does not. Another
    /// hive may begin to lead the colony meanwhile.
    async fn answers(&self, colony: ColonyId) -> bool {
        let registry = &self.links.registry;
        let hears = async {
            loop {
                let asked = self.links.leader_of(colony);
                let hears = async {
                    match asked {
                        Some(hive) if hive == self.hive.id => {}
                        Some(hive) => self.links.hears(hive).await,
                        None => std::future::pending().await,
                    }
                };
                let is_replaced = async {
                    let mut index = registry.index();
                    while self.links.leader_of(colony) == asked {
                        registry.wait(index + 1).await;
                        index = registry.index()
                    }
                };
                tokio::select! {
                    biased;
                    () = hears => return,
                    () = is_replaced => {}
                }
            }
        };
        tokio::select! {
            biased;
            () = hears => true,
            () = self.hive.platform.sleep(ANSWERS_WITHIN) => false,
        }
    }

    /// Waits until the hive to which a bee moves answers. If the bee were frozen before, nobody would handle its messages until
    /// the move had taken too long, and if it has to merge, it would then be frozen again.
    ///
    /// Returns the time at which the move began, or `None` if the bee must not leave now. A bee that only moves does not wait
    /// for longer than a move may take: it is then frozen for as long as it takes to tell the registry that it stays.
    async fn reach(&self, link: &Arc<Link>, (_, app, id): Key, to: ColonyId) -> Option<Time> {
        let began = self.hive.now();
        loop {
            let answers = tokio::select! {
                biased;
                answers = self.answers(to) => answers,
                () = self.hive.over() => return None,
            };
            if answers {
                return Some(self.hive.now());
            }
            let is_it = |step: &Step| matches!(step, Step::Append(Record::Freeze { app: its, bee, to: goal, .. }) if (*its, *bee, *goal) == (app, id, to));
            if !self.steps(link).iter().any(is_it) {
                return None;
            }
            let mut aim = None;
            self.links.registry.read(&mut |view| aim = view.bee(id).and_then(|entry| entry.aim));
            if matches!(aim, Some(Aim::Colony(_))) && self.hive.now() - began >= limits::MOVE_STAGED_AFTER_MAX
            {
                return Some(began);
            }
        }
    }

    /// Freezes a bee that moves to the colony `to`, when the leader of the colony has answered.
    pub(super) async fn leave(&self, link: &Arc<Link>, key: Key, to: ColonyId, view: u64) {
        let (_, app, id) = key;
        let Some(since) = self.reach(link, key, to).await else { return };
        if link.is_deposed() {
            return;
        }
        let bee = self.app(app).and_then(|runtime| runtime.bee(id));
        let Some(bee) = bee else { return self.pause().await };
        let body = tokio::select! {
            biased;
            body = bee.leave() => body,
            () = self.hive.over() => return,
        };
        let Some(mut body) = body else { return self.pause().await };
        if body.pending.as_ref().is_none_or(|pending| !Arc::ptr_eq(pending.link(), link)) {
            // while this task was waiting, the hive has lost the log and leads it again: this is the bee of the new term
            return Turn::with(&self.hive, Place::Runners, |turn| bee.stays_awake(body, turn));
        }
        let own = bee.lane();
        let lanes = &link.lanes.bees;
        let heir_of = body.pending.as_ref().map(|pending| pending.heir_of.clone()).unwrap_or_default();
        let all: Vec<LaneId> = std::iter::once(own).chain(heir_of).collect();
        // From now on, the hive sends nothing for the bee. What the bee has sent and nobody has handled yet is in the
        // outbox, which moves with it.
        while !body.queue.close(&all) && !self.hive.is_over() && !link.is_deposed() {
            self.hive.platform.sleep(Duration::from_micros(100)).await
        }
        let Some(pending) = &mut body.pending else { return };
        self.acknowledge_handled_without_bee(link, &all);
        link.log_consumed();
        if !pending.is_logged {
            let _ = link.commit(Record::Create { app, bee: id, view }).await;
        }
        pending.heir_of.retain(|lane| lanes.is_open(*lane));
        let leaving: Vec<LaneId> = std::iter::once(own).chain(pending.heir_of.iter().copied()).collect();
        let is_frozen = link.commit(Record::Freeze { app, bee: id, lanes: leaving.clone(), to, view }).await;
        if self.hive.is_over() {
            return;
        }
        if !is_frozen {
            // the next leader of the log has the bee, frozen or not
            return Bee::drop_lost(body);
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
        let content = link.outline.lock().log.detach(app, id);
        let Some(mut content) = content else { return };
        content.fill((app, id), image, Emits(outbox));
        self.links.forget(&leaving);
        let away = Away { bee, since, content: Arc::new(content) };
        let mut state = self.state.lock();
        // otherwise the hive has forgotten what was under way for the log, or is about to: see `unhost`
        if !link.is_deposed() {
            state.away.insert(key, away);
        }
    }

    /// Acknowledges what handlers without a bee have handled. The previous process may have ended after a record said so and
    /// before the acknowledgment. The dedup tables of this hive's logs do not move with the bee, so another hive would run
    /// these handlers again.
    fn acknowledge_handled_without_bee(&self, link: &Link, lanes: &[LaneId]) {
        let outbox = link.lanes.bees.outbox(lanes);
        for emit in outbox.iter().filter(|emit| self.hive.is_handled_without_bee(emit)) {
            let MessageId { app, lane, seq, part } = emit.id;
            self.hive.acknowledge(Acked { app, lane, seq, count: 1, part })
        }
    }

    /// Forgets a bee that another colony has adopted.
    pub(super) async fn drop_moved(&self, link: &Arc<Link>, (app, id): (AppId, BeeId), record: Record) {
        if !link.commit(record).await || self.hive.is_over() {
            return;
        }
        let key = (link.position(), app, id);
        self.stop_sending(key);
        let away = self.state.lock().away.remove(&key);
        let (Some(Away { bee, .. }), Some(runtime)) = (away, self.app(app)) else { return };
        runtime.remove_moved(&bee);
        tracing::debug!(app = runtime.name, bee = %id, "moved to another hive")
    }

    /// Lets a frozen bee continue, because the registry says that it stays.
    pub(super) async fn thaw(&self, link: &Arc<Link>, bee: (AppId, BeeId), record: Record) {
        if !link.commit(record.clone()).await || self.hive.is_over() {
            return;
        }
        let key = (link.position(), bee.0, bee.1);
        self.stop_sending(key);
        let away = self.state.lock().away.remove(&key);
        // the outline has only what it needs to know that the bee is active again
        drop(link.outline.lock().log.take_active(bee.0, bee.1));
        if let Some(Away { bee: stays, content, .. }) = away {
            let mut content = Arc::unwrap_or_clone(content);
            content.follow(&record);
            self.host(link, bee, content.take_active(bee.0, bee.1), Some(stays))
        }
        let until = self.hive.now() + limits::MOVE_STAGED_AFTER_MAX;
        self.state.lock().not_before.insert(key, until);
    }
}
