//! The copies of bees that move: the source sends them in parts, one after the other, and the target stages them.
//!
//! The target answers each part with the number of parts that it has. If no answer comes, the source sends the part again,
//! but not before the link has delivered what was sent before, so that nothing piles up while the target cannot be reached.

use crate::cell::{BeeId, HiveId};
use crate::hive::consensus::journal::AppId;
use crate::hive::consensus::registry::ColonyId;
use crate::hive::dispatch::turn::Link;
use crate::hive::links::frame::{Body, Staged};
use crate::hive::ownership::reconciler::{Key, Reconciler, State};
use crate::limits;
use beehive_protocol::{Epoch, Leader, StageFrame, frames, stage};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Time after which a part is sent again.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Time after which the last part is sent again, although the target has all parts.
const AGAIN_AFTER_ALL: Duration = Duration::from_secs(1);

/// A copy that is being sent.
pub(super) struct Sending {
    copy: u64,
    epoch: Epoch,
    /// Number of parts that the target has.
    parts: AtomicU32,
    /// Notified when the target has answered, and when the copy is no longer needed.
    news: Notify,
}

impl Sending {
    /// Tells the task that sends the copy that it is no longer needed.
    pub(super) fn end(&self) {
        self.news.notify_one()
    }
}

impl Reconciler {
    /// Begins to send the copy of a frozen bee, unless that has begun.
    pub(super) fn send_copy(self: &Arc<Self>, link: &Arc<Link>, (app, bee): (AppId, BeeId), to: ColonyId) {
        let key = (link.position(), app, bee);
        let content = {
            let state = self.state.lock();
            if state.sending.contains_key(&key) {
                return;
            }
            // until the bee is in this table, its content is not known
            let Some(away) = state.away.get(&key) else { return };
            away.content.clone()
        };
        // without a lock: this takes as long as the bee is large, and only the reconciler's own task does it
        let frames = frames(&content, app, bee, limits::STAGE_PART_BYTES_MAX);
        drop(content);
        let Some(first) = frames.first() else { return };
        let (parts, news) = Default::default();
        let sending = Arc::new(Sending { copy: first.copy, epoch: first.epoch, parts, news });
        {
            let mut state = self.state.lock();
            if !state.away.contains_key(&key) {
                // it was dropped or thawed meanwhile
                return;
            }
            if link.is_deposed() {
                return;
            }
            state.sending.insert(key, sending.clone());
        }
        let this = self.clone();
        self.hive.spawn(Box::pin(async move {
            this.send_parts(key, &sending, &frames, to).await;
            this.changed.notify_one()
        }))
    }

    /// Ends the sending of a copy.
    pub(super) fn stop_sending(&self, key: Key) {
        let sending = self.state.lock().sending.remove(&key);
        if let Some(sending) = sending {
            sending.end()
        }
    }

    async fn send_parts(&self, key: Key, sending: &Arc<Sending>, frames: &[StageFrame], to: ColonyId) {
        let is_needed = || {
            let state = self.state.lock();
            state.sending.get(&key).is_some_and(|known| Arc::ptr_eq(known, sending))
        };
        while is_needed() && !self.hive.is_over() {
            let has = sending.parts.load(Ordering::Acquire) as usize;
            let Some(frame) = frames.get(has).or(frames.last()) else { return };
            let hive = self.links.leader_of(to);
            if let Some(hive) = hive {
                self.tell(hive, Body::Stage(Box::new(frame.clone())))
            }
            let mut pause = if has < frames.len() { AGAIN_AFTER } else { AGAIN_AFTER_ALL };
            loop {
                tokio::select! {
                    biased;
                    () = sending.news.notified() => break,
                    () = self.hive.over() => return,
                    () = self.hive.platform.sleep(pause) => {}
                }
                // a leader that has died acknowledges nothing, and has a successor
                if self.links.leader_of(to) != hive || hive.is_none_or(|hive| self.links.is_settled(hive)) {
                    break;
                }
                pause = AGAIN_AFTER
            }
        }
    }

    /// Says something about a move to a hive, which may be this one.
    fn tell(&self, hive: HiveId, body: Body) {
        if hive == self.hive.id {
            self.links.push_move(hive, body);
            self.changed.notify_one()
        } else {
            self.links.send(hive, body)
        }
    }

    /// The target says how many parts it has.
    pub(super) fn staged(&self, staged: Staged) {
        let (mut state, now) = (self.state.lock(), self.hive.now());
        let State { sending, away, .. } = &mut *state;
        for (key, sending) in sending {
            let is_meant = (key.1, key.2, sending.epoch, sending.copy)
                == (staged.app, staged.bee, staged.epoch, staged.copy);
            if !is_meant {
                continue;
            }
            let had = sending.parts.swap(staged.parts, Ordering::AcqRel);
            if had != staged.parts {
                sending.news.notify_one()
            }
            if had < staged.parts
                && let Some(away) = away.get_mut(key)
            {
                // however large the bee is, its move goes on as long as there is progress
                away.since = now
            }
        }
    }

    /// A part of a copy has arrived.
    pub(super) fn staging_part(self: &Arc<Self>, from: HiveId, frame: Box<StageFrame>) {
        let link = self.hive.logs.as_ref().and_then(|logs| logs.clients().of_colony(frame.to));
        let Some(link) = link else { return };
        let this = self.clone();
        if self.links.registry.index() < frame.known {
            // the source sends the part again. If this hive kept such parts, they would pile up while its replica is late
            return;
        }

        let key = (link.position(), frame.app, frame.bee);
        // what the log needs is decided while no other record about the bee is being appended
        self.work([key], async move { this.stage_next(&link, from, &frame).await })
    }

    /// Stages a part of a copy, if it is the next one, and tells the source how many parts this hive has.
    async fn stage_next(&self, link: &Arc<Link>, from: HiveId, frame: &StageFrame) {
        let StageFrame { app, bee, epoch, copy, at, of, .. } = *frame;
        let key = (link.position(), app, bee);
        let active = self.active([(app, bee)]);
        let staging = self.state.lock().staging.get(&key).copied();
        let next = self.look(link, &active, |view, log| {
            let leader = Leader { colony: frame.to, log, view };
            let staged = log.staged.get(&(app, bee)).filter(|staged| staged.bee.epoch == epoch);
            let parts = match staged {
                Some(staged) if staged.is_complete() => of,
                Some(staged) if staging == Some(copy) => staged.parts,
                _ => 0,
            };
            (stage(leader, frame, staging), parts)
        });
        let staged = |parts| Body::Staged(Staged { app, bee, epoch, copy, parts });
        match next {
            Some((Some(record), _)) => {
                if !link.commit(record).await || self.hive.is_over() {
                    return;
                }
                let mut state = self.state.lock();
                if link.is_deposed() {
                    return;
                }
                state.staging.insert(key, copy);
                drop(state);
                self.tell(from, staged(at + 1))
            }
            // otherwise the source would send the same part again at once
            Some((None, parts)) if parts != at => self.tell(from, staged(parts)),
            _ => {}
        }
    }
}
